"""Roadmaps compared with single searches: the share of random queries that are answered, and the time.

Starts and goals are resting poses drawn from the task's box, with the robot at the task's start or in a grasp. The
cylinder of the two iiwas stays upright on the ground (SE(2), as published). *Roadmap*: ``planning.roadmap`` with its
defaults except for the number of nodes. *Search*: one ``planning.rrt`` with the task's own settings, from start to
goal. A query counts as answered if its plan passes ``plan.check``: the plan ends within the task's tolerances in the
model, bit for bit, and every regrasp leaves the object at rest. *MuJoCo*: an ``Executor`` executes the plans of the
first ``--plant`` queries and makes new plans with the roadmap (for the two iiwas it has planned commands alone).
Contacts are stiff, and the object lies on a plane with friction 0.5. A query counts if the object stays within the
task's tolerances for 1 s. Times are CPU seconds of the process, one thread.

Usage: python benchmarks/planning/bench_roadmap.py [--count 30] [--plant 0] [--systems planar_hand ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from bench_transfer import world_of
from numpy.typing import NDArray
from runs import TooLong, limited

from qdsim import planning, systems
from qdsim.planning import (
    ExecutorOptions,
    NotCoveredError,
    Plan,
    Roadmap,
    RoadmapOptions,
    RRTOptions,
    Task,
)
from qdsim.planning.roadmap.coverage import wilson
from qdsim.planning.roadmap.poses import draw_pose

NODES = {"planar_hand": 24, "planar_pushing": 24, "iiwa_bimanual_cylinder": 12}
UPRIGHT = "iiwa_bimanual_cylinder"
LIMIT = 60
"""Limit of an execution, s of CPU; longer executions count as missed."""
HOW = {UPRIGHT: ("planned",)}
"""Controllers of executions by system; for other systems the executor chooses."""
FLAT = 1e-9
"""Largest difference of poses on the ground in height and tilt, m and rad."""

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def task_of(name: str) -> Task:
    """Return the first task of a system; in space without gravity, its box is restricted to poses on the ground."""
    task = next(iter(systems.load(name).tasks.values()))
    if name != UPRIGHT:
        return task
    lower, upper = np.array(task.lower), np.array(task.upper)
    lower[2:5], upper[2:5] = -FLAT, FLAT
    return task.replace(lower=lower, upper=upper)


def pairs_of(task: Task, count: int) -> list[Pair]:
    rng = np.random.default_rng(1)
    pairs: list[Pair] = []
    while len(pairs) < count:
        start, goal = draw_pose(task, rng), draw_pose(task, rng)
        if start is not None and goal is not None:
            pairs.append((start, goal))
    return pairs


def measured(task: Task, pairs: list[Pair], ask: Callable[[Pair, int], Plan | None]) -> str:
    """Return the share of answered queries with its interval, and percentiles of the seconds."""
    good, seconds = 0, []
    for k, pair in enumerate(pairs):
        begin = time.process_time()
        plan = ask(pair, k)
        seconds.append(time.process_time() - begin)
        good += plan is not None and bool(plan.check(task))
    low, high = wilson(good, len(pairs))
    middle, late = np.percentile(seconds, (50, 95))
    return f"{good} of {len(pairs)} ({low:.0%} to {high:.0%}) | {middle:.2f} | {late:.2f}"


def rows_of(name: str, count: int, plant: int) -> Iterator[str]:
    task = task_of(name)
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
    yield f"| {name} | roadmap | {size} | {arrived} | {built:.0f} | {measured(task, pairs, by_roadmap)} |"
    yield f"| | search | | | | {measured(task, pairs, by_search)} |"
    if plant:
        yield f"| | MuJoCo | | | | {executed(made, name, pairs[:plant])} |"


def executed(made: Roadmap, name: str, pairs: list[Pair]) -> str:
    """Return the share that arrives in MuJoCo with (new) plans of the roadmap, and percentiles of the seconds."""
    good, seconds, late = 0, [], 0
    for k, (start, goal) in enumerate(pairs):
        begin = time.process_time()
        task = made.task.towards(goal, start=start, start_tolerance=np.inf)
        world = world_of(name, "plane").replace(seed=k)
        reached = False
        try:
            with limited(LIMIT):
                plan = made.query(start, goal, seed=k)
                how = ExecutorOptions(controllers=HOW.get(name), plans=30, hold=1.0)
                run = planning.Executor(
                    task, plan, world=world, options=how, planner=made.planner(goal)
                ).run()
                reached = run.reached
        except TooLong:
            late += 1
        except NotCoveredError:
            pass
        good += reached
        seconds.append(time.process_time() - begin)
    low, high = wilson(good, len(pairs))
    middle, slow = np.percentile(seconds, (50, 95))
    share = f"{good} of {len(pairs)} ({low:.0%} to {high:.0%}; {late} late)"
    return f"{share} | {middle:.2f} | {slow:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--plant", type=int, default=0)
    parser.add_argument("--systems", nargs="*", default=list(NODES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"## Random queries, {given.count} of each system\n")
    print(
        "| system | | nodes, edges | trials arrived | build, s | plans that pass `check` | median, s | 95 %, s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in given.systems:
        for row in rows_of(name, given.count, given.plant):
            print(row, flush=True)
    print(f"\n{(__doc__ or '').split('Usage')[0].strip()}")


if __name__ == "__main__":
    main()
