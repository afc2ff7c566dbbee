"""Number of programs in steps with soft geometries: random steps of twelve scenes (boxes, balls, pinches, chains).

Each step begins at a random displacement from a configuration in which bodies press on each other, with random forces
and commands. *within 10*: steps that converge within ten programs. *converged*: steps that converge. *failed*: steps
that raise an error. The number of programs is a mean over converged steps; us: mean CPU time of a step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import qdsim

MODULUS = 1e6


@dataclass(frozen=True)
class Scene:
    """A model, deviations of starts from its default configuration per degree of freedom, and mean and deviations of
    commands and of forces."""

    model: qdsim.Model
    displaced: list[float]
    command: list[float]
    commanded: list[float]
    force: list[float]
    forced: list[float]
    options: qdsim.Options


def _on_floor(friction: float, height: float) -> qdsim.SceneBuilder:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=friction)
    scene.body("body", pos=(0, 0, height), mass=1.0)
    scene.joint("body", "free")
    return scene


def _free(
    model: qdsim.Model, displaced: list[float], force: list[float], **options: object
) -> Scene:
    sizes = [0.5 * abs(f) + 0.2 * max(map(abs, force[:3])) for f in force[:3]]
    sizes += [max(abs(f), 1e-3 * max(map(abs, force[:3]))) for f in force[3:]]
    chosen = qdsim.Options(h=0.01, epsilon=1.0).replace(**options)
    return Scene(model, displaced, [], [], force, sizes, chosen)


def box(friction: float) -> Scene:
    scene = _on_floor(friction, 0.009)
    scene.geom("body", "box", (0.03, 0.02, 0.01), soft=MODULUS, friction=friction)
    model = qdsim.build(scene.build())
    return _free(model, [1e-3, 1e-3, 5e-4, 0.02, 0.02, 0.2], [1, 2, -300, 0.1, 0.2, 0.05])


def ball(friction: float, forces: tuple[float, ...] = (5, 2, 0.01), **options: object) -> Scene:
    scene = _on_floor(friction, 0.019)
    softness = qdsim.Softness(MODULUS, hint=0.005)
    scene.geom("body", "sphere", 0.02, soft=softness, friction=friction)
    model = qdsim.build(scene.build())
    displaced = [1e-3, 1e-3, 5e-4, 0.5, 0.5, 0.5]
    along, across, turning = forces
    force = [along, across, -20.0] + [turning, 2 * turning, turning]
    deviations = [along, across, 5.0] + [turning] * 3
    chosen = qdsim.Options(h=0.01, epsilon=1.0).replace(**options)
    return Scene(model, displaced, [], [], force, deviations, chosen)


def stone() -> Scene:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    ground = qdsim.Softness(MODULUS, thickness=0.05)
    scene.geom("world", "plane", name="ground", friction=0.4, soft=ground)
    scene.body("body", mass=1.0, pos=(0, 0, 0.0285))
    scene.joint("body", "free")
    scene.geom("body", "ellipsoid", (0.05, 0.04, 0.03), friction=0.4)
    displaced = [1e-3, 1e-3, 1e-3, 0.2, 0.2, 0.2]
    return _free(qdsim.build(scene.build()), displaced, [30, 10, -60, 0.02, 0.0, 0.01])


def capsule_on_table() -> Scene:
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    scene.body("table", pos=(0, 0, -0.03), mass=1.0)
    scene.joint("table", "slide", name="x", axis=(1, 0, 0))
    scene.actuator("x", 5000.0)
    scene.geom("table", "box", (0.1, 0.1, 0.03), friction=0.4, soft=4e5)
    scene.body("body", pos=(0, 0, 0.014), mass=0.3)
    scene.joint("body", "free")
    turned = np.array([0.7, 0.1, 0.7, 0.05])
    quat = tuple(turned / np.linalg.norm(turned))
    soft = qdsim.Softness(1e5, hint=0.01)
    scene.geom("body", "capsule", (0.015, 0.03), quat=quat, friction=0.4, soft=soft)
    return Scene(
        qdsim.build(scene.build()),
        [1e-3, 1e-3, 1e-3, 1e-3, 0.1, 0.1, 0.1],
        [0.0],
        [0.005],
        [0, 1, 0.5, -8, 0, 0.01, 0.01],
        [0, 2, 2, 4, 0.02, 0.02, 0.02],
        qdsim.Options(h=0.01, epsilon=1.0),
    )


def chains() -> Scene:
    """Make two hinges and a soft tip on a soft flap with a hinge of its own."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -9.81))
    inertia = (1e-3, 1e-3, 1e-3)
    scene.body("base", pos=(0, 0, 0.2), mass=1.0, inertia=inertia)
    scene.joint("base", "hinge", name="yaw", axis=(0, 0, 1))
    scene.body("upper", parent="base", pos=(0.05, 0, 0), mass=0.2, inertia=inertia)
    scene.joint("upper", "hinge", name="shoulder", axis=(0, 1, 0))
    scene.body("lower", parent="upper", pos=(0.1, 0, 0), mass=0.1)
    scene.joint("lower", "hinge", name="elbow", axis=(0, 1, 0.1))
    tip = qdsim.Softness(5e5, hint=0.008)
    scene.geom("lower", "sphere", 0.012, pos=(0.08, 0, 0), soft=tip, friction=0.6)
    scene.body("flap", parent="base", pos=(0.2, 0.01, -0.0308), mass=0.2)
    scene.joint("flap", "hinge", name="flap", axis=(0.1, 1, 0))
    scene.geom("flap", "box", (0.05, 0.04, 0.02), soft=1e6, friction=0.6)
    for joint, stiffness in (("yaw", 50.0), ("shoulder", 20.0), ("elbow", 20.0)):
        scene.actuator(joint, stiffness)
    return Scene(
        qdsim.build(scene.build()),
        [0.05, 0.02, 0.02, 0.01],
        [0.05, 0.05, 0.05],
        [0.05, 0.05, 0.05],
        [0, 0, 0, -0.3],
        [0, 0, 0, 0.2],
        qdsim.Options(h=0.01, epsilon=1.0),
    )


