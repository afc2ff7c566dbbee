"""Properties of robots and objects for planners: bodies that commands move, levers, masses, sizes.

Properties that depend on the model alone are computed once per model.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import ROUNDING, SAME, Array
from qdsim.description.radii import bounding_radius
from qdsim.model import Model
from qdsim.planning.task.drives import (
    fault_of_sharing,
    once,
    owners,
    robot_joints,
    robot_limits,
    robot_v,
    shares,
    sharing,
    slopes,
)
from qdsim.planning.task.followers import by_drives, driven_joints, folded
from qdsim.planning.task.space import ObjectSpace

__all__ = [
    "CONTACT_TOLERANCE",
    "GRAVITY",
    "SETTLING_STEPS",
    "TOUCHING",
    "bounding_radii",
    "check_springs",
    "command_range",
    "critical_damping",
    "deepest",
    "driven_bodies",
    "force_reach",
    "gap_slopes",
    "joint_limits",
    "levers",
    "lies_on_a_plane",
    "mass_metric",
    "moved_bodies",
    "near_pairs",
    "object_length",
    "object_size",
    "object_weight",
    "penetration",
    "per_dof",
    "per_joint",
    "robot_bodies",
    "soft_geoms",
    "strides",
    "too_near",
    "turning",
]

CONTACT_TOLERANCE = SAME
"""Accepted penetration where a grasp changes or the robot waits, m: the accuracy of a step's certificate."""

SETTLING_STEPS = 5
"""Number of steps within which a penetration has to vanish. Each step leaves about the square of the penetration before
it, divided by a radius."""

TOUCHING = 1e-3
"""Gaps and penetrations (of soft contacts) up to this count as touching, m; with a tenth or ten times as much,
test_carried.py fails."""

GRAVITY = 9.81
"""Gravity for objects on a plane that is not part of the model, if the model has none, m/s^2."""

LEAST_LEVER = 0.05
"""Least lever of a rotating joint in limits of speed, m: 2 rad/s correspond to 0.1 m/s."""

# ---------------------------------------------------------------- the robot


_REDUCE_TENDONS = (
    "; planning.reduce_tendons(model) puts it on the joint that the tendon's joints follow"
)


def check_springs(model: Model) -> None:
    """Raise ValueError unless every actuator is a spring whose rest position is its command, and
    acts on its own joint or tendon."""
    p, seen = model.parameters, set()
    for i, name in enumerate(model.actuator_names):
        joint = int(model.actuated_v[i])
        what, help_ = None, "; load(..., stiffness=...) makes it one"
        if p.actuator_stiffness[i] == 0.0 or not np.isfinite(model.actuator_gear[i]):
            what = "is no position actuator"
        elif joint < 0:
            what, help_ = fault_of_sharing(model, i), _REDUCE_TENDONS
        elif joint in seen:
            what = "shares its joint with another one"
        if what is not None:
            raise ValueError(
                "model: planning moves joints, and tendons that joints share, by one position actuator each, but "
                f"actuator {name!r} {what}{help_}"
            )
        seen.add(joint)


@once
def joint_limits(model: Model) -> tuple[Array, Array]:
    """Return limits ``(nu,)`` of the actuated joints and tendon lengths, rad or m; infinite for none."""
    if not sharing(model):
        return robot_limits(model)
    ends = np.full((model.nu, 2), (-np.inf, np.inf))
    of_joint = dict(
        zip((joint.name for joint in robot_joints(model)), np.stack(robot_limits(model), 1))
    )
    for i, tendon in enumerate(model.actuated_tendons.tolist()):
        item = None if tendon < 0 else model.description.tendons[tendon]
        if item is None:
            ends[i] = np.stack(robot_limits(model), 1)[int(np.argmax(owners(model) == i))]
        elif item.joints:  # for a tendon through points, only its own range is known
            ends[i] = sum(np.sort(c * of_joint[name]) for name, c in item.joints if c != 0.0)
        if item is not None:
            low, high = model.tendon_range[tendon]
            ends[i] = max(ends[i, 0], low), min(ends[i, 1], high)
    return ends[:, 0].copy(), ends[:, 1].copy()


