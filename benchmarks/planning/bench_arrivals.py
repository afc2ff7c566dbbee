"""Plans for users' own scenes, executed in MuJoCo as by ``qdsim plan FILE --goal ... --execute``.

Each run is ``paced``, ``rrt``, and an executor with all of its controllers, with the same seed. The scenes and goals
are those of ``arrival_scenes.py`` and ``robot_scenes.py`` (the latter needs example-robot-data); nothing was tuned
for them. *Reached*: within 20 mm and 0.05 rad, and held for 2 s. Times are in seconds of the simulated world. A plan
may take 60 s of CPU and an execution 90 s. ``--only`` names scenes. ``--cache FILE`` saves every run as a line of
JSON and continues from there. ``--cached`` prints the table of the runs in the file.

``--drawn N`` executes N goals of each scene that are drawn at random (``drawn_goal``; those inside of walls or within
the tolerances of the start are drawn again), from ``--first`` on. The goal's number is the seed of everything. From
the file to the end of the execution a run may take ``WHOLE`` s of CPU. Kinds ending in "off" have another plant:
friction of all contacts, and mass of the object, are 30 % larger or smaller, in all four combinations in turn.
``--kinds`` names the kinds that are run.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from arrival_scenes import DRAWN, GOALS, drawn_goal, scenes
from bench_rrt_goals import in_the_way
from robot_scenes import ROBOT_GOALS, robot_scenes
from runs import Runs, TooLong, arguments, counts, head, limited, report_of

from qdsim import planning
from qdsim.cli import own_tasks, plan

CONTACTS = ("stiff", "default")
EVERY = GOALS | ROBOT_GOALS
PLANNING, CPU, SECONDS = 60, 90, 400.0
WHOLE = 60
OFF = 0.3
KINDS = ("stiff", "default", "stiff off", "default off")


def task_of(name: str, goal: str) -> planning.Task:
    """Make the task as the command line does."""
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    thing = EVERY[name][0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.xml")
        file.write_text((scenes() if name in GOALS else robot_scenes())[name])
        words = [str(file), "--object", thing, "--goal", goal]
        return own_tasks.own_task(parser.parse_args(words))


def goal_that_can_be(name: str, number: int) -> str:
    """Return the first drawn goal that is not inside of a wall, nor reached at the start."""
    for attempt in range(100):
        goal = drawn_goal(name, number, attempt)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task = task_of(name, goal)
        if not in_the_way(task, task.goal) and not task.reached(task.start):
            return goal
    raise RuntimeError(f"no goal number {number} of {name} was found")


def plant_off(task: planning.Task, world: planning.TransferOptions, number: int) -> mujoco.MjModel:
    """Return the plant with other friction of all contacts, and another mass of the object."""
    mj = planning.second_order(task.model, task.object, world)
    friction, mass = (1.0 + OFF * sign for sign in ((-1) ** number, (-1) ** (number // 2)))
    mj.geom_friction *= friction
    mj.pair_friction *= friction
    body = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_BODY, task.object)
    mj.body_mass[body] *= mass
    mj.body_inertia[body] *= mass
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    return mj


def arrived(name: str, kind: str, number: int) -> dict[str, Any]:
    """Make a run to a drawn goal."""
    goal = goal_that_can_be(name, number)
    told: dict[str, Any] = {"goal": goal, "reached": False, "outcome": "no plan"}
    contacts, _, off = kind.partition(" ")
    world = planning.TransferOptions(contacts=contacts, seed=number)  # type: ignore[arg-type]
    options = planning.ExecutorOptions(seed=number, seconds=SECONDS)
    begin = time.process_time()
    with contextlib.suppress(TooLong), limited(WHOLE):
        task = task_of(name, goal)
        task, _ = planning.paced(task, world, rng=number)
        tree = planning.rrt(task, rng=number)
        told["plan"] = time.process_time() - begin
        told["outcome"] = "late"
        loop = planning.Executor(
            task,
            tree.plan() if tree.reached else None,
            plant_off(task, world, number) if off else "mujoco",
            world=world,
            options=options,
            watch=lambda state: told.update(last=str(state)),
        )
        report = loop.run()
        told["seconds"], told["text"] = report.seconds, str(report)
        told["reached"], told["outcome"] = report.reached, report.outcome
        told["error"] = [1e3 * report.position_error, float(np.degrees(report.rotation_error))]
    return told | {"cpu": time.process_time() - begin}


def drawn_table(known: Runs) -> None:
    print("# Arrivals at drawn goals\n")
    print(
        "Goals reached and held, of those that were run; medians of the runs that reach their goals: s of the world; s of"
    )
    print("CPU for the plan, and from the file to the end.\n")
    head("scene", *KINDS)
    for name in DRAWN:
        cells = []
        for kind in KINDS:
            cells.append(cell(known.of(f"{name}|drawn {kind}")))
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()
    head("missed", "kind", "number", "goal", "outcome", "mm, deg")
    for key, run in known.items():
        name, kind, number = key.split("|")
        if kind.startswith("drawn") and not run["reached"]:
            off = ", ".join(f"{e:.0f}" for e in run.get("error", ()))
            words = [name, kind.removeprefix("drawn "), number, f"`{run['goal']}`", run["outcome"]]
            print("| " + " | ".join([*words, off]) + " |")


def executed(name: str, goal: int, contacts: str, seed: int) -> dict[str, Any]:
    """Make one run."""
    world = planning.TransferOptions(contacts=contacts, seed=seed)  # type: ignore[arg-type]
    options = planning.ExecutorOptions(seed=seed, seconds=SECONDS)
    told: dict[str, Any] = {"reached": False, "outcome": "no plan"}
    begin, task = time.process_time(), task_of(name, EVERY[name][1][goal])
    with contextlib.suppress(TooLong), limited(PLANNING):
        task, _ = planning.paced(task, world, rng=seed)
        tree = planning.rrt(task, rng=seed)
        told["plan"] = time.process_time() - begin
        if tree.reached:
            told["outcome"] = "late"
    if told["outcome"] == "no plan":
        return told
    given = {"world": world, "options": options}
    told |= report_of(lambda: planning.Executor(task, tree.plan(), **given), CPU)
    if "error" in told:
        shift, turn = told["error"]
        told["error"] = [1e3 * shift, float(np.degrees(turn))]
    return told


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
    missed = counts(run["outcome"] for run in runs if not run["reached"])
    return words + f" ({missed})" * bool(missed)


def table(known: Runs) -> None:
    print("# Arrivals\n")
    print(
        "Goals reached, of the seeds that were run; seconds of simulated time; seconds of CPU for the plan, and for its"
    )
    print("execution. Times are medians of the runs that reach their goals. -: not run.\n")
    head("scene", "goal", *CONTACTS)
    for name, (_, goals) in EVERY.items():
        for k, goal in enumerate(goals):
            cells = [cell(known.of(f"{name}|{k}|{contacts}")) for contacts in CONTACTS]
            print(f"| {name} | `{goal}` | " + " | ".join(cells) + " |")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="*", default=list(EVERY))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=0, help="number of drawn goals a scene")
    parser.add_argument("--first", type=int, default=0, help="number of the first drawn goal")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    given = parser.parse_args()
    known = Runs(given.cache)
    if given.drawn:
        wanted = product(given.only, given.kinds, range(given.first, given.first + given.drawn))
        for name, kind, number in [] if given.cached else wanted:
            if name in DRAWN:
                known.make(f"{name}|drawn {kind}|{number}", arrived, name, kind, number)
        drawn_table(known)
        return
    for name in [] if given.cached else given.only:
        goals = range(len(EVERY[name][1]))
        for goal, contacts, seed in product(goals, CONTACTS, range(given.seeds)):
            key = f"{name}|{goal}|{contacts}|{seed}"
            known.make(key, executed, name, goal, contacts, seed)
    table(known)


if __name__ == "__main__":
    main()
