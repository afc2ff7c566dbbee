"""Steps that have no answer, or more than one: the error names what contradicts each other, or what nothing
holds (formulation 2: where the solution of epsilon = 0 is unique)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import qdsim

SCENE = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="1 1 .1" condim="{condim}"/>
  <body name="ball" pos="0 0 .1"><freejoint/>
    <geom type="sphere" size=".1" mass="1" condim="{condim}" friction="1 .01 .01"/></body>
  <body name="cube" pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
</worldbody></mujoco>"""

GRASP = """
<mujoco><option gravity="0 0 {gravity}"/><worldbody>
  <body name="rod" pos="0 0 1"><freejoint/>
    <geom type="{kind}" size=".05 .05 .05" mass="1" condim="{condim}" friction=".8 .02 .01"/></body>
  <body name="left" pos="-.1 0 1"><joint name="l" type="slide" axis="1 0 0"/>
    <geom type="{finger}" size=".05 .04 .04" mass="1" condim="{condim}" friction=".8 .02 .01"/></body>
  <body name="right" pos=".1 0 1"><joint name="r" type="slide" axis="1 0 0"/>
    <geom type="{finger}" size=".05 .04 .04" mass="1" condim="{condim}" friction=".8 .02 .01"/></body>
</worldbody><actuator><position joint="l" kp="1000"/><position joint="r" kp="1000"/></actuator></mujoco>"""


def still(**changes) -> qdsim.Options:
    return qdsim.Options(epsilon=0.0, **changes)


@pytest.mark.parametrize("kappa", [None, 100.0])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_a_ball_that_may_roll_is_named(friction: str, kappa: float | None) -> None:
    """Friction at a point leaves three rotations free; rolling and torsional friction hold them."""
    options = still(friction=friction, kappa=kappa)
    for condim in (1, 3, 4):
        model = qdsim.load(SCENE.format(condim=condim))
        for function in (qdsim.step, qdsim.linearize, qdsim.differentiate):
            with pytest.raises(qdsim.SolverError, match=r"not unique.*motion of 'ball'") as caught:
                function(model, model.default_q, [], options)
            assert caught.value.info.status == "not unique"
            assert caught.value.culprits == ("motion of 'ball'",)
            assert pickle.loads(pickle.dumps(caught.value)).culprits == caught.value.culprits
        held = options.replace(held=("ball",))
        assert qdsim.step(model, model.default_q, [], held).info.status == "solved"
        assert qdsim.step(model, model.default_q, []).info.status == "solved"  # with mass
    model = qdsim.load(SCENE.format(condim=6))
    step = qdsim.step(model, model.default_q, [], options)
    np.testing.assert_allclose(step.delta[3:6], 0.0, atol=1e-8)


def grasp(kind: str, finger: str, condim: int, gravity: float) -> qdsim.Model:
    return qdsim.load(GRASP.format(kind=kind, finger=finger, condim=condim, gravity=gravity))


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("gravity", [0.0, -9.81])
def test_what_a_grasp_holds_is_unique(gravity: float, friction: str) -> None:
    """Two points with friction leave the turn about their line, faces and torsion do not."""
    squeeze, options = [0.02, -0.02], still(friction=friction)
    for kind, finger, condim in (("box", "box", 3), ("sphere", "sphere", 4), ("sphere", "box", 4)):
        model = grasp(kind, finger, condim, gravity)
        step = qdsim.step(model, model.default_q, squeeze, options)
        np.testing.assert_allclose(step.delta[:6], 0.0, atol=1e-7)
    model = grasp("sphere", "sphere", 3, gravity)
    with pytest.raises(qdsim.SolverError, match=r"not unique.*motion of 'rod'"):
        qdsim.step(model, model.default_q, squeeze, options)


def test_what_nothing_touches_is_named() -> None:
    model = grasp("box", "box", 3, 0.0)
    q = np.array(model.default_q)
    q[model.slice_q("rod")][:3] = [0.0, 3.0, 1.0]
    with pytest.raises(qdsim.SolverError, match=r"not unique.*motion of 'rod'"):
        qdsim.step(model, q, [0, 0], still())
    falling = grasp("box", "box", 3, -9.81)
    with pytest.raises(qdsim.SolverError, match=r"nothing limits.*motion of 'rod'") as caught:
        qdsim.step(falling, q, [0, 0], still())
    assert caught.value.info.status == "unbounded"


