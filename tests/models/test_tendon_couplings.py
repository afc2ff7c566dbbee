"""Tendons that follow each other, and dampers along them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scenes import Scene, _around
from test_linearize import STANDARD, compare

import qdsim
from qdsim.description import Description, TendonCoupling

# Two fingers whose spatial tendons follow each other, a crane whose tendon stays as long as it is,
# and knuckles (sums over joints) of which one follows the square of the other.
HAND = """
<mujoco><option gravity="0.5 0.3 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="anchor" pos="0.02 0.01 0.9"/>
    <body name="link a1" pos="-0.1 0 0.5"><joint name="a1" axis="0 1 0"/><site name="a1" pos="0.03 0.01 0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
      <body name="link a2" pos="0 0 0.15"><joint name="a2" axis="0 1 0.2"/><joint name="a3" axis="1 0 0"/>
        <site name="a2" pos="0.02 -0.02 0.08"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.1" mass="0.2"/>
      </body></body>
    <body name="link b1" pos="0.1 0 0.5"><joint name="b1" axis="0 -1 0"/><site name="b1" pos="-0.03 0.02 0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.15" mass="0.3"/>
      <body name="link b2" pos="0 0 0.15"><joint name="b2" type="slide" axis="0.2 0 1"/><site name="b2" pos="0 0 0.05"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.1" mass="0.2"/></body></body>
    <body name="weight" pos="0.1 0.2 0.6" euler="10 20 30"><freejoint/><site name="hook" pos="0.02 0.03 0.04"/>
      <inertial pos="0.01 0 0.02" mass="0.4" diaginertia="0.002 0.003 0.002"/></body>
  </worldbody>
  <tendon>
    <spatial name="left" damping="{damping}"><site site="anchor"/><site site="a1"/><site site="a2"/></spatial>
    <spatial name="right"><site site="anchor"/><site site="b1"/><site site="b2"/></spatial>
    <spatial name="crane" damping="{damping}"><site site="b2"/><site site="hook"/></spatial>
    <fixed name="knuckle a"><joint joint="a3" coef="0.7"/><joint joint="a2" coef="0.2"/></fixed>
    <fixed name="knuckle b"><joint joint="b1" coef="0.5"/><joint joint="a1" coef="1.5"/></fixed>
  </tendon>
  <equality>
    <tendon name="fingers" tendon1="left" tendon2="right" polycoef="0.01 0.8 1.5 0 0"/>
    <tendon name="hang" tendon1="crane" polycoef="0.02 0 0 0 0"/>
    <tendon name="knuckles" tendon1="knuckle a" tendon2="knuckle b" polycoef="0.05 0.4 -0.6 0.3 0.1"/>
  </equality>
  <actuator><position joint="a1" kp="30"/><position joint="b1" kp="20"/><position tendon="right" kp="300"/></actuator>
