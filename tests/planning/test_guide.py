"""The object's own way to its goal: free all along, and only where the straight one is not."""

from itertools import pairwise

import numpy as np
import pytest
from arms_among_posts import pushing_task

import qdsim
from qdsim import planning, systems
from qdsim.planning.search.guide import guide

BLOCKED = [("arm", 1), ("arm", 3), ("arm", 10), ("snake", 1), ("snake", 3), ("snake", 13)]


def wall(*, gap):
    """A block between two walls; ``gap``: how wide the door between them is, m."""
    half = 0.5 * (1.0 - gap)
    middle = 0.5 + 0.5 * gap - 0.5
    walls = "".join(
        f'<geom type="box" size=".02 {half} .05" pos=".3 {s * (half + middle)} .05"/>'
        for s in (-1, 1)
    )
    model = qdsim.load(f"""<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>{walls}
    <body name="block" pos="0 0 .05"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/><joint name="turn" axis="0 0 1"/>
    <geom type="box" size=".02 .1 .03" mass=".3"/></body>
    <body name="finger" pos="-.2 0 .05"><joint name="a" type="slide" axis="1 0 0"/>
    <joint name="b" type="slide" axis="0 1 0"/><geom size=".02" mass=".1"/></body></worldbody>
    <actuator><position joint="a" kp="100"/><position joint="b" kp="100"/></actuator></mujoco>""")
    start = np.array(model.default_q)
    goal = start.copy()
    goal[model.slice_q("x")] = 0.6
    return planning.Task(
        name="through a door",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=start,
        goal=goal,
        object="block",
        lower=np.array([-0.2, -0.4, -2.0]),
        upper=np.array([0.8, 0.4, 2.0]),
        sampler=planning.SurfaceSampler("block"),
    )


def least_gap(task, q):
    """m, from the object to what neither it nor the robot is."""
    model = task.model
    names = np.array(model.body_names)
    contacts = model.collide(q, 0.05)
    pairs = np.stack((names[contacts["body_a"]], names[contacts["body_b"]]))
    asked = np.any(pairs == "world", axis=0) & np.any(pairs == task.object, axis=0)
    return contacts["dist"][asked].min(initial=0.05)


def between(task, a, b, count=20):
    """Configurations on the straight way of the object."""
    way = task.space.difference(b, a)
    return [task.with_object(a, f * way) for f in np.linspace(0.0, 1.0, count)]


def way_is_blocked(task):
    return min(least_gap(task, q) for q in between(task, task.start, task.goal)) < -0.01


def assert_leads(task, found):
    poses = found.poses
    own = task.space.q
    np.testing.assert_array_equal(poses[0][own], task.start[own])
    np.testing.assert_array_equal(poses[-1][own], task.goal[own])
    for a, b in pairwise(poses):
        step = task.space.difference(b, a) * task.space.scale(task.length)
        assert np.linalg.norm(step) <= 0.8 * task.length
        assert min(least_gap(task, q) for q in between(task, a, b)) > -2e-3


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("robot", "scene"), BLOCKED)
def test_it_leads_round_posts(robot, scene):
    drawn = (pushing_task(robot, scene + 100 * k) for k in range(50))
    task = next(t for t in drawn if way_is_blocked(t))
    assert_leads(task, guide(task, np.random.default_rng(0)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_it_turns_a_block_to_get_through_a_door(seed):
    """A block of 4 cm by 20 cm and a door of 10 cm."""
    task = wall(gap=0.1)
    found = guide(task, np.random.default_rng(seed))
    assert_leads(task, found)
    through = found.poses[np.abs(found.poses[:, task.space.q[0]] - 0.3).argmin()]
    assert abs(np.sin(through[task.space.q[2]])) > 0.5


@pytest.mark.long
def test_there_is_none_where_the_straight_way_is_free_or_every_way_is_shut():
    assert guide(wall(gap=0.3), np.random.default_rng(0)) is None
    assert guide(wall(gap=0.03), np.random.default_rng(0)) is None
    for name in ("planar_hand", "planar_pushing", "allegro_sphere", "iiwa_planar"):
        task = next(iter(systems.load(name).tasks.values()))
        assert guide(task, np.random.default_rng(0)) is None


@pytest.mark.long
def test_reached_counts_the_last_pose_that_a_node_has_got_to():
    task = wall(gap=0.1)
    found = guide(task, np.random.default_rng(0))
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=1), rng=0)
    assert found.reached(tree) == 0
    tree = planning.rrt(task.replace(start=found.poses[3]), planning.RRTOptions(max_nodes=1), rng=0)
    assert found.reached(tree) == 3
