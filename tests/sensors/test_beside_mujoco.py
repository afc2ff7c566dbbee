"""Sensors of a step by MuJoCo's law are MuJoCo's `sensordata`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.sensors.scenes import ARM_OVER_BOX, TWO_LOOPS, Beside

import qdsim
from qdsim.sensors.volumes import crossing, inside

NEAR = 1e-6  # MuJoCo's own solver ends there


def compare(scene: Beside, values: dict[str, np.ndarray]) -> None:
    assert len(values) > 5
    for name, value in values.items():
        theirs = scene.data.sensor(name).data
        np.testing.assert_allclose(
            np.ravel(value),
            theirs,
            rtol=0.0,
            atol=NEAR * (1.0 + np.abs(theirs).max()),
            err_msg=name,
        )


@pytest.mark.long
def test_arm_that_pushes_a_box_and_a_rod() -> None:
    """Touch in every shape of site, force, torque, and contact with every reduction, in 60 states with contacts."""
    scene, rng = Beside(ARM_OVER_BOX), np.random.default_rng(3)
    touched: set[str] = set()
    for _ in range(60):
        data = scene.data
        mujoco.mj_resetData(scene.theirs, data)
        data.qpos[:3] = np.array([0.3, 0.35, 0.0]) + rng.normal(size=3) * [0.1, 0.1, 0.2]
        data.qpos[3:5] += rng.normal(size=2) * 0.03
        data.qpos[5] -= 0.001
        turn = np.array([1.0, *rng.normal(size=3) * 0.01])
        data.qpos[6:10] = turn / np.linalg.norm(turn)
        data.qpos[12] -= 0.0005
        data.qvel[:] = rng.normal(size=scene.theirs.nv) * 0.3
        data.ctrl[:] = rng.normal(size=2)
        values, same = scene.step()
        if not same:  # the arm's capsule inside the box has other contact points
            continue
        compare(scene, values)
        touched |= {name for name, value in values.items() if np.any(value)}
    assert {"t2", "t3", "t4", "t5", "tb", "tr", "c2", "c4", "c7"} <= touched


def test_force_and_torque_beside_loops_and_pushes() -> None:
    """Connects between trees, a ball joint, a body without weight, and wrenches on bodies."""
    scene, rng = Beside(TWO_LOOPS), np.random.default_rng(4)
    scene.data.qvel[:] = rng.normal(size=scene.theirs.nv)
    for _ in range(40):
        wrench = rng.normal(size=(scene.model.body_count, 6))
        wrench[0] = 0.0
        values, same = scene.step(wrench)
        assert same
        compare(scene, values)


def test_cutoffs() -> None:
    """Of each sign, and of a touch; in files that are written, too; and those that say nothing."""
    xml = TWO_LOOPS.replace("<force ", '<force cutoff="0.8" ').replace(
        "<torque ", '<torque cutoff="0.3" '
    )
    scene, rng = Beside(xml), np.random.default_rng(4)
    scene.data.qvel[:] = rng.normal(size=scene.theirs.nv)
    reached = set()
    for _ in range(20):
        values, same = scene.step(np.zeros((scene.model.body_count, 6)))
        assert same
        compare(scene, values)
        reached |= {x for value in values.values() for x in np.ravel(value).tolist()}
    assert {0.8, -0.8, 0.3, -0.3} <= reached
    again = qdsim.load(scene.model.description.to_mjcf()).description.sensors
    assert [getattr(item, "cutoff", None) for item in again] == [
        getattr(item, "cutoff", None) for item in scene.model.description.sensors
    ]
    ball = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/>
    <geom size="0.1" mass="2"/><site name="s" size="0.11"/></body></worldbody>
    <sensor><touch name="t" site="s" cutoff="3"/></sensor></mujoco>"""
    model = qdsim.load(ball)
    assert (
        qdsim.read_sensors(model, model.default_q, qdsim.step(model, model.default_q, []))["t"]
        == 3.0
    )
    with pytest.raises(ValueError, match="sensor 't': cutoff must be positive"):
        qdsim.sensors.TouchSensor("t", qdsim.sensors.Site("b"), cutoff=-1.0)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("sphere", (0.3,)),
        ("ellipsoid", (0.3, 0.2, 0.5)),
        ("box", (0.3, 0.2, 0.5)),
        ("capsule", (0.2, 0.3)),
        ("cylinder", (0.2, 0.3)),
    ],
)
def test_lines_through_volumes(shape: str, size: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    point, direction = rng.normal(size=(400, 3)) * 0.5, rng.normal(size=(400, 3))
    direction[np.arange(0, 400, 7), rng.integers(3, size=58)] = 0.0
    kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.upper()}")
    full = np.zeros(3)
    full[: len(size)] = size
    first, last = crossing(shape, size, point, direction)
    within = inside(shape, size, point)
    for i in range(len(point)):
        out = np.zeros(3)
        theirs = mujoco.mju_rayGeom(out, np.eye(3).ravel(), full, point[i], direction[i], int(kind))
        ours = last[i] if within[i] else first[i]
        if theirs < 0.0:
            assert not within[i]
            assert last[i] < 0.0 or not np.isfinite(first[i])
        else:
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_export_keeps_sensors() -> None:
    model = qdsim.load(ARM_OVER_BOX)
    again = qdsim.load(model.description.to_mjcf())
    assert [item.name for item in again.description.sensors] == [
        item.name for item in model.description.sensors
    ]
    q = np.array(model.default_q)
    q[5] -= 0.001
    options = qdsim.DynamicOptions(contacts="mujoco", h=0.002)
    v, u = np.zeros(model.nv), np.zeros(model.nu)
    both = [
        qdsim.read_sensors(one, q, qdsim.step_dynamic(one, q, v, u, options), v=v)
        for one in (model, again)
    ]
    for name, value in both[0].items():
        np.testing.assert_allclose(both[1][name], value, atol=1e-9)


def test_sensors_that_are_not_read_are_told() -> None:
    """By their kinds."""
    xml = """<mujoco><worldbody>
    <body name="b"><freejoint/><geom name="g" size=".1"/><site name="s"/></body></worldbody>
    <sensor><gyro name="turn" site="s"/><velocimeter site="s"/><gyro site="s"/><touch name="t" site="s"/>
    </sensor></mujoco>"""
    model = qdsim.load(xml)
    assert [sensor.name for sensor in model.description.sensors] == ["t"]
    assert "sensors that are not read: 2 gyro, 1 velocimeter" in model.ignored
