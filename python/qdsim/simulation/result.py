"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from qdsim.arguments import finite, reals
from qdsim.array_type import Array
from qdsim.dynamics import DynamicStep
from qdsim.model import Model
from qdsim.simulation.events import Pairs

__all__ = ["Simulation"]


@dataclass(frozen=True, slots=True)
class End:
    """The state after the last step other than q and v, from which a simulation continues."""

    level: int = 0
    warm: DynamicStep | None = None
    pairs: Pairs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation:
    """A second-order motion over a time. Made by ``simulate``; it can be pickled and continued.

    Attributes:
        model: The model.
        t: Times (steps + 1), s, from 0 on.
        q: Configurations at these times (steps + 1, nq).
        v: Velocities at these times (steps + 1, nv).
        u: Commands of the steps (steps, nu).
        events: Pairs of geometries that begin or end contact, in the order of time; a structured
            array (events,): ``time`` (s; for a closing contact, the time at which the gap at the
            beginning of the step is closed at the speed there), ``step`` (index), ``closes`` (or
            opens), ``geom_a``, ``geom_b``, ``body_a``, ``body_b`` (indices), ``pos`` (3, m, world),
            ``speed`` (m/s, separation speed of b from a at the beginning of the step; NaN, as
            ``pos``, if the pair is then out of range), ``impulse`` (N s, of the pair in that step).
            Empty for smoothed steps, in which all pairs exert forces.
        steps: The steps themselves, if they were kept, or ().
        rejected: Number of steps that were rejected because of the accuracy.
    """

    model: Model
    t: Array
    q: Array
    v: Array
    u: Array
    events: npt.NDArray[np.void]
    steps: tuple[DynamicStep, ...] = ()
    rejected: int = 0
    _end: End = field(default_factory=End)

    def __post_init__(self) -> None:
        for name in ("t", "q", "v", "u", "events"):
            getattr(self, name).setflags(write=False)

    @property
    def duration(self) -> float:
        """Duration of the simulation, s."""
        return float(self.t[-1])

    def at(self, time: npt.ArrayLike) -> tuple[Array, Array]:
        """Interpolate the state at any time: q along each step's own displacement, v linearly.

        Within a step q moves with the velocity at the step's end. Both are first-order accurate in
        h, as are the steps; velocities jump within one step at an impact.

        Args:
            time: s, within [0, duration], of any shape (...).

        Returns:
            q (..., nq) and v (..., nv).

        Raises:
            TypeError, ValueError: if it is not an array of times within the simulation.
        """
        times = finite("time", reals("time", time))
        if times.size and not (times.min() >= 0.0 and times.max() <= self.duration):
            raise ValueError(
                f"time: expected numbers in [0, {self.duration}], got "
                f"{times.min()} to {times.max()}"
            )
        step = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, max(len(self.u) - 1, 0))
        q = np.empty((*times.shape, self.model.nq))
        v = np.empty((*times.shape, self.model.nv))
        for place in np.ndindex(times.shape):
            k = int(step[place])
            if len(self.u) == 0:
                q[place], v[place] = self.q[0], self.v[0]
                continue
            past = times[place] - self.t[k]
            share = past / (self.t[k + 1] - self.t[k])
            q[place] = (
                self.q[k + 1]
                if share == 1.0
                else self.model.integrate(self.q[k], past * self.v[k + 1])
            )
            v[place] = (1.0 - share) * self.v[k] + share * self.v[k + 1]
        return q, v

    def energy(self) -> Array:
        """Kinetic and potential energy at the times t, (steps + 1, 2), J; as ``Model.energy``."""
        return np.array([self.model.energy(q, v) for q, v in zip(self.q, self.v)])

    def __repr__(self) -> str:
        return (
            f"Simulation({self.duration:g} s, {len(self.u)} steps, {len(self.events)} events, "
            f"{self.rejected} rejected)"
        )
