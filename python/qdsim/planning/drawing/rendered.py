"""Configurations of a 3D model drawn by MuJoCo's renderer, in the views of :mod:`.spatial`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import Geom, HeightField
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.colours import channels, colour_of, is_shown, opaque, says_colour
from qdsim.planning.drawing.offscreen import Offscreen
from qdsim.planning.drawing.patches import draw_patches
from qdsim.planning.drawing.spatial import SpatialScene
from qdsim.planning.drawing.style import GROUND, LIMBS, OBJECT, OBJECT_DARK, PAPER, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RenderedScene"]

_GROUPS = {"world": 0, "object": 1, "robot": 2}
"""Groups of geometries by the kind of their bodies."""

_LIGHT = np.array([-0.2, 0.2, -1.0])
_ROUND = ("sphere", "capsule", "cylinder", "ellipsoid")
"""Round objects with a colour of their own get a second, darker colour, so that rotations are visible."""


class RenderedScene(SpatialScene):
    """Draws like :class:`SpatialScene`, with MuJoCo's renderer: round shapes, shadows and correct
    occlusion.

    Goal and forces are drawn on its images. Robots look as in their files.

    Args:
        model, object, configurations, goal, azimuth, elevation, geometry: as there.

    Raises:
        ImportError: without OpenGL.
        ValueError: as there.
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
        view: dict[str, Any] = {"azimuth": azimuth, "elevation": elevation, "geometry": geometry}
        super().__init__(model, object, configurations, goal, **view)
        towards = self.view[2]
        self._azimuth = float(np.degrees(np.arctan2(towards[1], towards[0])))
        self._elevation = float(np.degrees(np.arcsin(np.clip(towards[2], -1.0, 1.0))))
        self._compiled = _compiled(self)
        self._rgba = self._compiled.geom_rgba.copy()
        self._window = (np.zeros(2), np.ones(2))
        self._size = (0, 0)
        self._screen: Offscreen | None = None
        self._free: Callable[[], Any] | None = None

    def prepare(self, ax: Axes, low: Array, high: Array) -> None:
        """Set up equal axes without ticks around a window."""
        super().prepare(ax, low, high)
        self._window = (low, high)

    def draw(self, ax: Axes, q: Array, *, robot: str = "solid", alpha: float = 1.0) -> None:
        """Draw everything; ``robot`` is "solid", "ghost" (the robot alone, faintly) or "none"."""
        pos, rot = self.model.body_poses(q)
        if robot == "ghost":
            self.draw_robot(ax, pos, rot, ghost=True, alpha=alpha)
            return
        kinds = (
            ["world", "object", "robot"]
            if robot != "none" and alpha >= 1.0
            else ["world", "object"]
        )
        self._show(ax, pos, rot, kinds, 1.0, zorder=2)
        if robot != "none" and alpha < 1.0:
            self.draw_robot(ax, pos, rot, ghost=False, alpha=alpha)
        draw_patches(ax, self.model, q, self.view[:2], alpha, self.most_pressure)

    def draw_robot(self, ax: Axes, pos: Array, rot: Array, *, ghost: bool, alpha: float) -> None:
        """Draw the robot alone, at poses of its bodies.

        A faint robot is behind everything except floors and walls, which are in one image with
        everything in front of them.
        """
        share = alpha * (STYLE.ghost if ghost else 1.0)
        behind = 3 if self.floors() or any(self.kind[s.body] == "world" for s in self.solids) else 1
        self._show(ax, pos, rot, ["robot"], share, zorder=behind if ghost else 3)

    def _show(
        self, ax: Axes, pos: Array, rot: Array, kinds: list[str], alpha: float, zorder: float
    ) -> None:
        low, high = self._window
        wide, tall = (round(float(side)) for side in ax.get_window_extent().size)
        centre = np.array([*(0.5 * (low + high)), float(np.mean(pos @ self.view[2]))]) @ self.view
        screen = self._screen_of(wide, tall)
        for b, (place, turn) in enumerate(zip(pos, rot)):
            screen.data.mocap_pos[b] = place
            import_module("mujoco").mju_mat2Quat(screen.data.mocap_quat[b], turn.ravel())
        # The resolution of shadows depends on the extent, which is therefore as small as possible.
        screen.model.stat.extent = 1.5 * float((high - low).max())
        screen.model.light_pos[0] = centre - screen.model.stat.extent * _LIGHT
        self._open_view(screen)
        groups = tuple(_GROUPS[kind] for kind in kinds)
        image = screen.image(centre, self._azimuth, self._elevation, float((high - low)[1]), groups)
        image[:, :, 3] *= alpha
        ax.imshow(
            image,
            extent=(low[0], high[0], low[1], high[1]),
            zorder=zorder,
            interpolation="antialiased",
        )
        super().prepare(ax, low, high)

    def _open_view(self, screen: Offscreen) -> None:
        """Hide walls and tables between the camera and moving bodies."""
        mujoco: Any = import_module("mujoco")
        screen.model.geom_rgba[:] = self._rgba
        mujoco.mj_kinematics(screen.model, screen.data)
        still = np.arange(6) == _GROUPS["world"]
        towards, hit = np.array(self.view[2]), np.array([-1], dtype=np.int32)
        middles = screen.data.geom_xpos[screen.model.geom_group != _GROUPS["world"]]
        for place in middles:  # not body frames, which may be inside the table
            while True:
                mujoco.mj_ray(
                    screen.model, screen.data, place, towards, still.astype(np.uint8), 1, -1, hit
                )
                if hit[0] < 0:
                    break
                screen.model.geom_rgba[hit[0], 3] = 0.0  # rays pass through hidden geometries

    def _screen_of(self, wide: int, tall: int) -> Offscreen:
        """Return a renderer for images of a size; it is kept, because an OpenGL context takes
        longer than a picture."""
        if self._screen is None or self._size != (wide, tall):
            if self._free is not None:
                self._free()
            self._screen, self._size = Offscreen(self._compiled, wide, tall), (wide, tall)
            self._free = weakref.finalize(self, self._screen.close)
        return self._screen


