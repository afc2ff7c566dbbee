"""Steps under Coulomb's law: its certificate on random states, closed forms, other solvers, and derivatives."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from coulomb_states import NAMES, law_gaps, make, momentum_gap, random_states, sample
from program import contact_jacobian, gravity_force

import qdsim
from qdsim import DynamicOptions, Options, step_dynamic

G = 9.81
LAW = {"law": "coulomb"}


def point_on_floor(mu: float, fall=(0.0, 0.0, -G)) -> qdsim.Model:
    """A ball that does not turn."""
    return qdsim.load(
        f'<mujoco><option gravity="{fall[0]} {fall[1]} {fall[2]}"/><worldbody>'
        f'<geom type="plane" size="5 5 1" friction="{mu}"/><body pos="0 0 .1">'
        '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/>'
        f'<geom size=".1" mass="2" friction="{mu}"/></body></worldbody></mujoco>'
    )


# ---------------------------------------------------------------- certificates


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("name", NAMES)
def test_random_states_hold_the_certificate(name, friction):
    """Of all contacts, those out of reach too; and nearly all states are solved, in few convex programs."""
    rng = np.random.default_rng(sum(map(ord, name)))
    solved, programs = 0, []
    for _ in range(8):
        model = make(
            name, rng.uniform(0.1, 1.0), int(rng.choice([3, 4, 6])), rng.choice([0.0, 0.3])
        )
        q, v, u = sample(model, rng, float(rng.choice([0.1, 1.0, 4.0])))
        h = float(rng.choice([0.001, 0.01, 0.05]))
        o = DynamicOptions(h=h, friction=friction, gyroscopic="explicit", **LAW)  # as bias_force
        try:
            s = step_dynamic(model, q, v, u, o)
        except qdsim.SolverError as error:  # never in silence
            assert error.info.law_residual > 0.0
            continue
        solved += 1
        programs.append(s.info.convex_programs)
        assert s.info.law_residual <= 2e-9
        if s.info.relaxed_contacts == 0:
            closing, outside, power = law_gaps(model, q, s, friction)
            force = 1.0 + s.contacts["force"].max(initial=0.0)
            assert closing <= 2e-9 and outside <= 1e-8 * force and power <= 4e-9 * force
        if name not in ("arm", "chain", "walker"):
            still = momentum_gap(model, q, v, s, gravity_force(model, q) - model.bias_force(q, v))
            assert still <= 1e-8 * np.abs(model.mass_matrix(q) @ v / o.h).max() + 1e-6
    assert solved >= 7
    assert np.median(programs) <= 6


@pytest.mark.long
def test_shifts_that_run_away_leave_the_offsets_as_they_were():
    """On the way to this step shifts of 1e10 m were added and taken off again, which left 2 micrometres in a gap."""
    *_, (model, (q, v, u), h) = random_states("discs", 100)
    s = step_dynamic(model, q, v, u, DynamicOptions(h=h, **LAW))
    assert s.info.relaxed_contacts == 0 and law_gaps(model, q, s, "cone")[0] <= 2e-9


@pytest.mark.long
def test_programs_solved_once_more_begin_without_shifts():
    """Of 100 states of a walker some leave a joint to nothing but a resistance, with which they are solved again. Shifts
    of the first time stayed in the gaps then, and contacts closed by as much as they slid."""
    for model, (q, _, u), h in random_states("walker", 100):
        s = qdsim.step(model, q, u, qdsim.Options(h=h, law="coulomb"))
        assert s.info.relaxed_contacts or law_gaps(model, q, s, "cone")[0] <= 2e-9


def test_feet_on_which_slips_run_in_circles():
    """Contacts under joints with force limits and dry friction, and a coupling: the path of the law itself has them as
    springs. Newton's method on the slips, and all other ways, ended at law residuals of 0.7 and 0.06 mm."""
    model = make("walker", 1.8)
    q = np.array(
        [
            -0.0244,
            -0.0148,
            0.5261,
            0.9988,
            -0.0203,
            0.0406,
            -0.0197,
            -0.1144,
            -0.0017,
            0.0012,
            -0.1447,
            0.0349,
            0.0012,
        ]
    )
    u = np.array([0.5168, 0.6747, 0.3212, -0.7333, 0.1156, -0.4742])
    s = qdsim.step(model, q, u, qdsim.Options(h=0.005, law="coulomb"))
    assert s.info.convex_programs <= 30 and max(law_gaps(model, q, s, "cone")) <= 1e-9
    q = np.array(
        [
            0.1167,
            -0.028,
            0.5164,
            0.9995,
            0.0002,
            0.0321,
            0.0014,
            0.136,
            -0.0017,
            -0.1711,
            0.1853,
            0.0243,
            -0.1711,
        ]
    )
    v = np.array(
        [
            2.0994,
            0.1201,
            -0.6669,
            0.3428,
            1.6428,
            -2.2331,
            -1.2043,
            -0.5212,
            -1.135,
            0.8586,
            -1.4907,
            -1.4553,
        ]
    )
    u = np.array([0.1379, -0.2212, -0.1661, 0.1856, 0.0428, 0.3345])
    s = step_dynamic(model, q, v, u, DynamicOptions(h=0.01, **LAW))
    assert s.info.convex_programs <= 30 and max(law_gaps(model, q, s, "cone")) <= 1e-9


