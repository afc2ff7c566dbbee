"""Strokes are rolled out in a simulation of the world, with the hand that will execute them, before they begin."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Record, Sample, T, drive
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.strokes import Stroke, StrokePlanner
from qdsim.planning.execution.world import PlantError
from qdsim.planning.plans.segment import Segment
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.robot import TOUCHING

__all__ = ["Foresight"]

_TRIES, _SHORTER = 4, 0.7
"""Number of lengths of a stroke that are rolled out, the whole stroke first, and the share of the time after which the
last one ended, or was given up, that the next one takes."""
_WORTH = 0.5
"""Share of a stroke's gain in the model that it has to bring in the rollout; else shorter ones are tried as well."""


class Foresight:
    """Tells what becomes of a stroke: the object is moved, then held at its goal or set down and released.

    Quasi-dynamic steps do not see fingers that slip because the object is accelerated, because joints trail their
    springs, or because contacts creep.

    Args:
        planner: Finds strokes; its distance to the goal counts.
        plant: A simulation of the world, of its own.
        hand: The hand, of that simulation.
        speed: Speed of the execution, m/s.
        hold: Time for which an object is held at its goal, s.

    Attributes:
        path: Measurements of the last rollout that :meth:`best` or :meth:`keeps` found good, one a control period.
    """

    def __init__(
        self, planner: StrokePlanner, plant: Plant, hand: Hand, speed: float, hold: float
    ) -> None:
        self._planner, self._plant, self._hand = planner, plant, hand
        self._speed, self._hold = speed, hold
        self.path: list[Sample] = []

    def those_that_work(self, strokes: list[Stroke]) -> list[Stroke]:
        """Return strokes that gain, the best first, with what they gain; the fingers close to their grasps first.

        The search ends with the first stroke that does much of what it does in the model.

        Args:
            strokes: Strokes from grasps of an object at rest, the best first.
        """
        found: list[Stroke] = []
        for stroke in strokes:
            least = found[0].gain if found else TOUCHING
            if stroke.gain <= least:
                break
            q = stroke.segment.start
            self._begin(stroke.segment, q, np.zeros(self._plant.model.nv))
            try:
                closed = self._drive(self._hand.close(q, self._planner.hangs))
            except PlantError:
                continue
            if not closed:
                continue
            plant = self._plant
            part = self.best(stroke, plant.q, plant.v, self._hand.u, least)
            if part is not None:
                found.insert(0, part)
                if part.gain > _WORTH * stroke.gain:
                    break
        return found

    def keeps(
        self, schedule: Schedule, q: Array, v: Array | None = None, u: Array | None = None
    ) -> bool:
        """Return whether the fingers do not lose the object along a segment of a plan, and release it.

        Args:
            schedule: The segment, with commands from its grasp of the object where it is.
            q: Configuration ``(nq,)`` at the grasp.
            v: Velocity ``(nv,)`` of fingers that have closed; None: they are at rest, and close first.
            u: The present command ``(nu,)``; None as well.
        """
        plant = self._plant
        if v is None or u is None:
            self._begin(schedule.segment, q, np.zeros(plant.model.nv))
            try:
                self._drive(self._hand.close(q))
            except PlantError:
                return False
            q, v, u = plant.q, plant.v, self._hand.u
        record = Record(plant)
        kept = self._after(schedule, record, q, v, u) is not None
        self.path = record.samples
        return kept

    def best(
        self, stroke: Stroke, q: Array, v: Array, u: Array, least: float = TOUCHING
    ) -> Stroke | None:
        """Return the stroke, or the part of it that ends nearest to the goal; None if there is none that gains.

        Args:
            stroke: The stroke.
            q, v: Measured configuration ``(nq,)`` and velocity ``(nv,)``, where the fingers hold the object.
            u: The present command ``(nu,)``.
            least: Least gain, m.
        """
        before, found, count = self._planner.distance(q), None, stroke.segment.steps
        lift = not stroke.stays and self._planner.is_below(q)  # which gains nothing on the way
        for _ in range(_TRIES):
            part = _part(stroke, count)
            if before - self._planner.distance(part.segment.end) <= least:
                break
            schedule = Schedule(self._plant.model, part.segment, self._speed, self._plant.timestep)
            record = Record(self._plant)
            rest = self._after(schedule, record, q, v, u)
            gain = -np.inf if rest is None else before - self._planner.distance(rest)
            if gain > least:
                least, found = float(gain), dataclasses.replace(part, gain=float(gain))
                self.path = record.samples
            followed = min(record.samples[-1].time, schedule.duration)
            count = int(np.searchsorted(schedule.times, _SHORTER * followed, side="right")) - 1
            if gain > _WORTH * stroke.gain or count == 0 or lift:
                break
        return found

    def _after(
        self, schedule: Schedule, record: Record, q: Array, v: Array, u: Array
    ) -> Array | None:
        """Return where the object comes to rest ``(nq,)`` after a stroke; None if the fingers lose it."""
        plant, hand, task = self._plant, self._hand, self._planner.task
        self._begin(schedule.segment, q, v)
        hand.u = np.array(u)
        try:
            self._drive(hand.follow(schedule, record, SETTLE, give_up=True))
            if task.reached(plant.q):
                fingers = hand.grip.touching(plant.q)
                held = self._drive(hand.hold(schedule.segment.end, self._hold, fingers))
                if held and task.reached(plant.q):
                    return plant.q
            still = self._drive(hand.release())
        except PlantError:
            return None
        return plant.q if still and not plant.lost else None

    def _begin(self, segment: Segment, q: Array, v: Array) -> None:
        self._plant.watch(segment.configurations)
        self._plant.continue_from(q, v)
        self._hand.rest(q)

    def _drive(self, commands: Commands[T]) -> T:
        return drive(commands, self._plant.advance)


def _part(stroke: Stroke, count: int) -> Stroke:
    """Return the first steps of a stroke."""
    segment = stroke.segment
    if count >= segment.steps:
        return stroke
    part = Segment(segment.inputs[:count], segment.configurations[: count + 1], np.array([count]))
    return dataclasses.replace(stroke, segment=part)
