"""Motion of an object along an edge with one controller, until it arrives or makes no progress, or for a
given time."""

from __future__ import annotations

import math

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import FAULTS, LOOK, Commands, Outcome, Record, World
from qdsim.planning.execution.loops.steering import Steering
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.grasps.samplers.carrying import TILT
from qdsim.planning.tracking.arrival import LEFT, NEARER, PERIODS, Arrival

__all__ = ["along", "pursue"]

ASTRAY = 10.0
"""Largest distance of the object from its planned pose, in tolerances; a moving object lags, by more than a
tenth of this (test_executor.py)."""


def pursue(
    world: World,
    track: Track,
    steering: Steering,
    record: Record,
    arrival: Arrival,
    u: Array,
    stall: float,
    settle: float,
    may_tip: bool = False,
) -> Commands[str]:
    """Move the object along an edge until it arrives or makes no progress.

    Args:
        world: The plant.
        track: The edge, and the progress along it.
        steering: The controller, already started.
        record: Measures the execution.
        arrival: Reports when the goal is reached.
        u: The present command ``(nu,)``.
        stall: Time without progress after which the attempt ends, s.
        settle: The same at the end of a segment, after its last command, s.
        may_tip: Whether the object may tip on the way straight to the goal.

    Returns:
        How it ended: ``"arrived"`` at the goal, ``"followed"`` to the end of the edge, or a
        description of the failure.
    """
    count = max(1, round(steering.period / world.timestep))
    period = count * world.timestep
    progress = _Progress(track, stall, settle)
    time, faults = 0.0, 0
    tilt = TILT + (0.0 if track.schedule else _tipped(world, world.q, track.end))
    if may_tip and track.schedule is None:
        tilt = np.inf
    while True:
        q = world.q
        if record.take(time, track.pose(track.phase), u):
            return "lost"
        if arrival.measure(q):
            return "arrived"
        went = track.advance(q, period, steering.waits)
        if ended := progress.ended(q, period, went):
            return ended
        if _tipped(world, q, track.pose(track.phase)) > tilt:
            return "off its way: the object tips"
        u_next, fault = steering.command(q, world.v, u)
        if not np.isfinite(u_next).all():
            u_next, fault = u, "the command is not finite"
        faults = faults + 1 if fault else 0
        record.failures += bool(fault)
        if faults >= FAULTS:
            return f"no command: {fault}"
        u_next = world.within(u_next)
        for k in range(1, count + 1):
            yield np.asarray((1.0 - k / count) * u + (k / count) * u_next)
        u, time = u_next, time + period


class _Progress:
    """Progress of an object along an edge.

    Args:
        track: The edge.
        stall, settle: As for :func:`pursue`.
    """

    def __init__(self, track: Track, stall: float, settle: float) -> None:
        self.track, self._stall, self._settle = track, stall, settle
        self._idle, self._close, self._nearest = 0.0, 0, np.inf

    def ended(self, q: Array, period: float, went: bool) -> str:
        """Return how the edge has ended with the configuration ``q``; an empty text if it continues.

        Args:
            q: Configuration ``(nq,)``.
            period: Time since the last call, s.
            went: Whether the phase has advanced.
        """
        track, along = self.track, self.track.schedule is not None
        left, off = track.left(q), track.off(q, track.phase)
        if along and not off <= ASTRAY:
            return f"off its way by {off:.1f} tolerances"
        self._close = self._close + 1 if track.ended and left <= LEFT else 0
        if along and self._close >= PERIODS:
            return "followed"
        nearer = left < self._nearest - NEARER
        self._nearest = left if nearer else self._nearest
        self._idle = 0.0 if went or nearer else self._idle + period
        over = along and track.ended and self._idle > self._settle
        if not over and self._idle <= self._stall:
            return ""
        if left <= 1.0:
            return "followed"
        return f"ended {left:.1f} tolerances off" if over else f"no progress for {self._stall:g} s"


def along(
    world: World, track: Track, steering: Steering, record: Record, settle: float
) -> Commands[Outcome]:
    """Move the object along a segment in the planned time, however far it is from its planned pose.

    Args:
        world: The plant.
        track: The segment.
        steering: The controller.
        record: Measures the execution.
        settle: Time at the end of the segment, s.

    Returns:
        ``"lost"``, or ``"followed"`` if the end was reached in time.
    """
    assert track.schedule is not None
    h = world.timestep
    per_period = max(1, round(steering.period / h))
    per_record = max(1, round(LOOK / h))
    steering.begin(track)
    before = after = track.schedule.commands[0]
    count = math.ceil((track.duration + settle) / h)
    for step in range(count + 1):
        if step % per_period == 0:
            track.phase, before = min(step * h, track.duration), after
            after, fault = steering.command(world.q, world.v, before)
            record.failures += bool(fault)
        share = (step % per_period + 1) / per_period
        u = world.within((1.0 - share) * before + share * after)
        look = step % per_record == 0 or step == count
        if look and record.take(step * h, track.pose(step * h), u):
            return "lost"
        yield u
    return "followed"


def _tipped(world: World, q: Array, pose: Array) -> float:
    """Return the angle between the object's vertical directions in two configurations, rad; 0 without gravity."""
    model, body = world.model, world.space.body
    gravity = np.asarray(model.parameters.gravity)
    size = float(gravity @ gravity)
    if size == 0.0:
        return 0.0
    a, b = (model.body_pose(x, body)[1].T @ gravity for x in (q, pose))
    return float(np.arccos(np.clip(a @ b / size, -1.0, 1.0)))
