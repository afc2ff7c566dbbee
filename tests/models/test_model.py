"""Models: kinematics, inertia and contacts against MuJoCo, names, parameters, copies, bad input."""

from __future__ import annotations

import copy
import itertools
import pickle

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mass_matrix import mass_matrix

import qdsim
from qdsim.description import SceneBuilder
from qdsim.description.shapes import GEOM_SIZES, GEOM_TYPES, SUPPORTED_PAIRS

Generator = np.random.Generator


def numbers(values: object) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(values))


def random_quat(rng: Generator) -> np.ndarray:
    quat = rng.normal(size=4)
    return quat / np.linalg.norm(quat)


def random_tree(rng: Generator, body_count: int) -> str:
    """Random frames, inertias and joints of every type, several on one body, with ref."""
    parents = [int(rng.integers(-1, i)) for i in range(body_count)]

    def joints(i: int) -> str:
        kinds = ["fixed", "ball", "scalars", "scalars and ball"]
        kind = rng.choice(kinds + ["free"] * (parents[i] < 0))
        if kind == "free":
            return f'<freejoint name="j{i}"/>'
        text = ""
        if kind.startswith("scalars"):
            for k in range(int(rng.integers(1, 4))):
                text += (
                    f'<joint name="j{i}_{k}" type="{rng.choice(["hinge", "slide"])}" '
                    f'axis="{numbers(rng.normal(size=3))}" pos="{numbers(rng.normal(size=3))}" '
                    f'ref="{rng.uniform(-1, 1)}"/>'
                )
        if kind.endswith("ball"):
            text += f'<joint name="j{i}_b" type="ball" pos="{numbers(rng.normal(size=3))}"/>'
        return text

    def body(i: int) -> str:
        inner = "".join(body(j) for j in range(body_count) if parents[j] == i)
        return (
            f'<body name="b{i}" pos="{numbers(rng.normal(size=3))}" '
            f'quat="{numbers(random_quat(rng))}">'
            f'<inertial pos="{numbers(0.1 * rng.normal(size=3))}" mass="{rng.uniform(0.5, 2)}" '
            f'quat="{numbers(random_quat(rng))}" diaginertia="0.03 0.04 0.05"/>'
            f"{joints(i)}{inner}</body>"
        )

    bodies = "".join(body(i) for i in range(body_count) if parents[i] < 0)
    return f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody></mujoco>'


def random_q(model: qdsim.Model, rng: Generator) -> np.ndarray:
    return model.integrate(model.default_q, 2.0 * rng.normal(size=model.nv))


class Twin:
    """A model and MuJoCo's state of the same scene."""

    def __init__(self, source: str, rng: Generator) -> None:
        self.model = qdsim.load(source)
        self.mj_model = mujoco.MjModel.from_xml_string(source)
        self.data = mujoco.MjData(self.mj_model)
        self.q = random_q(self.model, rng)
        self.data.qpos[:] = self.q
        mujoco.mj_fwdPosition(self.mj_model, self.data)
        # qvel = to_qvel v
        self.to_qvel = self.model.to_mujoco_qvel(self.q, np.eye(self.model.nv)).T


def twins(count: int = 40) -> list[Twin]:
    rng = np.random.default_rng(11)
    found = [Twin(random_tree(rng, int(rng.integers(1, 9))), rng) for _ in range(count)]
    return [twin for twin in found if twin.model.nv > 0]


