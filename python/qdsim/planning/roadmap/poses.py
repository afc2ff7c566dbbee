"""Resting poses of an object, distances between them, and poses of the waiting robot."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.grasps.placing import placed
from qdsim.planning.grasps.resting import STILL_POSITION, STILL_ROTATION, is_stable, landing
from qdsim.planning.grasps.samplers.touching import CHOICES
from qdsim.planning.task.drives import robot_q
from qdsim.planning.task.goal_set import Target, way_to
from qdsim.planning.task.oddities import beyond_box
from qdsim.planning.task.robot import CONTACT_TOLERANCE, penetration
from qdsim.planning.task.task import DRAWS, Task

__all__ = ["away", "distances", "draw_poses", "nearest", "parked", "resting", "spread_out"]


def distances(task: Task, poses: Array, target: Target) -> Array:
    """Compute the distances ``(n,)`` of poses ``(n, nq)`` from another pose or a goal, m; rotations are
    multiplied by the task's length."""
    difference = way_to(task.space, target, poses.T)
    return np.asarray(np.linalg.norm(task.space.scale(task.length)[:, None] * difference, axis=0))


def nearest(task: Task, poses: Array, target: Target, count: int) -> tuple[list[int], Array]:
    """Return the indices of the nearest poses, nearest first, and the distances of all poses ``(n,)``."""
    away = distances(task, poses, target)
    return np.argsort(away, kind="stable")[:count].tolist(), away


def away(task: Task, q: Array, pose: Array) -> float:
    """Compute the distance of the object from a pose, in tolerances of the task; at most 1 counts as arrived."""
    return task.in_tolerances(task.space.errors(q, pose))


def resting(task: Task, q: Array) -> Array | None:
    """Return ``q`` with the object where it comes to rest by itself; None if it falls out of the scene."""
    if is_stable(task.model, q, task.object, task.options):
        return q
    return landing(task.model, q, task.object, task.options)


def parked(task: Task, q: Array, rng: np.random.Generator) -> Array | None:
    """Return ``q`` with the robot in its pose at the task's start, or in a grasp if that pose is not free;
    None if there is no free pose.

    Without a sampler of grasps, the robot's springs yield to the object at the task's start.
    """
    here = np.array(q)
    own = robot_q(task.model)
    here[own] = task.start[own]
    if penetration(task.model, here) <= CONTACT_TOLERANCE:
        return here
    if task.sampler is None:
        given_way, free = placed(task.model, task.object, here, task.options)
        return given_way if free else None
    grasp = task.grasp(q, rng)
    if grasp is None or penetration(task.model, grasp) > CONTACT_TOLERANCE:
        return None
    return grasp


def draw_pose(task: Task, rng: np.random.Generator) -> Array | None:
    """Draw a resting pose in the task's box with the robot parked ``(nq,)``; None if none was found.

    A drawn pose in the air is replaced by where the object comes to rest, if that is in the box.
    """
    for _ in range(DRAWS):
        share = rng.random(task.space.size)
        drawn = task.with_object(task.start, task.lower + share * (task.upper - task.lower))
        rests = resting(task, drawn)
        if rests is None or not _in_box(task, rests):
            continue
        there = parked(task, rests, rng)
        if there is not None:
            return there
    return None


def _in_box(task: Task, q: Array) -> bool:
    """Return whether the object is in the task's box, but for what counts as resting."""
    way = task.space.difference(q, task.start)
    room = np.where(task.space.rotation, STILL_ROTATION, STILL_POSITION)
    return bool(beyond_box(task.space, way, (task.lower, task.upper), room).max() <= 0.0)


def draw_poses(task: Task, count: int, rng: np.random.Generator) -> Array:
    """Draw the given number of resting poses ``(n, nq)``; there are fewer if some were not found."""
    drawn = [draw_pose(task, rng) for _ in range(count)]
    return np.array([q for q in drawn if q is not None]).reshape(-1, task.model.nq)


def spread_out(task: Task, count: int, rng: np.random.Generator) -> Array:
    """Return poses ``(n, nq)`` that are far from each other, beginning with the task's start if the object
    rests there.

    Each is the candidate that is farthest from the poses before it (Gonzalez 1985, "Clustering to
    minimize the maximum intercluster distance").
    """
    drawn = draw_poses(task, CHOICES * count, rng)
    if is_stable(task.model, task.start, task.object, task.options):
        drawn = np.vstack((task.start, drawn))
    if len(drawn) == 0:
        return drawn
    kept = [0]
    gap = distances(task, drawn, drawn[0])
    while len(kept) < min(count, len(drawn)):
        kept.append(int(gap.argmax()))
        gap = np.minimum(gap, distances(task, drawn, drawn[kept[-1]]))
    return drawn[kept]
