"""Checks of arguments and of the fields of option classes.

Each check returns the value as a built-in type, or raises a TypeError (wrong type) or a ValueError
(wrong value). The message begins with the argument's name, and gives the expected and the actual
value. Booleans do not count as numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

__all__ = [
    "MOST_COUNT",
    "MOST_HELD",
    "MOST_INTEGER",
    "MOST_SEED",
    "MOST_TOLD",
    "fields",
    "finite",
    "flag",
    "generator_of",
    "instance",
    "integer",
    "low_high",
    "number",
    "numbers",
    "one_of",
    "path_of",
    "real_array",
    "reals",
    "spread",
    "vector",
]

_Kind = TypeVar("_Kind")

MOST_INTEGER = int(np.iinfo(np.int32).max)
"""The default upper limit of integers: the core's integers have 32 bits."""

MOST_SEED = int(np.iinfo(np.uint64).max)
"""The largest seed of a stream of random numbers."""

MOST_COUNT = 2**24
"""The largest number of items that may be in memory at the same time."""

MOST_TOLD = 12
"""The number of items that a message lists; it counts the others."""

MOST_HELD = 2**22
"""The number of derivative entries that may be in memory at a time (32 MB)."""

_MOST_NUMBERS = 2**33
"""The largest size of one array, 64 GiB; without it, test_wrong_kinds.py ends in a MemoryError."""


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
    """Check a number: in a range, never NaN, and finite unless infinity is allowed.

    Args:
        name: The argument's name, for messages.
        value: The given value.
        above, least: Open and closed lower end, at most one of them; messages show them as given
            (0, not 0.0).
        below, most: Open and closed upper end, at most one of them; only with a lower end.
        infinite: Whether infinities are allowed.
        or_none: Whether messages mention None; the caller (or ``fields``) handles None.
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
    """Check an int or a NumPy integer in a range; 2.0 is an error. The default upper end is 2**31 - 1."""
    wanted = "an integer" + _range(None, least, None, most) + " or None" * or_none
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    if most is None and value > MOST_INTEGER:
        wanted = "an integer" + _range(None, least, None, MOST_INTEGER) + " or None" * or_none
    if not _inside(value, None, least, None, MOST_INTEGER if most is None else most):
        raise ValueError(f"{name}: expected {wanted}, got {_digits(int(value))}")
    return int(value)


def _digits(value: int) -> str:
    """Return the integer as text, or its number of bits if it is too long for Python to convert."""
    return str(value) if abs(value) < 10**40 else f"one of {value.bit_length()} bits"


def flag(name: str, value: object) -> bool:
    """Check True or False, also of NumPy's type; 0 and 1 are errors."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}")
    return bool(value)


def instance(name: str, value: object, kind: type[_Kind], *, or_none: bool = False) -> _Kind:
    """Check an instance of a class; None is accepted only with ``or_none``."""
    if not isinstance(value, kind) and not (or_none and value is None):
        word = kind.__name__
        article = "" if word.endswith("s") else "an " if word[0] in "AEIOU" else "a "
        wanted = article + word + " or None" * or_none
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    return value  # type: ignore[return-value]


def path_of(name: str, value: object) -> Path:
    """Check the path of a file; integers are errors, because ``open`` takes them as descriptors."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: expected the path of a file, got {type(value).__name__}")
    text = os.fspath(value)
    if not isinstance(text, str) or not text:
        raise TypeError(f"{name}: expected the path of a file, got {value!r}")
    return Path(text)


def generator_of(rng: int | np.random.Generator) -> np.random.Generator:
    """Return a generator: the given one, or one made from a seed (as in ``numpy.random.default_rng``)."""
    if isinstance(rng, (bool, np.bool_)):
        raise TypeError(f"rng: expected a seed or a generator, got {type(rng).__name__}")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng: expected a seed or a generator: {error}") from None


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Check a word that must be one of the allowed ones."""
    allowed = tuple(allowed)
    if isinstance(value, str) and value in allowed:
        return value
    *first, last = map(repr, allowed)
    wanted = f"{', '.join(first)} or {last}" if first else last
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected {wanted}, got {type(value).__name__}")
    raise ValueError(f"{name}: expected {wanted}, got {value!r}")


