"""Many steps of one model at once: arrays in, arrays out, on all cores.

`step_batch` and `linearize_batch` do what a loop over `step` and `linearize` does, and `rollout` what a
loop over time does, with the same bits; the loop runs in C, on threads that are kept between calls, without
the interpreter lock. Samples do not know each other, so results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import PARAMETER_NAMES, STATUS_NAMES
from .batch_out import Wanted, flat_outputs, outputs

__all__ = [
    "BatchLinearizations",
    "BatchSteps",
    "Rollouts",
    "linearize_batch",
    "rollout",
    "step_batch",
]

_Vector = npt.NDArray[np.float64]
_Errors = Literal["raise", "mark"]
_PARAMETER = "parameters[{!r}]"
# What can be written into arrays of the caller, in the core's order.
_BATCH_OUT: tuple[str, ...] = (
    *("q_next", "delta", "limit_force", "constraint_force", "status"),
    *("derivative_exact", "A", "B"),
)
_ROLLOUT_OUT = ("q", "status", "steps_done")
_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_OK = STATUS_NAMES.index("solved")
_BAD_ARGUMENT = STATUS_NAMES.index("bad argument")
_OUT_OF_MEMORY = STATUS_NAMES.index("out of memory")
_MOST_THREADS = 1024  # QD_THREADS_MAX of qdsim.h


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Marked:
    status: npt.NDArray[np.int32]
    """(...) codes; 0 where the sample was solved, else an index of `STATUS_NAMES`."""

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """(...) Whether the sample was solved."""
        return np.equal(self.status, _OK)

    @property
    def status_names(self) -> npt.NDArray[np.str_]:
        """(...) The status as a word, as in `SolverInfo.status`."""
        return np.array(STATUS_NAMES)[self.status]

    def _tally(self) -> str:
        failed = self.status.size - int(np.count_nonzero(self.ok))
        return f"shape={self.status.shape}, failed={failed}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchSteps(_Marked):
    """Results of `step_batch`; (...) stands for the leading dimensions of the batch.

    A sample that failed (`status` not 0) keeps its `q`, does not move and has neither forces nor contacts.
    """

    q_next: _Vector
    """(..., nq) configurations after the step."""
    delta: _Vector
    """(..., nv) displacements, q_next = q ⊞ delta."""
    limit_force: _Vector
    """(..., nv) generalised forces of the joint limits, N or Nm."""
    constraint_force: _Vector
    """(..., constraint_count, 6) forces of the bilateral constraints, as in `Step`."""
    contact_start: npt.NDArray[np.int64] | None
    """(samples + 1) sample i, counted in C order, has the contacts from contact_start[i] up to
    contact_start[i + 1]; None if contacts were not asked for."""
    contacts: npt.NDArray[np.void] | None
    """Contacts of all samples in a row, with the fields of `Step.contacts`; None if not asked for."""

    def contacts_of(self, *index: int) -> npt.NDArray[np.void]:
        """Contacts of the sample at this index, e.g. `contacts_of(3)` or `contacts_of(1, 2)`.

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tally()})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchLinearizations(BatchSteps):
    """Results of `linearize_batch`: those of `step_batch`, and the derivatives."""

    A: _Vector | None
    """(..., nv, nv) dq_next/dq in tangent coordinates, NaN where a sample failed; None if not in wrt."""
    B: _Vector | None
    """(..., nv, nu) dq_next/du in tangent coordinates, NaN where a sample failed; None if not in wrt."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False where the path's derivative stands in for the exact one, or the sample failed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rollouts(_Marked):
    """Results of `rollout`. A rollout ends at its first failed step and then repeats its last state."""

    q: _Vector
    """(..., T + 1, nq) configurations, the first one included."""
    steps_done: npt.NDArray[np.int64]
    """(...) steps before the first one that failed; T where none did."""

    def __repr__(self) -> str:
        return f"Rollouts({self._tally()}, steps={self.q.shape[-2] - 1})"


def step_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    threads: int | None = None,
    errors: _Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchSteps | None = None,
) -> BatchSteps:
    """Step every sample of a batch: `step` over the leading dimensions of q, u, tau and wrench.

    Args:
        model: The model.
        q: Configurations (..., nq).
        u: Commands (..., nu), in the units of the actuators. Leading dimensions broadcast.
        options: qdsim.Options, None for the defaults.
        tau: Applied generalised forces (..., nv), N or Nm.
        wrench: Applied to the bodies, (..., body_count, 6), or a mapping from names of bodies to (..., 6): force
            N at the centre of mass, then moment Nm, world axes.
        threads: How many threads take part, this one included, 1 to 1024; None: as many as the process has
            cores. Without effect on the results.
        errors: What happens if samples fail. "raise": SolverError that names the first one, after all of
            them have run. "mark": they get a `status`. Bad arguments always raise.
        contacts: Whether to keep the contacts (216 bytes each).
        parameters: Values of the samples' own in place of the model's: from names of `model.parameters` to
            arrays of their shapes, with leading dimensions in front that broadcast with the others. Results
            are those of models made with these values, `model.with_parameters`.
        out: Arrays to write results into: a mapping from names of fields of the result to arrays of exactly
            their shapes and types, C-contiguous, that share no memory with each other or with an input; or an
            earlier result, whose arrays are used again. What it does not name is new, as contacts always are.
            They are filled where the batch raises, too.

    Raises:
        TypeError, ValueError: naming the argument, and the sample where it is one that is wrong.
        SolverError: with the `info` of the first failed sample, if errors is "raise".
        MemoryError: if memory is exhausted.
    """
    _check_errors(errors)
    lead, rows = _rows(model, q, u, tau, wrench, parameters)
    wanted = _wanted(model, lead)
    given = outputs(out, wanted, rows.values())
    found = _core._batch(
        model,
        options,
        rows["q"],
        rows["u"],
        rows.get("tau"),
        rows.get("wrench"),
        _parameter_rows(rows),
        flat_outputs(given, _BATCH_OUT, lead),
        _thread_count(threads),
        derivative=False,
        with_A=False,
        with_B=False,
        contacts=contacts,
    )
    _settle("step_batch", model, "q", rows["q"], found[4], found[10], lead, errors)
    return BatchSteps(**{**_common(found, lead), **given})


def linearize_batch(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    wrt: Iterable[str] = ("q", "u"),
    threads: int | None = None,
    errors: _Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchLinearizations | None = None,
) -> BatchLinearizations:
    """Linearize the step at every sample of a batch: `linearize` over the leading dimensions.

    Args:
        wrt: Which of "q" (A) and "u" (B) are wanted; the other is None.
        model, q, u, options, tau, wrench, threads, errors, contacts, parameters, out: As in `step_batch`.

    Raises:
        As `step_batch`.
    """
    _check_errors(errors)
    with_A, with_B = _wrt(wrt)
    lead, rows = _rows(model, q, u, tau, wrench, parameters)
    wanted = _wanted(model, lead, "derivative_exact", *"A" * with_A, *"B" * with_B)
    given = outputs(out, wanted, rows.values())
    found = _core._batch(
        model,
        options,
        rows["q"],
        rows["u"],
        rows.get("tau"),
        rows.get("wrench"),
        _parameter_rows(rows),
        flat_outputs(given, _BATCH_OUT, lead),
        _thread_count(threads),
        derivative=True,
        with_A=with_A,
        with_B=with_B,
        contacts=contacts,
    )
    _settle("linearize_batch", model, "q", rows["q"], found[4], found[10], lead, errors)
    exact, A, B = found[5], found[6], found[7]
    assert exact is not None
    fields = {
        **_common(found, lead),
        "derivative_exact": exact.reshape(lead),
        "A": None if A is None else A.reshape(*lead, *A.shape[1:]),
        "B": None if B is None else B.reshape(*lead, *B.shape[1:]),
    }
    return BatchLinearizations(**{**fields, **given})


def rollout(
    model: _core.Model,
    q0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    threads: int | None = None,
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | Rollouts | None = None,
) -> Rollouts:
    """Step T times in a row from q0, for every sample of a batch.

    Args:
        model, options, threads, parameters, out: As in `step_batch`.
        q0: First configurations (..., nq).
        u: Commands (..., T, nu). The leading dimensions of all inputs broadcast.
        tau: Applied generalised forces (..., T, nv), N or Nm; with 1 in place of T the same in every step.
        wrench: Applied to the bodies, (..., T, body_count, 6) or a mapping from names of bodies to (..., T, 6), as
            in `step_batch`; with 1 in place of T the same in every step.
        errors: As in `step_batch`; a rollout fails with its first failed step.

    Raises:
        As `step_batch`; the message names sample and step.
    """
    _check_errors(errors)
    _check_model(model)
    start = _numbers("q0", q0, (model.nq,))
    courses = {"u": _numbers("u", u, (-1, model.nu))}
    step_count = courses["u"].shape[-2]
    if tau is not None:
        courses["tau"] = _every_step("tau", _numbers("tau", tau, (-1, model.nv)), step_count)
    if wrench is not None:
        courses["wrench"] = _every_step("wrench", _wrenches(model, wrench, (-1,)), step_count)
    values = _parameters(model, parameters)
    leads = {name: course.shape[:-2] for name, course in courses.items()}
    leads.update({name: array.shape[:-1] for name, array in values.items()})
    lead = _broadcast({"q0": start.shape[:-1], **leads})
    q_rows = _flat(start, lead, 1)
    rows = {name: _flat(course, lead, 2) for name, course in courses.items()}
    for name, flat in {"q0": q_rows, **rows}.items():
        _check_finite(name, flat, lead)
    own = {name: _flat(array, lead, 1) for name, array in values.items()}
    _check_parameters(model, own, lead)
    wanted: Wanted = {
        "q": ((*lead, step_count + 1, model.nq), np.float64),
        "status": (lead, np.int32),
        "steps_done": (lead, np.int64),
    }
    given = outputs(out, wanted, (q_rows, *rows.values(), *own.values()))
    q, status, steps_done, failure = _core._rollout(
        model,
        options,
        q_rows,
        rows["u"],
        rows.get("tau"),
        rows.get("wrench"),
        _parameter_rows(own),
        flat_outputs(given, _ROLLOUT_OUT, lead),
        _thread_count(threads),
    )
    _settle("rollout", model, "q0", q_rows, status, failure, lead, errors)
    fields: dict[str, Any] = {
        "q": q.reshape(*lead, *q.shape[1:]),
        "status": status.reshape(lead),
        "steps_done": steps_done.reshape(lead),
    }
    return Rollouts(**{**fields, **given})


# ---------------------------------------------------------------- arguments


def _check_model(model: object) -> None:
    if not isinstance(model, _core.Model):
        raise TypeError(f"model: expected a qdsim.Model, got {type(model).__name__}")


def _check_errors(errors: object) -> None:
    if errors not in ("raise", "mark"):
        raise ValueError(f"errors: expected 'raise' or 'mark', got {errors!r}")


def _thread_count(threads: object) -> int:
    if threads is None:
        return min(_cores(), _MOST_THREADS)
    if isinstance(threads, (bool, np.bool_)) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"threads: expected an integer or None, got {type(threads).__name__}")
    if not 1 <= threads <= _MOST_THREADS:
        raise ValueError(f"threads: expected 1 to {_MOST_THREADS}, got {threads}")
    return int(threads)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wrt(wrt: Iterable[str]) -> tuple[bool, bool]:
    try:
        names = tuple(wrt)
    except TypeError:
        raise TypeError(
            f"wrt: expected names among 'q' and 'u', got {type(wrt).__name__}"
        ) from None
    for name in names:
        if name not in ("q", "u"):
            raise ValueError(f"wrt: expected 'q' or 'u', got {name!r}")
    return "q" in names, "u" in names


def _numbers(name: str, value: npt.ArrayLike, widths: tuple[int, ...]) -> _Vector:
    """The argument as doubles whose last dimensions have these sizes (-1: any)."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected an array of real numbers, got dtype {array.dtype}")
    tail = array.shape[-len(widths) :]
    if len(tail) != len(widths) or any(w not in (-1, n) for w, n in zip(widths, tail)):
        sizes = ", ".join("T" if width < 0 else str(width) for width in widths)
        raise ValueError(f"{name}: expected shape (..., {sizes}), got {array.shape}")
    return array.astype(np.float64, copy=False)


