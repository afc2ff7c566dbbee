"""What trajectory optimisation minimises: squared errors of object and robot, and moves of the command."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import numbers
from qdsim.planning.space import Array

if TYPE_CHECKING:
    from qdsim.planning.task import Task

__all__ = ["TrackingCost"]


@dataclasses.dataclass(frozen=True)
class TrackingCost:
    """Weights of S3 eq. (43b), with moves of the command in place of the command itself.

        cost = |e_T|^2_final + sum_{t<T} |e_t|^2_running + |u_t - u_{t-1}|^2_command

    where ``e_t`` is the error of configuration ``t`` with respect to the task's goal and ``u_{-1}``
    the command that holds the start. There is no factor 1/2, as in the authors' code. Rotations err
    by their logarithm, so the cost does not depend on coordinates.

    Each weight is one number or one per coordinate.

    Attributes:
        object: of the object's displacement from its goal, 1/m^2 and 1/rad^2, one per tangent
            coordinate of ``task.space``.
        robot: of the actuated joints' distance from the goal's, one per actuator.
        command: of the change of the command from step to step, one per actuator, > 0.
        final_object, final_robot: the same at the last configuration; None is 100 times the weight
            on the way.
    """

    object: float | tuple[float, ...] = 10.0
    robot: float | tuple[float, ...] = 1e-3
    command: float | tuple[float, ...] = 10.0
    final_object: float | tuple[float, ...] | None = None
    final_robot: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None and field.name.startswith("final"):
                value = tuple(100.0 * np.atleast_1d(getattr(self, field.name[6:])))
                value = value[0] if len(value) == 1 else value
            above, least = (0, None) if field.name == "command" else (None, 0)
            checked = numbers(field.name, value, per="coordinate", above=above, least=least)
            object.__setattr__(self, field.name, checked)

    @classmethod
    def for_task(cls, task: Task) -> TrackingCost:
        """A cost for which the object's size and a radian count alike."""
        scale = task.space.scale(task.length) / task.length
        return cls(object=tuple(10.0 * scale**2))


class CostModel:
    """A task's cost over trajectories, and its quadratic model along one.

    Args:
        task: the task.
        cost: the weights.

    Attributes:
        reference: ``(T + 1, nq)`` where to be at every step, in place of the goal; None: the goal.
    """

    def __init__(self, task: Task, cost: TrackingCost) -> None:
        model, space = task.model, task.space
        self.space, self.goal, self.nv = space, np.array(task.goal), model.nv
        self.robot_q, self.robot_v = np.array(model.actuated_q), np.array(model.actuated_v)
        self.reference: Array | None = None
        self.object = spread("cost.object", cost.object, space.size)
        self.robot = spread("cost.robot", cost.robot, model.nu)
        self.command = spread("cost.command", cost.command, model.nu)
        self.final_object = spread("cost.final_object", cost.final_object, space.size)
        self.final_robot = spread("cost.final_robot", cost.final_robot, model.nu)

    def errors(self, q: Array) -> tuple[Array, Array]:
        """Errors of object (..., size) and robot (..., nu) in configurations (..., nq).

        With respect to the goal; to the last ``n`` of the reference where there is one, for
        trajectories (..., n, nq).
        """
        flat, goal = q.reshape(-1, q.shape[-1]), self.goal
        if self.reference is not None:
            goal = np.broadcast_to(self.reference[-q.shape[-2] :], q.shape).reshape(flat.shape)
        e = self.space.difference(flat.T, goal.T).T
        robot = flat[:, self.robot_q] - goal[..., self.robot_q]
        lead = q.shape[:-1]
        return e.reshape(*lead, -1), robot.reshape(*lead, -1)

    def values(self, q: Array, u: Array, before: Array) -> tuple[Array, Array]:
        """Cost and the object's part of its last term.

        Args:
            q: trajectories (..., T + 1, nq).
            u: commands (..., T, nu).
            before: command (nu,) before the first.

        Returns:
            Two arrays (...).
        """
        e, r = self.errors(q)
        moves = np.diff(
            u, axis=-2, prepend=np.broadcast_to(before, (*u.shape[:-2], 1, len(before)))
        )
        final = (e[..., -1, :] ** 2) @ self.final_object
        total = final + (r[..., -1, :] ** 2) @ self.final_robot
        total = total + ((e[..., :-1, :] ** 2) @ self.object).sum(axis=-1)
        total = total + ((r[..., :-1, :] ** 2) @ self.robot).sum(axis=-1)
        return total + ((moves**2) @ self.command).sum(axis=-1), final

    def expand(self, q: Array) -> tuple[Array, Array]:
        """Weights (T, nv, nv) and linear terms (T, nv) by displacements of q_1 .. q_T.

        ``q`` is (T, nq). The weights are those of Gauss and Newton: the second derivative of the
        logarithm is left out.
        """
        T, n = len(q), self.space.size
        e, r = self.errors(q)
        J = np.broadcast_to(np.eye(n), (T, n, n))
        rows = self.space.rotation_vectors
        if rows:
            J = J.copy()
            for row in rows:
                part = slice(row, row + 3)
                J[:, part, part] = _inverse_left_jacobian(e[:, part])
        weight, robot_weight = np.tile(self.object, (T, 1)), np.tile(self.robot, (T, 1))
        weight[-1], robot_weight[-1] = self.final_object, self.final_robot
        WJ = weight[..., None] * J
        Q, linear = np.zeros((T, self.nv, self.nv)), np.zeros((T, self.nv))
        v, a = self.space.v, self.robot_v
        Q[:, v[:, None], v] = 2.0 * J.swapaxes(1, 2) @ WJ
        Q[:, a, a] = 2.0 * robot_weight
        linear[:, v] = 2.0 * (e[:, None] @ WJ)[:, 0]
        linear[:, a] = 2.0 * robot_weight * r
        return Q, linear

    @property
    def moves(self) -> Array:
        """Weight (nu, nu) of the changes of the command in the quadratic model."""
        return np.diag(2.0 * self.command)


def spread(name: str, value: ArrayLike | None, size: int) -> Array:
    """A number or ``size`` of them as an array ``(size,)``."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 1 and array.shape != (size,):
        raise ValueError(f"{name}: expected one number or {size}, got {array.size}")
    return np.array(np.broadcast_to(array, (size,)))


def _inverse_left_jacobian(e: Array) -> Array:
    """(T, 3, 3): log(exp(d) exp(e)) = e + this d, to first order in d, for rotation vectors e."""
    angle = np.sqrt((e * e).sum(axis=1))
    small = angle < 1e-4
    a = np.where(small, 1.0, angle)
    # 1/a^2 - (1 + cos a)/(2 a sin a), which tends to 1/12; at pi the second part is zero
    half = 0.5 * a
    factor = np.where(small, 1.0 / 12.0, (1.0 - half / np.tan(half)) / a**2)
    X = np.zeros((len(e), 3, 3))
    X[:, 0, 1], X[:, 0, 2], X[:, 1, 2] = -e[:, 2], e[:, 1], -e[:, 0]
    X -= X.swapaxes(1, 2)
    return np.eye(3) - 0.5 * X + factor[:, None, None] * (X @ X)
