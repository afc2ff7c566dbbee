"""Parameters of a model from recordings of what happened: friction, stiffness, masses, sizes, centres of mass."""

from qdsim.identification.answer import Identified, identify
from qdsim.identification.recordings import Recording

__all__ = ["Identified", "Recording", "identify"]
