"""MuJoCo's renderer without a window, if the machine has OpenGL."""

from __future__ import annotations

import functools
import os
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

__all__ = ["Offscreen", "is_available"]

_FINER = 2
"""Number of rendered pixels per pixel of the picture, in each direction, for smooth edges of colours and masks."""

_SWITCHED_OFF = ("disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL that switch OpenGL off."""

_SIDE_MOST = 2000
"""Largest number of rendered pixels in each direction."""


def _context_class() -> Any:
    """Return the class of OpenGL contexts: as MUJOCO_GL or a display determine, else EGL or OSMesa."""
    asked = os.environ.get("MUJOCO_GL", "").lower()
    if asked in _SWITCHED_OFF:
        raise ImportError(f"MUJOCO_GL is {asked!r}")
    if asked or os.environ.get("DISPLAY"):
        return import_module("mujoco").GLContext
    errors: list[Exception] = []
    for name in ("egl", "osmesa"):
        try:
            return import_module(f"mujoco.{name}").GLContext
        except Exception as error:  # missing libraries raise errors of many types
            errors.append(error)
    raise ImportError(f"no OpenGL without a display: {'; '.join(map(str, errors))}")


@functools.cache
def is_available() -> bool:
    """Return whether OpenGL works on this machine, by drawing one pixel."""
    try:
        mujoco = import_module("mujoco")
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        with Offscreen(model, 2, 2) as screen:
            screen.image(np.zeros(3), 0.0, 0.0, 1.0)
    except Exception:  # drivers raise errors of many types, and Matplotlib can draw instead
        return False
    return True


class Offscreen:
    """Images of a compiled model at rest; ``with`` or :meth:`close` releases the graphics memory.

    Args:
        model: an ``MjModel``; view settings are written into it.
        width, height: pixels of an image; images are smaller, with the same shape, if the renderer
            has too little memory.
    """

    def __init__(self, model: Any, width: int, height: int) -> None:
        self._mujoco: Any = import_module("mujoco")
        less = min(1.0, _SIDE_MOST / (_FINER * max(width, height)))
        self._size = tuple(max(1, int(less * side)) * _FINER for side in (width, height))
        model.vis.global_.offwidth, model.vis.global_.offheight = self._size
        model.vis.global_.orthographic = 1
        model.vis.quality.offsamples = 0  # smoothing is done by the finer pixels
        self.model = model
        self.data = self._mujoco.MjData(model)
        self._gl = _context_class()(*self._size)
        self._gl.make_current()
        scale = self._mujoco.mjtFontScale.mjFONTSCALE_100
        self._context = self._mujoco.MjrContext(model, scale.value)
        self._scene = self._mujoco.MjvScene(model, maxgeom=4 * model.ngeom + 100)
        self._option = self._mujoco.MjvOption()

    def __enter__(self) -> Offscreen:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the graphics memory."""
        self._gl.make_current()
        self._context.free()
        self._gl.free()

    def image(
        self,
        centre: Array,
        azimuth: float,
        elevation: float,
        tall: float,
        groups: tuple[int, ...] = (0,),
    ) -> npt.NDArray[np.float32]:
        """Render an image ``(height, width, 4)``, 0 to 1, in parallel projection, with a transparent background.

        Args:
            centre: ``(3,)`` centre of the image, m.
            azimuth, elevation: direction of view, degrees.
            tall: height of the image, m.
            groups: geometry groups that are shown.
        """
        mujoco = self._mujoco
        self.model.vis.global_.fovy = tall
        self._option.geomgroup[:] = [group in groups for group in range(6)]
        camera = mujoco.MjvCamera()
        camera.lookat[:] = centre
        camera.distance = 4.0 * self.model.stat.extent
        camera.azimuth, camera.elevation = azimuth + 180.0, -elevation
        self._gl.make_current()
        mujoco.mj_forward(self.model, self.data)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            self.model, self.data, self._option, None, camera, everything, self._scene
        )
        colours = self._pixels()
        flags = self._scene.flags
        before = flags.copy()
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = 1
        red, green, blue = np.moveaxis(self._pixels(), 2, 0)
        covered = (red | green | blue) > 0
        flags[:] = before
        return _coarse(colours, covered)

    def _pixels(self) -> npt.NDArray[np.uint8]:
        mujoco = self._mujoco
        width, height = self._size
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        mujoco.mjr_render(mujoco.MjrRect(0, 0, width, height), self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, mujoco.MjrRect(0, 0, width, height), self._context)
        return pixels[::-1]


def _coarse(
    colours: npt.NDArray[np.uint8], covered: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """Average tiles of pixels over those that are covered.

    Sums of integers take a fifth of the time of NumPy's mean over two axes.
    """
    height, width = (side // _FINER for side in covered.shape)
    share = np.zeros((height, width, 1), dtype=np.uint16)
    total = np.zeros((height, width, 3), dtype=np.uint16)
    for i in range(_FINER):
        for j in range(_FINER):
            there = covered[i::_FINER, j::_FINER, None]
            share += there
            total += colours[i::_FINER, j::_FINER] * there
    result = np.empty((height, width, 4), dtype=np.float32)
    np.divide(total, 255.0 * np.maximum(share, 1), out=result[:, :, :3], casting="unsafe")
    np.divide(share, float(_FINER**2), out=result[:, :, 3:], casting="unsafe")
    return result
