"""What a file has and quasi-dynamics does not: errors, unless the caller has it left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Kind = Literal["force_limits", "tendons", "actuators", "mocap", "height_fields", "ball_limits"]
"""What may be left out: force limits of actuators; tendons with all they pull; actuators that are not
springs of one joint; motion capture bodies, which then stay where the file puts them; height fields; limits of
ball joints."""


class Refusals:
    """Errors, and sentences about what was left out because the caller said so."""

    def __init__(self, leave_out: frozenset[Kind] = frozenset()) -> None:
        self.leave_out = leave_out
        self.errors: list[str] = []
        self.left_out: list[str] = []

    def error(self, text: str) -> None:
        self.errors.append(text)

    def refuse(self, kind: Kind | None, text: str, hint: str = "") -> bool:
        """True if it is left out. ``kind``: None if nobody can have it left out."""
        if kind in self.leave_out:
            self.left_out.append(text)
            return True
        way = f", leave_out='{kind}' loads the file without" if kind is not None else ""
        self.errors.append(f"{text}{hint}{way}")
        return False


def kinds_of(leave_out: object) -> frozenset[Kind]:
    """The argument ``leave_out``: one name or several. Raises TypeError or ValueError naming it."""
    names = (leave_out,) if isinstance(leave_out, str) else leave_out
    if not isinstance(names, Iterable):
        raise TypeError(f"leave_out must be names, got {type(leave_out).__name__}")
    result = set()
    for name in names:
        if name not in get_args(Kind):
            raise ValueError(
                f"leave_out: expected some of {', '.join(get_args(Kind))}, got {name!r}"
            )
        result.add(name)
    return frozenset(result)
