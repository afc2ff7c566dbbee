"""The cone solver against optimality conditions, answers known in advance, and two witnesses.

Problems are built from their answers: choose x, slacks and multipliers that are complementary, then the
offsets that make them optimal. What the solver returns is judged by residuals computed here, by
Clarabel, and for barrier problems by a primal Newton method kept here.
"""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import clarabel_witness
import numpy as np
import numpy.typing as npt
import pytest

import qdsim

Array = npt.NDArray[np.float64]
DATA = Path(__file__).parents[1] / "data"
KINDS = ["a_planar_hand", "b_allegro_ball", "c_allegro_40", "d_block_stack", "e_point_cloud"]


@dataclass(frozen=True)
class Program:
    """minimise 1/2 x'Qx + b'x subject to Gx + g in K, Cx + c = 0, and an answer if one is known."""

    Q: Array
    b: Array
    G: Array
    g: Array
    cones: list[tuple[str, int]]
    C: Array | None = None
    c: Array | None = None
    target_mu: float | Array = 0.0
    x: Array | None = None

    def solve(self, **options: object) -> qdsim.ConeSolution:
        return qdsim.solve_cone_program(
            self.Q, self.b, self.G, self.g, self.cones, self.C, self.c, self.target_mu, **options
        )


def cone_slices(cones: list[tuple[str, int]]) -> list[tuple[str, slice]]:
    """Split orthants into rows: every entry is one irreducible cone."""
    out, at = [], 0
    for kind, dim in cones:
        if kind == "orthant":
            out += [("orthant", slice(at + i, at + i + 1)) for i in range(dim)]
        else:
            out.append(("lorentz", slice(at, at + dim)))
        at += dim
    return out


def targets(program: Program) -> Array:
    """Return the target of every irreducible cone."""
    per_entry = np.broadcast_to(program.target_mu, (len(program.cones),))
    out = []
    for (kind, dim), mu in zip(program.cones, per_entry):
        out += [mu] * (dim if kind == "orthant" else 1)
    return np.array(out)


def outside(w: Array) -> float:
    """Return how far w lies out of its cone."""
    return float(np.linalg.norm(w[1:]) - w[0])


def residuals(p: Program, s: qdsim.ConeSolution) -> dict[str, float]:
    """Primal (units of g), dual (units of b), dual cone, and complementarity (units of cost)."""
    w = p.G @ s.x + p.g
    dual = p.Q @ s.x + p.b - p.G.T @ s.dual
    primal = [0.0]
    if p.C is not None:
        dual -= p.C.T @ s.dual_eq
        primal.append(np.abs(p.C @ s.x + p.c).max(initial=0.0))
    cone = [0.0]
    gap = [0.0]
    for (_, rows), mu in zip(cone_slices(p.cones), targets(p)):
        primal.append(outside(w[rows]))
        primal.append(np.abs(w[rows] - s.slack[rows]).max())
        cone.append(outside(s.dual[rows]))
        z, v = s.dual[rows], s.slack[rows]
        gap.append(abs(z @ v - mu))
        gap.append(np.abs(z[0] * v[1:] + v[0] * z[1:]).max(initial=0.0))
    return {
        "primal": max(primal),
        "dual": np.abs(dual).max(),
        "cone": max(cone),
        "gap": max(gap),
    }


