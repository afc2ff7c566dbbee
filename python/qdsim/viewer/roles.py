"""The roles of a model's bodies in pictures, and the camera."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdsim.array_type import Array
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.planar import is_flat
from qdsim.planning.drawing.spatial import SpatialScene
from qdsim.planning.drawing.still import object_of
from qdsim.planning.drawing.style import STYLE

__all__ = ["Roles", "rgb", "roles_of"]

Colour = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Roles:
    """The roles of bodies, the camera and the ground.

    Attributes:
        objects: Bodies that nothing drives; forces on them are shown.
        object: Index of the body that the camera looks at; None in a model without bodies.
        kind: "robot", "object" or "world" for every body.
        limb: Number of the finger of each of the robot's bodies.
        centre: Point that the camera looks at, ``(3,)`` m.
        eye: Position of the camera, ``(3,)`` m.
        up: Upward direction of the picture, ``(3,)``.
        size: Size of the visible region, m.
        flat: In planar models, the radius of the robot's discs (without them, of the object's), m;
            None in spatial models.
        floor: A point of the ground and its normal, ``(2, 3)``: a level plane of the model's world,
            or else a plane below the model, or behind a planar one.
    """

    objects: frozenset[int]
    object: int | None
    kind: list[str]
    limb: dict[int, int]
    centre: Array
    eye: Array
    up: Array
    size: float
    flat: float | None
    floor: Array

    @property
    def patch_lift(self) -> float:
        """Distance from rigid surfaces at which patches of pressure are drawn, m."""
        return 2e-3 * self.size

    @property
    def lift(self) -> Array:
        """Displacement ``(3,)`` m of lines and arrows that makes them visible above flat bodies."""
        return np.zeros(3) if self.flat is None else 0.7 * self.flat * self.floor[1]


def roles_of(
    model: Model, name: str | None, configurations: Array, goal: Array | None = None
) -> Roles:
    """Assign roles to a model's bodies, with the camera of pictures
    (:mod:`qdsim.planning.drawing.camera`).

    The camera looks at a planar model along the normal of its plane.
    """
    if len(model.body_names) == 1:
        eye = np.array([2.0, 2.0, 1.5])
        up = np.array([0.0, 0.0, 1.0])
        floor = _floor(model, up, np.zeros(3))
        return Roles(frozenset(), None, ["world"], {}, np.zeros(3), eye, up, 1.0, None, floor)
    about = object_of(model) if name is None else name
    scene = SpatialScene(model, about, configurations, goal)
    objects = frozenset(b for b, kind in enumerate(scene.kind) if kind == "object")
    shown = configurations if goal is None else np.vstack([configurations, goal])
    low, high = _box(model, scene, shown)
    centre, size = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 1e-3)
    towards, up = scene.view[2], np.array([0.0, 0.0, 1.0])
    normal, flat = model.planar_normal, None
    below = np.array([centre[0], centre[1], _lowest(model, scene, low[2], size) - 0.02 * size])
    floor = _floor(model, up, below)
    if normal is not None:
        towards = np.abs(normal)
        up = np.array([0.0, 1.0, 0.0]) if towards[2] > 0.5 else up
        if is_flat(model, about):
            flat = _disc_radius(model, scene)
            floor = np.array([centre - flat * towards, towards])
        else:
            towards = towards + 0.25 * up
    eye = centre + 1.6 * size * towards / np.linalg.norm(towards)
    return Roles(objects, scene.object, scene.kind, scene.limb, centre, eye, up, size, flat, floor)


def _disc_radius(model: Model, scene: SpatialScene) -> float:
    """Return the median radius of the robot's discs, m; without them, 0.3 times the radii of the object's."""
    radii: dict[str, list[float]] = {"robot": [], "object": [], "world": []}
    for b, size in zip(model.geom_body, model.parameters.geom_size):
        if size[0] > STYLE.corner:
            radii[scene.kind[int(b)]].append(float(size[0]))
    some = radii["robot"] or [0.3 * r for r in radii["object"]] or [0.02]
    return float(np.median(some))


def _floor(model: Model, up: Array, otherwise: Array) -> Array:
    """Return the highest level plane of the world, or else a level plane through a point."""
    world = model.description.bodies[0]
    levels = [
        np.asarray(geom.pos)
        for geom in world.geoms
        if geom.type == "plane" and rotation_matrix(geom.quat)[:, 2] @ up > 0.999
    ]
    return np.array([max(levels, key=lambda p: float(p @ up), default=otherwise), up])


def _lowest(model: Model, scene: SpatialScene, low: float, size: float) -> float:
    """Return the height (m) of the lowest point of moving bodies and of the static shapes around them."""
    pos, rot = model.body_poses(model.default_q)
    still = [
        float((pos[s.body] + s.corners @ rot[s.body].T)[:, 2].min())
        for s in scene.solids
        if scene.kind[s.body] == "world"
    ]
    return max(min([low, *still]), low - 2.0 * size)


def _box(model: Model, scene: SpatialScene, configurations: Array) -> tuple[Array, Array]:
    """Return the corners of the box around robot and objects in some configurations."""
    shown = configurations[:: max(1, len(configurations) // 20)]
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for q in shown:
        pos, rot = model.body_poses(q)
        for solid in scene.solids:
            if scene.kind[solid.body] != "world":
                corners = pos[solid.body] + solid.corners @ rot[solid.body].T
                low, high = (
                    np.minimum(low, corners.min(axis=0)),
                    np.maximum(high, corners.max(axis=0)),
                )
    return (low, high) if np.all(low <= high) else (np.full(3, -0.5), np.full(3, 0.5))


def rgb(colour: str) -> Colour:
    """Convert ``#RRGGBB`` to three numbers, 0 to 255."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue
