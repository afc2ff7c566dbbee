"""Plan a task of a published system and write the plan. Exit status 1 if the goal is not reached or the plan is not
good."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.replay import judged
from qdsim.cli.sources import add_json, load_system

if TYPE_CHECKING:
    from qdsim.planning import Task

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``qdsim plan``."""
    parser.add_argument(
        "task",
        metavar="SYSTEM[/TASK]",
        help="a published system and one of its tasks; without one its first",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the planner")
    parser.add_argument("-o", "--output", metavar="PLAN", help="file to write, .npz")
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Plan, judge, write."""
    from qdsim.planning import rrt

    if arguments.seed < 0:
        raise UnusableError(f"--seed: must not be negative, got {arguments.seed}")
    task = _task(arguments.task)
    tree = rrt(task, rng=arguments.seed, progress=sys.stderr.isatty())
    report = {"task": task.name, "seed": arguments.seed, "reached": tree.reached}
    report |= {"nodes": tree.count, "seconds": tree.seconds}
    if not tree.reached:
        said = f"{task.name}: the goal is not reached in {tree.count} nodes; try another --seed"
        return Outcome(report, (said,), good=False)
    plan = tree.plan()
    verdict, rows = judged(plan, task.model)
    report |= verdict
    rows = [("planning", f"{tree.seconds:.2f} s, {tree.count} nodes"), *rows]
    lines = [task.name, *(f"  {line}" for line in table(rows))]
    if arguments.output is not None:
        plan.save(arguments.output)
        report["plan"] = arguments.output
        lines.append(f"  written in {arguments.output}")
    return Outcome(report, lines, bool(verdict["good"]))


def _task(name: str) -> Task:
    system_name, _, task_name = name.partition("/")
    system = load_system(system_name)
    known = list(system.tasks)
    if not known:
        raise UnusableError(f"{system_name}: this system has no task to plan")
    if task_name and task_name not in known:
        raise UnusableError(f"{system_name} has no task {task_name!r}; it has {', '.join(known)}")
    return system.tasks[task_name or known[0]]
