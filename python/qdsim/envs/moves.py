"""Effects of actions: pushes by a sampler's parameters, or changes of the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batches.rollouts import checked_rollout
from qdsim.envs.laws import Law, laws_of
from qdsim.envs.options import EnvOptions
from qdsim.model import Model
from qdsim.planning.grasps.samplers import placed, strokes
from qdsim.planning.task.space import as_slice
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["Commands", "Course", "Moved", "Moves", "holder", "moves_of"]

Drawn: TypeAlias = NDArray[np.intp]
"""Indices (n,) into `Moves.laws`, the law of each episode."""


@dataclasses.dataclass(frozen=True)
class Moved:
    """The result of an action.

    Configurations (n, nq) and velocities (n, nv) (zero with quasi-dynamic steps), the last commands
    (n, nu), which failed (n,) and which did not move (n,), because the sampler's parameters gave no
    grasp; and the configurations (n, nq) at the beginning.
    """

    q: Array
    v: Array
    command: Array
    failed: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    placed: Array


@dataclasses.dataclass(frozen=True)
class Course:
    """The meaning of an action: initial configurations (n, nq), commands (n, steps, nu), and which
    of them are moves (n,)."""

    begin: Array
    u: Array
    good: NDArray[np.bool_]


class Moves(Protocol):
    """Actions of one kind; `size` numbers in [-1, 1] each.

    `laws`: the steps, one law for each kind of contacts that episodes draw from. `in_world`:
    whether effects depend on the world pose of the object; strokes relative to the object, by a
    robot that reaches everywhere, do not. `holding`: the commands of configurations (`holder`).
    """

    size: int
    in_world: bool
    holding: Callable[[Array], Array]
    laws: tuple[Law, ...]

    def course(self, q: Array, action: Array) -> Course:
        """Compute the meaning of actions (n, size) in configurations (n, nq)."""
        ...

    def __call__(
        self,
        q: Array,
        action: Array,
        parameters: Mapping[str, Array],
        drawn: Drawn | None = None,
        v: Array | None = None,
    ) -> Moved:
        """Execute actions (n, size) in configurations (n, nq).

        ``parameters`` (n, ...) are those of the model. ``drawn`` (n,) are indices into `laws`; None
        is the first. ``v`` (n, nv) are initial velocities; None is at rest.
        """
        ...


def moves_of(task: Task, options: EnvOptions) -> Moves:
    """Create the moves of the action kind in the options.

    Raises:
        ValueError: for pushes of a task whose sampler takes no parameters.
    """
    return _Pushes(task, options) if options.action == "push" else Commands(task, options)


def holder(model: Model) -> Callable[[Array], Array]:
    """Return `Model.command_from` for valid configurations (n, nq) without its checks: (n, nu), possibly a view."""
    if not model._plain_commands:
        return model._command_at
    gear = np.array(model.actuator_gear)
    return _Columns(as_slice(np.asarray(model.actuated_q)), None if (gear == 1.0).all() else gear)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Selects columns of configurations (n, nq) and multiplies them by gears; it can be copied and pickled."""

    columns: Any
    gear: Array | None

    def __call__(self, q: Array) -> Array:
        found = np.asarray(q[:, self.columns])
        return found if self.gear is None else found * self.gear


def _scale(task: Task, options: EnvOptions) -> float:
    if options.scale is not None:
        return options.scale
    return 0.2 if task.planner is None else float(np.max(task.planner.step))


class Commands:
    """Actions that change the command, relative to the robot's position, by a bounded amount."""

    in_world = True

    def __init__(self, task: Task, options: EnvOptions) -> None:
        self.task, self.options = task, options
        self.laws = laws_of(task, options.dynamics, options.contacts)
        self.size = task.model.nu
        self.holding = holder(task.model)
        self.scale = _scale(task, options)
        self.steps = options.sub_steps or 1

    def course(self, q: Array, action: Array) -> Course:
        """Compute commands from actions (n, size) in configurations (n, nq), within the bounds."""
        lower, upper = self.task.command_bounds
        u = self.holding(q) + self.scale * action
        u = np.minimum(np.maximum(u, lower), upper)[:, None]
        if self.steps > 1:
            u = np.repeat(u, self.steps, axis=1)
        return Course(q, u, np.ones(len(q), dtype=bool))

    def __call__(
        self,
        q: Array,
        action: Array,
        parameters: Mapping[str, Array],
        drawn: Drawn | None = None,
        v: Array | None = None,
    ) -> Moved:
        """Execute actions; see `Moves.__call__`."""
        course = self.course(q, action)
        after, speed, ok = _rolled(self, q, _or_rest(self.task, q, v), course.u, parameters, drawn)
        return Moved(after, speed, course.u[:, -1], ~ok, np.zeros(len(q), dtype=bool), q)

    def meaning(self, q: Array, u: Array) -> Array:
        """Return the actions (n, nu) whose commands at q (n, nq) are u (n, nu), or nearest to these."""
        return np.clip((u - self.task.model.command_from(q)) / self.scale, -1.0, 1.0)


