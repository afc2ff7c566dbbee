"""Convex meshes: against MuJoCo and closed forms, standing in steps, from files of all kinds, and as
pieces of what is not convex."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import struct
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import qdsim
from qdsim.description import Mesh, SceneBuilder
from qdsim.description.arrays import model_arrays, rotation_matrix
from qdsim.formats import decompose, load_description

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
PUSH = qdsim.Options(h=0.01)


def random_quaternion(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def sphere_points(rng: np.random.Generator, count: int, radius: float) -> np.ndarray:
    points = rng.normal(size=(count, 3))
    return radius * points / np.linalg.norm(points, axis=1)[:, None]


def prism_points(sides: int, radius: float, half: float) -> np.ndarray:
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.concatenate([np.c_[ring, np.full(sides, z)] for z in (-half, half)])


def vertex_text(points: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in points.ravel())


def two_meshes(a: np.ndarray, b: np.ndarray | str) -> str:
    """Two free bodies; b is a mesh or the attributes of another geometry."""
    second = f'<mesh name="b" vertex="{vertex_text(b)}"/>' if not isinstance(b, str) else ""
    shape = 'type="mesh" mesh="b"' if not isinstance(b, str) else b
    return f"""<mujoco><asset><mesh name="a" vertex="{vertex_text(a)}"/>{second}</asset><worldbody>
      <body name="A"><freejoint/><geom name="a" type="mesh" mesh="a" mass="1"/></body>
      <body name="B"><freejoint/><geom name="b" {shape} mass="1"/></body></worldbody></mujoco>"""


def random_pose(rng: np.random.Generator, apart: float) -> np.ndarray:
    direction = rng.normal(size=3)
    direction *= apart / np.linalg.norm(direction)
    return np.concatenate([np.zeros(3), random_quaternion(rng), direction, random_quaternion(rng)])


def free_mesh(points: np.ndarray, pos: Any, *, friction: float = 0.5, mass: float = 1.0) -> Any:
    """A mesh that can fall on a plane."""
    builder = SceneBuilder()
    builder.geom("world", "plane", friction=friction)
    builder.body("thing", pos=pos, mass=mass)
    builder.joint("thing", "free")
    builder.mesh("shape", points)
    builder.geom("thing", "mesh", mesh="shape", friction=friction, name="thing")
    return qdsim.build(builder.build())


class TestDistance:
    @pytest.mark.parametrize("count", [12, 300, 5000])
    def test_two_meshes_as_mujoco(self, count: int) -> None:
        """MuJoCo's own GJK is good to some 1e-6 of the size; its EPA may miss the least depth."""
        rng = np.random.default_rng(count)
        points = [sphere_points(rng, count, 0.1) * (1.0, 0.8, 0.5) for _ in range(2)]
        source = two_meshes(*points)
        model, theirs = qdsim.load(source), mujoco.MjModel.from_xml_string(source)
        data = mujoco.MjData(theirs)
        deeper = 0
        for _ in range(40):
            q = random_pose(rng, rng.uniform(0.1, 0.25))
            data.qpos[:] = q
            mujoco.mj_kinematics(theirs, data)
            distance = mujoco.mj_geomDistance(theirs, data, 0, 1, 1.0, None)
            contacts = model.collide(q, margin=1.0)
            ours = contacts["dist"].min()
            if distance > 0.0:
                assert ours == pytest.approx(distance, abs=1e-7)
            else:
                assert ours >= distance - 1e-7
                deeper += ours < distance + 1e-7
        assert deeper > 0

    @pytest.mark.parametrize(
        "shape",
        [
            'type="sphere" size="0.05"',
            'type="capsule" size="0.03 0.06"',
            'type="box" size="0.03 0.04 0.05"',
            'type="cylinder" size="0.03 0.05"',
            'type="ellipsoid" size="0.03 0.05 0.07"',
        ],
    )
    def test_other_shapes_as_mujoco(self, shape: str) -> None:
        rng = np.random.default_rng(3)
        source = two_meshes(sphere_points(rng, 60, 0.1) * (1.0, 0.7, 0.5), shape)
        model, theirs = qdsim.load(source), mujoco.MjModel.from_xml_string(source)
        data = mujoco.MjData(theirs)
        for _ in range(40):
            q = random_pose(rng, 0.25)
            data.qpos[:] = q
            mujoco.mj_kinematics(theirs, data)
            distance = mujoco.mj_geomDistance(theirs, data, 0, 1, 1.0, None)
            ours = model.collide(q, margin=1.0)["dist"].min()
            assert ours == pytest.approx(distance, abs=1e-6)

    def test_box_of_eight_corners_is_a_box(self) -> None:
        rng = np.random.default_rng(4)
        for other, size in (("box", (0.3, 0.2, 0.1)), ("sphere", 0.2), ("capsule", (0.1, 0.3))):
            models = []
            for kind in ("box", "mesh"):
                builder = SceneBuilder()
                builder.mesh("box", CUBE * (0.1, 0.2, 0.3))
                for name in ("A", "B"):
                    builder.body(name, mass=1.0, inertia=(1, 1, 1))
                    builder.joint(name, "free")
                if kind == "box":
                    builder.geom("A", "box", (0.1, 0.2, 0.3))
                else:
                    builder.geom("A", "mesh", mesh="box")
                builder.geom("B", other, size)  # type: ignore[arg-type]
                models.append(qdsim.build(builder.build()))
            for _ in range(30):
                q = random_pose(rng, rng.uniform(0.1, 0.6))
                box, mesh = (model.collide(q, margin=1.0)["dist"].min() for model in models)
                assert mesh == pytest.approx(box, abs=1e-10)

    def test_round_mesh_is_almost_a_sphere(self) -> None:
        rng = np.random.default_rng(5)
        model = qdsim.load(two_meshes(sphere_points(rng, 5000, 0.1), 'size="0.05"'))
        for _ in range(50):
            q = random_pose(rng, rng.uniform(0.06, 0.3))
            ours = model.collide(q, margin=1.0)["dist"].min()
            assert ours == pytest.approx(np.linalg.norm(q[7:10]) - 0.15, abs=1e-3)


