"""Motions over a time: closed forms, SciPy's integrators, accuracy, events, going on, and what is refused."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import qdsim
from qdsim import DynamicOptions, simulate

G = 9.81

DOUBLE = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size=".001" mass="1"/><body pos="0 0 -1"><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size=".001" mass="1"/></body></body></worldbody></mujoco>"""


def floor_scene(body: str, mu: float = 0.0) -> qdsim.Model:
    return qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody>'
        f'<geom name="floor" type="plane" size="5 5 1" friction="{mu}"/>'
        f'<body name="thing" pos="0 0 .1">{body}</body></worldbody></mujoco>'
    )


def ball() -> qdsim.Model:
    return floor_scene('<joint type="slide"/><geom name="ball" size=".1" mass="1"/>')


def smooth_reference(model: qdsim.Model, q, v, end: float):
    """The smooth motion by an eighth-order method; forces from differences of the energy."""

    def slope(_, x):
        q, v, e = x[: model.nv], x[model.nv :], 1e-5
        still = np.zeros(model.nv)
        force = [
            -(model.energy(q + e * d, still)[1] - model.energy(q - e * d, still)[1]) / (2 * e)
            for d in np.eye(model.nv)
        ]
        return [*v, *np.linalg.solve(model.mass_matrix(q), force - model.bias_force(q, v))]

    return solve_ivp(slope, (0, end), [*q, *v], "DOP853", rtol=1e-10, atol=1e-11, dense_output=True)


# ---------------------------------------------------------------- smooth motion


def test_the_order_is_one_on_a_double_pendulum_at_any_time():
    model = qdsim.load(DOUBLE)
    exact = smooth_reference(model, [0.0, 0.5], [0.0, 0.0], 1.0)
    times = np.linspace(0, 1, 37)
    wanted = exact.sol(times).T
    errors = []
    for h in (0.01, 0.005, 0.0025):
        done = simulate(model, [0.0, 0.5], [0.0, 0.0], [], 1.0, DynamicOptions(h=h))
        assert done.t[-1] == pytest.approx(1.0, abs=1e-12) and len(done.u) == round(1 / h)
        q, v = done.at(times)
        errors.append((np.abs(q - wanted[:, :2]).max(), np.abs(v - wanted[:, 2:]).max()))
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(rates, 1.0, atol=0.08)


@pytest.mark.long
def test_errors_follow_the_accuracy():
    model = qdsim.load(DOUBLE)
    exact = smooth_reference(model, [0.0, 0.5], [0.0, 0.0], 1.0)
    errors, steps = [], []
    for accuracy in (1e-3, 1e-4, 1e-5, 1e-6):
        done = simulate(
            model, [0.0, 0.5], [0.0, 0.0], [], 1.0, DynamicOptions(h=0.1), accuracy=accuracy
        )
        errors.append(np.abs(done.q - exact.sol(done.t).T[:, :2]).max())
        steps.append(len(done.u))
        assert done.t[-1] == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.diff(errors) < 0) and np.all(np.diff(steps) > 0)
    # a hundredth of the accuracy: about a tenth of the error, for ten times the steps
    assert errors[2] < 0.3 * errors[0] and errors[3] < 0.3 * errors[1]
    assert steps[3] < 20 * steps[1]


def test_a_free_body_turns_as_scipy_says():
    """Three different moments of inertia; Euler's equations in body axes by DOP853."""
    moments, spin = np.array([0.01, 0.02, 0.025]), np.array([0.5, 3.0, 0.4])
    scene = qdsim.SceneBuilder(gravity=(0, 0, -G))
    scene.body("top", mass=1.0, inertia=tuple(moments))
    scene.joint("top", "free")
    model = qdsim.build(scene.build())

    def slope(_, x):
        w, quat = x[:3], x[3:]
        turn = np.concatenate(
            [[-quat[1:] @ w], quat[0] * w + np.cross(quat[1:], w)]
        )  # quat times (0, w) / 2
        return [*(np.cross(moments * w, w) / moments), *(0.5 * turn)]

    exact = solve_ivp(slope, (0, 1), [*spin, 1, 0, 0, 0], "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    v0, errors = np.array([1.0, 2.0, 3.0, *spin]), []
    for h in (0.004, 0.002, 0.001):
        done = simulate(model, model.default_q, v0, [], 1.0, DynamicOptions(h=h))
        sign = np.sign(done.q[-1, 3:] @ exact[3:])
        errors.append(np.abs(sign * done.q[-1, 3:] - exact[3:]).max())
        np.testing.assert_allclose(done.v[-1, :3], v0[:3] - [0, 0, G], atol=1e-9)
        late = v0[:3] - [0, 0, 0.5 * G * (1 + h)]  # of a parabola half a step late
        np.testing.assert_allclose(done.q[-1, :3], late, atol=1e-9)
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1.0, atol=0.1)


