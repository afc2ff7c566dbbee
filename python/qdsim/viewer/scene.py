"""A model's nodes in a browser's scene, and what is drawn over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.contact_surfaces import ContactSurface
from qdsim.description import Geom
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.colours import colour_of, is_visual
from qdsim.planning.drawing.planar import FORCE, GOAL, LIMBS, REGRASP
from qdsim.viewer.forces import Forces, arrows, cone_lines
from qdsim.viewer.patches import band_colours, bands, highest_pressure
from qdsim.viewer.roles import Roles, rgb
from qdsim.viewer.surfaces import Surface, surface_of

__all__ = ["Scene"]

Array = npt.NDArray[np.float64]

_SMOOTHED = "#2077B4"
"""Forces of a smoothed step, which act at a distance."""

_LARGER = 1.03
"""Outlines of the goal lie outside of the object that is there."""

_SOFT = 0.3
"""Opacity of bodies that press by their fields, through which one sees where."""

_LIFT = 2e-3
"""Patches on rigid bodies are so far off their surface, beside the size of what is seen."""

_ARROW, _CONE = 0.22, 0.06
"""Lengths beside the size of what is seen: of the arrow of a typical force, of a friction cone."""


class Scene:
    """Bodies as frames, shapes as meshes below them; goal, tree and forces as nodes of their own, so that a page can
    hide them.

    Args:
        scene: viser's, of the server.
        model, roles: what is shown.
    """

    def __init__(self, scene: Any, model: Model, roles: Roles) -> None:
        self._scene, self._model, self._roles = scene, model, roles
        self._drawn: list[tuple[int, Surface, Array, Array]] = []
        self._hidden: list[Any] = []
        self._soft = {
            geom.name
            for body in model.description.bodies
            for geom in body.geoms
            if geom.soft is not None
        }
        self._visual: list[Any] = []
        scene.set_up_direction(tuple(roles.up))
        self._light()
        self._bodies = [
            scene.add_frame(f"/model/{_node(name)}", show_axes=False) for name in model.body_names
        ]
        self._add_shapes()
        self._arrows = {
            name: scene.add_arrows(
                f"/forces/{name}",
                np.zeros((1, 2, 3)),
                rgb(colour),
                visible=False,
                **self._widths(),
            )
            for name, colour in (("exact", FORCE), ("smoothed", _SMOOTHED))
        }
        self._cones = self._lines("/cones", np.zeros((1, 2, 3)), FORCE, 1.0)
        self._cones.visible = False
        self._patches: dict[int, Any] = {}
        self.typical = 0.0
        self.most_pressure = 0.0

    def _light(self) -> None:
        """Lights of our own: those of the library fade colours, and more so on saved pages than live."""
        scene, roles = self._scene, self._roles
        scene.configure_environment_map(None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_ambient("/lights/around", intensity=1.2)
        towards = roles.eye - roles.centre
        side = np.cross(roles.up, towards)
        for name, place, intensity in (
            ("key", roles.eye + side + np.linalg.norm(towards) * roles.up, 2.2),
            ("fill", roles.eye - 1.5 * side, 0.7),
        ):
            scene.add_light_directional(
                f"/lights/{name}", intensity=intensity, position=tuple(place - roles.centre)
            )

    def _widths(self) -> dict[str, float]:
        size = self._roles.size
        return {
            "shaft_radius": 0.006 * size,
            "head_radius": 0.014 * size,
            "head_length": 0.035 * size,
        }

    # ------------------------------------------------------------------------------------------ the model

    def _add_shapes(self) -> None:
        model, roles = self._model, self._roles
        paired = {n for pair in model.description.pairs for n in (pair.geom_a, pair.geom_b)}
        pressing = self._pressing()
        index = 0
        for b, body in enumerate(model.description.bodies):
            seen = any(is_visual(geom, paired) for geom in body.geoms)
            pressed = b > 0 and any(geom.name in pressing for geom in body.geoms)
            for geom in body.geoms:
                size = np.asarray(model.parameters.geom_size[index])
                index += 1
                surface = surface_of(model, geom, size, 1.5 * roles.size)
                visual = is_visual(geom, paired)
                self._add_shape(b, geom, surface, visual, seen and not visual, pressed)

    def _pressing(self) -> set[str]:
        """Names of the shapes that soft ones can press on, and of these."""
        names = self._model.geom_names
        return {
            names[side]
            for pair in self._model.pair_geom
            if self._soft.intersection(names[geom] for geom in pair)
            for side in pair
        }

    def _add_shape(
        self, b: int, geom: Geom, surface: Surface, visual: bool, hidden: bool, pressed: bool
    ) -> None:
        roles = self._roles
        *channels, opacity = colour_of(geom, roles.kind, roles.limb, b)
        colour = tuple(round(255 * channel) for channel in channels)
        if pressed:
            opacity = min(opacity, _SOFT)
        name = f"/model/{_node(self._model.body_names[b])}/{_node(geom.name)}"
        pos, quat = np.asarray(geom.pos), np.asarray(geom.quat)
        handle = self._add(name, surface, colour, opacity, pos, quat)
        handle.visible = not hidden
        if visual:
            self._visual.append(handle)
        elif hidden:
            self._hidden.append(handle)
        if not hidden and b in roles.objects:
            self._drawn.append((b, surface, pos, quat))
            dark = tuple(round(0.55 * c) for c in colour)
            self._outline(f"{name}/lines", surface, dark, 1.002)

    def _add(
        self, name: str, surface: Surface, colour: Any, opacity: float, pos: Array, quat: Array
    ) -> Any:
        place = {"position": tuple(pos), "wxyz": tuple(quat)}
        if not len(surface.faces):
            return self._scene.add_point_cloud(
                name,
                surface.vertices.astype(np.float32),
                colour,
                point_size=0.01 * self._roles.size,
                point_shape="circle",
                **place,
            )
        return self._scene.add_mesh_simple(
            name,
            surface.vertices.astype(np.float32),
            surface.faces,
            color=colour,
            opacity=None if opacity >= 1.0 else opacity,
            flat_shading=surface.flat,
            side="double",
            **place,
        )

    def _outline(self, name: str, surface: Surface, colour: Any, scale: float) -> None:
        if len(surface.lines):
            self._scene.add_line_segments(
                name,
                (scale * surface.lines).astype(np.float32),
                colour,
                thickness=1.5,
                thickness_units="screen",
            )

    @property
    def has_visuals(self) -> bool:
        """Whether the file has shapes that are there to be seen only."""
        return bool(self._visual)

    def show_collision(self, shown: bool) -> None:
        """Show the shapes that collide in place of those that are there to be seen only, or not."""
        for handle in self._hidden:
            handle.visible = shown
        for handle in self._visual:
            handle.visible = not shown

    def place(self, q: Array) -> None:
        """Move all bodies to where a configuration has them."""
        pos, rot = self._model.body_poses(q)
        for handle, p, quaternion in zip(self._bodies, pos, _quaternions(rot)):
            handle.position = tuple(p)
            handle.wxyz = tuple(quaternion)

    # ------------------------------------------------------------------------------------------ over it

    def draw_forces(self, name: str, forces: Forces | None) -> None:
        """Arrows of "exact" or "smoothed" forces, with the friction cones of the exact ones; None hides them."""
        shown = forces is not None and len(forces) > 0
        if shown:
            assert forces is not None
            typical = self.typical or float(np.median(np.linalg.norm(forces.forces, axis=1)))
            ends = arrows(forces, typical, _ARROW * self._roles.size)
            self._arrows[name].points = ends.astype(np.float32)
            if name == "exact":
                lines = cone_lines(forces, _CONE * self._roles.size)
                self._cones.points = lines.astype(np.float32)
        self._arrows[name].visible = shown
        if name == "exact":
            self._cones.visible = shown

    def draw_patches(self, surfaces: Sequence[ContactSurface]) -> None:
        """Where soft geometries press, coloured by pressure; without contact nothing."""
        most = self.most_pressure or highest_pressure(surfaces)
        meshes = bands(surfaces, self._soft, most, _LIFT * self._roles.size)
        for k, ((vertices, faces), colour) in enumerate(zip(meshes, band_colours())):
            if len(faces):
                self._patches[k] = self._scene.add_mesh_simple(
                    f"/pressure/{k}",
                    vertices.astype(np.float32),
                    faces,
                    color=colour,
                    side="double",
                )
            elif k in self._patches:
                self._patches[k].visible = False

    def draw_goal(self, goal: Array) -> None:
        """The objects' edges where a goal has them."""
        pos, rot = self._model.body_poses(goal)
        lines = []
        for b, surface, own, quat in self._drawn:
            points = _LARGER * surface.lines @ rotation_matrix(quat).T + own
            lines.append(points @ rot[b].T + pos[b])
        if lines:
            self._lines("/goal", np.concatenate(lines), GOAL, 2.5)

    def draw_tree(self, edges: Iterable[tuple[Array, bool]], regrasps: Array) -> None:
        """Ways of the object's middle and of a point on its side, which shows how it turns.

        Args:
            edges: configurations ``(n, nq)`` along each edge, and whether it is on the way to the goal.
            regrasps: ``(m, nq)`` where the grasp changes on that way.
        """
        plain: list[Array] = []
        chosen: list[Array] = []
        for configurations, on_path in edges:
            way = self._ways(configurations)
            pieces = np.stack([way[:-1], way[1:]], axis=2).reshape(-1, 2, 3)
            (chosen if on_path else plain).append(pieces)
        if plain:
            self._lines("/tree/edges", np.concatenate(plain), LIMBS[0], 1.0)
        if chosen:
            self._lines("/tree/path", np.concatenate(chosen), FORCE, 3.0)
        if len(regrasps):
            points = self._ways(regrasps).reshape(-1, 3)
            self._scene.add_point_cloud(
                "/tree/regrasps",
                points.astype(np.float32),
                rgb(REGRASP),
                point_size=0.012 * self._roles.size,
                point_shape="diamond",
            )

    def _ways(self, configurations: Array) -> Array:
        """``(n, 2, 3)`` the object's middle and a point on its side."""
        b = self._roles.object
        assert b is not None
        side = np.array([self._reach(b), 0.0, 0.0])
        poses = [self._model.body_poses(q) for q in configurations]
        return np.array([[pos[b], pos[b] + rot[b] @ side] for pos, rot in poses])

    def _reach(self, body: int) -> float:
        """How far the shapes of a body go along its x axis, m."""
        most = [
            float((surface.vertices @ rotation_matrix(quat).T + own)[:, 0].max())
            for b, surface, own, quat in self._drawn
            if b == body
        ]
        return max(most, default=0.1 * self._roles.size)

    def _lines(self, name: str, segments: Array, colour: str, thickness: float) -> Any:
        return self._scene.add_line_segments(
            name,
            np.asarray(segments, dtype=np.float32),
            rgb(colour),
            thickness=thickness,
            thickness_units="screen",
        )


def _node(name: str) -> str:
    """A name without what separates nodes."""
    return name.replace("/", "|") or "unnamed"


def _quaternions(matrices: Array) -> Array:
    """Unit quaternions ``(n, 4)`` w x y z of rotation matrices ``(n, 3, 3)``."""
    r = matrices
    trace = r[:, 0, 0] + r[:, 1, 1] + r[:, 2, 2]
    # Squares of 2w, 2x, 2y, 2z: the largest one is divided by.
    squares = np.stack([1.0 + trace, *(1.0 + 2.0 * r[:, i, i] - trace for i in range(3))], axis=1)
    products = np.empty((len(r), 4, 4))
    products[:, range(4), range(4)] = squares
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        products[:, 0, 1 + i] = products[:, 1 + i, 0] = r[:, k, j] - r[:, j, k]
        products[:, 1 + j, 1 + k] = products[:, 1 + k, 1 + j] = r[:, k, j] + r[:, j, k]
    largest = squares.argmax(axis=1)
    chosen = products[np.arange(len(r)), largest]
    return np.asarray(chosen / np.linalg.norm(chosen, axis=1, keepdims=True))
