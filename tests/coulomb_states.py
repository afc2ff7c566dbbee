"""Scenes with random states near contact, fast and slow, and the certificate of Coulomb's law from public queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from program import contact_jacobian, pyramid_rows, weights

import qdsim

Vector = NDArray[np.float64]
State = tuple[Vector, Vector, Vector]

FREE = '<body pos="{x} {y} {z}"><freejoint/><geom {geom} {friction}/></body>'


def _text(
    bodies: str, mu: float, condim: int, tilt: float, planar: bool = False, more: str = ""
) -> str:
    fall = f"{9.81 * np.sin(tilt)} 0 {-9.81 * np.cos(tilt)}"
    return (
        f'<mujoco><option gravity="{fall}"/><default><geom friction="{mu} 0.02 0.01" condim="{condim}"/></default>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>{more}</mujoco>'
    )


def _loose(geoms: list[str], height: float, mu: float, condim: int, tilt: float) -> qdsim.Model:
    bodies = "".join(
        FREE.format(x=0.0, y=0.0, z=height + 2.0 * height * i, geom=g, friction="")
        for i, g in enumerate(geoms)
    )
    return qdsim.load(_text(bodies, mu, condim, tilt))


SHAPES = {
    "spheres": 'type="sphere" size=".1"',
    "boxes": 'type="box" size=".1 .12 .08"',
    "capsules": 'type="capsule" size=".06 .1"',
    "ellipsoids": 'type="ellipsoid" size=".1 .06 .14"',
    "cylinders": 'type="cylinder" size=".1 .08"',
}

ARM = """<body name="arm" pos="-.4 0 .35"><joint name="a" axis="0 1 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
<body pos=".3 0 0"><joint name="b" axis="0 1 0" range="-2 2"/><geom type="capsule" fromto="0 0 0 .2 0 -.1" size=".03"/></body></body>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos=".05 0 .3"><freejoint/><geom type="box" size=".08 .1 .1"/></body>"""
ARM_MORE = '<actuator><position joint="a" kp="60" forcerange="-8 8"/><position joint="b" kp="40"/></actuator>'

CHAIN = """<body pos="0 0 .08"><freejoint/><geom type="capsule" fromto="0 0 0 .25 0 0" size=".05"/>
<body pos=".25 0 0"><joint axis="0 1 0"/><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 .25 0 0" size=".05"/>
<body pos=".25 0 0"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .25 0 0" size=".05"/></body></body></body>"""

DISCS = "".join(
    f'<body pos="{0.2 * i - 0.1 * (2 - row)} 0 {0.1 + 0.17 * row}"><joint type="slide" axis="1 0 0"/>'
    '<joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/><geom size=".1"/></body>'
    for row, count in enumerate((4, 3, 2, 1))
    for i in range(count)
)

FOOT = "".join(
    f'<geom type="sphere" size=".01" pos="{x} {y} -.03" mass="0.01"/>'
    for x, y in ((0.1, 0.03), (0.1, -0.03), (-0.05, 0.0))
)
LEG = """<body name="{side}" pos="0 {y} -.08"><joint name="{side}_hip" axis="0 1 0" frictionloss=".2"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".03" contype="0"/>
<body pos="0 0 -.2"><joint name="{side}_knee" axis="0 1 0" range="-.1 2"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".025" contype="0"/>
<body pos="0 0 -.2"><joint name="{side}_ankle" axis="0 1 0"/><geom type="box" size=".08 .03 .015" mass=".3" contype="0"/>{foot}</body></body></body>"""
WALKER = (
    '<body pos="0 0 .52"><freejoint/><geom type="box" size=".08 .12 .08" mass="5"/>'
    + "".join(LEG.format(side=side, y=y, foot=FOOT) for side, y in (("l", 0.1), ("r", -0.1)))
    + "</body>"
)
WALKER_MORE = (
    '<equality><joint joint1="l_ankle" joint2="r_ankle"/></equality><actuator>'
    + "".join(
        f'<position joint="{side}_{joint}" kp="200" kv="4" forcerange="-{most} {most}"/>'
        for side in "lr"
        for joint, most in (("hip", 30), ("knee", 15), ("ankle", 8))
    )
    + "</actuator>"
)


