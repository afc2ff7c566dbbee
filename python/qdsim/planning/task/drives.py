"""Effects of a robot's commands: each moves one joint, or the length of a tendon that several joints share.

Planners control *lengths* ``l``, one for each actuator, whose spring pulls with ``k (u / gear -
l)``. For an actuator of a joint, the length is the position of that joint. For an actuator of a
tendon (one tendon for two joints of a finger) it is the length of the tendon. Planners do not
choose how the joints share it: the step computes that from their masses, springs, friction, limits
and contacts.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import ROUNDING, Array
from qdsim.description import Coupling, Joint, TendonCoupling, Wrap
from qdsim.model import Model
from qdsim.planning.task.least_squares import STEPS, least_squares_in_box, room

__all__ = [
    "check_joints_lead",
    "coupled_joints",
    "fault_of_sharing",
    "lengths",
    "once",
    "owners",
    "put_lengths",
    "robot_joints",
    "robot_limits",
    "robot_q",
    "robot_v",
    "shares",
    "sharing",
    "slopes",
]

T = TypeVar("T")


def once(compute: Callable[[Model], T]) -> Callable[[Model], T]:
    """Cache a function of a model for as long as the model lives; arrays are read-only."""
    known: weakref.WeakKeyDictionary[Model, T] = weakref.WeakKeyDictionary()

    @functools.wraps(compute)
    def of(model: Model) -> T:
        found = known.get(model)
        if found is None:
            found = compute(model)
            for part in found if isinstance(found, tuple) else (found,):
                if isinstance(part, np.ndarray):
                    part.flags.writeable = False
            known[model] = found
        return found

    return of


# ---------------------------------------------------------------- joints


@once
def sharing(model: Model) -> bool:
    """Return whether an actuator acts on a tendon."""
    return bool(np.any(model.actuated_v < 0))


@once
def _joints(model: Model) -> tuple[tuple[Joint, int], ...]:
    """Return the hinges and slides that actuators move, with the actuator's index, in the order of
    the actuators."""
    joints = {model.slice_v(joint.name).start: joint for joint in model.description.joints}
    found: list[tuple[Joint, int]] = []
    for i, v in enumerate(model.actuated_v.tolist()):
        own = [v] if v >= 0 else sorted(_along(model, int(model.actuated_tendons[i])))
        found += [(joints[dof], i) for dof in own]
    return tuple(found)


def _along(model: Model, tendon: int) -> set[int]:
    """Return the first degrees of freedom of the joints that change a tendon's length."""
    item = model.description.tendons[tendon]
    if item.joints:
        return {model.slice_v(name).start for name, share in item.joints if share != 0.0}
    parents = {body.name: body for body in model.description.bodies[1:]}
    ways: list[set[str]] = []
    owners = {geom.name: body.name for body in model.description.bodies for geom in body.geoms}
    wraps = [owners[part.geom] for part in item.points if isinstance(part, Wrap)]
    for name in [*wraps, *(name for name, _ in item.places)]:
        way, body = [], parents.get(name)
        while body is not None:
            way += [joint.name for joint in body.joints]
            body = parents.get(body.parent or "world")
        ways.append(set(way))
    # A joint that carries all points of the tendon does not change its length.
    return {
        model.slice_v(joint).start for joint in set().union(*ways) - ways[0].intersection(*ways[1:])
    }


def robot_joints(model: Model) -> tuple[Joint, ...]:
    """Return the joints that actuators move: one for an actuator of a joint, all joints of its
    tendon for others."""
    return tuple(joint for joint, _ in _joints(model))


@once
def owners(model: Model) -> NDArray[np.intp]:
    """Return the actuator of each joint of :func:`robot_joints`, ``(joints,)``."""
    return np.array([i for _, i in _joints(model)], dtype=np.intp)


@once
def robot_q(model: Model) -> NDArray[np.intp]:
    """Return the indices of :func:`robot_joints` in a configuration, ``(joints,)``."""
    return np.array([model.slice_q(joint.name).start for joint, _ in _joints(model)], dtype=np.intp)


@once
def robot_v(model: Model) -> NDArray[np.intp]:
    """Return the indices of :func:`robot_joints` in a displacement, ``(joints,)``."""
    return np.array([model.slice_v(joint.name).start for joint, _ in _joints(model)], dtype=np.intp)


@once
def robot_limits(model: Model) -> tuple[Array, Array]:
    """Return the limits of :func:`robot_joints`, ``(joints,)``, rad or m; infinite for none."""
    rows = [model.joint_names.index(joint.name) for joint, _ in _joints(model)]
    limits = np.asarray(model.joint_range)[rows].reshape(-1, 2)
    return limits[:, 0].copy(), limits[:, 1].copy()


# ---------------------------------------------------------------- lengths


