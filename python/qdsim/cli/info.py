"""Show versions of qdsim and of its dependencies, the number of cores, and installed optional
packages."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

from qdsim.cli.outcome import Outcome, table
from qdsim.cli.sources import add_json

__all__ = ["add_arguments", "run"]

_FOR_USERS = ("demo", "planning", "meshes", "notebooks", "viewer", "envs", "jax", "torch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim info``."""
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Print the versions and settings that a bug report needs."""
    import qdsim

    folder = Path(qdsim.__file__).parent
    carried = any((folder / "_lib").glob("*openblas*"))
    report: dict[str, Any] = {
        "qdsim": qdsim.__version__,
        "folder": str(folder),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "linear algebra": "OpenBLAS, carried in the package" if carried else "of the system",
        "packages": {name: _version(name) for name in ("numpy", "mujoco")},
        "extras": _extras(),
    }
    rows = [(key, str(report[key])) for key in list(report)[:6]]
    rows += [(name, version or "missing") for name, version in report["packages"].items()]
    for extra, needed in report["extras"].items():
        missing = [name for name, version in needed.items() if version is None]
        rows.append((f"[{extra}]", f"missing: {', '.join(missing)}" if missing else "complete"))
    return Outcome(report, table(rows))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extras() -> dict[str, dict[str, str | None]]:
    """Return the versions of each extra's packages; the metadata of the installed package lists them."""
    found: dict[str, dict[str, str | None]] = {}
    for line in importlib.metadata.requires("qdsim") or []:
        of = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        name = re.match(r"[\w.-]+", line)
        if of and name and of.group(1) in _FOR_USERS and name.group() != "qdsim":
            found.setdefault(of.group(1), {})[name.group()] = _version(name.group())
    return found
