"""Planning tasks for Stable-Baselines3 (extra ``sb3``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("qdsim.envs.sb3 needs Stable-Baselines3: pip install 'qdsim[sb3]'") from error

from qdsim.envs.ids import published
from qdsim.envs.options import EnvOptions
from qdsim.envs.vector_env import TaskVectorEnv
from qdsim.planning.task.task import Task

__all__ = ["TaskVecEnv"]


class TaskVecEnv(VecEnv):  # type: ignore[misc]  # Stable-Baselines3 is not looked into
    """A `TaskVectorEnv` as Stable-Baselines3's VecEnv: all environments in one call of the core, in
    this process.

    The last observation of an episode is in its ``info["terminal_observation"]``; Stable-Baselines3
    counts successes by ``info["is_success"]``. Wrap it in a VecMonitor for returns and lengths of
    episodes.

    Args:
        task: a task, or an id, for example "qdsim/PlanarPushing-v0", whose task and options are
            used.
        num_envs: number of environments.
        options: `EnvOptions`, None for those of the id, or the defaults; for HerReplayBuffer with
            ``observation="goal"``, or the id of a goal environment.
        render_mode: as for `TaskVectorEnv`.

    Attributes:
        envs: the `TaskVectorEnv`.

    Example:
        >>> from stable_baselines3 import PPO
        >>> envs = TaskVecEnv("qdsim/PlanarPushing-v0", 64)
        >>> model = PPO("MlpPolicy", envs, n_steps=8, gamma=0.9).learn(200_000)
    """

    def __init__(
        self,
        task: Task | str,
        num_envs: int,
        options: EnvOptions | None = None,
        *,
        render_mode: str | None = None,
    ) -> None:
        if isinstance(task, str):
            task, own = published(task)
            options = own if options is None else options
        self.envs = TaskVectorEnv(
            task, num_envs, options, autoreset_mode="SameStep", render_mode=render_mode
        )
        self._actions: Any = None
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def reset(self) -> Any:
        """Start new episodes everywhere, with the seeds and options set before."""
        observations, _ = self.envs.reset(seed=self._seeds, options=_together(self._options))
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Any) -> None:
        """Store the actions (num_envs, k) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Observations, rewards and ends of episodes (num_envs, ...), and one dictionary per
        environment."""
        observations, rewards, terminated, truncated, told = self.envs.step(self._actions)
        over = terminated | truncated
        names = [name for name in told if f"_{name}" in told and not name.startswith("final_")]
        columns = [told[name] for name in names]
        if over.any():
            columns = [np.where(over, told["final_info"][n], x) for n, x in zip(names, columns)]
        infos = [dict(zip(names, row)) for row in zip(*(x.tolist() for x in columns))]
        for info, late in zip(infos, truncated.tolist()):
            info["TimeLimit.truncated"] = late
        for i in np.flatnonzero(over).tolist():
            infos[i]["terminal_observation"] = told["final_obs"][i]
            infos[i]["is_success"] = infos[i]["success"]
        return observations, rewards, over, infos

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector environment once per index; its environments share it."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise AttributeError, because environments of one vector have no attributes of their own."""
        raise AttributeError(f"set_attr: environments of one vector share {attr_name!r}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call ``compute_reward``, or another method of the vector, and return its result once per index."""
        found = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [found] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for every index."""
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        """Return one picture per environment; None without ``render_mode="rgb_array"``."""
        pictures = self.envs.render()
        return [None] * self.num_envs if pictures is None else list(pictures)


def _together(options: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Combine options of every environment into options of the vector."""
    keys = set(options[0])
    if any(set(one) != keys for one in options):
        raise ValueError("set_options: expected the same keys of every environment")
    return {key: np.stack([one[key] for one in options]) for key in sorted(keys)} or None
