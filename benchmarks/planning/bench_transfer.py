"""Plans executed in MuJoCo at small steps: CQDC section IX, in closed loop, too.

Every row has the same seeds, with one plan for each seed, of each system's first task. In open loop, every segment
first begins in its planned state, as in CQDC. *Delta-bar* is the time average of the object's error, divided by the
length of its planned path (median and quartiles over segments). *Arrived*: segments that end within the task's
tolerances. In closed loop, these two are those of the execution. *Executed*: the object stays where each segment
leaves it, and the robot moves from grasp to grasp by collision-free motions. *Reached*: plans after which the object
is within the task's tolerances of the goal. An object that is off by more than ten times the tolerance counts as
lost; a run that exceeds its time limit counts as not reached.

- Worlds: *published*, that of CQDC: objects have the joint damping of the released models (100 for the pushed box,
  otherwise none) and no plane. *plane*: planar objects lie on a plane with friction 0.5. *damped*: objects that
  nothing supports come to rest within a tenth of a second, as in the quasi-dynamic model (pen and door, without
  gravity).
- *plan*: by the task's own planner. *refined*: this plan after refinement. *paced*: by ``planning.paced``, with edges
  at the speed of the execution and with the resistance of the world. *strokes*: by ``planning.gait``.
- *open*: planned commands. *mpc*: iMPC along the segment. *replan*: the same, and new plans during the execution.
  *renew*: planned commands, and new plans during the execution. *gait*: strokes found during the execution, to the
  goal of the plan.

``--cache FILE ...`` reads runs from files of JSON lines, makes those that are missing, and adds them to the first
file. ``--cached`` prints the table of the runs in the files. Seeds are the outer loop, so that an unfinished run has
about as many seeds of each system.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from runs import Runs, TooLong, head, limited

from qdsim import planning, systems
from qdsim.array_type import Array
from qdsim.planning import Plan, RRTOptions, Task, TransferOptions

SYSTEMS = (
    "planar_pushing",
    "planar_hand",
    "allegro_sphere",
    "allegro_pen",
    "allegro_plate",
    "allegro_book",
    "allegro_door",
    "iiwa_planar",
    "iiwa_bimanual_box",
    "iiwa_bimanual_cylinder",
    "iiwa_box_push",
)
PLANAR = ("planar_pushing", "planar_hand", "iiwa_planar")
PUBLISHED_DAMPING = {"planar_pushing": 100.0}
Key = tuple[str, str, str]
"""World, plans, loop."""
PLANAR_RUNS: tuple[Key, ...] = (
    ("published", "plan", "open"),
    ("published", "refined", "open"),
    ("plane", "plan", "open"),
    ("plane", "refined", "open"),
    ("plane", "paced", "open"),
    ("plane", "plan", "mpc"),
    ("plane", "refined", "mpc"),
    ("plane", "paced", "replan"),
)
STROKES: tuple[Key, ...] = (("plane", "strokes", "open"), ("plane", "strokes", "gait"))
SPATIAL_RUNS: tuple[Key, ...] = (
    ("published", "plan", "open"),
    ("published", "refined", "open"),
    ("published", "paced", "open"),
    ("published", "plan", "mpc"),
    ("published", "refined", "mpc"),
    ("published", "paced", "mpc"),
)
HAND_RUNS: tuple[Key, ...] = (
    ("published", "plan", "open"),
    ("published", "paced", "replan"),
    ("published", "paced", "open"),
    ("published", "refined", "open"),
    ("published", "plan", "mpc"),
    ("published", "refined", "mpc"),
)
DAMPED_RUNS: tuple[Key, ...] = (
    ("published", "plan", "open"),
    ("damped", "paced", "replan"),
    ("damped", "paced", "open"),
    ("damped", "plan", "open"),
    ("damped", "refined", "open"),
    ("damped", "plan", "mpc"),
    ("damped", "refined", "mpc"),
)
FLOATING_RUNS: tuple[Key, ...] = (
    ("plane", "plan", "open"),
    ("plane", "refined", "open"),
    ("plane", "paced", "open"),
    ("plane", "plan", "renew"),
    ("plane", "refined", "renew"),
    ("plane", "paced", "renew"),
)
"""Runs of objects without gravity that arms push; if nothing resists them, they fly away at the first contact."""
RUNS: dict[str, tuple[Key, ...]] = {
    "allegro_pen": DAMPED_RUNS,
    "allegro_door": DAMPED_RUNS,
    "allegro_book": HAND_RUNS,
    "allegro_plate": HAND_RUNS,
    "planar_hand": PLANAR_RUNS + STROKES,
    "iiwa_planar": PLANAR_RUNS + STROKES,
    "iiwa_bimanual_box": (
        ("published", "plan", "open"),
        ("published", "paced", "open"),
        ("published", "paced", "replan"),
    ),
    "iiwa_bimanual_cylinder": FLOATING_RUNS,
    "iiwa_box_push": FLOATING_RUNS,
}
"""Runs of the systems that differ from those above."""
PERIODS = {"grip": 0.05, "gait": 0.05}
"""Control periods of loops that differ from the others, s."""
PLANNERS: dict[str, dict[str, Any]] = {
    "allegro_book": {"require_static_regrasps": True},
    "allegro_plate": {"require_static_regrasps": True},
}
"""For each system, changes of the task's settings for paced plans."""
WORLDS: dict[str, dict[str, Any]] = {
    "allegro_pen": {"press": 0.3},
    "allegro_plate": {"press": 8.0},
    "allegro_door": {"press": 0.3},
}
"""For each system, changes of the options of the execution."""
STOPS = 0.1
"""Time in which the speed of a damped object that nothing supports falls to 1/e, s."""
OPTIONS = TransferOptions(timestep=1e-3, control_period=0.1, settle=1.0)
PLAN_LIMIT, RUN_LIMIT = 40, 60
"""Limits of a plan and of a run, s of CPU."""
LOST = 10.0
FRAMES = 6


