"""Changes of the command that a search tries."""

from __future__ import annotations

import math

import numpy as np

from qdsim.array_type import SAME, Array
from qdsim.model import Model
from qdsim.planning.grasps.samplers.touching import contacts_between, sides
from qdsim.planning.task.drives import sharing
from qdsim.planning.task.followers import by_drives
from qdsim.planning.task.least_squares import least_squares_in_box
from qdsim.planning.task.space import ObjectSpace

__all__ = ["around", "following"]


def following(
    model: Model,
    q: Array,
    space: ObjectSpace,
    motion: Array,
    near: float,
    lower: Array,
    upper: Array,
) -> Array | None:
    """Compute the change of the command ``(nu,)`` with which the robot's contacts follow the object's displacement.

    In the smoothed model that steers a search, an object floats on its support and tips at once. Fingers that stick to
    an object and move along with it push it in the wanted direction (the kinematics of a grasp, Murray, Li and Sastry
    1994, section 5.2).

    Args:
        model: The model.
        q: Configuration ``(nq,)``.
        space: The object's coordinates.
        motion: Displacement ``(size,)`` of the object.
        near: Largest distance of robot and object that counts as a contact, m.
        lower, upper: Bounds ``(nu,)`` of the change.

    Returns:
        The change, or None if nothing touches or joints share a tendon.
    """
    if sharing(model):
        return None
    _, robot = sides(model, space.body)
    contacts = contacts_between(model, q, space.body, near)
    if len(contacts) == 0:
        return None
    pos, rot = model.body_poses(q)
    columns, points = [], []
    for contact in contacts:
        pair = int(contact["body_a"]), int(contact["body_b"])
        finger, touched = pair if robot[pair[0]] else pair[::-1]
        J = [
            model.jacobian(q, k, rot[k].T @ (contact["pos"] - pos[k]))[:3]
            for k in (finger, touched)
        ]
        columns.append(by_drives(model, J[0]))
        points.append(J[1][:, space.v] @ motion)
    matrix = np.vstack(columns)
    weight = SAME * float(np.square(matrix).sum())  # joints that move no contact stay
    return least_squares_in_box(matrix, np.concatenate(points), lower, upper, regularization=weight)


def around(
    du: Array, count: int, longest: float, within: tuple[Array, Array], rng: np.random.Generator
) -> Array:
    """Draw random changes of the command ``(count, nu)``; their directions scatter around a given one.

    Args:
        du: The given change ``(nu,)``; zero: any direction.
        count: Number of changes.
        longest: Largest length of a change.
        within: Lower and upper bounds ``(nu,)``.
        rng: Generator of the directions and lengths.
    """
    aim = du / length if (length := math.sqrt(du @ du)) > 0.0 else 0.0
    noise = rng.standard_normal((count, len(du))) / np.sqrt(len(du))
    reach = rng.uniform(0.1, 1.0, count) * longest
    direction = aim + noise
    direction *= (reach / np.linalg.norm(direction, axis=1))[:, None]
    return np.asarray(np.clip(direction, *within))
