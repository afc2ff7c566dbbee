"""What an executor goes by: contacts of its predictions, when fingers let go, where strokes may end, pace of pushes."""

from __future__ import annotations

import numpy as np
import pytest
from test_executor import push_task
from test_executor_edges import PINCH, pinch_task
from test_transfer import table_task

import qdsim
from qdsim import planning, systems
from qdsim.array_type import Array
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Record, drive
from qdsim.planning.execution.loops.pursuit import pursue
from qdsim.planning.execution.loops.steering import Straight
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.simulators import contacts_of
from qdsim.planning.execution.strokes import Stroke, StrokePlanner
from qdsim.planning.grasps.grip import Grip, GripOptions
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.tracking.arrival import Arrival

QUICK = planning.TransferOptions(timestep=2e-3, control_period=0.02)


@pytest.mark.parametrize("contacts", ["stiff", "soft", "default"])
def test_predictions_creep_where_the_world_does(contacts: str) -> None:
    """In MuJoCo's default contacts, unless the friction law of the steps cannot; nowhere else."""
    world = planning.TransferOptions(contacts=contacts)  # type: ignore[arg-type]
    creeps = "mujoco" if contacts == "default" else "rigid"
    assert contacts_of(world, "mujoco", qdsim.Options()).contacts == creeps
    assert contacts_of(world, None, qdsim.Options()).contacts == creeps
    assert contacts_of(world, "qdsim", qdsim.Options()).contacts == "rigid"
    pyramid = qdsim.Options(friction="pyramid")
    assert contacts_of(world, "mujoco", pyramid) == pyramid
    task, plan = table_task()
    made = planning.Executor(task, plan, world=world)._controllers
    assert made.task.options.contacts == made.plan.options.contacts == creeps
    assert task.options.contacts == plan.options.contacts == "rigid"


@pytest.mark.parametrize(("floor", "goes_on"), [(True, False), (False, True)])
def test_a_finger_that_comes_off_ends_the_hold_of_what_something_carries(
    floor: bool, goes_on: bool
) -> None:
    """On a floor it is better set down; in the air it is held on."""
    ground = '<geom type="plane" size="1 1 1" pos="0 0 0.07"/>' if floor else ""
    model = qdsim.load(PINCH.format(floor=ground))
    space = planning.ObjectSpace(model, "box")
    plant = Plant(model, space, second_order(model, "box", QUICK), QUICK, compensated=True)
    plant.reset(model.default_q)
    hand = Hand(plant, Grip(model, "box", 0.03, GripOptions(period=0.02)), QUICK)
    hand.rest(plant.q)

    def drive(commands: Commands[bool]) -> bool:
        while True:
            try:
                plant.advance(next(commands))
            except StopIteration as end:
                return bool(end.value)

    assert drive(hand.close())
    pose = plant.q
    assert drive(hand.hold(pose, 0.1, fingers=2))
    off = plant.q
    off[model.slice_q("lx")] -= 0.05
    plant.reset(off)
    assert drive(hand.hold(pose, 0.04, fingers=2)) == goes_on


FINGER = """<body name="{s}u" pos="{x} 0 0.2" euler="0 0 {turn}"><joint name="{s}u" axis="0 1 0" range="-2 2"/>
  <geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.1" mass="{heavy}" contype="0" conaffinity="0"/>
  <body pos="0 0 -0.1"><joint name="{s}l" axis="0 1 0" range="-2 3"/>
    <geom type="sphere" size="0.012" pos="0 0 -0.08" mass="0.02"/></body></body>"""


