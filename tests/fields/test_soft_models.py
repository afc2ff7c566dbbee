"""Geometries with pressure fields in models: what says so, what is refused, and the surfaces between them."""

import pickle
import warnings

import numpy as np
import pytest
from field_bodies import STILL, random_pose, slow_patch, torus
from field_bodies import pose as pose_of

import qdsim
from qdsim.planning.task.fingerprint import hash_of
from qdsim.pressure import HalfSpace, PressureField, RigidSurface, pressure_patch, tessellation

BALL_ON_BOX = """
<mujoco>
  <custom><numeric name="soft:ball" data="2e5 5 0.01"/></custom>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.05"><freejoint/><geom name="ball" type="sphere" size="0.03" mass="0.1"/></body>
    <body name="box" pos="0 0.2 0.02"><freejoint/>
      <geom name="box" type="box" size="0.04 0.03 0.02" mass="0.1"/></body>
  </worldbody>
</mujoco>
"""


def block(soft=1e7, **kw):
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", name="floor")
    scene.body("box", pos=(0, 0, 0.01), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", (0.03, 0.02, 0.01), name="box", soft=soft, **kw)
    return qdsim.build(scene.build())


def pose(model, position, quat=(1.0, 0.0, 0.0, 0.0)):
    q = model.default_q.copy()
    q[:7] = (*position, *quat)
    return q


@pytest.mark.parametrize("depth", [1e-4, 1e-3, 5e-3, 1e-2])
def test_soft_box_on_a_plane_has_the_closed_force(depth):
    model, (a, b, height, modulus) = block(), (0.06, 0.04, 0.01, 1e7)
    (surface,) = qdsim.pressure_surface(model, pose(model, (0.3, -0.2, height - depth)))
    force = modulus / height * (a * b * depth - (a + b) * depth**2 + 4 * depth**3 / 3)
    assert (surface.geom_a, surface.geom_b, surface.pair) == ("floor", "box", 0)
    np.testing.assert_allclose(surface.force, [0, 0, force], rtol=1e-12, atol=1e-9)
    arm = [0.3, -0.2, 0.0]
    np.testing.assert_allclose(surface.moment, np.cross(arm, surface.force), atol=1e-9 * force)
    assert surface.count == len(surface.polygons) and surface.polygons[
        "area"
    ].sum() == pytest.approx(surface.area)
    mean = surface.polygons["area"] * surface.polygons["pressure"]
    np.testing.assert_allclose(mean.sum(), force, rtol=1e-12)


def test_surfaces_are_those_of_the_fields_on_their_own():
    """Two soft bodies and a rigid one, each turned and placed in its body."""
    turn = np.array([0.9, 0.1, -0.3, 0.2])
    turn /= np.linalg.norm(turn)
    scene = qdsim.SceneBuilder()
    scene.geom(
        "world", "plane", name="floor", pos=(0, 0, 0.01), soft=qdsim.Softness(3e5, thickness=0.05)
    )
    for name, kind, size, soft in (
        ("egg", "ellipsoid", (0.03, 0.04, 0.05), qdsim.Softness(2e5, hint=0.02)),
        ("tin", "cylinder", (0.03, 0.04), qdsim.Softness(5e5, hint=0.01)),
        ("die", "box", (0.03, 0.03, 0.03), None),
    ):
        scene.body(name, mass=1.0)
        scene.joint(name, "free")
        scene.geom(name, kind, size, name=name, soft=soft, pos=(0.01, 0.0, 0.02), quat=turn)
    model = qdsim.build(scene.build())
    assert model.soft_pair_count == 6
    fields = {
        "floor": HalfSpace(3e5 / 0.05),
        "egg": PressureField.ellipsoid((0.03, 0.04, 0.05), 2e5, hint=0.02),
        "tin": PressureField.cylinder(0.03, 0.04, 5e5, hint=0.01),
        "die": RigidSurface.of(PressureField.box((0.03, 0.03, 0.03), 1.0)),
    }
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(10):
        q = np.concatenate([(*rng.uniform(-0.03, 0.03, 3), *quat(rng)) for _ in range(3)])
        place = {name: geom_pose(model, q, name) for name in fields}
        for surface in qdsim.pressure_surface(model, q):
            a, b = surface.geom_a, surface.geom_b
            alone = pressure_patch(fields[a], fields[b], place[a], place[b])
            scale = np.abs(alone.force).max()
            np.testing.assert_allclose(surface.force, alone.force, atol=1e-9 * scale)
            np.testing.assert_allclose(surface.moment, alone.moment, atol=1e-9 * scale)
            np.testing.assert_allclose(
                surface.tangent, alone.tangent, atol=1e-9 * np.abs(alone.tangent).max()
            )
            np.testing.assert_allclose(surface.centre, alone.centre, atol=1e-9)
            for name in ("normal", "gradient_a", "gradient_b", "centre"):
                sums = [
                    (x.polygons["area"] * x.polygons["pressure"]) @ x.polygons[name]
                    for x in (surface, alone)
                ]
                np.testing.assert_allclose(*sums, rtol=1e-9, atol=1e-9 * np.abs(sums).max())
            assert len(surface.vertices) == surface.polygons["vertex_count"].sum()
            seen += 1
    assert seen >= 20


def quat(rng):
    found = rng.normal(size=4)
    return found / np.linalg.norm(found)


def geom_pose(model, q, name):
    geom = model.description.geoms[model.geom_index(name)]
    place, rotation = model.body_pose(q, int(model.geom_body[model.geom_index(name)]))
    own = qdsim.description.arrays.rotation_matrix(geom.quat)
    turned = rotation @ own
    w = np.sqrt(max(0.0, 1 + np.trace(turned))) / 2
    axis = np.array(
        [turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]
    )
    found = np.array([w, *(axis / (4 * w))])
    return np.concatenate([place + rotation @ np.array(geom.pos), found / np.linalg.norm(found)])


def test_a_mesh_is_pressed_where_it_is():
    corners = np.array([[x, y, z] for x in (0, 0.06) for y in (0, 0.04) for z in (0, 0.02)])
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", name="floor", soft=qdsim.Softness(1e6, thickness=0.1))
    scene.body("block", mass=1.0)
    scene.joint("block", "free")
    scene.mesh("brick", corners)
    scene.geom("block", "mesh", mesh="brick", name="block")
    model = qdsim.build(scene.build())
    (surface,) = qdsim.pressure_surface(model, pose(model, (0.5, 0.0, -0.001)))
    np.testing.assert_allclose(surface.force, [0, 0, 1e7 * 0.001 * 0.0024], atol=1e-9)
    np.testing.assert_allclose(surface.centre[:2], [0.53, 0.02], atol=1e-9)


def test_files_arguments_and_text_say_the_same():
    model = qdsim.load(BALL_ON_BOX)
    soft = {geom.name: geom.soft for geom in model.description.geoms}
    assert soft["ball"] == qdsim.Softness(2e5, 5.0, 0.01) and soft["box"] is None
    again = qdsim.load(model.description.to_mjcf())
    assert again.description.geoms == model.description.geoms
    rigid = qdsim.load(BALL_ON_BOX, soft={"ball": None})
    assert rigid.soft_pair_count == 0 and model.soft_pair_count == 2
    other = qdsim.load(
        BALL_ON_BOX, soft={"ball": None, "box": 3e5, "floor": qdsim.Softness(1e6, thickness=0.02)}
    )
    assert other.soft_pair_count == 3
    assert other.parameters.geom_modulus.tolist() == [1e6, 0.0, 3e5]


def test_models_with_fields_keep_their_promises():
    model = block()
    q = pose(model, (0, 0, 0.009))
    force = qdsim.pressure_surface(model, q)[0].force
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(qdsim.pressure_surface(copy, q)[0].force, force)
    twice = model.with_parameters(geom_modulus=2 * model.parameters.geom_modulus)
    np.testing.assert_allclose(qdsim.pressure_surface(twice, q)[0].force, 2 * force)
    assert hash_of(model) != hash_of(twice) != hash_of(block(soft=None))
    assert qdsim.pressure_surface(block(soft=None), q) == ()
    assert qdsim.pressure_surface(model, pose(model, (0, 0, 0.02))) == ()
    with pytest.raises(TypeError, match="polygons: expected True or False, got int"):
        qdsim.pressure_surface(model, q, polygons=2)
    assert len(qdsim.pressure_surface(model, q, polygons=False)[0].polygons) == 0


@pytest.mark.parametrize(
    ("soft", "error", "words"),
    [
        ({"bal": 1e5}, ValueError, "no geom is named 'bal'; did you mean 'ball'"),
        ({"ball": -1.0}, ValueError, "geom 'ball': soft: modulus must be positive"),
        ({"ball": np.nan}, ValueError, "geom 'ball': soft: modulus must be finite"),
        ({"ball": "soft"}, TypeError, "geom 'ball': soft: modulus"),
        ({"floor": 1e5}, ValueError, "geom 'floor': soft: a plane needs the thickness"),
        (
            {"ball": qdsim.Softness(1e5, thickness=0.1)},
            ValueError,
            "geom 'ball': soft: a sphere has no thickness",
        ),
        (["ball"], TypeError, "soft: expected a mapping"),
    ],
)
def test_what_makes_no_sense_is_named(soft, error, words):
    with pytest.raises(error, match=words):
        qdsim.load(BALL_ON_BOX, soft=soft)


def test_more_that_makes_no_sense():
    for numbers, words in (
        ("-1", "modulus must be positive"),
        ("1 2 3 4 5", "expected 1 to 4 numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            qdsim.load(BALL_ON_BOX.replace("2e5 5 0.01", numbers))
    with pytest.raises(ValueError, match="numeric 'soft:bal': no geom is named 'bal'"):
        qdsim.load(BALL_ON_BOX.replace("soft:ball", "soft:bal"))
    with pytest.raises(ValueError, match="give soft or stiffness, not both"):
        block(stiffness=1e3)
    with pytest.raises(ValueError, match="is a cloud, which has no surface"):
        qdsim.load(BALL_ON_BOX, clouds={"box": qdsim.PointCloud(np.eye(3), radius=0.01)})
    with pytest.raises(ValueError, match="dissipation must not be negative"):
        qdsim.Softness(1e5, dissipation=-1.0)
    model = block()
    with pytest.raises(ValueError, match="it is not soft"):
        model.with_parameters(geom_modulus=1e5)
    with pytest.raises(ValueError, match="size of a geometry with a pressure field is fixed"):
        qdsim.step_batch(
            model,
            model.default_q[None],
            np.zeros((1, 0)),
            parameters={"geom_size": 2 * model.parameters.geom_size[None]},
        )
    with pytest.raises(ValueError, match="geom_modulus"):
        qdsim.step_batch(
            model,
            model.default_q[None],
            np.zeros((1, 0)),
            parameters={"geom_modulus": np.array([[1.0, 1e6]])},
        )


# ---------------------------------------------------------------- fields of their own


def on_floor(kind, size, soft, **more):
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=0.5)
    scene.body("body", pos=(0, 0, 0.1), mass=1.0)
    scene.joint("body", "free")
    scene.geom("body", kind, size, name="body", soft=soft, friction=0.5, **more)
    return qdsim.build(scene.build())


def test_a_given_field_presses_as_the_shape_s_own():
    """The shape's own tetrahedra, given as arrays, give the same bits; a modulus scales what is given."""
    own = on_floor("sphere", 0.02, qdsim.Softness(1e6, hint=0.005))
    field = PressureField.sphere(0.02, 1e6, hint=0.005)
    for soft in (field, qdsim.Softness(field=field)):
        given = on_floor("sphere", 0.02, soft)
        q = pose(given, (0, 0, 0.018), (0.9, 0.1, 0.3, 0.3))
        (a,), (b,) = qdsim.pressure_surface(own, q), qdsim.pressure_surface(given, q)
        np.testing.assert_allclose(a.force, b.force, rtol=1e-14)
        assert a.count == b.count and given.parameters.geom_modulus[1] == 1e6
        tau = [1, 2, -20, 0, 0, 0.01]
        steps = [qdsim.step(m, q, [], qdsim.Options(h=0.01), tau=tau) for m in (own, given)]
        np.testing.assert_allclose(steps[0].q_next, steps[1].q_next, atol=1e-12)
    twice = on_floor("sphere", 0.02, qdsim.Softness(2e6, field=field))
    (c,) = qdsim.pressure_surface(twice, q)
    np.testing.assert_allclose(c.force, 2 * np.array(b.force), rtol=1e-13)
    assert pickle.loads(pickle.dumps(given)).parameters.geom_modulus[1] == 1e6


def test_a_field_that_is_not_convex_presses_where_it_is():
    """Two soft cubes in the corners of a rod's box: the middle of the rod rests on nothing, each cube carries half."""
    cube = PressureField.box([0.01, 0.01, 0.01], 1e6)
    count = len(cube.vertices)
    shift = np.array([0.05, 0, 0])
    both = PressureField(
        np.r_[cube.vertices - shift, cube.vertices + shift],
        np.r_[cube.tetrahedra, cube.tetrahedra + count],
        np.r_[cube.pressure, cube.pressure],
    )
    model = on_floor("box", (0.06, 0.01, 0.01), both)
    q = pose(model, (0, 0, 0.0095))
    (surface,) = qdsim.pressure_surface(model, q)
    side = 0.02
    depth = 5e-4
    closed = 1e6 / 0.01 * (side * side * depth - 2 * side * depth**2 + 4 * depth**3 / 3)
    np.testing.assert_allclose(surface.force, [0, 0, 2 * closed], rtol=1e-10, atol=1e-9)
    assert np.abs(surface.polygons["centre"][:, 0]).min() > 0.04
    step = qdsim.step(model, q, [], qdsim.Options(h=0.01, epsilon=1e-6), tau=[0, 0, -30.0, 0, 0, 0])
    (rest,) = qdsim.pressure_surface(model, step.q_next)
    assert step.info.soft_converged and rest.force[2] == pytest.approx(30.0, rel=1e-4)


def test_files_take_fields_by_name():
    text = """<mujoco><option gravity="0 0 0"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 0.0195"><freejoint/><geom name="tip" type="ellipsoid" size="0.03 0.025 0.02"/></body>
    </worldbody></mujoco>"""
    field = PressureField.ellipsoid([0.03, 0.025, 0.02], 3e5, hint=0.01)
    model = qdsim.load(text, soft={"tip": field})
    (surface,) = qdsim.pressure_surface(model, model.default_q)
    assert surface.force[2] > 0 and model.parameters.geom_modulus[1] == 3e5


@pytest.mark.parametrize(
    ("kind", "size", "radius"),
    [
        ("sphere", 0.02, 0.021),
        ("box", (0.025, 0.02, 0.025), 0.021),
        ("capsule", (0.02, 0.005), 0.021),
        ("cylinder", (0.02, 0.025), 0.021),
        ("ellipsoid", (0.02, 0.025, 0.025), 0.021),
    ],
)
def test_fields_outside_of_their_shape_are_refused(kind, size, radius):
    on_floor(kind, size, PressureField.sphere(0.95 * radius, 1e6, hint=0.01))
    with pytest.raises(
        ValueError, match=r"geom 'body': soft: vertex \d+ of the field lies 0.001 m"
    ):
        on_floor(kind, size, PressureField.sphere(radius, 1e6, hint=0.01))


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("sphere", 0.05),
        ("box", (0.02, 0.02, 0.05)),
        ("capsule", (0.02, 0.03)),
        ("cylinder", (0.02, 0.05)),
        ("ellipsoid", (0.02, 0.02, 0.05)),
    ],
)
def test_fields_far_inside_of_their_shape_are_named(kind, size):
    """Pressure and rest are those of the field all the same; only the way there takes more steps."""
    field = PressureField.sphere(0.02, 1e6, hint=0.005)
    with pytest.warns(qdsim.ModelWarning, match="geom 'body': soft: the field ends 0.03 m inside"):
        loose = on_floor(kind, size, field)
    close = on_floor("sphere", 0.02, field)
    rests = []
    for model in (loose, close):
        q = pose(model, (0, 0, 0.022))
        for _ in range(4):
            step = qdsim.step(model, q, [], qdsim.Options(h=0.01), tau=[0, 0, -20, 0, 0, 0])
            q = step.q_next
        assert step.info.soft_converged
        rests.append(q)
    np.testing.assert_allclose(*rests, atol=1e-8)


