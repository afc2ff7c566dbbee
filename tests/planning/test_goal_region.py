"""Goals as regions: distances in closed form, nearest poses by optimisation, and plans that use what is free."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.optimize
from scipy.spatial.transform import Rotation

import qdsim
from qdsim import planning, systems
from qdsim.envs import EnvOptions, GoalTaskEnv
from qdsim.planning import GoalRegion
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.tracking.cost_model import CostModel

INF = math.inf
FREE = """
<mujoco>
  <worldbody>
    <body name="finger" pos="0 0 1"><joint name="z" type="slide" axis="0 0 1" range="-1 1"/>
      <geom type="sphere" size="0.02" mass="0.1"/></body>
    <body name="object"><freejoint name="object"/><geom type="capsule" size="0.02 0.05" mass="0.1"/>
      <body name="handle" pos="0 0.1 0" quat="0.6 0.8 0 0"><geom type="sphere" size="0.01" mass="0.01"/></body></body>
  </worldbody>
  <actuator><position joint="z" kp="100"/></actuator>
</mujoco>"""
BALL = FREE.replace('<freejoint name="object"/>', '<joint name="object" type="ball"/>').replace(
    '<body name="object">', '<body name="object" quat="0.8 0 0.6 0">'
)
PLANAR = FREE.replace(
    '<freejoint name="object"/>',
    '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>'
    '<joint name="yaw" type="hinge" axis="0 0 1"/>',
)  # fmt: skip
QUARTER = (math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4))
FLIP = (0.0, 1.0, 0.0, 0.0)


def goals_of(xml, region, goal=None, body="object", seed=0):
    """The goals around a random pose, their model, and a function that draws configurations."""
    model = qdsim.load(xml)
    space = planning.ObjectSpace(model, body)
    rng = np.random.default_rng(seed)

    def draw():
        return model.integrate(model.default_q, 1.5 * rng.standard_normal(model.nv))

    return GoalSet(model, space, draw() if goal is None else goal, region), model, draw


def angle_between(a, b):
    """The angle of the rotation from one quaternion (w, x, y, z) to another."""
    turn = Rotation.from_quat(np.roll(a, -1)).inv() * Rotation.from_quat(np.roll(b, -1))
    return turn.magnitude()


def turned_by(model, q, body, rotation):
    """``q`` with a body on a free or ball joint turned by a rotation in its own frame."""
    world = np.asarray(model.body_pose(q, body)[1])
    space = planning.ObjectSpace(model, body)
    J = np.asarray(model.jacobian(q, body, np.zeros(3)))[3:][:, space.v[-3:]]
    v = np.zeros(model.nv)
    v[space.v[-3:]] = J.T @ world @ rotation.as_rotvec()
    return model.integrate(q, v)


@pytest.mark.parametrize("xml", [FREE, BALL], ids=["free", "ball"])
@pytest.mark.parametrize("body", ["object", "handle"])
def test_a_turn_about_the_free_axis_changes_no_distance(xml, body):
    axis = np.array([0.3, -0.5, 0.8])
    goals, model, draw = goals_of(xml, GoalRegion(axis=axis), body=body)
    for _ in range(20):
        q = draw()
        twisted = turned_by(model, q, body, Rotation.from_rotvec(3.0 * axis))
        np.testing.assert_allclose(goals.errors(twisted), goals.errors(q), atol=1e-9)
        # what is left is the angle between the axes in the world
        a, b = (np.asarray(model.body_pose(x, body)[1]) @ axis for x in (q, goals.goal))
        cosine = a @ b / np.linalg.norm(axis) ** 2
        assert math.cos(goals.errors(q)[1]) == pytest.approx(cosine, abs=1e-9)


@pytest.mark.parametrize("xml", [FREE, BALL], ids=["free", "ball"])
def test_upright_is_the_angle_of_what_was_vertical(xml):
    goals, model, draw = goals_of(xml, GoalRegion(axis="up"), body="handle")
    goal = np.asarray(model.body_pose(goals.goal, "handle")[1])
    for _ in range(20):
        q = draw()
        up = np.asarray(model.body_pose(q, "handle")[1]) @ goal.T[:, 2]
        assert math.cos(goals.errors(q)[1]) == pytest.approx(up[2], abs=1e-9)


def test_symmetries_make_their_whole_group():
    assert len(GoalRegion(symmetries=(QUARTER,)).group) == 4
    assert len(GoalRegion(symmetries=(QUARTER, FLIP)).group) == 8
    cube = GoalRegion(symmetries=(QUARTER, (QUARTER[0], QUARTER[3], 0.0, 0.0)))
    assert len(cube.group) == 24
    goals, _, draw = goals_of(FREE, cube)
    for _ in range(20):
        q = draw()
        turns = [
            Rotation.from_quat(np.roll(goals.goal[-4:], -1)) * turn
            for turn in Rotation.create_group("O")
        ]
        least = min(angle_between(np.roll(turn.as_quat(), 1), q[-4:]) for turn in turns)
        assert goals.errors(q)[1] == pytest.approx(least, abs=1e-9)
        # no orientation is farther than that of the cube's farthest: 62.8 degrees
        assert goals.errors(q)[1] <= 1.0961


def test_a_cylinder_that_may_be_flipped():
    goals, model, draw = goals_of(FREE, GoalRegion(axis=(0.0, 0.0, 1.0), symmetries=(FLIP,)))
    for _ in range(20):
        q = draw()
        a, b = (np.asarray(model.body_pose(x, "object")[1])[:, 2] for x in (q, goals.goal))
        assert math.cos(goals.errors(q)[1]) == pytest.approx(abs(a @ b), abs=1e-9)


REGIONS = {
    "axis": GoalRegion(axis=(1.0, 2.0, 2.0)),
    "up, box": GoalRegion(lower=(-0.1, -INF, 0.0), upper=(0.3, INF, 0.2), axis="up"),
    "flipped": GoalRegion(axis=(0.0, 1.0, 0.0), symmetries=(FLIP,)),
    "place": GoalRegion(rotation="any"),
    "orientation": GoalRegion(-INF, INF),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", REGIONS)
def test_the_nearest_goal_is_a_minimiser(name):
    """SciPy looks over boxes and turns in the region for a nearer pose and finds none."""
    region = REGIONS[name]
    goals, _, draw = goals_of(FREE, region, seed=3)
    space = goals.space
    low, high = (np.broadcast_to(side, 3) for side in (region.lower, region.upper))
    group = region.group
    for _ in range(3):
        q = draw()
        found = goals.nearest(q)
        assert goals.errors(found) == pytest.approx((0.0, 0.0), abs=1e-7)
        np.testing.assert_array_equal(found[[0]], goals.goal[[0]])  # the robot is the goal's

        def member(x, turn, start=q):
            """A pose of the region from numbers without bounds."""
            pose = np.array(goals.goal)
            pose[1:4] += np.clip(start[1:4] - pose[1:4] + x[:3], low, high)
            rotation = Rotation.from_quat(np.roll(pose[4:], -1))
            own = Rotation.from_quat(np.roll(group[turn], -1))
            if region.rotation == "any":
                rotation = Rotation.from_rotvec(x[3:6])
            elif region.axis == "up":
                rotation = Rotation.from_rotvec([0.0, 0.0, x[3]]) * rotation
            elif region.axis is not None:
                rotation = rotation * own * Rotation.from_rotvec(x[3] * np.array(region.axis))
            else:
                rotation = rotation * own
            pose[4:] = np.roll(rotation.as_quat(), 1)
            return pose

        def far(x, turn, start=q):
            return float(np.sum(np.square(space.errors(start, member(x, turn)))))

        best = min(
            scipy.optimize.minimize(far, np.r_[np.zeros(3), guess, 0.1, -0.2], args=(k,)).fun
            for k in range(len(group))
            for guess in (-2.0, 0.0, 2.0)
        )
        mine = float(np.sum(np.square(goals.errors(q))))
        assert mine <= best + 1e-9
        assert best <= mine + 1e-4  # and it does find this one


@pytest.mark.parametrize("name", REGIONS)
def test_slopes_are_finite_differences(name):
    goals, model, draw = goals_of(FREE, REGIONS[name], seed=5)
    space, eps = goals.space, 1e-6

    def error(q):
        return -goals.difference(q)

    for _ in range(5):
        q = draw()
        slopes = goals.slopes(q[:, None], error(q)[:, None])[0]
        for k in range(space.size):
            v = np.zeros(model.nv)
            v[space.v[k]] = eps
            change = (error(model.integrate(q, v)) - error(model.integrate(q, -v))) / (2 * eps)
            np.testing.assert_allclose(slopes[:, k], change, atol=1e-6)


def test_columns_are_as_each_by_itself():
    goals, _, draw = goals_of(FREE, REGIONS["up, box"])
    many = np.array([draw() for _ in range(4)])
    each = np.array([goals.nearest(q) for q in many])
    np.testing.assert_allclose(goals.nearest(many.T).T, each, atol=1e-12)
    others = np.array([draw() for _ in range(4)])
    moved = np.array([goals.nearest(q, goal) for q, goal in zip(many, others)])
    np.testing.assert_allclose(goals.nearest(many.T, others.T).T, moved, atol=1e-12)


def test_hinges_take_symmetries_and_bounds():
    goals, model, _ = goals_of(PLANAR, GoalRegion(symmetries=(QUARTER,)), goal=np.zeros(4))
    yaw = model.slice_q("yaw").start
    for angle in np.linspace(-7.0, 7.0, 29):
        q = np.zeros(4)
        q[yaw] = angle
        left = abs((angle + math.pi / 4) % (math.pi / 2) - math.pi / 4)
        assert goals.errors(q)[1] == pytest.approx(left, abs=1e-12)
    goals, _, _ = goals_of(
        PLANAR, GoalRegion(lower=(0.0, 0.0, -0.5), upper=(0.0, 0.0, 1.0)), goal=np.zeros(4)
    )
    q = np.zeros(4)
    for angle, left in ((-0.7, 0.2), (-0.2, 0.0), (0.9, 0.0), (1.3, 0.3)):
        q[yaw] = angle
        assert goals.errors(q)[1] == pytest.approx(left, abs=1e-12)


def test_a_goal_without_a_region_is_as_it_was():
    task = systems.load("allegro_sphere").tasks["quarter_turn"]
    again = task.replace(goal_region=GoalRegion())
    q = task.with_object(task.start, np.full(6, 0.1))
    assert task.goals.is_point and again.goals.is_point
    assert task.errors(q) == again.errors(q) == task.space.errors(q, task.goal)


def test_cost_and_its_quadratic_model_know_the_region():
    """The gradient of iMPC's cost by the last configuration, against differences."""
    task = systems.load("allegro_sphere").tasks["quarter_turn"]
    task = task.replace(goal_region=GoalRegion(axis=(0.0, 0.0, 1.0)))
    weights = planning.TrackingCost(object=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), robot=0.0)
    cost = CostModel(task, weights)
    q = task.with_object(task.start, np.array([0.1, -0.2, 0.05, 0.4, -0.3, 0.8]))
    u = np.zeros((1, task.model.nu))
    _, linear = cost.expand(q[None])
    eps = 1e-6
    for k in task.space.v:
        v = np.zeros(task.model.nv)
        v[k] = eps
        pair = [
            cost.values(np.array([task.start, task.model.integrate(q, s * v)]), u, u[0])[0]
            for s in (1, -1)
        ]
        # the first configuration is the same in both
        assert linear[0, k] == pytest.approx((pair[0] - pair[1]) / (2 * eps), rel=1e-4, abs=1e-5)


