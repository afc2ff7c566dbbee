"""Derivatives where a row that holds a position and friction that sticks carry one load.

A joint that presses into its limit by more than its dry friction stays at the limit, whatever q is near by; one that
presses by less stays where it is on one side and goes back to the limit on the other. So claims are held against
differences from both sides.
"""

from collections.abc import Callable

import numpy as np
import pytest

import qdsim

Array = np.ndarray
WORLD = '<mujoco><option gravity="0 0 {gravity}"/><worldbody>{bodies}</worldbody>{rest}</mujoco>'
LIMIT = 'range="-1 .5" limited="true" frictionloss="1" armature=".1"'
SATURATED = (
    '<actuator><position joint="a" kp="100" forcelimited="true" forcerange="-3 3"/></actuator>'
)
MIMIC = '<equality><joint joint1="a" joint2="b" polycoef="0 2 0 0 0"/></equality>'
TENDON = (
    '<tendon><fixed name="t" limited="true" range="-1 .75" frictionloss=".8">'
    '<joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon>'
)
ARM = (
    '<geom type="box" size=".1 2 2" pos="1.7 0 0" condim="{dim}" friction=".5"/>'
    '<body><joint axis="0 0 1" frictionloss="{one}" armature=".1"/>'
    '<geom type="capsule" fromto="0 0 0 1 0 0" size=".05" mass="1" contype="0" conaffinity="0"/>'
    '<body pos="1 0 0"><joint axis="0 0 1" frictionloss="{two}" armature=".05"/>'
    '<geom type="capsule" fromto="0 0 0 .7 0 0" size=".02" mass=".5" contype="0" conaffinity="0"/>'
    '<geom pos=".7 0 0" size=".1" mass=".5" condim="{dim}" friction=".5"/></body></body>'
)
BOX = (
    '<geom type="plane" size="5 5 1" friction=".5"/><geom type="box" size=".1 1 1" pos=".3 0 0" condim="1"/>'
    '<body pos=".1 0 .1"><joint type="slide" axis="1 0 0" {extra}/><joint type="slide" axis="0 0 1"/>'
    '<geom type="box" size=".1 .1 .1" mass="1" friction=".5"/></body>'
)


def slide(name: str, extra: str) -> str:
    return (
        f'<body><joint name="{name}" type="slide" axis="1 0 0" {extra}/>'
        '<geom size=".1" mass="1" contype="0" conaffinity="0"/></body>'
    )


def scene(bodies: str, rest: str = "", gravity: float = 0.0) -> qdsim.Model:
    return qdsim.load(WORLD.format(bodies=bodies, rest=rest, gravity=gravity))


TWO = slide("a", LIMIT) + slide("b", 'frictionloss=".7" armature=".1"')
BARE = slide("a", 'armature=".1"') + slide("b", 'armature=".1"')
# bodies, rest, q, u, tau, steps to rest, 1: differentiable
CASES = {
    "limit": (slide("a", LIMIT), "", [0.5], [], [5.0], 0, True),
    "limit, less than friction": (slide("a", LIMIT), "", [0.5], [], [0.5], 0, False),
    "limit, unloaded": (slide("a", LIMIT), "", [0.5], [], [0.0], 0, False),
    "actuator at its limit": (slide("a", LIMIT), SATURATED, [0.5], [1.0], [0.0], 0, True),
    "actuator within its limits": (slide("a", LIMIT), SATURATED, [0.5], [0.52], [0.0], 0, True),
    "coupled joints": (TWO, MIMIC, [0.5, 0.25], [], [5.0, 1.0], 0, True),
    "coupled joints, less than friction": (TWO, MIMIC, [0.5, 0.25], [], [0.5, 0.2], 0, False),
    "tendon": (BARE, TENDON, [0.5, 0.25], [], [5.0, 4.0], 0, True),
    "wall": (ARM.format(dim=1, one=0.3, two=0.2), "", [0.5, -0.9], [], [-1.5, 1.0], 60, True),
    "wall, one joint stuck": (
        ARM.format(dim=1, one=2, two=0.1),
        "",
        [0.5, -0.9],
        [],
        [-1.5, 1.0],
        60,
        True,
    ),
    "rough wall": (ARM.format(dim=3, one=0.3, two=0.2), "", [0.5, -0.9], [], [-1.5, 1.0], 60, True),
    "box between floor and wall": (BOX.format(extra=""), "", [0, 0], [], [20.0, 0.0], 5, False),
    "box on a slide with friction": (
        BOX.format(extra='frictionloss="2"'),
        "",
        [0, 0],
        [],
        [20.0, 0.0],
        5,
        False,
    ),
}
STEPS = ("step", "step_dynamic")


