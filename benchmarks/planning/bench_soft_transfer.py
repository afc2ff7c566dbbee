"""Are plans made with soft fingertips executed more accurately? A comparison with rigid fingertips in three worlds.

The planar hand and the Allegro hand with ball and with plate are planned once with rigid fingertips (point contacts)
and once with the same hand's soft ones (`qdsim.systems.load("planar_hand_soft")` and so on), with the same planner,
settings and seeds. Plans for the plate take minutes, so its published motion is used (towards the wall, 80 commands,
the last one held), from a start displaced by 3 mm and 0.03 rad at random, as predicted by either model. All are
executed in open loop in

- *MuJoCo*: rigid bodies, point contacts, stiff contacts;
- *fields*: the package's own second-order step with soft tips, pressure fields with friction ellipsoids;
- *Drake*: the same soft tips as hydroelastic contact (`pip install drake`; left out if it is not installed).

*Segments*: every segment begins in its planned state. The table has the segments that end within the task's
tolerances, the medians of the errors at their ends, and Delta over L: the time average of the object's error, divided
by the length of its path. *Whole*: the object stays where each segment leaves it, and the robot moves from grasp to
grasp by collision-free motions; a plan is reached if the object ends within the tolerances of the goal.

``--cache FILE`` saves runs as lines of JSON and makes those that are missing; ``--cached`` prints the runs in the
file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_transfer import quartiles
from runs import Runs, TooLong, arguments, head, limited

import qdsim
from qdsim import planning, systems
from qdsim.array_type import Array
from qdsim.dynamics import DynamicOptions
from qdsim.planning import Plan, RRTOptions, Task, TransferOptions
from qdsim.planning.execution.controller_names import mover_of
from qdsim.planning.execution.execution import Execution
from qdsim.planning.execution.own_plant import judging_options
from qdsim.planning.plans.plan import plan_for
from qdsim.planning.plans.segment import Segment

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worlds"))
from drake_world import DrakeWorld

TASKS = {"planar_hand": "half_turn", "allegro_sphere": "quarter_turn", "allegro_plate": "pick_up"}
TIPS = ("rigid", "soft", "bounded")
"""Fingertips with which plans are made; bounded: rigid tips, and springs pull by at most FORCE, Nm."""
FORCE = 0.8
WORLDS = ("MuJoCo", "fields", "Drake")
TIMESTEP = {"MuJoCo": 1e-3, "fields": 2e-3, "Drake": 2e-3}
COARSER = {"planar_hand": 2.0}
"""For each system, the factor by which its time steps are longer than ``TIMESTEP``."""
NODES = 2000
RESTS = 40
"""Number of steps at the end of the plate's motion in which the last command is held."""
DISPLACED = np.array([3e-3, 3e-3, 0.0, 0.0, 0.0, 0.03])
"""Standard deviations of the plate's start, m and rad."""
PLAN_LIMIT, RUN_LIMIT = 40, 90
"""Limits of a plan and of a run, s of CPU."""


def task_of(name: str, tips: str) -> Task:
    return systems.load(name + ("_soft" if tips == "soft" else "")).tasks[TASKS[name]]


def world_of(name: str, world: str, seed: int) -> TransferOptions:
    h = TIMESTEP[world] * COARSER.get(name, 1.0)
    return TransferOptions(timestep=h, control_period=0.1, settle=0.5, seed=seed)


def plan_of(name: str, tips: str, seed: int) -> Plan | None:
    """Return a plan: paced for the planar hand, gentle for the ball, and the published motion for the plate."""
    task = task_of(name, tips)
    if name == "allegro_plate":
        commands = systems.load("allegro_plate").commands
        return motion_of(task, np.concatenate((commands, [commands[-1]] * RESTS)), seed)
    planner = task.planner or RRTOptions()
    if name == "planar_hand":
        task, planner = planning.paced(task, world_of(name, "MuJoCo", seed), planner, rng=seed)
    else:
        most = FORCE if tips == "bounded" else None
        planner = planning.gentle(planner).replace(max_nodes=NODES, force=most)
    tree = planning.rrt(task, planner, rng=seed)
    return tree.plan() if tree.reached else None


def motion_of(task: Task, commands: Array, seed: int) -> Plan:
    """Return a model's prediction for commands, from key frame "demo" with the object displaced at random."""
    model, rng = task.model, np.random.default_rng(seed)
    shift = np.zeros(model.nv)
    shift[task.space.v] = DISPLACED * rng.standard_normal(task.space.size)
    path = [np.array(model.integrate(np.array(model.keyframes["demo"].q), shift))]
    options = task.options.replace(joint_limits=False)
    for u in commands:
        path.append(np.array(qdsim.step(model, path[-1], u, options).q_next))
    anywhere = task.replace(lower=np.full(6, -1.0), upper=np.full(6, 1.0))
    segment = Segment(np.array(commands), np.array(path), np.array([len(commands)]))
    return plan_for(anywhere.replace(goal=path[-1]), [segment], options, 1e-3)


def execute(name: str, plan: Plan, world: str, seed: int, carry_on: bool) -> dict[str, Any]:
    """Execute a plan; fingertips are rigid in MuJoCo and soft in the other worlds, for all plans."""
    task = task_of(name, "rigid" if world == "MuJoCo" else "soft")
    options = world_of(name, world, seed).replace(carry_on=carry_on)
    begin = time.process_time()
    if world == "Drake":
        found = _in_drake(plan, task, options)
    else:
        judge: Any = None
        if world == "fields":
            judge = judging_options(options, None).replace(patch_friction="ellipsoid")
        found = planning.transfer(plan, task, options, simulator=judge)
    return {
        "final": [s.final for s in found.segments],
        "delta": [s.error for s in found.segments],
        "length": [s.length for s in found.segments],
        "error": [found.position_error, found.rotation_error],
        "reached": found.reached,
        "seconds": time.process_time() - begin,
    }


