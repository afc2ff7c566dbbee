"""Demonstrations of tasks, for imitation: episodes of a greedy teacher, or of plans (extra ``envs``).

``demonstrations(task, count)`` makes them, seeded, and goes on where a file of them ends;
``Demonstrations`` are arrays, kept as NPZ and written as a dataset of Minari (extra ``minari``).
"""

from qdsim.data.collecting import demonstrations
from qdsim.data.demonstrations import Demonstrations

__all__ = ["Demonstrations", "demonstrations"]
