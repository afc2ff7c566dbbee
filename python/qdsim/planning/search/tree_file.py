"""Trees in files: what a search has done so far, so that it can go on where it was."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from qdsim.arguments import instance, integer, number
from qdsim.planning.plans.archive import Archive, Format, read_archive, write_archive
from qdsim.planning.search.tree import RECORD, EdgeKind, Tree
from qdsim.planning.task.fingerprint import fingerprint, warn_of_first_version
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["load_tree", "save_tree"]

FORMAT = Format("qdsim-tree", 2, "a tree of this search")
_NODES = ("_q", "_command", "_parent", "_kind", "_depth", "_errors", "_B", "_inverse", "_distance")
_COLUMNS = ("_next", "_whiten")
"""Arrays whose last dimension counts the nodes."""
_COUNTERS = ("steps", "linearizations", "failures", "seconds", "best_node")


_COLUMN_NAMES = RECORD.names or ()


def save_tree(tree: Tree, path: str | os.PathLike[str], **state: Any) -> None:
    """Write a tree to one file; see :meth:`Tree.save`."""
    n = tree.count
    header = {
        "task": tree.task.name,
        "fingerprint": fingerprint(tree.task),
        "options": option_values(tree.options),
        "count": n,
        "goal_node": tree.goal_node,
        "counters": {name: getattr(tree, name) for name in _COUNTERS},
        "state": state,
    }
    arrays: dict[str, Any] = {name[1:]: getattr(tree, name)[:n] for name in _NODES}
    arrays |= {name[1:]: getattr(tree, name)[..., :n] for name in _COLUMNS}
    inputs = [tree.inputs(i) for i in range(n)]
    lengths = np.array([-1 if u is None else len(u) for u in inputs], dtype=np.int64)
    nu, nq = tree.task.model.nu, tree.task.model.nq
    trajectories = [tree.trajectory(i) for i in range(n)]
    arrays["edge_steps"] = lengths
    arrays["inputs"] = np.concatenate([np.empty((0, nu)), *(u for u in inputs if u is not None)])
    arrays["trajectory"] = np.concatenate(
        [np.empty((0, nq)), *(x for x in trajectories if x is not None)]
    )
    arrays["records"] = _table(tree.records)
    write_archive(path, FORMAT, header, arrays)


def load_tree(
    path: str | os.PathLike[str], task: Task, options: RRTOptions | None = None
) -> tuple[Tree, dict[str, Any]]:
    """A tree that :func:`save_tree` wrote, and the state it was given.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a tree, is cut or damaged, or belongs to another task or other
            options; the message names the file.
    """
    return read_archive(path, FORMAT, lambda archive: _tree(archive, path, task, options))


def option_values(options: RRTOptions) -> dict[str, Any]:
    """The options' fields by name, as JSON takes them; a smoothing scheme as it prints."""
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {
        k: v if isinstance(v, (str, int, float, type(None))) else repr(v) for k, v in values.items()
    }


