"""Executions that plan anew where the object has left its plan."""

from __future__ import annotations

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.plans.segment import Segment
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["WITHIN", "new_plan", "with_new_plans"]

ABANDON = 10.0
"""With new plans a segment is given up where the object is so many times the tolerances off: in motion it lags."""
LEAVE = 2.0
"""And a plan where the object is so many times the tolerances off at the end of a segment."""
SEGMENTS = 60
PLANS = 12
"""With new plans, most segments and plans of an execution."""
MISSES = 2
"""And most new plans in a row that do not find the goal: the object is out of the robot's reach."""
WITHIN = 0.6
"""New plans aim at so much of the tolerances: what they miss adds to what following them misses."""


def with_new_plans(
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
        position_tolerance=WITHIN * tolerance[0],
        rotation_tolerance=WITHIN * tolerance[1],
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
        if np.all(left <= tolerance * (WITHIN if todo else 1.0)):
            break
        off = np.any(np.array(space.errors(q, segment.end)) > LEAVE * tolerance)
        if done[-1].outcome == "not begun":
            todo.clear()
        if (off or not todo) and plans < PLANS and misses < MISSES:
            seed = execution.options.seed + plans
            todo, found = new_plan(near, execution.measured(), planner, seed)
            plans, misses = plans + 1, 0 if found else misses + 1
            execution.not_found = "" if found or misses < MISSES else "no plan found"
    return done, plans


def new_plan(task: Task, q: Array, planner: RRTOptions, seed: int) -> tuple[list[Segment], bool]:
    """Segments of a plan from a measured configuration, to the goal or as near to it as was found; whether the
    goal was found."""
    try:
        tree = rrt(task.towards(task.goal, start=q), planner, rng=seed)
    except (SolverError, ValueError):  # the object is where no plan can begin
        return [], False
    plan = tree.plan(None if tree.reached else tree.best_node)
    return [s for s in plan.segments if s.steps > 0], tree.reached
