"""Grasps anywhere on an object's surface, for any robot and any shape."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import fields, flag, instance, integer, number
from qdsim.model import Model
from qdsim.planning.grasps.closing import close_grasp, joint_limits, moved_bodies, near_pairs
from qdsim.planning.grasps.inverse_kinematics import reach_point
from qdsim.planning.grasps.samplers.touching import bodies_touching, sides, slopes
from qdsim.planning.motion.clearance import bounding_radii
from qdsim.planning.task.least_squares import least_squares_in_box
from qdsim.planning.task.space import Array

__all__ = ["SurfaceSampler"]

_APPROACHES = 12
"""Steps towards the object's surface; most need three."""


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceSampler:
    """Puts one fingertip on a random place of the object's surface, then closes the other fingers.

    It knows nothing of the robot or the object but what the model tells: a lone pusher, an arm, a
    gripper and a hand are all served, and objects of any shapes that collide. A tip is drawn, then a
    point near the object, from which the tip goes to the nearest place of the surface (closest points
    of the model, inverse kinematics); so every place is drawn that a tip can face from outside. Joints
    that move that tip alone, or no tip at the same time as it, then close towards the object until
    they touch (:func:`qdsim.planning.close_grasp`).

    Where a robot's tools are special, a sampler made for it will draw better grasps than this one.

    Attributes:
        object: name of the object's body; what it carries belongs to it.
        tips: names of the bodies that may touch it first; None takes the robot's last links, those that
            have shapes which collide with the object and carry no others that do.
        contacts: bodies of the robot that have to touch the object.
        close: whether the other fingers close.
        gap: distance that the robot keeps, m.
        reach: m; the point near the object lies within this of its bounding sphere. None: its radius.
        near: bodies nearer than this touch, m.
        draws: how often to try.
    """

    object: str
    tips: Sequence[str] | None = None
    contacts: int = 1
    close: bool = True
    gap: float = 1e-4
    reach: float | None = None
    near: float = 2e-3
    draws: int = 30

    def __post_init__(self) -> None:
        fields(self, instance, "object", kind=str)
        if self.tips is not None:
            if isinstance(self.tips, str) or not isinstance(self.tips, Sequence):
                raise TypeError(f"tips: expected names of bodies, got {type(self.tips).__name__}")
            for name in self.tips:
                instance("tips", name, str)
        fields(self, integer, "contacts", "draws", least=1)
        fields(self, number, "gap", "near", above=0)
        fields(self, number, "reach", above=0, or_none=True)
        fields(self, flag, "close")

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """A configuration ``(nq,)`` with the object unmoved, or None if no draw was good."""
        geoms = self._tip_geoms(model)
        centre, radius = self._ball(model, q)
        margin = 4.0 * radius + (radius if self.reach is None else self.reach)
        for _ in range(self.draws):
            tip = int(geoms[rng.integers(len(geoms))])
            direction = rng.standard_normal(3)
            length = radius + (radius if self.reach is None else self.reach) * rng.random()
            place = centre + direction * (length / max(float(np.linalg.norm(direction)), 1e-12))
            begin = self._posture(model, q, rng)
            found = self._approach(model, begin, tip, place, margin)
            if found is None:
                continue
            if self.close:
                found = self._close(model, found, tip, margin)
            if len(self.touching(model, found)) >= self.contacts:
                return found
        return None

    def touching(self, model: Model, q: Array) -> NDArray[np.intp]:
        """Indices of the robot's bodies that touch the object."""
        return bodies_touching(model, q, self.object, self.near)

    def _tip_geoms(self, model: Model) -> NDArray[np.intp]:
        """Indices of the shapes that may touch first."""
        own, robot = sides(model, self.object)
        pairs = model.geom_body[model.pair_geom]
        meets = np.zeros(len(model.geom_body), dtype=bool)
        for side in (0, 1):
            hit = robot[pairs[:, side]] & own[pairs[:, 1 - side]]
            meets[model.pair_geom[hit, side]] = True
        if self.tips is not None:
            chosen = [model.body_index(name) for name in self.tips]
        else:
            able = np.unique(model.geom_body[meets])
            index = {name: i for i, name in enumerate(model.body_names)}
            inner = set()
            for b in able.tolist():
                above = index[model.description.bodies[b].parent or "world"]
                while above != 0:
                    inner.add(above)
                    above = index[model.description.bodies[above].parent or "world"]
            chosen = [b for b in able.tolist() if b not in inner]
        found = np.flatnonzero(meets & np.isin(model.geom_body, chosen))
        if len(found) == 0:
            names = "no tip" if self.tips is None else f"none of {', '.join(self.tips)}"
            raise ValueError(f"tips: {names} can touch {self.object!r}")
        return found

    def _ball(self, model: Model, q: Array) -> tuple[Array, float]:
        """Centre ``(3,)`` and radius of a ball around the object's shapes, m."""
        own, _ = sides(model, self.object)
        pos, rot = model.body_poses(q)
        mine = np.flatnonzero(own[model.geom_body])
        radii = bounding_radii(model)
        geoms = model.description.geoms
        places = np.array(
            [
                pos[b] + rot[b] @ np.asarray(geoms[i].pos)
                for i, b in zip(mine, model.geom_body[mine])
            ]
        )
        centre = places.mean(axis=0)
        return centre, float((np.linalg.norm(places - centre, axis=1) + radii[mine]).max())

    def _posture(self, model: Model, q: Array, rng: np.random.Generator) -> Array:
        """Where the robot is, or half of the time somewhere within its joint limits."""
        lower, upper = joint_limits(model)
        result = np.array(q)
        share = rng.random(model.nu)
        if rng.random() < 0.5:
            bounded = np.isfinite(lower) & np.isfinite(upper)
            anywhere = np.where(bounded, lower, 0.0) + share * np.where(bounded, upper - lower, 0.0)
            rows = model.actuated_q
            result[rows] = np.where(bounded, anywhere, result[rows])
        return result

    def _approach(
        self, model: Model, q: Array, tip: int, place: Array, margin: float
    ) -> Array | None:
        """The tip near ``place``, then at the surface there; None if it does not come to touch.

        From near the place, Gauss-Newton steps on the distance itself, by the smallest motions of the joints
        within their limits: a long link that turns on its way meets the object with another of its points, and a
        robot that does not get to the place touches what it gets to.
        """
        body = model.body_names[int(model.geom_body[tip])]
        point = np.asarray(model.description.geoms[tip].pos)
        # Nearly there is near enough: a robot that moves in a plane reaches no point beside it.
        here = reach_point(model, q, body, point, place, tolerance=1e-2, iteration_limit=10).q
        rows = model.actuated_q
        lower, upper = joint_limits(model)
        last = math.inf
        for _ in range(_APPROACHES):
            nearest = self._nearest(model, here, tip, margin)
            if nearest is None:
                return None
            distance = float(nearest["dist"][0])
            if 0.0 <= distance <= 2.0 * self.gap:
                return here if len(near_pairs(model, here, 0.0)) == 0 else None
            if abs(distance) > 0.9 * last:
                return None  # out of reach
            last = abs(distance)
            slope = slopes(model, here, self.object, nearest)
            room = np.minimum(lower - here[rows], 0.0), np.maximum(upper - here[rows], 0.0)
            here[rows] += least_squares_in_box(slope, self.gap - nearest["dist"], *room)
        return None

    def _nearest(self, model: Model, q: Array, tip: int, margin: float) -> NDArray[np.void] | None:
        """The nearest contact of a shape and the object, an array of one."""
        own, _ = sides(model, self.object)
        contacts = model.collide(q, margin)
        first = (contacts["geom_a"] == tip) & own[contacts["body_b"]]
        second = (contacts["geom_b"] == tip) & own[contacts["body_a"]]
        rows = np.flatnonzero(first | second)
        if len(rows) == 0:
            return None
        row = rows[int(contacts["dist"][rows].argmin())]
        return contacts[row : row + 1]

    def _close(self, model: Model, q: Array, tip: int, margin: float) -> Array:
        """The other fingers move towards the object until they touch."""
        moves = moved_bodies(model)
        own, _ = sides(model, self.object)
        free = ~moves[:, int(model.geom_body[tip])]
        rate = np.zeros(model.nu)
        contacts = model.collide(q, margin)
        best: dict[int, tuple[float, int, float]] = {}
        for row, c in enumerate(contacts):
            for side, other, sign in (("a", "b", 1.0), ("b", "a", -1.0)):
                b = int(c[f"body_{side}"])
                served = own[c[f"body_{other}"]] and np.any(moves[free, b])
                if served and (b not in best or c["dist"] < best[b][0]):
                    best[b] = (float(c["dist"]), row, sign)
        for b, (_, row, sign) in best.items():
            c = contacts[row]
            pos, rot = model.body_pose(q, model.body_names[b])
            inwards = sign * c["frame"][0]
            here = c["pos"] - 0.5 * sign * c["dist"] * c["frame"][0]
            J = np.asarray(model.jacobian(q, model.body_names[b], rot.T @ (here - pos)))
            rate += np.where(free, inwards @ J[:3][:, model.actuated_v], 0.0)
        # A hinge at most half a turn, a slide as far as the object may be away.
        turns = float((np.abs(rate) / np.where(_hinges(model), math.pi, margin)).max(initial=0.0))
        return close_grasp(model, q, rate / turns, resolution=0.1).q if turns > 0.0 else q


def _hinges(model: Model) -> NDArray[np.bool_]:
    kinds = {model.slice_v(j.name).start: j.type for j in model.description.joints}
    return np.array([kinds[int(v)] == "hinge" for v in model.actuated_v])
