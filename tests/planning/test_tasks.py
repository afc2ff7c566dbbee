"""Planning tasks of the published systems: starts, contact samplers, plans by true pose error."""

import dataclasses

import numpy as np
import pytest

import qdsim
from qdsim import planning, smoothing, systems
from qdsim.planning.task.robot import joint_limits, near_pairs, penetration

# A disc on slides in one of two rooms without a door, and a ball that it never meets.
SHUT_IN = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="ball" pos="0 3 0"><joint name="ball" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.05" mass="1"/></body>
    <body name="wall"><geom type="box" size="0.05 1 0.5"/></body>
    <body name="carriage"><joint name="x" type="slide" axis="1 0 0" range="-0.5 0.5"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="disc"><joint name="y" type="slide" axis="0 1 0" range="-0.5 0.5"/>
        <geom type="sphere" size="0.05" mass="1"/></body></body>
  </worldbody>
  <actuator><position joint="x" kp="100"/><position joint="y" kp="100"/></actuator>
</mujoco>"""

TASKS = [
    (name, key)
    for name in systems.TASK_NAMES
    for key, task in systems.load(name).tasks.items()
    if task.sampler is not None
]
SPATIAL = [pair for pair in TASKS if pair[0] not in ("planar_hand", "planar_pushing")]


def task_of(name, task):
    return systems.load(name).tasks[task]


@pytest.mark.short_cases(4)
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_starts_lie_within_limits_and_do_not_penetrate(name, task):
    task = task_of(name, task)
    lower, upper = joint_limits(task.model)
    joints = task.start[task.model.actuated_q]
    assert np.all(joints >= lower - 1e-12) and np.all(joints <= upper + 1e-12)
    assert penetration(task.model, task.start) <= 3e-4
    assert not task.reached(task.start) and task.reached(task.goal)
    # The goal lies in the box that subgoals are drawn from.
    e = task.space.difference(task.goal, task.start)
    assert np.all(e >= task.lower - 1e-9) and np.all(e <= task.upper + 1e-9)
    assert task.model.nu == len(lower)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("name", "task"), SPATIAL)
def test_samples_touch_within_limits_without_penetration(name, task):
    task = task_of(name, task)
    model, rng = task.model, np.random.default_rng(0)
    lower, upper = joint_limits(model)
    found = 0
    for _ in range(12):
        q = task.sampler(model, task.start, rng)
        if q is None:
            continue
        found += 1
        joints = q[model.actuated_q]
        assert np.all(joints >= lower) and np.all(joints <= upper)
        assert len(near_pairs(model, q, 0.0)) == 0  # what stands in its support does not count
        assert q[task.space.q].tobytes() == task.start[task.space.q].tobytes()
        assert len(task.sampler.touching(model, q)) >= 1
    assert found >= 6
    again = task.sampler(model, task.start, np.random.default_rng(7))
    assert np.array_equal(again, task.sampler(model, task.start, np.random.default_rng(7)))


PLANNED = [
    ("allegro_sphere", "quarter_turn"),
    ("allegro_book", "drag"),
    pytest.param("allegro_pen", "place", marks=pytest.mark.long),
    pytest.param("allegro_door", "open", marks=pytest.mark.long),
    ("iiwa_planar", "half_turn"),
    ("iiwa_bimanual_cylinder", "turn"),
    ("iiwa_box_push", "push_and_turn"),
    pytest.param("iiwa_box_push", "push_sides", marks=pytest.mark.long),
]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("name", "task"), PLANNED)
def test_plans_reach_the_goal_by_the_pose(name, task):
    task = task_of(name, task)
    for seed in range(3):
        tree = planning.rrt(task, rng=seed)
        if tree.reached:
            break
    plan = tree.plan()
    verdict = plan.check(task.model)
    assert verdict.good, verdict.faults
    assert task.reached(plan.end)
    lower, upper = joint_limits(task.model)
    for segment in plan.segments:
        joints = segment.configurations[:, task.model.actuated_q]
        assert np.all(joints >= lower - 1e-7) and np.all(joints <= upper + 1e-7)


def test_task_settings_are_what_the_planner_takes():
    task = task_of("allegro_sphere", "half_turn")
    assert task.planner.gamma == 1e-6
    few = task.planner.replace(max_nodes=10)
    tree = planning.rrt(task.replace(planner=few), rng=0)
    assert tree.options == few


# -------------------------------------------------------------------- long runs


def same(a, b):
    assert a.count == b.count and a.goal_node == b.goal_node and a.failures == b.failures
    assert (a.steps, a.linearizations, a.best_node) == (b.steps, b.linearizations, b.best_node)
    for name in ("q", "parent", "kind", "penetration", "errors", "distance"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    for i in range(a.count):
        for x, y in ((a.inputs(i), b.inputs(i)), (a.trajectory(i), b.trajectory(i))):
            assert (x is None and y is None) or x.tobytes() == y.tobytes()
    for name in a.records.dtype.names:
        if name != "seconds":
            np.testing.assert_array_equal(a.records[name], b.records[name])


@pytest.mark.parametrize("strategy", ["chain", pytest.param("published", marks=pytest.mark.long)])
def test_a_resumed_search_has_the_bits_of_an_uninterrupted_one(strategy, tmp_path):
    task = task_of("allegro_sphere", "half_turn").replace(position_tolerance=1e-9)
    options = task.planner.replace(strategy=strategy, max_nodes=60)
    whole = planning.rrt(task, options, rng=3)
    file = tmp_path / "search.npz"
    for nodes in (15, 16, 40):  # ended within an iteration: goes on, with another tree
        part = planning.rrt(task, options.replace(max_nodes=nodes), rng=3, checkpoint=file)
        assert part.count <= nodes and file.exists()
    cut = tmp_path / "cut.npz"
    planning.rrt(task, options.replace(max_iterations=3), rng=3, checkpoint=cut)
    resumed = planning.rrt(task, options, rng=99, checkpoint=cut, checkpoint_seconds=0.0)
    same(whole, resumed)
    same(whole, planning.Tree.load(cut, task))
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.long
def test_a_resumed_search_remembers_where_it_was_stuck(tmp_path):
    """With a plate in the air, where the grasp cannot be changed."""
    task = task_of("allegro_plate", "pick_up")
    options = task.planner.replace(max_nodes=120)
    whole = planning.rrt(task, options, rng=5)
    cut = tmp_path / "cut.npz"
    part = planning.rrt(
        task, options.replace(max_iterations=len(whole.records) // 2), rng=5, checkpoint=cut
    )
    assert part._stuck.any() and whole.count > part.count
    again = planning.Tree.load(cut, task)
    assert np.array_equal(again._stuck[: part.count], part._stuck[: part.count])
    resumed = planning.rrt(task, options, rng=99, checkpoint=cut)
    same(whole, resumed)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_node_where_the_search_is_stuck_is_left_alone_in_the_end(seed):
    task = task_of("planar_hand", "half_turn")
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=30), rng=seed)
    for nearest in (lambda: tree.nearest(task.goal), lambda: tree.nearest_to_goal):
        first, seen = nearest(), set()
        for _ in range(3000):
            seen.add(nearest())
            tree.mark_stuck(nearest())
        assert first in seen and len(seen) > 5


def test_trees_in_files_are_checked(tmp_path):
    task = task_of("planar_hand", "half_turn")
    options = planning.RRTOptions(max_nodes=12)
    tree = planning.rrt(task, options, rng=0)
    file = tmp_path / "tree.npz"
    tree.save(file)
    same(tree, planning.Tree.load(file, task))
    other = task.replace(goal=task.with_object(task.goal, [0.1, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"tree\.npz: .*another task"):
        planning.Tree.load(file, other)
    with pytest.raises(ValueError, match="options differ in gamma"):
        planning.rrt(task, options.replace(gamma=1.0), checkpoint=file)
    with pytest.raises(ValueError, match="does not hold a search"):
        planning.rrt(task, options, checkpoint=file)  # a tree alone has no random numbers
    content = file.read_bytes()
    for broken in (b"", b"no archive", content[: len(content) // 2]):
        file.write_bytes(broken)
        with pytest.raises(ValueError, match="not a tree of this search"):
            planning.Tree.load(file, task)
    with pytest.raises(OSError, match="nowhere"):
        planning.Tree.load(tmp_path / "nowhere.npz", task)


# -------------------------------------------------------------------- measures and ablations


def test_measures_of_growth():
    task = task_of("planar_hand", "half_turn").replace(position_tolerance=1e-9)
    tree = planning.rrt(task, planning.RRTOptions.published(max_nodes=80), rng=0)
    distance = planning.distance_to_goal(tree)
    assert len(distance) == len(tree.records) + 1
    assert distance[0] == tree.distance[0] and tree.distance.min() == distance[-1]
    assert np.all(np.diff(distance) <= 0.0)
    np.testing.assert_array_equal(distance[1:], tree.records["distance"])
    ratio = planning.packing_ratio(tree, samples=150, rng=1)
    assert np.all(np.diff(ratio) >= 0.0) and ratio[0] >= 0.0 and ratio[-1] <= 1.0
    assert ratio[-1] > 0.1
    # The last entry by its definition, one sample at a time.
    poses = planning.search.measures.subgoal_samples(tree, 150, 1)
    assert ratio[-1] == np.mean([tree.distances(q).min() <= 3.0 for q in poses])
    assert planning.packing_ratio(tree, samples=50, eta=1e9)[0] == 1.0
    with pytest.raises(ValueError, match="eta"):
        planning.packing_ratio(tree, eta=0.0)
    with pytest.raises(ValueError, match="samples"):
        planning.packing_ratio(tree, samples=0)


def test_global_metric_is_the_plain_distance():
    task = task_of("planar_hand", "half_turn")
    tree = planning.rrt(task, planning.RRTOptions(metric="global", max_nodes=20), rng=0)
    expected = [tree.object_distance(q, task.goal) ** 2 for q in tree.q]
    np.testing.assert_allclose(tree.distances(task.goal), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="metric"):
        planning.RRTOptions(metric="best")


@pytest.mark.parametrize(
    "scheme",
    [
        smoothing.Exact(),
        smoothing.Analytic(100.0),
        smoothing.Randomized(0.1, 10),
        smoothing.Randomized(0.1, 10, order="zeroth"),
    ],
    ids=["exact", "analytic", "first", "zeroth"],
)
def test_schemes_take_the_place_of_the_log_barrier(scheme):
    task = task_of("planar_hand", "half_turn")
    options = planning.RRTOptions.published(smoothing=scheme, max_nodes=15)
    tree = planning.rrt(task, options, rng=0)
    same(tree, planning.rrt(task, options, rng=0))
    plain = planning.rrt(task, options.replace(smoothing=None), rng=0)
    if isinstance(scheme, smoothing.Analytic):
        same(tree, plain)
    else:
        assert not np.array_equal(tree.distances(task.goal)[:1], plain.distances(task.goal)[:1])
    with pytest.raises(TypeError, match="smoothing"):
        planning.RRTOptions(smoothing="exact")


# -------------------------------------------------------------------- restarts, trial grasps, pressure


@pytest.mark.long
def test_restarts_follow_luby_and_leave_what_grew(tmp_path):
    task = task_of("planar_hand", "half_turn").replace(position_tolerance=1e-9)
    options = planning.RRTOptions(restart=10, max_nodes=250)
    tree = planning.rrt(task, options, rng=0)
    roots = np.flatnonzero(tree.kind == planning.EdgeKind.ROOT)
    assert tree.first == roots[-1] and len(roots) >= 6
    assert np.all(tree.parent[roots] == -1) and np.all(tree.q[roots] == task.start)
    # A tree ends with the iteration in which it has 10 times 1 1 2 1 1 2 4 ... nodes.
    sizes, share = np.diff(roots), 10 * np.array([1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8])
    assert np.all(sizes >= share[: len(sizes)])
    ends = tree.records["nodes"]
    for size, root, least in zip(sizes, roots, share):
        before = ends[ends < root + size]
        assert len(before) == 0 or before[-1] - root < least
    # No edge leads from one tree to another, and every path begins at the start.
    number = np.searchsorted(roots, np.arange(tree.count), side="right")
    inner = tree.parent >= 0
    assert np.all(number[inner] == number[tree.parent[inner]])
    for node in (0, int(roots[2]), tree.count - 1):
        assert tree.path(node)[0] in roots
    file = tmp_path / "tree.npz"
    for iterations in (3, 7, options.max_iterations):
        grown = planning.rrt(task, options.replace(max_iterations=iterations), checkpoint=file)
    same(tree, grown)
    assert planning.Tree.load(file, task).first == tree.first
    whole = planning.rrt(task, options.replace(restart=None), rng=0)
    assert np.count_nonzero(whole.kind == planning.EdgeKind.ROOT) == 1


def test_searches_end_at_their_number_of_steps():
    task = task_of("planar_hand", "half_turn").replace(position_tolerance=1e-9)
    tree = planning.rrt(task, planning.RRTOptions(max_steps=800), rng=0)
    assert tree.steps >= 800 and tree.records["steps"][-2] < 800
    for name in ("max_steps", "restart", "max_idle"):
        with pytest.raises(ValueError, match=name):
            planning.RRTOptions(**{name: 0})
    with pytest.raises(ValueError, match="squeeze"):
        planning.RRTOptions(squeeze=-1.0)


def test_searches_that_get_nowhere_end():
    """A pusher that does not reach the box: the sampler finds no grasp, and no push helps."""
    task = next(iter(systems.load("planar_pushing").tasks.values()))
    away = np.array(task.start)
    away[task.space.q[:2]] += 5.0
    goal = task.with_object(away, [0.1, 0.0, 0.0])
    lonely = task.replace(start=away, goal=goal, sampler=lambda model, q, rng: None)
    tree = planning.rrt(lonely, planning.RRTOptions(max_idle=30))
    assert not tree.reached and tree.count == 1 and len(tree.records) == 30
    assert "not reached" in repr(tree)


@pytest.mark.long
def test_nominal_commands_keep_the_pressure_of_a_push():
    task = task_of("iiwa_bimanual_cylinder", "turn")
    for squeeze in (0.0, 0.1):
        options = task.planner.replace(squeeze=squeeze, max_nodes=40)
        tree = planning.rrt(task, options, rng=0)
        kept = []
        for i in range(tree.count):
            inputs = tree.inputs(i)
            robot = task.model.command_from(tree.q[i])
            offset = np.linalg.norm(tree.local(i).command - robot)
            assert offset <= squeeze * options.step * (1.0 + 1e-12)
            if inputs is None:
                # a grasp as it was drawn, unless it has to hold what hangs
                resting = planning.is_stable(task.model, tree.q[i], task.object, task.options)
                assert offset == 0.0 or not resting
            else:
                asked = np.linalg.norm(inputs[-1] - robot)
                np.testing.assert_allclose(offset, min(asked, squeeze * options.step), atol=1e-12)
                kept.append(offset)
        assert (max(kept) > 0.0) == (squeeze > 0.0)


@pytest.mark.long
def test_goals_in_the_air_are_reached_and_held():
    """A cylinder lifted by two arms against gravity, by commands that keep their pressure."""
    task = task_of("iiwa_bimanual_cylinder", "turn")
    task = task.replace(goal=task.with_object(task.start, [0.05, 0.0, 0.1, 0.0, 0.0, 0.3]))
    tree = planning.rrt(task, rng=1)
    plan = tree.plan()
    assert plan.check(task.model).good
    assert task.model.body_pose(plan.end, "cylinder")[0][2] > 0.07


@pytest.mark.long
def test_grasps_of_what_hangs_hold_it():
    """Commands of fresh grasps in the air carry the object's weight, where CQDC's let it fall."""
    task = task_of("iiwa_bimanual_box", "turn")
    model, options = task.model, task.planner.replace(max_nodes=80, restart=None)
    options = options.replace(require_static_regrasps=False)
    task = task.replace(goal=task.with_object(task.start, [0.0, 0.05, 0.2, 0.0, 0.0, 0.3]))

    most = 0.999 * options.squeeze * options.step

    def falls(tree):
        """Largest shift of the box in one step from grasps in the air, and whether a command is held."""
        rows = []
        for i in np.flatnonzero(tree.kind == planning.EdgeKind.REGRASP):
            q, command = tree.q[i], tree.local(i).command
            if planning.is_stable(model, q, task.object, task.options):
                continue
            after = qdsim.step(model, q, command, task.options).q_next
            offset = np.linalg.norm(command - model.command_from(q))
            if offset < most:  # else it holds as far as ``squeeze`` lets it
                rows.append((task.space.errors(after, q)[0], offset > 0.0))
        return np.array(rows)

    held, loose = (
        falls(planning.rrt(task, options, 2)),
        falls(planning.rrt(task, options.replace(hold=False), 2)),
    )
    assert not loose[:, 1].any() and held[:, 1].mean() > 0.15
    assert np.median(held[held[:, 1] > 0, 0]) < 2e-3 < np.median(loose[:, 0])


@pytest.mark.long
def test_holding_forces_are_found_for_every_sample():
    """No sample of hand or arms makes the program of least forces end in an error of the solver."""
    for name, key, lift in (("allegro_book", "drag", 0.03), ("iiwa_bimanual_box", "turn", 0.2)):
        task = task_of(name, key)
        model, rng = task.model, np.random.default_rng(0)
        q = task.with_object(task.start, [0.0, -0.05, lift, 0.05, 0.05, 0.1])
        holding = closed = 0
        for _ in range(25):
            sample = task.sampler(model, q, rng)
            if sample is None:
                continue
            try:
                held = planning.holding_command(model, sample)
            except planning.EquilibriumError:
                continue
            holding += 1
            after = qdsim.step(model, sample, held.u, task.options).q_next
            shift, turn = task.space.errors(after, sample)
            closed += shift < 5e-3 and turn < 0.05  # what closing the gaps takes
        assert holding >= 2 and 2 * closed >= holding


def test_a_box_out_of_the_arms_reach_is_dragged_back_from_its_top():
    task = task_of("iiwa_box_push", "push_and_turn")
    model, sampler = task.model, task.sampler
    start = task.with_object(task.start, [0.15, 0.0, 0.0])
    pos, rot = model.body_pose(start, "box")
    # Nothing of the far side is within reach, by inverse kinematics from many postures.
    rng = np.random.default_rng(0)
    for y in np.linspace(-0.9, 0.9, 5) * sampler.half[1]:
        place = [sampler.half[0] + sampler.radius + sampler.gap, y, sampler.height]
        for _ in range(4):
            q = np.array(start)
            q[model.actuated_q] += 0.5 * rng.standard_normal(model.nu)
            tip = planning.reach_point(model, q, sampler.body, sampler.tip, pos + rot @ place)
            assert not tip.success
    goal = task.with_object(task.start, [0.05, 0.0, 0.0])
    back = task.replace(start=start, goal=goal, lower=task.lower - 0.1, upper=task.upper + 0.1)
    plan = planning.rrt(back, rng=0).plan()
    assert plan.check(model).good
    above = [
        model.body_pose(q, sampler.body)
        for segment in plan.segments
        for q in segment.configurations
    ]
    tips = [(pos + rot @ np.array(sampler.tip))[2] for pos, rot in above]
    assert max(tips) > sampler.half[2] + sampler.radius - 2e-3  # somewhere it was on the top
    sides = dataclasses.replace(sampler, top=False)
    for _ in range(8):
        q = sides(model, start, rng)
        if q is not None:
            pos, rot = model.body_pose(q, sampler.body)
            tip = pos + rot @ np.array(sampler.tip)
            np.testing.assert_allclose(tip[2], sampler.height, atol=1e-3)


@pytest.mark.long
def test_a_grasp_is_kept_only_if_the_robot_gets_there():
    """A disc shut in a room samples places on both sides of the wall; only its own side is reached."""
    pytest.importorskip("ompl.base")
    model = qdsim.load(SHUT_IN)

    def anywhere(model, q, rng):
        q = np.array(q)
        q[model.actuated_q] = rng.choice([-0.3, 0.3]), rng.uniform(-0.3, 0.3)
        return q

    start = np.array(model.default_q)
    start[model.actuated_q] = -0.3, 0.0
    task = planning.Task(
        name="shut in",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.1),
        start=start,
        goal=start + np.eye(model.nq)[0] * 0.5,
        object="ball",
        lower=np.full(1, -1.0),
        upper=np.full(1, 1.0),
        sampler=anywhere,
    )
    options = planning.RRTOptions(max_nodes=30, restart=None)
    both = planning.rrt(task, options, 0)
    own = planning.rrt(task, options.replace(motion_seconds=0.05), 0)
    side = int(model.actuated_q[0])
    assert np.any(both.q[:, side] > 0.1)
    assert np.all(own.q[:, side] < 0.0) and own.regrasp_count >= 3
