"""The elements of a scene, as frozen dataclasses. SI units; quaternions are unit, order w x y z.

A description contains exactly what a step needs (formulation 1 and 2), with names. Values are
checked when an element is made, references when the description is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from qdsim.description import checks
from qdsim.description.checks import Matrix, Vector
from qdsim.description.constraints import Connect, Constraint, Coupling, TendonCoupling, Weld
from qdsim.description.contact_solver import (
    DEFAULT_SOLVER,
    SOLIMP,
    SOLREF,
    ContactSolver,
    limits_and_friction,
    solimp,
    solref,
)
from qdsim.description.sensors import Sensor
from qdsim.description.shapes import CONTACT_DIMENSIONS, Geom, Mesh
from qdsim.description.tendons import Tendon

JointType = Literal["hinge", "slide", "ball", "free"]
FrictionCombination = Literal["max", "harmonic"]

# Order and values of qd_joint_type.
JOINT_TYPES: tuple[str, ...] = ("hinge", "slide", "ball", "free")
JOINT_NQ = {"hinge": 1, "slide": 1, "ball": 4, "free": 7}
JOINT_NV = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
WORLD = "world"


class ModelWarning(UserWarning):
    """Part of a file that changes the results was left out, or was repaired while loading."""


@dataclass(frozen=True)
class Joint:
    """A joint between a body and its parent.

    Attributes:
        name: unique among joints.
        type: "hinge", "slide", "ball", "free".
        pos: (3) anchor in the body frame, m.
        axis: (3) of a hinge or slide, body frame, any length.
        ref: value of q of a hinge or slide at which the body is at ``Body.pos``, ``Body.quat``.
        range: (lower, upper) in rad or m, or None; for a ball joint 0 and the largest angle of its
            rotation.
        stiffness: of a spring, Nm/rad or N/m. The spring of a hinge or slide rests at q =
            ``springref``, that of a ball or free joint at ``Body.pos``, ``Body.quat``.
        damping: Nms/rad or Ns/m, of each DOF; used with ``Options.damping``.
        armature: kg m^2 or kg, the inertia of a rotor behind its gear, of each DOF; for the
            second-order step.
        friction: dry friction of each DOF, Nm or N: it sticks up to this force, then slips.
        margin, solreflimit, solimplimit, solreffriction, solimpfriction: MuJoCo's law of limits and
            dry friction, used if ``DynamicOptions.contacts`` is "mujoco"; margin in rad or m.
        invweight: 1/kg or 1/(kg m^2), the inverse weight of a DOF in this law (``dof_invweight0``),
            constant for any masses; None: computed at the reference configuration.
        turn_invweight: the same for the rotations of a free joint.
    """

    name: str
    type: JointType = "hinge"
    pos: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    ref: float = 0.0
    range: tuple[float, float] | None = None
    stiffness: float = 0.0
    springref: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    margin: float = 0.0
    solreflimit: Vector = SOLREF
    solimplimit: Vector = SOLIMP
    solreffriction: Vector = SOLREF
    solimpfriction: Vector = SOLIMP
    invweight: float | None = field(default=None, compare=False)
    turn_invweight: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        owner = f"joint {checks.text('joint', 'name', self.name)!r}"
        if self.type not in JOINT_TYPES:
            raise ValueError(f"{owner}: type must be one of {JOINT_TYPES}, got {self.type!r}")
        checks.assign(
            self,
            pos=checks.vector(owner, "pos", self.pos, 3),
            axis=checks.direction(owner, "axis", self.axis),
            ref=checks.number(owner, "ref", self.ref),
            range=checks.interval(owner, "range", self.range),
            stiffness=checks.non_negative(owner, "stiffness", self.stiffness),
            springref=checks.number(owner, "springref", self.springref),
            damping=checks.non_negative(owner, "damping", self.damping),
            armature=checks.non_negative(owner, "armature", self.armature),
            friction=checks.non_negative(owner, "friction", self.friction),
            margin=checks.number(owner, "margin", self.margin),
            **limits_and_friction(owner, self),
            invweight=checks.inverse_weight(owner, "invweight", self.invweight),
            turn_invweight=checks.inverse_weight(owner, "turn_invweight", self.turn_invweight),
        )
        if self.type == "free" and self.range is not None:
            raise ValueError(f"{owner}: a free joint has no limits")
        low, high = self.range or (0.0, 1.0)
        if self.type == "ball" and (low != 0.0 or not high > 0.0):
            raise ValueError(
                f"{owner}: range of a ball joint must be 0 and a positive angle, got {self.range}"
            )

    @property
    def scalar(self) -> bool:
        """True for hinge and slide."""
        return self.type in ("hinge", "slide")


@dataclass(frozen=True)
class Body:
    """A rigid body.

    Attributes:
        name: unique among bodies.
        parent: name of its parent, "world" by default.
        joints, geoms: its own joints and geometries. Several joints act one after the other, the
            first next to the parent.
        pos, quat: (3), (4) body frame in the parent's frame with every joint at its ``ref`` (for a
            free body: its start).
        mass: kg.
        com: (3) centre of mass, body frame, m.
        inertia: inertia about the centre of mass in body axes, (3, 3) or its diagonal (3), kg m^2.
        gravcomp: share of gravity that is compensated (1: no gravity acts on the body).
        mocap: whether its pose is an input of each step (``mocap=``), with ``pos`` and ``quat`` as
            default. Its parent is the world, and it has no joints.
        invweight: 1/kg, MuJoCo's ``body_invweight0`` of translations, the inverse inertia in
            MuJoCo's contact law, constant for any mass; None: computed at the reference
            configuration.
        turn_invweight: 1/(kg m^2), the same for rotations, used by welds.
    """

    name: str
    parent: str = WORLD
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Matrix = ((0.0, 0.0, 0.0),) * 3
    joints: tuple[Joint, ...] = ()
    geoms: tuple[Geom, ...] = ()
    gravcomp: float = 0.0
    mocap: bool = False
    invweight: float | None = field(default=None, compare=False)
    turn_invweight: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        owner = f"body {checks.text('body', 'name', self.name)!r}"
        checks.assign(
            self,
            parent=checks.text(owner, "parent", self.parent),
            pos=checks.vector(owner, "pos", self.pos, 3),
            quat=checks.quaternion(owner, "quat", self.quat),
            mass=checks.non_negative(owner, "mass", self.mass),
            com=checks.vector(owner, "com", self.com, 3),
            inertia=checks.inertia_matrix(owner, "inertia", self.inertia),
            joints=_elements(owner, "joints", self.joints, Joint),
            geoms=_elements(owner, "geoms", self.geoms, Geom),
            gravcomp=checks.number(owner, "gravcomp", self.gravcomp),
            mocap=checks.flag(owner, "mocap", self.mocap),
            invweight=checks.inverse_weight(owner, "invweight", self.invweight),
            turn_invweight=checks.inverse_weight(owner, "turn_invweight", self.turn_invweight),
        )
        free = [joint for joint in self.joints if joint.type == "free"]
        if free and (len(self.joints) > 1 or self.parent != WORLD):
            raise ValueError(
                f"{owner}: joint {free[0].name!r} is free, so it must be the only joint of a "
                "body whose parent is the world"
            )
        if self.mocap and (self.joints or self.parent != WORLD or self.name == WORLD):
            raise ValueError(
                f"{owner}: a mocap body must be a child of the world without joints of its own"
            )
        if self.name == WORLD and self.joints:
            raise ValueError(f"{owner}: the world has no joints, got {self.joints[0].name!r}")


@dataclass(frozen=True)
class Actuator:
    """An actuator of a hinge, slide or tendon: a spring whose rest position is the command, a
    motor, a damper, or a combination of them.

    It acts on its joint, with position q and velocity v, by the force

        ``stiffness (u / gear - q) + (gain + gain_slope[0] q + gain_slope[1] v) u + bias - damping v``

    in N or Nm. A position actuator has ``stiffness`` and ``gear`` only: it pulls its joint to ``u /
    gear``. A motor has ``gain`` only. A joint without actuator stiffness keeps its mass in a step
    and moves by forces, as objects do. Several actuators may share a joint. For an actuator of a
    tendon, q is the tendon's length, m (or rad, for sums over hinges); joints that the tendon moves
    keep their mass.

    Attributes:
        name: unique among actuators.
        joint, tendon: name of the joint or of the tendon; the other is None.
        stiffness: >= 0, N/m or Nm/rad of the joint.
        gear: not zero; infinite if the command does not move the spring.
        range: (lower, upper) of u, or None.
        gain: N or Nm per unit of u.
        gain_slope: change of the gain with q and v.
        bias: N or Nm.
        damping: Ns/m or Nms/rad; used with ``Options.damping``, as is ``gain_slope[1]``.
        force_range: (lower, upper) of its force on the joint, N or Nm, used with
            ``Options.force_limits``; None: no limit.
        own_force_range: If the joint limits the force, too (MuJoCo's ``actuatorfrcrange``): the
            actuator's own limits, N or Nm, infinite if it has none. In MuJoCo's step the stiffness
            of an actuator acts within these. None: those of ``force_range``.
    """

    name: str
    joint: str | None
    stiffness: float = 0.0
    gear: float = 1.0
    range: tuple[float, float] | None = None
    gain: float = 0.0
    bias: float = 0.0
    damping: float = 0.0
    gain_slope: Vector = (0.0, 0.0)
    force_range: tuple[float, float] | None = None
    tendon: str | None = None
    own_force_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        owner = f"actuator {checks.text('actuator', 'name', self.name)!r}"
        gear = self.gear if self.gear == float("inf") else checks.number(owner, "gear", self.gear)
        if gear == 0.0:
            raise ValueError(f"{owner}: gear must not be zero")
        if (self.joint is None) == (self.tendon is None):
            raise ValueError(f"{owner}: needs a joint or a tendon, and not both")
        checks.text(
            owner, *(("joint", self.joint) if self.tendon is None else ("tendon", self.tendon))
        )
        checks.assign(
            self,
            stiffness=checks.non_negative(owner, "stiffness", self.stiffness),
            gear=float(gear),
            range=checks.interval(owner, "range", self.range),
            gain=checks.number(owner, "gain", self.gain),
            bias=checks.number(owner, "bias", self.bias),
            damping=checks.non_negative(owner, "damping", self.damping),
            gain_slope=checks.vector(owner, "gain_slope", self.gain_slope, 2),
            force_range=checks.force_range(owner, "force_range", self.force_range),
            own_force_range=checks.force_range(owner, "own_force_range", self.own_force_range),
        )

    @property
    def idle(self) -> bool:
        """True if it never exerts a force, for any command."""
        return not any((self.stiffness, self.gain, self.bias, self.damping, *self.gain_slope))


@dataclass(frozen=True)
class Pair:
    """An explicit contact pair: overrides every filter and combination rule.

    Attributes:
        geom_a, geom_b: names of the geometries.
        condim: contact dimension.
        margin, restitution: as in ``Geom``.
        friction: one sliding coefficient, or five numbers: two sliding, torsional (m), two rolling
            (m). The two sliding coefficients, and the two rolling ones, must be equal if ``condim``
            uses them.
        stiffness: N/m along the normal, None: rigid.
        solref, solimp: as in ``Geom``.
        solreffriction: (2) MuJoCo's solref in tangential directions, zeros: as along the normal.
    """

    geom_a: str
    geom_b: str
    condim: int = 3
    friction: Vector = (1.0, 1.0, 0.005, 0.0001, 0.0001)
    margin: float = 0.0
    stiffness: float | None = None
    restitution: float | None = None
    solref: Vector = SOLREF
    solimp: Vector = SOLIMP
    solreffriction: Vector = (0.0, 0.0)

    def __post_init__(self) -> None:
        checks.text("pair", "geom_a", self.geom_a)
        checks.text("pair", "geom_b", self.geom_b)
        owner = f"pair {self.geom_a!r} - {self.geom_b!r}"
        if self.geom_a == self.geom_b:
            raise ValueError(f"{owner}: a geometry cannot touch itself")
        if self.condim not in CONTACT_DIMENSIONS:
            raise ValueError(f"{owner}: condim must be 1, 3, 4 or 6, got {self.condim!r}")
        friction = checks.vector_or_number(owner, "friction", self.friction)
        if len(friction) == 1:
            friction = (*friction, *friction, 0.005, 0.0001, 0.0001)
        friction = checks.vector(owner, "friction", friction, 5)
        if any(item < 0.0 for item in friction):
            raise ValueError(f"{owner}: friction must not be negative, got {friction}")
        if self.condim >= 3 and friction[0] != friction[1]:
            raise ValueError(
                f"{owner}: two different sliding coefficients ({friction[0]:g}, {friction[1]:g}) "
                "are not supported, friction is isotropic"
            )
        if self.condim == 6 and friction[3] != friction[4]:
            raise ValueError(
                f"{owner}: two different rolling coefficients ({friction[3]:g}, {friction[4]:g}) "
                "are not supported, friction is isotropic"
            )
        checks.assign(
            self,
            condim=int(self.condim),
            friction=friction,
            margin=checks.non_negative(owner, "margin", self.margin),
            stiffness=checks.stiffness(owner, "stiffness", self.stiffness),
            restitution=checks.restitution(owner, self.restitution),
            solref=solref(owner, "solref", self.solref),
            solimp=solimp(owner, "solimp", self.solimp),
            solreffriction=solref(owner, "solreffriction", self.solreffriction),
        )


@dataclass(frozen=True)
class Exclude:
    """Contacts between geometries of the bodies ``body_a`` and ``body_b`` are excluded (except
    explicit pairs)."""

    body_a: str
    body_b: str

    def __post_init__(self) -> None:
        checks.text("exclude", "body_a", self.body_a)
        checks.text("exclude", "body_b", self.body_b)


HOME = "home"
"""The key frame that is the default configuration, with its usual name in robot files."""


@dataclass(frozen=True)
class Keyframe:
    """A configuration ``q`` (nq) with a command ``u`` (nu) and a ``name``."""

    name: str
    q: Vector
    u: Vector = ()

    def __post_init__(self) -> None:
        owner = f"keyframe {checks.text('keyframe', 'name', self.name)!r}"
        checks.assign(
            self, q=checks.vector(owner, "q", self.q), u=checks.vector(owner, "u", self.u)
        )


@dataclass(frozen=True)
class Elements:
    """The elements of a scene, individually checked; :class:`Description` checks that they fit
    together."""

    bodies: tuple[Body, ...]
    actuators: tuple[Actuator, ...] = ()
    pairs: tuple[Pair, ...] = ()
    excludes: tuple[Exclude, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    keyframes: tuple[Keyframe, ...] = ()
    meshes: tuple[Mesh, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    friction_combination: FrictionCombination = "max"
    parent_filter: bool = True
    name: str = "model"
    contact_solver: ContactSolver = DEFAULT_SOLVER
    ignored: tuple[str, ...] = field(default=(), compare=False)
    dynamic_only: tuple[str, ...] = field(default=(), compare=False)
    unlike_mujoco: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        owner = "description"
        checks.assign(
            self,
            bodies=_elements(owner, "bodies", self.bodies, Body),
            actuators=_elements(owner, "actuators", self.actuators, Actuator),
            pairs=_elements(owner, "pairs", self.pairs, Pair),
            excludes=_elements(owner, "excludes", self.excludes, Exclude),
            constraints=_elements(
                owner, "constraints", self.constraints, (Connect, Weld, Coupling, TendonCoupling)
            ),
            tendons=_elements(owner, "tendons", self.tendons, Tendon),
            keyframes=_elements(owner, "keyframes", self.keyframes, Keyframe),
            meshes=_elements(owner, "meshes", self.meshes, Mesh),
            sensors=_elements(owner, "sensors", self.sensors, get_args(Sensor)),
            gravity=checks.vector(owner, "gravity", self.gravity, 3),
            name=checks.text(owner, "name", self.name),
            ignored=tuple(str(item) for item in self.ignored),
            dynamic_only=tuple(str(item) for item in self.dynamic_only),
            unlike_mujoco=tuple(str(item) for item in self.unlike_mujoco),
        )
        solver: object = self.contact_solver
        if not isinstance(solver, ContactSolver):
            kind = type(solver).__name__
            raise TypeError(f"{owner}: contact_solver must be a ContactSolver, got {kind}")
        if self.friction_combination not in ("max", "harmonic"):
            raise ValueError(
                f"{owner}: friction_combination must be 'max' or 'harmonic', "
                f"got {self.friction_combination!r}"
            )

    @property
    def joints(self) -> tuple[Joint, ...]:
        """All joints, in q order."""
        return tuple(joint for body in self.bodies for joint in body.joints)

    @property
    def geoms(self) -> tuple[Geom, ...]:
        """All geometries, in the order of their bodies."""
        return tuple(geom for body in self.bodies for geom in body.geoms)

    @property
    def default_q(self) -> Vector:
        """(nq) the key frame named "home", else ``reference_q`` with hinges and slides moved into
        their ranges."""
        for keyframe in self.keyframes:
            if keyframe.name == HOME:
                return keyframe.q
        result, at = list(self.reference_q), 0
        for joint in self.joints:
            if joint.scalar and joint.range is not None:
                result[at] = min(max(result[at], joint.range[0]), joint.range[1])
            at += JOINT_NQ[joint.type]
        return tuple(result)

    @property
    def reference_q(self) -> Vector:
        """(nq) Every joint at its ref, free bodies at their pos and quat (MuJoCo's qpos0)."""
        result: list[float] = []
        for body in self.bodies:
            for joint in body.joints:
                if joint.type == "free":
                    result.extend(body.pos + body.quat)
                elif joint.type == "ball":
                    result.extend((1.0, 0.0, 0.0, 0.0))
                else:
                    result.append(joint.ref)
        return tuple(result)


def _elements(owner: str, name: str, values: Any, kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(item.__name__ for item in kinds)
    if isinstance(values, kind) or not isinstance(values, Iterable):
        raise TypeError(f"{owner}: {name} must be a sequence of {wanted}")
    result = tuple(values)
    for item in result:
        if not isinstance(item, kind):
            raise TypeError(f"{owner}: {name} must hold {wanted} only, got {type(item).__name__}")
    return result
