"""Plan a half turn of a disc by a planar hand, replay it, draw it."""

from __future__ import annotations

import argparse
from pathlib import Path

from qdsim.cli.outcome import Outcome, UnusableError
from qdsim.cli.sources import check_seed, load_system

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim demo``."""
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the results")
    parser.add_argument("--seed", type=int, default=0, help="seed of the planner")
    parser.add_argument(
        "--system", default="planar_hand", help="a published system ('qdsim systems' lists them)"
    )
    parser.add_argument("--no-movie", action="store_true", help="do not write the movie")


def run(arguments: argparse.Namespace) -> Outcome:
    """Run the demonstration; it prints its own output."""
    from qdsim import demo, systems

    check_seed(arguments.seed)
    system = load_system(arguments.system)
    if not system.tasks:
        raise UnusableError(
            f"--system: expected one of {', '.join(systems.TASK_NAMES)}, got {arguments.system!r}"
        )
    good = demo.run(
        arguments.output, seed=arguments.seed, system=system.name, movie=not arguments.no_movie
    )
    return Outcome({"good": good}, (), good)
