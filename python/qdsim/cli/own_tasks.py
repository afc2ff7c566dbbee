"""Tasks for users' robot files, from arguments of the command line and defaults of the model."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from qdsim.cli.goals import goal_of
from qdsim.cli.outcome import UnusableError
from qdsim.cli.sources import first_configuration, load_model, loading

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.model import Model
    from qdsim.planning import ObjectSpace, RRTOptions, Task
    from qdsim.planning.task.goal_set import GoalSet

__all__ = ["object_name", "obstacle", "own_task", "unsupported"]

_STEP = 1.5
"""Largest distance that the robot's tips move on one edge of the tree, in lengths of the object."""


def own_task(arguments: argparse.Namespace) -> Task:
    """Make the task described by the arguments of ``qdsim plan`` for a robot file.

    Raises:
        UnusableError: An argument is missing, or the task is impossible.
    """
    from qdsim.model import DEFAULT_MARGIN
    from qdsim.planning import ObjectSpace, SurfaceSampler, Task, reduce_tendons
    from qdsim.planning.task.goal_set import GoalSet
    from qdsim.planning.task.robot import TOUCHING
    from qdsim.step import Options

    path = arguments.task
    model = load_model(path, **loading(arguments, path))
    start = _start(model, arguments.start)
    name = object_name(model, arguments.object)
    try:
        model = reduce_tendons(model)
        space = ObjectSpace(model, name)
        if arguments.goal is None:
            raise UnusableError(f"--goal: give the goal of {name!r}: {_words(model, space)}")
        goal, region = goal_of(model, space, start, arguments.goal)
        reach = _reach(model, start)
        margin = arguments.margin or min(0.1 * reach, DEFAULT_MARGIN)
        asked = {
            "position_tolerance": arguments.position_tolerance,
            "rotation_tolerance": arguments.rotation_tolerance,
        }
        is_round = region is not None and isinstance(region.axis, tuple)
        task = Task(
            f"{name} of {os.path.basename(path)}"
            + ", round: turns about its axis do not count" * is_round,
            model,
            Options(**({"h": arguments.h} if arguments.h else {}), margin=margin),
            start,
            goal,
            name,
            *_box(model, space, start, GoalSet(model, space, goal, region)),
            None if arguments.sampler == "none" else SurfaceSampler(name),
            start_tolerance=TOUCHING,
            goal_region=region,
            **{key: value for key, value in asked.items() if value is not None},
        )
        if (reason := unsupported(model, start, name)) is not None:
            warnings.warn(reason, stacklevel=2)
        return task.replace(planner=_planner(task, reach))
    except (TypeError, ValueError) as error:
        raise UnusableError(str(error)) from None


def obstacle(model: Model, start: Array) -> str | None:
    """Return why no plan can be made with a model from a configuration ``(nq,)``; None if no reason
    is known."""
    from qdsim.planning import ObjectSpace, SurfaceSampler, Task, reduce_tendons
    from qdsim.planning.task.objects import objects_of
    from qdsim.planning.task.robot import TOUCHING
    from qdsim.step import Options

    found = objects_of(model)
    if not found:
        return "nothing in it moves without being driven: there is no object"
    try:
        model = reduce_tendons(model)
        size = ObjectSpace(model, found[0]).size
        box = np.ones(size)
        task = Task(
            "ready",
            model,
            Options(),
            start,
            start,
            found[0],
            -box,
            box,
            start_tolerance=TOUCHING,
        )
        if (reason := unsupported(model, start, found[0])) is not None:
            return reason
        if SurfaceSampler(found[0])(model, task.start, np.random.default_rng(0)) is None:
            return f"no grasp of {found[0]!r} was found in 30 draws: is it within reach?"
    except ValueError as error:
        return str(error)
    return None


