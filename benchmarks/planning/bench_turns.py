"""A roadmap over all rotations of a cube in the Allegro hand: in the model, and in closed loop in MuJoCo.

The cube starts where ``allegro_cube`` does. Goals are rotations drawn evenly from SO(3), at which the cube touches
the palm. *Model*: ``roadmap.query``; a query counts if its plan passes ``plan.check``. *MuJoCo*: ``roadmap.certify``
and ``roadmap.drive`` in a plant with steps of 1 ms, stiff contacts and actuators limited to 0.7 Nm; a goal counts if
the cube ends within 10 degrees and 20 mm of it. Times are CPU seconds of the process, one thread.

*Consecutive goals*: the protocol of ``consecutive.py``. ``drive`` is called again where it gives up. A goal counts as
soon as the cube's rotation is near enough, so the next one begins while the cube moves.

Usage: python benchmarks/planning/bench_turns.py [--model 30] [--plant 30] [--trials 6] [--seed 0] [--consecutive 8]
[--student build/learn/student.npz]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from consecutive import MOST, InModel, InMujoco, rotations, trial
from numpy.typing import NDArray

from qdsim import planning, systems
from qdsim.planning import NotCoveredError, Roadmap, RoadmapOptions, Task, TransferOptions
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.world import World
from qdsim.planning.roadmap.coverage import wilson

Array = NDArray[np.float64]
Control = Callable[[World, Array], None]
FIRST = 1000
"""Seed of the first trial of consecutive goals."""


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


def finer(made: Roadmap, tolerance: float) -> Roadmap:
    """Return a roadmap whose last legs end within another tolerance, rad; its nodes are as wide as before."""
    task = made.task.replace(rotation_tolerance=min(tolerance, made.task.rotation_tolerance))
    radius = made.options.radius * made.task.rotation_tolerance / task.rotation_tolerance
    return Roadmap(task, made.options.replace(radius=radius), made.nodes, made.edges)


def driven(made: Roadmap, tolerance: float) -> Control:
    """A roadmap as a controller."""
    own = finer(made, tolerance)

    def control(world: World, goal: Array) -> None:
        with contextlib.suppress(NotCoveredError):
            own.drive(world, goal)

    return control


def learned(path: Path, task: Task) -> Control:
    """The network of examples/student.py as a controller, at the beginning of a trial."""
    sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
    from turning import Hand, Student  # an example, not a part of the package; needs gymnasium

    return Student.load(path, Hand(task)).control


def print_consecutive(
    name: str,
    task: Task,
    controller: Callable[[], Control],
    world: Callable[[], InModel | InMujoco],
    trials: int,
    tolerance: float,
) -> None:
    """Print the goals that a controller reaches in a row; every trial gets one of its own."""
    begin = time.process_time()
    runs = [trial(task, world(), controller(), tolerance, FIRST + k) for k in range(trials)]
    goals = [run.goals for run in runs]
    took = np.concatenate([run.seconds for run in runs])
    ends = ", ".join(f"{count} {end}" for end, count in Counter(run.end for run in runs).items())
    seconds = (time.process_time() - begin) / max(1, sum(goals))
    print(
        f"| {name} | {tolerance} | {np.mean(goals):.1f} | {np.median(goals):.1f} | "
        f"{', '.join(map(str, sorted(goals)))} | {ends} | {np.median(took):.0f} | {seconds:.1f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=int, default=30)
    parser.add_argument("--plant", type=int, default=30)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--consecutive", type=int, default=0, help="number of trials")
    parser.add_argument(
        "--student", type=Path, help="file of examples/student.py: its network, too"
    )
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
    if given.consecutive:
        print(
            f"\n| world | rad | goals, mean of {given.consecutive} | median | each (at most {MOST}) | ends | "
            "s a goal | CPU s a goal |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    worlds: list[tuple[str, Roadmap, Callable[[], InModel | InMujoco]]] = [
        ("model", made, lambda: InModel(task)),
        (
            "MuJoCo",
            certified,
            lambda: InMujoco(task.model, task.space, mj, world, compensated=True),
        ),
    ]
    for tolerance in (0.4, 0.1) if given.consecutive else ():
        for name, own, place in worlds:
            drive = functools.partial(driven, own, tolerance)
            print_consecutive(name, task, drive, place, given.consecutive, tolerance)
            if given.student is not None:
                pilot = functools.partial(learned, given.student, task)
                named = f"{name}, network"
                print_consecutive(named, task, pilot, place, given.consecutive, tolerance)
    print(f"\n{(__doc__ or '').split('Usage')[0].strip()}")


if __name__ == "__main__":
    main()
