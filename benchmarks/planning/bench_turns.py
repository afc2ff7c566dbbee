"""A roadmap over all rotations of a cube in the Allegro hand: in the model, and in closed loop in MuJoCo.

The cube starts where ``allegro_cube`` does. Goals are rotations drawn evenly from SO(3), at which the cube touches
the palm. *Model*: ``roadmap.query``; a query counts if its plan passes ``plan.check``. *MuJoCo*: ``roadmap.certify``
and ``roadmap.drive`` in a plant with steps of 1 ms, stiff contacts and actuators limited to 0.7 Nm; a goal counts if
the cube ends within 10 degrees and 20 mm of it. Times are CPU seconds of the process, one thread.

Usage: python benchmarks/planning/bench_turns.py [--model 30] [--plant 30] [--trials 6] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qdsim import planning, systems
from qdsim.planning import NotCoveredError, RoadmapOptions, TransferOptions
from qdsim.planning.execution.plant import Plant
from qdsim.planning.roadmap.coverage import wilson

Array = NDArray[np.float64]


def rotations(count: int, seed: int) -> list[Array]:
    """Return rotation vectors of quaternions drawn evenly from the sphere."""
    found = []
    for quat in np.random.default_rng(seed).standard_normal((count, 4)):
        w, *v = quat / np.linalg.norm(quat) * np.copysign(1.0, quat[0])
        found.append(2.0 * np.arctan2(np.linalg.norm(v), w) * np.array(v) / np.linalg.norm(v))
    return found


def measured(goals: list[Array], ask: Callable[[Array], tuple[bool, Array]]) -> str:
    """Return the share of reached goals with its interval, the errors of these, and percentiles of the seconds."""
    task = systems.load("allegro_cube").tasks["turn"]
    good, seconds, turns = 0, [], []
    for goal in goals:
        begin = time.process_time()
        reached, q = ask(goal)
        seconds.append(time.process_time() - begin)
        good += reached
        turns += [np.degrees(task.space.errors(q, goal)[1])] if reached else []
    low, high = wilson(good, len(goals))
    middle, late = np.percentile(seconds, (50, 95))
    return (
        f"{good} of {len(goals)} ({low:.0%} to {high:.0%}) | {np.median(turns):.1f} | "
        f"{middle:.1f} | {late:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=int, default=30)
    parser.add_argument("--plant", type=int, default=30)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    task = systems.load("allegro_cube").tasks["turn"]
    begin = time.process_time()
    made = planning.roadmap(task, RoadmapOptions(trials=3, radius=1.0))
    built = time.process_time() - begin
    world = TransferOptions(timestep=1e-3, force=0.7)
    mj = planning.second_order(task.model, task.object, world)

    def in_model(goal: Array) -> tuple[bool, Array]:
        try:
            plan = made.query(task.start, goal)
        except NotCoveredError as said:
            return False, said.q
        return bool(plan.check(task.towards(goal))), plan.end

    certified = made.certify(
        Plant(task.model, task.space, mj, world, compensated=True), given.trials
    )

    def in_mujoco(goal: Array) -> tuple[bool, Array]:
        plant = Plant(task.model, task.space, mj, world, compensated=True)
        plant.reset(task.start)
        try:
            return True, certified.drive(plant, goal).end
        except NotCoveredError as said:
            return False, said.q

    arrived = [f"{m.edges.arrived.sum()} of {m.edges.tries.sum()}" for m in (made, certified)]
    print(f"{len(made.nodes)} nodes, {made.edges.count} edges, built in {built:.0f} s.")
    print(f"Trials that arrived: {arrived[0]} in the model, {arrived[1]} in MuJoCo.\n")
    print("| world | reached | degrees, median | median, s | 95 %, s |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    goals = [systems.cube_goal(task, r) for r in rotations(given.model, given.seed)]
    print(f"| model | {measured(goals, in_model)} |", flush=True)
    goals = [systems.cube_goal(task, r) for r in rotations(given.plant, given.seed + 1)]
    print(f"| MuJoCo | {measured(goals, in_mujoco)} |")
    print(f"\n{(__doc__ or '').split('Usage')[0].strip()}")


if __name__ == "__main__":
    main()
