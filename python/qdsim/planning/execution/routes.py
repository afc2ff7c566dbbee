"""The next edge of an executor: strokes, segments of a plan, straight to the goal, or a new plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.planning.execution.controllers import WORTH, Controllers
from qdsim.planning.execution.execution import Execution
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.foresight import Foresight
from qdsim.planning.execution.loops.loop import Commands
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.strokes import FORESEEN, GaitOptions, Stroke, StrokePlanner
from qdsim.planning.grasps.samplers.holding import Either
from qdsim.planning.grasps.samplers.surface import SurfaceSampler
from qdsim.planning.grasps.samplers.touching import TRIES
from qdsim.planning.plans.executable import LEAVE
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.oddities import depth_in_walls
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import LEFT, NEARER

__all__ = ["Edge", "Planner", "Routes", "nearer"]


class Planner(Protocol):
    """Makes plans during an execution."""

    def __call__(self, start: Array, /, *, seed: int) -> Plan:
        """Return a plan to the goal from a measured configuration ``(nq,)``; each seed gives another one."""
        ...


NODES = 250
"""Largest number of nodes of a new plan's search; the plan then leads as near to the goal as the search came."""
GRASPS = 2
"""Number of strokes, each with a newly drawn grasp, that count as one attempt. A kind of edge is given up after as
many attempts without gain; with one, test_executor.py fails."""
PLANS = ("plan", "new plan")
"""Kinds of edges that have several edges in a row."""


@dataclasses.dataclass(frozen=True)
class Edge:
    """The next motion of the object.

    Attributes:
        words: Description of the edge.
        segment: The segment of a plan to follow; None: a stroke, or straight to the goal.
        strokes: Candidate strokes, the best first; the first one whose grasp can be reached is
            taken.
    """

    words: str
    segment: Segment | None = None
    strokes: tuple[Stroke, ...] = ()


