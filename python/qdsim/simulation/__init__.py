"""Second-order motion over a time, with a fixed time step or to a given accuracy.

``simulate`` advances a state, ``events`` detects contacts that close and open, ``result`` is the
result.
"""

from qdsim.simulation.result import Simulation
from qdsim.simulation.simulate import simulate

__all__ = ["Simulation", "simulate"]
