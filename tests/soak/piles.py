"""A campaign of random piles, falling and at rest: how many steps are not solved, and what they are called.

    python tests/soak/piles.py --steps 200000 --seed 1 --output failed.jsonl

Spheres, boxes, cylinders, capsules and ellipsoids fall into a tray or onto a plane, some pushed about by a
driven ball, with every contact dimension, cones and pyramids, exact and smoothed. Steps that raise are written
to the output, one JSON object a line, ready to be looked at. The count by status is printed at the end.

Where only depths at the start contradict each other, "infeasible" is the right answer; every other status is a
failure of the solver, and the exit status is 1 if there was any.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qdsim

Array = npt.NDArray[np.float64]

_KINDS = ("sphere", "box", "cylinder", "capsule", "ellipsoid")
_SAMPLES = 4
_STEPS = 120


def _row(values: Any) -> str:
    return " ".join(f"{value!r}" for value in np.asarray(values, float).tolist())


def _wall(centre: Array, half: Array) -> str:
    return f'<geom type="box" pos="{_row(centre)}" size="{_row(half)}"/>'


def _object(rng: np.random.Generator, name: str, place: Array, size: float, extra: str) -> str:
    kind = str(rng.choice(_KINDS))
    shape = _row(size * rng.uniform(0.4, 1.0, 3))
    quat = rng.standard_normal(4)
    if rng.random() < 0.2:  # as people write them: flush with the ground
        quat = np.array([1.0, 0.0, 0.0, 0.0])
    density = 10.0 ** rng.uniform(2.5, 3.5)
    friction = _row([10.0 ** rng.uniform(-1, 0.18), 0.1 * size, 0.01 * size])
    return (
        f'<body name="{name}" pos="{_row(place)}" quat="{_row(quat)}"><freejoint/><geom type="{kind}" '
        f'size="{shape}" density="{density!r}" friction="{friction}" {extra}/></body>'
    )


def scene(rng: np.random.Generator) -> tuple[str, qdsim.Options, float]:
    """Return the text of a random pile, how it is stepped, and how big its objects are (m)."""
    size = 10.0 ** rng.uniform(-2, -0.7)
    count = int(rng.integers(1, 9)) if rng.random() < 0.9 else int(rng.integers(9, 25))
    extra = f'condim="{rng.choice([1, 3, 4, 6])}"'
    room, thick = 1.5 * size * (1.0 + np.sqrt(count)), 0.2 * size
    parts = [
        f'<geom type="plane" size="5 5 1" friction="{rng.uniform(0.1, 1.5)!r} .01 .001" {extra}/>'
    ]
    if rng.random() < 0.6:
        for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1)):
            half = np.array([room, room, 4.0 * size])
            half[axis] = thick
            centre = np.array([0.0, 0.0, 4.0 * size])
            centre[axis] = sign * room
            parts.append(_wall(centre, half))
    layers = 0.0
    for i in range(count):
        layers += 2.3 * size
        place = np.append(rng.uniform(-0.5, 0.5, 2) * (room - 1.5 * size), layers)
        parts.append(_object(rng, f"o{i}", place, size, extra))
    actuators = ""
    if rng.random() < 0.4:
        stiffness = f'kp="{10.0 ** rng.uniform(2, 4)!r}"'
        parts.append(
            f'<body name="p" pos="{_row([-2.0 * room, 0, 0.6 * size])}"><joint name="px" type="slide" axis="1 0 0"/>'
            f'<joint name="py" type="slide" axis="0 1 0"/><geom type="sphere" size="{0.5 * size!r}" mass="1" {extra}/></body>'
        )
        actuators = f'<position joint="px" {stiffness}/><position joint="py" {stiffness}/>'
    xml = (
        f'<mujoco><option gravity="0 0 -9.81"/><worldbody>{"".join(parts)}</worldbody>'
        f"<actuator>{actuators}</actuator></mujoco>"
    )
    smoothed = rng.random() < 0.25
    options = qdsim.Options(
        h=float(10.0 ** rng.uniform(-3.3, -1)),
        friction=str(rng.choice(["cone", "cone", "pyramid"])),
        rays=int(rng.integers(3, 9)),
        kappa=float(10.0 ** rng.uniform(2, 6)) if smoothed else None,
        margin=float(size * 10.0 ** rng.uniform(-1.5, 0)),
    )
    return xml, options, size


def commands(rng: np.random.Generator, model: qdsim.Model, size: float, steps: int) -> Array:
    """Return random walks of the driven ball, (samples, steps, nu)."""
    moves = 0.1 * size * rng.standard_normal((_SAMPLES, steps, model.nu))
    start = np.zeros((_SAMPLES, 1, model.nu))
    if model.nu:
        start[..., 0] = 2.0 * size
    walk: Array = start + np.cumsum(moves, axis=1)
    return walk


def starts(rng: np.random.Generator, model: qdsim.Model) -> Array:
    """Return random turns of the objects, (samples, nq)."""
    moves = 0.3 * rng.standard_normal((_SAMPLES, model.nv))
    moves.reshape(_SAMPLES, -1)[:, : 6 * (model.nv // 6)].reshape(_SAMPLES, -1, 6)[..., :3] *= 0.0
    if model.nu:
        moves[:, -model.nu :] = 0.0
    q = [model.integrate(model.default_q, move) for move in moves]
    q[0] = np.array(model.default_q)
    return np.array(q)


def campaign(seed: int, steps: int) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (steps made, the step that was not solved or None) until that many steps were made."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < steps:
        xml, options, size = scene(rng)
        model = qdsim.load(xml)
        u = commands(rng, model, size, _STEPS)
        result = qdsim.rollout(model, starts(rng, model), u, options, threads=1, errors="mark")
        count = int(result.steps_done.sum())
        made += max(count, 1)
        yield count, None
        for k in np.flatnonzero(result.status):
            at = int(result.steps_done[k])
            step = {
                "status": str(result.status_names[k]),
                "xml": xml,
                "q": result.q[k, at].tolist(),
                "u": u[k, at].tolist(),
                "options": {
                    name: getattr(options, name)
                    for name in ("h", "friction", "rays", "kappa", "margin")
                },
            }
            yield 1, step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=None)
    wanted = parser.parse_args()
    tally: collections.Counter[str] = collections.Counter()
    made, started = 0, time.monotonic()
    for count, failed in campaign(wanted.seed, wanted.steps):
        made += count
        if failed is None:
            continue
        tally[failed["status"]] += 1
        if wanted.output:
            with wanted.output.open("a") as file:
                file.write(json.dumps(failed) + "\n")
    print(
        f"{made} steps in {time.monotonic() - started:.0f} s, seed {wanted.seed}; not solved: {dict(tally)}"
    )
    return int(any(status != "infeasible" for status in tally))


if __name__ == "__main__":
    sys.exit(main())
