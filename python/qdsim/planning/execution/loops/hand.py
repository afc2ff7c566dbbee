"""A hand that holds an object by a grip: it closes, follows a path, releases, and moves to the next grasp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.loops.loop import FAULTS, Commands, Outcome, Record, Sample, World
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.grasps.grip import LANDING, RATE, SURE, Grip, GripStep
from qdsim.planning.grasps.placing import placed
from qdsim.planning.grasps.resting import FALL, STILL_POSITION, STILL_ROTATION
from qdsim.planning.grasps.samplers.touching import TRIES
from qdsim.planning.motion.motion import Motion, MotionError, connect
from qdsim.planning.plans.trials import SETTLE
from qdsim.planning.task.followers import unmoved_q
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.robot import TOUCHING, strides
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.arrival import PERIODS
from qdsim.step import Options

__all__ = ["LEAVING", "Hand"]

_ROLLED = 6e-3
"""Distance of the object from where it should be at which a stroke or a regrasp is given up, m; with a
tenth, test_holds_that_creep.py fails."""
_LAGS = 0.1
"""Rotation by which an object may lag behind a stroke, rad. One that lags by more is stuck, and fingers that go on pulling
lose it."""
_EARLY = 0.5
"""Share of these two from which something is done: the path waits for an object that is late, and an object that leaves
the path of its rollout is in a world unlike the model."""
LEAVING = MotionOptions(
    clearance=3e-3, speed=2.0, acceleration=None, penetration=5e-3, time_limit=2.0
)
"""Settings of motions between grasps; fingers approach the object compliantly within the clearance."""
_TRAIL = 0.05
"""Largest lag of joints behind their springs between grasps, because of damping, rad."""


class Hand:
    """Yields the commands of a grip, one control period at a time.

    Args:
        world: The interface of the simulator for loops.
        grip: The control law; its period is the control period.
        options: Time step and settling time.

    Attributes:
        phase: Planned time of the object's pose on the last path that it followed, s.
    """

    def __init__(self, world: World, grip: Grip, options: TransferOptions) -> None:
        self.world, self.grip, self.options = world, grip, options
        self.model, self.space = world.model, world.space
        self.period = grip.options.period
        self._count = max(1, round(self.period / options.timestep))
        # control periods for fingers to reach the object, or for the object to reach its support
        self._approach = self._periods(grip.options.reach / LANDING)
        self.u, self.phase = np.zeros(self.model.nu), 0.0
        self._creep = np.zeros(self.space.size)
        self._before = self.world.q

    def rest(self, q: Array) -> None:
        """Reset to ``q``, with springs at rest."""
        self.u = np.asarray(self.model.command_from(q))
        self._creep[:] = 0.0
        self._before = np.array(q)

    def _periods(self, seconds: float) -> int:
        """Convert seconds to control periods, at least one."""
        return max(1, round(seconds / self.period))

    def _told(self, q: Array, way: Array, **how: Any) -> GripStep:
        """Return the grip's command, with the lag of the joints and what resists the object."""
        load = self.world.load(way, self.period)
        return self.grip.command(q, way, load=load, lag=self.world.lag, **how)

    def _keep(self, pose: Array, feed: Array | None = None, **how: Any) -> Commands[None]:
        """Hold the object at its pose in ``pose`` for one period, moved by the displacement ``feed``.

        Soft contacts creep under their forces, so that a held object drifts. The drift of the last periods is
        compensated by an opposite displacement.
        """
        q, grip = self.world.q, self.grip
        way = grip.towards(q, pose, self.period) - self._creep
        if feed is not None:
            way = way + feed
        made = self._told(q, way, **how)
        yield from self._reach(made.u)
        astray = self.space.difference(self.world.q, q) - way
        held = made.fingers >= grip.fingers
        most = self.period * grip.speeds
        learnt = min(RATE * self.period, 1.0)
        self._creep += learnt * ((astray if held else 0.0) - self._creep)
        self._creep = np.clip(self._creep, -most, most)

    def _reach(self, u: Array) -> Commands[None]:
        """Move the command linearly to ``u`` in one control period, within its bounds."""
        u = self.world.within(u)
        self._before = self.world.q
        for k in range(1, self._count + 1):
            share = k / self._count
            yield (1.0 - share) * self.u + share * u
        self.u = np.array(u)

    def close(self, grasp: Array | None = None, exactly: bool = False) -> Commands[bool]:
        """Move the fingers to the object, then press; return whether enough of them touch.

        Args:
            grasp: ``(nq,)`` configuration to whose places on the object they come; None: straight to it.
            exactly: Whether the joints first go to the grasp. What is to be carried needs that; what rolls is moved
                by it.
        """
        still, pose = np.zeros(self.space.size), self.world.q
        self._creep[:] = 0.0
        if exactly and grasp is not None:
            yield from self._come_to(grasp)
        pressed, enough = 0, self._periods(SETTLE)
        for _ in range(self._approach):
            q = self.world.q
            pressed += self.grip.touching(q) >= self.grip.fingers
            share = min(1.0, pressed / enough)
            how: dict[str, Any] = {"press": share, "closing": True, "aim": grasp}
            how["lean"] = not self.grip.carries
            if pressed:
                yield from self._keep(pose, **how)
            else:
                yield from self._reach(self._told(q, still, **how).u)
            if pressed > enough:
                return True
        return False

    def _come_to(self, grasp: Array) -> Commands[None]:
        """Move the joints to a grasp ``(nq,)``, at the speed of landing, while the object is where it was for the grasp.

        A finger that closes straight to the object stops at the first thing that it touches, beside its place.
        """
        end, stride = np.asarray(self.model.command_from(grasp)), strides(self.model, grasp)
        most = LANDING * self.period
        for _ in range(self._approach):
            q = self.world.q
            left = stride * (end - np.asarray(self.model.command_from(q)))
            if np.abs(left).max() < TOUCHING or self.space.errors(q, grasp)[0] > TOUCHING:
                break
            way = end - self.u
            far = float(np.abs(stride * way).max())
            yield from self._reach(self.u + min(1.0, most / max(far, 1e-300)) * way)

    def apart(self, q: Array, options: Options) -> Array:
        """Return ``q`` (nq,) without penetrations, which stiff models would resolve at decimetres per
        second."""
        model, q = self.model, np.array(self.model.normalize(q))
        out = np.zeros(model.nv)
        out[self.space.v] = self.grip.outwards(q)
        return placed(model, self.space.body, model.integrate(q, out), options)[0]

    def follow(
        self,
        schedule: Schedule,
        record: Record,
        settle: float,
        give_up: bool = False,
        foreseen: Sequence[Sample] = (),
    ) -> Commands[Outcome]:
        """Move the object along a segment's path, and hold it at the end.

        The path waits for an object that is late, as long as that comes nearer.

        Args:
            schedule: The segment as a function of time.
            record: Measures the execution.
            settle: Time at the end, s.
            give_up: Whether to stop if the grip is bad; else the object is held in place.
            foreseen: Measurements of a rollout, one a period; the grip counts as bad if the object leaves that path.
        """
        bad, frozen, end = 0, None, schedule.duration + settle
        rests = not self.grip.carries or self.grip.is_carried(schedule.segment.end)
        self.phase, time, nearest, idle = 0.0, 0.0, np.inf, 0.0
        while self.phase <= end + 1e-9:
            q = self.world.q
            planned = schedule.configuration(self.phase)
            if record.take(time, planned, self.u):
                return "lost"
            planned = planned if frozen is None else frozen
            shift, turn = self.space.errors(q, planned)
            late = shift > _EARLY * _ROLLED and frozen is None
            idle = idle + self.period if late and shift >= nearest else 0.0
            nearest = min(nearest, shift) if late else np.inf
            step = 0.0 if late and idle < SETTLE else self.period
            ahead = schedule.configuration(self.phase + step) if frozen is None else frozen
            feed = self.space.difference(ahead, planned)
            way = feed + self.grip.towards(q, planned, self.period)
            made = self._told(q, way, lean=rests and self.grip.leans(planned))
            yield from self._reach(made.u)
            near = shift <= _ROLLED and (turn <= _LAGS or not give_up)
            if foreseen and not self.grip.carries:
                last = min(round(time / self.period), len(foreseen) - 1)
                shift, turn = self.space.errors(q, foreseen[last].executed)
                near = near and shift <= _EARLY * _ROLLED and turn <= _EARLY * _LAGS
            self.phase, time = self.phase + step, time + self.period
            bad = 0 if near and self.grip.holds(made) else bad + 1
            if bad >= FAULTS and frozen is None:
                if give_up:
                    break
                frozen = q
        return "followed" if bad < FAULTS and frozen is None else "given up"

    def hold(self, goal: Array, seconds: float, fingers: int) -> Commands[bool]:
        """Keep the object at its pose in ``goal``; return whether enough fingers held it.

        On creeping contacts, fingers drift over the object and slip off one by one. If something else
        supports the object, this function then returns, so that the remaining fingers can set the object
        down; otherwise they keep holding it.
        """
        for _ in range(round(seconds / self.period)):
            q = self.world.q
            if self.grip.touching(q) < fingers and self.grip.is_carried(q):
                return False
            yield from self._keep(goal, lean=self.grip.leans(q))
        return True

    def release(self) -> Commands[bool]:
        """Release the object, and grasp it again if it moves; return whether it stayed in the end."""
        for _ in range(TRIES):
            yield from self._set_down()
            before = self.world.q
            yield from self._slacken(PERIODS)
            if self._is_still(before, PERIODS):
                return True
            yield from self.close()
        return False

    def _is_still(self, before: Array, periods: int) -> bool:
        """Return whether the object has moved since ``before`` no faster than an object at rest."""
        shift, turn = self.space.errors(self.world.q, before)
        share = periods * self.period / FALL
        return shift <= share * STILL_POSITION and turn <= share * STILL_ROTATION

    def _slacken(self, periods: int) -> Commands[None]:
        """Let the springs follow the joints, so that they exert no forces."""
        for _ in range(periods):
            yield from self._reach(np.asarray(self.model.command_from(self.world.q)))

    def _set_down(self) -> Commands[None]:
        """Lower the object to its support, reduce the preload, and let the springs follow the joints.

        Meanwhile the object is kept from drifting aside, because soft contacts creep under the fingers' forces.
        """
        pose = self.world.q
        self._creep[:] = 0.0
        for _ in range(self._periods(self.options.settle)):
            if self._is_still(self._before, 1):
                break
            yield from self._keep(pose, lean=self.grip.leans(self.world.q))
        for _ in range(self._approach):
            q = self.world.q
            down = self.grip.downwards(q)
            gap = float(np.linalg.norm(down))
            if gap < SURE * TOUCHING:
                break
            along = down / gap
            back = self.grip.towards(q, pose, self.period) @ along
            yield from self._keep(pose, along * (min(gap, LANDING * self.period) - back))
        pose = self.world.q
        for press in np.linspace(1.0, 0.0, self._periods(SETTLE) + 1)[1:].tolist():
            yield from self._keep(pose, press=press)
        yield from self._slacken(self._periods(SETTLE))

    def go(self, grasp: Array, rng: np.random.Generator) -> Commands[bool]:
        """Move the fingers near a grasp of the object; return whether a motion was found.

        Raises:
            ImportError: The straight line is blocked, and OMPL is not installed.
        """
        q = np.array(self.model.normalize(self.world.q))
        target = np.array(grasp)
        rest = unmoved_q(self.model)
        target[rest] = q[rest]
        trailing = _TRAIL / float(self.world.lag.max(initial=1e-9))
        wanted = LEAVING.replace(speed=min(LEAVING.speed, trailing))
        try:
            motion = connect(self.model, q, target, wanted, rng)
        except MotionError:
            return False
        time, end = 0.0, self._arrival(motion)
        last = np.asarray(self.model.command_from(motion.at(0.0)))
        while time < end:
            # fingers leave the contact slowly
            time += self.period * min(1.0, 0.1 + 4.0 * time)
            u = np.asarray(self.model.command_from(motion.at(min(time, end))))
            yield from self._reach(u + self.world.lag / self.period * (u - last))
            last = u
            if self.space.errors(self.world.q, q)[0] > _ROLLED:
                break
        for _ in range(self._periods(SETTLE)):
            yield from self._reach(last)
        return True

    def _arrival(self, motion: Motion) -> float:
        """Return the time at which the last approach to contact begins."""
        robot = self.grip.fingers_within
        k = len(motion.times) - 1
        while k > 1 and robot(motion.configurations[k], 0.8 * LEAVING.clearance):
            k -= 1
        return float(motion.times[k])
