"""Grasps and plans in scenes of a user's own: any robot, any shape."""

import dataclasses
import itertools

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.grasps.placing import shifted
from qdsim.planning.grasps.samplers.kept import KeptGrasps
from qdsim.planning.grasps.samplers.touching import sides
from qdsim.planning.motion.clearance import RobotSpace
from qdsim.planning.motion.motion import motion_fault
from qdsim.planning.task.robot import joint_limits, near_pairs

# A ball that pushes a T in the plane, without limits.
PUSHER_AND_TEE = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="tee">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/>
      <geom type="box" size="0.1 0.025 0.03" pos="0 0.05 0" mass="0.5"/>
      <geom type="box" size="0.025 0.075 0.03" pos="0 -0.05 0" mass="0.4"/>
    </body>
    <body name="bridge"><joint name="px" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
      <body name="pusher" pos="0 0.2 0"><joint name="py" type="slide" axis="0 1 0"/>
        <geom type="sphere" size="0.015" mass="0.1"/></body></body>
  </worldbody>
  <actuator><position joint="px" kp="200"/><position joint="py" kp="200"/></actuator>
</mujoco>"""

# A gripper on three slides and a wrist, and a wedge-like mesh on the ground.
CORNERS = itertools.product((-0.03, 0.03), (-0.04, 0.04), (-0.03, 0.03))
POINTS = [(x * (0.6 if z > 0 else 1.0), y, z) for x, y, z in CORNERS]
GRIPPER_AND_MESH = f"""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81"/>
  <asset><mesh name="wedge" vertex="{" ".join(str(c) for p in POINTS for c in p)}"/></asset>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 1"/>
    <body name="block" pos="0 0 0.03"><freejoint/>
      <geom type="mesh" mesh="wedge" mass="0.2" friction="0.8"/></body>
    <body name="carriage" pos="0 0 0.2">
      <joint name="gx" type="slide" axis="1 0 0" range="-0.3 0.3"/>
      <joint name="gy" type="slide" axis="0 1 0" range="-0.3 0.3"/>
      <joint name="gz" type="slide" axis="0 0 1" range="-0.2 0.2"/>
      <joint name="wrist" type="hinge" axis="0 0 1" range="-1.6 1.6"/>
      <geom name="palm" type="box" size="0.02 0.06 0.01" mass="0.5"/>
      <body name="left" pos="0 0.06 -0.05"><joint name="l" type="slide" axis="0 -1 0" range="-0.02 0.055"/>
        <geom type="capsule" size="0.01 0.03" mass="0.1" friction="0.8"/></body>
      <body name="right" pos="0 -0.06 -0.05"><joint name="r" type="slide" axis="0 1 0" range="-0.02 0.055"/>
        <geom type="capsule" size="0.01 0.03" mass="0.1" friction="0.8"/></body>
    </body>
  </worldbody>
  <actuator>
    <position joint="gx" kp="400"/><position joint="gy" kp="400"/><position joint="gz" kp="400"/>
    <position joint="wrist" kp="20"/><position joint="l" kp="300"/><position joint="r" kp="300"/>
  </actuator>
</mujoco>"""

# Two fingers of two hinges each, and a mug of a cylinder and two boxes that slides on the table.
FINGER = """
<body name="{n}1" pos="{x} 0 0.05"><joint name="{n}1" type="hinge" axis="0 0 1" range="-2.5 2.5"/>
  <geom type="capsule" fromto="0 0 0 0 0.15 0" size="0.012" mass="0.2"/>
  <body name="{n}2" pos="0 0.15 0"><joint name="{n}2" type="hinge" axis="0 0 1" range="-2.2 2.2"/>
    <geom type="capsule" fromto="0 0 0 0 0.12 0" size="0.012" mass="0.2"/></body></body>"""
FINGERS_AND_MUG = f"""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="mug" pos="0 0.17 0.05">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/>
      <geom type="cylinder" size="0.04 0.05" mass="0.3"/>
      <geom type="box" size="0.012 0.008 0.008" pos="0.05 0 0.02" mass="0.02"/>
      <geom type="box" size="0.008 0.008 0.03" pos="0.066 0 0" mass="0.03"/>
    </body>
    {FINGER.format(n="a", x=-0.1)}{FINGER.format(n="b", x=0.1)}
  </worldbody>
  <actuator>
    <position joint="a1" kp="10"/><position joint="a2" kp="5"/>
    <position joint="b1" kp="10"/><position joint="b2" kp="5"/>
  </actuator>
