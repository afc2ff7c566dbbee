"""``planning.Executor`` without a plan: the ball and the cube in the Allegro hand, goals up to 60 degrees, in MuJoCo.

The call is ``planning.Executor(task, world=world).run()``; the goal's number is the executor's seed. Goals of the ball
are those of bench_executor.py, goals of the cube are ``systems.random_cube_goals``, which have the law of the published
ones; ``--draw`` is the seed of the goals, so that settings can be chosen with one draw and judged with another one.
Actuators of the cube's hand are limited to 0.7 Nm. *Fine*: the cube's task with a tolerance of 2 degrees; its goals
still count within 10.

*Held*: within the task's tolerances (fine: within 10 degrees and 20 mm) at the end, after it was held for 2 s. *At the
end*: within them at the end, however the run ended. *Off*: friction and mass of the plant are the model's times 0.7 or
1.3, drawn for each goal. A run ends after 200 s of the world or 120 s of CPU ("late").

``--cache FILE`` saves every run as a line of JSON and continues from there; ``--cached`` prints the table of the file.
``--only`` names rows: systems, contacts, "as modelled" or "off".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

import numpy as np
from bench_executor import turned
from runs import Runs, arguments, head, report_of, vary

from qdsim import planning, systems
from qdsim.planning import ExecutorOptions, Task, TransferOptions

NAMES = ("ball", "cube", "fine")
CONTACTS = ("stiff", "default")
WORLDS = ("as modelled", "off")
CUBE_FORCE, FINE, OFF = 0.7, math.radians(2.0), (0.7, 1.3)
SECONDS, CPU = 200.0, 120


def goals(name: str, count: int, draw: int) -> list[Task]:
    if name == "ball":
        task = systems.load("allegro_sphere").tasks["half_turn"]
        return list(islice(turned(task, draw), count))
    task = systems.load("allegro_cube").tasks["turn"]
    if name == "fine":
        task = task.replace(rotation_tolerance=FINE)
    return systems.random_cube_goals(task, count, draw)


def executed(name: str, task: Task, contacts: str, off: bool, seed: int) -> dict[str, Any]:
    """Make one run."""
    world = TransferOptions(timestep=1e-3, contacts=contacts, seed=seed)  # type: ignore[arg-type]
    if name != "ball":
        world = world.replace(force=CUBE_FORCE)
    mj = planning.second_order(task.model, task.object, world)
    friction, mass = np.random.default_rng(seed).choice(OFF, 2) if off else (1.0, 1.0)
    vary(mj, task.object, friction, mass)
    given = {"world": world, "options": ExecutorOptions(seed=seed, seconds=SECONDS)}
    told = report_of(lambda: planning.Executor(task, plant=mj, **given), CPU)
    return told | {"off": [friction, mass]}


def rows(only: list[str]) -> Iterator[tuple[str, str, str]]:
    for row in product(NAMES, CONTACTS, WORLDS):
        kinds = zip(row, (NAMES, CONTACTS, WORLDS))
        if all(word in only or not set(kind) & set(only) for word, kind in kinds):
            yield row


def table(known: Runs) -> None:
    words = "goals", "held", "at the end", "was there", "mm, median", "deg, median, 90 %"
    head("system, contacts, plant", *words, "s", "s of CPU", "misses")
    for row in product(NAMES, CONTACTS, WORLDS):
        runs = {
            k.rsplit("|", 1)[1]: r for k, r in known.items() if k.startswith("|".join(row) + "|")
        }
        if not runs:
            continue
        most = {"ball": (0.01, 0.1)}.get(row[0], (0.02, math.radians(10.0)))
        none = [math.inf, math.inf]
        error = np.array([r.get("error", none) for r in runs.values()])
        there = np.all(error <= most, axis=1)
        held = sum(r["reached"] for r in runs.values())
        was = sum(r.get("entries", 0) > 0 for r in runs.values())
        shift, turn = np.median(error, axis=0)
        late = np.quantile(error[:, 1], 0.9)
        middle = [
            np.median([r.get(k, math.inf) for r in runs.values()]) for k in ("seconds", "cpu")
        ]
        missed = ", ".join(f"{k} {r['outcome']}" for k, r in runs.items() if not r["reached"])
        print(
            f"| {', '.join(row)} | {len(runs)} | {held} | {there.sum()} | {was} | {1e3 * shift:.1f} "
            f"| {np.degrees(turn):.1f}, {np.degrees(late):.1f} | {middle[0]:.0f} | {middle[1]:.1f} | {missed} |"
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--goals", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first goal")
    parser.add_argument("--draw", type=int, default=0, help="seed of the goals")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    known = Runs(given.cache)
    tasks = {name: goals(name, given.first + given.goals, given.draw) for name in NAMES}
    numbers = () if given.cached else range(given.first, given.first + given.goals)
    for goal, (name, contacts, world) in product(numbers, list(rows(given.only))):
        key = f"{name}|{contacts}|{world}|{goal}"
        known.make(key, executed, name, tasks[name][goal], contacts, world == "off", goal)
    table(known)


if __name__ == "__main__":
    main()
