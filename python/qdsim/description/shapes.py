"""Shapes of a scene: geometries fixed to bodies, and meshes.

SI units; quaternions are unit, order w x y z. Values are checked when an element is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim.arguments import real_array, reals
from qdsim.array_type import Array
from qdsim.description import checks
from qdsim.description.checks import Vector
from qdsim.description.clouds import PointCloud
from qdsim.description.contact_solver import SOLIMP, SOLREF, solimp, solref
from qdsim.description.height_fields import HeightField
from qdsim.description.hulls import hull_faces
from qdsim.description.softness import Softness

GeomType = Literal[
    "plane", "sphere", "capsule", "box", "cylinder", "ellipsoid", "mesh", "cloud", "hfield"
]

# Order and values of qd_shape_type.
GEOM_TYPES: tuple[str, ...] = (
    "plane",
    "sphere",
    "capsule",
    "box",
    "cylinder",
    "ellipsoid",
    "mesh",
    "cloud",
    "hfield",
)
GEOM_SIZES = {
    "plane": 0,
    "sphere": 1,
    "capsule": 2,
    "box": 3,
    "cylinder": 2,
    "ellipsoid": 3,
    "mesh": 0,
    "cloud": 1,
    "hfield": 0,
}
_PAIRS = (  # as qd_shape_pair_supported
    ("plane", "sphere"),
    ("plane", "capsule"),
    ("plane", "box"),
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("sphere", "box"),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
    ("plane", "cylinder"),
    ("plane", "ellipsoid"),
    ("sphere", "cylinder"),
    ("sphere", "ellipsoid"),
    ("capsule", "cylinder"),
    ("capsule", "ellipsoid"),
    ("box", "cylinder"),
    ("box", "ellipsoid"),
    ("cylinder", "cylinder"),
    ("cylinder", "ellipsoid"),
    ("ellipsoid", "ellipsoid"),
    ("plane", "mesh"),
    ("sphere", "mesh"),
    ("capsule", "mesh"),
    ("box", "mesh"),
    ("cylinder", "mesh"),
    ("ellipsoid", "mesh"),
    ("mesh", "mesh"),
    ("plane", "cloud"),
    ("sphere", "cloud"),
    ("capsule", "cloud"),
    ("box", "cloud"),
    ("cylinder", "cloud"),
    ("ellipsoid", "cloud"),
    ("mesh", "cloud"),
    ("cloud", "cloud"),
    ("hfield", "sphere"),
    ("hfield", "capsule"),
    ("hfield", "box"),
    ("hfield", "cylinder"),
    ("hfield", "ellipsoid"),
    ("hfield", "mesh"),
    ("hfield", "cloud"),
)
SUPPORTED_PAIRS = frozenset(_PAIRS) | frozenset((b, a) for a, b in _PAIRS)
CONTACT_DIMENSIONS = (1, 3, 4, 6)


@dataclass(frozen=True)
class Geom:
    """A shape fixed to a body.

    Attributes:
        name: unique among geometries.
        type: one of ``GEOM_TYPES``.
        size: m. Sphere (radius), capsule and cylinder (radius, half length; along z), box (half
            lengths), ellipsoid (half axes); unused for mesh and hfield. For a plane (half space z
            <= 0), two numbers may give the size in pictures.
        pos, quat: (3), m, and (4), w x y z: its frame in the body's.
        friction: (3) sliding, torsional (m), rolling (m).
        condim: contact dimension 1, 3, 4 or 6.
        priority: the geometry with the higher priority determines friction and condim of a pair.
        contype, conaffinity: two geometries may touch if ``contype`` of one shares a bit with
            ``conaffinity`` of the other.
        margin: the pair is a contact within this distance, whatever the options say, m (margins of
            both geometries add up).
        mesh: name of a mesh, for type "mesh".
        rgba: colour in pictures, each in [0, 1].
        cloud: a ``PointCloud``, for type "cloud"; size is then the radius of its points.
        hfield: a ``HeightField``, for type "hfield".
        stiffness: N/m, along the normal of its contacts. None: rigid. Two geometries act as springs
            in series.
        restitution: 0 to 1, for the second-order step; a pair has the larger one. None: that of the
            options.
        soft: a ``Softness`` (or only its modulus, Pa, or a ``PressureField`` in the geometry's own
            frame): the geometry presses by a pressure field. ``condim`` 1 is without friction,
            others have sliding friction; torsion and rolling resistance follow from the surface.
        solref, solimp, solmix: MuJoCo's solver parameters (2), (1 to 5), and one number, with its
            defaults. Used if ``Options.contacts`` is "mujoco".
    """

    name: str
    type: GeomType = "sphere"
    size: Vector = ()
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    friction: Vector = (1.0, 0.005, 0.0001)
    condim: int = 3
    priority: int = 0
    contype: int = 1
    conaffinity: int = 1
    margin: float = 0.0
    mesh: str | None = None
    rgba: Vector = (0.5, 0.5, 0.5, 1.0)
    cloud: PointCloud | None = None
    stiffness: float | None = None
    restitution: float | None = None
    soft: Softness | None = None
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP
    solmix: float = 1.0
    hfield: HeightField | None = None

    def __post_init__(self) -> None:
        owner = f"geom {checks.text('geom', 'name', self.name)!r}"
        if self.type not in GEOM_TYPES:
            raise ValueError(f"{owner}: type must be one of {GEOM_TYPES}, got {self.type!r}")
        _check_parts(owner, self)
        if self.condim not in CONTACT_DIMENSIONS:
            raise ValueError(f"{owner}: condim must be 1, 3, 4 or 6, got {self.condim!r}")
        soft = Softness.of(owner, self.type, self.soft)
        if soft is not None and self.stiffness is not None:
            raise ValueError(f"{owner}: give soft or stiffness, not both")
        checks.assign(
            self,
            size=_geom_size(owner, self),
            pos=checks.vector(owner, "pos", self.pos, 3),
            quat=checks.quaternion(owner, "quat", self.quat),
            friction=_geom_friction(owner, self.friction),
            condim=int(self.condim),
            priority=checks.integer(owner, "priority", self.priority),
            contype=checks.integer(owner, "contype", self.contype),
            conaffinity=checks.integer(owner, "conaffinity", self.conaffinity),
            margin=checks.non_negative(owner, "margin", self.margin),
            stiffness=checks.stiffness(owner, "stiffness", self.stiffness),
            restitution=checks.restitution(owner, self.restitution),
            soft=soft,
            solref=solref(owner, "solref", self.solref),
            solimp=solimp(owner, "solimp", self.solimp),
            solmix=checks.non_negative(owner, "solmix", self.solmix),
            rgba=checks.vector(owner, "rgba", self.rgba, 4),
        )


def _geom_size(owner: str, geom: Geom) -> Vector:
    """Check ``size`` and return three numbers, zeros after those that the shape uses."""
    given = checks.vector_or_number(owner, "size", geom.size)
    if geom.cloud is not None:
        given = given or (geom.cloud.radius,)
    needed = GEOM_SIZES[geom.type]
    if not needed <= len(given) <= 3:
        raise ValueError(f"{owner}: a {geom.type} needs {needed} sizes, got {len(given)}")
    may_be_zero = geom.type == "cloud"
    if any(item < 0.0 or (item == 0.0 and not may_be_zero) for item in given[:needed]):
        rule = "not be negative" if may_be_zero else "be positive"
        raise ValueError(f"{owner}: size must {rule}, got {given[:needed]}")
    kept = given[: 2 if geom.type == "plane" else needed]
    return kept + (0.0,) * (3 - len(kept))


def _check_parts(owner: str, geom: Geom) -> None:
    """Raise if a cloud, a height field or a mesh is given to another type of shape, or is missing."""
    parts: tuple[tuple[str, object, type], ...] = (
        ("cloud", geom.cloud, PointCloud),
        ("hfield", geom.hfield, HeightField),
    )
    for name, part, kind in parts:
        if (geom.type == name) != (part is not None):
            raise ValueError(f"{owner}: {name} needs a geometry of type '{name}'")
        if part is not None and not isinstance(part, kind):
            raise TypeError(f"{owner}: {name} must be a {kind.__name__}, got {type(part).__name__}")
    if geom.type == "mesh" and geom.mesh is None:
        raise ValueError(f"{owner}: type 'mesh' needs the name of a mesh")


def _geom_friction(owner: str, given: Any) -> Vector:
    """Check friction and return sliding, torsional and rolling coefficients; missing ones are MuJoCo's defaults."""
    friction = checks.vector_or_number(owner, "friction", given)
    if not 1 <= len(friction) <= 3:
        raise ValueError(f"{owner}: friction must hold 1 to 3 numbers, got {len(friction)}")
    if any(item < 0.0 for item in friction):
        raise ValueError(f"{owner}: friction must not be negative, got {friction}")
    return friction + (0.005, 0.0001)[len(friction) - 1 :]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices and triangles.

    Geometries with a mesh collide as its convex hull. Soft geometries touch the triangles
    themselves if these enclose a volume, so that a ring has its hole and a cup its cavity.

    Attributes:
        name: unique among meshes.
        vertices: (n, 3), m.
        faces: (k, 3) indices of vertices, for pictures and soft geometries; None: those of the
            hull.
        hull: (m, 3) triangles of the convex hull, indices of vertices, anticlockwise seen from
            outside; None: computed when first needed (``hull_faces``), by the qhull inside MuJoCo.
    """

    name: str
    vertices: Array
    faces: npt.NDArray[np.int32] = None  # type: ignore[assignment]
    hull: npt.NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        owner = f"mesh {checks.text('mesh', 'name', self.name)!r}"
        vertices = np.array(reals(f"{owner}: vertices", self.vertices))
        if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.all(np.isfinite(vertices)):
            raise ValueError(f"{owner}: vertices must be finite, of shape (n, 3)")
        vertices.setflags(write=False)
        checks.assign(self, vertices=vertices)
        hull = None if self.hull is None else _triangles(owner, "hull", self.hull, len(vertices))
        checks.assign(self, hull=hull)
        faces: Any = self.faces
        faces = (
            self.hull_faces if faces is None else _triangles(owner, "faces", faces, len(vertices))
        )
        checks.assign(self, faces=faces)

    @property
    def hull_faces(self) -> npt.NDArray[np.int32]:
        """(m, 3) triangles of the convex hull, indices of vertices.

        Raises ValueError if the vertices lie in a plane.
        """
        if self.hull is None:
            faces = hull_faces(f"mesh {self.name!r}", self.vertices)
            faces.setflags(write=False)
            checks.assign(self, hull=faces)
        assert self.hull is not None
        return self.hull

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        return (
            self.name == other.name
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.faces, other.faces)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.vertices.shape, self.faces.shape))


def _triangles(owner: str, name: str, values: Any, vertex_count: int) -> npt.NDArray[np.int32]:
    given = real_array(f"{owner}: {name}", values)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"{owner}: {name} must be integers, got dtype {given.dtype}")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < vertex_count:
        raise ValueError(f"{owner}: {name} name vertices that do not exist")
    faces = np.array(given, dtype=np.int32)
    if faces.ndim != 2 or faces.shape[1] != 3:
        raise ValueError(f"{owner}: {name} must have shape (k, 3), got {faces.shape}")
    faces.setflags(write=False)
    return faces
