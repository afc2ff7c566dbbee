"""Detects a notebook, and shows pages below its cells."""

from __future__ import annotations

import sys
from collections.abc import Callable

from qdsim.viewer.needs import need

__all__ = ["notebook_display"]


def notebook_display() -> Callable[[str], None] | None:
    """Return the function that shows HTML in the present notebook (Jupyter, VS Code, Colab), or None
    outside notebooks."""
    if "IPython" not in sys.modules:
        return None
    shell = need("IPython").get_ipython()
    return _display if shell is not None and hasattr(shell, "kernel") else None


def _display(markup: str) -> None:
    """Show markup below the cell."""
    shown = need("IPython.display")
    # IPython warns of frames at the beginning of HTML text.
    shown.display(shown.HTML(f"<div>{markup}</div>"))
