"""Plans outside of the model they were made with: execution in MuJoCo at small steps (CQDC §IX).

The second-order simulator gets the same bodies, shapes, frictions and stiffnesses. The robot is held by
its joint springs, critically damped, with gravity compensated, and gets the commands of the plan
stretched in time, so that no command moves faster than a given speed.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import flag, instance
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.execution import Controller, Execution, SegmentTransfer
from qdsim.planning.execution.gaiting import GaitOptions
from qdsim.planning.execution.plant import TransferOptions, second_order
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.progress import progress_bar
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

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

Loop = Literal["open", "stabilizer", "mpc", "replan", "renew", "grip", "gait"]

ABANDON = 10.0
"""With new plans a segment is given up where the object is so many times the tolerances off: in motion it lags."""
LEAVE = 2.0
"""And a plan where the object is so many times the tolerances off at the end of a segment."""
SEGMENTS = 60
PLANS = 12
"""With new plans, most segments and plans of an execution."""
MISSES = 2
"""And most new plans in a row that do not find the goal: the object is out of the robot's reach."""


@dataclasses.dataclass(frozen=True, eq=False)
class Transfer:
    """An executed plan.

    Attributes:
        segments: one entry for each segment, also for those that could not be begun; each says what became of it.
        position_error, rotation_error: of the object's last pose with respect to the plan's goal, m and rad; where
            it was lost, when that was noticed.
        reached: whether both are within the plan's tolerances.
        plans: how many plans were used, 1 where none was made on the way.
        missing_motions: changes of grasp for which no motion was found: the robot was set to the next grasp there.
        outcome: ``"reached"``; ``"lost"``: the object is further away than the robot's parts ever were on its planned
            way, twice, as where it has fallen; ``"no stroke found"``, ``"no motion found"`` (to the grasps of the
            strokes that were) or ``"no plan found"``: the execution ended for want of it; or ``"missed"``.
    """

    segments: tuple[SegmentTransfer, ...]
    position_error: float
    rotation_error: float
    reached: bool
    plans: int = 1
    missing_motions: int = 0
    outcome: str = "missed"

    @property
    def lost(self) -> bool:
        """Whether the object was gone at the end."""
        return self.outcome == "lost"

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
            f"Transfer({len(self.segments)} segments, {self.outcome}, "
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
    instance("options", options, RRTOptions)
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
    progress: bool = False,
) -> Transfer:
    """Execute a plan in MuJoCo and compare (CQDC §IX).

    Args:
        plan: the plan.
        model: the model of its task, or the task itself, which ``"replan"``, ``"renew"`` and ``"gait"`` need.
        options: speed, time step, how segments are joined.
        controller: what closes the loop, every ``options.control_period``. None or ``"open"``: the planned
            commands. ``"stabilizer"``: :class:`Stabilizer` with its own weights. ``"mpc"``: iMPC along the
            segment, ten control periods ahead, with the springs bounded by ``options.press``. ``"replan"``: as
            ``"mpc"``; where the object is further off its plan than twice the tolerances at the end of a segment,
            or ten times on the way, or the plan has ended short of the goal, a new one begins where it is; the
            object always carries on. ``"renew"``: new plans as with ``"replan"``, between them the planned commands:
            where segments mostly arrive open loop, as an arm's pushes on a table do, iMPC does more harm than
            good. ``"grip"``: a :class:`Grip` moves the object along the segment's path, from
            a preload on, whatever the commands planned were. ``"gait"``: the plan's goal alone counts: strokes
            (:class:`StrokePlanner`) from where the object is, without a break from the task's start on: the
            fingers close, move the object, let it rest, and go to the next grasp through the simulated world.
            Or a function of your own.
        simulator: a MuJoCo model with the same layout, e.g. with other masses or frictions; None makes one
            with :func:`second_order`.
        planner: of new plans; None: the task's own settings. With ``"gait"``: of strokes (``GaitOptions``);
            with ``"grip"`` only its grip counts.
        progress: show a bar that counts segments, with the object's distance to the goal (needs tqdm; without it nothing
            is shown).

    Returns:
        What happened, segment by segment, and where the object is at the end.

    Raises:
        TypeError, ValueError: for arguments that do not fit each other.
    """
    instance("plan", plan, Plan)
    instance("options", options, TransferOptions, or_none=True)
    if not (controller is None or isinstance(controller, str) or callable(controller)):
        raise TypeError(
            f"controller: expected a name, a function or None, got {type(controller).__name__}"
        )
    task = model if isinstance(model, Task) else None
    own = model.model if isinstance(model, Task) else model
    if isinstance(controller, str) and controller not in get_args(Loop):
        raise ValueError(
            f"controller: expected one of {', '.join(get_args(Loop))} or a function, got {controller!r}"
        )
    if controller in ("replan", "renew", "gait") and task is None:
        raise ValueError(f"controller: {controller!r} needs the task in place of the model")
    _check_planner(controller, planner)
    given = options or TransferOptions()
    plan._check_model(own)
    import mujoco

    instance("simulator", simulator, mujoco.MjModel, or_none=True)
    mj = second_order(own, plan.object, given) if simulator is None else simulator
    if (mj.nq, mj.nv, mj.nu) != (own.nq, own.nv, own.nu):
        raise ValueError(
            f"simulator: has nq, nv, nu = {mj.nq}, {mj.nv}, {mj.nu}, the model "
            f"{own.nq}, {own.nv}, {own.nu}"
        )
    loop: Controller | Loop | None = controller
    if controller in ("replan", "renew"):
        given = dataclasses.replace(given, carry_on=True)
        loop = "mpc" if controller == "replan" else None
    elif controller == "gait":
        loop = "grip"
    execution = Execution(plan, own, mj, given, loop, planner)
    total = None if controller in ("replan", "renew", "gait") else len(plan.segments)
    with progress_bar(flag("progress", progress), total, plan.task, "segments") as execution.show:
        segments, plans = _executed(execution, plan, task, controller, planner)
    last = execution.last_q if execution.last_q is not None else plan.end
    shift, turn = execution.space.errors(last, plan.goal)
    reached = shift <= plan.position_tolerance and turn <= plan.rotation_tolerance
    outcome = execution.not_found or "missed"
    if reached or execution.plant.lost:
        outcome = "lost" if execution.plant.lost else "reached"
    return Transfer(
        tuple(segments),
        shift,
        turn,
        reached,
        plans,
        execution.missing_motions,
        outcome,
    )