def test_what_needs_no_friction_is_the_convex_step():
    model = make("boxes", 0.5)
    q = model.default_q
    one = step_dynamic(model, q, np.zeros(model.nv), [], DynamicOptions())
    two = step_dynamic(model, q, np.zeros(model.nv), [], DynamicOptions(**LAW))
    np.testing.assert_array_equal(one.v_next, two.v_next)
    assert two.info.unique is True and two.info.law_residual == 0.0  # in free fall
    assert (one.info.convex_programs, two.info.convex_programs) == (0, 1)


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize(("mu", "v0", "h"), [(0.5, 2.0, 0.01), (0.3, 1.0, 0.001), (1.2, 4.0, 0.02)])
def test_a_block_slides_without_hops_and_stops(friction, mu, v0, h):
    model = point_on_floor(mu)
    o = DynamicOptions(h=h, friction=friction, **LAW)
    q, v = model.default_q, np.array([v0, 0.0, 0.0])
    for k in range(1, round(v0 / (mu * G * h)) + 5):
        s = step_dynamic(model, q, v, [], o)
        q, v = s.q_next, s.v_next
        np.testing.assert_allclose(v, [max(v0 - k * mu * G * h, 0.0), 0.0, 0.0], atol=1e-10)
        assert s.info.unique is None
    assert q[2] == pytest.approx(0.0, abs=1e-11)
    distance = h * sum(max(v0 - k * mu * G * h, 0.0) for k in range(1, 100_000))
    assert q[0] == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize("slope", [10.0, 25.0, 40.0])
def test_an_incline(slope):
    mu, a, h = 0.5, np.radians(slope), 0.01
    model = point_on_floor(mu, (G * np.sin(a), 0.0, -G * np.cos(a)))
    q, v = model.default_q, np.zeros(3)
    for k in range(1, 20):
        s = step_dynamic(model, q, v, [], DynamicOptions(h=h, **LAW))
        q, v = s.q_next, s.v_next
        along = k * h * G * max(np.sin(a) - mu * np.cos(a), 0.0)
        np.testing.assert_allclose(v, [along, 0.0, 0.0], atol=1e-10)


def test_a_ball_that_slips_rolls_at_five_sevenths():
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody><geom type="plane" size="5 5 1" friction=".3"/>'
        '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1" friction=".3"/></body></worldbody></mujoco>'
    )
    q, v, h = model.default_q, np.array([1.0, 0, 0, 0, 0, 0]), 0.01
    for k in range(1, 30):
        s = step_dynamic(model, q, v, [], DynamicOptions(h=h, **LAW))
        q, v = s.q_next, s.v_next
        assert v[0] == pytest.approx(max(1.0 - 0.3 * G * h * k, 5 / 7), abs=1e-10)
        assert q[2] == pytest.approx(0.1, abs=1e-11)
    assert v[4] == pytest.approx(v[0] / 0.1, abs=1e-9)


