"""The optimal control solver against Riccati equations, optimality conditions and PIQP."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import piqp
import pytest
import scipy.linalg

import qdsim

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Problem:
    """Arguments of solve_ocp_qp by name, and its dense form in the inputs (u = all of them)."""

    terms: dict[str, Array]

    def solve(self, **options: Any) -> qdsim.OcpSolution:
        return qdsim.solve_ocp_qp(**self.terms, **options)

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.terms["B"].shape  # type: ignore[return-value]

    def maps(self) -> tuple[Array, Array, Array, Array]:
        """x_1 .. x_T = M u + m and d = D u + e."""
        T, nx, nu = self.sizes
        A, B = self.terms["A"], self.terms["B"]
        M, m = np.zeros((T, nx, T, nu)), np.zeros((T, nx))
        D, e = np.zeros((T, nu, T, nu)), np.zeros((T, nu))
        x = self.terms["x_first"]
        for t in range(T):
            m[t] = A[t] @ x + self.terms["c"][t]
            if t:
                M[t] = np.tensordot(A[t], M[t - 1], 1)
                D[t, :, t - 1] = -np.eye(nu)
            M[t, :, t] += B[t]
            D[t, :, t] = np.eye(nu)
            x = m[t]
        e[0] = -self.terms["u_before"]
        return M.reshape(T * nx, -1), m.ravel(), D.reshape(T * nu, -1), e.ravel()

    def dense(self) -> tuple[Array, Array]:
        """Hessian and gradient at zero of the cost over all inputs."""
        M, m, D, e = self.maps()
        Q, R, S = (scipy.linalg.block_diag(*self.terms[k]) for k in "QRS")
        q, r, s = (self.terms[k].ravel() for k in "qrs")
        return M.T @ Q @ M + R + D.T @ S @ D, M.T @ (Q @ m + q) + r + D.T @ (S @ e + s)

    def piqp(self) -> Array:
        """The inputs as PIQP finds them, (T, nu)."""
        T, _, nu = self.sizes
        P, p = self.dense()
        M, m, D, e = self.maps()
        low = np.concatenate([self.terms["x_lower"].ravel() - m, self.terms["d_lower"].ravel() - e])
        high = np.concatenate(
            [self.terms["x_upper"].ravel() - m, self.terms["d_upper"].ravel() - e]
        )
        G, some = np.concatenate([M, D]), np.isfinite(low) | np.isfinite(high)
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
        u_range = self.terms["u_lower"].ravel(), self.terms["u_upper"].ravel()
        if some.any():
            solver.setup(P, p, None, None, G[some], low[some], high[some], *u_range)
        else:
            solver.setup(P, p, None, None, None, None, None, *u_range)
        assert solver.solve() == piqp.PIQP_SOLVED
        return solver.result.x.reshape(T, nu)


def random_problem(seed: int) -> Problem:
    """A feasible problem of any size, with states that no other one reads."""
    rng = np.random.default_rng(seed)
    T, nx, nu = (int(rng.integers(1, most)) for most in (12, 9, 7))

    def semidefinite(n: int) -> Array:
        L = rng.standard_normal((T, n, max(1, n - 1)))
        return L @ L.swapaxes(1, 2)

    A, Q = 0.5 * rng.standard_normal((T, nx, nx)), semidefinite(nx)
    lonely = rng.random(nx) < 0.4
    A[:, lonely] = A[:, :, lonely] = 0.0
    if seed % 2:  # and whose cost is their own
        own = Q[:, lonely, lonely]
        Q[:, lonely] = Q[:, :, lonely] = 0.0
        Q[:, lonely, lonely] = own
    terms = {
        "A": A,
        "B": rng.standard_normal((T, nx, nu)),
        "c": rng.standard_normal((T, nx)),
        "x_first": rng.standard_normal(nx),
        "u_before": rng.standard_normal(nu),
        "Q": Q,
        "q": rng.standard_normal((T, nx)),
        "R": 0.01 * np.eye(nu) + (seed % 3 > 0) * semidefinite(nu),
        "r": rng.standard_normal((T, nu)),
        "S": 0.3 * semidefinite(nu),
        "s": rng.standard_normal((T, nu)),
    }
    u = 0.3 * rng.standard_normal(T * nu)
    M, m, D, e = Problem(terms).maps()
    for name, y in (("x", M @ u + m), ("u", u), ("d", D @ u + e)):
        for side, sign in (("lower", -1.0), ("upper", 1.0)):
            bound = y + sign * 0.5 * rng.random(y.shape)
            bound[rng.random(y.shape) < 0.3] = sign * math.inf
            if name != "u" and seed % 4 == 0:
                bound[:] = sign * math.inf
            terms[f"{name}_{side}"] = bound.reshape(T, -1)
    return Problem(terms)


def pushing_problem() -> Problem:
    """One iteration of pushing a box: linearisations along a smoothed rollout, a trust region."""
    system = qdsim.systems.load("planar_pushing")
    model, T = system.model, 20
    options = system.options.replace(kappa=100.0)
    q, rows = np.array([0.0, 0.5, 0.0, 0.0, -0.1]), []
    u = np.array([0.02, 0.05]) + np.zeros((T, 2))
    for t in range(T):
        rows.append(qdsim.linearize(model, q, u[t], options))
        q = rows[-1].q_next
    A, B = np.array([r.A for r in rows]), np.array([r.B for r in rows])
    x = np.array([r.q_next for r in rows])
    before = np.concatenate([[[0.0, 0.5, 0.0, 0.0, -0.1]], x[:-1]])
    Q = np.tile(np.diag([20.0, 20.0, 30.0, 1e-3, 1e-3]), (T, 1, 1))
    Q[-1] *= 100.0
    goal = np.array([0.5, 1.0, -math.pi / 4, 0.0, 0.0])
    free = {f"{k}_{side}": np.full((T, n), s * math.inf)
            for k, n in (("x", 5), ("d", 2)) for side, s in (("lower", -1), ("upper", 1))}  # fmt: skip
    return Problem(
        free
        | {
            "A": A,
            "B": B,
            "c": x - (A @ before[..., None])[..., 0] - (B @ u[..., None])[..., 0],
            "x_first": before[0],
            "u_before": before[0, 3:],
            "Q": Q,
            "q": -(Q @ goal),
            "R": np.zeros((T, 2, 2)),
            "r": np.zeros((T, 2)),
            "S": np.tile(10.0 * np.eye(2), (T, 1, 1)),
            "s": np.zeros((T, 2)),
            "u_lower": u - 0.2,
            "u_upper": u + 0.2,
        }
    )


def check_optimal(problem: Problem, found: qdsim.OcpSolution, tolerance: float = 1e-6) -> None:
    """The conditions of optimality, with multipliers and states computed here."""
    terms, (T, _, nu) = problem.terms, problem.sizes
    M, m, D, e = problem.maps()
    P, p = problem.dense()
    u = found.u.ravel()
    scale = 1.0 + np.abs(P @ u).max() + np.abs(p).max()
    np.testing.assert_allclose(found.x[1:].ravel(), M @ u + m, atol=1e-9 * scale)
    np.testing.assert_array_equal(found.x[0], terms["x_first"])
    gradient = P @ u + p + M.T @ found.x_dual.ravel() + D.T @ found.d_dual.ravel()
    np.testing.assert_allclose(gradient.reshape(T, nu) + found.u_dual, 0.0, atol=tolerance * scale)
    for name, y, dual in (
        ("x", M @ u + m, found.x_dual),
        ("u", u, found.u_dual),
        ("d", D @ u + e, found.d_dual),
    ):
        low, high = terms[f"{name}_lower"].ravel(), terms[f"{name}_upper"].ravel()
        assert (y >= low - tolerance).all() and (y <= high + tolerance).all(), name
        room = np.where(dual.ravel() > 0.0, high - y, y - low)
        with np.errstate(invalid="ignore"):  # no bound, no multiplier
            assert np.nan_to_num(np.abs(dual.ravel()) * np.abs(room)).max() < tolerance * scale


@pytest.mark.parametrize("seed", range(40))
def test_random_problems_are_solved_to_optimality_and_as_piqp_does(seed: int) -> None:
    problem = random_problem(seed)
    found = problem.solve()
    check_optimal(problem, found)
    P, p = problem.dense()
    u, other = found.u.ravel(), problem.piqp().ravel()
    # flat directions make the inputs less certain than the cost
    scale = 1.0 + 0.5 * u @ P @ u + np.abs(p * u).sum()
    assert 0.5 * u @ P @ u + p @ u == pytest.approx(
        0.5 * other @ P @ other + p @ other, abs=1e-7 * scale
    )
    np.testing.assert_allclose(u, other, atol=1e-3)


def test_a_problem_made_by_contact() -> None:
    problem = pushing_problem()
    found = problem.solve()
    check_optimal(problem, found)
    np.testing.assert_allclose(found.u, problem.piqp(), atol=1e-6)
    assert np.abs(found.u_dual).max() > 1.0, "the trust region should be felt"


@pytest.mark.parametrize("bounded", [False, True])
def test_gains_without_active_bounds_are_those_of_the_riccati_equation(bounded: bool) -> None:
    """Far from the end of a long horizon the gain is the stationary one of SciPy."""
    rng = np.random.default_rng(3)
    T, nx, nu = 200, 4, 2
    A, B = 0.9 * scipy.linalg.orth(rng.standard_normal((nx, nx))), rng.standard_normal((nx, nu))
    Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), np.diag([0.5, 2.0])
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    gain = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    x = rng.standard_normal(nx)
    box = {"u_lower": np.full(nu, -100.0), "u_upper": np.full(nu, 100.0)} if bounded else {}
    found = qdsim.solve_ocp_qp(
        np.tile(A, (T, 1, 1)), np.tile(B, (T, 1, 1)), x_first=x, Q=Q, R=R, gains=True, **box
    )
    assert found.x_gain is not None and found.u_gain is not None
    np.testing.assert_allclose(found.x_gain[0], gain, atol=1e-6)
    np.testing.assert_allclose(found.u_gain, 0.0, atol=1e-6)
    np.testing.assert_allclose(found.u[0], gain @ x, atol=1e-6)
    # 1/2 x'Px is the cost from here on, that of x itself included
    assert found.info.objective + 0.5 * x @ Q @ x == pytest.approx(0.5 * x @ P @ x, rel=1e-9)


def test_gains_tell_how_the_solution_moves() -> None:
    problem = random_problem(14)
    found = problem.solve(gains=True, tolerance=1e-11)
    assert found.x_gain is not None and found.u_gain is not None
    T, nx, nu = problem.sizes
    rng = np.random.default_rng(0)
    dx, du = 1e-5 * rng.standard_normal(nx), 1e-5 * rng.standard_normal(nu)
    moved = Problem(
        problem.terms
        | {"x_first": problem.terms["x_first"] + dx, "u_before": problem.terms["u_before"] + du}
    ).solve(tolerance=1e-11)
    expected, x, w = [], problem.terms["x_first"] + dx, problem.terms["u_before"] + du
    before = np.concatenate([problem.terms["u_before"][None], found.u[:-1]])
    for t in range(T):
        u = found.u[t] + found.x_gain[t] @ (x - found.x[t]) + found.u_gain[t] @ (w - before[t])
        expected.append(u)
        x = problem.terms["A"][t] @ x + problem.terms["B"][t] @ u + problem.terms["c"][t]
        w = u
    assert np.abs(moved.u - found.u).max() > 1e-7
    np.testing.assert_allclose(moved.u, expected, atol=2e-8)


def test_costates_are_derivatives_of_the_cost() -> None:
    problem = random_problem(3)
    found, h = problem.solve(tolerance=1e-11), 1e-5
    T, nx, _ = problem.sizes
    for t, i in ((0, 0), (T - 1, nx - 1), (T // 2, 0)):
        costs = []
        for sign in (-1.0, 1.0):
            c = problem.terms["c"].copy()
            c[t, i] += sign * h
            costs.append(Problem(problem.terms | {"c": c}).solve(tolerance=1e-11).info.objective)
        assert found.costate[t, i] == pytest.approx((costs[1] - costs[0]) / (2 * h), rel=1e-4, abs=1e-5)  # fmt: skip


def test_unstable_dynamics_do_not_blow_rounding_up() -> None:
    """Thrice as far at every step, 10^14 over the horizon; conditions stage by stage."""
    rng = np.random.default_rng(0)
    T, n = 30, 4
    A = np.tile(3.0 * scipy.linalg.orth(rng.standard_normal((n, n))), (T, 1, 1))
    B = 0.3 * rng.standard_normal((T, n, n)) + 2.0 * np.eye(n)
    x, q = 0.1 * rng.standard_normal(n), 0.5 * rng.standard_normal((T, n))
    found = qdsim.solve_ocp_qp(
        A, B, x_first=x, Q=np.eye(n), q=q, S=np.eye(n), u_lower=[-0.6] * n, u_upper=[0.6] * n
    )
    assert np.abs(found.u_dual).max() > 1e-3, "some bounds should be active"
    ahead = (A @ found.x[:-1, :, None] + B @ found.u[:, :, None])[..., 0]
    np.testing.assert_allclose(found.x[1:], ahead, atol=1e-12)
    d = np.diff(found.u, axis=0, prepend=0.0)
    after = np.concatenate([d[1:], np.zeros((1, n))])
    slope = d - after + (B.swapaxes(1, 2) @ found.costate[:, :, None])[..., 0] + found.u_dual
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)
    costate = found.x[1:] + q
    costate[:-1] += (A[1:].swapaxes(1, 2) @ found.costate[1:, :, None])[..., 0]
    np.testing.assert_allclose(found.costate, costate, atol=1e-6)


def test_far_bounds_change_nothing() -> None:
    """Bounds that no input or state comes near, up to 10^13 away, cost no digits of the solution. The
    solver's tolerance is 1e-9 of the forces; the least curvature is 0.01."""
    problem = random_problem(5)
    names = [name for name in problem.terms if name.endswith(("lower", "upper"))]
    free = Problem({k: v for k, v in problem.terms.items() if k not in names})
    expected = free.solve()
    rng = np.random.default_rng(0)
    for _ in range(6):
        far = {
            name: (-1.0 if "lower" in name else 1.0)
            * 10.0 ** rng.uniform(6, 13, problem.terms[name].shape)
            for name in names
        }
        found = Problem(free.terms | far).solve()
        np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-7)


