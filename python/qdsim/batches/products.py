"""Products of derivatives with vectors for many steps and rollouts at once, computed in C.

``vjp_batch`` and ``jvp_batch`` are ``vjp`` and ``jvp`` over the leading dimensions of a batch.
``rollout_vjp`` and ``rollout_jvp`` are the vector-Jacobian and Jacobian-vector products of T
successive steps: reverse-mode and forward-mode differentiation of a rollout, without A and B.
Threads share the samples as in ``step_batch``, and results do not depend on their number. Steps
that keep their factorisation agree with those of ``rollout`` to rounding, but need not be bitwise
identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.array_type import Array
from qdsim.batches.feedback import Feedback
from qdsim.batches.given import courses_of, one_step_of
from qdsim.batches.inputs import Inputs, Mocap, Wrench, numbers
from qdsim.batches.marks import BatchMarks, Errors
from qdsim.batches.pulling import OF_STEPS, Products, kept_steps, products_of, pull, push
from qdsim.batches.rollouts import Rollouts
from qdsim.step import Options

__all__ = [
    "BatchPullbacks",
    "BatchPushforwards",
    "RolloutPullbacks",
    "RolloutPushforwards",
    "jvp_batch",
    "rollout_jvp",
    "rollout_vjp",
    "vjp_batch",
]

_Coordinates = Literal["tangent", "ambient"]
_Derivative = Literal["step", "smoothed"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchPullbacks(BatchMarks):
    """Results of ``vjp_batch``; (...) stands for the leading dimensions of the batch."""

    q_next: Array
    """(..., nq) configurations after the step."""
    gradients: Mapping[str, Array]
    """From the names in wrt to the gradients of cotangent . q_next, (..., *shape of the
    argument), NaN for failed samples. Gradients are per sample: those of broadcast arguments are
    not summed."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False if the derivative is that of the central path, or the sample failed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchPushforwards(BatchMarks):
    """Results of ``jvp_batch``; (...) stands for the leading dimensions of the batch."""

    q_next: Array
    """(..., nq) configurations after the step."""
    tangent: Array
    """(..., nv), or (..., nq) in ambient coordinates: the change of q_next, NaN for failed
    samples."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) as in ``BatchPullbacks``."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RolloutPullbacks(Rollouts):
    """Results of ``rollout_vjp``: those of ``rollout``, and the gradients."""

    gradients: Mapping[str, Array]
    """From the names in wrt to gradients of the sum over t of cotangent[t] . q[t]: "q" (..., nv),
    or (..., nq) in ambient coordinates, with respect to the initial configuration; "u", "tau",
    "wrench" and "mocap" (..., T, *shape), with respect to the inputs of every step; parameters
    (..., *shape), of all steps together. NaN for failed samples."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) whether the derivatives of all steps are exact; False for failed samples."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RolloutPushforwards(Rollouts):
    """Results of ``rollout_jvp``: those of ``rollout``, and the tangents."""

    tangent: Array
    """(..., T + 1, nv), or (..., T + 1, nq) in ambient coordinates: the change of every
    configuration, NaN for failed samples."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) as in ``RolloutPullbacks``."""


