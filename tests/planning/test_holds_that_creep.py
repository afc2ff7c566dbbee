"""Lifts where contacts creep: what strokes foresee, and what becomes of the object in MuJoCo with its default contacts."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Record
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.grasps.grip import Grip

HOLD = 2.0
# A box of 3 by 3 cm on a floor between two fingertips of 40 g, somewhat above its centre.
PINCH = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="box" pos="0 0 {half}"><freejoint/>
    <geom type="box" size=".03 .03 {half}" mass=".06"/></body>
  <body pos="-.0401 0 {half}"><joint name="lx" type="slide" axis="1 0 0"/>
    <joint name="lz" type="slide" axis="0 0 1"/><geom size=".01" pos="0 0 .004" mass=".04"/></body>
  <body pos=".0401 0 {half}"><joint name="rx" type="slide" axis="1 0 0"/>
    <joint name="rz" type="slide" axis="0 0 1"/><geom size=".01" pos="0 0 .004" mass=".04"/></body>
  </worldbody><actuator><position joint="lx" kp="500"/><position joint="lz" kp="500"/>
  <position joint="rx" kp="500"/><position joint="rz" kp="500"/></actuator></mujoco>"""


def pinched(half: float, up: float = 0.04, aside: float = 0.0) -> planning.Task:
    """The box, of twice this height, is to be lifted by 4 cm."""
    model = qdsim.load(PINCH.format(half=half))
    start, goal = np.array(model.default_q), np.array(model.default_q)
    goal[model.slice_q("box").start + 2] += up
    goal[model.slice_q("box").start] += aside
    return planning.Task(
        name="lift",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.02),
        start=start,
        goal=goal,
        object="box",
        lower=np.array([-0.1, -0.1, 0.0, -0.3, -0.3, -0.3]),
        upper=np.array([0.1, 0.1, up + 0.1, 0.3, 0.3, 0.3]),
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        sampler=planning.SurfaceSampler("box"),
    )


@pytest.mark.parametrize(("half", "stays"), [(0.02, False), (0.08, True)])
def test_strokes_foresee_what_creeps_out_of_the_fingers(half: float, stays: bool) -> None:
    """Both boxes arrive at their goal. The low one then leaves the fingers, which slide along it by some 20 mm/s."""
    task = pinched(half)
    creeping = task.options.replace(contacts="mujoco")
    planner = planning.StrokePlanner(task, plant=creeping, hold=HOLD)
    stroke = planner.stroke(task.start, 0.0)
    assert task.reached(stroke.segment.end)
    assert (planner.best(task.start) is not None) == stays
    assert planner.slips == (not stays)
    planner.foreseen = True
    left = planner.best(task.start)
    assert left is not None and left.stays == stays
    rigid = planning.StrokePlanner(task, hold=HOLD)
    assert rigid.best(task.start) is not None and rigid.slips == 0
    assert _held_in_mujoco(task, stroke.segment) == stays


def test_what_is_carried_on_the_way_has_to_stay_in_the_fingers_as_well() -> None:
    """Set down after two seconds in the air the box is nearer to a goal that is far up and aside, but it creeps out of
    the fingers before that."""
    task = pinched(0.02, up=0.3, aside=0.06)
    rigid, creeping = (
        planning.StrokePlanner(
            task,
            planning.GaitOptions(steps=24),
            plant=task.options.replace(contacts=contacts),
            hold=HOLD,
        )
        for contacts in ("rigid", "mujoco")
    )
    stroke = rigid.best(task.start)
    assert stroke is not None and stroke.gain > 2e-3 and not task.reached(stroke.segment.end)
    assert stroke.segment.end[task.space.q][2] > 0.06
    assert creeping.best(task.start) is None and creeping.slips == 0


def _held_in_mujoco(task: planning.Task, segment: planning.Segment) -> bool:
    """Return whether two fingers still hold the box at the goal after they have lifted it and held it."""
    world = planning.TransferOptions(contacts="default", timestep=1e-3)
    model = task.model
    plant = Plant(model, task.space, second_order(model, "box", world), world, compensated=True)
    plant.reset(task.start)
    grip = Grip(model, "box", task.length)
    hand = Hand(plant, grip, world)
    hand.rest(plant.q)

    def drive(commands: Commands[object]) -> object:
        while True:
            try:
                plant.advance(plant.within(next(commands)))
            except StopIteration as end:
                return end.value

    assert drive(hand.close())
    drive(hand.follow(Schedule(model, segment, world.speed, world.timestep), Record(plant), 0.0))
    drive(hand.hold(segment.end, HOLD, 0))
    return grip.touching(plant.q) == 2 and task.reached(plant.q)


def test_an_executor_says_that_no_grasp_holds() -> None:
    """And makes no plans, which would end in such grasps."""
    task = pinched(0.02)
    world = planning.TransferOptions(contacts="default", timestep=1e-3)
    options = planning.ExecutorOptions(routes=("strokes", "new plan"), seconds=5.0)
    few = planning.GaitOptions(candidates=2)
    executor = planning.Executor(task, world=world, options=options, planner=few)
    report = executor.run()
    assert report.outcome == "no stroke found" and report.plans == 0
    assert report.reason.startswith("the contacts creep, and none of the grasps")
    high = planning.Executor(pinched(0.08), world=world, options=options, planner=few)
    assert high.run().reached
