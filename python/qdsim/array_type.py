"""The one type of arrays: floating numbers in double precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array"]

Array = npt.NDArray[np.float64]
