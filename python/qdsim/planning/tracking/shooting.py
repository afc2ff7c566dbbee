"""The parts of iMPC: local models along a trajectory, the quadratic program, rollouts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from qdsim import _core
from qdsim._core import SolverError
from qdsim.arguments import spread, vector
from qdsim.array_type import Array
from qdsim.batches.rollouts import feedback_rollout, rollout
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.drives import lengths, robot_v, shares, sharing, slopes
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.least_squares import room
from qdsim.planning.task.robot import force_reach
from qdsim.planning.tracking.cost_model import CostModel

if TYPE_CHECKING:
    from qdsim.planning.task.task import Task
    from qdsim.smoothing import Scheme

__all__ = ["Counts", "LocalTrajectory", "Policy", "Shooting", "Trajectory"]

QP_TOLERANCE = 1e-7
"""Tolerance of the quadratic programs; their models are less accurate than that."""


@dataclasses.dataclass
class Counts:
    """Counts of steps, linearisations, programs and failures."""

    steps: int = 0
    linearizations: int = 0
    programs: int = 0
    program_iterations: int = 0
    failures: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """Commands (T, nu), the resulting configurations (T + 1, nq), and their cost."""

    q: Array
    u: Array
    cost: float
    final: float


@dataclasses.dataclass(frozen=True, eq=False)
class LocalTrajectory:
    """The linear-quadratic model along a trajectory, in displacements from its configurations."""

    A: Array
    B: Array
    Q: Array
    linear: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A solution of a program: commands (T, nu), displacements (T + 1, nv), gains, trust region."""

    u: Array
    x: Array
    x_gain: Array
    u_gain: Array
    lower: Array
    upper: Array


