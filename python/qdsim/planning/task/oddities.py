"""Warnings for valid but suspicious tasks: goals outside the task's box or inside a wall, angles in
degrees."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.space import ObjectSpace

__all__ = ["LARGE_ANGLE", "beyond_box", "depth_in_walls", "warn_of_oddities", "warn_of_walls"]

LARGE_ANGLE = 4.0 * math.pi
"""Larger angles, rad, are probably in degrees."""


def warn_of_oddities(
    space: ObjectSpace,
    ends: tuple[Array, Array],
    box: tuple[Array, Array],
    tolerances: tuple[float, float],
) -> None:
    """Warn of suspicious goals, boxes and tolerances of a task; each warning names the field.

    Args:
        space: the object's coordinates.
        ends: start and goal ``(nq,)``.
        box: lower and upper displacements ``(size,)`` of subgoals.
        tolerances: m and rad.
    """
    turns, (lower, upper) = space.rotation, box
    shift = space.difference(ends[1], ends[0])
    for name, values in (("goal", shift), ("lower", lower), ("upper", upper)):
        large = turns & (np.abs(values) > LARGE_ANGLE)
        if large.any():
            value = float(values[int(large.argmax())])
            _warn(f"{name}: {value:.4g} rad looks like degrees; angles are in radians")
    if turns.any() and tolerances[1] > LARGE_ANGLE:
        said = f"rotation_tolerance: {tolerances[1]:.4g} rad looks like degrees; any rotation is within it"
        _warn(said)
    slack = np.where(turns, tolerances[1], tolerances[0])
    worst = beyond_box(space, shift, box, slack)
    if worst.max() > 0.0:
        i = int(worst.argmax())
        unit = "rad" if turns[i] else "m"
        _warn(
            f"goal: outside the box of subgoals: coordinate {i} of {space.body!r} is {shift[i]:.4g} {unit} from the "
            f"start, the box goes from {lower[i]:.4g} to {upper[i]:.4g}",
        )


def warn_of_walls(model: Model, space: ObjectSpace, goal: Array, tolerance: float) -> None:
    """Warn if the object at its goal penetrates a static geometry by more than the position
    tolerance.

    Args:
        model: the model.
        space: the object's coordinates.
        goal: ``(nq,)`` the only goal.
        tolerance: m.
    """
    depth, wall = depth_in_walls(model, space, goal)
    if depth > tolerance:
        _warn(
            f"goal: {space.body!r} would penetrate {wall!r} by {depth:.3g} m there, "
            f"more than position_tolerance {tolerance:g}"
        )


def depth_in_walls(model: Model, space: ObjectSpace, q: Array) -> tuple[float, str]:
    """Return the penetration of the object into a static geometry in ``q`` ``(nq,)``, m, and the
    name of its body; 0 for none."""
    for contact in np.sort(model.collide(q, 0.0), order="dist"):
        pair = contact["body_a"], contact["body_b"]
        moved = [np.any(model.jacobian(q, int(b), np.zeros(3)), axis=0) for b in pair]
        still = [not m.any() for m in moved]
        if still[0] != still[1] and moved[still.index(False)][space.v].any():
            depth = max(-float(contact["dist"]), 0.0)
            return depth, model.body_names[int(pair[still.index(True)])]
    return 0.0, ""


def beyond_box(space: ObjectSpace, shift: Array, box: tuple[Array, Array], slack: Array) -> Array:
    """Return by how much a displacement of the object is outside of a box, in each coordinate.

    Of all displacements to the same pose, the one that is least outside counts.

    Args:
        space: the object's coordinates.
        shift: displacement ``(size,)``, m and rad.
        box: lower and upper ends ``(size,)``.
        slack: what counts as inside ``(size,)``.

    Returns:
        ``(size,)``, at most 0 where it is inside.
    """
    beyond = [np.maximum(box[0] - d, d - box[1]) - slack for d in _displacements(space, shift)]
    return min(beyond, key=lambda excess: float(excess.max()))


def _displacements(space: ObjectSpace, shift: Array) -> list[Array]:
    """Return all displacements ``(size,)`` to the same pose: large rotations are possible in both directions."""
    found = [shift]
    for row in space.rotation_vectors:
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
    """Warn at the line outside of the package that created the task."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("qdsim."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
