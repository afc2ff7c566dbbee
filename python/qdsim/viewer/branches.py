"""A planner's tree as lines and points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning import EdgeKind, Tree
from qdsim.viewer.roles import Roles
from qdsim.viewer.stage import Branches

__all__ = ["branches_of"]

_NONE = np.zeros((0, 2, 3))


def branches_of(tree: Tree, roles: Roles) -> Branches:
    """Return the paths of the object's centre and of a point on its side, which shows its rotation.

    The nodes are drawn at the point on the side.

    Args:
        tree: The tree.
        roles: The roles of its model's bodies.
    """
    assert roles.object is not None
    model, body = tree.task.model, roles.object
    side = np.array([0.0, reach_of(model, body, 0.1 * roles.size), 0.0])
    on_path = set(tree.path(tree.goal_node)) if tree.goal_node is not None else set()
    plain, chosen = [_NONE], [_NONE]
    for configurations, on in _edges(tree, on_path):
        way = _ways(model, body, side, configurations)
        pieces = np.stack([way[:-1], way[1:]], axis=2).reshape(-1, 2, 3)
        (chosen if on else plain).append(pieces)
    regrasps = [tree.q[i] for i in sorted(on_path) if tree.kind[i] == EdgeKind.REGRASP]
    marks = _ways(model, body, side, np.array(regrasps)) if regrasps else _NONE
    nodes = _ways(model, body, side, tree.q[: tree.count])[:, 1]
    return Branches(np.concatenate(plain), np.concatenate(chosen), marks[:, 1], nodes)


def reach_of(model: Model, body: int, otherwise: float) -> float:
    """Return the largest half size of a body's geometries, m; ``otherwise`` if it has none with a size."""
    sizes = [
        float(np.max(size))
        for b, size in zip(model.geom_body, model.parameters.geom_size)
        if int(b) == body and np.max(size) > 0.0
    ]
    return max(sizes, default=otherwise)


def _ways(model: Model, body: int, side: Array, configurations: Array) -> Array:
    """Return the positions ``(n, 2, 3)`` of the body's origin and of a point on its side."""
    poses = [model.body_poses(q) for q in configurations]
    return np.array([[pos[body], pos[body] + rot[body] @ side] for pos, rot in poses])


def _edges(tree: Tree, on_path: set[int]) -> Iterator[tuple[Array, bool]]:
    for node in range(1, tree.count):
        trajectory = tree.trajectory(node)
        if trajectory is not None:
            yield np.vstack([tree.q[tree.parent[node]], trajectory]), node in on_path
