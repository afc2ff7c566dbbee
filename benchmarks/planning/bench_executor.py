"""``planning.Executor`` on random goals, in MuJoCo at 1 ms, with its stiff contacts and with its default ones.

Goals of pushing, planar hand, door and arms are drawn evenly from the task's box of subgoals. Goals of ball and cube are
rotation vectors drawn evenly from a ball of 60 degrees, at the position of the start. Plans are those of ``paced``
and ``rrt``, with the goal's number as seed. The cube's task has no sampler; its plan is that of ``impc``. If no plan
is found, the executor begins without one.

*Reached and held*: within the task's tolerances for 2 s at the end. Errors are those at the end, over all goals.
Times are in seconds of the simulated world; CPU times do not include the plan. A run ends after 400 s of the world or
120 s of CPU, and then counts as missed ("late").

``--plans`` compares plans instead: plans made with rigid contacts and plans made with creeping contacts
(``Options(contacts="mujoco")``), for the same goals of planar hand, ball and cube, executed by `planning.transfer`
with MuJoCo's default contacts. *Segments*: executed in open loop, each from its planned start; the table has those
that end within the task's tolerances. *auto*: executed by an executor that begins with the plan. A plan and a run may
take ``PLAN`` s of CPU each; longer ones count as missed.

``--cache FILE`` saves every run as a line of JSON and continues from there. ``--cached`` prints the table of the runs
in the file. ``--off 0.3``: in the plant alone, friction and the object's mass are larger or smaller by three tenths,
in all four ways in turn. ``--pictures FOLDER`` draws moments of each run.
``--only SYSTEM CONTACTS`` runs only the named systems and contacts (any number of words).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from bench_rrt_goals import random_goals
from bench_soft_transfer import share
from runs import Runs, TooLong, arguments, counts, head, limited, report_of, vary

from qdsim import planning, systems
from qdsim.planning import ExecutorOptions, GoalRegion, Plan, RRTOptions, Task, TransferOptions

SYSTEMS = {
    "pushing": ("planar_pushing", "move_back"),
    "planar hand": ("planar_hand", "half_turn"),
    "ball": ("allegro_sphere", "half_turn"),
    "cube": ("allegro_cube", "turn"),
    "door": ("allegro_door", "open"),
    "bucket": ("iiwa_planar", "half_turn"),
    "cylinder": ("iiwa_bimanual_cylinder", "turn"),
    "box": ("iiwa_bimanual_box", "turn"),
    "pen": ("allegro_pen", "place"),
    "book": ("allegro_book", "drag"),
    "plate": ("allegro_plate", "pick_up"),
}
WORLDS: dict[str, dict[str, Any]] = {
    "ball": {"control_period": 0.02},
    "cube": {"force": 0.7},
    "door": {"object_damping": 0.1, "force": 5.0},
    "pen": {
        "object_damping": (10.0, 10.0, 10.0, 0.01, 0.01, 0.01),
        "support_friction": 0.0,
        "force": 5.0,
    },
    "cylinder": {
        "object_damping": (5.0, 5.0, 5.0, 0.42, 0.42, 0.42),
        "support_friction": 0.0,
    },
    "book": {"force": 5.0},
    "plate": {"force": 5.0},
}
"""Pen and cylinder float, and nothing but this damping stops them: their mass over 0.1 s, their inertia over 0.1 s."""
REGIONS = {"pen": GoalRegion(axis=(0.0, 1.0, 0.0))}
"""A pen's turn about itself does not count."""
CONTACTS = ("stiff", "default")
LARGEST, PLANNING, SECONDS, CPU = np.pi / 3, 60, 400.0, 120
"""Largest angle of a goal, rad; limit of a plan, s of CPU; limits of a run, s of the world and of CPU."""
COMPARED = ("planar hand", "ball", "cube")
PLANS = ("rigid", "mujoco")
PLAN = 20
"""Limit of a plan, and of its run, with ``--plans``, s of CPU."""

Made = tuple[Task, RRTOptions | None, Plan | None]


