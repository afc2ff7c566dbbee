"""Tendons: lengths and Jacobians against MuJoCo, limits as rows of the program, their derivatives."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim

# Two fingers of two links, drawn together by a tendon over their links, with a ball joint's tip and a
# free weight that hangs on a second tendon; a third, fixed one, couples knuckles.
HAND = """
<mujoco><option gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="anchor" pos="0.02 0.01 0.9"/>
    <body name="link a1" pos="-0.1 0 0.5"><joint name="a1" axis="0 1 0"/><site name="a1" pos="0.03 0.01 0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
      <body name="link a2" pos="0 0 0.15"><joint name="a2" axis="0 1 0.2"/><joint name="a3" axis="1 0 0"/>
        <site name="a2" pos="0.02 -0.02 0.08"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.1" mass="0.2"/>
        <body name="tip" pos="0 0 0.12"><joint name="tip" type="ball"/><site name="tip" pos="0.01 0.02 0.03"/>
          <inertial pos="0 0 0.02" mass="0.1" diaginertia="0.001 0.001 0.0008"/></body></body></body>
    <body name="link b1" pos="0.1 0 0.5"><joint name="b1" axis="0 -1 0"/><site name="b1" pos="-0.03 0.02 0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
      <body name="link b2" pos="0 0 0.15"><joint name="b2" type="slide" axis="0.2 0 1"/><site name="b2" pos="0 0 0.05"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.1" mass="0.2"/></body></body>
    <body name="weight" pos="0.1 0.2 0.6" euler="10 20 30"><freejoint/><site name="hook" pos="0.02 0.03 0.04"/>
      <inertial pos="0.01 0 0.02" mass="0.4" diaginertia="0.002 0.003 0.002"/></body>
  </worldbody>
  <tendon>
    <spatial name="closing" limited="true" range="0 {closing}">
      <site site="a1"/><site site="a2"/><site site="tip"/><site site="b2"/><site site="b1"/></spatial>
    <spatial name="hanging" limited="true" range="0.1 {hanging}">
      <site site="anchor"/><site site="b1"/><site site="hook"/></spatial>
    <fixed name="knuckles" limited="true" range="-0.05 {knuckles}">
      <joint joint="a1" coef="0.7"/><joint joint="b1" coef="-0.4"/><joint joint="b2" coef="2"/></fixed>
  </tendon>
  <actuator><position joint="a1" kp="30"/><position joint="a2" kp="10"/><position joint="a3" kp="10"/>
    <position joint="b1" kp="20"/></actuator>
</mujoco>"""


def hand(closing: float = 0.75, hanging: float = 0.72, knuckles: float = 0.05) -> str:
    return HAND.format(closing=closing, hanging=hanging, knuckles=knuckles)


def hand_scene() -> Scene:
    model = qdsim.load(hand())
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, 0.05), 0.3))


def mujoco_jacobian(theirs: Any, data: Any) -> np.ndarray:
    """(tendons, nv) in MuJoCo's coordinates; newer versions keep it sparse."""
    out = np.zeros((theirs.ntendon, theirs.nv))
    flat = np.ravel(data.ten_J)
    if flat.size == out.size and not hasattr(data, "ten_J_rownnz"):
        return flat.reshape(out.shape)
    rownnz = np.ravel(getattr(data, "ten_J_rownnz", getattr(theirs, "ten_J_rownnz", None)))
    rowadr = np.ravel(getattr(data, "ten_J_rowadr", getattr(theirs, "ten_J_rowadr", None)))
    colind = np.ravel(getattr(data, "ten_J_colind", getattr(theirs, "ten_J_colind", None)))
    for i in range(theirs.ntendon):
        part = slice(rowadr[i], rowadr[i] + rownnz[i])
        out[i, colind[part]] = flat[part]
    return out


