"""A campaign of random second-order motions: that no step hands on a NaN or fails without an explanation.

    python tests/soak/motions.py --steps 1000000 --seed 1 --output failed.jsonl

Scenes are those of piles.py, with velocities, restitution and caps on recovery. A step that is "infeasible", because
depths contradict each other, is right to be; every other status, a NaN, and a speed that nothing here can have count as
failures, and the exit status is 1 if there was any.
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
from piles import commands, scene, starts

import qdsim

_STEPS = 60
_WIDE = 1e4  # m/s, faster than anything that falls here
# rad: a body that turns further in a step is no longer followed.
_TURN = 3.0


def options_of(rng: np.random.Generator, quasi: qdsim.Options) -> qdsim.DynamicOptions:
    """The scene's options, for motion."""
    return qdsim.DynamicOptions(
        h=min(quasi.h, 0.05),
        friction=quasi.friction,
        rays=quasi.rays,
        kappa=quasi.kappa,
        margin=quasi.margin,
        restitution=float(rng.choice([0.0, 0.0, rng.uniform(0, 1)])),
        recovery_speed=None if rng.random() < 0.5 else float(10.0 ** rng.uniform(-2, 1)),
        infeasible="soften" if rng.random() < 0.3 else "error",
    )


def spins(model: qdsim.Model, step: qdsim.DynamicStep) -> float:
    """The fastest turn of a free body, rad/s."""
    free = 6 * ((model.nv - model.nu) // 6)
    turns = step.v_next[:free].reshape(-1, 6)[:, 3:]
    return float(np.abs(turns).max(initial=0.0))


def verdict(step: qdsim.DynamicStep) -> str:
    """What is wrong with a step, or nothing."""
    numbers = (step.q_next, step.v_next, step.contacts["force"], step.limit_force)
    if not all(np.all(np.isfinite(x)) for x in numbers):
        return "nan"
    if np.abs(step.v_next).max(initial=0.0) > _WIDE:
        return "fast"
    return ""


def campaign(seed: int, steps: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what became of each step ("" where all is well), and how to repeat it."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < steps:
        xml, quasi, size = scene(rng)
        model, options = qdsim.load(xml), options_of(rng, quasi)
        u = commands(rng, model, size, _STEPS)
        for k, q in enumerate(starts(rng, model)):
            v = np.sqrt(9.81 * size) * rng.normal(size=model.nv)
            warm = None
            for t in range(_STEPS):
                made += 1
                how = {"xml": xml, "q": q.tolist(), "v": v.tolist(), "u": u[k, t].tolist()}
                how["options"] = {n: x for n, x in options._values().items() if n != "held"}
                try:
                    s = qdsim.step_dynamic(model, q, v, u[k, t], options, warm_start=warm)
                except qdsim.SolverError as error:
                    yield error.info.status, how
                    break
                yield verdict(s), how
                if spins(model, s) * options.h > _TURN:
                    break
                q, v, warm = s.q_next, s.v_next, s if k % 2 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=None)
    wanted = parser.parse_args()
    tally: collections.Counter[str] = collections.Counter()
    made, started = 0, time.monotonic()
    for said, how in campaign(wanted.seed, wanted.steps):
        made += 1
        if not said:
            continue
        tally[said] += 1
        if wanted.output:
            with wanted.output.open("a") as file:
                file.write(json.dumps({"status": said, **how}) + "\n")
    print(
        f"{made} steps in {time.monotonic() - started:.0f} s, seed {wanted.seed}; not good: {dict(tally)}"
    )
    return int(any(status != "infeasible" for status in tally))


if __name__ == "__main__":
    sys.exit(main())
