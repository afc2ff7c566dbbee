"""Load a robot file (MJCF or URDF), say what it holds and what is left out, and take one step from its first key
frame, or from its default configuration. Exit status 1 if it is refused or the step fails."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import TYPE_CHECKING, Any

from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.sources import add_json, add_loading, first_configuration, is_archive, loading
from qdsim.whole_files import opened

if TYPE_CHECKING:
    from qdsim.model import FloatArray, Model

__all__ = ["add_arguments", "run"]

_NEAR = 0.02
"""m: contacts up to this distance are counted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``qdsim check``."""
    parser.add_argument("file", metavar="FILE", help="an MJCF or URDF file")
    add_loading(parser)
    parser.add_argument("--picture", metavar="PNG", help="draw that configuration")
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Load, step, draw."""
    from qdsim.loading import load

    path = arguments.file
    if is_archive(path):
        raise UnusableError(f"{path}: an archive of arrays, not a robot file; try 'qdsim replay'")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = load(path, **loading(arguments, path))
        except ValueError as error:
            if not _readable(path):
                raise UnusableError(str(error)) from None
            report = {"file": path, "loads": False, "reason": str(error)}
            return Outcome(report, (f"{path} is refused:", f"  {error}"), good=False)
    report, rows = _describe(path, model)
    report["warnings"] = [str(warning.message) for warning in heard]
    lines = [f"{path} loads", *(f"  {line}" for line in table(rows))]
    lines += [f"  warning: {text}" for text in report["warnings"]]
    lines += [f"  without meaning here: {text}" for text in model.ignored]
    q = first_configuration(model)
    report["step"], said, good = _first_step(model, q)
    lines.append(f"  {said}")
    if arguments.picture is not None:
        from qdsim.planning import pictures

        pictures.draw_configuration(model, arguments.picture, q)
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


def _describe(path: str, model: Model) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    counts = {
        "bodies": len(model.body_names) - 1,
        "joints": len(model.joint_names),
        "actuators": len(model.actuator_names),
        "geometries": len(model.geom_names),
        "pairs that may touch": len(model.pair_geom),
        "key frames": len(model.keyframes),
    }
    report = {"file": os.fspath(path), "loads": True, "name": model.name}
    report |= {"nq": model.nq, "nv": model.nv, "nu": model.nu, "counts": counts}
    report["ignored"] = list(model.ignored)
    rows = [("name", model.name), ("nq, nv, nu", f"{model.nq}, {model.nv}, {model.nu}")]
    return report, rows + [(name, str(count)) for name, count in counts.items()]


def _first_step(model: Model, q: FloatArray) -> tuple[dict[str, Any], str, bool]:
    """A step with the command that holds the default configuration: report, words, whether it went well."""
    from qdsim._core import SolverError
    from qdsim.step import Options, step

    try:
        taken = step(model, q, model.command_from(q), Options(margin=_NEAR))
    except SolverError as error:
        return {"solved": False, "reason": str(error)}, f"a step fails: {error}", False
    touching = taken.contacts
    moved = float(abs(model.difference(taken.q_next, q)).max(initial=0.0))
    report = {"solved": True, "contacts": len(touching), "largest_motion": moved}
    said = (
        f"a step is solved: {len(touching)} contacts within {_NEAR} m, largest motion {moved:.2g}"
    )
    return report, said, True
