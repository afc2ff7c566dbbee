"""Settings for fingers that turn and carry things in a world of second order, derived from the task alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import instance, numbers, spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.robot import levers, object_weight, turning
from qdsim.planning.task.task import Task

__all__ = ["dexterous", "in_space", "stiff_kappa"]

GAP = 1.0 / 90.0
"""Distance, in lengths of the object, at which a contact of the smoothed model carries the object's weight."""
MOVES, POSTURE = 6.0, 0.006
"""Weights of the command's moves and of the robot's posture, as motions of the fingertips over the object's length."""
RADII = (0.18, 0.054, 0.018)
"""Trust regions, as motions of the fingertips over the object's length."""
PERIOD, HORIZON = 0.1, 10
"""Control period in s, and periods of the horizon. Half a second of horizon loses objects that a second keeps."""
PRESS = 30.0
"""Largest force of the springs, in weights of the object, where the actuators' limits are unknown."""


def in_space(task: Task) -> bool:
    """Whether the task's object turns freely, and gravity pulls it."""
    return bool(task.space.rotation_vectors) and bool(np.any(task.model.parameters.gravity))


def stiff_kappa(weight: float, length: float) -> float:
    """The log-barrier weight (1/J) at which a contact carries a weight (N) at a ninetieth of a length (m). Its force
    at a distance is ``1 / (kappa distance)``.

    With a softer barrier plans rely on forces that exist in the model only; with a stiffer one the model does not see
    the contacts that fingers could make.
    """
    return 1.0 / (weight * GAP * length)


def dexterous(task: Task, force: float | ArrayLike | None = None) -> ImpcOptions:
    """Choose settings of :class:`Mpc` for in-hand manipulation that also hold on simulators and robots.

    Commands move little from period to period and springs press no harder than actuators can: what is fast or far
    does not matter in the quasi-dynamic model, and throws things in a world with inertia. Every weight comes from
    the object's weight and length and the lengths of the fingers; errors weigh as in :meth:`TrackingCost.for_task`.

    Args:
        task: what to do.
        force: N or Nm at the joint, what an actuator can pull with, one number or one per actuator; None: what
            presses with 30 times the object's weight, and no more than the model's actuators can.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    instance("task", task, Task)
    model = task.model
    gear = np.abs(np.asarray(model.actuator_gear))
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    weight = object_weight(model, task.space, task.length)
    arm = levers(model, task.start)
    strongest = np.abs(model.parameters.actuator_force_range).min(axis=1, initial=np.inf)
    limit = np.minimum(PRESS * weight * np.maximum(arm, 1e-6), np.maximum(strongest, 1e-6))
    if force is not None:
        limit = spread("force", numbers("force", force, per="actuator", above=0), model.nu)
    tip = (
        _typical(model, arm) / gear / task.length
    )  # a fingertip's motion in lengths, per unit of the command
    cost = TrackingCost(
        object=TrackingCost.for_task(task).object,
        robot=tuple(POSTURE * (tip * gear) ** 2),
        command=tuple(MOVES * tip**2),
    )
    return ImpcOptions(
        horizon=HORIZON,
        h=PERIOD,
        cost=cost,
        kappa=stiff_kappa(weight, task.length),
        radii=tuple(tuple(r / tip) for r in RADII),
        start="hold",
        reach=tuple(limit / stiffness * gear),
    )


def _typical(model: Model, arm: Array) -> Array:
    """Levers ``(nu,)``, the mean of all turning joints for each of them: weights in proportion to the joints' own
    levers turn objects less often."""
    turns = turning(model)
    typical = np.maximum(arm, 1e-6)
    if turns.any():
        typical[turns] = max(float(arm[turns].mean()), 1e-6)
    return typical