@pytest.mark.long
def test_a_free_yaw_is_reached_in_fewer_nodes():
    """A disc in the planar hand to a place and yaw, and to the place alone: nodes of five seeds."""
    task = systems.load("planar_hand").tasks["half_turn"]
    aim = task.towards(task.with_object(task.start, [0.05, 0.05, 1.5]))
    free = aim.replace(goal_region=GoalRegion(rotation="any"))
    counts = []
    for one in (aim, free):
        trees = [planning.rrt(one, rng=seed) for seed in range(5)]
        assert all(tree.reached for tree in trees)
        counts.append(sum(tree.count for tree in trees))
    assert counts[1] < counts[0]
    plan = planning.rrt(free, rng=0).plan()
    verdict = plan.check(free)
    assert verdict.good and verdict.rotation_error == 0.0
    # asked for the yaw, too, the same plan misses
    faults = dataclasses.replace(plan, goal_region=None).check(free).faults
    assert len(faults) == 1 and "rad from the goal" in faults[0]


@pytest.mark.long
def test_a_ball_turned_with_a_free_yaw_and_the_plan_in_a_file(tmp_path):
    task = systems.load("allegro_sphere").tasks["quarter_turn"]
    assert not task.reached(task.start)
    free = task.replace(goal_region=GoalRegion(axis="up"))
    assert free.reached(task.start)  # a quarter turn about the vertical is all that is asked for
    turned = free.towards(free.with_object(free.start, [0.015, 0.0, 0.0, 0.0, 0.0, 1.2]))
    asked = turned.replace(goal_region=None)
    trees = [[planning.rrt(one, rng=seed) for seed in range(3)] for one in (turned, asked)]
    counts = [sum(tree.count for tree in own) for own in trees]
    assert counts[0] < counts[1]
    plan = trees[0][0].plan()
    path = tmp_path / "plan.npz"
    plan.save(path)
    again = planning.Plan.load(path)
    assert again.goal_region == turned.goal_region
    assert again.check(task.model, require_static_regrasps=False).good


