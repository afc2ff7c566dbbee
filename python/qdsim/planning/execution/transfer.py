"""Plans outside of the model they were made with: execution in a simulator at small steps (CQDC §IX).

The second-order simulator gets the same bodies, shapes, frictions and stiffnesses. The robot is held by
its joint springs, critically damped, with gravity compensated, and gets the commands of the plan
stretched in time, so that no command moves faster than a given speed.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np

from qdsim.arguments import flag, instance, one_of
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.execution.loops.tracking import Controller
from qdsim.planning.execution.own_plant import judging_options
from qdsim.planning.execution.plant import second_order
from qdsim.planning.execution.strokes import GaitOptions
from qdsim.planning.execution.transfer_options import TransferOptions
from qdsim.planning.execution.ways import way_of
from qdsim.planning.plans.plan import Plan, model_of
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.progress import progress_bar

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
    simulator: mujoco.MjModel | Literal["mujoco", "qdsim"] | DynamicOptions | None = None,
    planner: RRTOptions | GaitOptions | None = None,
    progress: bool = False,
) -> Transfer:
    """Execute a plan in a second-order simulator, MuJoCo or the package's own, and compare (CQDC §IX).

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
        simulator: None or ``"mujoco"``: MuJoCo, with the model of :func:`second_order`; or a MuJoCo model with the same
            layout, e.g. with other masses or frictions. ``"qdsim"``: the package's own second-order step, with rigid
            contacts and no limit to how stiff they are, whatever ``options.contacts`` says; or `DynamicOptions` of it,
            of which h is ``options.timestep``. The report is the same.
        planner: of new plans; None: the task's own settings. With ``"gait"``: of strokes (``GaitOptions``);
            with ``"grip"`` only its grip counts.
        progress: show a bar that counts segments, with the object's distance to the goal (needs tqdm; without it
            nothing is shown).

    Returns:
        What happened, segment by segment, and where the object is at the end.

    Raises:
        TypeError, ValueError: for arguments that do not fit each other.
        SolverError: of a step of the package's own simulator.
    """
    instance("plan", plan, Plan)
    instance("options", options, TransferOptions, or_none=True)
    way = way_of(controller)
    task = model if isinstance(model, Task) else None
    if way.needs_task and task is None:
        raise ValueError(f"controller: {controller!r} needs the task in place of the model")
    instance("planner", planner, way.planner, or_none=True)
    own = model_of(plan, model)
    given = dataclasses.replace(options or TransferOptions(), **way.options)
    execution = Execution(plan, own, _simulator(own, plan, given, simulator), given)
    execution.loop = way.loop(execution, planner)
    total = len(plan.segments) if way.counts else None
    with progress_bar(flag("progress", progress), total, plan.task, "segments") as execution.show:
        segments, plans = way.run(execution, task, planner)
    return _told(execution, segments, plans)


def _simulator(
    model: Model, plan: Plan, options: TransferOptions, given: object
) -> mujoco.MjModel | DynamicOptions:
    """The model in MuJoCo, given or made, or how the own step steps it."""
    if isinstance(given, DynamicOptions):
        return judging_options(options, given)
    if isinstance(given, str):
        if one_of("simulator", given, ("mujoco", "qdsim")) == "qdsim":
            return judging_options(options, None)
        given = None
    import mujoco

    known = instance("simulator", given, mujoco.MjModel, or_none=True)
    mj = second_order(model, plan.object, options) if known is None else known
    if (mj.nq, mj.nv, mj.nu) != (model.nq, model.nv, model.nu):
        raise ValueError(
            f"simulator: has nq, nv, nu = {mj.nq}, {mj.nv}, {mj.nu}, the model "
            f"{model.nq}, {model.nv}, {model.nu}"
        )
    return mj


def _told(execution: Execution, segments: list[SegmentTransfer], plans: int) -> Transfer:
    """What became of an execution."""
    plan = execution.plan
    last = execution.last_q if execution.last_q is not None else plan.end
    shift, turn = execution.space.errors(last, plan.goal)
    reached = shift <= plan.position_tolerance and turn <= plan.rotation_tolerance
    outcome = execution.not_found or "missed"
    if reached or execution.plant.lost:
        outcome = "lost" if execution.plant.lost else "reached"
    return Transfer(
        tuple(segments), shift, turn, reached, plans, execution.missing_motions, outcome
    )
