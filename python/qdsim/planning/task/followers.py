"""Joints that follow others by couplings, and actuators of tendons that move such joints as one."""

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
    """Of each joint that follows another one in proportion: that one, slope and offset of ``q = slope q_other +
    offset``."""
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
    """Joints that follow an actuated one and are not actuated themselves: with that one, slope and offset."""
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
    """``(nv, nv)``: how all joints move with those that follow none: the identity but for joints that follow an
    actuated one, whose rows are in that one's column. Forces that they feel are felt there, by the transpose."""
    fold = np.eye(model.nv)
    for joint, leader, slope, _ in _driven(model):
        own, other = (model.slice_v(name).start for name in (joint, leader))
        fold[own, own], fold[own, other] = 0.0, slope
    return fold


def with_followers(model: Model, q: Array) -> Array:
    """Configurations (..., nq) with the joints that follow actuated ones where these put them; ``q`` itself is
    changed."""
    for joint, leader, slope, offset in _driven(model):
        own, other = (model.slice_q(name).start for name in (joint, leader))
        q[..., own] = slope * q[..., other] + offset
    return q


def following(model: Model) -> list[str]:
    """Joints that follow actuated ones, in the order of the bodies."""
    names = {joint for joint, *_ in _driven(model)}
    return [joint.name for joint in model.description.joints if joint.name in names]


def driven_joints(model: Model) -> list[str]:
    """Joints that actuators move, in the order of :func:`~qdsim.planning.task.drives.robot_joints`, then those that
    follow them."""
    return [joint.name for joint in robot_joints(model)] + following(model)


def unmoved_q(model: Model) -> NDArray[np.intp]:
    """``(n,)`` indices of the configuration's numbers that neither actuators nor what follows them move."""
    own = [model.slice_q(joint).start for joint in following(model)]
    return np.setdiff1d(model.unactuated_q, own).astype(np.intp)


@once
def _columns(model: Model) -> Array:
    """``(nv, nu)`` of :func:`folded`, those of the actuated joints."""
    return np.ascontiguousarray(folded(model)[:, model.actuated_v])


def by_drives(model: Model, J: Array) -> Array:
    """Columns ``(..., nu)`` of a Jacobian ``(..., nv)`` by actuated joints, which take those that follow them along."""
    return np.asarray(J @ _columns(model))


def reduce_tendons(model: Model) -> Model:
    """Move actuators from tendons onto joints, for planners that command joints.

    A tendon of joints that all follow one of them (couplings in proportion: the fingers of a parallel gripper) is as
    long as that one says, ``l = s q``. An actuator of stiffness k and gear g on it is one of stiffness ``k s^2`` and
    gear ``g s`` on that joint; limits of its force are times ``s`` (virtual work). Commands mean what they meant, and
    what rests with one model rests with the other, so plans made with this one move the other, too. On the way the two
    differ by the inertia of these joints, which springs of joints have no need of.

    Tendons whose joints no coupling ties stay what they are: planners pull along them, and the step finds how their
    joints share the length.

    Args:
        model: the model; without actuators of such tendons it is returned as it is.

    Raises:
        TypeError: if it is no model.
        ValueError: where couplings tie joints of a tendon that do not all follow one, or it has a length where that
            joint is at zero.
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
    """The actuator of a tendon on the joint that leads; itself where no coupling ties the tendon's joints."""
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
            f"{owner}, which no one joint leads: it moves {what}, and couplings tie some"
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
        force_range=None
        if force is None
        else (min(s * x for x in force), max(s * x for x in force)),
    )
