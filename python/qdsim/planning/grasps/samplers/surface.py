"""Grasps at random places of an object's surface, for any robot and any shape."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import fields, flag, instance, integer, number, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.closing import close_grasp
from qdsim.planning.grasps.inverse_kinematics import reach_point
from qdsim.planning.grasps.samplers.carrying import CARRIES, carrying_effort, hangs
from qdsim.planning.grasps.samplers.touching import (
    CHOICES,
    RARELY,
    bodies_touching,
    contacts_between,
    meeting_geoms,
    sides,
    tip_bodies,
)
from qdsim.planning.task.drives import check_joints_lead, robot_joints
from qdsim.planning.task.followers import by_drives, with_followers
from qdsim.planning.task.least_squares import PATIENCE, STEPS, least_squares_in_box, room
from qdsim.planning.task.robot import (
    bounding_radii,
    gap_slopes,
    joint_limits,
    moved_bodies,
    too_near,
    turning,
)

__all__ = ["SurfaceSampler"]

_ASIDE = 0.4
"""Standard deviation in rad of the directions of several fingers around the direction opposite to the first."""

_FURTHER = 4.0
"""After a step towards the surface, a tip is searched up to this multiple of its distance."""


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceSampler:
    """Puts one fingertip on a random place of the object's surface, then closes the other fingers.

    The sampler uses only the model, so it serves any robot (a pusher, an arm, a gripper, a hand)
    and objects of any shapes that collide. It draws a tip, then a point near the object, and moves
    the tip to the nearest place of the surface by closest points and inverse kinematics. Every
    place that the tip can reach from outside can therefore be drawn. The joints that move this tip
    alone, or no tip together with it, then close towards the object until they touch
    (:func:`qdsim.planning.close_grasp`).

    For robots with special tools, a sampler made for the robot will draw better grasps.

    A policy chooses grasps by :meth:`place`, and motions of the tip by :meth:`stroke`
    (:class:`~qdsim.planning.samplers.ParametricSampler`).

    Attributes:
        object: name of the object's body; bodies that it carries belong to it.
        tips: names of the bodies that may touch the object first; None: the robot's last links,
            whose shapes collide with the object and which carry no other such links.
        contacts: bodies of the robot that have to touch the object.
        close: whether the other fingers close.
        gap: distance that the robot keeps, m.
        reach: the point near the object lies within this distance of its bounding sphere, m. None:
            its radius.
        near: bodies within this distance touch, m.
        draws: largest number of attempts, four times as many for grasps that carry.
        carry: whether the grasp has to hold the object against gravity by itself. Several fingers
            are then moved to opposite places at once, and the sampler returns the first grasp that
            holds with moderate forces
            (:func:`qdsim.planning.grasps.samplers.carrying.carrying_effort`), or the best one of
            all attempts. None: if gravity acts on the object and the robot has at least two tips; a
            planner also checks whether the goal lies on a support.
    """

    parameters: ClassVar[int] = 4
    stroke_parameters: ClassVar[int] = 3
    in_world: ClassVar[bool] = True

    object: str
    tips: Sequence[str] | None = None
    contacts: int = 1
    close: bool = True
    gap: float = 1e-4
    reach: float | None = None
    near: float = 2e-3
    draws: int = 30
    carry: bool | None = None

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
        if self.carry is not None:
            fields(self, flag, "carry")

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the object unmoved, or None if no attempt succeeded."""
        tips, _ = self._tip_geoms(model)
        several = len(np.unique(model.geom_body[tips])) > 1
        carry = self.carry
        if carry is None:
            carry = several and hangs(model, q, self.object)
        best, least = None, math.inf
        for _ in range(self.draws * (CHOICES if carry else 1)):
            found = self.attempt(model, q, rng, carry and several)
            if found is None:
                continue
            if not carry:
                return found
            effort = carrying_effort(model, found, self.object, self.near)
            if effort < least:
                best, least = found, effort
            if least < CARRIES:
                break
        return best

    def attempt(
        self, model: Model, q: Array, rng: np.random.Generator, opposed: bool
    ) -> Array | None:
        """Compute one configuration ``(nq,)`` in which enough bodies touch the object; None if the attempt failed.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
            rng: draws the shapes that come to the object, and their places.
            opposed: whether several fingers come to it, from opposite sides.
        """
        tips, inner = self._tip_geoms(model)
        parts = self._parts(model)
        chosen, ways = self._choice(model, tips, inner, opposed, rng)
        one = opposed and len(parts) > 1 and rng.random() < 0.5
        around = self._part(model, q, int(rng.choice(parts))) if one else self._ball(model, q)
        return self._drawn(model, q, chosen, ways, around, rng)

    def beside(self, model: Model, grasp: Array, rng: np.random.Generator) -> Array | None:
        """Compute a grasp ``(nq,)`` near another one: some of its tips touch the object beside where they did.

        None if too few bodies touch then. A tip moves by about its size.

        Args:
            model: the model.
            grasp: ``(nq,)`` the other grasp.
            rng: draws which tips move, and where to.
        """
        tips, _ = self._tip_geoms(model)
        contacts = contacts_between(model, grasp, self.object, self.near)
        pairs = np.column_stack((contacts["geom_a"], contacts["geom_b"]))
        geoms = pairs[np.isin(pairs, tips)]
        _, first = np.unique(model.geom_body[geoms], return_index=True)
        chosen = geoms[np.sort(first)].astype(np.intp)
        if len(chosen) == 0:
            return None
        pos, rot = model.body_poses(grasp)
        places = np.array(
            [
                pos[b] + rot[b] @ np.asarray(model.description.geoms[geom].pos)
                for geom, b in zip(chosen, model.geom_body[chosen])
            ]
        )
        moves = rng.random(len(chosen)) < 0.5
        size = np.where(moves, bounding_radii(model)[chosen], 0.0)
        places += size[:, None] * rng.standard_normal(places.shape)
        _, radius = self._ball(model, grasp)
        return self._touching_at(model, grasp, grasp, chosen, places, radius)

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """Compute the grasp ``(nq,)`` of a given tip at a given side of the object; None if it does not touch there.

        Args:
            model: the model.
            q: ``(nq,)`` configuration with the object in its pose.
            x: ``(4,)`` in [-1, 1]: the tip, of the shapes of :attr:`tips` in equal parts; and the
                direction from the middle of the object, in the object's axes, from which the tip comes.
        """
        tips, _ = self._tip_geoms(model)
        numbers = vector("x", x, self.parameters)
        tip, way = self._asked(tips, numbers), numbers[1:]
        if not way.any():
            return None
        check_joints_lead(model, "SurfaceSampler")
        centre, radius = self._ball(model, q)
        reach = radius if self.reach is None else self.reach
        _, rot = model.body_pose(q, self.object)
        places = centre + (rot @ _units(way)) * (radius + 0.5 * reach)
        begin = with_followers(model, np.array(q))
        return self._touching_at(model, q, begin, tip, places[None], 4.0 * radius + reach)

    def stroke(self, model: Model, q: Array, x: Array, y: Array) -> Array:
        """Compute changes ``(n, nu)`` of the command that move the tips of grasps, and leave the other fingers.

        Args:
            model: the model.
            q: ``(n, nq)`` grasps.
            x: ``(n, 4)``, as for :meth:`place`.
            y: ``(n, 3)`` in [-1, 1]: motions of the tip along the object's axes, in radii of the
                object's bounding sphere.
        """
        tips, _ = self._tip_geoms(model)
        change = np.zeros((len(q), model.nu))
        for here, numbers, how, row in zip(q, x, y, change):
            tip = self._asked(tips, numbers)
            body, point = int(model.geom_body[tip[0]]), model.description.geoms[tip[0]].pos
            _, rot = model.body_pose(here, self.object)
            _, radius = self._ball(model, here)
            J = by_drives(model, np.asarray(model.jacobian(here, body, point))[:3])
            row += np.linalg.lstsq(J, radius * (rot @ how), rcond=0.1)[0]
        return np.asarray(change * np.asarray(model.actuator_gear))

    @staticmethod
    def _asked(tips: NDArray[np.intp], x: Array) -> NDArray[np.intp]:
        """Return the shape ``(1,)`` of tips that the first number of :meth:`place` chooses."""
        k = min(int(0.5 * (1.0 + x[0]) * len(tips)), len(tips) - 1)
        return tips[[max(k, 0)]]

    def _choice(
        self,
        model: Model,
        tips: NDArray[np.intp],
        inner: NDArray[np.intp],
        opposed: bool,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.intp], Array]:
        """Draw the shapes that approach the object, and the directions ``(n, 3)`` from which they come."""
        if opposed:
            chosen = self._fingers(model, tips, rng)
            return chosen, self._opposed(model, len(chosen), rng)
        # A link that carries a tip can push at places that the tip does not reach.
        geoms = inner if len(inner) and rng.random() < RARELY else tips
        chosen = geoms[[rng.integers(len(geoms))]]
        return chosen, _units(rng.standard_normal((1, 3)))

    def _drawn(
        self,
        model: Model,
        q: Array,
        chosen: NDArray[np.intp],
        ways: Array,
        ball: tuple[Array, float],
        rng: np.random.Generator,
    ) -> Array | None:
        """Return a configuration in which enough bodies touch, after moving the chosen shapes near
        the object; None if there is none."""
        centre, radius = ball
        reach = radius if self.reach is None else self.reach
        places = centre + ways * (radius + reach * rng.random())
        begin = self._posture(model, q, rng)
        return self._touching_at(model, q, begin, chosen, places, 4.0 * radius + reach)

    def _touching_at(
        self,
        model: Model,
        q: Array,
        begin: Array,
        chosen: NDArray[np.intp],
        places: Array,
        margin: float,
    ) -> Array | None:
        """Return a configuration in which the chosen shapes touch the object near their places, and enough bodies
        touch; None if there is none."""
        found = self._approach(model, begin, chosen, places, margin)
        if found is None:
            return None
        if self.close:
            found = self._close(model, found, chosen, margin)
        found = _unwound(model, q, found)
        return found if len(self.touching(model, found)) >= self.contacts else None

    def touching(self, model: Model, q: Array) -> NDArray[np.intp]:
        """Indices of the robot's bodies that touch the object.

        Args:
            model: the model.
            q: ``(nq,)`` configuration.
        """
        return bodies_touching(model, q, self.object, self.near)

    def _tip_geoms(self, model: Model) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return indices of the shapes that may touch first: those of tips, and those of links that carry tips."""
        meets = meeting_geoms(model, self.object)
        if self.tips is not None:
            chosen = [model.body_index(name) for name in self.tips]
        else:
            chosen = tip_bodies(model, self.object)
        found = np.flatnonzero(meets & np.isin(model.geom_body, chosen))
        if len(found) == 0:
            names = "no tip" if self.tips is None else f"none of {', '.join(self.tips)}"
            raise ValueError(f"tips: {names} can touch {self.object!r}")
        others = np.flatnonzero(meets) if self.tips is None else found
        return found, np.setdiff1d(others, found)

    def _ball(self, model: Model, q: Array) -> tuple[Array, float]:
        """Return the centre ``(3,)`` and the radius, m, of a ball around the object's shapes."""
        pos, rot = model.body_poses(q)
        mine = self._parts(model)
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

    def _parts(self, model: Model) -> NDArray[np.intp]:
        """Return the indices of the object's shapes."""
        own, _ = sides(model, self.object)
        return np.flatnonzero(own[model.geom_body])

    def _part(self, model: Model, q: Array, shape: int) -> tuple[Array, float]:
        """Return the centre ``(3,)`` and the radius, m, of a ball around one of the object's shapes.

        Fingers around one part hold an object that is too large to be held as a whole.
        """
        b = int(model.geom_body[shape])
        pos, rot = model.body_pose(q, model.body_names[b])
        centre = pos + rot @ np.asarray(model.description.geoms[shape].pos)
        return centre, float(bounding_radii(model)[shape])

    def _fingers(
        self, model: Model, tips: NDArray[np.intp], rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Draw one shape of each of two or more fingers; the first finger opposes the others."""
        bodies = model.geom_body[tips]
        each = rng.permutation(np.unique(bodies))
        count = int(rng.integers(2, len(each) + 1))
        return np.array([rng.choice(tips[bodies == b]) for b in each[:count]], dtype=np.intp)

    def _opposed(self, model: Model, count: int, rng: np.random.Generator) -> Array:
        """Draw unit vectors ``(count, 3)``: a random one, and others near its opposite. In half of
        the draws the line is horizontal."""
        line = rng.standard_normal(3)
        up = np.asarray(model.parameters.gravity)
        if rng.random() < 0.5 and np.any(up):
            line -= up * (line @ up) / (up @ up)
        line = _units(line)
        aside = _ASIDE * rng.standard_normal((count, 3)) * (count > 2)
        aside[0] = 0.0
        return _units(np.where(np.arange(count)[:, None] == 0, line, -line) + aside)

    def _posture(self, model: Model, q: Array, rng: np.random.Generator) -> Array:
        """Return the robot's posture, or in half of the draws a random one within its joint limits,
        hinges within half a turn."""
        check_joints_lead(model, "SurfaceSampler")
        result, rows = np.array(q), model.actuated_q
        share = rng.random(model.nu)
        if rng.random() < 0.5:
            here = result[rows]
            half = np.where(turning(model), np.pi, np.inf)
            lower, upper = joint_limits(model)
            lower, upper = np.maximum(lower, here - half), np.minimum(upper, here + half)
            bounded = np.isfinite(lower) & np.isfinite(upper)
            anywhere = np.where(bounded, lower, 0.0) + share * np.where(bounded, upper - lower, 0.0)
            result[rows] = np.where(bounded, anywhere, here)
        return with_followers(model, result)

    def _approach(
        self, model: Model, q: Array, tips: NDArray[np.intp], places: Array, margin: float
    ) -> Array | None:
        """Move the tips near their places, then to the surface there; None if one does not touch.

        Gauss-Newton steps on the distances start near the places and use the smallest motions of
        the joints within their limits. The nearest point of a link may change: a long link that
        rotates meets the object with another point. A robot that cannot reach a place touches
        the nearest part of the surface that it reaches. The same steps keep obstacles at a distance.
        """
        here = self._go_near(model, q, tips, places)
        rows = model.actuated_q
        lower, upper = joint_limits(model)
        least, patience = math.inf, PATIENCE
        for _ in range(STEPS):
            contacts = model.collide(here, margin)
            nearest = self._nearest(model, contacts, tips)
            if len(nearest) < len(tips):
                return None
            others = np.setdiff1d(too_near(model, contacts, self.gap), nearest)
            distances = contacts["dist"][nearest]
            depth = -float(contacts["dist"][others].min(initial=0.0))
            if np.all((distances >= 0.0) & (distances <= 2.0 * self.gap)) and depth <= 0.0:
                return here
            away = float(np.abs(distances - self.gap).max())
            left = max(away, depth)
            if left < 0.9 * least:
                least, patience = left, PATIENCE
            patience -= 1
            if patience < 0:
                return None  # out of reach, or blocked by the robot itself
            margin = min(margin, _FURTHER * away + self.gap)
            active = contacts[np.append(others, nearest)]
            wanted = self.gap - active["dist"]
            here[rows] += least_squares_in_box(
                gap_slopes(model, here, active), wanted, *room(here[rows], lower, upper)
            )
            with_followers(model, here)
        return None

    def _go_near(self, model: Model, q: Array, tips: NDArray[np.intp], places: Array) -> Array:
        """Return a configuration with the tips as near to their places as possible."""
        # A rough solution suffices: a robot that moves in a plane cannot reach a point beside it.
        bodies = model.geom_body[tips]
        points = [np.asarray(model.description.geoms[tip].pos) for tip in tips]
        if len(tips) == 1:
            name = model.body_names[int(bodies[0])]
            found = reach_point(
                model, q, name, points[0], places[0], tolerance=1e-2, iteration_limit=10
            )
            return found.q
        here, rows = np.array(q), model.actuated_q
        lower, upper = joint_limits(model)
        best, least = here, math.inf
        for _ in range(STEPS):
            pos, rot = model.body_poses(here)
            ends = np.array([pos[b] + rot[b] @ p for b, p in zip(bodies, points)])
            e = (places - ends).ravel()
            cost = float(e @ e)
            if cost < least:
                best, least = here.copy(), cost
            if cost > 2.0 * least or cost < 1e-4:
                break
            J = [model.jacobian(here, int(b), p)[:3] for b, p in zip(bodies, points)]
            within = room(here[rows], lower, upper)
            columns = by_drives(model, np.vstack(J))
            here[rows] += least_squares_in_box(columns, e, *within, regularization=1e-4)
            with_followers(model, here)
        return best

    def _nearest(
        self, model: Model, contacts: NDArray[np.void], tips: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the indices of the nearest contact of each shape with the object; shapes out of
        range are left out."""
        own, _ = sides(model, self.object)
        found = []
        for tip in tips:
            first = (contacts["geom_a"] == tip) & own[contacts["body_b"]]
            second = (contacts["geom_b"] == tip) & own[contacts["body_a"]]
            rows = np.flatnonzero(first | second)
            if len(rows):
                found.append(rows[contacts["dist"][rows].argmin()])
        return np.array(found, dtype=np.intp)

    def _close(self, model: Model, q: Array, tips: NDArray[np.intp], margin: float) -> Array:
        """Close the other fingers towards the object until they touch."""
        moves = moved_bodies(model)
        own, _ = sides(model, self.object)
        free = ~moves[:, model.geom_body[tips]].any(axis=1)
        if not free.any():
            return q
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
            rate += np.where(free, inwards @ by_drives(model, J[:3]), 0.0)
        # Hinges turn by at most half a turn, slides move at most as far as the object may be away.
        turns = float((np.abs(rate) / np.where(_hinges(model), math.pi, margin)).max(initial=0.0))
        return close_grasp(model, q, rate / turns, resolution=0.1).q if turns > 0.0 else q


def _unwound(model: Model, q: Array, found: Array) -> Array:
    """Return the same pose ``(nq,)`` with each hinge within half a turn of its angle in ``q``, if
    its limits allow this.

    Motions over full turns are long and often blocked.
    """
    rows, lower, upper = model.actuated_q, *joint_limits(model)
    alone = np.count_nonzero(by_drives(model, np.eye(model.nv)), axis=0) == 1
    turns = math.tau * np.round((found[rows] - q[rows]) / math.tau) * (turning(model) & alone)
    wound = found[rows] - turns
    result = np.array(found)
    result[rows] = np.where((lower <= wound) & (wound <= upper), wound, found[rows])
    return result


def _units(vectors: Array) -> Array:
    """Divide vectors ``(..., 3)`` by their lengths."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


def _hinges(model: Model) -> NDArray[np.bool_]:
    return np.array([joint.type == "hinge" for joint in robot_joints(model)])
