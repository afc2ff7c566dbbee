"""Bodies that overlap at the default configuration, whose contacts are excluded."""

from __future__ import annotations

import warnings
from dataclasses import replace

from qdsim.array_type import SAME
from qdsim.description import Exclude, ModelWarning
from qdsim.description.radii import bounding_radius
from qdsim.model import Model

_DEEP = 5e-2
"""Depth as a share of the smaller radius. Links that overlap less, such as closed gripper pads, can
be simulated."""
_CLOSE = 2e-3
"""Gap in m below which a rotating link would touch the base that carries it."""


def without_overlaps(model: Model, links_only: bool) -> Model:
    """Return the model with excludes for bodies that overlap at its default configuration; warn about them.

    ``links_only``: only for bodies of one mechanism, and only if they overlap deeply, or if an
    actuator rotates one on the other at a very small distance.
    """
    contacts = model.collide(model.clamp_to_limits(model.default_q), _CLOSE if links_only else 0.0)
    deep = contacts["dist"] < -SAME
    turning = _turning(model) if links_only else set()
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
    for first, second in zip(contacts["body_a"].tolist(), contacts["body_b"].tolist()):
        if turning & {(first, second), (second, first)}:
            pairs.add((first, second))
    if not pairs:
        return model
    named = [(model.body_names[i], model.body_names[j]) for i, j in sorted(pairs)]
    listed = ", ".join(f"{first!r} and {second!r}" for first, second in named)
    warnings.warn(
        f"{model.description.name}: these bodies overlap at the default configuration, so "
        f"their contacts are excluded (exclude_overlaps): {listed}",
        ModelWarning,
        stacklevel=3,
    )
    excludes = tuple(Exclude(first, second) for first, second in named)
    return Model(replace(model.description, excludes=model.description.excludes + excludes))


def _turning(model: Model) -> set[tuple[int, int]]:
    """Return pairs (parent, child) in which an actuator rotates the child by a hinge on a fixed parent.

    MuJoCo's filter of parents and children does not exclude contacts with fixed parents.
    """
    description = model.description
    if not description.parent_filter:
        return set()
    index = {name: i for i, name in enumerate(model.body_names)}
    driven = {actuator.joint for actuator in description.actuators}
    moves = [bool(body.joints) or body.mocap for body in description.bodies]
    for i, body in enumerate(description.bodies):
        moves[i] |= i > 0 and moves[index[body.parent]]
    found = set()
    for i, body in enumerate(description.bodies):
        one = body.joints[0] if len(body.joints) == 1 else None
        parent = index[body.parent]
        if one and one.type == "hinge" and one.name in driven and parent and not moves[parent]:
            found.add((parent, i))
    return found


def _radii(model: Model) -> list[float]:
    meshes = {mesh.name: mesh for mesh in model.description.meshes}
    return [bounding_radius(geom, geom.size, meshes) for geom in model.description.geoms]


def _roots(model: Model) -> list[int]:
    """Return for each body its ancestor that is a child of the world; for the world itself, the world."""
    index = {name: i for i, name in enumerate(model.body_names)}
    roots: list[int] = []
    for i, body in enumerate(model.description.bodies):
        parent = index[body.parent]
        roots.append(i if parent == 0 else roots[parent])
    return roots
