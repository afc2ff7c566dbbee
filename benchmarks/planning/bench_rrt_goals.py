"""Success on random goals: how often the planner finds a plan, how long it takes, and how near it ends.

Goals are drawn uniformly from each task's own box of subgoals, from which CQDC's planner also draws its subgoals
(positions and rotation vectors relative to the start; the table has the boxes). Two kinds of goals are drawn again:
poses in which the object penetrates static bodies (ground, walls, the fixed leaf of the door) by more than 0.1 mm,
which cannot be reached; and poses within the tolerances of the start. Goals in the air count even if no grasp can
hold the object there. Only the book has no published box; the box chosen here lets it rise by 5 cm and tilt.

A success is a plan that ``Plan.check`` accepts: the exact steps, replayed, have the same bits and end within the
task's tolerances, and nothing penetrates at regrasps. The planner is the chaining one with the task's settings. Goal
number i has seed i. The search ends at 20000 nodes or (in the iteration after) 100000 simulator steps; this takes
some 2 s for planar pushing and a minute for the arms. Times are CPU seconds of one thread; nodes and times are those
of successes.

A system's name stands for its first task; ``system/task`` names another one. With ``--published`` the goal is always
the task's own, and only the seed changes.

``--cache FILE`` saves one line of JSON for every goal, so that an interrupted run continues where it was.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from runs import Runs, arguments

from qdsim import systems
from qdsim.planning import RRTOptions, Task, rrt
from qdsim.planning.task.robot import robot_bodies

MAX_NODES = 20_000
MAX_STEPS = 100_000
FREE = 1e-4

Row = dict[str, Any]


def in_the_way(task: Task, q: np.ndarray) -> bool:
    """Return whether bodies that the robot does not move penetrate each other."""
    contacts = task.model.collide(q, 0.0)
    robot = robot_bodies(task.model)
    fixed = ~robot[contacts["body_a"]] & ~robot[contacts["body_b"]]
    return bool(np.any(contacts["dist"][fixed] < -FREE))


def task_of(name: str) -> Task:
    """Return the first task of a system, or the task named by ``system/task``."""
    system, _, task = name.partition("/")
    tasks = systems.load(system).tasks
    return tasks[task] if task else next(iter(tasks.values()))


def random_goals(task: Task) -> Iterator[Task]:
    """Yield the task with one random goal after the other."""
    rng = np.random.default_rng(0)
    while True:
        share = rng.random(task.space.size)
        q = task.with_object(task.start, task.lower + share * (task.upper - task.lower))
        if not in_the_way(task, q):
            chosen = task.replace(goal=q)
            if not chosen.reached(task.start):
                yield chosen


def attempt(task: Task, seed: int) -> Row:
    options = (task.planner or RRTOptions()).replace(max_nodes=MAX_NODES, max_steps=MAX_STEPS)
    begin = time.process_time()
    tree = rrt(task, options, rng=seed)
    seconds = time.process_time() - begin
    shift, turn = tree.errors[tree.best_node if tree.goal_node is None else tree.goal_node].tolist()
    good = tree.reached and tree.plan().check(task.model).good
    return {
        "good": good,
        "nodes": tree.count,
        "steps": tree.steps,
        "seconds": seconds,
        "shift": shift,
        "turn": turn,
        "goal": task.space.difference(task.goal, task.start).round(4).tolist(),
    }


def table(names: list[str], known: Runs) -> str:
    lines = [
        "| system | success | median s | 95th percentile s | nodes, median | error at the end, median "
        "| failures end at |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        every = known.of(name)
        done = [r for r in every if r["good"]]
        left = [f"{1000 * r['shift']:.0f} mm, {r['turn']:.2f} rad" for r in every if not r["good"]]
        end = f"{len(done)} of {len(every)} ({len(done) / max(len(every), 1):.0%})"
        if not done:
            lines.append(f"| {name} | {end} | | | | | {'; '.join(left[:4])} |")
            continue
        seconds = [r["seconds"] for r in done]
        lines.append(
            f"| {name} | {end} | {statistics.median(seconds):.2f} | {np.quantile(seconds, 0.95):.2f} "
            f"| {statistics.median(r['nodes'] for r in done):.0f} "
            f"| {1000 * statistics.median(r['shift'] for r in done):.0f} mm, "
            f"{statistics.median(r['turn'] for r in done):.3f} rad | {'; '.join(left[:4])} |"
        )
    return "\n".join(lines)


def boxes(names: list[str]) -> str:
    lines = ["| system | tolerances | box of goals, relative to the start |", "| --- | --- | --- |"]
    for name in names:
        task = task_of(name)
        box = ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(task.lower, task.upper))
        shift = f"{1000 * task.position_tolerance:.0f} mm, {task.rotation_tolerance:g} rad"
        lines.append(f"| {name} | {shift} | {box} |")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--goals", type=int, default=10, help="goals a system; a campaign has 100")
    parser.add_argument("--systems", nargs="*", default=list(systems.TASK_NAMES))
    parser.add_argument("--published", action="store_true", help="the tasks' own goals only")
    given = parser.parse_args()
    known = Runs(given.cache)
    tasks = {} if given.cached else {name: task_of(name) for name in given.systems}
    goals = itertools.repeat if given.published else random_goals
    streams = {name: goals(task) for name, task in tasks.items()}
    for index in range(given.goals):
        for name, stream in streams.items():
            known.make(f"{name}|{index}", attempt, next(stream), index)
    title = "The tasks' own goals" if given.published else "Random goals of the tasks' boxes"
    print(f"## {title}\n")
    print(table(given.systems, known))
    print("\n## The boxes\n")
    print("Values in metres, then in radians; rotation vectors for objects that rotate freely.\n")
    print(boxes(given.systems))


if __name__ == "__main__":
    main()
