"""Heaps: disks on a plank, and a shaken box of grains in which a large one rises."""

from __future__ import annotations

import math

import numpy as np

from qdsim.arguments import integer, number
from qdsim.array_type import Array
from qdsim.description import SceneBuilder
from qdsim.dynamics import DynamicOptions
from qdsim.loading import build
from qdsim.model import Model
from qdsim.planning.drawing.colours import opaque
from qdsim.planning.drawing.style import LIMBS, OBJECT
from qdsim.systems.moving import DynamicSystem, Force, open_box, planar_body, still

__all__ = ["brazil_nut", "brazil_nut_3d", "disks"]

BLUES = [opaque(name) for name in LIMBS[:2]]
ORANGE = opaque(OBJECT)


def disks(rows: int = 6, friction: float = 0.4) -> DynamicSystem:
    """Build a triangle of touching disks on a plank (Anitescu and Hart 2003: 21 disks of radius 3)."""
    rows = integer("rows", rows, least=1, most=100)
    friction = number("friction", friction, least=0)
    radius, mass = 3.0, 5.0
    scene = SceneBuilder(gravity=(0, 0, -9.81), name="disks")
    scene.geom("world", "plane", name="plank", friction=friction)
    for row in range(rows):
        for k in range(rows - row):
            place = (2 * radius * (k - (rows - row - 1) / 2), radius + row * math.sqrt(3) * radius)
            body = planar_body(scene, f"disk{row}_{k}", place, mass, 0.5 * mass * radius**2)
            scene.geom(body, "sphere", radius, friction=friction, rgba=BLUES[row % 2])
    return still(
        "disks",
        build(scene.build()),
        DynamicOptions(h=0.05, friction="pyramid", rays=2),
        3.0,
        """Touching disks of radius 3 m in rows of n, n - 1, ..., 1, at rest on a plank (Anitescu and Hart
        2003: 21 disks, h = 50 ms). The mass of 5 kg and the friction of 0.4 were chosen here. The heap stands if
        friction is at least 0.268 for 3 disks, 0.434 for 6, 0.473 for 10 and 0.513 for 21; with less friction it
        spreads.""",
    )


def brazil_nut(grains: int = 269, seed: int = 0) -> DynamicSystem:
    """Build a shaken box with a large disk below small ones."""
    grains = integer("grains", grains, least=1, most=10_000)
    radius, large, width, friction = 0.5, 1.5, 12.0, 0.5
    scene = SceneBuilder(name="brazil_nut")
    open_box(scene, width, None, friction)
    rng = np.random.default_rng(seed)
    nut = planar_body(scene, "nut", (0.0, large), 9.0, 0.5 * 9.0 * large**2)
    scene.geom(nut, "sphere", large, friction=friction, rgba=ORANGE)
    for k, (x, z) in enumerate(_places(rng, grains, width, radius, large)):
        body = planar_body(scene, f"grain{k}", (x, z), 1.0, 0.5 * radius**2)
        scene.geom(body, "sphere", radius, friction=friction, rgba=BLUES[k % 2])
    model = build(scene.build())
    h = 0.1
    return still(
        "brazil_nut",
        model,
        DynamicOptions(h=h, friction="pyramid", rays=2, restitution=0.5, margin=0.5),
        50.0,
        """A disk of radius 1.5 m at the bottom of a box 12 m wide, below 269 disks of 0.5 m, all of one
        density. The box moves up and down by 0.75 m sin(2 pi t / 1 s), with an acceleration of at most 3 g.
        Coordinates are relative to the box, so the shaking is an inertial force on every disk. Anitescu and Hart
        2003 published the number of bodies (270), friction and restitution (0.5), h = 100 ms, the duration (50 s),
        and that the large disk emerges after some 40 shakes. They published neither sizes nor the motion of the
        box.""",
        tau=shaking(model, 0.75, 1.0, h),
    )


