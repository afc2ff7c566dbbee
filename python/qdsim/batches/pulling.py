"""Vector-Jacobian and Jacobian-vector products of rollouts, for results of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import ARGUMENT_NAMES
from qdsim.arguments import integer, number, one_of
from qdsim.array_type import Array
from qdsim.batches.feedback import Feedback, feedback_arrays, feedback_leads, feedback_rows
from qdsim.batches.given import Given
from qdsim.batches.inputs import (
    broadcast,
    check_errors,
    check_finite,
    numbers,
    thread_count,
    wrt_names,
)
from qdsim.batches.marks import Errors, argument_shape, settle
from qdsim.step import Options

__all__ = ["OF_STEPS", "Products", "kept_steps", "products_of", "pull", "pull_finished", "push"]

_LeadingDimensions = tuple[int, ...]
OF_STEPS = ("u", "tau", "wrench", "mocap")
"""Arguments that have a value in every step of a rollout."""

_KNOWN = tuple(name for name in ARGUMENT_NAMES if name not in ("v", "h"))
"""Arguments by which rollouts can be differentiated; the time step is one number for all steps."""


@dataclass(frozen=True)
class Products:
    """Rollouts to differentiate, and the kind of derivative."""

    given: Given
    options: Any
    way_options: Any
    """Options of the smoothed steps whose derivatives replace those of the steps, or None."""
    ambient: bool
    feedback: Mapping[str, Array] | None = None
    """Checked arrays of the feedback."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an argument for one sample of a rollout."""
        model = self.given.model
        if name == "q":
            return (model.nq if self.ambient else model.nv,)
        shape = argument_shape(model, name)
        return (self.given.steps, *shape) if name in OF_STEPS else shape

    def known(self) -> tuple[str, ...]:
        """Names of the arguments by which these rollouts can be differentiated."""
        return (*_KNOWN, "v") if self.given.dynamic else _KNOWN

    def leads(self) -> dict[str, _LeadingDimensions]:
        """Leading dimensions by the names of arguments."""
        return self.given.leads() | feedback_leads(self.feedback)

    def reaction(self, lead: _LeadingDimensions) -> dict[str, Array] | None:
        """Return the arrays of the feedback in the form of the core, or None."""
        return feedback_rows(self.feedback, lead, self.given.steps)


def products_of(
    given: Given,
    options: Any,
    coordinates: str,
    derivative: str,
    kappa: float | None,
    feedback: Feedback | None = None,
) -> Products:
    """Check the arguments and collect them in a ``Products``."""
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
    reaction = feedback_arrays(given.model, feedback, given.steps, given.dynamic)
    return Products(given, options, way_options, coordinates == "ambient", reaction)


def kept_steps(checkpoint: int | None) -> int:
    """Number of steps whose factorisations are kept; -1 for as many as memory allows."""
    if checkpoint is None:
        return -1
    return integer("checkpoint", checkpoint, least=0)


def _contiguous(name: str, array: Array, lead: _LeadingDimensions, shape: tuple[int, ...]) -> Array:
    """Check an array and return it as (samples, size), C-contiguous."""
    count, size = int(np.prod(lead, dtype=np.int64)), int(np.prod(shape, dtype=np.int64))
    rows = np.broadcast_to(array, (*lead, *shape)).reshape(count, *shape)
    if rows.size:
        check_finite(name, rows, lead)
    return np.ascontiguousarray(rows).reshape(count, size)


