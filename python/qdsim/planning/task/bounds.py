"""Bounds of commands and limits of joints, and violations of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.array_type import ROUNDING, SAME, Array
from qdsim.model import Model
from qdsim.planning.task.drives import owners, robot_joints, robot_limits, robot_q

__all__ = ["beyond", "beyond_limits", "narrowed"]


def beyond(u: Array, lower: Array, upper: Array) -> Array:
    """Return the violation of the bounds ``(nu,)`` by commands ``(..., nu)``; zero within the
    bounds and for rounding errors."""
    excess = np.maximum(np.maximum(lower - u, u - upper), 0.0)
    return np.where(excess > ROUNDING * np.maximum(1.0, np.abs(u)), excess, 0.0)


def beyond_limits(model: Model, q: Array) -> Array:
    """Return the violation of the limits of actuated joints in configurations ``(..., nq)``.

    ``(..., joints)``, rad or m, in the order of :func:`~qdsim.planning.task.drives.robot_joints`.
    """
    lower, upper = robot_limits(model)
    here = q[..., robot_q(model)]
    excess = np.maximum(np.maximum(lower - here, here - upper), 0.0)
    return np.where(excess > SAME, excess, 0.0)


def narrowed(model: Model, lower: Array, upper: Array) -> Model:
    """Return the model with limits of actuated joints within the range of commands ``(nu,)``, or
    the model itself if they already are.

    Samplers and inverse kinematics respect the joint limits of their model, and so also these
    bounds. Joints that share a tendon keep their limits.
    """
    gear = np.asarray(model.actuator_gear)
    ends = np.sort(np.stack((lower / gear, upper / gear)), axis=0).T
    ranges: dict[str, tuple[float, float]] = {}
    own = np.stack(robot_limits(model), axis=1).tolist()
    for joint, i, (own_low, own_high) in zip(robot_joints(model), owners(model).tolist(), own):
        if model.actuated_v[i] < 0:
            continue
        low, high = max(float(ends[i, 0]), own_low), min(float(ends[i, 1]), own_high)
        if (low > own_low or high < own_high) and low < high:
            # A range must have two ends; no joint moves beyond this distance.
            ranges[joint.name] = max(low, -1.0 / SAME), min(high, 1.0 / SAME)
    if not ranges:
        return model
    bodies = tuple(
        dataclasses.replace(
            body,
            joints=tuple(
                dataclasses.replace(joint, range=ranges.get(joint.name, joint.range))
                for joint in body.joints
            ),
        )
        for body in model.description.bodies
    )
    return Model(dataclasses.replace(model.description, bodies=bodies))
