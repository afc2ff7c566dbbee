"""Pushes of a search: along with the object, and without tipping what is to stay upright."""

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.execution.routes import Edge
from qdsim.planning.grasps.resting import STILL_ROTATION
from qdsim.planning.search.command_changes import around, following
from qdsim.planning.search.push_limits import PushLimits
from qdsim.planning.task.space import ObjectSpace

# A column of 4 by 4 by 12 cm with friction 1, and a ball of 1 cm that moves in space.
COLUMN = """<mujoco><worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="column" pos="0 0 .06"><freejoint name="column"/>
      <geom type="box" size=".02 .02 .06" mass=".2"/></body>
    <body name="ball" pos="-.0301 0 {height}">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".01" mass=".1"/></body></worldbody>
    <actuator><position joint="x" kp="1000"/><position joint="y" kp="1000"/>
      <position joint="z" kp="1000"/></actuator></mujoco>"""
# A door of 20 cm on its hinge, and a fingertip that moves in the plane at its edge.
DOOR = """<mujoco><option gravity="0 0 0"/><worldbody>
    <body name="door"><joint name="hinge" type="hinge" axis="0 0 1"/>
      <geom type="box" size=".1 .01 .1" pos=".1 0 0" mass="1"/></body>
    <body name="tip" pos=".15 -.0201 0">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <geom type="sphere" size=".01" mass=".1"/></body></worldbody>
    <actuator><position joint="x" kp="100"/><position joint="y" kp="100"/></actuator></mujoco>"""
FREE = (np.full(3, -np.inf), np.full(3, np.inf))


def task_of(height: float, **changes: object) -> planning.Task:
    """The column is to move 10 cm ahead of the ball, upright."""
    model = qdsim.load(COLUMN.format(height=height))
    goal = np.array(model.default_q)
    goal[model.slice_q("column").start] += 0.1
    settings = {
        "name": "column",
        "model": model,
        "options": qdsim.Options(h=0.1, margin=0.05),
        "start": model.default_q,
        "goal": goal,
        "object": "column",
        "lower": np.array([0.0, -0.01, 0.0, 0.0, 0.0, -0.1]),
        "upper": np.array([0.1, 0.01, 0.0, 0.0, 0.0, 0.1]),
        "length": 0.06,
    }
    return planning.Task(**(settings | changes))


def leans(model: qdsim.Model, q: np.ndarray) -> float:
    """Angle of the column's axis with the vertical, rad."""
    return float(np.arccos(np.clip(model.body_pose(q, "column")[1][2, 2], -1.0, 1.0)))


