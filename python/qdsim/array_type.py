"""The one type of arrays, floating numbers in double precision, and what counts as their rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ROUNDING", "SAME", "Array"]

Array = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Relative; differences below it are what rounding leaves in numbers computed from others of about 1."""

SAME = 1e-6
"""Relative, m or rad; given numbers that differ by less are the same, and no less is left by a step's certificate."""
