"""A progress bar: tqdm's if it is installed, else a line that is overwritten in the terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Update", "away", "progress_bar"]

Update = Callable[[int, str], None]
"""``update(done, text)``: the amount of work done, and a text to show next to the bar."""

_PAUSE = 0.2
"""Time between two updates of the line, s."""


@contextlib.contextmanager
def progress_bar(show: bool, total: int | None, title: str, unit: str) -> Iterator[Update]:
    """Yield a function that reports progress; without tqdm it prints only in terminals.

    A ``KeyboardInterrupt`` tells how far the work has come.

    Args:
        show: whether to show anything.
        total: amount of work; None if unknown.
        title: text before the bar.
        unit: unit of the count.
    """
    last = (0, "")

    def update(done: int, text: str) -> None:
        nonlocal last
        last = (done, text)
        drawn(done, text)

    with _drawn(show, total, title, unit) as drawn:
        try:
            yield update
        except KeyboardInterrupt as stopped:
            # with nested bars, the text of the outermost one remains
            stopped.args = (f"after {_so_far(*last, total, unit)}",)
            raise


@contextlib.contextmanager
def _drawn(show: bool, total: int | None, title: str, unit: str) -> Iterator[Update]:
    """Draw the bar."""
    tqdm = _tqdm() if show else None
    if tqdm is not None:
        with tqdm(total=total, desc=title, unit=f" {unit}", leave=False) as bar:

            def update(done: int, text: str) -> None:
                bar.update(done - bar.n)
                bar.set_postfix_str(text, refresh=False)

            yield update
    elif show and sys.stderr.isatty():
        try:
            yield _Line(total, title, unit)
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    else:
        yield lambda done, text: None


def _so_far(done: int, text: str, total: int | None, unit: str) -> str:
    """Return the amount of work done, as text."""
    of = "" if total is None else f" of {total}"
    return f"{done}{of} {unit}" + f", {text}" * bool(text)


def _tqdm() -> Any:
    """Return the class of tqdm's bars; None if tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


class _Line:
    """A line with the work done, the total and a text, updated a few times per second."""

    def __init__(self, total: int | None, title: str, unit: str) -> None:
        self._total, self._title, self._unit = total, title, unit
        self._next = 0.0

    def __call__(self, done: int, text: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PAUSE
            line = f"{self._title}: {_so_far(done, text, self._total, self._unit)}"
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


def away(shift: float, turn: float) -> str:
    """Return an error of an object as text for a progress bar."""
    return f"to the goal {shift:.3f} m, {turn:.3f} rad"
