"""Actuators of sites: forces and moments that move with their bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scene_checks import check_file_and_batch, check_products
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim
from qdsim.description import Tendon

# A drone with rotors and a swinging arm, whose tip has a thruster with a force limit and damping.
DRONE = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="drone" pos="0.1 0.2 1" euler="10 20 30"><freejoint/>
      <inertial pos="0.01 0 0.02" mass="0.5" diaginertia="0.004 0.005 0.006"/>
      <site name="r1" pos="0.1 0.1 0.02"/><site name="r2" pos="-0.1 0.1 0.02" euler="5 0 0"/>
      <site name="r3" pos="-0.1 -0.1 0.02"/><site name="r4" pos="0.1 -0.1 0.02"/>
      <body name="arm" pos="0 0 -0.05"><joint name="swing" type="ball"/>
        <inertial pos="0 0 -0.1" mass="0.1" diaginertia="0.001 0.001 0.0002"/>
        <body name="tip" pos="0 0 -0.2"><joint name="hinge" axis="0 1 0" stiffness="0.2"/>
          <inertial pos="0 0 -0.03" mass="0.05" diaginertia="0.0002 0.0002 0.0001"/>
          <site name="jet" pos="0.01 0.02 -0.03" euler="20 30 40"/></body></body></body>
  </worldbody>
  <actuator>
    <motor name="m1" site="r1" gear="0 0 1 0 0 -0.02" ctrlrange="0 5"/><motor name="m2" site="r2" gear="0 0 1 0 0 0.02"/>
    <motor name="m3" site="r3" gear="0 0 1 0 0 -0.02"/><motor name="m4" site="r4" gear="0 0 1 0 0 0.02"/>
    <general name="jet" site="jet" gear="0.5 -0.2 1 0.01 0.02 -0.03" gainprm="2" biastype="affine"
      biasprm="0.1 -3 -0.4" forcerange="-0.3 0.3"/>
  </actuator>
</mujoco>"""


def drone() -> Scene:
    model = qdsim.load(DRONE)
    around = _around(model, np.array(model.default_q), np.full(model.nv, 0.3), 0.2)

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return around(rng)[0], rng.uniform(0.0, 2.0, model.nu)

    return Scene(model, sample)


def test_forces_are_mujocos() -> None:
    """Held still, all forces are those of mj_forward; Jacobians are its moments."""
    scene = drone()
    model, theirs = scene.model, mujoco.MjModel.from_xml_string(DRONE)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(1)
    for _ in range(20):
        q, u = scene.sample(rng)
        data.qpos[:], data.ctrl[:] = q, u
        mujoco.mj_forward(theirs, data)
        still = qdsim.step(model, q, u, qdsim.Options(held=model.joint_names))
        np.testing.assert_allclose(still.actuator_force, data.actuator_force, atol=1e-12)
        # MuJoCo's tangents of free and ball joints: translations in world axes, rotations in those of the body
        pull = still.actuator_force @ model.tendon_jacobians(q)
        frames = np.zeros(9), np.zeros(9)
        for out, quat in zip(frames, (q[3:7], q[7:11])):
            mujoco.mju_quat2Mat(out, quat)
        np.testing.assert_allclose(pull[:3], data.qfrc_actuator[:3], atol=1e-12)
        for k, frame in enumerate(frames):
            part = slice(3 + 3 * k, 6 + 3 * k)
            body = frame.reshape(3, 3).T @ pull[part]
            np.testing.assert_allclose(body, data.qfrc_actuator[part], atol=1e-12)
        assert pull[9] == pytest.approx(data.qfrc_actuator[9], abs=1e-12)


def test_a_drone_hovers_and_climbs() -> None:
    text = DRONE.replace('euler="10 20 30"', "").replace('euler="5 0 0"', "")
    text = text.replace('pos="0.01 0 0.02" mass="0.5"', 'pos="0 0 0" mass="0.5"')
    model = qdsim.load(text)
    weight = 0.65 * 9.81
    u = np.array([weight / 4] * 4 + [-0.05])
    h = 0.02
    for more in (0.0, 0.4):
        step = qdsim.step(model, model.default_q, u + [*[more / 4] * 4, 0.0], qdsim.Options(h=h))
        np.testing.assert_allclose(step.delta[2], more / 0.65 * h**2, atol=1e-6)


@pytest.mark.parametrize("kappa", [None, 1e2])
def test_derivatives(kappa: float | None) -> None:
    for damping in (False, True):
        report = compare(drone(), qdsim.Options(h=0.05, kappa=kappa, damping=damping), 8)
        assert report.share >= 0.8
        assert report.worst <= STANDARD


def test_products_agree_with_the_matrices() -> None:
    check_products(drone())


def test_files_batches_and_errors() -> None:
    check_file_and_batch(drone())
    text = DRONE.replace('<motor name="m2" site="r2"', '<motor name="m2" site="r2" refsite="r1"')
    idle = qdsim.load(text)  # two sites of one body
    assert not np.any(idle.tendon_jacobians(idle.default_q)[idle.tendon_index("m2")])
    with pytest.raises(ValueError, match="thrust"):
        Tendon("t", points=[("a", (0, 0, 0)), ("b", (0, 0, 1))], thrust=True)


def test_an_actuator_that_is_left_out_leaves_no_tendon() -> None:
    """Its thrust has nothing that pulls along it. Another one with activation dynamics is refused by its own name."""
    text = DRONE.replace('<general name="jet"', '<general name="jet" dyntype="integrator"')
    with pytest.raises(ValueError, match=r"actuator 'jet'.*activation dynamics") as refused:
        qdsim.load(text)
    assert "tendon" not in str(refused.value)
    model = qdsim.load(text, leave_out="actuators")
    assert model.actuator_names == ("m1", "m2", "m3", "m4") == model.tendon_names
    bare = qdsim.load(DRONE, actuated=())
    assert bare.tendon_count == 0 == bare.nu
