"""One step of MuJoCo's as a jax function: its own numbers, gradients by differences of itself."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco_layer import check_gradient, cost, course, model_of, states_of

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

import qdsim.jax  # noqa: E402

step = qdsim.jax.mujoco_step


@pytest.mark.long
def test_the_numbers_of_mujoco() -> None:
    model = model_of()
    states, controls = states_of(model, 4)
    expected = course(model, states, controls[:, None])[:, 0]
    np.testing.assert_array_equal(step(model, states, controls), expected)
    mapped = jax.jit(jax.vmap(lambda x, u: step(model, x, u, threads=2)))(states, controls)
    np.testing.assert_array_equal(mapped, expected)
    held = jax.vmap(lambda x: step(model, x, controls[0]))(states)
    np.testing.assert_array_equal(held[0], expected[0])
    narrow = step(model, jnp.float32(states), jnp.float32(controls))
    assert narrow.dtype == jnp.float32
    np.testing.assert_allclose(narrow, expected, atol=1e-3)
    assert step(model, states[:0], controls[0]).shape == (0, states.shape[1])


def test_gradients_are_those_of_differences() -> None:
    model = model_of()
    states, controls = states_of(model, 2)
    run = np.stack([controls[0]] * 2)

    def total(x: Any, u: Any) -> Any:
        path = []
        for now in u:
            x = step(model, x, now)
            path.append(x)
        return cost(model, jnp.stack(path))

    gradient = jax.jit(jax.grad(total, argnums=(0, 1)))(states[0], run)
    check_gradient(model, states[0], run, gradient)


@pytest.mark.long
def test_every_transformation_has_the_same_derivatives() -> None:
    model = model_of()
    states, controls = states_of(model, 2)

    def act(x: Any, u: Any) -> Any:
        return step(model, x, u)

    one = (jnp.asarray(states[1]), jnp.asarray(controls[1]))
    forward = jax.jit(jax.jacfwd(act, argnums=(0, 1)))(*one)
    reverse = jax.jit(jax.jacrev(act, argnums=(0, 1)))(*one)
    for a, b in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    rows = jax.vmap(jax.jacfwd(lambda x: step(model, x, controls[1])))(states)
    np.testing.assert_array_equal(rows[1], forward[0])

    def total(x: Any, u: Any) -> Any:
        def go(x: Any, u: Any) -> Any:
            x = step(model, x, u)
            return x, x

        return cost(model, jax.lax.scan(go, x, u)[1])

    run = np.stack([controls[0]] * 3)
    gradient = jax.jit(jax.grad(total, argnums=(0, 1)))(states[0], run)
    check_gradient(model, states[0], run, gradient)


@pytest.mark.long
def test_what_is_wrong_is_said() -> None:
    model = model_of()
    states, controls = states_of(model, 2)
    with pytest.raises(ValueError, match=r"state: expected shape \(\.\.\., "):
        step(model, states[:, :-1], controls)
    with pytest.raises(ValueError, match="control: leading dimensions"):
        step(model, np.tile(states, (2, 1))[:3], controls)
    with pytest.raises(TypeError, match=r"model: expected a mujoco\.MjModel"):
        step("model", states, controls)
    with pytest.raises(
        (ValueError, jax.errors.JaxRuntimeError), match=r"state: element \[0, 0\] is nan"
    ):
        jax.block_until_ready(step(model, np.full_like(states, np.nan), controls))
    wild = np.array(states)
    wild[1, -1] = wild[1, model.nq + 1] = 1e11
    with pytest.raises((ArithmeticError, jax.errors.JaxRuntimeError), match="MuJoCo's range"):
        jax.block_until_ready(step(model, wild, controls))
    with pytest.raises(ValueError, match="callback"):
        jax.hessian(lambda x: jnp.sum(step(model, x, controls[0])))(jnp.asarray(states[0]))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    with pytest.raises(ValueError, match="no derivatives of integrator 'RK4'"):
        step(model, states, controls)
