"""Files of trees, from which a search can continue."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import instance, integer, number
from qdsim.array_type import Array
from qdsim.planning.plans.archive import Archive, Format
from qdsim.planning.search.path import EdgeKind
from qdsim.planning.task.fingerprint import fingerprint
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = [
    "COLUMNS",
    "COUNTERS",
    "FORMAT",
    "NODES",
    "RECORD",
    "TreeContent",
    "content_of",
    "entries_of",
]

FORMAT = Format("qdsim-tree", 2, "a tree of this search")
NODES = ("q", "command", "parent", "kind", "depth", "errors", "B", "inverse", "distance", "stuck")
"""Arrays with one row per node."""
COLUMNS = ("next", "whiten")
"""Arrays whose last dimension has one entry per node."""
COUNTERS = ("steps", "linearizations", "failures", "seconds", "best_node")

RECORD = np.dtype(
    [
        ("iteration", "i8"),
        ("nodes", "i8"),
        ("steps", "i8"),
        ("regrasps", "i8"),
        ("distance", "f8"),
        ("position_error", "f8"),
        ("rotation_error", "f8"),
        ("seconds", "f8"),
    ]
)
_COLUMN_NAMES = RECORD.names or ()


class TreeContent(NamedTuple):
    """The content of a tree file."""

    nodes: dict[str, NDArray[Any]]  # NODES and COLUMNS
    inputs: list[Array | None]  # (steps, nu) of the edge to each node
    trajectory: list[Array | None]  # (steps, nq) configurations after each command
    goal_node: int | None
    counters: dict[str, Any]  # COUNTERS
    records: NDArray[np.void]  # of RECORD


def entries_of(
    task: Task, options: RRTOptions, content: TreeContent, state: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a file; see :meth:`Tree.save`."""
    header = {
        "task": task.name,
        "fingerprint": fingerprint(task),
        "options": option_values(options),
        "count": len(content.inputs),
        "goal_node": content.goal_node,
        "counters": content.counters,
        "state": state,
    }
    lengths = [-1 if u is None else len(u) for u in content.inputs]
    edges = {
        "edge_steps": np.array(lengths, dtype=np.int64),
        "inputs": _joined(content.inputs, task.model.nu),
        "trajectory": _joined(content.trajectory, task.model.nq),
        "records": _table(content.records),
    }
    return header, content.nodes | edges


def _joined(parts: list[Array | None], width: int) -> Array:
    return np.concatenate([np.empty((0, width)), *(x for x in parts if x is not None)])


def option_values(options: RRTOptions) -> dict[str, Any]:
    """Return the options' fields by name, as JSON values; a smoothing scheme is text."""
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {
        k: v if isinstance(v, (str, int, float, type(None))) else repr(v) for k, v in values.items()
    }


def content_of(
    archive: Archive, path: str | os.PathLike[str], task: Task, given: RRTOptions | None
) -> tuple[RRTOptions, TreeContent, dict[str, Any]]:
    """Read options, tree and state of an open file; ValueError if it does not fit the given task or options."""
    header = archive.header
    if header["fingerprint"] != fingerprint(task):
        raise ValueError(f"it belongs to another task or model ({header['task']!r})")
    options = _options(header, given)
    n = integer("count", header["count"], least=1)
    found = _arrays(archive, task, n)
    _check_edges(found, n, task.start)
    lengths = found.pop("edge_steps")
    ends = np.cumsum(np.maximum(lengths, 0))
    inputs, trajectory = (
        [None if k < 0 else np.array(joined[e - k : e]) for k, e in zip(lengths, ends)]
        for joined in (found.pop("inputs"), found.pop("trajectory"))
    )
    goal = header["goal_node"]
    goal = None if goal is None else integer("goal_node", goal, least=0, most=n - 1)
    values = header["counters"]
    counters = {
        name: number(name, values[name], least=0)
        if name == "seconds"
        else integer(name, values[name], least=0, most=n - 1 if name == "best_node" else None)
        for name in COUNTERS
    }
    records = _records(archive, n)
    if np.any(found["stuck"] > len(records)):
        raise ValueError("it was stuck more often than it has records")
    content = TreeContent(found, inputs, trajectory, goal, counters, records)
    return options, content, instance("state", header["state"], dict)


