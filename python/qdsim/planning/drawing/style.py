"""Style of pictures: colours, and elements drawn faintly or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

INK, PAPER, QUIET = "#22303C", "#FFFFFF", "#8A97A3"
OBJECT, OBJECT_HALF, OBJECT_DARK = "#F4C96B", "#EDB644", "#B98520"
LIMBS = ("#2F6F9F", "#2E9C86", "#7C5CA8", "#C76B52")
FLOOR, GROUND, GRID, FRAME = "#EEF1F4", "#DDE2E6", "#E8ECEF", "#D5DBE0"
TERRAIN = "#B9C3B1"
"""Of height fields, whose slopes shades must show."""
FORCE, REGRASP, GOAL = "#D62839", "#7B2D8E", "#3C8D40"
PRESSURES = ("#3B0F70", "#8C2981", "#DE4968", "#FE9F6D", "#FCFDBF")
"""From no pressure to the largest: violet, red, yellow."""


@dataclass(frozen=True)
class _Style:
    """What scenes share.

    Attributes:
        ghost: opacity of what is looked through: a faint robot, a body that is glass or soft.
        wall: opacity of walls and tables, which must not hide the robot.
        corner: m; round shapes up to this radius stand for corners and are not drawn.
        elevation: degrees, from where scenes are seen where nothing else decides.
        line: points of a line; what matters most is twice as wide.
        arrow: length of a typical force beside the size of what is seen.
        faint: share of the largest force below which none is drawn.
        apart: share of its size by which a thing is larger or smaller than another that is drawn in its place.
    """

    ghost: float = 0.3
    wall: float = 0.35
    corner: float = 1e-4
    elevation: float = 28.0
    line: float = 1.0
    arrow: float = 0.2
    faint: float = 0.02
    apart: float = 0.03

    def force(self, size: float, typical: float) -> float:
        """Length of an arrow beside that of a typical force: the root of their ratio, so that small ones are seen."""
        return min(max(math.sqrt(size / typical), 0.4), 1.5)


STYLE = _Style()
