"""Trajectory optimisations in files: the complete state after an iteration, so that a search can
continue."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

import numpy as np

from qdsim.arguments import integer, number
from qdsim.array_type import Array
from qdsim.planning.plans.archive import Archive, Format, load_checkpoint, write_archive
from qdsim.planning.task.fingerprint import fingerprint
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.shooting import Counts, Trajectory

__all__ = ["RECORD", "Branch", "SearchState", "load_search", "mark_of", "said", "save_search"]

FORMAT = Format("qdsim-impc", 2, "one of this optimisation")

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
    """A first guess, its iterates, and the best of them so far.

    Attributes:
        path, best: the last iterate and the best one.
        best_row: index of the best one in the records.
        iterations: number of iterations.
        best_costs: costs of the best iterate, from the first guess on.
        radius: half width of the trust region of the last iterate.
    """

    path: Trajectory
    best: Trajectory
    best_row: int
    best_costs: list[float]
    iterations: int = 0
    radius: float = 0.0


@dataclasses.dataclass(eq=False)
class SearchState:
    """State of a search after an iteration.

    Attributes:
        guess: index of the first guess that has its trials now; their number after all trials.
        current: its branch; None before it was made.
        chosen: the best branch of the earlier guesses; at the end, of all.
        done: number of iterations of all guesses.
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
    """Return a hash of the inputs of the iterates."""
    digest = hashlib.sha256(fingerprint(task).encode())
    if u is not None:
        digest.update(np.ascontiguousarray(u).tobytes())
    values = said(options)
    alone = len(options.starts) == 1 or u is not None
    if alone and not isinstance(options.kappa, tuple):
        values.pop("iterations")  # it may increase, because earlier iterations do not depend on it
    digest.update(repr(values).encode())
    return digest.hexdigest()


def said(options: ImpcOptions) -> dict[str, str]:
    """Return the settings that affect results, as text that is the same in every process; functions by name."""
    fields = (f.name for f in dataclasses.fields(options) if f.name != "threads")
    return {name: _said(getattr(options, name)) for name in fields}


def _said(value: object) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, tuple):
        return f"({', '.join(map(_said, value))})"
    if callable(value) and not dataclasses.is_dataclass(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    return repr(value)


def save_search(
    path: str | os.PathLike[str], mark: str, state: SearchState, rng: np.random.Generator
) -> None:
    """Write the state of a search and its random numbers."""
    branches: dict[str, Any] = {}
    arrays: dict[str, Any] = {"records": np.array(state.rows, dtype=RECORD)}
    for name in ("current", "chosen"):
        branch: Branch | None = getattr(state, name)
        if branch is None:
            continue
        branches[name] = {key: getattr(branch, key) for key in _NUMBERS}
        arrays[f"{name}_history"] = np.array(branch.best_costs)
        for which in ("path", "best"):
            trajectory: Trajectory = getattr(branch, which)
            arrays[f"{name}_{which}_q"], arrays[f"{name}_{which}_u"] = trajectory.q, trajectory.u
            arrays[f"{name}_{which}_costs"] = np.array([trajectory.cost, trajectory.final])
    header = {
        "mark": mark,
        "guess": state.guess,
        "done": state.done,
        "branches": branches,
        "counts": dataclasses.asdict(state.counts),
        "rng": rng.bit_generator.state,
    }
    write_archive(path, FORMAT, header, arrays)


def load_search(
    path: str | os.PathLike[str],
    task: Task,
    options: ImpcOptions,
    u: Array | None,
    rng: np.random.Generator,
) -> SearchState | None:
    """Read a file written by :func:`save_search`, and restore ``rng``; None if there is no file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is damaged, or belongs to another task, first guess, other options or
            another kind of generator.
    """

    def make(archive: Archive) -> SearchState:
        state = _state(archive, task, options, 1 if u is not None else len(options.starts))
        archive.check_used()
        rng.bit_generator.state = archive.header["rng"]
        return state

    return load_checkpoint(
        path,
        FORMAT,
        mark_of(task, options, u),
        make,
        inputs="task, first guess or other options",
    )


_NUMBERS = ("best_row", "iterations", "radius")


def _state(archive: Archive, task: Task, options: ImpcOptions, guesses: int) -> SearchState:
    header = archive.header
    done = integer("done", header["done"], least=0)
    rows = _rows(archive, done + guesses)
    branches = {
        name: _branch(name, values, archive, task, options, len(rows))
        for name, values in header["branches"].items()
    }
    state = SearchState(
        guess=integer("guess", header["guess"], least=0, most=guesses),
        done=done,
        rows=rows,
        counts=Counts(**header["counts"]),
        **branches,
    )
    for name, count in dataclasses.asdict(state.counts).items():
        integer(name, count, least=0)
    iterations = [row[0] for row in rows]
    if iterations != sorted(iterations) or iterations[-1] != state.done:
        raise ValueError("its records are not those of its iterations")
    if state.guess == guesses and state.chosen is None:
        raise ValueError("it has tried all first guesses and kept none")
    return state


def _rows(archive: Archive, most: int) -> list[tuple[Any, ...]]:
    (count,) = archive.shape("records", 1)
    if count > most:
        raise ValueError("it has more records than iterations")
    records = archive.array("records", RECORD, count)
    names = [name for name in RECORD.names or () if name != "kappa"]  # kappa may be NaN
    if len(records) == 0 or not all(np.isfinite(records[name]).all() for name in names):
        raise ValueError("its records are not of finite numbers")
    rows: list[tuple[Any, ...]] = records.tolist()
    return rows


def _branch(
    name: str, values: Any, archive: Archive, task: Task, options: ImpcOptions, rows: int
) -> Branch:
    path, best = (
        _trajectory(f"{name}_{which}", archive, task, options.horizon) for which in ("path", "best")
    )
    iterations = integer("iterations", values["iterations"], least=0)
    return Branch(
        path,
        best,
        best_row=integer("best_row", values["best_row"], least=0, most=rows - 1),
        best_costs=archive.array(f"{name}_history", np.float64, iterations + 1).tolist(),
        iterations=iterations,
        radius=number("radius", values["radius"], least=0),
    )


def _trajectory(name: str, archive: Archive, task: Task, horizon: int) -> Trajectory:
    cost, final = archive.array(f"{name}_costs", np.float64, 2).tolist()
    q = archive.array(f"{name}_q", np.float64, horizon + 1, task.model.nq)
    u = archive.array(f"{name}_u", np.float64, horizon, task.model.nu)
    return Trajectory(q, u, cost, final)
