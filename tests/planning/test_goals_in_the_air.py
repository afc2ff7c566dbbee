"""Plans to goals at which nothing but the robot holds the object: where it lands, and how it gets there."""

import itertools

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning.grasps.resting import landing
from qdsim.planning.roadmap.poses import draw_poses
from qdsim.planning.search.rrt import _Search

OPTIONS = qdsim.Options(h=0.1, margin=0.2)
SCENE = """
<mujoco><option gravity="0 0 -9.81"/>
<worldbody>{floor}
  <body name="object" pos="0 0 {z}"><freejoint/><geom {shape} mass=".2" friction="1"/></body>
  <body name="finger" pos=".3 0 .5"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
    <geom size=".02" mass=".1"/></body>
</worldbody><actuator><position joint="x" kp="500"/></actuator></mujoco>"""
FLOOR = '<geom type="plane" size="2 2 .1"/>'


@pytest.mark.parametrize("seed", range(6))
def test_what_is_let_go_lands_flat(seed):
    """A ball at its radius; a box, tilted by less than its edges' angle, on the face that was below."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0.02, 0.05, 3)
    ball = qdsim.load(SCENE.format(floor=FLOOR, z=0.3, shape=f'type="sphere" size="{a}"'))
    q = np.array(ball.default_q)
    q[ball.slice_q("finger")] = 0.1
    found = landing(ball, q, "object", OPTIONS)
    assert found is not None
    assert found[:3] == pytest.approx([0.0, 0.0, a], abs=1e-5)
    assert found[ball.slice_q("finger")] == q[ball.slice_q("finger")]
    assert planning.is_stable(ball, found, "object", OPTIONS)

    box = qdsim.load(SCENE.format(floor=FLOOR, z=0.3, shape=f'type="box" size="{a} {b} {c}"'))
    tilt = np.zeros(box.nv)
    tilt[3:5] = rng.uniform(-0.2, 0.2, 2)
    found = landing(box, box.integrate(box.default_q, tilt), "object", OPTIONS)
    assert found is not None
    pos, rot = box.body_pose(found, "object")
    assert pos[2] == pytest.approx(c, abs=1e-4)
    assert rot[2, 2] == pytest.approx(1.0, abs=1e-6)
    assert planning.is_stable(box, found, "object", OPTIONS)
    again = landing(box, found, "object", OPTIONS)
    np.testing.assert_allclose(again, found, atol=1e-5)


def test_what_falls_out_of_the_scene_lands_nowhere():
    model = qdsim.load(SCENE.format(floor="", z=0.3, shape='type="sphere" size=".03"'))
    assert landing(model, model.default_q, "object", OPTIONS) is None


def test_poses_are_drawn_where_the_object_rests_in_the_box():
    """Half of the box of subgoals is beyond the edge of a table, from which the object falls to the ground."""
    table = '<geom type="box" size=".5 .5 .1" pos="-.5 0 .1"/>' + FLOOR
    model = qdsim.load(SCENE.format(floor=table, z=0.23, shape='type="box" size=".03 .03 .03"'))
    start = np.array(model.default_q)
    start[model.slice_q("object")][0] = -0.2
    room = np.array([0.25, 0.1, 0.01, 0.1, 0.1, np.pi])
    middle = np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    ends = middle - room, middle + room
    task = planning.Task(
        "edge", model, OPTIONS, start, start, "object", *ends, start_tolerance=1e-3
    )
    drawn = draw_poses(task, 12, np.random.default_rng(0))
    assert len(drawn) == 12
    for q in drawn:
        pos, rot = model.body_pose(q, "object")
        assert pos[2] == pytest.approx(0.23, abs=2e-3) and rot[2, 2] > 0.99
        assert pos[0] < 0.031


def book(index):
    """The book with a random pose of its task's box as the goal, most of them in the air."""
    task = next(iter(systems.load("allegro_book").tasks.values()))
    shares = np.random.default_rng(7).random((20, task.space.size))
    goals = (task.lower + s * (task.upper - task.lower) for s in shares)
    hang = (
        task.towards(q)
        for q in (task.with_object(task.start, g) for g in goals if g[2] > 0.02)
        if not planning.is_stable(task.model, q, task.object, task.options)
    )
    return next(itertools.islice(hang, index, None))


@pytest.mark.long
def test_goals_in_the_air_are_reached():
    """Searches that aimed from where the smoothed model is, which a barrier carries, ended a centimetre below."""
    reached = []
    for index in range(5):
        task = book(index)
        tree = planning.rrt(task, task.planner.replace(max_steps=15000), rng=index)
        reached.append(tree.reached and tree.plan().check(task).good)
    assert sum(reached) >= 4, reached


@pytest.mark.long
def test_what_hangs_is_set_down_before_the_grasp_changes():
    task = book(0)
    search = _Search(task, task.planner.replace(max_nodes=400), np.random.default_rng(0))
    search.grow(False, None, np.inf)
    tree = search.tree
    hanging = [n for n in range(tree.count) if not search._rests(n) and tree.stuck(n) == 0]
    assert len(hanging) >= 5
    tree.goal_node = None  # a search that has ended adds nothing
    down = [search._free(n) for n in hanging[:8]]
    for before, node in zip(hanging, down):
        if node is None:
            assert tree.stuck(before) > 0
        else:
            assert planning.is_stable(task.model, tree.q[node], task.object, task.options)
            assert before in tree.path(node)
    assert sum(n is not None for n in down) >= len(down) / 2


def test_a_goal_on_a_support_has_nothing_below_it():
    task = book(0)
    on_the_table = task.towards(task.start)
    assert _Search(on_the_table, task.planner, np.random.default_rng(0)).landing is None
    in_the_air = _Search(task, task.planner, np.random.default_rng(0))
    assert in_the_air.landing is not None
    assert planning.is_stable(task.model, in_the_air.landing, task.object, task.options)
    published = planning.RRTOptions.published()
    assert _Search(task, published, np.random.default_rng(0)).landing is None
