"""The commands, their arguments and their exit statuses."""

from __future__ import annotations

import argparse
import enum
import importlib
import json
import os
import sys
from collections.abc import Sequence

from qdsim import SolverError, __version__
from qdsim.cli.outcome import Outcome, UnusableError

__all__ = ["main"]

_COMMANDS = {
    "demo": "plan a half turn of a disc by a planar hand, replay it, draw it",
    "check": "load a robot file, say what it holds, take one step",
    "view": "show a robot file, a system or a plan in a browser",
    "plan": "plan how a robot moves an object: your file or a published system; execute and film it",
    "replay": "take a plan's steps again and judge it",
    "render": "draw a plan, a robot file or a system: picture or movie",
    "systems": "list the published systems and their tasks",
    "info": "versions, cores and optional packages",
    "bench": "time steps and derivatives beside MuJoCo's step",
}
"""Commands in the order of the help; each is a module of this package with ``add_arguments`` and ``run``."""


class _Exit(enum.IntEnum):
    """Exit statuses of the commands."""

    GOOD, BAD, UNUSABLE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The arguments of the command line; None: those of this process.

    Returns:
        The exit status: 0 for success; 1 if the command ran and found a fault; 2 if it could not
        run with these arguments; 130 after Ctrl-C.
    """
    parsed = _parser().parse_args(arguments)
    if parsed.command is None:
        _parser().print_help()
        return _Exit.GOOD
    try:
        outcome = parsed.run(parsed)
    except (UnusableError, OSError) as error:
        return _refuse(parsed.command, error)
    except SolverError as error:
        _complain(parsed.command, str(error))
        return _Exit.BAD
    except ImportError as error:
        if "pip install" not in str(error):
            raise
        return _refuse(parsed.command, error)
    except KeyboardInterrupt as stopped:
        _complain(parsed.command, f"interrupted: {stopped}".removesuffix(": "))
        return _Exit.INTERRUPTED
    return _say(outcome, as_json=getattr(parsed, "json", False))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qdsim",
        description="Simulate, differentiate and plan with convex contact.",
        epilog="Exit status: 0 good, 1 fault found, 2 cannot run. 'qdsim COMMAND --help' has the details.",
    )
    parser.add_argument("--version", action="version", version=f"qdsim {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, about in _COMMANDS.items():
        module = importlib.import_module(f"qdsim.cli.{name}")
        command = commands.add_parser(name, help=about, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _refuse(command: str, error: BaseException) -> int:
    said = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        said = f"{error.filename}: {error.strerror}"
    _complain(command, said)
    return _Exit.UNUSABLE


def _complain(command: str, said: str) -> None:
    print(f"qdsim {command}: {said}", file=sys.stderr)


def _say(outcome: Outcome, *, as_json: bool) -> int:
    text = json.dumps(outcome.report, indent=2) if as_json else "\n".join(outcome.lines)
    try:
        if text:
            print(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe, as ``head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if outcome.interrupted:
        return _Exit.INTERRUPTED
    return _Exit.GOOD if outcome.good else _Exit.BAD
