"""A path in a tree of configurations, and the plan along it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.plans.plan import Plan, plan_for
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.robot import CONTACT_TOLERANCE
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["Edge", "EdgeKind", "plan_along", "step_options"]


class EdgeKind(enum.IntEnum):
    """How a node was reached from its parent."""

    ROOT = 0  #: the start; a tree has several if the search was restarted
    PUSH = 1  #: commands that steer the object
    SETTLE = 2  #: commands that hold the fingers where they are until nothing penetrates
    REGRASP = 3  #: contact sampling without inputs: the robot moves, the object stays


class Edge(NamedTuple):
    """A node, and the edge that leads to it."""

    kind: int
    q: Array  # (nq,) the node
    inputs: Array | None  # (steps, nu) commands of the edge to the node
    trajectory: Array | None  # (steps, nq) configurations after each command


def step_options(task: Task, options: RRTOptions) -> Options:
    """Return the options of the steps along edges: those of the task, smoothed if the planner's dynamics
    are smoothed."""
    if options.dynamics == "exact":
        return task.options
    return task.options.replace(kappa=options.kappa, joint_limits=False)


def plan_along(task: Task, options: RRTOptions, path: Sequence[Edge]) -> Plan:
    """Return the plan along a path from a root.

    Of consecutive regrasps only the last is kept. Regrasps at the end of the path are dropped.
    """
    edges = list(path[1:])
    while edges and edges[-1].kind == EdgeKind.REGRASP:
        edges.pop()
    starts: list[Array] = [path[0].q]
    groups: list[list[Edge]] = [[]]
    for edge, following in zip(edges, [*edges[1:], None]):
        if edge.kind != EdgeKind.REGRASP:
            groups[-1].append(edge)
        elif following is not None and following.kind != EdgeKind.REGRASP:
            starts.append(edge.q)
            groups.append([])
    segments = [_segment(task.model.nu, q, own) for q, own in zip(starts, groups)]
    plan = plan_for(task, segments, step_options(task, options), CONTACT_TOLERANCE)
    return plan.with_forces(task.model)


def _segment(nu: int, start: Array, edges: Sequence[Edge]) -> Segment:
    inputs, configurations, knots = [np.empty((0, nu))], [start[None]], []
    for edge in edges:
        assert edge.inputs is not None and edge.trajectory is not None
        inputs.append(edge.inputs)
        configurations.append(edge.trajectory)
        knots.append(len(edge.inputs))
    return Segment(
        np.concatenate(inputs),
        np.concatenate(configurations),
        np.cumsum(np.array(knots, dtype=np.int64)),
    )
