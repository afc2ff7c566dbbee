"""Actuators of every affine kind, springs and dampers of joints: forces beside MuJoCo's, closed forms, derivatives."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mass_matrix import mass_matrix
from scenes import Scene
from test_parameter_derivatives import (
    ARGUMENTS,
    check_products,
    differential,
    sample,
    tangents,
)

import qdsim

H = 0.05


def random_actuator(rng: np.random.Generator, joint: str, name: str) -> str:
    gear = rng.choice([-1, 1]) * rng.uniform(0.3, 3.0)
    kp, kv, a, b = rng.uniform(5.0, 40.0), rng.uniform(0.1, 2.0), *rng.uniform(-1.0, 1.0, 2)
    kind = rng.choice(["joint", "jointinparent"])
    where = f'name="{name}" {kind}="{joint}" gear="{gear}"'
    choices = [
        f'<position {where} kp="{kp}"/>',
        f'<position {where} kp="{kp}" kv="{kv}"/>',
        f"<motor {where}/>",
        f'<velocity {where} kv="{kv}"/>',
        f'<damper {where} kv="{kv}" ctrlrange="0 2"/>',
        f'<general {where} gainprm="{3 * a}"/>',
        f'<general {where} gainprm="{kp}" biastype="affine" biasprm="{b} {-kp} {-kv}"/>',
        f'<general {where} gainprm="{9 * a}" biastype="affine" biasprm="{b} {-kp} 0"/>',
        f'<general {where} gainprm="0" biastype="affine" biasprm="{b} {-kp} {-kv}"/>',
        f'<general {where} gaintype="affine" gainprm="{a} {-kv} {-0.3 * kv}" '
        f'biastype="affine" biasprm="{b} {-kp} {-kv}"/>',
        f'<cylinder {where} area="{kv}" bias="{b} {-kp} {-kv}"/>',
    ]
    return str(rng.choice(choices))


def chain(rng: np.random.Generator, joints: int, per_joint: int = 2) -> str:
    body, tail = "", ""
    for j in range(joints):
        axis = " ".join(f"{x:.3f}" for x in rng.standard_normal(3))
        kind = rng.choice(["hinge", "slide"])
        spring = f'stiffness="{rng.uniform(0, 5):.3f}" springref="{rng.uniform(-20, 20):.3f}"'
        damper = f'damping="{rng.uniform(0, 2):.3f}"'
        body += (
            f'<body pos="0.1 0 0.2"><joint name="j{j}" type="{kind}" axis="{axis}" '
            f"{rng.choice([spring, ''])} {rng.choice([damper, ''])}/>"
            f'<geom type="capsule" size="0.03" fromto="0 0 0 0.1 0.02 0.15"/>'
        )
        tail += "</body>"
    driven = [j for j in range(joints) for _ in range(int(rng.integers(0, per_joint + 1)))]
    rng.shuffle(driven)
    text = "".join(random_actuator(rng, f"j{j}", f"a{i}") for i, j in enumerate(driven))
    return (
        '<mujoco><option gravity="1 2 -9.81"><flag contact="disable"/></option>'
        f"<worldbody>{body}{tail}</worldbody><actuator>{text}</actuator></mujoco>"
    )


def draw(rng: np.random.Generator, model: qdsim.Model) -> tuple[np.ndarray, np.ndarray]:
    q = rng.uniform(-0.4, 0.4, model.nq)
    return q, np.clip(rng.uniform(-1.0, 1.0, model.nu), model.u_lower, model.u_upper)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("damping", [False, True])
def test_a_step_ends_where_mujocos_forces_balance(damping: bool) -> None:
    """At q+ (and with the velocity displacement / h, where dampers count) actuators, springs and dampers of
    MuJoCo balance to zero on joints that an actuator's spring holds, and accelerate the mass on others."""
    rng = np.random.default_rng(4)
    driven = free = 0
    for _ in range(40):
        xml = chain(rng, 4)
        model = qdsim.load(xml)
        mj = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(mj)
        q, u = draw(rng, model)
        q_next = qdsim.step(model, q, u, qdsim.Options(h=H, damping=damping)).q_next
        data.qpos[:], data.ctrl[:] = q, u
        slow = mj.actuator_actadr >= 0  # filters have settled
        data.act[mj.actuator_actadr[slow]] = u[slow]
        mujoco.mj_forward(mj, data)
        mass = mass_matrix(mj, data)
        weight = -data.qfrc_bias.copy()
        data.qpos[:] = q_next
        data.qvel[:] = (q_next - q) / H if damping else 0.0
        mujoco.mj_forward(mj, data)
        force = data.qfrc_actuator + data.qfrc_passive
        held = np.zeros(model.nv, bool)
        held[model.actuated_v[model.parameters.actuator_stiffness > 0]] = True
        scale = 1.0 + np.abs(force).max()
        np.testing.assert_allclose(force[held], 0.0, atol=1e-9 * scale)
        inertia = mass[np.ix_(~held, ~held)] @ (q_next - q)[~held] / H**2
        scale = 1.0 + np.abs(inertia).max(initial=0.0)
        np.testing.assert_allclose((force + weight)[~held], inertia, atol=1e-9 * scale)
        driven, free = driven + held.sum(), free + (~held).sum()
    assert driven > 40 < free


