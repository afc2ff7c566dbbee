"""Second-order systems whose bodies press by pressure fields (Elandt et al. 2019)."""

from __future__ import annotations

import math

import numpy as np

from qdsim.arguments import integer, number
from qdsim.array_type import Array
from qdsim.description import SceneBuilder, Softness
from qdsim.dynamics import DynamicOptions
from qdsim.loading import build
from qdsim.systems.heaps import BLUES, ORANGE
from qdsim.systems.moving import DynamicSystem, still

__all__ = [
    "ball_drop",
    "four_boxes",
    "pencil",
    "sliding_box",
    "soft_pinch",
    "spinning_disc",
    "spoon",
    "tipping_box",
]


def ball_drop(dissipation: float = 1.0, height: float = 0.1) -> DynamicSystem:
    dissipation = number("dissipation", dissipation, least=0)
    height = number("height", height, least=0)
    radius = 0.05
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="ball_drop")
    scene.geom("world", "plane", name="floor", friction=0.5)
    scene.body("ball", pos=(0, 0, radius + height), mass=0.5)
    scene.joint("ball", "free")
    softness = Softness(1e6, dissipation=dissipation, hint=0.015)
    scene.geom("ball", "sphere", radius, name="ball", soft=softness, friction=0.5, rgba=ORANGE)
    return still(
        "ball_drop",
        build(scene.build()),
        DynamicOptions(h=1e-4),
        1.5 * (2 * height / 9.81) ** 0.5 + 0.03,
        """A soft ball falls on a rigid floor. Without dissipation it rebounds with the speed of its fall,
        except for the error of first-order steps. With much dissipation it rebounds with less than 1 /
        dissipation.""",
    )


def sliding_box(speed: float = 1.0, friction: float = 0.3) -> DynamicSystem:
    speed, friction = number("speed", speed), number("friction", friction, least=0)
    scene, half = SceneBuilder(gravity=(0, 0, -9.81), name="sliding_box"), (0.06, 0.04, 0.02)
    scene.geom("world", "plane", name="floor", friction=friction)
    sunk = _depth_of_box(half, 1e7, 9.81)
    scene.body("box", pos=(0, 0, half[2] - sunk), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", half, name="box", soft=1e7, friction=friction, rgba=ORANGE)
    return still(
        "sliding_box",
        build(scene.build()),
        DynamicOptions(h=1e-3),
        1.2 * abs(speed) / (9.81 * max(friction, 0.05)),
        """A soft box slides to rest on a rigid floor, over the distance speed squared / (2 friction g).
        Friction does not lift it, as it does under the convex law of rigid contacts.""",
        v=(speed, 0, 0, 0, 0, 0),
    )


def tipping_box(push: float = 1.1) -> DynamicSystem:
    push = number("push", push, least=0)
    scene, half = SceneBuilder(gravity=(0, 0, -9.81), name="tipping_box"), (0.02, 0.03, 0.06)
    scene.geom("world", "plane", name="floor", friction=1.0)
    sunk = _depth_of_box(half, 1e7, 9.81)
    scene.body("box", pos=(0, 0, half[2] - sunk), mass=1.0)
    scene.joint("box", "free")
    scene.geom("box", "box", half, name="box", soft=1e7, friction=1.0, rgba=ORANGE)
    model = build(scene.build())
    force = push * 9.81 * half[0] / half[2]  # at mid-height; a rigid box tips at push = 1
    return still(
        "tipping_box",
        model,
        DynamicOptions(h=1e-3),
        0.6,
        """A tall soft box on a rigid floor is pushed at its middle. The force rises for 0.2 s to ``push``
        times the force that would tip a rigid box. Well below 1 the centre of pressure moves and the box stands;
        above 1 it tips over.""",
        tau=lambda t, q, v: np.array([force * min(t / 0.2, 1.0), 0, 0, 0, 0, 0]),
    )


def four_boxes() -> DynamicSystem:
    half, density = 0.05, 400.0
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="four_boxes")
    ground = Softness(1e6, dissipation=2.2, thickness=half)
    scene.geom("world", "plane", name="ground", soft=ground, friction=0.0)
    v = np.zeros(24)
    for k in range(4):
        scene.body(f"box{k}", pos=(0, 0, (2 + 3 * k) * half), mass=density * (2 * half) ** 3)
        scene.joint(f"box{k}", "free")
        soft = Softness(1e6, dissipation=0.2) if k % 2 else None
        colour = ORANGE if k % 2 else BLUES[0]
        scene.geom(
            f"box{k}", "box", (half,) * 3, name=f"box{k}", soft=soft, friction=0.2, rgba=colour
        )
        v[6 * k + 5] = k + 1.0
        if k == 0:
            scene.pair("ground", "box0", friction=(0.0,) * 5)
    return still(
        "four_boxes",
        build(scene.build()),
        DynamicOptions(h=5e-3),
        2.0,
        """Four cubes, alternately rigid and soft, spin at 1 to 4 rad/s and fall on each other, on soft ground without
        friction. The scene is that of `test/boxes.jl` of PressureFieldContact.jl.""",
        v=v,
    )


