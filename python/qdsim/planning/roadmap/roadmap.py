"""Roadmaps: resting poses of an object, joined by tested edges, and plans along them.

Kavraki, Svestka, Latombe and Overmars 1996, "Probabilistic roadmaps for path planning in
high-dimensional configuration spaces". The nodes are resting poses of the object, at which the robot may
regrasp (Simeon, Laumond, Cortes and Sahbani 2004, "Manipulation planning with probabilistic roadmaps").
An edge is a motion found by a search through contact. It has the share of disturbed starts from which it
arrived.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import flag, instance, integer, path_of, reals, vector
from qdsim.array_type import Array
from qdsim.parallel import ExecutorLike, run, seed_of
from qdsim.planning.execution.routes import Planner
from qdsim.planning.execution.world import World
from qdsim.planning.plans.archive import Archive, Format, read_archive, write_archive
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.roadmap.coverage import Coverage
from qdsim.planning.roadmap.driving import Driven
from qdsim.planning.roadmap.edges import ROWS, Edges, connected, find_edges, tried_again
from qdsim.planning.roadmap.legs import Legs, joined
from qdsim.planning.roadmap.poses import (
    draw_pose,
    nearest,
    parked,
    resting,
    spread_out,
)
from qdsim.planning.roadmap.query import NotCoveredError, Query
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.roadmap.symmetric_copies import copied, orbits
from qdsim.planning.roadmap.turns import by_turns
from qdsim.planning.task.fingerprint import fingerprint, hash_of
from qdsim.planning.task.robot import CONTACT_TOLERANCE
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.symmetry import symmetries
from qdsim.planning.task.task import Task

__all__ = ["Roadmap", "RoadmapPlan", "roadmap"]

FORMAT = Format("qdsim-roadmap", 1, "a roadmap of qdsim")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RoadmapPlan(Plan):
    """A plan along a roadmap.

    Attributes:
        nodes: Nodes of the roadmap on its path.
        success: Product of the success probabilities of its edges.
    """

    nodes: tuple[int, ...] = ()
    success: float = 1.0


class Roadmap:
    """A probabilistic roadmap: resting poses of an object, connected by tested motions; :func:`roadmap` makes one.

    Attributes:
        task: The task; its goal is not used.
        options: How the roadmap was built.
        nodes: Resting poses ``(n, nq)`` of the object, with the robot out of the way or in a grasp.
        edges: Edges between nodes, with commands and success rates.
        ways: For each node, the edges that begin at it: target, cost (-log of the success) and number.
    """

    def __init__(self, task: Task, options: RoadmapOptions, nodes: Array, edges: Edges) -> None:
        self.task, self.options, self.nodes, self.edges = task, options, nodes, edges
        self._legs = Legs(task, options, edges.grasps())
        cost = -np.log(edges.success)
        self.ways: list[list[tuple[int, float, int]]] = [[] for _ in nodes]
        for k in range(edges.count):
            way = (int(edges.target[k]), float(cost[k]), k)
            self.ways[int(edges.source[k])].append(way)

    @property
    def radius(self) -> Array:
        """Distance ``(n,)`` from each node up to which every tested start of its best edge arrived, in
        tolerances; 0 if it has no edge."""
        found = np.zeros(len(self.nodes))
        np.maximum.at(found, self.edges.source, self.edges.radius)
        return found

    @functools.cached_property
    def reach(self) -> float:
        """Length of the longest edge, which is also the largest distance of a query from the nodes, m;
        rotations are multiplied by the task's length."""
        if self.edges.count == 0:
            return 0.0
        a, b = self.nodes[self.edges.source], self.nodes[self.edges.target]
        difference = self.task.space.difference(b.T, a.T)
        scale = self.task.space.scale(self.task.length)[:, None]
        return float(np.linalg.norm(scale * difference, axis=0).max())

    # ---------------------------------------------------------------- queries

    def query(self, start: ArrayLike, goal: ArrayLike, *, seed: int = 0) -> RoadmapPlan:
        """Find a plan along the path with the highest success probability.

        A graph search gives the path. Its edges are replayed from the actual pose of the object, and
        searches connect its ends with start and goal. If a leg fails, another path is taken from the
        end of the last successful leg.

        Args:
            start: Configuration ``(nq,)`` of robot and object, for example as measured.
            goal: Configuration ``(nq,)``; only the object's entries matter. The task's
                ``goal_region`` around it also counts.
            seed: Seed of the searches, >= 0.

        Raises:
            NotCoveredError: No plan was found.
            TypeError, ValueError: An argument is invalid; the message names it.
        """
        return self._asked(self._legs, start, self._checked_goal(goal), seed)

    def planner(self, goal: ArrayLike) -> Planner:
        """Make a function ``planner(q, seed=seed)`` that makes plans to a goal during an execution,
        for :class:`Executor` and :func:`transfer`.

        Its plans end within half of the task's tolerances, which leaves the other half for errors
        of their execution, and its searches use only grasps that the robot can reach by a motion
        (:func:`connect`). The function raises a `NotCoveredError` if there is no plan.

        Args:
            goal: As for :meth:`query`.

        Raises:
            TypeError, ValueError: The argument is invalid; the message names it.
        """
        end, legs = self._checked_goal(goal), self._legs.for_execution()
        return lambda start, seed=0: self._asked(legs, start, end, seed)

    def _checked_goal(self, goal: ArrayLike) -> Array:
        end = vector("goal", goal, self.task.model.nq)
        self.task.space.check_quaternions("goal", end)
        return end

    def _asked(self, legs: Legs, start: ArrayLike, goal: Array, seed: int) -> RoadmapPlan:
        begin = np.asarray(self.task.model.normalize(vector("start", start, self.task.model.nq)))
        query = Query(self, legs, begin, goal, integer("seed", seed, least=0))
        return self._made(query, goal, forces=True)

    def _made(self, query: Query, end: Array, forces: bool = False) -> RoadmapPlan:
        """Go to the goal of a query, and return its plan."""
        begin = query.q
        query.go()
        task = self.task.towards(end, start=begin, start_tolerance=np.inf)
        plan = plan_for(task, joined(query.legs), task.options, CONTACT_TOLERANCE)
        own = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}
        made = RoadmapPlan(**own, nodes=tuple(query.passed), success=query.success)
        if not forces:
            return made
        return instance("plan", made.with_forces(self.task.model), RoadmapPlan)

    def drive(self, plant: World, goal: ArrayLike, *, seed: int = 0) -> RoadmapPlan:
        """Move the object of a plant to a goal along the path with the highest success probability,
        each leg in closed loop.

        This is for objects that are turned in a hand. After a leg that does not arrive, a new path is taken from the
        present pose. Connections that failed are tried again once the object has moved by ``options.radius``.

        Args:
            plant: The simulator or robot, at rest; it is moved.
            goal, seed: As for :meth:`query`.

        Returns:
            Commands and measurements of every control period.

        Raises:
            NotCoveredError: The goal was not reached, or the object was lost.
            TypeError, ValueError: An argument is invalid; the message names it.
        """
        maker, end = self._driven(plant), self._checked_goal(goal)
        begin = np.asarray(self.task.model.normalize(plant.q))
        plant.watch(np.vstack((begin, end, self.nodes)))
        return self._made(Query(self, maker, begin, end, integer("seed", seed, least=0)), end)

    def _driven(self, plant: World, trials: int | None = None) -> Driven:
        """Return the maker of legs in a plant."""
        if not isinstance(plant, World):
            raise TypeError(f"plant: expected a World, got {type(plant).__name__}")
        if not self._legs.turns:
            raise ValueError("plant: the task's object is not turned in a hand by iMPC")
        options = self.options if trials is None else self.options.replace(trials=trials)
        return Driven(self.task, options, plant)

    def certify(self, plant: World, trials: int = 3, *, seed: int = 0) -> Roadmap:
        """Return the roadmap with success rates that are measured in a plant, in closed loop.

        This is for objects that are turned in a hand. Queries then use the paths with the highest success
        probability in that plant. Of edges that differ only by symmetries of the object, one is tried for all.

        Args:
            plant: A simulation; every trial is started anew in it, from a disturbed start.
            trials: Number of trials of each edge, >= 1.
            seed: Seed of the starts, >= 0.

        Raises:
            TypeError, ValueError: An argument is invalid; the message names it.
        """
        maker = self._driven(plant, integer("trials", trials, least=1))
        rng = np.random.default_rng(integer("seed", seed, least=0))
        if self.edges.count == 0:
            return self
        plant.watch(self.nodes)
        edges = tried_again(maker, self.edges, self.nodes, rng)
        return Roadmap(self.task, self.options, self.nodes, edges)

    def coverage(self, count: int = 100, seed: int = 0) -> Coverage:
        """Measure the share of random queries between resting poses in the task's box for which a plan is
        found.

        Args:
            count: Number of queries, >= 1.
            seed: Seed of the queries, >= 0.
        """
        integer("count", count, least=1)
        integer("seed", seed, least=0)
        asked: list[tuple[Array, Array]] = []
        reached = []
        for k in range(count):
            rng = np.random.default_rng(seed_of(seed, k))
            pair = [draw_pose(self.task, rng) for _ in range(2)]
            if pair[0] is None or pair[1] is None:
                raise ValueError("task: no resting poses of the object were found in its box")
            asked.append((pair[0], pair[1]))
            reached.append(self._answers(*asked[-1]))
        starts, goals = (np.array(side) for side in zip(*asked))
        return Coverage(starts, goals, np.array(reached))

    def _answers(self, start: Array, goal: Array) -> bool:
        try:
            self.query(start, goal)
        except NotCoveredError:
            return False
        return True

    # ---------------------------------------------------------------- growth

    def grow(
        self,
        goals: ArrayLike,
        *,
        seed: int = 0,
        executor: ExecutorLike = None,
        folder: str | Path | None = None,
        progress: bool = False,
    ) -> Roadmap:
        """Return the roadmap with new nodes at goals that it does not cover, and edges to and from their
        neighbours.

        Args:
            goals: Configurations ``(n, nq)``; only the object's entries matter. If the object does not
                rest at a goal, the node is the pose where it comes to rest; without such a pose the
                goal is left out.
            seed, executor, folder, progress: As for :func:`roadmap`.
        """
        rows = reals("goals", goals, (-1, self.task.model.nq))
        rng = np.random.default_rng(integer("seed", seed, least=0))
        fresh = []
        for goal in rows:
            if len(self.nodes):
                near = nearest(self.task, self.nodes, goal, 1)[0][0]
                if self._answers(self.nodes[near], goal):
                    continue
            rests = resting(self.task, np.array(goal))
            node = None if rests is None else parked(self.task, rests, rng)
            if node is not None:
                fresh.append(node)
        if not fresh:
            return self
        first = len(self.nodes)
        nodes = np.vstack((self.nodes, fresh))
        pairs = _pairs(self.task, nodes, self.options.neighbours)
        joins = [(a, [b for b in targets if max(a, b) >= first]) for a, targets in pairs]
        added = _find(self.task, self.options, nodes, joins, seed, executor, folder, progress)
        edges = connected([self.edges.arrays(), added.arrays()])
        return Roadmap(self.task, self.options, nodes, edges)

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the roadmap to one ``.npz`` file (no pickles inside), which :meth:`load` reads.

        Entries: ``header``, a JSON text with ``format``, ``version``, ``fingerprint`` of task and
        model, and ``options``; ``nodes`` (n, nq); one row per edge in ``source``, ``target``,
        ``tries``, ``arrived``, ``radius`` and ``segments``; ``steps`` of each segment, and its
        commands in ``inputs`` (sum of steps, nu) and ``configurations`` (sum of steps + 1, nq).

        Args:
            path: Path of the file.

        Raises:
            OSError: The file cannot be written.
        """
        options = dataclasses.asdict(self.options)
        if self.options.search is not None:
            # A smoothing scheme has no JSON form, so the header holds a hash of the settings of the search.
            options["search"] = hash_of(self.options.search)
        header = {"fingerprint": fingerprint(self.task, goal=False), "options": options}
        arrays = {"nodes": self.nodes, **self.edges.arrays()}
        write_archive(path_of("path", path), FORMAT, header, arrays, compressed=True)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], task: Task, *, search: RRTOptions | None = None
    ) -> Roadmap:
        """Read a roadmap written by :meth:`save`.

        Args:
            path: Path of the file.
            task: The task of the roadmap; its goal is not used.
            search: ``RoadmapOptions.search`` of the roadmap, which files do not contain.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is not a roadmap, is damaged, or belongs to another model or task; the
                message names the file.
        """
        instance("task", task, Task)
        instance("search", search, RRTOptions, or_none=True)

        def make(archive: Archive) -> Roadmap:
            if archive.header["fingerprint"] != fingerprint(task, goal=False):
                raise ValueError("it belongs to another model or task")
            given = dict(archive.header["options"])
            if given.pop("search") != (None if search is None else hash_of(search)):
                raise ValueError("search: it was made with other options of the search")
            options = RoadmapOptions(**given, search=search)
            return cls(task, options, *_content(archive, task))

        return read_archive(path_of("path", path), FORMAT, make)

    def __repr__(self) -> str:
        edges = self.edges
        tries = int(edges.tries.sum())
        tried = f", {edges.arrived.sum() / tries:.0%} of {tries} trials arrived" if tries else ""
        return f"Roadmap({self.task.name!r}: {len(self.nodes)} nodes, {edges.count} edges{tried})"


def roadmap(
    task: Task,
    options: RoadmapOptions | None = None,
    *,
    nodes: ArrayLike | None = None,
    seed: int = 0,
    executor: ExecutorLike = None,
    folder: str | Path | None = None,
    progress: bool = False,
) -> Roadmap:
    """Build a roadmap between resting poses of a task's object, after Kavraki et al. 1996
    (probabilistic roadmaps).

    Each node has its own seed, so the roadmap is bitwise identical on one thread, on several processes
    and on a cluster.

    Args:
        task: The task; its goal is not used.
        options: Settings; None: the defaults.
        nodes: Poses ``(n, nq)`` of the object to begin with, in place of ``options.nodes`` random
            ones.
        seed: Seed of poses and searches, >= 0.
        executor: An executor of `concurrent.futures`, or a function that makes one (see
            :func:`qdsim.parallel.run`).
        folder: Folder in which finished nodes are saved and from which they are read, so that
            nothing is lost at Ctrl-C.
        progress: Whether to show a progress bar.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names it.
        WorkError: A worker failed; the results of the others are in the folder.
    """
    instance("task", task, Task)
    chosen = instance("options", options, RoadmapOptions, or_none=True) or RoadmapOptions()
    rng = np.random.default_rng(integer("seed", seed, least=0))
    group = np.eye(3)[None]
    if nodes is None:
        group = symmetries(task.model, task.space) if by_turns(task) else group
        drawn = spread_out(task, math.ceil(chosen.nodes / len(group)), rng)
    else:
        drawn = _given(task, reals("nodes", nodes, (-1, task.model.nq)), rng)
    if len(drawn) == 0:
        raise ValueError("task: no resting poses of the object were found in its box")
    poses = orbits(task, drawn, group)
    joins = _pairs(task, poses, chosen.neighbours)[:: len(group)]
    found = _find(task, chosen, poses, joins, seed, executor, folder, progress)
    return Roadmap(task, chosen, poses, copied(task, found, group))


def _given(task: Task, rows: Array, rng: np.random.Generator) -> Array:
    """Return the nodes that a caller gives, with the object at rest and the robot parked."""
    poses = []
    for k, row in enumerate(rows):
        rests = resting(task, row)
        node = None if rests is None else parked(task, rests, rng)
        if node is None:
            raise ValueError(
                f"nodes: the object does not rest at number {k}, or no robot pose is free"
            )
        poses.append(node)
    return np.array(poses).reshape(-1, task.model.nq)


def _pairs(task: Task, nodes: Array, neighbours: int) -> list[tuple[int, list[int]]]:
    """Return each node with those to which it is joined: its nearest ones, and those of which it is a nearest one."""
    joined_with: list[set[int]] = [set() for _ in nodes]
    for a, q in enumerate(nodes):
        order, gaps = nearest(task, nodes, q, len(nodes))
        near = [b for b in order if b != a]
        for b in near[: _with_ties(gaps[near], neighbours)]:
            joined_with[a].add(b)
            joined_with[b].add(a)
    return [(a, sorted(own)) for a, own in enumerate(joined_with)]


def _with_ties(gaps: Array, count: int) -> int:
    """Count the sorted distances that are no greater than the ``count``-th."""
    last = gaps[min(count, len(gaps)) - 1] if len(gaps) else 0.0
    return int(np.count_nonzero(gaps <= last * (1.0 + 1e-9)))


def _find(
    task: Task,
    options: RoadmapOptions,
    nodes: Array,
    joins: list[tuple[int, list[int]]],
    seed: int,
    executor: ExecutorLike,
    folder: str | Path | None,
    progress: bool,
) -> Edges:
    """Find the edges from each node to those to which it is joined."""
    items = [
        (task, options, nodes, source, targets, seed_of(seed, source)) for source, targets in joins
    ]
    parts = run(
        find_edges,
        items,
        executor=executor,
        folder=folder,
        mark=hash_of(fingerprint(task, goal=False), options, nodes, joins, seed),
        progress=flag("progress", progress),
        title="nodes",
    )
    return connected(list(parts))


def _content(archive: Archive, task: Task) -> tuple[Array, Edges]:
    """Read nodes and edges of an open file."""
    nq, nu = task.model.nq, task.model.nu
    nodes = archive.array("nodes", np.float64, None, nq)
    table = {"segments": archive.counts("segments")}
    count = len(table["segments"])
    for name in ROWS[:-1]:
        table[name] = archive.counts(name, count)
    for name in ("source", "target"):
        if np.any(table[name] >= len(nodes)):
            raise ValueError(f"{name} names nodes that it does not have")
    if np.any(table["arrived"] > table["tries"]):
        raise ValueError("more trials arrived than there were")
    steps = archive.counts("steps", sum(table["segments"].tolist()))
    total = sum(steps.tolist())
    arrays = {
        **table,
        "radius": archive.array("radius", np.float64, count),
        "steps": steps,
        "inputs": archive.array("inputs", np.float64, total, nu),
        "configurations": archive.array("configurations", np.float64, total + len(steps), nq),
    }
    return nodes, Edges(arrays)
