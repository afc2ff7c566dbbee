"""Turning an object in a hand to a resting pose, and releasing it there.

If the fingers returned to their start directly, they would drag the object along. They release it in three
steps. First the springs are relaxed, so that nothing presses. Then the fingers leave along the normals of
near contacts, all at once, until they are one length of the object away or can move no farther. Finally
they return to the robot's start, along the reverse of the path on which they would leave the object from
there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.grasps.grip import LANDING
from qdsim.planning.grasps.resting import STILL_POSITION
from qdsim.planning.task.drives import robot_q
from qdsim.planning.task.followers import by_drives, with_followers
from qdsim.planning.task.least_squares import least_squares_in_box, room
from qdsim.planning.task.motion_options import MotionOptions
from qdsim.planning.task.robot import command_range, robot_bodies
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.arrival import LEFT, PERIODS, WITHIN
from qdsim.planning.tracking.mpc import Mpc
from qdsim.planning.tracking.preset import HORIZON, dexterous, in_space
from qdsim.planning.tracking.sampling import SamplingMpc

__all__ = ["Moved", "by_turns", "let_go", "periods_to_leave", "turn"]

_MOST = 120
"""Largest number of control periods in which an object is turned to a pose."""
_GAIN = 0.01
"""Smallest progress, in tolerances; an object that lies in the hand creeps. With five times as much, 13 of 15
trials of edges arrive in MuJoCo (benchmarks/planning/bench_turns.py), else 14."""


class Moved(Protocol):
    """The model or a plant, moved by commands."""

    @property
    def q(self) -> Array:
        """The configuration ``(nq,)``."""
        ...

    @property
    def coasts(self) -> bool:
        """Whether the object has inertia, so that it moves on after a command."""
        ...


def by_turns(task: Task) -> bool:
    """Return whether iMPC turns objects between fingers: they lie in a hand, and there is no sampler of
    grasps."""
    return task.sampler is None and in_space(task)


def turn(task: Task, world: Moved, leave: bool, seed: int = 0) -> Iterator[Array]:
    """Yield commands (nu,), one per control period, that bring the object to the task's goal.

    They end once the object is held there, or comes no nearer. An object without inertia need not be held if the robot
    does not leave it. Where iMPC brings an object with inertia no nearer within a horizon, samples determine the
    commands: they find motions to the far side of the object, where the derivatives of iMPC vanish. They have twice as
    long.

    Args:
        task: The task.
        world: Moves by each command before the next one is requested.
        leave: Whether to release the object at the goal. At other poses the fingers keep holding it, because it would
            fall.
        seed: Seed of the samples.
    """
    settings = (task.impc or dexterous(task)).replace(h=task.options.h)
    loop: Mpc | SamplingMpc = Mpc(task, settings)
    held, since, least = 0, 0, np.full(2, np.inf)
    u = np.asarray(task.model.command_from(world.q))
    for _ in range(_MOST):
        u = loop.act(world.q)
        yield u
        held += loop.report.holding
        errors = np.divide(task.errors(world.q), (task.position_tolerance, task.rotation_tolerance))
        nearer, off = errors < least - _GAIN, float(errors.max())
        since, least = (0 if nearer.any() else since + 1), np.where(nearer, errors, least)
        there = off <= WITHIN or (since > 0 and off <= LEFT)
        if held >= PERIODS or (there and not leave and not world.coasts):
            break
        if since >= PERIODS and off <= LEFT:
            break
        sampled = isinstance(loop, SamplingMpc)
        if since >= HORIZON * (1 + sampled):
            if not world.coasts or sampled:
                break
            loop, since = SamplingMpc(task.replace(impc=settings), rng=seed), 0
    if leave and task.reached(world.q):
        yield from let_go(task, world, u)


def let_go(task: Task, world: Moved, u: Array) -> Iterator[Array]:
    """Yield commands (nu,) that follow the command ``u``, and after which no finger touches the object and the
    robot is at the task's start."""
    model, period = task.model, task.options.h
    for k in range(PERIODS):
        u = u + (np.asarray(model.command_from(world.q)) - u) / (PERIODS - k)
        yield u
    for _ in range(periods_to_leave(task)):
        move = _away(task, world.q, u, LANDING * period)
        if np.abs(move).max(initial=0.0) < STILL_POSITION:
            break
        u = u + move
        yield u
    back = _opened(task, world.q)[::-1]
    way = back[0] - u
    steps = math.ceil(float(np.abs(way).max(initial=0.0)) / (_joint_speed() * period))
    for k in range(steps):
        yield u + (k + 1) / steps * way
    yield from back[1:]


def periods_to_leave(task: Task) -> int:
    """Return the largest number of control periods for leaving an object: those in which fingers move by twice its
    length, as fast as they land on it."""
    return math.ceil(2.0 * task.length / (LANDING * task.options.h))


def _joint_speed() -> float:
    """Return the speed of the fastest joint, rad/s or m/s: that of motions between grasps."""
    return float(np.max(MotionOptions.speed))


def _opened(task: Task, q: Array) -> list[Array]:
    """Return commands (nu,) with which the fingers would leave the object from the robot's start."""
    model, here = task.model, np.array(q)
    own = robot_q(model)
    here[own] = task.start[own]
    way = [np.asarray(model.command_from(here))]
    for _ in range(periods_to_leave(task)):
        move = _away(task, here, way[-1], LANDING * task.options.h)
        if np.abs(move).max(initial=0.0) < STILL_POSITION:
            break
        way.append(way[-1] + move)
        here[model.actuated_q] += move / np.asarray(model.actuator_gear)
        with_followers(model, here)
    return way


def _away(task: Task, q: Array, u: Array, way: float) -> Array:
    """Compute the change ``(nu,)`` of a command that moves all points near the object away from it by ``way``.

    The points move along the normals. The change is zero if no point is within the object's length.
    """
    model = task.model
    names, robot = model.body_names, robot_bodies(model)
    rows = []
    for contact in model.collide(q, task.length):
        a, b = int(contact["body_a"]), int(contact["body_b"])
        sign = 1.0 if names[a] == task.object else -1.0  # the normal goes from A into B
        link, other = (b, a) if sign > 0.0 else (a, b)
        if names[other] != task.object or not robot[link]:
            continue
        place, frame = model.body_pose(q, names[link])
        local = frame.T @ (contact["pos"] - place)
        jacobian = by_drives(model, np.asarray(model.jacobian(q, names[link], local))[:3])
        rows.append(sign * contact["frame"][0] @ jacobian)
    if not rows:
        return np.zeros(model.nu)
    gear = np.asarray(model.actuator_gear)
    most = _joint_speed() * task.options.h * np.abs(gear)
    lower, upper = room(u, *command_range(model))
    limits = np.maximum(lower, -most), np.minimum(upper, most)
    return least_squares_in_box(
        np.array(rows) / gear, np.full(len(rows), way), *limits, regularization=1e-5
    )
