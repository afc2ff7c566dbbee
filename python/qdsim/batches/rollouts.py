"""Successive steps for many samples, computed in C: rollouts, with and without feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import STATUS_NAMES
from qdsim.array_type import Array
from qdsim.batches.feedback import Feedback, feedback_arrays, feedback_leads, feedback_rows
from qdsim.batches.given import courses_of
from qdsim.batches.inputs import (
    Inputs,
    Mocap,
    Wrench,
    broadcast,
    check_errors,
    parameter_rows,
    parameters_of,
    thread_count,
)
from qdsim.batches.marks import BatchMarks, Errors, settle
from qdsim.batches.outputs import Wanted, outputs
from qdsim.batches.steps import WarmStep, bristles_in

__all__ = ["Rollouts", "checked_rollout", "feedback_rollout", "roll", "rollout"]

_FEEDBACK = ("q_nominal", "u_before", "x_gain", "u_gain", "lower", "upper")
_OK = STATUS_NAMES.index("solved")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rollouts(BatchMarks):
    """Results of ``rollout``. A rollout ends at its first failed step and then repeats its last state."""

    q: Array
    """(..., T + 1, nq) configurations, the initial one included."""
    steps_done: npt.NDArray[np.int64]
    """(...) number of steps before the first failed one; T if none failed."""
    commands: Array | None = field(default=None, kw_only=True)
    """(..., T, nu) commands with feedback, NaN after a failed step; None without feedback."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tally()}, steps={self.q.shape[-2] - 1})"


def rollout(
    model: _core.Model,
    q0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | Rollouts | None = None,
    warm_start: bool | _core.Step | _core.Linearization = False,
    feedback: Feedback | None = None,
) -> Rollouts:
    """Compute T successive steps from q0, for every sample of a batch.

    Args:
        model, options, threads, parameters, out: As in ``step_batch``.
        q0: Initial configurations (..., nq).
        u: Commands (..., T, nu). The leading dimensions of all inputs broadcast.
        tau: Applied generalised forces (..., T, nv), N or Nm; with 1 in place of T the same in
            every step.
        wrench: Applied to the bodies, (..., T, body_count, 6) or a mapping from names of bodies to
            (..., T, 6), as in ``step_batch``; with 1 in place of T the same in every step.
        mocap: Poses of the mocap bodies, (..., T, mocap_count, 7) or a mapping from their names to
            (..., T, 7); with 1 in place of T the same in every step.
        errors: As in ``step_batch``; a rollout fails with its first failed step.
        warm_start: Whether each step starts from the solution of the previous one, as ``step`` does
            with warm_start; a Step or Linearization: the same, and the first steps start from this
            one.
        feedback: Dependence of the commands on the state at the beginning of each step; None: none.

    Raises:
        As ``step_batch``; the message names sample and step.

    The step is that of CQDC, section III (formulation 2).
    """
    given = Inputs(u, tau, wrench, mocap, parameters)
    fields = roll(model, q0, None, given, options, threads, errors, out, warm_start, feedback)
    return Rollouts(**fields)


