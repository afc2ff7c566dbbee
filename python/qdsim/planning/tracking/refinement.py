"""Refinement of plans (CQDC §VII-E): idle parts are removed, and each segment is optimised at a
smaller time step."""

from __future__ import annotations

import dataclasses
import math
import os

import numpy as np

from qdsim.arguments import flag, instance, path_of
from qdsim.array_type import Array
from qdsim.batches.rollouts import rollout
from qdsim.planning.grasps.placing import placed
from qdsim.planning.grasps.resting import STILL_POSITION
from qdsim.planning.plans.plan import Plan, model_of
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.refine_options import RefineOptions
from qdsim.planning.task.robot import SETTLING_STEPS, penetration
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.impc import impc
from qdsim.planning.tracking.refinement_file import load_segments, mark_of, save_segments
from qdsim.progress import away, progress_bar
from qdsim.step import Options, step

__all__ = ["SegmentRefinement", "refine", "shorten"]


@dataclasses.dataclass(frozen=True)
class SegmentRefinement:
    """Result of refining one segment of a plan.

    Attributes:
        steps_before, steps_after: its number of steps.
        error_before, error_after: error of the object at the segment's end from its pose in the
            original plan (from the goal for the last segment), m and rad: with the plan's commands
            at the small time step, and with the optimised ones.
        optimised: whether the optimised commands were better and were kept.
    """

    steps_before: int
    steps_after: int
    error_before: tuple[float, float]
    error_after: tuple[float, float]
    optimised: bool


def shorten(plan: Plan, space: ObjectSpace) -> Plan:
    """Remove idle ends of segments, and segments in which the object rests, from a plan.

    Motion of the object of at most 1 mm and 1 mrad counts as rest. A regrasp before a removed
    segment is merged with the one after it. Motions between grasps are removed, because their ends
    change.

    Args:
        plan: the plan.
        space: the object's coordinates, ``task.space``.

    Raises:
        TypeError: if an argument has the wrong type.
    """
    instance("plan", plan, Plan)
    instance("space", space, ObjectSpace)
    counts = [_active_steps(segment, space) for segment in plan.segments]
    kept = [segment.cut(n) for segment, n in zip(plan.segments, counts) if n > 0]
    return dataclasses.replace(plan, segments=tuple(kept) or plan.segments[:1], motions=())


