"""Second-order steps in jax and torch: the core's own numbers, its derivatives, and MuJoCo's law."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scenes

import qdsim

Array = npt.NDArray[np.float64]

SOFT = qdsim.DynamicOptions(h=0.02, contacts="mujoco")
RIGID = qdsim.DynamicOptions(h=0.02)
OPTIONS = {"mujoco": SOFT, "rigid": RIGID, "smoothed": RIGID.replace(kappa=200.0)}


def states(scene: scenes.Scene, count: int) -> tuple[Array, Array, Array]:
    """States near contact, with velocities."""
    rng = np.random.default_rng(0)
    q, u = (np.array(rows) for rows in zip(*(scene.sample(rng) for _ in range(count))))
    q = np.array([scene.model.normalize(row) for row in q])
    return q, 0.2 * rng.standard_normal((count, scene.model.nv)), u


def flat(step: qdsim.DynamicStep) -> Array:
    return np.concatenate((step.q_next, step.v_next))


def differences(model: qdsim.Model, arguments: dict[str, Array], options: qdsim.DynamicOptions):
    """Of q_next and v_next by every number of q (normalised), v, u and gravity, centred."""

    def value(q: Array, v: Array, u: Array, gravity: Array) -> Array:
        own = model.with_parameters(gravity=gravity)
        return flat(qdsim.step_dynamic(own, own.normalize(q), v, u, options))

    found = {}
    for name, array in arguments.items():
        columns = []
        for i in range(array.size):
            ends = []
            for sign in (1.0, -1.0):
                moved = array.copy()
                moved[i] += sign * 1e-6
                ends.append(value(**{**arguments, name: moved}))
            columns.append((ends[0] - ends[1]) / 2e-6)
        found[name] = np.array(columns).T
    return found


@pytest.fixture(params=["mujoco", "rigid", "smoothed"])
def options(request: pytest.FixtureRequest) -> qdsim.DynamicOptions:
    return OPTIONS[request.param]


@pytest.mark.long
def test_jax_has_the_numbers_of_the_core() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import qdsim.jax as layer

    scene = scenes.pusher("box")
    model = scene.model
    options, (q, v, u) = SOFT, states(scene, 4)
    single = [qdsim.step_dynamic(model, *row, options) for row in zip(q, v, u)]
    one = lambda q, v, u: layer.step(model, q, u, options, v=v)  # noqa: E731
    for run in (one, jax.jit(jax.vmap(one))):
        q_next, v_next = run(q, v, u)
        assert np.array_equal(q_next, [s.q_next for s in single])
        assert np.array_equal(v_next, [s.v_next for s in single])
    course = np.repeat(u[:, None], 3, axis=1)
    paths = layer.rollout(model, q, course, options, v0=v)
    expected = qdsim.rollout_dynamic(model, q, v, course, options)
    assert np.array_equal(paths[0], expected.q) and np.array_equal(paths[1], expected.v)

    def forward(state, u):
        state = layer.step(model, state[0], u, options, v=state[1])
        return state, state

    scanned = jax.lax.scan(forward, (q[0], v[0]), course[0])[1]
    assert np.array_equal(scanned[0], expected.q[0, 1:])
    assert np.array_equal(scanned[1], expected.v[0, 1:])


@pytest.mark.long
def test_jax_differentiates(options: qdsim.DynamicOptions) -> None:
    """Forward and reverse mode are each other's transpose, and differences of single steps."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import qdsim.jax as layer

    scene = scenes.pusher("box")
    model = scene.model
    q, v, u = (rows[0] for rows in states(scene, 1))
    gravity = np.asarray(model.parameters.gravity)

    def step(q, v, u, gravity):
        q, v = layer.step(model, q, u, options, v=v, parameters={"gravity": gravity})
        return jax.numpy.concatenate((q, v))

    every = (0, 1, 2, 3)
    forward = jax.jit(jax.jacfwd(step, argnums=every))(q, v, u, gravity)
    reverse = jax.jit(jax.jacrev(step, argnums=every))(q, v, u, gravity)
    given = {"q": q, "v": v, "u": u, "gravity": gravity}
    expected = differences(model, given, options)
    for a, b, c in zip(forward, reverse, expected.values()):
        size = float(np.abs(c).max())
        assert size > 0.0
        assert np.allclose(a, b, rtol=1e-8, atol=1e-9 * size)
        assert np.allclose(a, c, rtol=1e-4, atol=1e-5 * size)
    with pytest.raises(NotImplementedError, match="second derivatives of steps"):
        jax.hessian(lambda u: step(q, v, u, gravity).sum())(u)