class _Pushes:
    def __init__(self, task: Task, options: EnvOptions) -> None:
        sampler = task.sampler
        if sampler is None or not hasattr(sampler, "parameters"):
            kind = "none" if sampler is None else type(sampler).__name__
            raise ValueError(
                f"action: 'push' needs a sampler with parameters (its `parameters` and `place`), the task has {kind}"
            )
        self.task, self.options, self.sampler = task, options, sampler
        self.laws = laws_of(task, options.dynamics, options.contacts)
        self.holding = holder(task.model)
        self.place_size = int(sampler.parameters)
        self.stroke_size = int(getattr(sampler, "stroke_parameters", task.model.nu))
        self.size = self.place_size + self.stroke_size
        self.in_world = bool(getattr(sampler, "in_world", not hasattr(sampler, "stroke")))
        self.scale = _scale(task, options)
        self.steps = options.sub_steps or 4

    def course(self, q: Array, action: Array) -> Course:
        """Compute grasps and strokes from actions (n, size) in configurations (n, nq)."""
        task = self.task
        lower, upper = task.command_bounds
        where, how = action[:, : self.place_size], action[:, self.place_size :]
        begin, good = placed(self.sampler, task.grasping_model, q, where)
        command = self.holding(begin)
        good &= ((command >= lower - 1e-9) & (command <= upper + 1e-9)).all(axis=1)
        change = strokes(self.sampler, task.model, begin, where, how)
        if change is None:
            change = self.scale * how
        ramp = np.arange(1, self.steps + 1) / self.steps
        u = command[:, None] + ramp[:, None] * change[:, None]
        return Course(begin, np.minimum(np.maximum(u, lower), upper), good)

    def __call__(
        self,
        q: Array,
        action: Array,
        parameters: Mapping[str, Array],
        drawn: Drawn | None = None,
        v: Array | None = None,
    ) -> Moved:
        """Execute actions; see `Moves.__call__`."""
        course = self.course(q, action)
        after, failed = q.copy(), np.zeros(len(q), dtype=bool)
        speed = _or_rest(self.task, q, v).copy()
        rows = np.flatnonzero(course.good)
        if len(rows):
            own = {name: values[rows] for name, values in parameters.items()}
            of_rows = None if drawn is None else drawn[rows]
            begin = course.begin[rows]
            after[rows], speed[rows], ok = _rolled(
                self, begin, _or_rest(self.task, begin), course.u[rows], own, of_rows
            )
            failed[rows] = ~ok
        good = course.good[:, None]
        command = np.where(good, course.u[:, -1], self.holding(q))
        placed = np.where(good, course.begin, q)
        return Moved(after, speed, command, failed, ~course.good, placed)


def _or_rest(task: Task, q: Array, v: Array | None = None) -> Array:
    """Return velocities (n, nv) for configurations (n, nq), zero by default."""
    return np.zeros((len(q), task.model.nv)) if v is None else v


def _rolled(
    moves: Commands | _Pushes,
    q: Array,
    v: Array,
    u: Array,
    parameters: Mapping[str, Array],
    drawn: Drawn | None,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Roll out commands (n, steps, nu) from q (n, nq) and v (n, nv), with one call of the core for
    each contact law.

    It returns final configurations, final velocities, and whether all steps succeeded (n,).
    """
    threads = moves.options.threads
    if drawn is None or len(moves.laws) == 1:
        return _rolled_by(moves.laws[0], q, v, u, parameters, threads)
    after, speed, good = np.empty_like(q), np.empty_like(v), np.empty(len(q), dtype=bool)
    for i, law in enumerate(moves.laws):
        rows = np.flatnonzero(drawn == i)
        if len(rows):
            own = {name: values[rows] for name, values in parameters.items()}
            after[rows], speed[rows], good[rows] = _rolled_by(
                law, q[rows], v[rows], u[rows], own, threads
            )
    return after, speed, good


def _rolled_by(
    law: Law, q: Array, v: Array, u: Array, parameters: Mapping[str, Array], threads: int
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Roll out commands as in `_rolled`, with a single law."""
    second = not isinstance(law.options, Options)
    held = np.repeat(u, law.steps, axis=1) if second else u
    after, speed, done = checked_rollout(
        law.model, q, v if second else None, held, law.options, parameters, threads=threads
    )
    good = done == held.shape[1]
    return after[:, -1], v if speed is None else speed[:, -1], good
