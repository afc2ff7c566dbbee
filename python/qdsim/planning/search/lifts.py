"""Goals in the air: where the object lands below them, and grasps in which fingers carry it up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.grasps.carried import carried, grip_of_steps
from qdsim.planning.grasps.grip import GripOptions, can_hold
from qdsim.planning.grasps.resting import is_stable, landing
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["Lifts"]


class Lifts:
    """Lifts of an object that rests near the pose below its goal.

    Pushes with the commands of the smoothed model press one finger after the other against the object, and tilt it as
    soon as it is off its support. A grip balances its weight in every step.

    Args:
        task: The task.
        options: Settings of the search.
        steps: Options of the steps along edges.
        falls: Whether gravity acts on the object.

    Attributes:
        below: The pose in which the object would come to rest if it fell from a goal in the air, ``(nq,)``. The last
            grasp may have to be taken there. None if this does not apply.
    """

    def __init__(self, task: Task, options: RRTOptions, steps: Options, falls: bool) -> None:
        self._task, self._steps = task, steps
        chained = options.strategy == "chain" and options.require_static_regrasps
        lifts = chained and falls and task.sampler is not None
        self.below = None
        if lifts and not is_stable(task.model, task.aim, task.object, steps):
            self.below = landing(task.model, task.aim, task.object, steps)
        self._grip = None
        if self.below is not None and options.dynamics == "exact":
            grip = grip_of_steps(task, GripOptions())
            self._grip = grip if can_hold(task, grip) else None

    def motions(
        self, grasping: Task, q: Array, draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[Array, tuple[Array, Array]]]:
        """Yield newly drawn grasps in which fingers carry the object, with the commands and configurations of the motion.

        Args:
            grasping: The task whose sampler draws the grasps.
            q: ``(nq,)`` configuration with the object in its pose.
            draws: Number of grasps that are drawn.
            rng: Random numbers of the sampler.
        """
        for _ in range(draws if self._grip else 0):
            grasp = grasping.grasp(q, rng)
            if grasp is None or self._grip is None:
                return
            motion = carried(self._task, self._grip, self._steps, grasp)
            if motion is not None:
                yield grasp, motion
