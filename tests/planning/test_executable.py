"""Plans that an execution carries out, and plans that it does not: what bears the object, and second-order rollouts."""

import dataclasses

import numpy as np
import pytest

import qdsim
from qdsim import planning

GRAVITY = 9.81
# Two fingers on one carriage, and a cube of 4 cm between them, on a table.
# Of two frictions the larger one counts: the cube's.
SCENE = """
<mujoco>
  <worldbody>
    <geom name="table" friction="0" type="plane" size="1 1 .1"/>
    <body name="carriage" pos="0 0 .02"><joint name="z" type="slide" axis="0 0 1" range="0 .3"/>
      <inertial pos="0 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>
      <body name="left" pos="-.04 0 0"><joint name="l" type="slide" axis="1 0 0" range="-.05 .05"/>
        <geom name="left" friction="0" type="box" size=".01 .01 .01" mass=".1"/></body>
      <body name="right" pos=".04 0 0"><joint name="r" type="slide" axis="-1 0 0" range="-.05 .05"/>
        <geom name="right" friction="0" type="box" size=".01 .01 .01" mass=".1"/></body></body>
    <body name="cube" pos="0 0 .02"><freejoint name="cube"/>
      <geom name="cube" type="box" size=".02 .02 .02" mass="{mass}" friction="{friction}"/></body>
  </worldbody>
  <actuator><position joint="z" kp="1000"/><position joint="l" kp="500" forcerange="-{force} {force}"/>
    <position joint="r" kp="500" forcerange="-{force} {force}"/></actuator>
</mujoco>"""


def lift(mass=0.1, friction=1.0, force=5.0, model_friction=None):
    """A model, and a plan that closes the fingers and lifts the cube by 8 cm in a world of another friction."""
    model, planned = (
        qdsim.load(SCENE.format(mass=mass, friction=mu, force=force))
        for mu in (friction, friction if model_friction is None else model_friction)
    )
    options = qdsim.Options(h=0.1)
    grasp = np.array(model.default_q)
    fingers = [model.slice_q(name).start for name in ("l", "r")]
    grasp[fingers] = 0.01
    rises = np.linspace(0.0, 0.08, 9)
    u = np.array([[0.0, 0.018, 0.018]] + [[z, 0.018, 0.018] for z in rises[1:]])
    q = qdsim.rollout(planned, grasp, u, options).q
    segment = planning.Segment(u, q, np.array([1, 5, 9]))
    plan = planning.Plan("lift", "cube", options, q[-1], 0.01, 0.1, 1e-3, (segment,))
    assert (
        q[-1][model.slice_q("cube").start + 2] > 0.085
    )  # it hangs a little lower than the carriage is told
    return plan, model


def test_a_firm_grip_is_executable():
    plan, model = lift()
    assert plan.check(model).executable is None
    verdict = plan.check(model, executable=True)
    assert verdict.good and verdict.executable and verdict.obstacles == ()
    assert "executable: yes" in repr(verdict)


def test_a_cube_in_the_air_beside_fingers_without_friction_is_not():
    plan, model = lift(friction=0.0, model_friction=1.0)
    verdict = plan.check(model, executable=True)
    assert verdict.executable is False
    # the table bears it until the first edge has ended; after that nothing does, and it falls
    assert {said.split(":")[0] for said in verdict.obstacles} == {
        "segment 0, step 5",
        "segment 0, step 9",
        "segment 0, steps 1 to 5",
        "segment 0, steps 5 to 9",
    }


@pytest.mark.parametrize(("share", "borne"), [(0.6, True), (0.8, False)])
def test_friction_is_narrowed_by_thirty_percent(share, borne):
    """Two fingers of force F bear a weight of at most 2 mu F; 0.7 of that is asked for."""
    force, friction = 5.0, 0.5
    mass = share * 2.0 * friction * force / GRAVITY
    plan, model = lift(mass, friction, force)
    said = plan.check(model, executable=True).obstacles
    assert all("step 5:" not in one and "step 9:" not in one for one in said) is borne


def test_a_plan_is_told_that_it_ends_elsewhere():
    """An edge whose configurations are not what its commands bring about."""
    plan, model = lift()
    (segment,) = plan.segments
    wrong = np.array(segment.configurations)
    at = model.slice_q("cube").start
    wrong[1:, at] += 0.1
    moved = dataclasses.replace(
        plan, segments=(dataclasses.replace(segment, configurations=wrong),)
    )
    assert any("steps 0 to 1" in said for said in moved.check(model, executable=True).obstacles)


def test_what_rubs_on_a_plane_that_is_not_in_the_model():
    """A pusher takes a box along as planned where its spring wins against the plane's friction, else not."""
    xml = """
    <mujoco><option gravity="0 0 0"/><worldbody>
      <body name="box"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
        <geom type="box" size=".05 .05 .05" mass="1"/></body>
      <body name="finger" pos="-.07 0 0"><joint name="push" type="slide" axis="1 0 0" range="-1 1"/>
        <geom type="sphere" size=".02" mass=".1"/></body></worldbody>
      <actuator><position joint="push" kp="{kp}"/></actuator></mujoco>"""
    for kp, good in ((2000.0, True), (60.0, False)):
        model = qdsim.load(xml.format(kp=kp))
        options = qdsim.Options(h=0.1)
        u = np.linspace(0.01, 0.1, 10)[:, None]
        q = qdsim.rollout(model, model.default_q, u, options).q
        segment = planning.Segment(u, q, np.array([10]))
        plan = planning.Plan("push", "box", options, q[-1], 0.01, 0.05, 1e-3, (segment,))
        assert plan.check(model, executable=True).executable is good


