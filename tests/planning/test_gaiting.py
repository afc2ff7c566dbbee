"""Grips and strokes: statics of what is asked for, strokes as plans, and a ball turned in MuJoCo."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning import GaitOptions, Grip, GripOptions, StrokePlanner, TransferOptions

PINCH = """
<mujoco>
  <option gravity="0 0 -10"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="box" pos="0 0 0.1">
      <freejoint name="box"/>
      <geom name="block" type="box" size="0.05 0.05 0.1" mass="0.5"/>
    </body>
    <body name="left" pos="-0.071 0 0.1">
      <joint name="lx" type="slide" axis="1 0 0"/><joint name="lz" type="slide" axis="0 0 1"/>
      <geom name="left" type="sphere" size="0.02" mass="0.1"/>
    </body>
    <body name="right" pos="0.071 0 0.1">
      <joint name="rx" type="slide" axis="1 0 0"/><joint name="rz" type="slide" axis="0 0 1"/>
      <geom name="right" type="sphere" size="0.02" mass="0.1"/>
    </body>
  </worldbody>
  <actuator>
    <position name="lx" joint="lx" kp="1000"/><position name="lz" joint="lz" kp="1000"/>
    <position name="rx" joint="rx" kp="1000"/><position name="rz" joint="rz" kp="1000"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def task() -> planning.Task:
    """The Allegro hand's ball, to be turned by 0.5 rad."""
    whole = qdsim.systems.load("allegro_sphere").tasks["quarter_turn"]
    turn = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    return whole.replace(goal=whole.with_object(whole.start, turn))


def pinch(gap: float = 0.0, height: float = 0.0) -> tuple[qdsim.Model, np.ndarray]:
    model = qdsim.load(PINCH)
    q = np.array(model.default_q)
    q[model.slice_q("lx")] += 1e-3 - gap
    q[model.slice_q("rx")] -= 1e-3 - gap
    q[model.slice_q("box")][2] += height
    q[model.slice_q("lz")] += height
    q[model.slice_q("rz")] += height
    return model, q


def test_pinch_presses_and_carries() -> None:
    """Two fingers hold a box in the air: each presses with its preload or what friction needs, and lifts half of
    the weight; springs are stretched by these forces over their stiffness."""
    model, q = pinch(height=0.05)
    grip = Grip(model, "box", 0.05, GripOptions(press=0.5, fingers=2))
    assert grip.weight == pytest.approx(5.0)
    made = grip.command(q, np.zeros(6))
    assert made.fingers == 2 and made.residual < 1e-2
    # half of 5 N by a friction coefficient of 1, of which 0.6 are used, needs 4.167 N; the preload is 2.5 N
    assert made.forces == pytest.approx([2.5 / 0.6, 2.5 / 0.6], rel=1e-2)
    stretch = made.u - model.command_from(q)
    assert stretch == pytest.approx(np.array([2.5 / 0.6, 2.5, -2.5 / 0.6, 2.5]) / 1000.0, rel=2e-2)
    # and the step agrees: the box stays
    after = qdsim.step(model, q, made.u, qdsim.Options(h=0.1, epsilon=1e-3)).q_next
    assert np.abs(model.difference(after, q)).max() < 1e-4


def test_pinch_leans_on_the_floor() -> None:
    """On the floor the fingers need not carry, and without leaning they do."""
    model, q = pinch()
    grip = Grip(model, "box", 0.05, GripOptions(fingers=2))
    lift = [model.actuator_names.index(name) for name in ("lz", "rz")]
    hold = model.command_from(q)
    leaning, free = (grip.command(q, np.zeros(6), lean=lean).u - hold for lean in (True, False))
    assert 1000.0 * free[lift].sum() == pytest.approx(5.0, rel=1e-2)
    assert 1000.0 * leaning[lift].sum() < 2.5


def test_a_floor_below_a_gap_bears_nothing() -> None:
    """Fingers close their gaps, a floor does not: half a millimetre above it they carry all of the weight."""
    model, q = pinch(height=5e-4)
    grip = Grip(model, "box", 0.05, GripOptions(fingers=2))
    lift = [model.actuator_names.index(name) for name in ("lz", "rz")]
    carrying = grip.command(q, np.zeros(6), lean=True).u - model.command_from(q)
    assert 1000.0 * carrying[lift].sum() == pytest.approx(5.0, rel=1e-2)


