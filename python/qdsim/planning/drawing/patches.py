"""Contact surfaces of soft geometries, as polygons coloured by their pressure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from qdsim.array_type import Array
from qdsim.contact_surfaces import pressure_surface
from qdsim.model import Model
from qdsim.planning.drawing.colours import channels
from qdsim.planning.drawing.style import PRESSURES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_patches", "most_pressure", "pressure_colours"]


def pressure_colours(shares: Array) -> Array:
    """Return red, green and blue ``(n, 3)``, 0 to 1, for pressures as shares of the largest."""
    at = np.linspace(0.0, 1.0, len(PRESSURES))
    ramps = zip(*map(channels, PRESSURES))
    return np.stack([np.interp(shares, at, ramp) for ramp in ramps], axis=1)


def most_pressure(model: Model, configurations: Array) -> float:
    """Return the largest mean pressure of a polygon in configurations ``(n, nq)``, Pa; 0 without contact."""
    if model.soft_pair_count == 0:
        return 0.0
    surfaces = [s for q in configurations for s in pressure_surface(model, q)]
    return max((float(s.polygons["pressure"].max()) for s in surfaces), default=0.0)


def draw_patches(
    ax: Axes, model: Model, q: Array, view: Array, alpha: float = 1.0, most: float = 0.0
) -> None:
    """Draw the pressure patches of a configuration over a picture; nothing for models without soft
    geometries.

    Args:
        ax: Matplotlib's axes.
        model, q: ``(nq,)``.
        view: ``(2, 3)`` directions of the picture's axes.
        alpha: opacity.
        most: pressure of the brightest colour, Pa; 0: the largest pressure here.
    """
    surfaces = pressure_surface(model, q)
    most = most or max((float(s.polygons["pressure"].max()) for s in surfaces), default=0.0)
    for surface in surfaces:
        polygons = surface.polygons
        order = np.argsort(polygons["pressure"])
        pieces = np.split(surface.vertices @ view.T, polygons["vertex_start"][1:])
        colours = pressure_colours(polygons["pressure"] / most)
        collection = import_module("matplotlib.collections").PolyCollection(
            [pieces[i] for i in order],
            facecolors=colours[order],
            edgecolors=colours[order],
            linewidths=STYLE.line,
            alpha=alpha,
        )
        collection.set_zorder(5)
        ax.add_collection(collection)
