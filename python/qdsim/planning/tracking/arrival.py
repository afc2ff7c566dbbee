"""Decides when a closed loop has arrived at the goal and keeps its command, and when it starts again."""

from __future__ import annotations

import math

from qdsim.array_type import Array
from qdsim.planning.task.task import Task

__all__ = ["Arrival"]

WITHIN, LEFT = 0.2, 0.5
"""Shares of the tolerances. An object within the first share counts as arrived. It may move up to
the second share before it counts as gone. With a larger first share, the object would be held
farther from its goal than the controller could bring it."""
NEARER = 0.05
"""Smallest approach that counts as progress, in tolerances."""
PERIODS = 3
"""Number of successive measurements within the first share, so that an object that passes through
does not count."""


class Arrival:
    """Decides from measurements whether an object has arrived at its goal and stays there.

    It has arrived once it was within a share of the task's tolerances in three consecutive
    measurements and comes no nearer; it has left once it is outside a larger share of them.

    Args:
        task: its goal and tolerances.
        within, left: shares of the tolerances within which the object has arrived and beyond which
            it has left.
    """

    def __init__(self, task: Task, within: float = WITHIN, left: float = LEFT) -> None:
        self._task, self._within, self._left = task, within, left
        self.reset()

    def reset(self) -> None:
        """Return to the initial state."""
        self.arrived, self._inside, self._before = False, 0, math.inf

    def measure(self, q: Array) -> bool:
        """Add a measurement ``(nq,)``; return whether the object has arrived and not left since."""
        size = self._task.off(q)
        self._inside = self._inside + 1 if size <= self._within else 0
        rests = self._inside >= PERIODS and size >= self._before
        self.arrived = rests or (self.arrived and size <= self._left)
        self._before = size
        return self.arrived
