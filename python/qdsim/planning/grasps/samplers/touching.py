"""Bodies that touch an object, and additional contacts for a grasp."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.batches.queries import pair_distances
from qdsim.model import DEFAULT_MARGIN, Model
from qdsim.planning.task.drives import check_joints_lead
from qdsim.planning.task.followers import with_followers
from qdsim.planning.task.least_squares import STEPS, least_squares_in_box, room
from qdsim.planning.task.robot import TOUCHING, gap_slopes, joint_limits, near_pairs, robot_bodies

__all__ = [
    "CHOICES",
    "RARELY",
    "TRIES",
    "add_contact",
    "bodies_touching",
    "bring_to_touch",
    "contacts_between",
    "meeting_geoms",
    "sides",
    "tip_bodies",
    "touched_bodies",
]

CHOICES = 4
"""Number of candidates for one choice: of nearest pairs for a new contact, because more distant pairs are rarely
reached, of poses for a node, and, in rounds of draws, of grasps that have to carry."""
TRIES = 3
"""Number of attempts for random operations that may fail, such as drawing a grasp or releasing an object."""
RARELY = 0.1
"""Probability of a choice that is usually worse, but sometimes the only possible one."""


def add_contact(
    model: Model,
    q: Array,
    object: str,
    rng: np.random.Generator,
    *,
    gap: float = 1e-4,
    near: float = TOUCHING,
    within: float = DEFAULT_MARGIN,
) -> Array | None:
    """Find a configuration ``(nq,)`` in which one more pair of shapes of robot and object touches,
    or None.

    A grasp by two points without torsional friction cannot hold an object whose centre of mass does
    not lie on the line between them; a third contact can. The function draws one of the nearest
    pairs that do not touch yet. Gauss-Newton steps bring its distance and those of the touching
    pairs to ``gap``, by the smallest motions of the joints within their limits.

    Args:
        model: the model.
        q: ``(nq,)`` a grasp without penetration; coordinates without actuators stay.
        object: name of the object's body; bodies that it carries also count.
        rng: draws the pair.
        gap: distance at the end, to within half of it, m, > 0.
        near: pairs within this distance touch already, m.
        within: pairs farther apart are not drawn, m.

    Raises:
        ValueError: for an unknown object, and for joints that share a tendon.
    """
    contacts = _between(model, q, object, within)
    touching = np.unique(contacts["pair"][contacts["dist"] < near])
    others: list[int] = []
    for pair in contacts["pair"][~np.isin(contacts["pair"], touching)].tolist():
        if pair not in others:
            others.append(pair)
        if len(others) == CHOICES:
            break
    if not others:
        return None
    wanted = np.append(touching, others[int(rng.integers(len(others)))])
    return bring_to_touch(model, q, object, wanted, gap=gap, near=near, within=within)


def bring_to_touch(
    model: Model,
    q: Array,
    object: str,
    pairs: NDArray[np.integer],
    *,
    gap: float = 1e-4,
    near: float = TOUCHING,
    within: float = DEFAULT_MARGIN,
) -> Array | None:
    """Find a configuration ``(nq,)`` near ``q`` in which given pairs of shapes of robot and object
    touch.

    Takes Gauss-Newton steps of the joints within their limits. None if there is no such
    configuration, or if something else penetrates.

    Args:
        model, q, object: as in ``add_contact``.
        pairs: rows of ``model.pair_geom``.
        gap, near: as in ``add_contact``, m.
        within: pairs farther apart than this are not brought together, m.
    """
    check_joints_lead(model, "touching()")
    rows = model.actuated_q
    lower, upper = joint_limits(model)
    here = np.array(q)
    margin = within
    for _ in range(STEPS):
        contacts = _between(model, here, object, margin)
        chosen = [
            int(np.flatnonzero(contacts["pair"] == p)[0]) for p in pairs if p in contacts["pair"]
        ]
        if len(chosen) < len(pairs):
            return None
        left = gap - contacts["dist"][chosen]
        if np.all(np.abs(left) <= 0.5 * gap):
            return here if len(near_pairs(model, here, 0.0)) == 0 else None
        slope = gap_slopes(model, here, contacts[chosen])
        here[rows] += least_squares_in_box(slope, left, *room(here[rows], lower, upper))
        with_followers(model, here)
        margin = max(near, float(np.abs(left).max()))
    return None


def _between(model: Model, q: Array, object: str, within: float) -> NDArray[np.void]:
    """Return the contacts between robot and object up to a distance, the deepest first."""
    contacts = contacts_between(model, q, object, within)
    found: NDArray[np.void] = contacts[np.argsort(contacts["dist"], kind="stable")]
    return found


def contacts_between(model: Model, q: Array, object: str, within: float) -> NDArray[np.void]:
    """Return the contacts between robot and object up to a distance.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        object: name of the object's body; bodies attached to it belong to the object.
        within: m.
    """
    own, robot = sides(model, object)
    contacts = model.collide(q, within)
    a, b = contacts["body_a"], contacts["body_b"]
    found: NDArray[np.void] = contacts[(own[a] & robot[b]) | (own[b] & robot[a])]
    return found


def bodies_touching(model: Model, q: Array, object: str, near: float) -> NDArray[np.intp]:
    """Return the indices of bodies that actuators move and that are nearer than ``near`` (m) to an
    object, or to a body that it carries."""
    touched = touched_bodies(model, np.asarray(q)[None], object, near)[0]
    return np.flatnonzero(touched)


def touched_bodies(model: Model, q: Array, object: str, near: float) -> NDArray[np.bool_]:
    """Return which bodies touch the object as in ``bodies_touching``, (n, bodies), in configurations (n, nq)."""
    own, robot = sides(model, object)
    body = np.asarray(model.geom_body)[np.asarray(model.pair_geom).reshape(-1, 2)]
    hit = pair_distances(model, q, near, threads=1) < near
    found = np.zeros((len(q), len(model.body_names)), dtype=bool)
    every = np.arange(found.shape[1])
    for a, b in (body.T, body.T[::-1]):
        asked = robot[a] & own[b]
        found |= hit[:, asked] @ (a[asked, None] == every)
    return found


_SIDES: weakref.WeakKeyDictionary[Model, dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]]
_SIDES = weakref.WeakKeyDictionary()


def sides(model: Model, object: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which bodies belong to the object, ``(bodies,)``, and which bodies the robot moves.

    Bodies that carry the object and bodies that it carries belong to it.
    """
    known = _SIDES.setdefault(model, {})
    if object not in known:
        index = {name: i for i, name in enumerate(model.body_names)}
        if object not in index:
            raise ValueError(f"object: the model has no body {object!r}")
        chains: list[set[int]] = [set()]
        for body in model.description.bodies[1:]:
            chains.append({len(chains), *chains[index[body.parent or "world"]]})
        target = index[object]
        own = np.array([target in chain or b in chains[target] for b, chain in enumerate(chains)])
        known[object] = own, robot_bodies(model)
    return known[object]


def meeting_geoms(model: Model, object: str) -> NDArray[np.bool_]:
    """Return which shapes of the robot can touch an object, ``(geoms,)``."""
    own, robot = sides(model, object)
    pairs = model.geom_body[model.pair_geom]
    meets = np.zeros(len(model.geom_body), dtype=bool)
    for side in (0, 1):
        hit = robot[pairs[:, side]] & own[pairs[:, 1 - side]]
        meets[model.pair_geom[hit, side]] = True
    return meets


def tip_bodies(model: Model, object: str) -> list[int]:
    """Return the indices of the robot's last links: those that can touch an object and carry no other such link."""
    able = np.unique(model.geom_body[meeting_geoms(model, object)])
    index = {name: i for i, name in enumerate(model.body_names)}
    inner = set()
    for b in able.tolist():
        above = index[model.description.bodies[b].parent or "world"]
        while above != 0:
            inner.add(above)
            above = index[model.description.bodies[above].parent or "world"]
    return [b for b in able.tolist() if b not in inner]
