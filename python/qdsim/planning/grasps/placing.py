"""Adapt a grasp that was planned for another pose of the object."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qdsim._core import SolverError
from qdsim.array_type import ROUNDING, Array
from qdsim.model import Model
from qdsim.planning.task.drives import check_joints_lead
from qdsim.planning.task.followers import by_drives, with_followers
from qdsim.planning.task.least_squares import STEPS, least_squares_in_box, room
from qdsim.planning.task.robot import (
    CONTACT_TOLERANCE,
    joint_limits,
    penetration,
    robot_bodies,
)
from qdsim.planning.task.space import ObjectSpace
from qdsim.step import Options, step

__all__ = ["placed", "shifted"]

NEAR = 0.01
"""Links within this distance of the object in a planned grasp keep their places on it, m."""


def placed(model: Model, object_name: str, q: ArrayLike, options: Options) -> tuple[Array, bool]:
    """Move the robot out of what it penetrates; the object stays and the robot's springs yield.

    The robot slides without friction: by the convex law of friction, it could not leave a corner of two
    surfaces, because sliding along one of them separates from it and thus presses against the other.
    Only pairs in which a body of the robot takes part count: an object's penetration of its support
    stays as it is.

    Args:
        model: the model.
        object_name: body that stays, with everything on its joints.
        q: ``(nq,)`` the robot in its grasp and the object at its pose; this grasp is the command of
            the springs.
        options: of the steps; their smoothing and their own held bodies are ignored.

    Returns:
        The configuration ``(nq,)`` (``q`` itself if the robot penetrates nothing), and whether the
        robot got out.
    """
    here, own = np.array(q, dtype=np.float64), robot_bodies(model)
    command = model.command_from(here)
    if penetration(model, here, own) <= CONTACT_TOLERANCE:
        return here, True
    held = options.replace(held=(object_name,), kappa=None)
    smooth = model.with_parameters(pair_friction=0.0)
    for _ in range(STEPS):
        try:
            here = np.array(step(smooth, here, command, held).q_next)
        except SolverError:
            return here, False
        if penetration(model, here, own) <= CONTACT_TOLERANCE:
            return here, True
    return here, False


def shifted(model: Model, object_name: str, planned: ArrayLike, here: ArrayLike) -> Array:
    """Move a grasp with the object: links near the object move to the same places on it.

    Solves a least-squares problem over all such points, within the joint limits, from the planned
    configuration. Links that cannot reach their places come as near as they can.

    Args:
        model: the model.
        object_name: name of the object's body.
        planned: ``(nq,)`` the robot in its grasp.
        here: ``(nq,)`` the present configuration of the object.

    Returns:
        ``(nq,)``, the object as in ``here``.
    """
    grasp, now = np.array(planned, dtype=np.float64), np.asarray(here, dtype=np.float64)
    space = ObjectSpace(model, object_name)
    points = _grasp_points(model, space, grasp, now)
    grasp[space.q] = now[space.q]
    if not points:
        return grasp
    check_joints_lead(model, "a grasp that is made to fit")
    rows = model.actuated_q
    lower, upper = joint_limits(model)
    for _ in range(STEPS):
        jacobians, errors = [], []
        for body, local, target in points:
            pos, rot = model.body_pose(grasp, body)
            errors.append(target - (pos + rot @ local))
            jacobians.append(by_drives(model, np.asarray(model.jacobian(grasp, body, local))[:3]))
        error = np.concatenate(errors)
        move = least_squares_in_box(
            np.vstack(jacobians),
            error,
            *room(grasp[rows], lower, upper),
            regularization=1e-6,
        )
        grasp[rows] += move
        with_followers(model, grasp)
        if np.abs(move).max(initial=0.0) < ROUNDING:
            break
    return grasp


def _grasp_points(
    model: Model, space: ObjectSpace, planned: Array, here: Array
) -> list[tuple[str, Array, Array]]:
    """Return the points of links next to the object: body, point in its frame, and target in the world.

    The target is the place that the point had on the object, at the object's present pose.
    """
    names = model.body_names
    robot = np.flatnonzero(robot_bodies(model)).tolist()
    then, turned = model.body_pose(planned, space.body)
    now, turn = model.body_pose(here, space.body)
    found = []
    for contact in model.collide(planned, NEAR):
        a, b = int(contact["body_a"]), int(contact["body_b"])
        link, other = (a, b) if a in robot else (b, a)
        if link not in robot or names[other] != space.body:
            continue
        half = 0.5 * float(contact["dist"]) * contact["frame"][0]  # from A into B
        point = contact["pos"] + (-half if link == a else half)
        pos, rot = model.body_pose(planned, names[link])
        target = now + turn @ turned.T @ (point - then)
        found.append((names[link], rot.T @ (point - pos), target))
    return found
