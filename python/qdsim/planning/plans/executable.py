"""Reasons why the execution of a plan is likely to fail: objects that nothing supports, pushes that do not end as
planned, actuators that would have to pull with more than they can."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from qdsim.array_type import Array
from qdsim.batches.dynamics import rollout_dynamic
from qdsim.dynamics import DynamicOptions
from qdsim.model import Model
from qdsim.planning.grasps.equilibrium import EquilibriumError, holding_command
from qdsim.planning.grasps.samplers.touching import sides
from qdsim.planning.plans.segment import Segment
from qdsim.planning.task.robot import (
    GRAVITY,
    critical_damping,
    lies_on_a_plane,
    mass_metric,
    per_joint,
    strides,
)
from qdsim.planning.task.space import ObjectSpace
from qdsim.step import Options, Step

__all__ = ["judged_forces", "obstacles"]

OFF = 0.3
"""Relative error of friction coefficients and of the object's mass that a plan should tolerate."""
SEEDS = 3
"""Roll-outs of each edge."""
LEAVE = 2.0
"""Largest error of the object at the end of an edge, and where the next one begins, in tolerances."""
H, SPEED, SETTLE = 5e-3, 0.1, 0.3
"""Second-order step, s; speed of the robot's parts in executions, m/s; time to settle at the end of an edge, s."""
SUPPORT = 0.5
"""Friction coefficient of a plane that is not part of the model, as in executions."""
BALANCED = 1e-4
"""Residual of equilibria, as a share of the load."""


def obstacles(
    model: Model,
    object: str,
    segments: Sequence[Segment],
    options: Options,
    bounds: tuple[Array, Array],
    tolerances: tuple[float, float],
) -> tuple[str, ...]:
    """Reasons against an execution of the segments, in words; empty if there are none.

    Args:
        model: the model.
        object: name of the object's body.
        segments: of a plan.
        options: of the plan's steps.
        bounds: ``(nu,)`` each, of the commands.
        tolerances: m and rad.
    """
    space = ObjectSpace(model, object)
    weaker = model.with_parameters(pair_friction=(1.0 - OFF) * model.parameters.pair_friction)
    damping = model.parameters.joint_damping + per_joint(model, critical_damping(model))
    damped, worlds = model.with_parameters(joint_damping=damping), _worlds(model, space)
    dynamics = DynamicOptions(
        h=H,
        margin=0.02,
        recovery_speed=0.1,
        gravity_on_actuated=options.gravity_on_actuated,
        infeasible="soften",
    )
    found = []
    for k, segment in enumerate(segments):
        edges = _edges(segment)
        for i in (0, *(end for _, end in edges)):
            q = np.asarray(model.normalize(segment.configurations[i]))
            fault = _unborne(weaker, q, options.gravity_on_actuated, bounds)
            if fault:
                found.append(f"segment {k}, step {i}: with friction less by {OFF:.0%} {fault}")
        for begin, end in edges:
            fault = _off(damped, space, segment, begin, end, dynamics, worlds, tolerances)
            if fault:
                found.append(f"segment {k}, steps {begin} to {end}: {fault}")
    return tuple(found)


def _unborne(model: Model, q: Array, heavy_robot: bool, bounds: tuple[Array, Array]) -> str:
    """Why nothing supports the object in a configuration ``(nq,)``; empty if something does."""
    lower, upper = bounds
    try:
        holding_command(
            model,
            q,
            gravity_on_actuated=heavy_robot,
            tolerance=BALANCED,
            lower=lower,
            upper=upper,
        )
    except EquilibriumError as error:
        return str(error).removeprefix("q: ")
    return ""


def _off(
    model: Model,
    space: ObjectSpace,
    segment: Segment,
    begin: int,
    end: int,
    options: DynamicOptions,
    worlds: dict[str, Array],
    tolerances: tuple[float, float],
) -> str:
    """The error at the end of an edge in the worst roll-out, in words; empty if it is small enough."""
    u = _in_time(model, segment, begin, end)
    q0 = np.asarray(model.normalize(segment.configurations[begin]))
    still = np.zeros(model.nv)
    path = rollout_dynamic(model, q0, still, u, options, parameters=worlds, errors="mark")
    there = segment.configurations[end]
    off = [np.max(np.array(space.errors(q, there)) / tolerances) for q in path.q[:, -1]]
    worst = max(off) if np.all(path.steps_done == len(u)) else math.inf
    if worst <= LEAVE:
        return ""
    ends = f"ends {worst:.1f} tolerances off" if math.isfinite(worst) else "has no solution"
    return f"of {SEEDS} roll-outs with friction and mass off by up to {OFF:.0%} the worst {ends}"


def _edges(segment: Segment) -> list[tuple[int, int]]:
    """First and last step of each edge that has any."""
    ends = [0, *segment.knots.tolist()]
    if ends[-1] < segment.steps:
        ends.append(segment.steps)
    return [(a, b) for a, b in pairwise(ends) if a < b]


def _in_time(model: Model, segment: Segment, begin: int, end: int) -> Array:
    """The commands of an edge ``(n, nu)`` at small steps, followed by the last one for a while."""
    first = segment.inputs[begin - 1] if begin else np.asarray(model.command_from(segment.start))
    knots = np.vstack((first, segment.inputs[begin:end]))
    tips = strides(model, segment.configurations[begin])
    way = np.linalg.norm(np.diff(knots, axis=0) * tips, axis=1)
    times = np.concatenate(([0.0], np.cumsum(np.maximum(way / SPEED, H))))
    at = H * np.arange(1, math.ceil((times[-1] + SETTLE) / H) + 1)
    return np.stack([np.interp(at, times, column) for column in knots.T], axis=1)


def _worlds(model: Model, space: ObjectSpace) -> dict[str, Array]:
    """Parameters ``(seeds, ...)`` of the roll-outs."""
    p, rng = model.parameters, np.random.default_rng(0)
    friction, mass = rng.uniform(1.0 - OFF, 1.0 + OFF, (2, SEEDS))
    own, _ = sides(model, space.body)
    heavier = np.where(own, mass[:, None], 1.0)
    values = {
        "pair_friction": friction[:, None, None] * p.pair_friction,
        "body_mass": heavier * p.body_mass,
        "body_inertia": heavier.reshape(*heavier.shape, *[1] * (p.body_inertia.ndim - 1))
        * p.body_inertia,
    }
    if lies_on_a_plane(model, space):
        weight = np.zeros(model.nv)
        own_mass = mass_metric(model)[space.v]
        # per coordinate: the semi-axes of the friction ellipsoid
        weight[space.v] = SUPPORT * GRAVITY * np.sqrt(own_mass * own_mass[~space.rotation].max())
        rubbing = p.joint_friction + per_joint(model, weight)
        values["joint_friction"] = (friction * mass)[:, None] * rubbing
    return values


def judged_forces(model: Model, steps: Iterable[Step]) -> tuple[Array, tuple[list[str], list[str]]]:
    """What every actuator ``(nu,)`` pulls with at most, and faults and notes about their limits."""
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
