"""What gives way: springs and dry friction of tendons, contacts with a stiffness, soft constraints."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
from scenes import Scene, _around
from test_constraints import SCENES as CONSTRAINED
from test_linearize import STANDARD, STENCIL, compare
from test_tendons import HAND

import qdsim
from qdsim.description import Weld

G = 9.81


def cart(**tendon: object) -> qdsim.Model:
    """A slide along x without gravity on it, with one tendon."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -G))
    scene.body("cart", mass=2.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("cart", "slide", axis=(1, 0, 0))
    scene.tendon("t", joints={"cart": 1.0}, **tendon)  # type: ignore[arg-type]
    return qdsim.build(scene.build())


def soft_hand() -> Scene:
    """The hand of test_tendons with springs in all tendons, one with a slack range, and friction."""
    text = HAND.format(closing=0.75, hanging=0.9, knuckles=0.05)
    for name, more in (
        ("closing", 'stiffness="40" springlength="0.2 0.7"'),
        ("hanging", 'stiffness="60" springlength="0.6"'),
        ("knuckles", 'stiffness="3" frictionloss="0.5"'),
    ):
        text = text.replace(f'name="{name}"', f'name="{name}" {more}')
    model = qdsim.load(text)
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, 0.05), 0.3))


# ---------------------------------------------------------------- tendons


@pytest.mark.parametrize(("rest", "end"), [((0.4, 0.4), 0.4), ((0.1, 0.4), 0.4)])
def test_a_weight_on_a_tendon_spring(rest: tuple[float, float], end: float) -> None:
    scene = qdsim.SceneBuilder()
    scene.body("weight", pos=(0, 0, 0.3), mass=0.7, com=(0, 0, 0), inertia=(0.01, 0.01, 0.01))
    scene.joint("weight", "slide", axis=(0, 0, 1))
    points = [("world", (0, 0, 1)), ("weight", (0, 0, 0))]
    scene.tendon("spring", points=points, stiffness=50.0, springrange=rest)
    model = qdsim.build(scene.build())
    q = np.zeros(1)
    for _ in range(600):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.2))
        q = step.q_next
    assert model.tendon_lengths(q)[0] == pytest.approx(end + 0.7 * G / 50.0, rel=1e-6)
    assert step.tendon_force[0] == pytest.approx(-0.7 * G, rel=1e-6)


def test_a_slack_spring_rests_within_its_range() -> None:
    model = cart(stiffness=100.0, springrange=(-0.2, 0.3))
    options = qdsim.Options(epsilon=1.0, h=0.1)
    inertia = 2.0 / 0.01
    for q in (-0.5, -0.2, 0.1, 0.3, 0.6):
        step = qdsim.step(model, [q], [], options)
        beyond = min(q + 0.2, 0.0) + max(q - 0.3, 0.0)
        expected = q - beyond * 100.0 / (100.0 + inertia)
        assert step.q_next[0] == pytest.approx(expected, abs=1e-12)
        assert step.tendon_force[0] == pytest.approx(
            -100.0 * beyond * inertia / (100.0 + inertia), abs=1e-9
        )


@pytest.mark.parametrize("push", [-7.0, -3.0, -2.9, 0.0, 1.0, 3.0, 3.1, 20.0])
def test_dry_friction_holds_up_to_its_limit(push: float) -> None:
    model = cart(frictionloss=3.0)
    step = qdsim.step(model, [0.4], [], qdsim.Options(h=0.1), tau=[push])
    left = np.sign(push) * max(abs(push) - 3.0, 0.0)
    assert step.delta[0] == pytest.approx(left * 0.01 / 2.0, abs=1e-12)
    assert step.tendon_force[0] == pytest.approx(-np.clip(push, -3, 3), abs=1e-9)
    held = qdsim.linearize(model, [0.4], [], qdsim.Options(h=0.1), tau=[push], wrt=("tau",))
    if abs(abs(push) - 3.0) > 0.01:
        assert held.derivatives["tau"][0, 0] == pytest.approx(0.005 * (abs(push) > 3.0), abs=1e-12)


