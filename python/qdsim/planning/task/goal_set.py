"""The error of an object's pose from a goal: the displacement to the nearest pose that counts as
the goal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import ROUNDING, SAME, Array
from qdsim.model import Model
from qdsim.planning.task.goal_region import GoalRegion, quaternion_product
from qdsim.planning.task.roundness import unseen_turns
from qdsim.planning.task.space import ObjectSpace

__all__ = ["GoalSet", "Target", "way_to"]


class GoalSet:
    """The poses of an object that count as its goal.

    Translations, hinges and rotations have separate bounds, so the nearest pose is the nearest one
    in each of them: the nearest point of a box, and among the rotations ``R S exp(a axis)``, S a
    symmetry, the one with the smallest angle. This is the twist of ``(R S)' R_q`` about the axis
    (swing and twist; Dobrowolski 2015, "Swing-twist decomposition in Clifford algebra").

    Args:
        model: the model.
        space: the object's coordinates in it.
        goal: ``(nq,)`` the goal.
        region: other poses that count as the goal; None: none.

    Attributes:
        goal: ``(nq,)``.
        is_point: whether only the goal itself counts.

    Raises:
        ValueError: if a field of the region does not fit the object; the message names it.
    """

    def __init__(
        self, model: Model, space: ObjectSpace, goal: Array, region: GoalRegion | None
    ) -> None:
        self.space, self.goal = space, goal
        self.is_point = region is None or region == GoalRegion()
        self._alike: GoalSet | None = None
        if region is None or self.is_point:
            return
        same = unseen_turns(model, space, region)
        if same is not None:
            self._alike = self if same == region else GoalSet(model, space, goal, same)
        self._any = region.rotation == "any"
        at, rows = space.scalars
        self._at, self._rows = at, rows
        self._lower, self._upper = (
            _bounds(name, getattr(region, name), space.rotation[rows], self._any, sign)
            for name, sign in (("lower", -np.inf), ("upper", np.inf))
        )
        self._up = region.axis == "up"
        self._axis: Array | None = None
        self._group = region.group
        self._hinge: tuple[int, Array] | None = (
            None  # index in q, and angles (n,) of the symmetries
        )
        if region.axis is not None or region.symmetries:
            self._turn_about(model, region)
        free = np.isinf(self._lower) & np.isinf(self._upper)
        if free.all() and (self._any or not space.quaternions):
            raise ValueError("goal_region: every pose counts as the goal")

    def _turn_about(self, model: Model, region: GoalRegion) -> None:
        """Compute the axis and the symmetries in the frame of the joint."""
        space, name = self.space, "axis" if region.axis is not None else "symmetries"
        hinges = self._at[space.rotation[self._rows]]
        if len(hinges) + len(space.quaternions) != 1:
            raise ValueError(f"{name}: {space.body!r} does not rotate by a single joint")
        J = np.asarray(model.jacobian(self.goal, space.body, np.zeros(3)))[3:][:, space.v]
        body = np.asarray(model.body_pose(self.goal, space.body)[1])
        if len(hinges):
            if region.axis is not None:
                raise ValueError(
                    f"axis: {space.body!r} turns on a hinge; rotation='any', or lower and upper, leave it free"
                )
            self._hinge = int(hinges[0]), _turns(region, body.T @ J[:, space.rotation][:, 0])
            return
        i, row = space.quaternions[0]
        base = J[:, row : row + 3]
        own = (
            base @ _matrix(self.goal[i : i + 4])
        ).T @ body  # from the body's frame to that of the joint
        self._group = np.column_stack((self._group[:, 0], self._group[:, 1:] @ own.T))
        if self._up:
            gravity = np.asarray(model.parameters.gravity)
            if not np.any(gravity):
                raise ValueError("axis: 'up' needs gravity, which is zero in this model")
            self._axis = -base.T @ gravity / np.linalg.norm(gravity)
        elif region.axis is not None:
            self._axis = own @ np.array(region.axis)

    def nearest(self, q: Array, goal: Array | None = None) -> Array:
        """Return the goal configuration, with the object at the nearest pose that counts as the goal.

        Args:
            q: ``(nq,)`` or ``(nq, N)`` configurations, one per column.
            goal: the same shape, other goals; None: the goal.

        Returns:
            ``(nq,)`` or ``(nq, N)``; the goal itself if no other pose counts.
        """
        own = self.goal if goal is None else goal
        if self.is_point:
            return own
        flat = q.ndim == 1 and own.ndim == 1
        a, b = np.broadcast_arrays(*(x[:, None] if x.ndim == 1 else x for x in (q, own)))
        found = np.array(b)
        if len(self._at):
            there = b[self._at]
            found[self._at] = np.clip(
                a[self._at], there + self._lower[:, None], there + self._upper[:, None]
            )
        if self._hinge is not None:
            i, turns = self._hinge
            left = np.remainder(a[i] - b[i] - turns[:, None] + math.pi, math.tau) - math.pi
            best = np.abs(left).argmin(axis=0)
            found[i] = a[i] - left[best, np.arange(len(best))]
        for i, _ in self.space.quaternions:
            here = a[i : i + 4]
            found[i : i + 4] = here if self._any else self._turned(here, b[i : i + 4])[0]
        return found[:, 0] if flat else found

    def alike(self, pose: Array, q: Array) -> Array:
        """A configuration with the object turned to be as near as possible to its pose in another one.

        Only turns count that neither change the object's shape nor matter to the goal, such as those of a can about
        its axis.

        Args:
            pose: ``(nq,)`` the configuration.
            q: ``(nq,)`` the other one.
        """
        return pose if self._alike is None else self._alike.nearest(q, pose)

    def apart(self, q: Array, pose: Array) -> tuple[float, float]:
        """Distance (m) and angle (rad) between the object's poses in two configurations, up to turns that :meth:`alike`
        leaves out.

        Args:
            q, pose: ``(nq,)`` the configurations.
        """
        return self.space.errors(q, self.alike(pose, q))

    def difference(self, q: Array) -> Array:
        """Displacements ``(size,)`` or ``(size, N)`` from configurations ``(nq,)`` or ``(nq, N)``
        to the nearest goal, m and rad."""
        return self.space.difference(self.nearest(q), q)

    def errors(self, q: Array) -> tuple[float, float]:
        """Distance (m) and angle (rad) of the object in ``q`` ``(nq,)`` from the nearest goal."""
        return self.space.errors(q, self.nearest(q))

    def slopes(self, q: Array, e: Array) -> Array:
        """Derivatives ``(N, size, size)`` of errors with respect to displacements of the object.

        Args:
            q: ``(nq, N)`` configurations.
            e: ``(size, N)`` their errors, minus :meth:`difference`.
        """
        J = self.space.log_slopes(e)
        if self.is_point:
            return J
        J = np.array(J)
        if len(self._at):
            off = q[self._at] - self.goal[self._at, None]
            within = (off >= self._lower[:, None]) & (off <= self._upper[:, None])
            within &= (self._lower < self._upper)[:, None]
            J[:, self._rows, self._rows] = ~within.T
        for i, row in self.space.quaternions:
            part = slice(row, row + 3)
            if self._any:
                J[:, part, part] = 0.0
            elif self._axis is not None:
                goals = np.broadcast_to(self.goal[i : i + 4, None], (4, q.shape[1]))
                pose, axis = self._turned(q[i : i + 4], goals)
                J[:, part, part] = _swing_slopes(J[:, part, part], e[part], _rotate(pose, axis))
        return J

    def _turned(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the rotations nearest to ``a`` ``(4, N)`` among those that count as the goals ``b`` ``(4, N)``.

        It also returns the axes ``(3, N)``, in the frames of these rotations, about which the
        rotation is free; zeros without an axis.
        """
        each = quaternion_product(b[:, None, :], self._group.T[:, :, None])
        off = quaternion_product(_conjugate(each), np.broadcast_to(a[:, None, :], each.shape))
        axis = np.zeros((3, *each.shape[1:]))
        if self._up:
            assert self._axis is not None
            vertical = np.broadcast_to(self._axis[:, None, None], axis.shape)
            axis = _rotate(_conjugate(each), vertical)
        elif self._axis is not None:
            axis = np.broadcast_to(self._axis[:, None, None], axis.shape)
        w, along = off[0], (axis * off[1:]).sum(axis=0)
        size = np.hypot(w, along)  # the cosine of half of the remaining angle
        open_ = size < ROUNDING  # at half a turn the twist is arbitrary: none is taken
        twist = np.concatenate((np.where(open_, 1.0, w)[None], np.where(open_, 0.0, along) * axis))
        twist /= np.where(open_, 1.0, size)
        row, column = (size > size.max(axis=0) - 1e-12).argmax(axis=0), np.arange(a.shape[1])
        found = quaternion_product(each[:, row, column], twist[:, row, column])
        return found / np.linalg.norm(found, axis=0), axis[:, row, column]


