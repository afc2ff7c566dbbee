"""Rotations as quaternions."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array

__all__ = ["quaternions"]


def quaternions(matrices: Array) -> Array:
    """Convert rotation matrices ``(n, 3, 3)`` to unit quaternions ``(n, 4)``, w x y z."""
    r = matrices
    trace = r[:, 0, 0] + r[:, 1, 1] + r[:, 2, 2]
    # The squares of 2w, 2x, 2y and 2z; the quaternion is divided by its largest entry.
    squares = np.stack([1.0 + trace, *(1.0 + 2.0 * r[:, i, i] - trace for i in range(3))], axis=1)
    products = np.empty((len(r), 4, 4))
    products[:, range(4), range(4)] = squares
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        products[:, 0, 1 + i] = products[:, 1 + i, 0] = r[:, k, j] - r[:, j, k]
        products[:, 1 + j, 1 + k] = products[:, 1 + k, 1 + j] = r[:, k, j] + r[:, j, k]
    largest = squares.argmax(axis=1)
    chosen = products[np.arange(len(r)), largest]
    return np.asarray(chosen / np.linalg.norm(chosen, axis=1, keepdims=True))
