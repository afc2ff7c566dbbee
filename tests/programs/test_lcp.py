"""Linear and mixed complementarity problems: Siconos' ones, answers known in advance, brute force, and proofs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from external_programs import complementarity, complementarity_names
from numpy.typing import NDArray

import qdsim

Array = NDArray[np.float64]


def lcp_error(M: Array, q: Array, z: Array, w: Array) -> float:
    """The largest |min(z, w)|, w beside the numbers that it is a sum of, and what w misses of M z + q."""
    size = np.abs(q) + np.abs(M) @ np.abs(z) + 1e-300
    reach = max(np.abs(z).max(), 1e-300)
    return max(np.abs(np.minimum(z / reach, w / size)).max(), (np.abs(M @ z + q - w) / size).max())


def assert_proves(M: Array, q: Array, u: Array) -> None:
    assert np.all(u >= 0)
    assert np.all(M.T @ u <= 1e-9 * (np.abs(M).T @ u))
    assert q @ u < -1e-10 * (np.abs(q) @ u)


def solve_or_proof(M: Array, q: Array) -> bool:
    """Whether there is a solution, each verdict checked here."""
    try:
        found = qdsim.solve_lcp(M, q)
    except qdsim.UnsolvedError as error:
        assert error.certificate is not None, str(error)
        assert_proves(M, q, error.certificate)
        return False
    assert lcp_error(M, q, found.z, found.w) < 1e-8
    return True


@pytest.mark.parametrize("name", complementarity_names("lcp"))
@pytest.mark.parametrize("transposed", [False, True])
def test_published_problems_are_solved_or_proven_unsolvable(name, transposed):
    # the files do not say whether they go by rows or by columns: both are problems
    M, other = complementarity("lcp", name)
    solve_or_proof(M.T.copy() if transposed else M, other["q"])


@pytest.mark.parametrize("name", complementarity_names("mlcp"))
def test_published_mixed_problems_are_solved_or_proven_unsolvable(name):
    M, other = complementarity("mlcp", name)
    q, free = other["q"], int(other["free"])
    p = len(q) - (M.shape[1] - free)
    blocks = M[:p, :free], M[:p, free:], M[p:, :free], M[p:, free:]
    try:
        found = qdsim.solve_mlcp(*blocks, q[:p], q[p:])
    except qdsim.UnsolvedError as error:
        assert name == "Rectangular_mlcp"  # three equations of one point, where v w is not zero
        assert error.solution.info.status == "infeasible"
        return
    x = np.concatenate([found.u, found.v])
    left = M @ x + q
    size = np.abs(q) + np.abs(M) @ np.abs(x)
    size += 1e-6 * size.max()
    assert np.abs(left[:p] / size[:p]).max(initial=0) < 1e-7
    assert np.abs(np.minimum(found.v, left[p:] / size[p:])).max() < 1e-7


@pytest.mark.parametrize("seed", range(8))
def test_matrices_that_promise_a_solution_have_one(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n = int(rng.integers(1, 30))
        F = rng.standard_normal((n, rng.integers(1, n + 1)))
        skew = rng.standard_normal((n, n))
        scale = np.exp(rng.uniform(-6, 6, n))
        M = scale[:, None] * (F @ F.T + skew - skew.T) * np.exp(rng.uniform(-6, 6)) * scale
        z = np.maximum(rng.standard_normal(n), 0) / scale  # feasible: then there is a solution
        q = -M @ z + np.maximum(rng.standard_normal(n), 0) * scale * (rng.random(n) < 0.7)
        assert solve_or_proof(M, q)


@pytest.mark.parametrize("seed", range(6))
def test_semidefinite_problems_without_solution_are_proven(seed):
    rng = np.random.default_rng(seed)
    for _ in range(15):
        n = int(rng.integers(2, 20))
        u = np.maximum(rng.standard_normal(n), 0)
        u[rng.integers(n)] += 1
        F = rng.standard_normal((n, n))
        F -= np.outer(u, u @ F) / (u @ u)  # F'u = 0
        F[np.abs(F) < 1e-12] = 0.0  # 1e-32 in M is a number, and z = 1e32 a solution
        q = rng.standard_normal(n)
        q -= u * (q @ u + rng.uniform(0.5, 2)) / (u @ u)
        assert not solve_or_proof(F @ F.T, q)


@pytest.mark.parametrize("seed", range(10))
def test_small_problems_of_any_kind_against_all_bases(seed):
    rng = np.random.default_rng(seed)
    undecided = 0
    for _ in range(30):
        n = int(rng.integers(1, 5))
        M, q = rng.standard_normal((n, n)), rng.standard_normal(n)
        exists = False
        for basis in itertools.product([False, True], repeat=n):
            a = np.array(basis)
            z = np.zeros(n)
            if a.any():
                z[a] = np.linalg.solve(M[np.ix_(a, a)], -q[a])
            exists |= bool(z.min() >= 0 and (M @ z + q)[~a].min(initial=0) >= 0)
        try:
            found = qdsim.solve_lcp(M, q)
            assert lcp_error(M, q, found.z, found.w) < 1e-9
            assert exists
        except qdsim.UnsolvedError as error:
            assert not exists
            undecided += error.certificate is None
            if error.certificate is not None:
                assert_proves(M, q, error.certificate)
    assert undecided < 30


@pytest.mark.parametrize("n", [2, 8, 14])
def test_exponential_problems_end(n):
    # Murty's: Lemke's method from a cover of ones takes two pivots, least index methods 2^n
    M = np.eye(n) + 2 * np.tril(np.ones((n, n)), -1)
    for q in (-np.ones(n), np.array([-(2.0 ** (n + 1)) + 2.0 ** (i + 1) for i in range(n)])):
        assert solve_or_proof(M, q)
        assert solve_or_proof(M.T.copy(), q)


@pytest.mark.parametrize("seed", range(4))
def test_degenerate_problems_end(seed):
    # rows that repeat, ties everywhere: what redundant contacts give
    rng = np.random.default_rng(seed)
    for _ in range(20):
        base, times = int(rng.integers(1, 6)), int(rng.integers(2, 6))
        F = rng.integers(-2, 3, (base, base + 1)).astype(float)
        R = np.repeat(np.eye(base), times, axis=0)
        M = R @ (F @ F.T) @ R.T
        q = R @ (-(F @ F.T) @ rng.integers(0, 3, base) + rng.integers(0, 2, base))
        assert solve_or_proof(M, q)


@pytest.mark.parametrize("seed", range(6))
def test_mixed_problems_with_known_answers_of_any_rank(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        p, n = int(rng.integers(0, 8)), int(rng.integers(1, 12))
        F = rng.standard_normal((p + n, p + n))
        skew = rng.standard_normal((p + n, p + n))
        M = F @ F.T + skew - skew.T  # definite: one solution
        if p > 1 and rng.random() < 0.5:
            M[:p, :p] = 0.0  # no equality has a pivot of its own
        u, v = rng.standard_normal(p), np.maximum(rng.standard_normal(n), 0)
        w = np.where(v > 0, 0.0, rng.random(n))
        q = np.concatenate([np.zeros(p), w]) - M @ np.concatenate([u, v])
        found = qdsim.solve_mlcp(M[:p, :p], M[:p, p:], M[p:, :p], M[p:, p:], q[:p], q[p:])
        x = np.concatenate([found.u, found.v])
        left = M @ x + q
        size = 1e-8 * (np.abs(q) + np.abs(M) @ np.abs(x)).max()
        assert np.abs(left[:p]).max(initial=0) < size
        assert np.abs(np.minimum(found.v, left[p:])).max() < size


@pytest.mark.parametrize("repeats", [1, 3])
def test_equalities_may_repeat(repeats):
    rng = np.random.default_rng(7)
    A, C = rng.standard_normal((3, 3)), rng.standard_normal((3, 2))
    D, B = -C.T, np.eye(2)
    a, b = rng.standard_normal(3), rng.standard_normal(2)
    R = np.tile(np.eye(3), (repeats, 1))
    found = qdsim.solve_mlcp(R @ A, R @ C, D, B, R @ a, b)
    assert np.abs(A @ found.u + C @ found.v + a).max() < 1e-10
    assert np.abs(np.minimum(found.v, D @ found.u + B @ found.v + b)).max() < 1e-10


def test_equalities_that_contradict_each_other_are_proven_so():
    with pytest.raises(qdsim.UnsolvedError, match="proven") as caught:
        qdsim.solve_mlcp([[1.0], [1.0]], [[0.0], [0.0]], [[0.0]], [[1.0]], [0.0, 1.0], [1.0])
    assert caught.value.solution.info.status == "infeasible"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[1.0, 0.0]], [1.0]), r"M: expected shape \(1, 1\), got \(1, 2\)"),
        (([[1.0]], [1.0, 2.0]), r"M: expected shape \(2, 2\), got \(1, 1\)"),
        (([[np.nan]], [1.0]), "M: "),
        (([[1.0]], [np.inf]), "q: "),
        (([[1.0]], []), "q: expected 1 to"),
        (([["a"]], [1.0]), "M: expected an array of real numbers"),
    ],
)
def test_bad_problems_are_named(arguments, said):
    with pytest.raises((TypeError, ValueError), match=said):
        qdsim.solve_lcp(*arguments)


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"pivot_limit": 0}, {"tolerance": "x"}])
def test_bad_options_are_named(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        qdsim.solve_lcp([[1.0]], [-1.0], **options)


@pytest.mark.parametrize("name", ["A", "C", "D", "B", "a", "b"])
@pytest.mark.parametrize("fault", ["shape", "nan"])
def test_bad_mixed_problems_are_named(name, fault):
    good = {
        "A": np.eye(2),
        "C": np.ones((2, 3)),
        "D": np.ones((3, 2)),
        "B": np.eye(3),
        "a": np.ones(2),
        "b": np.ones(3),
    }
    value = good[name].copy()
    good[name] = np.ones(value.shape + (1,)) if fault == "shape" else value * np.nan
    with pytest.raises(ValueError, match=f"^{name}: "):
        qdsim.solve_mlcp(**good)