def world_of(name: str, world: str) -> TransferOptions:
    options = OPTIONS.replace(**WORLDS.get(name, {}))
    if world == "published":
        damping = PUBLISHED_DAMPING.get(name, 0.0)
        options = options.replace(support_friction=0.0, object_damping=damping)
    elif world == "damped":
        task = next(iter(systems.load(name).tasks.values()))
        mass = np.diag(task.model.mass_matrix(task.start))[task.space.v]
        rates = tuple((mass / STOPS).tolist())
        options = options.replace(support_friction=0.0, object_damping=rates)
    return options


def runs_of(name: str) -> tuple[Key, ...]:
    return RUNS.get(name, PLANAR_RUNS if name in PLANAR else SPATIAL_RUNS)


def plan_of(
    task: Task, name: str, kind: str, options: TransferOptions, seed: int
) -> tuple[Plan, Task, RRTOptions] | None:
    planner = task.planner or RRTOptions()
    if kind == "strokes":
        strokes = planning.gait(task, rng=seed)
        return None if strokes is None else (strokes, task, planner)
    if kind == "paced":
        planner = planner.replace(**PLANNERS.get(name, {}))
        task, planner = planning.paced(task, options, planner, rng=seed)
    tree = planning.rrt(task, planner, rng=seed)
    if not tree.reached:
        return None
    plan = planning.refine(tree.plan(), task)[0] if kind == "refined" else tree.plan()
    return plan, task, planner


def execute(
    made: tuple[Plan, Task, RRTOptions], options: TransferOptions, loop: str
) -> dict[str, Any]:
    plan, task, planner = made
    begin = time.process_time()
    period = PERIODS.get(loop, options.control_period)
    options = options.replace(control_period=period)
    told = {"controller": loop, "planner": planner if loop in ("replan", "renew") else None}
    found = planning.transfer(plan, task, options, **told)
    return {
        "final": [s.final for s in found.segments],
        "delta": [s.error for s in found.segments],
        "length": [s.length for s in found.segments],
        "error": [found.position_error, found.rotation_error],
        "reached": found.reached,
        "plans": found.plans,
        "missing_motions": found.missing_motions,
        "seconds": time.process_time() - begin,
    }


