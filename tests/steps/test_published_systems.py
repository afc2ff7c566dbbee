"""The published systems: numbers of their files, fixtures from the authors' tests, physics."""

import itertools
import math

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim import systems

# nu of objects, robots' DOFs, geometries, candidate pairs, gravity, rays, margin, mass ratio: the
# overview of the published files. Pairs follow the published simulator's filter.
INF = math.inf
OVERVIEW = {
    "two_spheres_1d": (1, 1, 2, 1, 0, 2, INF, None),
    "two_spheres_2d": (2, 2, 2, 1, 0, 2, INF, None),
    "two_spheres_3d": (3, 3, 3, 3, -10, 4, 0.2, None),
    "box_ball_grazing": (1, 2, 2, 1, 0, 2, INF, None),
    "pinch_gripper": (2, 3, 4, 3, -10, 2, INF, None),
    "spinning_sphere": (6, 0, 2, 1, -10, 4, 0.1, None),
    "ball_on_platform": (0, 2, 3, 2, -10, 2, INF, None),
    "planar_hand_soft": (3, 4, 13, 51, 0, 2, 10, None),
    "planar_hand_fixed_y": (2, 4, 13, 51, 0, 2, 10, None),
    "planar_hand_small_ball": (3, 4, 13, 51, 0, 2, 10, None),
    "planar_hand_box": (3, 4, 13, 51, 0, 2, 10, None),
    "box_pushing": (3, 2, 10, 9, 0, 2, 0.1, None),
    "box_pivoting": (3, 2, 11, 19, -9.81, 2, 0.1, None),
    "three_link_arm_2d": (3, 3, 5, 7, -10, 2, INF, 5),
    "three_link_arm_3d": (6, 3, 11, 19, -10, 4, INF, 5),
    "plate_pickup": (3, 5, 14, 52, -10, 2, 1, None),
    "rope": (29, 5, 32, 467, -1, 2, 0.1, None),
    "carrots": (200, 5, 102, 5151, 0, 2, 0.1, None),
    "allegro_sphere": (6, 16, 20, 163, -10, 4, 0.025, 5),
    "allegro_sphere_soft": (6, 16, 20, 163, -10, 4, 0.025, 5),
    "allegro_sphere_tilted": (6, 16, 20, 163, -10, 4, 0.025, None),
    "allegro_sphere_hardware": (6, 16, 20, 163, -9.8, 4, 0.025, 5),
    "allegro_cube": (6, 16, 20, 163, -9.81, 4, 0.025, None),
    "allegro_baoding_30mm": (12, 16, 21, 183, 0, 4, 0.025, None),
    "allegro_baoding_40mm": (12, 16, 21, 183, 0, 4, 0.025, None),
    "allegro_pen": (6, 19, 25, 258, 0, 4, 0.025, None),
    "allegro_plate": (6, 19, 42, 641, -10, 4, 0.0125, None),
    "allegro_plate_soft": (6, 19, 42, 641, -10, 4, 0.0125, None),
    "allegro_book": (6, 19, 40, 563, -10, 8, 0.025, None),
    "allegro_door": (2, 19, 25, 263, 0, 4, 0.025, 1),
    "allegro_door_pull": (2, 19, 25, 263, 0, 4, 0.025, None),
    "iiwa": (0, 7, 0, 0, -10, 4, 0.5, None),
    "iiwa_planar": (3, 6, 29, 326, -9.8, 4, 0.2, 5),
    "iiwa_bimanual_box": (6, 14, 38, 591, -9.8, 4, 0.2, 5),
    "iiwa_bimanual_cylinder": (6, 14, 34, 475, 0, 4, 0.2, 5),
    "iiwa_box_push": (3, 7, 2, 1, 0, 4, 0.2, 5),
    "iiwa_box_push_free": (6, 7, 11, 19, 0, 4, 0.5, 5),
    "cloud_grasp": (6, 3, 4, 6, -10, 4, 0.002, None),
    "cloud_grasp_without_torsion": (6, 3, 4, 6, -10, 4, 0.002, None),
    "block_stacking": (60, 9, 102, 4761, -10, 4, 0.02, 5),
}
# Deepest penetration at the start, m: what the published starts have, and the 1e-7 m of the corner
# spheres that stand on a ground.
DEEPEST = {
    "box_pivoting": 0.0245001,
    "allegro_pen": 0.0047,
    "allegro_sphere": 2.1e-4,
    "allegro_sphere_soft": 2.1e-4,
    "allegro_sphere_hardware": 2.3e-4,
    "allegro_sphere_tilted": 1e-5,
    "carrots": 0.02,
}


@pytest.fixture(scope="module", params=list(OVERVIEW))
def system(request):
    return systems.load(request.param)


def penetration(model, q):
    contacts = model.collide(q, 0.0)
    return max(0.0, -contacts["dist"].min()) if len(contacts) else 0.0


def distance(model, q, a, b):
    """Signed distance of two geometries, the nearest of their contacts."""
    a, b = model.geom_index(a), model.geom_index(b)
    contacts = model.collide(np.asarray(q, dtype=float), 10.0)
    rows = ((contacts["geom_a"] == a) & (contacts["geom_b"] == b)) | (
        (contacts["geom_a"] == b) & (contacts["geom_b"] == a)
    )
    return contacts["dist"][rows].min()


def centre(model, q, geom):
    """World position (3) of a geometry's centre."""
    item = next(g for g in model.description.geoms if g.name == geom)
    body = model.body_names[model.geom_body[model.geom_index(geom)]]
    position, rotation = model.body_pose(np.asarray(q, dtype=float), body)
    return position + rotation @ np.array(item.pos)


def test_every_published_system_is_listed():
    assert set(OVERVIEW) | set(systems.TASK_NAMES) == set(systems.NAMES)


