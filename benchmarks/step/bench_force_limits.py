"""Grasps with limits of their actuators compared with the same grasps without limits: ratios of the times of a step.

Grasps are those of bench_grasps.py. All actuators have the same limit: ten times the largest force that holds the
grasp without limits (slack), or a limit that a fifth, a half or four fifths of the loaded actuators (with at least a
thousandth of the largest force) would exceed. Then six steps are made with the limits; a grasp is left out if nothing
determines how the object moves. At rest (the held command) and in motion (four commands around it, standard deviation
0.03 rad); cold, and warm from the step of a command that is nearer to the held one by a tenth. Exact cones, and
smoothed with kappa = 100. Contenders take turns, and the fastest of all rounds counts. The table has means over
commands, then geometric means and the largest value over grasps. Factorisations and iterations of the cone solver are
counts that do not depend on the machine: means over commands and grasps, and the largest number of one step.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from bench_allegro import MARGIN, close_hand
from bench_grasps import NAMES, grasp
from timing import race

import qdsim
from qdsim import _core, systems

Array = np.ndarray
SHARES = (0.0, 0.2, 0.5, 0.8)
SYSTEMS = ["allegro_sphere", *NAMES]
PULLS = 1e-3  # of the largest force
ROUNDS, REPEAT = 12, 5


class Case(NamedTuple):
    model: qdsim.Model
    q: Array
    hold: Array
    commands: list[Array]


class Counts(NamedTuple):
    factors: int
    iterations: int


def cases(name: str, options: qdsim.Options) -> Iterator[tuple[str, Case]]:
    """Yield the situations of a system, each with the share of actuators at their limits."""
    free = options.replace(force_limits=False)
    if name == "allegro_sphere":
        model = systems.load(name).model
        q, hold = close_hand(model, free)
    else:
        model, q, hold = grasp(name, free)
    endless = model.with_parameters(actuator_force_range=np.tile([-1e6, 1e6], (model.nu, 1)))
    force = np.abs(qdsim.step(endless, q, hold, free).actuator_force)
    force = force[force > PULLS * force.max()]
    rng = np.random.default_rng(0)
    for share in SHARES:
        most = 1.0001 * np.quantile(force, 1.0 - share) if share > 0.0 else 10.0 * force.max()
        limited = model.with_parameters(actuator_force_range=np.tile([-most, most], (model.nu, 1)))
        at = np.array(q)
        try:
            for _ in range(6):
                at = np.array(qdsim.step(limited, at, hold, options).q_next)
        except qdsim.SolverError:
            continue
        moved = [hold + 0.03 * rng.standard_normal(model.nu) for _ in range(4)]
        yield f"{share} at rest", Case(limited, at, hold, [hold])
        yield f"{share} in motion", Case(limited, at, hold, moved)


def ratios(case: Case, options: qdsim.Options) -> tuple[dict[str, float], dict[str, list[Counts]]]:
    """Return the time with limits over the time without, cold and warm, and what each solve took."""
    total = dict.fromkeys(("cold", "warm", "cold free", "warm free"), 0.0)
    effort: dict[str, list[Counts]] = {name: [] for name in total}
    for u in case.commands:
        calls, counts = {}, {}
        for kind, chosen in (("", options), (" free", options.replace(force_limits=False))):
            nearby = case.hold + 0.9 * (u - case.hold)
            try:
                before = qdsim.step(case.model, case.q, nearby, chosen)
                for start in (None, before):
                    name = ("cold" if start is None else "warm") + kind
                    info = qdsim.step(case.model, case.q, u, chosen, warm_start=start).info
                    counts[name] = Counts(info.factorizations, info.iterations)
                    calls[name] = lambda chosen=chosen, start=start, u=u: _core._step_benchmark(
                        case.model, case.q, u, chosen, REPEAT, False, start
                    )
            except qdsim.SolverError:
                break
        if len(calls) == len(total):
            for name, times in race(calls, ROUNDS).items():
                total[name] += min(times)
                effort[name].append(counts[name])
    return {name: total[name] / total[name + " free"] for name in ("cold", "warm")}, effort


def print_ratios(found: dict[tuple[str, str], list[float]], columns: list[str]) -> None:
    print("Time of a step with force limits / without: geometric mean (largest) over grasps\n")
    print("| share of actuators at their limits | grasps | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 2) + "|")
    for title in dict.fromkeys(title for title, _ in found):
        each = [found[title, column] for column in columns]
        cells = [f"{statistics.geometric_mean(r):.2f} ({max(r):.1f})" for r in each]
        print(f"| {title} | {len(each[0])} | " + " | ".join(cells) + " |")


def print_counts(effort: dict[tuple[str, str], list[Counts]], columns: list[str]) -> None:
    print("\nFactors, iterations (most factors) of a step: without force limits → with them\n")
    print("| share of actuators at their limits | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 1) + "|")
    for title in dict.fromkeys(title for title, _ in effort):
        cells = []
        for column in columns:
            both = (effort[title, column + " free"], effort[title, column])
            cells.append(" → ".join(map(summary, both)))
        print(f"| {title} | " + " | ".join(cells) + " |")


def summary(steps: list[Counts]) -> str:
    factors = [step.factors for step in steps]
    iterations = statistics.fmean(step.iterations for step in steps)
    return f"{statistics.fmean(factors):.1f}, {iterations:.1f} ({max(factors)})"


def main() -> None:
    exact = qdsim.Options(margin=MARGIN)
    found: dict[tuple[str, str], list[float]] = {}
    effort: dict[tuple[str, str], list[Counts]] = {}
    for name in SYSTEMS:
        for title, case in cases(name, exact):
            for kind, options in (("exact", exact), ("smoothed", exact.replace(kappa=100.0))):
                times, counts = ratios(case, options)
                for start, ratio in times.items():
                    found.setdefault((title, f"{kind}, {start}"), []).append(ratio)
                for start, steps in counts.items():
                    effort.setdefault((title, f"{kind}, {start}"), []).extend(steps)
    columns = [f"{kind}, {start}" for kind in ("exact", "smoothed") for start in ("cold", "warm")]
    print_ratios(found, columns)
    print_counts(effort, columns)


if __name__ == "__main__":
    main()
