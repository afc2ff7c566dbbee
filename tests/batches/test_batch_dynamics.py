"""Batches and rollouts of second-order steps: those of single steps, bit for bit, with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from coulomb_states import make, sample

import qdsim
from qdsim import DynamicOptions, rollout_dynamic, step_dynamic, step_dynamic_batch

LAWS = ["convex", "coulomb"]


def states(name, count, seed=0):
    model, rng = make(name, 0.6), np.random.default_rng(seed)
    found = [sample(model, rng, 1.0) for _ in range(count)]
    return model, *(np.array(arrays) for arrays in zip(*found))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["arm", "discs"])
def test_a_batch_is_its_steps(name, law):
    model, q, v, u = states(name, 7)
    o = DynamicOptions(law=law)
    tau = np.random.default_rng(1).normal(size=model.nv)
    many = [step_dynamic_batch(model, q, v, u, o, tau=tau, threads=n) for n in (1, 3)]
    assert many[0].ok.all()
    for i in range(len(q)):
        one = step_dynamic(model, q[i], v[i], u[i], o, tau=tau)
        for batch in many:
            np.testing.assert_array_equal(batch.q_next[i], one.q_next)
            np.testing.assert_array_equal(batch.v_next[i], one.v_next)
            np.testing.assert_array_equal(batch.actuator_force[i], one.actuator_force)
            assert batch.contacts_of(i).tobytes() == one.contacts.tobytes()
    again = step_dynamic_batch(model, q, v, u, o, tau=tau, warm_start=many[0], out=many[1])
    assert again.v_next is many[1].v_next
    np.testing.assert_allclose(again.v_next, many[0].v_next, atol=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_a_rollout_is_its_steps(law):
    model, q, v, _ = states("discs", 3)
    o, T = DynamicOptions(law=law, h=0.005), 6
    course = np.zeros((T, model.nu))
    many = [rollout_dynamic(model, q, v, course, o, threads=n) for n in (1, 2)]
    np.testing.assert_array_equal(many[0].v, many[1].v)
    for i in range(len(q)):
        now, speed = q[i], v[i]
        for t in range(T):
            s = step_dynamic(model, now, speed, course[t], o)
            now, speed = s.q_next, s.v_next
            np.testing.assert_array_equal(many[0].q[i, t + 1], now)
            np.testing.assert_array_equal(many[0].v[i, t + 1], speed)
    warm = rollout_dynamic(model, q, v, course, o, warm_start=True)
    np.testing.assert_allclose(warm.v, many[0].v, atol=1e-4)


@pytest.mark.parametrize("law", LAWS)
def test_products_of_rollouts(law):
    """Against products of single steps, one after the other."""
    model, q, v, u = states("arm", 2, seed=5)
    o, T, rng = DynamicOptions(law=law, h=0.005), 4, np.random.default_rng(2)
    course = u[:, None] + 0.1 * rng.normal(size=(2, T, model.nu))
    y, z = rng.normal(size=(2, 2, T + 1, model.nv))
    names = ("q", "v", "u", "pair_friction")
    t = {"q": rng.normal(size=model.nv), "v": rng.normal(size=model.nv)}
    t["u"] = rng.normal(size=(T, model.nu))
    t["pair_friction"] = rng.uniform(size=model.parameters.pair_friction.shape)
    pulled = [
        qdsim.rollout_dynamic_vjp(
            model,
            q,
            v,
            course,
            o,
            q_cotangent=y,
            v_cotangent=z,
            wrt=names,
            checkpoint=kept,
            threads=n,
        )
        for kept, n in ((None, 1), (1, 2), (0, 2))
    ]
    pushed = qdsim.rollout_dynamic_jvp(model, q, v, course, o, tangents=t)
    for name in names:
        np.testing.assert_allclose(
            pulled[1].gradients[name], pulled[0].gradients[name], rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(pulled[1].q, pushed.q, atol=1e-10)
    for i in range(2):
        dq, dv, now, speed = t["q"], t["v"], q[i], v[i]
        total = y[i, 0] @ dq + z[i, 0] @ dv
        for k in range(T):
            d = qdsim.differentiate_dynamic(model, now, speed, course[i, k], o)
            dq, dv = d.jvp({"q": dq, "v": dv, "u": t["u"][k], "pair_friction": t["pair_friction"]})
            now, speed = d.step.q_next, d.step.v_next
            scale = max(1.0, np.abs(dv).max())
            np.testing.assert_allclose(pushed.tangent[i, k + 1], dq, atol=1e-9 * scale)
            np.testing.assert_allclose(pushed.v_tangent[i, k + 1], dv, atol=1e-9 * scale)
            total += y[i, k + 1] @ dq + z[i, k + 1] @ dv
        back = sum(np.sum(pulled[0].gradients[name][i] * t[name]) for name in names)
        assert back == pytest.approx(total, rel=1e-7, abs=1e-7)


def test_samples_that_fail_are_named_or_marked():
    model, q, v, u = states("discs", 3)
    bad = v.copy()
    bad[1] = 1e200
    with pytest.raises((qdsim.SolverError, ValueError), match="sample 1"):
        step_dynamic_batch(model, q, bad, u)
    marked = step_dynamic_batch(model, q, bad, u, errors="mark")
    assert list(marked.ok) == [True, False, True]
    np.testing.assert_array_equal(marked.q_next[1], q[1])
    np.testing.assert_array_equal(marked.v_next[1], bad[1])
    course = np.zeros((3, model.nu))
    rolled = rollout_dynamic(model, q, bad, course, errors="mark")
    assert rolled.steps_done[1] == 0 and rolled.steps_done[0] == 3
    np.testing.assert_array_equal(rolled.v[1], np.tile(bad[1], (4, 1)))
    with pytest.raises(ValueError, match="v0: sample 1: element 0 is nan"):
        rollout_dynamic(model, q, np.where(bad > 1e100, np.nan, v), course)
    with pytest.raises(ValueError, match="v: expected shape"):
        step_dynamic_batch(model, q, v[:, 1:], u)
    with pytest.raises(TypeError, match=r"options: expected a qdsim\.DynamicOptions"):
        step_dynamic_batch(model, q, v, u, qdsim.Options())
    with pytest.raises(ValueError, match="one of the two cotangents"):
        qdsim.rollout_dynamic_vjp(model, q, v, course)


# ---------------------------------------------------------------- feedback

CART_POLE = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .05" mass="1"/><body pos="0 0 .05"><joint name="a" axis="0 1 0"/>
<geom type="capsule" size=".02 .25" pos="0 0 .25" mass=".2"/></body></body></worldbody>
<actuator><motor joint="x"/></actuator></mujoco>"""