def test_fingers_follow_the_object() -> None:
    """What touches moves with the object; what does not comes no faster than it may."""
    model, q = pinch(height=0.05)
    grip = Grip(model, "box", 0.05, GripOptions(fingers=2))
    up = grip.upwards(q, 2e-3)
    assert up is not None and up == pytest.approx([0.0, 0.0, 2e-3, 0.0, 0.0, 0.0], abs=1e-12)
    still, moving = grip.command(q, np.zeros(6)).u, grip.command(q, up).u
    assert moving - still == pytest.approx([0.0, 2e-3, 0.0, 2e-3], abs=1e-5)
    assert grip.downwards(q) == pytest.approx([0, 0, 0, 0, 0, 0], abs=1e-12)  # out of reach
    assert grip.downwards(pinch(height=0.01)[1])[2] == pytest.approx(-0.01)

    model, q = pinch(gap=0.01, height=0.05)
    assert grip.touching(q) == 0
    assert grip.command(q, np.zeros(6)).u == pytest.approx(model.command_from(q), abs=1e-9)
    closing = grip.command(q, np.zeros(6), closing=True, press=0.0).u - model.command_from(q)
    assert closing[0] == pytest.approx(0.025 * 0.02, rel=1e-2)
    assert closing[2] == pytest.approx(-0.025 * 0.02, rel=1e-2)


def test_displacements_keep_their_speeds(task: planning.Task) -> None:
    grip = Grip(task.model, task.object, task.length)
    way = grip.towards(task.start, task.goal, 0.02)
    assert np.linalg.norm(way[3:]) == pytest.approx(0.6 * 0.02)
    near = task.with_object(task.goal, np.array([1e-4, 0, 0, 0, 0, 1e-3]))
    assert grip.towards(near, task.goal, 0.02) == pytest.approx(
        -8.0 * 0.02 * np.array([1e-4, 0, 0, 0, 0, 1e-3]), abs=1e-9
    )


@pytest.mark.long
def test_strokes_are_plans(task: planning.Task) -> None:
    """A plan of strokes replays bit by bit, reaches, lets go of nothing that falls, and no spring pulls harder than
    a few weights of the ball ask for (published edges: 10 to 40 Nm)."""
    plan = planning.gait(task, rng=1)
    assert plan is not None
    verdict = plan.check(task.model)
    assert not verdict.faults and not verdict.dropping_regrasps and verdict.replay_error == 0.0
    stiffness = task.model.parameters.actuator_stiffness
    for segment in plan.segments:
        ends = np.array([task.model.command_from(q) for q in segment.configurations[1:]])
        assert np.abs(stiffness * (segment.inputs - ends)).max() < 5.0


def test_gains_are_what_comes_nearer(task: planning.Task) -> None:
    planner = StrokePlanner(task, GaitOptions(candidates=3), rng=0)
    found = planner.candidates(task.start)
    assert found and found[0].gain == max(stroke.gain for stroke in found)
    for stroke in found:
        ends = (planner.distance(q) for q in (stroke.segment.start, stroke.segment.end))
        before, after = ends
        assert stroke.gain == pytest.approx(before - after)


@pytest.mark.long
def test_ball_is_turned_in_mujoco(task: planning.Task) -> None:
    """From the published start, through the simulated world only, and held at the end."""
    plan = planning.gait(task, rng=1)
    assert plan is not None
    options = TransferOptions(timestep=1e-3, control_period=0.02)
    result = planning.transfer(plan, task, options, controller="gait")
    assert result.reached and result.rotation_error < np.radians(5.0)
    assert result.plans == len(result.segments) > 0
    followed = planning.transfer(plan, task.model, options, controller="grip")
    assert len(followed.segments) == len(plan.segments)
    assert max(s.final[1] for s in followed.segments) < np.radians(10.0)


@pytest.mark.long
def test_half_turns_of_the_ball_arrive_in_mujoco() -> None:
    """Five of six seeds at least: a grip that slips loses the ball in one run of five."""
    task = qdsim.systems.load("allegro_sphere").tasks["half_turn"]
    hold = planning.TransferOptions(control_period=0.02)
    reached = 0
    for seed in range(6):
        options = planning.ExecutorOptions(
            controllers=("grip",), routes=("strokes",), hold=0.5, seed=seed
        )
        reached += planning.Executor(task, world=hold, options=options).run().reached
    assert reached >= 5


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["planar_hand", pytest.param("iiwa_planar", marks=pytest.mark.long)]
)
def test_two_fingers_turn_in_mujoco(name: str) -> None:
    """What lies on a plane with friction is turned by two fingers that regrasp it: a third of the task's half turn.

    A stroke may end anywhere within the task's tolerances; the object ends where the last stroke has it.
    """
    whole = next(iter(qdsim.systems.load(name).tasks.values()))
    third = whole.space.difference(whole.goal, whole.start) / 3.0
    short = whole.replace(goal=whole.with_object(whole.start, third))
    plan = planning.gait(short, rng=0)
    assert plan is not None
    options = TransferOptions(timestep=1e-3)
    slow = short.replace(options=short.options.replace(epsilon=57.0), unpaced=short.options)
    result = planning.transfer(plan, slow, options, controller="gait")  # a pace is undone
    assert result.reached
    shift, turn = result.segments[-1].final
    assert shift < 1e-3 and turn < np.radians(0.5)


