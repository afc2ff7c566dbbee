"""List the published systems and their tasks, which 'qdsim plan' plans."""

from __future__ import annotations

import argparse

from qdsim.cli.outcome import Outcome, table
from qdsim.cli.sources import add_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim systems``."""
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """List all systems by name."""
    from qdsim import systems
    from qdsim.systems.names import environments_of

    found = [systems.load(name) for name in systems.NAMES]
    report = {
        system.name: {
            "nq": system.model.nq,
            "nv": system.model.nv,
            "nu": system.model.nu,
            "tasks": {key: task.name for key, task in system.tasks.items()},
            "environments": environments_of(system.name),
            "about": system.about,
        }
        for system in found
    }
    rows = [("SYSTEM", "TASKS", "ENVIRONMENT", "WHAT IT IS")]
    for system in found:
        ids = environments_of(system.name)
        rows.append(
            (
                system.name,
                ", ".join(system.tasks) or "-",
                ids[0].removeprefix("qdsim/") if ids else "-",
                _short(system.about),
            )
        )
    return Outcome(report, table(rows))


def _short(about: str, longest: int = 72) -> str:
    """Return the first sentence, or the part before its colon, shortened if it is long."""
    first = about.split(": ")[0].split(". ")[0].rstrip(".")
    return first if len(first) <= longest else first[: longest - 3].rsplit(" ", 1)[0] + " ..."
