"""Tendons of a scene."""

from __future__ import annotations

from dataclasses import dataclass

from qdsim.description import checks
from qdsim.description.checks import Vector


@dataclass(frozen=True)
class Tendon:
    """A length that a step knows, in m (or rad, where it is one of hinges).

    ``name``: unique among tendons. Either ``joints``, pairs of the name of a hinge or slide and a
    coefficient: its length is the sum of coefficient times q (MuJoCo's fixed tendon). Or
    ``points``, pairs of the name of a body and a point (3)
    in its frame, m: straight lines from each point to the next (MuJoCo's spatial tendon through sites).
    ``range``: (lower, upper) of the length, or None. ``stiffness``, N/m: a spring that pulls where
    the length is above ``springrange`` and pushes where it is below; within, it rests (two equal
    numbers: at one length). ``frictionloss``, N: dry friction along the tendon. ``damping``, Ns/m:
    counts with ``Options.damping``. ``thrust``: it has no length (0), and ``points`` are three of
    one body, in its frame: where a unit force along it acts, that force (3), and its moment (3), m;
    a rotor's actuator pulls along one. ``reach``: ``points`` are a point of one body, a point of another,
    and a direction (3) in the frame of the latter, which is named twice: the length is how far the first lies
    from the second along that direction, times its own length (the actuator of a site with a reference site).
    Two more make it turn: a rotation vector (3) on the first body and an axis (3) on the second. The rotation vector
    of the first body against the second, in the latter's frame, begins at minus that one, and counts along the axis.
    A force along it is a couple about the axis, as in MuJoCo, which for rotations about other axes is not quite how
    the length changes; so it has neither range nor stiffness, frictionloss or damping.
    """

    name: str
    joints: tuple[tuple[str, float], ...] = ()
    points: tuple[tuple[str, Vector], ...] = ()
    range: tuple[float, float] | None = None
    stiffness: float = 0.0
    springrange: tuple[float, float] = (0.0, 0.0)
    frictionloss: float = 0.0
    damping: float = 0.0
    thrust: bool = False
    reach: bool = False

    def __post_init__(self) -> None:
        owner = f"tendon {checks.text('tendon', 'name', self.name)!r}"
        joints = [
            (checks.text(owner, "joints", name), checks.number(owner, "joints", value))
            for name, value in checks.pairs(owner, "joints", self.joints)
        ]
        points = [
            (checks.text(owner, "points", name), checks.vector(owner, "points", value, 3))
            for name, value in checks.pairs(owner, "points", self.points)
        ]
        if bool(joints) == bool(points):
            raise ValueError(f"{owner}: give joints or points, and not both")
        if len(points) == 1:
            raise ValueError(f"{owner}: points must hold two at least, got one")
        if self.thrust and (len(points) != 3 or len({body for body, _ in points}) != 1):
            raise ValueError(f"{owner}: points of a thrust must be three of one body")
        if self.thrust and (self.range is not None or self.stiffness):
            raise ValueError(f"{owner}: a thrust has no length, and so neither range nor stiffness")
        bodies = [body for body, _ in points]
        if self.reach and bodies[1:] not in (
            bodies[1:2] * 2,
            [*bodies[1:2] * 2, bodies[0], bodies[1]],
        ):
            raise ValueError(
                f"{owner}: points of a reach must be three, the last two of one body, or five, two more of the first "
                "and the second body"
            )
        passive = self.range is not None or self.stiffness or self.frictionloss or self.damping
        if self.reach and len(points) == 5 and passive:
            raise ValueError(
                f"{owner}: a reach that turns has neither range nor stiffness, frictionloss or damping"
            )
        if self.reach and self.thrust:
            raise ValueError(f"{owner}: give thrust or reach, and not both")
        low, high = checks.vector(owner, "springrange", self.springrange, 2)
        if low > high:
            raise ValueError(
                f"{owner}: springrange must have lower <= upper, got {low:g}, {high:g}"
            )
        values = {
            "joints": tuple(joints),
            "points": tuple(points),
            "stiffness": checks.non_negative(owner, "stiffness", self.stiffness),
            "springrange": (low, high),
            "frictionloss": checks.non_negative(owner, "frictionloss", self.frictionloss),
            "damping": checks.non_negative(owner, "damping", self.damping),
        }
        for field, value in {
            **values,
            "range": checks.interval(owner, "range", self.range),
        }.items():
            object.__setattr__(self, field, value)