def turned(task: Task, seed: int = 0) -> Iterator[Task]:
    """Yield the task with rotations about any axis as goals."""
    rng = np.random.default_rng(seed)
    while True:
        axis = rng.standard_normal(3)
        turn = LARGEST * rng.random() ** (1.0 / 3.0) / np.linalg.norm(axis) * axis
        yield task.towards(task.with_object(task.start, np.append(np.zeros(3), turn)))


def world_of(name: str, contacts: str) -> TransferOptions:
    options = TransferOptions(timestep=1e-3, settle=2.0, contacts=contacts)  # type: ignore[arg-type]
    return options.replace(**WORLDS.get(name, {}))


def made_of(name: str, task: Task, seed: int, seconds: int = PLANNING) -> Made:
    """Return the task at the speed of its execution, the planner's settings, and a plan if one is found."""
    planner, plan = None, None
    with contextlib.suppress(TooLong), limited(seconds):
        if task.sampler is None:
            return task, None, planning.impc(task, rng=seed).plan()
        task, planner = planning.paced(task, world_of(name, "stiff"), rng=seed)
        tree = planning.rrt(task, planner, rng=seed)
        plan = tree.plan() if tree.reached else None
    return task, planner, plan


def plant_of(task: Task, world: TransferOptions, off: float, seed: int) -> Any:
    """Return MuJoCo's model with friction and the object's mass larger or smaller by a share, by the seed's two bits."""
    if off == 0.0:
        return "mujoco"
    mj = planning.second_order(task.model, task.object, world)
    vary(mj, task.object, *(1.0 + off * (1 - 2 * ((seed >> bit) & 1)) for bit in (0, 1)))
    return mj


def executed(
    made: Made, world: TransferOptions, seed: int, off: float = 0.0, picture: Path | None = None
) -> dict[str, Any]:
    """Make one run, and draw it if a file is given."""
    task, planner, plan = made
    world = world.replace(seed=seed)
    plant = plant_of(task, world, off, seed)
    options = ExecutorOptions(seed=seed, seconds=SECONDS)
    given: dict[str, Any] = {"world": world, "options": options, "planner": planner}
    return report_of(lambda: planning.Executor(task, plan, plant, **given), CPU, picture)


def compared(name: str, task: Task, contacts: str, seed: int) -> dict[str, Any]:
    """Make a plan with these contacts, and execute it with MuJoCo's default contacts."""
    if contacts != "rigid":
        task = task.replace(options=task.options.replace(contacts=contacts, friction="cone"))
    begin = time.process_time()
    task, planner, plan = made_of(name, task, seed, PLAN)
    told: dict[str, Any] = {"planning": time.process_time() - begin, "planned": plan is not None}
    if plan is None:
        return told
    told["ends"] = list(task.space.errors(plan.segments[-1].end, task.goal))
    world = world_of(name, "default").replace(seed=seed)
    for part, loop in (("segments", "open"), ("auto", "auto")):
        begin, told[part] = time.process_time(), {"outcome": "late"}
        options = world.replace(carry_on=part == "auto")
        planned = planner if loop == "auto" else None
        try:
            with limited(PLAN):
                found = planning.transfer(plan, task, options, controller=loop, planner=planned)  # type: ignore[arg-type]
                told[part] = {
                    "outcome": found.outcome,
                    "reached": found.reached,
                    "error": [found.position_error, found.rotation_error],
                    "final": [s.final for s in found.segments],
                    "text": str(found),
                }
        except TooLong:
            pass
        except Exception as error:
            told[part] = {"outcome": f"{type(error).__name__}: {error}"}
        told[part]["seconds"] = time.process_time() - begin
    return told


