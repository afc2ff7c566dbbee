"""Solvers of complementarity problems: linear, mixed, and Coulomb friction on contact forces.

``solve_coulomb`` finds forces and speeds of contacts under Coulomb's law, w = W force + q with the
Delassus matrix W, which may have several solutions, or none; ``solve_cone_program`` solves its
convex relaxation. ``solve_lcp`` and ``solve_mlcp`` use Lemke's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import SolverError
from qdsim.arguments import (
    MOST_HELD,
    MOST_INTEGER,
    finite,
    integer,
    number,
    one_of,
    real_array,
    reals,
)
from qdsim.array_type import ROUNDING, Array

__all__ = [
    "CoulombInfo",
    "CoulombSolution",
    "LcpInfo",
    "LcpSolution",
    "MlcpSolution",
    "UnsolvedError",
    "solve_coulomb",
    "solve_lcp",
    "solve_mlcp",
]

_MOST_LCP = 2**14


@dataclass(frozen=True, slots=True)
class LcpInfo:
    """Report on the solution of a linear complementarity problem.

    Attributes:
        status: "solved", "infeasible" (proven), "iteration limit", or "numerical trouble": neither
            a solution nor a proof was found.
        pivots: Number of pivots of all runs.
        refactorizations: Number of fresh inverses of a basis.
        tries: Number of runs, with other covering vectors or with a fresh inverse at each pivot.
        ended_on_ray: Whether the last run ended on a ray. If M is copositive plus (for example
            positive semidefinite), this means that there is no solution.
        residual: The largest |min(z_i, w_i)|, with z relative to its largest entry and w relative
            to the terms of its sum; also of equalities.
    """

    status: str
    pivots: int
    refactorizations: int
    tries: int
    ended_on_ray: bool
    residual: float


@dataclass(frozen=True, slots=True, eq=False)
class LcpSolution:
    """Solution of an LCP: z and w = M z + q, both nonnegative and complementary.

    Attributes:
        z, w: (n,).
        info: Effort and residual.
    """

    z: Array
    w: Array
    info: LcpInfo


@dataclass(frozen=True, slots=True, eq=False)
class MlcpSolution:
    """Solution of a mixed LCP: A u + C v + a = 0, w = D u + B v + b, with u free and v, w
    nonnegative and complementary.

    Attributes:
        u: (free,).
        v, w: (n,).
        info: Effort and residual.
    """

    u: Array
    v: Array
    w: Array
    info: LcpInfo


@dataclass(frozen=True, slots=True)
class CoulombInfo:
    """Report on the solution of a friction problem, with its certificate.

    Attributes:
        status: "solved", "infeasible" (proven: no forces keep the contacts from closing),
            "iteration limit" or "numerical trouble": no solution was found.
        method: "free" (no force at all), "path" (interior-point path of Coulomb's law), "newton"
            (on the active set that the path has identified), or "proximal" (proximal iterations,
            used if the path turns back; seconds for some hundred contacts).
        unique: Whether no other forces solve the problem. True: none do (no contact has friction,
            and the equations of the closed contacts are regular). None: no other solution is close,
            since every contact is clearly open, sticking or sliding and the equations of this
            active set are regular, with a positive determinant; distant solutions are not excluded.
            False: other solutions may be close. With redundant contacts, forces are not unique.
        iterations: Number of iterations of the path.
        factorizations: Total number of factorisations.
        error: The largest violation of the law over all contacts: |min(force_n, w_n)|, and the
            smallest change of the tail's speeds w_tail or forces D^-1 force_tail that satisfies the
            law (no speed at all, or a speed opposite to a force on the boundary of the friction
            cone). Speeds are relative to the largest entry of q, forces to the largest force, both
            of tails divided by their coefficients.
        penetration: The largest -w_n, in the problem's units.
        cone: The largest |D^-1 force_tail| - force_n, or -force_n.
        normal_power: The largest |force_n w_n|.
        slip_power: The largest |force_tail · w_tail + force_n |D w_tail||, where D is the diagonal
            of coefficients.
    """

    status: str
    method: str
    unique: bool | None
    iterations: int
    factorizations: int
    error: float
    penetration: float
    cone: float
    normal_power: float
    slip_power: float


@dataclass(frozen=True, slots=True, eq=False)
class CoulombSolution:
    """Forces and speeds of all contacts.

    Attributes:
        force, w: (n,), contact by contact, the normal first; w = W force + q.
        info: Method and certificate.
    """

    force: Array
    w: Array
    info: CoulombInfo


class UnsolvedError(SolverError):
    """No solution was found, or there is none.

    Attributes:
        solution: The best approximation found, with its info.
        certificate: If it is proven that there is no solution, the multipliers that prove it; else
            None. For ``solve_lcp``: u >= 0 with M'u <= 0 and q'u < 0. For ``solve_coulomb``: u >= 0
            at normals and zero elsewhere with W u = 0 and q'u < 0. For ``solve_mlcp``: None.
    """

    solution: LcpSolution | MlcpSolution | CoulombSolution
    certificate: Array | None


def _unsolved(
    name: str,
    solution: LcpSolution | MlcpSolution | CoulombSolution,
    said: str,
    certificate: Array | None = None,
) -> UnsolvedError:
    error = UnsolvedError(f"{name}: {said}")
    error.solution = solution
    error.certificate = certificate
    return error


# ---------------------------------------------------------------- linear


def solve_lcp(
    M: npt.ArrayLike, q: npt.ArrayLike, *, tolerance: float = 1e-9, pivot_limit: int | None = None
) -> LcpSolution:
    """Find z >= 0 with w = M z + q >= 0 and z · w = 0 by Lemke's method.

    Rows and columns are scaled. Ties are broken lexicographically, so that degenerate problems
    terminate. The basis is refactored from time to time, and the result is checked in the original
    numbers. If a run ends on a ray that proves nothing, further runs use other covering vectors;
    then follow a search for a proof and, for up to 12 unknowns, all complementary bases.

    Args:
        M: (n, n), any matrix.
        q: (n,).
        tolerance: On ``LcpInfo.residual``.
        pivot_limit: Pivots of one run; None: a large number that depends on the size. With a limit,
            only runs of the first kind are made.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        UnsolvedError: if no solution was found; its certificate proves that there is none, or is
            None.

    The pivots are those of Lemke 1965, "Bimatrix equilibrium points and mathematical programming".
    """
    offset = _finite_vector("q", q)
    n = offset.size
    if not 1 <= n <= _MOST_LCP:
        raise ValueError(f"q: expected 1 to {_MOST_LCP} numbers, got {n}")
    matrix = reals("M", M, (n, n))
    finite("M", matrix)
    z, w, report = _core._solve_lcp(matrix, offset, *_lcp_options(tolerance, pivot_limit))
    info = _lcp_info(report)
    if info.status == "solved":
        return LcpSolution(z, w, info)
    if info.status == "infeasible":
        nothing = LcpSolution(np.zeros(n), offset.copy(), info)
        raise _unsolved("solve_lcp", nothing, "it is proven that no z >= 0 has w >= 0", z)
    raise _unsolved("solve_lcp", LcpSolution(z, w, info), _undecided(info))


def solve_mlcp(
    A: npt.ArrayLike,
    C: npt.ArrayLike,
    D: npt.ArrayLike,
    B: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    tolerance: float = 1e-9,
    pivot_limit: int | None = None,
) -> MlcpSolution:
    """Find u, and v >= 0 with w = D u + B v + b >= 0, v · w = 0 and A u + C v + a = 0.

    The equalities, of any rank, eliminate the free variables; ``solve_lcp`` solves the rest.

    Args:
        A: (equalities, free); there may be more equalities than free variables.
        C: (equalities, n).
        D: (n, free).
        B: (n, n).
        a: (equalities,).
        b: (n,).
        tolerance: On ``LcpInfo.residual``.
        pivot_limit: Pivots of one run; None: a large number that depends on the size.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        UnsolvedError: if no solution was found; its ``solution.info.status`` says whether it is
            proven that there is none.

    The pivots are those of Lemke 1965, as in ``solve_lcp``.
    """
    right, bound = _finite_vector("a", a), _finite_vector("b", b)
    p, n = right.size, bound.size
    square = real_array("A", A)
    if square.ndim != 2 or square.shape[0] != p:
        raise ValueError(f"A: expected shape ({p}, any), got {square.shape}")
    free = square.shape[1]
    if max(p, n, free) > _MOST_LCP:
        raise ValueError(f"A: expected at most {_MOST_LCP} rows and columns, got {square.shape}")
    shapes = {"A": (p, free), "C": (p, n), "D": (n, free), "B": (n, n)}
    blocks = {
        name: reals(name, value, shapes[name])
        for name, value in {"A": A, "C": C, "D": D, "B": B}.items()
    }
    for name, block in blocks.items():
        finite(name, block)
    options = _lcp_options(tolerance, pivot_limit)
    u, v, w, report = _core._solve_mlcp(
        blocks["A"], blocks["C"], blocks["D"], blocks["B"], right, bound, *options
    )
    solution = MlcpSolution(u, v, w, _lcp_info(report))
    if solution.info.status == "solved":
        return solution
    if solution.info.status == "infeasible":
        raise _unsolved("solve_mlcp", solution, "it is proven that there is no solution")
    raise _unsolved("solve_mlcp", solution, _undecided(solution.info))


def _lcp_options(tolerance: float, pivot_limit: int | None) -> tuple[float, int]:
    limit = 0 if pivot_limit is None else integer("pivot_limit", pivot_limit, least=1)
    return number("tolerance", tolerance, above=0), limit


def _lcp_info(report: tuple[str, int, int, int, bool, float, float]) -> LcpInfo:
    if report[0] == "out of memory":
        raise MemoryError
    return LcpInfo(*report[:6])


def _undecided(info: LcpInfo) -> str:
    how = "on a ray that proves nothing" if info.ended_on_ray else f"with {info.status}"
    return f"Lemke's method ended {how} after {info.pivots} pivots in {info.tries} tries"


def _finite_vector(name: str, value: npt.ArrayLike) -> Array:
    found = reals(name, value, (-1,))
    finite(name, found)
    return found


# ---------------------------------------------------------------- Coulomb


def solve_coulomb(
    W: Any,
    q: npt.ArrayLike,
    mu: npt.ArrayLike,
    *,
    dims: int | Sequence[int] = 3,
    cones: str = "joint",
    tolerance: float = 1e-9,
    iteration_limit: int = 150,
    stop_after: int | None = None,
) -> CoulombSolution:
    """Find forces and speeds w = W force + q of contacts under Coulomb's law.

    The rows of every contact are the normal, then the rows with friction (its tail): w_n >= 0, |D⁻¹
    force_tail| <= force_n, force_n w_n = 0 and force_tail · w_tail = -force_n |D w_tail|, with D
    the diagonal of friction coefficients. In the notation of De Saxcé: K ∋ force ⊥ w + |D w_tail|
    e_n ∈ K*. The method follows an interior-point path of this law (not of its convex relaxation),
    then applies Newton's method to the active set that the path identifies. A solution is accepted
    by its error in the law. Solutions need be neither unique nor continuous in the data; see
    ``info.unique``.

    Args:
        W: Delassus matrix (n, n), symmetric, positive semidefinite, of any rank; an array, or a
            sparse matrix of SciPy.
        q: Speeds without forces (n,).
        mu: Friction coefficient >= 0, one number or one per contact (contacts,); or (contacts, 3):
            tangential, torsional and rolling, required for contacts of four or more rows.
        dims: Rows of every contact, one number or one per contact: 1 (frictionless), 2 (planar), 3,
            4 (with torsion), 5 (with rolling about two tangents), or 6 (torsion, then rolling).
        cones: "joint": force_n bounds one norm of all tail rows, as in this package's contacts;
            "separate": it bounds the norm of the tangents and that of the other rows separately
            (Siconos' rolling friction).
        tolerance: On ``CoulombInfo.error``.
        iteration_limit: Of the path, from each of up to three starts.
        stop_after: Return the best of exactly this many iterations of the path, whatever its error
            (see the info).

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        UnsolvedError: if no solution was found, or its forces exceed the range of double precision;
            with a certificate if there is none.

    The law is that of formulation (7.7) (Acary, Cadoux, Lemaréchal and Malick 2011), the final
    Newton method that of Alart and Curnier 1991.
    """
    offset = _finite_vector("q", q)
    rows = _rows_of(dims, offset.size)
    weight = _weights(mu, rows, offset.size)
    start, column, value = _compressed(W, offset.size)
    _check_diagonal(start, column, value)
    kind = int(one_of("cones", cones, ("joint", "separate")) == "separate")  # qd_block_kind
    kinds = np.full(rows.size, kind, dtype=np.int32)
    force, w, report = _core._solve_coulomb(
        rows,
        kinds,
        start,
        column,
        value,
        offset,
        weight,
        number("tolerance", tolerance, above=0),
        integer("iteration_limit", iteration_limit, least=1),
        0 if stop_after is None else integer("stop_after", stop_after, least=1),
        1,
    )
    status, i, j = report[0], report[11], report[12]
    if status == "out of memory":
        raise MemoryError
    if status == "bad argument":
        here, there = _entry(start, column, value, i, j), _entry(start, column, value, j, i)
        raise ValueError(f"W: not symmetric, [{i}, {j}] is {here:.17g} and [{j}, {i}] {there:.17g}")
    unique = None if report[2] and np.any(weight[_tail_rows(rows)] > 0) else report[2]
    info = CoulombInfo(status, report[1], unique, *report[3:10])
    solution = CoulombSolution(force, w, info)
    if status == "solved":
        return solution
    if status == "not finite":
        said = "the forces are too large or too small for double precision"
        unknown = CoulombSolution(force, w, replace(info, status="numerical trouble"))
        raise _unsolved("solve_coulomb", unknown, said)
    proof = _proof(rows, start, column, value / _unit_of(value), offset / _unit_of(offset))
    if proof is None:
        said = f"no solution was found ({status}), the best has an error of {info.error:.1e}"
        raise _unsolved("solve_coulomb", solution, said)
    settled = CoulombSolution(force, w, replace(info, status="infeasible"))
    said = "no forces keep all contacts from closing: proven"
    raise _unsolved("solve_coulomb", settled, said, proof)


def _rows_of(dims: int | Sequence[int], size: int) -> npt.NDArray[np.int32]:
    wanted = "expected 1 to 6, one number or one per contact"
    found = real_array("dims", dims)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        raise TypeError(f"dims: {wanted}, got {dims!r}")
    if found.size == 0 or found.min() < 1 or found.max() > 6:
        raise ValueError(f"dims: {wanted}, got {dims!r}")
    if found.ndim == 1 and int(found.sum()) == size:
        return found.astype(np.int32)
    if found.ndim == 1:
        raise ValueError(f"dims: has {int(found.sum())} rows in all, and q has {size}")
    if size == 0 or size % int(found):
        raise ValueError(f"q: expected {int(found)} numbers per contact (dims), got {size}")
    return np.full(size // int(found), int(found), dtype=np.int32)


def _tail_rows(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    is_tail = np.ones(int(rows.sum()), dtype=bool)
    is_tail[np.concatenate([[0], np.cumsum(rows)[:-1]])] = False
    return is_tail


# Index of the friction coefficient of each tail row: 0 tangential, 1 torsional, 2 rolling.
_TAILS = {1: (), 2: (0,), 3: (0, 0), 4: (0, 0, 1), 5: (0, 0, 2, 2), 6: (0, 0, 1, 2, 2)}


def _weights(mu: npt.ArrayLike, rows: npt.NDArray[np.int32], size: int) -> Array:
    contacts = rows.size
    given = reals("mu", mu)
    finite("mu", given)
    if given.ndim < 2 and rows.max() > 3:
        raise ValueError(
            f"mu: contacts of 4 rows and more need shape ({contacts}, 3), tangential, torsional and rolling, "
            f"got {given.shape}"
        )
    if given.shape not in ((), (contacts,), (contacts, 3)):
        raise ValueError(
            f"mu: expected a number, shape ({contacts},) or ({contacts}, 3), got {given.shape}"
        )
    if given.size and given.min() < 0:
        raise ValueError(f"mu: expected numbers >= 0, got {given.min()}")
    of_all = np.broadcast_to(given.reshape(-1, 1) if given.ndim < 2 else given, (contacts, 3))
    weight = np.ones(size)
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    for dim in np.unique(rows):
        own = np.flatnonzero(rows == dim)
        for k, which in enumerate(_TAILS[int(dim)]):
            weight[first[own] + 1 + k] = of_all[own, which]
    return weight


_Compressed = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Array]


def _compressed(W: Any, n: int) -> _Compressed:
    """Return the row starts, columns and values of a dense or sparse matrix."""
    if not hasattr(W, "tocsr"):
        dense = reals("W", W, (n, n))
        if dense.size > MOST_INTEGER:
            raise ValueError(f"W: {dense.size} numbers are too many; give a sparse matrix")
        finite("W", dense)
        start = np.arange(0, n * n + 1, n, dtype=np.int32)
        return start, np.tile(np.arange(n, dtype=np.int32), n), np.ascontiguousarray(dense).ravel()
    if tuple(W.shape) != (n, n):
        raise ValueError(f"W: expected shape ({n}, {n}), got {tuple(W.shape)}")
    rows = W.tocsr()
    value = reals("W", rows.data, (-1,))
    if value.size > MOST_INTEGER:
        raise ValueError(f"W: {value.size} numbers are too many")
    finite("W", value)
    start = np.ascontiguousarray(rows.indptr, dtype=np.int32)
    column = np.ascontiguousarray(rows.indices, dtype=np.int32)
    good = start.shape == (n + 1,) and start[0] == 0 and start[-1] == column.size == value.size
    if (
        not good
        or np.any(np.diff(start) < 0)
        or (column.size and not 0 <= column.min() <= column.max() < n)
    ):
        raise ValueError("W: a sparse matrix with invalid indices")
    return start, column, np.ascontiguousarray(value)


def _check_diagonal(
    start: npt.NDArray[np.int32], column: npt.NDArray[np.int32], value: Array
) -> None:
    row = np.repeat(np.arange(start.size - 1), np.diff(start))
    own = row == column
    least = -ROUNDING * np.abs(value).max(initial=0.0)
    for i in row[own][value[own] < least][:1]:
        entry = _entry(start, column, value, int(i), int(i))
        raise ValueError(f"W: not positive semidefinite, [{i}, {i}] is {entry:.17g}")


def _entry(
    start: npt.NDArray[np.int32], column: npt.NDArray[np.int32], value: Array, i: int, j: int
) -> float:
    own = slice(start[i], start[i + 1])
    return float(value[own][column[own] == j].sum())


def _unit_of(numbers: Array) -> float:
    return float(np.abs(numbers).max(initial=0.0)) or 1.0


def _proof(
    rows: npt.NDArray[np.int32],
    start: npt.NDArray[np.int32],
    column: npt.NDArray[np.int32],
    value: Array,
    q: Array,
) -> Array | None:
    """Find a proof that there is no solution: u >= 0 at normals with W u = 0 and q · u < 0.

    Then u · w = q · u < 0 for all forces, which contradicts w_n >= 0.
    """
    normal = np.concatenate([[0], np.cumsum(rows)[:-1]])
    if normal.size**2 > MOST_HELD:  # of the dense matrix below
        return None
    place = np.full(q.size, -1)
    place[normal] = np.arange(normal.size)
    matrix = np.zeros((normal.size, normal.size))
    row = np.repeat(np.arange(q.size), np.diff(start))
    both = (place[row] >= 0) & (place[column] >= 0)
    np.add.at(matrix, (place[row[both]], place[column[both]]), value[both])
    found, _, report = _core._solve_lcp(matrix, np.ascontiguousarray(q[normal]), 1e-9, 0)
    if report[0] != "infeasible":
        return None
    u = np.zeros(q.size)
    u[normal] = found
    moved = np.zeros(q.size)
    np.add.at(moved, row, value * u[column])
    size = np.zeros(q.size)  # roots of the diagonal: |W_ij| <= size_i size_j
    np.add.at(size, row[row == column], value[row == column])
    size = np.sqrt(np.maximum(size, 0.0))
    held = bool(np.all(np.abs(moved) <= ROUNDING * size * (size @ u)))
    return u if held and q @ u < -ROUNDING * (np.abs(q) @ u) else None