def random_scene(rng: np.random.Generator) -> qdsim.Model:
    """A random tree with tendons of both kinds through random points and joints."""
    scene = qdsim.SceneBuilder()
    names = ["world"]
    scalars = []
    for i in range(int(rng.integers(2, 9))):
        parent = str(rng.choice(names))
        kinds = (
            ["hinge", "slide", "ball", "free"] if parent == "world" else ["hinge", "slide", "ball"]
        )
        quat = rng.standard_normal(4)
        name = scene.body(
            f"b{i}", parent, pos=rng.uniform(-0.3, 0.3, 3), quat=quat / np.linalg.norm(quat),
            mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1),
        )  # fmt: skip
        for _ in range(int(rng.integers(0, 3))):
            kind = str(rng.choice(kinds))
            joint = scene.joint(name, kind, name=f"j{len(scalars)}_{i}_{rng.integers(1 << 30)}",
                                axis=rng.standard_normal(3), pos=rng.uniform(-0.1, 0.1, 3) * (kind != "free"),
                                ref=float(rng.uniform(-1, 1)) if kind in ("hinge", "slide") else 0.0)  # fmt: skip
            if kind in ("hinge", "slide"):
                scalars.append(joint)
            if kind in ("free", "ball"):
                break
            kinds = ["hinge", "slide", "ball"]
        names.append(name)
    for i in range(4):
        bodies = rng.choice(names, int(rng.integers(2, 6)))
        scene.tendon(f"s{i}", points=[(str(b), rng.uniform(-0.3, 0.3, 3)) for b in bodies])
    for i in range(3 if scalars else 0):
        joints = rng.choice(scalars, int(rng.integers(1, len(scalars) + 1)), replace=False)
        scene.tendon(f"f{i}", joints={str(j): float(rng.standard_normal()) for j in joints})
    return qdsim.build(scene.build())


@pytest.mark.parametrize("seed", range(12))
def test_lengths_and_jacobians_are_mujocos(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_scene(rng)
    theirs = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    data = mujoco.MjData(theirs)
    q = model.integrate(model.default_q, rng.uniform(-1, 1, model.nv))
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    np.testing.assert_allclose(model.tendon_lengths(q), data.ten_length, atol=1e-12)
    turned = np.array([model.from_mujoco_qvel(q, row) for row in np.eye(model.nv)])
    ours = model.tendon_jacobians(q)
    np.testing.assert_allclose(ours @ turned.T, mujoco_jacobian(theirs, data), atol=1e-12)
    batch = np.stack([q, np.array(model.default_q)])[None]
    assert model.tendon_lengths(batch).shape == (1, 2, model.tendon_count)
    assert model.tendon_jacobians(batch).shape == (1, 2, model.tendon_count, model.nv)
    np.testing.assert_array_equal(model.tendon_lengths(batch)[0, 0], model.tendon_lengths(q))
    np.testing.assert_array_equal(model.tendon_jacobians(batch)[0, 0], ours)
    for j in range(model.nv):  # and the Jacobian is the derivative of the lengths
        step = 1e-6 * np.eye(model.nv)[j]
        ends = [model.tendon_lengths(model.integrate(q, sign * step)) for sign in (1, -1)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, ours[:, j], atol=1e-7)


def test_files_and_round_trips_keep_tendons() -> None:
    model = qdsim.load(hand())
    assert model.tendon_names == ("closing", "hanging", "knuckles")
    np.testing.assert_array_equal(model.tendon_range, [[0, 0.75], [0.1, 0.72], [-0.05, 0.05]])
    again = qdsim.load(model.description.to_mjcf())
    q = model.integrate(model.default_q, np.random.default_rng(0).uniform(-0.3, 0.3, model.nv))
    np.testing.assert_allclose(again.tendon_lengths(q), model.tendon_lengths(q), atol=1e-12)
    np.testing.assert_array_equal(again.tendon_range, model.tendon_range)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.tendon_lengths(q), model.tendon_lengths(q))