def test_spin_with_torsion_comes_to_a_dead_stop():
    mu, spin, h, inertia = 0.01, 10.0, 0.01, 0.004
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><default><geom condim="4" friction=".5 {mu}"/></default>'
        '<worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/></body>'
        "</worldbody></mujoco>"
    )
    for friction in ("cone", "pyramid"):
        q, v = model.default_q, np.array([0, 0, 0, 0, 0, spin])
        for k in range(1, 45):
            s = step_dynamic(model, q, v, [], DynamicOptions(h=h, friction=friction, **LAW))
            q, v = s.q_next, s.v_next
            assert v[5] == pytest.approx(max(spin - k * h * mu * G / inertia, 0.0), abs=1e-9)
            assert q[2] == pytest.approx(0.1, abs=1e-11)


ROD = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="5 5 1" friction="{mu}"/>
<body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/>
<geom size="1e-6" pos="{x} 0 {z}" friction="{mu}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("h", [1e-3, 1e-4])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_painleves_rod_impacts_without_collision(h, friction):
    """Beyond mu = 4/3 a rod that slides towards its lean has no force that keeps it sliding: its tip stops at once."""
    theta, half = np.radians(60.0), 0.5
    x, z, inertia = -half * np.cos(theta), -half * np.sin(theta), half * half / 3
    model = qdsim.load(ROD.format(mu=1.6, inertia=inertia, x=x, z=z))
    q, v = np.array([0.0, 1e-6 - z, 0.0]), np.array([-2.0, 0.0, 0.0])
    s = step_dynamic(model, q, v, [], DynamicOptions(h=h, friction=friction, **LAW))
    J = np.array([[1.0, 0.0, z], [0.0, 1.0, -x]])  # of the tip, by x, z and the turn about y
    free, M = v - [0.0, G * h, 0.0], np.diag([1.0, 1.0, inertia])
    impulse = -np.linalg.solve(J @ np.linalg.solve(M, J.T), J @ free)
    assert 4 / 3 < abs(impulse[0]) / impulse[1] < 1.6  # it holds the tip
    np.testing.assert_allclose(s.v_next, free + np.linalg.solve(M, J.T @ impulse), atol=5e-6)
    gentle = qdsim.load(
        ROD.format(mu=1.6, inertia=inertia, x=-half * np.cos(0.7), z=-half * np.sin(0.7))
    )
    q = np.array([0.0, 1e-6 + half * np.sin(0.7), 0.0])
    s = step_dynamic(gentle, q, v, [], DynamicOptions(h=h, friction=friction, **LAW))
    assert np.abs(s.v_next - v).max() < 100 * h


GRIPPER = """<mujoco><option gravity="0 0 -10"/><default><geom friction=".5"/></default><worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="ball" pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide"/><geom size=".1" mass="1"/></body>
<body name="up"><joint name="y" type="slide"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<body name="left" pos="-.05 0 .3"><joint name="l" type="slide" axis="1 0 0"/><geom name="left" type="box" size=".05 .1 .25" mass="1"/></body>
<body name="right" pos=".05 0 .3"><joint name="r" type="slide" axis="1 0 0"/><geom name="right" type="box" size=".05 .1 .25" mass="1"/></body>
</body></worldbody><contact><exclude body1="left" body2="right"/></contact>
<actuator><position joint="y" kp="1000"/><position joint="l" kp="1000"/><position joint="r" kp="1000"/></actuator></mujoco>"""


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_the_gripper_keeps_its_force_while_the_ball_slips(friction):
    """Pang and Tedrake 2021, figures 2 to 4: finger force 10 N and no gap; the convex step has 11 N and 1 mm."""
    model = qdsim.load(GRIPPER)
    times = np.array([0.0, 0.08, 0.23, 1.0])
    knots = np.array(
        [[0, -0.106, 0.106], [0, -0.09, 0.09], [-0.03, -0.09, 0.09], [-0.03, -0.09, 0.09]]
    )
    q = model.default_q.copy()
    q[model.actuated_q] = knots[0]
    found = {}
    for law in ("convex", "coulomb"):
        o = Options(h=0.01, friction=friction, epsilon=1e-9, law=law)
        q_now = q
        for step in range(35):
            u = [np.interp((step + 1) * 0.01, times, knots[:, i]) for i in range(3)]
            s = qdsim.step(model, q_now, u, o)
            q_now = s.q_next
            finger = [c for c in s.contacts if abs(c["frame"][0, 0]) > 0.5 and c["pos"][0] < 0]
            gap = q_now[0] - (q_now[model.actuated_q[1]]) - 0.1
            found[law, step + 1] = finger[0]["force"][0] if finger else 0.0, gap
    for step in range(8, 36):
        force, gap = found["coulomb", step]
        assert force == pytest.approx(10.0, abs=1e-6)
        assert gap == pytest.approx(0.0, abs=1e-9)
    assert found["convex", 18][0] == pytest.approx(11.0, abs=0.01)
    assert found["convex", 23][1] == pytest.approx(1e-3, abs=1e-5)


