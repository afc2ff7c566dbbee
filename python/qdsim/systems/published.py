"""Options and motions of the published systems; the head of each MJCF file describes its system.

If a file of the authors is inconsistent with itself or with its scripts, the head states what was
chosen. The published simulator does not enforce joint limits, so the options here do not either;
``options.replace(joint_limits=True)`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import numpy as np

from qdsim.array_type import Array
from qdsim.description import PointCloud
from qdsim.model import Model
from qdsim.step import Options
from qdsim.systems.stacking import stacking_motion
from qdsim.systems.system import System, files, published_system, ramp, read_model

__all__ = ["PUBLISHED", "SOFT_TIPS", "load_published"]

_PLANE: Mapping[str, Any] = {"friction": "pyramid", "rays": 2, "joint_limits": False}
_SPACE: Mapping[str, Any] = {"friction": "cone", "rays": 4, "joint_limits": False}
_INF = math.inf

SOFT_TIPS = ("planar_hand", "allegro_sphere", "allegro_plate")
"""Systems that also exist with soft fingertips, as ``<name>_soft`` (not published)."""

_OPTIONS: dict[str, Options] = {
    "planar_hand": Options(h=0.1, friction="pyramid", rays=2, margin=10.0),
    "planar_pushing": Options(h=0.1, friction="pyramid", rays=2, margin=_INF),
    "two_spheres_1d": Options(h=0.05, margin=_INF, **_PLANE),
    "two_spheres_2d": Options(h=0.1, margin=_INF, **_PLANE),
    "two_spheres_3d": Options(h=0.1, margin=0.2, **_SPACE),
    "box_ball_grazing": Options(h=0.1, margin=_INF, **_PLANE),
    "pinch_gripper": Options(h=0.01, margin=_INF, **_PLANE),
    "spinning_sphere": Options(h=0.01, margin=0.1, **_SPACE),
    "ball_on_platform": Options(h=0.05, margin=_INF, **_PLANE),
    "planar_hand_fixed_y": Options(h=0.1, margin=10.0, **_PLANE),
    "planar_hand_small_ball": Options(h=0.1, margin=10.0, **_PLANE),
    "planar_hand_box": Options(h=0.1, margin=10.0, **_PLANE),
    "box_pushing": Options(h=0.2, margin=0.1, **_PLANE),
    "box_pivoting": Options(h=0.1, margin=0.1, **_PLANE),
    "three_link_arm_2d": Options(h=0.02, margin=_INF, mass_ratio=5.0, **_PLANE),
    "three_link_arm_3d": Options(h=0.02, margin=_INF, mass_ratio=5.0, **_SPACE),
    "plate_pickup": Options(h=0.2, margin=1.0, **_PLANE),
    "rope": Options(h=0.01, margin=0.1, **_PLANE),
    "carrots": Options(h=0.2, margin=0.1, **_PLANE),
    "allegro_sphere": Options(h=0.1, margin=0.025, mass_ratio=5.0, **_SPACE),
    "allegro_sphere_tilted": Options(h=0.1, margin=0.025, **_SPACE),
    "allegro_sphere_hardware": Options(h=0.01, margin=0.025, mass_ratio=5.0, **_SPACE),
    "allegro_cube": Options(h=0.1, margin=0.025, **_SPACE),
    "allegro_baoding_30mm": Options(h=0.1, margin=0.025, **_SPACE),
    "allegro_baoding_40mm": Options(h=0.1, margin=0.025, **_SPACE),
    "allegro_pen": Options(h=0.1, margin=0.025, **_SPACE),
    "allegro_plate": Options(h=0.025, margin=0.0125, **_SPACE),
    "allegro_book": Options(h=0.05, margin=0.025, **{**_SPACE, "rays": 8}),
    "allegro_door": Options(h=0.05, margin=0.025, mass_ratio=1.0, **_SPACE),
    "allegro_door_pull": Options(h=0.05, margin=0.025, **_SPACE),
    "iiwa": Options(h=0.2, margin=0.5, **_SPACE),
    "iiwa_planar": Options(h=0.05, margin=0.2, mass_ratio=5.0, **_SPACE),
    "iiwa_bimanual_box": Options(h=0.05, margin=0.2, mass_ratio=5.0, **_SPACE),
    "iiwa_bimanual_cylinder": Options(h=0.05, margin=0.2, mass_ratio=5.0, **_SPACE),
    "iiwa_box_push": Options(h=0.02, margin=0.2, mass_ratio=5.0, **_SPACE),
    "iiwa_box_push_free": Options(h=0.01, margin=0.5, mass_ratio=5.0, **_SPACE),
    "cloud_grasp": Options(h=0.01, margin=0.002, **_SPACE),
    "cloud_grasp_without_torsion": Options(h=0.01, margin=0.002, **_SPACE),
    "block_stacking": Options(h=0.1, margin=0.02, mass_ratio=5.0, **_SPACE),
}

_OPTIONS |= {
    f"{name}_soft": _OPTIONS[name].replace(patch_friction="ellipsoid") for name in SOFT_TIPS
}

PUBLISHED = tuple(_OPTIONS)
"""Names of the systems that :func:`load_published` knows."""


def load_published(name: str) -> System:
    """Load a published system without tasks, by its name in ``PUBLISHED``."""
    base = name.removesuffix("_soft")
    clouds = {"rabbit": _rabbit()} if name.startswith("cloud_grasp") else None
    model = read_model(
        name,
        without_geoms="arm_" if name == "iiwa" else None,
        clouds=clouds,
        # The files of the two systems give the friction of all pairs explicitly.
        harmonic=base not in ("planar_hand", "planar_pushing"),
    )
    options = _OPTIONS[name]
    motion = _MOTIONS.get(name, _MOTIONS.get(base))
    begin = "demo" if "demo" in model.keyframes else "start"
    commands = None if motion is None else motion(model, options.h)
    return published_system(
        name, model, options, about(name), commands=commands, commands_from=begin
    )


def _rabbit() -> PointCloud:
    """Return the cloud of both cloud grasps, with the exact numbers of the file, which MuJoCo rounds."""
    root = ElementTree.fromstring(files()["cloud_points.xml"])
    mesh = root.find(".//mesh[@name='rabbit']")
    assert mesh is not None
    return PointCloud(np.array(mesh.attrib["vertex"].split(), dtype=float).reshape(-1, 3))


def about(name: str) -> str:
    """Return the comment at the head of a system's file."""
    text = resources.files(__package__).joinpath(f"{name}.xml").read_text(encoding="utf-8")
    match = re.match(r"\s*<!--(.*?)-->", text, re.DOTALL)
    return " ".join(match.group(1).split()) if match else ""


