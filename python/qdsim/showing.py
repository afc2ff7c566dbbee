"""Shows results in the viewer, which is imported only when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["shown", "window"]


def shown(thing: Any, model: Any, **how: Any) -> Any:
    """Call :func:`qdsim.viewer.show`.

    Raises:
        ImportError: without the extra ``viewer``.
    """
    return import_module("qdsim.viewer").show(thing, model, **how)


def window(model: Any, **how: Any) -> Any:
    """Create a :class:`qdsim.viewer.Viewer` of a model.

    Raises:
        ImportError: without the extra ``viewer``.
    """
    return import_module("qdsim.viewer").Viewer(model, **how)
