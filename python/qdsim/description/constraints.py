"""Constraints of a scene: connects, welds, couplings of joints and of tendons. Quaternions are unit, order w x y z."""

from __future__ import annotations

from dataclasses import dataclass

from qdsim.description import checks
from qdsim.description.checks import Vector
from qdsim.description.contact_solver import SOLIMP, SOLREF, solimp, solref


@dataclass(frozen=True)
class Connect:
    """Two points stay together: ``anchor_a`` (3) fixed to ``body_a`` and ``anchor_b`` (3) to
    ``body_b`` (names), each in the frame of its body, m. ``name``: unique among constraints.
    ``compliance``: m/N, by which it gives way where ``Options.soft_constraints`` says so (two
    numbers, of which this reads the first). ``solref``, ``solimp``: as in ``Coupling``."""

    name: str
    body_a: str
    body_b: str
    anchor_a: Vector = (0.0, 0.0, 0.0)
    anchor_b: Vector = (0.0, 0.0, 0.0)
    compliance: Vector = (0.0, 0.0)
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP

    def __post_init__(self) -> None:
        _check_bilateral(self, "connect")


@dataclass(frozen=True)
class Weld:
    """Two frames stay together: points ``anchor_a``, ``anchor_b`` as in ``Connect``, and ``body_b``
    is turned against ``body_a`` by the quaternion ``quat`` (4), w x y z. ``name``: unique among
    constraints. ``compliance`` (2): m/N of its force and rad/Nm of its moment, by which it gives
    way where ``Options.soft_constraints`` says so. ``solref``, ``solimp``: as in ``Coupling``, with ``torquescale``
    (m), what half the angle of its turn counts as beside its displacement."""

    name: str
    body_a: str
    body_b: str
    anchor_a: Vector = (0.0, 0.0, 0.0)
    anchor_b: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    compliance: Vector = (0.0, 0.0)
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP
    torquescale: float = 1.0

    def __post_init__(self) -> None:
        owner = _check_bilateral(self, "weld")
        scale = checks.number(owner, "torquescale", self.torquescale)
        checks.assign(self, quat=checks.quaternion(owner, "quat", self.quat), torquescale=scale)


def _check_bilateral(constraint: Connect | Weld, kind: str) -> str:
    owner = f"{kind} {checks.text(kind, 'name', constraint.name)!r}"
    checks.text(owner, "body_a", constraint.body_a)
    checks.text(owner, "body_b", constraint.body_b)
    checks.assign(
        constraint,
        anchor_a=checks.vector(owner, "anchor_a", constraint.anchor_a, 3),
        anchor_b=checks.vector(owner, "anchor_b", constraint.anchor_b, 3),
        compliance=checks.compliance(owner, "compliance", constraint.compliance),
        solref=solref(owner, "solref", constraint.solref),
        solimp=solimp(owner, "solimp", constraint.solimp),
    )
    return owner


@dataclass(frozen=True)
class Coupling:
    """``joint`` follows ``follows`` (None: it stays): with the displacements x and y of the two
    from their ref, y = sum of ``coefficients[i]`` x^i, five coefficients (rad or m per power of rad
    or m); names of hinge and slide joints. ``name``: unique among constraints. ``compliance``:
    rad/Nm (m/N) of the force on ``joint``, by which it gives way where ``Options.soft_constraints``
    says so (two numbers, of which this reads the first). ``solref``, ``solimp``: MuJoCo's law of it, where
    ``DynamicOptions.contacts`` is "mujoco"."""

    name: str
    joint: str
    follows: str | None = None
    coefficients: Vector = (0.0, 1.0, 0.0, 0.0, 0.0)
    compliance: Vector = (0.0, 0.0)
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP

    def __post_init__(self) -> None:
        owner = f"coupling {checks.text('coupling', 'name', self.name)!r}"
        checks.text(owner, "joint", self.joint)
        if self.follows is not None:
            checks.text(owner, "follows", self.follows)
        checks.assign(
            self,
            coefficients=checks.vector(owner, "coefficients", self.coefficients, 5),
            compliance=checks.compliance(owner, "compliance", self.compliance),
            solref=solref(owner, "solref", self.solref),
            solimp=solimp(owner, "solimp", self.solimp),
        )


@dataclass(frozen=True)
class TendonCoupling:
    """The length of ``tendon`` follows that of ``follows`` (None: it stays): with x and y what the two are longer
    than ``lengths`` (of ``tendon``, of ``follows``; m, or rad), y = sum of ``coefficients[i]`` x^i, five coefficients.
    ``name``: unique among constraints. ``compliance``: m/N of the force along ``tendon``, by which it gives way where
    ``Options.soft_constraints`` says so (two numbers, of which this reads the first). ``solref``, ``solimp``: as in
    ``Coupling``."""

    name: str
    tendon: str
    follows: str | None = None
    coefficients: Vector = (0.0, 1.0, 0.0, 0.0, 0.0)
    lengths: Vector = (0.0, 0.0)
    compliance: Vector = (0.0, 0.0)
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP

    def __post_init__(self) -> None:
        owner = f"coupling {checks.text('coupling', 'name', self.name)!r}"
        checks.text(owner, "tendon", self.tendon)
        if self.follows is not None:
            checks.text(owner, "follows", self.follows)
        checks.assign(
            self,
            coefficients=checks.vector(owner, "coefficients", self.coefficients, 5),
            lengths=checks.vector(owner, "lengths", self.lengths, 2),
            compliance=checks.compliance(owner, "compliance", self.compliance),
            solref=solref(owner, "solref", self.solref),
            solimp=solimp(owner, "solimp", self.solimp),
        )


Constraint = Connect | Weld | Coupling | TendonCoupling
