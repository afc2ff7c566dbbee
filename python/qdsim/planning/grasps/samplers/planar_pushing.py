"""Where a round pusher may touch a box in the plane."""

from __future__ import annotations

import dataclasses

import numpy as np

from qdsim.arguments import fields, instance, number
from qdsim.array_type import Array
from qdsim.model import Model

__all__ = ["BoxSideSampler"]


@dataclasses.dataclass(frozen=True)
class BoxSideSampler:
    """Puts the pusher at a random place on one of the four sides of the box.

    The published sampler of planar pushing: side by side with equal probability, uniform along it,
    a little past the corners, where a gap opens.

    Attributes:
        object: body of the box, which moves in the yz plane.
        pusher: body of the pusher; its two slide joints along y and z are its configuration.
        reach: distance of the pusher's centre from that of the box, and how far along a side it may
            be, m.
    """

    object: str = "box"
    pusher: str = "pusher"
    reach: float = 0.6

    def __post_init__(self) -> None:
        fields(self, instance, "object", "pusher", kind=str)
        fields(self, number, "reach", above=0)

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """A configuration ``(nq,)`` with the pusher at a side, or None where that penetrates."""
        side = int(rng.integers(4))
        along = float(rng.uniform(-self.reach, self.reach))
        away = self.reach if side % 2 == 0 else -self.reach
        local = np.array([0.0, along, away] if side < 2 else [0.0, away, along])
        centre, turn = model.body_pose(q, self.object)
        point = centre + turn @ local
        result = np.array(q)
        own = model.slice_q(self.pusher)
        if own.stop - own.start != 2:
            raise ValueError(f"pusher: {self.pusher!r} has {own.stop - own.start} joints, not two")
        result[own] = point[1:]
        return result if len(model.collide(result, 0.0)) == 0 else None
