"""Which controller a transfer takes that is left to choose, and why."""

from __future__ import annotations

from typing import Literal

from qdsim.planning.execution.grip import Grip
from qdsim.planning.execution.strokes import GaitOptions
from qdsim.planning.execution.transfer_options import TransferOptions
from qdsim.planning.grasps.samplers.touching import tip_bodies
from qdsim.planning.plans.plan import Plan
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["can_hold", "chosen_controller"]

FINGERS = 2
"""Last links that can touch an object, at least, to hold it."""


def chosen_controller(
    plan: Plan,
    task: Task | None,
    options: TransferOptions,
    planner: RRTOptions | GaitOptions | None,
) -> tuple[Literal["open", "mpc", "replan", "gait"], str]:
    """The word of a controller, and the reason, by what is known of a task.

    Args:
        plan: to be executed.
        task: None where the model alone is known.
        options: of the execution.
        planner: settings that the caller has given: strokes or new plans are meant.
    """
    if not options.carry_on:
        return "open", "every segment is measured by itself"
    if task is None:
        return "mpc", "without the task nothing can be planned anew"
    if isinstance(planner, GaitOptions):
        return "gait", "planner= says how strokes are found"
    if isinstance(planner, RRTOptions):
        return "replan", "planner= says how new plans are made"
    if task.space.rotation.all():
        return "replan", "the object turns on hinges"
    if task.sampler is None:
        return "mpc", "the task has no sampler of grasps to begin anew with"
    if can_hold(task, Grip(task.model, task.object, task.length, None, task.command_bounds)):
        return "gait", "enough fingers can hold the object"
    return "replan", "too few fingers hold the object, which is pushed"


def can_hold(task: Task, grip: Grip) -> bool:
    """Whether enough fingers can touch an object that is free to be held."""
    if task.space.rotation.all():
        return False
    tips = len(tip_bodies(task.model, task.object))
    return tips >= FINGERS and grip.available >= max(FINGERS, grip.fingers)
