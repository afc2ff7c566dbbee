"""Height fields: against planes, MuJoCo's rays and contacts, differences of the step, and what they must not let
through."""

from __future__ import annotations

import copy
import pickle

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim import HeightField, PointCloud, _core
from qdsim.formats import load_description

Array = npt.NDArray[np.float64]
SHAPES: dict[str, tuple[float, ...]] = {
    "sphere": (0.1,),
    "capsule": (0.06, 0.1),
    "box": (0.1, 0.08, 0.06),
    "cylinder": (0.08, 0.06),
    "ellipsoid": (0.12, 0.08, 0.1),
}
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [
    0.1,
    0.08,
    0.06,
]


def bumpy(
    rng: np.random.Generator, rows: int = 15, columns: int = 12, rise: float = 0.1
) -> HeightField:
    return HeightField(rise * rng.uniform(-1.0, 1.0, (rows, columns)), (1.1, 1.3))


def sampled(function: object, points: int = 41, half: float = 1.0) -> HeightField:
    """A surface z = f(x, y)."""
    x = np.linspace(-half, half, points)
    return HeightField(function(*np.meshgrid(x, x)), (half, half))  # type: ignore[operator]


def scene(
    field: HeightField, shape: str = "sphere", quat: object = (1, 0, 0, 0)
) -> qdsim.SceneBuilder:
    """A free shape over a field on the world."""
    builder = qdsim.SceneBuilder()
    builder.geom("world", "hfield", hfield=field, name="hills", quat=quat)
    return with_shape(builder, shape)


def with_shape(builder: qdsim.SceneBuilder, shape: str) -> qdsim.SceneBuilder:
    builder.body("object", mass=1.0, inertia=(0.01, 0.01, 0.01))
    builder.joint("object", "free")
    if shape == "mesh":
        builder.mesh("block", CORNERS)
        builder.geom("object", "mesh", mesh="block", name="shape")
    else:
        builder.geom("object", shape, SHAPES[shape], name="shape")  # type: ignore[arg-type]
    return builder


def rotation(quat: object) -> Array:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, dtype=float))
    return matrix.reshape(3, 3)


def quaternion(rng: np.random.Generator) -> Array:
    quat = rng.normal(size=4)
    return np.asarray(quat / np.linalg.norm(quat))


# ------------------------------------------------------------------------------ planes


@pytest.mark.parametrize("shape", [*SHAPES, "mesh"])
@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.3, -0.2)])
def test_steps_on_planar_fields_are_those_on_planes(shape: str, slope: tuple[float, float]) -> None:
    field = sampled(lambda x, y: slope[0] * x + slope[1] * y, 33)
    ours = qdsim.build(scene(field, shape).build())
    normal = np.array([-slope[0], -slope[1], 1.0])
    normal /= np.linalg.norm(normal)
    quat = np.array([1.0 + normal[2], -normal[1], normal[0], 0.0])
    builder = qdsim.SceneBuilder()
    builder.geom("world", "plane", quat=quat / np.linalg.norm(quat), name="hills")
    plane = qdsim.build(with_shape(builder, shape).build())
    rng = np.random.default_rng(3)
    for kappa in (None, 1000.0):
        options = qdsim.Options(h=0.05, margin=0.3, kappa=kappa)
        q = np.concatenate([[0.013, 0.021, 0.2], quaternion(rng)])
        for _ in range(4):
            wanted, found = (qdsim.linearize(model, q, [], options) for model in (plane, ours))
            assert len(found.step.contacts) == len(wanted.step.contacts) >= 1
            np.testing.assert_allclose(found.step.q_next, wanted.step.q_next, atol=1e-8)
            if wanted.step.info.derivative_exact:
                np.testing.assert_allclose(found.A, wanted.A, atol=1e-5)
            q = wanted.step.q_next


# ------------------------------------------------------------------------------ MuJoCo as a witness


def test_surfaces_are_where_mujocos_rays_meet_them() -> None:
    """Which way rows and columns go, and the diagonals of the cells."""
    rng = np.random.default_rng(0)
    field = bumpy(rng, 5, 7, 0.5)
    data = mujoco.MjData(compiled := mujoco.MjModel.from_xml_string(scene(field).build().to_mjcf()))
    mujoco.mj_forward(compiled, data)
    vertices, faces = field.triangles()
    corners = vertices[faces[: 2 * 4 * 6]]
    for x, y in rng.uniform(-1.0, 1.0, (40, 2)):
        distance = mujoco.mj_ray(
            compiled, data, np.array([x, y, 5.0]), np.array([0.0, 0.0, -1.0]), None, 1, 1,
            np.zeros(1, dtype=np.int32),
        )  # fmt: skip
        heights = [
            weights @ corner[:, 2]
            for corner in corners
            if (weights := barycentric(corner, x, y)).min() >= 0.0
        ]
        np.testing.assert_allclose(5.0 - distance, heights, atol=1e-6)


