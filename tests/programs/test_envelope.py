"""Programs whose rows all give way: Newton's method on the Moreau envelopes of their cones."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from soft_programs import misses

import qdsim

INF = np.inf
Vector = NDArray[np.float64]


def soft_program(
    rng: np.random.Generator, n: int, cones: int, decades: tuple[float, float] = (-5.0, 2.0)
) -> dict[str, Any]:
    """Lorentz cones of two compliances each, orthants, intervals and equalities, which all give way."""
    F = rng.standard_normal((n, n))
    kinds = []
    for _ in range(cones):
        kind = str(rng.choice(["lorentz", "orthant", "interval"], p=[0.6, 0.2, 0.2]))
        kinds.append((kind, int(rng.integers(2, 7) if kind == "lorentz" else rng.integers(1, 3))))
    m, p = sum(dim for _, dim in kinds), int(rng.integers(0, n // 3 + 1))
    R = 10.0 ** rng.uniform(*decades, m)
    row = 0
    for kind, dim in kinds:
        if kind == "lorentz":
            R[row + 1 : row + dim] = R[row] * 10.0 ** rng.uniform(-2, 1)
        row += dim
    k = sum(dim for kind, dim in kinds if kind == "interval")
    P = {
        "Q": F @ F.T / n + np.diag(10.0 ** rng.uniform(-1, 1, n)),
        "b": rng.standard_normal(n) * 10.0 ** rng.uniform(-1, 1),
        "G": rng.standard_normal((m, n)) * (rng.random((m, n)) < min(1.0, 6.0 / n)),
        "g": rng.standard_normal(m),
        "cones": kinds,
        "C": rng.standard_normal((p, n)),
        "c": rng.standard_normal(p),
        "compliance": R,
        "compliance_eq": 10.0 ** rng.uniform(*decades, p),
    }
    P["G"][np.arange(m), rng.integers(0, n, m)] = 1.0
    if k:
        P["lower"] = -(10.0 ** rng.uniform(-2, 1, k)) * rng.choice([0.0, 1.0, INF], k)
        P["upper"] = 10.0 ** rng.uniform(-2, 1, k) * rng.choice([1.0, INF], k)
    else:
        P["lower"] = P["upper"] = None
    return P


def envelope(P: dict[str, Any], x: Vector) -> float:
    """The cost that has no rows: that of x, and of each cone by its closed form."""
    w, R = P["G"] @ x + P["g"], P["compliance"]
    cost = 0.5 * x @ P["Q"] @ x + P["b"] @ x
    cost += 0.5 * np.sum((P["C"] @ x + P["c"]) ** 2 / P["compliance_eq"])
    row = limit = 0
    for kind, dim in P["cones"]:
        for i in range(row, row + dim) if kind != "lorentz" else ():
            low, high = 0.0, INF
            if kind == "interval":
                low, high = P["lower"][limit], P["upper"][limit]
                limit += 1
            y = np.clip(-w[i] / R[i], low, high)
            cost += -y * w[i] - 0.5 * R[i] * y * y
        if kind == "lorentz":
            head, tail = w[row], np.linalg.norm(w[row + 1 : row + dim])
            R0, R1 = R[row], R[row + 1]
            if -head * R1 >= tail * R0:
                cost += 0.5 * (head * head / R0 + tail * tail / R1)
            elif tail > head:
                cost += 0.5 * (tail - head) ** 2 / (R0 + R1)
        row += dim
    return float(cost)


@pytest.mark.parametrize(("n", "cones"), [(3, 4), (8, 10), (24, 40), (70, 30)])
def test_minimises_the_envelopes(n: int, cones: int) -> None:
    """To rounding, and no point nearby costs less."""
    rng = np.random.default_rng(n)
    for _ in range(30 if n < 24 else 6):
        P = soft_program(rng, n, cones)
        s = qdsim.solve_cone_program(**P)
        assert s.info.method == "envelope"
        assert s.info.polished
        assert misses(P, s) < 1e-9
        rows = np.vstack((P["G"], P["C"])) * np.concatenate((s.dual, s.dual_eq))[:, None]
        force = np.abs(P["Q"] @ s.x).max() + np.abs(P["b"]).max() + np.abs(rows).max()
        left = P["Q"] @ s.x + P["b"] - rows.sum(axis=0)
        # forces of stiff rows are differences over their compliance, which rounding of the terms is in
        terms = np.abs(P["G"]) @ np.abs(s.x) + np.abs(P["g"])
        rounding = 1e-15 * np.abs(P["G"]).T @ (terms / P["compliance"])
        assert np.all(np.abs(left) < 1e-10 * force + rounding)
        least = envelope(P, s.x)
        for size in (1e-3, 1.0):
            assert envelope(P, s.x + size * rng.standard_normal(n)) > least


@pytest.mark.parametrize("n", [6, 24])
def test_starts(n: int) -> None:
    """From its own answer one factor shows that it is one; from others, the same answer."""
    rng = np.random.default_rng(n)
    cold = warm = 0
    for _ in range(20):
        P = soft_program(rng, n, n)
        s = qdsim.solve_cone_program(**P)
        again = qdsim.solve_cone_program(**P, warm_start=s)
        np.testing.assert_allclose(again.x, s.x, atol=1e-10 * (1 + np.abs(s.x).max()))
        assert again.info.factorizations <= 2
        near = P | {"b": P["b"] + 1e-3 * rng.standard_normal(n)}
        far = P | {"b": 10.0 * rng.standard_normal(n)}
        for other in (near, far):
            first = qdsim.solve_cone_program(**other)
            second = qdsim.solve_cone_program(**other, warm_start=s)
            np.testing.assert_allclose(first.x, second.x, atol=1e-9 * (1 + np.abs(first.x).max()))
            cold += first.info.factorizations if other is near else 0
            warm += second.info.factorizations if other is near else 0
    assert warm < 0.6 * cold


def test_few_rigid_rows() -> None:
    """Limits and equalities that do not give way, beside more rows that do."""
    rng = np.random.default_rng(5)
    acting = 0
    for _ in range(40):
        P = soft_program(rng, 12, 10)
        kinds = np.repeat([kind for kind, _ in P["cones"]], [dim for _, dim in P["cones"]])
        chosen = np.flatnonzero(kinds == "orthant")[:3]
        P["compliance"][chosen] = 0.0
        P["C"], P["c"] = P["C"][:1], P["c"][:1]
        P["compliance_eq"] = np.zeros(len(P["c"]))
        s = qdsim.solve_cone_program(**P)
        assert s.info.method == "envelope"
        assert misses(P, s) < 1e-9
        acting += int((s.dual[chosen] != 0.0).sum())
    assert acting > 20


def test_columns_that_rows_alone_hold() -> None:
    """The cost is flat along them: springs that act hold them, or nothing does."""
    rng, solved = np.random.default_rng(7), 0
    for _ in range(30):
        P = soft_program(rng, 10, 10)
        P["Q"][:2], P["Q"][:, :2] = 0.0, 0.0
        try:
            s = qdsim.solve_cone_program(**P)
        except qdsim.SolverError as error:
            assert error.info.status == "unbounded"
        else:
            assert misses(P, s) < 1e-7
            solved += s.info.method == "envelope"
        held = P | {"C": np.eye(2, 10), "c": np.ones(2), "compliance_eq": np.array((1e-3, 1e-1))}
        s = qdsim.solve_cone_program(**held)
        assert s.info.method == "envelope"
        assert misses(held, s) < 1e-9
    assert solved > 10


def test_rigid_rows_that_contradict_each_other() -> None:
    """What gives way does not hide that others have no point."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        P = soft_program(rng, 8, 12)
        row = rng.standard_normal((1, 8))
        P["G"] = np.vstack([P["G"], row, -row])
        P["g"] = np.append(P["g"], (-1.0, 0.5))
        P["cones"] = [*P["cones"], ("orthant", 2)]
        P["compliance"] = np.append(P["compliance"], (0.0, 0.0))
        with pytest.raises(qdsim.SolverError) as failed:
            qdsim.solve_cone_program(**P)
        assert failed.value.info.status == "infeasible"
        P["g"][-1] = 1.0 + 1e-9
        assert misses(P, qdsim.solve_cone_program(**P)) < 1e-9


def test_cones_that_stand_between_states() -> None:
    """A cone at its tip, one that just slides, one that just opens: the answer, whichever state it is counted in."""
    R = np.array((0.5, 0.2, 0.2))
    for w in ((0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 0.0, 0.4), (-1.0, 0.4, 0.0)):
        head, tail = w[0], np.linalg.norm(w[1:])
        if tail > head and -head * R[1] < tail * R[0]:
            force = (tail - head) / (R[0] + R[1]) * np.array((1.0, *(-np.array(w[1:]) / tail)))
        else:
            force = -np.array(w) / R if tail > head or head < 0 else np.zeros(3)
        s = qdsim.solve_cone_program(
            np.eye(3), force * -1.0 + 0.0, np.eye(3), w, [("lorentz", 3)], compliance=R
        )
        assert s.info.method == "envelope"
        x = s.x
        y = s.dual
        np.testing.assert_allclose(x - force - y, 0.0, atol=1e-12)
        np.testing.assert_allclose(s.slack, x + w + R * y, atol=1e-12)
        assert abs(s.slack @ y) < 1e-12
        assert y[0] - np.linalg.norm(y[1:]) > -1e-12
        assert s.slack[0] - np.linalg.norm(s.slack[1:]) > -1e-12
