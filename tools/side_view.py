"""Side views of what moves in the plane of x and z: shapes in their own colours, the ground, and a spoke that turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from scipy.spatial import ConvexHull

import qdsim
from qdsim.description import Geom

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GROUND = "#22303C", "#8A97A3"
_ROUND = 60  # corners of an outline


class SideView:
    """What of a model is seen from the side: behind a cut through a body's middle, or all of it (None)."""

    def __init__(self, model: qdsim.Model, cut: str | None = None) -> None:
        self._model = model
        self._cut = None if cut is None else model.body_names.index(cut)
        self._shapes: list[tuple[int, Geom]] = []
        self._planes: list[Geom] = []
        for index, body in enumerate(model.description.bodies):
            for geom in body.geoms:
                if geom.type == "plane":
                    self._planes.append(geom)
                else:
                    self._shapes.append((index, geom))

    def window(self, configurations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The corners (x, z) between which everything stays, the ground included."""
        ends = [c + s * r for q in configurations for c, r, _ in self._seen(q) for s in (-1, 1)]
        low, high = np.min(ends, axis=0), np.max(ends, axis=0)
        if self._planes:
            low[1] = min(low[1], 0.0)
        room = 0.04 * (high - low).max()
        return low - room, high + room

    def draw(
        self, ax: Axes, q: np.ndarray, low: np.ndarray, high: np.ndarray, lift: float = 0.0
    ) -> None:
        """One configuration within a window, all of it raised by `lift`."""
        ax.set_aspect("equal")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.axis("off")
        up = np.array([0.0, lift])
        self._draw_planes(ax, low, high, up)
        pos, rot = self._model.body_poses(q)
        balls, spokes, outlines, colours = [], [], [], []
        for index, geom in self._in_order(pos):
            centre = pos[index] + rot[index] @ np.asarray(geom.pos)
            colour = tuple(geom.rgba[:3])
            if geom.type == "sphere":
                r = float(geom.size[0])
                balls.append((*(centre[[0, 2]] + up), r, colour))
                spokes.append(
                    [centre[[0, 2]] + up, centre[[0, 2]] + up + 0.8 * r * rot[index][[0, 2], 0]]
                )
            else:
                outlines.append(_outline(geom, centre, rot[index]) + up)
                colours.append(colour)
        ax.add_collection(
            PolyCollection(outlines, facecolors=colours, edgecolors=INK, linewidths=0.8)
        )
        if balls:
            x, z, r, shades = zip(*balls)
            width = 2 * np.array(r)
            ax.add_collection(
                EllipseCollection(
                    width,
                    width,
                    0 * width,
                    units="xy",
                    offsets=np.c_[x, z],
                    offset_transform=ax.transData,
                    facecolors=shades,
                    edgecolors=INK,
                    linewidths=0.4,
                )
            )
            if self._cut is None:
                ax.add_collection(LineCollection(spokes, colors=INK, linewidths=0.5))

    def _in_order(self, pos: np.ndarray) -> Sequence[tuple[int, Geom]]:
        """What is behind the cut, the farthest first; all of it where there is none."""
        if self._cut is None:
            return self._shapes
        behind = [s for s in self._shapes if pos[s[0]][1] >= pos[self._cut][1]]
        return sorted(behind, key=lambda s: -pos[s[0]][1])

    def _seen(self, q: np.ndarray):
        pos, rot = self._model.body_poses(q)
        for index, geom in self._shapes:
            points = _outline(geom, pos[index] + rot[index] @ np.asarray(geom.pos), rot[index])
            middle = 0.5 * (points.min(0) + points.max(0))
            yield middle, points.max(0) - middle, geom

    def _draw_planes(self, ax: Axes, low: np.ndarray, high: np.ndarray, up: np.ndarray) -> None:
        """Ground and walls as lines with what is beyond them grey."""
        size = float(np.abs(high - low).max()) * 3
        for plane in self._planes:
            w, x, y, z = plane.quat
            normal = np.array([2 * (x * z + w * y), 1 - 2 * (x * x + y * y)])  # the third column
            if np.hypot(*normal) < 0.9:
                continue  # a wall in front or behind
            along = np.array([normal[1], -normal[0]])
            at = np.asarray(plane.pos)[[0, 2]] + up
            ends = np.array([at - size * along, at + size * along])
            far = np.vstack([ends, ends[::-1] - size * normal])
            ax.add_collection(
                PolyCollection([far], facecolors="#E4E8EB", edgecolors="none", zorder=0)
            )
            ax.add_collection(LineCollection([ends], colors=GROUND, linewidths=1.2, zorder=0))


def _outline(geom: Geom, centre: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Corners (n, 2) of a shape as seen along y."""
    w, x, y, z = geom.quat
    own = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    axes = turn @ own
    angle = 2 * np.pi * np.arange(_ROUND) / _ROUND
    seen = (
        np.stack([np.cos(angle), np.zeros(_ROUND), np.sin(angle)], axis=1) @ axes
    )  # in its own axes
    size = np.asarray(geom.size, dtype=float)
    if geom.type == "box":
        points = np.sign(seen) * size
    elif geom.type == "ellipsoid":
        points = seen * size**2 / np.linalg.norm(seen * size, axis=1)[:, None]
    elif geom.type == "capsule":
        points = size[0] * seen + np.sign(seen[:, 2:]) * [0.0, 0.0, size[1]]
    elif geom.type == "sphere":
        points = size[0] * seen
    else:
        raise ValueError(f"side views do not know a {geom.type}")
    flat = (points @ axes.T + centre)[:, [0, 2]]
    return flat[ConvexHull(flat).vertices]