def _executed(
    execution: Execution,
    plan: Plan,
    task: Task | None,
    controller: Controller | Loop | None,
    planner: RRTOptions | GaitOptions | None,
) -> tuple[list[SegmentTransfer], int]:
    """What the execution did, segment by segment, and how many plans it took."""
    if controller in ("replan", "renew"):
        assert task is not None
        settings = planner if isinstance(planner, RRTOptions) else task.planner or RRTOptions()
        return _with_new_plans(execution, task, settings)
    if controller == "gait":
        assert task is not None
        segments = execution.stroke(task.towards(plan.goal), planner)
        return segments, len(segments)
    return [execution.run(segment) for segment in plan.segments if segment.steps > 0], 1


def _check_planner(controller: object, planner: object) -> None:
    wanted = GaitOptions if controller in ("grip", "gait") else RRTOptions
    if planner is not None and not isinstance(planner, wanted):
        raise TypeError(f"planner: expected {wanted.__name__}, got {type(planner).__name__}")


def _with_new_plans(
    execution: Execution, task: Task, planner: RRTOptions
) -> tuple[list[SegmentTransfer], int]:
    """Follow the plan, and plan anew where the object has left it."""
    space, plan = execution.space, execution.plan
    tolerance = np.array([plan.position_tolerance, plan.rotation_tolerance])
    todo = [s for s in plan.segments if s.steps > 0]
    done: list[SegmentTransfer] = []
    plans, misses = 1, 0
    # New plans aim at the middle of the tolerances: what they miss adds to what following them misses.
    near = task.towards(
        plan.goal,
        position_tolerance=0.6 * tolerance[0],
        rotation_tolerance=0.6 * tolerance[1],
        start_tolerance=np.inf,
    )
    while todo and len(done) < SEGMENTS:
        segment = todo.pop(0)
        done.append(
            execution.run(segment, abandon=(ABANDON * tolerance[0], ABANDON * tolerance[1]))
        )
        if execution.plant.lost:
            break
        q = done[-1].executed[-1]
        left = np.array(space.errors(q, plan.goal))
        if np.all(left <= tolerance * (0.6 if todo else 1.0)):
            break
        off = np.any(np.array(space.errors(q, segment.end)) > LEAVE * tolerance)
        if (off or not todo) and plans < PLANS and misses < MISSES:
            seed = execution.options.seed + plans
            todo, found = _new_plan(near, execution.measured(), planner, seed)
            plans, misses = plans + 1, 0 if found else misses + 1
            execution.not_found = "" if found or misses < MISSES else "no plan found"
    return done, plans


def _new_plan(task: Task, q: Array, planner: RRTOptions, seed: int) -> tuple[list[Segment], bool]:
    """Segments of a plan from a measured configuration, to the goal or as near to it as was found; whether the
    goal was found."""
    try:
        tree = rrt(task.towards(task.goal, start=q), planner, rng=seed)
    except (SolverError, ValueError):  # the object is where no plan can begin
        return [], False
    plan = tree.plan(None if tree.reached else tree.best_node)
    return [s for s in plan.segments if s.steps > 0], tree.reached
