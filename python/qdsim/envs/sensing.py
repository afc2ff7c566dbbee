"""Errors of observations: noise of the object's pose, and delays, drawn in each episode."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.envs.draws import SENSED, Draw, Range
from qdsim.envs.streams import uniforms
from qdsim.planning.task.task import Task

__all__ = ["Sensed", "Sensing"]


@dataclasses.dataclass
class Sensed:
    """Observation errors of episodes; (n, ...) each.

    Attributes:
        stream: seeds of the noise.
        spread: (n, 2) standard deviations, m and rad.
        delay: in actions.
        earlier: (n, longest delay + 1, columns) observations, the newest first.
    """

    stream: NDArray[np.uint64]
    spread: Array
    delay: NDArray[np.intp]
    earlier: Array

    def put(self, rows: NDArray[np.intp], other: Sensed) -> None:
        """Replace the entries of these rows."""
        for name in ("stream", "spread", "delay", "earlier"):
            getattr(self, name)[rows] = getattr(other, name)


class Sensing:
    """Observation errors of a task whose episodes draw "position_noise", "rotation_noise" and
    "delay".

    Attributes:
        numbers: uniform random numbers per episode; zero: observations are exact.
    """

    def __init__(self, task: Task, randomize: Mapping[str, Draw]) -> None:
        self.task = task
        ranges = {name: draw for name, draw in randomize.items() if name in SENSED}
        self.numbers = len(SENSED) if ranges else 0
        nothing = Range(0.0, 0.0)
        found = [ranges.get(name, nothing) for name in SENSED]
        assert all(isinstance(draw, Range) for draw in found)
        self._low, self._high = (
            np.array([float(np.asarray(getattr(draw, end))) for draw in found])
            for end in ("low", "high")
        )
        self._rotation = task.space.rotation

    def draw(
        self, seeds: NDArray[np.uint64], episodes: NDArray[np.uint64], numbers: Array
    ) -> Sensed:
        """Draw the observation errors of episodes from numbers (n, `numbers`) in [0, 1)."""
        width = self._high - self._low
        width[2] += 1.0  # for whole actions, both ends included
        drawn = self._low + numbers * width
        stream = (uniforms(seeds, episodes, 1)[:, 0] * 2.0**53).astype(np.uint64)
        return Sensed(
            stream, drawn[:, :2], drawn[:, 2].astype(np.intp), np.empty((len(seeds), 0, 0))
        )

    def q(self, sensed: Sensed, q: Array, actions: NDArray[np.int64]) -> Array:
        """Return configurations (n, nq) with the observed pose of the object after this number of actions (n,)."""
        if not sensed.spread.any():
            return q
        size = self.task.space.size
        normal = _normal(uniforms(sensed.stream, actions.astype(np.uint64), 2 * size))
        v = np.zeros((len(q), self.task.model.nv))
        v[:, self.task.space.v] = normal * np.where(
            self._rotation, sensed.spread[:, 1:], sensed.spread[:, :1]
        )
        return np.array([self.task.model.integrate(a, b) for a, b in zip(q, v)])

    def begin(self, sensed: Sensed, seen: Array) -> None:
        """Start the history of observations with the first ones (n, columns)."""
        longest = int(self._high[2])
        sensed.earlier = np.repeat(seen[:, None], longest + 1, axis=1)

    def after(self, sensed: Sensed, seen: Array) -> Array:
        """Add the newest observations (n, columns) to the history, and return the delayed ones."""
        sensed.earlier = np.concatenate((seen[:, None], sensed.earlier[:, :-1]), axis=1)
        return sensed.earlier[np.arange(len(seen)), sensed.delay]


def _normal(numbers: Array) -> Array:
    """Convert uniform numbers (n, 2 k) in [0, 1) to standard normal ones (n, k) (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log1p(-numbers[:, 0::2]))
    return np.asarray(radius * np.cos(2.0 * np.pi * numbers[:, 1::2]))
