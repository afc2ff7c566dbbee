"""Counter-based random numbers: the draws of an episode depend only on its seed and its number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array

__all__ = ["uniforms"]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: NDArray[np.uint64], episodes: NDArray[np.uint64], count: int) -> Array:
    """Return uniform numbers (n, count) in [0, 1) for each seed (n,) and episode number (n,)."""
    with np.errstate(over="ignore"):
        state = _mixed(_mixed(seeds + _ODD) ^ (episodes * _ODD + np.uint64(1)))
        places = np.arange(1, count + 1, dtype=np.uint64) * _ODD
        bits = _mixed(state[:, None] + places)
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
