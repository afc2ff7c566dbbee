"""Options of motions between grasps."""

from __future__ import annotations

import dataclasses

from qdsim.arguments import fields, number, numbers
from qdsim.planning.task.robot import TOUCHING
from qdsim.planning.task.settings import Settings

__all__ = ["MotionOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MotionOptions(Settings):
    """Settings of :func:`qdsim.planning.connect`.

    Attributes:
        clearance: distance that pairs moved by the robot keep once the robot has backed off, m.
            Pairs that cannot be this far apart at an end (links that are always close) keep the
            distance they have there.
        time_limit: time limit of OMPL's search, s of CPU.
        speed: largest speed of every actuated DOF, rad/s or m/s; one number, or one per actuated
            DOF in the order of ``model.actuated_q``.
        acceleration: largest acceleration, rad/s^2 or m/s^2, in the same form. Motions accelerate
            and decelerate on each straight piece and are at rest at its ends. None: no limit,
            joints move at constant speed between points.
        penetration: deepest penetration allowed at an end, and on the way from and to it, m.
    """

    clearance: float = 2e-3
    time_limit: float = 10.0
    speed: float | tuple[float, ...] = 1.0
    acceleration: float | tuple[float, ...] | None = 5.0
    penetration: float = TOUCHING

    def __post_init__(self) -> None:
        fields(self, number, "time_limit", above=0)
        fields(self, numbers, "speed", per="actuated DOF", above=0)
        fields(self, numbers, "acceleration", per="actuated DOF", above=0, or_none=True)
        fields(self, number, "clearance", "penetration", least=0)
