"""Closing a grasp: fingers move until they touch."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdsim.arguments import instance, number, vector
from qdsim.array_type import Array
from qdsim.batches.queries import checked_distances, meetings, pair_distances
from qdsim.model import Model
from qdsim.planning.task.drives import owners, robot_limits, robot_q, robot_v, shares, sharing
from qdsim.planning.task.followers import with_followers
from qdsim.planning.task.robot import driven_bodies, moved_bodies

__all__ = ["Closing", "Closings", "close_grasp", "close_grasps", "meet"]


@dataclasses.dataclass(frozen=True, eq=False)
class Closing:
    """Result of ``close_grasp``: where the fingers stopped.

    Attributes:
        q: ``(nq,)`` configuration; no pair is nearer than the requested gap.
        touching: indices of the bodies that stopped a joint by touching another body, ascending.
        blocked: ``(nu,)`` bool, actuators with a joint that stopped because a body that it moves
            touched something.
        at_limit: ``(nu,)`` bool, actuators with a joint that stopped at its limit. The others moved
            to the end.
    """

    q: Array
    touching: tuple[int, ...]
    blocked: NDArray[np.bool_]
    at_limit: NDArray[np.bool_]


def close_grasp(
    model: Model,
    q: ArrayLike,
    direction: ArrayLike,
    *,
    reach: float = 1.0,
    resolution: float = 0.05,
    tolerance: float = 1e-4,
    gap: float = 0.0,
) -> Closing:
    """Move the actuated joints along ``direction`` until each meets an object or its limit (as in
    CQDC §VII-C).

    All joints move together. If two bodies touch, the joints that move them relative to each other
    stop, and the others continue: if the first link of a finger touches, its outer links bend
    around the object, and the other fingers keep closing. The same holds for joints that share a
    tendon, whose length at first moves all of them. Contact is found by steps, then by bisection
    from the free side, so the result does not penetrate. If ``q`` penetrates already, the joints
    that could move the two bodies relative to each other do not move; pairs that no joint moves
    relative to each other (an object in its support) are ignored.

    Args:
        model: the model.
        q: ``(nq,)`` configuration with open fingers. Coordinates without actuators stay.
        direction: ``(nu,)`` velocities of the actuated joints, rad or m per unit (of the tendon's
            length for tendons); joints with a zero do not move.
        reach: joints end at ``q + reach * direction`` if nothing is in their way.
        resolution: longest step of a joint, rad or m; objects thinner than this times the finger's
            length may be missed.
        tolerance: joints stop within this distance of the contact, rad or m.
        gap: pairs nearer than this count as touching, m, >= 0.

    Raises:
        ValueError: if an argument is invalid; the message names it.
    """
    instance("model", model, Model)
    here = np.array(vector("q", q, model.nq))
    rate = vector("direction", direction, model.nu)
    reach = number("reach", reach, above=0)
    resolution = number("resolution", resolution, above=0)
    tolerance = number("tolerance", tolerance, above=0)
    gap = number("gap", gap, least=0)
    found = close_grasps(model, here[None], rate[None], reach, resolution, tolerance, gap)
    touching = np.flatnonzero(found.touching[0]).tolist()
    return Closing(found.q[0], tuple(touching), found.blocked[0], found.at_limit[0])


class Closings(NamedTuple):
    """Result of ``close_grasps``.

    Configurations (n, nq); bodies that stopped a joint (n, bodies); joints that touched something
    (n, nu) or stopped at their limits (n, nu).
    """

    q: Array
    touching: NDArray[np.bool_]
    blocked: NDArray[np.bool_]
    at_limit: NDArray[np.bool_]


def close_grasps(
    model: Model,
    q: Array,
    direction: Array,
    reach: float = 1.0,
    resolution: float = 0.05,
    tolerance: float = 1e-4,
    gap: float = 0.0,
) -> Closings:
    """Close hands from configurations (n, nq) along directions (n, nu), as ``close_grasp`` does for one."""
    hands = _Hands(model, q, direction, gap)
    everyone = np.arange(len(q))
    hands.stop(everyone, checked_distances(model, q, gap) < gap)
    fastest = np.maximum(np.abs(direction).max(axis=1, initial=0.0), 1e-300)
    travelled, going = np.zeros(len(q)), hands.active.any(axis=1)
    while True:
        rows = np.flatnonzero(going)
        if len(rows) == 0:
            return Closings(hands.q, hands.touching, *hands.stopped())
        room = hands.room(rows)
        end = np.minimum(reach - travelled[rows], room.min(axis=1))
        way = np.stack((resolution / fastest[rows], end, tolerance / fastest[rows]), axis=1)
        travel, pairs = hands.travel(rows, way)
        travelled[rows] += travel
        hit = np.asarray(pairs.any(axis=1))
        hands.end_at_limits(rows, ~hit[:, None] & (room <= travel[:, None]))
        # A hand stops if its moving joints did not cause the contact.
        going[rows] = hands.stop(rows, pairs) | ~hit
        going[rows] &= hands.active[rows].any(axis=1) & (travelled[rows] < reach)


def meet(model: Model, q: Array) -> NDArray[np.bool_]:
    """Return which configurations (n, nq) have a penetrating pair that actuated joints move
    relative to each other."""
    moves, body = moved_bodies(model), _pair_bodies(model)
    apart = (moves[:, body[:, 0]] != moves[:, body[:, 1]]).any(axis=0)
    return np.asarray((pair_distances(model, q, 0.0, threads=1)[:, apart] < 0.0).any(axis=1))


def _pair_bodies(model: Model) -> NDArray[np.intp]:
    """Return the bodies (pairs, 2) of all pairs of geometries."""
    found: NDArray[np.intp] = np.asarray(model.geom_body)[
        np.asarray(model.pair_geom).reshape(-1, 2)
    ]
    return found


class _Hands:
    """The state of closing hands: their configurations, and which joints still move."""

    def __init__(self, model: Model, q: Array, rate: Array, gap: float) -> None:
        self.model, self.q, self.gap = model, q.copy(), gap
        self.rows, self.owners = robot_q(model), owners(model)
        self.rate = rate
        moves = moved_bodies(model)
        if sharing(model):
            self.rate = np.zeros((len(q), len(self.rows)))
            for own, here, fast in zip(self.rate, q, rate):
                own[:] = shares(model, here)[robot_v(model)] @ fast
            moves = driven_bodies(model)
        body = _pair_bodies(model)
        a, b = body[:, 0], body[:, 1]
        every = np.arange(moves.shape[1])
        # For the first and second bodies of pairs: which joints move them, and their indices as a
        # one-hot array.
        self.sides = [(moves[:, x], x[:, None] == every) for x in (a, b)]
        apart = moves[:, a] != moves[:, b]
        self.apart = np.ascontiguousarray(apart.T)
        self.active = self.rate != 0.0
        self.touching = np.zeros((len(q), moves.shape[1]), dtype=bool)
        self.blocked, self.at_limit = np.zeros_like(self.active), np.zeros_like(self.active)
        self.lower, self.upper = robot_limits(model)

    def stop(self, rows: NDArray[np.intp], pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Stop the joints that move the two bodies of a pair (n, pairs) relative to each other.

        It returns in which hands (n,) a joint stopped.
        """
        # These are products of booleans. Floats would use BLAS, whose threads cost more time than
        # they save here.
        involved = (pairs @ self.apart) & self.active[rows]
        for by, of_body in self.sides:
            self.touching[rows] |= ((involved @ by) & pairs) @ of_body
        self.blocked[rows] |= involved
        self.active[rows] &= ~involved
        return np.asarray(involved.any(axis=1))

    def room(self, rows: NDArray[np.intp]) -> Array:
        """Return the distance (n, nu) of joints to their limits, in units of their rates; infinite
        for joints that do not move."""
        rate = self.rate[rows]
        ends = np.where(rate > 0.0, self.upper, self.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = (ends - self.q[rows][:, self.rows]) / rate
        return np.where(self.active[rows], np.maximum(ahead, 0.0), np.inf)

    def travel(self, rows: NDArray[np.intp], way: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Move hands until a pair meets, by strides, ends and tolerances ``way`` (n, 3).

        It returns the travel (n,), and which pairs met (n, pairs) among those that moving joints
        move relative to each other.
        """
        velocity = np.zeros((len(rows), self.model.nq))
        velocity[:, self.rows] = np.where(self.active[rows], self.rate[rows], 0.0)
        offsets = with_followers(self.model, np.zeros_like(velocity))
        velocity = with_followers(self.model, velocity) - offsets
        here = with_followers(self.model, self.q[rows])
        gap = np.where(self.active[rows] @ self.apart.T, self.gap, -np.inf)
        travel, distance = meetings(self.model, here, velocity, way, gap)
        self.q[rows] = with_followers(self.model, here + travel[:, None] * velocity)
        return travel, distance < gap

    def stopped(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for each actuator (n, nu) whether one of its joints met something, and whether one
        reached its limit."""
        if len(self.owners) == self.model.nu:
            return self.blocked, self.at_limit
        own = self.owners[:, None] == np.arange(self.model.nu)
        return self.blocked @ own, self.at_limit @ own

    def end_at_limits(self, rows: NDArray[np.intp], there: NDArray[np.bool_]) -> None:
        """Set the joints (n, nu) that have reached their limits exactly to these limits, and stop them."""
        done = self.active[rows] & there
        ends = np.where(self.rate[rows] > 0.0, self.upper, self.lower)
        joints = self.q[rows][:, self.rows]
        self.q[rows[:, None], self.rows] = np.where(done, ends, joints)
        self.q[rows] = with_followers(self.model, self.q[rows])
        self.at_limit[rows] |= done
        self.active[rows] &= ~done
