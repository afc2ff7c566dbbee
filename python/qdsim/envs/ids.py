"""Ids of the published tasks."""

from __future__ import annotations

from typing import Any

from qdsim.envs.env import TaskEnv
from qdsim.envs.options import EnvOptions
from qdsim.envs.vector_env import TaskVectorEnv
from qdsim.planning.task.task import Task
from qdsim.registration import IDS, register
from qdsim.systems import load

__all__ = ["IDS", "many", "one", "published"]


def published(name: str, **changes: Any) -> tuple[Task, EnvOptions]:
    """The task and the options behind an id, with some options changed.

    Raises:
        ValueError: for an unknown id.
    """
    if name not in IDS:
        raise ValueError(f"name: expected one of {', '.join(IDS)}, got {name!r}")
    system, task, action, goal = IDS[name]
    tasks = load(system).tasks
    assert tasks is not None
    return tasks[task], EnvOptions(**{"action": action, "goal": goal, **changes})


def one(id_: str, render_mode: str | None = None, **changes: Any) -> TaskEnv:
    """The environment of an id."""
    return TaskEnv(*published(id_, **changes), render_mode=render_mode)


def many(id_: str, num_envs: int = 1, **changes: Any) -> TaskVectorEnv:
    """Many environments of an id, in one."""
    modes = {k: changes.pop(k) for k in ("autoreset_mode", "render_mode") if k in changes}
    task, options = published(id_, **changes)
    return TaskVectorEnv(task, num_envs, options, **modes)


register()
