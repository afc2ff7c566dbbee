"""Plans as trajectories of joints: limits, the way back through MuJoCo, files, refusals."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import planning

SCENE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.5"/>
    <body name="pusher" pos="-0.3 0 0.1">
      <joint name="along" type="slide" axis="1 0 0"/>
      <joint name="up" type="slide" axis="0 0 1"/>
      <geom name="ball" type="sphere" size="0.05" mass="0.2"/>
    </body>
    <body name="box" pos="0 0 0.1">
      <joint name="box_x" type="slide" axis="1 0 0"/>
      <joint name="box_z" type="slide" axis="0 0 1"/>
      <geom name="block" type="box" size="0.2 0.2 0.1" mass="0.5" friction="0.5"/>
    </body>
  </worldbody>
  <actuator>
    <position name="m0" joint="along" kp="1000"/>
    <position name="m1" joint="up" kp="1000" forcerange="-50 50"/>
  </actuator>
</mujoco>
"""
OPTIONS = qdsim.Options(h=0.1, margin=0.05)


def pushed(model: qdsim.Model, start: np.ndarray, commands: np.ndarray) -> planning.Segment:
    q = [start]
    for u in commands:
        q.append(qdsim.step(model, q[-1], u, OPTIONS).q_next)
    return planning.Segment(commands, np.array(q), np.array([len(commands)]))


def line(start: tuple[float, float], end: tuple[float, float], steps: int) -> np.ndarray:
    return np.linspace(start, end, steps + 1)[1:]


@pytest.fixture(scope="module")
def model() -> qdsim.Model:
    return qdsim.load(SCENE)


@pytest.fixture(scope="module")
def plan(model: qdsim.Model) -> planning.Plan:
    """A push, back off and up and down in the air, another push with a corner in its commands; in short steps, since
    what slides in the convex model lifts by friction times the way of a step."""
    first = pushed(model, model.default_q, line((0.0, 0.0), (0.2, 0.0), 100))
    robot = model.actuated_q
    way = np.tile(first.end, (4, 1))
    way[1:, robot] = [[0.1, 0.0], [0.1, 0.03], [0.12, 0.0]]
    motion = planning.Motion(way, np.arange(4.0), "line")
    commands = np.vstack((line((0.12, 0.0), (0.25, 0.01), 60), line((0.25, 0.01), (0.3, 0.0), 30)))
    second = pushed(model, way[-1], commands)
    return planning.Plan(
        "push", "box", OPTIONS, second.end, 0.01, 0.05, 1e-3, (first, second), (motion,)
    )


def test_limits_are_kept_and_every_command_is_passed(
    model: qdsim.Model, plan: planning.Plan
) -> None:
    """Central differences of the sampled path; corners of the commands are among the points."""
    velocity, acceleration = np.array([0.3, 0.1]), np.array([2.0, 1.0])
    made = plan.to_joint_trajectory(model, velocity=velocity, acceleration=acceleration)
    assert made.joint_names == ("along", "up")
    dt = 1e-4
    t = np.arange(dt, made.duration - dt, 7e-4)
    before, here, after = (made.at(t + s)[0] for s in (-dt, 0.0, dt))
    rate, turn = (after - before) / (2 * dt), (after - 2 * here + before) / dt**2
    assert np.all(np.abs(rate) <= velocity * (1 + 1e-6))
    assert np.all(np.abs(turn) <= acceleration * (1 + 1e-6) + 1e-6)
    assert np.abs(rate).max(axis=0) == pytest.approx(velocity, rel=0.2)  # and they are used
    smooth = np.abs(turn - made.at(t)[2]).max(axis=1) < 1e-5  # all but where it changes
    assert smooth.mean() > 0.99
    np.testing.assert_allclose(rate[smooth], made.at(t)[1][smooth], atol=1e-7)
    corners = [(0.2, 0.0), (0.1, 0.0), (0.1, 0.03), (0.12, 0.0), (0.25, 0.01), (0.3, 0.0)]
    for corner in corners:
        k = np.abs(made.positions - corner).max(axis=1).argmin()
        np.testing.assert_allclose(made.positions[k], corner, atol=1e-12)
        assert not made.velocities[k].any()


def test_one_straight_push_takes_what_mechanics_says(model: qdsim.Model) -> None:
    """Way over speed, plus the speed over the acceleration."""
    segment = pushed(model, model.default_q, line((0.0, 0.0), (0.2, 0.0), 20))
    plan = planning.Plan("push", "box", OPTIONS, segment.end, 0.01, 0.05, 1e-3, (segment,))
    made = plan.to_joint_trajectory(model, velocity=0.4, acceleration=2.0, pause=0.0)
    assert made.duration == pytest.approx(0.2 / 0.4 + 0.4 / 2.0, rel=1e-9)
    assert len(made.times) == 4