# ---------------------------------------------------------------- other solvers


def delassus(model, q, v, s, h):
    """W and q of the speeds of a step's contacts, impulses in N s, and their friction."""
    M, J = model.mass_matrix(q), []
    for contact in s.contacts:
        J.append(contact_jacobian(model, q, contact)[:3])
    J = np.concatenate(J)
    free = v + h * np.linalg.solve(M, gravity_force(model, q) - model.bias_force(q, v))
    speed = J @ free
    speed[::3] += s.contacts["dist"] / h
    return J @ np.linalg.solve(M, J.T), speed, s.contacts["friction"][:, 0]


@pytest.mark.parametrize("name", ["spheres", "ellipsoids", "capsules"])
def test_the_same_as_the_solver_of_coulomb_problems(name):
    rng, compared = np.random.default_rng(4), 0
    for _ in range(12):
        model = make(name, rng.uniform(0.2, 0.8))
        q, v, u = sample(model, rng, 2.0)
        h = 0.01
        s = step_dynamic(model, q, v, u, DynamicOptions(h=h, gyroscopic="explicit", **LAW))
        if len(s.contacts) == 0 or s.info.missed_pairs:
            continue
        W, speed, mu = delassus(model, q, v, s, h)
        other = qdsim.solve_coulomb(W, speed, mu)
        if s.info.unique is False or other.info.unique is False:
            continue
        w = W @ s.impulse[:, :3].ravel() + speed
        np.testing.assert_allclose(w, W @ other.force.ravel() + speed, atol=1e-6)
        compared += s.contacts["force"].max() > 0.0
    assert compared >= 4


# ---------------------------------------------------------------- options and reports


def test_max_programs_says_how_far_it_is():
    rng = np.random.default_rng(0)
    model = make("boxes", 0.7)
    for _ in range(20):
        q, v, u = sample(model, rng, 4.0)
        full = step_dynamic(model, q, v, u, DynamicOptions(**LAW))
        if full.info.convex_programs > 3:
            break
    one = step_dynamic(model, q, v, u, DynamicOptions(max_programs=1, **LAW))
    convex = step_dynamic(model, q, v, u, DynamicOptions())
    np.testing.assert_array_equal(one.v_next, convex.v_next)
    assert one.info.convex_programs == 1 and one.info.law_residual > 1e-6
    two = step_dynamic(model, q, v, u, DynamicOptions(max_programs=2, **LAW))
    assert two.info.convex_programs == 2
    assert full.info.law_residual < 2e-9
    kept = pickle.loads(pickle.dumps(full))
    assert repr(kept.info) == repr(full.info)
    assert "law_residual" in repr(full.info)


def test_warm_starts_agree():
    rng = np.random.default_rng(2)
    model = make("discs", 0.6)
    q, v, u = sample(model, rng, 1.0)
    o, before = DynamicOptions(h=0.005, **LAW), None
    for _ in range(25):
        s = step_dynamic(model, q, v, u, o)
        warm = step_dynamic(model, q, v, u, o, warm_start=before)
        if s.info.unique is not False:
            np.testing.assert_allclose(warm.v_next, s.v_next, atol=1e-7)
        q, v, before = s.q_next, s.v_next, s


