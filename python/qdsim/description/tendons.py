"""Tendons of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from qdsim.description import checks
from qdsim.description.checks import Vector
from qdsim.description.contact_solver import SOLIMP, SOLREF, limits_and_friction


@dataclass(frozen=True)
class Wrap:
    """A geometry that a tendon goes around, between two of its points, wherever it would pass through.

    ``geom``: name of a sphere, or of a cylinder, whose ends do not count. ``side``: None (the shorter way), or the name
    of a body and a point (3) in its frame: the tendon passes on that side, whatever is shorter, and where the point is
    inside the geometry, touches it from within (MuJoCo's sidesite).
    """

    geom: str
    side: tuple[str, Vector] | None = None

    def __post_init__(self) -> None:
        owner = f"wrap around {checks.text('wrap', 'geom', self.geom)!r}"
        if self.side is not None:
            ((body, point),) = checks.pairs(owner, "side", (self.side,))
            side = checks.text(owner, "side", body), checks.vector(owner, "side", point, 3)
            object.__setattr__(self, "side", side)


@dataclass(frozen=True)
class Pulley:
    """Between two branches of a tendon, each of two points at least: lengths of the branch behind it count divided by
    ``divisor`` > 0, and so does the force there, until the next pulley (MuJoCo's)."""

    divisor: float

    def __post_init__(self) -> None:
        divisor = checks.number("pulley", "divisor", self.divisor)
        if divisor <= 0.0:
            raise ValueError(f"pulley: divisor must be positive, got {self.divisor!r}")
        object.__setattr__(self, "divisor", divisor)


_Item: TypeAlias = "tuple[str, Vector] | Wrap | Pulley"


@dataclass(frozen=True)
class Tendon:
    """A length that actuators, limits and springs can act on, in m (or rad, where it is one of hinges).

    ``name``: unique among tendons. Either ``joints``, pairs of the name of a hinge or slide and a
    coefficient: its length is the sum of coefficient times q (MuJoCo's fixed tendon). Or
    ``points``, pairs of the name of a body and a point (3)
    in its frame, m: straight lines from each point to the next, around each ``Wrap`` between two of them, and divided
    behind a ``Pulley`` (MuJoCo's spatial tendon).
    ``range``: (lower, upper) of the length, or None. ``stiffness``, N/m: a spring that pulls where
    the length is above ``springrange`` and pushes where it is below; within, it rests (two equal
    numbers: at one length). ``frictionloss``, N: dry friction along the tendon. ``damping``, Ns/m:
    counts with ``Options.damping``. ``margin``, ``solreflimit``, ``solimplimit``, ``solreffriction``,
    ``solimpfriction``, ``invweight`` (1/kg, ``tendon_invweight0``): MuJoCo's law of its limits and dry friction, as of
    a ``Joint``. ``thrust``: it has no length (0), and ``points`` are three of
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
    points: tuple[_Item, ...] = ()
    range: tuple[float, float] | None = None
    stiffness: float = 0.0
    springrange: tuple[float, float] = (0.0, 0.0)
    frictionloss: float = 0.0
    damping: float = 0.0
    thrust: bool = False
    reach: bool = False
    margin: float = 0.0
    solreflimit: Vector = SOLREF
    solimplimit: Vector = SOLIMP
    solreffriction: Vector = SOLREF
    solimpfriction: Vector = SOLIMP
    invweight: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        owner = f"tendon {checks.text('tendon', 'name', self.name)!r}"
        joints = [
            (checks.text(owner, "joints", name), checks.number(owner, "joints", value))
            for name, value in checks.pairs(owner, "joints", self.joints)
        ]
        points = _points(owner, self.points)
        if bool(joints) == bool(points):
            raise ValueError(f"{owner}: give joints or points, and not both")
        if len(points) == 1:
            raise ValueError(f"{owner}: points must hold two at least, got one")
        self._check_kind(owner, points)
        low, high = checks.vector(owner, "springrange", self.springrange, 2)
        if low > high:
            raise ValueError(
                f"{owner}: springrange must have lower <= upper, got {low:g}, {high:g}"
            )
        values: dict[str, Any] = {
            "joints": tuple(joints),
            "points": tuple(points),
            "stiffness": checks.non_negative(owner, "stiffness", self.stiffness),
            "springrange": (low, high),
            "frictionloss": checks.non_negative(owner, "frictionloss", self.frictionloss),
            "damping": checks.non_negative(owner, "damping", self.damping),
            "margin": checks.number(owner, "margin", self.margin),
            **limits_and_friction(owner, self),
            "invweight": checks.inverse_weight(owner, "invweight", self.invweight),
            "range": checks.interval(owner, "range", self.range),
        }
        for entry, value in values.items():
            object.__setattr__(self, entry, value)

    def _check_kind(self, owner: str, points: Sequence[_Item]) -> None:
        """What goes with ``thrust`` and ``reach``, and where wraps and pulleys may stand."""
        bodies = [item[0] for item in points if isinstance(item, tuple)]
        if len(bodies) < len(points):
            _check_path(owner, points)
        resting = not (self.range is not None or self.stiffness)
        free = resting and not (self.frictionloss or self.damping)
        reach = [*bodies[:2], *bodies[1:2]]
        faults = {
            "a thrust or a reach has neither wraps nor pulleys": (self.thrust or self.reach)
            and len(bodies) < len(points),
            "points of a thrust must be three of one body": self.thrust
            and (len(points) != 3 or len(set(bodies)) != 1),
            "a thrust has no length, and so neither range nor stiffness": self.thrust
            and not resting,
            "points of a reach must be three, the last two of one body, or five, two more of the first and the second "
            "body": self.reach and (not bodies or bodies not in (reach, [*reach, *bodies[:2]])),
            "a reach that turns has neither range nor stiffness, frictionloss or damping": self.reach
            and len(points) == 5
            and not free,
            "give thrust or reach, and not both": self.thrust and self.reach,
        }
        for fault, there in faults.items():
            if there:
                raise ValueError(f"{owner}: {fault}")

    @property
    def places(self) -> tuple[tuple[str, Vector], ...]:
        """``points`` without wraps and pulleys."""
        return tuple(item for item in self.points if isinstance(item, tuple))


def _points(owner: str, value: object) -> list[_Item]:
    if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
        items: list[object] = list(value)
    else:
        items = list(checks.pairs(owner, "points", value))
    result: list[_Item] = []
    for item in items:
        if isinstance(item, (Wrap, Pulley)):
            result.append(item)
            continue
        ((name, point),) = checks.pairs(owner, "points", (item,))
        result.append(
            (checks.text(owner, "points", name), checks.vector(owner, "points", point, 3))
        )
    return result


def _check_path(owner: str, points: Sequence[_Item]) -> None:
    """Wraps lie between points, and pulleys between branches of two points at least."""
    for i, item in enumerate(points):
        before, after = (points[k] if 0 <= k < len(points) else Pulley(1.0) for k in (i - 1, i + 1))
        if isinstance(item, Wrap):
            if not (isinstance(before, tuple) and isinstance(after, tuple)):
                raise ValueError(
                    f"{owner}: points[{i}], {item.geom!r}, must lie between two points of bodies"
                )
        elif isinstance(item, Pulley):
            if not isinstance(after, tuple) or i + 1 == len(points):
                raise ValueError(
                    f"{owner}: points[{i}], a pulley, must have a point of a body behind it"
                )
        elif isinstance(before, Pulley) and isinstance(after, Pulley):
            raise ValueError(f"{owner}: points[{i}] must have a neighbour that is not a pulley")