# ---------------------------------------------------------------- contacts


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_a_bouncing_ball(e):
    """Dropped by H: it hits at sqrt(2 H / g), then flies for 2 e sqrt(2 H / g), up to e^2 H."""
    model, height, accuracy = ball(), 1.0, 1e-5
    o = DynamicOptions(h=0.02, restitution=e, bounce_speed=0.05)
    fall = np.sqrt(2 * height / G)
    done = simulate(model, [height], [0.0], [], fall * (1 + 1.9 * e), o, accuracy=accuracy)
    closings = done.events[done.events["closes"]]
    openings = done.events[~done.events["closes"]]
    assert len(closings) == 1 and len(openings) == 1
    hit = closings[0]
    assert hit["time"] == pytest.approx(fall, abs=2e-3)
    assert hit["speed"] == pytest.approx(-G * fall, rel=5e-3)
    assert hit["impulse"] == pytest.approx((1 + e) * G * fall, rel=5e-3)
    names = [model.geom_names[hit["geom_a"]], model.geom_names[hit["geom_b"]]]
    assert sorted(names) == ["ball", "floor"]
    assert hit["pos"][2] == pytest.approx(0.0, abs=1e-2)
    assert openings[0]["time"] >= hit["time"]
    after = done.t > hit["time"]
    assert done.q[after, 0].max() == pytest.approx(e * e * height, rel=0.01)
    top = done.t[after][np.argmax(done.q[after, 0])]
    assert top == pytest.approx(fall * (1 + e), abs=5e-3)
    # small steps are for the impact
    lengths = np.diff(done.t)
    assert lengths.min() < 5e-5 and lengths.max() > 5e-4 and done.rejected > 3


def test_a_bounce_that_no_step_resolves_keeps_the_speed():
    """With steps of any length: each bounce turns the speed into e times itself."""
    model, e = ball(), 0.7
    done = simulate(model, [0.5], [0.0], [], 1.2, DynamicOptions(restitution=e))
    for hit in done.events[done.events["closes"]]:
        k = hit["step"]
        if done.v[k, 0] < -0.3:
            assert done.v[k + 1, 0] == pytest.approx(-e * done.v[k, 0], abs=1e-9)


@pytest.mark.parametrize("law", ["convex", "coulomb"])
@pytest.mark.parametrize("speed", [1e-30, 1e-200, 1e-280, 1e-300, 1e-319, 5e-324])
def test_speeds_and_forces_of_nothing_can_be_stepped(law, speed):
    """A damper halves a speed at each step until it is no number any more: steps went to pieces from 1e-280 m/s on."""
    joint = '<joint type="slide" axis="1 0 0"/><joint type="slide"/><geom size=".05" mass="1"/>'
    model = floor_scene(joint, 0.5)
    moving = np.array([speed, -speed])
    s = qdsim.step_dynamic(
        model, [0, -0.03], moving, [], DynamicOptions(h=0.01, law=law), tau=[0, G]
    )
    np.testing.assert_allclose(s.v_next, moving, atol=1e-15)
    o = qdsim.Options(h=0.1, law=law, margin=0.05)
    s = qdsim.step(model, [0, -0.03], [], o, tau=[speed, G - speed])
    np.testing.assert_allclose(s.delta, 0.0, atol=1e-15)


def test_a_thrown_ball_bounces_by_its_restitution_under_coulombs_law():
    """However short steps get: the convex law's cone acts before a ball that moves along the floor is there."""
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="9 9 1" friction=".5"/>'
        '<body pos="0 0 .5"><freejoint/><geom size=".1" mass="1" friction=".5"/></body></worldbody></mujoco>'
    )
    o = DynamicOptions(h=0.02, restitution=0.8, law="coulomb")
    thrown = [1.0, 0, 0, 0, 0, 0]
    done = simulate(model, model.default_q, thrown, [], 0.8, o, accuracy=1e-4)
    closes, opens = done.events[:2]
    assert closes["closes"] and not opens["closes"]
    assert opens["speed"] == pytest.approx(-0.8 * closes["speed"], abs=1e-3)
    normal = 1.8 * np.sqrt(2 * G * 0.4)
    assert closes["impulse"] == pytest.approx(normal, rel=1e-2)
    # friction takes mu times that, or what stops the slip of a solid ball
    assert done.v[-1, 0] == pytest.approx(1.0 - min(0.5 * normal, 2 / 7), rel=1e-3)


