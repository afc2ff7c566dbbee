"""Pullbacks and pushforwards in batches and through rollouts: against single steps and differences."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scenes
from test_batch import states

import qdsim
from qdsim import _core

EXACT = qdsim.Options()
SMOOTH = qdsim.Options(kappa=200.0)
EVERY = tuple(name for name in _core.ARGUMENT_NAMES if name not in ("v", "h"))
BATCHED = {
    "planar_hand": scenes.planar_hand,
    "box": lambda: scenes.pusher("box"),
    "pendulum": scenes.pendulum,
}


@pytest.fixture(params=sorted(BATCHED))
def scene(request: pytest.FixtureRequest) -> scenes.Scene:
    return BATCHED[request.param]()


def courses(
    scene: scenes.Scene, count: int, steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """States, and commands around theirs, such that the rollouts do not fail."""
    q, u = states(scene, 2 * count, seed=seed)
    rng = np.random.default_rng(seed)
    u = u[:, None] + 0.01 * rng.standard_normal((2 * count, steps, scene.model.nu)).cumsum(axis=1)
    good = qdsim.rollout(scene.model, q, u, errors="mark").ok
    good &= qdsim.rollout(scene.model, q, u, SMOOTH, errors="mark").ok
    assert good.sum() >= count
    return q[good][:count], u[good][:count]


def chain(
    model: qdsim.Model,
    q0: np.ndarray,
    u: np.ndarray,
    options: qdsim.Options,
    cotangent: np.ndarray,
    way: qdsim.Options | None = None,
) -> dict[str, np.ndarray]:
    """Gradients by every argument, one single step after the other."""
    path = [q0]
    for command in u:
        path.append(qdsim.step(model, path[-1], command, options).q_next)
    total: dict[str, np.ndarray] = {}
    each: dict[str, list[np.ndarray]] = {name: [] for name in ("u", "tau", "wrench", "mocap")}
    y = cotangent[-1]
    for t in reversed(range(len(u))):
        found = qdsim.differentiate(model, path[t], u[t], way or options).vjp(y, EVERY)
        y = cotangent[t] + found.pop("q")
        for name, value in found.items():
            if name in each:
                each[name].insert(0, value)
            else:
                total[name] = total.get(name, 0.0) + value
    return {"q": y, **{name: np.array(rows) for name, rows in each.items()}, **total}


def digest(arrays: dict[str, np.ndarray]) -> str:
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


@pytest.mark.parametrize("options", [EXACT, SMOOTH], ids=["exact", "smooth"])
def test_pullbacks_of_rollouts_are_chains_of_steps(
    scene: scenes.Scene, options: qdsim.Options
) -> None:
    q, u = courses(scene, 4, 5)
    rng = np.random.default_rng(1)
    cotangent = rng.standard_normal((4, 6, scene.model.nv))
    found = qdsim.rollout_vjp(scene.model, q, u, options, cotangent=cotangent, wrt=EVERY)
    assert np.allclose(found.q, qdsim.rollout(scene.model, q, u, options).q, rtol=0, atol=1e-14)
    for i in range(4):
        expected = chain(scene.model, found.q[i, 0], u[i], options, cotangent[i])
        for name in EVERY:
            value = found.gradients[name][i]
            assert value.shape == expected[name].shape
            assert np.allclose(value, expected[name], rtol=1e-9, atol=1e-9), name


def test_smoothed_backwards_where_steps_are_exact(scene: scenes.Scene) -> None:
    q, u = courses(scene, 3, 4)
    cotangent = np.random.default_rng(2).standard_normal((3, 5, scene.model.nv))
    found = qdsim.rollout_vjp(
        scene.model, q, u, cotangent=cotangent, derivative="smoothed", kappa=200.0, wrt=EVERY
    )
    assert np.array_equal(found.q, qdsim.rollout(scene.model, q, u).q)
    for i in range(3):
        expected = chain(scene.model, found.q[i, 0], u[i], EXACT, cotangent[i], way=SMOOTH)
        for name in EVERY:
            assert np.allclose(found.gradients[name][i], expected[name], rtol=1e-9, atol=1e-9), name


def test_bits_do_not_depend_on_threads(scene: scenes.Scene) -> None:
    q, u = courses(scene, 9, 6)
    cotangent = np.random.default_rng(3).standard_normal((9, 7, scene.model.nv))
    gradients = []
    for checkpoint in (None, 0, 2, 6, 100):
        seen = set()
        for threads in (1, 2, 5):
            found = qdsim.rollout_vjp(
                scene.model,
                q,
                u,
                cotangent=cotangent,
                wrt=EVERY,
                threads=threads,
                checkpoint=checkpoint,
            )
            seen.add(digest({**found.gradients, "path": found.q}))
        assert len(seen) == 1
        gradients.append(found.gradients)
    for name in EVERY:  # what is kept changes rounding at most
        for other in gradients[1:]:
            assert np.allclose(other[name], gradients[0][name], rtol=1e-9, atol=1e-9)


def test_a_function_of_the_configurations(scene: scenes.Scene) -> None:
    q, u = courses(scene, 3, 4)
    goal = q[0]
    given = []

    def cotangent(path: np.ndarray) -> np.ndarray:
        given.append(path.copy())
        return 2.0 * (path - goal)

    options = {"coordinates": "ambient", "wrt": ("q", "u", "gravity")}
    found = qdsim.rollout_vjp(scene.model, q, u, cotangent=cotangent, **options)
    assert len(given) == 1 and np.array_equal(given[0], found.q)
    again = qdsim.rollout_vjp(
        scene.model, q, u, cotangent=2.0 * (found.q - goal), checkpoint=0, **options
    )
    assert digest(dict(found.gradients)) == digest(dict(again.gradients))


def test_both_ways_agree_through_rollouts(scene: scenes.Scene) -> None:
    """y . (J x) = (J' y) . x, in tangent and in ambient coordinates, for every argument."""
    model = scene.model
    q, u = courses(scene, 3, 4)
    q *= 1.0 + 1e-4 * np.random.default_rng(3).standard_normal((3, 1))  # quaternions of any length
    rng = np.random.default_rng(4)
    for coordinates, n in (("tangent", model.nv), ("ambient", model.nq)):
        cotangent = rng.standard_normal((3, 5, n))
        back = qdsim.rollout_vjp(
            model, q, u, SMOOTH, cotangent=cotangent, wrt=EVERY, coordinates=coordinates
        )
        tangents = {
            name: rng.standard_normal(value.shape) for name, value in back.gradients.items()
        }
        tangents["body_inertia"] += np.swapaxes(tangents["body_inertia"], -1, -2)
        there = qdsim.rollout_jvp(model, q, u, SMOOTH, tangents=tangents, coordinates=coordinates)
        for i in range(3):
            left = np.sum(cotangent[i] * there.tangent[i])
            parts = [np.sum(back.gradients[name][i] * tangents[name][i]) for name in EVERY]
            assert np.isclose(left, sum(parts), rtol=1e-7, atol=1e-9 * np.abs(parts).max())


def test_ambient_gradients_are_differences_of_the_numbers_themselves() -> None:
    """Of f(normalize(q)), with a quaternion: a free box that a tip pushes, smoothed."""
    scene = scenes.pusher("box")
    model = scene.model
    q, u = courses(scene, 2, 3)
    q[:, 3:7] *= 1.0 + np.array([[3e-4], [-5e-4]])
    cotangent = np.random.default_rng(5).standard_normal((2, 4, model.nq))

    def value(q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.sum(cotangent * qdsim.rollout(model, q, u, SMOOTH).q, axis=(1, 2))

    found = qdsim.rollout_vjp(model, q, u, SMOOTH, cotangent=cotangent, coordinates="ambient")
    step = 1e-6
    for k in range(model.nq):
        dq = step * np.eye(model.nq)[k]
        slope = (value(q + dq, u) - value(q - dq, u)) / (2 * step)
        scale = 1.0 + np.abs(found.gradients["q"]).max()
        assert np.allclose(found.gradients["q"][:, k], slope, atol=2e-5 * scale)
    along = np.sum(found.gradients["q"][:, 3:7] * q[:, 3:7], axis=1)
    assert np.allclose(along, 0.0, atol=1e-10 * scale)
    du = np.random.default_rng(6).standard_normal(u.shape)
    slope = (value(q, u + step * du) - value(q, u - step * du)) / (2 * step)
    assert np.allclose(np.sum(found.gradients["u"] * du, axis=(1, 2)), slope, atol=2e-5 * scale)


def test_one_step(scene: scenes.Scene) -> None:
    model = scene.model
    q, u = states(scene, 2, 3)
    rng = np.random.default_rng(7)
    cotangent = rng.standard_normal((2, 3, model.nv))
    back = qdsim.vjp_batch(model, q, u, cotangent=cotangent, wrt=EVERY)
    assert np.allclose(back.q_next, qdsim.step_batch(model, q, u).q_next, rtol=0, atol=1e-14)
    matrices = qdsim.linearize_batch(model, q, u, wrt=EVERY).derivatives
    for name in EVERY:
        J = matrices[name].reshape(2, 3, model.nv, -1)
        expected = np.einsum("abi,abij->abj", cotangent, J)
        value = back.gradients[name]
        assert value.shape == (2, 3, *matrices[name].shape[3:])
        assert np.allclose(value.reshape(expected.shape), expected, rtol=1e-8, atol=1e-9)
    tangents = {"q": rng.standard_normal((2, 3, model.nv)), "u": rng.standard_normal((3, model.nu))}
    there = qdsim.jvp_batch(model, q, u, tangents=tangents)
    expected = np.einsum("abij,abj->abi", matrices["q"], tangents["q"])
    expected += np.einsum("abij,bj->abi", matrices["u"], tangents["u"])
    assert np.allclose(there.tangent, expected, rtol=1e-8, atol=1e-9)


def test_samples_have_their_own_parameters_and_forces() -> None:
    scene = scenes.pusher("box")
    model = scene.model
    q, u = courses(scene, 3, 3)
    rng = np.random.default_rng(8)
    mass = np.asarray(model.parameters.body_mass) * rng.uniform(0.8, 1.2, (3, model.body_count))
    tau = 0.1 * rng.standard_normal((3, 3, model.nv))
    wrench = 0.1 * rng.standard_normal((3, 1, model.body_count, 6))
    cotangent = rng.standard_normal((4, model.nv))
    found = qdsim.rollout_vjp(
        model,
        q,
        u,
        cotangent=cotangent,
        tau=tau,
        wrench=wrench,
        parameters={"body_mass": mass},
        wrt=EVERY,
    )
    assert found.gradients["wrench"].shape == (3, 3, model.body_count, 6)
    assert found.gradients["mocap"].shape == (3, 3, model.mocap_count, 6)
    for i in range(3):
        own = model.with_parameters(body_mass=mass[i])
        alone = qdsim.rollout_vjp(
            own, q[i], u[i], cotangent=cotangent, tau=tau[i], wrench=wrench[i], wrt=EVERY
        )
        assert np.array_equal(alone.q, found.q[i])
        for name in EVERY:
            assert np.array_equal(alone.gradients[name], found.gradients[name][i]), name


FALLING = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><joint name="height" type="slide" axis="0 0 1"/>
    <geom type="sphere" size="0.1" mass="1"/></body>
  <body pos="0 1 1"><joint name="b" type="slide" axis="1 0 0"/>
    <geom type="sphere" size="0.1" mass="1"/></body></worldbody>
  <actuator><position joint="b" kp="100"/></actuator></mujoco>"""


def test_failed_samples_are_marked_and_have_no_gradient() -> None:
    model = qdsim.load(FALLING)
    options = qdsim.Options(epsilon=0.0)
    q = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.1]])  # the ball in the air falls for ever
    u = np.zeros((3, 4, 1))
    cotangent = np.ones((3, 5, 2))
    found = qdsim.rollout_vjp(model, q, u, options, cotangent=cotangent, errors="mark", wrt=EVERY)
    assert found.ok.tolist() == [True, False, True]
    assert found.steps_done.tolist() == [4, 0, 4]
    assert not found.derivative_exact[1]
    for value in found.gradients.values():
        assert np.isnan(value[1]).all() and np.isfinite(value[[0, 2]]).all()
    there = qdsim.rollout_jvp(model, q, u, options, tangents={}, errors="mark")
    assert np.isnan(there.tangent[1]).all() and np.array_equal(there.tangent[0], np.zeros((5, 2)))
    with pytest.raises(qdsim.SolverError, match=r"rollout: sample 1, step 0"):
        qdsim.rollout_vjp(model, q, u, options, cotangent=cotangent)
    with pytest.raises(qdsim.SolverError, match=r"vjp_batch: sample 1"):
        qdsim.vjp_batch(model, q, u[:, 0], options, cotangent=np.ones(2))


def test_no_samples_and_no_steps() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = courses(scene, 2, 3)
    none = qdsim.rollout_vjp(model, q[:0], u[:0], cotangent=np.ones((0, 4, model.nv)))
    assert none.gradients["u"].shape == (0, 3, model.nu)
    cotangent = np.random.default_rng(9).standard_normal((2, 1, model.nv))
    still = qdsim.rollout_vjp(model, q, u[:, :0], cotangent=cotangent)
    assert np.array_equal(still.gradients["q"], cotangent[:, 0])
    assert still.gradients["u"].shape == (2, 0, model.nu)


def test_wrong_arguments_are_named() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = courses(scene, 2, 3)
    cotangent = np.ones((2, 4, model.nv))

    def refuse(kind: type[Exception], said: str, **changes: object) -> None:
        arguments = {"cotangent": cotangent, **changes}
        with pytest.raises(kind, match=said):
            qdsim.rollout_vjp(model, q, u, **arguments)  # type: ignore[arg-type]

    refuse(ValueError, r"^cotangent: expected shape", cotangent=np.ones((2, 3, model.nv)))
    refuse(
        ValueError,
        r"^cotangent: sample 1: element \[2, 0\] is nan",
        cotangent=cotangent * np.where(np.arange(4)[:, None] == 2, [[[1.0]], [[np.nan]]], 1.0),
    )
    refuse(ValueError, r"^kappa: expected with", kappa=100.0)
    refuse(ValueError, r"^kappa: expected with", derivative="smoothed")
    refuse(ValueError, r"^kappa: ", derivative="smoothed", kappa=-1.0)
    refuse(ValueError, r"^derivative: ", derivative="finite")
    refuse(ValueError, r"^coordinates: ", coordinates="polar")
    refuse(ValueError, r"^checkpoint: ", checkpoint=-1)
    refuse(TypeError, r"^checkpoint: ", checkpoint=1.5)
    refuse(ValueError, r"^wrt: ", wrt=("mass",))
    refuse(ValueError, r"^cotangent: expected shape", cotangent=lambda path: path[..., 0])
    with pytest.raises(ValueError, match=r"^tangents\['u'\]: expected shape"):
        qdsim.rollout_jvp(model, q, u, tangents={"u": np.ones(model.nu)})
    with pytest.raises(TypeError, match=r"^tangents: expected a mapping"):
        qdsim.jvp_batch(model, q, u[:, 0], tangents=np.ones(3))  # type: ignore[arg-type]