def _broadcast(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading dimensions do not broadcast: {said}") from None


def _flat(array: _Vector, lead: tuple[int, ...], inner: int) -> _Vector:
    """The samples in a row, (samples, ...), with contiguous rows; a copy only where strides need one."""
    tail = array.shape[array.ndim - inner :]
    own = array.shape[: array.ndim - inner]
    count = 1
    for size in lead:
        count *= size
    if own == lead:
        flat = array.reshape(count, *tail)
    elif all(size == 1 for size in own):
        flat = np.broadcast_to(array.reshape(tail), (count, *tail))
    else:
        flat = np.broadcast_to(array, (*lead, *tail)).reshape(count, *tail)
    size = array.itemsize
    rows_fit = tail[-1] <= 1 or flat.strides[-1] == size
    if not (rows_fit and flat.flags.aligned and all(s % size == 0 for s in flat.strides)):
        flat = np.ascontiguousarray(flat)
    return flat


def _check_finite(name: str, flat: _Vector, lead: tuple[int, ...]) -> None:
    shared = flat[:1] if flat.strides[0] == 0 else flat
    if np.isfinite(shared).all():
        return
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(flat))[0])
    where = str(index[1]) if len(index) == 2 else str(list(index[1:]))
    value = flat[index]
    raise ValueError(f"{name}: {_sample(index[0], lead)}: element {where} is {value}")


