"""Rotational symmetries of an object: knowledge about one pose holds for all symmetric poses."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from qdsim.array_type import SAME, Array
from qdsim.description import Geom
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.task.roundness import turn_axes
from qdsim.planning.task.space import ObjectSpace

__all__ = ["symmetries", "turned_object"]

_PLAIN = ("sphere", "capsule", "cylinder", "ellipsoid", "box")
"""Shapes whose own symmetries are implemented."""


def symmetries(model: Model, space: ObjectSpace) -> Array:
    """Find the rotations of an object about its origin that leave its shapes and its inertia
    unchanged.

    The candidates are the rotations of a cube with the axes of the first shape: a cube has 24
    symmetries, a box with three lengths four. Rotations about an axis of rotational symmetry count
    as the identity, so a cylinder has two and a ball one.

    Args:
        model: the model.
        space: the object's coordinates in it.

    Returns:
        ``(n, 3, 3)`` rotations in the body's frame, the identity first; they form a group up to
        rotations about axes of rotational symmetry. Only the identity if the object cannot rotate
        freely, carries other bodies, or has shapes such as meshes.
    """
    body = model.body_index(space.body)
    own = model.description.bodies[body]
    found = [np.eye(3)]
    geoms = [geom for geom in own.geoms if geom.contype or geom.conaffinity]
    carries = any(other.parent == space.body for other in model.description.bodies)
    round_axes = turn_axes(model, space.body)
    plain = all(geom.type in _PLAIN for geom in geoms)
    if carries or not geoms or not plain or len(space.quaternions) != 1 or len(round_axes) == 3:
        return np.array(found)
    frame = rotation_matrix(geoms[0].quat)
    inertia, com = np.asarray(own.inertia), np.asarray(own.com)
    size = max(max(geom.size) for geom in geoms)
    for turn in _cube():
        R = frame @ turn @ frame.T
        same_mass = np.abs(R @ inertia @ R.T - inertia).max() <= SAME * np.abs(inertia).max()
        same_mass &= bool(np.linalg.norm(R @ com - com) <= SAME * size)
        told_apart = all(np.abs(_left(R.T @ S, round_axes)).max() > SAME for S in found)
        if same_mass and told_apart and _maps(geoms, R):
            found.append(R)
    return np.array(found)


def turned_object(space: ObjectSpace, q: Array, R: Array) -> Array:
    """Return configurations ``(..., nq)`` with the object rotated by ``R`` ``(3, 3)`` in its own frame."""
    at = space.quaternions[0][0]
    out = np.array(q)
    w, v = q[..., at : at + 1], q[..., at + 1 : at + 4]
    s, r = _quaternion(R)
    out[..., at : at + 1] = s * w - v @ r[:, None]
    out[..., at + 1 : at + 4] = w * r + s * v + np.cross(v, r)
    return out


def _cube() -> list[Array]:
    """Return the 24 rotations of a cube, the identity first."""
    found = []
    for axes in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            R = np.zeros((3, 3))
            R[axes, range(3)] = signs
            if np.linalg.det(R) > 0.0:
                found.append(R)
    return found


def _left(R: Array, axes: Array) -> Array:
    """Return the difference of a rotation from one about a round axis, or from the identity if there is no axis."""
    return R - np.eye(3) if len(axes) == 0 else R @ axes[0] - axes[0]


def _quaternion(R: Array) -> tuple[float, Array]:
    """Return w and (x, y, z) of the quaternion of a rotation."""
    values, vectors = np.linalg.eigh(
        np.block(
            [
                [np.trace(R), np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])],
                [
                    np.array([[R[2, 1] - R[1, 2]], [R[0, 2] - R[2, 0]], [R[1, 0] - R[0, 1]]]),
                    R + R.T - np.trace(R) * np.eye(3),
                ],
            ]
        )
    )
    best = vectors[:, int(values.argmax())]
    best = best if best[0] >= 0.0 else -best
    return float(best[0]), best[1:]


def _maps(geoms: Sequence[Geom], R: Array) -> bool:
    """Return whether a rotation maps every shape onto an equal one."""
    return all(any(_onto(a, b, R) for b in geoms) for a in geoms)


def _onto(a: Geom, b: Geom, R: Array) -> bool:
    """Return whether a rotation maps a shape onto another one."""
    if dataclasses.replace(a, name=b.name, pos=b.pos, quat=b.quat, rgba=b.rgba) != b:
        return False
    if np.linalg.norm(R @ np.asarray(a.pos) - np.asarray(b.pos)) > SAME * max(a.size):
        return False
    if a.type == "sphere":
        return True
    turn = rotation_matrix(b.quat).T @ R @ rotation_matrix(a.quat)
    if a.type in ("capsule", "cylinder"):
        return bool(abs(turn[2, 2]) >= 1.0 - SAME)
    size = np.asarray(a.size, dtype=np.float64)
    if a.type == "ellipsoid":
        shape = np.diag(size**2)
        return bool(np.abs(turn @ shape @ turn.T - shape).max() <= SAME * size.max() ** 2)
    swaps = np.abs(turn)
    along_axes = bool(np.abs(swaps - np.round(swaps)).max() <= SAME)
    return along_axes and bool(np.abs(swaps @ size - size).max() <= SAME * size.max())
