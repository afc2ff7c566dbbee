"""Plans that carry an object against gravity, followed in closed loop: never worse than open loop."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.execution.loops.follower import follow_options, follow_task, planned_reach


def gripper(half: float, mass: float, friction: float) -> qdsim.Model:
    """A cube on a floor and a gripper of two flat fingers on three slides."""
    clear = half + 0.01
    finger = '<geom type="box" size="0.01 0.005 0.01" mass="0.05"/>'
    return qdsim.load(
        f"""<mujoco><option gravity="0 0 -9.81"/><default><geom friction="{friction}"/></default>
        <worldbody><geom type="plane" size="1 1 1"/>
        <body name="cube" pos="0 0 {half}"><freejoint name="cube"/>
          <geom type="box" size="{half} {half} {half}" mass="{mass}"/></body>
        <body name="base" pos="0 0 {half}">
          <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
          <joint name="z" type="slide" axis="0 0 1"/>
          <inertial pos="0 0 0.1" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/>
          <body name="left" pos="0 {clear} 0"><joint name="left" type="slide" axis="0 -1 0"/>{finger}</body>
          <body name="right" pos="0 -{clear} 0"><joint name="right" type="slide" axis="0 1 0"/>{finger}</body>
        </body></worldbody>
        <actuator><position joint="x" kp="1000"/><position joint="y" kp="1000"/><position joint="z" kp="1000"/>
        <position joint="left" kp="500"/><position joint="right" kp="500"/></actuator></mujoco>"""
    )


def lift(seed: int, times: float = 1.0) -> tuple[planning.Plan, qdsim.Model]:
    """Squeeze a random cube, lift it by 6 cm, carry it by 6 cm aside."""
    rng = np.random.default_rng(seed)
    half, mass, friction = rng.uniform(0.015, 0.025), rng.uniform(0.05, 0.15), rng.uniform(0.7, 1.0)
    model = gripper(half, times * mass, friction)
    q = np.array(model.default_q)
    q[model.slice_q("x")] = rng.uniform(-0.003, 0.003)
    closed = planning.close_grasp(model, q, np.array([0.0, 0.0, 0.0, 1.0, 1.0]), reach=0.02).q
    hold = np.asarray(model.command_from(closed))
    squeeze = rng.uniform(1.5, 4.0) * mass * 9.81 / friction / 500.0
    commands = [hold + (k + 1) / 5 * squeeze * np.array([0, 0, 0, 1, 1]) for k in range(5)]
    for way in (np.array([0, 0, 1, 0, 0]), np.array([rng.choice([-1, 1]), 0, 0, 0, 0])):
        commands += [commands[-1] + 0.06 * way * (k + 1) / 12 for k in range(12)]
    options = qdsim.Options(h=0.05, margin=0.02)
    path = [closed]
    for u in commands:
        path.append(np.array(qdsim.step(model, path[-1], u, options).q_next))
    segment = planning.Segment(np.array(commands), np.array(path), np.array([len(commands)]))
    return planning.Plan("lift", "cube", options, path[-1], 0.01, 0.1, 1e-3, (segment,)), model


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("force", [None, 15.0])
def test_following_a_lift_is_no_worse_than_open_loop(seed: int, force: float | None) -> None:
    plan, model = lift(seed)
    options = planning.TransferOptions(timestep=1e-3, settle=0.3, force=force)
    first = planning.transfer(plan, model, options)
    followed = planning.transfer(plan, model, options, controller="mpc")
    assert first.reached  # else the test would say nothing
    assert followed.reached
    assert followed.position_error < first.position_error + 2e-3
    assert followed.rotation_error < first.rotation_error + 2e-2


@pytest.mark.long
def test_a_lift_is_brought_back_where_open_loop_cannot_see() -> None:
    """A gripper whose x slide is pushed by a constant force: open loop ends aside by force over stiffness, the follower
    does not."""
    plan, model = lift(0)
    options = planning.TransferOptions(timestep=1e-3, settle=1.5)
    mj = planning.second_order(model, "cube", options)
    x = model.slice_v("x").start
    mj.qpos_spring[model.slice_q("x")] = 1.0
    mj.jnt_stiffness[mj.jnt_dofadr == x] = 5.0  # 5 N at the origin, beside 1000 N/m
    left = planning.transfer(plan, model, options, simulator=mj)
    followed = planning.transfer(plan, model, options, simulator=mj, controller="mpc")
    assert 3.5e-3 < left.position_error < 6.5e-3
    assert followed.position_error < 0.6 * left.position_error


def test_the_follower_may_press_as_the_plan_does() -> None:
    plan, model = lift(1)
    reach = planned_reach(plan, model)
    segment = plan.segments[0]
    robot = np.array([model.command_from(q) for q in segment.configurations])
    inside = np.clip(
        segment.inputs, np.minimum(robot[:-1], robot[1:]), np.maximum(robot[:-1], robot[1:])
    )
    assert reach == pytest.approx(np.abs(segment.inputs - inside).max(axis=0), abs=1e-12)
    world = planning.TransferOptions()
    light, heavy = (
        follow_options(follow_task(p, m, world, 0.05), 0.05, np.ones(5)).kappa
        for p, m in (lift(1), lift(1, times=2.0))
    )
    assert light / heavy == pytest.approx(2.0)
