"""One environment of Gymnasium."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np

from qdsim.arguments import MOST_SEED, instance, integer
from qdsim.array_type import Array
from qdsim.envs.options import EnvOptions
from qdsim.envs.pictures import Camera, Window
from qdsim.envs.rules import Players, Rules, checked
from qdsim.planning.task.task import Task

__all__ = ["GoalTaskEnv", "TaskEnv"]

_FRAMES = 10
"""A second, of pictures."""


class TaskEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium is not looked into
    """A planning task as an environment: docs/learning.md says what is observed, done and rewarded.

    Args:
        task: the task.
        options: `EnvOptions`, None for the defaults.
        render_mode: None, "rgb_array" (needs Matplotlib), or "human": a browser's page follows the episodes, ten actions
            a second (needs the extra ``viewer``).

    Attributes:
        rules: `Rules`, which the players of a `TaskVectorEnv` play by, too.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": _FRAMES}  # noqa: RUF012  # Gymnasium's own name

    def __init__(
        self, task: Task, options: EnvOptions | None = None, render_mode: str | None = None
    ) -> None:
        given = instance("options", options or EnvOptions(), EnvOptions)
        if (
            given.observation != "flat"
        ):  # what has `compute_reward` is a GoalEnv to Stable-Baselines3
            raise ValueError("options: observation='goal' is of a GoalTaskEnv")
        self._begin(task, given, render_mode)

    def _begin(self, task: Task, options: EnvOptions, render_mode: str | None) -> None:
        if render_mode not in (None, "rgb_array", "human"):
            raise ValueError(
                f"render_mode: expected None, 'rgb_array' or 'human', got {render_mode!r}"
            )
        self.rules = Rules(task, options)
        self.render_mode = render_mode
        self.observation_space = self.rules.observation_space
        self.action_space = self.rules.action_space
        self._seed = np.asarray(np.random.SeedSequence().generate_state(1, np.uint64), np.uint64)
        self._episode = np.zeros(1, dtype=np.uint64)
        self._players: Players | None = None
        self._camera: Camera | None = None
        self._window = Window(task, _FRAMES) if render_mode == "human" else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode; the same seed gives the same episodes in the same order.

        Args:
            seed: of this episode and those that follow; None: go on.
            options: "q" (nq,): where everything begins; "goal" (nq,): a configuration with the object where it should
                go; in a second-order world "v" (nv,): how fast everything is, by default zero. What else is not given is
                drawn.

        Raises:
            TypeError, ValueError: naming what is wrong, unknown keys too.
        """
        given = {name: q[None] for name, q in self.rules.placed(options).items()}
        if seed is not None:
            self._seed[:], self._episode[:] = integer("seed", seed, least=0, most=MOST_SEED), 0
        super().reset(seed=seed)
        self._players = self.rules.draw(self._seed, self._episode, given)
        self._episode += np.uint64(1)
        self._show()
        return self.rules.shown(self._players.seen[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action; returns observation, reward, terminated, truncated and info.

        ``info`` has success, failed, lost, refused, the errors shift (m) and turn (rad), and how many actions the episode
        has had.

        Args:
            action: ``(actions,)`` of the action space; clipped to [-1, 1].

        Raises:
            gymnasium.error.ResetNeeded: before the first ``reset``.
            TypeError, ValueError: for an action that is no array of this shape, or not finite.
        """
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environment before the first step")
        given = checked(action, (self.rules.action_size,))
        ended = self.rules.play(self._players, given[None])
        info = {name: values.item() for name, values in ended.info().items()}
        self._show()
        return (
            self.rules.shown(self._players.seen[0]),
            ended.reward.item(),
            ended.terminated.item(),
            ended.truncated.item(),
            info,
        )

    def render(self) -> Any:
        """A picture (480, 480, 3) of bytes with the goal's outline, by a camera that stays where it is; None with "human",
        where all is shown as it happens."""
        if self.render_mode != "rgb_array" or self._players is None:
            return None
        if self._camera is None:
            self._camera = Camera(self.rules.task)
        return self._camera.picture(self._players.q[0], self._players.goals.q[0])

    def close(self) -> None:
        """End the browser's page, where there is one."""
        if self._window is not None:
            self._window.close()

    def _show(self) -> None:
        if self._window is not None and self._players is not None:
            self._window.show(self._players.q[0], self._players.goals.q[0])

    def get_state(self) -> Any:
        """The episode under way and what the next ones draw, as `set_state` takes them; for searches that go back."""
        return copy.deepcopy((self._seed, self._episode, self._players))

    def set_state(self, state: Any) -> None:
        """Continue from a state of ``get_state``.

        Args:
            state: of this environment, or of another one with the same rules.
        """
        self._seed, self._episode, self._players = copy.deepcopy(state)

    @property
    def q(self) -> Array:
        """(nq,) where everything is."""
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environment before the first step")
        return np.array(self._players.q[0])

    @property
    def v(self) -> Array:
        """(nv,) how fast everything is, m/s and rad/s; zero in a quasi-dynamic world."""
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environment before the first step")
        return np.array(self._players.v[0])


class GoalTaskEnv(TaskEnv):
    """A task whose observations have goals: {"observation", "achieved_goal", "desired_goal"}, for hindsight experience
    replay, by the interface of gymnasium-robotics' GoalEnv. `GoalCoordinates` says what goals are in numbers.

    Args:
        task, options, render_mode: as of `TaskEnv`; options are always of ``observation="goal"``.
    """

    def __init__(
        self, task: Task, options: EnvOptions | None = None, render_mode: str | None = None
    ) -> None:
        given = instance("options", options or EnvOptions(observation="goal"), EnvOptions)
        if given.observation != "goal":
            raise ValueError(f"options: expected observation='goal', got {given.observation!r}")
        self._begin(task, given, render_mode)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Rewards of ending at goals that were reached instead of at others, as `step` gives them: what hindsight
        experience replay asks (Andrychowicz et al. 2017), by the interface of gymnasium-robotics' GoalEnv.

        Args:
            achieved_goal, desired_goal: (..., g) numbers, as observations have them.
            info: of the steps that led there: one dictionary or as many as goals; whether one failed, or lost the
                object, is all that counts.

        Returns:
            One number, or an array (...).

        Raises:
            TypeError, ValueError: naming the argument and what was wrong.
        """
        return self.rules.compute_reward(achieved_goal, desired_goal, info)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Whether episodes end there: at the goal, or because the object was lost or a step failed.

        Args:
            achieved_goal: object's poses ``(..., k)`` as observed.
            desired_goal: goals ``(..., k)``.
            info: of the steps, one mapping or an array of them.
        """
        return self.rules.compute_terminated(achieved_goal, desired_goal, info)

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Whether episodes end by their length, which goals do not change.

        Args:
            achieved_goal: object's poses ``(..., k)`` as observed.
            desired_goal: goals ``(..., k)``.
            info: of the steps, one mapping or an array of them.
        """
        return self.rules.compute_truncated(achieved_goal, desired_goal, info)
