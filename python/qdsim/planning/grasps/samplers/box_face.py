"""Grasps of an arm's fingertip on a box that slides on a table."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import MOST_COUNT, fields, flag, instance, integer, number, reals, vector
from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.inverse_kinematics import reach_point
from qdsim.planning.grasps.samplers.touching import bodies_touching
from qdsim.planning.task.drives import check_joints_lead
from qdsim.planning.task.robot import near_pairs

__all__ = ["BoxFaceSampler"]


@dataclasses.dataclass(frozen=True, eq=False)
class BoxFaceSampler:
    """Puts the tip of an arm at a random place on one of a box's four side faces, or on its top.

    This is the published sampler of the arm that pushes a box: a face with equal probability, a
    place along its horizontal line, and inverse kinematics of the arm with its last axis into the
    face. Unlike the published sampler, it keeps the tip ``gap`` away from the face, without
    penetration. If the arm cannot point into a face (the far one), its round tip touches the face
    in any direction.

    Sides that face away may be out of the arm's reach, so a box that was pushed too far cannot be
    pushed back. With ``top`` the tip is also put on the top face, from where friction drags the box
    in any direction.

    Attributes:
        object: body of the box, upright.
        half: ``(3,)`` half lengths of the box's sides, m.
        height: height of the line above the box's centre, m.
        body: last link of the arm.
        tip: ``(3,)`` centre of the round tip in the link's coordinates, m; the link's z axis points
            out of it.
        radius: radius of the tip, m.
        posture: ``(nu,)`` start of the inverse kinematics.
        top: whether the top face is drawn as well, as often as each side.
        gap: m.
        angle_tolerance: between the link's axis and the normal, rad.
        draws: largest number of attempts.
    """

    object: str
    half: tuple[float, float, float]
    height: float
    body: str
    tip: tuple[float, float, float]
    radius: float
    posture: Array
    top: bool = False
    gap: float = 1e-4
    angle_tolerance: float = 0.1
    draws: int = 20

    def __post_init__(self) -> None:
        fields(self, instance, "object", "body", kind=str)
        for name in ("half", "tip"):
            object.__setattr__(self, name, tuple(vector(name, getattr(self, name), 3).tolist()))
        fields(self, number, "height")
        posture = reals("posture", self.posture)
        if posture.ndim != 1 or not np.isfinite(posture).all():
            raise ValueError(f"posture: expected (nu,) finite numbers, got shape {posture.shape}")
        object.__setattr__(self, "posture", posture)
        fields(self, number, "radius", "gap", "angle_tolerance", above=0)
        fields(self, flag, "top")
        fields(self, integer, "draws", least=1, most=MOST_COUNT)

    def __call__(self, model: Model, q: Array, rng: np.random.Generator) -> Array | None:
        """Compute a configuration ``(nq,)`` with the tip at a face, or None if no attempt succeeded."""
        pos, rot = model.body_pose(q, self.object)
        check_joints_lead(model, "BoxFaceSampler")
        begin = np.array(q)
        if len(self.posture) != model.nu:
            raise ValueError(f"posture: expected {model.nu} numbers, got {len(self.posture)}")
        begin[model.actuated_q] = self.posture
        for _ in range(self.draws):
            normal, place = self._draw(rng)
            target = pos + rot @ place
            # Without the axis first: a place that is out of reach for any direction need not be
            # tried with the axis.
            anyhow = self._reach(model, begin, target, None)
            if anyhow is None:
                continue
            aligned = self._reach(model, anyhow, target, -rot @ normal)
            for found in (aligned, anyhow):
                if found is not None and len(near_pairs(model, found, 0.0)) == 0:
                    return found
        return None

    def _draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw a face; return its normal ``(3,)`` and a place ``(3,)`` for the centre of the tip,
        in the box's frame."""
        face = int(rng.integers(5 if self.top else 4))
        normal, place = np.zeros(3), np.zeros(3)
        if face == 4:
            normal[2] = 1.0
            place[:2] = rng.uniform(-1.0, 1.0, 2) * self.half[:2]
        else:
            axis = face % 2
            normal[axis] = 1.0 if face < 2 else -1.0
            place[1 - axis] = float(rng.uniform(-1.0, 1.0)) * self.half[1 - axis]
            place[2] = self.height
        depth = float(np.abs(normal) @ self.half)
        return normal, place + normal * (depth + self.radius + self.gap)

    def _reach(self, model: Model, q: Array, target: Array, inwards: Array | None) -> Array | None:
        """Return the arm with its tip at a target ``(3,)`` and its axis along ``inwards``; None if
        it does not reach it."""
        found = reach_point(
            model,
            q,
            self.body,
            self.tip,
            target,
            axis=None if inwards is None else (0.0, 0.0, 1.0),
            direction=inwards,
            tolerance=0.5 * self.gap,
            angle_tolerance=self.angle_tolerance,
            iteration_limit=60,
        )
        return found.q if found.success else None

    def touching(self, model: Model, q: Array) -> NDArray[np.intp]:
        """Indices of the robot's bodies that touch the object.

        Args:
            model: the model.
            q: ``(nq,)`` configuration.
        """
        return bodies_touching(model, q, self.object, 5e-3)
