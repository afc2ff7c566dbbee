"""A task as a game for many players at once: starts and goals, moves, rewards and ends."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from qdsim import _core
from qdsim.arguments import instance, reals
from qdsim.array_type import Array
from qdsim.envs.draws import Draws
from qdsim.envs.features import Goals, Look, Viewer
from qdsim.envs.goals import GoalCoordinates, of_infos
from qdsim.envs.moves import Moved, moves_of
from qdsim.envs.options import EnvOptions
from qdsim.envs.streams import uniforms
from qdsim.planning.task.task import Task

__all__ = ["Ended", "Players", "Rules"]

_FARTHEST = 1e9
"""m, of a goal: farther ones leave no digits for where the object is."""
_SUCCESS = 5.0
"""Shaped reward for reaching the goal."""
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
    seen: Array
    parameters: dict[str, Array]
    contacts: NDArray[np.intp]

    def put(self, rows: NDArray[np.intp], other: Players) -> None:
        """Other players in place of these rows."""
        self.goals.put(rows, other.goals)
        for name in ("q", "command", "action", "actions_done", "potential", "seen", "contacts"):
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
    actions: NDArray[np.int64]

    def info(self) -> dict[str, Array | NDArray[np.bool_]]:
        """What people look at."""
        names = ("success", "failed", "lost", "refused", "shift", "turn", "actions")
        return {name: getattr(self, name) for name in names}


class Rules:
    """Of a task with these options; changes nothing of its own once it is made.

    Attributes:
        action_size, observation_size: numbers of an action and of an observation, goals included.
        goal: what goals are in numbers.
        observation_space, action_space: Gymnasium's.
    """

    def __init__(self, task: Task, options: EnvOptions) -> None:
        self.task = instance("task", task, Task)
        self.options = instance("options", options, EnvOptions)
        _check_goal(task)
        self._draws = Draws(task.model, options.randomize)
        self.moves = moves_of(task, options)
        self.action_size = self.moves.size
        self.goal = GoalCoordinates(task)
        self.viewer = Viewer(
            task,
            with_world=self.moves.in_world or options.observation == "goal",
            with_robot=options.action == "command",
            with_goal=options.observation == "flat",
            more=task.model.nu + self.action_size,
            threads=options.threads,
        )
        self.horizon = options.horizon or (40 if options.action == "push" else 64)
        box = (task.upper - task.lower)[~task.space.rotation]
        reach = float(np.linalg.norm(box)) + 4.0 * task.length
        self.lost = reach if options.lost is None else options.lost
        self._cost = options.push_cost if options.action == "push" else 0.0
        self._pool = self._drawn_pool()
        seeds = np.arange(_LOOKS, dtype=np.uint64)
        looks = self.draw(seeds, np.zeros(_LOOKS, dtype=np.uint64))
        rng = np.random.default_rng(0)
        actions = rng.uniform(-1.0, 1.0, (_LOOKS, self.action_size))
        moved = self.moves(looks.q, actions, looks.parameters, looks.contacts)
        told = self.told(moved.q, moved.command, actions)
        self.viewer.keep_what_changes(moved.q, looks.goals, told)
        own, goals = len(self.viewer.names), len(self.goal.names)
        self.action_space = Box(-1.0, 1.0, (self.action_size,), np.float64)
        self._parts = {"observation": slice(0, own)}
        if options.observation == "goal":
            self._parts["achieved_goal"] = slice(own, own + goals)
            self._parts["desired_goal"] = slice(own + goals, own + 2 * goals)
        boxes = {
            name: Box(-np.inf, np.inf, (part.stop - part.start,), np.float64)
            for name, part in self._parts.items()
        }
        self.observation_size = own + 2 * goals * (options.observation == "goal")
        self.observation_space = Dict(boxes) if len(boxes) > 1 else boxes["observation"]

    # ------------------------------------------------------------ episodes

    def _drawn_pool(self) -> Array:
        """Starts (pool, nq), all of the task's where there is no sampler."""
        task, options = self.task, self.options
        if options.start == "task" or task.sampler is None:
            return np.array(task.start)[None]
        rng = np.random.default_rng([0, 0x5E47])
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

    def draw(
        self,
        seeds: NDArray[np.uint64],
        episodes: NDArray[np.uint64],
        given: Mapping[str, Array] | None = None,
    ) -> Players:
        """Players (n) of seeds (n,) at the beginning of episodes (n,); "q" and "goal" (n, nq) as they are given."""
        task, options = self.task, self.options
        size = task.space.size
        last, kinds = 3 + size + len(self._draws), len(self.moves.contacts)
        numbers = uniforms(seeds, episodes, last + 1)
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
        given = given or {}
        q, goal = given.get("q", q), given.get("goal", goal)
        contacts = (numbers[:, last] * kinds).astype(np.intp)
        return self.begin(q, goal, self._draws(numbers[:, 3 + size : last]), contacts)

    def placed(self, options: object, count: int | None = None) -> dict[str, Array]:
        """Configurations of ``reset(options={"q": ..., "goal": ...})``: (nq,), or (count, nq) of a vector.

        Raises:
            TypeError: if the options are no dictionary.
            ValueError: for a key that means nothing here, and naming one whose configurations are not as described.
        """
        if options is None:
            return {}
        if not isinstance(options, dict):
            raise TypeError(f"options: expected a dictionary or None, got {type(options).__name__}")
        known = ("q", "goal") if count is None else ("q", "goal", "reset_mask")
        for key in options:
            if key not in known:
                raise ValueError(f"options: expected keys among {', '.join(known)}, got {key!r}")
        found = {}
        for key in ("q", "goal"):
            if options.get(key) is not None:
                found[key] = self._configurations(f"options[{key!r}]", options[key], count)
        return found

    def _configurations(self, name: str, value: Any, count: int | None) -> Array:
        """(nq,), or (count, nq) that one may stand for; quaternions are made unit ones."""
        model, array = self.task.model, reals(name, value)
        shapes = [(model.nq,)] if count is None else [(model.nq,), (count, model.nq)]
        if array.shape not in shapes or not np.isfinite(array).all():
            wanted = " or ".join(str(shape) for shape in shapes)
            raise ValueError(f"{name}: expected finite numbers {wanted}, got shape {array.shape}")
        q = np.array(np.broadcast_to(array, shapes[-1]))
        q = np.array([model.normalize(row) for row in q.reshape(-1, model.nq)]).reshape(q.shape)
        shifts = [
            self.task.space.errors(self.task.start, row)[0] for row in q.reshape(-1, model.nq)
        ]
        if not max(shifts) < _FARTHEST:
            raise ValueError(
                f"{name}: expected the object within {_FARTHEST:g} m of the task's start"
            )
        return q

    def begin(
        self,
        q: Array,
        goal: Array,
        parameters: dict[str, Array],
        contacts: NDArray[np.intp] | None = None,
    ) -> Players:
        """Players at the beginning of episodes from q (n, nq) to goals (n, nq), with parameters of the model (n, ...)
        and contacts (n,), indices into those of the moves; None: the first."""
        goals, command = self.viewer.goals(goal), self.task.model.command_from(q)
        action = np.zeros((len(q), self.action_size))
        look = self._looked(q, goals, self.told(q, command, action))
        return Players(
            q=q,
            goals=goals,
            command=command,
            action=action,
            actions_done=np.zeros(len(q), dtype=np.int64),
            potential=look.potential.copy(),
            seen=look.seen,
            parameters=parameters,
            contacts=np.zeros(len(q), np.intp) if contacts is None else contacts,
        )

    def observe(self, players: Players) -> Array:
        """(n, observation_size), also of players that someone has changed."""
        return self.look(players).seen

    def look(self, players: Players) -> Look:
        """What players see, and what they are judged by."""
        told = self.told(players.q, players.command, players.action)
        return self._looked(players.q, players.goals, told)

    def _looked(self, q: Array, goals: Goals, told: Array) -> Look:
        look = self.viewer.look(q, goals, told)
        if self.options.observation == "flat":
            return look
        ends = self.goal.of(q), self.goal.of(goals.q)
        return look._replace(seen=np.concatenate((look.seen, *ends), axis=1))

    def shown(self, seen: Array) -> Any:
        """Observations (..., observation_size) as agents get them, copied: an array, or a dictionary of these."""
        if len(self._parts) == 1:
            return seen.copy()
        return {name: seen[..., part].copy() for name, part in self._parts.items()}

    def told(self, q: Array, command: Array, action: Array) -> Array:
        """How far commands (n, nu) are past the joints, and actions (n, m)."""
        if not self.viewer.more:
            return action
        return np.concatenate((command - self.moves.holding(q), action), axis=1)

    # ------------------------------------------------------------ rewards of goals

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Rewards (...) of goals (..., g) that were reached instead of others; infos as of `of_infos`."""
        if self.options.reward == "shaped":
            raise ValueError(
                "compute_reward: a shaped reward depends on where the object was before; use reward='sparse' or 'dense'"
            )
        shift, turn = self._goal_errors(achieved_goal, desired_goal)
        ended = _is_over(info, shift.shape)
        return self._reward(shift, turn, ended)[()]

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Whether episodes end there: at the goal, or with the object lost or a step failed."""
        shift, turn = self._goal_errors(achieved_goal, desired_goal)
        ended = _is_over(info, shift.shape)
        return (ended | self._is_reached(shift, turn))[()]

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Whether episodes end by their length and nothing else."""
        ended = np.asarray(self.compute_terminated(achieved_goal, desired_goal, info))
        return (~ended & (of_infos(info, "actions", ended.shape) >= self.horizon))[()]

    def _goal_errors(self, achieved: Any, desired: Any) -> tuple[Array, Array]:
        a, b = (
            self.goal.checked("achieved_goal", achieved),
            self.goal.checked("desired_goal", desired),
        )
        if a.shape != b.shape:
            raise ValueError(f"desired_goal: expected shape {a.shape}, got {b.shape}")
        rows = (x.reshape(-1, len(self.goal.names)) for x in (a, b))
        shift, turn = self.goal.errors(*rows)
        return shift.reshape(a.shape[:-1]), turn.reshape(a.shape[:-1])

    def _is_reached(self, shift: Array, turn: Array) -> NDArray[np.bool_]:
        task = self.task
        return np.logical_and(shift <= task.position_tolerance, turn <= task.rotation_tolerance)

    def _reward(self, shift: Array, turn: Array, ended: NDArray[np.bool_]) -> Array:
        """Sparse or dense, of distances and angles from the goal; an end without it is a whole horizon there."""
        task = self.task
        if self.options.reward == "sparse":
            reward = np.where(self._is_reached(shift, turn) & ~ended, 0.0, -1.0)
        else:
            error = np.hypot(shift, task.length * turn)
            reward = -error / task.length - np.log1p(error / task.position_tolerance)
        return np.where(ended, self.horizon, 1.0) * reward

    # ------------------------------------------------------------ actions

    def play(self, players: Players, action: Array) -> Ended:
        """Acts (n, action_size) in [-1, 1], and changes the players."""
        moved = self.moves(players.q, action, players.parameters, players.contacts)
        return self._settle(players, action, moved)

    def _settle(self, players: Players, action: Array, moved: Moved) -> Ended:
        options = self.options
        players.q, players.command, players.action = moved.q, moved.command, action
        players.actions_done += 1
        look = self.look(players)
        reward, terminated, truncated, success, lost = _core._judge(
            look.judged,
            players.potential,
            moved.failed,
            players.actions_done,
            _SUCCESS,
            options.failure,
            self._cost,
            self.lost,
            self.horizon,
        )
        players.potential, players.seen = look.potential.copy(), look.seen
        if options.reward != "shaped":
            ends = (self.goal.of(q) for q in (players.q, players.goals.q))
            reward = self._reward(*self.goal.errors(*ends), lost | moved.failed)
        return Ended(
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            success=success,
            failed=moved.failed,
            lost=lost,
            refused=moved.refused,
            shift=look.shift,
            turn=look.turn,
            actions=players.actions_done.copy(),
        )


def displaced(task: Task, q: Array, displacement: Array) -> Array:
    """Configurations (n, nq) or one (nq,) with the object displaced by tangent vectors (n, size), m and rad."""
    v = np.zeros((len(displacement), task.model.nv))
    v[:, task.space.v] = displacement
    return np.array(
        [task.model.integrate(a, b) for a, b in zip(np.broadcast_to(q, (len(v), len(q.T))), v)]
    )


def _is_over(info: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether infos say that the object was lost, or a step failed."""
    return np.logical_or(of_infos(info, "lost", shape), of_infos(info, "failed", shape))


def _check_goal(task: Task) -> None:
    """Rewards are differences of distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        shift, _ = task.errors(task.start)
    if not shift < _FARTHEST:
        raise ValueError(
            f"task: expected a goal within {_FARTHEST:g} m of its start, got one {shift:g} m away"
        )


def checked(action: Any, shape: tuple[int, ...], name: str = "action") -> Array:
    """Actions of this shape, clipped to [-1, 1]; `name`: of what gave them.

    Raises:
        TypeError, ValueError: naming what is wrong.
    """
    try:
        array = np.asarray(action)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{name}: expected shape {shape}, got rows of different lengths") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    given = np.array(array, np.float64)
    # a sum of squares is not finite where an element is not, and seldom else: one pass instead of three
    if not math.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
        index = [int(i) for i in np.argwhere(~np.isfinite(given))[0]]
        raise ValueError(f"{name}: element {index} is {array[tuple(index)]}")
    np.minimum(given, 1.0, out=given)
    return np.maximum(given, -1.0, out=given)
