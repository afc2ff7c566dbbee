"""Execution of plans in a simulator at small time steps (CQDC §IX).

The second-order simulator gets the same bodies, shapes, friction coefficients and stiffnesses. The
robot is held by its critically damped joint springs, with gravity compensated. Commands are
stretched in time so that none moves faster than a given speed.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qdsim.arguments import flag, instance
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.controller_names import EXECUTED, Loop, chosen_word, mover_of, word_of
from qdsim.planning.execution.executed_motion import ExecutedMotion
from qdsim.planning.execution.execution import Execution, SegmentTransfer, within
from qdsim.planning.execution.executor import Executor
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.executor_report import ExecutorState
from qdsim.planning.execution.loops.steering import Controller
from qdsim.planning.execution.plant import second_order
from qdsim.planning.execution.routes import Planner
from qdsim.planning.execution.simulators import simulator_of, world_in_words
from qdsim.planning.execution.strokes import GaitOptions
from qdsim.planning.plans.plan import Plan, model_of
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.progress import Update, away, progress_bar

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


@dataclasses.dataclass(frozen=True, eq=False)
class Transfer:
    """Result of :func:`transfer`: how far the object ended from the goal, and how each segment went.

    Attributes:
        segments: One entry per segment, also for segments that could not be begun, or per attempt
            of an :class:`Executor`.
        position_error, rotation_error: Error of the object's last pose from the plan's goal, m and
            rad; if the object was lost, at the time when this was detected.
        reached: Whether an execution from start to end brought both errors within the plan's
            tolerances.
        motion: Motion of robot and object, from the beginning to the end.
        plans: Number of plans used; 1 if none was made during the execution.
        missing_motions: Number of regrasps for which no motion was found: the execution ended
            there, or replanned.
        outcome: ``"reached"``; ``"missed"``; ``"lost"``: the object is more than twice as far away
            as any link of the robot ever is on the planned path, for example because it has fallen;
            ``"no stroke found"``, ``"no motion found"`` (to the grasps of the strokes) or ``"no
            plan found"``: the execution ended without one; ``"out of time"`` or ``"no answer"``, as
            for an :class:`Executor`; ``"measured"``: segments were executed separately
            (``carry_on=False``).
        tolerances: The plan's tolerances, m and rad.
        way: How the plan was executed: from start to end or segment by segment, by which
            controller, and, for ``"auto"``, why.
        controller: Name of the controller, or of the given function.
        world: The simulator and its contacts, in words.
    """

    segments: tuple[SegmentTransfer, ...]
    position_error: float
    rotation_error: float
    reached: bool
    motion: ExecutedMotion
    plans: int = 1
    missing_motions: int = 0
    outcome: str = "missed"
    tolerances: tuple[float, float] = (math.nan, math.nan)
    way: str = ""
    controller: str = ""
    world: str = ""

    @property
    def lost(self) -> bool:
        """Whether the object was lost at the end."""
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
        ended = Counter(segment.outcome for segment in self.segments)
        followed = ", ".join(f"{count} {word}" for word, count in ended.items()) or "none"
        plans = f", {self.plans} plans" if self.plans > 1 else ""
        far = f"{1e3 * self.position_error:.3g} mm, {math.degrees(self.rotation_error):.3g} deg"
        most = f"{1e3 * self.tolerances[0]:.3g} mm, {math.degrees(self.tolerances[1]):.3g} deg"
        last = "its last segment ends" if self.outcome == "measured" else "the object ends"
        return (
            f"Transfer({self.outcome}: {last} {far} from the goal, tolerances {most}; {self.way}, in {self.world}; "
            f"segments: {followed}{plans})"
        )


def gentle(options: RRTOptions) -> RRTOptions:
    """Change planner settings so that a second-order simulation can follow the plans.

    Steps are a quarter as long, edges have correspondingly more steps, and no squeeze is kept from
    one edge to the next. Without this, an edge may command the robot's springs far into the object.
    In the quasi-dynamic model an object between two fingers bears any squeeze; in a simulation with
    velocities such forces shoot it out.

    Args:
        options: The settings to start from, for example ``task.planner``; all others are kept.
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
    planner: RRTOptions | GaitOptions | Planner | None = None,
    progress: bool = False,
) -> Transfer:
    """Execute a plan in a second-order simulator, MuJoCo or the package's own, and report where the
    object ends.

    The execution runs from start to end: the object stays where each segment leaves it, and the
    robot moves from grasp to grasp by collision-free motions. With
    ``TransferOptions(carry_on=False)`` every segment begins in its planned state instead (the
    measure of CQDC, section IX).

    Args:
        plan: the plan.
        model: the model of its task, or the task itself, which ``"replan"``, ``"renew"`` and
            ``"gait"`` need.
        options: speed, time step, how segments are joined.
        controller: closes the loop every ``options.control_period``. Controllers that follow the
            plan's segments by the clock: None or ``"open"``: the planned commands.
            ``"stabilizer"``: :class:`Stabilizer` with its default weights. ``"mpc"``: iMPC along
            the segment, ten control periods ahead, with spring forces bounded by ``options.press``.
            ``"grip"``: a :class:`Grip` moves the object along the segment's path, whatever the
            planned commands are. A function ``controller(q, u_plan, q_plan, u_last) -> u``.
            Controllers of an :class:`Executor`: ``"auto"``: all that it has, in an order chosen for
            the task (for a model without a task ``"mpc"``, for separate segments ``"open"``).
            ``"replan"``: iMPC, then the planned commands; ``"renew"``: the planned commands, then
            iMPC; both make new plans if the object has left the old one. ``"gait"``: strokes
            (:class:`StrokePlanner`) from the present pose of the object to the goal, independent of
            the plan's segments.
        simulator: None or ``"mujoco"``: MuJoCo, with the model of :func:`second_order`; or a MuJoCo
            model with the same layout, for example with other masses or friction coefficients.
            ``"qdsim"``: the package's own second-order step, with rigid contacts whatever
            ``options.contacts`` is; or `DynamicOptions` of it, whose h is replaced by
            ``options.timestep``. The report is the same.
        planner: settings of new plans, or a function that makes them, as for an
            :class:`Executor`; None: those of the task. With ``"gait"``: settings of strokes
            (``GaitOptions``), of which ``"grip"`` uses only the grip.
        progress: show a bar that counts segments, with the object's distance to the goal (without
            tqdm a line, in terminals).

    Returns:
        The outcome, the error of every segment, and the final error of the object.

    Raises:
        TypeError, ValueError: if arguments are invalid or do not fit together.
        ImportError: if a motion between grasps has to go around an obstacle and OMPL is not
            installed (extra ``planning``).
        SolverError: if a step of the package's own simulator fails.
    """
    instance("plan", plan, Plan)
    given = instance("options", options, TransferOptions, or_none=True) or TransferOptions()
    task, word = model if isinstance(model, Task) else None, word_of(controller)
    strokes, why = controller in ("gait", "grip"), ""
    if controller == "auto":
        strokes = isinstance(planner, GaitOptions)
        controller, why = chosen_word(task, given)
        word = controller
    if strokes or not callable(planner):
        instance("planner", planner, GaitOptions if strokes else RRTOptions, or_none=True)
    own = model_of(plan, model)
    by_executor = isinstance(controller, str) and word in EXECUTED
    if task is None and by_executor:
        raise ValueError(f"controller: {word!r} needs the task in place of the model")
    total = None if by_executor else len(plan.segments)
    with progress_bar(flag("progress", progress), total, plan.task, "segments") as show:
        if by_executor:
            assert task is not None
            told = _executed(plan, task, given, word, simulator, planner, show)
        else:
            execution = Execution(
                plan, own, simulator_of(own, plan.object, given, simulator), given
            )
            execution.show = show
            gaits = planner if isinstance(planner, GaitOptions) else GaitOptions()
            mover_of(execution, controller, gaits)
            told = _told(execution, [execution.run(s) for s in plan.segments if s.steps > 0])
            way = _way_in_words(given, told.outcome, controller, why)
            told = dataclasses.replace(told, way=way)
    return dataclasses.replace(told, controller=word, world=world_in_words(given, simulator))


