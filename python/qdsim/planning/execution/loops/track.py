"""Progress of an object along an edge, measured by its pose and not by time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import LOOK
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.task.goal_set import GoalSet

__all__ = ["Track"]

LEASH = 3.0
"""Largest distance by which the planned pose may be ahead of the object, in tolerances; with ten times as
much, progress is a clock (test_executor.py)."""


class Track:
    """The path of an object along an edge: a segment of a plan, or the straight path to a pose.

    Its phase is the planned time that corresponds to the object's pose. The phase advances with the
    clock, but at most until the planned object is some tolerances ahead of the measured one.

    Args:
        goals: Goal poses, for edges without a schedule.
        tolerances: Tolerances ``(2,)``, m and rad.
        schedule: The segment as a function of time; None: straight to the goal.
        here: The present configuration ``(nq,)``.

    Attributes:
        end: End of the edge ``(nq,)``; without a schedule, the goal nearest to the start.
        phase: Planned time of the object's pose, s.
        waypoints: Number of poses that are at least one tolerance apart.
    """

    def __init__(
        self, goals: GoalSet, tolerances: Array, schedule: Schedule | None, here: Array
    ) -> None:
        self._goals, self._tolerances, self.schedule = goals, tolerances, schedule
        self.phase = 0.0
        self.duration = 0.0 if schedule is None else schedule.duration
        self.end = goals.nearest(here) if schedule is None else schedule.segment.end
        count = math.ceil(self.duration / LOOK)
        self._times = np.linspace(0.0, self.duration, count + 1)
        self._path = [self.pose(t) for t in self._times]
        self._passed_at = _thinned(self._path, self.far)
        self.waypoints = len(self._passed_at)

    def far(self, q: Array, target: Array) -> float:
        """Compute the distance between two poses of the object, in tolerances."""
        return self._share(self._goals.apart(q, target))

    def left(self, q: Array) -> float:
        """Compute the distance from the end of the edge, or without a schedule from the nearest goal, in
        tolerances."""
        return self.far(q, self.end) if self.schedule else self._share(self._goals.errors(q))

    def off(self, q: Array, phase: float) -> float:
        """Compute the distance from the planned pose at a phase, in tolerances."""
        return self.far(q, self.pose(phase)) if self.schedule else self.left(q)

    def _share(self, errors: tuple[float, float]) -> float:
        """Return the larger of the errors of position and rotation, in tolerances."""
        return float(np.max(np.array(errors) / self._tolerances))

    def pose(self, phase: float) -> Array:
        """Return the planned configuration ``(nq,)`` at a phase; beyond the end, the last one."""
        return self.end if self.schedule is None else self.schedule.configuration(phase)

    @property
    def ended(self) -> bool:
        """Whether all commands have been sent."""
        return self.phase >= self.duration - 1e-9

    @property
    def passed(self) -> int:
        """Number of waypoints that the phase has passed."""
        if self.schedule is None:
            return 0
        here = int(np.searchsorted(self._times, self.phase + 1e-9, side="right")) - 1
        return int(np.searchsorted(self._passed_at, here, side="right"))

    def advance(self, q: Array, seconds: float, waits: bool = True) -> bool:
        """Let time pass at the configuration ``q``; return whether the phase advanced.

        Args:
            q: Configuration ``(nq,)``.
            seconds: Elapsed time, s.
            waits: Whether the phase waits for the object; otherwise it advances with the clock alone.
        """
        wanted = min(self.phase + seconds, self.duration)
        if not waits:
            went, self.phase = wanted > self.phase, wanted
            return went
        k = int(np.searchsorted(self._times, self.phase + 1e-9, side="right"))
        reached, most = self.phase, max(LEASH, self.off(q, self.phase))
        while reached < wanted and k < len(self._times):
            off = self.far(q, self._path[k])
            if off > most:
                break
            reached, most = float(self._times[k]), max(LEASH, off)
            k += 1
        went = min(wanted, reached) > self.phase
        self.phase = max(self.phase, min(wanted, reached))
        return went


def _thinned(path: list[Array], far: Callable[[Array, Array], float]) -> list[int]:
    """Return the indices of poses that are at least one tolerance apart, and of the last pose."""
    kept = [0]
    for k, q in enumerate(path):
        if far(q, path[kept[-1]]) >= 1.0:
            kept.append(k)
    return kept[1:] + ([len(path) - 1] if kept[-1] != len(path) - 1 or len(kept) == 1 else [])
