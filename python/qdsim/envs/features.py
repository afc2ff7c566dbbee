"""What a policy sees: poses of object, goal and robot, without wraps and double covers."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batch_queries import body_poses
from qdsim.planning.task.robot import joint_limits, robot_bodies
from qdsim.planning.task.task import Task

__all__ = ["Goals", "Poses", "Viewer"]


@dataclasses.dataclass(frozen=True)
class Poses:
    """Of all bodies of many configurations: places (n, bodies, 3) and rotations (n, bodies, 3, 3)."""

    pos: Array
    rot: Array


@dataclasses.dataclass
class Goals:
    """Configurations (n, nq) and the object's place (n, 3) and rotation (n, 3, 3) there."""

    q: Array
    pos: Array
    rot: Array

    def put(self, rows: NDArray[np.intp], other: Goals) -> None:
        """Other goals in place of these rows."""
        self.q[rows], self.pos[rows], self.rot[rows] = other.q, other.pos, other.rot


class Viewer:
    """Observations of a task's configurations.

    Attributes:
        names: of the columns, once it is known which change.
    """

    def __init__(self, task: Task, with_world: bool, with_robot: bool, threads: int) -> None:
        self.task, self.threads = task, threads
        self.with_world, self.with_robot = with_world, with_robot
        model = task.model
        self.body = model.body_names.index(task.object)
        robot = robot_bodies(model)
        index = {name: b for b, name in enumerate(model.body_names)}
        inner = {index[body.parent or "world"] for body in model.description.bodies[1:]}
        shaped = set(np.asarray(model.geom_body).tolist())
        self.tips = [b for b in np.flatnonzero(robot).tolist() if b in shaped and b not in inner]
        lower, upper = joint_limits(model)
        self.bounded = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
        self.middle = 0.5 * (lower[self.bounded] + upper[self.bounded])
        self.half = 0.5 * (upper[self.bounded] - lower[self.bounded])
        self.whole_turns = _whole_turns(task)
        self._columns: NDArray[np.intp] | None = None
        self.names: tuple[str, ...] = ()

    def poses(self, q: Array) -> Poses:
        """Of configurations (n, nq)."""
        return Poses(*body_poses(self.task.model, q, threads=self.threads))

    def goals(self, q: Array) -> Goals:
        """The object in goals (n, nq)."""
        poses = self.poses(q)
        return Goals(q, poses.pos[:, self.body].copy(), poses.rot[:, self.body].copy())

    def errors(self, q: Array, goal: Array) -> tuple[Array, Array]:
        """Distance (n,), m, and angle (n,), rad, of the object from goals (n, nq).

        Whole turns of a hinge without limits do not count: a pose is where the object is, not how it came there.
        """
        space = self.task.space
        e = space.difference(goal.T, q.T)
        turns = e[self.whole_turns]
        e[self.whole_turns] = turns - 2.0 * np.pi * np.round(turns / (2.0 * np.pi))
        shift = np.sqrt(np.sum(e[~space.rotation] ** 2, axis=0))
        return shift, np.sqrt(np.sum(e[space.rotation] ** 2, axis=0))

    def keep_what_changes(self, q: Array, goal: Array, command: Array, action: Array) -> None:
        """Drop columns that are the same for all of many samples (n, ...): in a plane, what leaves it."""
        all_columns = self._all(q, self.goals(goal), command, action)
        self._columns = np.flatnonzero(np.ptp(all_columns, axis=0) > 1e-9)
        names = self._all_names(action.shape[1])
        self.names = tuple(names[i] for i in self._columns)

    def observe(self, q: Array, goals: Goals, command: Array, action: Array) -> Array:
        """(n, columns): configurations (n, nq), goals, commands (n, nu) and last actions (n, k)."""
        found = self._all(q, goals, command, action)
        return found if self._columns is None else np.ascontiguousarray(found[:, self._columns])

    def _all(self, q: Array, goals: Goals, command: Array, action: Array) -> Array:
        task, poses = self.task, self.poses(q)
        pos, rot = poses.pos[:, self.body], poses.rot[:, self.body]
        back = np.swapaxes(rot, 1, 2)
        away = np.matmul(back, (goals.pos - pos)[:, :, None])[:, :, 0]
        distance = np.sqrt(np.sum(away * away, axis=1, keepdims=True))
        relative = np.matmul(back, goals.rot)
        shift, turn = self.errors(q, goals.q)
        parts = [
            away / task.length,
            away / np.maximum(distance, 1e-12),
            np.log1p(shift / task.position_tolerance)[:, None],
            np.log1p(turn / task.rotation_tolerance)[:, None],
            relative[:, :, :2].reshape(-1, 6),
        ]
        if self.with_world:
            parts += [
                pos / task.length,
                rot[:, :, :2].reshape(-1, 6),
                (goals.pos - pos) / task.length,
            ]
        if self.with_robot:
            tips = poses.pos[:, self.tips] - pos[:, None]
            near = np.matmul(tips, rot)
            joints = q[:, task.model.actuated_q]
            here = task.model.command_from(q)
            parts += [
                near.reshape(len(q), -1) / task.length,
                tips.reshape(len(q), -1) / task.length,
                (joints[:, self.bounded] - self.middle) / self.half,
                command - here,
                action,
            ]
        return np.concatenate(parts, axis=1)

    def _all_names(self, action_size: int) -> tuple[str, ...]:
        def axes(name: str) -> list[str]:
            return [f"{name} {axis}" for axis in "xyz"]

        def six(name: str) -> list[str]:
            return [f"{name} {row}{column}" for row in "xyz" for column in "xy"]

        names = [
            *axes("goal from object, lengths"),
            *axes("direction of goal from object"),
            "log distance",
            "log angle",
            *six("goal's rotation from object"),
        ]
        if self.with_world:
            names += [
                *axes("object, lengths"),
                *six("object's rotation"),
                *axes("goal from object in the world, lengths"),
            ]
        if self.with_robot:
            model = self.task.model
            tips = [model.body_names[b] for b in self.tips]
            names += [
                *(name for tip in tips for name in axes(f"{tip} from object, lengths")),
                *(name for tip in tips for name in axes(f"{tip} in the world, lengths")),
                *(f"joint of {model.actuator_names[i]}, of its range" for i in self.bounded),
                *(f"command of {name}, past the joint" for name in model.actuator_names),
                *(f"last action {k}" for k in range(action_size)),
            ]
        return tuple(names)


def _whole_turns(task: Task) -> NDArray[np.intp]:
    """Which of the object's coordinates are angles of hinges without limits."""
    model, space = task.model, task.space
    unlimited = set()
    for joint, limits in zip(model.description.joints, np.asarray(model.joint_range)):
        if joint.type == "hinge" and not np.isfinite(limits).any():
            unlimited.add(model.slice_v(joint.name).start)
    return np.array([i for i, v in enumerate(space.v) if int(v) in unlimited], dtype=np.intp)