def _executed(
    plan: Plan,
    task: Task,
    options: TransferOptions,
    word: str,
    simulator: Any,
    planner: RRTOptions | GaitOptions | Planner | None,
    show: Update,
) -> Transfer:
    """Execute to the plan's goal with an :class:`Executor`."""
    if word == "gait" and task.sampler is None:
        raise ValueError("task: strokes need a sampler of grasps")
    how = ExecutorOptions(hold=options.settle, seed=options.seed, **EXECUTED[word])
    plant = "mujoco" if simulator is None else simulator
    moves = 0

    def watch(state: ExecutorState) -> None:
        nonlocal moves
        moves += state.doing == "move"
        show(moves, away(*state.error))

    found = Executor(
        task, plan, plant, world=options, options=how, planner=planner, watch=watch
    ).run()
    missing = sum(edge.ended.startswith("no motion found") for edge in found.edges)
    plans = len(found.segments) if word == "gait" else 1 + found.plans
    return Transfer(
        found.segments,
        found.position_error,
        found.rotation_error,
        found.reached,
        found.motion,
        plans,
        missing,
        found.outcome,
        found.tolerances,
        f"from start to end, {word!r}, {found.why}",
    )


def _way_in_words(options: TransferOptions, outcome: str, controller: object, why: str) -> str:
    """Describe whether segments were executed in a row or separately, by which loop, and why by this loop."""
    word = word_of(controller)
    loop = "open loop" if word == "open" else f"loop {word if callable(controller) else repr(word)}"
    loop += f" (chosen: {why})" if why else ""
    if outcome == "measured":
        return f"each segment from where it was planned to begin, {loop}"
    set_there = "" if options.motions else ", the robot set to each grasp"
    return f"from start to end, {loop}{set_there}"


def _told(execution: Execution, segments: list[SegmentTransfer]) -> Transfer:
    """Return the result of an execution along the plan's segments."""
    plan = execution.plan
    last = execution.last_q if execution.last_q is not None else plan.end
    shift, turn = errors = execution.goals.errors(last)
    measured = not execution.options.carry_on and len(segments) > 1
    near = within(np.array(errors), plan)
    outcome = execution.not_found or "missed"
    if measured or near:
        outcome = "measured" if measured else "reached"
    if execution.plant.lost:
        outcome = "lost"
    reached = outcome == "reached"
    tolerances = (plan.position_tolerance, plan.rotation_tolerance)
    missing = execution.missing_motions
    motion = execution.recorder.motion()
    return Transfer(tuple(segments), shift, turn, reached, motion, 1, missing, outcome, tolerances)
