"""Derivatives of MuJoCo's own step: any ``MjModel`` and ``MjData``, no model of this package."""

from .batch import Transitions, linearize_batch
from .differences import contact_change
from .linearize import Transition, linearize, refusals
from .products import jvp, vjp

__all__ = [
    "Transition",
    "Transitions",
    "contact_change",
    "jvp",
    "linearize",
    "linearize_batch",
    "refusals",
    "vjp",
]