def _wrenches(model: _core.Model, wrench: _Wrench, steps: tuple[int, ...] = ()) -> _Vector:
    """Wrenches (..., 6 body_count), also from a mapping; steps: what stands before the bodies."""
    if not isinstance(wrench, Mapping):
        array = _numbers("wrench", wrench, (*steps, model.body_count, 6))
        return array.reshape(*array.shape[:-2], 6 * model.body_count)
    names: tuple[str, ...] = getattr(model, "body_names", ())
    given = {}
    for name, value in wrench.items():
        if not isinstance(name, str):
            raise TypeError(f"wrench: expected names of bodies as keys, got {type(name).__name__}")
        if name not in names:
            raise ValueError(f"wrench: the model has no body {name!r}")
        given[names.index(name)] = _numbers(f"wrench[{name!r}]", value, (*steps, 6))
    leads = {f"wrench[{names[body]!r}]": array.shape[:-1] for body, array in given.items()}
    lead = _broadcast(leads) if given else (1,) * len(steps)
    out = np.zeros((*lead, model.body_count, 6))
    for body, array in given.items():
        out[..., body, :] = array
    return out.reshape(*lead, 6 * model.body_count)


def _every_step(name: str, course: _Vector, step_count: int) -> _Vector:
    """A course (..., T or 1, n) for every step."""
    if course.shape[-2] not in (1, step_count):
        raise ValueError(
            f"{name}: expected {step_count} steps as in u, or 1, got {course.shape[-2]}"
        )
    return np.broadcast_to(course, (*course.shape[:-2], step_count, course.shape[-1]))


