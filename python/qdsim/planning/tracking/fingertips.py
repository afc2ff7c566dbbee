"""Where the ends of a robot's last links are, seen from the object."""

from __future__ import annotations

import numpy as np

from qdsim.array_type import Array
from qdsim.batches.queries import body_poses
from qdsim.description import Geom, Mesh
from qdsim.description.arrays import rotation_matrix
from qdsim.model import Model
from qdsim.planning.task.robot import robot_bodies
from qdsim.planning.task.task import Task

__all__ = ["Fingertips", "last_links"]

END = 0.95
"""Points of a link at more than this share of its largest distance from its joint are its end."""


def last_links(task: Task) -> list[int]:
    """Return the bodies of the robot that carry no other body and can touch the object."""
    model = task.model
    robot = robot_bodies(model)
    parents = {body.parent for body in model.description.bodies}
    thing = model.body_names.index(task.object)
    pairs = np.asarray(model.geom_body)[np.asarray(model.pair_geom)]
    touching = set(pairs[(pairs == thing).any(axis=1)].ravel().tolist())
    return [
        b
        for b, body in enumerate(model.description.bodies)
        if robot[b] and body.name not in parents and b in touching
    ]


class Fingertips:
    """The ends of the robot's last links, relative to the object's centre of mass.

    Args:
        task: the task.
    """

    def __init__(self, task: Task) -> None:
        model = self._model = task.model
        self._links = last_links(task)
        self._ends = np.array([_end(model, b) for b in self._links]).reshape(-1, 3)
        self._thing = model.body_names.index(task.object)
        self._centre = np.asarray(model.description.bodies[self._thing].com)

    def offsets(self, q: Array) -> Array:
        """Return vectors ``(..., tips, 3)`` from the object's centre of mass to the ends in configurations ``(..., nq)``, m."""
        pos, rot = body_poses(self._model, q, threads=1)
        own = self._links
        ends = pos[..., own, :] + np.einsum("...kij,kj->...ki", rot[..., own, :, :], self._ends)
        centre = pos[..., self._thing, :] + rot[..., self._thing, :, :] @ self._centre
        return np.asarray(ends - centre[..., None, :])

    def slopes(self, q: Array) -> Array:
        """Return derivatives ``(tips, 3, nv)`` of the offsets with respect to displacements from ``q`` (nq)."""
        jacobian = self._model.point_jacobian
        of_object = jacobian(q, self._thing, self._centre)[:3]
        found = [jacobian(q, b, end)[:3] - of_object for b, end in zip(self._links, self._ends)]
        return np.array(found).reshape(-1, 3, self._model.nv)


def _end(model: Model, b: int) -> Array:
    """Return the point (3,) of a body, in its frame, that is farthest from its last joint."""
    description = model.description
    index = {body.name: i for i, body in enumerate(description.bodies)}
    pos, rot = model.body_poses(model.default_q)
    above = b
    while not description.bodies[above].joints and above != 0:
        above = index[description.bodies[above].parent or "world"]
    joints = description.bodies[above].joints
    anchor = pos[above] + (rot[above] @ np.asarray(joints[-1].pos) if joints else 0.0)
    root = rot[b].T @ (anchor - pos[b])
    meshes = {mesh.name: mesh for mesh in description.meshes}
    own = [
        _points(geom, meshes)
        for geom, body in zip(description.geoms, model.geom_body)
        if int(body) == b and (geom.contype or geom.conaffinity)
    ]
    points = np.concatenate(own)
    away = np.linalg.norm(points - root, axis=1)
    return np.asarray(points[away >= END * away.max()].mean(axis=0))


def _points(geom: Geom, meshes: dict[str, Mesh]) -> Array:
    """Return points (n, 3) that span a geometry, in the frame of its body."""
    own = np.zeros((1, 3))
    if geom.mesh is not None:
        own = np.asarray(meshes[geom.mesh].vertices)
    elif geom.cloud is not None:
        own = np.asarray(geom.cloud.points)
    elif geom.type == "box":
        own = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3), -1).reshape(-1, 3) * np.asarray(geom.size)
    elif geom.type in ("capsule", "cylinder"):
        own = np.array([[0.0, 0.0, -geom.size[1]], [0.0, 0.0, geom.size[1]]])
    placed: Array = np.asarray(geom.pos) + own @ rotation_matrix(geom.quat).T
    return placed
