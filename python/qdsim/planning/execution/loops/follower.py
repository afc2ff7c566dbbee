"""Closed-loop execution of a plan by iMPC, with bounded spring forces."""

from __future__ import annotations

import numpy as np

from qdsim.arguments import spread
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.pacing import matched_epsilon, step_lengths
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.execution.world import World
from qdsim.planning.plans.plan import Plan
from qdsim.planning.task.cost import TrackingCost
from qdsim.planning.task.impc_options import ImpcOptions
from qdsim.planning.task.robot import (
    levers,
    lies_on_a_plane,
    object_size,
    object_weight,
    strides,
)
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.mpc import Mpc
from qdsim.planning.tracking.preset import stiff_kappa

__all__ = ["Follower", "follow_options", "follow_task", "follower_of", "spring_reach"]

SOFT = 300.0
"""Smoothing for objects on a plane that is not part of the model, 1/J; with ten times as
much, test_follower.py fails."""
GRASP = 10.0
"""Weight of a finger's deviation from its planned position, relative to the weight of the object's, under gravity."""
PRESS, PRESS_ON_A_PLANE = 2.0, 8.0
"""Largest forces of springs, in weights of the object; they may be larger for objects that slide on a plane."""
GAIN = 0.1
"""Gain of the sum of errors, per control period."""


def follower_of(plan: Plan, plant: World, options: TransferOptions) -> Follower:
    """Return the follower of a plan in its world, with bounded spring forces."""
    model = plant.model
    task = follow_task(plan, model, options, _drift(plan, model, options))
    length = plan.position_tolerance / plan.rotation_tolerance
    press = options.press or (PRESS_ON_A_PLANE if plant.supported else PRESS)
    reach = spring_reach(model, plan.start, press * object_weight(model, plant.space, length))
    if options.press is None:
        # joints trail their springs by what their damping holds back
        reach = np.maximum(reach, planned_reach(plan, model)) + trail(
            plant, plan.start, options.speed
        )
    if options.force is not None:
        gear = np.abs(np.asarray(model.actuator_gear))
        stiffness = np.asarray(model.parameters.actuator_stiffness)
        limit = spread("force", options.force, model.nu) / stiffness * gear
        reach = limit if options.press is None else np.minimum(reach, limit)
    return Follower(task, follow_options(task, options.control_period, np.minimum(reach, 1e3)))


def _drift(plan: Plan, model: Model, options: TransferOptions) -> float:
    """Compute the mean speed of the object along the plan's path, m/s."""
    space = ObjectSpace(model, plan.object)
    way: list[float] = []
    spans: list[float] = []
    for segment in plan.segments:
        if segment.steps > 0:
            way += step_lengths(model, space, segment)
            times = Schedule(model, segment, options.speed, options.timestep).times
            spans += np.diff(times).tolist()
    moves = np.array(way)
    return float(moves @ (moves / np.array(spans)) / max(moves.sum(), 1e-300)) if way else 0.0


def follow_task(plan: Plan, model: Model, world: TransferOptions, drift: float) -> Task:
    """Return the task of following a plan, with the resistance that the object has in the world.

    Args:
        plan, model: The plan and its model.
        world: The options of the simulator.
        drift: Typical speed of the object, m/s. ``epsilon`` is chosen so that the step's
            resistance, ``epsilon M / h^2`` times the displacement, equals the friction and damping
            of the world at this speed.
    """
    options = plan.options.replace(kappa=None)
    epsilon = matched_epsilon(model, plan.object, world, world.control_period, drift)
    if epsilon is not None:
        options = options.replace(epsilon=epsilon, mass_ratio=None)
    way = plan.goals(model).difference(plan.start)
    lower, upper = plan.bounds(model)
    return Task(
        name=plan.task,
        model=model,
        options=options,
        start=plan.start,
        goal=plan.goal,
        object=plan.object,
        lower=np.minimum(way, 0.0),
        upper=np.maximum(way, 0.0),
        position_tolerance=plan.position_tolerance,
        rotation_tolerance=plan.rotation_tolerance,
        length=plan.position_tolerance / plan.rotation_tolerance,
        start_tolerance=np.inf,
        command_lower=lower,
        command_upper=upper,
        goal_region=plan.goal_region,
    )


