"""One run through a plan in a simulator: the robot from grasp to grasp, a segment's commands, what is measured of
it."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.array_type import Array
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.loops.gripping import GripLoop
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Loop, Outcome, Record, T, ramp
from qdsim.planning.execution.own_plant import OwnPlant
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.robot import Robot, RobotPlant
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.simulators import Simulator
from qdsim.planning.execution.transfer_options import TransferOptions
from qdsim.planning.execution.world import World
from qdsim.planning.grasps.placing import placed, shifted
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.space import ObjectSpace
from qdsim.progress import Update, away

__all__ = ["Execution", "SegmentTransfer", "within"]

PLACED = 1e-4  # m of penetration that a second-order simulator starts from
RELEASE = 0.3
"""s, in which the springs let go of the object before the robot leaves it, and in which they come to rest in the
next grasp."""
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
        outcome: ``"followed"``: the object ended within the plan's tolerances of the segment's end; ``"missed"``:
            it did not; ``"given up"`` on the way; ``"no grip"``: the fingers did not hold the object, so it was not
            begun; ``"not begun"``: no motion to its grasp was found, or to that of an earlier one; ``"lost"``: the
            object was so far away that time stopped there.
    """

    time: Array
    planned: Array
    executed: Array
    commands: Array
    error: tuple[float, float]
    length: tuple[float, float]
    final: tuple[float, float]
    controller_failures: int = 0
    outcome: Outcome = "followed"

    @property
    def normalized_error(self) -> tuple[float, float]:
        """Δ̄ = Δ / L, NaN where the planned path has no length."""
        return (
            self.error[0] / self.length[0] if self.length[0] > 1e-9 else float("nan"),
            self.error[1] / self.length[1] if self.length[1] > 1e-9 else float("nan"),
        )

    def __repr__(self) -> str:
        return (
            f"SegmentTransfer({self.outcome}: {self.time[-1]:.3g} s, the object ends {_told(self.final)} "
            f"from its plan, on average {_told(self.error)} on a way of {_told(self.length)})"
        )


def _told(pair: tuple[float, float]) -> str:
    return f"{1e3 * pair[0]:.3g} mm, {np.degrees(pair[1]):.3g} deg"


