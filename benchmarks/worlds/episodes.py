"""Episodes of a benchmark, kept in a file: an interrupted run continues where it stopped."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["arguments", "episodes"]

Key = tuple[Any, ...]


def arguments(description: str | None, controllers: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser, which shows the description as it is, with ``--cache``, ``--cached`` and ``--controllers``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--controllers", nargs="*", default=list(controllers))
    parser.add_argument("--cached", action="store_true", help="print the table without runs")
    return parser


def episodes(
    given: argparse.Namespace, keys: Iterable[Key], run: Callable[..., dict[str, Any]]
) -> dict[Key, dict[str, Any]]:
    """Make the episodes that the cache lacks, each written at once as a line of JSON, and return all.

    Args:
        given: Arguments of `arguments`.
        keys: The episodes that are asked for.
        run: ``run(*key)`` makes one.
    """
    warnings.filterwarnings("ignore")
    lines = given.cache.read_text().splitlines() if given.cache and given.cache.exists() else []
    known = {tuple(key): made for key, made in map(json.loads, lines)}
    for key in () if given.cached else keys:
        if key not in known:
            known[key] = run(*key)
            if given.cache:
                with given.cache.open("a") as file:
                    file.write(json.dumps([key, known[key]]) + "\n")
    return known
