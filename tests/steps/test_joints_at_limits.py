"""Joints whose actuators are at their limits while nothing else holds them: their inertia decides."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ARM, Scene
from test_parameter_derivatives import (
    check_products,
    differences,
    differential,
    sample,
    tangents,
)

import qdsim

MASS, K, H = 2.0, 4000.0, 0.1


def slider(limit: float, **actuator: float) -> qdsim.Model:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("b", mass=MASS, inertia=(1, 1, 1))
    scene.joint("b", "slide", axis=(1, 0, 0))
    scene.actuator("b", force_range=(-limit, limit), **actuator)
    return qdsim.build(scene.build())


@pytest.mark.parametrize("kappa", [None, 1e8])
@pytest.mark.parametrize("push", [-5.0, -30.0, 12.0])
def test_a_spring_at_its_limit_is_a_motor_of_that_force(push: float, kappa: float | None) -> None:
    """Pushed by more than it has, the joint accelerates by what is left of the push."""
    spring, motor = slider(3.0, stiffness=K), slider(3.0, gain=1.0)
    options = qdsim.Options(h=H, kappa=kappa)
    wrench = {"b": [push, 0, 0, 0, 0, 0]}
    step = qdsim.step(spring, [0.2], [0.2], options, wrench=wrench)
    free = qdsim.step(motor, [0.2], [-np.sign(push) * 3.0], options, wrench=wrench)
    np.testing.assert_allclose(step.q_next, free.q_next, atol=1e-6)
    np.testing.assert_allclose(step.delta, (push - np.sign(push) * 3.0) * H**2 / MASS, atol=1e-6)
    np.testing.assert_allclose(step.actuator_force, -np.sign(push) * 3.0, rtol=1e-6)
    assert step.actuator_limited.all() or kappa is not None


@pytest.mark.parametrize(("h", "mass"), [(1e-3, 0.5 * K), (10.0, 1e-3 * K), (0.1, MASS / 0.01)])
def test_the_inertia_counts_within_parts_of_the_stiffness(h: float, mass: float) -> None:
    step = qdsim.step(
        slider(3.0, stiffness=K), [0], [0], qdsim.Options(h=h), wrench={"b": [7, 0, 0, 0, 0, 0]}
    )
    np.testing.assert_allclose(step.delta, 4.0 / mass, rtol=1e-9)


def test_without_mass_a_part_of_the_stiffness_is_left() -> None:
    step = qdsim.step(
        slider(3.0, stiffness=K),
        [0],
        [0],
        qdsim.Options(epsilon=0.0),
        wrench={"b": [5, 0, 0, 0, 0, 0]},
    )
    np.testing.assert_allclose(step.delta, 2.0 / (1e-3 * K), rtol=1e-9)


FINGERS = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body pos="-.2 0 0"><joint name="l" type="slide" axis="1 0 0"/><geom type="sphere" size=".05" mass="{m}"/>
    <body pos="0 .5 0"><joint name="turn" axis="0 0 1"/><geom type="sphere" size=".05" pos="0 .2 0" mass="1"/>
    </body></body>
  <body pos=".2 0 0"><joint name="r" type="slide" axis="1 0 0"/><geom type="sphere" size=".05" mass="1"/></body>
  </worldbody><actuator><position joint="l" kp="400" forcerange="-{a} {a}"/>
  <position joint="r" kp="400" forcerange="-5 5"/><position joint="turn" kp="50" forcerange="-1 1"/></actuator></mujoco>"""


def test_fingers_press_on_each_other() -> None:
    """Of equal forces none goes on, whatever the masses; the stronger one pushes until it is where it should be,
    or as far as the weaker one's mass lets it. What turns beside them is not disturbed."""
    options = qdsim.Options(h=H)
    equal = qdsim.load(FINGERS.format(a=5, m=3))
    q = np.array([0.1, 0.0, -0.2])
    for _ in range(3):
        step = qdsim.step(equal, q, [0.4, -0.4, 0.5], options)
        q = step.q_next
    np.testing.assert_allclose(step.delta[[0, 2]], 0.0, atol=1e-9)
    np.testing.assert_allclose(step.actuator_force, [5, -5, 0], atol=1e-7)
    np.testing.assert_allclose(q[1], 0.5, atol=1e-9)
    np.testing.assert_allclose(step.contacts["force"][0, 0], 5.0, atol=1e-7)
    strong = qdsim.load(FINGERS.format(a=8, m=1))
    for _ in range(40):
        step = qdsim.step(strong, q, [0.4, -0.4, 0.5], options)
        assert step.delta[0] >= -1e-12
        q = step.q_next
    held = 0.4 - 5.0 / 400.0  # where the spring of the strong one has the weak one's force
    np.testing.assert_allclose(q[0], held, atol=1e-6)
    np.testing.assert_allclose(step.actuator_force[:2], [5, -5], atol=1e-5)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kappa", [None, 50.0])
