"""Pictures of plans and trees, drawn with Matplotlib without a display.

Matplotlib is imported when a picture is drawn. Planar models are drawn in the plane in which they
move: spheres appear as circles, boxes as their outlines, and spheres along a finger as one rounded
link. Other models are seen from a corner, in parallel projection.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import flag, instance, integer, number, path_of
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.drawing.executions import draw_execution, write_execution
from qdsim.planning.drawing.graphs import draw_roadmap
from qdsim.planning.drawing.movies import image_of, movie_files, save_movie, write_motion
from qdsim.planning.drawing.patches import most_pressure
from qdsim.planning.drawing.planar import (
    PlanarScene,
    check_installed,
    framed,
    need,
    new_figure,
    save_figure,
)
from qdsim.planning.drawing.scenes import scene_of
from qdsim.planning.drawing.spatial import SpatialScene
from qdsim.planning.drawing.still import draw_configuration, frame_axes, object_of
from qdsim.planning.drawing.style import (
    FLOOR,
    FORCE,
    FRAME,
    GOAL,
    GRID,
    INK,
    LIMBS,
    PAPER,
    QUIET,
    REGRASP,
    STYLE,
)
from qdsim.planning.drawing.words import left_text
from qdsim.planning.plans.plan import Plan, ReplayResult, model_of
from qdsim.planning.search.path import EdgeKind
from qdsim.planning.search.tree import Tree
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.progress import Update, progress_bar
from qdsim.step import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PlanarScene",
    "SpatialScene",
    "check_installed",
    "draw_configuration",
    "draw_execution",
    "draw_key_frames",
    "draw_roadmap",
    "draw_tree",
    "key_frames",
    "new_figure",
    "object_of",
    "scene_of",
    "write_execution",
    "write_motion",
    "write_movie",
]

# -------------------------------------------------------------------- key frames


def key_frames(
    plan: Plan, replay: ReplayResult, model: Model | Task, most: int = 16
) -> list[tuple[int, int]]:
    """Choose frames where something happens: start, every regrasp, end, and between them evenly
    along the object's path.

    Returns:
        Pairs of a segment and a step of it (0: the segment's start); at most ``most`` of them.
    """
    model = _checked(plan, replay, model)
    most = integer("most", most, least=1)
    last = len(plan.segments) - 1
    frames = [*((k, 0) for k in range(last + 1)), (last, plan.segments[-1].steps)]
    frames = sorted(set(frames))
    if len(frames) >= most:
        chosen = np.linspace(0, len(frames) - 1, most).astype(int)
        return [frames[i] for i in np.unique(chosen)]
    # Repeatedly add the frame from which the object's path to the nearest chosen frame is longest.
    all_frames, ways = _ways(plan, model)
    away = np.full(len(ways), np.inf)
    for frame in frames:
        away = np.minimum(away, np.abs(ways - ways[all_frames.index(frame)]))
    while len(frames) < most and away.max() > 0.0:
        k = int(away.argmax())
        frames.append(all_frames[k])
        away = np.minimum(away, np.abs(ways - ways[k]))
    return sorted(frames)


def _ways(plan: Plan, model: Model) -> tuple[list[tuple[int, int]], Array]:
    """Return every frame, and the length of the object's path up to it (m; a rotation counts as a point's path)."""
    space = ObjectSpace(model, plan.object)
    scale = space.scale(plan.position_tolerance / plan.rotation_tolerance)
    frames, ways, way = [], [], 0.0
    for k, segment in enumerate(plan.segments):
        frames.append((k, 0))
        ways.append(way)
        for i, (before, after) in enumerate(pairwise(segment.configurations), 1):
            way += float(np.linalg.norm(scale * space.difference(after, before)))
            frames.append((k, i))
            ways.append(way)
    return frames, np.array(ways)


def _checked(plan: Plan, replay: ReplayResult, model: Model | Task) -> Model:
    """Return the model, after checking that plan, replay and model belong together."""
    instance("plan", plan, Plan)
    instance("replay", replay, ReplayResult)
    own = model_of(plan, model)
    if [len(steps) for steps in replay.steps] != [segment.steps for segment in plan.segments]:
        raise ValueError("replay: not of this plan, its segments have other lengths")
    return own


def draw_key_frames(
    plan: Plan,
    replay: ReplayResult,
    model: Model | Task,
    path: str | os.PathLike[str],
    *,
    most: int = 16,
    backend: str | None = None,
) -> None:
    """Draw the plan's key frames with contact forces; regrasps are marked.

    Args:
        plan: the plan.
        replay: its replay on the model, which contains the forces.
        model: the model, or the task.
        path: file to write, ``.png``, ``.svg`` or ``.pdf``.
        most: largest number of frames.
        backend: renderer of 3D views, as for :func:`scene_of`.
    """
    path, model = path_of("path", path), _checked(plan, replay, model)
    frames = key_frames(plan, replay, model, most)
    seen = np.array([plan.segments[k].configurations[i] for k, i in frames])
    scene = scene_of(model, plan.object, seen, _goal(plan, model), backend=backend)
    low, high = framed(*scene.window(_everything(plan)))
    figure, grid = frame_axes(len(frames), high - low, top=0.4, bottom=0.6)
    forces = force_scale(scene, replay, low, high)
    before = np.cumsum([0] + [s.steps for s in plan.segments])
    for ax, (k, i) in zip(grid, frames):
        q = plan.segments[k].configurations[i]
        scene.prepare(ax, low, high)
        scene.draw_goal(ax, _goal(plan, model))
        scene.draw(ax, q)
        title, colour = f"step {before[k] + i}", INK
        if i > 0:
            scene.draw_forces(ax, replay.steps[k][i - 1], *forces)
        elif k == 0:
            title = "start"
        else:
            title, colour = f"regrasp {k}", REGRASP
            _mark_regrasp(ax, scene, plan.segments[k - 1].end)
        if (k, i) == (len(plan.segments) - 1, plan.segments[-1].steps):
            title += ", end"
        ax.set_title(f"{title}  ·  {pose_text(plan, model, q)}", fontsize=10, color=colour, pad=5)
    across, up = figure.get_size_inches()
    heading = plan.task[:1].upper() + plan.task[1:]
    figure.text(0.1 / across, 1.0 - 0.1 / up, heading, fontsize=16, color=INK, ha="left", va="top")
    figure.text(
        0.1 / across,
        0.1 / up,
        "Red arrows: contact forces on the object.  Dashed green: the goal.  Violet frames: regrasps; "
        "the robot leaves the faint configuration\nfor the solid one "
        + _how_grasps_change(plan)
        + ", and the object stays.",
        fontsize=9,
        color=QUIET,
        ha="left",
        va="bottom",
    )
    save_figure(figure, path)


def _mark_regrasp(ax: Axes, scene: PlanarScene | SpatialScene, before: Array) -> None:
    """Mark a regrasp by a frame in another colour, and draw the robot in its previous configuration."""
    scene.draw(ax, before, robot="ghost")
    for spine in ax.spines.values():
        spine.set_color(REGRASP)
        spine.set_linewidth(2.0 * STYLE.line)


def _how_grasps_change(plan: Plan) -> str:
    """Return the caption about regrasps: which of them have a collision-free motion."""
    without = [str(k + 1) for k in range(len(plan.regrasps)) if not _has_motion(plan, k)]
    if not without:
        return "by a collision-free motion"
    if len(without) == len(plan.regrasps):
        return "by contact sampling, without input"
    numbers = ", ".join(without)
    return f"by a collision-free motion (regrasp {numbers}: by contact sampling, without input)"


def _has_motion(plan: Plan, regrasp: int) -> bool:
    return bool(plan.motions) and plan.motions[regrasp] is not None


def _everything(plan: Plan) -> Array:
    """Return all configurations ``(N, nq)`` that must be visible in a picture of a plan."""
    return np.concatenate([*(part.configurations for part in plan.sequence), plan.goal[None]])


def force_scale(
    scene: PlanarScene | SpatialScene, replay: ReplayResult, low: Array, high: Array
) -> tuple[float, float]:
    """Return a typical strong force of a replay (N), and its length in a window (m)."""
    sizes = [
        float(np.hypot(*force))
        for taken in replay.steps
        for s in taken
        for _, force in scene.pushes(s)
    ]
    strong = [f for f in sizes if f > STYLE.faint * max(sizes)]
    return float(np.quantile(strong, 0.9)) if strong else 1.0, STYLE.arrow * float(
        np.min(high - low)
    )


def _goal(plan: Plan, model: Model) -> Array:
    """Return the goal ``(nq,)`` that a picture shows: among the poses that count as the goal, the
    one nearest to the plan's end."""
    return plan.goals(model).nearest(plan.end)


