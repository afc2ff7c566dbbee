"""Brings an object to a goal on any plant: a state machine over controllers, grasps and plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import instance
from qdsim.array_type import SAME, Array
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.execution.controllers import Choice, Controllers
from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.executor_report import EdgeReport, ExecutorReport, ExecutorState
from qdsim.planning.execution.foresight import Foresight
from qdsim.planning.execution.goal_hold import GoalHold
from qdsim.planning.execution.loops.hand import LEAVING, Hand
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record, ramp
from qdsim.planning.execution.loops.pursuit import pursue
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.execution.robot_interface import Robot, RobotPlant
from qdsim.planning.execution.routes import Edge, Planner, Routes
from qdsim.planning.execution.simulators import (
    Word,
    contacts_of,
    in_mujoco,
    simulator_of,
    stepped,
    world_in_words,
)
from qdsim.planning.execution.strokes import GaitOptions, Stroke
from qdsim.planning.execution.world import PlantError
from qdsim.planning.grasps.equilibrium import generalised_load
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers.holding import with_holding
from qdsim.planning.motion.clearance import can_leave
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.robot import lies_on_a_plane
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.arrival import LEFT, PERIODS, Arrival
from qdsim.planning.tracking.predictors import MujocoModel, Predictor

if TYPE_CHECKING:
    import mujoco

__all__ = ["Executor"]

DONE = ("arrived", "followed", "lost")


class Executor:
    """Brings an object to a task's goal in a simulator or on a robot, with or without a plan, and
    holds it there.

    The executor moves the object edge by edge. An edge is a stroke (a motion in one grasp; needs a
    robot with fingers that can hold the object, and a task with a sampler of grasps), a segment of
    a plan, or the straight way to the goal. For each edge the robot approaches the grasp, closes,
    and moves the object; then it sets the object down, releases it, and chooses the next edge from
    the measured state. On an edge, the controllers are tried in the order of their predicted
    errors; progress is counted in waypoints of the object, not in time. If an edge fails, the
    executor searches for strokes or a new plan from the current state. Within the tolerances the
    object is held, and brought back when it drifts; if it leaves them, it is moved again. In MuJoCo,
    strokes are rolled out in a simulation of their own, and only those that gain there are executed.

    Args:
        task: The task.
        plan: A plan for the task; None: plans are made during the execution.
        plant: ``"mujoco"``, with the model of :func:`second_order`; a MuJoCo model with the same
            layout; ``"qdsim"``: the package's own second-order step, or `DynamicOptions` of it; or
            a :class:`Robot`. Simulators begin at rest at the start of the plan, or of the task; a
            robot begins in its measured state.
        world: Speed and contacts of the execution. For a robot, the time step is its period.
        options: Which controllers are tried, and when to give up.
        planner: Settings of new plans, or of strokes (`GaitOptions`); None: those of the task. A
            function ``planner(q, seed=seed) -> Plan`` makes the new plans itself, from a measured
            configuration ``(nq,)``, for example :meth:`Roadmap.planner`; if it raises a
            RuntimeError or ValueError, there is no plan.
        model: Predicts samples, and what iMPC straight to the goal does. None: in MuJoCo, for objects
            that rotate freely under gravity and for contacts that are not stiff, the model of
            :func:`second_order`; else the quasi-dynamic step.
        watch: Called with the state (:class:`ExecutorState`) whenever it changes.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names it.
        PlantError: A robot does not answer the first reading.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan | None = None,
        plant: mujoco.MjModel | Word | DynamicOptions | Robot = "mujoco",
        *,
        world: TransferOptions | None = None,
        options: ExecutorOptions | None = None,
        planner: RRTOptions | GaitOptions | Planner | None = None,
        model: Predictor | None = None,
        watch: Callable[[ExecutorState], object] | None = None,
    ) -> None:
        instance("task", task, Task)
        instance("plan", plan, Plan, or_none=True)
        given = instance("world", world, TransferOptions, or_none=True) or TransferOptions()
        self.options = (
            instance("options", options, ExecutorOptions, or_none=True) or ExecutorOptions()
        )
        if not isinstance(planner, GaitOptions) and not callable(planner):
            instance("planner", planner, RRTOptions, or_none=True)
        if watch is not None and not callable(watch):
            raise TypeError(f"watch: expected a function, got {type(watch).__name__}")
        self._watch = watch
        self.task = task = _towards(task, plan)
        pace = stepped(given, plant).replace(carry_on=True, motions=True)
        simulator = simulator_of(task.model, task.object, pace, plant, "plant")
        known = _waiting(task) if plan is None else plan
        self._execution, self._pace = Execution(known, task.model, simulator, pace), pace
        self._plant = self._execution.plant
        self.world = world_in_words(pace, plant)
        slides = lies_on_a_plane(task.model, task.space)  # and stops at once where it is let go
        mj: mujoco.MjModel | None = None
        if in_mujoco(plant):  # a given plant may have other masses than the model, which predicts
            named = isinstance(plant, str)
            mj = simulator if named else second_order(task.model, task.object, pace)
        if model is None and mj is not None and not (slides and pace.contacts == "stiff"):
            model = MujocoModel(mj)
        gaits = planner if isinstance(planner, GaitOptions) else GaitOptions()
        grip = gaits.grip.asked_every(pace.timestep)
        predicts = {"options": contacts_of(pace, plant, task.options)}
        self._controllers = Controllers(
            self._plant, task.replace(**predicts), known, self.options, pace, grip, model
        )
        self._execution.hand = self._controllers.hand
        if planner is None or isinstance(planner, GaitOptions):
            planner = task.planner or RRTOptions()
        gaits = gaits.replace(grip=grip)
        if self._controllers.hand is not None:
            held = self._controllers.hand.grip
            rng = np.random.default_rng(self.options.seed)
            task = self.task = with_holding(task, held, rng, self._leaves)
        self._routes = Routes(
            task, plan, self._execution, self._controllers, self.options, planner, gaits
        )
        self._routes.foresight = self._foreseeing(mj)
        self._arrival = Arrival(task, LEFT, 1.0)
        self._doing, self._by = "next", ""
        self._rest: Array | None = None
        self._edge: Edge | None = None
        self._track: Track | None = None
        self._open: tuple[Track, Record, float] | None = None
        self._edges: list[EdgeReport] = []
        self._segments: list[SegmentTransfer] = []
        self._entries, self._held, self._since = 0, 0.0, 0.0
        self._begin(known.segments[0])

    def _leaves(self, model: Model, q: Array) -> bool:
        """Return whether the fingers can leave the object from a grasp ``(nq,)``."""
        return can_leave(model, q, self.task.object, LEAVING.clearance)

    def _foreseeing(self, mj: mujoco.MjModel | None) -> Foresight | None:
        """Return what rolls strokes out, if there are strokes and the world is MuJoCo."""
        strokes, hand, task = self._routes.strokes, self._controllers.hand, self.task
        if strokes is None or hand is None or mj is None:
            return None
        world, pace = self._plant, self._pace
        own = Plant(task.model, task.space, mj, pace, world.compensated, task.command_bounds)
        strokes.foreseen = True
        return Foresight(strokes, own, Hand(own, hand.grip, pace), pace.speed, self.options.hold)

    # ---------------------------------------------------------------- state

    @property
    def state(self) -> ExecutorState:
        """The present state; prints as one line."""
        track = self._track
        passed, count = (0, 0) if track is None else (track.passed, track.waypoints)
        return ExecutorState(
            self._doing,
            self._edge.words if self._edge else "",
            self._by if self._edge else "",
            passed,
            count,
            self.task.errors(self._plant.q),
            self._seconds,
            self._routes.plans,
        )

    def __repr__(self) -> str:
        return f"Executor({self.state})"

    @property
    def _seconds(self) -> float:
        return self._plant.steps * self._plant.timestep

    # ---------------------------------------------------------------- the run

    def run(self) -> ExecutorReport:
        """Execute until the end; the robot is left with a command that holds it.

        While the executor searches for grasps and plans, the robot keeps its last command. The same
        holds after an interrupt from the keyboard.

        Returns:
            The report of the execution.
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
                try:
                    self._execution.advance(u)
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

    def _begin(self, first: Segment) -> None:
        """Bring a simulator to the start, or read where a robot is."""
        execution, task = self._execution, self.task
        here = self._plant.q
        if not isinstance(self._plant, RobotPlant):
            here = execution.measured(execution.start(first))
            self._plant.reset(here)
        execution.last_q, execution.u = here, self._plant.within(task.hold(here))
        ends = [q for segment in self._routes.todo for q in (segment.start, segment.end)]
        self._plant.watch(np.array([task.start, task.goals.nearest(here), here, *ends]))
        execution.free = not self._controllers.touches()
        load = generalised_load(task.model, here, False)[task.space.v]
        self._heavy = bool(np.any(np.abs(load) > 1e-9))

    def _stay(self) -> str:
        """Make the robot stay where it is; return what went wrong, in words."""
        if not isinstance(self._plant, RobotPlant):
            return ""
        try:
            self._plant.tell(self._execution.command)
        except PlantError as error:
            return f"; it could not be told to stay: {error}"
        finally:
            self._plant.close()
        return "; it holds the last command"

    def _commands(self) -> Commands[tuple[str, str]]:
        """Yield the command of one time step after the other; return the outcome and the reason."""
        yield from self._come_to_rest()
        while True:
            if self._routes.far() <= 1.0:
                if (yield from self._hold()):
                    return "reached", f"held for {self._held:.2f} s"
                continue
            self._edge, self._track = None, None
            self._enter("next")
            edge = yield from self._routes.next(self._let_go)
            if edge is None:
                yield from self._settle()
                return self._routes.want or "missed", self._nothing_left()
            self._edge, self._rest = edge, None
            yield from self._stroke(edge) if edge.strokes else self._run(edge)

    def _come_to_rest(self) -> Commands[None]:
        """Let an object that nothing carries come to rest, before edges are sought for a pose that it leaves at once.

        A plan that begins here knows where the object is: fingers may hold it that do not quite touch it as measured.
        """
        task, todo = self.task, self._routes.todo
        if not self._execution.free or (todo and self._is_at(todo[0].start)):
            return
        if not is_stable(task.model, self._plant.q, task.object, task.options):
            yield from self._settle()

    def _nothing_left(self) -> str:
        routes = self._routes
        missed = ", ".join(f"{route} ({n})" for route, n in routes.missed.items())
        return routes.never or f"nothing is left to try; what brought it no nearer: {missed}"

    def _hold(self) -> Commands[bool]:
        """Hold the object at the goal; return whether it stayed there.

        The fingers hold it if they hold the end of a stroke. Otherwise the present command is kept, and an
        object that drifts is brought back.
        """
        self._entries += 1
        self._held, inside = 0.0, 0
        count = max(1, round(self._pace.control_period / self._plant.timestep))
        self._edge, self._track = None, None
        self._enter("hold")
        pose, hand = self._rest, self._execution.told()
        fingers = 0 if hand is None else hand.grip.touching(self._plant.q)
        if not self._heavy:
            # an object that stays without the robot need not be pressed, and would move if it were
            pose = None
            u = self._plant.within(np.asarray(self.task.model.command_from(self._plant.q)))
            yield from ramp(self._execution.command, u, count)
        hold = GoalHold(
            self._plant, self._controllers, self._routes.track(None), self._pace.control_period
        )
        while self._held < self.options.hold or inside < PERIODS:
            if pose is not None and hand is not None:
                seconds = count * self._plant.timestep
                if not (yield from hand.hold(pose, seconds, fingers)):
                    self._rest = None
                    yield from self._let_go()
                    return False
            else:
                u = u_next = self._execution.command
                if self._heavy:
                    u_next, seconds = hold.command(u)
                    count = max(1, round(seconds / self._plant.timestep))
                yield from ramp(u, u_next, count)
            if self._routes.far() > 1.0:
                return False
            inside += 1
            self._held += count * self._plant.timestep
        return True

    def _settle(self) -> Commands[None]:
        """Keep the present command until the effects of the motion on the object are visible."""
        for _ in range(round(self._execution.options.settle / self._plant.timestep)):
            yield self._execution.command

    # ---------------------------------------------------------------- an edge

    def _run(self, edge: Edge) -> Commands[None]:
        """Bring the robot to the start of an edge, and try controllers on it."""
        start = None
        if edge.segment is not None:
            start = yield from self._approach(edge.segment)
            if start is None:
                return
        track = self._routes.track(edge.segment, start)
        if edge.segment is not None and self._routes.by_hand:
            yield from self._carry_on(edge.segment, track)
            return
        failed: set[str] = set()
        while (
            chosen := self._controllers.choose(track, self._execution.command, failed)
        ) is not None:
            ended = yield from self._try(track, chosen)
            # an object that fingers have lost is grasped anew, because another controller would find it rolling
            slipped = chosen.name == "grip" and self._routes.strokes is not None
            if ended in DONE or ended.startswith(("off", "ended")) or slipped:
                return
            failed.add(chosen.name)
        if not failed:
            self._reports("-", math.nan, "no controller can do anything here")

    def _try(self, track: Track, chosen: Choice) -> Commands[str]:
        """Move the object along an edge with a controller; return how that ended."""
        self._arrival.reset()
        record = self._move(track, chosen.name, chosen.predicted)
        waits = self.options.stall, self._execution.options.settle
        ended = yield from pursue(
            self._plant,
            track,
            chosen.steering,
            record,
            self._arrival,
            self._execution.command,
            *waits,
            may_tip=not self._controllers.trails,
        )
        self._close_record(ended)
        return ended

    def _move(self, track: Track, by: str, predicted: float) -> Record:
        """Begin to move the object along an edge; return the record of the measurements."""
        self._track, self._execution.free, self._routes.want = track, False, ""
        self._enter("move", by)
        record, self._since = Record(self._plant), self._seconds
        self._open = track, record, predicted
        return record

    def _stroke(self, edge: Edge) -> Commands[None]:
        """Go to the grasp of a stroke, close the fingers, and move the object along the stroke of the actual grasp."""
        hand = self._execution.told()
        assert hand is not None
        there = yield from self._go_to_any(hand, edge.strokes)
        if there is None:
            return
        self._enter("close", "grip")
        self._since = self._seconds
        closed = yield from hand.close(there.segment.start, self._routes.carries)
        self._execution.free = False
        stroke = self._routes.stroke_here(there) if closed else None
        if stroke is None:
            why = "no stroke is found from the grasp that the fingers closed to"
            why = why if closed else "the fingers do not come to hold the object"
            self._not_begun(there.segment, "no grip", "grip", why)
            return
        self._rest = stroke.segment.end
        yield from self._carry(hand, self._routes.track(stroke.segment))

    def _carry_on(self, segment: Segment, track: Track) -> Commands[None]:
        """Move the object along a segment by the fingers that have closed, if they are not foreseen to lose it."""
        hand, foresight, plant = self._execution.told(), self._routes.foresight, self._plant
        assert hand is not None and foresight is not None and track.schedule is not None
        if foresight.keeps(track.schedule, plant.q, plant.v, self._execution.command):
            yield from self._carry(hand, track)
        else:
            self._not_begun(
                segment, "no grip", "grip", "the fingers are foreseen to lose the object"
            )

    def _carry(self, hand: Hand, track: Track) -> Commands[None]:
        """Move the object along an edge by the fingers that hold it."""
        schedule = track.schedule
        assert schedule is not None
        record = self._move(track, "grip", self.task.off(track.end))
        foreseen = self._routes.foresight.path if self._routes.foresight else ()
        ended: str = yield from hand.follow(schedule, record, SETTLE, True, foreseen)
        track.phase = min(hand.phase, track.duration)
        self._close_record("arrived" if self._routes.far() <= LEFT else ended)

    def _go_to_any(self, hand: Hand, strokes: tuple[Stroke, ...]) -> Commands[Stroke | None]:
        """Go to the first of some strokes' grasps that can be reached; return that stroke, or None."""
        why = ""
        self._enter("approach")
        self._since = self._seconds
        for stroke in strokes:
            try:
                if (yield from hand.go(stroke.segment.start, self._execution.rng)):
                    return stroke
            except ImportError as error:
                why = str(error)
        self._no_motion(strokes[0].segment, why)
        return None

    def _approach(self, segment: Segment) -> Commands[Array | None]:
        """Release the object and go to a segment's grasp; return its configuration, or None if no motion is found."""
        if self._is_at(segment.start):
            return segment.start
        yield from self._let_go()
        self._enter("approach")
        self._since = self._seconds
        found, why = None, ""
        try:
            found = yield from self._execution.go(segment)
        except ImportError as error:
            why = str(error)
        hand = self._execution.told()
        if found is None:
            self._routes.todo.clear()
            self._no_motion(segment, why)
        elif hand is not None:
            self._enter("close", "grip")
            yield from hand.close(found)
        return found

    def _is_at(self, q: Array) -> bool:
        """Return whether the plant is in a configuration ``(nq,)``."""
        return bool(np.abs(self.task.model.difference(self._plant.q, q)).max() < SAME)

    def _no_motion(self, segment: Segment, why: str) -> None:
        if not self._plant.lost:
            self._routes.want = "no motion found"
            self._execution.missing_motions += 1
            why = f"no motion found{': ' * bool(why)}{why}"
            self._not_begun(segment, "not begun", "-", why)

    def _not_begun(self, segment: Segment, outcome: Outcome, by: str, why: str) -> None:
        """Record a segment along which the object was not moved."""
        record = Record(self._plant)
        record.take(0.0, segment.start, self._execution.command)
        self._segments.append(self._execution.measure(segment, record, 0.0, outcome))
        self._reports(by, math.nan, why)

    def _let_go(self) -> Commands[None]:
        """Set the object down and release it, if the robot may hold it."""
        if not self._execution.free:
            self._enter("set down" if self._execution.hand else "let go")
        yield from self._execution.let_go()

    # ---------------------------------------------------------------- records

    def _enter(self, doing: str, by: str = "") -> None:
        """Enter another state and report it."""
        self._doing, self._by = doing, by or self._by * (doing == "move")
        self._execution.recorder.mark(doing)
        if self._watch is not None:
            self._watch(self.state)

    def _close_record(self, ended: str) -> None:
        """Report the result of the open attempt, if there is one."""
        if self._open is None:
            return
        track, record, predicted = self._open
        self._open = None
        schedule, samples = track.schedule, record.samples
        if not samples:
            record.take(0.0, track.pose(track.phase), self._execution.command)
        here = samples[-1].executed
        segment = (
            schedule.segment
            if schedule
            else _straight_segment(here, self._execution.command, track.end)
        )
        outcome: Outcome = "followed" if ended in ("arrived", "followed") else "given up"
        outcome = "lost" if ended == "lost" else outcome
        self._segments.append(self._execution.measure(segment, record, math.inf, outcome))
        self._reports(self._by, predicted, ended, track)

    def _reports(self, by: str, predicted: float, ended: str, track: Track | None = None) -> None:
        """Add a line to the report."""
        passed = (0, 0) if track is None else (track.passed, track.waypoints)
        q, task = self._plant.q, self.task
        along = track is not None and track.schedule is not None
        errors = task.goals.apart(q, track.end) if track and along else task.errors(q)
        words = self._edge.words if self._edge else ""
        seconds = self._seconds - self._since
        self._edges.append(EdgeReport(words, by, predicted, seconds, passed, errors, ended))

    def _told(self, outcome: str, reason: str) -> ExecutorReport:
        shift, turn = self.task.errors(self._plant.q)
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
            self._routes.plans,
            self._controllers.why,
            tuple(self._segments),
            self._execution.recorder.motion(),
        )


def _towards(task: Task, plan: Plan | None) -> Task:
    """Return the task with the plan's goal and its tolerances."""
    if plan is None:
        return task
    if plan.object != task.object or plan.goal.shape != task.goal.shape:
        raise ValueError(
            f"plan: it moves {plan.object!r}, of {len(plan.goal)} coordinates, the task {task.object!r}"
        )
    return task.towards(
        plan.goal,
        goal_region=plan.goal_region,
        position_tolerance=plan.position_tolerance,
        rotation_tolerance=plan.rotation_tolerance,
    )


def _waiting(task: Task) -> Plan:
    """Return a plan without steps."""
    segment = Segment(
        np.empty((0, task.model.nu)), np.array(task.start)[None], np.zeros(0, np.int64)
    )
    return plan_for(task, [segment], task.options, np.inf)


def _straight_segment(here: Array, u: Array, goal: Array) -> Segment:
    """Return the straight path to the goal as a segment, for its measurements."""
    return Segment(u[None], np.array([here, goal]), np.array([1]))
