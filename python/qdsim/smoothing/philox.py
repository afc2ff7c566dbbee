"""The counter-based generator behind all samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["raw_numbers"]


def raw_numbers(key: int, stream: int, count: int, section: int = 0) -> npt.NDArray[np.uint64]:
    """Return the first numbers of Philox 4x64-10 (Salmon et al. 2011) with the key (key, stream).

    The counter begins at 0 in its lower three words and at ``section`` in the highest.
    """
    generator = np.random.Philox(
        key=np.array([key, stream], dtype=np.uint64),
        counter=np.array([0, 0, 0, section], dtype=np.uint64),
    )
    return generator.random_raw(count)
