"""The unknowns of a search: groups of parameter entries, within bounds."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from qdsim._core import PARAMETER_NAMES
from qdsim.arguments import reals
from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["Unknowns"]


class Unknowns:
    def __init__(
        self,
        model: Model,
        parameters: Mapping[str, npt.ArrayLike],
        bounds: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise TypeError("parameters: expected a mapping from names to numbers of groups")
        self.groups: dict[str, npt.NDArray[np.intp]] = {}
        self.base: dict[str, Array] = {}
        self.names: list[str] = []
        values: list[float] = []
        lower: list[float] = []
        upper: list[float] = []
        self.first: dict[str, int] = {}
        for name, numbers in parameters.items():
            if name not in PARAMETER_NAMES:
                raise ValueError(
                    f"parameters: expected names among {', '.join(PARAMETER_NAMES)}, got {name!r}"
                )
            base = np.array(getattr(model.parameters, name))
            groups = _groups(name, numbers, base.shape)
            count = int(groups.max()) + 1
            self.groups[name], self.base[name], self.first[name] = groups, base, len(values)
            free = name in ("body_com", "joint_springref", "gravity")
            low, high = bounds.get(name, (-math.inf if free else 1e-9, math.inf))
            lower += _spread(f"bounds[{name!r}]", low, count)
            upper += _spread(f"bounds[{name!r}]", high, count)
            for k in range(count):
                self.names.append(f"{name}[{k}]")
                values.append(float(base[groups == k].mean()))
        for name in bounds:
            if name not in parameters:
                raise ValueError(f"bounds: {name!r} is not among the parameters")
        self.lower, self.upper = np.array(lower), np.array(upper)
        if not (self.lower < self.upper).all():
            raise ValueError("bounds: a lower one is not below the upper one")
        self.values = np.clip(values, self.lower, self.upper)

    def arrays(self, values: Array) -> dict[str, Array]:
        """Return the parameters (*shape) with the values of the unknowns inserted."""
        out = {}
        for name, base in self.base.items():
            groups, array = self.groups[name], base.copy()
            array[groups >= 0] = values[self.first[name] + groups[groups >= 0]]
            out[name] = array
        return out

    def with_starts(self, count: int) -> Unknowns:
        """Return these unknowns with ``count`` more without bounds, for the initial configurations of pieces."""
        more, ends = copy.copy(self), np.full(count, math.inf)
        more.lower, more.upper = np.append(self.lower, -ends), np.append(self.upper, ends)
        return more

    def directions(self, more: int) -> dict[str, Array]:
        """Return the derivatives (k + more, 1, *shape) of the parameters by the k unknowns; those
        by ``more`` others are zero."""
        count = len(self.names) + more
        out = {}
        for name, groups in self.groups.items():
            array = np.zeros((count, 1, *groups.shape))
            for k in range(int(groups.max()) + 1):
                array[self.first[name] + k, 0] = groups == k
            out[name] = array
        return out


def _groups(name: str, numbers: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    array = np.asarray(numbers)
    said = f"parameters[{name!r}]"
    if array.dtype.kind not in "iu":
        raise TypeError(f"{said}: expected whole numbers of groups, got dtype {array.dtype}")
    try:
        groups = np.broadcast_to(array, shape).astype(np.intp)
    except ValueError:
        raise ValueError(f"{said}: expected shape {shape}, got {array.shape}") from None
    found = set(np.unique(groups).tolist()) - {-1}
    if not found or found != set(range(len(found))):
        raise ValueError(
            f"{said}: expected groups 0, 1, ... and -1 for what is known, got {sorted(found)}"
        )
    return groups


def _spread(name: str, value: npt.ArrayLike, count: int) -> list[float]:
    array = reals(name, value)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count) or np.isnan(array).any():
        raise ValueError(f"{name}: expected a number or {count} of them, got shape {array.shape}")
    return [float(x) for x in np.broadcast_to(array, (count,))]
