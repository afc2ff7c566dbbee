"""One run through a plan in MuJoCo: the robot from grasp to grasp, a segment's commands, what closes the loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.follower import (
    Follower,
    follow_options,
    follow_task,
    planned_reach,
    spring_reach,
)
from qdsim.planning.execution.gaiting import GaitOptions, StrokePlanner
from qdsim.planning.execution.grip import Grip, GripOptions
from qdsim.planning.execution.handling import Hand, Sample, SegmentOutcome, gaiting
from qdsim.planning.execution.pacing import step_lengths
from qdsim.planning.execution.plant import Plant, TransferOptions
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.stabilizer import Stabilizer
from qdsim.planning.grasps.placing import placed, shifted
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.progress import Update, away
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.robot import object_weight
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task

if TYPE_CHECKING:
    import mujoco

__all__ = ["Controller", "Execution", "SegmentTransfer"]

Controller = Callable[[Array, Array, Array, Array], Array]
"""``controller(q, u_plan, q_plan, u_last) -> u``: measured configuration, planned command and
configuration at the end of the control period, last command; :class:`Stabilizer` is one."""

RECORD_PERIOD = 0.01  # s, of what is kept of an execution
PLACED = 1e-4  # m of penetration that a second-order simulator starts from
STABILIZER_KAPPA = 300.0
RELEASE = 0.3
"""s, in which the springs let go of the object before the robot leaves it, and in which they come to rest in the
next grasp."""
PRESS, PRESS_ON_A_PLANE = 2.0, 8.0
"""Times the object's weight, that springs press with at most; what slides on a plane does not shoot away."""
SHIFT = 0.2
"""rad or m, furthest that grasps are moved with the object: commands go along in the joints, which is right for
small moves only."""
MOTION = MotionOptions(time_limit=2.0, speed=0.5)


@dataclasses.dataclass(frozen=True, eq=False)
class SegmentTransfer:
    """One segment, planned and executed (CQDC eq. 52 to 54). Pairs are of position (m) and rotation (rad).

    Attributes:
        time: ``(n,)`` s, of the samples.
        planned, executed: ``(n, nq)`` configurations.
        commands: ``(n, nu)`` what the joints were pulled to.
        error: Δ, the time average of the object's error.
        length: L, the length of the object's planned path.
        final: the object's error at the end, after settling.
        controller_failures: periods in which the controller could not solve its step; the planned command
            was used.
        outcome: ``"followed"`` to its end; ``"given up"`` on the way; ``"no grip"``: the fingers did not hold the
            object, so it was not begun; ``"lost"``: the object was so far away that time stopped there.
    """

    time: Array
    planned: Array
    executed: Array
    commands: Array
    error: tuple[float, float]
    length: tuple[float, float]
    final: tuple[float, float]
    controller_failures: int = 0
    outcome: SegmentOutcome = "followed"

    @property
    def normalized_error(self) -> tuple[float, float]:
        """Δ̄ = Δ / L, NaN where the planned path has no length."""
        return (
            self.error[0] / self.length[0] if self.length[0] > 1e-9 else float("nan"),
            self.error[1] / self.length[1] if self.length[1] > 1e-9 else float("nan"),
        )


