"""Load a robot file (MJCF or URDF), describe its content, list ignored elements, say whether plans
can be made with it, and take one step from its first key frame, or from its default configuration.
The exit status is 1 if loading or the step fails."""

from __future__ import annotations

import argparse
import os
import shlex
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import MOST_TOLD
from qdsim.cli.describing import (
    contact_rows,
    degrees_meant,
    grouped,
    joint_rows,
    lag,
    near_rows,
    object_rows,
)
from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.sources import (
    add_json,
    add_loading,
    first_configuration,
    is_archive,
    loading,
    refusal,
    refuse,
    said_loading,
)
from qdsim.whole_files import opened

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model

__all__ = ["add_arguments", "run"]

_NEAR = 0.02
"""Contacts up to this distance are counted, m; with a tenth, test_command_line.py fails."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim check``."""
    parser.add_argument("file", metavar="FILE", help="an MJCF or URDF file")
    add_loading(parser)
    parser.add_argument("--picture", metavar="PNG", help="draw that configuration")
    parser.add_argument(
        "--collision", action="store_true", help="draw collision geometry, not visual geometry"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Load the file, take a step, and draw it."""
    from qdsim.loading import load
    from qdsim.step import Options

    path = arguments.file
    if arguments.picture is None:
        refuse(arguments, ["--collision"], "needs --picture")
    if is_archive(path):
        raise UnusableError(f"{path}: an archive of arrays, not a robot file; try 'qdsim replay'")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = load(path, **loading(arguments, path))
        except ValueError as error:
            if not _readable(path):
                raise UnusableError(str(error)) from None
            reason = refusal(path, error)
            report = {"file": path, "loads": False, "reason": reason}
            return Outcome(report, (f"{path} is refused:", f"  {reason}"), good=False)
    q = first_configuration(model)
    report, lines = _describe(path, model, q)
    report["warnings"] = [str(warning.message) for warning in heard]
    lines += [f"  warning: {text}" for text in report["warnings"]]
    if (guess := degrees_meant(model)) is not None:
        report["warnings"].append(guess)
        lines.append(f"  warning: {guess}")
    lines += [f"  without meaning here: {text}" for text in grouped(model.ignored)]
    report["step"], said, good = _first_step(model, q)
    lines.append(f"  {said}")
    report["lag"], slowest = lag(model)
    if report["lag"] > 0.1 * Options().h:
        lines.append(
            f"  damping: joints follow their springs up to {report['lag']:.2g} s late ({slowest!r}); quasi-dynamic steps "
            "include that with Options(damping=True)"
        )
    report["ready_to_plan"], report["obstacle"], said = _ready(arguments, model, q, good)
    lines.append(f"  ready to plan: {said}")
    if arguments.picture is not None:
        from qdsim.planning import pictures

        geometry = "collision" if arguments.collision else "visual"
        pictures.draw_configuration(model, arguments.picture, q, geometry=geometry)
        report["picture"] = arguments.picture
        lines.append(f"  drawn in {arguments.picture}")
    return Outcome(report, lines, good)


def _readable(path: str) -> bool:
    try:
        with opened(path) as file:
            file.read().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True


def _describe(path: str, model: Model, q: Array) -> tuple[dict[str, Any], list[str]]:
    """Return the content of the file as a report and as lines of text."""
    counts = {
        "bodies": len(model.body_names) - 1,
        "joints": len(model.joint_names),
        "actuators": len(model.actuator_names),
        "geometries": len(model.geom_names),
        "pairs that may touch": len(model.pair_geom),
        "key frames": len(model.keyframes),
    }
    driven = int(np.count_nonzero(model.actuated_v >= 0))
    freedoms = f"{model.nv} degrees of freedom, {driven} with an actuator of their own"
    report: dict[str, Any] = {"file": os.fspath(path), "loads": True, "name": model.name}
    report |= {"nq": model.nq, "nv": model.nv, "nu": model.nu, "counts": counts}
    report["ignored"] = list(model.ignored)
    joints = joint_rows(model)
    keys = ("name", "type", "range", "actuator")
    report["joints"] = [dict(zip(keys, row)) for row in joints]
    report["objects"] = object_rows(model, q)
    report["contacts"] = contact_rows(model, q, _NEAR)
    rows = [("name", model.name), ("nq, nv, nu", f"{model.nq}, {model.nv}, {model.nu}")]
    rows += [("", freedoms), *((name, str(count)) for name, count in counts.items())]
    lines = [f"{path} loads", *(f"  {line}" for line in table(rows))]
    if joints:
        lines += _indented("joints", table([("NAME", "TYPE", "RANGE", "ACTUATOR"), *joints]))
    lines += _indented("objects", table([_object_row(item) for item in report["objects"]]))
    near = near_rows(report["contacts"])
    told, left = table(near[:MOST_TOLD]), len(near) - MOST_TOLD
    title = f"pairs nearer than {_NEAR} m at the start"
    return report, lines + _indented(title, told + ([f"and {left} more"] if left > 0 else []))


def _indented(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}" + ("" if lines else ": none"), *(f"    {line}" for line in lines)]


def _object_row(item: dict[str, Any]) -> tuple[str, str, str, str]:
    size = item["size"]
    measures = "no shape" if size is None else " x ".join(f"{s:.3g}" for s in size) + " m"
    joints = item["joints"][:MOST_TOLD]
    more = len(item["joints"]) - len(joints)
    told = ", ".join(joints) + (f" and {more} more" if more > 0 else "")
    return item["name"], f"{item['mass']:.3g} kg", measures, told


def _ready(
    arguments: argparse.Namespace, model: Model, q: Array, steps: bool
) -> tuple[bool, str | None, str]:
    """Return whether plans can be made, the obstacle if not, and both in words."""
    from qdsim.cli.own_tasks import obstacle

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of these trials are not of interest
        reason = obstacle(model, q) if steps else "the first step fails"
    if reason is not None:
        return False, reason, f"no, because {reason}"
    words = ["qdsim plan", shlex.quote(arguments.file), said_loading(arguments), "--goal '...'"]
    return True, None, f"yes: {' '.join(filter(None, words))}"


def _first_step(model: Model, q: Array) -> tuple[dict[str, Any], str, bool]:
    """Take a step with the command that holds ``q``; return a report, a text, and whether it succeeded."""
    from qdsim._core import SolverError
    from qdsim.step import Options, step

    try:
        taken = step(model, q, model.command_from(q), Options(margin=_NEAR))
    except SolverError as error:
        return {"solved": False, "reason": str(error)}, f"a step fails: {error}", False
    touching = taken.contacts
    moved = float(abs(model.difference(taken.q_next, q)).max(initial=0.0))
    report = {"solved": True, "contacts": len(touching), "largest_motion": moved}
    said = f"a step is solved: {len(touching)} contacts within {_NEAR} m, largest change of a coordinate {moved:.2g} m or rad"
    return report, said, True