def _in_drake(plan: Plan, task: Task, options: TransferOptions) -> planning.Transfer:
    """Execute a plan in Drake's world in open loop, as `planning.transfer` does."""
    from qdsim.planning.execution import transfer

    execution = Execution(plan, task.model, DynamicOptions(h=options.timestep), options)
    compensated = not plan.options.gravity_on_actuated
    bounds = plan.bounds(task.model)
    world = DrakeWorld(task.model, execution.space, options, compensated, bounds)
    ends = [q for segment in plan.segments for q in (segment.start, segment.end)]
    world.watch(np.array([*ends, plan.goal]))
    execution.plant = world
    mover_of(execution, None, planning.GaitOptions())
    segments = [execution.run(s) for s in plan.segments if s.steps > 0]
    return transfer._told(execution, segments)


# ------------------------------------------------------------------------------------------------ campaign


def campaign(
    names: list[str], worlds: list[str], parts: list[str], seeds: int, known: Runs
) -> None:
    """Make the runs that are missing. Seeds are the outer loop."""
    for seed, name, tips in itertools.product(range(seeds), names, TIPS):
        if tips == "bounded" and name != "allegro_sphere":
            continue
        labels = {(w, p): f"{name} {tips} {w} {p} {seed}" for p in parts for w in worlds}
        missing = [key for key, label in labels.items() if label not in known]
        for key, run in _runs(name, tips, seed, missing) if missing else ():
            known.keep(labels[key], run)


def _runs(
    name: str, tips: str, seed: int, wanted: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    plan, begin = None, time.process_time()
    with contextlib.suppress(TooLong), limited(PLAN_LIMIT):
        plan = plan_of(name, tips, seed)
    planning_time = time.process_time() - begin
    for world, part in wanted:
        run: dict[str, Any] = {"planned": plan is not None, "planning": planning_time}
        if plan is not None:
            try:
                with limited(RUN_LIMIT):
                    run |= execute(name, plan, world, seed, part == "whole")
            except Exception as error:
                run["failed"] = f"{type(error).__name__}: {error}"
        yield (world, part), run


# ------------------------------------------------------------------------------------------------ table


def share(count: int, of: int) -> str:
    """Write a share with Wilson's interval of 95 %."""
    if of == 0:
        return "-"
    z, p = 1.96, count / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    low, high = 100 * max(middle - half, 0.0), 100 * (middle + half)
    return f"{count} of {of} ({low:.0f} to {high:.0f} %)"


def row(name: str, world: str, tips: str, known: dict[str, Any], seeds: int) -> str:
    tolerance = np.array(
        [task_of(name, tips).position_tolerance, task_of(name, tips).rotation_tolerance]
    )

    def found(part: str) -> list[dict[str, Any]]:
        keys = [" ".join((name, tips, world, part, str(seed))) for seed in range(seeds)]
        return [known[key] for key in keys if key in known]

    each, whole = found("each"), found("whole")
    runs = each or whole
    planned = [r for r in runs if r["planned"]]
    cells = [name, world, tips, f"{len(planned)} of {len(runs)}"]
    cells.append(f"{np.median([r['planning'] for r in planned]):.1f}" if planned else "-")
    done = [r for r in each if r.get("final")]
    if done:
        final = np.concatenate([r["final"] for r in done])
        delta = np.concatenate([r["delta"] for r in done])
        length = np.concatenate([r["length"] for r in done])
        arrived = int(np.all(final <= tolerance, axis=1).sum())
        shift, turn = np.median(final, axis=0)
        cells += [share(arrived, len(final)), f"{1e3 * shift:.1f} mm, {np.degrees(turn):.1f}"]
        cells += [quartiles(delta[:, k], length[:, k]) for k in range(2)]
    else:
        cells += ["-"] * 4
    done = [r for r in whole if "error" in r]
    late = sum("failed" in r for r in each + whole)
    if done:
        shift, turn = np.median([r["error"] for r in done], axis=0)
        cells += [share(sum(r["reached"] for r in done), len(done))]
        cells += [f"{1e3 * shift:.0f} mm, {np.degrees(turn):.1f}"]
    else:
        cells += ["-", "-"]
    return "| " + " | ".join([*cells, str(late)]) + " |"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--systems", nargs="*", default=list(TASKS))
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--parts", nargs="*", default=["each", "whole"])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    worlds = list(given.worlds)
    if importlib.util.find_spec("pydrake") is None and not given.cached:
        worlds.remove("Drake")
    known = Runs(given.cache)
    if not given.cached:
        campaign(given.systems, worlds, given.parts, given.seeds, known)
    plans = "planned with tips that are", "plans found", "s of CPU, median", "segments arrived"
    errors = "errors at their ends, median (degrees)", "Delta over L, position", "rotation"
    ends = "whole plans reached", "error, median (degrees)", "failed or too long"
    head("system", "world", *plans, *errors, *ends)
    for name in given.systems:
        for world in given.worlds:
            for tips in TIPS[: 3 if name == "allegro_sphere" else 2]:
                print(row(name, world, tips, known, given.seeds), flush=True)


if __name__ == "__main__":
    main()
