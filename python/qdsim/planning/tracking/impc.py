"""Trajectory optimisation through contact: iterative MPC (CQDC Alg. 1) and a variant of it."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qdsim._core import SolverError
from qdsim.arguments import flag, generator_of, instance, number, reals
from qdsim.array_type import Array
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.impc_options import ImpcOptions, Start
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.search_file import (
    RECORD,
    Branch,
    SearchState,
    load_search,
    mark_of,
    save_search,
)
from qdsim.planning.tracking.shooting import Shooting, Trajectory
from qdsim.planning.tracking.starts import first_commands
from qdsim.progress import Update, away, progress_bar
from qdsim.smoothing import Scheme
from qdsim.step import Options, step
from qdsim.whole_files import SAVE_PAUSE

__all__ = ["RECORD", "ImpcResult", "impc"]


@dataclasses.dataclass(frozen=True, eq=False)
class ImpcResult:
    """Result of ``impc``: the best trajectory, and the record of all iterations.

    Attributes:
        task, options: the task, and the settings.
        step_options: options of the steps along the trajectory.
        u: ``(T, nu)`` commands of the best iterate.
        q: ``(T + 1, nq)`` configurations.
        cost: its cost.
        iteration: the iteration it comes from, 0 for the first guess.
        records: structured array, one row for a first guess and one per iteration: cost, final_cost
            (the object's part of the last term), best_cost so far, half width of its trust region
            (largest over the actuators; 0 for the guess), kappa (NaN for schemes without), errors
            of the object at the end (m, rad); and up to there: steps, linearizations (samples
            counted), quadratic programs and their iterations, rollouts that failed, seconds.
    """

    task: Task
    options: ImpcOptions
    step_options: Options
    u: Array
    q: Array
    cost: float
    iteration: int
    records: np.ndarray[Any, np.dtype[np.void]]

    @property
    def errors(self) -> tuple[float, float]:
        """Distance (m) and angle (rad) of the object from its goal at the end."""
        return self.task.errors(self.q[-1])

    @property
    def reached(self) -> bool:
        """Whether the object ends within the task's tolerances."""
        return self.task.reached(self.q[-1])

    @property
    def seconds(self) -> float:
        """Duration of the whole search, s."""
        return float(self.records["seconds"][-1])

    def plan(self) -> Plan:
        """Return the trajectory as a plan of one segment."""
        task = self.task
        segment = Segment(self.u, self.q, np.array([len(self.u)], dtype=np.int64))
        plan = plan_for(task, [segment], self.step_options, task.start_tolerance)
        return plan.with_forces(task.model)

    def __repr__(self) -> str:
        shift, turn = self.errors
        return (
            f"ImpcResult({self.task.name!r}, cost={self.cost:.4g} after {self.iteration} of "
            f"{self.records['iteration'][-1]} iterations, {shift:.3g} m and {turn:.3g} rad from the goal)"
        )


def impc(
    task: Task,
    options: ImpcOptions | None = None,
    rng: int | np.random.Generator = 0,
    *,
    u: Array | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = SAVE_PAUSE,
) -> ImpcResult:
    """Optimise a trajectory from the task's start towards its goal by iterative MPC (CQDC,
    algorithm 1).

    Args:
        task: the task.
        options: settings; None: those of the task, or the defaults.
        rng: a seed or a generator, for schemes and starts that sample. The same seed gives the same
            trajectory.
        u: ``(T, nu)`` first guess of the commands, in place of ``options.start``.
        progress: show a bar with the cost and the distance to the goal (without tqdm a line, in
            terminals).
        checkpoint: a file in which the optimisation is saved every ``checkpoint_seconds`` and at
            its end. If the file exists, the optimisation continues from it; the result is bitwise
            identical to that of an uninterrupted one, and ``rng`` is not used. With one first guess
            and a ``kappa`` that does not depend on it, ``iterations`` may be larger than before.
        checkpoint_seconds: time between two writes of the checkpoint, s.

    Returns:
        The best iterate and the record of all.

    Raises:
        TypeError, ValueError: if an argument is invalid, or the checkpoint is damaged or belongs to
            another task, first guess or other options; the message names the argument.
        SolverError: if the first guess cannot be rolled out, or a step of the linearisation fails.
    """
    task, settings, generator = check_arguments(task, options, rng)
    every = number("checkpoint_seconds", checkpoint_seconds, least=0, infinite=True)
    progress = flag("progress", progress)
    search = _Search(task, settings, generator, u)
    if checkpoint is not None:
        search.keep(checkpoint, every)
    with progress_bar(progress, settings.iterations, task.name, "iterations") as search.show:
        return search.run()


def check_arguments(
    task: Task, options: ImpcOptions | None, rng: int | np.random.Generator
) -> tuple[Task, ImpcOptions, np.random.Generator]:
    """Check the arguments of ``impc``."""
    instance("task", task, Task)
    instance("options", options, ImpcOptions, or_none=True)
    return task, options or task.impc or ImpcOptions(), generator_of(rng)


def check_commands(u: ArrayLike, horizon: int, nu: int) -> Array:
    """Check the caller's commands and return them as an array (T, nu)."""
    array = np.array(reals("u", u))
    if array.shape != (horizon, nu):
        raise ValueError(f"u: expected shape ({horizon}, {nu}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("u: not finite")
    return array


class _Search:
    """One run of ``impc``."""

    def __init__(
        self, task: Task, options: ImpcOptions, rng: np.random.Generator, u: Array | None
    ) -> None:
        self.begin = time.perf_counter()
        self.task, self.options, self.rng = task, options, rng
        self.parts = Shooting(task, options)
        self.start = np.array(task.start)
        self.before = np.asarray(task.model.command_from(self.start))
        self.given = None if u is None else check_commands(u, options.horizon, task.model.nu)
        self.state = SearchState(counts=self.parts.counts)
        self.file: str | os.PathLike[str] | None = None
        self.mark, self.pause, self.saved = "", math.inf, self.begin
        self.show: Update = lambda done, text: None

    def keep(self, path: str | os.PathLike[str], pause: float) -> None:
        """Save the search in a file, and continue from the file if it exists."""
        self.file, self.pause = path, pause
        self.mark = mark_of(self.task, self.options, self.given)
        found = load_search(path, self.task, self.options, self.given, self.rng)
        if found is not None:
            self.state, self.parts.counts = found, found.counts
            self.begin -= found.rows[-1][-1]  # duration of the search before the interruption

    def run(self) -> ImpcResult:
        options, state = self.options, self.state
        guesses = options.starts if self.given is None else (None,)
        trials = options.trials if len(guesses) > 1 else 0
        error: SolverError | None = None
        for start in guesses[state.guess :]:
            try:
                branch = state.current = state.current or self._branch(start)
            except SolverError as failure:
                error = failure
                state.guess += 1
                continue
            self._iterate(branch, trials - branch.iterations)
            if state.chosen is None or branch.best.cost < state.chosen.best.cost:
                state.chosen = branch
            state.guess, state.current = state.guess + 1, None
        chosen = state.chosen
        if chosen is None:
            assert error is not None
            raise error
        self._iterate(chosen, options.iterations)
        if self.file is not None:
            save_search(self.file, self.mark, state, self.rng)
        best = chosen.best
        return ImpcResult(
            self.task,
            options,
            self.parts.step_options,
            best.u,
            best.q,
            best.cost,
            int(state.rows[chosen.best_row][0]),
            np.array(state.rows, dtype=RECORD),
        )

    def _branch(self, start: Start | None) -> Branch:
        """Roll out a first guess; None is the caller's."""
        options, parts = self.options, self.parts
        guess = self.given
        if start is not None:
            guess = first_commands(self.task, options, start, self.start, self.rng)
        assert guess is not None
        guess = parts.bounded(guess)
        scheme = options.scheme(0)
        path = parts.roll_out(self.start, guess, self.before)
        branch = Branch(path, path, len(self.state.rows), [path.cost])
        self._record(branch, scheme)
        return branch

    def _iterate(self, branch: Branch, count: int) -> None:
        """Do at most ``count`` iterations, within the limit of the whole search."""
        options, state = self.options, self.state
        iterate = self._feedback if options.method == "feedback" else self._published
        for _ in range(count):
            if state.done >= options.iterations or self._stalled(branch):
                break
            scheme = options.scheme(branch.iterations)
            found = iterate(branch, scheme)
            state.done += 1
            branch.iterations += 1
            if found is not None:
                branch.path = found
                if found.cost < branch.best.cost:
                    branch.best, branch.best_row = found, len(state.rows)
            branch.best_costs.append(branch.best.cost)
            self._record(branch, scheme)
            if self.file is not None and time.perf_counter() - self.saved >= self.pause:
                save_search(self.file, self.mark, state, self.rng)
                self.saved = time.perf_counter()

    def _stalled(self, branch: Branch) -> bool:
        patience, costs = self.options.patience, branch.best_costs
        if patience is None or len(costs) <= patience:
            return False
        return bool(costs[-1] > 0.99 * costs[-1 - patience])

    def _record(self, branch: Branch, scheme: Scheme) -> None:
        counts, rows = self.state.counts, self.state.rows
        kappa = getattr(scheme, "kappa", None)
        path = branch.path
        before = rows[-1][2] if rows else math.inf
        error = self.task.errors(path.q[-1])
        self.show(self.state.done, f"cost {branch.best.cost:.4g}, {away(*error)}")
        rows.append(
            (
                self.state.done,
                path.cost,
                min(branch.best.cost, before),
                path.final,
                branch.radius,
                math.nan if kappa is None else kappa,
                *error,
                counts.steps,
                counts.linearizations,
                counts.programs,
                counts.program_iterations,
                counts.failures,
                time.perf_counter() - self.begin,
            )
        )

    def _feedback(self, branch: Branch, scheme: Scheme) -> Trajectory | None:
        """Linearise once, solve a program for every radius, and roll all solutions out; return the
        best, None if all fail."""
        parts, path = self.parts, branch.path
        local = parts.linearize(path, scheme, self.rng)
        policies, radii = parts.policies(local, path, path.u, self.before)
        if not policies:
            return None
        tried = parts.follow(policies, path, self.start, self.before)
        done = [(t.cost, k) for k, t in enumerate(tried) if t is not None]
        if not done:
            return None
        k = min(done)[1]
        branch.radius = radii[k]
        return tried[k]

    def _published(self, branch: Branch, scheme: Scheme) -> Trajectory | None:
        """Solve a program over the rest of the horizon at every step (CQDC Alg. 1, lines 6 to 9)."""
        parts, model, path = self.parts, self.task.model, branch.path
        local = parts.linearize(path, scheme, self.rng)
        center, radius = parts.robot_command(path.q[:-1]), parts.boxes[0]
        q, commands = [self.start], []
        for t in range(self.options.horizon):
            now = q[-1]
            # The first change of the command is measured from the robot's position, as in the
            # authors' code.
            before = np.asarray(model.command_from(now))
            shift = parts.difference(now, path.q[t])
            policy = parts.solve(local, path, center, radius, before, t, shift)
            command = parts.bounded(path.u[t] if policy is None else policy.u[0])
            commands.append(command)
            parts.counts.steps += 1
            q.append(step(self.task.model, now, command, parts.step_options).q_next)
        branch.radius = float(radius.max())
        u, states = np.array(commands), np.array(q)
        cost, final = parts.cost.values(states, u, self.before)
        return Trajectory(states, u, float(cost), float(final))
