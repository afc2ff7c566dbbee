"""Many steps of one model at once: arrays in, arrays out, on all cores.

`step_batch` and `linearize_batch` do what a loop over `step` and `linearize` does, and `rollout` what a
loop over time does, with the same bits; the loop runs in C, on threads that are kept between calls, without
the interpreter lock. Samples do not know each other, so results do not depend on the number of threads.

A signal whose handler raises (Ctrl-C) ends a batch of the main thread from its middle; arrays of the caller
(`out`) are then filled in part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import ARGUMENT_NAMES, STATUS_NAMES
from .arguments import flag
from .batch_in import (
    Mocap,
    Wrench,
    broadcast,
    check_errors,
    check_finite,
    check_model,
    check_parameters,
    check_quaternions,
    every_step,
    in_rows,
    mocap_of,
    numbers,
    parameter_rows,
    parameters_of,
    rows_of,
    sample_name,
    thread_count,
    wrenches_of,
    wrt_names,
)
from .batch_out import Wanted, outputs

__all__ = [
    "BatchLinearizations",
    "BatchMarks",
    "BatchSteps",
    "Rollouts",
    "argument_shape",
    "linearize_batch",
    "roll",
    "rollout",
    "settle",
    "step_all",
    "step_batch",
]

WarmStep = _core.Step | _core.DynamicStep | _core.Linearization
"""A step that others may start from."""

WarmStart = Union[WarmStep, "BatchSteps"]
"""What steps of a batch may start from."""

_Vector = npt.NDArray[np.float64]
_Errors = Literal["raise", "mark"]
# What the core calls the derivatives: A and B are those by the first two arguments.
_DERIVATIVES = ("A", "B", *ARGUMENT_NAMES[2:])
_GAINS = ("q_gain", "v_gain")
_BOUNDS = ("lower", "upper")
_FEEDBACK = ("q_nominal", "u_before", "x_gain", "u_gain", "lower", "upper")
_OK = STATUS_NAMES.index("solved")
_BAD_ARGUMENT = STATUS_NAMES.index("bad argument")
_OUT_OF_MEMORY = STATUS_NAMES.index("out of memory")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchMarks:
    """Which samples of a batch were solved; what all results of batches have."""

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tally()})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchSteps(BatchMarks):
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
    tendon_force: _Vector
    """(..., tendon_count) forces along the tendons, as in `Step`."""
    softened: npt.NDArray[np.int32]
    """(...) what gave way since the start contradicts itself, as `SolverInfo.softened`."""
    actuator_state: _Vector
    """(..., 2, nu) what `actuator_force` and `actuator_limited` are made of."""
    contact_start: npt.NDArray[np.int64] | None
    """(samples + 1) sample i, counted in C order, has the contacts from contact_start[i] up to
    contact_start[i + 1]; None if contacts were not asked for."""
    contacts: npt.NDArray[np.void] | None
    """Contacts of all samples in a row, with the fields of `Step.contacts`; None if not asked for."""

    @property
    def actuator_force(self) -> _Vector:
        """(..., nu) forces of the actuators on their joints, N or Nm, as in `Step`."""
        return self.actuator_state[..., 0, :]

    @property
    def actuator_limited(self) -> npt.NDArray[np.bool_]:
        """(..., nu) whether they are at their limits, as in `Step`."""
        return np.not_equal(self.actuator_state[..., 1, :], 0.0)

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchLinearizations(BatchSteps):
    """Results of `linearize_batch`: those of `step_batch`, and the derivatives."""

    A: _Vector | None
    """(..., nv, nv) dq_next/dq in tangent coordinates, NaN where a sample failed; None if not in wrt."""
    B: _Vector | None
    """(..., nv, nu) dq_next/du in tangent coordinates, NaN where a sample failed; None if not in wrt."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False where the path's derivative stands in for the exact one, or the sample failed."""
    derivatives: Mapping[str, _Vector]
    """From the names in wrt to dq_next by them, (..., nv, *shape of the argument), as in
    `Linearization.derivatives`; "q" is A and "u" is B."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rollouts(BatchMarks):
    """Results of `rollout`. A rollout ends at its first failed step and then repeats its last state."""

    q: _Vector
    """(..., T + 1, nq) configurations, the first one included."""
    steps_done: npt.NDArray[np.int64]
    """(...) steps before the first one that failed; T where none did."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._tally()}, steps={self.q.shape[-2] - 1})"


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
    errors: _Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchSteps | None = None,
    warm_start: WarmStart | None = None,
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
        mocap: Poses of the mocap bodies, (..., mocap_count, 7), or a mapping from names of them to (..., 7):
            position m, quaternion w x y z. Those not given stand where the model has them.
        threads: How many threads take part, this one included, 1 to 1024; None: as many as the process has
            cores. Without effect on the results.
        errors: What happens if samples fail. "raise": SolverError that names the first one, after all of
            them have run. "mark": they get a `status`. Bad arguments always raise.
        contacts: Whether to keep the contacts (224 bytes each).
        parameters: Values of the samples' own in place of the model's: from names of `model.parameters` to
            arrays of their shapes, with leading dimensions in front that broadcast with the others. Results
            are those of models made with these values, `model.with_parameters`.
        out: Arrays to write results into: a mapping from names of fields of the result to arrays of exactly
            their shapes and types, C-contiguous, that share no memory with each other or with an input; or an
            earlier result, whose arrays are used again. What it does not name is new, as contacts always are.
            They are filled where the batch raises, too.
        warm_start: Where to look for the solutions first, as in `step`: a Step or Linearization that all samples
            start from (samples around one nominal point), or the result of an earlier batch of the same leading
            dimensions, with contacts, each sample from its own. None: from nothing.

    Raises:
        TypeError, ValueError: naming the argument, and the sample where it is one that is wrong.
        SolverError: with the `info` of the first failed sample, if errors is "raise".
        MemoryError: if memory is exhausted.
    """
    fields = step_all(
        model,
        q,
        None,
        u,
        options,
        tau,
        wrench,
        mocap,
        threads,
        errors,
        contacts,
        parameters,
        out,
        warm_start,
    )
    return BatchSteps(**fields)


def step_all(
    model: _core.Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    mocap: Mocap | None,
    threads: int | None,
    errors: _Errors,
    contacts: bool,
    parameters: Mapping[str, npt.ArrayLike] | None,
    out: Mapping[str, npt.NDArray[Any]] | object | None,
    warm_start: WarmStart | None,
) -> dict[str, Any]:
    """Fields of a batch of steps, with "v_next" where v is given."""
    check_errors(errors)
    lead, rows = rows_of(model, q, u, tau, wrench, mocap, parameters, v)
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
    errors: _Errors = "raise",
    contacts: bool = True,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | BatchLinearizations | None = None,
    warm_start: WarmStart | None = None,
) -> BatchLinearizations:
    """Linearize the step at every sample of a batch: `linearize` over the leading dimensions.

    Args:
        wrt: Names of arguments of the step: "q" gives A, "u" gives B (None where not wanted),
            "tau", "wrench", "mocap" and those of `model.parameters` ("pair_friction", "geom_size",
            ...) what `derivatives` holds, as in `linearize`. In `out` they go by these names.
        model, q, u, options, tau, wrench, mocap, threads, errors, contacts, parameters, out, warm_start: As in
            `step_batch`.

    Raises:
        As `step_batch`.
    """
    check_errors(errors)
    names = wrt_names(wrt)
    lead, rows = rows_of(model, q, u, tau, wrench, mocap, parameters)
    given = outputs(out, _wanted(model, lead, names), rows.values())
    fields = _run(model, options, lead, rows, given, threads, errors, contacts, names, warm_start)
    fields.update(given)
    found = {name: fields.pop(field) for name, field in zip(ARGUMENT_NAMES, _DERIVATIVES)}
    return BatchLinearizations(
        **fields,
        A=found["q"],
        B=found["u"],
        derivatives={name: found[name] for name in names},
    )


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
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: Mapping[str, npt.NDArray[Any]] | Rollouts | None = None,
    warm_start: bool | _core.Step | _core.Linearization = False,
) -> Rollouts:
    """Step T times in a row from q0, for every sample of a batch.

    Args:
        model, options, threads, parameters, out: As in `step_batch`.
        q0: First configurations (..., nq).
        u: Commands (..., T, nu). The leading dimensions of all inputs broadcast.
        tau: Applied generalised forces (..., T, nv), N or Nm; with 1 in place of T the same in every step.
        wrench: Applied to the bodies, (..., T, body_count, 6) or a mapping from names of bodies to (..., T, 6), as
            in `step_batch`; with 1 in place of T the same in every step.
        mocap: Poses of the mocap bodies, (..., T, mocap_count, 7) or a mapping from names of them to (..., T, 7);
            with 1 in place of T the same in every step.
        errors: As in `step_batch`; a rollout fails with its first failed step.
        warm_start: Whether each step looks for its solution near that of the step before, as `step` does with
            warm_start; a Step or Linearization: likewise, and the first steps near this one.

    Raises:
        As `step_batch`; the message names sample and step.
    """
    fields = roll(
        model,
        q0,
        None,
        u,
        options,
        tau,
        wrench,
        mocap,
        threads,
        errors,
        parameters,
        out,
        warm_start,
    )
    return Rollouts(**fields)


def roll(
    model: _core.Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike | None,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    mocap: Mocap | None,
    threads: int | None,
    errors: _Errors,
    parameters: Mapping[str, npt.ArrayLike] | None,
    out: Mapping[str, npt.NDArray[Any]] | object | None,
    warm_start: bool | WarmStep,
    feedback: Mapping[str, _Vector] | None = None,
) -> dict[str, Any]:
    """Fields of rollouts, with "v" where v0 is given, and "commands" with feedback.

    Feedback: q_nominal (T, nq), v_nominal (T, nv), q_gain and v_gain (..., T, nu, nv), lower and upper (nu).
    """
    check_errors(errors)
    check_model(model)
    start = numbers("q0", q0, (model.nq,))
    states = {"q0": start}
    if v0 is not None:
        states["v0"] = numbers("v0", v0, (model.nv,))
    courses = {"u": numbers("u", u, (-1, model.nu))}
    step_count = courses["u"].shape[-2]
    if tau is not None:
        courses["tau"] = every_step("tau", numbers("tau", tau, (-1, model.nv)), step_count)
    if wrench is not None:
        courses["wrench"] = every_step("wrench", wrenches_of(model, wrench, (-1,)), step_count)
    if mocap is not None:
        courses["mocap"] = every_step("mocap", mocap_of(model, mocap, (-1,)), step_count)
    values = parameters_of(model, parameters)
    leads = {name: course.shape[:-2] for name, course in courses.items()}
    leads.update({name: array.shape[:-1] for name, array in values.items()})
    leads.update({name: array.shape[:-1] for name, array in states.items()})
    if feedback is not None:
        leads.update({name: feedback[name].shape[:-3] for name in _GAINS})
    lead = broadcast(leads)
    firsts = {name: in_rows(array, lead, 1) for name, array in states.items()}
    q_rows = firsts["q0"]
    rows = {name: in_rows(course, lead, 2) for name, course in courses.items()}
    for name, flat in {**firsts, **rows}.items():
        check_finite(name, flat, lead)
    own = {name: in_rows(array, lead, 1) for name, array in values.items()}
    check_parameters(model, own, lead)
    wanted: Wanted = {
        "q": ((*lead, step_count + 1, model.nq), np.float64),
        "status": (lead, np.int32),
        "steps_done": (lead, np.int64),
    }
    if v0 is not None:
        wanted["v"] = ((*lead, step_count + 1, model.nv), np.float64)
    given = outputs(out, wanted, (*firsts.values(), *rows.values(), *own.values()))
    found = _core._rollout(
        model,
        options,
        q=q_rows,
        v=firsts.get("v0"),
        u=rows["u"],
        tau=rows.get("tau"),
        wrench=rows.get("wrench"),
        mocap=rows.get("mocap"),
        parameters=parameter_rows(own),
        out=given,
        threads=thread_count(threads),
        warm_start=warm_start is not False,
        start=None if isinstance(warm_start, bool) else warm_start,
        feedback=None if feedback is None else _reacting(feedback, lead, step_count),
    )
    caller = "rollout" if v0 is None else "rollout_dynamic"
    settle(caller, model, "q0", q_rows, found["status"], found["failure"], lead, errors)
    fields = {name: found[name].reshape(shape) for name, (shape, _) in wanted.items()}
    if feedback is not None:
        fields["commands"] = found["commands"].reshape(*lead, step_count, model.nu)
    return {**fields, **given}


def _reacting(
    feedback: Mapping[str, _Vector], lead: tuple[int, ...], step_count: int
) -> dict[str, _Vector]:
    """A checked feedback as the core takes it."""
    for name, array in feedback.items():
        length = step_count if name in _BOUNDS else array.shape[-3 if name in _GAINS else -2]
        if length != step_count:
            raise ValueError(f"feedback: {name} has {length} steps, u has {step_count}")
    q_gain, v_gain = (in_rows(feedback[name], lead, 3) for name in _GAINS)
    nu = feedback["lower"].size
    bounds = {
        name: np.broadcast_to(feedback[name], (len(q_gain), step_count, nu)) for name in _BOUNDS
    }
    paths = {name: feedback[name] for name in ("q_nominal", "v_nominal")}
    return {**paths, **bounds, "u_before": np.zeros(nu), "x_gain": q_gain, "v_gain": v_gain}


def feedback_rollout(
    model: _core.Model,
    q0: _Vector,
    u: _Vector,
    options: _core._OptionsLike | _core.StepOptions | None,
    feedback: tuple[_Vector, _Vector, _Vector, _Vector, _Vector, _Vector],
    *,
    threads: int | None = None,
) -> tuple[_Vector, _Vector, npt.NDArray[np.bool_]]:
    """Roll out commands that react to where each step begins, clipped to bounds.

    Step t of a sample is taken with ``u[t] + x_gain[t] (q - q_nominal[t]) + u_gain[t] (command before)``.

    Args:
        model, options, threads: As in `step_batch`.
        q0: First configurations (samples, nq).
        u: Commands (samples, T, nu).
        feedback: q_nominal (T, nq) and the command (nu,) before the first, the same for all samples;
            x_gain (samples, T, nu, nv), u_gain (samples, T, nu, nu), lower and upper bounds (samples, T, nu).

    Returns:
        Configurations (samples, T + 1, nq), commands (samples, T, nu), NaN from a failed step on, and
        which samples (samples,) had none.
    """
    found = _rolled(
        model, q0, u, options, None, dict(zip(_FEEDBACK, feedback)), thread_count(threads)
    )
    return found["q"], found["commands"], found["status"] == _OK


def checked_rollout(
    model: _core.Model,
    q0: _Vector,
    u: _Vector,
    options: _core._OptionsLike | _core.StepOptions | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
    *,
    threads: int,
) -> tuple[_Vector, npt.NDArray[np.bool_]]:
    """`rollout` of what is known to be right: for many short calls, of which checks would be a large part.

    Args:
        model, options: As in `step_batch`.
        threads: How many.
        q0: First configurations (samples, nq), finite doubles with unit quaternions.
        u: Commands (samples, T, nu), finite doubles.
        parameters: (samples, ...) each, which `check_parameters` has seen.

    Returns:
        Last configurations (samples, nq), and which samples (samples,) had no failed step; the others stay where it
        failed.
    """
    own = parameter_rows(parameters_of(model, parameters)) if parameters else None
    found = _rolled(model, q0, u, options, own, None, threads)
    return found["q"][:, -1], found["status"] == _OK


def _rolled(
    model: _core.Model,
    q0: _Vector,
    u: _Vector,
    options: _core._OptionsLike | _core.StepOptions | None,
    parameters: tuple[_Vector | None, ...] | None,
    feedback: dict[str, _Vector] | None,
    threads: int,
) -> Any:
    return _core._rollout(
        model,
        options,
        q=q0,
        v=None,
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
    )


# ---------------------------------------------------------------- results


def settle(
    caller: str,
    model: _core.Model,
    name: str,
    q: _Vector,
    status: npt.NDArray[np.int32],
    failure: _core._Failure | None,
    lead: tuple[int, ...],
    errors: _Errors,
) -> None:
    """Raise what has to be raised."""
    if failure is None:
        return
    status = status.reshape(-1)
    check_quaternions(model, name, q, status, lead)
    if (status == _OUT_OF_MEMORY).any():
        raise MemoryError
    if errors == "raise" or (status == _BAD_ARGUMENT).any():
        where = f"{caller}: {sample_name(failure['sample'], lead)}"
        where += f", step {failure['step']}" if caller.startswith("rollout") else ""
        _core._raise_batch_failure(where, failure["info"], failure["culprits"])


def _wanted(
    model: _core.Model,
    lead: tuple[int, ...],
    wrt: tuple[str, ...] | None = None,
    dynamic: bool = False,
) -> Wanted:
    """Results of steps, and of linearizations the derivatives by these arguments."""
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
            wanted[_DERIVATIVES[ARGUMENT_NAMES.index(name)]] = (shape, np.float64)
    return wanted


def argument_shape(model: _core.Model, name: str) -> tuple[int, ...]:
    """Shape of an argument of a step, that of q in tangent coordinates."""
    inputs = {
        "q": (model.nv,),
        "u": (model.nu,),
        "tau": (model.nv,),
        "wrench": (model.body_count, 6),
        "mocap": (model.mocap_count, 6),
        "v": (model.nv,),
        "h": (),
    }
    found = inputs.get(name)
    return np.shape(getattr(model.parameters, name)) if found is None else found  # type: ignore[attr-defined]


def _start(
    warm_start: WarmStart | None, lead: tuple[int, ...]
) -> WarmStep | tuple[npt.NDArray[Any], ...] | None:
    """The guesses as the core takes them."""
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
    rows: dict[str, _Vector],
    given: dict[str, npt.NDArray[Any]],
    threads: int | None,
    errors: _Errors,
    contacts: bool,
    wrt: tuple[str, ...] | None,
    warm_start: WarmStart | None,
) -> dict[str, Any]:
    """Steps (wrt None) or linearizations in the core, and their results by name."""
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
    )
    dynamic = "v" in rows
    caller = "step_dynamic_batch" if dynamic else "step_batch" if wrt is None else "linearize_batch"
    settle(caller, model, "q", rows["q"], found["status"], found["failure"], lead, errors)
    fields = {name: found.get(name) for name in ("contact_start", "contacts")}
    for name, (shape, _) in _wanted(model, lead, wrt, dynamic).items():
        fields[name] = found[name].reshape(shape)
    return fields if wrt is None else {**dict.fromkeys(_DERIVATIVES), **fields}
