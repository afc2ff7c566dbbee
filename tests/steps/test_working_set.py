"""Contacts and limits that a step cannot reach are left out of its program: the answer is that of all
of them, also where the first choice misses what matters, and so are its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ARM, FLOATING, GEOMS, PENDULUM, PUSHER, Scene, arm, floating, pendulum, pusher
from test_linearize import compare
from test_step_optimality import check_exact

import qdsim

MARGIN = 10.0

# Far from everything, fast past a wall without friction: beside such a command every gap is small, and
# all contacts are in the program from the start.
STIRRER = """<body pos="90 0 0"><joint name="stirrer" type="slide" axis="0 0 1"/>
  <geom type="sphere" size="0.1" contype="2" conaffinity="2" condim="1" mass="1"/></body>
  <geom type="box" pos="91 0 0" size="0.5 1 1" contype="2" conaffinity="2" condim="1"/></worldbody>"""


def stirred(mjcf: str) -> qdsim.Model:
    mjcf = mjcf.replace("</worldbody>", STIRRER)
    return qdsim.load(mjcf.replace("</actuator>", '<position joint="stirrer" kp="1"/></actuator>'))


def sources(condim: int) -> dict[str, tuple[str, Scene]]:
    boxes = PUSHER.format(condim=condim, geom=GEOMS["box"])
    return {
        "box": (boxes, pusher("box", condim)),
        "arm": (ARM.format(condim=condim), arm(condim)),
        "pendulum": (PENDULUM.format(condim=condim), pendulum(condim)),
        "floating": (FLOATING.format(condim=condim), floating(condim)),
    }


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_same_as_with_all_contacts(condim: int, friction: str) -> None:
    rng = np.random.default_rng(condim)
    options = qdsim.Options(margin=MARGIN, friction=friction)
    fewer = 0
    for name, (mjcf, scene) in sources(condim).items():
        whole, model = stirred(mjcf), scene.model
        for index in range(8):
            q, u = scene.sample(rng)
            u = u + (0.0, 0.3)[index % 2] * rng.standard_normal(model.nu)
            held = () if index % 3 else (model.joint_names[-1],)
            own = options.replace(held=held)
            try:
                part = qdsim.step(model, q, u, own)
            except qdsim.SolverError as error:
                assert error.info.status == "infeasible"
                continue
            full = qdsim.step(whole, np.append(q, 0.0), np.append(u, 1e3), own)
            np.testing.assert_allclose(
                part.q_next, full.q_next[:-1], atol=1e-8, err_msg=f"{name} {index}"
            )
            fewer += part.info.row_count < full.info.row_count - 1
    assert fewer > 8  # or nothing was tested


CHAIN = """<mujoco><option gravity="0 0 {g}"/><default><geom friction="0.5 0.01 0.01" condim="{condim}"/></default>
<worldbody><geom type="plane" size="9 9 .1"/>
<body pos="0 0 .1"><joint name="push" type="slide" axis="1 0 0"/><geom type="box" size=".05 .1 .05" mass="1"/></body>
{boxes}</worldbody><actuator><position joint="push" kp="1e4"/></actuator></mujoco>"""


def chain(count: int, gap: float, condim: int = 3, g: float = -9.81) -> tuple[qdsim.Model, str]:
    boxes = "".join(
        f'<body name="b{i}" pos="{(i + 1) * (0.1 + gap)} 0 .1"><freejoint/>'
        '<geom type="box" size=".05 .08 .05" mass=".3"/></body>'
        for i in range(count)
    )
    text = CHAIN.format(g=g, condim=condim, boxes=boxes)
    return qdsim.load(text), text


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize(("count", "push"), [(1, 0.3), (4, 0.1), (9, 0.5)])
def test_a_chain_of_boxes_pushed_through_gaps(count: int, push: float, friction: str) -> None:
    """One box after the other is reached, by more boxes than there are rounds; the last may not be."""
    model, _ = chain(count, 0.02)
    q = np.array(model.default_q)
    options = qdsim.Options(margin=MARGIN, friction=friction, epsilon=0.3)
    scene = Scene(model, lambda rng: (q, u))
    u = [push]
    check_exact(scene, q, u, options)
    step = qdsim.step(model, q, u, options)
    x = [step.q_next[0]] + [step.q_next[model.slice_q(f"b{i}")][0] for i in range(count)]
    gaps = np.diff(x) - 0.1
    assert gaps.min() >= -1e-9
    assert x[0] > 0.5 * push
    assert x[1] > 0.12 + 0.01 * (push > 0.02)  # it was reached


def test_without_friction_the_chain_closes_up() -> None:
    """Boxes that slide on rails end where the pusher leaves them: a closed form."""
    bodies = "".join(
        f'<body pos="{0.25 * i} 0 0"><joint name="s{i}" type="slide" axis="1 0 0"/>'
        '<geom type="sphere" size="0.1" mass="1e-6"/></body>'
        for i in range(10)
    )
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 0"/><worldbody>{bodies}</worldbody>'
        '<actuator><position joint="s0" kp="1e4"/></actuator></mujoco>'
    )
    for push in (0.04, 0.12, 0.31, 0.5):
        step = qdsim.step(model, np.zeros(10), [push], qdsim.Options(margin=MARGIN))
        expected = [0.0] * 10
        expected[0] = push
        for i in range(1, 10):
            expected[i] = max(0.0, expected[i - 1] - 0.05)
        np.testing.assert_allclose(step.q_next, expected, atol=1e-6)


def test_motion_along_a_surface_is_seen() -> None:
    """The cone acts at a distance on what slides past: gap >= mu |slip|, however wide the gap."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><default><geom friction="0.5 0 0"/></default><worldbody>
        <geom type="plane" size="9 9 .1"/><body pos="0 0 0.11"><joint name="x" type="slide" axis="1 0 0"/>
        <joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody>
        <actuator><position joint="x" kp="100"/><position joint="z" kp="100"/></actuator></mujoco>"""
    )
    for slip, lift in ((0.019, 0.0), (0.021, 0.0005), (0.5, 0.24)):
        step = qdsim.step(model, [0.0, 0.0], [slip, 0.0], qdsim.Options(margin=MARGIN))
        rise = max(0.0, (0.5 * slip - 0.01) / 1.25)  # least squares to the cone's face
        np.testing.assert_allclose(step.q_next, [slip - 0.5 * rise, rise], atol=1e-9)
        assert step.q_next[1] <= lift + 1e-9


def test_limits_that_others_run_into() -> None:
    """A passive finger is pushed into its limit, and a free one falls into its own."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 -9.81"/><worldbody>
        <body><joint name="push" type="slide" axis="1 0 0"/><geom type="sphere" size="0.05" mass="1"/></body>
        <body pos="0.2 0 0"><joint name="stop" type="slide" axis="1 0 0" range="-1 0.03"/>
          <geom type="sphere" size="0.05" mass="1"/></body>
        <body pos="0 3 0"><joint name="fall" type="slide" axis="0 0 1" range="-0.01 1"/>
          <geom type="sphere" size="0.05" mass="1"/></body>
        </worldbody><actuator><position joint="push" kp="1000"/></actuator></mujoco>"""
    )
    step = qdsim.step(model, [0, 0, 0], [0.5], qdsim.Options(margin=MARGIN))
    np.testing.assert_allclose(step.q_next, [0.13, 0.03, -0.01], atol=1e-9)
    stops = -1000 * 0.37 + 0.03 / 0.1**2  # the spring's force, less what its own mass takes
    np.testing.assert_allclose(step.limit_force, [0, stops, 9.81 - 0.01 / 0.1**2], atol=1e-5)


def test_without_mass_the_first_choice_may_be_unbounded() -> None:
    """Nothing but contacts out of reach holds the box: the program that decides has them."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
        <body pos="0 0 2"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
    )
    step = qdsim.step(model, model.default_q, [], qdsim.Options(epsilon=0.0, margin=MARGIN))
    assert step.q_next[2] == pytest.approx(0.1, abs=1e-8)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_derivatives_where_rounds_were_needed(friction: str) -> None:
    model, text = chain(3, 0.02)
    rng = np.random.default_rng(1)
    q0 = np.array(model.default_q)
    for i in range(3):
        q0[model.slice_q(f"b{i}")][2] = 0.0515
    spread = np.concatenate([[0.002], *[[0.002, 0.01, 0.0005, 0.003, 0.003, 0.1]] * 3])

    def sample(rng: np.random.Generator):
        q = model.integrate(q0, spread * rng.uniform(-1.0, 1.0, model.nv))
        return q, np.array([0.08 + 0.02 * rng.uniform()])

    report = compare(
        Scene(model, sample), qdsim.Options(margin=MARGIN, friction=friction, epsilon=1.0), 4
    )
    assert report.worst <= 1e-6
    assert report.differentiable >= 2
    whole = stirred(text)
    q, u = sample(rng)
    lin = qdsim.linearize(model, q, u, qdsim.Options(margin=MARGIN, friction=friction))
    full = qdsim.linearize(
        whole, np.append(q, 0), np.append(u, 1e3), qdsim.Options(margin=MARGIN, friction=friction)
    )
    np.testing.assert_allclose(lin.A, full.A[:-1, :-1], atol=1e-7)
    np.testing.assert_allclose(lin.B, full.B[:-1, :-1], atol=1e-7)


def test_products_of_derivatives_with_fewer_contacts() -> None:
    model, _ = chain(4, 0.02)
    options = qdsim.Options(margin=MARGIN)
    q, u = np.array(model.default_q), [0.1]
    lin = qdsim.linearize(model, q, u, options)
    kept = qdsim.differentiate(model, q, u, options)
    directions = np.eye(model.nv)
    np.testing.assert_allclose(kept.jvp({"q": directions}), lin.A.T, atol=1e-8)
    np.testing.assert_allclose(kept.vjp(directions)["q"], lin.A, atol=1e-8)
    assert kept.step.info.row_count < 3 * len(kept.step.contacts)
