"""A progress bar, where tqdm is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["Update", "away", "progress_bar"]

Update = Callable[[int, str], None]
"""``update(done, text)``: how much is done of the whole, and what to say beside the bar."""


@contextlib.contextmanager
def progress_bar(show: bool, total: int | None, title: str, unit: str) -> Iterator[Update]:
    """Yields a function that shows how far something has come; it does nothing without tqdm.

    Args:
        show: whether to show anything.
        total: how much there is to do; None where that is not known.
        title: stands before the bar.
        unit: of what is counted.
    """
    if show:
        with contextlib.suppress(ImportError):
            from tqdm import tqdm

            with tqdm(total=total, desc=title, unit=f" {unit}", leave=False) as bar:

                def update(done: int, text: str) -> None:
                    bar.update(done - bar.n)
                    bar.set_postfix_str(text, refresh=False)

                yield update
                return
    yield lambda done, text: None


def away(shift: float, turn: float) -> str:
    """An error of an object, in words for a bar."""
    return f"to the goal {shift:.3f} m, {turn:.3f} rad"
