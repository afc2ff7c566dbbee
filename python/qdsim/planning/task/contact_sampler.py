"""The interface of contact samplers."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["ContactSampler"]


class ContactSampler(Protocol):
    """Draws a grasp of the object at its pose in ``q`` ``(nq,)``; None if it finds none."""

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None: ...
