"""Small tools of grasping against closed forms: closing, inverse kinematics, holding, closure."""

import dataclasses
import math

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning.grasps.closing import close_grasp, close_grasps, meet
from qdsim.planning.grasps.placing import placed
from qdsim.planning.grasps.samplers.kept import KeptGrasps

PINCH = """
<mujoco>
  <option gravity="0 0 {g}"/>
  <worldbody>
    <body name="left" pos="-0.4 0 0"><joint name="left" type="slide" axis="1 0 0" range="-1 0.9"/>
      <geom type="sphere" size="0.1" mass="1"/></body>
    <body name="right" pos="0.4 0 0"><joint name="right" type="slide" axis="-1 0 0" range="-1 0.9"/>
      <geom type="sphere" size="0.1" mass="1"/></body>
    <body name="disc">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" axis="0 1 0"/>
      <geom type="{shape}" size="0.2 0.2 0.2" mass="2"/></body>
  </worldbody>
  <contact>
    <pair geom1="g0" geom2="g2" friction="{mu} {mu}" condim="{dim}"/>
    <pair geom1="g1" geom2="g2" friction="{mu} {mu}" condim="{dim}"/>
  </contact>
  <actuator><position joint="left" kp="100"/><position joint="right" kp="200"/></actuator>
</mujoco>
"""


def pinch(g=0.0, mu=0.5, dim=3, shape="box"):
    text = PINCH.format(g=g, mu=mu, dim=dim, shape=shape)
    for i in range(3):
        text = text.replace("<geom type", f'<geom name="g{i}" contype="0" conaffinity="0" type_', 1)
    return qdsim.load(text.replace("type_", "type"))


def test_closing_stops_each_finger_at_the_object():
    model = pinch()
    q = np.zeros(5)
    closed = planning.close_grasp(model, q, [1.0, 0.5], tolerance=1e-7)
    # The gap is 0.4 - 0.1 - 0.2 on both sides, whatever the speeds.
    np.testing.assert_allclose(closed.q, [0.1, 0.1, 0, 0, 0], atol=2e-7)
    assert np.all(closed.q[:2] <= 0.1) and closed.blocked.all() and not closed.at_limit.any()
    assert {model.body_names[b] for b in closed.touching} == {"left", "right"}
    kept = planning.close_grasp(model, q, [1.0, 1.0], tolerance=1e-7, gap=0.02)
    np.testing.assert_allclose(kept.q[:2], 0.08, atol=2e-7)
    short = planning.close_grasp(model, q, [1.0, 0.0], reach=0.05)
    np.testing.assert_allclose(short.q[:2], [0.05, 0.0])
    away = planning.close_grasp(model, q, [-1.0, 0.0], reach=5.0)
    assert away.q[0] == -1.0 and away.at_limit[0]
    inside = planning.close_grasp(model, [0.2, 0, 0, 0, 0], [1.0, 1.0])
    assert inside.q[0] == 0.2  # what penetrates already does not move, the other finger does
    assert 0.0999 <= inside.q[1] <= 0.1
    with pytest.raises(ValueError, match="direction"):
        planning.close_grasp(model, q, [1.0])
    with pytest.raises(ValueError, match="gap"):
        planning.close_grasp(model, q, [1.0, 1.0], gap=-1.0)


def test_closing_bends_outer_joints_on():
    """A finger whose inner link is stopped keeps bending its outer one."""
    system = systems.load("allegro_sphere")
    task = system.tasks["half_turn"]
    model, rng = system.model, np.random.default_rng(1)
    q = task.sampler(model, task.start, rng)
    contacts = model.collide(q, 1e-3)
    ball = model.body_names.index("ball")
    links = {int(c["body_a"]) for c in contacts if c["body_b"] == ball}
    links |= {int(c["body_b"]) for c in contacts if c["body_a"] == ball}
    assert len(links) >= 3


