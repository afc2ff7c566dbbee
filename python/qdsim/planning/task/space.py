"""The object's part of the configuration space, which a planner controls and measures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["ObjectSpace"]


class ObjectSpace:
    """Coordinates of one object of a model, as tangent vectors of its unactuated joints.

    A planner through contact controls the object; the robot only has to be in a useful position
    (CQDC §VI-B). This class extracts the object's entries from arrays of configurations and tangent
    vectors, and subtracts configurations on the manifold: scalar joints by subtraction, ball and
    free joints by the logarithm of the relative rotation, as ``Model.difference`` does for one
    configuration.

    Args:
        model: the model.
        body: name of the object's body. Its coordinates are the unactuated joints that move it.

    Attributes:
        body: name of the object's body.
        joints: names of the object's joints, in the order of ``q``.
        q: indices of the object's entries of a configuration.
        v: indices of the object's entries of a tangent vector, ``size`` of them.
        take_v: the same as ``v``, as a slice if they are contiguous.
        rotation: ``(size,)`` bool, which of these are rotations (rad) and not translations (m).
    """

    def __init__(self, model: Model, body: str) -> None:
        instance("model", model, Model)
        instance("object", body, str)
        if body not in model.body_names:
            raise ValueError(
                f"object: the model has no body {body!r}; it has {', '.join(model.body_names)}"
            )
        jacobian = np.asarray(model.jacobian(model.default_q, body, np.zeros(3)))
        moved = set(np.flatnonzero(np.any(jacobian != 0.0, axis=0)).tolist())
        free = set(np.asarray(model.unactuated_v).tolist())
        self.body = body
        self.joints: list[str] = []
        self._scalar: list[tuple[int, int]] = []  # (index in q, row of the tangent vector)
        self._quaternion: list[tuple[int, int]] = []  # (first index in q, first row)
        q_index: list[int] = []
        v_index: list[int] = []
        for joint in model.joint_names:
            v_slice, q_slice = model.slice_v(joint), model.slice_q(joint)
            own = set(range(v_slice.start, v_slice.stop))
            if not own & moved or not own <= free:
                continue
            self.joints.append(joint)
            linear = 3 if len(own) == 6 else 0 if len(own) == 3 else 1
            row = len(v_index)
            self._scalar += [(q_slice.start + k, row + k) for k in range(linear)]
            if len(own) > 1:
                self._quaternion.append((q_slice.start + linear, row + linear))
            q_index += range(q_slice.start, q_slice.stop)
            v_index += range(v_slice.start, v_slice.stop)
        if not v_index:
            raise ValueError(f"object: no unactuated joint moves the body {body!r}")
        self.q: NDArray[np.intp] = np.array(q_index, dtype=np.intp)
        self.v: NDArray[np.intp] = np.array(v_index, dtype=np.intp)
        # Contiguous entries are taken as views, without a copy.
        self._take_q = as_slice(self.q)
        self.take_v = as_slice(self.v)
        angular = np.any(jacobian[3:][:, self.v] != 0.0, axis=0)
        self.rotation: NDArray[np.bool_] = np.asarray(angular, dtype=np.bool_)
        self._kinds = np.array([~self.rotation, self.rotation], dtype=np.float64)
        self._scalar_q = np.array([i for i, _ in self._scalar], dtype=np.intp)
        self._scalar_v = np.array([j for _, j in self._scalar], dtype=np.intp)

    @property
    def size(self) -> int:
        """Number of tangent coordinates of the object."""
        return len(self.v)

    @property
    def rotation_vectors(self) -> list[int]:
        """First coordinate of each rotation vector (of ball and free joints)."""
        return [row for _, row in self._quaternion]

    @property
    def quaternions(self) -> list[tuple[int, int]]:
        """First index in ``q`` of each quaternion, and the first coordinate of its rotation vector."""
        return self._quaternion

    @property
    def scalars(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Indices in ``q`` of slides, hinges and positions, and their coordinates."""
        return self._scalar_q, self._scalar_v

    def q_of_scalars(self, coordinates: NDArray[np.intp]) -> NDArray[np.intp]:
        """Indices in ``q`` of coordinates that belong to slides, hinges or positions.

        Args:
            coordinates: ``(k,)`` indices in ``v``.
        """
        return self._scalar_q[np.searchsorted(self._scalar_v, coordinates)]

    def difference(self, q1: Array, q0: Array) -> Array:
        """Object displacement ``q1 - q0`` on the manifold.

        Args:
            q1: ``(nq,)`` or ``(nq, N)`` configurations, one per column.
            q0: the same; either may be a single configuration.

        Returns:
            ``(size,)`` or ``(size, N)`` displacements, m and rad.
        """
        if not self._quaternion:
            a, b = q1[self._take_q], q0[self._take_q]
            if a.ndim == b.ndim:
                return a - b
            return a[:, None] - b if a.ndim < b.ndim else a - b[:, None]
        flat = q1.ndim == 1 and q0.ndim == 1
        a = q1[:, None] if q1.ndim == 1 else q1
        b = q0[:, None] if q0.ndim == 1 else q0
        result = np.empty((self.size, max(a.shape[1], b.shape[1])))
        result[self._scalar_v] = a[self._scalar_q] - b[self._scalar_q]
        for i, row in self._quaternion:
            result[row : row + 3] = _rotation_difference(a[i : i + 4], b[i : i + 4])
        return result[:, 0] if flat else result

    def log_slopes(self, e: Array) -> Array:
        """Derivatives ``(N, size, size)`` of pose differences with respect to displacements of
        their first configurations.

        Args:
            e: ``(size, N)`` differences, m and rad.
        """
        J = np.broadcast_to(np.eye(self.size), (e.shape[1], self.size, self.size))
        if self._quaternion:
            J = J.copy()
            for row in self.rotation_vectors:
                part = slice(row, row + 3)
                J[:, part, part] = _inverse_left_jacobian(e[part].T)
        return J

    def check_quaternions(self, name: str, q: Array) -> None:
        """Check that the object's quaternions have length 1.

        Args:
            name: begins the error message.
            q: ``(nq,)`` configuration.

        Raises:
            ValueError: if one has another length.
        """
        for i, _ in self._quaternion:
            length = float(np.linalg.norm(q[i : i + 4]))
            if not abs(length - 1.0) <= 1e-6:
                raise ValueError(
                    f"{name}: the quaternion at index {i} has length {length:g}, expected 1"
                )

    def errors(self, q: Array, goal: Array) -> tuple[float, float]:
        """Distance (m) and angle (rad) between the object's poses in two configurations.

        Args:
            q: ``(nq,)`` configuration.
            goal: ``(nq,)`` configuration.
        """
        e = self.difference(goal, q)
        shift, turn = (self._kinds @ (e * e)).tolist()
        return math.sqrt(shift), math.sqrt(turn)

    def scale(self, length: float) -> Array:
        """Factors ``(size,)`` that convert displacements to metres: 1 for translations, ``length``
        for rotations.

        Args:
            length: m per rad.
        """
        return np.where(self.rotation, length, 1.0)

    def __repr__(self) -> str:
        return f"ObjectSpace({self.body!r}, joints={self.joints})"


