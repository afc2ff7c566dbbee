"""Rapidly exploring random trees through contact (CQDC Alg. 2 and 3), and a chaining variant of
them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from qdsim._core import SolverError
from qdsim.arguments import flag, generator_of, instance, integer, number, path_of
from qdsim.array_type import Array
from qdsim.batches.inputs import thread_count
from qdsim.batches.rollouts import checked_rollout
from qdsim.planning.grasps.equilibrium import EquilibriumError, holding_command
from qdsim.planning.grasps.resting import is_stable, landing
from qdsim.planning.grasps.samplers.carrying import hangs
from qdsim.planning.grasps.samplers.touching import RARELY, TRIES
from qdsim.planning.motion.motion import MotionError, connect
from qdsim.planning.plans.trials import Trials
from qdsim.planning.search.command_changes import around, following
from qdsim.planning.search.grasp_samplers import grasping_tasks
from qdsim.planning.search.guide import guide
from qdsim.planning.search.lifts import Lifts
from qdsim.planning.search.path import EdgeKind, step_options
from qdsim.planning.search.push_limits import PushLimits, before
from qdsim.planning.search.restarts import idle_iterations, is_stale
from qdsim.planning.search.tree import LocalModel, Tree
from qdsim.planning.search.tree_file import RECORD
from qdsim.planning.task.bounds import beyond_limits
from qdsim.planning.task.goal_set import Target, way_to
from qdsim.planning.task.least_squares import least_squares_in_box, room
from qdsim.planning.task.robot import CONTACT_TOLERANCE, SETTLING_STEPS, penetration
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.progress import away, progress_bar
from qdsim.whole_files import SAVE_PAUSE

__all__ = ["rrt"]

_PROGRESS = 0.01
"""A push counts as progress if it reduces the distance to the subgoal by this share."""
_DRAWS = 8
"""Number of random inputs that are tried if a push makes no progress (a single pusher needs some, several fingers do
without), and of contact samples that are tried for a new grasp."""
_LIFTS = 0.3
"""Probability that an iteration takes a new grasp below a goal in the air, and lifts the object."""
_TOUCH = 0.05
"""Distance up to which robot and object count as touching, in lengths of the object."""

_LOOKS = 40
"""Number of nodes that are searched for one at which the object rests."""


def rrt(
    task: Task,
    options: RRTOptions | None = None,
    rng: int | np.random.Generator = 0,
    *,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = SAVE_PAUSE,
) -> Tree:
    """Search for a plan that moves the task's object to its goal: a tree of grasps and steps (CQDC,
    algorithms 2 and 3).

    Args:
        task: The task.
        options: Settings of the search; None: ``task.planner``, or the chaining strategy with its
            defaults.
        rng: A seed or a generator. The same seed gives the same tree.
        progress: Whether to show a bar with the distance to the goal (without tqdm a line, in
            terminals).
        checkpoint: A file in which the search is saved every ``checkpoint_seconds`` and at its end.
            If the file exists, the search continues from it; the result is bitwise identical to
            that of an uninterrupted search, and ``rng`` is not used. ``max_nodes``,
            ``max_iterations`` and ``max_steps`` may be larger than before; a search that ended at
            ``max_nodes`` ended within an iteration, and continues with the next one.
        checkpoint_seconds: Time between two writes of the checkpoint, s.

    Returns:
        The tree, with configurations ``q`` ``(nodes, nq)``. ``tree.reached`` tells whether the goal was
        found, and ``tree.plan()`` returns the plan. Steps that the solver cannot compute are skipped and
        counted in ``tree.failures``.

    Raises:
        TypeError, ValueError: An argument is invalid, or the checkpoint is damaged or belongs to
            another task or other options; the message names the argument.
    """
    instance("task", task, Task)
    instance("options", options, RRTOptions, or_none=True)
    progress = flag("progress", progress)
    if checkpoint is not None:
        checkpoint = path_of("checkpoint", checkpoint)
    search = _Search(task, options or task.planner or RRTOptions(), generator_of(rng))
    every = number("checkpoint_seconds", checkpoint_seconds, least=0, infinite=True)
    if checkpoint is not None and os.path.exists(checkpoint):
        search.restore(checkpoint)
    search.grow(progress, checkpoint, every)
    return search.tree


class _Grasp(NamedTuple):
    """A contact sample ``q`` ``(nq,)`` and its local model."""

    q: Array
    local: LocalModel


class _Search:
    """One search: a tree, its random numbers, and the rules by which it grows."""

    def __init__(self, task: Task, options: RRTOptions, rng: np.random.Generator) -> None:
        self.task = task
        self.options = options
        self.rng = rng
        self.tree = Tree(task, options)
        self.exact = options.dynamics == "exact"
        self.step_options = step_options(task, options)
        self.lower, self.upper = task.command_bounds
        self.limits = PushLimits(task, options)
        self.trials: Trials | None = None
        if options.certify:
            tolerances = task.position_tolerance, task.rotation_tolerance
            heavy = task.options.gravity_on_actuated
            self.trials = Trials(task.model, task.goals, heavy, tolerances)
        self.grasping, self.pushing = grasping_tasks(task)
        self.span = task.upper - task.lower
        self.most_steps = math.inf if options.max_steps is None else options.max_steps
        self._resting: dict[int, bool] = {}
        self.chained = options.strategy == "chain"
        self.falls = hangs(task.model, task.start, task.object)
        self.lifts = Lifts(task, options, self.step_options, self.falls)
        self.landing = self.lifts.below
        self.guide = (
            guide(task, np.random.default_rng(0)) if self.chained and not self.falls else None
        )
        self.ramp = np.arange(1, options.sub_steps + 1)[:, None] / options.sub_steps
        self.threads = thread_count(None)

    def grow(self, progress: bool, checkpoint: str | os.PathLike[str] | None, pause: float) -> None:
        tree, options = self.tree, self.options
        iterate = (
            self._chain_iteration if options.strategy == "chain" else self._published_iteration
        )
        rows = tree.records.tolist()
        begin = time.perf_counter() - tree.seconds
        saved = time.perf_counter()
        with progress_bar(progress, options.max_nodes, self.task.name, "nodes") as update:
            for iteration in range(len(rows), options.max_iterations):
                if self._ended() or tree.steps >= self.most_steps:
                    break
                if options.max_idle is not None and idle_iterations(rows) >= options.max_idle:
                    break
                if is_stale(tree, options.restart):
                    tree.restart()
                try:
                    iterate()
                except SolverError:  # in the smoothed model of a new node
                    tree.failures += 1
                tree.seconds = time.perf_counter() - begin
                rows.append(tree.record(iteration, self.regrasps))
                update(tree.count, away(*tree.errors[tree.best_node].tolist()))
                if checkpoint is not None and time.perf_counter() - saved >= pause:
                    self._save(checkpoint, rows)
                    saved = time.perf_counter()
        tree.records = np.array(rows, dtype=RECORD)
        if checkpoint is not None:
            self._save(checkpoint, rows)

    def _save(self, checkpoint: str | os.PathLike[str], rows: list[Any]) -> None:
        self.tree.records = np.array(rows, dtype=RECORD)
        state = self.rng.bit_generator.state
        self.tree.keep(checkpoint, rng=state, regrasps=self.regrasps)

    def restore(self, checkpoint: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint: restore the tree, the random numbers and the counters."""
        tree, state = Tree.kept(checkpoint, self.task, self.options)
        try:
            self.regrasps = integer("regrasps", state["regrasps"], least=0)
            self.rng.bit_generator.state = state["rng"]
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(
                f"checkpoint: {os.fspath(checkpoint)} does not hold a search of this generator: "
                f"{error}"
            ) from None
        self.tree = tree

    regrasps = 0

    # ---------------------------------------------------------------- the two strategies

    def _published_iteration(self) -> None:
        """Take one step towards a subgoal, or a new grasp (CQDC Alg. 2 with contact sampling)."""
        subgoal = self._subgoal()
        node = self.tree.nearest(subgoal)
        if self.task.sampler is not None and self.rng.random() < self.options.grasp_probability:
            self._regrasp(node)
            return
        local = self.tree.local(node)
        q = self.tree.q[node]
        (edge,) = self._simulate(q, local.command, self._steer(q, local, subgoal)[None])
        if edge is not None:
            self.tree.add(edge[1][-1], node, EdgeKind.PUSH, *edge)

    def _chain_iteration(self) -> None:
        """Push while the object comes nearer to the subgoal; when it does not, change the grasp and try again."""
        tree = self.tree
        if self.landing is not None and self.rng.random() < _LIFTS:
            self._lift(self.landing)
            return
        subgoal = self._subgoal()
        node = tree.nearest(subgoal)
        for grasp in range(TRIES + 1):
            node, stalled = self._push(node, subgoal)
            if not stalled or self._ended() or grasp == TRIES:
                return
            fresh = self._regrasp(node, subgoal)
            if fresh is None or tree.reached:
                return
            node = fresh

    def _lift(self, below: Array) -> None:
        """Take a new grasp where the object rests near the pose below the goal, and lift it from there to the goal.

        The grasp is not changed in the air. The last grasp has to be taken while the object is supported, and has to
        hold for the rest of the path. Large rotations are therefore made on the support: subgoals at the goal are
        replaced by the pose below it.
        """
        tree = self.tree
        weighed = tree.object_distances(below) * (1.0 + tree.grasps_tried())
        nodes = (tree.first + np.argsort(weighed, kind="stable")[:_LOOKS]).tolist()
        node = next((n for n in nodes if self._rests(n)), None)
        if node is None:
            return
        if self._carry(node):
            return
        fresh = self._regrasp(node, self.task.goals)
        if fresh is None:
            tree.mark_stuck(node)
        elif not self._ended():
            self._push(fresh, self.task.goals)

    def _carry(self, node: int) -> bool:
        """Take a grasp in which the fingers carry the object straight to the goal; return whether one is found."""
        tree, settled = self.tree, self._free(node)
        if settled is None:
            return False
        q = tree.q[settled]
        for grasp, motion in self.lifts.motions(self.grasping, q, _DRAWS, self.rng):
            tree.steps += len(motion[0])
            edge = self.limits(*motion)
            if edge is None or not self.task.reached(edge[1][-1]):
                continue
            local = tree.local_model(grasp)
            if self._is_certain(grasp, local.command, edge) and self._gets_to(q, grasp):
                fresh = self._grasped(settled, _Grasp(grasp, local))
                if not tree.full:
                    tree.add(edge[1][-1], fresh, EdgeKind.PUSH, *edge)
                return True
        return False

    def _push(self, node: int, subgoal: Target) -> tuple[int, bool]:
        """Push as long as the object comes nearer to the subgoal.

        Returns:
            The last node, and whether pushing ended because no push brought the object nearer.
        """
        tree, options = self.tree, self.options
        distance = tree.object_distance(tree.q[node], subgoal)
        for _ in range(options.chain_length):
            if self._ended() or distance <= self.task.position_tolerance * 0.25:
                return node, False
            wanted = (1.0 - _PROGRESS) * distance
            local = tree.local(node)
            ways = self._ways(tree.q[node], local, subgoal)
            edge = self._best(node, ways, subgoal, wanted)
            if edge is None:
                within = room(local.command, self.lower, self.upper)
                ways = around(ways[0], _DRAWS, options.step, within, self.rng)
                edge = self._best(node, ways, subgoal, wanted)
            if edge is None:
                return node, True
            node = tree.add(edge[1][-1], node, EdgeKind.PUSH, *edge)
            distance = tree.object_distance(edge[1][-1], subgoal)
        return node, False

    def _ways(self, q: Array, local: LocalModel, subgoal: Target) -> Array:
        """Return changes of the command ``(n, nu)`` towards a subgoal.

        One follows from the smoothed model. The other, if there is one, moves the robot's contacts along with the
        object.
        """
        task, steered = self.task, self._steer(q, local, subgoal)
        motion = way_to(task.space, subgoal, q)
        within = room(local.command, self.lower, self.upper)
        along = following(task.model, q, task.space, motion, _TOUCH * task.length, *within)
        return steered[None] if along is None else np.stack((steered, self._short(along)))

    def _best(
        self, node: int, ways: Array, subgoal: Target, wanted: float
    ) -> tuple[Array, Array] | None:
        """Return the edge that brings the object nearest, among those of some changes of the command.

        None if it does not come within the distance ``wanted``, or if rollouts show that the edge is not certain.
        """
        q, command = self.tree.q[node], self.tree.local(node).command
        for distance, edge in self._nearest_first(q, command, ways, subgoal):
            if distance > wanted:
                break
            if self._is_certain(q, command, edge):
                return edge
        return None

    def _nearest_first(
        self, q: Array, command: Array, ways: Array, subgoal: Target
    ) -> list[tuple[float, tuple[Array, Array]]]:
        """Return the edges of changes of the command with the object's distance to the subgoal, the nearest first."""
        edges = [edge for edge in self._simulate(q, command, ways) if edge is not None]
        found = [(self.tree.object_distance(edge[1][-1], subgoal), edge) for edge in edges]
        return sorted(found, key=lambda one: one[0])

    def _is_certain(self, q: Array, command: Array, edge: tuple[Array, Array]) -> bool:
        """Return whether an edge ends as planned in rollouts; True if the options ask for no rollouts."""
        inputs, path = edge
        return self.trials is None or self.trials.worst(q, command, inputs, path[-1]) <= 1.0

    # ---------------------------------------------------------------- parts of the strategies

    def _subgoal(self) -> Target:
        """Draw a subgoal ``(nq,)`` or set of goals.

        It is the goal, the pose below it or a pose of the guide; or a pose between the goal and the nearest node; or a
        random pose of the box.
        """
        task, options, rng = self.task, self.options, self.rng
        coin = rng.random()
        if coin < options.goal_probability:
            if self.landing is not None and rng.random() < 0.5:
                return self.landing
            if self.guide is not None:
                return self.guide.subgoal(self.tree, rng)
            if task.goals.is_point or rng.random() < 0.5:
                return task.goals
            return task.goals.nearest(self._anywhere())  # the nearest may be unreachable
        if self.chained and rng.random() < 0.5:
            q = self.tree.q[self.tree.nearest_to_goal]
            return task.with_object(q, rng.random() * task.goals.difference(q))
        return self._anywhere()

    def _anywhere(self) -> Array:
        """Draw a pose in the task's box ``(nq,)``."""
        share = self.rng.random(len(self.task.lower))
        return self.task.with_object(self.task.start, self.task.lower + share * self.span)

    def _held(self, q: Array, local: LocalModel) -> Array:
        """Return the assumed configuration ``(nq,)`` after a step with an unchanged command.

        CQDC uses c, the result of the smoothed model. Under gravity, the barrier carries the object without contacts,
        so that c is off by centimetres and goals in the air look reached from nodes near them. However, c also knows
        which contacts are about to be made. Therefore c and the exact step are each used half of the time. Without
        gravity the object stays where it is, whereas in c the barrier pushes it away from the robot.
        """
        if not self.chained or not self.exact:
            return local.q_next
        if not self.falls:
            return q
        if self.rng.random() < 0.5:
            return local.q_next
        (edge,) = self._run(q, local.command[None, None])
        return local.q_next if edge is None else edge[1][0]

    def _steer(self, q: Array, local: LocalModel, subgoal: Target) -> Array:
        """Return the change of the command ``(nu,)`` that brings the smoothed model nearest to the subgoal (CQDC
        Alg. 3, line 3).

        If the free solution is longer than ``options.step``, the target is moved nearer in proportion. Joint limits
        are bounds of the least-squares problem, so that other joints act when one is at its limit.
        """
        held = self._held(q, local)
        target = self.tree.target(held, subgoal)
        B, inverse = self.tree.steering(held, local, subgoal)
        free: Array = inverse @ target
        longest = self.options.step
        length = math.sqrt(free @ free)
        if length > longest:
            free, target = free * (longest / length), target * (longest / length)
        du = least_squares_in_box(
            B, target, *room(local.command, self.lower, self.upper), first_guess=free
        )
        return self._short(du)

    def _short(self, du: Array) -> Array:
        """Return a change of the command, shortened to ``options.step`` if it is longer."""
        return du * (self.options.step / max(math.sqrt(du @ du), self.options.step))

    def _simulate(self, q: Array, command: Array, ways: Array) -> list[tuple[Array, Array] | None]:
        """Simulate ramps from a command by each of the changes ``ways`` ``(n, nu)``.

        Returns:
            For each change the commands ``(steps, nu)`` and the configurations after them ``(steps, nq)`` up to the
            last step within the limits; None if there is none or the solver failed.
        """
        inputs = np.clip(command + self.ramp * ways[:, None], self.lower, self.upper)
        return [None if edge is None else self.limits(*edge) for edge in self._run(q, inputs)]

    def _run(self, q: Array, inputs: Array) -> list[tuple[Array, Array] | None]:
        """Simulate rows of commands ``(n, steps, nu)``, up to the last step within the joint limits of the robot.

        Contacts can push joints beyond their limits, because smoothed steps have none. None stands for a row whose
        first step leaves the limits, or in which a step fails.
        """
        model, tree, count = self.task.model, self.tree, inputs.shape[1]
        start = np.repeat(q[None], len(inputs), axis=0)
        paths, _, done = checked_rollout(
            model, start, None, inputs, self.step_options, None, threads=self.threads
        )
        good = done == count
        tree.steps += int(np.where(good, count, done + 1).sum())
        tree.failures += int(np.count_nonzero(~good))
        outside = np.asarray(beyond_limits(model, paths[:, 1:]).any(axis=2))
        return [
            before(beyond, u, path[1:]) if fine else None
            for fine, beyond, u, path in zip(good, outside, inputs, paths)
        ]

    def _regrasp(self, node: int, subgoal: Target | None = None) -> int | None:
        """Move the robot to a new grasp of the object, which stays where it is.

        With a subgoal, half of the time several grasps are tried: the first from which a push brings the object
        nearer is kept together with that push, otherwise the best one. The other half of the time takes the first
        grasp that is drawn, because greedy choices alone lead to dead ends near the goal.
        """
        if self.task.sampler is None:
            return None
        settled = self._free(node)
        if settled is None:
            return None
        hanging = self.options.hold and not self._rests(settled)
        if subgoal is None or self.rng.random() >= 0.5:
            return self._any_grasp(settled, hanging)
        return self._best_grasp(settled, hanging, subgoal)

    def _free(self, node: int) -> int | None:
        """Return a node at which the robot may release the object, or None.

        It is the given node, or a later one after the object has settled or has been set down. A measured start may
        have no step at all, for example where a robot at its joint limits clamps the object. The robot may still leave.
        """
        tree = self.tree
        settled = self._settle(node)
        if settled is None and tree.kind[node] == EdgeKind.ROOT and self._rests(node):
            settled = node
        if settled is None or self._ended():
            return None
        if not self.options.require_static_regrasps or self._rests(settled):
            return settled
        tries = self.chained and tree.stuck(settled) < TRIES
        down = self._set_down(settled) if tries else None
        if down is None:
            tree.mark_stuck(node, settled)
        return None if self._ended() else down

    def _ended(self) -> bool:
        """Return whether no further node may be added."""
        return self.tree.full or self.tree.reached

    def _set_down(self, node: int) -> int | None:
        """Push the object to where it would come to rest if it fell; return the node if it rests there, else None."""
        below = landing(self.task.model, self.tree.q[node], self.task.object, self.step_options)
        if below is None:
            return None
        last = self._push(node, below)[0]
        settled = None if self._ended() else self._settle(last)
        return settled if settled is not None and self._rests(settled) else None

    def _any_grasp(self, node: int, hanging: bool) -> int | None:
        """Add a node with the first grasp to which the robot can move."""
        q = self.tree.q[node]
        for grasp in self._grasps(q, hanging):
            if self._gets_to(q, grasp.q):
                return self._grasped(node, grasp)
        return None

    def _best_grasp(self, node: int, hanging: bool, subgoal: Target) -> int | None:
        """Add the first grasp from which a push brings the object nearer, with that push; otherwise the best grasp."""
        tree = self.tree
        q = tree.q[node]
        begin = tree.object_distance(q, subgoal)
        wanted, least = (1.0 - _PROGRESS) * begin, math.inf
        best: tuple[_Grasp, tuple[Array, Array] | None] | None = None
        for grasp in self._grasps(q, hanging):
            command = grasp.local.command
            ways = self._ways(grasp.q, grasp.local, subgoal)
            pushes = self._nearest_first(grasp.q, command, ways, subgoal)
            distance, edge = pushes[0] if pushes else (begin, None)
            if edge and distance <= wanted and not self._is_certain(grasp.q, command, edge):
                edge, distance = None, begin
            if (best is None or distance < least) and self._gets_to(q, grasp.q):
                best, least = (grasp, edge), distance
            if least <= wanted:
                break
        if best is None:
            return None
        grasp, edge = best
        fresh = self._grasped(node, grasp)
        if edge is None or least > wanted or tree.full:
            return fresh
        return tree.add(edge[1][-1], fresh, EdgeKind.PUSH, *edge)

    def _grasped(self, node: int, grasp: _Grasp) -> int:
        """Add a node after a change of grasp."""
        self.regrasps += 1
        return self.tree.add(grasp.q, node, EdgeKind.REGRASP, None, None, grasp.local)

    def _rests(self, node: int) -> bool:
        """Return whether the object stays in place at a node without the robot; the result is stored per node."""
        if node not in self._resting:
            self._resting[node] = self._is_stable(self.tree.q[node])
        return self._resting[node]

    def _is_stable(self, q: Array) -> bool:
        """Return whether the object stays in place without the robot."""
        return is_stable(self.task.model, q, self.task.object, self.step_options)

    def _gets_to(self, q: Array, grasp: Array) -> bool:
        """Return whether the robot can move from one configuration to another while the object stays in place."""
        options = self.options.motion_options
        if options is None:
            return True
        try:
            connect(self.task.grasping_model, q, grasp, options, self.tree.count)
        except MotionError:
            return False
        return True

    def _grasps(self, q: Array, hanging: bool) -> Iterator[_Grasp]:
        """Yield up to ``_DRAWS`` contact samples with their local models.

        An object in the air falls out of most grasps. There, only grasps whose contact forces can balance its weight
        are used, and they begin with the command that produces these forces. If there is none, the last sample is
        used.
        """
        tree = self.tree
        last: Array | None = None
        held = False
        for _ in range(_DRAWS):
            drawing = self.grasping
            if self.pushing is not None and self.rng.random() < RARELY:
                drawing = self.pushing
            sample = drawing.grasp(q, self.rng)
            if sample is None:
                break
            try:
                command = self._holding(sample)[None] if hanging else None
                local = tree.local_model(sample, command)
            except EquilibriumError:
                last = sample
                continue
            except SolverError:
                tree.failures += 1
                continue
            held = True
            yield _Grasp(sample, local)
        if last is not None and not held:
            yield _Grasp(last, tree.local_model(last))

    def _holding(self, grasp: Array) -> Array:
        """Return the command that holds a grasp, within the bounds."""
        return holding_command(self.task.model, grasp, lower=self.lower, upper=self.upper).u

    def _settle(self, node: int) -> int | None:
        """Return a node without penetration: this one, or one after the robot has held still for some steps.

        Large steps leave penetration because of linearisation, and a robot should not release an object that it
        penetrates. Meanwhile an object in the air is held with the node's command.
        """
        tree = self.tree
        if tree.penetration[node] <= CONTACT_TOLERANCE:
            return node
        q = np.array(tree.q[node])
        held = tree.local(node).command if self.options.hold and not self._is_stable(q) else None
        inputs, trajectory = [], []
        for _ in range(SETTLING_STEPS):
            command = self.task.hold(q) if held is None else held
            (edge,) = self._run(q, command[None, None])
            if edge is None:
                return None
            inputs.append(edge[0][0])
            trajectory.append(edge[1][0])
            q = edge[1][0]
            if penetration(self.task.model, q) <= CONTACT_TOLERANCE:
                return tree.add(q, node, EdgeKind.SETTLE, np.array(inputs), np.array(trajectory))
        return None
