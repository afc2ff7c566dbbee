"""`qdsim.mujoco.linearize_batch` and the products, beside `linearize` of one state after the other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import pytest

import qdsim.mujoco

SCENE = """<mujoco><option timestep="0.005" cone="elliptic"/><worldbody><geom type="plane" size="3 3 1"/>
<body name="arm" pos="0 0 0.4"><joint name="j" axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
</body><body name="box" pos="0.2 0 0.099"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody>
<actuator><motor joint="j"/><general joint="j" dyntype="filter" dynprm="0.03" gainprm="2"/></actuator></mujoco>"""
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


@pytest.fixture(scope="module")
def model() -> Any:
    return mujoco.MjModel.from_xml_string(SCENE)


@pytest.fixture(scope="module")
def course(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """States (2, 10, nstate) before the steps that `mujoco.rollout` makes under controls (2, 10, nu)."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    first = np.empty((2, mujoco.mj_stateSize(model, FULL)))
    for row in first:
        data.qvel[:] = 0.3 * rng.normal(size=model.nv)
        mujoco.mj_getState(model, data, row, FULL)
    controls = rng.normal(size=(2, 10, model.nu))
    after, _ = mujoco.rollout.rollout(model, data, first, controls)
    return np.concatenate([first[:, None], after[:, :-1]], axis=1), controls


def one_by_one(model: Any, states: np.ndarray, controls: np.ndarray, given: Any = None) -> Any:
    data = mujoco.MjData(model)
    if given is not None:
        mujoco.mj_copyData(data, model, given)
    mujoco.mj_setState(model, data, states, FULL)
    data.ctrl[:] = controls
    data.qacc_warmstart[:] = 0.0
    return qdsim.mujoco.linearize(model, data)


def test_each_row_is_linearized_with_the_same_bits_for_any_threads(model: Any, course: Any) -> None:
    states, controls = course
    found = [qdsim.mujoco.linearize_batch(model, states, controls, threads=n) for n in (1, 2, 5)]
    assert found[0].A.shape == (2, 10, 15, 15) and found[0].B.shape == (2, 10, 15, 2)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    for i, t in ((0, 0), (1, 7)):
        alone = one_by_one(model, states[i, t], controls[i, t])
        np.testing.assert_array_equal(found[0].A[i, t], alone.A)
        np.testing.assert_array_equal(found[0].B[i, t], alone.B)
    assert not found[0].differenced.any()


def test_what_all_rows_share_comes_from_data(model: Any, course: Any) -> None:
    states, controls = course
    data = mujoco.MjData(model)
    data.xfrc_applied[2] = [0, 0, -30, 1, 2, 3]
    data.ctrl[:] = controls[0, 3]
    before = np.array(data.qpos)
    found = qdsim.mujoco.linearize_batch(model, states[0, 3], data=data)
    alone = one_by_one(model, states[0, 3], controls[0, 3], data)
    np.testing.assert_array_equal(found.A, alone.A)
    np.testing.assert_array_equal(data.qpos, before)
    free = qdsim.mujoco.linearize_batch(model, states[0, 3], controls[0, 3])
    assert np.abs(free.A - found.A).max() > 1e-6
    spread = qdsim.mujoco.linearize_batch(model, states[0, 3], controls[1])
    assert spread.A.shape == (10, 15, 15)
    assert qdsim.mujoco.linearize_batch(model, states[:0, 0]).A.shape == (0, 15, 15)


def test_the_first_row_that_fails_is_named(course: Any) -> None:
    text = """<mujoco><option timestep="0.002"/><worldbody><geom name="can" type="cylinder" size="0.3 0.1"/>
    <body pos="0 0 1"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    state = np.zeros(mujoco.mj_stateSize(model, FULL))
    state[1:8] = [0, 0, 1, 1, 0, 0, 0]
    rows = np.tile(state, (6, 1))
    rows[3:, 1:8] = [0.25, 0.1, 0.18, 0.98, 0.1, 0.15, 0.05]
    mark = r"sample 3: contacts: .* 'can' and 'box'"
    for threads in (1, 3):
        with pytest.raises(ValueError, match=mark):
            qdsim.mujoco.linearize_batch(model, rows, threads=threads)
    found = qdsim.mujoco.linearize_batch(model, rows, contacts="differences")
    assert not found.differenced[:3].any() and (found.differenced[3:] > 0).all()
    np.testing.assert_array_equal(found.A[3], found.A[5])
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, rows[4], FULL)
    alone = qdsim.mujoco.linearize(model, data, contacts="differences")
    assert alone.differenced == found.differenced[4] and len(alone) == 4
    again = pickle.loads(pickle.dumps(copy.copy(alone)))
    assert again.differenced == alone.differenced
    np.testing.assert_array_equal(again.B, alone.B)


def test_products_are_those_of_the_matrices(model: Any, course: Any) -> None:
    states, controls = course
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, states[0, 5], FULL)
    data.ctrl[:] = controls[0, 5]
    A, B, _, _ = qdsim.mujoco.linearize(model, data)
    rng = np.random.default_rng(1)
    x, u, y = (rng.normal(size=(3, n)) for n in (15, 2, 15))
    forward = qdsim.mujoco.jvp(model, data, x, u)
    np.testing.assert_allclose(forward, x @ A.T + u @ B.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(qdsim.mujoco.jvp(model, data, x[0]), A @ x[0], atol=1e-12)
    np.testing.assert_allclose(qdsim.mujoco.jvp(model, data, control=u[0]), B @ u[0], atol=1e-12)
    by_state, by_control = qdsim.mujoco.vjp(model, data, y)
    np.testing.assert_allclose(
        np.sum(y * forward, -1), np.sum(by_state * x, -1) + np.sum(by_control * u, -1), rtol=1e-10
    )


def test_wrong_rows(model: Any, course: Any) -> None:
    states, controls = course
    data = mujoco.MjData(model)
    batch = qdsim.mujoco.linearize_batch
    with pytest.raises(
        ValueError, match=r"states: expected shape \(\.\.\., 17\), got \(2, 10, 16\)"
    ):
        batch(model, states[..., :-1], controls)
    with pytest.raises(ValueError, match=r"controls: leading dimensions \(3,\) do not broadcast"):
        batch(model, states, controls[0, :3])
    with pytest.raises(ValueError, match=r"states: element \[0, 1, 4\] is nan"):
        wrong = np.array(states)
        wrong[0, 1, 4] = np.nan
        batch(model, wrong, controls)
    with pytest.raises(TypeError, match=r"data: expected a mujoco\.MjData or None, got str"):
        batch(model, states, controls, data="data")
    with pytest.raises(ValueError, match="data: expected an MjData of this model"):
        other = mujoco.MjModel.from_xml_string("<mujoco/>")
        batch(model, states, controls, data=mujoco.MjData(other))
    with pytest.raises(ValueError, match="threads"):
        batch(model, states, controls, threads=0)
    with pytest.raises(TypeError, match=r"model: expected a mujoco\.MjModel"):
        batch(None, states, controls)
    with pytest.raises(ValueError, match="state: expected a tangent"):
        qdsim.mujoco.jvp(model, data)
    with pytest.raises(ValueError, match="do not broadcast"):
        qdsim.mujoco.jvp(model, data, np.zeros((3, 15)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"cotangent: expected shape \(\.\.\., 15\)"):
        qdsim.mujoco.vjp(model, data, np.zeros(14))
