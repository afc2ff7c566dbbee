"""The Allegro ball in MuJoCo: strokes that were planned in another model, executed at half a millisecond.

- *Whole executions* go from the task's start to its goal without interruption. The hand closes on the ball, turns it,
  sets it down, releases it, moves to the next grasp through the simulated world, and holds the ball at the end.
  Strokes are found during the execution from the measured pose of the ball (``planning.transfer(...,
  controller="gait")``). *Half turn*: the task's goal. *Box*: a goal drawn from the task's box of subgoals, one for
  each seed. *Contacts*: the setting ``TransferOptions.contacts``. *Four fingers*: a grip needs all four fingers, and
  a stroke ends if one of them loses contact (``GripOptions.fingers``).
- *As planned*: every segment of a plan begins in its planned state, as in CQDC section IX. The table has Delta-bar
  (medians over segments) and the number of segments that end within the task's tolerances. *strokes*: plans of
  ``planning.gait``; *plan*: plans of the task's own planner. *open*: planned commands; *grip*: a grip along the
  segment's path.

*published* is the ball of 1 kg on joints of 100 Nm/rad, *hardware* the ball of 50 g on joints of 2 to 4 Nm/rad, for
the same task. ``--cache FILE`` saves every run as a line of JSON and continues from there. ``--cached`` prints the
table of the runs in the file.
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from runs import Runs, arguments, head

from qdsim import planning, systems
from qdsim.planning import Plan, Task, TransferOptions

MODELS = ("published", "hardware")
WHOLE = ("half turn", "box")
FOUR = "default, four fingers"
CONTACTS = ("stiff", "soft", "default", FOUR)
EACH = (("strokes", "grip"), ("strokes", "open"), ("plan", "grip"), ("plan", "open"))
PERIOD, SETTLE = 0.02, 2.0
FRAMES = 10


def task_of(model: str) -> Task:
    """Return the task of the half turn, with the published ball or with that of the hardware."""
    published = systems.load("allegro_sphere").tasks["half_turn"]
    if model == "published":
        return published
    system = systems.load("allegro_sphere_hardware")
    start = np.array(system.start.q)
    task = published.replace(
        name="half turn of the hardware ball",
        model=system.model,
        options=system.options.replace(h=0.1),
        start=start,
        goal=start,
        length=0.065,
        start_tolerance=1e-3,
    )
    return task.replace(goal=task.with_object(start, np.array([0.0, 0.0, 0.0, 0.0, 0.0, np.pi])))


def drawn(task: Task, seed: int) -> Task:
    """Return the task with a goal drawn from its box."""
    share = np.random.default_rng(seed).random(len(task.lower))
    return task.replace(
        goal=task.with_object(task.start, task.lower + share * (task.upper - task.lower))
    )


def nothing(task: Task) -> Plan:
    """Return a plan with the task's goal and without motion."""
    command = task.model.command_from(task.start)[None]
    segment = planning.Segment(command, np.array([task.start] * 2), np.array([1]))
    return Plan(
        task.name,
        task.object,
        task.options,
        task.goal,
        task.position_tolerance,
        task.rotation_tolerance,
        1e-3,
        (segment,),
    )


def options(seed: int, contacts: str = "stiff") -> TransferOptions:
    return TransferOptions(
        control_period=PERIOD,
        settle=SETTLE,
        seed=seed,
        contacts=contacts.partition(",")[0],  # type: ignore[arg-type]
    )


def whole(model: str, goal: str, contacts: str, seed: int) -> dict[str, Any]:
    task = task_of(model)
    task = task if goal == "half turn" else drawn(task, seed)
    begin = time.process_time()
    fingers = 4 if contacts == FOUR else None
    found = planning.transfer(
        nothing(task),
        task,
        options(seed, contacts),
        controller="gait",
        planner=planning.GaitOptions(grip=planning.GripOptions(fingers=fingers)),
    )
    seconds = sum(float(s.time[-1]) for s in found.segments)
    return {
        "error": [found.position_error, found.rotation_error],
        "outcome": found.outcome,
        "strokes": len(found.segments),
        "stroke_seconds": seconds,
        "seconds": time.process_time() - begin,
    }