class TestDerivative:
    @pytest.mark.parametrize("count", [8, 100])
    def test_step_through_touching(self, count: int) -> None:
        """A and B of a step with a mesh against central differences of the step itself."""
        rng = np.random.default_rng(count)
        points = CUBE * 0.05 if count == 8 else sphere_points(rng, count, 0.05)
        builder = SceneBuilder()
        builder.mesh("shape", points)
        builder.body("thing", pos=(0, 0, 0.05), mass=0.3)
        builder.joint("thing", "free")
        builder.geom("thing", "mesh", mesh="shape", friction=0.5)
        builder.body("pusher", pos=(-0.1, 0.003, 0.06))
        builder.joint("pusher", "slide", axis=(1, 0, 0), name="push")
        builder.geom("pusher", "sphere", 0.02, friction=0.5)
        builder.geom("world", "plane", friction=0.5)
        builder.actuator("push", 500.0)
        model = qdsim.build(builder.build())
        q, options = model.default_q.copy(), qdsim.Options(h=0.1, kappa=1e3)
        q[2] += 0.002
        linear = qdsim.linearize(model, q, [0.04], options)
        step = 1e-6
        for i in range(model.nv):
            v = np.zeros(model.nv)
            v[i] = step
            plus = qdsim.step(model, model.integrate(q, v), [0.04], options).q_next
            minus = qdsim.step(model, model.integrate(q, -v), [0.04], options).q_next
            quotient = model.difference(plus, minus) / (2 * step)
            np.testing.assert_allclose(linear.A[:, i], quotient, atol=2e-5)