</mujoco>"""

# A bar with a ball at each end, on two slides and a hinge, in front of a wall that slides.
BAR_AND_WALL = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="wall"><joint name="wall" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.05 0.5 0.5" mass="1"/></body>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="lift"><joint name="y" type="slide" axis="0 1 0"/>
        <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <body name="bar"><joint name="turn" type="hinge" axis="0 0 1" range="-1 1"/>
          <geom type="sphere" size="0.02" pos="0 0.1 0" mass="0.1"/>
          <geom type="sphere" size="0.02" pos="0 -0.1 0" mass="0.1"/></body></body></body>
  </worldbody>
  <actuator>
    <position joint="x" kp="100"/><position joint="y" kp="100"/><position joint="turn" kp="10"/>
  </actuator>
</mujoco>"""


def scene(text, object, shift, *, start=None, contacts=1, **settings):
    model = qdsim.load(text)
    q = np.array(model.default_q)
    for name, value in (start or {}).items():
        q[model.slice_q(name)] = value
    n = len(planning.ObjectSpace(model, object).v)
    box = np.abs(shift) + np.where(np.arange(n) < min(n, 3) - (n == 3), 0.05, 0.3)
    task = planning.Task(
        name=object,
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=q,
        goal=q,
        object=object,
        lower=-box,
        upper=box,
        sampler=planning.SurfaceSampler(object, contacts=contacts),
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        **settings,
    )
    return task.replace(goal=task.with_object(q, shift))


def tee():
    return scene(PUSHER_AND_TEE, "tee", [0.1, -0.05, 1.0], length=0.08)


def wedge():
    shift = [0.06, -0.04, 0.0, 0.0, 0.0, 0.5]
    return scene(GRIPPER_AND_MESH, "block", shift, length=0.04)


def mug():
    start = {"a1": 0.8, "a2": 0.3, "b1": -0.8, "b2": -0.3}
    return scene(FINGERS_AND_MUG, "mug", [-0.02, 0.02, 0.8], start=start, length=0.05)


SCENES = {
    "tee": (tee, planning.RRTOptions(step=0.05)),
    "wedge": (wedge, planning.RRTOptions(step=0.05)),
    "mug": (mug, planning.RRTOptions(step=0.2)),
}


SCENE_NAMES = ["tee", pytest.param("wedge", marks=pytest.mark.long), "mug"]


@pytest.mark.parametrize("name", SCENE_NAMES)
def test_samples_touch_within_limits_without_penetration(name):
    task = SCENES[name][0]()
    model, sampler = task.model, task.sampler
    lower, upper = joint_limits(model)
    own, robot = sides(model, task.object)
    places = []
    for seed in range(25):
        q = sampler(model, task.start, np.random.default_rng(seed))
        assert q is not None
        assert len(near_pairs(model, q, 0.0)) == 0
        joints = q[model.actuated_q]
        assert np.all(joints >= lower - 1e-12) and np.all(joints <= upper + 1e-12)
        assert q[task.space.q].tobytes() == task.start[task.space.q].tobytes()
        contacts = model.collide(q, sampler.near)
        a, b = contacts["body_a"], contacts["body_b"]
        hit = contacts[(own[a] & robot[b]) | (own[b] & robot[a])]
        assert len(hit) >= 1 and np.all(hit["dist"] >= 0.0)
        places += list(hit["pos"] - model.body_pose(q, task.object)[0])
        again = sampler(model, task.start, np.random.default_rng(seed))
        assert again.tobytes() == q.tobytes()
    # All around the object: every quadrant of the plane has some.
    places = np.array(places)
    quadrants = {(x > 0, y > 0) for x, y in places[:, :2]}
    assert len(quadrants) == 4


