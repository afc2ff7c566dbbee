"""Motions between grasps: distances, certified edges, ways around things; objects that rest or fall.

Paths are judged by distances that MuJoCo measures at many configurations on them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from itertools import pairwise

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning import Motion, MotionError, MotionOptions, Plan, connect, connect_segments
from qdsim.planning.motion.clearance import RobotSpace
from qdsim.planning.motion.motion import motion_fault
from qdsim.planning.motion.time_law import time_law

# A disc that slides in a plane between walls with a gap, and a ball that nothing moves.
ROOM = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom name="wall_a" type="box" pos="0 0.5 0" size="0.05 0.35 0.1"/>
  <geom name="wall_b" type="box" pos="0 -0.5 0" size="0.05 {half} 0.1"/>
  <body name="ball" pos="0 -2 0"><freejoint/><geom name="ball" size="0.1"/></body>
  <body name="disc"><joint name="x" type="slide" axis="1 0 0" range="-0.8 0.8"/>
    <joint name="y" type="slide" axis="0 1 0" range="-0.8 0.8"/>
    <geom name="disc" type="cylinder" size="0.1 0.05"/></body>
</worldbody><actuator><position joint="x" kp="10"/><position joint="y" kp="10"/></actuator></mujoco>"""

# A two-link arm in the plane; its tip is a sphere. A post stands where it swings.
ARM = """
<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <geom name="post" type="cylinder" pos="0.55 0 0" size="0.05 0.2"/>
  <body name="object" pos="-1 0 0"><freejoint/><geom name="object" size="0.05"/></body>
  <body name="upper"><joint name="shoulder" range="-2 2"/>
    <geom name="upper" type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
    <body name="lower" pos="0.4 0 0"><joint name="elbow" range="-2.5 2.5"/>
      <geom name="lower" type="capsule" fromto="0.1 0 0 0.4 0 0" size="0.03"/>
      <geom name="tip" pos="0.45 0 0" size="0.03"/></body></body>
</worldbody><actuator><position joint="shoulder" kp="10"/><position joint="elbow" kp="10"/>
</actuator></mujoco>"""

TABLE = """
<mujoco><option gravity="0 0 -10"/><worldbody>
  <geom name="table" type="box" size="1 1 0.1" euler="{tilt} 0 0" friction="0.5"/>
  <body name="box" pos="0 0 {z}"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1" mass="1"
    friction="0.5"/></body>
  <body name="finger" pos="0 0 0.8"><joint name="lift" type="slide" axis="0 0 1"/>
    <geom name="finger" size="0.05" mass="0.1"/></body>
</worldbody><actuator><position joint="lift" kp="100"/></actuator></mujoco>"""


def needs_ompl():
    return pytest.importorskip("ompl", reason="motions around things need ompl")


class Witness:
    """MuJoCo's distances of the pairs that a robot moves."""

    def __init__(self, model):
        self.mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
        self.data = mujoco.MjData(self.mj)
        self.model = model
        ids = [mujoco.mj_name2id(self.mj, mujoco.mjtObj.mjOBJ_GEOM, n) for n in model.geom_names]
        self.pairs = np.array(ids)[model.pair_geom]

    def distances(self, q, reach, pairs):
        """Of these candidate pairs (m), at most ``reach``."""
        self.data.qpos[:] = q
        mujoco.mj_kinematics(self.mj, self.data)
        segment = np.zeros(6)
        return np.array(
            [
                mujoco.mj_geomDistance(self.mj, self.data, *map(int, self.pairs[p]), reach, segment)
                for p in pairs
            ]
        )


def assert_free(model, motion, clearance, *, samples=300, ends=0.25):
    """A motion keeps its clearance in the middle and does not penetrate anywhere, by MuJoCo's distances."""
    witness = Witness(model)
    q = motion.configurations
    pairs = RobotSpace(model, q[0], q[-1]).pairs
    first = witness.distances(q[0], 0.05, pairs)
    last = witness.distances(q[-1], 0.05, pairs)
    floor = np.minimum(np.minimum(first, last), clearance) - 1e-4
    reached = []
    for t in np.linspace(0.0, motion.duration, samples):
        d = witness.distances(motion.at(t), 0.05, pairs)
        assert (d >= floor).all(), (t, model.pair_geom[pairs[int((d - floor).argmin())]])
        reached.append(float(d.min(initial=np.inf)))
    rest = model.unactuated_q
    np.testing.assert_array_equal(q[:, rest], np.broadcast_to(q[0, rest], (len(q), len(rest))))
    return np.array(reached)