def pose_text(plan: Plan, model: Model, q: Array) -> str:
    """Return the distance to the goal as text."""
    return left_text(plan.goals(model), q)


# -------------------------------------------------------------------- the tree


def draw_tree(tree: Tree, path: str | os.PathLike[str]) -> None:
    """Draw the tree in the object's coordinates, and the distance to the goal per iteration.

    Args:
        tree: a grown tree. For objects with more than three coordinates, the three in which the
            task's box is widest are shown, as displacements from the start.
        path: file to write.
    """
    instance("tree", tree, Tree)
    path = path_of("path", path)
    need("mpl_toolkits.mplot3d")
    figure = new_figure(12.0, 5.6)
    task = tree.task
    left = figure.add_axes((0.0, 0.02, 0.52, 0.9), projection="3d")
    _draw_projection(left, tree)
    left.set_title(
        f"{tree.count} nodes, {tree.regrasp_count} regrasps", fontsize=11, color=INK, y=0.98
    )
    right = figure.add_axes((0.6, 0.13, 0.37, 0.72))
    _draw_progress(right, tree)
    figure.suptitle(
        task.name[:1].upper() + task.name[1:], fontsize=16, color=INK, x=0.02, ha="left", y=0.98
    )
    save_figure(figure, path)


def _draw_progress(right: Any, tree: Tree) -> None:
    """Draw the distance of the node nearest to the goal, and its parts, over the iterations."""
    records, task = tree.records, tree.task
    iteration = np.concatenate([[0], records["iteration"] + 1])
    shift, turn = tree.errors[0]
    curves = [
        ("distance", "distance (m)", tree.distance[0], INK, 2.0, None),
        ("position_error", "position error (m)", shift, LIMBS[0], 1.0, task.position_tolerance),
        ("rotation_error", "rotation error (rad)", turn, LIMBS[1], 1.0, task.rotation_tolerance),
    ]
    for name, label, first, color, width, tolerance in curves[: 2 + task.space.rotation.any()]:
        curve = np.concatenate([[first], records[name]])
        right.step(
            iteration, curve, where="post", color=color, linewidth=width * STYLE.line, label=label
        )
        if tolerance is not None:
            right.axhline(tolerance, color=color, linestyle=":", linewidth=STYLE.line)
    right.set_yscale("log")
    right.set_xlabel("iteration (subgoals)", color=INK)
    right.set_title("Node nearest to the goal; dotted: tolerances", fontsize=11, color=INK, pad=26)
    right.grid(True, color=GRID, linewidth=STYLE.line)
    right.legend(frameon=False, fontsize=9, loc="lower center", ncol=3, bbox_to_anchor=(0.5, 1.0))
    for side in ("top", "right"):
        right.spines[side].set_visible(False)
    right.xaxis.set_major_locator(need("matplotlib.ticker").MaxNLocator(9, integer=True))