class Routes:
    """Kinds of edges in the order of the options, each tried while it brings the object nearer.

    Args:
        task: The task of the whole execution.
        plan: The plan whose segments are edges; None: no plan.
        execution: The execution.
        controllers: The controllers.
        options: Which kinds of edges are tried, and when to give one up.
        planner: Settings of new plans, or a function that makes them.
        gaits: Settings of strokes; None: no strokes.

    Attributes:
        todo: Remaining segments of the plan.
        plans: Number of new plans.
        strokes: Finds strokes, if the robot has fingers that hold and the task has a sampler of
            grasps; else None.
        want: What the last search did not find.
        missed: For each kind of edge, how often in a row it has brought the object no nearer.
        foresight: Rolls strokes out before they begin; None: the model alone tells what they gain.
        never: Why no edge of any kind can end at the goal; empty if one may.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan | None,
        execution: Execution,
        controllers: Controllers,
        options: ExecutorOptions,
        planner: RRTOptions | Planner,
        gaits: GaitOptions,
    ) -> None:
        self.task, self.options = task, options
        self._execution, self._controllers, self._planner = execution, controllers, planner
        self._tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
        self.todo = [] if plan is None else [s for s in plan.segments if s.steps > 0]
        self._count, self._stroke_count, self.plans = len(self.todo), 0, 0
        self.strokes: StrokePlanner | None = None
        if execution.hand is not None and task.sampler is not None:
            self.strokes = StrokePlanner(
                task,
                gaits,
                options.seed,
                load=execution.plant.support_load,
                plant=controllers.task.options,
                hold=options.hold,
            )
        self.foresight: Foresight | None = None
        self.want, self.never, self.missed = "", "", dict[str, int]()
        self._taken, self._before, self._promised = "", np.inf, False

    @property
    def by_hand(self) -> bool:
        """Whether fingers that hold, and are foreseen, move the object along segments too."""
        return self.foresight is not None and self._controllers.names == ("grip",)

    def far(self, goal: Array | None = None) -> float:
        """Return the error of the object in tolerances: from the goal, or from its pose in another
        configuration."""
        task, q = self.task, self._execution.plant.q
        return task.off(q) if goal is None else task.in_tolerances(task.goals.apart(q, goal))

    def track(self, segment: Segment | None, start: Array | None = None) -> Track:
        """Return the track of an edge: along a segment, shifted to start at the robot's configuration, or
        straight to the goal."""
        schedule = None
        if segment is not None:
            last = self._taken in PLANS and not self.todo and self._execution.hand is not None
            aimed = self._aimed(segment) if last else segment
            schedule = self._execution.schedule(aimed, start)
        return Track(self.task.goals, self._tolerances, schedule, self._execution.plant.q)

    def _aimed(self, segment: Segment) -> Segment:
        """Return a segment that ends within the goal's tolerances with its object led on to the goal itself.

        A search ends at the edge of the tolerances, which would leave no room for errors of fingers that hold the object.
        """
        task = self.task
        if not task.reached(segment.end):
            return segment
        rest = task.goals.difference(segment.end)
        shares = np.linspace(0.0, 1.0, segment.steps + 1)
        path = [task.with_object(q, s * rest) for q, s in zip(segment.configurations, shares)]
        return dataclasses.replace(segment, configurations=np.array(path))

    def next(self, let_go: Callable[[], Commands[None]]) -> Commands[Edge | None]:
        """Choose the next edge; None if nothing is left to try.

        What hangs near its goal is first moved straight to it, because it would fall before any other edge.

        Args:
            let_go: called before a regrasp; sets the object down.
        """
        if self._taken in PLANS:
            near = self.todo and self.far(self.todo[0].start) <= LEAVE
            if near and (edge := self._segment()) is not None:
                return edge
            self.todo.clear()
        routes = self.options.routes
        if self._hangs_near():
            routes = tuple(sorted(routes, key=lambda route: route != "straight"))
        self._judge()
        ways = {
            "strokes": self._stroked,
            "plan": self._planned,
            "straight": self._straight,
            "new plan": self._replanned,
        }
        while left := [route for route in routes if self._may(route)]:
            self._promised = False
            for route in left:
                edge = yield from ways[route](let_go)
                if self._execution.plant.lost or self.never:
                    return None
                self._taken, self._before = route, self.far()
                if edge is not None:
                    return edge
                self.missed[route] = self.missed.get(route, 0) + 1
            if not self._promised:
                return None
        return None

    def _hangs_near(self) -> bool:
        """Return whether a plan has brought the object near its goal, to where it falls if the robot lets it go."""
        execution, near = self._execution, self.far() <= LEAVE
        return self._taken in PLANS and near and not execution.free and not execution.rests()

    def _may(self, route: str) -> bool:
        """Return whether a kind of edge is tried again.

        Strokes that are foreseen do not lose the object, so others are drawn as long as the model promises some.
        """
        allowed = GRASPS
        if route == "strokes":
            allowed = GRASPS**2 if self.foresight is None else GRASPS**3
        return self.missed.get(route, 0) < allowed

    def _judge(self) -> None:
        """Record whether the last kind of edge has brought the object nearer to the goal."""
        route, self._taken = self._taken, ""
        if not route:
            return
        gained = self._before - self.far()
        if gained < (NEARER if route == "strokes" else WORTH):
            # every plan has other pushes, and the number of new plans is limited
            fault = 0 if route in PLANS else GRASPS if gained < -WORTH else 1
            self.missed[route] = self.missed.get(route, 0) + fault
        else:
            self.missed.clear()

    def _segment(self) -> Edge | None:
        """Return the next segment of the plan as an edge; None if fingers that hold are foreseen to lose the object."""
        segment = self.todo.pop(0)
        if self.foresight is not None and self.by_hand:
            start = self._execution.start(segment)
            if not self.foresight.keeps(self._execution.schedule(segment, start), start):
                return None
        of_plan = f", plan {self.plans + 1}" if self.plans else ""
        return Edge(f"segment {self._count - len(self.todo)} of {self._count}{of_plan}", segment)

    def _planned(self, let_go: Callable[[], Commands[None]]) -> Commands[Edge | None]:
        """Choose the last segment of the plan that begins near the object's pose; later segments follow it."""
        yield from ()
        near = [k for k, s in enumerate(self.todo) if self.far(s.start) <= LEAVE]
        self.todo = self.todo[near[-1] :] if near else []
        return self._segment() if near else None

    def _straight(self, let_go: Callable[[], Commands[None]]) -> Commands[Edge | None]:
        """Choose the straight path to the goal, if that is predicted to gain something.

        An object that fingers have released is not pushed before they grasp it, because it would roll away.
        """
        yield from ()
        if self.strokes is not None and self._execution.free:
            return None
        execution = self._execution
        found = self._controllers.choose(self.track(None), execution.command, set())
        return None if found is None else Edge("straight to the goal")

    def _stroked(self, let_go: Callable[[], Commands[None]]) -> Commands[Edge | None]:
        """Choose the strokes of newly drawn grasps, at the present pose of the object, by their gain."""
        strokes, execution = self.strokes, self._execution
        if strokes is None or self._stroke_count >= strokes.options.strokes:
            return None
        begins, self._stroke_count = self._stroke_count == 0, self._stroke_count + 1
        if not begins:
            yield from let_go()
        q = np.array(self.task.model.normalize(execution.plant.q))
        found: list[Stroke] = []
        for _ in range(TRIES):
            if not found:
                found = [s for s in strokes.candidates(q, here=begins) if s.gain > TOUCHING]
                seldom = strokes.draws_lifts and strokes.is_below(q)  # others are drawn
                self._promised = bool((found or seldom) and self.foresight)
                found = self.foresight.those_that_work(found) if self.foresight else found
        if strokes.slips and not found and not strokes.draws_lifts:
            self.never = (
                f"the contacts creep, and none of the grasps in which the fingers lift {self.task.object!r} to its "
                f"goal ({strokes.slips}) is predicted to hold it there for {self.options.hold:g} s"
            )
        self.want = "" if found else "no stroke found"
        return Edge("stroke", strokes=tuple(found)) if found else None

    @property
    def carries(self) -> bool:
        """Whether fingers have to carry the object to its goal, because the goal is in the air."""
        return self.strokes is not None and self.strokes.hangs

    def stroke_here(self, chosen: Stroke) -> Stroke | None:
        """Return the stroke of the present grasp; None if it gains too little.

        To a goal in the air that is the chosen stroke, if the model finds none of the fingers as they have closed.

        Args:
            chosen: the stroke to whose grasp the fingers have closed.
        """
        hand, strokes = self._execution.hand, self.strokes
        assert hand is not None and strokes is not None
        found = strokes.best(hand.apart(self._execution.plant.q, strokes.task.options))
        found = None if found is None else strokes.that_can_be_left(found)
        if found is not None and found.gain <= TOUCHING:
            found = None
        if self.foresight is None:
            return found
        world = self._execution.plant
        for stroke in (found, chosen if self.carries else None):
            if stroke is None:
                continue
            best = self.foresight.best(stroke, world.q, world.v, self._execution.command)
            if best is not None:
                return best
        return None

    def _replanned(self, let_go: Callable[[], Commands[None]]) -> Commands[Edge | None]:
        """Make new plans from the object's resting pose, and choose the first segment.

        A task's sampler may know no grasp that leads on from here, as it knows none behind a door that has passed its
        goal. If its plans fail, grasps anywhere on the object are drawn as well.
        """
        more = min(GRASPS**2, self.options.plans - self.plans)
        if more <= 0:
            return None
        yield from let_go()
        task = self._phase()
        if task is None:
            return None
        for k in range(more):
            if k == GRASPS and task.sampler is not None:
                task = task.replace(sampler=Either(task.sampler, SurfaceSampler(task.object)))
            self.plans += 1
            seed = self.options.seed + self.plans
            self.todo = _new_plan(self._execution, task, self._planner, seed)
            if self.todo:
                self._controllers.follow(plan_for(self.task, self.todo, self.task.options, np.inf))
                self._count = len(self.todo)
                if (edge := self._segment()) is not None:
                    return edge
                self.todo.clear()
        self.want = "no plan found"
        return None

    def _phase(self) -> Task | None:
        """Return the task of a new plan; None below a goal in the air, to which only grasps that hold lead, not pushes.

        An object that is to be lifted by many grasps' best is first brought to below its goal.
        """
        strokes, q = self.strokes, self._execution.plant.q
        if strokes is None or not strokes.draws_lifts or strokes.below is None:
            return self.task
        return None if strokes.is_below(q, 1.0) else self.task.towards(strokes.below)