# -------------------------------------------------------------------- distances in batch


@pytest.mark.parametrize(
    "name",
    ["planar_hand", "planar_pushing", "allegro_sphere", "allegro_plate", "iiwa_bimanual_box"],
)
def test_pair_distances_are_those_of_collide_and_of_mujoco(name):
    system = systems.load(name)
    model, rng = system.model, np.random.default_rng(0)
    q = np.array(
        [model.integrate(system.start.q, 0.15 * v) for v in rng.standard_normal((40, model.nv))]
    )
    found = qdsim.pair_distances(model, q, 0.1)
    assert found.shape == (40, model.pair_count)
    for row, at in zip(found, q):
        contacts = model.collide(at, 0.1)
        expected = np.full(model.pair_count, 0.1)
        np.minimum.at(expected, contacts["pair"], contacts["dist"])
        np.testing.assert_array_equal(row, expected)
    witness = Witness(model)
    for row, at in zip(found[:8], q):
        apart = np.flatnonzero(row > 0.0)
        theirs = witness.distances(at, 0.1, apart)
        np.testing.assert_allclose(row[apart], np.minimum(theirs, 0.1), atol=2e-6)
        inside = np.flatnonzero(row < -1e-5)
        assert (witness.distances(at, 0.1, inside) <= 1e-6).all()


def test_pair_distances_do_not_depend_on_threads_or_layout():
    system = systems.load("allegro_sphere")
    model, rng = system.model, np.random.default_rng(1)
    v = 0.1 * rng.standard_normal((6, 20, model.nv))
    q = np.array([[model.integrate(system.start.q, x) for x in rows] for rows in v])
    expected = qdsim.pair_distances(model, q, 0.05, threads=1)
    assert expected.shape == (6, 20, model.pair_count)
    for threads in (2, 7, None):
        assert qdsim.pair_distances(model, q, 0.05, threads=threads).tobytes() == expected.tobytes()
    wide = np.zeros((6, 40, model.nq + 3))
    wide[:, ::2, 1:-2] = q
    strided = qdsim.pair_distances(model, wide[:, ::2, 1:-2], 0.05)
    assert strided.tobytes() == expected.tobytes()
    assert qdsim.pair_distances(model, q[0, 0], 0.05).tobytes() == expected[0, 0].tobytes()
    assert qdsim.pair_distances(model, np.empty((0, model.nq))).shape == (0, model.pair_count)
    far = qdsim.pair_distances(model, q[0], math.inf)
    assert np.isfinite(far).all() and (far >= expected[0] - 1e-15).all()


def test_bad_configurations_are_named():
    model = systems.load("allegro_sphere").model
    q = np.array([model.default_q] * 3)
    with pytest.raises(TypeError, match="model"):
        qdsim.pair_distances("hand", q)
    with pytest.raises(ValueError, match=r"q: expected shape"):
        qdsim.pair_distances(model, q[:, 1:])
    with pytest.raises(ValueError, match="margin"):
        qdsim.pair_distances(model, q, math.nan)
    q[2, 0] = np.nan
    with pytest.raises(ValueError, match="q: sample 2: element 0"):
        qdsim.pair_distances(model, q)
    q[2] = model.default_q
    q[1, model.slice_q("ball").start + 3] = 3.0
    with pytest.raises(ValueError, match="q: sample 1: the quaternion"):
        qdsim.pair_distances(model, q)
    q[1] = model.default_q
    q[1, model.slice_q("ball").start] = 1e308
    q[1, model.slice_q("ball").start + 1] = 1e308
    found = qdsim.pair_distances(model, q)  # far away, and finite
    assert np.isfinite(found).all()


# -------------------------------------------------------------------- certified edges


