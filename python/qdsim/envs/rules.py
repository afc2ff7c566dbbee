"""The rules of a task's environment for many episodes at once: starts and goals, moves, rewards and
ends."""

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
from qdsim.array_type import ROUNDING, Array
from qdsim.envs.draws import Draws
from qdsim.envs.features import Goals, Look, Viewer
from qdsim.envs.goals import GoalCoordinates, of_infos
from qdsim.envs.moves import Moved, moves_of
from qdsim.envs.options import EnvOptions
from qdsim.envs.sensing import Sensed, Sensing
from qdsim.envs.streams import uniforms
from qdsim.envs.touching import Touching
from qdsim.planning.task.task import Task

__all__ = ["Ended", "Players", "Rules"]

_SUCCESS = 5.0
"""Shaped reward for reaching the goal."""
_LOOKS = 256
"""Number of samples by which constant columns of observations are found."""


@dataclasses.dataclass
class Players:
    """Present episodes; (n, ...) each."""

    q: Array
    v: Array
    goals: Goals
    command: Array
    action: Array
    actions_done: NDArray[np.int64]
    potential: Array
    seen: Array
    parameters: dict[str, Array]
    contacts: NDArray[np.intp]
    sensed: Sensed | None

    def put(self, rows: NDArray[np.intp], other: Players) -> None:
        """Replace the players of these rows."""
        self.goals.put(rows, other.goals)
        for name in (
            "q",
            "v",
            "command",
            "action",
            "actions_done",
            "potential",
            "seen",
            "contacts",
        ):
            getattr(self, name)[rows] = getattr(other, name)
        for name, values in other.parameters.items():
            self.parameters[name][rows] = values
        if self.sensed is not None and other.sensed is not None:
            self.sensed.put(rows, other.sensed)


@dataclasses.dataclass(frozen=True)
class Ended:
    """Results of an action, (n,) each."""

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
        """Return the entries of Gymnasium's info."""
        names = ("success", "failed", "lost", "refused", "shift", "turn", "actions")
        return {name: getattr(self, name) for name in names}


