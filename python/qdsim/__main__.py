"""``python -m qdsim``: what the package can show from the command line."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    from qdsim import __version__, demo

    parser = argparse.ArgumentParser(prog="python -m qdsim", description=__doc__)
    parser.add_argument("--version", action="version", version=f"qdsim {__version__}")
    commands = parser.add_subparsers(dest="command")
    demo.add_arguments(commands.add_parser("demo", help=demo.__doc__, description=demo.__doc__))
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 0
    try:
        good = demo.run(
            parsed.output, seed=parsed.seed, system=parsed.system, movie=not parsed.no_movie
        )
    except ImportError as error:
        if not str(error).startswith("pictures need"):
            raise
        print(error, file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
