"""The result of every scheme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

__all__ = ["LocalModel", "StandardError"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StandardError:
    """Standard errors of sampled estimates, element by element; None for quantities that were not
    estimated."""

    A: Array | None
    """(..., nv, nv)"""
    B: Array | None
    """(..., nv, nu)"""
    c: Array
    """(..., nv) of c, in the tangent space there."""

    def __repr__(self) -> str:
        parts = (self.A, self.B, self.c)
        said = (
            f"{name}={0.0 if value is None or value.size == 0 else float(value.max()):.3g}"
            for name, value in zip("ABc", parts)
            if value is not None
        )
        return f"StandardError(largest {', '.join(said)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LocalModel:
    """Affine model of the step around (q̄, ū): q_next ~ c ⊞ (A (q ⊟ q̄) + B (u - ū)).

    (...) are leading dimensions of a batch.
    """

    A: Array | None
    """(..., nv, nv) in tangent coordinates, from those at q̄ to those at c; None if not requested
    or not estimated (zeroth order without sampled q)."""
    B: Array | None
    """(..., nv, nu); None if not requested."""
    c: Array
    """(..., nq) next configuration of the smoothed step at (q̄, ū)."""
    std_error: StandardError | None
    """Standard errors; None for schemes that do not sample."""
    samples: int
    """Steps per point, failed ones included; 1 for schemes that do not sample."""
    failed: npt.NDArray[np.int64]
    """(...) samples that failed and were left out."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False if the derivative is that of the central path in some sample."""

    @property
    def q_next(self) -> Array:
        """(..., nq) c, under its name in ``Linearization``."""
        return self.c

    def __repr__(self) -> str:
        lead = self.c.shape[:-1]
        parts = [f"shape={lead}"] if lead else []
        if self.std_error is not None:
            parts += [f"samples={self.samples}", f"failed={int(self.failed.sum())}"]
            parts.append(repr(self.std_error))
        return f"LocalModel({', '.join(parts)})"
