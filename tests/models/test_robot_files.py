"""What a robot's file says by default: the home keyframe, links that overlap, what is ignored."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest

import qdsim

HOME = """
<mujoco><worldbody>
  <body name="arm"><joint name="turn" range="-2 2" axis="0 0 1" limited="true"/>
    <geom size="0.1 0.1 0.2" type="box" mass="1"/></body>
  <body name="ball" pos="1 0 0"><freejoint name="ball"/><geom size="0.1" mass="1"/></body>
</worldbody>
<actuator><position name="turn" joint="turn" kp="10"/></actuator>
<keyframe>
  <key name="ready" qpos="0.2 2 0 0 1 0 0 0" ctrl="0.2"/>
  <key name="{name}" qpos="0.7 1 2 3 0 2 0 0" ctrl="0.8"/>
</keyframe></mujoco>"""


def test_the_home_keyframe_is_the_default_configuration() -> None:
    model = qdsim.load(HOME.format(name="home"))
    assert tuple(model.keyframes) == ("ready", "home")
    np.testing.assert_array_equal(model.default_q, model.keyframes["home"].q)
    np.testing.assert_allclose(model.default_q, [0.7, 1, 2, 3, 0, 1, 0, 0])
    again = qdsim.load(model.description.to_mjcf())
    np.testing.assert_array_equal(again.default_q, model.default_q)


def test_without_a_home_keyframe_the_default_is_mujocos() -> None:
    xml = HOME.format(name="Home")
    model = qdsim.load(xml)
    np.testing.assert_array_equal(model.default_q, mujoco.MjModel.from_xml_string(xml).qpos0)


def chain(rng: np.random.Generator, length: int, depth: float) -> str:
    """A chain of balls, each inside the next but one by ``depth`` of a radius, and a free ball inside the last."""
    radius = 10.0 ** rng.uniform(-3, 0)
    apart = (2.0 - depth) * radius / 2.0  # neighbours are filtered, so only every second one counts
    inner = "".join(
        f"<body name='link{i}' pos='{apart if i else 0.0} 0 0'><joint name='j{i}' axis='0 0 1'/>"
        f"<geom name='g{i}' size='{radius}' mass='1'/>"
        for i in range(length)
    )
    place = (length - 1) * apart + (2.0 - 0.5 * depth) * radius
    return f"""<mujoco><worldbody><body name="base" pos="0 0 1">{inner}{"</body>" * length}</body>
      <body name="object" pos="{place} 0 1"><freejoint/><geom name="object" size="{radius}" mass="1"/></body>
      </worldbody></mujoco>"""


@pytest.mark.parametrize("seed", range(6))
def test_links_deep_in_each_other_are_excluded_with_one_warning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, depth = int(rng.integers(3, 7)), float(rng.uniform(0.15, 0.5))
    xml = chain(rng, length, depth)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = qdsim.load(xml)
    assert len(caught) == 1 and issubclass(caught[0].category, qdsim.ModelWarning)
    for i in range(length - 2):
        assert f"'link{i}' and 'link{i + 2}'" in str(caught[0].message)
    assert "object" not in str(caught[0].message)  # an object is not a link: it is pushed out
    deep = model.collide(model.default_q, 0.0)
    names = {model.geom_names[i] for i in deep["geom_b"]} | {
        model.geom_names[i] for i in deep["geom_a"]
    }
    assert names == {"object", f"g{length - 1}"}
    kept = qdsim.load(xml, exclude_overlaps=False)
    assert kept.pair_count == model.pair_count + length - 2


@pytest.mark.parametrize("depth", [0.0, 1e-3, 0.03])
def test_links_that_touch_are_kept(depth: float) -> None:
    xml = chain(np.random.default_rng(1), 4, depth)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = qdsim.load(xml)
    assert model.pair_count == qdsim.load(xml, exclude_overlaps=False).pair_count


def test_overlap_counts_at_home() -> None:
    """Links that are apart at qpos0 and inside each other at home, and the other way round."""
    folded = """<mujoco><worldbody><body name="a"><geom name="a" size="0.1" mass="1"/>
        <body name="b" pos="0.3 0 0"><joint name="b" axis="0 0 1"/><geom name="b" size="0.1" mass="1"/>
          <body name="c" pos="0.3 0 0"><joint name="c" axis="0 0 1"/><geom name="c" size="0.1" mass="1"/>
        </body></body></body></worldbody>
      <keyframe><key name="{name}" qpos="3 0"/></keyframe></mujoco>"""
    assert qdsim.load(folded.format(name="rest")).pair_count == 2
    with pytest.warns(qdsim.ModelWarning, match="'a' and 'c'"):
        assert qdsim.load(folded.format(name="home")).pair_count == 1


LEG = """<mujoco><compiler angle="radian"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="base" pos="0 0 {height}"><freejoint/><geom type="box" size=".1 .05 .03" mass="2"/>
    <body name="thigh"><joint name="hip" axis="0 1 0" range="-1 1"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2"/>
      <body name="shank" pos="0 0 -.2"><joint name="knee" axis="0 1 0" range="-2.5 -0.8"/>
        <geom type="capsule" size=".02" fromto="0 0 -.04 0 0 -.2"/></body></body></body></worldbody>
  <actuator><position joint="hip" kp="60"/><position joint="knee" kp="60"/></actuator>{keys}</mujoco>"""


@pytest.mark.parametrize("height", [0.37, 0.45])
def test_references_outside_of_limits(height: float) -> None:
    """Without a home the default configuration is within the limits, and a first step stays near it."""
    model = qdsim.load(LEG.format(height=height, keys=""))
    knee = model.slice_q("knee")
    assert model.default_q[knee] == -0.8
    assert model.description.reference_q[knee] == (0.0,)
    assert any("joint 'knee': its reference 0" in text for text in model.ignored)
    u = model.command_from(model.default_q)
    step = qdsim.step(model, model.default_q, u, qdsim.Options(h=0.01))
    assert np.abs(step.delta).max() < 0.05
    keys = '<keyframe><key name="home" qpos="0 0 .5 1 0 0 0 0.1 -1.2"/></keyframe>'
    homely = qdsim.load(LEG.format(height=height, keys=keys))
    assert homely.default_q[knee] == -1.2
    assert not any("its reference" in text for text in homely.ignored)