@pytest.mark.parametrize("name", SCENE_NAMES)
def test_plans_in_scenes_of_ones_own(name):
    make, options = SCENES[name]
    task = make()
    tree = planning.rrt(task, options.replace(max_nodes=3000), rng=0)
    assert tree.reached, tree
    verdict = tree.plan().check(task.model)
    assert verdict.good, verdict.faults


def test_more_fingers_and_chosen_tips():
    task = mug()
    both = planning.SurfaceSampler("mug", contacts=2)
    q = both(task.model, task.start, np.random.default_rng(0))
    assert len(both.touching(task.model, q)) >= 2
    left = planning.SurfaceSampler("mug", tips=["a2"], close=False)
    names = np.array(task.model.body_names)
    q = left(task.model, task.start, np.random.default_rng(0))
    assert "a2" in names[left.touching(task.model, q)]
    assert left(task.model, task.start, np.random.default_rng(1)) is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contacts": 0}, "contacts"),
        ({"draws": -1}, "draws"),
        ({"gap": 0.0}, "gap"),
        ({"near": np.inf}, "near"),
        ({"reach": -1.0}, "reach"),
    ],
)
def test_settings_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        planning.SurfaceSampler("mug", **changes)


def test_bodies_are_checked():
    task = mug()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="cup"):
        planning.SurfaceSampler("cup")(task.model, task.start, rng)
    with pytest.raises(ValueError, match="none of mug can touch"):
        planning.SurfaceSampler("mug", tips=["mug"])(task.model, task.start, rng)
    with pytest.raises(KeyError, match="thumb"):
        planning.SurfaceSampler("mug", tips=["thumb"])(task.model, task.start, rng)


def test_one_more_contact_turns_a_bar_flat_onto_a_wall():
    """A bar with a ball at each end, one at the wall: the other gets there by the turn of closed form."""
    model = qdsim.load(BAR_AND_WALL)
    gap, radius, half, near = 1e-4, 0.02, 0.1, 1e-3
    q = np.array(model.default_q)
    angle = 0.3
    # The lower end touches: the bar's middle is half * sin(angle) further away.
    q[model.actuated_q] = -(0.05 + radius + gap + half * np.sin(angle)), 0.0, angle
    found = planning.samplers.add_contact(
        model, q, "wall", np.random.default_rng(0), gap=gap, near=near, within=0.2
    )
    assert found is not None
    x, _, turn = found[model.actuated_q]
    np.testing.assert_allclose([x, turn], [-(0.05 + radius + gap), 0.0], atol=gap)
    assert np.array_equal(found[model.unactuated_q], q[model.unactuated_q])
    # With both at the wall there is nothing left to bring there; out of reach neither.
    again = planning.samplers.add_contact(model, found, "wall", np.random.default_rng(0))
    assert again is None
    stuck = np.array(q)
    stuck[model.actuated_q] = -0.45, 0.0, 0.0
    assert planning.samplers.add_contact(model, stuck, "wall", np.random.default_rng(0)) is None


def test_more_contacts_keep_those_that_are_there():
    """Two arms around a box: one more shape touches, none lets go, nothing penetrates."""
    task = next(iter(qdsim.systems.load("iiwa_bimanual_box").tasks.values()))
    model, rng = task.model, np.random.default_rng(0)
    plain = dataclasses.replace(task.sampler, extra=0)

    def pairs(q):
        contacts = model.collide(q, 1e-3)
        own, robot = sides(model, "box")
        hit = (own[contacts["body_a"]] & robot[contacts["body_b"]]) | (
            own[contacts["body_b"]] & robot[contacts["body_a"]]
        )
        return {(int(c["geom_a"]), int(c["geom_b"])) for c in contacts[hit]}

    added = 0
    for _ in range(12):
        q = plain(model, task.start, rng)
        more = None if q is None else planning.samplers.add_contact(model, q, "box", rng)
        if more is None:
            continue
        added += 1
        assert pairs(q) < pairs(more)
        assert len(near_pairs(model, more, 0.0)) == 0
        lower, upper = joint_limits(model)
        joints = more[model.actuated_q]
        assert np.all(joints >= lower - 1e-12) and np.all(joints <= upper + 1e-12)
        assert np.array_equal(more[task.space.q], q[task.space.q])
    assert added >= 3


