"""Numbers from 1e-308 to 1e308 in programs: an answer holds in a wider arithmetic, or there is none.

Products of such numbers overflow or vanish in doubles, and then no comparison with them means anything. The
conditions that "solved" promises (qdsim.h) are therefore checked in long doubles, whose exponents reach 1e4932.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qdsim

Wide = np.longdouble
pytestmark = pytest.mark.skipif(
    np.finfo(Wide).maxexp < 5000, reason="long doubles reach no farther than doubles here"
)


def extreme(rng: np.random.Generator) -> float:
    low, high = ((150, 308), (-308, -150), (-30, 30))[rng.integers(3)]
    return float(10.0 ** rng.uniform(low, high))


def wide(*arrays: Any) -> list[np.ndarray]:
    return [np.asarray(array, dtype=Wide) for array in arrays]


# ---------------------------------------------------------------- cone programs


def cone_program(rng: np.random.Generator) -> dict[str, Any]:
    """A feasible one, then up to three of its arrays scaled, or single numbers in them set, to anything."""
    n, p = int(rng.integers(1, 7)), int(rng.integers(0, 2))
    kinds = [("orthant", "lorentz")[rng.integers(2)] for _ in range(rng.integers(0, 4))]
    cones = [(kind, int(rng.integers(1, 4))) for kind in kinds]
    m = sum(dim for _, dim in cones)
    L = rng.normal(size=(n, max(1, n - int(rng.integers(0, 2)))))
    Q = L @ L.T
    if rng.random() < 0.3:
        Q = np.diag(np.diag(Q))
    x, slack, row = rng.normal(size=n), rng.normal(size=m), 0
    for kind, dim in cones:
        own = slack[row : row + dim]
        own[:] = np.abs(own) if kind == "orthant" else own
        own[0] = own[0] if kind == "orthant" else np.linalg.norm(own[1:]) + rng.random()
        row += dim
    G, C = rng.normal(size=(m, n)), rng.normal(size=(p, n))
    mu = np.full(len(cones), rng.choice([0.0, 0.0, 0.1]))
    terms: dict[str, Any] = {"Q": Q, "b": rng.normal(size=n), "G": G, "g": slack - G @ x}
    terms |= {"C": C, "c": -C @ x, "target_mu": mu}
    for _ in range(rng.integers(1, 4)):
        name, size = str(rng.choice(list(terms))), extreme(rng)
        array = terms[name]
        if array.size == 0:
            continue
        with np.errstate(all="ignore"):
            if name == "Q" and rng.random() < 0.5:
                i = rng.integers(n)
                array[i] *= np.sqrt(size)
                array[:, i] *= np.sqrt(size)
            elif name == "Q" or rng.random() < 0.5:
                array *= size
            else:
                array.flat[rng.integers(array.size)] = size
    if p == 0:
        terms["C"] = terms["c"] = None
    if not cones:
        terms["target_mu"] = 0.0
    return terms | {"cones": cones}


def broken_conditions(terms: dict[str, Any], found: qdsim.ConeSolution) -> list[str]:
    """What qdsim.h promises of a solved program and does not hold, with a little room."""
    share = Wide(2e-6)
    n = len(terms["b"])
    C, c = (np.zeros((0, n)), np.zeros(0)) if terms["C"] is None else (terms["C"], terms["c"])
    Q, b, G, g, C, c = wide(terms["Q"], terms["b"], terms["G"], terms["g"], C, c)
    mu = np.atleast_1d(wide(terms["target_mu"])[0])
    x, dual, dual_eq = wide(found.x, found.dual, found.dual_eq)
    numbers = (x, dual, dual_eq, found.slack)
    if not all(np.isfinite(array).all() for array in numbers):
        return ["finite"]
    curved = np.diag(Q) > Wide("1e-20") * np.diag(Q).max()
    size = np.concatenate([abs(G), abs(C), np.zeros((1, n), Wide)]).max(axis=0)
    d = np.where(curved, 1 / np.sqrt(np.where(curved, np.diag(Q), 1)), 0)
    d = np.where(curved, d, 1 / np.where(size > 0, size, 1))
    terms_of_columns = [abs(Q * x), abs(b)[:, None], abs(G.T * dual), abs(C.T * dual_eq)]
    force = (np.concatenate(terms_of_columns, axis=1).max(axis=1) * d).max()
    norm, norm_eq = np.sqrt(((G * d) ** 2).sum(axis=1)), np.sqrt(((C * d) ** 2).sum(axis=1))
    strongest = max(norm.max(initial=0), norm_eq.max(initial=0))
    largest_offset = max(abs(g).max(initial=0), abs(c).max(initial=0))
    offset = largest_offset / (strongest or 1)
    free = (abs(b) * d)[np.diag(Q) > 0].max(initial=0)
    reach = max((abs(x) / d).max(), offset / 100)
    if offset <= Wide("1e-14") * free:
        reach = max(reach, free / Wide("1e8"))
    reach = max(reach, free) if (mu > 0).any() else reach
    reach = max(reach, 1) if free == 0 and offset == 0 else reach
    force = max(force, reach) if (b == 0).all() else force
    broken = []
    if ((abs(Q @ x + b - G.T @ dual - C.T @ dual_eq) * d) > share * force).any():
        broken.append("stationarity")
    room = np.maximum(share * np.maximum(abs(c), norm_eq * reach), largest_offset * Wide(2e-15))
    if (abs(C @ x + c) > room).any():
        broken.append("equalities")
    w, row = G @ x + g, 0
    for (kind, dim), target in zip(terms["cones"], np.broadcast_to(mu, len(terms["cones"]))):
        step = 1 if kind == "orthant" else dim
        for at in range(row, row + dim, step):
            own = slice(at, at + step)
            outside = np.sqrt((w[own][1:] ** 2).sum()) - w[at]
            room = share * max(abs(g[own]).max(), norm[own].max() * reach)
            if outside > max(room, largest_offset * Wide(2e-15)):
                broken.append("rows")
            outside = np.sqrt((dual[own][1:] ** 2).sum()) - dual[at]
            if (
                outside > Wide("1e-12") * abs(dual[at])
                and outside * norm[own].max() > share * force
            ):
                broken.append("multipliers")
            if abs(w[own] @ dual[own] - target) > 10 * share * max(force * reach, target):
                broken.append("products")
        row += dim
    return broken


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("part", range(4))
def test_no_cone_program_of_any_numbers_is_solved_wrongly(part: int) -> None:
    solved = 0
    for seed in range(part * 1000, part * 1000 + 600):
        terms = cone_program(np.random.default_rng(seed))
        arrays = [terms[name] for name in ("Q", "b", "G", "g")]
        if not all(np.isfinite(array).all() for array in arrays):
            continue
        try:
            found = qdsim.solve_cone_program(**terms)
        except (qdsim.SolverError, ValueError):
            continue
        assert broken_conditions(terms, found) == [], seed
        solved += 1
    assert solved > 200


@pytest.mark.parametrize("size", [1e155, 1e200, 1e308])
def test_a_row_that_overflows_is_no_answer(size: float) -> None:
    """1e259 x = 1 beside ordinary numbers was "solved" with x anywhere."""
    Q, b, C = np.eye(3), np.ones(3), np.array([[0.5, size, -0.2]])
    found = qdsim.solve_cone_program(Q, b, np.zeros((0, 3)), [], [], C, [3.0])
    np.testing.assert_allclose(found.x, [-1.0, 0.0, -1.0], atol=1e-9)
    with pytest.raises(ValueError, match="G is too large"):
        qdsim.solve_cone_program(Q, b, C, [3.0], [("orthant", 1)])


@pytest.mark.parametrize("curvature", [1e-40, 1e-60, 1e-100, 1e-150, 1e-210, 1e-250])
@pytest.mark.parametrize("compliance", [0.0, 1e-3])
def test_offsets_far_below_rounding_are_meant(curvature: float, compliance: float) -> None:
    """0.2 y1 + y2 = 0.8 where the curvature is nothing: y1 at its end, so the second row holds x.

    The cost alone would send x so far that the offsets beside it counted as rounding, and x = 0 as solved.
    """
    found = qdsim.solve_cone_program(
        [[curvature]], [0.8], [[0.2], [1.0]], [0.5, 0.3], [("interval", 2)],
        lower=-0.4, upper=[1.3, 1.6], compliance=compliance,
    )  # fmt: skip
    np.testing.assert_allclose(found.dual, [-0.4, 0.88], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.x, [-0.3 - 0.88 * compliance], rtol=0, atol=1e-6)


# ---------------------------------------------------------------- complementarity


def complementarity_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Semidefinite, skew or any M; then up to three scales, of all of it, a row, a unit or a number."""
    n = int(rng.integers(1, 9))
    L, skew = rng.normal(size=(n, int(rng.integers(1, n + 1)))), rng.normal(size=(n, n))
    M = (L @ L.T, L @ L.T + skew - skew.T, skew, np.diag(skew.diagonal() ** 2))[rng.integers(4)]
    z = np.maximum(rng.normal(size=n), 0)
    q = np.where(z == 0, np.abs(rng.normal(size=n)), 0) - M @ z
    q = q if rng.random() < 0.7 else rng.normal(size=n)
    for _ in range(rng.integers(1, 4)):
        size, kind = extreme(rng), rng.integers(5)
        M, q = M.copy(), q.copy()
        if kind == 0:
            M *= size
        elif kind == 1:
            q *= size
        elif kind == 2:
            M.flat[rng.integers(M.size)] = size
        elif kind == 3:
            q[rng.integers(n)] = size * rng.choice([-1, 1])
        else:
            units = np.exp(np.log(size) * rng.random(n))
            M, q = units[:, None] * M * units, units * q
    return M, q


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("part", range(2))
def test_no_complementarity_problem_of_any_numbers_is_solved_wrongly(part: int) -> None:
    solved = proven = 0
    for seed in range(part * 1000, part * 1000 + 700):
        with np.errstate(all="ignore"):
            M, q = complementarity_problem(np.random.default_rng(seed))
        if not (np.isfinite(M).all() and np.isfinite(q).all()):
            continue
        try:
            found = qdsim.solve_lcp(M, q)
        except qdsim.UnsolvedError as error:
            assert np.isfinite([error.solution.z, error.solution.w]).all(), seed
            if error.certificate is None:
                continue
            proven += 1
            W, o, u = wide(M, q, error.certificate)
            assert (u >= 0).all() and o @ u < 0, seed
            assert (W.T @ u <= Wide("1e-9") * (abs(W).T @ u)).all(), seed
            continue
        W, o, z, w = wide(M, q, found.z, found.w)
        terms = abs(W) @ z + abs(o)
        assert (z >= 0).all() and np.isfinite(w).all(), seed
        assert (abs(W @ z + o - w) <= Wide("1e-9") * terms + Wide("5e-324")).all(), seed
        slack = (W @ z + o) / np.where(terms > 0, terms, 1)
        assert (abs(np.minimum(slack, z / (z.max() or 1))) < 2e-9).all(), seed
        solved += 1
    assert solved > 300
    assert proven > 20


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-20, 1.0, 1e20, 1e150, 1e300])
def test_units_of_a_complementarity_problem_do_not_matter(size: float) -> None:
    """Two pushes on a wall: z = (2, 0), in units of which the products overflow or vanish."""
    M, q = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([-4.0, -1.0])
    for found, unit in (
        (qdsim.solve_lcp(M * size, q), 1 / size),
        (qdsim.solve_lcp(M, q * size), size),
        (qdsim.solve_lcp(M * size, q * size), 1.0),
    ):
        np.testing.assert_allclose(found.z / unit, [2.0, 0.0], rtol=1e-14)
    mixed = [np.array([[size]]), np.zeros((1, 2)), np.zeros((2, 1)), M, [-size], q]
    np.testing.assert_allclose(qdsim.solve_mlcp(*mixed).v, [2.0, 0.0], rtol=1e-14)


