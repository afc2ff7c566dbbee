"""Sizes that settings are derived from: how far joints reach, how heavy an object is."""

from __future__ import annotations

import numpy as np

from qdsim.model import Model
from qdsim.planning.task.space import Array, ObjectSpace

__all__ = ["GRAVITY", "levers", "object_size", "object_weight"]

GRAVITY = 9.81
"""m/s2, where the model has none: of objects on a plane that is not part of it."""


def levers(model: Model, q: Array) -> Array:
    """The longest lever of each actuator's joint ``(nu,)`` in a configuration, over the middles of all geometries:
    metres a radian, 1 for slides."""
    held = np.asarray(model.actuated_v)
    longest = np.zeros(len(held))
    for body, geom in zip(model.geom_body, model.description.geoms):
        if body == 0:
            continue
        name = model.body_names[int(body)]
        columns = np.asarray(model.jacobian(q, name, np.asarray(geom.pos)))[:3][:, held]
        longest = np.maximum(longest, np.linalg.norm(columns, axis=0))
    return longest


def object_size(model: Model, space: ObjectSpace) -> float:
    """m, largest radius of gyration of an object; 0 for one that does not turn or does not shift."""
    mass = np.diag(model.mass_matrix(model.default_q))[space.v]
    slides, turns = mass[~space.rotation], mass[space.rotation]
    if len(slides) == 0 or len(turns) == 0:
        return 0.0
    return float(np.sqrt(turns.max() / slides.max()))


def object_weight(model: Model, space: ObjectSpace, length: float) -> float:
    """N, of an object; of one that only turns, ``length`` (m) makes its inertia a mass; by standard gravity where
    the model has none."""
    mass = np.diag(model.mass_matrix(model.default_q))[space.v]
    slides = mass[~space.rotation]
    gravity = float(np.linalg.norm(model.parameters.gravity)) or GRAVITY
    return gravity * float(np.max(slides if len(slides) else mass / length**2))
