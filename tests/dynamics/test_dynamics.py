"""The second-order step against mechanics: MuJoCo's bias forces, closed forms, energies, the quasi-dynamic limit."""

from __future__ import annotations

import pickle

import mujoco
import numpy as np
import pytest
import scenes
from mass_matrix import mass_matrix
from scipy.integrate import solve_ivp

import qdsim
from qdsim import DynamicOptions, step_dynamic

G = 9.81

TREE = """<mujoco><worldbody>
<body pos="0 0 1"><joint name="b" type="ball" damping=".1" armature=".05"/>
  <geom type="capsule" size=".1 .2" pos=".1 .2 .3"/>
  <body pos=".3 .1 0"><joint axis="1 2 3" armature=".02" stiffness="2" springref="17"/>
    <joint name="s" type="slide" axis="0 1 1"/><geom type="box" size=".1 .2 .3" pos=".2 0 .1"/>
    <body pos="0 .4 .1"><joint name="h" axis="0 1 .2" pos=".1 .2 .3" damping=".3"/>
      <geom type="ellipsoid" size=".1 .2 .15"/></body></body></body>
<body pos="3 0 0"><joint name="f" type="free" damping=".2"/><geom type="box" size=".1 .2 .3" pos=".3 .1 .2"/>
  <body pos=".5 0 0"><joint type="ball"/><geom type="capsule" size=".1 .2" pos=".1 .2 .3"/></body></body>
</worldbody><contact><exclude body1="world" body2="world"/></contact></mujoco>"""


def random_state(model, rng, spread=0.7, speed=1.0):
    q = model.integrate(model.default_q, spread * rng.normal(size=model.nv))
    return q, speed * rng.normal(size=model.nv)


def run(model, q, v, options, steps, u=()):
    """States (steps + 1), and the last step."""
    qs, vs, s = [np.asarray(q, float)], [np.asarray(v, float)], None
    for _ in range(steps):
        s = step_dynamic(model, qs[-1], vs[-1], u, options)
        qs.append(s.q_next)
        vs.append(s.v_next)
    return np.array(qs), np.array(vs), s


def box_on_floor(mu: float, geom: str = '<geom type="box" size=".1 .1 .1" mass="2" {0}/>', **more):
    friction = f'friction="{mu} {more.get("torsion", 0.005)} 0.0001" condim="{more.get("dim", 3)}"'
    return qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="5 5 1" {friction}/>'
        f'<body pos="0 0 .1"><freejoint/>{geom.format(friction)}</body></worldbody></mujoco>'
    )


# ---------------------------------------------------------------- mechanics


def test_bias_forces_are_those_of_mujoco():
    model = qdsim.load(TREE)
    mj = mujoco.MjModel.from_xml_string(TREE)
    mj.opt.gravity[:] = 0.0
    data, rng = mujoco.MjData(mj), np.random.default_rng(3)
    for _ in range(20):
        q, v = random_state(model, rng)
        data.qpos[:], data.qvel[:] = q, qdsim.to_mujoco_velocity(model, q, v)
        mujoco.mj_forward(mj, data)
        # ours are for accelerations of our own coordinates, of which MuJoCo's turn with the bodies
        by_q, by_v = qdsim.mujoco_velocity_jacobians(model, q, v)
        dense = mass_matrix(mj, data) - np.diag(mj.dof_armature)
        wanted = by_v.T @ (data.qfrc_bias + dense @ by_q @ v)
        np.testing.assert_allclose(model.bias_force(q, v), wanted, rtol=1e-9, atol=1e-10)
        kinetic, potential = model.energy(q, v)
        M = model.mass_matrix(q) + np.diag(
            [model.parameters.joint_armature[j] for j in dof_joints(model)]
        )
        assert kinetic == pytest.approx(0.5 * v @ M @ v, rel=1e-12)
        mj.opt.gravity[:] = model.parameters.gravity
        mujoco.mj_forward(mj, data)
        mujoco.mj_energyPos(mj, data)
        assert potential == pytest.approx(data.energy[0], rel=1e-10)
        mj.opt.gravity[:] = 0.0


def dof_joints(model):
    out = []
    for j, name in enumerate(model.joint_names):
        part = model.slice_v(name)
        out += [j] * (part.stop - part.start)
    return out


