"""Forces between a body and its parent, for force and torque sensors (d'Alembert's principle on the
subtree)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qdsim._core import DynamicStep, Linearization
from qdsim.array_type import Array
from qdsim.batches.dynamics import BatchDynamicSteps
from qdsim.batches.inputs import Wrench, wrenches_of
from qdsim.description.constraints import Connect, Weld
from qdsim.description.sensors import ForceSensor, TorqueSensor
from qdsim.model import Model
from qdsim.sensors.contact_sensor import subtree
from qdsim.sensors.loads import Loads, Poses, Result, net_forces, rows_like

__all__ = ["Interaction"]


class Interaction:
    """Loads of all bodies in the steps.

    Args:
        model, v, wrench, result: as for `read_sensors`.
        loads, poses: of the result.
    """

    def __init__(
        self,
        model: Model,
        v: npt.ArrayLike | None,
        wrench: Wrench | None,
        result: Result,
        loads: Loads,
        poses: Poses,
    ) -> None:
        self.model, self.poses = model, poses
        count, bodies = loads.count, model.body_count
        step = result.step if isinstance(result, Linearization) else result
        asked = -net_forces(loads, "body", poses.com)
        weight = np.asarray(model.parameters.body_mass)[:, None] * model.parameters.gravity
        asked[..., :3] -= weight
        if wrench is not None:
            given = wrenches_of(model, wrench)
            asked -= np.broadcast_to(given, (*loads.lead, bodies * 6)).reshape(count, bodies, 6)
        if isinstance(step, (DynamicStep, BatchDynamicSteps)):
            asked += _inertial(model, poses.q, v, step, loads.lead)
        self._asked = (
            asked  # (steps, bodies, 6) load on the joint of each body, about its centre of mass
        )
        forces = np.asarray(step.constraint_force).reshape(count, -1, 6)
        for i, item in enumerate(model.description.constraints):
            if isinstance(item, (Connect, Weld)):
                self._take(item.body_b, item.anchor_b, forces[:, i])
                self._take(item.body_a, item.anchor_a, -forces[:, i])

    def _take(self, body: str, anchor: npt.ArrayLike, given: Array) -> None:
        """Subtract the force and moment of a constraint at an anchor from the load of the body's joint."""
        index = self.model.body_index(body)
        at = self.poses.pos[:, index] + self.poses.rot[:, index] @ np.asarray(anchor)
        self._asked[:, index] -= given
        self._asked[:, index, 3:] -= np.cross(at - self.poses.com[:, index], given[:, :3])

    def at(self, sensor: ForceSensor | TorqueSensor) -> Array:
        """Return the value (steps, 3) of a sensor in the frame of its site."""
        site = sensor.site
        body = self.model.body_index(site.body)
        pos, rot = self.poses.frame(body, site.pos, site.quat)
        behind = subtree(self.model, body)
        asked = self._asked[:, behind]
        if isinstance(sensor, ForceSensor):
            total = asked[..., :3].sum(axis=1)
        else:
            arm = self.poses.com[:, behind] - pos[:, None]
            total = (asked[..., 3:] + np.cross(arm, asked[..., :3])).sum(axis=1)
        return np.asarray((np.swapaxes(rot, 1, 2) @ total[:, :, None])[..., 0])


def _inertial(
    model: Model,
    q: Array,
    v: npt.ArrayLike | None,
    step: DynamicStep | BatchDynamicSteps,
    lead: tuple[int, ...],
) -> Array:
    """Return the inertial wrenches (steps, bodies, 6) of the bodies, from their accelerations in the step."""
    if v is None:
        raise ValueError("v: force and torque sensors of second-order steps need the velocities")
    before = rows_like("v", v, (*lead, model.nv)).reshape(-1, model.nv)
    change = (np.asarray(step.v_next).reshape(-1, model.nv) - before) / step.h
    return np.array([model.inertial_wrenches(*row) for row in zip(q, before, change, strict=True)])
