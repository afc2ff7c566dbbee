"""Plans in files; see :meth:`Plan.save`."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qdsim._core import CONTACT_DTYPE
from qdsim.arguments import instance, number
from qdsim.planning.motion.motion import Motion
from qdsim.planning.plans.archive import Archive, Format
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.step import Options

__all__ = ["FORMAT", "entries_of", "fields_of"]

FORMAT = Format("qdsim-plan", 4, "a plan of qdsim")

_TOLERANCES = ("position_tolerance", "rotation_tolerance", "contact_tolerance")

_Counts = np.ndarray[Any, np.dtype[np.int64]]


def entries_of(plan: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of a file from a plan's fields."""
    segments = cast("tuple[Segment, ...]", plan["segments"])
    motions = cast("tuple[Motion | None, ...]", plan["motions"])
    header = {
        "task": plan["task"],
        "object": plan["object"],
        "options": _option_values(plan["options"]),
        **{name: plan[name] for name in _TOLERANCES},
        "command_bounds": plan["command_bounds"],
        "planners": [None if m is None else m.planner for m in motions],
        "goal_region": None
        if (region := plan["goal_region"]) is None
        else dataclasses.asdict(region),
    }
    arrays: dict[str, Any] = {
        "goal": plan["goal"],
        "steps": np.array([s.steps for s in segments], dtype=np.int64),
        "edges": np.array([len(s.knots) for s in segments], dtype=np.int64),
        "inputs": np.concatenate([s.inputs for s in segments]),
        "configurations": np.concatenate([s.configurations for s in segments]),
        "knots": np.concatenate([s.knots for s in segments]),
    }
    return header, arrays | _force_arrays(segments) | _motion_arrays(motions, len(plan["goal"]))


def _force_arrays(segments: tuple[Segment, ...]) -> dict[str, Any]:
    contacts: list[NDArray[np.void]] = []
    counts = [np.zeros(1, dtype=np.int64)]
    for segment in segments:
        if segment.contacts is None or segment.contact_start is None:
            return {}
        contacts.append(segment.contacts)
        counts.append(np.diff(segment.contact_start))
    return {
        "contacts": np.concatenate(contacts),
        "contact_start": np.cumsum(np.concatenate(counts), dtype=np.int64),
    }


def _motion_arrays(motions: tuple[Motion | None, ...], nq: int) -> dict[str, Any]:
    if not motions:
        return {}
    known = [m for m in motions if m is not None]
    return {
        "motion_points": np.array(
            [0 if m is None else len(m.times) for m in motions], dtype=np.int64
        ),
        "motion_configurations": np.concatenate(
            [m.configurations for m in known] or [np.empty((0, nq))]
        ),
        "motion_times": np.concatenate([m.times for m in known] or [np.empty(0)]),
        "motion_ramps": np.concatenate([m.ramps for m in known] or [np.empty(0)]),
    }


def _option_values(options: Options) -> dict[str, Any]:
    """Return the options' fields by name, for JSON."""
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options) if f.init}


def fields_of(archive: Archive) -> dict[str, Any]:
    """Read a plan's fields from an open file."""
    header = archive.header
    region = header["goal_region"]
    options = {**header["options"], "held": tuple(header["options"]["held"])}
    # Check that the sizes of all entries are consistent before reading any of them.
    (count, nu), (points, nq) = (archive.shape(name, 2) for name in ("inputs", "configurations"))
    if points <= count or nu > nq:
        raise ValueError("the sizes of its arrays contradict each other")
    steps = archive.counts("steps", points - count)
    edges = archive.counts("edges", len(steps))
    goal = archive.array("goal", np.float64, nq)
    total = sum(steps.tolist())  # a sum of Python integers does not overflow
    inputs = archive.array("inputs", np.float64, total, nu)
    configurations = archive.array("configurations", np.float64, total + len(steps), nq)
    knots = archive.counts("knots", sum(edges.tolist()))
    split = [np.cumsum(sizes)[:-1] for sizes in (steps, steps + 1, edges)]
    segments = tuple(
        Segment(u, q, k, *own)
        for u, q, k, own in zip(
            np.split(inputs, split[0]),
            np.split(configurations, split[1]),
            np.split(knots, split[2]),
            _forces(archive, steps),
        )
    )
    if any(np.any(np.diff(s.knots, prepend=0) < 0) or np.any(s.knots > s.steps) for s in segments):
        raise ValueError("knots do not rise within their segments")
    return {
        "task": instance("task", header["task"], str),
        "object": instance("object", header["object"], str),
        "options": Options(**options),
        "goal": goal,
        **{name: number(name, header[name], least=0, infinite=True) for name in _TOLERANCES},
        "segments": segments,
        "motions": _motions(archive, len(steps) - 1, len(goal)),
        "command_bounds": _bounds(header, nu),
        "goal_region": None if region is None else GoalRegion(**region),
    }


def _bounds(header: dict[str, Any], nu: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Read the bounds of the commands; None if the file has none."""
    given = header["command_bounds"]
    if given is None:
        return None
    lower, upper = (
        tuple(number("command_bounds", bound, infinite=True) for bound in bounds)
        for bounds in given
    )
    if len(lower) != nu or len(upper) != nu:
        raise ValueError("command_bounds are not as many as commands")
    return lower, upper


def _forces(archive: Archive, steps: _Counts) -> list[tuple[Any, Any]]:
    """Read the contacts of each segment and the starts of each step's contacts; pairs of None if
    the file has none."""
    if "contacts" not in archive:
        return [(None, None)] * len(steps)
    total = int(steps.sum())
    start = archive.counts("contact_start", total + 1)
    if start[0] != 0 or np.any(np.diff(start) < 0):
        raise ValueError("contact_start does not divide the contacts among the steps")
    contacts = archive.array(
        "contacts", CONTACT_DTYPE, int(start[-1]), fault="contacts is not a list of contacts"
    )
    if not (np.all(np.isfinite(contacts["force"])) and np.all(np.isfinite(contacts["pos"]))):
        raise ValueError("contacts is not a list of finite contacts")
    first = np.concatenate(([0], np.cumsum(steps)))
    return [
        (contacts[start[a] : start[b]], start[a : b + 1] - start[a]) for a, b in pairwise(first)
    ]


def _motions(archive: Archive, regrasps: int, nq: int) -> tuple[Motion | None, ...]:
    if "motion_points" not in archive:
        return ()
    fault = "the motions contradict each other"
    points = archive.counts("motion_points", regrasps, fault)
    total = sum(points.tolist())
    q = archive.array("motion_configurations", np.float64, total, nq, fault=fault)
    times = archive.array("motion_times", np.float64, total, fault=fault)
    pieces = np.maximum(points - 1, 0)
    ramps = archive.array("motion_ramps", np.float64, int(pieces.sum()), fault=fault)
    planners = archive.header["planners"]
    if len(planners) != regrasps or np.any(points == 1):
        raise ValueError(fault)
    split = np.cumsum(points)[:-1]
    own = (np.split(q, split), np.split(times, split), np.split(ramps, np.cumsum(pieces)[:-1]))
    return tuple(
        Motion(points, when, str(planner), ramp) if len(points) else None
        for points, when, ramp, planner in zip(*own, planners)
    )
