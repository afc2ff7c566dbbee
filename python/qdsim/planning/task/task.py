"""A manipulation task: start and goal of an object, and the robot that moves it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from qdsim.arguments import fields, instance, number, reals, vector
from qdsim.array_type import ROUNDING, Array
from qdsim.model import Model
from qdsim.planning.task.bounds import beyond, narrowed
from qdsim.planning.task.contact_sampler import ContactSampler
from qdsim.planning.task.goal_region import GoalRegion
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.oddities import warn_of_oddities, warn_of_walls
from qdsim.planning.task.robot import check_springs, command_range, deepest, object_length
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.space import ObjectSpace
from qdsim.step import Options

__all__ = ["DRAWS", "Task"]

DRAWS = 10
"""Largest number of draws until one can be used: a sample that commands can hold, a pose that is stable."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Move one object from a start to a goal.

    Attributes:
        name: for titles and files.
        model: the model.
        options: of the exact step, with the time step ``h``. The smoothed model of the metric uses
            them with its own ``kappa`` and without joint limits, which would act at a distance.
        start: ``(nq,)`` configuration, collision-free to ``start_tolerance``.
        goal: ``(nq,)`` configuration; only the object's entries matter.
        object: name of the object's body.
        lower, upper: box of subgoals, as object displacements from the start; one entry per tangent
            coordinate of the object, m and rad.
        sampler: draws grasps for a given object pose, or None.
        position_tolerance, rotation_tolerance: pose errors at which the goal counts as reached, m
            and rad.
        length: weight of one radian in metres, a typical radius of the object; None: the largest
            displacement of a point of the object per radian.
        command_lower, command_upper: ``(nu,)`` bounds of the command; None: the joint limits.
        planner: settings of the planner that suit the task; None: the planner's defaults.
        start_tolerance: deepest penetration allowed at the start, m.
        impc: settings of trajectory optimisation that suit the task; None: its defaults.
        unpaced: for a task made by ``paced``, the options before it; else None.
        goal_region: other poses that also count as the goal (``GoalRegion``); None: none.
        space: the object's coordinates (filled in).
    """

    name: str
    model: Model
    options: Options
    start: Array
    goal: Array
    object: str
    lower: Array
    upper: Array
    sampler: ContactSampler | None = None
    position_tolerance: float = 0.02
    rotation_tolerance: float = 0.05
    length: float = None  # type: ignore[assignment]  # a number once the task is made
    command_lower: Array | None = None
    command_upper: Array | None = None
    start_tolerance: float = 1e-4
    impc: ImpcOptions | None = None
    planner: RRTOptions | None = None
    unpaced: Options | None = None
    goal_region: GoalRegion | None = None
    space: ObjectSpace = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        instance("name", self.name, str)
        model = instance("model", self.model, Model)
        if model.nu == 0:
            raise ValueError("model: it has no actuators, so nothing can move the object")
        check_springs(model)
        instance("options", self.options, Options)
        instance("impc", self.impc, ImpcOptions, or_none=True)
        instance("planner", self.planner, RRTOptions, or_none=True)
        instance("unpaced", self.unpaced, Options, or_none=True)
        instance("goal_region", self.goal_region, GoalRegion, or_none=True)
        if self.sampler is not None and not callable(self.sampler):
            raise TypeError(f"sampler: expected a function, got {type(self.sampler).__name__}")
        if self.options.kappa is not None:
            raise ValueError("options: kappa must be None, the task's step is the exact one")
        put("start", vector("start", self.start, model.nq))
        put("goal", vector("goal", self.goal, model.nq))
        put("space", ObjectSpace(model, self.object))
        self.space.check_quaternions("goal", self.goal)
        put("lower", vector("lower", self.lower, self.space.size))
        put("upper", vector("upper", self.upper, self.space.size))
        if np.any(self.lower > self.upper):
            i = int(np.argmax(self.lower > self.upper))
            raise ValueError(
                f"lower: {self.lower[i]:g} at index {i} exceeds upper {self.upper[i]:g}"
            )
        if cast("float | None", self.length) is None:
            put("length", object_length(model, self.start, self.space))
        fields(self, number, "position_tolerance", "rotation_tolerance", "length", above=0)
        fields(self, number, "start_tolerance", least=0, infinite=True)
        lower, upper = command_range(model)
        put("command_lower", _bounds("command_lower", self.command_lower, lower))
        put("command_upper", _bounds("command_upper", self.command_upper, upper))
        low, high = np.asarray(self.command_lower), np.asarray(self.command_upper)
        crossed = np.flatnonzero(low > high)
        if len(crossed):
            i = int(crossed[0])
            raise ValueError(
                f"command_lower: {low[i]:g} at index {i} exceeds command_upper {high[i]:g}"
            )
        command = model.command_from(self.start)
        outside = (command < lower - ROUNDING) | (command > upper + ROUNDING)
        if np.any(outside):
            i = int(np.argmax(outside))
            raise ValueError(
                f"start: actuator {model.actuator_names[i]!r} is at {command[i]:g}, outside its "
                f"limits [{lower[i]:g}, {upper[i]:g}]"
            )
        warn_of_oddities(
            self.space,
            (self.start, self.aim),
            (self.lower, self.upper),
            (self.position_tolerance, self.rotation_tolerance),
        )
        if self.goals.is_point:
            warn_of_walls(model, self.space, self.aim, self.position_tolerance)
        depth, bodies = deepest(model, self.start)
        if depth > self.start_tolerance:
            raise ValueError(
                f"start: bodies penetrate by {depth:.2g} m: {bodies}; more than start_tolerance "
                f"{self.start_tolerance:g}"
            )

    def replace(self, **changes: Any) -> Task:
        """Return the same task with some fields changed.

        Args:
            **changes: fields and their new values, for example another goal.

        Raises:
            TypeError, ValueError: as for the constructor.
        """
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        return Task(**(fields | changes))

    def without_pace(self) -> Task:
        """Return the task as it was before ``paced`` changed epsilon or the mass ratio of its
        steps; this task itself if it was not paced."""
        before = self.unpaced
        if before is None:
            return self
        resists = "epsilon" if before.mass_ratio is None else "mass_ratio"
        options = self.options.replace(**{resists: getattr(before, resists)})
        return self.replace(options=options, unpaced=None)

    def towards(self, goal: Array, **changes: Any) -> Task:
        """Return the same task with another goal, and with a box of subgoals that includes it.

        Args:
            goal: ``(nq,)`` configuration with the object at its goal.
            **changes: other fields and their values.

        Raises:
            TypeError, ValueError: as for the constructor.
        """
        start = np.asarray(changes.get("start", self.start))
        region = changes.get("goal_region", self.goal_region)
        v = GoalSet(self.model, self.space, np.asarray(goal), region).difference(start)
        room = {"lower": np.minimum(self.lower, v), "upper": np.maximum(self.upper, v)}
        return self.replace(goal=goal, **(room | changes))

    def with_object(self, q: ArrayLike, displacement: ArrayLike) -> Array:
        """Return a configuration ``(nq,)`` with the object displaced.

        Args:
            q: ``(nq,)`` configuration.
            displacement: ``(space.size,)`` tangent vector, m and rad.
        """
        v = np.zeros(self.model.nv)
        v[self.space.v] = displacement
        return self.model.integrate(q, v)

    @property
    def command_bounds(self) -> tuple[Array, Array]:
        """``command_lower`` and ``command_upper``, filled in."""
        assert self.command_lower is not None and self.command_upper is not None
        return self.command_lower, self.command_upper

    @property
    def bounds_as_numbers(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The same bounds in the form of plans."""
        lower, upper = self.command_bounds
        return tuple(lower.tolist()), tuple(upper.tolist())

    @functools.cached_property
    def goals(self) -> GoalSet:
        """The poses that count as the goal, for errors from the goal."""
        return GoalSet(self.model, self.space, np.asarray(self.goal), self.goal_region)

    @property
    def aim(self) -> Array:
        """``(nq,)`` the goal configuration, with the object at the pose that counts as the goal and
        is nearest to the start."""
        return self.goals.nearest(self.start)

    @functools.cached_property
    def grasping_model(self) -> Model:
        """The model for samplers, with joint limits narrowed to the bounds of the task's commands."""
        return narrowed(self.model, *self.command_bounds)

    def hold(self, q: Array) -> Array:
        """Compute the command ``(nu,)`` that holds the robot in place, clipped to the command bounds.

        Args:
            q: ``(nq,)`` configuration.
        """
        return np.clip(self.model.command_from(q), *self.command_bounds)

    def grasp(self, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a grasp ``(nq,)`` of the task's sampler that is within reach of its commands, or None.

        Args:
            q: ``(nq,)`` configuration with the object in its pose.
            rng: generator for the sampler.

        Raises:
            TypeError, ValueError: if there is no sampler, or if its result is not a configuration
                or moves the object.
        """
        if self.sampler is None:
            raise ValueError("task: it has no sampler of grasps")
        for _ in range(DRAWS):
            sample = self.sampler(self.grasping_model, np.array(q), rng)
            if sample is None:
                return None
            grasp = np.array(vector("sampler: its configuration", sample, self.model.nq))
            moved = float(np.abs(grasp[self.space.q] - q[self.space.q]).max())
            if moved > ROUNDING:
                raise ValueError(
                    f"sampler: it moved {self.object!r}, an entry of its pose by {moved:.3g}; a sampler "
                    "must move only the robot"
                )
            grasp[self.space.q] = q[self.space.q]
            if not beyond(self.model.command_from(grasp), *self.command_bounds).any():
                return grasp
        return None

    def __repr__(self) -> str:
        planned = "no sampler" if self.sampler is None else type(self.sampler).__name__
        return (
            f"Task({self.name!r}: {self.object!r} of {self.model.name!r} by {_pose_change(self)}, "
            f"tolerances {self.position_tolerance:g} m and {self.rotation_tolerance:g} rad, "
            f"h={self.options.h:g}, {planned})"
        )

    def reached(self, q: Array) -> bool:
        """Return whether the object's pose in ``q`` is within the tolerances of the goal.

        Args:
            q: ``(nq,)`` configuration.
        """
        return self.off(q) <= 1.0

    def errors(self, q: Array) -> tuple[float, float]:
        """Compute the distance (m) and angle (rad) of the object from the goal, or from the nearest
        pose that counts as the goal.

        Args:
            q: ``(nq,)`` configuration.
        """
        return self.goals.errors(q)

    def off(self, q: Array) -> float:
        """Compute the larger of the errors of ``errors``, each divided by its tolerance; at most 1 at the goal.

        Args:
            q: ``(nq,)`` configuration.
        """
        return self.in_tolerances(self.errors(q))

    def in_tolerances(self, errors: tuple[float, float]) -> float:
        """Compute the larger of two errors, each divided by its tolerance.

        Args:
            errors: distance, m, and angle, rad.
        """
        return max(errors[0] / self.position_tolerance, errors[1] / self.rotation_tolerance)


def _pose_change(task: Task) -> str:
    shift, turn = task.errors(task.start)
    parts = [f"{shift:.3g} m"] if not task.space.rotation.all() else []
    return " and ".join(parts + ([f"{turn:.3g} rad"] if task.space.rotation.any() else []))


def _bounds(name: str, given: ArrayLike | None, limits: Array) -> Array:
    if given is None:
        return limits
    array = np.array(reals(name, given))
    if array.shape != limits.shape or np.isnan(array).any():
        raise ValueError(f"{name}: expected {limits.shape[0]} numbers, got shape {array.shape}")
    return array
