"""One execution of a plan in a simulator: motions between grasps, commands of segments, and measured
errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from qdsim.arguments import spread
from qdsim.array_type import SAME, Array
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.executed_motion import Recorder
from qdsim.planning.execution.loops.hand import LEAVING, Hand
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record, T, drive, ramp
from qdsim.planning.execution.loops.pursuit import along
from qdsim.planning.execution.loops.steering import Steering
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.own_plant import OwnPlant
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.robot_interface import Robot, RobotPlant
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.simulators import Simulator
from qdsim.planning.execution.world import World
from qdsim.planning.grasps.placing import placed, shifted
from qdsim.planning.grasps.resting import is_stable, landing
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.followers import unmoved_q
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.robot import force_reach, penetration, robot_bodies
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.arrival import LEFT
from qdsim.progress import Update, away

__all__ = ["Execution", "SegmentTransfer", "within"]

SHIFT = 0.2
"""Largest change of a joint, rad or m, by which a grasp is moved with the object; larger changes may
put the robot inside the object."""
MOTION = MotionOptions(time_limit=2.0, speed=0.5)
"""Settings of motions between grasps for robots without a hand."""
_DAMPING = 0.7
"""Share of an actuator's force limit that may overcome damping on a motion; the rest is for acceleration."""


@dataclasses.dataclass(frozen=True, eq=False)
class SegmentTransfer:
    """One segment, planned and executed (CQDC eq. 52 to 54).

    Pairs are a position (m) and a rotation (rad).

    Attributes:
        time: Times of the samples ``(n,)``, s.
        planned, executed: Configurations ``(n, nq)``.
        commands: Commands sent, ``(n, nu)``.
        error: Δ, the time average of the object's error.
        length: L, the length of the object's planned path.
        final: The object's error at the end, after settling.
        controller_failures: Number of periods in which the controller could not solve its step; the
            planned command was used instead.
        outcome: ``"followed"``: the object ended within the plan's tolerances of the segment's end;
            ``"missed"``: it did not; ``"given up"``: stopped on the way; ``"no grip"``: the fingers
            did not hold the object, so the segment was not begun; ``"not begun"``: no motion to its
            grasp, or to that of an earlier segment, was found; ``"lost"``: the object was so far
            away that the simulation stopped.
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
        """Δ̄ = Δ / L; NaN if the planned path has no length."""
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
    """Executes a plan in a plant; the state may carry over from one segment to the next.

    Only this class advances the plant, by the commands that loops yield, and measures the result.

    Args:
        plan: The plan.
        model: Its model.
        simulator: The same model in MuJoCo, options of the package's second-order step, or a robot.
        options: Speed, time step, and how segments are joined.

    Attributes:
        goals: The poses of the object that count as the plan's goal.
        hand: Closes, sets down and releases, for a robot with fingers that hold; else None.
        mover: Moves the object along a segment of the plan; None: the hand does.
        u: The present command ``(nu,)``, None before the first one.
        free: Whether the robot holds nothing.
        last_q: Configuration ``(nq,)`` at the end of the last segment, None before the first.
        missing_motions: Number of regrasps for which no motion was found; the segment after the last
            one was not begun.
        not_found: Why an execution ended early (what was not found); empty otherwise.
        recorder: Records the motion of the plant.
        show: Called with progress.
    """

    def __init__(
        self,
        plan: Plan,
        model: Model,
        simulator: Simulator,
        options: TransferOptions,
    ) -> None:
        self.plan, self.model, self.options = plan, model, options
        self.goals = plan.goals(model)
        self.space = self.goals.space
        compensated, bounds = not plan.options.gravity_on_actuated, plan.bounds(model)
        self.plant: World
        if isinstance(simulator, Robot):
            self.plant = RobotPlant(model, self.space, simulator, options, compensated, bounds)
        elif isinstance(simulator, DynamicOptions):
            self.plant = OwnPlant(model, self.space, simulator, options, compensated, bounds)
        else:
            self.plant = Plant(model, self.space, simulator, options, compensated, bounds)
        self.rng = np.random.default_rng(options.seed)
        self.hand: Hand | None = None
        self.mover: Steering | None = None
        self.u: Array | None = None
        self.last_q: Array | None = None
        self.free = False
        self.missing_motions = 0
        self.show: Update = lambda done, text: None
        self._measured = 0
        self._way: tuple[Array, Array] = np.zeros(0), np.empty((0, model.nu))
        self.not_found = ""
        self.recorder = Recorder(self.plant, self.goals)
        self.plant.watch(np.array([*_ends(plan), self.goals.nearest(plan.end)]))

    @property
    def command(self) -> Array:
        """The present command, once the execution has begun."""
        assert self.u is not None
        return self.u

    def advance(self, u: Array) -> None:
        """Take one time step with a command, which becomes the present command."""
        self.u = self.plant.within(u)
        self.recorder.take(self.u)
        self.plant.advance(self.u)

    def drive(self, commands: Commands[T]) -> T:
        """Advance the plant by each command that a loop yields; return the result of the loop."""
        return drive(commands, self.advance)

    def run(self, segment: Segment) -> SegmentTransfer:
        """Execute a segment of the plan with commands as functions of time."""
        plant, record = self.plant, Record(self.plant)
        self.recorder.mark(f"segment {self._measured + 1}")
        gone = plant.lost and self.options.carry_on
        start = None if gone or self.not_found else self.drive(self._begin(segment))
        if start is None:  # the object is lost, or no motion to the start was found
            record.take(0.0, segment.start, np.asarray(self.model.command_from(plant.q)))
            duration, outcome = 0.0, "lost" if plant.lost else "not begun"
        else:
            self.free = False
            schedule = self.schedule(segment, start if self.mover else None)
            duration = schedule.duration
            outcome = self.drive(self._moved(schedule, record))
        self.last_q = record.samples[-1].executed
        return self.measure(segment, record, duration, outcome)  # type: ignore[arg-type]

    def schedule(self, segment: Segment, start: Array | None = None) -> Schedule:
        """Return a segment as a function of time; its commands are shifted to start at the robot's
        configuration ``start`` ``(nq,)``."""
        model, offset = self.model, None
        if start is not None:
            offset = np.asarray(model.command_from(start) - model.command_from(segment.start))
        return Schedule(model, segment, self.options.speed, self.options.timestep, offset)

    def _moved(self, schedule: Schedule, record: Record) -> Commands[Outcome]:
        """Move the object along a segment: by the controller, or held by the hand, whose fingers close first."""
        settle = self.options.settle
        if self.mover is not None:
            tolerances = np.array([self.plan.position_tolerance, self.plan.rotation_tolerance])
            track = Track(self.goals, tolerances, schedule, self.plant.q)
            return (yield from along(self.plant, track, self.mover, record, settle))
        assert self.hand is not None
        self.hand.rest(self.plant.q)
        yield from self.hand.close()
        return (yield from self.hand.follow(schedule, record, settle))

    def measured(self, q: Array | None = None) -> Array:
        """Return the measured configuration, or ``q``, made valid as a start of a plan: joints are within
        limits, and the robot is not inside the object."""
        here = self.plant.q if q is None else q
        return self._placed(self.model.clamp_to_limits(self.model.normalize(here)))[0]

    def measure(
        self, segment: Segment, record: Record, duration: float, outcome: Outcome
    ) -> SegmentTransfer:
        """Compute the errors of a segment from its record."""
        time = np.array([s.time for s in record.samples])
        planned = np.array([s.planned for s in record.samples])
        executed = np.array([s.executed for s in record.samples])
        commands = np.array([s.u for s in record.samples])
        errors = np.array([self.goals.apart(a, b) for a, b in zip(executed, planned)])
        shift, turn = errors[time <= duration + 1e-9].mean(axis=0)
        if outcome == "followed" and not within(errors[-1], self.plan):
            outcome = "missed"
        self._measured += 1
        self._way = time, commands
        self.show(self._measured, away(*self.goals.errors(executed[-1])))
        return SegmentTransfer(
            time,
            planned,
            executed,
            commands,
            (float(shift), float(turn)),
            self._length(segment),
            (float(errors[-1, 0]), float(errors[-1, 1])),
            record.failures,
            outcome,
        )

    # ---------------------------------------------------------------- regrasps

    def start(self, segment: Segment) -> Array:
        """Return the start of a segment: the planned one, or the present pose of the object with the robot
        in a grasp of it, or where it is if it has no place in that grasp."""
        if self.options.carry_on and self.last_q is not None:
            fitted, good = self._fitted(segment)
            return fitted if good else np.array(self.last_q)
        start = np.array(segment.start)
        sizes = np.where(
            self.space.rotation, self.options.rotation_noise, self.options.position_noise
        )
        if sizes.any():
            shift = np.zeros(self.model.nv)
            shift[self.space.v] = sizes * self.rng.standard_normal(len(sizes))
            start = self._placed(np.asarray(self.model.integrate(start, shift)))[0]
        return start

    def _fitted(self, segment: Segment) -> tuple[Array, bool]:
        """Return a segment's grasp at the present pose of the object ``(nq,)``, and whether the springs have moved the
        robot out of everything there."""
        assert self.last_q is not None
        start, here = np.array(segment.start), self.last_q
        moved = shifted(self.model, self.plan.object, start, self.goals.alike(here, start))
        if np.abs(moved - start)[self.model.actuated_q].max(initial=0.0) < SHIFT:
            start = moved
        start[self.space.q] = here[self.space.q]
        return self._placed(start)

    def _placed(self, q: Array) -> tuple[Array, bool]:
        return placed(self.model, self.plan.object, q, self.plan.options)

    def _begin(self, segment: Segment) -> Commands[Array | None]:
        """Bring the robot, or the whole plant, to the start of a segment; return it, or None if no motion was found."""
        options = self.options
        if self.u is None or not (options.carry_on and options.motions):
            start = self.start(segment)
            self.plant.reset(start)
            return start
        try:
            yield from self.let_go()
            found = yield from self.go(segment)
        except ValueError as error:  # the robot has joints for which motions cannot be planned
            raise ValueError(
                f"{error}; TransferOptions(carry_on=False) judges each segment by itself"
            ) from None
        if found is None and not self.plant.lost:
            self.missing_motions += 1
            self.not_found = "no motion found"
        return found

    def told(self) -> Hand | None:
        """Return the hand, after giving it the present command."""
        if self.hand is not None and self.u is not None:
            self.hand.u = self.u
        return self.hand

    def let_go(self) -> Commands[None]:
        """Release the object where it can rest.

        A hand sets it down. Other robots go back until it rests, and relax their springs. If the robot is then deeper in
        a soft contact than a motion may begin, it goes back farther.
        """
        hand = self.told()
        if not self.free:
            if hand is not None:
                yield from hand.release()
            else:
                yield from self._back(self.rests)
                yield from self._move_to(self.model.command_from(self.plant.q))
                if not self._is_out():
                    yield from self._back(self._is_out)
                    yield from self._move_to(self.model.command_from(self.plant.q))
            self.free = True
        self.last_q = self.measured()

    def rests(self) -> bool:
        """Return whether the object does not lean on the robot, or comes to rest near where it is.

        An object that is carried a little above its support need not be carried back.
        """
        q, plan = self.plant.q, self.plan
        if is_stable(self.model, q, plan.object, plan.options):
            return True
        there = landing(self.model, q, plan.object, plan.options)
        if there is None:
            return False
        shift, turn = self.space.errors(there, q)
        return shift <= LEFT * plan.position_tolerance and turn <= LEFT * plan.rotation_tolerance

    def _is_out(self) -> bool:
        """Return whether a motion of the robot may begin here."""
        return penetration(self.model, self.plant.q, robot_bodies(self.model)) <= MOTION.penetration

    def _back(self, may_stay: Callable[[], bool]) -> Commands[None]:
        """Go back along the commands of the last segment until the robot may stay."""
        time, commands = self._way
        for k in range(len(time) - 1, 0, -1):
            if may_stay():
                return
            count = round((time[k] - time[k - 1]) / self.plant.timestep)
            yield from ramp(self.command, self.plant.within(commands[k - 1]), count)

    def go(self, segment: Segment) -> Commands[Array | None]:
        """Move the robot from a released state to the grasp of a segment.

        Returns:
            The configuration ``(nq,)`` of the grasp, or None if the robot has no place in it or no motion is found.

        Raises:
            ImportError: The straight line is blocked, and OMPL is not installed.
        """
        (start, free), hand = self._fitted(segment), self.told()
        if not free:
            return None
        if hand is not None:
            found = yield from hand.go(start, self.rng)
        else:
            found = yield from self._gone(start)
        return start if found else None

    def _gone(self, there: Array) -> Commands[bool]:
        """Move a robot without a hand to a configuration, with springs at rest there; return whether it succeeded."""
        assert self.last_q is not None
        target, rest = np.array(there), unmoved_q(self.model)
        target[rest] = self.last_q[rest]
        try:
            motion = connect(self.model, self.last_q, target, self._pace(), self.rng)
        except MotionError:
            return False
        yield from self._along(motion)
        yield from self._move_to(self.model.command_from(there))
        return True

    def _pace(self) -> MotionOptions:
        """Return :data:`MOTION` with speeds and accelerations that the joints can follow within their force limits.

        Springs lead moving joints: by the speed times the lag, to overcome damping, and, because joints are critically
        damped, by the acceleration times the square of half the lag. Force limits bound the lead. Where commands of
        acceleration come late, the error is of the size of the second lead, so that the clearance bounds it as well.
        """
        lag, inertia = np.maximum(self.plant.lag, SAME), np.maximum(0.5 * self.plant.lag, SAME) ** 2
        lead = self._lead()
        speed = np.minimum(MOTION.speed, _DAMPING * lead / lag)
        swing = np.minimum(LEAVING.clearance, (1.0 - _DAMPING) * lead) / inertia
        acceleration = np.minimum(swing, np.array(MOTION.acceleration, dtype=np.float64))
        return dataclasses.replace(
            MOTION, speed=tuple(speed.tolist()), acceleration=tuple(acceleration.tolist())
        )

    def _lead(self) -> Array:
        """Return how far springs may be ahead of the joints, ``(nu,)``, rad or m: the shorter way of the two that the
        force limits leave, or, of actuators that only pull or only push, the other one."""
        if self.options.force is not None:
            force = spread("force", self.options.force, self.model.nu)
            return np.asarray(force / np.asarray(self.model.parameters.actuator_stiffness))
        nearer, farther = np.sort(np.abs(force_reach(self.model)), axis=0)
        lead = np.where(nearer > 0.0, nearer, farther)
        return np.asarray(lead / np.abs(np.asarray(self.model.actuator_gear)))

    def _along(self, motion: Motion) -> Commands[None]:
        """Yield the commands of a motion, advanced by the lag that the joints' damping and inertia cause."""
        h = self.options.timestep
        times = np.arange(int(np.ceil(motion.duration / h)) + 1) * h
        commands = np.asarray(self.model.command_from(motion.at(times)))
        rates = np.diff(commands, axis=0, append=commands[-1:]) / h
        lag, changes = self.plant.lag, np.diff(rates, axis=0, append=rates[-1:]) / h
        yield from commands + lag * rates + (0.5 * lag) ** 2 * changes

    def _move_to(self, u: Array) -> Commands[None]:
        """Ramp from the present command to another."""
        yield from ramp(self.command, u, int(np.ceil(SETTLE / self.options.timestep)))

    def _length(self, segment: Segment) -> tuple[float, float]:
        steps = [
            self.space.errors(b, a)
            for a, b in zip(segment.configurations, segment.configurations[1:])
        ]
        shift, turn = np.sum(steps, axis=0)
        return float(shift), float(turn)


def within(errors: Array, plan: Plan) -> bool:
    """Return whether errors of position and rotation (m, rad) are within a plan's tolerances."""
    return bool(errors[0] <= plan.position_tolerance and errors[1] <= plan.rotation_tolerance)


def _ends(plan: Plan) -> list[Array]:
    """Return the start and end configurations of all segments of a plan."""
    return [q for segment in plan.segments for q in (segment.start, segment.end)]
