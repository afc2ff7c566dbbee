"""Inverse kinematics of a contact point: move a point of a link to a target and align an axis with
a direction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import instance, integer, number, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.drives import check_joints_lead
from qdsim.planning.task.followers import by_drives, with_followers
from qdsim.planning.task.least_squares import PATIENCE, least_squares_in_box, room
from qdsim.planning.task.robot import joint_limits

__all__ = ["PointReach", "reach_point"]


@dataclasses.dataclass(frozen=True, eq=False)
class PointReach:
    """Result of :func:`reach_point`.

    Attributes:
        q: ``(nq,)`` configuration within the joint limits, the nearest one found.
        success: whether both errors are within their tolerances.
        position_error: distance from the point to its target, m.
        direction_error: angle between the axis and its direction, rad; 0 without a direction.
        iterations: number of linearisations.
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

    Uses the damped Gauss-Newton method of Levenberg and Marquardt on ``Model.jacobian``. The limits
    are bounds of every least-squares problem, so other joints compensate for one at its limit. The
    method finds a solution near ``q`` if there is one; other starts may give other solutions.
    Contacts and collisions are ignored.

    Args:
        model: the model.
        q: ``(nq,)`` start; joints outside their limits start at them.
        body: body that carries the point.
        point: ``(3,)`` in body coordinates, m.
        target: ``(3,)`` in world coordinates, m.
        axis, direction: ``(3,)`` in body coordinates and ``(3,)`` in world coordinates, of any
            length: the axis is turned to the direction. Give both or neither.
        actuators: names of actuators or joints that may move; None: all.
        length: weight of the direction, in metres per radian.
        tolerance: of the position, m.
        angle_tolerance: of the direction, rad.
        iteration_limit: largest number of linearisations.

    Raises:
        ValueError: if an argument is invalid; KeyError for unknown names. An unreachable target is
            not an error.

    The damping is that of Marquardt 1963, "An algorithm for least-squares estimation of nonlinear
    parameters".
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
    model.body_index(body)
    aims = _Aims(model, body, local, wanted, arrow, aim, length, tolerance, angle_tolerance)
    search = _Search(aims, here, chosen)
    iterations = 0
    while iterations < iteration_limit:
        iterations += 1
        if aims.met(search.miss) or not search.advance():
            break
    position, angle = aims.errors(search.miss)
    return PointReach(search.q, aims.met(search.miss), position, angle, iterations)


class _Miss(NamedTuple):
    """An error: that of the point (m), then that of the axis times the length; and the direction of the axis."""

    e: Array
    turned: Array


class _Aims(NamedTuple):
    """The aims of a search; ``axis`` and ``direction`` have unit length."""

    model: Model
    body: str
    point: Array
    target: Array
    axis: Array | None
    direction: Array | None
    length: float
    tolerance: float
    angle_tolerance: float

    def miss(self, q: Array) -> _Miss:
        pos, rot = self.model.body_pose(q, self.body)
        e = self.target - (pos + rot @ self.point)
        if self.axis is None or self.direction is None:
            return _Miss(e, np.zeros(3))
        turned = rot @ self.axis
        return _Miss(np.concatenate((e, self.length * (self.direction - turned))), turned)

    def jacobian(self, q: Array, turned: Array, chosen: list[int]) -> Array:
        J = by_drives(self.model, np.asarray(self.model.jacobian(q, self.body, self.point)))
        J = J[:, chosen]
        if self.direction is None:
            return J[:3]
        x, y, z = turned
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.vstack((J[:3], -self.length * cross @ J[3:]))

    def errors(self, miss: _Miss) -> tuple[float, float]:
        """Return the errors of position (m) and direction (rad)."""
        position, aim = float(np.linalg.norm(miss.e[:3])), self.direction
        if aim is None:
            return position, 0.0
        across = float(np.linalg.norm(np.cross(aim, miss.turned)))
        return position, math.atan2(across, float(aim @ miss.turned))

    def met(self, miss: _Miss) -> bool:
        position, angle = self.errors(miss)
        return position <= self.tolerance and angle <= self.angle_tolerance

    @property
    def settled(self) -> float:
        """Steps that move the point by less than this (m) count as no progress."""
        most = self.tolerance
        if self.direction is not None:
            most = min(most, self.length * self.angle_tolerance)
        return 0.1 * most


class _Search:
    """The Levenberg-Marquardt method with bounds, one linearisation at a time."""

    def __init__(self, aims: _Aims, q: Array, chosen: list[int]) -> None:
        model = aims.model
        check_joints_lead(model, "reach_point")
        self.aims, self.q = aims, q
        self.chosen, self.rows = chosen, model.actuated_q[chosen]
        self.lower, self.upper = (limit[chosen] for limit in joint_limits(model))
        q[self.rows] = np.clip(q[self.rows], self.lower, self.upper)
        with_followers(model, q)
        self.miss = aims.miss(q)
        self.damping = 1e-8
        self.costs = [self._cost(self.miss)]

    @staticmethod
    def _cost(miss: _Miss) -> float:
        return float(miss.e @ miss.e)

    def advance(self) -> bool:
        """Go to the next point; return whether the search should continue from there."""
        if not self._step(self.aims.jacobian(self.q, self.miss.turned, self.chosen)):
            return False  # out of reach, or a local minimum
        self.damping = max(0.1 * self.damping, 1e-12)
        self.costs.append(self._cost(self.miss))
        stagnates = len(self.costs) > PATIENCE and (
            self.costs[-1] > 0.9 * self.costs[-1 - PATIENCE]
        )
        return not stagnates

    def _step(self, J: Array) -> bool:
        """Increase the damping until a step reduces the error, and take it.

        It returns False if no such step moves the point by more than a tenth of the tolerance; the
        target is then out of reach.
        """
        here, cost = self.q[self.rows], self.costs[-1]
        within = room(here, self.lower, self.upper)
        while True:
            step = least_squares_in_box(J, self.miss.e, *within, regularization=self.damping)
            if not np.linalg.norm(J @ step) > self.aims.settled:
                return False
            trial = self.q.copy()
            trial[self.rows] = np.clip(here + step, self.lower, self.upper)
            with_followers(self.aims.model, trial)
            miss = self.aims.miss(trial)
            if self._cost(miss) < cost * (1.0 - 1e-12):
                self.q, self.miss = trial, miss
                return True
            self.damping *= 10.0


def _chosen(model: Model, actuators: Sequence[str] | None) -> list[int]:
    """Return the indices of the actuators that may move."""
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


def _unit(name: str, value: ArrayLike | None) -> Array | None:
    if value is None:
        return None
    given = vector(name, value, 3)
    length = float(np.linalg.norm(given))
    if length == 0.0:
        raise ValueError(f"{name}: expected a vector that is not zero")
    return given / length
