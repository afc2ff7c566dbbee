"""Descriptions and the builder: what is checked, what is written as MJCF, what MuJoCo reads back."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdsim.description import (
    Actuator,
    Body,
    Description,
    Exclude,
    Geom,
    Joint,
    Keyframe,
    Mesh,
    Pair,
    SceneBuilder,
)
from qdsim.description.arrays import model_arrays, rotation_matrix
from qdsim.formats import load_description

WORLD = Body("world")


def scene() -> Description:
    """One of everything that a description can hold."""
    quat = np.array([0.9, 0.1, -0.3, 0.2]) / np.linalg.norm([0.9, 0.1, -0.3, 0.2])
    builder = SceneBuilder(gravity=(0.1, 0.2, -9.0), name="one of everything")
    builder.geom("world", "plane", friction=(0.3, 0.01, 0.002), condim=6, margin=0.01)
    builder.body("object", pos=(0.1, 0.2, 0.3), quat=quat, mass=2.0)
    builder.joint("object", "free")
    builder.geom("object", "box", (0.1, 0.2, 0.3), quat=quat, priority=2, rgba=(1, 0, 0, 1))
    builder.body("base", pos=(1, 0, 0), mass=1.0, com=(0.01, 0, 0), inertia=(0.1, 0.2, 0.15))
    builder.joint("base", "slide", axis=(1, 1, 0), range=(-0.5, 0.25), ref=0.1)
    builder.joint("base", "hinge", stiffness=3.0, springref=0.2, pos=(0.1, 0.0, 0.0))
    builder.geom("base", "capsule", (0.05, 0.1), contype=2, conaffinity=5, margin=0.02)
    builder.body("tip", "base", pos=(0, 0.3, 0), mass=0.5)
    builder.joint("tip", "ball", pos=(0, 0.01, 0))
    builder.geom("tip", "sphere", 0.04, pos=(0, 0, 0.1), condim=4)
    builder.geom("tip", "ellipsoid", (0.01, 0.02, 0.03), contype=0, conaffinity=0)
    builder.body("mast", pos=(0, 2, 0))
    builder.geom("mast", "cylinder", (0.05, 0.5), contype=0, conaffinity=0)
    builder.actuator("base", 40.0, gear=-2.0, range=(-1.0, 2.0))
    builder.actuator("base_joint1", 10.0, name="turn")
    builder.pair("object_geom0", "tip_geom0", friction=0.25, condim=4, margin=0.003)
    builder.exclude("object", "base")
    q = (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0)
    builder.keyframe("home", q, (0.1, 0.3))
    return builder.build()


def assert_same_arrays(a: Description, b: Description, tolerance: float = 1e-12) -> None:
    left, right = model_arrays(a), model_arrays(b)
    assert left.keys() == right.keys()
    for name in left.keys() - {
        "body_invweight",
        "body_turn_invweight",
        "joint_invweight",
        "joint_turn_invweight",
        "tendon_invweight",
    }:  # files leave them to MuJoCo
        assert left[name].dtype == right[name].dtype, name
        np.testing.assert_allclose(left[name], right[name], rtol=tolerance, atol=tolerance)


class TestMjcf:
    def test_round_trip(self) -> None:
        description = scene()
        again = load_description(description.to_mjcf())
        assert_same_arrays(description, again)
        assert again.actuators == description.actuators
        assert again.keyframes == description.keyframes
        assert [body.name for body in again.bodies] == [body.name for body in description.bodies]
        assert again.joints == description.joints
        assert again.name == description.name
        assert again.ignored == ()

    def test_harmonic_friction_survives(self) -> None:
        builder = SceneBuilder(friction_combination="harmonic")
        builder.geom("world", "plane", friction=0.5, name="ground")
        for name, friction in (("a", 1.0), ("b", 0.25)):
            builder.body(name, pos=(0, 0, 1), mass=1.0)
            builder.joint(name, "free")
            builder.geom(name, "sphere", 0.1, friction=friction)
        description = builder.build()
        arrays = model_arrays(description)
        # 2ab / (a + b) with the pairs ground-a, ground-b, a-b
        expected = [2 / 3, 1 / 3, 0.4]
        np.testing.assert_allclose(arrays["pair_friction"][:, 0], expected, rtol=1e-15)
        assert_same_arrays(description, load_description(description.to_mjcf()))

    def test_no_parent_filter_survives(self) -> None:
        builder = SceneBuilder(parent_filter=False)
        builder.body("a", mass=1.0)
        builder.joint("a", "hinge")
        builder.geom("a", "sphere", 0.1)
        builder.body("b", "a", mass=1.0)
        builder.joint("b", "hinge")
        builder.geom("b", "sphere", 0.1)
        description = builder.build()
        assert len(model_arrays(description)["pair_geom"]) == 1
        assert_same_arrays(description, load_description(description.to_mjcf()))

    def test_meshes_keep_their_place(self) -> None:
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=float)
        faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
        builder = SceneBuilder()
        builder.mesh("wedge", corners, faces)
        builder.body("body", mass=1.0, inertia=(1, 1, 1))
        builder.joint("body", "free")
        builder.geom("body", "mesh", mesh="wedge", contype=0, conaffinity=0)
        again = load_description(builder.build().to_mjcf())
        geom, mesh = again.geoms[0], again.meshes[0]
        placed = mesh.vertices @ rotation_matrix(geom.quat).T + geom.pos
        distance = np.linalg.norm(placed[:, None] - corners[None], axis=-1).min(axis=0)
        assert np.all(distance < 1e-6)  # MuJoCo stores vertices as float32

    def test_names_are_escaped(self) -> None:
        builder = SceneBuilder(name='<a & "b">')
        builder.body("5 < 6 & 'x'", mass=1.0, inertia=(1, 1, 1))
        builder.joint("5 < 6 & 'x'", "hinge")
        again = load_description(builder.build().to_mjcf())
        assert again.joints[0].name == "5 < 6 & 'x'"


class TestBuilder:
    @pytest.mark.parametrize(
        ("kind", "size"),
        [
            ("sphere", (0.3,)),
            ("capsule", (0.2, 0.3)),
            ("box", (0.1, 0.2, 0.3)),
            ("cylinder", (0.2, 0.3)),
            ("ellipsoid", (0.1, 0.2, 0.3)),
        ],
    )
    def test_even_filling_is_mujocos(self, kind: str, size: tuple[float, ...]) -> None:
        """Two geometries of the same shape, one turned and moved."""
        quat = np.array([0.5, 0.1, 0.7, 0.2]) / np.linalg.norm([0.5, 0.1, 0.7, 0.2])
        builder = SceneBuilder()
        builder.body("b", mass=3.0)
        builder.joint("b", "free")
        builder.geom("b", kind, size)
        builder.geom("b", kind, size, pos=(0.4, -0.1, 0.2), quat=quat)
        body = builder.build().bodies[1]

        numbers = " ".join(map(str, size))
        turned = " ".join(map(str, quat))
        model = mujoco.MjModel.from_xml_string(
            f"""<mujoco><worldbody><body name="b"><freejoint/>
            <geom type="{kind}" size="{numbers}" mass="1.5"/>
            <geom type="{kind}" size="{numbers}" mass="1.5" pos="0.4 -0.1 0.2" quat="{turned}"/>
            </body></worldbody></mujoco>"""
        )
        axes = rotation_matrix(model.body_iquat[1])
        inertia = axes @ np.diag(model.body_inertia[1]) @ axes.T
        np.testing.assert_allclose(body.com, model.body_ipos[1], atol=1e-12)
        np.testing.assert_allclose(body.inertia, inertia, rtol=1e-9, atol=1e-12)

    def test_bodies_are_sorted_depth_first(self) -> None:
        builder = SceneBuilder()
        for name, parent in (("a", "world"), ("b", "world"), ("a1", "a"), ("b1", "b"), ("a2", "a")):
            builder.body(name, parent, mass=1.0, inertia=(1, 1, 1))
            builder.joint(name, "hinge")
        names = [body.name for body in builder.build().bodies]
        assert names == ["world", "a", "a1", "a2", "b", "b1"]

    def test_default_names(self) -> None:
        builder = SceneBuilder()
        assert builder.body("b", mass=1.0) == "b"
        assert builder.joint("b", "slide") == "b"
        assert builder.joint("b", "hinge") == "b_joint1"
        assert builder.geom("b", "sphere", 1.0) == "b_geom0"
        assert builder.actuator("b", 1.0) == "b"

    def test_errors_name_the_body(self) -> None:
        builder = SceneBuilder()
        builder.body("heavy", mass=1.0)
        with pytest.raises(ValueError, match="heavy"):
            builder.build()
        with pytest.raises(ValueError, match="did you mean 'heavy'"):
            builder.joint("heavi")
        with pytest.raises(ValueError, match="two bodies are named 'heavy'"):
            builder.body("heavy")
        with pytest.raises(ValueError, match="inertia together with com"):
            builder.body("light", mass=1.0, com=(0, 0, 1))


class TestChecks:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: Joint("j", "screw"), "joint 'j': type"),
            (lambda: Joint("j", axis=(0, 0, 0)), "joint 'j': axis"),
            (lambda: Joint("j", axis=(0, 0)), "axis must hold 3"),
            (lambda: Joint("j", pos=(0, 0, float("nan"))), "pos must be finite"),
            (lambda: Joint("j", range=(1, 1)), "lower < upper"),
            (lambda: Joint("j", range=(1, float("nan"))), "lower < upper"),
            (lambda: Joint("j", stiffness=-1), "stiffness must not be negative"),
            (lambda: Joint("j", "ball", range=(-1, 1)), "range of a ball joint must be 0 and"),
            (lambda: Joint("j", "free", range=(0, 1)), "joint 'j'"),
            (lambda: Joint(""), "name must not be empty"),
            (lambda: Geom("g", "cube", 1.0), "geom 'g': type"),
            (lambda: Geom("g", "box", (1, 2)), "a box needs 3 sizes"),
            (lambda: Geom("g", "sphere", -1.0), "size must be positive"),
            (lambda: Geom("g", "sphere", 1.0, friction=-0.1), "friction must not be negative"),
            (lambda: Geom("g", "sphere", 1.0, condim=2), "condim must be 1, 3, 4 or 6"),
            (lambda: Geom("g", "sphere", 1.0, quat=(0, 0, 0, 0)), "unit quaternion"),
            (lambda: Geom("g", "sphere", 1.0, margin=-1.0), "margin must not be negative"),
            (lambda: Geom("g", "mesh"), "needs the name of a mesh"),
            (lambda: Body("b", mass=-1.0), "body 'b': mass"),
            (lambda: Body("b", inertia=(1, -1, 1)), "positive semidefinite"),
            (lambda: Body("b", inertia=np.arange(9).reshape(3, 3)), "symmetric"),
            (lambda: Body("b", quat=(1, 0, 0, 0.1)), "unit quaternion"),
            (lambda: Body("b", joints=(Joint("f", "free"), Joint("h"))), "'f' is free"),
            (lambda: Body("b", "a", joints=(Joint("f", "free"),)), "'f' is free"),
            (lambda: Body("world", joints=(Joint("h"),)), "the world has no joints"),
            (lambda: Actuator("a", "j", -1.0), "stiffness must not be negative"),
            (lambda: Actuator("a", "j", damping=-1.0), "damping must not be negative"),
            (lambda: Actuator("a", "j", gain=float("nan")), "gain must be finite"),
            (lambda: Actuator("a", "j", gear=float("nan")), "gear must be finite"),
            (lambda: Actuator("a", "j", gain_slope=(1.0,)), "gain_slope must hold 2 numbers"),
            (lambda: Actuator("a", "j", float("inf")), "stiffness must be finite"),
            (lambda: Actuator("a", "j", 1.0, gear=0.0), "gear must not be zero"),
            (lambda: Pair("g", "g"), "cannot touch itself"),
            (lambda: Pair("g", "h", friction=(1, 2, 0, 0, 0)), "two different sliding"),
            (lambda: Pair("g", "h", 6, (1, 1, 0, 1, 2)), "two different rolling"),
            (lambda: Mesh("m", [[0, 0, 0]], [[0, 0, 1]]), "vertices that do not exist"),
        ],
    )
    def test_values(self, make: object, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            make()  # type: ignore[operator]

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Joint(3),
            lambda: Joint("j", pos="abc"),
            lambda: Joint("j", ref="1"),
            lambda: Joint("j", range=3.0),
            lambda: Geom("g", "sphere", 1.0, priority=1.5),
            lambda: Body("b", joints=Joint("j")),
            lambda: Body("b", geoms=(Joint("j"),)),
            lambda: Description(bodies=3),
            lambda: Actuator("a", "j", True),
        ],
    )
    def test_types(self, make: object) -> None:
        with pytest.raises(TypeError):
            make()  # type: ignore[operator]

    def test_unused_anisotropy_is_harmless(self) -> None:
        assert Pair("g", "h", 1, (1, 2, 0, 1, 2)).condim == 1
        assert Pair("g", "h", 3, (1, 1, 0, 1, 2)).condim == 3

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"bodies": ()}, "first body must be the world"),
            ({"bodies": (WORLD, Body("b", "c"))}, "body 'b': no body is named 'c'"),
            ({"bodies": (WORLD, Body("b"), Body("b"))}, "two bodies are named 'b'"),
            (
                {"bodies": (WORLD, Body("a"), Body("b"), Body("c", "a"))},
                "body 'c': bodies must be listed depth first",
            ),
            ({"bodies": (WORLD, Body("b", "b"))}, "body 'b': bodies must be listed"),
            ({"actuators": (Actuator("a", "x", 1.0),)}, "actuator 'a': no joint is named 'x'"),
            (
                {"actuators": (Actuator("a", "h", 1.0), Actuator("a", "h", 1.0))},
                "two actuators are named 'a'",
            ),
            ({"actuators": (Actuator("a", "ball", 1.0),)}, "joint 'ball' is a ball joint"),
            ({"excludes": (Exclude("b", "x"),)}, "no body is named 'x'"),
            ({"pairs": (Pair("g", "x"),)}, "no geom is named 'x'"),
            ({"pairs": (Pair("g", "g2"), Pair("g2", "g"))}, "given twice"),
            ({"keyframes": (Keyframe("k", (0.0,)),)}, "keyframe 'k': q must hold 5"),
            ({"keyframes": (Keyframe("k", (0.0, 1, 0, 0, 0), (1.0,)),)}, "u must hold 0"),
            ({"keyframes": (Keyframe("k", (0.0, 0, 0, 0, 0)),)}, "q of joint 'ball'"),
            ({"gravity": (0, 0)}, "gravity must hold 3"),
            ({"friction_combination": "min"}, "friction_combination"),
        ],
    )
    def test_references(self, changes: dict[str, object], words: str) -> None:
        joints = (Joint("h"), Joint("ball", "ball"))
        geoms = (Geom("g", "sphere", 1.0), Geom("g2", "sphere", 1.0))
        body = Body("b", mass=1.0, inertia=(1, 1, 1), joints=joints, geoms=geoms)
        good = Description(bodies=(WORLD, body))
        with pytest.raises(ValueError, match=words):
            dataclasses.replace(good, **changes)

    def test_keyframes_are_normalised_within_tolerance(self) -> None:
        body = Body("b", mass=1.0, inertia=(1, 1, 1), joints=(Joint("ball", "ball"),))
        description = Description(
            bodies=(WORLD, body), keyframes=(Keyframe("k", (1.0005, 0, 0, 0)),)
        )
        assert description.keyframes[0].q == (1.0, 0.0, 0.0, 0.0)

    def test_values_are_frozen_and_plain(self) -> None:
        description = scene()
        assert hash(description) == hash(scene())
        assert description == scene()
        with pytest.raises(dataclasses.FrozenInstanceError):
            description.gravity = (0, 0, 0)  # type: ignore[misc]
        assert pickle.loads(pickle.dumps(description)) == description
        assert copy.deepcopy(description) == description

    def test_repr_counts(self) -> None:
        assert repr(scene()) == (
            "Description('one of everything': 5 bodies, 4 joints, 6 geoms, 2 actuators)"
        )


def test_default_q_is_mujocos_where_no_keyframe_is_home() -> None:
    assert scene().default_q == scene().keyframes[0].q
    description = dataclasses.replace(scene(), keyframes=())
    model = mujoco.MjModel.from_xml_string(description.to_mjcf())
    np.testing.assert_allclose(description.default_q, model.qpos0, atol=1e-15)


finite = st.floats(-10.0, 10.0, allow_subnormal=False)  # strtod calls subnormals too large
positive = st.floats(0.01, 10.0)


@pytest.mark.long
@given(
    axis=st.tuples(finite, finite, finite).filter(lambda a: np.linalg.norm(a) > 1e-3),
    ref=finite,
    stiffness=positive,
    gear=st.floats(0.1, 10.0),
    size=st.tuples(positive, positive, positive),
    friction=st.tuples(positive, positive, positive),
    condim=st.sampled_from((1, 3, 4, 6)),
)
def test_numbers_survive_mjcf(
    axis: tuple[float, ...],
    ref: float,
    stiffness: float,
    gear: float,
    size: tuple[float, ...],
    friction: tuple[float, ...],
    condim: int,
) -> None:
    builder = SceneBuilder()
    builder.geom("world", "plane", friction=0.1)
    builder.body("b", mass=1.0)
    builder.joint("b", "hinge", axis=axis, ref=ref, stiffness=stiffness, springref=ref)
    builder.geom("b", "box", size, friction=friction, condim=condim)
    builder.actuator("b", stiffness, gear=gear)
    description = builder.build()
    assert_same_arrays(description, load_description(description.to_mjcf()))
