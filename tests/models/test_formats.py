"""Files to descriptions: what is honoured, what is listed, what is an error, against MuJoCo."""

from __future__ import annotations

import ast
import itertools
import re
import tracemalloc
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mass_matrix import mass_matrix

import qdsim
from qdsim.description import Actuator, ModelWarning
from qdsim.description.pairs import candidate_pairs
from qdsim.formats import load_description


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo's warnings go to a log file in the working folder."""
    monkeypatch.chdir(tmp_path)


def mjcf(body: str = "", rest: str = "", option: str = "") -> str:
    return f"<mujoco>{option}<worldbody>{body}</worldbody>{rest}</mujoco>"


HINGE = '<body name="b"><joint name="h"{}/><geom name="g" size="0.1"/></body>'
URDF = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
)
TWO = (
    '<body name="b"><joint name="h"/><geom name="g" size="0.1"/>'
    '<body name="c" pos="0 0 1"><joint name="s" type="slide"/><geom name="k" size="0.1"/></body>'
    "</body>"
)


ROPE = (  # over a pulley that divides by nothing
    '<spatial name="{}" stiffness="1"><site site="s1"/><site site="s2"/><pulley divisor="0"/>'
    '<site site="s1"/><site site="s2"/></spatial>'
)
EVERY_JOINT = TWO + (
    '<body pos="1 0 0"><joint name="ball" type="ball"/><geom size="0.1"/><site name="p"/></body>'
    '<body pos="2 0 0"><freejoint name="free"/><geom size="0.1"/></body>'
)
NOT_KNOWN = (
    '<intvelocity name="a" {} kp="5" actrange="-1 1"/>',
    '<muscle name="a" {} lengthrange="-1 1"/>',
    '<general name="a" {} dyntype="integrator" gainprm="2"/>',
    '<general name="a" {} gaintype="user"/>',
    '<position name="a" {} kp="0"/>',
)
DRIVEN = (
    'joint="h"',
    'joint="s"',
    'jointinparent="h"',
    'joint="ball"',
    'joint="free"',
    'tendon="t"',
    'site="p"',
    'cranksite="p" slidersite="p" cranklength="1"',
)
"""What an actuator can drive. Bodies: adhesion alone, tested with the other errors."""


def actuators(text: str, joints: str = TWO, **kw: object) -> tuple[Actuator, ...]:
    source = mjcf(joints, f"<actuator>{text}</actuator>")
    return load_description(source, **kw).actuators  # type: ignore[arg-type]


# ---------------------------------------------------------------- actuators


