"""Creep of random grasps against MuJoCo's own simulation."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from test_mujoco_contacts import BALL, CUBE, Vector, at_rest, grasp

import qdsim

STIFFNESS = 5000.0
"""N/m, of the plates' servos."""
AT_REST = 1e-4
"""m/s, of the plates: grasps that slide or chatter in MuJoCo are faster."""
HELD = 0.9
"""Of what friction of any contact can carry."""


def random_grasp(rng: np.random.Generator) -> tuple[str, Vector]:
    """Shape, cone, condim, impratio, friction, solref, solimp, gravity and squeeze."""
    gravity = rng.normal(size=3) * (0.3, 1.0, 1.0)
    gravity *= 9.81 / np.linalg.norm(gravity)
    friction, share = rng.uniform(0.4, 1.2), rng.uniform(0.1, 0.8)
    solref = f"{rng.uniform(0.01, 0.03):.4f} {rng.uniform(0.8, 1.2):.3f}"
    solimp = (
        f"{rng.uniform(0.8, 0.9):.3f} {rng.uniform(0.9, 0.96):.3f} {10 ** rng.uniform(-3, -2):.5f} "
        f"{rng.uniform(0.3, 0.7):.2f} {rng.integers(1, 4)}"
    )
    shape, cone = (BALL, CUBE)[rng.integers(2)], ("elliptic", "pyramidal")[rng.integers(2)]
    source = grasp(
        shape, cone, rng.choice((1.0, 3.0, 10.0)), f'solref="{solref}" solimp="{solimp}"'
    )
    words = " ".join(map(str, gravity))
    for old, new in (
        ("1 0.005 0.0001", f"{friction:.3f} 0.01 0.0005"),
        ('condim="4"', f'condim="{rng.choice((3, 4, 6))}"'),
        ("<option ", f'<option gravity="{words}" '),
    ):
        source = source.replace(old, new)
    squeeze = np.linalg.norm(gravity[1:]) / (2.0 * friction * share) + abs(gravity[0])
    return source, squeeze / STIFFNESS * np.array((1.0, -1.0))


def is_held(compiled: mujoco.MjModel, data: mujoco.MjData) -> bool:
    force, worst = np.zeros(6), 0.0
    for i in range(data.ncon):
        mujoco.mj_contactForce(compiled, data, i, force)
        elliptic = compiled.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        tangential = np.linalg.norm(force[1:3], ord=2 if elliptic else 1)
        worst = max(worst, tangential / (data.contact[i].friction[0] * force[0]))
    return 0.0 < worst < HELD and float(np.abs(data.qvel[:2]).max()) < AT_REST


def creeps_alike(seed: int) -> bool:
    """Checks one grasp; False if MuJoCo does not hold it."""
    source, u = random_grasp(np.random.default_rng(seed))
    compiled, data = at_rest(source, u, 0.4)
    start = data.qpos.copy()
    held = is_held(compiled, data)
    mujoco.mj_step(compiled, data, round(2.0 / compiled.opt.timestep))
    if not (held and is_held(compiled, data)):
        return False
    model, way = qdsim.load(source), data.qpos[2:5] - start[2:5]
    for h in (0.02, 0.05, 0.1):
        options = qdsim.Options(
            h=h, contacts="mujoco", epsilon=0.01, gravity_on_actuated=True, damping=True
        )
        q = start
        for _ in range(round(2.0 / h)):
            q = qdsim.step(model, q, u, options).q_next
        miss = np.linalg.norm(q[2:5] - data.qpos[2:5])
        assert miss < 0.03 * np.linalg.norm(way), (seed, h, miss / np.linalg.norm(way))
    return True


def test_random_grasps_creep_as_in_mujoco() -> None:
    assert sum(creeps_alike(seed) for seed in range(12)) >= 6


@pytest.mark.long
def test_many_random_grasps_creep_as_in_mujoco() -> None:
    assert sum(creeps_alike(seed) for seed in range(12, 212)) >= 120
