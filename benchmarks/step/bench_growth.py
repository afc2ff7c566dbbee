"""Time and memory of a step as scenes grow: separate objects, heaps, and the large published systems.

- `alone`: 1 to 400 boxes on a floor, half a metre apart, so that each is an island. The exponent is fitted to the
  times from 10 boxes on.
- `heap`: boxes in staggered layers, all in one island.
- `mj_step`: MuJoCo's step of the same scene at 2 ms from the same state, in a loop in C, averaged over 20 steps. Its
  solver starts warm; that of qdsim always starts cold.

Times are minima over rounds in which the contenders take turns. One thread.
"""

from __future__ import annotations

import argparse
import math
import time

import mujoco
import mujoco.rollout
import numpy as np

import qdsim
from qdsim import _core, systems

COUNTS = (1, 3, 10, 30, 100, 200, 400)
HEAPS = (10, 20, 40, 80, 160)
PUBLISHED = ("block_stacking", "carrots", "rope")
OPTIONS = qdsim.Options(h=0.05, margin=0.01)
SCENE = """<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><worldbody>
<geom type="plane" size="99 99 1"/>{}</worldbody></mujoco>"""
BOX = '<body pos="{} {} {}"><freejoint/><geom type="box" size=".05 .05 .05" density="400"/></body>'


def alone(count: int) -> str:
    side = math.ceil(math.sqrt(count))
    bodies = [BOX.format(0.5 * (i % side), 0.5 * (i // side), 0.0499) for i in range(count)]
    return SCENE.format("".join(bodies))


def heap(count: int) -> str:
    rng = np.random.default_rng(0)
    side = math.ceil(math.sqrt(count / 3))
    bodies = []
    for i in range(count):
        layer, place = divmod(i, side * side)
        x, y = np.array([place % side, place // side]) * 0.105 + 0.05 * (layer % 2)
        x, y = x + rng.uniform(-2e-3, 2e-3), y + rng.uniform(-2e-3, 2e-3)
        bodies.append(BOX.format(x, y, 0.05 + 0.1 * layer - 1e-4 * (layer + 1)))
    return SCENE.format("".join(bodies))


def seconds(call, least: float) -> float:
    """Return the seconds per call; call(repeat) measures its own mean, in a loop of about `least` seconds."""
    once = call(1)
    return call(max(1, int(least / max(once, 1e-7))))


def mujoco_seconds(text: str):
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)

    def run(repeat: int) -> float:
        start = time.perf_counter()
        mujoco.rollout.rollout(model, data, state, nstep=20)
        return (time.perf_counter() - start) / 20

    return run


def measure(model, q, u, options, rounds, text=None, derivative=True):
    """Return minima of exact step, smoothed step, exact linearize and mj_step, and numbers of contacts and bytes."""
    smoothed = options.replace(kappa=1000.0)
    contenders = [
        lambda n: _core._step_benchmark(model, q, u, options, n, False),
        lambda n: _core._step_benchmark(model, q, u, smoothed, n, False),
        lambda n: _core._step_benchmark(model, q, u, options, n, True),
    ]
    if not derivative:
        contenders.pop()
    if text is not None:
        contenders.append(mujoco_seconds(text))
    contacts = len(qdsim.step(model, q, u, options).contacts)
    size = _core._workspace_bytes(model, q, u, options, False)
    best = [math.inf] * len(contenders)
    for _ in range(rounds):
        for i, call in enumerate(contenders):
            best[i] = min(best[i], seconds(call, 0.02))
    if not derivative:
        best.insert(2, math.nan)
    if derivative:
        size = max(size, _core._workspace_bytes(model, q, u, options, True))
    return best, contacts, size


def table(title: str, names: list[str]) -> None:
    print(f"## {title}\n")
    head = [
        *names,
        "DOFs",
        "contacts",
        "step ms",
        "smoothed ms",
        "linearize ms",
        "mj_step ms",
        "MB",
    ]
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join(["---"] + ["---:"] * (len(head) - 1)) + " |")


def row(name: str, model, best, contacts: int, size: int) -> None:
    cells = [f"{1e3 * t:.3g}" if math.isfinite(t) else "" for t in best]
    print(
        f"| {name} | {model.nv} | {contacts} | {' | '.join(cells)} | {size / 1e6:.2f} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small numbers only")
    arguments = parser.parse_args()
    rounds = arguments.rounds

    def kept(counts: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for n in counts if not arguments.quick or n <= 30)

    table("Objects that stand alone", ["objects"])
    times = {}
    for count in kept(COUNTS):
        text = alone(count)
        model = qdsim.load(text)
        q, u = np.array(model.default_q), np.zeros(0)
        best, contacts, size = measure(model, q, u, OPTIONS, rounds, text, count <= 200)
        times[count] = best
        row(str(count), model, best, contacts, size)
    numbers = [n for n in times if n >= 10]
    if len(numbers) > 2:
        for index, name in enumerate(("step", "smoothed step")):
            slope = np.polyfit(np.log(numbers), np.log([times[n][index] for n in numbers]), 1)[0]
            print(f"\nExponent of the {name}'s time in the number of objects: {slope:.2f}.")

    print()
    table("Heaps, one island", ["boxes"])
    for count in kept(HEAPS):
        text = heap(count)
        model = qdsim.load(text)
        q, u = np.array(model.default_q), np.zeros(0)
        best, contacts, size = measure(model, q, u, OPTIONS, rounds, text)
        row(str(count), model, best, contacts, size)

    print()
    table("Published systems at their default configuration", ["system"])
    for name in PUBLISHED:
        system = systems.load(name)
        q = np.array(system.model.default_q)
        u = system.model.command_from(q)
        best, contacts, size = measure(system.model, q, u, system.options, rounds)
        row(name, system.model, [*best, math.nan], contacts, size)


if __name__ == "__main__":
    main()
