"""Systems whose bodies press by pressure fields, beside closed forms and what was published of them."""

import numpy as np
import pytest

import qdsim
from qdsim import systems
from qdsim.systems import load_dynamic

G = 9.81


def turned(q):
    """Angle of a free body's rotation, rad."""
    return 2 * np.arccos(min(1.0, abs(q[3])))


def test_a_spinning_disc_slows_by_its_surface_alone():
    system = load_dynamic("spinning_disc", speed=20.0, friction=0.5)
    motion = system.simulate(0.1, system.options.replace(h=5e-3))
    rate = (motion.v[0, 5] - motion.v[-1, 5]) / motion.t[-1]
    assert rate == pytest.approx(4 * 0.5 * G / (3 * 0.05), rel=3e-3)  # 130.8 rad/s^2
    assert np.abs(motion.v[-1, :5]).max() < 1e-6


@pytest.mark.parametrize("h", [5e-3, 2.5e-3])
def test_a_sliding_box_stops_where_friction_says(h):
    """After v^2 / (2 mu g), less half a step's way, as the integrator has it; and it does not rise."""
    system = load_dynamic("sliding_box", speed=1.0, friction=0.3)
    motion = system.simulate(options=system.options.replace(h=h))
    way = motion.q[-1, 0] - motion.q[0, 0]
    assert way == pytest.approx(1 / (2 * 0.3 * G) - h / 2, abs=1e-4)
    assert np.ptp(motion.q[:, 2]) < 1e-5 and np.abs(motion.v[-1]).max() < 1e-8


@pytest.mark.parametrize(("push", "tips"), [(0.7, False), (1.1, True)])
def test_a_tall_box_tips_where_its_middle_of_pressure_runs_out(push, tips):
    system = load_dynamic("tipping_box", push=push)
    motion = system.simulate(options=system.options.replace(h=5e-3))
    assert (turned(motion.q[-1]) > 0.5) == tips
    assert tips or turned(motion.q[-1]) < 0.01


@pytest.mark.long
def test_a_pushed_box_leans_as_far_as_linear_pressure_says():
    """Under weight N at a distance e from its middle a base of width a presses on w = 3 (a / 2 - e) of it, by a pressure
    that grows as k theta: N = k theta w^2 b / 2. (Drake 1.51.1, whose forces act at centroids: 0.0011 to 0.0014 rad.)"""
    system = load_dynamic("tipping_box", push=0.5)
    motion = system.simulate(1.0)
    width, depth, slope = 0.04, 0.06, 1e7 / 0.02
    pressed = 3 * (width / 2 - 0.5 * width / 2)
    closed = 2 * G / (slope * depth * pressed**2)
    leaned = [turned(q) for q in motion.q[motion.t > 0.4]]
    assert np.mean(leaned) == pytest.approx(closed, rel=0.02)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("dissipation", "ratio"), [(0.0, 0.952), (1.0, 0.464), (10.0, 0.059)])
def test_a_dropped_ball_comes_back_as_in_drake(dissipation, ratio):
    """Rebound over impact speed; Drake with steps of 1e-4 s, 1e-3 for the last. Exact without dissipation: 1."""
    system = load_dynamic("ball_drop", dissipation=dissipation)
    motion = system.simulate()
    vertical = motion.v[:, 2]
    impact, rebound = -vertical.min(), vertical[vertical.argmin() :].max()
    assert rebound / impact == pytest.approx(ratio, rel=0.04)
    if dissipation > 0.0:
        assert rebound < 1 / dissipation


@pytest.mark.long
def test_four_boxes_pile_up_and_hold_no_energy_back():
    """They never gain energy, and end pressing with what they weigh."""
    system = load_dynamic("four_boxes")
    motion = system.simulate(1.0)
    masses = np.array([0.4] * 4)
    heights = motion.q[:, 2::7]
    potential = heights @ masses * G
    speeds = motion.v.reshape(len(motion.t), 4, 6)
    moving = 0.5 * np.einsum("k,tki->t", masses, speeds[:, :, :3] ** 2)
    turning = 0.5 * masses[0] * 0.1**2 / 6 * (speeds[:, :, 3:] ** 2).sum(axis=(1, 2))
    energy = potential + moving + turning
    assert energy.max() <= energy[0] * (1 + 1e-3)
    assert np.all(np.diff(heights[-1]) > 0.09)  # a pile