@pytest.mark.parametrize("limits", ["range='-12.5 12.5'", "limited='false'"])
def test_hinges_that_turn_round_and_round_stay_near_where_they_are(limits):
    """Whole turns change no grasp, but motions to them are long and often barred. Joints without limits vary too."""
    links = "".join(
        f"<body pos='{0.2 * (k > 0)} 0 {0.1 * (k == 0)}'><joint name='j{k}' axis='0 0 1' {limits}/>"
        "<geom type='capsule' fromto='0 0 0 .2 0 0' size='.02' mass='.1'/>"
        for k in range(3)
    )
    model = qdsim.load(
        "<mujoco><compiler angle='radian'/><option gravity='0 0 0'/><worldbody><body name='disc' pos='.3 .2 .1'>"
        "<joint name='x' type='slide'/><joint name='y' type='slide' axis='0 1 0'/>"
        f"<geom type='cylinder' size='.05 .05'/></body>{links}{'</body>' * 3}</worldbody><actuator>"
        + "".join(f"<position joint='j{k}' kp='10'/>" for k in range(3))
        + "</actuator></mujoco>"
    )
    q, rng = np.array(model.default_q), np.random.default_rng(0)
    q[model.actuated_q] = 5.0, -4.0, 3.0
    sampler = planning.SurfaceSampler("disc")
    drawn = np.array([sampler(model, q, rng) for _ in range(20)])[:, model.actuated_q]
    moved = np.abs(drawn - q[model.actuated_q])
    assert moved.max() < np.pi + 1e-9
    assert moved.max(axis=0).min() > 0.5 * np.pi  # every joint is drawn in all its room


def test_long_fingers_get_to_the_object_in_most_draws():
    """Capsules that turn while they approach meet the object with another of their points."""
    task = mug()
    one = dataclasses.replace(task.sampler, draws=1, close=False)
    found = [one(task.model, task.start, np.random.default_rng(seed)) for seed in range(60)]
    assert sum(q is not None for q in found) >= 25


URDF_ARM = """
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="1e-3" iyy="2e-2" izz="2e-2" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.2 0 0" rpy="0 1.5708 0"/>
      <geometry><cylinder radius="0.03" length="0.36"/></geometry></collision></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="0.6"/>
    <inertia ixx="1e-3" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.04"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="50" velocity="2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" effort="50" velocity="2"/></joint>
</robot>"""
PUCK = """
<mujoco><worldbody><body name="puck">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
  <joint name="turn" axis="0 0 1"/><geom type="cylinder" size="0.06 0.05" mass="0.5"/>
</body></worldbody></mujoco>"""


def test_a_urdf_and_an_object_of_an_mjcf(tmp_path):
    """What the notebook on own robots says: a URDF is a scene like any other, with springs given at loading."""
    (tmp_path / "arm.urdf").write_text(URDF_ARM)
    spec = mujoco.MjSpec.from_file(str(tmp_path / "arm.urdf"))
    spec.option.gravity = [0, 0, 0]
    frame = spec.worldbody.add_frame(pos=[0.5, 0.25, 0])
    spec.attach(mujoco.MjSpec.from_string(PUCK), prefix="my_", frame=frame)
    model = qdsim.load(spec, stiffness={"shoulder": 100.0, "elbow": 50.0})
    assert model.actuator_names == ("shoulder", "elbow")
    q, box = np.array(model.default_q), np.array([0.3, 0.3, 3.0])
    q[model.actuated_q] = -0.6, 0.5
    options, sampler = qdsim.Options(h=0.1, margin=0.1), planning.SurfaceSampler("my_puck")
    task = planning.Task("push", model, options, q, q, "my_puck", -box, box, sampler, length=0.06)
    task = task.replace(goal=task.with_object(q, [0.0, 0.12, 0.5]))
    tree = planning.rrt(task, planning.RRTOptions(step=0.2))
    assert tree.reached and tree.plan().check(model).good


