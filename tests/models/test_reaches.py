"""Actuators of sites with a reference site: how far a point lies from one of another body, along its direction."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scene_checks import check_file_and_batch, check_products
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim
from qdsim.description import Tendon

# An arm whose hand is moved in the frame of the world, of its own base and of a sled, and a sled and a ball joint.
ARM = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="origin" pos="0.3 0.1 0.2" euler="10 20 30"/>
    <body name="base" pos="0 0 0.1"><joint name="turn" axis="0 0.2 1"/>
      <inertial pos="0.01 0 0.02" mass="2" diaginertia="0.02 0.02 0.02"/>
      <site name="home" pos="0.1 0.02 0.2" euler="0 30 40"/>
      <body name="upper" pos="0 0 0.2" euler="0 30 0"><joint name="lift" axis="0 1 0" stiffness="3"/>
        <inertial pos="0.15 0 0" mass="0.5" diaginertia="0.002 0.006 0.006"/>
        <body name="lower" pos="0.3 0 0"><joint name="elbow" type="ball" stiffness="2"/>
          <inertial pos="0.1 0 0" mass="0.3" diaginertia="0.001 0.003 0.003"/>
          <site name="hand" pos="0.2 0.01 0.02" euler="20 30 40"/></body></body></body>
    <body name="sled" pos="0.5 -0.2 0"><joint name="sx" type="slide" axis="1 0 0"/><joint name="sy" type="slide" axis="0 1 1"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/><site name="deck" pos="0 0.1 0.1" euler="5 0 60"/>
      <body name="mast" pos="0 0 0.1"><joint name="mast" type="ball" stiffness="1"/>
        <inertial pos="0 0 0.1" mass="0.2" diaginertia="0.001 0.001 0.001"/><site name="top" pos="0.02 0 0.3"/></body></body>
  </worldbody>
  <actuator>
    <position name="x" site="hand" refsite="origin" gear="1 0 0 0 0 0" kp="200"/>
    <position name="y" site="hand" refsite="origin" gear="0 1.5 0 0 0 0" kp="150" kv="4"/>
    <general name="z" site="hand" refsite="home" gear="0.2 -0.3 2 0 0 0" gaintype="affine" gainprm="40 -2 0.5"
      biastype="affine" biasprm="0.3 -60 -1" forcerange="-6 6"/>
    <motor name="push" site="hand" refsite="deck" gear="0 1 0.5 0 0 0"/>
    <position name="sway" site="top" refsite="deck" gear="1 0 0 0 0 0" kp="30"/>
  </actuator>
</mujoco>"""

# What turns by a joint of its own carries the reference, too: MuJoCo's moment does not know that its axes turn.
TURNING = ARM.replace('refsite="deck" gear="0 1 0.5', 'refsite="top" gear="0 1 0.5')


def reaching(text: str = ARM) -> Scene:
    model = qdsim.load(text)
    around = _around(model, np.array(model.default_q), np.full(model.nv, 0.3), 0.2)

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return around(rng)[0], rng.uniform(-0.5, 0.5, model.nu)

    return Scene(model, sample)


def moments_of(theirs: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    out = np.zeros((theirs.nu, theirs.nv))
    mujoco.mju_sparse2dense(
        out, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    return out


def test_lengths_forces_and_moments_are_mujocos() -> None:
    scene = reaching()
    model, theirs = scene.model, mujoco.MjModel.from_xml_string(ARM)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(1)
    for _ in range(20):
        q, u = scene.sample(rng)
        data.qpos[:], data.ctrl[:] = q, u
        mujoco.mj_forward(theirs, data)
        np.testing.assert_allclose(model.tendon_lengths(q), data.actuator_length, atol=1e-12)
        still = qdsim.step(model, q, u, qdsim.Options(held=model.joint_names))
        np.testing.assert_allclose(still.actuator_force, data.actuator_force, atol=1e-11)
        np.testing.assert_allclose(
            in_mujocos_tangents(q, model.tendon_jacobians(q)), moments_of(theirs, data), atol=1e-12
        )


def in_mujocos_tangents(q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rotations of ball joints in the axes of the body in place of those before the joint."""
    rows = rows.copy()
    for at, quat in ((2, q[2:6]), (7, q[8:12])):
        frame = np.zeros(9)
        mujoco.mju_quat2Mat(frame, quat)
        rows[:, at : at + 3] = rows[:, at : at + 3] @ frame.reshape(3, 3)
    return rows


@pytest.mark.parametrize("text", [ARM, TURNING])
def test_jacobians_are_those_of_the_lengths(text: str) -> None:
    scene = reaching(text)
    model, rng, eps = scene.model, np.random.default_rng(2), 1e-6
    for _ in range(5):
        q, _ = scene.sample(rng)
        for j, way in enumerate(np.eye(model.nv)):
            ends = [model.tendon_lengths(model.integrate(q, s * eps * way)) for s in (1, -1)]
            np.testing.assert_allclose(
                (ends[0] - ends[1]) / (2 * eps), model.tendon_jacobians(q)[:, j], atol=1e-8
            )


def test_a_hand_goes_where_its_commands_say() -> None:
    """Three springs along the axes of a site of the world hold the hand at the place that they are told."""
    text = ARM.replace('stiffness="3"', "").replace('gravity="0 0 -9.81"', 'gravity="0 0 0"')
    text = text.replace('type="ball" stiffness="2"', 'axis="0 1 0"')
    text = text[: text.index("<general")] + (
        '<position name="z" site="hand" refsite="origin" gear="0 0 1 0 0 0" kp="200"/></actuator></mujoco>'
    )
    model = qdsim.load(text)
    there = model.integrate(model.default_q, 0.2 * np.ones(model.nv))
    u = model.tendon_lengths(there)
    q = model.default_q
    for _ in range(60):
        q = qdsim.step(model, q, u, qdsim.Options(h=0.2)).q_next
    np.testing.assert_allclose(model.tendon_lengths(q), model.tendon_lengths(there), atol=1e-6)


@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize("text", [ARM, TURNING])
def test_derivatives(text: str, kappa: float | None) -> None:
    for damping in (False, True):
        report = compare(reaching(text), qdsim.Options(h=0.05, kappa=kappa, damping=damping), 6)
        assert report.share >= 0.8
        assert report.worst <= STANDARD


@pytest.mark.parametrize("text", [ARM, TURNING])
def test_products_agree_with_the_matrices(text: str) -> None:
    check_products(reaching(text))


def test_files_and_batches() -> None:
    check_file_and_batch(reaching())
    bare = qdsim.load(ARM, actuated=())
    assert bare.tendon_count == 0 == bare.nu


def test_errors_name_the_element() -> None:
    with pytest.raises(ValueError, match=r"actuator 'x'.*turns its site against a reference site"):
        qdsim.load(ARM.replace('gear="1 0 0 0 0 0" kp="200"', 'gear="1 0 0 0 0 1" kp="200"'))
    points = [("a", (0, 0, 0)), ("b", (0, 0, 1)), ("c", (0, 0, 1))]
    with pytest.raises(ValueError, match=r"tendon 't': points of a reach must be three"):
        Tendon("t", points=points, reach=True)
    with pytest.raises(ValueError, match=r"tendon 't': points of a reach must be three"):
        Tendon("t", points=points[:2], reach=True)
    with pytest.raises(ValueError, match=r"tendon 't': .*thrust"):
        Tendon("t", points=[("a", (0, 0, 0))] * 3, reach=True, thrust=True)