@pytest.mark.parametrize(
    "name", ["planar_hand", "allegro_pen", "allegro_door", "iiwa_bimanual_box"]
)
def test_nothing_moves_further_than_its_reach(name):
    """Distances change by no more than relative motion, which the reach bounds."""
    system = systems.load(name)
    model, rng = system.model, np.random.default_rng(2)
    q = np.array(system.start.q)
    space = RobotSpace(model, q, q)
    low, high = np.maximum(space.lower, -3.0), np.minimum(space.upper, 3.0)
    x = low + rng.random((400, model.nu)) * (high - low)
    step = rng.standard_normal(x.shape) * 0.2
    step[::2] *= np.eye(model.nu)[rng.integers(model.nu, size=200)]
    y = np.clip(x + step, low, high)
    qx, qy = space.configurations(x), space.configurations(y)
    pairs = space.pairs
    a = qdsim.pair_distances(model, qx, 10.0)[:, pairs]
    b = qdsim.pair_distances(model, qy, 10.0)[:, pairs]
    bound = np.abs(y - x) @ space.reach.T
    apart = (a > 0.0) & (b > 0.0)
    assert apart.sum() > 1000
    assert (np.abs(b - a) <= bound + 1e-9)[apart].all()


def test_certified_edges_are_free_and_others_are_not():
    system = systems.load("allegro_sphere")
    model, rng = system.model, np.random.default_rng(3)
    start = np.array(system.start.q)
    space = RobotSpace(model, start, start)
    witness = Witness(model)
    floor = np.full(len(space.pairs), 1e-3)
    outcomes = []
    for _ in range(80):
        a, b = space.lower + rng.random((2, model.nu)) ** 1.3 * 0.75 * (space.upper - space.lower)
        hit = space._first_hit(a, b, floor)
        outcomes.append(hit is None)
        if hit is not None:
            share, pair, distance = hit
            q = space.configurations(a + share * (b - a))
            there = witness.distances(q, 0.05, space.pairs[[pair]])[0]
            assert there < 1e-3 + 1e-5
            assert distance > 0.0 or there < 1e-5
        else:
            for s in np.linspace(0.0, 1.0, 15):
                d = witness.distances(space.configurations(a + s * (b - a)), 0.05, space.pairs)
                assert d.min() > 1e-3 - 0.5e-4 - 1e-5
    assert 10 < sum(outcomes) < 70


# -------------------------------------------------------------------- motions


def test_straight_line_needs_no_ompl(monkeypatch):
    for module in ("ompl", "ompl.base", "ompl.geometric", "ompl.util"):
        monkeypatch.setitem(sys.modules, module, None)
    model = qdsim.load(ROOM.format(half=0.35))
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [-0.5, 0.0], [0.5, 0.0]
    motion = connect(model, a, b)
    assert motion.planner == "line" and len(motion.times) == 2
    # one metre at 1 m/s with 5 m/s^2: 0.2 s up, 0.8 s on, 0.2 s down
    assert motion.duration == pytest.approx(1.2)
    x = model.actuated_q[0]
    np.testing.assert_allclose(motion.at([0.1, 0.2, 0.7, 1.1])[:, x], [-0.475, -0.4, 0.1, 0.475])
    np.testing.assert_allclose(motion.rates([-0.1, 0.1, 0.6, 1.1, 1.3])[:, x], [0, 0.5, 1, 0.5, 0])
    steady = connect(model, a, b, MotionOptions(acceleration=None))
    assert steady.duration == pytest.approx(1.0)
    np.testing.assert_allclose(steady.at(0.25)[model.actuated_q], [-0.25, 0.0])
    np.testing.assert_array_equal(motion.at([-1.0, 99.0]), [a, b])
    b[model.actuated_q] = [0.5, 0.7]
    with pytest.raises(ImportError, match=r"pip install 'qdsim\[planning\]'") as error:
        connect(model, a, b)
    assert "\n" not in str(error.value)


def speeds_and_accelerations(motion, joints, count=20001):
    """Of each joint at many times, by differences of its configurations alone."""
    t = np.linspace(0.0, motion.duration, count)
    q = motion.at(t)[:, joints]
    v = np.diff(q, axis=0) / t[1]
    return np.abs(v).max(axis=0), np.abs(np.diff(v, axis=0)).max(axis=0) / t[1]


