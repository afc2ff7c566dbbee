"""Model parameters that are drawn in every episode: factors on their values, or ranges of values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from qdsim._core import PARAMETER_NAMES
from qdsim.arguments import finite, flag, integer, low_high, number, reals
from qdsim.array_type import Array
from qdsim.batches.inputs import check_parameters, parameters_of
from qdsim.model import Model

__all__ = ["SENSED", "Draw", "Draws", "Range", "check_draw"]

SENSED = ("position_noise", "rotation_noise", "delay")
"""Names of what is drawn besides model parameters: standard deviations (m, rad) and a delay in whole actions."""
_LONGEST = 1000
"""Largest delay of observations, in actions, because each takes memory."""


@dataclasses.dataclass(frozen=True, eq=False)
class Range:
    """Range from which a parameter of the model is drawn in each episode.

    All entries vary together: one number s in [0, 1] is drawn per episode, and each entry is
    interpolated from `low` to `high` at s. Entries that are the same in both keep their value.

    Attributes:
        low, high: numbers, or arrays of the parameter's shape, in its units, as in
            `Parameters.replace`: one number fills the array; for "pair_friction" it is the sliding
            coefficient.
        log: interpolate the logarithm, for parameters of unknown magnitude: stiffness, compliance.
            Both ends must then be positive, except for entries with equal ends.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """

    low: npt.ArrayLike
    high: npt.ArrayLike
    log: bool = False

    def __post_init__(self) -> None:
        low, high = (finite(name, reals(name, getattr(self, name))) for name in ("low", "high"))
        flag("log", self.log)
        if low.shape != high.shape and low.ndim and high.ndim:
            raise ValueError(f"high: expected shape {low.shape}, that of low, got {high.shape}")
        if not np.all(low <= high):
            raise ValueError("high: expected no less than low")
        if self.log and not np.all((low > 0.0) | (low == high)):
            raise ValueError("low: expected numbers > 0 with log=True")


Draw: TypeAlias = "tuple[float, float] | Range"
"""A pair of factors (low, high), or a range of values."""


def check_draw(name: str, draw: object) -> None:
    """Check an entry of `EnvOptions.randomize`; raise a TypeError or ValueError that names it."""
    if name not in (*PARAMETER_NAMES, *SENSED):
        known = ", ".join((*PARAMETER_NAMES, *SENSED))
        raise ValueError(f"randomize: expected names among {known}, got {name!r}")
    if name in SENSED:
        _check_sensed(name, draw)
    elif not isinstance(draw, Range):
        low_high(f"randomize[{name!r}]", draw, above=0)


def _check_sensed(name: str, draw: object) -> None:
    said = f"randomize[{name!r}]"
    if not isinstance(draw, Range):
        raise TypeError(f"{said}: expected a Range, got {type(draw).__name__}")
    if draw.log:
        raise ValueError(f"{said}: expected log=False")
    for end in (draw.low, draw.high):
        if name == "delay":
            integer(said, end, least=0, most=_LONGEST)
        else:
            number(said, end, least=0)


class Draws:
    """Random parameters of a model; one random number per parameter and episode.

    Args:
        model: the model.
        randomize: from names of its parameters to their distributions.

    Raises:
        ValueError: for factors on values that are all zero, and for ranges that are invalid for the
            model.
    """

    def __init__(self, model: Model, randomize: Mapping[str, Draw]) -> None:
        self._model = model
        self._ends: dict[str, tuple[Array, Array, bool]] = {}
        for name, draw in randomize.items():
            if name in SENSED:
                continue
            own = np.asarray(getattr(model.parameters, name))
            if isinstance(draw, Range):
                low, high = (self._of_model(name, end) for end in (draw.low, draw.high))
                self._ends[name] = (low, high, draw.log)
            elif np.any(own):
                self._ends[name] = (draw[0] * own, draw[1] * own, False)
            else:
                raise ValueError(
                    f"randomize[{name!r}]: a factor on it changes nothing, since all of the model's values are zero; give a Range"
                )

    def __len__(self) -> int:
        return len(self._ends)

    def __call__(self, numbers: Array) -> dict[str, Array]:
        """Compute parameters (n, ...) from numbers (n, len(self)) in [0, 1)."""
        found = {}
        for drawn, (name, (low, high, log)) in zip(numbers.T, self._ends.items()):
            share = drawn.reshape(-1, *(1,) * low.ndim)
            if log:
                ratio = np.where(low < high, high, 1.0) / np.where(low < high, low, 1.0)
                found[name] = low * ratio**share
            else:
                found[name] = low + share * (high - low)
        if found:
            check_parameters(self._model, parameters_of(self._model, found), (len(numbers),))
        return found

    def _of_model(self, name: str, end: npt.ArrayLike) -> Array:
        """Return the end of a range as a full array, after checking that the model accepts it."""
        try:
            changed = self._model.parameters.replace(**{name: end})
            array = np.asarray(getattr(changed, name))
            check_parameters(self._model, parameters_of(self._model, {name: array[None]}), (1,))
        except ValueError as error:
            raise ValueError(f"randomize[{name!r}]: {error}") from None
        return array
