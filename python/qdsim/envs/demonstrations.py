"""Demonstrations by a greedy teacher: of many random moves the best one, again and again.

Random trees make poor teachers as they are: they follow random subgoals, so their commands are no function of state and
goal. The best of K moves is one.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import integer
from qdsim.array_type import Array
from qdsim.envs.features import Goals
from qdsim.envs.options import EnvOptions
from qdsim.envs.rules import Rules
from qdsim.planning.task.task import Task
from qdsim.whole_files import replacing

__all__ = ["Demonstrations", "demonstrations", "greedy"]


@dataclasses.dataclass(frozen=True, eq=False)
class Demonstrations:
    """What a teacher did, episode after episode.

    Attributes:
        observations: ``(n, k)`` before every action.
        actions: ``(n, m)``.
        episode: ``(n,)`` number of the episode, ascending.
        success: ``(episodes,)`` whether it reached the goal.
    """

    observations: Array
    actions: Array
    episode: NDArray[np.int64]
    success: NDArray[np.bool_]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays under these names as NPZ, whole or not at all."""
        arrays: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        with replacing(path) as file:
            np.savez_compressed(file, **arrays)


def greedy(
    rules: Rules, q: Array, goals: Goals, candidates: int, rng: np.random.Generator
) -> Array:
    """For every player (n) the best of so many random moves (n, action_size): what leaves the object nearest to its goal."""
    task, count = rules.task, len(q)
    action = rng.uniform(-1.0, 1.0, (count * candidates, rules.action_size))
    moved = rules.moves(np.repeat(q, candidates, axis=0), action, {})
    shift, turn = rules.viewer.errors(moved.q, np.repeat(goals.q, candidates, axis=0))
    cost = np.sqrt(shift**2 + (task.length * turn) ** 2)
    cost[moved.failed | moved.refused] = np.inf
    best = cost.reshape(count, candidates).argmin(axis=1)
    return np.asarray(action.reshape(count, candidates, -1)[np.arange(count), best])


def demonstrations(
    task: Task,
    count: int,
    options: EnvOptions | None = None,
    *,
    candidates: int = 128,
    seed: int = 0,
) -> Demonstrations:
    """Episodes of the greedy teacher on a task's problems.

    Args:
        task, options: of the environment.
        count: episodes.
        candidates: random moves that every action is the best of.
        seed: episode i is that of environment i of a `TaskVectorEnv` reset with this seed.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong.
    """
    integer("count", count, least=1)
    integer("candidates", candidates, least=1)
    integer("seed", seed, least=0)
    rules = Rules(task, options or EnvOptions())
    players = rules.draw(np.arange(seed, seed + count, dtype=np.uint64), np.zeros(count, np.uint64))
    rng = np.random.default_rng([seed, 0x9E])
    success, over = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    kept: list[tuple[Array, Array, NDArray[np.intp]]] = []
    for _ in range(rules.horizon):
        rows = np.flatnonzero(~over)
        if len(rows) == 0:
            break
        observation = rules.observe(players)
        goals = Goals(players.goals.q[rows], players.goals.pos[rows], players.goals.rot[rows])
        action = np.zeros((count, rules.action_size))
        action[rows] = greedy(rules, players.q[rows], goals, candidates, rng)
        kept.append((observation[rows], action[rows], rows))
        ended = rules.play(players, action)
        success |= ended.success & ~over
        over |= ended.terminated
    observations, actions, episode = (np.concatenate(column) for column in zip(*kept))
    order = np.argsort(episode, kind="stable")
    return Demonstrations(
        observations[order], actions[order], episode[order].astype(np.int64), success
    )
