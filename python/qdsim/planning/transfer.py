"""Plans outside of the model they were made with: execution in MuJoCo at small steps (S3 §IX).

The second-order simulator gets the same bodies, shapes, frictions and stiffnesses. The robot is held by
its joint springs, critically damped, with gravity compensated, and gets the commands of the plan
stretched in time, so that no command moves faster than a given speed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from qdsim._core import SolverError
from qdsim.model import Model
from qdsim.planning.follower import Follower, follow_options, follow_task, spring_reach
from qdsim.planning.gaiting import GaitOptions, StrokePlanner
from qdsim.planning.grip import Grip, GripOptions
from qdsim.planning.handling import Hand, Sample, gaiting
from qdsim.planning.options import RRTOptions
from qdsim.planning.placing import placed
from qdsim.planning.plan import Plan, Segment
from qdsim.planning.plant import GRAVITY, Plant, TransferOptions, second_order
from qdsim.planning.rrt import rrt
from qdsim.planning.schedule import Schedule
from qdsim.planning.space import Array, ObjectSpace
from qdsim.planning.stabilizer import Stabilizer
from qdsim.planning.task import Task

if TYPE_CHECKING:
    import mujoco

__all__ = [
    "Controller",
    "SegmentTransfer",
    "Transfer",
    "TransferOptions",
    "gentle",
    "second_order",
    "transfer",
]

Controller = Callable[[Array, Array, Array, Array], Array]
"""``controller(q, u_plan, q_plan, u_last) -> u``: measured configuration, planned command and
configuration at the end of the control period, last command; :class:`Stabilizer` is one."""

Loop = Literal["open", "stabilizer", "mpc", "replan", "grip", "gait"]

RECORD_PERIOD = 0.01  # s, of what is kept of an execution
PLACED = 1e-4  # m of penetration that a second-order simulator starts from
STABILIZER_KAPPA = 300.0
ABANDON = 10.0
"""With "replan" a segment is given up where the object is so many times the tolerances off: in motion it lags."""
LEAVE = 2.0
"""And a plan where the object is so many times the tolerances off at the end of a segment."""
SEGMENTS = 60
PLANS = 12
"""With "replan", most segments and plans of an execution."""
MISSES = 2
"""And most new plans in a row that do not find the goal: the object is out of the robot's reach."""
"""With "replan", most segments and plans of an execution."""


