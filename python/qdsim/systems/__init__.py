"""Published systems: MJCF files of the package and a short configuration of each.

``load("planar_hand")`` returns the model, the options of its step, its tasks, its published start
and motion. Numbers are those of Pang, Suh, Yang and Tedrake 2023, of Pang and Tedrake 2021, and of
the scripts released with them.
"""

from __future__ import annotations

import dataclasses

from qdsim.systems.moving import DynamicSystem
from qdsim.systems.names import near_names, plain_name
from qdsim.systems.published import PUBLISHED, load_published
from qdsim.systems.second_order import DYNAMIC_NAMES, load_dynamic
from qdsim.systems.system import System, Tasks, files
from qdsim.systems.tasks import TASKS
from qdsim.systems.trajectory_tasks import cube_goal, random_cube_goals, with_trajectory_tasks

__all__ = [
    "DYNAMIC_NAMES",
    "NAMES",
    "TASK_NAMES",
    "DynamicSystem",
    "System",
    "cube_goal",
    "files",
    "load",
    "load_dynamic",
    "random_cube_goals",
]


def load(name: str) -> System:
    """Load a published system by its name.

    Args:
        name: one of ``systems.NAMES``, or the name of its environment (``"AllegroBall-v0"``); a
            system of the Allegro hand also by its object (``"ball"``).

    Returns:
        The system with its model, options (time step in s), start ``q`` ``(nq,)`` and ``u``
        ``(nu,)``, and planning tasks.

    Raises:
        TypeError: if the name is not a string.
        ValueError: for an unknown name; the message suggests similar ones.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    key = plain_name(name, NAMES)
    if key is None:
        near = ", ".join(near_names(name, NAMES))
        meant = f"near it: {near}; there are" if near else "there are"
        raise ValueError(f"name: no system {name!r}; {meant} {', '.join(NAMES)}")
    system = load_published(key)
    makes_tasks = TASKS.get(key.removesuffix("_soft"))
    if makes_tasks is not None:
        tasks = makes_tasks(system.model, system.options)
        system = dataclasses.replace(system, tasks=Tasks(tasks))
    return with_trajectory_tasks(system)


TASK_NAMES = tuple(TASKS)
"""Names of the systems with planning tasks."""

NAMES = TASK_NAMES + tuple(name for name in PUBLISHED if name not in TASKS)
"""Names of the systems of :func:`load`."""
