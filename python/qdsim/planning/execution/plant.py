"""The second-order simulator that plans are executed in: MuJoCo at small steps."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from qdsim.arguments import fields, flag, instance, integer, number, numbers, one_of, spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.robot import GRAVITY, command_range, mass_metric
from qdsim.planning.task.space import ObjectSpace, as_slice

if TYPE_CHECKING:
    import mujoco

__all__ = ["Plant", "TransferOptions", "second_order"]

STILL = 1e-4
"""m/s, below which the friction of that plane is viscous: what counts as rest."""
LOOK = 0.01
"""s, how often to look whether the object is still there,"""
FAR = 2.0
"""and how far away from its way, times how far the robot's parts are from it at most on that, it is lost."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How a plan is executed.

    Attributes:
        speed: commands move by at most this Euclidean norm a second (rad/s, m/s): CQDC's simulations had
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
        object_damping: viscous resistance of the object's coordinates, N s/m and Nm s/rad; a number for all or one
            for each. (Of the published planar systems the box that is pushed has 100 for each, others none.)
        carry_on: True: the object goes from segment to segment as it is, as in an execution; False: every segment
            begins as planned, as CQDC measures.
        motions: where the object carries on, the robot goes from grasp to grasp as a robot does: it lets the
            springs go, follows a collision-free motion planned from where everything is, and may touch the object on
            the way. Where there is no such motion, or with False, it is set to the next grasp.
        shift_grasps: where the object carries on, grasps and commands are moved with the object from where
            it was planned to where it is.
        contacts: ``"stiff"``: time constant of four time steps (2 ms at least), elliptic cones, friction ten times as
            stiff as normals. ``"soft"``: the same with MuJoCo's 20 ms, so that fingers sink into objects by up to a
            millimetre.
            ``"default"``: as MuJoCo has them unless told otherwise, with pyramids and friction no stiffer than
            normals besides; there whatever is held creeps, by millimetres a second.
        force: N or Nm at the joint, what an actuator pulls with at most, one number or one per actuator; None: any.
        press: springs of a robot that follows a plan by iMPC press with at most so many times the object's weight;
            None: 8 where it lies on a plane that is not part of the model, else 2.
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
    object_damping: float | tuple[float, ...] = 0.0
    contacts: Literal["stiff", "soft", "default"] = "stiff"
    force: float | tuple[float, ...] | None = None
    carry_on: bool = False
    motions: bool = True
    shift_grasps: bool = True
    press: float | None = None
    position_noise: float = 0.0
    rotation_noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        fields(self, number, "speed", "timestep", "control_period", "damping_ratio", above=0)
        fields(self, number, "press", above=0, or_none=True)
        fields(self, one_of, "contacts", allowed=("stiff", "soft", "default"))
        fields(self, numbers, "force", per="actuator", above=0, or_none=True)
        fields(
            self, number, "settle", "support_friction", "position_noise", "rotation_noise", least=0
        )
        fields(self, numbers, "object_damping", per="coordinate", least=0)
        fields(self, integer, "seed", least=0)
        fields(self, flag, "carry_on", "motions", "shift_grasps")
        if self.control_period < self.timestep:
            raise ValueError("control_period: shorter than timestep")


def second_order(
    model: Model, object_name: str, options: TransferOptions | None = None
) -> mujoco.MjModel:
    """The model as MuJoCo simulates it at small steps, with damped joint springs.

    Contacts act at touching (no margins); joints that actuators hold get the damping
    ``2 ζ sqrt(k m)``, ``m`` their diagonal entry of the mass matrix at the default configuration. The friction
    of a support that is not part of the model comes with the execution.

    Args:
        model: the model.
        object_name: the object's body.
        options: time step and damping.

    Raises:
        ValueError: if MuJoCo cannot compile the model, it has no such object, or another number of coordinates
            than ``object_damping`` or of actuators than ``force``.
    """
    import mujoco  # when first used: planning loads without it

    given = instance("options", options, TransferOptions, or_none=True) or TransferOptions()
    space = ObjectSpace(model, object_name)
    if np.ndim(given.object_damping) == 1 and np.size(given.object_damping) != space.size:
        raise ValueError(
            f"object_damping: expected a number or {space.size} of them, got {given.object_damping!r}"
        )
    mj = mujoco.MjModel.from_xml_string(model.description.to_mjcf())
    mj.opt.timestep = given.timestep
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    mj.geom_margin[:] = 0.0
    mj.pair_margin[:] = 0.0
    if given.contacts != "default":
        mj.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        mj.opt.impratio = 10.0
    if given.contacts == "stiff":
        mj.geom_solref[:] = mj.pair_solref[:] = (max(4.0 * given.timestep, 2e-3), 1.0)
    if given.force is not None:
        limit = spread("force", given.force, model.nu) / np.abs(np.asarray(model.actuator_gear))
        mj.actuator_forcelimited[:] = True
        mj.actuator_forcerange[:] = np.column_stack((-limit, limit))
    mass = mass_metric(model)
    held = np.asarray(model.actuated_v)
    stiffness = np.zeros(model.nv)
    stiffness[held] = model.parameters.actuator_stiffness
    mj.dof_damping[held] += 2.0 * given.damping_ratio * np.sqrt(stiffness[held] * mass[held])
    mj.dof_damping[space.v] += given.object_damping
    return mj


