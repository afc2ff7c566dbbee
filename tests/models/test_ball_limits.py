"""Limits of ball joints: the angle of the rotation stays within a cone of the program."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scenes import Scene
from test_linearize import STANDARD, compare

import qdsim

# A rod on a ball joint, under gravity that turns it aside, and a second one behind it.
ARM = """
<mujoco><option gravity="{gravity}" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="upper" pos="0.1 0 1"><joint name="shoulder" type="ball" pos="0 0 0.02" range="0 {most}" damping="0.3"/>
      <inertial pos="0 0 -0.2" mass="1" fullinertia="0.02 0.03 0.015 0.001 0.002 0.003"/>
      {behind}</body>
  </worldbody>
  {actuators}
</mujoco>"""
BEHIND = """<body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0.3"/>
      <joint name="wrist" type="ball" pos="0 0 -0.1" range="0 {wrist}"/>
      <inertial pos="0.05 0 -0.1" mass="0.5" diaginertia="0.004 0.005 0.002"/></body>"""


def arm(
    most: float = 40.0, gravity: str = "3 0 -9", behind: bool = False, wrist: float = 60.0
) -> str:
    actuators = '<actuator><position joint="elbow" kp="30"/></actuator>' if behind else ""
    inner = BEHIND.format(wrist=wrist) if behind else ""
    return ARM.format(most=most, gravity=gravity, behind=inner, actuators=actuators)


def angle_of(quat: np.ndarray) -> float:
    return float(2.0 * np.arctan2(np.linalg.norm(quat[1:]), abs(quat[0])))


def turned(rng: np.random.Generator, angle: float) -> np.ndarray:
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


@pytest.mark.parametrize("most", [25.0, 100.0])
def test_a_rod_rests_at_its_limit_where_mujocos_does(most: float) -> None:
    """Gravity pulls it farther aside than it may turn."""
    gravity = {25.0: "9 0 -3", 100.0: "9 2 5"}[most]
    source = arm(most, gravity)
    model = qdsim.load(source)
    q = np.array(model.default_q)
    q[:] = np.concatenate([[np.cos(0.05)], np.sin(0.05) * np.array([0.1, -0.9, 0.2])])
    q /= np.linalg.norm(q)
    for _ in range(600):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.03))
        q = np.array(step.q_next)
    assert angle_of(q) == pytest.approx(np.radians(most), abs=1e-6)
    # the limit's torque holds the rod: it is along the turn, and as large as gravity's
    turn = q[1:] / np.linalg.norm(q[1:]) * np.sign(q[0])
    assert np.cross(step.limit_force, turn) == pytest.approx(0.0, abs=1e-3)
    assert step.limit_force @ turn < 0.0
    theirs = mujoco.MjModel.from_xml_string(source)
    theirs.jnt_solref[:] = (0.004, 1.0)
    theirs.jnt_solimp[:] = (0.999, 0.9999, 0.001, 0.5, 2.0)
    data = mujoco.MjData(theirs)
    data.qpos[:] = q
    for _ in range(3000):
        mujoco.mj_step(theirs, data)
    near = abs(float(data.qpos @ q))
    assert 2.0 * np.arccos(min(1.0, near)) < 5e-3


@pytest.mark.parametrize("seed", range(6))
def test_a_step_is_optimal(seed: int) -> None:
    """Q d + b = the limit's force, which turns back along the row at the boundary."""
    rng = np.random.default_rng(seed)
    model = qdsim.load(arm(40.0, "9 4 -3"))
    most = np.radians(40.0)
    q = turned(rng, rng.uniform(0.0, 1.2 * most))
    torque = rng.normal(size=3) * 8.0
    step = qdsim.step(model, q, [], qdsim.Options(h=0.1), tau=torque)
    free = qdsim.step(model, q, [], qdsim.Options(h=0.1, joint_limits=False), tau=torque)
    mass = np.column_stack([torque_of(model, q, unit, free) for unit in np.eye(3)])
    gap = np.linalg.solve(mass, step.limit_force)  # what the force adds to the motion
    np.testing.assert_allclose(step.delta - free.delta, gap, atol=1e-9)
    theta = 2.0 * np.arctan2(np.linalg.norm(q[1:]), q[0]) * q[1:] / np.linalg.norm(q[1:])
    row = theta + inverse_jacobian(theta) @ step.delta
    assert np.linalg.norm(row) <= most + 1e-9
    if np.linalg.norm(step.limit_force) > 1e-6:
        assert np.linalg.norm(row) == pytest.approx(most, abs=1e-9)
        back = -inverse_jacobian(theta).T @ row
        np.testing.assert_allclose(
            step.limit_force / np.linalg.norm(step.limit_force),
            back / np.linalg.norm(back),
            atol=1e-7,
        )