def _tree(
    archive: Archive, path: str | os.PathLike[str], task: Task, given: RRTOptions | None
) -> tuple[Tree, dict[str, Any]]:
    header = archive.header
    if header["fingerprint"] != fingerprint(task, archive.version):
        raise ValueError(f"it belongs to another task or model ({header['task']!r})")
    options = _options(header, given)
    n = integer("count", header["count"], least=1)
    found = _arrays(archive, task, n)
    if not (np.isin(found["kind"], list(EdgeKind)).all() and _edges_fit(found)):
        raise ValueError("its edges are not of the kinds that it says")
    parent, roots = found["parent"], np.flatnonzero(found["kind"] == EdgeKind.ROOT)
    planted = np.array_equal(np.flatnonzero(parent == -1), roots) and roots[0] == 0
    if not planted or np.any(parent >= np.arange(n)) or np.any(parent < -1):
        raise ValueError("its parents are not earlier nodes")
    if np.any(found["q"][roots] != task.start):
        raise ValueError("its roots are not at the task's start")
    tree = Tree(task, options.replace(max_nodes=max(options.max_nodes, n)))
    tree.options = options
    for name in (*_NODES, *_COLUMNS):
        whole = getattr(tree, name)
        place = whole[:n] if name in _NODES else whole[..., :n]
        place[...] = found[name[1:]]
    tree.count = n
    tree.first = int(roots[-1])
    tree._nearest_to_goal = tree.first + int(tree.distance[tree.first :].argmin())
    lengths = found["edge_steps"]
    ends = np.cumsum(np.maximum(lengths, 0))
    for name in ("inputs", "trajectory"):
        parts = [None if k < 0 else np.array(found[name][e - k : e]) for k, e in zip(lengths, ends)]
        setattr(tree, f"_{name}", parts)
    goal = header["goal_node"]
    tree.goal_node = None if goal is None else integer("goal_node", goal, least=0, most=n - 1)
    counters = header["counters"]
    for name in _COUNTERS:
        if name == "seconds":
            tree.seconds = number(name, counters[name], least=0)
        else:
            most = n - 1 if name == "best_node" else None
            setattr(tree, name, integer(name, counters[name], least=0, most=most))
    rows, _ = archive.shape("records", 2)
    if rows > integer("max_iterations", header["options"]["max_iterations"], least=1):
        raise ValueError("it has more records than iterations")
    tree.records = records = _records(
        archive.array("records", np.float64, rows, len(_COLUMN_NAMES))
    )
    in_order = np.array_equal(records["iteration"], np.arange(len(records)))
    if not in_order or (len(records) and records["nodes"][-1] != n):
        raise ValueError("its records are not those of its nodes")
    if archive.version == 1:
        warn_of_first_version(os.fspath(path))
    return tree, instance("state", header["state"], dict)


def _options(header: dict[str, Any], given: RRTOptions | None) -> RRTOptions:
    """The options to go on with: those given, if they are the file's but for those that may grow, or the file's."""
    options = given
    if options is None:
        values = header["options"]
        if values.get("smoothing") is not None:
            raise ValueError("it was made with a smoothing scheme: give the options")
        options = RRTOptions(**values)
    wanted = {k: v for k, v in option_values(options).items() if k not in _MAY_GROW}
    # Files that are older than an option were made with its default.
    everything = option_values(RRTOptions()) | _BEFORE | header["options"]
    stored = {k: v for k, v in everything.items() if k not in _MAY_GROW}
    if wanted != stored:
        changed = sorted(k for k in wanted if wanted[k] != stored.get(k))
        raise ValueError(f"its options differ in {', '.join(changed)}")
    return options


def _arrays(archive: Archive, task: Task, n: int) -> dict[str, Any]:
    """All arrays but the records, of the sizes that a tree of ``n`` nodes has."""
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
        "next": archive.array("next", np.float64, nq, n),
        "whiten": archive.array("whiten", np.float64, size, size, n),
        "edge_steps": archive.array("edge_steps", np.int64, n),
    }
    total = sum(k for k in found["edge_steps"].tolist() if k > 0)
    found["inputs"] = archive.array("inputs", np.float64, total, nu)
    found["trajectory"] = archive.array("trajectory", np.float64, total, nq)
    return found


def _edges_fit(found: dict[str, Any]) -> bool:
    """Whether pushes and settlings have steps, and roots and regrasps none."""
    moves = np.isin(found["kind"], (EdgeKind.PUSH, EdgeKind.SETTLE))
    lengths = found["edge_steps"]
    return bool(np.all(lengths[moves] > 0) and np.all(lengths[~moves] == -1))


_MAY_GROW = ("max_nodes", "max_iterations", "max_steps", "max_idle")
"""Options that a search that goes on may have larger."""

_BEFORE: dict[str, Any] = {"require_static_regrasps": False}
"""Defaults that were others when files were written that do not say."""


def _table(records: Any) -> Any:
    return np.array([tuple(map(float, row)) for row in records.tolist()]).reshape(
        -1, len(_COLUMN_NAMES)
    )


def _records(table: Any) -> Any:
    return np.array([tuple(row) for row in table.tolist()], dtype=RECORD)
