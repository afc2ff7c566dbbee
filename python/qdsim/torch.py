"""Steps and rollouts as torch functions, with their pullbacks (extra ``torch``).

Operators of `torch.library` with fake, autograd and vmap rules, so that `torch.func.vmap`,
`torch.compile` and `torch.autograd.gradcheck` know them (`torch.func.grad` takes no such operators,
`torch.autograd` does): a rollout and its pullback are one call of the C core each, all samples one
batch on its threads. On the CPU only; arrays of 32 bits are stepped in 64 bits and rounded at the
end.

Derivatives are those of f(normalize(q)) by the nq numbers of q, as `qdsim.jax` has them: of a quaternion p the
gradient is at right angles to p. In tangent coordinates: `qdsim.rollout_vjp`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from ._core import ARGUMENT_NAMES, PARAMETER_NAMES
from .batches.products import rollout_vjp
from .batches.rollouts import rollout as _rollout_batch
from .layer_arguments import (
    inputs_of_a_step,
    inputs_of_steps,
    leads_of,
    parameters_of,
    settings_of,
)
from .model import Model
from .step import Options

__all__ = ["rollout", "step"]


def step(
    model: Model,
    q: Any,
    u: Any,
    options: Options | None = None,
    *,
    tau: Any = None,
    wrench: Any = None,
    parameters: Mapping[str, Any] | None = None,
    derivative: Literal["step", "smoothed"] = "step",
    kappa: float | None = None,
    threads: int | None = None,
    errors: Literal["raise", "mark"] = "raise",
) -> Any:
    """q_next (..., nq) = f(q, u), differentiable by every tensor.

    Args:
        model, options: As in `qdsim.step`.
        q, u, tau, wrench: Tensors (..., nq), (..., nu), (..., nv), (..., body_count, 6), whose leading dimensions
            broadcast.
        parameters: From names of `model.parameters` to tensors (..., *shape) in place of the model's.
        derivative, kappa: As in `qdsim.vjp_batch`.
        threads: As in `qdsim.step_batch`.
        errors: "raise": SolverError that names the first failed sample. "mark": returns (q_next, ok (...)) instead;
            failed samples keep their q and pull nothing back.

    Raises:
        As `qdsim.step_batch`.
    """
    given = inputs_of_a_step(_tensor, q, u, tau, wrench)
    call = _call_of(model, options, derivative, kappa, threads, errors)
    path, ok = _run(call, model, given, parameters)
    return path[..., 1, :] if errors == "raise" else (path[..., 1, :], ok)


def rollout(
    model: Model,
    q0: Any,
    u: Any,
    options: Options | None = None,
    *,
    tau: Any = None,
    wrench: Any = None,
    parameters: Mapping[str, Any] | None = None,
    derivative: Literal["step", "smoothed"] = "step",
    kappa: float | None = None,
    threads: int | None = None,
    errors: Literal["raise", "mark"] = "raise",
) -> Any:
    """Configurations (..., T + 1, nq) of T steps in a row, the normalised first one included.

    Args:
        q0, u: Tensors (..., nq) and (..., T, nu).
        tau, wrench: As in `step`, (..., T, nv) and (..., T, body_count, 6).
        model, options, parameters, derivative, kappa, threads, errors: As in `step`.

    Raises:
        As `qdsim.rollout`.
    """
    given = inputs_of_steps(_tensor, "q", q0, u, tau, wrench)
    call = _call_of(model, options, derivative, kappa, threads, errors)
    path, ok = _run(call, model, given, parameters)
    return path if errors == "raise" else (path, ok)


# ---------------------------------------------------------------- calls


@dataclass(frozen=True)
class _Call:
    """What an operator is told by a number, since it takes no objects."""

    model: Model
    options: Options
    kappa: float | None
    threads: int
    errors: Literal["raise", "mark"]


_lock = threading.Lock()
_numbers: dict[_Call, int] = {}
_calls: list[_Call] = []
"""They live as long as the process, as compiled programs may."""


def _call_of(
    model: Model,
    options: Options | None,
    derivative: str,
    kappa: float | None,
    threads: int | None,
    errors: Literal["raise", "mark"],
) -> int:
    own, weight, count = settings_of(model, options, derivative, kappa, threads, errors)
    call = _Call(model, own, weight, count, errors)
    with _lock:
        if call not in _numbers:
            _numbers[call] = len(_calls)
            _calls.append(call)
        return _numbers[call]


def _tensor(name: str, value: Any) -> Any:
    tensor = torch.as_tensor(value)
    if tensor.device.type != "cpu":
        raise ValueError(f"{name}: expected a tensor on the CPU, got one on {tensor.device}")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name}: expected a tensor of real numbers, got {tensor.dtype}")
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _run(
    call: int, model: Model, given: dict[str, Any], parameters: Mapping[str, Any] | None
) -> tuple[Any, Any]:
    tensors = {**given, **parameters_of(_tensor, parameters, "tensors")}
    dtype = torch.float32
    for tensor in tensors.values():
        dtype = torch.promote_types(dtype, tensor.dtype)
    _, leads = leads_of(model, tensors)
    lead = torch.broadcast_shapes(*leads.values())
    names = [name for name in ARGUMENT_NAMES if name in tensors]
    rows = []
    for name in names:
        tail = tensors[name].shape[len(leads[name]) :]
        rows.append(tensors[name].to(dtype).expand(*lead, *tail))
    path, status = torch.ops.qdsim.rollout(rows, call, names)
    return path, status == 0


def _keywords(names: list[str], arrays: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `qdsim.rollout` and its parameters, as arrays of doubles."""
    wide = {name: array.detach().to(torch.float64).numpy() for name, array in zip(names, arrays)}
    parameters = {name: wide.pop(name) for name in names if name in PARAMETER_NAMES}
    return wide, parameters


