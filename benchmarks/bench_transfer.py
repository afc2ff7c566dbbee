"""Plans executed in MuJoCo at small steps: S3 section IX, in closed loop too.

Every row has the same plans, one a seed, of each system's first task. *As planned*: every segment begins
where it was planned, as S3 measures; Delta-bar is the time average of the object's error over the length of
its planned path, medians over segments; *arrived* are segments that end within the task's tolerances of where
they should. *Carried on*: the object goes from segment to segment as it is, the robot is set to the next
grasp; *reached* are plans at whose end the object is within the task's tolerances of the goal. An object more than
ten times the tolerance off counts as lost.

- *plan*: by the task's own planner. *refined*: that plan, refined. *gentle*: by a planner with a quarter of the
  step (``planning.gentle``), so that springs are never far from where the robot is.
- *open*: commands as planned; *stabilizer*; *mpc*: iMPC along the segment; *replan*: that, and new plans on the way.

``--cache FILE`` keeps every run in a file of JSON lines, and goes on from there; ``--cached`` prints the table of what the file has.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from qdsim import planning, systems
from qdsim.planning import Plan, RRTOptions, Task, TransferOptions

SYSTEMS = (
    "planar_pushing",
    "planar_hand",
    "allegro_sphere",
    "allegro_pen",
    "allegro_plate",
    "allegro_door",
    "iiwa_planar",
    "iiwa_bimanual_box",
    "iiwa_bimanual_cylinder",
    "iiwa_box_push",
)
RUNS = (
    ("plan", "open"),
    ("plan", "mpc"),
    ("plan", "replan"),
    ("refined", "open"),
    ("refined", "mpc"),
    ("gentle", "open"),
    ("gentle", "stabilizer"),
    ("gentle", "mpc"),
    ("gentle", "replan"),
)
OPTIONS = TransferOptions(speed=0.3, timestep=1e-3, control_period=0.1, settle=2.0)
LOST = 10.0


def plan_of(task: Task, kind: str, seed: int) -> Plan | None:
    tree = planning.rrt(task, planner_of(task, kind), rng=seed)
    if not tree.reached:
        return None
    return planning.refine(tree.plan(), task)[0] if kind == "refined" else tree.plan()


def planner_of(task: Task, kind: str) -> RRTOptions:
    own = task.planner or RRTOptions()
    return planning.gentle(own) if kind == "gentle" else own


def execute(
    task: Task, plan: Plan, kind: str, loop: str, carry_on: bool, seed: int
) -> dict[str, Any]:
    options = TransferOptions(
        **{
            name: getattr(OPTIONS, name)
            for name in ("speed", "timestep", "control_period", "settle")
        },
        carry_on=carry_on,
        seed=seed,
    )
    begin = time.process_time()
    found = planning.transfer(
        plan,
        task,
        options,
        controller=loop,  # type: ignore[arg-type]
        planner=planner_of(task, kind),
    )
    return {
        "final": [s.final for s in found.segments],
        "delta": [s.normalized_error for s in found.segments],
        "error": [found.position_error, found.rotation_error],
        "reached": found.reached,
        "plans": found.plans,
        "seconds": time.process_time() - begin,
    }


def runs(
    names: list[str], kinds: list[tuple[str, str]], seeds: int, cache: Path | None
) -> Iterator[tuple[str, str, str, int, dict[str, Any]]]:
    """All runs, those of the file first taken from there."""
    known: dict[str, Any] = {}
    if cache is not None and cache.exists():
        known = {r["key"]: r["run"] for r in map(json.loads, cache.read_text().splitlines())}
    for name in names:
        task = next(iter(systems.load(name).tasks.values()))
        for seed in range(seeds):
            plans: dict[str, Plan | None] = {}
            for kind, loop in kinds:
                key = f"{name} {kind} {loop} {seed}"
                if key not in known:
                    if kind not in plans:
                        plans[kind] = plan_of(task, kind, seed)
                    plan, run = plans[kind], {}
                    if plan is not None:
                        if loop != "replan":
                            run["each"] = execute(task, plan, kind, loop, False, seed)
                        run["whole"] = execute(task, plan, kind, loop, True, seed)
                    known[key] = run
                    if cache is not None:
                        with cache.open("a") as file:
                            file.write(json.dumps({"key": key, "run": run}) + "\n")
                yield name, kind, loop, seed, known[key]


def row(task: Task, name: str, kind: str, loop: str, found: list[dict[str, Any]]) -> str:
    tolerance = np.array([task.position_tolerance, task.rotation_tolerance])
    made = [r for r in found if r]
    if not made:
        return f"| {name} | {kind}, {loop} | no plan | | | | |"
    cells = ["", ""]
    if "each" in made[0]:
        delta = np.concatenate([r["each"]["delta"] for r in made])
        final = np.concatenate([r["each"]["final"] for r in made])
        arrived = (final <= tolerance).all(axis=1)
        middle = [f"{np.nanmedian(c):.2f}" if np.isfinite(c).any() else "-" for c in delta.T]
        cells = [f"{', '.join(middle)}", f"{arrived.sum()} of {len(arrived)}"]
    errors = np.array([r["whole"]["error"] for r in made])
    reached = sum(r["whole"]["reached"] for r in made)
    lost = int((errors > LOST * tolerance).any(axis=1).sum())
    shift, turn = np.median(errors, axis=0)
    far = "lost" if shift > 1.0 else f"{1e3 * shift:.0f} mm, {np.degrees(turn):.1f}"
    plans = np.median([r["whole"]["plans"] for r in made])
    return (
        f"| {name} | {kind}, {loop} | {cells[0]} | {cells[1]} | {reached} of {len(made)} ({lost}) "
        f"| {far} | {plans:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kinds", nargs="*", default=["plan", "refined", "gentle"])
    parser.add_argument("--loops", nargs="*", default=["open", "stabilizer", "mpc", "replan"])
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--cached", action="store_true", help="only what the cache has")
    arguments = parser.parse_args()
    kinds = [r for r in RUNS if r[0] in arguments.kinds and r[1] in arguments.loops]
    if arguments.cached:
        found = _cached(arguments.cache)
    else:
        found = {}
        for name, kind, loop, _, run in runs(
            arguments.systems, kinds, arguments.seeds, arguments.cache
        ):
            found.setdefault((name, kind, loop), []).append(run)
    print("# Transfer to MuJoCo\n")
    print(
        "| system | plans, loop | Delta-bar, position and rotation | segments arrived | reached (lost) "
        "| final error, median (degrees) | plans |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in SYSTEMS:
        task = None
        for kind, loop in RUNS:
            if (name, kind, loop) in found:
                task = task or next(iter(systems.load(name).tasks.values()))
                print(row(task, name, kind, loop, found[name, kind, loop]), flush=True)


def _cached(cache: Path) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in cache.read_text().splitlines():
        entry = json.loads(line)
        name, kind, loop, _ = entry["key"].split()
        found.setdefault((name, kind, loop), []).append(entry["run"])
    return found


if __name__ == "__main__":
    main()
