"""Closing a grasp: fingers move until they touch."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdsim.arguments import instance, number, vector
from qdsim.array_type import Array
from qdsim.batches.queries import pair_distances
from qdsim.model import Model
from qdsim.planning.task.followers import with_followers
from qdsim.planning.task.robot import joint_limits, moved_bodies

__all__ = ["Closing", "Closings", "close_grasp", "close_grasps", "meet"]


@dataclasses.dataclass(frozen=True, eq=False)
class Closing:
    """Where fingers stopped.

    Attributes:
        q: ``(nq,)`` configuration; no pair is nearer than the gap that was asked for.
        touching: indices of the bodies that stopped a joint by meeting another body, ascending.
        blocked: ``(nu,)`` bool, joints that stopped because something they move met something.
        at_limit: ``(nu,)`` bool, joints that stopped at their limits. The others moved to the end.
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
    """Move the actuated joints along ``direction`` until each meets something or its limit.

    All joints move together. Where two bodies meet, the joints that move one of them against the
    other stop, and the rest go on: a finger whose first link touches keeps bending its outer links
    around the object, other fingers keep closing. Contact is found by steps, then by bisection that
    keeps the free side, so what is returned does not penetrate. Where ``q`` does already, the joints
    that could move the two bodies against each other do not move at all; pairs that no joint moves
    against each other (an object in its support) do not count.

    Args:
        model: the model.
        q: ``(nq,)`` configuration with open fingers. Everything that is not actuated stays.
        direction: ``(nu,)`` how fast the actuated joints move, radians or metres of the joint; joints
            with a zero do not move.
        reach: joints end at ``q + reach * direction`` if nothing is in their way.
        resolution: longest step of a joint, rad or m: things thinner than this times the finger's
            length may be passed through.
        tolerance: joints stop within this of the contact, rad or m.
        gap: m, >= 0; pairs nearer than this count as touching.

    Raises:
        ValueError: naming the argument that is not as described.
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
    """Of many hands: configurations (n, nq), which bodies stopped a joint (n, bodies), which joints
    met something (n, nu) and which stopped at their limits (n, nu).
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
    """`close_grasp` of configurations (n, nq) along directions (n, nu)."""
    hands = _Hands(model, q, direction, gap)
    hands.stop(np.arange(len(q)), hands.near(np.arange(len(q)), hands.q))
    fastest = np.maximum(np.abs(direction).max(axis=1, initial=0.0), 1e-300)
    travelled, stuck = np.zeros(len(q)), np.zeros(len(q), dtype=bool)
    while True:
        rows = np.flatnonzero(hands.active.any(axis=1) & (travelled < reach) & ~stuck)
        if len(rows) == 0:
            return Closings(hands.q, hands.touching, hands.blocked, hands.at_limit)
        room = hands.room(rows)
        stride = np.minimum(resolution / fastest[rows], reach - travelled[rows])
        stride = np.minimum(stride, room.min(axis=1))
        pairs = hands.near(rows, hands.moved(rows, stride))
        meets = pairs.any(axis=1)
        free, step = rows[~meets], stride[~meets]
        hands.q[free] = hands.moved(free, step)
        travelled[free] += step
        hands.end_at_limits(free, room[~meets] <= step[:, None])
        if meets.any():
            met = rows[meets]
            clear, pairs = _bisected(
                hands, met, stride[meets], pairs[meets], tolerance / fastest[met]
            )
            hands.q[met] = hands.moved(met, clear)
            travelled[met] += clear
            # where nothing that still moves brought the two together
            stuck[met] = ~hands.stop(met, pairs)


def meet(model: Model, q: Array) -> NDArray[np.bool_]:
    """In which of configurations (n, nq) a pair penetrates that actuated joints move against each other."""
    moves, body = moved_bodies(model), _pair_bodies(model)
    apart = (moves[:, body[:, 0]] != moves[:, body[:, 1]]).any(axis=0)
    return np.asarray((pair_distances(model, q, 0.0, threads=1)[:, apart] < 0.0).any(axis=1))


def _pair_bodies(model: Model) -> NDArray[np.intp]:
    """(pairs, 2) the bodies of pairs of geometries."""
    found: NDArray[np.intp] = np.asarray(model.geom_body)[
        np.asarray(model.pair_geom).reshape(-1, 2)
    ]
    return found


