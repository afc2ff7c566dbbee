"""Inverse kinematics for a contact point: a point of a link goes to a place, its axis to a direction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import instance, integer, number, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.least_squares import least_squares_in_box
from qdsim.planning.task.robot import joint_limits, room

__all__ = ["PointReach", "reach_point"]

STAGNATION = 5
"""Steps within which the squared error has to fall by a tenth: near a solution it falls by powers of
ten, far from one it creeps along limits towards places out of reach.
"""

UNDAMPED = 1e-6
"""Up to this damping a step goes to the minimum of its least squares. If it moves the point by less than a
tenth of the tolerance, the place is out of reach: a larger damping would only creep there.
"""

MOST_DAMPED = 1e6


@dataclasses.dataclass(frozen=True, eq=False)
class PointReach:
    """What :func:`reach_point` found.

    Attributes:
        q: ``(nq,)`` configuration within the joint limits, the nearest one found.
        success: whether both errors are within their tolerances.
        position_error: m, from the point to its target.
        direction_error: rad, between the axis and its direction; 0 if none was asked for.
        iterations: linearisations made.
    """

    q: Array
    success: bool
    position_error: float
    direction_error: float
    iterations: int


def reach_point(
    model: Model,
    q: ArrayLike,
    body: str,
    point: ArrayLike,
    target: ArrayLike,
    *,
    axis: ArrayLike | None = None,
    direction: ArrayLike | None = None,
    actuators: Sequence[str] | None = None,
    length: float = 0.1,
    tolerance: float = 1e-6,
    angle_tolerance: float = 1e-4,
    iteration_limit: int = 200,
) -> PointReach:
    """Move actuated joints until a body's point is at a target, within the joint limits.

    Levenberg and Marquardt's damped Gauss-Newton method on ``Model.jacobian``; the limits are bounds
    of every least squares problem, so that other joints take over from one that is stopped. It finds
    the solution near ``q`` if there is one; other starts may find others. Contacts are not looked at.

    Args:
        model: the model.
        q: ``(nq,)`` where to begin; joints outside their limits begin at them.
        body: body that carries the point.
        point: ``(3,)`` in body coordinates, m.
        target: ``(3,)`` in the world, m.
        axis, direction: ``(3,)`` in body coordinates and ``(3,)`` in the world, of any length: the
            axis is turned to the direction. Both or neither.
        actuators: names of actuators or joints that may move; None: all.
        length: metres that a radian of the direction counts for.
        tolerance: m.
        angle_tolerance: rad.
        iteration_limit: at most this many linearisations.

    Raises:
        ValueError: naming the argument; KeyError for unknown names. Not reaching is no error.
    """
    instance("model", model, Model)
    here = np.array(vector("q", q, model.nq))
    local, wanted = vector("point", point, 3), vector("target", target, 3)
    if (axis is None) != (direction is None):
        raise ValueError("axis, direction: give both or neither")
    arrow, aim = _unit("axis", axis), _unit("direction", direction)
    length = number("length", length, above=0)
    tolerance = number("tolerance", tolerance, above=0)
    angle_tolerance = number("angle_tolerance", angle_tolerance, above=0)
    iteration_limit = integer("iteration_limit", iteration_limit, least=1)
    chosen = _chosen(model, actuators)
    rows = model.actuated_q[chosen]
    columns = model.actuated_v[chosen]
    lower, upper = (limit[chosen] for limit in joint_limits(model))
    here[rows] = np.clip(here[rows], lower, upper)
    model.body_index(body)

    def residual(at: Array) -> tuple[Array, Array]:
        pos, rot = model.body_pose(at, body)
        turned = rot @ arrow if arrow is not None else np.zeros(3)
        e = wanted - (pos + rot @ local)
        return (e if aim is None else np.concatenate((e, length * (aim - turned)))), turned

    e, turned = residual(here)
    cost, damping = float(e @ e), 1e-8
    iterations = 0
    costs = [cost]
    settled = 0.1 * (tolerance if aim is None else min(tolerance, length * angle_tolerance))
    while iterations < iteration_limit:
        iterations += 1
        position, angle = _errors(e, aim, turned)
        if position <= tolerance and angle <= angle_tolerance:
            break
        J = model.jacobian(here, body, local)[:, columns]
        if aim is not None:
            x, y, z = turned
            cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            J = np.vstack((J[:3], -length * cross @ J[3:]))
        else:
            J = J[:3]
        within = room(here[rows], lower, upper)
        nearer = False
        while not nearer and damping <= MOST_DAMPED:
            step = least_squares_in_box(J, e, *within, regularization=damping)
            if damping <= UNDAMPED and np.linalg.norm(J @ step) <= settled:
                break
            trial = here.copy()
            trial[rows] = np.clip(here[rows] + step, lower, upper)
            e_trial, turned_trial = residual(trial)
            nearer = bool(e_trial @ e_trial < cost * (1.0 - 1e-12))
            if not nearer:
                damping *= 10.0
        if not nearer:
            break  # out of reach, or a local minimum
        here, e, turned = trial, e_trial, turned_trial
        cost, damping = float(e @ e), max(0.1 * damping, 1e-12)
        costs.append(cost)
        if len(costs) > STAGNATION and cost > 0.9 * costs[-1 - STAGNATION]:
            break
    position, angle = _errors(e, aim, turned)
    success = position <= tolerance and angle <= angle_tolerance
    return PointReach(here, success, position, angle, iterations)


def _chosen(model: Model, actuators: Sequence[str] | None) -> list[int]:
    """Indices of the actuators that may move."""
    if actuators is None:
        if model.nu == 0:
            raise ValueError("model: it has no actuators that could move")
        return list(range(model.nu))
    if isinstance(actuators, (str, bytes)) or not isinstance(actuators, Sequence):
        kind = type(actuators).__name__
        raise TypeError(f"actuators: expected names of actuators or joints, got {kind}")
    found = [model.slice_u(instance("actuators", name, str)).start for name in actuators]
    if not found:
        raise ValueError("actuators: expected at least one, got none")
    return found


def _errors(e: Array, aim: Array | None, turned: Array) -> tuple[float, float]:
    position = float(np.linalg.norm(e[:3]))
    if aim is None:
        return position, 0.0
    return position, math.atan2(float(np.linalg.norm(np.cross(aim, turned))), float(aim @ turned))


def _unit(name: str, value: ArrayLike | None) -> Array | None:
    if value is None:
        return None
    given = vector(name, value, 3)
    length = float(np.linalg.norm(given))
    if length == 0.0:
        raise ValueError(f"{name}: expected a vector that is not zero")
    return given / length
