"""Strokes without a break: grasp, move the object, set it down, go to the next grasp."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.strokes import Stroke, StrokePlanner
from qdsim.planning.execution.transfer_options import TransferOptions

__all__ = ["Attempt", "gaiting"]

_GAIN = 1e-3
"""m, of strokes that are worth a new grasp."""
_MISSES = 3
"""Grasps in a row that are not reached."""
_STEADY = 0.3
"""s, that the object is held at a stroke's end."""


class Attempt(NamedTuple):
    """A stroke, and what was measured of it."""

    schedule: Schedule
    record: Record
    outcome: Outcome


def gaiting(
    hand: Hand, planner: StrokePlanner, options: TransferOptions
) -> Commands[tuple[list[Attempt], str]]:
    """Stroke after stroke until the object is at its goal, where it is held.

    Returns:
        Every stroke that was tried, also those that were not begun for want of a grip; and what was not found where
        that ended it.
    """
    task, world = planner.task, hand.world
    done: list[Attempt] = []
    misses = 0
    for k in range(planner.options.strokes):
        q = np.array(task.model.normalize(world.q))
        strokes = [s for s in planner.candidates(q, here=k == 0) if s.gain > _GAIN]
        there = yield from _reached(hand, strokes, planner.rng)
        misses = misses + 1 if there is None else 0
        if misses > _MISSES:
            return done, "no motion found" if strokes else "no stroke found"
        closed = yield from hand.close()
        stroke = planner.best(hand.apart(world.q, task.options)) if closed else None
        if not _is_worth(stroke, there) or world.lost:
            if there is not None:
                done.append(_not_begun(hand, planner.schedule(there, options)))
            if world.lost:
                return done, ""
            if closed:
                yield from hand.release()
            continue
        assert stroke is not None
        schedule, record = planner.schedule(stroke, options), Record(world)
        outcome = yield from hand.follow(schedule, record, _STEADY, give_up=True)
        done.append(Attempt(schedule, record, outcome))
        if outcome == "lost":
            return done, ""
        if _is_near(planner, world.q):
            # The goal itself may be millimetres off, where a ball that leans could not roll without slipping.
            yield from hand.hold(stroke.segment.end, options.settle)
            break
        yield from hand.release()
    return done, ""


def _reached(
    hand: Hand, strokes: list[Stroke], rng: np.random.Generator
) -> Commands[Stroke | None]:
    """The first of some strokes whose grasp the hand gets to."""
    for stroke in strokes:
        if (yield from hand.go(stroke.segment.start, rng)):
            return stroke
    return None


def _is_worth(stroke: Stroke | None, there: Stroke | None) -> bool:
    """Whether there is a stroke from the grasp that was closed; without a new grasp one that gains something."""
    if stroke is None or stroke.segment.steps == 0:
        return False
    return there is not None or stroke.gain > _GAIN


def _is_near(planner: StrokePlanner, q: Array) -> bool:
    task = planner.task
    near = 0.6 * np.array([task.position_tolerance, task.rotation_tolerance])
    return bool(np.all(np.array(task.space.errors(q, task.goal)) <= near))


def _not_begun(hand: Hand, schedule: Schedule) -> Attempt:
    record = Record(hand.world)
    record.take(0.0, schedule.segment.start, hand.u)
    return Attempt(schedule, record, "lost" if hand.world.lost else "no grip")