def test_system_has_the_published_numbers(system):
    model, options = system.model, system.options
    objects, robots, geoms, pairs, gravity, rays, margin, ratio = OVERVIEW[system.name]
    assert (model.unactuated_v.size, model.nu) == (objects, robots)
    assert (len(model.geom_names), model.pair_count) == (geoms, pairs)
    np.testing.assert_array_equal(model.parameters.gravity, [0, 0, gravity])
    assert (options.rays, options.margin, options.mass_ratio) == (rays, margin, ratio)
    assert options.epsilon == (None if ratio else 1.0)
    assert options.friction == ("pyramid" if rays == 2 else "cone")
    assert (model.planar_normal is not None) == (rays == 2 or system.name == "iiwa_planar")
    assert system.name in repr(system)
    assert len(system.about) > 60 and "q = [" in system.about
    # Range and default of the Allegro hand's thumb: 0 is outside.
    assert [item for item in model.ignored if "its reference 0 is outside" not in item] == []


def test_system_starts_as_published(system):
    q, u = system.start
    np.testing.assert_array_equal(system.model.command_from(q), u)
    assert penetration(system.model, q) <= DEEPEST.get(system.name, 1.0001e-7)
    assert system.commands.shape[1:] == (system.model.nu,)
    assert np.isfinite(system.commands).all()


def test_system_steps(system):
    """Exact and smoothed: the program is solved, nothing penetrates, forces push."""
    model, options = system.model, system.options
    q, u = system.model.keyframes[system.commands_from]
    if len(system.commands):
        u = system.commands[0]
    for kappa in (None, 100.0):
        result = qdsim.step(model, q, u, options.replace(kappa=kappa))
        info = result.info
        scale = 1.0 + np.abs(result.contacts["force"]).max(initial=0.0)
        assert max(info.primal_residual, info.dual_residual, info.complementarity) < 1e-8 * scale
        assert np.all(result.contacts["force"][:, 0] >= -1e-9)
        # Separated contacts stay separated to second order of the motion.
        if kappa is None:
            slack = 0.5 * np.abs(result.delta).max() ** 2 + 1e-6
            assert penetration(model, result.q_next) <= slack + 0.005 * (penetration(model, q) > 0)


# -------------------------------------------------------------------- frictions, masses


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(
    ("name", "a", "b", "friction"),
    [
        ("two_spheres_2d", "object", "robot", 2 * 0.8 / 1.8),
        ("two_spheres_3d", "ground", "object", 2 * 0.5 * 0.8 / 1.3),
        ("box_pushing", "box", "hand", 2 * 0.5 / 1.5),
        ("box_pushing", "corner_1", "hand", 1.0),
        ("carrots", "piece_0", "left_finger", 2 * 0.1 / 1.1),
        ("planar_hand_box", "box", "left_1a", 2 * 0.8 * 0.1 / 0.9),
        ("iiwa_bimanual_cylinder", "rim_1", "ground", 2 * 0.05 * 0.5 / 0.55),
        ("iiwa_bimanual_box", "box", "left_link_7_0", 0.5),
        ("allegro_plate", "plate_0", "ground", 2 * 0.5 / 1.5),
        ("block_stacking", "ground", "box0_1", 2 * 0.5 / 1.5),
        ("block_stacking", "arm_hand_left_finger_1", "box0", 1.0),
    ],
)
def test_frictions_combine_by_the_harmonic_mean(name, a, b, friction):
    model = systems.load(name).model
    row = model.pair_index(a, b)
    np.testing.assert_allclose(model.parameters.pair_friction[row, :2], friction, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "smallest_stiffness", "largest_mass", "h", "epsilon"),
    [
        ("allegro_sphere", 100, 1, 0.1, 0.2),
        ("allegro_sphere_hardware", 2, 0.05, 0.01, 8e-4),
        ("allegro_door", 100, 0.0588967, 0.1, 16.98),
        ("allegro_door", 100, 0.0588967, 0.05, 4.24),
        ("iiwa_planar", 200, 1, 0.05, 0.1),
        ("iiwa_bimanual_box", 200, 1, 0.01, 0.004),
        ("iiwa_box_push", 200, 0.1, 0.02, 0.16),
        ("three_link_arm_2d", 1000, 1, 0.02, 0.08),
        ("three_link_arm_3d", 1000, 5, 0.02, 0.016),
    ],
)
def test_mass_ratios_give_the_published_epsilon(name, smallest_stiffness, largest_mass, h, epsilon):
    system = systems.load(name)
    model, options = system.model, system.options.replace(h=h)
    assert model.parameters.actuator_stiffness.min() == smallest_stiffness
    rows = model.unactuated_v
    mass = np.diag(model.mass_matrix(model.default_q))[rows].max()
    assert mass == pytest.approx(largest_mass, rel=1e-6)
    exact = smallest_stiffness * h**2 / mass / options.mass_ratio
    assert exact == pytest.approx(epsilon, rel=2e-3)
    tau = np.zeros(model.nv)
    tau[rows] = np.random.default_rng(0).uniform(50.0, 100.0, rows.size)
    q, u = system.start
    ours, plain = (
        qdsim.step(model, q, u, o, tau=tau) for o in (options, options.replace(epsilon=exact))
    )
    assert np.abs(ours.delta[rows]).max() > 1e-6
    np.testing.assert_allclose(ours.delta, plain.delta, rtol=1e-6, atol=1e-12)


# -------------------------------------------------------------------- kinematics and distances

