"""Arguments of batches: checked, broadcast, and as rows of samples for the core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import ARGUMENT_NAMES, PARAMETER_NAMES, STATUS_NAMES, THREADS_MAX
from qdsim.arguments import integer, real_array, reals
from qdsim.array_type import Array
from qdsim.description.checks import QUATERNION_TOLERANCE

__all__ = [
    "Inputs",
    "Mocap",
    "Wrench",
    "bristles_of",
    "broadcast",
    "check_errors",
    "check_finite",
    "check_model",
    "check_parameters",
    "check_quaternions",
    "every_step",
    "in_rows",
    "inputs_of",
    "numbers",
    "parameter_rows",
    "parameters_in",
    "parameters_of",
    "rows_of",
    "sample_name",
    "thread_count",
    "wrt_names",
]

Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""(..., body_count, 6), or a mapping from names of bodies to (..., 6)."""

Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""(..., mocap_count, 7), or a mapping from names of mocap bodies to (..., 7)."""


class Inputs(NamedTuple):
    """Inputs of steps other than the state, as given by the caller."""

    u: npt.ArrayLike
    tau: npt.ArrayLike | None
    wrench: Wrench | None
    mocap: Mocap | None
    parameters: Mapping[str, npt.ArrayLike] | None


_PARAMETER = {name: f"parameters[{name!r}]" for name in PARAMETER_NAMES}  # names in error messages
_BAD_ARGUMENT = STATUS_NAMES.index("bad argument")


def check_model(model: object) -> None:
    if not isinstance(model, _core.Model):
        raise TypeError(f"model: expected a qdsim.Model, got {type(model).__name__}")


def check_errors(errors: object) -> None:
    if not isinstance(errors, str) or errors not in ("raise", "mark"):
        raise ValueError(f"errors: expected 'raise' or 'mark', got {errors!r}")


def thread_count(threads: object) -> int:
    if threads is None:
        return min(_cores(), THREADS_MAX)
    return integer("threads", threads, least=1, most=THREADS_MAX, or_none=True)


def _cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wrt_names(wrt: Iterable[str], known: tuple[str, ...] = ARGUMENT_NAMES) -> tuple[str, ...]:
    """Check the names of step arguments, and return them in the core's order."""
    try:
        names = tuple(wrt)
    except TypeError:
        raise TypeError(
            f"wrt: expected names such as 'q' and 'u', got {type(wrt).__name__}"
        ) from None
    for name in names:
        if name not in known:
            *most, last = (repr(name) for name in known)
            raise ValueError(f"wrt: expected {', '.join(most)} or {last}, got {name!r}")
    return tuple(name for name in known if name in names)


def numbers(name: str, value: npt.ArrayLike, widths: tuple[int, ...]) -> Array:
    """Return the argument as doubles, after checking that its last dimensions have these sizes (-1: any)."""
    array = real_array(name, value)
    tail = array.shape[-len(widths) :]
    if len(tail) != len(widths) or any(w not in (-1, n) for w, n in zip(widths, tail)):
        sizes = ", ".join("T" if width < 0 else str(width) for width in widths)
        raise ValueError(f"{name}: expected shape (..., {sizes}), got {array.shape}")
    return reals(name, array)


