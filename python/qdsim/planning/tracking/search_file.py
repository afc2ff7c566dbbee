"""Trajectory optimisations in files: all that a search knows after an iteration, so that it can go on there."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from typing import Any

import numpy as np

from qdsim.planning.plans.archive import load_checkpoint, write_archive
from qdsim.planning.search.tree_file import fingerprint
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.space import Array
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.shooting import Counts, Trajectory

__all__ = ["RECORD", "Branch", "SearchState", "load_search", "mark_of", "said", "save_search"]

FORMAT, VERSION = "qdsim-impc", 1

RECORD = np.dtype(
    [
        ("iteration", "i8"),
        ("cost", "f8"),
        ("best_cost", "f8"),
        ("final_cost", "f8"),
        ("radius", "f8"),
        ("kappa", "f8"),
        ("position_error", "f8"),
        ("rotation_error", "f8"),
        ("steps", "i8"),
        ("linearizations", "i8"),
        ("programs", "i8"),
        ("program_iterations", "i8"),
        ("failures", "i8"),
        ("seconds", "f8"),
    ]
)


@dataclasses.dataclass(eq=False)
class Branch:
    """A first guess, what the iterations make of it, and the best iterate so far.

    Attributes:
        path, best: the last iterate and the best one.
        best_row: where in the records the best one is.
        iterations: how many there were.
        best_costs: of the best iterate, from the first guess on.
        radius: half width of the box that the last iterate came from.
    """

    path: Trajectory
    best: Trajectory
    best_row: int
    best_costs: list[float]
    iterations: int = 0
    radius: float = 0.0


@dataclasses.dataclass(eq=False)
class SearchState:
    """What a search knows after an iteration.

    Attributes:
        guess: which of the first guesses has its trials; their number where all have had them.
        current: what has become of it; None before it was made.
        chosen: the best of the guesses before; of all of them in the end.
        done: iterations, of all guesses.
        rows: the records.
        counts: the work.
    """

    guess: int = 0
    current: Branch | None = None
    chosen: Branch | None = None
    done: int = 0
    rows: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    counts: Counts = dataclasses.field(default_factory=Counts)


def mark_of(task: Task, options: ImpcOptions, u: Array | None) -> str:
    """A hash of what the iterates depend on."""
    digest = hashlib.sha256(fingerprint(task).encode())
    if u is not None:
        digest.update(np.ascontiguousarray(u).tobytes())
    values = said(options)
    alone = len(options.starts) == 1 or u is not None
    if alone and (options.final_kappa is None or options.kappa_iterations is not None):
        values.pop("iterations")  # it may grow: nothing before its end depends on it
    digest.update(repr(values).encode())
    return digest.hexdigest()


def said(options: ImpcOptions) -> dict[str, str]:
    """Settings that results depend on, as text that the next process says, too: functions by name."""
    fields = (f.name for f in dataclasses.fields(options) if f.name != "threads")
    return {name: _said(getattr(options, name)) for name in fields}


def _said(value: object) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if callable(value) and not dataclasses.is_dataclass(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    return repr(value)


def save_search(
    path: str | os.PathLike[str], mark: str, state: SearchState, rng: np.random.Generator
) -> None:
    """Write what a search knows, and its random numbers."""
    branches: dict[str, Any] = {}
    arrays: dict[str, Any] = {"records": np.array(state.rows, dtype=RECORD)}
    for name in ("current", "chosen"):
        branch: Branch | None = getattr(state, name)
        if branch is None:
            continue
        branches[name] = {key: getattr(branch, key) for key in _NUMBERS}
        arrays[f"{name}_best_costs"] = np.array(branch.best_costs)
        for which in ("path", "best"):
            trajectory: Trajectory = getattr(branch, which)
            arrays[f"{name}_{which}_q"], arrays[f"{name}_{which}_u"] = trajectory.q, trajectory.u
            arrays[f"{name}_{which}_costs"] = np.array([trajectory.cost, trajectory.final])
    header = {
        "format": FORMAT,
        "version": VERSION,
        "mark": mark,
        "guess": state.guess,
        "done": state.done,
        "branches": branches,
        "counts": dataclasses.asdict(state.counts),
        "rng": rng.bit_generator.state,
    }
    write_archive(path, header, arrays)


def load_search(
    path: str | os.PathLike[str], mark: str, rng: np.random.Generator
) -> SearchState | None:
    """What :func:`save_search` wrote, with ``rng`` put where it was; None if there is no file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is damaged, or belongs to another task, first guess, other options or
            another kind of generator.
    """

    def make(header: Any, arrays: dict[str, Any]) -> SearchState:
        state = _state(header, arrays)
        rng.bit_generator.state = header["rng"]
        return state

    return load_checkpoint(
        path,
        {"format": FORMAT, "version": VERSION, "mark": mark},
        make,
        run="optimisation",
        inputs="task, first guess or other options",
    )


_NUMBERS = ("best_row", "iterations", "radius")


def _state(header: Any, arrays: dict[str, Any]) -> SearchState:
    records = arrays["records"]
    if records.dtype != RECORD or len(records) == 0:
        raise ValueError("its records have other columns")
    branches = {name: _branch(name, values, arrays) for name, values in header["branches"].items()}
    return SearchState(
        guess=int(header["guess"]),
        done=int(header["done"]),
        rows=records.tolist(),
        counts=Counts(**header["counts"]),
        **branches,
    )


def _branch(name: str, values: dict[str, Any], arrays: dict[str, Any]) -> Branch:
    path, best = (_trajectory(f"{name}_{which}", arrays) for which in ("path", "best"))
    costs = arrays[f"{name}_best_costs"].tolist()
    return Branch(path, best, best_costs=costs, **values)


def _trajectory(name: str, arrays: dict[str, Any]) -> Trajectory:
    cost, final = arrays[f"{name}_costs"].tolist()
    q, u = arrays[f"{name}_q"], arrays[f"{name}_u"]
    if q.ndim != 2 or u.ndim != 2 or len(q) != len(u) + 1 or not math.isfinite(cost):
        raise ValueError("the sizes of its arrays contradict each other")
    return Trajectory(q, u, cost, final)
