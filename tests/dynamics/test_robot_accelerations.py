"""Files of others: what a step of no length accelerates by is what MuJoCo's forward dynamics say.

Contacts, limits, equality constraints and dry friction, which MuJoCo softens, are taken out of the files; gravity,
Coriolis forces, springs, dampers, armature, tendons and actuators stay.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

import qdsim

FOLDERS = {
    "gymnasium": ("envs/mujoco/assets", "*.xml"),
    "qdsim": ("systems", "*.xml"),
}


def files() -> list[Path]:
    found = []
    for package, (folder, pattern) in FOLDERS.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found += sorted((Path(spec.origin).parent / folder).glob(pattern))
    return [path for path in found if "<mujocoinclude" not in path.read_text(encoding="utf-8")]


def without_constraints(path: Path) -> mujoco.MjSpec:
    spec = mujoco.MjSpec.from_file(str(path))
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for joint in spec.joints:
        joint.frictionloss = 0
    for tendon in spec.tendons:
        tendon.frictionloss = 0
    for element in [*spec.pairs, *spec.equalities]:
        spec.delete(element)
    return spec


def inside(mj: mujoco.MjModel, q: np.ndarray) -> np.ndarray:
    """A configuration whose hinges and slides are a tenth of their ranges away from their limits."""
    for joint in range(mj.njnt):
        if mj.jnt_limited[joint] and mj.jnt_type[joint] in (2, 3):
            low, high = mj.jnt_range[joint]
            at = mj.jnt_qposadr[joint]
            q[at] = np.clip(q[at], 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high)
    return q


@pytest.mark.short_cases(15)
@pytest.mark.filterwarnings("ignore::qdsim.ModelWarning", "ignore:compiler attribute")
@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_accelerations_are_those_of_mujoco(path: Path) -> None:
    spec = without_constraints(path)
    mj, model = spec.compile(), qdsim.load(spec)
    mj.opt.density = mj.opt.viscosity = 0.0
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data, rng, h = mujoco.MjData(mj), np.random.default_rng(5), 1e-8
    for _ in range(3):
        q = np.array(mj.qpos0)
        mujoco.mj_integratePos(mj, q, 0.1 * rng.normal(size=mj.nv), 1.0)
        q, v = inside(mj, q), 0.5 * rng.normal(size=mj.nv)
        u = rng.uniform(-0.3, 0.3, mj.nu)
        limited = mj.actuator_ctrllimited.astype(bool)
        u[limited] = np.clip(u, *mj.actuator_ctrlrange.T)[limited]
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(mj, data)
        options = qdsim.DynamicOptions(h=h, joint_limits=False, gyroscopic="explicit")
        step = qdsim.step_dynamic(model, q, model.from_mujoco_qvel(q, v), u, options)
        found = (model.to_mujoco_qvel(step.q_next, step.v_next) - v) / h
        # Masses of a long chain amplify the rounding of a velocity by 1e5: of 1 m/s 1e-11, and 1e-3 m/s^2 of its change
        # within 10 ns. Dampers with a time constant of 0.1 ms, which act within the step, lack 1e-4.
        scale = max(1.0, np.abs(data.qacc).max())
        np.testing.assert_allclose(found, data.qacc, rtol=0.0, atol=1e-4 * scale)
