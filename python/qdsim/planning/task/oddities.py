"""What a task says that is possible and hardly meant: goals outside of its box, angles in degrees."""

from __future__ import annotations

import inspect
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


def warn_of_oddities(task: Task) -> None:
    """Warnings about a task's goal, box and tolerances; each names the field."""
    turns = task.space.rotation
    shift = task.space.difference(task.goal, task.start)
    for name, values in (("goal", shift), ("lower", task.lower), ("upper", task.upper)):
        large = turns & (np.abs(values) > _TURNS)
        if large.any():
            value = float(values[int(large.argmax())])
            _warn(f"{name}: {value:.4g} rad looks like degrees; angles are in radians")
    if turns.any() and task.rotation_tolerance > _TURNS:
        value = task.rotation_tolerance
        said = f"rotation_tolerance: {value:.4g} rad looks like degrees; any rotation is within it"
        _warn(said)
    slack = np.where(turns, task.rotation_tolerance, task.position_tolerance)
    beyond = [np.maximum(task.lower - d, d - task.upper) - slack for d in displacements(task)]
    worst = min(beyond, key=lambda excess: float(excess.max()))
    if worst.max() > 0.0:
        i = int(worst.argmax())
        unit = "rad" if turns[i] else "m"
        _warn(
            f"goal: outside of the box of subgoals: coordinate {i} of {task.object!r} is {shift[i]:.4g} {unit} from the "
            f"start, the box goes from {task.lower[i]:.4g} to {task.upper[i]:.4g}",
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


def _warn(text: str) -> None:
    """A warning at the line outside of the package that made the task."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("qdsim."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
