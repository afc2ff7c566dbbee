"""What an execution asks of a loop, and what a loop may know of the simulated world."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.execution.schedule import Schedule
from qdsim.planning.task.space import ObjectSpace

__all__ = ["Commands", "Loop", "Outcome", "Record", "Sample", "World", "ramp"]

T = TypeVar("T")

Commands: TypeAlias = Generator[Array, None, T]
"""Yields the command ``(nu,)`` of one time step after the other; in between the plant has moved."""

Outcome = Literal["followed", "missed", "given up", "no grip", "not begun", "lost"]


class World(Protocol):
    """The plant as loops see it; they do not advance it."""

    model: Model
    space: ObjectSpace
    lag: Array
    lost: bool
    timestep: float

    @property
    def q(self) -> Array:
        """Where everything is ``(nq,)``."""
        ...

    @property
    def v(self) -> Array:
        """How everything moves ``(nv,)``, m/s and rad/s."""
        ...

    def within(self, u: Array) -> Array:
        """A command ``(nu,)`` moved to within its bounds."""
        ...

    def support_load(self, way: Array) -> Array | None:
        """Friction ``(size,)`` of a support on an object that moves along ``way``; None without one."""
        ...


class Sample(NamedTuple):
    """One moment of an execution."""

    time: float  # s
    planned: Array  # (nq,)
    executed: Array  # (nq,)
    u: Array  # (nu,) command


class Record:
    """What is measured along a segment, whenever its loop says that it is time.

    Args:
        world: where to look.
        abandon: m and rad; where the object is further than one of them from its plan the segment is given up.
    """

    def __init__(self, world: World, abandon: tuple[float, float] | None = None) -> None:
        self.world, self.abandon = world, abandon
        self.samples: list[Sample] = []

    def take(self, time: float, planned: Array, u: Array) -> Outcome | None:
        """Measure; returns why the segment ends here, None where it goes on."""
        q = self.world.q
        self.samples.append(Sample(time, planned, q, np.array(u)))
        if self.world.lost:
            return "lost"
        off = np.array(self.world.space.errors(q, planned))
        return "given up" if self.abandon is not None and np.any(off > self.abandon) else None


class Loop(Protocol):
    """Takes the robot along the segments of a plan.

    Attributes:
        failures: periods of the last segment in which there was no answer; the planned command was used.
    """

    @property
    def failures(self) -> int: ...

    def begin(self, schedule: Schedule) -> Commands[None]:
        """From the segment's start to where it can be followed."""
        ...

    def follow(self, schedule: Schedule, record: Record) -> Commands[Outcome]:
        """Along the segment, and to rest at its end."""
        ...


def ramp(before: Array, after: Array, count: int) -> Commands[None]:
    """Straight from one command to another in so many steps."""
    for k in range(1, count + 1):
        yield before + (k / count) * (after - before)
