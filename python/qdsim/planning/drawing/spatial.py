"""Configurations of a 3D model as drawings in parallel projection, far shapes first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, number, one_of, reals
from qdsim.array_type import Array
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.camera import best_direction, direction, directions
from qdsim.planning.drawing.colours import channels
from qdsim.planning.drawing.links import links_of
from qdsim.planning.drawing.patches import draw_patches
from qdsim.planning.drawing.planar import arrow, contact_points, need, prepare_axes
from qdsim.planning.drawing.solids import Solid, link_solids, solids_of
from qdsim.planning.drawing.style import (
    FLOOR,
    GOAL,
    GROUND,
    LIMBS,
    OBJECT,
    OBJECT_DARK,
    STYLE,
)
from qdsim.planning.task.robot import robot_bodies
from qdsim.step import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GEOMETRIES", "SpatialScene"]

_LIGHT = np.array([-0.4, 0.7, 0.8])
"""Direction of the light: from the right, from above and from the viewer, so that visible faces are
lit in every view."""
_LIGHT /= np.linalg.norm(_LIGHT)
_SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
_WIDE = 4.0
"""Half a floor's width, relative to the largest distance of a body from the middle of the scene."""
GEOMETRIES = ("visual", "collision")
_LOOKED_AT = 6
"""Number of configurations that are used to compare views and to place floors."""


