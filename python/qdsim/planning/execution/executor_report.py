"""What an executor says of itself: its state now, and what became of everything in the end."""

from __future__ import annotations

import dataclasses
import math

from qdsim.planning.execution.execution import SegmentTransfer

__all__ = ["EdgeReport", "ExecutorReport", "ExecutorState"]


@dataclasses.dataclass(frozen=True)
class ExecutorState:
    """State of an executor.

    Attributes:
        doing: ``"approach"``, ``"close"``, ``"move"``, ``"set down"`` (and let go), ``"let go"``, ``"next"`` (it decides),
            ``"hold"``, or ``"stopped"``.
        edge: in words, what the object is to do.
        controller: that does it, or "".
        waypoint, waypoints: of the edge.
        error: m and rad, of the object from its goal.
        seconds: of the plant.
        plans: how many have been made on the way.
    """

    doing: str
    edge: str
    controller: str
    waypoint: int
    waypoints: int
    error: tuple[float, float]
    seconds: float
    plans: int

    def __str__(self) -> str:
        by = f" by {self.controller}" if self.controller else ""
        way = f", waypoint {self.waypoint} of {self.waypoints}" if self.doing == "move" else ""
        edge = f": {self.edge}{by}{way}" if self.edge else ""
        return f"{self.doing}{edge}; {_told(self.error)} to go, {self.seconds:.2f} s"


@dataclasses.dataclass(frozen=True)
class EdgeReport:
    """One try of one controller on one edge.

    Attributes:
        edge: in words, what the object was to do.
        controller: that tried, or "" where the robot did not get there.
        predicted: tolerances, that the object was predicted to be off after the next periods.
        seconds: how long it took, of the plant.
        waypoints: how many of the edge's waypoints were passed, of how many.
        error: m and rad, of the object from the end of the edge.
        ended: ``"arrived"`` at the goal, ``"followed"`` to the end of the edge, or why it ended.
    """

    edge: str
    controller: str
    predicted: float
    seconds: float
    waypoints: tuple[int, int]
    error: tuple[float, float]
    ended: str

    def __str__(self) -> str:
        by = self.controller or "-"
        passed = "{}/{}".format(*self.waypoints)
        return f"{self.edge:<28} {by:<10} {self.seconds:7.2f} s  {passed:>7}  {_told(self.error):<22} {self.ended}"


@dataclasses.dataclass(frozen=True)
class ExecutorReport:
    """Result of an execution.

    Attributes:
        outcome: ``"reached"``: the object was at its goal and stayed there; ``"missed"``: nothing brought it nearer;
            ``"lost"``; ``"no motion found"``, ``"no stroke found"``, ``"no plan found"``: it ended for want of it; ``"out of
            time"``; ``"no answer"``: the plant did not answer, or with what is no state.
        reason: in words, what ended it.
        edges: every try of a controller.
        position_error, rotation_error: m and rad, of the object from its goal when last measured.
        tolerances: m and rad.
        seconds: of the plant.
        held: s, that the object was within its tolerances at the end.
        entries: how often it came within them.
        plans: that were made on the way.
        why: in words, the controllers that were tried, and why these.
        segments: what was measured in every try.
    """

    outcome: str
    reason: str
    edges: tuple[EdgeReport, ...]
    position_error: float
    rotation_error: float
    tolerances: tuple[float, float]
    seconds: float
    held: float
    entries: int
    plans: int
    why: str
    segments: tuple[SegmentTransfer, ...] = dataclasses.field(default=(), repr=False)

    @property
    def reached(self) -> bool:
        """Whether the object was at its goal and stayed there."""
        return self.outcome == "reached"

    def __str__(self) -> str:
        far = _told((self.position_error, self.rotation_error))
        head = (
            f"{self.outcome}: the object ends {far} from its goal, tolerances {_told(self.tolerances)}, after "
            f"{self.seconds:.2f} s, of which held {self.held:.2f} s; {self.plans} new plans"
        )
        return "\n".join([head, self.reason, self.why, *(f"  {edge}" for edge in self.edges)])


def _told(pair: tuple[float, float]) -> str:
    return f"{1e3 * pair[0]:.3g} mm, {math.degrees(pair[1]):.3g} deg"