A0 = np.array(
    [0.03501504, 0.75276565, 0.74146232, 0.83261002, -0.1438725, 0.74696812, 0.61908827, 0.70064279]
    + [-0.06922541, 0.78533142, 0.82942863, 0.90415436, 0.63256269, 1.02378254, 0.64089555]
    + [0.82444782]
)
# Centres with all joints at zero, and in A0.
CENTRES = {
    "palm": ((-0.0475, 0, -0.0093), (-0.0475, 0, -0.0093)),
    "link_1_0": ((-0.11777, 0.04563, 0), (-0.1156, 0.04563, 0.00547)),
    "link_1_1": ((-0.14367, 0.04789, 0), (-0.13444, 0.0479, 0.02323)),
    "link_2_0": ((-0.17554, 0.05068, 0), (-0.14982, 0.05015, 0.04885)),
    "link_2_1": ((-0.20145, 0.05295, 0), (-0.15172, 0.05123, 0.07476)),
    "link_3_0": ((-0.22844, 0.05531, 0), (-0.13344, 0.05032, 0.09457)),
    "link_5_0": ((-0.1201, 0, 0), (-0.11797, -0.00078, 0.00538)),
    "link_5_1": ((-0.1461, 0, 0), (-0.13705, -0.00331, 0.02286)),
    "link_6_0": ((-0.1781, 0, 0), (-0.15416, -0.00694, 0.04794)),
    "link_6_1": ((-0.2041, 0, 0), (-0.15945, -0.01059, 0.07313)),
    "link_7_0": ((-0.2312, 0, 0), (-0.14683, -0.01402, 0.09676)),
    "link_9_0": ((-0.11777, -0.04563, 0), (-0.1154, -0.04581, 0.00564)),
    "link_9_1": ((-0.14367, -0.04789, 0), (-0.1336, -0.04868, 0.02398)),
    "link_10_0": ((-0.17554, -0.05068, 0), (-0.14701, -0.05167, 0.05005)),
    "link_10_1": ((-0.20145, -0.05295, 0), (-0.14571, -0.05336, 0.07596)),
    "link_11_0": ((-0.22844, -0.05531, 0), (-0.12399, -0.05257, 0.0919)),
    "link_14_0": ((-0.01486, 0.09996, -0.0132), (-0.02552, 0.06983, 0.04265)),
    "link_15_0": ((-0.01122, 0.1415, -0.0132), (-0.04153, 0.07342, 0.07737)),
    "link_15_1": ((-0.00896, 0.16741, -0.0132), (-0.05587, 0.06379, 0.0968)),
}


def test_allegro_hand_has_the_published_centres():
    model = systems.load("allegro_sphere").model
    q = np.array(model.default_q)
    for joints, column in ((np.zeros(16), 0), (A0, 1)):
        q[:16] = joints
        for geom, centres in CENTRES.items():
            np.testing.assert_allclose(centre(model, q, geom), centres[column], atol=1e-5)


def test_allegro_ball_starts_at_the_published_distances():
    system = systems.load("allegro_sphere")
    model, q = system.model, system.start.q
    np.testing.assert_array_equal(q[:16], A0)
    for geom, published in {
        "link_11_0": -0.00020,
        "palm": -0.00010,
        "link_7_0": 0.00026,
        "link_15_1": 0.00038,
        "link_3_0": 0.00376,
    }.items():
        assert distance(model, q, "ball", geom) == pytest.approx(published, abs=6e-6)
    fingers = sorted(distance(model, q, "ball", f"link_5_{i}") for i in (0, 1))
    np.testing.assert_allclose(fingers, [0.00101, 0.00234], atol=6e-6)
    assert len(model.collide(q, 0.025)) == 32
    for geom, published in {"link_9": 0.00740, "link_1": 0.00760, "link_5": 0.00997}.items():
        nearest = min(distance(model, q, "palm", f"{geom}_{i}") for i in (0, 1))
        assert nearest == pytest.approx(published, abs=6e-6)


def test_allegro_tilted_ball_is_touched():
    system = systems.load("allegro_sphere_tilted")
    touching = system.model.collide(system.start.q, 0.025)
    ball = system.model.geom_index("ball")
    touching = touching[(touching["geom_a"] == ball) | (touching["geom_b"] == ball)]
    # Three fingers touch; with the thumb listed last they would reach 9.9 mm into the ball.
    assert np.sum(np.abs(touching["dist"]) < 1e-5) == 3
    assert touching["dist"].min() > -1e-5


def test_floating_hands_face_as_published():
    """Slides and palms: up for the pen, down for the plate, forward for the door."""
    for name, slides, palm, fingers in (
        ("allegro_pen", [(0, -1, 0), (-1, 0, 0), (0, 0, 1)], (0, 0, 1), (-1, 0, 0)),
        ("allegro_plate", np.eye(3), (0, 0, -1), (0, 1, 0)),
        ("allegro_book", np.eye(3), (0, 0, -1), (0, 1, 0)),
        ("allegro_door", np.eye(3), (1, 0, 0), (0, 0, 1)),
    ):
        model = systems.load(name).model
        q = np.array(model.default_q)
        position, rotation = model.body_pose(q, "hand")
        np.testing.assert_allclose(rotation[:, 0], palm, atol=1e-15)
        np.testing.assert_allclose(rotation[:, 2], fingers, atol=1e-15)
        for i, direction in enumerate(slides, 1):
            moved = q.copy()
            moved[model.slice_q(f"slide_{i}")] += 0.5
            shift = model.body_pose(moved, "hand")[0] - position
            np.testing.assert_allclose(shift, 0.5 * np.array(direction), atol=1e-15)


def test_pen_starts_as_published():
    system = systems.load("allegro_pen")
    model = system.model
    assert distance(model, system.start.q, "pen_4", "link_14_0") == pytest.approx(-0.0047, abs=5e-5)
    grasp = model.keyframes["grasp"].q
    palm = min(distance(model, grasp, f"pen_{i}", "palm") for i in range(6))
    assert palm == pytest.approx(0.0, abs=5e-6)


