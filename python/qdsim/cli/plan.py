"""Plan how a robot moves an object, for a published system or your own robot file. Write the plan,
execute it in MuJoCo, and make a movie. Ctrl-C ends the search with the plan that comes nearest to
the goal, and an execution with the plan. The exit status is 1 if the goal is not reached or the
plan is not good, 130 after Ctrl-C."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qdsim.cli.goals import goal_of
from qdsim.cli.outcome import Outcome, UnusableError, table
from qdsim.cli.own_tasks import own_task
from qdsim.cli.replay import judged
from qdsim.cli.sources import (
    add_json,
    add_loading,
    check_seed,
    is_archive,
    load_system,
    loading,
    refuse,
)

if TYPE_CHECKING:
    from qdsim.planning import ExecutedMotion, Plan, RRTOptions, Task, Transfer, Tree

__all__ = ["add_arguments", "run"]

_SAVED = 2.0
"""Time between two saves of a search, s."""

_LONGEST = 15.0
"""Duration of a movie of an execution, s; longer executions are shown faster."""

_OWN = ("--start", "--h", "--margin", "--sampler")
"""Flags that do not apply to published tasks, which fix these values themselves."""

_LOOPS = ("auto", "open", "stabilizer", "mpc", "replan", "renew", "grip", "gait")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``qdsim plan``."""
    parser.add_argument(
        "task",
        metavar="FILE|SYSTEM[/TASK]",
        help="a robot file with an object, or a published system and one of its tasks (default: the first)",
    )
    goal = parser.add_argument_group("the task")
    goal.add_argument(
        "--object", metavar="BODY", help="the object to move; needed only if there are several"
    )
    goal.add_argument(
        "--goal",
        metavar="POSE",
        help="'x y z', 'x y z yaw' or 'x y z qw qx qy qz' for a free object, else the positions of its joints; m and "
        "rad, or 90deg. In place of a number: - keeps the value of the start, free accepts any value, 0.1..0.2 accepts an "
        "interval. 'x y z free': position only; 'upright': z axis up; 'x y z upright': both. Without an orientation, "
        "rotations of a round object about its axis are free",
    )
    goal.add_argument("--start", metavar="KEY", help="key frame of the start; default: the first")
    goal.add_argument(
        "--position-tolerance", type=float, metavar="M", help="default for robot files: 0.02"
    )
    goal.add_argument(
        "--rotation-tolerance", type=float, metavar="RAD", help="default for robot files: 0.05"
    )
    goal.add_argument(
        "--h", type=float, metavar="S", help="time step, s; default for robot files: 0.1"
    )
    goal.add_argument(
        "--margin", type=float, metavar="M", help="largest distance of contacts, for robot files"
    )
    goal.add_argument(
        "--sampler",
        choices=("surface", "none"),
        help="new grasps, for robot files: anywhere on the object's surface (default), or none",
    )
    search = parser.add_argument_group("the search")
    search.add_argument("--seed", type=int, default=0, help="seed of the planner")
    search.add_argument(
        "--max-nodes", type=int, metavar="N", help="largest number of nodes of the search"
    )
    search.add_argument(
        "--step", type=float, metavar="U", help="longest change of the command on one edge"
    )
    search.add_argument(
        "--keep",
        metavar="FILE",
        help="save the search in this file, and continue it if the file exists",
    )
    search.add_argument(
        "--motions", action="store_true", help="add collision-free motions between grasps"
    )
    end = parser.add_argument_group("the plan")
    end.add_argument("-o", "--output", "--out", metavar="PLAN", help="file to write, .npz")
    end.add_argument(
        "--film",
        metavar="FILE",
        help="movie of the execution or, without --execute, of the plan: .gif, .mp4, .webm; .html: a page; "
        ".png: key frames",
    )
    end.add_argument(
        "--execute",
        nargs="?",
        const="auto",
        choices=_LOOPS,
        metavar="LOOP",
        help="plan at the speed of an execution, and execute the plan in MuJoCo: open, stabilizer, mpc, replan, renew, grip "
        "or gait; without LOOP, a controller is chosen for the task",
    )
    add_loading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> Outcome:
    """Plan, check, write, execute and draw; print the warnings at the end, one of each kind."""
    _check(arguments)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        outcome = _planned(arguments)
    kinds = _kinds(str(warning.message) for warning in heard)
    lines = [*outcome.lines, *(f"  warning: {text}" for text in kinds)]
    return dataclasses.replace(outcome, report={**outcome.report, "warnings": kinds}, lines=lines)


