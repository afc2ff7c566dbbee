"""Samplers whose grasp is a function of a few numbers: for policies, and for many configurations at
once."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["ParametricSampler", "placed", "strokes"]


@runtime_checkable
class ParametricSampler(Protocol):
    """A contact sampler whose grasp is a function of ``parameters`` numbers in [-1, 1]; random
    calls draw them.

    It may have ``place_batch(model, q, x)`` for configurations (n, nq) and numbers (n, parameters),
    which returns configurations and which of them are grasps. It may also have
    ``stroke_parameters`` and ``stroke(model, q, x, y)``: the change (n, nu) of the command for the
    numbers y (n, stroke_parameters) after the grasps q (n, nq) of x. A stroke is a push into the
    object, for robots whose joint directions are no useful coordinates of a push. Observations then
    contain no poses in the world, unless the sampler's ``in_world`` is true: its robot does not
    reach every place.
    """

    parameters: int

    def place(self, model: Model, q: Array, x: Array) -> Array | None:
        """Compute the grasp (nq,) for the numbers ``x`` (parameters,) and the object at its pose in
        ``q`` (nq,); None if there is none."""
        ...


def placed(sampler: Any, model: Model, q: Array, x: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Place the robot at the objects, each grasp given by a few numbers.

    Args:
        sampler: a sampler with ``parameters`` and ``place``.
        model: the model.
        q: ``(n, nq)`` configurations, m and rad.
        x: ``(n, parameters)`` numbers in [-1, 1], one row for each grasp.

    Returns:
        Configurations ``(n, nq)``, and which of them are grasps ``(n,)``; the others keep their
        ``q``.

    Raises:
        ValueError: as raised by the sampler's ``place``.
    """
    if hasattr(sampler, "place_batch"):
        found: tuple[Array, NDArray[np.bool_]] = sampler.place_batch(model, q, x)
        return found
    out, good = q.copy(), np.zeros(len(q), dtype=bool)
    for i, (here, numbers) in enumerate(zip(q, x)):
        grasp = sampler.place(model, here, numbers)
        if grasp is not None:
            out[i], good[i] = grasp, True
    return out, good


def strokes(sampler: Any, model: Model, q: Array, x: Array, y: Array) -> Array | None:
    """Convert numbers to strokes: changes of the command.

    Args:
        sampler: a sampler, with or without ``stroke``.
        model: the model.
        q: ``(n, nq)`` configurations, m and rad.
        x: ``(n, parameters)`` the numbers of the grasps.
        y: ``(n, k)`` numbers in [-1, 1] of the strokes.

    Returns:
        Changes of the command ``(n, nu)``, in the units of the actuators; None if the sampler has
        no strokes.

    Raises:
        ValueError: as raised by the sampler's ``stroke``.
    """
    if not hasattr(sampler, "stroke"):
        return None
    found: Array = sampler.stroke(model, q, x, y)
    return found
