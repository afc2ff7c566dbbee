"""Goals as numbers, for hindsight experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qdsim.arguments import finite, reals
from qdsim.array_type import Array
from qdsim.envs.features import nearest_goals, whole_turns
from qdsim.planning.task.task import Task

__all__ = ["GoalCoordinates", "of_infos"]


class GoalCoordinates:
    """The object's pose as numbers without wrap-around and double covers.

    A slide joint has its displacement (m), a hinge with limits its angle (rad), a hinge without
    limits the cosine and the sine of its angle, a free joint its position (m), and a free or ball
    joint the first two columns of its rotation matrix.

    Args:
        task: the task.

    Attributes:
        names: of the numbers.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        model, space = task.model, task.space
        self._whole = whole_turns(task)
        unlimited = {int(space.v[i]) for i in self._whole}
        self.names: list[str] = []
        self._scalars: list[tuple[int, int]] = []  # (index in q, number)
        self._angles: list[tuple[int, int]] = []
        self._rotations: list[tuple[int, int]] = []
        for joint in space.joints:
            q, v = model.slice_q(joint), model.slice_v(joint)
            if q.stop - q.start == 1:
                is_angle = v.start in unlimited
                (self._angles if is_angle else self._scalars).append((q.start, len(self.names)))
                self.names += (
                    [f"{part} of {joint}" for part in ("cos", "sin")] if is_angle else [joint]
                )
                continue
            if q.stop - q.start == 7:
                self._scalars += [(q.start + k, len(self.names) + k) for k in range(3)]
                self.names += [f"{axis} of {joint}" for axis in "xyz"]
            self._rotations.append((q.stop - 4, len(self.names)))
            self.names += [
                f"rotation of {joint}, {row}{column}" for row in "xyz" for column in "xy"
            ]

    def of(self, q: Array) -> Array:
        """Convert configurations (n, nq) to goals (n, len(names))."""
        out = np.empty((len(q), len(self.names)))
        for i, k in self._scalars:
            out[:, k] = q[:, i]
        for i, k in self._angles:
            out[:, k], out[:, k + 1] = np.cos(q[:, i]), np.sin(q[:, i])
        for i, k in self._rotations:
            out[:, k : k + 6] = _columns(q[:, i : i + 4])
        return out

    def configurations(self, goals: Array) -> Array:
        """Return configurations (n, nq) with the object at goals (n, len(names)) and everything
        else as at the task's start."""
        q = np.repeat(self.task.start[None], len(goals), axis=0)
        for i, k in self._scalars:
            q[:, i] = goals[:, k]
        for i, k in self._angles:
            q[:, i] = np.arctan2(goals[:, k + 1], goals[:, k])
        for i, k in self._rotations:
            q[:, i : i + 4] = _quaternions(goals[:, k : k + 6])
        return q

    def errors(self, achieved: Array, desired: Array) -> tuple[Array, Array]:
        """Compute distances (n,), m, and angles (n,), rad, between goals (n, len(names)), modulo full turns."""
        space = self.task.space
        goals, here = (self.configurations(rows) for rows in (desired, achieved))
        apart = space.difference(nearest_goals(self.task, self._whole, here, goals).T, here.T)
        apart[self._whole] -= 2.0 * np.pi * np.rint(apart[self._whole] / (2.0 * np.pi))
        turns = space.rotation
        return np.linalg.norm(apart[~turns], axis=0), np.linalg.norm(apart[turns], axis=0)

    def checked(self, name: str, goals: Any) -> Array:
        """Check that goals are finite numbers (..., len(names)).

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        array = finite(name, reals(name, goals))
        if array.shape[-1:] != (len(self.names),):
            raise ValueError(f"{name}: expected (..., {len(self.names)}), got shape {array.shape}")
        return np.asarray(array, np.float64)


def of_infos(info: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Return a number of infos in a given shape, zero if missing, from one dictionary of numbers or
    arrays, several, or None.

    Raises:
        ValueError: for another number of them.
    """
    one = info if isinstance(info, Mapping) else {} if info is None else None
    if one is not None:
        return np.broadcast_to(np.asarray(one.get(name, 0.0), np.float64), shape)
    each = [one.get(name, 0.0) for one in np.ravel(info)]
    if len(each) != np.prod(shape, dtype=int):
        raise ValueError(f"info: expected one for each of {shape} goals, got {len(each)}")
    return np.reshape(np.asarray(each, np.float64), shape)


def _columns(quaternion: Array) -> Array:
    """Return the first two columns of rotation matrices, row by row (n, 6), of unit quaternions (n, 4)."""
    w, x, y, z = quaternion.T
    first = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)
    second = 2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)
    return np.stack((first[0], second[0], first[1], second[1], first[2], second[2]), axis=1)


def _quaternions(columns: Array) -> Array:
    """Return unit quaternions (n, 4) of the rotation matrices obtained from two columns (n, 6) by
    Gram-Schmidt orthogonalisation, beginning with the first column."""
    first, second = _unit(columns[:, 0::2], 0), columns[:, 1::2]
    second = _unit(second - (first * second).sum(axis=1)[:, None] * first, 1)
    third = np.cross(first, second)
    # Of four candidates, the largest is far from zero (Shepperd's method).
    a, b, c = first.T, second.T, third.T
    rows = np.array(
        [
            [1 + a[0] + b[1] + c[2], b[2] - c[1], c[0] - a[2], a[1] - b[0]],
            [b[2] - c[1], 1 + a[0] - b[1] - c[2], a[1] + b[0], a[2] + c[0]],
            [c[0] - a[2], a[1] + b[0], 1 - a[0] + b[1] - c[2], b[2] + c[1]],
            [a[1] - b[0], a[2] + c[0], b[2] + c[1], 1 - a[0] - b[1] + c[2]],
        ]
    )
    best = np.argmax(np.einsum("iin->in", rows), axis=0)
    found = rows[best, :, np.arange(len(columns))]
    return np.asarray(found / np.linalg.norm(found, axis=1)[:, None])


def _unit(v: Array, axis: int) -> Array:
    """Normalise vectors (n, 3); zero vectors are replaced by an axis of the world."""
    length = np.linalg.norm(v, axis=1)[:, None]
    return np.asarray(
        np.where(length > 0.0, v / np.where(length > 0.0, length, 1.0), np.eye(3)[axis])
    )
