"""When the points of a path are passed, so that joints keep their speeds and accelerations.

Each straight piece is a trapezoid of speed: up at constant acceleration, on, down to rest (without the middle where the
piece is too short for full speed). The fastest such law that begins and ends at rest is this one, since along a line
the limits of all joints are one limit of the path's own speed and one of its acceleration. Corners are passed at rest:
any other speed would need an infinite acceleration there or leave the path, and the path is what is certified to be
free.
"""

from __future__ import annotations

import numpy as np

from qdsim.array_type import SAME, Array

__all__ = ["shares", "time_law"]


def time_law(points: Array, speed: Array, acceleration: Array | None) -> tuple[Array, Array]:
    """When points ``(n, nu)`` are passed (n), s from 0, and for how long (n - 1) each piece speeds up, and
    slows down.

    Args:
        points: corners of the path.
        speed, acceleration: largest of each joint ``(nu,)``, per s and per s^2; acceleration None: any.
    """
    steps = np.abs(np.diff(points, axis=0))
    cruise = (steps / speed).max(axis=1, initial=0.0)  # s, a piece at full speed
    if acceleration is None:
        ramps = np.zeros(len(steps))
    else:
        # With s from 0 to 1 along a piece: s' <= 1 / cruise, s'' <= 1 / push^2.
        push = np.sqrt((steps / acceleration).max(axis=1, initial=0.0))
        ramps = np.minimum(push, push * push / np.maximum(cruise, SAME))
        # Too short for full speed: half the piece is run while speeding up, the other half while slowing down.
        cruise = np.maximum(cruise, push)
    spans = np.maximum(cruise + ramps, SAME)  # s
    return np.concatenate(([0.0], np.cumsum(spans))), np.minimum(ramps, 0.5 * spans)


def shares(since: Array, span: Array, ramp: Array) -> tuple[Array, Array]:
    """How much of a piece is done (0 to 1) a time after its begin, and its rate, 1/s.

    Args:
        since: s since the piece began, from 0 to ``span``.
        span: s, of the piece.
        ramp: s, of its speeding up and of its slowing down, at most half of the span.
    """
    top = 1.0 / (span - ramp)
    up, down = np.maximum(ramp - since, 0.0), np.maximum(since - (span - ramp), 0.0)
    safe = np.where(ramp > 0.0, ramp, 1.0)
    done = since - 0.5 * ramp + 0.5 * (up * up - down * down) / safe
    share = np.where(since >= span, 1.0, np.clip(top * done, 0.0, 1.0))  # no rounding at the end
    return share, top * (1.0 - (up + down) / safe)