class Shooting:
    """The building blocks of iterations, for a task and its options.

    Args:
        task: the task.
        options: the settings.
        recover: whether smoothed steps correct penetrations. If the roll-outs of a model keep them,
            as compliant contacts do, a step that has to end them often has no solution.
    """

    def __init__(self, task: Task, options: ImpcOptions, *, recover: bool = True) -> None:
        model = task.model
        self.task, self.options, self.model = task, options, model
        self.cost = CostModel(task, options.cost or TrackingCost.for_task(task))
        step = task.options if options.h is None else task.options.replace(h=options.h)
        self.step_options = step if options.limits else step.replace(joint_limits=False)
        self.smooth_options = step.replace(joint_limits=False)
        if not recover:
            self.smooth_options = self.smooth_options.replace(recovery_speed=0.0)
        self.boxes = options.boxes(model.nu)
        own = np.inf if options.reach is None else spread("reach", options.reach, model.nu)
        below, above = force_reach(model) if step.force_limits else (-np.inf, np.inf)
        self.reach = np.maximum(below, -own), np.minimum(above, own)
        self.stride = (
            np.inf if options.stride is None else spread("stride", options.stride, model.nu)
        )
        self.is_reach_limited = bool(
            np.isfinite(self.reach).any() or np.isfinite(self.stride).any()
        )
        self.moves = np.tile(self.cost.moves, (options.horizon, 1, 1))
        self.is_flat = model.nq == model.nv  # no quaternions: displacements are differences
        free = np.full(model.nu, np.inf)
        bounds: tuple[Array, Array] = (-free, free)
        self.lower, self.upper = task.command_bounds if options.limits else bounds
        self.state_bounds = state_bounds(task, options)
        self.counts = Counts()
        if not options.use_A:
            self.identity_A = np.zeros((model.nv, model.nv))
            objects = np.setdiff1d(model.unactuated_v, robot_v(model))
            self.identity_A[objects, objects] = 1.0

    def bounded(self, u: Array) -> Array:
        """Clip commands ``(..., nu)`` to the bounds in force."""
        return np.minimum(np.maximum(u, self.lower), self.upper)

    # ---------------------------------------------------------------- models

    def linearize(
        self, path: Trajectory, scheme: Scheme, rng: int | np.random.Generator
    ) -> LocalTrajectory:
        """Compute the local model along a trajectory.

        Raises:
            SolverError: if a step of the scheme fails.
        """
        options, model = self.options, self.model
        local = scheme.linearize(
            model,
            path.q[:-1],
            path.u,
            self.smooth_options,
            wrt=("q", "u") if options.use_A else ("u",),
            rng=rng,
            threads=options.threads,
        )
        self.counts.linearizations += len(path.u) * local.samples
        B, A = local.B, local.A
        assert B is not None
        if A is None:
            A = np.broadcast_to(self.identity_A, (len(B), model.nv, model.nv))
            B = np.array(B)
            if sharing(model):
                A = self._with_shared_lengths(path.q[:-1], A, B)
            else:
                B[:, model.actuated_v] = np.diag(1.0 / np.asarray(model.actuator_gear))
        Q, linear = self.cost.expand(path.q[1:])
        return LocalTrajectory(
            np.ascontiguousarray(A), np.ascontiguousarray(B), Q, np.ascontiguousarray(linear)
        )

    def _with_shared_lengths(self, q: Array, A: Array, B: Array) -> Array:
        """Set the robot's part of A and B as for joints without contact, if joints share tendons.

        The lengths follow their commands, and motions that do not change the lengths are unchanged.
        It returns A (T, nv, nv), and changes B in place.
        """
        A, gear = np.array(A), np.asarray(self.model.actuator_gear)
        own = robot_v(self.model)
        for k, here in enumerate(q):
            share = shares(self.model, here)[own]
            B[k, own] = share / gear
            A[k][np.ix_(own, own)] = np.eye(len(own)) - share @ slopes(self.model, here)[:, own]
        return A

    def difference(self, q1: Array, q0: Array) -> Array:
        """Compute displacements (..., nv) between configurations (..., nq)."""
        if self.is_flat:
            return q1 - q0
        shape = np.broadcast_shapes(q1.shape, q0.shape)
        pairs = zip(
            np.broadcast_to(q1, shape).reshape(-1, shape[-1]),
            np.broadcast_to(q0, shape).reshape(-1, shape[-1]),
        )
        rows = np.array([self.model.difference(a, b) for a, b in pairs])
        return rows.reshape(*shape[:-1], self.model.nv)

    # ---------------------------------------------------------------- the program

    def solve(
        self,
        local: LocalTrajectory,
        path: Trajectory,
        center: Array,
        radius: Array,
        before: Array,
        first: int = 0,
        x_first: Array | None = None,
    ) -> Policy | None:
        """Solve the quadratic program from step ``first`` on; None if it has no solution.

        Args:
            local: the model along ``path``.
            center: (T, nu) centre of the trust region of the commands.
            radius: (nu,) its half width.
            before: (nu,) command before the first.
            x_first: (nv,) displacement of the first configuration; None: none.
        """
        lower, upper = self._command_box(center[first:], radius, path.q[first:])
        B = local.B[first:]
        offset = -(B @ path.u[first:, :, None])[..., 0]
        x_lower, x_upper = self._state_box(path.q[first + 1 :])
        self.counts.programs += 1
        try:
            found = _core._solve_ocp_qp(
                local.A[first:], B, offset, x_first, before, local.Q[first:], local.linear[first:],
                None, None, self.moves[first:], None, x_lower, x_upper, lower, upper, None, None,
                True, 1, QP_TOLERANCE, 60,
            )  # fmt: skip
        except SolverError as error:
            self.counts.program_iterations += error.info.iterations
            return None
        self.counts.program_iterations += found[8].iterations
        x_gain, u_gain = found[6], found[7]
        assert x_gain is not None and u_gain is not None
        return Policy(found[1], found[0], x_gain, u_gain, lower, upper)

    def policies(
        self, local: LocalTrajectory, path: Trajectory, center: Array, before: Array
    ) -> tuple[list[Policy], list[float]]:
        """Solve the program for each trust region of the options; return the solutions and their
        largest half widths."""
        tried = [(box, self.solve(local, path, center, box, before)) for box in self.boxes]
        found = [(policy, float(box.max())) for box, policy in tried if policy is not None]
        return [policy for policy, _ in found], [radius for _, radius in found]

    def _command_box(self, center: Array, radius: Array, q: Array) -> tuple[Array, Array]:
        """Return bounds of the commands (T, nu) around ``center``, within limits and reach along
        ``q`` (T + 1, nq)."""
        lower, upper = center - radius, center + radius
        if self.is_reach_limited:
            nearest, furthest = self.within_reach(q)
            lower = np.clip(lower, nearest, furthest)
            upper = np.clip(upper, nearest, furthest)
        return np.clip(lower, self.lower, self.upper), np.clip(upper, self.lower, self.upper)

    def within_reach(self, q: Array) -> tuple[Array, Array]:
        """Return the lowest and highest commands (T, nu) in reach along ``q`` (T + 1, nq).

        The reach is measured from the robot's positions before and after the step: a free robot
        follows its command, and only a robot that presses is limited. The stride is measured from
        the position before the step.
        """
        robot = self.robot_command(q)
        before, after = robot[:-1], robot[1:]
        nearest = np.minimum(before, after) + self.reach[0]
        furthest = np.maximum(before, after) + self.reach[1]
        lower, upper = before - self.stride, before + self.stride
        return np.clip(nearest, lower, upper), np.clip(furthest, lower, upper)

    def reachable(self, q: Array, u: Array) -> Array:
        """Move a command ``(nu,)`` to within its bounds, and to within reach of the robot before and
        after its step, ``q`` ``(2, nq)``."""
        if self.is_reach_limited:
            lower, upper = self.within_reach(q)
            u = np.clip(u, lower[0], upper[0])
        return self.bounded(u)

    def robot_command(self, q: Array) -> Array:
        """Return the commands (..., nu) that keep the robot in place in ``q`` (..., nq)."""
        return np.asarray(lengths(self.model, q) * np.asarray(self.model.actuator_gear))

    def _state_box(self, q: Array) -> tuple[Array | None, Array | None]:
        """Return bounds of the displacements from ``q`` (T, nq); they always contain the nominal configurations."""
        if self.state_bounds is None:
            return None, None
        lower, upper = self.state_bounds
        low, high = room(self.difference(q, self.task.start), lower, upper)
        return np.ascontiguousarray(low), np.ascontiguousarray(high)

    # ---------------------------------------------------------------- rollouts

    def roll_out(self, start: Array, u: Array, before: Array) -> Trajectory:
        """Roll out commands (T, nu) from ``start``.

        Raises:
            SolverError: if a step fails.
        """
        u = np.clip(u, self.lower, self.upper)
        self.counts.steps += len(u)
        q = rollout(self.model, start, u, self.step_options, threads=1).q
        cost, final = self.cost.values(q, u, before)
        return Trajectory(q, u, float(cost), float(final))

    def follow(
        self,
        policies: list[Policy],
        path: Trajectory,
        start: Array,
        before: Array,
    ) -> list[Trajectory | None]:
        """Roll out all policies at once, with their feedback; None for a policy with a failed step."""
        count, T = len(policies), len(path.u)
        K_x, K_u, x, wanted, lower, upper = (
            np.array([getattr(p, name) for p in policies])
            for name in ("x_gain", "u_gain", "x", "u", "lower", "upper")
        )
        # Gains act on displacements from the programs' solutions, whose contribution is subtracted
        # from the commands.
        last = np.concatenate([np.broadcast_to(before, (count, 1, len(before))), wanted[:, :-1]], 1)
        fixed = (K_x @ x[:, :-1, :, None] + K_u @ last[..., None])[..., 0]
        q, u, alive = feedback_rollout(
            self.model,
            np.broadcast_to(start, (count, len(start))),
            wanted - fixed,
            self.step_options,
            (path.q[:-1], before, K_x, K_u, lower, upper),
            threads=self.options.threads,
        )
        self.counts.steps += count * T
        self.counts.failures += int(count - alive.sum())
        cost, final = self.cost.values(q, u, before)
        return [
            Trajectory(q[k], u[k], float(cost[k]), float(final[k])) if alive[k] else None
            for k in range(count)
        ]


def state_bounds(task: Task, options: ImpcOptions) -> tuple[Array, Array] | None:
    """Return bounds of the displacement from the start (nv,); None without bounds."""
    if options.state_bounds is None:
        return None
    if not isinstance(options.state_bounds, tuple) or len(options.state_bounds) != 2:
        raise TypeError(f"state_bounds: expected (lower, upper), got {options.state_bounds!r}")
    nv = task.model.nv
    lower, upper = (vector("state_bounds", end, nv, infinite=True) for end in options.state_bounds)
    bounded = np.isfinite(lower) | np.isfinite(upper)
    for joint in task.model.joint_names:
        v = task.model.slice_v(joint)
        if v.stop - v.start > 1 and bounded[v.stop - 3 : v.stop].any():
            raise ValueError(f"state_bounds: the rotation of joint {joint!r} cannot be bounded")
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(f"state_bounds: lower {lower[i]:g} at {i} exceeds upper {upper[i]:g}")
    return lower, upper
