"""Plans: commands from a start to a goal, cut where the grasp changes; kept in a file, replayed,
judged.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdsim.model import Model
from qdsim.planning.rrt import step_options
from qdsim.planning.space import Array, ObjectSpace
from qdsim.planning.task import penetration
from qdsim.planning.tree import EdgeKind
from qdsim.step import Options, Step, step

if TYPE_CHECKING:
    from qdsim.planning.tree import Tree

__all__ = ["Plan", "ReplayResult", "Segment", "Verdict"]

FORMAT, VERSION = "qdsim-plan", 1


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """A stretch of a plan between two changes of grasp.

    Attributes:
        inputs: ``(steps, nu)`` commands, one for each step of ``Plan.options.h``.
        configurations: ``(steps + 1, nq)``, the start and the configuration after every step.
        knots: ``(edges,)`` how many steps had been taken at the end of each of the tree's edges.
    """

    inputs: Array
    configurations: Array
    knots: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def start(self) -> Array:
        """Configuration ``(nq,)`` before the first step."""
        return np.asarray(self.configurations[0])

    @property
    def end(self) -> Array:
        """Configuration ``(nq,)`` after the last step."""
        return np.asarray(self.configurations[-1])

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.inputs)

    def __repr__(self) -> str:
        return f"Segment({self.steps} steps, {len(self.knots)} edges)"


@dataclasses.dataclass(frozen=True, eq=False)
class ReplayResult:
    """What stepping through a plan once more gave.

    Attributes:
        steps: the :class:`qdsim.Step` of every command, a tuple for each segment, with contacts and
            forces.
        max_error: largest difference to the plan's own configurations, over all entries.
        identical: whether every configuration has the same bits.
        position_error, rotation_error: of the object's last pose with respect to the goal, m and
            rad.
    """

    steps: tuple[tuple[Step, ...], ...]
    max_error: float
    identical: bool
    position_error: float
    rotation_error: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a plan is good, and if not, why.

    Attributes:
        faults: what is wrong, in words; empty for a good plan.
        position_error, rotation_error: at the end of the replay, m and rad.
        replay_error: largest difference between replay and plan.
        regrasp_penetration: deepest penetration at either end of any change of grasp, m.
    """

    faults: tuple[str, ...]
    position_error: float
    rotation_error: float
    replay_error: float
    regrasp_penetration: float

    @property
    def good(self) -> bool:
        """True if there are no faults."""
        return not self.faults

    def __bool__(self) -> bool:
        return self.good


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """Commands that bring an object to its goal.

    Within a segment the steps follow from the commands alone. Between two segments the grasp
    changes: the robot goes to another configuration (no input, no path) while the object stays
        where it is.

    Attributes:
        task: name of the task.
        object: name of the object's body.
        options: of the steps.
        goal: ``(nq,)``, of which the object's entries matter.
        position_tolerance, rotation_tolerance: what counts as having reached it, m and rad.
        contact_tolerance: deepest penetration at the ends of a regrasp, m.
        segments: at least one.
    """

    task: str
    object: str
    options: Options
    goal: Array
    position_tolerance: float
    rotation_tolerance: float
    contact_tolerance: float
    segments: tuple[Segment, ...]

    @property
    def start(self) -> Array:
        """First configuration ``(nq,)``."""
        return self.segments[0].start

    @property
    def end(self) -> Array:
        """Last configuration ``(nq,)``."""
        return self.segments[-1].end

    @property
    def regrasps(self) -> tuple[tuple[Array, Array], ...]:
        """Configurations before and after each change of grasp."""
        return tuple((a.end, b.start) for a, b in zip(self.segments, self.segments[1:]))

    @property
    def step_count(self) -> int:
        """Steps of all segments."""
        return sum(segment.steps for segment in self.segments)

    def replay(self, model: Model) -> ReplayResult:
        """Take every segment's steps again, from the segment's start.

        Raises:
            ValueError: if the plan does not belong to this model.
            SolverError: if a step cannot be solved.
        """
        self._check_model(model)
        steps: list[tuple[Step, ...]] = []
        worst, identical = 0.0, True
        for segment in self.segments:
            q, taken = segment.start, []
            for u, planned in zip(segment.inputs, segment.configurations[1:]):
                taken.append(step(model, q, u, self.options))
                q = taken[-1].q_next
                worst = max(worst, float(np.abs(q - planned).max()))
                identical = identical and q.tobytes() == planned.tobytes()
            steps.append(tuple(taken))
        # The last configuration that was really computed, not the one that was stored.
        last = steps[-1][-1].q_next if steps[-1] else self.end
        shift, turn = ObjectSpace(model, self.object).errors(last, self.goal)
        return ReplayResult(tuple(steps), worst, identical, shift, turn)

    def check(self, model: Model, *, replay_tolerance: float = 0.0) -> Verdict:
        """Replay the plan and judge it: the goal, the bits, and the changes of grasp.

        Args:
            model: the model of the plan's task.
            replay_tolerance: largest difference between replay and plan that is no fault. Steps have
                the same bits on the machine that made the plan; other processors may round otherwise.
        """
        result = self.replay(model)
        space = ObjectSpace(model, self.object)
        faults = []
        if result.position_error > self.position_tolerance:
            faults.append(f"the object ends {result.position_error:.3g} m from the goal")
        if result.rotation_error > self.rotation_tolerance:
            faults.append(f"the object ends {result.rotation_error:.3g} rad from the goal")
        tolerated = 0.0 < replay_tolerance >= result.max_error
        if not result.identical and not tolerated:
            faults.append(f"the replay differs by up to {result.max_error:.3g}")
        deepest = 0.0
        for k, (before, after) in enumerate(self.regrasps):
            if before[space.q].tobytes() != after[space.q].tobytes():
                faults.append(f"regrasp {k} moves the object")
            for q, end in ((before, "before"), (after, "after")):
                depth = penetration(model, q)
                deepest = max(deepest, depth)
                if depth > self.contact_tolerance:
                    faults.append(f"{depth:.2g} m of penetration {end} regrasp {k}")
        return Verdict(
            tuple(faults), result.position_error, result.rotation_error, result.max_error, deepest
        )

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to one ``.npz`` file (no pickles inside).

        Entries: ``header``, a JSON text with ``format``, ``version``, ``task``, ``object``,
            ``options``, the
        tolerances; ``goal`` (nq); ``steps`` (segments) and ``edges`` (segments), how many of each;
        and the segments one after the other: ``inputs`` (sum of steps, nu), ``configurations`` (sum
        of steps + 1, nq), ``knots`` (sum of edges).
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "task": self.task,
            "object": self.object,
            "options": option_values(self.options),
            "position_tolerance": self.position_tolerance,
            "rotation_tolerance": self.rotation_tolerance,
            "contact_tolerance": self.contact_tolerance,
        }
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                header=np.array(json.dumps(header)),
                goal=self.goal,
                steps=np.array([s.steps for s in self.segments], dtype=np.int64),
                edges=np.array([len(s.knots) for s in self.segments], dtype=np.int64),
                inputs=np.concatenate([s.inputs for s in self.segments]),
                configurations=np.concatenate([s.configurations for s in self.segments]),
                knots=np.concatenate([s.knots for s in self.segments]),
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan that :meth:`save` wrote.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is not a plan, or is cut or damaged; the message names the file.
        """
        content = Path(path).read_bytes()
        try:
            return _from_arrays(_read_arrays(content))
        except Exception as error:  # NumPy and zipfile raise all sorts at damaged archives
            reason = f"has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{Path(path)}: not a plan of qdsim: {reason}") from None

    def _check_model(self, model: Model) -> None:
        nq, nu = self.goal.shape[0], self.segments[0].inputs.shape[1]
        if (model.nq, model.nu) != (nq, nu):
            raise ValueError(
                f"model: the plan has nq = {nq} and nu = {nu}, the model {model.nq} and {model.nu}"
            )

    def __repr__(self) -> str:
        return (
            f"Plan({self.task!r}, {len(self.segments)} segments, {self.step_count} steps, "
            f"{len(self.segments) - 1} regrasps)"
        )


def _read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def plan_from_tree(tree: Tree, node: int) -> Plan:
    """The plan along a tree's path; runs of regrasps become their last one, trailing ones are
    dropped.
    """
    path = tree.path(node)
    while len(path) > 1 and tree.kind[path[-1]] == EdgeKind.REGRASP:
        path.pop()
    starts: list[Array] = [tree.q[0]]
    edges: list[list[int]] = [[]]
    for k, index in enumerate(path[1:], 1):
        if tree.kind[index] != EdgeKind.REGRASP:
            edges[-1].append(index)
        elif tree.kind[path[k + 1]] != EdgeKind.REGRASP:  # a regrasp is never the last
            starts.append(tree.q[index])
            edges.append([])
    task = tree.task
    return Plan(
        task=task.name,
        object=task.object,
        options=step_options(task, tree.options),
        goal=np.array(task.goal),
        position_tolerance=task.position_tolerance,
        rotation_tolerance=task.rotation_tolerance,
        contact_tolerance=tree.options.contact_tolerance,
        segments=tuple(_segment(tree, q, nodes) for q, nodes in zip(starts, edges)),
    )


def _segment(tree: Tree, start: Array, nodes: list[int]) -> Segment:
    model = tree.task.model
    inputs, configurations, knots = [np.empty((0, model.nu))], [start[None]], []
    for node in nodes:
        u, q = tree.inputs(node), tree.trajectory(node)
        assert u is not None and q is not None
        inputs.append(u)
        configurations.append(q)
        knots.append(len(u))
    return Segment(
        np.concatenate(inputs),
        np.concatenate(configurations),
        np.cumsum(np.array(knots, dtype=np.int64)),
    )


def option_values(options: Options) -> dict[str, Any]:
    """The options' fields by name, as JSON takes them."""
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options) if f.init}


