"""Least squares with bounds, for the few commands of a robot."""

from __future__ import annotations

import numpy as np

from qdsim.arguments import finite, number, reals, vector
from qdsim.array_type import Array

__all__ = ["PATIENCE", "STEPS", "bounded_least_squares", "least_squares_in_box", "room"]

STEPS = 20
"""Largest number of Gauss-Newton steps on the robot's joints. A few suffice if the iteration converges."""
PATIENCE = 4
"""Largest number of successive steps that reduce the error by less than a tenth. Near a solution
the error falls by powers of ten. Far from one, it falls slowly along the limits towards a pose out
of reach, but an iteration around obstacles also may have a few slow steps. With one,
test_arms_among_posts.py fails."""


def bounded_least_squares(
    B: Array,
    target: Array,
    lower: Array,
    upper: Array,
    *,
    regularization: float = 1e-9,
    first_guess: Array | None = None,
) -> Array:
    """Minimise ``|B x - target|^2 + regularization |x|^2`` subject to ``lower <= x <= upper``.

    A primal active-set method (Stark and Parker 1995, "Bounded-variable least-squares"). The
    program is strictly convex and every full step lowers the cost on its working set, so the method
    ends at the minimiser. Most calls end at once, because the free solution lies within the bounds.

    Args:
        B: ``(n, m)`` matrix.
        target: ``(n,)`` right-hand side.
        lower, upper: ``(m,)`` bounds with ``lower <= 0 <= upper``; infinite for none.
        regularization: makes the solution unique if ``B`` has a kernel; small relative to the
            squares of the relevant singular values, it gives the solution of minimum norm.
        first_guess: ``(m,)`` the free solution, if the caller has it already.

    Returns:
        ``(m,)`` the minimiser.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    matrix = finite("B", reals("B", B, (-1, -1)))
    if matrix.shape[1] == 0:
        raise ValueError(f"B: expected a matrix (n, m), got shape {matrix.shape}")
    n, m = matrix.shape
    right = vector("target", target, n)
    low = vector("lower", lower, m, infinite=True)
    high = vector("upper", upper, m, infinite=True)
    if not ((low <= 0.0) & (high >= 0.0)).all():
        raise ValueError("lower, upper: expected lower <= 0 <= upper")
    weight = number("regularization", regularization, above=0)
    guess = None if first_guess is None else vector("first_guess", first_guess, m)
    return least_squares_in_box(matrix, right, low, high, regularization=weight, first_guess=guess)


def least_squares_in_box(
    B: Array,
    target: Array,
    lower: Array,
    upper: Array,
    *,
    regularization: float = 1e-9,
    first_guess: Array | None = None,
) -> Array:
    """:func:`bounded_least_squares` without its checks, for loops."""
    m = B.shape[1]
    if first_guess is not None and bool(((first_guess >= lower) & (first_guess <= upper)).all()):
        return first_guess
    H = B.T @ B
    H.flat[:: m + 1] += regularization
    g = B.T @ target
    x = first_guess
    if x is None:
        x = np.linalg.solve(H, g)
        if ((x >= lower) & (x <= upper)).all():
            return x
    x = np.minimum(np.maximum(x, lower), upper)
    free = (x > lower) & (x < upper)
    scale = float(np.abs(g).max()) + 1e-300
    for _ in range(10 * m + 10):
        # Go to the minimiser over the free variables, or to the first bound on the way.
        while free.any():
            # Fixed variables keep an identity row, so that one solve of full size serves any
            # working set.
            masked = np.where(free[:, None] & free, H, np.eye(m))
            step = np.linalg.solve(masked, np.where(free, g - H @ x, 0.0))
            there = x + step
            outside = (there < lower) | (there > upper)
            if not outside.any():
                x = there
                break
            room = np.where(step > 0.0, upper, lower) - x
            ratio = np.where(outside, room, np.inf) / np.where(outside, step, 1.0)
            first = int(ratio.argmin())
            x = x + ratio[first] * step
            x[first] = upper[first] if step[first] > 0.0 else lower[first]
            free[first] = False
        # Free the variable whose multiplier has the worst wrong sign.
        slope = H @ x - g
        inward = np.where(x <= lower, -slope, np.where(x >= upper, slope, 0.0))
        inward[free | (lower == upper)] = 0.0
        worst = int(inward.argmax())
        if inward[worst] <= 1e-12 * scale:
            break
        free[worst] = True
    return x


def room(x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return how far ``x`` may move within bounds, ``(<= 0, >= 0)``; zero in a direction in which
    it is beyond them."""
    return np.minimum(lower - x, 0.0), np.maximum(upper - x, 0.0)
