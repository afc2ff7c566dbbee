"""Commands that hold a configuration, so that the actuated joints stay in place."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ActuatorLaws:
    """The laws of actuators as arrays (nu), in joint units.

    At rest their force is ``stiffness (u / gear - q) + (gain + slope q) u + bias``. ``at_q`` and
    ``at_v`` are the indices of their joints in q and v.
    """

    stiffness: Array
    gear: Array
    gain: Array
    slope: Array
    bias: Array
    at_q: IntArray
    at_v: IntArray

    def of(self, chosen: IntArray) -> ActuatorLaws:
        """Return the laws of the chosen actuators."""
        return ActuatorLaws(*(getattr(self, item.name)[chosen] for item in fields(self)))

    @property
    def plain(self) -> bool:
        """Whether every actuator is only a spring, on a joint of its own."""
        alone = len(set(self.at_v.tolist())) == len(self.at_v)
        extra = np.any(self.gain) or np.any(self.slope) or np.any(self.bias)
        moved = np.all(self.stiffness > 0.0) and np.all(np.isfinite(self.gear))
        return bool(alone and moved and not extra)

    @property
    def without_command(self) -> tuple[int, ...]:
        """The DOFs of actuators whose force does not depend on the command, ascending."""
        moved = (self.stiffness / self.gear != 0.0) | (self.gain != 0.0) | (self.slope != 0.0)
        return tuple(sorted(set(self.at_v.tolist()) - set(self.at_v[moved].tolist())))

    def balancing(self, q: Array, force: Array) -> Array:
        """Compute commands (..., nu) with which the actuators exert ``force`` (..., nv) at q (..., nq).

        If several actuators act on a joint, its springs share the force in proportion to their
        stiffness, and the other actuators exert none. Without springs, all share it equally. The
        command is zero if it has no effect.
        """
        here = q[..., self.at_q]
        slope = self.stiffness / self.gear + self.gain + self.slope * here
        rest = self.bias - self.stiffness * here
        asked = force[..., self.at_v] - self._sum(np.where(slope == 0.0, rest, 0.0))
        weight = np.where(slope == 0.0, 0.0, self.stiffness)
        weight = np.where(self._sum(weight) == 0.0, (slope != 0.0) * 1.0, weight)
        total = self._sum(weight)
        share = np.divide(weight, total, out=np.zeros_like(total), where=total != 0.0)
        return np.divide(share * asked - rest, slope, out=np.zeros_like(slope), where=slope != 0.0)

    def commanding(self, coordinate: Array, force: Array) -> Array:
        """Compute commands (nu) with which each actuator exerts its force (nu) at its coordinate
        (nu); zero without effect."""
        slope = self.stiffness / self.gear + self.gain + self.slope * coordinate
        rest = self.bias - self.stiffness * coordinate
        return np.divide(force - rest, slope, out=np.zeros_like(slope), where=slope != 0.0)

    def _sum(self, values: Array) -> Array:
        """Return for each actuator the sum of the values of all actuators on its joint, (..., nu)."""
        same = (self.at_v[:, None] == self.at_v[None, :]).astype(np.float64)
        return np.asarray(values @ same)