@pytest.mark.parametrize("seed", range(4))
def test_time_laws_keep_every_joints_limits_and_no_faster_one_does(seed):
    rng = np.random.default_rng(seed)
    count, joints = 6, 3
    points = rng.standard_normal((count, joints)) * 10.0 ** rng.uniform(-3, 0.5, (count, 1))
    points[3] = points[2]  # a piece that does not move
    speed, acceleration = rng.uniform(0.2, 2.0, joints), rng.uniform(0.5, 20.0, joints)
    times, ramps = time_law(points, speed, acceleration)
    motion = Motion(points, times, "line", ramps)
    np.testing.assert_allclose(motion.at(times), points, atol=1e-12)
    np.testing.assert_allclose(motion.rates(times), 0.0, atol=1e-9)  # at rest at every corner
    for k in range(count - 1):
        inside = np.linspace(times[k], times[k + 1], 2001)[1:-1]
        v = motion.rates(inside)
        a = np.diff(v, axis=0) / (inside[1] - inside[0])
        of_speed, of_acceleration = np.abs(v).max(0) / speed, np.abs(a).max(0) / acceleration
        assert of_speed.max() <= 1.0 + 1e-9 and of_acceleration.max() <= 1.0 + 1e-9
        if k != 2:
            # Bang-bang along a line: the time is least where the acceleration is at its limit and either the speed
            # gets there too or there is nothing but speeding up and slowing down.
            assert of_acceleration.max() == pytest.approx(1.0)
            bang = 2.0 * ramps[k] == pytest.approx(times[k + 1] - times[k])
            assert bang or of_speed.max() == pytest.approx(1.0)
        # the rates are those of the configurations
        q = motion.at(inside)
        dt = inside[1] - inside[0]
        off = np.abs(np.diff(q, axis=0) - 0.5 * (v[1:] + v[:-1]) * dt)
        # of trapezoids, where the acceleration turns from one limit to the other within one
        assert np.all(off <= 1e-9 + 0.25 * acceleration * dt**2)


def test_limits_may_be_each_joints_own():
    model = qdsim.load(ROOM.format(half=0.35))
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [-0.5, 0.6], [-0.4, 1.0]
    own = MotionOptions(speed=(1.0, 0.2), acceleration=(50.0, 2.0))
    motion = connect(model, a, b, own)
    speeds, accelerations = speeds_and_accelerations(motion, model.actuated_q)
    np.testing.assert_allclose(speeds, [0.05, 0.2], rtol=1e-6)
    np.testing.assert_allclose(accelerations, [0.5, 2.0], rtol=1e-3)
    assert motion.duration == pytest.approx(0.4 / 0.2 + 0.2 / 2.0)
    for name in ("speed", "acceleration"):
        with pytest.raises(ValueError, match=f"{name}: expected a number or 2 of them, got 3"):
            connect(model, a, b, MotionOptions(**{name: (1.0, 1.0, 1.0)}))


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_around_a_wall(seed):
    needs_ompl()
    model = qdsim.load(ROOM.format(half=0.35))
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [-0.3, 0.7], [0.3, 0.7]
    options = MotionOptions(clearance=0.01, speed=0.5)
    motion = connect(model, a, b, options, seed)
    assert motion.planner == "RRTConnect"
    reached = assert_free(model, motion, 0.01, samples=1000)
    assert reached.min() >= 0.01 - 1e-6
    # through the gap, at whose middle it is 0.05 m from both walls, and no faster than told
    assert reached.min() < 0.06
    speeds, accelerations = speeds_and_accelerations(motion, model.actuated_q)
    assert 0.49 < speeds.max() <= 0.5 * (1.0 + 1e-6)
    assert 4.9 < accelerations.max() <= 5.0 * (1.0 + 1e-4)
    again = connect(model, a, b, options, seed)
    assert again.configurations.tobytes() == motion.configurations.tobytes()


def test_arm_around_a_post():
    needs_ompl()
    model = qdsim.load(ARM)
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [0.5, 0.0], [-1.5, 0.0]
    motion = connect(model, a, b, MotionOptions(clearance=5e-3), 0)
    assert motion.planner == "RRTConnect"
    assert assert_free(model, motion, 5e-3, samples=1000).min() >= 5e-3 - 1e-6
    assert abs(motion.configurations[:, model.actuated_q[1]]).max() > 0.5  # it bends its elbow


