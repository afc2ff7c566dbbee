"""A single Gymnasium environment."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import gymnasium
import numpy as np

from qdsim.arguments import MOST_SEED, instance, integer
from qdsim.array_type import Array
from qdsim.envs.options import EnvOptions
from qdsim.envs.pictures import Camera, Window
from qdsim.envs.rules import Players, Rules, checked
from qdsim.planning.task.task import Task

__all__ = ["GoalTaskEnv", "TaskEnv"]


class TaskEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium is not looked into
    """A planning task as an environment; docs/learning.md describes observations, actions and
    rewards.

    Args:
        task: the task.
        options: `EnvOptions`, None for the defaults.
        render_mode: None, "rgb_array" (needs Matplotlib), or "human": a page in a browser shows the
            episodes, ten actions per second (needs the extra ``viewer``).

    Attributes:
        rules: `Rules`, shared with `TaskVectorEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "rgb_array"],
        "render_fps": 10,
    }

    def __init__(
        self, task: Task, options: EnvOptions | None = None, render_mode: str | None = None
    ) -> None:
        given = instance("options", options or EnvOptions(), EnvOptions)
        # Stable-Baselines3 treats any environment with `compute_reward` as a GoalEnv.
        if given.observation != "flat":
            raise ValueError("options: observation='goal' needs a GoalTaskEnv")
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
        self._window = Window(task, self.metadata["render_fps"]) if render_mode == "human" else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; the same seed gives the same episodes in the same order.

        Args:
            seed: of this episode and the following ones; None: continue the random stream.
            options: "q" (nq,): the start; "goal" (nq,): a configuration with the object at its
                goal; with second-order steps "v" (nv,): the initial velocity, zero by default.
                Everything else is drawn.

        Raises:
            TypeError, ValueError: if an option is invalid or unknown; the message names it.
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

        ``info`` has success, failed, lost, refused, the errors shift (m) and turn (rad), and the
        number of actions in the episode.

        Args:
            action: ``(actions,)`` of the action space; clipped to [-1, 1].

        Raises:
            gymnasium.error.ResetNeeded: before the first ``reset``.
            TypeError, ValueError: for an action that is not an array of this shape, or not finite.
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
        """Return a picture (480, 480, 3) of bytes, taken by a fixed camera, with the goal's
        outline. Return None for the mode "human", in which a page in a browser shows every step."""
        if self.render_mode != "rgb_array" or self._players is None:
            return None
        if self._camera is None:
            self._camera = Camera(self.rules.task)
        return self._camera.picture(self._players.q[0], self._players.goals.q[0])

    def close(self) -> None:
        """Close the browser's page, if there is one."""
        if self._window is not None:
            self._window.close()

    def _show(self) -> None:
        if self._window is not None and self._players is not None:
            self._window.show(self._players.q[0], self._players.goals.q[0])

    def get_state(self) -> Any:
        """Return the present episode and the state of its random numbers, for `set_state` and tree searches."""
        return copy.deepcopy((self._seed, self._episode, self._players))

    def set_state(self, state: Any) -> None:
        """Continue from a state of ``get_state``.

        Args:
            state: of this environment, or of another one with the same rules.
        """
        self._seed, self._episode, self._players = copy.deepcopy(state)

    @property
    def q(self) -> Array:
        """(nq,) the configuration."""
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environment before the first step")
        return np.array(self._players.q[0])

    @property
    def v(self) -> Array:
        """(nv,) the velocity, m/s and rad/s; zero with quasi-dynamic steps."""
        if self._players is None:
            raise gymnasium.error.ResetNeeded("reset the environment before the first step")
        return np.array(self._players.v[0])


class GoalTaskEnv(TaskEnv):
    """A goal environment for hindsight experience replay, with the interface of gymnasium-robotics'
    GoalEnv.

    Observations are {"observation", "achieved_goal", "desired_goal"}; `GoalCoordinates` describes
    goals as numbers.

    Args:
        task, options, render_mode: as for `TaskEnv`; options always have ``observation="goal"``.
    """

    def __init__(
        self, task: Task, options: EnvOptions | None = None, render_mode: str | None = None
    ) -> None:
        given = instance("options", options or EnvOptions(observation="goal"), EnvOptions)
        if given.observation != "goal":
            raise ValueError(f"options: expected observation='goal', got {given.observation!r}")
        self._begin(task, given, render_mode)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Rewards of ending at achieved goals, for other desired goals (hindsight experience
        replay, Andrychowicz et al. 2017).

        Interface of gymnasium-robotics' GoalEnv.

        Args:
            achieved_goal, desired_goal: (..., g) numbers, as in observations.
            info: of the steps: one dictionary or one per goal; only whether a step failed or lost
                the object is used.

        Returns:
            One number, or an array (...).

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        return self.rules.compute_reward(achieved_goal, desired_goal, info)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return whether episodes end at these steps: at the goal, or because the object was lost
        or a step failed.

        Args:
            achieved_goal: object's poses ``(..., k)`` as observed.
            desired_goal: goals ``(..., k)``.
            info: of the steps, one mapping or an array of them.
        """
        return self.rules.compute_terminated(achieved_goal, desired_goal, info)

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return whether episodes end because of their length, independently of goals.

        Args:
            achieved_goal: object's poses ``(..., k)`` as observed.
            desired_goal: goals ``(..., k)``.
            info: of the steps, one mapping or an array of them.
        """
        return self.rules.compute_truncated(achieved_goal, desired_goal, info)
