"""Bounding radii of geometries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qdsim.description.shapes import Geom, Mesh


def bounding_radius(geom: Geom, size: Sequence[float], meshes: Mapping[str, Mesh]) -> float:
    """Radius of the bounding sphere about a geometry's frame, m; infinite for planes.

    ``size`` (3), m: the geometry's own size, or that of a changed model; ``meshes``: by name.
    """
    if geom.type == "plane":
        return math.inf
    if geom.mesh is not None:
        return float(np.linalg.norm(meshes[geom.mesh].vertices, axis=1).max())
    if geom.hfield is not None:
        return geom.hfield.radius
    if geom.cloud is not None:
        return float(np.linalg.norm(geom.cloud.points, axis=1).max() + max(size))
    if geom.type == "box":
        return math.hypot(*size)
    if geom.type == "capsule":
        return float(size[0] + size[1])
    if geom.type == "cylinder":
        return math.hypot(size[0], size[1])
    return float(size[0] if geom.type == "sphere" else max(size))