def unsupported(model: Model, start: Array, name: str) -> str | None:
    """Return why an object does not come to rest while the robot holds still; None if it does, or if
    steps fail."""
    from qdsim._core import SolverError
    from qdsim.planning import ObjectSpace
    from qdsim.planning.grasps.resting import FALLS, STILL_POSITION
    from qdsim.step import Options, step

    space, q, moved = ObjectSpace(model, name), start, 0.0
    slides, u, options = space.v[~space.rotation], model.command_from(start), Options()
    try:
        for _ in range(FALLS):
            q_next = step(model, q, u, options).q_next
            moved = float(np.abs(model.difference(q_next, q)[slides]).max(initial=0.0))
            if moved <= STILL_POSITION:
                return None
            q = q_next
    except SolverError:
        return None
    return (
        f"{name!r} does not come to rest: it moves {moved:.2g} m a step while the robot holds still; is there a ground "
        "or a table below it? (a URDF has none)"
    )


def object_name(model: Model, given: str | None) -> str:
    """Return the name of the object: the given one, or that of the only object."""
    from qdsim.planning.task.objects import objects_of

    found = objects_of(model)
    if given is not None:
        if given not in model.body_names:
            there = ", ".join(found) or "none"
            raise UnusableError(
                f"--object: the model has no body {given!r}; objects in it: {there}"
            )
        return given
    parents = {body.name: body.parent for body in model.description.bodies}
    alone = [name for name in found if parents[name] not in found]
    if len(alone) == 1:
        return alone[0]
    if not alone:
        raise UnusableError("there is no object: actuators drive every body that moves")
    raise UnusableError(f"--object: choose one of {', '.join(alone)}")


def _words(model: Model, space: ObjectSpace) -> str:
    from qdsim.cli.goals import goal_words

    return (
        f"{goal_words(model, space)}; angles in radians, or as 90deg; - keeps a number, free leaves it open, "
        "0.1..0.2 asks for one between"
    )


def _start(model: Model, key: str | None) -> Array:
    if key is None:
        return first_configuration(model)
    if key not in model.keyframes:
        known = ", ".join(model.keyframes) or "none"
        raise UnusableError(f"--start: the file has no key frame {key!r}; it has {known}")
    return model.clamp_to_limits(model.keyframes[key].q)


def _reach(model: Model, q: Array) -> float:
    """Return the largest distance (m) that the robot moves if an actuator moves by 1 rad (slides: by 1 m)."""
    from qdsim.planning.task.robot import levers

    return float(levers(model, q).max(initial=0.0))


def _planner(task: Task, reach: float) -> RRTOptions:
    """Return settings of the tree that suit the robot and the object."""
    from qdsim.planning import RRTOptions

    most = _STEP * task.length / max(reach, 1e-9)
    return RRTOptions(step=min(most, RRTOptions.step))


def _box(model: Model, space: ObjectSpace, start: Array, goals: GoalSet) -> tuple[Array, Array]:
    """Return the range of displacements ``(size,)`` of subgoals from the start.

    In horizontal directions and about the vertical it extends by the object's size, or by half of the
    way to the goal, to both sides. Along gravity and in tilts it extends little beyond the goal.
    """
    from qdsim.planning.grasps.samplers.carrying import TILT
    from qdsim.planning.task.robot import object_length

    shift = goals.difference(start)
    heavy = bool(np.any(model.parameters.gravity))
    turns = space.rotation
    far = float(np.abs(shift[~turns]).max(initial=0.0))
    room = np.where(turns, np.pi, max(object_length(model, start, space), 0.5 * far))
    if heavy:
        J = np.asarray(model.jacobian(start, space.body, np.zeros(3)))[:, space.v]
        up = -model.parameters.gravity / np.linalg.norm(model.parameters.gravity)
        room = np.where(~turns & (np.abs(up @ J[:3]) > 0.5), 0.0, room)
        if turns.sum() == 3:
            room = np.where(turns & (np.abs(up @ J[3:]) < 0.5), TILT, room)
    lower, upper = np.minimum(shift, 0.0) - room, np.maximum(shift, 0.0) + room
    limits = {joint.name: joint.range for joint in model.description.joints}
    for i, v in enumerate(space.v.tolist()):
        for name in space.joints:
            own, ends = model.slice_v(name), limits[name]
            if own.start == v and own.stop == v + 1 and ends is not None:
                at = float(start[model.slice_q(name).start])
                lower[i], upper[i] = max(lower[i], ends[0] - at), min(upper[i], ends[1] - at)
    return lower, upper