def test_plate_starts_at_the_wall_and_above_the_ground():
    system = systems.load("allegro_plate")
    model, q = system.model, system.start.q
    plate = [f"plate_{i}" for i in range(20)]
    assert min(distance(model, q, item, "wall") for item in plate) == pytest.approx(0, abs=1e-12)
    grounds = [distance(model, q, item, "ground") for item in plate]
    np.testing.assert_allclose(grounds, 0.02, atol=1e-12)


def test_door_starts_as_published_and_its_handle_is_a_latch():
    for name, sign in (("allegro_door", -1), ("allegro_door_pull", 1)):
        system = systems.load(name)
        model = system.model
        handle = [f"handle_{i}" for i in (1, 2, 3)]

        def clearance(door, knob, model=model, handle=handle):
            q = np.array(model.default_q)
            q[:2] = door, knob
            return min(distance(model, q, item, "fixed_leaf") for item in handle)

        assert clearance(0.0, 0.0) == pytest.approx(0.025, abs=1e-12)
        assert clearance(sign * 0.047476, 0.0) == pytest.approx(0.0, abs=1e-6)
        assert clearance(-sign * 0.5, 0.0) > 0.0
        swing = np.linspace(0.0, 1.5, 151)
        q = np.array([[*(angle * sign, math.pi / 2), *model.default_q[2:]] for angle in swing])
        upright = min(
            distance(model, row, item, "fixed_leaf") for row in q for item in ("knob", *handle)
        )
        # Pushed open, the knob passes nearer to the leaf than the handle does.
        assert upright == pytest.approx(0.0234 if sign < 0 else 0.0443, abs=1e-4)
        for degrees, free in ((60.4, False), (60.8, True)):
            knob = math.radians(degrees)
            assert (min(clearance(sign * angle, knob) for angle in swing) > 0.0) == free
        rows = model.unactuated_v
        np.testing.assert_allclose(
            model.mass_matrix(model.default_q)[np.ix_(rows, rows)],
            np.diag([0.0588967, 0.001]),
            atol=1e-7,
        )
    system = systems.load("allegro_door")
    q = system.start.q
    assert distance(system.model, q, "knob", "link_7_0") == pytest.approx(0.00434, abs=5e-6)
    nearest = min(distance(system.model, q, "handle_2", f"link_15_{i}") for i in (0, 1))
    assert nearest == pytest.approx(0.00537, abs=5e-6)


PLANAR_ARM = {
    "1": [(0, -0.05, 0.3325)],
    "2": [(0.18, 0, 0.3405), (0.01, 0.05, 0.3405)],
    "3": [(0.394, 0, 0.3905), (0.219, 0, 0.3405)],
    "4": [(0.4095, 0, 0.2885), (0.5765, 0, 0.3405)],
    "5": [(0.6135, 0, 0.3405), (0.8035, 0, 0.3055), (0.7635, 0, 0.2825), (0.7035, 0, 0.3005)],
    "6": [(0.769, 0, 0.3475), (0.849, 0, 0.3405)],
    "7": [(0.9395, 0, 0.3405)],
}


def test_planar_arm_has_the_published_centres():
    model = systems.load("iiwa_planar").model
    q = np.zeros(model.nq)
    for side, y in (("left", 0.406), ("right", -0.406)):
        for link, spheres in PLANAR_ARM.items():
            for i, published in enumerate(spheres):
                found = centre(model, q, f"{side}_link_{link}_{i}") - [0, y, 0]
                np.testing.assert_allclose(found, published, atol=1e-12)


def test_planar_arm_is_the_spatial_one_with_four_joints_fixed():
    planar, spatial = (systems.load(name).model for name in ("iiwa_planar", "iiwa_bimanual_box"))
    rng = np.random.default_rng(1)
    joints = rng.uniform(-1, 1, 3)
    q_planar, q_spatial = np.array(planar.default_q), np.array(spatial.default_q)
    q_planar[3:6] = joints
    q_spatial[:7] = [joints[0], math.pi / 2, math.pi / 2, joints[1], 0, joints[2], 0]
    for link, spheres in PLANAR_ARM.items():
        for i in range(len(spheres)):
            geom = f"left_link_{link}_{i}"
            np.testing.assert_allclose(
                centre(planar, q_planar, geom), centre(spatial, q_spatial, geom), atol=1e-12
            )


def test_arms_reach_where_published():
    system = systems.load("iiwa_planar")
    model, q = system.model, system.start.q
    body = model.body_pose(q, "left_link_7")[0]
    np.testing.assert_allclose(body, [0.0632, 1.0777, 0.3405], atol=5e-5)
    tip = centre(model, q, "left_link_7_0")
    np.testing.assert_allclose(tip, [0.03294, 1.1295, 0.3405], atol=5e-5)
    tip = centre(model, q, "right_link_7_0")
    np.testing.assert_allclose(tip[:2], [0.7186, -0.3155], atol=1e-4)
    body = model.body_pose(model.keyframes["mirrored"].q, "left_link_7")[0]
    np.testing.assert_allclose(body, [0.6727, 0.3541, 0.3405], atol=5e-5)

    system = systems.load("iiwa_bimanual_box")
    for side, published in (
        ("left", (0.8191, 0.3437, 0.518)),
        ("right", (0.8742, -0.3095, 0.3412)),
    ):
        body = system.model.body_pose(system.start.q, f"{side}_link_7")[0]
        np.testing.assert_allclose(body, published, atol=1e-4)

    system = systems.load("iiwa_box_push")
    body = system.model.body_pose(system.start.q, "arm_link_7")[0]
    np.testing.assert_allclose(body, [0.5241, 0, 0.1006], atol=5e-5)
    gap = distance(system.model, system.start.q, "arm_link_7_0", "box")
    assert gap == pytest.approx(0.0388, abs=5e-5)