@pytest.mark.parametrize("heavy", [0.02, 2.0])
def test_fingers_close_whatever_their_links_weigh(heavy: float) -> None:
    """Fingertips go 5 mm along a line by two joints that turn against each other, at 25 mm/s, and press some
    time after that: where a heavy upper link came late, they would go aside."""
    fingers = "".join(
        FINGER.format(s=s, x=x, turn=turn, heavy=heavy)
        for s, x, turn in (("a", 0.06, 0), ("b", -0.06, np.pi))
    )
    springs = "".join(
        f'<position name="{j}" joint="{j}" kp="3"/>' for j in ("au", "al", "bu", "bl")
    )
    model = qdsim.load(
        f"""<mujoco><compiler angle="radian"/><worldbody><geom type="plane" size="1 1 1"/>
        <body name="box" pos="0 0 0.03"><freejoint name="box"/>
          <geom type="box" size="0.03 0.03 0.03" mass="0.1"/></body>{fingers}</worldbody>
        <actuator>{springs}</actuator></mujoco>"""
    )
    q = np.array(model.default_q)
    for s in "ab":
        q[model.slice_q(f"{s}u")], q[model.slice_q(f"{s}l")] = -0.4, 1.1
    space = planning.ObjectSpace(model, "box")
    plant = Plant(model, space, second_order(model, "box", QUICK), QUICK, compensated=True)
    plant.reset(q)
    grip = Grip(model, "box", 0.03, GripOptions(period=0.02))
    hand = Hand(plant, grip, QUICK)
    hand.rest(plant.q)
    commands = hand.close()
    with pytest.raises(StopIteration) as end:
        while True:
            plant.advance(next(commands))
    assert end.value.value and grip.touching(plant.q) == 2
    assert plant.steps * plant.timestep < 0.3 + SETTLE
    assert space.errors(plant.q, q)[0] < 2e-3


@pytest.mark.parametrize("told", [True, False])
def test_fingers_close_where_the_grasp_has_them(told: bool) -> None:
    """Motions end some millimetres from a grasp, aside of it, too, and fingers touch within 1 mm. A finger that is
    almost stretched would bend the other way where it closes aside."""
    model = qdsim.load(PINCH.format(floor='<geom type="plane" size="1 1 1" pos="0 0 0.07"/>'))
    plant = Plant(
        model,
        planning.ObjectSpace(model, "box"),
        second_order(model, "box", QUICK),
        QUICK,
        compensated=True,
    )
    grasp = np.array(model.default_q)
    beside = grasp.copy()
    beside[model.slice_q("lx")] -= 4e-3
    beside[model.slice_q("rx")] += 4e-3
    lifts = [model.slice_q(name).start for name in ("lz", "rz")]
    beside[lifts] += 4e-3
    plant.reset(beside)
    hand = Hand(plant, Grip(model, "box", 0.03, GripOptions(period=0.02)), QUICK)
    hand.rest(plant.q)
    commands = hand.close(grasp if told else None)
    with pytest.raises(StopIteration) as end:
        while True:
            plant.advance(next(commands))
    assert end.value.value
    off = np.abs(plant.q[lifts] - grasp[lifts])
    assert off.max() < 2e-3 if told else off.min() > 3e-3, off


def lifted(period: float, lag: float, known: float) -> tuple[object, Record, float]:
    """Carry a box up by 2 cm at 5 cm/s, by joints that trail their springs by ``lag`` seconds and are known to do so by
    ``known``; return how it ended, the record, and how far the box ends from its goal, m."""
    model = qdsim.load(PINCH.format(floor=""))
    world = QUICK.replace(timestep=1e-3, speed=0.1)
    space = planning.ObjectSpace(model, "box")
    plant = Plant(model, space, second_order(model, "box", world), world, compensated=True)
    held = model.actuated_v
    plant.mj.dof_damping[held] = lag * np.asarray(model.parameters.actuator_stiffness)
    plant.lag[:] = known
    plant.reset(model.default_q)
    hand = Hand(plant, Grip(model, "box", 0.03, GripOptions(period=period)), world)
    hand.rest(plant.q)

    def drive(commands: Commands[object]) -> object:
        while True:
            try:
                plant.advance(next(commands))
            except StopIteration as end:
                return end.value

    assert drive(hand.close())
    here = plant.q
    up = hand.grip.upwards(here, 0.02)
    assert up is not None
    ways = [np.zeros(model.nv), np.zeros(model.nv)]
    ways[1][space.v] = up
    path = np.array([model.integrate(here, way) for way in ways])
    inputs = model.command_from(path[1:])
    schedule = Schedule(model, planning.Segment(inputs, path, np.array([1])), 0.1, 1e-3)
    schedule.times[:] = 0.0, 0.4
    record = Record(plant)
    ended = drive(hand.follow(schedule, record, 0.1))
    return ended, record, space.errors(plant.q, path[1])[0]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("period", [0.01, 0.05])