def nearer(task: Task, here: Array) -> Task:
    """Return the task from ``here`` ``(nq,)`` with reduced tolerances, which leave room for the errors of
    following a plan.

    If the goal is inside a wall by less than the tolerance, the object cannot come nearer than the
    wall. The new tolerance is then this distance plus a part of the rest of the tolerance.
    """
    depth = 0.0
    if task.goals.is_point:
        depth = min(depth_in_walls(task.model, task.space, task.aim)[0], task.position_tolerance)
    return task.towards(
        task.goal,
        start=here,
        position_tolerance=depth + LEFT * (task.position_tolerance - depth),
        rotation_tolerance=LEFT * task.rotation_tolerance,
        start_tolerance=np.inf,
    )


def _new_plan(
    execution: Execution, task: Task, planner: RRTOptions | Planner, seed: int
) -> list[Segment]:
    """Return the segments of a new plan from the measured state, to the goal or near it; empty if there is no plan."""
    here = execution.measured()
    # A caller's function says by a RuntimeError that it has no plan; of a search that is a fault, but for SolverError.
    none: type[Exception] = RuntimeError if callable(planner) else SolverError
    try:
        if callable(planner):
            plan = planner(here, seed=seed)
        else:
            plan = _searched(execution, task, planner, here, seed)
    except (none, ValueError, ImportError):  # no plan, or OMPL is not installed
        return []
    return [s for s in plan.segments if s.steps > 0]


def _searched(
    execution: Execution, task: Task, planner: RRTOptions, here: Array, seed: int
) -> Plan:
    """Return the plan of a search from a configuration, to the goal or to the best node."""
    planner = planner.replace(max_nodes=min(planner.max_nodes, NODES))
    if execution.missing_motions and planner.motion_seconds is None:
        planner = planner.replace(motion_seconds=FORESEEN.time_limit)
    tree = rrt(nearer(task, here), planner, rng=seed)
    return tree.plan(None if tree.reached else tree.best_node)
