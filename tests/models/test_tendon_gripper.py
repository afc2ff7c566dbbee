"""A gripper that closes by its tendon, as files of the Menagerie have it, holds a can at its force limit, and planners
move it by the joint that leads."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.description import Coupling

# Fingers that follow each other, an actuator on the mean of their openings whose command goes from
# 0 (closed) to 255, and 20 N at most; a lift carries the hand.
GRIPPER = """
<mujoco model="gripper">
  <option impratio="10" cone="elliptic"/>
  <default><geom friction="0.8"/></default>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1"/>
    <body name="hand" pos="0 0 0.05" gravcomp="1">
      <joint name="lift" type="slide" axis="0 0 1" range="0 0.4"/>
      <geom name="palm" type="box" size="0.03 0.09 0.01" pos="0 0 0.14" mass="0.5"/>
      <body name="left" gravcomp="1"><joint name="finger1" type="slide" axis="0 1 0" range="0 0.04"/>
        <geom name="pad1" type="box" size="0.012 0.005 0.03" pos="0 0.005 0.02" mass="0.02"/></body>
      <body name="right" gravcomp="1"><joint name="finger2" type="slide" axis="0 -1 0" range="0 0.04"/>
        <geom name="pad2" type="box" size="0.012 0.005 0.03" pos="0 -0.005 0.02" mass="0.02"/></body>
    </body>
    <body name="can" pos="0 0 0.06"><freejoint name="can"/>
      <geom name="can" type="cylinder" size="0.03 0.06" mass="{mass}"/></body>
  </worldbody>
  <tendon><fixed name="split"><joint joint="finger1" coef="0.5"/><joint joint="finger2" coef="0.5"/></fixed></tendon>
  <equality><joint joint1="finger1" joint2="finger2"/></equality>
  <actuator>
    <position name="lift" joint="lift" kp="20000"/>
    <general name="fingers" tendon="split" gainprm="0.627451" biastype="affine" biasprm="0 -4000 -40"
      ctrlrange="0 255" forcerange="-20 20"/>
  </actuator>
  <keyframe><key name="home" qpos="0 0.04 0.04 0 0 0.06 1 0 0 0" ctrl="0 255"/></keyframe>
