"""Commands keep their bounds and joints their limits, whoever plans; and whoever checks a plan says so where not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.task.bounds import beyond, beyond_limits, narrowed

GRIPPER = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="table" type="plane" size="1 1 .1" friction="0.8"/>
    <body name="wrist" pos="0 0 .12">
      <inertial mass=".1" pos="0 0 0" diaginertia="1e-4 1e-4 1e-4"/>
      <joint name="x" type="slide" axis="1 0 0" range="-.3 .3"/>
      <joint name="z" type="slide" axis="0 0 1" range="-.1 .3"/>
      <body name="left"><joint name="l" type="slide" axis="0 1 0" range="-.02 .06"/>
        <geom type="box" size=".015 .005 .03" pos="0 -.06 -.08" mass=".05" friction=".8"/></body>
      <body name="right"><joint name="r" type="slide" axis="0 -1 0" range="-.02 .06"/>
        <geom type="box" size=".015 .005 .03" pos="0 .06 -.08" mass=".05" friction=".8"/></body>
    </body>
    <body name="cube" pos="0 0 .02"><freejoint name="cube"/>
      <geom type="box" size=".02 .02 .02" mass=".1" friction=".8"/></body>
  </worldbody>
  <actuator>
    <position joint="x" kp="400"/><position joint="z" kp="400"/>
    <position joint="l" kp="200"/><position joint="r" kp="200"/>
  </actuator>
</mujoco>
"""


def gripper(**changes: Any) -> planning.Task:
    """A cube to be pushed or carried by a gripper."""
    model = qdsim.load(GRIPPER)
    start = np.array(model.default_q)
    goal = start.copy()
    goal[model.slice_q("cube")] += [0.03, 0, 0.03, 0, 0, 0, 0]
    options = qdsim.Options(h=0.05, margin=0.05)
    box = np.array([0.1, 0.1, 0.1, 0.3, 0.3, 0.3])
    settings: dict[str, Any] = {
        "sampler": planning.SurfaceSampler("cube", contacts=2, draws=4),
        "length": 0.03,
        "rotation_tolerance": 0.2,
        "start_tolerance": 1e-3,
    }
    return planning.Task(
        "carry", model, options, start, goal, "cube", -box, box, **(settings | changes)
    )


def published(name: str) -> planning.Task:
    return next(iter(qdsim.systems.load(name).tasks.values()))


def tightened(task: planning.Task, share: float) -> planning.Task:
    """Bounds around where the robot is, so wide a share of those that it had, or of 1."""
    lower, upper = task.command_bounds
    here = task.model.command_from(task.start)
    low = np.maximum(lower, here - share * np.minimum(here - lower, 2.0))
    high = np.minimum(upper, here + share * np.minimum(upper - here, 2.0))
    return task.replace(command_lower=low, command_upper=high)


def kept(task: planning.Task, u: Any, q: Any = None) -> None:
    lower, upper = task.command_bounds
    assert np.all(u >= lower) and np.all(u <= upper)
    if q is not None:
        assert not beyond_limits(task.model, q).any()