def test_replayed_in_mujoco_it_ends_where_the_plan_ends(
    model: qdsim.Model, plan: planning.Plan
) -> None:
    """By plain MuJoCo with critically damped joints, without anything of ours in between."""
    made = plan.to_joint_trajectory(model)
    spec = mujoco.MjModel.from_xml_string(SCENE)
    spec.dof_damping[:2] = 2.0 * np.sqrt(1000.0 * 0.2)
    spec.body_gravcomp[spec.body("pusher").id] = 1.0
    data = mujoco.MjData(spec)
    times = np.arange(0.0, made.duration, spec.opt.timestep)
    for u in made.at(times)[0]:
        data.ctrl[:] = u
        mujoco.mj_step(spec, data)
    errors = np.abs(data.qpos - plan.end)
    assert errors[2:].max() < plan.position_tolerance
    assert abs(plan.end[2]) > 0.2


def test_messages_and_files_say_the_same(
    model: qdsim.Model, plan: planning.Plan, tmp_path: Path
) -> None:
    made = plan.to_joint_trajectory(model).sampled(0.01)
    fields = made.to_dict()
    assert set(fields) == {"header", "joint_names", "points"}
    stamps = [p["time_from_start"] for p in fields["points"]]
    times = np.array([s["sec"] + 1e-9 * s["nanosec"] for s in stamps])
    np.testing.assert_allclose(times, made.times, atol=1e-9)
    made.to_yaml(tmp_path / "a.yaml")
    text = (tmp_path / "a.yaml").read_text()
    header, names, word, *points = text.splitlines()
    assert [header[:8], names[:13], word] == ["header: ", "joint_names: ", "points:"]
    assert json.loads(names[13:]) == fields["joint_names"]
    assert json.loads(header[8:]) == fields["header"]
    assert [json.loads(point.removeprefix("- ")) for point in points] == fields["points"]
    assert not re.search(r"[\[ ]-?\d+e", text)  # 1e-05 is text in YAML 1.1, 1.0e-05 a number
    made.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head[:3] == ["time", "along.position", "up.position"]
    assert head[-1] == "up.acceleration"
    np.testing.assert_array_equal(np.array(rows, dtype=float)[:, 1:3], made.positions)


def test_limits_that_cannot_be_kept_are_refused(model: qdsim.Model, plan: planning.Plan) -> None:
    """With the joint and the time: of speeds for a duration, of forces, of commands."""
    made = plan.to_joint_trajectory(model)
    slow = plan.to_joint_trajectory(model, duration=2.0 * made.duration)
    assert slow.duration == pytest.approx(2.0 * made.duration)
    with pytest.raises(ValueError, match=r"velocity: joint 'along' needs .* after .* s"):
        plan.to_joint_trajectory(model, duration=0.5 * made.duration)
    with pytest.raises(ValueError, match=r"acceleration: joint '\w+' needs"):
        made.check(0.5, 1.0)
    # Sliding friction, 0.5 * 0.5 kg * 9.81 N = 2.45 N, is what the push takes, and at most twice that where the ball,
    # with friction 1, slides down the box and loads it (and what speeds it up within a step).
    with pytest.raises(ValueError, match=r"effort: joint 'along' needs .* at .* s, its limit is 2"):
        plan.to_joint_trajectory(model, effort=2.0)
    plan.to_joint_trajectory(model, effort=6.0)
    narrow = dataclasses.replace(plan, command_bounds=((-1.0, -1.0), (0.28, 1.0)))
    with pytest.raises(
        ValueError, match=r"joint 'along' is commanded .* beyond its bounds at .* s"
    ):
        narrow.to_joint_trajectory(model)


def test_no_motion_no_trajectory(model: qdsim.Model, plan: planning.Plan) -> None:
    with pytest.raises(ValueError, match="regrasp 0 has no motion"):
        dataclasses.replace(plan, motions=()).to_joint_trajectory(model)
    for bad in (0.0, -1.0, np.nan, np.inf, [1.0], "fast"):
        with pytest.raises((TypeError, ValueError), match="velocity"):
            plan.to_joint_trajectory(model, velocity=bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="times"):
        planning.JointTrajectory(("a",), np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)))


def test_commands_that_stay_take_no_time(model: qdsim.Model) -> None:
    """A segment without steps, one whose command stays, and one that begins or ends so."""
    nothing = planning.Segment(np.zeros((0, 2)), model.default_q[None], np.zeros(0, dtype=np.int64))
    still = pushed(model, model.default_q, np.zeros((5, 2)))
    for segment in (nothing, still):
        plan = planning.Plan("p", "box", OPTIONS, segment.end, 0.01, 0.05, 1e-3, (segment,))
        assert plan.to_joint_trajectory(model, pause=0.2).duration == pytest.approx(0.2)
        with pytest.raises(ValueError, match="no joint moves"):
            plan.to_joint_trajectory(model, pause=0.0)
    push = line((0.0, 0.0), (0.2, 0.0), 20)
    durations = []
    for commands in (push, np.vstack((np.zeros((3, 2)), push, push[-1:], push[-1:]))):
        segment = pushed(model, model.default_q, commands)
        plan = planning.Plan("p", "box", OPTIONS, segment.end, 0.01, 0.05, 1e-3, (segment,))
        durations.append(plan.to_joint_trajectory(model).duration)
    assert durations[1] == pytest.approx(durations[0], rel=1e-9)
