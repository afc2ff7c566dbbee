"""The torch layer, where torch is installed: torch's own checks of operators and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scenes
from test_batch_products import BATCHED, FALLING, courses

import qdsim

torch = pytest.importorskip("torch")

import qdsim.torch  # noqa: E402


@pytest.fixture(params=sorted(BATCHED))
def scene(request: pytest.FixtureRequest) -> scenes.Scene:
    return BATCHED[request.param]()


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
    call = qdsim.torch._number_of(scene.model, None, "step", None, 1, "raise")
    names, check = ["q", "u"], torch.library.opcheck
    for row in (slice(None), 0):  # two samples, and one without leading dimensions
        arrays = [
            torch.tensor(q[row], requires_grad=True),
            torch.tensor(u[row], requires_grad=True),
        ]
        check(torch.ops.qdsim.rollout.default, (arrays, call, names))
        path, status = (x.detach() for x in torch.ops.qdsim.rollout(arrays, call, names))
        arrays = [array.detach() for array in arrays]
        given = (arrays, path, status, torch.ones_like(path), call, names, ["u"])
        check(torch.ops.qdsim.rollout_pullback.default, given)


def test_compiled_programs(scene: scenes.Scene) -> None:
    """In one graph: no step of it goes back to Python."""
    model, smooth = scene.model, qdsim.Options(kappa=100.0)
    q, u = (torch.tensor(x) for x in courses(scene, 2, 3))

    def cost(q: object, u: object) -> object:
        return (qdsim.torch.rollout(model, q, u, smooth) ** 2).sum()

    torch._dynamo.reset()
    compiled = torch.compile(cost, backend="aot_eager", fullgraph=True)
    gradients = []
    for run in (cost, compiled):
        x = u.clone().requires_grad_()
        value = run(q, x)
        value.backward()
        gradients.append((value.detach(), x.grad))
    assert torch.equal(gradients[0][0], gradients[1][0])
    assert torch.allclose(gradients[0][1], gradients[1][1], rtol=1e-12, atol=1e-14)


def test_functions_of_functions(scene: scenes.Scene) -> None:
    """`torch.func` backwards and forwards, beside the core's own gradients; forwards once were zeros."""
    model, smooth = scene.model, qdsim.Options(kappa=100.0)
    q, u = courses(scene, 2, 3)
    cotangent = np.random.default_rng(0).standard_normal((2, 4, model.nq))
    expected = qdsim.rollout_vjp(
        model, q, u, smooth, cotangent=cotangent, coordinates="ambient"
    ).gradients["u"]
    q, u, cotangent = torch.tensor(q), torch.tensor(u), torch.tensor(cotangent)

    def run(q: object, u: object) -> object:
        return qdsim.torch.rollout(model, q, u, smooth)

    def cost(q: object, u: object, y: object) -> object:
        return (y * run(q, u)).sum()

    backwards = torch.func.vmap(torch.func.grad(cost, argnums=1))(q, u, cotangent)
    assert np.allclose(backwards, expected, rtol=1e-9, atol=1e-10)
    rows = torch.func.jacrev(run, argnums=1)(q[0], u[0])
    columns = torch.func.jacfwd(run, argnums=1)(q[0], u[0])
    assert rows.abs().max() > 1e-4
    assert torch.allclose(rows, columns, rtol=1e-8, atol=1e-9)
    assert np.allclose(torch.tensordot(cotangent[0], rows, dims=2), expected[0], atol=1e-9)
    _, change = torch.func.jvp(lambda u: run(q[0], u), (u[0],), (u[0],))
    assert torch.allclose(change, torch.tensordot(columns, u[0], dims=2), atol=1e-9)
    x = u.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((run(q, x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="cannot be differentiated again"):
        gradient.sum().backward()


def test_tangent_coordinates(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 3, 2)
    rng = np.random.default_rng(1)
    v = rng.standard_normal((3, model.nv))
    moved = np.array([model.integrate(a, b) for a, b in zip(q, v)])
    back = np.array([model.difference(a, b) for a, b in zip(moved, q)])
    t = torch.tensor
    assert np.allclose(qdsim.torch.integrate(model, t(q), t(v)), moved, atol=1e-14)
    assert np.allclose(qdsim.torch.difference(model, t(moved), t(q)), back, atol=1e-12)
    cotangent = rng.standard_normal((3, 3, model.nv))
    path = qdsim.rollout(model, q, u).q
    zero = torch.zeros((3, model.nv), dtype=torch.float64, requires_grad=True)
    found = qdsim.torch.rollout(model, qdsim.torch.integrate(model, t(q), zero), t(u))
    (t(cotangent) * qdsim.torch.difference(model, found, t(path))).sum().backward()
    expected = qdsim.rollout_vjp(model, q, u, cotangent=cotangent, checkpoint=0).gradients["q"]
    assert np.allclose(zero.grad, expected, rtol=1e-8, atol=1e-9)
    for wrong in (np.zeros((3, model.nv + 1)), np.zeros(())):
        with pytest.raises(ValueError, match=r"^v: expected shape"):
            qdsim.torch.integrate(model, q, wrong)


def test_single_precision(scene: scenes.Scene) -> None:
    model, smooth = scene.model, qdsim.Options(kappa=200.0)
    q, u = (torch.tensor(x).float() for x in courses(scene, 3, 2))
    u.requires_grad_()
    path = qdsim.torch.rollout(model, q, u, smooth)
    exact = qdsim.rollout(model, q.double(), u.detach().double(), smooth).q
    assert path.dtype == torch.float32 and np.array_equal(path.detach(), exact.astype(np.float32))
    (path**2).sum().backward()
    wide = u.detach().double().requires_grad_()
    (qdsim.torch.rollout(model, q.double(), wide, smooth) ** 2).sum().backward()
    scale = float(wide.grad.abs().max())
    assert torch.allclose(u.grad.double(), wide.grad, rtol=1e-3, atol=1e-4 * scale)


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
        checkpoint=0,
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
    _, alone = qdsim.torch.rollout(model, q[0], u[0], options, errors="mark")
    assert alone.shape == () and bool(alone)
    path.sum().backward()
    assert (u.grad[1] == 0.0).all() and (u.grad[0] != 0.0).all()


def test_wrong_arguments_are_named() -> None:
    scene = scenes.pusher("box")
    q, u = courses(scene, 2, 2)
    for said, arguments, more in (
        (r"^q: expected shape \(\.\.\., 10\)", (q[:, :-1], u), {}),
        (r"^u: expected shape", (q, u[..., :-1]), {}),
        (r"^u: expected shape \(\.\.\., steps, 3\)", (q, u[0, 0]), {}),
        (r"^q0: expected a tensor", (None, u), {}),
        (r"^q0: expected a tensor on the CPU", (torch.zeros(10, device="meta"), u), {}),
        (r"^q0: expected a tensor of real numbers", (q > 0.0, u), {}),
        (
            r"^leading dimensions do not broadcast: q \(2,\), u \(4,\)",
            (q, np.tile(u, (2, 1, 1))),
            {},
        ),
        (r"^parameters: expected names", (q, u), {"parameters": {"mass": 1.0}}),
        (r"^kappa: ", (q, u), {"kappa": 1.0}),
        (r"^q0: sample 1: element 0 is nan", (q * np.array([[1.0], [np.nan]]), u), {}),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            qdsim.torch.rollout(scene.model, *arguments, **more)
