"""Every step satisfies the optimality conditions of the program of formulation 2, written down a
second time in NumPy (tests/program.py), and smoothed steps those of the barrier problem."""

from __future__ import annotations

import numpy as np
import pytest
from program import Program, assemble, clarabel_program, pyramid_rows, weights
from scenes import Scene, arm, floating, pendulum, planar_hand, pusher, spatial

import qdsim

STATES = 12


def states(scene: Scene, count: int = STATES, seed: int = 0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield scene.sample(rng)


def generalised_force(program: Program, step: qdsim.Step) -> np.ndarray:
    total = np.array(step.limit_force)
    for J, contact in zip(program.J, step.contacts, strict=True):
        total += J.T @ contact["force"]
    return total


def solve(
    scene: Scene, q, u, options: qdsim.Options, tau=None, warm_start=None
) -> qdsim.Step | None:
    """The step; None where no motion satisfies all friction cones (deep in a wedge), which another
    solver has to confirm."""
    try:
        return qdsim.step(scene.model, q, u, options, tau=tau, warm_start=warm_start)
    except qdsim.SolverError as error:
        assert error.info.status == "infeasible"
    contacts = scene.model.collide(q, options.margin)
    program = assemble(scene.model, q, u, options, contacts, tau)
    assert clarabel_program(program).is_infeasible()
    return None


def check_exact(scene: Scene, q, u, options: qdsim.Options, tau=None, warm_start=None) -> None:
    model = scene.model
    step = solve(scene, q, u, options, tau, warm_start)
    if step is None:
        return
    program = assemble(model, q, u, options, step.contacts, tau)
    delta, free = step.delta, program.free
    assert np.all(delta[~free] == 0.0)

    total = generalised_force(program, step)  # 1e5 N at dead centres of a chain
    residual = program.Q @ delta + program.b - total
    scale = max(1.0, np.abs(program.b).max(), np.abs(total).max())
    assert np.abs(residual[free]).max() <= 1e-8 * scale

    for J, contact in zip(program.J, step.contacts, strict=True):
        dim, force = int(contact["dim"]), contact["force"]
        w = (J @ delta)[:dim] + contact["dist"] * np.eye(dim)[0]
        assert np.all(force[dim:] == 0.0)
        if not np.any(np.abs(J[0, free]) > 1e-12):
            assert np.all(force == 0.0)
            continue
        size = 1.0 + np.abs(force).max()
        if options.friction == "cone":
            scaled = np.divide(
                force[1:dim], weights(contact), out=np.zeros(dim - 1), where=weights(contact) > 0
            )
            assert w[0] - np.linalg.norm(weights(contact) * w[1:]) >= -1e-9
            assert force[0] - np.linalg.norm(scaled) >= -1e-8 * size
        else:
            rows = pyramid_rows(contact, options.rays)[:, :dim]
            assert (rows @ w).min() >= -1e-9
            if options.rays == 4:  # |.|_1 norm of the tangential part, per direction
                used = np.abs(force[1:3]).sum() / contact["friction"][0] if dim >= 3 else 0.0
                used += np.sum(np.abs(force[3:dim]) / weights(contact)[2:])
                assert force[0] - used >= -1e-8 * size
        assert abs(force[:dim] @ w) <= 1e-8 * size

    limited = {v: [] for v, _, _ in program.limits}
    for v, sign, gap in program.limits:
        if not free[v]:
            continue
        assert gap + sign * delta[v] >= -1e-9
        limited[v].append((sign, gap + sign * delta[v]))
    for v in range(model.nv):
        force = step.limit_force[v]
        if abs(force) > 1e-8:
            slack = [s for sign, s in limited[v] if np.sign(force) == sign]
            assert len(slack) == 1
            assert abs(force * slack[0]) <= 1e-8 * (1.0 + abs(force))


def check_smoothed(scene: Scene, q, u, options: qdsim.Options, warm_start=None) -> None:
    """Stationarity of the barrier problem of formulation 3, from delta alone."""
    model, kappa = scene.model, options.kappa
    step = solve(scene, q, u, options, warm_start=warm_start)
    if step is None:
        return
    program = assemble(model, q, u, options, step.contacts)
    delta, free = step.delta, program.free
    gradient = program.Q @ delta + program.b
    scale, rounding = max(1.0, np.abs(program.b).max()), 0.0
    for J, contact in zip(program.J, step.contacts, strict=True):
        dim = int(contact["dim"])
        if not np.any(np.abs(J[0, free]) > 1e-12):
            continue
        w = (J @ delta)[:dim] + contact["dist"] * np.eye(dim)[0]
        if options.friction == "cone" and dim > 1:
            D = weights(contact)
            gap = w[0] ** 2 - np.sum((D * w[1:]) ** 2)
            assert w[0] > 0 and gap > 0
            slope = np.concatenate([[2 * w[0]], -2 * D**2 * w[1:]]) / gap / kappa
        else:
            rows = pyramid_rows(contact, options.rays)[:, :dim]
            assert np.all(rows @ w > 0)
            slope = rows.T @ (1.0 / (rows @ w)) / kappa
        np.testing.assert_allclose(
            contact["force"][:dim], slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max()
        )
        gradient -= J[:dim].T @ slope
        scale = max(scale, np.abs(J[:dim].T @ slope).max())
        # Last digits of w, and what the barrier makes of them.
        digits = 4.0 * np.finfo(float).eps * (np.abs(J[:dim]) @ np.abs(delta)).max()
        rounding += kappa * np.abs(slope).max() ** 2 * digits * np.abs(J[:dim]).max()
    for v, sign, gap in program.limits:
        if free[v]:
            gradient[v] -= sign / (gap + sign * delta[v]) / kappa
    assert np.abs(gradient[free]).max() <= 1e-7 * scale + rounding


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_exact_spatial(friction: str, condim: int) -> None:
    options = qdsim.Options(friction=friction, margin=0.1)
    for scene in spatial(condim).values():
        for q, u in states(scene):
            check_exact(scene, q, u, options)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("kappa", [1e2, 1e4])
def test_smoothed_spatial(friction: str, condim: int, kappa: float) -> None:
    options = qdsim.Options(friction=friction, margin=0.1, kappa=kappa)
    for scene in spatial(condim).values():
        for q, u in states(scene, 5):
            check_smoothed(scene, q, u, options)


@pytest.mark.long
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_planar_hand(friction: str) -> None:
    scene = planar_hand()
    exact = qdsim.Options(friction=friction, rays=4 if friction == "cone" else 2, margin=10.0)
    for q, u in states(scene, 20):
        check_exact(scene, q, u, exact)
        for kappa in (1e1, 1e2, 1e3, 1e5):
            check_smoothed(scene, q, u, exact.replace(kappa=kappa))


def test_planar_cone_equals_two_ray_pyramid() -> None:
    """In the plane the Lorentz cone is the two-ray pyramid, smoothed or not."""
    scene = planar_hand()
    for kappa in (None, 1e2):
        cone = qdsim.Options(margin=10.0, kappa=kappa)
        pyramid = cone.replace(friction="pyramid", rays=2)
        for q, u in states(scene, 10, seed=3):
            a, b = qdsim.step(scene.model, q, u, cone), qdsim.step(scene.model, q, u, pyramid)
            np.testing.assert_allclose(a.q_next, b.q_next, atol=1e-9)
            np.testing.assert_allclose(a.contacts["force"], b.contacts["force"], atol=1e-6)


@pytest.mark.parametrize("rays", [3, 5, 8, 16])
def test_other_ray_counts(rays: int) -> None:
    scene = pusher("box", 4)
    options = qdsim.Options(friction="pyramid", rays=rays)
    for q, u in states(scene, 5, seed=1):
        check_exact(scene, q, u, options)
        check_smoothed(scene, q, u, options.replace(kappa=200.0))


def test_held_objects_and_applied_forces() -> None:
    rng = np.random.default_rng(5)
    for scene, held in [
        (pusher("sphere"), "object"),
        (arm(), "rod"),
        (arm(), "j2"),
        (floating(), "base"),
        (pendulum(), "ball"),
        (planar_hand(), "disc"),
    ]:
        options = qdsim.Options(held=(held,), gravity_on_actuated=True)
        for q, u in states(scene, 6, seed=2):
            tau = rng.uniform(-1.0, 1.0, scene.model.nv)
            check_exact(scene, q, u, options, tau)
            check_smoothed(scene, q, u, options.replace(kappa=300.0))


def test_everything_held_stays() -> None:
    scene = planar_hand()
    q, u = scene.sample(np.random.default_rng(0))
    options = qdsim.Options(held=("disc", "l1", "l2", "r1", "r2"))
    step = qdsim.step(scene.model, q, u, options)
    np.testing.assert_array_equal(step.q_next, q)


def test_without_joint_limits() -> None:
    scene = planar_hand()
    options = qdsim.Options(joint_limits=False)
    for q, u in states(scene, 10, seed=7):
        check_exact(scene, q, u, options)
        assert np.all(qdsim.step(scene.model, q, u, options).limit_force == 0.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 17.0])