def test_fixed_inputs_and_states_are_allowed() -> None:
    problem = random_problem(5)
    u = problem.solve().u
    fixed = Problem(problem.terms | {"u_lower": u, "u_upper": u}).solve()
    np.testing.assert_allclose(fixed.u, u, atol=1e-7)


def test_bounds_that_exclude_each_other_are_an_error() -> None:
    A, B = np.ones((5, 1, 1)), np.ones((5, 1, 1))
    weights = {"Q": np.eye(1), "R": np.eye(1)}
    with pytest.raises(qdsim.SolverError, match="solve_ocp_qp: infeasible") as caught:
        # five steps of at most 0.1 do not lead beyond 1
        qdsim.solve_ocp_qp(A, B, u_lower=[-0.1], u_upper=[0.1],
                           x_lower=[[-9], [-9], [-9], [-9], [1.0]], **weights)  # fmt: skip
    assert caught.value.info.status == "infeasible"
    with pytest.raises(qdsim.SolverError, match="infeasible"):  # nor do changes that are too slow
        qdsim.solve_ocp_qp(A, B, d_upper=[0.01], x_lower=[[-9], [-9], [-9], [-9], [1.0]], **weights)
    for seed in range(12):
        problem = random_problem(seed)
        T, nx, nu = problem.sizes
        u = np.zeros((T, nu))
        M, m, _, _ = problem.maps()
        reach = np.abs(M).sum(axis=1) * 0.1
        high = np.full((T, nx), math.inf)
        high[-1] = (m - reach - 0.05).reshape(T, nx)[-1]
        squeezed = Problem(problem.terms | {"u_lower": u - 0.1, "u_upper": u + 0.1,
                                            "d_lower": u - 9.0, "d_upper": u + 9.0,
                                            "x_lower": np.full((T, nx), -math.inf), "x_upper": high})  # fmt: skip
        with pytest.raises(qdsim.SolverError, match="infeasible"):
            squeezed.solve()


