"""Large programs with few entries, in blocks of columns of any width, judged by the KKT conditions."""

from __future__ import annotations

import numpy as np
import pytest
from external_programs import Program, worst_residual

import qdsim


def block_program(
    rng: np.random.Generator, widths: list[int], cone: int, equalities: int, definite: bool
) -> Program:
    """Blocks with a cost of their own; every cone and every equality knows one or two of them."""
    ends = np.cumsum(widths)
    n = int(ends[-1])
    Q = np.zeros((n, n))
    for first, end in zip(ends - widths, ends):
        root = rng.normal(size=(end - first, end - first + (1 if definite else -1)))
        Q[first:end, first:end] = root @ root.T

    def rows(count: int) -> np.ndarray:
        out = np.zeros((count, n))
        for block in rng.choice(len(widths), 2, replace=False):
            part = slice(ends[block] - widths[block], ends[block])
            out[:, part] = rng.normal(size=(count, widths[block]))
        return out

    x = rng.normal(size=n)
    G = np.vstack([rows(cone) for _ in range(len(widths))] + [np.eye(n), -np.eye(n)])
    inside = rng.uniform(0.0, 1.0, len(G))
    heads = np.arange(0, cone * len(widths), cone)
    inside[heads] += [np.linalg.norm(inside[h + 1 : h + cone]) for h in heads]
    C = np.vstack([np.zeros((0, n))] + [rows(1) for _ in range(equalities)])
    cones = [("lorentz", cone)] * len(widths) + [("orthant", 2 * n)]
    g = inside - G @ x
    g[-2 * n :] += 10.0  # box
    return Program("blocks", Q, rng.normal(size=n), G, g, cones, C, -C @ x)


@pytest.mark.short_cases(5)
@pytest.mark.parametrize(
    "widths", [[1] * 140, [3] * 45, [6] * 23, [5, 2, 7, 1] * 9, [3] * 30 + [4] * 5 + [9] * 3]
)
@pytest.mark.parametrize("cone", [3, 4])
@pytest.mark.parametrize("equalities", [0, 9])
def test_blocks(widths: list[int], cone: int, equalities: int) -> None:
    rng = np.random.default_rng(len(widths) + 7 * cone + equalities)
    for definite in (True, False):
        p = block_program(rng, widths, cone, equalities, definite)
        given = {"C": p.C, "c": p.c} if equalities else {}
        s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones, **given)
        assert worst_residual(p, s.x, s.dual, s.dual_eq) <= 1e-8
        order = rng.permutation(len(p.b))  # the blocks torn apart
        if equalities:
            given["C"] = p.C[:, order]
        torn = qdsim.solve_cone_program(
            p.Q[np.ix_(order, order)], p.b[order], p.G[:, order], p.g, p.cones, **given
        )
        assert torn.info.objective == pytest.approx(s.info.objective, rel=1e-7, abs=1e-7)
        if definite:
            np.testing.assert_allclose(torn.x, s.x[order], rtol=0, atol=1e-6 * np.abs(s.x).max())
        again = qdsim.solve_cone_program(
            p.Q, 1.001 * p.b, p.G, p.g, p.cones, p.C if equalities else None,
            p.c if equalities else None, warm_start=s,
        )  # fmt: skip
        moved = Program(p.name, p.Q, 1.001 * p.b, p.G, p.g, p.cones, p.C, p.c)
        assert worst_residual(moved, again.x, again.dual, again.dual_eq) <= 1e-8


def test_a_block_that_nothing_holds_is_unbounded() -> None:
    rng = np.random.default_rng(1)
    p = block_program(rng, [3] * 45, 3, 0, True)
    Q, b = p.Q.copy(), p.b.copy()
    Q[30:33, :] = Q[:, 30:33] = 0.0
    G = p.G[: 3 * 45].copy()
    G[:, 30:33] = 0.0
    with pytest.raises(qdsim.SolverError, match="unbounded"):
        qdsim.solve_cone_program(Q, b, G, p.g[:135], [("lorentz", 3)] * 45)
    x = np.zeros(135)
    contradiction = np.vstack([p.G, np.eye(135)[40:41], -np.eye(135)[40:41]])
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        qdsim.solve_cone_program(
            p.Q, p.b, contradiction, np.append(p.g, [x[40] - 1e3, 1e2]), [*p.cones, ("orthant", 2)]
        )