@pytest.mark.parametrize("options", [Options, DynamicOptions])
def test_options_say_what_is_wrong(options):
    with pytest.raises(ValueError, match="law: expected"):
        options(law="viscous")
    with pytest.raises(ValueError, match="kappa: expected None under law='coulomb'"):
        options(law="coulomb", kappa=100.0)
    with pytest.raises(ValueError, match="max_programs: expected an integer"):
        options(max_programs=0)
    with pytest.raises(TypeError, match="max_programs: expected an integer"):
        options(max_programs=2.5)
    assert options(law="coulomb", max_programs=3).replace(h=0.02).max_programs == 3


# ---------------------------------------------------------------- derivatives


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_matrices_of_the_quasi_dynamic_step(friction):
    """linearize, jvp, vjp and central differences of steps whose contacts slide."""
    from scenes import spatial

    rng, compared = np.random.default_rng(1), 0
    for name in ("sphere", "box", "capsule"):
        scene = spatial(4)[name]
        model = scene.model
        for _ in range(12):
            q, u = scene.sample(rng)
            o = Options(h=0.05, friction=friction, **LAW)
            try:
                lin = qdsim.linearize(model, q, u, o)
                t, tu, e = rng.normal(size=model.nv), rng.normal(size=model.nu), 1e-7
                ends = [
                    qdsim.step(model, model.integrate(q, s * e * t), u + s * e * tu, o)
                    for s in (1, -1)
                ]
            except qdsim.SolverError:
                continue
            if not lin.step.info.derivative_exact or lin.step.info.convex_programs < 2:
                continue
            sets = {tuple(np.sign(end.contacts["force"][:, 0].round(9))) for end in ends}
            if len({len(end.contacts) for end in ends}) > 1 or len(sets) > 1:
                continue
            wanted = model.difference(ends[0].q_next, ends[1].q_next) / (2 * e)
            found = lin.A @ t + lin.B @ tu
            np.testing.assert_allclose(found, wanted, atol=2e-5 * max(1.0, np.abs(wanted).max()))
            d = qdsim.differentiate(model, q, u, o)
            np.testing.assert_allclose(d.jvp({"q": t, "u": tu}), found, atol=1e-8)
            jacobians = d.jacobians(("q", "u"))
            np.testing.assert_allclose(jacobians["q"], lin.A, atol=1e-7)
            np.testing.assert_allclose(jacobians["u"], lin.B, atol=1e-7)
            compared += 1
    assert compared >= 8


def test_a_sliding_block_loses_what_friction_takes():
    """v+ = v - mu g h: by mu, h and gravity."""
    model, h, mu = point_on_floor(0.5), 0.01, 0.5
    d = qdsim.differentiate_dynamic(
        model, model.default_q, [2.0, 0, 0], [], DynamicOptions(h=h, **LAW)
    )
    assert d.step.info.derivative_exact
    g = d.vjp(None, [1.0, 0, 0], ("v", "h", "pair_friction", "gravity"))
    np.testing.assert_allclose(g["v"], [1.0, 0, mu], atol=1e-9)
    assert g["h"] == pytest.approx(-mu * G, rel=1e-8)
    assert g["pair_friction"].sum() == pytest.approx(-G * h, rel=1e-8)
    np.testing.assert_allclose(g["gravity"], [h, 0, mu * h], atol=1e-9)


# ---------------------------------------------------------------- islands that give way

