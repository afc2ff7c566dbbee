"""Observations of policies: poses of object, goal and robot, without wrap-around and double covers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim import _core
from qdsim.array_type import Array
from qdsim.batches.queries import body_poses
from qdsim.planning.task.drives import owners, robot_joints, robot_limits, robot_q
from qdsim.planning.task.robot import robot_bodies
from qdsim.planning.task.task import Task

__all__ = ["Goals", "Look", "Viewer", "nearest_goals", "whole_turns"]


_OF_GOAL = ("goal", "direction of goal", "log ")
"""Beginnings of the names of columns that describe the goal."""


@dataclasses.dataclass
class Goals:
    """Configurations (n, nq), and the object's position and rotation matrix (n, 12) in them."""

    q: Array
    pose: Array

    def put(self, rows: NDArray[np.intp], other: Goals) -> None:
        """Replace the goals of these rows."""
        self.q[rows], self.pose[rows] = other.q, other.pose

    def __getitem__(self, rows: NDArray[np.intp]) -> Goals:
        return Goals(self.q[rows], self.pose[rows])


class Look(NamedTuple):
    """Observations (n, columns), and the quantities of rewards (n, 5).

    These are: distance (m) and angle (rad) from the goal, the larger of both divided by its
    tolerance, the potential whose changes are rewards, and the object's distance from the task's
    start, m.
    """

    seen: Array
    judged: Array

    @property
    def shift(self) -> Array:
        return self.judged[:, 0]

    @property
    def turn(self) -> Array:
        return self.judged[:, 1]

    @property
    def off(self) -> Array:
        return self.judged[:, 2]

    @property
    def potential(self) -> Array:
        return self.judged[:, 3]

    @property
    def away(self) -> Array:
        return self.judged[:, 4]


