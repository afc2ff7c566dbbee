"""Measures of a tree's growth: its distance to the goal, and its share of the task's box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT, generator_of, instance, integer, number
from qdsim.array_type import Array
from qdsim.planning.search.tree import Tree

__all__ = ["distance_to_goal", "packing_ratio", "subgoal_samples"]


def distance_to_goal(tree: Tree) -> Array:
    """Compute the least distance of the tree's nodes to the goal, at the start and after every
    iteration (CQDC, VIII-A).

    Args:
        tree: A planner's tree.

    Returns:
        ``(iterations + 1,)`` m, with rotations (rad) multiplied by ``task.length``; it never increases.
    """
    instance("tree", tree, Tree)
    best = np.minimum.accumulate(tree.distance)
    return np.asarray(best[_counts(tree) - 1])


def packing_ratio(
    tree: Tree, *, eta: float = 3.0, samples: int = 1000, rng: int | np.random.Generator = 0
) -> Array:
    """Compute the share of the task's box of subgoals that the tree reaches, at the start and after
    every iteration.

    The share (CQDC eq. 51) is the volume in which the local Mahalanobis distance to some node is at most
    ``eta``, divided by the volume of the box. It is estimated from samples.

    Args:
        tree: A grown tree.
        eta: Threshold in the units of :meth:`Tree.distances`, without the paper's factor 1/2; the
            authors' scripts use 3.
        samples: Number of poses drawn from the box; the standard error is at most ``0.5 /
            sqrt(samples)``.
        rng: Seed or generator of the samples. Use the same seed to compare trees on the same samples.

    Returns:
        ``(iterations + 1,)`` shares; they never decrease.

    Raises:
        ValueError: An argument is invalid; the message names it.
    """
    instance("tree", tree, Tree)
    eta = number("eta", eta, above=0)
    samples = integer("samples", samples, least=1, most=MOST_COUNT)
    first = np.array(
        [
            int(near[0]) if len(near := np.flatnonzero(tree.distances(q) <= eta)) else tree.count
            for q in subgoal_samples(tree, samples, rng)
        ]
    )
    return np.asarray((first[None, :] < _counts(tree)[:, None]).mean(axis=1))


def subgoal_samples(tree: Tree, samples: int, rng: int | np.random.Generator) -> Array:
    """Return configurations ``(samples, nq)`` with the object at random poses of the task's box."""
    task, generator = tree.task, generator_of(rng)
    shares = generator.random((samples, task.space.size))
    return np.array(
        [task.with_object(task.start, task.lower + s * (task.upper - task.lower)) for s in shares]
    )


def _counts(tree: Tree) -> NDArray[np.int64]:
    """Return the number of nodes before the first iteration and after each one."""
    return np.concatenate(([1], tree.records["nodes"])).astype(np.int64)
