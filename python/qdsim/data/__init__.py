"""Demonstrations of tasks for imitation learning: episodes of a greedy teacher, or of plans (extra
``envs``).

``demonstrations(task, count)`` records them reproducibly, and continues from its own file.
``Demonstrations`` are arrays, saved as NPZ or exported as a Minari dataset (extra ``minari``).
"""

from qdsim.data.collecting import demonstrations
from qdsim.data.demonstrations import Demonstrations

__all__ = ["Demonstrations", "demonstrations"]
