"""Objects turned in a hand: symmetries of shapes, letting go without moving anything, roadmaps over rotations."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.array_type import Array
from qdsim.planning import RoadmapOptions, Task, TransferOptions
from qdsim.planning.execution.plant import Plant
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.roadmap import edges as module
from qdsim.planning.roadmap.driving import Driven
from qdsim.planning.roadmap.edges import Edges, tried_again
from qdsim.planning.roadmap.legs import Leg, Legs, Recorded
from qdsim.planning.roadmap.poses import away
from qdsim.planning.roadmap.symmetric_copies import copied, orbits
from qdsim.planning.roadmap.turns import by_turns, let_go
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.symmetry import symmetries, turned_object

SHAPES = {
    "cube": ('<geom type="box" size="0.03 0.03 0.03" mass="1"/>', 24),
    "turned cube": (
        '<geom type="box" size="0.03 0.03 0.03" mass="1" quat="0.9 0.3 0.1 0.2"/>',
        24,
    ),
    "prism": ('<geom type="box" size="0.03 0.03 0.05" mass="1"/>', 8),
    "box": ('<geom type="box" size="0.02 0.03 0.05" mass="1"/>', 4),
    "can": ('<geom type="cylinder" size="0.02 0.05" mass="1"/>', 2),
    "egg": ('<geom type="ellipsoid" size="0.02 0.03 0.05" mass="1"/>', 4),
    "ball": ('<geom type="sphere" size="0.02" mass="1"/>', 1),
    "dumbbell": (
        '<geom type="sphere" size="0.02" pos="0.05 0 0" mass="1"/>'
        '<geom type="sphere" size="0.02" pos="-0.05 0 0" mass="1"/>',
        2,
    ),
    "uneven dumbbell": (
        '<geom type="sphere" size="0.02" pos="0.05 0 0" mass="1"/>'
        '<geom type="sphere" size="0.02" pos="-0.05 0 0" mass="2"/>',
        1,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_symmetries_leave_all_distances_as_they_are(name: str) -> None:
    """Distances of probes at random places from the object, in every turn."""
    shape, count = SHAPES[name]
    rng = np.random.default_rng(0)
    probes = "".join(
        f'<geom type="sphere" size="0.001" pos="{x} {y} {z}"/>'
        for x, y, z in rng.uniform(-0.08, 0.08, (12, 3))
    )
    model = qdsim.load(
        f'<mujoco><worldbody>{probes}<body name="it"><freejoint name="it"/>{shape}</body></worldbody></mujoco>'
    )
    space = ObjectSpace(model, "it")
    q = np.array(model.default_q)
    q[3:] = [0.8, 0.0, 0.6, 0.0]

    def gaps(q: Array) -> Array:
        found = model.collide(q, 1.0)
        nearest: dict[tuple[int, int], float] = {}
        for contact in found:
            pair = (int(contact["geom_a"]), int(contact["geom_b"]))
            nearest[pair] = min(nearest.get(pair, np.inf), float(contact["dist"]))
        probed: dict[int, float] = {}
        for pair, gap in nearest.items():
            probed[min(pair)] = min(probed.get(min(pair), np.inf), gap)
        return np.array([probed[k] for k in sorted(probed)])

    group = symmetries(model, space)
    assert len(group) == count
    np.testing.assert_array_equal(group[0], np.eye(3))
    rotation = model.body_pose(q, "it")[1]
    for R in group:
        turned = turned_object(space, q, R)
        np.testing.assert_allclose(model.body_pose(turned, "it")[1], rotation @ R, atol=1e-12)
        np.testing.assert_allclose(gaps(turned), gaps(q), atol=1e-9)


def pinch(friction: float = 1.0) -> Task:
    """A box on the ground between two fingers on slides, which start 1 mm off its sides."""
    model = qdsim.load(f"""<mujoco><default><geom friction="{friction}"/></default><worldbody><geom name="floor" type="plane" size="1 1 1"/>
        <body name="box" pos="0 0 0.02"><freejoint name="box"/><geom type="box" size="0.02 0.02 0.02" mass="0.1"/></body>
        <body pos="-0.031 0 0.02"><joint name="a" type="slide" axis="1 0 0" range="-0.1 0.1"/>
          <geom type="sphere" size="0.01"/></body>
        <body pos="0.031 0 0.02"><joint name="b" type="slide" axis="1 0 0" range="-0.1 0.1"/>
          <geom type="sphere" size="0.01"/></body>
        </worldbody><actuator><position joint="a" kp="300"/><position joint="b" kp="300"/></actuator></mujoco>""")
    q = np.array(model.default_q)
    options = qdsim.Options(h=0.1, margin=0.02, joint_limits=True)
    return Task("pinch", model, options, q, q, "box", -np.ones(6), np.ones(6), length=0.02)


def test_fingers_let_go_without_moving_what_they_held() -> None:
    """Off the middle, one finger pressing more than the other; the robot ends where it started."""
    task = pinch()
    assert by_turns(task)
    joints = np.asarray(task.model.actuated_q)
    q = task.with_object(task.start, [0.004, 0.0, 0.0, 0.0, 0.0, 0.0])
    q[joints] += 0.005, 0.003
    world = Recorded(task, q)
    u = np.asarray(task.model.command_from(q)) + (0.01, -0.012)
    for _ in range(3):
        world.move(u)
    held = world.q
    gone = np.inf
    for command in let_go(task, world, u):
        world.move(command)
        gone = min(gone, *(np.abs(world.q[joints] - held[joints]) <= 0.015))
    assert gone == 0  # both fingers were more than 15 mm away
    shift, turn = task.space.errors(world.q, held)
    assert shift < 1e-4
    assert turn < 1e-3
    # the second finger ends against the box, 3 mm short of its start: 0.9 N, where friction holds 0.98 N
    np.testing.assert_allclose(command, task.model.command_from(task.start), atol=1e-12)


def test_what_is_recorded_ends_where_the_object_was_nearest() -> None:
    """The left finger pushes the box to its goal, 5 mm to the right, and on past it."""
    task = pinch(friction=0.3)  # with more of it the finger may press the box onto the ground
    task = task.towards(task.with_object(task.start, [0.005, 0.0, 0.0, 0.0, 0.0, 0.0]))
    world = Recorded(task, task.start)
    u = np.asarray(task.model.command_from(task.start))
    for _ in range(6):
        u = u + (0.002, 0.002)
        world.move(u)
    whole, cut = world.leg(), world.leg(nearest=True)
    assert 0 < cut.segments[0].steps < whole.segments[0].steps == 6
    assert task.off(cut.end) == min(task.off(q) for q in whole.segments[0].configurations)
    kept = whole.segments[0].configurations[: cut.segments[0].steps + 1]
    np.testing.assert_array_equal(cut.segments[0].configurations, kept)


def test_copied_edges_are_the_same_motion_of_the_robot() -> None:
    """In the world's frame the object's turn along an edge is that of the edge it is a copy of."""
    task = systems.load("allegro_cube").tasks["turn"]
    group = symmetries(task.model, task.space)
    nodes = orbits(task, task.start[None], group)
    ends = nodes[[0, 9]]
    one = {name: np.zeros(1, dtype=np.int64) for name in ("source", "tries", "arrived")}
    one |= {"target": np.array([9]), "segments": np.array([1]), "steps": np.array([1])}
    inputs = np.ones((1, task.model.nu))
    edges = Edges({**one, "radius": np.zeros(1), "inputs": inputs, "configurations": ends})
    made = copied(task, edges, group)
    assert sorted(made.source.tolist()) == list(range(24))
    assert sorted(made.target.tolist()) == list(range(24))

    def rotation(q: Array) -> Array:
        return np.asarray(task.model.body_pose(q, "cube")[1])

    turn = rotation(ends[1]) @ rotation(ends[0]).T
    for k in range(24):
        segment = made.leg(k).segments[0]
        for q, node in zip(segment.configurations, (made.source[k], made.target[k])):
            assert away(task, q, nodes[node]) < 1e-6
        np.testing.assert_allclose(
            rotation(segment.end) @ rotation(segment.start).T, turn, atol=1e-12
        )


def test_edges_that_are_copies_are_tried_once_for_all() -> None:
    """Of two edges out of one pose with their copies, one always arrives in a world and the other one never."""
    task = systems.load("allegro_cube").tasks["turn"]
    group = symmetries(task.model, task.space)
    nodes = orbits(task, task.start[None], group)
    none = np.zeros(2, dtype=np.int64)
    ends = nodes[[0, 9, 0, 4]]
    edges = {"source": none, "target": np.array([9, 4]), "tries": none, "arrived": none}
    edges |= {"radius": np.zeros(2), "segments": np.ones(2, dtype=np.int64), "configurations": ends}
    edges |= {
        "steps": np.ones(2, dtype=np.int64),
        "inputs": np.ones((2, task.model.nu)) * [[1.0], [2.0]],
    }
    made = copied(task, Edges(edges), group)
    placed: list[Array] = []

    class World(Legs):
        def place(self, q: Array) -> None:
            placed.append(q)

        def follow(self, q: Array, edge: Leg, pose: Array, seed: int) -> Leg | None:
            assert q is placed[-1]
            return edge if edge.segments[0].inputs[0, 0] == 1.0 else None

    world = World(task, RoadmapOptions(trials=3, radius=1.0))
    tried = tried_again(world, made, nodes, np.random.default_rng(0))
    arrives = tried.inputs[:, 0] == 1.0
    assert len(placed) == tried.tries[arrives][0] + tried.tries[~arrives][0] > 0
    np.testing.assert_array_equal(tried.arrived, np.where(arrives, tried.tries, 0))
    assert (tried.radius > 0.0).tolist() == arrives.tolist()
    for name in ("source", "target", "inputs", "configurations"):
        np.testing.assert_array_equal(getattr(tried, name), getattr(made, name))


def test_disturbed_starts_are_drawn_until_one_is_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box with its centre at the edge of a table, off which about half of all draws fall."""
    model = qdsim.load("""<mujoco><worldbody>
        <geom type="box" size="0.1 0.1 0.01" pos="-0.1 0 -0.01"/>
        <body name="box" pos="-1e-3 0 0.02"><freejoint name="box"/><geom type="box" size="0.02 0.02 0.02" mass="0.1"/></body>
        <body pos="0 0 1"><joint name="a" type="slide"/><geom type="sphere" size="0.01" mass="1"/></body>
        </worldbody><actuator><position joint="a" kp="300"/></actuator></mujoco>""")
    q = np.array(model.default_q)
    options = qdsim.Options(h=0.1, margin=0.02)
    task = Task("edge", model, options, q, q, "box", -np.ones(6), np.ones(6), length=0.02)

    def drawn(count: int) -> list[Array]:
        rng = np.random.default_rng(0)
        found = [module._disturbed(task, q, 1.0, rng) for _ in range(count)]
        return [start for start in found if start is not None]

    starts = drawn(8)
    assert len(starts) >= 6
    assert len({start.tobytes() for start in starts}) == len(starts)
    assert all(is_stable(model, start, "box", options) for start in starts)
    np.testing.assert_array_equal(drawn(2), starts[:2])
    monkeypatch.setattr(module, "resting", lambda task, q: None)
    assert drawn(1) == []


