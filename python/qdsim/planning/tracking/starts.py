"""First guesses of the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.task.drives import shares
from qdsim.planning.task.impc_options import ImpcOptions, Start
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.step import step

if TYPE_CHECKING:
    from qdsim.planning.task.task import Task

__all__ = ["first_commands", "squeeze_direction"]


def first_commands(
    task: Task, options: ImpcOptions, start: Start, q: Array, rng: np.random.Generator
) -> Array:
    """Return the first guess ``(T, nu)`` of the commands from configuration ``q``; ``start`` is as
    in the options."""
    hold = np.asarray(task.model.command_from(q))
    commands = np.tile(hold, (options.horizon, 1))
    if start == "squeeze" and options.squeeze > 0.0:
        t = np.arange(1, options.horizon + 1) / options.horizon
        ramp = np.minimum(2.0 * t, 1.0)  # over half of the horizon
        direction = squeeze_direction(task, q, options.kappas[0])
        commands += options.squeeze * ramp[:, None] * direction
    if start == "rrt":
        commands = _tree_commands(task, options, q, rng, commands)
    return commands


def squeeze_direction(task: Task, q: Array, kappa: float) -> Array:
    """Return the change of the command ``(nu,)``, at most 1, that presses the robot onto the object.

    It is opposite to the generalised force of the object's smoothed contacts on the robot, divided
    by the robot's stiffness; zero if the object is outside the margin.
    """
    model = task.model
    options = task.options.replace(kappa=kappa, joint_limits=False)
    contacts = step(model, q, model.command_from(q), options).contacts
    force = np.zeros(model.nv)
    objects = object_bodies(task)
    for contact in contacts:
        a, b = int(contact["body_a"]), int(contact["body_b"])
        if (a in objects) == (b in objects):
            continue
        robot, sign = (a, -1.0) if b in objects else (b, 1.0)
        push = sign * contact["force"][0] * contact["frame"][0]
        position, rotation = model.body_pose(q, robot)
        point = rotation.T @ (contact["pos"] - position)
        force += np.asarray(model.jacobian(q, robot, point))[:3].T @ push
    gear = np.asarray(model.actuator_gear)
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    direction = -(force @ shares(model, q)) / stiffness * gear
    largest = float(np.abs(direction).max(initial=0.0))
    return direction / largest if largest > 0.0 else direction


def object_bodies(task: Task) -> set[int]:
    """Return the indices of the bodies that the object's joints move."""
    model, v = task.model, task.space.v
    moved = set()
    for name in model.body_names:
        jacobian = np.asarray(model.jacobian(model.default_q, name, np.zeros(3)))
        if np.any(jacobian[:, v] != 0.0):
            moved.add(model.body_index(name))
    return moved


def _tree_commands(
    task: Task, options: ImpcOptions, q: Array, rng: np.random.Generator, fallback: Array
) -> Array:
    """Grow a small tree, and stretch the commands to its node nearest to the goal over the horizon."""
    from qdsim.planning.search.rrt import rrt

    begin = task.towards(task.goal, start=q, sampler=None, start_tolerance=np.inf)
    settings = RRTOptions(max_nodes=30, max_iterations=300)
    tree = rrt(begin, settings, rng)
    path = [n for n in tree.path(tree.best_node) if tree.inputs(n) is not None]
    if not path:
        return fallback
    commands = np.concatenate([tree.inputs(n) for n in path])
    at = np.linspace(0.0, len(commands) - 1.0, options.horizon)
    return np.asarray(
        np.stack([np.interp(at, np.arange(len(commands)), row) for row in commands.T], axis=1)
    )