def test_what_overflows_solves_no_complementarity_problem() -> None:
    """z = 1e500 was "solved" as an infinite number."""
    with pytest.raises(qdsim.UnsolvedError):
        qdsim.solve_lcp([[1e-300]], [-1e200])
    with pytest.raises(qdsim.UnsolvedError):
        qdsim.solve_mlcp(
            np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), [[1e-300]], [], [-1e200]
        )


# ---------------------------------------------------------------- optimal control


def control_problem(rng: np.random.Generator) -> dict[str, Any]:
    T, nx, nu = (int(rng.integers(1, most)) for most in (6, 4, 4))

    def weight(n: int) -> np.ndarray:
        L = rng.normal(size=(T, n, n))
        return L @ L.swapaxes(1, 2)

    terms: dict[str, Any] = {
        "A": 0.5 * rng.normal(size=(T, nx, nx)),
        "B": rng.normal(size=(T, nx, nu)),
        "c": rng.normal(size=(T, nx)),
        "x_first": rng.normal(size=nx),
        "u_before": rng.normal(size=nu),
        "Q": weight(nx),
        "q": rng.normal(size=(T, nx)),
        "R": weight(nu) + 0.1 * np.eye(nu),
        "r": rng.normal(size=(T, nu)),
        "S": weight(nu),
        "s": rng.normal(size=(T, nu)),
    }
    for name, n in (("x", nx), ("u", nu), ("d", nu)):
        span = (2.0 if name == "u" else 20.0) * rng.uniform(0.2, 1.0, (2, T, n))
        terms[f"{name}_lower"], terms[f"{name}_upper"] = -span[0], span[1]
    return terms