@pytest.mark.long
def test_a_roadmap_turns_the_cube_to_any_rotation() -> None:
    """In the model, with plans that replay; and in MuJoCo in closed loop."""
    task = systems.load("allegro_cube").tasks["turn"]
    made = planning.roadmap(task, RoadmapOptions(trials=1, radius=1.0))
    assert len(made.nodes) == 24
    goals = [systems.cube_goal(task, r) for r in ([2.0, 1.0, -1.0], [0.3, -2.5, 0.8])]
    for goal in goals:
        plan = made.query(task.start, goal)
        assert plan.check(task.towards(goal, start_tolerance=1e-2))
        assert (
            plan.nodes[0] == 0
        )  # where it starts, so that the first edge is taken as it was found
        first = plan.segments[0].inputs[: made.edges.steps[0]]
        own = [made.edges.leg(int(k)).segments[0] for k in np.flatnonzero(made.edges.source == 0)]
        assert any(np.array_equal(first[: leg.steps], leg.inputs[: len(first)]) for leg in own)
    world = TransferOptions(timestep=1e-3, force=0.7)
    mj = planning.second_order(task.model, "cube", world)
    reached = 0
    plant = Plant(task.model, task.space, mj, world, compensated=True)
    made = made.certify(plant, 1)
    assert 0 < made.edges.arrived.sum() <= made.edges.tries.sum() <= made.edges.count
    for goal in goals:
        plant = Plant(task.model, task.space, mj, world, compensated=True)
        plant.reset(task.start)
        try:
            plan = made.drive(plant, goal)
        except planning.NotCoveredError:
            continue
        np.testing.assert_array_equal(plan.end, task.model.normalize(plant.q))
        reached += away(task, plant.q, goal) <= 1.0
    assert reached >= 1