def barycentric(corner: Array, x: float, y: float) -> Array:
    matrix = np.vstack([corner[:, :2].T, np.ones(3)])
    return np.asarray(np.linalg.solve(matrix, [x, y, 1.0]))


@pytest.mark.parametrize("shape", ["sphere", "capsule", "ellipsoid"])
def test_distances_are_mujocos(shape: str) -> None:
    """Of round shapes that touch by less than their radius: MuJoCo has the deepest prism's contact, to its tolerance."""
    rng = np.random.default_rng(1)
    model = qdsim.build(scene(bumpy(rng), shape).build())
    compiled = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    data = mujoco.MjData(compiled)
    compared = 0
    for _ in range(100):
        q = np.concatenate([rng.uniform(-0.8, 0.8, 2), [rng.uniform(0.05, 0.2)], quaternion(rng)])
        data.qpos[:] = q
        mujoco.mj_forward(compiled, data)
        theirs = [c.dist for c in data.contact]
        ours = model.collide(q, 0.0)["dist"]
        if theirs and min(theirs) > -0.02:
            compared += 1
            assert ours.min() == pytest.approx(min(theirs), abs=2e-4)
    assert compared >= 8


# ------------------------------------------------------------------------------ steps


@pytest.mark.parametrize("shape", [*SHAPES, "mesh"])
@pytest.mark.parametrize("kappa", [None, 1000.0])
def test_derivatives_are_those_of_differences(shape: str, kappa: float | None) -> None:
    rng = np.random.default_rng(5)
    model = qdsim.build(scene(bumpy(rng, rise=0.05), shape).build())
    options = qdsim.Options(h=0.05, margin=0.04, kappa=kappa)
    q = np.concatenate([rng.uniform(-0.5, 0.5, 2), [0.25], quaternion(rng)])
    for _ in range(15):
        q = qdsim.step(model, q, [], options.replace(kappa=None)).q_next
    lin = qdsim.linearize(model, q, [], options)
    assert len(lin.step.contacts) >= 1

    def moved(direction: int, length: float) -> Array:
        v = np.zeros(6)
        v[direction] = length
        q_next = qdsim.step(model, model.integrate(q, v), [], options).q_next
        return np.asarray(model.difference(q_next, lin.step.q_next))

    checked = 0
    for j in range(6):
        errors = []
        for e in (3e-5, 1e-5, 3e-6):
            near = (moved(j, e) - moved(j, -e)) / (2 * e)
            far = (moved(j, 2 * e) - moved(j, -2 * e)) / (4 * e)
            sides = (moved(j, e) + moved(j, -e)) / e
            if max(np.abs(near - far).max(), np.abs(sides).max()) < 2e-2:  # else there is a kink
                errors.append(np.abs(lin.A[:, j] - (4 * near - far) / 3).max())
        assert not errors or min(errors) < 2e-5 * max(1.0, np.abs(lin.A).max())
        checked += len(errors) > 0
    assert checked >= 2


def test_a_ball_comes_to_rest_at_the_bottom_of_a_bowl() -> None:
    field = sampled(lambda x, y: 0.5 * (x**2 + y**2))
    model = qdsim.build(scene(field, "sphere").build())
    q = np.array([0.35, -0.2, 0.3, 1, 0, 0, 0])
    options = qdsim.Options(h=0.1)
    for _ in range(200):
        q = qdsim.step(model, q, [], options).q_next
    step = qdsim.step(model, q, [], options)
    np.testing.assert_allclose(model.difference(step.q_next, q), 0.0, atol=1e-6)
    # in the cells around the lowest point, on the surface
    assert np.abs(q[:2]).max() < 0.06
    assert abs(model.collide(q, 0.01)["dist"].min()) < 1e-6


@pytest.mark.parametrize("shape", ["sphere", "box", "mesh"])
def test_things_come_to_rest_on_hills_in_second_order_steps(shape: str) -> None:
    rng = np.random.default_rng(2)
    model = qdsim.build(scene(bumpy(rng, rise=0.03), shape).build())
    q = np.array([0.1, 0.05, 0.3, 1, 0, 0, 0])
    result = qdsim.simulate(model, q, np.zeros(6), [], 3.0, options=qdsim.DynamicOptions(h=0.01))
    distance = model.collide(result.q[-1], 0.05)["dist"]
    assert distance.min() > -1e-4
    assert result.q[-1, 2] > 0.0


