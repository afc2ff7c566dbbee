"""Robots that nobody here wrote: URDFs with their own meshes, a free object dropped on each.

The files are those of the package example-robot-data. Each robot moves at random about its start for
1000 steps (some fewer); forces, residuals and penetration are checked at every step, derivatives at some."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import qdsim

ROBOTS = {
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "tiago_dual": "tiago_description/robots/tiago_dual.urdf",
}
SHORT = {"romeo": 400, "tiago_dual": 650}  # steps of robots with many or finely meshed links
OBJECTS = {
    "box": "0.05 0.06 0.04",
    "sphere": "0.06",
    "cylinder": "0.05 0.04",
    "ellipsoid": "0.05 0.06 0.04",
}
OBJECT = """
<mujoco><worldbody><body name="object"><freejoint/>
  <geom name="object" type="{kind}" size="{size}" mass="0.3" friction="0.6"/>
</body></worldbody></mujoco>
"""


def folder() -> Path:
    try:
        files = importlib.metadata.files("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    known = ROBOTS["panda"]
    found = next(file for file in files or () if file.as_posix().endswith(known))
    return Path(str(found.locate())).resolve().parents[2]


def with_object(robot: qdsim.Model, kind: str) -> qdsim.Model:
    """The robot's MJCF, an object attached above its last body, and a floor half a metre below."""
    heights = [robot.body_pose(robot.default_q, body)[0] for body in robot.body_names[1:]]
    low, high = np.min(heights, axis=0)[2], np.max(heights, axis=0)[2]
    scene = mujoco.MjSpec.from_string(robot.description.to_mjcf())
    x, y, _ = heights[-1]
    scene.attach(
        mujoco.MjSpec.from_string(OBJECT.format(kind=kind, size=OBJECTS[kind])),
        frame=scene.worldbody.add_frame(pos=[x, y, high + 0.3]),
        prefix="dropped_",
    )
    scene.worldbody.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[5, 5, 1],
        pos=[0, 0, low - 0.5],
        friction=[0.8, 0.005, 0.0001],
    )
    return qdsim.load(scene)


def derivative_error(model: qdsim.Model, q: np.ndarray, u: np.ndarray, options: qdsim.Options):
    """Of A along one direction, against central differences of fourth order, relative to |A|."""
    lin = qdsim.linearize(model, q, u, options)
    way = np.random.default_rng(1).normal(size=model.nv)
    way /= np.linalg.norm(way)

    def moved(t: float) -> np.ndarray:
        there = qdsim.step(model, model.integrate(q, t * way), u, options).q_next
        return np.asarray(model.difference(there, lin.q_next))

    t = 1e-5  # bumpy faces of scanned meshes change their manifold with a tenth of a milliradian
    slope = (8.0 * (moved(t) - moved(-t)) - (moved(2 * t) - moved(-2 * t))) / (12.0 * t)
    return float(np.abs(lin.A @ way - slope).max() / max(1.0, np.abs(lin.A).max()))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_object_dropped_on_a_robot(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qdsim.ModelWarning)
        robot = qdsim.load(folder() / ROBOTS[name], stiffness=300.0, visuals=False)
    kind = list(OBJECTS)[list(ROBOTS).index(name) % len(OBJECTS)]
    model = with_object(robot, kind)
    options = qdsim.Options(h=0.02, margin=0.02)
    # Smoothed limits need room between them, and some joints of these files have none.
    smooth = options.replace(kappa=300.0, joint_limits=False)
    q = start = model.clamp_to_limits(model.default_q)
    rng = np.random.default_rng(0)
    touched, errors = 0, []
    for k in range(SHORT.get(name, 1000)):
        if k % 50 == 0:
            u = model.command_from(start) + 0.2 * rng.normal(size=model.nu)
        result = qdsim.step(model, q, u, options)
        force = np.abs(result.contacts["force"]).max(initial=1.0)
        assert result.info.primal_residual < 1e-8
        assert result.info.dual_residual < 1e-7 * force
        q = result.q_next
        object_contacts = result.contacts["geom_b"] == model.geom_index("dropped_object")
        touched += bool(np.any(result.contacts["force"][object_contacts] > 1e-3))
        if k % 250 == 100:
            errors.append(derivative_error(model, q, u, smooth))
    assert touched > 100  # the object was met, by the robot or the floor
    contacts = model.collide(q, 0.0)
    assert contacts["dist"].min(initial=0.0) > -0.01  # linearised at each step's start
    # The smoothed map jumps where a pair crosses the margin within the stencil, or where round faces
    # choose other corners for their manifold: not in all places.
    assert np.sum(np.array(errors) < 1e-5) >= len(errors) // 2


