"""Pairs beyond the margin that a step runs into (formulation 2, "which pairs count")."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim

SHELF = """
<mujoco><option gravity="0 0 -10"/>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 1" pos="0 0 -1"/>
    <geom name="shelf" type="box" size="0.3 0.3 0.01"/>
    <body name="ball" pos="0 0 {height}"><freejoint/><geom name="ball" type="sphere" size="0.05" mass="1"/></body>
    <body name="far" pos="3 0 {height}"><freejoint/><geom name="far" type="sphere" size="0.05" mass="1"/></body>
  </worldbody>
</mujoco>"""


def test_a_falling_ball_lands_on_what_it_would_fall_through() -> None:
    """With epsilon = 0.2 a free ball falls 0.5 m in one step: through the shelf if nobody looks."""
    model = qdsim.load(SHELF.format(height=0.2))
    q = np.array(model.default_q)
    options = qdsim.Options(epsilon=0.2, margin=0.02)
    step = qdsim.step(model, q, [], options)
    assert step.info.missed_pairs == 1
    assert len(step.contacts) == 1
    assert step.q_next[2] == pytest.approx(0.06, abs=1e-9)
    assert step.contacts["dist"][0] == pytest.approx(0.14)
    assert step.q_next[9] == pytest.approx(0.2 - 0.5, abs=1e-9)  # the other one falls freely

    through = qdsim.step(model, q, [], options.replace(add_missed_pairs=False))
    assert through.q_next[2] == pytest.approx(0.2 - 0.5, abs=1e-9)
    assert through.info.missed_pairs == 1

    smoothed = qdsim.step(model, q, [], options.replace(kappa=100.0))
    assert smoothed.info.missed_pairs == 1
    assert len(smoothed.contacts) == 0


def test_the_answer_does_not_depend_on_the_margin() -> None:
    for height in (0.07, 0.2, 0.4, 0.54):
        model = qdsim.load(SHELF.format(height=height))
        wide, narrow = (
            qdsim.step(model, model.default_q, [], qdsim.Options(epsilon=0.2, margin=margin))
            for margin in (10.0, 1e-3)
        )
        np.testing.assert_allclose(wide.q_next, narrow.q_next, atol=1e-9)


def test_a_chain_of_pairs_is_added_round_by_round() -> None:
    """The pusher alone would run into both balls; then the first ball runs into the second."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <body><joint name="push" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1"/></body>
        <body pos="0.5 0 0"><joint name="one" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
        <body pos="1 0 0"><joint name="two" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
        </worldbody><actuator><position joint="push" kp="1e4"/></actuator></mujoco>"""
    )
    step = qdsim.step(model, [0, 0, 0], [1.0], qdsim.Options(margin=0.0))
    assert step.info.missed_pairs == 3
    x = np.array([0.0, 0.5, 1.0]) + step.q_next
    assert np.all(np.diff(x) >= 0.2 - 1e-9)
    all_pairs = qdsim.step(model, [0, 0, 0], [1.0], qdsim.Options(margin=10.0))
    np.testing.assert_allclose(step.q_next, all_pairs.q_next, atol=1e-9)


def test_derivatives_see_the_added_pairs() -> None:
    model = qdsim.load(SHELF.format(height=0.2))
    lin = qdsim.linearize(model, model.default_q, [], qdsim.Options(epsilon=0.2, margin=0.02))
    ball = model.slice_v("ball")
    assert lin.A[ball, ball][2, 2] == pytest.approx(0.0, abs=1e-9)  # it lands wherever it starts
    far = model.slice_v("far")
    np.testing.assert_allclose(lin.A[far, far], np.eye(6), atol=1e-9)


SLOT = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="box" size="0.1 1 1" pos="-0.2 0 0"/>
  <geom type="box" size="0.1 1 1" pos="0.15 0 0"/>
  <body name="cart" pos="0 0 5"><joint name="y" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
  <body name="block"><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  <geom type="box" size="0.1 1 1" pos="1 0 5"/>
</worldbody></mujoco>"""


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("function", [qdsim.step, qdsim.linearize])
def test_a_pair_that_would_leave_no_motion_is_dropped_again(function, friction: str) -> None:
    """A block deep in the left wall of a slot that is narrower than itself: on its way out it runs into
    the right wall. The cart runs into a wall of its own, which is added as ever."""
    model = qdsim.load(SLOT)
    options = qdsim.Options(margin=0.02, friction=friction)
    result = function(model, [0.0, -0.1], [], options, tau=[100.0, 0.0])
    step = result if isinstance(result, qdsim.Step) else result.step
    assert step.q_next == pytest.approx([0.8, 0.0], abs=1e-9)
    assert step.info.missed_pairs == 2
    assert step.info.dropped_pairs == 1
    assert step.info.status == "solved"
    assert len(step.contacts) == 5
    wide = options.replace(margin=0.2)  # given from the start, it is what contradicts
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        function(model, [0.0, -0.1], [], wide)
