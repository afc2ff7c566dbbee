"""Choose the initial direction numbers of python/qdsim/smoothing/sobol.py and print its table.

Usage: python tools/make_sobol.py. Coordinate j (from 1) has the j-th primitive polynomial over GF(2), by degree
and then by value. Its initial numbers are the best of some random candidates: the one with the smallest
quality parameters t of the plane projections onto all earlier coordinates (Niederreiter 1992, section 4),
for 2^5, 2^7 and 2^9 points.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

DIMENSIONS = 64
BITS = 16
CANDIDATES = 150
SIZES = (5, 7, 9)


def primitive_polynomials() -> Iterator[tuple[int, int]]:
    """(degree, polynomial): x must have the order 2^degree - 1."""
    degree = 1
    while True:
        order = 2**degree - 1
        for polynomial in range((1 << degree) + 1, 2 << degree, 2):
            value, steps = 2 % polynomial if degree > 1 else 1, 1
            while value != 1:
                value <<= 1
                if value >> degree:
                    value ^= polynomial
                steps += 1
                if steps > order or value == 0:
                    break
            if value == 1 and steps == order:
                yield degree, polynomial
        degree += 1


def directions(degree: int, polynomial: int, initial: list[int]) -> list[int]:
    """Direction numbers of BITS bits, the first of a fraction in the highest bit (Bratley and Fox 1988)."""
    m = list(initial)
    for k in range(degree, BITS):
        value = m[k - degree] ^ (m[k - degree] << degree)
        for i in range(1, degree):
            if polynomial >> (degree - i) & 1:
                value ^= m[k - i] << i
        m.append(value)
    return [m[k] << (BITS - 1 - k) for k in range(BITS)]


def rows(v: list[int], size: int) -> list[int]:
    """Rows of the leading block of the generator matrix, as numbers of `size` bits."""
    return [sum((v[k] >> (BITS - 1 - r) & 1) << k for k in range(size)) for r in range(size)]


def independent(vectors: list[int]) -> int:
    """How many of the vectors, from the first on, are independent."""
    basis: list[int] = []
    for count, vector in enumerate(vectors):
        for b in basis:
            vector = min(vector, vector ^ b)
        if vector == 0:
            return count
        basis.append(vector)
    return len(vectors)


def quality(a: list[int], b: list[int], size: int) -> int:
    """The parameter t of the first 2^size points in the plane of two coordinates."""
    # Dependent rows a[:k] + b[:l] with k + l as small as can be: one less is independent for all splits.
    least = size + 1
    for k in range(size + 1):
        found = independent(a[:k] + b)
        if k <= found < k + size:
            least = min(least, found + 1)
    return size + 1 - least


def main() -> None:
    coin = random.Random(1)
    polynomials = primitive_polynomials()
    chosen: list[dict[int, list[int]]] = []
    identity = [1 << (BITS - 1 - k) for k in range(BITS)]
    chosen.append({size: rows(identity, size) for size in SIZES})
    for _ in range(DIMENSIONS - 1):
        degree, polynomial = next(polynomials)
        best: tuple[int, list[int], dict[int, list[int]]] | None = None
        for _ in range(CANDIDATES if degree > 1 else 1):
            initial = [2 * coin.randrange(1 << k) + 1 for k in range(degree)]
            v = directions(degree, polynomial, initial)
            blocks = {size: rows(v, size) for size in SIZES}
            cost = sum(
                quality(blocks[size], other[size], size) ** 5 for size in SIZES for other in chosen
            )
            if best is None or cost < best[0]:
                best = cost, initial, blocks
        assert best is not None
        chosen.append(best[2])
        print(f"    ({degree}, {polynomial}, {tuple(best[1])}),", flush=True)


if __name__ == "__main__":
    main()
