"""Published systems: MJCF files that come with the package and a short configuration each.

``load("planar_hand")`` gives the model, the options of its step, its tasks, its published start and
motion. Numbers are those of Pang, Suh, Yang and Tedrake 2023, of Pang and Tedrake 2021, and of the
scripts released with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import resources
from types import MappingProxyType

import numpy as np

from qdsim.model import Model
from qdsim.model import load as load_model
from qdsim.planning.samplers import BoxSideSampler, PlanarHandSampler
from qdsim.planning.task import Task
from qdsim.step import Options
from qdsim.systems.published import PUBLISHED, about, load_published
from qdsim.systems.system import System, files
from qdsim.systems.trajectory_tasks import with_trajectory_tasks

__all__ = ["NAMES", "TASK_NAMES", "System", "files", "load"]


def load(name: str) -> System:
    """A system by name, one of ``systems.NAMES``.

    Raises:
        TypeError: if the name is no string.
        ValueError: for an unknown name.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    key = name.lower().replace("-", "_")
    if key in PUBLISHED:
        return with_trajectory_tasks(load_published(key))
    if key not in _SYSTEMS:
        raise ValueError(f"name: no system {name!r}; there are {', '.join(NAMES)}")
    text = resources.files(__name__).joinpath(f"{key}.xml").read_text(encoding="utf-8")
    return with_trajectory_tasks(_SYSTEMS[key](key, load_model(text)))


def _planar_pushing(name: str, model: Model) -> System:
    options = Options(h=0.1, friction="pyramid", rays=2, margin=math.inf)
    start = np.array(model.keyframes["start"].q)
    goal = start + np.array([0.0, -1.0, 0.0, 0.0, 0.0])
    task = Task(
        name="push the box back",
        model=model,
        options=options,
        start=start,
        goal=goal,
        object="box",
        # y and z from -2 to 2 m, any angle; from the start.
        lower=np.array([-2.0, -2.0, -math.pi]) - start[:3],
        upper=np.array([2.0, 2.0, math.pi]) - start[:3],
        sampler=BoxSideSampler(),
        length=0.5,
    )
    return System(name, model, options, MappingProxyType({"move_back": task}), about=about(name))


def _planar_hand(name: str, model: Model) -> System:
    options = Options(h=0.1, friction="pyramid", rays=2, margin=10.0)
    start = np.array(model.keyframes["start"].q)
    goal = start + np.array([0.0, 0.0, math.pi, 0.0, 0.0, 0.0, 0.0])
    task = Task(
        name="half turn of the disc",
        model=model,
        options=options,
        start=start,
        goal=goal,
        object="disc",
        # y from -0.3 to 0.3 m, z from 0.3 to 0.5 m, angle from 0 to pi with a margin; from the
        # start.
        lower=np.array([-0.3, 0.3, -0.01]) - start[:3],
        upper=np.array([0.3, 0.5, math.pi + 0.01]) - start[:3],
        sampler=PlanarHandSampler(),
        length=0.25,
    )
    return System(name, model, options, MappingProxyType({"half_turn": task}), about=about(name))


_SYSTEMS: dict[str, Callable[[str, Model], System]] = {
    "planar_hand": _planar_hand,
    "planar_pushing": _planar_pushing,
}

TASK_NAMES = tuple(_SYSTEMS)
"""Names of the systems that come with tasks for the planners."""

NAMES = TASK_NAMES + PUBLISHED
"""Names of the systems that :func:`load` knows."""