class Rules:
    """Rules of a task's environment with given options; immutable.

    Attributes:
        action_size, observation_size: sizes of an action and of an observation, goals included.
        goal: goals as numbers.
        observation_space, action_space: Gymnasium's.
    """

    def __init__(self, task: Task, options: EnvOptions) -> None:
        self.task = instance("task", task, Task)
        self.options = instance("options", options, EnvOptions)
        _check_goal(task)
        self._draws = Draws(task.model, options.randomize)
        self._sensing = Sensing(task, options.randomize)
        self.moves = moves_of(task, options)
        self._touching = Touching(task.model, self.moves, options.sensors, options.threads)
        self._has_velocities = options.dynamics != "quasi_dynamic"
        self.action_size = self.moves.size
        self.goal = GoalCoordinates(task)
        self.viewer = Viewer(
            task,
            with_world=self.moves.in_world or options.observation == "goal",
            with_robot=options.action == "command",
            with_goal=options.observation == "flat",
            actions=self.action_size,
            with_velocities=self._has_velocities,
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
        moved = self.moves(looks.q, actions, looks.parameters, looks.contacts, looks.v)
        told = self.told(moved.q, moved.command, actions, moved.v)
        self.viewer.keep_what_changes(moved.q, looks.goals, told)
        own, goals = self._own, len(self.goal.names)
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

    @property
    def _own(self) -> int:
        """Number of columns of an observation before the goals."""
        return len(self.viewer.names) + self._touching.size

    # ------------------------------------------------------------ episodes

    def _drawn_pool(self) -> Array:
        """Draw the pool of starts (pool, nq); without a sampler it is the task's start."""
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
        """Draw the players (n) at the beginning of episodes (n,) for seeds (n,).

        ``given`` may contain "q", "goal" (n, nq) and "v" (n, nv), which then are not drawn.
        """
        task, options = self.task, self.options
        size = task.space.size
        last, kinds = 3 + size + len(self._draws), len(self.moves.laws)
        numbers = uniforms(seeds, episodes, last + 1 + self._sensing.numbers)
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
        sensed = None
        if self._sensing.numbers:
            sensed = self._sensing.draw(seeds, episodes, numbers[:, last + 1 :])
        parameters = self._draws(numbers[:, 3 + size : last])
        return self.begin(q, goal, parameters, contacts, given.get("v"), sensed)

    def placed(self, options: object, count: int | None = None) -> dict[str, Array]:
        """Return the states in the options of ``reset``: "q" and "goal" (nq,), or (count, nq) for a vector.

        With second-order steps there may be "v", (nv,) or (count, nv).

        Raises:
            TypeError: if the options are no dictionary.
            ValueError: for a key that means nothing here, and naming one whose configurations are not as described.
        """
        if options is None:
            return {}
        if not isinstance(options, dict):
            raise TypeError(f"options: expected a dictionary or None, got {type(options).__name__}")
        known = (
            "q",
            "goal",
            *("v",) * self._has_velocities,
            *("reset_mask",) * (count is not None),
        )
        for key in options:
            if key not in known:
                raise ValueError(f"options: expected keys among {', '.join(known)}, got {key!r}")
        found = {}
        for key in ("q", "goal"):
            if options.get(key) is not None:
                found[key] = self._configurations(f"options[{key!r}]", options[key], count)
        if options.get("v") is not None:
            found["v"] = _rows("options['v']", options["v"], self.task.model.nv, count)
        return found

    def _configurations(self, name: str, value: Any, count: int | None) -> Array:
        """Check configurations (nq,) or (count, nq), broadcast one row to all, and normalise quaternions."""
        model = self.task.model
        q = _rows(name, value, model.nq, count)
        q = np.array([model.normalize(row) for row in q.reshape(-1, model.nq)]).reshape(q.shape)
        shifts = [
            self.task.space.errors(self.task.start, row)[0] for row in q.reshape(-1, model.nq)
        ]
        if not max(shifts) < 1.0 / ROUNDING:
            raise ValueError(
                f"{name}: expected the object within {1.0 / ROUNDING:g} m of the task's start"
            )
        return q

    def begin(
        self,
        q: Array,
        goal: Array,
        parameters: dict[str, Array],
        contacts: NDArray[np.intp] | None = None,
        v: Array | None = None,
        sensed: Sensed | None = None,
    ) -> Players:
        """Create players at the beginning of episodes from q (n, nq) to goals (n, nq).

        ``parameters`` (n, ...) are those of the model. ``contacts`` (n,) are indices into the
        moves' laws; None is the first. ``v`` (n, nv) are velocities; None is at rest. ``sensed``
        are observation errors; None is without errors.
        """
        goals, command = self.viewer.goals(goal), self.task.model.command_from(q)
        action = np.zeros((len(q), self.action_size))
        speed = np.zeros((len(q), self.task.model.nv)) if v is None else v
        felt = self._touching(q, speed, command, parameters, contacts)
        look = self._looked(q, goals, self.told(q, command, action, speed), felt)
        players = Players(
            q=q,
            v=speed,
            goals=goals,
            command=command,
            action=action,
            actions_done=np.zeros(len(q), dtype=np.int64),
            potential=look.potential.copy(),
            seen=look.seen,
            parameters=parameters,
            contacts=np.zeros(len(q), np.intp) if contacts is None else contacts,
            sensed=sensed,
        )
        if sensed is not None:
            players.seen = self._noisy(players, look)
            self._sensing.begin(sensed, players.seen)
        return players

    def observe(self, players: Players) -> Array:
        """Return observations (n, observation_size), also of players that were modified from outside."""
        return self.look(players).seen

    def look(self, players: Players) -> Look:
        """Return observations and the quantities of rewards, without observation errors."""
        told = self.told(players.q, players.command, players.action, players.v)
        felt = self._touching(
            players.q, players.v, players.command, players.parameters, players.contacts
        )
        return self._looked(players.q, players.goals, told, felt)

    def _noisy(self, players: Players, look: Look) -> Array:
        """Return noisy observations, with exact goals; ``look`` contains the exact ones."""
        assert players.sensed is not None
        q = self._sensing.q(players.sensed, players.q, players.actions_done)
        if q is players.q:
            return look.seen
        told = self.told(q, players.command, players.action, players.v)
        felt = look.seen[:, self._own - self._touching.size : self._own]
        seen = self._looked(q, players.goals, told, felt).seen
        return self._with_ends(seen, look.seen)

    def _with_ends(self, seen: Array, exact: Array) -> Array:
        """Replace the achieved and desired goals in ``seen`` by those in ``exact``."""
        return np.concatenate((seen[:, : self._own], exact[:, self._own :]), axis=1)

    def _looked(self, q: Array, goals: Goals, told: Array, felt: Array) -> Look:
        look = self.viewer.look(q, goals, told)
        ends = (
            () if self.options.observation == "flat" else (self.goal.of(q), self.goal.of(goals.q))
        )
        if not ends and not felt.size:
            return look
        return look._replace(seen=np.concatenate((look.seen, felt, *ends), axis=1))

    def shown(self, seen: Array) -> Any:
        """Return observations (..., observation_size) in the form for agents, copied: an array, or
        a dictionary of arrays."""
        if len(self._parts) == 1:
            return seen.copy()
        return {name: seen[..., part].copy() for name, part in self._parts.items()}

    def told(self, q: Array, command: Array, action: Array, v: Array | None = None) -> Array:
        """Return the inputs of observations: differences of commands (n, nu) from joint positions,
        and actions (n, m).

        With second-order steps, velocities (n, nv) times the task's time step follow; None is zero.
        """
        if not self.viewer.more:
            return action
        parts = [command - self.moves.holding(q), action]
        if self._has_velocities:
            at_rest = np.zeros((len(q), self.task.model.nv))
            parts.append(at_rest if v is None else self.task.options.h * v)
        return np.concatenate(parts, axis=1)

    # ------------------------------------------------------------ rewards of goals

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Compute rewards (...) of achieved goals (..., g) for desired goals; infos as for `of_infos`."""
        if self.options.reward == "shaped":
            raise ValueError(
                "compute_reward: a shaped reward depends on where the object was before; use reward='sparse' or 'dense'"
            )
        shift, turn = self._goal_errors(achieved_goal, desired_goal)
        ended = _is_over(info, shift.shape)
        return self._reward(shift, turn, ended)[()]

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return whether episodes end: at the goal, with the object lost, or by a failed step."""
        shift, turn = self._goal_errors(achieved_goal, desired_goal)
        ended = _is_over(info, shift.shape)
        return (ended | self._is_reached(shift, turn))[()]

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return whether episodes end only because of their length."""
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
        """Compute the sparse or dense reward from distances and angles to the goal.

        A sample that lost the object or whose step failed (``ended``) gets this reward times the
        number of actions of a full episode.
        """
        task = self.task
        if self.options.reward == "sparse":
            reward = np.where(self._is_reached(shift, turn) & ~ended, 0.0, -1.0)
        else:
            error = np.hypot(shift, task.length * turn)
            reward = -error / task.length - np.log1p(error / task.position_tolerance)
        return np.where(ended, self.horizon, 1.0) * reward

    # ------------------------------------------------------------ actions

    def play(self, players: Players, action: Array) -> Ended:
        """Execute actions (n, action_size) in [-1, 1], and update the players."""
        moved = self.moves(players.q, action, players.parameters, players.contacts, players.v)
        return self._settle(players, action, moved)

    def _settle(self, players: Players, action: Array, moved: Moved) -> Ended:
        options = self.options
        players.q, players.v = moved.q, moved.v
        players.command, players.action = moved.command, action
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
        if players.sensed is not None:
            late = self._sensing.after(players.sensed, self._noisy(players, look))
            players.seen = self._with_ends(late, look.seen)
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
    """Return configurations (n, nq), or one (nq,), with the object displaced by tangent vectors (n,
    size), m and rad."""
    v = np.zeros((len(displacement), task.model.nv))
    v[:, task.space.v] = displacement
    return np.array(
        [task.model.integrate(a, b) for a, b in zip(np.broadcast_to(q, (len(v), len(q.T))), v)]
    )


def _rows(name: str, value: Any, size: int, count: int | None) -> Array:
    """Check finite numbers (size,) or (count, size), and broadcast one row to all.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    array = reals(name, value)
    shapes = [(size,)] if count is None else [(size,), (count, size)]
    if array.shape not in shapes or not np.isfinite(array).all():
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{name}: expected finite numbers {wanted}, got shape {array.shape}")
    return np.array(np.broadcast_to(array, shapes[-1]))


def _is_over(info: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return whether infos say that the object was lost or a step failed."""
    return np.logical_or(of_infos(info, "lost", shape), of_infos(info, "failed", shape))


def _check_goal(task: Task) -> None:
    """Raise ValueError if the goal is so far from the start that differences of distances lose all precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        shift, _ = task.errors(task.start)
    if not shift < 1.0 / ROUNDING:
        raise ValueError(
            f"task: expected a goal within {1.0 / ROUNDING:g} m of its start, got one {shift:g} m away"
        )


def checked(action: Any, shape: tuple[int, ...], name: str = "action") -> Array:
    """Check actions of this shape and clip them to [-1, 1]; ``name`` is used in messages.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
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
    # A sum of squares is finite for almost all finite arrays and needs one pass over the numbers
    # instead of three.
    if not math.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
        index = [int(i) for i in np.argwhere(~np.isfinite(given))[0]]
        raise ValueError(f"{name}: element {index} is {array[tuple(index)]}")
    np.minimum(given, 1.0, out=given)
    return np.maximum(given, -1.0, out=given)
