"""Wrenches applied to bodies: closed forms, the equivalent generalised force, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import Scene, arm, floating, pendulum, planar_hand, pusher
from test_linearize import STENCIL

import qdsim

G, H, MU, MASS = 9.81, 0.1, 0.5, 2.0

BLOCK = f"""
<mujoco>
  <option gravity="0 0 -{G}"/>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 0.1" friction="{MU} 0 0"/>
    <body name="block" pos="0 0 0.1"><freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="{MASS}" friction="{MU} 0 0"/></body>
  </worldbody>
</mujoco>"""

SPRING = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0" stiffness="40"/>
      <geom type="sphere" size="0.1" mass="1" pos="0.3 0.2 0"/></body>
    <body name="turn"><joint name="angle" type="hinge" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1" pos="0.5 0 0" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator><position joint="angle" kp="8"/></actuator>
</mujoco>"""


def scenes() -> dict[str, Scene]:
    return {
        "hand": planar_hand(),
        "box": pusher("box"),
        "arm": arm(),
        "pendulum": pendulum(),
        "floating": floating(),
    }


def generalised(model: qdsim.Model, q, wrench) -> np.ndarray:
    """J' wrench, the Jacobians taken at the centres of mass."""
    tau = np.zeros(model.nv)
    for body in range(1, model.body_count):
        tau += model.jacobian(q, body, model.parameters.body_com[body]).T @ wrench[body]
    return tau


@pytest.mark.parametrize("name", list(scenes()))
def test_a_wrench_is_the_generalised_force_of_its_jacobian(name: str) -> None:
    scene = scenes()[name]
    model, rng = scene.model, np.random.default_rng(3)
    for options in (qdsim.Options(), qdsim.Options(kappa=300.0), qdsim.Options(friction="pyramid")):
        q, u = scene.sample(rng)
        wrench = rng.uniform(-1.0, 1.0, (model.body_count, 6))
        tau = rng.uniform(-0.3, 0.3, model.nv)
        ours = qdsim.step(model, q, u, options, tau=tau, wrench=wrench)
        equal = qdsim.step(model, q, u, options, tau=tau + generalised(model, q, wrench))
        np.testing.assert_allclose(ours.delta, equal.delta, rtol=0, atol=1e-8)


def test_a_pulled_block_sticks_and_slides() -> None:
    """Below mu m g nothing moves; above, delta = h^2 (F - mu m g) / (epsilon m), and the block lifts
    off by mu times that (the boundary layer of the relaxed law: slack = alpha (1, -u))."""
    model = qdsim.load(BLOCK)
    options, limit = qdsim.Options(h=H), MU * MASS * G
    stuck = qdsim.step(
        model, model.default_q, [], options, wrench={"block": [0.9 * limit, 0, 0, 0, 0, 0]}
    )
    np.testing.assert_allclose(stuck.delta, 0.0, atol=1e-9)
    force = sum((c["frame"].T @ c["force"][:3] for c in stuck.contacts), np.zeros(3))
    np.testing.assert_allclose(force, [-0.9 * limit, 0.0, MASS * G], atol=1e-7)
    # at the height of the ground: pulled without tipping
    pull = 1.5 * limit
    wrench = {"block": [pull, 0, 0, 0, -0.1 * pull, 0]}
    moved = qdsim.step(model, model.default_q, [], options, wrench=wrench)
    x, z = moved.delta[0], moved.delta[2]
    # minimise 1/2 (m/h^2)(x^2 + z^2) + m g z - F x   subject to   z >= mu |x|
    by_hand = H * H / MASS * (pull - limit) / (1.0 + MU * MU)
    assert x == pytest.approx(by_hand, rel=1e-9)
    assert z == pytest.approx(MU * x, rel=1e-9)
    np.testing.assert_allclose(moved.delta[3:], 0.0, atol=1e-9)


def test_springs_yield_by_force_over_stiffness() -> None:
    """Force at the centre of mass: with a spring only (epsilon = 0) F / k; on an actuated hinge the
    moment about its axis, both of the force and of the moment, over the actuator's stiffness."""
    model = qdsim.load(SPRING)
    force = np.zeros((3, 6))
    force[1] = [3.0, 7.0, -2.0, 0.4, 0.1, 0.9]  # across and about the slide: no effect
    force[2] = [0.2, 0.6, 5.0, 3.0, -1.0, 0.25]
    step = qdsim.step(
        model, np.zeros(2), [0.0], qdsim.Options(epsilon=0.0, margin=0.0), wrench=force
    )
    np.testing.assert_allclose(step.delta, [3.0 / 40.0, (0.5 * 0.6 + 0.25) / 8.0], rtol=1e-12)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", [None, 200.0])