def lengths(model: Model, q: Array) -> Array:
    """Return lengths ``(..., nu)`` in configurations ``(..., nq)``, rad or m."""
    found = np.asarray(q[..., model.actuated_q])
    if sharing(model):
        by_tendon = np.flatnonzero(model.actuated_tendons >= 0)
        every = model.tendon_lengths(q)
        found[..., by_tendon] = every[..., model.actuated_tendons[by_tendon]]
    return found


def slopes(model: Model, q: Array) -> Array:
    """Return derivatives ``(..., nu, nv)`` of :func:`lengths` with respect to displacements."""
    found = np.zeros((*q.shape[:-1], model.nu, model.nv))
    on_joint = np.flatnonzero(model.actuated_v >= 0)
    found[..., on_joint, model.actuated_v[on_joint]] = 1.0
    if sharing(model):
        by_tendon = np.flatnonzero(model.actuated_tendons >= 0)
        every = model.tendon_jacobians(q)
        found[..., by_tendon, :] = every[..., model.actuated_tendons[by_tendon], :]
    return found


def shares(model: Model, q: Array) -> Array:
    """Return the smallest displacement of the joints for a unit of each length with all other
    lengths fixed, ``(nv, nu)``.

    By virtual work, the transpose maps forces on joints to the forces along lengths that
    approximate them best.
    """
    if not sharing(model):
        return np.asarray(slopes(model, q).T)
    found: Array = np.asarray(np.linalg.pinv(slopes(model, q)), dtype=np.float64)
    return found


def put_lengths(model: Model, q: Array, wanted: Array) -> None:
    """Move the robot in configurations ``(n, nq)`` to the lengths ``wanted`` ``(n, nu)``.

    Uses the smallest displacements within the joint limits. If the limits prevent it, the lengths
    come as near as possible.
    """
    if not sharing(model):
        q[:, model.actuated_q] = wanted
        return
    rows, own = robot_q(model), robot_v(model)
    for here, length in zip(q, wanted):
        for _ in range(
            STEPS
        ):  # for lengths that are nonlinear, such as those of tendons through points
            left = length - lengths(model, here)
            if np.abs(left).max() <= 1e-12:
                break
            slope = slopes(model, here)[:, own]
            here[rows] += least_squares_in_box(slope, left, *room(here[rows], *robot_limits(model)))


# ---------------------------------------------------------------- what planners can do


def fault_of_sharing(model: Model, i: int) -> str | None:
    """Explain why planners cannot use the tendon of actuator ``i``; None if they can."""
    k = int(model.actuated_tendons[i])
    name = model.tendon_names[k]
    if len(model.description.tendons[k].points) == 5 and model.description.tendons[k].reach:
        return "turns a site against its reference site"
    mine = _along(model, k)
    for joint in model.description.joints:
        if model.slice_v(joint.name).start not in mine:
            continue
        owner = f"pulls along tendon {name!r}, whose joint {joint.name!r}"
        if not joint.scalar:
            return f"{owner} is no hinge or slide"
        if joint.name in coupled_joints(model):
            return f"{owner} is tied by a coupling"
        others = [j for own, j in _joints(model) if own is joint and j != i]
        if others:
            return f"{owner} {model.actuator_names[others[0]]!r} moves, too"
    if _is_undecided(model, np.sort(list(mine)), i):
        return f"pulls along tendon {name!r}, whose joints have neither mass nor springs to decide how they share it"
    ties = [c for c in model.description.constraints if isinstance(c, TendonCoupling)]
    if any(name in (c.tendon, c.follows) for c in ties):
        return f"pulls along tendon {name!r}, which is tied by a coupling"
    return None


def _is_undecided(model: Model, own: NDArray[np.intp], i: int) -> bool:
    """Return whether joints can move without resistance while the length of actuator ``i`` is constant.

    ``own`` are the degrees of freedom of the joints.
    """
    q, p = model.default_q, model.parameters
    stiff = {model.slice_v(name).start: k for name, k in zip(model.joint_names, p.joint_stiffness)}
    held = model.mass_matrix(q)[np.ix_(own, own)] + np.diag([stiff[dof] for dof in own.tolist()])
    open_ = np.linalg.svd(slopes(model, q)[i : i + 1, own])[2][1:]
    least = np.linalg.eigvalsh(open_ @ held @ open_.T).min(initial=np.inf)
    return bool(least <= ROUNDING * np.abs(held).max())


def coupled_joints(model: Model) -> set[str]:
    """Return the names of joints with couplings."""
    ties = [c for c in model.description.constraints if isinstance(c, Coupling)]
    return {name for c in ties for name in (c.joint, c.follows) if name is not None}


def check_joints_lead(model: Model, what: str) -> None:
    """Raise ValueError if joints share a tendon, for functions that set every joint separately."""
    if sharing(model):
        i = int(np.argmax(model.actuated_v < 0))
        raise ValueError(
            f"model: actuator {model.actuator_names[i]!r} acts on a tendon that joints share; {what} does not "
            "support such robots"
        )
