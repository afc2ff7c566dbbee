"""Derivatives of steps whose geometries press by pressure fields, beside central differences of the step itself."""

import numpy as np
import pytest

import qdsim

MODULUS = 1e6


def _floor(friction, **body):
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=friction)
    scene.body("body", mass=1.0, **body)
    scene.joint("body", "free")
    return scene


def box(friction=0.5):
    scene = _floor(friction, pos=(0, 0, 0.009))
    scene.geom("body", "box", (0.03, 0.02, 0.01), name="box", soft=MODULUS, friction=friction)
    return qdsim.build(scene.build())


def ball(friction=0.5, dissipation=0.0):
    scene = _floor(friction, pos=(0, 0, 0.019))
    softness = qdsim.Softness(MODULUS, hint=0.005, dissipation=dissipation)
    scene.geom("body", "sphere", 0.02, name="ball", soft=softness, friction=friction)
    return qdsim.build(scene.build())


def rigid_in_soft_ground():
    """A rigid ellipsoid in a soft half space: the first side is rigid."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    ground = qdsim.Softness(MODULUS, thickness=0.05)
    scene.geom("world", "plane", name="ground", friction=0.4, soft=ground)
    scene.body("body", mass=1.0, pos=(0, 0, 0.0285))
    scene.joint("body", "free")
    scene.geom("body", "ellipsoid", (0.05, 0.04, 0.03), name="stone", friction=0.4)
    return qdsim.build(scene.build())


def two_soft():
    """A soft capsule on a soft box, on a slide that a spring holds."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    scene.body("table", pos=(0, 0, -0.03), mass=1.0)
    scene.joint("table", "slide", name="x", axis=(1, 0, 0))
    scene.actuator("x", 5000.0)
    scene.geom("table", "box", (0.1, 0.1, 0.03), name="table", friction=0.4, soft=4e5)
    scene.body("body", pos=(0, 0, 0.014), mass=0.3)
    scene.joint("body", "free")
    turned = np.array([0.7, 0.1, 0.7, 0.05])
    scene.geom(
        "body",
        "capsule",
        (0.015, 0.03),
        name="cap",
        quat=tuple(turned / np.linalg.norm(turned)),
        friction=0.4,
        soft=qdsim.Softness(1e5, hint=0.01),
    )
    return qdsim.build(scene.build())


