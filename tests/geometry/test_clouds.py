"""Point clouds as a collision shape: against all points one by one, against MuJoCo's spheres, against
spheres of our own, and against differences of the step."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim import PointCloud, _core
from qdsim.description.clouds import sample_surface
from qdsim.formats import read_points

Array = npt.NDArray[np.float64]
OTHERS = {
    "plane": (),
    "sphere": (0.3,),
    "capsule": (0.2, 0.3),
    "box": (0.3, 0.2, 0.1),
    "cylinder": (0.25, 0.2),
    "ellipsoid": (0.4, 0.2, 0.3),
}
CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
CUBE_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
    + [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)


def quaternion(rng: np.random.Generator) -> Array:
    quat = rng.normal(size=4)
    return np.asarray(quat / np.linalg.norm(quat))


def scene(cloud: PointCloud, other: str = "plane", friction: float = 1.0) -> qdsim.SceneBuilder:
    """A free cloud beside a shape on the world."""
    builder = qdsim.SceneBuilder()
    builder.geom("world", other, OTHERS[other], name="other", friction=friction)  # type: ignore[arg-type]
    builder.body("object", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("object", "free")
    builder.geom("object", "cloud", cloud=cloud, name="cloud", friction=friction)
    return builder


def spheres(points: Array, radius: float, other: str = "plane") -> qdsim.Model:
    """The same with a sphere per point."""
    builder = qdsim.SceneBuilder()
    builder.geom("world", other, OTHERS[other], name="other")  # type: ignore[arg-type]
    builder.body("object", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("object", "free")
    for point in points:
        builder.geom("object", "sphere", radius, pos=point)
    return qdsim.build(builder.build())


# ------------------------------------------------------------------------------ nearest points


@pytest.mark.parametrize("other", OTHERS)
def test_contacts_are_the_nearest_points_by_mujocos_distances(other: str) -> None:
    rng = np.random.default_rng(1)
    points = 0.4 * rng.normal(size=(60, 3))
    radius = 0.01
    cloud = PointCloud(points, radius=radius, contacts=7)
    model = qdsim.build(scene(cloud, other).build())
    twin = mujoco.MjModel.from_xml_string(spheres(points, radius, other).description.to_mjcf())
    data = mujoco.MjData(twin)
    for _ in range(10):
        q = np.concatenate([2 + np.abs(rng.normal(size=3)), quaternion(rng)])
        data.qpos[:] = q
        mujoco.mj_kinematics(twin, data)
        distances = np.array(
            [mujoco.mj_geomDistance(twin, data, 0, 1 + i, 100.0, None) for i in range(60)]
        )
        found = model.collide(q, np.inf)
        assert len(found) == 7
        np.testing.assert_allclose(np.sort(found["dist"]), np.sort(distances)[:7], atol=1e-6)
        reach = float(np.sort(distances)[3])
        assert reach > 0
        assert len(model.collide(q, reach + 1e-5)) == 4


@pytest.mark.parametrize("count", [1, 2, 50, 1000, 100_000])
def test_k_nearest_of_any_number(count: int) -> None:
    rng = np.random.default_rng(count)
    points = rng.normal(size=(count, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    model = qdsim.build(scene(PointCloud(points)).build())
    for _ in range(3):
        q = np.concatenate([rng.normal(size=3), quaternion(rng)])
        heights = q[2] + points @ rotation(q[3:])[2]
        found = model.collide(q, np.inf)
        assert len(found) == min(count, 5)
        np.testing.assert_allclose(np.sort(found["dist"]), np.sort(heights)[:5], atol=1e-13)


def rotation(quat: Array) -> Array:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((1, 3)),
        np.full((40, 3), 0.3),
        np.outer(np.linspace(-1, 1, 40), [0.1, 0.2, 0.05]),
        np.c_[np.mgrid[0:9, 0:9].reshape(2, -1).T / 30.0, np.zeros(81)],
        [[1e-9, 0, 0], [0, 1e-9, 0], [0, 0, 0]],
        [[-1e6, 0, 0], [1e6, 0, 0]],
    ],
    ids=["one point", "all equal", "collinear", "flat", "tiny", "huge"],
)
def test_degenerate_clouds_step_and_differentiate(points: object) -> None:
    """Their lowest points fall onto a plane and stay on it, to what a turn lets others sink."""
    points = np.asarray(points, dtype=float)
    rng = np.random.default_rng(0)
    size = max(1.0, np.abs(points).max())
    builder = scene(PointCloud(points))
    builder.body("big", mass=1.0, inertia=(0.1 * size**2,) * 3)
    builder.joint("big", "free")
    builder.geom("big", "cloud", cloud=PointCloud(points))
    builder.exclude("big", "object")
    model = qdsim.build(builder.build())
    q = np.concatenate([np.zeros(3), quaternion(rng)])
    q[2] = 1e-3 - (points @ rotation(q[3:])[2]).min()
    q = np.tile(q, 2)
    for _ in range(5):
        lin = qdsim.linearize(model, q, [], qdsim.Options(h=0.01, margin=0.05))
        assert np.isfinite(lin.A).all() and 2 <= len(lin.step.contacts) <= 10
        q = lin.step.q_next
        lowest = q[9] + (points @ rotation(q[10:])[2]).min()
        assert -1e-3 < lowest < 1e-3


def test_a_cloud_stands_on_its_flat_side() -> None:
    """All points of a cube's face are equally near: those in contact are far apart from each other,
    always the same, and the cube stands still."""
    grid = np.mgrid[0:21, 0:21].reshape(2, -1).T / 20.0 - 0.5
    faces = [np.insert(grid, axis, side, axis=1) for axis in range(3) for side in (-0.5, 0.5)]
    points = np.concatenate(faces)
    model = qdsim.build(scene(PointCloud(points)).build())
    rng = np.random.default_rng(3)
    chosen = []
    for turn in rng.uniform(0, 2 * np.pi, 12):
        q = np.array([*rng.normal(size=2), 0.5, np.cos(turn / 2), 0, 0, np.sin(turn / 2)])
        step = qdsim.step(model, q, [], qdsim.Options())
        np.testing.assert_allclose(model.difference(step.q_next, q), np.zeros(6), atol=1e-12)
        position = step.contacts["pos"] - q[:3]
        chosen.append(position @ rotation(q[3:]))
    np.testing.assert_allclose(chosen, np.broadcast_to(chosen[0], np.shape(chosen)), atol=1e-9)
    assert (np.abs(np.abs(chosen[0][:, :2]) - 0.5) < 1e-9).all(axis=1).sum() >= 3  # corners


# ------------------------------------------------------------------------------ steps


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("radius", [0.0, 0.02])
def test_steps_and_derivatives_are_those_of_spheres(other: str, radius: float) -> None:
    """Where as many points as k are in range, a cloud is a body with a sphere per point."""
    rng = np.random.default_rng(5)
    points = 0.2 * rng.normal(size=(8, 3))
    cloud = qdsim.build(scene(PointCloud(points, radius=radius, contacts=8), other).build())
    twin = spheres(points, max(radius, 1e-12), other)
    options = qdsim.Options(h=0.05, margin=10.0)
    solved = 0
    for kappa in (None, 300.0):
        for _ in range(4):
            q = np.concatenate([[0.3, 0.2, 0.7] + 0.2 * rng.normal(size=3), quaternion(rng)])
            try:
                theirs = qdsim.linearize(twin, q, [], options.replace(kappa=kappa))
            except qdsim.SolverError:  # points on both sides of the other shape
                with pytest.raises(qdsim.SolverError):
                    qdsim.linearize(cloud, q, [], options.replace(kappa=kappa))
                continue
            ours = qdsim.linearize(cloud, q, [], options.replace(kappa=kappa))
            solved += 1
            np.testing.assert_allclose(ours.step.q_next, theirs.step.q_next, atol=1e-8)
            np.testing.assert_allclose(ours.A, theirs.A, atol=1e-5)
    assert solved >= 6


@pytest.mark.parametrize("other", OTHERS)
def test_derivatives_are_those_of_differences(other: str) -> None:
    rng = np.random.default_rng(7)
    points = 0.2 * rng.normal(size=(300, 3))
    model = qdsim.build(scene(PointCloud(points), other).build())
    options = qdsim.Options(h=0.05, margin=0.5, kappa=200.0)
    for height in (0.6, 0.8, 1.0):  # points on both sides of a small shape leave no motion
        q = np.concatenate([[0.35, 0.25, height], quaternion(rng)])
        try:
            lin = qdsim.linearize(model, q, [], options)
        except qdsim.SolverError:
            continue
        break
    assert len(lin.step.contacts) >= 1

    def moved(direction: int, length: float) -> Array:
        v = np.zeros(6)
        v[direction] = length
        q_next = qdsim.step(model, model.integrate(q, v), [], options).q_next
        return np.asarray(model.difference(q_next, lin.step.q_next))

    checked = 0
    for j in range(6):
        errors = []
        for e in (1e-4, 3e-5, 1e-5):
            near = (moved(j, e) - moved(j, -e)) / (2 * e)
            far = (moved(j, 2 * e) - moved(j, -2 * e)) / (4 * e)
            if np.abs(near - far).max() < 1e-2:  # else the nearest points are others on the way
                errors.append(np.abs(lin.A[:, j] - (4 * near - far) / 3).max())
        assert not errors or min(errors) < 1e-6 * np.abs(lin.A).max()
        checked += len(errors) > 0
    assert checked >= 4


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kappa", [None, 300.0])
def test_derivatives_by_sizes_of_points_without_radius(other: str, kappa: float | None) -> None:
    """Points and a plane have no length to measure by. From radius 0 upwards, against one-sided
    differences; at rest on a plane the cloud rises as its radius grows."""
    rng = np.random.default_rng(11)
    model = qdsim.build(scene(PointCloud(0.2 * rng.normal(size=(40, 3))), other).build())
    options = qdsim.Options(h=0.05, margin=0.5, kappa=kappa)
    for _ in range(4):
        q = np.concatenate([[0.3, 0.2, 0.8] + 0.1 * rng.normal(size=3), quaternion(rng)])
        for _ in range(30):  # down to the ground
            q = qdsim.step(model, q, [], options.replace(kappa=None)).q_next
        d = qdsim.differentiate(model, q, [], options)
        assert len(d.step.contacts) >= 1
        size = model.parameters.geom_size
        direction = rng.uniform(0.5, 1.0, size.shape) * np.where(size > 0.0, size, 0.0)
        direction[-1, 0] = 0.1
        assert size[-1, 0] == 0.0

        pushed = d.jvp({"geom_size": direction})
        assert np.isfinite(pushed).all()
        weights = rng.normal(size=model.nv)
        pulled = d.vjp(weights, ("geom_size",))["geom_size"]
        np.testing.assert_allclose(np.sum(pulled * direction), weights @ pushed, rtol=1e-7)
        lin = qdsim.linearize(model, q, [], options, wrt=("geom_size",))
        by = np.tensordot(lin.derivatives["geom_size"], direction, 2)
        np.testing.assert_allclose(by, pushed, rtol=1e-7, atol=1e-10)
        e = 1e-5
        near, far = (
            model.difference(
                qdsim.step(
                    model.with_parameters(geom_size=size + s * direction), q, [], options
                ).q_next,
                d.step.q_next,
            )
            for s in (e, 2.0 * e)
        )
        expected = (4.0 * near - far) / (2.0 * e)
        if d.step.info.derivative_exact and np.abs(far - 2.0 * near).max() < 1e-3 * e:
            np.testing.assert_allclose(pushed, expected, atol=2e-5 * max(1.0, abs(pushed).max()))


def test_points_inside_are_pushed_out() -> None:
    """A point below the surface of a box leaves by the nearest face in one step."""
    model = qdsim.build(scene(PointCloud([[0, 0, 0]]), "box", friction=0.0).build())
    q = np.array([0.02, 0.03, 0.07, 1, 0, 0, 0])
    step = qdsim.step(model, q, [], qdsim.Options(h=0.01))
    assert step.contacts["dist"][0] == pytest.approx(-0.03)
    assert step.q_next[2] == pytest.approx(0.1, abs=1e-9)


def test_two_clouds_touch_in_their_nearest_points() -> None:
    rng = np.random.default_rng(11)
    a, b = 0.3 * rng.normal(size=(200, 3)), 0.3 * rng.normal(size=(150, 3))
    builder = qdsim.SceneBuilder(gravity=(0, 0, 0))
    for name, points in (("a", a), ("b", b)):
        builder.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, "free")
        builder.geom(name, "cloud", cloud=PointCloud(points, radius=0.01))
    model = qdsim.build(builder.build())
    for _ in range(5):
        q = np.concatenate([-np.ones(3), quaternion(rng), rng.normal(size=3), quaternion(rng)])
        x = q[:3] + a @ rotation(q[3:7]).T
        y = q[7:10] + b @ rotation(q[10:]).T
        distances = np.linalg.norm(x[:, None] - y, axis=-1).ravel() - 0.02
        found = model.collide(q, np.inf)
        np.testing.assert_allclose(np.sort(found["dist"]), np.sort(distances)[:5], atol=1e-12)
    lin = qdsim.linearize(model, q, [], qdsim.Options(kappa=100.0, margin=np.inf))
    assert np.isfinite(lin.A).all() and len(lin.step.contacts) == 5


def test_two_clouds_without_radius_are_an_error() -> None:
    builder = qdsim.SceneBuilder()
    for name in "ab":
        builder.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, "free")
        builder.geom(name, "cloud", cloud=PointCloud([[0, 0, 0]]))
    with pytest.raises(ValueError, match=r"'a_geom0' and 'b_geom0'.*without radius never touch"):
        qdsim.build(builder.build())


# ------------------------------------------------------------------------------ models


def test_models_with_clouds_are_copied_and_pickled() -> None:
    rng = np.random.default_rng(2)
    cloud = PointCloud(rng.normal(size=(30, 3)), radius=0.1, contacts=3)
    model = qdsim.build(scene(cloud).build())
    q = np.array([0, 0, 1.0, 1, 0, 0, 0])
    again = pickle.loads(pickle.dumps(model))
    assert again.description == model.description
    assert again.description.geoms[1].cloud == cloud != PointCloud(cloud.points)
    for twin in (again, copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.collide(q, 9.0), model.collide(q, 9.0))
    assert len({cloud, again.description.geoms[1].cloud}) == 1
    assert model.parameters.geom_size[1, 0] == 0.1
    wider = model.with_parameters(geom_size=[[0, 0, 0], [0.3, 0, 0]])
    np.testing.assert_allclose(
        wider.collide(q, 9.0)["dist"], model.collide(q, 9.0)["dist"] - 0.2, atol=1e-15
    )
    assert repr(cloud) == "PointCloud(30 points, radius=0.1, contacts=3)" and len(cloud) == 30


def test_equal_clouds_stand_once() -> None:
    from qdsim.description.arrays import model_arrays

    points = np.eye(3)
    builder = scene(PointCloud(points, radius=0.1))
    builder.geom("object", "cloud", cloud=PointCloud(points, radius=0.2), pos=(1, 0, 0))
    builder.geom("object", "cloud", cloud=PointCloud(points, contacts=2), pos=(1, 0, 0))
    arrays = model_arrays(builder.build())
    np.testing.assert_array_equal(arrays["geom_cloud"], [-1, 0, 0, 1])
    assert len(arrays["cloud_point"]) == 6


BUNNY = """<mujoco><asset><mesh name="cube" vertex="{vertices}" scale="2 2 2"/></asset>
  <worldbody><geom name="ground" type="plane" size="1 1 1"/>
    <body name="object" pos="0 0 1"><freejoint/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
      <geom name="shape" type="mesh" mesh="cube" pos="0.1 0.2 0.3" quat="0.6 0 0.8 0" condim="4"
        friction="0.5 0.1 0.1"/>
      <geom name="knob" type="sphere" size="0.1" pos="0 0 1"/>
    </body></worldbody></mujoco>"""


def test_a_cloud_stands_in_for_a_mesh_of_a_file() -> None:
    """In the mesh's own coordinates, though MuJoCo's compiler turns and shifts it."""
    text = BUNNY.format(vertices=" ".join(str(x) for x in (CUBE * [1, 2, 3] + 5).ravel()))
    points = 2 * (CUBE * [1, 2, 3] + 5)
    model = qdsim.load(text, clouds={"shape": PointCloud(points, contacts=8)})
    heights = 1.3 + points @ rotation(np.array([0.6, 0, 0.8, 0]))[2]
    found = model.collide(model.default_q, np.inf)
    rows = found["geom_b"] == model.geom_index("shape")
    # single precision: MuJoCo's own
    np.testing.assert_allclose(np.sort(found["dist"][rows]), np.sort(heights), atol=1e-5)
    geom = model.description.geoms[1]
    assert (geom.type, geom.condim, geom.friction) == ("cloud", 4, (0.5, 0.1, 0.1))
    assert model.description.meshes == ()
    with pytest.raises(ValueError, match="geom 'shape': MJCF has no point clouds"):
        model.description.to_mjcf()

    text = text.replace('mesh="cube"', 'mesh="cube" contype="0" conaffinity="0"')
    knob = qdsim.load(text, clouds={"knob": PointCloud([[0, 0, 0.05]])})
    assert [geom.type for geom in knob.description.geoms] == ["plane", "mesh", "cloud"]
    assert knob.description.geoms[2].pos == (0, 0, 1)


def test_what_stands_in_for_geometries_is_checked() -> None:
    text = BUNNY.format(vertices=" ".join(str(x) for x in CUBE.ravel()))
    cloud = PointCloud(CUBE)
    with pytest.raises(ValueError, match=r"clouds: no geom is named 'shap'.*'shape'"):
        qdsim.load(text, clouds={"shap": cloud})
    with pytest.raises(TypeError, match="clouds must map names of geometries to PointCloud"):
        qdsim.load(text, clouds={"shape": CUBE})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="clouds must map"):
        qdsim.load(text, clouds=cloud)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (np.zeros((0, 3)), ValueError, "points: expected at least one"),
        ([], ValueError, r"points must have shape \(n, 3\)"),
        ([1.0, 2.0, 3.0], ValueError, r"shape \(n, 3\), got \(3,\)"),
        (np.zeros((4, 2)), ValueError, r"got \(4, 2\)"),
        ([[0, 0, 0], [0, np.nan, 0]], ValueError, "point 1 is not finite"),
        ([[0, 0, np.inf]], ValueError, "point 0 is not finite"),
        ([["a", "b", "c"]], TypeError, "points: expected an array of real numbers"),
        ([[1, 2, 3], [1, 2]], TypeError, "points: expected an array of real numbers"),
    ],
)
def test_wrong_points_are_errors(points: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PointCloud(points)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": -1.0}, ValueError, "radius: expected a number >= 0"),
        ({"radius": np.nan}, ValueError, "radius: expected a number >= 0"),
        ({"radius": "1"}, TypeError, "radius: expected a number >= 0"),
        ({"contacts": 0}, ValueError, "contacts must be 1 to 8, got 0"),
        ({"contacts": 9}, ValueError, "contacts must be 1 to 8, got 9"),
        ({"contacts": 2.0}, TypeError, "contacts must be an integer"),
    ],
)
def test_wrong_options_are_errors(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PointCloud(CUBE, **options)


def test_geometries_and_clouds_fit() -> None:
    builder = qdsim.SceneBuilder()
    builder.body("b", mass=1.0)
    with pytest.raises(ValueError, match=r"'b_geom0'.*cloud needs a geometry of type 'cloud'"):
        builder.geom("b", "cloud")
    with pytest.raises(ValueError, match="cloud needs a geometry of type 'cloud'"):
        builder.geom("b", "sphere", 0.1, cloud=PointCloud(CUBE))
    with pytest.raises(TypeError, match="cloud must be a PointCloud, got ndarray"):
        builder.geom("b", "cloud", cloud=CUBE)
    with pytest.raises(ValueError, match="size must not be negative"):
        builder.geom("b", "cloud", -0.1, cloud=PointCloud(CUBE))
    builder.joint("b", "free")
    builder.geom("b", "cloud", cloud=PointCloud(CUBE))
    with pytest.raises(ValueError, match="body 'b': has mass but neither inertia nor"):
        builder.build()


# ------------------------------------------------------------------------------ surfaces and files


def test_samples_of_a_surface_are_even_and_repeat() -> None:
    points = sample_surface(CUBE, CUBE_FACES, 6000, seed=1)
    on_face = (np.abs(points) < 1e-12) | (np.abs(points - 1) < 1e-12)
    assert points.shape == (6000, 3) and on_face.any(axis=1).all()
    for axis in range(3):
        for side in (0, 1):
            face = points[np.abs(points[:, axis] - side) < 1e-12]
            assert 850 < len(face) < 1150  # 1000, standard deviation 29
            np.testing.assert_allclose(np.delete(face, axis, 1).mean(axis=0), 0.5, atol=0.05)
    np.testing.assert_array_equal(points, sample_surface(CUBE, CUBE_FACES, 6000, seed=1))
    assert not np.array_equal(points, sample_surface(CUBE, CUBE_FACES, 6000, seed=2))
    assert len(PointCloud.from_mesh(CUBE, CUBE_FACES, 10, radius=0.1, contacts=2)) == 10


@pytest.mark.parametrize(
    ("vertices", "faces", "count", "error", "message"),
    [
        (CUBE, [[0, 1, 8]], 3, ValueError, "name vertices that do not exist"),
        (CUBE, [[0.0, 1.0, 2.0]], 3, ValueError, "faces must be indices"),
        (CUBE, [0, 1, 2], 3, ValueError, "faces must be indices"),
        (CUBE, np.zeros((0, 3), int), 3, ValueError, "no area"),
        (CUBE, [[0, 0, 1]], 3, ValueError, "no area"),
        (CUBE, CUBE_FACES, 0, ValueError, "count must be 1 or more"),
        (CUBE, CUBE_FACES, 1.5, TypeError, "count must be an integer"),
        (CUBE[:, :2], CUBE_FACES, 5, ValueError, r"vertices must have shape \(n, 3\)"),
    ],
)
def test_wrong_surfaces_are_errors(
    vertices: Array, faces: object, count: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sample_surface(vertices, faces, count)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["ply", "obj", "stl", "npy"])
def test_files_of_points(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"cube.{kind}"
    if kind == "npy":
        np.save(path, CUBE)
    else:
        trimesh = pytest.importorskip("trimesh")
        trimesh.Trimesh(CUBE, CUBE_FACES, process=False).export(path)
    points = read_points(path, scale=2.0)
    np.testing.assert_allclose(
        sorted(points.tolist()), sorted((2 * CUBE).tolist()), rtol=0, atol=1e-6
    )
    assert len(PointCloud(read_points(str(path)))) == 8
    few = read_points(path, 5 if kind == "npy" else 500, seed=3)
    np.testing.assert_array_equal(few, read_points(path, 5 if kind == "npy" else 500, seed=3))
    if kind == "npy":
        assert len(np.unique(few, axis=0)) == 5
        with pytest.raises(ValueError, match=r"cube.npy' holds 8 points and no surface, not 9"):
            read_points(path, 9)
    else:
        assert few.shape == (500, 3)
        assert ((np.abs(few) < 1e-6) | (np.abs(few - 1) < 1e-6)).any(axis=1).all()


def test_a_file_of_mere_points(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "points.ply"
    points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    trimesh.PointCloud(points).export(path)
    np.testing.assert_allclose(read_points(path), points, atol=1e-6)
    assert len(read_points(path, 10)) == 10


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ply", b"", "cannot be read as PLY"),
        ("b.ply", b"ply\nformat ascii 1.0\nelement vertex 2\n", "cannot be read as PLY"),
        ("c.obj", b"f 1 2 3\n", "cannot be read as OBJ|holds no points"),
        ("d.stl", b"solid nothing\nendsolid\n", "cannot be read as STL|holds no points"),
        ("e.npy", b"\x93NUMPY", "cannot be read as NPY"),
        ("f.npy", b"", "cannot be read as NPY"),
        ("h.npy", b"PK\x03\x04 half an archive", "cannot be read as NPY"),
        ("g.xyz", b"0 0 0\n", "expected a name that ends in .ply"),
    ],
)
def test_damaged_files_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    if not name.endswith("npy"):
        pytest.importorskip("trimesh")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_points(path)
    assert name in str(caught.value)


def test_arrays_of_a_file_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for array, message in (
        (np.zeros((4, 2)), r"x.npy': points must have shape \(n, 3\), got \(4, 2\)"),
        (np.zeros((0, 3)), "x.npy': points: expected at least one"),
        (np.full((2, 3), np.nan), "x.npy': points: point 0 is not finite"),
    ):
        np.save(path, array)
        with pytest.raises(ValueError, match=message):
            read_points(path)
    with open(path, "wb") as file:
        np.savez(file, points=np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"x.npy' cannot be read as NPY: it is an archive"):
        read_points(path)
    np.save(path, np.array([[None, 1, 2]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x.npy' cannot be read as NPY"):
        read_points(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_points(tmp_path / "none.npy")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_points(tmp_path)
    np.save(path, CUBE)
    with pytest.raises(ValueError, match="scale must be positive"):
        read_points(path, scale=0.0)


# ------------------------------------------------------------------------------ missed points


def test_points_beyond_the_nearest_do_not_fall_through() -> None:
    """A tilted plate over a floor falls far in one step. The five nearest points are at its lower
    edge; an exact step adds those at the other edge when it would run into the floor with them, and
    ends where a body with a sphere per point does."""
    grid = np.mgrid[0:11, 0:11].reshape(2, -1).T * 0.05 - 0.25
    points = np.c_[grid, np.zeros(len(grid))]
    cloud, twin = qdsim.build(scene(PointCloud(points)).build()), spheres(points, 1e-9)
    tilt = 0.15
    q = np.array([0, 0, 0.06, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0])
    options = qdsim.Options(h=0.15, margin=0.05)
    step = qdsim.step(cloud, q, [], options)
    assert step.info.missed_pairs >= 1 and len(step.contacts) > 5
    expected = qdsim.step(twin, q, [], options.replace(margin=np.inf)).q_next
    np.testing.assert_allclose(step.q_next, expected, atol=1e-3)
    lowest = step.q_next[2] + (points @ rotation(step.q_next[3:])[2]).min()
    assert lowest > -1e-3

    loose = qdsim.step(cloud, q, [], options.replace(add_missed_pairs=False))
    assert loose.info.missed_pairs == 1 and len(loose.contacts) <= 5
    assert loose.q_next[2] + (points @ rotation(loose.q_next[3:])[2]).min() < -0.01


def test_a_cloud_beyond_the_margin_is_added() -> None:
    """Also one that goes through a thin shelf to the other side."""
    points = np.random.default_rng(0).normal(size=(200, 3))
    points *= 0.05 / np.linalg.norm(points, axis=1)[:, None]
    builder = qdsim.SceneBuilder(gravity=(0, 0, -10))
    builder.geom("world", "box", (0.3, 0.3, 0.01))
    builder.body("ball", pos=(0, 0, 0.2), mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("ball", "free")
    builder.geom("ball", "cloud", cloud=PointCloud(points))
    model = qdsim.build(builder.build())
    for h in (0.15, 0.25):  # into the shelf; far beyond it
        step = qdsim.step(model, model.default_q, [], qdsim.Options(h=h, margin=0.02))
        assert step.info.missed_pairs >= 1
        lowest = step.q_next[2] + (points @ rotation(step.q_next[3:])[2]).min()
        assert 0.0098 < lowest < 0.011


def flat_cloud() -> dict:
    """A cloud and a sphere in the form that the C core takes."""
    from qdsim.description.arrays import model_arrays
    from qdsim.pressure.geometries import field_arrays

    description = scene(PointCloud(np.eye(3)), "sphere").build()
    arrays = model_arrays(description)
    return {**arrays, **field_arrays(description, arrays["pair_geom"])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"geom_cloud": [-1, 1]}, r"geom_cloud\[1\]: clouds have one, other shapes have none"),
        ({"geom_cloud": [-1, -2]}, r"geom_cloud\[1\]"),
        ({"geom_cloud": [-1, -1]}, r"geom_cloud\[1\]"),
        ({"geom_cloud": [0, 0]}, r"geom_cloud\[0\]"),
        ({"cloud_point_count": [0]}, r"cloud_point_count\[0\]: less than one"),
        ({"cloud_point_count": [4]}, r"cloud_point_count\[0\]: less than one, or more than"),
        ({"cloud_point_count": [-(2**31)]}, r"cloud_point_count\[0\]"),
        ({"cloud_point_count": [2]}, r"cloud_point\[2\]: belongs to no cloud"),
        ({"cloud_contact_count": [0]}, r"cloud_contact_count\[0\]: must be 1 to 8"),
        ({"cloud_contact_count": [9]}, r"cloud_contact_count\[0\]: must be 1 to 8"),
        ({"cloud_point": [[0, 0, 0], [0, np.nan, 0], [0, 0, 0]]}, r"cloud_point\[1\]: not finite"),
        ({"cloud_point": [[0, 0, 0], [0, 0, 0], [1e101, 0, 0]]}, r"cloud_point\[2\]: too large"),
        ({"geom_size": [[0.1, 0, 0], [-0.1, 0, 0]]}, r"geom_size\[1\]: must be positive"),
    ],
)
def test_flat_clouds_that_make_no_sense(change: dict, message: str) -> None:
    assert _core.Model(flat_cloud()).pair_count == 1
    wrong = {k: np.array(v, dtype=flat_cloud()[k].dtype) for k, v in change.items()}
    with pytest.raises(ValueError, match=message):
        _core.Model({**flat_cloud(), **wrong})


def test_numbers_that_overflow_are_said_so() -> None:
    model = qdsim.build(scene(PointCloud(np.eye(3)), "box").build())
    for far in (1e160, 1e300):
        with pytest.raises(ValueError, match="overflow"):
            model.collide([far, -far, far, 1, 0, 0, 0], np.inf)
    assert len(model.collide([1e10, 0, 0, 1, 0, 0, 0], np.inf)) == 3