@pytest.mark.long
def test_overlapping_links_are_excluded_with_a_warning() -> None:
    with pytest.warns(qdsim.ModelWarning, match="overlap"):
        robot = qdsim.load(folder() / ROBOTS["hyq"], stiffness=300.0, visuals=False)
    assert len(robot.collide(robot.default_q, 0.0)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qdsim.ModelWarning)
        kept = qdsim.load(
            folder() / ROBOTS["hyq"], stiffness=300.0, exclude_overlaps=False, visuals=False
        )
    assert kept.pair_count > robot.pair_count
    assert kept.collide(kept.default_q, 0.0)["dist"].min() < -1e-3
    again = qdsim.load(robot.description.to_mjcf())
    assert again.pair_count == robot.pair_count


def test_overlaps_of_mjcf_are_kept_unless_asked() -> None:
    xml = """<mujoco><worldbody>
      <body name="a"><joint name="a" axis="0 0 1"/><geom name="a" size="0.1" mass="1"/></body>
      <body name="b" pos="0.15 0 0"><joint name="b" axis="0 0 1"/><geom name="b" size="0.1" mass="1"/></body>
      <body name="c" pos="1 0 0"><joint name="c" axis="0 0 1"/><geom name="c" size="0.1" mass="1"/></body>
    </worldbody></mujoco>"""
    assert qdsim.load(xml).pair_count == 3
    with pytest.warns(qdsim.ModelWarning, match="'a' and 'b'"):
        model = qdsim.load(xml, exclude_overlaps=True)
    assert model.pair_count == 2
    with pytest.raises(TypeError, match="exclude_overlaps"):
        qdsim.load(xml, exclude_overlaps=1)  # type: ignore[arg-type]


ON_A_BASE = """<mujoco><worldbody><body name="base">
  <geom name="base" type="cylinder" size="0.06 0.05" mass="1"/>
  <body name="link" pos="0 0 0.1004"><joint name="turn" axis="0 0 1" {joint}/>
    <geom name="link" type="cylinder" size="0.06 0.05" mass="1"/></body></body></worldbody>
  {actuator}</mujoco>"""


def test_a_motor_turns_its_link_on_the_base_freely() -> None:
    """What all but touches the fixed base that carries it does not rub; a door, which no motor turns, stays as it
    is."""
    motor = '<actuator><position name="turn" joint="turn" kp="100" forcerange="-50 50"/></actuator>'
    with pytest.warns(qdsim.ModelWarning, match="'base' and 'link'"):
        model = qdsim.load(ON_A_BASE.format(joint="", actuator=motor))
    q = model.default_q
    for k in range(20):
        step = qdsim.step(model, q, [0.05 * (k + 1)])
        q = step.q_next
        np.testing.assert_allclose(q, [0.05 * (k + 1)], atol=1e-9)
    assert model.pair_count == 0
    assert qdsim.load(ON_A_BASE.format(joint="", actuator="")).pair_count == 1
    kept = qdsim.load(ON_A_BASE.format(joint="", actuator=motor), exclude_overlaps=False)
    assert kept.pair_count == 1
