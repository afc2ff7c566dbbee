"""Style of pictures: colours, and elements drawn faintly or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

INK, PAPER, QUIET = "#22303C", "#FFFFFF", "#8A97A3"
OBJECT, OBJECT_HALF, OBJECT_DARK = "#F4C96B", "#EDB644", "#B98520"
LIMBS = ("#2F6F9F", "#2E9C86", "#7C5CA8", "#C76B52")
FLOOR, GROUND, GRID, FRAME = "#EEF1F4", "#DDE2E6", "#E8ECEF", "#D5DBE0"
TERRAIN = "#B9C3B1"
"""Colour of height fields; it is darker, so that the shading of slopes is visible."""
FORCE, REGRASP, GOAL = "#D62839", "#7B2D8E", "#3C8D40"
PRESSURES = ("#3B0F70", "#8C2981", "#DE4968", "#FE9F6D", "#FCFDBF")
"""Colours from zero pressure to the largest: violet, red, yellow."""


@dataclass(frozen=True)
class _Style:
    """Settings shared by all scenes.

    Attributes:
        ghost: opacity of transparent things: a faint robot, a body of glass, a soft body.
        wall: opacity of walls and tables, which must not hide the robot.
        corner: round shapes with at most this radius stand for corners and are not drawn, m.
        elevation: default elevation of the view, degrees.
        line: line width, points; the most important lines are twice as wide.
        arrow: length of a typical force, relative to the size of the scene.
        faint: forces below this share of the largest force are not drawn.
        apart: relative difference in size between two things that are drawn at the same place.
        rod: radius of the rods of a robot without shapes, relative to the longest one.
        shade: brightness of the darker shade of things with two shades, which show rotations.
        around: number of corners of a circle, and of points of a curve.
        panel: width of a picture or panel of its own size, inches.
    """

    ghost: float = 0.3
    wall: float = 0.35
    corner: float = 1e-4
    elevation: float = 28.0
    line: float = 1.0
    arrow: float = 0.2
    faint: float = 0.02
    apart: float = 0.03
    rod: float = 0.04
    shade: float = 0.75
    around: int = 48
    panel: float = 4.8

    def force(self, size: float, typical: float) -> float:
        """Return an arrow's length relative to that of a typical force: the root of the ratio of
        the forces, so that small forces are visible."""
        return min(max(math.sqrt(size / typical), 0.4), 1.5)


STYLE = _Style()