def run_of(task: Task, name: str, key: Key, seed: int, plans: dict[Any, Any]) -> dict[str, Any]:
    """Make a run; the result is empty if there is no plan."""
    world, kind, loop = key
    options = world_of(name, world)
    where = (world if kind == "paced" else "", kind)
    if where not in plans:
        plans[where] = None
        with contextlib.suppress(TooLong), limited(PLAN_LIMIT):
            plans[where] = plan_of(task, name, kind, options, seed)
    made, run = plans[where], {}
    if made is None:
        return {}
    options = options.replace(seed=seed)
    parts = [("each", False)] if loop == "open" else []
    if world == "plane" or name not in PLANAR:
        parts += [("whole", True)]
    for part, carry_on in parts:
        run[part] = {"late": True}
        with contextlib.suppress(TooLong), limited(RUN_LIMIT):
            run[part] = execute(made, options.replace(carry_on=carry_on), loop)
    return run


def runs(
    names: list[str], wanted: Callable[[Key], bool], seeds: int, caches: list[Path]
) -> Iterator[tuple[str, Key, dict[str, Any]]]:
    """Return all runs; those in the files are taken from there, new ones are added to the first file."""
    known = Runs(*caches)
    for seed in range(seeds):
        for name in names:
            task = next(iter(systems.load(name).tasks.values()))
            plans: dict[Any, Any] = {}
            for key in filter(wanted, runs_of(name)):
                label = " ".join((name, *key, str(seed)))
                known.make(label, run_of, task, name, key, seed, plans)
                yield name, key, known[label]


def row(task: Task, name: str, key: Key, found: list[dict[str, Any]]) -> str:
    tolerance = np.array([task.position_tolerance, task.rotation_tolerance])
    made = [r for r in found if r]
    title = f"| {name} | {key[0]} | {key[1]}, {key[2]} | {len(made)} of {len(found)} |"
    if not made:
        return f"{title} | | | | |"
    # In closed loop the segments of the execution itself.
    part = "each" if key[2] == "open" else "whole"
    each = [r[part] for r in made if r.get(part, {}).get("final")]
    cells = ["", "", ""]
    if each:
        length = np.concatenate([r["length"] for r in each])
        delta = np.concatenate([r["delta"] for r in each])
        final = np.concatenate([r["final"] for r in each])
        arrived = np.all(final <= tolerance, axis=1).tolist()
        cells = [quartiles(d, way) for d, way in zip(delta.T, length.T)]
        cells.append(f"{sum(arrived)} of {len(arrived)}")
    whole = [r["whole"] for r in made if "whole" in r]
    if not whole:
        return f"{title} {' | '.join(cells)} | | | |"
    done = [r for r in whole if "error" in r]
    late = len(whole) - len(done)
    reached = sum(r["reached"] for r in done)
    if not done:
        return f"{title} {' | '.join(cells)} | 0 of {len(whole)} (0, {late}) | | |"
    errors = np.array([r["error"] for r in done])
    lost = int((errors > LOST * tolerance).any(axis=1).sum())
    shift, turn = np.median(errors, axis=0)
    far = "lost" if shift > 1.0 else f"{1e3 * shift:.0f} mm, {np.degrees(turn):.1f}"
    plans = np.median([r["plans"] for r in done])
    return f"{title} {' | '.join(cells)} | {reached} of {len(whole)} ({lost}, {late}) | {far} | {plans:.0f} |"