def test_forces_of_springs_are_mujocos() -> None:
    scene = soft_hand()
    model = scene.model
    text = model.description.to_mjcf()
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    for seed in range(5):
        q = scene.sample(np.random.default_rng(seed))[0]
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        lengths, rates = model.tendon_lengths(q), model.tendon_jacobians(q)
        low, high = np.array([item.springrange for item in model.description.tendons]).T
        force = -model.parameters.tendon_stiffness * (
            np.maximum(lengths - high, 0) + np.minimum(lengths - low, 0)
        )
        turned = np.array([model.from_mujoco_qvel(q, row) for row in np.eye(model.nv)])
        np.testing.assert_allclose(turned @ (rates.T @ force), data.qfrc_spring, atol=1e-9)


GRIPPER = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom friction="0.8 0.01 0.001"/></default>
  <worldbody>
    <body name="palm" pos="0 0 0.4" gravcomp="1"><joint name="lift" type="slide" axis="0 0 1"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="0.01 0.01 0.01"/>
      <body name="left" pos="0 0.09 -0.05" gravcomp="1"><joint name="left" type="slide" axis="0 -1 0" range="0 0.085"/>
        <geom name="left" type="box" size="0.02 0.01 0.04" mass="0.05" condim="4"/></body>
      <body name="right" pos="0 -0.09 -0.05" gravcomp="1"><joint name="right" type="slide" axis="0 1 0" range="0 0.085"/>
        <geom name="right" type="box" size="0.02 0.01 0.04" mass="0.05" condim="4"/></body></body>
    <body name="can" pos="0 0.01 0.35"><freejoint/><geom name="can" type="cylinder" size="0.03 0.05" mass="{mass}" condim="4"/></body>
    <geom name="table" type="box" size="0.3 0.3 0.05" pos="0 0 0.25"/>
  </worldbody>
  <contact><exclude body1="palm" body2="world"/></contact>
  <tendon><fixed name="close" stiffness="100" springlength="{rest}"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed></tendon>
  <actuator><position name="lift" joint="lift" kp="5000"/></actuator>