@pytest.mark.parametrize("depth", [0.05, 0.1])
def test_the_capacity_of_a_ball_is_the_integral_of_its_pressure(depth):
    """Torque at which a pressed ball spins: mu times the sum of force times radius; 8/15 mu N a of a parabola."""
    radius, modulus, mu = 0.02, 1e6, 0.6
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=mu)
    scene.body("ball", pos=(0, 0, radius * (1 - depth)), mass=1.0)
    scene.joint("ball", "free")
    softness = qdsim.Softness(modulus, hint=0.0012)
    scene.geom("ball", "sphere", radius, name="ball", soft=softness, friction=mu)
    model = qdsim.build(scene.build())
    (surface,) = qdsim.pressure_surface(model, model.default_q)
    normal = surface.force[2]
    capacity = 8 / 15 * mu * normal * np.sqrt(depth * (2 - depth)) * radius
    options = qdsim.Options(h=0.01, patch_friction="ellipsoid")
    low, high = 0.5 * capacity, 1.5 * capacity
    for _ in range(9):
        middle = 0.5 * (low + high)
        step = qdsim.step(model, model.default_q, [], options, tau=[0, 0, -normal, 0, 0, middle])
        low, high = (low, middle) if step.delta[5] > 1e-6 else (middle, high)
    assert low == pytest.approx(capacity, rel=0.04)


def carried(system, motion, name, at=-1):
    """Force and moment (about the body's origin) of the patches on a free body in a state of a motion."""
    model, q = system.model, motion.q[at]
    place = q[model.slice_q(name)][:3]
    tau = None if system.tau is None else system.tau(motion.t[at], q, motion.v[at])
    step = qdsim.step_dynamic(model, q, motion.v[at], [], system.options, tau=tau)
    force, moment = np.zeros(3), np.zeros(3)
    for contact in step.contacts[step.contacts["dim"] == 6]:
        frame = contact["frame"].reshape(3, 3)
        sign = 1.0 if model.geom_names[contact["geom_b"]] == name else -1.0
        own = sign * frame.T @ contact["force"][:3]
        force += own
        moment += sign * frame.T @ contact["force"][3:] + np.cross(contact["pos"] - place, own)
    return force, moment


@pytest.mark.long
def test_a_soft_pinch_lifts_by_its_surfaces():
    """The box goes with the tips, does not turn, and hangs on them by its weight."""
    system = load_dynamic("soft_pinch")
    motion = system.simulate()
    q, end = motion.q, motion.q[-1]
    assert 0.045 < end[6] - 0.03 < 0.05 and np.abs(end[8:]).max() < 1e-9
    lifting = motion.t > 0.4
    np.testing.assert_allclose(np.ptp(q[lifting, 6] - 0.03 - q[lifting, 1]), 0.0, atol=1e-5)
    force, moment = carried(system, motion, "box")
    np.testing.assert_allclose(force, [0, 0, 0.1 * G], atol=2e-3)
    np.testing.assert_allclose(moment, 0, atol=1e-6)
    weak = load_dynamic("soft_pinch", squeeze=0.7)  # 2 mu N = 0.84 N of 0.98 N
    assert weak.simulate().q[-1, 6] == pytest.approx(0.03, abs=1e-6)


@pytest.mark.long
def test_a_pencil_turns_in_its_grip_as_far_as_it_is_let():
    """Held, let go until it is tilted by 0.2 rad more, held again, three times: nothing creeps while it is held, and it
    turns about the pads without sinking between them. At rest the surfaces carry its weight and its moment, with no
    coefficient of torsion."""
    system = load_dynamic("pencil", slips=3)
    motion = system.simulate()
    tilt = 2 * np.arctan2(motion.q[:, 7], motion.q[:, 5])
    at_pads = motion.q[:, 4] + motion.q[:, 2] * np.tan(tilt)
    times = motion.t
    assert np.abs(tilt[times < 0.2]).max() < 2e-3
    for k in range(3):
        held = (times > 0.5 + 0.5 * k) & (times < 0.7 + 0.5 * k)
        assert tilt[held].mean() == pytest.approx(0.2 * (k + 1), abs=0.02)
        assert np.ptp(tilt[held]) < 1e-5 and np.ptp(at_pads[held]) < 1e-6
    assert np.abs(at_pads).max() < 4e-4
    weight = 0.006 * G
    force, moment = carried(system, motion, "pencil")
    np.testing.assert_allclose(force, [0, 0, weight], atol=1e-4 * weight)
    np.testing.assert_allclose(moment, 0, atol=1e-3 * weight * 0.02)