@pytest.mark.parametrize("errors", ["raise", "mark"])
def test_samples_of_a_batch_are_named_too(errors: str) -> None:
    model = qdsim.load(SCENE.format(condim=3))
    q = np.tile(model.default_q, (3, 1))
    if errors == "raise":
        with pytest.raises(qdsim.SolverError, match=r"sample 0.*motion of 'ball'") as caught:
            qdsim.step_batch(model, q, np.zeros((3, 0)), still(), errors=errors)
        assert caught.value.culprits == ("motion of 'ball'",)
    else:
        batch = qdsim.step_batch(model, q, np.zeros((3, 0)), still(), errors=errors)
        assert list(batch.status_names) == ["not unique"] * 3


WALLS = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="wall" pos="-1 0 0"><geom type="box" size=".5 1 1"/></body>
  <body name="stop" pos="{stop} 0 0"><geom type="box" size=".5 1 1"/></body>
  <body name="cart"><joint name="x" type="slide" axis="1 0 0" {limit}/><geom type="box" size=".55 .1 .1" mass="1"/></body>
  <body name="other" pos="0 5 0"><joint name="y" type="slide" axis="1 0 0"/><geom type="sphere" size=".1" mass="1"/></body>
</worldbody>{more}</mujoco>"""


@pytest.mark.parametrize("kappa", [None, 100.0])
def test_what_contradicts_each_other_is_named(kappa: float | None) -> None:
    """A cart 5 cm deep in a wall, and something in its way out."""
    options = qdsim.Options(margin=0.5, kappa=kappa)
    cases = [
        (WALLS.format(stop=1.02, limit="", more=""), ["contact of 'stop' with 'cart'"]),
        (
            WALLS.format(stop=9, limit='range="-1 .03" limited="true"', more=""),
            ["limit of joint 'x'"],
        ),
        (
            WALLS.format(
                stop=9, limit="", more='<equality><joint joint1="x" joint2="y"/></equality>'
            ),
            [],
        ),
    ]
    for xml, others in cases:
        model = qdsim.load(xml)
        if not others:  # the coupling moves the other one along
            assert qdsim.step(model, [0.0, 0.0], [], options).q_next[1] > 0.04
            continue
        with pytest.raises(qdsim.SolverError, match="infeasible") as caught:
            qdsim.step(model, [0.0, 0.0], [], options)
        wanted = {"contact of 'wall' with 'cart'", *others}
        assert set(caught.value.culprits) == wanted
        assert all(one in str(caught.value) for one in wanted)
    rigid = '<equality><joint joint1="x" polycoef="0 0 0 0 0"/></equality>'
    model = qdsim.load(WALLS.format(stop=9, limit="", more=rigid))
    with pytest.raises(qdsim.SolverError) as caught:
        qdsim.step(model, [0.0, 0.0], [], options)
    assert "contact of 'wall' with 'cart'" in caught.value.culprits
    assert any(one.startswith("constraint 0") and "cart" in one for one in caught.value.culprits)


ARM = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="wall" pos="{wall} 0 0"><geom type="box" size=".1 1 1" friction="1 0 0"/></body>
  <body name="arm"><joint name="hinge" type="hinge" axis="0 1 0"/>{more}
    <geom type="sphere" size=".1" pos="1 0 0" mass="1" friction="1 0 0"/></body>
  <body name="cart" pos="0 5 0"><joint name="x" type="slide" axis="1 0 0"/><geom type="sphere" size=".1" mass="1"/></body>
</worldbody><actuator><position joint="hinge" kp="100"/><position joint="x" kp="100"/></actuator></mujoco>"""
ACROSS = '<joint type="hinge" axis="0 0 1"/>'


