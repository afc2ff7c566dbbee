"""Samples of a unit density: pseudo-random, antithetic or quasi-random, from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qdsim.arguments import MOST_HELD, MOST_SEED
from qdsim.array_type import Array
from qdsim.smoothing.densities import DENSITIES, Density
from qdsim.smoothing.philox import raw_numbers
from qdsim.smoothing.sobol import scrambled_sobol

__all__ = ["Design", "Seed", "draw", "key_of"]

Seed = int | np.random.Generator


def key_of(rng: Seed) -> int:
    """Return the key of the random stream: the seed itself, or a number drawn from a generator."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(MOST_SEED >> 1, endpoint=True))
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)):
        raise TypeError(
            f"rng: expected an integer or a numpy.random.Generator, got {type(rng).__name__}"
        )
    if not 0 <= rng <= MOST_SEED:
        raise ValueError(f"rng: expected a seed from 0 to 2**64 - 1, got {int(rng)}")
    return int(rng)


@dataclass(frozen=True)
class Design:
    """How samples depend on each other. Successive blocks of equal size are independent."""

    samples: int
    antithetic: bool
    sobol: bool
    replicates: int

    @property
    def block(self) -> int:
        """Number of samples in a block."""
        if self.sobol:
            return self.samples // self.replicates
        return 2 if self.antithetic else 1


def draw(design: Design, density: Density, key: int, stream: int, dimension: int) -> Array:
    """Return samples (samples, dimension) of unit scale, read-only.

    Sample i uses the numbers i * dimension up to (i + 1) * dimension of its stream, so a larger
    number of samples begins with the same ones. Small draws are cached, because planners request
    the same ones repeatedly.
    """
    kept = _kept.cache_parameters()["maxsize"] or 1
    small = kept * design.samples * dimension <= MOST_HELD
    make = _kept if small and DENSITIES.get(density.name) is density else _made
    return make(design, density, key, stream, dimension)


def _made(design: Design, density: Density, key: int, stream: int, dimension: int) -> Array:
    own = design.samples // 2 if design.antithetic else design.samples
    if design.sobol:
        count = own // design.replicates
        parts = [
            scrambled_sobol(key, stream, r, count, dimension) for r in range(design.replicates)
        ]
        uniform = np.concatenate(parts)
    else:
        raw = raw_numbers(key, stream, own * dimension).reshape(own, dimension)
        uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    samples = np.array(density.quantile(uniform), dtype=np.float64)
    if samples.shape != uniform.shape or not np.isfinite(samples).all():
        raise ValueError(
            f"density: the quantile of {density.name!r} is not finite, or has lost the shape"
        )
    if design.antithetic:
        samples = np.stack([samples, -samples], axis=1).reshape(design.samples, dimension)
    samples.setflags(write=False)
    return samples


_kept = lru_cache(maxsize=64)(_made)
