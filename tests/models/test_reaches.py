"""Actuators of sites with a reference site: how far a point lies from one of another body, along its direction, and how
far the two are turned against each other."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scene_checks import check_file_and_batch, check_products
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim
from qdsim import planning
from qdsim.description import Tendon

# An arm whose hand is moved in the frame of the world, of its own base and of a sled, and a sled and a ball joint.
ARM = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="origin" pos="0.3 0.1 0.2" euler="10 20 30"/>
    <body name="base" pos="0 0 0.1"><joint name="turn" axis="0 0.2 1"/>
      <inertial pos="0.01 0 0.02" mass="2" diaginertia="0.02 0.02 0.02"/>
      <site name="home" pos="0.1 0.02 0.2" euler="0 30 40"/>
      <body name="upper" pos="0 0 0.2" euler="0 30 0"><joint name="lift" axis="0 1 0" stiffness="3"/>
        <inertial pos="0.15 0 0" mass="0.5" diaginertia="0.002 0.006 0.006"/>
        <body name="lower" pos="0.3 0 0"><joint name="elbow" type="ball" stiffness="2"/>
          <inertial pos="0.1 0 0" mass="0.3" diaginertia="0.001 0.003 0.003"/>
          <site name="hand" pos="0.2 0.01 0.02" euler="20 30 40"/></body></body></body>
    <body name="sled" pos="0.5 -0.2 0"><joint name="sx" type="slide" axis="1 0 0"/><joint name="sy" type="slide" axis="0 1 1"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/><site name="deck" pos="0 0.1 0.1" euler="5 0 60"/>
      <body name="mast" pos="0 0 0.1"><joint name="mast" type="ball" stiffness="1"/>
        <inertial pos="0 0 0.1" mass="0.2" diaginertia="0.001 0.001 0.001"/><site name="top" pos="0.02 0 0.3"/></body></body>
  </worldbody>
  <actuator>
    <position name="x" site="hand" refsite="origin" gear="1 0 0 0 0 0" kp="200"/>
    <position name="y" site="hand" refsite="origin" gear="0 1.5 0 0 0 0" kp="150" kv="4"/>
    <general name="z" site="hand" refsite="home" gear="0.2 -0.3 2 0 0 0" gaintype="affine" gainprm="40 -2 0.5"
      biastype="affine" biasprm="0.3 -60 -1" forcerange="-6 6"/>
    <motor name="push" site="hand" refsite="deck" gear="0 1 0.5 0 0 0"/>
    <position name="sway" site="top" refsite="deck" gear="1 0 0 0 0 0" kp="30"/>
  </actuator>
</mujoco>"""

# What turns by a joint of its own carries the reference, too: MuJoCo's moment does not know that its axes turn.
TURNING = ARM.replace('refsite="deck" gear="0 1 0.5', 'refsite="top" gear="0 1 0.5')

# The same arm, turned: against the world, against its base while it is moved along it, and against the sled.
TWISTING = (
    ARM.replace('gear="0 1.5 0 0 0 0"', 'gear="0 0 0 0 1.5 0"')
    .replace('gear="0.2 -0.3 2 0 0 0"', 'gear="0.2 -0.3 2 0.1 0.4 -0.2"')
    .replace('gear="0 1 0.5 0 0 0"', 'gear="0 0 0 0 1 0.5"')
    .replace('gear="1 0 0 0 0 0" kp="30"', 'gear="0 0 0 1 0.5 0" kp="30"')
)
# By what turns, too: the moment is MuJoCo's there as well.
WHIRLING = TWISTING.replace('refsite="deck" gear="0 0 0 0 1', 'refsite="top" gear="0 0 0 0 1')


def reaching(text: str = ARM) -> Scene:
    model = qdsim.load(text)
    around = _around(model, np.array(model.default_q), np.full(model.nv, 0.3), 0.2)

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return around(rng)[0], rng.uniform(-0.5, 0.5, model.nu)

    return Scene(model, sample)