def refine(
    plan: Plan,
    task: Task,
    options: RefineOptions | None = None,
    *,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[Plan, tuple[SegmentRefinement, ...]]:
    """Shorten a plan and optimise each of its segments at a smaller time step (CQDC §VII-E).

    The first guess of a segment is the plan's own commands, stretched over the small steps. A
    segment begins where the previous one left the object, with the robot in the planned grasp,
    moved out of the object if it penetrates. Its goal is the object's pose at its end in the plan;
    for the last segment, the task's goal. The optimised commands are kept if they end nearer to
    this goal.

    Args:
        plan: a plan for the task.
        task: the task.
        options: time step, settings of the optimisation.
        progress: show a bar that counts segments, with the error at the end of the last one
            (without tqdm a line, in terminals).
        checkpoint: a file in which finished segments are saved after each segment. If the file
            exists, the refinement continues from it; the result is bitwise identical to that of an
            uninterrupted one.

    Returns:
        The refined plan, whose replay with its own options is bitwise identical and which has no
        motions, and the result of each segment. If the optimisation fails, the plan may miss the
        goal; ``plan.check`` reports this.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if plan and task do not fit each other, or the checkpoint belongs to another
            plan, task or other options.
        SolverError: if a segment's first guess cannot be rolled out.
    """
    instance("plan", plan, Plan)
    instance("task", task, Task)
    instance("options", options, RefineOptions, or_none=True)
    if checkpoint is not None:
        checkpoint = path_of("checkpoint", checkpoint)
    given = options or RefineOptions()
    model_of(plan, task)
    short = shorten(plan, task.space)
    h = given.h if given.h is not None else task.options.h / 4.0
    step_options = plan.options.replace(h=h, kappa=None)
    segments: list[Segment] = []
    reports: list[SegmentRefinement] = []
    mark = ""
    if checkpoint is not None:
        settings = _settings(task, given)
        mark = mark_of(plan, task, given, settings)
        segments, known = load_segments(checkpoint, plan, task, given, settings)
        if len(segments) > len(short.segments):
            raise ValueError(
                f"checkpoint: {checkpoint}: not one of this refinement: it has {len(segments)} segments, "
                f"the plan {len(short.segments)}"
            )
        reports = [SegmentRefinement(**values) for values in known]
    count = len(short.segments)
    with progress_bar(flag("progress", progress), count, plan.task, "segments") as show:
        for i in range(len(segments), count):
            q = np.array(segments[-1].end if segments else short.start)
            refined, report = _refined(short, i, q, task, step_options, given)
            segments.append(refined)
            reports.append(report)
            if checkpoint is not None:
                save_segments(checkpoint, mark, segments, reports)
            show(i + 1, away(*report.error_after))
    refined_plan = dataclasses.replace(
        plan,
        options=step_options,
        segments=tuple(segments),
        motions=(),
        command_bounds=task.bounds_as_numbers,
    )
    return refined_plan.with_forces(task.model), tuple(reports)


def _refined(
    plan: Plan, i: int, q: Array, task: Task, options: Options, given: RefineOptions
) -> tuple[Segment, SegmentRefinement]:
    """Optimise segment ``i`` of a plan from ``q``, the end of the previous refined segment."""
    segment, last = plan.segments[i], i + 1 == len(plan.segments)
    if i > 0:
        q = _regrasped(task, options, segment.start, q)
    aim = task if last else task.towards(segment.end, goal_region=None)
    if segment.steps == 0:  # the goal is at the beginning of the segment
        refined, report = _at_rest(aim, q)
    else:
        commands = _stretched(task, segment, plan.options.h, options.h, given)
        refined, report = _optimise(aim, options, q, commands, given)
    if not last:
        refined = _settled(task, options, refined, plan.contact_tolerance)
    return refined, dataclasses.replace(
        report,
        steps_before=segment.steps,
        steps_after=refined.steps,
        error_after=aim.errors(refined.end),
    )


def _active_steps(segment: Segment, space: ObjectSpace) -> int:
    """Return the number of steps after which the object stays where the segment leaves it."""
    for count in range(segment.steps + 1):
        if max(space.errors(segment.configurations[count], segment.end)) <= STILL_POSITION:
            return count
    return segment.steps


def _regrasped(task: Task, options: Options, grasp: Array, q: Array) -> Array:
    """Return the robot in the planned grasp with the object as in ``q``, without penetration."""
    there = np.array(grasp)
    there[task.space.q] = q[task.space.q]
    fitted, _ = placed(task.model, task.object, there, options)
    fitted[task.space.q] = q[task.space.q]
    return fitted


def _settled(task: Task, options: Options, segment: Segment, tolerance: float) -> Segment:
    """Hold the last command of a segment until no penetration exceeds the tolerance of regrasps."""
    inputs, path = list(segment.inputs), list(segment.configurations)
    while (
        penetration(task.model, path[-1]) > tolerance
        and len(inputs) < segment.steps + SETTLING_STEPS
    ):
        path.append(np.array(step(task.model, path[-1], inputs[-1], options).q_next))
        inputs.append(inputs[-1])
    return Segment(np.array(inputs), np.array(path), np.array([len(inputs)], dtype=np.int64))


def _stretched(
    task: Task, segment: Segment, h_plan: float, h: float, options: RefineOptions
) -> Array:
    """Interpolate the segment's commands linearly over its small steps."""
    per_step = max(1, round(h_plan / h))
    count = min(per_step * segment.steps, max(options.most_steps, segment.steps))
    first = task.hold(segment.start)
    knots = np.vstack((first, segment.inputs))
    at = np.linspace(0.0, segment.steps, count + 1)[1:]
    columns = [np.interp(at, np.arange(segment.steps + 1), column) for column in knots.T]
    return np.asarray(np.clip(np.stack(columns, axis=1), *task.command_bounds))


def _optimise(
    task: Task, options: Options, q: Array, commands: Array, given: RefineOptions
) -> tuple[Segment, SegmentRefinement]:
    guess = rollout(task.model, q, commands, options).q
    before = task.errors(guess[-1])
    settings = _settings(task, given).replace(horizon=len(commands), h=options.h)
    part = task.towards(
        task.goal,
        start=q,
        options=options,
        start_tolerance=max(task.start_tolerance, 2.0 * penetration(task.model, q) + 1e-6),
        impc=settings,
    )
    result = impc(part, settings, u=commands)
    best, best_q = result.u, result.q
    after = task.errors(best_q[-1])
    better = _size(task, after) <= _size(task, before)
    if not better:
        best, best_q, after = commands, guess, before
    segment = Segment(best, best_q, np.array([len(best)], dtype=np.int64))
    return segment, SegmentRefinement(0, len(best), before, after, better)


def _at_rest(task: Task, q: Array) -> tuple[Segment, SegmentRefinement]:
    """Return a segment without steps at ``q``."""
    error = task.errors(q)
    none = np.empty((0, task.model.nu))
    segment = Segment(none, q[None].copy(), np.zeros(0, dtype=np.int64))
    return segment, SegmentRefinement(0, 0, error, error, False)


def _settings(task: Task, options: RefineOptions) -> ImpcOptions:
    return options.impc or task.impc or ImpcOptions(iterations=60, patience=10)


def _size(task: Task, error: tuple[float, float]) -> float:
    return math.hypot(error[0], task.length * error[1])