</mujoco>"""
OPTIONS = qdsim.Options(h=0.02, margin=0.05, gravity_on_actuated=True)


def course(mass: float, height: float) -> tuple[qdsim.Model, list[qdsim.Step]]:
    """Close, then lift. A step gets what moves by s from rest, by m s / h^2: 2.5 m/s2 here."""
    model = qdsim.load(GRIPPER.format(mass=mass))
    q, u = (np.array(part) for part in model.keyframes["home"])
    steps = []
    for k in range(80):
        u[1] = max(0.0, 255.0 * (1.0 - k / 10))
        u[0] = height * min(max(k - 20, 0) / 50, 1.0)
        steps.append(qdsim.step(model, q, u, OPTIONS))
        q = np.array(steps[-1].q_next)
    return model, steps


def squeeze(model: qdsim.Model, step: qdsim.Step, pad: str) -> float:
    """N, of one pad on the can."""
    return sum(
        float(contact["force"][0])
        for contact in step.contacts
        if {model.geom_names[contact[g]] for g in ("geom_a", "geom_b")} == {pad, "can"}
    )


def test_it_opens_and_closes_by_its_command() -> None:
    model = qdsim.load(GRIPPER.format(mass=0.5))
    q, u = model.keyframes["home"]
    assert model.actuator_names == ("lift", "fingers")
    np.testing.assert_allclose(model.tendon_lengths(q), 0.04)
    still = qdsim.step(model, q, u, OPTIONS)
    np.testing.assert_allclose(still.q_next[1:3], 0.04, atol=1e-4)
    np.testing.assert_allclose(model.command_from(q)[1], 255.0, rtol=1e-4)


def test_it_holds_a_can_at_its_force_limit() -> None:
    """20 N on the mean of two openings are 10 N on each pad, and 16 N of friction in all."""
    model, steps = course(1.2, 0.05)
    start, end = (steps[k].q_next[model.slice_q("can")] for k in (19, -1))
    last = steps[-1]
    assert last.actuator_force[1] == pytest.approx(-20.0, rel=1e-9)
    assert last.actuator_limited.tolist() == [False, True]
    assert not steps[0].actuator_limited.any()
    for pad in ("pad1", "pad2"):
        assert squeeze(model, last, pad) == pytest.approx(10.0, rel=1e-6)
    assert end[2] - start[2] == pytest.approx(0.05, abs=2e-3)


def test_what_is_too_heavy_slips() -> None:
    model, steps = course(2.0, 0.03)
    end = steps[-1].q_next[model.slice_q("can")]
    assert end[2] < 0.065  # on the table
    assert steps[-1].actuator_force[1] == pytest.approx(-20.0, rel=1e-9)
    for pad in ("pad1", "pad2"):
        assert squeeze(model, steps[-1], pad) == pytest.approx(10.0, rel=1e-6)


def test_without_limits_it_squeezes_as_hard_as_it_is_told() -> None:
    model = qdsim.load(GRIPPER.format(mass=2.0))
    q, u = (np.array(part) for part in model.keyframes["home"])
    u[1] = 0.0
    for _ in range(10):
        step = qdsim.step(model, q, u, OPTIONS.replace(force_limits=False))
        q = np.array(step.q_next)
    assert step.actuator_force[1] == pytest.approx(-4000 * 0.03, rel=1e-2)
    assert not step.actuator_limited.any()


# ---------------------------------------------------------------- planners


def by_joints(mass: float = 0.5) -> tuple[qdsim.Model, qdsim.Model]:
    model = qdsim.load(GRIPPER.format(mass=mass))
    return model, planning.reduce_tendons(model)


def grasped(model: qdsim.Model) -> np.ndarray:
    """The can, lifted by 5 cm."""
    q, u = (np.array(part) for part in model.keyframes["home"])
    for k in range(80):
        u[:] = 0.05 * min(max(k - 20, 0) / 40, 1.0), max(0.0, 255.0 * (1.0 - k / 10))
        q = np.array(qdsim.step(model, q, u, OPTIONS).q_next)
    return q


def test_an_actuator_of_a_tendon_is_one_of_the_joint_that_leads() -> None:
    """At rest: the same commands, forces and limits, whatever touches; half the limit presses on either side."""
    model, joints = by_joints()
    assert joints.actuated_tendons.tolist() == [-1, -1]
    assert joints.description.actuators[1].joint == "finger2"
    ends = [grasped(model), grasped(joints)]
    np.testing.assert_allclose(*ends, atol=1e-7)
    for u in ([0.05, 0.0], [0.05, 180.0], [0.05, 240.0], [0.0, 300.0]):
        last = []
        for scene in (model, joints):
            q = ends[0]
            for _ in range(40):
                step = qdsim.step(scene, q, u, OPTIONS)
                q = step.q_next
            last.append(step)
        np.testing.assert_allclose(last[0].q_next, last[1].q_next, atol=1e-6)
        np.testing.assert_allclose(last[0].actuator_force, last[1].actuator_force, atol=1e-3)
    assert planning.reduce_tendons(joints) is joints


def test_shares_slopes_and_signs_of_a_tendon() -> None:
    """l = 2 a - 3 b with b = -0.5 a: l = 3.5 a. The actuator's force on it is k (u / g - l), and on a joint 3.5 times
    that."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    for name in "ab":
        scene.body(name, mass=1.0, inertia=(1, 1, 1))
        scene.joint(name, "slide", axis=(1, 0, 0), name=name)
    scene.tendon("t", joints={"a": 2.0, "b": -3.0})
    scene.actuator(None, 40.0, tendon="t", gear=-2.0, force_range=(-1.0, 3.0), name="t")
    description = scene.build()
    coupling = Coupling("follow", "b", "a", (0.0, -0.5, 0.0, 0.0, 0.0))
    model = qdsim.build(dataclasses.replace(description, constraints=(coupling,)))
    (item,) = planning.reduce_tendons(model).description.actuators
    assert (item.joint, item.tendon) == ("a", None)
    assert (item.stiffness, item.gear) == (40.0 * 3.5**2, -7.0)
    assert item.force_range == (-3.5, 10.5)
    for u in (1.0, -0.5):
        q = np.zeros(2)
        other = np.zeros(2)
        for _ in range(60):
            q = qdsim.step(model, q, [u]).q_next
            other = qdsim.step(planning.reduce_tendons(model), other, [u]).q_next
        np.testing.assert_allclose(q, [u / -7.0, u / 14.0], atol=1e-6)
        np.testing.assert_allclose(other, q, atol=1e-6)