def test_kept_grasps_touch_with_the_same_shapes_where_the_object_is_now():
    task = systems.load("planar_hand").tasks["half_turn"]
    model, rng = task.grasping_model, np.random.default_rng(0)
    kept = np.array([task.sampler(model, task.start, rng) for _ in range(8)])

    def touched(q):
        return np.flatnonzero(with_the_disc(model) & (qdsim.pair_distances(model, q) < 1e-3))

    def none(*_):
        return None

    moved = task.with_object(task.start, [0.03, 0.02, 0.4])
    sampler = KeptGrasps(none, "disc", kept)
    found = [q for _ in range(10) if (q := sampler(model, moved, rng)) is not None]
    assert found
    before = {tuple(touched(q)) for q in kept}
    for q in found:
        np.testing.assert_array_equal(q[model.slice_q("disc")], moved[model.slice_q("disc")])
        assert set(touched(q)) >= set(min(before, key=lambda own: len(set(own) - set(touched(q)))))
        assert qdsim.pair_distances(model, q).min() >= 0.0
    assert KeptGrasps(none, "disc", kept[:0])(model, moved, rng) is None


def with_the_disc(model):
    """Which pairs are of the disc and a finger."""
    a, b = np.asarray(model.geom_body)[np.asarray(model.pair_geom).reshape(-1, 2)].T
    disc = model.body_names.index("disc")
    return (a == disc) ^ (b == disc)