def test_coriolis_forces_do_the_work_of_a_moving_mass_matrix():
    model, rng, e = qdsim.load(TREE), np.random.default_rng(0), 1e-5
    for _ in range(10):
        q, v = random_state(model, rng)
        ahead, behind = (model.mass_matrix(model.integrate(q, s * e * v)) for s in (1, -1))
        power = 0.5 * v @ (ahead - behind) @ v / (2 * e)
        assert v @ model.bias_force(q, v) == pytest.approx(power, abs=1e-6 * max(1, abs(power)))


def test_velocities_of_mujoco_and_back():
    model, rng, e = qdsim.load(TREE), np.random.default_rng(1), 1e-6
    q, v = random_state(model, rng)
    qvel = qdsim.to_mujoco_velocity(model, q, v)
    np.testing.assert_allclose(qdsim.from_mujoco_velocity(model, q, qvel), v, atol=1e-14)
    mj = mujoco.MjModel.from_xml_string(TREE)
    moved = np.array(q)
    mujoco.mj_integratePos(mj, moved, qvel, e)
    np.testing.assert_allclose(model.difference(moved, q) / e, v, atol=1e-8)
    by_q, by_v = qdsim.mujoco_velocity_jacobians(model, q, v)
    t = rng.normal(size=model.nv)
    ends = [qdsim.to_mujoco_velocity(model, model.integrate(q, s * e * t), v) for s in (1, -1)]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * e), by_q @ t, atol=1e-8)
    np.testing.assert_allclose(qdsim.to_mujoco_velocity(model, q, t), by_v @ t, atol=1e-13)
    many = qdsim.to_mujoco_velocity(model, np.stack([q, q]), np.stack([v, t]))
    np.testing.assert_allclose(many, [qvel, by_v @ t], atol=1e-13)
    with pytest.raises(ValueError, match="qvel: expected shape"):
        qdsim.from_mujoco_velocity(model, q, v[:3])
    with pytest.raises(ValueError, match="q: the quaternion"):
        qdsim.to_mujoco_velocity(model, 0.0 * q, v)


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", ["planar hand", "sphere", "box", "capsule"])
@pytest.mark.parametrize("kappa", [None, 300.0])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_at_rest_without_robots_masses_it_is_the_quasi_dynamic_step(name, kappa, friction):
    scene = scenes.planar_hand() if name == "planar hand" else scenes.spatial()[name]
    model = scene.model
    p = model.parameters
    driven = {joint for joint in model.joint_names if has_actuator(model, joint)}
    light = [any(joint.name in driven for joint in b.joints) for b in model.description.bodies]
    mass, inertia = p.body_mass.copy(), p.body_inertia.copy()
    mass[light], inertia[light] = 0.0, 0.0
    model = model.with_parameters(
        body_mass=mass, body_inertia=inertia, joint_armature=0.0, joint_damping=0.0
    )
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(6):
        q, u = scene.sample(rng)
        same = {"h": 0.05, "friction": friction, "kappa": kappa}
        try:
            one = qdsim.step(model, q, u, qdsim.Options(**same))
        except qdsim.SolverError:
            continue
        still = DynamicOptions(gravity_on_actuated=False, **same)
        two = step_dynamic(model, q, np.zeros(model.nv), u, still)
        np.testing.assert_allclose(two.delta, one.delta, atol=1e-9)
        np.testing.assert_allclose(two.contacts["force"], one.contacts["force"], atol=1e-5)
        compared += 1
    assert compared >= 3


def has_actuator(model, joint):
    part = model.slice_v(joint)
    return any(part.start <= v < part.stop for v in model.actuated_v)


