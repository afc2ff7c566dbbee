"""Friction problems of Siconos and QPs of model predictive control: all are solved, by the KKT conditions."""

from __future__ import annotations

import external_programs
import numpy as np
import pytest
from external_programs import Program

import qdsim

WANTED = 1e-8
LARGE = 60  # contacts: beyond, factoring W takes longer than the test may


def check(p: Program) -> None:
    equalities = {"C": p.C, "c": p.c} if len(p.c) else {}
    s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones, **equalities)
    assert external_programs.worst_residual(p, s.x, s.dual, s.dual_eq) <= WANTED
    w = p.G @ s.x + p.g
    np.testing.assert_allclose(s.slack, w, rtol=0, atol=WANTED * max(1.0, np.abs(w).max()))


@pytest.mark.short_cases(8)
@pytest.mark.parametrize("name", external_programs.friction_names())
def test_forces_of_friction_problems(name: str) -> None:
    check(external_programs.friction_program(name, "forces"))


@pytest.mark.parametrize("name", external_programs.friction_names())
def test_velocities_of_friction_problems(name: str) -> None:
    if len(external_programs.friction(name)[2]) > LARGE:
        pytest.skip("large: bench_external.py has it")
    p = external_programs.friction_program(name, "velocities")
    check(p)
    W, q, mu = external_programs.friction(name)
    s = qdsim.solve_cone_program(p.Q, p.b, p.G, p.g, p.cones)
    scale = np.repeat(mu, 3)
    scale[::3] = 1.0
    r = scale * s.dual  # the forces: u = Wr + q
    u = W @ r + q
    size = max(np.abs(W @ r).max(), np.abs(q).max())
    lost = np.abs(external_programs.nearest_semidefinite(W) - W).max() * np.abs(r).sum()
    np.testing.assert_allclose(scale * u, s.slack, rtol=0, atol=WANTED * size + lost)


def test_a_contact_without_friction() -> None:
    """mu = 0: no tangential force, in either form."""
    rng = np.random.default_rng(2)
    for rank in (4, 9):
        F = rng.normal(size=(9, rank))
        q = F @ rng.normal(size=rank) - 0.3  # velocities that forces can stop
        mu = np.array([0.0, 0.5, 0.0])
        scale = np.repeat(mu, 3)
        scale[::3] = 1.0
        q[::3] = np.minimum(q[::3], F[::3] @ rng.normal(size=rank))
        p = Program(
            "frictionless", np.eye(rank), np.zeros(rank), scale[:, None] * F, scale * q,
            [("lorentz", 3)] * 3, np.zeros((0, rank)), np.zeros(0),
        )  # fmt: skip
        check(p)


@pytest.mark.parametrize("name", external_programs.control_names())
def test_model_predictive_control(name: str) -> None:
    check(external_programs.control_program(name))


def test_rows_without_entries() -> None:
    """0 >= -1e-17 beside offsets of 1 is rounding, 0 >= -1e-9 a contradiction."""
    rng = np.random.default_rng(4)
    for n in (1, 4, 17):
        G = np.vstack([np.zeros((1, n)), rng.normal(size=(6, n))])
        for below, feasible in ((1e-17, True), (0.0, True), (1e-9, False)):
            g = np.concatenate([[-below], rng.uniform(-0.1, 1.0, 6) if n > 6 else np.ones(6)])
            program = (np.eye(n), rng.normal(size=n), G, g, [("orthant", 7)])
            if feasible:
                check(Program("empty row", *program, np.zeros((0, n)), np.zeros(0)))
            else:
                with pytest.raises(qdsim.SolverError, match="infeasible"):
                    qdsim.solve_cone_program(*program)
