"""Steps and rollouts, quasi-dynamic and second-order, inside jax programs (extra ``jax``).

``jit``, ``grad``, ``vmap`` and ``scan`` work. XLA calls the C core through its foreign function
interface, without Python: a step inside a compiled ``lax.scan`` costs as much as in C. All samples
of a call, including those that ``vmap`` adds, are one batch on the core's threads. Arrays of 32
bits are computed in 64 bits and rounded at the end. On the CPU only.

Derivatives are those of f(normalize(q)) with respect to the nq numbers of q, since jax has no
manifolds. For a quaternion p of q, gradients are orthogonal to p. A step along the gradient leaves
the unit sphere to second order; the next call normalises (a length that deviates by more than 1e-3
is an error: divide by the length). For gradients in tangent coordinates, differentiate with respect
to v at zero, with ``integrate``:

    >>> gradient = jax.grad(lambda v: cost(step(model, integrate(model, q, v), u)))(
    ...     jnp.zeros(model.nv)
    ... )

Forward and reverse mode (``jvp``, ``jacfwd``, ``grad``, ``jacrev``) work once: derivatives cannot
be differentiated again, so ``jax.hessian`` raises an error. Forward mode calls back into Python,
reverse mode does not.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from qdsim import _core, layer_manifold
from qdsim._core import ARGUMENT_NAMES
from qdsim.dynamics import DynamicOptions
from qdsim.layer_arguments import (
    inputs_of_a_step,
    inputs_of_steps,
    leads_of,
    parameters_of,
    result,
    settings_of,
)
from qdsim.layer_rollouts import LayerRollouts
from qdsim.model import Model
from qdsim.step import Options

__all__ = ["difference", "integrate", "mujoco_step", "rollout", "step"]

_TARGETS = ("qdsim_rollout", "qdsim_rollout_pullback")


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
    """Compute a step inside a jax program: q_next (..., nq) = f(q, u), differentiable with respect
    to every array.

    With ``qdsim.DynamicOptions`` it is a second-order step: q_next, v_next = f(q, v, u).

    Args:
        model, options: As in ``qdsim.step``, or ``qdsim.step_dynamic``; static, and kept until the
            process ends.
        q: Configurations (..., nq).
        v: Velocities (..., nv), m/s or rad/s, of second-order steps.
        u: Commands (..., nu). Leading dimensions of all arrays broadcast, and are the batch.
        tau: Applied generalised forces (..., nv).
        wrench: Applied to the bodies (..., body_count, 6).
        parameters: From names of ``model.parameters`` to arrays (..., *shape) in place of the
            model's.
        derivative, kappa: As in ``qdsim.vjp_batch``: "smoothed" differentiates the log-barrier step
            with weight ``kappa`` at the same q and u.
        threads: As in ``qdsim.step_batch``.
        errors: "raise": a failed sample fails the whole call, with a message. "mark": returns
            (q_next, ok (...)) instead, or (q_next, v_next, ok); failed samples keep their q and v
            and have zero gradients.

    Raises:
        TypeError, ValueError: while tracing, if an argument is invalid; the message names it.
        ValueError, jax.errors.JaxRuntimeError: when the result is computed: for numbers that are
            not finite, invalid parameters, or steps without a solution.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    own = settings_of(model, options, derivative, kappa, threads, errors)
    given = inputs_of_a_step(_array, own.is_dynamic, q, u, tau, wrench, v)
    path, ok = _rollout(own, given, parameters)
    return result(model, own.is_dynamic, errors, path[..., 1, :], ok)


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

    With ``qdsim.DynamicOptions``: configurations and velocities (..., T + 1, nv). The rollout is
    one call, forwards and backwards; if all commands are known, it is faster than a scan of steps.

    Args:
        q0: Initial configurations (..., nq).
        v0: Initial velocities (..., nv), m/s or rad/s, of second-order steps.
        u: Commands (..., T, nu), in the units of the actuators.
        tau, wrench: As in ``step``, (..., T, nv) and (..., T, body_count, 6), N and Nm.
        model, options, parameters, derivative, kappa, threads, errors: As in ``step``; marked
            rollouts repeat the configuration before their first failed step.

    Raises:
        TypeError, ValueError, jax.errors.JaxRuntimeError: As ``step``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    own = settings_of(model, options, derivative, kappa, threads, errors)
    given = inputs_of_steps(_array, own.is_dynamic, q0, u, tau, wrench, v0)
    return result(model, own.is_dynamic, errors, *_rollout(own, given, parameters))


