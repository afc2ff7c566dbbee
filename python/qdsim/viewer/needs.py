"""Optional packages of the viewer."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["need"]


def need(module: str) -> Any:
    """Import a module of the extra ``viewer``.

    Raises:
        ImportError: It is not installed; the message is one line that says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"the viewer needs {package}: pip install 'qdsim[viewer]'") from None
