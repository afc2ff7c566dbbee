"""Selects the file of the C core for this machine, if the build made more than one.

On Linux the loader selects between copies of functions, so there is one file and nothing to do
here. On other systems with x86-64 (Windows) the build makes the whole extension twice: ``_core``,
and ``_core_v3`` for machines with AVX2. The one that the machine can run becomes ``qdsim._core``.
The results of both are bitwise identical.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path

__all__: list[str] = []


def _copy_for_this_machine() -> Path | None:
    try:
        from qdsim import _cpu_level
    except ImportError:
        return None
    file = Path(str(_cpu_level.__file__))
    copy = file.with_name(file.name.replace("_cpu_level", f"_core_v{_cpu_level.LEVEL}"))
    return copy if copy.is_file() else None


def _import_as_core(file: Path) -> None:
    loader = ExtensionFileLoader("qdsim._core", str(file))
    spec = importlib.util.spec_from_loader("qdsim._core", loader)
    assert spec is not None
    core = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    sys.modules["qdsim._core"] = core
    sys.modules["qdsim"].__dict__["_core"] = core


if "qdsim._core" not in sys.modules and (_file := _copy_for_this_machine()) is not None:
    _import_as_core(_file)
