"""Rigid point clouds: points fixed to a geometry's frame, each of which touches other shapes."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from qdsim._core import CONTACTS_PER_PAIR_MAX, LARGEST
from qdsim.arguments import number, reals
from qdsim.array_type import Array


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PointCloud:
    """A point cloud as collision shape: of a geometry of type "cloud", or in place of another shape
    (``clouds=`` of ``qdsim.load``).

    Against every other geometry, the ``contacts`` nearest points are in contact: five, as in Tracy
    and Manchester, "Convex Quasi-Dynamic Simulation of Rigid Point Clouds with Torsional Friction".
    Each is a ball of ``radius`` fixed to the cloud. Distances are signed: a point inside the other
    shape is pushed out. Among points at equal distance (to rounding), points far apart from each
    other are chosen, always the same ones, so that a cloud can stand on a flat part. Two clouds
    touch in their nearest pairs of points, if their radii are not both zero.

    Attributes:
        points: (n, 3) in the geometry's frame, m; copied, read-only. Repeated points are allowed.
        radius: radius of the points, m, 0 or more.
        contacts: number of contacts with one other geometry, 1 to 8.

    Raises:
        ValueError: if there is no point, for a wrong shape, or for numbers that are not finite.
        TypeError: if the points are not numbers.
    """

    points: Array
    radius: float = 0.0
    contacts: int = 5

    def __post_init__(self) -> None:
        radius, contacts = self.radius, self.contacts
        radius = number("point cloud: radius", radius, least=0)
        if isinstance(contacts, bool) or not isinstance(contacts, (int, np.integer)):
            raise TypeError(f"point cloud: contacts must be an integer, got {contacts!r}")
        if not 1 <= contacts <= CONTACTS_PER_PAIR_MAX:
            raise ValueError(
                f"point cloud: contacts must be 1 to {CONTACTS_PER_PAIR_MAX}, got {int(contacts)}"
            )
        set_now = object.__setattr__
        set_now(self, "points", checked_points("point cloud: points", self.points))
        set_now(self, "radius", float(radius))
        set_now(self, "contacts", int(contacts))

    @classmethod
    def from_mesh(
        cls,
        vertices: npt.ArrayLike,
        faces: npt.ArrayLike,
        count: int,
        *,
        seed: int = 0,
        radius: float = 0.0,
        contacts: int = 5,
    ) -> PointCloud:
        """Sample points on the triangles of a mesh, convex or not; see ``sample_surface``.

        Args:
            vertices: ``(n, 3)``, m.
            faces: ``(k, 3)`` indices of vertices.
            count: number of points.
            seed: seed of the samples.
            radius: radius of the points, m.
            contacts: largest number of contacts with another geometry.

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        points = sample_surface(vertices, faces, count, seed=seed)
        return cls(points, radius=radius, contacts=contacts)

    def __len__(self) -> int:
        return len(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PointCloud):
            return NotImplemented
        same = (self.radius, self.contacts) == (other.radius, other.contacts)
        return same and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.points.shape, self.radius, self.contacts))

    def __repr__(self) -> str:
        return f"PointCloud({len(self)} points, radius={self.radius:g}, contacts={self.contacts})"


def checked_points(owner: str, values: npt.ArrayLike) -> Array:
    """Check finite numbers (n, 3), n >= 1, and return a read-only copy. Errors begin with ``owner``."""
    points = np.array(reals(owner, values))
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"{owner} must have shape (n, 3), got {points.shape}")
    if len(points) == 0:
        raise ValueError(f"{owner}: expected at least one, got none")
    bad = np.flatnonzero(~(np.abs(points) <= LARGEST).all(axis=1))
    if bad.size:
        raise ValueError(f"{owner}: point {bad[0]} is not finite: {points[bad[0]].tolist()}")
    points.setflags(write=False)
    return points


def sample_surface(
    vertices: npt.ArrayLike, faces: npt.ArrayLike, count: int, *, seed: int = 0
) -> Array:
    """Sample ``count`` points (count, 3) evenly at random on triangles.

    Args:
        vertices: (n, 3), m.
        faces: (k, 3) indices of vertices.
        count: number of points, 1 or more.
        seed: the same seed gives the same points.

    Raises:
        ValueError: for wrong shapes, invalid indices, or zero area.
    """
    corners = checked_points("vertices", vertices)
    triangles = np.asarray(faces)
    if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
        raise ValueError(f"faces must be indices of shape (k, 3), got {triangles.shape}")
    if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(corners):
        raise ValueError("faces name vertices that do not exist")
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise TypeError(f"count must be an integer, got {count!r}")
    if count < 1:
        raise ValueError(f"count must be 1 or more, got {int(count)}")
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    total = float(areas.sum())
    if not total > 0.0:
        raise ValueError("faces have no area")
    rng = np.random.default_rng(seed)
    at = rng.choice(len(areas), size=int(count), p=areas / total)
    s, t = rng.random((2, int(count), 1))
    beyond = s + t > 1.0
    s, t = np.where(beyond, 1.0 - s, s), np.where(beyond, 1.0 - t, t)
    return np.asarray(a[at] + s * (b - a)[at] + t * (c - a)[at])
