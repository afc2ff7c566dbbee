"""Barrier programs whose variables have very different stiffness, judged by closed forms and by the KKT conditions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import qdsim

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
from boxes import boxes, judge_boxes, judge_slabs, slabs


@pytest.mark.parametrize("seed", range(3))
def test_two_uncoupled_variables(seed: int) -> None:
    """minimise ½ q x² + b x - mu log(x + g): each variable has its own equation k w + pull = mu / w."""
    rng = np.random.default_rng(seed)
    for _ in range(400):
        q = rng.permutation([1e3, 1e7])
        mu = 10.0 ** rng.uniform(-6, 2)
        b = rng.normal(size=2) * 10.0 ** rng.uniform(-3, 3, 2) * rng.choice([0, 1], 2)
        g = 10.0 ** rng.uniform(-5, 0, 2) * rng.choice([-1, 0, 1], 2)
        s = qdsim.solve_cone_program(np.diag(q), b, np.eye(2), g, [("orthant", 2)], target_mu=mu)
        pull = b - q * g
        large = 0.5 * (np.sqrt(pull**2 + 4 * q * mu) + np.abs(pull))
        w = np.where(pull > 0, mu / large, large / q)
        way = np.abs(np.sqrt(q) * (w - g)).max()  # in columns of unit stiffness
        assert (np.abs(s.slack - w) <= 1e-6 * way / np.sqrt(q)).all()


def test_bounds_alone_are_never_infeasible() -> None:
    """One bound a variable leaves room for all of them, whatever the sizes of rows."""
    rng = np.random.default_rng(9)
    for k in range(3000):
        stiffness = 10.0 ** rng.uniform(-3, 9, 2) if k % 2 else np.array([1e3, 1e7])
        rows = 10.0 ** rng.uniform(-2, 2, 2)
        g = -(10.0 ** rng.uniform(-8, 2, 2)) * [k % 3 > 0, 1]
        mu = 10.0 ** rng.uniform(-12, 4)
        program = (np.diag(stiffness), np.zeros(2), np.diag(rows), g, [("orthant", 2)])
        try:
            s = qdsim.solve_cone_program(*program, target_mu=mu)
        except qdsim.SolverError as error:
            assert "infeasible" not in str(error), program
        else:
            assert (s.slack > 0.0).all()


@pytest.mark.parametrize("spread", [2, 4, 6])
def test_coupled_variables(spread: int) -> None:
    rng = np.random.default_rng(spread)
    for _ in range(60):
        n = int(rng.integers(3, 9))
        stiffness = 10.0 ** rng.uniform(0, spread, n)
        root = np.eye(n) + 0.3 * rng.normal(size=(n, n))
        Q = np.sqrt(stiffness)[:, None] * (root @ root.T) * np.sqrt(stiffness)
        Q = 0.5 * (Q + Q.T)
        G = rng.normal(size=(n + 3, n))
        g = rng.uniform(0.05, 1.0, n + 3) - G @ (0.1 * rng.normal(size=n))
        b = rng.normal(size=n) * np.sqrt(stiffness)
        mu = 10.0 ** rng.uniform(-6, 0)
        s = qdsim.solve_cone_program(Q, b, G, g, [("orthant", n + 3)], target_mu=mu)
        np.testing.assert_allclose(s.slack * s.dual, mu, rtol=1e-5)
        terms = np.abs(Q) @ np.abs(s.x) + np.abs(b) + np.abs(G.T) @ s.dual
        assert np.abs(Q @ s.x + b - G.T @ s.dual).max() <= 1e-8 * terms.max()
        np.testing.assert_allclose(s.slack, G @ s.x + g, rtol=0, atol=1e-9)


@pytest.mark.long
def test_boxes_and_slabs_of_any_width() -> None:
    """The campaign of `make soak`, a little of it."""
    rng = np.random.default_rng(1)
    found = [judge_boxes(boxes(rng)) for _ in range(300)]
    found += [judge_slabs(slabs(rng)) for _ in range(300)]
    assert found.count("solved") >= 598
    assert "infeasible" not in found


def test_a_slab_without_an_inside() -> None:
    """Two walls at the same place leave no room for a barrier, whatever room there is elsewhere."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        width = np.array([0.0, 10.0 ** rng.uniform(-3, 2)])
        rows = 10.0 ** rng.uniform(-1, 1, 4)
        G = np.vstack([np.eye(2), -np.eye(2)]) * rows[:, None]
        g = np.tile(0.5 * width, 2) * rows
        Q, b, mu = np.diag(10.0 ** rng.uniform(0, 4, 2)), rng.normal(size=2), rng.uniform(0.1, 10)
        with pytest.raises(qdsim.SolverError, match="infeasible"):
            qdsim.solve_cone_program(Q, b, G, g, [("orthant", 4)], target_mu=mu)
