"""The jax layer: the core's own numbers, its gradients by differences, and every transformation of jax."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
import scenes
from test_batch_products import BATCHED, FALLING, courses

import qdsim

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

import jax.test_util  # noqa: E402

import qdsim.jax  # noqa: E402

SMOOTH = qdsim.Options(kappa=200.0)


@pytest.fixture(params=sorted(BATCHED))
def scene(request: pytest.FixtureRequest) -> scenes.Scene:
    return BATCHED[request.param]()


@pytest.mark.long
def test_the_numbers_of_the_core(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 4, 3)
    path = qdsim.jax.rollout(model, q, u)
    assert np.array_equal(path, qdsim.rollout(model, q, u).q)
    assert np.array_equal(qdsim.jax.step(model, q, u[:, 0]), path[:, 1])
    q, u = q.reshape(2, 2, -1), u.reshape(2, 2, 3, -1)
    assert np.array_equal(qdsim.jax.rollout(model, q, u[0, 0]).shape, (2, 2, 4, model.nq))
    for seen in (
        jax.jit(lambda q, u: qdsim.jax.rollout(model, q, u))(q, u),
        jax.vmap(lambda q, u: qdsim.jax.rollout(model, q, u))(q, u),
        jax.vmap(jax.vmap(lambda q, u: qdsim.jax.rollout(model, q, u)))(q, u),
    ):
        assert np.array_equal(seen, path.reshape(seen.shape))

    def forward(q: object, u: object) -> tuple[object, object]:
        q = qdsim.jax.step(model, q, u)
        return q, q

    scanned = jax.jit(lambda q, u: jax.lax.scan(forward, q, u)[1])(q[0, 0], u[0, 0])
    assert np.array_equal(scanned, path[0, 1:])


@pytest.mark.short_cases(1)
def test_gradients_are_those_of_the_core(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 4, 3)
    cotangent = np.random.default_rng(0).standard_normal((4, 4, model.nq))
    friction = np.asarray(model.parameters.pair_friction)
    tau = np.zeros((3, model.nv))

    def value(q: object, u: object, friction: object, tau: object, **ways: object) -> object:
        given = {"parameters": {"pair_friction": friction}, "tau": tau, **ways}
        return jnp.sum(cotangent * qdsim.jax.rollout(model, q, u, **given))

    for ways in ({}, {"derivative": "smoothed", "kappa": 100.0}):
        found = jax.jit(jax.grad(lambda *a, w=ways: value(*a, **w), argnums=(0, 1, 2, 3)))(
            q, u, friction, tau
        )
        expected = qdsim.rollout_vjp(
            model,
            q,
            u,
            cotangent=cotangent,
            coordinates="ambient",
            wrt=("q", "u", "pair_friction", "tau"),
            checkpoint=0,
            **ways,
        ).gradients
        assert np.allclose(found[0], expected["q"], rtol=1e-10, atol=1e-12)
        assert np.allclose(found[1], expected["u"], rtol=1e-10, atol=1e-12)
        assert np.allclose(found[2], expected["pair_friction"].sum(axis=0), rtol=1e-10, atol=1e-12)
        assert np.allclose(found[3], expected["tau"].sum(axis=0), rtol=1e-10, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "scene",
    ["box", *(pytest.param(name, marks=pytest.mark.long) for name in ("planar_hand", "pendulum"))],
    indirect=True,
)
def test_forward_mode_is_the_transpose_of_reverse_mode(scene: scenes.Scene) -> None:
    """By every argument, shared parameters too; of a batch, of `vmap`, compiled, and of a scan."""
    model = scene.model
    q, u = courses(scene, 3, 2)
    friction = np.asarray(model.parameters.pair_friction)
    tau = np.zeros((2, model.nv))

    def path(q: object, u: object, friction: object, tau: object) -> object:
        given = {"parameters": {"pair_friction": friction}, "tau": tau}
        return qdsim.jax.rollout(model, q, u, SMOOTH, **given)

    every = (0, 1, 2, 3)
    for run in (path, jax.vmap(path, in_axes=(0, 0, None, None))):
        forward = jax.jit(jax.jacfwd(run, argnums=every))(q, u, friction, tau)
        reverse = jax.jit(jax.jacrev(run, argnums=every))(q, u, friction, tau)
        for a, b in zip(forward, reverse):
            assert np.abs(b).max() > 0.0
            assert np.allclose(a, b, rtol=1e-8, atol=1e-9 * float(np.abs(b).max()))

    def last(u: object) -> object:
        def forward(q: object, u: object) -> tuple[object, None]:
            return qdsim.jax.step(model, q, u, SMOOTH), None

        return jax.lax.scan(forward, q[0], u)[0]

    a, b = jax.jacfwd(last)(u[0]), jax.vmap(jax.jacrev(last))(u)
    assert np.allclose(a, b[0], rtol=1e-8, atol=1e-9)


@pytest.mark.long
def test_second_derivatives_are_refused() -> None:
    scene = scenes.pendulum()
    model = scene.model
    q, u = courses(scene, 2, 2)

    def cost(u: object) -> object:
        return jnp.sum(qdsim.jax.rollout(model, q, u, SMOOTH) ** 2)

    for second in (jax.hessian(cost), jax.jacfwd(jax.jacfwd(cost)), jax.jacrev(jax.grad(cost))):
        with pytest.raises(NotImplementedError, match=r"qdsim\.jax: second derivatives"):
            second(u)


@pytest.mark.long
def test_differences_of_the_numbers_of_q() -> None:
    """f(normalize(q)) with quaternions, not all of unit length; one step and a scan of them."""
    scene = scenes.pusher("box")
    model = scene.model
    q, u = courses(scene, 2, 2)
    q[:, 3:7] *= 1.0002
    smooth = qdsim.Options(kappa=100.0)
    jax.test_util.check_grads(
        lambda q, u: qdsim.jax.rollout(model, q, u, smooth),
        (q, u),
        order=1,
        modes=["fwd", "rev"],
        eps=1e-6,
    )
    gravity = np.asarray(model.parameters.gravity)

    def scanned(q: object, u: object, gravity: object) -> object:
        def forward(q: object, u: object) -> tuple[object, None]:
            return qdsim.jax.step(model, q, u, smooth, parameters={"gravity": gravity}), None

        return jax.lax.scan(forward, q, u)[0]

    jax.test_util.check_grads(
        scanned, (q[0], u[0], gravity), order=1, modes=["fwd", "rev"], eps=1e-6
    )


@pytest.mark.long
def test_tangent_coordinates(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 3, 2)
    rng = np.random.default_rng(1)
    v = rng.standard_normal((3, model.nv))
    moved = np.array([model.integrate(a, b) for a, b in zip(q, v)])
    integrate = jax.jit(lambda q, v: qdsim.jax.integrate(model, q, v))
    difference = jax.jit(lambda a, b: qdsim.jax.difference(model, a, b))
    assert np.allclose(integrate(q, v), moved, atol=1e-14)
    back = np.array([model.difference(a, b) for a, b in zip(moved, q)])
    assert np.allclose(difference(moved, q), back, atol=1e-12)
    cotangent = rng.standard_normal((3, 3, model.nv))

    def value(v: object) -> object:
        path = qdsim.jax.rollout(model, qdsim.jax.integrate(model, q, v), u)
        return jnp.sum(cotangent * qdsim.jax.difference(model, path, path0))

    path0 = qdsim.rollout(model, q, u).q
    gradient = jax.jit(jax.grad(value))(np.zeros((3, model.nv)))
    expected = qdsim.rollout_vjp(model, q, u, cotangent=cotangent, checkpoint=0).gradients["q"]
    assert np.allclose(gradient, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.long
def test_single_precision(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 3, 2)
    q32, u32 = q.astype(np.float32), u.astype(np.float32)
    path = jax.jit(lambda q, u: qdsim.jax.rollout(model, q, u))(q32, u32)
    assert path.dtype == jnp.float32
    exact = qdsim.rollout(model, q32.astype(float), u32.astype(float)).q
    assert np.array_equal(path, exact.astype(np.float32))
    gradient = jax.grad(lambda u: jnp.sum(qdsim.jax.rollout(model, q32, u, SMOOTH) ** 2))(u32)
    wide = jax.grad(lambda u: jnp.sum(qdsim.jax.rollout(model, q32.astype(float), u, SMOOTH) ** 2))(
        u32.astype(float)
    )
    pushed = jax.jvp(lambda u: qdsim.jax.rollout(model, q32, u, SMOOTH), (u32,), (u32,))[1]
    assert gradient.dtype == pushed.dtype == jnp.float32
    assert np.allclose(gradient, wide, rtol=1e-3, atol=1e-4 * float(np.abs(wide).max()))


@pytest.mark.long
def test_batched_parameters_under_vmap() -> None:
    scene = scenes.pusher("box")
    model = scene.model
    q, u = courses(scene, 3, 2)
    mass = np.asarray(model.parameters.body_mass) * np.array([[0.8], [1.0], [1.3]])

    def run(q: object, u: object, mass: object) -> object:
        return qdsim.jax.rollout(model, q, u, parameters={"body_mass": mass})

    expected = qdsim.rollout(model, q, u, parameters={"body_mass": mass}).q
    assert np.array_equal(jax.vmap(run)(q, u, mass), expected)
    assert np.array_equal(run(q, u, mass), expected)
    # each mass with the whole batch
    every = jax.vmap(run, in_axes=(None, None, 0))(q, u, mass)
    for k in range(3):
        alone = qdsim.rollout(model, q, u, parameters={"body_mass": mass[k]}).q
        assert np.array_equal(every[k], alone)
    gradient = jax.vmap(jax.grad(lambda m, q, u: jnp.sum(run(q, u, m))), in_axes=(0, None, None))
    many = gradient(mass, q, u)
    for k in range(3):
        one = jax.grad(lambda m: jnp.sum(run(q, u, m)))(mass[k])
        assert np.allclose(many[k], one, rtol=1e-12, atol=1e-12)


@pytest.mark.long
def test_failures_arrive_as_messages_or_are_marked() -> None:
    model = qdsim.load(FALLING)
    options = qdsim.Options(epsilon=0.0)
    q = np.array([[0.0, 0.0], [1.0, 0.0]])
    u = np.zeros((2, 3, 1))
    with pytest.raises(Exception, match=r"qdsim\.jax: sample 1, step 0: unbounded|not unique"):
        jax.block_until_ready(qdsim.jax.rollout(model, q, u, options))
    path, ok = qdsim.jax.rollout(model, q, u, options, errors="mark")
    assert ok.tolist() == [True, False]
    assert np.array_equal(path[1], np.tile(q[1], (4, 1)))
    gradient = jax.grad(
        lambda u: jnp.sum(qdsim.jax.rollout(model, q, u, options, errors="mark")[0])
    )(u)
    assert np.array_equal(gradient[1], np.zeros((3, 1))) and np.all(gradient[0] != 0.0)
    pushed = jax.jvp(
        lambda u: qdsim.jax.rollout(model, q, u, options, errors="mark")[0],
        (u,),
        (np.ones_like(u),),
    )[1]
    assert np.array_equal(pushed[1], np.zeros((4, 2))) and np.any(pushed[0] != 0.0)


def test_wrong_arguments_are_named() -> None:
    scene = scenes.pusher("box")
    model = scene.model
    q, u = courses(scene, 2, 2)

    def refuse(said: str, *arguments: object, **more: object) -> None:
        with pytest.raises((ValueError, TypeError, jax.errors.JaxRuntimeError), match=said):
            jax.block_until_ready(qdsim.jax.rollout(model, *arguments, **more))

    refuse(r"^q: expected shape \(\.\.\., 10\)", q[:, :-1], u)
    refuse(r"^u: expected shape", q, u[..., :-1])
    refuse(r"^parameters: expected names", q, u, parameters={"mass": 1.0})
    refuse(r"^body_mass: expected shape", q, u, parameters={"body_mass": np.ones(2)})
    refuse(r"^kappa: ", q, u, kappa=1.0)
    refuse(r"^options: expected", q, u, 0.1)
    refuse(r"^errors: ", q, u, errors="ignore")
    refuse(r"q: sample 1: element 0 is nan", q * np.array([[1.0], [np.nan]]), u)
    refuse(r"u: sample 0: element 0 is inf", q, np.full_like(u, np.inf))
    refuse(r"unit length", q * 2.0, u)
    mass = np.asarray(model.parameters.body_mass).copy()
    mass[1] = -1.0
    refuse(r"parameters\['body_mass'\]: sample 0: element 1", q, u, parameters={"body_mass": mass})
    with pytest.raises(ValueError, match=r"^v: expected shape \(\.\.\., 9\)"):
        qdsim.jax.integrate(model, q, np.zeros(8))
    with pytest.raises(ValueError, match=r"^u: expected shape \(\.\.\., steps, 3\)"):
        qdsim.jax.rollout(model, q, u[0, 0])
    with pytest.raises(TypeError, match=r"^model: expected a qdsim\.Model"):
        qdsim.jax.step(None, q, u[:, 0])


def test_no_samples_and_no_steps(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = courses(scene, 2, 2)
    assert qdsim.jax.rollout(model, q[:0], u[:0]).shape == (0, 3, model.nq)
    assert np.array_equal(
        qdsim.jax.rollout(model, q, u[:, :0])[:, 0], qdsim.rollout(model, q, u).q[:, 0]
    )


@pytest.mark.long
def test_compiled_programs_outlive_models() -> None:
    scene = scenes.planar_hand()
    q, u = courses(scene, 2, 2)
    expected = qdsim.rollout(scene.model, q, u).q

    def compiled() -> object:
        model = scenes.planar_hand().model
        held = qdsim.Options(held=("l1",)), qdsim.Options()
        qdsim.jax.rollout(model, q, u, held[0])
        return jax.jit(lambda q, u: qdsim.jax.rollout(model, q, u, held[1])).lower(q, u).compile()

    run = compiled()
    jax.clear_caches()
    gc.collect()
    assert np.array_equal(run(q, u), expected)


def prints_in_a_new_process(code: str, text: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=900,
        cwd="tests",
        check=False,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stdout.strip()) == (0, text), done.stderr


@pytest.mark.long
def test_programs_that_are_running_when_the_interpreter_ends() -> None:
    code = """
