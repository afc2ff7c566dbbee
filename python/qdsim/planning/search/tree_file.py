"""Trees in files: what a search has done so far, so that it can go on where it was."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from qdsim.planning.plans.archive import read_archive, write_archive
from qdsim.planning.search.tree import RECORD, EdgeKind, Tree
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["load_tree", "save_tree"]

FORMAT, VERSION = "qdsim-tree", 1
_NODES = ("_q", "_command", "_parent", "_kind", "_depth", "_errors", "_B", "_inverse", "_distance")
_COLUMNS = ("_next", "_whiten")
"""Arrays whose last dimension counts the nodes."""
_COUNTERS = ("steps", "linearizations", "failures", "seconds", "best_node")


def save_tree(tree: Tree, path: str | os.PathLike[str], **state: Any) -> None:
    """Write a tree to one file; see :meth:`Tree.save`."""
    n = tree.count
    header = {
        "format": FORMAT,
        "version": VERSION,
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
    write_archive(path, header, arrays)


def load_tree(
    path: str | os.PathLike[str], task: Task, options: RRTOptions | None = None
) -> tuple[Tree, dict[str, Any]]:
    """A tree that :func:`save_tree` wrote, and the state it was given.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a tree, is cut or damaged, or belongs to another task or other
            options; the message names the file.
    """
    content = Path(path).read_bytes()
    try:
        return _from_arrays(*read_archive(content), task, options)
    except Exception as error:
        reason = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{Path(path)}: not a tree of this search: {reason}") from None


def fingerprint(task: Task) -> str:
    """A hash of what a tree depends on: start, goal, box, tolerances, bounds, options, model."""
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


def option_values(options: RRTOptions) -> dict[str, Any]:
    """The options' fields by name, as JSON takes them; a smoothing scheme as it prints."""
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {
        k: v if isinstance(v, (str, int, float, type(None))) else repr(v) for k, v in values.items()
    }


def _from_arrays(
    header: Any, arrays: dict[str, Any], task: Task, options: RRTOptions | None
) -> tuple[Tree, dict[str, Any]]:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is that of another format")
    if header["version"] != VERSION:
        raise ValueError(f"version {header['version']} of the format, this qdsim reads {VERSION}")
    if header["fingerprint"] != fingerprint(task):
        raise ValueError(f"it belongs to another task or model ({header['task']!r})")
    if options is None:
        values = header["options"]
        if values.get("smoothing") is not None:
            raise ValueError("it was made with a smoothing scheme: give the options")
        options = RRTOptions(**values)
    wanted = {k: v for k, v in option_values(options).items() if k not in _MAY_GROW}
    # Files that are older than an option were made with its default.
    everything = option_values(RRTOptions()) | header["options"]
    stored = {k: v for k, v in everything.items() if k not in _MAY_GROW}
    if wanted != stored:
        changed = sorted(k for k in wanted if wanted[k] != stored.get(k))
        raise ValueError(f"its options differ in {', '.join(changed)}")
    n = int(header["count"])
    if not n >= 1:
        raise ValueError("it has no nodes")
    tree = Tree(task, options.replace(max_nodes=max(options.max_nodes, n)))
    tree.options = options
    for name in (*_NODES, *_COLUMNS):
        whole, part = getattr(tree, name), arrays[name[1:]]
        place = whole[:n] if name in _NODES else whole[..., :n]
        if part.dtype != whole.dtype or part.shape != place.shape:
            raise ValueError(f"{name[1:]} has shape {part.shape} instead of {place.shape}")
        place[...] = part
    lengths = arrays["edge_steps"]
    if lengths.shape != (n,) or lengths.dtype != np.int64:
        raise ValueError("edge_steps is not one count a node")
    sizes = lengths[lengths >= 0]
    if sizes.sum() != len(arrays["inputs"]) or sizes.sum() != len(arrays["trajectory"]):
        raise ValueError("the sizes of its arrays contradict each other")
    tree.count = n
    roots = np.flatnonzero(tree.kind == EdgeKind.ROOT)
    planted = np.array_equal(np.flatnonzero(tree.parent == -1), roots) and roots[0] == 0
    if not planted or np.any(tree.parent >= np.arange(n)) or np.any(tree.parent < -1):
        raise ValueError("its parents are not earlier nodes")
    tree.first = int(roots[-1])
    tree._nearest_to_goal = tree.first + int(tree.distance[tree.first :].argmin())
    ends = np.cumsum(np.maximum(lengths, 0))
    tree._inputs = [
        None if k < 0 else np.array(arrays["inputs"][e - k : e]) for k, e in zip(lengths, ends)
    ]
    tree._trajectory = [
        None if k < 0 else np.array(arrays["trajectory"][e - k : e]) for k, e in zip(lengths, ends)
    ]
    goal = header["goal_node"]
    tree.goal_node = None if goal is None else int(goal)
    for name in _COUNTERS:
        setattr(tree, name, header["counters"][name])
    tree.records = _records(arrays["records"])
    return tree, header["state"]


_MAY_GROW = ("max_nodes", "max_iterations", "max_steps", "max_idle")
"""Options that a search that goes on may have larger."""


def _table(records: Any) -> Any:
    return np.array([tuple(map(float, row)) for row in records.tolist()]).reshape(
        -1, len(RECORD.names or ())
    )


def _records(table: Any) -> Any:
    return np.array([tuple(row) for row in table.tolist()], dtype=RECORD)
