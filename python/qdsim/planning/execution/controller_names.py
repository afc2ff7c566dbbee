"""Names of the controllers of ``transfer``, and their meaning."""

from __future__ import annotations

from typing import Any, Literal

from qdsim.planning.execution.execution import Execution
from qdsim.planning.execution.loops.follower import SOFT, follower_of
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.stabilizer import Stabilizer
from qdsim.planning.execution.loops.steering import Following, Given, Planned
from qdsim.planning.execution.strokes import GaitOptions
from qdsim.planning.grasps.grip import Grip
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["EXECUTED", "Loop", "chosen_word", "mover_of", "word_of"]

Loop = Literal["open", "stabilizer", "mpc", "replan", "renew", "grip", "gait", "auto"]
ALONG = ("open", "stabilizer", "mpc", "grip")
"""Controllers that follow the plan's segments with commands as functions of time."""
EXECUTED: dict[str, dict[str, Any]] = {
    "gait": {"controllers": ("grip",), "routes": ("strokes",)},
    "replan": {"controllers": ("mpc", "planned", "sampling")},
    "renew": {"controllers": ("planned", "mpc", "sampling")},
    "auto": {},
}
"""Controllers that are an executor, with its options; they lead to the plan's goal."""


def word_of(controller: object) -> str:
    """Return the name of a controller given to ``transfer``: a word, the name of a function, or that of
    the planned commands.

    Raises:
        TypeError, ValueError: It is no controller.
    """
    if controller is None:
        return "open"
    if isinstance(controller, str):
        words = (*ALONG, *EXECUTED)
        if controller not in words:
            raise ValueError(
                f"controller: expected one of {', '.join(words)} or a function, got {controller!r}"
            )
        return controller
    if not callable(controller):
        raise TypeError(
            f"controller: expected a name, a function or None, got {type(controller).__name__}"
        )
    return str(getattr(controller, "__name__", type(controller).__name__))


def chosen_word(task: Task | None, options: TransferOptions) -> tuple[Loop, str]:
    """Return the controller that ``"auto"`` stands for, and the reason; ``"auto"`` itself lets an
    executor choose.

    Args:
        task: The task; None if only the model is known.
        options: Options of the execution.
    """
    if not options.carry_on:
        return "open", "every segment is measured by itself"
    if task is None:
        return "mpc", "without the task nothing can be planned anew"
    return "auto", ""


def mover_of(execution: Execution, controller: object, gaits: GaitOptions) -> None:
    """Set the controller with which an execution moves the object along segments."""
    plan, options, world = execution.plan, execution.options, execution.plant
    period = options.control_period
    if controller == "grip":
        length = plan.position_tolerance / plan.rotation_tolerance
        grip = Grip(
            execution.model,
            plan.object,
            length,
            gaits.grip.asked_every(options.timestep),
            plan.bounds(execution.model),
        )
        execution.hand = Hand(world, grip, options)
    elif controller == "mpc":
        execution.mover = Following(follower_of(plan, world, options))
    elif controller == "stabilizer":
        smooth = plan.options.replace(h=period, kappa=SOFT, joint_limits=False)
        execution.mover = Given(Stabilizer(execution.model, plan.object, smooth), period)
    elif callable(controller):
        execution.mover = Given(controller, period)
    else:
        execution.mover = Planned(world, options.timestep, options.speed, plan.options)
