"""iMPC in closed loop: one iteration at every control step."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np
from numpy.typing import ArrayLike

from qdsim._core import SolverError
from qdsim.arguments import flag, integer, reals, vector
from qdsim.array_type import Array
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import Arrival
from qdsim.planning.tracking.forecasts import Forecast
from qdsim.planning.tracking.impc import check_arguments, check_commands
from qdsim.planning.tracking.predictors import Predictor, check_predictor
from qdsim.planning.tracking.preset import dexterous, in_space
from qdsim.planning.tracking.shooting import Policy, Shooting, Trajectory
from qdsim.planning.tracking.starts import first_commands

__all__ = ["Mpc", "MpcReport"]

WORSE = 1.5
"""A new trajectory is accepted if it costs at most this multiple of the old one. If only cheaper
ones were accepted, the controller would get stuck where small motions gain nothing (across a gap)
although large ones do."""
LITTLE = 1.05
"""The same with a prediction model, where random detours lead across gaps. With 1.5, the predicted cost
grows call by call, and objects creep to the edge of the hand."""
DETOURS = 3
"""Random changes of the commands that are tried where a model predicts that every solution costs too
much. Without them, the robot stands still before an object that every push knocks over."""


@dataclasses.dataclass(frozen=True)
class MpcReport:
    """Report of the last call of :meth:`Mpc.act`.

    Attributes:
        cost: predicted cost over the horizon; NaN if the prediction failed.
        radius: half width of the trust region of the trajectory; 0 if the old one was kept.
        iterations: iterations of the optimiser.
        fallback: "" or the failure because of which the commands of the previous call were kept.
        seconds: duration of the call, s.
        holding: whether the object has arrived and the command was kept.
    """

    cost: float
    radius: float
    iterations: int
    fallback: str
    seconds: float
    holding: bool = False


class Mpc:
    """A model-predictive controller that moves an object to the task's goal by iMPC: from each measured
    configuration it computes the command of the next period.

    Every call shifts the trajectory of the previous call by one step, rolls it out from the
    measured configuration, improves it by an iteration of ``options.method`` ``"feedback"``, and
    returns its first command. The old trajectory is kept if every new one is predicted to cost much
    more.

    An object that was within a fifth of the task's tolerances in three calls in a row, and comes no
    nearer, has arrived: the command is kept until the object is outside half of the tolerances.
    Fingers that keep moving for the last fraction of a tolerance lose the object.

    With a prediction ``model``, only the derivatives are those of the smoothed quasi-dynamic step.
    The trajectories along which they are taken, and their costs, are those of the model, from the
    measured velocity on. So a second-order model sees what is thrown, or slides out of the hand,
    and a call can keep the robot where it is instead. If all solutions of a call cost more than
    that, a few random changes of the commands are tried. The smoothed steps leave penetrations as
    they are (``recovery_speed=0``), as the compliant contacts of a model do.

    Args:
        task: the task; its start is only the reference of ``options.state_bounds``.
        options: settings; None: those of the task, or :func:`dexterous` for objects that rotate
            freely under gravity, or the defaults. ``h`` is the control period; ``iterations`` is
            not used.
        rng: a seed or a generator, for schemes and starts that sample.
        iterations: iterations of every call.
        first_iterations: iterations of the first call, and of the first one after a reset.
        hold: whether the command is kept once the object has arrived. Calls with a reference never
            hold.
        model: predicts, for example :class:`SecondOrderModel`, for light objects that slide, roll or
            are thrown; None: the task's quasi-dynamic step, with the feedback of the quadratic
            programs. It takes less time, and is enough for objects that rest wherever they are let go.
    """

    def __init__(
        self,
        task: Task,
        options: ImpcOptions | None = None,
        rng: int | np.random.Generator = 0,
        *,
        iterations: int = 1,
        first_iterations: int = 5,
        hold: bool = True,
        model: Predictor | None = None,
    ) -> None:
        self.task, settings, generator = check_arguments(task, options, rng)
        if options is None and task.impc is None and in_space(task):
            settings = dexterous(task)
        if settings.method != "feedback":
            raise ValueError("options: closed loop needs the method 'feedback'")
        self.options = settings
        self._seed, self._rng = rng, generator
        self._iterations = integer("iterations", iterations, least=1)
        self._first = integer("first_iterations", first_iterations, least=1)
        predictor = check_predictor(model)
        self._parts = Shooting(task, settings, recover=predictor is None)
        self._forecast = None if predictor is None else Forecast(self._parts, predictor)
        self._accepted = WORSE if predictor is None else LITTLE
        self._arrival = Arrival(task) if flag("hold", hold) else None
        self._u: Array | None = None
        self._before: Array | None = None
        self._calls = 0
        self._report = MpcReport(math.nan, 0.0, 0, "", 0.0)
        self._path: Trajectory | None = None

    @property
    def report(self) -> MpcReport:
        """Report of the last call."""
        return self._report

    @property
    def commands(self) -> Array | None:
        """Planned commands ``(T, nu)`` of the last call, beginning with the one it returned."""
        return None if self._u is None else self._u.copy()

    @property
    def prediction(self) -> Array | None:
        """Predicted configurations ``(T + 1, nq)`` under these commands; None if unknown."""
        return None if self._path is None else self._path.q.copy()

    def reset(self, u: ArrayLike | None = None) -> None:
        """Return to the initial state; a seed starts again, a generator continues.

        Args:
            u: ``(T, nu)`` commands to begin with, in place of ``options.start``.
        """
        self._u = None
        if u is not None:
            self._u = check_commands(u, self.options.horizon, self.task.model.nu)
        self._before, self._path, self._calls = None, None, 0
        if self._arrival is not None:
            self._arrival.reset()
        if self._forecast is not None:
            self._forecast.reset()
        self._rng = np.random.default_rng(self._seed)

    def act(
        self,
        q: ArrayLike,
        reference: ArrayLike | None = None,
        *,
        v: ArrayLike | None = None,
        before: ArrayLike | None = None,
    ) -> Array:
        """Compute the command ``(nu,)`` for the next step, from the configuration ``q`` (nq).

        Args:
            q: measured configuration.
            reference: ``(T + 1, nq)`` reference of object and robot now and after every step of the
                horizon; None: the task's goal.
            v: ``(nv,)`` measured velocity, m/s and rad/s, with which a prediction ``model`` begins;
                None: from the change of q since the last call.
            before: ``(nu,)`` command of the previous period, if it was not the one that the last
                call returned; changes of the command count from it.

        If a solver fails, the trajectory of the last call is continued, and :attr:`report` gives
        the reason.

        Raises:
            ValueError: if ``q`` is not a configuration of the model, or the reference has another
                shape.
        """
        begin = time.perf_counter()
        model = self.task.model
        self._parts.cost.reference = self._check_reference(reference)
        now = np.asarray(model.normalize(vector("q", q, model.nq)))
        if before is not None:
            self._before = self._parts.bounded(vector("before", before, model.nu))
        if self._forecast is not None:
            self._forecast.measure(now, v)
        if reference is None and self._arrival is not None and self._arrival.measure(now):
            return self._hold(now, begin)
        self._parts.cost.attend(now)
        u, last = self._warm_start(now)
        u = self._parts.bounded(u)
        path, fallback, radius, done = None, "", 0.0, 0
        try:
            path = self._roll_out(now, u, last)
            for _ in range(self._iterations if self._calls else self._first):
                better = self._improve(path, now, last)
                done += 1
                if better is None and done == 1:
                    better = self._detour(path, last)
                if better is None:
                    break
                path, radius = better
        except SolverError as error:
            fallback = str(error)
        self._path = path
        self._u = u if path is None else path.u
        self._before = self._parts.reachable(
            np.array((now, now)) if path is None else path.q[:2], self._u[0]
        )
        self._u = np.concatenate([self._before[None], self._u[1:]])
        self._calls += 1
        cost = math.nan if path is None else path.cost
        self._report = MpcReport(cost, radius, done, fallback, time.perf_counter() - begin)
        return np.array(self._before)

    def _hold(self, q: Array, begin: float) -> Array:
        """Return the last command (nu,) again; if there is none, the command that holds the robot."""
        if self._before is None:
            self._before = self._parts.bounded(np.asarray(self.task.model.command_from(q)))
        self._u, self._path = np.tile(self._before, (self.options.horizon, 1)), None
        self._report = MpcReport(math.nan, 0.0, 0, "", time.perf_counter() - begin, holding=True)
        return np.array(self._before)

    def _check_reference(self, reference: ArrayLike | None) -> Array | None:
        if reference is None:
            return None
        array = reals("reference", reference)
        shape = (self.options.horizon + 1, self.task.model.nq)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"reference: expected {shape[0]} finite configurations of {shape[1]} numbers, got "
                f"shape {array.shape}"
            )
        return array

    def _warm_start(self, q: Array) -> tuple[Array, Array]:
        """Return the commands of the horizon, and the previous command."""
        model = self.task.model
        before = self._before
        if before is None:
            before = self._parts.bounded(np.asarray(model.command_from(q)))
        if self._u is None:
            try:
                return first_commands(
                    self.task, self.options, self.options.starts[0], q, self._rng
                ), before
            except SolverError:
                return np.tile(before, (self.options.horizon, 1)), before
        if self._calls == 0:  # commands given to ``reset``
            return self._u, before
        return np.concatenate([self._u[1:], self._u[-1:]]), before

    def _improve(
        self, path: Trajectory, q: Array, before: Array
    ) -> tuple[Trajectory, float] | None:
        """Return the best new trajectory and its radius; None if its cost is too high."""
        parts = self._parts
        local = parts.linearize(path, self.options.scheme(self._calls), self._rng)
        policies, radii = parts.policies(local, path, path.u, before)
        if not policies:
            return None
        k, found = _cheapest(self._follow(policies, path, q, before))
        if found is None or found.cost >= self._accepted * path.cost:
            return None
        return found, radii[k]

    def _roll_out(self, q: Array, u: Array, before: Array) -> Trajectory:
        """Roll out the commands; a model also those that keep the robot, or its springs, as they are, if
        the commands cost more than promised.

        Raises:
            SolverError: if a step fails.
        """
        if self._forecast is None:
            return self._parts.roll_out(q, u, before)
        path = self._forecast.roll(u[None], before)[0]
        if path is None or path.cost > self._promised():
            here = np.asarray(self.task.model.command_from(q))
            still = np.array([np.broadcast_to(kept, u.shape) for kept in (here, before)])
            _, path = _cheapest([path, *self._forecast.roll(still, before)])
        if path is None:
            raise SolverError("no commands could be predicted over the horizon")
        return path

    def _promised(self) -> float:
        """Return what the trajectory of the last call costs now; minus infinity if there is none."""
        path = self._path
        if path is None:
            return -math.inf
        return float(self._parts.cost.values(path.q, path.u, path.u[0])[0])

    def _detour(self, path: Trajectory, before: Array) -> tuple[Trajectory, float] | None:
        """Return the cheapest of a few trajectories under shifted commands and its radius; None if all
        cost too much, or there is no model to judge them."""
        if self._forecast is None:
            return None
        parts, box = self._parts, self._parts.boxes[0]
        shifts = self._rng.uniform(-box, box, (DETOURS, 1, len(box)))
        lower, upper = parts.within_reach(path.q)
        _, found = _cheapest(self._forecast.roll(np.clip(path.u + shifts, lower, upper), before))
        if found is None or found.cost >= self._accepted * path.cost:
            return None
        return found, float(box.max())

    def _follow(
        self, policies: list[Policy], path: Trajectory, q: Array, before: Array
    ) -> list[Trajectory | None]:
        """Roll out the solutions of the programs; a model has no feedback to follow them by."""
        if self._forecast is None:
            return self._parts.follow(policies, path, q, before)
        return self._forecast.roll(np.array([policy.u for policy in policies]), before)

    def __repr__(self) -> str:
        return f"Mpc({self.task.name!r}, horizon={self.options.horizon}, calls={self._calls})"


def _cheapest(tried: list[Trajectory | None]) -> tuple[int, Trajectory | None]:
    """Return the index of the cheapest trajectory, and the trajectory; None if all failed."""
    costs = [math.inf if t is None or not math.isfinite(t.cost) else t.cost for t in tried]
    k = int(np.argmin(costs))
    return k, tried[k] if math.isfinite(costs[k]) else None
