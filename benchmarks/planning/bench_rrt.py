"""Seconds per 1000 iterations of the planner, and how often and how fast it reaches its goals.

Contenders take turns in every round; the tables give medians and minima. One thread; times are CPU seconds of the
process.

- An *iteration* of the published structure is one subgoal: nearest node, one least-squares problem, one step or one
  contact sample, and one smoothed linearisation of the new node. The goal cannot be reached here, so that all trees
  grow to 1000 iterations. The authors' released C++ planner takes 1.2 to 1.7 s for this on one core of this kind
  (planar hand; smoothed steps, no contact samples).
- Table III of CQDC gives seconds for 1000 iterations on a 16-core Threadripper 2950, but not which steps and weights
  were used. It is compared with the published structure with the tasks' own step and gamma, on one thread; the
  randomized schemes have 100 samples of standard deviation 0.1, as in the authors' scripts.
- *To the goal* is the time of the whole search, until the object's pose is within 0.02 m and 0.05 rad.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable

import numpy as np

from qdsim import smoothing, systems
from qdsim.planning import RRTOptions, Task, Tree, rrt

ITERATIONS = 1000
PLANAR = ("planar_hand", "planar_pushing")
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


# CQDC's Table III: seconds for 1000 iterations, 16-core Threadripper 2950; the schemes as in SCHEMES.
TABLE_3 = {
    "planar_pushing": (3.25, 7.50, 7.40),
    "planar_hand": (10.32, 21.34, 21.00),
    "allegro_sphere": (31.01, 80.12, 82.00),
    "allegro_plate": (117.16, 161.64, 168.11),
    "allegro_pen": (24.84, 86.12, 81.23),
    "allegro_door": (12.42, 34.55, 33.80),
}
SCHEMES: dict[str, smoothing.Scheme | None] = {
    "analytic": None,  # the planner's own log barrier
    "randomized, first order": smoothing.Randomized(0.1, 100),
    "randomized, zeroth order": smoothing.Randomized(0.1, 100, order="zeroth"),
}


def tasks(names: Iterable[str]) -> dict[str, Task]:
    return {name: next(iter(systems.load(name).tasks.values())) for name in names}


def timed(task: Task, options: RRTOptions | None, seed: int) -> Tree:
    """Grow a tree, whose seconds are CPU seconds of this process."""
    begin = time.process_time()
    tree = rrt(task, options, rng=seed)
    tree.seconds = time.process_time() - begin
    return tree


def endless(task: Task, options: RRTOptions, seed: int) -> Tree:
    """Grow a tree for a number of iterations, even if it reaches the goal."""
    settings = options.replace(max_nodes=2 * ITERATIONS, max_iterations=ITERATIONS)
    return timed(task.replace(position_tolerance=1e-12), settings, seed)


def seconds_per_1000(tree: Tree) -> float:
    return 1000.0 * tree.seconds / len(tree.records)


def print_pace(rounds: int) -> None:
    print("## Seconds per 1000 iterations\n")
    print("| system | settings | median | minimum |")
    print("| --- | --- | --- | --- |")
    for system, task in tasks(PLANAR).items():
        times: dict[str, list[float]] = {name: [] for name in PACE}
        for seed in range(rounds):
            for name, options in PACE.items():
                times[name].append(seconds_per_1000(endless(task, options, seed)))
        for name, values in times.items():
            print(f"| {system} | {name} | {statistics.median(values):.3f} | {min(values):.3f} |")


def print_search(seeds: int) -> None:
    print(f"\n## To the goal, {seeds} seeds, at most 2000 nodes\n")
    print(
        "| system | planner | good plans | nodes, median (max) | steps | contact samples "
        "| seconds, median (max) |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for system, task in tasks(PLANAR).items():
        trees = {name: [] for name in SEARCH}
        for seed in range(seeds):
            for name, options in SEARCH.items():
                trees[name].append(timed(task, options, seed))
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


def nearest(tree: Tree, task: Task) -> tuple[float, float, bool]:
    """Return the errors of the node nearest to the goal, and whether some node is within the tolerances."""
    errors = tree.errors[: tree.count]
    tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
    there = bool((errors <= tolerances).all(axis=1).any())
    shift, turn = errors[np.argmin(np.max(errors / tolerances, axis=1))]
    return float(shift), float(turn), there


def print_table_3(rounds: int) -> None:
    print("\n## Seconds per 1000 iterations, the systems of CQDC's Table III\n")
    print(
        "Reached: a node within the task's tolerances. Errors: of the node nearest to the goal, medians.\n"
    )
    print("| system | smoothing | median | minimum | published | times faster | reached | errors |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for system, task in tasks(TABLE_3).items():
        own = task.planner or RRTOptions()
        for (name, scheme), published in zip(SCHEMES.items(), TABLE_3[system], strict=True):
            options = RRTOptions.published(
                grasp_probability=0.1, step=own.step, gamma=own.gamma, smoothing=scheme
            )
            trees = [endless(task, options, seed) for seed in range(rounds)]
            times = [seconds_per_1000(tree) for tree in trees]
            shift, turn, there = np.array([nearest(tree, task) for tree in trees]).T
            median = statistics.median(times)
            print(
                f"| {system} | {name} | {median:.2f} | {min(times):.2f} | {published} "
                f"| {published / median:.0f} | {there.sum():.0f} of {rounds} "
                f"| {1000 * np.median(shift):.0f} mm, {np.median(turn):.3f} rad |",
                flush=True,
            )


def print_systems(names: Iterable[str], seeds: int) -> None:
    print(
        f"\n## All systems, chain with the task's settings: {seeds} seeds of the published goal\n"
    )
    print(
        "| system | success | nodes, median (max) | seconds, median | 95th percentile "
        "| error at the end, median |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for system, task in tasks(names).items():
        trees = [timed(task, None, seed) for seed in range(seeds)]
        done = [t for t in trees if t.reached]
        good = sum(t.plan().check(task.model).good for t in done)
        if not done:
            print(f"| {system} | 0 of {seeds} | | | | |", flush=True)
            continue
        nodes, seconds = [t.count for t in done], [t.seconds for t in done]
        shift, turn = np.median([t.errors[t.goal_node] for t in done], axis=0)
        print(
            f"| {system} | {good} of {seeds} | {statistics.median(nodes):.0f} ({max(nodes)}) "
            f"| {statistics.median(seconds):.2f} | {np.quantile(seconds, 0.95):.2f} "
            f"| {1000 * shift:.0f} mm, {turn:.3f} rad |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the first table")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of the second table")
    parser.add_argument("--all", type=int, default=20, help="seeds of every system's task")
    parser.add_argument("--systems", nargs="*", default=systems.TASK_NAMES)
    arguments = parser.parse_args()
    print_pace(arguments.rounds)
    print_search(arguments.seeds)
    print_table_3(min(arguments.rounds, 3))
    print_systems(arguments.systems, arguments.all)


if __name__ == "__main__":
    main()
