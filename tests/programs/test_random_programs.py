"""Random small cone programs of every kind: definite, diagonal and singular costs, dense and sparse
rows, opposed rows, feasible sets that are wide or a hair's breadth, data over many orders of magnitude.

Each is feasible (a point strictly inside is built in) and bounded (so is a multiplier that balances the
cost). Every one must be solved with its optimality certificate in the program's own numbers, and its
objective must be Clarabel's.
"""

from __future__ import annotations

import clarabel_witness
import numpy as np
import numpy.typing as npt
import pytest

import qdsim

Array = npt.NDArray[np.float64]
Cones = list[tuple[str, int]]
Program = tuple[Array, Array, Array, Array, Cones]


def interior(rng: np.random.Generator, cones: Cones) -> Array:
    """Return a vector strictly inside the product of cones."""
    parts = []
    for kind, dim in cones:
        if kind == "orthant":
            parts.append(rng.uniform(0.1, 1.0, dim))
        else:
            tail = rng.standard_normal(dim - 1)
            parts.append(np.concatenate([[np.linalg.norm(tail) + rng.uniform(0.1, 1.0)], tail]))
    return np.concatenate(parts)


def build(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    cones: Cones = []
    for _ in range(rng.integers(1, 16)):
        linear = rng.random() < 0.4
        cones.append(("orthant" if linear else "lorentz", int(rng.integers(1, 5 if linear else 6))))
    m = sum(dim for _, dim in cones)
    if seed % 4 == 0:
        Q = np.diag(10.0 ** rng.uniform(-1, 1, n))
    else:  # one in four: two directions that nothing in the cost holds
        A = rng.standard_normal((n, max(1, n - 2) if seed % 4 == 1 else n + 3))
        Q = A @ A.T * 10.0 ** rng.uniform(-1, 1)
    G = rng.standard_normal((m, n)) * (rng.random((m, n)) < rng.uniform(0.3, 1.0))
    if rng.random() < 0.3 and m > 2:
        G[m // 2 :] = G[: m - m // 2] * rng.choice([1.0, -1.0])
    g = 10.0 ** rng.uniform(-4, 1) * interior(rng, cones) - G @ rng.standard_normal(n)
    b = Q @ rng.standard_normal(n) + 10.0 ** rng.uniform(-1, 1) * (G.T @ interior(rng, cones))
    return Q, b, G, g, cones


def errors(program: Program, solution: qdsim.ConeSolution, mu: float) -> tuple[float, float, float]:
    """Return primal, dual and complementarity error, relative to the numbers they are sums of."""
    Q, b, G, g, cones = program
    x, dual = solution.x, solution.dual
    w, z = G @ x + g, dual
    primal = gap = 0.0
    row = 0
    for kind, dim in cones:
        v, y = w[row : row + dim], z[row : row + dim]
        if kind == "orthant":
            primal = max(primal, -v.min(), -y.min())
            gap = max(gap, np.abs(v * y - mu).max())
        else:
            primal = max(primal, np.linalg.norm(v[1:]) - v[0], np.linalg.norm(y[1:]) - y[0])
            gap = max(gap, abs(v @ y - mu), np.abs(v[0] * y[1:] + y[0] * v[1:]).max(initial=0.0))
        row += dim
    forces = max(np.abs(Q * x).max(), np.abs(b).max(), np.abs(G.T * dual).max(), 1e-300)
    lengths = max(np.abs(G * x).max(), np.abs(g).max())
    return (
        primal / max(lengths, forces),
        float(np.abs(Q @ x + b - G.T @ dual).max()) / forces,
        gap / (lengths * max(1.0, np.abs(dual).max())),
    )


def clarabel_objective(program: Program) -> float | None:
    Q, b, G, g, cones = program
    found = clarabel_witness.Program(Q, b, -G, g, cones).answer()
    return None if found is None else found.objective


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("first", range(0, 400, 40))
def test_exact(first: int) -> None:
    compared = 0
    for seed in range(first, first + 40):
        program = build(seed)
        solution = qdsim.solve_cone_program(*program)
        assert max(errors(program, solution, 0.0)) <= 1e-6, seed
        objective = clarabel_objective(program) if seed % 2 else None
        if objective is not None:
            compared += 1
            scale = 1.0 + abs(objective) + 0.5 * abs(solution.x @ program[0] @ solution.x)
            assert abs(solution.info.objective - objective) <= 1e-5 * scale, seed
    assert compared >= 10


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_barrier(first: int) -> None:
    for seed in range(first, first + 100):
        program = build(seed)
        mu = 10.0 ** np.random.default_rng(seed).uniform(-6, 0)
        targets = np.full(len(program[4]), mu)
        solution = qdsim.solve_cone_program(*program, target_mu=targets)
        assert max(errors(program, solution, mu)) <= 1e-6, seed


@pytest.mark.parametrize("n", [5, 6, 9, 10, 14])
def test_cost_that_leaves_two_directions_free(n: int) -> None:
    """Whatever the columns that the last pivots fall on, the cost is not taken for definite."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n - 2))
    Q, G = A @ A.T, np.vstack([np.eye(n), -np.eye(n)])
    b, g = rng.standard_normal(n), np.ones(2 * n)
    solution = qdsim.solve_cone_program(Q, b, G, g, [("orthant", 2 * n)])
    free = np.linalg.svd(A)[0][:, n - 2 :]
    assert np.abs(free.T @ b).max() > 1e-2  # the cost falls along them, up to the box
    assert max(errors((Q, b, G, g, [("orthant", 2 * n)]), solution, 0.0)) <= 1e-9
    assert np.abs(solution.x).max() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(("n", "contacts"), [(60, 3), (120, 1), (120, 6), (200, 2)])
def test_few_contacts_on_many_unknowns(n: int, contacts: int, dense: bool) -> None:
    """A robot of many joints that touches in few places, barrier and exact."""
    rng = np.random.default_rng([n, contacts, dense])
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    Q = 1e3 * (A @ A.T + np.eye(n)) if dense else np.diag(1e3 * rng.uniform(0.5, 2.0, n))
    G = 0.3 * rng.standard_normal((3 * contacts, n))
    g = np.zeros(3 * contacts)
    g[::3] = rng.uniform(0.0, 5e-3, contacts)
    b = 10.0 * rng.standard_normal(n) + 30.0 * G[::3].sum(axis=0)  # presses every contact shut
    program = Q, b, G, g, [("lorentz", 3)] * contacts
    for mu in (0.0, 1e-4, 1e-2, 1.0):
        targets = np.full(contacts, mu)
        solution = qdsim.solve_cone_program(*program, target_mu=targets)
        assert max(errors(program, solution, mu)) <= 1e-8
    C, c = rng.standard_normal((2, n)), rng.standard_normal(2)
    held = qdsim.solve_cone_program(*program, C, c, target_mu=np.full(contacts, 1e-3))
    np.testing.assert_allclose(C @ held.x, -c, atol=1e-9)
    stationarity = Q @ held.x + b - G.T @ held.dual - C.T @ held.dual_eq
    assert np.abs(stationarity).max() <= 1e-8 * np.abs(b).max()
    both = np.vstack([G[:1], -G[:1]]), np.array([-1.0, 0.0])  # a row above 1 and below 0
    with pytest.raises(qdsim.SolverError):
        qdsim.solve_cone_program(Q, b, *both, [("orthant", 2)], target_mu=np.full(1, 1e-3))