class Viewer:
    """Observations of a task's configurations, computed by the core (`qd_view` in qdsim.h).

    Args:
        task: the task.
        with_world: whether to include the world poses of object and goal.
        with_robot: whether to include the robot's position and command.
        with_goal: whether to include the goal.
        actions: number of components of the last action, which follow those of commands.
        with_velocities: whether to include velocities, at the end.
        threads: of the core.

    Attributes:
        names: of the columns, once it is known which change.
    """

    def __init__(
        self,
        task: Task,
        *,
        with_world: bool,
        with_robot: bool,
        with_goal: bool = True,
        actions: int,
        with_velocities: bool = False,
        threads: int,
    ) -> None:
        self.task, self.threads = task, threads
        self.with_world, self.with_robot, self.with_goal = with_world, with_robot, with_goal
        model = task.model
        self.actions, self.with_velocities = actions, with_velocities
        self.more = (model.nu + actions + with_velocities * model.nv) * with_robot
        self.body = model.body_names.index(task.object)
        robot = robot_bodies(model)
        index = {name: b for b, name in enumerate(model.body_names)}
        inner = {index[body.parent or "world"] for body in model.description.bodies[1:]}
        shaped = set(np.asarray(model.geom_body).tolist())
        self.tips = [b for b in np.flatnonzero(robot).tolist() if b in shaped and b not in inner]
        lower, upper = robot_limits(model)
        self.bounded = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
        self.middle = 0.5 * (lower[self.bounded] + upper[self.bounded])
        self.half = 0.5 * (upper[self.bounded] - lower[self.bounded])
        self._names = self._all_names()
        self._view = self._made(np.arange(len(self._names)))
        self.names = self._names

    def __getstate__(self) -> dict[str, Any]:
        """Return everything except the view of the core, which is created anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_view"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._view = self._made(self._columns)

    def _made(self, columns: NDArray[np.intp]) -> object:
        """Create a view of the core with the given columns, in ascending order."""
        self._columns = columns
        task, model, space = self.task, self.task.model, self.task.space
        place = np.full(len(self._names), -1, np.int32)
        place[columns] = np.arange(len(columns))
        turns = space.rotation.astype(np.int32)
        turns[whole_turns(task)] = 2
        shown = np.arange(len(self.bounded) if self.with_robot else 0)
        return _core._view_create(
            model,
            self.body,
            body_poses(model, task.start, threads=1)[0][self.body],
            space.v.astype(np.int32),
            turns,
            np.array(self.tips if self.with_robot else [], np.int32),
            robot_q(model)[self.bounded[shown]].astype(np.int32),
            place,
            self.half[shown],
            self.middle[shown],
            self.with_world,
            self.more,
            task.length,
            task.position_tolerance,
            task.rotation_tolerance,
            float(self.with_robot),  # weight of the robot's distance in the potential
        )

    def goals(self, q: Array) -> Goals:
        """Return the goals (n, nq) with the object's pose in each."""
        pos, rot = body_poses(self.task.model, q, threads=self.threads)
        pose = np.concatenate((pos[:, self.body], rot[:, self.body].reshape(-1, 9)), axis=1)
        return Goals(q, pose)

    def look(self, q: Array, goals: Goals, told: Array) -> Look:
        """Observe configurations (n, nq).

        ``told`` (n, more) are commands and actions. If several poses count as the goal, the nearest
        one is used.
        """
        if not self.task.goals.is_point:
            goals = self.goals(nearest_goals(self.task, whole_turns(self.task), q, goals.q))
        if not self.more:
            told = np.empty((len(q), 0))
        seen, judged = _core._observe(
            self.task.model, self._view, q, goals.q, goals.pose, told, self.threads
        )
        return Look(seen, judged)

    def keep_what_changes(self, q: Array, goals: Goals, told: Array) -> None:
        """Drop columns that are constant over many samples (n, ...), such as those out of the
        plane, and those of a hidden goal."""
        keep = np.ptp(self.look(q, goals, told).seen, axis=0) > 1e-9
        if not self.with_goal:
            keep &= np.array([not name.startswith(_OF_GOAL) for name in self._names])
        columns = np.flatnonzero(keep)
        self._view = self._made(columns)
        self.names = tuple(self._names[i] for i in columns)

    def _mover(self, joint: int) -> str:
        """Return the name of the actuator of a robot joint, with the joint's name if several joints
        share the actuator."""
        model = self.task.model
        name = model.actuator_names[owners(model)[joint]]
        alone = model.actuated_v[owners(model)[joint]] >= 0
        return name if alone else f"{name}, {robot_joints(model)[joint].name}"

    def _all_names(self) -> tuple[str, ...]:
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
                *(f"joint of {self._mover(i)}, of its range" for i in self.bounded.tolist()),
                *(f"command of {name}, past the joint" for name in model.actuator_names),
                *(f"last action {k}" for k in range(self.actions)),
            ]
            if self.with_velocities:
                names += [f"velocity {i}, a step of the task" for i in range(model.nv)]
        return tuple(names)


def nearest_goals(task: Task, whole: NDArray[np.intp], q: Array, goals: Array) -> Array:
    """Return for each q (n, nq) the nearest goal (n, nq) among the poses that count as equal for the task.

    Args:
        task: the task.
        whole: coordinates of the object for which full turns do not count.
        q, goals: configurations.
    """
    if task.goals.is_point:
        return goals
    at = task.space.q_of_scalars(whole)
    near = np.array(goals)
    near[:, at] += math.tau * np.rint((q[:, at] - near[:, at]) / math.tau)
    return np.asarray(task.goals.nearest(q.T, near.T).T)


def whole_turns(task: Task) -> NDArray[np.intp]:
    """Return the indices of the object's coordinates that are angles of hinges without limits."""
    model, space = task.model, task.space
    unlimited = set()
    for joint, limits in zip(model.description.joints, np.asarray(model.joint_range)):
        if joint.type == "hinge" and not np.isfinite(limits).any():
            unlimited.add(model.slice_v(joint.name).start)
    return np.array([i for i, v in enumerate(space.v) if int(v) in unlimited], dtype=np.intp)
