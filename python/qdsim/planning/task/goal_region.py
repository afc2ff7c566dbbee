"""What of a goal's pose counts: the place, the orientation, or both, up to what the object's symmetry or the task
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
"""Rotations of a finite group that is asked for: twice those of an icosahedron, or a prism of 120 sides."""


@dataclasses.dataclass(frozen=True)
class GoalRegion:
    """Poses around a task's goal that count as the goal, too.

    The goal itself is one of them. ``GoalRegion(rotation="any")`` asks for the place alone, ``GoalRegion(-inf, inf)``
    for the orientation alone, ``GoalRegion(axis=(0, 0, 1))`` leaves the turn of a bottle about its own axis free, and
    ``GoalRegion(-inf, inf, axis="up")`` has an object upright wherever it is.

    Attributes:
        lower, upper: how far the object may be off the goal, at most 0 and at least 0: one number, m, for all
            coordinates that shift it, or one per coordinate, m and rad: slides, hinges, and x, y, z of a free joint.
            Infinite ones leave the coordinate free.
        rotation: ``"goal"``: the goal's, up to what the next two say; ``"any"``: every one counts.
        axis: ``(3,)`` axis in the object's own frame, through the origin of the body that its joint moves, about which
            every turn counts; ``"up"``: the vertical, so that what was upright in the goal has to be. None: no such
            axis.
        symmetries: quaternions ``(w, x, y, z)`` in the object's own frame, after each of which it looks the same; all
            their products count. An object on one hinge takes those about the hinge.

    Raises:
        TypeError, ValueError: naming the field.
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
                raise ValueError(f"{name}: rotation='any' leaves nothing for it to say")

    @property
    def group(self) -> Array:
        """``(n, 4)`` quaternions of all products of the symmetries, the identity first."""
        return _group(self.symmetries)


def quaternion_product(a: Array, b: Array) -> Array:
    """Quaternions ``(4, ...)`` of one rotation after the other: first ``b``, then ``a``."""
    w, v = a[0] * b[0] - (a[1:] * b[1:]).sum(axis=0), np.cross(a[1:], b[1:], axis=0)
    return np.concatenate((w[None], a[0] * b[1:] + b[0] * a[1:] + v))


def _offsets(name: str, value: ArrayLike, sign: float) -> float | tuple[float, ...]:
    """One number or a tuple of them, none of the wrong sign."""
    found = np.asarray(real_array(name, value), np.float64)
    wanted = f"a number {'<=' if sign < 0 else '>='} 0, or one per coordinate"
    if found.ndim > 1 or found.size == 0 or not np.all(sign * found >= 0.0):
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _axis(value: Any) -> tuple[float, ...]:
    """Of length 1."""
    if isinstance(value, str):
        raise ValueError(f"axis: expected three numbers or 'up', got {value!r}")
    return _unit("axis", value, 3)


def _quaternions(values: Any) -> tuple[tuple[float, ...], ...]:
    """Each of length 1; the group that they generate is a finite one."""
    if not isinstance(values, (tuple, list, np.ndarray)):
        raise TypeError(f"symmetries: expected quaternions, got {type(values).__name__}")
    found = tuple(_unit(f"symmetries[{k}]", value, 4) for k, value in enumerate(values))
    if len(_group(found)) > _MOST:
        raise ValueError(
            f"symmetries: their products are more than {_MOST}; is an axis of any turn meant?"
        )
    return found


def _unit(name: str, value: ArrayLike, size: int) -> tuple[float, ...]:
    found = reals(name, value, (size,))
    length = float(np.linalg.norm(found))
    if not (math.isfinite(length) and length > 0.0):
        raise ValueError(f"{name}: expected {size} numbers, not all of them 0, got {value!r}")
    return tuple((found / length).tolist())


def _group(generators: tuple[tuple[float, ...], ...]) -> Array:
    """All products, up to the sign, as many as are asked for and one more."""
    found = np.array([[1.0, 0.0, 0.0, 0.0]])
    k = 0
    while k < len(found) <= _MOST:
        for generator in generators:
            product = quaternion_product(found[k], np.array(generator))
            if np.all(np.abs(found @ product) < 1.0 - SAME):
                found = np.vstack((found, product))
        k += 1
    return found