def plans_table(known: Runs) -> None:
    print("# Plans made with contacts that creep\n")
    words = "plan", "goals", "plans that end at their goal", "s of CPU", "segments arrived"
    head("system", *words, "auto: reached", "mm, deg", "misses of auto")
    for name, contacts in product(COMPARED, PLANS):
        task = systems.load(SYSTEMS[name][0]).tasks[SYSTEMS[name][1]]
        tolerances = np.array([task.position_tolerance, task.rotation_tolerance])
        runs = known.of(f"{name}|{contacts} plan")
        made = [r for r in runs if r["planned"]]
        if not made:
            continue
        there = sum(bool(np.all(np.array(r["ends"]) <= tolerances)) for r in made)
        final = [r["segments"]["final"] for r in made if r["segments"].get("final")]
        ends = np.concatenate(final) if final else np.zeros((0, 2))
        arrived = int(np.all(ends <= tolerances, axis=1).sum())
        cells = [name, contacts, str(len(runs)), str(there)]
        cells += [f"{np.median([r['planning'] for r in made]):.1f}", share(arrived, len(ends))]
        reached = [r for r in made if r["auto"].get("reached")]
        ended = [r["auto"]["error"] for r in made if "error" in r["auto"]]
        shift, turn = np.median(ended, axis=0) if ended else (np.nan, np.nan)
        cells += [share(len(reached), len(runs)), f"{1e3 * shift:.1f}, {np.degrees(turn):.1f}"]
        cells.append(counts(r["auto"]["outcome"] for r in made if not r["auto"].get("reached")))
        print("| " + " | ".join(cells) + " |")


def drawn(name: str, goals: int) -> Iterator[Task]:
    task = systems.load(SYSTEMS[name][0]).tasks[SYSTEMS[name][1]]
    if name in REGIONS:
        task = task.towards(task.goal, goal_region=REGIONS[name])
    return islice(turned(task) if name in ("ball", "cube") else random_goals(task), goals)


def compare(goals: int, only: list[str], known: Runs) -> None:
    """Compare plans; goals are the outer loop, so that an unfinished run has all systems and both kinds of plans."""
    names = [s for s in COMPARED if _among(s, COMPARED, only)]
    for goal, tasks in enumerate(zip(*(drawn(name, goals) for name in names))):
        for (name, task), contacts in product(zip(names, tasks), PLANS):
            key = f"{name}|{contacts} plan|{goal}"
            known.make(key, compared, name, task, contacts, goal)


def table(known: Runs) -> None:
    print("# The executor\n")
    words = "contacts", "reached and held", "mm, median", "deg, median", "s", "s of CPU", "misses"
    head("system", *words)
    kinds = dict.fromkeys(k.split("|")[1] for k in known)
    for name, contacts in product(SYSTEMS, kinds):
        runs = known.of(f"{name}|{contacts}")
        if not runs:
            continue
        ended = [r for r in runs if "error" in r]
        missed = [r["outcome"] for r in runs if not r["reached"]]
        shift, turn = np.median([r["error"] for r in ended] or [[np.nan] * 2], axis=0)
        seconds, cpu = (np.median([r[k] for r in ended] or [np.nan]) for k in ("seconds", "cpu"))
        print(
            f"| {name} | {contacts} | {len(runs) - len(missed)} of {len(runs)} | {1e3 * shift:.1f} "
            f"| {np.degrees(turn):.1f} | {seconds:.0f} | {cpu:.0f} | {counts(missed)} |"
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--goals", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="number of the first goal")
    parser.add_argument(
        "--off",
        type=float,
        default=0.0,
        help="share by which friction and mass of the plant are off",
    )
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--pictures", type=Path, default=None, help="folder: draw each run")
    parser.add_argument(
        "--plans", action="store_true", help="compare rigid plans with creeping ones"
    )
    given = parser.parse_args()
    known = Runs(given.cache)
    if given.plans:
        if not given.cached:
            compare(given.goals, given.only, known)
        plans_table(known)
        return
    wanted = [] if given.cached else [s for s in SYSTEMS if _among(s, SYSTEMS, given.only)]
    for name in wanted:
        for goal, task in enumerate(drawn(name, given.first + given.goals)):
            made: Made | None = None
            for contacts in CONTACTS:
                key = f"{name}|{contacts}{given.off or ''}|{goal}"
                chosen = _among(contacts, CONTACTS, given.only) and goal >= given.first
                if not chosen or key in known:
                    continue
                made = made or made_of(name, task, goal)
                picture = given.pictures and given.pictures / f"{key.replace('|', '_')}.png"
                world = world_of(name, contacts)
                known.make(key, executed, made, world, goal, given.off, picture)
    table(known)


def _among(word: str, words: Any, only: list[str]) -> bool:
    """Return whether a word is selected; all words of a kind are selected if none of this kind is named."""
    named = [w for w in only if w in words]
    return not named or word in named


if __name__ == "__main__":
    main()
