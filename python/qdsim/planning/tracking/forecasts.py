"""Roll-outs of commands in a prediction model, from measured positions and velocities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.tracking.predictors import Predictor
from qdsim.planning.tracking.shooting import Shooting, Trajectory

__all__ = ["Forecast", "velocity_of"]


class Forecast:
    """Rolls out commands of a closed loop in a prediction model, with the cost of its trajectories.

    Args:
        parts: the loop's cost, bounds and period.
        model: predicts.
    """

    def __init__(self, parts: Shooting, model: Predictor) -> None:
        self._parts, self._predictor = parts, model
        self.reset()

    def reset(self) -> None:
        """Forget the last measurement."""
        self._q: Array | None = None

    def measure(self, q: Array, v: ArrayLike | None) -> None:
        """Set the state from which commands are rolled out; ``v`` None: from the last measurement."""
        period = self._parts.step_options.h
        self._v = velocity_of(self._parts.model, q, v, self._q, period)
        self._q = q

    def roll(self, u: Array, before: Array) -> list[Trajectory | None]:
        """Roll out commands ``(samples, T, nu)``; None for a sample that could not be predicted to its end.

        Args:
            before: ``(nu,)`` the present command.
        """
        parts, now = self._parts, self._q
        assert now is not None
        u = parts.bounded(u)
        period, threads = parts.step_options.h, parts.options.threads
        q, good = self._predictor.roll(now, self._v, before, u, period, threads)
        parts.counts.steps += u.shape[0] * u.shape[1]
        parts.counts.failures += int(len(u) - good.sum())
        cost, final = parts.cost.values(np.where(good[:, None, None], q, now), u, before)
        return [
            Trajectory(q[k], u[k], float(cost[k]), float(final[k])) if good[k] else None
            for k in range(len(u))
        ]


def velocity_of(
    model: Model, q: Array, v: ArrayLike | None, earlier: Array | None, period: float
) -> Array:
    """Return the velocity ``(nv,)``: that which was measured, or the change of ``q`` since the
    ``earlier`` configuration, one period ago; zero if there is none.

    Raises:
        ValueError: if the measured velocity is not one of the model.
    """
    if v is not None:
        return np.asarray(vector("v", v, model.nv))
    if earlier is None:
        return np.zeros(model.nv)
    return np.asarray(model.difference(q, earlier)) / period
