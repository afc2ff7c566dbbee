"""When a closed loop has arrived and holds, and when it begins again."""

from __future__ import annotations

import math

from qdsim.array_type import Array
from qdsim.planning.task.task import Task

__all__ = ["Arrival"]

WITHIN, LEFT = 0.2, 0.5
"""Of the tolerances, within which an object has arrived, and beyond which it has left: what it may move while it is
held. With 0.5 and 1 a cube in a hand was held at 3 degrees where going on came to 1."""
PERIODS = 3
"""Measurements in a row for that: an object that passes through has not arrived."""


class Arrival:
    """Tells from measurements whether an object is at its goal to stay.

    It has arrived once it was within a fifth of the task's tolerances, or another share, in three measurements in a row
    and comes no nearer, and has left once it is beyond half of them, or another share.

    Args:
        task: its goal and tolerances.
        within, left: of the tolerances, within which it has arrived and beyond which it has left.
    """

    def __init__(self, task: Task, within: float = WITHIN, left: float = LEFT) -> None:
        self._task, self._within, self._left = task, within, left
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.arrived, self._inside, self._before = False, 0, math.inf

    def measure(self, q: Array) -> bool:
        """Whether the object has arrived, and not left since, with one more measurement ``(nq,)``."""
        size = self._task.off(q)
        self._inside = self._inside + 1 if size <= self._within else 0
        rests = self._inside >= PERIODS and size >= self._before
        self.arrived = rests or (self.arrived and size <= self._left)
        self._before = size
        return self.arrived
