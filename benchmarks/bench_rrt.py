"""Seconds per 1000 iterations of the planner, and how often and how fast it reaches its goals.

Contenders take turns inside every round; the tables give medians and minima. One thread.

- An *iteration* of the published structure is one subgoal: nearest node, one least squares, one step or one
  contact sample, and one smoothed linearisation of the new node. The goal is out of reach here, so that all
  trees grow to 1000 iterations. The authors' released C++ planner takes 1.2 to 1.7 s for this on one core
  of this kind (planar hand; smoothed steps, no contact samples).
- *To the goal* is what a user waits for: the whole search, until the object's pose is within 0.02 m and
  0.05 rad.
"""

from __future__ import annotations

import argparse
import statistics

from qdsim import systems
from qdsim.planning import RRTOptions, Task, rrt

ITERATIONS = 1000
RELEASED = RRTOptions.published(dynamics="smoothed", grasp_probability=0.0)
PACE = {
    "released settings: smoothed steps, no contact samples": RELEASED,
    "exact steps, grasp probability 0.1": RRTOptions.published(grasp_probability=0.1),
    "exact steps, grasp probability 0.3": RRTOptions.published(),
}
SEARCH = {
    "chain, exact, 4 sub-steps": RRTOptions(),
    "chain, exact, 1 step": RRTOptions(sub_steps=1),
    "published structure, exact": RRTOptions.published(),
    "published structure, smoothed": RRTOptions.published(dynamics="smoothed"),
}


def tasks() -> dict[str, Task]:
    return {name: next(iter(systems.load(name).tasks.values())) for name in systems.TASK_NAMES}


def seconds_per_1000(task: Task, options: RRTOptions, seed: int) -> float:
    endless = task.replace(position_tolerance=1e-12)
    tree = rrt(
        endless,
        options.replace(max_nodes=2 * ITERATIONS, max_iterations=ITERATIONS),
        rng=seed,
    )
    return 1000.0 * tree.seconds / len(tree.records)


def print_pace(rounds: int) -> None:
    print("## Seconds per 1000 iterations\n")
    print("| system | settings | median | minimum |")
    print("| --- | --- | --- | --- |")
    for system, task in tasks().items():
        times: dict[str, list[float]] = {name: [] for name in PACE}
        for seed in range(rounds):
            for name, options in PACE.items():
                times[name].append(seconds_per_1000(task, options, seed))
        for name, values in times.items():
            print(f"| {system} | {name} | {statistics.median(values):.3f} | {min(values):.3f} |")


def print_search(seeds: int) -> None:
    print(f"\n## To the goal, {seeds} seeds, at most 2000 nodes\n")
    print(
        "| system | planner | good plans | nodes, median (max) | steps | contact samples "
        "| seconds, median (max) |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for system, task in tasks().items():
        trees = {name: [] for name in SEARCH}
        for seed in range(seeds):
            for name, options in SEARCH.items():
                trees[name].append(rrt(task, options, rng=seed))
        for name, grown in trees.items():
            done = [t for t in grown if t.reached]
            good = sum(t.plan().check(task.model).good for t in done)
            if not done:
                print(f"| {system} | {name} | 0 of {seeds} | | | | |")
                continue
            nodes = [t.count for t in done]
            seconds = [t.seconds for t in done]
            print(
                f"| {system} | {name} | {good} of {seeds} "
                f"| {statistics.median(nodes):.0f} ({max(nodes)}) "
                f"| {statistics.median(t.steps for t in done):.0f} "
                f"| {statistics.median(t.regrasp_count for t in done):.0f} "
                f"| {statistics.median(seconds):.3f} ({max(seconds):.3f}) |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the first table")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of the second table")
    arguments = parser.parse_args()
    print_pace(arguments.rounds)
    print_search(arguments.seeds)


if __name__ == "__main__":
    main()
