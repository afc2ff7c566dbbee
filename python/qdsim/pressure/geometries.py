"""The pressure fields and rigid surfaces of a scene's geometries, as arrays of ``qd_model_spec``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import SAME, Array
from qdsim.description.elements import Elements, ModelWarning
from qdsim.description.shapes import Geom, Mesh
from qdsim.description.softness import FieldArrays
from qdsim.pressure import tessellation
from qdsim.pressure.tessellation import Indices

__all__ = ["field_arrays"]

_SOFT, _RIGID, _SOFT_SPACE, _RIGID_SPACE = range(4)
_Field = tuple[int, float, Array, Indices, Array]


def _none(geoms: int) -> dict[str, npt.NDArray[Any]]:
    return {
        "geom_field": np.full(geoms, -1, dtype=np.int32),
        "geom_modulus": np.zeros(geoms),
        "geom_dissipation": np.zeros(geoms),
        "field_kind": np.zeros(0, dtype=np.int32),
        "field_slope": np.zeros(0),
        "field_vertex_count": np.zeros(0, dtype=np.int32),
        "field_element_count": np.zeros(0, dtype=np.int32),
        "field_vertex": np.zeros((0, 3)),
        "field_pressure": np.zeros(0),
        "field_index": np.zeros(0, dtype=np.int32),
    }


def field_arrays(description: Elements, pair_geom: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the fields of the soft geometries, and the surfaces of the geometries that can touch
    them; equal ones are stored once."""
    geoms = description.geoms
    arrays = _none(len(geoms))
    soft = np.array([geom.soft is not None for geom in geoms], dtype=bool)
    if not soft.any():
        return arrays
    touching = pair_geom[soft[pair_geom].any(axis=1)]
    meshes = {mesh.name: mesh for mesh in description.meshes}
    index: dict[tuple[Any, ...], int] = {}
    fields: list[_Field] = []
    for i in sorted(set(touching.ravel().tolist()) | set(np.flatnonzero(soft).tolist())):
        geom = geoms[i]
        own = None if geom.soft is None else geom.soft.field
        key: tuple[Any, ...] = (geom.type, geom.size, geom.mesh, _hint(geom), geom.soft is None)
        key += (_thickness(geom), own)
        if key not in index:
            index[key] = len(fields)
            fields.append(_field(geom, meshes))
        arrays["geom_field"][i] = index[key]
        if geom.soft is not None:
            arrays["geom_modulus"][i] = geom.soft.modulus or 0.0
            arrays["geom_dissipation"][i] = geom.soft.dissipation
    return arrays | _in_a_row(fields)


def _in_a_row(fields: list[_Field]) -> dict[str, npt.NDArray[Any]]:
    """Concatenate the arrays of all fields."""
    kinds, slopes, vertices, elements, pressures = zip(*fields, strict=True)
    return {
        "field_kind": np.array(kinds, dtype=np.int32),
        "field_slope": np.array(slopes),
        "field_vertex_count": np.array([len(item) for item in vertices], dtype=np.int32),
        "field_element_count": np.array([len(item) for item in elements], dtype=np.int32),
        "field_vertex": np.concatenate(vertices),
        "field_index": np.concatenate([item.ravel() for item in elements]),
        "field_pressure": np.concatenate(pressures),
    }


def _thickness(geom: Geom) -> float | None:
    return None if geom.soft is None else geom.soft.thickness


def _hint(geom: Geom) -> float:
    """Longest edges of round shapes, m; 0 for shapes that do not depend on them."""
    if geom.soft is not None and geom.soft.hint is not None:
        return geom.soft.hint
    if geom.type in ("plane", "mesh", "box", "cloud", "hfield"):
        return 0.0
    sizes = geom.size[: 3 if geom.type == "ellipsoid" else 1]
    return max(0.25 * min(sizes), tessellation.finest(geom.type, sizes))


def _field(geom: Geom, meshes: Mapping[str, Mesh]) -> _Field:
    """Kind, slope, vertices, elements, and the pressure of each vertex as a share of the modulus."""
    if geom.type == "plane":
        nothing = np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int32), np.zeros(0)
        thickness = _thickness(geom)
        if thickness is None:
            return _RIGID_SPACE, 0.0, *nothing
        return _SOFT_SPACE, 1.0 / thickness, *nothing
    if geom.soft is not None and geom.soft.field is not None:
        return _own_field(geom, geom.soft.field, meshes)
    if geom.type == "mesh" and geom.soft is None:
        return _rigid_mesh(meshes[geom.mesh or ""])
    points, cells, depth = _tessellation(geom, meshes)
    if geom.soft is not None:
        return _SOFT, 0.0, points, cells, depth
    used, faces = np.unique(tessellation.surface_of(cells), return_inverse=True)
    return _RIGID, 0.0, points[used], faces.reshape(-1, 3).astype(np.int32), np.zeros(len(used))


def _rigid_mesh(mesh: Mesh) -> _Field:
    """Return the triangles of a mesh if they enclose a volume, else those of its convex hull, with a warning."""
    points, faces = tessellation.outward(mesh.vertices, mesh.faces)
    if len(faces) == 0:
        warnings.warn(
            f"mesh {mesh.name!r}: its triangles enclose no volume (they have a rim, or inconsistent "
            "orientations), so soft geometries touch its convex hull",
            ModelWarning,
            stacklevel=2,
        )
        points, faces = mesh.vertices, np.asarray(mesh.hull_faces)
    used, numbers = np.unique(faces, return_inverse=True)
    triangles = numbers.reshape(-1, 3).astype(np.int32)
    return _RIGID, 0.0, points[used], triangles, np.zeros(len(used))