def vjp_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options | None = None,
    *,
    cotangent: npt.ArrayLike,
    wrt: Iterable[str] = ("q", "u"),
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
) -> BatchPullbacks:
    """Compute the step of every sample of a batch, and the gradients for cotangents of q_next.

    Args:
        model, q, u, tau, wrench, mocap, threads, errors, parameters: As in ``step_batch``.
        options: qdsim.Options, None for the defaults.
        cotangent: (..., nv) in the tangent coordinates at q_next, per m or rad; ambient: (..., nq).
            Its leading dimensions broadcast with the others.
        wrt: Names of arguments of the step, as in ``vjp``.
        coordinates: "tangent": with respect to displacements of q, nv numbers. "ambient": the
            derivatives of f(normalize(q)) with respect to the nq numbers of q, for libraries
            without manifolds. The length of a quaternion has no effect, so the gradient is
            orthogonal to it.
        derivative: "step": that of the step itself. "smoothed": that of the log-barrier step with
            weight ``kappa`` at the same q and u, in place of the exact step's own: a gradient that
            sees contacts before they happen.
        kappa: Weight (1/J, > 0) of "smoothed".

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``step_batch``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    given = one_step_of(model, q, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, coordinates, derivative, kappa)
    rows = _after_step(products, cotangent)
    found = pull(products, rows, wrt, threads, errors, 0, "vjp_batch")
    return BatchPullbacks(
        status=found["status"],
        q_next=found["q"][..., 1, :],
        gradients={name: _of_one_step(name, array) for name, array in found["gradients"].items()},
        derivative_exact=found["derivative_exact"],
    )


def jvp_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options | None = None,
    *,
    tangents: Mapping[str, npt.ArrayLike],
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
) -> BatchPushforwards:
    """Compute the step of every sample of a batch, and the changes of q_next for tangents of its
    arguments.

    Args:
        tangents: Directions by the names of arguments, (..., *shape) in the argument's unit ("q":
            (..., nv), m or rad; ambient: (..., nq)), whose leading dimensions broadcast with the
            others.
        model, q, u, options, tau, wrench, mocap, threads: As in ``vjp_batch``.
        errors, parameters, coordinates, derivative, kappa: As in ``vjp_batch``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``step_batch``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    given = one_step_of(model, q, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, coordinates, derivative, kappa)
    found = push(products, tangents, threads, errors, "jvp_batch", one_step=True)
    return BatchPushforwards(
        status=found["status"],
        q_next=found["q"][..., 1, :],
        tangent=found["tangent"][..., 1, :],
        derivative_exact=found["derivative_exact"],
    )


def rollout_vjp(
    model: _core.Model,
    q0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options | None = None,
    *,
    cotangent: npt.ArrayLike | Callable[[Array], npt.ArrayLike],
    wrt: Iterable[str] = ("q", "u"),
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
    checkpoint: int | None = None,
    feedback: Feedback | None = None,
) -> RolloutPullbacks:
    """Compute T successive steps from q0, and the gradients for cotangents of all configurations,
    for every sample.

    Args:
        model, q0, u, tau, wrench, mocap, threads, errors, parameters, feedback: As in ``rollout``.
        cotangent: (..., T + 1, nv), per m or rad, or (..., T + 1, nq) in ambient coordinates, of
            every configuration, the initial one included. Or a function that computes it from the
            configurations (..., T + 1, nq) of the finished rollout, called once.
        options, wrt, coordinates, derivative, kappa: As in ``vjp_batch``.
        checkpoint: Number of steps, counted from the last one, whose factorisations are kept; the
            others are recomputed in the reverse pass. None: as many as fit into 128 MB per thread.
            If the derivative is smoothed or the cotangent is a function, none are kept. The
            gradients are the same to rounding.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``rollout``.

    Example:
        >>> found = qdsim.rollout_vjp(model, q0, u, cotangent=lambda q: 2.0 * (q - goal))
        >>> u -= rate * found.gradients["u"]

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    given = courses_of(model, q0, None, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, coordinates, derivative, kappa, feedback)
    kept = kept_steps(checkpoint)
    found = pull(products, cotangent, wrt, threads, errors, kept, "rollout")
    return RolloutPullbacks(**found)


def rollout_jvp(
    model: _core.Model,
    q0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options | None = None,
    *,
    tangents: Mapping[str, npt.ArrayLike],
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
    feedback: Feedback | None = None,
) -> RolloutPushforwards:
    """Compute T successive steps from q0, and the tangents of all configurations, for every sample.

    Args:
        tangents: Directions by the names of arguments, in their units: "q" (..., nv), m or rad, or
            (..., nq) in ambient coordinates; "u", "tau", "wrench" and "mocap" (..., T, *shape);
            parameters (..., *shape).
        model, q0, u, tau, wrench, mocap, threads, errors, parameters, feedback: As in ``rollout``.
        options, coordinates, derivative, kappa: As in ``vjp_batch``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``rollout``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    given = courses_of(model, q0, None, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, coordinates, derivative, kappa, feedback)
    return RolloutPushforwards(**push(products, tangents, threads, errors, "rollout"))


def _after_step(products: Products, cotangent: npt.ArrayLike) -> Array:
    """Turn the cotangent of q_next into that of a rollout of one step; the initial state has cotangent zero."""
    array = numbers("cotangent", cotangent, products.shape("q"))
    return np.stack([np.zeros_like(array), array], axis=-2)


def _of_one_step(name: str, gradient: Array) -> Array:
    if name not in OF_STEPS:
        return gradient
    axis = gradient.ndim - (3 if name in ("wrench", "mocap") else 2)
    return gradient.reshape(*gradient.shape[:axis], *gradient.shape[axis + 1 :])
