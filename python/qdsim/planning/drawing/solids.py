"""The surfaces of a model's shapes as flat faces, for pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from qdsim.array_type import ROUNDING, Array
from qdsim.description import Geom, HeightField
from qdsim.description.arrays import rotation_matrix
from qdsim.description.hulls import hull_faces
from qdsim.model import Model
from qdsim.planning.drawing.colours import colour_of, is_shown, says_colour
from qdsim.planning.drawing.links import Link
from qdsim.planning.drawing.style import STYLE

__all__ = ["Solid", "link_solids", "solids_of"]

_MOST_CORNERS = 120
"""Largest number of corners of a drawn hull. Of larger hulls, the corners that lie farthest in
evenly distributed directions are kept."""

_MOST_ROWS = 24
"""Largest number of rows and columns of a height field that are drawn."""

Indices = npt.NDArray[np.int64]

Mesh = tuple[Array, list[list[int]], list[int]]
"""Corners, faces of three or four corners (anticlockwise from outside), and the index 0 or 1 of
each face's colour."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex shape of a body, in the body's coordinates.

    Attributes:
        body: index of the body.
        corners: ``(n, 3)`` m.
        faces: ``(m, 4)`` indices of corners, anticlockwise seen from outside; triangles repeat the
            last one.
        normals: ``(m, 3)`` of length 1.
        areas: ``(m,)`` m^2.
        patches: ``(m,)`` which of the two colours each face has.
        frame: ``(3, 3)`` axes of the shape as columns.
        centre: ``(3,)`` centre of the bounding box along these axes, m.
        half: ``(3,)`` half lengths of that box, m.
        square: whether the shape is that box; else the ellipsoid inside approximates it.
        colour: red, green and blue of the file, 0 to 1; None: none.
    """

    body: int
    corners: Array
    faces: Indices
    normals: Array
    areas: Array
    patches: Indices
    frame: Array
    centre: Array
    half: Array
    square: bool
    colour: tuple[float, float, float] | None = None


def solids_of(model: Model, fine: list[bool], geometry: str = "visual") -> list[Solid]:
    """Return the drawn shapes of a model (:func:`.colours.is_shown`) except planes, in the order of
    its geometries.

    Boxes of bodies that are ``fine`` have their faces divided into tiles no larger than the
    smallest shapes, so that sorting by depth is correct.
    """
    sizes = model.parameters.geom_size.max(axis=1)
    drawn = sizes[sizes > STYLE.corner]
    tile = 2.0 * float(np.quantile(drawn, 0.1)) if len(drawn) else math.inf
    paired = {n for pair in model.description.pairs for n in (pair.geom_a, pair.geom_b)}
    result = []
    index = 0
    for b, body in enumerate(model.description.bodies):
        for geom in body.geoms:
            size = model.parameters.geom_size[index]
            index += 1
            if not is_shown(geom, body, paired, geometry):
                continue
            if geom.hfield is not None:
                made: Mesh | None = _field_mesh(geom.hfield)
            elif geom.type in ("mesh", "cloud"):
                made = _hull_mesh(model, geom)
            else:
                made = _mesh(geom.type, size, tile if fine[b] else math.inf)
            if made is not None:
                solid = _solid(b, geom, made)
                if says_colour(geom):
                    red, green, blue, _ = colour_of(geom, (), {}, b)
                    solid = replace(solid, colour=(red, green, blue))
                result.append(solid)
    return result


def link_solids(links: Sequence[Link]) -> list[Solid]:
    """Return links as capsules."""
    result = []
    for link in links:
        along = link.end - link.start
        length = float(np.linalg.norm(along))
        axis = along / length
        helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
        first = np.cross(helper, axis) / np.linalg.norm(np.cross(helper, axis))
        frame = np.array([first, np.cross(axis, first), axis]).T
        mesh = _surface(np.full(3, link.radius), 0.5 * length, 16, 10)
        result.append(_placed(link.body, frame, 0.5 * (link.start + link.end), mesh, False))
    return result


def _solid(body: int, geom: Geom, mesh: Mesh) -> Solid:
    place = np.asarray(geom.pos, dtype=np.float64)
    return _placed(body, rotation_matrix(geom.quat), place, mesh, geom.type == "box")


def _placed(body: int, frame: Array, place: Array, mesh: Mesh, square: bool) -> Solid:
    own, polygons, patches = mesh
    corners = own @ frame.T + place
    faces = np.array([[*polygon, polygon[-1]][:4] for polygon in polygons])
    p = corners[faces]
    # Half the cross product of the diagonals; this also holds for triangles.
    normals = 0.5 * np.cross(p[:, 2] - p[:, 0], p[:, 3] - p[:, 1])
    areas = np.linalg.norm(normals, axis=1)
    kept = areas > 0.0
    low, high = own.min(axis=0), own.max(axis=0)
    return Solid(
        body,
        corners,
        faces[kept],
        normals[kept] / areas[kept, None],
        areas[kept],
        np.array(patches)[kept],
        frame,
        place + frame @ (0.5 * (low + high)),
        0.5 * (high - low),
        square,
    )


def _mesh(kind: str, size: Array, tile: float) -> Mesh | None:
    """Return a shape's surface as flat faces; faces of boxes are at most a tile (m) long if this
    takes few of them."""
    if kind == "box":
        return _box(size, tile)
    large = float(np.max(size)) > tile
    across, up = (28, 16) if large else (16, 10)
    if kind == "sphere":
        return None if size[0] <= STYLE.corner else _surface(np.full(3, size[0]), 0.0, across, up)
    if kind == "ellipsoid":
        return _surface(np.asarray(size), 0.0, across, up)
    if kind == "capsule":
        return _surface(np.full(3, size[0]), float(size[1]), across, up)
    if kind == "cylinder":
        return _prism(float(size[0]), float(size[1]), 40 if large else 20)
    return None


def _field_mesh(field: HeightField) -> Mesh:
    """Return a height field's surface and sides in one colour."""
    corners, triangles = field.triangles(_MOST_ROWS)
    return corners, triangles.tolist(), [0] * len(triangles)