def _planned(arguments: argparse.Namespace) -> Outcome:
    task = _task(arguments)
    planner = _planner(task, arguments)
    if arguments.execute is not None:
        task, planner = _paced(task, planner, arguments.seed)
    tree, interrupted = _search(task, planner, arguments)
    report: dict[str, Any] = {"task": task.name, "seed": arguments.seed, "reached": tree.reached}
    report |= {"nodes": tree.count, "seconds": tree.seconds}
    plan = tree.plan(None if tree.reached else tree.best_node)
    if arguments.motions:
        plan, stopped = _with_motions(plan, task, report)
        interrupted |= stopped
    verdict, rows = judged(plan, task.model) if plan.segments else ({"good": False}, [])
    report |= verdict
    rows = [("planning", f"{tree.seconds:.2f} s, {tree.count} nodes"), *rows]
    lines = [task.name, *(f"  {line}" for line in table(rows))]
    if not tree.reached:
        lines.append(f"  {_short_of(tree, interrupted)}")
    if arguments.output is not None and plan.segments:
        plan.save(arguments.output)
        report["plan"] = arguments.output
        lines.append(f"  written in {arguments.output}")
    good = bool(verdict["good"])
    shown: Plan | ExecutedMotion = plan
    if arguments.execute is not None and tree.reached:
        _tell(lines, arguments)
        arrived = _executed(plan, task, arguments, report, lines)
        good &= arrived is not None and arrived.reached
        interrupted |= arrived is None
        if arrived is not None:
            shown = arrived.motion
    if arguments.film is not None and plan.segments:
        interrupted |= _filmed(shown, task, arguments.film, report, lines)
    report["interrupted"] = interrupted
    return Outcome(report, lines, good, interrupted)


