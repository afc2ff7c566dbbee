"""Motion of an object that fingers hold, in the model: the grip in closed loop with the exact step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from qdsim._core import SolverError
from qdsim.array_type import Array
from qdsim.planning.grasps.grip import MOVING, Grip, GripOptions
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.task import Task
from qdsim.step import Options, step

__all__ = ["Carried", "carried", "grip_of_steps", "unloaded"]

_CLOSING = 3
"""Number of steps of the model before the motion, in which the fingers approach the object and press; with
three times as many, test_executor_rules.py fails."""

_GAINED = 0.3
"""Share of the requested motion that a step has to achieve; below it, fingers slip or the object is stuck."""


def grip_of_steps(task: Task, options: GripOptions, carries: bool = False) -> Grip:
    """Return the control law for steps of the model, each of which moves the object as far as fingers can follow.

    Args:
        task: The task.
        options: How the object is held.
        carries: As in :class:`Grip`.
    """
    grip = options.asked_every(options.near / MOVING)
    return Grip(task.model, task.object, task.length, grip, task.command_bounds, carries)


def unloaded(displacement: Array) -> Array | None:
    """Return the load on an object that nothing but gravity and springs acts on: none."""
    return None


def carried(task: Task, grip: Grip, options: Options, grasp: Array) -> tuple[Array, Array] | None:
    """Move the object from a grasp straight to the task's goal, carried by the fingers alone.

    Args:
        task: The task.
        grip: The control law, of :func:`grip_of_steps`.
        options: Of the steps.
        grasp: ``(nq,)`` configuration.

    Returns:
        Commands ``(steps, nu)`` and the configurations after them ``(steps, nq)``, as far as the fingers hold the
        object; None if they do not hold it.
    """
    motion = Carried(task, grip, options, grasp)
    motion.press(lean=False)
    if not motion.inputs:
        return None
    motion.move(task.goals.nearest(grasp), False, math.inf)
    return np.array(motion.inputs), np.array(motion.path[1:])


class Carried:
    """The path of a held object, extended step by step; it is empty if the fingers do not hold the object.

    Args:
        task: The task.
        grip: The control law, of :func:`grip_of_steps`.
        options: Of the steps.
        q: ``(nq,)`` the grasp.
        load: Function from a displacement ``(size,)`` of the object to the additional load, N and
            Nm, that the fingers have to bear during this motion; None: no load.

    Attributes:
        path: Configurations ``(nq,)``, the first is the grasp.
        inputs: Commands ``(nu,)`` of the steps between them.
        stride: Time of the object's motion in a step, s.
    """

    def __init__(
        self,
        task: Task,
        grip: Grip,
        options: Options,
        q: Array,
        load: Callable[[Array], Array | None] = unloaded,
    ) -> None:
        self._task, self._grip, self._options, self._load = task, grip, options, load
        self.stride = grip.options.near / MOVING
        self.path: list[Array] = [np.array(q)]
        self.inputs: list[Array] = []

    def distance(self, aim: Array) -> float:
        """Compute the distance of the object to its pose in ``aim`` ``(nq,)``, m; rotations are multiplied by the
        task's length."""
        space = self._task.space
        way = space.difference(aim, self.path[-1]) * space.scale(self._task.length)
        return float(np.linalg.norm(way))

    def go(self, displacement: Array, lean: bool) -> bool:
        """Take one step that displaces the object; return whether the fingers held it and the step succeeded.

        Args:
            displacement: ``(size,)``, m and rad.
            lean: whether surroundings that the object then touches may carry part of its load.
        """
        task, grip, load, q = self._task, self._grip, self._load(displacement), self.path[-1]
        lean = lean and grip.leans(task.with_object(q, displacement))
        made = grip.command(q, displacement, lean=lean, load=load)
        if not grip.holds(made):
            return False
        try:
            self.path.append(np.array(step(task.model, q, made.u, self._options).q_next))
        except SolverError:
            return False
        self.inputs.append(made.u)
        return True

    def press(self, lean: bool) -> None:
        """Let the fingers approach the object, and press."""
        still = np.zeros(self._task.space.size)
        for _ in range(_CLOSING):
            if not self.go(still, lean):
                break

    def move(self, aim: Array, lean: bool, most_steps: float) -> None:
        """Move the object straight to its pose in ``aim`` ``(nq,)``, as far as the fingers can follow.

        A step is halved if straight motions of the fingers do not succeed, because an almost stretched finger bends by
        a large angle for a small displacement.

        Args:
            aim: the pose.
            lean: as in :meth:`go`.
            most_steps: largest number of steps of the path, which ends without a limit, too: each step comes nearer.
        """
        task, grip, path = self._task, self._grip, self.path
        room = max(0.8 * task.position_tolerance, task.space.errors(path[-1], aim)[0] + 1e-3)
        scale = task.space.scale(task.length)
        stride, line = self.stride, task.space.difference(aim, path[-1])
        while len(self.inputs) < most_steps and MOVING * stride > 0.25 * TOUCHING:
            left, count = self.distance(aim), len(self.inputs)
            if left < TOUCHING:
                break
            way = grip.towards(path[-1], aim, stride, line)
            asked = float(np.linalg.norm(way * scale))
            if not (self.go(way, lean) and self._has_gone(aim, left - _GAINED * asked, room)):
                del path[count + 1 :], self.inputs[count:]
                stride *= 0.5

    def _has_gone(self, aim: Array, most: float, room: float) -> bool:
        """Return whether the fingers hold the object, and the last step has brought it near enough to its aim."""
        q, grip = self.path[-1], self._grip
        near = self._task.space.errors(q, aim)[0] <= room
        return grip.touching(q) >= grip.fingers and near and self.distance(aim) <= most
