"""Keeps an object at its goal, where it would drift away under a constant command."""

from __future__ import annotations

from qdsim.array_type import Array
from qdsim.planning.execution.controllers import Controllers
from qdsim.planning.execution.loops.loop import World
from qdsim.planning.execution.loops.steering import Steering
from qdsim.planning.execution.loops.track import Track
from qdsim.planning.tracking.arrival import NEARER, WITHIN

__all__ = ["GoalHold"]


class GoalHold:
    """Keeps the command while the object is near its goal, and brings back an object that drifts.

    Between fingers whose contacts creep, an object drifts under any constant command. Once it has left
    a share of its tolerances, and drifts, the controller acts that is predicted to do best, until the
    object is near again.

    Args:
        world: The plant.
        controllers: The controllers.
        track: The straight way to the goal.
        period: Time for which a kept command is kept, s.
    """

    def __init__(self, world: World, controllers: Controllers, track: Track, period: float) -> None:
        self._world, self._controllers, self._track = world, controllers, track
        self._period, self._nearest = period, track.left(world.q)
        self._steering: Steering | None = None

    def command(self, u: Array) -> tuple[Array, float]:
        """Return the next command ``(nu,)``, and in which time it is to be reached, s.

        Args:
            u: The present command.
        """
        q, track = self._world.q, self._track
        left = track.left(q)
        self._nearest = min(self._nearest, left)
        if self._steering is None and left > WITHIN and left > self._nearest + NEARER:
            found = self._controllers.choose(track, u, set(), keeps=True)
            self._steering = None if found is None else found.steering
            self._nearest = left
        if self._steering is None:
            return u, self._period
        u_next, _ = self._steering.command(q, self._world.v, u)
        return self._world.within(u_next), self._steering.period
