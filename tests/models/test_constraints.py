"""Bilateral constraints inside the step: connect, weld, joint coupling."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim
from qdsim.description import Connect, Coupling, Weld

# A four-bar linkage closed by a connect, next to a ball that it pushes over a plane.
FOUR_BAR = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom friction="0.6 0.02 0.01" contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="ground" type="plane" size="1 1 1"/>
    <body name="crank" pos="0 0 0.3"><joint name="crank" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
      <body name="coupler" pos="0 0 0.15"><joint name="coupler" axis="0 1 0"/>
        <geom name="coupler" type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.05" mass="0.3"/></body></body>
    <body name="rocker" pos="0.3 0 0.3"><joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2" mass="0.3"/></body>
    <body name="ball" pos="0.15 0.0 0.6"><freejoint/><geom name="ball" type="sphere" size="0.05" mass="0.4"/></body>
  </worldbody>
  <contact><pair geom1="coupler" geom2="ball" friction="0.6 0.6 0.01 0.001 0.001"/></contact>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.3 0 0.05"/></equality>
  <actuator><position joint="crank" kp="80"/></actuator>
</mujoco>"""

# Two free boxes welded with a turn, dragged by an actuated slider that is connected to one of them.
WELDED = """
<mujoco><option gravity="0.2 0 -9.81"/>
  <worldbody>
    <body name="cart" pos="0 0 0.5"><joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size="0.05" mass="0.2"/></body>
    <body name="a" pos="0.1 0.05 0.3" euler="10 20 30"><freejoint name="a"/>
      <inertial pos="0.01 0.02 0" mass="0.5" diaginertia="0.002 0.003 0.004"/></body>
    <body name="b" pos="0.3 0 0.2" euler="-20 5 60"><freejoint name="b"/>
      <inertial pos="0 0.02 0.01" mass="0.3" diaginertia="0.002 0.001 0.002"/></body>
  </worldbody>
  <equality><connect name="pin" body1="cart" body2="a" anchor="0.02 0 -0.1"/>
    <weld name="weld" body1="a" body2="b"/></equality>
  <actuator><position joint="x" kp="200"/><position joint="z" kp="300"/></actuator>
</mujoco>"""

# A gripper: the second finger mimics the first by a polynomial, a spring pulls on both.
COUPLED = """
<mujoco><option gravity="0 0 0"/>
  <worldbody>
    <body name="left" pos="-0.1 0 0"><joint name="left" type="slide" axis="1 0 0" stiffness="20" springref="-0.05"/>
      <geom type="sphere" size="0.03" mass="0.1"/></body>
    <body name="right" pos="0.1 0 0"><joint name="right" type="slide" axis="-1 0 0" stiffness="5"/>
      <geom type="sphere" size="0.03" mass="0.1"/></body>
    <body name="disc" pos="0.01 0.01 0"><joint name="dx" type="slide" axis="1 0 0"/>
      <joint name="dy" type="slide" axis="0 1 0"/><joint name="dt" type="hinge" axis="0 0 1"/>
      <geom type="sphere" size="0.04" mass="0.2"/></body>
  </worldbody>
  <equality><joint name="mimic" joint1="right" joint2="left" polycoef="0.01 0.9 0.5 -2 1"/></equality>
  <actuator><position joint="left" kp="300"/></actuator>
</mujoco>"""


# A crank, a coupler and a rocker, and a welded plate, all on an arm of a hinge and a ball joint.
CARRIED = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="arm" euler="10 20 30"><joint name="turn" axis="0 0 1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.5 0 0" mass="1"/>
      <body name="wrist" pos="0.5 0 0"><joint name="wrist" type="ball" stiffness="30"/>
        <geom type="sphere" size="0.05" mass="0.5"/>
        <body name="crank" pos="0.1 0 0"><joint name="crank" axis="0 1 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
          <body name="coupler" pos="0 0 0.15"><joint name="coupler" axis="0 1 0"/>
            <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.05" mass="0.3"/></body></body>
        <body name="rocker" pos="0.4 0 0"><joint name="rocker" axis="0 1 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2" mass="0.3"/></body>
        <body name="plate" pos="-0.1 0 0.1"><joint name="px" type="slide" axis="1 0 0"/>
          <joint name="py" type="slide" axis="0 1 0"/><joint name="pz" type="slide" axis="0 0 1"/>
          <joint name="plate" type="ball"/>
          <inertial pos="0.01 0 0.02" mass="0.2" diaginertia="0.002 0.003 0.004"/></body></body></body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.3 0 0.05"/>
    <weld name="weld" body1="plate" body2="wrist"/></equality>
  <actuator><position joint="turn" kp="200"/><position joint="crank" kp="80"/></actuator>
