"""Products of derivatives with vectors for many steps and rollouts at once, all of it in C.

`vjp_batch` and `jvp_batch` are `vjp` and `jvp` over the leading dimensions of a batch; `rollout_vjp` and
`rollout_jvp` carry a cotangent back, or a tangent forwards, through T steps in a row: what reverse and forward
differentiation of a rollout are, without A and B. Samples are shared out among threads as in `step_batch`, and
results do not depend on how many there are. Steps that keep their factorisation agree with those of `rollout` to
rounding, not in every last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import ARGUMENT_NAMES
from .arguments import integer, number, one_of
from .batch import BatchMarks, Rollouts, argument_shape, settle
from .batch_in import (
    Mocap,
    Wrench,
    broadcast,
    check_errors,
    check_finite,
    check_model,
    check_parameters,
    every_step,
    in_rows,
    mocap_of,
    numbers,
    parameter_rows,
    parameters_of,
    thread_count,
    wrenches_of,
    wrt_names,
)
from .step import Options

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

_Vector = npt.NDArray[np.float64]
_Errors = Literal["raise", "mark"]
_Coordinates = Literal["tangent", "ambient"]
_Derivative = Literal["step", "smoothed"]
_LeadingDimensions = tuple[int, ...]
_OfSteps = ("u", "tau", "wrench", "mocap")  # what every step of a rollout is given
_MOST_KEPT = 2**31 - 1


_KNOWN = tuple(name for name in ARGUMENT_NAMES if name not in ("v", "h"))
"""What rollouts can be differentiated by: a step length would be one for all steps."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchPullbacks(BatchMarks):
    """Results of `vjp_batch`; (...) stands for the leading dimensions of the batch."""

    q_next: _Vector
    """(..., nq) configurations after the step."""
    gradients: Mapping[str, _Vector]
    """From the names in wrt to the gradients of cotangent . q_next, (..., *shape of the argument), NaN where a
    sample failed. They are those of each sample: where an argument was broadcast they are not summed."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) False where the path's derivative stands in for the exact one, or the sample failed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchPushforwards(BatchMarks):
    """Results of `jvp_batch`; (...) stands for the leading dimensions of the batch."""

    q_next: _Vector
    """(..., nq) configurations after the step."""
    tangent: _Vector
    """(..., nv), or (..., nq) in ambient coordinates: the change of q_next, NaN where a sample failed."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) as in `BatchPullbacks`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RolloutPullbacks(Rollouts):
    """Results of `rollout_vjp`: those of `rollout`, and the gradients."""

    gradients: Mapping[str, _Vector]
    """From the names in wrt to gradients of the sum over t of cotangent[t] . q[t]: "q" (..., nv),
    or (..., nq) in ambient coordinates, by where the rollout begins; "u", "tau", "wrench" and
    "mocap" (..., T, *shape) by what every step is given; parameters (..., *shape), of all steps
    together. NaN where a sample failed."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) whether that of every step is exact; False where the sample failed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RolloutPushforwards(Rollouts):
    """Results of `rollout_jvp`: those of `rollout`, and the tangents."""

    tangent: _Vector
    """(..., T + 1, nv), or (..., T + 1, nq) in ambient coordinates: the change of every configuration, NaN where a
    sample failed."""
    derivative_exact: npt.NDArray[np.bool_]
    """(...) as in `RolloutPullbacks`."""


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
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
) -> BatchPullbacks:
    """Step every sample of a batch and pull cotangents of q_next back.

    Args:
        model, q, u, tau, wrench, mocap, threads, errors, parameters: As in `step_batch`.
        options: qdsim.Options, None for the defaults.
        cotangent: (..., nv) in the tangent coordinates at q_next; ambient: (..., nq). Its leading dimensions
            broadcast with the others.
        wrt: Names of arguments of the step, as in `vjp`.
        coordinates: "tangent": by displacements of q, in nv numbers. "ambient": the derivatives of
            f(normalize(q)) by the nq numbers of q, quaternions of any length near one among them, for libraries
            that know of no manifold; a step along the quaternion itself changes nothing, so the gradient is at
            right angles to it.
        derivative: "step": that of the step itself. "smoothed": of the log-barrier step of weight `kappa` at the
            same q and u, in place of an exact step's own: a gradient that sees contacts before they happen.
        kappa: Weight (1/J, > 0) of "smoothed".

    Raises:
        As `step_batch`.
    """
    given = _steps_of(
        model, q, u, options, tau, wrench, mocap, parameters, coordinates, derivative, kappa
    )
    found = pull(given, _after_step(given, cotangent), wrt, threads, errors, 0, "vjp_batch")
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
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
) -> BatchPushforwards:
    """Step every sample of a batch and move tangents through the step.

    Args:
        tangents: From names of arguments to directions (..., *shape) (q: (..., nv); ambient: (..., nq)), whose leading
            dimensions broadcast with the others.
        model, q, u, options, tau, wrench, mocap, threads, errors, parameters, coordinates, derivative, kappa: As in
            `vjp_batch`.

    Raises:
        As `step_batch`.
    """
    given = _steps_of(
        model, q, u, options, tau, wrench, mocap, parameters, coordinates, derivative, kappa
    )
    found = push(given, tangents, threads, errors, "jvp_batch")
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
    cotangent: npt.ArrayLike | Callable[[_Vector], npt.ArrayLike],
    wrt: Iterable[str] = ("q", "u"),
    tau: npt.ArrayLike | None = None,
    wrench: Wrench | None = None,
    mocap: Mocap | None = None,
    threads: int | None = None,
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
    checkpoint: int | None = None,
) -> RolloutPullbacks:
    """Step T times in a row from q0, and pull cotangents of all configurations back, for every sample.

    Args:
        model, q0, u, tau, wrench, mocap, threads, errors, parameters: As in `rollout`.
        cotangent: (..., T + 1, nv), or (..., T + 1, nq) in ambient coordinates, of every configuration, the first one
            included. Or a function that makes it from the configurations (..., T + 1, nq) of a finished rollout,
            called once.
        options, wrt, coordinates, derivative, kappa: As in `vjp_batch`.
        checkpoint: How many steps, from the last one back, keep their factorisation until it is their turn; the
            others are taken once more then, which costs as much as a step and a half. None: as many as fit into
            128 MB a thread. Without effect where the derivative is smoothed or the cotangent a function: then
            none are kept. The gradients are the same to rounding.

    Raises:
        As `rollout`.

    Example:
        >>> found = qdsim.rollout_vjp(model, q0, u, cotangent=lambda q: 2.0 * (q - goal))
        >>> u -= rate * found.gradients["u"]
    """
    given = courses_of(
        model, q0, u, options, tau, wrench, mocap, parameters, coordinates, derivative, kappa
    )
    kept = -1
    if checkpoint is not None:
        kept = integer("checkpoint", checkpoint, least=0, most=_MOST_KEPT)
    found = pull(given, cotangent, wrt, threads, errors, kept, "rollout")
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
    errors: _Errors = "raise",
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    coordinates: _Coordinates = "tangent",
    derivative: _Derivative = "step",
    kappa: float | None = None,
) -> RolloutPushforwards:
    """Step T times in a row from q0, and move tangents along, for every sample.

    Args:
        tangents: From names of arguments to directions: "q" (..., nv), or (..., nq) in ambient coordinates; "u", "tau",
            "wrench" and "mocap" (..., T, *shape); parameters (..., *shape).
        model, q0, u, tau, wrench, mocap, threads, errors, parameters: As in `rollout`.
        options, coordinates, derivative, kappa: As in `vjp_batch`.

    Raises:
        As `rollout`.
    """
    given = courses_of(
        model, q0, u, options, tau, wrench, mocap, parameters, coordinates, derivative, kappa
    )
    return RolloutPushforwards(**push(given, tangents, threads, errors, "rollout"))


# ---------------------------------------------------------------- what is given


@dataclass
class Given:
    """Rollouts to differentiate, checked; arrays have their own leading dimensions."""

    model: _core.Model
    options: Options | None
    way_options: Options | None
    ambient: bool
    steps: int
    q: _Vector
    courses: dict[str, _Vector]
    values: dict[str, _Vector]
    v: _Vector | None = None

    def shape(self, name: str) -> tuple[int, ...]:
        """Of an argument of one sample of a rollout."""
        if name == "q":
            return (self.model.nq if self.ambient else self.model.nv,)
        shape = argument_shape(self.model, name)
        return (self.steps, *shape) if name in _OfSteps else shape

    def leads(self) -> dict[str, _LeadingDimensions]:
        found = {"q": self.q.shape[:-1]}
        if self.v is not None:
            found["v"] = self.v.shape[:-1]
        found.update({name: array.shape[:-2] for name, array in self.courses.items()})
        found.update({name: array.shape[:-1] for name, array in self.values.items()})
        return found

    def arguments(self, lead: _LeadingDimensions) -> dict[str, Any]:
        """What the core takes, as rows of samples, checked."""
        q = in_rows(self.q, lead, 1)
        v = None if self.v is None else in_rows(self.v, lead, 1)
        rows = {name: in_rows(array, lead, 2) for name, array in self.courses.items()}
        for name, flat in {"q": q, **rows}.items():
            check_finite(name, flat, lead)
        if v is not None:
            check_finite("v", v, lead)
        own = {name: in_rows(array, lead, 1) for name, array in self.values.items()}
        check_parameters(self.model, own, lead)
        return {
            "q": q,
            "v": v,
            "u": rows["u"],
            "tau": rows.get("tau"),
            "wrench": rows.get("wrench"),
            "mocap": rows.get("mocap"),
            "parameters": parameter_rows(own),
        }


def _given(
    model: _core.Model,
    options: Options | None,
    coordinates: str,
    derivative: str,
    kappa: float | None,
    q: _Vector,
    courses: dict[str, _Vector],
    values: dict[str, _Vector],
) -> Given:
    steps = courses["u"].shape[-2]
    one_of("coordinates", coordinates, allowed=("tangent", "ambient"))
    one_of("derivative", derivative, allowed=("step", "smoothed"))
    if (derivative == "smoothed") != (kappa is not None):
        raise ValueError(
            f"kappa: expected with derivative='smoothed' and only then, got {kappa!r} with {derivative!r}"
        )
    way_options = None
    if kappa is not None:
        if options is not None and not isinstance(options, Options):
            raise TypeError(f"options: expected a qdsim.Options, got {type(options).__name__}")
        number("kappa", kappa, above=0)
        way_options = (options or Options()).replace(kappa=kappa)
    return Given(model, options, way_options, coordinates == "ambient", steps, q, courses, values)


def _steps_of(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Options | None,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    mocap: Mocap | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
    coordinates: str,
    derivative: str,
    kappa: float | None,
) -> Given:
    """Batches of steps, as rollouts of one step."""
    check_model(model)
    courses = {"u": numbers("u", u, (model.nu,))}
    if tau is not None:
        courses["tau"] = numbers("tau", tau, (model.nv,))
    if wrench is not None:
        courses["wrench"] = wrenches_of(model, wrench)
    if mocap is not None:
        courses["mocap"] = mocap_of(model, mocap)
    courses = {name: array[..., None, :] for name, array in courses.items()}
    values = parameters_of(model, parameters)
    return _given(
        model,
        options,
        coordinates,
        derivative,
        kappa,
        numbers("q", q, (model.nq,)),
        courses,
        values,
    )


def courses_of(
    model: _core.Model,
    q0: npt.ArrayLike,
    u: npt.ArrayLike,
    options: Any,
    tau: npt.ArrayLike | None,
    wrench: Wrench | None,
    mocap: Mocap | None,
    parameters: Mapping[str, npt.ArrayLike] | None,
    coordinates: str,
    derivative: str,
    kappa: float | None,
) -> Given:
    check_model(model)
    start = numbers("q0", q0, (model.nq,))
    courses = {"u": numbers("u", u, (-1, model.nu))}
    steps = courses["u"].shape[-2]
    if tau is not None:
        courses["tau"] = every_step("tau", numbers("tau", tau, (-1, model.nv)), steps)
    if wrench is not None:
        courses["wrench"] = every_step("wrench", wrenches_of(model, wrench, (-1,)), steps)
    if mocap is not None:
        courses["mocap"] = every_step("mocap", mocap_of(model, mocap, (-1,)), steps)
    values = parameters_of(model, parameters)
    return _given(model, options, coordinates, derivative, kappa, start, courses, values)


def _after_step(given: Given, cotangent: npt.ArrayLike) -> _Vector:
    """The cotangent of a step as that of a rollout, with none for where it begins."""
    array = numbers("cotangent", cotangent, given.shape("q"))
    return np.stack([np.zeros_like(array), array], axis=-2)


def _of_one_step(name: str, gradient: _Vector) -> _Vector:
    if name not in _OfSteps:
        return gradient
    axis = gradient.ndim - (3 if name in ("wrench", "mocap") else 2)
    return gradient.reshape(*gradient.shape[:axis], *gradient.shape[axis + 1 :])


# ---------------------------------------------------------------- both ways


def _contiguous(
    name: str, array: _Vector, lead: _LeadingDimensions, shape: tuple[int, ...]
) -> _Vector:
    """(samples, size), checked."""
    count, size = int(np.prod(lead, dtype=np.int64)), int(np.prod(shape, dtype=np.int64))
    rows = np.broadcast_to(array, (*lead, *shape)).reshape(count, *shape)
    if rows.size:
        check_finite(name, rows, lead)
    return np.ascontiguousarray(rows).reshape(count, size)


def _run(
    given: Given,
    arguments: dict[str, Any],
    lead: _LeadingDimensions,
    threads: int | None,
    errors: _Errors,
    caller: str,
    **more: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the core gives, and the fields of the rollout."""
    found = _core._rollout_derivative(
        given.model,
        given.options,
        **arguments,
        threads=thread_count(threads),
        start=None,
        way_options=given.way_options,
        ambient=given.ambient,
        **more,
    )
    name = "q0" if caller.startswith("rollout") else "q"
    settle(
        caller, given.model, name, arguments["q"], found["status"], found["failure"], lead, errors
    )
    fields = {
        "q": found["q"].reshape(*lead, given.steps + 1, given.model.nq),
        "status": found["status"].reshape(lead),
        "steps_done": found["steps_done"].reshape(lead),
        "derivative_exact": found["derivative_exact"].reshape(lead),
    }
    if given.v is not None:
        fields["v"] = found["v"].reshape(*lead, given.steps + 1, given.model.nv)
    return found, fields


