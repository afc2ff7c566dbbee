"""What an execution says of itself: lost objects, strokes that are not found; MuJoCo's contacts and actuators."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.description import SceneBuilder
from qdsim.planning.execution.execution import Execution
from qdsim.planning.execution.loops.loop import Record
from qdsim.planning.execution.loops.pursuit import along
from qdsim.planning.execution.loops.steering import Given, Planned
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.task.robot import penetration, robot_bodies

CLAW = """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    {floor}
    <body name="box" pos="0 0 {height}"><freejoint name="box"/>
      <geom name="box" type="box" size="0.03 0.03 0.03" mass="0.2"/></body>
    <body name="left" pos="-0.06 0 {height}"><joint name="l" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.01" mass="0.1"/></body>
    <body name="right" pos="0.06 0 {height}"><joint name="r" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.01" mass="0.1"/></body>
  </worldbody>
  <actuator><position name="l" joint="l" kp="500"/><position name="r" joint="r" kp="500"/></actuator>
</mujoco>"""
FLOOR = '<geom type="plane" size="1 1 1"/>'
OPTIONS = planning.TransferOptions(timestep=1e-3, speed=1.0)


def claw_task(height: float, floor: str = "") -> planning.Task:
    """A box between two open fingers, above nothing or a floor."""
    model = qdsim.load(CLAW.format(floor=floor, height=height))
    task = planning.Task(
        name="carry",
        model=model,
        options=qdsim.Options(h=0.05, margin=0.05),
        start=model.default_q,
        goal=model.default_q,
        object="box",
        lower=-0.1 * np.ones(6),
        upper=0.1 * np.ones(6),
        sampler=lambda model, q, rng: None,
        length=0.03,
    )
    return task.replace(goal=task.with_object(task.start, [0, 0.05, 0, 0, 0, 0]))


def waiting(task: planning.Task, segments: int) -> planning.Plan:
    """A plan in which nothing moves."""
    hold = task.model.command_from(task.start)
    segment = planning.Segment(np.tile(hold, (3, 1)), np.tile(task.start, (4, 1)), np.array([3]))
    return planning.Plan(
        "wait", task.object, task.options, task.goal, 0.01, 0.1, 1e-3, (segment,) * segments
    )


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("carry_on", [True, False])
@pytest.mark.parametrize("loop", ["open", "mpc", "grip"])
def test_what_falls_is_lost(loop: str, carry_on: bool) -> None:
    """Time stops where the object is gone: errors are not those of a free fall; every segment is counted."""
    task = claw_task(height=1.0)
    options = OPTIONS.replace(carry_on=carry_on, motions=False, settle=3.0)
    result = planning.transfer(waiting(task, 3), task, options, controller=loop)  # type: ignore[arg-type]
    assert result.lost and result.outcome == "lost" and "lost" in repr(result)
    assert not result.reached
    assert [s.outcome for s in result.segments] == ["lost"] * 3
    assert 0.05 < result.position_error < 0.5  # in three seconds it would fall 44 m
    assert all(np.isfinite(s.error).all() for s in result.segments)


@pytest.mark.parametrize("height", [0.03, 1.0])
def test_strokes_that_are_not_found_are_said_so(height: float) -> None:
    task = claw_task(height, FLOOR if height < 0.1 else "")
    result = planning.transfer(waiting(task, 1), task, OPTIONS, controller="gait")
    assert result.segments == () and not result.reached
    assert result.outcome == ("no stroke found" if height < 0.1 else "lost")
    assert result.position_error < 0.5


def test_what_stays_near_is_not_lost() -> None:
    """A box that rests beside its goal was missed; one that is there was reached."""
    task = claw_task(0.03, FLOOR)
    assert planning.transfer(waiting(task, 1), task, OPTIONS).outcome == "missed"
    there = task.replace(goal=task.start)
    result = planning.transfer(waiting(there, 1), there, OPTIONS)
    assert result.outcome == "reached" and result.segments[0].outcome == "followed"


def test_actuators_pull_no_harder_than_they_may() -> None:
    """Two fingers that squeeze the box press with what their springs ask for, or with the limit."""
    task = claw_task(0.03, FLOOR)
    model = task.model
    wanted = 500.0 * 0.01
    for limit, force in ((None, wanted), (2.0, 2.0), ((3.0, 8.0), None)):
        options = OPTIONS.replace(force=limit)
        mj = planning.second_order(model, "box", options)
        plant = Plant(model, task.space, mj, options, compensated=True)
        plant.reset(task.start)
        for _ in range(600):
            plant.advance(np.array([0.03, -0.03]))
        if force is not None:
            assert plant.data.qfrc_actuator[-2:] == pytest.approx([force, -force], rel=2e-2)
        else:
            assert np.all(np.abs(plant.data.qfrc_actuator[-2:]) <= np.array([3.0, 8.0]))
    with pytest.raises(ValueError, match="force"):
        planning.second_order(model, "box", OPTIONS.replace(force=(1.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match="force"):
        planning.TransferOptions(force=-1.0)


def test_contacts_are_stiff_soft_or_mujocos_own() -> None:
    import mujoco

    task = claw_task(0.03, FLOOR)
    own = mujoco.MjModel.from_xml_string(CLAW.format(floor=FLOOR, height=0.03))
    found = {}
    for kind in ("stiff", "soft", "default"):
        options = OPTIONS.replace(contacts=kind)  # type: ignore[arg-type]
        found[kind] = planning.second_order(task.model, "box", options)
    assert found["default"].opt.cone == own.opt.cone
    assert found["default"].opt.impratio == own.opt.impratio
    for kind in ("soft", "default"):
        assert (found[kind].geom_solref == own.geom_solref[0]).all()
    assert found["soft"].opt.cone == found["stiff"].opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert found["stiff"].geom_solref[0, 0] < 0.25 * own.geom_solref[0, 0]
    with pytest.raises(ValueError, match="contacts"):
        planning.TransferOptions(contacts="hard")  # type: ignore[arg-type]


def test_a_plan_takes_its_model_or_its_task() -> None:
    task = claw_task(0.0)
    plan = waiting(task, 2)
    by_model, by_task = plan.check(task.model), plan.check(task)
    assert by_model == by_task
    assert plan.replay(task).identical == plan.replay(task.model).identical
    assert plan.with_forces(task).segments[0].contacts is not None
    assert (
        planning.connect_segments(plan, task)[1] == planning.connect_segments(plan, task.model)[1]
    )
    with pytest.raises(TypeError, match=r"^model: expected"):
        plan.check("claw")  # type: ignore[arg-type]
    other = qdsim.systems.load("planar_hand")
    for wrong in (other.model, next(iter(other.tasks.values()))):
        with pytest.raises(ValueError, match=r"^model: the plan has nq"):
            plan.replay(wrong)


class Still:
    """A world in which nothing moves: all that a loop may know of one."""

    timestep = OPTIONS.timestep

    def __init__(self, task: planning.Task) -> None:
        self.model, self.space = task.model, task.space
        self.lag, self.lost, self.q = np.zeros(task.model.nu), False, np.array(task.start)
        self.v = np.zeros(task.model.nv)

    def within(self, u: np.ndarray) -> np.ndarray:
        return np.clip(u, -1.0, 1.0)

    def load(self, way: np.ndarray, seconds: float) -> None:
        return None


def test_loops_yield_commands_and_leave_the_world_alone() -> None:
    task = claw_task(0.0)
    plan = waiting(task, 1)
    inputs = plan.segments[0].inputs + np.linspace(0.0, 0.02, 3)[:, None]
    segment = dataclasses.replace(plan.segments[0], inputs=inputs)
    schedule = Schedule(task.model, segment, OPTIONS.speed, OPTIONS.timestep)
    calls = []

    def controller(q: np.ndarray, u: np.ndarray, at: np.ndarray, last: np.ndarray) -> np.ndarray:
        calls.append(u)
        return u

    world = Still(task)
    by_plan = Planned(world, OPTIONS.timestep, OPTIONS.speed, task.options)
    by_function = Given(controller, OPTIONS.control_period)
    tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
    for steering in (by_plan, by_function):
        record = Record(world)
        track = Track(task.goals, tolerances, schedule, task.start)
        commands = np.array(list(along(world, track, steering, record, OPTIONS.settle)))
        steps = round((schedule.duration + OPTIONS.settle) / OPTIONS.timestep)
        assert abs(len(commands) - steps) <= 2 and record.failures == 0
        np.testing.assert_allclose(commands[-1], inputs[-1], atol=1e-12)
        times = [s.time for s in record.samples]
        assert times[0] == 0.0 and times[-1] >= schedule.duration + OPTIONS.settle - 1e-9
    # a period's command is where the plan is at the period's end
    np.testing.assert_allclose(calls[0], schedule.command(OPTIONS.control_period))
    # what is lost ends every loop at its first look
    world.lost = True
    track = Track(task.goals, tolerances, schedule, task.start)
    assert len(list(along(world, track, by_plan, Record(world), OPTIONS.settle))) == 0


@pytest.mark.parametrize(("kind", "gear", "metres"), [("hinge", 1.0, 0.4), ("slide", 2.0, 0.5)])
def test_a_command_moves_the_robot_at_its_speed(kind: str, gear: float, metres: float) -> None:
    """A part 0.4 m from a hinge, and on a slide with a gear of 2: a unit of the command moves it by so many metres, and
    takes as many tenths of a second at 10 m/s; what turns about itself counts with 5 cm."""
    builder = SceneBuilder()
    for name, x in (("arm", 0.4), ("wrist", 0.0)):
        builder.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, kind if name == "arm" else "hinge", axis=(0.0, 0.0, 1.0), name=name)
        builder.geom(name, "sphere", size=(0.01,), pos=(x, 0.0, 0.0))
        builder.actuator(name, stiffness=10.0, gear=gear if name == "arm" else 1.0)
    model = qdsim.build(builder.build())
    u = np.array([[1.0, 0.0], [1.0, 1.0]])
    segment = planning.Segment(u, np.tile(model.default_q, (3, 1)), np.array([2]))
    times = Schedule(model, segment, 10.0, 1e-4).times
    np.testing.assert_allclose(np.diff(times), [metres / 10.0, 0.05 / 10.0], rtol=1e-12)


# A fork of two prongs that no joint moves apart, 4 mm narrower than the box that it is pushed over.
WEDGE = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="box" pos="0 0 .03"><freejoint/>
    <geom type="box" size=".03 .03 .03" mass="50"/></body>
  <body pos="-.06 0 .03"><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="sphere" size=".01" pos="0 .038 0" mass=".1" friction=".05"/>
    <geom type="sphere" size=".01" pos="0 -.038 0" mass=".1" friction=".05"/></body></worldbody>
  <actuator><position name="x" joint="x" kp="20000"/></actuator></mujoco>"""


