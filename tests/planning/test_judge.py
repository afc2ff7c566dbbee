"""Plans executed in the package's own second-order step: closed forms, MuJoCo beside it, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from test_transfer import PUSHER, push_plan

import qdsim
from qdsim import DynamicOptions, planning
from qdsim.planning.execution.own_plant import OwnPlant, judging_options
from qdsim.planning.execution.plant import Plant
from qdsim.planning.task.space import ObjectSpace

TABLE = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="finger" pos="-.2 {y} 0"><joint name="x" type="slide" axis="1 0 0"/><geom size=".05" mass="1" friction="0.6"/></body>
<body name="block"><joint name="block_x" type="slide" axis="1 0 0"/><joint name="block_y" type="slide" axis="0 1 0"/>
  <joint name="turn" type="hinge" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="2" friction="0.6"/></body>
</worldbody><actuator><position joint="x" kp="500"/></actuator></mujoco>"""


def own_plant(model, body, options=None, compensated=True):
    given = options or planning.TransferOptions()
    how = judging_options(given, None)
    return OwnPlant(model, ObjectSpace(model, body), how, given, compensated)


@pytest.mark.long
def test_a_push_arrives_where_statics_says():
    """As in MuJoCo: the box ends within mu m g / k of the command; here without a gap and without sinking in."""
    model = qdsim.load(PUSHER)
    plan = push_plan(model)
    both = {name: planning.transfer(plan, model, simulator=name) for name in ("mujoco", "qdsim")}
    limit = 0.5 * 0.5 * 9.81 / 1000.0
    own = both["qdsim"]
    box, pusher = model.slice_q("box_x").start, model.slice_q("x").start
    last = own.segments[0].executed[-1]
    assert abs(last[pusher] - 0.3) < limit + 1e-3
    assert last[box] - last[pusher] == pytest.approx(-0.05, abs=2e-3)
    assert own.reached and both["mujoco"].reached
    assert own.outcome == "reached" and len(own.segments) == 1
    one, two = both["mujoco"].segments[0], own.segments[0]
    np.testing.assert_allclose(one.time, two.time)
    np.testing.assert_allclose(one.commands, two.commands)
    assert np.abs(one.executed - two.executed)[:, [box, pusher]].max() < 6e-3


def test_options_of_the_step_are_taken():
    model = qdsim.load(PUSHER)
    plan = push_plan(model, 0.1, 10)
    options = planning.TransferOptions(timestep=2e-3, settle=0.1)
    found = planning.transfer(
        plan, model, options, simulator=DynamicOptions(h=1.0, friction="pyramid")
    )
    same = planning.transfer(plan, model, options, simulator="qdsim")
    box = model.slice_q("box_x").start
    last = [r.segments[0].executed[-1][box] for r in (found, same)]
    assert last[0] == pytest.approx(last[1], abs=2e-3)


@pytest.mark.parametrize("push", [0.5, 0.99, 1.5])
def test_the_supports_friction_holds_up_to_its_limit(push):
    """A constant force on a block on a table that is not part of the model: mu m g, then acceleration by what is
    left."""
    model = qdsim.load(TABLE.format(y=0))
    options = planning.TransferOptions(support_friction=0.4, timestep=1e-3)
    plant = own_plant(model, "block", options)
    weight = 0.4 * 2 * 9.81
    u = np.zeros(1)
    plant.reset(np.array([-0.15 + 0.2, 0, 0, 0]))  # touching
    # the spring pulls with k (u - q); the block does not move, so q stays where it is
    u[0] = plant.q[0] + push * weight / 500
    start = plant.q
    for _ in range(400):
        plant.advance(u)
    moved = plant.q[1] - start[1]
    assert plant.supported and plant.rubs
    if push < 1:
        assert abs(moved) < 2e-5
    else:
        assert moved == pytest.approx(
            (push - 1) * weight / 500, abs=0.2 * (push - 1) * weight / 500
        )