def each(model: str, kind: str, loop: str, seed: int) -> dict[str, Any]:
    task = task_of(model)
    if kind == "strokes":
        plan = planning.gait(task, rng=seed)
    else:
        tree = planning.rrt(task, rng=seed)
        plan = tree.plan() if tree.reached else None
    if plan is None:
        return {}
    given = options(seed).replace(carry_on=False)
    found = planning.transfer(plan, task, given, controller=loop)  # type: ignore[arg-type]
    return {
        "final": [s.final for s in found.segments],
        "delta": [s.normalized_error for s in found.segments],
    }


def campaign(models: list[str], seeds: int, known: Runs) -> None:
    for seed in range(seeds):
        for contacts, goal, model in product(CONTACTS, WHOLE, models):
            known.make(f"{model}|{goal}|{contacts}|{seed}", whole, model, goal, contacts, seed)
    for seed in range(seeds):
        for model in models:
            for kind, loop in EACH:
                if kind == "plan" and model == "hardware":
                    continue  # the task's planner is made for the published ball
                known.make(f"{model}|{kind}, {loop}|{seed}", each, model, kind, loop, seed)


def report(known: Runs) -> None:
    print("# The Allegro ball in MuJoCo\n")
    print("Whole executions:\n")
    words = "rotation error in degrees: median, 90 %", "position error, median", "below 5 degrees"
    ends = "reached", "lost", "strokes, median", "s of CPU, median"
    head("ball, goal", "contacts", "runs", *words, *ends)
    for model, goal, contacts in product(MODELS, WHOLE, CONTACTS):
        made = known.of(f"{model}|{goal}|{contacts}")
        if not made:
            continue
        errors = np.array([r["error"] for r in made])
        turn = np.degrees(errors[:, 1])
        ends = [r["outcome"] for r in made]
        print(
            f"| {model}, {goal} | {contacts} | {len(made)} | {np.median(turn):.1f}, {np.quantile(turn, 0.9):.1f} "
            f"| {1e3 * np.median(errors[:, 0]):.1f} mm | {(turn < 5.0).sum()} "
            f"| {ends.count('reached')} | {ends.count('lost')} "
            f"| {np.median([r['strokes'] for r in made]):.0f} | {np.median([r['seconds'] for r in made]):.0f} |"
        )
    print("\nAs planned:\n")
    words = "plans", "Delta-bar, position and rotation", "segments arrived"
    head("ball, plans, loop", *words, "final rotation error, median (degrees)")
    for model in MODELS:
        for kind, loop in EACH:
            made = [r for r in known.of(f"{model}|{kind}, {loop}") if r]
            if not made:
                continue
            delta = np.concatenate([r["delta"] for r in made])
            final = np.concatenate([r["final"] for r in made])
            arrived = (final <= [0.01, 0.1]).all(axis=1).sum()
            shift, turn = np.nanmedian(delta, axis=0)
            print(
                f"| {model}, {kind}, {loop} | {len(made)} | {shift:.2f}, {turn:.3f} "
                f"| {arrived} of {len(final)} | {np.degrees(np.median(final[:, 1])):.1f} |"
            )


def draw(model: str, path: Path) -> None:
    """Draw frames of a half turn, in the middle and at the end of each stroke."""
    import matplotlib.pyplot as plt
    from PIL import Image

    from qdsim.planning import pictures

    task = task_of(model)
    found = planning.transfer(nothing(task), task, options(0), controller="gait")
    frames = [task.start]
    for segment in found.segments:
        frames += [segment.executed[len(segment.executed) // 2], segment.executed[-1]]
    frames = [frames[i] for i in np.linspace(0, len(frames) - 1, FRAMES).round().astype(int)]
    scene = pictures.scene_of(task.model, task.object, np.array(frames), task.goal)
    low, high = scene.window(np.array(frames))
    figure, axes = plt.subplots(2, FRAMES // 2, figsize=(12, 5), squeeze=False)
    for ax, q in zip(axes.ravel(), frames):
        scene.prepare(ax, low, high)
        scene.draw(ax, q)
        left = np.degrees(task.space.errors(q, task.goal)[1])
        ax.set_title(f"{left:.1f} degrees to go" if left < 10.0 else f"{left:.0f} degrees to go")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            128, Image.Quantize.MAXCOVERAGE, 2, dither=Image.Dither.NONE
        )
    small.save(path, optimize=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--figure", type=Path, default=None, help="draw a half turn, nothing else")
    given = parser.parse_args()
    if given.figure is not None:
        draw(given.models[0], given.figure)
        return
    known = Runs(given.cache)
    if not given.cached:
        campaign(given.models, given.seeds, known)
    report(known)


if __name__ == "__main__":
    main()