</mujoco>"""


def scene(text: str, spread: float, push: float) -> Scene:
    model = qdsim.load(text)
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, spread), push))


SCENES = {
    "four bar": scene(FOUR_BAR, 0.05, 0.3),
    "welded": scene(WELDED, 0.05, 0.05),
    "coupled": scene(COUPLED, 0.02, 0.05),
    "carried": scene(CARRIED, 0.05, 0.1),
}


def violation(model: qdsim.Model, q: np.ndarray) -> np.ndarray:
    """From public queries: anchors apart, rotations apart (sine of the angle), couplings missed."""
    out = []
    for item in model.description.constraints:
        if isinstance(item, Coupling):
            y = q[model.slice_q(item.joint)][0]
            x = q[model.slice_q(item.follows)][0]
            out.append([y - np.polyval(item.coefficients[::-1], x)])
            continue
        (pa, Ra), (pb, Rb) = model.body_pose(q, item.body_a), model.body_pose(q, item.body_b)
        out.append(pb + Rb @ item.anchor_b - pa - Ra @ item.anchor_a)
        if isinstance(item, Weld):
            relative = np.zeros(9)
            mujoco.mju_quat2Mat(relative, np.array(item.quat))
            error = Rb @ (Ra @ relative.reshape(3, 3)).T
            out.append(
                [error[2, 1] - error[1, 2], error[0, 2] - error[2, 0], error[1, 0] - error[0, 1]]
            )
    return np.concatenate(out)


@pytest.mark.parametrize("name", list(SCENES))
@pytest.mark.parametrize("kappa", [None, 1e2])
def test_steps_close_the_constraints(name: str, kappa: float | None) -> None:
    """The violation is solved for to first order: repeated steps converge quadratically."""
    model = SCENES[name].model
    q, u = SCENES[name].sample(np.random.default_rng(0))
    options = qdsim.Options(kappa=kappa)
    assert np.abs(violation(model, q)).max() > 1e-3
    for _ in range(8):
        q = qdsim.step(model, q, u, options).q_next
    for _ in range(40):
        q = qdsim.step(model, q, u, options).q_next
        assert np.abs(violation(model, q)).max() < 1e-3
    settled = np.abs(qdsim.step(model, q, u, options).delta).max()
    assert np.abs(violation(model, q)).max() < 1e-9 + settled


@pytest.mark.parametrize("name", list(SCENES))
@pytest.mark.parametrize("kappa", [None, 1e2])
def test_derivatives(name: str, kappa: float | None) -> None:
    report = compare(SCENES[name], qdsim.Options(kappa=kappa, margin=0.3), 8)
    print(name, report)
    assert report.share >= 0.8
    assert report.worst <= STANDARD


@pytest.mark.parametrize("kappa", [None, 300.0])
def test_derivatives_of_what_a_carrier_moves(kappa: float | None) -> None:
    """Springs in the constraints' place leave the anchors apart, and rows, forces and both products know who carries
    both."""
    carried = scene(CARRIED, 0.1, 0.2)
    options = qdsim.Options(h=0.05, kappa=kappa, soft_constraints=True)
    report = compare(carried, options, 6)
    assert report.share >= 0.8
    assert report.worst <= STANDARD
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, u = carried.sample(rng)
        assert np.abs(violation(carried.model, q)).max() > 0.01
        lin = qdsim.linearize(carried.model, q, u, options)
        d = qdsim.differentiate(carried.model, q, u, options)
        eye, scale = np.eye(carried.model.nv), max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": eye}).T, lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(eye)["q"], lin.A, atol=1e-9 * scale)


@pytest.mark.parametrize("turned", [1e-8, 1e-6, 1e-4])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
def test_a_carrier_closes_no_gap_of_the_last_digits(turned: float, share: float) -> None:
    """A loop whose pin is out of its plane by what files round to, and by more in its plane, since it has moved. Its
    own joints close the latter alone; the wrist, which carries it, could close the former by turning a lever of that
    length, and did by so many radians."""
    text = CARRIED.replace('type="ball" stiffness', 'axis="0.3 0 1" stiffness')
    exact = qdsim.load(text)
    loop, pin = exact.description, exact.description.constraints[0]
    assert isinstance(pin, Connect)
    off = (0.0, 0.2 * share * turned, 0.0)
    moved = dataclasses.replace(pin, anchor_b=tuple(np.add(pin.anchor_b, off)))
    model = qdsim.Model(dataclasses.replace(loop, constraints=(moved, *loop.constraints[1:])))
    q, u = np.array(model.default_q), model.command_from(model.default_q) + [0.02, 0.1]
    q[model.slice_q("rocker")] += turned
    expected, got = (qdsim.step(m, q, u, qdsim.Options(h=0.05)) for m in (exact, model))
    np.testing.assert_allclose(got.q_next, expected.q_next, atol=1e-7)


def test_hanging_load_is_carried_by_the_connect() -> None:
    model = SCENES["welded"].model
    q, u = np.array(model.default_q), model.command_from(model.default_q)
    for _ in range(300):
        step = qdsim.step(model, q, u, qdsim.Options())
        q = step.q_next
    pin, weld = step.constraint_force
    gravity = np.array([0.2, 0.0, -9.81])
    np.testing.assert_allclose(pin[:3], -0.8 * gravity, atol=1e-5)
    np.testing.assert_allclose(weld[:3], -0.3 * gravity, atol=1e-5)
    np.testing.assert_array_equal(pin[3:], 0.0)
    # the cart sinks on its own springs by the load
    lift = u[1] - q[model.slice_q("z")][0]
    assert lift == pytest.approx(0.8 * 9.81 / 300.0, abs=1e-6)


def test_coupling_force_balances_the_follower() -> None:
    model = SCENES["coupled"].model
    q, u = np.array(model.default_q), np.array([0.02])
    q[model.slice_q("dy")] += 1.0  # the disc out of the way
    for _ in range(30):
        step = qdsim.step(model, q, u, qdsim.Options(margin=0.0))
        q = step.q_next
    follower = q[model.slice_q("right")][0]
    np.testing.assert_allclose(step.constraint_force[0], [5.0 * follower, 0, 0, 0, 0, 0], atol=1e-9)


def test_redundant_constraints_share_the_load() -> None:
    twice = WELDED.replace(
        '<weld name="weld" body1="a" body2="b"/>',
        '<weld name="weld" body1="a" body2="b"/><weld name="again" body1="a" body2="b"/>',
    )
    once, double = qdsim.load(WELDED), qdsim.load(twice)
    u = once.command_from(once.default_q) + 0.02
    a, b = (qdsim.step(model, model.default_q, u, qdsim.Options()) for model in (once, double))
    np.testing.assert_allclose(a.q_next, b.q_next, atol=1e-9)
    np.testing.assert_allclose(a.constraint_force[1], b.constraint_force[1:].sum(axis=0), atol=1e-6)


@pytest.mark.parametrize("error", [0.0, 1e-10, 1e-8])
def test_a_loop_closed_twice_moves_like_one_closed_once(error: float) -> None:
    """A second pin on the first one's axis, off by the last digits of a file: the same motion, the same derivative."""
    again = (
        '<connect name="again" body1="coupler" body2="rocker" anchor="0.3 0.04 0.05"/></equality>'
    )
    once, twice = qdsim.load(FOUR_BAR), qdsim.load(FOUR_BAR.replace("</equality>", again))
    loop, pin = twice.description, twice.description.constraints[1]
    assert isinstance(pin, Connect)
    moved = dataclasses.replace(
        pin, anchor_b=tuple(np.add(pin.anchor_b, [error, -0.7 * error, -0.5 * error]))
    )
    twice = qdsim.Model(dataclasses.replace(loop, constraints=(loop.constraints[0], moved)))
    rng = np.random.default_rng(4)
    for _ in range(8):
        q, u = SCENES["four bar"].sample(rng)
        a, b = (qdsim.linearize(m, q, u, qdsim.Options()) for m in (once, twice))
        np.testing.assert_allclose(b.step.q_next, a.step.q_next, rtol=0, atol=1e-7)
        np.testing.assert_allclose(b.A, a.A, rtol=0, atol=1e-6 * max(1.0, np.abs(a.A).max()))
        np.testing.assert_allclose(b.B, a.B, rtol=0, atol=1e-6 * max(1.0, np.abs(a.B).max()))
        assert b.step.info.softened == 0
        assert b.step.info.derivative_exact == a.step.info.derivative_exact
        assert b.step.info.tries <= a.step.info.tries


