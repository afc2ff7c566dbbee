"""Actuators on tendons: MuJoCo's forces, optimality, derivatives, and a gripper that holds a can."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scenes import Scene
from test_parameter_derivatives import (
    ARGUMENTS,
    check_products,
    differential,
    sample,
    tangents,
)
from test_tendons import _around, hand, mujoco_jacobian

import qdsim

PULLERS = """
  <position name="close" tendon="closing" kp="40" gear="-2" {limit}/>
  <motor name="knuckle" tendon="knuckles" gear="3" {limit}/>
  <general name="hang" tendon="hanging" gaintype="affine" gainprm="9 -4 -.3" biastype="affine" biasprm="1 -60 -2"/>
  <velocity name="brake" tendon="closing" kv="3"/>
  <general name="push" tendon="hanging" gaintype="affine" gainprm="2 7 0"/>"""


def pulled(limit: str = "") -> qdsim.Model:
    return qdsim.load(xml(limit))


def xml(limit: str = "") -> str:
    text = hand()
    at = text.index('<position joint="b1"')
    return text[:at] + PULLERS.format(limit=limit) + text[at:]


def draw(model: qdsim.Model, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    q, u = _around(model, np.array(model.default_q), np.full(model.nv, 0.05), 0.3)(rng)
    return q, u


def test_forces_are_mujocos() -> None:
    """While nothing moves: every actuator's force, and what all of them do to the joints."""
    rng = np.random.default_rng(0)
    text = xml('forcerange="-2 1.5"')
    model, mj = qdsim.load(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    assert model.actuator_names[3:6] == ("close", "knuckle", "hang")
    clamped = 0
    for _ in range(20):
        q, u = draw(model, rng)
        data.qpos[:], data.ctrl[:] = q, u
        mujoco.mj_forward(mj, data)
        still = qdsim.step(model, q, u, qdsim.Options(held=model.joint_names))
        np.testing.assert_allclose(
            still.actuator_force, data.actuator_force * mj.actuator_gear[:, 0], atol=1e-9
        )
        force = np.zeros(model.nv)
        np.add.at(force, model.actuated_v[:3], still.actuator_force[:3])
        force[model.actuated_v[-1]] += still.actuator_force[-1]
        on = model.actuated_tendons >= 0
        force += still.actuator_force[on] @ model.tendon_jacobians(q)[model.actuated_tendons[on]]
        np.testing.assert_allclose(force, model.from_mujoco_qvel(q, data.qfrc_actuator), atol=1e-8)
        clamped += still.actuator_limited.sum()
    assert clamped > 5
    assert mujoco_jacobian(mj, data).shape == (3, mj.nv)


@pytest.mark.parametrize("damping", [False, True])
@pytest.mark.parametrize("limit", ["", 'forcerange="-1 0.8"'])
def test_steps_balance(limit: str, damping: bool) -> None:
    """M delta / h^2 = gravity + J' F with F = P(F0 - K J delta), for the DOFs that no spring of their own holds."""
    rng = np.random.default_rng(3)
    model = pulled(limit)
    h, p = 0.07, model.parameters
    options = qdsim.Options(h=h, damping=damping, joint_limits=False)
    rate = damping / h
    on = np.flatnonzero(model.actuated_tendons >= 0)
    slope = np.array([model.description.actuators[i].gain_slope for i in on])
    for _ in range(10):
        q, u = draw(model, rng)
        step = qdsim.step(model, q, u, options)
        J = model.tendon_jacobians(q)[model.actuated_tendons[on]]
        length = model.tendon_lengths(q)[model.actuated_tendons[on]]
        w = u[on]
        k, gear = p.actuator_stiffness[on], model.actuator_gear[on]
        K = np.maximum(k - slope[:, 0] * w + rate * (p.actuator_damping[on] - slope[:, 1] * w), 0.0)
        F0 = k * (w / gear - length) + (p.actuator_gain[on] + slope[:, 0] * length) * w
        F0 = F0 + p.actuator_bias[on]
        F = np.clip(F0 - K * (J @ step.delta), *p.actuator_force_range[on].T)
        np.testing.assert_allclose(step.actuator_force[on], F, atol=1e-8)
        free = np.setdiff1d(np.arange(model.nv), model.actuated_v)
        M = model.mass_matrix(q)[np.ix_(free, free)]
        balance = model.gravity_force(q) + F @ J
        np.testing.assert_allclose(M @ step.delta[free] / h**2, balance[free], atol=1e-7)
        np.testing.assert_allclose(
            step.tendon_force,
            [F[model.actuated_tendons[on] == t].sum() for t in range(3)],
            atol=1e-8,
        )


OPTIONS = {
    "exact": qdsim.Options(margin=0.2, h=0.06),
    "damped": qdsim.Options(margin=0.2, h=0.06, damping=True),
    "smoothed": qdsim.Options(margin=0.2, kappa=300.0, damping=True),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("limit", ["", 'forcerange="-1 0.6"'])
@pytest.mark.parametrize("kind", list(OPTIONS))
def test_derivatives(kind: str, limit: str) -> None:
    model, options, rng = pulled(limit), OPTIONS[kind], np.random.default_rng(1)
    scene = Scene(model, lambda rng: draw(model, rng))
    compared = left_out = 0
    for _ in range(2):
        state = sample(scene, rng)
        d = differential(scene, state, options)
        directions = tangents(model, rng, ARGUMENTS)
        limits = directions.pop("actuator_force_range")
        if limit:
            limited = np.isfinite(model.parameters.actuator_force_range)
            directions["actuator_force_range"] = np.where(limited, limits, 0.0)
        for name, tangent in directions.items():
            directions[name] = np.where(np.isfinite(tangent), tangent, 0.0)
        found = check_products(model, d, state, options, directions, rng, 1e-8)
        compared, left_out = compared + found[0], left_out + found[1]
    assert compared >= 0.8 * (compared + left_out)


GRIPPER = """<mujoco><option gravity="0 0 -9.81"/>
  <default><geom friction="0.8 0.01 0.001" condim="4"/></default>
  <worldbody><geom name="floor" type="plane" size="1 1 .1"/>
    <body name="can" pos="0 0 .06"><freejoint/><geom name="can" type="cylinder" size=".033 .06" mass=".4"/></body>
    <body name="hand" pos="0 0 .2" gravcomp="1"><joint name="lift" type="slide" axis="0 0 1"/>
      <inertial pos="0 0 0" mass=".7" diaginertia=".001 .001 .001"/>
      <body name="left" pos="0 -.04 -.12" gravcomp="1"><joint name="left" type="slide" axis="0 1 0" range="-.01 .04"/>
        <geom name="left" type="box" size=".01 .005 .02" mass=".02"/></body>
      <body name="right" pos="0 .04 -.12" gravcomp="1"><joint name="right" type="slide" axis="0 -1 0" range="-.01 .04"/>
        <geom name="right" type="box" size=".01 .005 .02" mass=".02"/></body></body>
  </worldbody>
  <contact><exclude body1="left" body2="right"/></contact>
  <tendon><fixed name="split"><joint joint="left" coef=".5"/><joint joint="right" coef=".5"/></fixed></tendon>
  <equality><joint joint1="left" joint2="right"/></equality>
  <actuator><position name="lift" joint="lift" kp="2000"/>
    <general name="grip" tendon="split" ctrlrange="0 255" gainprm="0.01568627451" biastype="affine"
      biasprm="0 -100 -10" forcerange="-{limit} {limit}"/></actuator></mujoco>"""


def test_a_gripper_closes_by_its_tendon_and_holds_a_can_at_its_limit() -> None:
    """Panda's hand: one actuator on half the sum of both fingers' ways. Half its limit presses on either side."""
    model = qdsim.load(GRIPPER.format(limit=2.0))
    weak = qdsim.load(GRIPPER.format(limit=20.0)).with_parameters(
        actuator_force_range=[[-np.inf, np.inf], [-0.5, 0.5]]
    )
    assert model.actuated_tendons.tolist() == [-1, 0]
    options, full = qdsim.Options(h=0.05), 255.0 * 10
    for scene, limit in ((model, 2.0), (weak, 0.5)):
        q = scene.default_q
        for _ in range(20):
            step = qdsim.step(scene, q, [0.0, full], options)
            q = step.q_next
        np.testing.assert_allclose(step.actuator_force[1], limit, rtol=1e-6)
        assert step.actuator_limited[1]
        for side in ("left", "right"):
            index = scene.geom_index(side)
            on = (step.contacts["geom_a"] == index) | (step.contacts["geom_b"] == index)
            pressed = step.contacts["force"][on, 0].sum()
            np.testing.assert_allclose(pressed, limit / 2, rtol=1e-6)


@pytest.mark.parametrize(("limit", "rises"), [(4.0, False), (6.0, True)])
def test_what_a_limit_can_lift(limit: float, rises: bool) -> None:
    """Friction of 0.8 on both sides, each pressed with half the limit, against 3.92 N."""
    model = qdsim.load(GRIPPER.format(limit=limit))
    q = model.default_q
    for k in range(45):
        u = [0.002 * max(0, k - 20), 2550.0]
        step = qdsim.step(model, q, u, qdsim.Options(h=0.05))
        q = step.q_next
    np.testing.assert_allclose(step.actuator_force[1], limit, rtol=1e-6)
    assert float(q[2]) - 0.06 == pytest.approx(0.048 if rises else 0.0, abs=5e-3)


def test_files_batches_and_commands() -> None:
    model = pulled('forcerange="-1 0.8"')
    again = qdsim.load(model.description.to_mjcf())
    rng = np.random.default_rng(5)
    q, u = (np.array(x) for x in zip(*(draw(model, rng) for _ in range(4)), strict=True))
    options = qdsim.Options(h=0.05, damping=True)
    batch = qdsim.linearize_batch(model, q, u, options)
    for i in range(4):
        lin = qdsim.linearize(model, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], lin.q_next)
        np.testing.assert_array_equal(batch.A[i], lin.A)
        np.testing.assert_array_equal(batch.B[i], lin.B)
        other = qdsim.step(again, q[i], u[i], options)
        np.testing.assert_allclose(other.q_next, lin.q_next, atol=1e-9)
    gripper = qdsim.load(GRIPPER.format(limit=100.0))
    held = np.array(gripper.default_q)
    held[gripper.slice_q("left")] = held[gripper.slice_q("right")] = 0.002
    u_held = gripper.command_from(held)
    step = qdsim.step(gripper, held, u_held, qdsim.Options(h=0.05))
    np.testing.assert_allclose(step.q_next[-3:], held[-3:], atol=1e-9)
    assert step.actuator_force[1] == pytest.approx(0.0, abs=1e-9)


def test_what_is_wrong_is_named() -> None:
    scene = qdsim.SceneBuilder()
    scene.body("b", mass=1.0, inertia=(1, 1, 1))
    scene.joint("b", "slide")
    scene.tendon("t", joints={"b": 2.0})
    scene.actuator(None, 5.0, tendon="x")
    with pytest.raises(ValueError, match=r"actuator 'x'.*tendon"):
        scene.build()
    with pytest.raises(ValueError, match="needs a joint or a tendon, and not both"):
        scene.actuator("b", 5.0, tendon="t")
    with pytest.raises(ValueError, match="needs a joint or a tendon"):
        scene.actuator(None, 5.0, name="a")
    pulley = GRIPPER.format(limit=1.0).replace(
        '<fixed name="split"><joint joint="left" coef=".5"/><joint joint="right" coef=".5"/></fixed>',
        '<spatial name="split"><site site="a"/><site site="b"/><pulley divisor="0"/><site site="a"/><site site="c"/></spatial>',
    )
    sites = "".join(f'<site name="{x}" pos="0 0 .{i}"/>' for i, x in enumerate("abc", 1))
    with pytest.raises(ValueError, match=r"tendon 'split': it has a pulley(.|\n)*'grip'"):
        qdsim.load(pulley.replace('<geom name="floor"', f'{sites}<geom name="floor"'))
