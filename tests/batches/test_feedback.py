"""Rollouts whose commands react to the state: derivatives against differences, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import DynamicOptions, Feedback, Options

# A pusher beside a free ellipsoid, whose turns the feedback knows, and a hinge that a loose ball joint hangs on.
SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body name="egg" pos="0 0 .1"><freejoint/><geom type="ellipsoid" size=".1 .12 .1" mass=".5" friction=".5"/></body>
<body pos="-.16 .02 .1"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<geom size=".05" mass=".3" friction=".5"/></body>
<body pos="1 1 1"><joint name="a" axis="0 1 0"/><geom type="capsule" size=".05 .2" pos="0 0 -.2"/>
<body pos="0 0 -.5"><joint type="ball" stiffness="3"/><geom size=".05" pos=".1 0 -.1"/></body></body></worldbody>
<actuator><position joint="x" kp="200"/><position joint="y" kp="200"/><position joint="a" kp="50"/></actuator></mujoco>"""
STEPS, SAMPLES = 5, 2
KINDS = {
    "exact": (False, Options(h=0.05)),
    "smoothed": (False, Options(h=0.05, kappa=200.0)),
    "convex": (True, DynamicOptions(h=0.02)),
    "coulomb": (True, DynamicOptions(h=0.02, law="coulomb")),
    "smoothed, with velocities": (True, DynamicOptions(h=0.02, kappa=200.0)),
}


def differences(model, q1, q0):
    """The tangents from the rows of q0 to those of q1."""
    q1, q0 = np.broadcast_arrays(q1, q0)
    rows = zip(q1.reshape(-1, model.nq), q0.reshape(-1, model.nq))
    return np.array([model.difference(a, b) for a, b in rows]).reshape(*q1.shape[:-1], model.nv)


