"""A picture of a roadmap; Matplotlib is imported when a picture is drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.planning.drawing.planar import need, new_figure, save_figure
from qdsim.planning.drawing.style import INK, LIMBS, OBJECT_DARK, PAPER, QUIET, STYLE
from qdsim.planning.roadmap.roadmap import Roadmap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_roadmap"]


def draw_roadmap(roadmap: Roadmap, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw nodes and edges of a roadmap by the object's displacement from the task's start.

    Edges are drawn along the shortest path between their nodes, darker if they succeed more often.
    In the plane, needles show the rotations of nodes. In space, one panel shows the positions,
    unless all nodes have the same one, and another panel shows the rotation vectors. All rotations
    form a ball with the radius of half a turn; opposite points of its surface are the same rotation.

    Args:
        roadmap: with at least one node.
        path: of the file to write, PNG where it has no suffix; None: none.

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: naming the argument.
        ImportError: without Matplotlib.
    """
    made = instance("roadmap", roadmap, Roadmap)
    if len(made.nodes) == 0:
        raise ValueError("roadmap: expected at least one node")
    turns = made.task.space.rotation
    nodes = _displacements(made, made.nodes)
    ways = [_way(made, *ends) for ends in zip(made.edges.source, made.edges.target)]
    needles = bool(turns.sum() == 1 and (~turns).sum() == 2)
    panels = [] if needles else [(turns, "rotation vector, rad")] * bool(turns.any())
    spread = float(np.ptp(nodes[:, ~turns], axis=0).max(initial=0.0))
    if not panels or spread > made.task.position_tolerance:
        panels.insert(0, (~turns, "place, m"))
    figure = new_figure(STYLE.panel * len(panels), STYLE.panel)
    for index, (columns, title) in enumerate(panels):
        axes = _axes(figure, len(panels), index, int(columns.sum()))
        if columns is turns and columns.sum() == 3:
            _ball(axes)
        for way, success in zip(ways, made.edges.success):
            _line(axes, way[:, columns], float(success))
        _points(axes, nodes[:, columns])
        if needles:
            length = 0.5 * (spread or 1.0) / np.sqrt(len(nodes))  # half of their mean distance
            for (x, y), angle in zip(nodes[:, columns], nodes[:, turns][:, 0]):
                tip = x + length * np.cos(angle), y + length * np.sin(angle)
                axes.plot((x, tip[0]), (y, tip[1]), color=OBJECT_DARK, linewidth=1.5)
        axes.set_title(title, fontsize=11, color=INK)
    if path is not None:
        save_figure(figure, path, dpi=110, facecolor=PAPER)
    return figure


def _displacements(roadmap: Roadmap, q: Array) -> Array:
    """Return displacements ``(n, size)`` from the task's start."""
    return np.asarray(roadmap.task.space.difference(q.T, roadmap.task.start[:, None]).T)


def _way(roadmap: Roadmap, source: int, target: int) -> Array:
    """Return displacements ``(points, size)`` along the shortest path from node to node."""
    task, begin, end = roadmap.task, roadmap.nodes[source], roadmap.nodes[target]
    whole = np.asarray(task.space.difference(end[:, None], begin[:, None]))[:, 0]
    shares = np.linspace(0.0, 1.0, STYLE.around)
    poses = [task.with_object(begin, share * whole) for share in shares]
    return _displacements(roadmap, np.array(poses))


def _ball(axes: Any) -> None:
    """Draw three great circles of half turns."""
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    circle = np.pi * np.array((np.cos(angle), np.sin(angle), np.zeros_like(angle)))
    for shift in range(3):
        axes.plot(*np.roll(circle, shift, axis=0), color=QUIET, linewidth=0.6)


def _axes(figure: Figure, count: int, index: int, size: int) -> Any:
    """Return the axes of one panel; they are 3D axes for three coordinates."""
    if size == 3:
        need("mpl_toolkits.mplot3d")
    axes = figure.add_subplot(1, count, index + 1, projection="3d" if size == 3 else None)
    axes.set_aspect("equal" if size > 1 else "auto")
    axes.tick_params(labelsize=8, colors=INK)
    return axes


def _line(axes: Any, way: Array, success: float) -> None:
    """Draw a path of the object, cut where its rotation vector jumps to the opposite side of the ball."""
    jumps = np.flatnonzero(np.linalg.norm(np.diff(way, axis=0), axis=1) > np.pi) + 1
    for part in np.split(way, jumps):
        axes.plot(*_coordinates(part), color=LIMBS[0], linewidth=0.8, alpha=success**2)


def _points(axes: Any, nodes: Array) -> None:
    axes.plot(*_coordinates(nodes), "o", color=OBJECT_DARK, markersize=4)


def _coordinates(rows: Array) -> list[Array]:
    """Return the columns; a single column is plotted against zeros."""
    return [*rows.T, np.zeros(len(rows))] if rows.shape[1] == 1 else list(rows.T)