def test_inverse_kinematics_of_two_links_is_the_closed_form():
    model = systems.load("planar_hand").model
    q = np.array(model.keyframes["start"].q)
    body, tip = "right_link_2", np.array([0.0, 0.2, 0.0])
    base = model.body_pose(q, "right_link_0")[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.uniform([0.1, 0.1], [1.4, 2.2])
        target = base + [
            0.0,
            0.3 * math.cos(a) + 0.2 * math.cos(a + b),
            0.3 * math.sin(a) + 0.2 * math.sin(a + b),
        ]
        found = planning.reach_point(model, q, body, tip, target, tolerance=1e-9)
        assert found.success and found.position_error <= 1e-9
        pos, rot = model.body_pose(found.q, body)
        np.testing.assert_allclose(pos + rot @ tip, target, atol=1e-9)
        np.testing.assert_allclose(found.q[model.slice_q("right_1")], a, atol=1e-6)
        np.testing.assert_allclose(found.q[model.slice_q("right_2")], b, atol=1e-6)
        assert np.array_equal(found.q[:5], q[:5])  # the left finger and the disc have not moved


def test_inverse_kinematics_out_of_reach_says_how_far():
    model = systems.load("planar_hand").model
    q = np.array(model.keyframes["start"].q)
    base = model.body_pose(q, "right_link_0")[0]
    far = planning.reach_point(model, q, "right_link_2", [0, 0.2, 0], base + [0, 0.6, 0.0])
    assert not far.success and far.position_error == pytest.approx(0.1, abs=1e-5)


def test_inverse_kinematics_with_a_direction():
    model = systems.load("iiwa_box_push").model
    q = np.array(model.keyframes["start"].q)
    target, direction = np.array([0.5, 0.1, 0.15]), np.array([1.0, 0.3, -0.4])
    found = planning.reach_point(
        model, q, "arm_link_7", [0, 0, 0.05], target, axis=[0, 0, 2.0], direction=direction
    )
    pos, rot = model.body_pose(found.q, "arm_link_7")
    assert found.success
    np.testing.assert_allclose(pos + rot @ [0, 0, 0.05], target, atol=1e-6)
    np.testing.assert_allclose(rot[:, 2], direction / np.linalg.norm(direction), atol=2e-4)
    with pytest.raises(ValueError, match="both or neither"):
        planning.reach_point(model, q, "arm_link_7", [0, 0, 0], target, axis=[0, 0, 1])
    with pytest.raises(ValueError, match="not zero"):
        planning.reach_point(
            model, q, "arm_link_7", [0, 0, 0], target, axis=[0] * 3, direction=target
        )


def test_holding_against_gravity_is_the_closed_form():
    """Two fingers hold 2 kg: each carries m g / 2 by friction, pressed with m g / (2 mu)."""
    g, mu = 10.0, 0.5
    model = pinch(-g, mu)
    q = np.array([0.1, 0.1, 0.0, 0.0, 0.0])
    held = planning.holding_command(model, q)
    normal = 2.0 * g / 2.0 / mu
    np.testing.assert_allclose(held.u, q[:2] + normal / np.array([100.0, 200.0]), rtol=1e-6)
    np.testing.assert_allclose(held.torque, normal, rtol=1e-6)
    by_finger = [held.contacts["force"][held.contacts["geom_a"] == i, 0].sum() for i in (0, 1)]
    np.testing.assert_allclose(by_finger, normal, rtol=1e-6)
    # The step itself agrees: with this command nothing moves.
    options = qdsim.Options(h=0.1, margin=0.05)
    np.testing.assert_allclose(qdsim.step(model, q, held.u, options).delta, 0.0, atol=1e-6)


def test_no_equilibrium_is_an_error_with_what_is_left():
    model = pinch(-10.0, dim=1)
    q = np.array([0.1, 0.1, 0.0, 0.0, 0.0])
    with pytest.raises(planning.EquilibriumError, match="joint 'z'") as caught:
        planning.holding_command(model, q)
    np.testing.assert_allclose(caught.value.residual, [0, 0, 0, -20.0, 0], atol=1e-6)
    # The load turned round by applied forces: a free equilibrium, no forces at all.
    held = planning.holding_command(model, q, tau=[0, 0, 0, 20.0, 0])
    np.testing.assert_allclose(held.u, q[:2], atol=1e-6)
    apart = np.zeros(5)
    with pytest.raises(planning.EquilibriumError, match="0 contacts"):
        planning.holding_command(model, apart)


def test_a_frictional_pinch_is_closed_and_a_frictionless_one_is_not():
    q = np.array([0.1, 0.1, 0.0, 0.0, 0.0])
    for shape in ("box", "sphere"):
        closed = planning.force_closure(pinch(mu=0.5, shape=shape), q, "disc")
        assert closed and closed.rank == 3 and closed.margin > 1e-3
        smooth = planning.force_closure(pinch(dim=1, shape=shape), q, "disc")
        assert not smooth and smooth.margin == 0.0 and smooth.radius == 0.0 and smooth.rank < 3
    one = planning.force_closure(pinch(), [0.1, 0.0, 0.0, 0.0, 0.0], "disc")
    assert not one
    with pytest.raises(ValueError, match="no body 'cup'"):
        planning.force_closure(pinch(), q, "cup")


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("mu", np.geomspace(0.02, 2.0, 12))
def test_the_margin_of_a_pinch_does_not_depend_on_friction(mu):
    """Two opposite contacts press with half of the unit each, whatever their friction."""
    q = np.array([0.1, 0.1, 0.0, 0.0, 0.0])
    for length in (0.06, 0.2, 0.9):
        closed = planning.force_closure(pinch(mu=mu, shape="sphere"), q, "disc", length=length)
        assert closed.margin == pytest.approx(0.5, abs=1e-7)


def test_measures_of_a_pinch_of_a_sphere_are_the_closed_forms():
    """Two opposite contacts at radius r, normal forces n1 + n2 <= 1, plane wrenches (x, z, torque).

    Inner forces press with 1/2 on both sides, so the margin is 1/2. The wrenches are the hull of the
    four edges of the two cones, (s, k mu, s k mu r / length) with signs s and k.
    """
    mu, r = 0.5, 0.2
    q = np.array([0.1, 0.1, 0.0, 0.0, 0.0])
    closed = planning.force_closure(pinch(mu=mu, shape="sphere"), q, "disc", length=r)
    assert closed.margin == pytest.approx(0.5, rel=1e-6)
    points = np.array([[s, k * mu, s * k * mu] for s in (1.0, -1.0) for k in (1.0, -1.0)])
    rng = np.random.default_rng(0)
    w = rng.standard_normal((200000, 3))
    w /= np.linalg.norm(w, axis=1)[:, None]
    sampled = (w @ points.T).max(axis=1).min()
    assert closed.radius <= sampled + 1e-9
    assert closed.radius == pytest.approx(sampled, rel=0.02)
    assert (closed.weakest @ points.T).max() == pytest.approx(closed.radius, rel=1e-6)


def test_no_frictionless_grasp_holds_the_turn_of_a_disc():
    system = systems.load("planar_hand")
    q = np.array(system.model.keyframes["start"].q)
    assert planning.force_closure(system.model, q, "disc")
    smooth = system.model.with_parameters(pair_friction=0.0)
    assert not planning.force_closure(smooth, q, "disc")


def test_many_hands_close_as_each_alone() -> None:
    task = systems.load("allegro_sphere").tasks["half_turn"]
    model, rng = task.grasping_model, np.random.default_rng(4)
    begin = np.array(task.start)
    begin[model.actuated_q] = np.clip(
        np.where(np.isnan(task.sampler.opened), 0.0, task.sampler.opened),
        *np.asarray(model.joint_range)[-model.nu :].T,
    )
    q = np.array([task.with_object(begin, rng.uniform(task.lower, task.upper)) for _ in range(5)])
    rate = rng.uniform(-0.2, 1.0, (5, model.nu))
    rate[3] = 0.0
    many = close_grasps(model, q, rate, gap=1e-3)
    for i in range(5):
        alone = close_grasp(model, q[i], rate[i], gap=1e-3)
        assert np.array_equal(alone.q, many.q[i])
        assert np.array_equal(alone.blocked, many.blocked[i])
        assert alone.touching == tuple(np.flatnonzero(many.touching[i]))
        # nothing penetrates, and what stopped a joint is at the gap
        assert not meet(model, many.q[i : i + 1]).any()
        near = model.collide(many.q[i], 1.5e-3)
        assert set(alone.touching) <= {*near["body_a"].tolist(), *near["body_b"].tolist()}
    assert np.array_equal(many.q[3], q[3])


def test_hands_closed_at_once_are_drawn_one_after_the_other():
    """A sampler of twenty draws is one of a single draw that is asked until it has a grasp, to the bit."""
    task = systems.load("iiwa_bimanual_cylinder").tasks["turn"]
    sampler = task.sampler
    once = dataclasses.replace(sampler, draws=1)
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    waits = 0
    for _ in range(6):
        grasp = sampler(task.model, task.start, rng)
        for k in range(sampler.draws):
            one = once(task.model, task.start, again)
            if one is not None:
                waits += k > 0
                break
        assert (grasp is None) == (one is None)
        assert grasp is None or grasp.tobytes() == one.tobytes()
    assert rng.bit_generator.state == again.bit_generator.state
    assert waits


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("sunk", [0.0, 4e-4])
def test_a_finger_in_a_corner_of_floor_and_object_comes_out_along_the_object(mu, sunk):
    """The ball touches the box and is 0.3 mm in the floor: the nearest free place is straight above."""
    model = qdsim.load(f"""<mujoco><default><geom friction="{mu}"/></default><worldbody>
<geom type="plane" size="1 1 .1"/>
<body name="box" pos="0 0 .02"><freejoint/><geom type="box" size=".02 .02 .02" mass=".1"/></body>
<body name="ball" pos=".05 0 .02"><joint name="x" type="slide" axis="1 0 0"/>
<joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size=".01" mass=".1"/></body></worldbody>
<actuator><position joint="x" kp="100"/><position joint="z" kp="100"/></actuator></mujoco>""")
    q = np.array(model.default_q)
    q[2], q[-2:] = 0.02 - sunk, (-0.02, -0.0103)
    out, free = placed(model, "box", q, qdsim.Options())
    assert free
    moved = model.body_pose(out, "ball")[0] - model.body_pose(q, "ball")[0]
    assert moved == pytest.approx([0.0, 0.0, 3e-4], abs=2e-6)
    assert np.array_equal(out[:7], q[:7])
