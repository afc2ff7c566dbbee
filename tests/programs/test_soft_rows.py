"""Cone programs whose rows give way: compliance, and intervals of forces. What they are to meet is in the docstring of
qdsim.solve_cone_program; it is worked out here from scratch, and by Clarabel."""

import itertools
from typing import Any

import clarabel_witness
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from soft_programs import misses, random_program

import qdsim

INF = np.inf


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("mu", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("n", [2, 5, 12, 60])
def test_optimality_of_random_programs(n: int, mu: float) -> None:
    rng = np.random.default_rng(n)
    worst = 0.0
    for _ in range(60 if n < 60 else 10):
        P = random_program(rng, n, (-6.0, 4.0))
        worst = max(worst, misses(P, qdsim.solve_cone_program(**P, target_mu=mu), mu))
    assert worst < 1e-6


def springs_that_hold_columns(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rigid cones, and intervals behind them that alone keep some columns: without a force's spring the cost is
    flat."""
    P = random_program(rng, n)
    k = int(rng.integers(1, n + 1))
    rigid = [(kind, dim) for kind, dim in P["cones"] if kind != "interval"]
    keep = np.repeat([kind != "interval" for kind, _ in P["cones"]], [d for _, d in P["cones"]])
    held = np.zeros((k, n))
    held[np.arange(k), rng.permutation(n)[:k]] = rng.choice([1.0, 2.0, -1.0], k)
    offset = rng.standard_normal(k) * 10.0 ** rng.uniform(-1, 1.5)
    size = 10.0 ** rng.uniform(-2, 2, k)
    R = np.where(rng.random(k) < 0.2, 0.0, 10.0 ** rng.uniform(-3, 3, k))
    bends = (abs(held).sum(0) == 0) | (rng.random(n) < 0.3)
    return P | {
        "Q": np.diag(bends * 10.0 ** rng.uniform(-1, 1, n)),
        "G": np.vstack([P["G"][keep], held]),
        "g": np.append(P["g"][keep], offset),
        "cones": [*rigid, ("interval", k)],
        "C": np.zeros((0, n)),
        "c": np.zeros(0),
        "compliance": np.append(np.zeros(keep.sum()), R),
        "compliance_eq": np.zeros(0),
        "lower": -size * rng.choice([0.0, 1.0, INF], k, p=[0.2, 0.7, 0.1]),
        "upper": size * rng.choice([0.5, 1.0, INF], k, p=[0.2, 0.7, 0.1]),
    }


@pytest.mark.long
def test_forces_at_their_ends_leave_columns_without_curvature() -> None:
    """From scratch, and from the solution of a program nearby."""
    rng = np.random.default_rng(11)
    solved = limited = again = 0
    for _ in range(400):
        P = springs_that_hold_columns(rng, int(rng.integers(2, 10)))
        try:
            s = qdsim.solve_cone_program(**P)
        except qdsim.SolverError as error:
            assert error.info.status in ("unbounded", "infeasible", "numerical trouble")
            continue
        k = P["cones"][-1][1]
        solved += 1
        limited += int(((s.dual[-k:] == P["lower"]) | (s.dual[-k:] == P["upper"])).any())
        assert misses(P, s) < 1e-6
        near = P | {"b": P["b"] + 1e-3 * rng.standard_normal(len(P["b"]))}
        try:
            assert misses(near, qdsim.solve_cone_program(**near, warm_start=s)) < 1e-6
            again += 1
        except qdsim.SolverError as error:
            assert error.info.status in ("unbounded", "numerical trouble")
    assert solved > 200 and limited > 100 and again > 200


def clarabel_x(P: dict[str, Any]) -> NDArray[np.float64] | None:
    """The minimiser of the Moreau envelopes written out: min over x, v and s, t >= 0 of 1/2 x'Qx + b'x + 1/2 |v|^2 -
    lower's + upper't with w + sqrt(R) v in K, or = s - t for intervals."""
    n, m, p = len(P["b"]), len(P["g"]), len(P["c"])
    kinds = np.repeat([kind for kind, _ in P["cones"]], [dim for _, dim in P["cones"]])
    is_interval = kinds == "interval"
    ends = [] if P["lower"] is None else [P["lower"], -P["upper"]]
    count = 2 * int(is_interval.sum())
    cost = sparse.block_diag(
        [P["Q"], sparse.eye(m + p), sparse.csc_matrix((count, count))], format="csc"
    )
    finite = np.isfinite(np.concatenate(ends)) if ends else np.zeros(0, bool)
    q = np.concatenate(
        [P["b"], np.zeros(m + p), *(np.where(np.isfinite(e), -e, 0.0) for e in ends)]
    )
    side = sparse.eye(m, format="csc")[:, is_interval]
    rows = sparse.hstack(
        [P["G"], sparse.diags(np.sqrt(P["compliance"])), sparse.csc_matrix((m, p)), -side, side],
        format="csr",
    )
    equal = sparse.hstack(
        [
            P["C"],
            sparse.csc_matrix((p, m)),
            sparse.diags(np.sqrt(P["compliance_eq"])),
            sparse.csc_matrix((p, count)),
        ],
        format="csr",
    )
    slips = sparse.hstack([sparse.csc_matrix((count, n + m + p)), sparse.eye(count)], format="csr")
    A = [-equal, -rows[is_interval], -slips[~finite], -slips[finite]]
    offset = [P["c"], P["g"][is_interval], np.zeros(count)]
    cones = [
        ("zero", p + int(is_interval.sum()) + int((~finite).sum())),
        ("orthant", int(finite.sum())),
    ]
    at = 0
    for kind, dim in P["cones"]:
        if kind != "interval":
            A.append(-rows[at : at + dim])
            offset.append(P["g"][at : at + dim])
            cones.append((kind, dim))
        at += dim
    found = clarabel_witness.Program(
        cost, q, sparse.vstack(A, format="csc"), np.concatenate(offset), cones
    ).answer()
    return None if found is None else found.x[:n]


@pytest.mark.parametrize(
    ("n", "count"),
    [(2, 30), (6, 30), (20, 30), (70, 3), pytest.param(200, 3, marks=pytest.mark.long)],
)
def test_clarabel_finds_the_same(n: int, count: int) -> None:
    rng = np.random.default_rng(100 + n)
    compared = 0
    for _ in range(4 * count):
        P = random_program(rng, n, (-6.0, 6.0))
        s = qdsim.solve_cone_program(**P)
        assert misses(P, s) < 1e-6
        other = clarabel_x(P)
        if other is None:
            continue
        cost = np.sqrt((s.x - other) @ P["Q"] @ (s.x - other))
        assert cost <= 1e-5 * (1 + np.sqrt(s.x @ P["Q"] @ s.x))
        compared += 1
        if compared == count:
            return
    pytest.fail(f"the witness spoke on {compared} of {4 * count} programs")


@pytest.mark.long
def test_numbers_of_any_size_are_solved_or_refused() -> None:
    rng = np.random.default_rng(7)
    solved = 0
    for _ in range(400):
        P = random_program(rng, int(rng.integers(2, 9)), (-12.0, 12.0))
        if P["lower"] is not None:
            k = len(P["lower"])
            P["lower"] = np.where(rng.random(k) < 0.2, -INF, -(10.0 ** rng.uniform(-12, 12, k)))
            P["upper"] = np.where(rng.random(k) < 0.2, INF, 10.0 ** rng.uniform(-12, 12, k))
        mu = float(rng.choice([0.0, 1e-6, 1.0]))
        try:
            s = qdsim.solve_cone_program(**P, target_mu=mu)
        except qdsim.SolverError:
            continue
        solved += 1
        assert misses(P, s, mu) < 1e-4
    assert solved > 340


@pytest.mark.parametrize("R", [0.0, 1e-6, 0.3, 1e6])
@pytest.mark.parametrize("limits", [(-1.0, 2.0), (-INF, 2.0), (0.0, INF), (-INF, INF), (0.5, 0.5)])
def test_one_variable_by_hand(R: float, limits: tuple[float, float]) -> None:
    """A spring k pulls x to u against one row a x + g: its force by bisection of its own equation."""
    lower, upper = limits
    for k, u, a, g in itertools.product(
        [0.1, 3.0], [-20.0, -0.2, 0.2, 20.0], [1.0, -0.5], [0.0, 0.3]
    ):
        s = qdsim.solve_cone_program(
            [[k]], [-k * u], [[a]], [g], [("interval", 1)], compliance=R, lower=lower, upper=upper
        )
        # x = u + a y / k, and y = clip(-(a x + g) / R): y solves y (R + a^2 / k) = -(a u + g), or is at its limit
        y = np.clip(-(a * u + g) / (R + a * a / k), lower, upper)
        assert s.dual[0] == pytest.approx(y, rel=1e-9, abs=1e-12)
        assert s.x[0] == pytest.approx(u + a * y / k, rel=1e-9, abs=1e-12)
        assert s.slack[0] == pytest.approx(a * s.x[0] + g + R * y, rel=1e-7, abs=1e-9)


def test_orthant_is_an_interval_without_upper_end() -> None:
    rng = np.random.default_rng(3)
    solved = 0
    for _ in range(50):
        P = random_program(rng, 6)
        P["cones"] = [("orthant", len(P["g"]))]
        P["lower"] = P["upper"] = None
        intervals = P | {"cones": [("interval", len(P["g"]))], "lower": 0.0, "upper": INF}
        try:
            rows = qdsim.solve_cone_program(**P)
        except qdsim.SolverError as error:  # what was made to satisfy other cones may miss these
            assert error.info.status == "infeasible"
            with pytest.raises(qdsim.SolverError, match="infeasible"):
                qdsim.solve_cone_program(**intervals)
            continue
        assert qdsim.solve_cone_program(**intervals).x == pytest.approx(rows.x, rel=1e-7, abs=1e-8)
        solved += 1
    assert solved > 40


def test_rigid_rows_do_not_feel_that_others_could_give_way() -> None:
    rng = np.random.default_rng(4)
    P = random_program(rng, 5)
    cones = [(kind, dim) for kind, dim in P["cones"] if kind != "interval"] or [
        ("orthant", len(P["g"]))
    ]
    m = sum(dim for _, dim in cones)
    plain = qdsim.solve_cone_program(P["Q"], P["b"], P["G"][:m], P["g"][:m], cones)
    zero = qdsim.solve_cone_program(
        P["Q"], P["b"], P["G"][:m], P["g"][:m], cones, compliance=np.zeros(m)
    )
    assert plain.x == pytest.approx(zero.x, rel=1e-9, abs=1e-11)


def test_dry_friction_on_several_joints() -> None:
    """R = 0: forces of rows hold, or are at a limit and slip in its direction; the sum of all by a bisection each."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 6))
        k, b = 10.0 ** rng.uniform(-1, 2, n), rng.uniform(-3, 3, n)
        f = rng.uniform(0, 2, n)
        s = qdsim.solve_cone_program(
            np.diag(k),
            b,
            np.eye(n),
            np.zeros(n),
            [("interval", n)],
            lower=-f,
            upper=f,
            warm_start=None,
        )
        assert s.dual == pytest.approx(np.clip(b, -f, f), rel=1e-9, abs=1e-12)
        assert s.x == pytest.approx((np.clip(b, -f, f) - b) / k, rel=1e-9, abs=1e-12)


def test_warm_starts_lead_to_the_same_answer() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        P = random_program(rng, 8, (-3.0, 2.0))
        mu = float(rng.choice([0.0, 1e-2]))
        first = qdsim.solve_cone_program(**P, target_mu=mu)
        P["b"] = P["b"] * (1 + 0.05 * rng.standard_normal(8))
        cold = qdsim.solve_cone_program(**P, target_mu=mu)
        warm = qdsim.solve_cone_program(**P, target_mu=mu, warm_start=first)
        assert misses(P, warm, mu) < 1e-6
        assert warm.x == pytest.approx(cold.x, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": 1.0, "upper": 0.0}, r"lower\[0\]: 1 is above upper\[0\], 0"),
        ({"lower": [0.0, 2.0], "upper": [3.0, 1.0]}, r"lower\[1\]: 2 is above upper\[1\], 1"),
        ({"lower": np.nan, "upper": 0.0}, r"lower\[0\]: expected a number or -inf, got nan"),
        ({"lower": INF, "upper": INF}, r"lower\[0\]: expected a number or -inf, got inf"),
        ({"lower": -INF, "upper": -INF}, r"upper\[0\]: expected a number or inf, got -inf"),
        ({"lower": 0.0}, "upper: wanted for the rows of intervals"),
        (
            {"lower": [0.0], "upper": 1.0},
            r"lower: expected a number or shape \(2,\), one per row of an interval",
        ),
        (
            {"lower": 0.0, "upper": 1.0, "compliance": -1e-30},
            r"compliance\[0\]: expected a finite number >= 0",
        ),
        (
            {"lower": 0.0, "upper": 1.0, "compliance": [0.0, INF]},
            r"compliance\[1\]: expected a finite number >= 0",
        ),
        ({"lower": 0.0, "upper": 1.0, "compliance": [0.0, np.nan]}, r"compliance\[1\]: .*nan"),
        (
            {"lower": 0.0, "upper": 1.0, "compliance": [0.0]},
            r"compliance: .*\(2,\), one per row, got \(1,\)",
        ),
        (
            {"lower": 0.0, "upper": 1.0, "compliance_eq": [1.0]},
            r"compliance_eq: .*\(0,\), one per equality",
        ),
    ],
)
def test_wrong_numbers_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        qdsim.solve_cone_program(
            np.eye(2), np.ones(2), np.eye(2), np.ones(2), [("interval", 2)], **arguments
        )


def test_limits_without_an_interval() -> None:
    with pytest.raises(ValueError, match="lower: no entry of cones is an interval"):
        qdsim.solve_cone_program(np.eye(1), [1.0], np.eye(1), [0.0], [("orthant", 1)], lower=0.0)
