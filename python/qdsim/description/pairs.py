"""The pairs of geometries that may touch, with their contact dimension, friction and margin.

These are MuJoCo's rules (formulation 2). Bodies welded together count as one body. Excluded are
pairs on one body, pairs of parent and child (unless the parent is the world), pairs of excluded
bodies, and pairs whose contype and conaffinity do not match. Explicit pairs pass every filter but
the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description.contact_solver import combined
from qdsim.description.elements import Elements
from qdsim.description.shapes import Geom


@dataclass(frozen=True)
class CandidatePairs:
    """Candidate pairs as arrays.

    ``geom`` (n, 2) indices, first < second, sorted; ``dim`` (n); ``friction`` (n, 5): two sliding,
    torsional, two rolling; ``margin`` (n), m; ``compliance`` (n), m/N; ``restitution`` (n), -1 if
    not given. MuJoCo's solver parameters: ``solref`` (n, 2), ``solreffriction`` (n, 2), ``solimp``
    (n, 5).
    """

    geom: npt.NDArray[np.int32]
    dim: npt.NDArray[np.int32]
    friction: Array
    margin: Array
    compliance: Array
    restitution: Array
    solref: Array
    solreffriction: Array
    solimp: Array


def weld_ids(description: Elements) -> npt.NDArray[np.int64]:
    """Return for each body the first body of its rigid group (bodies,); the group of the world is 0."""
    index = {body.name: i for i, body in enumerate(description.bodies)}
    result = np.zeros(len(description.bodies), dtype=np.int64)
    for i, body in enumerate(description.bodies):
        result[i] = i if body.joints else result[index[body.parent]]
    result[0] = 0
    return result


def candidate_pairs(description: Elements) -> CandidatePairs:
    """Return all pairs that can collide, except pairs of two planes."""
    geoms = description.geoms
    explicit = _explicit_pairs(description)
    body_of = np.array(
        [i for i, body in enumerate(description.bodies) for _ in body.geoms], dtype=np.int64
    )
    weld = weld_ids(description)[body_of]
    moving = np.flatnonzero(weld != 0)
    allowed = _filter(description, geoms, body_of, moving)
    row = {geom: k for k, geom in enumerate(moving.tolist())}
    for pair_ends in explicit:
        for one, other in (pair_ends, pair_ends[::-1]):
            if one in row:
                allowed[row[one], other] = weld[one] != weld[other]
    plane = np.array([geom.type == "plane" for geom in geoms], dtype=bool)
    allowed &= ~(plane[moving][:, None] & plane)
    allowed &= (weld == 0) | (np.arange(len(geoms)) > moving[:, None])  # each pair once
    rows, others = np.nonzero(allowed)
    pairs = np.sort(np.column_stack((moving[rows], others)), axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    dim, friction, margin = _combine(description, geoms, pairs)
    soft = np.array([_compliance(geom.stiffness) for geom in geoms])
    compliance = soft[pairs[:, 0]] + soft[pairs[:, 1]] if len(pairs) else np.zeros(0)
    own = np.array([-1.0 if geom.restitution is None else geom.restitution for geom in geoms])
    restitution = own[pairs].max(axis=1, initial=-1.0)
    ref, imp = _combine_solver(geoms, pairs)
    friction_ref = np.zeros((len(pairs), 2))
    for i, (a, b) in enumerate(pairs.tolist() if explicit else ()):
        if (a, b) in explicit:
            pair = description.pairs[explicit[a, b]]
            dim[i], friction[i], margin[i] = pair.condim, pair.friction, pair.margin
            compliance[i] = _compliance(pair.stiffness)
            restitution[i] = restitution[i] if pair.restitution is None else pair.restitution
            ref[i], imp[i] = pair.solref, pair.solimp
            friction_ref[i] = pair.solreffriction
    return CandidatePairs(
        np.ascontiguousarray(pairs, dtype=np.int32),
        dim.astype(np.int32),
        friction,
        margin,
        compliance,
        restitution,
        ref,
        friction_ref,
        imp,
    )


def _compliance(stiffness: float | None) -> float:
    return 0.0 if stiffness is None else 1.0 / stiffness


def _combine_solver(geoms: tuple[Geom, ...], pairs: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Combine solref (pairs, 2) and solimp (pairs, 5) of the geometries of each pair."""
    ref = np.array([geom.solref for geom in geoms], dtype=np.float64).reshape(-1, 2)
    imp = np.array([geom.solimp for geom in geoms], dtype=np.float64).reshape(-1, 5)
    solmix = np.array([geom.solmix for geom in geoms], dtype=np.float64)
    priority = np.array([geom.priority for geom in geoms], dtype=np.int64)
    return (
        combined(solmix, priority, ref, pairs, smaller=ref[:, 0] <= 0.0),
        combined(solmix, priority, imp, pairs, smaller=np.zeros(len(geoms), dtype=bool)),
    )


