"""Plans for a world of second order: edges at the pace of the execution, against the resistance that the world has.

A quasi-dynamic step resists an object's motion by ``epsilon M / h^2`` times how far it moves, the world by the
friction of a plane or by damping; and an edge that takes its command far in a few steps ends elsewhere than the same
command does slowly. Where both agree, plans of objects on a plane are nearly those of MuJoCo
(benchmarks/notes_transfer.md).
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

LEAST_EPSILON = 1e-3
PILOTS = 2
"""Plans that are made to see how fast the object goes."""


def paced(
    task: Task,
    options: TransferOptions | None = None,
    planner: RRTOptions | None = None,
    *,
    rng: int = 0,
) -> tuple[Task, RRTOptions]:
    """Prepare a task and planner settings for plans that are going to be executed.

    Edges get as many steps as keep the command within ``options.speed``, and end where an actuator would pull harder
    than ``options.force``: a plan may jam the robot until it slips, which outside of the model throws the object. If
    the object lies on a plane that is not part of the model, or is damped, ``epsilon`` is chosen so that the step
    resists as the world does, at the mean speed of the object in plans made for this purpose (friction does not depend
    on speed). If gravity acts on the object, regrasps are allowed only where it rests without the robot.

    Args:
        task: the task.
        options: of the execution.
        planner: settings to begin with; None: the task's own.
        rng: seed of the plans that are made to measure the speed.

    Returns:
        The task with this ``epsilon`` and these settings of its planner, and the settings. Strokes undo the pace by
        themselves.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong.
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
        # plans need many nodes whose grasps change only where the object stays
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
    """The ``epsilon`` with which a step of length ``h`` resists an object at some speed (m/s, in the metric of
    :func:`drift`) as the world of ``options`` does; None where nothing outside of the model resists it."""
    space = ObjectSpace(model, object_name)
    mass = mass_metric(model)[space.v]
    epsilon = 0.0
    if lies_on_a_plane(model, space):
        epsilon += options.support_friction * GRAVITY * h / max(speed, STILL)
    damping = np.broadcast_to(options.object_damping, mass.shape)
    main = ~space.rotation if np.any(~space.rotation) else space.rotation
    epsilon += h * float(np.mean(damping[main] / mass[main]))
    return max(epsilon, LEAST_EPSILON) if epsilon > 0.0 else None


def drift(plan: Plan, model: Model) -> float:
    """How fast the object goes, on average over its way, m/s: ``|v|_M``, the norm of the mass matrix over the
    object's mass."""
    space = ObjectSpace(model, plan.object)
    way = np.concatenate([step_lengths(model, space, segment) for segment in plan.segments])
    return max(float(way @ way / max(way.sum(), 1e-300)) / plan.options.h, STILL)


def step_lengths(model: Model, space: ObjectSpace, segment: Segment) -> list[float]:
    """How far the object goes in every step, m: the norm of the mass matrix over the object's mass."""
    mass = mass_metric(model)[space.v]
    metric = mass / mass[~space.rotation].max() if np.any(~space.rotation) else np.ones(len(mass))
    path = segment.configurations
    return [math.sqrt(metric @ space.difference(b, a) ** 2) for a, b in pairwise(path)]
