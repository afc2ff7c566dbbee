"""A hash of everything that a search depends on: a checkpoint continues only with its own task and
model."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from qdsim.model import Model
from qdsim.planning.task.task import Task

__all__ = ["fingerprint", "hash_of"]

_LEFT_OUT = ("name", "space", "planner", "impc", "start_tolerance")
"""Fields of a task that do not affect a search, or that files store separately from the fingerprint."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def fingerprint(task: Task, goal: bool = True) -> str:
    """Return a hash of a task, with or without its goal, and of its whole model: names, topology,
    geometry, all numbers."""
    left_out = _LEFT_OUT if goal else (*_LEFT_OUT, "goal", "goal_region")
    if task.goal_region is None:
        left_out = (*left_out, "goal_region")
    names = (f.name for f in dataclasses.fields(task) if f.name not in left_out)
    return hash_of("task", {name: getattr(task, name) for name in names})


def hash_of(*values: object) -> str:
    """Return a hash of values that is the same in every process.

    It covers the bits of numbers, the contents of dataclasses and models, and the names of
    functions and other objects.
    """
    digest = hashlib.sha256(b"qdsim 2")
    _feed(digest, values)
    return digest.hexdigest()


def _feed(digest: _Digest, value: Any) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Model):
        value = value.description
    if isinstance(value, float):
        _put(digest, "float", value.hex())
    elif value is None or isinstance(value, (bool, int, str, bytes)):
        _put(digest, type(value).__name__, repr(value))
    elif isinstance(value, np.ndarray):
        _put(digest, "array", f"{value.dtype.str}{value.shape}")
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _feed(digest, tuple(sorted(value.items(), key=lambda item: str(item[0]))))
    elif isinstance(value, (tuple, list)):
        _put(digest, "sequence", str(len(value)))
        for item in value:
            _feed(digest, item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _put(digest, "object", type(value).__qualname__)
        _feed(digest, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    else:
        _put(digest, "name", str(getattr(value, "__qualname__", type(value).__qualname__)))


def _put(digest: _Digest, kind: str, text: str) -> None:
    """Add text with its kind and length, so that different sequences of values have different input."""
    digest.update(f"{kind}:{len(text)}:{text};".encode())
