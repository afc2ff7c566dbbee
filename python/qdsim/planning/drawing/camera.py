"""The direction of view in which robot, object and goal occlude each other least."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.drawing.solids import Solid
from qdsim.planning.drawing.style import STYLE

__all__ = ["best_direction", "direction", "directions"]

_SEEN = 30
"""Number of faces of the object that are tested, each at four points."""

_OBJECT, _MOTION, _TILT = 2.0, 0.4, 0.1
"""Weights of seeing all of the object and all of its motion, relative to all of the goal and all of the
robot (1); and the penalty for 60 degrees of deviation from the usual elevation."""

Poses = Sequence[tuple[Array, Array]]


def direction(azimuth: float, elevation: float) -> Array:
    """Return the unit vector ``(3,)`` towards a viewer; angles in degrees."""
    a, e = math.radians(azimuth), math.radians(elevation)
    return np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])


def directions() -> list[tuple[float, float]]:
    """Return candidate azimuths and elevations, in degrees: all around, none along an axis."""
    around = [35.0 + 15.0 * k for k in range(24)]
    return [(a % 360.0, e) for e in (STYLE.elevation, 14.0, 42.0, 58.0) for a in around]


def best_direction(
    robot: Sequence[Solid],
    thing: Sequence[Solid],
    poses: Poses,
    goal: tuple[Array, Array] | None,
    candidates: Sequence[tuple[float, float]],
) -> tuple[float, float]:
    """Return the candidate (azimuth and elevation, degrees) with the least occlusion.

    Args:
        robot, thing: solids of the robot and of the object.
        poses: positions ``(n, 3)`` and rotations ``(n, 3, 3)`` of the bodies in some
            configurations.
        goal: the same with the object at its goal; it is drawn in front of the object, but not of
            the robot.
        candidates: the first of equally good ones is taken.
    """
    towards = np.array([direction(*item) for item in candidates])
    worth = -_TILT / 60.0 * np.abs(np.array([e for _, e in candidates]) - STYLE.elevation)
    for pose in poses:
        share = _OBJECT * _object_seen(thing, pose, [*robot, *thing], robot, pose, towards)
        if goal is not None:
            share = share + _object_seen(thing, goal, robot, [], pose, towards)
        worth = worth + (share + _robot_seen(robot, thing, pose, towards)) / len(poses)
    path = [_sides(thing, pose) for pose in [*poses, *([] if goal is None else [goal])]]
    return candidates[int(np.argmax(worth + _MOTION * _motion_seen(path, towards)))]


def _object_seen(
    thing: Sequence[Solid],
    pose: tuple[Array, Array],
    others: Sequence[Solid],
    robot: Sequence[Solid],
    where: tuple[Array, Array],
    towards: Array,
) -> Array:
    """Return the share of the object's faces turned towards each viewer that ``others`` do not hide, ``(n,)``.

    All solids have equal weight, whatever their size. Faces near the robot have the largest weight.
    """
    stride = -(-sum(len(solid.faces) for solid in thing) // _SEEN)
    middles, areas, owners = [], [], []
    for k, solid in enumerate(thing):
        some = slice(min(stride // 2, len(solid.faces) // 2), None, stride)
        pos, rot = pose[0][solid.body], pose[1][solid.body]
        corners = solid.corners[solid.faces[some]]
        inner = 0.5 * (corners + corners.mean(axis=1, keepdims=True))
        middles.append(inner.reshape(-1, 3) @ rot.T + pos)
        share = solid.areas[some, None] / solid.areas[some].sum()
        turned = share * np.maximum(solid.normals[some] @ rot.T @ towards.T, 0.0)
        areas.append(np.repeat(turned, 4, axis=0))
        owners += [k] * len(middles[-1])
    if not middles:
        return np.ones(len(towards))
    places, area = np.concatenate(middles), np.concatenate(areas)
    area *= _near(places, _middles(robot, where), robot, where)[:, None]
    hidden = np.zeros(area.shape, dtype=bool)
    for other in others:
        own = [thing[k] is other for k in owners]
        hidden |= _hides(other, where, places, towards) & ~np.array(own)[:, None]
    result: Array = np.where(hidden, 0.0, area).sum(axis=0) / np.maximum(area.sum(axis=0), 1e-12)
    return result


def _robot_seen(
    robot: Sequence[Solid], thing: Sequence[Solid], pose: tuple[Array, Array], towards: Array
) -> Array:
    """Return the share of the robot's sides that nothing hides from each viewer, ``(n,)``.

    Sides near the object, such as those of fingertips, have the largest weight.
    """
    if not robot:
        return np.ones(len(towards))
    places = _sides(robot, pose)
    weight = _near(places, _sides(thing, pose), robot, pose)
    hidden = np.zeros((len(places), len(towards)), dtype=bool)
    for other in [*robot, *thing]:
        own = np.repeat([solid is other for solid in robot], len(places) // len(robot))
        hidden |= _hides(other, pose, places, towards) & ~own[:, None]
    result: Array = weight @ ~hidden / weight.sum()
    return result


def _near(places: Array, others: Array, robot: Sequence[Solid], pose: tuple[Array, Array]) -> Array:
    """Return the weights ``(m,)`` of places by their distance from the nearest of ``others``: 1 at
    distance zero, decreasing on the scale of the robot's size."""
    if not len(others) or not robot:
        return np.ones(len(places))
    middles = _middles(robot, pose)
    size = float(np.linalg.norm(middles - middles.mean(axis=0), axis=1).mean())
    size += float(np.mean([solid.half.max() for solid in robot]))
    gap = np.linalg.norm(places[:, None] - others, axis=2).min(axis=1)
    result: Array = np.exp(-gap / size)
    return result


