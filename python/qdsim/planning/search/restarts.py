"""Conditions under which a search starts a new tree, or ends without success."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdsim.planning.search.path import EdgeKind
from qdsim.planning.search.tree import Tree


def is_stale(tree: Tree, unit: int | None) -> bool:
    """Return whether the current tree has used its share of nodes: ``unit`` times an entry of Luby's sequence."""
    number = int(np.count_nonzero(tree.kind == EdgeKind.ROOT))
    return unit is not None and tree.count - tree.first >= unit * luby(number)


def idle_iterations(rows: list[Any]) -> int:
    """Return how many of the last iterations in a row added no node; ``rows`` are the tree's records."""
    count = rows[-1][1] if rows else 0
    for idle, row in enumerate(reversed(rows)):
        if row[1] != count:
            return max(idle - 1, 0)
    return len(rows) - (count > 1) if rows else 0


def luby(number: int) -> int:
    """Return entry ``number``, starting from 1, of Luby's sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...

    Restarts of these lengths are optimal up to a logarithm for any distribution of run times (Luby,
    Sinclair and Zuckerman 1993, "Optimal speedup of Las Vegas algorithms").
    """
    while True:
        power = number.bit_length()
        if number == (1 << power) - 1:
            return 1 << (power - 1)
        number -= (1 << (power - 1)) - 1