def _options(header: dict[str, Any], given: RRTOptions | None) -> RRTOptions:
    """Return the options with which the search continues: the given ones, or those of the file.

    Given options may differ from those of the file only in ``_MAY_GROW``.
    """
    options = given
    if options is None:
        values = header["options"]
        if values.get("smoothing") is not None:
            raise ValueError("it was made with a smoothing scheme: give the options")
        options = RRTOptions(**values)
    wanted = {k: v for k, v in option_values(options).items() if k not in _MAY_GROW}
    stored = {k: v for k, v in header["options"].items() if k not in _MAY_GROW}
    if wanted != stored:
        changed = sorted(k for k in wanted if wanted[k] != stored.get(k))
        raise ValueError(f"its options differ in {', '.join(changed)}")
    return options


def _arrays(archive: Archive, task: Task, n: int) -> dict[str, Any]:
    """Read all arrays except the records, with the sizes of a tree of ``n`` nodes."""
    nq, nu, size = task.model.nq, task.model.nu, task.space.size
    found: dict[str, Any] = {
        "q": archive.array("q", np.float64, n, nq),
        "command": archive.array("command", np.float64, n, nu),
        "parent": archive.array("parent", np.int64, n),
        "kind": archive.array("kind", np.int8, n),
        "depth": archive.array("depth", np.float64, n),
        "errors": archive.array("errors", np.float64, n, 2),
        "B": archive.array("B", np.float64, n, size, nu),
        "inverse": archive.array("inverse", np.float64, n, nu, size),
        "distance": archive.array("distance", np.float64, n),
        "stuck": archive.counts("stuck", n),
        "next": archive.array("next", np.float64, nq, n),
        "whiten": archive.array("whiten", np.float64, size, size, n),
        "edge_steps": archive.array("edge_steps", np.int64, n),
    }
    total = sum(k for k in found["edge_steps"].tolist() if k > 0)
    found["inputs"] = archive.array("inputs", np.float64, total, nu)
    found["trajectory"] = archive.array("trajectory", np.float64, total, nq)
    return found


def _check_edges(found: dict[str, Any], n: int, start: Array) -> None:
    """Check that the edges form trees from the start."""
    if not (np.isin(found["kind"], list(EdgeKind)).all() and _edges_fit(found)):
        raise ValueError("its edges are not of the kinds that it says")
    parent, roots = found["parent"], np.flatnonzero(found["kind"] == EdgeKind.ROOT)
    planted = np.array_equal(np.flatnonzero(parent == -1), roots) and roots[0] == 0
    if not planted or np.any(parent >= np.arange(n)) or np.any(parent < -1):
        raise ValueError("its parents are not earlier nodes")
    if np.any(found["q"][roots] != start):
        raise ValueError("its roots are not at the task's start")


def _edges_fit(found: dict[str, Any]) -> bool:
    """Check that pushes and settlings have steps, and roots and regrasps none."""
    moves = np.isin(found["kind"], (EdgeKind.PUSH, EdgeKind.SETTLE))
    lengths = found["edge_steps"]
    return bool(np.all(lengths[moves] > 0) and np.all(lengths[~moves] == -1))


_MAY_GROW = ("max_nodes", "max_iterations", "max_steps", "max_idle")
"""Options that may be larger when a search continues."""


def _table(records: Any) -> Any:
    return np.array([tuple(map(float, row)) for row in records.tolist()]).reshape(
        -1, len(_COLUMN_NAMES)
    )


def _records(archive: Archive, n: int) -> NDArray[np.void]:
    """Read the records and check their number."""
    rows, _ = archive.shape("records", 2)
    most = archive.header["options"]["max_iterations"]
    if rows > integer("max_iterations", most, least=1):
        raise ValueError("it has more records than iterations")
    table = archive.array("records", np.float64, rows, len(_COLUMN_NAMES))
    records = np.array([tuple(row) for row in table.tolist()], dtype=RECORD)
    in_order = np.array_equal(records["iteration"], np.arange(rows))
    if not in_order or (rows and records["nodes"][-1] != n):
        raise ValueError("its records are not those of its nodes")
    return records
