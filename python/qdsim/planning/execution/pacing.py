"""Tasks and planner settings for plans that are executed with velocities.

A quasi-dynamic step resists the motion of an object by ``epsilon M / h^2`` times its displacement. The
real resistance is the friction of a plane, or damping. Also, a fast change of the command ends in
another state than a slow one. If resistance and speed agree, plans of objects on a plane are executed
almost exactly (benchmarks/notes_transfer.md).
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from qdsim.arguments import instance, integer
from qdsim.model import Model
from qdsim.planning.execution.plant import STILL
from qdsim.planning.plans.plan import Plan
from qdsim.planning.plans.segment import Segment
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.robot import GRAVITY, lies_on_a_plane, mass_metric, strides
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["drift", "matched_epsilon", "paced", "step_lengths"]

PILOTS = 2
"""Number of plans that are made to measure the speed of the object."""


def paced(
    task: Task,
    options: TransferOptions | None = None,
    planner: RRTOptions | None = None,
    *,
    rng: int = 0,
) -> tuple[Task, RRTOptions]:
    """Prepare a task and planner settings for plans that will be executed.

    - Edges get as many steps as are necessary for no command to move faster than ``options.speed``.
    - Edges end where an actuator would need more than ``options.force``. Otherwise a plan may jam
      the robot, which slips during the execution and throws the object.
    - If the object is damped, or lies on a plane that is not part of the model, ``epsilon`` is
      chosen so that a step has the resistance of the world at the mean speed of the object. This
      speed is measured in plans made for this purpose.
    - If gravity acts on the object, regrasps are allowed only where the object rests without the
      robot.

    Args:
        task: The task.
        options: Options of the execution.
        planner: Settings to start from; None: those of the task.
        rng: Seed of the plans that measure the speed.

    Returns:
        The task with the new ``epsilon`` and planner settings, and these settings. Strokes do not
        use the new ``epsilon``.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names it.
    """
    instance("task", task, Task)
    given = instance("options", options, TransferOptions, or_none=True) or TransferOptions()
    instance("planner", planner, RRTOptions, or_none=True)
    rng = integer("rng", rng, least=0)
    base = planner or task.planner or RRTOptions()
    longest = base.step * float(strides(task.model, task.start).max())
    per_edge = math.ceil(longest / (given.speed * task.options.h) - 1e-9)
    force = given.force if base.force is None else base.force
    settings = base.replace(sub_steps=max(base.sub_steps, per_edge), force=force)
    if np.any(task.model.parameters.gravity) and not lies_on_a_plane(task.model, task.space):
        # such plans need many nodes, because grasps change only at nodes where the object rests
        nodes = max(settings.max_nodes, RRTOptions.max_nodes)
        settings = settings.replace(require_static_regrasps=True, max_nodes=nodes)
    for pilot in range(PILOTS):
        if matched_epsilon(task.model, task.object, given, task.options.h, 1.0) is None:
            break
        tree = rrt(task, settings, rng=rng + pilot)
        speed = drift(tree.plan(None if tree.reached else tree.best_node), task.model)
        epsilon = matched_epsilon(task.model, task.object, given, task.options.h, speed)
        task = task.replace(
            options=task.options.replace(epsilon=epsilon, mass_ratio=None),
            unpaced=task.unpaced or task.options,
        )
    return task.replace(planner=settings), settings


def matched_epsilon(
    model: Model, object_name: str, options: TransferOptions, h: float, speed: float
) -> float | None:
    """Compute the ``epsilon`` with which a step of length ``h`` resists an object at a speed as the
    world of ``options`` does.

    The speed is in m/s, in the metric of :func:`drift`. None if nothing outside the model resists
    the object.
    """
    space = ObjectSpace(model, object_name)
    mass = mass_metric(model)[space.v]
    epsilon = 0.0
    if lies_on_a_plane(model, space):
        epsilon += options.support_friction * GRAVITY * h / max(speed, STILL)
    damping = np.broadcast_to(options.object_damping, mass.shape)
    main = ~space.rotation if np.any(~space.rotation) else space.rotation
    epsilon += h * float(np.mean(damping[main] / mass[main]))
    return epsilon or None


def drift(plan: Plan, model: Model) -> float:
    """Compute the mean speed of the object along its path, m/s: ``|v|_M``, the norm of the mass matrix
    divided by the object's mass."""
    space = ObjectSpace(model, plan.object)
    way = np.concatenate([step_lengths(model, space, segment) for segment in plan.segments])
    return max(float(way @ way / max(way.sum(), 1e-300)) / plan.options.h, STILL)


def step_lengths(model: Model, space: ObjectSpace, segment: Segment) -> list[float]:
    """Compute the displacement of the object in every step, m, in the norm of the mass matrix divided
    by the object's mass."""
    mass = mass_metric(model)[space.v]
    metric = mass / mass[~space.rotation].max() if np.any(~space.rotation) else np.ones(len(mass))
    path = segment.configurations
    return [math.sqrt(metric @ space.difference(b, a) ** 2) for a, b in pairwise(path)]
