"""Where two bodies press on each other, with what force, and how that changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim._core import _field_energy, _field_patch
from qdsim.arguments import number, vector
from qdsim.description.arrays import rotation_matrix
from qdsim.pressure.field import HalfSpace, PressureField, RigidSurface
from qdsim.pressure.tessellation import Array, is_closed

__all__ = ["POLYGON_DTYPE", "Body", "Patch", "pressure_energy", "pressure_patch"]

Body = PressureField | RigidSurface | HalfSpace

POLYGON_DTYPE = np.dtype(
    [
        ("area", "f8"),
        ("pressure", "f8"),
        ("centre", "f8", 3),
        ("normal", "f8", 3),
        ("gradient_a", "f8", 3),
        ("gradient_b", "f8", 3),
        ("element_a", "i4"),
        ("element_b", "i4"),
        ("vertex_start", "i4"),
        ("vertex_count", "i4"),
    ],
    align=True,
)
"""A polygon of a patch: area m², mean pressure Pa, centre of pressure m, unit normal out of a and into b, pressure
gradients Pa/m (of a rigid side its unit normal), elements of the two bodies, and its corners among ``Patch.vertices``,
anticlockwise about the normal."""


@dataclass(frozen=True, eq=False, repr=False)
class Patch:
    """Where two bodies press on each other; all in world axes.

    Attributes:
        force: ``(3,)`` N on b; on a it is the opposite.
        moment: ``(3,)`` Nm on b about the world's origin.
        centre: ``(3,)`` m, centre of pressure; zeros without contact.
        area: m².
        total_pressure: N, the pressure integrated over the surface, whatever its direction.
        tangent: ``(6, 6)`` change of force and moment on b by a motion of a, b being at rest: linear velocity of a's
            point at the world's origin, then angular velocity. Exact where no filter acts.
        count: number of polygons.
        polygons: :data:`POLYGON_DTYPE` ``(count,)``, empty if they were not asked for.
        vertices: ``(any, 3)`` m, corners of the polygons.
    """

    force: Array
    moment: Array
    centre: Array
    area: float
    total_pressure: float
    tangent: Array
    count: int
    polygons: npt.NDArray[Any]
    vertices: Array

    def __repr__(self) -> str:
        force = float(np.linalg.norm(self.force))
        return f"Patch({self.count} polygons, {self.area:.3g} m², {force:.3g} N)"


def pressure_patch(
    a: Body,
    b: Body,
    pose_a: npt.ArrayLike | None = None,
    pose_b: npt.ArrayLike | None = None,
    *,
    polygons: bool = True,
    filter_angle: float | None = None,
) -> Patch:
    """Where two bodies press on each other (Elandt et al. 2019): the surface on which their pressures balance, or the
    part of a rigid surface inside a soft body.

    Args:
        a, b: bodies; one of them gives way.
        pose_a, pose_b: ``(7,)`` position m and quaternion w x y z in the world; None: at the origin.
        polygons: whether to keep the polygons.
        filter_angle: rad; polygons are left out whose normal is farther from a body's pressure gradient than this. Drake
            leaves them out at ``5 pi / 8``; that breaks the conservation of energy where it acts. None: none is.

    Raises:
        TypeError, ValueError: for bodies that are none of these, two that do not give way, wrong shapes, numbers that are
            not finite, or quaternions that are not of unit length.
    """
    angle = 0.0
    if filter_angle is not None:
        angle = number("filter_angle", filter_angle, above=0, most=math.pi)
    relative, rotation, place = _placed(a, b, pose_a, pose_b)
    found = _field_patch(a._handle, b._handle, relative, angle, bool(polygons))
    return _in_world(found, rotation, place)


def pressure_energy(
    a: Body,
    b: Body,
    pose_a: npt.ArrayLike | None = None,
    pose_b: npt.ArrayLike | None = None,
) -> float:
    """Energy of two bodies that press on each other, J: the lesser of their pressures, integrated over where they
    overlap. The force and moment of :func:`pressure_patch` are minus its derivative by motions of b.

    Args:
        a, b: bodies; one of them gives way. A rigid surface must be closed.
        pose_a, pose_b: ``(7,)`` position m and quaternion w x y z in the world; None: at the origin.

    Raises:
        TypeError, ValueError: as :func:`pressure_patch`, and for rigid surfaces with a rim.
    """
    relative, _, _ = _placed(a, b, pose_a, pose_b)
    for name, body in (("a", a), ("b", b)):
        if isinstance(body, RigidSurface) and not is_closed(body.vertices, body.triangles):
            raise ValueError(f"{name}: expected a closed surface, got one with a rim")
    return _field_energy(a._handle, b._handle, relative)


def _placed(
    a: Body, b: Body, pose_a: npt.ArrayLike | None, pose_b: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Rotation and place ``(12,)`` of a in the frame of b; rotation and place of b."""
    for name, body in (("a", a), ("b", b)):
        if not isinstance(body, (PressureField, RigidSurface, HalfSpace)):
            raise TypeError(
                f"{name}: expected a PressureField, RigidSurface or HalfSpace, got {type(body).__name__}"
            )
    rotation_a, place_a = _pose("pose_a", pose_a)
    rotation_b, place_b = _pose("pose_b", pose_b)
    rotation, place = rotation_b.T @ rotation_a, rotation_b.T @ (place_a - place_b)
    return np.concatenate([rotation.ravel(), place]), rotation_b, place_b


def _pose(name: str, pose: npt.ArrayLike | None) -> tuple[Array, Array]:
    """Rotation ``(3, 3)`` and position ``(3,)``."""
    if pose is None:
        return np.eye(3), np.zeros(3)
    given = vector(name, pose, 7)
    length = float(np.linalg.norm(given[3:]))
    if not abs(length - 1.0) <= 1e-3:
        raise ValueError(
            f"{name}: the quaternion has length {length:.4g}; expected 1 to within 1e-3"
        )
    return rotation_matrix(given[3:] / length), given[:3]


def _in_world(found: tuple[Any, ...], rotation: Array, place: Array) -> Patch:
    force, moment, centre, tangent, area, total, count, records, corners = found
    lever = np.array(
        [[0.0, -place[2], place[1]], [place[2], 0.0, -place[0]], [-place[1], place[0], 0.0]]
    )
    change = np.block([[rotation, np.zeros((3, 3))], [lever @ rotation, rotation]])
    wrench = change @ np.concatenate([force, moment])
    polygons = np.frombuffer(records, dtype=POLYGON_DTYPE).copy()
    for name in ("normal", "gradient_a", "gradient_b"):
        polygons[name] = polygons[name] @ rotation.T
    polygons["centre"] = polygons["centre"] @ rotation.T + place
    vertices = np.frombuffer(corners).reshape(-1, 3) @ rotation.T + place
    return Patch(
        wrench[:3],
        wrench[3:],
        rotation @ centre + place if count else np.zeros(3),
        area,
        total,
        change @ tangent @ change.T,
        count,
        polygons,
        vertices,
    )