</mujoco>"""


@pytest.mark.parametrize(("mass", "holds"), [(0.2, True), (3.0, False)])
def test_a_gripper_closes_by_its_tendon(mass: float, holds: bool) -> None:
    """One spring along both fingers presses them alike, centres the can, and carries what friction allows."""
    rest, pull = 0.3, 100.0
    model = qdsim.load(GRIPPER.format(mass=mass, rest=rest))
    q, options = np.array(model.default_q), qdsim.Options(h=0.05)
    for _ in range(60):
        step = qdsim.step(model, q, [0.0], options)
        q = step.q_next
    can = model.geom_index("can")
    sides = [model.geom_index(name) for name in ("left", "right")]
    pressed = []
    for side in sides:
        on = [c for c in step.contacts if {int(c["geom_a"]), int(c["geom_b"])} == {can, side}]
        pressed.append(sum(c["force"][0] for c in on))
    length = model.tendon_lengths(q)[0]
    assert step.tendon_force[0] == pytest.approx(pull * (rest - length), rel=1e-6)
    np.testing.assert_allclose(pressed, 0.5 * step.tendon_force[0], rtol=1e-3)
    for height in np.linspace(0.0, 0.1, 41):
        q = qdsim.step(model, q, [height], options).q_next
    for _ in range(60):
        q = qdsim.step(model, q, [0.1], options).q_next
    lifted = q[model.slice_q("can")][2] - 0.35
    # friction of two sides, each pressed by half the force along the tendon
    assert holds == (mass * G < 2 * 0.8 * 0.5 * pull * (rest - length))
    assert (lifted > 0.09) == holds


# ---------------------------------------------------------------- contacts


def ball(stiffness: float | None = None, floor: float | None = None, **geom: object) -> qdsim.Model:
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", stiffness=floor)
    scene.body("ball", pos=(0, 0, 0.1), mass=1.5)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1, stiffness=stiffness, **geom)  # type: ignore[arg-type]
    return qdsim.build(scene.build())


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_a_sphere_rests_at_its_depth(condim: int) -> None:
    k = 2000.0
    cases = {
        "option": (ball(condim=condim), k, k),
        "geometry": (ball(k, condim=condim), None, k),
        "in series": (ball(k, 3 * k, condim=condim), None, 0.75 * k),
        "its own first": (ball(k, condim=condim), 10 * k, k),
    }
    for name, (model, option, stiffness) in cases.items():
        q = np.array(model.default_q)
        for _ in range(200):
            step = qdsim.step(model, q, [], qdsim.Options(contact_stiffness=option))
            q = step.q_next
        assert 0.1 - q[2] == pytest.approx(1.5 * G / stiffness, rel=1e-8), name
        assert step.contacts["force"][0, 0] == pytest.approx(1.5 * G, rel=1e-8)


def test_the_limit_is_the_rigid_contact() -> None:
    rigid = qdsim.step(ball(), ball().default_q, []).q_next
    before = np.inf
    for k in 10.0 ** np.arange(2, 13):
        model = ball(k)
        q = model.integrate(model.default_q, [0, 0, -1e-4, 0, 0, 0])
        step = qdsim.step(model, q, [])
        gap = abs(step.q_next[2] - rigid[2])
        assert gap <= before + 1e-12
        before = gap
    assert before < 1e-10


def test_sticking_friction_holds_without_creep() -> None:
    """On a slope below the friction angle a soft box stays where it is; above, it slides."""
    for angle, sticks in ((0.3, True), (0.6, False)):
        scene = qdsim.SceneBuilder(gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
        scene.geom("world", "plane", stiffness=5e3, friction=0.5)
        scene.body("box", pos=(0, 0, 0.1), mass=1.0)
        scene.joint("box", "free")
        scene.geom("box", "box", (0.1, 0.1, 0.1), friction=0.5)
        model = qdsim.build(scene.build())
        q = np.array(model.default_q)
        for _ in range(100):
            q = qdsim.step(model, q, []).q_next
        settled = q[0]
        for _ in range(50):
            q = qdsim.step(model, q, []).q_next
        assert (abs(q[0] - settled) < 1e-7) == sticks


def test_planar_scenes_and_pyramids() -> None:
    scene = qdsim.SceneBuilder(gravity=(0, 0, -G))
    scene.geom("world", "plane", friction=0.5)
    scene.body("disc", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    scene.joint("disc", "slide", axis=(0, 1, 0))
    scene.joint("disc", "slide", axis=(0, 0, 1), name="z")
    scene.joint("disc", "hinge", axis=(1, 0, 0), name="turn")
    scene.geom("disc", "sphere", 0.1, pos=(0, 0, 0.1), friction=0.5)
    model = qdsim.build(scene.build())
    options = qdsim.Options(contact_stiffness=1e3)
    pushed = [0.5 * G * 0.4, 0.0, 0.0]
    cone = qdsim.step(model, [0, -G / 1e3, 0], [], options, tau=pushed)
    rays = qdsim.step(
        model, [0, -G / 1e3, 0], [], options.replace(friction="pyramid", rays=2), tau=pushed
    )
    np.testing.assert_allclose(cone.q_next, rays.q_next, atol=1e-10)
    assert cone.contacts["force"][0, 0] == pytest.approx(G, rel=1e-6)
    with pytest.raises(ValueError, match="contact_stiffness: needs friction='cone'"):
        qdsim.Options(contact_stiffness=1e3, friction="pyramid")
    soft = ball(1e3)
    with pytest.raises(ValueError, match="friction: contacts with a stiffness"):
        qdsim.step(soft, soft.default_q, [], qdsim.Options(friction="pyramid"))


def test_optimality_of_soft_contacts() -> None:
    """A pushed pile of soft and rigid contacts: slack w + R force and force are complementary in cones."""
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", stiffness=3e3, friction=0.4)
    for i in range(3):
        scene.body(f"b{i}", pos=(0.01 * i, 0, 0.1 + 0.199 * i), mass=1.0)
        scene.joint(f"b{i}", "free")
        stiffness = 1e3 if i == 1 else None
        scene.geom(f"b{i}", "sphere", 0.1, friction=0.4, stiffness=stiffness)
    model = qdsim.build(scene.build())
    q, wrench = np.array(model.default_q), {"b0": [3.0, 1, 0, 0, 0, 0], "b2": [0, 0, -5, 0, 0, 0.0]}
    for _ in range(5):
        step = qdsim.step(model, q, [], wrench=wrench)
        for contact in step.contacts:
            soft = model.parameters.pair_compliance[contact["pair"]]
            bodies = [model.body_pose(q, int(contact[k])) for k in ("body_a", "body_b")]
            J = np.zeros((3, model.nv))
            for sign, (pos, rot), key in zip((-1, 1), bodies, ("body_a", "body_b")):
                J += sign * model.jacobian(q, int(contact[key]), rot.T @ (contact["pos"] - pos))[:3]
            w = contact["frame"] @ (J @ step.delta)
            w[0] += contact["dist"] + soft * contact["force"][0]
            mu = contact["friction"][0]
            force = contact["force"][:3]
            assert w[0] >= mu * np.linalg.norm(w[1:]) - 1e-8
            assert force[0] >= np.linalg.norm(force[1:]) / mu - 1e-7
            assert abs(w @ force) < 1e-8
        q = step.q_next


# ---------------------------------------------------------------- constraints

HANGING = """
<mujoco><option gravity="0.3 0.2 -9.81" timestep="0.002"/>
  <worldbody>
    <body name="crane" mocap="true" pos="0 0 1"/>
    <body name="load" pos="0 0 0.9"><freejoint/><inertial pos="0.03 0.01 -0.02" mass="0.8" diaginertia="0.004 0.005 0.003"/></body>
    <body name="left" pos="1 0 0"><joint name="left" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="0.5" diaginertia="1 1 1"/></body>
    <body name="right" pos="2 0 0"><joint name="right" type="slide" axis="0 0 1" stiffness="30"/><inertial pos="0 0 0" mass="0.3" diaginertia="1 1 1"/></body>
  </worldbody>
  <equality>
    <{kind} name="rope" body1="crane" body2="load" {more} solref="{solref}" solimp="0.8 0.8 0.01"/>
    <joint name="mimic" joint1="left" joint2="right" solref="{solref}" solimp="0.7 0.7 0.01"/>
  </equality>