class Plant:
    """A MuJoCo model in motion, with the robot's gravity compensated and the object's support.

    Args:
        model: the model.
        space: the object's coordinates.
        mj: a MuJoCo model of the same layout; it is copied.
        options: friction of the support.
        compensated: whether gravity on the robot is compensated.
        bounds: ``(nu,)`` lower and upper ones of the commands.

    Attributes:
        rubs: whether it does with friction.
        supported: whether the object lies on a plane that is not part of the model.
        lag: ``(nu,)`` s, how far a command has to be ahead, times its rate, for what the joints' damping holds back.
        lost: whether the object has left what is watched. Time stands still then: nothing brings it back.
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

        self._mujoco, self.model, self.space = mujoco, model, space
        self.mj = copy.copy(mj)
        self.data = mujoco.MjData(self.mj)
        self.held = np.asarray(model.actuated_v)
        # Neighbouring entries are views, which cost nothing.
        self._held, self._object = as_slice(self.held), as_slice(space.v)
        self.compensated = compensated
        self._lower, self._upper = command_range(model) if bounds is None else bounds
        stiffness = np.asarray(model.parameters.actuator_stiffness)
        self.lag = np.asarray(self.mj.dof_damping[self.held] / stiffness)
        mass = mass_metric(model)[space.v]
        slides = mass[~space.rotation]
        self.supported = lies_on_a_plane(model, space)
        self._friction = options.support_friction * GRAVITY * mass * self.supported
        self.rubs = bool(self._friction.any())
        self._per_mass = mass / slides.max(initial=1e-300)
        self._damping = np.array(self.mj.dof_damping[space.v])
        self.lost = False
        self._center, self._radius = np.zeros(3), math.inf
        self._look = max(1, round(LOOK / options.timestep))
        self._steps = 0

    def watch(self, configurations: Array) -> None:
        """Call the object lost where it is far away from where it is in all ``configurations`` (n, nq).

        Far is farther than any part of the robot is from it in these, twice. A door on its hinge is never lost.
        """
        model, body = self.model, self.space.body
        way = np.array([model.body_pose(q, body)[0] for q in configurations])
        self._center = 0.5 * (way.min(axis=0) + way.max(axis=0))
        parts = sorted({int(b) for b in model.geom_body if b > 0})
        away = [
            np.linalg.norm(model.body_pose(q, model.body_names[b])[0] - p)
            for q, p in zip(configurations, way)
            for b in parts
        ]
        extent = float(np.linalg.norm(way - self._center, axis=1).max())
        self._radius = extent + FAR * float(np.max(away, initial=0.0))

    def reset(self, q: Array) -> None:
        """At rest in ``q``."""
        self._mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[:] = q
        self.lost = False

    @property
    def q(self) -> Array:
        """Where everything is ``(nq,)``."""
        return np.array(self.data.qpos)

    def support_load(self, way: Array) -> Array | None:
        """Friction ``(size,)`` of the support on an object that moves along ``way``, N and Nm; None without one."""
        size = float(np.sqrt(self._per_mass @ (way * way)))
        if not self._friction.any() or size == 0.0:
            return None
        return np.asarray(-self._friction * way / size)

    def within(self, u: Array) -> Array:
        """A command ``(nu,)`` moved to within its bounds."""
        return np.minimum(np.maximum(u, self._lower), self._upper)

    def advance(self, u: Array) -> None:
        """A time step with the command ``u``, as far as it is within its bounds; none where the object is lost."""
        if self.lost:
            return
        data, held, own = self.data, self._held, self._object
        data.ctrl[:] = self.within(u)
        if self.compensated:
            data.qfrc_applied[held] = data.qfrc_bias[held]
        if self.rubs:
            # mu m g M v / |v|_M as a damping of this step, which MuJoCo takes implicitly
            v = data.qvel[own]
            speed = math.sqrt(self._per_mass @ (v * v))
            self.mj.dof_damping[own] = self._damping + self._friction / max(speed, STILL)
        self._mujoco.mj_step(self.mj, data)
        self._steps += 1
        if self._steps % self._look == 0:
            here = self.model.body_pose(data.qpos, self.space.body)[0]
            self.lost = not float(np.linalg.norm(here - self._center)) <= self._radius


def lies_on_a_plane(model: Model, space: ObjectSpace) -> bool:
    """Whether gravity acts along no slide of the object, so that a plane which is not part of the model bears it.

    Bodies on its way have the same slides and less mass: the object's own weight is what counts.
    """
    slides = ~space.rotation
    if not slides.any():
        return False
    columns = np.asarray(model.jacobian(model.default_q, space.body, np.zeros(3)))[:3, space.v]
    pull = np.asarray(model.parameters.gravity) @ columns[:, slides]
    return bool(np.all(np.abs(pull) <= 1e-9 * GRAVITY))
