"""Many environments in one batch of the core."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from qdsim.arguments import MOST_SEED, integer, one_of
from qdsim.array_type import Array
from qdsim.envs.env import TaskEnv
from qdsim.envs.options import EnvOptions
from qdsim.envs.pictures import Camera
from qdsim.envs.rules import Ended, Players, Rules, checked
from qdsim.planning.task.task import Task

__all__ = ["TaskVectorEnv"]


class TaskVectorEnv(VectorEnv):  # type: ignore[misc]  # gymnasium is not looked into
    """`num_envs` copies of a `TaskEnv`, stepped by one call of the core.

    Environment i plays the episodes of a `TaskEnv` that was reset with ``seed + i``, for any number
    of environments.

    Args:
        task, options: as for `TaskEnv`.
        render_mode: None or "rgb_array".
        num_envs: number of environments.
        autoreset_mode: Gymnasium's three modes. NEXT_STEP, its default: the step after an end
            begins a new episode, whatever the action. SAME_STEP: the last observation and info of
            an episode are in ``infos["final_obs"]`` and ``infos["final_info"]``, and nowhere else.
            DISABLED: ended ones are reset with ``options={"reset_mask": ...}``.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int,
        options: EnvOptions | None = None,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(
                f"render_mode: expected None or 'rgb_array', got {render_mode!r}; of single environments 'human', too"
            )
        self.num_envs = integer("num_envs", num_envs, least=1)
        self.rules = Rules(task, options or EnvOptions())
        if not isinstance(autoreset_mode, AutoresetMode):
            one_of("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {
            **TaskEnv.metadata,
            "render_modes": ["rgb_array"],
            "autoreset_mode": self.autoreset_mode,
        }
        self.render_mode = render_mode
        self._camera: Camera | None = None
        rules = self.rules
        self.single_observation_space = rules.observation_space
        self.single_action_space = rules.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        first = int(np.random.SeedSequence().generate_state(1)[0])
        self._seeds = np.arange(first, first + self.num_envs).astype(np.uint64)
        self._episodes = np.zeros(self.num_envs, dtype=np.uint64)
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._players: Players | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, in all environments or in some of them; returns observations and
        infos.

        Args:
            seed: an integer for the first environment, plus one for each following one; or a list
                with one each, where None continues the random stream.
            options: as for ``TaskEnv.reset``, with shapes (num_envs, nq) or (nq,) for "q" and
                "goal" and similarly for "v"; "reset_mask" (num_envs,): which environments are
                reset.

        Raises:
            TypeError, ValueError: if an option is invalid; the message names it.
        """
        placed = self.rules.placed(options, self.num_envs)
        mask = np.ones(self.num_envs, dtype=bool)
        if options and "reset_mask" in options:
            mask = _mask(options["reset_mask"], self.num_envs)
        seeds = _seeds(seed, self.num_envs)
        for i in np.flatnonzero(mask).tolist():
            own = seeds[i]
            if own is not None:
                self._seeds[i], self._episodes[i] = own, 0
        rows = np.flatnonzero(mask)
        self._begin(rows, {name: q[rows] for name, q in placed.items()})
        assert self._players is not None
        return self.rules.shown(self._players.seen), {}

    def step(
        self, actions: Any
    ) -> tuple[Any, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one action in every environment; infos are arrays with their masks.

        Args:
            actions: ``(num_envs, actions)``; clipped to [-1, 1].

        Raises:
            ValueError: before the first ``reset``, for another shape, or if ended environments have
                not been reset with DISABLED autoreset.
        """
        if self._players is None:
            raise ValueError("step: reset the environments before the first step")
        given = checked(actions, (self.num_envs, self.rules.action_size))
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            which = np.flatnonzero(self._ended).tolist()
            raise ValueError(f"step: environments {which} have ended; reset them by reset_mask")
        fresh = self._ended & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        ended = self.rules.play(self._players, given)
        reward, terminated, truncated = ended.reward, ended.terminated, ended.truncated
        if fresh.any():
            # These environments only start a new episode; their action is ignored.
            self._begin(np.flatnonzero(fresh))
            reward[fresh], terminated[fresh], truncated[fresh] = 0.0, False, False
        over = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = _masked(ended.info(), ~over)
            if over.any():
                infos |= self._final(ended, over)
                self._begin(np.flatnonzero(over))
        else:
            infos, self._ended = _masked(ended.info(), ~fresh), over
        return self.rules.shown(self._players.seen), reward, terminated, truncated, infos

    def _final(self, ended: Ended, over: NDArray[np.bool_]) -> dict[str, Any]:
        """Return the last observations and infos of the episodes that are over."""
        observations = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(over).tolist():
            observations[i] = self.rules.shown(self.players.seen[i])
        return {
            "final_obs": observations,
            "_final_obs": over.copy(),
            "final_info": _masked(ended.info(), over),
            "_final_info": over.copy(),
        }

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Compute rewards as `GoalTaskEnv.compute_reward` does.

        Args:
            achieved_goal: object's poses ``(..., k)`` as observed.
            desired_goal: goals ``(..., k)``.
            info: of the steps, one mapping or an array of them.
        """
        return self.rules.compute_reward(achieved_goal, desired_goal, info)

    def get_state(self) -> Any:
        """Return all present episodes and the state of their random numbers, for `set_state`."""
        return copy.deepcopy((self._seeds, self._episodes, self._ended, self._players))

    def set_state(self, state: Any) -> None:
        """Continue from a state of ``get_state``.

        Args:
            state: of these environments, or of as many others with the same rules.
        """
        self._seeds, self._episodes, self._ended, self._players = copy.deepcopy(state)

    @property
    def players(self) -> Players:
        """The present episodes; changed by `step` and `reset`."""
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environments before the first step")
        return self._players

    def _begin(self, rows: NDArray[np.intp], given: Mapping[str, Array] | None = None) -> None:
        fresh = self.rules.draw(self._seeds[rows], self._episodes[rows], given)
        self._episodes[rows] += np.uint64(1)
        self._ended[rows] = False
        if self._players is None:
            if len(rows) < self.num_envs:
                raise ValueError("reset: the first one is of all environments")
            self._players = fresh
        else:
            self._players.put(rows, fresh)

    def render(self) -> Any:
        """Pictures, one per environment."""
        if self.render_mode is None or self._players is None:
            return None
        players = self._players
        if self._camera is None:
            self._camera = Camera(self.rules.task)
        return tuple(self._camera.picture(q, g) for q, g in zip(players.q, players.goals.q))


def _masked(values: Mapping[str, Array | NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Return infos with zeros outside ``mask``, each with its mask, in the form of Gymnasium's
    vector environments."""
    found: dict[str, Any] = {}
    everywhere = bool(mask.all())
    for name, value in values.items():
        found[name] = value if everywhere else np.where(mask, value, np.zeros_like(value))
        found[f"_{name}"] = mask.copy()
    return found


def _seeds(seed: Any, count: int) -> list[int | None]:
    """Return a seed for every environment: None, successive integers, or those given."""
    if seed is None:
        return [None] * count
    if isinstance(seed, (list, tuple)):
        if len(seed) != count:
            raise ValueError(f"seed: expected {count} of them, got {len(seed)}")
        found = (
            integer(f"seed: element {i}", x, least=0, most=MOST_SEED) if x is not None else None
            for i, x in enumerate(seed)
        )
        return list(found)
    first = integer("seed", seed, least=0, most=MOST_SEED + 1 - count)
    return [first + i for i in range(count)]


def _mask(mask: Any, count: int) -> NDArray[np.bool_]:
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (count,):
        raise ValueError(
            f"reset_mask: expected ({count},) booleans, got {found.shape} of {found.dtype}"
        )
    if not found.any():
        raise ValueError("reset_mask: it names no environment")
    return found
