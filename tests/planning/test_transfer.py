"""Plans executed in MuJoCo: a push whose outcome is known, the measures of CQDC section IX, bad input."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import scipy.optimize

import qdsim
from qdsim import planning
from qdsim.planning.execution.loops.follower import spring_reach
from qdsim.planning.execution.pacing import drift, matched_epsilon
from qdsim.planning.execution.plant import Plant
from qdsim.planning.grasps.placing import placed, shifted
from qdsim.planning.task.space import ObjectSpace

PUSHER = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.5"/>
    <body name="pusher" pos="-0.3 0 0.1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <geom name="ball" type="sphere" size="0.05" mass="0.2"/>
    </body>
    <body name="box" pos="0 0 0.1">
      <joint name="box_x" type="slide" axis="1 0 0"/>
      <joint name="box_z" type="slide" axis="0 0 1"/>
      <joint name="turn" type="hinge" axis="0 1 0"/>
      <geom name="block" type="box" size="0.2 0.2 0.1" mass="0.5" friction="0.5"/>
    </body>
  </worldbody>
  <actuator><position name="x" joint="x" kp="1000"/></actuator>
</mujoco>
"""


def push_plan(
    model: qdsim.Model,
    way: float = 0.3,
    steps: int = 30,
    options: qdsim.Options = qdsim.Options(h=0.1, margin=0.05),  # noqa: B008
) -> planning.Plan:
    inputs = np.linspace(0.0, way, steps + 1)[1:, None] * np.ones(model.nu)
    q = [model.default_q]
    for u in inputs:
        q.append(qdsim.step(model, q[-1], u, options).q_next)
    segment = planning.Segment(inputs, np.array(q), np.array([steps]))
    return planning.Plan("push", "box", options, q[-1], 0.02, 0.05, 1e-3, (segment,))


@pytest.fixture(scope="module")
def model() -> qdsim.Model:
    return qdsim.load(PUSHER)


@pytest.mark.long
def test_push_arrives_where_statics_says(model: qdsim.Model) -> None:
    """At rest the spring carries at most the friction limit: the box stands within mu m g / k of the
    command, in both models."""
    plan = push_plan(model)
    result = planning.transfer(plan, model)
    box, pusher = model.slice_q("box_x").start, model.slice_q("x").start
    segment = result.segments[0]
    limit = 0.5 * 0.5 * 9.81 / 1000.0
    # the pusher's front is 0.05 m from touching; then both move together
    assert abs(segment.executed[-1][pusher] - 0.3) < limit + 1e-3
    assert abs(segment.executed[-1][box] - 0.25) < limit + 2e-3
    assert abs(plan.end[box] - 0.25) < 5e-3
    assert result.reached
    assert segment.final[0] < 6e-3  # the planned box slides with a gap of 5 mm (formulation 2)
    assert segment.controller_failures == 0


@pytest.mark.long
def test_measures(model: qdsim.Model) -> None:
    """Delta, L and their ratio from the samples that the result itself holds (CQDC eq. 52 to 54)."""
    plan = push_plan(model)
    segment = planning.transfer(plan, model).segments[0]
    columns = [model.slice_q("box_x").start, model.slice_q("box_z").start]
    turn = model.slice_q("turn").start
    moving = segment.time <= segment.time[-1] - planning.TransferOptions().settle + 1e-9
    away = segment.executed - segment.planned
    assert segment.error[0] == pytest.approx(
        np.linalg.norm(away[moving][:, columns], axis=1).mean(), rel=1e-9
    )
    assert segment.error[1] == pytest.approx(np.abs(away[moving][:, turn]).mean(), rel=1e-9)
    path = np.diff(plan.segments[0].configurations[:, columns], axis=0)
    assert segment.length[0] == pytest.approx(np.linalg.norm(path, axis=1).sum(), rel=1e-9)
    assert segment.normalized_error[0] == pytest.approx(segment.error[0] / segment.length[0])


