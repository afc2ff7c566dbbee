"""Nodes and edges that differ only by a symmetry of the object; the robot's motion is the same for all of
them."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.parallel import Result
from qdsim.planning.roadmap.edges import Edges, connected
from qdsim.planning.task.symmetry import turned_object
from qdsim.planning.task.task import Task

__all__ = ["copied", "orbits"]


def orbits(task: Task, poses: Array, group: Array) -> Array:
    """Return all symmetric copies ``(m n, nq)`` of poses ``(m, nq)`` under symmetries ``(n, 3, 3)``; the
    copies of a pose follow each other."""
    if len(group) == 1:
        return poses
    made = [turned_object(task.space, poses, R) for R in group]
    return np.stack(made, axis=1).reshape(-1, poses.shape[1])


def copied(task: Task, edges: Edges, group: Array) -> Edges:
    """Return edges and their copies under each symmetry.

    Args:
        task: The task; its object is turned.
        edges: Edges between nodes of :func:`orbits`.
        group: Symmetries ``(n, 3, 3)``.
    """
    count = len(group)
    if count == 1:
        return edges
    parts: list[Result] = []
    for turn in group:
        follows = np.array([_index(group, other @ turn) for other in group])
        nodes = {"source": edges.source, "target": edges.target}
        moved = {k: node - node % count + follows[node % count] for k, node in nodes.items()}
        turned = turned_object(task.space, edges.configurations, turn)
        parts.append({**edges.arrays(), **moved, "configurations": turned})
    return connected(parts)


def _index(group: Array, R: Array) -> int:
    """Return the index of the symmetry that equals a rotation."""
    return int(np.einsum("nij,ij->n", group, R).argmax())
