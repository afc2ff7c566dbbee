"""Laws of friction of patches beside their closed forms: the elastic cone, regularised friction, bristles."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq

import qdsim
from qdsim.systems import load_dynamic

MU, G = 0.5, 9.81


def soft_box(soft=1e6):
    scene = qdsim.SceneBuilder(gravity=(0, 0, -G))
    scene.geom("world", "plane", name="floor", friction=MU)
    scene.body("box", pos=(0, 0, 0.01 - 2e-5), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", (0.03, 0.02, 0.01), name="box", soft=soft, friction=MU)
    return qdsim.build(scene.build())


def dragged_box():
    """A soft box on slides, whose depth under a force has a closed form."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=MU)
    scene.body("box", pos=(0, 0, 0.008), mass=1.0)
    scene.joint("box", "slide", name="x", axis=(1, 0, 0))
    scene.joint("box", "slide", name="z", axis=(0, 0, 1))
    scene.actuator("x", 1e6)
    scene.geom("box", "box", (0.03, 0.02, 0.01), name="box", soft=1e6, friction=MU)
    return qdsim.build(scene.build())


def drag(law, way):
    """Depth of the box under 500 N after steps that drag it by so much each, and the last of them."""
    model = dragged_box()
    options = qdsim.Options(h=0.01, epsilon=1e-3, patch_law=law)
    q = model.default_q
    for _ in range(5):
        step = qdsim.step(model, q, [q[0] + way + MU * 500.0 / 1e6], options, tau=[0, -500.0])
        q = step.q_next
    return 2e-3 - q[1], step


@pytest.mark.parametrize("way", [1e-5, 1e-4, 2e-4])
def test_the_elastic_cone_lifts_what_slides(way):
    """By friction times the way of a step, to 1 % (its stiffness changes with the depth); a disc lifts nothing."""
    rest = brentq(
        lambda d: 1e8 * (2.4e-3 * d - 0.1 * d**2 + 4 * d**3 / 3) - 500.0, 0.0, 0.01, xtol=1e-16
    )
    assert drag("disc", way)[0] == pytest.approx(rest, rel=1e-6)
    depth, step = drag("elastic", way)
    assert step.info.soft_converged
    assert rest - depth == pytest.approx(MU * way, rel=1e-2)
    (patch,) = (c for c in step.contacts if c["dim"] == 6)
    force = patch["frame"].reshape(3, 3).T @ patch["force"][:3]
    np.testing.assert_allclose(np.abs(force), [MU * 500.0, 0, 500.0], rtol=1e-6, atol=1e-6)


def test_the_elastic_cone_loses_contact_beyond_that():
    """Where friction times the way is more than weight over stiffness there is no balance, and the step says so."""
    assert not drag("elastic", 6e-3)[1].info.soft_converged


def push(model, share, steps, **options):
    options = qdsim.DynamicOptions(**{"h": 1e-3, **options})
    force = [share * MU * G, 0, 0, 0, 0, 0]
    motion = qdsim.simulate(
        model, model.default_q, np.zeros(6), [], steps * 1e-3, options, tau=force, keep_steps=True
    )
    return motion.steps


@pytest.mark.parametrize("where", ["polygons", "ellipsoid"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_regularised_friction_creeps_at_its_share_of_the_slip_speed(where, share):
    steps = push(
        soft_box(), share, 100, patch_law="regularized", slip_speed=0.01, patch_friction=where
    )
    assert steps[-1].v_next[0] == pytest.approx(share * 0.01, rel=1e-3)
    faster = push(
        soft_box(), 1.2, 100, patch_law="regularized", slip_speed=0.01, patch_friction=where
    )
    gain = (faster[-1].v_next[0] - faster[-11].v_next[0]) / 0.01
    assert gain == pytest.approx(0.2 * MU * G, rel=1e-3)  # all of mu, and no more


@pytest.mark.parametrize("where", ["polygons", "ellipsoid"])
def test_bristles_stick_stretched_by_the_force_and_slip_beyond(where):
    settings = {
        "patch_law": "bristle",
        "patch_friction": where,
        "bristle_stiffness": 1e4,
        "bristle_time": 0.01,
    }
    held = push(soft_box(), 0.6, 200, **settings)[-1]
    assert held.bristles[0, 0] == pytest.approx(0.6 * MU / 1e4, rel=1e-4)
    assert abs(held.v_next[0]) < 1e-9  # no creep: speed and stretch settle with bristle_time
    slips = push(soft_box(), 1.2, 100, **settings)
    gain = (slips[-1].v_next[0] - slips[-11].v_next[0]) / 0.01
    assert gain == pytest.approx(0.2 * MU * G, rel=1e-3)
    assert slips[-1].bristles[0, 0] == pytest.approx(MU / 1e4, rel=1e-3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(held)).bristles, held.bristles)


def test_regularised_friction_has_derivatives():
    """Beside central differences, where it creeps and where it slides; by the state, friction and h."""
    model = soft_box()
    for share in (0.6, 1.5):
        tau = np.array([share * MU * G, 0.3, -2.0, 1e-3, 2e-3, 3e-3])
        settings = {"h": 1e-3, "patch_law": "regularized", "slip_speed": 0.01}
        step = push(model, share, 60, patch_law="regularized", slip_speed=0.01)[-1]
        q, v = step.q_next, step.v_next
        d = qdsim.differentiate_dynamic(model, q, v, [], qdsim.DynamicOptions(**settings), tau=tau)
        rng = np.random.default_rng(0)
        along_q, along_v = 0.1 * rng.normal(size=(2, model.nv))
        friction = np.zeros_like(model.parameters.pair_friction)
        friction[..., :2] = 1.0

        def moved(
            s,
            wrt,
            q=q,
            v=v,
            tau=tau,
            settings=settings,
            along=(along_q, along_v),
            friction=friction,
        ):
            o = {**settings, "h": 1e-3 + (s if wrt == "h" else 0.0)}
            varied = model
            if wrt == "pair_friction":
                varied = model.with_parameters(
                    pair_friction=model.parameters.pair_friction + s * friction
                )
            at = model.integrate(q, s * along[0]) if wrt == "q" else q
            speed = v + s * along[1] if wrt == "v" else v
            return qdsim.step_dynamic(
                varied, at, speed, [], qdsim.DynamicOptions(**o), tau=tau
            ).v_next

        tangents = {
            "q": (along_q, 1e-7),
            "v": (along_v, 1e-5),
            "h": (1.0, 1e-7),
            "pair_friction": (friction, 1e-6),
        }
        for wrt, (tangent, size) in tangents.items():
            expected = (moved(size, wrt) - moved(-size, wrt)) / (2 * size)
            got = d.jvp({wrt: tangent})[1]
            np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max() + 1e-9)


