"""Motions between the grasps of plans: how many are found, by which method, and how fast; which objects would fall.

Prints Markdown. The pairs of grasps are the regrasps of plans from several seeds, unchanged. `Plan.check` then
certifies the edges of each motion independently.
"""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

import qdsim
from qdsim import planning, systems
from qdsim.planning.motion.motion import motion_fault

SEEDS = range(3)
OPTIONS = planning.MotionOptions()


def measure(name: str) -> str:
    """Return one row of the table."""
    task = next(iter(systems.load(name).tasks.values()))
    model = task.model
    found, faults, dropping = Counter[str](), 0, 0
    seconds = []
    plans = [tree.plan() for s in SEEDS if (tree := planning.rrt(task, rng=s)).reached]
    for plan in plans:
        for k, (before, after) in enumerate(plan.regrasps):
            begin = time.perf_counter()
            try:
                motion = planning.connect(model, before, after, OPTIONS, k)
            except planning.MotionError:
                found["none"] += 1
            else:
                found[motion.planner] += 1
                faults += motion_fault(model, motion) is not None
            seconds.append(time.perf_counter() - begin)
            dropping += not planning.is_stable(model, before, plan.object, plan.options)
    ways = [found[way] for way in ("line", "opening", "RRTConnect", "none")]
    numbers = " | ".join(str(n) for n in (len(plans), len(seconds), *ways, faults, dropping))
    times = " | ".join(f"{1e3 * np.quantile(seconds, share):.0f}" for share in (0.5, 0.95, 1.0))
    return f"| {name} | {numbers} | {times} |"


def distances(name: str) -> str:
    """Measure the time of the distances of one configuration, on one thread."""
    system = systems.load(name)
    model, rng = system.model, np.random.default_rng(0)
    shifts = 0.2 * rng.standard_normal((400, model.nv))
    q = np.array([model.integrate(system.start.q, v) for v in shifts])
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        qdsim.pair_distances(model, q, 0.1, threads=1)
        best = min(best, time.perf_counter() - begin)
    return f"| {name} | {model.pair_count} | {1e6 * best / len(q):.1f} |"


def static(name: str) -> str:
    """Compare searches that regrasp only where the object stays in place with searches that regrasp anywhere."""
    task = next(iter(systems.load(name).tasks.values()))
    cells = []
    for required in (False, True):
        options = (task.planner or planning.RRTOptions()).replace(require_static_regrasps=required)
        trees = [planning.rrt(task, options, rng=s) for s in SEEDS]
        reached = [tree for tree in trees if tree.reached]
        dropping = sum(len(t.plan().check(task.model).dropping_regrasps) for t in reached)
        nodes = f"{np.median([t.count for t in reached]):.0f}" if reached else "–"
        cells.append(f"{len(reached)} of {len(trees)} | {nodes} | {dropping}")
    return f"| {name} | {cells[0]} | {cells[1]} |"


def main() -> None:
    print("## Motions between grasps\n")
    print(
        f"Regrasps of plans from {len(SEEDS)} seeds, with {1e3 * OPTIONS.clearance:g} mm of clearance. A motion is found "
        "as a straight line after backing off by 1.5 times the clearance (line), after backing off farther (opening), by "
        "OMPL's RRT-Connect, or not at all. *Faults*: motions that an independent certification rejects. *Would drop*: "
        "regrasps at which the object would move without the robot. Distances of 16 or more configurations at once use "
        "all cores.\n"
    )
    print(
        "| system | plans | regrasps | line | opening | RRTConnect | not found | faults | would drop | "
        "median, ms | 95 %, ms | max, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in systems.TASK_NAMES:
        print(measure(name), flush=True)
    print("\n## Searches that release objects only where they stay in place\n")
    print(
        f"{len(SEEDS)} seeds, at most {planning.RRTOptions().max_nodes} nodes: number of plans, median number of nodes, "
        "and regrasps that would drop the object; without and with `require_static_regrasps`.\n"
    )
    print("| system | anywhere | nodes | would drop | where it stays | nodes | would drop |")
    print("|---|---|---|---|---|---|---|")
    for name in ("allegro_sphere", "allegro_plate", "allegro_book", "iiwa_bimanual_box"):
        print(static(name), flush=True)
    print("\n## Distances of all pairs, margin 0.1 m\n")
    print("| system | pairs | us per configuration |")
    print("|---|---|---|")
    for name in systems.TASK_NAMES:
        print(distances(name), flush=True)


if __name__ == "__main__":
    main()