class Case:
    """A model, where its rollouts begin, commands and gains, of which some commands reach their bounds."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.dynamic, self.options = KINDS[kind]
        self.model, rng = qdsim.load(SCENE), np.random.default_rng(seed)
        nv, nu = self.model.nv, self.model.nu
        q = self.model.default_q
        self.q0 = np.array(
            [self.model.integrate(q, 0.01 * rng.normal(size=nv)) for _ in range(SAMPLES)]
        )
        self.v0 = 0.2 * rng.normal(size=(SAMPLES, nv))
        self.u = rng.uniform(0, 0.05, size=(SAMPLES, STEPS, nu))
        far = np.array([self.model.integrate(q, 0.6 * rng.normal(size=nv)) for _ in range(STEPS)])
        self.fields = {"q_nominal": far, "q_gain": 0.03 * rng.normal(size=(STEPS, nu, nv))}
        if self.dynamic:
            self.fields["v_nominal"] = rng.normal(size=(STEPS, nv))
            self.fields["v_gain"] = 0.01 * rng.normal(size=(SAMPLES, STEPS, nu, nv))
        self.bounds = {"lower": [-0.03, -1.0, -1.0], "upper": [0.06, 1.0, 0.02]}

    @property
    def feedback(self) -> Feedback:
        return Feedback(**self.fields, **self.bounds)

    def start(self) -> dict[str, np.ndarray]:
        return {"q0": self.q0, "v0": self.v0} if self.dynamic else {"q0": self.q0}

    def roll(self, **changed):
        call = qdsim.rollout_dynamic if self.dynamic else qdsim.rollout
        given = {**self.start(), "u": self.u, "feedback": self.feedback, **changed}
        return call(self.model, options=self.options, **given)

    def pull(self, y, z, wrt, **more):
        given = {**self.start(), "u": self.u, "feedback": self.feedback, "wrt": wrt, **more}
        if self.dynamic:
            cotangents = {"q_cotangent": y, "v_cotangent": z}
            return qdsim.rollout_dynamic_vjp(
                self.model, options=self.options, **given, **cotangents
            )
        return qdsim.rollout_vjp(self.model, options=self.options, **given, cotangent=y)

    def push(self, tangents):
        call = qdsim.rollout_dynamic_jvp if self.dynamic else qdsim.rollout_jvp
        given = {**self.start(), "u": self.u, "feedback": self.feedback, "tangents": tangents}
        return call(self.model, options=self.options, **given)

    def moved(self, name, t, s):
        """The rollout with one of its arguments moved by s t."""
        if name == "q":
            ends = [self.model.integrate(q, s * d) for q, d in zip(self.q0, t)]
            return self.roll(q0=np.array(ends))
        if name == "v":
            return self.roll(v0=self.v0 + s * t)
        if name == "u":
            return self.roll(u=self.u + s * t)
        if name in self.fields:
            fields = {**self.fields, name: self.fields[name] + s * t}
            return self.roll(feedback=Feedback(**fields, **self.bounds))
        own = getattr(self.model.parameters, name)
        return self.roll(parameters={name: own + s * t})

    def change(self, name, t, e=1e-6):
        """Central differences of all configurations, and of all velocities or zeros."""
        ends = [self.moved(name, t, s * e) for s in (1, -1)]
        by_q = differences(self.model, ends[0].q, ends[1].q) / (2 * e)
        by_v = (ends[0].v - ends[1].v) / (2 * e) if self.dynamic else 0.0 * by_q
        return by_q, by_v


@pytest.mark.parametrize("kind", KINDS)
def test_commands_are_those_of_single_steps(kind):
    case = Case(kind)
    found, low, high = case.roll(), *case.bounds.values()
    at_bounds = (found.commands == low) | (found.commands == high)
    assert at_bounds.any() and not at_bounds.all()
    for i in range(SAMPLES):
        q = case.q0[i]
        v = case.v0[i]
        for t in range(STEPS):
            away = case.model.difference(q, case.fields["q_nominal"][t])
            u = case.u[i, t] + case.fields["q_gain"][t] @ away
            if case.dynamic:
                u = u + case.fields["v_gain"][i, t] @ (v - case.fields["v_nominal"][t])
            u = np.clip(u, low, high)
            np.testing.assert_allclose(found.commands[i, t], u, atol=1e-12)
            if case.dynamic:
                s = qdsim.step_dynamic(case.model, q, v, found.commands[i, t], case.options)
                v = s.v_next
            else:
                s = qdsim.step(case.model, q, found.commands[i, t], case.options)
            q = s.q_next
            np.testing.assert_allclose(found.q[i, t + 1], q, atol=1e-9)


@pytest.mark.short_cases(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["q", "v", "u", "body_mass"])
def test_products_are_differences(kind, name):
    case, rng = Case(kind), np.random.default_rng(1)
    if name == "v" and not case.dynamic:
        return
    shape = {"q": (SAMPLES, case.model.nv), "v": (SAMPLES, case.model.nv), "u": case.u.shape}
    t = rng.uniform(-1, 1, shape.get(name, (case.model.body_count,)))
    if name == "body_mass":
        t *= case.model.parameters.body_mass
    by_q, by_v = case.change(name, t)
    pushed = case.push({name: t})
    scale = max(1.0, np.abs(by_v).max())
    np.testing.assert_allclose(pushed.tangent, by_q, atol=2e-5 * scale)
    if case.dynamic:
        np.testing.assert_allclose(pushed.v_tangent, by_v, atol=2e-5 * scale)
    y, z = rng.normal(size=(2, *by_q.shape))
    for kept in (None, 2, 0):
        pulled = case.pull(y, z, (name,), checkpoint=kept)
        back = np.sum(pulled.gradients[name] * t)
        there = np.sum(y * pushed.tangent)
        if case.dynamic:
            there += np.sum(z * pushed.v_tangent)
        assert back == pytest.approx(there, rel=1e-8, abs=1e-8)
        np.testing.assert_allclose(pulled.commands, pushed.commands, atol=1e-9)


@pytest.mark.parametrize("kind", ["exact", "coulomb"])
@pytest.mark.parametrize("name", ["q_gain", "v_gain"])
def test_gradients_by_gains_are_products_with_those_by_commands(kind, name):
    case, rng = Case(kind), np.random.default_rng(2)
    if name not in case.fields:
        return
    t = rng.normal(size=case.fields[name].shape)
    by_q, by_v = case.change(name, t, e=1e-5)
    y, z = rng.normal(size=(2, *by_q.shape))
    pulled = case.pull(y, z, ("u",))
    away = differences(case.model, pulled.q[:, :-1], case.fields["q_nominal"])
    if name == "v_gain":
        away = pulled.v[:, :-1] - case.fields["v_nominal"]
    gradient = pulled.gradients["u"][..., None] * away[..., None, :]
    there = np.sum(y * by_q) + np.sum(z * by_v)
    assert np.sum(gradient * t) == pytest.approx(there, rel=1e-4, abs=1e-5)


def test_what_a_bound_holds_does_not_change():
    case = Case("exact")
    case.bounds = {"lower": [0.01] * 3, "upper": [0.01] * 3}
    pushed = case.push({"u": np.ones_like(case.u)})
    np.testing.assert_array_equal(pushed.tangent, 0.0)
    pulled = case.pull(np.ones_like(pushed.tangent), None, ("u", "q"))
    np.testing.assert_array_equal(pulled.gradients["u"], 0.0)
    open_loop = qdsim.rollout_vjp(
        case.model, case.q0, pulled.commands, case.options, cotangent=np.ones_like(pushed.tangent)
    )
    np.testing.assert_allclose(pulled.gradients["q"], open_loop.gradients["q"], atol=1e-9)


def test_cotangents_made_from_the_rollout_and_numbers_of_q():
    case = Case("exact")
    y = np.random.default_rng(3).normal(size=(SAMPLES, STEPS + 1, case.model.nv))
    one = case.pull(y, None, ("q", "u"))
    two = case.pull(lambda q: y, None, ("q", "u"))
    np.testing.assert_allclose(two.commands, one.commands, atol=1e-9)
    for name in ("q", "u"):
        np.testing.assert_allclose(two.gradients[name], one.gradients[name], rtol=1e-6, atol=1e-8)
    w = np.random.default_rng(4).normal(size=(SAMPLES, STEPS + 1, case.model.nq))
    of_numbers = case.pull(w, None, ("q",), coordinates="ambient").gradients["q"]
    t, e = np.random.default_rng(5).normal(size=case.q0.shape), 1e-7
    ends = [np.sum(w * case.roll(q0=case.q0 + s * e * t).q) for s in (1, -1)]
    # the first configurations are normalised, and so is what the sum has of them
    assert np.sum(of_numbers * t) == pytest.approx((ends[0] - ends[1]) / (2 * e), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"v_gain": np.zeros((STEPS, 3, 12))}, ValueError, "v_gain: expected with v_nominal"),
        (
            {"v_gain": np.zeros((STEPS, 3, 12)), "v_nominal": np.zeros((STEPS, 12))},
            ValueError,
            "v_gain: expected None",
        ),
        ({"q_gain": np.zeros((STEPS + 1, 3, 12))}, ValueError, "q_gain: expected 5 steps"),
        ({"q_gain": np.full((STEPS, 3, 12), np.nan)}, ValueError, "q_gain: expected finite"),
        ({"q_nominal": np.zeros((2, STEPS, 14))}, ValueError, "q_nominal: expected the same"),
    ],
)
def test_feedback_that_does_not_fit_is_named(change, error, message):
    case = Case("exact")
    case.fields.update(change)
    for call in (case.roll, lambda: case.pull(np.zeros((STEPS + 1, 12)), None, ("u",))):
        with pytest.raises(error, match=message):
            call()
    with pytest.raises(TypeError, match="feedback: expected"):
        Case("exact").roll(feedback=case.fields)