# -------------------------------------------------------------------- motions

Motion = Callable[[Model, float], Array]


def _start(model: Model, key: str = "start") -> Array:
    return np.array(model.keyframes[key].u)


def _line(seconds: float, begin: list[float] | None, end: list[float]) -> Motion:
    """Make a motion along a line from ``begin``, or the command of the start, to ``end``."""

    def motion(model: Model, h: float) -> Array:
        first = _start(model) if begin is None else np.array(begin)
        return ramp([0.0, seconds], np.array([first, end]), h)

    return motion


def _hold(seconds: float, key: str = "start") -> Motion:
    return lambda model, h: ramp([0.0, seconds], [_start(model, key)] * 2, h)


def _knots(times: list[float], knots: list[list[float]]) -> Motion:
    return lambda model, h: ramp(times, knots, h)


def _cubic(seconds: float, shift: float) -> Motion:
    """Make a motion of all joints by ``shift``, at rest at the beginning and at the end."""
    return lambda model, h: ramp(
        [0.0, seconds], [_start(model), _start(model) + shift], h, smooth=True
    )


def _push_sphere(model: Model, h: float) -> Array:
    """Move through the centre of the large sphere to the other side, then rest."""
    end = np.array([math.cos(math.pi / 12), math.sin(math.pi / 12), 0.5])
    return ramp([0.0, 1.6, 2.0], np.array([_start(model), end, end]), h)


