"""Edges of a roadmap: found by searches, and tested from disturbed starts. One work item finds all edges
that begin at one node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT
from qdsim.array_type import Array
from qdsim.parallel import Result
from qdsim.planning.plans.segment import Segment
from qdsim.planning.roadmap.legs import Leg, Legs
from qdsim.planning.roadmap.poses import away, parked, resting
from qdsim.planning.roadmap.roadmap_options import RoadmapOptions
from qdsim.planning.task.task import DRAWS, Task

__all__ = ["ROWS", "Edges", "connected", "find_edges", "tried_again"]

ROWS = ("source", "target", "tries", "arrived", "radius")
"""Arrays with one number per edge."""


class Edges:
    """Edges as arrays.

    Attributes:
        source, target: First and last node of each edge, ``(n,)``.
        tries, arrived: Number of disturbed starts, and of those that arrived, ``(n,)``.
        radius: Distance of the starts up to which all arrived, ``(n,)``, in tolerances; 0: only the
            node's own pose.
        segments: Number of segments of each edge, ``(n,)``.
        steps: Number of steps of each segment.
        inputs, configurations: Those of all segments, concatenated: ``(sum, nu)`` and ``(sum +
            segments, nq)``.
    """

    def __init__(self, arrays: Result) -> None:
        self.source: NDArray[np.int64] = arrays["source"]
        self.target: NDArray[np.int64] = arrays["target"]
        self.tries: NDArray[np.int64] = arrays["tries"]
        self.arrived: NDArray[np.int64] = arrays["arrived"]
        self.radius: Array = arrays["radius"]
        self.segments: NDArray[np.int64] = arrays["segments"]
        self.steps: NDArray[np.int64] = arrays["steps"]
        self.inputs: Array = arrays["inputs"]
        self.configurations: Array = arrays["configurations"]
        # Index of each edge's first segment, and of each segment's first input.
        self._first = np.concatenate(([0], np.cumsum(self.segments)))
        self._input = np.concatenate(([0], np.cumsum(self.steps)))

    @property
    def count(self) -> int:
        """Number of edges."""
        return len(self.source)

    @property
    def success(self) -> Array:
        """Probability ``(n,)`` that an edge arrives, estimated by Laplace's rule of succession."""
        return (self.arrived + 1.0) / (self.tries + 2.0)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the edges as arrays by name."""
        names = (*ROWS, "segments", "steps", "inputs", "configurations")
        return {name: getattr(self, name) for name in names}

    def leg(self, edge: int) -> Leg:
        """Return the original commands of an edge as a leg."""
        return Leg(
            tuple(
                self._segment(segment)
                for segment in range(int(self._first[edge]), int(self._first[edge + 1]))
            )
        )

    def grasps(self) -> Array:
        """Return the configurations ``(n, nq)`` in which the robot begins to push in each segment."""
        first = self._input[:-1] + np.arange(len(self.steps))
        return np.asarray(self.configurations[first[self.steps > 0]])

    def _segment(self, k: int) -> Segment:
        a, b = int(self._input[k]), int(self._input[k + 1])
        return Segment(
            self.inputs[a:b],
            self.configurations[a + k : b + k + 1],
            np.array([b - a] if b > a else [], dtype=np.int64),
        )


def find_edges(
    task: Task, options: RoadmapOptions, nodes: Array, source: int, targets: list[int], seed: int
) -> Result:
    """Search for an edge from a node to each of some others; return the arrays of :class:`Edges`.

    Args:
        task, options: The task and the options of the roadmap.
        nodes: Poses ``(n, nq)``.
        source, targets: Indices of nodes.
        seed: Seed of this work item.
    """
    legs, rng = Legs(task, options), np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int, float]] = []
    found: list[Leg] = []
    for target in targets:
        leg = legs.connect(nodes[source], nodes[target], int(rng.integers(MOST_COUNT)))
        if leg is None:
            continue
        outcome = _tried(legs, leg, nodes[source], nodes[target], rng)
        rows.append((source, target, *outcome))
        found.append(leg)
    segments = [segment for leg in found for segment in leg.segments]
    table = {
        name: np.array([row[i] for row in rows], dtype=np.float64 if name == "radius" else np.int64)
        for i, name in enumerate(ROWS)
    }
    return table | {
        "segments": np.array([len(leg.segments) for leg in found], dtype=np.int64),
        "steps": np.array([segment.steps for segment in segments], dtype=np.int64),
        "inputs": np.concatenate([np.empty((0, task.model.nu)), *(s.inputs for s in segments)]),
        "configurations": np.concatenate(
            [np.empty((0, task.model.nq)), *(s.configurations for s in segments)]
        ),
    }


def connected(parts: list[Result]) -> Edges:
    """Join the edges of several work items in one table."""
    return Edges({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def tried_again(legs: Legs, edges: Edges, nodes: Array, rng: np.random.Generator) -> Edges:
    """Return the edges with the results of new trials.

    Edges with the same commands are the same motion of an object turned by its symmetries. One of them is
    tried, and its result counts for all.

    Args:
        legs: Makes the trials.
        edges: The edges of a roadmap.
        nodes: The nodes of the roadmap, ``(n, nq)``.
        rng: Random numbers of the trials.
    """
    found: dict[bytes, tuple[int, int, float]] = {}
    outcomes = []
    for k in range(edges.count):
        leg = edges.leg(k)
        mark = b"".join(segment.inputs.tobytes() for segment in leg.segments)
        if mark not in found:
            ends = nodes[edges.source[k]], nodes[edges.target[k]]
            found[mark] = _tried(legs, leg, *ends, rng)
        outcomes.append(found[mark])
    tries, arrived, radius = (np.array(column) for column in zip(*outcomes))
    return Edges({**edges.arrays(), "tries": tries, "arrived": arrived, "radius": radius})


def _tried(
    legs: Legs, edge: Leg, source: Array, target: Array, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Return the number of trials, of those that arrived, and the distance up to which all arrived, in tolerances."""
    options = legs.options
    ways = [k * options.radius / options.trials for k in range(1, options.trials + 1)]
    tries, arrived, verified, holds = 0, 0, 0.0, True
    for way in ways:
        start = _disturbed(legs.task, source, way, rng)
        seed = int(rng.integers(MOST_COUNT))
        if start is None:
            continue
        legs.place(start)
        leg = legs.follow(start, edge, target, seed)
        good = leg is not None and away(legs.task, leg.end, target) <= options.radius
        tries += 1
        arrived += good
        holds = holds and good
        verified = way if holds else verified
    return tries, arrived, verified


def _disturbed(task: Task, q: Array, way: float, rng: np.random.Generator) -> Array | None:
    """Return ``q`` with the object about ``way`` tolerances from its pose, at rest, and with the robot parked.

    None if the object does not come to rest, or the robot has no free pose, in any of several draws.
    """
    for _ in range(DRAWS):
        there = resting(task, task.with_object(q, _drawn(task, way, rng)))
        start = None if there is None else parked(task, there, rng)
        if start is not None:
            return start
    return None


def _drawn(task: Task, way: float, rng: np.random.Generator) -> Array:
    """Draw a displacement ``(size,)`` of ``way`` tolerances of position and of rotation, in random directions."""
    turns = task.space.rotation
    drawn = rng.standard_normal(task.space.size)
    for kind, tolerance in ((~turns, task.position_tolerance), (turns, task.rotation_tolerance)):
        length = float(np.linalg.norm(drawn[kind]))
        drawn[kind] *= way * tolerance / max(length, 1e-12)
    return drawn
