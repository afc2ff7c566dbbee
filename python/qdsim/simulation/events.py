"""Pairs of geometries that begin or end contact, from one step to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import ROUNDING, Array
from qdsim.dynamics import DynamicStep
from qdsim.model import Model

__all__ = ["EVENT_DTYPE", "Pairs", "changes"]

EVENT_DTYPE = np.dtype(
    [
        ("time", "f8"),
        ("step", "i8"),
        ("closes", "?"),
        ("geom_a", "i4"),
        ("geom_b", "i4"),
        ("body_a", "i4"),
        ("body_b", "i4"),
        ("pos", "3f8"),
        ("speed", "f8"),
        ("impulse", "f8"),
    ]
)

Pairs = dict[int, tuple[int, int, int, int]]
"""Pairs in contact: from the index of a pair to its two geometries and two bodies."""


def changes(
    model: Model, before: Pairs, step: DynamicStep, index: int, time: float, q: Array, v: Array
) -> tuple[Pairs, list[tuple[Any, ...]]]:
    """Return the pairs in contact in a step, and the events since the previous step.

    Args:
        model: the model.
        before: the pairs in contact in the previous step.
        step: the step, number ``index``, which begins at ``time`` with q and v.
    """
    contacts = step.contacts
    normal = step.h * contacts["force"][:, 0]
    pressing = np.flatnonzero(normal > ROUNDING * normal.max(initial=0.0))
    if set(contacts["pair"][pressing].tolist()) == before.keys():
        return before, []  # most steps have no event
    now = {int(c["pair"]): _ends(c) for c in contacts[pressing]}
    events = []
    for pair in sorted(now.keys() ^ before.keys()):
        closes = pair in now
        own = np.flatnonzero(contacts["pair"] == pair)
        pos, speed, wait = np.full(3, np.nan), np.nan, 0.0
        if own.size:
            nearest = contacts[own[np.argmin(contacts["dist"][own])]]
            pos, speed = nearest["pos"], _parting_speed(model, nearest, q, v)
            gap = max(float(nearest["dist"]), 0.0)
            wait = min(gap / max(-speed, gap / step.h), step.h) if closes and gap > 0.0 else 0.0
        ends = now[pair] if closes else before[pair]
        events.append((time + wait, index, closes, *ends, pos, speed, float(normal[own].sum())))
    return now, events


def _ends(contact: npt.NDArray[np.void]) -> tuple[int, int, int, int]:
    a, b, c, d = (int(contact[name]) for name in ("geom_a", "geom_b", "body_a", "body_b"))
    return a, b, c, d


def _parting_speed(model: Model, contact: npt.NDArray[np.void], q: Array, v: Array) -> float:
    """Compute the normal speed of body b relative to body a at a contact, m/s; positive if they separate."""
    pos, rot = model.body_poses(q)
    speed = 0.0
    for sign, end in ((-1.0, "body_a"), (1.0, "body_b")):
        body = int(contact[end])
        local = rot[body].T @ (contact["pos"] - pos[body])
        speed += sign * float(contact["frame"][0] @ (model.point_jacobian(q, body, local)[:3] @ v))
    return speed