def test_commands_obey_the_speed(model: qdsim.Model) -> None:
    segment = planning.transfer(
        push_plan(model), model, planning.TransferOptions(speed=0.2)
    ).segments[0]
    rate = np.abs(np.diff(segment.commands[:, 0])) / np.diff(segment.time)
    assert rate.max() <= 0.2 + 1e-9
    assert segment.time[-1] == pytest.approx(0.3 / 0.2 + 0.5, abs=0.011)


def test_stabilizer_minimises_what_it_says() -> None:
    """Against SciPy's bounded least squares, at displaced configurations of the planar hand."""
    system = qdsim.systems.load("planar_hand")
    model, task = system.model, system.tasks["half_turn"]
    smooth = system.options.replace(kappa=300.0, joint_limits=False)
    controller = planning.Stabilizer(model, "disc", smooth, reach=0.05)
    rng = np.random.default_rng(3)
    u_plan = model.command_from(task.start)
    free = 0
    for _ in range(10):
        q = model.integrate(task.start, rng.normal(size=7) * [0.01, 0.01, 0.05, 0, 0, 0, 0])
        u_last = u_plan + 0.01 * rng.normal(size=4)
        u = controller(q, u_plan, task.start, u_last)
        B = qdsim.linearize(model, q, u_plan, smooth).B[:3]
        there = qdsim.step(model, q, u_plan, smooth.replace(kappa=None)).q_next
        weight = np.sqrt([1e3, 1e3, 1e2])
        matrix = np.vstack((weight[:, None] * B, np.eye(4), np.sqrt(0.5) * np.eye(4)))
        target = np.concatenate(
            (weight * (task.start - there)[:3], np.zeros(4), np.sqrt(0.5) * (u_last - u_plan))
        )
        expected = scipy.optimize.lsq_linear(matrix, target, (-0.05, 0.05), tol=1e-14)
        assert expected.success
        assert np.abs(u - u_plan - expected.x).max() < 1e-6
        free += int(np.abs(u - u_plan).max() < 0.0499)
    assert 0 < free < 10  # with and without active bounds


def test_controller_is_called_every_period(model: qdsim.Model) -> None:
    times = []

    def controller(q: np.ndarray, u: np.ndarray, at: np.ndarray, last: np.ndarray) -> np.ndarray:
        times.append(q[0])
        return u

    plan = push_plan(model)
    followed = planning.transfer(plan, model, controller=controller)
    duration = followed.segments[0].time[-1]
    assert len(times) == int(duration / 0.05) + 1
    assert followed.reached


@pytest.mark.long
def test_segments_carry_on(model: qdsim.Model) -> None:
    """The object begins a segment where it was left, or where it was planned."""
    plan = push_plan(model)
    first = plan.segments[0]
    back = np.array(first.end)
    back[model.slice_q("x")] = 0.0
    still = planning.Segment(np.zeros((1, 1)), np.array([back, back]), np.array([1]))
    two = planning.Plan("two", "box", plan.options, back, 0.02, 0.05, 1e-3, (first, still))
    columns = model.slice_q("box_x").start
    for carry_on in (True, False):
        result = planning.transfer(
            two, model, planning.TransferOptions(carry_on=carry_on, motions=False)
        )
        left, begun = result.segments[0].executed[-1], result.segments[1].executed[0]
        assert (begun[columns] == left[columns]) is np.bool_(carry_on)
        assert (begun[columns] == back[columns]) is np.bool_(not carry_on)


def test_bad_input(model: qdsim.Model) -> None:
    plan = push_plan(model, steps=2)
    with pytest.raises(TypeError, match="plan"):
        planning.transfer("plan", model)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="speed"):
        planning.TransferOptions(speed=0.0)
    with pytest.raises(ValueError, match="settle"):
        planning.TransferOptions(settle=float("nan"))
    with pytest.raises(ValueError, match="control_period"):
        planning.TransferOptions(control_period=1e-5)
    with pytest.raises(ValueError, match="kappa"):
        planning.Stabilizer(model, "box", qdsim.Options())
    with pytest.raises(ValueError, match="reach"):
        planning.Stabilizer(model, "box", qdsim.Options(kappa=100.0), reach=-1.0)
    other = qdsim.systems.load("planar_hand").model
    with pytest.raises(ValueError, match="nq"):
        planning.transfer(plan, other)
    with pytest.raises(ValueError, match="controller"):
        planning.transfer(plan, model, controller="closed")  # type: ignore[arg-type]
    for loop in ("replan", "renew"):
        with pytest.raises(ValueError, match="task"):
            planning.transfer(plan, model, controller=loop)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reach"):
        planning.ImpcOptions(reach=-1.0)
    with pytest.raises(ValueError, match="simulator"):
        planning.transfer(plan, model, simulator=planning.second_order(other, "disc"))


