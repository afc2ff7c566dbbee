"""Strokes: the fingers move a held object as far as their grasp allows, set it down, and grasp it
again.

Edges of an RRT push an object with any contacts. During a stroke, a :class:`~qdsim.planning.Grip` holds
the object from the first step to the last, so that in a simulation with velocities the fingers damp the
object all the time (CQDC §IX-B3 asks for such grasps and such feedback). A stroke is a
:class:`~qdsim.planning.Segment`: the grip in closed loop with the exact step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from qdsim.arguments import fields, generator_of, instance, integer
from qdsim.array_type import Array
from qdsim.planning.execution.loops.hand import LEAVING
from qdsim.planning.grasps.carried import Carried, grip_of_steps, unloaded
from qdsim.planning.grasps.grip import GripOptions
from qdsim.planning.grasps.resting import FALLS, is_stable, landing
from qdsim.planning.grasps.samplers.holding import without_holding
from qdsim.planning.grasps.samplers.touching import TRIES
from qdsim.planning.motion.motion import MotionError, connect
from qdsim.planning.plans.executable import LEAVE
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.settings import Settings
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["FORESEEN", "GaitOptions", "Stroke", "StrokePlanner", "gait"]

_PARTS = 4
"""Resolution, as parts of a stroke, of the search for the longest part after which the fingers can leave;
with one part, test_executor_rules.py fails."""

_STEPS = 24
"""Largest number of steps of a stroke, after which other grasps may do better."""

_SPARE = 2
"""Number of strokes to a goal in the air that suffice: drawing grasps that carry takes long, and some cannot be reached."""

_LIFTS, _LOOKS = 600, 96
"""Largest number of grasps of a task's own sampler that are drawn for a lift, if others do not lead to the goal; at most
a tenth of them is tried. And number of draws after which no more follow if none has held the object. Of a box between
two arms one grasp in 12 holds it, and one in 20 to 200 leads to a goal; 200 draws take 1 to 2 s."""

FORESEEN = LEAVING.replace(time_limit=0.3)
"""Settings for testing whether motions between grasps exist, with a shorter time limit than that of the execution."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GaitOptions(Settings):
    """Settings of a finger gait: how strokes are found, motions of the object in one grasp.

    Attributes:
        grip: How the object is held.
        candidates: Number of grasps that are tried for one stroke.
        steps: Largest number of steps of a stroke. None: 24, or any number to a goal in the air, because the object
            cannot be left on the way.
        strokes: Largest number of strokes of a plan or an execution.
    """

    grip: GripOptions = GripOptions()  # noqa: RUF009
    candidates: int = 12
    steps: int | None = None
    strokes: int = 25

    def __post_init__(self) -> None:
        instance("grip", self.grip, GripOptions)
        fields(self, integer, "candidates", "strokes", least=1)
        fields(self, integer, "steps", least=1, or_none=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Stroke:
    """A segment during which the fingers hold the object.

    Attributes:
        segment: The commands of the grip and the resulting configurations in the model.
        gain: Distance by which the object comes nearer to the goal, m; rotations are multiplied by
            the task's length. Where a stroke ends in the air, short of the goal, the object is set
            down again, and its pose after that counts.
        stays: Whether quasi-dynamic steps with the plant's creeping contacts promise that the fingers do not lose the
            object.
    """

    segment: Segment
    gain: float
    stays: bool = True


class StrokePlanner:
    """Finds strokes towards a task's goal: motions of the object in one grasp of fingers that hold it.

    Args:
        task: The task; its sampler draws the grasps. The ``epsilon`` that `paced` gives a task is not
            used, because the fingers move a held object, and with it the object would lag behind.
        options: How strokes are found.
        rng: Seed or generator.
        load: Function from a displacement ``(size,)`` of the object to the additional load, N and
            Nm, that the fingers have to bear during this motion, besides gravity and springs (for
            example friction of a support that is not part of the model); None: no load.
        plant: Options of steps that predict the plant; None: those of the task. If its contacts
            creep, a stroke to a goal in the air counts only if the fingers hold the object there,
            in these steps as well.
        hold: Time for which they have to hold it, s.

    Attributes:
        hangs: Whether the object does not stay at its goal without the robot.
        below: Where the object comes to rest if it falls from a goal in the air, ``(nq,)``; else None.
        slips: Number of strokes that reach a goal in the air, where the fingers do not hold the
            object because their contacts creep.
        foreseen: Whether a simulation of the world judges strokes before they begin. Those that creeping contacts are
            predicted to lose are then left to it, because quasi-dynamic steps lose grasps that hold in a simulation.

    Raises:
        ValueError: The task has no sampler.
    """

    def __init__(
        self,
        task: Task,
        options: GaitOptions | None = None,
        rng: int | np.random.Generator = 0,
        *,
        load: Callable[[Array], Array | None] = unloaded,
        plant: Options | None = None,
        hold: float = 0.0,
    ) -> None:
        instance("task", task, Task)
        instance("options", options, GaitOptions, or_none=True)
        if task.sampler is None:
            raise ValueError("task: strokes need a sampler of grasps")
        task = task.without_pace()
        self.task, self.options = task, options or GaitOptions()
        self.hangs = not is_stable(task.model, task.aim, task.object, task.options)
        self.grip = grip_of_steps(task, self.options.grip, self.hangs)
        self.below = None
        if self.hangs:
            self.below = landing(task.model, task.aim, task.object, task.options)
        self.foreseen = False
        self._own, self._looked, self._held = without_holding(task), 0, 0
        self._plant, self._hold, self.slips = plant or task.options, hold, 0
        self.rng, self._load = generator_of(rng), load

    def distance(self, q: Array, goal: Array | None = None) -> float:
        """Compute the distance of the object to a goal, m; rotations are multiplied by the task's length.

        Args:
            q: ``(nq,)`` configuration.
            goal: ``(nq,)``; None: the task's goal.
        """
        task = self.task
        way = task.goals.difference(q) if goal is None else task.space.difference(goal, q)
        return float(np.linalg.norm(way * task.space.scale(task.length)))

    def candidates(self, q: Array, here: bool = False) -> list[Stroke]:
        """Find strokes from grasps of the object at its pose in ``q``, the largest gain first.

        Args:
            q: ``(nq,)`` configuration.
            here: whether the present grasp is one of them.
        """
        task, found, there = self.task, list[Stroke](), 0
        lifts = self.draws_lifts and self.is_below(q)
        if lifts and (found := self._lifts(q)):
            return found
        for k in range(self.options.candidates):
            grasp = q if here and k == 0 else task.grasp(q, self.rng)
            stroke = None if grasp is None else self.best(grasp)
            if stroke is not None:
                found.append(stroke)
                there += self.hangs and stroke.stays and task.reached(stroke.segment.end)
            if there == _SPARE:
                break
        if lifts:
            found = [stroke for stroke in found if stroke.gain > 0.5 * task.position_tolerance]
        return sorted(found, key=lambda stroke: (not stroke.stays, -stroke.gain))

    @property
    def draws_lifts(self) -> bool:
        """Whether few grasps of the task's own sampler hold the object, so that many are drawn for a lift."""
        return self._own is not self.task

    def is_below(self, q: Array, within: float = LEAVE) -> bool:
        """Return whether the object rests below a goal in the air, so that nothing but a lift brings it much nearer.

        Args:
            q: ``(nq,)`` configuration.
            within: distance from where it would rest if it fell from the goal, in tolerances.
        """
        task, below = self.task, self.below
        return below is not None and bool(task.in_tolerances(task.goals.apart(q, below)) <= within)

    def _lifts(self, q: Array) -> list[Stroke]:
        """Find strokes to a goal in the air from many grasps that hold the object without its support.

        Most grasps of a task are for pushing. Whether one holds the object is seen at once.
        """
        task, found, still = self.task, list[Stroke](), np.zeros(self.task.space.size)
        tried = 0
        for _ in range(_LIFTS):
            enough = sum(one.stays for one in found) == _SPARE
            none = self._held == 0 and self._looked >= _LOOKS
            if enough or none or tried == _LIFTS // 10 or len(found) == self.options.candidates:
                break
            grasp = self._own.grasp(q, self.rng)
            self._looked += 1
            if grasp is None or not self.grip.holds(self.grip.command(grasp, still, lean=False)):
                continue
            self._held, tried = self._held + 1, tried + 1
            stroke = self._judged(grasp, self.stroke(grasp, LEAVING.clearance))
            if stroke is not None and task.reached(stroke.segment.end):
                found.append(stroke)
        return sorted(found, key=lambda stroke: not stroke.stays)

    def _judged(self, q: Array, stroke: Stroke) -> Stroke | None:
        """Return a stroke from a grasp ``(nq,)``, with whether creeping contacts hold the object; None if they do not, and
        nothing else judges it."""
        if not self.hangs or self._stays(q, stroke):
            return stroke
        self.slips += self.task.reached(stroke.segment.end)
        return dataclasses.replace(stroke, stays=False) if self.foreseen else None

    def best(self, q: Array) -> Stroke | None:
        """Return the best of a stroke that lifts the object, one that does not, and one to below a goal in the air;
        None without a grip.

        Args:
            q: ``(nq,)`` configuration.
        """
        first = self.grip.command(q, np.zeros(self.task.space.size))
        if not self.grip.holds(first):
            return None
        if self.draws_lifts and self.is_below(q):
            lift = self.stroke(q, LEAVING.clearance)
            if self.task.reached(lift.segment.end):
                return self._judged(q, lift)
        made = [self.stroke(q, 0.0), self.stroke(q, LEAVING.clearance)]
        if self.below is not None:
            made.append(self.stroke(q, 0.0, self.below))
        return self._judged(q, max(made, key=lambda stroke: stroke.gain))

    def stroke(self, q: Array, lift: float, aim: Array | None = None) -> Stroke:
        """Compute the stroke towards the goal from a grasp, as far as the model holds the object.

        Args:
            q: ``(nq,)`` the grasp.
            lift: height above the goal at which the object travels, m; without it the object slides
                on its support.
            aim: ``(nq,)`` configuration with the object where the stroke goes; None: to the goal.
        """
        task = self.task
        up = self.grip.upwards(q, lift) if lift > 0.0 else None
        aim = task.goals.nearest(q) if aim is None else aim
        aim = aim if up is None else task.with_object(aim, up)
        carried = Carried(task, self.grip, task.options, q, self._load)
        carried.press(lean=not self.hangs or up is None)
        most = self.options.steps or (math.inf if self.hangs else _STEPS)
        if up is not None and (above := self._above(q, aim, lift)) is not None:
            carried.move(above, False, most)
        carried.move(aim, up is None, most)
        if up is not None:
            self._land(carried)
        path, count = carried.path, len(carried.inputs)
        gain = self._gain(q, path[-1])
        inputs = np.array(carried.inputs).reshape(count, task.model.nu)
        return Stroke(Segment(inputs, np.array(path), np.array([count])), gain)

    def _above(self, q: Array, aim: Array, lift: float) -> Array | None:
        """Return the pose ``(nq,)`` to which the object is lifted before it goes on to its aim; None if it need not be.

        What lies on a table cannot be tilted while it slides. It is lifted by as much as it would be in its
        surroundings if it turned in place as it is to be turned.

        Args:
            q: ``(nq,)`` configuration.
            aim: ``(nq,)`` configuration with the object at its aim.
            lift: height above that, m.
        """
        task, space = self.task, self.task.space
        way = np.where(space.rotation, space.difference(aim, q), 0.0)
        room = self.grip.depth(task.with_object(q, way)) - self.grip.depth(q)
        up = self.grip.upwards(q, room + lift) if room > TOUCHING else None
        return None if up is None else task.with_object(q, up)

    def _stays(self, q: Array, stroke: Stroke) -> bool:
        """Return whether creeping contacts hold the object during a stroke from a grasp ``(nq,)``, and at its goal.

        As in an execution, the fingers go ahead by what the object lagged behind in the step before.
        """
        if self._plant.contacts == "rigid":
            return True
        task, aim, dt = self.task, self.task.goals.nearest(q), self._plant.h
        carried = Carried(task, self.grip, self._plant, q, self._load)
        carried.press(lean=False)
        held, enough, behind = 0, max(1, math.ceil(self._hold / dt)), np.zeros(task.space.size)
        most = dt * self.grip.speeds
        arrives = task.reached(stroke.segment.end)
        above = self._above(q, aim, LEAVING.clearance)
        longest = stroke.segment.steps
        for _ in range(max(longest, self.options.steps or _STEPS) + enough if arrives else longest):
            if above is not None and carried.distance(above) < LEAVING.clearance:
                above = None
            way = self.grip.towards(carried.path[-1], aim if above is None else above, dt)
            if not carried.go(way + behind, lean=True):
                return False
            gone = task.space.difference(carried.path[-1], carried.path[-2])
            behind = np.clip(behind + way - gone, -most, most)
            held = held + 1 if task.reached(carried.path[-1]) else 0
            if held == enough:
                return True
        return not arrives

    def that_can_be_left(self, stroke: Stroke) -> Stroke | None:
        """Return the longest part of a stroke from whose end the fingers can reach another grasp; None if
        there is none.

        When fingers are at their joint limits, the object may block their way. At the task's goal
        they may stay.

        Args:
            stroke: the stroke.
        """
        path, inputs = stroke.segment.configurations, stroke.segment.inputs
        good, bad = 0, len(inputs) + 1
        while bad - good > max(1, len(inputs) // _PARTS):
            k = len(inputs) if bad > len(inputs) else (good + bad) // 2
            there = k == len(inputs) and self.task.reached(path[k])
            good, bad = (k, bad) if there or self._leaves(path[k]) else (good, k)
        if good == 0:
            return None
        gain = self._gain(path[0], path[good])
        part = Segment(inputs[:good], path[: good + 1], np.array([good]))
        return stroke if good == len(inputs) else Stroke(part, gain, stroke.stays)

    def _gain(self, before: Array, after: Array) -> float:
        """Return by how much the object comes nearer to its goal, m, once it is set down.

        Below a goal in the air the object does not stay, and the next stroke begins where it comes to rest.
        """
        task, rest = self.task, None
        if self.hangs and not task.reached(after):
            rest = landing(task.model, after, task.object, task.options)
        return self.distance(before) - self.distance(after if rest is None else rest)

    def _leaves(self, q: Array) -> bool:
        """Return whether the robot can move to one of several newly drawn grasps."""
        for _ in range(TRIES):
            grasp = self.task.grasp(q, self.rng)
            try:
                if grasp is not None:
                    connect(self.task.model, q, grasp, FORESEEN, self.rng)
                    return True
            except MotionError:
                pass
            except ImportError:
                return True  # unknown without OMPL
        return False

    def _land(self, carried: Carried) -> None:
        """Move the object to the goal if its rotation is nearly right, or else down to its support."""
        task = self.task
        at_goal = task.errors(carried.path[-1])[1] < 0.5 * task.rotation_tolerance
        for _ in range(FALLS):
            q = carried.path[-1]
            way = (
                self.grip.towards(q, task.goals.nearest(q), carried.stride)
                if at_goal
                else self.grip.downwards(q)
            )
            if float(np.linalg.norm(way * task.space.scale(task.length))) < 1e-4 or not carried.go(
                way, True
            ):
                return


def gait(
    task: Task, options: GaitOptions | None = None, rng: int | np.random.Generator = 0
) -> Plan | None:
    """Plan a finger gait to the task's goal in the quasi-dynamic model: strokes (motions of the object in one grasp) and
    regrasps; None if there is none.

    The search is greedy: from the grasps drawn at the present pose, it takes the stroke that brings
    the object nearest to the goal. Between strokes the object rests on its surroundings.

    Args:
        task: The task; its sampler draws the grasps.
        options: How strokes are found.
        rng: Seed or generator. The same seed gives the same plan.

    Raises:
        ValueError: The task has no sampler.
    """
    planner = StrokePlanner(task, options, rng)
    q = np.array(task.start)
    segments: list[Segment] = []
    misses = 0
    for _ in range(planner.options.strokes):
        if task.reached(q):
            break
        strokes = planner.candidates(q, here=not segments)
        if not strokes or strokes[0].gain < TOUCHING:
            misses += 1
            if misses > TRIES:
                return None
            continue
        segments.append(strokes[0].segment)
        q = strokes[0].segment.end
    if not task.reached(q):
        return None
    if not segments:  # the object is at the goal already
        nothing = np.empty((0, task.model.nu))
        segments.append(Segment(nothing, q[None], np.zeros(0, dtype=np.int64)))
    return plan_for(planner.task, segments, planner.task.options, TOUCHING)