def pusher(field: HeightField) -> qdsim.Model:
    """A ball on two driven slides, x and z."""
    builder = qdsim.SceneBuilder()
    builder.geom("world", "hfield", hfield=field, name="hills")
    builder.body("x", mass=0.1, inertia=(1, 1, 1))
    builder.joint("x", "slide", axis=(1, 0, 0))
    builder.body("ball", parent="x", mass=0.1)
    builder.joint("ball", "slide", axis=(0, 0, 1))
    builder.geom("ball", "sphere", 0.05, name="shape", friction=0.0)
    for joint in ("x", "ball"):
        builder.actuator(joint, stiffness=1000.0)
    return qdsim.build(builder.build())


def test_nothing_falls_through_in_one_step() -> None:
    model = pusher(sampled(lambda x, y: 0.1 * np.sin(5.0 * x)))
    for depth in (0.3, 0.9, 5.0, 50.0):  # the bottom is at -1.1
        q = np.array([0.13, 1.0])
        step = qdsim.step(model, q, [0.13, -depth], qdsim.Options(h=0.1))
        assert step.info.missed_pairs >= 1
        assert model.collide(step.q_next, 1.0)["dist"].min() > -1e-3


def test_nothing_passes_a_ridge_in_one_step() -> None:
    """Neither from afar, nor where the ball is in contact with the valley before it."""
    field = sampled(lambda x, y: np.maximum(0.0, 0.5 - 5.0 * np.abs(x)))
    model = pusher(field)
    for height in (0.3, 0.05):
        q, u = np.array([-0.8, height]), np.array([0.8, height])
        step = qdsim.step(model, q, u, qdsim.Options(h=0.1, margin=0.02))
        assert step.q_next[0] < 0.0 or step.q_next[1] > 0.5
        assert model.collide(step.q_next, 1.0)["dist"].min() > -1e-3


def test_a_tray_carries_a_ball() -> None:
    """A field on a body: the ball rises with it, and A says so."""
    builder = qdsim.SceneBuilder()
    builder.body("tray", mass=1.0, inertia=(1, 1, 1))
    builder.joint("tray", "slide", axis=(0, 0, 1))
    hollow = sampled(lambda x, y: 0.2 * (x**2 + y**2), 9, 0.5)
    builder.geom("tray", "hfield", hfield=hollow, name="hollow")
    builder.actuator("tray", stiffness=1e4)
    model = qdsim.build(with_shape(builder, "sphere").build())
    q = np.array([0.0, 0.0, 0.0, 0.1, 1, 0, 0, 0])
    q = qdsim.step(model, q, [0.0], qdsim.Options(h=0.05)).q_next
    lin = qdsim.linearize(model, q, [0.02], qdsim.Options(h=0.05))
    assert lin.step.q_next[3] - q[3] == pytest.approx(lin.step.q_next[0] - q[0], abs=1e-5)
    assert lin.step.q_next[0] == pytest.approx(0.02, abs=2e-3)
    np.testing.assert_allclose(lin.B[3], lin.B[0], atol=1e-6)


def test_clouds_touch_by_their_points() -> None:
    rng = np.random.default_rng(4)
    field = bumpy(rng)
    points = 0.1 * rng.normal(size=(200, 3))
    builder = qdsim.SceneBuilder()
    builder.geom("world", "hfield", hfield=field, name="hills")
    builder.body("object", mass=1.0, inertia=(0.01,) * 3)
    builder.joint("object", "free")
    builder.geom("object", "cloud", cloud=PointCloud(points, radius=0.01, contacts=5))
    model = qdsim.build(builder.build())
    ball = qdsim.SceneBuilder()
    ball.geom("world", "hfield", hfield=field, name="hills")
    ball.body("object", mass=1.0, inertia=(0.01,) * 3)
    ball.joint("object", "free")
    ball.geom("object", "sphere", 0.01)
    one = qdsim.build(ball.build())
    for _ in range(3):
        q = np.concatenate([rng.uniform(-0.5, 0.5, 2), [0.5], quaternion(rng)])
        places = q[:3] + points @ rotation(q[3:]).T
        rows = np.hstack([places, np.tile([1.0, 0, 0, 0], (len(points), 1))])
        distances = qdsim.batches.queries.pair_distances(one, rows, np.inf)[:, 0]
        found = np.sort(model.collide(q, np.inf)["dist"])
        np.testing.assert_allclose(found, np.sort(distances)[:5], atol=1e-12)
    for _ in range(10):
        lin = qdsim.linearize(model, q, [], qdsim.Options(h=0.05))
        q = lin.step.q_next
    assert np.isfinite(lin.A).all() and model.collide(q, 0.1)["dist"].min() > -1e-3