# -------------------------------------------------------------------- physics


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_ground_carries_a_ball_with_exactly_its_weight(friction):
    """The authors' only test with an expected force: 10 N up, nothing else."""
    system = systems.load("two_spheres_3d")
    model = system.model
    q, u = model.keyframes["resting"]
    options = system.options.replace(margin=0.1, friction=friction)
    result = qdsim.step(model, q, u, options)
    assert len(result.contacts) == 1
    contact = result.contacts[0]
    world = contact["frame"].T @ contact["force"][:3]
    sign = 1.0 if contact["body_b"] == model.body_index("object") else -1.0
    np.testing.assert_allclose(sign * world, [0, 0, 10], atol=1e-8)


def replay(system):
    """Steps of a system's motion."""
    q = system.model.keyframes[system.commands_from].q
    steps = []
    for u in system.commands:
        steps.append(qdsim.step(system.model, q, u, system.options))
        q = steps[-1].q_next
    return steps


@pytest.mark.parametrize("h", [0.01, 0.001])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_spun_sphere_moves_beyond_the_torque_limit_only(friction, h):
    """Nothing until c m g; beyond it the relaxed cone lifts by c times the turn (c: torsional).

    m d / h^2 = N - m g and I w / h^2 = t - c N with lift d = c w: w = (t - c m g) / ((I + c^2 m) / h^2).
    """
    system = systems.load("spinning_sphere")
    model, options = system.model, system.options.replace(friction=friction, h=h)
    q, u = system.start
    c, m, inertia, g = 0.05, 1.0, 0.004, 10.0
    for torque in (0.1, 0.45, 0.499, 0.501, 0.6, 1.0):
        tau = np.zeros(6)
        tau[5] = torque
        delta = qdsim.step(model, q, u, options, tau=tau).delta
        turn = max(0.0, torque - c * m * g) * h**2 / (inertia + c**2 * m)
        np.testing.assert_allclose(delta, [0, 0, c * turn, 0, 0, turn], rtol=1e-7, atol=1e-10)


def test_ball_grazes_as_the_hand_written_program_says():
    """Two rays, two constraints: the minimum among all active sets, by hand."""
    system = systems.load("box_ball_grazing")
    model, h = system.model, system.options.h
    Q = np.diag([1.0 / h**2, 100.0, 100.0])
    J = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])  # n + mu t, n - mu t in (box y; ball y, z)
    q = ours = np.array(system.start.q)
    for u in system.commands:
        b = np.array([0.0, *(100.0 * (u - q[1:]))])
        best = None
        for active in ((), (0,), (1,), (0, 1)):
            rows = J[list(active)]
            n = len(active)
            kkt = np.block([[Q, -rows.T], [rows, np.zeros((n, n))]])
            solution = np.linalg.lstsq(kkt, np.concatenate([b, -np.full(n, q[2])]), rcond=None)[0]
            x, force = solution[:3], solution[3:]
            if np.all(J @ x + q[2] >= -1e-9) and np.all(force >= -1e-9):
                cost = 0.5 * x @ Q @ x - b @ x
                best = (cost, x) if best is None or cost < best[0] else best
        q = q + best[1]
        ours = qdsim.step(model, ours, u, system.options).q_next
        np.testing.assert_allclose(ours, q, atol=1e-8)
    assert q[0] > 0.04


def test_smoothed_grazing_gradient_is_that_of_the_hand_written_program():
    """The published check: q = 0, u = (0.1, -0.1), kappa = 100, differences of 1e-3 to 1e-4."""
    system = systems.load("box_ball_grazing")
    model, options = system.model, system.options.replace(kappa=100.0)
    h, kappa = options.h, 100.0
    Q = np.diag([1.0, 100.0 * h**2, 100.0 * h**2])  # of velocities, as the published program
    J = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])

    def minimum(u):
        tau = h * np.array([0.0, *(100.0 * u)])
        v = np.array([0.0, 0.0, 1.0])
        cost = lambda v: (  # noqa: E731
            INF if np.any(J @ v <= 0) else kappa * (0.5 * v @ Q @ v - tau @ v) - np.log(J @ v).sum()
        )
        for _ in range(100):
            slack = J @ v
            gradient = kappa * (Q @ v - tau) - J.T @ (1 / slack)
            step = -np.linalg.solve(kappa * Q + J.T @ np.diag(1 / slack**2) @ J, gradient)
            length = 1.0
            while cost(v + length * step) > cost(v) + 1e-4 * length * gradient @ step:
                length *= 0.5
                if length < 1e-12:
                    return h * v
            v = v + length * step
        return h * v

    u = np.array([0.1, -0.1])
    linear = qdsim.linearize(model, np.zeros(3), u, options)
    np.testing.assert_allclose(linear.step.delta, minimum(u), atol=1e-9)
    published = np.array([(minimum(u + e) - minimum(u - e)) / 2e-3 for e in 1e-3 * np.eye(2)]).T
    np.testing.assert_allclose(linear.B, published, atol=1e-4)


def test_pushed_sphere_keeps_its_direction():
    steps = replay(systems.load("two_spheres_3d"))
    for step in steps:
        x, y, z = step.q_next[:3]
        assert math.atan2(y, x) == pytest.approx(math.pi / 12, abs=1e-9) or math.hypot(x, y) < 1e-9
        assert z >= 0.5 - 1e-9  # the finger's friction may lift it in the relaxed cone
    assert math.hypot(*steps[-1].q_next[:2]) > 1.0


