"""Simulation with a fixed time step, or with steps that are halved and doubled to reach an
accuracy.

A step of length h is compared with two of h / 2 (step doubling; Kurtz and Castro 2025 do so for
convex contact). The two halves are kept. Lengths are the longest one divided by powers of two, so
the first half of a rejected step is already known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim._core import SolverError
from qdsim.arguments import MOST_INTEGER, flag, instance, number, vector
from qdsim.array_type import ROUNDING, Array
from qdsim.dynamics import DynamicOptions, DynamicStep, step_dynamic
from qdsim.model import Model
from qdsim.progress import progress_bar
from qdsim.simulation.events import EVENT_DTYPE, Pairs, changes
from qdsim.simulation.result import End, Simulation

__all__ = ["simulate"]

Law = Callable[[float, Array, Array], Any]
"""A function of time, q and v."""

_MOST_FAILURES = 10
"""Successive failed steps, each half as long as the previous one; with 30, test_simulate.py takes minutes."""


def simulate(
    model: Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike | Law,
    duration: float,
    options: DynamicOptions | None = None,
    *,
    accuracy: float | None = None,
    tau: npt.ArrayLike | Law | None = None,
    wrench: Any = None,
    mocap: Any = None,
    warm_start: bool = True,
    keep_steps: bool = False,
    resume: Simulation | None = None,
    progress: bool = False,
) -> Simulation:
    """Simulate (q, v) for a time by second-order steps of one length or to an accuracy (Anitescu
    and Hart 2003).

    Args:
        model: The model.
        q, v: Configuration (nq,) and velocity (nv,), m/s or rad/s, at time 0.
        u: Command (nu,) for the whole time, or a policy: a function of time (s), q (nq,) and v
            (nv,) that returns a command, called at the beginning of each step.
        duration: s, >= 0. The last step is shortened to end there.
        options: ``DynamicOptions``; None: the defaults. With an accuracy their h is the longest
            time step.
        accuracy: Largest difference (m, and rad) between a step and two of half its length, in any
            degree of freedom; None: all steps have length h. The two halves are kept. For contacts
            that close from a distance beyond the accuracy, h times the largest change of velocity
            also counts as a difference. A policy is called for each attempted step, so it must not
            depend on the number of calls. For smooth motion the final error is proportional to the
            square root of the accuracy. A failed step is repeated with half its length.
        tau, wrench, mocap: As in ``step_dynamic``, for the whole time or as functions like a
            policy. The pose of a moving mocap body is that at the end of the step.
        warm_start: Whether each step starts from the solution of the previous one. Forces that are
            not unique depend on it.
        keep_steps: Whether the result keeps all steps, with their contacts and forces.
        resume: An earlier simulation from the same q and v, which the result continues. If it ended
            on whole steps, the result is that of one simulation of the whole time.
        progress: Whether to show a bar.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        SolverError: if a step fails, as in ``step_dynamic`` (with an accuracy: after ten halvings).
            The error's attribute ``simulation`` holds the part before it, also for a
            KeyboardInterrupt and for errors of a policy; ``resume=`` continues from there.
    """
    instance("model", model, Model)
    options = DynamicOptions() if options is None else instance("options", options, DynamicOptions)
    duration = number("duration", duration, least=0)
    if accuracy is not None:
        accuracy = number("accuracy", accuracy, above=0)
    instance("resume", resume, Simulation, or_none=True)
    laws = _Laws(model, u, tau, wrench, mocap)
    start = _start(model, q, v, resume)
    lengths = _Lengths(options)
    course = _Course(model, lengths, laws, start, flag("warm_start", warm_start))
    course.keeps = flag("keep_steps", keep_steps)
    course.sees = options.kappa is None
    if not duration - course.t[-1] <= MOST_INTEGER * options.h:
        raise ValueError(
            f"duration: {duration:g} s are more than {MOST_INTEGER} steps of h = {options.h:g} s"
        )
    if course.t[-1] > duration:
        raise ValueError(f"duration: expected at least that of resume, {course.t[-1]} s")
    with progress_bar(flag("progress", progress), 1000, "simulate", "permille") as update:
        try:
            while duration - course.t[-1] > ROUNDING * options.h:
                _advance(course, duration - course.t[-1], accuracy)
                update(round(1000 * course.t[-1] / duration), f"{course.t[-1]:.3f} s")
        except BaseException as error:
            error.simulation = course.result()  # type: ignore[attr-defined]
            raise
    return course.result()


def _start(
    model: Model, q: npt.ArrayLike, v: npt.ArrayLike, resume: Simulation | None
) -> Simulation:
    """Return the initial state as a simulation without steps, or the simulation to resume, checked."""
    first_q = model.normalize(vector("q", q, model.nq))
    first_v = np.array(vector("v", v, model.nv))
    if resume is None:
        none = np.empty(0, EVENT_DTYPE)
        return Simulation(
            model, np.zeros(1), first_q[None], first_v[None], np.zeros((0, model.nu)), none
        )
    if resume.q.shape[1] != model.nq or resume.v.shape[1] != model.nv:
        raise ValueError("resume: its model is another one")
    if not (np.array_equal(resume.q[0], first_q) and np.array_equal(resume.v[0], first_v)):
        raise ValueError("resume: it began with another q or v")
    return resume


class _Lengths:
    """Options for steps of the longest length divided by powers of two; each is created once."""

    def __init__(self, options: DynamicOptions) -> None:
        self._made = [options]

    def h(self, level: int) -> float:
        return float(np.ldexp(self._made[0].h, -level))

    def options(self, level: int, h: float) -> DynamicOptions:
        """Return options for a step of length h, which is shorter than that of the level in the last step."""
        while len(self._made) <= level:
            self._made.append(self._made[0].replace(h=self.h(len(self._made))))
        own = self._made[level]
        return own if own.h == h else own.replace(h=h)


class _Laws:
    """Commands and loads as functions of time and state."""

    def __init__(self, model: Model, u: Any, tau: Any, wrench: Any, mocap: Any) -> None:
        self._nu = model.nu
        self._u = u if callable(u) else vector("u", u, model.nu)
        self._others = {"tau": tau, "wrench": wrench, "mocap": mocap}

    def at(self, t: float, q: Array, v: Array) -> tuple[Array, dict[str, Any]]:
        u = vector("u", self._u(t, q, v), self._nu) if callable(self._u) else self._u
        others = {n: law(t, q, v) if callable(law) else law for n, law in self._others.items()}
        return u, others


@dataclass(slots=True)
class _State:
    t: float
    q: Array
    v: Array
    warm: DynamicStep | None


class _Course:
    """A motion that is extended step by step."""

    def __init__(
        self, model: Model, lengths: _Lengths, laws: _Laws, start: Simulation, warm: bool
    ) -> None:
        self.model, self.lengths, self._laws = model, lengths, laws
        self._warm = warm
        self.keeps, self.sees = False, True
        self.t: list[float] = start.t.tolist()
        self._q, self._v, self._u = list(start.q), list(start.v), list(start.u)
        self._events: list[Any] = list(start.events)
        self._steps = list(start.steps)
        self.rejected = start.rejected
        self.level = start._end.level
        self._pairs: Pairs = start._end.pairs
        self._last = start._end.warm

    @property
    def state(self) -> _State:
        return _State(self.t[-1], self._q[-1], self._v[-1], self._last)

    def attempt(self, state: _State, options: DynamicOptions) -> _Attempt:
        u, others = self._laws.at(state.t, state.q, state.v)
        step = step_dynamic(
            self.model,
            state.q,
            state.v,
            u,
            options,
            warm_start=state.warm if self._warm else None,
            **self._carried(state, options),
            **others,
        )
        after = _State(state.t + options.h, step.q_next, step.v_next, step)
        return _Attempt(state, after, u, step)

    @staticmethod
    def _carried(state: _State, options: DynamicOptions) -> dict[str, Array]:
        """Return the arguments that a step takes from the previous one, other than q and v."""
        if options.patch_law != "bristle" or state.warm is None:
            return {}
        return {"bristles": state.warm.bristles}

    def take(self, attempt: _Attempt) -> None:
        before, after = attempt.before, attempt.after
        if self.sees:
            self._pairs, events = changes(
                self.model, self._pairs, attempt.step, len(self._u), before.t, before.q, before.v
            )
            self._events += events
        self.t.append(after.t)
        self._q.append(after.q)
        self._v.append(after.v)
        self._u.append(attempt.u)
        if self.keeps:
            self._steps.append(attempt.step)
        self._last = attempt.step

    def result(self) -> Simulation:
        model = self.model
        events = np.empty(len(self._events), EVENT_DTYPE)
        for i, event in enumerate(self._events):
            events[i] = event
        return Simulation(
            model,
            np.array(self.t),
            np.array(self._q),
            np.array(self._v),
            np.array(self._u).reshape(len(self._u), model.nu),
            events,
            tuple(self._steps),
            self.rejected,
            End(self.level, self._last if self._warm else None, dict(self._pairs)),
        )


@dataclass(slots=True)
class _Attempt:
    """A step that is not yet accepted."""

    before: _State
    after: _State
    u: Array
    step: DynamicStep = field(repr=False)


def _advance(course: _Course, left: float, accuracy: float | None) -> None:
    """Take one step, or two steps of half the length whose result agrees with one."""
    h = course.lengths.h(course.level)
    if h > left * (1.0 - ROUNDING):
        h = left
    if accuracy is None:
        course.take(course.attempt(course.state, course.lengths.options(0, h)))
        return
    state, level = course.state, course.level
    whole: _Attempt | None = None
    failures = 0
    while True:
        half = course.lengths.options(level + 1, 0.5 * h)
        first = None
        try:
            whole = whole or course.attempt(state, course.lengths.options(level, h))
            first = course.attempt(state, half)
            second = course.attempt(first.after, half)
        except SolverError:
            failures += 1
            if failures > _MOST_FAILURES:
                raise
        else:
            gap = np.abs(course.model.difference(whole.after.q, second.after.q)).max(initial=0.0)
            gap = max(gap, *(_hit(one, accuracy) for one in (first, second)))
            if gap <= accuracy:
                break
            if 0.5**level <= ROUNDING:
                raise RuntimeError(
                    f"accuracy: {accuracy:g} cannot be reached by a step of {h:.3g} s at {state.t} s"
                )
        course.rejected += 1
        level, h, whole = level + 1, 0.5 * h, first
    course.take(first)
    course.take(second)
    # The error of smooth motion is proportional to h², so it grows fourfold if h is doubled.
    doubles = 4.0 * gap <= accuracy and failures == 0
    course.level = max(level - 1, 0) if doubles else level


def _hit(attempt: _Attempt, accuracy: float) -> float:
    """Bound the error of a step that closes a contact from beyond the accuracy.

    The step does not resolve the time of the impact, so its error is up to h times the change of
    velocity.
    """
    contacts = attempt.step.contacts
    if not np.any((contacts["force"][:, 0] > 0.0) & (contacts["dist"] > accuracy)):
        return 0.0
    return float(attempt.step.h * np.abs(attempt.after.v - attempt.before.v).max(initial=0.0))
