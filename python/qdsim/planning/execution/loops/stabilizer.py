"""A controller that keeps an execution near its plan, with one smoothed linearisation per period."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.arguments import fields, instance, number
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.least_squares import least_squares_in_box
from qdsim.planning.task.robot import command_range
from qdsim.planning.task.space import ObjectSpace
from qdsim.step import Options, linearize, step

__all__ = ["Stabilizer"]


@dataclasses.dataclass(frozen=True, eq=False)
class Stabilizer:
    """Commands near the planned ones that bring the object back to its planned pose.

    Minimises ``|e|²_Q + R |u - u_plan|² + R/2 |u - u_last|²`` over commands within the joint
    limits, where ``e`` is the predicted error of the object after one control period. The
    prediction is the exact step from the measured configuration with the planned command, plus the
    smoothed derivative times the change of the command. (This is the quasi-static controller of the
    scripts released with CQDC, which predict with the smoothed step instead and so move objects
    that nothing touches.)

    Attributes:
        model: The model.
        object: Name of the object's body.
        options: Options of the step; its ``h`` is the control period, its ``kappa`` the smoothing, 1/J.
        position_weight, rotation_weight: Weights of the object's error, 1/m² and 1/rad².
        command_weight: R, per squared unit of a command.
        reach: Largest deviation of a command from the planned one, rad or m.
    """

    model: Model
    object: str
    options: Options
    position_weight: float = 1e3
    rotation_weight: float = 1e2
    command_weight: float = 1.0
    reach: float = 0.2
    _space: ObjectSpace = dataclasses.field(init=False, repr=False)
    _limits: tuple[Array, Array] = dataclasses.field(init=False, repr=False)
    _weights: Array = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        instance("options", self.options, Options)
        if self.options.kappa is None:
            raise ValueError("options: kappa must be a number, the controller needs smoothed steps")
        fields(
            self, number, "position_weight", "rotation_weight", "command_weight", "reach", above=0
        )
        space = ObjectSpace(self.model, self.object)
        object.__setattr__(self, "_space", space)
        object.__setattr__(self, "_limits", command_range(self.model))
        weights = np.where(space.rotation, self.rotation_weight, self.position_weight)
        object.__setattr__(self, "_weights", np.sqrt(weights))

    def __call__(self, q: Array, u_plan: Array, q_plan: Array, u_last: Array) -> Array:
        """Compute the command ``(nu,)`` for the next control period.

        Args:
            q: Measured configuration ``(nq,)``.
            u_plan, q_plan: Planned command ``(nu,)`` and configuration ``(nq,)`` at the period's end.
            u_last: Command ``(nu,)`` of the last period.

        Raises:
            SolverError: The step cannot be linearised at ``q``.
        """
        model, space = self.model, self._space
        result = linearize(model, q, u_plan, self.options, wrt=("u",))
        there = step(model, q, u_plan, self.options.replace(kappa=None)).q_next
        B = np.asarray(result.B)[space.v] * self._weights[:, None]
        error = space.difference(q_plan, there) * self._weights
        r = np.sqrt(self.command_weight)
        eye = np.eye(model.nu)
        matrix = np.vstack((B, r * eye, np.sqrt(0.5) * r * eye))
        target = np.concatenate((error, np.zeros(model.nu), np.sqrt(0.5) * r * (u_last - u_plan)))
        lower = np.minimum(np.maximum(self._limits[0] - u_plan, -self.reach), 0.0)
        upper = np.maximum(np.minimum(self._limits[1] - u_plan, self.reach), 0.0)
        return np.asarray(u_plan + least_squares_in_box(matrix, target, lower, upper))
