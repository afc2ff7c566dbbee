"""Brazil nut: which share of the small disks is below the large one, shake after shake.

`qdsim.systems.load_dynamic("brazil_nut")`: 269 disks of 0.5 m and one of 1.5 m at the bottom of a box that moves by
0.75 m sin(2 pi t / 1 s), as Anitescu and Hart 2003 did (their sizes and shaking were not published): convex law at
steps of 100, 20 and 5 ms, seeds of the initial places; true Coulomb at 100 ms, the best of five convex programs a step.
After each shake the share of the small disks whose centres are below the large one's. CPU times of one thread.

    python benchmarks/bench_brazil_nut.py [--seeds 10] [--shakes 50] [--figure docs/images/brazil_nut.png]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import qdsim
from qdsim import systems
from qdsim.systems.heaps import shaking

AMPLITUDE, PERIOD = 0.75, 1.0
RUNS = ((0.1, "convex", 10), (0.02, "convex", 10), (0.005, "convex", 3), (0.1, "coulomb", 3))
"""Step s, law, seeds: fewer where a motion takes long."""
PROGRAMS = 5
"""Convex programs of a step of the true law."""


def ranks(h: float, law: str, seed: int, shakes: int) -> tuple[np.ndarray, float]:
    """The share below the large disk before and after each shake; CPU seconds per step."""
    system = systems.load_dynamic("brazil_nut", seed=seed)
    model = system.model
    o = system.options.replace(h=h, law=law, stop_after=PROGRAMS if law == "coulomb" else None)
    tau = shaking(model, AMPLITUDE, PERIOD, h)
    bodies = [k for k, name in enumerate(model.body_names) if name.startswith(("nut", "grain"))]
    q, v, found = system.q, system.v, []
    steps = round(PERIOD / h)
    start = time.process_time()
    for k in range(shakes * steps + 1):
        if k % steps == 0:
            z = model.body_poses(q)[0][bodies, 2]
            found.append((z[1:] < z[0]).mean())
        step = qdsim.step_dynamic(model, q, v, [], o, tau=tau(k * h, q, v))
        q, v = step.q_next, step.v_next
    return np.array(found), (time.process_time() - start) / (shakes * steps + 1)


def draw(path: str, curves: dict[tuple[float, str], np.ndarray]) -> None:
    """Medians over the seeds, and between which they lie."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), dpi=100, layout="constrained")
    ax = figure.add_subplot()
    for (h, law), found in curves.items():
        shakes = np.arange(found.shape[1])
        line = ax.plot(
            shakes, np.median(found, 0), label=f"{law}, {1e3 * h:g} ms ({len(found)} seeds)"
        )
        ax.fill_between(
            shakes, found.min(0), found.max(0), alpha=0.15, color=line[0].get_color(), linewidth=0
        )
    ax.set(xlabel="shakes", ylabel="share of small disks below the large one", ylim=(0, None))
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shakes", type=int, default=50)
    parser.add_argument("--figure")
    args = parser.parse_args()
    curves = {}
    print("Share of the small disks below the large one: median over seeds (least to most).\n")
    print("| law | h ms | seeds | ms per step | at first | after half | at last |")
    print("| --- | ---: | ---: | ---: | --- | --- | --- |")
    for h, law, most in RUNS:
        seeds = min(args.seeds, most)
        runs = [ranks(h, law, seed, args.shakes) for seed in range(seeds)]
        found = np.array([r for r, _ in runs])
        curves[h, law] = found
        each = 1e3 * float(np.median([t for _, t in runs]))
        cells = [
            f"{np.median(found[:, k]):.2f} ({found[:, k].min():.2f} to {found[:, k].max():.2f})"
            for k in (0, args.shakes // 2, args.shakes)
        ]
        print(f"| {law} | {1e3 * h:g} | {seeds} | {each:.1f} | {' | '.join(cells)} |", flush=True)
        if args.figure:
            draw(args.figure, curves)


if __name__ == "__main__":
    main()