class TestAgainstMujoco:
    @pytest.mark.long
    def test_sizes_and_names(self) -> None:
        for twin in twins():
            model, mj = twin.model, twin.mj_model
            assert (model.nq, model.nv, model.nu) == (mj.nq, mj.nv, 0)
            assert model.joint_names == tuple(mj.joint(i).name for i in range(mj.njnt))
            assert model.body_names == tuple(mj.body(i).name for i in range(mj.nbody))
            np.testing.assert_array_equal(model.default_q, mj.qpos0)
            for i, name in enumerate(model.joint_names):
                assert model.slice_q(name).start == mj.jnt_qposadr[i]
                assert model.slice_v(name).start == mj.jnt_dofadr[i]

    @pytest.mark.long
    def test_poses(self) -> None:
        for twin in twins():
            pos, rot = twin.model.body_poses(twin.q)
            np.testing.assert_allclose(pos, twin.data.xpos, atol=1e-12)
            np.testing.assert_allclose(rot.reshape(-1, 9), twin.data.xmat, atol=1e-12)
            name = twin.model.body_names[-1]
            one_pos, one_rot = twin.model.body_pose(twin.q, name)
            np.testing.assert_array_equal(one_pos, pos[-1])
            np.testing.assert_array_equal(one_rot, rot[-1])

    @pytest.mark.long
    def test_jacobians(self) -> None:
        rng = np.random.default_rng(3)
        for twin in twins():
            mj, data = twin.mj_model, twin.data
            for body, name in enumerate(twin.model.body_names):
                point = rng.normal(size=3)
                expected = np.zeros((6, mj.nv))
                world = data.xpos[body] + data.xmat[body].reshape(3, 3) @ point
                mujoco.mj_jac(mj, data, expected[:3], expected[3:], world, body)
                jacobian = twin.model.jacobian(twin.q, name, point)
                np.testing.assert_allclose(jacobian, expected @ twin.to_qvel, atol=1e-11)

    def test_jacobian_is_the_derivative_of_the_pose(self) -> None:
        step = 1e-6
        for twin in twins(10):
            model = twin.model
            body = model.body_names[-1]
            point = np.array([0.3, -0.2, 0.5])
            jacobian = model.jacobian(twin.q, body, point)
            for column in np.eye(model.nv):
                ends = []
                for sign in (1.0, -1.0):
                    pos, rot = model.body_pose(model.integrate(twin.q, sign * step * column), body)
                    ends.append(pos + rot @ point)
                slope = (ends[0] - ends[1]) / (2 * step)
                np.testing.assert_allclose(jacobian[:3] @ column, slope, atol=1e-7)

    @pytest.mark.long
    def test_mass_matrix(self) -> None:
        for twin in twins():
            matrix = mass_matrix(twin.mj_model, twin.data)
            expected = twin.to_qvel.T @ matrix @ twin.to_qvel
            ours = twin.model.mass_matrix(twin.q)
            np.testing.assert_allclose(ours, expected, atol=1e-12 * np.abs(expected).max())

    @pytest.mark.long
    def test_integrate_and_difference(self) -> None:
        rng = np.random.default_rng(4)
        for twin in twins():
            model = twin.model
            v = rng.normal(size=model.nv)
            theirs = twin.q.copy()
            mujoco.mj_integratePos(twin.mj_model, theirs, model.to_mujoco_qvel(twin.q, v), 1.0)
            ours = model.integrate(twin.q, v)
            np.testing.assert_allclose(model.difference(ours, theirs), 0.0, atol=1e-12)
            qvel = np.zeros(model.nv)
            mujoco.mj_differentiatePos(twin.mj_model, qvel, 1.0, twin.q, theirs)
            difference = model.difference(theirs, twin.q)
            np.testing.assert_allclose(difference, model.from_mujoco_qvel(twin.q, qvel), atol=1e-12)

    def test_qvel_conversions_are_inverse_and_vectorised(self) -> None:
        rng = np.random.default_rng(6)
        for twin in twins(10):
            model = twin.model
            q = np.array([random_q(model, rng) for _ in range(5)])
            v = rng.normal(size=(3, 5, model.nv))
            qvel = model.to_mujoco_qvel(q, v)
            np.testing.assert_allclose(model.from_mujoco_qvel(q, qvel), v, atol=1e-13)
            np.testing.assert_allclose(qvel[2, 4], model.to_mujoco_qvel(q[4], v[2, 4]), atol=1e-15)

    def test_kinetic_energy_is_the_same_in_both_coordinates(self) -> None:
        rng = np.random.default_rng(7)
        for twin in twins(10):
            v = rng.normal(size=twin.model.nv)
            twin.data.qvel[:] = twin.model.to_mujoco_qvel(twin.q, v)
            mujoco.mj_energyVel(twin.mj_model, twin.data)
            energy = 0.5 * v @ twin.model.mass_matrix(twin.q) @ v
            assert energy == pytest.approx(twin.data.energy[1], rel=1e-10)