def parallel_cranks(pins: int) -> qdsim.Model:
    """Equal cranks side by side that carry one plate, each but the first by a pin. Their base is turned, so that world
    axes lie along no row."""
    bars, pinned = "", ""
    for i in range(3):
        plate = (
            """<body name="plate" pos="0 0 0.15"><joint name="plate" axis="0 1 0"/>
            <geom type="capsule" size="0.02" fromto="0 0 0 0.4 0 0" mass="0.3"/></body>"""
            if i == 0
            else ""
        )
        bars += f"""<body name="c{i}" pos="{0.2 * i} 0 0"><joint name="c{i}" axis="0 1 0"/>
            <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>{plate}</body>"""
    for i in range(1, pins + 1):
        pinned += f'<connect body1="plate" body2="c{i}" anchor="{0.2 * i} 0 0"/>'
    return qdsim.load(
        f"""<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
        <body euler="20 30 50">{bars}</body></worldbody><equality>{pinned}</equality>
        <actuator><position joint="c0" kp="80"/></actuator></mujoco>"""
    )


def test_cranks_side_by_side_move_although_they_contradict_each_other() -> None:
    """Two pins hold three of four joints, and say so a little differently: the plate of a parallel linkage moves with
    the first crank, and stays upright."""
    model = parallel_cranks(2)
    loop, pin = model.description, model.description.constraints[1]
    assert isinstance(pin, Connect)
    moved = dataclasses.replace(pin, anchor_b=tuple(np.add(pin.anchor_b, [1e-8, 0.0, 2e-8])))
    model = qdsim.Model(dataclasses.replace(loop, constraints=(loop.constraints[0], moved)))
    q = np.array(model.default_q)
    crank, plate = model.slice_q("c0"), model.slice_q("plate")
    for k in range(40):
        step = qdsim.step(model, q, [0.6 * np.sin(0.1 * k)], qdsim.Options())
        q = np.array(step.q_next)
        assert step.info.softened == 0
        np.testing.assert_allclose(q[crank], 0.6 * np.sin(0.1 * k), atol=2e-2)
        np.testing.assert_allclose(q[plate], -q[crank], atol=1e-5)
        np.testing.assert_allclose(q[model.slice_q("c2")], q[crank], atol=1e-5)
        assert np.abs(violation(model, q)).max() < 1e-2 * 0.15