def pushed(task: planning.Task, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Ten steps of the ball by ``reach`` m along x: commands and configurations."""
    start = task.model.command_from(task.start)
    u = start + np.outer(np.arange(1, 11) / 10.0, [reach, 0.0, 0.0])
    return u, qdsim.rollout(task.model, task.start, u, task.options).q[1:]


def test_a_ball_follows_the_point_that_it_touches() -> None:
    task = task_of(0.02)
    space = ObjectSpace(task.model, "column")
    motion = np.array([0.01, 0.002, 0.0, 0.0, 0.0, 0.0])
    du = following(task.model, task.start, space, motion, 1e-3, *FREE)
    assert du == pytest.approx(motion[:3], rel=1e-4)
    bounds = np.full(3, -0.004), np.full(3, 0.004)
    held = following(task.model, task.start, space, motion, 1e-3, *bounds)
    assert held == pytest.approx([0.004, 0.002, 0.0], rel=1e-3)
    away = np.array(task.start)
    away[task.model.slice_q("x")] -= 0.01
    assert following(task.model, away, space, motion, 1e-3, *FREE) is None


def test_a_fingertip_follows_a_door_on_its_circle() -> None:
    """Omega times the lever: (-y, x) of the contact, half way between the surfaces."""
    model = qdsim.load(DOOR)
    motion = np.array([0.1])
    du = following(
        model, model.default_q, ObjectSpace(model, "door"), motion, 1e-3, *(b[:2] for b in FREE)
    )
    assert du == pytest.approx(0.1 * np.array([0.01005, 0.15]), rel=1e-3)


def test_low_pushes_slide_and_high_ones_tip() -> None:
    """Below its half side over the friction a push slides the column; above, it tips (statics)."""
    for height, tips in ((0.015, False), (0.11, True)):
        task = task_of(height)
        u, path = pushed(task, 0.03)
        assert (max(leans(task.model, q) for q in path) > 0.1) == tips
        kept = PushLimits(task, planning.RRTOptions())(u, path)
        assert kept is not None
        count = len(kept[0])
        assert (count < 10) == tips and len(kept[1]) == count
        assert all(leans(task.model, q) <= 0.1 for q in kept[1])
        if tips:
            assert leans(task.model, path[count]) > 0.1  # no earlier than it has to


@pytest.mark.parametrize("reach", [0.017, 0.035])
def test_what_leans_on_the_robot_is_let_go_where_it_rests(reach: float) -> None:
    """Pushed at its top, the column leans by 0.15 rad, or would by 0.35 where its corner is below its centre at 0.32: the
    push ends as soon as it tips, and the ball goes back as it came until the column stands again, where it stood."""
    task = task_of(0.11)
    u, _ = pushed(task, reach)
    path = np.repeat(task.start[None], 11, axis=0)  # it was to stand
    segment = planning.Segment(u, path, np.array([10]))
    tolerances = task.position_tolerance, task.rotation_tolerance
    plan = planning.Plan("tip", "column", task.options, task.goal, *tolerances, 1e-3, (segment,))
    world = planning.TransferOptions(timestep=1e-3)
    executor = planning.Executor(task, plan, world=world)
    execution = executor._execution
    execution.drive(executor._run(Edge("push", segment)))
    assert 0.12 < leans(task.model, execution.plant.q) < 0.25
    execution.drive(execution.let_go())
    # what a step without the robot would move by less than this rests
    assert leans(task.model, execution.plant.q) < 2.0 * STILL_ROTATION
    moved = task.space.difference(execution.plant.q, task.start)
    assert np.abs(moved[:3]).max() < 3e-3


def test_an_object_that_is_to_lie_down_may_tip() -> None:
    task = task_of(0.11)
    lying = np.array(task.goal)
    first = task.model.slice_q("column").start
    lying[first + 2 : first + 7] = 0.02, np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0
    down = task_of(
        0.11,
        goal=lying,
        lower=np.array([0.0, -0.01, -0.05, 0.0, 0.0, -0.1]),
        upper=np.array([0.1, 0.01, 0.0, 0.0, 1.6, 0.1]),
    )
    u, path = pushed(down, 0.03)
    kept = PushLimits(down, planning.RRTOptions())(u, path)
    assert kept is not None and len(kept[0]) == 10
    published = PushLimits(task, planning.RRTOptions.published())(u, path)
    assert published is not None and len(published[0]) == 10


def test_random_ways_are_no_longer_than_asked_and_within_bounds() -> None:
    rng = np.random.default_rng(0)
    within = np.array([-0.05, -np.inf, -np.inf]), np.array([0.05, np.inf, np.inf])
    for du in (np.zeros(3), np.array([0.0, 1.0, 0.0])):
        ways = around(du, 50, 0.2, within, rng)
        assert np.linalg.norm(ways, axis=1).max() <= 0.2 + 1e-12
        assert np.abs(ways[:, 0]).max() <= 0.05
    assert ways[:, 1].mean() > 0.05  # scattered around the given direction


# A fork whose two prongs are at their limits, 1 mm deep in a box of 6 cm between them.
FORK = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
    <body name="box" pos="0 0 .0301"><freejoint/>
      <geom type="box" size=".03 .03 .03" mass=".2" friction=".5"/></body>
    <body pos="0 0 .03">
      <joint name="x" type="slide" axis="1 0 0" range="-.3 .3"/>
      <joint name="z" type="slide" axis="0 0 1" range="0 .3"/>
      <inertial pos="0 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>
      <body pos="0 .039 0"><joint name="left" type="slide" axis="0 1 0" range="-.04 0"/>
        <geom type="sphere" size=".01" mass=".1"/></body>
      <body pos="0 -.039 0"><joint name="right" type="slide" axis="0 1 0" range="0 .04"/>
        <geom type="sphere" size=".01" mass=".1"/></body></body></worldbody>
    <actuator><position joint="x" kp="500"/><position joint="z" kp="500"/>
      <position joint="left" kp="500"/><position joint="right" kp="500"/></actuator></mujoco>"""


@pytest.mark.parametrize("seed", [0, 1])
def test_a_robot_leaves_what_it_clamps(seed: int) -> None:
    """Soft contacts let fingers at their limits sink into an object. The exact step has no solution from there, so no
    push and no settling begins at such a start, but the object rests, and the robot may take another grasp."""
    model = qdsim.load(FORK)
    start, goal = np.array(model.default_q), np.array(model.default_q)
    goal[model.slice_q("box").start] += 0.05
    task = planning.Task(
        name="clamped",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.02),
        start=start,
        goal=goal,
        object="box",
        lower=np.array([-0.1, -0.1, 0.0, -0.3, -0.3, -1.0]),
        upper=np.array([0.1, 0.1, 0.02, 0.3, 0.3, 1.0]),
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        start_tolerance=np.inf,
        sampler=planning.SurfaceSampler("box"),
    )
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        qdsim.step(model, start, model.command_from(start), task.options)
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=60, max_idle=40), rng=seed)
    assert tree.reached
    first = tree.plan().segments
    assert np.array_equal(first[0].configurations, start[None])  # nothing but the way to the grasp
    assert len(first) > 1
