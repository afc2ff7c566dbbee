"""Brazil nut: the share of the small bodies that is below the large one, after each shake.

In the plane, `qdsim.systems.load_dynamic("brazil_nut")` has 269 disks of 0.5 m and one of 1.5 m at the bottom of a
box that moves by 0.75 m sin(2 pi t / 1 s), after Anitescu and Hart 2003 (who did not publish sizes and shaking). In
space, `"brazil_nut_3d"` has spheres of 0.05 m and one of 0.15 m, and moves by 0.05 m sin(2 pi t / 0.5 s). Laws are
the convex one and Coulomb's (the best of five convex programs per step); seeds give the initial positions. The share
is that of the small bodies whose centres are below the centre of the large one. CPU times of one thread.

    python benchmarks/step/bench_brazil_nut.py [--seeds 10] [--shakes 50] [--figure docs/images/brazil_nut.png]
                                          [--keep runs.npz [--kept]] [--laws convex coulomb] [--systems brazil_nut ...]

With --keep each finished run is saved in a file, and runs in the file are not made again. With --kept no run is made:
the table has the runs of the file, the figure those rows that have all seeds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import qdsim
from qdsim import systems
from qdsim.systems.heaps import shaking

SHAKING = {"brazil_nut": (0.75, 1.0), "brazil_nut_3d": (0.05, 0.5)}
"""Amplitude, m, and period, s."""
RUNS = [
    (system, h, law)
    for law in ("convex", "coulomb")
    for h in (0.1, 0.02, 0.005)
    for system in SHAKING
]
"""System, time step in s, law."""
PROGRAMS = 5
"""Number of convex programs per step under Coulomb's law."""


def ranks(name: str, h: float, law: str, seed: int, shakes: int) -> tuple[np.ndarray, float]:
    """Return the share below the large body before and after each shake, and CPU seconds per step."""
    system = systems.load_dynamic(name, seed=seed)
    model = system.model
    stop = PROGRAMS if law == "coulomb" else None
    o = system.options.replace(h=h, law=law, max_programs=stop, infeasible="soften")
    amplitude, period = SHAKING[name]
    tau = shaking(model, amplitude, period, h)
    bodies = [k for k, body in enumerate(model.body_names) if body.startswith(("nut", "grain"))]
    q, v, found = system.q, system.v, []
    steps = round(period / h)
    start = time.process_time()
    for k in range(shakes * steps + 1):
        if k % steps == 0:
            z = model.body_poses(q)[0][bodies, 2]
            found.append((z[1:] < z[0]).mean())
        step = qdsim.step_dynamic(model, q, v, [], o, tau=tau(k * h, q, v))
        q, v = step.q_next, step.v_next
    return np.array(found), (time.process_time() - start) / (shakes * steps + 1)


class Runs:
    """Runs, saved in a file if there is one: shares after each shake, then seconds per step. Each is made once."""

    def __init__(self, path: Path | None, kept: bool) -> None:
        self._path, self._kept = path, kept
        self._done = dict(np.load(path)) if path is not None and path.exists() else {}

    def get(self, name: str, h: float, law: str, seed: int, shakes: int) -> np.ndarray | None:
        """Return a run; None if only saved runs are wanted and this one is missing."""
        key = f"{name} {h:g} {law} {seed} {shakes}"
        if key not in self._done and not self._kept:
            found, each = ranks(name, h, law, seed, shakes)
            self._done[key] = np.append(found, each)
            if self._path is not None:
                np.savez(self._path, **self._done)
        return self._done.get(key)


def draw(path: str, curves: dict[tuple[str, float, str], np.ndarray]) -> None:
    """Draw the medians over seeds and their ranges."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6), dpi=100, layout="constrained")
    axes = figure.subplots(1, 2)
    for ax, system, title in zip(axes, SHAKING, ("disks in the plane", "spheres in space")):
        for (name, h, law), found in curves.items():
            if name != system:
                continue
            shakes = np.arange(found.shape[1])
            label = f"{law}, {1e3 * h:g} ms ({len(found)} seeds)"
            style = "--" if law == "coulomb" else "-"
            line = ax.plot(shakes, np.median(found, 0), style, label=label)
            colour = line[0].get_color()
            ax.fill_between(
                shakes, found.min(0), found.max(0), alpha=0.12, color=colour, linewidth=0
            )
        ax.set(xlabel="shakes", title=title, ylim=(0, None))
        ax.legend(frameon=False, fontsize=8)
    axes[0].set(ylabel="share of small bodies below the large one")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shakes", type=int, default=50)
    parser.add_argument("--figure")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--kept", action="store_true", help="make no run")
    parser.add_argument("--laws", nargs="+", default=["convex", "coulomb"])
    parser.add_argument("--systems", nargs="+", default=list(SHAKING))
    args = parser.parse_args()
    runs, curves = Runs(args.keep, args.kept), {}
    print(
        "Share of the small bodies below the large one: median over seeds (least to most), "
        f"{args.shakes} shakes.\n"
    )
    print("| system | law | h ms | seeds | ms per step | at first | after half | at last |")
    print("| --- | --- | ---: | ---: | ---: | --- | --- | --- |")
    for name, h, law in (r for r in RUNS if r[0] in args.systems and r[2] in args.laws):
        each_seed = (runs.get(name, h, law, seed, args.shakes) for seed in range(args.seeds))
        rows = np.array([run for run in each_seed if run is not None])
        if not len(rows):
            continue
        found, each = rows[:, :-1], 1e3 * float(np.median(rows[:, -1]))
        if len(found) == args.seeds:
            curves[name, h, law] = found
        cells = [
            f"{np.median(found[:, k]):.2f} ({found[:, k].min():.2f} to {found[:, k].max():.2f})"
            for k in (0, args.shakes // 2, args.shakes)
        ]
        print(
            f"| {name} | {law} | {1e3 * h:g} | {len(found)} | {each:.1f} | {' | '.join(cells)} |",
            flush=True,
        )
        if args.figure:
            draw(args.figure, curves)


if __name__ == "__main__":
    main()