@pytest.mark.parametrize("gravity", ["0 0 0", "0 0 -9.81"])
def test_objects_seen_from_above_lie_on_a_plane(gravity: str) -> None:
    """Let go at some speed v, a box that slides under friction mu stops after v^2 / (2 mu g), whether the file
    has gravity into the plane or none at all; one that gravity pulls along a slide has no such plane."""
    model = qdsim.load(
        f"""<mujoco><option gravity="{gravity}"/><worldbody>
        <body name="box"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
          <joint type="hinge" axis="0 0 1"/><geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
        <body name="finger" pos="-1 0 0"><joint name="f" type="slide" axis="1 0 0"/>
          <geom type="sphere" size="0.05" mass="1"/></body></worldbody>
        <actuator><position joint="f" kp="100"/></actuator></mujoco>"""
    )
    plant = plant_of(model, "box", support_friction=0.3)
    plant.data.qvel[0] = 0.6
    for _ in range(2000):
        plant.advance(np.zeros(1))
    assert plant.q[0] == pytest.approx(0.6**2 / (2 * 0.3 * 9.81), rel=0.02)
    assert abs(plant.data.qvel[0]) < 1e-3
    assert not plant_of(qdsim.load(PUSHER), "box").supported


def plant_of(model: qdsim.Model, body: str, **changes: float) -> Plant:
    options = planning.TransferOptions(**changes)
    mj = planning.second_order(model, body, options)
    return Plant(model, planning.ObjectSpace(model, body), mj, options, compensated=True)


TABLE = """<mujoco><option gravity="0 0 0"/><worldbody>
    <body name="box"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/><geom type="box" size="0.1 0.2 0.1" mass="2"/></body>
    <body name="finger" pos="-0.17 0 0"><joint name="f" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.05" mass="1"/></body></worldbody>
    <actuator><position name="f" joint="f" kp="400"/></actuator></mujoco>"""


def test_the_plane_slows_every_direction_alike() -> None:
    """Friction M v / |v|_M: a box let go with any twist keeps its direction and stops after
    |v|_M^2 / (2 mu g), in the metric of the mass matrix per unit of mass."""
    model = qdsim.load(TABLE)
    plant = plant_of(model, "box", support_friction=0.4)
    twist = np.array([0.3, 0.4, 2.0])
    metric = np.diag(model.mass_matrix(model.default_q))[:3] / 2.0
    plant.data.qvel[:3] = twist
    for _ in range(2000):
        plant.advance(np.zeros(1))
    size = np.sqrt(metric @ twist**2)
    assert plant.q[:3] == pytest.approx(twist / size * size**2 / (2 * 0.4 * 9.81), rel=0.02)


