"""Legs in a plant, in closed loop from the measured pose of the object."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.world import World
from qdsim.planning.roadmap.legs import Leg, Legs, Recorded
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.roadmap.turns import let_go, turn
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.task import Task

__all__ = ["Driven"]


_MISSES = 2
"""Number of failed legs in a row after which the fingers release the object, because they may be entangled."""


class Driven(Legs):
    """Makes legs by turning the object of a plant; unsuccessful legs also move it.

    Args:
        task, options: The task and the options of the roadmap.
        plant: The simulator or robot.
    """

    def __init__(self, task: Task, options: RoadmapOptions, plant: World) -> None:
        super().__init__(task, options)
        self._plant = plant
        self._u = np.asarray(task.model.command_from(plant.q))
        self._missed = 0

    def place(self, q: Array) -> None:
        """Reset the plant to ``q`` (nq), at rest."""
        self._plant.reset(q)
        self._u = np.asarray(self.task.model.command_from(q))
        self._missed = 0

    @property
    def lost(self) -> bool:
        """Whether the plant has lost the object."""
        return self._plant.lost

    def connect(
        self,
        q: Array,
        pose: Array,
        seed: int,
        region: GoalRegion | None = None,
        leave: bool = True,
    ) -> Leg:
        """Make a leg towards a pose; the arguments are those of :meth:`Legs.connect`."""
        task = self.task.towards(pose, goal_region=region)
        world = _InPlant(task, self._plant, self._u)
        for u in turn(task, world, leave, seed):
            world.move(u)
        self._missed = 0 if task.reached(world.q) else self._missed + 1
        if self._missed >= _MISSES:
            for u in let_go(task, world, world.u):
                world.move(u)
            self._missed = 0
        self._u = world.u
        return world.leg()

    def follow(self, q: Array, edge: Leg, pose: Array, seed: int) -> Leg:
        """Make a leg towards the end of an edge."""
        return self.connect(q, pose, seed)


class _InPlant(Recorded):
    """A plant that a turn moves; commands are interpolated linearly in each control period."""

    def __init__(self, task: Task, plant: World, u: Array) -> None:
        super().__init__(task, task.model.normalize(plant.q))
        self.plant, self.u = plant, u

    @property
    def coasts(self) -> bool:
        """Whether the object has inertia, so that it moves on after a command."""
        return True

    def _after(self, u: Array) -> Array:
        count = max(1, round(self.task.options.h / self.plant.timestep))
        for k in range(1, count + 1):
            self.plant.advance(self.u + k / count * (u - self.u))
        self.u = np.array(u)
        return np.asarray(self.task.model.normalize(self.plant.q))