SHAPES = {
    "plane": "1 1 1",
    "sphere": "0.4",
    "capsule": "0.3 0.5",
    "box": "0.3 0.4 0.5",
}


# MuJoCo iterates, or simplifies, for boxes against boxes and capsules: tests/geometry/test_collision.py.
CLOSED_FORMS = sorted(
    pair
    for pair in SUPPORTED_PAIRS - {("box", "box"), ("box", "capsule")}
    if pair[0] <= pair[1] and pair[0] in SHAPES and pair[1] in SHAPES
)


class TestContacts:
    @pytest.mark.short_cases(1)
    @pytest.mark.parametrize("pair", CLOSED_FORMS)
    def test_distances_are_mujocos(self, pair: tuple[str, str]) -> None:
        """Nearest contact of two shapes at random poses apart from each other."""
        rng = np.random.default_rng(8)
        kinds = sorted(pair, key=lambda kind: kind != "plane")
        checked = 0
        for _ in range(40):
            first, second = (
                f'<geom type="{kind}" size="{SHAPES[kind]}" margin="2"/>' for kind in kinds
            )
            source = (
                f'<mujoco><worldbody>{first}<body pos="{numbers(rng.normal(size=3))}" '
                f'quat="{numbers(random_quat(rng))}"><freejoint/>{second}</body></worldbody></mujoco>'
            )
            model = qdsim.load(source)
            mj = mujoco.MjModel.from_xml_string(source)
            data = mujoco.MjData(mj)
            mujoco.mj_forward(mj, data)
            contacts = model.collide(model.default_q, 0.0)
            if data.ncon == 0:
                assert contacts.size == 0
                continue
            theirs = min(data.contact, key=lambda contact: contact.dist)
            if theirs.dist < 0.01:
                continue
            ours = contacts[np.argmin(contacts["dist"])]
            checked += 1
            assert ours["dist"] == pytest.approx(theirs.dist, abs=1e-6)
            sign = 1 if ours["geom_a"] == theirs.geom[0] else -1
            np.testing.assert_allclose(sign * ours["frame"][0], theirs.frame[:3], atol=1e-5)
            np.testing.assert_allclose(ours["pos"], theirs.pos, atol=1e-5)
        assert checked >= 5

    def test_fields(self) -> None:
        builder = SceneBuilder()
        builder.geom("world", "plane", friction=0.5, condim=4)
        builder.body("ball", pos=(0, 0, 0.3), mass=1.0)
        builder.joint("ball", "free")
        builder.geom("ball", "sphere", 0.25, friction=(0.7, 0.02, 0.003))
        model = qdsim.build(builder.build())
        (contact,) = model.collide(model.default_q)
        assert contact["dist"] == pytest.approx(0.05)
        assert model.geom_names[contact["geom_a"]] == "world_geom0"
        assert model.geom_names[contact["geom_b"]] == "ball_geom0"
        assert (contact["body_a"], contact["body_b"], contact["dim"]) == (0, 1, 4)
        np.testing.assert_allclose(contact["friction"], [0.7, 0.7, 0.02, 0.003, 0.003])
        np.testing.assert_allclose(contact["pos"], [0, 0, 0.025], atol=1e-15)
        np.testing.assert_allclose(contact["frame"][0], [0, 0, 1], atol=1e-15)
        np.testing.assert_allclose(contact["frame"] @ contact["frame"].T, np.eye(3), atol=1e-14)
        assert model.collide(model.default_q, 0.04).size == 0
        assert model.collide(model.default_q, margin=np.inf).size == 1

    def test_supported_shapes_are_the_cores(self) -> None:
        """The table in Python says what the core accepts, and the error names both geometries."""
        for a, b in itertools.product(GEOM_TYPES, repeat=2):
            if (a, b) == ("plane", "plane"):
                continue
            builder = SceneBuilder()
            builder.mesh("m", np.eye(4)[:, :3], [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
            for name, kind in (("a", a), ("b", b)):
                builder.body(name, mass=1.0, inertia=(1, 1, 1))
                builder.joint(name, "free")
                mesh = "m" if kind == "mesh" else None
                sizes = (0.1,) * GEOM_SIZES[kind]
                cloud = qdsim.PointCloud(np.eye(3)) if kind == "cloud" else None
                hills = (
                    qdsim.HeightField(np.zeros((2, 2)), (1.0, 1.0), 0.1)
                    if kind == "hfield"
                    else None
                )
                builder.geom(name, kind, sizes, mesh=mesh, cloud=cloud, hfield=hills)  # type: ignore[arg-type]
            description = builder.build()
            if (a, b) in SUPPORTED_PAIRS:
                assert qdsim.build(description).pair_count == 1
            else:
                words = rf"geoms 'a_geom0' \({a}\) and 'b_geom0' \({b}\) can collide"
                with pytest.raises(ValueError, match=words):
                    qdsim.build(description)

    def test_visual_shapes_load(self) -> None:
        model = qdsim.load(
            """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
            <geom type="plane" size="1 1 1"/>
            <body><freejoint/><geom size="0.1"/>
            <geom type="mesh" mesh="m" contype="0" conaffinity="0"/>
            <geom type="cylinder" size="1 1" contype="0" conaffinity="0"/></body>
            </worldbody></mujoco>"""
        )
        assert model.pair_count == 1
        assert [geom.type for geom in model.description.geoms][2:] == ["mesh", "cylinder"]
        assert model.description.meshes[0].vertices.shape == (4, 3)


HAND = """<mujoco model="hand"><worldbody>
  <body name="object"><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><joint name="turn" axis="1 0 0"/>
    <geom name="disc" size="0.25" mass="1" friction="0.3"/></body>
  <body name="finger" pos="0 -0.4 0"><joint name="proximal" axis="1 0 0" range="-90 0"/>
    <geom name="pad" size="0.05" pos="0 -0.1 0" friction="0.6"/>
    <body name="tip" pos="0 -0.3 0">
      <joint name="spring" axis="1 0 0" stiffness="3" springref="20"/>
      <joint name="distal" axis="1 0 0" pos="0 -0.2 0"/>
      <geom name="nail" size="0.05" pos="0 -0.1 0"/></body></body>
  <body name="marker" pos="1 0 0"/>
  <body name="ball" pos="5 0 0"><freejoint name="float"/><geom size="0.1"/></body>
</worldbody>
<actuator><position name="far" joint="distal" kp="25" gear="2"/>
  <position joint="proximal" kp="50" ctrlrange="-2 1"/></actuator>
<keyframe><key name="home" qpos="0 0.35 0 -0.8 0.1 -0.6 5 0 0 1 0 0 0" ctrl="-1.2 -0.8"/></keyframe>
</mujoco>"""


@pytest.fixture(scope="module")
def hand() -> qdsim.Model:
    return qdsim.load(HAND)


class TestNames:
    def test_slices(self, hand: qdsim.Model) -> None:
        assert hand.slice_q("turn") == slice(2, 3)
        assert hand.slice_q("object") == slice(0, 3)
        assert hand.slice_v("tip") == slice(4, 6)
        assert hand.slice_q("float") == hand.slice_q("ball") == slice(6, 13)
        assert hand.slice_v("ball") == slice(6, 12)
        assert hand.slice_u("distal") == hand.slice_u("far") == slice(0, 1)
        assert hand.slice_u("proximal") == hand.slice_u("actuator1") == slice(1, 2)

    def test_indices_follow_u(self, hand: qdsim.Model) -> None:
        assert hand.actuated_q.tolist() == hand.actuated_v.tolist() == [5, 3]
        assert hand.unactuated_q.tolist() == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12]
        assert hand.unactuated_v.tolist() == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]

    def test_names_and_ranges(self, hand: qdsim.Model) -> None:
        assert hand.body_names == ("world", "object", "finger", "tip", "marker", "ball")
        assert hand.actuator_names == ("far", "actuator1")
        assert hand.u_lower.tolist() == [-np.inf, -2.0]
        assert hand.u_upper.tolist() == [np.inf, 1.0]
        np.testing.assert_allclose(hand.joint_range[3], [-np.pi / 2, 0.0])
        assert hand.joint_range[0].tolist() == [-np.inf, np.inf]
        assert hand.geom_names[hand.geom_index("nail")] == "nail"
        assert hand.geom_body[hand.geom_index("nail")] == hand.body_index("tip")

    def test_keyframes(self, hand: qdsim.Model) -> None:
        q, u = hand.keyframes["home"]
        assert q[3:6].tolist() == [-0.8, 0.1, -0.6]
        assert u.tolist() == [-1.2, -0.8]

    def test_command_from_holds_the_joints(self, hand: qdsim.Model) -> None:
        q = hand.keyframes["home"].q
        np.testing.assert_allclose(hand.command_from(q), [-1.2, -0.8])
        np.testing.assert_allclose(hand.command_from(np.stack([q, 2 * q]))[1], [-2.4, -1.6])

    def test_clamp_to_limits_moves_what_is_outside(self) -> None:
        """The nearest configuration within the limits, joint by joint; turns have none."""
        model = qdsim.load(
            """<mujoco><compiler angle="radian"/><worldbody>
            <body><joint name="a" type="hinge" axis="0 0 1" range="-0.5 1.0"/>
              <geom type="sphere" size="0.1" mass="1"/>
              <body pos="1 0 0"><joint name="b" type="ball"/><geom type="sphere" size="0.1" mass="1"/>
                <body pos="1 0 0"><joint name="c" type="slide" axis="1 0 0"/>
                  <joint name="d" type="slide" axis="0 1 0" range="0.2 0.4"/>
                  <geom type="sphere" size="0.1" mass="1"/></body></body></body>
            <body pos="0 0 3"><freejoint name="e"/><geom type="sphere" size="0.1" mass="1"/></body>
            </worldbody></mujoco>"""
        )
        rng = np.random.default_rng(0)
        q = model.integrate(model.default_q, np.zeros(model.nv)) + np.zeros((4, 5, 1))
        for name in ("a", "c", "d"):
            q[..., model.slice_q(name)] = rng.uniform(-2.0, 2.0, (4, 5, 1))
        q[..., model.slice_q("e")][..., :3] = rng.uniform(-2.0, 2.0, (4, 5, 3))
        found = model.clamp_to_limits(q)
        lower, upper = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
        lower[model.slice_q("a")], upper[model.slice_q("a")] = -0.5, 1.0
        lower[model.slice_q("d")], upper[model.slice_q("d")] = 0.2, 0.4
        inside = (q >= lower) & (q <= upper)
        assert not inside.all()
        assert (found >= lower).all()
        assert (found <= upper).all()
        assert (found[inside] == q[inside]).all()
        nearest = np.where(np.abs(q - lower) < np.abs(q - upper), lower, upper)
        assert (found[~inside] == nearest[~inside]).all()
        assert model.clamp_to_limits(found).tobytes() == found.tobytes()
        with pytest.raises(ValueError, match="q must have shape"):
            model.clamp_to_limits(q[..., 1:])

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda m: m.slice_q("objekt"), "did you mean 'object'"),
            (lambda m: m.slice_v("marker"), "body 'marker' has no joints"),
            (lambda m: m.slice_u("y"), "joint 'y' is not actuated"),
            (lambda m: m.slice_u("fra"), "no actuator is named 'fra'; did you mean 'far'"),
            (lambda m: m.body_pose(m.default_q, "tipp"), "no body is named 'tipp'"),
            (lambda m: m.geom_index("disk"), "no geom is named 'disk'; did you mean 'disc'"),
            (lambda m: m.pair_index("pad", "nail"), "are not a candidate pair"),
        ],
    )
    def test_unknown_names(self, hand: qdsim.Model, call: object, words: str) -> None:
        with pytest.raises(KeyError) as error:
            call(hand)  # type: ignore[operator]
        assert words in str(error.value)

    def test_indices_are_checked(self, hand: qdsim.Model) -> None:
        assert hand.body_index(2) == 2
        for index in (-1, 6):
            with pytest.raises(IndexError, match="body index"):
                hand.body_index(index)
        for wrong in (1.0, None, True):
            with pytest.raises(TypeError, match="body must be a name or an index"):
                hand.body_pose(hand.default_q, wrong)  # type: ignore[arg-type]


