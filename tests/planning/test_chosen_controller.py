"""The controller that a transfer chooses by itself, and strokes of a task whose pace has been changed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.execution.routes import nearer
from qdsim.planning.search.rrt import _Search
from qdsim.planning.tracking.arrival import LEFT


def task_of(system: str, name: str) -> planning.Task:
    return qdsim.systems.load(system).tasks[name]


def still(task: planning.Task) -> planning.Plan:
    """A plan in which nothing moves."""
    hold = task.hold(task.start)
    segment = planning.Segment(hold[None], np.tile(task.start, (2, 1)), np.array([1]))
    return planning.Plan(
        task.name, task.object, task.options, task.goal, 0.01, 0.1, 1e-3, (segment,)
    )


@pytest.mark.parametrize(
    ("system", "name", "first", "reason", "strokes"),
    [
        ("planar_hand", "half_turn", "grip", "fingers", True),
        ("planar_hand", "shift_and_turn", "grip", "fingers", False),  # no sampler of grasps
        ("planar_pushing", "move_back", "mpc", "pushed", False),
        ("allegro_door", "open", "planned", "pushed", False),
    ],
)
def test_the_choice_follows_fingers_hinges_and_samplers(
    system: str, name: str, first: str, reason: str, strokes: bool
) -> None:
    executor = planning.Executor(task_of(system, name))
    assert executor._controllers.names[0] == first and reason in executor._controllers.why
    assert (executor._routes.strokes is not None) == strokes


def test_the_result_says_what_was_chosen_and_why() -> None:
    task = task_of("planar_pushing", "move_back")
    there = task.replace(goal=task.start)
    options = planning.TransferOptions(timestep=2e-3, settle=0.05)
    told = planning.transfer(still(there), there, options, controller="auto")
    assert told.reached and told.controller == "auto"
    assert "pushed on a support" in repr(told)
    same = planning.transfer(still(there), there.model, options, controller="auto")
    assert same.controller == "mpc"
    measured = planning.TransferOptions(timestep=2e-3, settle=0.05, carry_on=False)
    assert planning.transfer(still(there), there, measured, controller="auto").controller == "open"
    assert planning.transfer(still(there), there, options).controller == "open"


def test_pace_is_undone() -> None:
    """Strokes of a paced task are those of the task itself: fingers move what they hold, so the resistance of a support
    at one speed would only keep it behind."""
    task = task_of("planar_hand", "half_turn")
    slow = task.replace(options=task.options.replace(epsilon=57.0), unpaced=task.options)
    assert slow.without_pace().options == task.options
    assert task.without_pace() is task
    shorter = slow.replace(options=slow.options.replace(h=0.05)).without_pace()
    assert shorter.options == task.options.replace(h=0.05) and shorter.unpaced is None
    by_mass = task.replace(options=task.options.replace(mass_ratio=2.0))
    slow_too = by_mass.replace(
        options=by_mass.options.replace(epsilon=57.0), unpaced=by_mass.options
    )
    assert slow_too.without_pace().options == by_mass.options
    given = planning.GaitOptions(candidates=4)
    found = [planning.StrokePlanner(t, given, rng=3).candidates(t.start) for t in (task, slow)]
    assert found[0] and len(found[0]) == len(found[1])
    for a, b in zip(*found):
        assert np.array_equal(a.segment.configurations, b.segment.configurations)


def test_a_paced_task_knows_its_origin() -> None:
    task = task_of("planar_pushing", "move_back")
    quick = task.replace(goal=task.with_object(task.start, [0.0, 0.03, 0.0]))
    slow, _ = planning.paced(quick, planning.TransferOptions(speed=0.5))
    assert slow.options.epsilon > 2.0 * quick.options.epsilon
    assert slow.unpaced == quick.options
    again, _ = planning.paced(slow, planning.TransferOptions(speed=0.5))
    assert again.unpaced == quick.options
    assert slow.without_pace().options == quick.options


JAMMED = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="box"><joint name="box" type="slide" axis="1 0 0"/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
  <geom type="box" size="0.05 0.2 0.2" pos="0.1 0 0"/>
  <body pos="-0.07 0 0"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <geom type="sphere" size="0.02" mass="0.1"/></body></worldbody>
  <actuator><position name="x" joint="x" kp="100"/><position name="y" joint="y" kp="100"/></actuator></mujoco>"""


