"""Many second-order steps at once: batches, rollouts, and products of the rollouts' derivatives.

The machinery is that of ``steps``, ``rollouts`` and ``products``: samples are independent, so
results are bitwise identical for any number of threads, and a failed sample raises an error or is
marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.array_type import Array
from qdsim.batches.feedback import Feedback
from qdsim.batches.given import courses_of
from qdsim.batches.inputs import Inputs, Mocap, Wrench
from qdsim.batches.marks import Errors
from qdsim.batches.pulling import kept_steps, products_of, pull, push
from qdsim.batches.rollouts import Rollouts, roll
from qdsim.batches.steps import BatchSteps, WarmStart, WarmStep, step_all

__all__ = [
    "BatchDynamicSteps",
    "DynamicRolloutPullbacks",
    "DynamicRolloutPushforwards",
    "DynamicRollouts",
    "rollout_dynamic",
    "rollout_dynamic_jvp",
    "rollout_dynamic_vjp",
    "step_dynamic_batch",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchDynamicSteps(BatchSteps):
    """Results of ``step_dynamic_batch``: those of ``step_batch``, and velocities. A failed sample
    keeps its q and v."""

    v_next: Array
    """(..., nv) velocities after the step."""
    h: float = field(kw_only=True)
    """Time step, s."""
    bristles: Array | None = field(default=None, kw_only=True)
    """(..., soft_pair_count, 6) stretches after the step, as in ``DynamicStep``; None unless
    patch_law="bristle"."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicRollouts(Rollouts):
    """Results of ``rollout_dynamic``. A rollout ends at its first failed step and then repeats its last state."""

    v: Array
    """(..., T + 1, nv) velocities, the initial one included."""
    bristles: Array | None = field(default=None, kw_only=True)
    """(..., T + 1, soft_pair_count, 6) stretches, the initial one included; None unless
    patch_law="bristle"."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicRolloutPullbacks(DynamicRollouts):
    """Results of ``rollout_dynamic_vjp``: those of ``rollout_dynamic``, and the gradients."""

    gradients: Mapping[str, Array]
    """From the names in wrt to gradients of the sum over t of q_cotangent[t] . q[t] +
    v_cotangent[t] . v[t]: "q" and "v" (..., nv) with respect to the initial state, the others as in
    ``RolloutPullbacks``."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) whether the derivatives of all steps are exact; False for failed samples."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicRolloutPushforwards(DynamicRollouts):
    """Results of ``rollout_dynamic_jvp``: those of ``rollout_dynamic``, and the tangents."""

    tangent: Array
    """(..., T + 1, nv) the change of every configuration, NaN for failed samples."""
    v_tangent: Array
    """(..., T + 1, nv) the change of every velocity, NaN for failed samples."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) as in ``DynamicRolloutPullbacks``."""


def step_dynamic_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchDynamicSteps | None = None,
    warm_start: WarmStart | None = None,
    bristles: npt.ArrayLike | None = None,
) -> BatchDynamicSteps:
    """Compute the second-order step of every sample of a batch.

    This is ``step_dynamic`` over the leading dimensions of q, v, u, tau and wrench.

    Args:
        v: Velocities (..., nv), m/s or rad/s.
        options: qdsim.DynamicOptions, None for the defaults.
        bristles: Stretches (..., soft_pair_count, 6), m and rad, as in ``step_dynamic``: the
            ``bristles`` of the previous batch. None: zero. No effect unless patch_law="bristle".
        model, q, u, tau, wrench, mocap, threads, errors, contacts, parameters, out, warm_start: As
            in ``step_batch``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``step_batch``.

    The step is that of Anitescu and Hart 2003 (formulation 7).
    """
    given = Inputs(u, tau, wrench, mocap, parameters)
    fields = step_all(
        model, q, v, given, options, threads, errors, contacts, out, warm_start, bristles
    )
    h = (_core.DYNAMIC_DEFAULTS if options is None else options).h
    return BatchDynamicSteps(**fields, h=h)


def rollout_dynamic(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | DynamicRollouts | None = None,
    warm_start: bool | WarmStep = False,
    feedback: Feedback | None = None,
    bristles: npt.ArrayLike | None = None,
) -> DynamicRollouts:
    """Compute T successive second-order steps from (q0, v0), for every sample of a batch.

    Args:
        v0: Initial velocities (..., nv), m/s or rad/s.
        options: qdsim.DynamicOptions, None for the defaults.
        feedback: Dependence of the commands on the state at the beginning of each step; None: none.
        bristles: Initial stretches (..., soft_pair_count, 6), m and rad, as in
            ``step_dynamic_batch``.
        model, q0, u, tau, wrench, mocap, threads, errors, parameters, out, warm_start: As in
            ``rollout``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``rollout``.

    The step is that of Anitescu and Hart 2003 (formulation 7).
    """
    given = Inputs(u, tau, wrench, mocap, parameters)
    fields = roll(
        model, q0, v0, given, options, threads, errors, out, warm_start, feedback, bristles
    )
    return DynamicRollouts(**fields)


def rollout_dynamic_vjp(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    q_cotangent: npt.ArrayLike | None = None,
    v_cotangent: npt.ArrayLike | None = None,
    wrt: Iterable[str] = ("q", "v", "u"),
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    checkpoint: int | None = None,
    feedback: Feedback | None = None,
) -> DynamicRolloutPullbacks:
    """Roll out second-order steps from (q0, v0), and compute gradients for cotangents of all states
    (T = 1: one step).

    Args:
        q_cotangent, v_cotangent: (..., T + 1, nv) of every configuration, in tangent coordinates
            (per m or rad), and of every velocity (per m/s or rad/s), the initial ones included; one
            of them may be None (zero).
        wrt: Names of arguments of a step except h: "q" and "v" are the initial state of the
            rollout.
        checkpoint: As in ``rollout_vjp``.
        model, q0, v0, u, options, tau, wrench, mocap, threads, errors, parameters, feedback: As in
            ``rollout_dynamic``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``rollout``.

    The step is that of Anitescu and Hart 2003 (formulation 7); its derivatives are exact
    (formulation 4).
    """
    if q_cotangent is None and v_cotangent is None:
        raise ValueError("v_cotangent: one of the two cotangents must be given")
    given = courses_of(model, q0, v0, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, "tangent", "step", None, feedback)
    kept = kept_steps(checkpoint)
    of_q = np.zeros((given.steps + 1, model.nv)) if q_cotangent is None else q_cotangent
    found = pull(products, of_q, wrt, threads, errors, kept, "rollout_dynamic", v_cotangent)
    return DynamicRolloutPullbacks(**found)


def rollout_dynamic_jvp(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tangents: Mapping[str, npt.ArrayLike],
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    feedback: Feedback | None = None,
) -> DynamicRolloutPushforwards:
    """Roll out second-order steps from (q0, v0), and compute the tangents of all states (T = 1: one
    step).

    Args:
        tangents: Directions by the names of arguments: "q" (..., nv), m or rad, "v" (..., nv), m/s
            or rad/s, the others as in ``rollout_jvp``.
        model, q0, v0, u, options, tau, wrench, mocap, threads, errors, parameters, feedback: As in
            ``rollout_dynamic``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``rollout``.

    The step is that of Anitescu and Hart 2003 (formulation 7); its derivatives are exact
    (formulation 4).
    """
    given = courses_of(model, q0, v0, Inputs(u, tau, wrench, mocap, parameters))
    products = products_of(given, options, "tangent", "step", None, feedback)
    return DynamicRolloutPushforwards(
        **push(products, tangents, threads, errors, "rollout_dynamic")
    )
