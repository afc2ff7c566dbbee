"""What actions do: pushes by a sampler's parameters, or changes of the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batches.rollouts import checked_rollout
from qdsim.envs.options import EnvOptions
from qdsim.model import Model
from qdsim.planning.grasps.samplers import placed, strokes
from qdsim.planning.task.space import as_slice
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["Commands", "Course", "Moved", "Moves", "holder", "moves_of", "step_options"]

Drawn: TypeAlias = NDArray[np.intp]
"""(n,) indices into `Moves.contacts`."""


@dataclasses.dataclass(frozen=True)
class Moved:
    """After an action: configurations (n, nq), the last commands (n, nu), which failed (n,) and which were no move
    (n,), since the sampler's parameters gave no grasp; and the configurations (n, nq) where each began.
    """

    q: Array
    command: Array
    failed: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    placed: Array


@dataclasses.dataclass(frozen=True)
class Course:
    """What an action means, before it is done: configurations (n, nq) that it begins in, commands (n, steps, nu), and
    which of them are moves (n,).
    """

    begin: Array
    u: Array
    good: NDArray[np.bool_]


class Moves(Protocol):
    """Actions of one kind; `size` numbers in [-1, 1] each.

    `contacts`: options of steps, one for each kind of contacts that episodes draw from.

    `in_world`: whether what they do depends on where in the world the object is; strokes that are told relative to it,
    by a robot that reaches everywhere, do not. `holding`: the commands of configurations (`holder`).
    """

    size: int
    in_world: bool
    holding: Callable[[Array], Array]
    contacts: tuple[Options, ...]

    def course(self, q: Array, action: Array) -> Course:
        """Of actions (n, size) in configurations (n, nq)."""
        ...

    def __call__(
        self, q: Array, action: Array, parameters: Mapping[str, Array], drawn: Drawn | None = None
    ) -> Moved:
        """The same, done with parameters of the model (n, ...) and contacts that were drawn (n,), indices into
        `contacts`; None: the first."""
        ...


def moves_of(task: Task, options: EnvOptions) -> Moves:
    """The moves that the options name.

    Raises:
        ValueError: for pushes of a task whose sampler takes no parameters.
    """
    return _Pushes(task, options) if options.action == "push" else Commands(task, options)


def step_options(task: Task, options: EnvOptions) -> tuple[Options, ...]:
    """The task's options with each of the contacts that episodes draw from; contacts as MuJoCo's have cones.

    Raises:
        ValueError: for MuJoCo's contacts where the task's options have Coulomb's law, or a stiffness of contacts.
    """
    words = options.contacts
    if words is None:
        return (task.options,)
    found = []
    for word in (words,) if isinstance(words, str) else words:
        changes = {"friction": "cone"} if word == "mujoco" else {}
        found.append(task.options.replace(contacts=word, **changes))
    return tuple(found)


def holder(model: Model) -> Callable[[Array], Array]:
    """`Model.command_from` (n, nu) of configurations (n, nq) that are known to be right: its checks cost more than
    it. What it returns may be a view."""
    if not model._plain_commands:
        return model._command_at
    gear = np.array(model.actuator_gear)
    return _Columns(as_slice(np.asarray(model.actuated_q)), None if (gear == 1.0).all() else gear)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Columns of configurations (n, nq), times gears; a function that can be copied and pickled."""

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
    """The robot where it is, plus a bounded change."""

    in_world = True

    def __init__(self, task: Task, options: EnvOptions) -> None:
        self.task, self.options = task, options
        self.contacts = step_options(task, options)
        self.size = task.model.nu
        self.holding = holder(task.model)
        self.scale = _scale(task, options)
        self.steps = options.sub_steps or 1

    def course(self, q: Array, action: Array) -> Course:
        """Of actions (n, size) in configurations (n, nq)."""
        lower, upper = self.task.command_bounds
        u = self.holding(q) + self.scale * action
        u = np.minimum(np.maximum(u, lower), upper)[:, None]
        if self.steps > 1:
            u = np.repeat(u, self.steps, axis=1)
        return Course(q, u, np.ones(len(q), dtype=bool))

    def __call__(
        self, q: Array, action: Array, parameters: Mapping[str, Array], drawn: Drawn | None = None
    ) -> Moved:
        """The same, done."""
        course = self.course(q, action)
        after, ok = _rolled(self, q, course.u, parameters, drawn)
        return Moved(after, course.u[:, -1], ~ok, np.zeros(len(q), dtype=bool), q)

    def meaning(self, q: Array, u: Array) -> Array:
        """The actions (n, nu) that mean commands u (n, nu) at q (n, nq), or come nearest to them."""
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
        self.contacts = step_options(task, options)
        self.holding = holder(task.model)
        self.place_size = int(sampler.parameters)
        self.stroke_size = int(getattr(sampler, "stroke_parameters", task.model.nu))
        self.size = self.place_size + self.stroke_size
        self.in_world = not hasattr(sampler, "stroke")
        self.scale = _scale(task, options)
        self.steps = options.sub_steps or 4

    def course(self, q: Array, action: Array) -> Course:
        """Of actions (n, size) in configurations (n, nq)."""
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
        self, q: Array, action: Array, parameters: Mapping[str, Array], drawn: Drawn | None = None
    ) -> Moved:
        """The same, done."""
        course = self.course(q, action)
        after, failed = q.copy(), np.zeros(len(q), dtype=bool)
        rows = np.flatnonzero(course.good)
        if len(rows):
            own = {name: values[rows] for name, values in parameters.items()}
            of_rows = None if drawn is None else drawn[rows]
            after[rows], ok = _rolled(self, course.begin[rows], course.u[rows], own, of_rows)
            failed[rows] = ~ok
        good = course.good[:, None]
        command = np.where(good, course.u[:, -1], self.holding(q))
        return Moved(after, command, failed, ~course.good, np.where(good, course.begin, q))


def _rolled(
    moves: Commands | _Pushes,
    q: Array,
    u: Array,
    parameters: Mapping[str, Array],
    drawn: Drawn | None,
) -> tuple[Array, NDArray[np.bool_]]:
    """Where commands (n, steps, nu) lead from q (n, nq), and which (n,) had no failed step; a call of the core for each
    kind of contacts."""
    model, threads = moves.task.model, moves.options.threads
    if drawn is None or len(moves.contacts) == 1:
        return checked_rollout(model, q, u, moves.contacts[0], parameters, threads=threads)
    after, good = np.empty_like(q), np.empty(len(q), dtype=bool)
    for i, options in enumerate(moves.contacts):
        rows = np.flatnonzero(drawn == i)
        if len(rows):
            own = {name: values[rows] for name, values in parameters.items()}
            after[rows], good[rows] = checked_rollout(
                model, q[rows], u[rows], options, own, threads=threads
            )
    return after, good