SCENES = {
    "planar_hand": lambda: published("planar_hand"),
    "planar_pushing": lambda: published("planar_pushing"),
    "allegro_plate": lambda: published("allegro_plate"),
    "allegro_door": lambda: published("allegro_door"),
    "iiwa_planar": lambda: published("iiwa_planar"),
    "gripper": gripper,
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    ("strategy", "share"),
    [
        ("chain", 0.2),
        ("published", 0.6),
        pytest.param("chain", 0.6, marks=pytest.mark.long),
        pytest.param("published", 0.2, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("name", SCENES)
def test_trees_keep_bounds_and_limits(name: str, share: float, strategy: str) -> None:
    task = tightened(SCENES[name](), share)
    options = (task.planner or planning.RRTOptions()).replace(
        strategy=strategy, max_nodes=40, max_steps=800, require_static_regrasps=False
    )
    tree = planning.rrt(task, options, rng=2)
    for node in range(tree.count):
        if (u := tree.inputs(node)) is not None:
            kept(task, u, tree.trajectory(node))
        kept(task, tree._command[node])
    assert not beyond_limits(task.model, tree.q).any()
    verdict = tree.plan(tree.best_node).check(task.model)
    assert not any("beyond" in fault for fault in verdict.faults)


@pytest.mark.long
def test_bounds_that_the_start_is_beyond_hold_all_the_same() -> None:
    task = published("planar_hand").replace(
        command_lower=np.full(4, -0.85), command_upper=np.full(4, 0.85)
    )
    here = task.model.command_from(task.start)
    assert beyond(here, *task.command_bounds).any()
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=120), rng=0)
    plan = tree.plan(max(range(tree.count), key=lambda node: len(tree.path(node))))
    assert plan.step_count > 0
    for segment in plan.segments:
        kept(task, segment.inputs)
    assert not any("command" in fault for fault in plan.check(task.model).faults)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("name", SCENES)
def test_samples_can_be_held_by_commands_within_the_bounds(name: str) -> None:
    task = tightened(SCENES[name](), 0.5)
    rng = np.random.default_rng(0)
    found = [task.grasp(task.start, rng) for _ in range(6)]
    for q in (q for q in found if q is not None):
        kept(task, task.model.command_from(q), q)
        own = task.space.q
        assert q[own].tobytes() == task.start[own].tobytes()


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_holding_commands_are_within_bounds_or_there_are_none(seed: int) -> None:
    """Forces that are not the smallest may be needed: SciPy agrees about the least effort within the bounds."""
    optimize = pytest.importorskip("scipy.optimize")
    task = gripper()
    model, rng = task.model, np.random.default_rng(seed)
    q = np.array(task.start)
    q[model.slice_q("cube")][2] += 0.05
    q[model.slice_q("cube").start + 2] += 0.05
    q[model.slice_q("z")] = 0.03
    q[model.slice_q("l")] = q[model.slice_q("r")] = 0.035 - 1e-4
    free = planning.holding_command(model, q)
    # The grip's fingers press with less than the smallest forces have, where others press harder.
    room = np.abs(free.u - model.command_from(q))
    lower = model.command_from(q) - room * rng.uniform(0.5, 2.0, 4)
    upper = model.command_from(q) + room * rng.uniform(0.9, 2.0, 4)
    try:
        held = planning.holding_command(model, q, lower=lower, upper=upper)
    except planning.EquilibriumError:
        held = None
    from qdsim.planning.grasps.equilibrium import contact_rows, generalised_load

    contacts = model.collide(q, 1e-3)
    contacts = contacts[contacts["dist"] <= 1e-3]
    _, J, scale, cones = contact_rows(model, q, contacts)
    load = generalised_load(model, q, False)
    C, c = J[:, model.unactuated_v].T, load[model.unactuated_v]
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    slope = -(1.0 / stiffness)[:, None] * J[:, model.actuated_v].T
    still = model.command_from(q) - load[model.actuated_v] / stiffness
    starts = np.cumsum([0, *cones])[:-1]

    def inside(f: Any) -> Any:
        own = [f[i : i + n] / scale[i : i + n] for i, n in zip(starts, cones)]
        return np.array([part[0] - np.linalg.norm(part[1:]) for part in own])

    answer = optimize.minimize(
        lambda f: 0.5 * f @ f,
        np.full(len(scale), 0.3),
        jac=lambda f: f,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
        constraints=[
            {"type": "eq", "fun": lambda f: np.linalg.svd(C)[0][:, :6].T @ (C @ f + c)},
            {"type": "ineq", "fun": inside},
            {"type": "ineq", "fun": lambda f: (still + slope @ f - lower) * 100},
            {"type": "ineq", "fun": lambda f: (upper - still - slope @ f) * 100},
        ],
    )
    if held is None:
        assert not answer.success
        return
    assert np.all(held.u >= lower) and np.all(held.u <= upper)
    forces = held.contacts["force"]
    if answer.success:
        assert 0.5 * np.sum(forces**2) <= answer.fun * (1 + 1e-5) + 1e-9
    # and it is an equilibrium
    after = qdsim.step(model, q, held.u, task.options.replace(h=0.1)).q_next
    assert task.space.errors(after, q)[0] < 1e-3


def test_commands_that_no_actuator_can_follow_are_not_proposed() -> None:
    """The file's own ranges are bounds where no others are given."""
    text = GRIPPER.replace(
        '<position joint="l" kp="200"/>', '<position joint="l" kp="200" ctrlrange="-.02 .0352"/>'
    )
    model = qdsim.load(text)
    q = np.array(model.default_q)
    q[model.slice_q("cube").start + 2] += 0.05
    q[model.slice_q("z")] = 0.03
    q[model.slice_q("l")] = q[model.slice_q("r")] = 0.035 - 1e-4
    with pytest.raises(planning.EquilibriumError, match=r"actuator 'actuator2' would be .* beyond"):
        planning.holding_command(model, q)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("name", ["planar_hand", "planar_pushing", "gripper"])
@pytest.mark.parametrize("method", ["feedback", "published"])
def test_impc_keeps_bounds(name: str, method: str) -> None:
    task = tightened(SCENES[name](), 0.3)
    options = planning.ImpcOptions(horizon=8, iterations=3, squeeze=0.5, method=method, threads=1)
    result = planning.impc(task, options)
    kept(task, result.u)
    verdict = result.plan().check(task.model)
    assert not any("command" in fault for fault in verdict.faults)
    wild = 10.0 * np.random.default_rng(0).standard_normal((8, task.model.nu))
    kept(task, planning.impc(task, options, u=wild).u)
    if method == "feedback":
        mpc = planning.Mpc(task, options)
        mpc.reset(wild)
        q = task.start
        for _ in range(4):
            u = mpc.act(q)
            kept(task, u)
            kept(task, mpc.commands)
            q = qdsim.step(task.model, q, u, task.options).q_next


def test_refined_plans_keep_the_bounds_of_their_task() -> None:
    task = published("planar_hand")
    plan = planning.rrt(task, rng=0).plan()
    tight = tightened(task, 0.4)
    impc = planning.ImpcOptions(iterations=2, threads=1)
    refined, _ = planning.refine(plan, tight, planning.RefineOptions(impc=impc, most_steps=20))
    for segment in refined.segments:
        kept(tight, segment.inputs)
    assert not any("command" in fault for fault in refined.check(task.model).faults)


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_strokes_and_grips_keep_bounds(share: float) -> None:
    task = tightened(qdsim.systems.load("allegro_sphere").tasks["quarter_turn"], share)
    planner = planning.StrokePlanner(task, planning.GaitOptions(candidates=2, steps=6), rng=0)
    for stroke in planner.candidates(task.start, here=True):
        kept(task, stroke.segment.inputs)
    rng = np.random.default_rng(0)
    for _ in range(10):
        way = rng.uniform(-0.3, 0.3, task.space.size)
        kept(task, planner.grip.command(task.start, way, closing=True, press=5.0).u)


@pytest.mark.long
def test_executions_keep_bounds() -> None:
    task = tightened(published("planar_hand"), 0.5)
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=60), rng=0)
    plan = tree.plan(tree.best_node)
    plan = dataclasses.replace(plan, segments=tuple(s.cut(4) for s in plan.segments[:2]))
    options = planning.TransferOptions(speed=2.0, settle=0.05, timestep=2e-3)
    for loop in (None, "stabilizer", "mpc", "grip"):
        done = planning.transfer(plan, task.model, options, controller=loop)
        for segment in done.segments:
            kept(task, segment.commands)


