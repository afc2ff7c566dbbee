"""Distances and poses in many configurations at once; no step is taken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import STATUS_NAMES
from qdsim.array_type import Array
from qdsim.batches.inputs import (
    check_finite,
    check_model,
    check_quaternions,
    in_rows,
    numbers,
    sample_name,
    thread_count,
)

__all__ = ["body_poses", "checked_distances", "meetings", "pair_distances"]

_OK = STATUS_NAMES.index("solved")
_OUT_OF_MEMORY = STATUS_NAMES.index("out of memory")


def pair_distances(
    model: _core.Model,
    q: npt.ArrayLike,
    margin: float = 0.1,
    *,
    threads: int | None = None,
) -> Array:
    """Compute signed distances of all pairs of geometries that may touch, in many configurations at
    once.

    Args:
        model: The model.
        q: Configurations (..., nq).
        margin: Pairs farther apart than this get this distance, m. A small margin is faster,
            because bounding volumes exclude distant pairs. May be infinite.
        threads: As in ``step_batch``; no effect on the results.

    Returns:
        Distances (..., pairs), m, negative for penetrations, in the order of ``model.pair_geom``:
        for each pair the least distance of its contacts as returned by ``model.collide``, or
        ``margin``.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is invalid; the message names it and the sample.
        MemoryError: if there is no memory for the contacts of a configuration.
    """
    check_model(model)
    array = numbers("q", q, (model.nq,))
    lead = array.shape[:-1]
    rows = in_rows(array, lead, 1)
    check_finite("q", rows, lead)
    distance = checked_distances(model, rows, margin, thread_count(threads), lead)
    return distance.reshape(*lead, model.pair_count)


def checked_distances(
    model: _core.Model,
    q: Array,
    margin: float,
    threads: int = 1,
    lead: tuple[int, ...] | None = None,
) -> Array:
    """Compute ``pair_distances`` (n, pairs) of rows q (n, nq) of finite doubles, without checks,
    for many short calls.

    Raises:
        ValueError, MemoryError: as ``pair_distances``; ``lead`` are the dimensions that name a
            sample.
    """
    found = _core._pair_distances(model, q, margin, threads)
    _check(model, q, found["status"], (len(q),) if lead is None else lead)
    distance: Array = found["distance"]
    return distance


def meetings(
    model: _core.Model, q: Array, rate: Array, way: Array, gap: Array
) -> tuple[Array, Array]:
    """Compute how far configurations ``q + s rate`` move with s from 0 until pairs of geometries
    meet. All arguments are double arrays in C order.

    Args:
        model: the model.
        q, rate: ``(n, nq)`` start and direction of each line; quaternions must not change.
        way: ``(n, 3)`` the longest interval of s between two checks, the largest s, and the
            tolerance of the s at which pairs meet.
        gap: ``(n, pairs)`` m; pairs nearer than this have met; -inf for pairs to ignore.

    Returns:
        The largest value ``(n,)`` found without a meeting (it is also less than the end if 10,000
        intervals do not reach the end); and the distances ``(n, pairs)`` at the first value with a
        meeting, less than the gap for the pairs that meet there.

    Raises:
        ValueError, MemoryError: as ``pair_distances``.
    """
    found = _core._meetings(model, q, rate, way, gap)
    _check(model, q, found["status"], (len(q),))
    return found["travel"], found["distance"]


def _check(
    model: _core.Model, q: Array, status: npt.NDArray[np.int32], lead: tuple[int, ...]
) -> None:
    """Raise ValueError or MemoryError if distances of rows q failed."""
    if (status == _OK).all():
        return
    check_quaternions(model, "q", q, status, lead)
    if (status == _OUT_OF_MEMORY).any():
        raise MemoryError
    bad = int(np.flatnonzero(status != _OK)[0])
    raise ValueError(f"q: {sample_name(bad, lead)}: too large for its poses")


def body_poses(
    model: _core.Model, q: npt.ArrayLike, *, threads: int | None = None
) -> tuple[Array, Array]:
    """Compute the poses of all bodies in many configurations at once: ``Model.body_poses`` over leading dimensions.

    Args:
        model: The model.
        q: Configurations (..., nq).
        threads: As in ``step_batch``.

    Returns:
        Positions (..., body_count, 3), m, and rotation matrices (..., body_count, 3, 3), in the world.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it and the sample.
    """
    check_model(model)
    array = numbers("q", q, (model.nq,))
    lead = array.shape[:-1]
    rows = in_rows(array, lead, 1)
    check_finite("q", rows, lead)
    found = _core._body_poses(model, rows, thread_count(threads))
    check_quaternions(model, "q", rows, found["status"], lead)
    bodies = model.body_count
    return found["pos"].reshape(*lead, bodies, 3), found["rot"].reshape(*lead, bodies, 3, 3)