def test_derivatives(kappa: float | None) -> None:
    """Of arms that are pushed by more than they have in some joints, by less in others, in contact."""
    base = qdsim.load(ARM.format(condim=3))
    limits = np.outer([2.0, 1.0, 30.0], [-1.0, 1.0])
    model = base.with_parameters(actuator_force_range=limits)
    rng = np.random.default_rng(3)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        q = np.array(base.default_q)
        q[:4] += rng.uniform(-0.1, 0.1, 4)
        return q, q[:3] + rng.uniform(-0.03, 0.03, 3)

    names = (
        "q",
        "u",
        "tau",
        "wrench",
        "actuator_stiffness",
        "actuator_force_range",
        "joint_stiffness",
    )
    compared = resisted = 0
    for h in (0.1, 0.1, 0.02, 0.5):
        options = qdsim.Options(h=h, margin=0.1, kappa=kappa)
        scene = Scene(model, draw)
        state = sample(scene, rng)
        state["tau"][:3] += [-9.0, 6.0, 3.0]
        d = differential(scene, state, options)
        resisted += d.step.actuator_limited[:2].all() or kappa is not None
        compared += check_products(
            model, d, state, options, tangents(model, rng, names), rng, 1e-8
        )[0]
    assert resisted >= 3
    assert compared == 28


def test_gain_slopes_and_dampers_share_the_resistance() -> None:
    """Two limited actuators on one joint, one with a gain that depends on where it is."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("b", mass=MASS, inertia=(1, 1, 1))
    scene.joint("b", "slide", axis=(1, 0, 0))
    scene.actuator("b", 300.0, force_range=(-2, 2), gain_slope=(-20.0, -3.0), damping=4.0, name="a")
    scene.actuator("b", 230.0, force_range=(-1, 1), name="c")
    model = qdsim.build(scene.build())
    names = ("q", "u", "tau", "actuator_stiffness", "actuator_damping", "actuator_gain")
    for h in (0.1, 0.01):
        options = qdsim.Options(h=h, damping=True)
        state = {"q": np.zeros(1), "u": np.array([0.2, 0.1]), "tau": np.array([-9.0])}
        state["wrench"] = np.zeros((2, 6))
        d = qdsim.differentiate(model, state["q"], state["u"], options, tau=state["tau"])
        assert d.step.actuator_limited.all()
        lin = qdsim.linearize(model, state["q"], state["u"], options, tau=state["tau"])
        np.testing.assert_allclose(d.jvp({"u": np.eye(2)}).T, lin.B, atol=1e-12)
        for argument, tangent in tangents(model, np.random.default_rng(0), names).items():
            ours = d.jvp({argument: tangent})
            _, narrow = differences(model, state, {argument: tangent}, options, 2e-4)
            np.testing.assert_allclose(ours, narrow, atol=1e-8, err_msg=argument)
            np.testing.assert_allclose(
                np.sum(d.vjp([1.0], names)[argument] * tangent), ours, atol=1e-12
            )


def test_without_limits_nothing_resists() -> None:
    """`force_limits=False` is the program without limits; limits that are not reached change nothing."""
    model = qdsim.load(ARM.format(condim=3))
    wide = model.with_parameters(actuator_force_range=[[-1e6, 1e6]] * 3)
    tight = model.with_parameters(actuator_force_range=[[-1, 1]] * 3)
    tau = np.linspace(-3, 3, model.nv)
    q = model.default_q
    free = qdsim.step(model, q, q[:3] + 0.1, tau=tau)
    off = qdsim.step(tight, q, q[:3] + 0.1, qdsim.Options(force_limits=False), tau=tau)
    np.testing.assert_array_equal(free.q_next, off.q_next)
    inside = qdsim.step(wide, q, q[:3] + 0.1, tau=tau)
    np.testing.assert_allclose(inside.q_next, free.q_next, atol=1e-9)
