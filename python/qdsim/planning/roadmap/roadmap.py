"""Roadmaps: resting poses of an object, joined by tested edges, and plans along them.

Kavraki, Svestka, Latombe and Overmars 1996, "Probabilistic roadmaps for path planning in
high-dimensional configuration spaces", on the object's resting poses, where the robot may regrasp
(Simeon, Laumond, Cortes and Sahbani 2004, "Manipulation planning with probabilistic roadmaps"). An
edge is a motion found by a search through contact, with the share of disturbed starts from which it
arrived.
"""

from __future__ import annotations

import dataclasses
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
from qdsim.planning.roadmap.orbits import copied, orbits
from qdsim.planning.roadmap.poses import (
    draw_pose,
    nearest,
    parked,
    resting,
    spread_out,
)
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.roadmap.turns import by_turns
from qdsim.planning.roadmap.walk import NotCoveredError, Walk
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
        nodes: nodes of the roadmap on its path.
        success: product of the success probabilities of its edges.
    """

    nodes: tuple[int, ...] = ()
    success: float = 1.0


class Roadmap:
    """Resting poses of an object, connected by tested motions; :func:`roadmap` makes one.

    Attributes:
        task: the task; its goal is not used.
        options: how the roadmap was built.
        nodes: ``(n, nq)`` resting poses of the object, with the robot out of the way or in a grasp.
        edges: between nodes, with commands and success rates.
        ways: for each node, the edges out of it: target, cost (-log of the success) and number.
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
        """``(n,)`` distance from each node up to which every tested start of its best edge arrived,
        in tolerances; 0 for none."""
        found = np.zeros(len(self.nodes))
        np.maximum.at(found, self.edges.source, self.edges.radius)
        return found

    @property
    def reach(self) -> float:
        """The longest edge, which is also the largest distance of a query from the nodes, m;
        rotations times the task's length."""
        if self.edges.count == 0:
            return 0.0
        a, b = self.nodes[self.edges.source], self.nodes[self.edges.target]
        difference = self.task.space.difference(b.T, a.T)
        scale = self.task.space.scale(self.task.length)[:, None]
        return float(np.linalg.norm(scale * difference, axis=0).max())

    # ---------------------------------------------------------------- queries

    def query(self, start: ArrayLike, goal: ArrayLike, *, seed: int = 0) -> RoadmapPlan:
        """Find a plan along the path with the highest success probability.

        A graph search gives the path. Its edges are replayed from the actual pose of the object,
        and searches connect its ends with start and goal. If a leg fails, another path is taken
        from there.

        Args:
            start: ``(nq,)`` configuration of robot and object, for example as measured.
            goal: ``(nq,)``; only the object's entries matter. The task's ``goal_region`` around it
                also counts.
            seed: of the searches, >= 0.

        Raises:
            NotCoveredError: if no plan was found.
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        return self._asked(self._legs, start, self._checked_goal(goal), seed)

    def planner(self, goal: ArrayLike) -> Planner:
        """Make a function ``planner(q, seed=seed)`` that makes plans to a goal during an execution,
        for :class:`Executor` and :func:`transfer`.

        Its plans end within half of the task's tolerances, which leaves the other half for errors
        of their execution, and its searches use only grasps that the robot can reach by a motion
        (:func:`connect`). The function raises a `NotCoveredError` if there is no plan.

        Args:
            goal: as for :meth:`query`.

        Raises:
            TypeError, ValueError: if the argument is invalid; the message names it.
        """
        end, legs = self._checked_goal(goal), self._legs.for_execution()
        return lambda start, seed=0: self._asked(legs, start, end, seed)

    def _checked_goal(self, goal: ArrayLike) -> Array:
        end = vector("goal", goal, self.task.model.nq)
        self.task.space.check_quaternions("goal", end)
        return end

    def _asked(self, legs: Legs, start: ArrayLike, goal: Array, seed: int) -> RoadmapPlan:
        begin = np.asarray(self.task.model.normalize(vector("start", start, self.task.model.nq)))
        walk = Walk(self, legs, begin, goal, integer("seed", seed, least=0))
        return self._made(walk, goal, forces=True)

    def _made(self, walk: Walk, end: Array, forces: bool = False) -> RoadmapPlan:
        """The plan of a query that ends at its goal."""
        begin = walk.q
        walk.go()
        task = self.task.towards(end, start=begin, start_tolerance=np.inf)
        plan = plan_for(task, joined(walk.legs), task.options, CONTACT_TOLERANCE)
        own = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}
        made = RoadmapPlan(**own, nodes=tuple(walk.passed), success=walk.success)
        if not forces:
            return made
        return instance("plan", made.with_forces(self.task.model), RoadmapPlan)

    def drive(self, plant: World, goal: ArrayLike, *, seed: int = 0) -> RoadmapPlan:
        """Move the object of a plant to a goal along the path with the highest success probability,
        each leg in closed loop.

        For objects that are turned in a hand. After a leg that does not arrive, a path is taken from the present pose.
        Connections that failed are tried again once the object has moved by ``options.radius``.

        Args:
            plant: the simulator or robot, at rest; it is moved.
            goal, seed: as for :meth:`query`.

        Returns:
            Commands and measurements of every control period.

        Raises:
            NotCoveredError: if the goal was not reached, or the object was lost.
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        maker, end = self._driven(plant), self._checked_goal(goal)
        begin = np.asarray(self.task.model.normalize(plant.q))
        plant.watch(np.vstack((begin, end, self.nodes)))
        return self._made(Walk(self, maker, begin, end, integer("seed", seed, least=0)), end)

    def _driven(self, plant: World, trials: int | None = None) -> Driven:
        """What makes legs in a plant."""
        if not isinstance(plant, World):
            raise TypeError(f"plant: expected a World, got {type(plant).__name__}")
        if not self._legs.turns:
            raise ValueError("plant: the task's object is not turned in a hand by iMPC")
        options = self.options if trials is None else self.options.replace(trials=trials)
        return Driven(self.task, options, plant)

    def certify(self, plant: World, trials: int = 3, *, seed: int = 0) -> Roadmap:
        """The roadmap with the success that its edges have in a plant, in closed loop, in place of the model's.

        For objects that are turned in a hand. Ways are then the likeliest ones in that plant. Edges that differ by
        symmetries of the object are tried once for all of them.

        Args:
            plant: a simulation; every trial begins anew in it, from a disturbed start.
            trials: of each edge, >= 1.
            seed: of the starts, >= 0.

        Raises:
            TypeError, ValueError: naming the argument and what was wrong.
        """
        maker = self._driven(plant, integer("trials", trials, least=1))
        rng = np.random.default_rng(integer("seed", seed, least=0))
        if self.edges.count == 0:
            return self
        plant.watch(self.nodes)
        edges = tried_again(maker, self.edges, self.nodes, rng)
        return Roadmap(self.task, self.options, self.nodes, edges)

    def coverage(self, count: int = 100, seed: int = 0) -> Coverage:
        """Measure the share of random queries between resting poses in the task's box that are
        answered by a plan.

        Args:
            count: number of queries, >= 1.
            seed: of the queries, >= 0.
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
        """The roadmap with new nodes at goals that it does not cover, and edges to and from their
        neighbours.

        Args:
            goals: ``(n, nq)``; only the object's entries matter. If the object does not rest at a
                goal, the node is the pose where it comes to rest; without such a pose the goal is
                left out.
            seed, executor, folder, progress: as for :func:`roadmap`.
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
            path: path of the file.

        Raises:
            OSError: if the file cannot be written.
        """
        options = dataclasses.asdict(self.options)
        if self.options.search is not None:
            # The search is part of the mark; a scheme of smoothing has no JSON.
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
            path: path of the file.
            task: the task of the roadmap; its goal is not used.
            search: ``RoadmapOptions.search`` of the roadmap, which files do not contain.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is not a roadmap, is damaged, or belongs to another model or task; the
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

    Seeds belong to nodes: the roadmap is bitwise identical on one thread, on processes and on a
    cluster.

    Args:
        task: the task; its goal is not used.
        options: settings; None: the defaults.
        nodes: ``(n, nq)`` poses of the object to begin with, in place of ``options.nodes`` random
            ones.
        seed: of poses and searches, >= 0.
        executor: an executor of `concurrent.futures`, or a function that makes one (see
            :func:`qdsim.parallel.run`).
        folder: folder in which finished nodes are saved and from which they are read, so that
            nothing is lost at Ctrl-C.
        progress: show a bar.

    Raises:
        TypeError, ValueError: if an argument is invalid; the message names it.
        WorkError: if a worker failed; the results of the others are in the folder.
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
    """The nodes that a caller gives, at rest."""
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
    """Each node and those that it is joined with: its nearest ones, and those that it is one of the nearest of."""
    joined_with: list[set[int]] = [set() for _ in nodes]
    for a, q in enumerate(nodes):
        order, gaps = nearest(task, nodes, q, len(nodes))
        near = [b for b in order if b != a]
        for b in near[: _with_ties(gaps[near], neighbours)]:
            joined_with[a].add(b)
            joined_with[b].add(a)
    return [(a, sorted(own)) for a, own in enumerate(joined_with)]


def _with_ties(gaps: Array, count: int) -> int:
    """How many of sorted distances are no greater than the ``count``-th."""
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
    """The edges from each node to those that it is joined with."""
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
    """Nodes and edges of an open file."""
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
