"""What planners ask of a model agrees with its kinematics and is computed once."""

import gc
import weakref

import numpy as np
import pytest

import qdsim
from qdsim.description import SceneBuilder
from qdsim.planning import ObjectSpace
from qdsim.planning.task import drives, robot
from qdsim.planning.task.least_squares import room


def scene(rng, gravity=(0.0, 0.0, -9.81)):
    """Some arms of random joints, some of them actuated, and a ball; masses, places and limits at random."""
    builder = SceneBuilder(gravity=tuple(gravity))
    for arm in range(int(rng.integers(1, 4))):
        parent = "world"
        for link in range(int(rng.integers(1, 4))):
            name = f"link{arm}{link}"
            offset = rng.uniform(-0.3, 0.3, 3)
            mass = float(rng.uniform(0.1, 2.0))
            builder.body(name, parent, pos=offset, mass=mass, inertia=np.full(3, 1e-2))
            low = float(rng.uniform(-2.0, 0.0))
            limits = (low, low + float(rng.uniform(0.5, 3.0))) if rng.random() < 0.7 else None
            kind = "hinge" if rng.random() < 0.6 else "slide"
            axis = rng.standard_normal(3)
            builder.joint(name, kind, axis=axis / np.linalg.norm(axis), name=name, range=limits)
            builder.geom(name, "sphere", size=(float(rng.uniform(0.01, 0.05)),))
            if rng.random() < 0.7 or (arm == 0 and link == 0):
                builder.actuator(name, stiffness=float(rng.uniform(10.0, 100.0)))
            parent = name
    builder.body(
        "ball", pos=(0.0, 0.0, 3.0), mass=float(rng.uniform(0.1, 2.0)), inertia=np.full(3, 1e-3)
    )
    builder.joint("ball", "free")
    builder.geom("ball", "sphere", size=(0.05,))
    return qdsim.build(builder.build())


@pytest.mark.parametrize("seed", range(8))
def test_bodies_that_joints_move_are_those_of_the_jacobians(seed):
    model = scene(np.random.default_rng(seed))
    q = model.integrate(
        model.default_q, 0.1 * np.random.default_rng(seed).standard_normal(model.nv)
    )
    moved = np.array(
        [
            np.any(model.jacobian(q, name, np.full(3, 0.1))[:, model.actuated_v] != 0.0, axis=0)
            for name in model.body_names
        ]
    )
    np.testing.assert_array_equal(robot.moved_bodies(model), moved.T)
    np.testing.assert_array_equal(robot.robot_bodies(model), moved.any(axis=1))


@pytest.mark.parametrize("seed", range(8))
def test_limits_are_those_of_the_actuators_joints(seed):
    model = scene(np.random.default_rng(seed))
    joints = {joint.name: joint for joint in model.description.joints}
    lower, upper = robot.joint_limits(model)
    for k, actuator in enumerate(model.description.actuators):
        limits = joints[actuator.joint].range or (-np.inf, np.inf)
        assert (lower[k], upper[k]) == limits
        assert drives.robot_joints(model)[k].name == actuator.joint


@pytest.mark.parametrize("seed", range(8))
def test_room_is_the_way_to_the_bounds(seed):
    rng = np.random.default_rng(seed)
    x, a, b = rng.standard_normal((3, 50))
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    back, on = room(x, lower, upper)
    inside = (x >= lower) & (x <= upper)
    assert np.all((back <= 0.0) & (on >= 0.0))
    np.testing.assert_allclose((x + back)[inside], lower[inside], atol=1e-12)
    np.testing.assert_allclose((x + on)[inside], upper[inside], atol=1e-12)
    assert np.all(back[x < lower] == 0.0) and np.all(on[x > upper] == 0.0)


@pytest.mark.parametrize("pull", [(0.0, 0.0, -9.81), (0.0, 1.5, 0.0), (0.0, 0.0, 0.0)])
def test_an_object_weighs_mass_times_gravity(pull):
    model = scene(np.random.default_rng(1), pull)
    space = ObjectSpace(model, "ball")
    mass = model.description.bodies[model.body_index("ball")].mass
    expected = mass * (np.linalg.norm(pull) or robot.GRAVITY)
    assert robot.object_weight(model, space, 0.1) == pytest.approx(expected)
    assert robot.object_size(model, space) == pytest.approx(np.sqrt(1e-3 / mass))


@pytest.mark.long
def test_what_depends_on_the_model_alone_is_computed_once_and_kept_as_long_as_the_model():
    calls = []

    @drives.once
    def count(model):
        calls.append(model.nq)
        return np.zeros(model.nu), np.ones(model.nq)

    model = scene(np.random.default_rng(0))
    first = count(model)
    assert count(model) is first and len(calls) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[1][0] = 2.0
    count(scene(np.random.default_rng(0)))
    assert len(calls) == 2  # another model, equal or not
    for question in (
        robot.moved_bodies,
        robot.joint_limits,
        robot.mass_metric,
        robot.bounding_radii,
    ):
        question(model)
    gone = weakref.ref(model)
    calls.clear()
    del model
    gc.collect()
    assert gone() is None
