"""A hand in the second-order simulator: close, follow a stroke, let go, move to the next grasp."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.gaiting import GaitOptions, StrokePlanner
from qdsim.planning.execution.grip import Grip
from qdsim.planning.execution.plant import Plant, TransferOptions
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.grasps.placing import placed
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.step import Options

__all__ = ["Hand", "Sample", "SegmentOutcome", "gaiting"]

SegmentOutcome = Literal["followed", "given up", "no grip", "lost"]

Sample = tuple[float, Array, Array, Array]
"""Time (s), planned and executed configuration, command."""

_CLOSE, _PRESSED = 60, 10
"""Periods that closing may take, and those over which the preload grows once the fingers touch."""
_LOWER, _UNLOAD, _SLACK = 60, 15, 15
"""Periods of letting go: down to rest at most, the preload fades, and springs that pull at nothing."""
_SINK, _RESTS = 0.02, 2e-4
"""m/s, of an object that is set down, and the gap (m) to what carries it at which it rests."""
_WATCH, _STILL, _TRIES = 3, (5e-3, 0.15), 3
"""Periods after which an object that was let go should be slower than this (m/s, rad/s), and how often to let go."""
_BAD = 5
"""Periods in a row without a good grip after which a stroke is given up."""
_ROLLED = 6e-3
"""m; a regrasp stops where the object has rolled so far."""
_CLEARANCE = 3e-3
"""m, that fingers keep from the object between grasps; nearer they come compliantly."""
_CALM = 25
"""Periods in which what is to be set down may come to rest between the fingers."""
_CREEP, _LEARN = 0.5, 0.1
"""Of the grip's speeds, that an object held still may creep with at most; and the share of a period's surprise that
goes into what the next one expects."""
_GAIN = 1e-3
"""m, of strokes that are worth a new grasp."""
_PLACED = 1e-5
"""m of penetration that strokes are planned from."""
_MOVING = 2.0
"""rad/s, of the fastest joint between grasps,"""
_REST = 2.0
"""Times the joints' lag, that they have to come to rest."""
_TRAIL = 0.05
"""rad; at most such that joints trail their springs, for their damping, by no more than this."""