class TestParameters:
    def test_values(self, hand: qdsim.Model) -> None:
        parameters = hand.parameters
        assert parameters.actuator_stiffness.tolist() == [100.0, 50.0]
        assert parameters.joint_stiffness[4] == 3.0
        assert parameters.joint_springref[4] == pytest.approx(np.radians(20))
        assert parameters.geom_size[0].tolist() == [0.25, 0.0, 0.0]
        row = hand.pair_index("pad", "disc")
        assert parameters.pair_friction[row].tolist() == [0.6, 0.6, 0.005, 0.0001, 0.0001]
        assert "pair_friction(5, 5)" in repr(parameters)

    def test_read_only(self, hand: qdsim.Model) -> None:
        for array in (hand.parameters.gravity, hand.default_q, hand.keyframes["home"].q):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        with pytest.raises(AttributeError, match="immutable"):
            hand.nu = 3  # type: ignore[misc]
        with pytest.raises(AttributeError, match="immutable"):
            del hand.description

    def test_variants(self, hand: qdsim.Model) -> None:
        mass = hand.parameters.body_mass.copy()
        mass[1] = 4.0
        size = hand.parameters.geom_size.copy()
        size[0, 0] = 0.3
        friction = hand.parameters.pair_friction.copy()
        friction[1, :2] = 0.11
        variant = hand.with_parameters(
            body_mass=mass,
            geom_size=size,
            pair_friction=friction,
            actuator_stiffness=7.0,
            joint_stiffness=np.arange(7.0) * [1, 1, 1, 1, 1, 1, 0],
            joint_springref=0.25 * np.array([1, 1, 1, 1, 1, 1, 0]),
            gravity=(0, 0, -1),
        )
        np.testing.assert_array_equal(variant.parameters.body_mass, mass)
        np.testing.assert_array_equal(variant.parameters.geom_size, size)
        np.testing.assert_array_equal(variant.parameters.pair_friction, friction)
        for name in ("body_com", "body_inertia"):
            unchanged = getattr(hand.parameters, name)
            np.testing.assert_array_equal(getattr(variant.parameters, name), unchanged)
        assert variant.parameters.actuator_stiffness.tolist() == [7.0, 7.0]
        assert variant.parameters.gravity.tolist() == [0.0, 0.0, -1.0]
        assert variant.parameters.joint_stiffness.tolist() == [0, 1, 2, 3, 4, 5, 0]
        np.testing.assert_array_equal(variant.pair_geom, hand.pair_geom)
        assert variant.joint_names == hand.joint_names
        # The core sees the new numbers: mass of the object, distance of the larger disc.
        q = hand.keyframes["home"].q
        assert variant.mass_matrix(q)[0, 0] == pytest.approx(4.0)
        near, nearer = (model.collide(q, 2.0)["dist"] for model in (hand, variant))
        row = hand.pair_index("disc", "pad")
        assert near[row] - nearer[row] == pytest.approx(0.05)
        # And the description is that of the variant.
        again = qdsim.build(variant.description)
        np.testing.assert_array_equal(
            again.parameters.pair_friction, variant.parameters.pair_friction
        )

    def test_one_number_for_friction_is_sliding(self, hand: qdsim.Model) -> None:
        friction = hand.with_parameters(pair_friction=0.2).parameters.pair_friction
        assert friction[0].tolist() == [0.2, 0.2, 0.005, 0.0001, 0.0001]
        each = hand.parameters.replace(pair_friction=np.arange(5.0))
        assert each.pair_friction[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert hand.with_parameters(each).parameters.pair_friction[3, 1] == 3.0

    @pytest.mark.parametrize(
        ("changes", "kind", "words"),
        [
            ({"body_mas": 1.0}, TypeError, "did you mean 'body_mass'"),
            ({"body_mass": [1.0]}, ValueError, r"body_mass must have shape \(6,\), got \(1,\)"),
            ({"body_mass": "heavy"}, TypeError, "body_mass: expected an array of real numbers"),
            ({"gravity": (0, 0, np.nan)}, ValueError, "gravity must be finite"),
            ({"body_mass": -1.0}, ValueError, "body 'world': mass must not be negative"),
            ({"actuator_stiffness": 0.0}, ValueError, "actuator 'far': stiffness must be positive"),
            ({"pair_friction": -1.0}, ValueError, "friction must not be negative"),
            ({"pair_friction": [1.0]}, ValueError, r"\(5, 5\) or \(5,\)"),
            ({"joint_damping": -1.0}, ValueError, "damping must not be negative"),
        ],
    )
    def test_errors(
        self, hand: qdsim.Model, changes: dict[str, object], kind: type[Exception], words: str
    ) -> None:
        with pytest.raises(kind, match=words):
            hand.with_parameters(**changes)

    def test_needs_parameters(self, hand: qdsim.Model) -> None:
        with pytest.raises(TypeError, match="parameters must be Parameters"):
            hand.with_parameters({"body_mass": 1.0})  # type: ignore[arg-type]
        other = qdsim.build(SceneBuilder().build()).parameters
        with pytest.raises(ValueError, match="body_mass must have shape"):
            hand.with_parameters(other)


class TestCopies:
    def test_pickle_gives_the_same_bits(self, hand: qdsim.Model) -> None:
        again = pickle.loads(pickle.dumps(hand))
        assert again is not hand
        assert again.description == hand.description
        assert again.ignored == hand.ignored
        q = hand.keyframes["home"].q
        np.testing.assert_array_equal(again.mass_matrix(q), hand.mass_matrix(q))
        assert again.collide(q).tobytes() == hand.collide(q).tobytes()

    def test_copies_are_the_model_itself(self, hand: qdsim.Model) -> None:
        assert copy.copy(hand) is hand
        assert copy.deepcopy([hand])[0] is hand

    def test_repr(self, hand: qdsim.Model) -> None:
        assert repr(hand) == (
            "Model('hand': nq=13 nv=12 nu=2, 6 bodies, 7 joints, 4 geoms, 5 pairs)"
        )

    def test_planar(self) -> None:
        source = HAND.replace('<freejoint name="float"/>', "")
        source = source.replace(" 5 0 0 1 0 0 0", "")
        planar = qdsim.load(source)
        assert planar.planar_normal is not None
        np.testing.assert_allclose(np.abs(planar.planar_normal), [1, 0, 0], atol=1e-12)
        assert "planar" in repr(planar)

    def test_empty_scene(self) -> None:
        model = qdsim.build(SceneBuilder().build())
        assert (model.nq, model.nv, model.nu) == (0, 0, 0)
        assert model.body_poses([])[0].shape == (1, 3)
        assert model.collide([]).size == 0


class TestBadInput:
    @pytest.mark.parametrize(
        ("q", "kind", "words"),
        [
            (np.zeros(12), ValueError, "q"),
            (np.zeros((13, 1)), ValueError, "q"),
            (np.zeros(13), ValueError, "joint 'float'"),
            (np.full(13, np.nan), ValueError, "q"),
            ("home", (TypeError, ValueError), "q"),
            (None, (TypeError, ValueError), "q"),
            (np.zeros(13, dtype=complex), TypeError, "q"),
        ],
    )
    @pytest.mark.parametrize(
        "call",
        [
            lambda m, q: m.body_pose(q, "tip"),
            lambda m, q: m.jacobian(q, "tip"),
            lambda m, q: m.mass_matrix(q),
            lambda m, q: m.collide(q),
            lambda m, q: m.normalize(q),
            lambda m, q: m.integrate(q, np.zeros(12)),
            lambda m, q: m.difference(q, m.default_q),
        ],
    )
    def test_configurations(
        self, hand: qdsim.Model, call: object, q: object, kind: type[Exception], words: str
    ) -> None:
        with pytest.raises(kind, match=words):
            call(hand, q)  # type: ignore[operator]

    def test_quaternions_near_unit_length_are_normalised(self, hand: qdsim.Model) -> None:
        q = hand.default_q.copy()
        q[9:13] *= 1.0005
        assert np.linalg.norm(hand.normalize(q)[9:13]) == pytest.approx(1.0, abs=1e-15)
        q[9:13] *= 1.001
        with pytest.raises(ValueError, match="'float'"):
            hand.normalize(q)

    def test_other_arguments(self, hand: qdsim.Model) -> None:
        q = hand.default_q
        with pytest.raises(ValueError, match="margin"):
            hand.collide(q, np.nan)
        with pytest.raises(TypeError):
            hand.collide(q, "near")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="point"):
            hand.jacobian(q, "tip", (0, 0))
        with pytest.raises(ValueError, match="v must have shape"):
            hand.to_mujoco_qvel(q, np.zeros(3))
        with pytest.raises(ValueError, match="q: the quaternion of joint 'float'"):
            hand.to_mujoco_qvel(np.zeros(13), np.zeros(12))
        with pytest.raises(ValueError, match="q must be finite"):
            hand.command_from(np.full(13, np.inf))
        with pytest.raises(TypeError, match="q: expected an array of real numbers"):
            hand.command_from("q")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="description must be"):
            qdsim.build(HAND)  # type: ignore[arg-type]
        with pytest.raises(FileNotFoundError, match="nowhere"):
            qdsim.load("nowhere.xml")