def _rotation_difference(a: Array, b: Array) -> Array:
    """Return the rotation vectors ``(3, N)`` of ``R_a R_b'`` from quaternions ``(4, N)``, at most pi long."""
    w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
    v = -a[0] * b[1:] + b[0] * a[1:] - _cross(a[1:], b[1:])
    flip = np.where(w < 0.0, -1.0, 1.0)
    w, v = w * flip, v * flip
    s = np.sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    # 2 atan2(s, w) / s, which tends to 2 / w as s tends to 0.
    small = s < 1e-12
    factor = np.where(small, 2.0, 2.0 * np.arctan2(s, w) / np.where(small, 1.0, s))
    return np.asarray(factor * v)


def _inverse_left_jacobian(e: Array) -> Array:
    """Return J (T, 3, 3) with log(exp(d) exp(e)) = e + J d to first order in d, for rotation vectors e."""
    angle = np.sqrt((e * e).sum(axis=1))
    small = angle < 1e-4
    a = np.where(small, 1.0, angle)
    # 1/a^2 - (1 + cos a)/(2 a sin a), which tends to 1/12; at pi the second part is zero
    half = 0.5 * a
    factor = np.where(small, 1.0 / 12.0, (1.0 - half / np.tan(half)) / a**2)
    X = np.zeros((len(e), 3, 3))
    X[:, 0, 1], X[:, 0, 2], X[:, 1, 2] = -e[:, 2], e[:, 1], -e[:, 0]
    X -= X.swapaxes(1, 2)
    return np.eye(3) - 0.5 * X + factor[:, None, None] * (X @ X)


def _cross(a: Array, b: Array) -> Array:
    return np.stack(
        (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    )


def as_slice(index: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Return indices as a slice if they are contiguous, else unchanged."""
    if len(index) == 0:
        return index
    first, count = int(index[0]), len(index)
    neighbours = np.array_equal(index, np.arange(first, first + count))
    return slice(first, first + count) if neighbours else index
