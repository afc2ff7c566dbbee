"""A plan, or a goal without one, brought about in any plant: a state machine over controllers, grasps and plans."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.dynamics import DynamicOptions
from qdsim.planning.execution.controllers import MARGIN, Choice, Controllers
from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.executor_report import EdgeReport, ExecutorReport, ExecutorState
from qdsim.planning.execution.grip import GripOptions
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record, ramp
from qdsim.planning.execution.loops.pursuit import pursue
from qdsim.planning.execution.loops.track import Track, tolerances_off
from qdsim.planning.execution.renewing import WITHIN, new_plan
from qdsim.planning.execution.robot import Robot, RobotPlant
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.simulators import Word, simulator_of, stepped, world_in_words
from qdsim.planning.execution.strokes import GaitOptions, Stroke, StrokePlanner
from qdsim.planning.execution.transfer_options import TransferOptions
from qdsim.planning.execution.world import PlantError
from qdsim.planning.grasps.equilibrium import generalised_load
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import Arrival
from qdsim.planning.tracking.predictors import MujocoModel, Predictor

if TYPE_CHECKING:
    import mujoco

__all__ = ["Executor"]

ARRIVED = 0.6
"""Of the tolerances, within which an object has arrived and is held, if it comes no nearer."""
PERIODS, LOOK = 3, 0.1
"""Looks, and s between them, at an object that is held, before it counts as held at all."""
LEAVE = 2.0
"""Tolerances, that an object may be off where a planned segment begins."""
GAINED = 0.5
"""Tolerances, that a way on has to bring the object nearer to the goal."""
NEARER = 0.05
"""Tolerances, that strokes have to; several short ones go far."""
GRASPS = 2
"""Strokes that count as one way on: each has a grasp that is drawn anew."""
DRAWS = 3
"""How often grasps are drawn for a stroke that gains something."""
STEADY = 0.3
"""s, that the object is held at a stroke's end."""
WORTH = 0.3
"""Tolerances, that going straight to the goal has to be predicted to gain in the next periods."""
GAIN = 1e-3
"""m, of strokes that are worth a new grasp."""
THERE = 1e-6
"""rad or m: a robot that is in its grasp already."""
PLANS = ("plan", "new plan")
"""Ways on, of more than one edge."""
DONE = ("arrived", "followed", "lost")


@dataclasses.dataclass(frozen=True)
class _Edge:
    """What the object is to do next, in words: along a segment, or (None) straight to the goal."""

    words: str
    segment: Segment | None = None
    is_stroke: bool = False