@pytest.mark.parametrize("lag", [0.01, 0.2])
def test_what_is_held_goes_its_way_whatever_the_period_and_the_joints(
    period: float, lag: float
) -> None:
    """It arrives on time, and is never further behind than it goes within a period and a half, or 1 mm. (Joints that
    trail their springs by 0.2 s would be 10 mm behind.)"""
    ended, record, off = lifted(period, lag, lag)
    assert ended == "followed" and off < 5e-4
    space = planning.ObjectSpace(record.world.model, "box")
    behind = [space.errors(s.executed, s.planned)[0] for s in record.samples]
    assert max(behind) < max(1.5 * 0.05 * period, 1e-3), max(behind)


def test_the_path_waits_for_what_is_held_by_slower_joints_than_known() -> None:
    """Joints that trail their springs by 0.4 s in place of 0.1 go at a quarter of the speed that they are told: by the
    clock the box would be 15 mm late after 0.4 s, and given up."""
    ended, record, off = lifted(0.02, 0.4, 0.1)
    assert ended == "followed" and off < 4e-3
    assert record.samples[-1].time > 0.6


def test_a_box_that_is_pushed_straight_stops_at_its_goal() -> None:
    """At a pace: pushed as fast as the quasi-dynamic model has it, it slides on in a world where it has inertia."""
    task, _ = table_task()
    q = np.array(task.start)
    q[0] = task.goal[0] - 0.02
    q[3] = q[0] + 0.02  # the finger touches it
    world = planning.TransferOptions(timestep=2e-3, support_friction=0.25, control_period=0.1)
    options = planning.ExecutorOptions(hold=0.3, controllers=("mpc",), routes=("straight",))
    near = task.towards(task.goal, start=q, start_tolerance=1e-3)
    report = planning.Executor(near, world=world, options=options).run()
    assert report.reached and len(report.edges) == 1, str(report)


def hand_task() -> planning.Task:
    return qdsim.systems.load("planar_hand").tasks["half_turn"]


