"""Contact forces of a step as arrows and friction cones, drawn outside the body on which they act.

If a body stands on many points, such as a mug of boxes or a plate of spheres, their arrows and cones would cover it.
Parallel forces between two bodies are then drawn as one force at their centre of pressure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.planning.drawing.style import STYLE
from qdsim.step import Step

__all__ = ["Forces", "cone_lines", "forces_of"]

_FEW = 4
"""Largest number of parallel contacts of two bodies that are drawn one by one, such as the corners of a box."""
_PARALLEL = 0.995
"""Normals count as parallel if the cosine of their angle exceeds this (6 degrees)."""


@dataclass(frozen=True, eq=False)
class Forces:
    """Forces on the objects.

    Attributes:
        points: ``(n, 3)`` contact points, or centres of pressure, m.
        forces: ``(n, 3)`` on the pressed body, N, world axes.
        inwards: ``(n, 3)`` unit normals into the pressed body.
        friction: ``(n,)`` sliding coefficients.
    """

    points: Array
    forces: Array
    inwards: Array
    friction: Array

    def __len__(self) -> int:
        return len(self.points)


def forces_of(step: Step, objects: Collection[int]) -> Forces:
    """Return the forces of a step on bodies of ``objects``, or on the second body of other contacts.

    If two bodies have many parallel forces, they become one. The forces act at the configuration
    before the step.
    """
    contacts = step.contacts
    frames = np.asarray(contacts["frame"], dtype=np.float64).reshape(-1, 3, 3)
    forces = np.einsum("nij,ni->nj", frames, np.asarray(contacts["force"])[:, :3])
    sizes = np.linalg.norm(forces, axis=1)
    kept = sizes > STYLE.faint * sizes.max(initial=0.0)
    pressed = np.isin(contacts["body_a"], list(objects)) & ~np.isin(
        contacts["body_b"], list(objects)
    )
    sign = np.where(pressed, -1.0, 1.0)[:, None]
    found = Forces(
        np.asarray(contacts["pos"], dtype=np.float64)[kept],
        (sign * forces)[kept],
        (sign * frames[:, 0])[kept],
        np.asarray(contacts["friction"], dtype=np.float64)[kept, 0],
    )
    pairs = np.stack([contacts["body_a"], contacts["body_b"]], axis=1)[kept]
    return _gathered(found, _patches(pairs, found.inwards))


def _patches(pairs: npt.NDArray[np.int_], normals: Array) -> list[list[int]]:
    """Group the contacts of the same two bodies whose normals are parallel."""
    patches: dict[tuple[int, ...], list[list[int]]] = {}
    for i, pair in enumerate(map(tuple, pairs.tolist())):
        for patch in (own := patches.setdefault(pair, [])):
            if normals[patch[0]] @ normals[i] > _PARALLEL:
                patch.append(i)
                break
        else:
            own.append([i])
    return [patch for own in patches.values() for patch in own]


def _gathered(forces: Forces, patches: list[list[int]]) -> Forces:
    """Return one force for each patch of more than ``_FEW`` contacts, and the other forces unchanged."""
    each = np.eye(len(forces))
    rows = [each[p] if len(p) <= _FEW else each[p].sum(axis=0)[None] for p in patches]
    shares = np.concatenate([np.zeros((0, len(forces))), *rows])
    pressing = np.einsum("ni,ni->n", forces.forces, forces.inwards)
    weights = shares * np.maximum(pressing, np.finfo(np.float64).tiny)
    weights /= weights.sum(axis=1, keepdims=True)
    inwards = weights @ forces.inwards
    return Forces(
        weights @ forces.points,
        shares @ forces.forces,
        inwards / np.linalg.norm(inwards, axis=1, keepdims=True),
        weights @ forces.friction,
    )


def arrows(forces: Forces, typical: float, length: float) -> Array:
    """Return the ends ``(n, 2, 3)`` of arrows; the head is at the contact.

    A force of ``typical`` N is ``length`` m long; lengths grow with the square root of the force.
    """
    sizes = np.linalg.norm(forces.forces, axis=1)
    scale = np.array([length * STYLE.force(size, typical) for size in sizes]) / np.maximum(
        sizes, 1e-300
    )
    return np.stack([forces.points - scale[:, None] * forces.forces, forces.points], axis=1)


def cone_lines(forces: Forces, length: float) -> Array:
    """Return the lines ``(k, 2, 3)`` of friction cones, ``length`` m long, which open outwards from each contact."""
    if not len(forces):
        return np.zeros((0, 2, 3))
    normal = -forces.inwards
    helper = np.where(np.abs(normal[:, :1]) < 0.9, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(normal, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(normal, first)
    angle = np.linspace(0.0, 2.0 * np.pi, STYLE.around // 4, endpoint=False)
    around = (
        np.cos(angle)[None, :, None] * first[:, None]
        + np.sin(angle)[None, :, None] * second[:, None]
    )
    rays = normal[:, None] + forces.friction[:, None, None] * around
    rays *= length / np.linalg.norm(rays, axis=2, keepdims=True)
    tips = forces.points[:, None] + rays
    bases = np.broadcast_to(forces.points[:, None], tips.shape)
    sides = np.stack([bases, tips], axis=2)
    rim = np.stack([tips, np.roll(tips, -1, axis=1)], axis=2)
    return np.concatenate([sides, rim], axis=1).reshape(-1, 2, 3)