def broadcast(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading dimensions do not broadcast: {said}") from None


def in_rows(array: Array, lead: tuple[int, ...], inner: int) -> Array:
    """Broadcast an array to ``lead`` and flatten its leading dimensions: (samples, ...).

    It copies only if the rows are not contiguous.
    """
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


def check_finite(name: str, flat: Array, lead: tuple[int, ...]) -> None:
    shared = flat[:1] if flat.strides[0] == 0 else flat
    good = np.isfinite(shared)  # once: another thread may write to the array meanwhile
    if good.all():
        return
    index = tuple(int(i) for i in np.argwhere(~good)[0])
    where = str(index[1]) if len(index) == 2 else str(list(index[1:]))
    value = flat[index]
    raise ValueError(f"{name}: {sample_name(index[0], lead)}: element {where} is {value}")


def wrenches_of(model: _core.Model, wrench: Wrench, steps: tuple[int, ...] = ()) -> Array:
    """Return wrenches (..., 6 body_count) of an array or mapping; ``steps``: dimensions before the bodies."""
    if not isinstance(wrench, Mapping):
        array = numbers("wrench", wrench, (*steps, model.body_count, 6))
        return array.reshape(*array.shape[:-2], 6 * model.body_count)
    names: tuple[str, ...] = getattr(model, "body_names", ())
    given = {}
    for name, value in wrench.items():
        if not isinstance(name, str):
            raise TypeError(f"wrench: expected names of bodies as keys, got {type(name).__name__}")
        if name not in names:
            raise ValueError(f"wrench: the model has no body {name!r}")
        given[names.index(name)] = numbers(f"wrench[{name!r}]", value, (*steps, 6))
    leads = {f"wrench[{names[body]!r}]": array.shape[:-1] for body, array in given.items()}
    lead = broadcast(leads) if given else (1,) * len(steps)
    out = np.zeros((*lead, model.body_count, 6))
    for body, array in given.items():
        out[..., body, :] = array
    return out.reshape(*lead, 6 * model.body_count)


def mocap_of(model: _core.Model, mocap: Mocap, steps: tuple[int, ...] = ()) -> Array:
    """Return poses (..., 7 mocap_count) of an array or mapping; ``steps``: dimensions before the bodies."""
    count = model.mocap_count
    if not isinstance(mocap, Mapping):
        array = numbers("mocap", mocap, (*steps, count, 7))
    else:
        names: tuple[str, ...] = getattr(model, "mocap_names", ())
        given = {}
        for name, value in mocap.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"mocap: expected names of bodies as keys, got {type(name).__name__}"
                )
            if name not in names:
                raise ValueError(f"mocap: the model has no mocap body {name!r}")
            given[names.index(name)] = numbers(f"mocap[{name!r}]", value, (*steps, 7))
        leads = {f"mocap[{names[body]!r}]": found.shape[:-1] for body, found in given.items()}
        lead = broadcast(leads) if given else (1,) * len(steps)
        poses: Array = model.mocap_poses  # type: ignore[attr-defined]
        array = np.array(np.broadcast_to(poses, (*lead, count, 7)))
        for body, found in given.items():
            array[..., body, :] = found
    length = np.linalg.norm(array[..., 3:], axis=-1)
    if np.any(np.abs(length - 1.0) > QUATERNION_TOLERANCE):
        at = tuple(int(i) for i in np.argwhere(np.abs(length - 1.0) > QUATERNION_TOLERANCE)[0])
        name = getattr(model, "mocap_names", ())[at[-1]]
        raise ValueError(
            f"mocap: element {list(at[:-1])}: the quaternion of body {name!r} has length "
            f"{length[at]:.4g}; expected 1 to within 1e-3"
        )
    return array.reshape(*array.shape[:-2], 7 * count)


def bristles_of(model: _core.Model, bristles: npt.ArrayLike) -> Array:
    """Return bristle stretches (..., 6 soft_pair_count)."""
    array = numbers("bristles", bristles, (model.soft_pair_count, 6))
    return array.reshape(*array.shape[:-2], 6 * model.soft_pair_count)


def every_step(name: str, course: Array, step_count: int) -> Array:
    """Broadcast an input (..., T or 1, n) to all steps."""
    if course.shape[-2] not in (1, step_count):
        raise ValueError(
            f"{name}: expected {step_count} steps as in u, or 1, got {course.shape[-2]}"
        )
    return np.broadcast_to(course, (*course.shape[:-2], step_count, course.shape[-1]))


def inputs_of(
    model: _core.Model,
    inputs: Inputs,
    steps: tuple[int, ...] = (),
) -> dict[str, Array]:
    """Check the inputs and return them by name; ``steps`` is (-1,) for rollouts."""
    found = {"u": numbers("u", inputs.u, (*steps, model.nu))}
    if inputs.tau is not None:
        found["tau"] = numbers("tau", inputs.tau, (*steps, model.nv))
    if inputs.wrench is not None:
        found["wrench"] = wrenches_of(model, inputs.wrench, steps)
    if inputs.mocap is not None:
        found["mocap"] = mocap_of(model, inputs.mocap, steps)
    return found