def test_what_has_no_derivatives_or_keeps_no_state_says_so():
    model = soft_box()
    q, v = model.default_q, np.zeros(6)
    for law in ("elastic", "bristle"):
        options = qdsim.DynamicOptions(patch_law=law)
        with pytest.raises(ValueError, match=f"patch_law: .*'{law}'"):
            qdsim.linearize_dynamic(model, q, v, [], options)
        with pytest.raises(ValueError, match=f"patch_law: .*'{law}'"):
            qdsim.differentiate_dynamic(model, q, v, [], options)
    with pytest.raises(ValueError, match="patch_law"):
        qdsim.linearize(model, q, [], qdsim.Options(patch_law="elastic"))
    options = qdsim.DynamicOptions(patch_law="bristle")
    with pytest.raises(ValueError, match=r"patch_law: .*'bristle'"):
        qdsim.rollout_dynamic_vjp(
            model, q, v, np.zeros((2, 0)), options, q_cotangent=np.zeros((3, 6))
        )
    for bad in (np.zeros(6), np.zeros((2, 6)), np.full((1, 6), np.nan)):
        with pytest.raises(ValueError, match="bristles"):
            qdsim.step_dynamic_batch(model, q, v, [], options, bristles=bad)
        with pytest.raises(ValueError, match="bristles"):
            qdsim.rollout_dynamic(model, q, v, np.zeros((2, 0)), options, bristles=bad)
    with pytest.raises(ValueError, match="bristles"):
        qdsim.step_dynamic(model, q, v, [], bristles=np.zeros(6))
    with pytest.raises(ValueError, match="bristles"):
        qdsim.step_dynamic(model, q, v, [], bristles=np.full((1, 6), np.nan))
    with pytest.raises(ValueError, match="patch_friction"):
        qdsim.Options(patch_law="elastic", patch_friction="ellipsoid")
    with pytest.raises(ValueError, match="kappa"):
        qdsim.DynamicOptions(patch_law="regularized", kappa=1e3)
    with pytest.raises(ValueError, match="patch_law"):
        qdsim.Options(patch_law="bristle")
    with pytest.raises(ValueError, match="slip_speed"):
        qdsim.DynamicOptions(slip_speed=0.0)


def test_batches_have_the_bits_of_single_steps():
    model = soft_box()
    q, v = np.repeat(model.default_q[None], 3, axis=0), np.zeros((3, 6))
    v[:, 0] = (0.0, 5e-3, 0.1)
    for law in ("elastic", "regularized"):
        options = qdsim.DynamicOptions(h=1e-3, patch_law=law)
        batch = qdsim.step_dynamic_batch(model, q, v, np.zeros((3, 0)), options)
        for i in range(3):
            one = qdsim.step_dynamic(model, q[i], v[i], [], options)
            np.testing.assert_array_equal(batch.v_next[i], one.v_next)


