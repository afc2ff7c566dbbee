"""The tree that a planner grows: nodes, edges, and the local metric at every node."""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import instance, path_of
from qdsim.array_type import SAME, Array
from qdsim.planning.plans.archive import Archive, read_archive, write_archive
from qdsim.planning.plans.plan import Plan
from qdsim.planning.search.path import Edge, EdgeKind, plan_along
from qdsim.planning.search.tree_file import (
    COLUMNS,
    COUNTERS,
    FORMAT,
    NODES,
    RECORD,
    TreeContent,
    content_of,
    entries_of,
)
from qdsim.planning.task.drives import lengths, sharing
from qdsim.planning.task.goal_set import GoalSet, Target, way_to
from qdsim.planning.task.robot import penetration
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.space import as_slice
from qdsim.planning.task.task import Task
from qdsim.step import linearize

__all__ = ["LocalModel", "Tree"]


class LocalModel(NamedTuple):
    """The local model of a node (CQDC eq. 44 and 47); rows of the object are in metres."""

    command: Array  # (nu,) command at which the model is linearised
    B: Array  # (n, nu) motion of the object per unit of command
    q_next: Array  # (nq,) c: configuration after a step with this command
    whiten: Array  # (n, n) maps displacements to vectors whose norm is the metric
    inverse: Array  # (nu, n) least-squares inverse of B
    depth: float  # deepest penetration, m


