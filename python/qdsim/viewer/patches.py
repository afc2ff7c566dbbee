"""Contact surfaces of soft geometries, as meshes coloured by their pressure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.contact_surfaces import ContactSurface
from qdsim.planning.drawing.patches import pressure_colours

__all__ = ["BANDS", "band_colours", "bands", "highest_pressure"]

BANDS = 16
"""Number of ranges of pressure; each range is a mesh of one colour."""


def highest_pressure(surfaces: Sequence[ContactSurface]) -> float:
    """Return the largest pressure at any corner, Pa; 0 without contact."""
    return max((float(surface.vertex_pressure.max()) for surface in surfaces), default=0.0)


def lifted(surface: ContactSurface, soft: set[str], length: float) -> Array:
    """Return the vertices of a patch ``(n, 3)``, moved slightly off a rigid geometry's surface towards
    the soft geometry."""
    towards = float(surface.geom_b in soft) - float(surface.geom_a in soft)
    normals = np.repeat(surface.polygons["normal"], surface.polygons["vertex_count"], axis=0)
    return np.asarray(surface.vertices + length * towards * normals)


def bands(
    surfaces: Sequence[ContactSurface], soft: set[str], most: float, lift: float
) -> list[tuple[Array, npt.NDArray[np.int32]]]:
    """Return vertices ``(n, 3)`` and triangles ``(m, 3)`` for each of :data:`BANDS` ranges of pressure,
    from 0 to ``most`` Pa.

    Args:
        surfaces: Contact surfaces of one configuration.
        soft: Names of the soft geometries.
        most: Upper end of the highest range, Pa.
        lift: Distance of patches on rigid geometries from their surface, m.
    """
    points, pressures = [np.zeros((0, 3, 3))], [np.zeros(0)]
    for surface in surfaces:
        triangles = surface.triangles
        points.append(lifted(surface, soft, lift)[triangles])
        pressures.append(surface.vertex_pressure[triangles].mean(axis=1))
    corners, share = np.concatenate(points), np.concatenate(pressures) / max(most, 1e-300)
    band = np.minimum((BANDS * share).astype(int), BANDS - 1)
    result = []
    for k in range(BANDS):
        some = corners[band == k].reshape(-1, 3)
        result.append((some, np.arange(len(some), dtype=np.int32).reshape(-1, 3)))
    return result


def band_colours() -> list[tuple[int, int, int]]:
    """Return the colours of the ranges of pressure, 0 to 255."""
    middles = (np.arange(BANDS) + 0.5) / BANDS
    rows = np.round(255.0 * pressure_colours(middles)).astype(int)
    return [(int(red), int(green), int(blue)) for red, green, blue in rows]
