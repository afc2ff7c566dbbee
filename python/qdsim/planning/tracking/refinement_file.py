"""Refinements in files: finished segments, so that an interrupted refinement continues with the
next one."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

import numpy as np

from qdsim.arguments import flag, integer, number
from qdsim.planning.plans.archive import Archive, Format, load_checkpoint, write_archive
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.fingerprint import fingerprint
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.refine_options import RefineOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.search_file import said

__all__ = ["load_segments", "mark_of", "save_segments"]

FORMAT = Format("qdsim-refinement", 2, "one of this refinement")


def mark_of(plan: Plan, task: Task, options: RefineOptions, impc: ImpcOptions) -> str:
    """Return a hash of the inputs of refined segments."""
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
    """Write segments and their results."""
    header = {"mark": mark, "reports": [dataclasses.asdict(report) for report in reports]}
    arrays = {
        f"{name}_{k}": getattr(segment, name)
        for k, segment in enumerate(segments)
        for name in ("inputs", "configurations", "knots")
    }
    write_archive(path, FORMAT, header, arrays)


def load_segments(
    path: str | os.PathLike[str],
    plan: Plan,
    task: Task,
    options: RefineOptions,
    impc: ImpcOptions,
) -> tuple[list[Segment], list[dict[str, Any]]]:
    """Read a file written by :func:`save_segments`; nothing if there is no file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is damaged or belongs to another plan, task or other options.
    """
    found = load_checkpoint(
        path,
        FORMAT,
        mark_of(plan, task, options, impc),
        lambda archive: _segments(archive, task),
        inputs="plan, task or other options",
    )
    return found or ([], [])


def _segments(archive: Archive, task: Task) -> tuple[list[Segment], list[dict[str, Any]]]:
    reports = [_report(values) for values in archive.header["reports"]]
    segments = []
    for k, report in enumerate(reports):
        steps = report["steps_after"]
        inputs = archive.array(f"inputs_{k}", np.float64, steps, task.model.nu)
        path = archive.array(f"configurations_{k}", np.float64, steps + 1, task.model.nq)
        knots = archive.counts(f"knots_{k}", min(steps, 1))
        if np.any(np.diff(knots, prepend=0) < 0) or np.any(knots > len(inputs)):
            raise ValueError("knots do not rise within their segments")
        segments.append(Segment(inputs, path, knots))
    return segments, reports


def _report(values: dict[str, Any]) -> dict[str, Any]:
    """Check the fields of a report and convert them to their types."""
    steps = {name: integer(name, values[name], least=0) for name in ("steps_before", "steps_after")}
    errors = {}
    for name in ("error_before", "error_after"):
        shift, turn = values[name]
        errors[name] = (number(name, shift, least=0), number(name, turn, least=0))
    return {**steps, **errors, "optimised": flag("optimised", values["optimised"])}
