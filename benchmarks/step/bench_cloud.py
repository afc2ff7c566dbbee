"""Point clouds: the step of Tracy and Manchester's grasp, and how steps grow with the number of points.

Tracy and Manchester ("Convex Quasi-Dynamic Simulation of Rigid Point Clouds with Torsional Friction")
reports just under 90 us for a step of a grasped cloud of 992 points on an M1 Pro. Times are means of equal
C calls in a loop, medians and minima over rounds in which the contenders take turns. One thread.

- Grasp: `cloud_grasp` in the hand, halfway through its motion, with 15 contacts with torsional friction; as
  a cone program and as the published pyramid, exact and smoothed.
- Growth: a cloud on an ellipsoid between two fingers and the floor, and on a cube that stands on the floor,
  where each face is equally near. Time to build the model, to find contacts, and of a step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from timing import micros, race

import qdsim
from qdsim import _core, systems

ROUNDS = 101
REPEAT = 10  # short enough for a time slice of a machine that others use too
COUNTS = (1_000, 3_162, 10_000, 31_623, 100_000)


def ellipsoid(count: int) -> np.ndarray:
    points = np.random.default_rng(0).normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * [0.1, 0.06, 0.05]


def cube(count: int) -> np.ndarray:
    side = max(2, round((count / 6) ** 0.5))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.05, 0.05, side)] * 2), axis=-1).reshape(-1, 2)
    faces = [np.insert(grid, axis, end, axis=1) for axis in range(3) for end in (-0.05, 0.05)]
    return np.concatenate(faces)


def scene(points: np.ndarray, gap: float) -> qdsim.Description:
    """Put the cloud on the floor between two fingers, ``gap`` away from its middle."""
    builder = qdsim.SceneBuilder(gravity=(0, 0, -10))
    builder.geom("world", "plane", condim=4)
    builder.body("object", pos=(0, 0, 0.05), mass=0.5, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("object", "free")
    builder.geom("object", "cloud", cloud=qdsim.PointCloud(points), condim=4)
    for name, side in (("left", 1), ("right", -1)):
        builder.body(name, pos=(0, side * (gap + 0.005), 0.05), mass=0.1, inertia=(1e-3,) * 3)
        builder.joint(name, "slide", axis=(0, 1, 0))
        builder.geom(name, "box", (0.015, 0.005, 0.02), condim=4)
        builder.actuator(name, 1000.0)
    return builder.build()


def step_seconds(
    model: qdsim.Model, q: np.ndarray, u: np.ndarray, options: qdsim.Options, linearize: bool
) -> Callable[[], float]:
    return lambda: _core._step_benchmark(model, q, u, options, REPEAT, linearize)


def contacts_seconds(model: qdsim.Model, q: np.ndarray, margin: float) -> Callable[[], float]:
    def call() -> float:
        start = time.perf_counter()
        for _ in range(REPEAT):
            model.contacts(q, margin)
        return (time.perf_counter() - start) / REPEAT

    return call


def grasp(rounds: int) -> str:
    system = systems.load("cloud_grasp")
    model, options = system.model, system.options
    q = np.array(system.start.q)
    half = len(system.commands) // 2
    for u in system.commands[:half]:
        q = qdsim.step(model, q, u, options).q_next
    u = system.commands[half]
    pyramid = options.replace(friction="pyramid")
    cases = {
        "cone": (options, False),
        "cone, with A and B": (options, True),
        "cone, kappa = 1000": (options.replace(kappa=1000.0), False),
        "pyramid of 4 rays and torsion (Tracy and Manchester's program)": (pyramid, False),
        "pyramid, with A and B": (pyramid, True),
    }
    times = race({name: step_seconds(model, q, u, *case) for name, case in cases.items()}, rounds)
    times |= race({"`Model.contacts` alone": contacts_seconds(model, q, 0.002)}, rounds)
    lines = [
        f"992 points in the grasp, {len(qdsim.step(model, q, u, options).contacts)} contacts",
        "",
        *micros(times, "step"),
    ]
    return "\n".join(lines)


def growth(name: str, shape: Callable[[int], np.ndarray], gap: float, rounds: int) -> str:
    lines = [
        f"{name}: growth with the number of points",
        "",
        "| points | build ms | contacts us: median (min) | step us | step with A and B us |",
        "| --- | --- | --- | --- | --- |",
    ]
    options = qdsim.Options(h=0.01, margin=0.002)
    for count in COUNTS:
        points = shape(count)
        description = scene(points, gap)
        start = time.perf_counter()
        model = qdsim.build(description)
        built = time.perf_counter() - start
        q, u = np.array(model.default_q), np.array([-0.002, 0.002])
        times = race(
            {
                "contacts": contacts_seconds(model, q, 0.002),
                "step": step_seconds(model, q, u, options, False),
                "both": step_seconds(model, q, u, options, True),
            },
            rounds,
        )
        row = " | ".join(
            f"{1e6 * statistics.median(values):.1f} ({1e6 * min(values):.1f})"
            for values in times.values()
        )
        lines.append(f"| {len(points)} | {1e3 * built:.1f} | {row} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    print(grasp(rounds), end="\n\n")
    print(growth("Ellipsoid", ellipsoid, 0.06, rounds), end="\n\n")
    print(growth("Cube", cube, 0.05, rounds))


if __name__ == "__main__":
    main()