COUPLED = GRIPPER_AND_MESH.replace('<position joint="r" kp="300"/>', "").replace(
    "</mujoco>",
    '<equality><joint joint1="r" joint2="l" polycoef="0.004 0.5 0 0 0"/></equality></mujoco>',
)


def coupled_gripper() -> tuple[qdsim.Model, int, int]:
    """One finger follows the other at half its speed; where the two are in a configuration."""
    model = qdsim.load(COUPLED)
    return model, model.slice_q("l").start, model.slice_q("r").start


def test_fingers_that_follow_others_are_taken_along():
    """By grasps, inverse kinematics and grasps made to fit: the coupling holds in each."""
    model, leader, follower = coupled_gripper()
    sampler = planning.SurfaceSampler("block", contacts=2)
    start = model.default_q
    found = [sampler(model, start, np.random.default_rng(seed)) for seed in range(6)]
    grasps = np.array([q for q in found if q is not None])
    assert len(grasps) >= 4
    for q in grasps:
        assert q[follower] == pytest.approx(0.004 + 0.5 * q[leader], abs=1e-12)
        assert len(near_pairs(model, q, 0.0)) == 0
        assert len(sampler.touching(model, q)) >= 2
    alone = planning.SurfaceSampler("block", tips=["left"], close=False)  # the follower in the air
    for seed in range(4):
        q = alone(model, start, np.random.default_rng(seed))
        assert q is not None
        for _ in range(2):  # the second one is where it has to be
            q = KeptGrasps(alone, "block", q[None])(model, start, np.random.default_rng(seed))
            assert q is not None
            assert q[follower] == pytest.approx(0.004 + 0.5 * q[leader], abs=1e-12)
    target = model.body_pose(grasps[0], "right")[0]
    reached = planning.reach_point(model, start, "right", np.zeros(3), target)
    assert reached.success
    assert reached.q[follower] == pytest.approx(0.004 + 0.5 * reached.q[leader], abs=1e-12)
    here = grasps[0].copy()
    here[model.slice_q("block").start] += 0.01
    moved = shifted(model, "block", grasps[0], here)
    assert moved[follower] == pytest.approx(0.004 + 0.5 * moved[leader], abs=1e-12)
    before, after = (model.body_pose(q, "right")[0] for q in (grasps[0], moved))
    np.testing.assert_allclose(after - before, [0.01, 0.0, 0.0], atol=1e-4)


def test_motions_take_followers_along_and_keep_them_apart():
    """Fingers that one drive moves against each other are a pair that a motion keeps apart: measured at a thousand
    places of it; no motion leads through each other."""
    model, leader, follower = coupled_gripper()
    a = model.default_q.copy()
    b = a.copy()
    b[model.slice_q("gx").start] = 0.25
    b[leader] = 0.05
    for q in (a, b):
        q[follower] = 0.004 + 0.5 * q[leader]
    motion = planning.connect(model, a, b, rng=0)
    for q in motion.at(np.linspace(0.0, motion.duration, 1000)):
        assert q[follower] == pytest.approx(0.004 + 0.5 * q[leader], abs=1e-9)
        assert model.collide(q, 0.0)["dist"].min(initial=0.0) > -1e-9
    assert motion_fault(model, motion) is None
    space = RobotSpace(model, a, b)
    fingers = {model.body_index("left"), model.body_index("right")}
    pairs = [set(model.geom_body[model.pair_geom[k]]) for k in space.pairs]
    k = pairs.index(fingers)
    # the distance between the fingers changes by 1 + 1/2 per metre of the drive
    drive = list(model.actuated_q).index(leader)
    assert space.reach[k, drive] == pytest.approx(1.5)