def test_sphere_in_one_dimension_is_pushed_by_a_spring():
    """Spring, contact and inertia in a row: k (u - x) = m (s - 0) / h^2, at first touch s = 0."""
    system = systems.load("two_spheres_1d")
    model, options = system.model, system.options
    result = qdsim.step(model, [0.5, 0.3], [0.35], options)
    inertia = 1.0 / options.h**2
    shift = 500 * 0.05 / (500 + inertia)
    np.testing.assert_allclose(result.delta, [shift, shift], rtol=1e-9)


def test_pinched_sphere_slips_when_the_paper_says():
    """Fingers touch at 0.03 s; their force rises to 10 N; 10 N friction down and the weight: from
    0.13 s on the sphere cannot be pushed into the ground and slips."""
    system = systems.load("pinch_gripper")
    model, options = system.model, system.options
    steps = replay(system)
    geom = {name: model.geom_index(name) for name in ("left", "right", "ground")}

    def force(step, name):
        contacts = step.contacts
        row = (contacts["geom_a"] == geom[name]) | (contacts["geom_b"] == geom[name])
        return contacts["force"][row][0] if np.any(row) else np.zeros(6)

    times = np.arange(1, 36) * options.h
    for t, step in zip(times, steps, strict=True):
        left, right = force(step, "left"), force(step, "right")
        assert left[0] == pytest.approx(right[0], abs=1e-6)
        if t < 0.0301:
            assert left[0] == pytest.approx(0.0, abs=1e-9)
        elif t < 0.0801:
            assert left[0] == pytest.approx(1000 * 0.2 * (t - 0.03), abs=1e-6)
        if 0.0801 < t < 0.1301:  # the hand pushes down, the fingers stick
            assert left[0] == pytest.approx(10.0, abs=1e-6)
            down = 1000 * 0.2 * (t - 0.08)
            assert force(step, "ground")[0] == pytest.approx(10 + down, abs=1e-6)
    hand = np.array([0.0] + [step.q_next[2] for step in steps])
    slip = -np.diff(hand)
    stuck, sliding, after = times < 0.1301, (times > 0.1301) & (times < 0.2301), times > 0.2301
    np.testing.assert_allclose(slip[stuck], 0.0, atol=1e-9)
    assert slip[sliding].min() > 1e-3 and slip[after].max() < 1e-3
    # The relaxed cone holds a gap of friction times slip, here 0.5 times 2 mm a step, which presses
    # the springs by 1 N more: 11 N a finger and 21 N on the ground. At rest the published 10 and 20.
    late = steps[22]
    assert slip[22] == pytest.approx(0.002, abs=1e-6)
    np.testing.assert_allclose(-late.q_next[3], 0.1 + 0.001, atol=1e-6)
    for name, there, rest in (("left", 11, 10), ("right", 11, 10), ("ground", 21, 20)):
        assert force(late, name)[0] == pytest.approx(there, abs=1e-3)
        assert force(steps[12], name)[0] == pytest.approx(rest, abs=1e-6)
        assert force(steps[-1], name)[0] == pytest.approx(rest, abs=1e-3)


def test_ball_is_held_where_the_platform_lets_it():
    system = systems.load("ball_on_platform")
    for step in replay(system):
        np.testing.assert_allclose(step.q_next, [-0.6, 1.2], atol=1e-9)


def test_arm_follows_its_command_without_load():
    system = systems.load("iiwa")
    q = system.start.q
    for u, step in zip(system.commands, replay(system), strict=True):
        np.testing.assert_allclose(step.q_next, u, atol=1e-10)
    np.testing.assert_allclose(system.commands[-1], q + 0.5, atol=1e-12)


def test_arm_bends_under_a_load_by_stiffness():
    """-100 N on link 7's origin: K dq = J(q)'F, at the configuration where the load hangs."""
    system = systems.load("iiwa")
    model = system.model
    q, u = system.start
    load = np.array([0.0, 0.0, -100.0])
    for _ in range(60):
        jacobian = model.jacobian(q, "arm_link_7")[:3]
        q = qdsim.step(model, q, u, system.options, tau=jacobian.T @ load).q_next
    stiffness = model.parameters.actuator_stiffness
    residual = stiffness * (u - q) + model.jacobian(q, "arm_link_7")[:3].T @ load
    assert np.abs(residual).max() < 1e-8
    assert np.abs(q - u).max() > 0.05


def second_order(system, friction, timestep=1e-3, damping=20.0):
    """Configurations at the ends of the motion's steps, by MuJoCo's forward dynamics.

    Springs are the actuators, joints are damped about the commanded velocity, and gravity of the
    actuated links is compensated. Contacts are stiff. ``friction`` of each geometry, the larger one of
    two counts.
    """
    model, h = system.model, system.options.h
    files = systems.files()
    judge = mujoco.MjModel.from_xml_string(files[f"{system.name}.xml"].decode(), files)
    for body in range(judge.nbody):
        if judge.body(body).name.startswith(("link_", "arm_")):
            judge.body_gravcomp[body] = 1.0
    judge.dof_damping[model.actuated_v] = damping
    judge.geom_friction[:, 0] = friction
    judge.geom_solref[:] = 0.004, 1.0
    judge.opt.timestep, judge.opt.impratio = timestep, 100
    judge.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    judge.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(judge)
    mujoco.mj_setConst(judge, data)
    data.qpos[:], before = system.start
    lead = damping / model.parameters.actuator_stiffness / h
    result = []
    for u in system.commands:
        count = round(h / timestep)
        for i in range(1, count + 1):
            data.ctrl[:] = before + (u - before) * (i / count + lead)
            mujoco.mj_step(judge, data)
        before = u
        result.append(data.qpos.copy())
    return np.array(result)


def integrated(error, h):
    return np.linalg.norm(error, axis=1).sum() * h