Target = Array | GoalSet
"""A pose of the object ``(nq,)``, or the poses of a goal, of which the nearest one is used."""


def way_to(space: ObjectSpace, target: Target, q: Array) -> Array:
    """Return the object's displacements ``(size,)`` or ``(size, N)`` to the target from
    configurations ``(nq,)`` or ``(nq, N)``, m and rad."""
    return target.difference(q) if isinstance(target, GoalSet) else space.difference(target, q)


def _bounds(
    name: str,
    given: float | tuple[float, ...],
    turns: NDArray[np.bool_],
    any_turn: bool,
    free: float,
) -> Array:
    """Return one bound per scalar coordinate ``(n,)``."""
    if isinstance(given, tuple):
        if len(given) != len(turns):
            raise ValueError(
                f"{name}: the object has {len(turns)} coordinates of shifts and hinges, got {len(given)}"
            )
        found = np.array(given)
    else:
        found = np.where(turns, 0.0, given)
    return np.where(turns & any_turn, free, found)


def _turns(region: GoalRegion, hinge: Array) -> Array:
    """Return the angles ``(n,)`` of the symmetries about a hinge with an axis ``(3,)`` in the
    object's frame, rad."""
    group = region.group
    along = group[:, 1:] @ hinge
    own = np.linalg.norm(group[:, 1:] - np.outer(along, hinge), axis=1) < SAME
    if own.sum() < 2:
        raise ValueError("symmetries: none of them turns the object about its hinge")
    return np.asarray(2.0 * np.arctan2(along[own], group[own, 0]))