class TestStanding:
    @pytest.mark.parametrize("points", [CUBE * 0.1, prism_points(6, 0.1, 0.1)], ids=["cube", "hex"])
    def test_on_a_face(self, points: np.ndarray) -> None:
        """Forces add up to the weight, on corners of the lower face, and nothing moves."""
        model = free_mesh(points, (0.1, 0.2, 0.1))
        q = model.default_q
        for _ in range(20):
            result = qdsim.step(model, q, (), PUSH)
            q = result.q_next
        np.testing.assert_allclose(q, model.default_q, atol=1e-9)
        force = sum(c["frame"].T @ c["force"][:3] for c in result.contacts)
        np.testing.assert_allclose(np.abs(force), [0, 0, 9.81], atol=1e-7)
        assert 4 <= len(result.contacts) <= 8
        np.testing.assert_allclose(result.contacts["pos"][:, 2], 0.0, atol=1e-9)

    def test_round_prism(self) -> None:
        """A face of many corners stands on eight of them, the same in every step."""
        model = free_mesh(prism_points(64, 0.1, 0.05), (0, 0, 0.0501))
        q, places = model.default_q, []
        for _ in range(10):
            result = qdsim.step(model, q, (), PUSH)
            q = result.q_next
            places.append(result.contacts["pos"].copy())
        assert all(len(item) == 8 for item in places)
        np.testing.assert_allclose(places[-1], places[1], atol=1e-9)
        np.testing.assert_allclose(q[2], 0.05, atol=1e-7)

    def test_stack_of_meshes(self) -> None:
        builder = SceneBuilder()
        builder.geom("world", "plane", friction=0.8)
        builder.mesh("cube", CUBE * 0.05)
        for i in range(3):
            name = f"cube{i}"
            builder.body(name, pos=(0.01 * i, 0, 0.05 + 0.1 * i), mass=0.5)
            builder.joint(name, "free")
            builder.geom(name, "mesh", mesh="cube", friction=0.8)
        model = qdsim.build(builder.build())
        assert len(model_arrays(model.description)["mesh_vertex_count"]) == 1
        q = model.default_q
        for _ in range(30):
            result = qdsim.step(model, q, (), PUSH)
            q = result.q_next
        np.testing.assert_allclose(q, model.default_q, atol=1e-7)
        ground = result.contacts[result.contacts["body_a"] == 0]
        assert ground["force"][:, 0].sum() == pytest.approx(3 * 0.5 * 9.81, abs=1e-6)

    def test_on_an_edge(self) -> None:
        """A wedge held upright by a slide stands on its edge with both ends."""
        wedge = np.array(
            [[x, y, z] for x in (-0.2, 0.2) for y, z in ((0, 0), (0.1, 0.2), (-0.1, 0.2))]
        )
        builder = SceneBuilder()
        builder.geom("world", "plane")
        builder.mesh("wedge", wedge)
        builder.body("wedge", pos=(0, 0, 0.01), mass=2.0)
        builder.joint("wedge", "slide", axis=(0, 0, 1))
        builder.geom("wedge", "mesh", mesh="wedge")
        model = qdsim.build(builder.build())
        q = model.default_q
        for _ in range(30):
            result = qdsim.step(model, q, (), PUSH)
            q = result.q_next
        assert result.contacts["force"][:, 0].sum() == pytest.approx(2.0 * 9.81, abs=1e-6)
        low = result.contacts[result.contacts["dist"] < 1e-9]
        assert sorted(low["pos"][:, 0].round(9)) == [-0.2, 0.2]

    @pytest.mark.parametrize("noise", [3e-4, 3e-3])
    def test_on_a_bumpy_face(self, noise: float) -> None:
        """A block as it was measured: its underside is a heap of small triangles. In long steps, too,
        it stays where it is."""
        rng = np.random.default_rng(1)
        grid = np.stack(np.meshgrid(*[np.linspace(-0.05, 0.05, 12)] * 2), axis=-1).reshape(-1, 2)
        points = np.concatenate([np.c_[grid, np.full(144, z)] for z in (-0.05, 0.05)])
        points[:, 2] += noise * rng.normal(size=288)
        model = free_mesh(points, (0, 0, 0.0505 + 2 * noise))
        q = model.default_q
        for _ in range(60):
            result = qdsim.step(model, q, (), qdsim.Options(h=0.1))
            q = result.q_next
        moved = model.difference(q, model.default_q)
        assert np.abs(moved[[0, 1, 3, 4, 5]]).max() < 20 * noise
        assert model.collide(q)["dist"].min() > -noise

    def test_tumbling_mesh_comes_to_rest_on_a_face(self) -> None:
        rng = np.random.default_rng(6)
        points = sphere_points(rng, 30, 0.05) * (1.0, 0.8, 0.6)
        model = free_mesh(points, (0, 0, 0.06), friction=0.7)
        q = model.default_q.copy()
        q[3:7] = random_quaternion(rng)
        for _ in range(300):
            result = qdsim.step(model, q, (), qdsim.Options(h=0.02))
            moved = np.abs(model.difference(result.q_next, q)).max()
            q = result.q_next
        assert moved < 1e-6
        lowest = (rotation_matrix(q[3:7]) @ points.T).T[:, 2] + q[2]
        assert lowest.min() == pytest.approx(0.0, abs=1e-5)
        assert np.sum(lowest < 1e-4) >= 3


