"""Gauss-Newton steps from several starts (Levenberg and Marquardt's damping, bounds by bounded
least squares)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import MOST_HELD
from qdsim.array_type import ROUNDING, Array
from qdsim.identification.recordings import Pieces
from qdsim.identification.unknowns import Unknowns
from qdsim.planning.task.least_squares import least_squares_in_box

__all__ = ["End", "search"]

_DAMPING = 1e-3
"""Damping of the first step, relative to the squared columns of the Jacobian."""
_LEFT = 1e-3
"""Limit for convergence: the decrease of the squared residuals that the linear model still
predicts, divided by the residual variance. It corresponds to a thirtieth of a standard error."""
_SECANT = np.cbrt(ROUNDING)
"""Relative change of an unknown for central difference quotients, where rounding and curvature err alike."""
_PROBES = (0.25, 0.5, 2.0, 4.0)
"""Multiples of the initial unknowns from which further searches may start."""


@dataclasses.dataclass
class End:
    """End of a search: unknowns (k,), residuals (m,), derivatives (m, k), number of attempted
    steps, and whether it is an optimum."""

    x: Array
    r: Array
    J: Array
    tried: int
    converged: bool

    @property
    def cost(self) -> float:
        return float(self.r @ self.r)


_Look = Callable[[Array], "tuple[Array, Array] | None"]
"""Returns residuals (m,) and their derivatives (m, k) at unknowns (k,), or None if a step fails."""


def search(
    unknowns: Unknowns, pieces: Pieces, iterations: int, tolerance: float, *, free: bool
) -> End:
    """Search with the recorded initial configurations first; then, if they are ``free``, estimate them as well."""
    first = unknowns.values

    def slopes(x: Array) -> tuple[Array, Array] | None:
        try:
            return pieces.jacobian(unknowns, x)
        except SolverError:
            return None

    def secants(x: Array) -> tuple[Array, Array] | None:
        return _secants(unknowns, pieces, x)

    begun = End(first, *pieces.jacobian(unknowns, first), 0, False)
    ends = [_descend(unknowns, pieces, begun, slopes, iterations, tolerance)]
    beginnings = _beginnings(unknowns, pieces, ends[0])
    # Where the motion depends discontinuously on the unknowns, as when contacts begin or end,
    # derivatives carry little information. Difference quotients are then used.
    for look in (slopes, secants):
        best = min(ends, key=lambda end: end.cost)
        if look is secants and best.converged:
            break
        for x in beginnings if look is slopes else [best.x, *beginnings[:1]]:
            found = look(x)
            if found is not None:
                end = End(x, *found, 0, False)
                ends.append(_descend(unknowns, pieces, end, look, iterations, tolerance))
    best = min(ends, key=lambda end: end.cost)
    count = pieces.start_count
    entries = (pieces.row_count + count) * (len(first) + count)
    if free and entries <= MOST_HELD:
        unknowns = unknowns.with_starts(count)
        x = np.append(best.x, np.zeros(count))
        found = slopes(x)
        if found is not None:
            end = End(x, *found, 0, False)
            best = _descend(unknowns, pieces, end, slopes, iterations, tolerance)
            ends.append(best)
    exact = slopes(best.x) if best.converged else None
    # Difference quotients may indicate an optimum where derivatives do not. The answer then counts
    # as not converged.
    sure = exact is not None and _is_optimal(unknowns, best.x, *exact, tolerance)
    tried = sum(end.tried for end in ends)
    return dataclasses.replace(best, tried=tried, converged=sure)


def _secants(unknowns: Unknowns, pieces: Pieces, x: Array) -> tuple[Array, Array] | None:
    """Return residuals, and their central difference quotients with respect to every unknown, within bounds."""
    r = pieces.residuals(unknowns, x)
    columns = []
    for k, change in enumerate(_SECANT * np.maximum(np.abs(x), _SECANT)):
        ends, at = [], []
        for sign in (-1.0, 1.0):
            trial = x.copy()
            trial[k] = min(max(x[k] + sign * change, unknowns.lower[k]), unknowns.upper[k])
            left = pieces.residuals(unknowns, trial)
            ends.append(left)
            at.append(trial[k])
        if r is None or ends[0] is None or ends[1] is None:
            return None
        columns.append((ends[1] - ends[0]) / (at[1] - at[0]))
    return (r, np.column_stack(columns)) if r is not None else None


def _beginnings(unknowns: Unknowns, pieces: Pieces, end: End) -> list[Array]:
    """Return the best starting points among multiples of the unknowns, each alone and all together.

    If a search has found an optimum, which may be a local one, only one starting point is returned,
    else three.
    """
    count, first = len(unknowns.names), unknowns.values
    found = []
    for factor in _PROBES:
        for mask in (*np.eye(count, dtype=bool), np.ones(count, dtype=bool)):
            x = np.clip(np.where(mask, factor * first, first), unknowns.lower, unknowns.upper)
            left = pieces.residuals(unknowns, x)
            if left is not None and not np.array_equal(x, first):
                found.append((float(left @ left), x))
    found.sort(key=lambda pair: pair[0])
    return [x for _, x in found[: 1 if end.converged else 3]]


def _descend(
    unknowns: Unknowns, pieces: Pieces, end: End, look: _Look, iterations: int, tolerance: float
) -> End:
    """Take Gauss-Newton steps with Levenberg-Marquardt damping from ``end`` on; a failed step is shortened."""
    damping, tried = _DAMPING, 0
    x, r, J = end.x, end.r, end.J
    while tried < iterations and damping <= 1.0 / ROUNDING:
        step = _step(unknowns, x, r, J, damping)
        tried += 1
        trial = np.clip(x + step, unknowns.lower, unknowns.upper)
        small = bool((np.abs(trial - x) <= tolerance * (np.abs(x) + tolerance)).all())
        left = pieces.residuals(unknowns, trial)
        cost = float(r @ r)
        better = look(trial) if left is not None and float(left @ left) <= cost else None
        if better is None:
            damping *= 10.0
            if small:
                break
            continue
        little = cost - float(better[0] @ better[0]) <= tolerance * cost
        x, damping = trial, max(damping / 10.0, 1e-12)
        r, J = better
        if small or little:
            break
    return End(x, r, J, tried, _is_optimal(unknowns, x, r, J, tolerance))


def _step(unknowns: Unknowns, x: Array, r: Array, J: Array, damping: float) -> Array:
    """Compute the damped Gauss-Newton step (k,) within the bounds."""
    sizes = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    units = np.where(sizes > ROUNDING * sizes.max(), sizes, sizes.max())
    rows = np.vstack((J / units, math.sqrt(damping) * np.eye(len(x))))
    wanted = np.append(-r, np.zeros(len(x)))
    room = (unknowns.lower - x) * units, (unknowns.upper - x) * units
    return np.asarray(least_squares_in_box(rows, wanted, *room) / units)


def _is_optimal(unknowns: Unknowns, x: Array, r: Array, J: Array, tolerance: float) -> bool:
    """Return whether a step with negligible damping predicts almost no improvement.

    For exact recordings the remaining residuals are rounding errors.
    """
    step = _step(unknowns, x, r, J, 1e-12)
    cost, freedom = float(r @ r), max(len(r) - len(x), 1)
    promised = cost - float(np.sum((r + J @ step) ** 2))
    small = bool((np.abs(step) <= tolerance * (np.abs(x) + tolerance)).all())
    return small or promised <= _LEFT * cost / freedom
