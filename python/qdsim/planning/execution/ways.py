"""The words for how a plan is executed: which loop, and what is done with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdsim.planning.execution.execution import Execution, SegmentTransfer
from qdsim.planning.execution.grip import Grip, GripOptions
from qdsim.planning.execution.loops.follower import follower_of
from qdsim.planning.execution.loops.gait import gaiting
from qdsim.planning.execution.loops.gripping import GripLoop
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Loop
from qdsim.planning.execution.loops.stabilizer import Stabilizer
from qdsim.planning.execution.loops.tracking import Controlled, Controller, Function, Open
from qdsim.planning.execution.renewing import with_new_plans
from qdsim.planning.execution.strokes import GaitOptions, StrokePlanner
from qdsim.planning.execution.transfer_options import TransferOptions
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task

__all__ = ["Way", "way_of"]

STABILIZER_KAPPA = 300.0
"""1/J, how smooth the stabilizer's steps are."""

Settings = RRTOptions | GaitOptions | None
Done = tuple[list[SegmentTransfer], int]


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to execute a plan.

    Attributes:
        loop: makes what takes the robot along a segment; the settings are the caller's ``planner``.
        run: goes through the plan; the segments as they were executed, and how many plans they took.
        needs_task: whether it plans anew.
        planner: what ``planner`` may be.
        options: of the execution, that it does not work without.
        counts: whether the plan's segments are those of the execution.
    """

    loop: Callable[[Execution, Settings], Loop]
    run: Callable[[Execution, Task | None, Settings], Done]
    needs_task: bool = False
    planner: type = RRTOptions
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    counts: bool = True


def way_of(controller: object) -> Way:
    """The way for what ``transfer`` is given: a word, a function, or None for the planned commands.

    Raises:
        TypeError, ValueError: for anything else.
    """
    if controller is None:
        return WAYS["open"]
    if isinstance(controller, str):
        if controller not in WAYS:
            raise ValueError(
                f"controller: expected one of {', '.join(WAYS)}, auto or a function, got {controller!r}"
            )
        return WAYS[controller]
    if not callable(controller):
        raise TypeError(
            f"controller: expected a name, a function or None, got {type(controller).__name__}"
        )
    return Way(lambda execution, settings: _controlled(execution, controller), _along)


# -------------------------------------------------------------------- loops


def _open(execution: Execution, settings: Settings) -> Loop:
    return Open(execution.plant, execution.options)


def _controlled(execution: Execution, controller: Controller) -> Loop:
    options = execution.options
    planner = Function(controller, options.control_period)
    return Controlled(execution.plant, options, planner)


def _stabilized(execution: Execution, settings: Settings) -> Loop:
    plan = execution.plan
    smooth = plan.options.replace(
        h=execution.options.control_period, kappa=STABILIZER_KAPPA, joint_limits=False
    )
    return _controlled(execution, Stabilizer(execution.model, plan.object, smooth))


def _following(execution: Execution, settings: Settings) -> Loop:
    planner = follower_of(execution.plan, execution.plant, execution.options)
    return Controlled(execution.plant, execution.options, planner)


def _gripping(execution: Execution, settings: Settings) -> Loop:
    plan, options = execution.plan, execution.options
    length = plan.position_tolerance / plan.rotation_tolerance
    given, bounds = _grip_options(_gaits(settings), options), plan.bounds(execution.model)
    grip = Grip(execution.model, plan.object, length, given, bounds)
    return GripLoop(Hand(execution.plant, grip, options), options.settle)


def _gaits(settings: Settings) -> GaitOptions:
    return settings if isinstance(settings, GaitOptions) else GaitOptions()


def _grip_options(gaits: GaitOptions, options: TransferOptions) -> GripOptions:
    return dataclasses.replace(gaits.grip, period=options.control_period)


# -------------------------------------------------------------------- runs


def _along(execution: Execution, task: Task | None, settings: Settings) -> Done:
    """Segment by segment."""
    return [execution.run(s) for s in execution.plan.segments if s.steps > 0], 1


def _renewing(execution: Execution, task: Task | None, settings: Settings) -> Done:
    """New plans where the object has left its own."""
    assert task is not None
    planner = settings if isinstance(settings, RRTOptions) else task.planner or RRTOptions()
    return with_new_plans(execution, task, planner)


def _gaiting(execution: Execution, task: Task | None, settings: Settings) -> Done:
    """Strokes from the task's start to the plan's goal, without a break; then the object is held there."""
    assert task is not None
    task, options, plant = task.towards(execution.plan.goal), execution.options, execution.plant
    gaits = _gaits(settings)
    gaits = dataclasses.replace(gaits, grip=_grip_options(gaits, options))
    strokes = StrokePlanner(task, gaits, options.seed)
    hand = Hand(plant, strokes.grip, options)
    plant.watch(np.array([task.start, task.goal]))
    start = hand.apart(task.start, strokes.task.options)
    plant.reset(start)
    hand.rest(start)
    done, execution.not_found = execution.drive(gaiting(hand, strokes, options))
    execution.last_q = plant.q
    segments = [
        execution.measure(s.segment, record, s.duration, outcome) for s, record, outcome in done
    ]
    return segments, len(segments)


WAYS: dict[str, Way] = {
    "open": Way(_open, _along),
    "stabilizer": Way(_stabilized, _along),
    "mpc": Way(_following, _along),
    "replan": Way(_following, _renewing, needs_task=True, options={"carry_on": True}, counts=False),
    "renew": Way(_open, _renewing, needs_task=True, options={"carry_on": True}, counts=False),
    "grip": Way(_gripping, _along, planner=GaitOptions),
    "gait": Way(
        _gripping,
        _gaiting,
        needs_task=True,
        planner=GaitOptions,
        options={"carry_on": True},
        counts=False,
    ),
}
