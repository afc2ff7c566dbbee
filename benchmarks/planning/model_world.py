"""The quasi-dynamic model as a world, in the place of a simulator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdsim import step
from qdsim.planning import Task, TransferOptions
from qdsim.planning.execution.world import World

Array = NDArray[np.float64]


class Model(World):
    """The quasi-dynamic model as a world; a time step is a control period."""

    def __init__(self, task: Task) -> None:
        options = TransferOptions(timestep=task.options.h, control_period=task.options.h)
        still = np.zeros(task.model.nv)
        super().__init__(task.model, task.space, options, still, compensated=True)
        self.task, self._q, self._v = task, np.array(task.start), still

    def _place(self, q: Array) -> None:
        self._q = np.array(q)

    def _step(self, u: Array) -> None:
        self._q = np.asarray(step(self.model, self._q, u, self.task.options).q_next)
