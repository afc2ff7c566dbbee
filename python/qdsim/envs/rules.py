"""A task as a game for many players at once: starts and goals, moves, rewards and ends."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.envs.features import Goals, Viewer
from qdsim.envs.moves import Moved, moves_of
from qdsim.envs.options import EnvOptions
from qdsim.envs.streams import uniforms
from qdsim.planning.task.task import Task

__all__ = ["Ended", "Players", "Rules"]

_LOOKS = 256
"""Samples that decide which columns of an observation ever change."""


@dataclasses.dataclass
class Players:
    """Episodes under way; (n, ...) each."""

    q: Array
    goals: Goals
    command: Array
    action: Array
    actions_done: NDArray[np.int64]
    potential: Array
    parameters: dict[str, Array]

    def put(self, rows: NDArray[np.intp], other: Players) -> None:
        """Other players in place of these rows."""
        self.goals.put(rows, other.goals)
        for name in ("q", "command", "action", "actions_done", "potential"):
            getattr(self, name)[rows] = getattr(other, name)
        for name, values in other.parameters.items():
            self.parameters[name][rows] = values


@dataclasses.dataclass(frozen=True)
class Ended:
    """What an action brought, (n,) each."""

    reward: Array
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    success: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    shift: Array
    turn: Array

    def info(self) -> dict[str, Array | NDArray[np.bool_]]:
        """What people look at."""
        names = ("success", "failed", "lost", "refused", "shift", "turn")
        return {name: getattr(self, name) for name in names}


class Rules:
    """Of a task with these options; changes nothing of its own once it is made.

    Attributes:
        action_size, observation_size: numbers of an action and of an observation.
    """

    def __init__(self, task: Task, options: EnvOptions) -> None:
        self.task = instance("task", task, Task)
        self.options = instance("options", options, EnvOptions)
        self.moves = moves_of(task, options)
        self.viewer = Viewer(
            task, self.moves.in_world, options.action == "command", options.threads
        )
        self.action_size = self.moves.size
        self.horizon = options.horizon or (40 if options.action == "push" else 64)
        box = (task.upper - task.lower)[~task.space.rotation]
        reach = float(np.linalg.norm(box)) + 4.0 * task.length
        self.lost = reach if options.lost is None else options.lost
        self._start_pos = self.viewer.poses(task.start[None]).pos[0, self.viewer.body]
        self._pool = self._drawn_pool()
        seeds = np.arange(_LOOKS, dtype=np.uint64)
        looks = self.draw(seeds, np.zeros(_LOOKS, dtype=np.uint64))
        rng = np.random.default_rng(0)
        actions = rng.uniform(-1.0, 1.0, (_LOOKS, self.action_size))
        moved = self.moves(looks.q, actions, looks.parameters)
        self.viewer.keep_what_changes(moved.q, looks.goals.q, moved.command, actions)
        self.observation_size = self.observe(looks).shape[1]

    # ------------------------------------------------------------ episodes

    def _drawn_pool(self) -> Array:
        """Starts (pool, nq), all of the task's where there is no sampler."""
        task, options = self.task, self.options
        if options.start == "task" or task.sampler is None:
            return np.array(task.start)[None]
        rng = np.random.default_rng([options.pool_seed, 0x5E47])
        found: list[Array] = []
        tries = 0
        while len(found) < options.pool and tries < 20 * options.pool:
            tries += 1
            pose = task.with_object(task.start, rng.uniform(task.lower, task.upper))
            grasp = task.grasp(pose, rng)
            if grasp is not None:
                found.append(grasp)
        if not found:
            raise ValueError(
                "start: the task's sampler finds no grasp anywhere in its box; use start='task'"
            )
        return np.array(found)

    def draw(self, seeds: NDArray[np.uint64], episodes: NDArray[np.uint64]) -> Players:
        """Players (n) of seeds (n,) at the beginning of episodes (n,)."""
        task, options, model = self.task, self.options, self.task.model
        size = task.space.size
        numbers = uniforms(seeds, episodes, 3 + size + len(options.randomize))
        q = self._pool[(numbers[:, 0] * len(self._pool)).astype(np.intp)].copy()
        if options.goal == "task":
            goal = np.repeat(task.goal[None], len(q), axis=0)
        else:
            place = task.lower + numbers[:, 3 : 3 + size] * (task.upper - task.lower)
            goal = displaced(task, task.start, place)
            if options.near is not None:
                share = np.where(numbers[:, 1] < 0.5, numbers[:, 2] ** options.near, 1.0)
                way = task.space.difference(goal.T, q.T).T
                goal = np.where(
                    (share < 1.0)[:, None], displaced(task, q, share[:, None] * way), goal
                )
        parameters = {}
        for k, (name, (low, high)) in enumerate(options.randomize.items()):
            factor = low + numbers[:, 3 + size + k] * (high - low)
            values = np.asarray(getattr(model.parameters, name))
            parameters[name] = factor.reshape(-1, *(1,) * values.ndim) * values
        return self.begin(q, goal, parameters)

    def begin(self, q: Array, goal: Array, parameters: dict[str, Array]) -> Players:
        """Players at the beginning of episodes from q (n, nq) to goals (n, nq), with parameters of the model (n, ...)."""
        players = Players(
            q=q,
            goals=self.viewer.goals(goal),
            command=self.task.model.command_from(q),
            action=np.zeros((len(q), self.action_size)),
            actions_done=np.zeros(len(q), dtype=np.int64),
            potential=np.zeros(len(q)),
            parameters=parameters,
        )
        players.potential = self._potential(players, *self.viewer.errors(q, goal))
        return players

    def observe(self, players: Players) -> Array:
        """(n, observation_size)"""
        return self.viewer.observe(players.q, players.goals, players.command, players.action)

    # ------------------------------------------------------------ actions

    def play(self, players: Players, action: Array) -> Ended:
        """Acts (n, action_size) in [-1, 1], and changes the players."""
        moved = self.moves(players.q, action, players.parameters)
        return self._settle(players, action, moved)

    def _settle(self, players: Players, action: Array, moved: Moved) -> Ended:
        task, options = self.task, self.options
        players.q, players.command, players.action = moved.q, moved.command, action
        players.actions_done += 1
        shift, turn = self.viewer.errors(players.q, players.goals.q)
        success = (shift <= task.position_tolerance) & (turn <= task.rotation_tolerance)
        pos = self.viewer.poses(players.q).pos[:, self.viewer.body]
        lost = ~(np.linalg.norm(pos - self._start_pos, axis=1) <= self.lost)
        success &= ~moved.failed & ~lost
        potential = self._potential(players, shift, turn)
        reward = potential - players.potential + options.success * success
        if options.action == "push":
            reward -= options.push_cost
        reward -= options.failure * (lost | moved.failed)
        players.potential = potential
        terminated = success | lost | moved.failed
        truncated = ~terminated & (players.actions_done >= self.horizon)
        return Ended(
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            success=success,
            failed=moved.failed,
            lost=lost,
            refused=moved.refused,
            shift=shift,
            turn=turn,
        )

    def _potential(self, players: Players, shift: Array, turn: Array) -> Array:
        task = self.task
        error = np.sqrt(shift**2 + (task.length * turn) ** 2)
        found = -error / task.length - np.log1p(error / task.position_tolerance)
        if self.options.action == "command" and self.options.reach > 0.0 and self.viewer.tips:
            poses = self.viewer.poses(players.q)
            away = poses.pos[:, self.viewer.tips] - poses.pos[:, [self.viewer.body]]
            far = np.linalg.norm(away, axis=2).mean(axis=1) / task.length
            found -= self.options.reach * np.maximum(0.0, far - 1.2)
        return np.asarray(found)


def displaced(task: Task, q: Array, displacement: Array) -> Array:
    """Configurations (n, nq) or one (nq,) with the object displaced by tangent vectors (n, size), m and rad."""
    v = np.zeros((len(displacement), task.model.nv))
    v[:, task.space.v] = displacement
    return np.array(
        [task.model.integrate(a, b) for a, b in zip(np.broadcast_to(q, (len(v), len(q.T))), v)]
    )


def checked(action: Any, shape: tuple[int, ...]) -> Array:
    """Actions of this shape, clipped to [-1, 1].

    Raises:
        TypeError, ValueError: naming what is wrong.
    """
    array = np.asarray(action)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"action: expected real numbers, got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"action: expected shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        index = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
        raise ValueError(f"action: element {index} is {array[tuple(index)]}")
    return np.clip(array.astype(np.float64), -1.0, 1.0)