def beside_a_wall() -> planning.Task:
    model = qdsim.load(JAMMED)
    start = np.array(model.default_q)
    return planning.Task(
        name="jam",
        model=model,
        options=qdsim.Options(h=0.05, margin=0.02),
        start=start,
        goal=start,
        object="box",
        lower=np.array([-0.1]),
        upper=np.array([0.1]),
        position_tolerance=0.01,
    )


@pytest.mark.parametrize("depth", [-0.02, 0.003, 0.009])
def test_new_plans_ask_for_no_more_than_a_wall_lets_through(depth: float) -> None:
    """With its goal 9 mm inside of a wall and a tolerance of 10 an object may arrive, touching the wall: a new plan that
    aims at half of the tolerance is never found."""
    task = beside_a_wall()
    there = task.towards(task.with_object(task.start, [depth]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = nearer(there, there.start)
    least = max(depth, 0.0)
    assert near.position_tolerance == pytest.approx(least + LEFT * (0.01 - least))
    assert least < near.position_tolerance < there.position_tolerance
    assert near.rotation_tolerance == pytest.approx(LEFT * there.rotation_tolerance)


def test_edges_end_where_a_robot_is_not_strong_enough_to_go_on() -> None:
    """A box is jammed between a finger and a wall, where a spring pulls with its stiffness times how far the command
    goes: springs may be loaded up to each actuator's force, not more, or the box is shot away where it comes free."""
    task = beside_a_wall()
    model, start = task.model, task.start
    world = planning.TransferOptions(force=(2.05, 5.0), speed=0.1)
    paced, planner = planning.paced(task, world)
    assert planner.force == (2.05, 5.0)
    search = _Search(paced, planner.replace(sub_steps=50), np.random.default_rng(0))
    (edge,) = search._simulate(start, np.zeros(2), np.array([[0.05, 0.04]]))
    assert edge is not None
    inputs, path = edge
    pull = 100.0 * (inputs[-1] - model.command_from(path[-1]))
    assert len(inputs) == 20 and pull[0] == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(ValueError, match="force"):
        planning.rrt(task, planner.replace(force=(1.0, 1.0, 1.0)), rng=0)


@pytest.mark.parametrize("contacts", ["stiff", "default"])
def test_samples_of_a_door_see_the_speed_at_which_it_goes_on(contacts: str) -> None:
    """After a time t it has come as far as ``v I / d (1 - exp(-d t / I))``, at which a quasi-dynamic step stops it."""
    task = task_of("allegro_door", "open")
    damping, speed, seconds = 0.1, -0.2, 0.5
    world = planning.TransferOptions(contacts=contacts, object_damping=damping)  # type: ignore[arg-type]
    made = planning.Executor(task, world=world)._controllers
    assert made.names[:2] == ("planned", "sampling")
    model = made._model
    assert isinstance(model, planning.MujocoModel)
    q, v = np.array(task.start), np.zeros(task.model.nv)
    hinge = task.model.slice_v("door")
    q[task.model.slice_q("slide_1")] -= 0.5  # the hand is far away
    q[task.model.slice_q("door")] = -0.3  # past the latch
    v[hinge] = speed
    u = np.tile(task.model.command_from(q), (1, 1, 1))
    path, good = model.roll(q, v, u[0, 0], u, seconds, 1)
    inertia = float(np.diag(task.model.mass_matrix(q))[hinge][0])
    way = speed * inertia / damping * (1.0 - np.exp(-damping * seconds / inertia))
    assert good.all()
    assert path[0, -1, hinge][0] - q[hinge][0] == pytest.approx(way, rel=0.05)