def pinch(friction: str = "polygons", carried: str = "box") -> Scene:
    """Make two soft balls on slides that hold an object in the air."""
    scene = qdsim.SceneBuilder()
    for name, side in (("left", -1), ("right", 1)):
        scene.body(name, pos=(0.0436 * side, 0, 0), mass=0.05)
        for axis, way in (("x", (1, 0, 0)), ("z", (0, 0, 1))):
            scene.joint(name, "slide", name=name + axis, axis=way)
            scene.actuator(name + axis, 400.0)
        soft = qdsim.Softness(2e5, hint=0.004)
        scene.geom(name, "sphere", 0.015, soft=soft, friction=0.6)
    scene.body("thing", mass=0.1)
    scene.joint("thing", "free")
    sizes = {"box": (0.03, 0.03, 0.03), "cylinder": (0.03, 0.03), "ellipsoid": (0.03, 0.025, 0.04)}
    scene.geom("thing", carried, sizes[carried], friction=0.6)
    return Scene(
        qdsim.build(scene.build()),
        [3e-4] * 4 + [3e-4] * 3 + [0.05] * 3,
        [0.01, 0.0, -0.01, 0.0],
        [0.005, 0.005, 0.005, 0.005],
        [0.0] * 10,
        [0.0] * 4 + [0.3, 0.3, 0.3, 2e-3, 2e-3, 2e-3],
        qdsim.Options(h=0.05, epsilon=0.01, patch_friction=friction),
    )


def pile() -> Scene:
    """Make a soft box on a rigid box on soft ground."""
    scene = qdsim.SceneBuilder()
    ground = qdsim.Softness(MODULUS, thickness=0.05)
    scene.geom("world", "plane", name="ground", friction=0.4, soft=ground)
    for k, soft in enumerate((None, 1e6)):
        name = f"box{k}"
        scene.body(name, pos=(0, 0, 0.0298 + 0.0594 * k), mass=1.0)
        scene.joint(name, "free")
        scene.geom(name, "box", (0.04 - 0.01 * k,) * 2 + (0.03,), soft=soft, friction=0.4)
    return Scene(
        qdsim.build(scene.build()),
        [1e-3, 1e-3, 2e-4, 0.01, 0.01, 0.1] * 2,
        [],
        [],
        [0.0] * 12,
        [4, 4, 5, 0.05, 0.05, 0.05] * 2,
        qdsim.Options(h=0.01, epsilon=1.0),
    )


SCENES: dict[str, Callable[[], Scene]] = {
    "box": lambda: box(0.5),
    "box without friction": lambda: box(0.0),
    "ball": lambda: ball(0.5),
    "ball, one element": lambda: ball(0.5, patch_friction="ellipsoid"),
    "ball, light": lambda: ball(0.5, (0.05, 0.05, 5e-4), epsilon=1e-3),
    "ball, smoothed": lambda: ball(0.5, kappa=1e4),
    "stone in soft ground": stone,
    "capsule on a soft table": capsule_on_table,
    "chains": chains,
    "pinch of a box": pinch,
    "pinch, one element": lambda: pinch("ellipsoid", "ellipsoid"),
    "pile": pile,
}


def starts(scene: Scene, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Draw configurations, commands and forces."""
    rng = np.random.default_rng(seed)

    def near(mean: list[float], deviation: list[float]) -> np.ndarray:
        return np.array(mean) + np.array(deviation) * rng.standard_normal(len(mean))

    found = []
    for _ in range(count):
        moved = near([0.0] * scene.model.nv, scene.displaced)
        q = scene.model.integrate(scene.model.default_q, moved)
        found.append((q, near(scene.command, scene.commanded), near(scene.force, scene.forced)))
    return found


def measure(scene: Scene, count: int, seed: int = 0) -> tuple[list[int], int, int, float]:
    """Return the programs of converged steps, the numbers of unconverged and failed steps, and seconds per step."""
    programs, open_ends, failed, spent = [], 0, 0, 0.0
    for q, u, tau in starts(scene, count, seed):
        begin = time.process_time()
        try:
            info = qdsim.step(scene.model, q, u, scene.options, tau=tau).info
        except qdsim.StepError:
            failed += 1
            continue
        finally:
            spent += time.process_time() - begin
        if info.soft_converged:
            programs.append(info.soft_programs)
        else:
            open_ends += 1
    return programs, open_ends, failed, spent / count


def main(count: int = 80) -> None:
    print("| scene | steps | within 10 | converged | failed | programs | most | us |")
    print("|" + " --- |" * 8)
    total = np.zeros(4, dtype=int)
    for name, make in SCENES.items():
        programs, _, failed, spent = measure(make(), count)
        soon = sum(n <= 10 for n in programs)
        total += [count, soon, len(programs), failed]
        mean = f"{np.mean(programs):.1f} | {max(programs)}" if programs else "- | -"
        print(
            f"| {name} | {count} | {soon} | {len(programs)} | {failed} | {mean} | {1e6 * spent:.0f} |"
        )
    print(f"| all | {' | '.join(map(str, total))} | | | |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
