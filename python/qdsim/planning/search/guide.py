"""A path of the object alone to its goal, around static obstacles, for subgoals where the straight
path is blocked.

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
from qdsim.planning.grasps.samplers.touching import sides
from qdsim.planning.motion.motion import SHORTCUTS
from qdsim.planning.search.tree import Tree
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.task import Task

__all__ = ["Guide", "guide"]

_GAPS = {0.2: 400, 0.1: 400, 0.05: 400, 0.0: 2000}
"""Clearance that the path keeps from obstacles, in lengths of the object, and how many branches of a tree may be
spent on it. The widest clearance for which a path is found counts."""
_LOOK, _REACH = 0.05, 0.3
"""Lengths of the object: the distance between poses of a path that are checked, and the longest branch of a tree."""
_NEXT = 0.7
"""Probability that a subgoal is the next pose that no node has reached, and not a random one of those that are left."""


class Guide:
    """Poses along the object's path.

    Args:
        poses: ``(n, nq)`` from the start to the goal.
        near: a pose counts as reached by a node within this distance, m; rotations are multiplied
            by the task's length.
    """

    def __init__(self, poses: Array, near: float) -> None:
        self.poses, self.near = poses, near

    def reached(self, tree: Tree) -> int:
        """The last pose that a node of the current tree has reached."""
        for k in range(len(self.poses) - 1, 0, -1):
            if float(tree.object_distances(self.poses[k]).min()) <= self.near:
                return k
        return 0

    def subgoal(self, tree: Tree, rng: np.random.Generator) -> Array:
        """The next pose that no node of the current tree has reached, or a later one, ``(nq,)``."""
        last = len(self.poses) - 1
        following = min(self.reached(tree) + 1, last)
        k = following if rng.random() < _NEXT else int(rng.integers(following, last + 1))
        return np.asarray(self.poses[k])


def guide(task: Task, rng: np.random.Generator) -> Guide | None:
    """Find a path of the object around static obstacles; None if the straight path is free or no
    path is found.

    Args:
        task: its start and its goal are the ends.
        rng: of the tree.
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
    """Displacements of the object from the start in metres, and which of them are free."""

    def __init__(self, task: Task) -> None:
        self.task, self.model = task, without_robot(task.model)
        self.scale = task.space.scale(task.length)
        self.look, self.longest = _LOOK * task.length, _REACH * task.length
        self.ahead = 0.5 * task.length  # between the poses of a guide
        wider = 0.5 * (task.upper - task.lower)  # a way may lead round what is in the box
        self.lower, self.upper = (
            (task.lower - wider) * self.scale,
            (task.upper + wider) * self.scale,
        )
        self.start = np.zeros(task.space.size)
        self.goal = task.goals.difference(task.start) * self.scale
        self._own, robot = sides(task.model, task.object)
        self._fixed = ~robot & ~self._own

    def draw(self, narrow: bool, rng: np.random.Generator) -> Array:
        """A random displacement. Where passages are narrow, half of the draws lie near the straight path, with any
        rotation."""
        x = rng.uniform(self.lower, self.upper)
        if narrow and rng.random() < 0.5:
            shifts = ~self.task.space.rotation
            near = rng.random() * self.goal + self.task.length * rng.standard_normal(len(x))
            x[shifts] = near[shifts]
        return np.asarray(x)

    def pose(self, x: Array) -> Array:
        """``(nq,)`` the start with the object displaced."""
        return self.task.with_object(self.task.start, x / self.scale)

    def gap(self, x: Array, most: float) -> float:
        """Distance from the object to what the robot does not move, at most ``most``, m."""
        found = self.model.collide(self.pose(x), most)
        a, b = found["body_a"], found["body_b"]
        asked = (self._own[a] & self._fixed[b]) | (self._own[b] & self._fixed[a])
        return float(found["dist"][asked].min(initial=most))

    def could_be(self, x: Array, gap: float = 0.0) -> bool:
        """Whether the object keeps the clearance ``gap`` there."""
        return self.gap(x, gap + TOUCHING) >= gap - TOUCHING

    def free(self, a: Array, b: Array, gap: float) -> bool:
        """Whether it keeps the clearance ``gap`` on the straight line."""
        count = max(1, math.ceil(float(np.linalg.norm(b - a)) / self.look))
        return all(self.could_be(a + (k / count) * (b - a), gap) for k in range(1, count + 1))

    def poses(self, way: list[Array]) -> Array:
        """``(n, nq)`` evenly spaced poses along a path."""
        made = [way[0]]
        for a, b in pairwise(way):
            count = max(1, round(float(np.linalg.norm(b - a)) / self.ahead))
            made += [a + (k / count) * (b - a) for k in range(1, count + 1)]
        return np.array([self.pose(x) for x in made[:-1]] + [self.task.aim])


def _connected(
    space: _Space, gap: float, tries: int, rng: np.random.Generator
) -> list[Array] | None:
    """A path with clearance ``gap``, or that of start and goal where it is smaller."""
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
    """Add a branch from the nearest node towards ``to``. Returns its end, None where it is not free."""
    ends = np.array([x for x, _ in tree])
    nearest = int(np.linalg.norm(ends - to, axis=1).argmin())
    a = ends[nearest]
    length = float(np.linalg.norm(to - a))
    b = to if length <= space.longest else a + (space.longest / length) * (to - a)
    if not space.free(a, b, gap):
        return None
    tree.append((b, nearest))
    return b


def _back(tree: list[tuple[Array, int]]) -> list[Array]:
    """The nodes from the last branch to the root."""
    way, k = [], len(tree) - 1
    while k >= 0:
        x, k = tree[k]
        way.append(x)
    return way


def _cut_short(
    space: _Space, way: list[Array], gap: float, rng: np.random.Generator
) -> list[Array]:
    """The path without unnecessary detours.

    Shortcuts join ends of branches only: the shortest paths touch the obstacles and leave no room for the robot.
    """
    for _ in range(SHORTCUTS):
        if len(way) < 3:
            break
        i, j = np.sort(rng.choice(len(way), 2, replace=False)).tolist()
        if j - i > 1 and space.free(way[i], way[j], gap):
            way = way[: i + 1] + way[j:]
    return way
