"""Links of robots whose shapes are spheres along them, as collision models of hands and arms often are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qdsim.array_type import Array
from qdsim.description import Body
from qdsim.model import Model
from qdsim.planning.drawing.colours import is_visual
from qdsim.planning.drawing.style import STYLE

__all__ = ["Link", "links_of"]

_ROD = 0.04
"""Radius of rods beside the longest of them."""

_THINNER = 0.97
"""Width of a link beside the spheres that it joins."""


@dataclass(frozen=True, eq=False)
class Link:
    """A rounded bar of a body.

    Attributes:
        body: index of the body.
        start, end: ``(3,)`` m, in the body's frame.
        radius: m.
    """

    body: int
    start: Array
    end: Array
    radius: float


def links_of(model: Model, kind: Sequence[str]) -> list[Link]:
    """Bars along the robot's bodies that have spheres and nothing else, from joint to joint and no wider than these;
    other bodies are drawn as their file has them. A robot without any shape gets thin rods from joint to joint: else
    there would be nothing to see.

    Args:
        model: the model.
        kind: "robot", "object" or "world" of every body.
    """
    bodies = model.description.bodies
    paired = {n for pair in model.description.pairs for n in (pair.geom_a, pair.geom_b)}
    sizes = iter(model.parameters.geom_size)
    index = {name: b for b, name in enumerate(model.body_names)}
    children: dict[int, list[Array]] = {}
    for b, body in enumerate(bodies[1:], 1):
        if kind[b] == "robot" and not _slides(body):
            children.setdefault(index[body.parent or "world"], []).append(np.asarray(body.pos))
    if not any(body.geoms for b, body in enumerate(bodies) if kind[b] == "robot"):
        return _rods(children)
    links = []
    for b, body in enumerate(bodies):
        radii = [float(next(sizes)[0]) for _ in body.geoms]
        if kind[b] != "robot" or not radii or min(radii) <= STYLE.corner:
            continue
        if any(geom.type != "sphere" or is_visual(geom, paired) for geom in body.geoms):
            continue
        centres = [np.asarray(geom.pos, dtype=np.float64) for geom in body.geoms]
        begins = kind[index[body.parent or "world"]] == "robot" and not _slides(body)
        chain = _chain(centres, radii, begins)
        last, width = chain[-1]
        ends = [(pos, width) for pos in children.get(b, [])]
        for (p, r), (s, t) in [*pairwise(chain), *(((last, width), end) for end in ends)]:
            if np.linalg.norm(s - p) > STYLE.corner:
                links.append(Link(b, p, s, _THINNER * min(r, t)))
    return links


def _rods(children: Mapping[int, Sequence[Array]]) -> list[Link]:
    """From each body's frame to those of the bodies that it carries."""
    lengths = [float(np.linalg.norm(pos)) for ends in children.values() for pos in ends]
    radius = _ROD * max(lengths, default=0.0)
    return [
        Link(b, np.zeros(3), pos, radius)
        for b, ends in children.items()
        for pos in ends
        if np.linalg.norm(pos) > STYLE.corner
    ]


def _chain(centres: list[Array], radii: list[float], begins: bool) -> list[tuple[Array, float]]:
    """Centres and radii in the order in which one comes by them from the joint; with the joint where a link begins
    there."""
    left = list(zip(centres, radii))
    here = np.zeros(3)
    chain: list[tuple[Array, float]] = []
    while left:
        nearest = min(range(len(left)), key=lambda i: float(np.linalg.norm(left[i][0] - here)))
        chain.append(left.pop(nearest))
        here = chain[-1][0]
    return [(np.zeros(3), chain[0][1]), *chain] if begins else chain


def _slides(body: Body) -> bool:
    """Whether a body moves on slides only: nothing rigid joins it to its parent."""
    return bool(body.joints) and all(joint.type == "slide" for joint in body.joints)