def _draw_projection(ax: Any, tree: Tree) -> None:
    collections = need("mpl_toolkits.mplot3d.art3d")
    task, space = tree.task, tree.task.space
    widest = np.argsort(-(task.upper - task.lower) * space.scale(task.length), kind="stable")
    shown = np.sort(widest[:3])
    unit = np.where(space.rotation, 180.0 / np.pi, 1.0)[shown]

    def coordinates(q: Array) -> Array:
        rows = np.atleast_2d(q)
        x = space.difference(rows.T, task.start)[shown].T * unit
        x = np.concatenate([x, np.zeros((len(x), 3 - len(shown)))], axis=1)
        return x[0] if np.ndim(q) == 1 else x

    nodes = coordinates(tree.q)
    on_path = set(tree.path(tree.goal_node)) if tree.goal_node is not None else set()
    plain: list[Array] = []
    chosen: list[Array] = []
    for i in range(1, tree.count):
        trajectory = tree.trajectory(i)
        if trajectory is None:
            continue
        line = np.vstack([nodes[tree.parent[i]], coordinates(trajectory)])
        # Each piece is a separate line, because Matplotlib 3.10 cannot compute limits of lines of
        # different lengths.
        (chosen if i in on_path else plain).extend(np.stack([line[:-1], line[1:]], axis=1))
    if plain:
        ax.add_collection3d(
            collections.Line3DCollection(plain, colors=LIMBS[0], linewidths=STYLE.line, alpha=0.5)
        )
    ax.scatter(*nodes.T, s=5, color=LIMBS[0], alpha=0.5, linewidths=0, depthshade=False)
    if chosen:
        ax.add_collection3d(
            collections.Line3DCollection(chosen, colors=FORCE, linewidths=2.0 * STYLE.line)
        )
    regrasps = [i for i in sorted(on_path) if tree.kind[i] == EdgeKind.REGRASP]
    if regrasps:
        ax.scatter(
            *nodes[regrasps].T,
            s=46,
            marker="D",
            color=REGRASP,
            edgecolors=PAPER,
            linewidths=STYLE.line,
            depthshade=False,
            label="regrasp on the path",
        )
    start, goal = nodes[0], coordinates(tree.task.goal)
    ax.scatter(*start, s=60, color=INK, depthshade=False, label="start")
    ax.scatter(*goal, s=140, marker="*", color=GOAL, depthshade=False, label="goal")
    low, high = np.minimum(nodes.min(axis=0), goal), np.maximum(nodes.max(axis=0), goal)
    room = 0.05 * np.maximum(high - low, 1e-3)
    ax.set(xlim=(low[0] - room[0], high[0] + room[0]))
    ax.set(ylim=(low[1] - room[1], high[1] + room[1]), zlim=(low[2] - room[2], high[2] + room[2]))
    names = [_coordinate(space, int(i)) for i in shown]
    for setter, name in zip((ax.set_xlabel, ax.set_ylabel, ax.set_zlabel), names):
        setter(name, color=INK, labelpad=8)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.pane.set_facecolor(FLOOR)
        axis.pane.set_edgecolor(FRAME)
        axis._axinfo["grid"].update(color=GRID, linewidth=STYLE.line)
        axis.set_major_locator(need("matplotlib.ticker").MaxNLocator(5))
    ax.tick_params(labelsize=8)
    ax.view_init(elev=20, azim=-58)
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0.02, 0.9))


