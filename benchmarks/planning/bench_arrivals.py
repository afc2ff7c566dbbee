"""Plans for scenes of people's own, executed in MuJoCo as ``qdsim plan FILE --goal ... --execute`` does: ``paced``,
``rrt``, and an executor with all that it has, from the same seed.

The scenes and goals are those of ``arrival_scenes.py``; nothing was tuned for them. *Reached*: within 20 mm and 0.05 rad,
and held for 2 s. Seconds are those of the simulated world; a plan may take 60 s of CPU and an execution 90. ``--only``
names scenes; ``--cache FILE`` keeps every run in a file of JSON lines, and goes on from there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from arrival_scenes import GOALS, scenes
from bench_transfer import _TooLong, limited

from qdsim import planning
from qdsim.cli import own_tasks, plan

CONTACTS = ("stiff", "default")
PLANNING, CPU, SECONDS = 60, 90, 400.0


def task_of(name: str, goal: int) -> planning.Task:
    """As the command line makes it."""
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    thing, goals = GOALS[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.xml")
        file.write_text(scenes()[name])
        words = [str(file), "--object", thing, "--goal", goals[goal]]
        return own_tasks.own_task(parser.parse_args(words))


def executed(name: str, goal: int, contacts: str, seed: int) -> dict[str, Any]:
    """One run."""
    world = planning.TransferOptions(contacts=contacts, seed=seed)  # type: ignore[arg-type]
    options = planning.ExecutorOptions(seed=seed, seconds=SECONDS)
    told: dict[str, Any] = {"reached": False, "outcome": "no plan"}
    begin, task = time.process_time(), task_of(name, goal)
    with contextlib.suppress(_TooLong), limited(PLANNING):
        task, _ = planning.paced(task, world, rng=seed)
        tree = planning.rrt(task, rng=seed)
        told["plan"] = time.process_time() - begin
        if tree.reached:
            told["outcome"] = "late"
    if told["outcome"] == "no plan":
        return told
    begin = time.process_time()
    with contextlib.suppress(_TooLong), limited(CPU):
        report = planning.Executor(task, tree.plan(), world=world, options=options).run()
        told["seconds"], told["text"] = report.seconds, str(report)
        told["reached"], told["outcome"] = report.reached, report.outcome
        told["error"] = [1e3 * report.position_error, float(np.degrees(report.rotation_error))]
    return told | {"cpu": time.process_time() - begin}


def table(known: dict[str, Any]) -> None:
    print("# Arrivals\n")
    print("| scene | goal | contacts | seed | outcome | mm | deg | s | s of CPU: plan, execution |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for key, run in known.items():
        name, goal, contacts, seed = key.split("|")
        shift, turn = run.get("error", (np.nan, np.nan))
        print(
            f"| {name} | {GOALS[name][1][int(goal)]} | {contacts} | {seed} | {run['outcome']} "
            f"| {shift:.1f} | {turn:.1f} | {run.get('seconds', np.nan):.0f} "
            f"| {run.get('plan', np.nan):.1f}, {run.get('cpu', np.nan):.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(GOALS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=None)
    arguments = parser.parse_args()
    known: dict[str, Any] = {}
    cache: Path | None = arguments.cache
    if cache is not None and cache.exists():
        known = {r["key"]: r["run"] for r in map(json.loads, cache.read_text().splitlines())}
    for name in arguments.only:
        goals = range(len(GOALS[name][1]))
        for goal, contacts, seed in product(goals, CONTACTS, range(arguments.seeds)):
            key = f"{name}|{goal}|{contacts}|{seed}"
            if key in known:
                continue
            known[key] = executed(name, goal, contacts, seed)
            if cache is not None:
                with cache.open("a") as file:
                    file.write(json.dumps({"key": key, "run": known[key]}) + "\n")
    table(known)


if __name__ == "__main__":
    main()
