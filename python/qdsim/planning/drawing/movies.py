"""Writes movies from images, and from motions of any model."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance, integer, number, path_of, reals
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.drawing.patches import most_pressure
from qdsim.planning.drawing.planar import framed, need, new_figure
from qdsim.planning.drawing.scenes import scene_of
from qdsim.planning.drawing.still import object_of
from qdsim.planning.drawing.style import INK, QUIET
from qdsim.progress import Update
from qdsim.whole_files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["image_of", "movie_files", "save_movie", "write_frames", "write_motion"]


def image_of(figure: Figure) -> npt.NDArray[np.uint8]:
    """Return the image of a figure, with even height and width, as movies require."""
    figure.canvas.draw()
    rgba = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    return np.array(rgba[: rgba.shape[0] // 2 * 2, : rgba.shape[1] // 2 * 2, :3])


def movie_files(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Check the movie files and return them as paths."""
    if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable):
        raise TypeError(f"paths: expected a list of files, got {type(paths).__name__}")
    files = [path_of("paths", path) for path in paths]
    for file in files:
        if file.suffix not in (".gif", ".mp4", ".webm"):
            raise ValueError(f"paths: expected .gif, .mp4 or .webm, got {os.fspath(file)!r}")
    return files


def save_movie(images: Sequence[Any], files: Iterable[Path], rate: int) -> None:
    """Write the same images into every file, with a given number per second."""
    writer = need("imageio.v2")
    for path in files:
        if path.suffix != ".gif":
            need("imageio_ffmpeg")
        with replacing(path, named=True) as place:
            if path.suffix == ".gif":
                content = io.BytesIO()
                writer.mimsave(content, images, format="GIF", duration=1000.0 / rate, loop=0)
                place.write(content.getbuffer())
            else:  # by name, because ffmpeg is a separate program
                codec = {".mp4": "libx264", ".webm": "libvpx-vp9"}[path.suffix]
                how = {"fps": rate, "codec": codec, "macro_block_size": 2, "quality": 8}
                writer.mimsave(place.name, images, format="FFMPEG", **how)


def write_motion(
    model: Model,
    configurations: npt.ArrayLike,
    paths: Sequence[str | os.PathLike[str]],
    *,
    frames_per_second: int = 20,
    object: str | None = None,
    size: float = 5.0,
    backend: str | None = None,
) -> None:
    """Write a movie of a motion, one frame per configuration.

    Contact surfaces of soft geometries are coloured by their pressure, on one scale for the whole
    movie.

    Args:
        model: the model.
        configurations: ``(n, nq)``; for a simulated motion ``motion.at(times)[0]``.
        paths: files to write, ``.gif`` (needs imageio and pillow), ``.mp4`` or ``.webm`` (need
            imageio-ffmpeg).
        frames_per_second: of the movie.
        object: the body on which the camera is centred; None: the last unactuated one.
        size: width in inches at 100 dots per inch.
        backend: renderer of 3D views, as for :func:`scene_of`.

    Raises:
        TypeError, ValueError: for other arguments, or if there is no such body.
        ImportError: without Matplotlib or imageio.
    """
    instance("model", model, Model)
    path = reals("configurations", configurations)
    if path.ndim != 2 or path.shape[1] != model.nq or len(path) == 0:
        raise ValueError(f"configurations: expected shape (n, {model.nq}), got {path.shape}")
    write_frames(model, path, paths, frames_per_second, object, size, backend)


def write_frames(
    model: Model,
    path: Array,
    paths: Sequence[str | os.PathLike[str]],
    frames_per_second: int,
    object: str | None,
    size: float,
    backend: str | None,
    goal: Array | None = None,
    titles: Sequence[str] | None = None,
    update: Update = lambda done, text: None,
) -> None:
    """Write a movie with one frame per configuration, with a goal and titles if there are any."""
    files = movie_files(paths)
    rate = integer("frames_per_second", frames_per_second, least=1)
    size = number("size", size, above=0)
    need("imageio.v2")
    body = object_of(model) if object is None else object
    scene = scene_of(model, body, path, goal, backend=backend)
    scene.most_pressure = most_pressure(model, path)
    seen = path if goal is None else np.vstack((path, goal))
    low, high = framed(*scene.window(seen))
    figure = new_figure(size, size * float((high[1] - low[1]) / (high[0] - low[0])), dpi=100)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    if scene.most_pressure > 0.0:
        said = f"brightest: {scene.most_pressure / 1e3:.3g} kPa"
        figure.text(0.98, 0.98, said, color=QUIET, fontsize=2 * size, ha="right", va="top")
    images = []
    for k, q in enumerate(path):
        ax.clear()
        ax.axis("off")
        scene.prepare(ax, low, high)
        if goal is not None:
            scene.draw_goal(ax, goal)
        scene.draw(ax, q)
        if titles is not None:
            place: dict[str, Any] = {"transform": ax.transAxes, "ha": "left", "va": "top"}
            ax.text(0.02, 0.98, titles[k], color=INK, fontsize=2 * size, **place)
        images.append(image_of(figure))
        update(k + 1, "")
    save_movie(images, files, rate)