@pytest.mark.parametrize(
    ("name", "angle_bound", "position_bound"),
    [("three_link_arm_2d", 0.15, 0.1), ("three_link_arm_3d", 0.4, 0.4)],
)
def test_three_link_arm_pushes_as_second_order_dynamics(name, angle_bound, position_bound):
    """The published bounds on errors integrated over the ten seconds, in rad s and m s."""
    system = systems.load(name)
    model, h = system.model, system.options.h
    # The harmonic means, 1/2 for box and ground, 2/3 for tip and box and for corners and ground, are the
    # maxima of these.
    friction = {"ground": 0.5, "box": 0.5}
    ours = np.array([step.q_next for step in replay(system)])
    judge = second_order(system, [friction.get(name, 2 / 3) for name in model.geom_names])
    error = np.array([model.difference(a, b) for a, b in zip(ours, judge, strict=True)])
    arm, box = error[:, model.actuated_v], error[:, model.unactuated_v]
    place, turn = (box[:, :2], box[:, 2:]) if box.shape[1] == 3 else (box[:, :3], box[:, 3:])
    for part, bound in ((arm, 0.1), (turn, angle_bound), (place, position_bound)):
        assert integrated(part, h) < bound
    pushed = model.difference(ours[-1], system.start.q)[model.unactuated_v]
    assert np.abs(pushed).max() > 0.1  # and the box did move


@pytest.mark.long
def test_stack_is_built_as_by_second_order_dynamics():
    """The published bounds on errors integrated over 20 s (rad s, m s), and 0.8 degrees."""
    system = systems.load("block_stacking")
    model, h = system.model, system.options.h
    ours = np.array([step.q_next for step in replay(system)])
    # No cube slides on the ground, so its friction does not matter.
    judge = second_order(system, [1.0] * len(model.geom_names))
    error = np.array([model.difference(a, b) for a, b in zip(ours, judge, strict=True)])
    assert integrated(error[:, :7], h) < 0.52
    for i in range(10):
        box = error[:, model.slice_v(f"box{i}")]
        bound = 0.2 if i == 0 else 0.05
        assert integrated(box[:, :3], h) < bound and integrated(box[:, 3:], h) < bound
    times = h * np.arange(1, 201)
    held = error[(times >= 2.5) & (times <= 6.0), model.slice_v("box0")][:, 3:]
    assert np.degrees(np.linalg.norm(held, axis=1)).max() < 0.8


def test_plate_is_pinched_at_the_wall_and_lifted():
    system = systems.load("plate_pickup")
    height = np.array([step.q_next[1] for step in replay(system)])
    times = np.arange(1, 61) * system.options.h
    assert height[np.abs(times - 2.0) < 1e-9] == pytest.approx(0.05, abs=1e-6)  # on the ground
    assert height[(times > 9.5) & (times < 10.3)].max() > 0.12
    assert height[-1] == pytest.approx(0.05, abs=1e-6)  # dropped again where the gripper leaves


def test_rope_gives_way_and_carrots_are_swept():
    system = systems.load("rope")
    model = system.model
    steps = replay(system)
    end = np.array([model.body_pose(step.q_next, "link_29")[0] for step in steps[::50]])
    assert end[0, 1] == pytest.approx(0.0, abs=1e-9) and end[:, 1].max() > 0.15
    assert max(penetration(model, step.q_next) for step in steps[::50]) < 1e-3

    system = systems.load("carrots")
    model = system.model
    steps = replay(system)
    assert all(penetration(model, step.q_next) < 1e-9 for step in steps)
    before, after = system.start.q[:200].reshape(-1, 2), steps[-1].q_next[:200].reshape(-1, 2)
    path = (before[:, 0] > 0.05) & (before[:, 0] < 0.3) & (np.abs(before[:, 1] - 0.25) < 0.03)
    assert path.sum() >= 3 and np.all(after[path, 0] > 0.3)  # in the gripper's way


def test_torsional_friction_holds_the_grasped_cloud():
    """Lifted at one end it keeps its attitude; without torsional friction it turns until its centre of
    mass hangs below the fingers."""
    turns = {}
    for name in ("cloud_grasp", "cloud_grasp_without_torsion"):
        system = systems.load(name)
        model = system.model
        cloud = model.description.geoms[1].cloud
        assert cloud is not None and (len(cloud), cloud.radius, cloud.contacts) == (992, 0.0, 5)
        steps = replay(system)
        assert max(len(step.contacts) for step in steps) == 15
        held, end = steps[60].q_next, steps[-1].q_next
        grasp, lift = model.body_pose(end, "gripper")[0], model.slice_q("lift")
        assert end[lift] - held[lift] > 0.08
        com = model.parameters.body_com[model.body_index("rabbit")]
        position, rotation = model.body_pose(end, "rabbit")
        hanging = position + rotation @ com - grasp
        turns[name] = math.degrees(
            np.linalg.norm(model.difference(end, held)[model.slice_v("rabbit")][3:])
        )
        assert penetration(model, end) < 1e-3
        if "without" in name:
            assert abs(hanging[0]) < 0.25 * abs(hanging[2])
        else:
            np.testing.assert_allclose(end[2] - held[2], end[lift] - held[lift], atol=2e-3)
    assert turns["cloud_grasp"] < 1.0 and turns["cloud_grasp_without_torsion"] > 30.0


def test_box_topples_over_the_edge():
    system = systems.load("box_pivoting")
    angle = np.array([step.q_next[2] for step in replay(system)])
    assert angle[0] == pytest.approx(0.0, abs=1e-3) and angle[-1] < -1.3


def test_hand_closes_on_the_ball_and_keeps_it():
    system = systems.load("allegro_sphere")
    q = replay(system)[-1].q_next
    assert np.linalg.norm(q[16:19] - [-0.08, 0.0, 0.071]) < 0.02
    assert penetration(system.model, q) < 1e-4