@pytest.mark.long
def test_jax_goes_back_through_many_steps() -> None:
    """The gradient of a rollout's last state, by a scan of steps, by one rollout, and by the core."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import qdsim.jax as layer

    scene = scenes.planar_hand()
    model = scene.model
    q, v, u = states(scene, 3)
    u = np.repeat(u[:, None], 4, axis=1)
    weights = np.random.default_rng(1).standard_normal((3, model.nq + model.nv))

    def ends(q, v):
        return jax.numpy.sum(jax.numpy.concatenate((q, v), axis=-1) * weights)

    def scanned(q, v, u):
        def forward(state, u):
            return layer.step(model, state[0], u, SOFT, v=state[1]), None

        return ends(*jax.lax.scan(forward, (q, v), jax.numpy.moveaxis(u, 1, 0))[0])

    def rolled(q, v, u):
        paths = layer.rollout(model, q, u, SOFT, v0=v)
        return ends(*(path[:, -1] for path in paths))

    one, other = (jax.grad(f, argnums=(0, 1, 2))(q, v, u) for f in (scanned, rolled))
    of_q, of_v = np.zeros((3, 5, model.nv)), np.zeros((3, 5, model.nv))
    of_q[:, -1], of_v[:, -1] = weights[:, : model.nq], weights[:, model.nq :]
    core = qdsim.rollout_dynamic_vjp(model, q, v, u, SOFT, q_cotangent=of_q, v_cotangent=of_v)
    for a, b, c in zip(one, other, (core.gradients[name] for name in ("q", "v", "u"))):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-10)
        assert np.allclose(b, c, rtol=1e-9, atol=1e-10)


def test_torch_has_the_numbers_and_derivatives_of_jax(options: qdsim.DynamicOptions) -> None:
    torch = pytest.importorskip("torch")
    from qdsim import torch as layer

    scene = scenes.pusher("box")
    model = scene.model
    q, v, u = states(scene, 3)
    single = [flat(qdsim.step_dynamic(model, *row, options)) for row in zip(q, v, u)]
    gravity = torch.tensor(np.asarray(model.parameters.gravity))

    def step(q, v, u, gravity):
        found = layer.step(model, q, u, options, v=v, parameters={"gravity": gravity})
        return torch.cat(found, dim=-1)

    given = [torch.tensor(rows) for rows in (q, v, u)]
    every = torch.func.vmap(step, in_dims=(0, 0, 0, None))
    assert np.array_equal(step(*given, gravity).numpy(), single)
    assert np.array_equal(every(*given, gravity).numpy(), single)
    own = [*(rows[0] for rows in given), gravity]
    forward = torch.func.jacfwd(step, argnums=(0, 1, 2, 3))(*own)
    reverse = torch.func.jacrev(step, argnums=(0, 1, 2, 3))(*own)
    names = ("q", "v", "u", "gravity")
    expected = differences(model, dict(zip(names, (x.numpy() for x in own))), options)
    for a, b, c in zip(forward, reverse, expected.values()):
        size = float(np.abs(c).max())
        assert np.allclose(a, b, rtol=1e-8, atol=1e-9 * size)
        assert np.allclose(a, c, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_velocities_go_with_their_options(library: str) -> None:
    pytest.importorskip(library)
    layer = __import__(f"qdsim.{library}", fromlist=["step"])
    scene = scenes.pusher("box")
    model = scene.model
    q, v, u = (rows[0] for rows in states(scene, 1))
    with pytest.raises(TypeError, match=r"^v: expected with qdsim\.DynamicOptions and only then"):
        layer.step(model, q, u, SOFT)
    with pytest.raises(TypeError, match=r"^v: expected with qdsim\.DynamicOptions and only then"):
        layer.step(model, q, u, v=v)
    with pytest.raises(TypeError, match=r"^v0: expected with"):
        layer.rollout(model, q, u[None], SOFT)
    with pytest.raises(ValueError, match=r"^v: expected shape"):
        layer.step(model, q, u, SOFT, v=v[:-1])
    with pytest.raises(ValueError, match=r"^derivative: .smoothed. is of quasi"):
        layer.step(model, q, u, SOFT, v=v, derivative="smoothed", kappa=10.0)
    q_next, v_next, ok = layer.step(model, q, u, SOFT, v=v, errors="mark")
    assert bool(ok) and q_next.shape == q.shape and v_next.shape == v.shape