def torque_of(
    model: qdsim.Model, q: np.ndarray, torque: np.ndarray, free: qdsim.Step
) -> np.ndarray:
    """Row of the inverse of Q by differences of a linear map, inverted."""
    options = qdsim.Options(h=0.1, joint_limits=False)
    columns = []
    base = qdsim.step(model, q, [], options).delta
    for unit in np.eye(3):
        columns.append(qdsim.step(model, q, [], options, tau=unit).delta - base)
    return np.linalg.inv(np.column_stack(columns)) @ torque


def inverse_jacobian(theta: np.ndarray) -> np.ndarray:
    """Of the left Jacobian, by its series' closed form in complex-free arithmetic."""
    t = np.linalg.norm(theta)
    x, y, z = theta
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    jacobian = np.eye(3) + (1 - np.cos(t)) / t**2 * skew + (t - np.sin(t)) / t**3 * skew @ skew
    return np.linalg.inv(jacobian)


@pytest.mark.parametrize("kappa", [None, 30.0, 1e3])
@pytest.mark.parametrize(("most", "wrist"), [(30.0, 0.5), (60.0, 178.0), (175.0, 90.0)])
def test_derivatives(kappa: float | None, most: float, wrist: float) -> None:
    """Also from no turn at all, and near half a turn."""
    model = qdsim.load(arm(most, "4 3 -9", behind=True, wrist=wrist))

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        upper = rng.choice([0.0, 1e-9, 1e-3, 0.5, 0.98, 1.001])
        lower = rng.choice([0.0, 0.3, 0.95])
        q = np.concatenate(
            [
                turned(rng, upper * np.radians(most)),
                rng.normal(size=1) * 0.3,
                turned(rng, lower * np.radians(wrist)),
            ]
        )
        return q, q[4:5] + rng.normal(size=1) * 0.2

    report = compare(Scene(model, sample), qdsim.Options(h=0.05, kappa=kappa), 10)
    print(report)
    assert report.share >= 0.7
    assert report.worst <= STANDARD


@pytest.mark.parametrize("kappa", [None, 1e2])
def test_products_agree_with_the_matrices_and_differences(kappa: float | None) -> None:
    model = qdsim.load(arm(30.0, "4 3 -9", behind=True, wrist=20.0))
    options = qdsim.Options(h=0.05, kappa=kappa)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q = np.concatenate([turned(rng, 0.5), [0.2], turned(rng, 0.34)])
        u = np.array([0.3])
        lin = qdsim.linearize(model, q, u, options)
        d = qdsim.differentiate(model, q, u, options)
        np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=1e-9)
        np.testing.assert_allclose(d.vjp(np.eye(model.nv))["q"], lin.A, atol=1e-9)
        eps = 1e-6
        ends = [
            qdsim.step(model, q, u, qdsim.Options(h=0.05 + s * eps, kappa=kappa)).q_next
            for s in (1, -1)
        ]
        slope = model.difference(ends[0], ends[1]) / (2 * eps)
        np.testing.assert_allclose(np.ravel(d.jvp({"h": 1.0})), slope, atol=1e-5)
        np.testing.assert_allclose(
            np.ravel(d.vjp(np.eye(model.nv), wrt="h")["h"]), slope, atol=1e-5
        )


