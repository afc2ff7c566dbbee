"""Sensors against statics: equilibrium, Newton's third law, nothing lost on the way to taxels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim.sensors import (
    ContactSensor,
    ForceSensor,
    Site,
    TaxelSensor,
    TorqueSensor,
    TouchSensor,
    taxel_grid,
)

WEIGHT = 2.0 * 9.81


def pressed_plate(shape: str = "box", size: Any = (0.1, 0.08, 0.05)) -> qdsim.Model:
    """A body on a plate that a slide holds up; its weight is `WEIGHT`."""
    scene = qdsim.SceneBuilder()
    scene.body("plate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.joint("plate", "slide", name="lift", axis=(0, 0, 1))
    scene.geom("plate", "box", (0.3, 0.3, 0.02), name="top")
    scene.actuator("lift", 5000.0)
    scene.body("load", pos=(0.02, 0.01, 0.02 + size[-1 if shape == "box" else 0]), mass=2.0)
    scene.joint("load", "free")
    scene.geom("load", shape, size, name="loaded")
    for kind, name in ((TouchSensor, "touch"), (ForceSensor, "force"), (TorqueSensor, "torque")):
        scene.sensor(kind(name, Site("plate", shape="box", size=(0.3, 0.3, 0.05))))
    scene.sensor(
        ContactSensor("net", ("body", "plate"), ("body", "load"), None, ("force",), "netforce")
    )
    return qdsim.build(scene.build())


def resting(model: qdsim.Model) -> tuple[np.ndarray, Any]:
    """The step that a load at rest takes, and where it begins."""
    options, q = qdsim.Options(h=0.05), np.array(model.default_q)
    u = np.array([(WEIGHT) / 5000.0])
    for _ in range(20):
        q = qdsim.step(model, q, u, options).q_next
    return q, qdsim.step(model, q, u, options)


def test_weight_of_a_load_at_rest() -> None:
    model = pressed_plate()
    q, step = resting(model)
    values = qdsim.read_sensors(model, q, step)
    assert values["touch"] == pytest.approx(WEIGHT, rel=1e-6)
    np.testing.assert_allclose(values["net"], [0.0, 0.0, WEIGHT], atol=1e-5)
    # the joint carries the plate, too
    np.testing.assert_allclose(values["force"], [0.0, 0.0, WEIGHT + 9.81], atol=1e-5)
    np.testing.assert_allclose(values["torque"], [0.01 * WEIGHT, -0.02 * WEIGHT, 0.0], atol=1e-5)


def test_contact_forces_are_equal_and_opposite() -> None:
    model = pressed_plate()
    q, step = resting(model)
    forces = qdsim.contact_forces(model, q, step)
    assert forces.shape == (model.body_count, 6)
    load, plate = model.body_index("load"), model.body_index("plate")
    np.testing.assert_allclose(forces[load], [0, 0, WEIGHT, 0, 0, 0], atol=1e-5)
    np.testing.assert_allclose(forces[plate, :3], [0, 0, -WEIGHT], atol=1e-5)
    arm = q[1:4] - [0.0, 0.0, q[0]]
    np.testing.assert_allclose(forces[plate, 3:], np.cross(arm, [0, 0, -WEIGHT]), atol=1e-5)
    by_geom = qdsim.contact_forces(model, q, step, by="geom")
    np.testing.assert_allclose(by_geom[model.geom_index("loaded")], forces[load], atol=1e-12)
    # as an applied wrench, it does what the contacts do
    alone = qdsim.step(
        model,
        q + [0, 0, 0, 10.0, 0, 0, 0, 0],
        [WEIGHT / 5000.0],
        qdsim.Options(h=0.05, margin=0.0),
        wrench=np.where(np.arange(model.body_count)[:, None] == load, forces, 0.0),
    )
    np.testing.assert_allclose(alone.delta[1:], step.delta[1:], atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "size"),
    [("box", (0.1, 0.08, 0.05)), ("sphere", (0.05,)), ("ellipsoid", (0.05, 0.06, 0.05))],
)
def test_taxels_lose_no_force(shape: str, size: tuple[float, ...]) -> None:
    model = pressed_plate(shape, size)
    q, step = resting(model)
    under = taxel_grid(model, "loaded", 8, 6, side="-z", name="under")
    over = taxel_grid(model, "top", 12, 12, reach=0.05)
    values = qdsim.read_sensors(model, q, step, sensors=[under, over])
    for sensor in (under, over):
        pressure = values[sensor.name]
        axes = np.stack((-sensor.normals, *sensor.tangents), axis=1)
        force = np.einsum("nij,ni,n->j", axes, pressure, sensor.area)
        sign = 1.0 if sensor is under else -1.0
        np.testing.assert_allclose(force, [0.0, 0.0, sign * WEIGHT], atol=1e-4)
        assert np.all(pressure[:, 0] >= -1e-6)
    # the middle of the pressure is under the load
    weight = values["top"][:, 0] * over.area
    np.testing.assert_allclose(weight @ over.points[:, :2] / weight.sum(), [0.02, 0.01], atol=0.01)


@pytest.mark.parametrize("side", ["+x", "-y", "-z"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("sphere", (0.05,)),
        ("ellipsoid", (0.05, 0.03, 0.04)),
        ("capsule", (0.03, 0.05)),
        ("cylinder", (0.04, 0.05)),
        ("box", (0.05, 0.03, 0.04)),
        ("mesh", ()),
    ],
)
def test_grids_lie_on_surfaces(shape: str, size: tuple[float, ...], side: str) -> None:
    """Centres are at distance zero, normals look out, and the areas add up to the surface under the rectangle."""
    scene = qdsim.SceneBuilder()
    scene.body("pad", mass=1.0, inertia=(0.1, 0.1, 0.1))
    corners = np.array(np.meshgrid(*[[-0.05, 0.05]] * 3)).reshape(3, -1).T
    extra: dict[str, Any] = {"mesh": scene.mesh("m", corners)} if shape == "mesh" else {}
    scene.geom("pad", shape, size, name="pad", **extra)
    scene.body("probe", mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.joint("probe", "free")
    scene.geom("probe", "sphere", 0.001, name="probe")
    model = qdsim.build(scene.build())
    grid = taxel_grid(model, "pad", 3, 4, side=side)
    assert len(grid.points) == 12
    axis = "xyz".index(side[1])
    assert np.all(grid.normals[:, axis] * (1.0 if side[0] == "+" else -1.0) > 0.0)
    q = np.zeros((12, 7))
    q[:, :3], q[:, 3] = grid.points + 0.003 * grid.normals, 1.0
    np.testing.assert_allclose(qdsim.pair_distances(model, q)[:, 0], 0.002, atol=1e-9)
    first, second = grid.tangents
    frame = np.stack((grid.normals, first, second), axis=1)
    np.testing.assert_allclose(
        frame @ np.swapaxes(frame, 1, 2), np.tile(np.eye(3), (12, 1, 1)), atol=1e-12
    )
    assert np.all(np.linalg.det(frame) > 0.0)


def test_taxels_of_a_soft_pad() -> None:
    """Of pressure fields each polygon of the patch presses where it is: the pressure is spread, and adds up."""
    scene = qdsim.SceneBuilder()
    scene.geom("world", "box", (0.2, 0.2, 0.02), name="pad", pos=(0, 0, -0.02))
    scene.body("load", pos=(0, 0, 0.03), mass=2.0)
    scene.joint("load", "free")
    scene.geom("load", "sphere", 0.03, name="ball", soft=qdsim.Softness(1e5, 0.01))
    model = qdsim.build(scene.build())
    options, q = qdsim.Options(h=0.02), np.array(model.default_q)
    for _ in range(40):
        q = qdsim.step(model, q, [], options).q_next
    step = qdsim.step(model, q, [], options)
    grid = taxel_grid(model, "pad", 40, 40, size=(0.06, 0.06))
    pressure = qdsim.read_sensors(model, q, step, sensors=[grid])["pad"][:, 0]
    assert pressure @ grid.area == pytest.approx(WEIGHT, rel=1e-5)
    assert np.count_nonzero(pressure) > 9


def test_batches_hold_the_values_of_single_steps() -> None:
    model = pressed_plate()
    rng = np.random.default_rng(0)
    q = np.array(model.default_q) + rng.normal(size=(3, 2, model.nq)) * 0.002
    q[..., 4:8] = [1.0, 0.0, 0.0, 0.0]
    u = rng.normal(size=(3, 2, 1)) * 0.01
    sensors = [*model.description.sensors, taxel_grid(model, "top", 4, 5, name="taxels")]
    steps = qdsim.step_batch(model, q, u)
    values = qdsim.read_sensors(model, q, steps, sensors=sensors)
    forces = qdsim.contact_forces(model, q, steps)
    v = rng.normal(size=(3, 2, model.nv)) * 0.1
    moved = qdsim.step_dynamic_batch(model, q, v, u)
    moving = qdsim.read_sensors(model, q, moved, v=v, sensors=sensors)
    for i in np.ndindex(3, 2):
        step = qdsim.step(model, q[i], u[i])
        for name, value in qdsim.read_sensors(model, q[i], step, sensors=sensors).items():
            np.testing.assert_allclose(values[name][i], value, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(forces[i], qdsim.contact_forces(model, q[i], step), atol=1e-9)
        dynamic = qdsim.step_dynamic(model, q[i], v[i], u[i])
        for name, value in qdsim.read_sensors(
            model, q[i], dynamic, v=v[i], sensors=sensors
        ).items():
            np.testing.assert_allclose(moving[name][i], value, rtol=1e-12, atol=1e-9)


def test_what_cannot_be_read() -> None:
    model = pressed_plate()
    q, step = resting(model)
    u = [0.0]
    with pytest.raises(TypeError, match="result: expected a step"):
        qdsim.read_sensors(model, q, q)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="result: the batch was made with contacts=False"):
        qdsim.contact_forces(model, q, qdsim.step_batch(model, q, u, contacts=False))
    with pytest.raises(ValueError, match="q: expected shape"):
        qdsim.read_sensors(model, q[:-1], step)
    with pytest.raises(ValueError, match="v: force and torque sensors"):
        qdsim.read_sensors(model, q, qdsim.step_dynamic(model, q, np.zeros(model.nv), u))
    with pytest.raises(ValueError, match="no geom is named 'tip'"):
        qdsim.read_sensors(
            model, q, step, sensors=[TaxelSensor("x", "tip", [[0, 0, 0]], [[0, 0, 1]], 1.0, 1.0)]
        )
    with pytest.raises(ValueError, match="two are named 'touch'"):
        qdsim.read_sensors(model, q, step, sensors=[model.description.sensors[0]] * 2)
    with pytest.raises(ValueError, match="by: expected"):
        qdsim.contact_forces(model, q, step, by="site")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"taxels, .* are beside 'loaded'"):
        taxel_grid(model, "loaded", 3, 3, size=(1.0, 1.0))
    with pytest.raises(ValueError, match="side: expected"):
        taxel_grid(model, "loaded", 3, 3, side="up")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Site("b", shape="plane"), "shape must be one of"),
        (lambda: Site("b", shape="box", size=(1.0,)), "size must hold 3 numbers"),
        (lambda: Site("b", size=(0.0,)), "size must be positive"),
        (lambda: ContactSensor("c", data=("force", "found")), "in this order"),
        (lambda: ContactSensor("c", reduce="least"), "reduce must be one of"),
        (lambda: ContactSensor("c", ("site", "x")), "first must be None or one of"),
        (lambda: ContactSensor("c", num=0), "num must be at least 1"),
        (
            lambda: TaxelSensor("t", "g", [[0, 0, 0]], [[0, 0, 0]], 1.0, 1.0),
            "normals must not be zero",
        ),
        (
            lambda: TaxelSensor("t", "g", [[0, 0, 0]], [[0, 0, 1]], -1.0, 1.0),
            "area must be positive",
        ),
        (
            lambda: TaxelSensor("t", "g", [[0, 0, 0]], [[0, 0, 1]], 1.0, 0.0),
            "reach must be positive",
        ),
    ],
)
def test_elements_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