# ------------------------------------------------------------------------------ descriptions and files


def test_files_are_read_and_written() -> None:
    rng = np.random.default_rng(6)
    field = HeightField(rng.uniform(-0.3, 0.7, (6, 4)), (0.8, 1.2), base=0.4)
    description = scene(field, "box", quat=quaternion(rng)).build()
    again = load_description(description.to_mjcf())
    read = again.geoms[0].hfield
    assert read is not None and again.geoms[0].type == "hfield"
    assert read.size == pytest.approx(field.size) and read.base == pytest.approx(0.4)
    np.testing.assert_allclose(read.heights, field.heights - field.heights.min(), atol=1e-7)
    ours, theirs = (qdsim.build(item) for item in (description, again))
    q = np.array([0.1, 0.2, 0.3, 1, 0, 0, 0])
    np.testing.assert_allclose(
        ours.collide(q, 1.0)["dist"], theirs.collide(q, 1.0)["dist"], atol=1e-6
    )
    once_more = load_description(again.to_mjcf()).geoms[0].hfield
    assert once_more is not None
    np.testing.assert_allclose(once_more.heights, read.heights, atol=1e-7)


def test_flat_fields_are_written() -> None:
    field = HeightField(np.full((3, 3), 0.25), (1.0, 1.0))
    again = qdsim.build(load_description(scene(field).build().to_mjcf()))
    assert again.collide([0, 0, 0.5, 1, 0, 0, 0], 1.0)["dist"] == pytest.approx([0.15])


