"""Plans for many goals and seeds at once."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qdsim.arguments import flag, instance, integer, reals
from qdsim.parallel import ExecutorLike, Result, run, seed_of
from qdsim.planning.plans.plan import Plan
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.fingerprint import fingerprint, hash_of
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["Planned", "plan_many"]


@dataclasses.dataclass(frozen=True, eq=False)
class Planned:
    """One search of :func:`plan_many`.

    Attributes:
        goal: Index of the goal.
        seed: Seed of the search, for :func:`rrt`.
        plan: The plan; None if the goal was not reached.
        nodes, steps: Number of nodes, and of steps of the simulator.
        position_error, rotation_error: Errors of the nearest node, m and rad.
    """

    goal: int
    seed: int
    plan: Plan | None
    nodes: int
    steps: int
    position_error: float
    rotation_error: float


def plan_many(
    task: Task,
    goals: npt.ArrayLike | None = None,
    *,
    seeds: int = 1,
    options: RRTOptions | None = None,
    seed: int = 0,
    executor: ExecutorLike = None,
    folder: str | Path | None = None,
    progress: bool = False,
) -> tuple[Planned, ...]:
    """Search for plans to many goals, with several seeds each, on any executor.

    Each search has its own seed, so the plans are bitwise identical on one thread, on several processes
    and on a cluster.

    Args:
        task: The task; its goal is used if ``goals`` is None.
        goals: ``(n, nq)`` configurations; only the object's entries matter.
        seeds: Number of searches per goal, >= 1.
        options: Settings of the search; None: ``task.planner``, or the defaults.
        seed: Seed from which those of all searches are made, >= 0.
        executor: An executor of ``concurrent.futures``, or a function that makes one (see
            :func:`qdsim.parallel.run`).
        folder: Folder in which finished searches are saved and from which they are read.
        progress: Whether to show a progress bar.

    Returns:
        ``n * seeds`` searches, ordered by goal.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names it.
        WorkError: Searches failed; the error and the folder contain the results of the others.
    """
    instance("task", task, Task)
    chosen = instance("options", options, RRTOptions, or_none=True) or task.planner or RRTOptions()
    integer("seeds", seeds, least=1)
    tasks = [task]
    if goals is not None:
        rows = reals("goals", goals, (-1, task.model.nq))
        if len(rows) == 0:
            raise ValueError("goals: expected at least one, got none")
        tasks = [dataclasses.replace(task, goal=row) for row in rows]
    items = [
        (one, chosen, seed_of(seed, goal * seeds + k))
        for goal, one in enumerate(tasks)
        for k in range(seeds)
    ]
    found = run(
        search,
        items,
        executor=executor,
        folder=folder,
        mark=hash_of([fingerprint(one) for one in tasks], seeds, chosen, seed),
        progress=flag("progress", progress),
        title="plans",
    )
    return tuple(
        _planned(k // seeds, item[2], result) for k, (item, result) in enumerate(zip(items, found))
    )


def search(task: Task, options: RRTOptions, seed: int) -> Result:
    """Search once and return arrays, which any executor can transmit."""
    tree = rrt(task, options, seed)
    result = {
        "counts": np.array([tree.count, tree.steps]),
        "errors": np.array(tree.errors[tree.nearest_to_goal]),
    }
    if tree.reached:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.npz"
            tree.plan().save(path)
            result["plan"] = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    return result


def _planned(goal: int, seed: int, result: Result) -> Planned:
    plan = None
    if "plan" in result:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.npz"
            path.write_bytes(result["plan"].tobytes())
            plan = Plan.load(path)
    nodes, steps = (int(count) for count in result["counts"])
    shift, turn = (float(error) for error in result["errors"])
    return Planned(goal, seed, plan, nodes, steps, shift, turn)
