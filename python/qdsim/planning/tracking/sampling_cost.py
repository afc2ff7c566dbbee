"""The cost of sampling-based control: that of iMPC, and terms that depend on whole samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batches.queries import pair_distances
from qdsim.planning.task.drives import lengths
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.cost_model import CostModel
from qdsim.planning.tracking.fingertips import last_links

__all__ = ["SamplingCost"]

FREE, FAR = 0.5, 10.0
"""Distances in lengths of the object. Fingertips nearer than the first one cost nothing, and
distances are cut off at the second one. An object is lost if its distance to the goal grows by more
than the second one."""
TOUCH = 10.0
"""Weight of the fingertips' squared distances, in lengths of the object, at the end of the horizon."""
PENALTY = 1e4
"""Cost of a lost object, and of a spring stretched to twice its reach. The cost of springs grows quadratically."""


class SamplingCost:
    """Costs of samples: that of iMPC, and penalties for fingers away from the object, springs out
    of reach, a lost object.

    Args:
        task: the task.
        cost: of iMPC.
        reach: largest distance of commands below and above the robot's position, ``(nu,)`` each.
    """

    def __init__(self, task: Task, cost: CostModel, reach: tuple[Array, Array]) -> None:
        self._task, self._cost = task, cost
        bounded = np.isfinite(reach[0]) & np.isfinite(reach[1])
        self._bounded = np.flatnonzero(bounded)
        self._reach = reach[0][bounded], reach[1][bounded]
        self._width = np.maximum(self._reach[1] - self._reach[0], 1e-12) / 2.0
        self._tips = _tip_pairs(task)

    def values(self, q: Array, u: Array, before: Array, threads: int | None) -> Array:
        """Compute costs ``(samples,)`` of paths ``(samples, T + 1, nq)`` under commands ``(samples, T, nu)``."""
        total, _ = self._cost.values(q, u, before)
        total = total + self._pulls(q, u) + self._losses(q)
        if self._tips:
            total = total + TOUCH * self._gaps(q[:, -1], threads)
        return np.asarray(np.where(np.isfinite(total), total, np.inf))

    def _pulls(self, q: Array, u: Array) -> Array:
        """Compute the cost of springs that are stretched beyond their reach, before and after a period."""
        if len(self._bounded) == 0:
            return np.zeros(len(q))
        model, own = self._task.model, self._bounded
        flat = lengths(model, q.reshape(-1, model.nq)) * np.asarray(model.actuator_gear)
        robot = flat.reshape(*q.shape[:2], model.nu)[..., own]
        low = np.minimum(robot[:, :-1], robot[:, 1:]) + self._reach[0]
        high = np.maximum(robot[:, :-1], robot[:, 1:]) + self._reach[1]
        beyond = np.maximum(np.maximum(low - u[..., own], u[..., own] - high), 0.0) / self._width
        return np.asarray(PENALTY * (beyond**2).sum(axis=(1, 2)))

    def _losses(self, q: Array) -> Array:
        """Compute the cost of samples that lose the object."""
        task, space = self._task, self._task.space
        slides = ~space.rotation
        if not slides.any():
            return np.zeros(len(q))
        flat = q.reshape(-1, task.model.nq)
        away = np.linalg.norm(task.goals.difference(flat.T)[slides], axis=0)
        away = away.reshape(q.shape[:2])
        return np.asarray(PENALTY * np.any(away > away[:, :1] + FAR * task.length, axis=1))

    def _gaps(self, q: Array, threads: int | None) -> Array:
        """Compute squared distances ``(samples,)`` of fingertips from the object, in its lengths,
        beyond the distance that costs nothing."""
        length = self._task.length
        distances = pair_distances(self._task.model, q, FAR * length, threads=threads) / length
        total = np.zeros(len(q))
        for pairs in self._tips:
            total += np.maximum(distances[:, pairs].min(axis=1) - FREE, 0.0) ** 2
        return total


def _tip_pairs(task: Task) -> list[NDArray[np.intp]]:
    """Return the pairs of geometries in which each last link of the robot can touch the object."""
    model = task.model
    thing = model.body_names.index(task.object)
    of_pair = np.asarray(model.geom_body)[np.asarray(model.pair_geom)]
    with_object = (of_pair == thing).any(axis=1)
    return [
        np.flatnonzero((of_pair == link).any(axis=1) & with_object) for link in last_links(task)
    ]