def brazil_nut_3d(grains: int = 269, seed: int = 0) -> DynamicSystem:
    """Build a shaken box with a large sphere below small ones."""
    grains = integer("grains", grains, least=1, most=10_000)
    radius, large, width, friction = 0.05, 0.15, 0.9, 0.5
    scene = SceneBuilder(name="brazil_nut_3d")
    open_box(scene, width, width, friction)
    rng = np.random.default_rng(seed)
    density = 1000.0
    bodies = [("nut", large, (0.0, 0.0, large))]
    for k, place in enumerate(_places_3d(rng, grains, width, radius, large)):
        bodies.append((f"grain{k}", radius, place))
    for k, (name, r, place) in enumerate(bodies):
        scene.body(name, pos=place, mass=density * 4 / 3 * math.pi * r**3)
        scene.joint(name, "free")
        scene.geom(name, "sphere", r, friction=friction, rgba=BLUES[k % 2] if k else ORANGE)
    model = build(scene.build())
    h = 0.01
    return still(
        "brazil_nut_3d",
        model,
        DynamicOptions(h=h, restitution=0.5),
        20.0,
        """A sphere of radius 0.15 m at the bottom of a box 0.9 m wide and deep, below 269 spheres of 0.05
        m, all of one density. The box moves up and down by 0.05 m sin(2 pi t / 0.5 s), and coordinates are relative
        to it. Sizes and shaking were chosen here.""",
        tau=shaking(model, 0.05, 0.5, h),
    )


def shaking(model: Model, amplitude: float, period: float, h: float) -> Force:
    """Return the inertial force on all bodies in a frame that moves by amplitude * sin(2 pi t /
    period) along z, averaged over steps of length h."""
    rate = 2 * math.pi / period
    lift = np.zeros(model.nv)
    for joint in model.description.joints:
        part = model.slice_v(joint.name)
        if joint.type == "free":
            lift[part.start + 2] = _mass_of(model, joint.name)
        elif joint.type == "slide" and abs(joint.axis[2]) == 1.0:
            lift[part.start] = _mass_of(model, joint.name)

    def force(t: float, q: Array, v: Array) -> Array:
        speeds = amplitude * rate * np.cos(rate * np.array([t, t + h]))
        return np.asarray(-lift * (speeds[1] - speeds[0]) / h)

    return force


def _mass_of(model: Model, joint: str) -> float:
    for body in model.description.bodies:
        if any(own.name == joint for own in body.joints):
            return float(body.mass)
    raise AssertionError(joint)


def _places(
    rng: np.random.Generator, count: int, width: float, radius: float, large: float
) -> list[tuple[float, float]]:
    """Return positions of small disks on a loose grid, except where the large disk is."""
    pitch = 2.1 * radius
    across = int((width - 2.2 * radius) // pitch)
    found: list[tuple[float, float]] = []
    row = 0
    while len(found) < count:
        z = 1.05 * radius + row * pitch
        for k in range(across + 1):
            x = (k - across / 2) * pitch + rng.uniform(-0.04, 0.04) * radius
            if math.hypot(x, z - large) > large + 1.1 * radius and len(found) < count:
                found.append((x, z))
        row += 1
    return found


def _places_3d(
    rng: np.random.Generator, count: int, width: float, radius: float, large: float
) -> list[tuple[float, float, float]]:
    pitch = 2.1 * radius
    across = int((width - 2.2 * radius) // pitch)
    found: list[tuple[float, float, float]] = []
    layer = 0
    while len(found) < count:
        z = 1.05 * radius + layer * pitch
        for i in range(across + 1):
            for j in range(across + 1):
                x, y = ((n - across / 2) * pitch for n in (i, j))
                x, y = (c + rng.uniform(-0.04, 0.04) * radius for c in (x, y))
                if math.hypot(x, y, z - large) > large + 1.1 * radius and len(found) < count:
                    found.append((x, y, z))
        layer += 1
    return found
