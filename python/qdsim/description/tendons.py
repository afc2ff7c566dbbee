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
    """A geometry around which a tendon wraps, between two of its points.

    Attributes:
        geom: name of a sphere, or of a cylinder, which counts as infinitely long.
        side: None (the shorter way), or the name of a body and a point (3) in its frame: the tendon
            passes on that side, whichever is shorter; if the point is inside the geometry, the
            tendon touches it from inside (MuJoCo's sidesite).
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
    """A pulley between two branches of a tendon, each with at least two points (as in MuJoCo).

    Lengths and forces of the branches behind it are divided by ``divisor`` > 0, until the next
    pulley.
    """

    divisor: float

    def __post_init__(self) -> None:
        divisor = checks.number("pulley", "divisor", self.divisor)
        if divisor <= 0.0:
            raise ValueError(f"pulley: divisor must be positive, got {self.divisor!r}")
        object.__setattr__(self, "divisor", divisor)


_Item: TypeAlias = "tuple[str, Vector] | Wrap | Pulley"


@dataclass(frozen=True)
class Tendon:
    """A length on which actuators, limits and springs can act, in m (or rad, for a sum over
    hinges).

    Its length is given by ``joints``, ``points``, ``thrust`` or ``reach``.

    Attributes:
        name: unique among tendons.
        joints: pairs of the name of a hinge or slide and a coefficient: the length is the sum of
            coefficient times q (MuJoCo's fixed tendon).
        points: pairs of the name of a body and a point (3) in its frame, m: straight lines from
            each point to the next, around each ``Wrap`` between two of them, and divided behind a
            ``Pulley`` (MuJoCo's spatial tendon).
        range: (lower, upper) of the length, or None.
        stiffness: N/m, a spring that pulls if the length is above ``springrange`` and pushes if it
            is below.
        springrange: (lower, upper) lengths between which the spring is slack; they may be equal.
        frictionloss: dry friction along the tendon, N.
        damping: Ns/m; used with ``Options.damping``.
        margin, solreflimit, solimplimit, solreffriction, solimpfriction, invweight: MuJoCo's law of
            its limits and dry friction, as in ``Joint`` (invweight: 1/kg, ``tendon_invweight0``).
        thrust: if True, there is no length (0), and ``points`` are three vectors of one body, in
            its frame: the point at which a unit force acts, this force (3), and its moment (3), m.
            An actuator along it is a rotor.
        reach: if True, ``points`` are a point of one body, a point of another, and a direction (3)
            in the frame of the latter, which is named twice: the length is the distance of the
            first point from the second along the direction, times the direction's length (an
            actuator of a site with a reference site). Two more entries make it rotational: a
            rotation vector (3) on the first body and an axis (3) on the second. The rotation vector
            of the first body relative to the second, in the latter's frame, begins at minus the
            given one, and is measured along the axis. A force along it is a couple about the axis,
            as in MuJoCo. For rotations about other axes this is not exactly the derivative of the
            length, so such a tendon has neither range nor stiffness, frictionloss or damping.
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
        """Check the points and options of ``thrust`` and ``reach``, and the order of wraps and pulleys."""
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
    """Check that wraps lie between two points, and that each branch between pulleys has at least two points."""
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
