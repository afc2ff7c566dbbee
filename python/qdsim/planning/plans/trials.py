"""Second-order rollouts of a plan's edges at the speed of executions, with errors in friction and
mass."""

from __future__ import annotations

import math

import numpy as np

from qdsim.array_type import Array
from qdsim.batches.dynamics import rollout_dynamic
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.grasps.samplers.carrying import OFF
from qdsim.planning.grasps.samplers.touching import sides
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.task.robot import (
    GRAVITY,
    critical_damping,
    lies_on_a_plane,
    mass_metric,
    per_joint,
    strides,
)
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["SECOND_ORDER", "SEEDS", "SETTLE", "Trials"]

SEEDS = 3
"""Number of rollouts of each edge."""
SETTLE = 0.3
"""Time in s for which the last command is held, so that springs and bodies come to rest. With
three times as much, test_executable.py fails."""
WORLD = TransferOptions()
"""Speed of executions, and the friction of a plane that is not part of the model."""
SECOND_ORDER = DynamicOptions(margin=0.02, recovery_speed=0.1, infeasible="soften")
"""Options of the rollouts. Bodies move less than the margin in a step; faster ones are detected as
missed pairs."""


class Trials:
    """Simulates edges with other friction and masses.

    Args:
        model: the model.
        goals: the poses of the object that count as its goal.
        gravity_on_actuated: whether gravity acts on the robot.
        tolerances: m and rad.

    Attributes:
        model: with the dampers of executions.
    """

    def __init__(
        self,
        model: Model,
        goals: GoalSet,
        gravity_on_actuated: bool,
        tolerances: tuple[float, float],
    ) -> None:
        self._goals, self._tolerances = goals, np.array(tolerances)
        damping = model.parameters.joint_damping + per_joint(model, critical_damping(model))
        self.model = model.with_parameters(joint_damping=damping)
        self._worlds = _worlds(self.model, goals.space)
        self._options = SECOND_ORDER.replace(gravity_on_actuated=gravity_on_actuated)

    def worst(self, q: Array, first: Array, inputs: Array, end: Array) -> float:
        """Largest error of the object at the end of an edge over all worlds, in tolerances;
        infinite without a solution.

        Args:
            q: ``(nq,)`` start of the edge, at rest.
            first: ``(nu,)`` the command there.
            inputs: ``(steps, nu)`` the edge's commands.
            end: ``(nq,)`` planned end.
        """
        model = self.model
        q, still = np.asarray(model.normalize(q)), np.zeros(model.nv)
        u = _in_time(model, q, np.vstack((first, inputs)))
        path = rollout_dynamic(
            model, q, still, u, self._options, parameters=self._worlds, errors="mark"
        )
        if np.any(path.steps_done < len(u)):
            return math.inf
        off = [self._goals.apart(there, end) / self._tolerances for there in path.q[:, -1]]
        return float(np.max(off))


def _in_time(model: Model, q: Array, knots: Array) -> Array:
    """Interpolate commands ``(n, nu)`` at small steps between knots ``(steps + 1, nu)``, and hold
    the last one for ``SETTLE``."""
    h = SECOND_ORDER.h
    way = np.linalg.norm(np.diff(knots, axis=0) * strides(model, q), axis=1)
    times = np.concatenate(([0.0], np.cumsum(np.maximum(way / WORLD.speed, h))))
    at = h * np.arange(1, math.ceil((times[-1] + SETTLE) / h) + 1)
    return np.stack([np.interp(at, times, column) for column in knots.T], axis=1)


def _worlds(model: Model, space: ObjectSpace) -> dict[str, Array]:
    """Draw the parameters ``(seeds, ...)`` of the rollouts."""
    p, rng = model.parameters, np.random.default_rng(0)
    friction, mass = rng.uniform(1.0 - OFF, 1.0 + OFF, (2, SEEDS))
    own, _ = sides(model, space.body)
    heavier = np.where(own, mass[:, None], 1.0)
    values = {
        "pair_friction": friction[:, None, None] * p.pair_friction,
        "body_mass": heavier * p.body_mass,
        "body_inertia": heavier.reshape(*heavier.shape, *[1] * (p.body_inertia.ndim - 1))
        * p.body_inertia,
    }
    if lies_on_a_plane(model, space):
        weight = np.zeros(model.nv)
        own_mass = mass_metric(model)[space.v]
        # Per coordinate: a semi-axis of the friction ellipsoid.
        weight[space.v] = (
            WORLD.support_friction * GRAVITY * np.sqrt(own_mass * own_mass[~space.rotation].max())
        )
        rubbing = p.joint_friction + per_joint(model, weight)
        values["joint_friction"] = (friction * mass)[:, None] * rubbing
    return values
