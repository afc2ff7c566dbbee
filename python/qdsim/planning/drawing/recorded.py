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
from qdsim.planning.execution.recording import Recording
from qdsim.progress import progress_bar

__all__ = ["draw_recording", "write_recording"]


def draw_recording(
    recording: Recording,
    model: Model,
    path: str | os.PathLike[str],
    *,
    most: int = 8,
    backend: str | None = None,
) -> None:
    """Draw moments of an execution, each with the goal, the time, what the robot does, and how far
    the object is from its goal.

    Args:
        recording: of an :class:`ExecutorReport` or a :class:`Transfer`.
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
    _check(recording, model)
    frames = _moments(recording, most)
    goal, seen = recording.goal, recording.q[frames]
    scene = scene_of(model, recording.object, seen, goal, backend=backend)
    low, high = framed(*scene.window(np.vstack((seen, goal))))
    figure, grid = frame_axes(len(frames), high - low, top=0.05, bottom=0.3)
    for ax, k in zip(grid, frames):
        scene.prepare(ax, low, high)
        scene.draw_goal(ax, goal)
        scene.draw(ax, recording.q[k])
        left = left_text(recording.goals, recording.q[k])
        ax.set_title(f"{_title(recording, recording.t[k])}  ·  {left}", fontsize=10, color=INK)
    across, up = figure.get_size_inches()
    figure.text(0.1 / across, 0.1 / up, "Dashed green: the goal.", fontsize=9, color=QUIET)
    save_figure(figure, path)


def _moments(recording: Recording, most: int) -> list[int]:
    """Return indices of configurations at equal parts of the object's path, which has the same length in rotations and
    in translations; a little of it is time."""
    space = recording.goals.space
    moved = np.array([space.errors(b, a) for a, b in zip(recording.q, recording.q[1:])])
    parts = np.column_stack((moved, np.diff(recording.t))).reshape(-1, 3)
    sums = np.maximum(parts.sum(axis=0), 1e-12)
    way = np.append(0.0, np.cumsum(parts / sums @ (1.0, 1.0, 0.5)))
    wanted = np.linspace(0.0, way[-1], most)
    return [int(k) for k in np.unique(np.searchsorted(way, wanted - 1e-9))]


def write_recording(
    recording: Recording,
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
        recording: of an :class:`ExecutorReport` or a :class:`Transfer`.
        model: the model.
        paths, frames_per_second, size, backend: as for :func:`write_motion`.
        speed: seconds of the execution in a second of the movie.
        progress: show a bar that counts frames.

    Raises:
        TypeError, ValueError: for other arguments.
        ImportError: without Matplotlib or imageio.
    """
    _check(recording, model)
    rate = integer("frames_per_second", frames_per_second, least=1)
    period = number("speed", speed, above=0) / rate
    times = np.append(np.arange(recording.t[0], recording.t[-1], period), recording.t[-1])
    titles = [_title(recording, t) for t in times]
    path, body, goal = recording.at(times), recording.object, recording.goal
    with progress_bar(flag("progress", progress), len(times), body, "frames") as update:
        write_frames(model, path, paths, rate, body, size, backend, goal, titles, update)


def _check(recording: Recording, model: Model) -> None:
    instance("recording", recording, Recording)
    instance("model", model, Model)
    if recording.q.shape[1] != model.nq:
        raise ValueError(
            f"model: it has nq = {model.nq}, the recording {recording.q.shape[1]} coordinates"
        )


def _title(recording: Recording, time: float) -> str:
    return f"{time:.1f} s, {recording.doing(time)}"