def test_no_way_is_said_so():
    needs_ompl()
    model = qdsim.load(ROOM.format(half=0.649))  # the gap is narrower than the disc
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [-0.5, 0.0], [0.5, 0.0]
    with pytest.raises(
        MotionError, match=r"no path in .* s with 2 mm.*'wall_.' and 'disc'"
    ) as error:
        connect(model, a, b, MotionOptions(time_limit=0.3))
    assert "\n" not in str(error.value)


def test_ends_that_penetrate_are_named():
    model = qdsim.load(ROOM.format(half=0.35))
    a, b = np.array(model.default_q), np.array(model.default_q)
    a[model.actuated_q], b[model.actuated_q] = [-0.5, 0.0], [0.0, 0.5]
    with pytest.raises(MotionError, match="q_to: 'wall_a' and 'disc' are -"):
        connect(model, a, b)
    with pytest.raises(MotionError, match="q_from: "):
        connect(model, b, a)
    moved = a.copy()
    moved[model.slice_q("ball").start] += 1e-3
    with pytest.raises(ValueError, match="q_to: coordinates that the robot does not move"):
        connect(model, a, moved)
    with pytest.raises(ValueError, match="q_from: expected shape"):
        connect(model, a[1:], b)


def test_tied_joints_are_refused():
    tied = ROOM.format(half=0.35).replace(
        "<actuator>", '<equality><joint name="tie" joint1="y" joint2="x"/></equality><actuator>'
    )
    model = qdsim.load(tied)
    with pytest.raises(ValueError, match="constraint 'tie' couples"):
        connect(model, model.default_q, model.default_q)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clearance", -1.0),
        ("time_limit", math.inf),
        ("speed", 0.0),
        ("speed", (1.0, 0.0)),
        ("speed", ()),
        ("acceleration", -1.0),
        ("acceleration", math.nan),
        ("penetration", math.nan),
    ],
)
def test_bad_options_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        MotionOptions(**{name: value})


def plan_of(name, seed=0):
    task = next(iter(systems.load(name).tasks.values()))
    for s in range(seed, seed + 5):
        tree = planning.rrt(task, rng=s)
        if tree.reached and len(tree.plan().segments) > 1:
            return task, tree.plan()
    raise AssertionError("no plan with a regrasp")


@pytest.fixture(scope="module")
def hand():
    """A plan with all its motions; in the plane, a disc may stand in the only way that joint limits leave."""
    needs_ompl()
    for seed in range(4):
        task, plan = plan_of("planar_hand", seed)
        connected, reasons = connect_segments(plan, task.model, MotionOptions(time_limit=1.0))
        if reasons == (None,) * len(plan.regrasps):
            return task, connected
        assert all(why is None or "disc" in why for why in reasons)
    raise AssertionError("no plan with all its motions")


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "name",
    ["planar_pushing", pytest.param("allegro_sphere", marks=pytest.mark.long), "iiwa_box_push"],
)
def test_regrasps_of_plans(name):
    needs_ompl()
    task, plan = plan_of(name)
    connected, reasons = connect_segments(plan, task.model)
    assert reasons == (None,) * len(plan.regrasps)
    assert connected.check(task.model).good
    for motion in connected.motions:
        assert_free(task.model, motion, 2e-3, samples=150)


@pytest.mark.long
def test_planar_hand_opens_before_it_moves(hand):
    task, plan = hand
    model = task.model
    for motion, (before, after) in zip(plan.motions, plan.regrasps):
        np.testing.assert_array_equal(motion.configurations[[0, -1]], [before, after])
        reached = assert_free(model, motion, 2e-3, samples=400)
        # it touches at the ends only: the middle keeps the clearance
        assert (reached < 2e-3 - 1e-4).mean() < 0.2
        assert (np.diff(motion.times) > 0.0).all()
    assert len(plan.sequence) == 2 * len(plan.segments) - 1
    assert all(isinstance(part, Motion) for part in plan.sequence[1::2])
    assert plan.check(model).good


