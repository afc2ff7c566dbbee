"""Options of roadmaps."""

from __future__ import annotations

import dataclasses

from qdsim.arguments import fields, instance, integer, number
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.settings import Settings

__all__ = ["RoadmapOptions"]


@dataclasses.dataclass(frozen=True)
class RoadmapOptions(Settings):
    """Settings of :func:`qdsim.planning.roadmap`.

    Attributes:
        nodes: Number of resting poses of the object at the beginning, drawn from the task's box.
        neighbours: Number of nearest nodes to which each node, and each end of a query, is joined.
        trials: Number of disturbed starts of each edge.
        radius: Largest distance of these starts from the edge's node, and of an edge's end from its
            node, in tolerances of the task, >= 1.
        attempts: Number of failed connections after which a query gives up.
        search: Settings of one connection; None: the task's planner with at most 200 nodes and 4000
            steps.
    """

    nodes: int = 24
    neighbours: int = 5
    trials: int = 3
    radius: float = 2.0
    attempts: int = 12
    search: RRTOptions | None = None

    def __post_init__(self) -> None:
        fields(self, integer, "nodes", "neighbours", "attempts", least=1)
        fields(self, integer, "trials", least=0)
        fields(self, number, "radius", least=1)
        instance("search", self.search, RRTOptions, or_none=True)