def integrate(model: Model, q: Any, v: Any) -> Any:
    """Compute ``Model.integrate`` as a jax function: the configuration q ⊞ v, ``(..., nq)``.

    Args:
        model: the model; static.
        q: ``(..., nq)``.
        v: ``(..., nv)``, a displacement in tangent coordinates.
    """
    return layer_manifold.integrate(jnp, model, _array("q", q), _array("v", v))


def difference(model: Model, q1: Any, q0: Any) -> Any:
    """Compute ``Model.difference`` as a jax function: the displacement q1 ⊟ q0, ``(..., nv)``, with
    rotations of at most pi.

    Args:
        model: the model; static.
        q1, q0: ``(..., nq)``.
    """
    return layer_manifold.difference(jnp, model, _array("q1", q1), _array("q0", q0))


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

    The compiled program calls MuJoCo back, for all samples at once; its solver starts cold. Forward
    and reverse mode work once. Derivatives with respect to quaternions are as described for this
    module.

    Args:
        model: A ``mujoco.MjModel``; static, and kept until the process ends. Its numbers are read
            when the step runs.
        state: (..., nstate) of ``mjSTATE_FULLPHYSICS``, as in ``mujoco.rollout``: time, qpos, qvel,
            act.
        control: (..., nu). Leading dimensions of both broadcast, and are the batch.
        data: An ``MjData`` with the inputs common to all samples: applied forces, mocap poses,
            active equalities, as they are when the function is called or traced. None: MuJoCo's
            defaults.
        contacts: As in ``qdsim.mujoco.linearize``.
        threads: As in ``qdsim.mujoco.linearize_batch``.

    Returns:
        (..., nstate).

    Raises:
        TypeError, ValueError: while tracing, if an argument is invalid (the message names it), or
            if the model has features without derivative (``qdsim.mujoco.refusals``).
        jax.errors.JaxRuntimeError: when the result is computed: for numbers that are not finite,
            states for which MuJoCo fails, and, if derivatives are needed, contacts without a known
            derivative.
    """
    from qdsim.mujoco.ambient import lead_of_step, step_of

    own = step_of(model, data, contacts, threads)
    x, u = _array("state", state), _array("control", control)
    lead, dtype = lead_of_step(model, x, u), jnp.result_type(x, u)
    x, u = (jnp.broadcast_to(a, (*lead, a.shape[-1])).astype(dtype) for a in (x, u))
    return _mujoco_step(own, x, u)


# ---------------------------------------------------------------- calls


@dataclass(frozen=True)
class _Call:
    """Static settings of a call; hashable, so that jax compiles once for each."""

    handle: int
    given: tuple[str, ...] = ("q", "u")

    @property
    def attributes(self) -> dict[str, np.int64]:
        bits = sum(1 << ARGUMENT_NAMES.index(name) for name in self.given)
        return {"handle": np.int64(self.handle), "given": np.int64(bits)}


_lock = threading.Lock()
_handles: dict[LayerRollouts, int] = {}
"""Handles are kept until the process ends, because compiled programs may be; so are their models."""
_settings: dict[int, LayerRollouts] = {}
"""Settings by handle."""


@functools.cache
def _register() -> None:
    for name, target in zip(_TARGETS, _core._jax_targets()):
        jax.ffi.register_ffi_target(name, target, platform="cpu")


def _handle_of(own: LayerRollouts) -> int:
    way = None if own.kappa is None else own.options.replace(kappa=own.kappa)
    with _lock:
        _register()
        if own not in _handles:
            handle = _handles[own] = _core._jax_handle(
                own.model, own.options, way, own.threads, own.errors == "mark", own.is_dynamic
            )
            _settings[handle] = own
        return _handles[own]


def _array(name: str, value: Any) -> Any:
    array = jnp.asarray(value)
    if array.dtype not in (jnp.float32, jnp.float64):
        if not jnp.issubdtype(array.dtype, jnp.number) or jnp.iscomplexobj(array):
            raise TypeError(f"{name}: expected an array of real numbers, got dtype {array.dtype}")
        array = array.astype(jnp.result_type(float))
    return array


def _rollout(
    own: LayerRollouts, given: dict[str, Any], parameters: Mapping[str, Any] | None
) -> tuple[Any, Any]:
    """Return the path (..., T + 1, width), and which samples were solved (...)."""
    everything = {**given, **parameters_of(_array, parameters, "arrays")}
    dtype = jnp.result_type(*everything.values())
    steps, leads = leads_of(own.model, everything)
    lead = jnp.broadcast_shapes(*leads.values())
    count = math.prod(lead)
    arrays = []
    names = tuple(name for name in ARGUMENT_NAMES if name in leads)
    for name in names:
        array = everything[name].astype(dtype)
        tail = array.shape[len(leads[name]) :]
        if name in given or leads[name]:
            array = jnp.broadcast_to(array, (*lead, *tail)).reshape(count, *tail)
        else:
            array = array[None]
        arrays.append(array)
    path, status = _solve(_Call(_handle_of(own), names), *arrays)
    return path.reshape(*lead, steps + 1, own.width), (status == 0).reshape(lead)


def _forward(call: _Call, *arrays: Any) -> tuple[Any, Any]:
    q, u = arrays[:2]
    width = _settings[call.handle].width
    path = jax.ShapeDtypeStruct((q.shape[0], u.shape[1] + 1, width), q.dtype)
    status = jax.ShapeDtypeStruct((q.shape[0],), jnp.int32)
    run = jax.ffi.ffi_call(_TARGETS[0], (path, status), vmap_method="broadcast_all")
    found: tuple[Any, Any] = run(*arrays, **call.attributes)
    return found


def _refuse_second() -> None:
    raise NotImplementedError(
        "qdsim.jax: second derivatives of steps are not implemented; use finite differences of first "
        "derivatives, or Gauss-Newton"
    )


def _of_values(call: _Call, tangents: Any, zero: type) -> bool:
    """Return whether the arrays or their path have tangents; products depend on these nonlinearly."""
    return any(not isinstance(t, zero) for t in tangents[: len(call.given) + 1])


def _push_run(*inputs: Any, call: _Call, wrt: tuple[int, ...]) -> Any:
    """Compute the change of the path (..., count, T + 1, width) for tangents of the arrays of indices ``wrt``.

    Inputs: the arrays (..., count or 1, *shape), the path, the status, a tangent of each array of ``wrt``.
    """
    path = inputs[len(call.given)]

    def run(*values: Any) -> Any:
        real = [np.asarray(value, dtype=float) for value in values]
        given = dict(zip(call.given, real))
        tangents = {call.given[i]: t for i, t in zip(wrt, real[len(call.given) :], strict=True)}
        return _settings[call.handle].push(given, tangents).astype(path.dtype)

    arrays, tangents = inputs[: len(call.given)], inputs[len(call.given) + 2 :]
    shape = jax.ShapeDtypeStruct(path.shape, path.dtype)
    return jax.pure_callback(run, shape, *arrays, *tangents, vmap_method="broadcast_all")


def _push_jvp(primals: Any, tangents: Any, *, call: _Call, wrt: tuple[int, ...]) -> tuple[Any, Any]:
    if _of_values(call, tangents, ad.Zero):
        _refuse_second()
    first = len(call.given) + 2
    moved = [ad.instantiate_zeros(t) for t in tangents[first:]]
    ways = {"call": call, "wrt": wrt}
    return _push.bind(*primals, **ways), _push.bind(*primals[:first], *moved, **ways)


def _push_transpose(cotangent: Any, *inputs: Any, call: _Call, wrt: tuple[int, ...]) -> list[Any]:
    first = len(call.given) + 2
    if isinstance(cotangent, ad.Zero):
        return [None] * len(inputs)
    gradients = _pull(call, *inputs[:first], cotangent)
    return [None] * first + [
        gradients[i] if ad.is_undefined_primal(t) else None for i, t in zip(wrt, inputs[first:])
    ]


def _push_batched(inputs: Any, axes: Any, **ways: Any) -> tuple[Any, int]:
    size = next(a.shape[axis] for a, axis in zip(inputs, axes) if axis is not None)
    front = [
        jnp.broadcast_to(a, (size, *a.shape)) if axis is None else jnp.moveaxis(a, axis, 0)
        for a, axis in zip(inputs, axes)
    ]
    return _push.bind(*front, **ways), 0


def _push_shape(*inputs: Any, call: _Call, wrt: tuple[int, ...]) -> Any:
    path = inputs[len(call.given)]
    return jax.core.ShapedArray(path.shape, path.dtype)


_push = Primitive("qdsim_rollout_push")
_push.def_impl(_push_run)
_push.def_abstract_eval(_push_shape)
mlir.register_lowering(_push, mlir.lower_fun(_push_run, multiple_results=False))
ad.primitive_jvps[_push] = _push_jvp
ad.primitive_transposes[_push] = _push_transpose
batching.primitive_batchers[_push] = _push_batched


def _pull_run(call: _Call, *inputs: Any) -> tuple[Any, ...]:
    """Compute the gradients of the arrays.

    Inputs: the arrays, the path, the status, the cotangent of the path.
    """
    arrays, path = inputs[: len(call.given)], inputs[len(call.given)]
    axis = path.ndim - 3
    lead = path.shape[: axis + 1]
    shapes = tuple(
        jax.ShapeDtypeStruct((*lead, *array.shape[axis + 1 :]), array.dtype) for array in arrays
    )
    run = jax.ffi.ffi_call(_TARGETS[1], shapes, vmap_method="broadcast_all")
    found = run(*inputs, **call.attributes)
    return tuple(
        gradient if array.shape[axis] == lead[axis] else jnp.sum(gradient, axis=axis, keepdims=True)
        for gradient, array in zip(found, arrays)
    )


_pull = jax.custom_jvp(_pull_run, nondiff_argnums=(0,))


def _pull_jvp(call: _Call, inputs: Any, tangents: Any) -> tuple[Any, Any]:
    if _of_values(call, tangents, SymbolicZero):
        _refuse_second()
    return _pull(call, *inputs), _pull(call, *inputs[:-1], tangents[-1])


_pull.defjvp(_pull_jvp, symbolic_zeros=True)


_solve = jax.custom_jvp(_forward, nondiff_argnums=(0,))


def _solve_jvp(call: _Call, arrays: Any, tangents: Any) -> tuple[Any, Any]:
    path, status = _solve(call, *arrays)
    wrt = tuple(i for i, t in enumerate(tangents) if not isinstance(t, SymbolicZero))
    moved = _push.bind(*arrays, path, status, *(tangents[i] for i in wrt), call=call, wrt=wrt)
    return (path, status), (moved, np.zeros(status.shape, jax.dtypes.float0))


_solve.defjvp(_solve_jvp, symbolic_zeros=True)


def _mujoco_forward(own: Any, state: Any, control: Any) -> Any:
    def run(x: Any, u: Any) -> Any:
        return own.advance(x, u).astype(x.dtype)

    after = jax.ShapeDtypeStruct(state.shape, state.dtype)
    return jax.pure_callback(run, after, state, control, vmap_method="broadcast_all")


def _mujoco_push(own: Any, given: Any, tangents: Any) -> tuple[Any, Any]:
    """Compute the step and its tangent by Jacobian matrices; jax transposes the products for reverse mode."""
    state, control = given

    def run(x: Any, u: Any) -> Any:
        return tuple(one.astype(x.dtype) for one in own.linearize(x, u))

    shapes = tuple(
        jax.ShapeDtypeStruct((*state.shape, *more), state.dtype)
        for more in ((), state.shape[-1:], control.shape[-1:])
    )
    after, by_state, by_control = jax.pure_callback(
        run, shapes, state, control, vmap_method="broadcast_all"
    )
    moved = jnp.einsum("...ij,...j->...i", by_state, tangents[0])
    return after, moved + jnp.einsum("...ij,...j->...i", by_control, tangents[1])


_mujoco_step = jax.custom_jvp(_mujoco_forward, nondiff_argnums=(0,))
_mujoco_step.defjvp(_mujoco_push)
