"""URDF: links, joints, friction, inertias that need repair, meshes that need finding."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh

from qdsim.description import Coupling, ModelWarning
from qdsim.description.arrays import model_arrays
from qdsim.formats import load_description

INERTIAL = (
    '<inertial><mass value="{}"/>'
    '<inertia ixx="{}" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
ARM = f"""<?xml version="1.0"?>
<!-- a comment --><robot name="arm">
<link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision>
  <visual><geometry><mesh filename="package://nowhere/shell.dae"/></geometry></visual></link>
<link name="upper">{INERTIAL.format(1, 0.1)}
  <collision><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry>
    <drake:proximity_properties><drake:mu_dynamic value="0.4"/><drake:mu_static value="0.5"/>
    </drake:proximity_properties></collision>
  <collision><geometry><sphere radius="0.2"/></geometry></collision></link>
<link name="tool">{INERTIAL.format(1, 0.1)}</link>
<link name="finger">{INERTIAL.format(1, 0.1)}
  <contact><lateral_friction value="0.25"/></contact>
  <collision><geometry><sphere radius="0.3"/></geometry></collision></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="1"/>
  <dynamics damping="0.1"/></joint>
<joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/>
  <origin xyz="0 0 0.5"/></joint>
<joint name="slider" type="prismatic"><parent link="tool"/><child link="finger"/>
  <axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="3" velocity="1"/></joint>