@pytest.mark.parametrize(
    ("joints", "constraints", "message"),
    [
        ({"a": 1.0, "b": -1.0}, (Coupling("c", "b", "a"),), r"do not all follow one joint"),
        (
            {"a": 1.0, "b": 1.0},
            (Coupling("c", "b", "a", (0.1, 1.0, 0.0, 0.0, 0.0)),),
            r"length is 0\.1 where its joint is at zero",
        ),
        (
            {"a": 1.0, "b": 1.0},
            (Coupling("c", "b", "a", (0.0, 1.0, 0.2, 0.0, 0.0)),),
            r"do not all follow one joint: it moves 'a' and 'b'",
        ),
    ],
)
def test_tendons_that_no_joint_leads_are_named(joints, constraints, message: str) -> None:
    scene = qdsim.SceneBuilder()
    for name in "ab":
        scene.body(name, mass=1.0, inertia=(1, 1, 1))
        scene.joint(name, "slide", name=name)
    scene.tendon("t", joints=joints)
    scene.actuator(None, 5.0, tendon="t", name="t")
    model = qdsim.build(dataclasses.replace(scene.build(), constraints=constraints))
    with pytest.raises(ValueError, match=message):
        planning.reduce_tendons(model)
    with pytest.raises(
        ValueError, match=r"'t', whose joint 'a' is tied by a coupling; planning\.reduce_tendons"
    ):
        planning.holding_command(model, model.default_q)
    with pytest.raises(TypeError, match="model"):
        planning.reduce_tendons("model")  # type: ignore[arg-type]


@pytest.mark.parametrize("mass", [0.2, 1.2])
def test_a_command_holds_the_can_with_the_least_forces(mass: float) -> None:
    """The weight over friction of 0.8 on two sides; the springs hold both pads by one actuator."""
    model, joints = by_joints(mass)
    q = grasped(joints)
    found = planning.holding_command(joints, q)
    weight = 9.81 * mass
    np.testing.assert_allclose(found.contacts["force"][:, 0].sum(), weight / 0.8, rtol=1e-6)
    np.testing.assert_allclose(found.torque[1], -weight / 0.8, rtol=1e-6)
    for scene in (model, joints):
        still = qdsim.step(scene, q, found.u, OPTIONS.replace(gravity_on_actuated=False))
        np.testing.assert_allclose(still.delta, 0.0, atol=1e-8)


def test_a_can_that_its_limit_cannot_hold_has_no_command() -> None:
    """20 N press with 10 N on either side: 16 N of friction in all."""
    q = grasped(by_joints(0.5)[1])
    planning.holding_command(by_joints(16.0 / 9.81 - 0.01)[1], q)
    with pytest.raises(planning.EquilibriumError, match="'fingers'"):
        planning.holding_command(by_joints(16.0 / 9.81 + 0.01)[1], q)


def lifting(model: qdsim.Model) -> planning.Task:
    start = grasped(model)
    goal = np.array(start)
    goal[model.slice_q("can").start + 2] += 0.1
    size = np.array([0.01, 0.01, 0.12, 0.1, 0.1, 0.1])
    return planning.Task(
        "lift",
        model,
        OPTIONS.replace(h=0.1, gravity_on_actuated=False),
        start,
        goal,
        "can",
        lower=-size * [1, 1, 0, 1, 1, 1],
        upper=size,
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        start_tolerance=1e-3,
    )


