"""Ids of the published tasks."""

from __future__ import annotations

from typing import Any

from qdsim.envs.env import GoalTaskEnv, TaskEnv
from qdsim.envs.options import EnvOptions
from qdsim.envs.vector_env import TaskVectorEnv
from qdsim.planning.task.task import Task
from qdsim.registration import GOAL_IDS, IDS, register
from qdsim.systems import load

__all__ = ["GOAL_IDS", "IDS", "many", "one", "published"]


def published(name: str, **changes: Any) -> tuple[Task, EnvOptions]:
    """Load the task and the options of a published environment, with some options changed.

    Args:
        name: The id, for example "qdsim/PlanarPushing-v0".
        changes: Fields of `EnvOptions` with new values.

    Raises:
        ValueError: for an unknown id.
        TypeError, ValueError: for fields that `EnvOptions` does not have, and wrong values.
    """
    if name not in IDS and name not in GOAL_IDS:
        known = ", ".join((*IDS, *GOAL_IDS))
        raise ValueError(f"name: expected one of {known}, got {name!r}")
    system, task, action, goal = IDS[GOAL_IDS.get(name, name)]
    tasks = load(system).tasks
    assert tasks is not None
    own = {"action": action, "goal": goal, "observation": "goal" if name in GOAL_IDS else "flat"}
    return tasks[task], EnvOptions(**{**own, **changes})


def one(id_: str, render_mode: str | None = None, **changes: Any) -> TaskEnv:
    """Create the environment of an id."""
    task, options = published(id_, **changes)
    made = GoalTaskEnv if options.observation == "goal" else TaskEnv
    return made(task, options, render_mode)


def many(id_: str, num_envs: int = 1, **changes: Any) -> TaskVectorEnv:
    """Create a vector environment of an id."""
    modes = {k: changes.pop(k) for k in ("autoreset_mode", "render_mode") if k in changes}
    task, options = published(id_, **changes)
    return TaskVectorEnv(task, num_envs, options, **modes)


register()