def _coordinate(space: ObjectSpace, index: int) -> str:
    """Return the name of one of the object's tangent coordinates in a picture."""
    turns = bool(space.rotation[index])
    if space.size == len(space.joints):
        name = space.joints[index].replace("_", " ")
    else:
        name = f"turn about {'xyz'[index % 3]}" if turns else "xyz"[index % 3]
    return f"{name} ({'degrees' if turns else 'm'})"


# -------------------------------------------------------------------- the movie


def write_movie(
    plan: Plan,
    replay: ReplayResult,
    model: Model | Task,
    paths: Sequence[str | os.PathLike[str]],
    *,
    frames_per_second: int = 20,
    regrasp_frames: int = 14,
    size: float = 5.0,
    backend: str | None = None,
    every: int = 1,
    progress: bool = False,
) -> None:
    """Write a movie of the plan, one frame per step.

    At a regrasp the robot moves if the plan has a motion, otherwise it fades over.

    Args:
        plan, replay, model: as for :func:`draw_key_frames`.
        paths: files to write, ``.gif`` (needs imageio and pillow), ``.mp4`` or ``.webm`` (need
            imageio-ffmpeg).
        frames_per_second: of the movie.
        regrasp_frames: number of frames of a regrasp; motions have frames according to their
            duration, between this number and three times that.
        size: width in inches at 100 dots per inch.
        backend: renderer of 3D views, as for :func:`scene_of`.
        every: draw only every so many frames, to shorten movies of long plans.
        progress: show a bar that counts frames.
    """
    every = integer("every", every, least=1)
    model = _checked(plan, replay, model)
    files = movie_files(paths)
    frames_per_second = integer("frames_per_second", frames_per_second, least=1)
    regrasp_frames = integer("regrasp_frames", regrasp_frames, least=1)
    size = number("size", size, above=0)
    need("imageio.v2")
    shots = _shots(plan, replay, regrasp_frames, frames_per_second)[::every]
    with progress_bar(flag("progress", progress), len(shots), plan.task, "frames") as update:
        images = _images(plan, replay, model, shots, size, backend, update)
    save_movie(images, files, frames_per_second)


