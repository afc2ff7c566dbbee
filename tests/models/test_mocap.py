"""Mocap bodies, whose poses are inputs of a step, and bodies whose gravity something else carries."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest
from test_linearize import STENCIL

import qdsim

# An arm without actuators that a mocap body drags by a weld, a free box tied to another one, and a mocap
# platform under a ball; something with a joint hangs on the platform.
SCENE = """
<mujoco><option gravity="0.1 0.2 -9.81"/>
  <default><geom friction="0.6 0.02 0.01"/></default>
  <worldbody>
    <body name="hand" mocap="true" pos="0.35 0.02 0.5" euler="3 -5 8"/>
    <body name="arm" pos="0 0 0.5" gravcomp="1"><joint name="a1" axis="0 1 0" stiffness="2"/><joint name="a2" axis="0 0 1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" mass="0.5" contype="0" conaffinity="0"/>
      <body name="fore" pos="0.2 0 0" gravcomp="0.4"><joint name="a3" axis="0 1 0"/><joint name="a4" axis="1 0 0"/>
        <joint name="a5" type="slide" axis="1 0 0"/><joint name="a6" axis="0 0 1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.15 0 0" mass="0.3" contype="0" conaffinity="0"/></body></body>
    <body name="guide" mocap="true" pos="-0.5 0.1 0.5"/>
    <body name="box" pos="-0.5 0 0.3" euler="5 10 15"><freejoint/>
      <inertial pos="0.01 0 0.02" mass="0.5" diaginertia="0.003 0.002 0.004"/></body>
    <body name="platform" mocap="true" pos="0 -0.5 0.1" euler="2 -3 0"><geom name="top" type="box" size="0.2 0.2 0.05"/>
      <body name="flap" pos="0 0.1 0.2"><joint name="flap" axis="1 0 0" stiffness="1" springref="0.2"/>
        <inertial pos="0 0.1 0" mass="0.2" diaginertia="0.001 0.001 0.001"/></body></body>
    <body name="ball" pos="0.02 -0.52 0.2"><freejoint/><geom name="ball" type="sphere" size="0.0495" mass="0.4"/></body>
  </worldbody>
  <equality><weld name="drag" body1="hand" body2="fore" relpose="-0.15 0 0 1 0 0 0"/>
    <connect name="tie" body1="guide" body2="box" anchor="0.02 -0.03 0.01"/></equality>
</mujoco>"""  # fmt: skip

OPTIONS = {
    "exact": qdsim.Options(margin=0.2),
    "smoothed": qdsim.Options(margin=0.2, kappa=300.0),
}


def moved_pose(pose: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """A pose (7) moved by translation and rotation vector in world axes (6), by MuJoCo's quaternions."""
    turn, out = np.zeros(4), np.array(pose)
    angle = np.linalg.norm(motion[3:])
    axis = motion[3:] / angle if angle else np.array([1.0, 0.0, 0.0])
    mujoco.mju_axisAngle2Quat(turn, axis, angle)
    mujoco.mju_mulQuat(out[3:], turn, np.array(pose[3:]))
    out[:3] += motion[:3]
    return out


