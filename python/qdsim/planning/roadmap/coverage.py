"""The share of random queries that a roadmap answers."""

from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np

from qdsim.array_type import Array

__all__ = ["Coverage", "wilson"]

_Z = statistics.NormalDist().inv_cdf(0.975)
"""Standard normal quantile of a two-sided interval of 95 %."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """Results of random queries of a roadmap.

    Attributes:
        starts, goals: Configurations ``(n, nq)`` of the queries.
        reached: Whether a plan was found that ends within the task's tolerances, ``(n,)``.
    """

    starts: Array
    goals: Array
    reached: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @property
    def share(self) -> float:
        """Share of the queries that were answered by a plan."""
        return float(np.mean(self.reached))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the share (Wilson 1927)."""
        return wilson(int(np.count_nonzero(self.reached)), len(self.reached))

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Coverage({np.count_nonzero(self.reached)} of {len(self.reached)} queries, {self.share:.1%}, "
            f"95 % interval {low:.1%} to {high:.1%})"
        )


def wilson(successes: int, tries: int) -> tuple[float, float]:
    """Compute the 95 % confidence interval of a share (Wilson 1927, "Probable inference, the law of succession,
    and statistical inference")."""
    share = successes / tries
    middle = share + _Z**2 / (2 * tries)
    half = _Z * math.sqrt(share * (1 - share) / tries + _Z**2 / (4 * tries**2))
    scale = 1 + _Z**2 / tries
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
