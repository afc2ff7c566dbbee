"""Bodies that overlap at the default configuration: contacts that a model is better without."""

from __future__ import annotations

import warnings
from dataclasses import replace

from qdsim.description import Exclude, ModelWarning
from qdsim.description.radii import bounding_radius
from qdsim.model import Model

_OVERLAP = 1e-6
"""Depth in m from which bodies count as overlapping; rounding is below."""
_DEEP = 5e-2
"""Of the smaller radius: shallower links touch, as pads of a closed gripper do, and a step finds a way."""


def without_overlaps(model: Model, links_only: bool) -> Model:
    """The model with excludes for bodies that overlap at its default configuration, and a warning.

    ``links_only``: only for bodies of one mechanism, and only where they overlap by more than they could part.
    """
    # files often say zero where it is outside the limits
    contacts = model.collide(model.clamp_to_limits(model.default_q), 0.0)
    deep = contacts["dist"] < -_OVERLAP
    if links_only and deep.any():
        roots = _roots(model)
        sizes = _radii(model)
        smaller = [min(sizes[a], sizes[b]) for a, b in zip(contacts["geom_a"], contacts["geom_b"])]
        first, second = contacts["body_a"], contacts["body_b"]
        for i in deep.nonzero()[0]:
            deep[i] = (
                roots[first[i]] == roots[second[i]] and contacts["dist"][i] < -_DEEP * smaller[i]
            )
    pairs = set(zip(contacts["body_a"][deep].tolist(), contacts["body_b"][deep].tolist()))
    if not pairs:
        return model
    named = [(model.body_names[i], model.body_names[j]) for i, j in sorted(pairs)]
    listed = ", ".join(f"{first!r} and {second!r}" for first, second in named)
    warnings.warn(
        f"{model.description.name}: these bodies overlap at the default configuration and never touch "
        f"each other (exclude_overlaps): {listed}",
        ModelWarning,
        stacklevel=3,
    )
    excludes = tuple(Exclude(first, second) for first, second in named)
    return Model(replace(model.description, excludes=model.description.excludes + excludes))


def _radii(model: Model) -> list[float]:
    meshes = {mesh.name: mesh for mesh in model.description.meshes}
    return [bounding_radius(geom, geom.size, meshes) for geom in model.description.geoms]


def _roots(model: Model) -> list[int]:
    """The body on the world that carries each body; the world stands for itself."""
    index = {name: i for i, name in enumerate(model.body_names)}
    roots: list[int] = []
    for i, body in enumerate(model.description.bodies):
        parent = index[body.parent]
        roots.append(i if parent == 0 else roots[parent])
    return roots