class Execution:
    """One run through a plan; the object's state may carry on from segment to segment.

    It alone advances the plant, by the commands that loops yield, and measures where that leads.

    Args:
        plan: the plan.
        model: its model.
        simulator: the same in MuJoCo, options of the own second-order step, or a robot.
        options: speed, time step, how segments are joined.

    Attributes:
        loop: what takes the robot along a segment; to be set before the first one.
        last_q, last_u: where the last segment ended ``(nq,)`` and its last command ``(nu,)``, None before the first.
        missing_motions: changes of grasp for which no motion was found; the last one's segment was not begun.
        not_found: what an execution has ended for want of, empty where it has not.
        show: told what is done.
    """

    loop: Loop

    def __init__(
        self,
        plan: Plan,
        model: Model,
        simulator: Simulator,
        options: TransferOptions,
    ) -> None:
        self.plan, self.model, self.options = plan, model, options
        self.space = ObjectSpace(model, plan.object)
        compensated, bounds = not plan.options.gravity_on_actuated, plan.bounds(model)
        self.plant: World
        if isinstance(simulator, Robot):
            self.plant = RobotPlant(model, self.space, simulator, options, compensated, bounds)
        elif isinstance(simulator, DynamicOptions):
            self.plant = OwnPlant(model, self.space, simulator, options, compensated, bounds)
        else:
            self.plant = Plant(model, self.space, simulator, options, compensated, bounds)
        self.rng = np.random.default_rng(options.seed)
        self.last_q: Array | None = None
        self.last_u: Array | None = None
        self.missing_motions = 0
        self.show: Update = lambda done, text: None
        self._measured = 0
        self.not_found = ""
        self.plant.watch(np.array([*_ends(plan), plan.goal]))

    def drive(self, commands: Commands[T]) -> T:
        """Advance the plant by each command that a loop yields; what the loop returns."""
        while True:
            try:
                u = next(commands)
            except StopIteration as end:
                found: T = end.value
                return found
            self.plant.advance(u)

    def run(self, segment: Segment, abandon: tuple[float, float] | None = None) -> SegmentTransfer:
        """Execute a segment, and stop where the object is further than ``abandon`` from its plan."""
        plant, loop, record = self.plant, self.loop, Record(self.plant, abandon)
        ended: Outcome | None = "lost" if plant.lost and self.options.carry_on else None
        ended = "not begun" if self.not_found else ended
        start = self.drive(self._begin(segment)) if ended is None else None
        if start is None:  # there is nothing to begin with, or no way to it
            record.take(0.0, segment.start, np.asarray(self.model.command_from(plant.q)))
            self.last_q = record.samples[-1].executed
            return self.measure(segment, record, 0.0, "lost" if plant.lost else "not begun")
        offset = None
        if not isinstance(loop, GripLoop):
            offset = np.asarray(
                self.model.command_from(start) - self.model.command_from(segment.start)
            )
        options = self.options
        schedule = Schedule(self.model, segment, options.speed, options.timestep, offset)
        self.drive(loop.begin(schedule))
        outcome = self.drive(loop.follow(schedule, record))
        self.last_q = record.samples[-1].executed
        self.last_u = record.samples[-1].u
        return self.measure(segment, record, schedule.duration, outcome, loop.failures)

    def measured(self, q: Array | None = None) -> Array:
        """Where everything is, or is to be in ``q``, as a plan can begin: within the limits, the robot out of the object."""
        here = self.plant.q if q is None else q
        return self._placed(self.model.clamp_to_limits(self.model.normalize(here)))[0]

    def measure(
        self, segment: Segment, record: Record, duration: float, outcome: Outcome, failures: int = 0
    ) -> SegmentTransfer:
        """What a record says about a segment."""
        time = np.array([s.time for s in record.samples])
        planned = np.array([s.planned for s in record.samples])
        executed = np.array([s.executed for s in record.samples])
        commands = np.array([s.u for s in record.samples])
        errors = np.array([self.space.errors(a, b) for a, b in zip(executed, planned)])
        shift, turn = errors[time <= duration + 1e-9].mean(axis=0)
        if outcome == "followed" and not within(errors[-1], self.plan):
            outcome = "missed"
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

    # ---------------------------------------------------------------- from grasp to grasp

    def _start(self, segment: Segment) -> Array:
        """Where a segment begins: as planned, or with the object where it is and the robot in a grasp of it."""
        start = np.array(segment.start)
        if self.options.carry_on and self.last_q is not None:
            here = np.array(self.last_q)
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

    def _begin(self, segment: Segment) -> Commands[Array | None]:
        """Bring the robot, or everything, to where a segment begins; returns that, None where no motion was found."""
        options = self.options
        if self.last_u is None or not (options.carry_on and options.motions):
            start = self._start(segment)
            self.plant.reset(start)
            return start
        try:
            hand = self.loop.hand if isinstance(self.loop, GripLoop) else None
            yield from self.let_go(hand)
            found = yield from self.go(segment, hand)
        except ValueError as error:  # of robots that no motions are planned for
            raise ValueError(
                f"{error}; TransferOptions(carry_on=False) judges each segment by itself"
            ) from None
        if found is None and not self.plant.lost:
            self.missing_motions += 1
            self.not_found = "no motion found"
        return found

    def let_go(self, hand: Hand | None) -> Commands[None]:
        """Let the object go: a hand sets it down, of another robot the springs let go."""
        if hand is not None:
            yield from hand.release()
        else:
            yield from self._move_to(self.model.command_from(self.plant.q))
        self.last_q = self.measured()

    def go(self, segment: Segment, hand: Hand | None) -> Commands[Array | None]:
        """From where nothing is held, go to a segment's grasp: that, None where no way is found."""
        assert self.last_q is not None
        start = self._start(segment)
        if hand is not None:
            return start if (yield from hand.go(start, self.rng)) else None
        try:
            motion = self._motion(self.last_q, start)
        except MotionError:
            return None
        yield from self._along(motion)
        self.last_u = self.model.command_from(start)
        yield from self._move_to(self.last_u)
        return start

    def _motion(self, here: Array, there: Array) -> Motion:
        """A way for the robot, while the rest stays."""
        target = np.array(there)
        rest = self.model.unactuated_q
        target[rest] = here[rest]
        return connect(self.model, here, target, MOTION, self.rng)

    def _along(self, motion: Motion) -> Commands[None]:
        """The commands of a motion, ahead by what the joints' damping holds back."""
        h = self.options.timestep
        times = np.arange(int(np.ceil(motion.duration / h)) + 1) * h
        commands = np.asarray(self.model.command_from(motion.at(times)))
        for u, rate in zip(commands, np.diff(commands, axis=0) / h):
            yield u + self.plant.lag * rate

    def _move_to(self, u: Array) -> Commands[None]:
        """Ramp from the last command to another."""
        assert self.last_u is not None
        yield from ramp(self.last_u, u, int(np.ceil(RELEASE / self.options.timestep)))
        self.last_u = self.plant.within(u)

    def _length(self, segment: Segment) -> tuple[float, float]:
        steps = [
            self.space.errors(b, a)
            for a, b in zip(segment.configurations, segment.configurations[1:])
        ]
        shift, turn = np.sum(steps, axis=0)
        return float(shift), float(turn)


def within(errors: Array, plan: Plan) -> bool:
    """Whether errors of position and rotation (m, rad) are within a plan's tolerances."""
    return bool(errors[0] <= plan.position_tolerance and errors[1] <= plan.rotation_tolerance)


def _ends(plan: Plan) -> list[Array]:
    """Where the plan's segments begin and end."""
    return [q for segment in plan.segments for q in (segment.start, segment.end)]
