"""Pictures of environments: configurations and goals through one camera that never moves."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.envs.rules import displaced
from qdsim.planning.task.task import Task

__all__ = ["Camera"]

_INCHES, _DPI = 4.8, 100


class Camera:
    """Sees a task's start, its goal and the box in which the object is to move, the same at every reset.

    Args:
        task: the task.

    Raises:
        ImportError: without Matplotlib.
    """

    def __init__(self, task: Task) -> None:
        from qdsim.planning.drawing.planar import new_figure
        from qdsim.planning.drawing.scenes import scene_of

        shifts = ~task.space.rotation
        corners = [np.where(shifts, ends, 0.0) for ends in product(*zip(task.lower, task.upper))][
            :: 2 ** int(task.space.rotation.sum())
        ]
        seen = np.vstack([task.start, task.goal, displaced(task, task.start, np.array(corners))])
        self._scene = scene_of(task.model, task.object, seen, task.goal, backend="matplotlib")
        low, high = self._scene.window(seen)
        room = 0.06 * float((high - low).max())  # the object turns
        self._window = low - room, high + room
        self._figure = new_figure(_INCHES, _INCHES, dpi=_DPI)
        self._axes = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))

    def picture(self, q: Array, goal: Array) -> Any:
        """A configuration ``(nq,)`` and the outline of a goal, as bytes ``(height, width, 3)``."""
        ax, canvas = self._axes, self._figure.canvas
        ax.clear()
        ax.axis("off")
        self._scene.prepare(ax, *self._window)
        self._scene.draw_goal(ax, goal)
        self._scene.draw(ax, q)
        canvas.draw()
        pixels: Any = canvas.buffer_rgba()  # type: ignore[attr-defined]
        return np.asarray(pixels)[:, :, :3].copy()
