"""The published systems: numbers of their files, published fixtures, closed forms."""

import math

import numpy as np
import pytest

import qdsim
from qdsim import systems


@pytest.fixture(scope="module")
def hand():
    return systems.load("planar_hand")


@pytest.fixture(scope="module")
def pushing():
    return systems.load("planar_pushing")


def distances(model, q):
    return np.sort(model.collide(np.array(q, dtype=float), math.inf)["dist"])


# -------------------------------------------------------------------- planar hand


def test_hand_has_the_published_numbers(hand):
    model, parameters = hand.model, hand.model.parameters
    assert (model.nq, model.nv, model.nu) == (7, 7, 4)
    assert model.pair_count == 51
    assert model.planar_normal is not None
    np.testing.assert_allclose(np.abs(model.planar_normal), [1, 0, 0])
    assert np.all(parameters.pair_friction[:, :2] == 0.8)
    assert np.all(parameters.gravity == 0.0)
    assert parameters.actuator_stiffness.tolist() == [50, 25, 50, 25]
    limits = [[-1.5708, 0], [-2.4, 0], [0, 1.5708], [0, 2.4]]
    np.testing.assert_array_equal(model.joint_range[3:], limits)
    assert np.all(np.isinf(model.joint_range[:3]))
    disc = model.body_index("disc")
    assert parameters.body_mass[disc] == 1.0
    np.testing.assert_allclose(parameters.body_inertia[disc], 0.025 * np.eye(3), atol=1e-15)
    for body in model.body_names[1:]:
        if body != "disc":
            assert parameters.body_mass[model.body_index(body)] == 1.0
            inertia = parameters.body_inertia[model.body_index(body)]
            np.testing.assert_allclose(inertia, 0.0033 * np.eye(3), atol=1e-15)
    assert sorted(parameters.geom_size[:, 0]) == [0.05] * 12 + [0.25]


def test_hand_orders_its_configuration_object_first(hand):
    model = hand.model
    assert model.unactuated_q.tolist() == [0, 1, 2]
    assert model.actuated_q.tolist() == [3, 4, 5, 6]
    q = np.array([0.1, 0.4, 0.3, 0, 0, 0, 0])
    position, rotation = model.body_pose(q, "disc")
    np.testing.assert_allclose(position, [0, 0.1, 0.4], atol=1e-15)
    np.testing.assert_allclose(rotation @ [0, 1, 0], [0, math.cos(0.3), math.sin(0.3)], atol=1e-15)
    # Straight arms along -y and +y: fingertips half a metre from their bases.
    tip_left = model.body_pose(q, "left_link_2")[0]
    tip_right = model.body_pose(q, "right_link_2")[0]
    np.testing.assert_allclose([tip_left[1], tip_right[1]], [-0.4, 0.4], atol=1e-15)


def test_hand_fingers_can_touch_each_other_but_not_their_neighbours(hand):
    model = hand.model
    names = model.body_names
    pairs = {
        frozenset((names[model.geom_body[a]], names[model.geom_body[b]]))
        for a, b in model.pair_geom
    }
    assert frozenset(("left_link_2", "right_link_2")) in pairs
    assert frozenset(("left_link_0", "left_link_2")) in pairs
    for side in ("left", "right"):
        assert frozenset((f"{side}_link_0", f"{side}_link_1")) not in pairs
        assert frozenset((f"{side}_link_1", f"{side}_link_2")) not in pairs
    assert frozenset(("left_link_0", "right_link_0")) not in pairs


@pytest.mark.parametrize(
    ("disc", "arm", "published"),
    [
        ((0, 0.314, 0), (0.775, 0.785), [-0.00177, -0.00119]),
        ((0, 0.316, 0), (0.775, 0.785), [-0.00013, -0.00002]),
        (
            (0, 0.35, 0),
            (math.pi / 4, math.pi / 4),
            [0.01442, 0.01826, 0.01904, 0.02733, 0.04122],
        ),
        ((0, 0.5, 0), (math.pi / 4, math.pi / 4), [0.024264]),
        ((0, 0.35, 0), (0.880505, 0.605922), [3.7e-5]),
    ],
)
def test_hand_has_the_published_distances(hand, disc, arm, published):
    q = [*disc, -arm[0], -arm[1], *arm]
    # Every distance appears once for each arm.
    smallest = distances(hand.model, q)[: 2 * len(published)].reshape(-1, 2)
    digits = 7 if published == [3.7e-5] else 6 if published == [0.024264] else 5
    for pair, value in zip(smallest, published, strict=True):
        np.testing.assert_allclose(
            pair, value, atol=0.51 * 10.0**-digits * (10 if digits == 7 else 1)
        )


def test_hand_that_touches_nothing_goes_where_it_is_told(hand):
    q = np.array([0, 0.5, 0, -np.pi / 4, -np.pi / 4, np.pi / 4, np.pi / 4])
    result = qdsim.step(hand.model, q, q[3:], hand.options)
    np.testing.assert_allclose(result.q_next, q, atol=1e-9)
    u = q[3:] + [0.02, 0.01, -0.02, 0.0]  # away from the disc
    result = qdsim.step(hand.model, q, u, hand.options)
    np.testing.assert_allclose(result.q_next, [0, 0.5, 0, *u], atol=1e-9)


