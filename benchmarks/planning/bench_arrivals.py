"""Plans for users' own scenes, executed in MuJoCo as by ``qdsim plan FILE --goal ... --execute``.

Each run is ``paced``, ``rrt``, and an executor with all of its controllers, with the same seed. The scenes and goals
are those of ``arrival_scenes.py`` and ``robot_scenes.py`` (the latter needs example-robot-data); nothing was tuned
for them. *Reached*: within 20 mm and 0.05 rad, and held for 2 s. Times are in seconds of the simulated world. A plan
may take 60 s of CPU and an execution 90 s. ``--only`` names scenes. ``--cache FILE`` saves every run as a line of
JSON and continues from there. ``--cached`` prints the table of the runs in the file.
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
from bench_transfer import TooLong, limited
from robot_scenes import ROBOT_GOALS, robot_scenes

from qdsim import planning
from qdsim.cli import own_tasks, plan

CONTACTS = ("stiff", "default")
EVERY = GOALS | ROBOT_GOALS
PLANNING, CPU, SECONDS = 60, 90, 400.0


def task_of(name: str, goal: int) -> planning.Task:
    """Make the task as the command line does."""
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    thing, goals = EVERY[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.xml")
        file.write_text((scenes() if name in GOALS else robot_scenes())[name])
        words = [str(file), "--object", thing, "--goal", goals[goal]]
        return own_tasks.own_task(parser.parse_args(words))


def executed(name: str, goal: int, contacts: str, seed: int) -> dict[str, Any]:
    """Make one run."""
    world = planning.TransferOptions(contacts=contacts, seed=seed)  # type: ignore[arg-type]
    options = planning.ExecutorOptions(seed=seed, seconds=SECONDS)
    told: dict[str, Any] = {"reached": False, "outcome": "no plan"}
    begin, task = time.process_time(), task_of(name, goal)
    with contextlib.suppress(TooLong), limited(PLANNING):
        task, _ = planning.paced(task, world, rng=seed)
        tree = planning.rrt(task, rng=seed)
        told["plan"] = time.process_time() - begin
        if tree.reached:
            told["outcome"] = "late"
    if told["outcome"] == "no plan":
        return told
    begin = time.process_time()
    with contextlib.suppress(TooLong), limited(CPU):
        report = planning.Executor(task, tree.plan(), world=world, options=options).run()
        told["seconds"], told["text"] = report.seconds, str(report)
        told["reached"], told["outcome"] = report.reached, report.outcome
        told["error"] = [1e3 * report.position_error, float(np.degrees(report.rotation_error))]
    return told | {"cpu": time.process_time() - begin}


def cell(runs: list[dict[str, Any]]) -> str:
    """Describe the runs of a goal: outcomes, median times, and kinds of misses."""
    if not runs:
        return "-"
    good = [run for run in runs if run["reached"]]
    words = f"{len(good)} of {len(runs)}"
    if good:
        seconds, search, cpu = (
            float(np.median([run[k] for run in good])) for k in ("seconds", "plan", "cpu")
        )
        words += f"; {seconds:.0f}; {search:.1f}, {cpu:.0f}"
    missed = [run["outcome"] for run in runs if not run["reached"]]
    told = ", ".join(f"{missed.count(w)} {w}" for w in dict.fromkeys(missed))
    return words + f" ({told})" * bool(missed)


def table(known: dict[str, Any]) -> None:
    print("# Arrivals\n")
    print(
        "Goals reached, of the seeds that were run; seconds of simulated time; seconds of CPU for the plan, and for its"
    )
    print("execution. Times are medians of the runs that reach their goals. -: not run.\n")
    print("| scene | goal | " + " | ".join(CONTACTS) + " |")
    print("| --- | --- |" + " --- |" * len(CONTACTS))
    for name, (_, goals) in EVERY.items():
        for k, goal in enumerate(goals):
            starts = [f"{name}|{k}|{contacts}|" for contacts in CONTACTS]
            cells = [cell([run for key, run in known.items() if key.startswith(s)]) for s in starts]
            print(f"| {name} | `{goal}` | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(EVERY))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--cached", action="store_true", help="only what the cache has")
    arguments = parser.parse_args()
    known: dict[str, Any] = {}
    cache: Path | None = arguments.cache
    if cache is not None and cache.exists():
        known = {r["key"]: r["run"] for r in map(json.loads, cache.read_text().splitlines())}
    for name in [] if arguments.cached else arguments.only:
        goals = range(len(EVERY[name][1]))
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
