"""Steps and rollouts as torch functions, with their derivatives (extra ``torch``).

They work with ``torch.autograd``, ``torch.func`` (``vmap``, ``grad``, ``vjp``, ``jvp``, ``jacrev``,
``jacfwd``) and ``torch.compile`` (as operators of ``torch.library``). A rollout is one call of the
C core, and so is its gradient; all samples are one batch on its threads. On the CPU only; tensors
of 32 bits are computed in 64 bits and rounded at the end.

Derivatives are those of f(normalize(q)) with respect to the nq numbers of q, since torch has no
manifolds. For a quaternion p of q, gradients are orthogonal to p. A step along the gradient leaves
the unit sphere to second order; the next call normalises (a length that deviates by more than 1e-3
is an error: divide by the length). For gradients in tangent coordinates, differentiate with respect
to v at zero, with ``integrate``:

    >>> v = torch.zeros(model.nv, dtype=torch.float64, requires_grad=True)
    >>> cost(step(model, integrate(model, q, v), u)).backward()

Derivatives cannot be differentiated again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from qdsim import layer_manifold
from qdsim._core import ARGUMENT_NAMES
from qdsim.batches.inputs import broadcast
from qdsim.dynamics import DynamicOptions
from qdsim.layer_arguments import (
    inputs_of_a_step,
    inputs_of_steps,
    is_dynamic,
    leads_of,
    parameters_of,
    result,
    settings_of,
)
from qdsim.layer_rollouts import LayerRollouts
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["difference", "integrate", "mujoco_step", "rollout", "step"]


def step(
    model: Model,
    q: Any,
    u: Any,
    options: Options | DynamicOptions | None = None,
    *,
    v: Any = None,
    tau: Any = None,
    wrench: Any = None,
    parameters: Mapping[str, Any] | None = None,
    derivative: Literal["step", "smoothed"] = "step",
    kappa: float | None = None,
    threads: int | None = None,
    errors: Literal["raise", "mark"] = "raise",
) -> Any:
    """Compute a step inside a torch program: q_next (..., nq) = f(q, u), differentiable with
    respect to every tensor.

    With ``qdsim.DynamicOptions`` it is a second-order step: q_next, v_next = f(q, v, u).

    Args:
        model, options: As in ``qdsim.step``, or ``qdsim.step_dynamic``.
        q, u, tau, wrench: Tensors (..., nq), (..., nu), (..., nv), (..., body_count, 6), whose
            leading dimensions broadcast.
        v: Velocities (..., nv), m/s or rad/s, of second-order steps.
        parameters: From names of ``model.parameters`` to tensors (..., *shape) in place of the
            model's.
        derivative, kappa: As in ``qdsim.vjp_batch``.
        threads: As in ``qdsim.step_batch``.
        errors: "raise": SolverError that names the first failed sample. "mark": returns (q_next, ok
            (...)) instead, or (q_next, v_next, ok); failed samples keep their q and v and have zero
            gradients.

    Raises:
        TypeError, ValueError, SolverError: As ``qdsim.step_batch``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    call, dynamic = (
        _number_of(model, options, derivative, kappa, threads, errors),
        is_dynamic(options),
    )
    given = inputs_of_a_step(_tensor, dynamic, q, u, tau, wrench, v)
    path, ok = _run(call, model, given, parameters)
    return result(model, dynamic, errors, path[..., 1, :], ok)


