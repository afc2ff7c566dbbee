"""Time of a local model by each scheme, compared with one exact linearisation and with the plain batch.

Randomized schemes take 100 samples around a grasp. "Bare batch" is `linearize_batch` (`step_batch` for zeroth order)
of the same samples; the remaining time is that of drawing, averaging and standard errors. "Trajectory" is one call
for 20 points, with the time per point. Contenders take turns in every round; the table gives medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import qdsim
from qdsim import smoothing, systems

ROUNDS = 15
SAMPLES = 100
POINTS = 20
STD = 0.05
STARTS = {
    "planar_pushing": np.array([0.0, 0.5, 0.0, 0.0, -0.1]),
    "planar_hand": np.array([0.0, 0.35, 0.0, -0.880505, -0.605922, 0.880505, 0.605922]),
}


def contenders(name: str, threads: int) -> dict[str, Callable[[], object]]:
    model = systems.load(name).model
    q = STARTS.get(name, model.default_q)
    u = model.command_from(q)
    options = qdsim.Options(margin=0.05)
    rng = np.random.default_rng(0)
    many_u = u + STD * rng.standard_normal((SAMPLES, model.nu))
    line = np.stack([q] * POINTS)
    common = {"threads": threads}
    schemes = {
        "exact": smoothing.Exact(),
        "analytic, kappa = 100": smoothing.Analytic(100.0),
        "first order": smoothing.Randomized(STD, SAMPLES),
        "first order, q too": smoothing.Randomized(STD, SAMPLES, sample_q=0.002),
        "zeroth order": smoothing.Randomized(STD, SAMPLES, "zeroth"),
        "first order, Sobol": smoothing.Randomized(STD, SAMPLES, sobol=True),
    }
    calls: dict[str, Callable[[], object]] = {
        "`linearize`": lambda: qdsim.linearize(model, q, u, options),
        "bare batch, derivatives": lambda: qdsim.linearize_batch(
            model, q, many_u, options, contacts=False, errors="mark", **common
        ),
        "bare batch, steps": lambda: qdsim.step_batch(
            model, q, many_u, options, contacts=False, errors="mark", **common
        ),
    }
    for label, scheme in schemes.items():
        calls[label] = lambda scheme=scheme: scheme.linearize(model, q, u, options, **common)
        calls[f"{label}, trajectory"] = lambda scheme=scheme: scheme.linearize(
            model, line, u, options, **common
        )
    return calls


def table(name: str, threads: int, rounds: int) -> str:
    calls = contenders(name, threads)
    times: dict[str, list[float]] = {label: [] for label in calls}
    for round_index in range(rounds + 1):
        for label, call in calls.items():
            start = time.perf_counter()
            call()
            taken = time.perf_counter() - start
            if round_index > 0:  # the first round warms up
                times[label].append(taken / (POINTS if label.endswith("trajectory") else 1))
    median = {label: statistics.median(values) for label, values in times.items()}
    lines = [
        f"{name}, {threads} thread{'s' if threads > 1 else ''}, {SAMPLES} samples",
        "",
        "| local model | us a point | / `linearize` |",
        "| --- | --- | --- |",
    ]
    one = median["`linearize`"]
    lines += [f"| {k} | {1e6 * v:,.0f} | {v / one:.1f} |" for k, v in median.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for name in ("planar_pushing", "planar_hand", "allegro_sphere"):
        for threads in sorted({1, cores or 1}):
            print(table(name, threads, arguments.rounds), end="\n\n")


if __name__ == "__main__":
    main()
