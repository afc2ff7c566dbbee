"""Coulomb friction on forces: Siconos' problems, closed forms, all modes of tiny problems, random ones, and bad input.

What counts as solved is written down here, from the law alone.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from external_programs import complementarity, complementarity_names, friction, friction_names
from numpy.typing import NDArray

import qdsim

Array = NDArray[np.float64]
G = 10.0


def law_error(
    W: Array, q: Array, weights: Array, rows: int, force: Array, groups: list[slice] | None = None
) -> float:
    """How far a point is from the law, forces in units of the largest one, speeds of the largest in q."""
    w = W @ force + q
    f = force.reshape(-1, rows) / max(np.abs(force).max(), 1e-300)
    v = w.reshape(-1, rows) / np.abs(q).max()
    weight = weights.reshape(-1, rows)
    worst = np.abs(np.minimum(f[:, 0], v[:, 0])).max()
    for group in groups or [slice(1, rows)]:
        D = weight[:, group]
        pull, slip = np.where(D > 0, f[:, group] / np.where(D > 0, D, 1), 0), D * v[:, group]
        size = np.linalg.norm(slip, axis=1)
        outside = np.linalg.norm(pull, axis=1) - f[:, 0]
        power = np.abs((pull * slip).sum(1) + f[:, 0] * size)
        worst = max(worst, outside.max(), power.max())
    return worst


def tail_weights(mu: Array, rows: int) -> Array:
    out = np.ones((len(mu), rows))
    out[:, 1:] = mu[:, None]
    return out


# ---------------------------------------------------------------- published problems


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", friction_names())
def test_published_problems_are_solved(name):
    W, q, mu = friction(name)
    found = qdsim.solve_coulomb(W, q, mu)
    assert law_error(W, q, tail_weights(mu, 3), 3, found.force) < 1e-9
    assert found.info.status == "solved"
    assert np.abs(W @ found.force + q - found.w).max() <= 1e-10 * np.abs(q).max()


@pytest.mark.long
@pytest.mark.parametrize("by", [1e-6, 1e-4])
def test_where_the_path_turns_back_proximal_steps_lead_to_the_solution(by):
    """RockPile and problems like it: in all of them bodies can part, so that there is a solution."""
    W, q, mu = friction("RockPile_tob1")
    q = q + by * (W @ np.random.default_rng(1).normal(size=q.size))
    found = qdsim.solve_coulomb(W, q, mu)
    assert law_error(W, q, tail_weights(mu, 3), 3, found.force) < 1e-9
    assert found.info.method == "proximal" and found.info.unique is False


@pytest.mark.parametrize("name", complementarity_names("planar"))
def test_published_planar_problems_are_solved(name):
    W, other = complementarity("planar", name)
    q, mu = other["q"], other["mu"]
    found = qdsim.solve_coulomb(sp.csr_matrix(W), q, mu, dims=2)
    assert law_error(W, q, tail_weights(mu, 2), 2, found.force) < 1e-9


@pytest.mark.parametrize("name", complementarity_names("rolling"))
@pytest.mark.parametrize("cones", ["separate", "joint"])
def test_published_rolling_problems_are_solved(name, cones):
    W, other = complementarity("rolling", name)
    q, mu = other["q"], other["mu"]
    weights = np.stack([mu[:, 0] * 0 + 1, mu[:, 0], mu[:, 0], mu[:, 1], mu[:, 1]], axis=1)
    three = np.stack([mu[:, 0], 0 * mu[:, 0], mu[:, 1]], axis=1)
    found = qdsim.solve_coulomb(W, q, three, dims=5, cones=cones)
    groups = [slice(1, 3), slice(3, 5)] if cones == "separate" else None
    assert law_error(W, q, weights, 5, found.force, groups) < 1e-9


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("v0", [2.0, 0.3, 0.049, 0.0])
@pytest.mark.parametrize("h", [0.01, 0.001])
def test_block_slides_without_a_hop_and_stops_dead(v0, h):
    m, mu = 2.0, 0.5
    W, q = np.eye(3) / m, np.array([-h * G, v0, 0.0])
    found = qdsim.solve_coulomb(W, q, mu)
    assert found.w == pytest.approx([0.0, max(v0 - mu * G * h, 0.0), 0.0], abs=1e-12)
    assert found.force[0] == pytest.approx(m * G * h, rel=1e-12)
    assert found.info.unique is (False if v0 == mu * G * h else None)


@pytest.mark.parametrize("angle", [0.1, 0.4, 0.5, 1.2])
@pytest.mark.parametrize("mu", [0.3, 0.5, 1.0])
def test_incline(angle, mu):
    h = 0.01
    q = h * G * np.array([-np.cos(angle), 0.0, np.sin(angle)])
    found = qdsim.solve_coulomb(np.eye(3), q, mu)
    speed = max(0.0, h * G * (np.sin(angle) - mu * np.cos(angle)))
    assert found.w == pytest.approx([0.0, 0.0, speed], abs=1e-12)


def test_spin_slows_by_torsion_and_stops_dead():
    mu_w, m, inertia, h = 0.01, 1.0, 0.004, 0.01
    W = np.diag([1 / m, 1 / m, 1 / m, 1 / inertia])
    for spin in (10.0, 0.2):
        q = np.array([-h * G, 0.0, 0.0, spin])
        found = qdsim.solve_coulomb(W, q, [[0.3, mu_w, 0.0]], dims=4)
        assert found.w[3] == pytest.approx(max(spin - h * mu_w * m * G / inertia, 0.0), abs=1e-11)
        assert found.w[0] == pytest.approx(0.0, abs=1e-12)


def test_ball_slips_and_then_rolls():
    m, r, mu, h, v0 = 1.0, 0.1, 0.3, 0.01, 1.0
    inertia = 0.4 * m * r * r
    J = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, r]])  # of (x, z, spin) at the contact
    M = np.diag([m, m, inertia])
    W = J @ np.linalg.solve(M, J.T)
    v = np.array([v0, 0.0, 0.0])
    for _ in range(12):
        free = v + h * np.array([0.0, -G, 0.0])
        found = qdsim.solve_coulomb(W, J @ free, mu, dims=2)
        v = free + np.linalg.solve(M, J.T @ found.force)
    assert v[0] == pytest.approx(5 / 7 * v0, abs=1e-12)
    assert v[1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("degrees", "jumps"), [(60.0, True), (40.0, False)])
def test_painleves_rod_jams_without_collision(degrees, jumps):
    half, radius, m, mu, h = 0.5, 0.01, 1.0, 1.6, 1e-7
    angle = np.deg2rad(degrees)
    lean = half * np.array([-np.cos(angle), np.sin(angle)])  # from the tip to the middle
    lean[1] += radius
    # rows of the tip's motion: normal, tangent; of (x, z, spin), the tip at -lean
    J = np.array([[0.0, 1.0, -lean[0]], [1.0, 0.0, lean[1]]])
    M = np.diag([m, m, m * half**2 * 4 / 12])
    W = J @ np.linalg.solve(M, J.T)
    free = np.array([2.0, -h * G, 0.0])
    found = qdsim.solve_coulomb(W, J @ free, mu, dims=2)
    v = free + np.linalg.solve(M, J.T @ found.force)
    if jumps:
        assert np.abs(found.w).max() < 1e-9
        # the tip stands still: turning about it keeps the moment of momentum there
        spin = 2.0 * lean[1] / (lean @ lean + half**2 / 3)
        assert np.abs(v) == pytest.approx([spin * lean[1], -spin * lean[0], spin], abs=1e-5)
    else:
        assert v == pytest.approx([2.0, 0.0, 0.0], abs=1e-4)


# ---------------------------------------------------------------- all modes of tiny problems


def planar_solutions(W: Array, q: Array, mu: Array) -> list[Array]:
    """Every planar contact open, stuck, or sliding either way: all combinations whose signs fit."""
    n = len(mu)
    out = []
    for modes in itertools.product("osfb", repeat=n):
        A, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
        for i, mode in enumerate(modes):
            normal, tail = 2 * i, 2 * i + 1
            if mode == "o":
                A[normal, normal] = A[tail, tail] = 1.0
                continue
            A[normal], b[normal] = W[normal], -q[normal]
            if mode == "s":
                A[tail], b[tail] = W[tail], -q[tail]
            else:
                A[tail, tail], A[tail, normal] = 1.0, mu[i] * (1 if mode == "f" else -1)
        if abs(np.linalg.det(A)) < 1e-9:
            continue
        force = np.linalg.solve(A, b)
        w = W @ force + q
        good = True
        for i, mode in enumerate(modes):
            f, v = force[2 * i : 2 * i + 2], w[2 * i : 2 * i + 2]
            good &= f[0] >= -1e-10 and v[0] >= -1e-10 and abs(f[1]) <= mu[i] * f[0] + 1e-10
            good &= mode not in "fb" or v[1] * (1 if mode == "f" else -1) >= -1e-10
        if good:
            out.append(force)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_tiny_planar_problems_against_all_modes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        n = int(rng.integers(1, 4))
        F = rng.standard_normal((2 * n, 2 * n + 1))
        W, q, mu = F @ F.T, rng.standard_normal(2 * n), rng.uniform(0, 1.5, n)
        solutions = planar_solutions(W, q, mu)
        try:
            found = qdsim.solve_coulomb(W, q, mu, dims=2)
        except qdsim.UnsolvedError:
            assert not solutions
            continue
        assert min(np.abs(found.force - other).max() for other in solutions) < 1e-8
        assert len(solutions) == 1 or found.info.unique is not True


# ---------------------------------------------------------------- random problems


def random_problem(
    rng: np.random.Generator, contacts: int, rows: int = 3
) -> tuple[Array, Array, Array]:
    """Contacts on a chain of bodies, fewer freedoms than rows where there are many; falling and moving."""
    bodies = max(1, contacts // int(rng.integers(1, 5)))
    J = np.zeros((rows * contacts, 6 * bodies))
    for i in range(contacts):
        first = int(rng.integers(bodies))
        for body, sign in ((first, 1.0), (int(rng.integers(bodies)), -1.0)):
            if sign > 0 or (body != first and rng.random() < 0.6):
                n = rng.standard_normal(3)
                frame = np.linalg.qr(np.column_stack([n, rng.standard_normal((3, 2))]))[0].T
                arm = rng.standard_normal(3)
                block = np.hstack([frame, np.cross(arm, frame)])[: min(rows, 3)]
                if rows > 3:
                    spin = np.hstack([np.zeros((3, 3)), frame])[: rows - 3]
                    block = np.vstack([block, spin])
                J[rows * i : rows * (i + 1), 6 * body : 6 * body + 6] += sign * block
    mass = np.exp(rng.uniform(-1, 1, 6 * bodies))
    speed = rng.standard_normal(6 * bodies)
    W = J @ (J / mass).T
    return W, J @ speed, rng.uniform(0, 1.2, contacts)


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_random_problems_are_solved(rows):
    rng = np.random.default_rng(rows)
    solved, possible = 0, 0
    for _ in range(120):
        W, q, mu = random_problem(rng, int(rng.integers(1, 61)), rows)
        try:
            found = qdsim.solve_coulomb(W, q, mu, dims=rows)
        except qdsim.UnsolvedError as error:
            if error.certificate is not None:
                u = error.certificate
                assert u.min() >= 0 and q @ u < 0
                assert np.abs(W @ u).max() < 1e-8 * np.abs(W).max() * u.sum()
                assert np.all(u.reshape(-1, rows)[:, 1:] == 0)
                continue
            possible += 1
            continue
        possible += 1
        solved += law_error(W, q, tail_weights(mu, rows), rows, found.force) < 1e-8
    assert possible > 60
    assert solved >= 0.99 * possible


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("rows", [4, 5, 6])
@pytest.mark.parametrize("cones", ["joint", "separate"])
def test_random_problems_with_torsion_and_rolling(rows, cones):
    rng = np.random.default_rng(rows)
    tails = {4: (0, 0, 1), 5: (0, 0, 2, 2), 6: (0, 0, 1, 2, 2)}[rows]
    groups = [slice(1, 3), slice(3, rows)] if cones == "separate" else None
    solved, possible = 0, 0
    for _ in range(100):
        W, q, mu = random_problem(rng, int(rng.integers(1, 15)), rows)
        three = np.stack([mu, 0.1 * mu, 0.05 * mu], axis=1) * (rng.random((len(mu), 3)) < 0.8)
        weights = np.ones((len(mu), rows))
        weights[:, 1:] = three[:, tails]
        try:
            found = qdsim.solve_coulomb(W, q, three, dims=rows, cones=cones)
        except qdsim.UnsolvedError as error:
            possible += error.certificate is None
            continue
        possible += 1
        solved += law_error(W, q, weights, rows, found.force, groups) < 1e-8
    assert possible > 50
    assert solved >= 0.99 * possible


def test_contacts_of_different_rows_stand_side_by_side():
    rng = np.random.default_rng(5)
    dims = [1, 3, 6, 2, 4, 3, 5]
    n = sum(dims)
    F = rng.standard_normal((n, n))
    W, q = F @ F.T, rng.standard_normal(n)
    mu = rng.uniform(0.1, 1, (len(dims), 3))
    found = qdsim.solve_coulomb(W, q, mu, dims=dims)
    at = 0
    for i, dim in enumerate(dims):
        own = slice(at, at + dim)
        tails = {1: (), 2: (0,), 3: (0, 0), 4: (0, 0, 1), 5: (0, 0, 2, 2), 6: (0, 0, 1, 2, 2)}[dim]
        D = mu[i, list(tails)]
        f, v = found.force[own], found.w[own]
        assert abs(min(f[0], v[0])) < 1e-9
        assert np.linalg.norm(f[1:] / D) <= f[0] + 1e-9
        assert f[1:] @ v[1:] == pytest.approx(-f[0] * np.linalg.norm(D * v[1:]), abs=1e-9)
        at += dim
    assert found.w == pytest.approx(W @ found.force + q, abs=1e-9)


def test_units_do_not_matter():
    W, q, mu = friction("OneObject-i1028-138")
    first = qdsim.solve_coulomb(W, q, mu)
    for mass, speed in itertools.product([1e-6, 1e6], [1e-6, 1e6]):
        other = qdsim.solve_coulomb(W / mass, q * speed, mu)
        assert other.info.error < 1e-9
        assert np.abs(other.w / speed - first.w).max() < 1e-6


@pytest.mark.parametrize(
    "form", ["csr_matrix", "csr_array", "bsr_matrix", "csc_matrix", "coo_array"]
)
def test_sparse_and_dense_agree(form):
    W, q, mu = friction("Confeti-ex03-Fc3D-SBM")
    dense = qdsim.solve_coulomb(W, q, mu)
    sparse = qdsim.solve_coulomb(getattr(sp, form)(W), q, mu)
    assert np.array_equal(dense.force, sparse.force)


def test_the_same_call_gives_the_same_bits():
    W, q, mu = friction("BoxesStack1-i100000-32")
    first, second = (qdsim.solve_coulomb(W, q, mu) for _ in range(2))
    assert np.array_equal(first.force, second.force)
    assert first.info == second.info


def test_siconos_agrees_where_it_is_installed():
    numerics = pytest.importorskip("siconos.numerics")
    rng = np.random.default_rng(11)
    agreed = 0
    for _ in range(10):
        W, q, mu = random_problem(rng, int(rng.integers(1, 20)))
        try:
            found = qdsim.solve_coulomb(W, q, mu)
        except qdsim.UnsolvedError:
            continue
        problem = numerics.FrictionContactProblem(3, len(mu), W, q, mu)
        options = numerics.SolverOptions(numerics.SICONOS_FRICTION_3D_NSN_AC)
        options.dparam[numerics.SICONOS_DPARAM_TOL] = 1e-10
        force, w = np.zeros_like(q), np.zeros_like(q)
        if numerics.fc3d_driver(problem, force, w, options) == 0:
            agreed += found.info.unique is False or np.abs(found.w - w).max() < 1e-6
    assert agreed > 0


# ---------------------------------------------------------------- none, several, and stopped


def test_nothing_closes_and_nothing_pushes():
    found = qdsim.solve_coulomb(np.eye(6), [0.0, 3.0, 1.0, 2.0, -1.0, 0.0], 0.5)
    assert np.all(found.force == 0)
    assert found.info.method == "free"


def test_a_squeezed_body_is_proven_to_have_no_solution():
    J = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    both = np.vstack([J, -J])
    W = both @ both.T
    q = np.array([-1.0, 0.3, 0.0, -1.0, 0.1, 0.0])  # the gap closes from both sides
    with pytest.raises(qdsim.UnsolvedError, match="proven") as caught:
        qdsim.solve_coulomb(W, q, 0.7)
    u = caught.value.certificate
    assert u.min() >= 0 and np.all(u[[1, 2, 4, 5]] == 0)
    assert np.abs(W @ u).max() < 1e-12 and q @ u < 0
    assert caught.value.solution.info.status == "infeasible"


def test_redundant_contacts_are_said_not_to_be_unique():
    corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    frame = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    arms = [np.array([x, y, -1.0]) for x, y in corners]
    J = np.vstack([np.hstack([frame, np.cross(arm, frame)]) for arm in arms])
    W = J @ J.T
    found = qdsim.solve_coulomb(W, J @ np.array([0, 0, -0.1, 0, 0, 0]), 0.5)
    assert found.info.unique is False
    assert np.abs(found.w).max() < 1e-12
    assert found.force[::3].sum() == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_stop_is_explicit_and_says_its_error(count):
    W, q, mu = friction("Capsules-i101-404")
    found = qdsim.solve_coulomb(W, q, mu, stop_after=count)
    assert found.info.iterations == count
    assert found.info.method == "path"
    assert found.info.error > 1e-9
    exact = law_error(W, q, tail_weights(mu, 3), 3, found.force)
    assert found.info.error <= 10 * exact + 1e-12


def test_a_limit_raises_with_the_best():
    W, q, mu = friction("Capsules-i101-404")
    with pytest.raises(qdsim.UnsolvedError, match="iteration limit") as caught:
        qdsim.solve_coulomb(W, q, mu, iteration_limit=2)
    assert isinstance(caught.value, qdsim.SolverError)
    assert caught.value.certificate is None
    assert caught.value.solution.info.error > 1e-9


# ---------------------------------------------------------------- bad input

EYE = np.eye(3)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((np.eye(4), np.zeros(3), 0.5), {}, r"W: expected shape \(3, 3\), got \(4, 4\)"),
        ((EYE, np.zeros(4), 0.5), {}, "q: expected 3 numbers per contact"),
        ((EYE, [], 0.5), {}, "q: expected 3 numbers per contact"),
        ((EYE, [0.0, np.nan, 0.0], 0.5), {}, "q: "),
        ((np.diag([1.0, np.inf, 1.0]), np.zeros(3), 0.5), {}, "W: "),
        ((EYE, np.zeros(3), -0.1), {}, "mu: expected numbers >= 0, got -0.1"),
        ((EYE, np.zeros(3), np.nan), {}, "mu: "),
        ((EYE, np.zeros(3), [0.1, 0.2]), {}, r"mu: expected a number, shape \(1,\) or \(1, 3\)"),
        ((EYE, np.zeros(3), "x"), {}, "mu: "),
        ((np.eye(4), np.zeros(4), 0.5), {"dims": 4}, r"mu: contacts of 4 rows and more need shape"),
        ((EYE, np.zeros(3), 0.5), {"dims": 7}, "dims: expected 1 to 6"),
        ((EYE, np.zeros(3), 0.5), {"dims": [1, 1]}, "dims: has 2 rows in all, and q has 3"),
        ((EYE, np.zeros(3), 0.5), {"dims": 2.5}, "dims: expected 1 to 6"),
        ((EYE, np.zeros(3), 0.5), {"cones": "round"}, "cones: expected 'joint' or 'separate'"),
        ((EYE, np.zeros(3), 0.5), {"tolerance": 0}, "tolerance: "),
        ((EYE, np.zeros(3), 0.5), {"iteration_limit": 0}, "iteration_limit: "),
        ((EYE, np.zeros(3), 0.5), {"stop_after": 0}, "stop_after: "),
        ((sp.eye(4).tocsr(), np.zeros(3), 0.5), {}, r"W: expected shape \(3, 3\), got \(4, 4\)"),
        ((sp.csr_matrix(EYE * np.nan), np.zeros(3), 0.5), {}, "W: "),
    ],
)
def test_bad_arguments_are_named(arguments, options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        qdsim.solve_coulomb(*arguments, **options)


@pytest.mark.parametrize("sparse", [False, True])
def test_unsymmetric_matrices_are_named(sparse):
    W = np.eye(6)
    W[4, 1] = 0.25
    given = sp.csr_matrix(W) if sparse else W
    with pytest.raises(ValueError, match=r"W: not symmetric, \[(4, 1|1, 4)\] is"):
        qdsim.solve_coulomb(given, -np.ones(6), 0.5)


def test_indefinite_matrices_are_named():
    with pytest.raises(ValueError, match=r"W: not positive semidefinite, \[2, 2\] is -1"):
        qdsim.solve_coulomb(np.diag([1.0, 1.0, -1.0]), -np.ones(3), 0.5)


@pytest.mark.long
def test_scipy_is_not_imported():
    import subprocess
    import sys

    code = (
        "import sys, numpy, qdsim; qdsim.solve_coulomb(numpy.eye(3), -numpy.ones(3), 0.5); "
        "assert not any(m.startswith('scipy') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- numbers of any size


@pytest.mark.parametrize("mu", [0.2, 1e2, 1e7, 1e8, 1e12, 1e100, 1e160, 1e200, 1e308])
def test_what_sticks_sticks_under_any_more_friction(mu):
    found = qdsim.solve_coulomb(np.eye(3), [-1.0, 0.1, 0.0], mu)
    assert found.force == pytest.approx([1.0, -0.1, 0.0], abs=1e-8)
    assert found.w == pytest.approx(np.zeros(3), abs=1e-8)
    assert found.info.error <= 1e-9 and found.info.penetration <= 1e-9


@pytest.mark.parametrize("mu", [1e-3, 1e-7, 1e-11, 1e-13, 1e-100, 1e-300])
def test_weak_friction_brakes_what_slides(mu):
    found = qdsim.solve_coulomb(np.eye(3), [-1.0, 3.0, -4.0], mu)
    assert found.force == pytest.approx([1.0, -0.6 * mu, 0.8 * mu], rel=1e-7)


def test_large_friction_hides_no_torsion():
    """Tangents hardly have a bound, torsion has: it is a different one of both at once."""
    W = np.diag([1.0, 1.0, 1.0, 4.0])
    for mu in (1.0, 1e6, 1e9):
        found = qdsim.solve_coulomb(W, [-1.0, 0.0, 0.0, 10.0], [[mu, 0.05, 0.0]], dims=4)
        assert found.force == pytest.approx([1.0, 0.0, 0.0, -0.05], abs=1e-8)


@pytest.mark.parametrize("mass", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("speed", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_any_units_are_solved_or_refused_and_always_alike(mass, speed):
    """A block that slides and one that sticks; a force beyond the range of doubles is an error."""
    W, shape = np.eye(6), np.array([-1.0, 2.0, 0.0, -1.0, 0.0, 0.1])
    answers = []
    for _ in range(2):
        try:
            answers.append(qdsim.solve_coulomb(W / mass, shape * speed, 0.5).force)
        except qdsim.UnsolvedError as error:
            assert "too large or too small" in str(error)
            answers.append(np.zeros(6))
    np.testing.assert_array_equal(*answers)
    unit = speed * mass  # inf or 0 beyond the range
    if 1e-306 < unit < 1e306:
        force = np.array([1.0, -0.5, 0.0, 1.0, 0.0, -0.1])
        assert answers[0] / unit == pytest.approx(force, abs=1e-9)
    else:
        assert not answers[0].any()


def test_a_light_contact_among_heavy_ones_is_no_proof():
    """W u is small for u at the light contact's normal, and yet pushes it open."""
    W = np.diag([1e-12, 1.0, 1.0])
    try:
        found = qdsim.solve_coulomb(W, [-1.0, 0.0, 0.0], 0.5)
    except qdsim.UnsolvedError as error:
        assert error.certificate is None
    else:
        assert found.force == pytest.approx([1e12, 0.0, 0.0], rel=1e-9)


def test_a_signal_ends_a_long_solution():
    import signal

    def raise_it(*_: object) -> None:
        raise TimeoutError

    W, q, mu = friction("RockPile_tob1")
    kept = signal.signal(signal.SIGALRM, raise_it)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(TimeoutError):
            qdsim.solve_coulomb(W, q, mu)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, kept)
