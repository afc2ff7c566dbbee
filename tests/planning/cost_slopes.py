"""Difference quotients of a tracking cost."""

from __future__ import annotations

import numpy as np

from qdsim.planning.tracking.cost_model import CostModel


def cost_slopes(cost: CostModel, model, path: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Slopes (T, nv) of the cost of a path (T + 1, nq) with commands u (T, nu), by displacements of each of its
    configurations but the first."""
    h, slopes = 1e-6, np.zeros((len(u), model.nv))
    for t in range(len(u)):
        for i, direction in enumerate(np.eye(model.nv)):
            ends = []
            for sign in (-1.0, 1.0):
                moved = path.copy()
                moved[t + 1] = model.integrate(path[t + 1], sign * h * direction)
                ends.append(cost.values(moved, u, u[0])[0])
            slopes[t, i] = (ends[1] - ends[0]) / (2 * h)
    return slopes