class Case:
    """A scene at rest, its step of either order, and what its differences are."""

    def __init__(self, name: str, order: str, law: str):
        bodies, rest, q, u, tau, steps, self.smooth = CASES[name]
        self.model = scene(bodies, rest, -10.0 if "plane" in bodies else 0.0)
        self.u, self.tau, self.order = np.array(u), np.array(tau), order
        kind = qdsim.Options if order == "step" else qdsim.DynamicOptions
        self.options = kind(h=0.05, law=law)
        self.q = np.array(q, dtype=float)
        for _ in range(steps):
            self.q = self.next(self.q)

    def call(
        self, of_q: Callable[..., object], of_both: Callable[..., object], q: Array, **more: object
    ):
        if self.order == "step":
            return of_q(self.model, q, self.u, self.options, tau=self.tau, **more)
        return of_both(
            self.model, q, np.zeros(self.model.nv), self.u, self.options, tau=self.tau, **more
        )

    def next(self, q: Array) -> Array:
        return np.array(self.call(qdsim.step, qdsim.step_dynamic, q).q_next)

    def differences(self, size: float = 1e-6) -> tuple[Array, Array]:
        """Slopes to either side of every joint."""
        at = self.next(self.q)
        ways = size * np.eye(self.model.nv)
        ahead = np.stack([(self.next(self.q + way) - at) / size for way in ways], axis=1)
        behind = np.stack([(at - self.next(self.q - way)) / size for way in ways], axis=1)
        return ahead, behind

    def claimed(self) -> tuple[Array, bool]:
        found = self.call(qdsim.linearize, qdsim.linearize_dynamic, self.q)
        A = found.A if self.order == "step" else found.of_q["q"]
        return np.array(A), found.step.info.derivative_exact


@pytest.mark.parametrize("order", STEPS)
@pytest.mark.parametrize(
    ("name", "law"),
    [
        (name, law)
        for name in CASES
        for law in ("convex", "coulomb")
        if law == "convex" or "box" not in name
    ],
)
def test_derivatives_hold_or_say_that_there_is_none(name: str, law: str, order: str) -> None:
    case = Case(name, order, law)
    ahead, behind = case.differences()
    A, exact = case.claimed()
    assert exact == case.smooth
    assert (np.abs(ahead - behind).max() < 1e-3) == case.smooth  # the case is what it says
    if exact:
        np.testing.assert_allclose(A, (ahead + behind) / 2.0, atol=1e-5)


@pytest.mark.parametrize("order", STEPS)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][-1]])
def test_products_are_those_of_the_matrix(name: str, order: str) -> None:
    """Along directions and back, and by friction, which moves nothing that a limit or a wall holds."""
    case = Case(name, order, "convex")
    A, _ = case.claimed()
    found = case.call(qdsim.differentiate, qdsim.differentiate_dynamic, case.q)
    assert found.step.info.derivative_exact
    for i in range(case.model.nv):
        unit = np.eye(case.model.nv)[i]
        ahead = found.jvp({"q": unit})
        np.testing.assert_allclose(ahead if order == "step" else ahead[0], A[:, i], atol=1e-8)
        back = found.vjp(unit) if order == "step" else found.vjp(unit, None)
        np.testing.assert_allclose(back["q"], A[i], atol=1e-8)
