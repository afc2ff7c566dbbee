"""Controllers of an edge with a common interface: the next command from the measured state, and a
predicted error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.planning.execution.loops.follower import Follower
from qdsim.planning.execution.loops.loop import World
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.grasps.carried import grip_of_steps
from qdsim.planning.grasps.grip import Grip
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.mpc import Mpc
from qdsim.planning.tracking.predictors import Predictor, QuasiDynamicModel
from qdsim.planning.tracking.preset import HORIZON
from qdsim.planning.tracking.sampling import SamplingMpc
from qdsim.step import Options, step

__all__ = [
    "Controller",
    "Following",
    "Given",
    "Gripping",
    "Planned",
    "Sampled",
    "Steering",
    "Straight",
]

Controller = Callable[[Array, Array, Array, Array], Array]
"""``controller(q, u_plan, q_plan, u_last) -> u``: measured configuration, planned command and
configuration at the end of the control period, last command; :class:`Stabilizer` is one."""

LOOKS = 4
"""Number of iterations after which the samples of a newly started controller give a prediction; with one,
test_executor_edges.py fails."""


class Steering(Protocol):
    """A controller on an edge.

    Attributes:
        period: Control period, s.
        waits: Whether the controller corrects a lag of the object, so that the plan may wait.
    """

    period: float
    waits: bool

    def begin(self, track: Track) -> None:
        """Start an edge."""
        ...

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Compute the command ``(nu,)`` for the end of the period.

        Return it and "", or the last command and the reason why there is no new one.
        """
        ...

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Predict the error of the object from its planned pose after some periods, in tolerances.

        It is infinite if the controller has no effect.
        """
        ...


class Planned:
    """A segment's planned commands, at the phase that corresponds to the object's pose.

    Args:
        world: The plant.
        period: Control period, s.
        speed: Largest speed at which commands move the robot's links, m/s, also when this
            controller takes over.
        options: Options of the predicting steps.
    """

    waits = False  # waiting would not increase the force of the springs

    def __init__(self, world: World, period: float, speed: float, options: Options) -> None:
        self.world, self.period, self._most = world, period, speed * period
        self._model = QuasiDynamicModel(world.model, options.replace(kappa=None, h=period))

    def begin(self, track: Track) -> None:
        """Start an edge."""
        assert track.schedule is not None
        self.track, self._schedule = track, track.schedule

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Return the planned command, or a command towards it within the speed limit."""
        way = self._schedule.command(self.track.phase + self.period) - u_last
        far = float(np.linalg.norm(way * self._schedule.strides))
        return u_last + min(1.0, self._most / max(far, 1e-300)) * way, ""

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Predict the error by quasi-dynamic steps."""
        times = self.track.phase + self.period * np.arange(1.0, HORIZON + 1.0)
        u = self._schedule.commands_at(times)[None]
        path, good = self._model.roll(q, v, u_last, u, self.period, 1)
        return self.track.off(path[0, -1], times[-1]) if good[0] else math.inf


class Given:
    """A function of the user: ``controller(q, u_plan, q_plan, u_last) -> u``.

    Args:
        controller: The function.
        period: Control period, s.
    """

    waits = True

    def __init__(self, controller: Controller, period: float) -> None:
        self._controller, self.period = controller, period

    def begin(self, track: Track) -> None:
        """Start an edge."""
        self.track = track

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Return the result of the function, or the planned command if its step fails.

        Without a plan, the last command takes the place of the planned one.

        Raises:
            TypeError, ValueError: The result is not a valid command.
        """
        track, end = self.track, self.track.phase + self.period
        u_plan = u_last if track.schedule is None else track.schedule.command(end)
        try:
            found = self._controller(q, u_plan, track.pose(end), u_last)
        except SolverError as error:
            return u_plan, str(error)
        u = np.array(reals("controller: its command", found, u_plan.shape))
        return (u, "") if np.isfinite(u).all() else (u_plan, "the command is not finite")

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Return the present error, because predictions for a function are unknown."""
        return self.track.off(q, self.track.phase + HORIZON * self.period)


class Following:
    """iMPC along a segment.

    Args:
        follower: The follower of the plan.
    """

    waits = False  # as the plan goes on, the force on an object that lags increases

    def __init__(self, follower: Follower) -> None:
        self._follower, self.period = follower, follower.period

    def begin(self, track: Track) -> None:
        """Start an edge."""
        assert track.schedule is not None
        self.track = track
        self._follower.begin(track.schedule)

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Compute the command by one iteration, from the present phase on."""
        u, _ = self._follower.command(q, self.track.phase, u_last)
        return u, self._follower.mpc.report.fallback

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Return the error that iMPC predicts."""
        self.command(q, v, u_last)
        path, mpc = self._follower.mpc.prediction, self._follower.mpc
        self.begin(self.track)
        end = self.track.phase + mpc.options.horizon * self.period
        return math.inf if path is None else self.track.off(path[-1], end)


class Straight:
    """iMPC straight to the goal.

    Args:
        mpc: The controller of the task.
        pace: Largest speed of the object, in tolerances per second; infinite: no limit.
        model: Predicts the world under the commands; None: the model of the controller.
    """

    waits = True

    def __init__(self, mpc: Mpc, pace: float, model: Predictor | None = None) -> None:
        self._mpc, self._pace, self._model = mpc, pace, model
        self._begins = True
        self.period = mpc.options.h or mpc.task.options.h

    def begin(self, track: Track) -> None:
        """Start an edge."""
        self.track, self._begins = track, True

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Compute the command by one iteration; the first one begins with the present command kept."""
        if self._begins:
            self._mpc.reset(np.tile(u_last, (self._mpc.options.horizon, 1)))
            self._begins = False
        u = self._mpc.act(q, self._reference(q), before=u_last)
        return u, self._mpc.report.fallback

    def _reference(self, q: Array) -> Array | None:
        """Return the reference ``(T + 1, nq)``: the object moves straight to the goal at its pace, the robot stays."""
        if math.isinf(self._pace):
            return None
        task, horizon = self._mpc.task, self._mpc.options.horizon
        way = task.goals.difference(q)
        far = max(self.track.left(q), 1e-300)
        shares = np.minimum(self._pace * self.period * np.arange(horizon + 1.0) / far, 1.0)
        return np.array([task.with_object(q, share * way) for share in shares])

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Return the error that is predicted for the commands of iMPC."""
        self.command(q, v, u_last)
        path, u = self._mpc.prediction, self._mpc.commands
        self._begins = True
        if path is None or self._model is None or u is None:
            return math.inf if path is None else self.track.left(path[-1])
        paths, good = self._model.roll(q, v, u_last, u[None], self.period, 1)
        return self.track.left(paths[0, -1]) if good[0] else math.inf


class Sampled:
    """Sampled commands, with the planned ones as one of the samples.

    Args:
        loop: The controller of the task; it must not hold at the goal by itself.
    """

    waits = True

    def __init__(self, loop: SamplingMpc) -> None:
        self._loop, self.period = loop, loop.period
        self._begins = True

    def begin(self, track: Track) -> None:
        """Start an edge."""
        self.track, self._begins = track, True

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Return the first command of the best sample; the first call begins with the present command kept."""
        track = self.track
        if self._begins:
            self._loop.reset(np.tile(u_last, (self._loop.options.horizon, 1)))
            self._begins = False
        if track.schedule is None:
            rest = self._loop.task.model.command_from(
                q
            )  # fingers that let go may move an object that is stuck
            u = self._loop.act(q, v=v, before=u_last, proposals=[rest])
            return u, self._loop.report.fallback
        times = track.phase + self.period * np.arange(self._loop.options.horizon + 1.0)
        reference = np.array([track.pose(t) for t in times])
        planned = track.schedule.commands_at(times[1:])
        u = self._loop.act(q, reference, v=v, before=u_last, proposals=[planned])
        return u, self._loop.report.fallback

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Return the error that the samples' model predicts."""
        for _ in range(LOOKS):
            self.command(q, v, u_last)
        path, self._begins = self._loop.prediction, True
        end = self.track.phase + self._loop.options.horizon * self.period
        return math.inf if path is None else self.track.off(path[-1], end)


