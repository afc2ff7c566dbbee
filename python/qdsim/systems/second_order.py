"""Systems of the second-order step.

Numbers are those of Anitescu and Hart 2003 if published (pendulum, ellipse, disks, Brazil nut);
each system's ``about`` states which were chosen here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdsim.arguments import integer, number
from qdsim.description import SceneBuilder
from qdsim.description.constraints import Connect
from qdsim.dynamics import DynamicOptions
from qdsim.loading import build
from qdsim.systems.heaps import brazil_nut, brazil_nut_3d, disks
from qdsim.systems.moving import DynamicSystem, planar_body, still
from qdsim.systems.patches import (
    ball_drop,
    four_boxes,
    pencil,
    sliding_box,
    soft_pinch,
    spinning_disc,
    spoon,
    tipping_box,
)

__all__ = ["DYNAMIC_NAMES", "load_dynamic"]


def _pendulum() -> DynamicSystem:
    scene = SceneBuilder(name="pendulum")
    for name, x, length, mass in (("rod", 1.0, 2.0, 1.0), ("second", 2.5, 1.0, 0.5)):
        planar_body(scene, name, (x, 0.0), mass, mass * length**2 / 12)
        scene.geom(
            name,
            "capsule",
            (0.05, length / 2),
            quat=(math.sqrt(0.5), 0, math.sqrt(0.5), 0),
            contype=0,
            conaffinity=0,
        )
    held = Connect("held", "world", "rod", (0, 0, 0), (-1, 0, 0))
    tip = Connect("tip", "rod", "second", (1, 0, 0), (-0.5, 0, 0))
    description = dataclasses.replace(scene.build(), constraints=(held, tip))
    return still(
        "pendulum",
        build(description),
        DynamicOptions(h=0.01),
        10.0,
        """A slender rod of 2 m and 1 kg, held at one end, and a rod of 1 m and 0.5 kg at its tip, start
        horizontally at rest. Both joints are constraints between bodies that move in the plane. Anitescu and Hart
        2003 show that constraints drift without their stabilising term (`recovery_speed=0`). The sizes were chosen
        here.""",
    )


def _falling_ellipse() -> DynamicSystem:
    scene = SceneBuilder(name="falling_ellipse")
    scene.geom("world", "plane", friction=0.3)
    planar_body(scene, "ellipse", (0.0, 8.0), 1.0, (4.0**2 + 2.0**2) / 5)
    scene.geom("ellipse", "ellipsoid", (4.0, 2.0, 2.0), friction=0.3, rgba=(0.95, 0.55, 0.15, 1))
    return still(
        "falling_ellipse",
        build(scene.build()),
        DynamicOptions(h=0.05),
        20.0,
        """An ellipsoid with half axes of 4, 2 and 2 m ("axes 4 and 8" in Anitescu and Hart 2003) falls from
        8 m on a plane, with its long axis level, a spin of 3 rad/s and no restitution. The friction of 0.3 was
        chosen here.""",
        v=(0.0, 0.0, 3.0),
    )


def _painleve_rod(
    angle: float = math.radians(60), speed: float = 2.0, friction: float = 1.6
) -> DynamicSystem:
    angle = number("angle", angle, above=0, below=math.pi / 2)
    speed, friction = number("speed", speed), number("friction", friction, least=0)
    radius, half = 0.01, 0.5
    scene = SceneBuilder(name="painleve_rod")
    scene.geom("world", "plane", friction=friction)
    scene.body("rod", pos=(-half * math.cos(angle), 0, half * math.sin(angle) + radius), mass=1.0)
    turn = 0.5 * (math.pi / 2 + angle)  # its axis leans back from the tip, against x
    scene.joint("rod", "slide", axis=(1, 0, 0))
    scene.joint("rod", "slide", axis=(0, 0, 1))
    scene.joint("rod", "hinge", axis=(0, 1, 0))
    scene.geom(
        "rod",
        "capsule",
        (radius, half),
        quat=(math.cos(turn), 0, math.sin(turn), 0),
        friction=friction,
        rgba=(0.95, 0.55, 0.15, 1),
    )
    return still(
        "painleve_rod",
        build(scene.build()),
        DynamicOptions(h=1e-4),
        0.2,
        """A rod of 1 m leans back by ``angle`` while its tip slides over a plane. With friction 1.6 and
        between 47 and 75 degrees, Coulomb's law has no solution in accelerations, and the tip stops at once
        (Painleve): an impact without a collision.""",
        v=(speed, 0.0, 0.0),
    )


def _sliding_block(speed: float = 2.0, friction: float = 0.5) -> DynamicSystem:
    speed, friction = number("speed", speed), number("friction", friction, least=0)
    scene = SceneBuilder(gravity=(0, 0, -10), name="sliding_block")
    scene.geom("world", "plane", friction=friction)
    scene.body("block", pos=(0, 0, 0.1), mass=2.0)
    scene.joint("block", "slide", axis=(1, 0, 0))
    scene.joint("block", "slide", axis=(0, 0, 1))
    scene.geom("block", "box", (0.1,) * 3, friction=friction, rgba=(0.95, 0.55, 0.15, 1))
    return still(
        "sliding_block",
        build(scene.build()),
        DynamicOptions(h=0.01),
        0.6,
        """A block that does not rotate starts on the floor with a horizontal speed, g = 10. The convex law
        throws it up with friction times speed, however short the steps are; time and distance to rest are right to
        first order.""",
        v=(speed, 0.0),
    )


def _cradle(balls: int = 5, gap: float = 0.0) -> DynamicSystem:
    balls, gap = integer("balls", balls, least=2, most=1000), number("gap", gap, least=0)
    scene = SceneBuilder(gravity=(0, 0, 0), name="cradle")
    for k in range(balls):
        scene.body(f"ball{k}", pos=((0.2 + gap) * k, 0, 0), mass=1.0)
        scene.joint(f"ball{k}", "slide", axis=(1, 0, 0))
        scene.geom(f"ball{k}", "sphere", 0.1, friction=0.0)
    v = np.zeros(balls)
    v[0] = 1.0
    return still(
        "cradle",
        build(scene.build()),
        DynamicOptions(h=0.01, restitution=1.0),
        0.5,
        """Equal balls in a row; the first one hits the others at 1 m/s, without loss. If all contacts
        bounce in one step, Newton's rule distributes the motion over the balls. If each gap takes more than a step,
        only the last ball moves on.""",
        v=v,
    )


def _top() -> DynamicSystem:
    scene = SceneBuilder(gravity=(0, 0, 0), name="top")
    scene.body("top", mass=1.0, inertia=(1.0, 2.0, 3.0))
    scene.joint("top", "ball")
    scene.geom("top", "box", (2.0**0.5, 1.0, 0.5), rgba=(0.95, 0.55, 0.15, 1))
    return still(
        "top",
        build(scene.build()),
        DynamicOptions(h=0.01),
        20.0,
        """A free body with moments of inertia 1, 2 and 3 spins at 5 rad/s about its intermediate axis. This
        rotation is unstable: the body turns over and back.""",
        v=(0.01, 5.0, 0.01),
    )


_MAKERS: Mapping[str, Callable[..., DynamicSystem]] = {
    "pendulum": _pendulum,
    "falling_ellipse": _falling_ellipse,
    "disks": disks,
    "brazil_nut": brazil_nut,
    "brazil_nut_3d": brazil_nut_3d,
    "painleve_rod": _painleve_rod,
    "sliding_block": _sliding_block,
    "cradle": _cradle,
    "top": _top,
    "ball_drop": ball_drop,
    "sliding_box": sliding_box,
    "tipping_box": tipping_box,
    "four_boxes": four_boxes,
    "spinning_disc": spinning_disc,
    "soft_pinch": soft_pinch,
    "pencil": pencil,
    "spoon": spoon,
}

DYNAMIC_NAMES = tuple(_MAKERS)
"""Names of the systems of :func:`load_dynamic`."""


def load_dynamic(name: str, **choices: Any) -> DynamicSystem:
    """Load a system of the second-order step by its name, one of ``systems.DYNAMIC_NAMES``.

    Args:
        name: the system.
        **choices: ``disks`` takes rows and friction; ``brazil_nut`` and ``brazil_nut_3d`` grains and
            seed; ``cradle`` balls and gap; ``painleve_rod`` angle (rad), speed and friction;
            ``sliding_block``, ``sliding_box`` and ``spinning_disc`` speed and friction; ``ball_drop``
            dissipation (s/m) and height; ``tipping_box`` push; ``soft_pinch`` squeeze (N); the
            others nothing.

    Raises:
        TypeError, ValueError: for an unknown name, or a choice that the system does not have or cannot take.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    key = name.lower().replace("-", "_")
    if key not in _MAKERS:
        raise ValueError(f"name: no dynamic system {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[key](**choices)