class Hand:
    """Drives a plant by a grip, a control period at a time.

    Args:
        plant: the simulator.
        grip: the control law; its period is the control period.
        options: time step, settling.
    """

    def __init__(self, plant: Plant, grip: Grip, options: TransferOptions) -> None:
        self.plant, self.grip, self.options = plant, grip, options
        self.model, self.space = plant.model, plant.space
        self.period = grip.options.period
        self._count = max(1, round(self.period / options.timestep))
        self.u = np.zeros(self.model.nu)
        self.seconds = 0.0
        self._creep = np.zeros(self.space.size)
        self._before = self.plant.q

    def reset(self, q: Array) -> None:
        """At rest in ``q``, with springs at rest."""
        self.plant.reset(q)
        self.u = np.asarray(self.model.command_from(q))
        self._creep[:] = 0.0
        self._before = np.array(q)

    def _keep(self, pose: Array, feed: Array | None = None, **how: Any) -> None:
        """A period in which the grip holds the object at its pose in ``pose``, but for a displacement ``feed`` of it.

        Soft contacts creep under what they bear: an object held still moves on. By as much as it has gone astray in
        the last periods it is carried against that.
        """
        q, grip = self.plant.q, self.grip
        way = grip.towards(q, pose, self.period) - self._creep
        if feed is not None:
            way = way + feed
        made = grip.command(q, way, load=self.plant.support_load(way), **how)
        self.advance(made.u)
        astray = self.space.difference(self.plant.q, q) - way
        held = made.fingers >= grip.fingers
        speeds = np.where(self.space.rotation, grip.options.turn_speed, grip.options.shift_speed)
        most = _CREEP * self.period * speeds
        self._creep += _LEARN * ((astray if held else 0.0) - self._creep)
        self._creep = np.clip(self._creep, -most, most)

    def advance(self, u: Array) -> None:
        """A control period, in which the command goes straight to ``u``, or as far as its bounds allow."""
        u = self.plant.within(u)
        self._before = self.plant.q
        for k in range(1, self._count + 1):
            share = k / self._count
            self.plant.advance((1.0 - share) * self.u + share * u)
        self.u, self.seconds = np.array(u), self.seconds + self.period

    def close(self) -> bool:
        """The fingers come to touch, then press; whether enough of them do."""
        still, pose = np.zeros(self.space.size), self.plant.q
        self._creep[:] = 0.0
        pressed = 0
        for _ in range(_CLOSE):
            q = self.plant.q
            pressed += self.grip.touching(q) >= self.grip.fingers
            share = min(1.0, pressed / _PRESSED)
            if pressed:
                self._keep(pose, press=share, closing=True)
            else:
                self.advance(self.grip.command(q, still, press=share, closing=True).u)
            if pressed > _PRESSED:
                return True
        return False

    def apart(self, q: Array, options: Options) -> Array:
        """``q`` (nq,), but that nothing is sunk into anything: models push the object and the fingers away from each
        other, stiff ones at decimetres a second."""
        model, q = self.model, np.array(self.model.normalize(q))
        out = np.zeros(model.nv)
        out[self.space.v] = self.grip.outwards(q)
        return placed(model, self.space.body, model.integrate(q, out), options, _PLACED)[0]

    def follow(
        self, schedule: Schedule, settle: float, give_up: bool = False
    ) -> tuple[list[Sample], SegmentOutcome]:
        """Move the object along a segment's path, and hold it at its end.

        Args:
            schedule: the segment in time.
            settle: s, at the end.
            give_up: whether to stop where the grip is bad; else the object is held where it is then.
        """
        samples: list[Sample] = []
        bad, time, frozen = 0, 0.0, None
        end = schedule.duration + settle
        while time <= end + 1e-9:
            q = self.plant.q
            planned = schedule.configuration(time)
            samples.append((time, planned, q, self.u))
            if self.plant.lost:
                return samples, "lost"
            ahead = schedule.configuration(time + self.period)
            if frozen is not None:
                planned = ahead = frozen
            feed = self.space.difference(ahead, planned)
            way = feed + self.grip.towards(q, planned, self.period)
            load = self.plant.support_load(way)
            made = self.grip.command(q, way, lean=self._leans(planned), load=load)
            self.advance(made.u)
            time += self.period
            good = made.fingers >= self.grip.fingers and (made.residual <= 0.3 * self.grip.weight)
            away = self.space.errors(q, planned)
            bad = 0 if good and away[0] <= _ROLLED else bad + 1
            if bad >= _BAD and frozen is None:
                if give_up:
                    break
                frozen = q
        return samples, "followed" if bad < _BAD and frozen is None else "given up"

    def hold(self, goal: Array, seconds: float) -> None:
        """Keep the object at its pose in ``goal``."""
        for _ in range(round(seconds / self.period)):
            self._keep(goal, lean=self._leans(self.plant.q))

    def release(self) -> bool:
        """Let go, and grip again where the object does not stay; whether it stayed in the end."""
        for _ in range(_TRIES):
            self._set_down()
            before = self.plant.q
            self._slacken(_WATCH)
            if np.all(self._speed(before, _WATCH) <= _STILL):
                return True
            self.close()
        return False

    def _speed(self, before: Array | None = None, periods: int = 1) -> Array:
        """m/s and rad/s, of the object since it was where it is in ``before``; None: in the last period."""
        moved = self.space.errors(self.plant.q, self._before if before is None else before)
        return np.array(moved) / (periods * self.period)

    def _leans(self, q: Array) -> bool:
        """Whether the object touches what carries it."""
        return float(np.abs(self.grip.downwards(q)).max()) < self.grip.options.touch

    def _slacken(self, periods: int) -> None:
        """Springs follow the joints and pull at nothing."""
        for _ in range(periods):
            self.advance(np.asarray(self.model.command_from(self.plant.q)))

    def _set_down(self) -> None:
        """Lower the object to what carries it, let the preload fade, then the springs follow.

        On the way it is kept from going aside: soft contacts creep under the fingers' forces.
        """
        pose = self.plant.q
        self._creep[:] = 0.0
        for _ in range(_CALM):
            if np.all(self._speed() <= _STILL):
                break
            self._keep(pose, lean=self._leans(self.plant.q))
        for _ in range(_LOWER):
            q = self.plant.q
            down = self.grip.downwards(q)
            gap = float(np.linalg.norm(down))
            if gap < _RESTS:
                break
            along = down / gap
            back = self.grip.towards(q, pose, self.period) @ along
            self._keep(pose, along * (min(gap, _SINK * self.period) - back))
        pose = self.plant.q
        for k in range(_UNLOAD):
            press = 1.0 - (k + 1) / _UNLOAD
            self._keep(pose, press=press)
        self._slacken(_SLACK)

    def go(self, grasp: Array, rng: np.random.Generator) -> bool:
        """Move the fingers to near a grasp of the object; whether there is a way."""
        q = np.array(self.model.normalize(self.plant.q))
        target = np.array(grasp)
        rest = self.model.unactuated_q
        target[rest] = q[rest]
        wanted = MotionOptions(
            clearance=_CLEARANCE,
            speed=min(_MOVING, _TRAIL / float(self.plant.lag.max(initial=1e-9))),
            acceleration=None,
            penetration=5e-3,
            time_limit=2.0,
        )
        try:
            motion = connect(self.model, q, target, wanted, rng)
        except (MotionError, ImportError):  # OMPL is an extra
            return False
        time, end = 0.0, self._arrival(motion)
        last = np.asarray(self.model.command_from(motion.at(0.0)))
        while time < end:
            # out of contact slowly
            time += self.period * min(1.0, 0.1 + 4.0 * time)
            u = np.asarray(self.model.command_from(motion.at(min(time, end))))
            self.advance(u + self.plant.lag / self.period * (u - last))
            last = u
            if self.space.errors(self.plant.q, q)[0] > _ROLLED:
                break
        for _ in range(math.ceil(_REST * float(self.plant.lag.max(initial=0.0)) / self.period)):
            self.advance(last)
        return True

    def _arrival(self, motion: Motion) -> float:
        """When the last approach to contact begins."""
        robot = self.grip.fingers_within
        k = len(motion.times) - 1
        while k > 1 and robot(motion.configurations[k], 0.8 * _CLEARANCE):
            k -= 1
        return float(motion.times[k])