def _run(
    products: Products,
    arguments: dict[str, Any],
    lead: _LeadingDimensions,
    threads: int | None,
    errors: Errors,
    caller: str,
    **more: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the core; return its results, and the fields of the rollout."""
    given = products.given
    found = _core._rollout_derivative(
        given.model,
        products.options,
        **arguments,
        threads=thread_count(threads),
        start=None,
        feedback=products.reaction(lead),
        way_options=products.way_options,
        ambient=products.ambient,
        **more,
    )
    name = next(iter(given.begin))
    settle(
        caller, given.model, name, arguments["q"], found["status"], found["failure"], lead, errors
    )
    fields = {
        "q": found["q"].reshape(*lead, given.steps + 1, given.model.nq),
        "status": found["status"].reshape(lead),
        "steps_done": found["steps_done"].reshape(lead),
        "derivative_exact": found["derivative_exact"].reshape(lead),
    }
    if given.dynamic:
        fields["v"] = found["v"].reshape(*lead, given.steps + 1, given.model.nv)
    if products.feedback is not None:
        fields["commands"] = found["commands"].reshape(*lead, given.steps, given.model.nu)
    return found, fields


def pull(
    products: Products,
    cotangent: npt.ArrayLike | Callable[[Array], npt.ArrayLike],
    wrt: Iterable[str],
    threads: int | None,
    errors: Errors,
    kept: int,
    caller: str,
    v_cotangent: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Compute the fields of pullbacks."""
    check_errors(errors)
    names = wrt_names(wrt, products.known())
    path = None
    if callable(cotangent):
        lead, arguments, path, rows = _after_rollout(products, cotangent, threads, errors, caller)
    else:
        lead, arguments, rows = _known_before(products, cotangent, v_cotangent)
    found, fields = _run(
        products,
        arguments,
        lead,
        threads,
        errors,
        caller,
        kept=kept,
        path=path,
        wrt=sum(1 << ARGUMENT_NAMES.index(name) for name in names),
        rows=rows,
    )
    fields["gradients"] = {
        name: found[f"by {name}"].reshape(*lead, *products.shape(name)) for name in names
    }
    return fields


def pull_finished(
    products: Products,
    path: tuple[Array, ...],
    status: npt.NDArray[np.int32],
    cotangents: tuple[Array, ...],
    wrt: Iterable[str],
    threads: int,
    errors: Errors,
) -> tuple[dict[str, Array], npt.NDArray[np.bool_]]:
    """Compute the gradients of finished rollouts; return also which rollouts were solved (...).

    Given the configurations (..., T + 1, nq) of a rollout, for second-order steps also velocities
    (..., T + 1, nv), cotangents of both, and the status (...).
    """
    given, lead = products.given, status.shape
    names = wrt_names(wrt, products.known())
    q, *v = (array.reshape(-1, *array.shape[-2:]) for array in path)
    shapes = ((given.steps + 1, *products.shape(name)) for name in ("q", "v"))
    said = ("cotangent", "v_cotangent")
    found, fields = _run(
        products,
        given.arguments(lead),
        lead,
        threads,
        errors,
        "rollout",
        kept=0,
        path=(q, status.ravel(), np.zeros(status.size), *v),
        wrt=sum(1 << ARGUMENT_NAMES.index(name) for name in names),
        rows=tuple(
            _contiguous(name, array, lead, shape)
            for name, array, shape in zip(said, cotangents, shapes)
        ),
    )
    gradients = {name: found[f"by {name}"].reshape(*lead, *products.shape(name)) for name in names}
    return gradients, fields["status"] == 0


def _known_before(
    products: Products, cotangent: npt.ArrayLike, v_cotangent: npt.ArrayLike | None
) -> tuple[_LeadingDimensions, dict[str, Any], tuple[Array, ...]]:
    """Return leading dimensions, arguments, and cotangents of q (and of v for second-order steps)."""
    given = products.given
    shape = (given.steps + 1, *products.shape("q"))
    cotangents = {"cotangent": numbers("cotangent", cotangent, shape)}
    if given.dynamic:
        of_v = np.zeros(shape) if v_cotangent is None else v_cotangent
        cotangents["v_cotangent"] = numbers("v_cotangent", of_v, shape)
    lead = broadcast(
        products.leads() | {name: array.shape[:-2] for name, array in cotangents.items()}
    )
    arguments = given.arguments(lead)
    rows = (_contiguous(name, array, lead, shape) for name, array in cotangents.items())
    return lead, arguments, tuple(rows)


def _after_rollout(
    products: Products,
    cotangent: Callable[[Array], npt.ArrayLike],
    threads: int | None,
    errors: Errors,
    caller: str,
) -> tuple[_LeadingDimensions, dict[str, Any], tuple[Any, ...], tuple[Array, ...]]:
    """Run the rollouts and compute the cotangents by the caller's function.

    It returns leading dimensions, arguments, the rollouts in the form of the core, and the
    cotangents.
    """
    given = products.given
    lead = broadcast(products.leads())
    arguments = given.arguments(lead)
    found = _core._rollout(
        given.model,
        products.options,
        **arguments,
        out=None,
        threads=thread_count(threads),
        warm_start=False,
        start=None,
        feedback=products.reaction(lead),
        bristles=None,
    )
    settle(
        caller, given.model, "q0", arguments["q"], found["status"], found["failure"], lead, errors
    )
    configurations = found["q"].reshape(*lead, given.steps + 1, given.model.nq)
    shape = (given.steps + 1, *products.shape("q"))
    rows = numbers("cotangent", cotangent(configurations.copy()), shape)
    if broadcast({"q": lead, "cotangent": rows.shape[:-2]}) != lead:
        raise ValueError(f"cotangent: expected shape {(*lead, *shape)}, got {rows.shape}")
    path = (found["q"], found["status"], found["steps_done"])
    return lead, arguments, path, (_contiguous("cotangent", rows, lead, shape),)


def push(
    products: Products,
    tangents: Mapping[str, npt.ArrayLike],
    threads: int | None,
    errors: Errors,
    caller: str,
    *,
    one_step: bool = False,
) -> dict[str, Any]:
    """Compute the fields of pushforwards; with ``one_step``, tangents of inputs have no step dimension."""
    check_errors(errors)
    if not isinstance(tangents, Mapping):
        raise TypeError(f"tangents: expected a mapping, got {type(tangents).__name__}")
    given = products.given
    names = {name: f"tangents[{name!r}]" for name in wrt_names(tangents, products.known())}
    arrays, leads = {}, products.leads()
    for name, said in names.items():
        whole = products.shape(name)
        shape = whole[1:] if one_step and name in OF_STEPS else whole
        array = numbers(said, tangents[name], shape)
        leads[said] = array.shape[: array.ndim - len(shape)]
        arrays[name] = array.reshape(*leads[said], *whole)
    lead = broadcast(leads)
    arguments = given.arguments(lead)
    rows: list[Array | None] = [None] * len(ARGUMENT_NAMES)
    for name, said in names.items():
        place = ARGUMENT_NAMES.index(name)
        rows[place] = _contiguous(said, arrays[name], lead, products.shape(name))
    found, fields = _run(
        products,
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
    width = products.shape("q")
    fields["tangent"] = found["tangent"].reshape(*lead, given.steps + 1, *width)
    if given.dynamic:
        fields["v_tangent"] = found["v_tangent"].reshape(fields["v"].shape)
    return fields