@pytest.mark.long
def test_batches_and_rollouts_carry_bristles():
    """Stretches go from batch to batch as from step to step, with the same bits, along rollouts and for any threads; of
    a box that sticks they are force over stiffness."""
    model, steps = soft_box(), 80
    options = qdsim.DynamicOptions(h=5e-3, patch_law="bristle")
    tau = np.zeros((4, 6))
    tau[:, 0] = (0.0, 1.0, 3.0, 20.0)
    q, v = np.repeat(model.default_q[None], 4, axis=0), np.zeros((4, 6))
    course = qdsim.rollout_dynamic(
        model, q, v, np.zeros((4, steps, 0)), options, tau=tau[:, None], threads=2
    )
    assert course.bristles.shape == (4, steps + 1, 1, 6) and not course.bristles[:, 0].any()
    found, stretch = (q, v), None
    for k in range(steps):
        batch = qdsim.step_dynamic_batch(
            model, *found, np.zeros((4, 0)), options, tau=tau, bristles=stretch
        )
        one = qdsim.step_dynamic(
            model,
            found[0][2],
            found[1][2],
            [],
            options,
            tau=tau[2],
            bristles=None if stretch is None else stretch[2],
        )
        np.testing.assert_array_equal(batch.bristles[2], one.bristles)
        np.testing.assert_array_equal(batch.v_next[2], one.v_next)
        found, stretch = (batch.q_next, batch.v_next), batch.bristles
        np.testing.assert_array_equal(stretch, course.bristles[:, k + 1])
    np.testing.assert_array_equal(found[0], course.q[:, -1])
    sticks = np.array([0.0, 1.0, 3.0]) / (options.bristle_stiffness * G)
    np.testing.assert_allclose(stretch[:3, 0, 0], sticks, rtol=1e-2, atol=1e-12)
    again = qdsim.rollout_dynamic(
        model,
        course.q[:, 20],
        course.v[:, 20],
        np.zeros((4, steps - 20, 0)),
        options,
        tau=tau[:, None],
        bristles=course.bristles[:, 20],
    )
    np.testing.assert_array_equal(again.bristles, course.bristles[:, 20:])
    plain = qdsim.step_dynamic_batch(model, q, v, np.zeros((4, 0)), bristles=stretch)
    assert plain.bristles is None


def test_samples_that_fail_keep_their_bristles():
    model = soft_box()
    options = qdsim.DynamicOptions(h=5e-3, patch_law="bristle")
    q, v = np.repeat(model.default_q[None], 2, axis=0), np.zeros((2, 6))
    tau = np.zeros((2, 6))
    tau[1] = 1e300
    begun = np.full((2, 1, 6), 1e-6)
    found = qdsim.step_dynamic_batch(
        model, q, v, np.zeros((2, 0)), options, tau=tau, bristles=begun, errors="mark"
    )
    assert (found.status != 0).tolist() == [False, True]
    for i in np.flatnonzero(found.status):
        np.testing.assert_array_equal(found.bristles[i], begun[i])
    course = qdsim.rollout_dynamic(
        model, q, v, np.zeros((2, 3, 0)), options, tau=tau[:, None], bristles=begun, errors="mark"
    )
    for i, done in enumerate(course.steps_done):
        for t in range(done, 3):
            np.testing.assert_array_equal(course.bristles[i, t + 1], course.bristles[i, done])


@pytest.mark.parametrize("law", ["disc", "regularized", "bristle"])
def test_a_spinning_disc_slows_alike_under_all_laws(law):
    """By 4 mu g / (3 R): all of it slides, so that what laws do below the rim of friction does not show."""
    system = load_dynamic("spinning_disc", speed=20.0, friction=MU)
    motion = system.simulate(0.1, system.options.replace(h=5e-3, patch_law=law))
    rate = (motion.v[0, 5] - motion.v[-1, 5]) / motion.t[-1]
    assert rate == pytest.approx(4 * MU * G / (3 * 0.05), rel=3e-3)
    assert np.abs(motion.v[-1, :5]).max() < 1e-6


@pytest.mark.parametrize("speed", [0.02, 1.0])
def test_a_spinning_disc_is_lifted_by_the_elastic_cone(speed):
    """Where it slides by less in a step than it is deep, it slows by 4 mu g / (3 R), too, and presses by k A times its
    depth and mu times how far its polygons slide, two thirds of the radius from the middle."""
    system = load_dynamic("spinning_disc", speed=speed, friction=MU)
    h, radius, modulus, half = 1e-5, 0.05, 1e7, 0.01
    options = system.options.replace(h=h, patch_law="elastic")
    step = qdsim.step_dynamic(system.model, system.q, system.v, [], options)
    (patch,) = (c for c in step.contacts if c["dim"] == 6)
    force, torque = patch["force"][0], abs(patch["force"][3])
    depth, slid = half - step.q_next[2], 2 * radius / 3 * step.v_next[5] * h
    assert force == pytest.approx(
        modulus / half * np.pi * radius**2 * (depth + MU * slid), rel=5e-3
    )
    slows = (speed - step.v_next[5]) / h
    assert slows == pytest.approx(torque / (0.5 * radius**2), rel=1e-6)
    assert slows == pytest.approx(4 * MU * force / (3 * radius), rel=4e-3)
    assert step.info.soft_converged