def _own_field(geom: Geom, field: FieldArrays, meshes: Mapping[str, Mesh]) -> _Field:
    """Return the field that was given for a geometry.

    Its shape must enclose the field, because the shape decides which pairs are in range.
    """
    points = np.asarray(field.vertices)
    beyond = _beyond(geom, points, meshes)
    worst = int(beyond.argmax())
    if beyond[worst] > SAME * np.abs(points).max():
        raise ValueError(
            f"geom {geom.name!r}: soft: vertex {worst} of the field lies {beyond[worst]:.3g} m outside of the {geom.type}"
        )
    _warn_if_inside(geom, field, meshes)
    share = np.asarray(field.pressure) / np.max(field.pressure)
    return _SOFT, 0.0, points, np.asarray(field.tetrahedra, dtype=np.int32), share


def _warn_if_inside(geom: Geom, field: FieldArrays, meshes: Mapping[str, Mesh]) -> None:
    """Warn if the field ends far inside its shape.

    Contacts of the shape limit each step to half of the field's depth, even where the field ends
    below the surface of the shape. If the field ends deeper than that, a step toward it is
    shortened.
    """
    points = np.asarray(field.vertices)[np.unique(field.tetrahedra)]
    low, high = _bounds(geom, meshes)
    below = np.r_[points.min(axis=0) - low, high - points.max(axis=0)]
    worst, depth = int(below.argmax()), _depth(field)
    if below[worst] > 0.5 * depth:
        side = "-+"[worst // 3] + "xyz"[worst % 3]
        warnings.warn(
            f"geom {geom.name!r}: soft: the field ends {below[worst]:.3g} m inside of the {geom.type} on its side "
            f"{side}, more than half of its depth ({depth:.3g} m): steps toward it are cut short; make the "
            f"{geom.type} smaller",
            ModelWarning,
            stacklevel=2,
        )


def _depth(field: FieldArrays) -> float:
    """Depth in m over which the pressure would rise from zero to its maximum at its steepest slope."""
    cells = np.asarray(field.tetrahedra)
    corners, pressure = np.asarray(field.vertices)[cells], np.asarray(field.pressure)
    edges, rises = corners[:, 1:] - corners[:, :1], pressure[cells][:, 1:] - pressure[cells][:, :1]
    slopes = np.linalg.norm(np.linalg.solve(edges, rises[..., None]), axis=(1, 2))
    return float(pressure.max() / slopes.max())


def _bounds(geom: Geom, meshes: Mapping[str, Mesh]) -> tuple[Array, Array]:
    """Smallest and largest coordinates (3) of a shape, m."""
    if geom.type == "mesh":
        vertices = meshes[geom.mesh or ""].vertices
        return vertices.min(axis=0), vertices.max(axis=0)
    r = geom.size[0]
    half = {
        "sphere": (r, r, r),
        "capsule": (r, r, r + geom.size[1]),
        "cylinder": (r, r, geom.size[1]),
    }.get(geom.type, geom.size)
    return -np.array(half), np.array(half)


def _beyond(geom: Geom, points: Array, meshes: Mapping[str, Mesh]) -> Array:
    """Compute how far points (n, 3) lie outside of a convex shape: (n,) m.

    The values are positive exactly for points outside, and are lower bounds of the distance.
    """
    size = np.array(geom.size)
    if geom.type == "mesh":
        mesh = meshes[geom.mesh or ""]
        corners = mesh.vertices[np.asarray(mesh.hull_faces)]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        heights = points @ normal.T - np.sum(normal * corners[:, 0], axis=1)
        return np.asarray(heights.max(axis=1))
    if geom.type == "box":
        return np.asarray((np.abs(points) - size).max(axis=1))
    if geom.type == "cylinder":
        aside = np.hypot(points[:, 0], points[:, 1]) - size[0]
        return np.asarray(np.maximum(aside, np.abs(points[:, 2]) - size[1]))
    if geom.type == "capsule":
        along = np.clip(points[:, 2], -size[1], size[1])
        from_axis = points - np.outer(along, [0.0, 0.0, 1.0])
        return np.asarray(np.linalg.norm(from_axis, axis=1) - size[0])
    axes = size if geom.type == "ellipsoid" else np.full(3, size[0])
    return np.asarray((np.linalg.norm(points / axes, axis=1) - 1.0) * axes.min())


def _tessellation(geom: Geom, meshes: Mapping[str, Mesh]) -> tessellation.Tessellation:
    if geom.type in ("cloud", "hfield"):
        why = "has no surface" if geom.type == "cloud" else "is not convex"
        raise ValueError(
            f"geom {geom.name!r} is a {geom.type}, which {why}, and can touch a soft geometry; exclude their bodies"
        )
    size = np.array(geom.size)
    if geom.type == "mesh":
        mesh = meshes[geom.mesh or ""]
        used, hull = np.unique(mesh.hull_faces, return_inverse=True)
        return tessellation.hull(mesh.vertices[used], hull.reshape(-1, 3).astype(np.int32))
    if geom.type == "box":
        return tessellation.box(size)
    if geom.type == "cylinder":
        return tessellation.cylinder(size[0], size[1], _hint(geom))
    if geom.type == "capsule":
        return tessellation.capsule(size[0], size[1], _hint(geom))
    if geom.type == "sphere":
        size = np.full(3, size[0])
    return tessellation.ellipsoid(size, _hint(geom))
