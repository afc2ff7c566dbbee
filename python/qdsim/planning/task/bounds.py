"""Bounds of commands and limits of joints: who keeps them, and by how much they may be missed."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.model import Model
from qdsim.planning.task.space import Array

__all__ = ["LIMIT_TOLERANCE", "beyond", "beyond_limits", "command_range", "narrowed"]

LIMIT_TOLERANCE = 1e-6
"""rad or m by which joints may be beyond their limits: what a step's certificate leaves, no more."""

_ROUNDING = 1e-9
"""Of commands, relative to bounds larger than 1."""


def command_range(model: Model) -> tuple[Array, Array]:
    """Bounds ``(nu,)`` on the commands that respect joint limits and those of the commands."""
    joints = {model.slice_v(name).start: i for i, name in enumerate(model.joint_names)}
    rows = [joints[int(v)] for v in model.actuated_v]
    ends = np.asarray(model.joint_range)[rows] * np.asarray(model.actuator_gear)[:, None]
    lower = np.maximum(ends.min(axis=1), model.u_lower)
    upper = np.minimum(ends.max(axis=1), model.u_upper)
    return lower, upper


def beyond(u: Array, lower: Array, upper: Array) -> Array:
    """By how much commands ``(..., nu)`` are beyond their bounds ``(nu,)``; zero where within or by rounding."""
    excess = np.maximum(np.maximum(lower - u, u - upper), 0.0)
    return np.where(excess > _ROUNDING * np.maximum(1.0, np.abs(u)), excess, 0.0)


def beyond_limits(model: Model, q: Array) -> Array:
    """By how much the actuated joints of configurations ``(..., nq)`` are beyond their limits ``(..., nu)``, rad or m."""
    joints = {model.slice_q(name).start: i for i, name in enumerate(model.joint_names)}
    limits = np.asarray(model.joint_range)[[joints[int(i)] for i in model.actuated_q]]
    here = q[..., model.actuated_q]
    excess = np.maximum(np.maximum(limits[:, 0] - here, here - limits[:, 1]), 0.0)
    return np.where(excess > LIMIT_TOLERANCE, excess, 0.0)


def narrowed(model: Model, lower: Array, upper: Array) -> Model:
    """The model with the actuated joints' limits within what commands ``(nu,)`` can ask for; itself where they are already.

    Samplers and inverse kinematics, which keep to the limits of the model that they are given, keep to the bounds so.
    """
    gear = np.asarray(model.actuator_gear)
    ends = np.sort(np.stack((lower / gear, upper / gear)), axis=0)
    names = {model.slice_v(name).start: name for name in model.joint_names}
    ranges: dict[str, tuple[float, float]] = {}
    for v, low, high in zip(model.actuated_v.tolist(), *ends.tolist()):
        name = names[v]
        own_low, own_high = np.asarray(model.joint_range)[model.joint_names.index(name)].tolist()
        low, high = max(low, own_low), min(high, own_high)
        if (low > own_low or high < own_high) and low < high:
            # One-sided ranges cannot be said; no joint goes further than that.
            ranges[name] = max(low, -_FAR), min(high, _FAR)
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


_FAR = 1e6
