"""``Mpc`` in another simulator than its model: a cube turned in the Allegro hand, in MuJoCo at half a millisecond.

There is no plan: every 0.1 s ``planning.Mpc`` with the task's own settings (``planning.dexterous``) steers straight
to a random goal. Goals are rotation vectors drawn evenly from a ball of 60 degrees; runs last 6 s, actuators are
limited to 0.7 Nm, and measurements are exact. The model has the friction of the world. *Contacts*: the setting
``TransferOptions.contacts``. *Soft settings*: kappa 300 and a weight of command changes that is 40 times smaller,
close to the settings that follow plans on a plane. *Going on*: ``hold=False``. *Creeping model*: steps with
``contacts="mujoco"``. *Lost*: farther than 0.1 m from the goal; this counts as 180 degrees. *Was there*: within 10
degrees at some time.

``--cache FILE`` saves every run as a line of JSON and continues from there. ``--cached`` prints the table of the runs
in the file.
"""

from __future__ import annotations

import dataclasses
import time
from itertools import product
from typing import Any

import numpy as np
from runs import Runs, arguments, head

import qdsim
from qdsim import planning, systems
from qdsim.planning import ImpcOptions, Mpc, Task, TransferOptions
from qdsim.planning.execution.plant import Plant

FRICTIONS = (1.0, 0.7, 0.5)
CONTACTS = ("stiff", "soft", "default")
FORCE, SECONDS, LOST = 0.7, 6.0, 0.1


def tasks_of(friction: float, count: int) -> list[Task]:
    """Return the task with random goals, in a world of this friction."""
    system = systems.load("allegro_cube")
    task = system.tasks["turn"]
    given = system.model.description
    bodies = tuple(
        dataclasses.replace(
            body,
            geoms=tuple(
                dataclasses.replace(geom, friction=(friction, *geom.friction[1:]))
                for geom in body.geoms
            ),
        )
        for body in given.bodies
    )
    model = qdsim.build(dataclasses.replace(given, bodies=bodies))
    return systems.random_cube_goals(task.replace(model=model), count, 0)


def soft(options: ImpcOptions) -> ImpcOptions:
    assert options.cost is not None
    moves = tuple(np.asarray(options.cost.command) / 40.0)
    return options.replace(kappa=300.0, cost=dataclasses.replace(options.cost, command=moves))


def turn(task: Task, options: ImpcOptions, contacts: str, hold: bool) -> dict[str, Any]:
    world = TransferOptions(force=FORCE, contacts=contacts)  # type: ignore[arg-type]
    plant = Plant(
        task.model,
        task.space,
        planning.second_order(task.model, task.object, world),
        world,
        compensated=True,
    )
    plant.reset(task.start)
    loop = Mpc(task, options, hold=hold)
    assert options.h is not None
    u, cpu, errors = np.asarray(task.model.command_from(task.start)), 0.0, []
    count = round(options.h / world.timestep)
    for _ in range(round(SECONDS / options.h)):
        begin = time.process_time()
        wanted = loop.act(plant.q)
        cpu += time.process_time() - begin
        for k in range(1, count + 1):
            plant.advance(u + (k / count) * (wanted - u))
        u = wanted
        errors.append(task.space.errors(plant.q, task.goal))
        if errors[-1][0] > LOST:
            break
    return {"errors": errors[-1], "least": min(e[1] for e in errors), "seconds": cpu}


def report(known: Runs) -> None:
    print("# The cube in MuJoCo\n")
    words = "goals", "degrees, median", "below 5", "below 10", "was there", "lost", "mm, median"
    head("friction, contacts, settings", *words, "s of CPU")
    for name in dict.fromkeys(key.rsplit("|", 1)[0] for key in known):
        made = known.of(name)
        shift = np.array([r["errors"][0] for r in made])
        angle = np.degrees(np.array([r["errors"][1] for r in made]))
        angle[shift > LOST] = 180.0
        least = np.degrees([r["least"] for r in made])
        print(
            f"| {', '.join(name.split('|'))} | {len(made)} | {np.median(angle):.1f} | {np.mean(angle < 5):.0%} "
            f"| {np.mean(angle < 10):.0%} | {np.mean(least < 10):.0%} | {(shift > LOST).sum()} "
            f"| {1e3 * np.median(shift):.1f} | {np.mean([r['seconds'] for r in made]):.1f} |"
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--goals", type=int, default=40)
    given = parser.parse_args()
    known = Runs(given.cache)
    rows = [(f, c, "preset") for f, c in product(FRICTIONS, CONTACTS)]
    rows += [(1.0, "stiff", "soft"), (1.0, "stiff", "going on"), (1.0, "default", "going on")]
    rows += [(1.0, "default", "creeping model")]
    drawn = {f: tasks_of(f, given.goals) for f in FRICTIONS}
    for goal, (friction, contacts, settings) in product(
        range(0 if given.cached else given.goals), rows
    ):
        key = f"{friction}|{contacts}|{settings}|{goal}"
        task = drawn[friction][goal]
        if settings == "creeping model":
            task = task.replace(options=task.options.replace(contacts="mujoco"))
        assert task.impc is not None
        options = soft(task.impc) if settings == "soft" else task.impc
        known.make(key, turn, task, options, contacts, settings != "going on")
    report(known)


if __name__ == "__main__":
    main()