def spinning_disc(speed: float = 20.0, friction: float = 0.5) -> DynamicSystem:
    speed, friction = number("speed", speed), number("friction", friction, least=0)
    radius, half = 0.05, 0.01
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="spinning_disc")
    scene.geom("world", "plane", name="floor", friction=friction)
    sunk = 9.81 * half / (1e7 * np.pi * radius**2)
    across = (3 * radius**2 + 4 * half**2) / 12
    inertia = (across, across, radius**2 / 2)
    scene.body("disc", pos=(0, 0, half - sunk), mass=1.0, inertia=inertia)
    scene.joint("disc", "free")
    softness = Softness(1e7, hint=0.006)
    scene.geom(
        "disc",
        "cylinder",
        (radius, half),
        name="disc",
        soft=softness,
        friction=friction,
        rgba=ORANGE,
    )
    along = (0.5**0.5, 0, 0.5**0.5, 0)
    seen = {"pos": (0, 0, half), "quat": along, "contype": 0, "conaffinity": 0, "rgba": BLUES[0]}
    scene.geom("disc", "capsule", (0.004, 1.4 * radius), name="bar", **seen)
    return still(
        "spinning_disc",
        build(scene.build()),
        DynamicOptions(h=1e-3),
        1.2 * abs(speed) * 3 * radius / (4 * max(friction, 0.05) * 9.81),
        """A soft disc without a coefficient of torsion spins on its face on a rigid floor. The contact surface
        decelerates it by 4 friction g / (3 radius) = 130.8 rad/s^2. The bar only makes the rotation visible.""",
        v=(0, 0, 0, 0, 0, speed),
    )


def soft_pinch(squeeze: float = 3.0) -> DynamicSystem:
    squeeze = number("squeeze", squeeze, least=0)
    radius, half = 0.015, 0.03
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="soft_pinch")
    scene.geom("world", "plane", name="floor", friction=0.6)
    for name, side in (("left", -1), ("right", 1)):
        scene.body(name, pos=(side * (half + radius + 0.002), 0, half), mass=0.05)
        for axis, way in (("x", (1, 0, 0)), ("z", (0, 0, 1))):
            scene.joint(name, "slide", name=f"{name} {axis}", axis=way)
        soft = Softness(2e5, dissipation=2.0, hint=0.005)
        scene.geom(name, "sphere", radius, name=name, soft=soft, friction=0.6, rgba=ORANGE)
    scene.body("box", pos=(0, 0, half), mass=0.1)
    scene.joint("box", "free")
    scene.geom("box", "box", (half,) * 3, name="box", friction=0.6, rgba=BLUES[0])
    model = build(scene.build())

    def tau(t: float, q: Array, v: Array) -> Array:
        forces, lift = np.zeros(model.nv), 0.1 * min(max(t - 0.4, 0.0), 0.5)
        for k, way in ((0, 1.0), (2, -1.0)):
            forces[k] = way * squeeze * min(t / 0.2, 1.0) - v[k]
            forces[k + 1] = 0.05 * 9.81 + 200.0 * (lift - q[k + 1]) - 5.0 * v[k + 1]
        return forces

    return still(
        "soft_pinch",
        model,
        DynamicOptions(h=2e-3),
        1.2,
        """Two soft balls press on a rigid box of 0.1 kg with the force ``squeeze`` each, and lift it by
        some 5 cm. Friction on the contact surfaces prevents it from turning about the line between the balls,
        without torsion coefficients.""",
        tau=tau,
    )


