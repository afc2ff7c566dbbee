"""Checks of single arguments and of the fields of option classes.

Each check returns the value as a built-in type, or raises a TypeError (not that kind of thing) or a ValueError
(a wrong one) that begins with the argument's name, says what was expected and what came. Booleans are no numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "fields",
    "finite",
    "flag",
    "generator_of",
    "instance",
    "integer",
    "number",
    "numbers",
    "one_of",
    "path_of",
    "reals",
]

_Kind = TypeVar("_Kind")


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    or_none: bool = False,
) -> float:
    """A number in a range, finite unless infinity is allowed; never NaN.

    Args:
        name: the argument's, for messages.
        value: what was given.
        above, least: open and closed lower end, at most one of them; messages show them as given (0, not 0.0).
        below, most: open and closed upper end, likewise; with a lower one only.
        infinite: whether infinities count as numbers.
        or_none: whether messages should offer None; what handles None is the caller (or `fields`).
    """
    wanted = "a number" + _range(above, least, below, most) + " or None" * or_none
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:  # an int beyond 1e308
        result = math.inf if value > 0 else -math.inf
    good = not math.isnan(result) and (infinite or not math.isinf(result))
    if not (good and _inside(result, above, least, below, most)):
        raise ValueError(f"{name}: expected {wanted}, got {result!r}")
    return result


def integer(
    name: str, value: object, *, least: int, most: int | None = None, or_none: bool = False
) -> int:
    """An int or a NumPy integer in a range; numbers such as 2.0 are none."""
    wanted = "an integer" + _range(None, least, None, most) + " or None" * or_none
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    if not _inside(value, None, least, None, most):
        raise ValueError(f"{name}: expected {wanted}, got {int(value)}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """True or False, also NumPy's; 0 and 1 are none."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}")
    return bool(value)


def instance(name: str, value: object, kind: type[_Kind], *, or_none: bool = False) -> _Kind:
    """An instance of a class; None only for callers that handle it before or say `or_none`."""
    if not isinstance(value, kind) and not (or_none and value is None):
        word = kind.__name__
        article = "" if word.endswith("s") else "an " if word[0] in "AEIOU" else "a "
        wanted = article + word + " or None" * or_none
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    return value  # type: ignore[return-value]


def path_of(name: str, value: object) -> Path:
    """The path of a file; integers, which `open` takes for descriptors, are none."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: expected the path of a file, got {type(value).__name__}")
    text = os.fspath(value)
    if not isinstance(text, str) or not text:
        raise TypeError(f"{name}: expected the path of a file, got {value!r}")
    return Path(text)


def generator_of(rng: int | np.random.Generator, name: str = "rng") -> np.random.Generator:
    """A generator, itself or made from a seed (what `numpy.random.default_rng` takes)."""
    if isinstance(rng, (bool, np.bool_)):
        raise TypeError(f"{name}: expected a seed or a generator, got {type(rng).__name__}")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: expected a seed or a generator: {error}") from None


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of some words."""
    *first, last = map(repr, allowed)
    wanted = f"{', '.join(first)} or {last}" if first else last
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    if value not in allowed:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")
    return value


def numbers(
    name: str,
    value: object,
    *,
    per: str,
    above: float | None = None,
    least: float | None = None,
    or_none: bool = False,
) -> float | tuple[float, ...]:
    """One finite number for all, or a tuple of one per something (`per`, in messages); not an empty one."""
    wanted = f"a number{_range(above, least, None, None)} or one per {per}" + " or None" * or_none
    try:
        found: npt.NDArray[Any] = np.asarray(value)
    except (TypeError, ValueError):  # ragged
        found = np.asarray(None)
    if found.size and found.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected {wanted}, got {value!r}")
    flat = [float(x) for x in found.flat]
    good = all(math.isfinite(x) and _inside(x, above, least, None, None) for x in flat)
    if found.ndim > 1 or not flat or not good:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")
    return flat[0] if found.ndim == 0 else tuple(flat)


def reals(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Real numbers as doubles, of any shape; what is an array of doubles is not copied."""
    try:
        found: npt.NDArray[Any] = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected an array of real numbers ({error})") from None
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected an array of real numbers, got dtype {found.dtype}")
    return found.astype(np.float64, copy=False)


def finite(
    name: str, values: npt.NDArray[np.float64], *, infinite: bool = False
) -> npt.NDArray[np.float64]:
    """The array, if all its numbers are finite (with `infinite`: not NaN)."""
    bad = np.isnan(values) if infinite else ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        at = f"element [{', '.join(map(str, where))}] is " if where else ""
        raise ValueError(f"{name}: {at}{values[where]}")
    return values


def fields(
    owner: object,
    check: Callable[..., object],
    *names: str,
    or_none: bool = False,
    **limits: Any,
) -> None:
    """Check fields of a frozen dataclass, all alike, and put what the check returns in their place.

    Args:
        owner: the dataclass's instance.
        check: one of the functions above.
        names: of the fields.
        or_none: whether they may be None.
        limits: for the check.
    """
    if or_none:
        limits["or_none"] = True
    for name in names:
        value = getattr(owner, name)
        if not (or_none and value is None):
            object.__setattr__(owner, name, check(name, value, **limits))


def _inside(
    value: float | np.integer[Any],
    above: float | None,
    least: float | None,
    below: float | None,
    most: float | None,
) -> bool:
    return not (
        (above is not None and value <= above)
        or (least is not None and value < least)
        or (below is not None and value >= below)
        or (most is not None and value > most)
    )


def _range(
    above: float | None, least: float | None, below: float | None, most: float | None
) -> str:
    """The range in words, after "a number"."""
    if below is None and most is None:
        if above is None and least is None:
            return ""
        return f" > {above}" if above is not None else f" >= {least}"
    low, high = (least if above is None else above), (most if below is None else below)
    if above is None and below is None:
        return f" from {low} to {high}"
    return f" in {'[' if above is None else '('}{low}, {high}{']' if below is None else ')'}"
