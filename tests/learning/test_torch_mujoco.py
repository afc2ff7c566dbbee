"""One step of MuJoCo's as a torch function, where torch is installed."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from mujoco_layer import check_gradient, cost, course, model_of, states_of

torch = pytest.importorskip("torch")

import qdsim.torch  # noqa: E402

step = qdsim.torch.mujoco_step


def test_the_numbers_of_mujoco() -> None:
    model = model_of()
    states, controls = states_of(model, 4)
    expected = course(model, states, controls[:, None])[:, 0]
    x, u = torch.tensor(states), torch.tensor(controls)
    np.testing.assert_array_equal(step(model, x, u), expected)
    mapped = torch.func.vmap(lambda x, u: step(model, x, u))(x, u)
    np.testing.assert_array_equal(mapped, expected)
    np.testing.assert_array_equal(step(model, x, u[0])[0], expected[0])
    narrow = step(model, x.float(), u.float())
    assert narrow.dtype == torch.float32


def test_derivatives_of_both_modes_are_those_of_differences() -> None:
    model = model_of()
    states, controls = states_of(model, 2)
    run = np.stack([controls[0]] * 3)
    first, given = (torch.tensor(a, requires_grad=True) for a in (states[0], run))
    x, path = first, []
    for u in given:
        x = step(model, x, u)
        path.append(x)
    weights = torch.tensor(cost(model, np.eye(len(states[0]))[:, None]))
    (torch.stack(path) @ weights).sum().backward()
    check_gradient(model, states[0], run, (first.grad, given.grad))
    x, u = torch.tensor(states[1]), torch.tensor(controls[1])

    def act(x: Any, u: Any) -> Any:
        return step(model, x, u)

    forward = torch.func.jacfwd(act, argnums=(0, 1))(x, u)
    reverse = torch.func.jacrev(act, argnums=(0, 1))(x, u)
    for a, b in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    half = torch.func.jvp(lambda u: act(x, u), (u,), (torch.ones_like(u),))[1]
    np.testing.assert_allclose(half, forward[1].sum(-1), rtol=1e-12, atol=1e-12)
    seen = torch.tensor(states[1], requires_grad=True)
    (first,) = torch.autograd.grad(step(model, seen, u).sum(), seen, create_graph=True)
    with pytest.raises((NotImplementedError, RuntimeError), match="cannot be differentiated again"):
        first.sum().backward()


def test_what_is_wrong_is_said() -> None:
    model = model_of()
    states, controls = states_of(model, 2)
    with pytest.raises(ValueError, match=r"state: expected shape \(\.\.\., "):
        step(model, torch.tensor(states[:, :-1]), torch.tensor(controls))
    with pytest.raises(TypeError, match=r"model: expected a mujoco\.MjModel"):
        step("model", torch.tensor(states), torch.tensor(controls))
    with pytest.raises(ValueError, match=r"state: element \[0, 0\] is nan"):
        step(model, torch.full(states.shape, float("nan")), torch.tensor(controls))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    with pytest.raises(ValueError, match="no derivatives of integrator 'RK4'"):
        step(model, torch.tensor(states), torch.tensor(controls))