@pytest.mark.parametrize("h", [0.01, 0.002])
def test_a_block_stops_where_coulomb_says(h):
    """v0^2 / (2 mu g) on, after v0 / (mu g): to the first order in h under the convex law, hops and all."""
    mu, v0 = 0.4, 1.5
    model = floor_scene(
        '<joint type="slide" axis="1 0 0"/><joint type="slide"/>'
        f'<geom type="box" size=".1 .1 .1" mass="2" friction="{mu}"/>',
        mu,
    )
    stop = v0 / (mu * G)
    done = simulate(model, [0.0, 0.0], [v0, 0.0], [], 1.5 * stop, DynamicOptions(h=h))
    assert done.q[-1, 0] == pytest.approx(v0 * v0 / (2 * mu * G), abs=1.5 * v0 * h)
    moving = done.t[:-1][np.abs(done.v[1:, 0]) > 1e-6]
    assert moving.max() == pytest.approx(stop, abs=0.02 + 2 * h)
    np.testing.assert_allclose(done.v[-1], 0.0, atol=1e-9)
    pressing = np.cumsum(np.where(done.events["closes"], 1, -1))
    assert set(pressing) <= {0, 1} and pressing[-1] == 1  # one pair, closed in the end


def test_a_stack_closes_once_and_stays():
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="5 5 1"/>'
        + "".join(
            f'<body pos="0 0 {0.1 + 0.2 * i}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
            for i in range(3)
        )
        + "</worldbody></mujoco>"
    )
    done = simulate(model, model.default_q, np.zeros(model.nv), [], 0.2, accuracy=1e-6)
    assert done.rejected == 0 and len(done.events) == 3
    assert np.all(done.events["closes"]) and np.all(done.events["step"] == 0)
    np.testing.assert_allclose(done.q, done.q[[0]] + np.zeros_like(done.q), atol=1e-9)


def test_energy_is_that_of_the_model():
    model = ball()
    done = simulate(model, [1.0], [0.5], [], 0.1)
    np.testing.assert_allclose(done.energy()[:, 0], 0.5 * done.v[:, 0] ** 2, rtol=1e-12)
    np.testing.assert_allclose(done.energy()[:, 1], G * (done.q[:, 0] + 0.1), rtol=1e-12)


@pytest.mark.parametrize("longest", [3e-3, 1e-9])
def test_steps_without_a_solution_are_tried_at_half_their_length(monkeypatch, longest):
    """Steps longer than `longest` fail, as those of Coulomb's law may; free fall has the speed of any steps."""
    tried = []

    def failing(model, q, v, u, options, **others):
        tried.append(options.h)
        if options.h > longest:
            raise qdsim.SolverError("no motion was found")
        return qdsim.step_dynamic(model, q, v, u, options, **others)

    monkeypatch.setattr(sys.modules["qdsim.simulation.simulate"], "step_dynamic", failing)
    arguments = ball(), [9.0], [0.0], [], 0.1, DynamicOptions(h=0.02)
    if longest < 1e-6:
        with pytest.raises(qdsim.SolverError, match="no motion") as caught:
            simulate(*arguments, accuracy=1e-2)
        assert len(tried) == 11 and caught.value.simulation.t[-1] == 0.0
        return
    done = simulate(*arguments, accuracy=1e-2)
    assert done.t[-1] == pytest.approx(0.1, abs=1e-12)
    assert 0.25 * longest < np.diff(done.t).max() <= 0.5 * longest and done.rejected >= 3
    np.testing.assert_allclose(done.v[:, 0], -G * done.t, atol=1e-12)
    with pytest.raises(qdsim.SolverError):
        simulate(*arguments)


# ---------------------------------------------------------------- commands, going on, interface


ARM = """<mujoco><worldbody><body><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="2" contype="0"/></body>
</worldbody><actuator><position joint="a" kp="50" kv="4"/></actuator></mujoco>"""


def test_policies_and_forces_are_asked_at_each_step():
    model, h = qdsim.load(ARM), 0.01
    seen = []

    def policy(t, q, v):
        seen.append((t, *q, *v))
        return np.array([np.sin(t)])

    o = DynamicOptions(h=h)
    done = simulate(model, [0.0], [0.0], policy, 0.5, o, tau=lambda t, q, v: [10.0 * t])
    q, v = np.zeros(1), np.zeros(1)
    for k in range(50):
        t = done.t[k]
        s = qdsim.step_dynamic(model, q, v, [np.sin(t)], o, tau=[10.0 * t])
        q, v = s.q_next, s.v_next
        np.testing.assert_allclose(done.q[k + 1], q, atol=1e-12)
    np.testing.assert_allclose(done.u[:, 0], np.sin(done.t[:-1]), rtol=1e-15)
    np.testing.assert_array_equal(seen, np.c_[done.t[:-1], done.q[:-1], done.v[:-1]])


