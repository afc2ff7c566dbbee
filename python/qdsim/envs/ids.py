"""Ids of the published tasks."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium

from qdsim.envs.env import TaskEnv
from qdsim.envs.options import EnvOptions
from qdsim.envs.vector_env import TaskVectorEnv
from qdsim.planning.task.task import Task
from qdsim.systems import load

__all__ = ["IDS", "published"]

IDS: dict[str, tuple[str, str, Literal["push", "command"], Literal["random", "task"]]] = {
    "qdsim/PlanarPushing-v0": ("planar_pushing", "move_back", "push", "random"),
    "qdsim/PlanarPushingPublished-v0": ("planar_pushing", "push_and_turn", "push", "task"),
    "qdsim/PlanarHand-v0": ("planar_hand", "half_turn", "push", "random"),
    "qdsim/PlanarHandCommand-v0": ("planar_hand", "half_turn", "command", "random"),
    "qdsim/PlanarHandPublished-v0": ("planar_hand", "half_turn", "push", "task"),
    "qdsim/AllegroBall-v0": ("allegro_sphere", "either_way", "push", "random"),
    "qdsim/AllegroBallPublished-v0": ("allegro_sphere", "half_turn", "push", "task"),
    "qdsim/AllegroPen-v0": ("allegro_pen", "place", "push", "random"),
    "qdsim/AllegroPlate-v0": ("allegro_plate", "pick_up", "push", "random"),
    "qdsim/AllegroBook-v0": ("allegro_book", "drag", "push", "random"),
    "qdsim/AllegroDoor-v0": ("allegro_door", "open", "push", "random"),
    "qdsim/Bucket-v0": ("iiwa_bimanual_cylinder", "turn", "push", "random"),
    "qdsim/BoxPush-v0": ("iiwa_box_push", "push_and_turn", "command", "random"),
}
"""From ids to system, task, action and goal."""


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


def _one(id_: str, render_mode: str | None = None, **changes: Any) -> TaskEnv:
    return TaskEnv(*published(id_, **changes), render_mode=render_mode)


def _many(id_: str, num_envs: int = 1, **changes: Any) -> TaskVectorEnv:
    modes = {k: changes.pop(k) for k in ("autoreset_mode", "render_mode") if k in changes}
    task, options = published(id_, **changes)
    return TaskVectorEnv(task, num_envs, options, **modes)


for _id in IDS:
    gymnasium.register(
        _id, entry_point=_one, vector_entry_point=_many, kwargs={"id_": _id}, order_enforce=True
    )