def rollout(
    model: Model,
    q0: Any,
    u: Any,
    options: Options | DynamicOptions | None = None,
    *,
    v0: Any = None,
    tau: Any = None,
    wrench: Any = None,
    parameters: Mapping[str, Any] | None = None,
    derivative: Literal["step", "smoothed"] = "step",
    kappa: float | None = None,
    threads: int | None = None,
    errors: Literal["raise", "mark"] = "raise",
) -> Any:
    """Roll out T steps: configurations (..., T + 1, nq), the normalised initial one included.

    With ``qdsim.DynamicOptions``: configurations and velocities (..., T + 1, nv).

    Args:
        q0, u: Tensors (..., nq) and (..., T, nu), in the units of the actuators.
        v0: Initial velocities (..., nv), m/s or rad/s, of second-order steps.
        tau, wrench: As in ``step``, (..., T, nv) and (..., T, body_count, 6), N and Nm.
        model, options, parameters, derivative, kappa, threads, errors: As in ``step``.

    Raises:
        TypeError, ValueError, SolverError: As ``qdsim.rollout``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    call, dynamic = (
        _number_of(model, options, derivative, kappa, threads, errors),
        is_dynamic(options),
    )
    given = inputs_of_steps(_tensor, dynamic, q0, u, tau, wrench, v0)
    return result(model, dynamic, errors, *_run(call, model, given, parameters))


def integrate(model: Model, q: Any, v: Any) -> Any:
    """Compute ``Model.integrate`` as a torch function: the configuration q ⊞ v (..., nq) of q (...,
    nq) and v (..., nv)."""
    return layer_manifold.integrate(torch, model, _tensor("q", q), _tensor("v", v))


def difference(model: Model, q1: Any, q0: Any) -> Any:
    """Compute ``Model.difference`` as a torch function: the displacement q1 ⊟ q0 (..., nv), with
    rotations of at most pi."""
    return layer_manifold.difference(torch, model, _tensor("q1", q1), _tensor("q0", q0))


def mujoco_step(
    model: Any,
    state: Any,
    control: Any,
    *,
    data: Any = None,
    contacts: Literal["exact", "differences"] = "exact",
    threads: int | None = None,
) -> Any:
    """Compute the state after one ``mj_step`` of MuJoCo, with the exact derivatives of
    ``qdsim.mujoco.linearize``.

    MuJoCo's solver starts cold. ``torch.compile`` breaks its graph here.

    Args:
        model: A ``mujoco.MjModel``; kept until the process ends.
        state, control: Tensors (..., nstate) of ``mjSTATE_FULLPHYSICS``, as in ``mujoco.rollout``
            (time, qpos, qvel, act), and (..., nu), whose leading dimensions broadcast.
        data: An ``MjData`` with the inputs common to all samples: applied forces, mocap poses,
            active equalities. None: MuJoCo's defaults.
        contacts: As in ``qdsim.mujoco.linearize``.
        threads: As in ``qdsim.mujoco.linearize_batch``.

    Returns:
        (..., nstate).

    Raises:
        TypeError, ValueError: An argument is invalid, the model has features without derivative
            (``qdsim.mujoco.refusals``), or, if derivatives are needed, a contact has no known
            derivative.
        ArithmeticError: MuJoCo fails for a state.
    """
    from qdsim.mujoco.ambient import lead_of_step, step_of

    own = step_of(model, data, contacts, threads)
    x, u = _tensor("state", state), _tensor("control", control)
    lead, dtype = lead_of_step(model, x, u), torch.promote_types(x.dtype, u.dtype)
    x, u = (a.to(torch.float64).expand(*lead, a.shape[-1]) for a in (x, u))
    return _MujocoStep.apply(own, x, u).to(dtype)


mujoco_step._torchdynamo_disable = True  # type: ignore[attr-defined]
"""The effect of ``torch.compiler.disable``, without its import of the compiler."""


# ---------------------------------------------------------------- calls


_lock = threading.Lock()
_numbers: dict[LayerRollouts, int] = {}
_calls: list[LayerRollouts] = []
"""Settings are kept until the process ends, because compiled programs may be. Operators take no
Python objects, so they get the index of the settings."""


def _number_of(*settings: Any) -> int:
    own = settings_of(*settings)
    with _lock:
        if own not in _numbers:
            _numbers[own] = len(_calls)
            _calls.append(own)
        return _numbers[own]


_number_of._dynamo_marked_constant = True  # type: ignore[attr-defined]
"""The effect of ``torch.compiler.assume_constant_result``, without its import of the compiler,
which takes a second."""


def _tensor(name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name}: expected a tensor ({error})") from None
    if value.device.type != "cpu":
        raise ValueError(f"{name}: expected a tensor on the CPU, got one on {value.device}")
    if value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"{name}: expected a tensor of real numbers, got {value.dtype}")
    if value.layout != torch.strided:
        raise TypeError(f"{name}: expected a dense tensor, got one of {value.layout}")
    return value if value.is_floating_point() else value.to(torch.get_default_dtype())


def _run(
    call: int, model: Model, given: dict[str, Any], parameters: Mapping[str, Any] | None
) -> tuple[Any, Any]:
    tensors = {**given, **parameters_of(_tensor, parameters, "tensors")}
    dtype = torch.float32
    for tensor in tensors.values():
        dtype = torch.promote_types(dtype, tensor.dtype)
    _, leads = leads_of(model, tensors)
    lead = broadcast(leads)
    names = [name for name in ARGUMENT_NAMES if name in tensors]
    rows = []
    for name in names:
        tail = tensors[name].shape[len(leads[name]) :]
        rows.append(tensors[name].to(torch.float64).expand(*lead, *tail))
    if torch.compiler.is_compiling():
        path, status = torch.ops.qdsim.rollout(rows, call, names)
    else:
        path, status = _Rollout.apply(call, names, *rows)
    return path.to(dtype), status == 0


# ---------------------------------------------------------------- implementations


def _forward(arrays: list[torch.Tensor], call: int, names: list[str]) -> tuple[Any, Any]:
    """Compute paths and status of rollouts."""
    path, status = _calls[call].forward(_arrays(names, arrays))
    return torch.from_numpy(path), torch.from_numpy(status)


def _backward(
    arrays: list[torch.Tensor],
    path: torch.Tensor,
    status: torch.Tensor,
    cotangent: torch.Tensor,
    call: int,
    names: list[str],
    wrt: list[str],
) -> list[torch.Tensor]:
    """Compute the gradients of rollouts along a path with respect to ``wrt``."""
    rows = path.detach().numpy(), status.numpy(), cotangent.detach().numpy()
    found = _calls[call].pull(_arrays(names, arrays), *rows, wrt)
    return [torch.from_numpy(found[name]) for name in wrt]


def _push(
    arrays: list[torch.Tensor], tangents: list[torch.Tensor], call: int, names: list[str]
) -> torch.Tensor:
    """Compute the change of a path for tangents of the arguments of its rollout."""
    return torch.from_numpy(_calls[call].push(_arrays(names, arrays), _arrays(names, tangents)))


def _arrays(names: list[str], tensors: Sequence[Any]) -> dict[str, Any]:
    return {name: tensor.detach().numpy() for name, tensor in zip(names, tensors)}


# ---------------------------------------------------------------- operators, for torch.compile


def _fake_forward(arrays: list[Any], call: int, names: list[str]) -> tuple[Any, Any]:
    q, u = (arrays[names.index(name)] for name in ("q", "u"))
    lead = q.shape[:-1]
    return (
        q.new_empty((*lead, u.shape[-2] + 1, _calls[call].width)),
        q.new_empty(lead, dtype=torch.int32),
    )


def _fake_backward(
    arrays: list[Any],
    path: Any,
    status: Any,
    cotangent: Any,
    call: int,
    names: list[str],
    wrt: list[str],
) -> list[torch.Tensor]:
    return [arrays[names.index(name)].new_empty(arrays[names.index(name)].shape) for name in wrt]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    arrays, ctx.call, ctx.names = inputs
    ctx.save_for_backward(*arrays, *output)
    ctx.mark_non_differentiable(output[1])


def _pull(ctx: Any, cotangent: Any, _: Any) -> tuple[Any, None, None]:
    *arrays, path, status = ctx.saved_tensors
    names = ctx.names
    found = torch.ops.qdsim.rollout_pullback(
        arrays, path, status, cotangent, ctx.call, names, names
    )
    return found, None, None


def _no_second(*_: Any) -> Any:
    raise NotImplementedError("qdsim.torch: a derivative cannot be differentiated again")


def _register() -> None:
    arguments = "Tensor[] arrays, {}int call, str[] names"
    forward = torch.library.custom_op(
        "qdsim::rollout",
        _forward,
        mutates_args=(),
        schema=f"({arguments.format('')}) -> (Tensor, Tensor)",
        device_types="cpu",
    )
    more = arguments.format("Tensor path, Tensor status, Tensor cotangent, ")
    backward = torch.library.custom_op(
        "qdsim::rollout_pullback",
        _backward,
        mutates_args=(),
        schema=f"({more}, str[] wrt) -> Tensor[]",
        device_types="cpu",
    )
    forward.register_fake(_fake_forward)
    backward.register_fake(_fake_backward)
    forward.register_autograd(_pull, setup_context=_keep)
    backward.register_autograd(_no_second)
    forward.register_vmap(_vmap_forward)
    backward.register_vmap(_vmap_backward)


# ---------------------------------------------------------------- functions, for torch.autograd and torch.func


def _batched(info: Any, dims: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Return all tensors with the new dimension in front."""
    return [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, dims)
    ]


