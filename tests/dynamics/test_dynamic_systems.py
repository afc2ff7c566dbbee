"""The systems of the second-order step: closed forms, drift, what stands and what spreads, and the
papers' inequalities."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import qdsim
from qdsim import DynamicOptions, step_dynamic, systems
from qdsim.systems import load_dynamic

G = 9.81


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", systems.DYNAMIC_NAMES)
def test_every_system_moves_and_says_what_it_is(name):
    system = load_dynamic(name.replace("_", "-").upper())
    assert len(system.about) > 60 and name in repr(system)
    assert not system.v.flags.writeable and system.q.shape == (system.model.nq,)
    done = system.simulate(3 * system.options.h)
    assert np.all(np.isfinite(done.q)) and len(done.u) == 3
    soft = system.model.parameters.geom_modulus.any()  # stands in what it stands on
    if not system.about.startswith("A slender") and not soft:  # nothing begins inside anything
        assert system.model.collide(system.q)["dist"].min(initial=0.0) > -1e-9


def test_wrong_systems_and_choices_are_named():
    with pytest.raises(TypeError, match="name: "):
        load_dynamic(3)
    with pytest.raises(ValueError, match="name: no dynamic system 'rope'"):
        load_dynamic("rope")
    with pytest.raises(TypeError, match="colour"):
        load_dynamic("disks", colour=3)
    for name, choice in {
        "disks": {"rows": 0},
        "brazil_nut": {"grains": 1.5},
        "cradle": {"gap": -1.0},
        "painleve_rod": {"angle": 2.0},
        "sliding_block": {"friction": np.nan},
    }.items():
        with pytest.raises((TypeError, ValueError), match=next(iter(choice))):
            load_dynamic(name, **choice)


# ---------------------------------------------------------------- pendulum


def violations(model, q):
    """Of the held end and of the joint between the rods, m."""
    pos, rot = model.body_poses(q)
    held = pos[1] - rot[1][:, 0]
    tip = pos[1] + rot[1][:, 0] - pos[2] + 0.5 * rot[2][:, 0]
    return np.array([np.linalg.norm(held), np.linalg.norm(tip)])


def exact_pendulum(end):
    """In the two angles, by an eighth-order method: angles below the horizontal and their rates."""

    def slope(_, x):
        a, b, va, vb = x
        c, s = 0.5 * 2 * 0.5 * np.cos(a - b), 0.5 * 2 * 0.5 * np.sin(a - b)
        M = np.array([[4 / 3 + 0.5 * 4, c], [c, 0.5 / 3]])
        force = [-s * vb**2 + (1.0 + 1.0) * G * np.cos(a), s * va**2 + 0.25 * G * np.cos(b)]
        return [va, vb, *np.linalg.solve(M, force)]

    return solve_ivp(slope, (0, end), np.zeros(4), "DOP853", rtol=1e-11, atol=1e-12, max_step=0.01)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(("h", "within"), [(0.01, 0.15), (0.005, 0.07)])
def test_the_pendulum_is_off_by_the_curvature_of_one_step(h, within):
    """What the stabilised step leaves of its constraints is h^2 / 2 times the acceleration that the linearisation does
    not see: with the speeds of the exact motion, whose second rod whips round at 17.8 rad/s, that is 7.9 mm at 10 ms.
    """
    system = load_dynamic("pendulum")
    done = system.simulate(6.0, DynamicOptions(h=h))
    found = np.array([violations(system.model, q) for q in done.q]).max(axis=0)
    a, b, va, vb = exact_pendulum(6.0).y
    rods = np.stack([np.cos(a), np.sin(a)]), np.stack([np.cos(b), np.sin(b)])
    turning = va**2 * rods[0] + 0.5 * vb**2 * rods[1]
    wanted = 0.5 * h * h * np.array([np.max(va**2), np.linalg.norm(turning, axis=0).max()])
    np.testing.assert_allclose(found, wanted, rtol=within)
    assert np.abs(vb).max() == pytest.approx(17.75, abs=0.03)


@pytest.mark.parametrize(("h", "ratio"), [(0.01, 40.0), (0.05, 9.0)])
def test_the_pendulum_drifts_without_stabilising(h, ratio):
    system, worst = load_dynamic("pendulum"), {}
    for speed in (None, 0.0):
        done = system.simulate(10.0, DynamicOptions(h=h, recovery_speed=speed))
        off = np.array([violations(system.model, q).max() for q in done.q])
        worst[speed] = off.max()
        if speed is None:  # never more than the curvature of one step
            moved = np.linalg.norm(h * done.v[1:], axis=1)
            assert np.all(off[1:] <= 0.26 * moved**2 + 1e-12)
            total = done.energy().sum(axis=1)
            assert total[0] - total[-1] < (0.04 if h == 0.01 else 0.4) * np.ptp(done.energy()[:, 1])
    assert worst[0.0] > ratio * worst[None]


# ---------------------------------------------------------------- ellipse and heaps


@pytest.mark.parametrize("h", [0.05, 0.01])
def test_the_ellipse_ends_on_its_flat_side(h):
    system = load_dynamic("falling_ellipse")
    model = system.model
    done = system.simulate(options=DynamicOptions(h=h))
    depth = np.array([-model.collide(q)["dist"].min(initial=0.0) for q in done.q])
    moved = np.linalg.norm(h * done.v[1:], axis=1)
    assert np.all(depth[1:] <= 0.9 * moved**2 + 1e-9)
    assert depth.max() < {0.05: 0.05, 0.01: 2e-3}[h]
    drifting = system.simulate(options=DynamicOptions(h=h, recovery_speed=0.0))
    off = max(-model.collide(q)["dist"].min(initial=0.0) for q in drifting.q)
    assert off > 10 * depth.max()
    total = done.energy().sum(axis=1)
    assert total[0] == pytest.approx(8 * G + 0.5 * 4 * 9, rel=1e-12)
    assert 2 * G - 0.1 <= total[-1] < 24.0
    assert np.all(np.diff(total) < 0.05 * total[0] * h / 0.05 + 1e-9)


@pytest.mark.parametrize("law", ["convex", "coulomb"])
def test_the_ellipse_rocks_on_its_flat_side(law):
    """Rolling takes no energy: with height s of its centre at a tilt, (I + m (s^2 + s'^2)) w^2 / 2 + m g s stays. So
    what is left of the fall goes on rocking, to the first order in h."""
    system, a, b, inertia, end = load_dynamic("falling_ellipse"), 4.0, 2.0, 4.0, 4.0

    def height(tilt):
        """s and its first and second derivative."""
        s = np.sqrt((a * np.sin(tilt)) ** 2 + (b * np.cos(tilt)) ** 2)
        first = (a * a - b * b) * np.sin(2 * tilt) / (2 * s)
        return s, first, ((a * a - b * b) * np.cos(2 * tilt) - first**2) / s

    def slope(_, x):
        s, first, second = height(x[0])
        about_contact = inertia + s**2 + first**2
        return [x[1], -first * ((s + second) * x[1] ** 2 + G) / about_contact]

    exact = solve_ivp(slope, (0, end), [0.15, 0.0], "DOP853", rtol=1e-10, atol=1e-12).y[0, -1]
    errors, lost = [], []
    for h in (0.01, 0.005, 0.0025):
        o = DynamicOptions(h=h, law=law)
        q = np.array([0.0, height(0.15)[0] - 8.0, 0.15])
        done = qdsim.simulate(system.model, q, np.zeros(3), [], end, o)
        errors.append(abs(done.q[-1, 2] - exact))
        total = done.energy().sum(axis=1)
        lost.append(abs(total[-1] - total[0]))
    for found in (errors, lost):
        np.testing.assert_allclose(np.log2(np.divide(found[:-1], found[1:])), 1.0, atol=0.05)
    assert errors[-1] < 1e-3 and lost[-1] < 5e-3


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize(("rows", "least"), [(2, 0.2680), (3, 0.434), (4, 0.473), (6, 0.513)])
def test_heaps_of_disks_stand_from_a_friction_on(friction, rows, least):
    """2 - sqrt 3, the tangent of 15 degrees, for three disks."""
    o = DynamicOptions(h=0.05, friction=friction, rays=2)
    for mu, stands in ((least + 2e-3, True), (least - 2e-3, False)):
        system = load_dynamic("disks", rows=rows, friction=mu)
        s = step_dynamic(system.model, system.q, system.v, [], o)
        if stands:
            np.testing.assert_allclose(s.v_next, 0.0, atol=1e-10)
            floor = s.contacts["body_a"] == 0
            weight = 5 * G * rows * (rows + 1) / 2
            assert s.contacts["force"][floor, 0].sum() == pytest.approx(weight, rel=1e-10)
        else:
            assert np.abs(s.v_next).max() > 1e-5
    assert rows != 2 or least == pytest.approx(2 - np.sqrt(3), abs=1e-4)


def test_21_disks_spread_as_computed():
    system = load_dynamic("disks")
    s = step_dynamic(system.model, system.q, system.v, [], system.options)
    assert np.abs(s.v_next).max() == pytest.approx(0.043, abs=5e-3)
    # spheres part further than they do to the first order, so no step of theirs penetrates
    done = system.simulate(2.0)
    assert min(system.model.collide(q)["dist"].min() for q in done.q) > -1e-12
    total = done.energy().sum(axis=1)
    assert np.all(np.diff(total) <= 1e-9 * total[0])


@pytest.mark.parametrize("name", ["brazil_nut", "brazil_nut_3d"])
def test_shaking_is_the_motion_of_the_box(name):
    """Seen from outside, all grains together obey gravity and the box alone: the load is minus the box's
    acceleration."""
    system = load_dynamic(name, grains=30)
    again = load_dynamic(name, grains=30)
    np.testing.assert_array_equal(system.model.default_q, again.model.default_q)
    other = load_dynamic(name, grains=30, seed=1)
    assert (
        np.abs(other.model.body_poses(other.q)[0] - system.model.body_poses(system.q)[0]).max() > 0
    )
    amplitude, period = (0.75, 1.0) if name == "brazil_nut" else (0.05, 0.5)
    h, mass = system.options.h, system.model.parameters.body_mass
    wave = 2 * np.pi / period
    t = 0.3 * period
    load = system.tau(t, system.q, system.v)
    fall = wave * amplitude * (np.cos(wave * (t + h)) - np.cos(wave * t)) / h
    assert load.sum() == pytest.approx(-mass.sum() * fall, rel=1e-12)
    done = system.simulate(0.6)
    for q in done.q[1:]:
        assert system.model.collide(q)["dist"].min(initial=0.0) > -0.02 * 0.5 * (
            1 if name == "brazil_nut" else 0.1
        )


# ---------------------------------------------------------------- closed forms


def test_the_block_hops_and_stops():
    """v_t = (v0 - mu g h) / (1 + mu^2) and mu v_t up; the apex is 34 mm at 10 ms and 32 mm at 1 ms."""
    for h, apex in ((0.01, 0.034), (0.001, 0.032)):
        system = load_dynamic("sliding_block")
        done = system.simulate(0.6, DynamicOptions(h=h))
        along = (2.0 - 0.5 * 10 * h) / 1.25
        np.testing.assert_allclose(done.v[1], [along, 0.5 * along], atol=1e-10)
        assert done.q[:, 1].max() == pytest.approx(apex, abs=5e-4)
        steps = round(0.4 / h)
        wanted = h * sum(2.0 - k * h * 5.0 for k in range(1, steps + 1))
        assert done.q[-1, 0] == pytest.approx(wanted, abs=3 * h)
        np.testing.assert_allclose(done.v[-1], 0.0, atol=1e-10)


def test_a_cradle_shares_at_once_and_hands_on_one_by_one():
    touching = load_dynamic("cradle", balls=3)
    done = touching.simulate(0.1)
    np.testing.assert_allclose(done.v[-1], [-1 / 3, 2 / 3, 2 / 3], atol=1e-10)
    apart = load_dynamic("cradle", balls=5, gap=0.03)
    done = apart.simulate(0.5)
    np.testing.assert_allclose(done.v[-1], [0, 0, 0, 0, 1], atol=1e-10)
    assert len(done.events) == 8 and np.all(np.diff(done.events["time"]) >= 0)
    np.testing.assert_allclose(done.energy().sum(axis=1), 0.5, rtol=1e-10)


def tip_of(system):
    """Jacobian and Delassus matrix (x, z) of the rod's tip, its contact point on the floor."""
    model = system.model
    contacts = model.collide(system.q)
    point = contacts["pos"][np.argmin(contacts["dist"])]
    pos, rot = model.body_poses(system.q)
    J = model.point_jacobian(system.q, 1, rot[1].T @ (point - pos[1]))[[0, 2]]
    return J, J @ np.linalg.solve(model.mass_matrix(system.q), J.T)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize(("speed", "lift", "spin"), [(2.0, 0.84, 1.44), (-2.0, 0.24, -2.57)])
def test_a_sliding_rod_is_lifted_by_the_convex_law(friction, speed, lift, spin):
    """At 40 degrees Coulomb's law has no jump; the relaxation lets the tip leave at mu times its sliding speed."""
    system, mu = load_dynamic("painleve_rod", angle=np.radians(40), speed=speed), 1.6
    o = system.options.replace(friction=friction, rays=2)
    s = step_dynamic(system.model, system.q, system.v, [], o)
    J, W = tip_of(system)
    free = J @ (system.v + [0, -G * o.h, 0])
    push = np.array([-np.sign(speed) * mu, 1.0])
    row = np.array([-np.sign(speed) * mu, 1.0])  # w_n - mu |w_t| = 0
    load = -(row @ free) / (row @ W @ push)
    np.testing.assert_allclose(J @ s.v_next, free + load * W @ push, atol=1e-10)
    assert s.v_next[1] == pytest.approx(lift, abs=0.01)
    assert s.v_next[2] == pytest.approx(spin, abs=0.1)


def test_the_rod_of_painleve_stops_at_once():
    """At 60 degrees the tip sticks in one step however short: (1.140, 0.643) and 2.572 rad/s as h falls."""
    for h, wanted in ((1e-4, (1.1395, 0.6431, 2.5722)), (1e-3, (1.1367, 0.6415, 2.5658))):
        system = load_dynamic("painleve_rod")
        s = step_dynamic(system.model, system.q, system.v, [], DynamicOptions(h=h))
        J, W = tip_of(system)
        free = J @ (system.v + [0, -G * h, 0])
        impulse = -np.linalg.solve(W, free)
        assert abs(impulse[0]) < 1.6 * impulse[1]
        np.testing.assert_allclose(J @ s.v_next, 0.0, atol=1e-10)
        np.testing.assert_allclose(np.abs(s.v_next), wanted, atol=1e-4)


# ---------------------------------------------------------------- Coulomb's own law


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("h", [0.01, 0.002])
def test_the_block_does_not_hop_under_coulombs_law(friction, h):
    """x = h sum of v0 - k mu g h, and the block stays on the floor: at any h."""
    system = load_dynamic("sliding_block")
    o = DynamicOptions(h=h, friction=friction, law="coulomb")
    done = system.simulate(0.6, o)
    steps = round(0.4 / h)
    wanted = h * sum(2.0 - k * h * 5.0 for k in range(1, steps + 1))
    assert done.q[-1, 0] == pytest.approx(wanted, abs=1e-10)
    np.testing.assert_allclose(done.q[:, 1], 0.0, atol=1e-10)
    np.testing.assert_allclose(done.v[-1], 0.0, atol=1e-10)
    falling = np.maximum(2.0 - 5.0 * done.t, 0.0)
    np.testing.assert_allclose(done.v[:, 0], falling, atol=1e-10)
    assert len(done.events) == 1


@pytest.mark.parametrize(("angle", "speed"), [(40, 2.0), (40, -2.0), (60, -2.0)])
def test_the_rod_slides_on_where_coulombs_law_lets_it(angle, speed):
    """Without a paradox the tip stays on the floor and no impulse outlives h -> 0."""
    system = load_dynamic("painleve_rod", angle=np.radians(angle), speed=speed)
    o = system.options.replace(law="coulomb")
    s = step_dynamic(system.model, system.q, system.v, [], o)
    J, W = tip_of(system)
    push = np.array([-np.sign(speed) * 1.6, 1.0])
    free = J @ (system.v + [0, -G * o.h, 0])
    load = -free[1] / (W[1] @ push)
    np.testing.assert_allclose(J @ s.v_next, free + load * W @ push, atol=1e-10)
    assert abs(s.v_next[1]) < 0.01 and abs(s.v_next[2]) < 0.05


def test_the_rod_of_painleve_stops_under_both_laws():
    system = load_dynamic("painleve_rod")
    o = system.options.replace(law="coulomb")
    s = step_dynamic(system.model, system.q, system.v, [], o)
    np.testing.assert_allclose(np.abs(s.v_next), (1.1395, 0.6431, 2.5722), atol=1e-4)


@pytest.mark.parametrize("rows", [2, 3])
def test_heaps_stand_under_coulombs_law_from_the_same_friction(rows):
    least = {2: 0.2680, 3: 0.434}[rows]
    for mu, stands in ((least + 2e-3, True), (least - 2e-3, False)):
        system = load_dynamic("disks", rows=rows, friction=mu)
        o = DynamicOptions(h=0.05, friction="pyramid", rays=2, law="coulomb")
        s = step_dynamic(system.model, system.q, system.v, [], o)
        assert (np.abs(s.v_next).max() < 1e-9) == stands


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_the_pinch_has_ten_newtons_and_no_gap_under_coulombs_law(friction):
    """Pang and Tedrake 2021: finger force 10 N, gap 0; the ground has 20 N from 0.13 s on. The
    convex law has 11 and 1 mm."""
    system = systems.load("pinch_gripper")
    model, q = system.model, np.array(system.start.q)
    o = system.options.replace(epsilon=1e-9, friction=friction, law="coulomb")
    for k, u in enumerate(system.commands):
        s = qdsim.step(model, q, u, o)
        q = s.q_next
        t = 0.01 * (k + 1)
        if t < 0.0801:
            continue
        force = {}
        for contact in s.contacts:
            ends = {model.geom_names[contact["geom_a"]], model.geom_names[contact["geom_b"]]}
            force[next(iter(ends - {"sphere"}))] = contact["force"][0]
        assert force["left"] == pytest.approx(10.0, abs=1e-6)
        assert force["right"] == pytest.approx(10.0, abs=1e-6)
        assert force["ground"] == pytest.approx(min(10 + 200 * (t - 0.08), 20.0), abs=1e-5)
        assert abs(model.collide(q, np.inf)["dist"]).max() < 1e-9


# ---------------------------------------------------------------- the papers' inequalities


FLOOR = '<geom type="plane" size="9 9 1" friction="{mu}"/>'
SHAPES = (
    '<geom type="sphere" size=".1" friction="{mu}"/>',
    '<geom type="box" size=".1 .08 .06" friction="{mu}"/>',
    '<geom type="capsule" size=".06 .1" friction="{mu}"/>',
    '<geom type="ellipsoid" size=".12 .08 .06" friction="{mu}"/>',
    '<geom type="sphere" size=".07" friction="{mu} .02" condim="4"/>',
)


@pytest.mark.parametrize("law", ["convex", "coulomb"])
@pytest.mark.parametrize("seed", range(6))
def test_energy_and_infeasibility_are_bounded(seed, law):
    """Anitescu and Hart: |v+|_A <= |A^-1 (M v + h k)|_A where rest is feasible, and I(q+) <= C |h v+|^2."""
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.1, 1.3)
    bodies = "".join(
        f'<body pos="{rng.uniform(-0.2, 0.2):.3f} {rng.uniform(-0.2, 0.2):.3f} {0.15 + 0.2 * i:.3f}" '
        f'quat="{" ".join(f"{x:.3f}" for x in rng.normal(size=4))}"><freejoint/>'
        + SHAPES[int(rng.integers(len(SHAPES)))].format(mu=f"{mu:.3f}")
        + "</body>"
        for i in range(4)
    )
    model = qdsim.load(
        f'<mujoco><option gravity="0 0 -{G}"/><worldbody>{FLOOR.format(mu=f"{mu:.3f}")}{bodies}'
        "</worldbody></mujoco>"
    )
    h = float(rng.choice([0.002, 0.005, 0.01, 0.02]))
    o = DynamicOptions(h=h, friction=str(rng.choice(["cone", "pyramid"])), law=law)
    q, v = np.array(model.default_q), rng.normal(size=model.nv)
    weight = np.zeros(model.nv)
    weight[2::6] = -G * model.parameters.body_mass[1:]
    feasible, constant = 0, 0.0
    for _ in range(60):
        s = step_dynamic(model, q, v, [], o)
        M = model.mass_matrix(q)
        free = np.linalg.solve(M, M @ v + h * (weight - model.bias_force(q, v)))
        depth = -min(model.collide(q)["dist"].min(initial=0.0), 0.0)
        if depth <= 1e-12:
            feasible += 1
            assert s.v_next @ M @ s.v_next <= (free @ M @ free) * (1 + 1e-9) + 1e-15
        q, v = s.q_next, s.v_next
        moved = float(np.sum((h * v) ** 2))
        after = -min(model.collide(q)["dist"].min(initial=0.0), 0.0)
        constant = max(constant, (after - 1e-9) / max(moved, 1e-12))
    assert feasible > 5
    assert (
        constant <= 4.0
    )  # 1/m; half the curvature of shapes no smaller than 6 cm, less the square root of their masses


def test_simulations_of_systems_travel():
    done = load_dynamic("cradle").simulate(0.05)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(done)).q, done.q)