BETWEEN_WALLS = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="5 5 1" friction=".3"/>
<geom type="box" size=".1 3 1" pos="-.195 0 0" friction="0" priority="1"/>
<geom type="box" size=".1 3 1" pos=".195 0 0" friction="0" priority="1"/>
<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/>
<geom size=".1" mass="2" friction=".3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_what_is_squeezed_slides_without_hops(friction):
    """A ball in walls that are too near, without friction, on a floor: the law of the floor is Coulomb's all the same."""
    model, h, mu, v0 = qdsim.load(BETWEEN_WALLS), 0.01, 0.3, 2.0
    q, v = model.default_q, np.array([0.0, v0, 0.0])
    o = DynamicOptions(h=h, friction=friction, infeasible="soften")
    convex = step_dynamic(model, q, v, [], o)
    slowed = (v0 - mu * G * h) / (1 + mu * mu)
    np.testing.assert_allclose(convex.v_next, [0.0, slowed, mu * slowed], atol=1e-6)
    assert convex.info.unique is True and convex.info.law_residual == 0.0
    for k in range(1, 6):
        s = step_dynamic(model, q, v, [], o.replace(**LAW))
        q, v = s.q_next, s.v_next
        np.testing.assert_allclose(v, [0.0, v0 - k * mu * G * h, 0.0], atol=1e-6)
        assert s.info.softened == 2 and s.info.law_residual <= 2e-9
        assert s.contacts["softened"].max() >= 0.999 * 5e-3  # each wall is as deep in the ball
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        step_dynamic(model, q, v, [], DynamicOptions(h=h, friction=friction, **LAW))


RAMP = """<mujoco><option gravity="0 0 0"/><default><geom friction="{mu}"/></default><worldbody>
<geom type="plane" size="9 9 1"/><geom size=".1" pos="-.15 0 .1"/>
<body pos="0 0 .1"><joint type="slide" axis="{along}"/>{more}<geom size=".1" mass="2"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("friction", "along"), [("cone", "1 0 .1"), ("pyramid", "1 .3 .1")])
def test_motion_that_the_convex_law_has_no_room_for(friction, along):
    """A ball on a rail that rises by less than its friction: pushed off another ball, it has to leave the floor slower
    than it slides. The convex program has no point, where it can spin, too (friction of what one joint alone moves is
    left out); under Coulomb's law the floor lets go."""
    mu, h, depth = 0.8, 0.01, 0.05
    wide = qdsim.load(RAMP.format(mu=mu, along=along, more='<joint axis="0 0 1"/>'))
    o = DynamicOptions(h=h, friction=friction, rays=2)
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        step_dynamic(wide, wide.default_q, np.zeros(2), [], o.replace(rays=4))
    model = qdsim.load(RAMP.format(mu=mu, along=along, more=""))
    q, v = model.default_q, np.zeros(1)
    s = step_dynamic(model, q, v, [], o.replace(**LAW))
    axis = np.array([float(x) for x in along.split()])
    way = depth * np.linalg.norm(axis) / axis[0]
    across = np.linalg.norm(axis[1:]) if friction == "cone" else axis[2]  # along the wall's rays
    force = 2.0 * way / h**2 * np.linalg.norm(axis) / (axis[0] - mu * across)
    np.testing.assert_allclose(s.delta, [way], rtol=1e-9)
    np.testing.assert_allclose(s.contacts["force"][:, 0], [0.0, force], rtol=1e-9, atol=1e-9)
    assert s.info.softened == 0 and s.info.law_residual <= 2e-9


def test_no_motion_at_all_is_said_with_what_was_tried():
    """The same rail into the floor."""
    model = qdsim.load(RAMP.format(mu=0.8, along="1 0 -.1", more=""))
    with pytest.raises(qdsim.SolverError, match=r"infeasible.*its own equations .* no motion"):
        step_dynamic(model, model.default_q, np.zeros(1), [], DynamicOptions(h=0.01, **LAW))


SPHERE = '<body pos="{} {} {}"><freejoint/><geom size=".1" mass="1"/></body>'
BIN = """<mujoco><default><geom friction="{mu}"/></default><worldbody><geom type="plane" size="1 1 1"/>
<geom type="box" size=".1 1 1" pos="{at} 0 1"/><geom type="box" size=".1 1 1" pos="-{at} 0 1"/>
<geom type="box" size="1 .1 1" pos="0 {at} 1"/><geom type="box" size="1 .1 1" pos="0 -{at} 1"/>
{spheres}</worldbody></mujoco>"""


