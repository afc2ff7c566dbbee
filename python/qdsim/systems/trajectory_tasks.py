"""The tasks of S3's trajectory optimisation (§V): start, goal, weights and horizons of the released scripts.

S3 does not print the weights behind its Table II. Where scripts weigh the entries of quaternions q and
-q apart, the rotation vector has a quarter of that weight here, which is the same for small angles.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.task import Task
from qdsim.systems.system import System, Tasks

__all__ = ["with_trajectory_tasks"]


def with_trajectory_tasks(system: System) -> System:
    """The system with its tasks of trajectory optimisation behind those it has."""
    make = _TASKS.get(system.name)
    if make is None:
        return system
    tasks = {**system.tasks, **make(system)}
    return dataclasses.replace(system, tasks=Tasks(tasks))


def _planar_pushing(system: System) -> dict[str, Task]:
    start = np.array(system.start.q)
    goal = np.array([0.5, 1.0, -math.pi / 4, 0.0, 0.0])
    cost = TrackingCost(object=(20.0, 20.0, 30.0), robot=1e-3, command=10.0)
    options = ImpcOptions(cost=cost, start="hold")
    task = Task(
        name="push the box aside and turn it",
        model=system.model,
        options=system.options,
        start=start,
        goal=goal,
        object="box",
        lower=np.array([-2.0, -2.0, -math.pi]) - start[:3],
        upper=np.array([2.0, 2.0, math.pi]) - start[:3],
        length=0.5,
        impc=options,
    )
    return {"push_and_turn": task}


def _planar_hand(system: System) -> dict[str, Task]:
    start = np.array(system.start.q)
    goal = start + np.array([-0.3, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    goal[3:] = math.pi / 4 * np.array([-1.0, -1.0, 1.0, 1.0])
    cost = TrackingCost(object=10.0, robot=1e-3, command=10.0)
    options = ImpcOptions(cost=cost, kappa=500.0, start="rrt", iterations=40)
    task = Task(
        name="shift and turn the disc",
        model=system.model,
        options=system.options,
        start=start,
        goal=goal,
        object="disc",
        lower=np.array([-0.3, 0.3, -0.01]) - start[:3],
        upper=np.array([0.3, 0.5, math.pi + 0.01]) - start[:3],
        length=0.25,
        impc=options,
    )
    return {"shift_and_turn": task}


def _ball(system: System, options: ImpcOptions, angle: float) -> dict[str, Task]:
    """Turn the ball about the vertical; the hand's goal is where it starts."""
    start = np.array(system.start.q)
    goal = start.copy()
    goal[-4:] = [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
    reach = np.array([0.006, 0.006, 0.006, 0.1, 0.1, 0.1])
    task = Task(
        name=f"turn the ball by {math.degrees(angle):.0f} degrees",
        model=system.model,
        options=system.options,
        start=start,
        goal=goal,
        object="ball",
        lower=-reach,
        upper=reach + np.array([0.0, 0.0, 0.0, 0.0, 0.0, angle]),
        length=0.06,
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        start_tolerance=1e-3,
        impc=options,
    )
    return {"turn": task}


def _allegro_sphere(system: System) -> dict[str, Task]:
    cost = TrackingCost(
        object=(1.0, 1.0, 1.0, 2.5, 2.5, 2.5), robot=1e-3, command=10.0, final_robot=1e-3
    )
    options = ImpcOptions(cost=cost, kappa=1000.0, radii=(0.1, 0.035, 0.01), start="hold")
    return _ball(system, options, math.pi / 4)


def _allegro_sphere_hardware(system: System) -> dict[str, Task]:
    cost = TrackingCost(
        object=(1.0, 1.0, 1.0, 2.5, 2.5, 2.5), robot=5e-2, command=20.0, final_robot=5e-2
    )
    options = ImpcOptions(cost=cost, kappa=1e4, radii=(0.03, 0.01, 0.003), start="hold")
    return _ball(system, options, math.pi / 6)


_TASKS: dict[str, Callable[[System], dict[str, Task]]] = {
    "planar_pushing": _planar_pushing,
    "planar_hand": _planar_hand,
    "allegro_sphere": _allegro_sphere,
    "allegro_sphere_hardware": _allegro_sphere_hardware,
}