def broken_optimality(terms: dict[str, Any], found: qdsim.OcpSolution) -> list[str]:
    """Dynamics, bounds, signs and stationarity, each beside the largest number in it."""
    share = Wide(1e-6)
    x, u, x_dual, u_dual, d_dual = wide(found.x, found.u, found.x_dual, found.u_dual, found.d_dual)
    if not all(np.isfinite(array).all() for array in (x, u, x_dual, u_dual, d_dual)):
        return ["finite"]
    A, B, c, Q, q, R, r, S, s = wide(*map(terms.get, "ABcQqRrSs"))
    T = len(B)
    before = np.concatenate([wide(terms["u_before"])[0][None], u[:-1]])
    d = u - before
    broken, values = [], {"x": x[1:], "u": u, "d": d}
    moved = np.einsum("tij,tj->ti", A, x[:-1]) + np.einsum("tij,tj->ti", B, u) + c
    way = max(abs(x).max(), abs(u).max(), abs(c).max(), abs(before[0]).max())
    if abs(x[1:] - moved).max() > share * way:
        broken.append("dynamics")
    costate = [Q[t] @ x[t + 1] + q[t] + x_dual[t] for t in range(T)]
    largest = [
        abs(Q[t] * x[t + 1]).max() + abs(q[t]).max() + abs(x_dual[t]).max() for t in range(T)
    ]
    for t in range(T - 2, -1, -1):
        costate[t] = costate[t] + A[t + 1].T @ costate[t + 1]
    own_d = np.einsum("tij,tj->ti", S, d) + s + d_dual
    slope = np.einsum("tij,tj->ti", R, u) + r + u_dual + own_d
    slope[:-1] -= own_d[1:]
    slope += np.array([B[t].T @ costate[t] for t in range(T)])
    force = max(
        max(abs(B[t]).max() * abs(costate[t]).max() for t in range(T)), max(largest),
        abs(R * u[:, None]).max(), abs(r).max(), abs(S * d[:, None]).max(), abs(s).max(),
        abs(u_dual).max(), abs(d_dual).max(),
    )  # fmt: skip
    # what the last bits of inputs and states make of the weights is no residual: 1e-15 of it
    heaviest = max(abs(Q).max() * max(1, abs(B).max()) ** 2, abs(R).max(), abs(S).max())
    force = max(force, Wide("1e-15") / share * heaviest * way)
    if abs(slope).max() > share * force:
        broken.append("stationarity")
    for name, dual in (("x", x_dual), ("u", u_dual), ("d", d_dual)):
        for side, sign in (("lower", -1), ("upper", 1)):
            bound = wide(terms[f"{name}_{side}"])[0]
            room = sign * (bound - values[name])
            if (room < -share * np.maximum(way, abs(bound))).any():
                broken.append(f"{name}_{side}")
            pull = np.maximum(sign * dual, 0)
            if (pull * np.minimum(np.maximum(room, 0), way) > 10 * share * force * way).any():
                broken.append(f"{name}_dual")
    return broken


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("part", range(3))
def test_no_control_problem_of_any_numbers_is_solved_wrongly(part: int) -> None:
    solved = 0
    for seed in range(part * 1000, part * 1000 + 200):
        rng = np.random.default_rng(seed)
        terms = control_problem(rng)
        for _ in range(rng.integers(1, 4)):
            name, size = str(rng.choice(list(terms))), extreme(rng)
            array = terms[name]
            if name in "QRS" or rng.random() < 0.5:
                with np.errstate(over="ignore"):
                    array *= size
            else:
                sign = {"lower": -1.0, "upper": 1.0}.get(name[2:], rng.choice([-1.0, 1.0]))
                array.flat[rng.integers(array.size)] = sign * size
        if not all(np.isfinite(array).all() for array in terms.values()):
            continue
        try:
            found = qdsim.solve_ocp_qp(**terms)
        except (qdsim.SolverError, ValueError):
            continue
        assert broken_optimality(terms, found) == [], seed
        solved += 1
    assert solved > 40


