"""What a step says of its effort: all attempts count, whatever came of them."""

from __future__ import annotations

import pytest
from test_missed_pairs import SHELF
from test_soften import wedge

import qdsim


@pytest.mark.parametrize("seed", range(4))
def test_softening_costs_more_than_finding_that_it_is_needed(seed: int) -> None:
    """A step that no motion satisfies makes the same attempts with either option, before anything gives way."""
    model, q, u, options, _ = wedge(seed)
    soft = qdsim.step(model, q, u, options).info
    with pytest.raises(qdsim.SolverError) as caught:
        qdsim.step(model, q, u, options.replace(infeasible="error"))
    failed = caught.value.info
    assert soft.softened > 0 and failed.status == "infeasible"
    assert soft.tries > failed.tries > 0
    assert soft.iterations >= failed.iterations
    assert soft.factorizations > failed.factorizations > 0


def test_a_step_repeated_for_a_missed_pair_counts_both_times() -> None:
    model = qdsim.load(SHELF.format(height=0.2))
    options = qdsim.Options(epsilon=0.2, margin=0.02)
    both = qdsim.step(model, model.default_q, [], options).info
    first = qdsim.step(model, model.default_q, [], options.replace(add_missed_pairs=False)).info
    assert both.missed_pairs == 1
    assert both.tries >= first.tries + 2  # two balls are two islands


def test_a_step_repeated_for_its_bounces_counts_all_times() -> None:
    """A ball that touches two walls and leaves one faster than it may come to the other."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <geom type="plane" size="1 1 1" zaxis="1 0 0"/><geom type="plane" size="1 1 1" pos=".2001 0 0" zaxis="-1 0 0"/>
        <body pos=".1 0 0"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
    )
    v = [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    options = qdsim.DynamicOptions(h=0.01, restitution=1.0)
    many = qdsim.step_dynamic(model, model.default_q, v, [], options).info
    one = qdsim.step_dynamic(model, model.default_q, v, [], options.replace(restitution=0.0)).info
    assert many.bounce_share < 1.0 == one.bounce_share
    assert many.tries >= 3 * one.tries