class TestActuators:
    def test_position(self) -> None:
        (item,) = actuators('<position name="p" joint="h" kp="50" kv="2" ctrlrange="-1 2"/>')
        assert item == Actuator("p", "h", 50.0, 1.0, (-1.0, 2.0), damping=2.0)

    def test_gear(self) -> None:
        (item,) = actuators('<position joint="h" kp="50" gear="-3"/>')
        assert item.stiffness == 450.0
        assert item.gear == -3.0

    @pytest.mark.parametrize("gear", [1.0, -2.5])
    @pytest.mark.parametrize(("gain", "bias"), [(30.0, 30.0), (12.0, 40.0)])
    def test_spring_is_mujocos(self, gear: float, gain: float, bias: float) -> None:
        """The generalised force of MuJoCo's actuator is k (u / gear - q)."""
        text = (
            f'<general name="a" joint="h" gear="{gear}" biastype="affine" '
            f'gainprm="{gain}" biasprm="0 {-bias} 0"/>'
        )
        source = mjcf(HINGE.format(""), f"<actuator>{text}</actuator>")
        (item,) = load_description(source).actuators
        model = mujoco.MjModel.from_xml_string(source)
        data = mujoco.MjData(model)
        for q, u in itertools.product((-0.3, 0.7), (0.0, 1.4)):
            data.qpos[0], data.ctrl[0] = q, u
            mujoco.mj_forward(model, data)
            expected = item.stiffness * (u / item.gear - q)
            assert data.qfrc_actuator[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)

    def test_order_is_the_files(self) -> None:
        items = actuators('<position joint="s" kp="1"/><position joint="h" kp="2"/>')
        assert [(item.joint, item.stiffness) for item in items] == [("s", 1.0), ("h", 2.0)]

    def test_unclamped_control(self) -> None:
        source = mjcf(
            HINGE.format(""),
            '<actuator><position joint="h" kp="1" ctrlrange="-1 1"/></actuator>',
            '<option><flag clampctrl="disable"/></option>',
        )
        assert load_description(source).actuators[0].range is None

    def test_switched_off(self) -> None:
        rest = '<actuator><position name="p" joint="h" group="2"/></actuator>'
        for option in (
            '<option><flag actuation="disable"/></option>',
            '<option actuatorgroupdisable="2"/>',
        ):
            description = load_description(mjcf(HINGE.format(""), rest, option))
            assert description.actuators == ()
            assert description.ignored == ("actuator 'p': switched off by the file",)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                '<intvelocity name="a" joint="h" kp="5" actrange="-1 1"/>',
                r"actuator 'a': activation dynamics \(integrator\) are not supported",
            ),
            (
                '<muscle name="a" joint="h" lengthrange="-1 1"/>',
                "actuator 'a': muscles are not supported",
            ),
            ('<motor name="a" joint="h" gear="0"/>', "actuator 'a': it never pulls"),
            (
                '<general name="a" joint="h" biastype="affine" gainprm="1" biasprm="0 1 0"/>',
                "actuator 'a': its stiffness -1 is negative",
            ),
            ('<adhesion name="a" body="b" ctrlrange="0 1"/>', "actuator 'a': body transmission"),
            ('<position name="a" joint="ball" kp="5"/>', "actuator 'a': joint 'ball' is a ball"),
        ],
    )
    def test_errors(self, text: str, words: str) -> None:
        joints = TWO + (
            '<body><joint name="ball" type="ball"/><geom size="0.1"/><site name="p"/></body>'
        )
        tendon = '<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>'
        source = mjcf(joints, f"<actuator>{text}</actuator>{tendon}")
        with pytest.raises(ValueError, match=words):
            load_description(source)

    def test_joint_force_limit(self) -> None:
        body = HINGE.format(' actuatorfrcrange="-2 2"')
        rest = '<actuator><position name="a" joint="h" kp="5"/></actuator>'
        (item,) = load_description(mjcf(body, rest)).actuators
        assert item.force_range == (-2.0, 2.0)
        tight = rest.replace('kp="5"', 'kp="5" gear="-2" forcerange="-3 .5"')
        assert load_description(mjcf(body, tight)).actuators[0].force_range == (-1.0, 2.0)
        both = rest.replace("/></act", '/><motor name="b" joint="h"/></act')
        with pytest.raises(
            ValueError, match=r"joint 'h': its actuators' force is limited to -2 .. 2"
        ):
            load_description(mjcf(body, both))
        with pytest.warns(ModelWarning, match="joint 'h'"):
            loose = load_description(mjcf(body, both), leave_out="force_limits")
        assert [item.force_range for item in loose.actuators] == [None, None]
        assert "joint 'h': effort limit 2" in load_description(mjcf(body)).ignored

    def test_all_errors_at_once(self) -> None:
        with pytest.raises(ValueError) as error:
            actuators(
                "".join(NOT_KNOWN[1].format(f'joint="{j}"').replace('"a"', f'"m{j}"') for j in "hs")
            )
        assert "'mh'" in str(error.value)
        assert "'ms'" in str(error.value)


