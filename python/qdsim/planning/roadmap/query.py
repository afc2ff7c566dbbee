"""One query of a roadmap: edges of the path with the highest success probability, and connections at its ends."""

from __future__ import annotations

from typing import Protocol

from qdsim.array_type import Array
from qdsim.parallel import seed_of
from qdsim.planning.roadmap.edges import Edges
from qdsim.planning.roadmap.legs import Legs, still
from qdsim.planning.roadmap.poses import away, distances, nearest
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.roadmap.shortest_path import shortest_path
from qdsim.planning.task.goal_set import GoalSet, Target
from qdsim.planning.task.task import Task

__all__ = ["NotCoveredError", "Query"]

_NEAREST = 1.1
"""A turn straight to the goal is tried if the object is at most this many times as far from it as the nearest node."""


class NotCoveredError(RuntimeError):
    """A roadmap has no plan for a query; the message gives the remaining distance.

    Attributes:
        q: End ``(nq,)`` of the last successful leg.
    """

    def __init__(self, said: str, q: Array) -> None:
        super().__init__(f"not covered: {said}")
        self.q = q


class Net(Protocol):
    """The parts of a roadmap that a query uses."""

    task: Task
    options: RoadmapOptions
    nodes: Array
    edges: Edges
    ways: list[list[tuple[int, float, int]]]

    @property
    def reach(self) -> float:
        """Largest distance of a query from the nodes, m."""
        ...


class Query:
    """One query: legs from the start to the goal.

    Args:
        net: The roadmap.
        maker: Makes the legs.
        start, goal: Configurations ``(nq,)``.
        seed: Seed of the searches.
    """

    def __init__(
        self,
        net: Net,
        maker: Legs,
        start: Array,
        goal: Array,
        seed: int,
    ) -> None:
        self.map, self.seed = net, seed
        self._maker = maker
        self.task, self.options = net.task, net.options
        task = net.task
        self.goals = GoalSet(task.model, task.space, goal, task.goal_region)
        self.legs = [still(start, self.task.model.nu)]
        self.passed: list[int] = []
        self.success = 1.0
        self._node: int | None = None  # node at which the last leg ended
        self._banned: set[tuple[int | None, int | None]] = set()
        self._since = start  # configuration when the connections in _banned began to fail
        self._failures = self._searches = 0

    @property
    def q(self) -> Array:
        """End ``(nq,)`` of the last leg."""
        return self.legs[-1].end

    def go(self) -> None:
        """Make legs to the goal, or raise NotCoveredError."""
        exits, gap = self._near(self.goals)
        reach = self.map.reach
        if gap > reach and self._from_here() > reach:
            raise NotCoveredError(
                f"the goal is {gap:.3g} from the nearest node, connections reach {reach:.3g}",
                self.q,
            )
        while not self._arrived(None):
            if self._maker.lost:
                raise NotCoveredError("the plant has lost the object", self.q)
            if self._failures > self.options.attempts:
                raise NotCoveredError(f"{self._failures} connections failed", self.q)
            if self._direct(min(reach, _NEAREST * gap) if self._maker.turns else reach):
                continue
            way = self._way(exits)
            if way is None:
                raise NotCoveredError("no edges lead to the goal from where the object is", self.q)
            if all(self._advance(node, edge) for node, edge in way if node != self._node):
                self._advance(None, -1)

    def _from_here(self) -> float:
        return float(distances(self.task, self.q[None], self.goals)[0])

    def _direct(self, reach: float) -> bool:
        """Try the goal at once if it is near enough; return whether it was tried."""
        if self._from_here() > reach or (self._node, None) in self._banned:
            return False
        self._advance(None, -1)
        return True

    def _near(self, target: Target) -> tuple[dict[int, float], float]:
        """Return the nodes near a pose with the cost of a connection to each, and the distance of the nearest."""
        near, gaps = nearest(self.task, self.map.nodes, target, self.options.neighbours)
        unit = max(self.map.reach, 1e-12)
        return {k: float(gaps[k]) / unit for k in near}, float(gaps[near[0]])

    def _way(self, exits: dict[int, float]) -> list[tuple[int, int]] | None:
        """Return the path with the highest success probability from here, without connections that have failed."""
        entries = {
            k: cost for k, cost in self._near(self.q)[0].items() if (None, k) not in self._banned
        }
        if self._node is not None:
            entries[self._node] = 0.0
        ways = [
            [way for way in own if (node, way[0]) not in self._banned]
            for node, own in enumerate(self.map.ways)
        ]
        left = {k: cost for k, cost in exits.items() if (k, None) not in self._banned}
        return shortest_path(entries, ways, left)

    def _advance(self, node: int | None, edge: int) -> bool:
        """Make one leg, along an edge or by a search; the leg leads to the goal if ``node`` is None."""
        legs, region = self._maker, self.task.goal_region if node is None else None
        if node is not None and len(self.legs) == 1 and self._arrived(node):
            return self._pass(node)  # the query starts at this node
        pose = self.goals.goal if node is None else self.map.nodes[node]
        self._searches += 1
        seed = seed_of(self.seed, self._searches)
        if edge >= 0:
            leg = legs.follow(self.q, self.map.edges.leg(edge), pose, seed)
        else:
            leg = legs.connect(self.q, pose, seed, region, leave=node is not None)
        if leg is not None:
            self.legs.append(leg)
        if leg is None or not self._arrived(node):
            self._failures += 1
            self._banned.add((self._node if edge >= 0 or node is None else None, node))
            if leg is not None:  # only in a plant, where a failed leg may have moved the object
                self._node = None
                if away(self.task, self.q, self._since) > self.options.radius:
                    self._banned, self._since = set(), self.q
            return False
        if edge >= 0:
            self.success *= float(self.map.edges.success[edge])
        return self._pass(node)

    def _pass(self, node: int | None) -> bool:
        """Record that the object is at a node, or at the goal."""
        if node is not None:
            self.passed.append(node)
            self._banned = {pair for pair in self._banned if pair[0] is not None}
            self._since = self.q
        self._node = node
        return True

    def _arrived(self, node: int | None) -> bool:
        """Return whether the last leg ended at its aim, a node or the goal."""
        if node is None:
            return self.task.in_tolerances(self.goals.errors(self.q)) <= self._maker.within
        return away(self.task, self.q, self.map.nodes[node]) <= self.options.radius