def _tell(lines: list[str], arguments: argparse.Namespace) -> None:
    """Print the lines so far before a long part begins; the others follow at the end."""
    if not arguments.json:
        print("\n".join(lines), flush=True)
        lines.clear()


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments that can be checked before anything is loaded."""
    check_seed(arguments.seed)
    for name in ("h", "margin", "step", "position_tolerance", "rotation_tolerance"):
        value = getattr(arguments, name)
        if value is not None and not 0.0 < value < float("inf"):
            flag = "--" + name.replace("_", "-")
            raise UnusableError(f"{flag}: must be positive and finite, got {value:g}")
    if arguments.max_nodes is not None and arguments.max_nodes < 1:
        raise UnusableError(f"--max-nodes: must be positive, got {arguments.max_nodes}")
    for flag, path in (("--output", arguments.output), ("--film", arguments.film)):
        folder = os.path.dirname(path or "")
        if folder and not os.path.isdir(folder):
            raise UnusableError(f"{flag}: there is no folder {folder!r} for {path}")
    film = arguments.film
    if film is not None and not film.endswith((".png", ".gif", ".mp4", ".webm", ".html")):
        raise UnusableError(
            f"--film: expected .png, .gif, .mp4, .webm or .html, got {arguments.film!r}"
        )


def _kinds(texts: Iterable[str]) -> list[str]:
    """Return one text of each kind; texts that differ only in numbers are of one kind."""
    kinds = {re.sub(r"[\d.]+( contacts? (is|are))?", "", text): text for text in texts}
    return list(kinds.values())


# -------------------------------------------------------------------- the task


def _task(arguments: argparse.Namespace) -> Task:
    name = arguments.task
    if is_archive(name):
        raise UnusableError(f"{name}: an archive of arrays, not a robot file; try 'qdsim replay'")
    if os.path.exists(name):
        return own_task(arguments)
    system_name, _, task_name = name.partition("/")
    system = load_system(system_name, path=name)
    refuse(arguments, _OWN, f"is for own robot files; {system_name} is a published system")
    loading(arguments, name)
    known = list(system.tasks)
    if not known:
        raise UnusableError(f"{system_name}: this system has no task to plan")
    if task_name and task_name not in known:
        raise UnusableError(f"{system_name} has no task {task_name!r}; it has {', '.join(known)}")
    task = system.tasks[task_name or known[0]]
    if arguments.object not in (None, task.object):
        raise UnusableError(f"--object: {task.name} moves {task.object!r}")
    changes = {
        key: value
        for key in ("position_tolerance", "rotation_tolerance")
        if (value := getattr(arguments, key)) is not None
    }
    if arguments.goal is None:
        return task.replace(**changes) if changes else task
    goal, region = goal_of(task.model, task.space, task.start, arguments.goal)
    try:
        return task.towards(goal, goal_region=region, **changes)
    except ValueError as error:
        raise UnusableError(str(error)) from None


def _planner(task: Task, arguments: argparse.Namespace) -> RRTOptions:
    from qdsim.planning import RRTOptions

    asked = {"max_nodes": arguments.max_nodes, "step": arguments.step}
    given = {name: value for name, value in asked.items() if value is not None}
    return (task.planner or RRTOptions()).replace(**given)


def _paced(task: Task, planner: RRTOptions, seed: int) -> tuple[Task, RRTOptions]:
    from qdsim.planning import TransferOptions, paced

    return paced(task, TransferOptions(), planner, rng=seed)


# -------------------------------------------------------------------- the search


def _search(task: Task, planner: RRTOptions, arguments: argparse.Namespace) -> tuple[Tree, bool]:
    """Search; return the tree and whether Ctrl-C ended the search. Then it is the tree that was saved last."""
    from qdsim.planning import Tree, rrt

    with tempfile.TemporaryDirectory() as folder:
        file = arguments.keep or os.path.join(folder, "search.npz")
        try:
            tree = rrt(
                task,
                planner,
                rng=arguments.seed,
                progress=sys.stderr.isatty(),
                checkpoint=file,
                checkpoint_seconds=_SAVED,
            )
        except KeyboardInterrupt:
            if not os.path.exists(file):
                raise
            return Tree.load(file, task, planner), True
        except ValueError as error:  # a saved search of another task, or a sampler without tips
            raise UnusableError(str(error)) from None
    return tree, False


def _short_of(tree: Tree, interrupted: bool) -> str:
    """Return a message on the distance of a tree from the goal, with suggestions."""
    shift, turn = tree.errors[tree.best_node].tolist()
    how = "interrupted" if interrupted else f"the goal is not reached in {tree.count} nodes"
    return (
        f"{how}: this plan ends {shift:.3f} m and {turn:.3f} rad from the goal; "
        "try another --seed, more --max-nodes or another --step"
    )


def _with_motions(plan: Plan, task: Task, report: dict[str, Any]) -> tuple[Plan, bool]:
    """Return the plan with motions, and whether Ctrl-C ended their search, so that the plan is unchanged."""
    from qdsim.planning import connect_segments

    try:
        plan, reasons = connect_segments(plan, task)
    except KeyboardInterrupt:
        return plan, True
    report["missing_motions"] = [reason for reason in reasons if reason is not None]
    return plan, False


# -------------------------------------------------------------------- execution and pictures


def _executed(
    plan: Plan,
    task: Task,
    arguments: argparse.Namespace,
    report: dict[str, Any],
    lines: list[str],
) -> Transfer | None:
    """Execute a plan of the paced task and report; return the result, or None after Ctrl-C."""
    from qdsim.planning import transfer

    try:
        told = transfer(plan, task, controller=arguments.execute, progress=sys.stderr.isatty())
    except KeyboardInterrupt as stopped:
        lines.append(f"  the execution was interrupted {stopped}".rstrip())
        return None
    report["execution"] = {
        "loop": told.controller,
        "outcome": told.outcome,
        "position_error": told.position_error,
        "rotation_error": told.rotation_error,
        "plans": told.plans,
    }
    lines.append(
        f"  executed in {told.world}, {told.way}: {told.outcome}, "
        f"{told.position_error:.4f} m and {told.rotation_error:.4f} rad from the goal"
    )
    if not told.reached:
        others = [name for name in ("replan", "gait", "renew") if name != told.controller]
        lines.append(f"  try another --seed, or --execute {' or '.join(others)}")
    return told


def _filmed(
    shown: Plan | ExecutedMotion, task: Task, path: str, report: dict[str, Any], lines: list[str]
) -> bool:
    """Draw key frames, a movie or a page; return True if Ctrl-C ended it."""
    try:
        _draw(shown, task, path)
    except KeyboardInterrupt as stopped:
        lines.append(f"  interrupted before {path} was drawn, {stopped}".rstrip(", "))
        return True
    report["film"] = path
    lines.append(f"  drawn in {path}")
    return False


def _draw(shown: Plan | ExecutedMotion, task: Task, path: str) -> None:
    if path.endswith(".html"):
        from qdsim import viewer

        viewer.save_html(shown, path, task.model)
        return
    from qdsim.planning import ExecutedMotion, pictures

    model, bar, is_still = task.model, sys.stderr.isatty(), path.endswith(".png")
    if isinstance(shown, ExecutedMotion):
        speed = max(1.0, shown.t[-1] / _LONGEST)
        if is_still:
            pictures.draw_execution(shown, model, path)
        else:
            pictures.write_execution(shown, model, [path], speed=speed, progress=bar)
        return
    replay = shown.replay(model)
    if is_still:
        pictures.draw_key_frames(shown, replay, model, path)
    else:
        pictures.write_movie(shown, replay, model, [path], progress=bar)
