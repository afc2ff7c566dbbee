"""Pairs within the margin that are too far apart to act: an exact step computes their contacts when they are read."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdsim

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
import piles

SHAPES = (
    'type="box" size="0.05 0.03 0.04"',
    'type="capsule" size="0.03 0.05"',
    'type="cylinder" size="0.04 0.03"',
    'type="ellipsoid" size="0.05 0.03 0.04"',
    'type="mesh" mesh="wedge"',
)


def crowd(friction: str, condim: int) -> str:
    """An arm of three boxes reaches into ten bodies of all convex shapes."""
    bodies = "".join(
        f'<body pos="{0.12 * (i % 5)} {0.2 + 0.15 * (i // 5)} 0.1"><freejoint/>'
        f'<geom {SHAPES[i % len(SHAPES)]} mass="0.2"/></body>'
        for i in range(10)
    )
    return f"""<mujoco><asset><mesh name="wedge" vertex="0 0 0 0.08 0 0 0 0.08 0 0 0 0.08 0.05 0.05 0.05"/></asset>
    <default><geom friction="{friction}" condim="{condim}"/></default>
    <worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.05"><joint name="a" axis="0 0 1"/><geom type="box" size="0.08 0.02 0.02" pos="0.08 0 0"/>
        <body pos="0.18 0 0"><joint name="b" axis="0 0 1"/><geom type="box" size="0.08 0.02 0.02" pos="0.08 0 0"/>
          <body pos="0.18 0 0"><joint name="c" axis="0 0 1"/><geom type="capsule" size="0.02 0.05" euler="0 90 0"
            pos="0.06 0 0"/></body></body></body>
      {bodies}</worldbody>
    <actuator><position joint="a" kp="50"/><position joint="b" kp="50"/><position joint="c" kp="50"/></actuator>
    </mujoco>"""


def agree(model: Any, q: Any, u: Any, options: Any) -> Any:
    """The step beside a linearization's, whose list is whole from the start; both steps."""
    step, whole = qdsim.step(model, q, u, options), qdsim.linearize(model, q, u, options).step
    np.testing.assert_allclose(step.q_next, whole.q_next, atol=1e-8)
    assert step.info.missed_pairs == whole.info.missed_pairs
    contacts = step.contacts
    for field in ("pair", "dist", "pos", "frame", "friction"):
        np.testing.assert_array_equal(contacts[field], whole.contacts[field])
    near = len(contacts) - sum(contacts["dist"] > options.margin)  # the others were missed
    np.testing.assert_array_equal(contacts["pos"][:near], model.collide(q, options.margin)["pos"])
    assert step.info.contact_count == len(contacts)
    return step, whole


@pytest.mark.parametrize("law", [("0.5", 3), ("0.3 0.02 0.001", 6)], ids=["sliding", "rolling"])
def test_steps_are_those_of_all_contacts(law: tuple[str, int]) -> None:
    model = qdsim.load(crowd(*law))
    rng = np.random.default_rng(3)
    q, loaded, failed = np.array(model.default_q), 0, 0
    for k in range(60):
        u = q[:3] + rng.choice([0.0, 0.05, 0.5]) * rng.standard_normal(3)
        options = qdsim.Options(
            leave_distant_out=True, h=0.05, margin=float(rng.choice([0.03, 0.3, np.inf]))
        )
        try:
            step, whole = agree(model, q, u, options)
        except qdsim.SolverError as error:  # of penetrations of the random starts
            with pytest.raises(qdsim.SolverError) as caught:
                qdsim.linearize(model, q, u, options)
            assert str(error).split(":", 1)[1] == str(caught.value).split(":", 1)[1]
            q, failed = np.array(model.default_q), failed + 1
            continue
        # Forces of redundant contacts are not unique, what they do to each body is.
        for one in (step, whole):
            loaded += int((one.contacts["force"][:, 0] > 1e-3).sum())
        mine, theirs = (_wrenches(model, one.contacts) for one in (step, whole))
        np.testing.assert_allclose(mine, theirs, atol=1e-5 * max(1.0, abs(theirs).max()))
        q = np.array(step.q_next) if k % 10 else np.array(model.default_q)
        if not k % 10:
            q[:3] = rng.uniform(-1, 1, 3)
    assert loaded > 500 and failed < 10


def _wrenches(model: Any, contacts: Any) -> Any:
    """Force and moment about the origin that each body gets."""
    total = np.zeros((model.body_count, 6))
    for c in contacts:
        force, moment = c["frame"].T @ c["force"][:3], c["frame"].T @ c["force"][3:]
        wrench = np.concatenate([force, np.cross(c["pos"], force) + moment])
        total[c["body_b"]] += wrench
        total[c["body_a"]] -= wrench
    return total


