"""What planners ask of a model: of its robot what it moves and how far, of its object how heavy and large it is.

What depends on the model alone is computed once for each.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.description import Joint
from qdsim.description.radii import bounding_radius
from qdsim.model import Model
from qdsim.planning.task.followers import folded
from qdsim.planning.task.space import ObjectSpace

__all__ = [
    "GRAVITY",
    "actuated_joints",
    "bounding_radii",
    "check_springs",
    "command_range",
    "driven_bodies",
    "force_reach",
    "joint_limits",
    "levers",
    "mass_metric",
    "moved_bodies",
    "near_pairs",
    "object_length",
    "object_size",
    "object_weight",
    "once",
    "penetration",
    "robot_bodies",
    "room",
    "soft_geoms",
    "too_near",
]

GRAVITY = 9.81
"""m/s2, where the model has none: of objects on a plane that is not part of it."""

T = TypeVar("T")


def once(compute: Callable[[Model], T]) -> Callable[[Model], T]:
    """A function of a model that is computed once for each, for as long as the model lives; no array is writable."""
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


# ---------------------------------------------------------------- the robot


_BY_JOINTS = "; planning.by_joints(model) puts it on the joint that the tendon's joints follow"


def check_springs(model: Model) -> None:
    """Raises ValueError unless every actuator is a spring of a joint of its own that its command moves."""
    p, seen = model.parameters, set()
    for i, name in enumerate(model.actuator_names):
        joint = int(model.actuated_v[i])
        what = None
        if joint < 0:
            what = "pulls along a tendon"
        elif p.actuator_stiffness[i] == 0.0 or not np.isfinite(model.actuator_gear[i]):
            what = "is no position actuator"
        elif joint in seen:
            what = "shares its joint with another one"
        if what is not None:
            raise ValueError(
                f"model: planning moves joints by one position actuator each, but actuator {name!r} {what}"
                + (_BY_JOINTS if joint < 0 else "; load(..., stiffness=...) makes it one")
            )
        seen.add(joint)


@once
def actuated_joints(model: Model) -> tuple[Joint, ...]:
    """The joints of the actuators, in their order."""
    joints = {model.slice_v(joint.name).start: joint for joint in model.description.joints}
    return tuple(joints[int(v)] for v in model.actuated_v)


@once
def joint_limits(model: Model) -> tuple[Array, Array]:
    """Limits ``(nu,)`` of the actuated joints, rad or m, infinite where there are none."""
    rows = [model.joint_names.index(joint.name) for joint in actuated_joints(model)]
    limits = np.asarray(model.joint_range)[rows]
    return limits[:, 0], limits[:, 1]


@once
def command_range(model: Model) -> tuple[Array, Array]:
    """Bounds ``(nu,)`` on the commands that respect joint limits and those of the commands."""
    ends = np.stack(joint_limits(model), axis=1) * np.asarray(model.actuator_gear)[:, None]
    return (
        np.maximum(ends.min(axis=1), model.u_lower),
        np.minimum(ends.max(axis=1), model.u_upper),
    )


@once
def force_reach(model: Model) -> tuple[Array, Array]:
    """How far ``(nu,)`` a command may be below and above where its joint is, for what the actuator can pull with:
    ``(<= 0, >= 0)``, infinite where there is no limit."""
    stiffness = np.asarray(model.parameters.actuator_stiffness)[:, None]
    ends = np.asarray(model.parameters.actuator_force_range) / stiffness
    ends = np.sort(ends * np.asarray(model.actuator_gear)[:, None], axis=1)
    return np.minimum(ends[:, 0], 0.0), np.maximum(ends[:, 1], 0.0)


def room(x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """How far ``x`` may move within bounds, back where it is beyond them not at all: ``(<= 0, >= 0)``."""
    return np.minimum(lower - x, 0.0), np.maximum(upper - x, 0.0)


@once
def moved_bodies(model: Model) -> NDArray[np.bool_]:
    """``(nu, bodies)`` whether an actuator's joint, one that follows it, or one that its tendon pulls at, moves a
    body: the body is its own or below it."""
    description, fold = model.description, folded(model)
    owned = np.zeros((model.nu, len(model.body_names)), dtype=bool)
    pulled = model.tendon_jacobians(model.default_q) != 0.0
    for b, body in enumerate(description.bodies):
        for joint in body.joints:
            own = model.slice_v(joint.name)
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
    """``(joints, bodies)`` whether a joint moves a body, of the actuated joints in the order of their actuators, then
    of those that follow them."""
    fold = folded(model)
    followers = np.flatnonzero(~np.any(fold, axis=0))
    dofs = np.concatenate((model.actuated_v, followers)).tolist()
    owned = np.zeros((len(dofs), len(model.body_names)), dtype=bool)
    for b, body in enumerate(model.description.bodies):
        for joint in body.joints:
            own = model.slice_v(joint.name)
            owned[:, b] |= [own.start <= dof < own.stop for dof in dofs]
    return _with_what_is_below(model, owned)


def _with_what_is_below(model: Model, owned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``(any, bodies)``: what moves a body moves those below it."""
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
    """``(bodies,)`` which bodies actuators move."""
    return np.asarray(np.any(moved_bodies(model), axis=0))