class TestModels:
    def test_copies_and_batches(self) -> None:
        rng = np.random.default_rng(7)
        model = free_mesh(sphere_points(rng, 50, 0.1), (0, 0, 0.12))
        q = model.default_q
        expected = qdsim.step(model, q, (), PUSH).q_next
        for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(qdsim.step(other, q, (), PUSH).q_next, expected)
        batch = qdsim.step_batch(model, np.tile(q, (9, 1)), np.zeros((9, 0)), PUSH, threads=2)
        np.testing.assert_array_equal(batch.q_next, np.tile(expected, (9, 1)))

    def test_results_do_not_depend_on_history(self) -> None:
        rng = np.random.default_rng(8)
        model = qdsim.load(two_meshes(*(sphere_points(rng, 500, 0.1) for _ in range(2))))
        poses = [random_pose(rng, rng.uniform(0.1, 0.25)) for _ in range(20)]
        first = [model.collide(q, margin=1.0) for q in poses]
        for i in reversed(range(20)):
            np.testing.assert_array_equal(model.collide(poses[i], margin=1.0), first[i])

    def test_inertia_of_an_evenly_filled_hull(self) -> None:
        """A box made of its corners, away from the body's origin."""
        bodies = []
        for kind in ("box", "mesh"):
            builder = SceneBuilder()
            builder.mesh("m", CUBE * (0.1, 0.2, 0.3) + (1, 2, 3))
            builder.body("b", mass=2.0)
            builder.geom("b", "box", (0.05, 0.05, 0.05), pos=(0.5, 0, 0))
            quat = np.array([0.5, 0.5, 0.5, 0.5])
            if kind == "box":
                pos = rotation_matrix(quat) @ (1, 2, 3)
                builder.geom("b", "box", (0.1, 0.2, 0.3), pos=pos, quat=quat)
            else:
                builder.geom("b", "mesh", mesh="m", quat=quat)
            bodies.append(builder.build().bodies[1])
        np.testing.assert_allclose(bodies[0].com, bodies[1].com, rtol=1e-12)
        np.testing.assert_allclose(bodies[0].inertia, bodies[1].inertia, atol=1e-10)

    def test_written_and_read_again(self) -> None:
        rng = np.random.default_rng(9)
        model = free_mesh(sphere_points(rng, 40, 0.1) + (0.05, 0, 0), (0, 0, 0.2))
        again = qdsim.load(model.description.to_mjcf())
        q = model.default_q.copy()
        for _ in range(5):
            q[3:7] = random_quaternion(rng)
            ours, theirs = (m.collide(q, margin=1.0)["dist"].min() for m in (model, again))
            assert theirs == pytest.approx(ours, abs=1e-7)

    def test_limited_hull_is_kept(self) -> None:
        """MuJoCo's maxhullvert is part of the shape, also when the scene is written."""
        points = sphere_points(np.random.default_rng(10), 200, 1.0)
        source = f"""<mujoco><asset><mesh name="m" maxhullvert="20" vertex="{vertex_text(points)}"/>
          </asset><worldbody><geom type="plane" size="1 1 1"/>
          <body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
        description = load_description(source)
        assert len(np.unique(description.meshes[0].hull_faces)) == 20
        again = load_description(description.to_mjcf())
        assert len(np.unique(again.meshes[0].hull_faces)) == 20

    def test_scale_reference_and_place(self) -> None:
        """Collisions happen where the file says the vertices are."""
        rng = np.random.default_rng(11)
        points = sphere_points(rng, 30, 0.1)
        scale, refpos = np.array([1.0, 2.0, -0.5]), np.array([0.1, 0.2, 0.3])
        refquat, quat = random_quaternion(rng), random_quaternion(rng)
        text = [" ".join(map(repr, item.tolist())) for item in (scale, refpos, refquat, quat)]
        source = f"""<mujoco><asset><mesh name="m" vertex="{vertex_text(points)}" scale="{text[0]}"
            refpos="{text[1]}" refquat="{text[2]}"/></asset><worldbody>
          <geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/>
          <geom type="mesh" mesh="m" pos="0.3 0.1 0.2" quat="{text[3]}"/></body></worldbody></mujoco>"""
        model = qdsim.load(source)
        own = (points - refpos) @ rotation_matrix(refquat) * scale
        placed = own @ rotation_matrix(quat).T + (0.3, 0.1, 0.2) + (0, 0, 1)
        lowest = model.collide(model.default_q, margin=np.inf)["dist"].min()
        assert lowest == pytest.approx(placed[:, 2].min(), abs=1e-6)


class TestErrors:
    @pytest.mark.parametrize(
        ("points", "words"),
        [
            (CUBE[:3], "four vertices"),
            (CUBE * (1, 1, 0), "in a plane"),
            (np.zeros((8, 3)), "in a plane, a line or a point"),
            (np.outer(np.arange(8), (1, 2, 3)), "in a plane, a line"),
        ],
    )
    def test_degenerate_hulls(self, points: np.ndarray, words: str) -> None:
        with pytest.raises(ValueError, match=f"mesh 'flat': .*{words}"):
            Mesh("flat", points)

    def test_bad_arrays(self) -> None:
        with pytest.raises(ValueError, match="mesh 'm': vertices must be finite"):
            Mesh("m", [[0, 0, np.nan]] * 4)
        with pytest.raises(ValueError, match="mesh 'm': hull name vertices that do not exist"):
            Mesh("m", CUBE, hull=[[0, 1, 8]])
        with pytest.raises(ValueError, match="mesh 'm': faces must have shape"):
            Mesh("m", CUBE, [[0, 1, 2, 3]])

    def test_bad_hulls_are_refused_by_the_core(self) -> None:
        hull = Mesh("m", CUBE).hull_faces
        for wrong, words in (
            (hull[:-1], "not closed"),
            (hull[:, ::-1], "counterclockwise"),
            (hull[:2], "four faces"),
        ):
            description = free_mesh(CUBE, (0, 0, 2)).description
            mesh = Mesh("shape", CUBE, hull, wrong)
            with pytest.raises(ValueError, match=f"^mesh 'shape': its hull: .*{words}"):
                qdsim.build(dataclasses.replace(description, meshes=(mesh,)))

    def test_arrays_are_read_only_copies(self) -> None:
        points = CUBE.copy()
        mesh = Mesh("m", points)
        points[:] = 0.0
        assert mesh.vertices.max() == 1.0
        for array in (mesh.vertices, mesh.faces, mesh.hull_faces):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# ---------------------------------------------------------------- files


def text_stl(points: np.ndarray, faces: np.ndarray) -> bytes:
    lines = ["solid shape"]
    for corners in points[faces]:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += ["vertex " + " ".join(repr(float(x)) for x in corner) for corner in corners]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid shape", ""]).encode()


def binary_stl(points: np.ndarray, faces: np.ndarray) -> bytes:
    content = b"solid but binary".ljust(80) + struct.pack("<I", len(faces))
    for corners in points[faces]:
        content += struct.pack("<12fH", 0, 0, 0, *corners.ravel(), 0)
    return content


def exported(kind: str) -> bytes:
    mesh = Mesh("m", CUBE)
    if kind == "stl":
        return text_stl(mesh.vertices, mesh.faces)
    trimesh = pytest.importorskip("trimesh")
    if kind == "dae":
        pytest.importorskip("collada")
    content = trimesh.Trimesh(mesh.vertices, mesh.faces).export(file_type=kind)
    return content.encode() if isinstance(content, str) else bytes(content)


URDF = """<robot name="r"><link name="world"/><link name="o"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="{}" scale="1 2 3"/></geometry></collision>
  <collision><geometry><mesh filename="{}"/></geometry></collision></link>
  <joint name="f" type="floating"><parent link="world"/><child link="o"/></joint></robot>"""
MJCF = """<mujoco><compiler meshdir="parts"/><asset><mesh file="part.{}" scale="1 2 3"/></asset>
  <worldbody><geom type="plane" size="1 1 1"/><body><freejoint/><geom type="mesh" mesh="part"/>
  </body></worldbody></mujoco>"""


class TestFiles:
    @pytest.mark.parametrize("kind", ["dae", "ply", "glb", "off", "stl"])
    def test_formats_that_mujoco_does_not_read(self, kind: str, tmp_path: Path) -> None:
        pytest.importorskip("trimesh")
        content = exported(kind)
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / f"part.{kind}").write_bytes(content)
        urdf, mjcf = tmp_path / "r.urdf", tmp_path / "scene.xml"
        urdf.write_text(URDF.format(f"package://parts/part.{kind}", f"parts/part.{kind}"))
        mjcf.write_text(MJCF.format(kind))
        descriptions = [
            load_description(urdf),
            load_description(URDF.format(*[f"part.{kind}"] * 2), assets={f"part.{kind}": content}),
            load_description(mjcf),
            load_description(MJCF.format(kind), assets={f"part.{kind}": content}),
        ]
        for description in descriptions:
            geom = next(geom for geom in description.geoms if geom.type == "mesh")
            mesh = next(mesh for mesh in description.meshes if mesh.name == geom.mesh)
            placed = mesh.vertices @ rotation_matrix(geom.quat).T + geom.pos
            np.testing.assert_allclose(placed.max(axis=0), (1, 2, 3), atol=1e-6)
            np.testing.assert_allclose(placed.min(axis=0), (-1, -2, -3), atol=1e-6)
        assert len(descriptions[0].meshes) == 2

    def test_binary_stl_that_begins_with_solid(self) -> None:
        mesh = Mesh("m", CUBE)
        content = binary_stl(mesh.vertices, mesh.faces)
        source = URDF.format("part.stl", "part.stl")
        description = load_description(source, assets={"part.stl": content})
        assert len(description.meshes) == 2

    def test_open_surface_of_a_urdf(self) -> None:
        """It encloses no volume that MuJoCo would accept; its hull does."""
        points = CUBE.copy()
        faces = np.concatenate(
            [Mesh("m", CUBE).hull_faces[:6], Mesh("m", CUBE).hull_faces[:6, ::-1]]
        )
        content = binary_stl(points, faces)
        source = URDF.format("part.stl", "part.stl")
        description = load_description(source, assets={"part.stl": content})
        assert model_arrays(description)["mesh_vertex"].size == 0
        assert all(len(mesh.hull_faces) >= 4 for mesh in description.meshes)

    def test_units_of_collada(self) -> None:
        content = exported("dae").decode()
        centimetres = content.replace(
            '<unit name="meter" meter="1"', '<unit name="cm" meter="0.01"'
        )
        if centimetres == content:
            centimetres = content.replace("<asset>", '<asset><unit name="cm" meter="0.01"/>', 1)
        source = URDF.format("part.dae", "part.dae")
        description = load_description(source, assets={"part.dae": centimetres.encode()})
        extents = sorted(np.ptp(mesh.vertices, axis=0).max() for mesh in description.meshes)
        np.testing.assert_allclose(extents, (0.02, 0.06), rtol=1e-6)

    def test_files_that_cannot_be_read(self) -> None:
        pytest.importorskip("trimesh")
        for name, content in (
            ("part.ply", b"ply\nnothing"),
            ("part.stl", b"solid nothing\nendsolid"),
            ("part.docx", b"x"),
        ):
            with pytest.raises(ValueError, match=f"link 'o': '{name}' "):
                load_description(URDF.format(name, name), assets={name: content})
        with pytest.raises(ValueError, match=r"mesh '.*': 'part.ply' "):
            load_description(MJCF.format("ply"), assets={"part.ply": b"ply\nnothing"})

    def test_trimesh_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
        with pytest.raises(ImportError, match=r"'part.ply' needs trimesh: pip install"):
            load_description(URDF.format("part.ply", "part.ply"), assets={"part.ply": b"ply"})


# ---------------------------------------------------------------- pieces


def angle_bracket() -> tuple[np.ndarray, np.ndarray]:
    """An L of two square bars, as triangles: two boxes that share a face, without that face."""
    outline = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], dtype=float)
    points = np.concatenate([np.c_[outline, np.full(6, z)] for z in (0.0, 1.0)]) * 0.1
    top = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    faces = [(a + 6, b + 6, c + 6) for a, b, c in top] + [(a, c, b) for a, b, c in top]
    for i in range(6):
        j = (i + 1) % 6
        faces += [(i, j, j + 6), (i, j + 6, i + 6)]
    return points, np.array(faces)


def bracket_scene() -> Any:
    points, faces = angle_bracket()
    builder = SceneBuilder()
    builder.mesh("bracket", points, faces)
    builder.mesh("cube", CUBE * 0.1)
    builder.geom("world", "mesh", mesh="bracket", name="bracket", friction=0.7)
    builder.geom("world", "mesh", mesh="cube", name="cube", pos=(5, 0, 0))
    builder.body("ball", pos=(0.15, 0.15, 0.05), mass=1.0)
    builder.joint("ball", "free")
    builder.geom("ball", "sphere", 0.03, name="ball")
    builder.pair("bracket", "ball", friction=0.3)
    return builder.build()


class TestPieces:
    @pytest.fixture(autouse=True)
    def _coacd(self) -> None:
        pytest.importorskip("coacd")

    @pytest.mark.long
    def test_ball_in_the_corner_of_a_bracket(self, tmp_path: Path) -> None:
        """The hull of the bracket holds the ball; its pieces do not."""
        whole = bracket_scene()
        hull = qdsim.build(whole)
        parts = decompose(whole, cache=tmp_path)
        pieces = qdsim.build(parts)
        q = hull.default_q
        assert hull.collide(q, margin=1.0)["dist"].min() < -0.02
        near = pieces.collide(q, margin=1.0)
        near = near[near["dist"] < 0.1]
        assert near["dist"].min() == pytest.approx(0.02, abs=2e-3)
        np.testing.assert_allclose(near["friction"][:, 0], 0.3)
        names = [geom.name for geom in parts.geoms]
        assert {"bracket", "cube", "bracket_piece0", "bracket_piece1"} <= set(names)
        assert "cube_piece0" not in names
        assert hull.geom_names == ("bracket", "cube", "ball")

    def test_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        coacd = pytest.importorskip("coacd")
        scene, calls = bracket_scene(), []

        def counted(*args: Any, **kw: Any) -> Any:
            calls.append(1)
            part = Mesh("part", CUBE * 0.05)
            return [(part.vertices, part.hull_faces), (part.vertices + 0.1, part.hull_faces)]

        monkeypatch.setattr(coacd, "run_coacd", counted)
        monkeypatch.setenv("QDSIM_CACHE", str(tmp_path / "cache"))
        first = decompose(scene)
        again = decompose(scene)
        assert len(calls) == 1
        assert first == again
        (file,) = (tmp_path / "cache").iterdir()
        file.write_bytes(b"cut")
        assert decompose(scene) == first
        decompose(scene, threshold=0.2)
        decompose(scene, cache=False)
        monkeypatch.setenv("QDSIM_CACHE", "")
        decompose(scene)
        assert len(calls) == 5
        assert len(list((tmp_path / "cache").iterdir())) == 2

    @pytest.mark.long
    def test_load(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QDSIM_CACHE", str(tmp_path))
        points, faces = angle_bracket()
        text = " ".join(str(i) for i in faces.ravel())
        source = f"""<mujoco><asset><mesh name="m" vertex="{vertex_text(points)}" face="{text}"/>
          </asset><worldbody><geom name="bracket" type="mesh" mesh="m"/>
          <body pos="0.15 0.15 0.05"><freejoint/><geom name="ball" size="0.03"/></body>
          </worldbody></mujoco>"""
        for choice in (True, ["bracket"]):
            model = qdsim.load(source, decompose=choice)
            nearest = model.collide(model.default_q, margin=1.0)["dist"].min()
            assert nearest == pytest.approx(0.02, abs=2e-3)
        assert qdsim.load(source).collide(model.default_q, margin=1.0)["dist"].min() < 0

    def test_errors(self) -> None:
        scene = bracket_scene()
        for arguments, words in (
            ({"geoms": ["brackett"]}, "no geom is named 'brackett'"),
            ({"geoms": ["ball"]}, "'ball' is a sphere, not a mesh"),
            ({"threshold": 0.0}, "threshold must be between"),
            ({"pieces": 0}, "pieces must be positive"),
        ):
            with pytest.raises(ValueError, match=words):
                decompose(scene, cache=False, **arguments)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="sequence of names"):
            decompose(scene, "bracket")
