"""Commands that loops yield, the state they may read, and the measurements they take."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.space import ObjectSpace

__all__ = ["FAULTS", "LOOK", "Commands", "Outcome", "Record", "Sample", "World", "drive", "ramp"]

T = TypeVar("T")

LOOK = 0.01
"""Time between measurements of the state, which are recorded and compared with the plan, s."""
FAULTS = 5
"""Number of periods in a row in which a controller may fail, or the fingers may not hold."""

Commands: TypeAlias = Generator[Array, None, T]
"""Yields the command ``(nu,)`` of each time step; the plant advances between two commands."""

Outcome = Literal["followed", "missed", "given up", "no grip", "not begun", "lost"]


class World(Protocol):
    """The plant as loops see it; they cannot advance it."""

    model: Model
    space: ObjectSpace
    lag: Array
    lost: bool
    timestep: float

    @property
    def q(self) -> Array:
        """The configuration ``(nq,)``."""
        ...

    @property
    def v(self) -> Array:
        """The velocity ``(nv,)``, m/s and rad/s."""
        ...

    def within(self, u: Array) -> Array:
        """Return a command ``(nu,)`` clipped to its bounds."""
        ...

    def load(self, way: Array, seconds: float) -> Array | None:
        """Return what resists an object ``(size,)`` that moves along ``way`` in a time; None without resistance."""
        ...


class Sample(NamedTuple):
    """One moment of an execution."""

    time: float  # s
    planned: Array  # (nq,)
    executed: Array  # (nq,)
    u: Array  # (nu,) command


class Record:
    """Measurements along a segment, taken when its loop asks for them.

    Args:
        world: The plant.

    Attributes:
        samples: The measurements.
        failures: Number of periods in which the controller failed.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.samples: list[Sample] = []
        self.failures = 0

    def take(self, time: float, planned: Array, u: Array) -> bool:
        """Take a measurement; return whether the object is lost."""
        self.samples.append(Sample(time, planned, self.world.q, np.array(u)))
        return self.world.lost


def drive(commands: Commands[T], advance: Callable[[Array], None]) -> T:
    """Advance a plant by each command that a loop yields; return the result of the loop."""
    while True:
        try:
            u = next(commands)
        except StopIteration as end:
            found: T = end.value
            return found
        advance(u)


def ramp(before: Array, after: Array, count: int) -> Commands[None]:
    """Interpolate linearly from one command to another in a number of steps."""
    for k in range(1, count + 1):
        yield before + (k / count) * (after - before)
