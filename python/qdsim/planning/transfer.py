"""Plans outside of the model they were made with: execution in MuJoCo at small steps (S3 §IX).

The second-order simulator gets the same bodies, shapes, frictions and stiffnesses. The robot is held by
its joint springs, critically damped, with gravity compensated, and gets the commands of the plan
stretched in time, so that no command moves faster than a given speed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from qdsim._core import SolverError
from qdsim.model import Model
from qdsim.planning.plan import Plan, Segment
from qdsim.planning.space import Array, ObjectSpace
from qdsim.planning.task import penetration
from qdsim.step import step

if TYPE_CHECKING:
    import mujoco

__all__ = [
    "Controller",
    "SegmentTransfer",
    "Transfer",
    "TransferOptions",
    "second_order",
    "transfer",
]

Controller = Callable[[Array, Array, Array, Array], Array]
"""``controller(q, u_plan, q_plan, u_last) -> u``: measured configuration, planned command and
configuration at the end of the control period, last command; :class:`Stabilizer` is one."""

RECORD_PERIOD = 0.01  # s, of what is kept of an execution
PLACING_STEPS = 20
PLACED = 1e-4  # m of penetration that a second-order simulator starts from


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
            of the model: the slides of the object feel ``support_friction m g``, its hinge that times two
            thirds of the object's radius of gyration. Without effect on other objects.
        carry_on: True: the object goes from segment to segment as it is, and only the robot is set to the next
            grasp, as in an execution; False: every segment begins as planned, as S3 measures.
    """

    speed: float = 0.1
    timestep: float = 5e-4
    control_period: float = 0.05
    settle: float = 0.5
    damping_ratio: float = 1.0
    support_friction: float = 0.5
    carry_on: bool = False

    def __post_init__(self) -> None:
        for name in ("speed", "timestep", "control_period", "damping_ratio"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{name}: expected a positive number, got {value!r}")
        for name in ("settle", "support_friction"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name}: expected a number >= 0, got {value!r}")
        if self.control_period < self.timestep:
            raise ValueError("control_period: shorter than timestep")


@dataclasses.dataclass(frozen=True, eq=False)
class SegmentTransfer:
    """One segment, planned and executed (S3 eq. 52 to 54). Pairs are of position (m) and rotation (rad).

    Attributes:
        time: ``(n,)`` s, of the samples.
        planned, executed: ``(n, nq)`` configurations.
        commands: ``(n, nu)`` what the joints were pulled to.
        error: Δ, the time average of the object's error.
        length: L, the length of the object's planned path.
        final: the object's error at the end, after settling.
        controller_failures: periods in which the controller could not solve its step; the planned command
            was used.
    """

    time: Array
    planned: Array
    executed: Array
    commands: Array
    error: tuple[float, float]
    length: tuple[float, float]
    final: tuple[float, float]
    controller_failures: int = 0

    @property
    def normalized_error(self) -> tuple[float, float]:
        """Δ̄ = Δ / L, NaN where the planned path has no length."""
        return (
            self.error[0] / self.length[0] if self.length[0] > 1e-9 else float("nan"),
            self.error[1] / self.length[1] if self.length[1] > 1e-9 else float("nan"),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Transfer:
    """An executed plan.

    Attributes:
        segments: one entry for each segment of the plan.
        position_error, rotation_error: of the object's last pose with respect to the plan's goal, m and rad.
        reached: whether both are within the plan's tolerances.
    """

    segments: tuple[SegmentTransfer, ...]
    position_error: float
    rotation_error: float
    reached: bool

    @property
    def error(self) -> tuple[float, float]:
        """Δ, averaged over all segments by their duration: m and rad."""
        duration = np.array([s.time[-1] for s in self.segments])
        errors = np.array([s.error for s in self.segments])
        position, rotation = duration @ errors / duration.sum()
        return float(position), float(rotation)

    def __repr__(self) -> str:
        return (
            f"Transfer({len(self.segments)} segments, reached={self.reached}, "
            f"position_error={self.position_error:.3g} m, rotation_error={self.rotation_error:.3g} rad)"
        )


def second_order(
    model: Model, object_name: str, options: TransferOptions | None = None
) -> mujoco.MjModel:
    """The model as MuJoCo simulates it at small steps, with damped joint springs.

    Contacts act at touching (no margins), with elliptic cones; joints that actuators hold get the damping
    ``2 ζ sqrt(k m)``, ``m`` their diagonal entry of the mass matrix at the default configuration.

    Args:
        model: the model.
        object_name: the object's body, which feels the support's friction where gravity does not move it.
        options: time step, damping and support friction.

    Raises:
        ValueError: if MuJoCo cannot compile the model.
    """
    import mujoco  # when first used: planning loads without it

    given = options or TransferOptions()
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
    if not _is_pulled(mj, model, object_name):
        _add_support(mj, model, object_name, given.support_friction)
    return mj


def _is_pulled(mj: mujoco.MjModel, model: Model, object_name: str) -> bool:
    """Whether gravity acts along some slide of the object."""
    import mujoco

    data = mujoco.MjData(mj)
    data.qpos[:] = model.default_q
    mujoco.mj_forward(mj, data)  # at rest the bias force is gravity's
    space = ObjectSpace(model, object_name)
    slides = space.v[~space.rotation]
    weight = float(np.max(model.parameters.body_mass)) * float(np.linalg.norm(mj.opt.gravity))
    return bool(np.any(np.abs(data.qfrc_bias[slides]) > 1e-9 * weight))


def _add_support(mj: mujoco.MjModel, model: Model, object_name: str, friction: float) -> None:
    space = ObjectSpace(model, object_name)
    mass = np.diag(model.mass_matrix(model.default_q))[space.v]
    weight = 9.81 * mass[~space.rotation].max(initial=0.0)
    if weight == 0.0:
        return
    gyration = np.sqrt(mass[space.rotation] * 9.81 / weight)
    mj.dof_frictionloss[space.v[~space.rotation]] = friction * weight
    mj.dof_frictionloss[space.v[space.rotation]] = friction * weight * gyration * 2.0 / 3.0


def transfer(
    plan: Plan,
    model: Model,
    options: TransferOptions | None = None,
    *,
    controller: Controller | None = None,
    simulator: mujoco.MjModel | None = None,
) -> Transfer:
    """Execute a plan in MuJoCo and compare (S3 §IX).

    Args:
        plan: the plan.
        model: the model of its task.
        options: speed, time step, how segments are joined.
        controller: closes the loop, every ``options.control_period``; None executes the planned commands.
        simulator: a MuJoCo model with the same layout, e.g. with other masses or frictions; None makes one
            with :func:`second_order`.

    Raises:
        TypeError, ValueError: for arguments that do not fit each other.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"plan: expected a Plan, got {type(plan).__name__}")
    given = options or TransferOptions()
    plan._check_model(model)
    mj = second_order(model, plan.object, given) if simulator is None else simulator
    if (mj.nq, mj.nv, mj.nu) != (model.nq, model.nv, model.nu):
        raise ValueError(
            f"simulator: has nq, nv, nu = {mj.nq}, {mj.nv}, {mj.nu}, the model "
            f"{model.nq}, {model.nv}, {model.nu}"
        )
    execution = _Execution(plan, model, mj, given, controller)
    segments = tuple(execution.run(segment) for segment in plan.segments if segment.steps > 0)
    last = segments[-1].executed[-1] if segments else plan.end
    shift, turn = execution.space.errors(last, plan.goal)
    reached = shift <= plan.position_tolerance and turn <= plan.rotation_tolerance
    return Transfer(segments, shift, turn, reached)


class _Execution:
    """One run through a plan; the object's state may carry on from segment to segment."""

    def __init__(
        self,
        plan: Plan,
        model: Model,
        mj: mujoco.MjModel,
        options: TransferOptions,
        controller: Controller | None,
    ) -> None:
        import mujoco

        self.mujoco = mujoco
        self.plan, self.model, self.mj = plan, model, mj
        self.options, self.controller = options, controller
        self.space = ObjectSpace(model, plan.object)
        self.data = mujoco.MjData(mj)
        self.held = np.asarray(model.actuated_v)
        self.compensated = not plan.options.gravity_on_actuated
        self.last_q: Array | None = None

    def run(self, segment: Segment) -> SegmentTransfer:
        start = np.array(segment.start)
        commands = np.vstack((self.model.command_from(segment.start), segment.inputs))
        if self.options.carry_on and self.last_q is not None:
            start[self.space.q] = self.last_q[self.space.q]
            start = self._placed(start, commands[0])
        self.mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[:] = start
        knots = _knot_times(commands, self.options)
        samples: list[tuple[float, Array, Array, Array]] = []
        failures = 0
        u = u_last = commands[0]
        per_period = max(1, round(self.options.control_period / self.options.timestep))
        per_record = max(1, round(RECORD_PERIOD / self.options.timestep))
        count = int(np.ceil((knots[-1] + self.options.settle) / self.options.timestep))
        for i in range(count + 1):
            time = i * self.options.timestep
            u_plan = _interpolate(commands, knots, time)
            if self.controller is None:
                u = u_plan
            elif i % per_period == 0:
                end = time + self.options.control_period
                u_end = _interpolate(commands, knots, end)
                q_end = self._planned(segment, knots, end)
                try:
                    u = self.controller(self.data.qpos.copy(), u_end, q_end, u_last)
                except SolverError:
                    u, failures = u_end, failures + 1
                u_last = u
            if i % per_record == 0 or i == count:
                planned = self._planned(segment, knots, time)
                samples.append((time, planned, self.data.qpos.copy(), np.array(u)))
            self._advance(u)
        self.last_q = samples[-1][2]
        return self._measure(segment, samples, float(knots[-1]), failures)

    def _placed(self, q: Array, u: Array) -> Array:
        """The robot in a grasp that was planned for another pose of the object: its springs pull it there,
        the object stands still and keeps it out. Where that fails the robot stays where it was."""
        options = self.plan.options.replace(held=(self.plan.object,), kappa=None)
        for _ in range(PLACING_STEPS):
            try:
                q = step(self.model, q, u, options).q_next
            except SolverError:
                break
            if penetration(self.model, q) < PLACED:
                return q
        assert self.last_q is not None
        return self.last_q

    def _advance(self, u: Array) -> None:
        self.data.ctrl[:] = u
        if self.compensated:
            self.data.qfrc_applied[self.held] = self.data.qfrc_bias[self.held]
        self.mujoco.mj_step(self.mj, self.data)

    def _planned(self, segment: Segment, knots: Array, time: float) -> Array:
        """The planned configuration at a time: straight between knots, on the manifold."""
        k = min(max(int(np.searchsorted(knots, time)) - 1, 0), segment.steps - 1)
        span = knots[k + 1] - knots[k]
        s = min((time - knots[k]) / span, 1.0) if span > 0.0 else 1.0
        q0, q1 = segment.configurations[k], segment.configurations[k + 1]
        return self.model.integrate(q0, s * np.asarray(self.model.difference(q1, q0)))

    def _measure(
        self,
        segment: Segment,
        samples: list[tuple[float, Array, Array, Array]],
        duration: float,
        failures: int,
    ) -> SegmentTransfer:
        time = np.array([s[0] for s in samples])
        planned, executed, commands = (np.array([s[k] for s in samples]) for k in (1, 2, 3))
        errors = np.array([self.space.errors(a, b) for a, b in zip(executed, planned)])
        moving = time <= duration + 1e-9
        steps = [
            self.space.errors(b, a)
            for a, b in zip(segment.configurations, segment.configurations[1:])
        ]
        shift, turn = errors[moving].mean(axis=0)
        length = np.sum(steps, axis=0)
        return SegmentTransfer(
            time,
            planned,
            executed,
            commands,
            (float(shift), float(turn)),
            (float(length[0]), float(length[1])),
            (float(errors[-1, 0]), float(errors[-1, 1])),
            failures,
        )


def _knot_times(commands: Array, options: TransferOptions) -> Array:
    """Times of the knots: as long as the command takes at the given speed, at least a time step."""
    way = np.linalg.norm(np.diff(commands, axis=0), axis=1)
    spacing = np.maximum(way / options.speed, options.timestep)
    return np.concatenate(([0.0], np.cumsum(spacing)))


def _interpolate(values: Array, knots: Array, time: float) -> Array:
    k = min(max(int(np.searchsorted(knots, time)) - 1, 0), len(knots) - 2)
    s = min((time - knots[k]) / (knots[k + 1] - knots[k]), 1.0)
    return np.asarray((1.0 - s) * values[k] + s * values[k + 1])
