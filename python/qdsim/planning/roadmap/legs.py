"""Legs: motions of the object to a pose nearby, by the commands of an edge or by a search."""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.batches.rollouts import checked_rollout
from qdsim.planning.execution.strokes import FORESEEN
from qdsim.planning.grasps.grip import LANDING
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers.kept import with_kept
from qdsim.planning.plans.segment import Segment
from qdsim.planning.roadmap.poses import away
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.roadmap.turns import by_turns, periods_to_leave, turn
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.bounds import beyond_limits
from qdsim.planning.task.drives import robot_q
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.robot import CONTACT_TOLERANCE, SETTLING_STEPS, penetration
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import LEFT
from qdsim.step import step

__all__ = ["Leg", "Legs", "Recorded", "joined", "still"]


class Leg(NamedTuple):
    """A motion of the object in segments; the first one begins at the leg's start."""

    segments: tuple[Segment, ...]

    @property
    def end(self) -> Array:
        """The last configuration ``(nq,)``."""
        return self.segments[-1].end


def joined(legs: list[Leg]) -> tuple[Segment, ...]:
    """Return the segments of consecutive legs; two segments with the same grasp become one."""
    segments: list[Segment] = []
    for leg in legs:
        for segment in leg.segments:
            if segments and np.array_equal(segments[-1].end, segment.start):
                last = segments[-1]
                segments[-1] = Segment(
                    np.concatenate((last.inputs, segment.inputs)),
                    np.concatenate((last.configurations, segment.configurations[1:])),
                    np.concatenate((last.knots, segment.knots + last.steps)),
                )
            else:
                segments.append(segment)
    return tuple(segments)


class Recorded:
    """The model, moved step by step by a turn, with a record.

    Args:
        task: The task; its model and options are used.
        q: Start ``(nq,)``.
    """

    def __init__(self, task: Task, q: Array) -> None:
        self.task = task
        self._inputs: list[Array] = []
        self._configurations = [np.array(q)]

    @property
    def q(self) -> Array:
        """The configuration ``(nq,)``."""
        return self._configurations[-1]

    @property
    def coasts(self) -> bool:
        """Whether the object has inertia, so that it moves on after a command."""
        return False

    def move(self, u: Array) -> None:
        """Move for one control period; the command at its end is ``u`` ``(nu,)``."""
        self._configurations.append(self._after(u))
        self._inputs.append(u)

    def _after(self, u: Array) -> Array:
        return np.asarray(step(self.task.model, self.q, u, self.task.options).q_next)

    def leg(self, nearest: bool = False) -> Leg:
        """Return the whole record as a leg, or the part up to where the object was nearest to the task's goal."""
        count = len(self._inputs)
        if nearest:
            count = int(np.argmin([self.task.off(q) for q in self._configurations]))
        if count == 0:
            return still(self._configurations[0], self.task.model.nu)
        knots = np.array([count], dtype=np.int64)
        inputs, configurations = self._inputs[:count], self._configurations[: count + 1]
        return Leg((Segment(np.array(inputs), np.array(configurations), knots),))