def test_mass_factor(epsilon: float) -> None:
    for scene in (pusher("box"), planar_hand()):
        for q, u in states(scene, 6, seed=8):
            check_exact(scene, q, u, qdsim.Options(epsilon=epsilon))


def test_agrees_with_clarabel() -> None:
    """The same program given to an independent solver."""
    options = qdsim.Options()
    compared = asked = 0
    for scene in spatial(4).values():
        for q, u in states(scene, 3, seed=9):
            step = qdsim.step(scene.model, q, u, options)
            program = assemble(scene.model, q, u, options, step.contacts)
            other = clarabel_program(program).answer()
            asked += 1
            if other is not None:
                np.testing.assert_allclose(step.delta, other.x, atol=2e-6)
                compared += 1
    assert compared > asked // 2


WRIST = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="2 2 .1" friction="0.6 .01 .001"/>
  <body pos="0 0 .3"><joint name="j1" axis="0 0 1"/><joint name="j2" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" density="500"/>
    <body pos=".3 0 0"><joint axis="0 1 0" stiffness="5" springref="0.2"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/>
      <body pos=".2 0 0"><joint type="ball"/><geom type="sphere" size=".03" condim="4"/></body></body></body>
  <body pos=".45 0 .05"><freejoint/>
    <geom type="box" size=".05 .05 .05" mass="0.5" condim="6" friction=".5 .01 .002"/></body></worldbody>
  <actuator><position joint="j1" kp="100"/><position joint="j2" kp="100"/></actuator></mujoco>"""


def test_a_link_that_spins_beside_a_box_at_rest() -> None:
    """Slacks from 1e-8 m (the box) to 0.2 m and displacements from 1e-8 to 10 rad in one program."""
    model = qdsim.load(WRIST)
    q = np.array([
        -4.43217e-01, 4.11343e-01, 1.21588e-01, 5.97566e-01, 7.03191e-01, 2.67484e-01, 2.77290e-01,
        4.42589e-01, -3.36896e-03, 5e-02, 9.85608e-01, -4.64389e-09, 3.75269e-09, -1.69045e-01,
    ])  # fmt: skip
    tau = np.array([
        -0.14998, 0.13576, -0.00637, -0.05424, 0.07492, 0.10599, 0.07698, 0.19995, 0.10807,
        0.12835, -0.05399, 0.01065,
    ])  # fmt: skip
    rng = np.random.default_rng(0)
    scene = Scene(model, lambda rng: (q, model.command_from(q)))
    for _ in range(100):
        near = model.integrate(q, 1e-8 * rng.standard_normal(model.nv))
        check_exact(scene, near, [-0.04622, 0.32416], qdsim.Options(), tau)
