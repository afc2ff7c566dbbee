"""Scrambled Sobol points: digital nets in base 2, shuffled at random so that their means have no bias."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from .philox import raw_numbers

__all__ = ["MAX_DIMENSION", "scrambled_sobol"]

Array = npt.NDArray[np.float64]

_BITS = 32

# Degree, primitive polynomial over GF(2) and initial direction numbers of every coordinate after the first, as
# tools/make_sobol.py chooses them.
_TABLE: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 3, (1,)),
    (2, 7, (1, 3)),
    (3, 11, (1, 3, 1)),
    (3, 13, (1, 3, 3)),
    (4, 19, (1, 1, 3, 7)),
    (4, 25, (1, 1, 3, 7)),
    (5, 37, (1, 1, 7, 13, 25)),
    (5, 41, (1, 3, 5, 5, 5)),
    (5, 47, (1, 3, 5, 5, 17)),
    (5, 55, (1, 1, 3, 3, 11)),
    (5, 59, (1, 3, 7, 9, 27)),
    (5, 61, (1, 1, 5, 9, 1)),
    (6, 67, (1, 3, 7, 7, 27, 57)),
    (6, 91, (1, 1, 7, 1, 27, 39)),
    (6, 97, (1, 1, 1, 1, 1, 13)),
    (6, 103, (1, 1, 7, 7, 31, 43)),
    (6, 109, (1, 1, 7, 7, 21, 21)),
    (6, 115, (1, 1, 5, 9, 9, 21)),
    (7, 131, (1, 3, 7, 11, 21, 59, 83)),
    (7, 137, (1, 3, 7, 9, 9, 55, 95)),
    (7, 143, (1, 3, 5, 3, 5, 9, 59)),
    (7, 145, (1, 3, 1, 7, 5, 41, 115)),
    (7, 157, (1, 1, 1, 15, 29, 3, 15)),
    (7, 167, (1, 3, 7, 15, 7, 33, 13)),
    (7, 171, (1, 1, 1, 13, 1, 39, 1)),
    (7, 185, (1, 3, 3, 9, 25, 5, 9)),
    (7, 191, (1, 3, 1, 3, 29, 51, 79)),
    (7, 193, (1, 3, 3, 15, 5, 59, 111)),
    (7, 203, (1, 1, 7, 3, 13, 43, 55)),
    (7, 211, (1, 1, 5, 15, 31, 47, 47)),
    (7, 213, (1, 1, 3, 1, 13, 41, 25)),
    (7, 229, (1, 3, 7, 9, 17, 47, 37)),
    (7, 239, (1, 1, 5, 3, 15, 55, 65)),
    (7, 241, (1, 1, 3, 3, 29, 63, 59)),
    (7, 247, (1, 1, 5, 13, 29, 35, 117)),
    (7, 253, (1, 3, 7, 1, 11, 1, 53)),
    (8, 285, (1, 1, 5, 7, 17, 59, 57, 1)),
    (8, 299, (1, 3, 1, 15, 15, 51, 21, 221)),
    (8, 301, (1, 3, 1, 13, 25, 31, 37, 53)),
    (8, 333, (1, 3, 1, 1, 13, 1, 55, 7)),
    (8, 351, (1, 3, 5, 15, 11, 59, 49, 197)),
    (8, 355, (1, 1, 5, 15, 17, 9, 59, 209)),
    (8, 357, (1, 3, 7, 9, 23, 39, 113, 229)),
    (8, 361, (1, 1, 3, 13, 5, 49, 93, 185)),
    (8, 369, (1, 1, 5, 5, 3, 5, 71, 3)),
    (8, 391, (1, 3, 5, 15, 15, 21, 17, 127)),
    (8, 397, (1, 3, 1, 13, 3, 1, 49, 181)),
    (8, 425, (1, 1, 3, 1, 19, 47, 27, 49)),
    (8, 451, (1, 3, 5, 11, 5, 29, 51, 49)),
    (8, 463, (1, 3, 5, 1, 19, 59, 89, 3)),
    (8, 487, (1, 3, 7, 11, 17, 25, 109, 195)),
    (8, 501, (1, 3, 1, 15, 25, 35, 101, 169)),
    (9, 529, (1, 1, 1, 9, 5, 1, 7, 75, 461)),
    (9, 539, (1, 3, 7, 9, 7, 55, 73, 247, 443)),
    (9, 545, (1, 1, 5, 1, 13, 53, 121, 117, 489)),
    (9, 557, (1, 3, 7, 5, 5, 17, 83, 41, 407)),
    (9, 563, (1, 3, 3, 9, 25, 57, 23, 3, 219)),
    (9, 601, (1, 3, 3, 1, 7, 59, 107, 223, 367)),
    (9, 607, (1, 1, 7, 1, 25, 63, 111, 153, 455)),
    (9, 617, (1, 1, 1, 3, 9, 19, 5, 131, 225)),
    (9, 623, (1, 1, 1, 3, 29, 55, 89, 97, 57)),
    (9, 631, (1, 3, 7, 7, 1, 47, 27, 87, 155)),
    (9, 637, (1, 1, 7, 15, 19, 47, 123, 161, 95)),
)

MAX_DIMENSION = len(_TABLE) + 1
"""Coordinates beyond this one are pseudo-random."""


@cache
def _generators() -> npt.NDArray[np.float32]:
    """(dimension, bits, bits) generator matrices: digit r of point 2^k is [r, k]."""
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
    """(count, dimension) points in (0, 1): the first of the sequence after a random linear scrambling of digits
    (lower triangular matrices, Matousek 1998) and a random digital shift, of this key, stream and replicate.
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
