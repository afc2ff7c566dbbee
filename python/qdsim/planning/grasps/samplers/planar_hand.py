"""Grasps of a disc by two fingers of two links in the plane."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT, fields, instance, integer, number
from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["PlanarHandSampler"]

DOWN, STRAIGHT = math.pi / 2, 0.0


class _Finger(NamedTuple):
    """One finger: the sign of its side, its base in the world and where its joints lie in q."""

    sign: float  # -1 left, +1 right: joint angles and the y axis are mirrored
    base: Array  # (2,) y and z, m
    first: int  # index of joint 1 in q; joint 2 follows
    limits: Array  # (2, 2) lower and upper of both joints, rad


@dataclasses.dataclass(frozen=True)
class PlanarHandSampler:
    """The two published grasps of the planar hand, and the coin between them.

    *Pinch*: each fingertip at a random place on its side of the disc, one millimetre away from it.
    *Enveloping*: both fingers folded inwards joint by joint until the next bit would touch, right
    finger first. If no pinch is found the enveloping grasp is tried. What is returned lies within
    the model's joint limits and no pair of the whole model penetrates, the fingers' own included.

    Attributes:
        pinch_probability: how often a pinch is tried first.
        object: body of the disc.
        bases: bodies of the finger bases, left and right.
        joints: first joints of the fingers, left and right; the second joint comes next in q.
        link_lengths: base to knuckle and knuckle to fingertip, m.
        tip_distance: from the disc's centre to that of a pinching fingertip: radius of the disc,
            radius of the tip and a gap, m.
        draws: fingertip places tried for each finger.
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
    """Of `place`: where the left and the right fingertip are on their parts of the disc's outline."""

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """The pinch ``(nq,)`` at the object's pose whose tips are a share (1 + x) / 2 of the way along what they can
        reach, ``x`` (2,) in [-1, 1], or as near to that as the fingers get, of `draws` places; None if nowhere.
        """
        wanted = 0.5 * (1.0 + np.asarray(x)[:, None])
        shares = np.append(wanted, np.tile(np.linspace(0.0, 1.0, self.draws), (2, 1)), axis=1)
        order = np.argsort(np.abs(shares - wanted), axis=1, kind="stable")
        return self._pinched(model, q, np.take_along_axis(shares, order, axis=1))

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """A new configuration ``(nq,)`` with the object unmoved, or None if neither grasp
        exists.
        """
        if rng.random() < self.pinch_probability:
            grasp = self.pinch(model, q, rng)
            if grasp is not None:
                return grasp
        return self.envelop(model, q)

    def envelop(self, model: Model, q: Array) -> Array | None:
        """The enveloping grasp at the object's pose, or None. Deterministic."""
        _, left, right = self._scene(model, q)
        result = np.array(q)
        for finger in (left, right):  # out of the way: pointing down
            self._put(result, finger, DOWN, STRAIGHT)
        for finger in (right, left):
            self._put(result, finger, STRAIGHT, STRAIGHT)
            # From pointing down to pointing up, then from straight to folded inwards.
            self._close(model, result, finger.first, -finger.sign * DOWN, finger.sign * DOWN)
            self._close(model, result, finger.first + 1, STRAIGHT, finger.sign * DOWN)
        for finger in (left, right):
            if not _within(result[finger.first : finger.first + 2], finger.limits):
                return None
        return result if _free(model, result) else None

    def pinch(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """A random pinch at the object's pose, or None."""
        return self._pinched(model, q, rng.random((2, self.draws)))

    def _pinched(self, model: Model, q: Array, shares: Array) -> Array | None:
        """The pinch whose left and right tips are the first of these shares (2, k) of what they reach that are free."""
        centre, left, right = self._scene(model, q)
        alone, result = np.array(q), np.array(q)
        for finger, other, share in ((left, right, shares[0]), (right, left, shares[1])):
            own = slice(finger.first, finger.first + 2)
            reach = self._reachable_angles(finger, centre)
            if reach is None:
                return None
            angles = reach[0] + share * (reach[1] - reach[0])
            places = centre + self.tip_distance * np.array([np.cos(angles), np.sin(angles)]).T
            self._put(alone, other, STRAIGHT, STRAIGHT)
            candidates = self._inverse_kinematics(finger, places)
            for joints in candidates[_within(candidates, finger.limits)]:
                alone[own] = joints
                if _free(model, alone):
                    result[own] = joints
                    break
            else:
                return None
        return result if _free(model, result) else None

    def _scene(self, model: Model, q: Array) -> tuple[Array, _Finger, _Finger]:
        """Centre ``(2,)`` of the disc, and the fingers."""
        pos, _ = model.body_poses(q)
        left, right = (
            _Finger(
                sign,
                pos[model.body_names.index(base), 1:],
                model.slice_q(joint).start,
                model.joint_range[model.joint_names.index(joint) :][:2].T,
            )
            for sign, base, joint in zip((-1.0, 1.0), self.bases, self.joints)
        )
        return pos[model.body_names.index(self.object), 1:], left, right

    def _reachable_angles(self, finger: _Finger, centre: Array) -> tuple[float, float] | None:
        """Between which directions from the disc's centre a fingertip can reach, on its own side."""
        to_base = finger.base - centre
        b = math.hypot(*to_base)
        r, reach = self.tip_distance, sum(self.link_lengths)
        cosine = (r * r + b * b - reach * reach) / (2.0 * r * b) if b > 0.0 else 2.0
        if not -1.0 <= cosine <= 1.0:
            return None
        middle, half = math.atan2(to_base[1], to_base[0]), math.acos(cosine)
        below = -math.pi / 2  # straight below the disc the sides meet
        low, high = middle - half, middle + half
        low, high = (low, min(high, below)) if finger.sign < 0.0 else (max(low, below), high)
        return (low, high) if low < high else None

    def _inverse_kinematics(self, finger: _Finger, places: Array) -> Array:
        """Joint angles ``(k, 2)`` that bring the fingertip to ``places`` ``(N, 2)``, unreachable
        ones left out.

        The elbow bends inwards. The left finger is the right one in a mirror: y and both angles
        change sign.
        """
        l1, l2 = self.link_lengths
        y = finger.sign * (places[:, 0] - finger.base[0])
        z = places[:, 1] - finger.base[1]
        bend = (y * y + z * z - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
        keep = np.abs(bend) <= 1.0
        y, z = y[keep], z[keep]
        second = np.arccos(bend[keep])
        first = np.arctan2(z, y) - np.arctan2(l2 * np.sin(second), l1 + l2 * np.cos(second))
        first = (first + math.pi) % (2.0 * math.pi) - math.pi
        angles: Array = np.array([first, second]).T
        return finger.sign * angles

    @staticmethod
    def _put(q: Array, finger: _Finger, down: float, fold: float) -> None:
        q[finger.first] = -finger.sign * down
        q[finger.first + 1] = finger.sign * fold

    def _close(self, model: Model, q: Array, index: int, clear: float, closed: float) -> None:
        """Moves one joint from ``clear`` towards ``closed`` for as long as nothing penetrates, in
        place.
        """
        while abs(closed - clear) > self.resolution:
            q[index] = 0.5 * (clear + closed)
            if _free(model, q):
                clear = float(q[index])
            else:
                closed = float(q[index])
        q[index] = clear


def _within(angles: Array, limits: Array) -> NDArray[np.bool_]:
    return np.asarray(((angles >= limits[0]) & (angles <= limits[1])).all(axis=-1))


def _free(model: Model, q: Array) -> bool:
    return len(model.collide(q, 0.0)) == 0
