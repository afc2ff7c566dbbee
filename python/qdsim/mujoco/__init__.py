"""Derivatives of MuJoCo's own step: any ``MjModel`` and ``MjData``, no model of this package."""

from .differences import contact_change
from .linearize import Transition, linearize, refusals

__all__ = ["Transition", "contact_change", "linearize", "refusals"]
