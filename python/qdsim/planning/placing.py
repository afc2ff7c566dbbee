"""A grasp that was planned for another pose of the object, made to fit the pose that it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qdsim._core import SolverError
from qdsim.model import Model
from qdsim.planning.space import Array
from qdsim.planning.task import penetration
from qdsim.step import Options, step

__all__ = ["placed"]

STEPS = 20


def placed(
    model: Model,
    object_name: str,
    q: ArrayLike,
    options: Options,
    tolerance: float,
) -> tuple[Array, bool]:
    """The robot out of an object that it penetrates: the object stands still, the robot's springs give way.

    Args:
        model: the model.
        object_name: body that stands still, with everything on its joints.
        q: ``(nq,)`` the robot in its grasp, the object where it is; the springs' command is this grasp.
        options: of the steps; their smoothing and their own held bodies do not count.
        tolerance: deepest penetration that may be left, m.

    Returns:
        The configuration ``(nq,)``, ``q`` itself where nothing penetrates deeper than the tolerance, and
        whether that was reached.
    """
    here = np.array(q, dtype=np.float64)
    command = model.command_from(here)
    held = options.replace(held=(object_name,), kappa=None)
    for _ in range(STEPS):
        if penetration(model, here) <= tolerance:
            return here, True
        try:
            here = np.array(step(model, here, command, held).q_next)
        except SolverError:
            return here, False
    return here, penetration(model, here) <= tolerance
