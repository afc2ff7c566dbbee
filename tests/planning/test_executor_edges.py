"""What an executor does where something is amiss: choices, grips, samples, motions that are not found, bad answers."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import mujoco
import numpy as np
import pytest
from test_executor import BRIEF, PUSHER, WORLD, Fake, push_plan, push_task

import qdsim
from qdsim import planning
from qdsim.array_type import Array
from qdsim.planning.execution import execution
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.motion.motion import MotionError

QUICK = WORLD.replace(timestep=2e-3, control_period=0.02)
PINCH = """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    {floor}
    <body name="box" pos="0 0 0.1"><freejoint name="box"/>
      <geom type="box" size="0.03 0.03 0.03" mass="0.2"/></body>
    <body name="left" pos="-0.0395 0 0.1">
      <joint name="lx" type="slide" axis="1 0 0"/><joint name="lz" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.01 0.015 0.015" mass="0.1"/></body>
    <body name="right" pos="0.0395 0 0.1">
      <joint name="rx" type="slide" axis="1 0 0"/><joint name="rz" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.01 0.015 0.015" mass="0.1"/></body>
  </worldbody>
  <actuator>
    <position name="lx" joint="lx" kp="1000"/><position name="lz" joint="lz" kp="1000"/>
    <position name="rx" joint="rx" kp="1000"/><position name="rz" joint="rz" kp="1000"/>
  </actuator>
</mujoco>"""


def pinch_task(up: float, floor: str = "") -> planning.Task:
    """A box between two fingers, in the air or on a floor, to be lifted."""
    model = qdsim.load(PINCH.format(floor=floor))
    task = planning.Task(
        name="lift",
        model=model,
        options=qdsim.Options(h=0.05, margin=0.02),
        start=model.default_q,
        goal=model.default_q,
        object="box",
        lower=-0.1 * np.ones(6),
        upper=0.1 * np.ones(6),
        length=0.03,
        start_tolerance=2e-3,
        position_tolerance=3e-3,
        rotation_tolerance=0.1,
    )
    return task.replace(goal=task.with_object(task.start, [0, 0, up, 0, 0, 0]))


# -------------------------------------------------------------------- the choice


class Guess:
    """A controller that says what it is told to."""

    period = 0.05

    def __init__(self, predicted: float) -> None:
        self._predicted, self.asked = predicted, 0

    def begin(self, track: Track) -> None: ...

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        return u_last, ""

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        self.asked += 1
        return self._predicted


@pytest.mark.parametrize(
    ("guesses", "without", "chosen"),
    [
        ((0.4, 0.0, 0.0), set(), "planned"),  # good enough: the others are not asked
        ((2.0, 1.8, 1.9), set(), "planned"),  # not worse by the margin
        ((2.0, 1.4, 1.5), set(), "mpc"),
        ((9.0, np.inf, 1.5), set(), "sampling"),
        ((0.4, 2.0, 3.0), {"planned"}, "mpc"),
        ((np.inf, np.nan, np.inf), set(), None),
        ((np.nan, 1.0, 0.9), set(), "mpc"),
        ((0.4, 0.4, 0.4), {"planned", "mpc", "sampling"}, None),
    ],
)
def test_controllers_are_chosen_by_what_they_predict(
    guesses: tuple[float, ...], without: set[str], chosen: str | None
) -> None:
    task = push_task()
    options = planning.ExecutorOptions(controllers=("planned", "mpc", "sampling"))
    executor = planning.Executor(task, push_plan(task), world=WORLD, options=options)
    known = [Guess(value) for value in guesses]
    controllers = executor._controllers
    controllers._made = dict(zip(("planned along", "mpc along", "sampling along"), known))  # type: ignore[arg-type]
    track = executor._routes.track(push_plan(task).segments[0])
    found = controllers.choose(track, task.hold(task.start), without)
    assert (found and found.name) == chosen
    if guesses[0] == 0.4 and not without:
        assert [guess.asked for guess in known] == [1, 0, 0]


def idle(q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
    return u_last


def push(q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
    return u_last + np.clip(u_plan - u_last, -5e-3, 5e-3)


@pytest.mark.parametrize(
    ("controllers", "tried"), [((idle, push), ["idle", "push"]), ((idle, "planned"), ["planned"])]
)
def test_a_controller_that_gets_nowhere_makes_room(controllers: Any, tried: list[str]) -> None:
    """After its try where nobody can say what it will do; else what is predicted to do better comes first."""
    task = push_task()
    options = BRIEF.replace(controllers=controllers)
    report = planning.Executor(task, push_plan(task), world=WORLD, options=options).run()
    assert report.reached, str(report)
    assert [edge.controller for edge in report.edges] == tried
    assert report.edges[-1].ended == "arrived"
    assert len(tried) == 1 or "no progress" in report.edges[0].ended


def test_planned_commands_go_no_faster_than_they_may() -> None:
    """Also to a plan that has gone on while another controller did nothing: thrown at the box the finger knocks it
    away."""
    task = push_task()
    executor = planning.Executor(task, push_plan(task), world=WORLD, options=BRIEF)
    track = executor._routes.track(push_plan(task).segments[0])
    track.phase = 0.8
    steering = executor._controllers._steering("planned", track)
    assert steering is not None
    steering.begin(track)
    u, fault = steering.command(task.start, np.zeros(3), np.zeros(1))
    assert not fault and u[0] == pytest.approx(WORLD.speed * steering.period)


def test_an_object_ahead_of_its_way_is_caught_up_with() -> None:
    """The phase goes on with the clock where that brings it nearer to the object, and stays where it has to wait."""
    task = push_task()
    executor = planning.Executor(task, push_plan(task), world=WORLD, options=BRIEF)
    for ahead, arrives in ((0.06, True), (0.0, False)):
        track = executor._routes.track(push_plan(task).segments[0])
        q = task.with_object(task.start, [ahead, 0.0])
        count = round(track.duration / 0.05) + 1
        went = [track.advance(q, 0.05) for _ in range(count)]
        off = track.far(q, track.pose(track.phase))
        assert went[0] and off <= 3.0 + 0.2
        assert (track.far(task.start, track.pose(track.phase)) > 6.0) == arrives


def test_a_command_that_is_not_finite_is_never_sent() -> None:
    """The controller is given up, also where one of a transfer's plans does so; the robot goes by the plan."""
    robot = Fake(push_task())
    report = robot.run(BRIEF.replace(controllers=(lambda *_: np.array([np.nan]),)))
    assert report.outcome == "missed" and "not finite" in report.edges[0].ended, str(report)
    assert all(u.shape == (1,) and np.isfinite(u).all() for u in robot.sent)
    task = push_task()
    told = planning.transfer(push_plan(task), task, WORLD, controller=lambda *_: np.array([np.inf]))
    assert told.reached and told.segments[0].controller_failures > 0


