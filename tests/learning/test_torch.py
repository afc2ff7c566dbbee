"""The torch layer, where torch is installed: torch's own checks of operators and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scenes
from test_batch_products import FALLING, courses

import qdsim

torch = pytest.importorskip("torch")

import qdsim.torch  # noqa: E402

MADE = {
    "planar_hand": scenes.planar_hand,
    "box": lambda: scenes.pusher("box"),
    "pendulum": scenes.pendulum,
}


@pytest.fixture(params=sorted(MADE))
def scene(request: pytest.FixtureRequest) -> scenes.Scene:
    return MADE[request.param]()


def test_the_numbers_of_the_core(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 4, 3)
    expected = qdsim.rollout(model, q, u).q
    q, u = torch.tensor(q), torch.tensor(u)
    assert np.array_equal(qdsim.torch.rollout(model, q, u), expected)
    assert np.array_equal(qdsim.torch.step(model, q, u[:, 0]), expected[:, 1])
    mapped = torch.func.vmap(lambda q, u: qdsim.torch.rollout(model, q, u))(q, u)
    assert np.array_equal(mapped, expected)
    narrow = qdsim.torch.rollout(model, q.float(), u.float())
    assert narrow.dtype == torch.float32 and np.allclose(narrow, expected, atol=1e-4)


def test_operators_are_as_torch_wants_them(scene: scenes.Scene) -> None:
    q, u = courses(scene, 2, 2)
    arrays = [torch.tensor(q, requires_grad=True), torch.tensor(u, requires_grad=True)]
    call = qdsim.torch._call_of(scene.model, None, "step", None, 1, "raise")
    torch.library.opcheck(torch.ops.qdsim.rollout.default, (arrays, call, ["q", "u"]))


def test_gradients(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 2, 2)
    smooth = qdsim.Options(kappa=100.0)
    q, u = torch.tensor(q, requires_grad=True), torch.tensor(u, requires_grad=True)
    gravity = torch.tensor(np.asarray(model.parameters.gravity), requires_grad=True)

    def run(q: object, u: object, gravity: object) -> object:
        return qdsim.torch.rollout(model, q, u, smooth, parameters={"gravity": gravity})

    assert torch.autograd.gradcheck(run, (q, u, gravity), eps=1e-6, atol=1e-4, rtol=1e-3)
    cotangent = np.random.default_rng(0).standard_normal((2, 3, model.nq))
    run(q, u, gravity).backward(torch.tensor(cotangent))
    expected = qdsim.rollout_vjp(
        model,
        q.detach().numpy(),
        u.detach().numpy(),
        smooth,
        cotangent=cotangent,
        wrt=("q", "u", "gravity"),
        coordinates="ambient",
    ).gradients
    assert np.array_equal(q.grad, expected["q"]) and np.array_equal(u.grad, expected["u"])
    assert np.allclose(gravity.grad, expected["gravity"].sum(axis=0), rtol=1e-12)
    mapped = torch.func.vmap(lambda q, u: run(q, u, gravity))(q, u)
    (each,) = torch.autograd.grad((mapped**2).sum(), u)
    (both,) = torch.autograd.grad((run(q, u, gravity) ** 2).sum(), u)
    assert torch.allclose(each, both, rtol=1e-10)


def test_failures() -> None:
    model = qdsim.load(FALLING)
    options = qdsim.Options(epsilon=0.0)
    q = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    u = torch.zeros((2, 3, 1), dtype=torch.float64, requires_grad=True)
    with pytest.raises(qdsim.SolverError, match="sample 1, step 0"):
        qdsim.torch.rollout(model, q, u, options)
    path, ok = qdsim.torch.rollout(model, q, u, options, errors="mark")
    assert ok.tolist() == [True, False]
    path.sum().backward()
    assert (u.grad[1] == 0.0).all() and (u.grad[0] != 0.0).all()


def test_wrong_arguments_are_named() -> None:
    scene = scenes.pusher("box")
    q, u = courses(scene, 2, 2)
    for said, arguments, more in (
        (r"^q: expected shape \(\.\.\., 10\)", (q[:, :-1], u), {}),
        (r"^u: expected shape", (q, u[..., :-1]), {}),
        (r"^parameters: expected names", (q, u), {"parameters": {"mass": 1.0}}),
        (r"^kappa: ", (q, u), {"kappa": 1.0}),
        (r"^q0: sample 1: element 0 is nan", (q * np.array([[1.0], [np.nan]]), u), {}),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            qdsim.torch.rollout(scene.model, *arguments, **more)