@dataclasses.dataclass(frozen=True, eq=False)
class _Shot:
    """One picture of a movie: a configuration with its forces.

    The configuration ``old`` fades out as ``mix`` goes to 1.
    """

    q: Array
    title: str
    colour: str
    step: Step | None = None
    old: Array | None = None
    mix: float = 1.0


def _shots(plan: Plan, replay: ReplayResult, fade: int, rate: int) -> list[_Shot]:
    shots = [_Shot(plan.start, "start", INK)] * (rate // 2)
    done, total = 0, plan.step_count
    for k, segment in enumerate(plan.segments):
        if k > 0:
            shots += _regrasp_shots(plan, k, fade, rate)
        for q, step in zip(segment.configurations[1:], replay.steps[k]):
            done += 1
            shots.append(_Shot(q, f"step {done} of {total}", INK, step))
    return shots + [_Shot(plan.end, f"end after {total} steps", GOAL)] * rate


def _regrasp_shots(plan: Plan, k: int, fade: int, rate: int) -> list[_Shot]:
    """Return the pictures between segment k - 1 and segment k."""
    motion = plan.motions[k - 1] if plan.motions else None
    if motion is not None:
        title = f"regrasp {k}, {motion.duration:.2g} s"
        count = min(max(round(motion.duration * rate), fade), 3 * fade)
        times = np.linspace(0.0, motion.duration, count + 1)[1:]
        return [_Shot(q, title, REGRASP) for q in motion.at(times)]
    before, after = plan.segments[k - 1].end, plan.segments[k].start
    title = f"regrasp {k}, faded"
    return [_Shot(after, title, REGRASP, None, before, (i + 1) / fade) for i in range(fade)]


def _images(
    plan: Plan,
    replay: ReplayResult,
    model: Model,
    shots: Sequence[_Shot],
    size: float,
    backend: str | None,
    update: Update,
) -> list[Any]:
    """Draw the shots as colour arrays; identical successive shots are drawn once."""
    everything = _everything(plan)
    scene = scene_of(model, plan.object, everything, _goal(plan, model), backend=backend)
    scene.most_pressure = most_pressure(model, np.array([shot.q for shot in shots]))
    low, high = framed(*scene.window(everything))
    typical, length = force_scale(scene, replay, low, high)
    height = size * float((high[1] - low[1]) / (high[0] - low[0]))
    small = min(1.0, size / 4.5)
    strip = 0.36 * small  # inches of text above the scene
    figure = new_figure(size, height + strip, dpi=100)
    ax = figure.add_axes((0.01, 0.01, 0.98, height / (height + strip) - 0.02))
    top = 1.0 - 0.1 / (height + strip)
    images: list[Any] = []
    for shot, last in zip(shots, [None, *shots]):
        update(len(images), shot.title)
        if shot is last:
            images.append(images[-1])
            continue
        ax.clear()
        for text in list(figure.texts):
            text.remove()
        scene.prepare(ax, low, high)
        scene.draw_goal(ax, _goal(plan, model))
        scene.draw(ax, shot.q, alpha=shot.mix)
        if shot.old is not None:
            scene.draw_robot(ax, *model.body_poses(shot.old), ghost=False, alpha=1.0 - shot.mix)
        if shot.step is not None:
            scene.draw_forces(ax, shot.step, typical, length)
        font: dict[str, Any] = {"fontsize": 12 * small, "va": "top"}
        figure.text(0.02, top, shot.title, color=shot.colour, weight="bold", **font)
        said = pose_text(plan, model, shot.q)
        figure.text(0.98, top, said, color=QUIET, fontsize=11 * small, ha="right", va="top")
        images.append(image_of(figure))
    return images
