"""Model predictive control by sampling: noisy command sequences are rolled out, and the best
determine the command."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import flag, generator_of, instance, reals, spread, vector
from qdsim.array_type import Array
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.robot import levers, object_size
from qdsim.planning.task.sampling_options import SamplingOptions
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import Arrival
from qdsim.planning.tracking.forecasts import velocity_of
from qdsim.planning.tracking.mpc import Mpc
from qdsim.planning.tracking.predictors import Predictor, QuasiDynamicModel, check_predictor
from qdsim.planning.tracking.preset import dexterous
from qdsim.planning.tracking.sampling_cost import SamplingCost
from qdsim.planning.tracking.shooting import Shooting

__all__ = ["SamplingMpc", "SamplingReport"]

NOISE = 0.6
"""Motion of the fingertips by the noise at the end of the horizon, in radii of gyration of the object."""
KNOTS = 4
"""Number of knots of the noise over the horizon."""
SMALL, MOVED = 0.3, 0.6
"""Factor on the noise of every other sample, and probability that a sample moves an actuator. Large
noise finds motions, small noise refines them."""
TEMPERATURE = 0.1
"""Temperature of path integral control, in standard deviations of the costs."""


@dataclasses.dataclass(frozen=True)
class SamplingReport:
    """Report of the last call of :meth:`SamplingMpc.act`.

    Attributes:
        cost: predicted cost over the horizon; NaN if the prediction failed.
        before: predicted cost of the last answer, shifted by a period.
        source: origin of the answer: ``"mean"``, ``"sample"``, ``"proposal"`` or ``"last"``.
        samples, failed: number of command sequences rolled out, and how many of these failed.
        fallback: "" or why the commands of the previous call were kept.
        seconds: duration of the call, s.
        step_seconds: duration of the model's rollouts, s.
        holding: whether the object has arrived and the command was kept.
    """

    cost: float
    before: float
    source: str
    samples: int
    failed: int
    fallback: str
    seconds: float
    step_seconds: float
    holding: bool = False


class SamplingMpc:
    """A sampling-based model-predictive controller that moves an object to the task's goal: from each
    measured configuration it computes the command of the next period by rollouts of random commands.

    Every call shifts the commands of the previous call by one period, adds noise along splines,
    rolls all samples out in one batch, and returns the first command of their combination according
    to ``options.method``. If this combination is predicted to cost more than the last answer,
    shifted, the best sample is used instead. No derivatives are needed, so any model can predict:
    see :class:`Predictor`. Objects that have arrived are held as by :class:`Mpc`.

    Args:
        task: the task.
        options: settings; None: the defaults, with weights and sizes from the task.
        rng: a seed or a generator.
        model: predicts; None: the quasi-dynamic step of the task.
        guide: its commands are one more sample of every call.
        hold: whether the command is kept once the object has arrived.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """

    def __init__(
        self,
        task: Task,
        options: SamplingOptions | None = None,
        rng: int | np.random.Generator = 0,
        *,
        model: Predictor | None = None,
        guide: Mpc | None = None,
        hold: bool = True,
    ) -> None:
        self.task = instance("task", task, Task)
        self.options = (
            instance("options", options, SamplingOptions, or_none=True) or SamplingOptions()
        )
        self.guide = instance("guide", guide, Mpc, or_none=True)
        if guide is not None and guide.task.model is not task.model:
            raise ValueError("guide: its task has another model")
        settings = _settings(task, self.options)
        assert settings.h is not None
        self.period = settings.h
        self.model: Predictor = check_predictor(model) or QuasiDynamicModel(
            task.model, task.options.replace(h=self.period)
        )
        self._parts = Shooting(task, settings)
        cost = SamplingCost(task, self._parts.cost, self._parts.reach)
        knots = min(KNOTS, self.options.horizon)
        noise = np.sqrt(np.arange(1, knots + 1) / knots)[:, None] * _noise(task, self.options)
        spline = _spline(knots, self.options.horizon)
        self._how = _How(self.options, self.model, self.period, self._parts, cost, noise, spline)
        self._arrival = Arrival(task) if flag("hold", hold) else None
        self._seed, self._rng = rng, generator_of(rng)
        self.reset()

    @property
    def report(self) -> SamplingReport:
        """Report of the last call."""
        return self._report

    @property
    def commands(self) -> Array | None:
        """Planned commands ``(T, nu)`` of the last call, beginning with the one it returned."""
        return None if self._u is None else self._u.copy()

    @property
    def prediction(self) -> Array | None:
        """Predicted configurations ``(T + 1, nq)`` under these commands; None if unknown."""
        return None if self._path is None else self._path.copy()

    def reset(self, u: ArrayLike | None = None) -> None:
        """Return to the initial state; a seed starts again, a generator continues.

        Args:
            u: ``(T, nu)`` commands to begin with; None: the one that holds the robot in place.
        """
        self._u = None if u is None else self._sequence("u", u)
        self._given = u is not None
        self._before: Array | None = None
        self._last_q: Array | None = None
        self._path: Array | None = None
        self._rng = generator_of(self._seed)
        self._report = SamplingReport(math.nan, math.nan, "", 0, 0, "", 0.0, 0.0)
        if self._arrival is not None:
            self._arrival.reset()
        if self.guide is not None:
            self.guide.reset()

    def act(
        self,
        q: ArrayLike,
        reference: ArrayLike | None = None,
        *,
        v: ArrayLike | None = None,
        before: ArrayLike | None = None,
        proposals: Sequence[ArrayLike] = (),
    ) -> Array:
        """Compute the command ``(nu,)`` for the next period, from the configuration ``q`` (nq).

        Args:
            q: measured configuration.
            reference: ``(T + 1, nq)`` reference of object and robot now and after every period;
                None: the task's goal.
            v: ``(nv,)`` measured velocity, m/s and rad/s; None: from the change of q since the last
                call.
            before: ``(nu,)`` command of the previous period, if it was not the one that the last
                call returned.
            proposals: further samples: ``(T, nu)`` commands, or ``(nu,)`` a command to be reached
                over the horizon, for example that of the next planned grasp.

        Raises:
            ValueError: if ``q`` is not a configuration of the model, or another argument has
                another shape.
        """
        begin = time.perf_counter()
        now = np.asarray(self.task.model.normalize(vector("q", q, self.task.model.nq)))
        speed = velocity_of(self.task.model, now, v, self._last_q, self.period)
        self._parts.cost.reference = self._reference(reference)
        if before is not None:
            self._before = self._parts.bounded(vector("before", before, self.task.model.nu))
        last = self._shifted(now)
        assert self._before is not None
        acts = self._before
        offered = [self._proposal(f"proposals[{k}]", p) for k, p in enumerate(proposals)]
        self._last_q = now
        if reference is None and self._arrival is not None and self._arrival.measure(now):
            self._u, self._path = np.tile(acts, (self.options.horizon, 1)), None
            self._report = SamplingReport(
                math.nan, math.nan, "last", 0, 0, "", time.perf_counter() - begin, 0.0, True
            )
            return np.array(acts)
        self._parts.cost.attend(now)
        if self.guide is not None:
            self.guide.act(now, reference, before=before)
            assert self.guide.commands is not None
            offered.append(self._fitted(self.guide.commands))
        search = _Search(self._how, self._rng, now, speed, acts)
        search.improve(last, offered)
        self._u, self._path = search.u, search.path
        ends = np.array((now, now)) if search.path is None else search.path[:2]
        self._before = self._parts.reachable(ends, self._u[0])
        self._u = np.concatenate([self._before[None], self._u[1:]])
        self._report = search.report(time.perf_counter() - begin)
        return np.array(self._before)

    # ---------------------------------------------------------------- parts of a call

    def _shifted(self, q: Array) -> Array:
        """Return the commands of the previous call, shifted by a period; in the first call, those
        that hold the robot."""
        if self._before is None:
            self._before = self._parts.bounded(np.asarray(self.task.model.command_from(q)))
        if self._u is None:
            return np.tile(self._before, (self.options.horizon, 1))
        if self._given:
            self._given = False
            return self._parts.bounded(self._u)
        return np.concatenate([self._u[1:], self._u[-1:]])

    def _reference(self, reference: ArrayLike | None) -> Array | None:
        if reference is None:
            return None
        return _finite("reference", reference, (self.options.horizon + 1, self.task.model.nq))

    def _sequence(self, name: str, u: ArrayLike) -> Array:
        return _finite(name, u, (self.options.horizon, self.task.model.nu))

    def _proposal(self, name: str, u: ArrayLike) -> Array:
        """Return the commands (T, nu) of a proposal; a single command is approached linearly over the horizon."""
        array = reals(name, u)
        if array.ndim != 1:
            return self._parts.bounded(self._sequence(name, u))
        target = self._parts.bounded(np.asarray(vector(name, u, self.task.model.nu)))
        share = np.arange(1, self.options.horizon + 1)[:, None] / self.options.horizon
        assert self._before is not None
        return np.asarray(self._before + share * (target - self._before))

    def _fitted(self, u: Array) -> Array:
        """Cut or extend commands to T periods; the last command is repeated."""
        T = self.options.horizon
        return self._parts.bounded(
            np.concatenate([u[:T], np.repeat(u[-1:], max(0, T - len(u)), 0)])
        )

    def __repr__(self) -> str:
        options = self.options
        return f"SamplingMpc({self.task.name!r}, {options.method}, {options.samples} samples, horizon={options.horizon})"


@dataclasses.dataclass(frozen=True, eq=False)
class _How:
    """Settings shared by all calls: noise ``(knots, nu)`` at the knots, and the interpolation ``(T,
    knots)`` between them."""

    options: SamplingOptions
    model: Predictor
    period: float
    parts: Shooting
    cost: SamplingCost
    noise: Array
    spline: Array


class _Search:
    """The search of one call.

    Args:
        how: what all calls share.
        rng: of the noise.
        q, v: where it begins.
        before: the command that acts now.
    """

    def __init__(
        self, how: _How, rng: np.random.Generator, q: Array, v: Array, before: Array
    ) -> None:
        self.how, self.rng, self.q, self.v, self.before = how, rng, q, v, before
        self.path: Array | None = None
        self.cost, self.first, self.source = math.inf, math.inf, "last"
        self.samples, self.failed, self.step_seconds = 0, 0, 0.0

    def improve(self, last: Array, offered: list[Array]) -> None:
        """Sample around the last answer, roll out the samples, the last answer and the proposals,
        and choose an answer."""
        self.u = last
        count = max(1, self.how.options.samples - 1 - len(offered))
        drawn = last + np.einsum("tk,nkj->ntj", self.how.spline, self._draw(count))
        tried = self.how.parts.bounded(
            np.concatenate([last[None], *(p[None] for p in offered), drawn])
        )
        paths, costs = self._roll(tried)
        self.first = float(costs[0])
        best = int(np.argmin(costs))
        if not math.isfinite(costs[best]):
            return
        kinds = ["last"] + ["proposal"] * len(offered) + ["sample"] * count
        self._take(tried[best], paths[best], float(costs[best]), kinds[best])
        if self.how.options.method == "predictive":
            return
        mean = np.tensordot(self._weights(costs), tried, axes=1)
        path, cost = self._roll(mean[None])
        # The mean is smoother than the best sample, whose low cost is partly luck.
        if cost[0] <= costs[0]:
            self._take(mean, path[0], float(cost[0]), "mean")

    def report(self, seconds: float) -> SamplingReport:
        """Return the report of this call."""
        good = self.path is not None
        return SamplingReport(
            self.cost if good else math.nan,
            self.first if math.isfinite(self.first) else math.nan,
            self.source,
            self.samples,
            self.failed,
            "" if good else "no sample could be predicted to its end",
            seconds,
            self.step_seconds,
        )

    def _draw(self, count: int) -> Array:
        """Draw noise (count, knots, nu) at the knots."""
        noise = self.how.noise
        z = self.rng.standard_normal((count, *noise.shape))
        z *= (self.rng.random((count, 1, noise.shape[1])) < MOVED) * noise
        z[1::2] *= SMALL
        return np.asarray(z)

    def _roll(self, u: Array) -> tuple[Array, Array]:
        """Roll out commands (samples, T, nu); return paths and costs."""
        how, begin = self.how, time.perf_counter()
        threads = how.options.threads
        paths, good = how.model.roll(self.q, self.v, self.before, u, how.period, threads)
        self.step_seconds += time.perf_counter() - begin
        costs = how.cost.values(
            np.where(good[:, None, None], paths, self.q), u, self.before, threads
        )
        costs[~good] = math.inf
        self.samples += len(u)
        self.failed += int(np.sum(~good))
        return paths, costs

    def _weights(self, costs: Array) -> Array:
        """Return the weights (samples,) of the mean, which sum to one."""
        weights, finite = np.zeros(len(costs)), np.isfinite(costs)
        if self.how.options.method == "cem":
            elite = np.argsort(costs, kind="stable")[
                : max(1, min(len(costs) // 8, np.count_nonzero(finite)))
            ]
            weights[elite] = 1.0 / len(elite)
            return weights
        scale = max(TEMPERATURE * float(costs[finite].std()), 1e-300)
        weights[finite] = np.exp(-(costs[finite] - costs[finite].min()) / scale)
        return np.asarray(weights / weights.sum())

    def _take(self, u: Array, path: Array, cost: float, source: str) -> None:
        self.u, self.path, self.cost, self.source = u, path, cost, source


def _settings(task: Task, options: SamplingOptions) -> ImpcOptions:
    """Return weights, reach and period: those of the task, or else those of ``dexterous``."""
    base = task.impc if task.impc is not None else dexterous(task)
    return base.replace(
        method="feedback",
        horizon=options.horizon,
        h=base.h or task.options.h,
        limits=True,
    )


def _noise(task: Task, options: SamplingOptions) -> Array:
    """Return the standard deviations (nu,) at the last knot."""
    if options.noise is not None:
        return spread("noise", options.noise, task.model.nu)
    gear = np.abs(np.asarray(task.model.actuator_gear))
    size = object_size(task.model, task.space) or task.length
    noise = NOISE * size / np.maximum(levers(task.model, task.start), 1e-6) * gear
    lower, upper = task.command_bounds
    return np.asarray(np.minimum(noise, upper - lower))


def _spline(knots: int, periods: int) -> Array:
    """Return the matrix (T, knots) that interpolates noise at the knots to the ends of periods; it
    is zero at the start."""
    place = np.linspace(0.0, periods, knots + 1)
    rows = np.pad(np.eye(knots), ((0, 0), (1, 0)))
    return np.stack([np.interp(np.arange(1.0, periods + 1.0), place, row) for row in rows], 1)


def _finite(name: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    array = np.array(reals(name, value))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(
            f"{name}: expected {shape[0]} x {shape[1]} finite numbers, got shape {array.shape}"
        )
    return array