class TestStiffness:
    def test_number_overrides_the_file(self) -> None:
        (item,) = actuators('<position joint="h" kp="50" gear="2" ctrlrange="0 1"/>', stiffness=7)
        assert (item.joint, item.stiffness, item.gear, item.range) == ("h", 7.0, 2.0, (0.0, 1.0))

    def test_number_actuates_a_file_without_actuators(self) -> None:
        items = load_description(mjcf(TWO), stiffness=3.0).actuators
        assert [(item.name, item.joint, item.stiffness) for item in items] == [
            ("h", "h", 3.0),
            ("s", "s", 3.0),
        ]

    def test_mapping_adds_after_the_files_actuators(self) -> None:
        items = actuators('<position joint="s" kp="50"/>', stiffness={"h": 2, "s": 4})
        assert [(item.joint, item.stiffness) for item in items] == [("s", 4.0), ("h", 2.0)]

    def test_replaces_motors_and_keeps_what_they_can_pull_with(self) -> None:
        source = mjcf(
            TWO,
            '<actuator><motor name="m" joint="h" gear="5" ctrlrange="-9 9" forcerange="-3 3"/>'
            "</actuator>",
        )
        description = load_description(source, stiffness=4)
        assert description.actuators == (Actuator("m", "h", 4.0, force_range=(-15.0, 15.0)),)
        free = mjcf(
            TWO, '<actuator><motor name="m" joint="h" gear="5" ctrlrange="-2 1"/></actuator>'
        )
        assert load_description(free, stiffness=4).actuators[0].force_range == (-10.0, 5.0)
        assert any("replaced by stiffness=" in item for item in description.ignored)

    def test_actuated_chooses(self) -> None:
        text = '<position name="p" joint="h" kp="50"/><position joint="s" kp="60"/>'
        assert [item.joint for item in actuators(text, actuated=["s"])] == ["s"]
        assert actuators(text, actuated=()) == ()
        items = actuators("", actuated=["s"], stiffness=9)
        assert [(item.joint, item.stiffness) for item in items] == [("s", 9.0)]
        items = actuators('<position joint="h" kp="5"/>', actuated=["s", "h"], stiffness={"s": 9})
        assert [(item.joint, item.stiffness) for item in items] == [("h", 5.0), ("s", 9.0)]

    def test_actuated_needs_a_stiffness(self) -> None:
        with pytest.raises(ValueError, match="joint 's': actuated= names it, stiffness= does not"):
            actuators("", actuated=["s"])

    @pytest.mark.parametrize(
        ("kw", "kind", "words"),
        [
            ({"stiffness": float("nan")}, ValueError, "stiffness must be positive and finite"),
            ({"stiffness": -1}, ValueError, "stiffness must be positive"),
            ({"stiffness": 0}, ValueError, "stiffness must be positive"),
            ({"stiffness": "5"}, TypeError, "stiffness must be a positive number"),
            ({"stiffness": [1, 2]}, TypeError, "stiffness must be a positive number"),
            ({"stiffness": True}, TypeError, "stiffness must be a positive number"),
            ({"stiffness": {"h": -1}}, ValueError, r"stiffness\['h'\] must be positive"),
            ({"stiffness": {"x": 1}}, ValueError, "stiffness: no joint is named 'x'"),
            ({"stiffness": {3: 1}}, TypeError, "joint names must be strings"),
            ({"actuated": "h"}, TypeError, "actuated must be a sequence"),
            ({"actuated": ["x"]}, ValueError, "actuated: no joint is named 'x'"),
            ({"actuated": ["h", "h"]}, ValueError, "names a joint twice"),
            ({"actuated": [1]}, TypeError, "actuated must hold joint names"),
            ({"stiffness": {"free": 1}}, ValueError, "'free' is a ball or free joint"),
        ],
    )
    def test_errors(self, kw: dict[str, object], kind: type[Exception], words: str) -> None:
        body = TWO + '<body><freejoint name="free"/><geom size="0.1"/></body>'
        with pytest.raises(kind, match=words):
            load_description(mjcf(body), **kw)  # type: ignore[arg-type]


# ---------------------------------------------------------------- joints, bodies, options


