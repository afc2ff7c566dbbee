"""Bodies that turn freely: energy, momentum, Euler's equations, and derivatives where a step turns far."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import DynamicOptions, step_dynamic

INERTIA = np.array([1.0, 2.0, 3.0])

# A body off its origin, with another one welded to it; a top on a ball joint that is off its
# centre; another with a rotor.
BODIES = """<mujoco><option gravity="0 0 0"/><worldbody>
<body pos="0 0 1" euler="10 20 30"><freejoint/><geom type="box" size=".1 .2 .3" pos=".2 .1 -.1" euler="40 0 20"/>
 <body pos=".1 .3 .2"><geom type="capsule" size=".1 .2" mass="9"/></body></body>
<body pos="3 0 1" euler="50 0 10"><joint type="ball" pos=".1 .1 0"/><geom type="box" size=".1 .2 .3" pos=".2 .3 .1"/></body>
<body pos="6 0 1"><joint type="ball" armature=".3" damping=".2"/><geom type="ellipsoid" size=".3 .1 .2"/></body>
</worldbody></mujoco>"""


def top(joint="ball", com=(0, 0, 0)):
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("top", mass=2.0, inertia=tuple(INERTIA), com=com)
    scene.joint("top", joint)
    return qdsim.build(scene.build())


def rotation(model, q):
    w, x, y, z = q[-4:]
    u = np.array([x, y, z])
    cross = np.cross(np.eye(3), u)
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def body_spin(model, joint, q, v):
    """Angular velocity along the body's axes: of a ball joint v is along those before it, the world's here."""
    return rotation(model, q).T @ v[-3:]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("joint", ["ball", "free"])
@pytest.mark.parametrize(("h", "spin"), [(0.01, 5.0), (0.1, 5.0), (0.05, 40.0), (0.5, 5.0)])
def test_energy_and_the_length_of_the_momentum_stay(joint, h, spin):
    """Up to 2.5 radians a step, near the axis about which a body tumbles (Dzhanibekov)."""
    model = top(joint)
    q, v = np.array(model.default_q), np.zeros(model.nv)
    v[-3:] = 0.01, spin, 0.01
    least = most = spin
    for _ in range(1000):
        s = step_dynamic(model, q, v, [], DynamicOptions(h=h))
        q, v = s.q_next, s.v_next
        along = body_spin(model, joint, q, v)
        least, most = min(least, along[1]), max(most, along[1])
        assert 0.5 * INERTIA @ along**2 == pytest.approx(0.5 * 2 * spin**2 + 2e-4, rel=1e-10)
        assert np.linalg.norm(INERTIA * along) == pytest.approx(
            np.linalg.norm(INERTIA * (0.01, spin, 0.01)), rel=1e-10
        )
    if h < 0.5:
        assert least < -0.95 * spin  # it has turned over
    assert most < spin * (1 + 1e-5)


def test_flips_are_those_of_eulers_equations():
    """Against an eighth-order integrator; the midpoint rule is of second order in the body's axes."""
    integrate = pytest.importorskip("scipy.integrate").solve_ivp
    model, start, seconds = top(), np.array([0.4, 5.0, 0.3]), 3.0
    exact = integrate(
        lambda t, w: np.cross(INERTIA * w, w) / INERTIA,
        (0, seconds),
        start,
        method="DOP853",
        rtol=1e-12,
        atol=1e-12,
    ).y[:, -1]
    errors = []
    for h in (0.02, 0.01, 0.005):
        q, v = np.array(model.default_q), start
        for _ in range(round(seconds / h)):
            s = step_dynamic(model, q, v, [], DynamicOptions(h=h))
            q, v = s.q_next, s.v_next
        errors.append(np.abs(body_spin(model, "ball", q, v) - exact).max())
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)
    assert errors[-1] < 0.02


def test_the_direction_of_the_momentum_is_of_first_order():
    model, start = top(), np.array([0.4, 5.0, 0.3])
    errors = []
    for h in (0.02, 0.01, 0.005):
        q, v = np.array(model.default_q), start
        worst = 0.0
        for _ in range(round(3.0 / h)):
            s = step_dynamic(model, q, v, [], DynamicOptions(h=h))
            q, v = s.q_next, s.v_next
            momentum = rotation(model, q) @ (INERTIA * body_spin(model, "ball", q, v))
            worst = max(worst, np.linalg.norm(momentum - INERTIA * start))
        errors.append(worst)
    assert np.all(np.divide(errors[:-1], errors[1:]) > 1.7)
    assert errors[-1] < 0.05 * np.linalg.norm(INERTIA * start)


@pytest.mark.parametrize("h", [0.01, 0.2])
def test_the_centre_of_mass_goes_straight(h):
    com = np.array([0.3, -0.2, 0.1])
    model = top("free", tuple(com))
    q, v = np.array(model.default_q), np.array([0.3, 0.1, -0.2, 1.0, 6.0, 0.5])
    wanted = v[:3] + np.cross(v[3:], com)
    for _ in range(200):
        s = step_dynamic(model, q, v, [], DynamicOptions(h=h))
        q, v = s.q_next, s.v_next
        np.testing.assert_allclose(
            v[:3] + np.cross(v[3:], rotation(model, q) @ com), wanted, atol=1e-11
        )
        assert s.kinetic_energy[1] == pytest.approx(s.kinetic_energy[0], rel=1e-11)


