"""Names on the command line: published systems or files. The content of a file determines its kind."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import warnings
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.cli.outcome import UnusableError
from qdsim.whole_files import opened

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model
    from qdsim.planning import Plan
    from qdsim.systems import System

__all__ = [
    "add_json",
    "add_loading",
    "check_seed",
    "first_configuration",
    "is_archive",
    "load_model",
    "load_plan",
    "load_system",
    "loading",
    "plan_and_model",
    "refusal",
    "refuse",
    "said_loading",
]

_ROBOT_FILES = (".xml", ".urdf", ".mjcf", ".npz")
"""Endings of robot files; names of systems do not have them."""

_LOADING = ("--stiffness", "--leave-out", "--package-dir")
"""Flags that apply to robot files only."""


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the switch ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for reading a robot file."""
    parser.add_argument(
        "--stiffness",
        type=float,
        help="stiffness of the joints' springs, N/m or Nm/rad; required for a URDF, which has none",
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="KIND",
        help="kind of unsupported elements to leave out, e.g. tendons; may be given several times",
    )
    parser.add_argument(
        "--package-dir",
        action="append",
        default=[],
        metavar="FOLDER",
        help="folder of the packages of package:// names in a URDF",
    )


def check_seed(seed: int) -> None:
    """Raise UnusableError for an invalid seed."""
    if seed < 0:
        raise UnusableError(f"--seed: must not be negative, got {seed}")


def refuse(arguments: argparse.Namespace, flags: Sequence[str], reason: str) -> None:
    """Raise UnusableError if one of these flags is given."""
    for flag in flags:
        if getattr(arguments, flag.lstrip("-").replace("-", "_")) not in (None, False, []):
            raise UnusableError(f"{flag}: {reason}")


def loading(arguments: argparse.Namespace, *sources: str, still: bool = False) -> dict[str, Any]:
    """Return the arguments of ``qdsim.load`` from the command line.

    Args:
        arguments: The arguments of the command line.
        sources: The files to load; flags that apply to none of them are errors.
        still: Whether no step will be taken, so that any stiffness suffices for a URDF.
    """
    if not any(map(os.path.exists, sources)):
        others = f"; not a robot file: {', '.join(sources)}" if sources else ", which --model names"
        refuse(arguments, _LOADING, f"applies to robot files only{others}")
    result: dict[str, Any] = {
        "stiffness": arguments.stiffness,
        "leave_out": arguments.leave_out,
        "package_dirs": arguments.package_dir,
    }
    if still and arguments.stiffness is None and any(map(_is_urdf, sources)):
        result["stiffness"] = 1.0
    return result


def said_loading(arguments: argparse.Namespace) -> str:
    """Write the arguments of ``loading`` as a part of a command line."""
    words = [] if arguments.stiffness is None else [f"--stiffness {arguments.stiffness:g}"]
    words += [f"--leave-out {shlex.quote(kind)}" for kind in arguments.leave_out]
    words += [f"--package-dir {shlex.quote(folder)}" for folder in arguments.package_dir]
    return " ".join(words)


def _is_urdf(path: str) -> bool:
    from qdsim.formats.source import root_tag

    try:
        with opened(path) as file:
            return root_tag(file.read().decode("utf-8")) == "robot"
    except (OSError, UnicodeDecodeError):
        return False


def is_archive(path: str) -> bool:
    """Return whether a file is a plan or another archive of qdsim, whatever its name."""
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def load_system(name: str, *, path: str | None = None) -> System:
    """Load a published system; if it does not exist, UnusableError suggests similar names.

    ``path``: the given argument, if ``name`` is a part of it.
    """
    from qdsim import systems
    from qdsim.systems.names import near_names

    given = name if path is None else path
    if os.path.splitext(given)[1].lower() in _ROBOT_FILES:
        raise UnusableError(f"{given}: there is no such file")
    try:
        return systems.load(name)
    except ValueError:
        near = near_names(name, systems.NAMES)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UnusableError(
            f"{name!r} is neither a file nor a published system{hint} ('qdsim systems' lists them)"
        ) from None


def load_model(name: str, **arguments: Any) -> Model:
    """Load the model of a robot file, without its warnings, or of a published system."""
    if not os.path.exists(name):
        return load_system(name).model
    from qdsim.loading import load

    if is_archive(name):
        raise UnusableError(f"{name}: an archive of arrays, not a robot file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return load(name, **arguments)
        except ValueError as error:
            raise UnusableError(refusal(name, error)) from None


def refusal(path: str, error: ValueError) -> str:
    """Return why a file cannot be loaded, and a flag that helps if there is one."""
    said = str(error)
    if _is_urdf(path) and "stiffness=" in said:
        said += "; on the command line: --stiffness 100, say"
    return said


def first_configuration(model: Model) -> Array:
    """Return the initial configuration ``(nq,)`` of a robot file, within its limits: the first key
    frame, or the default configuration if there is none."""
    for key in model.keyframes.values():
        return model.clamp_to_limits(key.q)
    return model.clamp_to_limits(model.default_q)


def load_plan(path: str) -> Plan:
    """Load a plan; for another kind of file, UnusableError names the kind."""
    from qdsim.planning import Plan

    try:
        return Plan.load(path)
    except ValueError as error:
        kind = _format_of(path)
        found = f" (it is a {kind} file)" if kind not in (None, "qdsim-plan") else ""
        raise UnusableError(f"{error}{found}") from None


def _format_of(path: str) -> str | None:
    """Return the format that an archive's header names, or None."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return str(json.loads(str(archive["header"]))["format"])
    except Exception:  # damaged files raise various classes
        return None


def plan_and_model(
    arguments: argparse.Namespace, source: str, *, still: bool = False
) -> tuple[Plan | None, Model]:
    """Load a plan and its model, or None and the model of a robot file or system.

    ``still``: as in :func:`loading`, if there is no plan.
    """
    if not is_archive(source):
        if os.path.exists(source):
            reason = f"names the robot of a plan, and {source} is a robot file"
        else:
            reason = f"names the robot of a plan, and {source} is none"
        refuse(arguments, ["--model"], reason)
        return None, load_model(source, **loading(arguments, source, still=still))
    plan, name = load_plan(source), arguments.model
    if name is None:
        loading(arguments)
        return plan, _published_model(plan)
    return plan, load_model(name, **loading(arguments, name))


def _published_model(plan: Plan) -> Model:
    """Return the model of the published system that has a plan's task."""
    from qdsim import systems

    for system in map(systems.load, systems.TASK_NAMES):
        if any(task.name == plan.task for task in system.tasks.values()):
            return system.model
    raise UnusableError(
        f"no published system has the task {plan.task!r}: name the plan's robot file by --model"
    )