@pytest.mark.parametrize("tilt", [0.0, 3e-9, 1e-7])
@pytest.mark.parametrize("gap", [4e-9, 2e-4])
def test_a_contact_across_a_joints_axis_does_not_hold_the_joint(tilt: float, gap: float) -> None:
    """Flanges that touch face to face, as links do at their joint: turning slides them and, but for the rounding of
    a mesh's vertices, does not part them. Such contacts are no constraint, smoothed or not."""
    model = qdsim.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody><geom name="base" type="box" size=".1 .1 .1"/>
        <body name="link" pos="0 0 {0.2 + gap}"><joint name="j" axis="{tilt} 0 1"/>
        <geom name="flange" type="box" size=".1 .1 .1" mass="1"/></body></worldbody>
        <actuator><position joint="j" kp="20"/></actuator></mujoco>"""
    )
    assert len(model.collide([0.0], 0.01)) == 4
    for kappa in (None, 1.0, 100.0, 1e4):
        result = qdsim.linearize(model, [0.0], [0.2], qdsim.Options(margin=0.01, kappa=kappa))
        np.testing.assert_allclose(result.q_next, [0.2], rtol=1e-6)
        np.testing.assert_allclose(result.B, [[1.0]], rtol=1e-6)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_a_wedged_arm_stays_where_it_is(friction: str) -> None:
    """Near its dead centre the tip slides along the wall faster than it parts from it: with friction 1 no
    motion opens even a micrometre, and none has to. Deep in the wall, that is an error that says so. (Along the wall it
    can slide by a second joint: friction of what one joint alone moves is left out.)"""
    options = qdsim.Options(friction=friction, margin=0.05)
    angle = 0.05
    for depth in (1e-7, 1e-5, 5e-4):
        model = qdsim.load(ARM.format(wall=np.cos(angle) + 0.2 - depth, more=ACROSS))
        assert model.collide([angle, 0.0, 0.0], 0.0)["dist"] == pytest.approx([-depth], rel=1e-6)
        for command in (0.2, -0.2):
            result = qdsim.linearize(model, [angle, 0.0, 0.0], [command, 0.3], options)
            np.testing.assert_allclose(result.q_next, [angle, 0.0, 0.3], atol=1e-8)
            info = result.step.info
            assert info.status == "solved" and info.relaxed_contacts == 1
            assert info.derivative_exact is False
            smooth = qdsim.step(
                model, [angle, 0.0, 0.0], [command, 0.3], options.replace(kappa=1e4)
            )
            assert smooth.info.relaxed_contacts == 1
            # sliding takes less than the gap that stands in for the penetration: 1e-3 of the tip's 0.1 m
            np.testing.assert_allclose(smooth.q_next, [angle, 0.0, 0.3], atol=2e-4)
    model = qdsim.load(ARM.format(wall=np.cos(angle) + 0.2 - 0.02, more=ACROSS))
    with pytest.raises(qdsim.SolverError, match="infeasible") as caught:
        qdsim.step(model, [angle, 0.0, 0.0], [0.0, 0.0], options)
    assert caught.value.culprits == ("contact of 'wall' with 'arm'",)
    free = qdsim.step(model, [0.5, 0.0, 0.0], [0.5, 0.0], options)
    assert free.info.relaxed_contacts == 0


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
def test_friction_does_not_hold_the_only_joint_between_two_bodies(friction: str) -> None:
    """The tip of an arm near its dead centre, close to a wall: it turns away freely, and towards the wall until the
    normal stops it."""
    options, angle, gap = qdsim.Options(friction=friction, margin=0.05), 0.05, 1e-5
    model = qdsim.load(ARM.format(wall=np.cos(angle) + 0.2 + gap, more=""))
    for command in (0.2, -0.2):
        result = qdsim.linearize(model, [angle, 0.0], [command, 0.3], options)
        least = angle - gap / np.sin(angle)
        np.testing.assert_allclose(result.q_next, [max(command, least), 0.3], atol=1e-8)
        np.testing.assert_allclose(result.B, np.diag([float(command > 0.0), 1.0]), atol=1e-8)
        smooth = qdsim.step(model, [angle, 0.0], [command, 0.3], options.replace(kappa=1e6))
        np.testing.assert_allclose(smooth.q_next, result.q_next, atol=2e-4)
