"""Refined plans: they replay, end where they should at a smaller step, and have no idle parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.planning.tracking import refinement


@pytest.fixture(scope="module")
def hand() -> tuple[planning.Task, planning.Plan]:
    task = qdsim.systems.load("planar_hand").tasks["half_turn"]
    return task, planning.rrt(task, rng=0).plan()


def rolled(plan: planning.Plan, task: planning.Task, segment: planning.Segment, h: float):
    """Where the segment's own commands lead in small steps."""
    q = segment.start
    parts = round(plan.options.h / h)
    last = task.model.command_from(segment.start)
    for u in segment.inputs:
        for k in range(parts):
            way = last + (u - last) * (k + 1) / parts
            q = qdsim.step(task.model, q, way, plan.options.replace(h=h)).q_next
        last = u
    return q


@pytest.mark.long
def test_refined_segments_end_where_the_plan_does(hand) -> None:
    task, plan = hand
    refined, reports = planning.refine(plan, task, planning.RefineOptions(h=0.025))
    result = refined.replay(task.model)
    assert refined.options.h == 0.025
    assert result.identical
    assert task.reached(refined.end)
    assert len(reports) == len(refined.segments) <= len(plan.segments)
    before = np.array([[*r.error_before] for r in reports])
    after = np.array([[*r.error_after] for r in reports])
    size = np.hypot(before[:, 0], task.length * before[:, 1])
    settling = 1e-4  # m, of the last command held until nothing penetrates
    assert np.all(np.hypot(after[:, 0], task.length * after[:, 1]) <= size + settling)
    assert np.median(after[:, 1]) < 0.25 * np.median(before[:, 1])
    assert task.length * after[:, 1].max() < 0.02
    assert after[:, 0].max() < 0.02
    # what the report says of the plan's own commands, taken again
    first = planning.shorten(plan, task.space).segments[0]
    there = rolled(plan, task, first, 0.025)
    shift, turn = task.space.errors(there, first.end)
    assert reports[0].error_before == pytest.approx((shift, turn), abs=1e-9)

    for before, after in refined.regrasps:
        assert np.array_equal(before[task.space.q], after[task.space.q])
        for q in (before, after):
            depth = -task.model.collide(q, 0.0)["dist"].min(initial=0.0)
            assert depth <= plan.contact_tolerance
    assert refined.check(task.model).good


def test_shortened(hand) -> None:
    """An idle tail and a segment in which nothing moves are gone; the rest stays as it was."""
    task, plan = hand
    first = plan.segments[0]
    away = [max(task.space.errors(q, first.end)) > 1e-3 for q in first.configurations]
    last_motion = int(np.flatnonzero(away)[-1]) + 1
    tail = 5
    idle = planning.Segment(
        np.vstack((first.inputs, np.repeat(first.inputs[-1:], tail, axis=0))),
        np.vstack((first.configurations, np.repeat(first.configurations[-1:], tail, axis=0))),
        np.append(first.knots, first.steps + tail),
    )
    rest = planning.Segment(
        np.zeros((2, task.model.nu)), np.repeat(first.end[None], 3, axis=0), np.array([2])
    )
    longer = dataclasses.replace(plan, segments=(idle, rest, *plan.segments[1:]))
    short = planning.shorten(longer, task.space)
    assert len(short.segments) == len(plan.segments)
    assert short.segments[0].steps == last_motion
    for ours, theirs in zip(short.segments, plan.segments):
        assert np.array_equal(ours.inputs, theirs.inputs[: ours.steps])
        assert np.array_equal(ours.configurations, theirs.configurations[: ours.steps + 1])
        assert ours.knots[-1] == ours.steps
    assert task.reached(short.end)


def test_a_plan_at_rest_keeps_a_segment(hand) -> None:
    task, plan = hand
    rest = planning.Segment(np.zeros((2, 4)), np.repeat(plan.start[None], 3, axis=0), np.array([2]))
    still = dataclasses.replace(plan, segments=(rest,))
    assert len(planning.shorten(still, task.space).segments) == 1


def test_bad_input(hand) -> None:
    task, plan = hand
    with pytest.raises(TypeError, match="plan"):
        planning.refine(task, task)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="task"):
        planning.refine(plan, plan)  # type: ignore[arg-type]
    for change in ({"h": 0.0}, {"most_steps": 0}):
        with pytest.raises(ValueError, match=next(iter(change))):
            planning.RefineOptions(**change)
    other = qdsim.systems.load("planar_pushing").tasks["move_back"]
    with pytest.raises(ValueError, match="nq"):
        planning.refine(plan, other)


def test_a_refinement_that_was_cut_off_goes_on(hand, tmp_path, monkeypatch) -> None:
    task, plan = hand
    plan = dataclasses.replace(plan, segments=plan.segments[:3])
    plan = dataclasses.replace(plan, goal=plan.segments[-1].end)
    task = task.replace(goal=plan.goal)
    options = planning.RefineOptions(impc=planning.ImpcOptions(iterations=4), most_steps=40)
    whole, reports = planning.refine(plan, task, options)
    file = tmp_path / "refinement.npz"
    optimise, calls = refinement.impc, []

    def cut_off(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return optimise(*arguments, **named)

    monkeypatch.setattr(refinement, "impc", cut_off)
    with pytest.raises(KeyboardInterrupt):
        planning.refine(plan, task, options, checkpoint=file)
    resumed, again = planning.refine(plan, task, options, checkpoint=file)
    assert len(calls) == 4  # the first two segments were not done again
    assert again == reports
    for one, two in zip(resumed.segments, whole.segments, strict=True):
        for name in ("inputs", "configurations", "knots"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert planning.refine(plan, task, options, checkpoint=file)[1] == reports
    assert len(calls) == 4

    for change in ({"h": 0.05}, {"impc": planning.ImpcOptions(iterations=5)}):
        other = options.replace(**change)
        with pytest.raises(ValueError, match=r"checkpoint: .*another plan, task or other options"):
            planning.refine(plan, task, other, checkpoint=file)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"checkpoint: .*not one of this refinement"):
        planning.refine(plan, task, options, checkpoint=file)
