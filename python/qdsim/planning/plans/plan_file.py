"""Plans in files: one format, of which later versions have more entries; see :meth:`Plan.save`."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim._core import CONTACT_DTYPE
from qdsim.planning.motion.motion import Motion
from qdsim.planning.plans.plan import Plan, Segment
from qdsim.planning.task.space import Array
from qdsim.step import Options

__all__ = ["load_plan", "option_values", "save_plan"]

FORMAT, VERSION = "qdsim-plan", 3

_Counts = np.ndarray[Any, np.dtype[np.int64]]


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """What :meth:`Plan.save` does."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "task": plan.task,
        "object": plan.object,
        "options": option_values(plan.options),
        "position_tolerance": plan.position_tolerance,
        "rotation_tolerance": plan.rotation_tolerance,
        "contact_tolerance": plan.contact_tolerance,
        "planners": [None if m is None else m.planner for m in plan.motions],
    }
    arrays: dict[str, Any] = {
        "header": np.array(json.dumps(header)),
        "goal": plan.goal,
        "steps": np.array([s.steps for s in plan.segments], dtype=np.int64),
        "edges": np.array([len(s.knots) for s in plan.segments], dtype=np.int64),
        "inputs": np.concatenate([s.inputs for s in plan.segments]),
        "configurations": np.concatenate([s.configurations for s in plan.segments]),
        "knots": np.concatenate([s.knots for s in plan.segments]),
    }
    arrays |= _force_arrays(plan) | _motion_arrays(plan)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def _force_arrays(plan: Plan) -> dict[str, Any]:
    contacts: list[NDArray[np.void]] = []
    counts = [np.zeros(1, dtype=np.int64)]
    for segment in plan.segments:
        if segment.contacts is None or segment.contact_start is None:
            return {}
        contacts.append(segment.contacts)
        counts.append(np.diff(segment.contact_start))
    return {
        "contacts": np.concatenate(contacts),
        "contact_start": np.cumsum(np.concatenate(counts), dtype=np.int64),
    }


def _motion_arrays(plan: Plan) -> dict[str, Any]:
    if not plan.motions:
        return {}
    known = [m for m in plan.motions if m is not None]
    return {
        "motion_points": np.array(
            [0 if m is None else len(m.times) for m in plan.motions], dtype=np.int64
        ),
        "motion_configurations": np.concatenate(
            [m.configurations for m in known] or [np.empty((0, len(plan.goal)))]
        ),
        "motion_times": np.concatenate([m.times for m in known] or [np.empty(0)]),
        "motion_ramps": np.concatenate([m.ramps for m in known] or [np.empty(0)]),
    }


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """What :meth:`Plan.load` does."""
    content = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return _from_arrays({name: archive[name] for name in archive.files})
    except Exception as error:  # NumPy and zipfile raise all sorts at damaged archives
        reason = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{Path(path)}: not a plan of qdsim: {reason}") from None


def option_values(options: Options) -> dict[str, Any]:
    """The options' fields by name, as JSON takes them."""
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options) if f.init}