def test_contradicting_constraints_are_infeasible() -> None:
    text = COUPLED.replace(
        "</equality>",
        '<joint name="other" joint1="right" joint2="left" polycoef="0.2 0.9 0.5 -2 1"/></equality>',
    )
    model = qdsim.load(text)
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        qdsim.step(model, model.default_q, [0.0], qdsim.Options())


@pytest.mark.parametrize("name", list(SCENES))
def test_same_rest_as_mujoco(name: str) -> None:
    """MuJoCo's own residuals vanish where ours do: anchors and frames are read as it means them."""
    ours = SCENES[name].model
    theirs = mujoco.MjModel.from_xml_string(
        {"four bar": FOUR_BAR, "welded": WELDED, "coupled": COUPLED, "carried": CARRIED}[name]
    )
    data = mujoco.MjData(theirs)
    q, u = SCENES[name].sample(np.random.default_rng(3))
    for _ in range(200):
        q = qdsim.step(ours, q, u, qdsim.Options()).q_next
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    equality = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert equality.sum() > 0
    np.testing.assert_allclose(data.efc_pos[: data.nefc][equality], 0.0, atol=1e-6)


def test_sites_and_round_trip() -> None:
    text = (
        WELDED.replace('<body name="a"', '<body name="a"')
        .replace(
            '<inertial pos="0.01 0.02 0"',
            '<site name="s" pos="0.1 0 0.02" euler="30 0 10"/><inertial pos="0.01 0.02 0"',
        )
        .replace(
            '<inertial pos="0 0.02 0.01"',
            '<site name="t" pos="0 0.1 0" euler="0 0 40"/><inertial pos="0 0.02 0.01"',
        )
    )
    text = text.replace(
        '<weld name="weld" body1="a" body2="b"/>', '<weld name="weld" site1="s" site2="t"/>'
    )
    model = qdsim.load(text)
    again = qdsim.load(model.description.to_mjcf())
    q, u = model.default_q, model.command_from(model.default_q)
    a, b = (qdsim.step(m, q, u, qdsim.Options()) for m in (model, again))
    np.testing.assert_allclose(a.q_next, b.q_next, atol=1e-9)
    site_s, site_t = (mujoco.MjModel.from_xml_string(text).site(n).pos for n in ("s", "t"))
    weld = model.description.constraints[1]
    assert isinstance(weld, Weld)
    np.testing.assert_allclose([weld.anchor_a, weld.anchor_b], [site_s, site_t])


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Connect("c", "cart", "nobody"), "no body is named 'nobody'"),
        (Connect("c", "cart", "cart"), "both 'cart'"),
        (Coupling("c", "x", "a"), "only hinge and slide"),
        (Coupling("c", "x", "x"), "cannot follow itself"),
    ],
)
def test_bad_constraints_name_the_element(constraint, words: str) -> None:
    import dataclasses

    description = SCENES["welded"].model.description
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(description, constraints=(constraint,))
