"""Joints that follow others by couplings, and actuators of tendons that move such joints together."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import instance
from qdsim.array_type import Array
from qdsim.description import Actuator, Coupling
from qdsim.model import Model
from qdsim.planning.task.drives import coupled_joints, once, robot_joints

__all__ = [
    "by_drives",
    "driven_joints",
    "folded",
    "following",
    "reduce_tendons",
    "unmoved_q",
    "with_followers",
]


def _leaders(model: Model) -> dict[str, tuple[str, float, float]]:
    """Return, for each joint that follows another in proportion, the other joint, and slope and
    offset of ``q = slope q_other + offset``."""
    ref = {joint.name: joint.ref for joint in model.description.joints}
    found = {}
    for item in model.description.constraints:
        if isinstance(item, Coupling) and item.follows and not any(item.coefficients[2:]):
            start, slope = item.coefficients[:2]
            offset = ref[item.joint] + start - slope * ref[item.follows]
            found[item.joint] = item.follows, slope, offset
    return {joint: lead for joint, lead in found.items() if lead[0] not in found}


@once
def _driven(model: Model) -> list[tuple[str, str, float, float]]:
    """Return the joints without actuators that follow an actuated joint, each with that joint, slope and offset."""
    if not any(isinstance(item, Coupling) for item in model.description.constraints):
        return []
    actuated = set(np.asarray(model.actuated_v).tolist())
    return [
        (joint, leader, slope, offset)
        for joint, (leader, slope, offset) in _leaders(model).items()
        if model.slice_v(leader).start in actuated and model.slice_v(joint).start not in actuated
    ]


@once
def folded(model: Model) -> Array:
    """Return displacements of all joints as a linear function of those of independent joints, ``(nv, nv)``.

    The identity, except that a joint that follows an actuated one has its row in that joint's
    column. The transpose maps forces on all joints to forces on independent ones.
    """
    fold = np.eye(model.nv)
    for joint, leader, slope, _ in _driven(model):
        own, other = (model.slice_v(name).start for name in (joint, leader))
        fold[own, own], fold[own, other] = 0.0, slope
    return fold


def with_followers(model: Model, q: Array) -> Array:
    """Set the positions of joints that follow actuated ones in configurations (..., nq); changes
    and returns ``q``."""
    for joint, leader, slope, offset in _driven(model):
        own, other = (model.slice_q(name).start for name in (joint, leader))
        q[..., own] = slope * q[..., other] + offset
    return q


def following(model: Model) -> list[str]:
    """Return the joints that follow actuated ones, in the order of the bodies."""
    names = {joint for joint, *_ in _driven(model)}
    return [joint.name for joint in model.description.joints if joint.name in names]


def driven_joints(model: Model) -> list[str]:
    """Return the joints that actuators move, in the order of
    :func:`~qdsim.planning.task.drives.robot_joints`, then their followers."""
    return [joint.name for joint in robot_joints(model)] + following(model)


def unmoved_q(model: Model) -> NDArray[np.intp]:
    """Return the indices ``(n,)`` of the configuration's entries that neither actuators nor followers move."""
    own = [model.slice_q(joint).start for joint in following(model)]
    return np.setdiff1d(model.unactuated_q, own).astype(np.intp)


@once
def _columns(model: Model) -> Array:
    """Return the columns of :func:`folded` for the actuated joints, ``(nv, nu)``."""
    return np.ascontiguousarray(folded(model)[:, model.actuated_v])


def by_drives(model: Model, J: Array) -> Array:
    """Return the columns ``(..., nu)`` of a Jacobian ``(..., nv)`` with respect to actuated joints
    together with their followers."""
    return np.asarray(J @ _columns(model))


def reduce_tendons(model: Model) -> Model:
    """Move actuators from tendons onto joints, for planners that command joints.

    If all joints of a tendon follow one of them by proportional couplings (the fingers of a
    parallel gripper), the tendon's length is proportional to the position of that joint, ``l = s
    q``. An actuator of the tendon with stiffness k and gear g is then equivalent to an actuator of
    that joint with stiffness ``k s^2``, gear ``g s`` and force limits multiplied by ``s`` (virtual
    work). Commands keep their meaning, and both models have the same equilibria, so plans made with
    this model run on the other one. During a motion the models differ by the inertia of these
    joints, which joints with springs do not have in a step.

    Tendons without couplings are left unchanged: planners command their length, and the step
    computes the joint positions.

    Args:
        model: the model; without actuators of such tendons it is returned unchanged.

    Raises:
        TypeError: if it is not a model.
        ValueError: if couplings tie joints of a tendon that do not all follow one joint, or if the
            tendon has a length when that joint is at zero.
    """
    instance("model", model, Model)
    description = model.description
    actuators = tuple(
        item if item.tendon is None else _on_joint(model, item) for item in description.actuators
    )
    if actuators == description.actuators:
        return model
    return Model(dataclasses.replace(description, actuators=actuators))


def _on_joint(model: Model, item: Actuator) -> Actuator:
    """Move an actuator from its tendon to the leading joint; unchanged if no coupling ties the tendon's joints."""
    tendon = next(t for t in model.description.tendons if t.name == item.tendon)
    if not coupled_joints(model) & {name for name, _ in tendon.joints}:
        return item
    leaders = _leaders(model)
    slopes: dict[str, float] = {}
    rest = 0.0
    for joint, share in tendon.joints:
        leader, slope, offset = leaders.get(joint, (joint, 1.0, 0.0))
        slopes[leader] = slopes.get(leader, 0.0) + share * slope
        rest += share * offset
    owner = f"model: actuator {item.name!r} pulls along tendon {tendon.name!r}"
    if len(slopes) != 1 or not all(slopes.values()):
        what = " and ".join(repr(name) for name in slopes)
        raise ValueError(
            f"{owner}, whose joints do not all follow one joint: it moves {what}, and couplings tie some"
        )
    if rest != 0.0:
        raise ValueError(f"{owner}, whose length is {rest:g} where its joint is at zero")
    ((joint, s),) = slopes.items()
    force = item.force_range
    return dataclasses.replace(
        item,
        joint=joint,
        tendon=None,
        stiffness=item.stiffness * s * s,
        gear=item.gear * s if np.isfinite(item.gear) else item.gear,
        gain=item.gain * s,
        bias=item.bias * s,
        damping=item.damping * s * s,
        gain_slope=(s * s * item.gain_slope[0], s * s * item.gain_slope[1]),
        own_force_range=None,
        force_range=None
        if force is None
        else (min(s * x for x in force), max(s * x for x in force)),
    )
