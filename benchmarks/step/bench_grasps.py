"""Grasps of the published systems: a step and its derivatives beside MuJoCo's, as ratios of one run.

The Allegro hand around a ball is that of bench_allegro.py. The other systems go from their published
starts by a short motion: commands that stay ahead of the joints by a random constant angle (standard
deviation 0.02 rad) for 20 steps, then 10 steps at the last command; of twelve such motions, the one
that ends with the most loaded contacts. Two situations each: in motion (eight commands around the held
one, standard deviation 0.03 rad; means over the eight) and at rest (the held command). Warm: with the step
before as a start, that of a command a tenth nearer to the held one; at rest the step itself.

A second table has loops from there, every step warm-started by the one before: at rest (the held
command, 40 steps), smooth (joints' commands on sines of 0.03 rad, 40 steps a period) and wild (a
new random command at every step, standard deviation 0.03 rad), up to a step without a solution;
qdsim alone, mean over the steps of the fastest of five calls.

Both sides see pairs up to 0.01 m, and joint limits. MuJoCo's twin is bench_allegro.py's: the same file,
pyramids, position servos, 2 ms; contacts are counted on both sides, detected and loaded. Contenders take
turns inside every round, one thread; the time of a contender is the mean over commands of the fastest
round (others share the machine), ratios are those of such times.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import mujoco
import numpy as np
from bench_allegro import MARGIN, close_hand, mean_seconds, mujoco_twin, settle
from timing import race

import qdsim
from qdsim import _core, systems

Array = np.ndarray
NAMES = [
    "allegro_pen",
    "allegro_plate",
    "allegro_book",
    "allegro_door",
    "iiwa_bimanual_box",
    "iiwa_bimanual_cylinder",
]
ROUNDS = 40
ROLLOUT = 50  # MuJoCo's steps in a row: what calling them costs is shared by as many
REPEAT = 10
LOOP = 40


def loaded(step: qdsim.Step) -> int:
    return int((step.contacts["force"][:, 0] > 1e-6).sum())


def grasp(name: str, options: qdsim.Options) -> tuple[qdsim.Model, Array, Array]:
    """Return a system, a configuration in a grasp, and the command that holds it."""
    system = systems.load(name)
    model = system.model
    best: tuple[int, Array, Array] | None = None
    for seed in range(12):
        ahead = 0.02 * np.random.default_rng(seed).standard_normal(model.nu)
        q, u = np.array(system.start.q), np.zeros(model.nu)
        try:
            for index in range(30):
                u = model.command_from(q) + ahead if index < 20 else u
                step = qdsim.step(model, q, u, options)
                q = np.array(step.q_next)
        except qdsim.SolverError:
            continue
        if best is None or loaded(step) > best[0]:
            best = loaded(step), q, u
    if best is None:
        raise ValueError(f"{name}: no motion ended")
    return model, best[1], best[2]


def contenders(
    name: str,
    model: qdsim.Model,
    q: Array,
    hold: Array,
    commands: list[Array],
    options: qdsim.Options,
) -> tuple[dict[str, Callable[[], float]], str]:
    """Return calls named contender/command, and the counts of contacts."""
    twin = mujoco_twin(MARGIN, name)
    datas, states = zip(*(settle(twin, q, u) for u in commands), strict=True)
    A, B = np.zeros((2 * twin.nv, 2 * twin.nv)), np.zeros((2 * twin.nv, twin.nu))
    calls: dict[str, Callable[[], float]] = {}

    def add(index: int, data: mujoco.MjData, state: Array, u: Array) -> None:
        control = np.tile(u, (1, ROLLOUT, 1))

        def rollout() -> None:
            mujoco.rollout.rollout(twin, [data], initial_state=state[None], control=control)

        def transition() -> None:
            mujoco.mjd_transitionFD(twin, data, 1e-6, True, A, B, None, None)

        def core(friction: str, derivatives: bool, warm: bool = False) -> Callable[[], float]:
            chosen = options.replace(friction=friction)
            start = qdsim.step(model, q, hold + 0.9 * (u - hold), chosen) if warm else None
            return lambda: _core._step_benchmark(model, q, u, chosen, REPEAT, derivatives, start)

        calls[f"mj_step/{index}"] = lambda: mean_seconds([rollout], 1) / ROLLOUT
        calls[f"transition/{index}"] = lambda: mean_seconds([transition], 1)
        calls[f"cone/{index}"] = core("cone", False)
        calls[f"pyramid/{index}"] = core("pyramid", False)
        calls[f"linearize/{index}"] = core("cone", True)
        calls[f"warm/{index}"] = core("cone", False, warm=True)
        calls[f"warm linearize/{index}"] = core("cone", True, warm=True)

    for index, each in enumerate(zip(datas, states, commands, strict=True)):
        add(index, *each)
    seen = [qdsim.step(model, q, u, options) for u in commands]
    counts = (
        f"{statistics.fmean(len(s.contacts) for s in seen):.0f} "
        f"({statistics.fmean(map(loaded, seen)):.0f}) "
        f"| {statistics.median(d.ncon for d in datas):.0f} "
        f"({statistics.median((d.contact.efc_address >= 0).sum() for d in datas):.0f})"
    )
    return calls, counts


def fastest(calls: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    times = race(calls, rounds)
    names = dict.fromkeys(name.split("/")[0] for name in times)
    return {
        name: statistics.fmean(min(v) for key, v in times.items() if key.startswith(name + "/"))
        for name in names
    }


def motion(
    model: qdsim.Model, q: Array, hold: Array, options: qdsim.Options, kind: str
) -> list[tuple[Array, Array, qdsim.Step]]:
    """Return states, commands and the steps before them, along a loop."""
    rng = np.random.default_rng(0)
    phase = 2 * np.pi * rng.random(model.nu)
    before: qdsim.Step | None = None
    found = []
    for index in range(LOOP):
        u = hold
        if kind == "smooth":
            u = hold + 0.03 * (np.sin(2 * np.pi * index / LOOP + phase) - np.sin(phase))
        elif kind == "wild":
            u = hold + 0.03 * rng.standard_normal(model.nu)
        earlier = before
        try:
            before = qdsim.step(model, q, u, options, warm_start=earlier)
        except qdsim.SolverError:  # wedged
            break
        if earlier is not None:
            found.append((q, u, earlier))
        q = np.array(before.q_next)
    return found


def loops(grasps: dict[str, tuple[qdsim.Model, Array, Array]], options: qdsim.Options) -> None:
    print(
        "| loop | | exact cone us: cold | warm | factors: cold | warm "
        "| kappa = 100 us: cold | warm | factors: cold | warm |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (model, q, hold) in grasps.items():
        for kind in ("at rest", "smooth", "wild"):
            cells = []
            for chosen in (options, options.replace(kappa=100.0)):
                states = motion(model, q, hold, chosen, kind)
                for read in (seconds, factors):
                    for warm in (False, True):
                        each = [
                            read(model, x, u, chosen, b if warm else None) for x, u, b in states
                        ]
                        cells.append(statistics.fmean(each) if each else float("nan"))
            print(
                f"| {name} | {kind} | " + " | ".join(f"{c:.1f}" for c in cells) + " |", flush=True
            )


def seconds(
    model: qdsim.Model, q: Array, u: Array, options: qdsim.Options, start: qdsim.Step | None
) -> float:
    return 1e6 * min(_core._step_benchmark(model, q, u, options, 1, False, start) for _ in range(5))


def factors(
    model: qdsim.Model, q: Array, u: Array, options: qdsim.Options, start: qdsim.Step | None
) -> float:
    return qdsim.step(model, q, u, options, warm_start=start).info.factorizations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    options = qdsim.Options(margin=MARGIN)
    ball = systems.load("allegro_sphere").model
    grasps = {"allegro_sphere": (ball, *close_hand(ball, options))}
    grasps |= {name: grasp(name, options) for name in NAMES}
    print(
        "Contacts: detected (in brackets: under load). Numbers in motion are means over eight commands.\n"
    )
    print(
        "| grasp | | contacts | MuJoCo's | `mj_step` us | exact cone / it | warm / it | pyramid / it "
        "| `mjd_transitionFD` us | it / `qd_linearize`, exact cone | warm |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (model, q, hold) in grasps.items():
        rng = np.random.default_rng(0)
        moved = [hold + 0.03 * rng.standard_normal(model.nu) for _ in range(8)]
        for title, commands in (("in motion", moved), ("at rest", [hold])):
            calls, counts = contenders(name, model, q, hold, commands, options)
            t = fastest(calls, rounds)
            print(
                f"| {name} | {title} | {counts} | {1e6 * t['mj_step']:.1f} "
                f"| {t['cone'] / t['mj_step']:.2f} | {t['warm'] / t['mj_step']:.2f} "
                f"| {t['pyramid'] / t['mj_step']:.2f} "
                f"| {1e6 * t['transition']:.0f} | {t['transition'] / t['linearize']:.1f} "
                f"| {t['transition'] / t['warm linearize']:.1f} |",
                flush=True,
            )
    print()
    loops(grasps, options)


if __name__ == "__main__":
    main()
