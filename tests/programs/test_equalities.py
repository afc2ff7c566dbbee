"""Programs with equalities: nearly dependent rows, dependent ones, rows of very different size.

Answers are judged by the optimality conditions, computed here row by row and column by column; contradictions
by least squares.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import qdsim

Matrix = NDArray[np.float64]


def rows_of(rng: np.random.Generator, n: int, p: int, rank: int, condition: float) -> Matrix:
    """Rows with singular values from 1 down to 1 / condition, `rank` of them."""
    left = np.linalg.qr(rng.normal(size=(p, p)))[0][:, :rank]
    right = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank]
    return (left * np.geomspace(1.0, 1.0 / condition, rank)) @ right.T


def cost_of(rng: np.random.Generator, n: int, rank: int, condition: float) -> Matrix:
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank]
    Q = (basis * np.geomspace(1.0, 1.0 / condition, rank)) @ basis.T
    return 0.5 * (Q + Q.T)


def check_optimality(
    s: qdsim.ConeSolution, Q: Matrix, b: Matrix, G: Matrix, g: Matrix, C: Matrix, c: Matrix,
    kind: str = "orthant", mu: float = 0.0, share: float = 1e-8,
) -> None:  # fmt: skip
    """Each row and each column holds beside the largest number in it."""
    left = C @ s.x + c
    assert (np.abs(left) <= share * (np.abs(C) @ np.abs(s.x) + np.abs(c) + 1e-300)).all()
    terms = (
        np.abs(Q) @ np.abs(s.x)
        + np.abs(b)
        + np.abs(G.T) @ np.abs(s.dual)
        + np.abs(C.T) @ np.abs(s.dual_eq)
    )
    residual = Q @ s.x + b - G.T @ s.dual - C.T @ s.dual_eq
    assert np.abs(residual).max(initial=0.0) <= share * terms.max()
    w = G @ s.x + g
    size = np.abs(w).max(initial=0.0) + np.abs(g).max(initial=0.0)
    force = np.abs(s.dual).max(initial=0.0)
    if kind == "orthant":
        assert (w >= -share * size).all()
        assert (s.dual >= 0.0).all()
        assert np.abs(w * s.dual - mu).max(initial=0.0) <= share * max(size * force, mu)
    else:
        assert np.linalg.norm(w[1:]) - w[0] <= share * size
        assert np.linalg.norm(s.dual[1:]) - s.dual[0] <= share * force
        assert abs(w @ s.dual - mu) <= share * max(size * force, mu)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("spread", [0, 6])
def test_equalities_alone_are_a_linear_system(condition: float, spread: int) -> None:
    rng = np.random.default_rng(int(np.log10(condition)) + 10 * spread)
    sizes = [(1, 1), (2, 1), (4, 3), (4, 4), (9, 2), (13, 13), (30, 20), (70, 40)]
    for (n, p), _ in itertools.product(sizes, range(4)):
        C = rows_of(rng, n, p, p, condition) * 10.0 ** rng.uniform(-spread, spread, (p, 1))
        c = -C @ rng.normal(size=n)
        Q, b = cost_of(rng, n, n, 10.0 ** rng.uniform(0, 4)), rng.normal(size=n)
        s = qdsim.solve_cone_program(Q, b, np.zeros((0, n)), [], [], C, c)
        check_optimality(s, Q, b, np.zeros((0, n)), np.zeros(0), C, c)


def test_they_have_the_minimiser_of_the_null_space() -> None:
    rng = np.random.default_rng(3)
    for n, p in [(4, 3), (7, 2), (20, 11)] * 5:
        C, Q, b = rows_of(rng, n, p, p, 1e3), cost_of(rng, n, n, 1e2), rng.normal(size=n)
        x0 = rng.normal(size=n)
        s = qdsim.solve_cone_program(Q, b, np.zeros((0, n)), [], [], C, -C @ x0)
        Z = np.linalg.svd(C)[2][p:].T
        expected = x0 - Z @ np.linalg.solve(Z.T @ Q @ Z, Z.T @ (Q @ x0 + b))
        np.testing.assert_allclose(s.x, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("kind", ["orthant", "lorentz"])
@pytest.mark.parametrize("mu", [0.0, 1e-3])
def test_beside_rows_that_are_active_or_not(condition: float, kind: str, mu: float) -> None:
    rng = np.random.default_rng(int(np.log10(condition)))
    for n, p, m in [(3, 1, 3), (4, 3, 6), (12, 5, 9), (30, 20, 8)] * 4:
        C, x0 = rows_of(rng, n, p, p, condition), rng.normal(size=n)
        Q, b = cost_of(rng, n, n, 10.0 ** rng.uniform(0, 4)), rng.normal(size=n)
        G = rng.normal(size=(m, n))
        inside = rng.uniform(0.05, 1.0, m)
        if kind == "lorentz":
            inside[0] = 1.1 * np.linalg.norm(inside[1:])
        g = inside - G @ x0
        C_offset = -C @ x0
        s = qdsim.solve_cone_program(Q, b, G, g, [(kind, m)], C, C_offset, target_mu=mu)
        check_optimality(s, Q, b, G, g, C, C_offset, kind, mu)
        again = qdsim.solve_cone_program(
            Q, b + 1e-3, G, g, [(kind, m)], C, C_offset, target_mu=mu, warm_start=s
        )
        check_optimality(again, Q, b + 1e-3, G, g, C, C_offset, kind, mu)


@pytest.mark.parametrize("spread", [0, 6])
def test_dependent_rows(spread: int) -> None:
    rng = np.random.default_rng(spread)
    for n, p, rank in [(3, 3, 1), (6, 4, 2), (4, 7, 4), (5, 9, 3), (25, 20, 12), (80, 50, 30)] * 2:
        C = rows_of(rng, n, p, rank, 10.0 ** rng.uniform(0, 4))
        C *= 10.0 ** rng.uniform(-spread, spread, (p, 1))
        c = -C @ rng.normal(size=n)
        Q, b = cost_of(rng, n, n, 1e2), rng.normal(size=n)
        s = qdsim.solve_cone_program(Q, b, np.zeros((0, n)), [], [], C, c)
        check_optimality(s, Q, b, np.zeros((0, n)), np.zeros(0), C, c)
        norms = np.linalg.norm(C, axis=1)
        off = c + norms * rng.normal(size=p)  # no x has these: rank < p
        left = C @ np.linalg.lstsq(C / norms[:, None], -off / norms, rcond=1e-10)[0] + off
        assert np.abs(left / norms).max() > 1e-3
        with pytest.raises(qdsim.SolverError, match="infeasible"):
            qdsim.solve_cone_program(Q, b, np.zeros((0, n)), [], [], C, off)


def test_costs_without_curvature_on_the_null_space() -> None:
    rng = np.random.default_rng(8)
    for n, p in [(3, 1), (6, 2), (12, 5)] * 4:
        C, x0 = rows_of(rng, n, p, p, 1e2), rng.normal(size=n)
        Z = np.linalg.svd(C)[2][p:].T
        Q = cost_of(rng, n, p, 1e2)
        pull = rng.normal(size=p) @ C  # the same everywhere on the equalities
        bounds = np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([1.0 - x0, 1.0 + x0])
        for b in (pull, rng.normal(size=n)):
            s = qdsim.solve_cone_program(Q, b, *bounds, [("orthant", 2 * n)], C, -C @ x0)
            check_optimality(s, Q, b, *bounds, C, -C @ x0)
        flat = np.zeros((n, n))
        with pytest.raises(qdsim.SolverError, match="unbounded"):
            qdsim.solve_cone_program(
                flat, Z @ rng.normal(size=n - p), np.zeros((0, n)), [], [], C, -C @ x0
            )


def test_a_single_point_satisfies_or_breaks_the_rows() -> None:
    rng = np.random.default_rng(5)
    for n in (1, 3, 6):
        C, x0, G = rows_of(rng, n, n, n, 1e3), rng.normal(size=n), rng.normal(size=(4, n))
        Q, b = np.eye(n), rng.normal(size=n)
        s = qdsim.solve_cone_program(Q, b, G, 0.1 - G @ x0, [("orthant", 4)], C, -C @ x0)
        np.testing.assert_allclose(s.x, x0, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(s.dual, 0.0)
        with pytest.raises(qdsim.SolverError, match="infeasible"):
            qdsim.solve_cone_program(Q, b, G, -0.1 - G @ x0, [("orthant", 4)], C, -C @ x0)
