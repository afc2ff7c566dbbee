"""The result of a command: its output and its exit status."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Outcome", "UnusableError", "table"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a command.

    Attributes:
        report: output of ``--json``: text, numbers, lists and mappings.
        lines: output as text.
        good: False if the command ran and found a fault (exit status 1).
        interrupted: whether Ctrl-C ended it (exit status 130); the result is partial.
    """

    report: Mapping[str, Any]
    lines: Sequence[str]
    good: bool = True
    interrupted: bool = False


class UnusableError(Exception):
    """The command cannot run with these arguments (exit status 2); the message says why."""


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines with aligned columns."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
