"""The cost of trajectory optimisation, over trajectories and as a quadratic model along one."""

from __future__ import annotations

import numpy as np

from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.drives import lengths, sharing, slopes
from qdsim.planning.task.task import Task
from qdsim.planning.tracking.fingertips import Fingertips

__all__ = ["CostModel"]


class CostModel:
    """A task's cost over trajectories, and its quadratic model along one.

    Args:
        task: the task.
        cost: the weights.

    Attributes:
        reference: ``(T + 1, nq)`` reference at every step, in place of the goal; None: the goal.
        pull: weight of the fingertips' distances from the object, 1/m^2.
    """

    def __init__(self, task: Task, cost: TrackingCost) -> None:
        model, space = task.model, task.space
        self.space, self.goals, self.nv = space, task.goals, model.nv
        self.model, self.robot_v, self.sharing = model, np.array(model.actuated_v), sharing(model)
        self.reference: Array | None = None
        self.object = spread("cost.object", cost.object, space.size)
        self.robot = spread("cost.robot", cost.robot, model.nu)
        self.command = spread("cost.command", cost.command, model.nu)
        self.final_object = spread("cost.final_object", cost.final_object, space.size)
        self.final_robot = spread("cost.final_robot", cost.final_robot, model.nu)
        self.unit = space.scale(task.length) / task.length
        self.touch = self.pull = cost.touch
        self.tips = Fingertips(task) if cost.touch else None

    def attend(self, q: Array) -> None:
        """Set the pull on the fingertips for plans from configuration ``q`` (nq).

        It is full for an object that is a length or a radian away, and decreases with the square of
        the distance, as the object's own cost does: at the goal it would move the object away.
        """
        if self.tips is None:
            return
        e, _ = self.errors(q[None])
        self.pull = self.touch * min(1.0, float(np.sum((self.unit * e[0]) ** 2)))

    def errors(self, q: Array) -> tuple[Array, Array]:
        """Compute errors of the object (..., size) and of the robot's lengths (..., nu) in
        configurations (..., nq).

        They are errors from the goal, or from the last ``n`` entries of the reference if there is
        one, for trajectories (..., n, nq).
        """
        flat = q.reshape(-1, q.shape[-1])
        if self.reference is None:
            goal = self.goals.nearest(flat.T).T
        else:
            goal = np.broadcast_to(self.reference[-q.shape[-2] :], q.shape).reshape(flat.shape)
        e = self.space.difference(flat.T, goal.T).T
        robot = lengths(self.model, flat) - lengths(self.model, goal)
        lead = q.shape[:-1]
        return e.reshape(*lead, -1), robot.reshape(*lead, -1)

    def values(self, q: Array, u: Array, before: Array) -> tuple[Array, Array]:
        """Compute the cost, and the object's part of its last term.

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
        if self.tips is not None:
            away = self.tips.offsets(q[..., 1:, :])
            total = total + self.pull * (away**2).sum(axis=(-3, -2, -1))
        return total + ((moves**2) @ self.command).sum(axis=-1), final

    def expand(self, q: Array) -> tuple[Array, Array]:
        """Compute weights (T, nv, nv) and linear terms (T, nv) with respect to displacements of q_1 .. q_T.

        ``q`` is (T, nq). The weights are those of Gauss and Newton: the second derivative of the
        logarithm is left out.
        """
        T = len(q)
        e, r = self.errors(q)
        if self.reference is None:
            J = self.goals.slopes(q.T, e.T)
        else:
            J = self.space.log_slopes(e.T)
        weight, robot_weight = np.tile(self.object, (T, 1)), np.tile(self.robot, (T, 1))
        weight[-1], robot_weight[-1] = self.final_object, self.final_robot
        WJ = weight[..., None] * J
        Q, linear = np.zeros((T, self.nv, self.nv)), np.zeros((T, self.nv))
        v, a = self.space.v, self.robot_v
        Q[:, v[:, None], v] = 2.0 * J.swapaxes(1, 2) @ WJ
        linear[:, v] = 2.0 * (e[:, None] @ WJ)[:, 0]
        if self.sharing:
            slope = slopes(self.model, q)
            weighed = 2.0 * robot_weight[:, :, None] * slope
            Q += slope.swapaxes(1, 2) @ weighed
            linear += (r[:, None] @ weighed)[:, 0]
        else:
            Q[:, a, a] = 2.0 * robot_weight
            linear[:, a] = 2.0 * robot_weight * r
        if self.tips is not None:
            away = self.tips.offsets(q).reshape(T, 1, -1)
            J = np.array([self.tips.slopes(here) for here in q]).reshape(T, -1, self.nv)
            Q += 2.0 * self.pull * J.swapaxes(1, 2) @ J
            linear += 2.0 * self.pull * (away @ J)[:, 0]
        return Q, linear

    @property
    def moves(self) -> Array:
        """Weight (nu, nu) of the changes of the command in the quadratic model."""
        return np.diag(2.0 * self.command)