@pytest.mark.parametrize("planner", ["rrt", "impc"])
def test_a_plan_lifts_the_can_by_the_tendon(planner: str) -> None:
    """Made with the actuator on a joint, it holds within the limit, passes its check, and lifts with the tendon."""
    model, joints = by_joints()
    task = lifting(joints)
    plan = (planning.rrt(task, rng=0) if planner == "rrt" else planning.impc(task)).plan()
    verdict = plan.check(joints)
    assert verdict.good, verdict
    assert max(verdict.largest_forces) <= 20.0 + 1e-6
    q = task.start
    for segment in plan.segments:
        for u in segment.inputs:
            step = qdsim.step(model, q, u, task.options)
            q = step.q_next
            assert abs(step.actuator_force[1]) <= 20.0 + 1e-6
    at = model.slice_q("can")
    np.testing.assert_allclose(q[at][:3], task.goal[at][:3], atol=0.012)


def test_a_grip_closes_and_lifts() -> None:
    """Both pads are one actuator's: the grip tells fingers by joints, those that follow included."""
    model, joints = by_joints()
    q = np.array(joints.keyframes["home"].q)
    grip = planning.Grip(joints, "can", 0.05, planning.GripOptions(reach=0.05))
    options = OPTIONS.replace(h=grip.options.period, gravity_on_actuated=False)
    for k in range(100):
        way = grip.upwards(q, 0.002) if k > 40 else np.zeros(6)
        told = grip.command(q, way, closing=True, lean=k <= 40)
        step = qdsim.step(joints, q, told.u, options)
        q = np.array(step.q_next)
    assert told.fingers == 2
    assert q[joints.slice_q("can").start + 2] > 0.06 + 0.9 * 59 * 0.002
    assert 4.9 / 0.8 < -step.actuator_force[1] < 20.0
    by_tendon = qdsim.step(model, q, told.u, options)
    assert by_tendon.actuator_force[1] == pytest.approx(step.actuator_force[1], rel=0.05)


def test_a_hand_closes_with_the_joint_that_follows() -> None:
    """Until a pad is at the can, whose radius is 3 cm; the other one is where its coupling puts it."""
    _, joints = by_joints()
    q = np.array(joints.keyframes["home"].q)
    found = planning.close_grasp(joints, q, [0.0, -1.0])
    assert found.blocked.tolist() == [False, True]
    np.testing.assert_allclose(found.q[1:3], 0.03, atol=2e-4)
    assert found.q[1] == found.q[2]
    tip = joints.body_pose(found.q, "left")[0]
    reached = planning.reach_point(joints, q, "left", [0, 0, 0], tip)
    assert reached.success and reached.q[1] == reached.q[2]
    np.testing.assert_allclose(reached.q[1:3], found.q[1:3], atol=2e-6)


ARM = """<mujoco model="arm"><compiler angle="radian"/><worldbody>
  <body name="base" pos="0 0 0.3"><joint name="pan" axis="0 0 1"/><geom type="capsule" size="0.04 0.05" mass="3"/>
    <body name="upper"><joint name="lift" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="4"/>
      <body name="fore" pos="0.4 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.35 0 0" size="0.03" mass="2"/>
        <body name="wrist" pos="0.35 0 0"><joint name="roll" axis="1 0 0"/><geom size="0.03" mass="0.5"/>
          <site name="attachment_site" pos="0.04 0 0" euler="0 1.5708 0"/></body></body></body></body></worldbody>
  <actuator><position name="pan" joint="pan" kp="2000" forcerange="-150 150"/>
    <position name="lift" joint="lift" kp="2000" forcerange="-150 150"/>
    <position name="elbow" joint="elbow" kp="2000" forcerange="-150 150"/>
    <position name="roll" joint="roll" kp="500" forcerange="-28 28"/></actuator></mujoco>"""


