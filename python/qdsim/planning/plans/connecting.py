"""Motions for the regrasps of a plan."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.arguments import generator_of, instance
from qdsim.model import Model
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.plans.plan import Plan, model_of
from qdsim.planning.task.bounds import narrowed
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.task import Task

__all__ = ["connect_segments"]


def connect_segments(
    plan: Plan,
    model: Model | Task,
    options: MotionOptions | None = None,
    rng: int | np.random.Generator = 0,
) -> tuple[Plan, tuple[str | None, ...]]:
    """Plan a collision-free motion for each regrasp of a plan.

    Args:
        plan: the plan; motions that it has are replaced.
        model: the model of its task, or the task.
        options, rng: as for :func:`connect`.

    Returns:
        The plan with motions (paths ``(n, nq)`` in m and rad; None in ``plan.motions`` if none was
        found), and for every
        regrasp the reason why there is none, or None.

    Raises:
        ValueError: if the plan does not belong to the model.
        ImportError: if OMPL is needed and not installed.

    Searches are OMPL's RRT-Connect (Kuffner and LaValle 2000).
    """
    instance("plan", plan, Plan)
    own = model_of(plan, model)
    generator = generator_of(rng)
    model = narrowed(own, *plan.bounds(own))
    motions: list[Motion | None] = []
    reasons: list[str | None] = []
    for before, after in plan.regrasps:
        try:
            motions.append(connect(model, before, after, options, generator))
            reasons.append(None)
        except MotionError as error:
            motions.append(None)
            reasons.append(str(error))
    return dataclasses.replace(plan, motions=tuple(motions)), tuple(reasons)
