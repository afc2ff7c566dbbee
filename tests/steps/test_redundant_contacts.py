"""Contacts that hold more than their body needs: steps and derivatives where multipliers are not unique,
and where no mass holds an object (epsilon = 0)."""

from __future__ import annotations

import numpy as np
import pytest
from test_linearize import STENCIL

import qdsim

BOX = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="1 1 .1" friction="0.5 0 0"/>
  <body name="box" pos="0 0 {height}"><freejoint/>
    <geom type="box" size="0.15 0.08 0.1" mass="2" friction="0.5 0 0"/></body>
</worldbody></mujoco>"""

# Pulled at the height of the ground: four contacts hold six DOFs, and carry the load as they like.
PULLS = {
    "rest": [0, 0, 0, 0, 0, 0],
    "stick": [3, 2, 0, 0, 0, 0],
    "press": [0, 0, -30, 0, 0, 0],
    "along an edge": [15, 0, 0, 0, -1.5, 0],
    "along a diagonal": [12, 9, 0, 0.9, -1.2, 0],
    "turning": [12, 9, 0, 0.9, -1.2, 0.6],
}

GRASP = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="object"><freejoint/><geom type="box" size=".05 .05 .05" mass="1" friction=".8 0 0"/></body>
  <body pos="-.1 0 0"><joint name="l" type="slide" axis="1 0 0"/>
    <geom type="box" size=".05 .04 .04" mass="1" friction=".8 0 0"/></body>
  <body pos=".1 0 0"><joint name="r" type="slide" axis="1 0 0"/>
    <geom type="box" size=".05 .04 .04" mass="1" friction=".8 0 0"/></body>
</worldbody><actuator><position joint="l" kp="1000"/><position joint="r" kp="1000"/></actuator></mujoco>"""


def difference(model: qdsim.Model, q, options, wrench) -> np.ndarray:
    center = qdsim.step(model, q, [], options, wrench=wrench).q_next
    out = np.zeros((model.nv, model.nv))
    for j, e in enumerate(np.eye(model.nv)):
        for width, weight in STENCIL:
            for sign in (1.0, -1.0):
                moved = model.integrate(q, sign * width * 1e-5 * e)
                q_next = qdsim.step(model, moved, [], options, wrench=wrench).q_next
                out[:, j] += sign * weight / 1e-5 * model.difference(q_next, center)
    return out


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("pull", list(PULLS))
def test_what_is_called_exact_is(pull: str, friction: str) -> None:
    model = qdsim.load(BOX.format(height=0.1))
    options = qdsim.Options(friction=friction, margin=0.05)
    wrench = {"box": PULLS[pull]}
    lin = qdsim.linearize(model, model.default_q, [], options, wrench=wrench)
    error = np.abs(lin.A - difference(model, model.default_q, options, wrench)).max()
    assert lin.step.info.polished
    # on a diagonal, what resists a turn depends on which of the four contacts carries the load
    depends = pull == "along a diagonal" and friction == "cone"
    assert lin.step.info.derivative_exact is not depends
    assert (error > 1e-2) if depends else (error < 1e-5)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_without_mass_contacts_have_to_hold(friction: str) -> None:
    still = qdsim.Options(epsilon=0.0, friction=friction)
    resting, above = (qdsim.load(BOX.format(height=height)) for height in (0.1, 0.15))
    lin = qdsim.linearize(resting, resting.default_q, [], still)
    np.testing.assert_allclose(lin.step.delta, 0.0, atol=1e-9)
    assert np.isfinite(lin.A).all()
    drop = qdsim.step(above, above.default_q, [], still)  # down onto the ground, in one step
    np.testing.assert_allclose(drop.delta, [0, 0, -0.05, 0, 0, 0], atol=1e-8)
    hand = qdsim.load(GRASP)
    held = qdsim.step(hand, hand.default_q, [0.01, -0.01], still)
    np.testing.assert_allclose(held.delta, 0.0, atol=1e-8)  # 2 mu k 0.01 = 16 N > m g
    weight = sum(
        c["frame"].T @ c["force"][:3] * (1 if c["body_b"] == 1 else -1) for c in held.contacts
    )
    np.testing.assert_allclose(weight, [0, 0, 9.81], atol=1e-6)


@pytest.mark.parametrize("kappa", [None, 100.0])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_without_mass_a_fall_is_unbounded(friction: str, kappa: float | None) -> None:
    model = qdsim.load(BOX.format(height=5.0))
    options = qdsim.Options(epsilon=0.0, friction=friction, kappa=kappa)
    for call in (qdsim.step, qdsim.linearize, qdsim.differentiate):
        with pytest.raises(qdsim.SolverError, match="unbounded") as error:
            call(model, model.default_q, [], options)
        assert error.value.info.status == "unbounded"


PUSHED = """
<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="2 2 0.1" friction="0.25"/>
  <body name="box" pos="0 0 0.05"><freejoint/>
    <geom type="box" size="0.1 0.08 0.05" mass="1" friction="0.25"/></body>
  <body name="finger" pos="-0.15 0.03 0.05"><joint name="fx" type="slide" axis="1 0 0"/>
    <joint name="fy" type="slide" axis="0 1 0"/><geom size="0.03" mass="0.2" friction="0.25"/></body></worldbody>
  <actuator><position joint="fx" kp="300"/><position joint="fy" kp="300"/></actuator></mujoco>"""


@pytest.mark.parametrize("compliance", [0.0, 1e-5, 1e-3])
def test_coulombs_slopes_by_friction_are_exact_where_loads_are_shared_in_one_way(
    compliance: float,
) -> None:
    """A box pushed off its centre turns by which of its four rigid contacts carries the load: compliant ones say."""
    model, options = qdsim.load(PUSHED), qdsim.Options(h=0.1, law="coulomb")
    friction = np.array(model.parameters.pair_friction)
    sliding, soft = np.zeros_like(friction), np.full(len(friction), compliance)
    sliding[:, :2] = 1.0

    def pushed(more: float) -> qdsim.Model:
        return model.with_parameters(pair_friction=friction + more * sliding, pair_compliance=soft)

    q, slides = model.default_q, 0
    for t in range(8):
        u = [0.01 + 0.018 * t, -0.04 * t / 19]
        d = qdsim.differentiate(pushed(0.0), q, u, options)
        ends = [qdsim.step(pushed(e), q, u, options).q_next for e in (1e-6, -1e-6)]
        wanted = model.difference(*ends) / 2e-6
        slope = d.jvp({"pair_friction": sliding})
        slides += int(np.linalg.norm(wanted) > 1e-3)
        if d.step.info.derivative_exact:
            np.testing.assert_allclose(slope, wanted, atol=1e-6)
        assert d.step.info.derivative_exact or not compliance
        q = d.q_next
    assert slides >= 6 and (d.step.info.derivative_exact is False) is (compliance == 0.0)