def sample(model: qdsim.Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = model.integrate(model.default_q, 0.02 * rng.uniform(-1, 1, model.nv))
    small = 0.02 * rng.uniform(-1, 1, (model.mocap_count, 6))
    poses = np.array([moved_pose(*both) for both in zip(model.mocap_poses, small)])
    return q, poses


def test_default_poses_and_names() -> None:
    model = qdsim.load(SCENE)
    assert model.mocap_names == ("hand", "guide", "platform")
    np.testing.assert_allclose(model.mocap_poses[1], [-0.5, 0.1, 0.5, 1, 0, 0, 0])
    q, poses = sample(model, 0)
    same = [
        qdsim.step(model, q, [], mocap=mocap).q_next
        for mocap in (None, {}, model.mocap_poses, {"hand": model.mocap_poses[0]})
    ]
    for other in same[1:]:
        np.testing.assert_array_equal(same[0], other)
    moved = qdsim.step(model, q, [], mocap=poses).q_next
    by_name = qdsim.step(model, q, [], mocap=dict(zip(model.mocap_names, poses))).q_next
    np.testing.assert_array_equal(moved, by_name)
    assert np.abs(moved - same[0]).max() > 1e-3
    there = qdsim.step(model.with_mocap(poses), q, []).q_next
    np.testing.assert_allclose(there, moved, atol=1e-12)
    with_one = model.with_mocap({"platform": poses[2]})
    np.testing.assert_array_equal(with_one.mocap_poses[:2], model.mocap_poses[:2])
    np.testing.assert_allclose(with_one.body_pose(q, "platform")[0], poses[2, :3])


def test_welds_and_connects_follow_and_carry() -> None:
    """Held rigidly, the welded body comes to stand where MuJoCo's residuals vanish; a hanging box pulls by its
    weight."""
    model, options = qdsim.load(SCENE), qdsim.Options(soft_constraints=False)
    q, poses = sample(model, 1)
    for _ in range(300):
        step = qdsim.step(model, q, [], options, mocap=poses)
        q = step.q_next
    theirs = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(theirs)
    data.qpos[:] = q
    data.mocap_pos[:], data.mocap_quat[:] = poses[:, :3], poses[:, 3:]
    mujoco.mj_forward(theirs, data)
    equality = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert equality.sum() == 9
    np.testing.assert_allclose(data.efc_pos[: data.nefc][equality], 0.0, atol=1e-6)
    np.testing.assert_allclose(
        step.constraint_force[1, :3], -0.5 * np.array([0.1, 0.2, -9.81]), atol=1e-4
    )


@pytest.mark.parametrize("kind", list(OPTIONS))
def test_derivatives_by_poses(kind: str) -> None:
    model, options = qdsim.load(SCENE), OPTIONS[kind]
    compared = 0
    for seed in range(4):
        q, poses = sample(model, seed)
        d = qdsim.differentiate(model, q, [], options, mocap=poses)
        by_mocap = d.jacobians(["mocap"])["mocap"]
        assert by_mocap.shape == (model.nv, 3, 6)
        directions = np.eye(18).reshape(18, 3, 6)
        ours = d.jvp({"mocap": directions})
        np.testing.assert_allclose(by_mocap.reshape(model.nv, 18), ours.T, atol=1e-9)
        both = d.vjp(np.eye(model.nv), wrt=("q", "mocap"))
        np.testing.assert_allclose(both["mocap"], by_mocap, atol=1e-12)
        lin = qdsim.linearize(model, q, [], options, mocap=poses, wrt=("q", "mocap"))
        np.testing.assert_allclose(lin.derivatives["mocap"], by_mocap, atol=1e-9)
        by_q = qdsim.linearize(model, q, [], options, mocap=poses)
        np.testing.assert_allclose(lin.A, by_q.A, atol=1e-8)
        for k, direction in enumerate(directions):
            found = []
            for eps in (4e-5, 2e-5):
                out = np.zeros(model.nv)
                for width, weight in STENCIL:
                    for sign in (1.0, -1.0):
                        at = [
                            moved_pose(p, sign * width * eps * m) for p, m in zip(poses, direction)
                        ]
                        q_next = qdsim.step(model, q, [], options, mocap=np.array(at)).q_next
                        out += sign * weight / eps * model.difference(q_next, d.q_next)
                found.append(out)
            if np.abs(found[0] - found[1]).max() > 1e-6:
                continue  # a kink within the stencil
            compared += 1
            np.testing.assert_allclose(ours[k], found[1], atol=1e-6 * max(1, np.abs(ours).max()))
    assert compared >= 0.8 * 4 * 18


def test_batches_rollouts_and_products_of_them() -> None:
    model, options = qdsim.load(SCENE), OPTIONS["exact"]
    states = [sample(model, seed) for seed in range(5)]
    q, poses = (np.array(part) for part in zip(*states))
    u = np.zeros((5, 0))
    batch = qdsim.linearize_batch(model, q, u, options, mocap=poses, wrt=("q", "mocap"))
    for i in range(5):
        one = qdsim.linearize(model, q[i], [], options, mocap=poses[i], wrt=("q", "mocap"))
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        np.testing.assert_array_equal(batch.derivatives["mocap"][i], one.derivatives["mocap"])
    named = qdsim.step_batch(model, q, u, options, mocap={"guide": poses[:, 1]})
    one = qdsim.step(model, q[2], [], options, mocap={"guide": poses[2, 1]})
    np.testing.assert_array_equal(named.q_next[2], one.q_next)
    courses = np.stack([poses, model.mocap_poses[None].repeat(5, 0), poses], axis=1)
    rolled = qdsim.rollout(model, q, np.zeros((5, 3, 0)), options, mocap=courses)
    at = q[3]
    for t in range(3):
        at = qdsim.step(model, at, [], options, mocap=courses[3, t]).q_next
        np.testing.assert_array_equal(rolled.q[3, t + 1], at)
    same = qdsim.rollout(model, q, np.zeros((5, 3, 0)), options, mocap=poses[:, None])
    held = qdsim.rollout(model, q, np.zeros((5, 3, 0)), options, mocap=poses[:, None].repeat(3, 1))
    np.testing.assert_array_equal(same.q, held.q)
    pulled = qdsim.rollout_vjp(
        model, q, np.zeros((5, 3, 0)), options, mocap=courses, wrt=("mocap",),
        cotangent=np.ones((5, 4, model.nv)),
    )  # fmt: skip
    assert pulled.gradients["mocap"].shape == (5, 3, 3, 6)
    direction = np.random.default_rng(0).uniform(-1, 1, (5, 3, 3, 6))
    pushed = qdsim.rollout_jvp(
        model, q, np.zeros((5, 3, 0)), options, mocap=courses, tangents={"mocap": direction}
    )
    np.testing.assert_allclose(
        np.sum(pulled.gradients["mocap"] * direction, axis=(1, 2, 3)),
        pushed.tangent.sum(axis=(1, 2)),
        rtol=1e-8,
    )
    copy = pickle.loads(pickle.dumps(qdsim.differentiate(model, q[0], [], options, mocap=poses[0])))
    np.testing.assert_array_equal(copy.q_next, batch.q_next[0])


def test_a_platform_lifts_what_lies_on_it() -> None:
    scene = qdsim.SceneBuilder()
    scene.body("platform", mocap=True, pos=(0, 0, 0))
    scene.geom("platform", "box", (0.3, 0.3, 0.05))
    scene.body("box", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", (0.05, 0.05, 0.05), friction=0.5)
    model = qdsim.build(scene.build())
    q = np.array(model.default_q)
    for height in np.linspace(0, 0.2, 21):
        step = qdsim.step(model, q, [], mocap={"platform": [0.5 * height, 0, height, 1, 0, 0, 0]})
        q = step.q_next
        assert q[2] == pytest.approx(height + 0.1, abs=1e-6)
    # the step knows of where the platform is, not of how it came there: nothing drags the box along
    assert q[0] == pytest.approx(0.0, abs=1e-6)
    carried = 1.0 * (
        9.81 + 0.01 / qdsim.Options().h ** 2
    )  # its weight, and what lifts it by 1 cm a step
    assert step.contacts["force"][:, 0].sum() == pytest.approx(carried, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, 1.5])
def test_gravity_that_something_else_carries(share: float) -> None:
    """Free fall in one step: g h^2 / epsilon times what is left; and MuJoCo's own gravity forces."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    scene.body("ball", mass=2.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1), gravcomp=share)
    scene.joint("ball", "free")
    model = qdsim.build(scene.build())
    step = qdsim.step(model, model.default_q, [], qdsim.Options(h=0.1))
    assert step.q_next[2] == pytest.approx(-(1 - share) * 9.81 * 0.01, abs=1e-12)
    assert model.description.bodies[1].gravcomp == share


def test_compensated_chains_rest_where_mujocos_do() -> None:
    text = """<mujoco><option gravity="0.5 -0.3 -9.81"/><worldbody>
      <body name="a" gravcomp="0.7"><joint name="a" axis="0 1 0" stiffness="9"/>
        <inertial pos="0.1 0 0.02" mass="1" diaginertia="0.01 0.01 0.01"/>
        <body name="b" pos="0.2 0 0"><joint name="b" axis="0 1 0.3" stiffness="4"/>
          <inertial pos="0.1 0.02 0" mass="0.6" diaginertia="0.01 0.01 0.01"/>
          <body name="c" pos="0.2 0 0" gravcomp="1.4"><joint name="c" axis="1 0 0.3" stiffness="2"/>
            <inertial pos="0.05 0.04 0" mass="0.3" diaginertia="0.01 0.01 0.01"/></body></body></body>
      </worldbody></mujoco>"""
    model, theirs = qdsim.load(text), mujoco.MjModel.from_xml_string(text)
    q = np.array(model.default_q)
    for _ in range(400):
        q = qdsim.step(model, q, []).q_next
    data = mujoco.MjData(theirs)
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    np.testing.assert_allclose(data.qfrc_passive - data.qfrc_bias, 0.0, atol=1e-7)
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.bodies == model.description.bodies


@pytest.mark.parametrize("gravity_on_actuated", [False, True])
def test_derivatives_of_compensated_bodies(gravity_on_actuated: bool) -> None:
    model = qdsim.load(SCENE)
    options = qdsim.Options(margin=0.2, kappa=100.0, gravity_on_actuated=gravity_on_actuated)
    q, poses = sample(model, 3)
    d = qdsim.differentiate(model, q, [], options, mocap=poses)
    rng = np.random.default_rng(0)
    for name in ("gravity", "body_mass", "body_com", "q"):
        shape = (model.nv,) if name == "q" else getattr(model.parameters, name).shape
        direction = rng.uniform(-1, 1, shape)
        out = np.zeros(model.nv)
        for width, weight in STENCIL:
            for sign in (1.0, -1.0):
                s = sign * width * 1e-4
                if name == "q":
                    other, at = model, model.integrate(q, s * direction)
                else:
                    old = getattr(model.parameters, name)
                    change = s * direction * (old if name == "body_mass" else 1.0)
                    other, at = model.with_parameters(**{name: old + change}), q
                q_next = qdsim.step(other, at, [], options, mocap=poses).q_next
                out += sign * weight / 1e-4 * model.difference(q_next, d.q_next)
        if name == "body_mass":
            direction = direction * model.parameters.body_mass
        ours = d.jvp({name: direction})
        np.testing.assert_allclose(ours, out, atol=1e-6 * max(1.0, np.abs(ours).max()))
        w = rng.uniform(-1, 1, model.nv)
        back = np.sum(d.vjp(w, wrt=(name,))[name] * direction)
        assert back == pytest.approx(w @ ours, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(
    ("mocap", "kind", "words"),
    [
        ({"nobody": np.zeros(7)}, ValueError, "mocap: the model has no mocap body 'nobody'"),
        ({"box": np.zeros(7)}, ValueError, "mocap: the model has no mocap body 'box'"),
        ({"hand": np.zeros(6)}, ValueError, r"mocap\['hand'\]"),
        (np.zeros((2, 7)), ValueError, r"mocap: expected shape \(.*3, 7\)"),
        ({"hand": [0, 0, np.nan, 1, 0, 0, 0]}, ValueError, "mocap.*nan"),
        ({"guide": [0, 0, 0, 1, 1, 0, 0]}, ValueError, "mocap.*'guide'.*length"),
        ({3: np.zeros(7)}, TypeError, "names of bodies"),
        ("hand", TypeError, "mocap"),
    ],
)
def test_bad_poses_are_named(mocap: Any, kind: type[Exception], words: str) -> None:
    model = qdsim.load(SCENE)
    q = model.default_q
    for call in (
        lambda: qdsim.step(model, q, [], mocap=mocap),
        lambda: qdsim.linearize(model, q, [], mocap=mocap),
        lambda: qdsim.differentiate(model, q, [], mocap=mocap),
        lambda: qdsim.step_batch(model, q[None], np.zeros((1, 0)), mocap=mocap),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_bad_mocap_bodies_are_named() -> None:
    scene = qdsim.SceneBuilder()
    scene.body("a", mocap=True)
    with pytest.raises(ValueError, match="'b': a mocap body must be a child of the world"):
        scene.body("b", "a", mocap=True)
    with pytest.raises(ValueError, match="'a': a mocap body must be"):
        scene.joint("a", "hinge")
    with pytest.raises(ValueError, match="gravcomp must be finite"):
        scene.body("c", gravcomp=np.inf)
    with pytest.raises(TypeError, match="mocap must be True or False"):
        scene.body("c", mocap=1)


ARM_ON_A_STRING = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="target" mocap="true"/>
  <body name="arm"><joint name="arm" axis="0 0 1" range="-60 60"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/></body>
</worldbody><equality><connect name="drag" body1="arm" body2="target" anchor="0.3 0 0"/></equality></mujoco>"""


def test_targets_out_of_reach_pull_and_contradict_nothing() -> None:
    """An arm tied to a point that it cannot reach comes to its limit, and is pulled by what the tie is stretched."""
    model = qdsim.load(ARM_ON_A_STRING)
    away = {"target": [-0.3, 5.0, 0.0, 1.0, 0.0, 0.0, 0.0]}
    q = model.default_q
    for _ in range(20):
        step = qdsim.step(model, q, [], mocap=away)
        q = step.q_next
    np.testing.assert_allclose(q, [np.pi / 3], atol=1e-6)
    tip = 0.3 * np.array([np.cos(np.pi / 3), np.sin(np.pi / 3)])
    pull = (np.array([0.0, 5.0]) - tip) / model.description.constraints[0].compliance[0]
    np.testing.assert_allclose(np.abs(step.constraint_force[0, :2]), np.abs(pull), rtol=1e-4)
    with pytest.raises(qdsim.SolverError, match="constraint"):
        qdsim.step(model, q, [], qdsim.Options(soft_constraints=False), mocap=away)


def test_words_for_soft_constraints() -> None:
    assert qdsim.Options().soft_constraints == "mocap"
    for options in (qdsim.Options, qdsim.DynamicOptions):
        with pytest.raises(ValueError, match="soft_constraints: expected True, False or 'mocap'"):
            options(soft_constraints="all")
        with pytest.raises(TypeError, match="soft_constraints: expected True or False"):
            options(soft_constraints=1)