def rounded(shape, region):
    """The goals of a body of one shape on a free joint."""
    xml = f"""<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
    <body name="object"><freejoint/>{shape}</body></worldbody></mujoco>"""
    return goals_of(xml, region)


CAN = '<geom type="cylinder" size="0.03 0.06" mass="0.1"/>'
HANDLE = '<geom type="box" size="0.01 0.01 0.02" pos="0.04 0 0" mass="0.1"/>'
SPHERE = '<geom type="sphere" size="0.03" mass="0.1"/>'


@pytest.mark.parametrize(
    ("shape", "region", "left"),
    [
        (CAN, GoalRegion(axis=(0, 0, 1)), "tilt"),
        (CAN, GoalRegion(rotation="any"), "tilt"),
        (CAN, GoalRegion(axis=(1, 0, 0)), "all"),  # it may turn, but looks different then
        (CAN, None, "all"),
        (CAN + HANDLE, GoalRegion(axis=(0, 0, 1)), "all"),
        (SPHERE, GoalRegion(rotation="any"), "none"),
        (SPHERE, GoalRegion(axis=(0, 0, 1)), "tilt"),
    ],
)
def test_turns_that_nobody_sees_keep_an_object_on_its_way(shape, region, left):
    """Between two poses of a can there is the angle between its axes, not its turn about them; nothing between two
    of a ball; all of it where the goal asks for the turn or a handle shows it."""
    goals, model, draw = rounded(shape, region)
    a, b = draw(), draw()
    shift, turn = goals.apart(a, b)
    first, second = (Rotation.from_quat(np.roll(q[3:7], -1)) for q in (a, b))
    axes = first.apply([0, 0, 1]) @ second.apply([0, 0, 1])
    expected = {"tilt": np.arccos(axes), "all": (first.inv() * second).magnitude(), "none": 0.0}
    assert turn == pytest.approx(expected[left], abs=1e-9)
    assert shift == pytest.approx(np.linalg.norm(a[:3] - b[:3]))
    alike = goals.alike(b, a)
    assert goals.apart(alike, b)[1] == pytest.approx(0.0, abs=1e-7)
    assert model.difference(alike, b)[:3] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_what_executes_and_learns_measures_by_the_region():
    task = (
        systems.load("planar_hand")
        .tasks["half_turn"]
        .replace(goal_region=GoalRegion(rotation="any"))
    )
    told = planning.Executor(task, options=planning.ExecutorOptions(hold=0.1)).run()
    assert told.outcome == "reached" and told.rotation_error == 0.0 and not told.edges
    options = EnvOptions(action="command", goal="task", observation="goal")
    env = GoalTaskEnv(task, options)
    seen, _ = env.reset(seed=0, options={"q": task.start})
    assert not task.replace(goal_region=None).reached(task.start)
    assert env.compute_terminated(seen["achieved_goal"], seen["desired_goal"], {})
    *_, terminated, _, info = env.step(np.zeros(env.action_space.shape))
    assert info["turn"] == 0.0 and terminated == info["success"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lower": 0.1}, "lower: expected a number <= 0"),
        ({"upper": -0.1}, "upper: expected a number >= 0"),
        ({"upper": math.nan}, "upper: expected a number >= 0"),
        ({"lower": ()}, "lower: expected a number"),
        ({"rotation": "yaw"}, "rotation: expected"),
        ({"axis": "down"}, "axis: expected three numbers or 'up'"),
        ({"axis": (0.0, 0.0, 0.0)}, "axis: expected 3 numbers, not all"),
        ({"axis": (1.0, 0.0)}, "axis: expected shape"),
        ({"symmetries": ((1.0, 0.0, 0.0),)}, r"symmetries\[0\]: expected shape"),
        ({"symmetries": ((1.0, 0.0, 0.0, 0.3),)}, "symmetries: their products are more than"),
        ({"rotation": "any", "axis": (0.0, 0.0, 1.0)}, "axis: rotation='any' makes it meaningless"),
    ],
)
def test_regions_that_are_none(fields, message):
    with pytest.raises(ValueError, match=message):
        GoalRegion(**fields)


@pytest.mark.parametrize(
    ("xml", "region", "message"),
    [
        (FREE, GoalRegion(-INF, INF, rotation="any"), "every pose counts as the goal"),
        (FREE, GoalRegion(lower=(0.0, 0.0)), "lower: the object has 3 coordinates"),
        (PLANAR, GoalRegion(axis=(0.0, 0.0, 1.0)), "axis: 'object' turns on a hinge"),
        (PLANAR, GoalRegion(symmetries=(FLIP,)), "none of them turns the object about its hinge"),
        (FREE.replace("<worldbody>", "<option gravity='0 0 0'/><worldbody>"), GoalRegion(axis="up"), "needs gravity"),
    ],
)  # fmt: skip
def test_regions_that_do_not_fit_the_object(xml, region, message):
    model = qdsim.load(xml)
    size = planning.ObjectSpace(model, "object").size
    with pytest.raises(ValueError, match=message):
        planning.Task(
            "t",
            model,
            qdsim.Options(h=0.1),
            model.default_q,
            model.default_q,
            "object",
            -np.ones(size),
            np.ones(size),
            goal_region=region,
        )
