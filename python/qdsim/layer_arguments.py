"""Arguments of steps and rollouts on arrays of another library: the checks that ``jax`` and
``torch`` share.

Arrays are those of the library; only their shapes are used here, and None in an index adds a
dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from qdsim._core import PARAMETER_NAMES
from qdsim.arguments import number, one_of
from qdsim.batches.inputs import check_errors, check_model, thread_count
from qdsim.batches.marks import argument_shape
from qdsim.dynamics import DynamicOptions
from qdsim.layer_rollouts import LayerRollouts, split
from qdsim.model import Model
from qdsim.step import Options

__all__ = [
    "Errors",
    "Make",
    "inputs_of_a_step",
    "inputs_of_steps",
    "is_dynamic",
    "leads_of",
    "parameters_of",
    "result",
    "settings_of",
]

Errors = Literal["raise", "mark"]
Make = Callable[[str, Any], Any]
"""``make(name, value)``: an argument as an array of the library."""

_OF_STEPS = ("u", "tau", "wrench")


def settings_of(
    model: Model,
    options: Options | DynamicOptions | None,
    derivative: str,
    kappa: float | None,
    threads: int | None,
    errors: Errors,
) -> LayerRollouts:
    """Check the arguments that are not arrays."""
    check_model(model)
    check_errors(errors)
    one_of("derivative", derivative, allowed=("step", "smoothed"))
    given: object = options
    if given is not None and not isinstance(given, (Options, DynamicOptions)):
        kind = type(given).__name__
        raise TypeError(f"options: expected a qdsim.Options or DynamicOptions, got {kind}")
    if (derivative == "smoothed") != (kappa is not None):
        raise ValueError(
            f"kappa: expected with derivative='smoothed' and only then, got {kappa!r} with {derivative!r}"
        )
    if derivative == "smoothed" and isinstance(options, DynamicOptions):
        raise ValueError(
            "derivative: 'smoothed' is of quasi-dynamic steps; DynamicOptions(kappa=...) smooths second-order ones"
        )
    wide = None if kappa is None else number("kappa", kappa, above=0)
    return LayerRollouts(model, options or Options(), wide, thread_count(threads), errors)


def inputs_of_steps(
    make: Make,
    dynamic: bool,
    q: Any,
    u: Any,
    tau: Any,
    wrench: Any,
    v: Any,
    *,
    first: tuple[str, str] = ("q0", "v0"),
) -> dict[str, Any]:
    """Convert the inputs q (..., nq), v (..., nv), u (..., T, nu), tau and wrench to arrays.

    ``first`` are the names of q and v in error messages.
    """
    if dynamic != (v is not None):
        said = "nothing with them" if dynamic else "it without them"
        raise TypeError(f"{first[1]}: expected with qdsim.DynamicOptions and only then, got {said}")
    given = {"q": make(first[0], q), "u": make("u", u)}
    rest = {"tau": ("tau", tau), "wrench": ("wrench", wrench), "v": (first[1], v)}
    return given | {
        name: make(said, value) for name, (said, value) in rest.items() if value is not None
    }


def inputs_of_a_step(
    make: Make, dynamic: bool, q: Any, u: Any, tau: Any, wrench: Any, v: Any
) -> dict[str, Any]:
    """Convert the inputs of one step, with u (..., nu), tau and wrench; a step is a rollout with T = 1."""
    given = inputs_of_steps(make, dynamic, q, u, tau, wrench, v, first=("q", "v"))
    for name, dimensions in (("u", 1), ("tau", 1), ("wrench", 2)):
        if name in given and given[name].ndim >= dimensions:
            rows = (slice(None),) * dimensions
            index = (..., None, *rows)
            given[name] = given[name][index]
    return given


def parameters_of(make: Make, parameters: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    """Convert the parameters to arrays; ``kind`` names the arrays in error messages."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise TypeError(
            f"parameters: expected a mapping from names to {kind}, got {type(parameters).__name__}"
        )
    for name in parameters:
        if name not in PARAMETER_NAMES:
            raise ValueError(
                f"parameters: expected names among {', '.join(PARAMETER_NAMES)}, got {name!r}"
            )
    return {name: make(f"parameters[{name!r}]", value) for name, value in parameters.items()}


def leads_of(model: Model, arrays: Mapping[str, Any]) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Check the shapes; return the number of steps, and the leading dimensions of every array."""
    u = arrays["u"]
    if u.ndim < 2:
        raise ValueError(f"u: expected shape (..., steps, {model.nu}), got {tuple(u.shape)}")
    steps = u.shape[-2]
    leads = {}
    for name, array in arrays.items():
        shape = (model.nq,) if name == "q" else argument_shape(model, name)
        tail = (steps, *shape) if name in _OF_STEPS else shape
        own = array.ndim - len(tail)
        if own < 0 or tuple(array.shape[own:]) != tail:
            sizes = ", ".join(["...", *map(str, tail)])
            raise ValueError(f"{name}: expected shape ({sizes}), got {tuple(array.shape)}")
        leads[name] = tuple(array.shape[:own])
    return steps, leads


def is_dynamic(options: object) -> bool:
    """Return whether these are options of second-order steps."""
    return isinstance(options, DynamicOptions)


def result(model: Model, dynamic: bool, errors: Errors, path: Any, ok: Any) -> Any:
    """The result of a call from states (..., width) and the status of samples: one array, or a
    tuple."""
    states = split(model, dynamic, path)
    found = states if errors == "raise" else (*states, ok)
    return found[0] if len(found) == 1 else found
