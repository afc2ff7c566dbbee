"""Links of robots whose shapes are spheres along the links, as in many collision models of hands
and arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qdsim.array_type import Array
from qdsim.description import Body
from qdsim.model import Model
from qdsim.planning.drawing.colours import is_visual
from qdsim.planning.drawing.style import STYLE

__all__ = ["Link", "links_of"]


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
    """Return bars along the robot's bodies that have only spheres, from joint to joint and no wider
    than the spheres.

    Other bodies are drawn as in their file. A robot without any shape gets thin rods from joint to
    joint, because it would otherwise be invisible.

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
    links: list[Link] = []
    for b, body in enumerate(bodies):
        radii = [float(next(sizes)[0]) for _ in body.geoms]
        if kind[b] == "robot" and _is_chain(body, radii, paired):
            begins = kind[index[body.parent or "world"]] == "robot" and not _slides(body)
            links += _bars(b, _chain(body, radii, begins), children.get(b, []))
    return links


def _is_chain(body: Body, radii: Sequence[float], paired: set[str]) -> bool:
    """Return whether a body has colliding spheres and no other geometries."""
    spheres = all(geom.type == "sphere" and not is_visual(geom, paired) for geom in body.geoms)
    return spheres and min(radii, default=0.0) > STYLE.corner


def _bars(
    body: int, chain: Sequence[tuple[Array, float]], children: Sequence[Array]
) -> Iterator[Link]:
    """Make bars from sphere to sphere, and from the last sphere to the frames of the body's children."""
    ends = [(chain[-1], (pos, chain[-1][1])) for pos in children]
    for (p, r), (s, t) in [*pairwise(chain), *ends]:
        if np.linalg.norm(s - p) > STYLE.corner:
            yield Link(body, p, s, (1.0 - STYLE.apart) * min(r, t))


def _rods(children: Mapping[int, Sequence[Array]]) -> list[Link]:
    """Make rods from each body's frame to those of its children."""
    lengths = [float(np.linalg.norm(pos)) for ends in children.values() for pos in ends]
    radius = STYLE.rod * max(lengths, default=0.0)
    return [
        Link(b, np.zeros(3), pos, radius)
        for b, ends in children.items()
        for pos in ends
        if np.linalg.norm(pos) > STYLE.corner
    ]


def _chain(body: Body, radii: list[float], begins: bool) -> list[tuple[Array, float]]:
    """Return centres and radii of spheres, ordered from the joint outwards.

    If ``begins`` is true, the chain starts at the joint.
    """
    left = [(np.asarray(geom.pos, dtype=np.float64), r) for geom, r in zip(body.geoms, radii)]
    here = np.zeros(3)
    chain: list[tuple[Array, float]] = []
    while left:
        nearest = min(range(len(left)), key=lambda i: float(np.linalg.norm(left[i][0] - here)))
        chain.append(left.pop(nearest))
        here = chain[-1][0]
    return [(np.zeros(3), chain[0][1]), *chain] if begins else chain


def _slides(body: Body) -> bool:
    """Return whether all joints of a body are slides, so that no rigid link connects it to its parent."""
    return bool(body.joints) and all(joint.type == "slide" for joint in body.joints)