def _swing_slopes(J: Array, e: Array, axis: Array) -> Array:
    """Derivatives ``(N, 3, 3)`` of rotation errors if rotations about an axis are free.

    Let ``n`` be the axis and ``e`` the error, perpendicular to it. A displacement d changes the
    logarithm by ``J d``. Its part along the axis, ``c = n' J d``, is removed by a rotation about
    the axis by the angle ``c 2 tan(|e| / 2) / |e|`` from the right. This changes the logarithm by
    that angle times ``J' n``, since the right Jacobian is the transpose of the left one.

    Args:
        J: ``(N, 3, 3)`` of the logarithm by displacements.
        e: ``(3, N)`` the errors.
        axis: ``(3, N)``.
    """
    angle = np.linalg.norm(e, axis=0)
    small = angle < 1e-6
    half = 0.5 * np.minimum(np.where(small, 1.0, angle), math.pi - 1e-6)
    factor = np.where(small, 1.0, np.tan(half) / half)
    back = np.einsum("nji,jn->ni", J, axis)
    along = np.einsum("jn,njk->nk", axis, J)
    return np.asarray(J - factor[:, None, None] * back[:, :, None] * along[:, None, :])


def _conjugate(q: Array) -> Array:
    return np.concatenate((q[:1], -q[1:]))


def _rotate(q: Array, v: Array) -> Array:
    """Rotate vectors ``(3, ...)`` by quaternions ``(4, ...)``."""
    t = 2.0 * np.cross(q[1:], v, axis=0)
    return np.asarray(v + q[0] * t + np.cross(q[1:], t, axis=0))


def _matrix(q: Array) -> Array:
    return _rotate(np.broadcast_to(q[:, None], (4, 3)), np.eye(3))