def pull(
    given: Given,
    cotangent: npt.ArrayLike | Callable[[_Vector], npt.ArrayLike],
    wrt: Iterable[str],
    threads: int | None,
    errors: _Errors,
    kept: int,
    caller: str,
    v_cotangent: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Fields of pullbacks."""
    check_errors(errors)
    names = wrt_names(wrt, _KNOWN if given.v is None else (*_KNOWN, "v"))
    shape = (given.steps + 1, *given.shape("q"))
    leads = given.leads()
    path = None
    if callable(cotangent):
        lead = broadcast(leads)
        arguments = given.arguments(lead)
        path, configurations = _rolled_out(given, arguments, lead, threads, errors, caller)
        rows = numbers("cotangent", cotangent(configurations), shape)
        if broadcast({"q": lead, "cotangent": rows.shape[:-2]}) != lead:
            raise ValueError(f"cotangent: expected shape {(*lead, *shape)}, got {rows.shape}")
        cotangents = [_contiguous("cotangent", rows, lead, shape)]
    else:
        rows = numbers("cotangent", cotangent, shape)
        leads["cotangent"] = rows.shape[:-2]
        of_v = None if v_cotangent is None else numbers("v_cotangent", v_cotangent, shape)
        if of_v is not None:
            leads["v_cotangent"] = of_v.shape[:-2]
        lead = broadcast(leads)
        arguments = given.arguments(lead)
        cotangents = [_contiguous("cotangent", rows, lead, shape)]
        if given.v is not None:
            of_v = np.zeros(shape) if of_v is None else of_v
            cotangents.append(_contiguous("v_cotangent", of_v, lead, shape))
    found, fields = _run(
        given,
        arguments,
        lead,
        threads,
        errors,
        caller,
        kept=kept,
        path=path,
        wrt=sum(1 << ARGUMENT_NAMES.index(name) for name in names),
        rows=tuple(cotangents),
    )
    fields["gradients"] = {
        name: found[f"by {name}"].reshape(*lead, *given.shape(name)) for name in names
    }
    return fields


def _rolled_out(
    given: Given,
    arguments: dict[str, Any],
    lead: _LeadingDimensions,
    threads: int | None,
    errors: _Errors,
    caller: str,
) -> tuple[tuple[Any, ...], _Vector]:
    """The rollouts as the core goes on from them, and their configurations."""
    found = _core._rollout(
        given.model,
        given.options,
        **arguments,
        out=None,
        threads=thread_count(threads),
        warm_start=False,
        start=None,
        feedback=None,
    )
    settle(
        caller, given.model, "q0", arguments["q"], found["status"], found["failure"], lead, errors
    )
    configurations = found["q"].reshape(*lead, given.steps + 1, given.model.nq)
    return (found["q"], found["status"], found["steps_done"]), configurations.copy()


def push(
    given: Given,
    tangents: Mapping[str, npt.ArrayLike],
    threads: int | None,
    errors: _Errors,
    caller: str,
) -> dict[str, Any]:
    check_errors(errors)
    if not isinstance(tangents, Mapping):
        raise TypeError(f"tangents: expected a mapping, got {type(tangents).__name__}")
    known = _KNOWN if given.v is None else (*_KNOWN, "v")
    names = {name: f"tangents[{name!r}]" for name in wrt_names(tangents, known)}
    one_step = not caller.startswith("rollout")
    arrays = {}
    for name, said in names.items():
        shape = given.shape(name)
        if one_step and name in _OfSteps:
            shape = shape[1:]
        array = numbers(said, tangents[name], shape)
        own = array.shape[: array.ndim - len(shape)]
        arrays[name] = array.reshape(*own, *given.shape(name))
    leads = given.leads()
    for name, said in names.items():
        leads[said] = arrays[name].shape[: arrays[name].ndim - len(given.shape(name))]
    lead = broadcast(leads)
    arguments = given.arguments(lead)
    rows: list[_Vector | None] = [None] * len(ARGUMENT_NAMES)
    for name, said in names.items():
        rows[ARGUMENT_NAMES.index(name)] = _contiguous(said, arrays[name], lead, given.shape(name))
    found, fields = _run(
        given,
        arguments,
        lead,
        threads,
        errors,
        caller,
        kept=-1,
        path=None,
        wrt=-1,
        rows=tuple(rows),
    )
    width = given.shape("q")
    fields["tangent"] = found["tangent"].reshape(*lead, given.steps + 1, *width)
    if given.v is not None:
        fields["v_tangent"] = found["v_tangent"].reshape(fields["v"].shape)
    return fields