@pytest.mark.long
def test_motions_keep_bounds() -> None:
    task = tightened(published("planar_hand"), 0.7)
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=200), rng=0)
    plan = tree.plan(tree.best_node)
    assert len(plan.segments) > 1
    connected, _ = planning.connect_segments(plan, task.model)
    for motion in connected.motions:
        if motion is not None:
            ends = task.model.command_from(motion.configurations[[0, -1]])
            lower, upper = task.command_bounds
            low, high = np.minimum(lower, ends.min(axis=0)), np.maximum(upper, ends.max(axis=0))
            u = task.model.command_from(motion.configurations)
            assert np.all(u >= low - 1e-12) and np.all(u <= high + 1e-12)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", ["planar_hand", "gripper"])
def test_check_says_by_how_much_commands_exceed_their_bounds(name: str) -> None:
    task = SCENES[name]()
    options = planning.RRTOptions(max_nodes=80, require_static_regrasps=False)
    tree = planning.rrt(task, options, rng=1)
    node = max(
        range(tree.count), key=lambda n: sum(tree.inputs(k) is not None for k in tree.path(n))
    )
    plan = tree.plan(node)
    assert not any("beyond" in fault for fault in plan.check(task.model).faults)
    u = np.concatenate([segment.inputs for segment in plan.segments])
    worst = int((u.max(axis=0) - u.min(axis=0)).argmax())
    lower, upper = np.array(task.command_bounds)
    upper[worst] = u[:, worst].max() - 0.01
    verdict = dataclasses.replace(
        plan, command_bounds=(tuple(lower.tolist()), tuple(upper.tolist()))
    ).check(task.model)
    said = f"actuator {task.model.actuator_names[worst]!r} is up to 0.01 beyond its bounds"
    assert any(said in fault for fault in verdict.faults), verdict.faults


