"""Intersections of lines with volumes: spheres, ellipsoids, boxes, cylinders and capsules, centred
in their frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

__all__ = ["crossing", "inside", "surface_normal"]


def crossing(
    shape: str, size: Sequence[float], point: Array, direction: Array
) -> tuple[Array, Array]:
    """Compute the interval of t in which the lines ``point + t direction`` are inside a volume;
    (inf, -inf) for none.

    Args:
        shape, size: as for MuJoCo's geometries.
        point, direction: (n, 3), in the volume's frame; directions are not zero.

    Returns:
        Entry (n) and exit (n).
    """
    if shape in ("sphere", "ellipsoid"):
        return _in_ball(point / np.asarray(size), direction / np.asarray(size))
    if shape == "box":
        return _in_slabs(point, direction, np.asarray(size))
    radius, half = size
    flat = np.array([1.0, 1.0, 0.0]) / radius
    pillar = _both(
        _in_ball(point * flat, direction * flat),
        _in_slabs(point[:, 2:], direction[:, 2:], np.array([half])),
    )
    if shape == "cylinder":
        return pillar
    ends = [
        _in_ball((point - end) / radius, direction / radius)
        for end in np.array([[0.0, 0.0, half], [0.0, 0.0, -half]])
    ]
    parts = [pillar, *ends]
    return np.min([part[0] for part in parts], axis=0), np.max([part[1] for part in parts], axis=0)


def inside(shape: str, size: Sequence[float], point: Array) -> npt.NDArray[np.bool_]:
    """Return whether points (n, 3) are in a volume, its surface included."""
    first, last = crossing(shape, size, point, np.broadcast_to([0.0, 0.0, 1.0], point.shape))
    return np.asarray((first <= 0.0) & (last >= 0.0))


def surface_normal(shape: str, size: Sequence[float], point: Array) -> Array:
    """Outward unit normals (n, 3) of a volume's surface at points (n, 3) on it."""
    normal = np.array(point)
    if shape == "ellipsoid":
        normal /= np.square(size)
    elif shape == "box":
        nearest = np.argmax(np.abs(point) / size, axis=1)[:, None] == np.arange(3)
        normal = np.where(nearest, point, 0.0)
    elif shape == "capsule":
        normal[:, 2] -= np.clip(point[:, 2], -size[1], size[1])
    elif shape == "cylinder":
        cap = np.abs(point[:, 2]) / size[1] >= np.hypot(point[:, 0], point[:, 1]) / size[0]
        normal[cap, :2], normal[~cap, 2] = 0.0, 0.0
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _in_ball(point: Array, direction: Array) -> tuple[Array, Array]:
    """Return the interval of t inside the unit ball.

    A line with zero direction is inside for all t or for none.
    """
    a = np.sum(direction * direction, axis=1)
    b, c = np.sum(point * direction, axis=1), np.sum(point * point, axis=1) - 1.0
    root = b * b - a * c
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(root)
        first, last = (-b - half) / a, (-b + half) / a
    still = a == 0.0
    first, last = np.where(still, -np.inf, first), np.where(still, np.inf, last)
    never = np.where(still, c > 0.0, root < 0.0)
    return np.where(never, np.inf, first), np.where(never, -np.inf, last)


def _in_slabs(point: Array, direction: Array, half: Array) -> tuple[Array, Array]:
    """Return the interval of t inside all slabs |x_i| <= half_i."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack(((-half - point) / direction, (half - point) / direction))
    along = direction == 0.0
    out = along & (np.abs(point) > half)
    first = np.where(along, -np.inf, ends.min(axis=0)).max(axis=1)
    last = np.where(along, np.inf, ends.max(axis=0)).min(axis=1)
    return _or_never(first, last, out.any(axis=1))


def _both(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    first, last = np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
    return _or_never(first, last, first > last)


def _or_never(first: Array, last: Array, never: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    never = never | (first > last)
    return np.where(never, np.inf, first), np.where(never, -np.inf, last)
