"""Grasps of a disc by two planar fingers with two links each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT, fields, instance, integer, number
from qdsim.array_type import ROUNDING, Array
from qdsim.batches.queries import body_poses, checked_distances
from qdsim.model import Model

__all__ = ["PlanarHandSampler"]

_Shares = Callable[[NDArray[np.intp], int], Array]


class _Finger(NamedTuple):
    """One finger: the sign of its side, the position of its base and the index of its joints in q."""

    sign: float  # -1 left, +1 right: joint angles and the y axis are mirrored
    base: Array  # (n, 2) y and z in every configuration, m
    first: int  # index of joint 1 in q; joint 2 follows
    limits: Array  # (2, 2) lower and upper of both joints, rad


@dataclasses.dataclass(frozen=True)
class PlanarHandSampler:
    """The two published grasps of the planar hand, chosen at random.

    *Pinch*: each fingertip at a random place on its side of the disc, one millimetre away from it.
    *Enveloping*: both fingers are folded inwards joint by joint, right finger first, until the next
    increment would touch. If no pinch is found, the enveloping grasp is tried. Grasps lie within
    the model's joint limits, and no pair of the whole model penetrates, not even two fingers.

    Attributes:
        pinch_probability: probability that a pinch is tried first.
        object: body of the disc.
        bases: bodies of the finger bases, left and right.
        joints: first joints of the fingers, left and right; the second joint comes next in q.
        link_lengths: base to knuckle and knuckle to fingertip, m.
        tip_distance: distance of the disc's centre from that of a pinching fingertip: radius of the
            disc, radius of the tip and a gap, m.
        draws: number of fingertip places tried for each finger.
        resolution: the enveloping grasp closes joints to this angle, rad.
    """

    pinch_probability: float = 0.9
    object: str = "disc"
    bases: tuple[str, str] = ("left_link_0", "right_link_0")
    joints: tuple[str, str] = ("left_1", "right_1")
    link_lengths: tuple[float, float] = (0.3, 0.2)
    tip_distance: float = 0.25 + 0.05 + 0.001
    draws: int = 50
    resolution: float = 1e-3

    def __post_init__(self) -> None:
        fields(self, number, "pinch_probability", least=0, most=1)
        fields(self, instance, "object", kind=str)
        fields(self, number, "tip_distance", "resolution", above=0)
        fields(self, integer, "draws", least=1, most=MOST_COUNT)

    parameters = 2
    """Number of parameters of ``place``: positions of the left and the right fingertip on their
    parts of the disc's outline."""

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """Compute the pinch ``(nq,)`` with the tips at given places of the object's outline, or
        None if there is none near them.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
            x: ``(2,)`` in [-1, 1]: each tip is at the share (1 + x) / 2 of its reachable part of
                the outline, or at the nearest of ``draws`` places where a pinch exists.
        """
        found, good = self.place_batch(model, q[None], np.asarray(x)[None])
        return found[0] if good[0] else None

    def place_batch(self, model: Model, q: Array, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Several pinches at once: configurations ``(n, nq)``, and which of them are pinches ``(n,)``.

        Args:
            model: the model.
            q: ``(n, nq)`` configurations with the object in its poses.
            x: ``(n, 2)``, as of :meth:`place`.
        """
        wanted = 0.5 * (1.0 + x)
        grid = np.linspace(0.0, 1.0, self.draws)

        def nearest_first(rows: NDArray[np.intp], side: int) -> Array:
            order = np.argsort(np.abs(grid - wanted[rows, side, None]), axis=1, kind="stable")
            return grid[order]

        return self._pinched(model, q, wanted, nearest_first)

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a new configuration ``(nq,)`` with the object unmoved, or None if neither grasp exists."""
        if rng.random() < self.pinch_probability:
            grasp = self.pinch(model, q, rng)
            if grasp is not None:
                return grasp
        return self.envelop(model, q)

    def envelop(self, model: Model, q: Array) -> Array | None:
        """Compute the grasp ``(nq,)`` that envelops the object in its pose (deterministic);
        None if there is none.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
        """
        _, left, right = self._scene(model, np.asarray(q)[None])
        result = np.array(q)
        down = math.pi / 2  # pointing down, away from the object
        for finger in (left, right):
            self._put(result, finger, down, 0.0)
        for finger in (right, left):
            self._put(result, finger, 0.0, 0.0)
            # The first joint closes from pointing down to pointing up, the second from straight to
            # folded inwards.
            self._close(model, result, finger.first, -finger.sign * down, finger.sign * down)
            self._close(model, result, finger.first + 1, 0.0, finger.sign * down)
        for finger in (left, right):
            if not _within(result[finger.first : finger.first + 2], finger.limits):
                return None
        return result if _free(model, result[None])[0] else None

    def pinch(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a random pinch ``(nq,)`` of the object in its pose; None if none was found.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
            rng: generator of the tips' places.
        """
        shares = rng.random((2, self.draws))

        def later(rows: NDArray[np.intp], side: int) -> Array:
            return np.tile(shares[side, 1:], (len(rows), 1))

        found, good = self._pinched(model, q[None], shares[None, :, 0], later)
        return found[0] if good[0] else None

    def _pinched(
        self, model: Model, q: Array, first: Array, later: _Shares
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return pinches of q (n, nq), and which rows are pinches (n,).

        Each tip is put at the first free one of several places. Places are shares of the part of
        the outline that the finger reaches.

        Args:
            model, q: as for ``place_batch``.
            first: (n, 2) shares to try first, of the left and the right finger.
            later: function that gives further shares (rows, k) for given rows and a finger, left
                (0) or right (1).
        """
        centre, *fingers = self._scene(model, q)
        result, good = q.copy(), np.ones(len(q), dtype=bool)
        for side, (finger, other) in enumerate(zip(fingers, reversed(fingers))):
            own = slice(finger.first, finger.first + 2)
            low, high, reachable = self._reachable_angles(finger, centre)
            good &= reachable
            alone = q.copy()
            self._put(alone, other, 0.0, 0.0)

            def free(
                rows: NDArray[np.intp],
                shares: Array,
                finger: _Finger = finger,
                alone: Array = alone,
                low: Array = low,
                span: Array = high - low,
            ) -> tuple[Array, NDArray[np.bool_]]:
                angles = low[rows, None] + shares * span[rows, None]
                return self._first_free(model, alone[rows], finger, rows, centre[rows], angles)

            left = np.flatnonzero(good)
            joints, found = free(left, first[left, side, None])
            result[left, own] = joints
            again = left[~found]
            if len(again):
                joints, found = free(again, later(again, side))
                result[again, own] = joints
                good[again] = found
        good[good] = _free(model, result[good])
        result[~good] = q[~good]
        return result, good

    def _first_free(
        self,
        model: Model,
        q: Array,
        finger: _Finger,
        rows: NDArray[np.intp],
        centre: Array,
        angles: Array,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return the joints (n, 2) of a finger that put its tip at the first free one of angles (n,
        k) around centres (n, 2).

        Free means that nothing penetrates in q (n, nq) with these joints. It also returns where
        there is a free angle (n,). ``rows`` are the rows of the finger's base.
        """
        around = np.stack((np.cos(angles), np.sin(angles)), axis=-1)
        places = centre[:, None] + self.tip_distance * around
        joints, reached = self._inverse_kinematics(finger, finger.base[rows, None], places)
        which = np.flatnonzero(reached & _within(joints, finger.limits))
        trial = q[which // angles.shape[1]]
        trial[:, finger.first : finger.first + 2] = joints.reshape(-1, 2)[which]
        free = np.zeros(angles.shape, dtype=bool)
        free.reshape(-1)[which] = _free(model, trial)
        best = free.argmax(axis=1)
        return joints[np.arange(len(q)), best], np.asarray(free.any(axis=1))

    def _scene(self, model: Model, q: Array) -> tuple[Array, _Finger, _Finger]:
        """Return the centres ``(n, 2)`` of the disc in q ``(n, nq)``, and the fingers."""
        pos, _ = body_poses(model, q, threads=1)
        left, right = (
            _Finger(
                sign,
                pos[:, model.body_index(base), 1:],
                model.slice_q(joint).start,
                model.joint_range[model.joint_names.index(joint) :][:2].T,
            )
            for sign, base, joint in zip((-1.0, 1.0), self.bases, self.joints)
        )
        return pos[:, model.body_index(self.object), 1:], left, right

    def _reachable_angles(
        self, finger: _Finger, centre: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return the interval of directions (n,) from the disc's centres (n, 2) that a fingertip
        reaches on its own side.

        It also returns whether the interval is not empty.
        """
        to_base = finger.base - centre
        b = np.hypot(to_base[:, 0], to_base[:, 1])
        r, reach = self.tip_distance, sum(self.link_lengths)
        cosine = np.where(b > 0.0, (r * r + b * b - reach * reach), 2.0) / np.where(
            b > 0.0, 2.0 * r * b, 1.0
        )
        middle, half = (
            np.arctan2(to_base[:, 1], to_base[:, 0]),
            np.arccos(np.clip(cosine, -1.0, 1.0)),
        )
        below = -math.pi / 2  # the two sides meet straight below the disc
        low, high = middle - half, middle + half
        if finger.sign < 0.0:
            high = np.minimum(high, below)
        else:
            low = np.maximum(low, below)
        return low, high, np.asarray((np.abs(cosine) <= 1.0) & (low < high))

    def _inverse_kinematics(
        self, finger: _Finger, base: Array, places: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return the joint angles ``(..., 2)`` that bring the fingertip to ``places`` ``(..., 2)``,
        and which places it reaches.

        The elbow bends inwards. The left finger is the right one in a mirror: y and both angles
        change sign.
        """
        l1, l2 = self.link_lengths
        y = finger.sign * (places[..., 0] - base[..., 0])
        z = places[..., 1] - base[..., 1]
        bend = (y * y + z * z - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
        second = np.arccos(np.clip(bend, -1.0, 1.0))
        first = np.arctan2(z, y) - np.arctan2(l2 * np.sin(second), l1 + l2 * np.cos(second))
        first = (first + math.pi) % (2.0 * math.pi) - math.pi
        angles = finger.sign * np.stack((first, second), axis=-1)
        return angles, np.asarray(np.abs(bend) <= 1.0)

    @staticmethod
    def _put(q: Array, finger: _Finger, down: float, fold: float) -> None:
        """Set the joints of a finger, in place, in one configuration or many."""
        q[..., finger.first] = -finger.sign * down
        q[..., finger.first + 1] = finger.sign * fold

    def _close(self, model: Model, q: Array, index: int, clear: float, closed: float) -> None:
        """Move one joint from ``clear`` towards ``closed`` as far as nothing penetrates, in place."""
        while abs(closed - clear) > self.resolution:
            q[index] = 0.5 * (clear + closed)
            if _free(model, q[None])[0]:
                clear = float(q[index])
            else:
                closed = float(q[index])
        q[index] = clear


def _within(angles: Array, limits: Array) -> NDArray[np.bool_]:
    return np.asarray(((angles >= limits[0]) & (angles <= limits[1])).all(axis=-1))


def _free(model: Model, q: Array) -> NDArray[np.bool_]:
    """Return which configurations (n, nq) have no pair that touches or penetrates."""
    return np.asarray((checked_distances(model, q, ROUNDING) > 0.0).all(axis=1))
