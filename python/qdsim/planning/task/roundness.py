"""Objects with an axis of rotational symmetry: balls, cans and bottles."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import SAME, Array
from qdsim.description import Geom
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.space import ObjectSpace

__all__ = ["turn_axes", "unseen_turns"]


def turn_axes(model: Model, body: str) -> Array:
    """Find the axes through a body's origin about which any rotation leaves its collision shapes
    unchanged.

    Args:
        model: the model.
        body: name of a body that carries no others.

    Returns:
        ``(n, 3)`` unit vectors in the body's frame: three for spheres around its origin, one for
        coaxial cylinders, capsules, spheres and ellipsoids, none for others (meshes included).
    """
    index = model.body_index(body)
    none = np.empty((0, 3))
    if any(other.parent == body for other in model.description.bodies):
        return none
    colliding = np.unique(model.pair_geom)
    geoms = [model.description.geoms[i] for i in colliding if model.geom_body[i] == index]
    axes = []
    for geom in geoms:
        own = _own_axes(geom)
        if len(own) == 0:
            return none
        place = np.asarray(geom.pos, np.float64)
        if (away := float(np.linalg.norm(place))) > SAME * max(geom.size):
            axes.append(place / away)
        if len(own) == 1:
            axes.append(own[0])
    if not geoms:
        return none
    if not axes:
        return np.eye(3)
    along = all(np.linalg.norm(np.cross(axes[0], axis)) <= SAME for axis in axes)
    return axes[0][None] if along else none


def unseen_turns(model: Model, space: ObjectSpace, region: GoalRegion) -> GoalRegion | None:
    """The turns among those of a region of goals that leave the object's collision shapes unchanged.

    Args:
        model: the model.
        space: the object's coordinates.
        region: poses that count as the goal.

    Returns:
        A region without offsets; None if there are no such turns.
    """
    axes, own = turn_axes(model, space.body), region.axis
    if region.rotation == "any":
        if len(axes) == 3:
            return GoalRegion(rotation="any")
        own = tuple(axes[0].tolist()) if len(axes) == 1 and space.quaternions else None
    elif isinstance(own, str) or (own and len(axes) < 3 and not _parallel(axes, np.array(own))):
        own = None
    return GoalRegion(axis=own, symmetries=region.symmetries) if own or region.symmetries else None


def _parallel(axes: Array, axis: Array) -> bool:
    """Whether one of some unit vectors ``(n, 3)`` is parallel to another ``(3,)``."""
    return bool(np.any(np.linalg.norm(np.cross(axes, axis), axis=1) <= SAME))


def _own_axes(geom: Geom) -> Array:
    """Return the symmetry axes ``(n, 3)`` through the centre of a shape, in the body's frame."""
    frame: Array = rotation_matrix(geom.quat).T
    if geom.type == "sphere":
        return frame
    if geom.type in ("cylinder", "capsule"):
        return np.asarray(frame[2:])
    if geom.type == "ellipsoid":
        a = np.asarray(geom.size)
        equal = np.abs(a - np.roll(a, -1)) <= SAME * a.max()  # (x, y), (y, z), (z, x)
        if equal.all():
            return frame
        return np.asarray(np.roll(frame, -2, axis=0)[equal])
    return np.empty((0, 3))