def _compiled(scene: SpatialScene) -> Any:
    """Compile an ``MjModel`` with the model's geometries, in which each body is a mocap body."""
    mujoco: Any = import_module("mujoco")
    model = scene.model
    spec = mujoco.MjSpec()
    spec.compiler.discardvisual = False
    _light(spec)
    _paint(spec, mujoco)
    for mesh in model.description.meshes:
        faces = mesh.faces if len(mesh.faces) else mesh.hull_faces
        spec.add_mesh(
            name=mesh.name,
            uservert=np.asarray(mesh.vertices, dtype=np.float64).ravel().tolist(),
            userface=np.asarray(faces, dtype=np.int32).ravel().tolist(),
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
        )
    paired = {n for pair in model.description.pairs for n in (pair.geom_a, pair.geom_b)}
    index = 0
    for b, body in enumerate(model.description.bodies):
        place = spec.worldbody.add_body(name=f"body {b}", mocap=True)
        for geom in body.geoms:
            size = np.asarray(model.parameters.geom_size[index])
            index += 1
            surface = geom.mesh
            if geom.hfield is not None:
                surface = f"hfield {index}"
                _add_hfield(spec, surface, geom.hfield)
            if geom.cloud is not None:
                surface = f"cloud {index}"
                spec.add_mesh(  # its convex hull
                    name=surface,
                    uservert=np.asarray(geom.cloud.points, dtype=np.float64).ravel().tolist(),
                    inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
                )
            if is_shown(geom, body, paired, scene.geometry):
                _add(
                    spec,
                    place,
                    mujoco,
                    geom,
                    size,
                    colour_of(geom, scene.kind, scene.limb, b),
                    scene.kind[b],
                    surface,
                )
        for link in scene.links:
            if link.body == b:
                place.add_geom(
                    type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                    fromto=[*link.start.tolist(), *link.end.tolist()],
                    size=[link.radius, 0.0, 0.0],
                    rgba=opaque(LIMBS[scene.limb.get(b, 0) % len(LIMBS)]),
                    group=_GROUPS["robot"],
                    contype=0,
                    conaffinity=0,
                    mass=0.0,
                )
    _floors(spec, mujoco, scene)
    return spec.compile()


