"""The one type of arrays, floating numbers in double precision, and what counts as their rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ROUNDING", "SAME", "Array"]

Array = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Relative size of rounding errors in numbers computed from others of about 1."""

SAME = 1e-6
"""Numbers that differ by less than this (relative, m or rad) count as equal; a step's certificate
leaves errors of this size."""
