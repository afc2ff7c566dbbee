"""The end of a push, before an actuator pulls too hard or the object tips over."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers.carrying import TILT
from qdsim.planning.task.drives import lengths
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["PushLimits", "before"]


def before(out: NDArray[np.bool_], inputs: Array, trajectory: Array) -> tuple[Array, Array] | None:
    """Return the steps before the first one that is marked; None if the first step is marked.

    Args:
        out: ``(steps,)`` marks.
        inputs, trajectory: ``(steps, nu)`` commands and ``(steps, nq)`` configurations after them.
    """
    kept = int(out.argmax()) if out.any() else len(out)
    return (inputs[:kept], trajectory[:kept]) if kept else None


class PushLimits:
    """Ends pushes before a step in which an actuator pulls harder than it may, or the object tips.

    The object has to stay upright if it rests without the robot on the same side at the start and at the goal. Tipping
    such an object brings its centre nearer to the goal but not its base, and the object falls during an execution.

    Args:
        task: The task.
        options: Options of the search; pushes of the published strategy may tip the object.
    """

    def __init__(self, task: Task, options: RRTOptions) -> None:
        force = options.force
        self._model, self._object = task.model, task.object
        self._strength = None if force is None else spread("force", force, task.model.nu)
        self._up = _upright(task) if options.strategy == "chain" else None

    def __call__(self, inputs: Array, trajectory: Array) -> tuple[Array, Array] | None:
        """Return the steps before the first one that breaks a limit; None if the first step does.

        Args:
            inputs, trajectory: ``(steps, nu)`` commands and ``(steps, nq)`` configurations after them.
        """
        out = np.zeros(len(inputs), dtype=bool)
        if self._up is not None:
            standing = np.array([_up(self._model, q, self._object) @ self._up for q in trajectory])
            out |= standing < math.cos(0.5 * TILT)
        if self._strength is not None:
            model, robot = self._model, lengths(self._model, trajectory)
            pull = model.parameters.actuator_stiffness * (inputs / model.actuator_gear - robot)
            out |= np.any(np.abs(pull) > self._strength, axis=1)
        return before(out, inputs, trajectory)


def _upright(task: Task) -> Array | None:
    """Return the unit vector ``(3,)`` against gravity in the coordinates of an object that rests on the same side at
    the start and at the goal; None for other objects."""
    model, ends = task.model, (task.start, task.aim)
    if not np.any(model.parameters.gravity):
        return None
    start, goal = (_up(model, q, task.object) for q in ends)
    if start @ goal < math.cos(0.5 * TILT):
        return None
    return start if all(is_stable(model, q, task.object, task.options) for q in ends) else None


def _up(model: Model, q: Array, name: str) -> Array:
    """Return the unit vector ``(3,)`` against gravity in the coordinates of a body."""
    gravity = np.asarray(model.parameters.gravity)
    return np.asarray(model.body_pose(q, name)[1].T @ gravity / -np.linalg.norm(gravity))
