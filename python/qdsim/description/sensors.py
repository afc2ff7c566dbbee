"""Sensors of forces: their places and measured quantities. ``qdsim.sensors`` reads them from a
step.

Quaternions are unit, order w x y z; lengths in m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from qdsim.array_type import SAME, Array
from qdsim.description import checks
from qdsim.description.checks import Vector
from qdsim.description.shapes import GEOM_SIZES

Reduce = Literal["none", "mindist", "maxforce", "netforce"]
Side = tuple[Literal["geom", "body", "subtree"], str]

SITE_SHAPES: tuple[str, ...] = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
CONTACT_DATA = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3, "normal": 3, "tangent": 3}
"""Data of contact sensors in MuJoCo's order, and how many numbers each has."""
SIDES: tuple[str, ...] = ("geom", "body", "subtree")
REDUCTIONS: tuple[str, ...] = ("none", "mindist", "maxforce", "netforce")


@dataclass(frozen=True)
class Site:
    """A frame on a body, with a volume around it.

    Attributes:
        body: name of the body.
        pos, quat: (3), (4) in the body's frame.
        shape: "sphere", "capsule", "ellipsoid", "cylinder" or "box".
        size: as for MuJoCo's geometries, radius and half lengths, m.
    """

    body: str
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    shape: str = "sphere"
    size: Vector = (0.005,)

    def __post_init__(self) -> None:
        owner = f"site on body {checks.text('site', 'body', self.body)!r}"
        if self.shape not in SITE_SHAPES:
            raise ValueError(f"{owner}: shape must be one of {SITE_SHAPES}, got {self.shape!r}")
        size = checks.vector(owner, "size", self.size, GEOM_SIZES[self.shape])
        if min(size) <= 0.0:
            raise ValueError(f"{owner}: size must be positive, got {size}")
        checks.assign(
            self,
            pos=checks.vector(owner, "pos", self.pos, 3),
            quat=checks.quaternion(owner, "quat", self.quat),
            size=size,
        )


@dataclass(frozen=True)
class _AtSite:
    """A sensor with a ``name`` of its own at a ``site``; values beyond ``cutoff`` (N or Nm, > 0; None:
    no limit) read as the cutoff, with their sign."""

    name: str
    site: Site
    cutoff: float | None = None

    def __post_init__(self) -> None:
        owner = f"sensor {checks.text('sensor', 'name', self.name)!r}"
        _check_site(owner, self.site)
        if self.cutoff is not None:
            cutoff = checks.number(owner, "cutoff", self.cutoff)
            if cutoff <= 0.0:
                raise ValueError(f"{owner}: cutoff must be positive or None, got {cutoff}")
            checks.assign(self, cutoff=cutoff)


@dataclass(frozen=True)
class TouchSensor(_AtSite):
    """The sum of normal forces (N) of the contacts of the site's body in the site's volume
    (MuJoCo's ``touch``).

    A contact also counts if its normal, directed inwards, intersects the volume.
    """


@dataclass(frozen=True)
class ForceSensor(_AtSite):
    """The force (3), N, that the parent exerts on the site's body, in the site's frame (MuJoCo's
    ``force``)."""


@dataclass(frozen=True)
class TorqueSensor(_AtSite):
    """The torque (3), Nm about the site, that the parent exerts on its body, in the site's frame
    (MuJoCo's ``torque``)."""


@dataclass(frozen=True)
class ContactSensor:
    """Data of the contacts between two sides (MuJoCo's ``contact``).

    Forces act on the second side and are in the contact's frame, whose axes are "normal" (from the
    first side into the second), "tangent" and their cross product; tangents are MuJoCo's, not those
    of `Step.contacts`.

    Attributes:
        name: unique among sensors.
        first, second: the two sides: None (anything), or a kind and a name, ("geom", ...), ("body",
            ...) or ("subtree", ...), the body with all its descendants.
        site: only contacts in its volume count.
        data: quantities of each contact, some of "found" (the number of contacts), "force",
            "torque", "dist", "pos", "normal" and "tangent", in this order.
        num: number of contacts; missing ones are zeros.
        reduce: which contacts: "none" (the first ones), "mindist", "maxforce" (the strongest), or
            "netforce": only their sum, in world axes about the force-weighted centre of the
            contacts.
    """

    name: str
    first: Side | None = None
    second: Side | None = None
    site: Site | None = None
    data: tuple[str, ...] = ("found",)
    reduce: Reduce = "none"
    num: int = 1

    def __post_init__(self) -> None:
        owner = f"sensor {checks.text('sensor', 'name', self.name)!r}"
        for which in ("first", "second"):
            _check_side(owner, which, getattr(self, which))
        if self.site is not None:
            _check_site(owner, self.site)
            if self.first is not None:
                raise ValueError(f"{owner}: takes a first side or a site, and not both")
        order = [name for name in CONTACT_DATA if name in self.data]
        if not order or list(self.data) != order:
            raise ValueError(
                f"{owner}: data must be names among {tuple(CONTACT_DATA)}, in this order, got {self.data}"
            )
        if self.reduce not in REDUCTIONS:
            raise ValueError(f"{owner}: reduce must be one of {REDUCTIONS}, got {self.reduce!r}")
        num = checks.integer(owner, "num", self.num)
        if num < 1:
            raise ValueError(f"{owner}: num must be at least 1, got {num}")
        checks.assign(self, data=tuple(self.data), num=num)