def _from_arrays(arrays: dict[str, Any]) -> Plan:
    header = json.loads(str(arrays["header"]))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is that of another format")
    if header["version"] != VERSION:
        raise ValueError(f"version {header['version']} of the format, this qdsim reads {VERSION}")
    options = dict(header["options"])
    options["held"] = tuple(options.get("held", ()))
    goal, inputs, configurations = (
        _table(arrays, name, rank)
        for name, rank in (("goal", 1), ("inputs", 2), ("configurations", 2))
    )
    steps, edges, knots = (_counts(arrays, name) for name in ("steps", "edges", "knots"))
    if len(steps) == 0 or len(edges) != len(steps):
        raise ValueError("steps and edges do not list the same segments")
    if (
        steps.sum() != len(inputs)
        or (steps + 1).sum() != len(configurations)
        or edges.sum() != len(knots)
        or configurations.shape[1] != len(goal)
    ):
        raise ValueError("the sizes of its arrays contradict each other")
    split = [np.cumsum(sizes)[:-1] for sizes in (steps, steps + 1, edges)]
    segments = tuple(
        Segment(u, q, k)
        for u, q, k in zip(
            np.split(inputs, split[0]),
            np.split(configurations, split[1]),
            np.split(knots, split[2]),
        )
    )
    if any(np.any(np.diff(s.knots, prepend=0) < 0) or np.any(s.knots > s.steps) for s in segments):
        raise ValueError("knots do not rise within their segments")
    return Plan(
        task=str(header["task"]),
        object=str(header["object"]),
        options=Options(**options),
        goal=goal,
        position_tolerance=float(header["position_tolerance"]),
        rotation_tolerance=float(header["rotation_tolerance"]),
        contact_tolerance=float(header["contact_tolerance"]),
        segments=segments,
    )


def _table(arrays: dict[str, Any], name: str, rank: int) -> Array:
    array = arrays[name]
    if array.dtype != np.float64 or array.ndim != rank or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} is not a table of rank {rank} of finite numbers")
    return np.ascontiguousarray(array)


def _counts(arrays: dict[str, Any], name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    array = arrays[name]
    if array.dtype != np.int64 or array.ndim != 1 or np.any(array < 0):
        raise ValueError(f"{name} is not a list of counts")
    return np.asarray(array)