def check(p: Program, s: qdsim.ConeSolution, tolerance: float = 1e-8) -> None:
    """Assert optimality relative to the sizes of the data, and that info tells the same."""
    r = residuals(p, s)
    force = max(1.0, np.abs(p.b).max())
    length = max(1.0, np.abs(p.g).max(initial=0.0))
    assert np.isfinite(s.x).all() and np.isfinite(s.dual).all()
    assert r["primal"] <= tolerance * length, r
    assert r["dual"] <= tolerance * force, r
    assert r["cone"] <= tolerance * force, r
    assert r["gap"] <= tolerance * force * length, r
    assert s.info.dual_residual == pytest.approx(r["dual"], rel=1e-3, abs=1e-11 * force)
    assert s.info.primal_residual <= r["primal"] + 1e-11 * length
    assert s.info.complementarity <= r["gap"] + 1e-11 * force * length
    assert s.info.objective == pytest.approx(0.5 * s.x @ p.Q @ s.x + p.b @ s.x, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------- problems from their answers


def lorentz_pair(rng: np.random.Generator, dim: int, state: str) -> tuple[Array, Array]:
    """Slack and multiplier of one Lorentz cone that are complementary in the wanted state."""
    u = rng.normal(size=dim - 1)
    u /= max(np.linalg.norm(u), 1e-12)
    inner = np.concatenate([[1.0], rng.uniform(0, 0.9) * u])
    edge, mirrored = np.concatenate([[1.0], u]), np.concatenate([[1.0], -u])
    zero = np.zeros(dim)
    alpha, beta = rng.uniform(0.1, 2.0, size=2)
    return {
        "open": (alpha * inner, zero),
        "stick": (zero, beta * inner),
        "slide": (alpha * mirrored, beta * edge),
        "weak": (zero, zero),
        "weak stick": (zero, beta * edge),
        "weak open": (alpha * edge, zero),
    }[state]


LORENTZ_STATES = ["open", "stick", "slide", "weak", "weak stick", "weak open"]


def build(
    seed: int,
    n: int,
    cones: list[tuple[str, int]],
    equalities: int = 0,
    states: list[str] | None = None,
    rank: int | None = None,
    density: float = 1.0,
) -> Program:
    """Program with a known solution; states are drawn from the strict ones unless given."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n if rank is None else rank, n)) / np.sqrt(n)
    Q = root.T @ root + (0.1 * np.eye(n) if rank is None else 0.0)
    m = sum(dim for _, dim in cones)
    G = rng.normal(size=(m, n)) * (rng.uniform(size=(m, n)) < density)
    slack, dual = np.zeros(m), np.zeros(m)
    for k, (kind, rows) in enumerate(cone_slices(cones)):
        dim = rows.stop - rows.start
        if kind == "orthant" or dim == 1:
            state = states[k % len(states)] if states else str(rng.choice(["open", "stick"]))
            slack[rows] = rng.uniform(0.1, 2.0) if "open" in state else 0.0
            dual[rows] = rng.uniform(0.1, 2.0) if state in ("stick", "slide") else 0.0
        else:
            state = states[k % len(states)] if states else str(rng.choice(LORENTZ_STATES[:3]))
            slack[rows], dual[rows] = lorentz_pair(rng, dim, state)
    x = rng.normal(size=n)
    C = rng.normal(size=(equalities, n))
    dual_eq = rng.normal(size=equalities)
    b = G.T @ dual + C.T @ dual_eq - Q @ x
    known = {"C": C, "c": -C @ x} if equalities else {}
    return Program(Q, b, G, slack - G @ x, cones, x=x, **known)


SHAPES = [
    (1, [("orthant", 1)], 0),
    (1, [("lorentz", 2)], 0),
    (2, [("orthant", 3)], 1),
    (3, [("lorentz", 1), ("lorentz", 2), ("orthant", 2)], 0),
    (4, [("lorentz", 3)] * 3, 1),
    (5, [], 0),
    (6, [], 3),
    (7, [("orthant", 12)], 0),
    (8, [("lorentz", 4), ("orthant", 3), ("lorentz", 4), ("lorentz", 6)], 2),
    (9, [("lorentz", d) for d in range(1, 9)], 0),
    (13, [("lorentz", 4)] * 10, 0),
    (22, [("orthant", 20), ("lorentz", 3)] + [("lorentz", 3)] * 10, 4),
    (40, [("orthant", 60)], 5),
    (69, [("lorentz", 3)] * 40, 0),
    (120, [("lorentz", 5)] * 20 + [("orthant", 50)], 10),
    (200, [("orthant", 150), ("lorentz", 8), ("lorentz", 40)], 20),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "cones", "equalities"), SHAPES)
def test_solution_of_problem_built_from_it(
    n: int, cones: list[tuple[str, int]], equalities: int, seed: int
) -> None:
    program = build(seed, n, cones, equalities)
    solution = program.solve()
    check(program, solution)
    np.testing.assert_allclose(solution.x, program.x, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("density", [0.05, 0.2])
@pytest.mark.parametrize("n", [30, 70, 150, 300])
def test_sparse_rows(n: int, density: float) -> None:
    program = build(n, n, [("lorentz", 3)] * (n // 4) + [("orthant", n // 3)], 3, density=density)
    program = replace(program, Q=np.diag(np.diag(program.Q)))
    known = program.x
    assert known is not None
    shift = build(n, n, program.cones, 3, density=density).Q @ known - program.Q @ known
    program = replace(program, b=program.b + shift)
    solution = program.solve()
    check(program, solution)
    np.testing.assert_allclose(solution.x, known, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("state", ["weak", "weak stick", "weak open"])
def test_weakly_active_cones(state: str, seed: int) -> None:
    cones = [("lorentz", 3)] * 3 + [("orthant", 3), ("lorentz", 4)]
    program = build(seed, 10, cones, 1, states=[state, "slide", "stick", "open", state])
    check(program, program.solve())


@pytest.mark.parametrize("seed", range(4))
def test_more_held_rows_than_unknowns(seed: int) -> None:
    """Degenerate: 20 sticking rows on 5 unknowns, multipliers far from unique."""
    program = build(seed, 5, [("lorentz", 4)] * 3 + [("orthant", 8)], states=["stick"])
    solution = program.solve()
    check(program, solution)
    np.testing.assert_allclose(solution.x, program.x, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_repeated_rows_and_equalities(seed: int) -> None:
    p = build(seed, 8, [("lorentz", 3), ("orthant", 4), ("lorentz", 3)], 2)
    assert p.C is not None and p.c is not None
    doubled = replace(
        p,
        G=np.vstack([p.G, p.G]),
        g=np.concatenate([p.g, p.g]),
        cones=p.cones * 2,
        C=np.vstack([p.C, p.C[:1] + p.C[1:]]),
        c=np.concatenate([p.c, p.c[:1] + p.c[1:]]),
    )
    solution = doubled.solve()
    check(doubled, solution)
    np.testing.assert_allclose(solution.x, p.x, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_rows_without_entries(seed: int) -> None:
    """Friction zero leaves rows of zeros in Lorentz cones; a constant orthant row is harmless."""
    p = build(seed, 6, [("lorentz", 3)] * 3 + [("orthant", 2)], states=["stick", "open", "open"])
    G, g = p.G.copy(), p.g.copy()
    G[[2, 5, 8]] = 0.0
    g[[2, 5, 8]] = 0.0
    G[10], g[10] = 0.0, 0.5
    program = replace(p, G=G, g=g, x=None)
    solution = program.solve()
    check(program, solution)
    flat = [r for r in range(11) if r not in (2, 5, 8, 10)]
    reduced = Program(p.Q, p.b, G[flat], g[flat], [("lorentz", 2)] * 3 + [("orthant", 1)])
    np.testing.assert_allclose(solution.x, reduced.solve().x, atol=1e-8)


@pytest.mark.parametrize("exponent", [-8, -4, 4, 8])
def test_units_of_length_and_force(exponent: int) -> None:
    """Metres or microns, newtons or meganewtons: the same answer in other units."""
    p = build(5, 9, [("lorentz", 3)] * 3 + [("orthant", 4)])
    assert p.x is not None
    length, force = 10.0**exponent, 10.0 ** (-exponent / 2)
    scaled = replace(p, Q=p.Q * force / length, b=p.b * force, g=p.g * length)
    solution = scaled.solve()
    np.testing.assert_allclose(solution.x / length, p.x, atol=1e-7)
    columns = 10.0 ** np.linspace(-3, 3, 9)
    mixed = replace(p, Q=p.Q * np.outer(columns, columns), b=p.b * columns, G=p.G * columns)
    np.testing.assert_allclose(mixed.solve().x * columns, p.x, atol=1e-6)


@pytest.mark.parametrize("exponent", [3, 6])
def test_badly_scaled_rows(exponent: int) -> None:
    p = build(11, 9, [("orthant", 12)])
    rows = 10.0 ** np.linspace(-exponent / 2, exponent / 2, 12)
    solution = replace(p, G=p.G * rows[:, None], g=p.g * rows).solve()
    np.testing.assert_allclose(solution.x, p.x, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_singular_cost(seed: int) -> None:
    """A cost of rank 2 on 6 unknowns; held rows make the solution unique."""
    program = build(seed, 6, [("orthant", 8), ("lorentz", 3)], 1, states=["stick"], rank=2)
    solution = program.solve()
    check(program, solution)
    np.testing.assert_allclose(solution.x, program.x, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    G = np.vstack([np.eye(n), -rng.uniform(0.5, 1.5, size=(4, n))])
    g = np.concatenate([np.zeros(n), np.full(4, 3.0)])
    b = -rng.uniform(0.5, 1.5, size=n)
    program = Program(np.zeros((n, n)), b, G, g, [("orthant", n + 4)])
    solution = program.solve()
    check(program, solution)
    assert b @ solution.x == pytest.approx(-g @ solution.dual, abs=1e-8)


def test_equalities_only() -> None:
    p = build(3, 12, [], 5)
    assert p.C is not None and p.c is not None
    kkt = np.block([[p.Q, -p.C.T], [p.C, np.zeros((5, 5))]])
    expected = np.linalg.solve(kkt, np.concatenate([-p.b, -p.c]))
    solution = p.solve()
    np.testing.assert_allclose(solution.x, expected[:12], atol=1e-10)
    np.testing.assert_allclose(solution.dual_eq, expected[12:], atol=1e-8)


# ---------------------------------------------------------------- no solution, bad input


def status_of(program: Program) -> str:
    with pytest.raises(qdsim.SolverError) as caught:
        program.solve()
    return str(caught.value.info.status)


SQUARE = np.eye(2)
INFEASIBLE = {
    "interval": Program(
        SQUARE, np.ones(2), np.array([[1.0, 0], [-1, 0]]), -np.ones(2), [("orthant", 2)]
    ),
    "cone against a bound": Program(
        np.eye(3),
        np.arange(3.0),
        np.vstack([np.eye(3), [[-1.0, 0, 0]]]),
        np.array([0.0, 0, 0, -1]),
        [("lorentz", 3), ("orthant", 1)],
    ),
    "constant row": Program(SQUARE, np.ones(2), np.zeros((1, 2)), -np.ones(1), [("orthant", 1)]),
    "equalities": Program(
        SQUARE, np.ones(2), np.zeros((0, 2)), np.zeros(0), [], np.ones((2, 2)), np.array([-1.0, -2])
    ),
    "equality against bounds": Program(
        SQUARE, np.ones(2), SQUARE, np.zeros(2), [("orthant", 2)], np.ones((1, 2)), np.ones(1)
    ),
}
UNBOUNDED = {
    "no cone": Program(np.diag([1.0, 0]), np.ones(2), np.zeros((0, 2)), np.zeros(0), []),
    "free direction": Program(
        np.diag([1.0, 0]), np.ones(2), SQUARE[:1], np.zeros(1), [("orthant", 1)]
    ),
    "linear": Program(np.zeros((2, 2)), -np.ones(2), SQUARE, np.zeros(2), [("orthant", 2)]),
    "along a cone": Program(
        np.zeros((3, 3)), np.array([-1.0, 0.5, 0]), np.eye(3), np.zeros(3), [("lorentz", 3)]
    ),
}


@pytest.mark.parametrize("mu", [0.0, 1e-2])
@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible(name: str, mu: float) -> None:
    assert status_of(replace(INFEASIBLE[name], target_mu=mu)) == "infeasible"


@pytest.mark.parametrize("mu", [0.0, 1e-2])
@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded(name: str, mu: float) -> None:
    assert status_of(replace(UNBOUNDED[name], target_mu=mu)) == "unbounded"


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1.0])
def test_no_contradiction_hides_behind_a_weak_cost(scale: float) -> None:
    # x = -2 and x = 0, and a cost that would send x to -1e-3 / scale: half of each is no answer.
    rows, offsets = np.full((2, 1), -0.5), np.array([-1.0, 0])
    none = (np.zeros((0, 1)), np.zeros(0), [])
    program = Program(np.array([[scale]]), np.array([1e-3]), *none, rows, offsets)
    assert status_of(program) in ("infeasible", "numerical trouble", "iteration limit")


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-9, 1e-6, 1.0])
def test_no_balance_hides_behind_a_large_multiplier(size: float) -> None:
    # The third force meets nothing; the multiplier of the first, 1 / size, is no measure of it.
    G, b = np.zeros((2, 3)), np.array([1.0, 0, 1])
    G[0, 0] = size
    free = Program(np.zeros((3, 3)), b, G, np.zeros(2), [("orthant", 2)])
    assert status_of(free) in ("unbounded", "numerical trouble")
    assert status_of(replace(free, target_mu=1e-3)) in ("unbounded", "numerical trouble")
    held = replace(free, b=np.array([1.0, 0, 0]))
    solution = held.solve()
    np.testing.assert_allclose(G.T @ solution.dual, held.b, rtol=1e-6)


def test_feasible_set_without_interior() -> None:
    """x_0 = 1 by two inequalities: fine for the exact solution, nothing for a barrier to stand in."""
    p = Program(
        SQUARE, np.ones(2), np.array([[1.0, 0], [-1, 0]]), np.array([-1.0, 1]), [("orthant", 2)]
    )
    np.testing.assert_allclose(p.solve().x, [1.0, -1.0], atol=1e-9)
    assert status_of(replace(p, target_mu=1e-2)) == "infeasible"


@pytest.mark.parametrize("field", ["Q", "b", "G", "g"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(field: str, value: float) -> None:
    p = build(0, 4, [("orthant", 3)])
    data = getattr(p, field).copy()
    data.flat[0] = value
    with pytest.raises((ValueError, qdsim.SolverError)):
        replace(p, **{field: data}).solve()


def test_arguments_that_make_no_sense() -> None:
    p = build(0, 4, [("orthant", 3)])
    with pytest.raises(ValueError, match="cones"):
        replace(p, cones=[("orthant", 2)]).solve()
    with pytest.raises(ValueError, match="cones"):
        replace(p, cones=[("exponential", 3)]).solve()
    with pytest.raises(ValueError, match="target_mu"):
        replace(p, target_mu=-1.0).solve()
    with pytest.raises((ValueError, qdsim.SolverError)):
        replace(p, Q=-p.Q).solve()
    with pytest.raises(qdsim.SolverError) as caught:
        build(0, 22, [("lorentz", 3)] * 8).solve(iteration_limit=1, polish=False)
    assert caught.value.info.status == "iteration limit"


# ---------------------------------------------------------------- witnesses


def clarabel_x(p: Program) -> Array | None:
    cones, rows, offset = list(p.cones), [-p.G], [p.g]
    if p.C is not None and p.c is not None:
        rows.append(p.C)
        offset.append(-p.c)
        cones.append(("zero", p.c.size))
    found = clarabel_witness.Program(
        p.Q, p.b, np.vstack(rows), np.concatenate(offset), cones
    ).answer()
    return None if found is None else found.x


def program_of_no_known_answer(rng: np.random.Generator) -> Program:
    n = int(rng.integers(3, 40))
    cones = [("lorentz", int(d)) for d in rng.integers(1, 7, size=n // 3 + 1)] + [
        ("orthant", n // 2)
    ]
    m, p = sum(d for _, d in cones), n // 6
    root = rng.normal(size=(n, n))
    inside = rng.normal(size=n)
    G = rng.normal(size=(m, n))
    w = np.concatenate([np.concatenate([[1.5 + d], rng.normal(size=d - 1) * 0.5]) if k == "lorentz"
                        else rng.uniform(0.1, 1, size=d) for k, d in cones])  # fmt: skip
    C = rng.normal(size=(p, n))
    program = Program(root.T @ root, 10 * rng.normal(size=n), G, w - G @ inside, cones)
    return replace(program, C=C, c=-C @ inside) if p else program


def test_against_clarabel() -> None:
    compared = 0
    for seed in range(10):
        program = program_of_no_known_answer(np.random.default_rng(seed))
        solution = program.solve()
        check(program, solution)
        other = clarabel_x(program)
        if other is None:
            continue
        # a gap of 1e-10 leaves 1e-5 open in the norm of the cost
        size = np.sqrt(solution.x @ program.Q @ solution.x)
        off = solution.x - other
        assert np.sqrt(off @ program.Q @ off) <= 1e-5 * (1.0 + size), seed
        compared += 1
    assert compared >= 6


def barrier(p: Program, x: Array) -> tuple[float, Array, Array]:
    """Value, gradient and Hessian of cost - sum of mu log det: degree one per row, two per cone."""
    w = p.G @ x + p.g
    value = 0.5 * x @ p.Q @ x + p.b @ x
    gradient, hessian = p.Q @ x + p.b, p.Q.copy()
    for (_, rows), mu in zip(cone_slices(p.cones), targets(p)):
        v, J = w[rows], p.G[rows]
        sign = np.ones(v.size)
        sign[1:] = -1.0
        det = v @ (sign * v)
        if det <= 0 or v[0] <= 0:
            return np.inf, gradient, hessian
        value -= 0.5 * mu * np.log(det)
        d = sign * v / det
        gradient -= mu * J.T @ d
        hessian += mu * J.T @ (2 * np.outer(d, d) - np.diag(sign) / det) @ J
    return value, gradient, hessian


def primal_newton(p: Program, x: Array, weight: float) -> Array:
    """Minimise the barrier problem from a strictly feasible x, with cone weights that fall from `weight` on: damped
    Newton."""
    for mu in weight * np.geomspace(1.0, 1.0e-12, 60):
        stage = replace(p, target_mu=np.maximum(mu, p.target_mu))
        for _ in range(60):
            value, gradient, hessian = barrier(stage, x)
            step = -np.linalg.solve(hessian, gradient)
            if -gradient @ step < 1e-26 + 1e-18 * abs(value):
                break
            t = 1.0
            while barrier(stage, x + t * step)[0] > value + 0.1 * t * gradient @ step and t > 1e-12:
                t *= 0.5
            x = x + t * step
        if np.all(np.asarray(stage.target_mu) == p.target_mu):
            break
    return x


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_barrier_against_primal_newton(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cones = [("lorentz", 3), ("orthant", 4), ("lorentz", 4), ("lorentz", 2)]
    mu = np.array([2.0 if kind == "lorentz" else 1.0 for kind, _ in cones])
    root, G = rng.normal(size=(6, 6)), rng.normal(size=(13, 6))
    inside = rng.normal(size=6)
    w = np.concatenate([[1.0, 0.2, 0.3], rng.uniform(0.2, 1, 4), [1.0, 0.1, 0.2, 0.3], [1.0, -0.4]])
    whole = Program(root.T @ root + np.eye(6), 5 * rng.normal(size=6), G, w - G @ inside, cones)
    x, weight = inside, 1.0
    for kappa in (1e1, 1e2, 1e4, 1e6):
        p = replace(whole, target_mu=mu / kappa)
        solution = p.solve()
        check(p, solution)
        x, weight = primal_newton(p, x, weight), 2.0 / kappa
        np.testing.assert_allclose(solution.x, x, atol=2e-8)


# Minimisers of the authors' barrier test problem (three velocities, one contact).
BARRIER_MINIMISERS = {
    64.0: (-0.220852478, 0.067937555, -0.195845782),
    100.0: (-0.217378340, 0.046239704, -0.199319920),
    1e4: (-0.208469801, 0.000538564, -0.208228459),
    np.inf: (-0.20834914, 0.0, -0.20834914),
}


@pytest.mark.parametrize("kappa", BARRIER_MINIMISERS)
@pytest.mark.parametrize("pyramid", [False, True])
def test_published_barrier_minimisers(kappa: float, pyramid: bool) -> None:
    tau = np.array([-0.41669826, -0.46413128, 0.0])
    n, t = np.array([0.0, 1.0, 0.0]), np.array([-1.0, 0.0, 1.0])
    G = np.array([n + t, n - t]) if pyramid else np.array([n, t, 0 * t])
    cones = [("orthant", 2)] if pyramid else [("lorentz", 3)]
    mu = (1.0 if pyramid else 2.0) / kappa
    p = Program(np.eye(3), -tau, G, np.zeros(len(G)), cones, target_mu=mu)
    solution = p.solve()
    check(p, solution)
    np.testing.assert_allclose(solution.x, BARRIER_MINIMISERS[kappa], atol=2e-9)


# ---------------------------------------------------------------- contact programs


def contact_programs(kind: str, pyramid: bool, mu: float) -> list[Program]:
    """Contact programs of one kind; mu counts once per row, twice per Lorentz cone."""
    data = np.load(DATA / f"contact_socp_{kind}.npz")
    programs = []
    for i in range(len(data["Q"])):
        rows = slice(*data["row_start"][i : i + 2])
        dims = data["cone_dim"][slice(*data["cone_start"][i : i + 2])]
        G, g = data["G"][rows], data["g"][rows]
        if not pyramid:
            cones = [("lorentz", int(d)) for d in dims]
            programs.append(Program(data["Q"][i], data["b"][i], G, g, cones, target_mu=2 * mu))
            continue
        starts = np.concatenate([[0], np.cumsum(dims)])
        rays, offsets = [], []
        for first, last in itertools.pairwise(starts):
            for s in G[first + 1 : last]:
                if s.any():
                    rays += [G[first] + s, G[first] - s]
                    offsets += [g[first], g[first]]
        programs.append(
            Program(data["Q"][i], data["b"][i], np.array(rays), np.array(offsets),
                    [("orthant", len(rays))], target_mu=mu)
        )  # fmt: skip
    return programs


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("mu", [0.0, 1e-2, 1e-4])
@pytest.mark.parametrize("pyramid", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_contact_programs(kind: str, pyramid: bool, mu: float) -> None:
    """Residuals at most 1e-8 m, N and J (relative to mu if smaller) on every program, in SI units."""
    for number, p in enumerate(contact_programs(kind, pyramid, mu)):
        solution = p.solve()
        r = residuals(p, solution)
        assert max(r.values()) <= 1e-8, (number, r, solution.info)
        if mu > 0:
            assert r["gap"] <= 1e-6 * mu, (number, r)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_contact_programs_against_reference(kind: str) -> None:
    """Same cost and nearly the same x as Clarabel at 1e-12, where x is determined."""
    data = np.load(DATA / f"contact_socp_{kind}.npz")
    for i, p in enumerate(contact_programs(kind, False, 0.0)):
        x = p.solve().x
        reference = data["x_ref"][i]
        cost, known = (0.5 * v @ p.Q @ v + p.b @ v for v in (x, reference))
        assert cost == pytest.approx(known, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(x, reference, atol=2e-6)


@pytest.mark.long
def test_most_contact_programs_are_polished() -> None:
    """What exact derivatives need: the active set certified to rounding, not the end of a path."""
    solved = [p.solve() for kind in KINDS for p in contact_programs(kind, False, 0.0)]
    assert np.mean([s.info.polished for s in solved]) >= 0.95


def test_answers_do_not_depend_on_history() -> None:
    first, *_, last = contact_programs("b_allegro_ball", False, 0.0)
    before = first.solve()
    last.solve()
    after = first.solve()
    assert before.x.tobytes() == after.x.tobytes()
    assert before.dual.tobytes() == after.dual.tobytes()


def test_barrier_tends_to_the_exact_solution() -> None:
    exact = contact_programs("a_planar_hand", False, 0.0)
    for kappa, allowed in ((1e4, 1e-2), (1e8, 1e-4), (1e11, 1e-5)):
        for p, q in zip(exact, contact_programs("a_planar_hand", False, 1 / kappa)):
            assert np.abs(p.solve().x - q.solve().x).max() <= allowed


# ---------------------------------------------------------------- piles: redundant, nearly degenerate contacts

# Programs and states from random piles of one to six boxes, cylinders, capsules, ellipsoids and spheres on a
# plane, pushed by a box: steps at which an interior point method alone ends in rounding, because faces touch in
# more points than needed and multipliers are not unique. The last program has no feasible point.
PILES = np.load(DATA / "random_piles.npz")


def pile(k: int) -> Program:
    kinds = ["lorentz" if kind else "orthant" for kind in PILES[f"kind_{k}"]]
    cones = list(zip(kinds, PILES[f"dim_{k}"].tolist()))
    return Program(PILES[f"Q_{k}"], PILES[f"b_{k}"], PILES[f"G_{k}"], PILES[f"g_{k}"], cones)


@pytest.mark.parametrize("polish", [True, False])
@pytest.mark.parametrize("k", np.flatnonzero(PILES["solvable"]))
def test_programs_of_piles_are_solved(k: int, polish: bool) -> None:
    p = pile(k)
    s = p.solve(polish=polish)
    force = max(np.abs(p.b).max(), np.abs(p.Q @ s.x).max(), np.abs(s.dual).max())
    length = max(np.abs(p.g).max(), 1e-3)
    r = residuals(p, s)
    assert s.info.status == "solved"
    assert r["primal"] <= 1e-8
    assert r["dual"] <= 1e-8 * force
    assert r["cone"] <= 1e-8 * force
    assert r["gap"] <= 1e-8 * force * length


@pytest.mark.parametrize("k", np.flatnonzero(PILES["solvable"]))
def test_programs_of_piles_are_solved_in_other_units(k: int) -> None:
    p = pile(k)
    a, b = p.solve(), replace(p, b=1e3 * p.b, g=1e3 * p.g).solve()  # x and slacks in millimetres
    cost = max(abs(a.info.objective), 1e-3)
    np.testing.assert_allclose(1e-6 * b.info.objective, a.info.objective, atol=1e-8 * cost)


@pytest.mark.parametrize("k", np.flatnonzero(PILES["solvable"] == 0))
def test_piles_that_contradict_themselves_are_infeasible(k: int) -> None:
    p = pile(k)
    with pytest.raises(qdsim.SolverError) as caught:
        p.solve()
    assert caught.value.info.status == "infeasible"
    # nearest to feasible: least t with Gx + g + t e in K, by the witness
    heads = np.cumsum([0] + [dim for _, dim in p.cones])[:-1]
    e = np.zeros(len(p.g))
    e[heads] = 1.0
    for (kind, dim), head in zip(p.cones, heads):
        if kind == "orthant":
            e[head : head + dim] = 1.0
    cost = np.concatenate([np.zeros(len(p.b)), [1.0]])
    nothing = np.zeros((len(cost), len(cost)))
    least = clarabel_witness.Program(
        nothing, cost, -np.column_stack([p.G, e]), p.g, p.cones
    ).answer()
    assert least is not None and least.objective > 1e-3


@pytest.mark.parametrize("k", range(3))
def test_steps_of_piles_have_derivatives(k: int) -> None:
    model = qdsim.load(str(PILES[f"model_{k}"]))
    h, epsilon, margin = PILES[f"settings_{k}"].tolist()
    options = qdsim.Options(h=h, epsilon=epsilon, margin=margin)
    q, u = PILES[f"q_{k}"], PILES[f"u_{k}"]
    linear = qdsim.linearize(model, q, u, options)
    for i in range(model.nu):
        du = 1e-5 * np.eye(model.nu)[i]
        after = qdsim.step(model, q, u + du, options).q_next
        before = qdsim.step(model, q, u - du, options).q_next
        column = np.asarray(model.difference(after, before)) / 2e-5
        np.testing.assert_allclose(linear.B[:, i], column, atol=1e-3)


@pytest.mark.parametrize("mu", [2e-4, 1e-2])
@pytest.mark.parametrize("power", range(-30, 0, 2))
def test_barriers_beside_next_to_no_force(power: int, mu: float) -> None:
    # Each unknown by itself: w x + b = mu / (x + g), a quadratic equation in x + g.
    rng = np.random.default_rng(-power)
    for _ in range(4):
        w, g, b = 10.0 ** rng.uniform(0, 3, 6), 10.0 ** rng.uniform(-2, 1, 6), np.zeros(6)
        b[0] = rng.standard_normal() * 10.0**power
        B = b - w * g
        root = np.sqrt(B * B + 4.0 * w * mu)
        expected = np.where(B > 0.0, 2.0 * mu / (B + root), (root - B) / (2.0 * w)) - g
        found = qdsim.solve_cone_program(
            np.diag(w), b, np.eye(6), g, [("orthant", 6)], target_mu=mu
        )
        np.testing.assert_allclose(found.x, expected, rtol=0.0, atol=1e-9)


def test_info_says_which_method_answered() -> None:
    rng = np.random.default_rng(5)
    n = 6
    root = rng.standard_normal((n, n))
    Q, b, G = root @ root.T + np.eye(n), rng.standard_normal(n), rng.standard_normal((9, n))
    inside = G @ np.linalg.solve(Q, b)  # rows at the minimiser of the cost: -G Q^-1 b
    cones = [("lorentz", 3), ("orthant", 6)]
    lifted = np.array([100.0, 0.0, 0.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0])
    free = qdsim.solve_cone_program(Q, b, G, inside + lifted, cones)
    assert (free.info.method, free.info.tries) == ("free minimum", 1)
    pushed = qdsim.solve_cone_program(Q, b, G, inside - 0.1 * lifted / 100.0, cones)
    assert pushed.info.method in ("cuts", "rest", "path") and pushed.info.tries > 1
    on_path = qdsim.solve_cone_program(
        Q, b, G, inside - 0.1 * lifted / 100.0, cones, target_mu=1e-3
    )
    assert on_path.info.method == "path"
    no_rows = np.vstack([G, np.zeros(n)])
    with pytest.raises(qdsim.SolverError) as failed:
        qdsim.solve_cone_program(Q, b, no_rows, np.append(inside, -1.0), [*cones, ("orthant", 1)])
    assert failed.value.info.method == "contradiction"
    assert pickle.loads(pickle.dumps(pushed.info)).method == pushed.info.method