def test_equal_fields_stand_once_and_are_copied() -> None:
    from qdsim.description.arrays import model_arrays

    heights = np.zeros((4, 5))
    builder = scene(HeightField(heights, (1.0, 1.0)))
    builder.geom("world", "hfield", hfield=HeightField(heights, (1.0, 1.0)), pos=(5, 0, 0))
    description = builder.build()
    arrays = model_arrays(description)
    assert arrays["hfield_grid"].tolist() == [[4, 5]]
    assert arrays["geom_hfield"].tolist() == [0, 0, -1]
    assert description.to_mjcf().count("<hfield") == 1
    model = qdsim.build(description)
    q = np.array([0.1, 0.2, 0.12, 1, 0, 0, 0])
    for twin in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.collide(q, 9.0), model.collide(q, 9.0))
    heights[0, 0] = 7.0
    field = description.geoms[0].hfield
    assert field is not None and field.heights[0, 0] == 0.0
    assert field == HeightField(np.zeros((4, 5)), (1.0, 1.0)) != HeightField(heights, (1.0, 1.0))
    assert repr(field) == "HeightField(4 x 5, size=(1.0, 1.0), base=1)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"heights": np.zeros(4)}, "heights must have shape"),
        ({"heights": np.zeros((1, 4))}, "2 or more of each"),
        ({"heights": [[0.0, np.nan], [0.0, 0.0]]}, "heights must be finite"),
        ({"heights": np.zeros((3000, 2000))}, "4194304 at most"),
        ({"size": (1.0, 0.0)}, "size must be positive"),
        ({"size": (1.0,)}, "size must hold 2 numbers"),
        ({"base": 0.0}, "base"),
        ({"base": -1.0}, "base"),
    ],
)
def test_bad_fields(arguments: dict[str, object], words: str) -> None:
    good: dict[str, object] = {"heights": np.zeros((3, 3)), "size": (1.0, 1.0), "base": 1.0}
    with pytest.raises(ValueError, match=words):
        HeightField(**(good | arguments))  # type: ignore[arg-type]


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="heights"):
        HeightField("hills", (1.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="hfield needs a geometry of type 'hfield'"):
        qdsim.SceneBuilder().geom("world", "hfield")
    with pytest.raises(TypeError, match="hfield must be a HeightField, got ndarray"):
        qdsim.SceneBuilder().geom("world", "hfield", hfield=np.zeros((3, 3)))


def test_what_fields_do_not_touch() -> None:
    """Each other, planes and soft geometries: errors where such a pair can collide."""
    field = HeightField(np.zeros((3, 3)), (1.0, 1.0))
    for other, more in (("plane", {}), ("hfield", {"hfield": field})):
        builder = qdsim.SceneBuilder()
        builder.geom("world", other, name="ground", **more)  # type: ignore[arg-type]
        builder.body("tray", mass=1.0, inertia=(1, 1, 1))
        builder.joint("tray", "free")
        builder.geom("tray", "hfield", hfield=field, name="tray")
        with pytest.raises(ValueError, match=r"'ground'.*'tray'.*not supported"):
            qdsim.build(builder.build())
    builder = qdsim.SceneBuilder()
    builder.geom("world", "hfield", hfield=field, name="hills")
    builder.body("ball", mass=1.0, inertia=(1, 1, 1))
    builder.joint("ball", "free")
    builder.geom("ball", "sphere", 0.1, soft=1e5)
    with pytest.raises(ValueError, match=r"'hills' is a hfield.*soft"):
        qdsim.build(builder.build())
    with pytest.raises(ValueError, match="cannot be soft"):
        builder.geom("world", "hfield", hfield=field, soft=1e5)


def test_triangles_enclose_the_solid() -> None:
    """Surface and sides, seen from outside: with the bottom's area they hold the solid's volume."""
    rng = np.random.default_rng(8)
    field = bumpy(rng, 6, 9)
    vertices, faces = field.triangles()
    corners = vertices[faces] - [0.0, 0.0, field.bottom]
    volume = np.linalg.det(corners).sum() / 6.0
    tops = corners[: 2 * 5 * 8]
    prisms = np.linalg.det(np.dstack([tops[:, :, :2], np.ones((len(tops), 3))])) / 2.0
    assert volume == pytest.approx((prisms * tops[:, :, 2].mean(axis=1)).sum())
    assert len(field.triangles(4)[1]) == 2 * 9 + 2 * 12


def flat_field() -> dict[str, Array]:
    """A field and a sphere in the form that the C core takes."""
    from qdsim.description.arrays import model_arrays
    from qdsim.pressure.geometries import field_arrays

    description = scene(HeightField(np.zeros((2, 3)), (1.0, 1.0))).build()
    arrays = model_arrays(description)
    return {**arrays, **field_arrays(description, arrays["pair_geom"])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"geom_hfield": [0, 0]}, r"geom_hfield\[1\]: height fields have one, other shapes have none"),
        ({"geom_hfield": [-1, -1]}, r"geom_hfield\[0\]"),
        ({"geom_hfield": [1, -1]}, r"geom_hfield\[0\]"),
        ({"hfield_grid": [[1, 6]]}, r"hfield_grid\[0\]: less than two rows"),
        ({"hfield_grid": [[2, -3]]}, r"hfield_grid\[0\]: less than two rows"),
        ({"hfield_grid": [[2**30, 2**30]]}, r"hfield_grid\[0\]: .*too many points"),
        ({"hfield_grid": [[3, 3]]}, r"hfield_grid\[0\]: more points than there are heights"),
        ({"hfield_grid": [[2, 2]]}, r"hfield_height\[4\]: belongs to no height field"),
        ({"hfield_size": [[1.0, 0.0, -1.0]]}, r"hfield_size\[0\]: half lengths must be positive"),
        ({"hfield_size": [[1.0, 1.0, 0.0]]}, r"hfield_size\[0\]: its bottom must be below"),
        ({"hfield_height": [0, 0, np.nan, 0, 0, 0]}, r"hfield_height\[2\]: not finite"),
        ({"hfield_height": [0, 0, 0, 1e101, 0, 0]}, r"hfield_height\[3\]: too large"),
    ],
)  # fmt: skip
def test_flat_fields_that_make_no_sense(change: dict[str, object], message: str) -> None:
    good = flat_field()
    assert _core.Model(good).pair_count == 1
    wrong = {k: np.array(v, dtype=good[k].dtype) for k, v in change.items()}
    with pytest.raises(ValueError, match=message):
        _core.Model({**good, **wrong})


def test_numbers_that_overflow_are_said_so() -> None:
    model = qdsim.build(scene(HeightField(np.zeros((3, 3)), (1.0, 1.0)), "box").build())
    for far in (1e160, 1e300):
        with pytest.raises(ValueError, match="overflow"):
            model.collide([far, -far, far, 1, 0, 0, 0], np.inf)
    assert len(model.collide([1e10, 0, 0, 1, 0, 0, 0], np.inf)) >= 1
