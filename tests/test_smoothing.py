"""Smoothed local models: closed forms, equivalent densities, unbiased estimates with honest errors."""

from __future__ import annotations

import numpy as np
import pytest

import qdsim
from qdsim.smoothing import Analytic, Exact, Randomized, barrier_scale

STIFFNESS = 100.0
# S3, Fig. 5a: an actuated cart before a wall at 0, here a contact; as a joint limit, `RAIL`.
CART = f"""
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="plane" size="1 1 1" zaxis="1 0 0"/>
  <body pos="0.1 0 0"><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="sphere" size="0.1" mass="1" condim="1"/></body></worldbody>
  <actuator><position joint="x" kp="{STIFFNESS}"/></actuator></mujoco>"""
RAIL = f"""
<mujoco><option gravity="0 0 0"/><worldbody><body>
  <joint name="x" type="slide" axis="1 0 0" range="0 1e4"/><geom type="sphere" size="0.1" mass="1"/>
  </body></worldbody>
  <actuator><position joint="x" kp="{STIFFNESS}"/></actuator></mujoco>"""
FAR = qdsim.Options(margin=np.inf, tolerance=1e-12)
COMMANDS = np.array([[-0.3], [-0.1], [-0.01], [0.0], [0.02], [0.1], [0.25]])


@pytest.mark.parametrize(("text", "logs"), [(RAIL, 1), (CART, 2)], ids=["limit", "contact"])
def test_equivalent_density(text: str, logs: int) -> None:
    """CQDC, Example 4: closed form of the barrier step; the density of that name samples it."""
    model = qdsim.load(text)
    kappa = 2.0
    analytic = Analytic(kappa).linearize(model, [0.3], COMMANDS, FAR)
    root = np.sqrt(COMMANDS**2 + 4.0 * logs / (kappa * STIFFNESS))
    # the other end of the rail, 10 km away, pushes by 5e-7 m
    np.testing.assert_allclose(analytic.c, 0.5 * (COMMANDS + root), rtol=0, atol=6e-7)
    np.testing.assert_allclose(analytic.B[..., 0], 0.5 * (1 + COMMANDS / root), rtol=0, atol=1e-5)
    scheme = Randomized(
        barrier_scale(kappa, STIFFNESS, logs), samples=16384, density="barrier", sobol=True
    )
    sampled = scheme.linearize(model, [0.3], COMMANDS, FAR)
    np.testing.assert_allclose(sampled.B, analytic.B, atol=5e-4)
    assert sampled.std_error is not None


def test_exact_scheme_is_linearize() -> None:
    model = qdsim.load(CART)
    one = Exact().linearize(model, [0.3], [-0.2], FAR.replace(kappa=3.0))
    want = qdsim.linearize(model, [0.3], [-0.2], FAR)
    assert one.A.tobytes() == want.A.tobytes()
    assert one.B.tobytes() == want.B.tobytes()
    assert one.c.tobytes() == want.q_next.tobytes()
    assert one.std_error is None
