"""Plans: commands from a start to a goal, divided into segments at regrasps; saved, replayed and
checked."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import flag, instance, number, path_of
from qdsim.array_type import Array
from qdsim.batches.steps import step_batch
from qdsim.model import Model
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.motion.motion import Motion, motion_fault
from qdsim.planning.plans.archive import read_archive, write_archive
from qdsim.planning.plans.executable import judged_forces, obstacles
from qdsim.planning.plans.joint_trajectory import JointTrajectory, limits_of, timed
from qdsim.planning.plans.plan_file import FORMAT, entries_of, fields_of
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.bounds import beyond, beyond_limits, narrowed
from qdsim.planning.task.drives import owners, robot_joints
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.task.robot import check_springs, command_range, penetration
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.showing import shown
from qdsim.step import Options, Step, step

__all__ = ["Plan", "ReplayResult", "Verdict", "plan_for"]


@dataclasses.dataclass(frozen=True, eq=False)
class ReplayResult:
    """Result of replaying a plan.

    Attributes:
        steps: the :class:`qdsim.Step` of every command, a tuple for each segment, with contacts and
            forces.
        max_error: largest difference to the plan's own configurations, over all entries.
        identical: whether all configurations are bitwise identical.
        position_error, rotation_error: error of the object's last pose from the goal, m and rad.
    """

    steps: tuple[tuple[Step, ...], ...]
    max_error: float
    identical: bool
    position_error: float
    rotation_error: float


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict:
    """Result of checking a plan: whether it is good, and the reasons if it is not.

    Attributes:
        faults: descriptions of all faults; empty for a good plan.
        position_error, rotation_error: at the end of the replay, m and rad.
        replay_error: largest difference between replay and plan.
        regrasp_penetration: deepest penetration before or after any regrasp, m.
        notes: observations that are not faults.
        dropping_regrasps: indices of the regrasps at which the object would not stay in place
            without the robot.
        largest_forces: ``(nu,)`` largest force of each actuator in the replay, N or Nm.
        obstacles: reasons why an execution may fail; None if not checked.
    """

    faults: tuple[str, ...]
    position_error: float
    rotation_error: float
    replay_error: float
    regrasp_penetration: float
    notes: tuple[str, ...] = ()
    dropping_regrasps: tuple[int, ...] = ()
    largest_forces: tuple[float, ...] | None = None
    obstacles: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        said = "good" if self.good else "not good: " + "; ".join(self.faults)
        notes = "".join(f", note: {note}" for note in self.notes)
        if self.obstacles is not None:
            notes += f", executable: {'; '.join(self.obstacles) or 'yes'}"
        return (
            f"Verdict({said}; {self.position_error:.3g} m and {self.rotation_error:.3g} rad from the goal, "
            f"replay off by {self.replay_error:.3g}{notes})"
        )

    @property
    def good(self) -> bool:
        """True if there are no faults."""
        return not self.faults

    @property
    def executable(self) -> bool | None:
        """Whether no reason against an execution was found; None if not checked."""
        return None if self.obstacles is None else not self.obstacles

    def __bool__(self) -> bool:
        return self.good


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """Commands that bring an object to its goal.

    Within a segment, the commands determine the steps. Between two segments the robot regrasps: it
    moves to another configuration, by a motion if the plan has one, while the object stays in
    place. :meth:`check` reports regrasps at which gravity would move the object.

    Attributes:
        task: name of the task.
        object: name of the object's body.
        options: of the steps.
        goal: ``(nq,)`` configuration; only the object's entries matter.
        position_tolerance, rotation_tolerance: pose errors at which the goal counts as reached, m
            and rad.
        contact_tolerance: deepest penetration at the ends of a regrasp, m.
        segments: at least one.
        motions: one per regrasp, None for a regrasp without a motion; or empty.
            :func:`qdsim.planning.connect_segments` makes them.
        command_bounds: ``nu`` lower and ``nu`` upper bounds, which the commands satisfy; None: the
            joint limits and the actuators' ranges of the model.
        goal_region: other poses that also count as the goal; None: none.
    """

    task: str
    object: str
    options: Options
    goal: Array
    position_tolerance: float
    rotation_tolerance: float
    contact_tolerance: float
    segments: tuple[Segment, ...]
    motions: tuple[Motion | None, ...] = ()
    command_bounds: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    goal_region: GoalRegion | None = None

    def __post_init__(self) -> None:
        if not self.motions:
            return
        if len(self.motions) != len(self.segments) - 1:
            raise ValueError(
                f"motions: expected one for each of {len(self.segments) - 1} regrasps, got "
                f"{len(self.motions)}"
            )
        for k, (motion, ends) in enumerate(zip(self.motions, self.regrasps)):
            if motion is not None and not (
                np.array_equal(motion.configurations[0], ends[0])
                and np.array_equal(motion.configurations[-1], ends[1])
            ):
                raise ValueError(f"motions: number {k} does not join segments {k} and {k + 1}")

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
        """Configurations before and after each regrasp."""
        return tuple((a.end, b.start) for a, b in zip(self.segments, self.segments[1:]))

    @property
    def sequence(self) -> tuple[Segment | Motion, ...]:
        """Segments and motions in order; regrasps without a motion are gaps."""
        pairs = zip_longest(self.segments, self.motions)
        return tuple(part for pair in pairs for part in pair if part is not None)

    @property
    def step_count(self) -> int:
        """Number of steps of all segments."""
        return sum(segment.steps for segment in self.segments)

    def goals(self, model: Model) -> GoalSet:
        """Return the poses of the object that count as the goal.

        Args:
            model: the plan's model.
        """
        return GoalSet(model, ObjectSpace(model, self.object), self.goal, self.goal_region)

    def with_forces(self, model: Model | Task) -> Plan:
        """Return the plan with the contact forces of every step, recomputed from its configurations.

        Args:
            model: the model or task of the plan.

        Raises:
            ValueError: if the plan does not belong to this model.
            SolverError: if a step cannot be solved.
        """
        model = model_of(self, model)
        segments = []
        for segment in self.segments:
            taken = step_batch(model, segment.configurations[:-1], segment.inputs, self.options)
            assert taken.contacts is not None and taken.contact_start is not None
            acts = np.any(taken.contacts["force"] != 0.0, axis=1)
            before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(acts)))
            segments.append(
                dataclasses.replace(
                    segment,
                    contacts=taken.contacts[acts],
                    contact_start=before[taken.contact_start],
                )
            )
        return dataclasses.replace(self, segments=tuple(segments))

    def replay(self, model: Model | Task) -> ReplayResult:
        """Recompute the steps of every segment from the segment's start.

        Args:
            model: the model or task of the plan.

        Raises:
            ValueError: if the plan does not belong to this model.
            SolverError: if a step cannot be solved.
        """
        model = model_of(self, model)
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
        # Use the last computed configuration, not the stored one.
        last = steps[-1][-1].q_next if steps[-1] else self.end
        shift, turn = self.goals(model).errors(last)
        return ReplayResult(tuple(steps), worst, identical, shift, turn)

    def check(
        self,
        model: Model | Task,
        *,
        replay_tolerance: float = 0.0,
        require_static_regrasps: bool = True,
        executable: bool = False,
    ) -> Verdict:
        """Check the plan before its execution: replay it in its own model, and verify that it reaches its goal, that
        commands and joints stay within bounds, and that regrasps and motions are possible.

        Args:
            model: the model of the plan's task, or the task.
            replay_tolerance: largest difference between replay and plan that is not a fault. On the
                machine that made the plan, steps are bitwise identical; other processors may round
                differently.
            require_static_regrasps: whether a regrasp at which the object would not stay in place
                without the robot is a fault; otherwise it is a note. CQDC's planners ignore gravity
                there.
            executable: whether to look for reasons why an execution of the plan's commands alone
                may fail (``Verdict.obstacles``). There are two tests. At every waypoint (where
                segments begin and edges end) at which the object does not stay by itself, some
                command within bounds and force limits has to hold it, with contact forces in
                friction cones narrowed by 30 %. Contacts that a sliding step opens count. And every
                edge is simulated by second-order steps in three rollouts with errors of up to 30 %
                in friction and in the object's mass, and has to end within twice the tolerances of
                its planned end. Failures are not faults: the plan may be good in its own model.
        """
        model = model_of(self, model)
        result = self.replay(model)
        faults: list[str] = []
        notes: list[str] = []
        if result.position_error > self.position_tolerance:
            faults.append(f"the object ends {result.position_error:.3g} m from the goal")
        if result.rotation_error > self.rotation_tolerance:
            faults.append(f"the object ends {result.rotation_error:.3g} rad from the goal")
        tolerated = 0.0 < replay_tolerance >= result.max_error
        if not result.identical and not tolerated:
            faults.append(f"the replay differs by up to {result.max_error:.3g}")
        if result.identical and not self._forces_match(result):
            faults.append("its contact forces are not those of the replay")
        faults += self._check_bounds(model)
        forces, said_of_forces = judged_forces(model, chain.from_iterable(result.steps))
        faults += said_of_forces[0]
        notes += said_of_forces[1]
        deepest, more = self._check_regrasps(model)
        faults += more
        bounded = narrowed(model, *self.bounds(model))
        for k, motion in enumerate(self.motions):
            fault = "there is none" if motion is None else motion_fault(bounded, motion)
            if fault is not None:
                faults.append(f"the motion of regrasp {k}: {fault}")
        dropping = self._dropping_regrasps(model)
        if dropping:
            said = f"regrasps that would drop the object: {list(dropping)}"
            (faults if require_static_regrasps else notes).append(said)
        return Verdict(
            tuple(faults),
            result.position_error,
            result.rotation_error,
            result.max_error,
            deepest,
            tuple(notes),
            dropping,
            tuple(map(float, forces)),
            self._obstacles(model) if flag("executable", executable) else None,
        )

    def bounds(self, model: Model) -> tuple[Array, Array]:
        """Lower and upper bounds ``(nu,)`` of the commands: those of the plan, or the joint limits
        and actuators' ranges.

        Args:
            model: the plan's model.
        """
        if self.command_bounds is None:
            return command_range(model)
        lower, upper = self.command_bounds
        return np.array(lower), np.array(upper)

    def _obstacles(self, model: Model) -> tuple[str, ...]:
        """Return the reasons against an execution."""
        tolerances = self.position_tolerance, self.rotation_tolerance
        bounds, goals = self.bounds(model), self.goals(model)
        return obstacles(model, goals, self.segments, self.options, bounds, tolerances)

    def _check_bounds(self, model: Model) -> list[str]:
        """Find commands beyond their bounds and joints of the robot beyond their limits."""
        faults = []
        u = np.concatenate([segment.inputs for segment in self.segments])
        q = np.concatenate([part.configurations for part in self.sequence])
        for excess, what in (
            (
                beyond(u, *self.bounds(model)),
                "the command of actuator {} is up to {:.3g} beyond its bounds",
            ),
            (beyond_limits(model, q), "the joint of actuator {} is up to {:.3g} beyond its limits"),
        ):
            worst = excess.max(axis=0, initial=0.0)
            if worst.any():
                i = int(worst.argmax())
                whose = i if len(worst) == model.nu else int(owners(model)[i])
                faults.append(what.format(repr(model.actuator_names[whose]), worst[i]))
        return faults

    def _forces_match(self, result: ReplayResult) -> bool:
        """Return whether the contact forces of the plan, if stored, are bitwise identical to those of a replay."""
        for segment, steps in zip(self.segments, result.steps):
            if segment.contacts is not None:
                for k, taken in enumerate(steps):
                    acts = np.any(taken.contacts["force"] != 0.0, axis=1)
                    if taken.contacts[acts].tobytes() != segment.contacts_of(k).tobytes():
                        return False
        return True

    def _check_regrasps(self, model: Model) -> tuple[float, list[str]]:
        """Return the deepest penetration (m) at the ends of regrasps, and the faults of regrasps."""
        space = ObjectSpace(model, self.object)
        faults, deepest = [], 0.0
        for k, (before, after) in enumerate(self.regrasps):
            if before[space.q].tobytes() != after[space.q].tobytes():
                faults.append(f"regrasp {k} moves the object")
            for q, end in ((before, "before"), (after, "after")):
                depth = penetration(model, q)
                deepest = max(deepest, depth)
                if depth > self.contact_tolerance:
                    faults.append(f"{depth:.2g} m of penetration {end} regrasp {k}")
        return deepest, faults

    def _dropping_regrasps(self, model: Model) -> tuple[int, ...]:
        """Return the indices of regrasps at which the object would move without the robot."""
        return tuple(
            k
            for k, (before, _) in enumerate(self.regrasps)
            if not is_stable(model, before, self.object, self.options)
        )

    def to_joint_trajectory(
        self,
        model: Model | Task,
        *,
        velocity: ArrayLike = 0.5,
        acceleration: ArrayLike = 5.0,
        effort: ArrayLike | None = None,
        duration: float | None = None,
        pause: float = 0.3,
    ) -> JointTrajectory:
        """Convert the plan to joint positions and velocities over time, for a robot's own
        controller.

        Positions are the commands, the set points of the joints' springs. The robot presses as
        planned if its controller is as stiff as the actuators of the model; it has to compensate
        gravity if the plan's options do. The path is that of the commands: every straight piece
        begins and ends at rest and is as fast as the limits allow.

        Args:
            model: the model of the plan's task, or the task.
            velocity: largest velocity of each joint, rad/s or m/s, one number or one per actuator.
            acceleration: largest acceleration of each joint, rad/s^2 or m/s^2, one number or one
                per actuator.
            effort: largest force of each actuator, N or Nm, one number or one per actuator; None:
                the force limits of the model.
            duration: duration to which the trajectory is stretched, s; None: as short as the limits
                allow.
            pause: time at rest before and after each regrasp, and at the end, s.

        Raises:
            ValueError: if the plan does not belong to the model, an actuator has no spring on a
                joint, a regrasp has no motion, a command is beyond its bounds, or a limit cannot be
                kept; the message names the joint and the time.
            SolverError: if a step cannot be solved when efforts are limited.
        """
        model = model_of(self, model)
        fastest = limits_of("velocity", velocity, model.nu)
        hardest = limits_of("acceleration", acceleration, model.nu)
        if not np.all(np.isfinite((fastest, hardest))):
            raise ValueError("velocity, acceleration: expected finite numbers")
        pause = number("pause", pause, least=0)
        parts = _setpoints(self, model)
        names = [joint.name for joint in robot_joints(model)]
        made, passed = timed(names, parts, fastest, hardest, pause)
        if duration is not None:
            factor = number("duration", duration, above=0) / made.duration
            made = dataclasses.replace(
                made, times=made.times * factor, velocities=made.velocities / factor
            )
            passed = [when * factor for when in passed]
        made.check(fastest, hardest)
        # Segments are every other part; each begins with a point before its first step.
        when = np.concatenate([of_part[1:] for of_part in passed[::2]])
        _keep_bounds(self, model, names, when)
        _keep_efforts(self, model, names, when, effort)
        return made

    # ---------------------------------------------------------------- files

    def show(self, model: Model | Task | None = None, *, height: int = 520) -> Any:
        """Play the plan in a browser (extra ``viewer``); in a notebook, show it below the cell
        without a server.

        Args:
            model: the model, or the task; None: that of the published system to which the plan's
                task belongs.
            height: height of the page in a notebook, pixels.

        Returns:
            The :class:`qdsim.viewer.Viewer`; None in a notebook.

        Raises:
            ImportError: without the extra ``viewer``.
            ValueError: if the plan does not belong to the model, or if no model is given and the
                task is not published.
        """
        return shown(self, model_of(self, model) if model is not None else None, height=height)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to one ``.npz`` file (no pickles inside), which :meth:`load` reads.

        Entries: ``header``, a JSON text with ``format``, ``version``, ``task``, ``object``,
        ``options``, the tolerances, ``command_bounds``, ``planners`` of the motions and
        ``goal_region``; ``goal`` (nq); ``steps`` (segments) and ``edges``
        (segments), the counts of each; and the segments one after the other: ``inputs`` (sum of
        steps, nu), ``configurations`` (sum of steps + 1, nq), ``knots`` (sum of edges). If all
        segments have contacts: ``contacts`` (records as in ``Step.contacts``) and ``contact_start``
        (sum of steps + 1). If there are motions: ``motion_points`` (regrasps), the number of points
        of each, 0 for none, and one after the other ``motion_configurations`` (sum of points, nq),
        ``motion_times`` (sum of points) and ``motion_ramps`` (sum of points - 1).

        The file is written to a temporary place and moved when it is complete: if writing fails, an
        existing file stays.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be written.
        """
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        write_archive(path_of("path", path), FORMAT, *entries_of(fields), compressed=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan written by :meth:`save`.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is not a plan, or is truncated or damaged; the message names the file.
        """
        return read_archive(
            path_of("path", path), FORMAT, lambda archive: cls(**fields_of(archive))
        )

    def __repr__(self) -> str:
        return (
            f"Plan({self.task!r}, {len(self.segments)} segments, {self.step_count} steps, "
            f"{len(self.segments) - 1} regrasps)"
        )


def model_of(plan: Plan, model: Model | Task) -> Model:
    """Return the model, or that of a given task, after checking that it fits the plan.

    Raises:
        TypeError: for anything else.
        ValueError: if the plan does not belong to the model.
    """
    own = model.model if isinstance(model, Task) else instance("model", model, Model)
    nq, nu = plan.goal.shape[0], plan.segments[0].inputs.shape[1]
    if (own.nq, own.nu) != (nq, nu):
        raise ValueError(
            f"model: the plan has nq = {nq} and nu = {nu}, the model {own.nq} and {own.nu}"
        )
    return own


def plan_for(
    task: Task, segments: Sequence[Segment], options: Options, contact_tolerance: float
) -> Plan:
    """Make a plan for a task, with its object, goal, tolerances and command bounds."""
    return Plan(
        task=task.name,
        object=task.object,
        options=options,
        goal=np.array(task.goal),
        position_tolerance=task.position_tolerance,
        rotation_tolerance=task.rotation_tolerance,
        contact_tolerance=contact_tolerance,
        segments=tuple(segments),
        command_bounds=task.bounds_as_numbers,
        goal_region=task.goal_region,
    )


def _setpoints(plan: Plan, model: Model) -> list[Array]:
    """Return the set points of the joints, ``(n, nu)`` for each segment and each motion, in order.

    Raises:
        ValueError: if an actuator moves no joint of its own by a spring, or a regrasp has no motion.
    """
    check_springs(model)
    tendons = np.flatnonzero(np.asarray(model.actuated_v) < 0)
    if len(tendons):
        name = model.actuator_names[int(tendons[0])]
        raise ValueError(
            f"model: actuator {name!r} acts on a tendon; trajectories need actuators on joints"
        )
    gear = np.asarray(model.actuator_gear)
    parts: list[Array] = []
    for k, segment in enumerate(plan.segments):
        if k > 0:
            motion = plan.motions[k - 1] if plan.motions else None
            if motion is None:
                raise ValueError(
                    f"plan: regrasp {k - 1} has no motion; qdsim.planning.connect_segments makes them"
                )
            way = np.asarray(model.command_from(motion.configurations))
            parts.append(np.vstack((parts[-1][-1], way / gear)))
        first = np.asarray(model.command_from(segment.start))
        parts.append(np.vstack((first, segment.inputs)) / gear)
    return parts


def _keep_bounds(plan: Plan, model: Model, names: list[str], when: Array) -> None:
    """Raise ValueError for a command beyond its bounds, with the joint and the time; ``when`` are
    the times ``(steps,)``."""
    excess = beyond(np.concatenate([s.inputs for s in plan.segments]), *plan.bounds(model))
    if np.any(excess):
        k, j = np.argwhere(excess > 0.0)[0]
        raise ValueError(
            f"plan: joint {names[j]!r} is commanded {excess[k, j]:.3g} beyond its bounds at {when[k]:.3g} s"
        )


def _keep_efforts(
    plan: Plan, model: Model, names: list[str], when: Array, effort: ArrayLike | None
) -> None:
    """Raise ValueError if a step needs more force than an actuator has, with the joint and the time."""
    low, high = np.asarray(model.parameters.actuator_force_range).T
    if effort is not None:
        high = limits_of("effort", effort, model.nu)
        low = -high
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return
    pulls = np.array([s.actuator_force for steps in plan.replay(model).steps for s in steps])
    pulls = pulls.reshape(-1, model.nu)
    slack = 1e-6 * np.maximum(1.0, np.abs(pulls))
    over = (pulls > high + slack) | (pulls < low - slack)
    if np.any(over):
        k, j = np.argwhere(over)[0]
        limit = high[j] if pulls[k, j] > 0.0 else low[j]
        raise ValueError(
            f"effort: joint {names[j]!r} needs {pulls[k, j]:.3g} at {when[k]:.3g} s, its limit is {limit:.3g}"
        )