class Gripping:
    """Fingers that hold the object and move it.

    Args:
        world: The plant.
        grip: The control law; its period is the control period.
        task: The task; its options are those of the predicting steps.
    """

    waits = True

    def __init__(self, world: World, grip: Grip, task: Task) -> None:
        self.world, self._grip, self._task = world, grip, task
        self.period = grip.options.period
        self._foreseen = grip_of_steps(task, grip.options, grip.carries)
        self._options = task.options.replace(h=self._foreseen.options.period, infeasible="soften")

    def begin(self, track: Track) -> None:
        """Start an edge."""
        self.track = track

    def command(self, q: Array, v: Array, u_last: Array) -> tuple[Array, str]:
        """Return the command that moves the object by the displacement of one period."""
        return self._command(self._grip, q, self.track.phase, self.world.lag)

    def _command(self, grip: Grip, q: Array, phase: float, lag: Array | None) -> tuple[Array, str]:
        space, track, period = self._task.space, self.track, grip.options.period
        planned, ahead = track.pose(phase), track.pose(phase + period)
        way = space.difference(ahead, planned) + grip.towards(q, planned, period)
        load = self.world.load(way, period)
        made = grip.command(q, way, lean=grip.leans(planned), load=load, lag=lag)
        if made.fingers < grip.fingers:
            return made.u, f"{made.fingers} of {grip.fingers} fingers touch the object"
        return made.u, "" if grip.holds(made) else "no forces of the fingers hold the object"

    def predicted(self, q: Array, v: Array, u_last: Array) -> float:
        """Predict the error at the end of the edge, in closed loop with quasi-dynamic steps, without the joints' lag.

        It is infinite if the fingers lose the object on the way.
        """
        model, here, period = self._task.model, np.array(q), self._options.h
        if self._grip.touching(here) < self._grip.fingers:
            return math.inf
        first, left = self.track.phase, self.track.duration - self.track.phase
        count = max(HORIZON, math.ceil(left / period))
        for k in range(count):
            u, fault = self._command(self._foreseen, here, first + k * period, None)
            if fault:
                return math.inf
            try:
                here = np.array(step(model, here, u, self._options).q_next)
            except SolverError:
                return math.inf
        return self.track.off(here, first + count * period)