@pytest.mark.parametrize("kappa", [None, 1e2])
def test_limits_hold_to_first_order(kappa: float | None) -> None:
    scene = hand_scene()
    model = scene.model
    q, u = scene.sample(np.random.default_rng(1))
    options = qdsim.Options(kappa=kappa)
    for _ in range(30):
        rates, lengths = model.tendon_jacobians(q), model.tendon_lengths(q)
        step = qdsim.step(model, q, u, options)
        linear = lengths + rates @ step.delta
        lower, upper = model.tendon_range.T
        assert np.all(linear >= lower - 1e-9) and np.all(linear <= upper + 1e-9)
        if kappa is None:  # a force only where a limit is met, and on its side
            pulls, pushes = step.tendon_force < -1e-6, step.tendon_force > 1e-6
            assert np.all(linear[pulls] >= upper[pulls] - 1e-7)
            assert np.all(linear[pushes] <= lower[pushes] + 1e-7)
        q = step.q_next
    assert np.all(model.tendon_lengths(q) <= upper + 1e-3)
    assert step.tendon_force[1] < -1.0  # the weight hangs


def test_a_weight_hangs_on_its_tendon() -> None:
    """A free body below an anchor: the tendon carries m g, and hangs straight down."""
    scene = qdsim.SceneBuilder()
    scene.body("weight", pos=(0.3, 0, 0.1), mass=0.7, com=(0, 0, 0), inertia=(0.01, 0.01, 0.01))
    scene.joint("weight", "free")
    scene.tendon("rope", points=[("world", (0, 0, 1)), ("weight", (0, 0, 0.1))], range=(0, 0.5))
    model = qdsim.build(scene.build())
    q = np.array(model.default_q)
    for _ in range(400):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.05))
        q = step.q_next
    assert step.tendon_force[0] == pytest.approx(-0.7 * 9.81, rel=1e-6)
    hook = q[:3] + model.body_pose(q, "weight")[1] @ [0, 0, 0.1]
    np.testing.assert_allclose(hook, [0, 0, 0.5], atol=1e-5)


