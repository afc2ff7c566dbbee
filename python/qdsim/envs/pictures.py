"""Pictures of environments: configurations and goals from a fixed camera, or in a browser."""

from __future__ import annotations

import time
import webbrowser
from itertools import product
from typing import Any

import gymnasium
import numpy as np

from qdsim.array_type import Array
from qdsim.envs.rules import displaced
from qdsim.planning.task.task import Task
from qdsim.showing import window

__all__ = ["Camera", "Window"]


class Camera:
    """A fixed camera on a task's start, its goal and its box.

    Args:
        task: the task.

    Raises:
        ImportError: without Matplotlib.
    """

    def __init__(self, task: Task) -> None:
        from qdsim.planning.drawing.planar import new_figure
        from qdsim.planning.drawing.scenes import scene_of
        from qdsim.planning.drawing.style import STYLE

        seen = _everywhere(task)
        self._scene = scene_of(task.model, task.object, seen, task.goal, backend="matplotlib")
        low, high = self._scene.window(seen)
        room = 0.06 * float((high - low).max())  # for the turning object
        self._window = low - room, high + room
        self._figure = new_figure(STYLE.panel, STYLE.panel, dpi=100)
        self._axes = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))

    def picture(self, q: Array, goal: Array) -> Any:
        """Draw a configuration ``(nq,)`` and the outline of a goal; returns bytes ``(height, width, 3)``."""
        ax, canvas = self._axes, self._figure.canvas
        ax.clear()
        ax.axis("off")
        self._scene.prepare(ax, *self._window)
        self._scene.draw_goal(ax, goal)
        self._scene.draw(ax, q)
        canvas.draw()
        pixels: Any = canvas.buffer_rgba()  # type: ignore[attr-defined]
        return np.asarray(pixels)[:, :, :3].copy()


class Window:
    """A page in a browser that shows episodes; it opens with the first configuration.

    Args:
        task: the task.
        rate: largest number of configurations per second.
    """

    def __init__(self, task: Task, rate: float) -> None:
        self._task, self._period = task, 1.0 / rate
        self._next = 0.0
        self._goal: Array | None = None
        self._viewer: Any = None

    def show(self, q: Array, goal: Array) -> None:
        """Show a configuration ``(nq,)`` and the outline of a goal.

        Raises:
            ImportError: without the extra ``viewer``.
        """
        if self._viewer is None:
            task = self._task
            self._viewer = window(task.model, object=task.object, configurations=_everywhere(task))
            if not webbrowser.open(self._viewer.url):
                gymnasium.logger.warn(f"no browser was found: see {self._viewer.url}")
        if self._goal is None or not np.array_equal(goal, self._goal):
            self._goal = goal.copy()
            self._viewer.add_goal(goal)
        self._viewer.update(q)
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + self._period

    def close(self) -> None:
        """Close the page; may be called twice."""
        if self._viewer is not None:
            self._viewer.close()
        self._viewer = self._goal = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the page out of pickles and copies; a copy opens its own page."""
        return {**self.__dict__, "_viewer": None, "_goal": None}


def _everywhere(task: Task) -> Array:
    """Return the start, the goal, and configurations with the object at the corners of the task's box (n, nq)."""
    shifts = ~task.space.rotation
    corners = [np.where(shifts, ends, 0.0) for ends in product(*zip(task.lower, task.upper))][
        :: 2 ** int(task.space.rotation.sum())
    ]
    return np.vstack([task.start, task.goal, displaced(task, task.start, np.array(corners))])