class TestJoints:
    def test_every_field(self) -> None:
        joint = (
            ' type="slide" axis="0 3 4" pos="1 2 3" ref="0.5" range="-1 2" '
            'stiffness="7" springref="0.25"'
        )
        (item,) = load_description(mjcf(HINGE.format(joint))).joints
        assert item.type == "slide"
        assert item.axis == pytest.approx((0.0, 0.6, 0.8))
        assert item.pos == (1.0, 2.0, 3.0)
        assert (item.ref, item.range, item.stiffness, item.springref) == (0.5, (-1, 2), 7.0, 0.25)

    def test_degrees(self) -> None:
        (item,) = load_description(mjcf(HINGE.format(' range="-90 90" ref="45"'))).joints
        assert item.ref == pytest.approx(np.pi / 4)
        assert item.range == pytest.approx((-np.pi / 2, np.pi / 2))

    def test_options_switch_things_off(self) -> None:
        source = mjcf(
            HINGE.format(' range="-90 90" stiffness="3"'),
            option='<option><flag limit="disable" spring="disable" gravity="disable"/></option>',
        )
        description = load_description(source)
        assert description.joints[0].range is None
        assert description.joints[0].stiffness == 0.0
        assert description.gravity == (0.0, 0.0, 0.0)

    def test_compensation_of_gravity_and_mocap(self) -> None:
        body = TWO.replace('name="c"', 'name="c" gravcomp="0.5"')
        text = mjcf(body + '<body name="m" mocap="true" pos="1 2 3" quat="0 1 0 0"/>')
        description = load_description(text, stiffness=1)
        assert description.ignored == ()
        assert {body.name: body.gravcomp for body in description.bodies}["c"] == 0.5
        (placed,) = [body for body in description.bodies if body.mocap]
        assert (placed.name, placed.pos, placed.quat) == ("m", (1, 2, 3), (0, 1, 0, 0))
        assert load_description(description.to_mjcf()).bodies == description.bodies

    def test_inertia_in_body_axes(self) -> None:
        """The kinetic energy of a spinning body is MuJoCo's."""
        source = mjcf(
            '<body name="b" pos="0 0 1"><freejoint/><inertial pos="0.1 0.2 0.3" mass="2" '
            'quat="0.5 0.5 -0.1 0.7" diaginertia="0.1 0.2 0.25"/></body>'
        )
        body = load_description(source).bodies[1]
        model = mujoco.MjModel.from_xml_string(source)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        matrix = mass_matrix(model, data)
        com = np.array(body.com)
        about_origin = np.array(body.inertia) + body.mass * (
            com @ com * np.eye(3) - np.outer(com, com)
        )
        np.testing.assert_allclose(matrix[3:, 3:], about_origin, rtol=1e-12, atol=1e-12)