def roll(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike | None,
    inputs: Inputs,
    options: _core._OptionsLike | _core.StepOptions | None,
    threads: int | None,
    errors: Errors,
    out: Mapping[str, npt.NDArray[Any]] | object | None,
    warm_start: bool | WarmStep,
    feedback: Feedback | None,
    bristles: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Compute the fields of rollouts, with "v" and "bristles" if v0 is given, and "commands" with feedback."""
    check_errors(errors)
    begun = courses_of(model, q0, v0, inputs, bristles)
    reaction = feedback_arrays(model, feedback, begun.steps, v0 is not None)
    lead = broadcast(begun.leads() | feedback_leads(reaction))
    arguments = begun.arguments(lead)
    wanted: Wanted = {
        "q": ((*lead, begun.steps + 1, model.nq), np.float64),
        "status": (lead, np.int32),
        "steps_done": (lead, np.int64),
    }
    if v0 is not None:
        wanted["v"] = ((*lead, begun.steps + 1, model.nv), np.float64)
    own = arguments["parameters"] or ()
    read = [array for array in (*arguments.values(), *own) if isinstance(array, np.ndarray)]
    given = outputs(out, wanted, read)
    found = _core._rollout(
        model,
        options,
        **arguments,
        out=given,
        threads=thread_count(threads),
        warm_start=warm_start is not False,
        start=None if isinstance(warm_start, bool) else warm_start,
        feedback=feedback_rows(reaction, lead, begun.steps),
        bristles=begun.bristles(lead),
    )
    caller = "rollout" if v0 is None else "rollout_dynamic"
    settle(caller, model, "q0", arguments["q"], found["status"], found["failure"], lead, errors)
    fields = {name: found[name].reshape(shape) for name, (shape, _) in wanted.items()}
    if v0 is not None:
        fields["bristles"] = bristles_in(model, found, (*lead, begun.steps + 1))
    if feedback is not None:
        fields["commands"] = found["commands"].reshape(*lead, begun.steps, model.nu)
    return {**fields, **given}


def feedback_rollout(
    model: _core.Model,
    q0: Array,
    u: Array,
    options: _core._OptionsLike | _core.StepOptions | None,
    feedback: tuple[Array, Array, Array, Array, Array, Array],
    *,
    threads: int | None = None,
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Roll out commands that depend on the state at the beginning of each step, clipped to bounds.

    The command of step t of a sample is ``u[t] + x_gain[t] (q - q_nominal[t]) + u_gain[t] (previous
    command)``.

    Args:
        model, options, threads: As in ``step_batch``.
        q0: Initial configurations (samples, nq).
        u: Commands (samples, T, nu).
        feedback: q_nominal (T, nq) and the command (nu,) before the first, the same for all
            samples; x_gain (samples, T, nu, nv), u_gain (samples, T, nu, nu), lower and upper
            bounds (samples, T, nu).

    Returns:
        Configurations (samples, T + 1, nq), commands (samples, T, nu), NaN after a failed step, and
        which samples (samples,) have no failed step.
    """
    found = _rolled(
        model, q0, None, u, options, None, dict(zip(_FEEDBACK, feedback)), thread_count(threads)
    )
    return found["q"], found["commands"], found["status"] == _OK


def checked_rollout(
    model: _core.Model,
    q0: Array,
    v0: Array | None,
    u: Array,
    options: _core._OptionsLike | _core.StepOptions | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
    *,
    threads: int,
) -> tuple[Array, Array | None, npt.NDArray[np.int64]]:
    """``rollout``, or ``rollout_dynamic`` if v0 is given, without checks of its arguments, for many
    short calls.

    Args:
        model, options: As in ``step_batch``.
        threads: Number of threads.
        q0: Initial configurations (samples, nq), finite doubles with unit quaternions.
        v0: Initial velocities (samples, nv), finite doubles, of second-order steps; else None.
        u: Commands (samples, T, nu), finite doubles.
        parameters: (samples, ...) each, already checked by ``check_parameters``.

    Returns:
        Configurations (samples, T + 1, nq) and velocities (samples, T + 1, nv) or None, and the
        number of steps (samples,) before the first failed one; after it the last state is repeated.
    """
    own = parameter_rows(parameters_of(model, parameters)) if parameters else None
    found = _rolled(model, q0, v0, u, options, own, None, threads)
    return found["q"], None if v0 is None else found["v"], found["steps_done"]


def _rolled(
    model: _core.Model,
    q0: Array,
    v0: Array | None,
    u: Array,
    options: _core._OptionsLike | _core.StepOptions | None,
    parameters: tuple[Array | None, ...] | None,
    feedback: dict[str, Array] | None,
    threads: int,
) -> Any:
    return _core._rollout(
        model,
        options,
        q=q0,
        v=v0,
        u=u,
        tau=None,
        wrench=None,
        mocap=None,
        parameters=parameters,
        out=None,
        threads=threads,
        warm_start=False,
        start=None,
        feedback=feedback,
        bristles=None,
    )