def arm():
    """Two hinges and a soft tip on a soft box that another hinge carries: both sides hang on chains."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    scene.body("base", pos=(0, 0, 0.2), mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    scene.joint("base", "hinge", name="yaw", axis=(0, 0, 1))
    scene.body("upper", parent="base", pos=(0.05, 0, 0), mass=0.2, inertia=(1e-3, 1e-3, 1e-3))
    scene.joint("upper", "hinge", name="shoulder", axis=(0, 1, 0))
    scene.body("lower", parent="upper", pos=(0.1, 0, 0), mass=0.1)
    scene.joint("lower", "hinge", name="elbow", axis=(0, 1, 0.1))
    tip = qdsim.Softness(5e5, hint=0.008)
    scene.geom("lower", "sphere", 0.012, pos=(0.08, 0, 0), name="tip", soft=tip, friction=0.6)
    scene.body("flap", parent="base", pos=(0.2, 0.01, -0.0308), mass=0.2)
    scene.joint("flap", "hinge", name="flap", axis=(0.1, 1, 0))
    scene.geom("flap", "box", (0.05, 0.04, 0.02), name="flap", soft=1e6, friction=0.6)
    for joint, stiffness in (("yaw", 50.0), ("shoulder", 20.0), ("elbow", 20.0)):
        scene.actuator(joint, stiffness)
    return qdsim.build(scene.build())


def _options(**changes):
    return qdsim.Options(**{"h": 0.01, "epsilon": 1.0, **changes})


TURNED = (0.0, 0.0, 0.0, 0.01, 0.02, 0.1)
ROLLED = (0.0, 0.0, 0.0, 0.1, 0.2, 0.1)
# model, displacement of its default configuration, command, forces, options
CASES = {
    "ball without friction": (lambda: ball(0.0), ROLLED, [], [0, 0, -20, 0, 0, 0], {}),
    "box that sticks": (box, TURNED, [], [1, 2, -300, 0.1, 0.2, 0.05], {}),
    "box that turns": (box, (0, 0, 0, 0.003, 0, 0.3), [], [30, 0, -300, 0, 0, 0.5], {}),
    "ball that sticks": (ball, ROLLED, [], [1, 2, -20, 0.01, 0.02, 0], {}),
    "ball that slides": (ball, ROLLED, [], [16, 12, -20, 0.1, 0.02, 0.05], {}),
    "ball, one element": (
        ball,
        ROLLED,
        [],
        [16, 12, -20, 0.1, 0.02, 0.05],
        {"patch_friction": "ellipsoid"},
    ),
    "ball, smoothed": (ball, ROLLED, [], [1, 2, -20, 0.01, 0.02, 0], {"kappa": 1e4}),
    "ball, smoothed element": (
        ball,
        ROLLED,
        [],
        [5, 2, -20, 0.01, 0.02, 0.01],
        {"kappa": 1e4, "patch_friction": "ellipsoid"},
    ),
    "rigid in soft ground": (
        rigid_in_soft_ground,
        (0, 0, 0, 0.2, 0.1, 0.3),
        [],
        [30, 10, -60, 0.02, 0.0, 0.01],
        {},
    ),
    "two soft bodies": (
        two_soft,
        (0.001, 0, 0, 0, 0.02, 0.01, 0.05),
        [0.002],
        [0, 1, 0.5, -8, 0.0, 0.01, 0.01],
        {},
    ),
    "two soft bodies, smoothed": (
        two_soft,
        (0.001, 0, 0, 0, 0.02, 0.01, 0.05),
        [0.002],
        [0, 1, 0.5, -8, 0.0, 0.01, 0.01],
        {"kappa": 1e4},
    ),
    "chains": (arm, (0.05, 0.02, 0, 0), [0.07, 0.05, 0.05], [0, 0, 0, -0.3], {}),
}


def _case(name):
    make, displaced, u, tau, options = CASES[name]
    model = make()
    q = model.integrate(model.default_q, np.array(displaced, float))
    return model, q, np.array(u, float), np.array(tau, float), _options(**options)


def _varied(model, name, by):
    """A model with one parameter along a direction."""
    return model.with_parameters(**{name: getattr(model.parameters, name) + by})


def _difference(model, step, size):
    def one(size):
        return (
            model.difference(step(size), step(0.0)) - model.difference(step(-size), step(0.0))
        ) / (2 * size)

    return (4 * one(size) - one(2 * size)) / 3


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_central_differences(name):
    model, q, u, tau, options = _case(name)
    d = qdsim.differentiate(model, q, u, options, tau=tau)
    assert d.step.info.soft_converged and d.step.info.derivative_exact
    rng = np.random.default_rng(len(name))
    for wrt, size in (("q", 1e-6), ("u", 1e-6), ("tau", 1e-4), ("geom_modulus", 1.0)):
        shape = {"q": model.nv, "u": model.nu, "tau": model.nv}.get(wrt)
        direction = (
            rng.normal(size=shape)
            if shape is not None
            else getattr(model.parameters, wrt)
            * rng.normal(size=len(model.parameters.geom_modulus))
        )
        if direction.size == 0:
            continue
        if wrt == "geom_modulus":
            size = 1e-5

        def step(s, wrt=wrt, direction=direction):
            at, command, force, varied = q, u, tau, model
            if wrt == "q":
                at = model.integrate(q, s * direction)
            elif wrt == "u":
                command = u + s * direction
            elif wrt == "tau":
                force = tau + s * direction
            else:
                varied = _varied(model, wrt, s * direction)
            return qdsim.step(varied, at, command, options, tau=force).q_next

        expected = _difference(model, step, size)
        scale = np.abs(expected).max() + 1e-12
        np.testing.assert_allclose(d.jvp({wrt: direction}) / scale, expected / scale, atol=2e-5)
    friction = np.zeros_like(model.parameters.pair_friction)
    friction[..., :2] = 1.0  # both directions of sliding
    if model.parameters.pair_friction[..., 0].max() > 0.0:
        expected = _difference(
            model,
            lambda s: (
                qdsim.step(
                    _varied(model, "pair_friction", s * friction), q, u, options, tau=tau
                ).q_next
            ),
            1e-5,
        )
        np.testing.assert_allclose(
            d.jvp({"pair_friction": friction}), expected, atol=2e-5 * np.abs(expected).max() + 1e-7
        )


@pytest.mark.parametrize("name", CASES)
def test_both_ways_and_matrices_agree(name):
    """A cotangent times a jvp is a tangent times the vjp; linearize has the same matrices."""
    model, q, u, tau, options = _case(name)
    d = qdsim.differentiate(model, q, u, options, tau=tau)
    lin = qdsim.linearize(model, q, u, options, tau=tau)
    wrt = ("q", "u", "tau", "geom_modulus", "pair_friction", "body_mass", "gravity")
    J = d.jacobians(wrt)
    scale = np.abs(J["q"]).max()
    np.testing.assert_allclose(lin.A / scale, J["q"] / scale, atol=1e-8)
    np.testing.assert_allclose(lin.B, J["u"], rtol=1e-8, atol=1e-8)
    rng = np.random.default_rng(1)
    for at in wrt:
        if J[at].size == 0:
            continue
        tangent = rng.normal(size=J[at].shape[1:]) * (MODULUS if at == "geom_modulus" else 1.0)
        y = rng.normal(size=model.nv)
        forward = d.jvp({at: tangent})
        back = np.sum(d.vjp(y, (at,))[at] * tangent)
        size = np.abs(y * forward).sum() + np.abs(y @ J[at].reshape(model.nv, -1)).max() * 1e-3
        assert y @ forward == pytest.approx(back, abs=1e-8 * size + 1e-14)


def test_batches_and_rollouts_have_the_same_derivatives():
    model, q, u, tau, options = _case("ball that slides")
    rows = np.repeat(q[None], 3, axis=0)
    rows[:, 2] -= (0.0, 2e-4, 5e-4)
    taus = np.tile(tau, (3, 1))
    batch = qdsim.linearize_batch(model, rows, np.zeros((3, 0)), options, tau=taus, threads=2)
    for i in range(3):
        one = qdsim.linearize(model, rows[i], [], options, tau=tau)
        np.testing.assert_array_equal(batch.A[i], one.A)
    # a rollout is a product of steps
    model, q, u, tau, options = _case("two soft bodies")
    us = u + 1e-4 * np.arange(3)[:, None]
    y = np.random.default_rng(0).normal(size=(4, model.nv))
    taus = np.tile(tau, (3, 1))
    grads = qdsim.rollout_vjp(model, q, us, options, cotangent=y, tau=taus).gradients
    cotangent, steps, at = y[3].copy(), [], q
    for u_t in us:
        steps.append(qdsim.differentiate(model, at, u_t, options, tau=tau))
        at = steps[-1].q_next
    for t in (2, 1, 0):
        back = steps[t].vjp(cotangent, ("q", "u"))
        np.testing.assert_allclose(grads["u"][t], back["u"], rtol=1e-6)
        cotangent = back["q"] + (y[t] if t else 0.0)
    np.testing.assert_allclose(grads["q"], cotangent + y[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dissipation", [0.0, 2.0])
@pytest.mark.parametrize("slide", [0.0, 0.5])
def test_second_order_steps_with_dissipation(dissipation, slide):
    model = ball(dissipation=dissipation)
    q = model.integrate(model.default_q, np.array(ROLLED))
    v = np.array([slide, 0.1 * slide, -0.05, 0.3, 0.1, 0.2])
    tau = np.array([0, 0, -9.81, 0, 0, 0.0])
    options = qdsim.DynamicOptions(h=2e-3)
    d = qdsim.differentiate_dynamic(model, q, v, [], options, tau=tau)
    assert d.step.info.derivative_exact
    lin = qdsim.linearize_dynamic(model, q, v, [], options, tau=tau)
    whole = np.block([[by[n] for n in ("q", "v")] for by in d.jacobians(("q", "v"))])
    np.testing.assert_allclose(lin.A, whole, atol=1e-8 * np.abs(whole).max())
    rng = np.random.default_rng(0)
    for wrt, size in (("q", 1e-7), ("v", 1e-6), ("h", 1e-8), ("geom_modulus", 1e-6)):
        direction = rng.normal(size=1 if wrt == "h" else model.nv)
        if wrt == "geom_modulus":
            direction = model.parameters.geom_modulus.copy()

        def step(s, wrt=wrt, direction=direction):
            at, speed, o, varied = q, v, options, model
            if wrt == "q":
                at = model.integrate(q, s * direction)
            elif wrt == "v":
                speed = v + s * direction
            elif wrt == "h":
                o = qdsim.DynamicOptions(h=2e-3 + s * direction[0])
            else:
                varied = _varied(model, wrt, s * direction)
            return qdsim.step_dynamic(varied, at, speed, [], o, tau=tau).v_next

        expected = (step(size) - step(-size)) / (2 * size)
        tangent = direction[0] if wrt == "h" else direction
        got = d.jvp({wrt: tangent})[1]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got / scale, expected / scale, atol=2e-5)
        y = rng.normal(size=model.nv)
        back = d.vjp(np.zeros(model.nv), y, wrt=(wrt,))[wrt]
        assert np.sum(back * tangent) == pytest.approx(y @ got, rel=1e-7)


def test_a_flush_edge_has_no_derivative():
    """Where an edge of the patch lies on faces of both bodies, the flag says so."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "box", (0.02, 0.02, 0.01), pos=(0, 0, -0.01), name="ground", soft=1e6)
    scene.body("body", mass=1.0, pos=(0, 0, 0.0095))
    scene.joint("body", "free")
    scene.geom("body", "box", (0.02, 0.02, 0.01), name="box", soft=1e6, friction=0.5)
    model = qdsim.build(scene.build())
    d = qdsim.differentiate(model, model.default_q, [], _options(), tau=[0, 0, -100, 0, 0, 0])
    assert not d.step.info.derivative_exact
