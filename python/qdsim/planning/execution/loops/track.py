"""How far an object has come along an edge, counted in what is measured of it and not by a clock."""

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
"""Tolerances, that what is planned may be ahead of the object."""


class Track:
    """An object's way along an edge: a segment of a plan, or straight to a pose.

    Its phase is the planned time that belongs to where the object is. It goes on with the clock, but no further than
    to where the planned object is some tolerances ahead of the measured one; an object that is ahead itself is caught up
    with.

    Args:
        goals: the poses to go to without a schedule.
        tolerances: ``(2,)`` m and rad.
        schedule: the segment in time; None: there is a goal and no way to it.
        here: ``(nq,)`` where everything is.

    Attributes:
        end: ``(nq,)`` where it ends; without a schedule the goal that is nearest to where it begins.
        phase: s.
        waypoints: how many poses there are, a tolerance or more from each other.
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
        """Tolerances between two poses of the object."""
        return self._share(self._goals.space.errors(q, target))

    def left(self, q: Array) -> float:
        """Tolerances, from the edge's end, or without a schedule from the nearest goal."""
        return self.far(q, self.end) if self.schedule else self._share(self._goals.errors(q))

    def off(self, q: Array, phase: float) -> float:
        """Tolerances, from where the object is planned to be at a phase."""
        return self.far(q, self.pose(phase)) if self.schedule else self.left(q)

    def _share(self, errors: tuple[float, float]) -> float:
        """Errors in tolerances: the larger share."""
        return float(np.max(np.array(errors) / self._tolerances))

    def pose(self, phase: float) -> Array:
        """The planned configuration ``(nq,)`` at a phase; beyond the end the last one."""
        return self.end if self.schedule is None else self.schedule.configuration(phase)

    @property
    def ended(self) -> bool:
        """Whether all of it has been asked for."""
        return self.phase >= self.duration - 1e-9

    @property
    def passed(self) -> int:
        """How many waypoints the phase has passed."""
        if self.schedule is None:
            return 0
        here = int(np.searchsorted(self._times, self.phase + 1e-9, side="right")) - 1
        return int(np.searchsorted(self._passed_at, here, side="right"))

    def advance(self, q: Array, seconds: float, waits: bool = True) -> bool:
        """Let some time pass with everything in ``q``; whether the phase went on.

        Args:
            q: ``(nq,)``.
            seconds: of the clock.
            waits: for the object; else the phase goes with the clock, and is caught up with by an object ahead.
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
    """Indices of poses a tolerance or more from the one before, and of the last."""
    kept = [0]
    for k, q in enumerate(path):
        if far(q, path[kept[-1]]) >= 1.0:
            kept.append(k)
    return kept[1:] + ([len(path) - 1] if kept[-1] != len(path) - 1 or len(kept) == 1 else [])
