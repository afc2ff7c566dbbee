"""What pictures and pages say of a configuration."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.task.space import ObjectSpace

__all__ = ["left_text"]


def left_text(space: ObjectSpace, q: Array, goal: Array) -> str:
    """How far an object is from where a goal ``(nq,)`` has it."""
    shift, turn = space.errors(q, goal)
    length = f"{100 * shift:.0f} cm" if shift > 0.095 else f"{1000 * shift:.0f} mm"
    parts = [f"{np.degrees(turn):.0f}°"] * bool(space.rotation.any())
    parts += [length] * (not space.rotation.all())
    return f"{' and '.join(parts)} to go"