class Tree:
    """Nodes of a search through contact, stored as arrays.

    Each node has the smoothed linear model at its configuration, with the robot commanded to stay
    (CQDC eq. 44): ``q+ = c + B du``. Distances to a subgoal are those of the object, in metres
    (rotations multiplied by ``length``), in the local Mahalanobis metric: ``|x - c|`` weighted with
    ``(B_u B_u' + gamma I)^-1`` (CQDC eq. 47, without the factor 1/2, as in the authors' code).

    Attributes:
        task, options: The task, and the settings of the search.
        count: Number of nodes.
        first: Index of the root of the current tree: 0, or the root after the last restart.
        goal_node: Index of the first node within the task's tolerances of the goal, or None.
        steps: Number of simulator steps, including those of discarded edges.
        linearizations: Number of smoothed steps with derivatives: one per node, and one per failed
            grasp.
        failures: Number of simulator steps that the solver could not compute; the iteration
            continues without them.
        records: Structured array, one row per iteration: nodes, steps and regrasps so far, and
            distance (m, rotation scaled), position error (m) and rotation error (rad) of the node
            nearest to the goal.
        seconds: Time spent on the search, s.
    """

    def __init__(self, task: Task, options: RRTOptions) -> None:
        model, capacity = task.model, options.max_nodes
        n, nu = task.space.size, model.nu
        self.task = task
        self.options = options
        self.length = 1.0 if options.strategy == "published" else task.length
        self.scale = task.space.scale(self.length)
        self._actuated, self._gear = as_slice(model.actuated_q), np.array(model.actuator_gear)
        self._sharing = sharing(model)
        self._scale_column = self.scale[:, None]
        self.smoothed = task.options.replace(kappa=options.kappa, joint_limits=False)
        self.count = 0
        self.steps = 0
        self.linearizations = 0
        self.failures = 0
        self.seconds = 0.0
        self.goal_node: int | None = None
        self.best_node = 0
        self.first = 0
        self.records: NDArray[np.void] = np.empty(0, dtype=RECORD)
        self._v = task.space.take_v
        self._q = np.empty((capacity, model.nq))
        self._command = np.empty((capacity, nu))
        self._parent = np.full(capacity, -1, dtype=np.int64)
        self._kind = np.zeros(capacity, dtype=np.int8)
        self._depth = np.zeros(capacity)
        self._errors = np.empty((capacity, 2))
        self._next = np.empty((model.nq, capacity))
        self._B = np.empty((capacity, n, nu))
        self._whiten = np.empty((n, n, capacity))
        self._inverse = np.empty((capacity, nu, n))
        self._inputs: list[Array | None] = []
        self._trajectory: list[Array | None] = []
        self._distance = np.empty(capacity)
        self._stuck = np.zeros(capacity, dtype=np.int64)
        self.add(task.start, -1, EdgeKind.ROOT, None, None)

    # ---------------------------------------------------------------- growing

    @property
    def full(self) -> bool:
        """Whether the tree has ``options.max_nodes`` nodes."""
        return self.count >= self.options.max_nodes

    def add(
        self,
        q: Array,
        parent: int,
        kind: EdgeKind,
        inputs: Array | None,
        trajectory: Array | None,
        local: LocalModel | None = None,
    ) -> int:
        """Append a node and compute its local model.

        Args:
            q: Configuration ``(nq,)``.
            parent: Index of the parent, -1 for the root.
            kind: How the node was reached.
            inputs: Commands ``(steps, nu)`` of the edge, None for a regrasp.
            trajectory: Configurations ``(steps, nq)`` after each command.
            local: The local model of the node, if it is known already.

        Returns:
            Index of the node.
        """
        task, i = self.task, self.count
        local = self.local_model(q, inputs) if local is None else local
        self._command[i] = local.command
        self._whiten[:, :, i] = local.whiten
        self._inverse[i] = local.inverse
        self._B[i] = local.B
        self._q[i] = q
        self._next[:, i] = local.q_next
        self._parent[i] = parent
        self._kind[i] = kind
        self._depth[i] = local.depth
        shift, turn = self._errors[i] = task.errors(q)
        self._distance[i] = distance = math.hypot(shift, task.length * turn)
        self._inputs.append(inputs)
        self._trajectory.append(trajectory)
        self.count += 1
        if kind == EdgeKind.ROOT:
            self.first = i
        if distance < self._distance[self.best_node]:
            self.best_node = i
        reached = task.in_tolerances((float(shift), float(turn))) <= 1.0
        if self.goal_node is None and reached:
            self.goal_node = i
        return i

    def local_model(self, q: Array, inputs: Array | None = None) -> LocalModel:
        """Compute the smoothed linear model at a configuration.

        Args:
            q: Configuration ``(nq,)``.
            inputs: Commands ``(steps, nu)`` that led to it; None: the robot holds its joints.
        """
        gamma = self.options.gamma
        robot = lengths(self.task.model, q) if self._sharing else q[self._actuated]
        command = self._bounded(robot * self._gear)
        if inputs is not None and self.options.squeeze > 0.0:
            offset = inputs[-1] - command
            length, most = math.sqrt(offset @ offset), self.options.squeeze * self.options.step
            command = self._bounded(
                command + (offset if length <= most else offset * (most / length))
            )
        B_full, q_next, depth = self._smoothed_step(q, command)
        self.linearizations += 1
        B = B_full[self._v] * self._scale_column
        n = len(B)
        # The singular value decomposition gives the square root of the metric and the inverse for steering.
        U, s, Vt = np.linalg.svd(B)
        k = len(s)
        root = np.full(n, math.sqrt(gamma))
        np.sqrt(s * s + gamma, out=root[:k])
        inverse = _damped_inverse(U, s, Vt)
        return LocalModel(command, B, q_next, (U / root).T, inverse, depth)

    def _bounded(self, u: Array) -> Array:
        lower, upper = self.task.command_bounds
        return np.minimum(np.maximum(u, lower), upper)

    def _smoothed_step(self, q: Array, command: Array) -> tuple[Array, Array, float]:
        """Compute ``B`` (nv, nu), ``c`` (nq) and the deepest penetration (m) at a configuration."""
        model, scheme = self.task.model, self.options.smoothing
        if scheme is None:
            local = linearize(model, q, command, self.smoothed, wrt=("u",))
            contacts = local.step.contacts
            depth = max(0.0, -float(contacts["dist"].min())) if len(contacts) else 0.0
            return local.B, local.q_next, depth
        options = self.task.options.replace(joint_limits=False)
        found = scheme.linearize(model, q, command, options, wrt=("u",), rng=self.count, threads=1)
        assert found.B is not None
        return found.B, found.q_next, penetration(model, q)

    def distances(self, subgoal: Target) -> Array:
        """Compute the distances ``(count,)`` of all nodes to a subgoal, in the local Mahalanobis metric or
        in ``options.metric``.

        Args:
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        return self._distances(subgoal, 0)

    def _distances(self, subgoal: Target, first: int) -> Array:
        own = slice(first, self.count)
        if self.options.metric == "global":
            e = way_to(self.task.space, subgoal, self._q[own].T) * self._scale_column
            return np.asarray(np.einsum("kn,kn->n", e, e))
        e = way_to(self.task.space, subgoal, self._next[:, own]) * self._scale_column
        y = np.einsum("kjn,jn->kn", self._whiten[:, :, own], e)
        y *= y
        return np.asarray(y.sum(axis=0))

    def nearest(self, subgoal: Target) -> int:
        """Return the index of the node of the current tree nearest to a subgoal in the local metric
        (CQDC eq. 50).

        Args:
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        return self._nearest(self._distances(subgoal, self.first))

    def record(
        self, iteration: int, regrasps: int
    ) -> tuple[int, int, int, int, float, float, float, float]:
        """Return the row of :attr:`records` of an iteration, given the number of regrasps so far."""
        best = self.best_node
        shift, turn = self.errors[best]
        measured = self._distance[best], shift, turn, self.seconds
        return iteration, self.count, self.steps, regrasps, *measured

    def restart(self) -> None:
        """Add a new root at the start; the old nodes are kept but not extended."""
        self.add(self.task.start, -1, EdgeKind.ROOT, None, None, self.local(0))

    @property
    def nearest_to_goal(self) -> int:
        """The node of the current tree that is nearest to the goal; ``best_node`` is the nearest
        one of all trees."""
        return self._nearest(self._distance[self.first : self.count])

    def _nearest(self, distances: Array) -> int:
        """Return the nearest node of the current tree.

        Distances are multiplied by one plus the number of times that the search was stuck at a node. Otherwise a node
        would be chosen again and again whose object is in the air, is brought no nearer by any push, and cannot be
        released.
        """
        return self.first + int((distances * (1 + self._stuck[self.first : self.count])).argmin())

    def mark_stuck(self, *nodes: int) -> None:
        """Record that no push helped at a node and that the robot cannot release the object there.

        Args:
            *nodes: indices of nodes.
        """
        for node in set(nodes):
            self._stuck[node] += 1

    def object_distance(self, q: Array, subgoal: Target) -> float:
        """Compute the distance of the object to a subgoal, m; rotations are multiplied by ``length``.

        Args:
            q: ``(nq,)`` configuration.
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        e = self.target(q, subgoal)
        return math.sqrt(e @ e)

    def object_distances(self, subgoal: Target) -> Array:
        """Compute :meth:`object_distance` for all nodes of the current tree, ``(count - first,)``, m.

        Args:
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        e = way_to(self.task.space, subgoal, self._q[self.first : self.count].T)
        return np.asarray(np.linalg.norm(e * self._scale_column, axis=0))

    def grasps_tried(self) -> Array:
        """Count the regrasps that began, or failed, at each node of the current tree."""
        own = slice(self.first, self.count)
        parents = self._parent[own][self._kind[own] == EdgeKind.REGRASP]
        begun = np.bincount(parents - self.first, minlength=self.count - self.first)
        return np.asarray(begun + self._stuck[own], dtype=np.float64)

    def stuck(self, node: int) -> int:
        """Return how often :meth:`mark_stuck` was called for a node.

        Args:
            node: index of the node, from 0.
        """
        return int(self._stuck[node])

    def local(self, node: int) -> LocalModel:
        """Return the local model of a node.

        Args:
            node: index of the node, from 0.
        """
        return LocalModel(
            self._command[node],
            self._B[node],
            self._next[:, node],
            self._whiten[:, :, node],
            self._inverse[node],
            float(self._depth[node]),
        )

    def target(self, q: Array, subgoal: Target) -> Array:
        """Compute the displacement ``(n,)`` of the object to a subgoal, m; rotations are multiplied by
        ``length``.

        Args:
            q: ``(nq,)`` configuration.
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        return np.asarray(way_to(self.task.space, subgoal, q) * self.scale)

    def steering(self, q: Array, local: LocalModel, subgoal: Target) -> tuple[Array, Array]:
        """Return ``B`` and its inverse for the coordinates that have a goal.

        If the goal leaves the rotation about an axis free, that rotation is left out.

        Args:
            q: ``(nq,)`` configuration.
            local: the local model there.
            subgoal: ``(nq,)`` configuration with the object at the subgoal, or a set of goals.
        """
        if not isinstance(subgoal, GoalSet) or subgoal.is_point:
            return local.B, local.inverse
        counts = subgoal.slopes(q[:, None], -subgoal.difference(q)[:, None])[0]
        B = (self._scale_column * counts / self.scale) @ local.B
        return B, _damped_inverse(*np.linalg.svd(B))

    # ---------------------------------------------------------------- reading

    @property
    def q(self) -> Array:
        """Configurations ``(count, nq)``."""
        return self._q[: self.count]

    @property
    def parent(self) -> NDArray[np.int64]:
        """Index of every node's parent ``(count,)``, -1 for roots."""
        return self._parent[: self.count]

    @property
    def kind(self) -> NDArray[np.int8]:
        """How every node was reached ``(count,)``, an :class:`EdgeKind`."""
        return self._kind[: self.count]

    @property
    def penetration(self) -> Array:
        """Deepest penetration at every node ``(count,)``, m."""
        return self._depth[: self.count]

    @property
    def errors(self) -> Array:
        """Position (m) and rotation errors (rad) of every node from the goal, ``(count, 2)``."""
        return self._errors[: self.count]

    @property
    def distance(self) -> Array:
        """Distance of every node's object pose to the goal ``(count,)``, m; rotations are
        multiplied by ``task.length``."""
        return self._distance[: self.count]

    @property
    def reached(self) -> bool:
        """Whether some node is within the task's tolerances of the goal."""
        return self.goal_node is not None

    @property
    def regrasp_count(self) -> int:
        """Number of edges that are regrasps."""
        return int(np.count_nonzero(self.kind == EdgeKind.REGRASP))

    def inputs(self, node: int) -> Array | None:
        """Return the commands ``(steps, nu)`` of the edge to a node; None for the root and regrasps.

        Args:
            node: index of the node, from 0.

        Raises:
            ValueError: There is no such node.
        """
        return self._inputs[self._checked(node)]

    def trajectory(self, node: int) -> Array | None:
        """Return the configurations ``(steps, nq)`` along the edge to a node, after each command.

        Args:
            node: index of the node, from 0.

        Raises:
            ValueError: There is no such node.
        """
        return self._trajectory[self._checked(node)]

    def path(self, node: int) -> list[int]:
        """Return the indices of the nodes from the root of a node's tree to the node, both included.

        Args:
            node: index of the node, from 0.

        Raises:
            ValueError: There is no such node.
        """
        result = [self._checked(node)]
        while (above := int(self._parent[result[-1]])) >= 0:
            result.append(above)
        return result[::-1]

    def plan(self, node: int | None = None) -> Plan:
        """Return the plan from the start to a node.

        Args:
            node: index of the node; None: the goal node.

        Raises:
            ValueError: The goal was not reached, and no node is given.
        """
        if node is None:
            if self.goal_node is None:
                shift, turn = self.errors[self.best_node]
                raise ValueError(
                    f"the tree of {self.count} nodes has not reached the goal: node "
                    f"{self.best_node} comes nearest, with {shift:.3g} m and {turn:.3g} rad left; "
                    "give a node, or try more nodes or another seed"
                )
            node = self.goal_node
        path = [
            Edge(self._kind[i], self._q[i], self._inputs[i], self._trajectory[i])
            for i in self.path(node)
        ]
        return plan_along(self.task, self.options, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to one ``.npz`` file, which :meth:`load` reads.

        Entries: ``header``, a JSON text with ``format``, ``version``, ``task``, ``fingerprint``,
        ``options``, ``count``, ``goal_node``, ``counters`` and ``state``; one row per node in
        ``q``, ``command``, ``parent``, ``kind``, ``depth``, ``errors``, ``B``, ``inverse``,
        ``distance``, ``stuck``, and one column in ``next`` and ``whiten``; ``edge_steps`` (count),
        -1 for an edge without inputs, and the edges one after the other in ``inputs`` and
        ``trajectory``; ``records``.

        Args:
            path: path of the file.

        Raises:
            OSError: The file cannot be written.
        """
        self.keep(path_of("path", path))

    def keep(self, path: str | os.PathLike[str], **state: Any) -> None:
        """Write the tree as :meth:`save`, with the state that a search needs to continue.

        Args:
            path: path of the file.
            **state: other state of the search.
        """
        content = TreeContent(
            {name: self._rows(name, self.count) for name in NODES + COLUMNS},
            self._inputs,
            self._trajectory,
            self.goal_node,
            {name: getattr(self, name) for name in COUNTERS},
            self.records,
        )
        write_archive(path, FORMAT, *entries_of(self.task, self.options, content, state))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], task: Task, options: RRTOptions | None = None
    ) -> Tree:
        """Read a tree written by :meth:`save` or by a checkpoint of :func:`qdsim.planning.rrt`.

        Args:
            path: path of the file.
            task: the tree's task; files do not contain models.
            options: the search's options; required if they contain a smoothing scheme.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is not a tree, is damaged, or belongs to another task or other options. The
                whole description of the model is compared.
        """
        instance("task", task, Task)
        instance("options", options, RRTOptions, or_none=True)
        return cls.kept(path_of("path", path), task, options)[0]

    @classmethod
    def kept(
        cls, path: str | os.PathLike[str], task: Task, options: RRTOptions | None
    ) -> tuple[Tree, dict[str, Any]]:
        """Read a tree written by :meth:`keep`, and its state; the errors are those of :meth:`load`.

        Args:
            path: path of the file.
            task: The task of the search.
            options: The options of the search; None: those of the file.
        """

        def made(archive: Archive) -> tuple[Tree, dict[str, Any]]:
            found, content, state = content_of(archive, path, task, options)
            return cls._of(task, found, content), state

        return read_archive(path, FORMAT, made)

    @classmethod
    def _of(cls, task: Task, options: RRTOptions, content: TreeContent) -> Tree:
        room = max(options.max_nodes, len(content.inputs))
        return cls(task, options.replace(max_nodes=room))._filled(options, content)

    def _filled(self, options: RRTOptions, content: TreeContent) -> Tree:
        self.options, self.count = options, len(content.inputs)
        for name, array in content.nodes.items():
            self._rows(name, self.count)[...] = array
        for name, value in content.counters.items():
            setattr(self, name, value)
        self._inputs, self._trajectory = content.inputs, content.trajectory
        self.goal_node, self.records = content.goal_node, content.records
        self.first = int(np.flatnonzero(self.kind == EdgeKind.ROOT)[-1])
        return self

    def _rows(self, name: str, count: int) -> NDArray[Any]:
        """Return a view of an array with the entries of the first ``count`` nodes."""
        whole: NDArray[Any] = getattr(self, f"_{name}")
        return whole[..., :count] if name in COLUMNS else whole[:count]

    def _checked(self, node: int) -> int:
        if not 0 <= node < self.count:
            raise ValueError(f"node: expected an index from 0 to {self.count - 1}, got {node!r}")
        return int(node)

    def __repr__(self) -> str:
        end = "goal reached" if self.reached else "goal not reached"
        roots = int(np.count_nonzero(self.kind == EdgeKind.ROOT))
        again = "" if roots == 1 else f"{roots} roots, "
        return f"Tree({self.task.name!r}, {self.count} nodes, {again}{self.regrasp_count} regrasps, {end})"


def _damped_inverse(U: Array, s: Array, Vt: Array) -> Array:
    """Return the least-squares inverse ``(nu, n)`` of a matrix, from its singular value decomposition."""
    k = len(s)
    return np.asarray((Vt[:k].T * (s / (s * s + SAME * SAME))) @ U[:, :k].T)