def contact_rows(model, q, contacts):
    """Rows ``J_n + mu J_t`` and ``J_n - mu J_t`` of every contact ``(nc, 2, nv)``: the planar law."""
    rows = []
    for c in contacts:
        jacobians = []
        for body in (c["body_a"], c["body_b"]):
            position, rotation = model.body_pose(q, int(body))
            jacobians.append(model.jacobian(q, int(body), rotation.T @ (c["pos"] - position))[:3])
        relative = c["frame"] @ (jacobians[1] - jacobians[0])
        mu = c["friction"][0]
        rows.append([relative[0] + mu * relative[1], relative[0] - mu * relative[1]])
    return np.array(rows)


def test_hand_derivative_is_the_closed_form_of_its_active_rows(hand):
    """CQDC eq. 49 with the sign of B_u put right, from active rows that carry more than 1 mN."""
    model, options = hand.model, hand.options
    q = np.array(hand.tasks["half_turn"].start)
    rng = np.random.default_rng(3)
    checked = 0
    for _ in range(30):
        u = q[3:] + rng.uniform(-0.05, 0.15, 4) * [1, 1, -1, -1]
        result = qdsim.linearize(model, q, u, options)
        contacts = result.step.contacts
        normal, tangential = contacts["force"][:, 0], contacts["force"][:, 1]
        mu = contacts["friction"][:, 0]
        beta = 0.5 * np.stack([normal + tangential / mu, normal - tangential / mu], axis=1)
        beta = beta.reshape(-1)
        if np.any((beta > 1e-7) & (beta < 1e-3)) or np.any(np.abs(result.step.limit_force) > 1e-7):
            continue
        J = contact_rows(model, q, contacts).reshape(-1, model.nv)[beta > 1e-3]
        stiffness = np.diag(model.parameters.actuator_stiffness)
        mass = model.mass_matrix(q)[:3, :3] / options.h**2
        P = np.linalg.inv(
            J[:, :3] @ np.linalg.solve(mass, J[:, :3].T)
            + J[:, 3:] @ np.linalg.solve(stiffness, J[:, 3:].T)
        )
        B = np.zeros((7, 4))
        B[3:] = np.eye(4) - np.linalg.solve(stiffness, J[:, 3:].T @ P @ J[:, 3:])
        B[:3] = -np.linalg.solve(mass, J[:, :3].T @ P @ J[:, 3:])
        np.testing.assert_allclose(result.B, B, atol=1e-7)
        checked += len(J) > 0
    assert checked >= 10


# -------------------------------------------------------------------- planar pushing


def test_pushing_has_the_published_numbers(pushing):
    model, parameters = pushing.model, pushing.model.parameters
    assert (model.nq, model.nu, model.pair_count) == (5, 2, 9)
    assert parameters.actuator_stiffness.tolist() == [100, 100]
    box, pusher = model.body_index("box"), model.body_index("pusher")
    assert parameters.body_mass[box] == 5.0
    np.testing.assert_allclose(parameters.body_inertia[box], 0.166667 * np.eye(3), atol=1e-15)
    assert parameters.body_mass[pusher] == 1.0
    friction = parameters.pair_friction[:, 0]
    row = model.pair_index("box", "pusher")
    assert friction[row] == pytest.approx(2 * 0.5 * 1.0 / 1.5, abs=1e-15)
    assert np.all(np.delete(friction, row) == 1.0)


def test_pushing_starts_where_pusher_and_nominal_box_touch(pushing):
    # The box is half a millimetre smaller than nominal on every side; its corner spheres lie off
    # the pusher's plane.
    q = np.array(pushing.model.keyframes["start"].q)
    assert distances(pushing.model, q)[0] == pytest.approx(0.0005, abs=1e-12)
    off_corner = np.array([0, 0.5, 0, 0.5 + 0.1, -0.1])
    expected = math.hypot(0.1005, 0.1005) - 0.1
    assert distances(pushing.model, off_corner)[0] == pytest.approx(expected, abs=1e-12)
    spheres = pushing.model.collide(q, math.inf)
    expected = math.hypot(0.5, 0.5, 0.1) - 0.1 - 1e-7
    assert spheres["dist"][spheres["geom_a"] > 0].min() == pytest.approx(expected, abs=1e-12)


def test_pushing_through_the_centre_moves_the_box_straight(pushing):
    """Spring, contact and inertia in a row: k (u - x) = f = (m / h^2) s, with x = gap + s."""
    model, options = pushing.model, pushing.options
    q = np.array(model.keyframes["start"].q)
    push = 0.05
    result = qdsim.step(model, q, q[3:] + [0, push], options)
    k, inertia, gap = 100.0, 5.0 / options.h**2, 0.0005
    shift = k * (push - gap) / (k + inertia)
    np.testing.assert_allclose(result.delta, [0, shift, 0, 0, gap + shift], atol=1e-8)
    force = max(result.contacts["force"][:, 0])
    assert force == pytest.approx(inertia * shift, rel=1e-6)


# -------------------------------------------------------------------- loading


@pytest.mark.parametrize("name", ["planar_hand", "planar_pushing"])
def test_systems_describe_themselves(name):
    system = systems.load(name)
    assert name in repr(system)
    assert system.options.rays == 2 and system.options.friction == "pyramid"
    for task in system.tasks.values():
        assert task.model is system.model
        assert not task.reached(task.start)
        assert task.reached(task.goal)
        start = system.model.keyframes["start"]
        np.testing.assert_array_equal(task.start, start.q)
        np.testing.assert_array_equal(system.model.command_from(start.q), start.u)


def test_an_unknown_system_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        ValueError,
        match=r"no system 'spatial_hand'; near it: planar_hand, .*; there are planar_hand",
    ):
        systems.load("spatial_hand")
    assert systems.load("Planar-Hand").name == "planar_hand"
