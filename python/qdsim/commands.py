"""Commands that hold a configuration: what actuators have to be told so that their joints stay."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ActuatorLaws:
    """Actuators as arrays (nu), in joint units: at rest they pull with
    ``stiffness (u / gear - q) + (gain + slope q) u + bias`` at the joints ``at_q`` of q, ``at_v`` of v."""

    stiffness: Array
    gear: Array
    gain: Array
    slope: Array
    bias: Array
    at_q: IntArray
    at_v: IntArray

    def of(self, chosen: IntArray) -> ActuatorLaws:
        """Some of them."""
        return ActuatorLaws(*(getattr(self, item.name)[chosen] for item in fields(self)))

    @property
    def plain(self) -> bool:
        """Every actuator is a spring of its own joint, and no more than that."""
        alone = len(set(self.at_v.tolist())) == len(self.at_v)
        extra = np.any(self.gain) or np.any(self.slope) or np.any(self.bias)
        moved = np.all(self.stiffness > 0.0) and np.all(np.isfinite(self.gear))
        return bool(alone and moved and not extra)

    @property
    def without_command(self) -> tuple[int, ...]:
        """The DOFs whose actuators no command moves, ascending."""
        moved = (self.stiffness / self.gear != 0.0) | (self.gain != 0.0) | (self.slope != 0.0)
        return tuple(sorted(set(self.at_v.tolist()) - set(self.at_v[moved].tolist())))

    def balancing(self, q: Array, force: Array) -> Array:
        """Commands (..., nu) with which the actuators pull with ``force`` (..., nv) at q (..., nq).

        Of several actuators on a joint the springs share it in proportion to their stiffness, or, where
        there is none, all in equal parts; the others pull with nothing. Zero where no command matters.
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
        """Commands (nu) with which each pulls with its force (nu) at its coordinate (nu). Zero where none matters."""
        slope = self.stiffness / self.gear + self.gain + self.slope * coordinate
        rest = self.bias - self.stiffness * coordinate
        return np.divide(force - rest, slope, out=np.zeros_like(slope), where=slope != 0.0)

    def _sum(self, values: Array) -> Array:
        """(..., nu) of each actuator's joint, the sum over all actuators of that joint."""
        same = (self.at_v[:, None] == self.at_v[None, :]).astype(np.float64)
        return np.asarray(values @ same)
