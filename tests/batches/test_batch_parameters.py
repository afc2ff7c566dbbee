"""Batches with parameters of the samples' own, and with arrays of the caller to write into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scenes

import qdsim
from qdsim import _core

OPTIONS = {
    "exact": qdsim.Options(),
    "smooth": qdsim.Options(kappa=300.0),
    "by mass ratio": qdsim.Options(mass_ratio=0.05),
}
SAMPLES = 6


def variations(model: qdsim.Model, rng: np.random.Generator) -> dict[str, scenes.Vector]:
    """Every parameter, different in every sample, as a model may have them."""
    own = model.parameters
    found = {}
    for name in _core.PARAMETER_NAMES:
        value = getattr(own, name)
        factors = rng.uniform(0.7, 1.3, (SAMPLES, *value.shape[:1], *(1,) * (value.ndim - 1)))
        found[name] = value * factors
    found["body_com"] += 0.005 * rng.standard_normal(found["body_com"].shape)
    return found


def states(scene: scenes.Scene) -> tuple[scenes.Vector, scenes.Vector]:
    rng = np.random.default_rng(0)
    pairs = [scene.sample(rng) for _ in range(SAMPLES)]
    return np.array([q for q, _ in pairs]), np.array([u for _, u in pairs])


SCENES = {
    "planar_hand": scenes.planar_hand,
    "box": lambda: scenes.pusher("box"),
    "pendulum": scenes.pendulum,
    "floating": scenes.floating,
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", SCENES)
def test_parameters_are_those_of_a_new_model(name: str, options: qdsim.Options) -> None:
    """The same bits as models that were made with these numbers, all at once and one by one."""
    scene = SCENES[name]()
    q, u = states(scene)
    all_of_them = variations(scene.model, np.random.default_rng(1))
    for given in (all_of_them, *({key: value} for key, value in all_of_them.items())):
        batch = qdsim.linearize_batch(
            scene.model, q, u, options, parameters=given, threads=2, errors="mark"
        )
        for i in range(SAMPLES if len(given) > 1 else 2):
            own = scene.model.with_parameters(**{key: value[i] for key, value in given.items()})
            try:
                want = qdsim.linearize(own, q[i], u[i], options)
            except qdsim.SolverError:
                assert not batch.ok[i]
                continue
            assert batch.q_next[i].tobytes() == want.q_next.tobytes()
            assert batch.A[i].tobytes() == want.A.tobytes()
            assert batch.B[i].tobytes() == want.B.tobytes()
            assert batch.contacts_of(i).tobytes() == want.step.contacts.tobytes()


def test_parameters_of_rollouts() -> None:
    scene = scenes.planar_hand()
    q, u = states(scene)
    commands = u[:, None] + np.linspace(0.0, 0.1, 6)[:, None]
    given = variations(scene.model, np.random.default_rng(2))
    found = qdsim.rollout(scene.model, q, commands, parameters=given, errors="mark", threads=2)
    for i in range(SAMPLES):
        own = scene.model.with_parameters(**{key: value[i] for key, value in given.items()})
        want = qdsim.rollout(own, q[i], commands[i], errors="mark")
        assert found.q[i].tobytes() == want.q.tobytes()


def test_parameters_broadcast() -> None:
    """Leading dimensions join in; strided arrays are fine; the model itself is not touched."""
    scene = scenes.planar_hand()
    model = scene.model
    q, u = states(scene)
    friction = np.linspace(0.1, 1.0, 4)[:, None, None] * np.ones((model.pair_count, 5))
    before = qdsim.step_batch(model, q, u)
    batch = qdsim.step_batch(
        model, q, u, parameters={"pair_friction": friction[:, None], "gravity": [0.0, 0.0, -1.0]}
    )
    assert batch.status.shape == (4, SAMPLES)
    wide = np.zeros((4, 2, model.pair_count, 5))
    wide[:, 1] = friction
    for k in range(4):
        own = model.with_parameters(pair_friction=friction[k], gravity=[0.0, 0.0, -1.0])
        want = qdsim.step_batch(own, q, u)
        assert batch.q_next[k].tobytes() == want.q_next.tobytes()
        strided = qdsim.step_batch(
            model, q[0], u[0], parameters={"pair_friction": wide[:, 1], "gravity": [0, 0, -1]}
        )
        assert strided.q_next[k].tobytes() == want.q_next[0].tobytes()
    assert qdsim.step_batch(model, q, u).q_next.tobytes() == before.q_next.tobytes()
    digests = {
        qdsim.step_batch(
            model, q, u, parameters={"pair_friction": friction[:, None]}, threads=k
        ).q_next.tobytes()
        for k in (1, 2, 8)
    }
    assert len(digests) == 1


def test_wrong_parameters_are_named() -> None:
    scene = scenes.pusher("box")
    model = scene.model
    q, u = states(scene)
    own = model.parameters

    def changed(name: str, value: float, *at: int) -> dict[str, scenes.Vector]:
        array = np.array(np.broadcast_to(getattr(own, name), (SAMPLES, *getattr(own, name).shape)))
        array[at] = value
        return {name: array}

    inertia = own.body_inertia.copy()
    inertia[1, 0, 0] = -1.0
    box = model.geom_names.index(model.geom_names[1])
    for parameters, error, message in (
        (changed("body_mass", -1.0, 2, 1), ValueError, "sample 2: element 1: negative"),
        (changed("body_mass", np.nan, 3, 0), ValueError, "sample 3: element 0: not finite"),
        (changed("actuator_stiffness", 0.0, 5, 2), ValueError, "sample 5: element 2: must be posi"),
        (changed("geom_size", 0.0, 1, box, 0), ValueError, "sample 1: element 1: must be positive"),
        (changed("pair_friction", -0.1, 0, 1, 0), ValueError, "sample 0: element 1: negative"),
        (
            changed("pair_friction", 0.9, 0, 1, 1),
            ValueError,
            "element 1: two different coefficients",
        ),
        (changed("joint_damping", -3.0, 4, 0), ValueError, "sample 4: element 0: negative"),
        (changed("joint_armature", -3.0, 4, 1), ValueError, "sample 4: element 1: negative"),
        (changed("joint_stiffness", -3.0, 4, 0), ValueError, "sample 4: element 0: negative"),
        ({"body_inertia": inertia}, ValueError, "sample 0: element 1: not symmetric positive"),
        ({"friction": 0.3}, ValueError, "parameters: expected names among body_mass, .*'friction'"),
        (
            {"body_mass": 0.3},
            ValueError,
            r"parameters\['body_mass'\]: expected shape \(\.\.\., 3\)",
        ),
        ({"gravity": "down"}, TypeError, r"parameters\['gravity'\]: expected an array of real"),
        (3, TypeError, "parameters: expected a mapping from names to arrays, got int"),
        ({"gravity": np.zeros((5, 3))}, ValueError, "do not broadcast: q .*'gravity'"),
    ):
        with pytest.raises(error, match=message):
            qdsim.step_batch(model, q, u, parameters=parameters)
        with pytest.raises(error, match=message.replace("q .*", "(?=.*q0 ).*")):
            qdsim.rollout(model, q, u[:, None], parameters=parameters)


# ---------------------------------------------------------------- arrays to write into


def test_results_go_into_given_arrays() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = (x.reshape(2, 3, -1) for x in states(scene))
    want = qdsim.linearize_batch(model, q, u, OPTIONS["smooth"])
    out = {
        "q_next": np.full((2, 3, model.nq), np.nan),
        "B": np.full((2, 3, model.nv, model.nu), np.nan),
        "status": np.full((2, 3), 9, dtype=np.int32),
        "derivative_exact": np.zeros((2, 3), dtype=bool),
    }
    found = qdsim.linearize_batch(model, q, u, OPTIONS["smooth"], out=out)
    for name, array in out.items():
        assert getattr(found, name) is array
        assert array.tobytes() == getattr(want, name).tobytes()
    assert found.A.tobytes() == want.A.tobytes()
    again = qdsim.linearize_batch(model, q + 1e-3, u, OPTIONS["smooth"], out=found)
    assert again.A is found.A
    assert again.q_next is out["q_next"]
    assert again.q_next.tobytes() != want.q_next.tobytes()
    commands = u[:, :, None]
    rolled = qdsim.rollout(model, q, commands, out={"q": np.empty((2, 3, 2, model.nq))})
    twice = qdsim.rollout(model, q, commands, out=rolled)
    assert twice.q is rolled.q
    assert twice.steps_done is rolled.steps_done
    one = qdsim.step_batch(model, q[0, 0], u[0, 0], out={"status": np.empty((), dtype=np.int32)})
    assert one.status == 0
    few = qdsim.step_batch(model, q[:, :0], u[:, :0], out={"q_next": np.empty((2, 0, model.nq))})
    assert few.q_next.shape == (2, 0, model.nq)


def test_unfit_arrays_are_named() -> None:
    scene = scenes.planar_hand()
    model = scene.model
    q, u = states(scene)
    shape = (SAMPLES, model.nq)
    frozen = np.empty(shape)
    frozen.setflags(write=False)
    shared = np.empty((2, *shape))
    wide = np.empty((SAMPLES, 2 * model.nq))
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            {"q_next": np.empty((SAMPLES, 3))},
            ValueError,
            r"out\['q_next'\]: expected shape \(6, 7\)",
        ),
        ({"q_next": np.empty(shape, dtype=np.float32)}, TypeError, "expected dtype float64"),
        ({"q_next": np.empty(shape, dtype=">f8")}, TypeError, "expected dtype float64, got >f8"),
        ({"q_next": np.empty(shape[::-1]).T}, ValueError, "expected a C-contiguous array"),
        ({"q_next": wide[:, : model.nq]}, ValueError, "expected a C-contiguous array"),
        ({"q_next": frozen}, ValueError, "cannot be written to"),
        ({"q_next": q}, ValueError, r"out\['q_next'\]: shares memory with an input"),
        ({"q_next": [[0.0]]}, TypeError, "expected an array, got list"),
        (
            {"q": np.empty(shape)},
            ValueError,
            "out: expected names among q_next, delta, .*, got 'q'",
        ),
        ({"A": np.empty(shape)}, ValueError, "out: expected names among .*, got 'A'"),
        (
            {"delta": shared[0], "limit_force": shared[0]},
            ValueError,
            r"out\['limit_force'\]: shares memory with out\['delta'\]",
        ),
        (np.empty(shape), TypeError, "out: expected a mapping from names to arrays or a result"),
    ]
    for out, error, message in cases:
        with pytest.raises(error, match=message):
            qdsim.step_batch(model, q, u, out=out)
    other = qdsim.step_batch(model, q[:3], u[:3])
    with pytest.raises(ValueError, match=r"out\['q_next'\]: expected shape"):
        qdsim.step_batch(model, q, u, out=other)
    with pytest.raises(ValueError, match=r"out\['steps_done'\]: expected shape"):
        qdsim.rollout(model, q, u[:, None], out={"steps_done": np.empty(3, dtype=np.int64)})
    both = np.empty((SAMPLES, 2, model.nq))
    both[:, 0] = q
    qdsim.step_batch(model, both[:, 0], u, out={"q_next": np.ascontiguousarray(both[:, 1])})


def test_a_batch_that_raises_has_written() -> None:
    """Failed samples keep their q, in the caller's array too."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.1"><joint name="z" type="slide" axis="0 0 1"/>
        <geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    )
    out = {"q_next": np.full((3, 1), 7.0), "status": np.zeros(3, dtype=np.int32)}
    q = np.array([[0.0], [2.0], [-0.01]])
    with pytest.raises(qdsim.SolverError, match="step_batch: sample 1: "):
        qdsim.step_batch(model, q, np.zeros((3, 0)), qdsim.Options(epsilon=0.0), out=out)
    assert out["q_next"][1, 0] == 2.0
    assert (out["status"] != 0).tolist() == [False, True, False]
    np.testing.assert_allclose(out["q_next"][[0, 2], 0], 0.0, atol=1e-8)
