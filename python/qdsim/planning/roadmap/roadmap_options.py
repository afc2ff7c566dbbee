"""What a roadmap may be told."""

from __future__ import annotations

import dataclasses
from typing import Any

from qdsim.arguments import fields, instance, integer, number
from qdsim.planning.task.rrt_options import RRTOptions

__all__ = ["RoadmapOptions"]


@dataclasses.dataclass(frozen=True)
class RoadmapOptions:
    """Settings of :func:`qdsim.planning.roadmap`.

    Attributes:
        nodes: resting poses of the object that the roadmap begins with, drawn from the task's box.
        neighbours: nearest nodes that each node is joined with, and that queries begin and end at.
        trials: disturbed starts from which each edge is tried.
        radius: how far these starts are from the edge's node at most, and how far from a node an edge may end;
            in tolerances of the task, >= 1.
        attempts: connections that a query may see fail before it gives up.
        search: of one connection; None: the task's planner with at most 200 nodes and 4000 steps.
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

    def replace(self, **changes: Any) -> RoadmapOptions:
        """The same options with some changed.

        Args:
            **changes: fields and their new values.
        """
        return dataclasses.replace(self, **changes)
