"""The surface of a shape as triangles, and lines on it that show its rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import Geom
from qdsim.model import Model
from qdsim.planning.drawing.style import STYLE
from qdsim.viewer.needs import need

__all__ = ["Surface", "bar", "disc", "flat_bar", "surface_of", "thinned"]

_SHARP = math.radians(25.0)
"""An edge of a mesh is drawn if its faces meet at more than this angle."""

_MOST_ROWS = 256
"""Largest number of rows and columns of a height field that are drawn."""

_MOST_EDGES = 4000
"""The edges of meshes with more sharp edges than this are not drawn."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A shape in its geometry's frame.

    Attributes:
        vertices: ``(n, 3)`` m.
        faces: Indices ``(m, 3)``, anticlockwise seen from outside; none for a cloud.
        lines: ``(k, 2, 3)`` m: edges of flat faces, great circles of round ones.
        flat: Whether faces are flat-shaded.
    """

    vertices: Array
    faces: npt.NDArray[np.uint32]
    lines: Array
    flat: bool


def surface_of(model: Model, geom: Geom, size: Array, reach: float) -> Surface:
    """Return the surface of a geometry; planes are squares of half width ``reach`` (m), clouds are points."""
    if geom.type in ("mesh", "cloud"):
        return _points(geom) if geom.type == "cloud" else _mesh(model, geom)
    if geom.hfield is not None:
        vertices, triangles = geom.hfield.triangles(_MOST_ROWS)
        return Surface(vertices, triangles.astype(np.uint32), np.zeros((0, 2, 3)), True)
    creation = need("trimesh").creation
    if geom.type == "plane":
        corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        faces = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.uint32)
        return Surface(reach * corners, faces, np.zeros((0, 2, 3)), True)
    if geom.type == "box":
        return _of(creation.box(2.0 * size), _box_edges(size), flat=True)
    if geom.type == "capsule":
        made = creation.capsule(
            2.0 * size[1], size[0], count=(STYLE.around // 2, STYLE.around // 2)
        )
        return _of(made, _capsule_lines(size[0], size[1]), flat=False)
    if geom.type == "cylinder":
        made = creation.cylinder(size[0], 2.0 * size[1], sections=STYLE.around)
        return _of(made, _cylinder_lines(size[0], size[1]), flat=True)
    radii = np.full(3, size[0]) if geom.type == "sphere" else size
    # Rings and meridians lie along the axes, where the shades meet.
    ball = creation.uv_sphere(1.0, count=(25, STYLE.around))
    circles = np.concatenate([_circle(axis) for axis in range(3)])
    return Surface(ball.vertices * radii, _faces(ball), circles * radii, False)


def bar(start: Array, end: Array, radius: float) -> Surface:
    """Return a capsule from one point to another."""
    along = end - start
    length = float(np.linalg.norm(along))
    made = need("trimesh").creation.capsule(length, radius, count=(16, 24))
    turned = (made.vertices - [0.0, 0.0, 0.5 * length]) @ _frame(along / length).T
    # The origin of trimesh's capsule is its middle or its end, depending on the version.
    middle = 0.5 * (turned.min(axis=0) + turned.max(axis=0))
    return Surface(turned - middle + 0.5 * (start + end), _faces(made), np.zeros((0, 2, 3)), False)


def disc(centre: Array, radius: float, half: float, normal: Array) -> Surface:
    """Return a disc of thickness 2 ``half``, with a spoke and a rim that show its rotation."""
    made = need("trimesh").creation.cylinder(radius, 2.0 * half, sections=2 * STYLE.around)
    turn = _frame(normal)
    top = np.array([0.0, 0.0, half])
    rim = _circle(2) * [radius, radius, 0.0] + top
    spoke = np.array([[top, top + [0.0, radius, 0.0]]])
    lines = np.concatenate([rim, spoke]) @ turn.T + centre
    return Surface(made.vertices @ turn.T + centre, _faces(made), lines, True)


def flat_bar(start: Array, end: Array, radius: float, half: float, normal: Array) -> Surface:
    """Return the rounded bar that a disc sweeps from one point to another."""
    along = end - start
    side = np.cross(normal, along / np.linalg.norm(along))
    forward = np.cross(side, normal)
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, STYLE.around // 2 + 1)[:, None]
    cap = radius * (np.cos(angle) * forward + np.sin(angle) * side)
    outline = np.concatenate([end + cap, start - cap])
    n = len(outline)
    vertices = np.concatenate([outline + half * normal, outline - half * normal])
    k = np.arange(n)
    after = (k + 1) % n
    walls = [[k, n + k, after], [after, n + k, n + after]]
    fan = np.arange(1, n - 1)
    caps = [[np.zeros_like(fan), fan, fan + 1], [n + np.zeros_like(fan), n + fan + 1, n + fan]]
    faces = np.concatenate([np.array(part).T for part in walls + caps]).astype(np.uint32)
    return Surface(vertices, faces, np.zeros((0, 2, 3)), True)


def thinned(surface: Surface, cells: int) -> Surface:
    """Return a surface with fewer triangles.

    Vertices in the same cell of a grid are merged; the longest side has ``cells`` cells.
    """
    low = surface.vertices.min(axis=0)
    width = max(float(np.ptp(surface.vertices, axis=0).max()) / cells, 1e-12)
    cell = np.round((surface.vertices - low) / width).astype(np.int64)
    _, first, where = np.unique(cell, axis=0, return_index=True, return_inverse=True)
    faces = where.reshape(-1)[surface.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return Surface(surface.vertices[first], faces.astype(np.uint32), surface.lines, surface.flat)


def _frame(axis: Array) -> Array:
    """Return a rotation ``(3, 3)`` whose last column is a given unit vector."""
    helper = np.array([1.0, 0.0, 0.0] if abs(axis[0]) < 0.9 else [0.0, 1.0, 0.0])
    first = helper - (helper @ axis) * axis
    first /= np.linalg.norm(first)
    return np.asarray(np.array([first, np.cross(axis, first), axis]).T)


def _of(mesh: Any, lines: Array, *, flat: bool) -> Surface:
    return Surface(np.asarray(mesh.vertices), _faces(mesh), lines, flat)


def _faces(mesh: Any) -> npt.NDArray[np.uint32]:
    return np.asarray(mesh.faces, dtype=np.uint32)


def _points(geom: Geom) -> Surface:
    assert geom.cloud is not None
    none = np.zeros((0, 3), dtype=np.uint32)
    return Surface(np.asarray(geom.cloud.points), none, np.zeros((0, 2, 3)), True)


def _mesh(model: Model, geom: Geom) -> Surface:
    """Return the mesh as the file gives it; for collisions its convex hull is used."""
    mesh = next(m for m in model.description.meshes if m.name == geom.mesh)
    faces = mesh.faces if len(mesh.faces) else mesh.hull_faces
    made = need("trimesh").Trimesh(mesh.vertices, faces, process=True)
    sharp = made.face_adjacency_edges[made.face_adjacency_angles > _SHARP]
    lines = made.vertices[sharp] if len(sharp) <= _MOST_EDGES else np.zeros((0, 2, 3))
    return _of(made, np.asarray(lines).reshape(-1, 2, 3), flat=True)


def _circle(axis: int, height: float = 0.0) -> Array:
    """Return the unit circle about an axis, at a height along it, as segments."""
    angle = np.linspace(0.0, 2.0 * math.pi, STYLE.around + 1)
    points = np.empty((STYLE.around + 1, 3))
    points[:, axis] = height
    points[:, (axis + 1) % 3] = np.cos(angle)
    points[:, (axis + 2) % 3] = np.sin(angle)
    return np.stack([points[:-1], points[1:]], axis=1)


def _box_edges(size: Array) -> Array:
    signs = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)]
    edges = []
    for axis in range(3):
        for first, second in signs:
            ends = np.empty((2, 3))
            ends[:, axis] = -1.0, 1.0
            ends[:, (axis + 1) % 3], ends[:, (axis + 2) % 3] = first, second
            edges.append(ends * size)
    return np.array(edges)


def _cylinder_lines(radius: float, half: float) -> Array:
    scale = np.array([radius, radius, half])
    rings = np.concatenate([_circle(2, -1.0), _circle(2, 1.0)]) * scale
    return np.concatenate([rings, _sides(radius, half)])


def _capsule_lines(radius: float, half: float) -> Array:
    """Return the circles where the caps begin, and lines along the cylinder and over the caps."""
    arcs = np.concatenate([_circle(0), _circle(1)]) * radius
    above = arcs.mean(axis=1)[:, 2] > 0.0
    arcs[above, :, 2] += half
    arcs[~above, :, 2] -= half
    return np.concatenate([arcs, _cylinder_lines(radius, half)])


def _sides(radius: float, half: float) -> Array:
    around = [(radius, 0.0), (0.0, radius), (-radius, 0.0), (0.0, -radius)]
    return np.array([[[x, y, -half], [x, y, half]] for x, y in around])