def test_bad_motions_are_found_out(hand):
    task, plan = hand
    model = task.model
    through = np.array(plan.motions[0].configurations)
    middle = through[len(through) // 2].copy()
    rng, limits = np.random.default_rng(0), model.joint_range[3:]
    while planning.task.robot.penetration(model, middle) < 0.01:
        middle[model.actuated_q] = rng.uniform(*limits.T)
    bad = Motion(np.array([through[0], middle, through[-1]]), np.arange(3.0), "line")
    assert "mm apart" in motion_fault(model, bad)
    verdict = dataclasses.replace(plan, motions=(bad, *plan.motions[1:])).check(model)
    assert any("the motion of regrasp 0" in fault for fault in verdict.faults)

    late = Motion(through, np.zeros(len(through)), "line")
    assert motion_fault(model, late) == "its times do not rise"
    hasty = Motion(through, np.arange(len(through)), "line", np.full(len(through) - 1, 0.6))
    assert motion_fault(model, hasty) == "its ramps do not fit into its pieces"
    slid = through.copy()
    slid[1, 0] += 1e-6
    assert "something else" in motion_fault(model, Motion(slid, np.arange(len(slid)), "line"))
    out = through.copy()
    out[1, model.actuated_q[1]] = -2.5
    assert "limits" in motion_fault(model, Motion(out, np.arange(len(out)), "line"))
    none = dataclasses.replace(plan, motions=(None, *plan.motions[1:]))
    assert any("there is none" in fault for fault in none.check(model).faults)
    with pytest.raises(ValueError, match="motions: expected one for each"):
        dataclasses.replace(plan, motions=(*plan.motions, plan.motions[0]))
    with pytest.raises(ValueError, match="motions: number 0 does not join"):
        dataclasses.replace(plan, motions=(plan.motions[1], *plan.motions[1:]))


@pytest.mark.long
def test_what_is_not_found_has_a_reason(hand):
    task, plan = hand
    deep = dataclasses.replace(plan, motions=())
    options = MotionOptions(clearance=0.3, time_limit=0.05)  # more than there is room for
    connected, reasons = connect_segments(deep, task.model, options)
    for motion, reason in zip(connected.motions, reasons):
        assert (motion is None) == (reason is not None)


# -------------------------------------------------------------------- forces and files


@pytest.mark.long
def test_forces_are_those_of_the_steps(hand):
    task, plan = hand
    for segment, steps in zip(plan.segments, plan.replay(task.model).steps):
        for k, step in enumerate(steps):
            acting = step.contacts[np.any(step.contacts["force"] != 0.0, axis=1)]
            assert acting.tobytes() == segment.contacts_of(k).tobytes()
        with pytest.raises(IndexError):
            segment.contacts_of(segment.steps)
    changed = [s.contacts.copy() for s in plan.segments]
    changed[0]["force"][0] += 1e-9
    segments = (dataclasses.replace(plan.segments[0], contacts=changed[0]), *plan.segments[1:])
    verdict = dataclasses.replace(plan, segments=segments).check(task.model)
    assert verdict.faults == ("its contact forces are not those of the replay",)
    bare = dataclasses.replace(plan.segments[0], contacts=None, contact_start=None)
    with pytest.raises(ValueError, match="with_forces"):
        bare.contacts_of(0)
    with pytest.raises(ValueError, match="contact_start"):
        dataclasses.replace(plan.segments[0], contacts=changed[0][1:])
    short = plan.segments[0].cut(3)
    assert short.steps == 3 and short.knots[-1] == 3
    for k in range(3):
        assert short.contacts_of(k).tobytes() == plan.segments[0].contacts_of(k).tobytes()


def same_plans(a, b):
    for one, two in zip(a.segments, b.segments, strict=True):
        for field in ("inputs", "configurations", "knots", "contacts", "contact_start"):
            assert getattr(one, field).tobytes() == getattr(two, field).tobytes()
    for one, two in zip(a.motions, b.motions, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert one.planner == two.planner and one.times.tobytes() == two.times.tobytes()
            assert one.configurations.tobytes() == two.configurations.tobytes()
            assert one.ramps.tobytes() == two.ramps.tobytes()


def test_plans_come_back_with_motions_and_forces(hand, tmp_path):
    task, plan = hand
    path = tmp_path / "plan.npz"
    for motions in (plan.motions, (None, *plan.motions[1:]), (None,) * len(plan.motions), ()):
        given = dataclasses.replace(plan, motions=motions)
        given.save(path)
        same_plans(Plan.load(path), given)
    assert Plan.load(path).check(task.model).good


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"])) | changes.pop("header", {})
    arrays = {k: v for k, v in (arrays | changes).items() if v is not None}
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)
    return path


def test_files_without_motions_and_forces_load_and_damaged_ones_do_not(hand, tmp_path):
    task, plan = hand
    path = tmp_path / "plan.npz"

    def file(**changes):
        plan.save(path)
        return rewritten(path, **changes)

    motion_arrays = ("motion_points", "motion_configurations", "motion_times", "motion_ramps")
    gone = dict.fromkeys(("contacts", "contact_start", *motion_arrays))
    bare = Plan.load(file(header={"planners": []}, **gone))
    assert bare.motions == () and all(s.contacts is None for s in bare.segments)
    assert bare.check(task.model).good
    same_plans(bare.with_forces(task.model), dataclasses.replace(plan, motions=()))

    points = np.array([len(m.times) for m in plan.motions])
    bad = [
        ({"header": {"version": 5}}, "version 5"),
        ({"motion_ramps": None}, "has no 'motion_ramps'"),
        ({"motion_ramps": np.zeros(1)}, "motions contradict"),
        ({"header": {"version": "4"}}, "version 4"),
        ({"header": {"planners": []}}, "motions contradict"),
        ({"motion_points": points[1:]}, "motions contradict"),
        ({"motion_times": None}, "has no 'motion_times'"),
        ({"contact_start": None}, "has no 'contact_start'"),
        ({"contacts": np.zeros(3)}, "not a list of contacts"),
    ]
    for changes, message in bad:
        with pytest.raises(ValueError, match=message):
            Plan.load(file(**changes))
    contacts = np.concatenate([s.contacts for s in plan.segments])
    contacts["force"][0, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        Plan.load(file(contacts=contacts))
    q = np.concatenate([m.configurations for m in plan.motions])
    q[0, 0] += 1.0
    with pytest.raises(ValueError, match="does not join"):
        Plan.load(file(motion_configurations=q))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a plan of qdsim"):
        Plan.load(path)


# -------------------------------------------------------------------- gravity


def test_what_rests_stays_and_what_hangs_falls():
    options = qdsim.Options(h=0.05)
    resting = qdsim.load(TABLE.format(tilt=0, z=0.2))
    assert planning.is_stable(resting, resting.default_q, "box", options)
    # M v = M g h without anything below: h^2 g, with h raised to 0.1 s
    hanging = qdsim.load(TABLE.format(tilt=0, z=0.5))
    shift, turn = planning.drop(hanging, hanging.default_q, "box", options)
    assert shift == pytest.approx(0.1**2 * 10.0, rel=1e-6) and turn < 1e-9
    assert not planning.is_stable(hanging, hanging.default_q, "box", options)
    # the finger holds it from above only; nothing is below but the finger's own geometry
    caught = np.array(hanging.default_q)
    caught[hanging.actuated_q] = -0.45
    assert not planning.is_stable(hanging, caught, "box", options)


@pytest.mark.parametrize(("slope", "holds"), [(0.4, True), (0.6, False)])
def test_friction_holds_up_to_its_angle(slope, holds):
    angle = math.atan(slope)
    model = qdsim.load(TABLE.format(tilt=math.degrees(angle), z=0.3))
    q = np.array(model.default_q)
    own = model.slice_q("box")
    q[own] = [
        0.0,
        -0.2 * math.sin(angle),
        0.2 * math.cos(angle),
        *(math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0),
    ]
    # friction 0.5 against 0.5 is 0.5
    assert planning.is_stable(model, q, "box", qdsim.Options(h=0.1)) == holds


def test_plans_say_which_regrasps_drop_the_object():
    model = qdsim.load(TABLE.format(tilt=0, z=0.2))
    options = qdsim.Options(h=0.1)

    def segment(z):
        q = np.array(model.default_q)
        q[model.slice_q("box").start + 2] = z
        none = np.empty((0, model.nu)), q[None], np.empty(0, dtype=np.int64)
        return planning.Segment(*none)

    segments = tuple(segment(z) for z in (0.2, 0.2, 0.5, 0.5))
    goal = segments[-1].end
    plan = Plan("lift", "box", options, goal, 0.01, 0.01, 1e-3, segments)
    verdict = plan.check(model, require_static_regrasps=False)
    assert verdict.dropping_regrasps == (2,)
    assert verdict.notes == ("regrasps that would drop the object: [2]",)
    assert not any("drop" in fault for fault in verdict.faults)
    strict = plan.check(model)
    assert "regrasps that would drop the object: [2]" in strict.faults and not strict.notes


@pytest.mark.long
def test_planner_changes_grasps_only_where_the_object_stays():
    task = next(iter(systems.load("allegro_plate").tasks.values()))
    nodes = task.planner.replace(max_nodes=60)
    loose = planning.rrt(task, nodes.replace(require_static_regrasps=False), rng=1)
    strict = planning.rrt(task, nodes, rng=1)

    def regrasped(tree):
        rows = np.flatnonzero(tree.kind == planning.EdgeKind.REGRASP)
        return [
            planning.is_stable(task.model, tree.q[tree.parent[k]], task.object, task.options)
            for k in rows
        ]

    assert not all(regrasped(loose))
    assert all(regrasped(strict))
    # What a loose tree plans, check calls good no more.
    pushes = np.flatnonzero(loose.kind == planning.EdgeKind.PUSH)
    plans = [loose.plan(k) for k in pushes[-20:]]
    verdicts = [plan.check(task.model) for plan in plans]
    drops = [verdict for verdict in verdicts if verdict.dropping_regrasps]
    assert drops and not any(verdict.good for verdict in drops)
    assert all(any("drop" in fault for fault in verdict.faults) for verdict in drops)


# -------------------------------------------------------------------- pictures


def test_forces_are_drawn_where_they_act_after_the_step(hand):
    from qdsim.planning.drawing.planar import contact_points

    task, plan = hand
    model, disc = task.model, task.model.body_names.index("disc")
    before, after, left = [], [], []
    for segment, steps in zip(plan.segments, plan.replay(model).steps):
        for q, step in zip(segment.configurations, steps):
            here, there = (model.body_poses(x)[0][disc] for x in (q, step.q_next))
            points = contact_points(model, step)
            apart = qdsim.pair_distances(model, step.q_next)
            for c, p in zip(step.contacts, points):
                if disc in (c["body_a"], c["body_b"]) and np.linalg.norm(c["force"]) > 0.1:
                    after.append(abs(np.linalg.norm(p - there) - 0.25))
                    left.append(apart[c["pair"]])
                    before.append(abs(np.linalg.norm(c["pos"] - there) - 0.25))
                    # contacts are stored midway between the surfaces at the step's beginning
                    gap = np.linalg.norm(c["pos"] - here) - 0.25
                    assert gap == pytest.approx(0.5 * c["dist"], abs=1e-9)
    assert len(after) > 50
    # on the disc's surface, up to half of what the step's linearisation leaves of gap or penetration
    assert (np.array(after) <= 0.5 * np.abs(left) + 1e-9).all()
    assert np.median(before) > 3.0 * np.median(after)


@pytest.mark.long
def test_movies_show_the_motions(hand):
    pytest.importorskip("matplotlib")
    from qdsim.planning import pictures

    task, plan = hand
    nothing = np.empty((0, task.model.nu)), np.empty(0, dtype=np.int64)
    ends = tuple(
        planning.Segment(
            nothing[0], q[None], nothing[1], plan.segments[0].contacts[:0], np.zeros(1, int)
        )
        for q in plan.regrasps[0]
    )
    still = dataclasses.replace(plan, segments=ends, motions=plan.motions[:1])

    def shots(given):
        return pictures._shots(given, given.replay(task.model), 3, 4)

    rests = 4 // 2 + 4
    with_motion, without = shots(still), shots(dataclasses.replace(still, motions=()))
    assert len(without) == rests + 3
    count = len(with_motion) - rests
    assert 3 <= count <= 9
    moving = with_motion[2 : 2 + count]
    np.testing.assert_array_equal(moving[-1].q, plan.regrasps[0][1])
    assert all(np.any(a.q != b.q) for a, b in pairwise(moving))
    images = pictures._images(
        still, still.replay(task.model), task.model, with_motion[1:4], 1.0, None, lambda *_: None
    )
    assert np.any(images[0] != images[1]) and np.any(images[1] != images[2])
