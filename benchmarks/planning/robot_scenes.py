"""Arms of the package example-robot-data with an object on the floor, as MJCF texts: a UR5 and a can, an xArm7 and a mug
with a handle, a Panda with its gripper and a tin. All friction is 1, every joint has a spring of 300 Nm/rad (N/m)."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import NamedTuple

import mujoco

__all__ = ["ROBOT_GOALS", "robot_scenes"]

ROBOT_GOALS = {
    "ur5_can": ("thing", (".55 .2 -",)),
    "xarm_mug": ("thing", (".5 .15 - 40deg",)),
    "panda_tin": ("thing", (".6 .1 -",)),
}
"""The object of each, and a goal as ``qdsim plan --goal`` takes it."""

FRICTION = [1.0, 0.005, 0.0001]
ALL = "panda_description/urdf/panda.urdf"
HANDLE = {"size": [0.015, 0.006, 0.03], "pos": [0.055, 0.0, 0.0], "mass": 0.03}


class _Robot(NamedTuple):
    file: str
    start: dict[str, float]  # joints that do not begin at zero
    follows: str  # a joint that a constraint moves
    place: list[float]  # of the object
    cylinder: tuple[list[float], float]  # its radius and half its height, m; its mass, kg
    handle: bool = False


ROBOTS = {
    "ur5_can": _Robot(
        "ur_description/urdf/ur5_robot.urdf",
        {
            "shoulder_lift_joint": -1.2,
            "elbow_joint": 1.9,
            "wrist_1_joint": -2.2,
            "wrist_2_joint": -1.57,
        },
        "",
        [0.45, 0.1, 0.0601],
        ([0.033, 0.06, 0.0], 0.35),
    ),
    "xarm_mug": _Robot(
        "xarm_description/urdf/xarm7.urdf",
        {"joint2": -0.3, "joint4": 1.2, "joint6": 1.5},
        "",
        [0.45, 0.0, 0.0501],
        ([0.04, 0.05, 0.0], 0.3),
        True,
    ),
    "panda_tin": _Robot(
        ALL,
        {"panda_joint4": -1.8, "panda_joint6": 1.8, "panda_joint7": 0.78}
        | {"panda_finger_joint1": 0.03, "panda_finger_joint2": 0.03},
        "panda_finger_joint2",
        [0.5, 0.0, 0.0501],
        ([0.04, 0.05, 0.0], 0.3),
    ),
}


def robot_scenes() -> dict[str, str]:
    """By name; none where the package is not installed."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        return {}
    file = next(file for file in files if file.as_posix().endswith(ALL))
    folder = Path(str(file.locate())).resolve().parents[2]
    return {name: _scene(folder, robot) for name, robot in ROBOTS.items()}


def _scene(folder: Path, robot: _Robot) -> str:
    text = (folder / robot.file).read_text()
    text = text.replace("package://example-robot-data/robots", str(folder))
    begin = text.index(">", text.index("<robot")) + 1
    own = '<mujoco><compiler strippath="false" discardvisual="true" fusestatic="false"/></mujoco>'
    spec = mujoco.MjSpec.from_string(text[:begin] + own + text[begin:])
    for joint in spec.joints:
        joint.frictionloss, joint.damping = 0.0, 0.0 * joint.damping
        if joint.name != robot.follows:
            kind = mujoco.mjtTrn.mjTRN_JOINT
            spec.add_actuator(name=joint.name, target=joint.name, trntype=kind).set_to_position(
                kp=300.0
            )
    world, (size, mass) = spec.worldbody, robot.cylinder
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[3.0, 3.0, 0.1], friction=FRICTION)
    thing = world.add_body(name="thing", pos=robot.place)
    thing.add_freejoint(name="thing")
    cylinder = mujoco.mjtGeom.mjGEOM_CYLINDER
    thing.add_geom(type=cylinder, size=size, mass=mass, friction=FRICTION)
    if robot.handle:
        thing.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, friction=FRICTION, **HANDLE)
    model = spec.compile()
    q = model.qpos0.copy()
    for name, value in robot.start.items():
        q[model.joint(name).qposadr] = value
    spec.add_key(
        name="home", qpos=q, ctrl=[q[model.joint(a.name).qposadr[0]] for a in spec.actuators]
    )
    spec.compile()
    return str(spec.to_xml())
