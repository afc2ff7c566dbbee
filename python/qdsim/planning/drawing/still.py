"""One configuration of any model as a picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from qdsim.arguments import instance, path_of, reals
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.drawing.planar import framed, new_figure, save_figure
from qdsim.planning.drawing.scenes import scene_of
from qdsim.planning.task.objects import objects_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_configuration", "frame_axes", "object_of"]


def object_of(model: Model) -> str:
    """Find the body on which a picture is centred: the last one without actuators, else the last
    one.

    Raises:
        ValueError: if the model has no body besides the world.
    """
    bodies = model.description.bodies[1:]
    if not bodies:
        raise ValueError("model: it has no body to draw")
    return (objects_of(model) or (bodies[-1].name,))[-1]


def draw_configuration(
    model: Model,
    path: str | os.PathLike[str],
    q: npt.ArrayLike | None = None,
    *,
    object: str | None = None,
    backend: str | None = None,
    geometry: str = "visual",
) -> None:
    """Draw a configuration of a model into a file (png, pdf, svg and other formats of Matplotlib).

    Args:
        model: the model.
        path: the file.
        q: ``(nq,)``; None: the default configuration.
        object: the body on which the picture is centred; None: the last unactuated one.
        backend, geometry: of 3D views, as for :func:`scene_of`.

    Raises:
        ValueError: for a configuration of another size, or if there is no such body.
        ImportError: without Matplotlib.
    """
    instance("model", model, Model)
    place = path_of("path", path)
    shown = np.atleast_2d(reals("q", model.default_q if q is None else q))
    about = object_of(model) if object is None else object
    scene = scene_of(model, about, shown, backend=backend, geometry=geometry)
    low, high = framed(*scene.window(shown), lowest=0.75, tallest=0.75)
    figure = new_figure(4.8, 3.6)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.axis("off")
    scene.prepare(ax, low, high)
    scene.draw(ax, shown[0])
    save_figure(figure, place)


def frame_axes(count: int, size: Array, top: float, bottom: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with so much room at top and bottom, in inches, and axes of the shape of ``size`` (2,) in rows of
    four, with room for titles."""
    columns = min(4, count)
    rows = -(-count // columns)
    width = 3.0
    height = width * float(size[1] / size[0])
    title_height = 0.36  # inches
    figure = new_figure(
        columns * (width + 0.1) + 0.1, rows * (height + title_height) + top + bottom
    )
    across, up = figure.get_size_inches()
    axes = []
    for row, column in (divmod(index, columns) for index in range(count)):
        x = 0.1 + column * (width + 0.1)
        y = bottom + (rows - 1 - row) * (height + title_height)
        axes.append(figure.add_axes((x / across, y / up, width / across, height / up)))
    return figure, axes
