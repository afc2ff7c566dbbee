"""The cheapest path through a graph (Dijkstra 1959, "A note on two problems in connexion with
graphs")."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

__all__ = ["shortest_path"]


def shortest_path(
    entries: Mapping[int, float],
    ways: Sequence[Sequence[tuple[int, float, int]]],
    exits: Mapping[int, float],
) -> list[tuple[int, int]] | None:
    """Find the cheapest path from an entry to an exit.

    Args:
        entries: Cost of reaching each entry node from outside.
        ways: For each node, the targets of its edges, their costs >= 0 and their numbers.
        exits: Cost of reaching the goal from each exit node.

    Returns:
        Nodes, each with the number of the edge that leads to it (-1 for the first); None if there
        is no path.
    """
    best = dict(entries)
    before: dict[int, tuple[int, int]] = {}
    queue = [(cost, node) for node, cost in entries.items()]
    heapq.heapify(queue)
    end, least = -1, float("inf")
    while queue:
        cost, node = heapq.heappop(queue)
        if cost >= least:
            break
        if cost > best[node]:
            continue
        if node in exits and cost + exits[node] < least:
            end, least = node, cost + exits[node]
        for target, own, edge in ways[node]:
            if cost + own < best.get(target, float("inf")):
                best[target] = cost + own
                before[target] = (node, edge)
                heapq.heappush(queue, (cost + own, target))
    if end < 0:
        return None
    route = []
    while end in before:
        node, edge = before[end]
        route.append((end, edge))
        end = node
    return [(end, -1), *route[::-1]]