@pytest.mark.long
def test_a_spoon_is_held_level_by_where_two_boxes_press():
    """The lower box carries both weights and the upper one its own, but for friction along the handle, which leans by a
    milliradian; about the spoon's middle, which lies beyond both, all of it has no moment left."""
    system = load_dynamic("spoon", lean=0.03)
    motion = system.simulate()
    assert np.abs(motion.v[-1]).max() < 1e-9 and turned(motion.q[-1][1:]) < 1e-3
    upper, spoon = 500 * 0.04**3 * G, 0.01 * G
    surfaces = qdsim.pressure_surface(system.model, motion.q[-1])
    pressed = {next(iter({s.geom_a, s.geom_b} - {"spoon"})): abs(s.force[2]) for s in surfaces}
    assert pressed["lower"] == pytest.approx(upper + spoon, rel=1e-3)
    assert pressed["upper"] == pytest.approx(upper, rel=1e-3)
    force, moment = carried(system, motion, "spoon")
    np.testing.assert_allclose(force, [0, 0, spoon], atol=1e-4 * spoon)
    np.testing.assert_allclose(moment, 0, atol=1e-4 * spoon * 0.03)


def test_soft_fingertips_close_on_the_ball_and_carry_it_with_the_palm():
    """No tip goes in as far as its middle; what tips and palm do is what lifts and moves the ball in the last step."""
    system = systems.load("allegro_sphere_soft")
    model, q = system.model, np.array(system.model.keyframes["demo"].q)
    for u in system.commands:
        step = qdsim.step(model, q, u, system.options)
        assert step.info.soft_converged and step.info.soft_programs <= 10
        q = step.q_next
    surfaces = qdsim.pressure_surface(model, q)
    assert {s.geom_a for s in surfaces} | {s.geom_b for s in surfaces} == {
        "ball", "link_3_0", "link_7_0", "link_15_1"
    }  # fmt: skip
    overlaps = model.collide(q, 0.0)
    assert overlaps["dist"].min() > -0.012
    total = np.zeros(3)
    for contact in step.contacts:
        sign = {model.geom_index("ball"): 1.0}
        side = sign.get(int(contact["geom_b"]), 0.0) - sign.get(int(contact["geom_a"]), 0.0)
        total += side * contact["frame"].reshape(3, 3).T @ contact["force"][:3]
    options = system.options
    heaviest = np.diag(model.mass_matrix(q)).max()
    softest = model.parameters.actuator_stiffness.min()
    epsilon = options.h**2 * softest / (options.mass_ratio * heaviest)
    moved = step.delta[model.slice_v("ball")][:3]
    resisted = epsilon * 1.0 * moved / options.h**2
    np.testing.assert_allclose(total + [0, 0, -10.0], resisted, atol=1e-4)


@pytest.mark.parametrize("name", ["planar_hand_soft", "allegro_sphere_soft", "allegro_plate_soft"])
def test_a_step_does_not_depend_on_the_steps_before(name):
    """Multipliers of friction's discs are no part of a start: what memory held was read for them."""
    system = systems.load(name)
    options = system.options.replace(contacts="mujoco", friction="cone")
    q, u = system.start
    rng = np.random.default_rng(0)
    before = qdsim.step(system.model, q, u, options)
    for _ in range(4):
        aim = u + 0.1 * rng.standard_normal(system.model.nu)
        once = qdsim.step(system.model, before.q_next, aim, options, warm_start=before)
        qdsim.step(system.model, q, u + 0.3 * rng.standard_normal(system.model.nu), options)
        again = qdsim.step(system.model, before.q_next, aim, options, warm_start=before)
        assert np.array_equal(once.q_next, again.q_next)
        before = once