def test_explicit_forces_agree_for_short_steps():
    model, v = top("free", (0.1, 0, 0)), np.array([0.0, 0, 0, 0.4, 5.0, 0.3])
    apart = []
    for h in (1e-3, 5e-4):
        both = [
            step_dynamic(model, model.default_q, v, [], DynamicOptions(h=h, gyroscopic=way)).v_next
            for way in ("implicit", "explicit")
        ]
        apart.append(np.abs(both[0] - both[1]).max())
    assert apart[0] / apart[1] == pytest.approx(4.0, abs=0.1)  # of velocities, in one step


ARGUMENTS = ("q", "v", "tau", "wrench", "h", "body_mass", "body_com", "body_inertia")


@pytest.mark.parametrize("turn", [0.1, 1.0])
def test_derivatives_by_differences(turn):
    """At up to about a radian a step."""
    rng = np.random.default_rng(7)
    model = qdsim.load(BODIES)
    q = model.integrate(model.default_q, 0.3 * rng.normal(size=model.nv))
    h = 0.05
    v, tau = turn / h * rng.uniform(-0.6, 0.6, model.nv), rng.normal(size=model.nv)
    wrench, o = rng.normal(size=(model.body_count, 6)), DynamicOptions(h=h)
    d = qdsim.differentiate_dynamic(model, q, v, [], o, tau=tau, wrench=wrench)
    of_q, of_v = d.jacobians(ARGUMENTS)
    sweep = qdsim.linearize_dynamic(model, q, v, [], o, tau=tau, wrench=wrench)

    def at(name, t, e):
        moved, state = model, {"q": q, "v": v, "tau": tau, "wrench": wrench, "h": h}
        if name == "q":
            state["q"] = model.integrate(q, e * t)
        elif name in state:
            state[name] = state[name] + e * t
        else:
            moved = model.with_parameters(**{name: getattr(model.parameters, name) + e * t})
        return step_dynamic(
            moved,
            state["q"],
            state["v"],
            [],
            DynamicOptions(h=float(state["h"])),
            tau=state["tau"],
            wrench=state["wrench"],
        )

    for name in ARGUMENTS:
        t = rng.uniform(-1, 1, of_q[name].shape[1:])
        if name == "body_inertia":
            t = t + t.transpose(0, 2, 1)
            t *= 0.1 * model.parameters.body_inertia[:, :1, :1]
        if name == "body_mass":
            t = t * model.parameters.body_mass
        e = 1e-5 * (h if name == "h" else 1.0)
        ends = [at(name, t, s * e) for s in (1, -1)]
        along_v = (ends[0].v_next - ends[1].v_next) / (2 * e)
        along_q = model.difference(ends[0].q_next, ends[1].q_next) / (2 * e)
        by_v = of_v[name].reshape(model.nv, -1) @ np.ravel(t)
        by_q = of_q[name].reshape(model.nv, -1) @ np.ravel(t)
        np.testing.assert_allclose(by_v, along_v, atol=3e-6 * max(1, abs(by_v).max()), err_msg=name)
        np.testing.assert_allclose(by_q, along_q, atol=3e-6 * max(1, abs(by_q).max()), err_msg=name)
        pushed_q, pushed_v = d.jvp({name: t})
        np.testing.assert_allclose(pushed_v, by_v, atol=1e-9 * max(1, abs(by_v).max()))
        np.testing.assert_allclose(pushed_q, by_q, atol=1e-9 * max(1, abs(by_q).max()))
        alone = d.vjp(None, np.eye(model.nv), wrt=(name,))[name]
        np.testing.assert_allclose(alone, of_v[name], atol=1e-9 * max(1, abs(of_v[name]).max()))
    for name in ("q", "v"):
        scale = abs(of_v[name]).max()
        np.testing.assert_allclose(sweep.of_v[name], of_v[name], atol=1e-11 * scale)


def test_bodies_without_inertia_about_an_axis_do_not_stop_a_step():
    """A needle: nothing says how it spins about itself, and a joint's rotor holds it."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.body("needle", mass=1.0, inertia=(0.1, 0.1, 1e-9))
    scene.joint("needle", "ball", armature=1e-3)
    model = qdsim.build(scene.build())
    q, v = np.array(model.default_q), np.array([30.0, 20.0, 500.0])
    for _ in range(200):
        s = step_dynamic(model, q, v, [], DynamicOptions(h=0.01))
        q, v = s.q_next, s.v_next
        assert np.isfinite(v).all()


def test_what_gyroscopic_may_be():
    with pytest.raises(ValueError, match="gyroscopic: expected"):
        DynamicOptions(gyroscopic="midpoint")