class Execution:
    """One run through a plan; the object's state may carry on from segment to segment."""

    def __init__(
        self,
        plan: Plan,
        model: Model,
        mj: mujoco.MjModel,
        options: TransferOptions,
        controller: Controller | str | None,
        planner: RRTOptions | GaitOptions | None = None,
    ) -> None:
        self.plan, self.model, self.options = plan, model, options
        self.space = ObjectSpace(model, plan.object)
        self.plant = Plant(
            model,
            self.space,
            mj,
            options,
            compensated=not plan.options.gravity_on_actuated,
            bounds=plan.bounds(model),
        )
        self.rng = np.random.default_rng(options.seed)
        self.last_q: Array | None = None
        self.last_u: Array | None = None
        self.missing_motions = 0
        self.show: Update = lambda done, text: None
        self._measured = 0
        self.not_found = ""
        self.plant.watch(np.array([*_ends(plan), plan.goal]))
        self.follower: Follower | None = None
        self.controller: Controller | None = None
        self.hand: Hand | None = None
        if controller == "mpc":
            self.follower = self._make_follower()
        elif controller == "grip":
            gaits = planner if isinstance(planner, GaitOptions) else GaitOptions()
            length = plan.position_tolerance / plan.rotation_tolerance
            grip = Grip(model, plan.object, length, self._grip_options(gaits), plan.bounds(model))
            self.hand = Hand(self.plant, grip, options)
        elif controller == "stabilizer":
            smooth = plan.options.replace(
                h=options.control_period, kappa=STABILIZER_KAPPA, joint_limits=False
            )
            self.controller = Stabilizer(model, plan.object, smooth)
        elif callable(controller):
            self.controller = controller

    def _grip_options(self, gaits: GaitOptions) -> GripOptions:
        return dataclasses.replace(gaits.grip, period=self.options.control_period)

    def stroke(self, task: Task, planner: RRTOptions | GaitOptions | None) -> list[SegmentTransfer]:
        """Strokes from the task's start to its goal, without a break; then the object is held there."""
        gaits = planner if isinstance(planner, GaitOptions) else GaitOptions()
        gaits = dataclasses.replace(gaits, grip=self._grip_options(gaits))
        strokes = StrokePlanner(task, gaits, self.options.seed)
        hand = Hand(self.plant, strokes.grip, self.options)
        self.plant.watch(np.array([task.start, task.goal]))
        hand.reset(hand.apart(task.start, task.options))
        done, self.not_found = gaiting(hand, strokes, self.options)
        self.last_q = self.plant.q
        return [
            self._measure(schedule.segment, samples, schedule.duration, outcome)
            for schedule, samples, outcome in done
        ]

    def _handle(self, hand: Hand, segment: Segment) -> SegmentTransfer:
        """A segment followed by a grip, once the fingers have closed."""
        hand.reset(self._start(segment))
        hand.close()
        schedule = self._schedule(segment)
        samples, outcome = hand.follow(schedule, self.options.settle)
        self.last_q = samples[-1][2]
        return self._measure(segment, samples, schedule.duration, outcome)

    def _make_follower(self) -> Follower:
        plan, options, model = self.plan, self.options, self.model
        task = follow_task(plan, model, options, self._drift())
        length = plan.position_tolerance / plan.rotation_tolerance
        weight = object_weight(model, self.space, length)
        reach = spring_reach(model, plan.start, self._press() * weight)
        if options.press is None:
            # joints trail their springs by what their damping holds back
            reach = np.maximum(reach, planned_reach(plan, model)) + self.plant.lag * options.speed
        if options.force is not None:
            gear = np.abs(np.asarray(model.actuator_gear))
            stiffness = np.asarray(model.parameters.actuator_stiffness)
            limit = spread("force", options.force, model.nu) / stiffness * gear
            reach = limit if options.press is None else np.minimum(reach, limit)
        return Follower(task, follow_options(task, options.control_period, np.minimum(reach, 1e3)))

    def _press(self) -> float:
        """Times the object's weight, that a follower may press with."""
        return self.options.press or (PRESS_ON_A_PLANE if self.plant.supported else PRESS)

    def _drift(self) -> float:
        """How fast the plan has the object go, m/s, on average over its way."""
        way: list[float] = []
        spans: list[float] = []
        for segment in self.plan.segments:
            if segment.steps > 0:
                way += step_lengths(self.model, self.space, segment)
                spans += np.diff(self._schedule(segment).times).tolist()
        moves = np.array(way)
        return float(moves @ (moves / np.array(spans)) / max(moves.sum(), 1e-300)) if way else 0.0

    def _schedule(self, segment: Segment, offset: Array | None = None) -> Schedule:
        return Schedule(self.model, segment, self.options.speed, self.options.timestep, offset)

    def _start(self, segment: Segment) -> Array:
        """Where a segment begins: as planned, or with the object where it is and the robot in a grasp of it."""
        start = np.array(segment.start)
        if self.options.carry_on and self.last_q is not None:
            here = np.array(self.last_q)
            if self.options.shift_grasps:
                moved = shifted(self.model, self.plan.object, start, here)
                if np.abs(moved - start)[self.model.actuated_q].max(initial=0.0) < SHIFT:
                    start = moved
            start[self.space.q] = here[self.space.q]
            # Where the springs do not get the robot out of the object, it stays where it was.
            fitted, good = self._placed(start)
            return fitted if good else here
        sizes = np.where(
            self.space.rotation, self.options.rotation_noise, self.options.position_noise
        )
        if sizes.any():
            shift = np.zeros(self.model.nv)
            shift[self.space.v] = sizes * self.rng.standard_normal(len(sizes))
            start = self._placed(np.asarray(self.model.integrate(start, shift)))[0]
        return start

    def _placed(self, q: Array) -> tuple[Array, bool]:
        return placed(self.model, self.plan.object, q, self.plan.options, PLACED)

    def measured(self) -> Array:
        """Where everything is, as a plan can begin: within the limits, the robot out of the object."""
        return self._placed(self.model.clamp_to_limits(self.model.normalize(self.plant.q)))[0]

    def _begin(self, segment: Segment) -> Array:
        """Bring the robot, or everything, to where a segment begins; returns that."""
        options = self.options
        if self.last_u is None or not (options.carry_on and options.motions):
            start = self._start(segment)
            self.plant.reset(start)
            return start
        self._move_to(self.model.command_from(self.plant.q), RELEASE)
        self.last_q = self.measured()
        start = self._start(segment)
        motion = self._motion(self.last_q, start)
        if motion is None:
            self.missing_motions += 1
            self.plant.reset(start)
            return start
        times = np.arange(int(np.ceil(motion.duration / options.timestep)) + 1) * options.timestep
        commands = np.asarray(self.model.command_from(motion.at(times)))
        rates = np.diff(commands, axis=0) / options.timestep
        for u, rate in zip(commands, rates):
            self.plant.advance(u + self.plant.lag * rate)
        self.last_u = self.model.command_from(start)
        self._move_to(self.last_u, RELEASE)
        return start

    def _motion(self, here: Array, there: Array) -> Motion | None:
        """A way for the robot, or None."""
        target = np.array(there)
        rest = self.model.unactuated_q
        target[rest] = here[rest]
        try:
            return connect(self.model, here, target, MOTION, self.rng)
        except (MotionError, ImportError, ValueError):
            return None

    def _move_to(self, u: Array, seconds: float) -> None:
        """Ramp from the last command to another."""
        assert self.last_u is not None
        count = int(np.ceil(seconds / self.options.timestep))
        for i in range(1, count + 1):
            self.plant.advance(self.last_u + (i / count) * (u - self.last_u))
        self.last_u = self.plant.within(u)

    def run(self, segment: Segment, abandon: tuple[float, float] | None = None) -> SegmentTransfer:
        """Execute a segment, and stop where the object is further than ``abandon`` from its plan."""
        plant, given = self.plant, self.options
        if plant.lost and given.carry_on:  # there is nothing to begin with
            sample = (0.0, segment.start, plant.q, np.asarray(self.model.command_from(plant.q)))
            return self._measure(segment, [sample], 0.0, "lost")
        if self.hand is not None:
            return self._handle(self.hand, segment)
        start = self._begin(segment)
        offset = np.asarray(self.model.command_from(start) - self.model.command_from(segment.start))
        schedule = self._schedule(segment, offset)
        if self.follower is not None:
            self.follower.begin(schedule)
        samples: list[Sample] = []
        failures = 0
        outcome: SegmentOutcome = "followed"
        u = u_last = u_next = schedule.commands[0]
        per_period = max(1, round(given.control_period / given.timestep))
        per_record = max(1, round(RECORD_PERIOD / given.timestep))
        count = int(np.ceil((schedule.duration + given.settle) / given.timestep))
        closed = self.follower is not None or self.controller is not None
        planned_commands = schedule.commands_at(given.timestep * np.arange(count + 1.0))
        for i in range(count + 1):
            time = i * given.timestep
            if not closed:
                u = planned_commands[i]
            else:
                if i % per_period == 0:
                    u_last = u_next
                    u_next, failed = self._decide(schedule, time, u_last)
                    failures += failed
                share = (i % per_period + 1) / per_period
                u = (1.0 - share) * u_last + share * u_next
            u = plant.within(u)
            if i % per_record == 0 or i == count:
                planned = schedule.configuration(time)
                samples.append((time, planned, plant.q, np.array(u)))
                away = np.array(self.space.errors(plant.q, planned))
                if plant.lost:
                    outcome = "lost"
                    break
                if abandon is not None and np.any(away > abandon):
                    outcome = "given up"
                    break
            plant.advance(u)
        self.last_q, self.last_u = samples[-1][2], np.array(u)
        return self._measure(segment, samples, schedule.duration, outcome, failures)

    def _decide(self, schedule: Schedule, time: float, u_last: Array) -> tuple[Array, bool]:
        """The controller's command for the end of the period, and whether it failed."""
        q = self.plant.q
        if self.follower is not None:
            return self.follower.command(q, time)
        assert self.controller is not None
        end = time + self.options.control_period
        u_plan = schedule.command(end)
        try:
            return self.controller(q, u_plan, schedule.configuration(end), u_last), False
        except SolverError:
            return u_plan, True

    def _length(self, segment: Segment) -> tuple[float, float]:
        steps = [
            self.space.errors(b, a)
            for a, b in zip(segment.configurations, segment.configurations[1:])
        ]
        shift, turn = np.sum(steps, axis=0)
        return float(shift), float(turn)

    def _measure(
        self,
        segment: Segment,
        samples: list[Sample],
        duration: float,
        outcome: SegmentOutcome,
        failures: int = 0,
    ) -> SegmentTransfer:
        time = np.array([s[0] for s in samples])
        planned, executed, commands = (np.array([s[k] for s in samples]) for k in (1, 2, 3))
        errors = np.array([self.space.errors(a, b) for a, b in zip(executed, planned)])
        shift, turn = errors[time <= duration + 1e-9].mean(axis=0)
        self._measured += 1
        self.show(self._measured, away(*self.space.errors(executed[-1], self.plan.goal)))
        return SegmentTransfer(
            time,
            planned,
            executed,
            commands,
            (float(shift), float(turn)),
            self._length(segment),
            (float(errors[-1, 0]), float(errors[-1, 1])),
            failures,
            outcome,
        )


def _ends(plan: Plan) -> list[Array]:
    """Where the plan's segments begin and end."""
    return [q for segment in plan.segments for q in (segment.start, segment.end)]
