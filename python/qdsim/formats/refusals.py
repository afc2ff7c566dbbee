"""Unsupported elements of a file, which are errors unless the caller leaves them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from qdsim.arguments import MOST_TOLD

Kind = Literal["force_limits", "tendons", "actuators", "fluids", "solver", "activations"]
"""Kinds of elements that the caller may leave out.

``force_limits``: force limits of actuators. ``tendons``: tendons with their actuators and equalities.
``actuators``: actuators that are not springs of one joint. ``fluids``, ``solver``, ``activations``:
elements that change MuJoCo's step and that no step of this package simulates (``Refusals.differ``).
"""


class Refusals:
    """Errors about unsupported elements, and messages about those that the caller left out."""

    def __init__(self, leave_out: frozenset[Kind] = frozenset()) -> None:
        self.leave_out = leave_out
        self.errors: list[str] = []
        self._ways: list[tuple[Kind, ...]] = []  # for each error, the kinds that avoid it
        self.left_out: list[str] = []
        self.unlike_mujoco: list[str] = []

    def differ(self, kind: Kind, text: str) -> None:
        """Record an element that makes MuJoCo's step differ from the steps of this package.

        It is an error of steps by MuJoCo's law, unless the caller left it out.
        """
        if kind in self.leave_out:
            self.left_out.append(text)
        else:
            self.unlike_mujoco.append(f"{text} (load(..., leave_out={kind!r}) leaves it out)")

    def error(self, text: str) -> None:
        self.errors.append(text)
        self._ways.append(())

    def refuse(self, kinds: Kind | Sequence[Kind], text: str, hint: str = "") -> bool:
        """Record an unsupported element; return True if it is left out.

        ``kinds``: the element is left out if the caller named any of these kinds; without kinds it
        cannot be left out.
        """
        ways = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        if self.leave_out.intersection(ways):
            self.left_out.append(text)
            return True
        named = " or ".join(f"leave_out='{way}'" for way in ways)
        self.errors.append(f"{text}{hint}" + (f", {named} loads the file without" if ways else ""))
        self._ways.append(ways)
        return False

    def message(self, title: str) -> str:
        """Return a message with all errors (or the first ones), and the ``leave_out`` argument that avoids them."""
        if len(self.errors) == 1:
            return f"{title}: {self.errors[0]}"
        shown = [f"  {item}" for item in self.errors[:MOST_TOLD]]
        if len(self.errors) > MOST_TOLD:
            shown.append(f"  and {len(self.errors) - MOST_TOLD} more")
        if all(self._ways):
            needed = {ways[0] for ways in self._ways if len(ways) == 1}
            needed |= {ways[0] for ways in self._ways if not needed.intersection(ways)}
            names = sorted(needed | self.leave_out)
            value = repr(names[0] if len(names) == 1 else names)
            shown.append(f"leave_out={value} loads the file without all of these")
        return "\n".join([f"{title}:", *shown])


def kinds_of(leave_out: object) -> frozenset[Kind]:
    """Check the argument ``leave_out``, one name or several.

    Raises:
        TypeError, ValueError: It is wrong; the message names it.
    """
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
