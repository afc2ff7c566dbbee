"""A spatial model's configurations as drawings: shapes seen from a point far away, far ones first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import instance, number
from qdsim.description import Geom
from qdsim.description.hulls import hull_faces
from qdsim.model import Model
from qdsim.planning.drawing.planar import (
    GOAL,
    INK,
    LIMBS,
    OBJECT,
    OBJECT_DARK,
    PlanarScene,
    arrow,
    contact_points,
    is_flat,
    need,
    prepare_axes,
)
from qdsim.planning.grasps.closing import moved_bodies
from qdsim.planning.task.space import Array
from qdsim.step import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SpatialScene", "scene_of"]

GROUND = "#DDE2E6"
_LIGHT = np.array([0.35, 0.5, 0.8])
_TINY = 1e-4
"""Spheres up to this radius (m) stand for corners and are not drawn."""

Mesh = tuple[Array, list[Any], list[int]]
"""Corners, faces as indices of them, and which of the two colours each face has."""

Face = tuple[float, Array, str, float]
"""Depth towards the viewer, corners in the picture, colour, opacity."""


def scene_of(model: Model, object: str) -> PlanarScene | SpatialScene:
    """What draws a model: flat pictures where all joints move in one plane, else views in space.

    Flat pictures know discs, and the object's boxes; planar models of other shapes are seen from near the
    plane's normal.
    """
    instance("model", model, Model)
    instance("object", object, str)
    normal = model.planar_normal
    if normal is None:
        return SpatialScene(model, object)
    if is_flat(model, object):
        return PlanarScene(model, object)
    x, y, z = (abs(float(c)) for c in normal)
    azimuth = 0.0 if x > max(y, z) else -90.0
    return SpatialScene(model, object, azimuth=azimuth, elevation=60.0 if z > max(x, y) else 25.0)


class SpatialScene:
    """Draws configurations of a model in space with Matplotlib alone, in parallel projection.

    Every shape is a set of flat faces, drawn in the order of their depth (painter's algorithm): good
    for pictures of robots made of spheres, boxes, capsules and cylinders. The object's faces have two
    colours, so that turns of a ball are seen. Walls and ground are pale, planes are left out.

    Args:
        model: the model.
        object: body of the manipulated object; bodies on its joints belong to it.
        azimuth, elevation: degrees, from where the scene is seen; without an azimuth, from the corner from which
            the object's boxes hide least of the robot at the start (the key frame of that name, or the default
            configuration), and among those from the side on which the robot is.
    """

    def __init__(
        self, model: Model, object: str, *, azimuth: float | None = None, elevation: float = 28.0
    ) -> None:
        self.model = model
        elevation = number("elevation", elevation)
        if azimuth is not None:
            azimuth = number("azimuth", azimuth)
        if object not in model.body_names:
            raise ValueError(f"object: the model has no body {object!r}")
        self.object = model.body_names.index(object)
        moved: list[bool] = np.any(moved_bodies(model), axis=0).tolist()
        index = {name: i for i, name in enumerate(model.body_names)}
        parents = [0, *(index[b.parent or "world"] for b in model.description.bodies[1:])]
        still = _still_bodies(model, parents)
        self.kind = [
            "robot" if moved[b] else "world" if b in still else "object"
            for b in range(len(parents))
        ]
        # Bodies of a robot that no joint carries (a palm, a base) have the robot's colour too.
        for b, above in enumerate(parents):
            if moved[b] and above and self.kind[above] == "world":
                self.kind[above] = "robot"
        self.limb = _limbs(model, parents, self.kind)
        self.links = [
            (b, parents[b]) for b in range(1, len(parents)) if moved[b] and moved[parents[b]]
        ]
        self.shapes = _shapes(model, [kind != "world" for kind in self.kind])
        if azimuth is None:
            azimuth = self._best_azimuth(elevation)
        towards = _direction(azimuth, elevation)
        right = _direction(azimuth + 90.0, 0.0)
        self.view = np.array([right, np.cross(towards, right), towards])
        robot = [v for b, v, _, _ in self.shapes if self.kind[b] == "robot"]
        self.width = (
            0.25 * float(np.median([np.ptp(v, axis=0).max() for v in robot])) if robot else 0.0
        )

    def _best_azimuth(self, elevation: float) -> float:
        model = self.model
        key = model.keyframes.get("start")
        pos, rot = model.body_poses(model.default_q if key is None else key.q)
        hands = [(b, v.mean(axis=0)) for b, v, _, _ in self.shapes if self.kind[b] == "robot"]
        places = np.array([pos[b] + rot[b] @ p for b, p in hands] or [pos[0]])
        side = places.mean(axis=0) - pos[self.object]

        def worth(corner: float) -> tuple[float, float]:
            hidden = self._hidden(places, _direction(corner, elevation), pos, rot)
            return -round(hidden, 1), float(side @ _direction(corner, 0.0))

        return max((35.0, 125.0, 215.0, 305.0), key=worth)

    def _hidden(self, places: Array, towards: Array, pos: Array, rot: Array) -> float:
        """Which share of points the object's boxes hide from someone in a direction."""
        behind = np.zeros(len(places), dtype=bool)
        geoms = self.model.description.geoms
        for b, geom, size in zip(
            self.model.geom_body.tolist(), geoms, self.model.parameters.geom_size
        ):
            if geom.type == "box" and self.kind[b] == "object":
                own = rot[b] @ _matrix(np.asarray(geom.quat, dtype=np.float64))
                begin = (places - pos[b] - rot[b] @ np.asarray(geom.pos)) @ own
                with np.errstate(divide="ignore", invalid="ignore"):
                    ends = (np.array([-size, size])[:, None] - begin) / (towards @ own)
                enter, leave = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
                behind |= (enter <= leave) & (leave > 0.0)
        return float(behind.mean())

    # ---------------------------------------------------------------- as PlanarScene

    def window(self, configurations: Array, margin: float = 0.05) -> tuple[Array, Array]:
        """Corners ``(2,)`` of a box around what moves, in the picture, over all configurations."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        stride = max(1, len(configurations) // 1000)
        for q in [*configurations[::stride], configurations[-1]]:
            pos, rot = self.model.body_poses(q)
            for b, corners, _, _ in self.shapes:
                if self.kind[b] != "world":
                    p = (pos[b] + corners @ rot[b].T) @ self.view[:2].T
                    low, high = np.minimum(low, p.min(axis=0)), np.maximum(high, p.max(axis=0))
        if not np.isfinite(low).all():  # nothing moves that is drawn
            low, high = np.full(2, -0.5), np.full(2, 0.5)
        room = margin * float((high - low).max())
        return low - room, high + room

    def prepare(self, ax: Axes, low: Array, high: Array) -> None:
        """Equal axes without ticks around a window."""
        prepare_axes(ax, low, high)

    def draw(self, ax: Axes, q: Array, *, robot: str = "solid", alpha: float = 1.0) -> None:
        """Draw everything; ``robot`` is "solid", "ghost" (the robot alone, faintly) or "none"."""
        pos, rot = self.model.body_poses(q)
        if robot == "ghost":
            self._draw_robot(ax, pos, rot, ghost=True, alpha=alpha)
            return
        self._paint(ax, self._faces(pos, rot, ("world",), 1.0), zorder=1)
        faces = self._faces(pos, rot, ("object",), 1.0)
        if robot != "none":
            faces += self._faces(pos, rot, ("robot",), alpha)
        self._paint(ax, faces, zorder=2)

    def draw_goal(self, ax: Axes, goal: Array) -> None:
        """Outlines of the object at the goal."""
        pos, rot = self.model.body_poses(goal)
        outlines = []
        for b, corners, _, _ in self.shapes:
            if self.kind[b] == "object":
                p = (pos[b] + corners @ rot[b].T) @ self.view.T
                outlines.append(_hull(p[:, :2]))
        collection = need("matplotlib.collections").PolyCollection(
            outlines, facecolors="none", edgecolors=GOAL, linestyles=[(0, (4, 3))], linewidths=1.0
        )
        collection.set_zorder(6)
        ax.add_collection(collection)

    def draw_forces(self, ax: Axes, step: Step, typical: float, length: float) -> None:
        """Arrows of the contact forces on the object, as :class:`PlanarScene` draws them."""
        forces = self.forces(step)
        largest = max((float(np.hypot(*f)) for _, f in forces), default=0.0)
        for point, force in forces:
            arrow(ax, point, force, largest, typical, length)

    def forces(self, step: Step) -> list[tuple[Array, Array]]:
        """Points ``(2,)`` after a step and forces ``(2,)`` (N) on the object, in the picture."""
        result = []
        for c, point in zip(step.contacts, contact_points(self.model, step)):
            a, b = (self.kind[int(c[side])] == "object" for side in ("body_a", "body_b"))
            if a == b:
                continue
            force = c["frame"].T @ c["force"][:3]
            result.append((self.view[:2] @ point, self.view[:2] @ (force if b else -force)))
        return result

    # ---------------------------------------------------------------- faces

    def _draw_robot(self, ax: Axes, pos: Array, rot: Array, *, ghost: bool, alpha: float) -> None:
        faces = self._faces(pos, rot, ("robot",), 0.18 * alpha if ghost else alpha)
        self._paint(ax, faces, zorder=1 if ghost else 3)

    def _faces(self, pos: Array, rot: Array, kinds: tuple[str, ...], alpha: float) -> list[Face]:
        faces: list[Face] = []
        for b, corners, polygons, patches in self.shapes:
            kind = self.kind[b]
            if kind not in kinds:
                continue
            world = pos[b] + corners @ rot[b].T
            seen = world @ self.view.T
            opacity = 0.35 if kind == "world" else alpha
            for group, patch_of in zip(polygons, patches):
                p = seen[group]
                e, f = p[:, 1, :2] - p[:, 0, :2], p[:, 2, :2] - p[:, 1, :2]
                front = np.flatnonzero(e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0] > 0.0)
                w = world[group[front]]
                normal = np.cross(w[:, 1] - w[:, 0], w[:, 2] - w[:, 1])
                bright = normal @ _LIGHT / np.linalg.norm(normal, axis=1) / np.linalg.norm(_LIGHT)
                for i, light in zip(front.tolist(), bright.tolist()):
                    colour = _shade(self._colour(b, kind, int(patch_of[i])), light)
                    faces.append((float(p[i, :, 2].mean()), p[i, :, :2], colour, opacity))
        if "robot" in kinds:
            faces += self._bars(pos, alpha)
        return faces

    def _bars(self, pos: Array, alpha: float) -> list[Face]:
        """Thin bars between the frames of a robot's bodies: spheres alone do not look like fingers."""
        faces: list[Face] = []
        for b, above in self.links:
            ends = pos[[above, b]] @ self.view.T
            along = ends[1, :2] - ends[0, :2]
            length = float(np.hypot(*along))
            if length > 1e-9:
                side = 0.5 * self.width / length * np.array([-along[1], along[0]])
                corners = np.array([ends[0, :2] - side, ends[1, :2] - side])
                corners = np.vstack([corners, ends[1, :2] + side, ends[0, :2] + side])
                faces.append((float(ends[:, 2].mean()), corners, INK, 0.8 * alpha))
        return faces

    def _colour(self, body: int, kind: str, patch: int) -> str:
        if kind == "object":
            return OBJECT_DARK if patch else OBJECT
        return GROUND if kind == "world" else LIMBS[self.limb.get(body, 0) % len(LIMBS)]

    def _paint(self, ax: Axes, faces: list[Face], zorder: float) -> None:
        faces.sort(key=lambda face: face[0])
        to_rgba = need("matplotlib.colors").to_rgba
        colours = [to_rgba(colour, alpha) for _, _, colour, alpha in faces]
        collection = need("matplotlib.collections").PolyCollection(
            [p for _, p, _, _ in faces], facecolors=colours, edgecolors=colours, linewidths=0.6
        )
        collection.set_zorder(zorder)
        ax.add_collection(collection)