</robot>"""


def write_tetrahedron(path: Path) -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    triangles = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    content = b"\0" * 80 + struct.pack("<I", len(triangles))
    for triangle in triangles:
        content += struct.pack("<3f", 0, 0, 0) + corners[list(triangle)].tobytes() + b"\0\0"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class TestUrdf:
    def test_arm(self) -> None:
        description = load_description(ARM, stiffness=10.0)
        names = [body.name for body in description.bodies]
        assert names == ["world", "base", "upper", "tool", "finger"]
        assert [joint.type for joint in description.joints] == ["hinge", "slide"]
        assert description.joints[0].range == (-1.0, 2.0)
        assert [(item.joint, item.stiffness) for item in description.actuators] == [
            ("shoulder", 10.0),
            ("slider", 10.0),
        ]
        assert description.gravity == (0.0, 0.0, -9.81)
        assert description.friction_combination == "harmonic"
        assert description.joints[0].damping == 0.1
        assert [item.force_range for item in description.actuators] == [(-3.0, 3.0)] * 2

    def test_friction_is_harmonic(self) -> None:
        """base (1) - upper (0.5 and 1), base - finger (0.25), upper - finger: filtered or not."""
        description = load_description(ARM, stiffness=10.0)
        assert [geom.friction[0] for geom in description.geoms] == [1.0, 0.5, 1.0, 0.25]
        arrays = model_arrays(description)
        sliding = {
            tuple(pair): friction[0]
            for pair, friction in zip(arrays["pair_geom"].tolist(), arrays["pair_friction"])
        }
        # The finger's parent is the tool, welded to the upper arm: no contact between the two.
        assert sliding == pytest.approx({(0, 1): 2 / 3, (0, 2): 1.0, (0, 3): 0.4})

    @pytest.mark.parametrize("visuals", [0, 1, 3])
    def test_friction_beside_visuals(self, visuals: int) -> None:
        compiler = '<mujoco><compiler discardvisual="false"/></mujoco>'
        visual = '<visual><geometry><sphere radius="0.1"/></geometry></visual>'
        source = ARM.replace('<link name="base">', compiler + '<link name="base">')
        source = source.replace('<link name="upper">', '<link name="upper">' + visual * visuals)
        geoms = [g for g in load_description(source, stiffness=1).geoms if g.contype]
        assert [geom.friction[0] for geom in geoms] == [1.0, 0.5, 1.0, 0.25]

    def test_visuals_are_kept_and_change_nothing_else(self, tmp_path: Path) -> None:
        """Shapes, colours, and meshes of other formats are seen; names, masses and pairs stay."""
        trimesh.creation.box((0.2, 0.1, 0.1)).export(tmp_path / "shell.ply")
        write_tetrahedron(tmp_path / "cover.stl")
        visuals = "".join(
            f'<visual name="{name}"><geometry>{shape}</geometry>'
            '<material name="m"><color rgba="0.2 0.4 0.6 1"/></material></visual>'
            for name, shape in (
                ("foot", '<box size="0.1 0.1 0.1"/>'),
                ("same", '<mesh filename="shell.ply"/>'),
                ("same", '<mesh filename="cover.stl"/>'),
                ("lost", '<mesh filename="lost.dae"/>'),
            )
        )
        text = ARM.replace('<link name="upper">', '<link name="upper">' + visuals)
        text = text.replace(
            "<collision><geometry><sphere", '<collision name="foot"><geometry><sphere', 1
        )
        path = tmp_path / "arm.urdf"
        path.write_text(text)
        seen = load_description(path, stiffness=1.0)
        bare = load_description(path, stiffness=1.0, visuals=False)
        extra = [geom for geom in seen.geoms if not (geom.contype or geom.conaffinity)]
        assert [geom.type for geom in extra] == ["box", "mesh", "mesh"]
        assert all(geom.rgba == pytest.approx((0.2, 0.4, 0.6, 1.0)) for geom in extra)
        assert [geom.name for geom in seen.geoms if geom not in extra] == [
            geom.name for geom in bare.geoms
        ]
        assert "foot" in {geom.name for geom in bare.geoms}
        vertices = next(m for m in seen.meshes if m.name == extra[1].mesh).vertices
        assert sorted(np.ptp(vertices, axis=0)) == pytest.approx([0.1, 0.1, 0.2], abs=1e-6)
        for a, b in zip(seen.bodies, bare.bodies):
            assert (a.mass, a.com) == (b.mass, b.com)
            np.testing.assert_array_equal(a.inertia, b.inertia)
        one, other = model_arrays(seen), model_arrays(bare)
        assert len(one["pair_geom"]) == len(other["pair_geom"])
        assert sum("lost.dae" in item for item in seen.ignored) == 1
        assert not any("visual" in item for item in bare.ignored)

    def test_a_visual_that_cannot_be_compiled_does_not_hinder(self, tmp_path: Path) -> None:
        (tmp_path / "broken.stl").write_bytes(b"\0" * 80 + struct.pack("<I", 7) + b"\0" * 12)
        visual = '<visual><geometry><mesh filename="broken.stl"/></geometry></visual>'
        path = tmp_path / "arm.urdf"
        path.write_text(ARM.replace('<link name="upper">', '<link name="upper">' + visual))
        description = load_description(path, stiffness=1.0)
        assert len(description.geoms) == 4
        assert any("visual elements" in item for item in description.ignored)

    def test_visuals_is_a_truth_value(self) -> None:
        with pytest.raises(TypeError, match="visuals: expected True or False, got str"):
            load_description(ARM, stiffness=1.0, visuals="no")  # type: ignore[arg-type]

    def test_friction_of_fused_links(self) -> None:
        compiler = '<mujoco><compiler fusestatic="true"/></mujoco>'
        source = ARM.replace('<link name="base">', compiler + '<link name="base">')
        assert len(load_description(source, stiffness=1).bodies) < 5
        extra = '<contact><lateral_friction value="0.5"/></contact>'
        extra += '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
        source = source.replace('<link name="tool">', '<link name="tool">' + extra)
        with pytest.raises(ValueError, match="link 'tool': its friction cannot be matched"):
            load_description(source, stiffness=1)

    def test_needs_stiffness(self) -> None:
        with pytest.raises(ValueError, match="a URDF has no actuators"):
            load_description(ARM)
        assert load_description(ARM, actuated=()).actuators == ()
        items = load_description(ARM, stiffness={"slider": 3}).actuators
        assert [(item.joint, item.stiffness) for item in items] == [("slider", 3.0)]

    def test_floating_object_needs_none(self) -> None:
        source = (
            f'<robot name="r"><link name="world"/><link name="o">{INERTIAL.format(1, 0.1)}'
            '<collision><geometry><sphere radius="1"/></geometry></collision></link>'
            '<joint name="f" type="floating"><parent link="world"/><child link="o"/></joint></robot>'
        )
        description = load_description(source)
        assert [joint.type for joint in description.joints] == ["free"]
        assert [body.name for body in description.bodies] == ["world", "o"]

    def test_mimic_joints_become_couplings(self) -> None:
        source = ARM.replace(
            '"slider" type="prismatic">',
            '"slider" type="prismatic"><mimic joint="shoulder" multiplier="0.5" offset="0.1"/>',
        )
        description = load_description(source, stiffness=1)
        (coupling,) = description.constraints
        assert isinstance(coupling, Coupling)
        assert (coupling.joint, coupling.follows) == ("slider", "shoulder")
        assert coupling.coefficients == (0.1, 0.5, 0.0, 0.0, 0.0)
        assert "slider" not in [actuator.joint for actuator in description.actuators]

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            (
                "<mimic/>",
                '<mimic joint="sholder"/>',
                "'slider'.*'sholder' is not there.*'shoulder'",
            ),
            ("<mimic/>", '<mimic joint="slider"/>', "'slider': it mimics itself"),
            (
                "<mimic/>",
                '<mimic joint="flange" offset="0.1"/>',
                "'flange', is fixed.*offset of 0.1",
            ),
            (
                '<parent link="tool"/>',
                '<parent link="tol"/>',
                "'slider'.*parent link 'tol'.*'tool'",
            ),
            ('<child link="finger"/>', '<child link="thumb"/>', "'slider'.*child link 'thumb'"),
            ('"flange" type="fixed"', '"slider" type="fixed"', "2 joints are called 'slider'"),
        ],
    )
    def test_names_that_lead_nowhere_are_errors(self, old: str, new: str, words: str) -> None:
        source = ARM.replace('"slider" type="prismatic">', '"slider" type="prismatic"><mimic/>')
        source = source.replace("<mimic/>", "") if old != "<mimic/>" else source
        assert old in source
        with pytest.raises(ValueError, match=words):
            load_description(source.replace(old, new), stiffness=1)

    def test_joints_of_several_coordinates_are_not_mimicked(self) -> None:
        source = ARM.replace('"shoulder" type="revolute"', '"shoulder" type="planar"').replace(
            '"slider" type="prismatic">', '"slider" type="prismatic"><mimic joint="shoulder"/>'
        )
        with pytest.raises(ValueError, match=r"'slider'.*'shoulder', is planar"):
            load_description(source, stiffness=1)

    def test_what_mimics_a_fixed_joint_is_fixed(self) -> None:
        """Along a chain, too: multiples of nothing."""
        more = f"""<link name="tip">{INERTIAL.format(1, 0.1)}</link>
            <joint name="last" type="revolute"><parent link="finger"/><child link="tip"/><axis xyz="0 0 1"/>
            <limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="slider" multiplier="3"/></joint></robot>"""
        source = ARM.replace(
            '"slider" type="prismatic">', '"slider" type="prismatic"><mimic joint="flange"/>'
        ).replace("</robot>", more)
        description = load_description(source, stiffness=1)
        assert [joint.name for joint in description.joints] == ["shoulder"]
        assert not description.constraints
        for name in ("slider", "last"):
            assert any(f"'{name}': mimics" in text for text in description.ignored)

    def test_what_is_dropped_is_told(self) -> None:
        changes = {
            "</robot>": '<gazebo/><loop_joint name="l"/><drake:joint name="ball"/></robot>',
            '<dynamics damping="0.1"/>': '<dynamics dampin="0.1"/><calibration rising="0"/>',
            'lower="0" upper="0.1"': 'lower="0.1" upper="0"',
            '<link name="tool">': '<link name="tool"><self_collision/>',
            '"flange" type="fixed">': '"flange" type="fixed"><mimic joint="shoulder"/>',
        }
        source = ARM
        for old, new in changes.items():
            assert old in source
            source = source.replace(old, new)
        ignored = "; ".join(load_description(source, stiffness=1).ignored)
        for words in (
            "gazebo elements of the robot (1)",
            "loop_joint elements of the robot (1)",
            "drake:joint elements of the robot (1)",
            "joint 'shoulder': attribute 'dampin' of its dynamics",
            "joint 'shoulder': calibration",
            "joint 'slider': no range of positions",
            "link 'tool': self_collision",
            "joint 'flange': mimic, of a fixed joint",
        ):
            assert words in ignored

    @pytest.mark.parametrize(
        ("inertial", "words"),
        [
            (INERTIAL.format(1, 5.0), r"A \+ B >= C"),
            (INERTIAL.format(1, -0.1), "link 'finger' given positive moments"),
            (INERTIAL.format(0, 0.1), "link 'finger' given mass"),
        ],
    )
    def test_bad_inertias_are_repaired(self, inertial: str, words: str) -> None:
        good = '<link name="finger">' + INERTIAL.format(1, 0.1)
        source = ARM.replace(good, '<link name="finger">' + inertial)
        with pytest.warns(ModelWarning, match=words):
            description = load_description(source, stiffness=1)
        finger = description.bodies[4]
        assert finger.mass > 0
        assert np.linalg.eigvalsh(finger.inertia)[0] > 0

    def test_meshes_are_found(self, tmp_path: Path) -> None:
        write_tetrahedron(tmp_path / "ws" / "hand" / "meshes" / "part.stl")
        write_tetrahedron(tmp_path / "ws" / "other" / "meshes" / "part.stl")
        source = (
            f'<robot name="r"><link name="world"/><link name="o">{INERTIAL.format(1, 0.1)}'
            "<collision><geometry>"
            '<mesh filename="package://hand/meshes/part.stl" scale="2 2 2"/></geometry></collision>'
            '<collision><geometry><mesh filename="package://other/meshes/part.stl"/>'
            "</geometry></collision></link>"
            '<joint name="f" type="floating"><parent link="world"/><child link="o"/></joint></robot>'
        )
        file = tmp_path / "ws" / "hand" / "urdf" / "hand.urdf"
        file.parent.mkdir()
        file.write_text(source)
        beside = load_description(file)
        below = load_description(source, package_dirs=[tmp_path / "ws"])
        content = (tmp_path / "ws" / "hand" / "meshes" / "part.stl").read_bytes()
        given = load_description(source, assets={"part.stl": content})
        for description in (beside, below):
            extents = [np.ptp(mesh.vertices, axis=0).max() for mesh in description.meshes]
            assert len(extents) == 2
            assert max(extents) / min(extents) == pytest.approx(2.0, rel=1e-3)
        assert len(given.geoms) == 2

    def test_missing_and_unreadable_meshes(self) -> None:
        for name, words in (
            (
                "package://hand/part.stl",
                "the collision mesh 'package://hand/part.stl' is not there",
            ),
            ("part.dae", "is not there"),
        ):
            source = ARM.replace('<box size="1 1 1"/>', f'<mesh filename="{name}"/>')
            with pytest.raises(ValueError, match=f"link 'base': .*{words}"):
                load_description(source, stiffness=1)
        source = ARM.replace('<box size="1 1 1"/>', '<mesh filename="part.dae"/>')
        with pytest.raises(ValueError, match=r"link 'base': 'part.dae' cannot be read"):
            load_description(source, stiffness=1, assets={"part.dae": b"x"})

    def test_bad_friction(self) -> None:
        with pytest.raises(ValueError, match="link 'finger': friction must be"):
            load_description(ARM.replace('"0.25"', '"rough"'), stiffness=1)

    def test_entities_are_refused(self) -> None:
        bomb = '<!DOCTYPE r [<!ENTITY a "aaaa">]>' + ARM.replace('<?xml version="1.0"?>', "")
        with pytest.raises(ValueError, match="document type"):
            load_description(bomb, stiffness=1)

    @pytest.mark.parametrize(
        ("depth", "words"), [(600, "MuJoCo cannot compile"), (5000, "too deep")]
    )
    def test_nested_elements_are_refused(self, depth: int, words: str) -> None:
        nest = "<z>" * depth + "</z>" * depth
        with pytest.raises(ValueError, match=f"^source: .*{words}"):
            load_description(ARM.replace("</robot>", f"{nest}</robot>"), stiffness=1)
