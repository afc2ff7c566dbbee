"""A path of the object alone to its goal, around static obstacles.

Its poses are subgoals of a search if the straight path is blocked.

A push moves the object straight towards a subgoal. If an obstacle blocks this line, no push helps,
and random poses rarely lead around it. A tree over the object's pose alone (Kuffner and LaValle
2000, "RRT-Connect: an efficient approach to single-query path planning") ignores the robot and
takes a fraction of a second.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.grasps.resting import without_robot
from qdsim.planning.grasps.samplers.touching import RARELY, sides
from qdsim.planning.motion.motion import SHORTCUTS
from qdsim.planning.search.tree import Tree
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.task import Task

__all__ = ["Guide", "guide"]

_GAPS = {0.2: 400, 0.1: 400, 0.05: 400, 0.0: 2000}
"""For each clearance of the path from obstacles, in lengths of the object, the largest number of branches of the tree.
The largest clearance for which a path is found is used."""


class Guide:
    """The poses of the object's path.

    Args:
        poses: ``(n, nq)`` from the start to the goal.
        near: Distance within which a node counts as having reached a pose, m; rotations are multiplied
            by the task's length.
    """

    def __init__(self, poses: Array, near: float) -> None:
        self.poses, self.near = poses, near

    def reached(self, tree: Tree) -> int:
        """Return the index of the last pose that a node of the current tree has reached."""
        for k in range(len(self.poses) - 1, 0, -1):
            if float(tree.object_distances(self.poses[k]).min()) <= self.near:
                return k
        return 0

    def subgoal(self, tree: Tree, rng: np.random.Generator) -> Array:
        """Return the next pose that no node of the current tree has reached, or rarely a later one, ``(nq,)``."""
        last = len(self.poses) - 1
        following = min(self.reached(tree) + 1, last)
        k = int(rng.integers(following, last + 1)) if rng.random() < RARELY else following
        return np.asarray(self.poses[k])


def guide(task: Task, rng: np.random.Generator) -> Guide | None:
    """Find a path of the object around static obstacles; None if the straight path is free or no
    path is found.

    Args:
        task: The task; the path leads from its start to its goal.
        rng: Random numbers of the tree.
    """
    space = _Space(task)
    if space.free(space.start, space.goal, 0.0) or not space.could_be(space.goal):
        return None
    for gap, tries in _GAPS.items():
        kept = gap * task.length
        way = _connected(space, kept, tries, rng)
        if way is not None:
            return Guide(space.poses(_cut_short(space, way, kept, rng)), 0.5 * space.ahead)
    return None


class _Space:
    """Displacements of the object from the start, in metres, and tests whether they are free of collisions."""

    def __init__(self, task: Task) -> None:
        self.task, self.model = task, without_robot(task.model)
        self.scale = task.space.scale(task.length)
        self.look = (
            sorted(_GAPS)[1] * task.length
        )  # distance between checked poses: the smallest clearance
        self.ahead = 0.5 * task.length  # longest branch, and distance between the poses of a guide
        wider = 0.5 * (task.upper - task.lower)  # paths may leave the task's box
        self.lower, self.upper = (
            (task.lower - wider) * self.scale,
            (task.upper + wider) * self.scale,
        )
        self.start = np.zeros(task.space.size)
        self.goal = task.goals.difference(task.start) * self.scale
        self._own, robot = sides(task.model, task.object)
        self._fixed = ~robot & ~self._own

    def draw(self, narrow: bool, rng: np.random.Generator) -> Array:
        """Draw a random displacement.

        If passages are narrow, half of the draws lie near the straight path, with any rotation.
        """
        x = rng.uniform(self.lower, self.upper)
        if narrow and rng.random() < 0.5:
            shifts = ~self.task.space.rotation
            near = rng.random() * self.goal + self.task.length * rng.standard_normal(len(x))
            x[shifts] = near[shifts]
        return np.asarray(x)

    def pose(self, x: Array) -> Array:
        """Return the start ``(nq,)`` with the object displaced."""
        return self.task.with_object(self.task.start, x / self.scale)

    def gap(self, x: Array, most: float) -> float:
        """Return the distance from the object to bodies that the robot does not move, at most ``most``, m."""
        found = self.model.collide(self.pose(x), most)
        a, b = found["body_a"], found["body_b"]
        asked = (self._own[a] & self._fixed[b]) | (self._own[b] & self._fixed[a])
        return float(found["dist"][asked].min(initial=most))

    def could_be(self, x: Array, gap: float = 0.0) -> bool:
        """Return whether the object keeps the clearance ``gap`` at a displacement."""
        return self.gap(x, gap + TOUCHING) >= gap - TOUCHING

    def free(self, a: Array, b: Array, gap: float) -> bool:
        """Return whether the object keeps the clearance ``gap`` on the straight line between two displacements."""
        count = max(1, math.ceil(float(np.linalg.norm(b - a)) / self.look))
        return all(self.could_be(a + (k / count) * (b - a), gap) for k in range(1, count + 1))

    def poses(self, way: list[Array]) -> Array:
        """Return evenly spaced poses along a path, ``(n, nq)``."""
        made = [way[0]]
        for a, b in pairwise(way):
            count = max(1, round(float(np.linalg.norm(b - a)) / self.ahead))
            made += [a + (k / count) * (b - a) for k in range(1, count + 1)]
        return np.array([self.pose(x) for x in made[:-1]] + [self.task.aim])


def _connected(
    space: _Space, gap: float, tries: int, rng: np.random.Generator
) -> list[Array] | None:
    """Find a path with clearance ``gap``, or that of the start or the goal if it is smaller; None if there is none."""
    narrow = gap == 0.0
    gap = max(0.0, min(gap, *(space.gap(x, gap + TOUCHING) for x in (space.start, space.goal))))
    trees = [[(space.start, -1)], [(space.goal, -1)]]
    for k in range(tries):
        here, there = trees[k % 2], trees[1 - k % 2]
        x = _extend(space, here, space.draw(narrow, rng), gap)
        while x is not None:
            y = _extend(space, there, x, gap)
            if y is None:
                break
            if np.array_equal(x, y):
                ways = [_back(here), _back(there)]
                first, last = ways if k % 2 == 0 else ways[::-1]
                return first[::-1] + last[1:]
    return None


def _extend(space: _Space, tree: list[tuple[Array, int]], to: Array, gap: float) -> Array | None:
    """Add a branch from the nearest node towards ``to``; return its end, or None if the branch is not free."""
    ends = np.array([x for x, _ in tree])
    nearest = int(np.linalg.norm(ends - to, axis=1).argmin())
    a = ends[nearest]
    length = float(np.linalg.norm(to - a))
    b = to if length <= space.ahead else a + (space.ahead / length) * (to - a)
    if not space.free(a, b, gap):
        return None
    tree.append((b, nearest))
    return b


def _back(tree: list[tuple[Array, int]]) -> list[Array]:
    """Return the nodes from the end of the last branch to the root."""
    way, k = [], len(tree) - 1
    while k >= 0:
        x, k = tree[k]
        way.append(x)
    return way


def _cut_short(
    space: _Space, way: list[Array], gap: float, rng: np.random.Generator
) -> list[Array]:
    """Return the path without unnecessary detours.

    Shortcuts join ends of branches only, because the shortest paths touch the obstacles and leave no room for the
    robot.
    """
    for _ in range(SHORTCUTS):
        if len(way) < 3:
            break
        i, j = np.sort(rng.choice(len(way), 2, replace=False)).tolist()
        if j - i > 1 and space.free(way[i], way[j], gap):
            way = way[: i + 1] + way[j:]
    return way
