"""Constraints of a scene: connects, welds, couplings of joints and of tendons. Quaternions are unit, order w x y z."""

from __future__ import annotations

from dataclasses import dataclass

from qdsim.description import checks
from qdsim.description.checks import Vector
from qdsim.description.contact_solver import SOLIMP, SOLREF, solimp, solref


@dataclass(frozen=True)
class Connect:
    """Two points of two bodies coincide.

    Attributes:
        body_a, body_b: names of the bodies.
        anchor_a, anchor_b: (3) the points in the frames of their bodies, m.
        name: unique among constraints.
        compliance: (2) m/N, used if ``Options.soft_constraints`` says so; only the first number is
            used.
        solref, solimp: as in ``Coupling``.
    """

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
    """Two frames of two bodies coincide.

    Attributes:
        body_a, body_b, anchor_a, anchor_b: as in ``Connect``.
        quat: (4) orientation of ``body_b`` relative to ``body_a``, w x y z.
        name: unique among constraints.
        compliance: (2) m/N of its force and rad/Nm of its moment, used if
            ``Options.soft_constraints`` says so.
        solref, solimp: as in ``Coupling``.
        torquescale: weight of half the angle of rotation relative to the displacement, m.
    """

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
    """The joint ``joint`` follows the joint ``follows``.

    With the displacements x and y of the two from their ref, y = sum of ``coefficients[i]`` x^i.

    Attributes:
        joint, follows: names of hinge or slide joints; ``follows`` None: ``joint`` is fixed.
        coefficients: five numbers, rad or m per power of rad or m.
        name: unique among constraints.
        compliance: (2) rad/Nm (m/N) of the force on ``joint``, used if ``Options.soft_constraints``
            says so; only the first number is used.
        solref, solimp: MuJoCo's law of the constraint, used if ``DynamicOptions.contacts`` is
            "mujoco".
    """

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
    """The length of the tendon ``tendon`` follows that of the tendon ``follows``.

    With x and y the lengths of the two minus ``lengths``, y = sum of ``coefficients[i]`` x^i.

    Attributes:
        tendon, follows: names of tendons; ``follows`` None: the length of ``tendon`` is fixed.
        lengths: (2) reference lengths of ``tendon`` and ``follows``, m or rad.
        coefficients: five numbers.
        name: unique among constraints.
        compliance: (2) m/N of the force along ``tendon``, used if ``Options.soft_constraints`` says
            so; only the first number is used.
        solref, solimp: as in ``Coupling``.
    """

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