def _explicit_pairs(description: Elements) -> dict[tuple[int, int], int]:
    index = {geom.name: i for i, geom in enumerate(description.geoms)}
    result = {}
    for i, pair in enumerate(description.pairs):
        a, b = index[pair.geom_a], index[pair.geom_b]
        result[min(a, b), max(a, b)] = i
    return result


def _filter(
    description: Elements,
    geoms: tuple[Geom, ...],
    body_of: npt.NDArray[np.int64],
    moving: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Return whether each moving geometry may collide with each geometry: (moving, geoms).

    Two geometries that do not move never collide.
    """
    masks = [(geom.contype, geom.conaffinity) for geom in geoms]
    kinds, kind = np.unique(
        np.array(masks, dtype=np.int64).reshape(-1, 2), axis=0, return_inverse=True
    )
    kind = kind.reshape(-1)
    match = (kinds[:, 0][:, None] & kinds[:, 1]) != 0
    allowed: npt.NDArray[np.bool_] = (match | match.T)[np.ix_(kind[moving], kind)]

    names = {body.name: i for i, body in enumerate(description.bodies)}
    body_weld = weld_ids(description)
    parents = np.array([names.get(body.parent, 0) for body in description.bodies], dtype=np.int64)
    weld = body_weld[body_of]
    own = weld[moving][:, None]
    allowed &= own != weld
    if description.parent_filter:
        weld_parent = body_weld[parents[weld]]
        related = (own == weld_parent) | (weld_parent[moving][:, None] == weld)
        allowed &= ~(related & (weld != 0))
    if description.excludes:
        excluded = np.zeros((len(names), len(names)), dtype=bool)
        for exclude in description.excludes:
            a, b = names[exclude.body_a], names[exclude.body_b]
            excluded[a, b] = excluded[b, a] = True
        allowed &= ~excluded[np.ix_(body_of[moving], body_of)]
    return allowed


def _combine(
    description: Elements, geoms: tuple[Geom, ...], pairs: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Array, Array]:
    condim = np.array([geom.condim for geom in geoms], dtype=np.int64)
    priority = np.array([geom.priority for geom in geoms], dtype=np.int64)
    margin = np.array([geom.margin for geom in geoms], dtype=np.float64)
    friction = np.array([geom.friction for geom in geoms], dtype=np.float64).reshape(-1, 3)
    a, b = pairs[:, 0], pairs[:, 1]
    dim = np.maximum(condim[a], condim[b])
    if description.friction_combination == "harmonic":
        total = friction[a] + friction[b]
        product = 2.0 * friction[a] * friction[b]
        combined = np.divide(product, total, out=np.zeros_like(total), where=total > 0.0)
    else:
        combined = np.maximum(friction[a], friction[b])
    for winner, loser in ((a, b), (b, a)):
        wins = priority[winner] > priority[loser]
        dim = np.where(wins, condim[winner], dim)
        combined = np.where(wins[:, None], friction[winner], combined)
    return dim, combined[:, [0, 0, 1, 2, 2]], margin[a] + margin[b]
