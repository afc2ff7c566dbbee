"""Checks of single values. Every error names the element, the field and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from qdsim.arguments import reals
from qdsim.array_type import ROUNDING

Vector = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]

# Quaternions with a length error of at most this are normalised silently (formulation 1).
QUATERNION_TOLERANCE = 1e-3


def number(owner: str, field: str, value: object) -> float:
    """Check that a value is a finite number and return it as a float."""
    result = _float(owner, field, value)
    if not math.isfinite(result):
        raise ValueError(f"{owner}: {field} must be finite, got {value!r}")
    return result


def non_negative(owner: str, field: str, value: object) -> float:
    """Check that a value is a finite number >= 0 and return it."""
    result = number(owner, field, value)
    if result < 0.0:
        raise ValueError(f"{owner}: {field} must not be negative, got {value!r}")
    return result


def stiffness(owner: str, field: str, value: object) -> float | None:
    """Check that a value is a finite number > 0, or None for rigid, and return it."""
    if value is None:
        return None
    result = number(owner, field, value)
    if result <= 0.0:
        raise ValueError(f"{owner}: {field} must be positive, got {value!r}")
    return result


def inverse_weight(owner: str, field: str, value: object) -> float | None:
    """Check that a value is a finite number >= 0, or None for a weight to be computed, and return it."""
    return None if value is None else non_negative(owner, field, value)


def compliance(owner: str, field: str, value: object) -> Vector:
    """Check that a value is two numbers >= 0 and return them; a single number is used twice."""
    result = vector_or_number(owner, field, value)
    if len(result) == 1:
        result *= 2
    if len(result) != 2 or min(result) < 0.0:
        raise ValueError(f"{owner}: {field} must be two numbers >= 0, got {value!r}")
    return result


def integer(owner: str, field: str, value: object) -> int:
    """Check that a value is an integer of Python or NumPy and return it as an int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{owner}: {field} must be an integer, got {value!r}")
    return int(value)


def flag(owner: str, field: str, value: object) -> bool:
    """Check that a value is True or False, of Python or NumPy, and return it as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{owner}: {field} must be True or False, got {value!r}")
    return bool(value)


def text(owner: str, field: str, value: object) -> str:
    """Check that a value is a non-empty string and return it."""
    if not isinstance(value, str):
        raise TypeError(f"{owner}: {field} must be a string, got {type(value).__name__}")
    if not value:
        raise ValueError(f"{owner}: {field} must not be empty")
    return value


def vector(owner: str, field: str, value: object, size: int | None = None) -> Vector:
    """Check that a value is a sequence of finite numbers, exactly ``size`` of them if given, and
    return them as a tuple."""
    if isinstance(value, str) or not isinstance(value, (Iterable, Sequence)):
        raise TypeError(f"{owner}: {field} must be a sequence of numbers, got {value!r}")
    result = tuple(number(owner, field, item) for item in value)
    if size is not None and len(result) != size:
        raise ValueError(f"{owner}: {field} must hold {size} numbers, got {len(result)}")
    return result


def vector_or_number(owner: str, field: str, value: object) -> Vector:
    """Check a vector of any size as ``vector`` does; a number becomes a vector of one."""
    if isinstance(value, (int, float)):
        return (number(owner, field, value),)
    return vector(owner, field, value)


def quaternion(owner: str, field: str, value: object) -> Vector:
    """Normalise a quaternion w x y z; raise ValueError if its length differs from 1 by more than 1e-3."""
    result = vector(owner, field, value, 4)
    length = math.sqrt(sum(item * item for item in result))
    if abs(length - 1.0) > QUATERNION_TOLERANCE:
        raise ValueError(f"{owner}: {field} must be a unit quaternion, its length is {length:g}")
    if abs(length - 1.0) < 4e-16:
        return result
    return tuple(item / length for item in result)


def direction(owner: str, field: str, value: object) -> Vector:
    """Normalise a vector of any positive length."""
    result = vector(owner, field, value, 3)
    length = math.sqrt(sum(item * item for item in result))
    if length < 1e-12:
        raise ValueError(f"{owner}: {field} must not be zero")
    if abs(length - 1.0) < 4e-16:
        return result
    return tuple(item / length for item in result)


def pairs(owner: str, field: str, value: object) -> list[tuple[object, object]]:
    """Return a list of pairs from a sequence of pairs or from a mapping."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{owner}: {field} must be a sequence of pairs, got {value!r}")
    result = []
    for item in value:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            raise TypeError(f"{owner}: {field} must be a sequence of pairs, got {item!r} in it")
        result.append((item[0], item[1]))
    return result


def interval(owner: str, field: str, value: object) -> tuple[float, float] | None:
    """Return None, or (lower, upper) with lower < upper; infinities are allowed."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (Iterable, Sequence)):
        raise TypeError(f"{owner}: {field} must be (lower, upper), got {value!r}")
    items = [_float(owner, field, item) for item in value]
    if len(items) != 2:
        raise ValueError(f"{owner}: {field} must be (lower, upper), got {len(items)} numbers")
    if not items[0] < items[1]:
        raise ValueError(
            f"{owner}: {field} must have lower < upper, got {items[0]:g}, {items[1]:g}"
        )
    return items[0], items[1]


def force_range(owner: str, field: str, value: object) -> tuple[float, float] | None:
    """Check an interval as ``interval`` does, but allow lower = upper (a constant force)."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == value[1]:
        same = number(owner, field, value[0])
        return same, same
    return interval(owner, field, value)


def inertia_matrix(owner: str, field: str, value: object) -> Matrix:
    """Check that a matrix (3, 3) is symmetric and positive semidefinite and return it; three
    numbers are taken as its diagonal."""
    array = reals(f"{owner}: {field}", value)  # type: ignore[arg-type]
    if array.shape == (3,):
        array = np.diag(array)
    if array.shape != (3, 3):
        raise ValueError(f"{owner}: {field} must have shape (3,) or (3, 3), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{owner}: {field} must be finite")
    scale = float(np.max(np.abs(array)))
    if np.max(np.abs(array - array.T)) > ROUNDING * scale:
        raise ValueError(f"{owner}: {field} must be symmetric")
    array = 0.5 * (array + array.T)
    if scale > 0.0 and np.linalg.eigvalsh(array)[0] < -ROUNDING * scale:
        raise ValueError(f"{owner}: {field} must be positive semidefinite")
    return tuple(tuple(float(item) for item in row) for row in array)


def _float(owner: str, field: str, value: object) -> float:
    if isinstance(value, (bool, np.bool_, str, bytes, bytearray)):
        raise TypeError(f"{owner}: {field} must be a number, got {value!r}")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError(f"{owner}: {field} is beyond the range of numbers") from None
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {field} must be a number, got {value!r}") from None


def restitution(owner: str, value: object) -> float | None:
    """Check that a value is a number in [0, 1], or None, and return it."""
    if value is None:
        return None
    found = number(owner, "restitution", value)
    if not 0.0 <= found <= 1.0:
        raise ValueError(f"{owner}: restitution must be in [0, 1], got {value!r}")
    return found


def assign(element: object, **values: object) -> None:
    """Set fields of a frozen dataclass; only for its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(element, name, value)