def rows_of(
    model: _core.Model,
    q: npt.ArrayLike,
    inputs: Inputs,
    v: npt.ArrayLike | None = None,
    bristles: npt.ArrayLike | None = None,
) -> tuple[tuple[int, ...], dict[str, Array]]:
    """Check all arguments; return the leading dimensions, and each argument as rows of samples."""
    check_model(model)
    arrays = {"q": numbers("q", q, (model.nq,))}
    if v is not None:
        arrays["v"] = numbers("v", v, (model.nv,))
    if bristles is not None:
        arrays["bristles"] = bristles_of(model, bristles)
    arrays |= inputs_of(model, inputs)
    values = parameters_of(model, inputs.parameters)
    both = {**arrays, **values}
    lead = broadcast({name: array.shape[:-1] for name, array in both.items()})
    flat = {name: in_rows(array, lead, 1) for name, array in both.items()}
    for name in arrays:
        check_finite(name, flat[name], lead)
    if values:
        check_parameters(model, {name: flat[name] for name in values}, lead)
    return lead, flat


def parameters_of(
    model: _core.Model, parameters: Mapping[str, npt.ArrayLike] | None
) -> dict[str, Array]:
    """Check parameters per sample and return them (..., size) by their names in error messages."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise TypeError(
            f"parameters: expected a mapping from names to arrays, got {type(parameters).__name__}"
        )
    found: dict[str, Array] = {}
    for name, value in parameters.items():
        if name not in PARAMETER_NAMES:
            raise ValueError(
                f"parameters: expected names among {', '.join(PARAMETER_NAMES)}, got {name!r}"
            )
        shape = np.shape(getattr(model.parameters, name))  # type: ignore[attr-defined]
        array = numbers(_PARAMETER[name], value, shape)
        size = 1
        for n in shape:
            size *= n
        found[_PARAMETER[name]] = array.reshape(*array.shape[: array.ndim - len(shape)], size)
    return found


def parameters_in(model: _core.Model, rows: dict[str, Array]) -> dict[str, Array]:
    """Parameters (samples, *shape) by name, from the result of ``rows_of``."""
    found = {}
    for name in PARAMETER_NAMES:
        own = rows.get(_PARAMETER[name])
        if own is not None:
            shape = np.shape(getattr(model.parameters, name))  # type: ignore[attr-defined]
            found[name] = own.reshape(len(own), *shape)
    return found


def check_parameters(model: _core.Model, rows: dict[str, Array], lead: tuple[int, ...]) -> None:
    for k, name in enumerate(PARAMETER_NAMES):
        own = rows.get(_PARAMETER[name])
        fault = None if own is None else _core._parameter_fault(model, k, own)
        if fault is not None:
            sample, element, reason = fault
            raise ValueError(
                f"{_PARAMETER[name]}: {sample_name(sample, lead)}: element {element}: {reason}"
            )


def check_quaternions(
    model: _core.Model,
    name: str,
    q: Array,
    status: npt.NDArray[np.int32],
    lead: tuple[int, ...],
) -> None:
    """Raise an error for the first sample whose quaternions the core rejected."""
    bad = np.flatnonzero(status == _BAD_ARGUMENT)
    if bad.size:
        try:
            model.normalize(q[bad[0]])
        except ValueError as error:
            reason = str(error).removeprefix("q: ")
            raise ValueError(f"{name}: {sample_name(int(bad[0]), lead)}: {reason}") from None


def parameter_rows(rows: dict[str, Array]) -> tuple[Array | None, ...] | None:
    found = tuple(rows.get(_PARAMETER[name]) for name in PARAMETER_NAMES)
    return None if all(array is None for array in found) else found


def sample_name(sample: int, lead: tuple[int, ...]) -> str:
    if len(lead) == 0:
        return "the only sample"
    index = [int(i) for i in np.unravel_index(sample, lead)]
    return f"sample {index[0] if len(index) == 1 else index}"
