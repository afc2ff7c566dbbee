"""Bodies with pressure fields for tests, among them tori, corners and stars from arrays; a slow patch to judge by."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, cKDTree
from scipy.spatial.transform import Rotation

from qdsim.pressure import (
    HalfSpace,
    PressureField,
    RigidSurface,
    pressure_patch,
    tessellation,
)

HALF = 0.04
STILL = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def pose(x=(0.0, 0.0, 0.0), rotation: Rotation | None = None) -> np.ndarray:
    quaternion = [1.0, 0, 0, 0] if rotation is None else rotation.as_quat()[[3, 0, 1, 2]]
    return np.array([*x, *quaternion])


def rotation_of(here: np.ndarray) -> Rotation:
    return Rotation.from_quat(here[[4, 5, 6, 3]])


def moved(start: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Linear velocity of what is at the world's origin, and angular velocity, for one second."""
    turn = Rotation.from_rotvec(twist[3:])
    return pose(turn.apply(start[:3]) + twist[:3], turn * rotation_of(start))


def random_pose(rng: np.random.Generator, reach: float, middle=(0.0, 0.0, 0.0)) -> np.ndarray:
    return pose(np.array(middle) + reach * rng.normal(size=3), Rotation.random(random_state=rng))


def upright(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    corner = points[cells]
    inverted = np.linalg.det(corner[:, 1:] - corner[:, :1]) < 0.0
    cells = cells.copy()
    cells[inverted] = cells[inverted][:, [0, 1, 3, 2]]
    return cells


def blocks(cubes: set[tuple[int, int, int]], size: float) -> tuple[np.ndarray, np.ndarray]:
    """Cubes of a grid, six tetrahedra each."""
    index: dict[tuple[int, ...], int] = {}
    cells = []
    for cube in sorted(cubes):
        for order in itertools.permutations(range(3)):
            at = list(cube)
            cell = [index.setdefault(tuple(at), len(index))]
            for axis in order:
                at[axis] += 1
                cell.append(index.setdefault(tuple(at), len(index)))
            cells.append(cell)
    points = size * np.array(list(index), dtype=float)
    return points - points.mean(axis=0), upright(points, np.array(cells))


def surface_vertices(cells: np.ndarray) -> np.ndarray:
    return np.unique(tessellation.surface_of(cells.astype(np.int32)))


def corner(modulus: float) -> PressureField:
    """Three blocks in an L."""
    cubes = set(itertools.product(range(4), range(4), range(2))) - set(
        itertools.product(range(2, 4), range(2, 4), range(2))
    )
    points, cells = blocks(cubes, HALF)
    outside = surface_vertices(cells)
    depth = cKDTree(points[outside]).query(points)[0]
    depth[outside] = 0.0
    return PressureField(points, cells, modulus * depth / depth.max())


def grid_cube(modulus: float) -> PressureField:
    points, cells = blocks(set(itertools.product(range(4), repeat=3)), 0.5 * HALF)
    depth = np.clip(1.0 - np.abs(points).max(axis=1) / HALF, 0.0, None)
    depth[surface_vertices(cells)] = 0.0
    return PressureField(points, cells, modulus * depth)


def torus(modulus: float, radius: float = 0.06, tube: float = 0.025) -> PressureField:
    around, sides = 12, 6
    points, depth, cells = [], [], []
    for i in range(around):
        a = 2 * np.pi * i / around
        points.append([radius * np.cos(a), radius * np.sin(a), 0.0])
        depth.append(1.0)
        for j in range(sides):
            b = 2 * np.pi * j / sides
            r = radius + tube * np.cos(b)
            points.append([r * np.cos(a), r * np.sin(a), tube * np.sin(b)])
            depth.append(0.0)
        here, there = i * (sides + 1), (i + 1) % around * (sides + 1)
        for j in range(sides):
            p, q, r = sorted([0, 1 + j, 1 + (j + 1) % sides])
            cells += [
                [here + p, here + q, here + r, there + r],
                [here + p, here + q, there + q, there + r],
                [here + p, there + p, there + q, there + r],
            ]
    x = np.array(points)
    return PressureField(x, upright(x, np.array(cells)), modulus * np.array(depth))


def star(modulus: float) -> PressureField:
    """A ragged one: points of a ball at random distances from its centre."""
    points, triangles = tessellation._octahedron(1)
    lengths = 0.05 * np.random.default_rng(0).uniform(0.6, 1.4, size=(len(points), 1))
    x = np.vstack([np.zeros(3), lengths * points])
    cells = np.column_stack([np.zeros(len(triangles), dtype=int), triangles + 1])
    return PressureField(x, upright(x, cells), np.r_[modulus, np.zeros(len(points))])


def hull_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its triangles, anticlockwise from outside."""
    hull = ConvexHull(points)
    triangles = hull.simplices.copy()
    a, b, c = points[triangles].transpose(1, 0, 2)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return points, triangles


def stone(modulus: float) -> PressureField:
    points = np.random.default_rng(3).normal(size=(12, 3))
    points *= 0.05 / np.linalg.norm(points, axis=1, keepdims=True)
    return PressureField.convex_mesh(*hull_of(points), modulus)


def soft_bodies(modulus: float) -> dict[str, PressureField]:
    """Few tetrahedra each, and sizes that fit each other."""
    cube = np.array(list(itertools.product((-HALF, HALF), repeat=3)))
    return {
        "sphere": PressureField.sphere(HALF, modulus, hint=0.03),
        "ellipsoid": PressureField.ellipsoid([0.03, 0.05, 0.06], modulus, hint=0.04),
        "cube": PressureField.box([HALF] * 3, modulus),
        "small cube": PressureField.box([HALF / 2] * 3, modulus),
        "stiff cube": PressureField.box([HALF] * 3, 3 * modulus),
        "box": PressureField.box([HALF, 1.5 * HALF, 2 * HALF], modulus),
        "slab": PressureField.box([2 * HALF, HALF, HALF / 2], modulus),
        "capsule": PressureField.capsule(HALF, HALF, modulus, hint=0.04),
        "cylinder": PressureField.cylinder(HALF, HALF, modulus, hint=0.03),
        "long cylinder": PressureField.cylinder(0.03, 0.06, modulus, hint=0.03),
        "disc": PressureField.cylinder(HALF, HALF / 2, modulus, hint=0.03),
        "hull": PressureField.convex_mesh(*hull_of(cube), modulus),
        "stone": stone(modulus),
        "torus": torus(modulus),
        "corner": corner(modulus),
        "grid": grid_cube(modulus),
        "star": star(modulus),
    }


def all_bodies(modulus: float) -> dict[str, PressureField | RigidSurface | HalfSpace]:
    soft = soft_bodies(modulus)
    rigid = {f"rigid {name}": RigidSurface.of(field) for name, field in soft.items()}
    return soft | rigid | {"floor": HalfSpace(), "mud": HalfSpace(modulus / HALF)}


# ------------------------------------------------------------------------------------------------ a slow patch


def _length(x: np.ndarray) -> np.ndarray:
    """Of complex vectors too: what is differentiable."""
    return np.sqrt((x * x).sum())


def _face_planes(corner: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    planes = []
    for across in range(4):
        a, b, c = np.delete(corner, across, axis=0)
        normal = np.cross(b - a, c - a)
        normal /= _length(normal)
        normal = normal if (normal @ (corner[across] - a)).real < 0.0 else -normal
        planes.append((normal, normal @ a))
    return planes


def _pressure(corner: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gradient = np.linalg.solve(corner[1:] - corner[0], values[1:] - values[0])
    return gradient, values[0] - gradient @ corner[0]


def _clipped(
    polygon: list[np.ndarray], planes: list[tuple[np.ndarray, np.ndarray]]
) -> list[np.ndarray]:
    for normal, offset in planes:
        heights = [normal @ x - offset for x in polygon]
        kept = []
        for i, (x, s) in enumerate(zip(polygon, heights)):
            y, t = polygon[(i + 1) % len(polygon)], heights[(i + 1) % len(polygon)]
            if s.real <= 0.0:
                kept.append(x)
            if (s.real <= 0.0) != (t.real <= 0.0):
                kept.append(x + s / (s - t) * (y - x))
        polygon = kept
        if len(polygon) < 3:
            return []
    return polygon


def _balance(
    a: np.ndarray, pa: tuple[np.ndarray, np.ndarray], pb: tuple[np.ndarray, np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """A square around all of a tetrahedron, in the plane where two pressures are equal, and its normal."""
    normal = pb[0] - pa[0]
    length = _length(normal)
    if length.real < 1e-8 * max(_length(pa[0]).real, _length(pb[0]).real):
        return [], normal
    normal = normal / length
    middle = a.mean(axis=0)
    middle = middle - (normal @ middle - (pa[1] - pb[1]) / length) * normal
    side = 10.0 * np.ptp(a.real, axis=0).max()
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal.real))])
    u *= side / _length(u)
    v = np.cross(normal, u)
    return [middle + u + v, middle - u + v, middle - u - v, middle + u - v], normal


def _pressed(
    polygon: list[np.ndarray], normal: np.ndarray, p: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Force, moment and area, by a rule of three points in each triangle of a fan."""
    out = np.zeros(7, dtype=normal.dtype)
    for b, c in itertools.pairwise(polygon[1:]):
        corners = np.stack([polygon[0], b, c])
        area = 0.5 * np.cross(b - polygon[0], c - polygon[0]) @ normal
        for x in (np.ones((3, 3)) / 6 + np.eye(3) / 2) @ corners:
            force = area / 3 * (p[0] @ x + p[1]) * normal
            out += np.r_[force, np.cross(x, force), area / 3]
    return out


def _placed(body: PressureField | RigidSurface, at: np.ndarray) -> np.ndarray:
    return rotation_of(at).apply(np.array(body.vertices)) + at[:3]


def slow_patch(
    a: PressureField | RigidSurface,
    b: PressureField,
    pose_a: np.ndarray,
    pose_b: np.ndarray,
    twist: np.ndarray | None = None,
) -> np.ndarray:
    """Force and moment on b about the world's origin, and area ``(7,)``: every pair of elements, cut by all faces.

    Tetrahedra without pressure press nobody and are left out. twist ``(6,)``: an imaginary motion of a, for derivatives
    by complex step.
    """
    first, second = _placed(a, pose_a), _placed(b, pose_b)
    if twist is not None:
        first = first + 1j * (twist[:3] + np.cross(twist[3:], first))
    soft = isinstance(a, PressureField)
    numbers = a.tetrahedra if isinstance(a, PressureField) else a.triangles
    if isinstance(a, PressureField):
        numbers = numbers[a.pressure[numbers].max(axis=1) > 0.0]
    loaded = b.tetrahedra[b.pressure[b.tetrahedra].max(axis=1) > 0.0]
    cells, values = second[loaded], b.pressure[loaded]
    out = np.zeros(7, dtype=first.dtype)
    for number in numbers:
        element = first[number]
        near = np.all(
            (element.real.min(axis=0) <= cells.max(axis=1))
            & (element.real.max(axis=0) >= cells.min(axis=1)),
            axis=1,
        )
        for cell, value in zip(cells[near], values[near]):
            pb, planes = _pressure(cell, value), _face_planes(cell)
            if soft:
                polygon, normal = _balance(element, _pressure(element, a.pressure[number]), pb)
                planes = _face_planes(element) + planes
            else:
                polygon = list(element)
                normal = np.cross(element[1] - element[0], element[2] - element[0])
                normal /= _length(normal)
            polygon = _clipped(polygon, planes) if polygon else []
            if polygon:
                out += _pressed(polygon, normal, pb)
    return out


def slow_tangent(
    a: PressureField | RigidSurface, b: PressureField, pose_a: np.ndarray, pose_b: np.ndarray
) -> np.ndarray:
    """Change of force and moment on b by a motion of a ``(6, 6)``, by complex step."""
    tiny = 1e-30
    columns = [slow_patch(a, b, pose_a, pose_b, step)[:6].imag for step in tiny * np.eye(6)]
    return np.stack(columns, axis=1) / tiny


# ------------------------------------------------------------------------------------------------ beside Drake


def body_of(spec: dict[str, Any]) -> PressureField | RigidSurface | HalfSpace:
    """A body of a record in data/pressure_drake.json: soft with a modulus (Pa), rigid without."""
    modulus, sizes, hint = spec.get("modulus", 1.0), spec["sizes"], spec.get("hint", 1.0)
    kind = spec["kind"]
    if kind == "space":
        return HalfSpace(modulus / spec["thickness"]) if "modulus" in spec else HalfSpace()
    if kind == "sphere":
        field = PressureField.sphere(sizes[0], modulus, hint=hint)
    elif kind == "ellipsoid":
        field = PressureField.ellipsoid(sizes, modulus, hint=hint)
    elif kind == "box":
        field = PressureField.box(sizes, modulus)
    elif kind in ("cylinder", "capsule"):
        field = getattr(PressureField, kind)(*sizes, modulus, hint=hint)
    else:
        made = {"torus": torus, "corner": corner, "stone": stone, "star": star}[kind]
        field = made(modulus, *sizes)
    return field if "modulus" in spec else RigidSurface.of(field)


def deviations(record: dict[str, Any]) -> tuple[float, float, float, int]:
    """Of a patch from Drake's: force and moment, area, and sums of A, A p, A g, A p g (g: the stiffness of both bodies
    along the normal), as shares; and how many polygons it has more."""
    found = pressure_patch(
        body_of(record["first"]),
        body_of(record["second"]),
        record["pose_a"],
        record["pose_b"],
        filter_angle=5 * np.pi / 8,
    )
    wrench = np.r_[found.force, found.moment] - np.r_[record["force"], record["moment"]]
    polygons = found.polygons
    normal, slopes = polygons["normal"], []
    if "modulus" in record["first"]:
        slopes.append(-np.einsum("ij,ij->i", polygons["gradient_a"], normal))
    if "modulus" in record["second"]:
        slopes.append(np.einsum("ij,ij->i", polygons["gradient_b"], normal))
    g = slopes[0] if len(slopes) == 1 else slopes[0] * slopes[1] / (slopes[0] + slopes[1])
    area, pressure = polygons["area"], polygons["pressure"]
    sums = np.array([area.sum(), area @ pressure, area @ g, area @ (pressure * g)])
    scale = area * np.stack([np.ones(len(g)), pressure, np.abs(g), pressure * np.abs(g)])
    theirs = np.array(record["sums"])
    return (
        float(np.abs(wrench).max() / found.total_pressure),
        abs(found.area / theirs[0] - 1.0),
        float((np.abs(sums - theirs) / scale.sum(axis=1)).max()),
        found.count - record["polygons"],
    )