def test_the_step_is_the_linear_equation_that_it_says():
    """Without rows: (M + h D + h^2 K) v+ = M v + h (gravity + tau - c - K_s stretch)."""
    model, rng = qdsim.load(TREE), np.random.default_rng(5)
    joints, h = dof_joints(model), 0.02
    p = model.parameters
    for _ in range(5):
        q, v = random_state(model, rng, spread=0.3)
        tau = rng.normal(size=model.nv)
        M = model.mass_matrix(q) + np.diag(p.joint_armature[joints])
        e = 1e-6
        fall = np.array(
            [
                -(
                    model.energy(model.integrate(q, e * d), 0 * v)[1]
                    - model.energy(model.integrate(q, -e * d), 0 * v)[1]
                )
                / (2 * e)
                for d in np.eye(model.nv)
            ]
        )  # gravity and springs together
        D, K = np.diag(p.joint_damping[joints]), np.diag(p.joint_stiffness[joints])
        wanted = np.linalg.solve(
            M + h * D + h * h * K, M @ v + h * (fall + tau - model.bias_force(q, v))
        )
        s = step_dynamic(model, q, v, [], DynamicOptions(h=h, margin=0.0), tau=tau)
        if len(s.contacts) == 0:
            np.testing.assert_allclose(s.v_next, wanted, atol=2e-7)
            np.testing.assert_allclose(s.q_next, model.integrate(q, h * s.v_next), atol=1e-14)


def test_order_one_on_a_double_pendulum():
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><body><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -1" size=".001" mass="1"/>'
        '<body pos="0 0 -1"><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -1" size=".001" mass="1"/>'
        "</body></body></worldbody></mujoco>"
    )
    start = np.array([0.0, 0.5])

    def slope(_, x):
        q, v = x[:2], x[2:]
        fall = model.energy
        e = 1e-5
        force = [
            -(fall(q + e * d, 0 * v)[1] - fall(q - e * d, 0 * v)[1]) / (2 * e) for d in np.eye(2)
        ]
        return np.concatenate(
            [v, np.linalg.solve(model.mass_matrix(q), force - model.bias_force(q, v))]
        )

    exact = solve_ivp(slope, (0, 1), [*start, 0, 0], "DOP853", rtol=1e-10, atol=1e-11).y[:2, -1]
    errors = []
    for h in (0.01, 0.005, 0.0025):
        qs, _, _ = run(model, start, [0, 0], DynamicOptions(h=h), round(1 / h))
        errors.append(np.abs(qs[-1] - exact).max())
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(rates, 1.0, atol=0.06)
    assert errors[0] < 0.1


def test_free_flight_keeps_momentum_and_falls_late_by_half_a_step():
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><body><freejoint/>'
        '<geom type="box" size=".1 .2 .3" mass="2"/></body></worldbody></mujoco>'
    )
    h, v0 = 0.01, np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    qs, vs, _ = run(model, model.default_q, v0, DynamicOptions(h=h), 50)
    t = 0.5
    np.testing.assert_allclose(vs[-1][:3], v0[:3] - [0, 0, G * t], rtol=1e-12)
    assert qs[-1][2] == pytest.approx(3 * t - 0.5 * G * t * t - 0.5 * G * h * t, rel=1e-12)