def _from_arrays(arrays: dict[str, Any]) -> Plan:
    header = json.loads(str(arrays["header"]))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is that of another format")
    if header["version"] not in range(1, VERSION + 1):
        raise ValueError(
            f"version {header['version']} of the format, this qdsim reads 1 to {VERSION}"
        )
    options = dict(header["options"])
    options["held"] = tuple(options.get("held", ()))
    goal, inputs, configurations = (
        _table(arrays, name, rank)
        for name, rank in (("goal", 1), ("inputs", 2), ("configurations", 2))
    )
    steps, edges, knots = (_counts(arrays, name) for name in ("steps", "edges", "knots"))
    if len(steps) == 0 or len(edges) != len(steps):
        raise ValueError("steps and edges do not list the same segments")
    if (
        steps.sum() != len(inputs)
        or (steps + 1).sum() != len(configurations)
        or edges.sum() != len(knots)
        or configurations.shape[1] != len(goal)
    ):
        raise ValueError("the sizes of its arrays contradict each other")
    split = [np.cumsum(sizes)[:-1] for sizes in (steps, steps + 1, edges)]
    forces = _forces(arrays, steps)
    segments = tuple(
        Segment(u, q, k, *own)
        for u, q, k, own in zip(
            np.split(inputs, split[0]),
            np.split(configurations, split[1]),
            np.split(knots, split[2]),
            forces,
        )
    )
    if any(np.any(np.diff(s.knots, prepend=0) < 0) or np.any(s.knots > s.steps) for s in segments):
        raise ValueError("knots do not rise within their segments")
    return Plan(
        task=str(header["task"]),
        object=str(header["object"]),
        options=Options(**options),
        goal=goal,
        position_tolerance=float(header["position_tolerance"]),
        rotation_tolerance=float(header["rotation_tolerance"]),
        contact_tolerance=float(header["contact_tolerance"]),
        segments=segments,
        motions=_motions(arrays, header, len(steps) - 1, len(goal)),
    )


def _forces(arrays: dict[str, Any], steps: _Counts) -> list[tuple[Any, Any]]:
    """Contacts and where each step's begin, by segments; pairs of None where the file has none."""
    if "contacts" not in arrays:
        return [(None, None)] * len(steps)
    contacts, start = arrays["contacts"], _counts(arrays, "contact_start")
    if contacts.dtype != CONTACT_DTYPE or contacts.ndim != 1:
        raise ValueError("contacts is not a list of contacts")
    if not (np.all(np.isfinite(contacts["force"])) and np.all(np.isfinite(contacts["pos"]))):
        raise ValueError("contacts is not a list of finite contacts")
    if len(start) != steps.sum() + 1 or start[0] != 0 or start[-1] != len(contacts):
        raise ValueError("contact_start does not divide the contacts among the steps")
    first = np.concatenate(([0], np.cumsum(steps)))
    return [
        (contacts[start[a] : start[b]], start[a : b + 1] - start[a]) for a, b in pairwise(first)
    ]


def _motions(
    arrays: dict[str, Any], header: dict[str, Any], regrasps: int, nq: int
) -> tuple[Motion | None, ...]:
    if "motion_points" not in arrays:
        return ()
    points = _counts(arrays, "motion_points")
    q, times = _table(arrays, "motion_configurations", 2), _table(arrays, "motion_times", 1)
    pieces = np.maximum(points - 1, 0)
    # Before version 3 motions moved at constant speed between their points.
    ramps = _table(arrays, "motion_ramps", 1) if header["version"] >= 3 else np.zeros(pieces.sum())
    planners = header["planners"]
    if (
        len(points) != regrasps
        or len(planners) != regrasps
        or np.any(points == 1)
        or points.sum() != len(q)
        or len(q) != len(times)
        or pieces.sum() != len(ramps)
        or q.shape[1] != nq
    ):
        raise ValueError("the motions contradict each other")
    split = np.cumsum(points)[:-1]
    own = (np.split(q, split), np.split(times, split), np.split(ramps, np.cumsum(pieces)[:-1]))
    return tuple(
        Motion(points, when, str(planner), ramp) if len(points) else None
        for points, when, ramp, planner in zip(*own, planners)
    )


def _table(arrays: dict[str, Any], name: str, rank: int) -> Array:
    array = arrays[name]
    if array.dtype != np.float64 or array.ndim != rank or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} is not a table of rank {rank} of finite numbers")
    return np.ascontiguousarray(array)


def _counts(arrays: dict[str, Any], name: str) -> _Counts:
    array = arrays[name]
    if array.dtype != np.int64 or array.ndim != 1 or np.any(array < 0):
        raise ValueError(f"{name} is not a list of counts")
    return np.asarray(array)