@pytest.mark.long
@given(
    seed=st.integers(0, 2**32 - 1),
    body_count=st.integers(1, 6),
    scale=st.floats(0.0, 3.0),
)
def test_difference_undoes_integrate(seed: int, body_count: int, scale: float) -> None:
    """On every tree, as long as no rotation exceeds a half turn."""
    rng = np.random.default_rng(seed)
    model = qdsim.load(random_tree(rng, body_count))
    q = random_q(model, rng)
    v = rng.uniform(-1.0, 1.0, model.nv) * scale / np.sqrt(3)
    np.testing.assert_allclose(model.difference(model.integrate(q, v), q), v, atol=1e-12)


@pytest.mark.long
@given(seed=st.integers(0, 2**32 - 1), body_count=st.integers(1, 6))
def test_descriptions_survive_mjcf(seed: int, body_count: int) -> None:
    """A random tree, written as MJCF and read again, has the same poses and masses."""
    rng = np.random.default_rng(seed)
    model = qdsim.load(random_tree(rng, body_count))
    again = qdsim.load(model.description.to_mjcf())
    q = random_q(model, rng)
    np.testing.assert_allclose(again.body_poses(q)[0], model.body_poses(q)[0], atol=1e-12)
    mass = model.mass_matrix(q)
    np.testing.assert_allclose(
        again.mass_matrix(q), mass, atol=1e-12 * np.abs(mass).max(initial=1.0)
    )
