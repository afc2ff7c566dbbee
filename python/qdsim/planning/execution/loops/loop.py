"""What loops yield, what they may know of the simulated world, and what they measure."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.task.space import ObjectSpace

__all__ = ["FAULTS", "LOOK", "Commands", "Outcome", "Record", "Sample", "World", "ramp"]

T = TypeVar("T")

LOOK = 0.01
"""s between looks at where everything is: what is kept of a segment, and what is compared with its plan."""
FAULTS = 5
"""Periods in a row in which a controller may have no answer, or fingers no hold."""

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

    Attributes:
        samples: what has been measured.
        failures: periods in which the controller had no answer.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.samples: list[Sample] = []
        self.failures = 0

    def take(self, time: float, planned: Array, u: Array) -> bool:
        """Measure; whether the object is lost."""
        self.samples.append(Sample(time, planned, self.world.q, np.array(u)))
        return self.world.lost


def ramp(before: Array, after: Array, count: int) -> Commands[None]:
    """Straight from one command to another in so many steps."""
    for k in range(1, count + 1):
        yield before + (k / count) * (after - before)