def levers(model: Model, q: Array) -> Array:
    """The longest lever of each actuator's joint ``(nu,)`` in a configuration, over the middles of all geometries:
    metres a radian, 1 for slides."""
    held = np.asarray(model.actuated_v)
    longest = np.zeros(len(held))
    for body, geom in zip(model.geom_body, model.description.geoms):
        if body == 0:
            continue
        name = model.body_names[int(body)]
        columns = np.asarray(model.jacobian(q, name, np.asarray(geom.pos)))[:3][:, held]
        longest = np.maximum(longest, np.linalg.norm(columns, axis=0))
    return longest


# ---------------------------------------------------------------- distances


def penetration(model: Model, q: Array) -> float:
    """Deepest penetration among all pairs of a configuration, m; 0 if nothing penetrates.

    Pairs with a pressure field are left out: they press by how far they overlap.
    """
    contacts = model.collide(q, 0.0)
    soft = soft_geoms(model)
    if soft.any():
        contacts = contacts[~(soft[contacts["geom_a"]] | soft[contacts["geom_b"]])]
    return max(0.0, -float(contacts["dist"].min())) if len(contacts) else 0.0


@once
def soft_geoms(model: Model) -> NDArray[np.bool_]:
    """``(geoms,)`` which geometries press by a pressure field."""
    return np.array([geom.soft is not None for geom in model.description.geoms], dtype=bool)


def near_pairs(
    model: Model, q: Array, gap: float, moves: NDArray[np.bool_] | None = None
) -> NDArray[np.void]:
    """Contacts of pairs nearer than ``gap`` that some joint moves against each other.

    Args:
        model, q: where.
        gap: m.
        moves: ``(joints, bodies)`` which joint moves which body; None takes all actuated joints.
    """
    contacts = model.collide(q, gap)
    near: NDArray[np.void] = contacts[too_near(model, contacts, gap, moves)]
    return near


def too_near(
    model: Model, contacts: NDArray[np.void], gap: float, moves: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Indices of the contacts that :func:`near_pairs` has."""
    table = moved_bodies(model) if moves is None else moves
    apart = (table[:, contacts["body_a"]] != table[:, contacts["body_b"]]).any(axis=0)
    return np.flatnonzero(apart & (contacts["dist"] < gap))


# ---------------------------------------------------------------- sizes


@once
def bounding_radii(model: Model) -> Array:
    """``(geoms,)`` radii of spheres about the geometries' frames that contain them, m."""
    meshes = {mesh.name: mesh for mesh in model.description.meshes}
    return np.array(
        [
            bounding_radius(geom, size, meshes)
            for geom, size in zip(model.description.geoms, model.parameters.geom_size)
        ]
    )


@once
def mass_metric(model: Model) -> Array:
    """``(nv,)`` diagonal of the mass matrix in the default configuration, kg or kg m2."""
    return np.array(np.diag(model.mass_matrix(model.default_q)))


def object_length(model: Model, q: Array, space: ObjectSpace) -> float:
    """How far a point of the object moves per radian of its rotation at most, m: what a radian counts for.

    1 where nothing of it has a shape of finite size.
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
    """m, largest radius of gyration of an object; 0 for one that does not turn or does not shift."""
    mass = mass_metric(model)[space.v]
    slides, turns = mass[~space.rotation], mass[space.rotation]
    if len(slides) == 0 or len(turns) == 0:
        return 0.0
    return float(np.sqrt(turns.max() / slides.max()))


def object_weight(model: Model, space: ObjectSpace, length: float) -> float:
    """N, of an object; of one that only turns, ``length`` (m) makes its inertia a mass; by standard gravity where
    the model has none."""
    mass = mass_metric(model)[space.v]
    slides = mass[~space.rotation]
    gravity = float(np.linalg.norm(model.parameters.gravity)) or GRAVITY
    return gravity * float(np.max(slides if len(slides) else mass / length**2))
