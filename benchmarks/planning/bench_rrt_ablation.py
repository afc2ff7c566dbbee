"""The effect of each ingredient of CQDC's planner: its Figure 11 as a table.

The published structure (CQDC Alg. 2 and 3: one step or one contact sample per iteration, exact dynamics) with one
ingredient changed at a time:

- *analytic*, *first order*, *zeroth order*: the smoothing of metric and inputs; the randomized schemes have 100
  samples of standard deviation 0.1 in the units of the command, as in the authors' scripts;
- *exact*: derivatives of the exact step for metric and inputs;
- *no contact samples*: every iteration is a step;
- *global metric*: the nearest node by the distance of poses, with rotations multiplied by ``task.length``.

Goal bias, probability of a contact sample, step and gamma are those of the authors' scripts that are nearest in time
to the paper, if a script was read. The goal cannot be reached (zero tolerance), so every tree has 1000 iterations.

There are two measures, as in CQDC §VIII-A. *Distance*: the smallest distance of any node's object pose from the goal,
as a share of the distance of the start, with rotations scaled to length. *Packing ratio* (eq. 51): the share of 500
poses, drawn uniformly from the task's box of subgoals, whose local Mahalanobis distance to some node is at most 3,
without the factor 1/2. For comparison, all trees are measured with the same metric, the analytic one at their nodes.

All six systems take half an hour of one core with three seeds, almost all of it for the randomized schemes; by
default three systems run. ``--cache FILE`` saves one line of JSON for every tree, so that an interrupted run continues where
it was.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from runs import Runs, arguments, head

from qdsim import SolverError, smoothing, systems
from qdsim.planning import RRTOptions, Task, Tree, packing_ratio, rrt
from qdsim.planning.search.tree import LocalModel

ITERATIONS = 1000
SAMPLES = 500

# Goal bias, grasp probability, step, gamma.
SETTINGS = {
    "planar_pushing": (0.1, 0.2, 0.3, 1e-2),
    "planar_hand": (0.1, 0.2, 0.3, 1e-4),
    "allegro_sphere": (0.3, 0.3, 0.3, 1e-6),
    "allegro_plate": (0.3, 0.3, 0.2, 1e-4),
    "allegro_pen": (0.3, 0.1, 0.2, 1e-4),
    "allegro_door": (0.1, 0.2, 0.2, 1e-6),
}


def variants(system: str) -> dict[str, RRTOptions]:
    """Return the planners by name; the first one is that of CQDC."""
    goal, grasp, step, gamma = SETTINGS[system]
    own = RRTOptions.published(
        goal_probability=goal,
        grasp_probability=grasp,
        step=step,
        gamma=gamma,
        max_nodes=2 * ITERATIONS,
        max_iterations=ITERATIONS,
    )
    return {
        "analytic": own,
        "first order": own.replace(smoothing=smoothing.Randomized(0.1, 100)),
        "zeroth order": own.replace(smoothing=smoothing.Randomized(0.1, 100, order="zeroth")),
        "exact": own.replace(smoothing=smoothing.Exact()),
        "no contact samples": own.replace(grasp_probability=0.0),
        "global metric": own.replace(metric="global"),
    }


def reachability(tree: Tree, options: RRTOptions) -> Tree:
    """Return the tree's nodes with the local models of other options; if the solver has none, a model without reach."""
    measured = Tree(tree.task, options.replace(max_nodes=max(tree.count, 1)))
    for i in range(1, tree.count):
        try:
            local = measured.local_model(tree.q[i])
        except SolverError:
            own = tree.local(i)
            n = len(own.B)
            nothing = own.B * 0.0, tree.q[i], np.eye(n) / np.sqrt(options.gamma), own.B.T * 0.0
            local = LocalModel(own.command, *nothing, own.depth)
        measured.add(tree.q[i], int(tree.parent[i]), tree.kind[i], None, None, local)
    measured.records = tree.records
    return measured


def spread(values: list[float], digits: int) -> str:
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def grown(system: str, task: Task, name: str, seed: int) -> dict[str, Any]:
    """Grow one tree and return its measures."""
    planners = variants(system)
    tree = rrt(task.replace(position_tolerance=1e-12), planners[name], rng=seed)
    measured = reachability(tree, planners["analytic"])
    return {
        "dist": float(tree.distance.min() / tree.distance[0]),
        "pack": float(packing_ratio(measured, samples=SAMPLES, rng=0)[-1]),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="trees of each planner")
    parser.add_argument("--systems", nargs="*", default=list(SETTINGS)[:3])
    given = parser.parse_args()
    known = Runs(given.cache)
    for seed in range(0 if given.cached else given.seeds):
        for system in given.systems:
            task = next(iter(systems.load(system).tasks.values()))
            for name in variants(system):
                known.make(f"{system}|{name}|{seed}", grown, system, task, name, seed)
    print(f"## Ingredients of the planner, {ITERATIONS} iterations, {given.seeds} seeds\n")
    print("Medians, and least and largest in parentheses.\n")
    head("system", "planner", "distance to the goal, share of the start's", "packing ratio")
    for system in given.systems:
        for name in variants(system):
            own = known.of(f"{system}|{name}")
            if not own:
                continue
            distances, ratios = ([row[key] for row in own] for key in ("dist", "pack"))
            print(f"| {system} | {name} | {spread(distances, 3)} | {spread(ratios, 2)} |")


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
