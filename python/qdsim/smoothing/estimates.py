"""Means, slopes and their standard errors from samples.

Samples (points, samples, ...) come in independent blocks of equal size. A block with a failed
sample is left out as a whole, because a pair or a replicate without its other half is not balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

__all__ = ["Estimate", "Means", "block_mean", "score_slope", "slope"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Estimate:
    """An estimate (points, ...) and its standard error."""

    value: Array
    error: Array


class Means:
    """Mean and spread of block means, updated in pieces (Chan, Golub and LeVeque 1983)."""

    def __init__(self, points: int, *shape: int) -> None:
        self.count = np.zeros(points)
        self.mean = np.zeros((points, *shape))
        self.spread = np.zeros((points, *shape))  # sum of squared distances from the mean

    def add(self, blocks: Array, good: Flags) -> None:
        """Add ``blocks`` (points, blocks, ...), without those whose entry of ``good`` (points, blocks) is False."""
        if good.all():
            self._merge(float(blocks.shape[1]), *_moments(blocks))
            return
        wide = (slice(None), slice(None)) + (None,) * (blocks.ndim - 2)
        weight = good.astype(np.float64)
        count = weight.sum(axis=1)
        kept = np.where(good[wide], blocks, 0.0)
        one = wide[:1] + wide[2:]
        mean = kept.sum(axis=1) / np.maximum(count, 1.0)[one]
        off = np.where(good[wide], blocks - mean[:, None], 0.0)
        self._merge(count, mean, np.einsum("kb...,kb...->k...", off, off))

    def _merge(self, count: Array | float, mean: Array, spread: Array) -> None:
        one = (slice(None),) + (None,) * (mean.ndim - 1)
        total = np.maximum(self.count + count, 1.0)
        shift = mean - self.mean
        self.mean += shift * (count / total)[one]
        self.spread += spread + shift * shift * (self.count * count / total)[one]
        self.count += count

    def estimate(self) -> Estimate:
        """Return the mean of the blocks; its error is infinite if there are fewer than two."""
        n = self.count.reshape(-1, *(1,) * (self.mean.ndim - 1))
        error = np.sqrt(self.spread / np.maximum(n * (n - 1.0), 1.0))
        return Estimate(self.mean, np.where(n >= 2, error, np.inf))


def _moments(blocks: Array) -> tuple[Array, Array]:
    """Compute the mean and spread over axis 1, in two passes and with a single copy."""
    mean = blocks.mean(axis=1)
    off = blocks - mean[:, None]
    return mean, np.einsum("kb...,kb...->k...", off, off)


def block_mean(samples: Array, block: int) -> Array:
    """Average over blocks: (points, samples, ...) -> (points, blocks, ...)."""
    if block == 1:
        return samples
    points, count, *rest = samples.shape
    mean: Array = samples.reshape(points, count // block, block, *rest).mean(axis=2)
    return mean


def _error(influence: Array, good: Flags, block: int, freedom: Array) -> Array:
    """Compute the standard error of a mean of influences (points, samples, rows, columns) over ``good`` blocks."""
    mean = block_mean(influence, block)
    spread = np.einsum("kbij,kbij->kij", mean, mean)
    n = good.sum(axis=1)
    left = np.maximum(n * freedom, 1.0)[:, None, None]
    error: Array = np.where((n * freedom > 0)[:, None, None], np.sqrt(spread / left), np.inf)
    return error


def score_slope(y: Array, score: Array, good: Flags, block: int) -> Estimate:
    """Estimate E[y S'] (CQDC eq. 14).

    y is (points, samples, n), relative to its value at zero noise; the score S is (points, samples,
    d).
    """
    kept = np.repeat(good, block, axis=1)[..., None]
    y = np.where(kept, y, 0.0)
    count = np.maximum(good.sum(axis=1) * block, 1)[:, None, None]
    value = np.swapaxes(y, 1, 2) @ score / count
    influence = np.where(kept[..., None], y[..., None] * score[..., None, :] - value[:, None], 0.0)
    return Estimate(value, _error(influence, good, block, good.sum(axis=1) - 1.0))


def slope(y: Array, z: Array, good: Flags, block: int) -> Estimate:
    """Least-squares slope of y (points, samples, n) on z (.., samples, d), with an intercept (eq.
    15).

    The standard error is valid for any variation of the residuals with z (White 1980), with blocks
    as clusters.
    """
    kept = np.repeat(good, block, axis=1)[..., None]
    count = np.maximum(good.sum(axis=1) * block, 1)[:, None, None]
    z = np.where(kept, z, 0.0)
    y = np.where(kept, y, 0.0)
    z = np.where(kept, z - z.sum(axis=1, keepdims=True) / count, 0.0)
    y = np.where(kept, y - y.sum(axis=1, keepdims=True) / count, 0.0)
    moment = np.swapaxes(z, 1, 2) @ z
    lever = np.linalg.solve(moment, np.swapaxes(z, 1, 2))  # (points, d, samples)
    value = np.swapaxes(lever @ y, 1, 2)
    residual = y - z @ np.swapaxes(value, 1, 2)
    weight = np.swapaxes(lever, 1, 2) * count
    influence = residual[..., None] * weight[..., None, :]
    # The fit has d + 1 coefficients. Each block counts as one observation.
    freedom = good.sum(axis=1) - (z.shape[-1] + 1.0) / block
    return Estimate(value, _error(influence, good, block, freedom))
