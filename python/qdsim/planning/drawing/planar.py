"""Drawings of a planar model's configurations: bodies, goal, contact forces."""

from __future__ import annotations

import os
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import instance, integer, number, path_of
from qdsim.array_type import ROUNDING, Array
from qdsim.description import Geom
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.drawing.patches import draw_patches
from qdsim.planning.drawing.style import (
    FLOOR,
    FORCE,
    FRAME,
    GOAL,
    INK,
    LIMBS,
    OBJECT,
    OBJECT_DARK,
    OBJECT_HALF,
    PAPER,
    QUIET,
    STYLE,
)
from qdsim.step import Step
from qdsim.whole_files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "PlanarScene",
    "arrow",
    "check_installed",
    "contact_points",
    "framed",
    "need",
    "new_figure",
    "prepare_axes",
    "save_figure",
]


def need(module: str) -> Any:
    """Import an optional package, or raise an error of one line that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise ImportError(
            f"pictures need {package}: pip install 'qdsim[demo]'", name=package
        ) from None


def check_installed(movie: bool) -> None:
    """Raise an error if a package that pictures need is missing, before any work is done."""
    for module in ["matplotlib.figure", "imageio.v2"] if movie else ["matplotlib.figure"]:
        need(module)


def new_figure(width: float, height: float, dpi: int = 150) -> Figure:
    """Create an empty figure (inches) that needs no display."""
    width, height = number("width", width, above=0), number("height", height, above=0)
    dpi = integer("dpi", dpi, least=1)
    figure_module, agg = need("matplotlib.figure"), need("matplotlib.backends.backend_agg")
    figure = figure_module.Figure(figsize=(width, height), dpi=dpi, facecolor=PAPER)
    agg.FigureCanvasAgg(figure)
    return figure  # type: ignore[no-any-return]


def save_figure(figure: Figure, path: str | os.PathLike[str], **how: Any) -> None:
    """Write a figure in the format of the path's suffix; without a suffix, as PNG with that suffix
    added."""
    place = path_of("path", path)
    if not place.suffix:
        place = place.with_name(f"{place.name}.png")
    with replacing(place) as file:
        figure.savefig(file, format=place.suffix[1:].lower(), **how)


def prepare_axes(ax: Axes, low: Array, high: Array) -> None:
    """Set up equal axes without ticks around a window."""
    ax.set_aspect("equal")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(FRAME)


def framed(
    low: Array, high: Array, lowest: float = 0.6, tallest: float = 1.25
) -> tuple[Array, Array]:
    """Return the window, enlarged so that its ratio of height to width is between two numbers."""
    width, height = high - low
    more = 0.5 * np.maximum([height / tallest - width, lowest * width - height], 0.0)
    return low - more, high + more


def arrow(
    ax: Axes, point: Array, force: Array, largest: float, typical: float, length: float
) -> None:
    """Draw a force as an arrow with its head at its point; relatively small forces are not drawn."""
    size = float(np.hypot(*force))
    if size <= STYLE.faint * max(largest, typical):
        return
    shown = min(length * STYLE.force(size, typical), _room(ax, point, -force / size))
    effects = need("matplotlib.patheffects")
    ax.annotate(
        "",
        xy=tuple(point),
        xytext=tuple(point - shown / size * force),
        zorder=8,
        arrowprops={
            "arrowstyle": "-|>,head_width=0.28,head_length=0.5",
            "color": FORCE,
            "linewidth": 2.0 * STYLE.line,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 12,
            "path_effects": [effects.withStroke(linewidth=4.0 * STYLE.line, foreground=PAPER)],
        },
    )


def _room(ax: Axes, point: Array, direction: Array) -> float:
    """Return the distance from a point to the edge of the axes, slightly reduced, m; infinite for
    points outside."""
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    inset = 0.02 * (high - low)
    ends = np.where(direction > 0.0, high - inset, low + inset)
    steps = [(e - p) / d for e, p, d in zip(ends, point, direction) if abs(d) > ROUNDING]
    room = min(steps, default=np.inf)
    return float(room) if room > 0.0 else np.inf


def contact_points(model: Model, step: Step) -> Array:
    """Return the points of a step's contacts in the configuration after the step, ``(n, 3)`` m.

    ``step.contacts`` are those of the configuration at its beginning. Each witness point moves with
    its body, and the contact stays midway between the two; then, since surfaces slide and roll, the
    nearest contact of the same pair in the new configuration is taken.
    """
    contacts = step.contacts
    p0, r0 = model.body_poses(model.integrate(step.q_next, -step.delta))
    p1, r1 = model.body_poses(step.q_next)
    half = 0.5 * contacts["dist"][:, None] * contacts["frame"][:, 0]
    moved = np.zeros((len(contacts), 3))
    for side, sign in (("body_a", -1.0), ("body_b", 1.0)):
        b = contacts[side]
        local = np.einsum("nji,nj->ni", r0[b], contacts["pos"] + sign * half - p0[b])
        moved += 0.5 * (p1[b] + np.einsum("nij,nj->ni", r1[b], local))
    fresh = model.collide(step.q_next)
    for i, pair in enumerate(contacts["pair"]):
        same = fresh["pos"][fresh["pair"] == pair]
        if len(same):
            moved[i] = same[np.argmin(np.linalg.norm(same - moved[i], axis=1))]
    return moved


def is_flat(model: Model, object: str) -> bool:
    """Return whether a :class:`PlanarScene` can show all of a planar model: discs, and boxes of the object."""
    normal = model.planar_normal
    if normal is None:
        return False
    drop = int(np.argmax(np.abs(normal)))
    return all(
        _is_disc(geom, drop)
        or geom.type == "plane"
        or (geom.type == "box" and body.name == object and _is_upright(geom))
        for body in model.description.bodies
        for geom in body.geoms
    )


def _is_disc(geom: Geom, drop: int) -> bool:
    """Return whether a geometry is a disc, seen along axis ``drop``."""
    return geom.type == "sphere" or (geom.type == "cylinder" and drop == 2 and _is_upright(geom))


def _is_upright(geom: Geom) -> bool:
    """Return whether a geometry has the axes of its body; a cylinder may be rotated about z."""
    _, x, y, z = geom.quat
    return bool(x == y == 0.0 and (geom.type == "cylinder" or z == 0.0))


class PlanarScene:
    """Draws configurations of a planar model.

    Args:
        model: a model whose joints all move in one coordinate plane.
        object: body of the manipulated object; it has its own colour and a spoke that shows its
            angle.
    """

    def __init__(self, model: Model, object: str) -> None:
        instance("model", model, Model)
        instance("object", object, str)
        normal = model.planar_normal
        if normal is None:
            raise ValueError("model: pictures need a model that moves in one plane")
        drop = int(np.argmax(np.abs(normal)))
        self.axes = [k for k in range(3) if k != drop]
        self.model = model
        self.most_pressure = (
            0.0  # Pa, pressure of the brightest colour of patches; 0: the largest of each picture
        )
        if object not in model.body_names:
            raise ValueError(f"object: the model has no body {object!r}")
        self.object = model.body_names.index(object)
        sizes = model.parameters.geom_size
        self.circles: list[
            tuple[int, Array, float]
        ] = []  # body, centre in body coordinates, radius
        self.boxes: list[tuple[int, Array]] = []  # body, corners in body coordinates
        index = 0
        for b, body in enumerate(model.description.bodies):
            for geom in body.geoms:
                centre = np.asarray(geom.pos, dtype=np.float64)
                if _is_disc(geom, drop) and sizes[index, 0] > STYLE.corner:
                    self.circles.append((b, centre, float(sizes[index, 0])))
                elif geom.type == "box":
                    half = sizes[index][self.axes]
                    corners = np.zeros((4, 3))
                    corners[:, self.axes] = half * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
                    self.boxes.append((b, centre + corners))
                index += 1
        self.planes = [
            (np.asarray(geom.pos)[self.axes], rotation_matrix(geom.quat)[self.axes, 2])
            for geom in model.description.bodies[0].geoms
            if geom.type == "plane" and abs(rotation_matrix(geom.quat)[drop, 2]) < 1e-6
        ]
        parents = [
            model.body_names.index(body.parent) if b else 0
            for b, body in enumerate(model.description.bodies)
        ]
        self.limb: dict[int, int] = {}
        roots: list[int] = []
        for b in range(1, len(parents)):
            root = b
            while parents[root] != 0:
                root = parents[root]
            if root != self.object:
                if root not in roots:
                    roots.append(root)
                self.limb[b] = roots.index(root)

    def window(self, configurations: Array, margin: float = 0.06) -> tuple[Array, Array]:
        """Return the corners ``(2,)`` of a box around the scene in configurations ``(N, nq)``, m."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for q in configurations:
            pos, rot = self.model.body_poses(q)
            for b, centre, radius in self.circles:
                p = (pos[b] + rot[b] @ centre)[self.axes]
                low, high = np.minimum(low, p - radius), np.maximum(high, p + radius)
            for b, corners in self.boxes:
                p = (pos[b] + corners @ rot[b].T)[:, self.axes]
                low, high = np.minimum(low, p.min(axis=0)), np.maximum(high, p.max(axis=0))
        return low - margin, high + margin

    def draw(self, ax: Axes, q: Array, *, robot: str = "solid", alpha: float = 1.0) -> None:
        """Draw the object and the robot; ``robot`` is "solid", "ghost" (an outline) or "none"."""
        pos, rot = self.model.body_poses(q)
        if robot != "ghost":
            self._draw_floors(ax)
            self._draw_object(ax, pos, rot)
        if robot != "none":
            self.draw_robot(ax, pos, rot, ghost=robot == "ghost", alpha=alpha)
        if robot != "ghost":
            draw_patches(ax, self.model, q, np.eye(3)[list(self.axes)], alpha, self.most_pressure)

    def draw_goal(self, ax: Axes, goal: Array) -> None:
        """Draw the outline of the object at the goal."""
        pos, rot = self.model.body_poses(goal)
        patches = need("matplotlib.patches")
        style = {
            "fill": False,
            "edgecolor": GOAL,
            "linestyle": "--",
            "linewidth": STYLE.line,
            "zorder": 1,
        }
        for b, centre, radius in self.circles:
            if b == self.object:
                p = (pos[b] + rot[b] @ centre)[self.axes]
                ax.add_patch(patches.Circle(p, radius, **style))
                tip = p + radius * rot[b][self.axes, self.axes[0]]
                ax.plot(
                    *zip(0.4 * p + 0.6 * tip, tip), color=GOAL, linewidth=2.0 * STYLE.line, zorder=6
                )
        for b, corners in self.boxes:
            if b == self.object:
                p = (pos[b] + corners @ rot[b].T)[:, self.axes]
                ax.add_patch(patches.Polygon(p, closed=True, **style))

    def draw_forces(self, ax: Axes, step: Step, typical: float, length: float) -> None:
        """Draw arrows of the contact forces on the object, with heads at the contact points after
        the step.

        A force of ``typical`` newtons is ``length`` metres long; lengths grow with the square root
        of the force, so that small forces are visible.
        """
        forces = self.forces(step)
        if not forces:
            return
        largest = max(float(np.hypot(*f)) for _, f in forces)
        for point, force in forces:
            arrow(ax, point, force, largest, typical, length)

    def forces(self, step: Step) -> list[tuple[Array, Array]]:
        """Return points ``(2,)`` (m) after a step, and forces ``(2,)`` on the object (N) of its contacts."""
        points = contact_points(self.model, step)[:, self.axes]
        return [(points[i], force) for i, force in self.pushes(step)]

    def pushes(self, step: Step) -> list[tuple[int, Array]]:
        """Return indices of the contacts that act on the object, and their forces ``(2,)`` (N) in the picture."""
        result = []
        for i, c in enumerate(step.contacts):
            if self.object in (c["body_a"], c["body_b"]):
                force = (c["frame"].T @ c["force"][:3])[self.axes]
                result.append((i, force if c["body_b"] == self.object else -force))
        return result

    def prepare(self, ax: Axes, low: Array, high: Array) -> None:
        """Set up equal axes without ticks around a window."""
        prepare_axes(ax, low, high)

    def _draw_floors(self, ax: Axes) -> None:
        """Draw the half planes below the world's planes."""
        patches = need("matplotlib.patches")
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
        reach = 2.0 * float(np.linalg.norm(high - low))
        for point, normal in self.planes:
            at = point - ((point - low) @ [normal[1], -normal[0]]) * np.array(
                [normal[1], -normal[0]]
            )
            along = reach * np.array([normal[1], -normal[0]])
            below = reach * normal
            corners = [at - along, at + along, at + along - below, at - along - below]
            ax.add_patch(
                patches.Polygon(
                    corners, facecolor=FLOOR, edgecolor=QUIET, linewidth=STYLE.line, zorder=0.5
                )
            )

    def _draw_object(self, ax: Axes, pos: Array, rot: Array) -> None:
        patches = need("matplotlib.patches")
        b = self.object
        angle = float(np.degrees(np.arctan2(*rot[b][self.axes[::-1], self.axes[0]])))
        look: dict[str, Any] = {"facecolor": OBJECT, "edgecolor": OBJECT_DARK, "zorder": 2}
        look["linewidth"] = 2.0 * STYLE.line
        for body, centre, radius in self.circles:
            if body != b:
                continue
            p = (pos[b] + rot[b] @ centre)[self.axes]
            ax.add_patch(patches.Circle(p, radius, **look))
            # A darker half and a spoke show the angle.
            half = {"facecolor": OBJECT_HALF, "edgecolor": "none", "zorder": 2.1}
            ax.add_patch(patches.Wedge(p, 0.97 * radius, angle, angle + 180.0, **half))
            _draw_spoke(ax, p, p + radius * rot[b][self.axes, self.axes[0]])
        for body, corners in self.boxes:
            if body != b:
                continue
            p = (pos[b] + corners @ rot[b].T)[:, self.axes]
            ax.add_patch(patches.Polygon(p, closed=True, **look))
            _draw_spoke(ax, p.mean(axis=0), 0.5 * (p[0] + p[3]))

    def draw_robot(self, ax: Axes, pos: Array, rot: Array, *, ghost: bool, alpha: float) -> None:
        """Draw the robot alone, at poses of its bodies."""
        patches = need("matplotlib.patches")
        for limb in sorted(set(self.limb.values())):
            colour = LIMBS[limb % len(LIMBS)]
            joints = [
                ((pos[b] + rot[b] @ centre)[self.axes], radius)
                for b, centre, radius in self.circles
                if self.limb.get(b) == limb
            ]
            if ghost:
                line = {"color": colour, "alpha": 0.8 * alpha, "linewidth": STYLE.line, "zorder": 3}
                for p, radius in joints:
                    ax.add_patch(
                        patches.Circle(p, radius, fill=False, linestyle=(0, (2, 2)), **line)
                    )
                continue
            # Draw the link between neighbouring spheres, as wide as they are.
            for (p, r), (s, _) in pairwise(joints):
                along = s - p
                length = float(np.hypot(*along))
                if length > 0.0:
                    side = r / length * np.array([-along[1], along[0]])
                    ax.add_patch(
                        patches.Polygon(
                            [p + side, s + side, s - side, p - side],
                            facecolor=colour,
                            edgecolor="none",
                            alpha=0.85 * alpha,
                            zorder=4,
                        )
                    )
            for k, (p, radius) in enumerate(joints):
                ax.add_patch(
                    patches.Circle(
                        p,
                        radius,
                        facecolor=INK if k == 0 and len(joints) > 1 else colour,
                        edgecolor=PAPER,
                        linewidth=STYLE.line,
                        alpha=alpha,
                        zorder=5,
                    )
                )


def _draw_spoke(ax: Axes, centre: Array, tip: Array) -> None:
    """Draw a line from the centre of an object, which shows its rotation."""
    line: dict[str, Any] = {"linewidth": 2.0 * STYLE.line, "solid_capstyle": "round", "zorder": 2.5}
    ax.plot(*zip(centre, tip), color=INK, **line)
    ax.plot(*centre, "o", color=INK, markersize=4.5, zorder=2.6)
