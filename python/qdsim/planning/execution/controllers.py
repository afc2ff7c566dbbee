"""Controllers that an executor tries on an edge, and the choice among them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from qdsim.array_type import Array
from qdsim.planning.execution.executor_options import ExecutorOptions
from qdsim.planning.execution.loops.follower import (
    PRESS_ON_A_PLANE,
    follow_options,
    follow_task,
    follower_of,
    spring_reach,
    trail,
)
from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.steering import (
    Following,
    Given,
    Gripping,
    Planned,
    Sampled,
    Steering,
    Straight,
)
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.execution.world import World
from qdsim.planning.grasps.grip import MOVING, Grip, GripOptions, can_hold
from qdsim.planning.grasps.resting import is_stable
from qdsim.planning.plans.plan import Plan
from qdsim.planning.task.robot import lies_on_a_plane, object_weight
from qdsim.planning.task.roundness import turn_axes
from qdsim.planning.task.sampling_options import SamplingOptions
from qdsim.planning.task.task import Task
from qdsim.planning.task.transfer_options import TransferOptions
from qdsim.planning.tracking.arrival import NEARER
from qdsim.planning.tracking.mpc import Mpc
from qdsim.planning.tracking.predictors import Predictor
from qdsim.planning.tracking.preset import PERIOD, fastest, in_space
from qdsim.planning.tracking.sampling import SamplingMpc

__all__ = ["WORTH", "Choice", "Controllers"]

WORTH = 0.5
"""Smallest difference that counts, in tolerances. A controller replaces one that is trusted more only if its predicted
error is smaller by this much, and an edge has to bring the object nearer to the goal by this much. With a third or
twice as much, test_executor_edges.py fails."""


class Choice(NamedTuple):
    """A controller, and the predicted error of the object under it, in tolerances."""

    name: str
    steering: Steering
    predicted: float


class Controllers:
    """Controllers that can move the object along an edge.

    Args:
        world: The simulator or robot.
        task: The task of the whole execution; the predicting steps use its options.
        plan: The plan whose segments are edges; also the source of typical speeds if none is
            executed.
        options: Which controllers are tried.
        pace: Speed and contacts of the execution.
        grip: How fingers hold the object.
        model: Predicts samples; None: the quasi-dynamic step.

    Attributes:
        hand: Closes and releases the fingers, if the robot has fingers that can hold; else None.
        why: A sentence that says which controllers are tried and why.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        plan: Plan,
        options: ExecutorOptions,
        pace: TransferOptions,
        grip: GripOptions,
        model: Predictor | None,
    ) -> None:
        self.world, self.task = world, task
        self._made: dict[str, Steering] = {}
        self.follow(plan)
        self._given, self._pace, self._model = options, pace, model
        carries = not is_stable(task.model, task.aim, task.object, task.options)
        self._grip = Grip(task.model, task.object, task.length, grip, task.command_bounds, carries)
        holds = can_hold(task, self._grip)
        self.names, reason = self._chosen(holds)
        self.hand = Hand(world, self._grip, pace) if holds and "grip" in self.names else None
        told = ", ".join(_name(one) for one in self.names)
        self.why = f"controllers: {told} ({reason})"

    def _chosen(self, holds: bool) -> tuple[tuple[object, ...], str]:
        """Return the controllers, the most trusted first, and the reason for the choice."""
        if self._given.controllers is not None:
            return self._given.controllers, "as given"
        if holds and self._rolls():
            return ("grip",), "fingers hold an object that would roll away from whatever pushes it"
        if holds and in_space(self.task):
            reason = "fingers hold an object in space, along segments by a grip first"
            return ("mpc", "grip", "planned", "sampling"), reason
        if holds:
            return ("grip", "mpc", "planned", "sampling"), "two fingers or more can hold the object"
        if lies_on_a_plane(self.task.model, self.task.space):
            reason = "the object is pushed on a support that is not part of the model"
            return ("mpc", "planned", "sampling"), reason
        if in_space(self.task):
            return ("planned",), "the object is pushed, not held, and can be thrown"
        return ("planned", "sampling", "mpc"), "the object is pushed, not held"

    @property
    def trails(self) -> bool:
        """Whether joints would trail their springs by more than the tolerance, and throw or tip what they move."""
        trail = fastest(self.task) * float(self.world.lag.max(initial=0.0))
        return trail > self.task.position_tolerance

    def _rolls(self) -> bool:
        """Return whether the object is a ball, which strokes turn."""
        task = self.task
        ball = len(turn_axes(task.model, task.object)) == 3
        return ball and in_space(task) and task.sampler is not None

    def touches(self) -> bool:
        """Return whether enough fingers touch the object to hold it."""
        return self._grip.touching(self.world.q) >= self._grip.fingers

    def follow(self, plan: Plan) -> None:
        """Use another plan from now on."""
        options = plan.options.replace(contacts=self.task.options.contacts)
        self.plan = dataclasses.replace(plan, options=options)
        self._made.pop("mpc along", None)

    def choose(
        self, track: Track, u: Array, without: set[str], keeps: bool = False
    ) -> Choice | None:
        """Choose the first controller whose prediction on an edge is good enough, or else the best
        one.

        A prediction is good enough if the object stays within a margin of the plan. On the straight
        path to the goal, and at the end of a segment that other controllers did not complete, it has
        to bring the object nearer by a minimum. A controller that keeps the object at its goal has to
        bring it back to where it counts as held there, or else at least nearer.

        Args:
            track: The edge.
            u: The present command ``(nu,)``.
            without: Names of controllers that have failed.
            keeps: Whether the object is to be kept at the goal.

        Returns:
            The controller, already started; None if no controller brings the object nearer.
        """
        straight = track.schedule is None or (bool(without) and track.ended)
        left = track.left(self.world.q)
        enough = left - WORTH if straight and not keeps else WORTH
        # what a model of the world predicts is worth a try before the object is let go
        most = math.inf if keeps else enough if self._model is None else left - NEARER
        names: Sequence[object] = self.names
        if self._given.controllers is None and not straight:
            names = sorted(names, key=lambda one: one != "grip")
        if keeps and self._model is not None:
            # only samples are predicted by the world's own contacts in closed loop
            names = [one for one in names if one != "grip"]
            names = sorted(names, key=lambda one: one != "sampling")
        found: list[Choice] = []
        for choice in self._predicted(
            [one for one in names if _name(one) not in without], track, u
        ):
            found.append(choice)
            if choice.predicted <= enough:
                break
        best = min((choice.predicted for choice in found), default=math.inf)
        if not math.isfinite(best) or (straight and best > most):
            return None
        chosen = next(choice for choice in found if choice.predicted <= max(best + WORTH, enough))
        chosen.steering.begin(track)
        return chosen

    def _predicted(self, names: Sequence[object], track: Track, u: Array) -> Iterator[Choice]:
        """Yield the controllers that can act on an edge, each with its prediction."""
        q, v = self.world.q, self.world.v
        for one in names:
            steering = self._steering(one, track)
            if steering is not None:
                steering.begin(track)
                predicted = steering.predicted(q, v, u)
                yield Choice(_name(one), steering, predicted if predicted >= 0.0 else math.inf)

    def _steering(self, one: object, track: Track) -> Steering | None:
        """Return a named controller or a function of the user; None if it needs a missing plan or hand."""
        along = track.schedule is not None
        if callable(one):
            return Given(one, self._pace.control_period)
        if (one == "planned" and not along) or (one == "grip" and self.hand is None):
            return None
        key = f"{one} along" if along else str(one)
        if key not in self._made:
            make = {"planned": self._planned, "grip": self._gripping, "sampling": self._sampled}
            make["mpc"] = self._following if along else self._straight
            self._made[key] = make[str(one)]()
        return self._made[key]

    def _planned(self) -> Steering:
        pace = self._pace
        return Planned(self.world, pace.control_period, pace.speed, self.task.options)

    def _gripping(self) -> Steering:
        return Gripping(self.world, self._grip, self.task)

    def _following(self) -> Steering:
        return Following(follower_of(self.plan, self.world, self._pace))

    def _straight(self) -> Steering:
        """Make iMPC to the goal.

        It is the task's own, or that for fingers in space; otherwise that for following plans, at a limited pace.
        """
        task, space, model = self.task, self.task.space, self.task.model
        slow = MOVING / task.position_tolerance
        if in_space(task) and (task.impc is None or task.impc.method == "feedback"):
            pace = slow if self.trails else math.inf
            return Straight(Mpc(task, hold=False), pace, self._model)
        tame = follow_task(self.plan, model, self._pace, MOVING)
        weight = object_weight(model, space, task.length)
        reach = spring_reach(model, task.start, PRESS_ON_A_PLANE * weight)
        reach += trail(self.world, task.start, self._pace.speed)
        period = max(self._pace.control_period, PERIOD)
        mpc = Mpc(tame, follow_options(tame, period, np.minimum(reach, 1e3)), hold=False)
        return Straight(mpc, slow)

    def _sampled(self) -> Steering:
        given = SamplingOptions(samples=self._given.samples)
        guide = Mpc(self.task, hold=False) if in_space(self.task) else None
        loop = SamplingMpc(
            self.task, given, self._given.seed, model=self._model, guide=guide, hold=False
        )
        return Sampled(loop)


def _name(one: object) -> str:
    return one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)
