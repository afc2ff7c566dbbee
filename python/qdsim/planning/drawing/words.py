"""Texts of pictures and pages for a configuration."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.task.goal_set import GoalSet

__all__ = ["left_text"]


def left_text(goals: GoalSet, q: Array) -> str:
    """Return the distance of an object in ``q`` ``(nq,)`` from its goal, as text."""
    shift, turn = goals.errors(q)
    space = goals.space
    length = f"{100 * shift:.0f} cm" if shift > 0.095 else f"{1000 * shift:.0f} mm"
    parts = [f"{np.degrees(turn):.0f}°"] * bool(space.rotation.any())
    parts += [length] * (not space.rotation.all())
    return f"{' and '.join(parts)} to go"
