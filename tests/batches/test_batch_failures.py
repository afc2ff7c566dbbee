"""Whatever finite numbers a sample of a batch has: what comes of them is that sample's, and nobody else's.

Far from the origin a mass matrix loses its positive diagonal to rounding, and farther out poses overflow;
so do masses, sizes, stiffnesses and commands. Each sample must end as a single step with its numbers does.
"""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim import _core

CHAIN = """
<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="ball" pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/>
    <body name="child" pos=".25 0 .1"><joint type="{joint}" stiffness="{stiffness}"/>
      <geom type="{shape}" size=".1 .1 .1" mass="1"/></body></body>
  <body name="cart" pos="2 0 1"><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="sphere" size=".1" mass="1"/></body>
</worldbody><actuator><position joint="x" kp="100"/></actuator></mujoco>"""


def chain(joint: str, shape: str) -> qdsim.Model:
    stiffness = 0 if joint == "ball" else 1
    return qdsim.load(CHAIN.format(joint=joint, shape=shape, stiffness=stiffness))


def far_states(model: qdsim.Model, count: int, rng: np.random.Generator) -> np.ndarray:
    """Free bodies at 1e5 to 1e300 m in random directions, turned at random; every third one stays near."""
    q = np.tile(model.default_q, (count, 1))
    far = rng.normal(size=(count, 3)) * 10.0 ** rng.choice([6, 7, 8, 30, 300], (count, 1))
    q[:, :3] += np.where(np.arange(count)[:, None] % 3, far, 0.0)
    turned = rng.normal(size=(count, 4))
    q[:, 3:7] = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    return q


def outcome(model: qdsim.Model, q: np.ndarray, u: np.ndarray) -> str:
    """The status of a single step as a word."""
    try:
        return qdsim.step(model, q, u).info.status
    except qdsim.SolverError as error:
        return error.info.status
    except ValueError as error:
        assert "the numbers overflow: " in str(error)
        return "not finite"


@pytest.mark.parametrize(
    ("joint", "shape"), [("ball", "sphere"), ("ball", "box"), ("hinge", "box")]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_sample_that_rounding_spoils_is_marked(joint: str, shape: str, threads: int) -> None:
    model = chain(joint, shape)
    rng = np.random.default_rng(3)
    q, u = far_states(model, 45, rng), rng.normal(size=(45, 1))
    u[4] = 1.7e308
    alone = [outcome(model, *sample) for sample in zip(q, u)]
    assert {"solved", "not finite"} < set(alone)
    for function in (qdsim.step_batch, qdsim.linearize_batch):
        found = function(model, q, u, errors="mark", threads=threads)
        if function is qdsim.step_batch:
            assert found.status_names.tolist() == alone
        assert np.isfinite(found.q_next).all()
        near = np.flatnonzero(found.ok)
        again = function(model, q[near], u[near])
        assert again.q_next.tobytes() == found.q_next[near].tobytes()
    paths = qdsim.rollout(model, q, np.repeat(u[:, None], 3, 1), errors="mark", threads=threads)
    assert (paths.ok <= (np.array(alone) == "solved")).all()
    assert np.isfinite(paths.q).all()
    for function in (qdsim.step_batch, qdsim.linearize_batch):
        with pytest.raises((qdsim.SolverError, ValueError), match=r"_batch: sample \d+: "):
            function(model, q, u, threads=threads)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e20, 1e120, 1e160, 1e300])
def test_parameters_that_no_step_can_carry_are_their_samples(size: float) -> None:
    model = chain("hinge", "box")
    rng = np.random.default_rng(5)
    for name in _core.PARAMETER_NAMES:
        own = np.array(getattr(model.parameters, name))
        values = np.repeat(own[None], 4, 0)
        values[1] *= size
        values[3] *= size * rng.uniform(0.5, 1.0, own.shape)
        try:
            found = qdsim.linearize_batch(
                model, model.default_q, [0.1], parameters={name: values}, errors="mark"
            )
        except ValueError as error:  # no model could have them, and that is said of this argument
            assert str(error).startswith(f"parameters['{name}']: sample ")
            continue
        assert found.ok[[0, 2]].all()
        whole = qdsim.linearize(model, model.default_q, [0.1])
        for i in (0, 2):
            assert found.q_next[i].tobytes() == whole.q_next.tobytes()
            assert found.A[i].tobytes() == whole.A.tobytes()


def test_the_number_that_overflows_is_named() -> None:
    model = chain("ball", "sphere")
    q, u = np.tile(model.default_q, (3, 1)), np.zeros((3, 1))
    tau, wrench = np.zeros((3, model.nv)), np.zeros((3, model.body_count, 6))
    for name, array, element in (("q", q, 2), ("u", u, 0), ("tau", tau, 1), ("wrench", wrench, 9)):
        given = {"q": q, "u": u, "tau": tau, "wrench": wrench}
        large = array.copy()
        large.reshape(3, -1)[2, element] = -1.5e308
        given[name] = large
        said = rf"the numbers overflow: {name} is too large \(element {element} is -1.5e\+308\)"
        try:
            qdsim.step(model, **{key: value[2] for key, value in given.items()})
        except ValueError as error:
            assert str(error).startswith("step: the numbers overflow: " + name)
        except qdsim.SolverError:
            continue
        with pytest.raises(ValueError, match="step_batch: sample 2: " + said):
            qdsim.step_batch(model, **given)
    with pytest.raises(ValueError, match=r"overflow: q is too large \(element 2 is -1.5e\+308\)"):
        q[2, 2] = -1.5e308
        qdsim.step_batch(model, q, u)
    q[2] = model.default_q
    masses = np.tile(model.parameters.body_mass, (3, 1))
    masses[1, 1:] = 1e308
    with pytest.raises(ValueError, match=r"sample 1: the numbers overflow: body_mass is too large"):
        qdsim.step_batch(model, q, u, parameters={"body_mass": masses})