@pytest.mark.long
def test_a_slow_execution_comes_to_the_plan(model: qdsim.Model) -> None:
    """Pushed on a floor, a body's inertia and the plan's own (epsilon M / h^2) both count less the slower it
    goes: the executions come nearer to a plan of small steps."""
    options = qdsim.Options(h=0.02, margin=0.05)
    plan = push_plan(model, steps=300, options=options)
    errors = [
        planning.transfer(plan, model, planning.TransferOptions(speed=speed)).segments[0].error[0]
        for speed in (0.6, 0.15)
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 2e-3


def table_task(way: float = 0.1) -> tuple[planning.Task, planning.Plan]:
    model = qdsim.load(TABLE)
    options = qdsim.Options(h=0.1, margin=0.05)
    task = planning.Task(
        name="push",
        model=model,
        options=options,
        start=model.default_q,
        goal=model.default_q + np.array([way, 0.0, 0.0, 0.0]),
        object="box",
        lower=np.array([0.0, -0.01, -0.01]),
        upper=np.array([way, 0.01, 0.01]),
        position_tolerance=0.008,
        length=0.1,
    )
    inputs = np.linspace(0.0, 0.02 + way, 31)[1:, None]
    q = [model.default_q]
    for u in inputs:
        q.append(qdsim.step(model, q[-1], u, options).q_next)
    segment = planning.Segment(inputs, np.array(q), np.array([30]))
    goal = np.array(task.goal)
    return task, planning.Plan("push", "box", options, goal, 0.008, 0.05, 1e-3, (segment,))


@pytest.mark.long
def test_following_by_impc_makes_up_for_the_plane() -> None:
    """Open loop the box stays behind by the friction over the stiffness, 5 N / 400 N/m; iMPC presses on."""
    task, plan = table_task()
    behind = 0.25 * 2.0 * 9.81 / 400.0
    options = planning.TransferOptions(support_friction=0.25, control_period=0.1, settle=2.0)
    left = planning.transfer(plan, task.model, options, controller="open")
    followed = planning.transfer(plan, task, options, controller="mpc")
    assert left.position_error == pytest.approx(behind, abs=2.5e-3)
    assert not left.reached
    assert followed.reached
    assert followed.position_error < 0.5 * behind
    reach = spring_reach(task.model, plan.start, 8.0 * 9.81)
    assert reach == pytest.approx([8.0 * 9.81 / 400.0])  # its lever is 1: it slides
    segment = followed.segments[0]
    offset = segment.commands[:, 0] - segment.executed[:, 3]
    assert np.abs(offset).max() < 1.3 * reach[0]  # between two measurements the finger moves on


def test_springs_that_may_press_little_still_let_the_finger_go_as_fast_as_planned() -> None:
    """A tenth of the box's weight are 5 mm of the spring; at the plan's 0.1 m/s the finger goes 10 mm in a period."""
    task, plan = table_task()
    options = planning.TransferOptions(
        support_friction=0.05, control_period=0.1, settle=0.2, press=0.1
    )
    (segment,) = planning.transfer(plan, task, options, controller="mpc").segments
    reach = spring_reach(task.model, plan.start, 0.1 * 2.0 * 9.81)
    offset = segment.commands[:, 0] - segment.executed[:, 3]
    # between two measurements the finger and the plane's friction do as they like
    assert np.abs(offset).max() < 1.15 * (reach[0] + options.speed * options.control_period)
    assert segment.error[0] < 0.2 * segment.length[0]
    assert segment.final[0] < task.position_tolerance


@pytest.mark.long
def test_a_plan_that_stops_short_is_continued() -> None:
    task, plan = table_task()
    first = plan.segments[0]
    short = planning.Segment(first.inputs[:15], first.configurations[:16], np.array([15]))
    half = planning.Plan("half", "box", plan.options, plan.goal, 0.008, 0.05, 1e-3, (short,))
    options = planning.TransferOptions(support_friction=0.25, control_period=0.1, settle=2.0)
    assert not planning.transfer(half, task, options, controller="mpc").reached
    result = planning.transfer(half, task, options, controller="replan")
    assert result.reached and len(result.segments) > 1
    begun, ended = result.segments[1].executed[0], result.segments[0].executed[-1]
    assert begun[:3] == pytest.approx(ended[:3], abs=1e-12)  # the object goes on from where it is


@pytest.mark.long
def test_a_paced_plan_that_stops_short_is_continued_by_what_is_predicted_best() -> None:
    """Planned commands are asked first, and what is predicted to do better by half a tolerance is taken."""
    task, plan = table_task()
    # The one finger cannot bring back a box that a sampled command shoves too far.
    task = task.replace(position_tolerance=0.03)
    first = plan.segments[0]
    short = planning.Segment(first.inputs[:15], first.configurations[:16], np.array([15]))
    half = planning.Plan("half", "box", plan.options, plan.goal, 0.03, 0.05, 1e-3, (short,))
    options = planning.TransferOptions(support_friction=0.25, settle=2.0)
    paced_task, settings = planning.paced(task, options)
    result = planning.transfer(half, paced_task, options, controller="renew", planner=settings)
    assert result.reached and len(result.segments) > 1
    begun, ended = result.segments[1].executed[0], result.segments[0].executed[-1]
    assert begun[:3] == pytest.approx(ended[:3], abs=1e-3)


@pytest.mark.long
def test_paced_plans_leave_the_box_only_where_it_stays() -> None:
    """Two arms and a heavy box: at every change of grasp the box lies still without them, in MuJoCo too."""
    task = qdsim.systems.load("iiwa_bimanual_box").tasks["turn"]
    task, settings = planning.paced(task)
    tree = planning.rrt(task, settings.replace(max_nodes=40, restart=None), rng=1)
    plans = (tree.plan(node) for node in reversed(range(tree.count)))
    plan = next(plan for plan in plans if plan.regrasps)
    space = ObjectSpace(task.model, "box")
    options = planning.TransferOptions(timestep=1e-3)
    mj = planning.second_order(task.model, "box", options)
    away = task.start[task.model.actuated_q] + np.tile([1.5, 0, 0, 0, 0, 0, 0], 2) * np.repeat(
        [1, -1], 7
    )
    for before, _ in plan.regrasps:
        plant = Plant(task.model, space, mj, options, compensated=True)
        alone = np.array(before)
        alone[task.model.actuated_q] = away
        plant.reset(alone)
        for _ in range(300):
            plant.advance(task.model.command_from(alone))
        shift, turn = space.errors(plant.q, before)
        assert shift < 2e-3 and turn < 2e-2


def test_placing_moves_the_robot_alone() -> None:
    task, plan = table_task()
    q = np.array(plan.start)
    q[3] = 0.05  # the finger three centimetres inside of the box
    fitted, good = placed(task.model, "box", q, plan.options)
    assert good and (fitted[:3] == q[:3]).all()
    assert fitted[3] == pytest.approx(0.02, abs=1e-6)
    assert (placed(task.model, "box", fitted, plan.options)[0] == fitted).all()


def test_what_an_object_stands_on_is_no_matter_of_placing() -> None:
    """A box of 10 cm has sunk by 0.5 mm into the ground: a ball of 2 cm that is 1 cm inside of its face is placed
    beside it, and a ball that touches it stays."""
    model = qdsim.load("""<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
<body name="box" pos="0 0 .0495"><freejoint/><geom type="box" size=".05 .05 .05" mass=".5"/></body>
<body name="ball" pos="0 0 .05"><joint name="x" type="slide" axis="1 0 0"/><geom type="sphere" size=".02" mass=".1"/>
</body></worldbody><actuator><position joint="x" kp="100"/></actuator></mujoco>""")
    beside = np.array(model.default_q)
    beside[model.actuated_q] = -0.07
    for inside in (0.01, 0.0):
        q = np.array(beside)
        q[model.actuated_q] += inside
        fitted, good = placed(model, "box", q, qdsim.Options(h=0.1, margin=0.05))
        assert good
        np.testing.assert_allclose(fitted, beside, rtol=0.0, atol=1e-6)


@pytest.mark.long
def test_noise_displaces_the_object_and_repeats() -> None:
    task, plan = table_task()
    options = planning.TransferOptions(position_noise=1e-3, rotation_noise=1e-2, settle=0.0)
    begins = [
        planning.transfer(plan, task.model, options.replace(seed=seed)).segments[0].executed[0]
        for seed in (1, 1, 2)
    ]
    assert (begins[0] == begins[1]).all() and (begins[0] != begins[2]).any()
    assert 0.0 < np.linalg.norm(begins[0][:2]) < 5e-3 and 0.0 < abs(begins[0][2]) < 5e-2


def test_mpc_follows_a_reference() -> None:
    """A finger alone, that weighs only itself: with the reference for every step it is there at every step."""
    task, plan = table_task()
    cost = planning.TrackingCost(object=1.0, robot=10.0, command=1e-3)
    settings = planning.ImpcOptions(horizon=5, cost=cost, start="hold", radii=(0.2,))
    loop = planning.Mpc(task, settings)
    reference = np.tile(plan.start, (6, 1))
    reference[:, 3] = np.array([0.0, -0.02, -0.05, -0.06, -0.04, -0.1])
    loop.act(plan.start, reference)
    assert loop.prediction is not None
    assert loop.prediction[:, 3] == pytest.approx(reference[:, 3], abs=1e-3)
    with pytest.raises(ValueError, match="reference"):
        loop.act(plan.start, reference[:3])


@pytest.mark.long
def test_the_pace_of_an_execution_and_its_resistance() -> None:
    """A finger that pushes a box along one line at the execution's speed: in the paced model, as on the plane, its
    spring stays behind by the friction over the stiffness, mu m g / k; by the damping times the speed over it where
    the box is damped."""
    task, _ = table_task()
    speed = 0.1
    for world, force in (
        (planning.TransferOptions(speed=speed, support_friction=0.25), 0.25 * 2.0 * 9.81),
        (
            planning.TransferOptions(
                speed=speed, support_friction=0.0, object_damping=(60.0, 60.0, 0.1)
            ),
            60.0 * speed,
        ),
    ):
        epsilon = matched_epsilon(task.model, "box", world, task.options.h, speed)
        options = task.options.replace(epsilon=epsilon)
        q, u = np.array(task.start), np.zeros(1)
        for _ in range(100):
            u = u + speed * options.h
            q = qdsim.step(task.model, q, u, options).q_next
        assert u[0] - q[3] == pytest.approx(force / 400.0, rel=0.02)
    paced_task, settings = planning.paced(
        task, world, planning.RRTOptions(step=0.25, sub_steps=2, max_nodes=20)
    )
    assert settings.sub_steps == 25  # of 0.01 each
    assert paced_task.options.epsilon == pytest.approx(60.0 * options.h / 2.0)
    free = planning.TransferOptions(speed=speed, support_friction=0.0)
    assert (
        planning.paced(task, free)[0].options is task.options
    )  # nothing resists that could be matched
    with pytest.raises(ValueError, match="object_damping"):
        planning.TransferOptions(object_damping=-1.0)
    with pytest.raises(ValueError, match="object_damping"):
        planning.transfer(table_task()[1], task, planning.TransferOptions(object_damping=(1.0,)))


def test_drift_weighs_by_the_way() -> None:
    """A box that goes 1 m in one step and creeps 1 mm in each of many: nearly all of its way is fast."""
    task, plan = table_task()
    path = np.tile(task.start, (12, 1))
    path[1:, 0] = 1.0 + 1e-3 * np.arange(11)
    segment = planning.Segment(np.zeros((11, 1)), path, np.array([11]))
    fast = dataclasses.replace(plan, segments=(segment,))
    assert drift(fast, task.model) == pytest.approx((1.0 + 1e-5) / 1.01 / 0.1)


def two_way_table() -> qdsim.Model:
    """The table with a finger that moves in both directions."""
    return qdsim.load(
        TABLE.replace(
            '<geom type="sphere" size="0.05" mass="1"/>',
            '<joint name="g" type="slide" axis="0 1 0"/><geom type="sphere" size="0.05" mass="1"/>',
        ).replace("</actuator>", '<position name="g" joint="g" kp="400"/></actuator>')
    )


def test_grasps_go_with_the_object() -> None:
    """The finger's contact point goes to where that place of the box is now: by the shift, and by the turn about
    the box's centre, 0.1 m from it."""
    model = two_way_table()
    q = np.array(model.default_q)
    q[model.slice_q("f")] = 0.02  # touches the box
    here = np.array(q)
    here[:3] += [0.02, -0.03, 0.1]
    moved = shifted(model, "box", q, here)
    assert (moved[:3] == here[:3]).all()
    turned = 0.1 * np.array([np.cos(0.1), np.sin(0.1)]) - [0.1, 0.0]
    assert moved[3:] - q[3:] == pytest.approx(here[:2] - q[:2] - turned, abs=1e-6)
    assert shifted(model, "box", q, q) == pytest.approx(q, abs=1e-9)
    far = np.array(q)
    far[model.slice_q("f")] = -0.2  # touches nothing: stays
    assert (shifted(model, "box", far, here)[3:] == far[3:]).all()


def pushed_from_both_sides(model: qdsim.Model) -> planning.Plan:
    """Along +x by the finger at one side of the box, then back by the finger at the other."""
    options = qdsim.Options(h=0.1, margin=0.05)
    left = np.array(model.default_q)
    right = left.copy()
    right[model.slice_q("f")] = 0.34
    segments = []
    for q, du in ((left, 0.05), (right, -0.05)):
        if segments:
            q[:3] = segments[0].end[:3]
            q[model.slice_q("f")] = q[0] + 0.17 + 0.17
        u = model.command_from(q) + np.linspace(0.0, du, 21)[1:, None] * [1.0, 0.0]
        path = qdsim.rollout(model, q, u, options).q
        segments.append(planning.Segment(u, path, np.array([20])))
    goal = segments[-1].end
    return planning.Plan("two", "box", options, goal, 0.02, 0.05, 1e-3, tuple(segments))


@pytest.mark.long
def test_the_robot_goes_to_its_next_grasp_by_itself() -> None:
    """From one side of the box to the other, around it, and the box stays; an execution is the default."""
    model = two_way_table()
    plan = pushed_from_both_sides(model)
    world = planning.TransferOptions(support_friction=0.1, settle=0.5)
    result = planning.transfer(plan, model, world)
    first, second = result.segments
    assert result.missing_motions == 0
    assert second.executed[0][:3] == pytest.approx(first.executed[-1][:3], abs=1e-3)
    assert second.executed[0][model.slice_q("f")] > first.executed[-1][0] + 0.1
    assert result.reached and "from start to end, open loop, in MuJoCo with stiff contacts" in repr(
        result
    )


@pytest.mark.long
def test_no_robot_is_set_to_its_next_grasp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the way around the box needs a planner that is not installed, that is an error; where there is no way, the
    execution ends in front of the box."""
    plan = pushed_from_both_sides(two_way_table())
    world = planning.TransferOptions(support_friction=0.1, settle=0.1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ompl", None)
        for module in ("ompl.base", "ompl.geometric", "ompl.util"):
            patch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=r"qdsim\[planning\]"):
            planning.transfer(plan, two_way_table(), world)
    # On its slide along x alone the finger cannot go around the box.
    model = qdsim.load(TABLE)
    columns = [0, 1, 2, 3]
    segments = tuple(
        planning.Segment(s.inputs[:, :1], s.configurations[:, columns], s.knots)
        for s in plan.segments
    )
    blocked = dataclasses.replace(plan, goal=plan.goal[columns], segments=segments)
    result = planning.transfer(blocked, model, world)
    assert result.outcome == "no motion found" and not result.reached
    assert result.missing_motions == 1
    first, second = result.segments
    assert second.outcome == "not begun" and len(second.time) == 1
    assert second.executed[0] == pytest.approx(first.executed[-1], abs=5e-3)
    assert "no motion found" in repr(result) and "not begun" in repr(second)


@pytest.mark.long
def test_segments_that_arrive_one_by_one_are_no_execution(model: qdsim.Model) -> None:
    """A segment that is planned to begin 0.2 m from where the one before leaves the box: each arrives by itself, an
    execution misses by 0.2 m."""
    plan = push_plan(model)
    first = plan.segments[0]
    box = model.slice_q("box_x").start
    away = np.array(first.end)
    away[box] += 0.2
    away[model.slice_q("x")] = 0.0
    hold = planning.Segment(np.zeros((2, 1)), np.array([away] * 3), np.array([2]))
    two = planning.Plan("two", "box", plan.options, away, 0.02, 0.05, 1e-3, (first, hold))
    each = planning.transfer(two, model, planning.TransferOptions(carry_on=False))
    assert [s.outcome for s in each.segments] == ["followed", "followed"]
    assert each.outcome == "measured" and not each.reached and each.position_error < 0.02
    assert "each segment from where it was planned to begin" in repr(each)
    whole = planning.transfer(two, model)
    assert whole.outcome == "missed" and whole.segments[1].outcome == "missed"
    assert whole.position_error == pytest.approx(0.2, abs=0.02)
    assert "\n" not in repr(whole) and "array" not in repr(whole) + repr(whole.segments[0])
