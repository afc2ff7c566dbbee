"""Two judges of the same plans: MuJoCo and the package's own second-order step, in open loop at 1 ms.

Plans are those of bench_transfer.py: the first task of each system, one plan for each seed; every segment begins in
its planned state. There are four judges: MuJoCo with stiff contacts, MuJoCo with its default contacts, and qdsim's
rigid contacts under the convex law and under Coulomb's law. *Arrived*: segments that end within the task's
tolerances. *Apart*: the distance between the object's poses under two judges at the end of a segment, in units of
these tolerances (the larger one of position and rotation): the median over segments, and the share of segments on
which the verdicts differ. A seed counts only if all four judges finish. The difference between qdsim's two laws is
due to friction, that between MuJoCo's two contacts is due to softness. CPU times are per simulated second.

    python benchmarks/planning/bench_judges.py [--seeds 3] [system ...]
"""

from __future__ import annotations

import argparse
import contextlib
import time

import numpy as np
from bench_transfer import (
    PLAN_LIMIT,
    RUN_LIMIT,
    TransferOptions,
    plan_of,
    world_of,
)
from runs import TooLong, head, limited

import qdsim
from qdsim import planning, systems
from qdsim.planning.execution.own_plant import judging_options

PLANS = (
    ("planar_pushing", "plane", "plan"),
    ("planar_hand", "plane", "plan"),
    ("iiwa_planar", "plane", "plan"),
    ("iiwa_box_push", "plane", "plan"),
    ("iiwa_bimanual_cylinder", "plane", "plan"),
    ("allegro_book", "published", "plan"),
    ("allegro_door", "damped", "plan"),
)
"""System, world and kind of plan, as in bench_transfer.py."""


def judges(options: TransferOptions):
    """Return options of the execution and the simulator for each judge, by name."""
    law = judging_options(options, None)
    return {
        "MuJoCo, stiff": (options, "mujoco"),
        "MuJoCo, default": (options.replace(contacts="default"), "mujoco"),
        "qdsim, convex": (options, law),
        "qdsim, Coulomb": (options, law.replace(law="coulomb", max_programs=20)),
    }


def run(task, plan, options: TransferOptions, simulator):
    """Return the final configurations of segments, and CPU seconds per simulated second; None if it takes too long."""
    begin = time.process_time()
    try:
        with limited(RUN_LIMIT):
            each = options.replace(carry_on=False)
            found = planning.transfer(plan, task, each, simulator=simulator)
    except (TooLong, qdsim.SolverError):
        return None
    simulated = sum(float(s.time[-1]) for s in found.segments)
    return [s.executed[-1] for s in found.segments], (time.process_time() - begin) / simulated


def apart(task, one, two) -> np.ndarray:
    """Compute the distances between the objects of two lists of configurations, in tolerances."""
    tolerance = np.array([task.position_tolerance, task.rotation_tolerance])
    return np.array(
        [(np.array(task.space.errors(a, b)) / tolerance).max() for a, b in zip(one, two)]
    )


def arrived(task, plan, ends) -> np.ndarray:
    goals = [segment.configurations[-1] for segment in plan.segments]
    return apart(task, ends, goals) <= 1.0


def compare(name: str, world: str, kind: str, seeds: int) -> None:
    task = next(iter(systems.load(name).tasks.values()))
    options = world_of(name, world)
    ends, good, cost = {}, {}, {}
    segments, late = 0, []
    for seed in range(seeds):
        made = None
        with contextlib.suppress(TooLong), limited(PLAN_LIMIT):
            made = plan_of(task, name, kind, options, seed)
        if made is None:
            continue
        plan = made[0]
        found = {j: run(task, plan, *how) for j, how in judges(options).items()}
        late += [j for j, f in found.items() if f is None]
        if any(f is None for f in found.values()):
            continue
        segments += len(plan.segments)
        for judge, (last, each) in found.items():
            ends.setdefault(judge, []).extend(last)
            good.setdefault(judge, []).extend(arrived(task, plan, last))
            cost.setdefault(judge, []).append(each)
    if not segments:
        print(f"| {name} | {world} | 0 ({', '.join(late)}) | | | | | | | | |", flush=True)
        return
    verdicts = {j: np.array(g) for j, g in good.items()}
    stiff, default, convex, coulomb = ends
    cells = [str(int(verdicts[j].sum())) for j in ends]
    for one, two in ((stiff, coulomb), (stiff, default), (convex, coulomb)):
        gap = apart(task, ends[one], ends[two])
        cells.append(f"{np.median(gap):.2f}, {100 * (verdicts[one] != verdicts[two]).mean():.0f} %")
    cells.append(" / ".join(f"{np.median(cost[j]):.2f}" for j in ends))
    print(
        f"| {name} | {world} | {segments} ({', '.join(late)}) | {' | '.join(cells)} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    arrived = "arrived: MuJoCo stiff", "default", "qdsim convex", "Coulomb"
    apart = "apart: MuJoCo stiff, Coulomb", "MuJoCo stiff, default", "convex, Coulomb"
    runs = "segments (runs that failed or took too long)"
    head("system", "world", runs, *arrived, *apart, "CPU s per s")
    for name, world, kind in PLANS:
        if not args.names or name in args.names:
            compare(name, world, kind, args.seeds)


if __name__ == "__main__":
    main()