def test_second_order_steps_undo_violations_at_their_speed() -> None:
    model = qdsim.load(arm(30.0, "0 0 -9"))
    q = turned(np.random.default_rng(0), np.radians(50.0))
    options = qdsim.DynamicOptions(h=0.01, recovery_speed=0.5)
    step = qdsim.step_dynamic(model, q, np.zeros(3), [], options)
    assert angle_of(q) - angle_of(np.array(step.q_next)) >= 0.5 * 0.01 - 1e-9
    d = qdsim.linearize_dynamic(model, q, np.zeros(3), [], options)
    eps = 1e-6
    for j in range(3):
        moved = [
            qdsim.step_dynamic(
                model, model.integrate(q, s * eps * np.eye(3)[j]), np.zeros(3), [], options
            ).v_next
            for s in (1, -1)
        ]
        np.testing.assert_allclose(
            d.A[3:, j], (moved[0] - moved[1]) / (2 * eps), atol=1e-4 * np.abs(d.A).max()
        )


def test_batches_warm_starts_and_held_joints() -> None:
    model = qdsim.load(arm(30.0, "4 3 -9", behind=True, wrist=20.0))
    rng = np.random.default_rng(5)
    q = np.array([np.concatenate([turned(rng, 0.5), [0.2], turned(rng, 0.3)]) for _ in range(5)])
    u = np.full((5, 1), 0.3)
    options = qdsim.Options(h=0.05)
    batch = qdsim.step_batch(model, q, u, options)
    for i in range(5):
        one = qdsim.step(model, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        again = qdsim.step(model, q[i], u[i], options, warm_start=one)
        np.testing.assert_allclose(again.q_next, one.q_next, atol=1e-9)
    held = qdsim.step(model, q[0], u[0], qdsim.Options(h=0.05, held=("shoulder",)))
    np.testing.assert_array_equal(held.limit_force[:3], 0.0)
    np.testing.assert_array_equal(held.q_next[:4], q[0, :4] / np.linalg.norm(q[0, :4]))


def test_files_keep_them_and_a_half_turn_is_no_limit() -> None:
    model = qdsim.load(arm(40.0))
    assert model.description.joints[0].range == pytest.approx((0.0, np.radians(40.0)))
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.joints[0].range == pytest.approx((0.0, np.radians(40.0)))
    wide = qdsim.load(arm(180.0, "9 0 9"))
    step = qdsim.step(wide, turned(np.random.default_rng(1), 3.1), [], qdsim.Options())
    np.testing.assert_array_equal(step.limit_force, 0.0)


@pytest.mark.parametrize("given", [(-0.1, 0.5), (0.0, 0.0), (0.1, 0.5)])
def test_bad_ranges_are_named(given: tuple[float, float]) -> None:
    scene = qdsim.SceneBuilder()
    scene.body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    with pytest.raises(ValueError, match="range"):
        scene.joint("b", "ball", range=given)
    with pytest.raises(ValueError, match="free joint"):
        scene.joint("b", "free", range=(0.0, 1.0))


def test_a_range_of_zero_locks_the_joint() -> None:
    """As in MuJoCo, where any rotation is beyond it: the rod stays, whatever gravity does."""
    text = arm(0.0, "9 2 5").replace('type="ball"', 'type="ball" limited="true"')
    model = qdsim.load(text)
    q = np.array(model.default_q)
    for _ in range(20):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.05))
        q = np.array(step.q_next)
        assert angle_of(q) < 2e-6
    # The limit carries the moment of gravity about the joint: the weight is 0.22 m from it.
    lever, weight = np.array([0.0, 0.0, -0.22]), np.array([9.0, 2.0, 5.0])
    moment = np.linalg.norm(np.cross(lever, weight))
    assert np.linalg.norm(step.limit_force) == pytest.approx(moment, rel=1e-5)