class SpatialScene:
    """Draws configurations of a 3D model with Matplotlib alone, in parallel projection.

    Every shape is a set of flat faces, drawn in the order of their depth (painter's algorithm).
    This suits robots made of spheres, boxes, capsules, cylinders and convex hulls. The object's
    faces have two colours, so that rotations of a ball are visible. Walls and ground are pale.

    Args:
        model: the model.
        object: body of the manipulated object; bodies on its joints belong to it.
        configurations: ``(n, nq)`` configurations that will be drawn; none: the key frame "start",
            or the default configuration.
        goal: ``(nq,)``; only the object's entries matter.
        azimuth, elevation: direction of view, degrees; without an azimuth, the direction in which
            robot, object and goal occlude each other least and the object's motion is most visible
            (:mod:`.camera`).
        geometry: "visual": the visual geometry of the file, if there is any, with links along
            spheres; "collision": geometries with contacts.

    Raises:
        ValueError: if there is no such body, or configurations of another size.
    """

    def __init__(
        self,
        model: Model,
        object: str,
        configurations: npt.ArrayLike | None = None,
        goal: npt.ArrayLike | None = None,
        *,
        azimuth: float | None = None,
        elevation: float | None = None,
        geometry: str = "visual",
    ) -> None:
        self.model = model
        self.most_pressure = (
            0.0  # Pa, pressure of the brightest colour of patches; 0: the largest of each picture
        )
        azimuth = None if azimuth is None else number("azimuth", azimuth)
        elevation = None if elevation is None else number("elevation", elevation)
        if object not in model.body_names:
            raise ValueError(f"object: the model has no body {object!r}")
        shown = self._configurations("configurations", configurations)
        self.seen = shown
        target = None if goal is None else self._configurations("goal", goal)[0]
        self.object = model.body_names.index(object)
        parents = _parents(model)
        self.kind = _kinds(model, parents)
        self.limb = _limbs(parents, self.kind)
        self.geometry = one_of("geometry", geometry, GEOMETRIES)
        self.solids = solids_of(model, [kind != "world" for kind in self.kind], self.geometry)
        self.links = links_of(model, self.kind) if self.geometry == "visual" else []
        self.solids += link_solids(self.links)
        if azimuth is None:
            azimuth, elevation = self._best_view(shown, target, elevation)
        towards = direction(azimuth, STYLE.elevation if elevation is None else elevation)
        right = direction(azimuth + 90.0, 0.0)
        self.view = np.array([right, np.cross(towards, right), towards])

    def _configurations(self, name: str, values: npt.ArrayLike | None) -> Array:
        """Return configurations as ``(n, nq)``; the start if none are given."""
        if values is None:
            key = self.model.keyframes.get("start")
            values = self.model.default_q if key is None else key.q
        rows = np.atleast_2d(finite(name, reals(name, values)))
        if rows.ndim != 2 or rows.shape[1] != self.model.nq or len(rows) == 0:
            raise ValueError(
                f"{name}: expected configurations of {self.model.nq} numbers, got shape {rows.shape}"
            )
        return rows

    def _best_view(
        self, shown: Array, goal: Array | None, elevation: float | None
    ) -> tuple[float, float]:
        some = _some(shown)
        candidates = directions()
        if elevation is not None:
            candidates = [(a, elevation) for a in dict.fromkeys(a for a, _ in candidates)]
        return best_direction(
            [s for s in self.solids if self.kind[s.body] == "robot"],
            [s for s in self.solids if self.kind[s.body] == "object"],
            [self.model.body_poses(q) for q in some],
            None if goal is None else self.model.body_poses(goal),
            candidates,
        )

    # ---------------------------------------------------------------- as PlanarScene

    def window(self, configurations: Array, margin: float = 0.05) -> tuple[Array, Array]:
        """Return the corners ``(2,)`` of a box in the picture around robot and object, over all configurations."""
        stride = max(1, len(configurations) // 200)
        poses = [self.model.body_poses(q) for q in [*configurations[::stride], configurations[-1]]]
        pos, rot = (np.array([pose[k] for pose in poses]) for k in (0, 1))
        ends: list[Array] = []
        alone = "object" not in self.kind  # without an object, the robot's surroundings are shown
        for solid in self.solids:
            b = solid.body
            if alone or self.kind[b] != "world":
                turned = (self.view[:2] @ rot[:, b]) @ solid.corners.T
                p = turned + (pos[:, b] @ self.view[:2].T)[:, :, None]
                ends.append(np.array([p.min(axis=(0, 2)), p.max(axis=(0, 2))]))
        both = np.vstack(ends) if ends else np.array([[-0.5, -0.5], [0.5, 0.5]])
        low, high = both.min(axis=0), both.max(axis=0)
        room = margin * max(float((high - low).max()), 1e-3)
        return low - room, high + room

    def prepare(self, ax: Axes, low: Array, high: Array) -> None:
        """Set up equal axes without ticks around a window."""
        prepare_axes(ax, low, high)

    def draw(self, ax: Axes, q: Array, *, robot: str = "solid", alpha: float = 1.0) -> None:
        """Draw everything; ``robot`` is "solid", "ghost" (the robot alone, faintly) or "none"."""
        pos, rot = self.model.body_poses(q)
        if robot == "ghost":
            self.draw_robot(ax, pos, rot, ghost=True, alpha=alpha)
            return
        self._paint_floors(ax)
        self._paint(ax, self._faces(pos, rot, ("world",)), zorder=1)
        faces = self._faces(pos, rot, ("object",))
        if robot != "none":
            faces.add(self._faces(pos, rot, ("robot",), alpha))
        self._paint(ax, faces, zorder=2)
        draw_patches(ax, self.model, q, self.view[:2], alpha, self.most_pressure)

    def floors(self) -> list[Array]:
        """Return corners ``(4, 3)`` of a square for each plane of the world that is seen from
        above, below the whole scene.

        The squares are wider than the pictures.
        """
        shown = _some(self.seen)
        poses = [self.model.body_poses(q) for q in shown]
        moving = [b for b, kind in enumerate(self.kind) if kind != "world"] or [0]
        middle = np.mean([pos[moving].mean(axis=0) for pos, _ in poses], axis=0)
        reach = [np.linalg.norm(pos[s.body] + s.corners @ rot[s.body].T - middle, axis=1).max()
                 for pos, rot in poses for s in self.solids if self.kind[s.body] != "world"]  # fmt: skip
        half = _WIDE * max(reach, default=0.5)
        squares = []
        for geom in self.model.description.bodies[0].geoms:
            axes = rotation_matrix(geom.quat).T
            if geom.type == "plane" and axes[2] @ self.view[2] > 0.05:
                at = middle - ((middle - geom.pos) @ axes[2]) * axes[2]
                squares.append(at + half * (_SQUARE @ axes[:2]))
        return squares

    def _paint_floors(self, ax: Axes) -> None:
        corners = [square @ self.view[:2].T for square in self.floors()]
        collection = need("matplotlib.collections").PolyCollection(
            corners, facecolors=FLOOR, edgecolors="none"
        )
        collection.set_zorder(0.5)
        ax.add_collection(collection)

    def draw_goal(self, ax: Axes, goal: Array) -> None:
        """Draw outlines of the object at the goal."""
        pos, rot = self.model.body_poses(goal)
        outlines = []
        for solid in self.solids:
            b = solid.body
            if self.kind[b] == "object":
                outlines.append(_hull((pos[b] + solid.corners @ rot[b].T) @ self.view[:2].T))
        collection = need("matplotlib.collections").PolyCollection(
            outlines, facecolors="none", edgecolors=GOAL, linestyles="--", linewidths=STYLE.line
        )
        collection.set_zorder(6)
        ax.add_collection(collection)

    def draw_forces(self, ax: Axes, step: Step, typical: float, length: float) -> None:
        """Draw arrows of the contact forces on the object, as :class:`PlanarScene` does."""
        forces = self.forces(step)
        largest = max((float(np.hypot(*f)) for _, f in forces), default=0.0)
        for point, force in forces:
            arrow(ax, point, force, largest, typical, length)

    def forces(self, step: Step) -> list[tuple[Array, Array]]:
        """Return points ``(2,)`` after a step and forces ``(2,)`` (N) on the object, in the picture."""
        points = contact_points(self.model, step) @ self.view[:2].T
        return [(points[i], force) for i, force in self.pushes(step)]

    def pushes(self, step: Step) -> list[tuple[int, Array]]:
        """Return indices of the contacts that act on the object, and their forces ``(2,)`` (N) in the picture."""
        result = []
        for i, c in enumerate(step.contacts):
            a, b = (self.kind[int(c[side])] == "object" for side in ("body_a", "body_b"))
            if a != b:
                force = self.view[:2] @ (c["frame"].T @ c["force"][:3])
                result.append((i, force if b else -force))
        return result

    # ---------------------------------------------------------------- faces

    def draw_robot(self, ax: Axes, pos: Array, rot: Array, *, ghost: bool, alpha: float) -> None:
        """Draw the robot alone, at poses of its bodies."""
        faces = self._faces(pos, rot, ("robot",), alpha)
        if ghost:
            faces.colours[:, :3] = 1.0 - STYLE.ghost * (1.0 - faces.colours[:, :3])
        self._paint(ax, faces, zorder=1 if ghost else 3)

    def _faces(self, pos: Array, rot: Array, kinds: tuple[str, ...], alpha: float = 1.0) -> _Faces:
        faces = _Faces()
        for solid in self.solids:
            b = solid.body
            kind = self.kind[b]
            if kind not in kinds:
                continue
            seen = (pos[b] + solid.corners @ rot[b].T) @ self.view.T
            normals = solid.normals @ (self.view @ rot[b]).T
            front = normals[:, 2] > 0.0
            corners = seen[solid.faces[front]]
            colours = np.empty((len(corners), 4))
            bright = 0.72 + 0.28 * normals[front] @ _LIGHT
            colours[:, :3] = self._colours(solid)[front] * bright[:, None]
            colours[:, 3] = STYLE.wall if kind == "world" else alpha
            depth = corners[:, :, 2].mean(axis=1)
            faces.add(_Faces(depth, corners[:, :, :2], np.clip(colours, 0.0, 1.0)))
        return faces

    def _colours(self, solid: Solid) -> Array:
        """Return colours ``(m, 3)`` of a solid's faces, without shading."""
        kind = self.kind[solid.body]
        if solid.colour is not None:
            return np.tile(np.array(solid.colour), (len(solid.faces), 1))
        if kind == "object":
            return np.array([channels(OBJECT), channels(OBJECT_DARK)])[solid.patches]
        colour = GROUND if kind == "world" else LIMBS[self.limb.get(solid.body, 0) % len(LIMBS)]
        return np.tile(channels(colour), (len(solid.faces), 1))

    def _paint(self, ax: Axes, faces: _Faces, zorder: float) -> None:
        order = np.argsort(faces.depth, kind="stable")
        colours = faces.colours[order]
        collection = need("matplotlib.collections").PolyCollection(
            faces.corners[order], facecolors=colours, edgecolors=colours, linewidths=STYLE.line
        )
        collection.set_zorder(zorder)
        ax.add_collection(collection)


@dataclass(eq=False)
class _Faces:
    """Faces to draw: depths ``(n,)`` towards the viewer, corners ``(n, 4, 2)``, colours ``(n, 4)``."""

    depth: Array = field(default_factory=lambda: np.zeros(0))
    corners: Array = field(default_factory=lambda: np.zeros((0, 4, 2)))
    colours: Array = field(default_factory=lambda: np.zeros((0, 4)))

    def add(self, other: _Faces) -> None:
        self.depth = np.concatenate([self.depth, other.depth])
        self.corners = np.concatenate([self.corners, other.corners])
        self.colours = np.concatenate([self.colours, other.colours])


def _hull(points: Array) -> Array:
    """Return the convex hull of points in the plane, anticlockwise (Andrew's monotone chain)."""
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


def _parents(model: Model) -> list[int]:
    """Return the parent of each body; the world is its own parent."""
    index = {name: i for i, name in enumerate(model.body_names)}
    return [0, *(index[b.parent or "world"] for b in model.description.bodies[1:])]


def _kinds(model: Model, parents: list[int]) -> list[str]:
    """Return for each body "robot", "object" or "world"."""
    moved, still = robot_bodies(model).tolist(), _still_bodies(model, parents)
    kinds = [
        "robot" if moved[b] else "world" if b in still else "object" for b in range(len(parents))
    ]
    # Bodies without joints that carry the robot (a palm, a base) also count as robot. Frames
    # without shapes, on which links are mounted, pass this on to their parents.
    bodies = model.description.bodies
    for b in reversed(range(len(parents))):
        carried = moved[b] or (kinds[b] == "robot" and not bodies[b].geoms)
        if carried and parents[b] and kinds[parents[b]] == "world":
            kinds[parents[b]] = "robot"
    return kinds


def _still_bodies(model: Model, parents: list[int]) -> set[int]:
    """Return the bodies that no joint moves."""
    still = {0}
    for b, body in enumerate(model.description.bodies):
        if b and parents[b] in still and not body.joints:
            still.add(b)
    return still


def _limbs(parents: list[int], kind: list[str]) -> dict[int, int]:
    """Return a number for every finger, a branch of the robot that begins where a body has several children."""
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


def _some(shown: Array) -> Array:
    """Return some configurations, the first and the last one included."""
    return np.asarray(shown[np.unique(np.linspace(0, len(shown) - 1, _LOOKED_AT).astype(int))])
