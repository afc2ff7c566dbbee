"""A measure of how well the robot's contacts carry an object that nothing else supports."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import ROUNDING, Array
from qdsim.cone import solve_cone_program
from qdsim.model import Model
from qdsim.planning.grasps.equilibrium import contact_rows, generalised_load
from qdsim.planning.grasps.samplers.touching import contacts_between, sides
from qdsim.planning.task.robot import object_length
from qdsim.planning.task.space import ObjectSpace

__all__ = ["CARRIES", "OFF", "PRESSING", "carrying_effort", "carrying_efforts", "hangs"]

OFF = 0.3
"""Relative error of friction coefficients and of the object's mass that grasps and plans should tolerate."""

CARRIES = 0.05
"""A grasp with a smaller effort (:func:`carrying_effort`) holds the object, with forces of about
five times its weight."""

TILT = 0.2
"""Angle by which an object may tip beyond its plan in an execution, rad: that between gravity and each of the four
tilted loads of a grasp. Searches tip objects by half of it. A released object falls back from it;
with a third, or three times as much, test_pushes.py fails."""

PRESSING = 1e-4
"""Weight of the squared contact forces relative to the squared residual wrench, both in weights of the object."""


def hangs(model: Model, q: Array, object: str) -> bool:
    """Return whether gravity acts on the object's degrees of freedom."""
    if not np.any(model.parameters.gravity):
        return False
    load = generalised_load(model, q, False)[ObjectSpace(model, object).v]
    return bool(np.abs(load).max() > ROUNDING)


def carrying_effort(model: Model, q: Array, object: str, reach: float) -> float:
    """Measure the effort of the robot alone to balance the object's weight; it is small for grasps
    that carry the object.

    The least ``sqrt(|w|^2 + 1e-4 |f|^2)`` over contact forces f within friction cones narrowed to
    0.7, where w is the unbalanced part of the object's weight, with torques divided by its length;
    both in weights. Grasps that hold score ``0.01 |f|``; others score up to 1. The result is the
    worst one over the direction of gravity and four directions 0.2 rad away from it, because two
    fingers below the centre of mass balance the object, but unstably.

    Args:
        model: the model.
        q: ``(nq,)`` the grasp.
        object: name of the object's body.
        reach: contacts of robot and object up to this far apart count, m; no others do.
    """
    return carrying_efforts(model, q, object, reach, (1.0 - OFF,))[0]


def carrying_efforts(
    model: Model, q: Array, object: str, reach: float, used: Sequence[float]
) -> list[float]:
    """Measure the effort of :func:`carrying_effort` with friction cones narrowed to several shares.

    Args:
        model, q, object, reach: as there.
        used: shares of the friction coefficients.
    """
    own, _ = sides(model, object)
    space = ObjectSpace(model, object)
    mass = np.asarray(model.parameters.body_mass)[own].sum()
    weight = float(mass * np.linalg.norm(model.parameters.gravity))
    if weight == 0.0:
        return [0.0] * len(used)
    length = object_length(model, q, space)
    units = np.where(space.rotation, length, 1.0)
    contacts = contacts_between(model, q, object, reach)
    rows, J, friction, cones = contact_rows(model, q, contacts)
    loads = [load / units for load in _tilted_loads(model, q, space, weight)]
    if not rows:
        return [float(np.linalg.norm(loads[0]))] * len(used)
    C = J[:, space.v].T / units[:, None]
    first = np.array([row == 0 for _, row in rows])
    kinds = [("lorentz" if size > 1 else "orthant", size) for size in cones]
    P, zero = C.T @ C + PRESSING * np.eye(len(rows)), np.zeros(len(rows))
    worst = []
    for share in used:
        G = np.diag(np.where(first, 1.0, 1.0 / (share * friction)))
        efforts = []
        for c in loads:
            try:
                f = solve_cone_program(P, C.T @ c, G, zero, kinds).x
            except SolverError:
                efforts.append(math.inf)
                break
            left = C @ f + c
            efforts.append(math.sqrt(float(left @ left + PRESSING * (f @ f))))
        worst.append(max(efforts))
    return worst


def _tilted_loads(model: Model, q: Array, space: ObjectSpace, weight: float) -> list[Array]:
    """Return the object's load ``(size,)``, in weights, under gravity and under four tilted
    directions of gravity."""
    p = model.parameters
    pull = np.zeros((3, space.size))
    for b in range(1, len(model.body_names)):
        if p.body_mass[b] > 0.0:
            J = np.asarray(model.jacobian(q, b, p.body_com[b]))
            pull += p.body_mass[b] * J[:3, space.v]
    down = p.gravity / np.linalg.norm(p.gravity)
    _, _, axes = np.linalg.svd(down[None])
    directions = [down]
    directions += [
        math.cos(TILT) * down + math.sin(TILT) * s * a for a in axes[1:] for s in (1, -1)
    ]
    return [np.asarray(np.linalg.norm(p.gravity) / weight * (d @ pull)) for d in directions]
