"""Estimation of a model's parameters from recorded motions: friction, stiffness, masses, sizes,
centres of mass."""

from qdsim.identification.answer import Identified, identify
from qdsim.identification.recordings import Recording

__all__ = ["Identified", "Recording", "identify"]