def test_a_tendon_over_two_fingers_pulls_both_alike() -> None:
    """Two slides that springs hold apart, joined by a fixed tendon of 1 : 1: equal forces, and the weaker
    one gives more."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    for name, stiffness in (("left", 50.0), ("right", 200.0)):
        scene.body(name, mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
        scene.joint(name, "slide", axis=(1, 0, 0), stiffness=stiffness)
    scene.tendon("both", joints={"left": 1.0, "right": 1.0}, range=(0.1, np.inf))
    model = qdsim.build(scene.build())
    step = qdsim.step(model, [0.0, 0.0], [], qdsim.Options(epsilon=0.0))
    force = 0.1 / (1 / 50 + 1 / 200)
    assert step.tendon_force[0] == pytest.approx(force, rel=1e-9)
    np.testing.assert_allclose(step.delta, [force / 50, force / 200], rtol=1e-9)


@pytest.mark.parametrize("kappa", [None, 1e2, 1e4])
def test_derivatives_by_q_and_u(kappa: float | None) -> None:
    report = compare(hand_scene(), qdsim.Options(kappa=kappa), 8)
    print(kappa, report)
    assert report.share >= 0.8
    assert report.worst <= STANDARD


@pytest.mark.parametrize("kappa", [None, 1e2])
def test_products_with_vectors_agree_with_the_matrices(kappa: float | None) -> None:
    scene = hand_scene()
    model, options = scene.model, qdsim.Options(kappa=kappa)
    for seed in range(4):
        q, u = scene.sample(np.random.default_rng(seed))
        lin = qdsim.linearize(model, q, u, options)
        d = qdsim.differentiate(model, q, u, options)
        scale = max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(np.eye(model.nv))["q"], lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(np.eye(model.nv))["u"], lin.B, atol=1e-9 * scale)


def test_islands_are_joined_by_tendons() -> None:
    """Many carts, pairs of which a tendon joins: the others' numbers do not know of it."""

    def carts(tied: bool) -> qdsim.Model:
        scene = qdsim.SceneBuilder()
        for i in range(12):
            scene.body(f"c{i}", pos=(0, i, 0), mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
            scene.joint(f"c{i}", "slide", axis=(1, 0, 0))
            scene.actuator(f"c{i}", 100.0)
        for i in range(0, 4 if tied else 0, 2):
            points = [(f"c{i}", (0, 0, 0)), (f"c{i + 1}", (0, 0, 0))]
            scene.tendon(f"t{i}", points=points, range=(0, 1.1))
        return qdsim.build(scene.build())

    u = np.arange(12) % 2 - 0.5
    free, tied = (
        qdsim.step(m, np.zeros(12), u, qdsim.Options()) for m in (carts(False), carts(True))
    )
    np.testing.assert_array_equal(free.q_next[4:], tied.q_next[4:])
    assert np.all(np.abs(tied.q_next[:4]) <= np.abs(free.q_next[:4]))


def test_held_joints_and_tendons_that_nothing_moves() -> None:
    scene = hand_scene()
    model = scene.model
    q, u = scene.sample(np.random.default_rng(5))
    for held in (("a1", "a2", "a3", "tip", "b1", "b2"), tuple(model.joint_names)):
        step = qdsim.step(model, q, u, qdsim.Options(held=held))
        assert step.tendon_force[0] == 0.0
        assert step.tendon_force[2] == 0.0
    off = qdsim.step(model, q, u, qdsim.Options(joint_limits=False))
    np.testing.assert_array_equal(off.tendon_force, 0.0)
    report = compare(scene, qdsim.Options(held=("a1", "b2"), kappa=1e2), 4)
    assert report.worst <= STANDARD


def test_batches_rollouts_and_warm_starts() -> None:
    scene = hand_scene()
    model, rng = scene.model, np.random.default_rng(2)
    states = [scene.sample(rng) for _ in range(6)]
    q, u = (np.array(part) for part in zip(*states))
    options = qdsim.Options()
    batch = qdsim.linearize_batch(model, q, u, options)
    for i in range(6):
        one = qdsim.linearize(model, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        np.testing.assert_array_equal(batch.tendon_force[i], one.step.tendon_force)
        np.testing.assert_array_equal(batch.A[i], one.A)
        again = qdsim.step(model, q[i], u[i], options, warm_start=one)
        np.testing.assert_allclose(again.q_next, one.q_next, atol=1e-9)
        np.testing.assert_allclose(again.tendon_force, one.step.tendon_force, atol=1e-6)
    warm = qdsim.step_batch(model, q, u, options, warm_start=batch)
    np.testing.assert_allclose(warm.q_next, batch.q_next, atol=1e-9)
    courses = np.repeat(u[:, None], 5, axis=1)
    cold = qdsim.rollout(model, q, courses, options)
    warm = qdsim.rollout(model, q, courses, options, warm_start=True)
    np.testing.assert_allclose(warm.q, cold.q, atol=1e-7)
    copy = pickle.loads(pickle.dumps(one.step))
    np.testing.assert_array_equal(copy.tendon_force, one.step.tendon_force)


def test_contradictions_name_the_tendon() -> None:
    scene = qdsim.SceneBuilder()
    scene.body("cart", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("cart", "slide", axis=(1, 0, 0), range=(0.0, 1.0))
    scene.tendon("leash", joints={"cart": 1.0}, range=(-3.0, -2.0))
    model = qdsim.build(scene.build())
    with pytest.raises(qdsim.SolverError, match="tendon 'leash'"):
        qdsim.step(model, [0.5], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"joints": {"nobody": 1.0}}, "tendon 't': no joint is named 'nobody'"),
        ({"joints": {"ball": 1.0}}, "joint 'ball' is a free joint"),
        ({"joints": {"x": np.nan}}, "joints must be finite"),
        ({"points": [("nobody", (0, 0, 0)), ("x", (0, 0, 0))]}, "no body is named 'nobody'"),
        ({"points": [("x", (0, 0, 0))]}, "two at least"),
        ({"points": [("x", (0, 0)), ("ball", (0, 0, 0))]}, "points must hold 3 numbers"),
        ({}, "joints or points"),
        ({"joints": {"x": 1.0}, "range": (1.0, 0.0)}, "lower < upper"),
    ],
)
def test_bad_tendons_are_named(arguments: dict[str, Any], words: str) -> None:
    scene = qdsim.SceneBuilder()
    scene.body("x", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("x", "slide")
    scene.body("ball", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    scene.joint("ball", "free")
    with pytest.raises(ValueError, match=words):
        scene.tendon("t", **arguments)
        scene.build()
