"""Second-order motion over a time: fixed steps, or steps as short as an accuracy asks for.

``course`` advances a state, ``events`` sees contacts close and open, ``result`` is what comes of it.
"""

from qdsim.simulation.result import Simulation
from qdsim.simulation.simulate import simulate

__all__ = ["Simulation", "simulate"]
