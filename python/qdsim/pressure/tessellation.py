"""Tessellation of shapes into tetrahedra in which the distance to the surface is linear; they meet
on the medial axis.

Each function returns vertices ``(n, 3)`` in m, tetrahedra ``(m, 4)`` of positive volume, and the
depth of each vertex below the surface as a share of the largest one, 0 to 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from qdsim.array_type import ROUNDING, Array
from qdsim.description.elements import ModelWarning

__all__ = [
    "Tessellation",
    "box",
    "capsule",
    "cylinder",
    "ellipsoid",
    "finest",
    "hull",
    "is_closed",
    "outward",
    "surface_of",
]

Indices = npt.NDArray[np.int32]
Tessellation = tuple[Array, Indices, Array]

_MOST_AROUND = 706
"""Largest number of corners of a circle; capsules with more have over a million tetrahedra."""

_FINEST = 8
"""Largest number of subdivisions of a sphere."""

_FLAT = 2e-12
"""Triangles whose doubled area is below this multiple of the largest squared edge count as flat.
The limit is twice that of the core."""


class _Cells:
    """Convex cells, cut into tetrahedra.

    Every face is divided from its vertex of smallest index, and every cell from its vertex of
    smallest index. Cells with a common face therefore divide it in the same way.
    """

    def __init__(self) -> None:
        self.points: list[Sequence[float]] = []
        self.depth: list[float] = []
        self.tetrahedra: list[tuple[int, int, int, int]] = []

    def point(self, place: Sequence[float] | Array, depth: float) -> int:
        self.points.append(tuple(place))
        self.depth.append(depth)
        return len(self.points) - 1

    def add(self, faces: Sequence[Sequence[int]]) -> None:
        """Add a convex cell, given by its faces; repeated successive corners count once."""
        polygons = [_without_repeats(face) for face in faces]
        polygons = [face for face in polygons if len(face) >= 3]
        apex = min(min(face) for face in polygons)
        for face in polygons:
            if apex in face:
                continue
            k = face.index(min(face))
            ring = face[k:] + face[:k]
            self.tetrahedra += [(apex, ring[0], a, b) for a, b in pairwise(ring[1:])]

    def done(self) -> Tessellation:
        points = np.array(self.points)
        tetrahedra = np.array(self.tetrahedra, dtype=np.int32)
        corner = points[tetrahedra]
        volumes = np.linalg.det(corner[:, 1:] - corner[:, :1])
        size = np.ptp(points, axis=0).max() ** 3
        kept = np.abs(volumes) > 1e-13 * size
        flipped = volumes < 0.0
        tetrahedra[flipped] = tetrahedra[flipped][:, [0, 1, 3, 2]]
        return points, tetrahedra[kept], np.array(self.depth)


def finest(kind: str, size: Sequence[float]) -> float:
    """Return the smallest resolution hint of a round shape, m; smaller ones do not refine its mesh further."""
    if kind in ("sphere", "ellipsoid"):
        return 2.0 * max(size) * math.sin(math.pi / 2.0 ** (_FINEST + 2)) * (1.0 + ROUNDING)
    return 2.0 * math.pi * size[0] / _MOST_AROUND * (1.0 + ROUNDING)


def _warn_of_hint(hint: float, reached: float) -> None:
    warnings.warn(
        f"hint: {hint:g} m is finer than this shape allows; its longest edges are {reached:.3g} m",
        ModelWarning,
        stacklevel=3,
    )


def _without_repeats(face: Sequence[int]) -> list[int]:
    return [a for a, b in zip(face, [*face[1:], face[0]]) if a != b]


def ellipsoid(semi_axes: Array, hint: float) -> Tessellation:
    """Tessellate an ellipsoid: an octahedron around the centre whose outer faces are subdivided ``level`` times.

    The depth is ``1 - |x / semi_axes|``.
    """
    radius = float(np.max(semi_axes))
    half = math.asin(min(hint, 2.0 * radius) / (2.0 * radius))
    level = max(0, math.ceil(math.log2(math.pi / half)) - 2)
    if level > _FINEST:
        level = _FINEST
        _warn_of_hint(hint, 2.0 * radius * math.sin(math.pi / 2.0 ** (level + 2)))
    points, triangles = _octahedron(level)
    tetrahedra = np.column_stack([np.zeros(len(triangles), dtype=np.int32), triangles + 1])
    vertices = np.vstack([np.zeros(3), points]) * semi_axes
    return vertices, tetrahedra.astype(np.int32), np.r_[1.0, np.zeros(len(points))]


def _octahedron(level: int) -> tuple[Array, Indices]:
    """Return points of the unit sphere (n, 3), and triangles (m, 3), anticlockwise seen from outside."""
    points = np.vstack([np.eye(3), -np.eye(3)])
    triangles = np.array(
        [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]]
    )
    for _ in range(level):
        edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, index = np.unique(edges, axis=0, return_inverse=True)
        middle = points[edges].mean(axis=1)
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        a, b, c = triangles.T
        ab, bc, ca = (index.reshape(-1, 3) + len(points)).T
        parts = [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        triangles = np.concatenate([np.column_stack(part) for part in parts])
        points = np.vstack([points, middle])
    return points, triangles.astype(np.int32)


def box(half: Array) -> Tessellation:
    """Tessellate a box: each cell joins a face, with a vertex in its middle, to the projection of
    the face on the medial axis."""
    least = float(np.min(half))
    inner = half - least
    inner[inner <= ROUNDING * max(1.0, float(np.max(half)))] = 0.0
    cells = _Cells()
    middles = {}
    for axis in range(3):
        for side in (-1.0, 1.0):
            place = np.zeros(3)
            place[axis] = side * half[axis]
            middles[axis, side] = cells.point(place, 0.0)
    corners, images = {}, {}
    known: dict[tuple[float, ...], int] = {}
    for signs in [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]:
        corners[signs] = cells.point(np.array(signs) * half, 0.0)
        image = tuple((np.array(signs) * inner + 0.0).tolist())
        if image not in known:
            known[image] = cells.point(image, 1.0)
        images[signs] = known[image]
    for (axis, side), middle in middles.items():
        ring = _ring(axis, side)
        outer, within = [corners[s] for s in ring], [images[s] for s in ring]
        faces = [[a, b, middle] for a, b in zip(outer, [*outer[1:], outer[0]])]
        for k in range(4):
            j = (k + 1) % 4
            faces.append([outer[k], outer[j], within[j], within[k]])
        faces.append(within)
        cells.add(faces)
    return cells.done()


def _ring(axis: int, side: float) -> list[tuple[float, float, float]]:
    """Return the signs of the corners around one face of a box."""
    around = []
    for first, second in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        signs = [0.0, 0.0, 0.0]
        signs[axis], signs[(axis + 1) % 3], signs[(axis + 2) % 3] = side, first, second
        around.append((signs[0], signs[1], signs[2]))
    return around


def _around(
    radius: float, hint: float, whole: Callable[[float], int] = math.ceil
) -> list[tuple[float, float]]:
    count = max(3, whole(2.0 * math.pi * radius / hint))
    if count > _MOST_AROUND:
        count = _MOST_AROUND
        _warn_of_hint(hint, 2.0 * math.pi * radius / count)
    angles = 2.0 * math.pi * np.arange(count) / count
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


def cylinder(radius: float, half: float, hint: float) -> Tessellation:
    """Tessellate a cylinder about the z axis: sectors of the caps and of the barrel.

    The sectors meet inside on a segment of the axis, in a point or on a disc.
    """
    same = ROUNDING * max(1.0, radius, half)
    long = half > radius + same
    disc = radius - half if radius > half + same else 0.0
    cells = _Cells()
    ring = _around(radius, hint)
    if disc:
        top = bottom = cells.point((0.0, 0.0, 0.0), 1.0)
        inner = [cells.point((x * disc / radius, y * disc / radius, 0.0), 1.0) for x, y in ring]
        inner_top = inner_bottom = inner
    else:
        top = cells.point((0.0, 0.0, half - radius if long else 0.0), 1.0)
        bottom = cells.point((0.0, 0.0, radius - half), 1.0) if long else top
        inner_top, inner_bottom = [top] * len(ring), [bottom] * len(ring)
    cap_top, cap_bottom = cells.point((0.0, 0.0, half), 0.0), cells.point((0.0, 0.0, -half), 0.0)
    upper = [cells.point((x, y, half), 0.0) for x, y in ring]
    lower = [cells.point((x, y, -half), 0.0) for x, y in ring]
    for i in range(len(ring)):
        j = (i + 1) % len(ring)
        _wedge(cells, (top, inner_top[i], inner_top[j]), (cap_top, upper[i], upper[j]))
        _wedge(cells, (bottom, inner_bottom[i], inner_bottom[j]), (cap_bottom, lower[i], lower[j]))
        if long:
            _barrel(cells, top, bottom, upper, lower, i, j)
        else:
            a, b = inner_top[i], inner_top[j]
            _wedge(cells, (a, lower[i], upper[i]), (b, lower[j], upper[j]))
    return cells.done()


def _wedge(cells: _Cells, a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    """Add a prism between two triangles, which may share corners."""
    sides = [[a[k], a[(k + 1) % 3], b[(k + 1) % 3], b[k]] for k in range(3)]
    cells.add([list(a), list(b), *sides])


def _barrel(
    cells: _Cells, top: int, bottom: int, upper: list[int], lower: list[int], i: int, j: int
) -> None:
    _wedge(cells, (top, upper[i], upper[j]), (bottom, lower[i], lower[j]))


def capsule(radius: float, half: float, hint: float) -> Tessellation:
    """Tessellate a capsule about the z axis: sectors that meet on the axis between the centres of the caps.

    As in Drake, the number of sectors is rounded down.
    """
    cells = _Cells()
    top, bottom = cells.point((0.0, 0.0, half), 1.0), cells.point((0.0, 0.0, -half), 1.0)
    circle = _around(radius, hint, math.floor)
    count = len(circle)
    circles = max(count // 2, 1)
    poles = [
        cells.point((0.0, 0.0, half + radius), 0.0),
        cells.point((0.0, 0.0, -half - radius), 0.0),
    ]
    caps = []
    for side in (1.0, -1.0):
        rings = []
        for k in range(circles):
            polar = 0.5 * math.pi * (k + 1) / circles
            height = side * (half + radius * (math.cos(polar) if k + 1 < circles else 0.0))
            rings.append(
                [
                    cells.point((x * math.sin(polar), y * math.sin(polar), height), 0.0)
                    for x, y in circle
                ]
            )
        caps.append(rings)
    for i in range(count):
        j = (i + 1) % count
        for apex, pole, rings in zip((top, bottom), poles, caps):
            _wedge(cells, (apex, apex, apex), (pole, rings[0][i], rings[0][j]))
            for above, below in pairwise(rings):
                quad = [above[i], above[j], below[j], below[i]]
                sides = [[a, b, apex] for a, b in zip(quad, [*quad[1:], quad[0]])]
                cells.add([quad, *sides])
        _barrel(cells, top, bottom, caps[0][-1], caps[1][-1], i, j)
    return cells.done()


def hull(points: Array, triangles: Indices) -> Tessellation:
    """Tessellate a closed convex surface (triangles anticlockwise from outside) from the centroid of its volume."""
    corners = points[triangles]
    volumes = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    centre = (volumes[:, None] * corners.sum(axis=1)).sum(axis=0) / (4.0 * volumes.sum())
    tetrahedra = np.column_stack([np.full(len(triangles), len(points)), triangles])
    depth = np.r_[np.zeros(len(points)), 1.0]
    return np.vstack([points, centre]), tetrahedra.astype(np.int32), depth


def surface_of(tetrahedra: Indices) -> Indices:
    """Return the triangles that belong to only one tetrahedron, anticlockwise seen from outside."""
    faces = tetrahedra[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    return np.asarray(faces[first[count == 1]])


def is_closed(points: Array, triangles: Indices) -> bool:
    """Return whether every edge occurs equally often in both directions; coincident points count as one."""
    _, same = np.unique(points, axis=0, return_inverse=True)
    corners = same.reshape(-1)[triangles]
    edges = corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    _, index = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    ways = np.bincount(index.reshape(-1), weights=np.sign(edges[:, 1] - edges[:, 0]))
    return not ways.any()


def outward(points: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return the triangles of a closed surface, anticlockwise seen from outside, without those of zero area.

    Coincident points count as one. No triangles if the surface has a rim or is not consistently
    oriented.
    """
    places, same = np.unique(points, axis=0, return_inverse=True)
    faces = same.reshape(-1)[triangles].astype(np.int32)
    if not is_closed(places, faces):
        return places, faces[:0]
    a, b = np.swapaxes(places[faces[:, 1:]] - places[faces[:, :1]], 0, 1)
    areas = np.linalg.norm(np.cross(a, b), axis=1)
    faces = faces[areas > _FLAT * np.maximum((a**2).sum(axis=1), (b**2).sum(axis=1))]
    corners = places[faces] - places.mean(axis=0)
    return places, faces if np.linalg.det(corners).sum() >= 0.0 else faces[:, ::-1]