def regulator(model, o, steps):
    """Gains of the infinite-horizon regulator at the upright rest, by iterating Riccati's equation
    on exact derivatives."""
    lin = qdsim.linearize_dynamic(model, model.default_q, np.zeros(model.nv), np.zeros(1), o)
    A, B, Q = lin.A, lin.B, np.eye(2 * model.nv)
    P = Q
    for _ in range(2000):
        K = np.linalg.solve(0.01 * np.eye(1) + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
    gain = np.broadcast_to(-K, (steps, 1, 2 * model.nv))
    return qdsim.Feedback(
        q_nominal=np.tile(model.default_q, (steps, 1)),
        v_nominal=np.zeros((steps, model.nv)),
        q_gain=gain[..., : model.nv],
        v_gain=gain[..., model.nv :],
        lower=[-20.0],
        upper=[20.0],
    )


def test_feedback_holds_a_pole_upright_and_is_that_of_single_steps():
    model, o, steps = qdsim.load(CART_POLE), qdsim.DynamicOptions(h=0.01), 500
    feedback = regulator(model, o, steps)
    q0, v0 = np.array([[0.1, 0.15], [-0.2, -0.1], [0.0, 0.3]]), np.zeros((3, 2))
    u = np.zeros((steps, 1))
    found = qdsim.rollout_dynamic(model, q0, v0, u, o, feedback=feedback, threads=2)
    assert np.abs(found.q[:, -1]).max() < 1e-2
    assert np.abs(found.commands).max() <= 20.0
    free = qdsim.rollout_dynamic(model, q0, v0, u, o)
    assert np.abs(free.q[:, 100:, 1]).max() > 1.0  # it falls by itself
    assert free.commands is None
    q, v = q0[2], v0[2]
    for t in range(40):
        command = feedback.q_gain[t] @ q + feedback.v_gain[t] @ v
        command = np.clip(command, -20.0, 20.0)
        np.testing.assert_allclose(found.commands[2, t], command, rtol=1e-12, atol=1e-12)
        s = qdsim.step_dynamic(model, q, v, command, o)
        q, v = s.q_next, s.v_next
        np.testing.assert_allclose(found.v[2, t + 1], v, rtol=1e-10, atol=1e-12)


def test_feedback_that_does_not_fit():
    model, o = qdsim.load(CART_POLE), qdsim.DynamicOptions(h=0.01)
    q0, v0, u = np.zeros(2), np.zeros(2), np.zeros((4, 1))
    good = {
        "q_nominal": np.zeros((4, 2)),
        "v_nominal": np.zeros((4, 2)),
        "q_gain": np.zeros((3, 4, 1, 2)),
        "v_gain": np.zeros((4, 1, 2)),
    }
    assert qdsim.rollout_dynamic(
        model, q0, v0, u, o, feedback=qdsim.Feedback(**good)
    ).commands.shape == (3, 4, 1)
    wrong = {
        "q_gain": np.zeros((4, 2, 1)),
        "v_nominal": np.full((4, 2), np.nan),
        "q_nominal": np.zeros((5, 2)),
        "lower": [np.nan],
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            feedback = qdsim.Feedback(**{**good, name: value})
            qdsim.rollout_dynamic(model, q0, v0, u, o, feedback=feedback)