def _forward(arrays: list[torch.Tensor], call: int, names: list[str]) -> tuple[Any, Any]:
    own = _calls[call]
    wide, parameters = _keywords(names, arrays)
    found = _rollout_batch(
        own.model,
        wide.pop("q"),
        wide.pop("u"),
        own.options,
        **wide,
        parameters=parameters,
        threads=own.threads,
        errors=own.errors,
    )
    path = torch.from_numpy(found.q).to(arrays[0].dtype)
    return path, torch.from_numpy(np.ascontiguousarray(found.status))


def _backward(
    arrays: list[torch.Tensor], cotangent: torch.Tensor, call: int, names: list[str]
) -> list[torch.Tensor]:
    own = _calls[call]
    wide, parameters = _keywords(names, arrays)
    found = rollout_vjp(
        own.model,
        wide.pop("q"),
        wide.pop("u"),
        own.options,
        **wide,
        parameters=parameters,
        cotangent=cotangent.detach().to(torch.float64).numpy(),
        wrt=names,
        threads=own.threads,
        errors=own.errors,
        coordinates="ambient",
        derivative="step" if own.kappa is None else "smoothed",
        kappa=own.kappa,
    )
    failed = ~found.ok
    out = []
    for name, array in zip(names, arrays):
        gradient = found.gradients[name]
        gradient[failed] = 0.0
        out.append(torch.from_numpy(gradient).to(array.dtype).reshape(array.shape))
    return out


def _fake_forward(arrays: list[Any], call: int, names: list[str]) -> tuple[Any, Any]:
    q, u = (arrays[names.index(name)] for name in ("q", "u"))
    lead = q.shape[:-1]
    return (
        q.new_empty((*lead, u.shape[-2] + 1, q.shape[-1])),
        q.new_empty(lead, dtype=torch.int32),
    )


def _fake_backward(
    arrays: list[Any], cotangent: Any, call: int, names: list[str]
) -> list[torch.Tensor]:
    return [torch.empty_like(array, memory_format=torch.contiguous_format) for array in arrays]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    arrays, ctx.call, ctx.names = inputs
    ctx.save_for_backward(*arrays)
    ctx.mark_non_differentiable(output[1])


def _pull(ctx: Any, cotangent: Any, _: Any) -> tuple[Any, None, None]:
    arrays = list(ctx.saved_tensors)
    found = torch.ops.qdsim.rollout_pullback(arrays, cotangent, ctx.call, ctx.names)
    return found, None, None


def _batched(info: Any, dims: Any, tensors: list[Any]) -> list[Any]:
    """All with the new dimension in front."""
    return [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, dims)
    ]


def _vmap_forward(info: Any, in_dims: Any, arrays: Any, call: int, names: list[str]) -> Any:
    found = torch.ops.qdsim.rollout(_batched(info, in_dims[0], arrays), call, names)
    return found, (0, 0)


def _vmap_backward(
    info: Any, in_dims: Any, arrays: Any, cotangent: Any, call: int, names: list[str]
) -> Any:
    every = _batched(info, [*in_dims[0], in_dims[1]], [*arrays, cotangent])
    found = torch.ops.qdsim.rollout_pullback(every[:-1], every[-1], call, names)
    return found, [0] * len(found)


def _register() -> None:
    forward = torch.library.custom_op(
        "qdsim::rollout",
        _forward,
        mutates_args=(),
        schema="(Tensor[] arrays, int call, str[] names) -> (Tensor, Tensor)",
        device_types="cpu",
    )
    backward = torch.library.custom_op(
        "qdsim::rollout_pullback",
        _backward,
        mutates_args=(),
        schema="(Tensor[] arrays, Tensor cotangent, int call, str[] names) -> Tensor[]",
        device_types="cpu",
    )
    forward.register_fake(_fake_forward)
    backward.register_fake(_fake_backward)
    forward.register_autograd(_pull, setup_context=_keep)
    forward.register_vmap(_vmap_forward)
    backward.register_vmap(_vmap_backward)


_register()
