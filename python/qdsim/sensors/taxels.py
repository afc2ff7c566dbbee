"""Arrays of taxels: grids on geometries, and the pressures on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance, integer, number, one_of
from qdsim.array_type import Array
from qdsim.contact_surfaces import pressure_surface
from qdsim.description.sensors import SITE_SHAPES, TaxelSensor
from qdsim.description.shapes import GEOM_SIZES, Geom, Mesh
from qdsim.model import Model
from qdsim.sensors.loads import Loads, Poses, local
from qdsim.sensors.volumes import crossing, surface_normal

__all__ = ["read_taxels", "taxel_grid"]

SIDES = ("+x", "-x", "+y", "-y", "+z", "-z")


def read_taxels(model: Model, sensor: TaxelSensor, loads: Loads, poses: Poses) -> Array:
    """Return pressures (steps, n, 3), Pa: into the surface, along the first and along the second tangent."""
    index = model.geom_index(sensor.geom)
    geom, body = model.description.geoms[index], int(model.geom_body[index])
    loads = loads.of((loads.rows["geom_b"] == index) | (loads.rows["geom_a"] == index))
    sign = np.where(loads.rows["geom_b"] == index, 1.0, -1.0)
    row, point, share = _pressed(model, poses.q, loads)
    pos, rot = poses.frame(body, geom.pos, geom.quat)
    sample = loads.sample[row]
    back = np.swapaxes(rot, 1, 2)[sample]
    place = local((pos, rot), sample, point)
    force = (sign[row] * share)[:, None] * (back @ loads.force[row][:, :, None])[..., 0]
    total = np.zeros((loads.count, len(sensor.points), 3))
    np.add.at(total, sample, _shares(sensor, place)[:, :, None] * force[:, None, :])
    axes = np.stack((-sensor.normals, *sensor.tangents), axis=1)
    return (axes @ total[..., None])[..., 0] / sensor.area[:, None]


def _pressed(model: Model, q: Array, loads: Loads) -> tuple[npt.NDArray[np.intp], Array, Array]:
    """Return the points at which contacts press: the contact (k), the point (k, 3) and its share of
    the force (k).

    The force of a contact between soft geometries is distributed over the polygons of its patch, in
    proportion to their pressure forces. Other contacts press at their own position.
    """
    rows = loads.rows
    alone = np.arange(len(rows))
    parts = [(alone, rows["pos"], np.ones(len(rows)))]
    for sample in np.unique(loads.sample).tolist() if model.soft_pair_count else ():
        for surface in pressure_surface(model, q[sample]):
            found = np.flatnonzero((loads.sample == sample) & (rows["pair"] == surface.pair))
            force = surface.polygons["area"] * surface.polygons["pressure"]
            if not force.sum() > 0.0:
                continue
            parts[0][2][found] = 0.0
            for i in found.tolist():
                parts.append(
                    (np.full(len(force), i), surface.polygons["centre"], force / force.sum())
                )
    row, point, share = (np.concatenate(one) for one in zip(*parts, strict=True))
    return row, point, share


def _shares(sensor: TaxelSensor, place: Array) -> Array:
    """Return the weights (contacts, n) of the taxels; they sum to one for each contact."""
    distance = np.linalg.norm(place[:, None] - sensor.points, axis=2)
    weight = np.maximum(1.0 - np.square(distance / sensor.reach), 0.0)
    lost = ~weight.any(axis=1)
    weight[lost, np.argmin(distance[lost], axis=1)] = 1.0
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def taxel_grid(
    model: Model,
    geom: str,
    rows: int,
    columns: int,
    *,
    side: str = "+z",
    size: Any = None,
    reach: float | None = None,
    name: str | None = None,
) -> TaxelSensor:
    """Create a grid of taxels on a side of a geometry.

    A rectangle parallel to two axes of the geometry's frame is divided evenly, and each cell's
    centre is moved along the third axis onto the surface.

    Args:
        model: the model.
        geom: name of the geometry: sphere, ellipsoid, capsule, cylinder, box or mesh (its convex
            hull).
        rows, columns: numbers of taxels, >= 1. The index of a taxel is ``row * columns + column``;
            columns go along the first of the two axes (x, or y on the sides of x), rows along the
            second.
        side: "+x", "-x", "+y", "-y", "+z" or "-z" in the geometry's frame.
        size: (2) m, of the rectangle along columns and rows, centred on that side; None: the whole
            side of a box; for other shapes the extents divided by the root of two.
        reach: m, as in `TaxelSensor`; None: the diagonal of a cell.
        name: of the sensor; None: that of the geometry.

    Returns:
        The sensor, whose areas are those of the surface in each cell, to first order.

    Raises:
        TypeError, ValueError, KeyError: if an argument is invalid (the message names it), or a
            cell's centre is not above the geometry.
    """
    instance("model", model, Model)
    item = model.description.geoms[model.geom_index(geom)]
    if item.type not in (*SITE_SHAPES, "mesh"):
        raise ValueError(f"geom: {geom!r} is a {item.type}, which does not support a grid")
    count = (integer("columns", columns, least=1), integer("rows", rows, least=1))
    axis = SIDES.index(one_of("side", side, SIDES)) // 2
    sign = 1.0 if side[0] == "+" else -1.0
    flat = [i for i in range(3) if i != axis]
    low, high = _extents(model, item)
    given = _size(size, (high - low)[flat] / (1.0 if item.type == "box" else np.sqrt(2.0)))
    middle = 0.5 * (low + high)[flat]
    steps = [(np.arange(n) + 0.5) / n - 0.5 for n in count]
    across, along = np.meshgrid(given[0] * steps[0], given[1] * steps[1])
    start = np.zeros((across.size, 3))
    start[:, flat] = middle + np.stack((across.ravel(), along.ravel()), axis=1)
    inward = np.zeros(3)
    inward[axis] = -sign
    points, normals = _on_surface(model, item, start, inward)
    beside = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if beside.size:
        row, column = divmod(int(beside[0]), count[0])
        raise ValueError(
            f"size: {beside.size} taxels, the first in row {row}, column {column}, are beside {geom!r}; the rectangle is "
            f"{given[0]:g} by {given[1]:g} m"
        )
    cell = given / count
    toward = np.zeros(3)
    toward[flat[0]] = 1.0
    return TaxelSensor(
        name or geom,
        geom,
        points,
        normals,
        cell.prod() / np.abs(normals[:, axis]),
        float(np.hypot(*cell)) if reach is None else number("reach", reach, above=0),
        tuple(toward),
    )


def _size(size: Any, default: Array) -> Array:
    if size is None:
        return default
    given = np.array(size, dtype=float)
    if given.shape != (2,) or not (np.isfinite(given) & (given > 0.0)).all():
        raise ValueError(f"size: expected two positive numbers, got {size!r}")
    return given


def _extents(model: Model, geom: Geom) -> tuple[Array, Array]:
    """Return the lower and upper corner (3) of a box about the geometry, in its frame."""
    if geom.type == "mesh":
        vertices = _mesh(model, geom).vertices
        return vertices.min(axis=0), vertices.max(axis=0)
    size = geom.size[: GEOM_SIZES[geom.type]]
    if geom.type in ("capsule", "cylinder"):
        size = (size[0], size[0], size[1] + (size[0] if geom.type == "capsule" else 0.0))
    upper = np.broadcast_to(np.asarray(size, dtype=float), 3)
    return -upper, upper


def _on_surface(model: Model, geom: Geom, start: Array, inward: Array) -> tuple[Array, Array]:
    """Return the points (n, 3) where lines through ``start`` enter the geometry, and the normals there.

    The result is not finite for lines that miss the geometry.
    """
    along = np.broadcast_to(inward, start.shape)
    if geom.type == "mesh":
        first, normals = _into_hull(_mesh(model, geom), start, inward)
    else:
        size = geom.size[: GEOM_SIZES[geom.type]]
        first, _ = crossing(geom.type, size, start, along)
        with np.errstate(invalid="ignore"):
            normals = surface_normal(geom.type, size, start + first[:, None] * along)
    with np.errstate(invalid="ignore"):
        return start + first[:, None] * along, normals


def _into_hull(mesh: Mesh, start: Array, inward: Array) -> tuple[Array, Array]:
    """Return the parameters (n) at which lines enter a convex hull, inf if they miss it, and the
    normals of the faces there.

    The hull is treated as an intersection of half spaces.
    """
    a, b, c = (mesh.vertices[mesh.hull_faces[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    height, slope = np.sum(normal * a, axis=1) - start @ normal.T, normal @ inward
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = height / slope
    first = np.where(slope < 0.0, crossed, -np.inf)
    last = np.where(
        slope > 0.0, crossed, np.where((slope == 0.0) & (height < 0.0), -np.inf, np.inf)
    )
    face, found = np.argmax(first, axis=1), first.max(axis=1)
    return np.where(found > last.min(axis=1), np.inf, found), normal[face]


def _mesh(model: Model, geom: Geom) -> Mesh:
    return next(mesh for mesh in model.description.meshes if mesh.name == geom.mesh)