def _vmap_forward(info: Any, in_dims: Any, arrays: Any, call: int, names: list[str]) -> Any:
    return _Rollout.apply(call, names, *_batched(info, in_dims[0], arrays)), (0, 0)


def _vmap_backward(
    info: Any,
    in_dims: Any,
    arrays: Any,
    path: Any,
    status: Any,
    cotangent: Any,
    call: int,
    names: list[str],
    wrt: list[str],
) -> Any:
    every = _batched(info, [*in_dims[0], *in_dims[1:4]], [*arrays, path, status, cotangent])
    found = _Pullback.apply(call, names, wrt, *every)
    return list(found), [0] * len(found)


def _are_real(tensors: Sequence[Any]) -> bool:
    """Return whether all are plain tensors, for which a direct call avoids torch's dispatcher (0.1 ms)."""
    return all(type(tensor) is torch.Tensor for tensor in tensors)


class _Rollout(torch.autograd.Function):  # type: ignore[misc]  # torch is not looked into
    """The rollout operator for ``torch.func``.

    ``torch.func`` cannot differentiate operators registered by ``torch.library``; their forward
    derivatives are zero without any warning.
    """

    @staticmethod
    def forward(call: int, names: list[str], *arrays: Any) -> Any:
        act = _forward if _are_real(arrays) else torch.ops.qdsim.rollout
        return act(list(arrays), call, names)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call, ctx.names, *arrays = inputs
        ctx.save_for_backward(*arrays, *output)
        ctx.save_for_forward(*arrays)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, cotangent: Any, _: Any) -> Any:
        wanted = ctx.needs_input_grad[2:]
        wrt = [name for name, needed in zip(ctx.names, wanted) if needed]
        *arrays, path, status = ctx.saved_tensors
        tensors = (*arrays, path, status, cotangent)
        ends = _are_real(tensors) and not torch.is_grad_enabled()  # nothing differentiates it again
        pull = _Pullback.forward if ends else _Pullback.apply
        found = iter(pull(ctx.call, ctx.names, wrt, *tensors))
        return None, None, *(next(found) if needed else None for needed in wanted)

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> Any:
        arrays = ctx.saved_tensors
        given = [torch.zeros_like(a) if t is None else t for a, t in zip(arrays, tangents)]
        return _Pushforward.apply(ctx.call, ctx.names, *arrays, *given), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: int, names: list[str], *arrays: Any) -> Any:
        return _Rollout.apply(call, names, *_batched(info, in_dims[2:], arrays)), (0, 0)


