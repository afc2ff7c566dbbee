"""The executor brings objects to goals in several plants, and stops with a report and a held robot where one fails."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.array_type import Array

PUSHER = """<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="box"><joint name="bx" type="slide" axis="1 0 0"/><joint name="by" type="slide" axis="0 1 0"/>
      <geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
    <body name="tip" pos="-0.1 0 0"><joint name="t" type="slide" axis="1 0 0" range="-0.3 0.5"/>
      <geom type="sphere" size="0.02" mass="0.1"/></body>
  </worldbody>
  <actuator><position name="t" joint="t" kp="200"/></actuator>
</mujoco>"""
WORLD = planning.TransferOptions(timestep=2e-3, speed=0.1, support_friction=0.05)
BRIEF = planning.ExecutorOptions(controllers=("planned",), hold=0.3, stall=0.5, plans=0)


def push_task() -> planning.Task:
    """A box that a finger behind it pushes straight ahead, on a plane that is not part of the model."""
    model = qdsim.load(PUSHER)
    task = planning.Task(
        name="push",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=model.default_q,
        goal=model.default_q,
        object="box",
        lower=np.array([-0.2, -0.2]),
        upper=np.array([0.2, 0.2]),
        length=0.05,
        position_tolerance=0.01,
    )
    return task.replace(goal=task.with_object(task.start, [0.1, 0.0]))


def push_plan(task: planning.Task) -> planning.Plan:
    """The commands that push it there in the quasi-dynamic model."""
    q, path, inputs = task.start, [task.start], np.linspace(0.0, 0.13, 60)[1:, None]
    for u in inputs:
        q = np.asarray(qdsim.step(task.model, q, u, task.options).q_next)
        path.append(q)
    segment = planning.Segment(inputs, np.array(path), np.array([len(inputs)]))
    return planning.Plan("push", "box", task.options, task.goal, 0.01, 0.1, 1e-3, (segment,))


class Fake:
    """A robot that moves as the quasi-dynamic step does, and what happens to it after some periods.

    Args:
        task: its model.
        spoil: given the reading and how many have been, returns another or raises.
    """

    def __init__(
        self, task: planning.Task, spoil: Callable[[Array, int], Array] = lambda q, n: q
    ) -> None:
        self.task, self.spoil, self.q, self.reads = task, spoil, np.array(task.start), 0
        self.sent: list[Array] = []

    def read(self) -> tuple[Array, Array]:
        self.reads += 1
        return self.spoil(self.q.copy(), self.reads), np.zeros(self.task.model.nv)

    def send(self, u: Array) -> None:
        self.sent.append(u)
        self.q = np.array(qdsim.step(self.task.model, self.q, u, self.task.options).q_next)

    def run(self, options: planning.ExecutorOptions = BRIEF) -> planning.ExecutorReport:
        robot = planning.Robot(read=self.read, send=self.send, period=0.05, patience=0.5)
        return planning.Executor(self.task, push_plan(self.task), robot, options=options).run()


@pytest.mark.parametrize("plant", ["mujoco", "qdsim"])
def test_a_plan_arrives_and_the_object_is_held(plant: str) -> None:
    task, seen = push_task(), []
    executor = planning.Executor(
        task,
        push_plan(task),
        plant,  # type: ignore[arg-type]
        world=WORLD,
        options=BRIEF,
        watch=lambda state: seen.append(state.doing),
    )
    assert "next" in repr(executor)
    report = executor.run()
    assert report.reached, str(report)
    assert report.position_error <= task.position_tolerance and report.held >= 0.3
    assert seen[-2:] == ["hold", "stopped"] and "move" in seen
    assert "planned" in str(report) and "arrived" in str(report)


def test_recorded_commands_repeat_the_recorded_motion_in_mujoco() -> None:
    """From the first recorded configuration, and with time steps as long as a period of the record."""
    task = push_task()
    world = WORLD.replace(timestep=1e-2, support_friction=0.0)
    report = planning.Executor(task, push_plan(task), world=world, options=BRIEF).run()
    run = report.motion
    model = planning.second_order(task.model, task.object, world)
    data = mujoco.MjData(model)
    data.qpos[:] = run.q[0]
    for k, u in enumerate(run.u):
        np.testing.assert_allclose(run.q[k], data.qpos, atol=1e-12)
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(run.q[-1], data.qpos, atol=1e-12)
    assert task.errors(run.q[-1]) == (report.position_error, report.rotation_error)
    assert run.t[-1] == pytest.approx(report.seconds) and np.all(np.diff(run.t) > 0.0)
    np.testing.assert_array_equal(run.at(run.t), run.q)
    assert run.doing(0.0) == "move" and run.doing(report.seconds) == "stopped"
    assert run.object == "box" and task.errors(run.goal) == (0.0, 0.0)


def test_a_function_makes_new_plans_from_where_the_object_is() -> None:
    """Where it has none the execution ends; every call has another seed."""
    task, asked = push_task(), []

    def plans(q: Array, *, seed: int) -> planning.Plan:
        asked.append((q, seed))
        if len(asked) == 1:
            raise planning.NotCoveredError("nothing near", q)
        return push_plan(task)

    options = BRIEF.replace(plans=2)
    report = planning.Executor(task, world=WORLD, options=options, planner=plans).run()
    assert report.reached, str(report)
    assert len(asked) == 2 and asked[0][1] != asked[1][1]
    np.testing.assert_allclose(asked[1][0], task.start, atol=1e-3)

    asked.clear()
    options = BRIEF.replace(plans=1)
    report = planning.Executor(task, world=WORLD, options=options, planner=plans).run()
    assert report.outcome == "no plan found" and len(asked) == 1


def test_a_robot_is_read_and_told_once_a_period() -> None:
    robot = Fake(push_task())
    report = robot.run()
    assert report.reached, str(report)
    assert robot.task.reached(robot.q)
    assert len(robot.sent) == robot.reads  # one to begin with, and one more to stay


def test_progress_is_no_clock() -> None:
    """An object that does not move keeps the phase from running ahead of what follows it: the command stops, and the try
    ends. Planned commands go on, as springs that wait push no harder, and end with the segment."""
    task = push_task()
    start = np.array(task.start)

    def hurry(q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
        return u_plan

    def stuck(q: Array, reads: int) -> Array:
        q[task.space.q] = start[task.space.q]
        return q

    robot = Fake(task, stuck)
    report = robot.run()
    assert report.outcome == "missed" and "tolerances off" in str(report.edges[0])
    robot = Fake(task, stuck)
    report = robot.run(BRIEF.replace(controllers=(hurry,)))
    assert report.outcome == "missed" and "no progress" in str(report.edges[0])
    path = push_plan(task)
    planned = path.segments[0].inputs[:, 0]
    ahead = np.interp(
        3.5 * task.position_tolerance, path.segments[0].configurations[1:, 0], planned
    )
    assert max(u[0] for u in robot.sent) <= ahead


def _raise(q: Array, reads: int) -> Array:
    if reads > 5:
        raise OSError("the bus is down")
    return q


def _nan(q: Array, reads: int) -> Array:
    return np.where(reads > 5, math.nan, q)


def _short(q: Array, reads: int) -> Array:
    return q[: -(reads > 5) or None]


def _late(q: Array, reads: int) -> Array:
    if reads == 6:
        time.sleep(0.7)
    return q


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(_raise, "the bus is down"), (_nan, r"q[0] is nan"), (_short, "shape"), (_late, "no answer")],
)
def test_a_plant_that_fails_ends_it_with_a_report(
    spoil: Callable[[Array, int], Array], reason: str
) -> None:
    """And where the robot still listens it is told its last command once more."""
    robot = Fake(push_task(), spoil)
    report = robot.run()
    assert report.outcome == "no answer" and reason in report.reason
    assert not report.reached and np.isfinite(report.position_error)
    if spoil is not _late:
        assert robot.reads == 6 and np.array_equal(robot.sent[-1], robot.sent[-2])
    assert all(np.isfinite(u).all() for u in robot.sent)


def test_an_object_lost_ends_it() -> None:
    def lost(q: Array, reads: int) -> Array:
        q[0] += 5.0 * (reads > 5)
        return q

    report = Fake(push_task(), lost).run()
    assert report.outcome == "lost" and "holds the last command" in report.reason


def test_it_ends_in_time() -> None:
    robot = Fake(push_task())
    report = robot.run(planning.ExecutorOptions(controllers=("planned",), seconds=0.5))
    assert report.outcome == "out of time" and report.seconds == pytest.approx(0.5)


def test_refusals_name_the_argument() -> None:
    task = push_task()
    with pytest.raises(TypeError, match=r"^read"):
        planning.Robot(read=3, send=print)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^controllers"):
        planning.ExecutorOptions(controllers=("lqr",))
    with pytest.raises(ValueError, match=r"^controllers"):
        planning.ExecutorOptions(controllers="mpc")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^plant"):
        planning.Executor(task, plant="drake")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^planner"):
        planning.Executor(task, planner=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^watch"):
        planning.Executor(task, watch=3)  # type: ignore[arg-type]