class TestIgnoredAndErrors:
    def test_listed(self) -> None:
        source = mjcf(
            '<body name="b"><joint name="h" damping="0.1" armature="0.2" range="0 1" '
            'margin="0.01" solreflimit="0.01 1"/>'
            '<geom name="g" size="0.1" gap="0.01" solref="0.01 1"/><site name="s"/></body>'
            '<geom name="floor" type="plane" size="1 1 1"/>',
            '<actuator><position name="p" joint="h" kp="3" kv="2" timeconst="0.3"/></actuator>'
            '<contact><pair geom1="g" geom2="floor" gap="0.02" solimp="0.8 0.9 0.01"/></contact>'
            '<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>',
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ignored = load_description(source).ignored
        assert set(ignored) == {
            "joint 'h': armature 0.2",
            "geom 'g': gap 0.01",
            "actuator 'p': time constant 0.3",
            "pair 'floor' - 'g': gap 0.02",
        }

    def test_damping_and_armature_count_in_the_second_order_step(self) -> None:
        source = mjcf(
            '<body name="b"><joint name="h" damping="0.1" armature="0.2" range="0 1" margin="0.01"/>'
            '<joint name="s" type="slide" damping="3"/><geom name="g" size="0.1"/>'
            '<body><joint name="c" type="ball" damping="0.7" armature="0.3"/><geom size="0.1"/></body>'
            '</body><body><joint name="f" type="free" damping="0.4"/><geom size="0.1"/></body>'
        )
        model = qdsim.load(source)
        assert model.parameters.joint_damping.tolist() == [0.1, 3.0, 0.7, 0.4]
        assert model.parameters.joint_armature.tolist() == [0.2, 0.0, 0.3, 0.0]
        assert "joint 'h': armature 0.2" in model.ignored
        assert not any("damping" in item for item in model.ignored)
        assert model.ignored_by_dynamics == ()
        again = qdsim.load(model.description.to_mjcf())
        assert again.parameters.joint_damping.tolist() == [0.1, 3.0, 0.7, 0.4]
        assert again.parameters.joint_armature.tolist() == [0.2, 0.0, 0.3, 0.0]
        off = qdsim.load(
            mjcf(HINGE.format(' damping="0.3"'), option='<option><flag damper="disable"/></option>')
        )
        assert off.parameters.joint_damping.tolist() == [0.0]
        scene = qdsim.SceneBuilder()
        scene.body("b", mass=1.0, inertia=(1, 1, 1))
        scene.joint("b", "ball", damping=2.0, armature=0.5)
        built = qdsim.build(scene.build())
        assert built.parameters.joint_damping.tolist() == [2.0]
        assert built.with_parameters(joint_armature=0.7).parameters.joint_armature.tolist() == [0.7]
        with pytest.raises(ValueError, match="damping"):
            qdsim.description.Joint("j", damping=-1.0)

    def test_nothing_to_list(self) -> None:
        assert load_description(mjcf(TWO)).ignored == ()

    def test_dry_friction(self) -> None:
        source = mjcf(HINGE.format(' frictionloss="0.3"'))
        description = load_description(source)
        assert description.joints[0].friction == 0.3
        assert description.ignored == ()
        off = source.replace(
            "<worldbody>", '<option><flag frictionloss="disable"/></option><worldbody>'
        )
        assert load_description(off).joints[0].friction == 0.0

    @pytest.mark.parametrize(
        ("kind", "source", "words"),
        [
            (
                "force_limits",
                mjcf(
                    TWO.replace('name="h"', 'name="h" actuatorfrcrange="-1 1"'),
                    '<actuator><position name="a" joint="h" kp="5"/><motor joint="h"/></actuator>',
                ),
                "joint 'h': its actuators' force is limited to -1 .. 1",
            ),
            (
                "tendons",
                mjcf(
                    TWO,
                    f"<tendon>{ROPE.format('t')}</tendon>"
                    '<equality><tendon name="e" tendon1="t"/></equality>',
                ).replace(
                    "</worldbody>", '<site name="s1"/><site name="s2" pos="1 0 0"/></worldbody>'
                ),
                "equality 'e': its tendon 't'",
            ),
            (
                "actuators",
                mjcf(
                    TWO,
                    '<actuator><position joint="s" kp="5"/>'
                    '<intvelocity name="v" joint="s" kp="5" actrange="-1 1"/></actuator>',
                ),
                "actuator 'v'",
            ),
        ],
    )
    def test_left_out(self, kind: str, source: str, words: str) -> None:
        with pytest.raises(ValueError, match=f"leave_out='{kind}'"):
            load_description(source)
        with pytest.warns(ModelWarning, match=words):
            description = load_description(source, leave_out=kind)  # type: ignore[arg-type]
        with pytest.warns(ModelWarning, match=words):
            again = load_description(source, leave_out=[kind, "force_limits"])  # type: ignore[list-item]
        assert again == description
        assert len(description.ignored) >= 1

    @pytest.mark.short_cases(10)
    @pytest.mark.parametrize("actuator", NOT_KNOWN)
    @pytest.mark.parametrize("where", DRIVEN)
    def test_actuators_that_no_step_knows(self, actuator: str, where: str) -> None:
        """Errors offer words that load the file: what it drove is free, unless ``stiffness`` says otherwise."""
        tendon = '<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>'
        source = mjcf(EVERY_JOINT, f"<actuator>{actuator.format(where)}</actuator>{tendon}")
        try:
            mujoco.MjModel.from_xml_string(source)
        except ValueError:
            pytest.skip("MuJoCo has no such actuator")
        with pytest.raises(ValueError, match="actuator 'a'") as error:
            load_description(source)
        words = re.findall(r"leave_out='(\w+)'", str(error.value))
        left_out = ["tendons"] * ("tendon" in where) + ["actuators"]
        integrates = "intvelocity" in actuator or "integrator" in actuator
        can_be_driven = not any(word in where for word in ("ball", "free", "crank"))
        assert words == ["activations"] * (integrates and can_be_driven) + left_out
        assert "actuated=" not in str(error.value)
        for word in left_out:
            with pytest.warns(ModelWarning, match="left out: actuator 'a'"):
                assert load_description(source, leave_out=word).actuators == ()
        if "stiffness=" in str(error.value):
            (item,) = load_description(source, stiffness=3.0).actuators
            assert (item.name, item.joint, item.stiffness) == ("a", where[-2], 3.0)
        with pytest.raises(ValueError, match="joint 's': actuated= names it, stiffness= does not"):
            load_description(source, leave_out="actuators", actuated=["s"])

    @pytest.mark.parametrize("actuator", NOT_KNOWN)
    @pytest.mark.parametrize("spring_first", [True, False])
    def test_beside_a_spring(self, actuator: str, spring_first: bool) -> None:
        """The spring stays, in whatever order they come; stiffness= makes the joint that one spring."""
        both = ['<position name="p" joint="s" kp="5" gear="2"/>', actuator.format('joint="s"')]
        text = "".join(both if spring_first else both[::-1])
        with pytest.raises(ValueError, match=r"actuator 'a': .*leave_out='actuators'"):
            actuators(text)
        with pytest.warns(ModelWarning, match="left out: actuator 'a'"):
            (item,) = actuators(text, leave_out="actuators")
        assert item == Actuator("p", "s", 20.0, 2.0)
        assert actuators(text, stiffness=7.0) == (Actuator("p", "s", 7.0, 2.0),)

    @pytest.mark.parametrize("count", [1, 2, 30])
    def test_one_line_gets_past_all_of_them(self, count: int) -> None:
        """Also past those that a long message does not show."""
        body = '<site name="s1"/><site name="s2" pos="1 0 0"/>' + "".join(
            f'<body name="c{i}"><joint name="k{i}"/><geom size="1"/></body>' for i in range(count)
        )
        motors = "".join(
            f'<intvelocity name="m{i}" joint="k{i}" kp="5" actrange="-1 1"/>' for i in range(count)
        )
        springs = f'<position name="p" joint="k{count - 1}" kp="3" forcerange="-1 1"/>'
        ropes = "".join(ROPE.format(f"t{i}") for i in range(count))
        source = mjcf(body, f"<tendon>{ropes}</tendon><actuator>{motors}{springs}</actuator>")
        with pytest.raises(ValueError) as error:
            load_description(source)
        found = re.search(r"leave_out=(\[.*\]) loads the file without all", str(error.value))
        assert found is not None
        with pytest.warns(ModelWarning, match="left out"):
            description = load_description(source, leave_out=ast.literal_eval(found.group(1)))
        assert [item.name for item in description.actuators] == ["p"]

    def test_no_way_past_what_nobody_may_leave_out(self) -> None:
        source = mjcf(
            TWO, '<actuator><motor joint="h"/></actuator>', '<option density="1" wind="1 0 0"/>'
        )
        with pytest.raises(ValueError, match="wind") as error:
            load_description(source)
        assert "all of these" not in str(error.value)

    @pytest.mark.skipif(not hasattr(mujoco.mjtTrn, "mjTRN_SO3"), reason="one control each")
    def test_actuators_with_several_controls(self) -> None:
        """Ranges and keyframes count controls, not actuators."""
        source = mjcf(
            EVERY_JOINT,
            '<actuator><orientation name="a" joint="ball"/>'
            '<position name="p" joint="h" kp="5" ctrlrange="-3 4"/></actuator>'
            '<keyframe><key ctrl="1 2 3 0.5"/></keyframe>',
        )
        with pytest.warns(ModelWarning, match="actuator 'a'"):
            description = load_description(source, leave_out="actuators")
        assert description.actuators == (Actuator("p", "h", 5.0, 1.0, (-3.0, 4.0)),)
        np.testing.assert_array_equal(description.keyframes[0].u, [0.5])

    def test_springs_without_their_limits(self) -> None:
        text = '<position name="a" joint="h" kp="5" gear="2" ctrlrange="-3 3" forcerange="-1 1"/>'
        with pytest.warns(ModelWarning):
            (item,) = actuators(text, leave_out="force_limits")
        assert item == Actuator("a", "h", 20.0, 2.0, (-3.0, 3.0))

    def test_one_kind_does_not_excuse_another(self) -> None:
        source = mjcf(
            TWO + '<site name="s1"/><site name="s2" pos="1 0 0"/>',
            f"<tendon>{ROPE.format('m')}</tendon>"
            '<actuator><position name="a" joint="h" kp="5" forcerange="-1 1"/></actuator>',
        )
        with pytest.raises(ValueError, match="tendon 'm'") as error:
            load_description(source, leave_out="force_limits")
        assert "forcerange" not in str(error.value)

    def test_unknown_kinds(self) -> None:
        with pytest.raises(ValueError, match=r"leave_out: expected some of .*'tendon'"):
            load_description(mjcf(TWO), leave_out="tendon")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="leave_out must be names, got int"):
            load_description(mjcf(TWO), leave_out=3)  # type: ignore[arg-type]

    def test_pairs_given_twice(self) -> None:
        pair = '<pair geom1="{}" geom2="{}" condim="{}"/>'
        same = pair.format("g", "k", 3) + pair.format("k", "g", 3)
        description = load_description(mjcf(TWO, f"<contact>{same}</contact>"))
        assert len(description.pairs) == 1
        assert description.ignored == ("pair 'g' - 'k': given twice",)
        other = pair.format("g", "k", 3) + pair.format("k", "g", 1)
        with pytest.raises(ValueError, match="given twice, differently"):
            load_description(mjcf(TWO, f"<contact>{other}</contact>"))

    def test_equalities_that_are_off_are_listed(self) -> None:
        rest = '<equality><weld name="e" body1="b" active="false"/></equality>'
        ignored = load_description(mjcf(TWO, rest)).ignored
        assert ignored == ("equality 'e': weld constraint, switched off",)

    def test_wind(self) -> None:
        with pytest.raises(ValueError, match="wind"):
            load_description(mjcf(TWO, option='<option density="1" wind="1 0 0"/>'))
        ignored = load_description(mjcf(TWO, option='<option viscosity="1"/>')).ignored
        assert len(ignored) == 1

    def test_flex(self) -> None:
        flex = (
            '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="1 1 1" mass="1" dim="2" '
            'radius="0.01"/>'
        )
        with pytest.raises(ValueError, match="flex 'cloth': deformable"):
            load_description(mjcf(flex))

    def test_unnamed_elements_get_names(self) -> None:
        source = mjcf(
            '<body><joint/><geom size="1"/><body><joint/><geom size="1"/></body></body>'
            '<body name="body1"><freejoint/><geom name="geom0" size="1"/></body>',
            '<actuator><position joint="joint_x"/></actuator>'.replace("joint_x", "j"),
        ).replace("<joint/>", '<joint name="j"/>', 1)
        description = load_description(source)
        assert [body.name for body in description.bodies] == ["world", "body1_", "body2", "body1"]
        assert [joint.name for joint in description.joints] == ["j", "joint1", "joint2"]
        assert [geom.name for geom in description.geoms] == ["geom0_", "geom1", "geom0"]
        assert description.actuators[0].name == "actuator0"


