"""Grasps that carry an object with little friction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.samplers.carrying import CARRIES, OFF, carrying_efforts
from qdsim.planning.grasps.samplers.surface import SurfaceSampler
from qdsim.planning.task.contact_sampler import ContactSampler

__all__ = ["FirmSampler"]

_USED = (1.0 - OFF, 0.3, 0.1)
"""Shares of the friction coefficients with which the effort of a grasp counts. The first one tells whether it carries;
the others prefer grasps in which the shape of the object rests on the fingers."""
_DRAWS, _STEPS = 20, 150
"""Number of grasps of which the best one is improved, and of changes that are tried."""


@dataclasses.dataclass(frozen=True, eq=False)
class FirmSampler:
    """Draws grasps of opposite fingers, and improves the best one until it carries the object with little friction.

    Of grasps at random places hardly any carries an object that is large for the hand, and those that do need most of
    the friction, so that they are lost as soon as the fingers accelerate or contacts creep. Changes of single places
    are tried here, and kept if the effort to carry the object (:func:`carrying_efforts`), in all over several shares of
    the friction, is smaller with them.

    Attributes:
        surface: draws the grasps.
        own: the sampler of the task, which draws faster, but grasps of which hardly any hold the object.
        leaves: Function from a model and a configuration ``(nq,)`` to whether the robot can back off from there; grasps
            that it cannot leave it cannot reach either.
    """

    surface: SurfaceSampler
    own: ContactSampler
    leaves: Callable[[Model, Array], bool]

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the object unmoved, or None if no grasp carries it."""
        best, least = None, [math.inf]
        for k in range(_DRAWS + _STEPS):
            if k < _DRAWS:
                found = self.surface.attempt(model, q, rng, True)
            else:
                found = None if best is None else self.surface.beside(model, best, rng)
            if found is None:
                continue
            efforts = carrying_efforts(model, found, self.surface.object, self.surface.near, _USED)
            if sum(efforts) < sum(least) and self.leaves(model, found):
                best, least = found, efforts
        return best if least[0] < CARRIES else None