@pytest.mark.parametrize("h", [0.01, 0.002])
def test_a_top_as_documented(h):
    """I = (1, 2, 3), spin near the unstable axis for 20 s: what the explicit gyroscopic force makes of E and L."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("top", mass=1.0, inertia=(1.0, 2.0, 3.0))
    scene.joint("top", "ball")
    model = qdsim.build(scene.build())
    spin = np.array([0.01, 5.0, 0.01])
    o = DynamicOptions(h=h, gyroscopic="explicit")
    _, _, last = run(model, model.default_q, spin, o, round(20 / h))
    energy = 0.5 * (spin**2 @ [1, 2, 3])
    assert last.kinetic_energy[1] / energy == pytest.approx(1.28 if h == 0.01 else 1.048, abs=0.01)


# ---------------------------------------------------------------- contacts: closed forms of the convex law


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize(("mu", "v0", "h"), [(0.5, 2.0, 0.01), (0.3, 1.0, 0.001), (1.2, 4.0, 0.02)])
def test_a_block_that_slides_hops_as_the_relaxation_says(friction, mu, v0, h):
    model = box_on_floor(mu)
    o = DynamicOptions(h=h, friction=friction)
    s = step_dynamic(model, model.default_q, [v0, 0, 0, 0, 0, 0], [], o)
    # of a block that does not turn: its four corners share the load evenly only at rest
    if mu == 0.3:
        assert s.v_next[0] < v0
    ball = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="5 5 1" friction="{mu}"/>'
        '<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
        f'<joint type="slide"/><geom size=".1" mass="2" friction="{mu}"/></body></worldbody></mujoco>'
    )
    s = step_dynamic(ball, ball.default_q, [v0, 0, 0], [], o)
    along = (v0 - mu * G * h) / (1 + mu * mu)
    np.testing.assert_allclose(s.v_next, [along, 0, mu * along], atol=1e-11)
    # while it hops, v_t + mu v_n falls by mu g h a step
    q, v, t = ball.default_q, np.array([v0, 0.0, 0.0]), 0.0
    while t < 0.15:
        s = step_dynamic(ball, q, v, [], o)
        q, v, t = s.q_next, s.v_next, t + h
        if v[0] > 1e-6:
            assert v[0] + mu * v[2] == pytest.approx(v0 - mu * G * t, abs=1e-9)


def test_a_ball_that_slips_comes_to_roll():
    """Steady slip ends at 5/7 v0 in truth; the relaxation's first step is at 0.7151 and it hops by 3.1 mm."""
    model = box_on_floor(0.3, '<geom size=".1" mass="1" {0}/>')
    qs, vs, _ = run(model, model.default_q, [1, 0, 0, 0, 0, 0], DynamicOptions(h=0.01), 100)
    assert vs[-1][0] == pytest.approx(0.7151, abs=2e-4)
    assert vs[-1][4] == pytest.approx(vs[-1][0] / 0.1, rel=1e-6)
    assert qs[:, 2].max() - 0.1 == pytest.approx(0.0031, abs=2e-4)


def test_spin_with_torsion():
    mu, mass, inertia, spin, h = 0.01, 1.0, 0.004, 10.0, 0.01
    model = box_on_floor(0.5, '<geom size=".1" mass="1" {0}/>', torsion=mu, dim=4)
    assert model.parameters.body_inertia[1, 2, 2] == pytest.approx(inertia)
    s = step_dynamic(model, model.default_q, [0, 0, 0, 0, 0, spin], [], DynamicOptions(h=h))
    wanted = (spin - h * mu * mass * G / inertia) / (1 + mu * mu * mass / inertia)
    assert s.v_next[5] == pytest.approx(wanted, abs=1e-9)
    assert s.q_next[2] - 0.1 == pytest.approx(h * mu * wanted, abs=1e-12)


@pytest.mark.parametrize("h", [0.1, 0.01, 0.001])
def test_a_stack_rests(h):
    bodies = "".join(
        f'<body pos="0 0 {0.1 + 0.2 * i}"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>'
        for i in range(4)
    )
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="5 5 1"/>{bodies}'
        "</worldbody></mujoco>"
    )
    s = step_dynamic(model, model.default_q, np.zeros(model.nv), [], DynamicOptions(h=h))
    np.testing.assert_allclose(s.v_next, 0.0, atol=1e-9 / h)
    floor = s.contacts[s.contacts["body_a"] == 0]
    assert floor["force"][:, 0].sum() == pytest.approx(4 * G, rel=1e-9)
    np.testing.assert_allclose(s.impulse, h * s.contacts["force"], rtol=1e-15)


@pytest.mark.parametrize("slope", [10.0, 25.0, 40.0])
def test_an_incline_holds_up_to_its_angle_of_friction(slope):
    mu, a, h = 0.5, np.radians(slope), 0.01
    model = qdsim.load(
        f'<mujoco><option gravity="{G * np.sin(a)} 0 {-G * np.cos(a)}"/><worldbody>'
        f'<geom type="plane" size="5 5 1" friction="{mu}"/><body pos="0 0 .1">'
        '<joint type="slide" axis="1 0 0"/><joint type="slide"/>'
        f'<geom size=".1" friction="{mu}"/></body></worldbody></mujoco>'
    )
    _, vs, _ = run(model, model.default_q, [0, 0], DynamicOptions(h=h), 20)
    if np.tan(a) <= mu:
        np.testing.assert_allclose(vs, 0.0, atol=1e-10)
        return
    # from rest, sliding: the speed along and mu times that away sum to what Coulomb's force leaves
    t = h * np.arange(21)
    np.testing.assert_allclose(
        vs[:, 0] + mu * vs[:, 1], t * G * (np.sin(a) - mu * np.cos(a)), atol=1e-9
    )


