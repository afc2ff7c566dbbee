"""What a command has to say, and how it ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Outcome", "UnusableError", "table"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The end of a command.

    Attributes:
        report: what ``--json`` prints: text, numbers, lists and mappings.
        lines: the same for people.
        good: False: it ran, and what it looked at is not as it should be (exit status 1).
        interrupted: Ctrl-C ended it (exit status 130); this is what it has.
    """

    report: Mapping[str, Any]
    lines: Sequence[str]
    good: bool = True
    interrupted: bool = False


class UnusableError(Exception):
    """The command cannot run with these arguments (exit status 2); the message says why."""


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns below each other."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
