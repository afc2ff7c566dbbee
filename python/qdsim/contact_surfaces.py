"""Contact surfaces of a model's soft geometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import flag, instance
from qdsim.model import Model
from qdsim.pressure.patch import Patch, patch_parts

__all__ = ["ContactSurface", "pressure_surface"]


@dataclass(frozen=True, eq=False, repr=False)
class ContactSurface(Patch):
    """A patch (with the attributes of ``qdsim.pressure.Patch``) between two geometries of a model,
    in world axes.

    Attributes:
        geom_a, geom_b: names; ``force`` and ``moment`` act on the second one.
        pair: index of the candidate pair.
    """

    geom_a: str
    geom_b: str
    pair: int

    def __repr__(self) -> str:
        return f"ContactSurface({self.geom_a!r}, {self.geom_b!r}, {super().__repr__()})"


def pressure_surface(
    model: Model, q: npt.ArrayLike, *, polygons: bool = True
) -> tuple[ContactSurface, ...]:
    """Find the surfaces on which a model's soft geometries press at a configuration (Elandt et al.
    2019).

    Args:
        model: a model with soft geometries (``load(..., soft=)``); other models have no such
            surfaces.
        q: ``(nq,)`` configuration, m and rad.
        polygons: whether to keep the polygons, each with area, pressure, centre of pressure, normal
            and gradients, for pictures.

    Returns:
        One surface for each pair in contact.

    Raises:
        TypeError, ValueError: for an invalid model or configuration.
    """
    instance("model", model, Model)
    kept = flag("polygons", polygons)
    found = (_core._pressure_surface(model, q, i, kept) for i in range(model.soft_pair_count))
    return tuple(_surface(model, *one) for one in found if one[1][6] > 0)


def _surface(model: Model, pair: int, found: tuple[Any, ...]) -> ContactSurface:
    geom_a, geom_b = (model.geom_names[geom] for geom in model.pair_geom[pair])
    force, moment, centre, area, total, tangent, count, polygons, vertices = patch_parts(found)
    return ContactSurface(
        force,
        moment,
        centre,
        area,
        total,
        tangent,
        count,
        polygons,
        vertices,
        geom_a,
        geom_b,
        pair,
    )
