"""Where a fingertip of an arm may touch a box that slides on a table."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.model import Model
from qdsim.planning.closing import near_pairs
from qdsim.planning.inverse_kinematics import reach_point
from qdsim.planning.samplers.closing import bodies_touching
from qdsim.planning.space import Array

__all__ = ["BoxFaceSampler"]


@dataclasses.dataclass(frozen=True, eq=False)
class BoxFaceSampler:
    """Puts the tip of an arm at a random place on one of a box's four side faces.

    The published sampler of the arm that pushes a box: a face with equal probability, a place along
    its horizontal line, the arm by inverse kinematics with its last axis into the face. Here the tip
    stays ``gap`` in front of the face and nothing penetrates; the published one accepts penetration.
    Where the arm cannot point into a face (the far one), its round tip touches it in any direction.

    Attributes:
        object: body of the box, upright.
        half: ``(3,)`` half the box's sides, m.
        height: of the line above the box's centre, m.
        body: last link of the arm.
        tip: ``(3,)`` centre of the round tip in the link's coordinates, m; the link's z axis points
            out of it.
        radius: of the tip, m.
        posture: ``(nu,)`` arm that the inverse kinematics begin with.
        gap: m.
        angle_tolerance: between the link's axis and the normal, rad.
        draws: how often to try.
    """

    object: str
    half: tuple[float, float, float]
    height: float
    body: str
    tip: tuple[float, float, float]
    radius: float
    posture: Array
    gap: float = 1e-4
    angle_tolerance: float = 0.1
    draws: int = 20

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """A configuration ``(nq,)`` with the tip at a face, or None if no draw was good."""
        pos, rot = model.body_pose(q, self.object)
        begin = np.array(q)
        begin[model.actuated_q] = self.posture
        for _ in range(self.draws):
            face = int(rng.integers(4))
            along = float(rng.uniform(-1.0, 1.0))
            normal, side = np.zeros(3), np.zeros(3)
            axis, sign = face % 2, 1.0 if face < 2 else -1.0
            normal[axis] = sign
            side[1 - axis] = along * self.half[1 - axis]
            place = (
                normal * (self.half[axis] + self.radius + self.gap) + side + [0.0, 0.0, self.height]
            )
            for inwards in (-rot @ normal, None):
                found = reach_point(
                    model,
                    begin,
                    self.body,
                    self.tip,
                    pos + rot @ place,
                    axis=None if inwards is None else (0.0, 0.0, 1.0),
                    direction=inwards,
                    tolerance=0.5 * self.gap,
                    angle_tolerance=self.angle_tolerance,
                    iteration_limit=60,
                )
                if found.success and len(near_pairs(model, found.q, 0.0)) == 0:
                    return found.q
        return None

    def touching(self, model: Model, q: Array) -> NDArray[np.intp]:
        """Indices of the robot's bodies that touch the object."""
        return bodies_touching(model, q, self.object, 5e-3)
