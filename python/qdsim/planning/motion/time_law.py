"""Times of the points of a path, within the joints' limits of speed and acceleration.

Each straight piece has a trapezoidal speed profile: constant acceleration from rest, constant
speed, constant deceleration to rest (without the middle part if the piece is too short for full
speed). This is the fastest profile that begins and ends at rest, because along a line the limits of
all joints become one limit of the path's speed and one of its acceleration. Corners are passed at
rest: any other speed would need infinite acceleration or leave the path, and only the path is
certified.
"""

from __future__ import annotations

import numpy as np

from qdsim.array_type import SAME, Array

__all__ = ["shares", "time_law"]


def time_law(points: Array, speed: Array, acceleration: Array | None) -> tuple[Array, Array]:
    """Compute the times (n) at which points ``(n, nu)`` are passed, in s from 0, and the ramp times
    (n - 1) of the pieces.

    Args:
        points: corners of the path.
        speed, acceleration: largest ones of each joint ``(nu,)``, per s and per s^2; acceleration
            None: no limit.
    """
    steps = np.abs(np.diff(points, axis=0))
    cruise = (steps / speed).max(axis=1, initial=0.0)  # time of each piece at full speed, s
    if acceleration is None:
        ramps = np.zeros(len(steps))
    else:
        # With s from 0 to 1 along a piece, the limits are s' <= 1 / cruise and s'' <= 1 / push^2.
        push = np.sqrt((steps / acceleration).max(axis=1, initial=0.0))
        ramps = np.minimum(push, push * push / np.maximum(cruise, SAME))
        # A piece that is too short for full speed accelerates over its first half and decelerates
        # over its second half.
        cruise = np.maximum(cruise, push)
    spans = np.maximum(cruise + ramps, SAME)  # s
    return np.concatenate(([0.0], np.cumsum(spans))), np.minimum(ramps, 0.5 * spans)


def shares(since: Array, span: Array, ramp: Array) -> tuple[Array, Array]:
    """Compute the completed share (0 to 1) of a piece at a time after its start, and its rate, 1/s.

    Args:
        since: time since the piece began, from 0 to ``span``, s.
        span: duration of the piece, s.
        ramp: duration of its acceleration and of its deceleration, at most half of the span, s.
    """
    top = 1.0 / (span - ramp)
    up, down = np.maximum(ramp - since, 0.0), np.maximum(since - (span - ramp), 0.0)
    safe = np.where(ramp > 0.0, ramp, 1.0)
    done = since - 0.5 * ramp + 0.5 * (up * up - down * down) / safe
    share = np.where(since >= span, 1.0, np.clip(top * done, 0.0, 1.0))  # exactly 1 at the end
    return share, top * (1.0 - (up + down) / safe)
