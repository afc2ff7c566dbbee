"""A power grasp: as many contacts as the hand has fingers to drag them, in motion and once it has come to
rest, where slips are nanometres. Judged by the optimality conditions, from public queries alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from program import assemble, optimality

import qdsim
from qdsim import systems

Array = npt.NDArray[np.float64]
OPTIONS = qdsim.Options(margin=0.01)
AHEAD = {0: 0.0, 1: 0.065, 2: 0.053, 3: 0.022}  # rad, of a finger's joints


@pytest.fixture(scope="module")
def grasp() -> tuple[qdsim.Model, Array, Array]:
    """Return the hand around the ball, closed by commands ahead of the joints and then held."""
    model = systems.load("allegro_sphere").model
    q = np.array(model.keyframes["start"].q)
    q[[1, 2, 3, 5, 6, 7, 9, 10, 11]] = 0.3
    q[12], q[13:16], q[16:19] = 0.9, 0.3, (-0.08, 0.01, 0.0715)
    u = model.command_from(q)
    for step in range(80):
        if step < 60:
            u = model.command_from(q)
            for joint, ahead in AHEAD.items():
                u[joint:12:4] += ahead
            u[12:16] += (0.06, -0.017, 0.045, 0.032)
        q = np.array(qdsim.step(model, q, u, OPTIONS).q_next)
    return model, q, u


def test_at_rest(grasp: tuple[qdsim.Model, Array, Array]) -> None:
    model, q, u = grasp
    step = qdsim.step(model, q, u, OPTIONS)
    assert (step.contacts["force"][:, 0] > 1e-3).sum() >= 8
    assert np.abs(step.delta).max() < 1e-5  # a thousandth of what commands move
    assert max(optimality(model, q, u, OPTIONS, step)) <= 1e-8


def test_in_motion(grasp: tuple[qdsim.Model, Array, Array]) -> None:
    model, q, u = grasp
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-4, 1e-2, 3e-2, 1e-1):
        for _ in range(4):
            command = u + scale * rng.standard_normal(model.nu)
            step = qdsim.step(model, q, command, OPTIONS)
            assert max(optimality(model, q, command, OPTIONS, step)) <= 1e-8, scale


def test_the_barrier_leads_there(grasp: tuple[qdsim.Model, Array, Array]) -> None:
    """The smoothed steps tend to the exact one, by one over kappa in the cost."""
    model, q, u = grasp
    command = u + 0.02 * np.random.default_rng(1).standard_normal(model.nu)
    exact = qdsim.step(model, q, command, OPTIONS)
    program = assemble(model, q, command, OPTIONS, exact.contacts)

    def cost(delta: Array) -> float:
        return float(0.5 * delta @ program.Q @ delta + program.b @ delta)

    over = []
    for kappa in (1e3, 1e5, 1e7):
        delta = np.array(qdsim.step(model, q, command, OPTIONS.replace(kappa=kappa)).delta)
        over.append((cost(delta) - cost(np.array(exact.delta))) * kappa)
    cones = len(exact.contacts) + 2 * model.nu
    assert all(0.0 < each <= 2.0 * cones for each in over)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_force_limits(grasp: tuple[qdsim.Model, Array, Array], share: float) -> None:
    """With a share of the actuators at their limits: forces within them balance the grasp, from a start the
    same as without, and a start takes no more factors than it may cost where it is of no use."""
    model, q, hold = grasp
    pull = np.abs(qdsim.step(model, q, hold, OPTIONS.replace(force_limits=False)).actuator_force)
    most = 1.0001 * np.quantile(pull, 1.0 - share)
    limited = model.with_parameters(actuator_force_range=[[-most, most]] * model.nu)
    for _ in range(6):
        q = np.array(qdsim.step(limited, q, hold, OPTIONS).q_next)
    rng = np.random.default_rng(0)
    for _ in range(6):
        u = hold + 0.03 * rng.standard_normal(model.nu)
        cold = qdsim.step(limited, q, u, OPTIONS)
        before = qdsim.step(limited, q, hold + 0.9 * (u - hold), OPTIONS)
        warm = qdsim.step(limited, q, u, OPTIONS, warm_start=before)
        assert np.abs(cold.actuator_force).max() <= most * (1.0 + 1e-12)
        assert cold.actuator_limited.any()
        np.testing.assert_allclose(warm.delta, cold.delta, atol=1e-8)
        np.testing.assert_allclose(warm.actuator_force, cold.actuator_force, atol=1e-7 * most)
        assert warm.actuator_limited.tolist() == cold.actuator_limited.tolist()
        assert warm.info.factorizations <= cold.info.factorizations + 2