@pytest.mark.parametrize("name", list(scenes()))
def test_derivatives_at_work(name: str, kappa: float | None) -> None:
    """A and B with wrenches applied, against fourth-order differences; states at a kink are left out."""
    scene = scenes()[name]
    model, rng = scene.model, np.random.default_rng(5)
    options = qdsim.Options(kappa=kappa, margin=0.3, joint_limits=kappa is None)
    compared = 0
    for _ in range(4):
        q, u = scene.sample(rng)
        wrench = 0.5 * rng.uniform(-1.0, 1.0, (model.body_count, 6))
        lin = qdsim.linearize(model, q, u, options, wrench=wrench)
        ours = np.hstack([lin.A, lin.B])
        theirs = []
        for eps in (4e-5, 2e-5):
            columns = []
            for direction in np.eye(model.nv + model.nu):
                column = np.zeros(model.nv)
                for width, weight in STENCIL:
                    for sign in (1.0, -1.0):
                        s = sign * width * eps
                        q_next = qdsim.step(
                            model,
                            model.integrate(q, s * direction[: model.nv]),
                            u + s * direction[model.nv :],
                            options,
                            wrench=wrench,
                        ).q_next
                        column += sign * weight / eps * model.difference(q_next, lin.q_next)
                columns.append(column)
            theirs.append(np.array(columns).T)
        scale = max(1.0, np.abs(ours).max())
        if np.abs(theirs[0] - theirs[1]).max() <= 1e-6 * scale:
            compared += 1
            assert np.abs(ours - theirs[1]).max() <= 1e-6 * scale
    assert compared >= 2


def test_the_forms_of_the_argument_agree() -> None:
    scene = pusher("box")
    model, rng = scene.model, np.random.default_rng(1)
    q, u = scene.sample(rng)
    wrench = np.zeros((model.body_count, 6))
    wrench[model.body_index("object")] = rng.uniform(-2.0, 2.0, 6)
    by_name = {"object": wrench[model.body_index("object")]}
    one = qdsim.step(model, q, u, wrench=wrench)
    assert not np.array_equal(one.q_next, qdsim.step(model, q, u).q_next)
    np.testing.assert_array_equal(one.q_next, qdsim.step(model, q, u, wrench=by_name).q_next)
    np.testing.assert_array_equal(
        one.q_next, qdsim.step(model, q, u, wrench=wrench.tolist()).q_next
    )
    np.testing.assert_array_equal(
        qdsim.step(model, q, u, wrench={}).q_next, qdsim.step(model, q, u).q_next
    )
    world = np.zeros_like(wrench)
    world[0] = 100.0
    np.testing.assert_array_equal(
        qdsim.step(model, q, u, wrench=world).q_next, qdsim.step(model, q, u).q_next
    )


def test_batches_and_rollouts() -> None:
    scene = floating()
    model, rng = scene.model, np.random.default_rng(2)
    states = [scene.sample(rng) for _ in range(6)]
    q, u = (np.array(part) for part in zip(*states))
    wrench = rng.uniform(-1.0, 1.0, (6, model.body_count, 6))
    tau = rng.uniform(-1.0, 1.0, (6, model.nv))
    batch = qdsim.linearize_batch(model, q, u, tau=tau, wrench=wrench)
    for i in range(6):
        one = qdsim.linearize(model, q[i], u[i], tau=tau[i], wrench=wrench[i])
        np.testing.assert_array_equal(one.q_next, batch.q_next[i])
        np.testing.assert_array_equal(one.A, batch.A[i])
    shared = qdsim.step_batch(model, q, u, wrench={"base": wrench[0, 1]})
    np.testing.assert_array_equal(
        shared.q_next[3], qdsim.step(model, q[3], u[3], wrench={"base": wrench[0, 1]}).q_next
    )
    steps = 3
    course = np.repeat(u[:, None], steps, axis=1)
    pushes = rng.uniform(-1.0, 1.0, (6, steps, model.body_count, 6))
    paths = qdsim.rollout(model, q, course, tau=tau[:, None], wrench=pushes)
    now = q[2]
    for t in range(steps):
        now = qdsim.step(model, now, u[2], tau=tau[2], wrench=pushes[2, t]).q_next
        np.testing.assert_array_equal(now, paths.q[2, t + 1])
    named = qdsim.rollout(model, q, course, wrench={"base": pushes[:, :, 1]})
    only_base = np.zeros_like(pushes)
    only_base[:, :, 1] = pushes[:, :, 1]
    np.testing.assert_array_equal(named.q, qdsim.rollout(model, q, course, wrench=only_base).q)


def test_bad_arguments_are_named() -> None:
    model = qdsim.load(BLOCK)
    q = model.default_q
    for bad, error, text in [
        (np.zeros((3, 6)), ValueError, r"wrench: expected shape \(2, 6\)"),
        (np.full((2, 6), np.nan), ValueError, r"wrench: element \[0, 0\] is nan"),
        ("block", TypeError, "wrench"),
        ({"stone": np.zeros(6)}, ValueError, "wrench: the model has no body 'stone'"),
        ({1: np.zeros(6)}, TypeError, "wrench: expected names of bodies"),
        ({"block": np.zeros(5)}, ValueError, r"wrench\['block'\]: expected shape \(6,\)"),
        ({"block": [0, 0, np.inf, 0, 0, 0]}, ValueError, r"wrench\['block'\]: element 2 is inf"),
    ]:
        with pytest.raises(error, match=text):
            qdsim.step(model, q, [], wrench=bad)
    for bad, error, text in [
        (np.zeros((3, 6)), ValueError, r"wrench: expected shape \(..., 2, 6\)"),
        (np.full((2, 6), np.nan), ValueError, "wrench: .* element 0 is nan"),
        ({"stone": np.zeros(6)}, ValueError, "wrench: the model has no body 'stone'"),
        ({"block": np.zeros(5)}, ValueError, r"wrench\['block'\]: expected shape"),
    ]:
        with pytest.raises(error, match=text):
            qdsim.step_batch(model, q, [], wrench=bad)
    with pytest.raises(ValueError, match="tau: expected 4 steps as in u, or 1, got 2"):
        qdsim.rollout(model, q, np.zeros((4, 0)), tau=np.zeros((2, 6)))
