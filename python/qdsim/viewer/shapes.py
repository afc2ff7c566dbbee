"""The shapes that are drawn for a model: its geometries, links between spheres, and discs and bars for
planar models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import Geom
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.colours import channels, colour_of, is_visual, says_colour
from qdsim.planning.drawing.links import links_of
from qdsim.planning.drawing.style import LIMBS, STYLE
from qdsim.viewer.needs import need
from qdsim.viewer.roles import Roles
from qdsim.viewer.surfaces import Surface, bar, disc, flat_bar, surface_of

__all__ = ["Shape", "octants", "shapes_of"]

_THICK = {"robot": 0.6, "object": 0.4, "world": 0.4}
"""Half the thickness of flat bodies, in radii of the robot's discs."""

_NONE = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Shape:
    """A rigid shape on a body.

    Attributes:
        body: Index of the body.
        name: Name of the geometry, or a description.
        surface: The surface in the shape's frame.
        key: Shapes with the same key have the same surface.
        pos, quat: Pose of the shape's frame in the body's frame, ``(3,)`` m and ``(4,)``.
        colour: Red, green, blue and opacity, 0 to 1.
        layer: "all", or only "visual" or "collision".
        tones: Which of two shades each face has, ``(faces,)``, so that rotations are visible; None:
            all faces have one shade.
        outlined: Whether its lines are drawn, also at the goal.
        plane: Whether it is an infinite plane.
    """

    body: int
    name: str
    surface: Surface
    key: tuple[object, ...]
    pos: Array
    quat: Array
    colour: tuple[float, float, float, float]
    layer: str
    tones: npt.NDArray[np.int64] | None
    outlined: bool
    plane: bool


def shapes_of(model: Model, roles: Roles) -> list[Shape]:
    """Return all shapes of a model: those of its geometries in their order, then the links."""
    paired = {n for pair in model.description.pairs for n in (pair.geom_a, pair.geom_b)}
    pressing = _pressing(model)
    shapes: list[Shape] = []
    sizes = iter(model.parameters.geom_size)
    for b, body in enumerate(model.description.bodies):
        seen = any(is_visual(geom, paired) for geom in body.geoms)
        pressed = b > 0 and any(geom.name in pressing for geom in body.geoms)
        for geom in body.geoms:
            size = np.asarray(next(sizes))
            visual = is_visual(geom, paired)
            layer = "visual" if visual else "collision" if seen else "all"
            shapes.append(_shape(model, roles, b, geom, size, layer, pressed))
    return shapes + _links(model, roles)


def _shape(
    model: Model, roles: Roles, b: int, geom: Geom, size: Array, layer: str, pressed: bool
) -> Shape:
    red, green, blue, alpha = colour_of(geom, roles.kind, roles.limb, b)
    colour = (red, green, blue, min(alpha, STYLE.ghost) if pressed else alpha)
    pos, quat = np.asarray(geom.pos), np.asarray(geom.quat)
    key: tuple[object, ...] = (geom.type, geom.mesh, id(geom.cloud or geom.hfield), size.tobytes())
    outlined = b in roles.objects and layer != "collision"
    if roles.flat is not None and geom.type in ("sphere", "cylinder"):
        half = roles.flat * _THICK[roles.kind[b]]
        surface = disc(np.zeros(3), float(size[0]), half, _normal(model, b))
        key, quat = ("disc", b, size.tobytes()), _NONE
    else:
        if roles.flat is not None and geom.type == "box":
            size = _flattened(model, b, size, roles.flat * _THICK[roles.kind[b]])
        surface = surface_of(model, geom, size, 1.5 * roles.size)
        if roles.flat is not None and geom.type == "plane":
            surface = _slab(model, b, geom, roles)
    tones = None
    if outlined and not says_colour(geom) and len(surface.faces) and alpha >= 1.0:
        tones = _tones(surface, None if roles.flat is None else _normal(model, b))
    plane = geom.type == "plane" and roles.flat is None
    return Shape(
        b,
        geom.name,
        surface,
        key,
        pos,
        quat,
        colour,
        layer,
        tones,
        outlined and geom.type != "plane",
        plane,
    )


def _flattened(model: Model, b: int, size: Array, half: float) -> Array:
    """Return a box's half widths, with ``half`` along the normal of the model's plane."""
    thin = np.array(size)
    thin[int(np.argmax(np.abs(_normal(model, b))))] = half
    return thin


def _slab(model: Model, b: int, geom: Geom, roles: Roles) -> Surface:
    """Return a slab for a plane that is seen from its edge; it fills the space below the plane."""
    half = np.array([1.5 * roles.size, 1.5 * roles.size, 0.02 * roles.size])
    own = rotation_matrix(geom.quat).T @ _normal(model, b)
    half[int(np.argmax(np.abs(own)))] = roles.flat * _THICK["world"] if roles.flat else half[2]
    box = need("trimesh").creation.box(2.0 * half)
    vertices = np.asarray(box.vertices) - [0.0, 0.0, half[2]]
    return Surface(vertices, np.asarray(box.faces, dtype=np.uint32), np.zeros((0, 2, 3)), True)


def _normal(model: Model, b: int) -> Array:
    """Return the normal of the model's plane in a body's frame, towards the camera."""
    assert model.planar_normal is not None
    _, rot = model.body_poses(model.default_q)
    return np.asarray(rot[b].T @ np.abs(model.planar_normal))


def octants(surface: Surface) -> npt.NDArray[np.int64]:
    """Return 0 or 1 for each face ``(faces,)``, alternating between the octants around the middle."""
    middles = surface.vertices[surface.faces].mean(axis=1) - surface.vertices.mean(axis=0)
    return np.asarray(np.signbit(middles).sum(axis=1) % 2, dtype=np.int64)


def _tones(surface: Surface, normal: Array | None) -> npt.NDArray[np.int64]:
    """Return the shade of each face: one for each half of a flat shape, otherwise alternating octants."""
    if normal is None:
        return octants(surface)
    middles = surface.vertices[surface.faces].mean(axis=1) - surface.vertices.mean(axis=0)
    side = np.roll(np.eye(3)[int(np.argmax(np.abs(normal)))], 1)
    return np.asarray(middles @ side < 0.0, dtype=np.int64)


def _links(model: Model, roles: Roles) -> list[Shape]:
    result: list[Shape] = []
    for link in links_of(model, roles.kind):
        b = link.body
        if roles.flat is None:
            surface = bar(link.start, link.end, link.radius)
        else:
            half = roles.flat * _THICK["robot"]
            normal = _normal(model, b)
            surface = flat_bar(link.start, link.end, link.radius, half, normal)
        colour = (*channels(LIMBS[roles.limb.get(b, 0) % len(LIMBS)]), 1.0)
        name = f"link {len(result)}"
        result.append(
            Shape(
                b, name, surface, (name,), np.zeros(3), _NONE, colour, "visual", None, False, False
            )
        )
    return result


def _pressing(model: Model) -> set[str]:
    """Return the names of soft shapes and of the shapes that can touch them."""
    names = model.geom_names
    soft = {
        geom.name
        for body in model.description.bodies
        for geom in body.geoms
        if geom.soft is not None
    }
    return {
        names[side]
        for pair in model.pair_geom
        if soft.intersection(names[geom] for geom in pair)
        for side in pair
    }
