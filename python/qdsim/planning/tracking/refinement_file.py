"""Refinements in files: the segments that are done, so that one that was cut off goes on with the next."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.planning.plans.archive import load_checkpoint, write_archive
from qdsim.planning.plans.plan import Plan, Segment
from qdsim.planning.search.tree_file import fingerprint
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.search_file import said

if TYPE_CHECKING:
    from qdsim.planning.tracking.refinement import RefineOptions

__all__ = ["load_segments", "mark_of", "save_segments"]

FORMAT, VERSION = "qdsim-refinement", 1


def mark_of(plan: Plan, task: Task, options: RefineOptions, impc: ImpcOptions) -> str:
    """A hash of what refined segments depend on."""
    digest = hashlib.sha256(fingerprint(task).encode())
    for segment in plan.segments:
        for array in (segment.inputs, segment.configurations, segment.knots):
            digest.update(np.ascontiguousarray(array).tobytes())
    own = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)} | {"impc": None}
    digest.update(repr((plan.options, plan.contact_tolerance, own, said(impc))).encode())
    return digest.hexdigest()


def save_segments(
    path: str | os.PathLike[str], mark: str, segments: list[Segment], reports: list[Any]
) -> None:
    """Write segments and what was said of them."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "mark": mark,
        "reports": [dataclasses.asdict(report) for report in reports],
    }
    arrays = {
        f"{name}_{k}": getattr(segment, name)
        for k, segment in enumerate(segments)
        for name in ("inputs", "configurations", "knots")
    }
    write_archive(path, header, arrays)


def load_segments(
    path: str | os.PathLike[str], mark: str
) -> tuple[list[Segment], list[dict[str, Any]]]:
    """What :func:`save_segments` wrote; nothing if there is no file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is damaged or belongs to another plan, task or other options.
    """
    found = load_checkpoint(
        path,
        {"format": FORMAT, "version": VERSION, "mark": mark},
        _segments,
        run="refinement",
        inputs="plan, task or other options",
    )
    return found or ([], [])


def _segments(header: Any, arrays: dict[str, Any]) -> tuple[list[Segment], list[dict[str, Any]]]:
    reports = [
        report | {name: tuple(report[name]) for name in ("error_before", "error_after")}
        for report in header["reports"]
    ]
    names = ("inputs", "configurations", "knots")
    segments = [Segment(*(arrays[f"{n}_{k}"] for n in names)) for k in range(len(reports))]
    return segments, reports