def pencil(slips: int = 3) -> DynamicSystem:
    slips = integer("slips", slips, least=0)
    pad, thick, lever = (0.007, 0.0035, 0.007), 0.0035, 0.02
    held, loose, turned = 2.5, 0.3, 0.2  # grip forces, N; angle of a slip, rad
    rest, period = 0.2, 0.5  # s before the first slip, and between slips
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="pencil")
    for name, side in (("left", -1), ("right", 1)):
        scene.body(name, pos=(0, side * (thick + pad[1]), 0), mass=0.03)
        scene.joint(name, "slide", name=name, axis=(0, 1, 0))
        soft = Softness(1e6, dissipation=2.0, hint=0.003)
        scene.geom(name, "ellipsoid", pad, name=name, soft=soft, friction=0.5, rgba=ORANGE)
    scene.body("pencil", pos=(lever, 0, 0), mass=0.006)
    scene.joint("pencil", "free")
    along = (0.5**0.5, 0, 0.5**0.5, 0)
    scene.geom(
        "pencil", "cylinder", (thick, 0.08), name="pencil", quat=along, friction=0.5, rgba=BLUES[0]
    )
    model = build(scene.build())

    def tau(t: float, q: Array, v: Array) -> Array:
        slip = min(max(int((t - rest) / period), 0), max(slips - 1, 0))
        since = t - rest - slip * period
        ramp = period / 10
        opened = np.clip([since / ramp, (period - since) / ramp - 2.0], 0.0, 1.0).min()
        left = (slip + 1) * turned - 2.0 * math.atan2(q[7], q[5])
        grip = held - (held - loose) * (slips > 0) * opened * min(
            max(2.0 * left / turned, 0.0), 1.0
        )
        forces = np.zeros(model.nv)
        forces[:2] = grip - v[0], -grip - v[1]
        return forces

    return still(
        "pencil",
        model,
        DynamicOptions(h=1e-3),
        rest + max(slips, 1) * period,
        """Two soft pads hold a pencil of 6 g, 2 cm beside its middle. A grip of 2.5 N holds it. A grip of
        0.3 N lets it turn under its weight, and closes again as the pencil approaches the next 0.2 rad. This slip
        control, the pads, modulus, friction, forces and angles are those of `test/pencil.jl` of
        PressureFieldContact.jl; its arm, which turns the gripper over, is left out. The grip opens within 50 ms. If
        it opened at once, the pads would leave the pencil for 13 ms, and it would fall by 1.6 mm (here 0.1 mm per
        slip). If it closed at once at 0.2 rad, the pencil would stop at 0.3 rad, because closing takes 15 ms.""",
        tau=tau,
    )


def spoon(lean: float = 0.03) -> DynamicSystem:
    lean = number("lean", lean, least=0)
    half, thick, handle = 0.02, 0.00125, 0.05
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="spoon")
    soft = Softness(1e6, dissipation=10.0)
    box = {"soft": soft, "friction": 0.2, "rgba": ORANGE}
    scene.geom("world", "box", (half,) * 3, name="lower", pos=(0, 0, -half), **box)
    scene.body("upper", pos=(0, 0, 2 * thick + half + 1e-3), mass=500 * (2 * half) ** 3)
    scene.joint("upper", "slide", name="upper", axis=(0, 0, 1))
    scene.geom("upper", "box", (half,) * 3, name="upper", **box)
    scene.body("spoon", pos=(half + lean, 0, thick), mass=0.01, inertia=(1e-6, 1.2e-5, 1.2e-5))
    scene.joint("spoon", "free")
    rigid = {"friction": 0.2, "rgba": BLUES[0]}
    scene.geom("spoon", "box", (handle, 0.005, thick), name="spoon", pos=(-0.02, 0, 0), **rigid)
    scene.geom("spoon", "ellipsoid", (0.02, 0.014, 0.006), name="bowl", pos=(0.045, 0, 0), **rigid)
    return still(
        "spoon",
        build(scene.build()),
        DynamicOptions(h=1e-3),
        0.6,
        """A spoon of 10 g lies between two soft boxes, with its middle ``lean`` beyond their edge; the
        upper box slides up and down freely. Boxes, modulus and friction are those of `test/spoon.jl` of
        PressureFieldContact.jl. The spoon, a flat handle and an ellipsoid as bowl, was chosen here. The
        distribution of pressure keeps it level.""",
    )


def _depth_of_box(half: tuple[float, float, float], modulus: float, weight: float) -> float:
    """Return the depth to which a soft box sinks into a rigid floor under a weight, m, to first order."""
    return weight * min(half) / (modulus * 4 * half[0] * half[1])