def test_a_robot_goes_back_out_of_a_soft_contact() -> None:
    """With its springs relaxed the fork stays 2 mm deep in the box, where no motion may begin; the way back is free."""
    model = qdsim.load(WEDGE)
    start = np.array(model.default_q)
    inputs = np.linspace(0.005, 0.06, 12)[:, None]
    path = np.tile(start, (13, 1))
    path[1:, model.slice_q("x")] = inputs
    segment = planning.Segment(inputs, path, np.array([12]))
    tolerances = 0.01, 0.1, 1e-3
    steps = qdsim.Options(h=0.1)
    plan = planning.Plan("wedge", "box", steps, start, *tolerances, (segment,))
    world = planning.TransferOptions(contacts="default", timestep=1e-3)
    execution = Execution(plan, model, planning.second_order(model, "box", world), world)
    execution.mover = Planned(execution.plant, world.timestep, world.speed, steps)
    execution.run(segment)
    fork = robot_bodies(model)
    assert penetration(model, execution.plant.q, fork) == pytest.approx(2e-3, rel=0.01)
    execution.drive(execution.let_go())
    assert penetration(model, execution.plant.q, fork) < 1e-3
    assert abs(execution.plant.q[0]) < 1e-3  # the box has stayed


def test_a_grasp_without_room_at_the_measured_pose_is_not_begun() -> None:
    """The box has come within 1 cm of a post; the ball of 4 cm, which was to push it from there, stays where it is."""
    model = qdsim.load("""<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
<geom type="box" size=".015 .1 .1" pos="-.125 0 .1"/>
<body name="box" pos=".1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
<body name="ball" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0" range="-.5 .5"/>
<geom type="sphere" size=".02" mass=".1"/></body></worldbody>
<actuator><position joint="x" kp="100"/></actuator></mujoco>""")
    start = np.array(model.default_q)
    start[model.slice_q("x")] = -0.02
    segment = planning.Segment(np.array([[0.01]]), np.array([start, start]), np.array([1]))
    plan = planning.Plan("post", "box", qdsim.Options(), start, 0.01, 0.1, 1e-3, (segment,))
    world = planning.TransferOptions(timestep=1e-3)
    execution = Execution(plan, model, planning.second_order(model, "box", world), world)
    execution.last_q = np.array(model.default_q)
    execution.last_q[model.slice_q("x")] = -0.3
    execution.last_q[0] = 0.0
    commands = execution.go(segment)
    with pytest.raises(StopIteration) as ended:
        next(commands)
    assert ended.value.value is None


