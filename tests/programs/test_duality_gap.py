"""Programs some of whose numbers are far smaller than the others: what "solved" promises holds for them, and is kept.

The first is of the kind of GOULDQP2 (Maros and Meszaros): knots that may move a little, so that the lengths between
them differ as little as they can. Positions are some hundred, lengths one, and the cost 1e-4 to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qdsim


def even_spacing(rng: np.random.Generator, n: int, noise: float, room: float) -> dict[str, Any]:
    """x: n + 1 knots, then the n lengths between them; 1/2 the sum of squared differences of lengths."""
    knots = np.arange(n + 1) + noise * rng.normal(size=n + 1)
    lengths = np.diff(knots)
    low = np.concatenate([knots - room, 0.9 * lengths])
    high = np.concatenate([knots + room, 1.1 * lengths])
    D = np.hstack([np.zeros((n - 1, n + 1)), np.diff(np.eye(n), axis=0)])
    C = np.hstack([np.diff(np.eye(n + 1), axis=0), -np.eye(n)])
    size = 2 * n + 1
    return {
        "Q": D.T @ D,
        "b": np.zeros(size),
        "G": np.vstack([np.eye(size), -np.eye(size)]),
        "g": np.concatenate([-low, high]),
        "cones": [("orthant", 2 * size)],
        "C": C,
        "c": np.zeros(n),
    }


@pytest.mark.parametrize("polish", [True, False])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-7, 1e-9])
def test_small_objectives_are_as_good_as_they_say(tolerance: float, polish: bool) -> None:
    """The gap beside the objective itself: 180 % of it was "solved" at 1e-6."""
    rng = np.random.default_rng(7)
    for n, noise, room in ((40, 0.01, 0.005), (80, 0.01, 0.005), (80, 0.1, 0.2), (150, 0.1, 0.1)):
        terms = even_spacing(rng, n, noise, room)
        found = qdsim.solve_cone_program(**terms, tolerance=tolerance, polish=polish)
        energy = found.x @ terms["Q"] @ found.x
        lower = -0.5 * energy - terms["g"] @ found.dual
        assert found.dual.min() >= 0.0
        residual = terms["Q"] @ found.x - terms["G"].T @ found.dual - terms["C"].T @ found.dual_eq
        assert abs(residual).max() < 1e-9
        forces = abs(terms["g"] @ found.dual) + abs(terms["g"] * found.dual).sum() + energy
        assert 0.5 * energy - lower <= 2 * max(1e-6, 10 * tolerance) * forces
        if tolerance < 1e-8:
            assert 0.5 * energy - lower <= 1e-5 * energy


def test_columns_in_which_nothing_pushes_do_not_refuse_an_answer() -> None:
    """Two pairs, one of them at rest behind an idle row, and a pinned column, as in QSC205.

    Columns at rest hold nothing but rounding, beside which no residual is small.
    """
    Q = np.zeros((5, 5))
    Q[:2, :2], Q[2:4, 2:4] = [[10.0, 1.0], [1.0, 10.0]], [[20.0, 1.0], [1.0, 10.0]]
    e = np.eye(5)
    G = np.array([e[4], -e[4], e[3] - e[1], 0 * e[0], e[4]])
    g = np.array([0.0, 0.0, 200.0, 0.0, 0.0])
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(5)
        found = qdsim.solve_cone_program(
            Q, [-1.0, 0.0, 0.0, 0.0, 0.0], G[rows], g[rows], [("orthant", 5)]
        )
        np.testing.assert_allclose(found.x, [10 / 99, -1 / 99, 0.0, 0.0, 0.0], rtol=0, atol=1e-12)
