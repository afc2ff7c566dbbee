"""The second-order step beside MuJoCo, and both beside closed forms, on sliding, rolling, bouncing and grasping."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from witness_scenes import SCENES

import qdsim
from qdsim import DynamicOptions


def ours(scene, h, law):
    """The last configuration."""
    model = qdsim.load(scene.xml)
    o = DynamicOptions(h=h, law=law, restitution=scene.restitution)
    start = model.default_q, np.array(scene.v, dtype=float)
    return qdsim.simulate(model, *start, scene.u, scene.duration, o).q[-1]


def theirs(scene, h):
    """MuJoCo's, with contacts as stiff as the step lets them be."""
    model = mujoco.MjModel.from_xml_string(scene.xml)
    model.opt.timestep = h
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    # a spring alone gives back what it takes; elsewhere critical damping within five steps
    model.geom_solref[:] = (-((0.3 / h) ** 2), 0.0) if scene.restitution else (5 * h, 1.0)
    data = mujoco.MjData(model)
    data.qvel[:], data.ctrl[:] = scene.v, scene.u
    for _ in range(round(scene.duration / h)):
        mujoco.mj_step(model, data)
    return np.array(data.qpos)


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("law", ["convex", "coulomb"])
@pytest.mark.parametrize("name", SCENES)
def test_errors_are_of_the_first_order(name, law):
    scene = SCENES[name]
    found = [scene.error(ours(scene, h, law)) for h in (0.01, 0.001)]
    assert found[0] < 0.05 and found[1] < 0.008
    assert found[1] < 0.25 * found[0]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", SCENES)
def test_mujoco_says_the_same(name):
    scene = SCENES[name]
    other = theirs(scene, 2e-4)
    assert (
        scene.error(other) < 0.025
    )  # its contacts give way: a bounce takes 2 ms, 1.3 % of the height
    own = ours(scene, 2e-4, "coulomb")
    assert scene.error(own) < 0.002
    places = [i for i, _ in scene.known]
    np.testing.assert_allclose(own[places], other[places], atol=0.025 * scene.scale)


@pytest.mark.parametrize("name", [n for n in SCENES if n != "bounces"])
def test_accuracy_is_asked_for(name):
    """A motion to an accuracy of 1e-5 a step ends within 0.5 % under Coulomb's law."""
    scene = SCENES[name]
    model = qdsim.load(scene.xml)
    o = DynamicOptions(h=0.02, law="coulomb")
    v = np.array(scene.v, dtype=float)
    done = qdsim.simulate(model, model.default_q, v, scene.u, scene.duration, o, accuracy=1e-5)
    assert scene.error(done.q[-1]) < 0.006
    assert len(done.u) < 1000