class Executor:
    """Brings an object to a task's goal in any plant, by a plan or without one, and holds it there.

    It goes from edge to edge: along a stroke of fingers that hold the object, where the robot has such fingers and the
    task a sampler of grasps; along a segment of a plan; or straight to the goal. For each the robot approaches the grasp, closes, and moves the object; then it sets it down, lets go, and
    decides what is next from what is measured. On an edge controllers are tried, those first that are predicted to do
    best from the measured state; how far they have come is counted in waypoints of the object, not by a clock. An edge
    that fails sends it back to the search for grasps: strokes or a new plan from where everything is. An object that is
    within the tolerances, for three measurements, and comes no nearer is held with the command that acts then; where
    it leaves the tolerances it is taken up again.

    Args:
        task: what to do.
        plan: how; None: that is found on the way.
        plant: ``"mujoco"``, with the model of :func:`second_order`; a MuJoCo model with the same layout; ``"qdsim"``: the
            package's own second-order step, or `DynamicOptions` of it; or a :class:`Robot`. Simulators begin at rest at
            the start of the plan, or of the task; a robot is where it is.
        world: pace and contacts of the execution. With a robot its period is the time step.
        options: which controllers, and when to give up.
        planner: of new plans; None: the task's own settings.
        model: predicts samples; None: MuJoCo's contacts where they are not stiff, else the quasi-dynamic step.
        watch: told the state (:class:`ExecutorState`) whenever it changes.

    Raises:
        TypeError, ValueError: naming the argument.
        PlantError: if a robot does not answer when it is first read.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan | None = None,
        plant: mujoco.MjModel | Word | DynamicOptions | Robot = "mujoco",
        *,
        world: TransferOptions | None = None,
        options: ExecutorOptions | None = None,
        planner: RRTOptions | None = None,
        model: Predictor | None = None,
        watch: Callable[[ExecutorState], object] | None = None,
    ) -> None:
        instance("task", task, Task)
        instance("plan", plan, Plan, or_none=True)
        given = instance("world", world, TransferOptions, or_none=True) or TransferOptions()
        self.options = (
            instance("options", options, ExecutorOptions, or_none=True) or ExecutorOptions()
        )
        instance("planner", planner, RRTOptions, or_none=True)
        if watch is not None and not callable(watch):
            raise TypeError(f"watch: expected a function, got {type(watch).__name__}")
        self._planner, self._watch = planner or task.planner or RRTOptions(), watch
        self.task = _towards(task, plan)
        self._todo = [] if plan is None else [s for s in plan.segments if s.steps > 0]
        self._count = len(self._todo)
        pace = dataclasses.replace(stepped(given, plant), carry_on=True, motions=True)
        simulator = simulator_of(task.model, task.object, pace, plant, "plant")
        known = _waiting(self.task) if plan is None else plan
        self._execution = Execution(known, task.model, simulator, pace)
        self._plant = self._execution.plant
        self.world = world_in_words(pace, plant)
        if model is None and plant == "mujoco" and pace.contacts != "stiff":
            from qdsim.planning.execution.plant import second_order

            model = MujocoModel(second_order(task.model, task.object, pace))
        self._controllers = Controllers(self._plant, self.task, known, self.options, pace, model)
        self._tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
        self._arrival = Arrival(self.task, ARRIVED, 1.0)
        self._strokes = self._stroke_planner()
        self._doing, self._by = "next", ""
        self._rest: Array | None = None
        self._edge: _Edge | None = None
        self._track: Track | None = None
        self._open: tuple[Track, Record, float] | None = None
        self._edges: list[EdgeReport] = []
        self._segments: list[SegmentTransfer] = []
        self._plans, self._entries, self._held, self._since = 0, 0, 0.0, 0.0
        self._route, self._before, self._want = "", math.inf, ""
        self._missed: dict[str, int] = {}
        self._begin(known.start)

    # ---------------------------------------------------------------- what it says

    @property
    def state(self) -> ExecutorState:
        """Where it is now; prints as one line."""
        track = self._track
        passed, count = (0, 0) if track is None else (track.passed, track.waypoints)
        return ExecutorState(
            self._doing,
            self._edge.words if self._edge else "",
            self._by if self._edge else "",
            passed,
            count,
            self.task.space.errors(self._plant.q, self.task.goal),
            self._seconds,
            self._plans,
        )

    def __repr__(self) -> str:
        return f"Executor({self.state})"

    @property
    def _of_plan(self) -> str:
        return f", plan {self._plans + 1}" if self._plans else ""

    @property
    def _seconds(self) -> float:
        return self._plant.steps * self._plant.timestep

    # ---------------------------------------------------------------- the run

    def run(self) -> ExecutorReport:
        """Execute to the end, whatever that is; the robot is left with a command that holds it.

        The robot waits with the command that acts, while this looks for grasps and plans. An interrupt from the
        keyboard leaves it so too.

        Returns:
            What became of it.
        """
        outcome, reason = "missed", ""
        commands = self._commands()
        try:
            while True:
                try:
                    u = next(commands)
                except StopIteration as end:
                    outcome, reason = end.value
                    break
                self._u = self._plant.within(u)
                try:
                    self._plant.advance(u)
                except SolverError as error:
                    raise PlantError(f"the simulation's step has no solution: {error}") from error
                if self._plant.lost:
                    outcome, reason = "lost", "the object is far from everywhere it was to be"
                    break
                if self._seconds >= self.options.seconds:
                    outcome = "out of time"
                    reason = f"{self.options.seconds:g} s of the plant are over"
                    break
        except PlantError as error:
            outcome, reason = "no answer", str(error)
        finally:
            reason += self._stay()
        self._close_record(outcome)
        self._enter("stopped")
        return self._told(outcome, reason)

    def _begin(self, start: Array) -> None:
        """Everything is where a simulator is put, or a robot is."""
        execution, task = self._execution, self.task
        here = self._plant.q
        if not isinstance(self._plant, RobotPlant):
            here = execution.measured(start)
            self._plant.reset(here)
        execution.last_q = here
        self._u = self._plant.within(task.hold(here))
        ends = [q for segment in self._todo for q in (segment.start, segment.end)]
        self._plant.watch(np.array([task.start, task.goal, here, *ends]))
        self._free = not self._controllers.touches()
        load = generalised_load(task.model, here, False)[task.space.v]
        self._heavy = bool(np.any(np.abs(load) > 1e-9))

    def _stay(self) -> str:
        """Have the robot stay where it is; what went wrong with that, in words."""
        if not isinstance(self._plant, RobotPlant):
            return ""
        try:
            self._plant.tell(self._u)
        except PlantError as error:
            return f"; it could not be told to stay: {error}"
        finally:
            self._plant.close()
        return "; it holds the last command"

    def _commands(self) -> Commands[tuple[str, str]]:
        """The command of one time step after the other; how it ended and why."""
        while True:
            if self._far() <= 1.0:
                if (yield from self._hold()):
                    return "reached", f"held for {self._held:.2f} s"
                continue
            edge = yield from self._next()
            if edge is None:
                yield from self._settle()
                missed = ", ".join(f"{route} ({n})" for route, n in self._missed.items())
                return (
                    self._want or "missed",
                    f"nothing is left to try; what brought it no nearer: {missed}",
                )
            self._rest = None
            yield from self._stroke(edge) if edge.is_stroke else self._run(edge)

    def _hold(self) -> Commands[bool]:
        """The fingers hold the object where their stroke was to end, else the command that acts stays; whether the
        object did."""
        self._entries += 1
        self._held, inside, count = 0.0, 0, max(1, round(LOOK / self._plant.timestep))
        self._edge, self._track = None, None
        self._enter("hold")
        pose, hand = self._rest, self._hand()
        if pose is None and not self._heavy:
            # what stays by itself need not be pressed, and moves on where it is
            u = self._plant.within(np.asarray(self.task.model.command_from(self._plant.q)))
            yield from ramp(self._u, u, count)
        while self._held < self.options.hold or inside < PERIODS:
            if pose is not None and hand is not None:
                yield from hand.hold(pose, count * self._plant.timestep)
            else:
                for _ in range(count):
                    yield self._u
            if self._far() > 1.0:
                return False
            inside += 1
            self._held += count * self._plant.timestep
        return True

    def _settle(self) -> Commands[None]:
        """The command that acts stays until it has shown what becomes of the object."""
        for _ in range(round(self._execution.options.settle / self._plant.timestep)):
            yield self._u

    # ---------------------------------------------------------------- an edge

    def _run(self, edge: _Edge) -> Commands[None]:
        """Bring the robot to where an edge begins, and try controllers on it."""
        self._edge, self._track, offset = edge, None, None
        if edge.segment is not None:
            start = yield from self._approach(edge.segment)
            if start is None:
                return
            model = self.task.model
            offset = np.asarray(model.command_from(start) - model.command_from(edge.segment.start))
        track = self._track_of(edge.segment, offset)
        failed: set[str] = set()
        while (chosen := self._choice(track, failed)) is not None:
            ended = yield from self._try(track, chosen)
            if ended in DONE or ended.startswith("off"):
                break
            failed.add(chosen.name)
        if not failed and chosen is None:
            self._reports("-", math.nan, "no controller can do anything here")

    def _choice(self, track: Track, failed: set[str]) -> Choice | None:
        """The controller to try next; None where none is worth it."""
        q, v = self._plant.q, self._plant.v
        if track.schedule is not None and not (failed and track.ended):
            return self._controllers.choose(track, q, v, self._u, failed, MARGIN)
        worth = track.far(q, track.end) - WORTH
        chosen = self._controllers.choose(track, q, v, self._u, failed, worth)
        return None if chosen is None or chosen.predicted > worth else chosen

    def _try(self, track: Track, chosen: Choice) -> Commands[str]:
        """Let a controller take the object along an edge; how that ended."""
        self._track, self._by = track, chosen.name
        self._arrival.reset()
        self._free, self._want = False, ""
        self._enter("move")
        record, self._since = Record(self._plant), self._seconds
        self._open = track, record, chosen.predicted
        stall = self.options.stall
        steering, arrival = chosen.steering, self._arrival
        ended = yield from pursue(self._plant, track, steering, record, arrival, self._u, stall)
        self._close_record(ended)
        return ended

    def _stroke(self, edge: _Edge) -> Commands[None]:
        """Close the grasp that was gone to, and take the object along the stroke that it has."""
        hand, strokes = self._controllers.hand, self._strokes
        assert hand is not None and strokes is not None
        self._edge, self._track = edge, None
        self._enter("close", "grip")
        self._since, hand.u = self._seconds, self._u
        closed = yield from hand.close()
        self._free = False
        stroke = strokes.best(hand.apart(self._plant.q, strokes.task.options)) if closed else None
        if stroke is None or stroke.segment.steps == 0:
            self._reports("grip", math.nan, "the fingers do not come to hold the object")
            return
        track = self._track = self._track_of(stroke.segment, None)
        schedule = track.schedule
        assert schedule is not None
        self._want, self._rest = "", stroke.segment.end
        self._enter("move", "grip")
        record, self._since = Record(self._plant), self._seconds
        self._open = track, record, track.far(stroke.segment.end, self.task.goal)
        ended: str = yield from hand.follow(schedule, record, STEADY, give_up=True)
        track.phase = min(record.samples[-1].time, track.duration)
        self._close_record("arrived" if self._far() <= ARRIVED else ended)

    def _track_of(self, segment: Segment | None, offset: Array | None) -> Track:
        pace, schedule = self._execution.options, None
        if segment is not None:
            model = self.task.model
            schedule = Schedule(model, segment, pace.speed, pace.timestep, offset)
        return Track(self.task.space, self._tolerances, schedule, self.task.goal)

    def _approach(self, segment: Segment) -> Commands[Array | None]:
        """Let go of the object and go to a segment's grasp; that, None where there is no way."""
        if np.abs(self.task.model.difference(self._plant.q, segment.start)).max() < THERE:
            return segment.start
        yield from self._let_go()
        self._enter("approach")
        self._since = self._seconds
        found, why = None, ""
        try:
            found = yield from self._execution.go(segment, self._hand())
        except ImportError as error:
            why = str(error)
        if found is None and not self._plant.lost:
            self._todo.clear()
            self._no_motion(why)
        return found

    def _approach_any(self, strokes: list[Stroke]) -> Commands[Stroke | None]:
        """Go to the first of some strokes' grasps that there is a way to, of an object that is free; that stroke."""
        hand, why = self._hand(), ""
        assert hand is not None
        for stroke in strokes:
            self._edge = _Edge("stroke", stroke.segment, is_stroke=True)
            self._enter("approach")
            self._since = self._seconds
            try:
                if (yield from hand.go(stroke.segment.start, self._execution.rng)):
                    return stroke
            except ImportError as error:
                why = str(error)
        if strokes and not self._plant.lost:
            self._no_motion(why)
        return None

    def _no_motion(self, why: str) -> None:
        self._want = "no motion found"
        self._reports("-", math.nan, f"no motion found{': ' * bool(why)}{why}")

    def _let_go(self) -> Commands[None]:
        """Set the object down and let go of it, where it may be held."""
        execution = self._execution
        execution.last_q, execution.last_u = execution.measured(), self._u
        if self._free:
            self._hand()
            return
        self._enter("set down" if self._controllers.hand else "let go")
        yield from execution.let_go(self._hand())
        self._free = True

    def _hand(self) -> Hand | None:
        """The hand, told the command that acts."""
        hand = self._controllers.hand
        if hand is not None:
            hand.u = self._u
        return hand

    # ---------------------------------------------------------------- what is next

    def _next(self) -> Commands[_Edge | None]:
        """What the object does next; None where nothing is left to try."""
        self._edge, self._track = None, None
        self._enter("next")
        if self._route in PLANS:
            if self._todo and self._far(self._todo[0].start) <= LEAVE:
                return self._segment()
            self._todo.clear()
        self._judge()
        for route, find in self._routes():
            allowed = self.options.misses * (GRASPS if route == "strokes" else 1)
            if self._missed.get(route, 0) >= allowed:
                continue
            edge = yield from find()
            if self._plant.lost:
                return None
            self._route, self._before = route, self._far()
            if edge is not None:
                return edge
            self._missed[route] = self._missed.get(route, 0) + 1
        return None

    def _routes(self) -> list[tuple[str, Callable[[], Commands[_Edge | None]]]]:
        """Ways on, in the order in which they are tried."""
        return [
            ("strokes", self._stroked),
            ("plan", self._planned),
            ("straight", self._straight),
            ("new plan", self._replanned),
        ]

    def _judge(self) -> None:
        """Whether the way on that has been taken last has brought the object nearer."""
        if not self._route:
            return
        if self._before - self._far() < (NEARER if self._route == "strokes" else GAINED):
            self._missed[self._route] = self._missed.get(self._route, 0) + 1
        else:
            self._missed.clear()
        self._route = ""

    def _segment(self) -> _Edge:
        """The next segment of the plan."""
        segment = self._todo.pop(0)
        words = f"segment {self._count - len(self._todo)} of {self._count}{self._of_plan}"
        return _Edge(words, segment)

    def _planned(self) -> Commands[_Edge | None]:
        """The last segment of the plan that begins where the object is, and those after it."""
        yield from ()
        near = [k for k, s in enumerate(self._todo) if self._far(s.start) <= LEAVE]
        self._todo = self._todo[near[-1] :] if near else []
        return self._segment() if near else None

    def _straight(self) -> Commands[_Edge | None]:
        """To the goal without a plan, where that is predicted to gain something."""
        yield from ()
        track = self._track_of(None, None)
        return None if self._choice(track, set()) is None else _Edge("straight to the goal")

    def _stroked(self) -> Commands[_Edge | None]:
        """The stroke that gains most, of those whose grasps are drawn where the object rests."""
        strokes = self._strokes
        if strokes is None:
            return None
        if self._edges:
            yield from self._let_go()
        q = np.array(self.task.model.normalize(self._plant.q))
        found: list[Stroke] = []
        for _ in range(DRAWS):
            if not found:
                found = [s for s in strokes.candidates(q, here=not self._edges) if s.gain > GAIN]
        self._want = "" if found else "no stroke found"
        return self._edge if (yield from self._approach_any(found)) else None

    def _replanned(self) -> Commands[_Edge | None]:
        """The first segment of a new plan, from where the object rests."""
        if self._plans >= self.options.plans:
            return None
        yield from self._let_go()
        self._plans += 1
        tolerances = WITHIN * self._tolerances
        near = self.task.replace(
            position_tolerance=tolerances[0],
            rotation_tolerance=tolerances[1],
            start_tolerance=np.inf,
        )
        q, seed = self._execution.measured(), self.options.seed + self._plans
        segments, _ = new_plan(near, q, self._planner, seed)
        if not segments:
            self._want = "no plan found"
            return None
        self._controllers.follow(plan_for(self.task, segments, self.task.options, np.inf))
        self._todo, self._count = segments, len(segments)
        return self._segment()

    def _stroke_planner(self) -> StrokePlanner | None:
        """Of strokes, where there is a hand and a sampler of grasps."""
        if self._controllers.hand is None or self.task.sampler is None:
            return None
        grip = GripOptions(period=self._execution.options.control_period)
        return StrokePlanner(self.task, GaitOptions(grip=grip), self.options.seed)

    # ---------------------------------------------------------------- what is kept

    def _far(self, goal: Array | None = None) -> float:
        """Tolerances, of the object from the goal, or from where it is in another configuration."""
        target = self.task.goal if goal is None else goal
        return tolerances_off(self.task.space, self._tolerances, self._plant.q, target)

    def _enter(self, doing: str, by: str = "") -> None:
        """Another state."""
        self._doing, self._by = doing, by or self._by * (doing == "move")
        if self._watch is not None:
            self._watch(self.state)

    def _close_record(self, ended: str) -> None:
        """What became of the try that is open, if any."""
        if self._open is None:
            return
        track, record, predicted = self._open
        self._open = None
        schedule, samples = track.schedule, record.samples
        if not samples:
            record.take(0.0, track.pose(track.phase), self._u)
        here = samples[-1].executed
        segment = schedule.segment if schedule else _straight_segment(here, self._u, self.task.goal)
        outcome: Outcome = "followed" if ended in ("arrived", "followed") else "given up"
        outcome = "lost" if ended == "lost" else outcome
        self._segments.append(self._execution.measure(segment, record, math.inf, outcome))
        self._reports(self._by, predicted, ended, track)

    def _reports(self, by: str, predicted: float, ended: str, track: Track | None = None) -> None:
        """A line of the report."""
        end = self.task.goal if track is None else track.end
        passed = (0, 0) if track is None else (track.passed, track.waypoints)
        errors = self.task.space.errors(self._plant.q, end)
        words = self._edge.words if self._edge else ""
        seconds = self._seconds - self._since
        self._edges.append(EdgeReport(words, by, predicted, seconds, passed, errors, ended))

    def _told(self, outcome: str, reason: str) -> ExecutorReport:
        shift, turn = self.task.space.errors(self._plant.q, self.task.goal)
        return ExecutorReport(
            outcome,
            reason,
            tuple(self._edges),
            shift,
            turn,
            (self.task.position_tolerance, self.task.rotation_tolerance),
            self._seconds,
            self._held,
            self._entries,
            self._plans,
            self._controllers.why,
            tuple(self._segments),
        )


def _towards(task: Task, plan: Plan | None) -> Task:
    """The task with the plan's goal and its tolerances."""
    if plan is None:
        return task
    if plan.object != task.object or plan.goal.shape != task.goal.shape:
        raise ValueError(
            f"plan: it moves {plan.object!r}, of {len(plan.goal)} coordinates, the task {task.object!r}"
        )
    return task.towards(
        plan.goal,
        position_tolerance=plan.position_tolerance,
        rotation_tolerance=plan.rotation_tolerance,
    )


def _waiting(task: Task) -> Plan:
    """A plan in which nothing happens."""
    segment = Segment(
        np.empty((0, task.model.nu)), np.array(task.start)[None], np.zeros(0, np.int64)
    )
    return plan_for(task, [segment], task.options, np.inf)


def _straight_segment(here: Array, u: Array, goal: Array) -> Segment:
    """A way without a plan, as segments have it."""
    return Segment(u[None], np.array([here, goal]), np.array([1]))