@pytest.mark.long
def test_written_files_have_the_same_actuators() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        model = qdsim.load(chain(rng, 3))
        again = qdsim.load(model.description.to_mjcf())
        q, u = draw(rng, model)
        for options in (qdsim.Options(h=H), qdsim.Options(h=H, damping=True)):
            first, second = (qdsim.linearize(m, q, u, options) for m in (model, again))
            np.testing.assert_allclose(first.q_next, second.q_next, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(first.B, second.B, rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_commands_hold_a_configuration() -> None:
    """A step with command_from(q) stays at q, in every joint that it has a command for."""
    rng = np.random.default_rng(11)
    none = 0
    for _ in range(40):
        model = qdsim.load(chain(rng, 4))
        q = rng.uniform(-0.3, 0.3, (2, 3, model.nq))
        u = model.command_from(q)
        assert u.shape == (2, 3, model.nu)
        idle = {model.slice_v(name).start for name in model.joints_without_command}
        moved = sorted(set(model.actuated_v.tolist()) - idle)
        still = [name for name in model.joint_names if model.slice_v(name).start not in moved]
        q_next = qdsim.step(model, q[1, 2], u[1, 2], qdsim.Options(h=H, held=tuple(still))).q_next
        np.testing.assert_allclose(q_next, q[1, 2], atol=1e-9)
        none += len(idle)
    assert none > 3


def test_several_springs_share_the_load() -> None:
    scene = qdsim.SceneBuilder()
    scene.body("b", mass=1.0, inertia=(1, 1, 1))
    scene.joint("b", "slide", stiffness=12.0, springref=0.5)
    scene.actuator("b", 30.0, name="hard")
    scene.actuator("b", 10.0, name="soft", gear=-2.0)
    scene.actuator("b", gain=4.0, name="motor")
    model = qdsim.build(scene.build())
    u = model.command_from([0.1])
    # the joint's spring pulls with 12 (0.5 - 0.1) = 4.8: 3.6 and 1.2 N against it
    np.testing.assert_allclose(u, [0.1 - 3.6 / 30, -2 * (0.1 - 1.2 / 10), 0.0], rtol=1e-12)
    assert model.slice_u("b") == slice(0, 1)
    assert model.slice_u("motor") == slice(2, 3)
    assert qdsim.step(model, [0.1], u).q_next == pytest.approx([0.1], abs=1e-12)


def slider(**kw: float) -> qdsim.Model:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("b", mass=2.0, inertia=(1, 1, 1))
    scene.joint("b", "slide", damping=kw.pop("joint_damping", 0.0))
    scene.actuator("b", **kw)
    return qdsim.build(scene.build())


def test_closed_forms() -> None:
    motor = slider(gain=3.0)
    assert qdsim.step(motor, [0.2], [5.0], qdsim.Options(h=H)).q_next == pytest.approx(
        [0.2 + H * H * 15.0 / 2.0]
    )
    speed = slider(gain=700.0, damping=700.0)
    free = qdsim.step(speed, [0.0], [0.3], qdsim.Options(h=H)).q_next
    assert free == pytest.approx([H * H * 210.0 / 2.0])
    braked = qdsim.step(speed, [0.0], [0.3], qdsim.Options(h=H, damping=True)).q_next
    assert braked == pytest.approx([210.0 / (2.0 / H**2 + 700.0 / H)])
    slow = qdsim.step(speed, [0.0], [0.3], qdsim.Options(h=H, damping=True, epsilon=0.0)).q_next
    assert slow == pytest.approx([H * 0.3])
    door = slider(bias=6.0, joint_damping=8.0)
    opened = qdsim.step(door, [0.0], [0.0], qdsim.Options(h=H, damping=True)).q_next
    assert opened == pytest.approx([6.0 / (2.0 / H**2 + 8.0 / H)])
    # a gain that makes the spring unstable: the force of rest holds all the way
    push = slider(stiffness=20.0, gain_slope=(30.0, 0.0), bias=1.0)
    with pytest.raises(qdsim.SolverError):
        qdsim.step(push, [0.1], [2.0], qdsim.Options(h=H))


def spatial(stiffness: float, damping: float) -> str:
    both = f'stiffness="{stiffness}" damping="{damping}"'
    return f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <body pos="0 0 1" quat="0.8 0.6 0 0"><joint name="f" type="free" {both}/>
        <geom type="box" size="0.1 0.2 0.3"/>
        <body pos="0.1 0 0.5"><joint name="b" type="ball" {both}/><geom type="box" size="0.1 0.05 0.2"/>
      </body></body></worldbody>
      <keyframe><key name="home" qpos="1 2 3 0 0 1 0 .6 0 .8 0"/></keyframe></mujoco>"""


def test_springs_of_ball_and_free_joints_are_mujocos() -> None:
    rng = np.random.default_rng(3)
    xml = spatial(40.0, 0.7)
    model, mj = qdsim.load(xml), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj)
    for _ in range(10):
        q = model.integrate(model.description.reference_q, 0.8 * rng.standard_normal(model.nv))
        data.qpos[:] = q
        mujoco.mj_forward(mj, data)
        delta = 1e-3 * rng.standard_normal(model.nv)  # held there by what tau is made of
        M = model.mass_matrix(q)
        h = 0.1
        for damping in (False, True):
            data.qvel[:] = model.to_mujoco_qvel(q, delta / h) if damping else 0.0
            mujoco.mj_forward(mj, data)
            passive = model.from_mujoco_qvel(q, data.qfrc_passive)
            tau = M @ delta / h**2 + 40.0 * delta - passive
            q_next = qdsim.step(model, q, [], qdsim.Options(h=h, damping=damping), tau=tau).q_next
            np.testing.assert_allclose(model.difference(q_next, q), delta, atol=1e-10)


HAND = """<mujoco><option gravity="0 0 -9.81"/>
  <default><geom friction="0.7 0.02 0.01" condim="3"/></default>
  <worldbody><geom type="plane" size="1 1 .1"/>
    <body name="ball" pos="0 0 .1"><joint name="ball" type="free" damping="0.4" stiffness="3"/>
      <geom type="sphere" size="0.1" mass="0.5"/></body>
    <body name="swing" pos="-0.25 0 .35"><joint name="s" type="ball" damping="0.3" stiffness="4"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -.25" mass="0.2"/></body>
    <body pos="0.16 0 .1"><joint name="x" type="slide" axis="-1 0 0" stiffness="5" springref="0.1" damping="2"/>
      <geom type="capsule" size="0.05 0.04"/></body>
    <body pos="0 0.3 .1"><joint name="y" type="slide" axis="0 -1 0"/>
      <joint name="t" axis="1 0 0" damping="0.2"/>
      <geom type="box" size="0.05 0.14 0.04" mass="0.3"/></body>
  </worldbody>
  <actuator><position joint="x" kp="300" gear="-2"/><velocity joint="x" kv="4" gear="3"/>
    <motor joint="y" gear="6"/><damper joint="y" kv="9" ctrlrange="0 1"/>
    <general joint="t" gaintype="affine" gainprm="2 -6 -.5" biastype="affine" biasprm=".3 0 -.2"/>
    <general joint="t" biastype="affine" gainprm="2" biasprm=".1 -7 -.2" gear=".5"/></actuator></mujoco>"""


def hand() -> Scene:
    model = qdsim.load(HAND)

    def one(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        spread = np.full(model.nv, 0.01)
        spread[3:9] = 0.4
        q = model.integrate(model.default_q, spread * rng.uniform(-1, 1, model.nv))
        return q, rng.uniform(0.1, 0.9, model.nu)

    return Scene(model, one)


OPTIONS = {
    "exact": qdsim.Options(margin=0.3, h=0.06, damping=True),
    "without dampers": qdsim.Options(margin=0.3, h=0.06),
    "smoothed": qdsim.Options(margin=0.3, kappa=300.0, epsilon=0.6, damping=True),
    "pyramid": qdsim.Options(margin=0.3, friction="pyramid", h=0.07, damping=True),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", list(OPTIONS))
def test_derivatives(kind: str) -> None:
    """By every argument, of motors, dampers and springs of all joints in contact, against differences."""
    scene, options, rng = hand(), OPTIONS[kind], np.random.default_rng(1)
    model = scene.model
    compared = left_out = 0
    for _ in range(3):
        state = sample(scene, rng)
        d = differential(scene, state, options)
        found = check_products(model, d, state, options, tangents(model, rng, ARGUMENTS), rng, 1e-9)
        compared, left_out = compared + found[0], left_out + found[1]
    assert compared >= 0.8 * (compared + left_out)


def test_batches_and_rollouts_are_single_steps() -> None:
    scene, rng = hand(), np.random.default_rng(5)
    model, options = scene.model, OPTIONS["exact"]
    q, u = (np.array(x) for x in zip(*(scene.sample(rng) for _ in range(5))))
    own = {
        name: getattr(model.parameters, name) * rng.uniform(0.8, 1.2, (5, 1))
        for name in ("actuator_gain", "actuator_bias", "actuator_damping", "joint_damping")
    }
    batch = qdsim.linearize_batch(model, q, u, options, parameters=own, wrt=("q", "u"))
    for i in range(5):
        variant = model.with_parameters(**{name: value[i] for name, value in own.items()})
        lin = qdsim.linearize(variant, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], lin.q_next)
        np.testing.assert_array_equal(batch.B[i], lin.B)
    roll = qdsim.rollout(model, q[0], u, options).q
    now = q[0]
    for t in range(5):
        now = qdsim.step(model, now, u[t], options).q_next
        np.testing.assert_array_equal(roll[t + 1], now)


def test_what_has_a_spring_stays_so() -> None:
    model = qdsim.load(HAND)
    springs = model.parameters.actuator_stiffness
    assert (springs > 0).tolist() == [True, False, False, False, False, True]
    for wrong in (0.0 * springs, springs + 1.0):
        with pytest.raises(ValueError, match="stiffness must be"):
            model.with_parameters(actuator_stiffness=wrong)
        with pytest.raises(ValueError, match=r"actuator_stiffness.*must be"):
            qdsim.step_batch(
                model,
                model.default_q[None],
                np.zeros((1, model.nu)),
                parameters={"actuator_stiffness": wrong[None]},
            )
    assert model.with_parameters(actuator_gain=0.0).nu == model.nu
    with pytest.raises(ValueError, match="stiffness must be positive"):
        qdsim.SceneBuilder().actuator("j")
