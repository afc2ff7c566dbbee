"""Contacts whose normal motion vanishes: stretched chains, wrists at zero, pendulums at their dead centre.

The distance moves with the square of the angles there. Rows stay while anything moves them, so steps go on through
such states, and derivatives are those of differences.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim import systems

Array = npt.NDArray[np.float64]


def chain(gap: float, condim: int, friction: float = 0.7, spatial: bool = False) -> qdsim.Model:
    """Three hinges stretched towards a wall; its normal is along the chain. The last axis is of another plane."""
    axes = ("0 1 0", "0 0 1" if spatial else "0 1 0", "0 1 0")
    lengths = (0.5, 0.4, 0.3)
    body, end = "", ""
    for i, (axis, length) in enumerate(zip(axes, lengths)):
        at = lengths[i - 1] if i else 0.0
        body += f'<body pos="{at} 0 0"><joint name="j{i}" axis="{axis}"/>'
        body += f'<inertial mass="1" pos="{length / 2} 0 0" diaginertia=".01 .01 .01"/>'
        end += "</body>"
    tip = (
        f'<geom type="sphere" size=".05" pos="0.3 0 0" condim="{condim}" '
        f'friction="{friction} {0.02 * friction} {0.01 * friction}"/>'
    )
    wall = sum(lengths) + 0.05 + gap
    motors = "".join(f'<position joint="j{i}" kp="{20 + 10 * i}"/>' for i in range(3))
    return qdsim.load(
        f'<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1" pos="{wall} 0 0" '
        f'zaxis="-1 0 0" condim="{condim}" friction="{friction} {0.02 * friction} {0.01 * friction}"/>'
        f"{body}{tip}{end}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def differences(
    model: qdsim.Model, q: Array, u: Array, options: qdsim.Options, eps: float
) -> Array:
    """A by fourth-order central differences."""
    middle = qdsim.step(model, q, u, options).q_next
    columns = []
    for unit in np.eye(model.nv):
        total = np.zeros(model.nv)
        for at, weight in ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12)):
            moved = model.integrate(q, at * eps * unit)
            q_next = qdsim.step(model, moved, u, options).q_next
            total += weight / eps * model.difference(q_next, middle)
        columns.append(total)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_derivatives_at_a_stretched_chain(condim: int, friction: str, spatial: bool) -> None:
    rng = np.random.default_rng(condim)
    model = chain(0.02, condim, spatial=spatial)
    for kappa in (10.0, 100.0, 1e4):
        options = qdsim.Options(h=0.1, kappa=kappa, margin=0.1, friction=friction)
        u = 0.02 * rng.normal(size=3)
        lin = qdsim.linearize(model, np.zeros(3), u, options)
        assert lin.step.info.derivative_exact and lin.step.info.relaxed_contacts == 0
        expected = differences(model, np.zeros(3), u, options, 1e-4)
        np.testing.assert_allclose(lin.A, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))
        d = qdsim.differentiate(model, np.zeros(3), u, options)
        np.testing.assert_allclose(d.jacobians(("q",))["q"], lin.A, atol=1e-9)
        # and the step goes on through the state
        nearby = qdsim.step(model, np.full(3, 1e-9), u, options).q_next
        np.testing.assert_allclose(nearby, lin.step.q_next, atol=1e-7)


@pytest.mark.parametrize("condim", [1, 3])
@pytest.mark.parametrize("kappa", [None, 100.0])
def test_a_stretched_chain_that_penetrates_stays(condim: int, kappa: float | None) -> None:
    """A tenth of a millimetre that only turns of many radians would open by the row: kept from deepening, and said."""
    model = chain(-1e-4, condim)
    options = qdsim.Options(h=0.1, kappa=kappa, margin=0.1)
    for tilt in (0.0, 1e-12, 1e-9, 1e-7, 1e-6):
        q = np.array([tilt, 0.0, 0.0])
        lin = qdsim.linearize(model, q, q + [0.01, -0.02, 0.01], options)
        assert lin.step.info.relaxed_contacts == 1
        assert lin.step.info.derivative_exact is False
        assert np.abs(lin.q_next - q).max() < 0.05
    turned = qdsim.step(model, [0.1, 0.0, 0.0], [0.1, 0.0, 0.0], options)
    assert turned.info.relaxed_contacts == 0


@pytest.mark.parametrize("kappa", [None, 1e4])
def test_a_pendulum_passes_its_dead_centre(kappa: float | None) -> None:
    """At a gap, with friction and without: no step jumps."""
    options = qdsim.Options(h=0.1, kappa=kappa, margin=0.1)
    for gap, friction, condim in ((1e-3, 0.5, 3), (1e-3, 0.0, 3), (1e-3, 0.0, 1)):
        model = chain(gap, condim, friction)
        states = np.linspace(-1e-6, 1e-6, 21)
        ends = np.array(
            [qdsim.step(model, [s, 0.0, 0.0], [s + 1e-4, 0.0, 0.0], options).q_next for s in states]
        )
        assert np.abs(np.diff(ends, axis=0)).max() < 1e-5


@pytest.mark.parametrize("kappa", [10.0, 1e3])
@pytest.mark.parametrize("first", [4, 6])
def test_wrists_at_zero(first: int, kappa: float) -> None:
    """Both arms of the bimanual task with their last joints at zero: against differences."""
    system = systems.load("iiwa_bimanual_box")
    model, options = system.model, system.options.replace(kappa=kappa)
    rng = np.random.default_rng(first)
    q, u = np.array(system.start.q), np.array(system.start.u)
    for arm in (0, 7):  # seven joints each, then the box
        q[arm + first : arm + 7] = u[arm + first : arm + 7] = 0.0
    u += 0.01 * rng.normal(size=model.nu)
    lin = qdsim.linearize(model, q, u, options)
    assert lin.step.info.derivative_exact
    expected = differences(model, q, u, options, 2e-5)
    np.testing.assert_allclose(lin.A, expected, atol=2e-7 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("kappa", [None, 100.0])
def test_a_rough_row_of_slides_stays(kappa: float | None) -> None:
    """Slides along a wall that a third joint can turn against it: friction counts where the turn is at zero too."""
    model = qdsim.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 .201"><joint name="swing" axis="0 1 0" pos="0 0 .3"/><inertial mass="1" pos="0 0 0"
        diaginertia=".1 .1 .1"/><body><joint name="x" type="slide" axis="1 0 0"/>
        <geom type="sphere" size=".2" mass="1"/></body></body></worldbody><actuator>
        <position joint="swing" kp="50"/><position joint="x" kp="80"/></actuator></mujoco>"""
    )
    options = qdsim.Options(h=0.1, kappa=kappa, margin=0.1)
    at_zero, beside = (
        qdsim.step(model, [angle, 0.0], [angle, 0.1], options).q_next for angle in (0.0, 1e-6)
    )
    np.testing.assert_allclose(at_zero, beside, atol=1e-4)
    assert at_zero[1] < 0.05  # half of what was commanded: the cone holds it
