"""Contact samplers: grasps for a given pose of the object.

A sampler is any callable ``sampler(model, q, rng) -> q_new | None``: it leaves the object where it
is, moves the robot to where it can push, and returns a configuration in which nothing penetrates,
or None if it found none. Samplers ask the model (``collide``, ``body_pose``) and know nothing of
planners.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdsim.model import Model
from qdsim.planning.grasps.samplers.box_face import BoxFaceSampler
from qdsim.planning.grasps.samplers.closing import ClosingSampler
from qdsim.planning.grasps.samplers.planar_hand import PlanarHandSampler
from qdsim.planning.grasps.samplers.planar_pushing import BoxSideSampler
from qdsim.planning.grasps.samplers.surface import SurfaceSampler
from qdsim.planning.grasps.samplers.touching import add_contact

__all__ = [
    "BoxFaceSampler",
    "BoxSideSampler",
    "ClosingSampler",
    "ContactSampler",
    "PlanarHandSampler",
    "SurfaceSampler",
    "add_contact",
]


class ContactSampler(Protocol):
    """Draws a grasp of the object at its pose in ``q`` ``(nq,)``."""

    def __call__(
        self, model: Model, q: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64] | None: ...
