"""The second-order simulator that plans are executed in: MuJoCo at small steps."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from qdsim.model import Model
from qdsim.planning.space import Array, ObjectSpace

if TYPE_CHECKING:
    import mujoco

__all__ = ["Plant", "TransferOptions", "second_order"]

GRAVITY = 9.81  # m/s2, on objects that lie on a plane which is not part of the model
STILL = 1e-4
"""m/s, below which the friction of that plane is viscous: what counts as rest."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How a plan is executed.

    Attributes:
        speed: commands move by at most this Euclidean norm a second (rad/s, m/s): S3's simulations had
            0.1, its hardware 0.05 and 0.4.
        timestep: of the second-order simulator, s.
        control_period: of a controller, s.
        settle: s that the last command is held at the end of every segment.
        damping_ratio: of the joint springs; 1 is critical.
        support_friction: coefficient of the friction between an object and the plane it lies on, where gravity
            does not act along the object's slides (planar systems seen from above), whose plane is not part
            of the model. The object then slides along the mass matrix's ellipsoid of friction: pushed by
            forces ``f`` it moves along ``M^-1 f``, as in the quasi-dynamic model, and needs
            ``support_friction m g`` for that. Without effect on other objects.
        carry_on: True: the object goes from segment to segment as it is, and only the robot is set to the next
            grasp, as in an execution; False: every segment begins as planned, as S3 measures.
        press: springs of a robot that follows a plan by iMPC press with at most so many times the object's weight.
        position_noise, rotation_noise: standard deviations of where the object begins with respect to the plan,
            m and rad; of every segment that begins as planned.
        seed: of this noise, and of plans that are made on the way.
    """

    speed: float = 0.1
    timestep: float = 5e-4
    control_period: float = 0.05
    settle: float = 0.5
    damping_ratio: float = 1.0
    support_friction: float = 0.5
    carry_on: bool = False
    press: float = 2.0
    position_noise: float = 0.0
    rotation_noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("speed", "timestep", "control_period", "damping_ratio", "press"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{name}: expected a positive number, got {value!r}")
        for name in ("settle", "support_friction", "position_noise", "rotation_noise"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name}: expected a number >= 0, got {value!r}")
        if self.control_period < self.timestep:
            raise ValueError("control_period: shorter than timestep")


def second_order(
    model: Model, object_name: str, options: TransferOptions | None = None
) -> mujoco.MjModel:
    """The model as MuJoCo simulates it at small steps, with damped joint springs.

    Contacts act at touching (no margins), with elliptic cones; joints that actuators hold get the damping
    ``2 ζ sqrt(k m)``, ``m`` their diagonal entry of the mass matrix at the default configuration. The friction
    of a support that is not part of the model comes with the execution.

    Args:
        model: the model.
        object_name: the object's body.
        options: time step and damping.

    Raises:
        ValueError: if MuJoCo cannot compile the model, or it has no such object.
    """
    import mujoco  # when first used: planning loads without it

    given = options or TransferOptions()
    ObjectSpace(model, object_name)
    mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    mj.opt.timestep = given.timestep
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    mj.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    mj.opt.impratio = 10.0
    mj.geom_margin[:] = 0.0
    mj.pair_margin[:] = 0.0
    mj.geom_solref[:] = mj.pair_solref[:] = (max(4.0 * given.timestep, 2e-3), 1.0)
    mass = np.diag(model.mass_matrix(model.default_q))
    held = np.asarray(model.actuated_v)
    stiffness = np.zeros(model.nv)
    stiffness[held] = model.parameters.actuator_stiffness
    mj.dof_damping[held] += 2.0 * given.damping_ratio * np.sqrt(stiffness[held] * mass[held])
    return mj


class Plant:
    """A MuJoCo model in motion, with the robot's gravity compensated and the object's support.

    Args:
        model: the model.
        space: the object's coordinates.
        mj: a MuJoCo model of the same layout; it is copied.
        options: friction of the support.
        compensated: whether gravity on the robot is compensated.

    Attributes:
        supported: whether the object lies on a plane that is not part of the model.
    """

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        mj: mujoco.MjModel,
        options: TransferOptions,
        compensated: bool,
    ) -> None:
        import mujoco

        self._mujoco, self.model, self.space = mujoco, model, space
        self.mj = copy.copy(mj)
        self.data = mujoco.MjData(self.mj)
        self.held = np.asarray(model.actuated_v)
        self.compensated = compensated
        mass = np.diag(model.mass_matrix(model.default_q))[space.v]
        slides = mass[~space.rotation]
        self.supported = len(slides) > 0 and not _is_pulled(self.mj, model, space)
        self._friction = options.support_friction * GRAVITY * mass * self.supported
        self._per_mass = mass / slides.max(initial=1e-300)
        self._damping = np.array(self.mj.dof_damping[space.v])

    def reset(self, q: Array) -> None:
        """At rest in ``q``."""
        self._mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[:] = q

    @property
    def q(self) -> Array:
        """Where everything is ``(nq,)``."""
        return np.array(self.data.qpos)

    def advance(self, u: Array) -> None:
        """A time step with the command ``u``."""
        self.data.ctrl[:] = u
        if self.compensated:
            self.data.qfrc_applied[self.held] = self.data.qfrc_bias[self.held]
        if self._friction.any():
            # mu m g M v / |v|_M as a damping of this step, which MuJoCo takes implicitly
            v = self.data.qvel[self.space.v]
            speed = float(np.sqrt(self._per_mass @ (v * v)))
            self.mj.dof_damping[self.space.v] = self._damping + self._friction / max(speed, STILL)
        self._mujoco.mj_step(self.mj, self.data)


def _is_pulled(mj: mujoco.MjModel, model: Model, space: ObjectSpace) -> bool:
    """Whether gravity acts along some slide of the object."""
    import mujoco

    data = mujoco.MjData(mj)
    data.qpos[:] = model.default_q
    mujoco.mj_forward(mj, data)  # at rest the bias force is gravity's
    slides = space.v[~space.rotation]
    weight = float(np.max(model.parameters.body_mass)) * float(np.linalg.norm(mj.opt.gravity))
    return bool(np.any(np.abs(data.qfrc_bias[slides]) > 1e-9 * weight))