def linkage_finger(side: str, sign: int) -> str:
    """A parallelogram: a driver and a follower turn alike, and the coupler that carries the pad keeps its direction."""
    return f"""<body name="{side}_driver" pos="0 {0.03 * sign} 0.05"><joint name="{side}_driver" axis="{sign} 0 0"
        range="0 0.8"/><geom size="0.004" pos="0 {0.03 * sign} 0.02" mass="0.02"/>
      <body name="{side}_coupler" pos="0 {0.03 * sign} 0.04"><joint name="{side}_coupler" axis="{-sign} 0 0"/>
        <geom type="box" size="0.01 0.003 0.02" pos="0 {-0.005 * sign} 0.03" mass="0.02"/></body></body>
    <body name="{side}_follower" pos="0 {0.012 * sign} 0.06"><joint name="{side}_follower" axis="{sign} 0 0"/>
      <geom size="0.004" pos="0 {0.03 * sign} 0.02" mass="0.02"/></body>"""


LINKAGE = f"""<mujoco model="gripper"><compiler angle="radian"/><worldbody><body name="palm">
    <geom type="cylinder" size="0.03 0.02" mass="0.4"/>{linkage_finger("right", 1)}{linkage_finger("left", -1)}</body></worldbody>
  <contact><exclude body1="right_driver" body2="right_follower"/><exclude body1="left_driver" body2="left_follower"/>
    <exclude body1="right_coupler" body2="right_follower"/><exclude body1="left_coupler" body2="left_follower"/></contact>
  <equality><connect body1="right_follower" body2="right_coupler" anchor="0 0.03 0.04"/>
    <connect body1="left_follower" body2="left_coupler" anchor="0 -0.03 0.04"/>
    <joint joint1="right_driver" joint2="left_driver"/></equality>
  <tendon><fixed name="split"><joint joint="right_driver" coef="0.5"/><joint joint="left_driver" coef="0.5"/></fixed></tendon>
  <actuator><general name="fingers" tendon="split" ctrlrange="0 255" forcerange="-5 5" biastype="affine"
    gainprm="0.3137255" biasprm="0 -100 -10"/></actuator></mujoco>"""


def test_an_arm_and_a_gripper_of_two_files_move_as_one_robot() -> None:
    """Joined at the arm's attachment site, as docs/robots.md does it with a UR5e and a 2F-85: the linkages close alike,
    the arm follows its commands, and no actuator pulls harder than its file says."""
    arm = mujoco.MjSpec.from_string(ARM)
    gripper = mujoco.MjSpec.from_string(LINKAGE)
    arm.attach(gripper, prefix="gripper/", site=arm.site("attachment_site"))
    model = qdsim.load(arm)
    assert model.actuator_names == ("pan", "lift", "elbow", "roll", "gripper/fingers")
    q = np.array(model.default_q)
    u = np.array(model.command_from(q))
    step = qdsim.step(model, q, u)
    np.testing.assert_allclose(step.q_next, q, atol=1e-9)  # commands that hold it do
    for k in range(60):
        u[:4] = 0.3 * np.sin(0.05 * k)
        u[4] = min(255.0, 6.0 * k)
        step = qdsim.step(model, q, u)
        low, high = model.parameters.actuator_force_range.T
        assert np.all(step.actuator_force >= low - 1e-9)
        assert np.all(step.actuator_force <= high + 1e-9)
        q = np.array(step.q_next)

    def at(joint: str) -> float:
        return float(q[model.slice_q(joint)][0])

    np.testing.assert_allclose([at("pan"), at("lift"), at("elbow"), at("roll")], u[:4], atol=0.01)
    right = at("gripper/right_driver")
    assert right > 0.5
    for side in ("right", "left"):  # parallelograms
        assert at(f"gripper/{side}_driver") == pytest.approx(right, abs=1e-6)
        assert at(f"gripper/{side}_follower") == pytest.approx(right, abs=1e-3)
        assert at(f"gripper/{side}_coupler") == pytest.approx(right, abs=1e-3)