def _direction(azimuth: float, elevation: float) -> Array:
    a, e = math.radians(azimuth), math.radians(elevation)
    return np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])


# -------------------------------------------------------------------- shapes


def _shapes(model: Model, fine: list[bool]) -> list[tuple[int, Array, list[Any], list[Any]]]:
    """Body, corners in body coordinates, faces (anticlockwise from outside) and their patches, in
    groups of as many corners. Boxes of bodies that are ``fine`` have their faces cut into tiles that are not
    much larger than the smaller shapes, so that sorting by depth puts things before and behind them rightly.
    """
    sizes = model.parameters.geom_size.max(axis=1)
    drawn = sizes[sizes > _TINY]
    tile = 4.0 * float(np.median(drawn)) if len(drawn) else math.inf
    result = []
    index = 0
    for b, body in enumerate(model.description.bodies):
        for geom in body.geoms:
            size = model.parameters.geom_size[index]
            index += 1
            if geom.type in ("mesh", "cloud"):
                made = _hull_mesh(model, geom)
            else:
                made = _mesh(geom.type, size, tile if fine[b] else math.inf)
            if made is None:
                continue
            corners, polygons, patches = made
            turned = corners @ _matrix(np.asarray(geom.quat, dtype=np.float64)).T
            counts = np.array([len(polygon) for polygon in polygons])
            groups = [np.flatnonzero(counts == n) for n in np.unique(counts)]
            stacked = [np.array([polygons[i] for i in group]) for group in groups]
            chosen = [np.array(patches)[group] for group in groups]
            result.append((b, turned + np.asarray(geom.pos), stacked, chosen))
    return result