@once
def turning(model: Model) -> NDArray[np.bool_]:
    """Return whether an actuator moves angles, ``(nu,)``: a hinge, or a tendon of hinges."""
    slides = np.array([joint.type == "slide" for joint in robot_joints(model)], dtype=bool)
    return ~np.isin(np.arange(model.nu), owners(model)[slides])


@once
def command_range(model: Model) -> tuple[Array, Array]:
    """Return bounds ``(nu,)`` on commands that respect joint limits and command ranges."""
    ends = np.stack(joint_limits(model), axis=1) * np.asarray(model.actuator_gear)[:, None]
    return (
        np.maximum(ends.min(axis=1), model.u_lower),
        np.minimum(ends.max(axis=1), model.u_upper),
    )


@once
def force_reach(model: Model) -> tuple[Array, Array]:
    """Return the largest distances ``(nu,)`` of a command below and above its joint's position for
    the force limits.

    ``(<= 0, >= 0)``, infinite for no limit.
    """
    stiffness = np.asarray(model.parameters.actuator_stiffness)[:, None]
    ends = np.asarray(model.parameters.actuator_force_range) / stiffness
    ends = np.sort(ends * np.asarray(model.actuator_gear)[:, None], axis=1)
    return np.minimum(ends[:, 0], 0.0), np.maximum(ends[:, 1], 0.0)


@once
def moved_bodies(model: Model) -> NDArray[np.bool_]:
    """Return whether each actuator moves each body, ``(nu, bodies)``: by its joint, a joint that
    follows it, or its tendon."""
    description, fold = model.description, folded(model)
    owned = np.zeros((model.nu, len(model.body_names)), dtype=bool)
    pulled = model.tendon_jacobians(model.default_q) != 0.0
    for b, body in enumerate(description.bodies):
        for joint in body.joints:
            own = model.slice_v(joint.name)
            owned[owners(model)[robot_v(model) == own.start], b] = True
            along = np.any(fold[own][:, model.actuated_v] != 0.0, axis=0) & (model.actuated_v >= 0)
            by_tendon = (
                np.any(pulled[:, own], axis=1)[model.actuated_tendons]
                if model.tendon_count
                else False
            )
            owned[:, b] |= along | (by_tendon & (model.actuated_tendons >= 0))
    return _with_what_is_below(model, owned)


@once
def driven_bodies(model: Model) -> NDArray[np.bool_]:
    """Return whether each joint of :func:`~qdsim.planning.task.followers.driven_joints` moves each
    body, ``(joints, bodies)``."""
    names = driven_joints(model)
    owned = np.zeros((len(names), len(model.body_names)), dtype=bool)
    for b, body in enumerate(model.description.bodies):
        for joint in body.joints:
            owned[:, b] |= [name == joint.name for name in names]
    return _with_what_is_below(model, owned)


