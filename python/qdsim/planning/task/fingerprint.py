"""A hash of everything that a search depends on: a checkpoint continues only with its own task and
model."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from qdsim.model import Model
from qdsim.planning.task.task import Task

__all__ = ["fingerprint", "hash_of", "warn_of_first_version"]

_LEFT_OUT = ("name", "space", "planner", "impc", "start_tolerance")
"""Fields of a task that do not affect a search, or that files store separately from the fingerprint."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def fingerprint(task: Task, version: int = 2, goal: bool = True) -> str:
    """Return a hash of a task, with or without its goal, and of its whole model: names, topology,
    geometry, all numbers.

    Version 1, in files of earlier releases, covers five arrays of the model, and no centres of
    mass, inertias, springs or poses.
    """
    if version == 1:
        return _first_fingerprint(task)
    left_out = _LEFT_OUT if goal else (*_LEFT_OUT, "goal", "goal_region")
    if task.goal_region is None:  # as in files that were written before goal regions existed
        left_out = (*left_out, "goal_region")
    names = (f.name for f in dataclasses.fields(task) if f.name not in left_out)
    return hash_of("task", {name: getattr(task, name) for name in names})


def warn_of_first_version(path: str) -> None:
    """Warn that a file has a fingerprint of version 1, which does not cover all parameters."""
    warnings.warn(
        f"{path}: written by an earlier version: only masses, sizes, friction, stiffness and gravity of the model were "
        "compared with the file",
        UserWarning,
        stacklevel=2,
    )


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


def _first_fingerprint(task: Task) -> str:
    digest = hashlib.sha256()
    model = task.model
    for array in (
        task.start,
        task.goal,
        task.lower,
        task.upper,
        task.command_lower,
        task.command_upper,
    ):
        digest.update(np.ascontiguousarray(array).tobytes())
    for name in ("body_mass", "geom_size", "pair_friction", "actuator_stiffness", "gravity"):
        digest.update(np.ascontiguousarray(getattr(model.parameters, name)).tobytes())
    numbers = (task.position_tolerance, task.rotation_tolerance, task.length)
    digest.update(repr((numbers, task.object, task.options, model.joint_names)).encode())
    return digest.hexdigest()
