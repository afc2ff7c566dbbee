"""Executions along a plan by the clock, with a new plan where the object has left the old one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.plans.segment import Segment
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["LEAVE", "new_plan", "with_new_plans"]

LEAVE = 2.0
"""Tolerances, that an object may be off its plan where a segment begins or ends."""
WITHIN = 0.6
"""New plans aim at so much of the tolerances: what they miss adds to what following them misses."""
SEARCH = 0.5
"""s, for a motion between two grasps of a new plan, where motions have been missing before."""
SEGMENTS, PLANS = 60, 12
"""Most segments and plans of an execution."""
MISSES = 2
"""Most new plans in a row that do not find the goal: the object is out of the robot's reach."""


def with_new_plans(
    execution: Execution, task: Task, planner: RRTOptions
) -> tuple[list[SegmentTransfer], int]:
    """Follow the plan, and plan anew where the object has left it or the plan has ended short of the goal.

    Returns:
        The segments as they were executed, and how many plans they took.
    """
    space, plan = execution.space, execution.plan
    tolerance = np.array([plan.position_tolerance, plan.rotation_tolerance])
    todo = [s for s in plan.segments if s.steps > 0]
    done: list[SegmentTransfer] = []
    plans, misses = 1, 0
    while todo and len(done) < SEGMENTS:
        segment = todo.pop(0)
        done.append(execution.run(segment))
        if execution.plant.lost:
            break
        q = done[-1].executed[-1]
        left = np.array(execution.goals.errors(q))
        if np.all(left <= tolerance * (WITHIN if todo else 1.0)):
            break
        off = np.any(np.array(space.errors(q, segment.end)) > LEAVE * tolerance)
        if done[-1].outcome == "not begun":
            todo.clear()
        if (off or not todo) and plans < PLANS and misses < MISSES:
            todo, found = new_plan(execution, task, planner, execution.options.seed + plans)
            plans, misses = plans + 1, 0 if found else misses + 1
            execution.not_found = "" if found or misses < MISSES else "no plan found"
    return done, plans


def new_plan(
    execution: Execution, task: Task, planner: RRTOptions, seed: int
) -> tuple[list[Segment], bool]:
    """Segments from where everything is to the goal, or as near to it as was found, none where no plan can begin;
    whether the goal was found."""
    here: Array = execution.measured()
    near = task.towards(
        task.goal,
        start=here,
        position_tolerance=WITHIN * task.position_tolerance,
        rotation_tolerance=WITHIN * task.rotation_tolerance,
        start_tolerance=np.inf,
    )
    if execution.missing_motions and planner.motion_seconds is None:
        planner = replace(planner, motion_seconds=SEARCH)
    try:
        tree = rrt(near, planner, rng=seed)
        plan = tree.plan(None if tree.reached else tree.best_node)
    except (
        SolverError,
        ValueError,
        ImportError,
    ):  # the object is out of reach, or OMPL is not installed
        return [], False
    return [s for s in plan.segments if s.steps > 0], tree.reached