def test_a_cost_that_falls_for_ever_is_an_error() -> None:
    with pytest.raises(qdsim.SolverError):
        qdsim.solve_ocp_qp(np.zeros((2, 1, 1)), np.zeros((2, 1, 1)), r=[[1.0], [0.0]])


def test_same_bits_twice() -> None:
    a, b = (random_problem(8).solve(gains=True) for _ in range(2))
    assert a.u.tobytes() == b.u.tobytes() and a.x_dual.tobytes() == b.x_dual.tobytes()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"A": np.zeros((3, 2, 3))}, ValueError, r"A: expected shape \(3, 2, 2\)"),
        ({"B": np.zeros((3, 2))}, ValueError, "B: expected shape"),
        ({"B": np.zeros((0, 2, 1))}, ValueError, "B: expected shape"),
        ({"A": "x"}, TypeError, "A: expected"),
        ({"c": np.zeros((3, 1))}, ValueError, r"c: expected shape \(3, 2\)"),
        ({"x_first": [math.nan, 0.0]}, ValueError, r"x_first: element \[0\] is nan"),
        ({"Q": [[0.0, 1.0], [0.0, 0.0]]}, ValueError, "Q: not symmetric"),
        ({"R": [[-1.0]]}, ValueError, "R: not positive semidefinite"),
        ({"S": np.zeros((2, 2))}, ValueError, "S: expected shape"),
        ({"u_lower": [1.0], "u_upper": [0.0]}, ValueError, "u_lower: 1 at"),
        ({"x_upper": [math.nan, 0.0]}, ValueError, "x_upper: element"),
        ({"tolerance": 0.0}, ValueError, "tolerance"),
        ({"iteration_limit": 0}, ValueError, "iteration_limit"),
    ],
)
def test_bad_arguments_are_named(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    good: dict[str, Any] = {"A": np.zeros((3, 2, 2)), "B": np.ones((3, 2, 1)), "R": np.eye(1)}
    qdsim.solve_ocp_qp(**good)
    with pytest.raises(error, match=message):
        qdsim.solve_ocp_qp(**(good | change))


def test_the_iteration_limit_is_an_error_with_residuals() -> None:
    with pytest.raises(qdsim.SolverError, match="iteration limit") as caught:
        random_problem(8).solve(iteration_limit=2)
    assert caught.value.info.iterations == 2
