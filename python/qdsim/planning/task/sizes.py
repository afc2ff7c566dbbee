"""How large shapes and objects are."""

from __future__ import annotations

import math

import numpy as np

from qdsim.model import Model
from qdsim.planning.task.space import Array, ObjectSpace

__all__ = ["bounding_radii", "object_length"]


def object_length(model: Model, q: Array, space: ObjectSpace) -> float:
    """How far a point of the object moves per radian of its rotation at most, m: what a radian counts for.

    1 where nothing of it has a shape of finite size.
    """
    turns = space.v[space.rotation]
    furthest = 0.0
    for geom, body, radius in zip(model.description.geoms, model.geom_body, bounding_radii(model)):
        J = np.asarray(model.jacobian(q, int(body), np.asarray(geom.pos)))
        if np.any(J[3:, turns]) and math.isfinite(radius):
            lever = float(np.linalg.norm(J[:3, turns], axis=0).max())
            furthest = max(furthest, lever + float(radius))
    return furthest if furthest > 0.0 else 1.0


def bounding_radii(model: Model) -> Array:
    """``(geoms,)`` radii of spheres about the geometries' frames that contain them, m."""
    meshes = {mesh.name: mesh for mesh in model.description.meshes}
    sizes = model.parameters.geom_size
    radii = np.empty(len(sizes))
    for i, (geom, size) in enumerate(zip(model.description.geoms, sizes)):
        if geom.type == "plane":
            radii[i] = math.inf
        elif geom.mesh is not None:
            radii[i] = np.linalg.norm(meshes[geom.mesh].vertices, axis=1).max()
        elif geom.cloud is not None:
            radii[i] = np.linalg.norm(geom.cloud.points, axis=1).max() + size.max()
        elif geom.type == "box":
            radii[i] = np.linalg.norm(size)
        elif geom.type == "capsule":
            radii[i] = size[0] + size[1]
        elif geom.type == "cylinder":
            radii[i] = math.hypot(size[0], size[1])
        elif geom.type == "sphere":
            radii[i] = size[0]
        else:
            radii[i] = size.max()
    return radii
