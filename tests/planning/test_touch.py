"""Fingers that begin away from the object, commands relative to the robot, and the ends of its last links."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cost_slopes import cost_slopes

import qdsim
from qdsim import planning
from qdsim.planning.tracking.cost_model import CostModel
from qdsim.planning.tracking.fingertips import Fingertips

FINGER = """<body name="{name}" pos="{x} {y} 0.1">
<joint name="{name}1" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.05" size="0.006"/>
<body name="{name}tip" pos="0 0 -0.05"><joint name="{name}2" type="slide" axis="1 0 0"/>
<joint name="{name}3" type="slide" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.03" size="0.008"/></body></body>"""


def fingers_away(gap: float) -> planning.Task:
    """A cube of 10 g on a table between two fingers, each at a distance from it."""
    half = 0.02
    places = {"a": -half - gap, "b": half + gap}
    bodies = "".join(FINGER.format(name=n, x=x, y=0.0) for n, x in places.items())
    drives = "".join(
        f'<position joint="{n}1" kp="1"/><position joint="{n}2" kp="60"/><position joint="{n}3" kp="60"/>'
        for n in places
    )
    model = qdsim.load(
        f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
        <body name="cube" pos="0 0 {half}"><freejoint/><geom type="box" size="{half} {half} {half}" mass="0.01"/></body>
        {bodies}</worldbody><actuator>{drives}</actuator></mujoco>"""
    )
    start = np.array(model.default_q)
    goal = start.copy()
    goal[0] += 0.03
    return planning.Task(
        name="away",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.03),
        start=start,
        goal=goal,
        object="cube",
        lower=-np.ones(6),
        upper=np.ones(6),
        position_tolerance=0.005,
        rotation_tolerance=0.1,
    )


def driven(task: planning.Task, loop: planning.Mpc, steps: int) -> np.ndarray:
    q = np.array(task.start)
    for _ in range(steps):
        q = np.array(qdsim.step(task.model, q, loop.act(q), task.options).q_next)
    return q


def test_fingers_outside_the_margin_come_to_the_object_and_move_it() -> None:
    """No contact is near enough to have a derivative; only the fingers' distances say where to go."""
    task = fingers_away(0.06)
    settings = planning.dexterous(task, touch=5.0)
    assert task.reached(driven(task, planning.Mpc(task, settings), 30))
    assert settings.cost is not None
    blind = settings.replace(cost=dataclasses.replace(settings.cost, touch=0.0))
    left = driven(task, planning.Mpc(task, blind), 30)
    assert task.errors(left)[0] == pytest.approx(0.03, abs=1e-3)


def test_the_quadratic_model_has_the_slopes_of_the_distances() -> None:
    task = fingers_away(0.03)
    model, rng = task.model, np.random.default_rng(0)
    cost = CostModel(task, planning.TrackingCost(touch=700.0))
    u = np.tile(model.command_from(task.start), (2, 1))
    path = np.array(
        [model.integrate(task.start, v) for v in 0.3 * rng.standard_normal((3, model.nv))]
    )
    _, linear = cost.expand(path[1:])
    assert linear == pytest.approx(cost_slopes(cost, model, path, u), rel=1e-5, abs=1e-4)


def test_the_end_of_a_link_is_its_point_farthest_from_the_joint() -> None:
    task = fingers_away(0.03)
    away = Fingertips(task).offsets(task.start)
    # Capsules: the centre of the cap at the lower end, 2 cm above the table as is the cube's centre.
    assert away == pytest.approx(np.array([[-0.05, 0.0, 0.0], [0.05, 0.0, 0.0]]), abs=1e-12)
    lever = qdsim.load(
        """<mujoco><worldbody><body name="thing"><freejoint/><geom size="0.01" contype="3" conaffinity="3"/></body>
        <body pos="1 0 0"><joint name="j" axis="0 1 0" pos="0 0 0.1"/><geom type="box" size="0.01 0.01 0.1"/>
        <body><geom type="box" size="0.02 0.02 0.02" pos="0 0 -0.3"/></body></body>
        </worldbody><actuator><position joint="j" kp="1"/></actuator></mujoco>"""
    )
    q = lever.default_q
    bar = planning.Task("bar", lever, qdsim.Options(h=0.1), q, q, "thing", -np.ones(6), np.ones(6))
    end = Fingertips(bar).offsets(q)
    assert end == pytest.approx(np.array([[1.0, 0.0, -0.3]]), abs=0.02001)


def test_commands_stay_within_a_stride_of_the_measured_robot() -> None:
    task = fingers_away(0.06)
    stride = 0.004
    settings = planning.dexterous(task, touch=5.0).replace(stride=stride)
    loop, q, longest = planning.Mpc(task, settings), np.array(task.start), 0.0
    for _ in range(12):
        u = loop.act(q)
        longest = max(longest, float(np.abs(u - task.model.command_from(q)).max()))
        q = np.array(qdsim.step(task.model, q, u, task.options).q_next)
    assert 0.5 * stride < longest <= stride * (1.0 + 1e-9)
    for bad in (0.0, -1.0, (1.0, np.nan)):
        with pytest.raises(ValueError, match="stride"):
            planning.ImpcOptions(stride=bad)


def test_the_pull_on_the_fingers_vanishes_at_the_goal() -> None:
    """There it would press fingers on the object that have nothing left to do."""
    task = fingers_away(0.02)
    cost = CostModel(task, planning.TrackingCost(touch=700.0))
    q, pulls = np.array(task.goal), []
    for share in (0.0, 0.1, 0.2, 5.0):
        q[0] = task.goal[0] + share * task.length
        cost.attend(q)
        pulls.append(cost.pull)
    assert pulls == pytest.approx([0.0, 7.0, 28.0, 700.0])