def quartiles(delta: Array, length: Array) -> str:
    """Write Delta over L of the segments that move: median (quartiles)."""
    moves = length > 1e-6
    if not moves.any():
        return "-"
    low, middle, high = np.percentile(delta[moves] / length[moves], [25, 50, 75])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def draw(found: dict[tuple[str, Key], list[dict[str, Any]]], path: Path) -> None:
    """Draw Delta over L and Delta-bar of segments that begin as planned, in open loop, as in CQDC Fig. 12."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = (("published", "plan"), ("plane", "plan"), ("plane", "paced"))
    titles = ("CQDC's world, plans", "on a plane, plans", "on a plane, paced plans")
    colours = ("#2F6F9F", "#B5483A", "#3E8E5A")
    figure, axes = plt.subplots(len(rows), 4, figsize=(13, 2.9 * len(rows)))
    for line, (world, kind), title in zip(axes, rows, titles):
        ratios: tuple[list[Array], list[Array]] = ([], [])
        for name, colour in zip(PLANAR, colours):
            runs = [r["each"] for r in found.get((name, (world, kind, "open")), []) if r]
            runs = [r for r in runs if "final" in r]
            length = np.concatenate([np.zeros((0, 2)), *(r["length"] for r in runs)])
            error = np.concatenate([np.zeros((0, 2)), *(r["delta"] for r in runs)])
            for k in range(2):
                line[k].scatter(length[:, k], error[:, k], s=14, color=colour, label=name)
                moves = length[:, k] > 1e-3
                ratios[k].append(error[moves, k] / length[moves, k])
        for k, unit in enumerate(("m", "rad")):
            line[k].set(xlabel=f"L ({unit})", ylabel=f"$\\Delta$ ({unit})", title=title)
            line[k + 2].boxplot(ratios[k], tick_labels=["PP", "PH", "IB"], showfliers=False)
            part = ("position", "rotation")[k]
            line[k + 2].set(title=f"$\\bar\\Delta$, {part}", ylim=(0.0, None))
        for axis in line:
            axis.grid(color="#E8ECEF")
            axis.set_axisbelow(True)
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    save(figure, path)


def draw_turns(path: Path) -> None:
    """Draw frames of half turns by strokes in MuJoCo, of hand and bucket."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from qdsim.planning.drawing.planar import PlanarScene

    figure, axes = plt.subplots(2, FRAMES, figsize=(13, 5))
    for line, name in zip(axes, ("planar_hand", "iiwa_planar")):
        task = next(iter(systems.load(name).tasks.values()))
        plan = planning.gait(task)
        assert plan is not None
        options = world_of(name, "plane").replace(control_period=PERIODS["gait"])
        found = planning.transfer(plan, task, options, controller="gait")
        frames = [task.start]
        for segment in found.segments:
            frames += [segment.executed[0], segment.executed[-1]]
        frames = [frames[i] for i in np.linspace(0, len(frames) - 1, FRAMES).round().astype(int)]
        scene = PlanarScene(task.model, task.object)
        low, high = scene.window(np.array(frames))
        for ax, q in zip(line, frames):
            scene.prepare(ax, low, high)
            scene.draw_goal(ax, task.goal)
            scene.draw(ax, q)
            left = np.degrees(task.space.errors(q, task.goal)[1])
            ax.set_title(f"{left:.{1 if left < 10.0 else 0}f} degrees to go", fontsize=9)
    figure.tight_layout()
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Save a figure as a PNG with few colours."""
    from PIL import Image

    figure.savefig(path, dpi=80)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--worlds", nargs="*", default=["published", "plane", "damped"])
    parser.add_argument("--kinds", nargs="*", default=None)
    parser.add_argument("--loops", nargs="*", default=None, help="all of a system's if not told")
    parser.add_argument("--cache", type=Path, nargs="*", default=[], help="files of runs")
    parser.add_argument("--cached", action="store_true", help="only what the files have")
    parser.add_argument(
        "--figure", type=Path, default=None, help="write a picture like CQDC Fig. 12"
    )
    parser.add_argument("--turns", type=Path, default=None, help="draw two half turns, no table")
    arguments = parser.parse_args()
    if arguments.turns is not None:
        draw_turns(arguments.turns)
        return
    choices = (arguments.worlds, arguments.kinds, arguments.loops)

    def wanted(key: Key) -> bool:
        return all(choice is None or part in choice for part, choice in zip(key, choices))

    found: dict[tuple[str, Key], list[dict[str, Any]]] = {}
    if arguments.cached:
        for label, run in Runs(*arguments.cache).items():
            name, world, kind, loop, seed = label.split()
            if int(seed) < arguments.seeds:
                found.setdefault((name, (world, kind, loop)), []).append(run)
    else:
        for name, key, run in runs(arguments.systems, wanted, arguments.seeds, arguments.cache):
            found.setdefault((name, key), []).append(run)
    if arguments.figure is not None:
        draw(found, arguments.figure)
    print("# Transfer to MuJoCo\n")
    plans = "plans, loop", "plans found", "Delta-bar, position: median (quartiles)", "rotation"
    ends = "reached (lost, too long)", "final error, median (degrees)", "plans"
    head("system", "world", *plans, "segments arrived", *ends)
    for name in arguments.systems:
        task = None
        for key in filter(wanted, runs_of(name)):
            if (name, key) in found:
                task = task or next(iter(systems.load(name).tasks.values()))
                print(row(task, name, key, found[name, key]), flush=True)


if __name__ == "__main__":
    main()
