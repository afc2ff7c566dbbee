"""Reasons why the execution of a plan is likely to fail.

An object without support, a push that does not end as planned, an actuator beyond its force limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.equilibrium import EquilibriumError, holding_command
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.grasps.samplers.carrying import OFF
from qdsim.planning.plans.segment import Segment
from qdsim.planning.plans.trials import SEEDS, Trials
from qdsim.planning.task.goal_set import GoalSet
from qdsim.planning.task.robot import TOUCHING
from qdsim.step import Options, Step

__all__ = ["judged_forces", "obstacles"]

LEAVE = 2.0
"""Largest accepted error of the object at the end of an edge, in tolerances. The next edge begins
with this error. With a tenth or ten times as much, test_executable.py fails."""


def obstacles(
    model: Model,
    goals: GoalSet,
    segments: Sequence[Segment],
    options: Options,
    bounds: tuple[Array, Array],
    tolerances: tuple[float, float],
) -> tuple[str, ...]:
    """Reasons against an execution of the segments, in words; empty if there are none.

    Args:
        model: the model.
        goals: the poses of the object that count as its goal.
        segments: of a plan.
        options: of the plan's steps.
        bounds: lower and upper bounds of the commands, ``(nu,)`` each.
        tolerances: m and rad.
    """
    trials = Trials(model, goals, options.gravity_on_actuated, tolerances)
    weaker = model.with_parameters(pair_friction=(1.0 - OFF) * model.parameters.pair_friction)
    found = []
    for k, segment in enumerate(segments):
        edges = _edges(segment)
        for i in (0, *(end for _, end in edges)):
            q = np.asarray(model.normalize(segment.configurations[i]))
            if is_stable(weaker, q, goals.space.body, options):
                continue
            reach = min(_gap(model, segment, i), tolerances[0])
            fault = _unborne(weaker, q, options.gravity_on_actuated, bounds, reach)
            if fault:
                found.append(f"segment {k}, step {i}: with friction reduced by {OFF:.0%} {fault}")
        for begin, end in edges:
            fault = _off(trials, segment, begin, end)
            if fault:
                found.append(f"segment {k}, steps {begin} to {end}: {fault}")
    return tuple(found)


def _gap(model: Model, segment: Segment, i: int) -> float:
    """Return the distance up to which bodies count as touching after step ``i`` of a segment, m.

    A convex step opens a contact that slides by the friction coefficient times the slip, which is about twice the
    largest displacement of a shape in the step at most.
    """
    before, after = segment.configurations[max(i - 1, 0)], segment.configurations[i]

    def place(q: Array, body: int, at: Array) -> Array:
        position, rotation = model.body_pose(q, model.body_names[body])
        return np.asarray(position + rotation @ at)

    ways = [
        np.linalg.norm(place(after, b, at) - place(before, b, at))
        for b, at in (
            (int(body), np.asarray(geom.pos))
            for geom, body in zip(model.description.geoms, model.geom_body)
            if body > 0
        )
    ]
    friction = float(np.max(model.parameters.pair_friction, initial=0.0))
    return TOUCHING + 2.0 * friction * float(np.max(ways, initial=0.0))


def _unborne(
    model: Model, q: Array, heavy_robot: bool, bounds: tuple[Array, Array], reach: float
) -> str:
    """Explain why nothing supports the object in a configuration ``(nq,)``; empty if it is supported.

    Pairs up to ``reach`` apart count as contacts, m.
    """
    lower, upper = bounds
    try:
        holding_command(
            model,
            q,
            reach=reach,
            gravity_on_actuated=heavy_robot,
            lower=lower,
            upper=upper,
        )
    except EquilibriumError as error:
        return str(error).removeprefix("q: ")
    return ""


def _off(trials: Trials, segment: Segment, begin: int, end: int) -> str:
    """Describe the error at the end of an edge in the worst rollout; empty if it is small enough."""
    q, there = segment.configurations[begin], segment.configurations[end]
    first = segment.inputs[begin - 1] if begin else trials.model.command_from(segment.start)
    worst = trials.worst(q, np.asarray(first), segment.inputs[begin:end], there)
    if worst <= LEAVE:
        return ""
    ends = f"ends {worst:.1f} tolerances off" if math.isfinite(worst) else "has no solution"
    return f"of {SEEDS} rollouts with friction and mass off by up to {OFF:.0%} the worst {ends}"


def _edges(segment: Segment) -> list[tuple[int, int]]:
    """Return the first and last step of each edge that has steps."""
    ends = [0, *segment.knots.tolist()]
    if ends[-1] < segment.steps:
        ends.append(segment.steps)
    return [(a, b) for a, b in pairwise(ends) if a < b]


def judged_forces(model: Model, steps: Iterable[Step]) -> tuple[Array, tuple[list[str], list[str]]]:
    """Return the largest force of every actuator ``(nu,)``, and faults and notes about force limits."""
    pulls = [step.actuator_force for step in steps]
    if not pulls:
        return np.zeros(model.nu), ([], [])
    forces = np.array(pulls)
    low, high = np.asarray(model.parameters.actuator_force_range).T
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.maximum(
            np.where(forces > 0, forces / high, 0), np.where(forces < 0, forces / low, 0)
        )
    share = np.nan_to_num(share, nan=0.0).max(axis=0)
    largest: Array = np.abs(forces).max(axis=0)
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return largest, ([], [])
    i = int(share.argmax())
    name = repr(model.actuator_names[i])
    if share[i] > 1.0 + 1e-6:
        return largest, (
            [
                f"actuator {name} pulls with {largest[i]:.3g}, which is {share[i]:.3g} times what it can"
            ],
            [],
        )
    return largest, ([], [f"actuators keep their limits, {name} uses {share[i]:.0%} of its own"])