@pytest.mark.parametrize("e", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_a_ball_bounces_with_its_restitution(e):
    model = box_on_floor(0.0, '<geom size=".1" mass="1" {0}/>')
    q = np.array(model.default_q)
    q[2] = 1.1
    o = DynamicOptions(h=0.01, restitution=e)
    v = np.zeros(6)
    heights, bounces = [], 0
    for _ in range(120):
        s = step_dynamic(model, q, v, [], o)
        if s.info.bounces:
            bounces += 1
            assert s.v_next[2] == pytest.approx(-e * v[2], abs=1e-10)
        q, v = s.q_next, s.v_next
        heights.append(q[2] - 0.1)
        if bounces and v[2] < 0:
            break
    if e == 0.0:
        assert bounces == 0 and abs(q[2] - 0.1) < 1e-9
        return
    after = heights[int(np.argmin(heights)) :]
    table = {0.3: 0.09, 0.5: 0.263, 0.9: 0.814, 1.0: 1.0}
    assert max(after) == pytest.approx(table[e], abs=0.05)


def test_rest_stays_rest_with_restitution():
    model = box_on_floor(0.5)
    _, vs, s = run(model, model.default_q, np.zeros(6), DynamicOptions(restitution=0.9), 50)
    np.testing.assert_allclose(vs, 0.0, atol=1e-8)
    assert s.info.bounces == 0


def cradle(gap):
    bodies = "".join(
        f'<body pos="{(0.2 + gap) * i} 0 0"><joint type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>'
        for i in range(3)
    )
    return qdsim.load(f'<mujoco><option gravity="0 0 0"/><worldbody>{bodies}</worldbody></mujoco>')


def test_a_cradle_of_three_touching_balls_shares():
    """Newton's rule at once for all: (-1, 2, 2) / 3, with the energy kept; apart, one after the other, (0, 0, 1)."""
    o = DynamicOptions(h=0.01, restitution=1.0)
    s = step_dynamic(cradle(0.0), np.zeros(3), [1, 0, 0], [], o)
    np.testing.assert_allclose(s.v_next, [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)
    assert s.kinetic_energy[1] == pytest.approx(s.kinetic_energy[0], rel=1e-12)
    _, vs, _ = run(cradle(0.05), np.zeros(3), [1, 0, 0], o, 30)
    np.testing.assert_allclose(vs[-1], [0, 0, 1], atol=1e-12)


def test_restitution_of_geometries():
    """A pair bounces with the larger of what its two geometries say, and with the option's where neither does."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", restitution=0.2)
    for i, own in enumerate((None, 0.7, 0.1)):
        scene.body(f"b{i}", mass=1.0, pos=(i, 0, 0.1))
        scene.joint(f"b{i}", "slide")
        scene.geom(f"b{i}", "sphere", 0.1, restitution=own)
    model = qdsim.build(scene.build())
    s = step_dynamic(model, np.zeros(3), -np.ones(3), [], DynamicOptions(restitution=0.9))
    np.testing.assert_allclose(s.v_next, [0.2, 0.7, 0.2], atol=1e-12)
    with pytest.raises(ValueError, match="restitution"):
        scene.geom("world", "plane", restitution=1.2)


# ---------------------------------------------------------------- stabilisation


def test_recovery_is_capped():
    model = box_on_floor(0.5)
    deep = np.array(model.default_q)
    deep[2] -= 0.01
    o = DynamicOptions(h=0.001)
    free = step_dynamic(model, deep, np.zeros(6), [], o)
    assert free.v_next[2] == pytest.approx(10.0, rel=1e-6)
    slow = step_dynamic(model, deep, np.zeros(6), [], o.replace(recovery_speed=0.2))
    assert slow.v_next[2] == pytest.approx(0.2, rel=1e-6)
    assert (free.info.capped_rows, slow.info.capped_rows) == (0, 4)
    still = step_dynamic(model, deep, np.zeros(6), [], o.replace(recovery_speed=0.0))
    np.testing.assert_allclose(still.v_next, 0.0, atol=1e-9)
    out = qdsim.load(
        '<mujoco><worldbody><body><joint type="slide" axis="1 0 0" range="0 1" limited="true"/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    s = step_dynamic(out, [-0.3], [0.0], [], DynamicOptions(recovery_speed=0.5))
    assert s.v_next[0] == pytest.approx(0.5, rel=1e-9) and s.info.capped_rows == 1


SCENE = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="5 5 1" friction=".5"/>
<geom type="box" size=".05 1 .5" pos=".7 0 .3" euler="0 20 0" friction=".5"/>{}</worldbody></mujoco>"""
SHAPES = (
    '<geom type="sphere" size=".1" {}/>',
    '<geom type="box" size=".1 .08 .06" {}/>',
    '<geom type="capsule" size=".06 .1" {}/>',
    '<geom type="ellipsoid" size=".12 .08 .06" {}/>',
    '<geom type="cylinder" size=".08 .06" {}/>',
)


def heap(rng, count):
    text = ""
    for i in range(count):
        friction = f'friction="{rng.uniform(0.1, 1.2):.3f} .01 .001" condim="{int(rng.choice([1, 3, 4, 6]))}"'
        x, y = rng.uniform(-0.3, 0.4, 2)
        turn = " ".join(f"{t:.3f}" for t in rng.normal(size=4))
        text += f'<body pos="{x:.3f} {y:.3f} {0.2 + 0.22 * i:.3f}" quat="{turn}"><freejoint/>'
        text += rng.choice(SHAPES).format(friction) + "</body>"
    return qdsim.load(SCENE.format(text))


def kinetic_metric(model, q, h):
    return model.mass_matrix(q)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_energy_and_infeasibility_stay_bounded(friction):
    """Where rest is feasible the new velocity is no longer, in the kinetic metric, than the free one (it is its
    projection on a cone with its tip at rest); and what is left of penetrations is of second order in the motion."""
    rng = np.random.default_rng(11)
    feasible = 0
    for trial in range(4):
        model = heap(rng, 5)
        q, v = np.array(model.default_q), 0.5 * rng.normal(size=model.nv)
        h = (0.002, 0.005, 0.01, 0.02)[trial]
        o = DynamicOptions(h=h, friction=friction)
        for _ in range(40):
            s = step_dynamic(model, q, v, [], o)
            if np.all(model.collide(q)["dist"] >= 0):
                feasible += 1
                M = model.mass_matrix(q)
                mass = np.repeat(model.parameters.body_mass[1:], 6).reshape(-1, 6)
                mass[:, 3:] = 0.0
                fall = M @ np.zeros(model.nv)
                fall[2::6] = -G * model.parameters.body_mass[1:]
                free = np.linalg.solve(M, M @ v + h * (fall - model.bias_force(q, v)))
                assert s.v_next @ M @ s.v_next <= (free @ M @ free) * (1 + 1e-9)
            q, v = s.q_next, s.v_next
            depth = -min(model.collide(q)["dist"].min(initial=0.0), 0.0)
            assert depth <= 8.0 * np.max(np.abs(h * v)) ** 2 + 1e-9
    assert feasible > 10


def test_a_smoothed_step_tends_to_the_exact_one():
    model = box_on_floor(0.5)
    v = np.array([0.3, 0.1, -1.0, 0.2, 0.3, 0.1])
    exact = step_dynamic(model, model.default_q, v, [], DynamicOptions())
    gaps = []
    for kappa in (1e2, 1e4, 1e6):
        s = step_dynamic(model, model.default_q, v, [], DynamicOptions(kappa=kappa))
        gaps.append(np.abs(s.v_next - exact.v_next).max())
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-2


# ---------------------------------------------------------------- the interface


def test_results_are_what_they_say():
    model = box_on_floor(0.5)
    o = DynamicOptions(restitution=0.5)
    s = step_dynamic(model, model.default_q, [1, 0, -2, 0, 0, 0], [], o)
    assert isinstance(s, qdsim.DynamicStep) and s.h == 0.01
    assert s.info.bounces == 4 and "v_next=" in repr(s)
    np.testing.assert_array_equal(s.v_next, s.delta / 0.01)
    again = pickle.loads(pickle.dumps(s))
    for name in ("q_next", "v_next", "delta", "impulse", "energy", "kinetic_energy", "limit_force"):
        np.testing.assert_array_equal(getattr(again, name), getattr(s, name))
        assert not getattr(s, name).flags.writeable
    np.testing.assert_allclose(s.energy, s.kinetic_energy + s.potential_energy, rtol=1e-15)
    assert again.info.bounces == 4
    warm = step_dynamic(model, s.q_next, s.v_next, [], o, warm_start=s)
    cold = step_dynamic(model, s.q_next, s.v_next, [], o)
    np.testing.assert_allclose(warm.v_next, cold.v_next, atol=1e-7)
    with pytest.raises(AttributeError, match=r"DynamicStep.*nothing"):
        s.nothing  # noqa: B018


def test_held_joints_stop_at_once():
    model = qdsim.load(TREE)
    v = np.ones(model.nv)
    s = step_dynamic(model, model.default_q, v, [], DynamicOptions(held=("s", "b")))
    np.testing.assert_array_equal(s.v_next[model.slice_v("s")], 0.0)
    np.testing.assert_array_equal(s.v_next[model.slice_v("b")], 0.0)
    assert np.all(s.v_next[model.slice_v("f")] != 0.0)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"h": 0.0}, ValueError, "h: "),
        ({"restitution": 1.1}, ValueError, "restitution: "),
        ({"restitution": float("nan")}, ValueError, "restitution: "),
        ({"recovery_speed": -1.0}, ValueError, "recovery_speed: "),
        ({"bounce_speed": "fast"}, TypeError, "bounce_speed: "),
        ({"law": "coulombs"}, ValueError, "law: "),
        ({"kappa": 0.0}, ValueError, "kappa: "),
        ({"friction": "square"}, ValueError, "friction: "),
    ],
)
def test_wrong_options_are_named(change, error, message):
    with pytest.raises(error, match=message):
        DynamicOptions(**change)