def _bisected(
    hands: _Hands,
    rows: NDArray[np.intp],
    stride: Array,
    pairs: NDArray[np.bool_],
    tolerance: Array,
) -> tuple[Array, NDArray[np.bool_]]:
    """How far (n,) hands go before they meet something within their strides (n,), and what (n, pairs)."""
    clear, met, pairs = np.zeros(len(rows)), stride.copy(), pairs.copy()
    while True:
        left = np.flatnonzero(met - clear > tolerance)
        if len(left) == 0:
            return clear, pairs
        middle = 0.5 * (clear[left] + met[left])
        found = hands.near(rows[left], hands.moved(rows[left], middle))
        hit = found.any(axis=1)
        met[left[hit]], pairs[left[hit]] = middle[hit], found[hit]
        clear[left[~hit]] = middle[~hit]


class _Hands:
    """Hands that are closing: where they are, and which joints still move."""

    def __init__(self, model: Model, q: Array, rate: Array, gap: float) -> None:
        self.model, self.q, self.rate, self.gap = model, q.copy(), rate, gap
        moves = moved_bodies(model)
        body = _pair_bodies(model)
        a, b = body[:, 0], body[:, 1]
        self.by_a, self.by_b = moves[:, a], moves[:, b]
        every = np.arange(moves.shape[1])
        self.of_a, self.of_b = ((x[:, None] == every).astype(np.float32) for x in (a, b))
        self.apart = self.by_a != self.by_b
        self.active = rate != 0.0
        self.counts = np.any(self.active[:, :, None] & self.apart, axis=1)
        self.touching = np.zeros((len(q), moves.shape[1]), dtype=bool)
        self.blocked, self.at_limit = np.zeros_like(self.active), np.zeros_like(self.active)
        self.lower, self.upper = joint_limits(model)

    def near(self, rows: NDArray[np.intp], q: Array) -> NDArray[np.bool_]:
        """(n, pairs) which of them are too near in q (n, nq) and moved against each other by these hands' joints."""
        close = pair_distances(self.model, q, self.gap, threads=1) < self.gap
        return np.asarray(close & self.counts[rows])

    def stop(self, rows: NDArray[np.intp], pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Stop what moves one body of a pair (n, pairs) against the other; whether that stopped anything (n,)."""
        met = pairs.astype(np.float32)
        involved = (met @ self.apart.T.astype(np.float32) > 0.0) & self.active[rows]
        for of_body, by in ((self.of_a, self.by_a), (self.of_b, self.by_b)):
            moved = (involved.astype(np.float32) @ by.astype(np.float32) > 0.0) & pairs
            self.touching[rows] |= moved.astype(np.float32) @ of_body > 0.0
        self.blocked[rows] |= involved
        self.active[rows] &= ~involved
        return np.asarray(involved.any(axis=1))

    def room(self, rows: NDArray[np.intp]) -> Array:
        """(n, nu) how far joints may go until their limits, in units of their rates; infinite of those that stand."""
        rate = self.rate[rows]
        ends = np.where(rate > 0.0, self.upper, self.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = (ends - self.q[rows][:, self.model.actuated_q]) / rate
        return np.where(self.active[rows], np.maximum(ahead, 0.0), np.inf)

    def moved(self, rows: NDArray[np.intp], stride: Array) -> Array:
        """(n, nq) after strides (n,)."""
        found: Array = self.q[rows]
        velocity = np.where(self.active[rows], self.rate[rows], 0.0)
        found[:, self.model.actuated_q] += stride[:, None] * velocity
        return with_followers(self.model, found)

    def end_at_limits(self, rows: NDArray[np.intp], there: NDArray[np.bool_]) -> None:
        """Joints (n, nu) that have come to their limits, exactly."""
        done = self.active[rows] & there
        ends = np.where(self.rate[rows] > 0.0, self.upper, self.lower)
        joints = self.q[rows][:, self.model.actuated_q]
        self.q[rows[:, None], self.model.actuated_q] = np.where(done, ends, joints)
        self.q[rows] = with_followers(self.model, self.q[rows])
        self.at_limit[rows] |= done
        self.active[rows] &= ~done