class _Once(torch.autograd.Function):  # type: ignore[misc]
    """A derivative that cannot be differentiated again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    backward = jvp = staticmethod(_no_second)


class _Pullback(_Once):
    @staticmethod
    def forward(call: int, names: list[str], wrt: list[str], *tensors: Any) -> Any:
        *arrays, path, status, cotangent = tensors
        act = _backward if _are_real(tensors) else torch.ops.qdsim.rollout_pullback
        return tuple(act(arrays, path, status, cotangent, call, names, wrt))

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, call: int, names: list[str], wrt: list[str], *tensors: Any
    ) -> Any:
        found = _Pullback.apply(call, names, wrt, *_batched(info, in_dims[3:], tensors))
        return found, (0,) * len(found)


class _Pushforward(_Once):
    @staticmethod
    def forward(call: int, names: list[str], *tensors: Any) -> Any:
        half = len(names)
        return _push(list(tensors[:half]), list(tensors[half:]), call, names)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: int, names: list[str], *tensors: Any) -> Any:
        return _Pushforward.apply(call, names, *_batched(info, in_dims[2:], tensors)), 0


class _MujocoStep(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(own: Any, state: Any, control: Any) -> Any:
        return torch.from_numpy(own.advance(state.detach().numpy(), control.detach().numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.own, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        found = _MujocoMatrices.apply(ctx.own, *ctx.saved_tensors)
        return None, *((cotangent[..., None, :] @ matrix)[..., 0, :] for matrix in found)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        found = _MujocoMatrices.apply(ctx.own, *ctx.saved_tensors)
        moved = [(m @ t[..., None])[..., 0] for m, t in zip(found, tangents) if t is not None]
        return sum(moved)

    @staticmethod
    def vmap(info: Any, in_dims: Any, own: Any, *tensors: Any) -> Any:
        return _MujocoStep.apply(own, *_batched(info, in_dims[1:], tensors)), 0


class _MujocoMatrices(_Once):
    """Jacobian matrices with respect to the state and the controls."""

    @staticmethod
    def forward(own: Any, state: Any, control: Any) -> Any:
        found = own.linearize(state.detach().numpy(), control.detach().numpy())
        return torch.from_numpy(found[1]), torch.from_numpy(found[2])

    @staticmethod
    def vmap(info: Any, in_dims: Any, own: Any, *tensors: Any) -> Any:
        return _MujocoMatrices.apply(own, *_batched(info, in_dims[1:], tensors)), (0, 0)


_register()