@pytest.mark.parametrize("seed", range(6))
def test_bounds_that_nothing_reaches_are_none(seed: int) -> None:
    """Whatever they are: their size is no scale of anything."""
    terms = control_problem(np.random.default_rng(seed))
    for name in ("x_upper", "u_lower", "d_upper"):
        terms[name][:] = np.inf if name.endswith("upper") else -np.inf
    free = qdsim.solve_ocp_qp(**terms)
    for size in 10.0 ** np.array([3, 4, 6, 8, 12, 20, 90, 154, 155, 200, 308]):
        for name in ("x_upper", "u_lower", "d_upper"):
            terms[name][:] = size if name.endswith("upper") else -size
        found = qdsim.solve_ocp_qp(**terms)
        np.testing.assert_allclose(found.u, free.u, atol=2e-6, rtol=0)
        assert broken_optimality(terms, found) == []


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1.0, 1e6, 1e20, 1e40])
def test_far_bounds_count_where_they_are_reached(scale: float) -> None:
    """One input that wants to go far, one near, in any units: the far bound holds exactly."""
    A, B, R = np.zeros((3, 2, 2)), np.tile(np.eye(2), (3, 1, 1)), np.eye(2)
    wish = scale * np.array([3e7, 0.2])
    found = qdsim.solve_ocp_qp(
        A, B, R=R, r=np.tile(-wish, (3, 1)), u_before=[scale, scale],
        u_lower=scale * np.array([-1.0, -1.0]), u_upper=scale * np.array([2e7, 1.0]),
    )  # fmt: skip
    np.testing.assert_allclose(found.u / scale, np.tile([2e7, 0.2], (3, 1)), rtol=0, atol=2.0)
    assert (found.u <= scale * np.array([2e7, 1.0])).all()


@pytest.mark.parametrize("value", [1.1e100, -1e155, 1e200, 1.7e308])
def test_numbers_beyond_what_doubles_can_carry_are_named(value: float) -> None:
    good = control_problem(np.random.default_rng(1))
    for name in good:
        terms = {key: array.copy() for key, array in good.items()}
        if name in "QRS":
            terms[name][-1] = abs(value) * np.eye(terms[name].shape[1])
        else:
            terms[name].flat[-1] = value
        is_none = (name.endswith("upper") and value > 0) or (name.endswith("lower") and value < 0)
        if is_none:
            qdsim.solve_ocp_qp(**terms)
            continue
        with pytest.raises(ValueError, match=rf"^{name}: "):
            qdsim.solve_ocp_qp(**terms)
