"""Penetrations and violations of limits and constraints are corrected no faster than at `recovery_speed`; without a
bound, the step says that bodies jump."""

import pickle
import warnings

import numpy as np
import pytest

import qdsim

Array = np.ndarray
H = 0.1
BALL = (
    '<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="2 2 1"/><body pos="0 0 .1">'
    '<freejoint/><geom size=".1" mass="1" friction=".4"/></body></worldbody></mujoco>'
)
# An arm of two links, one past its limit and inside a block, and two balls off the constraint between them.
ARM = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body><joint name="a" axis="0 0 1" range="-1 .4" limited="true"/>
    <geom type="capsule" fromto="0 0 0 .5 0 0" size=".04" mass="1"/>
    <body pos=".5 0 0"><joint name="b" axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="1"/>
    </body></body>
  <body name="block" pos=".33 .04 0"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <joint axis="0 0 1"/><geom type="box" size=".1 .06 .05" mass=".5" friction=".5"/></body>
  <body name="p" pos="0 -1 0"><joint name="p" type="slide" axis="1 0 0"/><geom size=".05" mass=".3"/></body>
  <body name="r" pos="0 -2 0"><joint name="r" type="slide" axis="1 0 0"/><geom size=".05" mass=".3"/></body>
</worldbody><equality><joint joint1="p" joint2="r" polycoef="0 1 0 0 0"/></equality>
<actuator><position joint="a" kp="100"/><position joint="b" kp="60"/></actuator></mujoco>"""
ARM_Q = np.array([0.45, 0.3, 0.0, 0.02, 0.6, 0.05, -0.03])
ARM_U = np.array([0.6, 0.35])


def ball_in_floor(depth: float) -> tuple[qdsim.Model, Array]:
    model = qdsim.load(BALL)
    q = model.default_q.copy()
    q[2] -= depth
    return model, q


@pytest.mark.filterwarnings("ignore:step. 1 contact")
@pytest.mark.parametrize(
    ("speed", "rise"), [(None, 0.07), (10.0, 0.07), (0.8, 0.07), (0.1, 0.01), (0.0, 0.0)]
)
def test_a_ball_rises_at_the_speed_at_most(speed: float | None, rise: float) -> None:
    model, q = ball_in_floor(0.07)
    step = qdsim.step(model, q, [], qdsim.Options(h=H, recovery_speed=speed))
    assert step.q_next[2] - q[2] == pytest.approx(rise, abs=1e-8)
    assert step.info.capped_rows == (speed is not None and speed * H < 0.07)
    assert step.info.deep_contacts == 1 - step.info.capped_rows


def test_shallow_penetrations_are_not_deep() -> None:
    model, q = ball_in_floor(0.004)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = qdsim.step(model, q, [], qdsim.Options(h=H))
    assert step.info.deep_contacts == 0 and step.q_next[2] == pytest.approx(0.1, abs=1e-8)


def test_a_jump_is_told_once() -> None:
    model, q = ball_in_floor(0.07)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            step = qdsim.step(model, q, [], qdsim.Options(h=H))
    assert len(told) == 1 and "1 contact is more than 5 % of the smaller shape" in str(
        told[0].message
    )
    assert "recovery_speed" in str(told[0].message)
    assert "1 deep contact" in str(step.info)
    assert pickle.loads(pickle.dumps(step.info)).deep_contacts == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="recovery_speed"):
            qdsim.step(model, q, [], qdsim.Options(h=H))


def test_limits_and_constraints_come_back_at_the_speed() -> None:
    """Joint a is 0.05 rad past its limit, p and r are 0.08 m apart."""
    model = qdsim.load(ARM)
    speed = 0.2
    step = qdsim.step(model, ARM_Q, ARM_U, qdsim.Options(h=H, recovery_speed=speed))
    moved = step.q_next - ARM_Q
    assert moved[0] == pytest.approx(-speed * H, abs=1e-8)
    assert moved[5] - moved[6] == pytest.approx(-speed * H, abs=1e-8)
    assert np.abs(moved[2:4]).max() < 0.05 and step.info.capped_rows >= 3


@pytest.mark.parametrize(("law", "kappa"), [("convex", None), ("convex", 500.0), ("coulomb", None)])
def test_derivatives_with_capped_rows(law: str, kappa: float | None) -> None:
    """A and B, and products with them, against differences of steps; the bound is no function of q."""
    model = qdsim.load(ARM)
    options = qdsim.Options(h=H, recovery_speed=0.15, law=law, kappa=kappa, tolerance=1e-12)
    local = qdsim.linearize(model, ARM_Q, ARM_U, options)
    assert local.step.info.capped_rows >= 3 and local.step.info.derivative_exact

    def after(x: Array) -> Array:
        q, u = np.split(x, [model.nq])
        return qdsim.step(model, q, u, options).q_next

    x = np.concatenate([ARM_Q, ARM_U])
    e = 1e-5
    columns = [(after(x + e * d) - after(x - e * d)) / (2.0 * e) for d in np.eye(len(x))]
    ours = np.hstack([local.A, local.B])
    np.testing.assert_allclose(ours, np.array(columns).T, atol=1e-6 * np.abs(ours).max())
    rng = np.random.default_rng(0)
    along, back = rng.normal(size=len(x)), rng.normal(size=model.nv)
    dq, du = np.split(along, [model.nv])
    products = qdsim.differentiate(model, ARM_Q, ARM_U, options)
    np.testing.assert_allclose(products.jvp({"q": dq, "u": du}), ours @ along, atol=1e-8)
    np.testing.assert_allclose(products.vjp(back)["q"], local.A.T @ back, atol=1e-8)
    ends = [qdsim.step(model, ARM_Q, ARM_U, options.replace(h=H + s * e)).q_next for s in (1, -1)]
    by_h = (ends[0] - ends[1]) / (2.0 * e)
    np.testing.assert_allclose(products.jvp({"h": np.array(1.0)}), by_h, atol=1e-5)
    assert products.vjp(back, wrt=("h",))["h"] == pytest.approx(by_h @ back, abs=1e-4)


def test_the_second_order_step_counts_them() -> None:
    model, q = ball_in_floor(0.07)
    free = qdsim.step_dynamic(model, q, np.zeros(6), [], qdsim.DynamicOptions(h=0.01))
    slow = qdsim.step_dynamic(
        model, q, np.zeros(6), [], qdsim.DynamicOptions(h=0.01, recovery_speed=0.1)
    )
    assert (free.info.deep_contacts, slow.info.deep_contacts) == (1, 0)


@pytest.mark.parametrize("speed", [-1.0, np.nan, "fast"])
def test_speeds_that_are_none_are_refused(speed: object) -> None:
    with pytest.raises((TypeError, ValueError), match="recovery_speed"):
        qdsim.Options(recovery_speed=speed)  # type: ignore[arg-type]
