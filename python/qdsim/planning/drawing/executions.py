"""Pictures and movies of executions."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from qdsim.arguments import flag, instance, integer, number, path_of
from qdsim.model import Model
from qdsim.planning.drawing.movies import write_frames
from qdsim.planning.drawing.planar import framed, save_figure
from qdsim.planning.drawing.scenes import scene_of
from qdsim.planning.drawing.still import frame_axes
from qdsim.planning.drawing.style import INK, QUIET
from qdsim.planning.drawing.words import left_text
from qdsim.planning.execution.executed_motion import ExecutedMotion
from qdsim.progress import progress_bar

__all__ = ["draw_execution", "write_execution"]


def draw_execution(
    motion: ExecutedMotion,
    model: Model,
    path: str | os.PathLike[str],
    *,
    most: int = 8,
    backend: str | None = None,
) -> None:
    """Draw moments of an execution, each with the goal, the time, what the robot does, and how far
    the object is from its goal.

    Args:
        motion: of an :class:`ExecutorReport` or a :class:`Transfer`.
        model: the model.
        path: file to write, ``.png``, ``.svg`` or ``.pdf``.
        most: number of moments: the start, the end, and some between them at equal parts of the
            object's path.
        backend: renderer of 3D views, as for :func:`scene_of`.

    Raises:
        TypeError, ValueError: for other arguments.
        ImportError: without Matplotlib.
    """
    path, most = path_of("path", path), integer("most", most, least=2)
    _check(motion, model)
    frames = _moments(motion, most)
    goal, seen = motion.goal, motion.q[frames]
    scene = scene_of(model, motion.object, seen, goal, backend=backend)
    low, high = framed(*scene.window(np.vstack((seen, goal))))
    figure, grid = frame_axes(len(frames), high - low, top=0.05, bottom=0.3)
    for ax, k in zip(grid, frames):
        scene.prepare(ax, low, high)
        scene.draw_goal(ax, goal)
        scene.draw(ax, motion.q[k])
        left = left_text(motion.goals, motion.q[k])
        ax.set_title(f"{_title(motion, motion.t[k])}  ·  {left}", fontsize=10, color=INK)
    across, up = figure.get_size_inches()
    figure.text(0.1 / across, 0.1 / up, "Dashed green: the goal.", fontsize=9, color=QUIET)
    save_figure(figure, path)


def _moments(motion: ExecutedMotion, most: int) -> list[int]:
    """Return indices of configurations at equal parts of the object's path, which has the same length in rotations and
    in translations; a little of it is time."""
    space = motion.goals.space
    moved = np.array([space.errors(b, a) for a, b in zip(motion.q, motion.q[1:])])
    parts = np.column_stack((moved, np.diff(motion.t))).reshape(-1, 3)
    sums = np.maximum(parts.sum(axis=0), 1e-12)
    way = np.append(0.0, np.cumsum(parts / sums @ (1.0, 1.0, 0.5)))
    wanted = np.linspace(0.0, way[-1], most)
    return [int(k) for k in np.unique(np.searchsorted(way, wanted - 1e-9))]


def write_execution(
    motion: ExecutedMotion,
    model: Model,
    paths: Sequence[str | os.PathLike[str]],
    *,
    frames_per_second: int = 20,
    speed: float = 1.0,
    size: float = 5.0,
    backend: str | None = None,
    progress: bool = False,
) -> None:
    """Write a movie of an execution; each frame shows the goal, the time, and what the robot does.

    Args:
        motion: of an :class:`ExecutorReport` or a :class:`Transfer`.
        model: the model.
        paths, frames_per_second, size, backend: as for :func:`write_motion`.
        speed: seconds of the execution in a second of the movie.
        progress: show a bar that counts frames.

    Raises:
        TypeError, ValueError: for other arguments.
        ImportError: without Matplotlib or imageio.
    """
    _check(motion, model)
    rate = integer("frames_per_second", frames_per_second, least=1)
    period = number("speed", speed, above=0) / rate
    times = np.append(np.arange(motion.t[0], motion.t[-1], period), motion.t[-1])
    titles = [_title(motion, t) for t in times]
    path, body, goal = motion.at(times), motion.object, motion.goal
    with progress_bar(flag("progress", progress), len(times), body, "frames") as update:
        write_frames(model, path, paths, rate, body, size, backend, goal, titles, update)


def _check(motion: ExecutedMotion, model: Model) -> None:
    instance("motion", motion, ExecutedMotion)
    instance("model", model, Model)
    if motion.q.shape[1] != model.nq:
        raise ValueError(
            f"model: it has nq = {model.nq}, the motion {motion.q.shape[1]} coordinates"
        )


def _title(motion: ExecutedMotion, time: float) -> str:
    return f"{time:.1f} s, {motion.doing(time)}"
