"""A segment of a plan as a function of time; no command moves faster than a given speed (CQDC §IX)."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.robot import strides

__all__ = ["Schedule"]


class Schedule:
    """Commands and configurations of a segment by time, interpolated linearly between knots.

    Args:
        model: The model.
        segment: The segment.
        speed: Largest speed at which commands move the robot's links, m/s: the Euclidean norm of
            the actuators' contributions, with the levers at the start (:func:`strides`).
        least: Shortest time between two knots, s.
        offset: Offset ``(nu,)`` added to all commands; None: no offset.

    Attributes:
        commands: Commands ``(steps + 1, nu)``; the first one holds the start.
        times: Times ``(steps + 1,)``, s.
        strides: Displacement ``(nu,)`` of the robot per unit of each command, m.
    """

    def __init__(
        self,
        model: Model,
        segment: Segment,
        speed: float,
        least: float,
        offset: Array | None = None,
    ) -> None:
        self.model, self.segment = model, segment
        self.commands = np.vstack((model.command_from(segment.start), segment.inputs))
        if offset is not None:
            self.commands = self.commands + offset
        self.strides = strides(model, segment.start)
        way = np.linalg.norm(np.diff(self.commands, axis=0) * self.strides, axis=1)
        self.times = np.concatenate(([0.0], np.cumsum(np.maximum(way / speed, least))))

    @property
    def duration(self) -> float:
        """Duration of the segment, s."""
        return float(self.times[-1])

    def command(self, time: float) -> Array:
        """Return the planned command ``(nu,)`` at a time."""
        k, s = self._piece(time)
        return np.asarray((1.0 - s) * self.commands[k] + s * self.commands[k + 1])

    def commands_at(self, times: Array) -> Array:
        """Return the planned commands ``(n, nu)`` at times ``(n,)``."""
        columns = [np.interp(times, self.times, column) for column in self.commands.T]
        return np.stack(columns, axis=1)

    def configuration(self, time: float) -> Array:
        """Return the planned configuration ``(nq,)`` at a time, interpolated on the manifold."""
        k, s = self._piece(time)
        q0, q1 = self.segment.configurations[k], self.segment.configurations[k + 1]
        if s >= 1.0:
            return np.asarray(q1)
        return self.model.integrate(q0, s * np.asarray(self.model.difference(q1, q0)))

    def _piece(self, time: float) -> tuple[int, float]:
        k = min(max(int(np.searchsorted(self.times, time)) - 1, 0), len(self.times) - 2)
        span = self.times[k + 1] - self.times[k]
        return k, float(np.clip((time - self.times[k]) / span, 0.0, 1.0))