@pytest.mark.parametrize(
    ("answer", "error"), [(np.zeros(3), ValueError), ("left", TypeError), (None, TypeError)]
)
def test_a_command_of_the_wrong_kind_is_an_error_that_says_so(
    answer: Any, error: type[Exception]
) -> None:
    robot = Fake(push_task())
    with pytest.raises(error, match="controller: its command"):
        robot.run(BRIEF.replace(controllers=(lambda *_: answer,)))
    assert len(robot.sent) == 1 and np.isfinite(robot.sent[0]).all()  # told to stay
    with pytest.raises(error, match="controller: its command"):
        planning.transfer(push_plan(robot.task), robot.task, WORLD, controller=lambda *_: answer)


def test_the_fault_of_a_controller_is_not_hidden() -> None:
    def broken(q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
        if q[0] > 0.03:
            raise ZeroDivisionError("no gain")
        return u_plan

    robot = Fake(push_task())
    with pytest.raises(ZeroDivisionError, match="no gain"):
        robot.run(BRIEF.replace(controllers=(broken,)))
    assert np.array_equal(robot.sent[-1], robot.sent[-2])  # the robot is told to stay


# -------------------------------------------------------------------- other controllers than the plan's


@pytest.mark.long
def test_a_grip_lifts_and_holds_against_gravity() -> None:
    """Without a plan, straight up by two fingers, which hold the box at the goal for as long as is asked."""
    task = pinch_task(0.01)
    options = planning.ExecutorOptions(controllers=("grip",), hold=0.6, plans=0)
    executor = planning.Executor(task, world=QUICK, options=options)
    report = executor.run()
    assert report.reached and report.held >= 0.6, str(report)
    assert {edge.controller for edge in report.edges} == {"grip"}
    assert report.position_error <= 3e-3
    u = (
        executor._execution.command
    )  # the springs bear the box: 0.2 kg by friction, up to what contacts carry
    q = executor._plant.q
    pull = 1000.0 * (u - task.model.command_from(q))
    assert pull[1] + pull[3] == pytest.approx(0.2 * 9.81, rel=0.2)


def test_samples_bring_it_there_without_a_plan() -> None:
    task = push_task()
    task = task.replace(goal=task.with_object(task.start, [0.03, 0.0]))
    options = planning.ExecutorOptions(controllers=("sampling",), hold=0.2, samples=16, plans=0)
    robot = Fake(task)
    reader = planning.Robot(read=robot.read, send=robot.send, period=0.1, patience=None)
    report = planning.Executor(task, plant=reader, options=options).run()
    assert report.reached, str(report)
    assert [edge.controller for edge in report.edges] == ["sampling"]


# -------------------------------------------------------------------- holding


@pytest.mark.long
def test_it_begins_again_where_the_object_leaves() -> None:
    """The box slips through the fingers by two tolerances while it is held: it is lifted once more."""
    task, slips = pinch_task(0.01), []

    def slip(state: planning.ExecutorState) -> None:
        if state.doing == "hold" and not slips:
            slips.append(state.seconds)
            executor._plant.data.qpos[2] -= 6e-3  # type: ignore[attr-defined]

    options = planning.ExecutorOptions(controllers=("grip",), hold=0.5, plans=0)
    executor = planning.Executor(task, world=QUICK, options=options, watch=slip)
    report = executor.run()
    assert slips and report.reached and report.entries == 2, str(report)
    assert report.held >= 0.5 and task.reached(executor._plant.q)
    assert len(report.edges) == 2


def test_what_is_there_already_is_held() -> None:
    task = push_task()
    there = task.replace(goal=task.start)
    report = planning.Executor(there, world=WORLD, options=BRIEF).run()
    assert report.reached and report.edges == () and report.position_error < 1e-6


# -------------------------------------------------------------------- motions


def other_side(task: planning.Task) -> planning.Plan:
    """After the push, one from the other side: the finger has one slide, and the box is in its way."""
    first = push_plan(task).segments[0]
    start = np.array(first.end)
    start[2] = first.end[0] + 0.19
    back = planning.Segment(np.array([[start[2] - 0.05]]), np.array([start, start]), np.array([1]))
    return planning.Plan(
        "two",
        "box",
        task.options,
        task.with_object(task.start, [0.1, 0.05]),
        0.01,
        0.1,
        1e-3,
        (first, back),
    )


@pytest.mark.parametrize("missing", [True, False])
def test_no_motion_is_an_outcome_and_no_teleport(
    missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OMPL is not there, or finds nothing: it says so, and the robot stays on its side of the box."""

    def none(*_: Any) -> Any:
        raise MotionError("no motion found in 2 s")

    if missing:
        for module in ("ompl", "ompl.base", "ompl.geometric", "ompl.util"):
            monkeypatch.setitem(sys.modules, module, None)
    else:
        monkeypatch.setattr(execution, "connect", none)
    robot = Fake(push_task())
    reader = planning.Robot(read=robot.read, send=robot.send, period=0.05, patience=None)
    plan = other_side(robot.task)
    report = planning.Executor(robot.task, plan, reader, options=BRIEF).run()
    assert report.outcome == "no motion found", str(report)
    assert "no motion found" in report.edges[-1].ended
    assert ("ompl" in report.edges[-1].ended) == missing
    assert robot.q[2] - 0.1 < robot.q[0]  # the tip's slide begins 0.1 m behind the box
    steps = np.diff([float(u[0]) for u in robot.sent])
    assert np.abs(steps).max() < 0.02  # of a range of 0.8


# -------------------------------------------------------------------- plants


@pytest.mark.parametrize("hold", [True, False])
def test_what_falls_is_lost(hold: bool) -> None:
    """Open fingers in the air: the box falls, whether anything is tried or not, and time stops where it is gone."""
    task = pinch_task(0.01)
    start = np.array(task.start)
    start[task.model.slice_q("lx")] -= 0.05
    start[task.model.slice_q("rx")] += 0.05
    task = task.replace(start=start)
    segment = planning.Segment(
        np.tile(task.hold(start), (20, 1)), np.tile(start, (21, 1)), np.array([20])
    )
    plan = planning.Plan("wait", "box", task.options, task.goal, 3e-3, 0.1, 1e-3, (segment,))
    report = planning.Executor(task, plan if hold else None, world=QUICK, options=BRIEF).run()
    assert report.outcome == "lost", str(report)
    assert report.seconds < 0.5 and report.position_error < 0.5


def test_a_simulator_that_diverges_ends_it_where_things_were() -> None:
    """MuJoCo begins anew from its defaults where numbers blow up: that is no answer, and not where the box is."""
    task = push_task()
    mj = mujoco.MjModel.from_xml_string(PUSHER)
    mj.opt.timestep, mj.opt.integrator = 2e-3, mujoco.mjtIntegrator.mjINT_EULER
    plan = push_plan(task)

    def blow(q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
        if q[0] > 0.03:
            executor._plant.data.qvel[:] = 1e12  # type: ignore[attr-defined]
        return u_plan

    executor = planning.Executor(
        task, plan, mj, world=WORLD, options=BRIEF.replace(controllers=(blow,))
    )
    report = executor.run()
    assert report.outcome == "no answer" and "diverged" in report.reason, str(report)
    assert report.position_error == pytest.approx(0.07, abs=5e-3)


def test_a_robot_that_takes_no_commands_ends_it() -> None:
    robot = Fake(push_task())

    def deaf(u: Array) -> None:
        if robot.reads > 5:
            raise ConnectionError("no route")
        Fake.send(robot, u)

    reader = planning.Robot(read=robot.read, send=deaf, period=0.05, patience=None)
    report = planning.Executor(robot.task, push_plan(robot.task), reader, options=BRIEF).run()
    assert report.outcome == "no answer" and "no route" in report.reason
    assert "could not be told to stay" in report.reason


def test_an_interrupt_leaves_the_robot_held() -> None:
    def stop(q: Array, reads: int) -> Array:
        if reads > 5:
            raise KeyboardInterrupt
        return q

    robot = Fake(push_task(), stop)
    reader = planning.Robot(read=robot.read, send=robot.send, period=0.05, patience=None)
    with pytest.raises(KeyboardInterrupt):
        planning.Executor(robot.task, push_plan(robot.task), reader, options=BRIEF).run()
    assert np.array_equal(robot.sent[-1], robot.sent[-2])


# -------------------------------------------------------------------- strokes


@pytest.mark.long
def test_fingers_that_can_hold_take_strokes_first() -> None:
    """A plan that would push is there if strokes fail: the disc is turned between two fingers, and held by them."""
    whole = qdsim.systems.load("planar_hand").tasks["half_turn"]
    task = whole.replace(goal=whole.with_object(whole.start, [0.0, 0.0, 0.4]))
    hold = planning.Segment(
        np.tile(task.hold(task.start), (3, 1)), np.tile(task.start, (4, 1)), np.array([3])
    )
    plan = planning.Plan("wait", "disc", task.options, task.goal, 0.02, 0.05, 1e-3, (hold,))
    options = planning.ExecutorOptions(hold=0.3, plans=0)
    world = planning.TransferOptions(timestep=1e-3)
    states: list[str] = []
    executor = planning.Executor(
        task, plan, world=world, options=options, watch=lambda state: states.append(state.doing)
    )
    report = executor.run()
    assert report.reached, str(report)
    assert {(edge.edge, edge.controller) for edge in report.edges} == {("stroke", "grip")}
    assert states[:4] == ["next", "approach", "close", "move"]
    assert states[-2:] == ["hold", "stopped"]
    assert report.position_error < 5e-3 and report.rotation_error < np.radians(2.0)


@pytest.mark.long
def test_the_ball_is_turned_by_strokes_and_held() -> None:
    whole = qdsim.systems.load("allegro_sphere").tasks["half_turn"]
    turn = np.array([0.0, 0.0, 0.0, 0.1, 0.2, 0.4])
    task = whole.towards(whole.with_object(whole.start, turn))
    world = planning.TransferOptions(timestep=1e-3, control_period=0.02)
    report = planning.Executor(task, world=world).run()
    assert report.reached and report.held >= 2.0, str(report)


def test_a_plan_is_taken_up_where_the_object_is() -> None:
    """Pushed half of the way already, the object is taken along the later of two segments."""
    task = push_task()
    whole = push_plan(task).segments[0]
    parts = [
        planning.Segment(whole.inputs[a:b], whole.configurations[a : b + 1], np.array([b - a]))
        for a, b in ((0, 40), (40, 59))
    ]
    plan = dataclasses.replace(push_plan(task), segments=tuple(parts))
    robot = Fake(task)
    robot.q = np.array(parts[1].start)
    reader = planning.Robot(read=robot.read, send=robot.send, period=0.05, patience=None)
    report = planning.Executor(task, plan, reader, options=BRIEF).run()
    assert report.reached, str(report)
    assert [edge.edge for edge in report.edges] == ["segment 2 of 2"]


def test_a_slow_joint_comes_to_touch_without_a_push() -> None:
    """Its spring is so soft for its mass that it trails by 0.2 s; where it slows down at once it swings on by 15 mm."""
    text = PUSHER.replace('mass="0.1"', 'mass="2"').replace('range="-0.3', 'range="-0.6')
    model = qdsim.load(text.replace('pos="-0.1 0 0"', 'pos="-0.0701 0 0"'))
    task = push_task().replace(model=model)
    start = np.array(task.start)
    start[model.slice_q("t")] = -0.4
    waits = planning.Segment(np.zeros((0, 1)), start[None], np.zeros(0, dtype=np.int64))
    push = push_plan(task)
    plan = dataclasses.replace(push, segments=(waits, *push.segments))
    left: list[float] = []
    planning.Executor(
        task.replace(start=start),
        plan,
        world=WORLD,
        options=BRIEF.replace(seconds=5.0),
        watch=lambda state: left.append(state.error[0]) if state.doing == "move" else None,
    ).run()
    assert left[0] == pytest.approx(0.1, abs=5e-4)


@pytest.mark.parametrize("limit", [(-4.0, 4.0), (-1000.0, 4.0)])
def test_motions_are_no_faster_than_force_limits_allow(
    limit: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Critical damping holds 2 kg at 200 N/m back by 40 N s/m: 4 N are spent at 0.1 m/s."""
    text = PUSHER.replace('mass="0.1"', 'mass="2"').replace('range="-0.3', 'range="-0.6')
    text = text.replace('kp="200"', f'kp="200" forcerange="{limit[0]} {limit[1]}"')
    model = qdsim.load(text.replace('pos="-0.1 0 0"', 'pos="-0.0701 0 0"'))
    task = push_task().replace(model=model)
    start = np.array(task.start)
    tip = model.slice_q("t")
    start[tip] = -0.4
    waits = planning.Segment(np.zeros((0, 1)), start[None], np.zeros(0, dtype=np.int64))
    push = push_plan(task)
    plan = dataclasses.replace(push, segments=(waits, *push.segments))
    off: list[float] = []

    def steps(self: execution.Execution, motion: Any) -> Any:
        for k, u in enumerate(along(self, motion)):
            yield u
            seconds = min((k + 1) * WORLD.timestep, motion.duration)
            off.append(float(np.abs(self.plant.q[tip] - motion.at([seconds])[0, tip]).max()))

    along = execution.Execution._along
    monkeypatch.setattr(execution.Execution, "_along", steps)
    options = BRIEF.replace(seconds=8.0)
    planning.Executor(task.replace(start=start), plan, world=WORLD, options=options).run()
    assert off and max(off) < 3e-3


def lift_plan(task: planning.Task, most: float) -> planning.Plan:
    """Two fingers that press the box and lift it."""
    fingers = [task.model.slice_q(name).start for name in ("lz", "rz")]
    press = np.array([0.01, 0.0, -0.01, 0.0])
    path, inputs = [task.start], []
    for up in np.linspace(0.0, most, 9)[1:]:
        q = task.with_object(task.start, [0, 0, up, 0, 0, 0])
        q[fingers] += up
        path.append(q)
        inputs.append(np.asarray(task.model.command_from(q)) + press)
    segment = planning.Segment(np.array(inputs), np.array(path), np.array([8]))
    return planning.Plan("lift", "box", task.options, task.goal, 3e-3, 0.1, 1e-3, (segment,))


def test_what_hangs_near_its_goal_is_not_let_go() -> None:
    """A plan ends 4 mm below the goal, whose tolerance is 3 mm, with the box in the air between two fingers: it would
    fall before any stroke."""
    task = pinch_task(0.02, '<geom type="plane" size="1 1 1" pos="0 0 0.07"/>')
    task = task.replace(sampler=lambda model, q, rng: np.array(task.start))
    plan = lift_plan(task, 0.016)
    options = planning.ExecutorOptions(hold=0.3, routes=("plan", "strokes", "straight"), seconds=15)
    report = planning.Executor(task, plan, world=QUICK, options=options).run()
    assert report.reached, str(report)
    assert all("stroke" not in edge.edge for edge in report.edges), str(report)


def test_fingers_lead_the_object_to_the_goal_where_a_plan_ends_at_its_edge() -> None:
    """The plan ends 2.9 mm below the goal, whose tolerance is 3 mm."""
    task = pinch_task(0.0189, '<geom type="plane" size="1 1 1" pos="0 0 0.07"/>')
    plan = lift_plan(task, 0.016)
    assert 0.9 < task.off(plan.end) < 1.0
    options = planning.ExecutorOptions(
        hold=0.3, controllers=("grip",), routes=("plan",), seconds=15
    )
    report = planning.Executor(task, plan, world=QUICK, options=options).run()
    assert report.reached and report.position_error < 1e-3, str(report)
