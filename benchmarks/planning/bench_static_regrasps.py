"""The cost of regrasping only where the object stays in place: plans with ``require_static_regrasps`` and without.

CQDC's contact samples ignore gravity: the object stays in place while the robot moves from one grasp to the next,
even between fingers in the air, where it would fall. With ``require_static_regrasps``, the default, the planner
regrasps only where one exact step without the robot leaves the object in place (``planning.is_stable``). The systems
are those in which gravity acts on the object (not on pen, door, bucket and cylinder; the pushed box lies on its
table).

The planner is the chaining one with the tasks' settings and at most 4000 nodes, the default. *Drop*: regrasps of the
plan that would drop the object (``Verdict.dropping_regrasps``). Times are CPU seconds of one thread; nodes, regrasps
and times are those of plans. ``--cache FILE`` saves one line of JSON for every search, so that an interrupted run continues
where it was.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from runs import Runs, arguments, head

from qdsim import systems
from qdsim.planning import RRTOptions, rrt

SYSTEMS = ("allegro_plate", "iiwa_bimanual_box", "allegro_book", "allegro_sphere")
MAX_NODES = 4000

Row = dict[str, Any]


def search(system: str, static: bool, seed: int) -> Row:
    """Make one search and describe its plan."""
    task = next(iter(systems.load(system).tasks.values()))
    options = (task.planner or RRTOptions()).replace(
        require_static_regrasps=static, max_nodes=MAX_NODES
    )
    begin = time.process_time()
    tree = rrt(task, options, rng=seed)
    seconds = time.process_time() - begin
    row: Row = {"good": False, "nodes": tree.count, "seconds": seconds}
    if tree.reached:
        plan = tree.plan()
        verdict = plan.check(task.model, require_static_regrasps=static)
        row |= {"good": verdict.good, "regrasps": len(plan.regrasps)}
        row["drop"] = len(verdict.dropping_regrasps)
    return row


def middle(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({max(values):.{digits}f})" if values else ""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    known = Runs(given.cache)
    cases = [(s, static) for s in SYSTEMS for static in (False, True)]
    for seed in range(0 if given.cached else given.seeds):
        for system, static in cases:
            known.make(f"{system}|{static}|{seed}", search, system, static, seed)
    print(
        f"## Regrasps only where the object stays in place, {given.seeds} seeds, {MAX_NODES} nodes\n"
    )
    print("Medians; the largest values in parentheses.\n")
    words = "good plans", "nodes", "seconds", "regrasps a plan", "of these drop"
    head("system", "required", *words)
    for system, static in cases:
        own = known.of(f"{system}|{static}")
        good = [row for row in own if row["good"]]
        nodes, seconds, regrasps = (
            [float(row[key]) for row in good] for key in ("nodes", "seconds", "regrasps")
        )
        drop = sum(row["drop"] for row in good)
        print(
            f"| {system} | {'yes' if static else 'no'} | {len(good)} of {len(own)} | {middle(nodes, 0)} "
            f"| {middle(seconds, 1)} | {middle(regrasps, 0)} | {drop} of {sum(map(int, regrasps))} |"
        )


if __name__ == "__main__":
    main()