def _add_hfield(spec: Any, name: str, field: HeightField) -> None:
    """Add a height field.

    Heights are relative to the lowest one, which therefore determines the position of the geometry.
    """
    low, rise = float(field.heights.min()), float(np.ptp(field.heights))
    rows, columns = field.heights.shape
    spec.add_hfield(
        name=name,
        nrow=rows,
        ncol=columns,
        size=[*field.size, rise or field.base, field.base],
        userdata=((field.heights.ravel() - low) / (rise or 1.0)).tolist(),
    )


def _floors(spec: Any, mujoco: Any, scene: SpatialScene) -> None:
    """Add squares for the world's planes, below the scene."""
    for square in scene.floors():
        first, up = square[1] - square[0], square[3] - square[0]
        half = 0.5 * float(np.linalg.norm(first))
        frame = np.array([first, up, np.cross(first, up) / (2.0 * half)]).T / (2.0 * half)
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, frame.ravel())
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            pos=square.mean(axis=0).tolist(),
            quat=quat.tolist(),
            size=[half, half, 0.1 * half],
            rgba=opaque(GROUND),
            group=_GROUPS["world"],
            contype=0,
            conaffinity=0,
        )


def _light(spec: Any) -> None:
    """Set bright light from all sides, and one light from above with soft shadows."""
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    spec.visual.headlight.diffuse = [0.45, 0.45, 0.45]
    spec.visual.headlight.specular = [0.1, 0.1, 0.1]
    spec.visual.quality.shadowsize = 4096
    spec.visual.map.shadowclip = 3.0  # with a larger value, floors have spurious shadows
    spec.worldbody.add_light(
        type=import_module("mujoco").mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=_LIGHT.tolist(),
        diffuse=[0.3, 0.3, 0.3],
    )


def _paint(spec: Any, mujoco: Any) -> None:
    """Set the background to the colour of paper."""
    paper = list(channels(PAPER))
    spec.add_texture(
        name="paper", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=paper, rgb2=paper, width=16, height=16,
    )  # fmt: skip


def _two_colours(spec: Any, mujoco: Any, light: Sequence[float], dark: Sequence[float]) -> str:
    """Return the name of a material with two colours, which makes rotations of a ball visible."""
    name = f"two {[round(float(c), 3) for c in light]}"
    if spec.material(name) is None:
        spec.add_texture(
            name=name, type=mujoco.mjtTexture.mjTEXTURE_CUBE, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
            rgb1=list(light), rgb2=list(dark), width=64, height=64,
        )  # fmt: skip
        spec.add_material(name=name).textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    return name


def _add(
    spec: Any,
    place: Any,
    mujoco: Any,
    geom: Geom,
    size: Array,
    rgba: tuple[float, ...],
    kind: str,
    surface: str | None,
) -> None:
    if geom.type == "plane" or (not surface and size[0] <= STYLE.corner):
        return
    red, green, blue, alpha = rgba
    shape, pos = geom.type.upper(), np.asarray(geom.pos)
    if geom.hfield is not None:
        pos = pos + float(geom.hfield.heights.min()) * rotation_matrix(geom.quat)[:, 2]
    elif surface:
        shape = "MESH"
    added = place.add_geom(
        type=getattr(mujoco.mjtGeom, f"mjGEOM_{shape}"),
        pos=pos.tolist(),
        quat=list(geom.quat),
        size=[float(s) for s in size],
        rgba=[red, green, blue, min(alpha, STYLE.wall) if kind == "world" else alpha],
        group=_GROUPS[kind],
        contype=0,
        conaffinity=0,
        mass=0.0,
    )
    if geom.hfield is not None:
        added.hfieldname = surface
    elif surface:
        added.meshname = surface
    own = says_colour(geom)
    if kind == "object" and (not own or geom.type in _ROUND):
        own_colours = (rgba[:3], [STYLE.shade * c for c in rgba[:3]])
        colours = own_colours if own else (channels(OBJECT), channels(OBJECT_DARK))
        added.material = _two_colours(spec, mujoco, *colours)
        added.rgba = [1.0, 1.0, 1.0, alpha if own else 1.0]