def follow_options(task: Task, h: float, reach: Array) -> ImpcOptions:
    """Return settings for following a plan, ten control periods ahead.

    Errors have the weight 10 per squared ``task.length`` and per squared radian, and a hundred times
    that at the end of the horizon. For an object on a plane that is not part of the model, the robot's
    deviation from its plan and changes of the command have the weight 1 per squared unit. If gravity
    acts on the object, the smoothed model must be stiff (:func:`stiff_kappa`), because soft contacts
    carry the object at a distance. The robot then also has to keep the planned grasp, because a
    smoothed model does not know the benefit of a grip: the deviation of a finger has ten times the
    weight of the object's, and changes of its command have the weight of the object's.
    """
    model, space = task.model, task.space
    scale = space.scale(task.length) / task.length
    weights = tuple((10.0 * scale**2).tolist())
    final = tuple((1000.0 * scale**2).tolist())
    kappa, robot, moves = SOFT, np.ones(model.nu), np.ones(model.nu)
    if np.any(model.parameters.gravity) and not lies_on_a_plane(model, space):
        length = object_size(model, space) or task.length
        kappa = max(kappa, stiff_kappa(object_weight(model, space, length), length))
        tips = 10.0 * (levers(model, task.start) / task.length) ** 2
        robot = GRASP * tips
        moves = np.maximum(tips / np.asarray(model.actuator_gear) ** 2, 1e-6)
    cost = TrackingCost(
        object=weights,
        robot=tuple(robot),
        command=tuple(moves),
        final_object=final,
        final_robot=tuple(robot),
    )
    return ImpcOptions(
        horizon=10,
        h=h,
        cost=cost,
        kappa=kappa,
        radii=(0.1, 0.03, 0.01),
        start="hold",
        reach=tuple(np.maximum(reach, 1e-4).tolist()),
        threads=1,
    )


def spring_reach(model: Model, q: Array, force: float) -> Array:
    """Compute the largest distance ``(nu,)`` of commands from the robot for which no spring force exceeds
    a limit (N).

    The lever of an actuator is its longest one in the configuration, over the centres of all
    geometries.
    """
    stiffness = np.asarray(model.parameters.actuator_stiffness)
    gear = np.abs(np.asarray(model.actuator_gear))
    return np.asarray(force * levers(model, q) / stiffness * gear)


def trail(world: World, q: Array, speed: float) -> Array:
    """Compute the lag ``(nu,)`` of joints behind commands that move the robot's links with a speed, m/s."""
    return world.lag * speed / strides(world.model, q)


def planned_reach(plan: Plan, model: Model) -> Array:
    """Compute the largest distance ``(nu,)`` of the plan's commands from the robot's positions before and
    after each step."""
    most = np.zeros(model.nu)
    for segment in plan.segments:
        robot = np.array([model.command_from(q) for q in segment.configurations])
        low, high = np.minimum(robot[:-1], robot[1:]), np.maximum(robot[:-1], robot[1:])
        beyond = np.maximum(segment.inputs - high, low - segment.inputs)
        most = np.maximum(most, beyond.max(axis=0, initial=0.0))
    return most


class Follower:
    """Commands that keep the object on a plan's segment, computed from the measured state.

    A model error would leave a constant error of the object. After the end of the plan, an integral
    term (the sum of errors times a gain, bounded by twice the tolerances) is therefore added to the
    reference.

    Args:
        task: The task, from :func:`follow_task`.
        options: Options of the optimiser; ``h`` is the control period.
    """

    def __init__(self, task: Task, options: ImpcOptions) -> None:
        self.task, self.options = task, options
        self.mpc = Mpc(task, options)
        assert options.h is not None
        self.period = options.h
        space = task.space
        self._most = 2.0 * np.where(
            space.rotation, task.rotation_tolerance, task.position_tolerance
        )
        self._asked_more = np.zeros(space.size)

    def begin(self, schedule: Schedule) -> None:
        """Start a segment; its commands are the initial guess."""
        steps = 1 + np.arange(self.options.horizon)
        self.mpc.reset(np.array([schedule.command(t) for t in steps * self.period]))
        self.schedule = schedule
        self._asked_more = np.zeros(self.task.space.size)

    def command(self, q: Array, time: float, u_last: Array) -> tuple[Array, bool]:
        """Return the command for the end of the period that begins at ``time``, and whether a step failed."""
        ahead = time + self.period * np.arange(self.options.horizon + 1)
        reference = np.array([self.schedule.configuration(t) for t in ahead])
        if time >= self.schedule.duration:  # earlier, the sum would cause overshoot
            error = self.task.space.difference(self.schedule.segment.end, q)
            self._asked_more = np.clip(self._asked_more + GAIN * error, -self._most, self._most)
        shift = np.zeros(self.task.model.nv)
        shift[self.task.space.v] = self._asked_more
        reference = np.array([self.task.model.integrate(r, shift) for r in reference])
        u = self.mpc.act(q, reference)
        return u, bool(self.mpc.report.fallback)
