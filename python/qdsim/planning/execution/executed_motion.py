"""The motion of a plant during an execution."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import LOOK
from qdsim.planning.execution.world import World
from qdsim.planning.task.goal_set import GoalSet

__all__ = ["ExecutedMotion", "Recorder"]


@dataclasses.dataclass(frozen=True, eq=False)
class ExecutedMotion:
    """The motion of robot and object during an execution, with all approaches and regrasps.

    ``planning.pictures.write_execution(motion, model, ["movie.gif"])`` writes a movie of it,
    ``draw_execution`` a picture, and ``qdsim.viewer.show(motion, model)`` shows it in a browser.

    Attributes:
        goals: The poses of the object that count as its goal.
        t: Times ``(n,)`` of the plant, s, rising, about 0.01 s apart.
        q: Configurations ``(n, nq)`` at these times, object included.
        u: Commands ``(n - 1, nu)`` at all times but the last, N, Nm, m or rad.
        marks: Pairs of a time, s, and what the robot began to do then, as
            :attr:`ExecutorState.doing`, or which segment began.
    """

    goals: GoalSet
    t: Array
    q: Array
    u: Array
    marks: tuple[tuple[float, str], ...] = ()

    @property
    def object(self) -> str:
        """Name of the object's body."""
        return self.goals.space.body

    @property
    def goal(self) -> Array:
        """The goal that is nearest to the object's last pose, ``(nq,)``."""
        return self.goals.nearest(self.q[-1])

    @property
    def errors(self) -> Array:
        """Position and rotation error of the object from the goal at all times, ``(n, 2)``, m and rad."""
        return np.array([self.goals.errors(q) for q in self.q])

    def at(self, times: ArrayLike) -> Array:
        """Return the configurations ``(..., nq)`` that were recorded last before each time ``(...)``, s."""
        last = np.searchsorted(self.t, np.asarray(times) + 1e-9, side="right") - 1
        return np.asarray(self.q[np.maximum(last, 0)])

    def doing(self, time: float) -> str:
        """Return what the robot was doing at a time, s: the text of the last mark until then."""
        texts = [text for begin, text in self.marks if begin <= time + 1e-9]
        return texts[-1] if texts else ""

    def __repr__(self) -> str:
        return f"ExecutedMotion({self.t[-1]:.4g} s, {len(self.t)} configurations)"


class Recorder:
    """Records a plant at regular times.

    Args:
        plant: The plant.
        goals: The poses of the object that count as its goal.
    """

    def __init__(self, plant: World, goals: GoalSet) -> None:
        self._plant, self._goals = plant, goals
        self._every = max(1, round(LOOK / plant.timestep))
        self._rows: list[tuple[float, Array, Array]] = []
        self._marks: list[tuple[float, str]] = []

    def mark(self, text: str) -> None:
        """Mark the present time with what begins; what began at the same time took no time, and is dropped."""
        now = self._plant.steps * self._plant.timestep
        self._marks = [*(mark for mark in self._marks if mark[0] < now), (now, text)]

    def take(self, u: Array) -> None:
        """Record the state if a sample is due; ``u`` is the present command."""
        steps = self._plant.steps
        if not self._rows or steps % self._every == 0:
            self._rows.append((steps * self._plant.timestep, self._plant.q, np.array(u)))

    def motion(self) -> ExecutedMotion:
        """Return what was recorded so far, and the present state at the end."""
        plant = self._plant
        now = plant.steps * plant.timestep
        rows = [row for row in self._rows if row[0] < now]
        t = np.array([*(row[0] for row in rows), now])
        q = np.array([*(row[1] for row in rows), plant.q])
        u = np.array([row[2] for row in rows]).reshape(len(rows), plant.model.nu)
        return ExecutedMotion(self._goals, t, q, u, tuple(self._marks))