def test_what_is_pushed_pushes_on() -> None:
    """Nothing but the pusher is commanded to move, by far; each box then stands at the end of the one before."""
    slides = "".join(
        f'<body pos="{0.5 * i} 0 0"><joint name="j{i}" type="slide" axis="1 0 0"/>'
        f'<geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
        for i in range(5)
    )
    model = qdsim.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody>{slides}</worldbody>
        <actuator><position joint="j0" kp="1e6"/></actuator></mujoco>"""
    )
    step, _ = agree(
        model,
        model.default_q,
        [1.0],
        qdsim.Options(leave_distant_out=True, margin=10.0, epsilon=1e-6),
    )
    np.testing.assert_allclose(step.q_next, [1.0, 0.7, 0.4, 0.1, 0.0], atol=1e-5)
    assert len({*step.contacts["pair"].tolist()}) == 10


def test_a_step_keeps_what_it_needs() -> None:
    """Contacts are there after the caller's arrays and model are gone, from every way to a Step, and as warm starts."""
    model = qdsim.load(crowd("0.5", 3))
    q, u = np.array(model.default_q), np.array([0.2, 0.1, -0.1])
    options = qdsim.Options(leave_distant_out=True, h=0.05, margin=0.3)
    expected = qdsim.linearize(model, q, u, options).step.contacts
    step, info = qdsim.step(model, q, u, options), qdsim.step(model, q, u, options).info
    warm = qdsim.step(model, q, u, options, warm_start=step)
    np.testing.assert_allclose(warm.q_next, step.q_next, atol=1e-9)
    copies = [
        pickle.loads(pickle.dumps(one)) for one in (step, qdsim.step(model, q, u, options), warm)
    ]
    count = pickle.loads(pickle.dumps(qdsim.step(model, q, u, options).info)).contact_count
    shown = repr(qdsim.step(model, q, u, options))
    q[:] = np.nan
    del model
    for one in (step, warm, *copies):
        np.testing.assert_array_equal(one.contacts["pos"], expected["pos"])
        assert not one.contacts.flags.writeable and one.contacts is one.contacts
    assert info.contact_count == count == len(expected)
    assert f"contacts={len(expected)}" in shown


def test_mocap_bodies_stand_where_the_step_had_them() -> None:
    model = qdsim.load(
        """<mujoco><worldbody><body name="hand" mocap="true"><geom type="box" size="0.1 0.1 0.1"/></body>
        <body pos="0.6 0 0"><joint type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.1 0.1"/></body>
        </worldbody><actuator/></mujoco>"""
    )
    pose = {"hand": [-0.1, 0, 0, 1, 0, 0, 0]}
    step = qdsim.step(
        model, [0.0], [], qdsim.Options(leave_distant_out=True, margin=1.0), mocap=pose
    )
    np.testing.assert_allclose(step.contacts["dist"], 0.5, atol=1e-12)
    assert len(step.contacts) == 4


def test_starts_that_contradict_themselves_name_the_same_pairs() -> None:
    """A box between clamped blocks that overlap it, beside others far away: the error is that of the whole list."""
    model = qdsim.load(
        """<mujoco><worldbody>
        <body name="left" pos="-0.15 0 0"><geom type="box" size="0.1 0.1 0.1"/></body>
        <body name="right" pos="0.15 0 0"><geom type="box" size="0.1 0.1 0.1"/></body>
        <body name="far" pos="0 0 1"><geom type="box" size="0.1 0.1 0.1"/></body>
        <body name="box"><joint type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.1 0.1"/></body>
        </worldbody></mujoco>"""
    )
    errors = []
    for call in (qdsim.step, qdsim.linearize):
        with pytest.raises(qdsim.SolverError) as caught:
            call(model, [0.0], [], qdsim.Options(leave_distant_out=True, margin=2.0))
        errors.append(str(caught.value).split(":", 1)[1].split("(what", 1)[0])
    assert errors[0] == errors[1] and "'left'" in errors[0] and "'far'" not in errors[0]
    soft = qdsim.step(
        model, [0.0], [], qdsim.Options(leave_distant_out=True, margin=2.0, infeasible="soften")
    )
    np.testing.assert_allclose(soft.q_next, 0.0, atol=1e-6)
    assert len({*soft.contacts["pair"].tolist()}) == 3


def test_distant_pairs_that_a_step_would_miss_come_in_once() -> None:
    """Piles of `make soak`, some with margins of millimetres: of those a step would run into, pairs were found again
    and again, without an end. The motions are those of all contacts."""
    rng, compared = np.random.default_rng(0), 0
    while compared < 1300:
        xml, options, size = piles.scene(rng)
        model, options = qdsim.load(xml), options.replace(kappa=None)
        u = piles.commands(rng, model, size, 120)
        for q, course in zip(piles.starts(rng, model), u, strict=True):
            for command in course:
                try:
                    whole = qdsim.step(model, q, command, options)
                except qdsim.SolverError:
                    break
                short = qdsim.step(model, q, command, options.replace(leave_distant_out=True))
                np.testing.assert_allclose(short.q_next, whole.q_next, atol=1e-6 * size)
                q, compared = whole.q_next, compared + 1
