"""Cone programs on their own: the solver under every step, for whoever has a program of the form.

    minimise    1/2 x'Qx + b'x
    subject to  Gx + g in K,   Cx + c = 0

K is a product of orthants and Lorentz cones {w : w_0 >= |w_1..|}, in row order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._core import SolverInfo, _solve_cone_program
from .arguments import finite, flag, integer, number, one_of, reals

__all__ = ["ConeSolution", "solve_cone_program"]

_Array = npt.NDArray[np.float64]
_KINDS = {"orthant": 0, "lorentz": 1}
_SYMMETRY_TOLERANCE = 1e-9
_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class ConeSolution:
    """A solution and its multipliers: Qx + b = G'dual + C'dual_eq, dual in K, dual ∘ slack = target_mu e.

    Attributes:
        x: Minimiser (n,).
        slack: Gx + g (m,).
        dual: Multipliers of the cones (m,).
        dual_eq: Multipliers of the equalities (p,).
        info: Status, effort and residuals.
    """

    x: _Array
    slack: _Array
    dual: _Array
    dual_eq: _Array
    info: SolverInfo


def solve_cone_program(
    Q: npt.ArrayLike,
    b: npt.ArrayLike,
    G: npt.ArrayLike,
    g: npt.ArrayLike,
    cones: Sequence[tuple[str, int]],
    C: npt.ArrayLike | None = None,
    c: npt.ArrayLike | None = None,
    target_mu: float | npt.ArrayLike = 0.0,
    *,
    tolerance: float = 1e-9,
    iteration_limit: int = 100,
    polish: bool = True,
    warm_start: ConeSolution | None = None,
) -> ConeSolution:
    """Solve a convex quadratic program over orthants and Lorentz cones.

    Primal-dual interior point method with Nesterov-Todd scaling and Mehrotra's predictor-corrector,
    in tiles of 4 x 4, sparse where rows couple few unknowns. A positive `target_mu` gives a point of
    the central path: the minimiser with target_mu log(w) per orthant row and
    target_mu / 2 log(w_0² - |w_1..|²) per Lorentz cone subtracted from the cost.

    Args:
        Q: Cost matrix (n, n), symmetric, positive semidefinite.
        b: Linear cost (n,).
        G: Constraint matrix (m, n).
        g: Constraint offset (m,).
        cones: ("orthant", rows) and ("lorentz", rows) in row order; their rows add up to m.
        C: Equality matrix (p, n), or None.
        c: Equality offset (p,), or None.
        target_mu: Barrier parameter >= 0 in units of the cost, one number or one per entry of `cones`;
            0 for the exact solution.
        tolerance: Relative, on primal and dual residual and complementarity.
        iteration_limit: Interior point iterations after which SolverError is raised.
        polish: Whether an exact solve may end with Newton's method on the active set, which takes the
            residuals to rounding.
        warm_start: The solution of a program of the same sizes, of whatever numbers. Where the active set is
            much the same, or a barrier's path near, it saves time; elsewhere it costs little. The answer is
            certified as without; multipliers that are not unique depend on it.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong with it.
        SolverError: no solution (infeasible, unbounded), or none found; carries the info.
    """
    b_array = _vector("b", b, None)
    n = b_array.size
    if n == 0:
        raise ValueError("b: expected at least one variable")
    g_array = _vector("g", g, None)
    m = g_array.size
    Q_array = _matrix("Q", Q, n, n)
    _check_cost(Q_array)
    G_array = _matrix("G", G, m, n)
    if (C is None) != (c is None):
        raise ValueError(f"{'C' if C is None else 'c'}: C and c come together, or neither")
    C_array = c_array = None
    if C is not None and c is not None:
        c_array = _vector("c", c, None)
        C_array = _matrix("C", C, c_array.size, n)
    kinds, dims = _read_cones(cones, m)
    mu = _read_target_mu(target_mu, kinds.size)
    tolerance = number("tolerance", tolerance, above=0, below=1)
    iteration_limit = integer("iteration_limit", iteration_limit, least=1)
    return ConeSolution(
        *_solve_cone_program(
            Q_array, b_array, G_array, g_array, kinds, dims, C_array, c_array, mu,
            tolerance, iteration_limit, flag("polish", polish),
            _read_start(warm_start, (n, m, 0 if c_array is None else c_array.size)),
        )
    )  # fmt: skip


def _read_start(
    start: ConeSolution | None, sizes: tuple[int, int, int]
) -> tuple[_Array, _Array, _Array] | None:
    if start is None:
        return None
    if not isinstance(start, ConeSolution):
        raise TypeError(f"warm_start: expected a ConeSolution, got {type(start).__name__}")
    found = (start.x.size, start.dual.size, start.dual_eq.size)
    if found != sizes:
        raise ValueError(
            f"warm_start: has (variables, rows, equalities) {found}, the program {sizes}"
        )
    return start.x, start.dual, start.dual_eq


def _real(name: str, value: npt.ArrayLike) -> _Array:
    return np.require(finite(name, reals(name, value)), requirements="C")


def _vector(name: str, value: npt.ArrayLike, size: int | None) -> _Array:
    array = _real(name, value)
    if array.ndim != 1 or (size is not None and array.size != size):
        expected = "any" if size is None else size
        raise ValueError(f"{name}: expected shape ({expected},), got {array.shape}")
    return array


def _matrix(name: str, value: npt.ArrayLike, rows: int, columns: int) -> _Array:
    array = _real(name, value)
    if rows == 0 and array.size == 0:
        return np.zeros((0, columns))
    if array.shape != (rows, columns):
        raise ValueError(f"{name}: expected shape ({rows}, {columns}), got {array.shape}")
    return array


def _check_cost(Q: _Array) -> None:
    scale = float(np.abs(Q).max())
    difference = np.abs(Q - Q.T)
    if difference.max() > _SYMMETRY_TOLERANCE * scale:
        i, j = (int(k) for k in np.unravel_index(int(difference.argmax()), Q.shape))
        raise ValueError(f"Q: not symmetric, [{i}, {j}] is {Q[i, j]} and [{j}, {i}] {Q[j, i]}")
    if (np.diagonal(Q) < 0).any():
        i = int(np.diagonal(Q).argmin())
        raise ValueError(f"Q: not positive semidefinite, [{i}, {i}] is {Q[i, i]}")
    # scaled to a unit diagonal; a shift above rounding lets singular matrices pass
    root = np.sqrt(np.diagonal(Q))
    root = np.where(root > 0.0, root, 1.0)
    scaled = Q / np.outer(root, root)
    try:
        np.linalg.cholesky(scaled + _ROUNDING * len(Q) * np.eye(len(Q)))
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(Q)[0])
        raise ValueError(
            f"Q: not positive semidefinite, its smallest eigenvalue is {smallest:.3g}"
        ) from None


def _read_cones(
    cones: Sequence[tuple[str, int]], m: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    kinds: list[int] = []
    dims: list[int] = []
    given: object = cones
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"cones: expected a list of (kind, rows), got {type(cones).__name__}")
    for i, entry in enumerate(cones):
        try:
            kind, rows = entry
        except (TypeError, ValueError):
            raise TypeError(f"cones[{i}]: expected (kind, rows), got {entry!r}") from None
        kinds.append(_KINDS[one_of(f"cones[{i}]", kind, _KINDS)])
        dims.append(integer(f"cones[{i}]: rows", rows, least=1, most=max(m, 1)))
    if sum(dims) != m:
        raise ValueError(f"cones: have {sum(dims)} rows in all, and g has {m}")
    return np.array(kinds, dtype=np.int32), np.array(dims, dtype=np.int32)


def _read_target_mu(target_mu: float | npt.ArrayLike, count: int) -> _Array | None:
    array = _real("target_mu", target_mu)
    if array.ndim == 0:
        array = np.full(count, float(array))
    if array.shape != (count,):
        raise ValueError(
            f"target_mu: expected a number or shape ({count},), one per cone, got {array.shape}"
        )
    if (array < 0).any():
        raise ValueError(f"target_mu: expected numbers >= 0, got {array.min()}")
    return array if (array > 0).any() else None