@dataclasses.dataclass(frozen=True, eq=False)
class SegmentTransfer:
    """One segment, planned and executed (S3 eq. 52 to 54). Pairs are of position (m) and rotation (rad).

    Attributes:
        time: ``(n,)`` s, of the samples.
        planned, executed: ``(n, nq)`` configurations.
        commands: ``(n, nu)`` what the joints were pulled to.
        error: Δ, the time average of the object's error.
        length: L, the length of the object's planned path.
        final: the object's error at the end, after settling.
        controller_failures: periods in which the controller could not solve its step; the planned command
            was used.
    """

    time: Array
    planned: Array
    executed: Array
    commands: Array
    error: tuple[float, float]
    length: tuple[float, float]
    final: tuple[float, float]
    controller_failures: int = 0

    @property
    def normalized_error(self) -> tuple[float, float]:
        """Δ̄ = Δ / L, NaN where the planned path has no length."""
        return (
            self.error[0] / self.length[0] if self.length[0] > 1e-9 else float("nan"),
            self.error[1] / self.length[1] if self.length[1] > 1e-9 else float("nan"),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Transfer:
    """An executed plan.

    Attributes:
        segments: one entry for each segment that was executed.
        position_error, rotation_error: of the object's last pose with respect to the plan's goal, m and rad.
        reached: whether both are within the plan's tolerances.
        plans: how many plans were used, 1 where none was made on the way.
    """

    segments: tuple[SegmentTransfer, ...]
    position_error: float
    rotation_error: float
    reached: bool
    plans: int = 1

    @property
    def error(self) -> tuple[float, float]:
        """Δ, averaged over all segments by their duration: m and rad."""
        if not self.segments:
            return float("nan"), float("nan")
        duration = np.array([s.time[-1] for s in self.segments])
        errors = np.array([s.error for s in self.segments])
        position, rotation = duration @ errors / duration.sum()
        return float(position), float(rotation)

    def __repr__(self) -> str:
        return (
            f"Transfer({len(self.segments)} segments, reached={self.reached}, "
            f"position_error={self.position_error:.3g} m, rotation_error={self.rotation_error:.3g} rad)"
        )


def gentle(options: RRTOptions) -> RRTOptions:
    """Settings for plans that a second-order world can follow: a quarter of the step, four times the chain, no
    pressure kept from push to push.

    An edge commands the robot's springs as far from where it is as the object yields. In the quasi-dynamic
    model an object between two fingers bears any squeeze; outside of it hundreds of newtons shoot it out.

    Args:
        options: the settings to start from, ``task.planner`` say; the others stay as they are.
    """
    return options.replace(
        step=options.step / 4.0,
        sub_steps=max(1, options.sub_steps // 2),
        chain_length=4 * options.chain_length,
        squeeze=0.0,
    )


def transfer(
    plan: Plan,
    model: Model | Task,
    options: TransferOptions | None = None,
    *,
    controller: Controller | Loop | None = None,
    simulator: mujoco.MjModel | None = None,
    planner: RRTOptions | GaitOptions | None = None,
) -> Transfer:
    """Execute a plan in MuJoCo and compare (S3 §IX).

    Args:
        plan: the plan.
        model: the model of its task, or the task itself, which ``"replan"`` and ``"gait"`` need.
        options: speed, time step, how segments are joined.
        controller: what closes the loop, every ``options.control_period``. None or ``"open"``: the planned
            commands. ``"stabilizer"``: :class:`Stabilizer` with its own weights. ``"mpc"``: iMPC along the
            segment, ten control periods ahead, with the springs bounded by ``options.press``. ``"replan"``: as
            ``"mpc"``; where the object is further off its plan than twice the tolerances at the end of a segment,
            or ten times on the way, or the plan has ended short of the goal, a new one begins where it is; the
            object always carries on. ``"grip"``: a :class:`Grip` moves the object along the segment's path, from
            a preload on, whatever the commands planned were. ``"gait"``: the plan's goal alone counts: strokes
            (:class:`StrokePlanner`) from where the object is, without a break from the task's start on: the
            fingers close, move the object, let it rest, and go to the next grasp through the simulated world.
            Or a function of your own.
        simulator: a MuJoCo model with the same layout, e.g. with other masses or frictions; None makes one
            with :func:`second_order`.
        planner: of new plans; None: the task's own settings. With ``"gait"``: of strokes (``GaitOptions``);
            with ``"grip"`` only its grip counts.

    Returns:
        What happened, segment by segment, and where the object is at the end.

    Raises:
        TypeError, ValueError: for arguments that do not fit each other.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"plan: expected a Plan, got {type(plan).__name__}")
    task = model if isinstance(model, Task) else None
    own = model.model if isinstance(model, Task) else model
    if isinstance(controller, str) and controller not in get_args(Loop):
        raise ValueError(
            f"controller: expected one of {', '.join(get_args(Loop))} or a function, got {controller!r}"
        )
    if controller in ("replan", "gait") and task is None:
        raise ValueError(f"controller: {controller!r} needs the task in place of the model")
    _check_planner(controller, planner)
    given = options or TransferOptions()
    plan._check_model(own)
    mj = second_order(own, plan.object, given) if simulator is None else simulator
    if (mj.nq, mj.nv, mj.nu) != (own.nq, own.nv, own.nu):
        raise ValueError(
            f"simulator: has nq, nv, nu = {mj.nq}, {mj.nv}, {mj.nu}, the model "
            f"{own.nq}, {own.nv}, {own.nu}"
        )
    if controller == "replan":
        assert task is not None
        given = dataclasses.replace(given, carry_on=True)
        execution = _Execution(plan, own, mj, given, "mpc")
        settings = planner if isinstance(planner, RRTOptions) else task.planner or RRTOptions()
        segments, plans = _with_new_plans(execution, task, settings)
    elif controller == "gait":
        assert task is not None
        execution = _Execution(plan, own, mj, given, "grip", planner)
        segments = execution.stroke(task.replace(goal=plan.goal), planner)
        plans = len(segments)
    else:
        execution = _Execution(plan, own, mj, given, controller, planner)
        segments = [execution.run(segment) for segment in plan.segments if segment.steps > 0]
        plans = 1
    last = execution.last_q if execution.last_q is not None else plan.end
    shift, turn = execution.space.errors(last, plan.goal)
    reached = shift <= plan.position_tolerance and turn <= plan.rotation_tolerance
    return Transfer(tuple(segments), shift, turn, reached, plans)


def _check_planner(controller: object, planner: object) -> None:
    wanted = GaitOptions if controller in ("grip", "gait") else RRTOptions
    if planner is not None and not isinstance(planner, wanted):
        raise TypeError(f"planner: expected {wanted.__name__}, got {type(planner).__name__}")


def _with_new_plans(
    execution: _Execution, task: Task, planner: RRTOptions
) -> tuple[list[SegmentTransfer], int]:
    """Follow the plan, and plan anew where the object has left it."""
    space, plan = execution.space, execution.plan
    tolerance = np.array([plan.position_tolerance, plan.rotation_tolerance])
    todo = [s for s in plan.segments if s.steps > 0]
    done: list[SegmentTransfer] = []
    plans, misses = 1, 0
    # New plans aim at the middle of the tolerances: what they miss adds to what following them misses.
    near = task.replace(
        goal=plan.goal,
        position_tolerance=0.6 * tolerance[0],
        rotation_tolerance=0.6 * tolerance[1],
        start_tolerance=np.inf,
    )
    while todo and len(done) < SEGMENTS:
        segment = todo.pop(0)
        done.append(
            execution.run(segment, abandon=(ABANDON * tolerance[0], ABANDON * tolerance[1]))
        )
        q = done[-1].executed[-1]
        left = np.array(space.errors(q, plan.goal))
        if np.all(left <= tolerance * (0.6 if todo else 1.0)):
            break
        off = np.any(np.array(space.errors(q, segment.end)) > LEAVE * tolerance)
        if (off or not todo) and plans < PLANS and misses < MISSES:
            seed = execution.options.seed + plans
            todo, found = _new_plan(near, execution.measured(), planner, seed)
            plans, misses = plans + 1, 0 if found else misses + 1
    return done, plans


def _new_plan(task: Task, q: Array, planner: RRTOptions, seed: int) -> tuple[list[Segment], bool]:
    """Segments of a plan from a measured configuration, to the goal or as near to it as was found; whether the
    goal was found."""
    try:
        tree = rrt(task.replace(start=q), planner, rng=seed)
    except (SolverError, ValueError):  # the object is where no plan can begin
        return [], False
    plan = tree.plan(None if tree.reached else tree.best_node)
    return [s for s in plan.segments if s.steps > 0], tree.reached


class _Execution:
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
            model, self.space, mj, options, compensated=not plan.options.gravity_on_actuated
        )
        self.rng = np.random.default_rng(options.seed)
        self.last_q: Array | None = None
        self.follower: Follower | None = None
        self.controller: Controller | None = None
        self.hand: Hand | None = None
        if controller == "mpc":
            self.follower = self._make_follower()
        elif controller == "grip":
            gaits = planner if isinstance(planner, GaitOptions) else GaitOptions()
            length = plan.position_tolerance / plan.rotation_tolerance
            grip = Grip(model, plan.object, length, self._grip_options(gaits))
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
        hand.reset(task.start)
        done = gaiting(hand, strokes, self.options)
        self.last_q = self.plant.q
        return [
            self._measure(schedule.segment, samples, schedule.duration, 0)
            for schedule, samples in done
        ]

    def _handle(self, hand: Hand, segment: Segment) -> SegmentTransfer:
        """A segment followed by a grip, once the fingers have closed."""
        hand.reset(self._start(segment))
        hand.close()
        schedule = self._schedule(segment)
        samples = hand.follow(schedule, self.options.settle)
        self.last_q = samples[-1][2]
        return self._measure(segment, samples, schedule.duration, 0)

    def _make_follower(self) -> Follower:
        plan, options, model = self.plan, self.options, self.model
        friction = options.support_friction if self.plant.supported else 0.0
        duration, way = 0.0, 0.0
        for segment in plan.segments:
            if segment.steps > 0:
                duration += self._schedule(segment).duration
                way += self._length(segment)[0]
        task = follow_task(plan, model, friction, way / max(duration, 1e-9))
        mass = np.diag(model.mass_matrix(model.default_q))[self.space.v]
        slides = mass[~self.space.rotation]
        gravity = float(np.linalg.norm(model.parameters.gravity)) or GRAVITY
        weight = gravity * float(slides.max()) if len(slides) else np.inf
        reach = spring_reach(model, plan.start, options.press * weight)
        return Follower(task, follow_options(task, options.control_period, np.minimum(reach, 1e3)))

    def _schedule(self, segment: Segment) -> Schedule:
        return Schedule(self.model, segment, self.options.speed, self.options.timestep)

    def _start(self, segment: Segment) -> Array:
        """Where a segment begins: as planned, or with the object where it is."""
        start = np.array(segment.start)
        if self.options.carry_on and self.last_q is not None:
            start[self.space.q] = self.last_q[self.space.q]
            # Where the springs do not get the robot out of the object, it stays where it was.
            fitted, good = self._placed(start)
            return fitted if good else self.last_q
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
        model = self.model
        q = np.array(model.normalize(self.plant.q))
        limits = np.asarray(model.joint_range)
        for i, name in enumerate(model.joint_names):
            rows = model.slice_q(name)
            if rows.stop - rows.start == 1:
                q[rows] = np.clip(q[rows], *limits[i])
        return self._placed(q)[0]

    def run(self, segment: Segment, abandon: tuple[float, float] | None = None) -> SegmentTransfer:
        """Execute a segment, and stop where the object is further than ``abandon`` from its plan."""
        plant, given = self.plant, self.options
        if self.hand is not None:
            return self._handle(self.hand, segment)
        plant.reset(self._start(segment))
        schedule = self._schedule(segment)
        if self.follower is not None:
            self.follower.begin(schedule)
        samples: list[Sample] = []
        failures = 0
        u = u_last = u_next = schedule.commands[0]
        per_period = max(1, round(given.control_period / given.timestep))
        per_record = max(1, round(RECORD_PERIOD / given.timestep))
        count = int(np.ceil((schedule.duration + given.settle) / given.timestep))
        for i in range(count + 1):
            time = i * given.timestep
            if self.follower is None and self.controller is None:
                u = schedule.command(time)
            else:
                if i % per_period == 0:
                    u_last = u_next
                    u_next, failed = self._decide(schedule, time, u_last)
                    failures += failed
                share = (i % per_period + 1) / per_period
                u = (1.0 - share) * u_last + share * u_next
            if i % per_record == 0 or i == count:
                planned = schedule.configuration(time)
                samples.append((time, planned, plant.q, np.array(u)))
                if abandon is not None and np.any(
                    np.array(self.space.errors(plant.q, planned)) > abandon
                ):
                    break
            plant.advance(u)
        self.last_q = samples[-1][2]
        return self._measure(segment, samples, schedule.duration, failures)

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
        failures: int,
    ) -> SegmentTransfer:
        time = np.array([s[0] for s in samples])
        planned, executed, commands = (np.array([s[k] for s in samples]) for k in (1, 2, 3))
        errors = np.array([self.space.errors(a, b) for a, b in zip(executed, planned)])
        shift, turn = errors[time <= duration + 1e-9].mean(axis=0)
        return SegmentTransfer(
            time,
            planned,
            executed,
            commands,
            (float(shift), float(turn)),
            self._length(segment),
            (float(errors[-1, 0]), float(errors[-1, 1])),
            failures,
        )
