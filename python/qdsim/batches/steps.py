"""Many steps of one model at once: arrays in, arrays out, on all cores.

``step_batch`` and ``linearize_batch`` are equivalent to a loop over ``step`` and ``linearize``, and
``rollout`` to a loop over time, with bitwise identical results. The loop runs in C without the GIL,
on threads that are kept between calls. Samples are independent, so results do not depend on the
number of threads.

A signal whose handler raises (Ctrl-C) ends a batch of the main thread at once; arrays of the caller
(``out``) are then partly filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import ARGUMENT_NAMES
from qdsim.arguments import flag
from qdsim.array_type import Array
from qdsim.batches.inputs import (
    Inputs,
    Mocap,
    Wrench,
    check_errors,
    parameter_rows,
    rows_of,
    thread_count,
    wrt_names,
)
from qdsim.batches.marks import BatchMarks, Errors, argument_shape, settle
from qdsim.batches.outputs import Wanted, outputs

__all__ = [
    "BatchLinearizations",
    "BatchSteps",
    "bristles_in",
    "linearize_batch",
    "step_all",
    "step_batch",
]

WarmStep = _core.Step | _core.DynamicStep | _core.Linearization
"""A step from which others may start."""

WarmStart = Union[WarmStep, "BatchSteps"]
"""Starts of the steps of a batch."""

_DERIVATIVES = {name: {"q": "A", "u": "B"}.get(name, name) for name in ARGUMENT_NAMES}
"""Names of the derivatives in the core, by argument."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchSteps(BatchMarks):
    """Results of ``step_batch``; (...) stands for the leading dimensions of the batch.

    A failed sample (``status`` not 0) keeps its ``q`` and has neither forces nor contacts.
    """

    q_next: Array
    """(..., nq) configurations after the step."""
    delta: Array
    """(..., nv) displacements, q_next = q ⊞ delta."""
    limit_force: Array
    """(..., nv) generalised forces of the joint limits, N or Nm."""
    constraint_force: Array
    """(..., constraint_count, 6) forces of the bilateral constraints, as in ``Step``."""
    tendon_force: Array
    """(..., tendon_count) forces along the tendons, as in ``Step``."""
    softened: npt.NDArray[np.int32]
    """(...) number of violated rows, as ``SolverInfo.softened``."""
    actuator_state: Array
    """(..., 2, nu) data of ``actuator_force`` and ``actuator_limited``."""
    contact_start: npt.NDArray[np.int64] | None
    """(samples + 1) sample i, counted in C order, has the contacts from contact_start[i] up to
    contact_start[i + 1]; None without contacts."""
    contacts: npt.NDArray[np.void] | None
    """Contacts of all samples in a row, with the fields of ``Step.contacts``; None with
    contacts=False."""

    @property
    def actuator_force(self) -> Array:
        """(..., nu) forces of the actuators on their joints, N or Nm, as in ``Step``."""
        return self.actuator_state[..., 0, :]

    @property
    def actuator_limited(self) -> npt.NDArray[np.bool_]:
        """(..., nu) whether they are at their limits, as in ``Step``."""
        return np.not_equal(self.actuator_state[..., 1, :], 0.0)

    def contacts_of(self, *index: int) -> npt.NDArray[np.void]:
        """Contacts of the sample at an index, e.g. ``contacts_of(3)`` or ``contacts_of(1, 2)``.

        Args:
            *index: index of the sample, one integer per axis of the batch.

        Raises:
            ValueError: if the batch was made with contacts=False.
            IndexError: if there is no such sample.
        """
        if self.contacts is None or self.contact_start is None:
            raise ValueError("contacts_of: the batch was made with contacts=False")
        if len(index) != self.status.ndim:
            raise IndexError(f"contacts_of: expected {self.status.ndim} indices, got {len(index)}")
        sample = np.arange(self.status.size).reshape(self.status.shape)[index]
        return self.contacts[self.contact_start[sample] : self.contact_start[sample + 1]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchLinearizations(BatchSteps):
    """Results of ``linearize_batch``: those of ``step_batch``, and the derivatives."""

    A: Array | None
    """(..., nv, nv) dq_next/dq in tangent coordinates, NaN for failed samples; None if not in
    wrt."""
    B: Array | None
    """(..., nv, nu) dq_next/du in tangent coordinates, NaN for failed samples; None if not in
    wrt."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False if the derivative is that of the central path, or the sample failed."""
    derivatives: Mapping[str, Array]
    """From the names in wrt to derivatives of q_next, (..., nv, *shape of the argument), as in
    ``Linearization.derivatives``; "q" is A and "u" is B."""


def step_batch(
    model: _core.Model,
    q: npt.ArrayLike,
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
    out: Mapping[str, npt.NDArray[Any]] | BatchSteps | None = None,
    warm_start: WarmStart | None = None,
) -> BatchSteps:
    """Compute the step of every sample of a batch: ``step`` over the leading dimensions of q, u,
    tau and wrench.

    Args:
        model: The model.
        q: Configurations (..., nq).
        u: Commands (..., nu), in the units of the actuators. Leading dimensions broadcast.
        options: qdsim.Options, None for the defaults.
        tau: Applied generalised forces (..., nv), N or Nm.
        wrench: Applied to the bodies, (..., body_count, 6), or a mapping from names of bodies to
            (..., 6): force N at the centre of mass, then moment Nm, world axes.
        mocap: Poses of the mocap bodies, (..., mocap_count, 7), or a mapping from their names to
            (..., 7): position m, quaternion w x y z. Others keep their poses of the model.
        threads: Number of threads, this one included, 1 to 1024; None: as many as the process has
            cores. No effect on the results.
        errors: What happens if samples fail. "raise": SolverError that names the first one, after
            all of them have run. "mark": they get a ``status``. Invalid arguments always raise.
        contacts: Whether to keep the contacts (224 bytes each).
        parameters: Values per sample in place of the model's: from names of ``model.parameters`` to
            arrays of their shapes, with leading dimensions that broadcast with the others. Results
            are those of models made with these values, ``model.with_parameters``.
        out: Arrays to write results into: a mapping from names of fields of the result to arrays of
            exactly their shapes and types, C-contiguous, that share no memory with each other or
            with an input; or an earlier result, whose arrays are reused. Other fields are new
            arrays, as contacts always are. The arrays are also filled if the batch raises.
        warm_start: Where the solver starts, as in ``step``: a Step or Linearization for all samples
            (samples around one nominal point), or the result of an earlier batch with contacts and
            the same leading dimensions, for each sample its own. None: a cold start.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it, and the sample if
            only one is invalid.
        SolverError: with the ``info`` of the first failed sample, if errors is "raise".
        MemoryError: if memory is exhausted.

    The step is that of CQDC, section III (formulation 2).
    """
    given = Inputs(u, tau, wrench, mocap, parameters)
    fields = step_all(model, q, None, given, options, threads, errors, contacts, out, warm_start)
    return BatchSteps(**fields)


def step_all(
    model: _core.Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None,
    inputs: Inputs,
    options: _core._OptionsLike | _core.StepOptions | None,
    threads: int | None,
    errors: Errors,
    contacts: bool,
    out: Mapping[str, npt.NDArray[Any]] | object | None,
    warm_start: WarmStart | None,
    bristles: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Compute the fields of a batch of steps, with "v_next" and "bristles" if v is given."""
    check_errors(errors)
    lead, rows = rows_of(model, q, inputs, v, bristles)
    given = outputs(out, _wanted(model, lead, None, v is not None), rows.values())
    fields = _run(model, options, lead, rows, given, threads, errors, contacts, None, warm_start)
    return {**fields, **given}


def linearize_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    wrt: Iterable[str] = ("q", "u"),
    threads: int | None = None,
    errors: Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchLinearizations | None = None,
    warm_start: WarmStart | None = None,
) -> BatchLinearizations:
    """Linearise the step at every sample of a batch: ``linearize`` over the leading dimensions
    (CQDC §III-C).

    Args:
        q: Configurations (..., nq).
        u: Commands (..., nu), in the units of the actuators.
        wrt: Names of arguments of the step: "q" gives A (..., nv, nv), "u" gives B (..., nv, nu);
            None for others. "tau", "wrench", "mocap" and the names in ``model.parameters``
            ("pair_friction", "geom_size", ...) give entries of ``derivatives``, as in
            ``linearize``, in m and rad of q_next per unit of the argument. ``out`` uses the same
            names.
        model, options, tau, wrench, mocap, threads, errors, contacts, parameters, out, warm_start:
            As in ``step_batch``.

    Raises:
        TypeError, ValueError, SolverError, MemoryError: As ``step_batch``.

    The derivatives are those of ``linearize``, exact (formulation 4; CQDC, section III).
    """
    check_errors(errors)
    names = wrt_names(wrt)
    lead, rows = rows_of(model, q, Inputs(u, tau, wrench, mocap, parameters))
    given = outputs(out, _wanted(model, lead, names), rows.values())
    fields = _run(model, options, lead, rows, given, threads, errors, contacts, names, warm_start)
    fields.update(given)
    found = {name: fields.pop(field) for name, field in _DERIVATIVES.items()}
    return BatchLinearizations(
        **fields,
        A=found["q"],
        B=found["u"],
        derivatives={name: found[name] for name in names},
    )


# ---------------------------------------------------------------- results


def _wanted(
    model: _core.Model,
    lead: tuple[int, ...],
    wrt: tuple[str, ...] | None = None,
    dynamic: bool = False,
) -> Wanted:
    """Return shapes and types of the results of steps; with ``wrt``, also of the derivatives."""
    nq, nv = model.nq, model.nv
    wanted: Wanted = {
        "q_next": ((*lead, nq), np.float64),
        "delta": ((*lead, nv), np.float64),
        "limit_force": ((*lead, nv), np.float64),
        "constraint_force": ((*lead, model.constraint_count, 6), np.float64),
        "tendon_force": ((*lead, model.tendon_count), np.float64),
        "softened": (lead, np.int32),
        "actuator_state": ((*lead, 2, model.nu), np.float64),
        "status": (lead, np.int32),
    }
    if dynamic:
        wanted["v_next"] = ((*lead, nv), np.float64)
    if wrt is not None:
        wanted["derivative_exact"] = (lead, np.bool_)
        for name in wrt:
            shape = (*lead, nv, *argument_shape(model, name))
            wanted[_DERIVATIVES[name]] = (shape, np.float64)
    return wanted


def bristles_in(
    model: _core.Model, found: Mapping[str, Any], lead: tuple[int, ...]
) -> Array | None:
    """Return the bristle stretches among the results, or None."""
    own = found.get("bristles")
    return None if own is None else own.reshape(*lead, model.soft_pair_count, 6)


def _start(
    warm_start: WarmStart | None, lead: tuple[int, ...]
) -> WarmStep | tuple[npt.NDArray[Any], ...] | None:
    """Return the starting points of the solver in the form of the core."""
    if warm_start is None or isinstance(
        warm_start, (_core.Step, _core.DynamicStep, _core.Linearization)
    ):
        return warm_start
    if not isinstance(warm_start, BatchSteps):
        raise TypeError(
            "warm_start: expected a Step, a Linearization, the result of a batch or None, got "
            f"{type(warm_start).__name__}"
        )
    if warm_start.contacts is None or warm_start.contact_start is None:
        raise ValueError("warm_start: the batch was made with contacts=False")
    if warm_start.status.shape != lead:
        raise ValueError(
            f"warm_start: has leading dimensions {warm_start.status.shape}, the batch {lead}"
        )
    return (
        warm_start.contact_start,
        warm_start.contacts,
        np.ascontiguousarray(warm_start.delta),
        np.ascontiguousarray(warm_start.limit_force),
        np.ascontiguousarray(warm_start.constraint_force),
        np.ascontiguousarray(warm_start.tendon_force),
    )


def _run(
    model: _core.Model,
    options: _core._OptionsLike | _core.StepOptions | None,
    lead: tuple[int, ...],
    rows: dict[str, Array],
    given: dict[str, npt.NDArray[Any]],
    threads: int | None,
    errors: Errors,
    contacts: bool,
    wrt: tuple[str, ...] | None,
    warm_start: WarmStart | None,
) -> dict[str, Any]:
    """Compute steps (wrt None) or linearizations in the core; return their results by name."""
    mask = -1 if wrt is None else sum(1 << ARGUMENT_NAMES.index(name) for name in wrt)
    found = _core._batch(
        model,
        options,
        q=rows["q"],
        v=rows.get("v"),
        u=rows["u"],
        tau=rows.get("tau"),
        wrench=rows.get("wrench"),
        mocap=rows.get("mocap"),
        parameters=parameter_rows(rows),
        out=given,
        threads=thread_count(threads),
        wrt=mask,
        contacts=flag("contacts", contacts),
        warm_start=_start(warm_start, lead),
        bristles=rows.get("bristles"),
    )
    dynamic = "v" in rows
    caller = "step_dynamic_batch" if dynamic else "step_batch" if wrt is None else "linearize_batch"
    settle(caller, model, "q", rows["q"], found["status"], found["failure"], lead, errors)
    fields = {name: found.get(name) for name in ("contact_start", "contacts")}
    for name, (shape, _) in _wanted(model, lead, wrt, dynamic).items():
        fields[name] = found[name].reshape(shape)
    if dynamic:
        fields["bristles"] = bristles_in(model, found, lead)
    return fields if wrt is None else {**dict.fromkeys(_DERIVATIVES.values()), **fields}
