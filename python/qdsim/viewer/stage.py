"""The data of a page: shapes, poses, forces and texts of every frame, compressed to visible
precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.contact_surfaces import pressure_surface
from qdsim.model import Model
from qdsim.viewer.forces import Forces, forces_of
from qdsim.viewer.frames import Film, Frame
from qdsim.viewer.patches import band_colours, bands, highest_pressure
from qdsim.viewer.quaternions import quaternions
from qdsim.viewer.roles import Roles
from qdsim.viewer.shapes import Shape, octants, shapes_of
from qdsim.viewer.surfaces import Surface, thinned

__all__ = ["Branches", "stage_of"]

_UNIT = 2e-5
"""Quaternions are rounded to multiples of this number, positions to multiples of this share of the visible size."""

_NUMBERS = 180_000
"""Limit of the numbers on a page. Beyond it, whole frames of motion and forces, and triangles of surfaces and of
pressure, are left out."""


@dataclass(frozen=True, eq=False)
class Branches:
    """A tree as lines.

    Attributes:
        plain: Edges ``(n, 2, 3)``, m.
        chosen: Edges on the path to the goal, ``(n, 2, 3)``, m.
        regrasps: Positions of regrasps on that path, ``(m, 3)``, m.
        nodes: A point of each node, ``(k, 3)``, m; its frame has the same index.
    """

    plain: Array
    chosen: Array
    regrasps: Array
    nodes: Array = field(default_factory=lambda: np.zeros((0, 3)))


def stage_of(
    model: Model, roles: Roles, film: Film, goal: Array | None, tree: Branches | None
) -> dict[str, Any]:
    """Return all data of a page, for JSON."""
    unit = _UNIT * roles.size
    shapes = shapes_of(model, roles)
    frames, numbers = _thin_frames(model, film)
    poses = [model.body_poses(frame.q) for frame in frames]
    pos, rot = np.array([p for p, _ in poses]), np.array([r for _, r in poses])
    parts = np.concatenate([pos, rot.reshape(*pos.shape[:2], 9)], axis=2)
    moving = np.flatnonzero(np.ptp(parts, axis=0).max(axis=1) > 0.0).tolist()
    trail = None
    if (b := roles.object) is not None and b in moving and tree is None:
        ways = np.stack([pos[:, b], pos[:, b] + rot[:, b] @ _side(shapes, b)], axis=1)
        trail = _rounded(ways + roles.lift, unit)
    stage: dict[str, Any] = {
        "title": film.title or model.name,
        "caption": film.caption,
        **_view(model, roles, unit),
        "moving": moving,
        "rest": _pose_rows(pos[:1], rot[:1], list(range(pos.shape[1])), unit)[0],
        "poses": _pose_rows(pos, rot, moving, unit),
        "seconds": [round(frame.seconds, 4) for frame in frames],
        "said": [frame.caption for frame in frames],
        "left": [frame.left for frame in frames],
        "marks": [[numbers[index], name] for index, name in film.marks],
        **_force_entries(frames, roles, unit),
        "goal": None if goal is None else _goal(model, roles, goal, unit),
        "trail": trail,
        "tree": None if tree is None else _tree(tree, roles.lift, numbers, unit),
        **_shape_entries(shapes, unit),
    }
    if model.soft_pair_count:
        stage["patches"], stage["bands"] = _patches(model, roles, frames, unit)
    return stage


def _view(model: Model, roles: Roles, unit: float) -> dict[str, Any]:
    """Return the data of bodies, ground and camera."""
    return {
        "unit": unit,
        "turn": _UNIT,
        "size": roles.size,
        "flat": roles.flat is not None,
        "eye": _rounded(roles.eye, unit),
        "centre": _rounded(roles.centre, unit),
        "up": roles.up.tolist(),
        "floor": {"at": _rounded(roles.floor[0], unit), "normal": roles.floor[1].tolist()},
        "bodies": [
            {"name": name, "kind": kind} for name, kind in zip(model.body_names, roles.kind)
        ],
    }


def _force_entries(frames: Sequence[Frame], roles: Roles, unit: float) -> dict[str, Any]:
    forces = [
        None if frame.step is None else forces_of(frame.step, roles.objects) for frame in frames
    ]
    return {
        "forces": [_force_rows(some, roles.lift, unit) for some in forces],
        "smoothed": [frame.smoothed for frame in frames],
        "typical": _typical(forces),
    }


def _goal(model: Model, roles: Roles, goal: Array, unit: float) -> dict[str, Any]:
    where, turned = model.body_poses(goal)
    own = sorted(roles.objects)
    return {"bodies": own, "poses": _pose_rows(where[None], turned[None], own, unit)[0]}


def _tree(tree: Branches, lift: Array, numbers: Sequence[int], unit: float) -> dict[str, Any]:
    parts = ("plain", "chosen", "regrasps", "nodes")
    return {
        **{name: _rounded(getattr(tree, name) + lift, unit) for name in parts},
        "frames": [numbers[k] for k in range(len(tree.nodes))],
    }


def _thin_frames(model: Model, film: Film) -> tuple[list[Any], list[int]]:
    """Return every k-th frame and the last one, and the new index for every old one."""
    each = 7 * len(model.body_names) + (
        60 * max((len(step.contacts) > 0 for step in film.steps), default=0)
    )
    stride = -(-len(film.frames) * each // _NUMBERS)
    kept = sorted({*range(0, len(film.frames), max(stride, 1)), len(film.frames) - 1})
    numbers = (np.searchsorted(kept, np.arange(len(film.frames)), side="right") - 1).tolist()
    return [film.frames[k] for k in kept], numbers


def _rounded(values: Array, unit: float) -> list[Any]:
    return list(np.round(np.asarray(values) / unit).astype(np.int64).ravel().tolist())


def _pose_rows(pos: Array, rot: Array, bodies: Sequence[int], unit: float) -> list[list[int]]:
    """Return, for each configuration, the positions and quaternions of some bodies."""
    rows = []
    for p, r in zip(pos[:, bodies], rot[:, bodies]):
        turns = quaternions(r) if len(bodies) else np.zeros((0, 4))
        rows.append(np.hstack([p / unit, turns / _UNIT]).round().astype(int).ravel().tolist())
    return rows


def _force_rows(forces: Forces | None, lift: Array, unit: float) -> list[Any]:
    """Return ten numbers for each force: point, force (N), inward normal, friction."""
    if forces is None:
        return []
    rows: list[Any] = []
    for p, f, n, mu in zip(forces.points + lift, forces.forces, forces.inwards, forces.friction):
        rows += _rounded(p, unit) + [float(f"{x:.4g}") for x in (*f, *n, mu)]
    return rows


def _typical(forces: Sequence[Forces | None]) -> float:
    """Return the median of all forces that are not zero, N."""
    sizes = [np.linalg.norm(some.forces, axis=1) for some in forces if some is not None]
    loads = np.concatenate([*sizes, np.zeros(0)])
    return float(np.median(loads[loads > 0.0])) if np.any(loads > 0.0) else 0.0


def _shape_entries(shapes: Sequence[Shape], unit: float) -> dict[str, Any]:
    """Return each surface once, and the shapes with their places."""
    surfaces = {shape.key: shape.surface for shape in shapes}
    surfaces = _thin_surfaces(surfaces)
    number = {key: i for i, key in enumerate(surfaces)}
    entries = []
    for shape in shapes:
        surface = surfaces[shape.key]
        tones = shape.tones
        if tones is not None and surface is not shape.surface:
            tones = octants(surface)
        entries.append(
            {
                "body": shape.body,
                "name": shape.name,
                "mesh": number[shape.key],
                "pos": _rounded(shape.pos, unit),
                "quat": [round(float(x), 6) for x in shape.quat],
                "colour": [round(float(c), 4) for c in shape.colour],
                "layer": shape.layer,
                "tones": None if tones is None else tones.tolist(),
                "outlined": shape.outlined,
                "plane": shape.plane,
            }
        )
    meshes = [
        {
            "vertices": _rounded(surface.vertices, unit),
            "faces": surface.faces.ravel().tolist(),
            "lines": _rounded(surface.lines, unit),
        }
        for surface in surfaces.values()
    ]
    return {"meshes": meshes, "shapes": entries}


def _thin_surfaces(surfaces: dict[Any, Surface]) -> dict[Any, Surface]:
    total, cells = sum(s.vertices.size + s.faces.size for s in surfaces.values()), 256
    shown = surfaces
    while total > _NUMBERS and cells >= 4:
        shown = {k: thinned(s, cells) if len(s.faces) > 200 else s for k, s in surfaces.items()}
        total = sum(s.vertices.size + s.faces.size for s in shown.values())
        cells = int(0.7 * cells)
    return shown


def _side(shapes: Sequence[Shape], body: int) -> Array:
    """Return a point on the side of a body, in its frame, m."""
    reach = [
        float(np.abs(shape.surface.vertices).max() + np.abs(shape.pos).max())
        for shape in shapes
        if shape.body == body and not shape.plane
    ]
    return np.array([0.0, max(reach, default=0.0), 0.0])


def _patches(
    model: Model, roles: Roles, frames: Sequence[Any], unit: float
) -> tuple[list[Any], list[Any]]:
    """Return the triangles of the ranges of pressure, and the colours of the ranges.

    Each frame in which soft geometries press has triangles.
    """
    found = [pressure_surface(model, frame.q) for frame in frames]
    most = max((highest_pressure(surfaces) for surfaces in found), default=0.0)
    soft = {g.name for body in model.description.bodies for g in body.geoms if g.soft is not None}
    room = max(60, _NUMBERS // (9 * max(len(frames), 1)))
    result = []
    for surfaces in found:
        rows = []
        drawn = bands(surfaces, soft, most, roles.patch_lift)
        count = sum(len(faces) for _, faces in drawn)
        every = max(1, -(-count // room))
        for band, (corners, faces) in enumerate(drawn):
            if len(faces):
                some = corners.reshape(-1, 9)[::every]
                rows.append([band, _rounded(some, unit)])
        result.append(rows)
    return result, [list(colour) for colour in band_colours()]
