"""Closing a grasp: fingers move until they touch."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdsim.arguments import instance, number, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.robot import joint_limits, moved_bodies, near_pairs

__all__ = ["Closing", "close_grasp"]


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
    rows = model.actuated_q
    moves = moved_bodies(model) & (rate != 0.0)[:, None]
    lower, upper = joint_limits(model)
    fastest = float(np.abs(rate).max(initial=0.0))
    active = rate != 0.0
    at_limit = np.zeros(model.nu, dtype=bool)
    blocked = np.zeros(model.nu, dtype=bool)
    touching: set[int] = set()

    def stop(pairs: NDArray[np.void]) -> bool:
        """Stop what moves one body of a pair against the other; whether that stopped anything."""
        involved = (moves[:, pairs["body_a"]] != moves[:, pairs["body_b"]]).any(axis=1) & active
        for side in ("body_a", "body_b"):
            hit = moves[np.ix_(involved, pairs[side])].any(axis=0)
            touching.update(pairs[side][hit].tolist())
        blocked[involved] = True
        active[involved] = False
        return bool(involved.any())

    travelled = 0.0
    stop(near_pairs(model, here, gap, moves))
    while active.any() and travelled < reach:
        velocity = np.where(active, rate, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = (np.where(rate > 0.0, upper, lower) - here[rows]) / rate
        room = np.where(active, np.maximum(ahead, 0.0), np.inf)
        stride = min(resolution / fastest, reach - travelled, float(room.min()))
        trial = here.copy()
        trial[rows] += stride * velocity
        pairs = near_pairs(model, trial, gap, moves)
        if len(pairs) == 0:
            here, travelled = trial, travelled + stride
            done = active & (room <= stride)
            here[rows[done]] = np.where(rate > 0.0, upper, lower)[done]
            at_limit |= done
            active &= ~done
            continue
        clear, met = 0.0, stride
        while (met - clear) * fastest > tolerance:
            middle = 0.5 * (clear + met)
            trial = here.copy()
            trial[rows] += middle * velocity
            found = near_pairs(model, trial, gap, moves)
            if len(found):
                met, pairs = middle, found
            else:
                clear = middle
        here[rows] += clear * velocity
        travelled += clear
        if not stop(pairs):  # nothing that still moves brought these two together
            break
    return Closing(here, tuple(sorted(touching)), blocked, at_limit)
