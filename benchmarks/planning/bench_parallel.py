"""Work items on executors: the cost of sending one, the speed of several workers, and a larger run on paper.

*Way*: 200 items that do nothing, sent to a worker and back; bytes of the pickled item and of its result. *Scaling*:
searches with successive seeds as items, wall-clock time and speed relative to this thread. *On paper*: 10,000 items whose
times are drawn from those of the searches, scaled so that they reach from 0.1 to 10 s, each taken by the worker that is
free first, with the measured cost of an item; efficiency is the sum of the times over the workers' time.

Usage: python benchmarks/planning/bench_parallel.py [--items 48] [--workers 1 2 4]
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import pickle
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from qdsim import parallel, planning, systems
from qdsim.parallel import ExecutorLike, Result
from qdsim.planning import Task

Array = NDArray[np.float64]
PAPER, SHORTEST, LONGEST = 10_000, 0.1, 10.0
"""Items, and s of the shortest and the longest one, of the run on paper."""


def nothing(number: int) -> Result:
    return {"number": np.array(number)}


def search(task: Task, seed: int) -> Result:
    begin = time.perf_counter()
    tree = planning.rrt(task, rng=seed)
    return {"reached": np.array(tree.reached), "seconds": np.array(time.perf_counter() - begin)}


def executors(workers: list[int]) -> dict[str, Callable[[], Executor] | None]:
    """By name; None: this thread."""
    spawn = get_context("spawn")
    found: dict[str, Callable[[], Executor] | None] = {"this thread": None}
    found |= {f"threads, {n}": partial(ThreadPoolExecutor, n) for n in workers}
    found |= {f"processes, {n}": partial(ProcessPoolExecutor, n, mp_context=spawn) for n in workers}
    if importlib.util.find_spec("ray"):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        found["Ray, local, 2"] = parallel.RayExecutor
    return found


def timed(make: Callable[[], Executor] | None, call: Callable[[ExecutorLike], object]) -> float:
    """Seconds of a call on an executor whose workers have started."""
    if make is None:
        begin = time.perf_counter()
        call(None)
        return time.perf_counter() - begin
    with make() as executor:
        parallel.run(nothing, [(k,) for k in range(16)], executor=executor)
        begin = time.perf_counter()
        call(executor)
        return time.perf_counter() - begin


def efficiency(seconds: Array, workers: int, cost: float) -> float:
    """Of a run in which the worker that is free first takes the next item."""
    free = [0.0] * workers
    for item in seconds.tolist():
        heapq.heapreplace(free, free[0] + item + cost)
    return float(seconds.sum()) / (workers * max(free))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=48)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    given = parser.parse_args()
    task = systems.load("allegro_sphere").tasks["half_turn"]
    items = [(task, parallel.seed_of(0, k)) for k in range(given.items)]
    print("| executor | an item's way, us | searches, s | times this thread |")
    print("| --- | --- | --- | --- |", flush=True)
    first, costs, results = 0.0, [0.0], None
    for name, make in executors(given.workers).items():
        way = timed(make, lambda e: parallel.run(nothing, [(k,) for k in range(200)], executor=e))
        found: list[tuple[Result, ...]] = []
        took = timed(make, lambda e: found.append(parallel.run(search, items, executor=e)))  # noqa: B023
        first, results = first or took, results or found[0]
        costs.append(way / 200)
        print(f"| {name} | {1e6 * way / 200:.0f} | {took:.1f} | {first / took:.2f} |", flush=True)
    assert results is not None
    sent, back = len(pickle.dumps(items[0])), len(pickle.dumps(results[0]))
    print(f"\nAn item is {sent} bytes, its result {back}.\n")
    own = np.array([float(r["seconds"]) for r in results])
    low, high = np.log(own.min()), np.log(own.max())
    share = (np.log(np.random.default_rng(0).choice(own, PAPER)) - low) / (high - low)
    seconds = SHORTEST * (LONGEST / SHORTEST) ** share
    print("| workers | efficiency on paper |\n| --- | --- |")
    for workers in (10, 100, 1000):
        print(f"| {workers} | {efficiency(seconds, workers, max(costs)):.1%} |")
    print(f"\n{(__doc__ or '').split('Usage')[0].strip()}")


if __name__ == "__main__":
    main()
