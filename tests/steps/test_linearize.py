"""A and B against fourth-order central differences of the (polished) step, to the standard of
formulation 4: max |dA| / max(1, max |A|) <= 1e-6 wherever the step is differentiable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scenes import Scene, arm, floating, pendulum, planar_hand, pusher, spatial

import qdsim

STANDARD = 1e-6
STENCIL = ((1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0))


@dataclass
class Report:
    states: int = 0
    differentiable: int = 0
    worst: float = 0.0

    @property
    def share(self) -> float:
        return self.differentiable / max(self.states, 1)


def difference(model: qdsim.Model, q, u, options, eps: float, tau=None) -> np.ndarray:
    """[A, B] by central differences in tangent coordinates."""
    center = qdsim.step(model, q, u, options, tau=tau).q_next

    def along(dq, du) -> np.ndarray:
        column = np.zeros(model.nv)
        for width, weight in STENCIL:
            for sign in (1.0, -1.0):
                s = sign * width * eps
                q_next = qdsim.step(
                    model, model.integrate(q, s * dq), u + s * du, options, tau=tau
                ).q_next
                column += sign * weight * model.difference(q_next, center)
        return column / eps

    nv, nu = model.nv, model.nu
    columns = [along(e, np.zeros(nu)) for e in np.eye(nv)]
    columns += [along(np.zeros(nv), e) for e in np.eye(nu)]
    return np.array(columns).T


def compare(
    scene: Scene, options: qdsim.Options, count: int, seed: int = 0, tau_scale=0.0
) -> Report:
    """States where two stencil widths disagree are at a kink (contacts change): not differentiable."""
    model, report = scene.model, Report()
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, u = scene.sample(rng)
        tau = tau_scale * rng.uniform(-1.0, 1.0, model.nv)
        lin = qdsim.linearize(model, q, u, options, tau=tau)
        ours = np.hstack([lin.A, lin.B])
        scale = max(1.0, np.abs(ours).max())
        report.states += 1
        wide = difference(model, q, u, options, 2e-4, tau)
        narrow = difference(model, q, u, options, 1e-4, tau)
        if np.abs(wide - narrow).max() > STANDARD * scale:
            # a kink inside the stencil, or strong curvature: try closer by
            wide, narrow = (difference(model, q, u, options, e, tau) for e in (4e-5, 2e-5))
            if np.abs(wide - narrow).max() > STANDARD * scale:
                continue
        report.differentiable += 1
        report.worst = max(report.worst, float(np.abs(ours - narrow).max() / scale))
    return report


def check(name: str, report: Report) -> None:
    print(
        f"{name}: {report.differentiable} of {report.states} states, worst error {report.worst:.1e}"
    )
    assert report.share >= 0.8, name
    assert report.worst <= STANDARD, name


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("kappa", [None, 1e2, 1e3])
def test_planar_hand(friction: str, kappa: float | None) -> None:
    options = qdsim.Options(
        friction=friction, rays=4 if friction == "cone" else 2, margin=10.0, kappa=kappa
    )
    check(f"planar hand, {friction}, kappa {kappa}", compare(planar_hand(), options, 20))


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("kappa", [None, 1e2, 1e4])
@pytest.mark.parametrize("name", list(spatial()))
def test_spatial(name: str, friction: str, kappa: float | None) -> None:
    scene = spatial(3)[name]
    options = qdsim.Options(friction=friction, margin=0.3, kappa=kappa, joint_limits=kappa is None)
    check(f"{name}, {friction}, kappa {kappa}", compare(scene, options, 10))


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 4, 6])
def test_contact_dimensions(friction: str, condim: int) -> None:
    for kappa in (None, 3e2):
        total = Report()
        for name, scene in spatial(condim).items():
            report = compare(
                scene, qdsim.Options(friction=friction, margin=0.3, kappa=kappa), 4, seed=condim
            )
            total.states += report.states
            total.differentiable += report.differentiable
            total.worst = max(total.worst, report.worst)
            assert report.worst <= STANDARD, (name, kappa, report)
        check(f"condim {condim}, {friction}, kappa {kappa}", total)


@pytest.mark.parametrize("kappa", [None, 2e2])
def test_held_gravity_and_applied_forces(kappa: float | None) -> None:
    for scene, held in [
        (pusher("box"), ()),
        (pusher("sphere"), ("object",)),
        (arm(), ("j2", "rod")),
        (floating(), ()),
        (pendulum(), ("ball",)),
        (pendulum(), ()),
        (planar_hand(), ("l1", "turn")),
    ]:
        options = qdsim.Options(
            held=held, gravity_on_actuated=True, kappa=kappa, epsilon=0.6, margin=0.3, h=0.07
        )
        report = compare(scene, options, 4, seed=11, tau_scale=0.5)
        assert report.worst <= STANDARD, (held, report)
        assert report.differentiable >= 2
        for name in held:
            q, u = scene.sample(np.random.default_rng(0))
            lin = qdsim.linearize(scene.model, q, u, options)
            rows = scene.model.slice_v(name)
            np.testing.assert_array_equal(lin.A[rows], np.eye(scene.model.nv)[rows])
            np.testing.assert_array_equal(lin.B[rows], 0.0)


def test_joint_limits_at_work() -> None:
    """States pushed against their limits, with contacts at the same time."""
    scene = planar_hand()
    model = scene.model
    rng = np.random.default_rng(4)
    worst, active = 0.0, 0
    options = qdsim.Options(margin=10.0)
    for _ in range(15):
        q, u = scene.sample(rng)
        u = u + np.array([0.6, 1.2, -0.6, -1.2]) * rng.uniform(0.5, 2.0)
        lin = qdsim.linearize(model, q, u, options)
        fd = [difference(model, q, u, options, e) for e in (4e-5, 2e-5)]
        if np.abs(fd[0] - fd[1]).max() > STANDARD * max(1.0, np.abs(fd[1]).max()):
            continue
        active += np.any(lin.step.limit_force != 0.0)
        worst = max(
            worst, np.abs(np.hstack([lin.A, lin.B]) - fd[1]).max() / max(1.0, np.abs(fd[1]).max())
        )
    assert active >= 5
    assert worst <= STANDARD


def test_gear_scales_the_input_matrix() -> None:
    scene = pusher("sphere")
    model = scene.model
    q = np.array(model.default_q)
    q[model.slice_q("tx")] -= 0.3  # away from everything
    q[2] += 1.0
    lin = qdsim.linearize(model, q, model.command_from(q), qdsim.Options(margin=0.0))
    tz = model.slice_v("tz")
    assert lin.B[tz, 2] == pytest.approx(0.5, rel=1e-12)


def test_only_what_was_asked_for() -> None:
    scene = pusher("box")
    q, u = scene.sample(np.random.default_rng(0))
    both = qdsim.linearize(scene.model, q, u, qdsim.Options())
    only_b = qdsim.linearize(scene.model, q, u, qdsim.Options(), wrt=("u",))
    only_a = qdsim.linearize(scene.model, q, u, qdsim.Options(), wrt=("q",))
    assert only_b.A is None and only_a.B is None
    np.testing.assert_allclose(only_b.B, both.B, atol=1e-12)
    np.testing.assert_allclose(only_a.A, both.A, atol=1e-12)
    np.testing.assert_array_equal(only_b.q_next, both.q_next)


@pytest.mark.parametrize("kappa", [1e2, 1e3])
def test_differences_of_the_smoothed_ball_converge_to_its_derivatives(kappa: float) -> None:
    """The ball of the Allegro hand curves so much that central differences of 1e-4 are off by 1e-3
    (relative). Their error falls with the square of the width, and goes on to the derivatives.
    """
    system = qdsim.systems.load("allegro_ball")
    model, task = system.model, next(iter(system.tasks.values()))
    options, rng = task.options.replace(kappa=kappa), np.random.default_rng(0)

    q = model.integrate(task.start, 1e-3 * rng.standard_normal(model.nv))
    u = model.command_from(task.start) + 0.05 * rng.standard_normal(model.nu)
    lin = qdsim.linearize(model, q, u, options)
    ours = np.hstack([lin.A, lin.B])

    def second_order(width: float) -> np.ndarray:
        columns = []
        for direction in np.eye(model.nv + model.nu):
            dq, du = np.split(width * direction, [model.nv])
            ahead, behind = (
                qdsim.step(model, model.integrate(q, s * dq), u + s * du, options).q_next
                for s in (1.0, -1.0)
            )
            shift = model.difference(ahead, lin.q_next) - model.difference(behind, lin.q_next)
            columns.append(shift / (2.0 * width))
        return np.array(columns).T

    widths = (1e-4, 1e-5, 1e-6)
    errors = [np.abs(second_order(w) - ours).max() / np.abs(ours).max() for w in widths]
    assert errors[0] > 1e-5  # so wide a difference is no measure of the derivative
    assert errors[1] < 0.02 * errors[0]
    assert errors[2] < 0.02 * errors[1] + 1e-8
    assert errors[2] < 1e-6