def test_what_is_not_turned_in_a_hand_is_not_driven() -> None:
    task = systems.load("planar_hand").tasks["half_turn"]
    made = planning.roadmap(task, RoadmapOptions(nodes=1, neighbours=1, trials=0))
    world = TransferOptions()
    mj = planning.second_order(task.model, task.object, world)
    plant = Plant(task.model, task.space, mj, world, compensated=True)
    with pytest.raises(ValueError, match="plant: the task's object is not turned"):
        made.drive(plant, task.goal)
    with pytest.raises(ValueError, match="plant: the task's object is not turned"):
        made.certify(plant)
    with pytest.raises(TypeError, match="plant: expected"):
        made.drive(None, task.goal)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_cube_beyond_the_fingers_is_brought_back() -> None:
    """The fingers have to go around it. No derivative leads them there, so that iMPC alone moves it in no case."""
    task = systems.load("allegro_cube").tasks["turn"]
    world = TransferOptions(timestep=1e-3, force=0.7)
    mj = planning.second_order(task.model, "cube", world)
    back = 0
    for yaw in (0.4, 0.45):
        q = np.array(task.start)
        q[16:] = [0.033, 0.016, 0.041, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        plant = Plant(task.model, task.space, mj, world, compensated=True)
        maker = Driven(task, RoadmapOptions(), plant)
        maker.place(q)
        assert away(task, q, task.start) > 2.0
        for seed in range(5):  # not every leg arrives
            q = maker.connect(q, task.start, seed).end
            if away(task, q, task.start) <= 1.0:
                back += 1
                break
    assert back >= 1
