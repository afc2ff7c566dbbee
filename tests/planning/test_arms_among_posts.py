"""Arms in the plane push blocks among posts: the planner among obstacles, with links that get in each other's way."""

import math

import numpy as np
import pytest
from arms_among_posts import pushing_task

import qdsim
from qdsim import planning
from qdsim.planning.task.robot import gap_slopes, joint_limits, near_pairs

LIMITS = planning.RRTOptions(max_nodes=4000, max_steps=30000)
CASES = [("arm", seed) for seed in (0, 1, 3, 6)] + [("snake", seed) for seed in (0, 1, 5, 7, 13)]


@pytest.mark.long
def test_blocks_get_to_their_goals():
    """Free ways, and ways round posts (arm 1 and 3, snake 1 to 13): of the nine scenes at least six by one search each.

    The last bits of a step decide which searches arrive: of six searches with other seeds 6 do for snake 7, 4 for snake
    1, 2 for arm 1 and 1 for snake 13, so that all of these three may fail at once.
    """
    arrived = []
    for robot, seed in CASES:
        task = pushing_task(robot, seed)
        tree = planning.rrt(task, LIMITS, rng=seed)
        if tree.reached:
            verdict = tree.plan().check(task.model)
            assert verdict.good, (robot, seed, verdict.faults)
            arrived.append((robot, seed))
    assert len(arrived) >= 6, arrived


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("robot", "scene"), [("arm", 5), ("snake", 3)])
def test_a_block_on_the_floor_under_gravity(robot, scene):
    """Of six scenes of the arm and two seeds each, nine searches of twelve arrive; this is one of them."""
    task = pushing_task(robot, scene, posts=3, loose=True)
    tree = planning.rrt(task, LIMITS, rng=0)
    assert tree.reached, (tree, 1e3 * tree.errors[tree.best_node])


@pytest.mark.long
@pytest.mark.parametrize(("robot", "least"), [("arm", 55), ("snake", 40)])
def test_samples_get_past_posts(robot, least):
    """So many of 120 single draws end at the block, free of posts and of the robot's other links, within limits."""
    found = 0
    for seed in range(6):
        task = pushing_task(robot, seed)
        model, lower, upper = task.model, *joint_limits(task.model)
        for draw in range(20):
            sampler = planning.SurfaceSampler("block", draws=1)
            q = sampler(model, task.start, np.random.default_rng(draw))
            if q is None:
                continue
            found += 1
            assert len(near_pairs(model, q, 0.0)) == 0
            assert len(sampler.touching(model, q)) >= 1
            joints = q[model.actuated_q]
            assert np.all(joints >= lower - 1e-12) and np.all(joints <= upper + 1e-12)
            assert np.array_equal(q[task.space.q], task.start[task.space.q])
    assert found >= least


@pytest.mark.long
def test_slopes_of_distances_are_those_of_differences():
    """Of pairs of the robot with the block, with posts and with itself."""
    compared = 0
    for seed in range(6):
        task = pushing_task("snake", seed)
        model, q, eps = task.model, task.start, 1e-6
        contacts = model.collide(q, 0.05)
        names = [(int(c["geom_a"]), int(c["geom_b"])) for c in contacts]
        single = [k for k, pair in enumerate(names) if names.count(pair) == 1]
        found = gap_slopes(model, q, contacts[single])
        for column, row in enumerate(model.actuated_q):
            ends = []
            for sign in (1.0, -1.0):
                moved = np.array(q)
                moved[row] += sign * eps
                near = model.collide(moved, 0.06)
                ends.append({(int(c["geom_a"]), int(c["geom_b"])): c["dist"] for c in near})
            for k, line in zip(single, found):
                difference = (ends[0][names[k]] - ends[1][names[k]]) / (2 * eps)
                assert line[column] == pytest.approx(difference, abs=1e-5)
                compared += 1
    assert compared > 50


@pytest.mark.parametrize("count", [2, 3, 7])
def test_places_beside_the_plane_of_an_arm_are_given_up_early(count):
    """The nearest point of the plane is found, and no damping is tried where nothing is nearer."""
    rng = np.random.default_rng(count)
    links = "".join(
        f"""<body pos="{0 if i == 0 else 0.3} 0 0"><joint name="j{i}" axis="0 0 1"/>
        <geom name="g{i}" type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/>"""
        for i in range(count)
    )
    springs = "".join(f'<position joint="j{i}" kp="10"/>' for i in range(count))
    model = qdsim.load(
        f"<mujoco><worldbody>{links}{'</body>' * count}</worldbody><actuator>{springs}</actuator></mujoco>"
    )
    tip, point = model.body_names[-1], np.array([0.3, 0.0, 0.0])
    for _ in range(10):
        q = np.array(model.default_q)
        q[model.actuated_q] = rng.uniform(-1.0, 1.0, count)
        there = np.array(q)
        there[model.actuated_q] += rng.uniform(-0.3, 0.3, count)
        pos, rot = model.body_pose(there, tip)
        place, height = pos + rot @ point, rng.uniform(0.05, 0.3)
        found = planning.reach_point(model, q, tip, point, place + [0, 0, height], tolerance=1e-4)
        assert not found.success
        assert found.position_error == pytest.approx(height, rel=1e-3)
        assert found.iterations <= 20


def test_a_radian_counts_for_what_it_moves():
    """The furthest point of a rod on a hinge, of a free ball, of a block on slides and a hinge."""
    text = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
    <body name="rod"><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 {l} 0 0" size=".01" mass="1"/></body>
    <body name="ball" pos="3 0 0"><freejoint/><geom size="{r}" mass="1"/></body>
    <body name="cart" pos="-3 0 0"><joint type="slide"/><geom size=".1" mass="1"/></body>
    <body name="hand" pos="0 3 0"><joint name="h" type="slide"/><geom size=".1" mass="1"/></body>
    </worldbody><actuator><position joint="h" kp="10"/></actuator></mujoco>"""
    rng = np.random.default_rng(0)
    for _ in range(5):
        long, radius = rng.uniform(0.1, 1.0), rng.uniform(0.02, 0.5)
        model = qdsim.load(text.format(l=long, r=radius))
        q = np.array(model.default_q)
        for name, expected in {"rod": long + 0.01, "ball": radius, "cart": 1.0}.items():
            n = planning.ObjectSpace(model, name).size
            task = planning.Task(
                "size", model, qdsim.Options(h=0.1), q, q, name, -np.ones(n), np.ones(n)
            )
            assert math.isclose(task.length, expected, rel_tol=1e-9)
            assert task.replace(length=0.3).length == 0.3
