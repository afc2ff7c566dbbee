"""Grasps that hold, for tasks whose own sampler draws hardly any."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.grip import Grip
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers.firm import FirmSampler
from qdsim.planning.grasps.samplers.surface import SurfaceSampler
from qdsim.planning.task.contact_sampler import ContactSampler
from qdsim.planning.task.task import Task

__all__ = ["Either", "with_holding", "without_holding"]

_LOOKS = 12
"""Number of grasps that are drawn to see whether a sampler's grasps hold."""
_ENOUGH = 0.25
"""Share of them that has to hold."""


@dataclasses.dataclass(frozen=True, eq=False)
class Either:
    """Draws from one of two samplers, chosen at random, and from the other one if it finds nothing.

    Attributes:
        first, second: the samplers.
    """

    first: ContactSampler
    second: ContactSampler

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the object unmoved, or None if no grasp was found."""
        both = (self.first, self.second)
        one, other = both if rng.random() < 0.5 else both[::-1]
        found = one(model, q, rng)
        return other(model, q, rng) if found is None else found


def with_holding(
    task: Task,
    grip: Grip,
    rng: np.random.Generator,
    leaves: Callable[[Model, Array], bool] | None = None,
) -> Task:
    """Return a task whose sampler also draws grasps of opposite fingers, if hardly any of its own grasps hold the object.

    Fingers that press from one side push an object and cannot carry it. If the goal is in the air, they have to
    hold the object without its support; if none of its own does so, only improved grasps (:class:`FirmSampler`)
    are drawn. The task itself if it has no sampler, or if enough of its grasps hold the object at the start.

    Args:
        task: the task.
        grip: how the object is held.
        rng: draws the grasps.
        leaves: whether the robot can back off from a configuration; None: not known, and grasps are then not improved.
    """
    if task.sampler is None:
        return task
    still = np.zeros(task.space.size)
    drawn = [task.grasp(task.start, rng) for _ in range(_LOOKS)]
    lean = is_stable(task.model, task.aim, task.object, task.options)
    grasps = [q for q in drawn if q is not None]

    def holding(by: Grip) -> list[bool]:
        return [by.holds(by.command(q, still, lean=lean)) for q in grasps]

    gentle = copy.copy(grip)
    gentle.carries = False
    if sum(holding(gentle)) >= _ENOUGH * _LOOKS:
        return task
    opposed = SurfaceSampler(task.object, carry=True, contacts=grip.fingers)
    if leaves is not None and not lean and not any(holding(grip)):
        return task.replace(sampler=FirmSampler(opposed, task.sampler, leaves))
    return task.replace(sampler=Either(task.sampler, opposed))


def without_holding(task: Task) -> Task:
    """Return a task with its own sampler alone, which draws grasps faster than the one that `with_holding` adds."""
    sampler = task.sampler
    if isinstance(sampler, FirmSampler):
        return task.replace(sampler=sampler.own)
    return task.replace(sampler=sampler.first) if isinstance(sampler, Either) else task
