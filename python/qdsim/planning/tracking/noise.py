"""Noise of command sequences, along splines."""

from __future__ import annotations

import numpy as np

from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.planning.task.robot import levers, object_size
from qdsim.planning.task.task import Task

__all__ = ["Noise"]

NOISE = 0.6
"""Motion of the fingertips by the noise at the end of the horizon, in radii of gyration of the object."""
KNOTS = 4
"""Number of knots of the noise over the horizon."""
SMALL, MOVED = 0.3, 0.6
"""Factor on the noise of every other sample, and probability that a sample moves an actuator. Large
noise finds motions, small noise refines them."""


class Noise:
    """Draws noise of the commands over a horizon.

    Args:
        task: the task.
        horizon: number of control periods T.
        deviation: standard deviation at the end of the horizon, in the units of the command, one
            number or one per actuator; None: from the object's size and the fingers' lengths.
    """

    def __init__(
        self, task: Task, horizon: int, deviation: float | tuple[float, ...] | None = None
    ) -> None:
        knots = min(KNOTS, horizon)
        last = _deviation(task) if deviation is None else spread("noise", deviation, task.model.nu)
        self._deviation = np.sqrt(np.arange(1, knots + 1) / knots)[:, None] * last
        self._spline = _spline(knots, horizon)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw noise ``(count, T, nu)``."""
        deviation = self._deviation
        z = rng.standard_normal((count, *deviation.shape))
        z *= (rng.random((count, 1, deviation.shape[1])) < MOVED) * deviation
        z[1::2] *= SMALL
        return np.asarray(np.einsum("tk,nkj->ntj", self._spline, z))


def _deviation(task: Task) -> Array:
    """Return standard deviations (nu,) at the last knot."""
    gear = np.abs(np.asarray(task.model.actuator_gear))
    size = object_size(task.model, task.space) or task.length
    noise = NOISE * size / np.maximum(levers(task.model, task.start), 1e-6) * gear
    lower, upper = task.command_bounds
    return np.asarray(np.minimum(noise, upper - lower))


def _spline(knots: int, periods: int) -> Array:
    """Return the matrix (T, knots) that interpolates noise at the knots to the ends of periods; it
    is zero at the start."""
    place = np.linspace(0.0, periods, knots + 1)
    rows = np.pad(np.eye(knots), ((0, 0), (1, 0)))
    return np.stack([np.interp(np.arange(1.0, periods + 1.0), place, row) for row in rows], 1)
