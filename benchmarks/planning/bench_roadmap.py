"""Roadmaps against searches from nothing: how many random queries are answered, and how fast.

Starts and goals are resting poses drawn from the task's box, the robot at the task's start or in a
grasp. *Roadmap*: ``planning.roadmap`` with its defaults but for the number of nodes; *search*: one
``planning.rrt`` with the task's own settings, from start to goal. A query counts as answered if its
plan passes ``plan.check``: it ends within the task's tolerances in the model, bit for bit, and
every change of grasp leaves the object at rest. Seconds are those of the process's CPU, one thread.

Usage: python benchmarks/planning/bench_roadmap.py [--count 30] [--systems planar_hand ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qdsim import planning, systems
from qdsim.planning import NotCoveredError, Plan, RoadmapOptions, RRTOptions, Task
from qdsim.planning.roadmap.coverage import wilson
from qdsim.planning.roadmap.poses import draw_pose

NODES = {"planar_hand": 24, "planar_pushing": 24, "iiwa_bimanual_cylinder": 6}

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def pairs_of(task: Task, count: int) -> list[Pair]:
    rng = np.random.default_rng(1)
    pairs: list[Pair] = []
    while len(pairs) < count:
        start, goal = draw_pose(task, rng), draw_pose(task, rng)
        if start is not None and goal is not None:
            pairs.append((start, goal))
    return pairs


def measured(task: Task, pairs: list[Pair], ask: Callable[[Pair, int], Plan | None]) -> str:
    """Share with its interval, and percentiles of the seconds."""
    good, seconds = 0, []
    for k, pair in enumerate(pairs):
        begin = time.process_time()
        plan = ask(pair, k)
        seconds.append(time.process_time() - begin)
        good += plan is not None and bool(plan.check(task))
    low, high = wilson(good, len(pairs))
    middle, late = np.percentile(seconds, (50, 95))
    return f"{good} of {len(pairs)} ({low:.0%} to {high:.0%}) | {middle:.2f} | {late:.2f}"


def rows_of(name: str, count: int) -> list[str]:
    task = next(iter(systems.load(name).tasks.values()))
    pairs = pairs_of(task, count)
    begin = time.process_time()
    made = planning.roadmap(task, RoadmapOptions(nodes=NODES[name]))
    built = time.process_time() - begin

    def by_roadmap(pair: Pair, seed: int) -> Plan | None:
        try:
            return made.query(*pair, seed=seed)
        except NotCoveredError:
            return None

    def by_search(pair: Pair, seed: int) -> Plan | None:
        own = task.towards(pair[1], start=pair[0], start_tolerance=np.inf)
        tree = planning.rrt(own, task.planner or RRTOptions(), seed)
        return tree.plan() if tree.reached else None

    size = f"{len(made.nodes)}, {made.edges.count}"
    arrived = f"{made.edges.arrived.sum()} of {made.edges.tries.sum()}"
    return [
        f"| {name} | roadmap | {size} | {arrived} | {built:.0f} | {measured(task, pairs, by_roadmap)} |",
        f"| | search | | | | {measured(task, pairs, by_search)} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--systems", nargs="*", default=list(NODES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"## Random queries, {given.count} of each system\n")
    print(
        "| system | | nodes, edges | trials arrived | build, s | plans that pass `check` | median, s | 95 %, s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in given.systems:
        for row in rows_of(name, given.count):
            print(row, flush=True)
    print(f"\n{(__doc__ or '').split('Usage')[0].strip()}")


if __name__ == "__main__":
    main()
