"""Prediction models of sampling-based control: many command sequences from one state."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import flag, instance, number
from qdsim.array_type import Array
from qdsim.batches.dynamics import rollout_dynamic
from qdsim.batches.inputs import thread_count
from qdsim.batches.rollouts import rollout
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.step import Options

if TYPE_CHECKING:
    import mujoco

__all__ = ["MujocoModel", "Predictor", "QuasiDynamicModel", "SecondOrderModel", "check_predictor"]

Prediction = tuple[Array, NDArray[np.bool_]]


class Predictor(Protocol):
    """A model that predicts the effect of commands."""

    def roll(
        self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
    ) -> Prediction:
        """Predict configurations under commands.

        Args:
            q, v: ``(nq,)`` and ``(nv,)``, configuration and velocity.
            before: ``(nu,)`` the present command.
            u: ``(samples, T, nu)`` commands at the ends of periods; within a period they change
                linearly, or are those of its end if the model is ``stepped``.
            period: s.
            threads: number of threads; None: all cores. Results are bitwise identical for any
                number.

        Returns:
            ``(samples, T + 1, nq)`` configurations, the first one included, and which samples
            ``(samples,)`` could be predicted to the end.
        """
        ...


def check_predictor(model: object) -> Predictor | None:
    """Check an argument ``model`` that predicts, or None.

    Raises:
        TypeError: if it has no method ``roll``.
    """
    if model is not None and not callable(getattr(model, "roll", None)):
        raise TypeError(f"model: expected a model with a method roll, got {type(model).__name__}")
    return cast("Predictor | None", model)


class QuasiDynamicModel(Predictor):
    """Predicts with one quasi-dynamic step per period; velocities are ignored.

    Args:
        model: the model.
        options: of the step; their h is replaced by the period. None: the defaults. Measured states
            may penetrate, so ``infeasible="soften"`` is always set.
    """

    def __init__(self, model: Model, options: Options | None = None) -> None:
        self.model = instance("model", model, Model)
        given = instance("options", options, Options, or_none=True) or Options()
        self.options = given.replace(infeasible="soften")

    def roll(
        self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
    ) -> Prediction:
        options = self.options if self.options.h == period else self.options.replace(h=period)
        found = rollout(self.model, q, u, options, threads=threads, errors="mark", warm_start=True)
        return found.q, np.asarray(found.steps_done == u.shape[1])


class SecondOrderModel(Predictor):
    """Predicts with several second-order steps per period.

    Args:
        model: the model, with the joint damping of the world.
        options: of the step; h is reduced so that a period has a whole number of steps. None: 10
            ms, penetrations are corrected at 0.1 m/s, gravity on the robot is compensated, and
            infeasible steps are softened.
        stepped: whether the world's commands change at the beginning of a period and are constant
            within it.
    """

    def __init__(
        self, model: Model, options: DynamicOptions | None = None, *, stepped: bool = False
    ) -> None:
        self.model = instance("model", model, Model)
        self._stepped = flag("stepped", stepped)
        self.options = instance("options", options, DynamicOptions, or_none=True) or DynamicOptions(
            recovery_speed=0.1, gravity_on_actuated=False, infeasible="soften"
        )

    def roll(
        self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
    ) -> Prediction:
        count = max(1, round(period / self.options.h))
        found = rollout_dynamic(
            self.model,
            q,
            v,
            _fine(before, u, count, self._stepped),
            self.options.replace(h=period / count),
            threads=threads,
            errors="mark",
            warm_start=True,
        )
        return found.q[:, ::count], np.asarray(found.steps_done == count * u.shape[1])


class MujocoModel(Predictor):
    """Predicts with MuJoCo's steps (``mujoco.rollout``).

    Args:
        mj: the model, of the task's layout; it is copied.
        timestep: time step of predictions, s; None: the model's own. Position actuators that are
            too stiff for a longer time step get additional armature and damping.
        compensated: whether gravity on actuated bodies is compensated, at the configuration at the
            start of the prediction.
        stepped: as for :class:`SecondOrderModel`.
    """

    def __init__(
        self,
        mj: mujoco.MjModel,
        timestep: float | None = 4e-3,
        compensated: bool = True,
        *,
        stepped: bool = False,
    ) -> None:
        import mujoco
        import mujoco.rollout

        self._mujoco = mujoco
        self.mj = copy.copy(instance("mj", mj, mujoco.MjModel))
        self._compensated = flag("compensated", compensated)
        self._stepped = flag("stepped", stepped)
        if timestep is not None:
            _slowed(self.mj, number("timestep", timestep, above=0, or_none=True))
        self._data = mujoco.MjData(self.mj)
        self._workers: list[mujoco.MjData] = []
        self._held = _driven(self.mj)

    def roll(
        self, q: Array, v: Array, before: Array, u: Array, period: float, threads: int | None
    ) -> Prediction:
        mujoco, mj = self._mujoco, self.mj
        wanted = min(thread_count(threads), len(u))
        while len(self._workers) < wanted:
            self._workers.append(mujoco.MjData(mj))
        count = max(1, round(period / mj.opt.timestep))
        control = _fine(before, u, count, self._stepped)
        spec = mujoco.mjtState.mjSTATE_CTRL
        if self._compensated:
            force = np.broadcast_to(self._gravity(q), (*control.shape[:2], mj.nv))
            control = np.concatenate((control, force), axis=2)
            spec = mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_QFRC_APPLIED
        begin = np.zeros((len(u), mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        begin[:, 1 : 1 + mj.nq], begin[:, 1 + mj.nq : 1 + mj.nq + mj.nv] = q, v
        state, _ = mujoco.rollout.rollout(
            mj, self._workers[:wanted], begin, control, control_spec=int(spec)
        )
        path = np.empty((len(u), u.shape[1] + 1, mj.nq))
        path[:, 0], path[:, 1:] = q, state[:, count - 1 :: count, 1 : 1 + mj.nq]
        # MuJoCo resets a diverged simulation, which shows in its time.
        ended = (
            np.abs(state[:, -1, 0] - count * u.shape[1] * mj.opt.timestep) < 0.5 * mj.opt.timestep
        )
        return path, np.asarray(ended & np.isfinite(path).all(axis=(1, 2)))

    def _gravity(self, q: Array) -> Array:
        """Return the forces ``(nv,)`` that balance gravity on the actuated degrees of freedom."""
        data = self._data
        self._mujoco.mj_resetData(self.mj, data)
        data.qpos[:] = q
        self._mujoco.mj_forward(self.mj, data)
        force = np.zeros(self.mj.nv)
        force[self._held] = data.qfrc_bias[self._held]
        return force


def _fine(before: Array, u: Array, count: int, stepped: bool) -> Array:
    """Return the commands of small steps ``(samples, T count, nu)``: linear in a period, or constant."""
    if stepped:
        return np.repeat(u, count, axis=1)
    first = np.broadcast_to(before, (len(u), 1, u.shape[2]))
    begin = np.concatenate((first, u[:, :-1]), axis=1)[:, :, None]
    share = (np.arange(1, count + 1) / count)[:, None]
    fine = begin + share * (u[:, :, None] - begin)
    return fine.reshape(len(u), -1, u.shape[2])


def _driven(mj: mujoco.MjModel) -> NDArray[np.intp]:
    """Return the degrees of freedom on which actuators act through joints."""
    joints = mj.actuator_trnid[np.isin(mj.actuator_trntype, (0, 1)), 0]
    return np.asarray(mj.jnt_dofadr[joints], dtype=np.intp)


def _slowed(mj: mujoco.MjModel, timestep: float) -> None:
    """Set a longer time step, and make the joints of position servos slow enough for it.

    Armature is added until ``stiffness h^2`` is at most the inertia of the joint, and damping is
    increased to keep the damping ratio.
    """
    import mujoco

    mj.opt.timestep = timestep
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    for i in range(mj.nu):
        if mj.actuator_trntype[i] not in (0, 1):
            continue
        dof = int(mj.jnt_dofadr[mj.actuator_trnid[i, 0]])
        column, unit = np.zeros(mj.nv), np.zeros(mj.nv)
        unit[dof] = 1.0
        mujoco.mj_mulM(mj, data, column, unit)
        inertia = float(column[dof])
        stiffness = float(-mj.actuator_biasprm[i, 1] * mj.actuator_gear[i, 0] ** 2)
        need = stiffness * timestep**2
        if need > inertia > 0.0:
            mj.dof_armature[dof] += need - inertia
            mj.dof_damping[dof] *= np.sqrt(need / inertia)
