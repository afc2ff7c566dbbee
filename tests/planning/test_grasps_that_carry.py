"""Contact samples for objects that have to be carried: antipodal ones, which hold when nothing else does."""

import math

import lifting
import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.grasps.samplers.carrying import TILT, carrying_effort, hangs
from qdsim.planning.search.grasp_samplers import grasping_tasks

# Two balls on slides at the sides of a box that floats over a table; friction 0.5.
PINCH = """
<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><default><geom friction=".5"/></default>
<worldbody><geom name="table" type="plane" size="1 1 .1" pos="0 0 -.2"/>
  <body name="object"><freejoint/><geom type="box" size=".03 .03 .03" mass=".1"/></body>
  <body name="a" pos="-.041 0 {z}"><joint name="a" type="slide" axis="1 0 0"/><geom size=".0109" mass=".1"/></body>
  <body name="b" pos=".041 0 {z}"><joint name="b" type="slide" axis="1 0 0"/><geom size=".0109" mass=".1"/></body>
</worldbody><actuator><position joint="a" kp="500"/><position joint="b" kp="500"/></actuator></mujoco>"""


@pytest.mark.long
@pytest.mark.parametrize("robot", ["gripper", "arm", "allegro", "fingers"])
def test_grasps_hold_without_the_table(robot):
    """A box, a cylinder, a sphere and a mesh: exact steps and MuJoCo."""
    held = 0
    for seed in range(len(lifting.SHAPES)):
        q = lifting.grasp(robot, seed)
        assert q is not None
        held += all(moved < lifting.SLIPS for moved in lifting.lift(robot, seed, q))
    assert held >= 3


def effort(z, **angles):
    model = qdsim.load(PINCH.format(z=z))
    q = np.array(model.default_q)
    for name, value in angles.items():
        q[model.slice_q(name)] = value
    return carrying_effort(model, q, "object", 1e-3)


def test_what_a_pinch_takes():
    """Closed form: each ball bears half the weight by friction narrowed to 0.35, tilted or not."""
    friction = 0.7 * 0.5
    # Aside of the line between the balls friction bears all; along it one ball presses more, or bears what tilts.
    pressed = 0.5 / friction
    aside = 1e-2 * math.sqrt(2.0 * (0.25 + pressed**2))
    assert effort(0.0) == pytest.approx(aside, rel=0.05)
    # Off the middle nothing resists a turn about the line. Forces F against the tilted weight's part s aside of it
    # have the arm r, in the object's length: the least of (s - F)^2 + (r F)^2 is left over.
    length = 0.03 * math.sqrt(3.0)
    for height in (-0.02, -0.01, 0.01, 0.02):
        r = abs(height) / length
        least = math.sin(TILT) * r / math.hypot(1.0, r)
        assert least <= effort(height) <= math.hypot(least, 2.0 * aside)


def test_one_finger_and_none_carry_nothing():
    assert effort(0.0, b=0.1) > 0.9
    assert effort(0.0, a=-0.1, b=0.1) == pytest.approx(1.0)


def test_what_hangs_and_what_does_not():
    task = lift_task([0.0, 0.05, 0.1, 0.0, 0.0, 0.0])
    assert hangs(task.model, task.start, "object")
    weightless = qdsim.load(PINCH.format(z=0).replace("0 0 -9.81", "0 0 0"))
    assert not hangs(weightless, weightless.default_q, "object")


def lift_task(shift, seed=0):
    model = qdsim.load(lifting.scene("gripper", seed))
    q = lifting.start(model, "gripper")
    box = np.abs(shift) + [0.05, 0.05, 0.01, 0.2, 0.2, 0.2]
    task = planning.Task(
        "lift",
        model,
        qdsim.Options(h=0.1, margin=0.05),
        q,
        q,
        "object",
        -box,
        box,
        planning.SurfaceSampler("object"),
        position_tolerance=0.01,
        rotation_tolerance=0.15,
    )
    return task.replace(goal=task.with_object(q, shift))


def test_a_planner_asks_for_them_where_the_goal_is_off_the_table():
    drawn, beside = grasping_tasks(lift_task([0.0, 0.05, 0.1, 0.0, 0.0, 0.0]))
    assert drawn.sampler.carry is None and beside.sampler.carry is False
    drawn, beside = grasping_tasks(lift_task([0.0, 0.05, 0.0, 0.0, 0.0, 0.0]))
    assert drawn.sampler.carry is False and beside is None


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 3, 4, 14])
def test_plans_that_lift(seed):
    """With a grasp that is changed on the table alone: boxes, a cylinder, a mesh, and a ball that
    two points do not keep from turning. Where a tree grows hangs on last digits, which are not those
    of another processor's linear algebra, so it has a second one."""
    task = lift_task([0.03, 0.05, 0.08, 0.0, 0.0, 0.2], seed)
    options = planning.RRTOptions(step=0.1, max_steps=20000, require_static_regrasps=True)
    tree = planning.rrt(task, options, rng=seed)
    if not tree.reached:
        tree = planning.rrt(task, options, rng=seed + 1)
    assert tree.reached, tree
    assert len(tree.plan().check(task.model).dropping_regrasps) == 0


def test_the_setting_is_checked():
    with pytest.raises(TypeError, match="carry"):
        planning.SurfaceSampler("object", carry="yes")
