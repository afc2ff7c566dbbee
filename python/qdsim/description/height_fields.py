"""Height fields: solids below a surface over a grid."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from qdsim._core import HFIELD_POINTS_MAX, LARGEST
from qdsim.arguments import number, reals
from qdsim.array_type import Array
from qdsim.description import checks


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HeightField:
    """A solid below a surface of heights on a grid: the shape of a geometry of type "hfield", as in
    MuJoCo.

    Each cell of the grid has two triangles, separated by the diagonal from its corner with the
    smallest x and y to that with the largest. The solid has a flat bottom and vertical sides. Other
    shapes touch its faces, edges and corners; inner edges have contacts only where the surface is
    convex.

    Attributes:
        heights: (rows, columns) z of the surface in the geometry's frame, m: rows along y, columns
            along x, beginning with the smallest x and y; at least 2 of each, together at most
            2^22; copied, read-only.
        size: (2) half lengths of the grid along x and y, m; its centre is the frame's origin.
        base: distance of the bottom below the lowest height, m. A larger distance is safer, because
            an object below the bottom counts as outside.

    Raises:
        ValueError: for a wrong shape, numbers that are not finite, or lengths that are not
            positive.
        TypeError: if the heights are not numbers.
    """

    heights: Array
    size: tuple[float, float]
    base: float = 1.0

    def __post_init__(self) -> None:
        owner = "height field"
        heights = np.array(reals(f"{owner}: heights", self.heights))
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ValueError(
                f"{owner}: heights must have shape (rows, columns), 2 or more of each, got {heights.shape}"
            )
        if heights.size > HFIELD_POINTS_MAX:
            raise ValueError(
                f"{owner}: heights must be {HFIELD_POINTS_MAX} at most, got {heights.shape}"
            )
        if not np.all(np.abs(heights) <= LARGEST):
            raise ValueError(f"{owner}: heights must be finite numbers up to {LARGEST:g} m")
        size = checks.vector(owner, "size", self.size, 2)
        if min(size) <= 0.0:
            raise ValueError(f"{owner}: size must be positive, got {size}")
        base = number(f"{owner}: base", self.base, above=0)
        heights.setflags(write=False)
        checks.assign(self, heights=heights, size=size, base=float(base))

    @property
    def bottom(self) -> float:
        """z of the solid's bottom in the geometry's frame, m."""
        return float(self.heights.min()) - self.base

    @property
    def radius(self) -> float:
        """Radius of the sphere about the frame's origin that contains it, m."""
        high = max(abs(float(self.heights.max())), abs(self.bottom))
        return float(np.linalg.norm((*self.size, high)))

    def triangles(self, points: int | None = None) -> tuple[Array, npt.NDArray[np.int32]]:
        """Vertices (n, 3), m, and triangles (k, 3), anticlockwise seen from outside, of the surface
        and the sides.

        Args:
            points: largest number of grid points along a side, to which larger grids are subsampled;
                None: all.
        """
        rows, columns = (
            np.unique(np.linspace(0, count - 1, min(count, points or count)).astype(int))
            for count in self.heights.shape
        )
        x, y = (
            half * (2.0 * kept / (count - 1) - 1.0)
            for half, kept, count in zip(self.size, (columns, rows), self.heights.shape[::-1])
        )
        top = np.dstack((*np.meshgrid(x, y), self.heights[np.ix_(rows, columns)]))
        place = np.arange(len(rows) * len(columns), dtype=np.int32).reshape(len(rows), -1)
        a, b = place[:-1, :-1].ravel(), place[:-1, 1:].ravel()
        c, d = place[1:, 1:].ravel(), place[1:, :-1].ravel()
        rim = np.concatenate((place[0, :-1], place[:-1, -1], place[-1, :0:-1], place[:0:-1, 0]))
        after = np.roll(rim, -1)
        foot = np.arange(len(rim), dtype=np.int32) + place.size
        next_foot = np.roll(foot, -1)
        below = top.reshape(-1, 3)[rim]
        below[:, 2] = self.bottom
        faces = [(a, b, c), (a, c, d), (rim, foot, next_foot), (rim, next_foot, after)]
        return (
            np.concatenate((top.reshape(-1, 3), below)),
            np.concatenate([np.stack(part, axis=1) for part in faces]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeightField):
            return NotImplemented
        same = (self.size, self.base) == (other.size, other.base)
        return same and np.array_equal(self.heights, other.heights)

    def __hash__(self) -> int:
        return hash((self.heights.shape, self.size, self.base))

    def __repr__(self) -> str:
        rows, columns = self.heights.shape
        return f"HeightField({rows} x {columns}, size={self.size}, base={self.base:g})"
