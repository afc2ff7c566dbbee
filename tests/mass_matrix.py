"""MuJoCo's mass matrix, whose function has other arguments before 3.10."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ["mass_matrix"]


def mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.float64]:
    """``(nv, nv)`` at the state of the data."""
    dense = np.zeros((model.nv, model.nv))
    if hasattr(data, "qM"):
        mujoco.mj_fullM(model, dense, data.qM)
    else:
        mujoco.mj_fullM(model, data, dense)
    return dense