Attempt = tuple[Schedule, list[Sample], SegmentOutcome]


def gaiting(
    hand: Hand, planner: StrokePlanner, options: TransferOptions
) -> tuple[list[Attempt], str]:
    """Stroke after stroke until the object is at its goal, where it is held.

    Returns:
        Every stroke that was tried, also those that were not begun for want of a grip; and what was not found where
        that ended it.
    """
    task, space = planner.task, planner.task.space
    given: GaitOptions = planner.options
    done: list[Attempt] = []
    near = 0.6 * np.array([task.position_tolerance, task.rotation_tolerance])
    misses = 0
    for k in range(given.strokes):
        q = np.array(task.model.normalize(hand.plant.q))
        strokes = [s for s in planner.candidates(q, here=k == 0) if s.gain > _GAIN]
        there = next((s for s in strokes if hand.go(s.segment.start, planner.rng)), None)
        misses = misses + 1 if there is None else 0
        if misses > 3:
            return done, "no motion found" if strokes else "no stroke found"
        closed = hand.close()
        stroke = planner.best(hand.apart(hand.plant.q, task.options)) if closed else None
        if stroke is not None and there is None and stroke.gain <= _GAIN:
            stroke = None
        if hand.plant.lost or stroke is None or stroke.segment.steps == 0:
            if there is not None:
                done.append(
                    _not_begun(
                        hand, Schedule(task.model, there.segment, options.speed, options.timestep)
                    )
                )
            if hand.plant.lost:
                return done, ""
            if closed:
                hand.release()
            continue
        schedule = Schedule(task.model, stroke.segment, options.speed, options.timestep)
        samples, outcome = hand.follow(schedule, 0.3, give_up=True)
        done.append((schedule, samples, outcome))
        if outcome == "lost":
            return done, ""
        if np.all(np.array(space.errors(hand.plant.q, task.goal)) <= near):
            # The goal itself may be millimetres off, where a ball that leans could not roll without slipping.
            hand.hold(stroke.segment.end, options.settle)
            break
        hand.release()
    return done, ""


def _not_begun(hand: Hand, schedule: Schedule) -> Attempt:
    sample = (0.0, schedule.segment.start, hand.plant.q, hand.u)
    return schedule, [sample], "lost" if hand.plant.lost else "no grip"
