"""Goal regions: poses that count as the goal because of symmetries or coordinates that the task
leaves free."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import one_of, real_array, reals
from qdsim.array_type import SAME, Array

__all__ = ["GoalRegion", "quaternion_product"]

_MOST = 240
"""Largest size of a finite group of symmetries: twice that of an icosahedron, or a prism with 120 sides."""


@dataclasses.dataclass(frozen=True)
class GoalRegion:
    """Poses around a task's goal that also count as the goal.

    The goal itself is one of them. ``GoalRegion(rotation="any")`` fixes only the position,
    ``GoalRegion(-inf, inf)`` only the orientation. ``GoalRegion(axis=(0, 0, 1))`` leaves the
    rotation about this axis of the object free (a bottle), and ``GoalRegion(-inf, inf, axis="up")``
    requires an upright object at any position.

    Attributes:
        lower, upper: allowed offset from the goal, lower <= 0 <= upper: one number, m, for all
            coordinates of translation, or one per coordinate, m and rad (slides, hinges, and x, y,
            z of a free joint). Infinite: the coordinate is free.
        rotation: ``"goal"``: the goal's orientation, up to ``axis`` and ``symmetries``; ``"any"``:
            any orientation.
        axis: ``(3,)`` axis in the object's frame, through the origin of the body of its joint,
            about which the rotation is free; ``"up"``: the vertical axis, so that the object keeps
            the inclination that it has in the goal. None: no free axis. Executions leave out such
            turns of an object that is round about the axis along plans, too.
        symmetries: quaternions ``(w, x, y, z)`` in the object's frame of rotations that leave the
            object unchanged; all their products count. An object on one hinge uses those about the
            hinge.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """

    lower: float | tuple[float, ...] = 0.0
    upper: float | tuple[float, ...] = 0.0
    rotation: Literal["goal", "any"] = "goal"
    axis: tuple[float, float, float] | Literal["up"] | None = None
    symmetries: tuple[tuple[float, float, float, float], ...] = ()

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("lower", _offsets("lower", self.lower, -1.0))
        put("upper", _offsets("upper", self.upper, 1.0))
        one_of("rotation", self.rotation, ("goal", "any"))
        if self.axis is not None and not (isinstance(self.axis, str) and self.axis == "up"):
            put("axis", _axis(self.axis))
        put("symmetries", _quaternions(self.symmetries))
        for name in ("axis", "symmetries"):
            if self.rotation == "any" and getattr(self, name):
                raise ValueError(f"{name}: rotation='any' makes it meaningless")

    @property
    def group(self) -> Array:
        """``(n, 4)`` quaternions of all products of the symmetries, the identity first."""
        return _group(self.symmetries)


def quaternion_product(a: Array, b: Array) -> Array:
    """Multiply quaternions ``(4, ...)``: first the rotation ``b``, then ``a``."""
    w, v = a[0] * b[0] - (a[1:] * b[1:]).sum(axis=0), np.cross(a[1:], b[1:], axis=0)
    return np.concatenate((w[None], a[0] * b[1:] + b[0] * a[1:] + v))


def _offsets(name: str, value: ArrayLike, sign: float) -> float | tuple[float, ...]:
    """Check one number or a tuple of numbers, none of the wrong sign."""
    found = np.asarray(real_array(name, value), np.float64)
    wanted = f"a number {'<=' if sign < 0 else '>='} 0, or one per coordinate"
    if found.ndim > 1 or found.size == 0 or not np.all(sign * found >= 0.0):
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _axis(value: Any) -> tuple[float, ...]:
    """Check an axis and normalise it."""
    if isinstance(value, str):
        raise ValueError(f"axis: expected three numbers or 'up', got {value!r}")
    return _unit("axis", value, 3)


def _quaternions(values: Any) -> tuple[tuple[float, ...], ...]:
    """Check quaternions, normalise them, and check that they generate a finite group."""
    if not isinstance(values, (tuple, list, np.ndarray)):
        raise TypeError(f"symmetries: expected quaternions, got {type(values).__name__}")
    found = tuple(_unit(f"symmetries[{k}]", value, 4) for k, value in enumerate(values))
    if len(_group(found)) > _MOST:
        raise ValueError(
            f"symmetries: their products are more than {_MOST}; use axis= for a free rotation about an axis"
        )
    return found


def _unit(name: str, value: ArrayLike, size: int) -> tuple[float, ...]:
    found = reals(name, value, (size,))
    length = float(np.linalg.norm(found))
    if not (math.isfinite(length) and length > 0.0):
        raise ValueError(f"{name}: expected {size} numbers, not all of them 0, got {value!r}")
    return tuple((found / length).tolist())


def _group(generators: tuple[tuple[float, ...], ...]) -> Array:
    """Return all products of the generators, up to sign; stop after more than ``_MOST``."""
    found = np.array([[1.0, 0.0, 0.0, 0.0]])
    k = 0
    while k < len(found) <= _MOST:
        for generator in generators:
            product = quaternion_product(found[k], np.array(generator))
            if np.all(np.abs(found @ product) < 1.0 - SAME):
                found = np.vstack((found, product))
        k += 1
    return found
