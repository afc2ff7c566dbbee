"""What a task says that is possible and hardly meant: goals outside of its box, angles in degrees."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from qdsim.planning.task.space import Array

if TYPE_CHECKING:
    from qdsim.planning.task.task import Task

__all__ = ["displacements", "warn_of_oddities"]

_TURNS = 4.0 * math.pi
"""rad; larger angles are more likely degrees."""


def warn_of_oddities(task: Task, stacklevel: int) -> None:
    """Warnings about a task's goal, box and tolerances; each names the field."""
    turns = task.space.rotation
    shift = task.space.difference(task.goal, task.start)
    for name, values in (("goal", shift), ("lower", task.lower), ("upper", task.upper)):
        large = turns & (np.abs(values) > _TURNS)
        if large.any():
            value = float(values[int(large.argmax())])
            _warn(f"{name}: {value:.4g} rad looks like degrees; angles are in radians", stacklevel)
    if turns.any() and task.rotation_tolerance > _TURNS:
        value = task.rotation_tolerance
        said = f"rotation_tolerance: {value:.4g} rad looks like degrees; any rotation is within it"
        _warn(said, stacklevel)
    slack = np.where(turns, task.rotation_tolerance, task.position_tolerance)
    beyond = [np.maximum(task.lower - d, d - task.upper) - slack for d in displacements(task)]
    worst = min(beyond, key=lambda excess: float(excess.max()))
    if worst.max() > 0.0:
        i = int(worst.argmax())
        unit = "rad" if turns[i] else "m"
        _warn(
            f"goal: outside of the box of subgoals: coordinate {i} of {task.object!r} is {shift[i]:.4g} {unit} from the "
            f"start, the box goes from {task.lower[i]:.4g} to {task.upper[i]:.4g}",
            stacklevel,
        )


def displacements(task: Task) -> list[Array]:
    """Displacements ``(size,)`` from start to goal: two where half a turn about an axis may count either way."""
    found = [task.space.difference(task.goal, task.start)]
    for row in task.space.rotation_vectors:
        other = []
        for d in found:
            angle = float(np.linalg.norm(d[row : row + 3]))
            if angle > 0.5 * math.pi:
                back = d.copy()
                back[row : row + 3] *= 1.0 - 2.0 * math.pi / angle
                other.append(back)
        found += other
    return found


def _warn(text: str, stacklevel: int) -> None:
    warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)