def test_strokes_end_where_the_fingers_can_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest part, to a quarter of its steps; nothing where that is none."""
    task = hand_task()
    planner = StrokePlanner(task, planning.GaitOptions(), 0)
    shares = np.linspace(0.0, 1.0, 13)
    path = np.array([task.with_object(task.start, [0.0, 0.0, 0.6 * s]) for s in shares])
    segment = planning.Segment(np.zeros((12, task.model.nu)), path, np.array([12]))
    stroke = Stroke(segment, planner.distance(path[0]) - planner.distance(path[-1]))
    for good in (0, 1, 5, 11, 12):

        def leaves(q: Array, most: Array = path[good]) -> bool:
            return bool(task.space.difference(q, most)[2] <= 1e-9)

        monkeypatch.setattr(planner, "_leaves", leaves)
        found = planner.that_can_be_left(stroke)
        kept = 0 if found is None else found.segment.steps
        assert good - 3 < kept <= good or kept == good
        if found is not None:
            end = found.segment.end
            assert found.gain == pytest.approx(planner.distance(path[0]) - planner.distance(end))
    there = planner.task.replace(goal=path[-1])
    at_goal = StrokePlanner(there, planning.GaitOptions(), 0)
    monkeypatch.setattr(at_goal, "_leaves", lambda q: False)
    assert at_goal.that_can_be_left(stroke) is stroke


@pytest.mark.long
def test_fingers_at_their_limits_are_in_the_way_of_the_disc() -> None:
    """The left finger, folded to the limits of both joints, gets to no other grasp; opened it does."""
    pytest.importorskip("ompl")
    task = hand_task()
    planner = StrokePlanner(task, planning.GaitOptions(), 0)
    trapped = np.array([-0.1053, 0.4014, 1.383, -0.0161, -2.3835, 1.2959, 0.1448])
    assert not planner._leaves(trapped)
    assert planner._leaves(task.start)


def test_strokes_bear_the_friction_of_a_support() -> None:
    """Forces of two fingers balance a small one; where it is too large there is no stroke."""
    task, weight = hand_task(), StrokePlanner(hand_task()).grip.weight
    few = planning.GaitOptions(candidates=3, steps=6)

    def gain(share: float) -> float:
        def load(way: Array) -> Array:
            return -share * weight * way / max(float(np.linalg.norm(way)), 1e-12)

        found = StrokePlanner(task, few, 0, load=load).candidates(task.start, here=True)
        return max((stroke.gain for stroke in found), default=0.0)

    assert gain(0.0) > 0.01 and gain(0.1) > 0.01
    assert gain(20.0) < 1e-3


def test_the_ways_on_are_those_that_are_named() -> None:
    """Without new plans and without a plan nothing is left but the goal itself, or nothing at all."""
    task = push_task()
    task = task.replace(goal=task.with_object(task.start, [-0.1, 0.0]))  # it cannot be pulled
    world = planning.TransferOptions(timestep=2e-3, settle=0.1)
    for routes in (("plan",), ("strokes", "plan")):
        options = planning.ExecutorOptions(routes=routes)
        report = planning.Executor(task, world=world, options=options).run()
        assert report.outcome == "missed" and report.edges == (), str(report)
        assert report.seconds == pytest.approx(0.1)
    with pytest.raises(ValueError, match=r"^routes"):
        planning.ExecutorOptions(routes=("magic",))
    with pytest.raises(ValueError, match=r"^routes"):
        planning.ExecutorOptions(routes=())
    assert options.replace(routes=["plan"]).routes == ("plan",)  # type: ignore[arg-type]


TALL = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="box" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><joint name="tilt" axis="0 1 0"/>
    <geom type="box" size=".03 .03 .1" mass="1"/></body>
  <body name="finger" pos="-.041 0 .18"><joint name="push" type="slide" axis="1 0 0" range="-.2 1"/>
    <geom type="sphere" size=".01" mass=".1"/></body>
</worldbody><actuator><position joint="push" kp="2000"/></actuator></mujoco>"""


class Pushing:
    """A controller that goes on at 10 cm/s."""

    period, waits = 0.02, True

    def begin(self, track: Track) -> None: ...

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        return u_last + 0.1 * self.period, ""

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        return 0.0


@pytest.mark.parametrize("may_tip", [False, True])
def test_a_straight_way_ends_before_what_is_pushed_falls_over(may_tip: bool) -> None:
    """A box of 6 by 20 cm at friction 1 that is pushed at the top tips, and falls from atan(3 / 10) on. What a hand holds
    may tip."""
    model = qdsim.load(TALL)
    goal = np.array(model.default_q)
    goal[model.slice_q("x")] = 0.2
    space = planning.ObjectSpace(model, "box")
    plant = Plant(model, space, second_order(model, "box", QUICK), QUICK, compensated=True)
    plant.reset(model.default_q)
    tolerances = np.array([0.01, 0.05])
    track = Track(GoalSet(model, space, goal, None), tolerances, None, plant.q)
    ends = np.zeros(space.size)
    task = planning.Task(
        "push", model, qdsim.Options(), model.default_q, goal, "box", ends - 1.0, ends + 1.0
    )
    u, record = np.asarray(model.command_from(plant.q)), Record(plant)
    commands = pursue(plant, track, Pushing(), record, Arrival(task), u, 1.5, 0.5, may_tip)
    ended = drive(commands, plant.advance)
    assert (ended == "off its way: the object tips") == (not may_tip)
    assert (abs(plant.q[model.slice_q("tilt")][0]) < np.arctan(0.3)) == (not may_tip)


def test_a_straight_way_that_took_the_object_away_is_not_tried_again() -> None:
    task, _ = table_task()
    routes = planning.Executor(task)._routes
    for worse, misses in ((0.0, 1), (1.0, 2)):
        routes.missed.clear()
        routes._taken, routes._before = "straight", routes.far() - worse
        routes._judge()
        assert routes.missed == {"straight": misses}


