"""How results show themselves: through the viewer, which is above everything and loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["shown", "window"]


def shown(thing: Any, model: Any, **how: Any) -> Any:
    """What :func:`qdsim.viewer.show` does with a thing.

    Raises:
        ImportError: without the extra ``viewer``.
    """
    return import_module("qdsim.viewer").show(thing, model, **how)


def window(model: Any, **how: Any) -> Any:
    """A :class:`qdsim.viewer.Viewer` of a model.

    Raises:
        ImportError: without the extra ``viewer``.
    """
    return import_module("qdsim.viewer").Viewer(model, **how)