@dataclass(frozen=True, eq=False)
class TaxelSensor:
    """An array of taxels on a geometry: pressures normal and tangential to its surface.

    ``qdsim.sensors.taxel_grid`` makes one on a side of a geometry.

    Attributes:
        name: unique among sensors.
        geom: name of the geometry.
        points: (n, 3) centres of the taxels in its frame, m.
        normals: (n, 3) outward normals of its surface there, any length.
        area: area of a taxel, m^2, one number or (n).
        toward: (3) direction in the geometry's frame; its tangential part is the first tangent of
            each taxel (if that is zero, the next axis of x, y, z is used); the second tangent is
            normal x first tangent.
        reach: the force of a contact is distributed over the taxels within this distance (at least
            the nearest one), m, with weights that fall to zero there and sum to one, so that no
            force is lost.
    """

    name: str
    geom: str
    points: Array = field(repr=False)
    normals: Array = field(repr=False)
    area: Array = field(repr=False)
    reach: float
    toward: Vector = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        owner = f"sensor {checks.text('sensor', 'name', self.name)!r}"
        checks.text(owner, "geom", self.geom)
        points, normals = (
            _rows(owner, name, getattr(self, name)) for name in ("points", "normals")
        )
        if normals.shape != points.shape or not len(points):
            raise ValueError(
                f"{owner}: points and normals must have the same shape (n, 3), n > 0, got {points.shape} and "
                f"{normals.shape}"
            )
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        if not length.all():
            raise ValueError(f"{owner}: normals must not be zero")
        area = np.broadcast_to(np.asarray(self.area, dtype=float), len(points)).copy()
        if not np.all(np.isfinite(area) & (area > 0.0)):
            raise ValueError(f"{owner}: area must be positive and finite")
        reach = checks.number(owner, "reach", self.reach)
        if reach <= 0.0:
            raise ValueError(f"{owner}: reach must be positive, got {reach}")
        toward = checks.direction(owner, "toward", self.toward)
        normals = normals / length
        for array in (points, normals, area):
            array.setflags(write=False)
        checks.assign(self, points=points, normals=normals, area=area, reach=reach, toward=toward)

    @property
    def tangents(self) -> tuple[Array, Array]:
        """(n, 3) and (n, 3) unit vectors along the surface, in the geometry's frame."""
        toward = np.array(self.toward)
        along = toward - (self.normals @ toward)[:, None] * self.normals
        none = np.linalg.norm(along, axis=1) < SAME
        other = np.roll(toward, 1)
        along[none] = other - (self.normals[none] @ other)[:, None] * self.normals[none]
        first = along / np.linalg.norm(along, axis=1, keepdims=True)
        return first, np.cross(self.normals, first)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaxelSensor):
            return NotImplemented
        arrays = ("points", "normals", "area")
        single = ("name", "geom", "reach", "toward")
        return all(getattr(self, name) == getattr(other, name) for name in single) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays
        )

    def __hash__(self) -> int:
        return hash((self.name, self.geom, len(self.points)))


Sensor = TouchSensor | ForceSensor | TorqueSensor | ContactSensor | TaxelSensor


def _check_site(owner: str, site: object) -> None:
    if not isinstance(site, Site):
        raise TypeError(f"{owner}: site must be a Site, got {type(site).__name__}")


def _check_side(owner: str, which: str, side: object) -> None:
    if side is None:
        return
    fits = isinstance(side, tuple) and len(side) == 2 and side[0] in SIDES
    if not fits or not isinstance(side[1], str):  # type: ignore[index]
        raise ValueError(
            f"{owner}: {which} must be None or one of {SIDES} with a name, got {side!r}"
        )


def _rows(owner: str, name: str, value: object) -> Array:
    array = np.array(value, dtype=float)
    if array.ndim != 2 or array.shape[1] != 3 or not np.isfinite(array).all():
        raise ValueError(f"{owner}: {name} must be finite numbers (n, 3), got shape {array.shape}")
    return array