def squeezed_pile(rng: np.random.Generator) -> tuple[qdsim.Model, np.ndarray]:
    """Spheres on a grid that is too narrow for them, in walls."""
    pitch = 0.2 * (1 - rng.uniform(0.01, 0.05))
    places = [
        ((i % 2 - 0.5) * pitch, (i // 2 % 2 - 0.5) * pitch, 0.1 + pitch * (i // 4))
        for i in range(int(rng.integers(4, 8)))
    ]
    spheres = "".join(SPHERE.format(*place) for place in places)
    model = qdsim.load(BIN.format(mu=rng.uniform(0.2, 1.0), at=pitch + 0.1, spheres=spheres))
    return model, model.integrate(model.default_q, 0.002 * rng.normal(size=model.nv))


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_squeezed_piles_obey_the_law_or_say_how_far_they_are(friction):
    rng, solved = np.random.default_rng(4), 0
    allowed = 10.0 * DynamicOptions().tolerance * 0.1  # of the law's residual: times the radius
    for _ in range(8):
        model, q = squeezed_pile(rng)
        v = rng.normal(size=model.nv) * float(rng.choice([0.1, 1.0]))
        o = DynamicOptions(h=0.01, friction=friction, infeasible="soften", **LAW)
        try:
            s = step_dynamic(model, q, v, [], o)
        except qdsim.SolverError as error:
            assert error.info.status == "law not met" and error.info.law_residual > allowed
            s = step_dynamic(model, q, v, [], o.replace(max_programs=3))
            assert s.info.law_residual > allowed and s.info.convex_programs == 3
            continue
        solved += 1
        assert s.info.law_residual <= allowed  # some have a motion that gives nothing way
        force = s.contacts["force"]
        assert force[:, 0].min() >= 0.0
        still = momentum_gap(model, q, v, s, gravity_force(model, q) - model.bias_force(q, v))
        assert still <= 1e-7 * (1.0 + force.max())
    assert solved >= 3


def test_a_pushed_box_that_hovers_does_not_jam():
    """A box that was set down 1e-8 m above the plane is pushed. A motion that jams, in which the finger carries the
    box so that the plane does not, is nearly one of the law's; the box slides instead."""
    model = qdsim.load(
        '<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="2 2 .1" friction="0.6"/>'
        '<body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .08 .05" mass="1" friction="0.6"/></body>'
        '<body pos="-.15 .03 .05"><joint name="fx" type="slide" axis="1 0 0"/>'
        '<joint name="fy" type="slide" axis="0 1 0"/><geom size=".03" mass=".2" friction="0.6"/></body></worldbody>'
        '<actuator><position joint="fx" kp="300"/><position joint="fy" kp="300"/></actuator></mujoco>'
    )
    noise, solved = np.array([5e-4] * 3 + [2e-3] * 3 + [5e-4] * 2), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        q = model.integrate(model.default_q, noise * rng.standard_normal(model.nv))
        for x in (0.0175, 0.035, 0.0525):
            try:
                s = qdsim.step(model, q, np.array([x, 0.0]), Options(h=0.5, **LAW))
            except qdsim.SolverError:
                break
            closing, outside, power = law_gaps(model, q, s, "cone")
            force = 1.0 + s.contacts["force"].max(initial=0.0)
            assert closing <= 2e-9 and outside <= 1e-8 * force and power <= 4e-9 * force
            q, solved = s.q_next, solved + 1
    assert solved >= 34


@pytest.mark.parametrize("name", ["solved_without_law", "soften_coulomb_slow"])
def test_steps_that_give_way_hold_the_law_or_say_so(name):
    """One whose constraints contradict each other by rounding, with a pair that is dropped again, and one whose slips
    approach their limit slowly."""
    lines = (Path(__file__).parents[1] / "data" / "coulomb_steps.jsonl").read_text().splitlines()
    found = next(d for d in map(json.loads, lines) if d["name"] == name)
    model, options = qdsim.load(found["xml"]), DynamicOptions(**found["options"])
    try:
        s = step_dynamic(model, found["q"], found["v"], found["u"], options)
    except qdsim.SolverError:
        assert name == "solved_without_law"
        return
    assert s.info.law_residual <= 1e-9 and s.info.convex_programs <= 60
