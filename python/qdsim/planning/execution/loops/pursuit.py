"""An object taken along an edge by one controller, until it is there or comes no further."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import Commands, Record, World
from qdsim.planning.execution.loops.steering import Steering
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.tracking.arrival import Arrival

__all__ = ["pursue"]

ASTRAY = 10.0
"""Tolerances, that an object may be off its way: in motion it lags."""
NEARER = 0.05
"""Tolerances, that count as progress."""
CLOSE = 0.5
"""Tolerances from the end of an edge that need no more time,"""
PERIODS = 3
"""after so many periods."""
FAULTS = 5
"""Periods in a row without an answer of the controller."""


def pursue(
    world: World,
    track: Track,
    steering: Steering,
    record: Record,
    arrival: Arrival,
    u: Array,
    stall: float,
) -> Commands[str]:
    """Take the object along an edge.

    Args:
        world: what is moved.
        track: the edge, and how far it has been followed.
        steering: the controller, which has begun.
        record: measures.
        arrival: tells when the goal of everything is reached.
        u: ``(nu,)`` the command that acts now.
        stall: s without progress after which it ends.

    Returns:
        How it ended: ``"arrived"`` at the goal; ``"followed"``, at the end of the edge; or what went wrong.
    """
    count = max(1, round(steering.period / world.timestep))
    period = count * world.timestep
    time, idle, close, faults, nearest = 0.0, 0.0, 0, 0, np.inf
    while True:
        q = world.q
        if record.take(time, track.pose(track.phase), u) is not None:
            return "lost"
        if arrival.measure(q):
            return "arrived"
        went, left = track.advance(q, period), track.far(q, track.end)
        off = track.far(q, track.pose(track.phase))
        if track.schedule is not None and not off <= ASTRAY:
            return f"off its way by {off:.1f} tolerances"
        close = close + 1 if track.ended and left <= CLOSE else 0
        if track.schedule is not None and close >= PERIODS:
            return "followed"
        idle = 0.0 if went or left < nearest - NEARER else idle + period
        nearest = left if left < nearest - NEARER else nearest
        if idle > stall:
            return "followed" if left <= 1.0 else f"no progress for {stall:g} s"
        u_next, fault = steering.command(q, world.v, u)
        if not np.isfinite(u_next).all():
            u_next, fault = u, "the command is not finite"
        faults = faults + 1 if fault else 0
        if faults >= FAULTS:
            return f"no command: {fault}"
        u_next = world.within(u_next)
        for k in range(1, count + 1):
            yield np.asarray((1.0 - k / count) * u + (k / count) * u_next)
        u, time = u_next, time + period