def moments_of(theirs: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    out = np.zeros((theirs.nu, theirs.nv))
    mujoco.mju_sparse2dense(
        out, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    return out


@pytest.mark.parametrize("text", [ARM, TWISTING, WHIRLING])
def test_lengths_forces_and_moments_are_mujocos(text: str) -> None:
    scene = reaching(text)
    model, theirs = scene.model, mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(1)
    for _ in range(20):
        q, u = scene.sample(rng)
        data.qpos[:], data.ctrl[:] = q, u
        mujoco.mj_forward(theirs, data)
        np.testing.assert_allclose(model.tendon_lengths(q), data.actuator_length, atol=1e-12)
        still = qdsim.step(model, q, u, qdsim.Options(held=model.joint_names))
        np.testing.assert_allclose(still.actuator_force, data.actuator_force, atol=1e-11)
        np.testing.assert_allclose(
            in_mujocos_tangents(q, model._tendon_query(q, moments=True)[1]),
            moments_of(theirs, data),
            atol=1e-12,
        )


def in_mujocos_tangents(q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rotations of ball joints in the axes of the body in place of those before the joint."""
    rows = rows.copy()
    for at, quat in ((2, q[2:6]), (7, q[8:12])):
        frame = np.zeros(9)
        mujoco.mju_quat2Mat(frame, quat)
        rows[:, at : at + 3] = rows[:, at : at + 3] @ frame.reshape(3, 3)
    return rows


@pytest.mark.parametrize("text", [ARM, TURNING, TWISTING, WHIRLING])
def test_jacobians_are_those_of_the_lengths(text: str) -> None:
    scene = reaching(text)
    model, rng, eps = scene.model, np.random.default_rng(2), 1e-6
    for _ in range(5):
        q, _ = scene.sample(rng)
        for j, way in enumerate(np.eye(model.nv)):
            ends = [model.tendon_lengths(model.integrate(q, s * eps * way)) for s in (1, -1)]
            np.testing.assert_allclose(
                (ends[0] - ends[1]) / (2 * eps), model.tendon_jacobians(q)[:, j], atol=1e-8
            )


def test_a_hand_goes_where_its_commands_say() -> None:
    """Three springs along the axes of a site of the world hold the hand at the place that they are told."""
    text = ARM.replace('stiffness="3"', "").replace('gravity="0 0 -9.81"', 'gravity="0 0 0"')
    text = text.replace('type="ball" stiffness="2"', 'axis="0 1 0"')
    text = text[: text.index("<general")] + (
        '<position name="z" site="hand" refsite="origin" gear="0 0 1 0 0 0" kp="200"/></actuator></mujoco>'
    )
    model = qdsim.load(text)
    there = model.integrate(model.default_q, 0.2 * np.ones(model.nv))
    u = model.tendon_lengths(there)
    q = model.default_q
    for _ in range(60):
        q = qdsim.step(model, q, u, qdsim.Options(h=0.2)).q_next
    np.testing.assert_allclose(model.tendon_lengths(q), model.tendon_lengths(there), atol=1e-6)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize("text", [ARM, TURNING, TWISTING, WHIRLING])
def test_derivatives(text: str, kappa: float | None) -> None:
    for damping in (False, True):
        report = compare(reaching(text), qdsim.Options(h=0.05, kappa=kappa, damping=damping), 6)
        assert report.share >= 0.8
        assert report.worst <= STANDARD


@pytest.mark.parametrize("text", [ARM, TURNING, TWISTING, WHIRLING])
def test_products_agree_with_the_matrices(text: str) -> None:
    check_products(reaching(text))


@pytest.mark.parametrize("text", [ARM, TWISTING])
def test_files_and_batches(text: str) -> None:
    check_file_and_batch(reaching(text))
    bare = qdsim.load(text, actuated=())
    assert bare.tendon_count == 0 == bare.nu


FLYER = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><site name="origin" euler="10 20 30"/>
    <body name="flyer" pos="0 0 1" euler="5 0 -20"><joint name="flyer" type="ball"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/><site name="nose" euler="0 40 0"/></body></worldbody>
  <actuator>{}</actuator></mujoco>"""
TURNED = "".join(
    f'<position name="{name}" site="nose" refsite="origin" gear="0 0 0 {gear}" kp="50"/>'
    for name, gear in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
)


def test_three_springs_turn_a_body_to_the_rotation_that_they_are_told() -> None:
    """The rotation vector of the site against its reference, in the reference's frame; also with a torque on it: it is
    what the springs are stretched, in the axes of the reference."""
    model = qdsim.load(FLYER.format(TURNED))
    u, q = np.array([0.5, -0.8, 0.3]), np.array(model.default_q)
    for _ in range(40):
        q = qdsim.step(model, q, u, qdsim.Options(h=1.0)).q_next
    np.testing.assert_allclose(model.tendon_lengths(q), u, atol=1e-9)
    origin, nose = (frame("origin"), frame("nose"))
    wanted = origin @ rotation(u)
    np.testing.assert_allclose(model.body_pose(q, "flyer")[1] @ nose, wanted, atol=1e-9)
    torque = np.array([1.0, 2.0, -3.0])
    for _ in range(40):
        q = qdsim.step(model, q, u, qdsim.Options(h=1.0), tau=torque).q_next
    stretched = 50.0 * (model.tendon_lengths(q) - u)
    before = model.body_pose(model.default_q, "flyer")[1]  # the axes of the ball joint's tangents
    np.testing.assert_allclose(origin @ stretched, before @ torque, atol=1e-6)


def frame(site: str) -> np.ndarray:
    theirs = mujoco.MjModel.from_xml_string(FLYER.format(TURNED))
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, theirs.site_quat[theirs.site(site).id])
    return out.reshape(3, 3)


def rotation(vector: np.ndarray) -> np.ndarray:
    quat, out = np.zeros(4), np.zeros(9)
    angle = float(np.linalg.norm(vector))
    mujoco.mju_axisAngle2Quat(quat, vector / angle, angle)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


def test_a_motor_turns_a_body_about_an_axis_of_its_reference() -> None:
    """By torque over inertia, wherever the body is turned to."""
    motor = '<motor name="roll" site="nose" refsite="origin" gear="0 0 0 0 0 2"/>'
    model = qdsim.load(FLYER.format(motor))
    q = model.integrate(model.default_q, [0.4, 1.0, -0.6])
    step = qdsim.step_dynamic(model, q, np.zeros(3), [0.3], qdsim.DynamicOptions(h=1e-3))
    before = model.body_pose(model.default_q, "flyer")[1]
    rate = 1e-3 * 0.6 / 0.1 * frame("origin")[:, 2]
    np.testing.assert_allclose(before @ step.v_next, rate, rtol=1e-9)


def test_commands_hold_what_is_turned() -> None:
    """Against gravity on an arm that three springs turn, each by the others, too."""
    scene = reaching(TWISTING.replace('stiffness="3"', "").replace('stiffness="2"', ""))
    model, q = scene.model, scene.sample(np.random.default_rng(3))[0]
    pulls = model._tendon_query(q, moments=True)[1]
    found = model.command_from(q)
    force = model.passive_force(q)
    told = qdsim.step(model, q, found, qdsim.Options(held=model.joint_names)).actuator_force
    free = np.setdiff1d(np.arange(model.nv), model.actuated_v)
    left = (told @ pulls + force)[free]
    np.testing.assert_allclose(pulls[:, free] @ left, 0.0, atol=1e-9)  # nothing comes nearer


def test_planners_name_what_turns() -> None:
    model = qdsim.load(FLYER.format(TURNED))
    with pytest.raises(ValueError, match=r"actuator 'x' turns a site against its reference site"):
        planning.holding_command(model, model.default_q)


def test_errors_name_the_element() -> None:
    points = [("a", (0, 0, 0)), ("b", (0, 0, 1)), ("c", (0, 0, 1))]
    with pytest.raises(ValueError, match=r"tendon 't': points of a reach must be three"):
        Tendon("t", points=points, reach=True)
    with pytest.raises(ValueError, match=r"tendon 't': points of a reach must be three"):
        Tendon("t", points=points[:2], reach=True)
    for five in (
        [("a", (0, 0, 0)), *[("b", (0, 0, 1))] * 4],
        [("a", (0, 0, 0)), ("b", (0, 0, 1)), ("b", (0, 0, 1)), ("a", (0, 0, 0))],
    ):
        with pytest.raises(ValueError, match=r"tendon 't': points of a reach .* or five"):
            Tendon("t", points=five, reach=True)
    turned = [("a", (0, 0, 0)), *[("b", (0, 0, 1))] * 2, ("a", (0, 0, 0)), ("b", (0, 0, 1))]
    for name, value in {
        "range": (0.0, 1.0),
        "stiffness": 1.0,
        "frictionloss": 1.0,
        "damping": 1.0,
    }.items():
        with pytest.raises(ValueError, match=r"tendon 't': a reach that turns has neither range"):
            Tendon("t", points=turned, reach=True, **{name: value})
    with pytest.raises(ValueError, match=r"tendon 't': .*thrust"):
        Tendon("t", points=[("a", (0, 0, 0))] * 3, reach=True, thrust=True)
