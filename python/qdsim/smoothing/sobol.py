"""Scrambled Sobol points: digital nets in base 2, randomised so that their means are unbiased."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.smoothing.philox import raw_numbers

__all__ = ["MAX_DIMENSION", "scrambled_sobol"]


_BITS = 32

# Degree, primitive polynomial over GF(2) and initial direction numbers of every coordinate after
# the first, as chosen by tools/make_sobol.py.
_TABLE: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 3, (1,)),
    (2, 7, (1, 3)),
    (3, 11, (1, 3, 1)),
    (3, 13, (1, 3, 3)),
    (4, 19, (1, 1, 3, 5)),
    (4, 25, (1, 3, 7, 15)),
    (5, 37, (1, 1, 5, 15, 31)),
    (5, 41, (1, 3, 1, 3, 1)),
    (5, 47, (1, 3, 5, 1, 29)),
    (5, 55, (1, 1, 3, 9, 11)),
    (5, 59, (1, 1, 7, 5, 31)),
    (5, 61, (1, 1, 7, 9, 11)),
    (6, 67, (1, 1, 3, 9, 23, 41)),
    (6, 91, (1, 3, 7, 1, 1, 15)),
    (6, 97, (1, 3, 7, 5, 17, 15)),
    (6, 103, (1, 3, 1, 1, 17, 51)),
    (6, 109, (1, 1, 5, 1, 3, 23)),
    (6, 115, (1, 3, 3, 9, 11, 25)),
    (7, 131, (1, 1, 7, 15, 31, 5, 13)),
    (7, 137, (1, 3, 1, 9, 31, 15, 21)),
    (7, 143, (1, 1, 5, 3, 19, 35, 121)),
    (7, 145, (1, 1, 1, 5, 25, 45, 57)),
    (7, 157, (1, 1, 1, 9, 25, 37, 33)),
    (7, 167, (1, 3, 7, 1, 1, 41, 31)),
    (7, 171, (1, 1, 1, 11, 13, 9, 125)),
    (7, 185, (1, 3, 5, 7, 29, 13, 49)),
    (7, 191, (1, 3, 7, 9, 11, 13, 111)),
    (7, 193, (1, 1, 7, 11, 9, 63, 79)),
    (7, 203, (1, 3, 3, 3, 31, 55, 31)),
    (7, 211, (1, 3, 7, 7, 11, 1, 123)),
    (7, 213, (1, 1, 7, 3, 29, 61, 3)),
    (7, 229, (1, 3, 5, 3, 25, 21, 115)),
    (7, 239, (1, 3, 3, 13, 17, 39, 47)),
    (7, 241, (1, 3, 1, 3, 9, 33, 43)),
    (7, 247, (1, 1, 1, 3, 1, 23, 35)),
    (7, 253, (1, 3, 1, 13, 1, 35, 39)),
    (8, 285, (1, 3, 5, 13, 13, 19, 17, 31)),
    (8, 299, (1, 3, 7, 9, 23, 31, 11, 23)),
    (8, 301, (1, 3, 1, 7, 17, 11, 37, 207)),
    (8, 333, (1, 3, 1, 7, 7, 33, 73, 139)),
    (8, 351, (1, 3, 1, 1, 29, 37, 89, 87)),
    (8, 355, (1, 1, 5, 1, 3, 41, 11, 179)),
    (8, 357, (1, 3, 7, 1, 23, 41, 29, 59)),
    (8, 361, (1, 1, 7, 13, 23, 53, 49, 243)),
    (8, 369, (1, 1, 3, 15, 11, 19, 51, 49)),
    (8, 391, (1, 3, 7, 5, 3, 43, 109, 89)),
    (8, 397, (1, 1, 5, 7, 31, 31, 17, 71)),
    (8, 425, (1, 3, 5, 13, 17, 59, 71, 105)),
    (8, 451, (1, 1, 1, 1, 23, 7, 109, 35)),
    (8, 463, (1, 1, 1, 15, 31, 1, 69, 9)),
    (8, 487, (1, 3, 3, 13, 27, 55, 81, 241)),
    (8, 501, (1, 3, 3, 13, 11, 59, 35, 243)),
    (9, 529, (1, 1, 5, 13, 31, 59, 51, 59, 55)),
    (9, 539, (1, 1, 7, 5, 1, 61, 69, 109, 479)),
    (9, 545, (1, 1, 5, 13, 23, 31, 123, 185, 35)),
    (9, 557, (1, 1, 1, 5, 19, 31, 61, 35, 143)),
    (9, 563, (1, 1, 7, 11, 1, 25, 91, 243, 417)),
    (9, 601, (1, 3, 3, 11, 29, 31, 33, 119, 311)),
    (9, 607, (1, 3, 1, 11, 3, 15, 77, 107, 337)),
    (9, 617, (1, 1, 7, 3, 31, 27, 121, 183, 467)),
    (9, 623, (1, 1, 7, 15, 1, 47, 29, 159, 239)),
    (9, 631, (1, 3, 1, 7, 23, 33, 69, 233, 77)),
    (9, 637, (1, 1, 1, 5, 7, 43, 7, 209, 439)),
)

MAX_DIMENSION = len(_TABLE) + 1
"""Coordinates beyond this one are pseudo-random."""


@cache
def _generators() -> npt.NDArray[np.float32]:
    """Return the generator matrices (dimension, bits, bits): entry [r, k] is digit r of point 2^k."""
    numbers = np.zeros((MAX_DIMENSION, _BITS), dtype=np.uint64)
    numbers[0] = [1 << (_BITS - 1 - k) for k in range(_BITS)]
    for row, (degree, polynomial, initial) in zip(numbers[1:], _TABLE):
        m = list(initial)
        for k in range(degree, _BITS):  # Bratley and Fox 1988, eq. 2
            value = m[k - degree] ^ (m[k - degree] << degree)
            for i in range(1, degree):
                if polynomial >> (degree - i) & 1:
                    value ^= m[k - i] << i
            m.append(value)
        row[:] = [m[k] << (_BITS - 1 - k) for k in range(_BITS)]
    places = np.arange(_BITS - 1, -1, -1, dtype=np.uint64)
    digits = (numbers[:, None, :] >> places[:, None]) & np.uint64(1)
    matrices: npt.NDArray[np.float32] = digits.astype(np.float32)
    return matrices


def scrambled_sobol(key: int, stream: int, replicate: int, count: int, dimension: int) -> Array:
    """Return (count, dimension) points in (0, 1): the first points of the randomised sequence.

    The randomisation is a random linear scrambling of digits (lower triangular matrices, Matousek
    1998) and a random digital shift, for this key, stream and replicate.
    """
    own = min(dimension, MAX_DIMENSION)
    used = max(1, int(count - 1).bit_length())
    if used > _BITS:
        raise ValueError(f"samples: a Sobol sequence has at most 2**{_BITS} points")
    numbers = raw_numbers(key, stream, own * (_BITS + 1) + count * (dimension - own), replicate + 1)
    words = numbers[: own * _BITS].reshape(own, _BITS)
    shift = numbers[own * _BITS : own * (_BITS + 1)] >> np.uint64(64 - _BITS)
    columns = np.arange(_BITS, dtype=np.uint64)
    below = np.tril((words[:, :, None] >> columns) & np.uint64(1), -1).astype(np.float32)
    scramble = below + np.eye(_BITS, dtype=np.float32)
    digits = (scramble @ _generators()[:own, :, :used]).astype(np.uint64) & np.uint64(1)
    places = np.uint64(1) << np.arange(_BITS - 1, -1, -1, dtype=np.uint64)
    directions = (digits * places[:, None]).sum(axis=1, dtype=np.uint64)  # (own, used)
    index = np.arange(count, dtype=np.uint64)
    points = np.tile(shift, (count, 1))
    for k in range(used):
        points ^= ((index >> np.uint64(k)) & np.uint64(1))[:, None] * directions[:, k]
    result = np.empty((count, dimension))
    result[:, :own] = (points.astype(np.float64) + 0.5) * 2.0**-_BITS
    rest = numbers[own * (_BITS + 1) :].reshape(count, dimension - own)
    result[:, own:] = ((rest >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return result