class Legs:
    """Makes legs of a task.

    Args:
        task: The task; its model, tolerances and sampler are used, its goal is not.
        options: Options of the roadmap.
        grasps: Grasps ``(n, nq)`` that searches try first.

    Attributes:
        within: Share of the tolerances within which a last leg ends.
    """

    def __init__(self, task: Task, options: RoadmapOptions, grasps: Array | None = None) -> None:
        self.task, self.options = task, options
        self._searched = task if grasps is None else with_kept(task, grasps)
        own = options.search or (task.planner or RRTOptions()).replace(
            max_nodes=200, max_steps=4000
        )
        self.search, self.within = own, 1.0
        self.turns = by_turns(task)
        self._robot = robot_q(task.model)

    def for_execution(self) -> Legs:
        """Return legs for plans that are executed.

        Their grasps can be reached by a motion, and a last leg leaves room in the tolerances for errors of the
        execution.
        """
        legs = copy.copy(self)
        legs.search = self.search.replace(motion_seconds=FORESEEN.time_limit)
        legs.within = 1.0 if self.turns else LEFT
        return legs

    @property
    def lost(self) -> bool:
        """Whether the object has been lost."""
        return False

    def place(self, q: Array) -> None:
        """Reset to ``q`` (nq), at rest; the model has no state to reset."""

    def connect(
        self,
        q: Array,
        pose: Array,
        seed: int,
        region: GoalRegion | None = None,
        leave: bool = True,
    ) -> Leg | None:
        """Make a leg that ends within the task's tolerances of a pose, by a search or a turn; None if
        there is none.

        Args:
            q: Configuration ``(nq,)`` of object and robot.
            pose: Configuration ``(nq,)``; only the object's entries matter.
            seed: Seed of the search.
            region: Other poses around ``pose`` that count.
            leave: Whether another leg follows: turns then end with the robot away from the object.
        """
        if self.turns:
            return self._turned(q, self.task.towards(pose, goal_region=region), leave)
        own = self._searched
        within = 1.0 if leave else self.within
        task = own.towards(
            pose,
            start=q,
            start_tolerance=np.inf,
            goal_region=region,
            position_tolerance=within * own.position_tolerance,
            rotation_tolerance=within * own.rotation_tolerance,
        )
        tree = rrt(task, self.search, seed)
        if not tree.reached:
            return None
        bare = (
            dataclasses.replace(segment, contacts=None, contact_start=None)
            for segment in tree.plan().segments
        )
        return Leg(tuple(bare))

    def _turned(self, q: Array, task: Task, leave: bool) -> Leg | None:
        """Make a leg of the model to a task's goal by a turn in the hand."""
        world = Recorded(task, q)
        try:
            for u in turn(task, world, leave):
                world.move(u)
        except SolverError:
            return None
        leg = world.leg(nearest=not leave)
        valid = not beyond_limits(task.model, leg.segments[0].configurations).any()
        return leg if valid and task.reached(leg.end) else None

    def follow(self, q: Array, edge: Leg, pose: Array, seed: int) -> Leg | None:
        """Make a leg along an edge by its commands, completed by a search if these end too far from the
        pose."""
        again = self._again(q, edge)
        if again is None:
            return self.connect(q, pose, seed)
        if away(self.task, again.end, pose) <= self.options.radius:
            return again
        if away(self.task, again.end, pose) < away(self.task, q, pose):
            more = self.connect(again.end, pose, seed)
            if more is not None:
                return Leg(joined([again, more]))
        return self.connect(q, pose, seed)

    def _again(self, q: Array, edge: Leg) -> Leg | None:
        """Repeat the commands of an edge from ``q`` with the edge's grasps; None if this is not possible."""
        legs = [still(q, self.task.model.nu)]
        for segment in edge.segments:
            if segment.steps == 0:
                continue
            here = legs[-1].end
            if not self.turns and not np.array_equal(here[self._robot], segment.start[self._robot]):
                settled = self._settled(here)
                if settled is None:
                    return None
                legs += [settled]
                grasp = self._grasp(settled.end, segment.start)
                if grasp is None:
                    return None
                here = grasp
            run = self._run(here, segment.inputs)
            if run is None:
                return None
            legs.append(run)
        return Leg(joined(legs))

    def _grasp(self, q: Array, grasp: Array) -> Array | None:
        """Return ``q`` with the robot in a grasp that was found for another pose, or None.

        If the robot penetrates the object, steps with a fixed object move it out: the robot's springs pull it to the
        grasp, and contacts keep it out of the object.
        """
        task = self.task
        here = np.array(q)
        here[self._robot] = grasp[self._robot]
        command = task.hold(here)
        held = task.options.replace(held=tuple(task.space.joints), recovery_speed=LANDING)
        for _ in range(periods_to_leave(task)):
            if penetration(task.model, here) <= CONTACT_TOLERANCE:
                return None if beyond_limits(task.model, here).any() else here
            try:
                here[self._robot] = step(task.model, here, command, held).q_next[self._robot]
            except SolverError:
                return None
        return None

    def _settled(self, q: Array) -> Leg | None:
        """Make steps until nothing penetrates; return them if the object then rests and may be released, else None."""
        task, hold = self.task, self.task.hold(q)
        leg = still(q, task.model.nu)
        for _ in range(SETTLING_STEPS):
            if penetration(task.model, leg.end) <= CONTACT_TOLERANCE:
                rests = is_stable(task.model, leg.end, task.object, task.options)
                return leg if rests else None
            more = self._run(leg.end, hold[None])
            if more is None:
                return None
            leg = Leg(joined([leg, more]))
        return None

    def _run(self, q: Array, inputs: Array) -> Leg | None:
        """Make steps with these commands; None if one fails or takes a joint beyond its limits."""
        model, start = self.task.model, np.array(q)[None]
        paths, _, done = checked_rollout(
            model, start, None, inputs[None], self.task.options, None, threads=1
        )
        configurations = paths[0]
        if done[0] < len(inputs) or beyond_limits(model, configurations).any():
            return None
        return Leg((Segment(inputs, configurations, np.array([len(inputs)], dtype=np.int64)),))


def still(q: Array, nu: int) -> Leg:
    """Return a leg without steps."""
    none = np.empty((0, nu))
    return Leg((Segment(none, np.array(q)[None], np.empty(0, dtype=np.int64)),))