def _hull_mesh(model: Model, geom: Geom) -> Mesh | None:
    """Return the convex hull of a mesh or of a cloud's points, with a different colour on either
    side of its middle."""
    if geom.cloud is not None:
        points = np.asarray(geom.cloud.points)
        try:
            faces = hull_faces(f"geom {geom.name!r}", points)
        except ValueError:  # points in a plane
            return None
    else:
        mesh = next(m for m in model.description.meshes if m.name == geom.mesh)
        points, faces = mesh.vertices, mesh.hull_faces
    used, triangles = np.unique(faces, return_inverse=True)
    corners, triangles = points[used], triangles.reshape(faces.shape)
    if len(corners) > _MOST_CORNERS:
        corners, triangles = _coarse(corners, triangles)
    side = corners[triangles].mean(axis=1)[:, 0] > corners.mean(axis=0)[0]
    return corners, triangles.tolist(), side.astype(int).tolist()


def _coarse(corners: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return a hull with fewer corners inside a hull, or the hull itself if the remaining corners
    lie in a plane."""
    order = np.arange(_MOST_CORNERS) + 0.5
    height, angle = 1.0 - 2.0 * order / _MOST_CORNERS, math.pi * (1.0 + math.sqrt(5.0)) * order
    ring = np.sqrt(1.0 - height**2)
    directions = np.array([ring * np.cos(angle), ring * np.sin(angle), height])
    # Thin shapes would keep few corners, so directions are measured in units of the widths along
    # the axes.
    kept = np.unique(np.argmax(corners / np.ptp(corners, axis=0) @ directions, axis=0))
    try:
        faces = hull_faces("hull", corners[kept])
    except ValueError:
        return corners, triangles
    return corners[kept], faces.astype(np.int64)


def _box(size: Array, tile: float, most: int = 16) -> Mesh:
    points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
    sides = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    corners: list[Array] = []
    polygons, patches = [], []
    for side, patch in zip(sides, [0, 0, 1, 1, 0, 1]):
        origin, first, last = points[side[0]], points[side[1]], points[side[3]]
        along, up = first - origin, last - origin
        n, m = (
            int(np.clip(math.ceil(float(np.linalg.norm(e)) / tile), 1, most)) for e in (along, up)
        )
        for i in range(n):
            for j in range(m):
                tiles = ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
                polygons.append(list(range(len(corners), len(corners) + 4)))
                corners += [origin + s / n * along + t / m * up for s, t in tiles]
                patches.append(patch)
    return np.array(corners), polygons, patches


def _surface(radii: Array, half: float, across: int, up: int) -> Mesh:
    """Return an ellipsoid whose upper and lower halves are each moved ``half`` away from the middle."""
    polar = np.linspace(0.0, math.pi, up + 1)
    round_ = np.arange(across) * (2.0 * math.pi / across)
    corners = np.array(
        [
            [math.sin(t) * math.cos(p), math.sin(t) * math.sin(p), math.cos(t)]
            for t in polar
            for p in round_
        ]
    )
    corners = corners * radii
    corners[:, 2] += np.where(np.repeat(polar, across) < math.pi / 2 + ROUNDING, half, -half)
    polygons, patches = [], []
    for i in range(up):
        for j in range(across):
            k = (j + 1) % across
            a, b = i * across, (i + 1) * across
            ring = [a + j, b + j, b + k, a + k]
            polygons.append(ring)
            patches.append((i * 2 // up + j * 4 // across) % 2)
    return corners, polygons, patches


def _prism(radius: float, half: float, across: int) -> Mesh:
    angle = np.arange(across) * (2.0 * math.pi / across)
    ring = radius * np.array([np.cos(angle), np.sin(angle), np.zeros(across)]).T
    corners = np.vstack([ring - [0, 0, half], ring + [0, 0, half]])
    sides = [[j, (j + 1) % across, across + (j + 1) % across, across + j] for j in range(across)]
    quads = [[0, j, j + 1, j + 2] for j in range(1, across - 2, 2)]
    caps = [quad[::-1] for quad in quads] + [[across + j for j in quad] for quad in quads]
    return corners, sides + caps, [j * 4 // across % 2 for j in range(across)] + [0] * len(caps)