def test_resolutions_that_cannot_be_had_are_named(monkeypatch):
    """Edges as long as said, or a warning that says how long they are."""
    monkeypatch.setattr(tessellation, "_FINEST", 3)
    monkeypatch.setattr(tessellation, "_MOST_AROUND", 20)
    for make, size, kind in (
        (PressureField.sphere, (0.02,), "sphere"),
        (PressureField.cylinder, (0.02, 0.03), "cylinder"),
    ):
        with pytest.warns(
            qdsim.ModelWarning, match="hint: 1e-05 m is finer than this shape allows"
        ):
            make(*size, 1e6, hint=1e-5)
        least = tessellation.finest(kind, size)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            field = make(*size, 1e6, hint=least)
        surface = RigidSurface.of(field)
        corners = surface.vertices[surface.triangles]
        lengths = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
        assert (
            kind != "sphere" or lengths.max() < 1.6 * least
        )  # an octahedron's faces stretch so far
    thin = qdsim.SceneBuilder()
    thin.body("needle", mass=1.0)
    thin.joint("needle", "free")
    thin.geom("needle", "ellipsoid", (1e-3, 1e-3, 1.0), soft=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qdsim.build(thin.build())


def test_fields_that_make_no_sense_are_named():
    field = PressureField.sphere(0.02, 1e6, hint=0.01)
    with pytest.raises(TypeError, match="field must be a PressureField or None, got str"):
        qdsim.Softness(field="ball")
    with pytest.raises(ValueError, match="hint has no effect on a field of its own"):
        qdsim.Softness(field=field, hint=0.01)
    with pytest.raises(TypeError, match="modulus must be a number, got None"):
        qdsim.Softness()
    scene = qdsim.SceneBuilder()
    with pytest.raises(ValueError, match="'floor': soft: a plane has no field of tetrahedra"):
        scene.geom("world", "plane", name="floor", soft=field)


def beside_a_ring(kind, size, soft=None):
    """A ring of tetrahedra from arrays in the tin that encloses it, and another body."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    scene.geom("world", "cylinder", (0.0851, 0.0251), name="ring", soft=RING)
    scene.body("body", mass=0.1)
    scene.joint("body", "free")
    scene.geom("body", kind, size, name="body", soft=soft)
    return qdsim.build(scene.build())


RING = torus(1e5)
SHARP = PressureField.box([0.02, 0.03, 0.015], 2e5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "size", "body"),
    [
        ("box", (0.02, 0.03, 0.015), RigidSurface.of(SHARP)),
        ("box", (0.02, 0.03, 0.015), SHARP),
        ("cylinder", (0.0851, 0.0251), RING),
    ],
    ids=["rigid box", "soft box", "its equal"],
)
def test_a_ring_from_arrays_presses_where_it_is(kind, size, body):
    """Bounded by a tin without a hole, it misses no patch and adds none: in any pose, in the hollow, flush, its own equal
    included; its wrench is that of the tetrahedra alone, and of a slow clipper."""
    soft = body if isinstance(body, PressureField) else None
    model = beside_a_ring(kind, size, soft)
    rng = np.random.default_rng(4)
    poses = [random_pose(rng, 0.05) for _ in range(40)]
    flush = RING.vertices[:, 2].max() + np.array(body.vertices)[:, 2].max()
    poses += [pose_of((0.06, 0, flush - d)) for d in (-1e-9, 0.0, 1e-4, 2e-3)]
    poses += [pose_of(x) for x in ((0, 0, 0), (0, 0, 0.02), (0.005, 0, 0), (0, 0, 1e-3))]
    met = 0
    for k, q in enumerate(poses):
        found = qdsim.pressure_surface(model, q)
        expected = pressure_patch(RING, body, STILL, q)
        assert len(found) == (expected.count > 0)
        if not found:
            continue
        met += 1
        unit = expected.total_pressure + 1e-12
        np.testing.assert_allclose(found[0].force, expected.force, atol=1e-9 * unit)
        np.testing.assert_allclose(found[0].moment, expected.moment, atol=1e-10 * unit)
        if k % 12 == 0:
            slow = slow_patch(body, RING, q, STILL)
            np.testing.assert_allclose(-slow[:3], expected.force, atol=1e-10 * unit)
            assert slow[6] == pytest.approx(expected.area, rel=1e-9)
    assert met >= 15


def test_a_ball_falls_through_a_ring():
    """Nothing holds it there; the tin only bounds how far a step believes patches, and says so."""
    model = beside_a_ring("sphere", 0.02)
    q = np.array(pose_of((0.002, 0.001, 0.06)))
    flags = []
    for _ in range(12):
        step = qdsim.step(model, q, [], qdsim.Options(h=0.05, epsilon=1.0))
        assert not (step.contacts["dim"] == 6).any()
        q = step.q_next
        flags.append(step.info.soft_converged)
    np.testing.assert_allclose(q[:2], [0.002, 0.001], atol=1e-9)
    assert q[2] < -0.05 and flags[-1] and not all(flags)


# ---------------------------------------------------------------- files


def soft_scene(numbers):
    """A layer, a ball, and a ring of tetrahedra in a tin, all soft; names with blanks."""
    scene = qdsim.SceneBuilder()
    layer = qdsim.Softness(1e6, 2.0, thickness=0.05)
    scene.geom("world", "plane", name="my floor", soft=layer)
    soft = {"ball": qdsim.Softness(3e5, 0.5, hint=0.007), "a ring": numbers}
    for k, (kind, size) in enumerate((("sphere", 0.03), ("cylinder", (0.09, 0.03)))):
        name = ("ball", "a ring")[k]
        scene.body(name, pos=(0.2 * k, 0, 0.029), mass=1.0)
        scene.joint(name, "free")
        scene.geom(name, kind, size, name=name, soft=soft[name])
    return qdsim.build(scene.build())


@pytest.mark.parametrize(
    "ring", [torus(1e5), qdsim.Softness(3e5, 1.5, field=torus(1e5))], ids=["own", "scaled"]
)
def test_files_keep_all_that_makes_a_geometry_soft(ring):
    """Modulus, dissipation, resolution, thickness and tetrahedra, to the last bit, so that steps have the same bits;
    from the text and from what MuJoCo makes of it."""
    mujoco = pytest.importorskip("mujoco")
    model = soft_scene(ring)
    text = model.description.to_mjcf()
    q = model.default_q
    step = qdsim.step(model, q, [], qdsim.Options(h=0.02, epsilon=1.0))
    assert {model.geom_names[g] for g in step.contacts["geom_b"]} == {"ball", "a ring"}
    for source in (text, mujoco.MjModel.from_xml_string(text)):
        again = qdsim.load(source)
        for one, other in zip(model.description.geoms, again.description.geoms):
            kept = [(s.modulus, s.dissipation, s.hint, s.thickness) for s in (one.soft, other.soft)]
            assert kept[0] == kept[1]
        field = again.description.geoms[2].soft.field
        for part in ("vertices", "tetrahedra", "pressure"):
            np.testing.assert_array_equal(getattr(field, part), getattr(torus(1e5), part))
        loaded = qdsim.step(again, q, [], qdsim.Options(h=0.02, epsilon=1.0))
        assert loaded.q_next.tobytes() == step.q_next.tobytes()
    changed = model.with_parameters(geom_modulus=[1e6, 3e5, 7e5])
    kept = qdsim.load(changed.description.to_mjcf()).parameters.geom_modulus
    np.testing.assert_array_equal(kept, [1e6, 3e5, 7e5])


def test_a_file_may_say_tetrahedra_alone():
    """Without a numeric the modulus is that of the pressure."""
    field = PressureField.box([0.03, 0.02, 0.01], 4e5)
    text = qdsim.SceneBuilder()
    text.body("box", mass=1.0)
    text.joint("box", "free")
    text.geom("box", "box", (0.03, 0.02, 0.01), name="box", soft=field)
    whole = text.build().to_mjcf()
    start = whole.index("<numeric")
    alone = whole[:start] + whole[whole.index("/>", start) + 2 :]
    soft = qdsim.load(alone).description.geoms[0].soft
    assert (soft.modulus, soft.dissipation) == (4e5, 0.0)
    for old, new, words in (
        ("soft:box tetra", "soft:bax tetra", "no geom is named 'bax'"),
        ("soft:box pressure", "box pressure", "there is none of pressure"),
        ('tetrahedra" data="', 'tetrahedra" data="1.5 ', "tetrahedra: expected numbers"),
        ('vertices" data="', 'vertices" data="1.5 ', "vertices: expected rows of 3"),
        ('pressure" data="0.0', 'pressure" data="9.0', "lies on the surface"),
    ):
        assert old in whole
        with pytest.raises(ValueError, match=words):
            qdsim.load(whole.replace(old, new))
