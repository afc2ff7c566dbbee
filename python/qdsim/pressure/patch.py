"""The contact surface of two bodies, its force, and the derivative of this force."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import number
from qdsim.array_type import Array
from qdsim.pressure.field import HalfSpace, PressureField, RigidSurface
from qdsim.pressure.tessellation import is_closed

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
"""A polygon of a patch: area m², mean pressure Pa, centre of pressure m, unit normal out of a and
into b, pressure gradients Pa/m (for a rigid body its unit normal), tetrahedra of the two bodies,
and its corners among ``Patch.vertices``, anticlockwise about the normal."""


@dataclass(frozen=True, eq=False, repr=False)
class Patch:
    """The surface on which two bodies press on each other, in world axes.

    Attributes:
        force: ``(3,)`` N on b; the force on a is the opposite.
        moment: ``(3,)`` Nm on b about the world's origin.
        centre: ``(3,)`` centre of pressure, m; zeros without contact.
        area: m².
        total_pressure: integral of the pressure over the surface, regardless of direction, N.
        tangent: ``(6, 6)`` derivative of force and moment on b with respect to a motion of a
            (linear velocity of a's point at the world's origin, then angular velocity), with b at
            rest. Exact if no polygon is filtered out.
        count: number of polygons.
        polygons: :data:`POLYGON_DTYPE` ``(count,)``, empty if not requested.
        vertices: ``(any, 3)`` corners of the polygons, m.
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

    @property
    def triangles(self) -> npt.NDArray[np.int32]:
        """``(m, 3)`` indices of :attr:`vertices`: the polygons divided into triangles, for
        pictures."""
        counts = self.polygons["vertex_count"].astype(np.int64) - 2
        starts = np.repeat(self.polygons["vertex_start"].astype(np.int64), counts)
        nth = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.stack([starts, starts + nth + 1, starts + nth + 2], axis=1).astype(np.int32)

    @property
    def vertex_pressure(self) -> Array:
        """Pa at each of the :attr:`vertices`."""
        x, triangles, polygons = self.vertices, self.triangles, self.polygons
        corners = x[triangles]
        edges = corners[:, 1:] - corners[:, :1]
        areas = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
        owner = np.repeat(np.arange(len(polygons)), polygons["vertex_count"])
        middle = np.zeros((len(polygons), 3))
        np.add.at(middle, owner[triangles[:, 0]], areas[:, None] * corners.mean(axis=1))
        middle /= np.bincount(owner[triangles[:, 0]], areas, len(polygons))[:, None]
        along = [
            g - np.sum(g * polygons["normal"], axis=1)[:, None] * polygons["normal"]
            for g in (polygons["gradient_a"], polygons["gradient_b"])
        ]
        steeper = np.linalg.norm(along[0], axis=1) > np.linalg.norm(along[1], axis=1)
        slope = np.where(steeper[:, None], *along)  # zero for a rigid body; two soft ones agree
        rise = np.sum(slope[owner] * (x - middle[owner]), axis=1)
        return np.asarray(np.maximum(polygons["pressure"][owner] + rise, 0.0))

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
    """Find the surface on which two bodies press on each other (Elandt et al. 2019).

    It is the surface on which their pressures are equal, or the part of a rigid surface inside a
    soft body.

    Args:
        a, b: bodies; at least one of them is soft.
        pose_a, pose_b: ``(7,)`` position m and quaternion w x y z in the world; None: at the
            origin.
        polygons: whether to keep the polygons.
        filter_angle: rad; polygons whose normal deviates by more than this from a body's pressure
            gradient are left out. Drake uses ``5 pi / 8``, which violates the conservation of
            energy where polygons are left out. None: none are.

    Returns:
        The patch, with force N, moment Nm and, if requested, polygons as arrays ``(n, 3)``.

    Raises:
        TypeError, ValueError: for other objects, two rigid bodies, wrong shapes, numbers that are
            not finite, or quaternions that are not of unit length.
    """
    angle = 0.0
    if filter_angle is not None:
        angle = number("filter_angle", filter_angle, above=0, most=math.pi)
    _check_bodies(a, b)
    return Patch(
        *patch_parts(
            _core._field_patch(a._handle, b._handle, pose_a, pose_b, angle, polygons, True)
        )
    )


def patch_parts(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the fields of a :class:`Patch`, with polygons and vertices as array views."""
    *numbers, records, corners = found
    force, moment, centre, tangent, area, total, count = numbers
    polygons = np.frombuffer(records, POLYGON_DTYPE)
    vertices = np.frombuffer(corners).reshape(-1, 3)
    return force, moment, centre, area, total, tangent, count, polygons, vertices


def pressure_energy(
    a: Body,
    b: Body,
    pose_a: npt.ArrayLike | None = None,
    pose_b: npt.ArrayLike | None = None,
) -> float:
    """Compute the energy of two bodies that press on each other, J (Elandt et al. 2019; formulation
    8).

    It is the integral of the smaller of their pressures over the overlap. Force ``(3,)`` and moment
    ``(3,)`` of :func:`pressure_patch` are minus its derivative with respect to motions of b.

    Args:
        a, b: bodies; at least one of them is soft. A rigid surface must be closed.
        pose_a, pose_b: ``(7,)`` position m and quaternion w x y z in the world; None: at the
            origin.

    Raises:
        TypeError, ValueError: as for :func:`pressure_patch`, and for rigid surfaces with a rim.
    """
    _check_bodies(a, b)
    for name, body in (("a", a), ("b", b)):
        if isinstance(body, RigidSurface) and not is_closed(body.vertices, body.triangles):
            raise ValueError(f"{name}: expected a closed surface, got one with a rim")
    return _core._field_energy(a._handle, b._handle, pose_a, pose_b)


def _check_bodies(a: Body, b: Body) -> None:
    for name, body in (("a", a), ("b", b)):
        if not isinstance(body, (PressureField, RigidSurface, HalfSpace)):
            raise TypeError(
                f"{name}: expected a PressureField, RigidSurface or HalfSpace, got {type(body).__name__}"
            )
