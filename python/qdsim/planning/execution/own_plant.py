"""Plants that simulate the package's own second-order step, with rigid contacts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.dynamics import DynamicOptions, DynamicStep, step_dynamic
from qdsim.model import Model
from qdsim.planning.execution.world import World, damping_of
from qdsim.planning.plans.trials import SECOND_ORDER
from qdsim.planning.task.robot import GRAVITY, mass_metric, per_dof
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["OwnPlant", "judging_options"]

TRIES = 3
"""Largest number of steps in which the friction of the support adapts to the contact forces of the same time step; with
one, test_judge.py fails."""
SHARE = 0.02
"""Change of the contact forces, as a share of the friction limit, below which no further step is needed."""


def judging_options(options: TransferOptions, given: DynamicOptions | None) -> DynamicOptions:
    """Return options of the second-order step, given or default, with the execution's time step."""
    return (given or SECOND_ORDER).replace(h=options.timestep)


class OwnPlant(World):
    """The model itself, simulated by `step_dynamic`.

    The friction of the support opposes the motion that the object would have by its momentum and
    its contact forces, up to the friction limit. It uses the contact forces of the last step; if
    they change, the step is repeated.

    Args:
        model, space, options, compensated, bounds: As in ``World``.
        dynamics: Options of the step.
    """

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        dynamics: DynamicOptions,
        options: TransferOptions,
        compensated: bool,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        damping = per_dof(model, model.parameters.joint_damping) + damping_of(model, space, options)
        super().__init__(model, space, options, damping, compensated, bounds)
        self._moved = _with_dampers(model, damping, options)
        self._options = dynamics.replace(gravity_on_actuated=not compensated)
        self._mass = mass_metric(model)[space.v]
        self._reach = options.support_friction * GRAVITY * dynamics.h
        self._tau = np.zeros(model.nv)
        self._pushed = np.zeros(len(self._mass))
        self._q, self._v = np.array(model.default_q), np.zeros(model.nv)
        self._last: DynamicStep | None = None

    def _place(self, q: Array) -> None:
        self._q, self._v = np.array(q, dtype=float), np.zeros(self.model.nv)
        self._tau[:], self._pushed[:] = 0.0, 0.0
        self._last = None

    def _step(self, u: Array) -> None:
        before = self._v
        for _ in range(TRIES if self.rubs else 1):
            if self.rubs:
                self._rub(before)
            step = step_dynamic(
                self._moved, self._q, before, u, self._options, tau=self._tau, warm_start=self._last
            )
            if not self.rubs or self._agrees(step.v_next - before):
                break
        self._q, self._v, self._last = step.q_next, step.v_next, step

    def _rub(self, v: Array) -> None:
        """Set the friction of the support against the motion that momentum and contacts would give the object."""
        own, h = self._object, self._options.h
        self._tau[own] = -self._stopping(self._mass * v[own] + h * self._pushed) / h

    def _agrees(self, change: Array) -> bool:
        """Update the forces of contacts on the object; return whether friction was computed with nearly the same."""
        own, h = self._object, self._options.h
        pushed = self._mass * change[own] / h - self._tau[own]
        known = np.abs(pushed - self._pushed).max() <= SHARE * np.abs(self._friction).max()
        self._pushed = pushed
        return bool(known)

    def _stopping(self, momentum: Array) -> Array:
        """Return the momentum that friction removes in a step: along the momentum, in the metric of the masses."""
        speed = math.sqrt(float(np.sum(momentum**2 / self._mass)) / self._mass_of_slides)  # in m/s
        return momentum * min(1.0, self._reach / max(speed, 1e-300))

    @property
    def _mass_of_slides(self) -> float:
        return float((self._mass / self._per_mass).max())


def _with_dampers(model: Model, damping: Array, options: TransferOptions) -> Model:
    """Return the model with the given dampers in its joints, and with the force limits of its actuators."""
    per_joint = []
    for name in model.joint_names:
        own = damping[model.slice_v(name)]
        if np.ptp(own) > 0.0:
            raise ValueError(
                f"object_damping: with simulator='qdsim' one number for all of joint {name!r}, got {own}"
            )
        per_joint.append(own[0])
    changes: dict[str, Any] = {"joint_damping": np.array(per_joint)}
    if options.force is not None:
        limit = spread("force", options.force, model.nu)
        changes["actuator_force_range"] = np.column_stack((-limit, limit))
    return model.with_parameters(**changes)
