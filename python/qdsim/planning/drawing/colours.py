"""Colours of geometries in pictures: those of the file, or of the body's role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdsim.description import Body, Geom
from qdsim.planning.drawing.style import GROUND, LIMBS, OBJECT, TERRAIN

__all__ = ["channels", "colour_of", "is_shown", "is_visual", "opaque", "says_colour"]

_UNSAID = (0.5, 0.5, 0.5)
"""MuJoCo's default colour of geometries."""


def is_visual(geom: Geom, paired: set[str]) -> bool:
    """Return whether a geometry is visual only, without contacts.

    Args:
        geom: the geometry.
        paired: names of the geometries in pairs of the file.
    """
    return not (geom.contype or geom.conaffinity or geom.name in paired)


def is_shown(geom: Geom, body: Body, paired: set[str], geometry: str) -> bool:
    """Return whether a geometry is drawn.

    "visual": the visual geometries of bodies that have any, and all geometries of other bodies;
    "collision": geometries with contacts.

    Args:
        geom, body: the geometry and its body.
        paired: names of the geometries in pairs of the file.
        geometry: "visual" or "collision".
    """
    if geometry == "collision":
        return not is_visual(geom, paired)
    return is_visual(geom, paired) or not any(is_visual(g, paired) for g in body.geoms)


def says_colour(geom: Geom) -> bool:
    """Return whether the file specifies a colour of a geometry."""
    return geom.rgba is not None and tuple(geom.rgba[:3]) != _UNSAID


def colour_of(
    geom: Geom, kind: Sequence[str], limb: Mapping[int, int], body: int
) -> tuple[float, float, float, float]:
    """Return red, green, blue and opacity of a geometry, 0 to 1.

    Args:
        geom: the geometry.
        kind: "robot", "object" or "world" of every body.
        limb: number of the finger of each of the robot's bodies.
        body: the geometry's.
    """
    if says_colour(geom):
        red, green, blue, alpha = (min(max(float(c), 0.0), 1.0) for c in geom.rgba)
        return red, green, blue, alpha
    colour = GROUND if geom.hfield is None else TERRAIN
    if kind[body] == "object":
        colour = OBJECT
    elif kind[body] == "robot":
        colour = LIMBS[limb.get(body, 0) % len(LIMBS)]
    return opaque(colour)


def channels(colour: str) -> tuple[float, float, float]:
    """Convert ``#RRGGBB`` to red, green and blue, 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    return red, green, blue


def opaque(colour: str) -> tuple[float, float, float, float]:
    """Convert ``#RRGGBB`` to red, green, blue and opacity 1."""
    return (*channels(colour), 1.0)
