"""Least squares with bounds, for the few commands of a robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bounded_least_squares"]

Array = NDArray[np.float64]


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

    Clipping the free solution at the bounds would waste the joints that still can move; here they take
    over. A primal active set method (Stark and Parker 1995, "Bounded-variable least-squares"): the program is
    strictly convex, every full step lowers the cost on its working set, so it ends at the minimiser. Most
    calls end at once, because the free solution lies within the bounds.

    Args:
        B: ``(n, m)`` matrix.
        target: ``(n,)`` right-hand side.
        lower, upper: ``(m,)`` bounds with ``lower <= 0 <= upper``; infinite where there is none.
        regularization: makes the solution unique where ``B`` has a kernel; small against the squares of the
            singular values that matter, it gives the solution of minimum norm.
        first_guess: ``(m,)`` the free solution, if the caller has it already.

    Returns:
        ``(m,)`` the minimiser.
    """
    m = B.shape[1]
    H = B.T @ B
    H.flat[:: m + 1] += regularization
    g = B.T @ target
    x = np.linalg.solve(H, g) if first_guess is None else first_guess
    if bool(((x >= lower) & (x <= upper)).all()):
        return x

    x = np.clip(x, lower, upper)
    free = (x > lower) & (x < upper)
    scale = float(np.abs(g).max()) + 1e-300
    for _ in range(10 * m + 10):
        # Go to the minimiser over the free variables, or as far as the first bound on the way.
        while free.any():
            index = np.flatnonzero(free)
            fixed = np.flatnonzero(~free)
            rhs = g[index] - H[np.ix_(index, fixed)] @ x[fixed]
            step = np.linalg.solve(H[np.ix_(index, index)], rhs) - x[index]
            room = np.where(step > 0.0, upper[index] - x[index], lower[index] - x[index])
            ratio = np.divide(room, step, out=np.full(len(index), np.inf), where=step != 0.0)
            if ratio.min() >= 1.0:
                x[index] += step
                break
            first = int(ratio.argmin())
            x[index] += ratio[first] * step
            x[index[first]] = upper[index[first]] if step[first] > 0.0 else lower[index[first]]
            free[index[first]] = False
        # Let go of the bound whose multiplier has the wrong sign, the worst one first.
        slope = H @ x - g
        inward = np.where(x <= lower, -slope, np.where(x >= upper, slope, 0.0))
        inward[free | (lower == upper)] = 0.0
        worst = int(inward.argmax())
        if inward[worst] <= 1e-12 * scale:
            break
        free[worst] = True
    return x