@pytest.mark.parametrize("accuracy", [None, 1e-4])
def test_going_on_is_the_same_as_one_run(accuracy):
    model = ball()
    o = DynamicOptions(h=1 / 64, restitution=0.6)
    whole = simulate(model, [0.3], [0.0], [], 1.0, o, accuracy=accuracy)
    cut = int(np.searchsorted(whole.t, 0.4))
    # end where both halves of a step ended
    state = simulate(model, [0.3], [0.0], [], float(whole.t[cut]), o, accuracy=accuracy)
    state = pickle.loads(pickle.dumps(state))
    if not np.array_equal(state.t, whole.t[: len(state.t)]):
        state = simulate(model, [0.3], [0.0], [], float(whole.t[cut + 1]), o, accuracy=accuracy)
    both = simulate(model, [0.3], [0.0], [], 1.0, o, accuracy=accuracy, resume=state)
    np.testing.assert_array_equal(both.t, whole.t)
    np.testing.assert_array_equal(both.q, whole.q)
    np.testing.assert_array_equal(both.events["time"], whole.events["time"])
    assert both.rejected == whole.rejected


def test_what_came_before_an_error_is_kept():
    model = ball()

    def policy(t, q, v):
        if t > 0.1:
            raise KeyboardInterrupt
        return []

    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(model, [1.0], [0.0], policy, 1.0)
    part = caught.value.simulation
    assert part.duration == pytest.approx(0.11, abs=1e-9)
    done = simulate(model, [1.0], [0.0], [], 1.0, resume=part)
    np.testing.assert_array_equal(done.q, simulate(model, [1.0], [0.0], [], 1.0).q)


def test_steps_are_kept_when_asked_for():
    model = ball()
    done = simulate(model, [0.0], [0.0], [], 0.05, keep_steps=True, progress=True)
    assert len(done.steps) == 5 and "5 steps" in repr(done)
    assert done.steps[2].contacts["force"][0, 0] == pytest.approx(G)
    assert simulate(model, [0.0], [0.0], [], 0.0).u.shape == (0, 0)
    q, v = simulate(model, [0.2], [0.1], [], 0.0).at(0.0)
    assert (q, v) == ([0.2], [0.1])
    for array in (done.t, done.q, done.v, done.u, done.events):
        assert not array.flags.writeable


def test_smoothed_steps_have_no_events():
    model = ball()
    done = simulate(model, [0.05], [0.0], [], 0.1, DynamicOptions(kappa=1e3))
    assert len(done.events) == 0 and np.all(np.isfinite(done.q))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"duration": -1.0}, ValueError, "duration: "),
        ({"duration": np.inf}, ValueError, "duration: "),
        ({"duration": 1e308}, ValueError, "duration: 1e\\+308 s are more than"),
        ({"accuracy": 0.0}, ValueError, "accuracy: "),
        ({"accuracy": "good"}, TypeError, "accuracy: "),
        ({"q": [1.0, 2.0]}, ValueError, "q: "),
        ({"v": [np.nan]}, ValueError, "v: "),
        ({"u": [1.0]}, ValueError, "u: "),
        ({"u": lambda t, q, v: [1.0]}, ValueError, "u: "),
        ({"tau": lambda t, q, v: [1.0, 2.0]}, ValueError, "tau: "),
        ({"options": qdsim.Options()}, TypeError, "options: "),
        ({"model": "ball"}, TypeError, "model: "),
        ({"resume": 3}, TypeError, "resume: "),
        ({"progress": 1}, TypeError, "progress: "),
        ({"warm_start": None}, TypeError, "warm_start: "),
    ],
)
def test_wrong_arguments_are_named(change, error, message):
    good = {"model": ball(), "q": [1.0], "v": [0.0], "u": [], "duration": 0.1}
    with pytest.raises(error, match=message):
        simulate(**{**good, **change})


def test_wrong_resumes_and_times_are_named():
    model = ball()
    done = simulate(model, [1.0], [0.0], [], 0.1)
    with pytest.raises(ValueError, match="resume: it began"):
        simulate(model, [0.9], [0.0], [], 0.2, resume=done)
    with pytest.raises(ValueError, match="resume: its model"):
        simulate(qdsim.load(DOUBLE), [0.0, 0.0], [0.0, 0.0], [], 0.2, resume=done)
    with pytest.raises(ValueError, match="duration: "):
        simulate(model, [1.0], [0.0], [], 0.05, resume=done)
    with pytest.raises(ValueError, match="time: "):
        done.at([0.0, 0.2])
    with pytest.raises(ValueError, match="time: "):
        done.at(np.nan)
