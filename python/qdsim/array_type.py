"""The type of all arrays (double precision), and the sizes of differences that count as rounding errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ROUNDING", "SAME", "Array"]

Array = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Relative size of rounding errors in numbers computed from others of about 1."""

SAME = 1e-6
"""Numbers whose difference is smaller than this (relative, m or rad) count as equal. The
certificate of a step allows errors of this size."""
