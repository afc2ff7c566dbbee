"""Errors of models: names that no element has, shapes that cannot touch, arrays that do not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.description import Description
from qdsim.description.references import unknown_name
from qdsim.description.shapes import GEOM_TYPES, SUPPORTED_PAIRS


class UnknownNameError(KeyError):
    """No element of the model has this name; the message lists the nearest ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def check_shape_pairs(description: Description, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError if a pair that can collide has shapes whose contacts are not supported."""
    geoms = description.geoms
    kind = np.array([GEOM_TYPES.index(geom.type) for geom in geoms], dtype=np.int64)
    supported = np.array([[(a, b) in SUPPORTED_PAIRS for b in GEOM_TYPES] for a in GEOM_TYPES])
    pairs = arrays["pair_geom"]
    a, b = kind[pairs[:, 0]], kind[pairs[:, 1]]
    bad = [(geoms[first], geoms[second]) for first, second in pairs[~supported[a, b]].tolist()]
    clouds = pairs[(a == b) & (a == GEOM_TYPES.index("cloud"))]
    for first, second in clouds.tolist():
        if geoms[first].size[0] + geoms[second].size[0] == 0.0:
            raise ValueError(
                f"geoms {geoms[first].name!r} and {geoms[second].name!r} can collide, but two "
                "clouds of points without radius never touch; give one of them a radius, or "
                "exclude the pair"
            )
    if not bad:
        return
    one, other = bad[0]
    more = f" (and {len(bad) - 1} more pairs of such shapes)" if len(bad) > 1 else ""
    raise ValueError(
        f"geoms {one.name!r} ({one.type}) and {other.name!r} ({other.type}) can collide, but "
        f"contacts between these shapes are not supported yet{more}; exclude their bodies, set contype and "
        "conaffinity to 0, or use spheres, capsules and boxes instead"
    )


def with_mesh_name(
    error: ValueError, description: Description, arrays: Mapping[str, npt.NDArray[Any]]
) -> ValueError:
    """Replace the index of a mesh in an error of the core by its name."""
    found = re.match(r"mesh\[(\d+)\]: (.*)", str(error), re.DOTALL)
    if not found:
        return error
    geom = int(np.flatnonzero(arrays["geom_mesh"] == int(found.group(1)))[0])
    return ValueError(f"mesh {description.geoms[geom].mesh!r}: its hull: {found.group(2)}")


def index_of(kind: str, name: str | int, names: tuple[str, ...]) -> int:
    """Return the index of the element with this name, or check an index and return it."""
    if isinstance(name, str):
        if name not in names:
            raise UnknownNameError(unknown_name(kind, name, names))
        return names.index(name)
    if isinstance(name, bool) or not isinstance(name, (int, np.integer)):
        raise TypeError(f"{kind} must be a name or an index, got {name!r}")
    if not 0 <= name < len(names):
        raise IndexError(f"{kind} index {name} is not in 0..{len(names) - 1}")
    return int(name)


def finite_rows(name: str, value: npt.ArrayLike, size: int) -> Array:
    """Check finite numbers ``(..., size)``."""
    array = reals(name, value)
    if array.ndim < 1 or array.shape[-1] != size:
        raise ValueError(f"{name} must have shape (..., {size}), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite")
    return array
