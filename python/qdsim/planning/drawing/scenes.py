"""The kind of scene that draws a model: flat, 3D with Matplotlib, or 3D with MuJoCo's renderer."""

from __future__ import annotations

import numpy.typing as npt

from qdsim.arguments import instance, one_of
from qdsim.model import Model
from qdsim.planning.drawing.offscreen import is_available
from qdsim.planning.drawing.planar import PlanarScene, is_flat
from qdsim.planning.drawing.rendered import RenderedScene
from qdsim.planning.drawing.spatial import SpatialScene

__all__ = ["BACKENDS", "scene_of"]

BACKENDS = ("matplotlib", "mujoco")


def scene_of(
    model: Model,
    object: str,
    configurations: npt.ArrayLike | None = None,
    goal: npt.ArrayLike | None = None,
    *,
    backend: str | None = None,
    geometry: str = "visual",
) -> PlanarScene | SpatialScene:
    """Choose the scene that draws a model: flat if all joints move in one plane, else in space.

    Flat pictures support discs, and boxes of the object; planar models with other shapes are seen
    nearly along the plane's normal.

    Args:
        model: the model.
        object: body of the manipulated object.
        configurations, goal: content of the pictures, as for :class:`SpatialScene`.
        backend: renderer of 3D views, "mujoco" (needs OpenGL) or "matplotlib"; None: the first one
            that works.
        geometry: "visual" or "collision", as for :class:`SpatialScene`.

    Raises:
        ImportError: for "mujoco" without OpenGL.
    """
    instance("model", model, Model)
    instance("object", object, str)
    backend = None if backend is None else one_of("backend", backend, BACKENDS)
    normal = model.planar_normal
    if normal is not None and is_flat(model, object):
        return PlanarScene(model, object)
    views = _views(backend)
    if normal is None:
        return views(model, object, configurations, goal, geometry=geometry)
    x, y, z = (abs(float(c)) for c in normal)
    azimuth = 0.0 if x > max(y, z) else -90.0
    elevation = 60.0 if z > max(x, y) else 25.0
    return views(
        model, object, configurations, azimuth=azimuth, elevation=elevation, geometry=geometry
    )


def _views(backend: str | None) -> type[SpatialScene]:
    if backend == "matplotlib":
        return SpatialScene
    if not is_available():
        if backend == "mujoco":
            raise ImportError(
                "backend: MuJoCo's renderer finds no OpenGL (Debian: libegl1 or libosmesa6)"
            )
        return SpatialScene
    return RenderedScene