@pytest.mark.parametrize(("lag", "slow"), [(0.005, False), (0.5, True)])
def test_joints_that_trail_far_behind_move_what_is_free_at_a_pace(lag: float, slow: bool) -> None:
    """Two arms whose joints followed their springs by 0.1 s threw a box by 13 cm in 0.4 s, straight to a goal in the
    air."""
    executor = planning.Executor(pinch_task(0.02))
    executor._plant.lag[:] = lag
    straight = executor._controllers._straight()
    assert isinstance(straight, Straight) and np.isfinite(straight._pace) == slow


@pytest.mark.parametrize(("most", "follows"), [(1.0, True), (0.03, False)])
def test_a_grip_that_cannot_follow_to_the_end_of_an_edge_is_not_trusted(
    most: float, follows: bool
) -> None:
    """The commands of the fingers end at 3 cm, the path of the box at 8 cm, after 1.6 s."""
    task = pinch_task(0.08)
    task = task.replace(command_upper=np.array([1.0, most, 1.0, most]))
    path = np.array([task.with_object(task.start, [0, 0, up, 0, 0, 0]) for up in (0.0, 0.08)])
    lifts = [task.model.slice_q(name).start for name in ("lz", "rz")]
    path[1, lifts] += 0.08
    segment = planning.Segment(task.model.command_from(path[1:]), path, np.array([1]))
    controllers = planning.Executor(task)._controllers
    schedule = Schedule(task.model, segment, 0.1, 1e-3)
    tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
    track = Track(task.goals, tolerances, schedule, task.start)
    gripping = controllers._gripping()
    gripping.begin(track)
    predicted = gripping.predicted(task.start, np.zeros(task.model.nv), task.hold(task.start))
    assert (predicted <= 1.0) == follows, predicted


def test_a_plan_that_begins_in_the_air_begins_at_once() -> None:
    """Fingers that hold an object may be apart from it as measured; a wait for it to fall would drop it."""
    model = qdsim.load(
        """<mujoco><worldbody>
        <body name="box" pos="0 0 1"><joint name="z" type="slide" axis="0 0 1"/>
          <geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
        <body name="hand" pos="0 0 0.92"><joint name="h" type="slide" axis="0 0 1" range="-1 1"/>
          <geom type="sphere" size="0.02" mass="0.1"/></body></worldbody>
        <actuator><position name="h" joint="h" kp="1000"/></actuator></mujoco>"""
    )
    start = np.zeros(2)
    task = planning.Task(
        name="lift",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05, gravity_on_actuated=False),
        start=start,
        goal=np.array([0.1, 0.0]),
        object="box",
        lower=np.array([-0.2]),
        upper=np.array([0.2]),
        length=0.05,
        position_tolerance=0.01,
        start_tolerance=np.inf,
    )
    heights = np.linspace(0.0, 0.1, 21)
    path = np.repeat(heights[:, None], 2, axis=1)
    segment = planning.Segment(heights[1:, None], path, np.array([20]))
    plan = planning.Plan("lift", "box", task.options, task.goal, 0.01, 0.1, np.inf, (segment,))
    state = {"q": start}  # the hand holds the box 1 cm above itself
    robot = planning.Robot(
        read=lambda: (state["q"], np.zeros(2)),
        send=lambda u: state.update(q=np.repeat(u, 2)),
        period=0.02,
        patience=None,
    )
    options = planning.ExecutorOptions(controllers=("planned",), hold=0.1, plans=0)
    report = planning.Executor(task, plan, robot, options=options).run()
    assert report.reached, str(report)
    assert report.motion.marks[0] == (0.0, "move") and len(report.edges) == 1


def test_new_plans_take_grasps_on_surfaces_where_a_tasks_own_lead_nowhere() -> None:
    """The box has to be pushed back from its other side, and the task's sampler knows no grasp there."""
    whole = systems.load("planar_pushing").tasks["move_back"]
    task = whole.replace(sampler=lambda model, q, rng: None)
    options = planning.ExecutorOptions(routes=("new plan",), plans=4, seconds=1.0)
    report = planning.Executor(task, options=options).run()
    assert report.outcome == "out of time" and report.plans > 2, str(report)