def test_an_object_just_above_its_support_is_not_carried_back() -> None:
    """A plate has carried the box by 12 cm, 3 mm above the table. There the box may be left."""
    model = qdsim.load("""<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
<body name="box" pos="0 0 .034"><freejoint/><geom type="box" size=".03 .03 .03" mass=".2"/></body>
<body name="plate" pos="0 0 .003"><joint name="x" type="slide" axis="1 0 0" range="-.5 .5"/>
<geom type="box" size=".02 .02 .001" mass=".1"/></body></worldbody>
<actuator><position joint="x" kp="300"/></actuator></mujoco>""")
    start, x = np.array(model.default_q), model.slice_q("x")
    inputs = np.linspace(0.01, 0.12, 12)[:, None]
    path = np.tile(start, (13, 1))
    path[1:, x] = inputs
    path[:, 0] = path[:, x.start]
    segment = planning.Segment(inputs, path, np.array([12]))
    tolerances = 0.02, 0.1, 1e-3
    plan = planning.Plan("plate", "box", qdsim.Options(h=0.1), path[-1], *tolerances, (segment,))
    world = planning.TransferOptions(timestep=1e-3)
    execution = Execution(plan, model, planning.second_order(model, "box", world), world)
    execution.mover = Planned(execution.plant, world.timestep, world.speed, plan.options)
    execution.run(segment)
    assert execution.plant.q[0] == pytest.approx(0.12, abs=5e-3)
    execution.drive(execution.let_go())
    assert execution.plant.q[0] == pytest.approx(0.12, abs=5e-3)
    assert execution.plant.q[x] == pytest.approx(0.12, abs=5e-3)
