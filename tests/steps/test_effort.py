"""What a step says of its effort: all attempts count, whatever came of them."""

from __future__ import annotations

import pickle
from typing import Literal

import numpy as np
import pytest
from test_missed_pairs import SHELF, SLOT
from test_soften import contradiction

import qdsim
from qdsim.trace import TraceRow

WALLS = """<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="plane" size="1 1 1" zaxis="1 0 0"/><geom type="plane" size="1 1 1" pos=".2001 0 0" zaxis="-1 0 0"/>
  <body pos=".1 0 0"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("seed", range(4))
def test_softening_costs_more_than_finding_that_it_is_needed(seed: int) -> None:
    """A step that no motion satisfies makes the same attempts with either option, before anything gives way."""
    model, q, u, options, _ = contradiction(seed)
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
    model = qdsim.load(WALLS)
    v = [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    options = qdsim.DynamicOptions(h=0.01, restitution=1.0)
    many = qdsim.step_dynamic(model, model.default_q, v, [], options).info
    one = qdsim.step_dynamic(model, model.default_q, v, [], options.replace(restitution=0.0)).info
    assert many.bounce_share < 1.0 == one.bounce_share
    assert many.tries >= 3 * one.tries


# ---------------------------------------------------------------- the trace


def check_trace(info: qdsim.SolverInfo) -> None:
    """Efforts of the parts are the whole's; attempts are numbered; the last verdict is the step's."""
    rows = info.trace
    attempts = [row for row in rows if row.level == 0]
    assert [row.stage for row in attempts] == [f"attempt {k + 1}" for k in range(len(attempts))]
    assert sum(row.iterations for row in attempts) == info.iterations
    assert sum(row.factorizations for row in attempts) == info.factorizations
    assert attempts[-1].verdict == info.status
    for k, row in enumerate(rows):
        end = next((i for i in range(k + 1, len(rows)) if rows[i].level <= row.level), len(rows))
        parts = [part for part in rows[k + 1 : end] if part.level == row.level + 1]
        if parts:
            assert sum(part.iterations for part in parts) == row.iterations
            assert sum(part.factorizations for part in parts) == row.factorizations
        assert row.iterations >= 0 and row.factorizations >= 0


def same(one: tuple[TraceRow, ...], two: tuple[TraceRow, ...]) -> bool:
    """NaN is NaN's like."""
    return repr(one) == repr(two)


def test_a_trace_says_which_attempts_a_softened_step_took() -> None:
    model, q, u, options, _ = contradiction(1)
    step = qdsim.step(model, q, u, options.replace(trace=True))
    check_trace(step.info)
    assert step.info.trace[0].reason == "as given"
    assert [row.reason for row in step.info.trace if row.level == 0][-1] == "rows soften"
    assert any(row.stage == "path" and row.verdict == "infeasible" for row in step.info.trace)
    with pytest.raises(qdsim.SolverError) as caught:
        qdsim.step(model, q, u, options.replace(infeasible="error", trace=True))
    check_trace(caught.value.info)
    for copy in (pickle.loads(pickle.dumps(step.info)), pickle.loads(pickle.dumps(step)).info):
        assert same(copy.trace, step.info.trace)
    plain = qdsim.step(model, q, u, options)
    assert plain.info.trace == ()
    np.testing.assert_array_equal(plain.q_next, step.q_next)


@pytest.mark.parametrize("law", ["convex", "coulomb"])
def test_the_trace_of_a_bouncing_step_is_a_table(law: Literal["convex", "coulomb"]) -> None:
    model = qdsim.load(WALLS)
    options = qdsim.DynamicOptions(h=0.01, restitution=1.0, trace=True, law=law)
    v = [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    info = qdsim.linearize_dynamic(model, model.default_q, v, [], options).step.info
    check_trace(info)
    assert "less restitution" in {row.reason for row in info.trace}
    lines = str(info.trace).splitlines()
    assert lines[0].split() == ["stage", "reason", "iter", "fact", "residual", "verdict"]
    assert len(lines) == 1 + len(info.trace) and lines[1].startswith("attempt 1")


def test_a_trace_of_soft_pairs_has_their_programs() -> None:
    """A ball with a pressure field on a table."""
    model = qdsim.load(SHELF.format(height=0.058), soft={"ball": 1e5})
    info = qdsim.step(model, model.default_q, [], qdsim.Options(h=0.01, trace=True)).info
    check_trace(info)
    programs = [row for row in info.trace if row.stage.startswith("pressure")]
    assert len(programs) == info.soft_programs > 0


def attempts_of(info: qdsim.SolverInfo) -> list[str]:
    check_trace(info)
    return [row.reason for row in info.trace if row.level == 0]


def test_attempts_say_what_was_wrong() -> None:
    """A pair that leaves no motion is dropped; joints at the limits of their actuators resist."""
    model, options = qdsim.load(SLOT), qdsim.Options(margin=0.02, trace=True)
    info = qdsim.step(model, [0.0, -0.1], [], options, tau=[100.0, 0.0]).info
    reasons = attempts_of(info)
    assert info.dropped_pairs == 1 and "missed pairs come in" in reasons
    assert reasons.count("missed pairs one by one") >= 2

    arm = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" mass="1"
        pos=".3 0 0"/></body></worldbody><actuator><position joint="j" kp="10" forcerange="-1 1"/></actuator></mujoco>"""
    )
    reasons = attempts_of(qdsim.step(arm, [0.0], [0.0], options, tau=[5.0]).info)
    assert reasons == ["as given", "inertia of joints resists"]


@pytest.mark.long
def test_a_long_trace_says_what_it_dropped() -> None:
    """Each ball is an island with rows of its own."""
    balls = "".join(
        f'<body pos="{i} 0 0"><joint type="slide"/><geom size=".1" mass="1"/></body>'
        for i in range(600)
    )
    model = qdsim.load(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    rows = qdsim.step(model, model.default_q, [], qdsim.Options(trace=True)).info.trace
    assert len(rows) == 1001 and rows[-1].stage == "dropped"
    assert int(rows[-1].reason.split()[0]) >= 2 + 600 + 600 - 1000


def test_the_option_is_a_flag() -> None:
    with pytest.raises(TypeError, match="trace"):
        qdsim.Options(trace="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="trace"):
        qdsim.DynamicOptions(trace=1.5)  # type: ignore[arg-type]