def test_wrong_arguments_are_named():
    model = box_on_floor(0.5)
    q, v = model.default_q, np.zeros(6)
    with pytest.raises(ValueError, match=r"^v: "):
        step_dynamic(model, q, v[:5], [])
    with pytest.raises(ValueError, match=r"^v: "):
        step_dynamic(model, q, [np.nan] * 6, [])
    with pytest.raises(
        TypeError, match=r"options: expected a qdsim.DynamicOptions, got Options|Options"
    ):
        step_dynamic(model, q, v, [], qdsim.Options())
    with pytest.raises(TypeError, match=r"options: expected a qdsim.Options"):
        qdsim.step(model, q, [], DynamicOptions())
    with pytest.raises(ValueError, match="v is too large"):
        step_dynamic(model, q, [1e200, 0, 0, 1e200, 1e200, 0], [])
    o = DynamicOptions(h=0.02, held=("a",))
    assert pickle.loads(pickle.dumps(o)) == o and o.replace(h=0.1).held == ("a",)


def test_mass_matrix_and_bias_force_with_armature():
    """(mass_matrix + diag(armature)) dv/dt + bias_force = tau, with dv/dt from a step that is short."""
    armature = np.array([0.3, 0.02])
    model = qdsim.load(
        '<mujoco><option gravity="0 0 0"/><worldbody>'
        f'<body><joint axis="0 1 0" armature="{armature[0]}"/><geom size=".1" pos=".5 0 0" mass="1"/>'
        f'<body pos="1 0 0"><joint axis="0 1 0" armature="{armature[1]}"/>'
        '<geom size=".1" pos=".4 0 0" mass=".7"/></body></body></worldbody></mujoco>'
    )
    q, v, tau = np.array([0.2, 0.9]), np.array([1.5, -2.0]), np.array([0.4, -0.1])
    h = 1e-6
    s = qdsim.step_dynamic(model, q, v, [], qdsim.DynamicOptions(h=h), tau=tau)
    M = model.mass_matrix(q) + np.diag(armature)
    rate = np.linalg.solve(M, tau - model.bias_force(q, v))
    np.testing.assert_allclose((s.v_next - v) / h, rate, rtol=1e-4)
    assert np.abs(model.bias_force(q, v)).min() > 0.1