def make(name: str, mu: float, condim: int = 3, tilt: float = 0.0) -> qdsim.Model:
    """A scene of NAMES."""
    if name == "arm":
        return qdsim.load(_text(ARM, mu, condim, tilt, more=ARM_MORE))
    if name == "chain":
        return qdsim.load(_text(CHAIN, mu, condim, tilt))
    if name == "walker":
        return qdsim.load(_text(WALKER, mu, condim, tilt, more=WALKER_MORE))
    if name == "discs":
        return qdsim.load(_text(DISCS, mu, condim, tilt))
    return _loose([SHAPES[name]] * 3, 0.1, mu, condim, tilt)


FAST = 100.0  # m/s, rad/s
NAMES = (*SHAPES, "arm", "chain", "discs", "walker")


def sample(model: qdsim.Model, rng: np.random.Generator, speed: float) -> State:
    """A state that is not deep anywhere: a random one, stepped a little under the convex law."""
    spread = np.full(model.nv, 0.03)
    options = qdsim.DynamicOptions(h=0.01, recovery_speed=1.0, infeasible="soften")
    u = 0.3 * rng.normal(size=model.nu)
    while True:
        q = model.integrate(model.default_q, spread * rng.normal(size=model.nv))
        v = speed * rng.normal(size=model.nv)
        try:
            for _ in range(int(rng.integers(3, 40))):
                s = qdsim.step_dynamic(model, q, v, u, options)
                q, v = s.q_next, s.v_next
        except qdsim.SolverError:
            continue
        if np.abs(v).max() > FAST:
            continue  # a chain whose bias forces, taken as they are at the start, have run away
        if len(s.contacts) and s.contacts["dist"].min() > -1e-3:
            return q, v + 0.3 * speed * rng.normal(size=model.nv), u


def random_states(name: str, count: int) -> Iterator[tuple[qdsim.Model, State, float]]:
    """Of a scene, the same ones every time: models of any friction and dimension of contacts, level or tilted, four
    states of each, with lengths of steps."""
    rng = np.random.default_rng(sum(map(ord, name)))
    for k in range(count):
        mu, condim = rng.uniform(0.1, 1.6), int(rng.choice([3, 3, 4, 6]))
        tilt = float(rng.choice([0.0, 0.0, 0.3]))
        if k % 4 == 0:
            model = make(name, mu, condim, tilt)
        state = sample(model, rng, float(rng.choice([0.1, 1.0, 4.0])))
        yield model, state, float(rng.choice([0.001, 0.005, 0.01, 0.05]))


def law_gaps(
    model: qdsim.Model, q: Vector, step: object, friction: str, rays: int = 4
) -> tuple[float, float, float]:
    """What a step lacks to Coulomb's law: closing (m), forces outside their cone (N), powers that are not zero (J), of
    all contacts that it reports. The program's constants are gaps: no bounces, no cap."""
    closing = outside = power = 0.0
    for contact in step.contacts:  # type: ignore[attr-defined]
        dim, force = int(contact["dim"]), contact["force"]
        w = (contact_jacobian(model, q, contact) @ step.delta)[:dim]  # type: ignore[attr-defined]
        w[0] += contact["dist"]
        closing = max(closing, -w[0])
        power = max(power, abs(force[0] * w[0]))
        if dim == 1:
            continue
        if friction == "cone":
            D = weights(contact)
            slip = np.linalg.norm(D * w[1:])
            outside = max(outside, np.linalg.norm(force[1:dim] / D) - force[0])
        else:
            slip = -((pyramid_rows(contact, rays)[:, :dim]) @ (w * (np.arange(dim) > 0))).min()
            if rays == 4:
                used = np.abs(force[1:3]).sum() / contact["friction"][0]
                used += np.sum(np.abs(force[3:dim]) / weights(contact)[2:])
                outside = max(outside, used - force[0])
        power = max(power, abs(force[1:dim] @ w[1:] + force[0] * slip))
    return closing, outside, power


def momentum_gap(model: qdsim.Model, q: Vector, v: Vector, step: object, force: Vector) -> float:
    """|M (v_next - v) / h - force - contacts' forces|, N: `force` of all else."""
    gap = model.mass_matrix(q) @ (step.v_next - v) / step.h - force  # type: ignore[attr-defined]
    for contact in step.contacts:  # type: ignore[attr-defined]
        gap -= contact_jacobian(model, q, contact).T @ contact["force"]
    return float(np.abs(gap).max())