def test_the_supports_friction_stops_a_turning_block_as_its_ellipsoid_says():
    """Sliding and turning: deceleration mu g along M v in the metric of the masses, so both end at the same time."""
    model = qdsim.load(TABLE.format(y=0))
    options = planning.TransferOptions(support_friction=0.3, timestep=1e-4)
    found = {}
    for kind in ("own", "mujoco"):
        space = ObjectSpace(model, "block")
        if kind == "own":
            plant = own_plant(model, "block", options)
        else:
            plant = Plant(
                model, space, planning.second_order(model, "block", options), options, True
            )
        plant.reset(np.array([-1.0, 0, 0, 0]))
        speed = np.array([0.3, 0.4, 3.0])
        if kind == "own":
            plant._v[space.v] = speed
        else:
            plant.data.qvel[space.v] = speed
        for _ in range(3000):
            plant.advance(np.array([-1.0]))
        found[kind] = plant.q[1:]
    # v falls by mu g t in the norm sqrt(v^2 + (I / m) w^2)
    inertia = 2 / 3 * 0.1**2
    norm = np.sqrt(0.25 + inertia * 9.0)
    wanted = np.array([0.3, 0.4, 3.0]) / norm * norm**2 / (2 * 0.3 * 9.81)
    np.testing.assert_allclose(found["own"], wanted, rtol=3e-3)
    np.testing.assert_allclose(found["mujoco"], wanted, rtol=3e-3)


def test_actuators_pull_no_harder_than_they_may():
    model = qdsim.load(TABLE.format(y=0))
    options = planning.TransferOptions(support_friction=0.4, timestep=1e-3, force=7.0)
    plant = own_plant(model, "block", options)
    plant.reset(np.array([0.05, 0, 0, 0]))
    for _ in range(200):
        plant.advance(np.array([0.5]))  # 225 N if it might
    assert abs(plant.q[1]) < 1e-5  # 7 N, and friction holds 7.85
    options = options.replace(force=None)
    plant = own_plant(model, "block", options)
    plant.reset(np.array([0.05, 0, 0, 0]))
    for _ in range(200):
        plant.advance(np.array([0.5]))
    assert plant.q[1] > 0.1


@pytest.mark.long
def test_quasi_static_and_dynamic_motion_agree_as_speeds_fall():
    """A push from touching on, along the same commands, ever slower: what is left is the lag of the damped spring, of
    the first order in the speed."""
    slippery = PUSHER.replace('size="0.05"', 'size="0.05" friction="0" priority="1"')
    model = qdsim.load(slippery.replace('kp="1000"', 'kp="1000" kv="30"'))
    start = np.array(model.default_q)
    start[model.slice_q("x")] = 0.05
    box = model.slice_q("box_x").start

    def command(phase):
        return np.array([0.05 + 0.1 * (phase - np.sin(2 * np.pi * phase) / (2 * np.pi))])

    phases = np.linspace(0, 1, 401)
    still = [start]
    for phase in phases[1:]:
        o = qdsim.Options(h=0.01, margin=0.05, epsilon=1e-6)
        still.append(qdsim.step(model, still[-1], command(phase), o).q_next)
    errors, durations = [], np.array([1.0, 2.0, 4.0])
    for T in durations:
        done = qdsim.simulate(
            model,
            start,
            np.zeros(model.nv),
            lambda t, q, v, T=T: command(min(t / T, 1.0)),
            T,
            DynamicOptions(h=2e-3),
        )
        errors.append(np.abs(done.at(T * phases)[0] - still)[:, box].max())
    slopes = np.diff(np.log(errors)) / np.diff(np.log(1 / durations))
    np.testing.assert_allclose(slopes, 1.0, atol=0.05)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("drake", ValueError, "simulator: "),
        (3, TypeError, "simulator: "),
        (qdsim.Options(), TypeError, "simulator: "),
    ],
)
def test_wrong_simulators_are_named(given, error, message):
    model = qdsim.load(PUSHER)
    with pytest.raises(error, match=message):
        planning.transfer(push_plan(model, 0.1, 2), model, simulator=given)


def test_dampers_that_joints_do_not_have_are_named():
    model = qdsim.load(
        "<mujoco><worldbody><body name='a'><joint type='slide'/><geom size='.1'/></body>"
        "<body name='b' pos='1 0 0'><freejoint/><geom size='.1'/></body></worldbody>"
        "<actuator><position kp='10' joint='a_joint'/></actuator></mujoco>".replace(
            "<joint type", "<joint name='a_joint' type"
        )
    )
    options = planning.TransferOptions(object_damping=(1.0, 1.0, 1.0, 2.0, 2.0, 2.0))
    with pytest.raises(ValueError, match="object_damping: with simulator='qdsim'"):
        own_plant(model, "b", options)