def test_check_says_where_joints_are_beyond_their_limits() -> None:
    task = published("planar_hand")
    plan = planning.rrt(task, rng=0).plan()
    q = np.concatenate([segment.configurations for segment in plan.segments])
    joint = "left_1"
    high = float(q[:, task.model.slice_q(joint)].max())
    limits = np.array(task.model.joint_range)
    own = task.model.joint_names.index(joint)
    bodies = tuple(
        dataclasses.replace(
            body,
            joints=tuple(
                dataclasses.replace(j, range=(limits[own, 0], high - 0.02))
                if j.name == joint
                else j
                for j in body.joints
            ),
        )
        for body in task.model.description.bodies
    )
    other = qdsim.Model(dataclasses.replace(task.model.description, bodies=bodies))
    assert any("0.02 beyond its limits" in fault for fault in plan.check(other).faults)


def test_bounds_are_kept_in_files(tmp_path: Any) -> None:
    task = tightened(published("planar_hand"), 0.5).replace(
        command_upper=np.array([np.inf, 1.0, np.inf, 1.0])
    )
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=20), rng=0)
    plan = tree.plan(tree.best_node)
    plan.save(tmp_path / "plan.npz")
    again = planning.Plan.load(tmp_path / "plan.npz")
    assert again.command_bounds is not None and plan.command_bounds is not None
    for a, b in zip(plan.command_bounds, again.command_bounds):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(6))
def test_narrowed_models_keep_both_bounds_and_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = published("allegro_plate").model
    lower, upper = planning.task.robot.command_range(model)
    low = np.where(rng.random(model.nu) < 0.5, lower, lower + 0.1 * rng.random(model.nu))
    high = np.where(rng.random(model.nu) < 0.5, np.inf, upper - 0.1 * rng.random(model.nu))
    found = np.asarray(narrowed(model, low, high).joint_range)
    joints = [model.joint_names.index(n) for n in model.joint_names]
    rows = [j for j in joints if model.slice_v(model.joint_names[j]).start in model.actuated_v]
    assert np.all(found >= np.minimum(found, np.asarray(model.joint_range)))
    order = [model.slice_v(model.joint_names[j]).start for j in rows]
    index = [order.index(int(v)) for v in model.actuated_v]
    own = found[rows][index]
    np.testing.assert_allclose(own[:, 0], np.maximum(low, lower), atol=1e-15)
    np.testing.assert_allclose(own[:, 1], np.minimum(high, upper), atol=1e-15)
    assert narrowed(model, lower - 1.0, upper + 1.0) is model