def _mesh(kind: str, size: Array, tile: float) -> Mesh | None:
    """A shape's surface as flat faces, of boxes no longer than a tile (m) where that takes few of them."""
    if kind == "box":
        return _box(size, tile)
    if kind == "sphere":
        return None if size[0] <= _TINY else _surface(np.full(3, size[0]), 0.0)
    if kind == "ellipsoid":
        return _surface(np.asarray(size), 0.0)
    if kind == "capsule":
        return _surface(np.full(3, size[0]), float(size[1]))
    if kind == "cylinder":
        return _prism(float(size[0]), float(size[1]))
    return None


def _hull_mesh(model: Model, geom: Geom) -> Mesh | None:
    """The convex hull of a mesh or of a cloud's points, its two colours on either side of its middle."""
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
    corners = points[used]
    polygons = [list(row) for row in triangles.reshape(faces.shape)]
    middle = corners.mean(axis=0)
    return corners, polygons, [int(corners[p].mean(axis=0)[0] > middle[0]) for p in polygons]


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
                polygons.append(np.arange(len(corners), len(corners) + 4))
                corners += [origin + s / n * along + t / m * up for s, t in tiles]
                patches.append(patch)
    return np.array(corners), polygons, patches


def _surface(radii: Array, half: float, across: int = 12, up: int = 8) -> Mesh:
    """An ellipsoid whose upper and lower halves are ``half`` away from the middle."""
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
    corners[:, 2] += np.where(np.repeat(polar, across) < math.pi / 2 + 1e-9, half, -half)
    polygons, patches = [], []
    for i in range(up):
        for j in range(across):
            k = (j + 1) % across
            a, b = i * across, (i + 1) * across
            ring = [a + j, b + j, b + k, a + k]
            polygons.append(np.array(ring[:3] if i == up - 1 else ring[1:] if i == 0 else ring))
            patches.append((i * 2 // up + j * 4 // across) % 2)
    return corners, polygons, patches


def _prism(radius: float, half: float, across: int = 20) -> Mesh:
    angle = np.arange(across) * (2.0 * math.pi / across)
    ring = radius * np.array([np.cos(angle), np.sin(angle), np.zeros(across)]).T
    corners = np.vstack([ring - [0, 0, half], ring + [0, 0, half]])
    sides = [
        np.array([j, (j + 1) % across, across + (j + 1) % across, across + j])
        for j in range(across)
    ]
    caps = [np.arange(across)[::-1], across + np.arange(across)]
    return corners, [*sides, *caps], [j * 4 // across % 2 for j in range(across)] + [0, 0]


def _matrix(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _shade(colour: str, bright: float) -> str:
    """The colour in the light: darker where a face turns away from it."""
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    share = 0.72 + 0.28 * bright
    return "#" + "".join(f"{round(255 if c * share > 255 else max(c * share, 0)):02X}" for c in rgb)


def _hull(points: Array) -> Array:
    """Convex hull of points in the plane, anticlockwise (Andrew's monotone chain)."""
    order = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half(rows: Array) -> list[Array]:
        chain: list[Array] = []
        for p in rows:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-1] - chain[-2], p - chain[-1]
                if ax * by - ay * bx > 0.0:
                    break
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return np.array(half(order) + half(order[::-1]))


def _still_bodies(model: Model, parents: list[int]) -> set[int]:
    """Bodies that no joint moves."""
    still = {0}
    for b, body in enumerate(model.description.bodies):
        if b and parents[b] in still and not body.joints:
            still.add(b)
    return still


def _limbs(model: Model, parents: list[int], kind: list[str]) -> dict[int, int]:
    """A number for every finger: a branch of the robot that begins where bodies have several
    children.
    """
    children: dict[int, list[int]] = {}
    for b in range(1, len(parents)):
        if kind[b] == "robot":
            children.setdefault(parents[b], []).append(b)
    limb: dict[int, int] = {}
    count = 0
    for b in range(1, len(parents)):
        if kind[b] != "robot":
            continue
        siblings = children.get(parents[b], [b])
        if len(siblings) > 1 or kind[parents[b]] != "robot":
            limb[b] = count
            count += 1
        else:
            limb[b] = limb.get(parents[b], 0)
    return limb
