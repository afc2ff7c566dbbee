"""Known grasps, moved to the present pose of the object."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batches.queries import checked_distances
from qdsim.model import DEFAULT_MARGIN, Model
from qdsim.planning.grasps.samplers.touching import CHOICES, RARELY, TRIES, bring_to_touch, sides
from qdsim.planning.task.contact_sampler import ContactSampler
from qdsim.planning.task.drives import robot_q, sharing
from qdsim.planning.task.followers import with_followers
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.task import Task

__all__ = ["KeptGrasps", "with_kept"]


@dataclasses.dataclass(frozen=True, eq=False)
class KeptGrasps:
    """Takes a grasp from a list, moves the robot until the same shapes touch the object again, or
    else draws a new one.

    Of several grasps drawn from the list, it takes the one whose shapes are nearest to touching.
    Grasps of other poses therefore also serve, as do those of symmetric objects after a rotation by
    a symmetry.

    Attributes:
        fresh: draws new grasps.
        object: name of the object's body.
        grasps: ``(n, nq)`` configurations in which the robot touches the object.
    """

    fresh: ContactSampler
    object: str
    grasps: Array

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the object unmoved, or None if no grasp was found."""
        for _ in range(TRIES):
            if rng.random() < RARELY or len(self.grasps) == 0:
                break
            found = self._kept(model, q, rng)
            if found is not None:
                return found
        return self.fresh(model, q, rng)

    def _kept(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Draw some kept grasps and bring the nearest one to the object."""
        kept = self.grasps[rng.integers(len(self.grasps), size=CHOICES)]
        touching = self._between(model) & (checked_distances(model, kept, TOUCHING) < TOUCHING)
        own = robot_q(model)
        here = np.repeat(q[None], CHOICES, axis=0)
        here[:, own] = kept[:, own]
        with_followers(model, here)
        gaps = np.where(touching, np.abs(checked_distances(model, here, DEFAULT_MARGIN)), 0.0)
        nearest = int(np.where(touching.any(axis=1), gaps.max(axis=1), np.inf).argmin())
        pairs = np.flatnonzero(touching[nearest])
        if len(pairs) == 0:
            return None
        return bring_to_touch(model, here[nearest], self.object, pairs)

    def _between(self, model: Model) -> NDArray[np.bool_]:
        """Return which pairs of shapes are of robot and object, ``(pairs,)``."""
        own, robot = sides(model, self.object)
        a, b = model.geom_body[model.pair_geom].T
        return np.asarray((own[a] & robot[b]) | (own[b] & robot[a]))


def with_kept(task: Task, grasps: Array) -> Task:
    """Return a task whose sampler tries these grasps ``(n, nq)`` first.

    The task itself if it has no sampler, or if joints of the robot share tendons.
    """
    if task.sampler is None or len(grasps) == 0 or sharing(task.model):
        return task
    return task.replace(sampler=KeptGrasps(task.sampler, task.object, grasps))
