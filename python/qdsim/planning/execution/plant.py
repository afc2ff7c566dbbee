"""Executions in MuJoCo with small time steps."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from qdsim.arguments import instance, spread
from qdsim.array_type import Array
from qdsim.description.contact_solver import SOLIMP, SOLREF
from qdsim.model import Model
from qdsim.planning.execution.world import PlantError, World, damping_of
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.transfer_options import TransferOptions

if TYPE_CHECKING:
    import mujoco

__all__ = ["Plant", "second_order"]

STILL = 1e-4
"""Speed below which objects count as resting, and the friction of a plane outside the model is viscous, m/s."""


def second_order(
    model: Model, object_name: str, options: TransferOptions | None = None
) -> mujoco.MjModel:
    """Convert a model to MuJoCo for simulation at small time steps, with damped joints.

    Contacts act at touching (no margins). Joints with actuators get the damping ``2 ζ sqrt(k m)``,
    with ``m`` their diagonal entry of the mass matrix at the default configuration. The friction of
    a support that is not part of the model is added by the execution.

    Args:
        model: the model.
        object_name: name of the object's body.
        options: time step and damping.

    Raises:
        ValueError: MuJoCo cannot compile the model, the object does not exist, or ``object_damping`` or
            ``force`` has the wrong number of entries.
    """
    import mujoco  # imported late, because planning does not need it

    given = instance("options", options, TransferOptions, or_none=True) or TransferOptions()
    space = ObjectSpace(model, object_name)
    if np.ndim(given.object_damping) == 1 and np.size(given.object_damping) != space.size:
        raise ValueError(
            f"object_damping: expected a number or {space.size} of them, got {given.object_damping!r}"
        )
    mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    mj.opt.timestep = given.timestep
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    _set_contacts(mj, given)
    if given.force is not None:
        limit = spread("force", given.force, model.nu) / np.abs(np.asarray(model.actuator_gear))
        mj.actuator_forcelimited[:] = True
        mj.actuator_forcerange[:] = np.column_stack((-limit, limit))
    mj.dof_damping[:] += damping_of(model, space, given)
    return mj


def _set_contacts(mj: mujoco.MjModel, options: TransferOptions) -> None:
    """Set the contacts that the options name, in place of the solver parameters and margins of the file."""
    import mujoco

    mj.geom_margin[:] = 0.0
    mj.pair_margin[:] = 0.0
    mj.geom_solref[:] = mj.pair_solref[:] = SOLREF
    mj.geom_solimp[:] = mj.pair_solimp[:] = SOLIMP
    mj.geom_solmix[:] = 1.0
    mj.pair_solreffriction[:] = 0.0
    mj.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    is_default = options.contacts == "default"
    cones = mujoco.mjtCone
    mj.opt.cone = cones.mjCONE_PYRAMIDAL if is_default else cones.mjCONE_ELLIPTIC
    mj.opt.impratio = 1.0 if is_default else 10.0
    if options.contacts == "stiff":
        mj.geom_solref[:] = mj.pair_solref[:] = (max(4.0 * options.timestep, 2e-3), 1.0)


class Plant(World):
    """A MuJoCo model in motion.

    Args:
        model, space, options, compensated, bounds: As in ``World``.
        mj: A MuJoCo model of the same layout; it is copied.
    """

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        mj: mujoco.MjModel,
        options: TransferOptions,
        compensated: bool,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        import mujoco

        super().__init__(model, space, options, np.array(mj.dof_damping), compensated, bounds)
        self._mujoco = mujoco
        self.mj = copy.copy(mj)
        self.data = mujoco.MjData(self.mj)
        self._before = np.zeros(model.nq)
        self._damping = np.array(self.mj.dof_damping[space.v])

    @property
    def q(self) -> Array:
        """The configuration ``(nq,)``."""
        return np.array(self.data.qpos)

    @property
    def v(self) -> Array:
        """The velocity ``(nv,)``, m/s and rad/s."""
        return np.array(self.data.qvel)

    def _place(self, q: Array) -> None:
        self._mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[:] = q

    def continue_from(self, q: Array, v: Array) -> None:
        """Set the configuration to ``q`` ``(nq,)`` and the velocity to ``v`` ``(nv,)``."""
        self.reset(q)
        self.data.qvel[:] = v
        self._mujoco.mj_forward(
            self.mj, self.data
        )  # bias forces are compensated from the first step on

    def _step(self, u: Array) -> None:
        data, held, own = self.data, self._held, self._object
        data.ctrl[:] = u
        if self.compensated:
            data.qfrc_applied[held] = data.qfrc_bias[held]
        if self.rubs:
            # the friction mu m g M v / |v|_M as a damping of this step, which MuJoCo integrates implicitly
            v = data.qvel[own]
            speed = math.sqrt(self._per_mass @ (v * v))
            self.mj.dof_damping[own] = self._damping + self._friction / max(speed, STILL)
        time, self._before[:] = data.time, data.qpos
        self._mujoco.mj_step(self.mj, data)
        if not data.time > time:  # MuJoCo has restarted from its default state
            data.qpos[:] = self._before
            raise PlantError(f"MuJoCo's simulation diverged at {time:.4g} s")
