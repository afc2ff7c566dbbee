"""Settings for fingers that turn and carry objects in the real world, derived from the task alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import instance, number, numbers, spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.robot import levers, object_weight, turning
from qdsim.planning.task.task import Task

__all__ = ["dexterous", "fastest", "in_space", "stiff_kappa"]

GAP = 1.0 / 90.0
"""Distance, in lengths of the object, at which a contact of the smoothed model carries the object's weight."""
MOVES, POSTURE = 6.0, 0.006
"""Weights of changes of the command and of the robot's posture, for motions of the fingertips in
lengths of the object."""
RADII = (0.18, 0.054, 0.018)
"""Trust regions, as motions of the fingertips in lengths of the object."""
PERIOD, HORIZON = 0.1, 10
"""Control period in s, and number of its periods in the horizon. With a horizon of half a second,
objects are lost that are kept with one second."""
PRESS = 10.0
"""Largest force of the springs, in weights of the object, if the actuators' limits are unknown.
Fingers that press three times as hard throw light objects out of the hand; with half of it, they
turn them slowly."""


def in_space(task: Task) -> bool:
    """Return whether the task's object rotates freely and gravity acts on it."""
    return bool(task.space.rotation_vectors) and bool(np.any(task.model.parameters.gravity))


def fastest(task: Task) -> float:
    """Return the largest speed of fingertips under the settings of :func:`dexterous`, m/s."""
    return max(RADII) * task.length / PERIOD


def stiff_kappa(weight: float, length: float) -> float:
    """Return the log-barrier weight (1/J) at which a contact carries a weight (N) at a distance of
    a ninetieth of a length (m).

    The force of the barrier at a distance is ``1 / (kappa distance)``. With a softer barrier, plans
    rely on forces that exist only in the model; with a stiffer one, the model does not see contacts
    that fingers could make.
    """
    return 1.0 / (weight * GAP * length)


def dexterous(
    task: Task,
    force: float | ArrayLike | None = None,
    *,
    period: float = PERIOD,
    touch: float = 0.0,
) -> ImpcOptions:
    """Choose settings of :class:`Mpc` for in-hand manipulation that also work in simulators and on
    robots.

    Commands change little from period to period, and springs do not press harder than actuators
    can. Fast or large commands do no harm in the quasi-dynamic model, but throw objects in a world
    with inertia. All weights are derived from the object's weight and length and the lengths of the
    fingers; errors are weighted as in :meth:`TrackingCost.for_task`.

    Args:
        task: the task.
        force: largest force of an actuator, N or Nm at the joint, one number or one per actuator;
            None: a force that presses with 10 times the object's weight, within the force limits of
            the model's actuators.
        period: control period, s. The horizon is one second.
        touch: weight of the distances of the fingertips, in lengths of the object, from its centre
            (:class:`TrackingCost`). With 5, fingers that begin away from the object come to it, and
            do not leave it; with more they press on light objects from above. Where the fingers
            also have to let go, as in roadmaps, it is in their way.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
    """
    instance("task", task, Task)
    period, touch = number("period", period, above=0), number("touch", touch, least=0)
    model = task.model
    gear = np.abs(np.asarray(model.actuator_gear))
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    weight = object_weight(model, task.space, task.length)
    arm = levers(model, task.start)
    strongest = np.abs(model.parameters.actuator_force_range).min(axis=1, initial=np.inf)
    limit = np.minimum(PRESS * weight * np.maximum(arm, 1e-6), np.maximum(strongest, 1e-6))
    if force is not None:
        limit = spread("force", numbers("force", force, per="actuator", above=0), model.nu)
    # Motion of a fingertip, in lengths of the object, per unit of the command.
    tip = _typical(model, arm) / gear / task.length
    cost = TrackingCost(
        object=TrackingCost.for_task(task).object,
        robot=tuple(POSTURE * (tip * gear) ** 2),
        command=tuple(MOVES * tip**2),
        touch=touch / task.length**2,
    )
    return ImpcOptions(
        horizon=max(1, round(HORIZON * PERIOD / period)),
        h=period,
        cost=cost,
        kappa=stiff_kappa(weight, task.length),
        radii=tuple(tuple(r / tip) for r in RADII),
        start="hold",
        reach=tuple(limit / stiffness * gear),
    )


def _typical(model: Model, arm: Array) -> Array:
    """Return levers ``(nu,)``; all rotating joints get the mean of their levers.

    Weights in proportion to the joints' own levers succeed less often in turning objects.
    """
    turns = turning(model)
    typical = np.maximum(arm, 1e-6)
    if turns.any():
        typical[turns] = max(float(arm[turns].mean()), 1e-6)
    return typical