def _close_hand(angle: float) -> Motion:
    """Make a motion of all joints to an angle, except the joints that spread the fingers.

    The published demo calls these joints 0, 8 and 12, because there the thumb comes second.
    """

    def motion(model: Model, h: float) -> Array:
        end = np.full(16, angle)
        end[[0, 4, 8]] = 0.0
        return ramp([0.0, 2.0], [_start(model, "demo"), end], h)

    return motion


def _push_plate(model: Model, h: float) -> Array:
    """Move the plate towards the wall; the last five steps lift it."""
    command = np.tile(_start(model, "demo"), (80, 1))
    command[:, 1] = np.linspace(0.2, -0.3, 80)
    command[-5:, 2] = np.linspace(0.15, 0.25, 5)
    return command


def _drag_book(model: Model, h: float) -> Array:
    command = np.tile(_start(model), (40, 1))
    command[:, 1] = np.linspace(-0.2, -0.5, 40)
    return command


# The motion is slow because a step starts from rest, so lifting at a speed v costs the force m v /
# h, here 1.5 N.
_GRASP = _knots(
    [0.0, 0.4, 0.5, 3.5],
    [[0.0, 0.04, -0.04], [0.0, 0.01, -0.01], [0.0, 0.01, -0.01], [0.09, 0.01, -0.01]],
)

_MOTIONS: Mapping[str, Motion] = {
    "two_spheres_1d": _line(2.0, None, [0.8]),
    "two_spheres_2d": lambda model, h: np.array([[0.1, 0.0]]),
    "two_spheres_3d": _push_sphere,
    "box_ball_grazing": _line(1.0, None, [0.1, -0.1]),
    "pinch_gripper": _knots(
        [0.0, 0.08, 0.23, 0.35],
        [[-0.106, 0.106, 0.0], [-0.09, 0.09, 0.0], [-0.09, 0.09, -0.03], [-0.09, 0.09, -0.03]],
    ),
    "ball_on_platform": _hold(2.0),
    "box_pushing": _line(5.0, None, [0.1, 1.0]),
    "box_pivoting": _line(5.0, None, [1.0, 1.2]),
    "three_link_arm_2d": _cubic(10.0, 0.3),
    "three_link_arm_3d": _cubic(10.0, 0.3),
    "plate_pickup": _knots(
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0],
        [
            [0.32, 0.2, -0.6, -0.05, 0.05],
            [0.22, 0.05, -0.6, -0.04, 0.04],
            [0.18, 0.05, -1.0, -0.02, 0.02],
            [0.05, 0.03, -1.2, -0.02, 0.02],
            [0.05, 0.06, -1.2, -0.01, 0.01],
            [0.05, 0.2, -1.2, 0.0, 0.0],
            [0.32, 0.5, -1.2, 0.0, 0.0],
        ],
    ),
    "rope": _line(12.0, None, [0.32, -0.6, math.pi / 2, -0.05, 0.05]),
    "carrots": _line(3.0, None, [0.4, 0.25, 0.0, -0.05, 0.05]),
    "allegro_sphere": _close_hand(1.0),
    "allegro_sphere_soft": _close_hand(
        0.7
    ),  # at larger angles its springs press the tips in beyond their middle
    "allegro_plate": _push_plate,
    "allegro_book": _drag_book,
    "iiwa": _cubic(10.0, 0.5),
    "iiwa_bimanual_box": _hold(1.0, "demo"),
    "cloud_grasp": _GRASP,
    "cloud_grasp_without_torsion": _GRASP,
    "block_stacking": stacking_motion,
}