def _middles(solids: Sequence[Solid], pose: tuple[Array, Array]) -> Array:
    """Return the centres ``(m, 3)`` of solids."""
    places = [pose[0][s.body] + pose[1][s.body] @ s.centre for s in solids]
    return np.array(places).reshape(-1, 3)


def _motion_seen(path: Sequence[Array], towards: Array) -> Array:
    """Return the share of the points' path length that is not along the line of sight, ``(n,)``."""
    if len(path) < 2:
        return np.ones(len(towards))
    ways = np.diff(np.array(path), axis=0).reshape(-1, 3)
    lengths = np.linalg.norm(ways, axis=1)
    if lengths.sum() == 0.0:
        return np.ones(len(towards))
    across = np.sqrt(np.maximum(lengths[:, None] ** 2 - (ways @ towards.T) ** 2, 0.0))
    result: Array = across.sum(axis=0) / lengths.sum()
    return result


def _sides(solids: Sequence[Solid], pose: tuple[Array, Array]) -> Array:
    """Return the middles ``(m, 3)`` of the solids' outer sides."""
    steps = np.vstack([np.eye(3), -np.eye(3)])
    places = [
        pose[0][s.body] + (s.centre + (steps * s.half) @ s.frame.T) @ pose[1][s.body].T
        for s in solids
    ]
    return np.concatenate(places) if places else np.zeros((0, 3))


def _hides(
    solid: Solid, pose: tuple[Array, Array], places: Array, towards: Array, tight: float = 0.98
) -> Array:
    """Return whether a solid, as a box or an ellipsoid, is between places and distant viewers, ``(m, n)``."""
    pos, rot = pose[0][solid.body], pose[1][solid.body]
    scaled = (rot @ solid.frame) / (tight * np.maximum(solid.half, 1e-6))
    begin = (places - pos - rot @ solid.centre) @ scaled
    ahead = towards @ scaled
    if not solid.square:
        along = begin @ ahead.T
        off = (begin**2).sum(axis=1)[:, None] - along**2 / (ahead**2).sum(axis=1)
        hit: Array = (off < 1.0) & (along < 0.0)
        return hit
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (np.array([-1.0, 1.0])[:, None, None, None] - begin[:, None]) / ahead
    enter, leave = np.nanmax(ends.min(axis=0), axis=2), np.nanmin(ends.max(axis=0), axis=2)
    inside: Array = (enter <= leave) & (leave > 0.0)
    return inside
