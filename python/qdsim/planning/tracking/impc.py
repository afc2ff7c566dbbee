"""Trajectory optimisation through contact: iterative MPC (S3 Alg. 1) and a variant of it."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from qdsim.planning.plan import Plan, Segment
from qdsim.planning.space import Array
from qdsim.planning.task import Task
from qdsim.planning.tracking.options import ImpcOptions
from qdsim.planning.tracking.shooting import Counts, Policy, Shooting, Trajectory
from qdsim.planning.tracking.starts import first_commands
from qdsim.smoothing import Scheme
from qdsim.step import Options, step

__all__ = ["RECORD", "ImpcResult", "impc"]

RECORD = np.dtype(
    [
        ("iteration", "i8"),
        ("cost", "f8"),
        ("best_cost", "f8"),
        ("final_cost", "f8"),
        ("predicted_cost", "f8"),
        ("radius", "f8"),
        ("kappa", "f8"),
        ("position_error", "f8"),
        ("rotation_error", "f8"),
        ("steps", "i8"),
        ("linearizations", "i8"),
        ("programs", "i8"),
        ("program_iterations", "i8"),
        ("failures", "i8"),
        ("seconds", "f8"),
    ]
)


@dataclasses.dataclass(frozen=True, eq=False)
class ImpcResult:
    """The best trajectory that was met, and how the search went.

    Attributes:
        task, options: what was done, and how.
        step_options: of the steps along the trajectory.
        u: ``(T, nu)`` commands of the best iterate.
        q: ``(T + 1, nq)`` configurations.
        cost: its cost.
        iteration: the iteration it comes from, 0 for the first guess.
        records: structured array, one row for the first guess and one an iteration: cost, final_cost
            (the object's part of the last term), best_cost so far, half width of the box it came from
            (largest over the actuators; 0 for the guess), kappa (NaN for schemes without), errors
            of the object at the end (m, rad); and up to there: steps, linearizations (samples
            counted), quadratic programs and their iterations, roll-outs that failed, seconds.
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
        return self.task.space.errors(self.q[-1], self.task.goal)

    @property
    def reached(self) -> bool:
        """Whether the object ends within the task's tolerances."""
        return self.task.reached(self.q[-1])

    @property
    def seconds(self) -> float:
        """Time of the whole search, s."""
        return float(self.records["seconds"][-1])

    def plan(self) -> Plan:
        """The trajectory as a plan of one segment."""
        task = self.task
        segment = Segment(self.u, self.q, np.array([len(self.u)], dtype=np.int64))
        return Plan(
            task=task.name,
            object=task.object,
            options=self.step_options,
            goal=np.array(task.goal),
            position_tolerance=task.position_tolerance,
            rotation_tolerance=task.rotation_tolerance,
            contact_tolerance=task.start_tolerance,
            segments=(segment,),
        )

    def __repr__(self) -> str:
        shift, turn = self.errors
        return (
            f"ImpcResult({self.task.name!r}, cost={self.cost:.4g} after {self.iteration} of "
            f"{len(self.records) - 1} iterations, {shift:.3g} m and {turn:.3g} rad from the goal)"
        )


def impc(
    task: Task,
    options: ImpcOptions | None = None,
    rng: int | np.random.Generator = 0,
    *,
    u: Array | None = None,
) -> ImpcResult:
    """Optimise a trajectory from the task's start towards its goal.

    Args:
        task: what to do.
        options: how; None takes the task's own, or the defaults.
        rng: a seed or a generator, for schemes and starts that sample. The same seed gives the same
            trajectory.
        u: ``(T, nu)`` first guess of the commands, in place of ``options.start``.

    Returns:
        The best iterate and the record of all.

    Raises:
        TypeError, ValueError: naming the argument.
        SolverError: if the first guess cannot be rolled out, or a step of the linearisation fails.
    """
    task, settings, generator = check_arguments(task, options, rng)
    return _Search(task, settings, generator, u).run()


def check_arguments(
    task: Task, options: ImpcOptions | None, rng: int | np.random.Generator
) -> tuple[Task, ImpcOptions, np.random.Generator]:
    """What callers may get wrong."""
    if not isinstance(task, Task):
        raise TypeError(f"task: expected a Task, got {type(task).__name__}")
    if options is not None and not isinstance(options, ImpcOptions):
        raise TypeError(f"options: expected ImpcOptions, got {type(options).__name__}")
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng: expected a seed or a generator: {error}") from None
    return task, options or task.impc or ImpcOptions(), generator


def check_commands(u: object, horizon: int, nu: int) -> Array:
    """Commands of the caller as an array (T, nu)."""
    array = np.array(u, dtype=np.float64)
    if array.shape != (horizon, nu):
        raise ValueError(f"u: expected shape ({horizon}, {nu}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("u: not finite")
    return array


class _Search:
    """One run."""

    def __init__(
        self, task: Task, options: ImpcOptions, rng: np.random.Generator, u: Array | None
    ) -> None:
        self.begin = time.perf_counter()
        self.task, self.options, self.rng = task, options, rng
        self.parts = Shooting(task, options)
        self.start = np.array(task.start)
        self.before = np.asarray(task.model.command_from(self.start))
        if u is None:
            u = first_commands(task, options, self.start, rng, self.parts.step_options.h)
        self.guess = check_commands(u, options.horizon, task.model.nu)
        self.rows: list[tuple[Any, ...]] = []
        self.radius = 0.0
        self.predicted = math.nan

    def run(self) -> ImpcResult:
        options, parts = self.options, self.parts
        scheme = options.scheme(0)
        path = parts.roll_out(self.start, self.guess, self.before, parts.dynamics(scheme))
        best, best_at = path, 0
        self._record(0, path, best, scheme)
        iterate = self._feedback if options.method == "feedback" else self._published
        for iteration in range(1, options.iterations + 1):
            if 0.0 < options.final_cost >= best.final or self._stalled():
                break
            scheme = options.scheme(iteration - 1)
            found = iterate(path, scheme)
            if found is not None:
                path = found
                if path.cost < best.cost:
                    best, best_at = path, iteration
            self._record(iteration, path, best, scheme)
        return ImpcResult(
            self.task,
            options,
            parts.step_options,
            best.u,
            best.q,
            best.cost,
            best_at,
            np.array(self.rows, dtype=RECORD),
        )

    def _stalled(self) -> bool:
        patience = self.options.patience
        if patience is None or len(self.rows) <= patience:
            return False
        return bool(self.rows[-1][2] > 0.99 * self.rows[-1 - patience][2])

    def _record(self, iteration: int, path: Trajectory, best: Trajectory, scheme: Scheme) -> None:
        counts: Counts = self.parts.counts
        kappa = getattr(scheme, "kappa", None)
        self.rows.append(
            (
                iteration,
                path.cost,
                best.cost,
                path.final,
                self.predicted,
                self.radius,
                math.nan if kappa is None else kappa,
                *self.task.space.errors(path.q[-1], self.task.goal),
                counts.steps,
                counts.linearizations,
                counts.programs,
                counts.program_iterations,
                counts.failures,
                time.perf_counter() - self.begin,
            )
        )

    def _center(self, path: Trajectory) -> Array:
        if self.options.center == "command":
            return path.u
        model = self.task.model
        return np.asarray(path.q[:-1, model.actuated_q] * np.asarray(model.actuator_gear))

    def _feedback(self, path: Trajectory, scheme: Scheme) -> Trajectory | None:
        """One model, a program for every radius, all rolled out; None if none could be."""
        parts = self.parts
        local = parts.linearize(path, scheme, self.rng)
        center = self._center(path)
        policies: list[Policy] = []
        radii = []
        for radius in parts.boxes:
            policy = parts.solve(local, path, center, radius, self.before)
            if policy is not None:
                policies.append(policy)
                radii.append(float(radius.max()))
        if not policies:
            return None
        tried = parts.follow(policies, path, self.start, self.before, parts.dynamics(scheme))
        done = [(t.cost, k) for k, t in enumerate(tried) if t is not None]
        if not done:
            return None
        k = min(done)[1]
        self.radius = radii[k]
        return tried[k]

    def _published(self, path: Trajectory, scheme: Scheme) -> Trajectory | None:
        """A program at every step over what is left of the horizon (S3 Alg. 1, lines 6 to 9)."""
        parts, model = self.parts, self.task.model
        local = parts.linearize(path, scheme, self.rng)
        center, radius = self._center(path), parts.boxes[0]
        dynamics = parts.dynamics(scheme)
        q, commands = [self.start], []
        for t in range(self.options.horizon):
            now = q[-1]
            # the first move counts from where the robot is, as in the authors' code
            before = np.asarray(model.command_from(now))
            shift = parts.difference(now, path.q[t])
            policy = parts.solve(local, path, center, radius, before, t, shift)
            command = path.u[t] if policy is None else policy.u[0]
            commands.append(command)
            parts.counts.steps += 1
            q.append(step(self.task.model, now, command, dynamics).q_next)
        self.radius = float(radius.max())
        u, states = np.array(commands), np.array(q)
        cost, final = parts.cost.values(states, u, self.before)
        return Trajectory(states, u, float(cost), float(final))
