"""A scene with quaternions, contacts and an activation, and differences of what MuJoCo's steps make of it."""

from __future__ import annotations

from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

TEXT = """<mujoco><option timestep="0.01" cone="elliptic" tolerance="1e-14" ls_tolerance="1e-12" iterations="100"
ls_iterations="100"/><worldbody><geom type="plane" size="3 3 1"/>
<body pos="0 0 0.4"><joint name="j" type="ball" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body>
<body pos="0.2 0 0.098"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody>
<actuator><motor joint="j" gear="1 0.2 0.3"/><general joint="j" gear="0 0 1" dyntype="filter" dynprm="0.03" gainprm="2"/>
</actuator></mujoco>"""

COURSE = np.random.default_rng(5).normal(size=64)
"""Weights of a cost."""


def model_of() -> Any:
    return mujoco.MjModel.from_xml_string(TEXT)


def states_of(model: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Moving, with quaternions that are a little too long or short."""
    rng = np.random.default_rng(2)
    data = mujoco.MjData(model)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.empty((count, mujoco.mj_stateSize(model, kind)))
    for row in states:
        q = np.array(model.qpos0)
        mujoco.mj_integratePos(model, q, 0.01 * rng.normal(size=model.nv), 1.0)
        for turn in (q[:4], q[7:]):
            turn *= rng.uniform(0.95, 1.05)
        data.qpos[:], data.qvel[:] = q, 0.2 * rng.normal(size=model.nv)
        data.act[:] = rng.normal(size=model.na)
        mujoco.mj_getState(model, data, row, kind)
    return states, rng.normal(size=(count, model.nu))


def course(model: Any, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """States (n, T, nstate) after each of the steps of `mujoco.rollout` under controls (n, T, nu)."""
    return mujoco.rollout.rollout(model, mujoco.MjData(model), x, u)[0]


def cost(model: Any, path: Any) -> Any:
    """A linear function of the states of a path (..., T, nstate)."""
    return (path @ COURSE[: path.shape[-1]]).sum(-1)


def differences(model: Any, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of `cost` along a course, by every number of its first state x (nstate) and controls u (T, nu)."""
    size = x.size + u.size
    moved = np.concatenate([x, u.ravel()]) + 1e-6 * np.vstack([np.eye(size), -np.eye(size)])
    path = course(model, moved[:, : x.size], moved[:, x.size :].reshape(-1, *u.shape))
    ends = cost(model, path)
    found = (ends[:size] - ends[size:]) / 2e-6
    return found[: x.size], found[x.size :].reshape(u.shape)


def check_gradient(model: Any, x: np.ndarray, u: np.ndarray, gradient: Any) -> None:
    """Within 1e-6 of the largest of the differences."""
    for found, expected in zip(gradient, differences(model, x, u), strict=True):
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=1e-6 * scale)
