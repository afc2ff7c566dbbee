"""A progress bar, where tqdm is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qdsim.planning.search.tree import Tree

__all__ = ["progress_bar"]


@contextlib.contextmanager
def progress_bar(show: bool, total: int, title: str) -> Iterator[Callable[[Tree], None]]:
    """Yields a function that shows how far a tree has come; it does nothing without tqdm."""
    if show:
        with contextlib.suppress(ImportError):
            from tqdm import tqdm

            with tqdm(total=total, desc=title, unit=" nodes", leave=False) as bar:

                def update(tree: Tree) -> None:
                    bar.update(tree.count - bar.n)
                    shift, turn = tree.errors[tree.best_node]
                    bar.set_postfix_str(f"to the goal {shift:.3f} m, {turn:.3f} rad", refresh=False)

                yield update
                return
    yield lambda tree: None