class TestKeyframes:
    SOURCE = mjcf(
        TWO + '<body name="f"><freejoint/><geom size="1"/></body>',
        '<actuator><position name="p" joint="s" kp="5"/></actuator>'
        '<keyframe><key name="home" qpos="0.1 0.2 1 2 3 1 0 0 0" ctrl="0.3"/>'
        '<key qpos="0.5 0.6 1 2 3 0 1 0 0"/></keyframe>',
    )

    def test_read(self) -> None:
        home, other = load_description(self.SOURCE).keyframes
        assert (home.name, home.q, home.u) == ("home", (0.1, 0.2, 1, 2, 3, 1, 0, 0, 0), (0.3,))
        assert (other.name, other.q[:2]) == ("key1", (0.5, 0.6))

    def test_new_actuators_hold(self) -> None:
        home = load_description(self.SOURCE, stiffness={"h": 4.0}).keyframes[0]
        assert home.u == (0.3, 0.1)

    def test_dropped_actuators(self) -> None:
        assert load_description(self.SOURCE, actuated=()).keyframes[0].u == ()


# ---------------------------------------------------------------- sources


class TestSources:
    def test_all_kinds_agree(self, tmp_path: Path) -> None:
        source = mjcf(TWO, '<actuator><position joint="h" kp="3"/></actuator>')
        file = tmp_path / "scene.xml"
        file.write_text(source)
        expected = load_description(source)
        assert load_description(file) == expected
        assert load_description(str(file)) == expected
        assert load_description("\n  " + source) == expected
        assert load_description(mujoco.MjSpec.from_string(source)) == expected
        assert load_description(mujoco.MjModel.from_xml_string(source)) == expected

    def test_includes_are_relative_to_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "part.xml").write_text(mjcf(TWO))
        file = tmp_path / "scene.xml"
        file.write_text('<mujoco><include file="part.xml"/></mujoco>')
        assert len(load_description(file).joints) == 2

    def test_assets(self) -> None:
        part = mjcf(TWO).encode()
        source = '<mujoco><include file="part.xml"/></mujoco>'
        assert len(load_description(source, assets={"part.xml": part}).joints) == 2

    @pytest.mark.parametrize(
        ("source", "kind", "words"),
        [
            ("nowhere/robot.xml", FileNotFoundError, "there is no file 'nowhere/robot.xml'"),
            ("", ValueError, "the path is empty"),
            ("   ", ValueError, "the path is empty"),
            ("a\0b", ValueError, "null character"),
            (".", IsADirectoryError, "is a folder"),
            ("x" + mjcf(TWO), ValueError, "neither a path nor XML"),
            (3, TypeError, "source must be a path"),
            (None, TypeError, "source must be a path"),
            (b"<mujoco/>", TypeError, "source must be a path"),
            ("<", ValueError, "neither MJCF nor URDF: it has no root element"),
            ("<html></html>", ValueError, "its root element is <html>"),
            ("<mujoco>", ValueError, "MuJoCo cannot compile the XML text"),
            ("<mujoco><worldbody><body>", ValueError, "MuJoCo cannot compile the XML text"),
            ("<mujoco><nonsense/></mujoco>", ValueError, "MuJoCo cannot compile.*nonsense"),
            ("<robot><link", ValueError, "not well-formed"),
            ('<robot name="r"><link name="a"/><link name="a"/></robot>', ValueError, "compile"),
            ("<mujoco>\0</mujoco>", ValueError, "null character"),
            (mjcf('<geom size="nan"/>'), ValueError, "cannot compile.*nan size in geom"),
            (mjcf(TWO, option='<option gravity="0 0 nan"/>'), ValueError, "gravity must be finite"),
            (mjcf('<body pos="inf 0 0"/>'), ValueError, "body 'body1': pos must be finite"),
            (mjcf("<include file='x'/>"), ValueError, "MuJoCo cannot compile"),
        ],
    )
    def test_bad_sources(self, source: object, kind: type[Exception], words: str) -> None:
        with pytest.raises(kind, match=words):
            load_description(source)

    def test_cut_files(self) -> None:
        """Every prefix of a good file is an error of ours, never anything else."""
        for text in (URDF, mjcf(TWO, '<actuator><position joint="h" kp="3"/></actuator>')):
            for end in range(1, len(text.rstrip()) - 1, 37):
                with pytest.raises(ValueError, match="source"):
                    load_description(text[:end], stiffness=1)

    def test_file_that_is_not_text(self, tmp_path: Path) -> None:
        file = tmp_path / "scene.xml"
        file.write_bytes(b"\xff\xfe\x00<mujoco/>")
        with pytest.raises(ValueError, match="is not UTF-8 text"):
            load_description(file)

    @pytest.mark.long
    def test_deep_files(self) -> None:
        """MuJoCo and the XML parsers bound the depth; nothing overflows the stack."""
        for deep in (
            mjcf("<body>" * 20000 + "</body>" * 20000),
            "<robot>" + "<link>" * 200000 + "</link>" * 200000 + "</robot>",
        ):
            with pytest.raises(ValueError, match="source"):
                load_description(deep)

    @pytest.mark.parametrize(
        ("kw", "kind", "words"),
        [
            ({"assets": ["x"]}, TypeError, "assets must map"),
            ({"assets": {"x": "text"}}, TypeError, "assets must map"),
            ({"package_dirs": [3]}, TypeError, "package_dirs must be folders"),
            ({"package_dirs": 3}, TypeError, "package_dirs must be folders"),
            ({"package_dirs": ["nowhere"]}, FileNotFoundError, "no folder 'nowhere'"),
        ],
    )
    def test_bad_arguments(self, kw: dict[str, object], kind: type[Exception], words: str) -> None:
        with pytest.raises(kind, match=words):
            load_description(mjcf(TWO), **kw)  # type: ignore[arg-type]


@pytest.mark.long
def test_what_never_moves_costs_no_pairs() -> None:
    """Thousands of fixed geometries and one that moves: pairs of that one, and no table of all with all."""
    count = 4000
    fixed = "".join(f'<geom size="0.1" pos="{i} 0 0"/>' for i in range(count))
    free = '<body pos="0 0 9"><freejoint/><geom size="0.1"/></body>'
    description = load_description(f"<mujoco><worldbody>{fixed}{free}</worldbody></mujoco>")
    tracemalloc.start()
    pairs = candidate_pairs(description).geom
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(pairs, np.column_stack((np.arange(count), np.full(count, count))))
    assert most < 0.2 * count**2
