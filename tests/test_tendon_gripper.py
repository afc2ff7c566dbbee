"""A gripper that closes by its tendon, as files of the Menagerie have it, holds a can at its force limit."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim

# Fingers that follow each other, an actuator on the mean of their openings whose command goes from
# 0 (closed) to 255, and 20 N at most; a lift carries the hand.
GRIPPER = """
<mujoco model="gripper">
  <option impratio="10" cone="elliptic"/>
  <default><geom friction="0.8"/></default>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1"/>
    <body name="hand" pos="0 0 0.05" gravcomp="1">
      <joint name="lift" type="slide" axis="0 0 1" range="0 0.4"/>
      <geom name="palm" type="box" size="0.03 0.09 0.01" pos="0 0 0.14" mass="0.5"/>
      <body name="left" gravcomp="1"><joint name="finger1" type="slide" axis="0 1 0" range="0 0.04"/>
        <geom name="pad1" type="box" size="0.012 0.005 0.03" pos="0 0.005 0.02" mass="0.02"/></body>
      <body name="right" gravcomp="1"><joint name="finger2" type="slide" axis="0 -1 0" range="0 0.04"/>
        <geom name="pad2" type="box" size="0.012 0.005 0.03" pos="0 -0.005 0.02" mass="0.02"/></body>
    </body>
    <body name="can" pos="0 0 0.06"><freejoint name="can"/>
      <geom name="can" type="cylinder" size="0.03 0.06" mass="{mass}"/></body>
  </worldbody>
  <tendon><fixed name="split"><joint joint="finger1" coef="0.5"/><joint joint="finger2" coef="0.5"/></fixed></tendon>
  <equality><joint joint1="finger1" joint2="finger2"/></equality>
  <actuator>
    <position name="lift" joint="lift" kp="20000"/>
    <general name="fingers" tendon="split" gainprm="0.627451" biastype="affine" biasprm="0 -4000 -40"
      ctrlrange="0 255" forcerange="-20 20"/>
  </actuator>
  <keyframe><key name="home" qpos="0 0.04 0.04 0 0 0.06 1 0 0 0" ctrl="0 255"/></keyframe>
</mujoco>"""
OPTIONS = qdsim.Options(h=0.02, margin=0.05, gravity_on_actuated=True)


def course(mass: float, height: float) -> tuple[qdsim.Model, list[qdsim.Step]]:
    """Close, then lift. A step gets what moves by s from rest, by m s / h^2: 2.5 m/s2 here."""
    model = qdsim.load(GRIPPER.format(mass=mass))
    q, u = (np.array(part) for part in model.keyframes["home"])
    steps = []
    for k in range(80):
        u[1] = max(0.0, 255.0 * (1.0 - k / 10))
        u[0] = height * min(max(k - 20, 0) / 50, 1.0)
        steps.append(qdsim.step(model, q, u, OPTIONS))
        q = np.array(steps[-1].q_next)
    return model, steps


def squeeze(model: qdsim.Model, step: qdsim.Step, pad: str) -> float:
    """N, of one pad on the can."""
    return sum(
        float(contact["force"][0])
        for contact in step.contacts
        if {model.geom_names[contact[g]] for g in ("geom_a", "geom_b")} == {pad, "can"}
    )


def test_it_opens_and_closes_by_its_command() -> None:
    model = qdsim.load(GRIPPER.format(mass=0.5))
    q, u = model.keyframes["home"]
    assert model.actuator_names == ("lift", "fingers")
    np.testing.assert_allclose(model.tendon_lengths(q), 0.04)
    still = qdsim.step(model, q, u, OPTIONS)
    np.testing.assert_allclose(still.q_next[1:3], 0.04, atol=1e-4)
    np.testing.assert_allclose(model.command_from(q)[1], 255.0, rtol=1e-4)


def test_it_holds_a_can_at_its_force_limit() -> None:
    """20 N on the mean of two openings are 10 N on each pad, and 16 N of friction in all."""
    model, steps = course(1.2, 0.05)
    start, end = (steps[k].q_next[model.slice_q("can")] for k in (19, -1))
    last = steps[-1]
    assert last.actuator_force[1] == pytest.approx(-20.0, rel=1e-9)
    assert last.actuator_limited.tolist() == [False, True]
    assert not steps[0].actuator_limited.any()
    for pad in ("pad1", "pad2"):
        assert squeeze(model, last, pad) == pytest.approx(10.0, rel=1e-6)
    assert end[2] - start[2] == pytest.approx(0.05, abs=2e-3)


def test_what_is_too_heavy_slips() -> None:
    model, steps = course(2.0, 0.03)
    end = steps[-1].q_next[model.slice_q("can")]
    assert end[2] < 0.065  # on the table
    assert steps[-1].actuator_force[1] == pytest.approx(-20.0, rel=1e-9)
    for pad in ("pad1", "pad2"):
        assert squeeze(model, steps[-1], pad) == pytest.approx(10.0, rel=1e-6)


def test_without_limits_it_squeezes_as_hard_as_it_is_told() -> None:
    model = qdsim.load(GRIPPER.format(mass=2.0))
    q, u = (np.array(part) for part in model.keyframes["home"])
    u[1] = 0.0
    for _ in range(10):
        step = qdsim.step(model, q, u, OPTIONS.replace(force_limits=False))
        q = np.array(step.q_next)
    assert step.actuator_force[1] == pytest.approx(-4000 * 0.03, rel=1e-2)
    assert not step.actuator_limited.any()