def test_a_box_that_slides_on_the_floor_is_borne_by_it():
    """A convex step opens a contact that slides: pushed by 15 mm a step at friction 0.4 the box is 6 mm above the floor
    at the end of each edge. In a second-order world it slides along."""
    xml = """
    <mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1" friction=".4"/>
      <body name="box" pos="0 0 .05"><freejoint name="box"/>
        <geom type="box" size=".1 .1 .05" mass="1" friction=".1"/></body>
      <body name="finger" pos="-.121 0 .03"><joint name="push" type="slide" axis="1 0 0" range="-1 1"/>
        <geom type="sphere" size=".02" mass=".1" friction=".1"/></body></worldbody>
      <actuator><position joint="push" kp="4000"/></actuator></mujoco>"""
    model = qdsim.load(xml)
    options = qdsim.Options(h=0.1)
    u = np.linspace(0.015, 0.15, 10)[:, None]
    q = qdsim.rollout(model, model.default_q, u, options).q
    assert q[-1][model.slice_q("box").start + 2] > 0.055
    segment = planning.Segment(u, q, np.array([5, 10]))
    plan = planning.Plan("push", "box", options, q[-1], 0.02, 0.05, 1e-3, (segment,))
    assert plan.check(model, executable=True).obstacles == ()


def test_a_lid_is_borne_by_the_limit_of_its_hinge():
    xml = """
    <mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
      <body name="lid" pos="0 0 .2"><joint name="lid" axis="0 -1 0" range="0 2"/>
        <geom type="box" size=".1 .1 .01" pos=".1 0 0" mass=".5"/></body>
      <body name="finger" pos=".15 0 .1"><joint name="push" type="slide" axis="0 0 1" range="-1 1"/>
        <geom type="sphere" size=".02" mass=".1"/></body></worldbody>
      <actuator><position joint="push" kp="4000"/></actuator></mujoco>"""
    model = qdsim.load(xml)
    segment = planning.Segment(np.zeros((1, 1)), np.tile(model.default_q, (2, 1)), np.array([1]))
    plan = planning.Plan(
        "stay", "lid", qdsim.Options(h=0.1), model.default_q, 0.02, 0.05, 1e-3, (segment,)
    )
    assert plan.check(model, executable=True).obstacles == ()


def test_the_flag_is_a_flag():
    plan, model = lift()
    with pytest.raises(TypeError, match="executable"):
        plan.check(model, executable="yes")


TALL = """
<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="box" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><joint name="tilt" axis="0 1 0"/>
    <geom type="box" size=".03 .03 .1" mass="1"/></body>
  <body name="finger" pos="-.06 0 .1"><joint name="push" type="slide" axis="1 0 0" range="-.2 1"/>
    <joint name="height" type="slide" axis="0 0 1" range="-.08 .08"/><geom type="sphere" size=".01" mass=".1"/></body>
</worldbody><actuator><position joint="push" kp="2000"/><position joint="height" kp="2000"/></actuator></mujoco>"""


def touch_anywhere(model, q, rng):
    """The finger behind the box, at any height."""
    grasp = np.array(q)
    at = {name: model.slice_q(name).start for name in ("push", "height", "x")}
    grasp[at["push"]], grasp[at["height"]] = q[at["x"]] + 0.02, rng.uniform(-0.08, 0.08)
    return grasp


def test_certified_pushes_do_not_tip_the_box():
    """On a floor of friction 1 a box of 6 by 20 cm tips if it is pushed above 3 cm: certified pushes end as planned, in
    rollouts and in MuJoCo (without, 8 tolerances off)."""
    model = qdsim.load(TALL)
    start, goal = np.array(model.default_q), np.array(model.default_q)
    goal[model.slice_q("x")] = 0.15
    start[model.slice_q("push")] = -0.1
    task = planning.Task(
        name="push",
        model=model,
        options=qdsim.Options(h=0.1),
        start=start,
        goal=goal,
        object="box",
        lower=np.array([-0.02, 0.0, -0.2]),
        upper=np.array([0.2, 0.05, 0.2]),
        position_tolerance=0.01,
        rotation_tolerance=0.05,
        length=0.1,
        sampler=touch_anywhere,
    )
    tree = planning.rrt(task, planning.RRTOptions(step=0.05, max_nodes=600, certify=True), rng=0)
    plan = tree.plan()
    assert not any("rollouts" in said for said in plan.check(model, executable=True).obstacles)
    each = planning.TransferOptions(carry_on=False)
    told = planning.transfer(plan, task, each, controller="open")
    assert all(task.in_tolerances(one.final) < 2.0 for one in told.segments)