def low_high(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Check a pair (low, high) of numbers, bounded as in ``number``."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{name}: expected (low, high), got {value!r}")
    low = number(f"{name}: low", value[0], above=above, least=least, most=most)
    number(f"{name}: high", value[1], least=low, most=most)


def numbers(
    name: str,
    value: object,
    *,
    per: str,
    above: float | None = None,
    least: float | None = None,
    or_none: bool = False,
) -> float | tuple[float, ...]:
    """Check a finite number for all, or a tuple with one number for each ``per``; it must not be empty."""
    wanted = f"a number{_range(above, least, None, None)} or one per {per}" + " or None" * or_none
    try:
        found = real_array(name, value)
    except TypeError:
        raise TypeError(f"{name}: expected {wanted}, got {value!r}") from None
    if found.ndim > 1 or found.size > MOST_COUNT:
        raise ValueError(f"{name}: expected {wanted}, got shape {found.shape}")
    flat = [float(x) for x in found.flat]
    good = all(math.isfinite(x) and _inside(x, above, least, None, None) for x in flat)
    if found.ndim > 1 or not flat or not good:
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")
    return flat[0] if found.ndim == 0 else tuple(flat)


def real_array(name: str, value: object) -> npt.NDArray[Any]:
    """Convert to an array of integers or floats; text, booleans and masked arrays are errors."""
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):
        kind = type(value).__name__
        raise TypeError(
            f"{name}: expected an array of real numbers, got a {kind}, whose mask would be ignored"
        )
    try:
        found: npt.NDArray[Any] = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name}: expected an array of real numbers ({error})") from None
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected an array of real numbers, got dtype {found.dtype}")
    return found


def reals(name: str, value: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> Array:
    """Convert real numbers to doubles; an array of doubles is not copied.

    Args:
        name: The argument's name, for messages.
        value: The given value.
        shape: Required shape, with -1 for any length; None: any shape. It is checked before
            anything is copied, so that a broadcast view of a terabyte costs nothing.
    """
    found = real_array(name, value)
    if shape is not None and not (
        found.ndim == len(shape) and all(n in (-1, m) for n, m in zip(shape, found.shape))
    ):
        raise ValueError(f"{name}: expected shape {_shape_name(shape)}, got {found.shape}")
    if found.size > _MOST_NUMBERS:
        raise ValueError(f"{name}: {found.size} numbers are too many, of shape {found.shape}")
    with np.errstate(over="ignore"):  # long doubles may become infinite; ``finite`` rejects those
        return found.astype(np.float64, copy=False)


def _shape_name(shape: tuple[int, ...]) -> str:
    sizes = ["any" if n < 0 else str(n) for n in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def vector(name: str, value: npt.ArrayLike, size: int, *, infinite: bool = False) -> Array:
    """Return a read-only copy of ``size`` numbers, which must be finite unless infinity is allowed."""
    array = np.array(reals(name, value, (size,)))
    finite(name, array, infinite=infinite)
    array.flags.writeable = False
    return array


def spread(name: str, value: npt.ArrayLike | None, size: int) -> Array:
    """Return a number, or ``size`` of them, as an array ``(size,)``."""
    array = real_array(name, value)
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name}: expected a number or {size} of them, got shape {array.shape}")
    return np.array(np.broadcast_to(reals(name, array), (size,)))


def finite(name: str, values: Array, *, infinite: bool = False) -> Array:
    """Return the array if all its numbers are finite (with ``infinite``: not NaN)."""
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
    """Check fields of a frozen dataclass, and replace them by the results of the check.

    Args:
        owner: The instance of the dataclass.
        check: One of the functions above.
        names: Names of the fields.
        or_none: Whether the fields may be None.
        limits: Further arguments of the check.
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
    """Return the range in words, to follow "a number"."""
    if below is None and most is None:
        if above is None and least is None:
            return ""
        return f" > {above}" if above is not None else f" >= {least}"
    low, high = (least if above is None else above), (most if below is None else below)
    if above is None and below is None:
        return f" from {low} to {high}"
    return f" in {'[' if above is None else '('}{low}, {high}{']' if below is None else ')'}"
