"""Reports of an executor: its present state, and the result of the execution."""

from __future__ import annotations

import dataclasses
import math

from qdsim.planning.execution.executed_motion import ExecutedMotion
from qdsim.planning.execution.execution import SegmentTransfer

__all__ = ["EdgeReport", "ExecutorReport", "ExecutorState"]


@dataclasses.dataclass(frozen=True)
class ExecutorState:
    """State of an executor.

    Attributes:
        doing: ``"approach"``, ``"close"``, ``"move"``, ``"set down"``, ``"let go"``, ``"next"``
            (choose the next edge), ``"hold"``, or ``"stopped"``.
        edge: description of the present edge.
        controller: name of the active controller, or "".
        waypoint, waypoints: index of the present waypoint, and number of waypoints of the edge.
        error: error of the object from its goal, m and rad.
        seconds: time of the plant, s.
        plans: number of new plans so far.
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
    """One attempt of one controller on one edge.

    Attributes:
        edge: description of the edge.
        controller: name of the controller, or "" if the robot did not reach the edge.
        predicted: predicted error of the object after the next periods, in tolerances.
        seconds: duration in time of the plant, s.
        waypoints: number of waypoints passed, and number of waypoints of the edge.
        error: error of the object from the end of the edge, m and rad.
        ended: ``"arrived"`` at the goal, ``"followed"`` to the end of the edge, or the reason why
            it ended.
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
        outcome: ``"reached"``: the object was at its goal and stayed there; ``"missed"``: nothing
            brought it nearer; ``"lost"``: the object is out of reach; ``"no motion found"``, ``"no
            stroke found"``, ``"no plan found"``; ``"out of time"``; ``"no answer"``: the plant did
            not answer, or its answer was not a valid state.
        reason: why the execution ended.
        edges: every attempt of a controller.
        position_error, rotation_error: last measured error of the object from its goal, m and rad.
        tolerances: m and rad.
        seconds: duration in time of the plant, s.
        held: time for which the object was within its tolerances at the end, s.
        entries: number of times the object came within its tolerances.
        plans: number of new plans.
        why: which controllers were tried, and why these.
        segments: measurements of every attempt.
        motion: motion of robot and object, from the beginning to the end.
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
    segments: tuple[SegmentTransfer, ...] = dataclasses.field(repr=False)
    motion: ExecutedMotion = dataclasses.field(repr=False)

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