</mujoco>"""


def residuals(theirs, data) -> np.ndarray:
    equality = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    return np.array(data.efc_pos[: data.nefc][equality])


@pytest.mark.parametrize("solref", ["0.05 1", "-300 -30"])
@pytest.mark.parametrize(("kind", "more"), [("connect", 'anchor="0.05 0 -0.1"'), ("weld", "")])
def test_soft_constraints_rest_where_mujocos_do(kind: str, more: str, solref: str) -> None:
    text = HANGING.format(kind=kind, more=more, solref=solref)
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    theirs.dof_damping[:] = 2.0
    for _ in range(15000):
        mujoco.mj_step(theirs, data)
    model = qdsim.load(text)
    q, options = np.array(model.default_q), qdsim.Options(soft_constraints=True)
    for _ in range(800):
        q = qdsim.step(model, q, [], options).q_next
    assert np.abs(model.difference(q, model.default_q)).max() > 1e-2  # it gives way
    theirs_at_rest = residuals(theirs, data)
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    ours = residuals(theirs, data)
    assert np.abs(ours).max() > 1e-3
    # theirs measures the angles of a weld by quaternions, and lets them couple with the way
    size = 1e-4 if kind == "connect" else 0.1 * np.abs(ours).max()
    np.testing.assert_allclose(theirs_at_rest, ours, atol=size)
    np.testing.assert_allclose(theirs_at_rest[-1], ours[-1], atol=1e-6)
    rigid = q
    for _ in range(300):
        rigid = qdsim.step(model, rigid, []).q_next
    assert np.abs(model.difference(rigid, q)).max() > 1e-2


def test_a_weld_pulls_by_its_compliance() -> None:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("crane", mocap=True)
    scene.body("load", mass=0.5, com=(0, 0, 0), inertia=(0.01, 0.01, 0.01))
    scene.joint("load", "free")
    weld = Weld("w", "crane", "load", compliance=(0.01, 0.5))
    model = qdsim.build(dataclasses.replace(scene.build(), constraints=(weld,)))
    options = qdsim.Options(soft_constraints=True, h=0.1)
    turn = [np.cos(0.15), np.sin(0.15), 0, 0]
    step = qdsim.step(model, model.default_q, [], options, mocap={"crane": [0.2, -0.1, 0, *turn]})
    # k d = the pull of a spring against mass over h^2
    share = 1 / (1 + 0.01 * 0.5 / 0.01)
    np.testing.assert_allclose(step.delta[:3], share * np.array([0.2, -0.1, 0]), atol=1e-10)
    assert step.delta[3] == pytest.approx(0.3 / (1 + 0.5 * 0.01 / 0.01), abs=1e-10)
    np.testing.assert_allclose(
        step.constraint_force[0, :3], (np.array([0.2, -0.1, 0]) - step.delta[:3]) / 0.01, atol=1e-8
    )


def test_far_welds_to_mocap_bodies_step() -> None:
    """An arm that cannot reach where it is welded to: no solution for rigid rows, the nearest for soft ones."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <body name="hand" mocap="true" pos="0.3 0 0.5"/>
      <body name="a" pos="0 0 0.5" gravcomp="1"><joint name="a" axis="0 1 0" range="-60 60"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" mass="1"/>
        <body name="b" pos="0.2 0 0" gravcomp="1"><joint name="b" axis="0 1 0" range="-90 90"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" mass="1"/></body></body></worldbody>
      <equality><weld body1="hand" body2="b" relpose="-0.1 0 0 1 0 0 0"/></equality></mujoco>"""
    model = qdsim.load(text)
    options = qdsim.Options()
    rng = np.random.default_rng(0)
    q = np.array([0.3, -0.6])
    with pytest.raises(qdsim.SolverError):
        rigid = qdsim.Options(soft_constraints=False)
        qdsim.step(model, q, [], rigid, mocap={"hand": [2, 0, 0.5, 1, 0, 0, 0]})
    for _ in range(40):
        quat = rng.standard_normal(4)
        pose = [*rng.uniform(-3, 3, 3), *quat / np.linalg.norm(quat)]
        for _ in range(5):
            q = qdsim.step(model, q, [], options, mocap={"hand": pose}).q_next
        assert np.all(np.isfinite(q))
    at_rest = [0.3, 0, 0.5, 1, 0, 0, 0]
    for _ in range(100):
        q = qdsim.step(model, q, [], options, mocap={"hand": at_rest}).q_next
    np.testing.assert_allclose(q, 0.0, atol=1e-3)


# ---------------------------------------------------------------- derivatives, batches, warm starts


def soft_pile() -> Scene:
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", stiffness=3e3, friction=0.4)
    scene.body("box", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", (0.1, 0.08, 0.1), friction=0.4, condim=4)
    scene.body("ball", pos=(0.02, 0.01, 0.29), mass=0.5)
    scene.joint("ball", "free")
    scene.geom("ball", "sphere", 0.1, friction=0.4, stiffness=1e3)
    scene.body("tip", pos=(-0.15, 0, 0.1), mass=0.1)
    scene.joint("tip", "slide", axis=(1, 0, 0))
    scene.actuator("tip", 200.0)
    scene.geom("tip", "sphere", 0.049, friction=0.4)
    model = qdsim.build(scene.build())
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, 0.004), 0.05))


def soft_welds() -> Scene:
    welded = CONSTRAINED["welded"]
    description = welded.model.description
    softer = tuple(
        dataclasses.replace(item, compliance=(2e-3, 0.1)) for item in description.constraints
    )
    model = qdsim.build(dataclasses.replace(description, constraints=softer))
    return Scene(model, welded.sample)


SCENES = {"hand": soft_hand, "pile": soft_pile, "welds": soft_welds}


@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize("name", list(SCENES))
def test_derivatives(name: str, kappa: float | None) -> None:
    scene = SCENES[name]()
    options = qdsim.Options(kappa=kappa, soft_constraints=True)
    report = compare(scene, options, 6)
    print(name, kappa, report)
    assert report.share >= 0.8
    assert report.worst <= STANDARD
    for seed in range(2):
        q, u = scene.sample(np.random.default_rng(seed))
        lin = qdsim.linearize(scene.model, q, u, options)
        d = qdsim.differentiate(scene.model, q, u, options)
        scale = max(1.0, np.abs(lin.A).max())
        rows = d.vjp(np.eye(scene.model.nv))
        np.testing.assert_allclose(rows["q"], lin.A, atol=1e-8 * scale)
        np.testing.assert_allclose(d.jvp({"q": np.eye(scene.model.nv)}).T, lin.A, atol=1e-8 * scale)
        np.testing.assert_allclose(rows["u"], lin.B, atol=1e-8 * scale)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kappa", [None, 1e2])
@pytest.mark.parametrize(
    ("name", "parameter"), [("hand", "tendon_stiffness"), ("pile", "pair_compliance")]
)
def test_derivatives_by_stiffness(name: str, parameter: str, kappa: float | None) -> None:
    scene, options = SCENES[name](), qdsim.Options(kappa=kappa)
    model, rng = scene.model, np.random.default_rng(1)
    value, compared, size = getattr(model.parameters, parameter), 0, 0.0
    for _ in range(4):
        q, u = scene.sample(rng)
        direction = rng.uniform(-1, 1, value.shape) * value
        d = qdsim.differentiate(model, q, u, options)
        found = []
        for eps in (2e-3, 1e-3):
            out = np.zeros(model.nv)
            for width, weight in STENCIL:
                for sign in (1.0, -1.0):
                    other = model.with_parameters(
                        **{parameter: value + sign * width * eps * direction}
                    )
                    q_next = qdsim.step(other, q, u, options).q_next
                    out += sign * weight / eps * model.difference(q_next, d.q_next)
            found.append(out)
        if np.abs(found[0] - found[1]).max() > 1e-7:
            continue
        compared += 1
        ours = d.jvp({parameter: direction})
        size = max(size, np.abs(ours).max())
        np.testing.assert_allclose(ours, found[1], atol=1e-7)
        w = rng.uniform(-1, 1, model.nv)
        back = np.sum(d.vjp(w, wrt=(parameter,))[parameter] * direction)
        assert back == pytest.approx(w @ ours, rel=1e-7, abs=1e-12)
    assert compared >= 3 and size > 1e-4


@pytest.mark.parametrize("name", list(SCENES))
def test_batches_and_warm_starts(name: str) -> None:
    scene = SCENES[name]()
    model, rng = scene.model, np.random.default_rng(2)
    states = [scene.sample(rng) for _ in range(6)]
    q, u = (np.array(part) for part in zip(*states))
    options = qdsim.Options(soft_constraints=True)
    batch = qdsim.linearize_batch(model, q, u, options, threads=2)
    alone = qdsim.linearize_batch(model, q, u, options, threads=1)
    np.testing.assert_array_equal(batch.A, alone.A)
    for i in range(6):
        one = qdsim.linearize(model, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        again = qdsim.step(model, q[i], u[i], options, warm_start=one)
        np.testing.assert_allclose(again.q_next, one.q_next, atol=1e-8)
        np.testing.assert_allclose(again.tendon_force, one.step.tendon_force, atol=1e-5)
    own = np.stack([model.parameters.pair_compliance + 1e-4] * 6)
    varied = qdsim.step_batch(model, q, u, options, parameters={"pair_compliance": own})
    other = qdsim.step(model.with_parameters(pair_compliance=own[0]), q[3], u[3], options)
    np.testing.assert_allclose(varied.q_next[3], other.q_next, atol=1e-12)


def test_files_and_pickles_keep_softness() -> None:
    model = soft_hand().model
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.tendons == model.description.tendons
    np.testing.assert_array_equal(
        again.parameters.tendon_stiffness, model.parameters.tendon_stiffness
    )
    variant = model.with_parameters(tendon_stiffness=7.0)
    assert [item.stiffness for item in variant.description.tendons] == [7.0, 7.0, 7.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: s.geom("b", "sphere", 1, stiffness=0.0), "stiffness must be positive"),
        (lambda s: s.geom("b", "sphere", 1, stiffness=np.nan), "stiffness must be finite"),
        (lambda s: s.tendon("t", joints={"b": 1}, stiffness=-1.0), "stiffness must not be negative"),
        (lambda s: s.tendon("t", joints={"b": 1}, frictionloss=-1.0), "frictionloss must not be"),
        (lambda s: s.tendon("t", joints={"b": 1}, springrange=(1, 0)), "springrange must have"),
    ],
)  # fmt: skip
def test_bad_numbers_are_named(make, words: str) -> None:
    scene = qdsim.SceneBuilder()
    scene.body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("b", "slide")
    with pytest.raises(ValueError, match=words):
        make(scene)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_bad_options_are_named(value: float) -> None:
    with pytest.raises(ValueError, match="contact_stiffness"):
        qdsim.Options(contact_stiffness=value)