import numpy as np, jax, qdsim, qdsim.jax, scenes
scene = scenes.pusher("box")
q, u = scene.model.default_q, np.zeros((20000, 3))
run = jax.jit(lambda q, u: qdsim.jax.rollout(scene.model, q[None].repeat(4, 0), u, threads=2))
run(q, u)
print("sent")
"""
    prints_in_a_new_process(code, "sent")


@pytest.mark.long
def test_devices_that_share_a_batch() -> None:
    """In a `shard_map` results and gradients are those of one device, and stay where their inputs are."""
    code = """
import jax, numpy as np, qdsim.jax, scenes
from jax.sharding import Mesh, NamedSharding, PartitionSpec
jax.config.update("jax_enable_x64", True)
scene = scenes.pusher("box")
model, own = scene.model, PartitionSpec("x")
mesh = Mesh(np.array(jax.devices()), ("x",))
step = lambda q, u: qdsim.jax.step(model, q, u)
shared = jax.shard_map(step, mesh=mesh, in_specs=own, out_specs=own, check_vma=False)
q = np.tile(model.default_q, (4, 1))
u = model.command_from(q) + np.linspace(0.0, 0.1, 4)[:, None]
put = [jax.device_put(x, NamedSharding(mesh, own)) for x in (q, u)]
gradients = [jax.grad(lambda q, u, f=f: (f(q, u) ** 2).sum(), 1) for f in (step, shared)]
for whole, part in ((step, shared), gradients):
    found = jax.jit(part)(*put)
    assert len(found.addressable_shards) == 2 and found.sharding.spec == own
    np.testing.assert_array_equal(found, jax.jit(whole)(q, u))
print("shared")
"""
    prints_in_a_new_process(code, "shared", XLA_FLAGS="--xla_force_host_platform_device_count=2")
