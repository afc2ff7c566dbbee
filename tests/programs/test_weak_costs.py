"""Nearly linear programs: costs so weak that alone they would send x far beyond what rows allow.

Solutions of linear programs at a vertex do not move while a quadratic cost is weak enough, so HiGHS and
closed forms give them.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import qdsim

WEAK = [1e-6, 1e-8, 1e-10, 1e-12]


def polytope(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random half spaces in a box around a point inside all of them, and a linear cost."""
    n, extra = int(rng.integers(1, 8)), int(rng.integers(0, 12))
    inside = rng.standard_normal(n)
    G = np.vstack((rng.standard_normal((extra, n)), np.eye(n), -np.eye(n)))
    room = np.concatenate((rng.uniform(0, 1, extra), rng.uniform(1, 3, 2 * n)))
    return G, room - G @ inside, rng.standard_normal(n)


def vertex_of(G: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What HiGHS finds where it says that it has, inside the polytope and as cheap as its multipliers say."""
    found = linprog(b, A_ub=-G, b_ub=g, bounds=[(None, None)] * len(b), method="highs")
    assert found.status == 0 and (G @ found.x + g).min() >= -1e-8
    dual = -found.ineqlin.marginals
    assert dual.min() >= 0.0 and np.abs(b - G.T @ dual).max() <= 1e-8
    assert abs(b @ found.x + g @ dual) <= 1e-8
    return found.x


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("weight", WEAK)
def test_vertices_of_linear_programs(weight: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        G, g, b = polytope(rng)
        n = len(b)
        vertex = vertex_of(G, g, b)
        solution = qdsim.solve_cone_program(weight * np.eye(n), b, G, g, [("orthant", len(g))])
        np.testing.assert_allclose(solution.x, vertex, atol=1e-7)
        assert np.abs((G @ solution.x + g) * solution.dual).max() <= 1e-6
        assert np.abs(weight * solution.x + b - G.T @ solution.dual).max() <= 1e-8


@pytest.mark.parametrize("weight", WEAK)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_one_unknown(weight: float, size: float) -> None:
    # min weight/2 x^2 - x with x <= size: there, pressed by 1 - weight size.
    solution = qdsim.solve_cone_program(
        [[weight / size]], [-1.0], [[-1.0]], [size], [("orthant", 1)]
    )
    assert solution.x[0] == pytest.approx(size, rel=1e-9)
    assert solution.dual[0] == pytest.approx(1.0 - weight, rel=1e-9)


@pytest.mark.parametrize("weight", WEAK)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_farthest_point_of_a_ball(weight: float, n: int) -> None:
    # |x - middle| <= radius, as far as can be against b; the force on it is b and the cost's own.
    rng = np.random.default_rng(n)
    b, middle, radius = rng.standard_normal(n), rng.standard_normal(n), 0.7
    G = np.vstack((np.zeros(n), np.eye(n)))
    g = np.concatenate(([radius], -middle))
    solution = qdsim.solve_cone_program(weight * np.eye(n), b, G, g, [("lorentz", n + 1)])
    expected = middle - radius * b / np.linalg.norm(b)
    np.testing.assert_allclose(solution.x, expected, atol=1e-6 + 10.0 * weight)
    np.testing.assert_allclose(solution.dual[0], np.linalg.norm(b), rtol=1e-6 + 10.0 * weight)


@pytest.mark.parametrize("weight", WEAK[:2])
def test_equalities_hold(weight: float) -> None:
    # A point of a simplex, cheapest at the corner with the smallest cost.
    rng = np.random.default_rng(3)
    for n in range(2, 9):
        b = rng.uniform(0.5, 2.0, n)
        solution = qdsim.solve_cone_program(
            weight * np.eye(n),
            b,
            np.eye(n),
            np.zeros(n),
            [("orthant", n)],
            np.ones((1, n)),
            [-1.0],
        )
        np.testing.assert_allclose(solution.x, np.eye(n)[b.argmin()], atol=1e-7)
        assert solution.dual_eq[0] == pytest.approx(b.min() + weight, abs=1e-7)


def test_at_the_end_of_a_double_solved_or_said_so() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        G, g, b = polytope(rng)
        n = len(b)
        for weight in (1e-13, 0.0):
            vertex = vertex_of(G, g, b)
            try:
                x = qdsim.solve_cone_program(weight * np.eye(n), b, G, g, [("orthant", len(g))]).x
            except qdsim.SolverError:
                continue
            np.testing.assert_allclose(x, vertex, atol=1e-5)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("curvature", [1e-8, 1e-12, 1e-14])
def test_tiny_curvature_does_not_hide_wrong_multipliers(curvature: float) -> None:
    """A linear program with a cost that hardly bends has the linear program's objective, by x and by its multipliers."""
    compared = wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        m = n + int(rng.integers(1, 6))
        G = rng.normal(size=(m, n))
        g = np.abs(rng.normal(size=m)) - G @ rng.normal(size=n)
        b = G.T @ np.maximum(rng.normal(size=m), 0.0)
        if not b.any():
            continue
        least = linprog(b, A_ub=-G, b_ub=g, bounds=(None, None)).fun
        found = qdsim.solve_cone_program(curvature * np.eye(n), b, G, g, [("orthant", m)])
        size = np.abs(b * found.x).sum() + np.abs(g * found.dual).sum()
        error = max(abs(b @ found.x - least), abs(g @ found.dual + least)) / size
        wrong += error > 3e-6 + 1e3 * curvature
        compared += 1
    assert compared > 50
    assert wrong <= (0 if curvature >= 1e-12 else 2)  # without the duality gap 20 at 1e-14
