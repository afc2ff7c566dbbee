"""Large scenes, where boxes are sorted instead of asking every pair, against single pairs and MuJoCo.

The bits of both ways are compared in tests/c/geometry/test_broad_phase.c.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import qdsim

SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}


def crowd(count: int, spread: float, seed: int, gravity: float = 0.0) -> qdsim.Description:
    """Free shapes of all kinds over a plane, and one box on the world."""
    rng = np.random.default_rng(seed)
    scene = qdsim.SceneBuilder(gravity=(0, 0, gravity))
    scene.geom("world", "plane", pos=(0, 0, -spread), name="ground")
    scene.geom("world", "box", (spread, 0.05, 0.05), name="beam")
    for i in range(count):
        kind = list(SIZES)[i % len(SIZES)]
        quat = rng.normal(size=4)
        body = scene.body(
            f"b{i}",
            pos=spread * rng.uniform(-1, 1, 3),
            quat=quat / np.linalg.norm(quat),
            mass=1.0,
            inertia=(0.1, 0.1, 0.1),
        )
        scene.joint(body, "free")
        scene.geom(body, kind, rng.uniform(0.05, 0.3, SIZES[kind]), name=f"g{i}")
    return scene.build()


def only(description: qdsim.Description, a: str, b: str) -> qdsim.Description:
    """The same bodies with these two geometries left."""
    bodies = [
        dataclasses.replace(body, geoms=[geom for geom in body.geoms if geom.name in (a, b)])
        for body in description.bodies
    ]
    return dataclasses.replace(description, bodies=bodies)


@pytest.mark.long
def test_contacts_are_those_of_the_single_pairs() -> None:
    description = crowd(28, 0.6, seed=1)
    model = qdsim.build(description)
    assert model.pair_count > 400
    pairs = [
        qdsim.build(only(description, a, b))
        for a, b in itertools.combinations(model.geom_names, 2)
        if {a, b} != {"ground", "beam"}
    ]
    for margin in (0.0, 0.1, math.inf):
        found = model.collide(model.default_q, margin)
        rows: npt.NDArray[np.void] = np.concatenate(
            [pair.collide(pair.default_q, margin) for pair in pairs]
        )
        assert len(found) == len(rows) > 50
        for name in ("body_a", "body_b", "dist", "pos", "frame"):
            np.testing.assert_array_equal(found[name], rows[name])
        assert np.all(np.diff(found["pair"]) >= 0)


def test_touching_pairs_are_mujocos() -> None:
    description = crowd(40, 1.2, seed=2)
    model = qdsim.build(description)
    twin = mujoco.MjModel.from_xml_string(description.to_mjcf())
    data = mujoco.MjData(twin)
    mujoco.mj_kinematics(twin, data)
    distance = {
        (a, b): mujoco.mj_geomDistance(twin, data, a, b, 10.0, None)
        for a, b in model.pair_geom.tolist()
    }
    found = model.collide(model.default_q, 0.05)
    touching = set(zip(found["geom_a"].tolist(), found["geom_b"].tolist(), strict=True))
    # 1e-4: MuJoCo iterates on curved pairs
    assert touching >= {pair for pair, d in distance.items() if d < 0.05 - 1e-4}
    assert touching <= {pair for pair, d in distance.items() if d < 0.05 + 1e-4}
    assert len(touching) > 20


def test_bodies_do_not_fall_through_a_floor_beyond_the_margin() -> None:
    """Missed pairs of many bodies: each lands, wherever it starts, and is counted once."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -10))
    scene.geom("world", "box", (3, 3, 0.01), name="shelf")
    count = 36
    for i in range(count):
        body = scene.body(f"b{i}", pos=(0.5 * (i % 6) - 1, 0.5 * (i // 6) - 1, 0.2), mass=1.0)
        scene.joint(body, "free")
        scene.geom(body, "sphere", 0.05)
    model = qdsim.build(scene.build())
    assert model.pair_count == count * (count + 1) // 2
    step = qdsim.step(model, model.default_q, [], qdsim.Options(epsilon=0.2, margin=0.02))
    assert step.info.missed_pairs == count == len(step.contacts)
    np.testing.assert_allclose(step.q_next.reshape(-1, 7)[:, 2], 0.06, atol=1e-9)


def test_steps_of_a_pile_keep_what_each_object_does_alone() -> None:
    """Far from each other, 30 shapes over a plane move as each would without the others."""
    description = crowd(30, 20.0, seed=3, gravity=-10.0)
    model = qdsim.build(description)
    options = qdsim.Options(h=0.05, margin=0.05)
    together = qdsim.step(model, model.default_q, [], options).q_next
    for i in range(0, 30, 7):
        bodies = [description.bodies[0], description.bodies[1 + i]]
        alone = qdsim.build(dataclasses.replace(description, bodies=bodies))
        expected = qdsim.step(alone, alone.default_q, [], options).q_next
        np.testing.assert_allclose(together[7 * i : 7 * i + 7], expected, atol=1e-9)