def _with_what_is_below(model: Model, owned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Extend movement to descendants: a joint that moves a body also moves the bodies that it
    carries, ``(any, bodies)``."""
    index = {name: i for i, name in enumerate(model.body_names)}
    moved = np.zeros_like(owned)
    for b in range(len(model.body_names)):
        above = b
        while above != 0:
            moved[:, b] |= owned[:, above]
            above = index[model.description.bodies[above].parent or "world"]
    return moved


@once
def robot_bodies(model: Model) -> NDArray[np.bool_]:
    """Return which bodies actuators move, ``(bodies,)``."""
    return np.asarray(np.any(moved_bodies(model), axis=0))


def levers(model: Model, q: Array) -> Array:
    """Return the longest lever of each actuator ``(nu,)`` in a configuration, over the centres of
    all geometries.

    Metres per radian; 1 for slides.
    """
    share = shares(model, q) if sharing(model) else None
    held = np.asarray(model.actuated_v)
    longest = np.zeros(len(held))
    for body, geom in zip(model.geom_body, model.description.geoms):
        if body == 0:
            continue
        name = model.body_names[int(body)]
        J = np.asarray(model.jacobian(q, name, np.asarray(geom.pos)))[:3]
        columns = J[:, held] if share is None else J @ share
        longest = np.maximum(longest, np.linalg.norm(columns, axis=0))
    return longest


def strides(model: Model, q: Array) -> Array:
    """Return the largest displacement ``(nu,)`` of a link per unit of each command in a configuration, m.

    A joint that moves hardly anything except itself has a lever of 5 cm.
    """
    gear = np.abs(np.asarray(model.actuator_gear))
    return np.asarray(np.maximum(levers(model, q), LEAST_LEVER) / gear)


# ---------------------------------------------------------------- distances


def penetration(model: Model, q: Array, bodies: NDArray[np.bool_] | None = None) -> float:
    """Return the deepest penetration of all pairs in a configuration, m; 0 if nothing penetrates.

    Pairs with a pressure field are left out: they press by how far they overlap.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        bodies: ``(bodies,)`` which bodies' pairs count; None: all pairs.
    """
    return deepest(model, q, bodies)[0]


def deepest(model: Model, q: Array, bodies: NDArray[np.bool_] | None = None) -> tuple[float, str]:
    """Return the deepest penetration as in ``penetration``, m, and the names of the two geometries."""
    contacts = model.collide(q, 0.0)
    if bodies is not None:
        contacts = contacts[bodies[contacts["body_a"]] | bodies[contacts["body_b"]]]
    soft = soft_geoms(model)
    if soft.any():
        contacts = contacts[~(soft[contacts["geom_a"]] | soft[contacts["geom_b"]])]
    if not len(contacts) or not contacts["dist"].min() < 0.0:
        return 0.0, ""
    worst = contacts[np.argmin(contacts["dist"])]
    names = (
        f"{model.body_names[worst[f'body_{side}']]!r} ({model.geom_names[worst[f'geom_{side}']]})"
        for side in "ab"
    )
    return -float(worst["dist"]), " and ".join(names)


@once
def soft_geoms(model: Model) -> NDArray[np.bool_]:
    """Return which geometries have a pressure field, ``(geoms,)``."""
    return np.array([geom.soft is not None for geom in model.description.geoms], dtype=bool)


def gap_slopes(model: Model, q: Array, contacts: NDArray[np.void]) -> Array:
    """Return the derivatives of contact distances with respect to the actuated joints, ``(contacts, nu)``."""
    pos, rot = model.body_poses(q)
    moved = robot_bodies(model)
    found = np.zeros((len(contacts), model.nu))
    for k, contact in enumerate(contacts):
        # The normal points from a to b. The contact's position is midway between the two surfaces.
        normal, half = contact["frame"][0], 0.5 * contact["dist"]
        for side, sign in (("body_a", -1.0), ("body_b", 1.0)):
            b = int(contact[side])
            if moved[b]:
                place = contact["pos"] + sign * half * normal
                J = model.jacobian(q, b, rot[b].T @ (place - pos[b]))
                found[k] += sign * (normal @ by_drives(model, J[:3]))
    return found


def near_pairs(model: Model, q: Array, gap: float) -> NDArray[np.void]:
    """Return the contacts of pairs nearer than ``gap`` (m) whose bodies an actuated joint moves
    relative to each other."""
    contacts = model.collide(q, gap)
    near: NDArray[np.void] = contacts[too_near(model, contacts, gap)]
    return near


def too_near(model: Model, contacts: NDArray[np.void], gap: float) -> NDArray[np.intp]:
    """Return the indices of those contacts that :func:`near_pairs` selects."""
    table = moved_bodies(model)
    apart = (table[:, contacts["body_a"]] != table[:, contacts["body_b"]]).any(axis=0)
    return np.flatnonzero(apart & (contacts["dist"] < gap))


# ---------------------------------------------------------------- sizes


@once
def bounding_radii(model: Model) -> Array:
    """Return radii ``(geoms,)`` of bounding spheres centred at the geometries' frames, m."""
    meshes = {mesh.name: mesh for mesh in model.description.meshes}
    return np.array(
        [
            bounding_radius(geom, size, meshes)
            for geom, size in zip(model.description.geoms, model.parameters.geom_size)
        ]
    )


@once
def mass_metric(model: Model) -> Array:
    """Return the diagonal ``(nv,)`` of the mass matrix at the default configuration, kg or kg m^2."""
    return np.array(np.diag(model.mass_matrix(model.default_q)))


def critical_damping(model: Model) -> Array:
    """Return critical damping coefficients ``(nv,)``, ``2 sqrt(k m)``, of actuated coordinates, N
    s/m and Nm s/rad."""
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    held = slopes(model, model.default_q).T ** 2 @ stiffness
    return np.asarray(2.0 * np.sqrt(held * mass_metric(model)))


def per_joint(model: Model, values: Array) -> Array:
    """Reduce values ``(nv,)`` of all coordinates to one per joint: the largest of its coordinates."""
    return np.array([values[model.slice_v(name)].max() for name in model.joint_names])


def per_dof(model: Model, values: Array) -> Array:
    """Spread values ``(joints,)``, one per joint, over the joints' coordinates ``(nv,)``."""
    spread_out = np.zeros(model.nv)
    for name, value in zip(model.joint_names, values):
        spread_out[model.slice_v(name)] = value
    return spread_out


def lies_on_a_plane(model: Model, space: ObjectSpace) -> bool:
    """Return whether gravity acts along no slide of the object, so that a plane outside the model must carry it.

    The object's own weight decides. (Intermediate bodies of chained slides have the same slides and
    less mass.) An object that translates in all directions lies on no plane; without gravity it floats.
    """
    slides = ~space.rotation
    if not slides.any():
        return False
    columns = np.asarray(model.jacobian(model.default_q, space.body, np.zeros(3)))[:3, space.v]
    pull = np.asarray(model.parameters.gravity) @ columns[:, slides]
    in_a_plane = np.linalg.matrix_rank(columns[:, slides], ROUNDING) < 3
    return bool(in_a_plane and np.all(np.abs(pull) <= ROUNDING * GRAVITY))


def object_length(model: Model, q: Array, space: ObjectSpace) -> float:
    """Return the largest displacement of a point of the object per radian of its rotation, m: the
    weight of a radian.

    1 if no shape of the object has a finite size.
    """
    turns = space.v[space.rotation]
    furthest = 0.0
    for geom, body, radius in zip(model.description.geoms, model.geom_body, bounding_radii(model)):
        J = np.asarray(model.jacobian(q, int(body), np.asarray(geom.pos)))
        if np.any(J[3:, turns]) and math.isfinite(radius):
            lever = float(np.linalg.norm(J[:3, turns], axis=0).max())
            furthest = max(furthest, lever + float(radius))
    return furthest if furthest > 0.0 else 1.0


def object_size(model: Model, space: ObjectSpace) -> float:
    """Return the largest radius of gyration of an object, m; 0 if it cannot rotate or cannot translate."""
    mass = mass_metric(model)[space.v]
    slides, turns = mass[~space.rotation], mass[space.rotation]
    if len(slides) == 0 or len(turns) == 0:
        return 0.0
    return float(np.sqrt(turns.max() / slides.max()))


def object_weight(model: Model, space: ObjectSpace, length: float) -> float:
    """Return the weight of an object, N, with standard gravity if the model has none.

    For an object that only rotates, its inertia divided by ``length`` (m) squared is the mass.
    """
    mass = mass_metric(model)[space.v]
    slides = mass[~space.rotation]
    gravity = float(np.linalg.norm(model.parameters.gravity)) or GRAVITY
    return gravity * float(np.max(slides if len(slides) else mass / length**2))
