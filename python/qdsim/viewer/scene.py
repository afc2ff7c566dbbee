"""The nodes of a model in a browser's scene, with overlays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.contact_surfaces import ContactSurface
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.style import FORCE, GOAL, LIMBS, REGRASP, STYLE
from qdsim.viewer.forces import Forces, arrows, cone_lines
from qdsim.viewer.needs import need
from qdsim.viewer.patches import band_colours, bands, highest_pressure
from qdsim.viewer.quaternions import quaternions
from qdsim.viewer.roles import Roles, rgb
from qdsim.viewer.shapes import Shape, shapes_of
from qdsim.viewer.stage import Branches
from qdsim.viewer.surfaces import Surface
from qdsim.viewer.tones import LIGHT, toned

__all__ = ["LAYERS", "Scene"]

_SMOOTHED = "#1E6FB8"
"""Colour of the forces of a smoothed step, which act at a distance."""

LAYERS = ("forces", "cones", "goal", "tree", "ground")
"""Layers that a page can hide."""


class Scene:
    """The nodes of a model: bodies are frames, with shapes as meshes below them.

    Goal, tree and forces are nodes of their own, which a page can hide.

    Args:
        scene: The viser scene of the server.
        model: The model.
        roles: The roles of its bodies.
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
        self._solid: list[tuple[Any, float | None]] = []
        self._dragged: list[tuple[int, Any]] = []
        self._lift = roles.lift
        self._ball = STYLE.arrow * roles.size / 32.0  # radius of an arrow, and of a node
        scene.set_up_direction(tuple(roles.up))
        self._layers = {name: scene.add_frame(f"/{name}", show_axes=False) for name in LAYERS}
        self._light()
        self._ground()
        self._bodies = [
            scene.add_frame(f"/model/{_node(name)}", show_axes=False) for name in model.body_names
        ]
        self._add_shapes()
        self._arrows = {
            name: scene.add_arrows(
                f"/forces/{name}",
                np.zeros((1, 2, 3)),
                toned(rgb(colour), LIGHT, linear=True),
                visible=False,
                **self._widths(),
            )
            for name, colour in (("exact", FORCE), ("smoothed", _SMOOTHED))
        }
        self._cones = self._lines("/cones/exact", np.zeros((1, 2, 3)), FORCE, 1.0)
        self._cones.visible = False
        self._patches: dict[int, Any] = {}
        self.typical = 0.0
        self.most_pressure = 0.0

    def _light(self) -> None:
        """Replace viser's lights by soft ones that add up to ``LIGHT`` on a surface that faces them."""
        scene, roles = self._scene, self._roles
        scene.configure_environment_map(None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_ambient("/lights/around", intensity=0.55 * LIGHT * np.pi)
        towards = roles.eye - roles.centre
        side = np.cross(roles.up, towards)
        for name, place, intensity in (
            ("key", roles.eye + side + np.linalg.norm(towards) * roles.up, 0.45 * LIGHT * np.pi),
            ("fill", roles.eye - 1.5 * side, 0.15 * LIGHT * np.pi),
        ):
            scene.add_light_directional(
                f"/lights/{name}",
                intensity=intensity,
                position=tuple(place - roles.centre),
                cast_shadow=name == "key",
            )

    def _widths(self) -> dict[str, float]:
        return {
            "shaft_radius": self._ball,
            "head_radius": 2.0 * self._ball,
            "head_length": 6.0 * self._ball,
        }

    # ------------------------------------------------------------------------------------------ the model

    def _add_shapes(self) -> None:
        model, roles = self._model, self._roles
        for shape in shapes_of(model, roles):
            if shape.plane and shape.body == 0:
                continue  # the ground is drawn separately
            name = f"/model/{_node(model.body_names[shape.body])}/{_node(shape.name)}"
            handles = self._add(name, shape)
            for handle in handles:
                handle.visible = shape.layer != "collision"
            if shape.body in roles.objects and len(shape.surface.faces):
                self._dragged += [(shape.body, handle) for handle in handles]
            if shape.layer == "visual":
                self._visual += handles
            elif shape.layer == "collision":
                self._hidden += handles
            if shape.outlined:
                self._drawn.append((shape.body, shape.surface, shape.pos, shape.quat))
                dark = tuple(round(140 * c) for c in shape.colour[:3])
                self._outline(f"{name}/lines", shape.surface, dark, 1.002)

    def _add(self, name: str, shape: Shape) -> list[Any]:
        """Add the nodes of a shape, one for each of its shades."""
        place = {"position": tuple(shape.pos), "wxyz": tuple(shape.quat)}
        *channels, opacity = shape.colour
        surface = shape.surface
        colour = [255.0 * c for c in channels]
        if not len(surface.faces):
            cloud = self._scene.add_point_cloud(
                name,
                surface.vertices.astype(np.float32),
                toned(colour),
                point_size=2.0 * self._ball,
                point_shape="circle",
                **place,
            )
            return [cloud]
        tones = np.zeros(len(surface.faces), dtype=int) if shape.tones is None else shape.tones
        see_through = None if opacity >= 1.0 else opacity
        made = [
            self._scene.add_mesh_simple(
                f"{name}/{tone}" if tone else name,
                surface.vertices.astype(np.float32),
                surface.faces[tones == tone],
                color=toned([(STYLE.shade if tone else 1.0) * c for c in colour], LIGHT),
                opacity=see_through,
                flat_shading=surface.flat,
                side="double",
                receive_shadow=False,  # three.js draws stripes of shadow on the shape itself
                **({} if tone else place),
            )
            for tone in np.unique(tones)
        ]
        self._solid += [(handle, see_through) for handle in made]
        return made

    def _outline(self, name: str, surface: Surface, colour: Any, scale: float) -> None:
        if len(surface.lines):
            self._scene.add_line_segments(
                name,
                (scale * surface.lines).astype(np.float32),
                toned(colour),
                thickness=2.0 * STYLE.line,
                thickness_units="screen",
            )

    def _ground(self) -> None:
        """Add a grid that receives shadows and fades with the distance; its cells measure 1, 2 or 5 times 10^k m."""
        roles = self._roles
        third = roles.size / 3.0
        cell = 10.0 ** np.floor(np.log10(third))
        cell *= max(k for k in (1.0, 2.0, 5.0) if k * cell <= third)
        normal = roles.floor[1]
        turn = np.array([1.0 + normal[2], -normal[1], normal[0], 0.0])
        foot = roles.centre + ((roles.floor[0] - roles.centre) @ normal) * normal
        self._scene.add_grid(
            "/ground/grid",
            width=6.0 * roles.size,
            height=6.0 * roles.size,
            cell_size=0.5 * cell,
            cell_color=(228, 233, 238),
            section_size=cell,
            section_color=(203, 212, 220),
            fade_distance=4.0 * roles.size,
            fade_strength=2.0,
            fade_from="origin",
            shadow_opacity=0.25,
            position=tuple(foot),
            wxyz=tuple(turn / np.linalg.norm(turn)),
            plane="xy",
        )

    def show_layer(self, name: str, shown: bool) -> None:
        """Show one of ``LAYERS``, or hide it until it is shown again."""
        self._layers[name].visible = shown

    def on_drag(self, pulled: Callable[[int, Array | None, Array | None], None]) -> None:
        """Report drags of unactuated bodies with the left button.

        Args:
            pulled: Called with the body, the dragged point and its target, ``(3,)`` m each; at the
                release, with the body and None twice.
        """
        for body, handle in self._dragged:
            handle.on_drag(functools.partial(_told, body, pulled))

    @property
    def has_visuals(self) -> bool:
        """Whether the file has visual geometries."""
        return bool(self._visual)

    def show_collision(self, shown: bool) -> None:
        """Show collision geometries in place of visual ones, or the reverse."""
        for handle in self._hidden:
            handle.visible = shown
        for handle in self._visual:
            handle.visible = not shown

    def look_through(self, glassy: bool) -> None:
        """Show bodies transparent, so that contacts behind them are visible, or opaque."""
        for handle, opacity in self._solid:
            handle.opacity = min(STYLE.ghost, opacity or 1.0) if glassy else opacity

    def place(self, q: Array) -> None:
        """Move all bodies to a configuration."""
        pos, rot = self._model.body_poses(q)
        for handle, p, quaternion in zip(self._bodies, pos, quaternions(rot)):
            handle.position = tuple(p)
            handle.wxyz = tuple(quaternion)

    # ------------------------------------------------------------------------------------------ overlays

    def draw_forces(self, name: str, forces: Forces | None) -> None:
        """Draw arrows of "exact" or "smoothed" forces, with the friction cones of the exact ones;
        None hides them."""
        shown = forces is not None and len(forces) > 0
        if shown:
            assert forces is not None
            forces = replace(forces, points=forces.points + self._lift)
            typical = self.typical or float(np.median(np.linalg.norm(forces.forces, axis=1)))
            ends = arrows(forces, typical, STYLE.arrow * self._roles.size)
            self._arrows[name].points = ends.astype(np.float32)
            if name == "exact":
                lines = cone_lines(forces, 8.0 * self._ball)
                self._cones.points = lines.astype(np.float32)
        self._arrows[name].visible = shown
        if name == "exact":
            self._cones.visible = shown

    def draw_patches(self, surfaces: Sequence[ContactSurface]) -> None:
        """Draw contact surfaces of soft geometries, coloured by pressure; nothing without contact."""
        most = self.most_pressure or highest_pressure(surfaces)
        meshes = bands(surfaces, self._soft, most, self._roles.patch_lift)
        for k, ((vertices, faces), colour) in enumerate(zip(meshes, band_colours())):
            if len(faces):
                self._patches[k] = self._scene.add_mesh_simple(
                    f"/pressure/{k}",
                    vertices.astype(np.float32),
                    faces,
                    color=toned(colour, LIGHT),
                    side="double",
                )
            elif k in self._patches:
                self._patches[k].visible = False

    def draw_goal(self, goal: Array) -> None:
        """Draw the objects' edges at a goal."""
        pos, rot = self._model.body_poses(goal)
        lines = []
        for b, surface, own, quat in self._drawn:
            points = (1.0 + STYLE.apart) * surface.lines @ rotation_matrix(quat).T + own
            lines.append(points @ rot[b].T + pos[b])
        if lines:
            self._lines("/goal/edges", np.concatenate(lines), GOAL, 2.0)

    def draw_tree(self, tree: Branches, clicked: Callable[[int], None]) -> None:
        """Draw edges, the path to the goal with its regrasps, and nodes that can be clicked.

        Args:
            tree: The tree.
            clicked: Called with the index of a node.
        """
        if len(tree.plain):
            self._lines("/tree/edges", tree.plain + self._lift, LIMBS[0], 1.0)
        if len(tree.chosen):
            self._lines("/tree/path", tree.chosen + self._lift, FORCE, 3.0)
        if len(tree.regrasps):
            self._scene.add_point_cloud(
                "/tree/regrasps",
                (tree.regrasps + self._lift).astype(np.float32),
                toned(rgb(REGRASP)),
                point_size=2.0 * self._ball,
                point_shape="diamond",
            )
        ball = need("trimesh").creation.icosphere(1, self._ball)
        nodes = self._scene.add_batched_meshes_simple(
            "/tree/nodes",
            np.asarray(ball.vertices, dtype=np.float32),
            np.asarray(ball.faces, dtype=np.uint32),
            batched_wxyzs=np.tile(np.array([1.0, 0.0, 0.0, 0.0]), (len(tree.nodes), 1)),
            batched_positions=tree.nodes + self._lift,
            batched_colors=toned(rgb(LIMBS[0]), LIGHT),
        )
        nodes.on_click(lambda event: clicked(int(event.instance_index)))

    def _lines(self, name: str, segments: Array, colour: str, thickness: float) -> Any:
        return self._scene.add_line_segments(
            name,
            np.asarray(segments, dtype=np.float32),
            toned(rgb(colour)),
            thickness=thickness * STYLE.line,
            thickness_units="screen",
        )


def _told(body: int, pulled: Callable[..., None], event: Any) -> None:
    if event.phase == "end":
        pulled(body, None, None)
    else:
        pulled(body, np.array(event.start_position), np.array(event.end_position))


def _node(name: str) -> str:
    """Return a name without the slashes that separate nodes."""
    return name.replace("/", "|") or "unnamed"
