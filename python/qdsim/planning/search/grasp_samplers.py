"""The samplers of grasps that a search uses."""

from __future__ import annotations

import dataclasses

from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers import SurfaceSampler
from qdsim.planning.grasps.samplers.kept import KeptGrasps
from qdsim.planning.task.task import Task

__all__ = ["grasping_tasks"]


def grasping_tasks(task: Task) -> tuple[Task, Task | None]:
    """Return the task with a sampler that knows whether the object has to be carried to its goal.

    If it has to be carried, also return the task with a sampler of grasps for pushes, otherwise None.
    """
    sampler = task.sampler
    if isinstance(sampler, KeptGrasps):
        plain, pushing = grasping_tasks(task.replace(sampler=sampler.fresh))
        fresh = plain.sampler or sampler.fresh
        return plain.replace(sampler=dataclasses.replace(sampler, fresh=fresh)), pushing
    if not isinstance(sampler, SurfaceSampler) or sampler.carry is not None:
        return task, None
    plain = task.replace(sampler=dataclasses.replace(sampler, carry=False))
    if is_stable(task.model, task.aim, task.object, task.options):
        return plain, None
    return task, plain