</mujoco>"""


def hand(damping: float = 0.0) -> qdsim.Model:
    return qdsim.load(HAND.format(damping=damping))


def scene(damping: float = 0.0) -> Scene:
    model = hand(damping)
    return Scene(model, _around(model, np.array(model.default_q), np.full(model.nv, 0.05), 0.2))


def violations(model: qdsim.Model, q: np.ndarray) -> np.ndarray:
    """As MuJoCo defines them, from the lengths."""
    theirs = mujoco.MjModel.from_xml_string(HAND.format(damping=0.0))
    out = []
    lengths = model.tendon_lengths(q)
    for i in range(theirs.neq):
        a, b = int(theirs.eq_obj1id[i]), int(theirs.eq_obj2id[i])
        x = lengths[b] - theirs.tendon_length0[b] if b >= 0 else 0.0
        powers = x ** np.arange(5) if b >= 0 else np.array([1.0, 0, 0, 0, 0])
        out.append(lengths[a] - theirs.tendon_length0[a] - theirs.eq_data[i, :5] @ powers)
    return np.array(out)


def test_steps_end_where_the_equalities_hold() -> None:
    model = hand()
    q = np.array(model.default_q)
    u = model.command_from(q)
    for _ in range(200):
        step = qdsim.step(model, q, u, qdsim.Options(h=0.02))
        q = np.array(step.q_next)
    np.testing.assert_allclose(violations(model, q), 0.0, atol=1e-5)


def test_where_mujoco_rests_we_rest_with_its_forces() -> None:
    model = hand()
    u = model.command_from(model.default_q)
    theirs = mujoco.MjModel.from_xml_string(HAND.format(damping=0.0))
    theirs.dof_damping[:] = 0.3
    theirs.eq_solref[:] = (0.004, 1.0)
    theirs.eq_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 2.0)
    data = mujoco.MjData(theirs)
    data.ctrl[:] = u
    for _ in range(16000):
        mujoco.mj_step(theirs, data)
    step = qdsim.step(model, data.qpos, u, qdsim.Options(h=0.05, gravity_on_actuated=True))
    np.testing.assert_allclose(step.delta, 0.0, atol=1e-5)
    np.testing.assert_allclose(step.actuator_force, data.actuator_force, atol=1e-3)
    np.testing.assert_allclose(step.constraint_force[:, 0], data.efc_force[:3], atol=1e-3)


@pytest.mark.parametrize("damping", [0.0, 40.0])
@pytest.mark.parametrize("kappa", [None, 1e2])
def test_derivatives(kappa: float | None, damping: float) -> None:
    report = compare(scene(damping), qdsim.Options(h=0.05, kappa=kappa, damping=True), 8)
    assert report.share >= 0.8
    assert report.worst <= STANDARD
    soft = compare(scene(damping), qdsim.Options(h=0.05, kappa=kappa, soft_constraints=True), 4)
    assert soft.worst <= STANDARD


@pytest.mark.parametrize("damping", [0.0, 40.0])
def test_products_agree_with_the_matrices_and_differences(damping: float) -> None:
    one = scene(damping)
    model, options = one.model, qdsim.Options(h=0.05, damping=True)
    for seed in range(3):
        q, u = one.sample(np.random.default_rng(seed))
        lin = qdsim.linearize(model, q, u, options)
        d = qdsim.differentiate(model, q, u, options)
        scale = max(1.0, np.abs(lin.A).max())
        np.testing.assert_allclose(d.jvp({"q": np.eye(model.nv)}).T, lin.A, atol=1e-9 * scale)
        np.testing.assert_allclose(d.vjp(np.eye(model.nv))["q"], lin.A, atol=1e-9 * scale)
        ends = [
            qdsim.step(model, q, u, qdsim.Options(h=0.05 + s * 1e-6, damping=True)).q_next
            for s in (1, -1)
        ]
        slope = model.difference(ends[0], ends[1]) / 2e-6
        size = max(1.0, np.abs(slope).max())
        np.testing.assert_allclose(np.ravel(d.jvp({"h": 1.0})), slope, atol=1e-5 * size)
        back = np.ravel(d.vjp(np.eye(model.nv), wrt="h")["h"])
        np.testing.assert_allclose(back, slope, atol=1e-5 * size)


def test_second_order_steps_undo_violations_at_their_speed() -> None:
    model = hand(10.0)
    q = np.array(model.default_q)
    q[:3] += 0.3
    options = qdsim.DynamicOptions(h=0.01, recovery_speed=0.05)
    v = np.zeros(model.nv)
    u = model.command_from(q)
    d = qdsim.linearize_dynamic(model, q, v, u, options)
    assert d.step.info.capped_rows > 0
    eps, nv = 1e-6, model.nv
    numeric = np.zeros((nv, nv))
    for j in range(nv):
        ends = [
            qdsim.step_dynamic(
                model, model.integrate(q, s * eps * np.eye(nv)[j]), v, u, options
            ).v_next
            for s in (1, -1)
        ]
        numeric[:, j] = (ends[0] - ends[1]) / (2 * eps)
    np.testing.assert_allclose(d.A[nv:, :nv], numeric, atol=1e-5 * np.abs(d.A).max())


def test_dampers_in_closed_form() -> None:
    """A cart pulled by f against a damper d along a tendon: f = (m / h^2 + d / h) delta."""
    builder = qdsim.SceneBuilder()
    builder.body("cart", mass=2.0, com=(0, 0, 0), inertia=(1, 1, 1))
    builder.joint("cart", "slide", axis=(1, 0, 0))
    builder.tendon("belt", joints={"cart": 3.0}, damping=5.0)
    model = qdsim.build(builder.build())
    for damping, most in ((True, 2.0 / 0.01 + 9.0 * 5.0 / 0.1), (False, 200.0)):
        step = qdsim.step(model, [0.0], [], qdsim.Options(h=0.1, damping=damping), tau=[7.0])
        assert step.delta[0] == pytest.approx(7.0 / most, rel=1e-9)
        assert step.tendon_force[0] == pytest.approx(
            -5.0 * 3.0 * step.delta[0] / 0.1 if damping else 0.0, rel=1e-9
        )


def test_islands_batches_and_warm_starts() -> None:
    one = scene()
    rng = np.random.default_rng(2)
    states = [one.sample(rng) for _ in range(5)]
    q, u = (np.array(part) for part in zip(*states))
    options = qdsim.Options(h=0.05)
    batch = qdsim.linearize_batch(one.model, q, u, options)
    for i in range(5):
        lin = qdsim.linearize(one.model, q[i], u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], lin.q_next)
        np.testing.assert_array_equal(batch.A[i], lin.A)
        again = qdsim.step(one.model, q[i], u[i], options, warm_start=lin)
        np.testing.assert_allclose(again.q_next, lin.q_next, atol=1e-8)
    held = qdsim.step(one.model, q[0], u[0], qdsim.Options(h=0.05, held=("a1", "a2", "a3")))
    assert np.all(np.isfinite(held.q_next))


def test_trees_that_only_couplings_join() -> None:
    """Twelve carts: each odd one follows the even one before it, half as far."""
    builder = qdsim.SceneBuilder()
    for i in range(12):
        builder.body(f"c{i}", pos=(0, i, 0), mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
        builder.joint(f"c{i}", "slide", axis=(1, 0, 0))
        builder.tendon(f"t{i}", joints={f"c{i}": 1.0})
        if i % 2 == 0:
            builder.actuator(f"c{i}", 100.0)
    text = builder.build().to_mjcf()
    ties = "".join(
        f'<tendon tendon1="t{i + 1}" tendon2="t{i}" polycoef="0 0.5 0 0 0"/>'
        for i in range(0, 12, 2)
    )
    model = qdsim.load(text.replace("</mujoco>", f"<equality>{ties}</equality></mujoco>"))
    u = np.linspace(0.1, 0.6, 6)
    step = qdsim.step(model, np.zeros(12), u, qdsim.Options(epsilon=0.0))
    np.testing.assert_allclose(step.q_next[0::2], u, atol=1e-9)
    np.testing.assert_allclose(step.q_next[1::2], 0.5 * u, atol=1e-9)


def test_files_keep_them_and_errors_name_them() -> None:
    model = hand(3.0)
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.constraints[0].coefficients == pytest.approx((0.01, 0.8, 1.5, 0, 0))
    assert again.description.tendons[0].damping == 3.0
    with pytest.raises(ValueError, match="'nothing'"):
        qdsim.build(
            Description(
                bodies=model.description.bodies,
                tendons=model.description.tendons,
                constraints=(TendonCoupling("t", "nothing"),),
            )
        )
    with pytest.raises(ValueError, match="cannot follow itself"):
        qdsim.build(
            Description(
                bodies=model.description.bodies,
                tendons=model.description.tendons,
                constraints=(TendonCoupling("t", "left", "left"),),
            )
        )