def test_stacking_motion_passes_its_way_points():
    from qdsim.systems.stacking import POINT, WAY_POINTS

    system = systems.load("block_stacking")
    model, commands = system.model, system.commands
    assert commands.shape == (200, 9)
    end = 0.0
    q = np.array(system.start.q)
    for here, there in itertools.pairwise(WAY_POINTS):
        end += here[3]
        q[:9] = commands[round(end / system.options.h) - 1]
        position, rotation = model.body_pose(q, "arm_link_7")
        np.testing.assert_allclose(position + rotation @ POINT, there[0], atol=1e-9)
        np.testing.assert_allclose(rotation[:, 2], [0, 0, -1], atol=1e-9)
        across = [-math.cos(there[1]), -math.sin(there[1]), 0]
        np.testing.assert_allclose(rotation[:, 0], across, atol=1e-9)
        np.testing.assert_allclose(q[7:9], [-there[2], there[2]], atol=1e-12)
    assert np.abs(np.diff(commands[:, :7], axis=0)).max() < 0.06
    np.testing.assert_allclose(commands[0], system.start.u, atol=2e-3)


def test_gripper_puts_the_small_cube_onto_the_stack():
    system = systems.load("block_stacking")
    model = system.model
    steps = replay(system)
    q = steps[-1].q_next
    small, rotation = model.body_pose(q, "box0")
    # Cubes rest on faces that are 0.5 mm inside the nominal ones.
    np.testing.assert_allclose(small, [0.69, 0, 0.26 - 3 * 0.0005], atol=3e-3)
    assert np.degrees(np.arccos(rotation[2, 2])) < 1.0
    turned = math.degrees(math.atan2(rotation[1, 0], rotation[0, 0]))
    assert turned == pytest.approx(90.0, abs=1.0)
    start = system.start.q
    for i in range(1, 10):
        before = model.body_pose(start, f"box{i}")[0]
        np.testing.assert_allclose(model.body_pose(q, f"box{i}")[0], before, atol=3e-3)
    # Grasped with a command of 0.02: 1000 N/m times the 5 mm to the cube's faces is shared by pads.
    held = [step for i, step in enumerate(steps) if 25 < i < 55]
    fingers = {model.body_index(f"arm_hand_{side}_finger") for side in ("left", "right")}
    cube = model.body_index("box0")
    for step in held:
        contacts = step.contacts
        grip = sum(
            c["force"][0]
            for c in contacts
            if {int(c["body_a"]), int(c["body_b"])} & fingers and cube in (c["body_a"], c["body_b"])
        )
        assert grip == pytest.approx(2 * 7.0, abs=1.5)
    assert np.mean([len(step.contacts) for step in steps]) > 56


# -------------------------------------------------------------------- derivatives


def column(model, q, u, options, dq, du, width):
    """Fourth-order central difference of the step along (dq, du)."""
    center = qdsim.step(model, q, u, options).q_next
    result = np.zeros(model.nv)
    for scale, weight in ((1.0, 8.0 / 12.0), (2.0, -1.0 / 12.0)):
        for sign in (1.0, -1.0):
            s = sign * scale * width
            moved = qdsim.step(model, model.integrate(q, s * dq), u + s * du, options).q_next
            result += sign * weight * model.difference(moved, center)
    return result / width


@pytest.mark.short_cases(20)
@pytest.mark.parametrize("kappa", [None, 100.0])
def test_derivatives_are_central_differences(system, kappa):
    """``A dq + B du`` in random directions, near the start and along the motion.

    To 1e-6 of the largest entry where the step is differentiable; many of these lie on kinks that
    are 1e-6 away (corner spheres of 1e-7 m), so the stencils are narrow. Boxes that rest on more
    corners than they need are degenerate in exact steps: then the derivative along the smoothed path
    is an estimate, and says so.
    """
    model, options = system.model, system.options.replace(kappa=kappa)
    rng = np.random.default_rng(5)
    start, command = model.keyframes[system.commands_from]
    for state in range(3):
        q = model.integrate(start, 1e-3 * rng.uniform(-1, 1, model.nv))
        u = command + 0.03 * rng.uniform(-1, 1, model.nu)
        if state and len(system.commands) > 5:
            q = start
            for u in system.commands[: 2 + 2 * state]:
                q = qdsim.step(model, q, u, system.options).q_next
            q = model.integrate(q, 1e-4 * rng.uniform(-1, 1, model.nv))
            u = u + 0.01 * rng.uniform(-1, 1, model.nu)
        linear = qdsim.linearize(model, q, u, options)
        scale = max(1.0, np.abs(linear.A).max(), np.abs(linear.B).max(initial=0.0))
        exact = linear.step.info.derivative_exact
        assert exact or kappa is None
        for _ in range(2):
            dq, du = rng.normal(size=model.nv), rng.normal(size=model.nu)
            ours = linear.A @ dq + linear.B @ du
            # A kink or strong curvature inside the stencil spoils wide ones, rounding narrow ones.
            error = INF
            for width in (1e-5, 1e-6, 1e-7, 2e-8):
                if error > 1e-6:
                    there = column(model, q, u, options, dq, du, width)
                    error = min(error, np.abs(ours - there).max() / scale)
            assert error <= (1e-6 if exact else 0.05), (state, exact, error)


def test_a_book_on_twenty_spheres_is_differentiable_everywhere():
    """A body on many more supports than it needs, and commands at random: the states of the polish
    once belonged to another iterate than its multipliers, which gave infinite stiffnesses."""
    system = systems.load("allegro_book")
    q, u = system.start
    for seed in range(100):
        change = 0.02 * np.random.default_rng(seed).normal(size=u.size)
        linear = qdsim.linearize(system.model, q, u + change, system.options)
        assert np.isfinite(linear.A).all() and np.abs(linear.A).max() < 10.0