def test_as_many_fingers_as_there_are(task: planning.Task) -> None:
    """A grip needs three fingers, two where the robot has two; a single one never grips."""
    model, _ = pinch()
    assert Grip(model, "box", 0.05).fingers == 2
    assert Grip(task.model, task.object, task.length).fingers == 3
    assert Grip(task.model, task.object, task.length, GripOptions(fingers=4)).fingers == 4
    push = qdsim.systems.load("planar_pushing").tasks["move_back"]
    assert Grip(push.model, push.object, push.length).fingers == 2
    assert planning.gait(push, GaitOptions(candidates=2)) is None


def test_a_palm_that_an_arm_moves_is_no_finger() -> None:
    """A gripper of two fingers needs two, whatever its hand has for a shape."""
    sides = "".join(
        f"""<body pos="0 {y} -0.05"><joint name="{name}" type="slide" axis="0 1 0"/>
        <geom type="box" size="0.01 0.01 0.03" mass="0.1"/></body>"""
        for name, y in (("left", 0.05), ("right", -0.05))
    )
    springs = "".join(
        f'<position joint="{n}" name="{n}" kp="500"/>' for n in ("up", "left", "right")
    )
    model = qdsim.load(
        f"""<mujoco><worldbody><body name="box" pos="0 0 0.03"><freejoint/>
        <geom type="box" size="0.03 0.03 0.03" mass="0.1"/></body>
        <body pos="0 0 0.12"><joint name="up" type="slide" axis="0 0 1"/>
        <geom type="box" size="0.02 0.08 0.02" mass="0.3"/>{sides}</body></worldbody>
        <actuator>{springs}</actuator></mujoco>"""
    )
    grip = Grip(model, "box", 0.03)
    assert (grip.fingers, grip.available) == (2, 2)


def test_bad_input(task: planning.Task) -> None:
    for change in ({"press": 0.0}, {"fingers": 0}, {"period": np.nan}):
        with pytest.raises(ValueError, match=next(iter(change))):
            GripOptions(**change)
    for change in ({"candidates": 0}, {"steps": 0}):
        with pytest.raises(ValueError, match=next(iter(change))):
            GaitOptions(**change)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="strokes"):
        GaitOptions(strokes=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sampler"):
        planning.gait(task.replace(sampler=None))
    segment = planning.Segment(
        task.model.command_from(task.start)[None], np.array([task.start] * 2), np.array([1])
    )
    plan = planning.Plan("none", "ball", task.options, task.goal, 0.01, 0.1, 1e-3, (segment,))
    with pytest.raises(ValueError, match="task"):
        planning.transfer(plan, task.model, controller="gait")
    with pytest.raises(TypeError, match="GaitOptions"):
        planning.transfer(plan, task, controller="gait", planner=planning.RRTOptions())
    with pytest.raises(TypeError, match="RRTOptions"):
        planning.transfer(plan, task, controller="replan", planner=GaitOptions())


def test_nothing_to_hold(task: planning.Task) -> None:
    """Out of the hand's reach there is no stroke and no plan."""
    far = task.with_object(task.start, np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    planner = StrokePlanner(task, GaitOptions(candidates=2), rng=0)
    assert planner.best(far) is None
    away = dataclasses.replace(task, start=far)
    assert planning.gait(away, GaitOptions(candidates=1, strokes=2)) is None


@pytest.mark.long
def test_edges_end_where_springs_would_pull_too_hard() -> None:
    """A bound on springs holds for every step of every push, and plans exist within it."""
    hand = qdsim.systems.load("planar_hand").tasks["half_turn"]
    stiffness = hand.model.parameters.actuator_stiffness

    def pulls(options: planning.RRTOptions) -> float:
        tree = planning.rrt(hand, options, rng=0)
        assert tree.reached
        most = 0.0
        for segment in tree.plan().segments:
            joints = segment.configurations[1:, hand.model.actuated_q]
            most = max(most, np.abs(stiffness * (segment.inputs - joints)).max(initial=0.0))
        return most

    own = dataclasses.replace(hand.planner or planning.RRTOptions(), squeeze=0.0)
    free = pulls(own)
    bound = 0.5 * free
    assert pulls(own.replace(force=bound)) <= bound * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="force"):
        planning.RRTOptions(force=0.0)