def _rows(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    tau: npt.ArrayLike | None,
    wrench: _Wrench | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
) -> tuple[tuple[int, ...], dict[str, _Vector]]:
    """Leading dimensions, and the samples of each argument in a row, checked."""
    _check_model(model)
    arrays = {"q": _numbers("q", q, (model.nq,)), "u": _numbers("u", u, (model.nu,))}
    if tau is not None:
        arrays["tau"] = _numbers("tau", tau, (model.nv,))
    if wrench is not None:
        arrays["wrench"] = _wrenches(model, wrench)
    values = _parameters(model, parameters)
    both = {**arrays, **values}
    lead = _broadcast({name: array.shape[:-1] for name, array in both.items()})
    flat = {name: _flat(array, lead, 1) for name, array in both.items()}
    for name in arrays:
        _check_finite(name, flat[name], lead)
    _check_parameters(model, {name: flat[name] for name in values}, lead)
    return lead, flat


def _parameters(
    model: _core.Model, parameters: Mapping[str, npt.ArrayLike] | None
) -> dict[str, _Vector]:
    """Parameters (..., size) of the samples' own, by their names in messages."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise TypeError(
            f"parameters: expected a mapping from names to arrays, got {type(parameters).__name__}"
        )
    found: dict[str, _Vector] = {}
    for name, value in parameters.items():
        if name not in PARAMETER_NAMES:
            raise ValueError(
                f"parameters: expected names among {', '.join(PARAMETER_NAMES)}, got {name!r}"
            )
        shape = np.shape(getattr(model.parameters, name))  # type: ignore[attr-defined]
        array = _numbers(_PARAMETER.format(name), value, shape)
        size = 1
        for n in shape:
            size *= n
        found[_PARAMETER.format(name)] = array.reshape(
            *array.shape[: array.ndim - len(shape)], size
        )
    return found


def _check_parameters(model: _core.Model, rows: dict[str, _Vector], lead: tuple[int, ...]) -> None:
    for k, name in enumerate(PARAMETER_NAMES):
        own = rows.get(_PARAMETER.format(name))
        fault = None if own is None else _core._parameter_fault(model, k, own)
        if fault is not None:
            sample, element, reason = fault
            raise ValueError(
                f"{_PARAMETER.format(name)}: {_sample(sample, lead)}: element {element}: {reason}"
            )


def _parameter_rows(rows: dict[str, _Vector]) -> tuple[_Vector | None, ...] | None:
    found = tuple(rows.get(_PARAMETER.format(name)) for name in PARAMETER_NAMES)
    return None if all(array is None for array in found) else found


# ---------------------------------------------------------------- results


def _sample(sample: int, lead: tuple[int, ...]) -> str:
    if len(lead) == 0:
        return "the only sample"
    index = [int(i) for i in np.unravel_index(sample, lead)]
    return f"sample {index[0] if len(index) == 1 else index}"


def _settle(
    caller: str,
    model: _core.Model,
    name: str,
    q: _Vector,
    status: npt.NDArray[np.int32],
    failure: tuple[int, int, _core.SolverInfo] | None,
    lead: tuple[int, ...],
    errors: _Errors,
) -> None:
    """Raise what has to be raised."""
    if failure is None:
        return
    bad = np.flatnonzero(status == _BAD_ARGUMENT)
    if bad.size:
        try:
            model.normalize(q[bad[0]])
        except ValueError as error:
            reason = str(error).removeprefix("q: ")
            raise ValueError(f"{name}: {_sample(int(bad[0]), lead)}: {reason}") from None
    if (status == _OUT_OF_MEMORY).any():
        raise MemoryError
    if errors == "raise" or bad.size:
        sample, step, info = failure
        where = f"{caller}: {_sample(sample, lead)}"
        _core._raise_batch_failure(where + (f", step {step}" if caller == "rollout" else ""), info)


def _wanted(model: _core.Model, lead: tuple[int, ...], *derivatives: str) -> Wanted:
    """Results of steps, and of linearizations these."""
    nq, nv, nu = model.nq, model.nv, model.nu
    wanted: Wanted = {
        "q_next": ((*lead, nq), np.float64),
        "delta": ((*lead, nv), np.float64),
        "limit_force": ((*lead, nv), np.float64),
        "constraint_force": ((*lead, model.constraint_count, 6), np.float64),
        "status": (lead, np.int32),
        "derivative_exact": (lead, np.bool_),
        "A": ((*lead, nv, nv), np.float64),
        "B": ((*lead, nv, nu), np.float64),
    }
    late = ("derivative_exact", "A", "B")
    return {
        name: entry for name, entry in wanted.items() if name not in late or name in derivatives
    }


def _common(found: tuple[Any, ...], lead: tuple[int, ...]) -> dict[str, Any]:
    return {
        "q_next": found[0].reshape(*lead, found[0].shape[1]),
        "delta": found[1].reshape(*lead, found[1].shape[1]),
        "limit_force": found[2].reshape(*lead, found[2].shape[1]),
        "constraint_force": found[3].reshape(*lead, *found[3].shape[1:]),
        "status": found[4].reshape(lead),
        "contact_start": found[8],
        "contacts": found[9],
    }
