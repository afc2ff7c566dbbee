"""Options of steps, and the quasi-dynamic step.

`step` and `linearize` are functions of the extension: they check their arguments, release the GIL
and return results whose arrays are created when first read. Notation as in Pang, Suh, Yang and
Tedrake 2023 (CQDC), section III, with energies in joules and forces in newtons.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from qdsim._core import RAYS_MAX, Linearization, SolverInfo, Step, StepOptions, linearize, step
from qdsim.arguments import fields, flag, integer, number, one_of

__all__ = [
    "CommonOptions",
    "Linearization",
    "Options",
    "SolverInfo",
    "Step",
    "linearize",
    "step",
]

FRICTION_MODELS = {"cone": 0, "pyramid": 1}
CONTACTS = {"rigid": 0, "mujoco": 1}
_SOFT_CONSTRAINTS: dict[bool | str, int] = {False: 0, True: 1, "mocap": 2}
LAWS = {"convex": 0, "coulomb": 1}
PATCH_FRICTIONS = {"polygons": 0, "ellipsoid": 1}
PATCH_LAWS = {"disc": 0, "elastic": 1, "regularized": 2, "bristle": 3}


_Common = TypeVar("_Common", bound="CommonOptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """Settings that `Options` and `DynamicOptions` share; frozen, and checked when they are made.

    Attributes:
        h: Time step in s, > 0. In a quasi-dynamic step a free object falls by gravity times h² /
            epsilon, and under the convex law sliding contacts keep a gap that shrinks with h.
            Second-order steps are first-order accurate in h.
        friction: "cone" (isotropic second-order cone, the default) or "pyramid" (`rays` rays per
            contact; the program is a QP).
        rays: Rays of the friction pyramid per contact, 3 to 64; 2 is the planar law and needs a
            model whose joints all move in one plane. No effect on cones.
        law: Friction law. "convex": the relaxation of Anitescu and Hart, one convex program per
            step. It is exact for contacts that stick or are open. A sliding contact opens by the
            friction coefficient times its sliding distance in the step; at the onset of sliding or
            at an impact, bodies separate at the friction coefficient times the sliding speed, for
            any h (docs/formulation.md, section 7). "coulomb": sliding contacts stay closed; the
            solution is a fixed point of convex programs (`info.convex_programs` of them); exact
            steps only. Coulomb's law may have several solutions, of which a step returns one:
            `info.unique` is None if no other one is close, and False if there may be one.
        max_programs: None: a step under Coulomb's law satisfies its certificate
            (`info.law_residual` within the tolerance times the size of the smallest object in
            contact), or raises SolverError. A number, >= 1: at most this many convex programs are
            solved in each round in which contacts enter, and the best solution is accepted,
            whatever its residual.
        kappa: None for the exact step; a number (1/J, > 0) for the log-barrier step (analytic
            smoothing, CQDC IV-B), which is smooth in all arguments. A larger number is closer to
            the exact step. This is `kappa` of the published scripts, h times that of the paper.
        margin: Distance in m within which pairs are contacts, >= 0, may be inf. A larger margin of
            the pair itself takes precedence. An exact step adds pairs beyond it that it would
            otherwise penetrate, so the margin affects only speed; in smoothed steps contacts act at
            distances up to the margin.
        add_missed_pairs: Whether an exact step adds pairs beyond the margin that it would otherwise
            penetrate (True): a pair that penetrates at the next configuration, or was passed
            through on the way, is linearised at `q` and the program is solved again. The same holds
            for points of a cloud, and faces of a height field, that were not among the nearest
            ones. If the rows of such a pair would make the program infeasible (because of a
            penetration or a violated limit at `q`), the pair is dropped again and passed through;
            `info.dropped_pairs` counts these. False keeps the published behaviour. No effect on
            smoothed steps; `info.missed_pairs` counts such pairs in both.
        joint_limits: Whether joint limits are constraints of the step (True). In a smoothed step
            they act at a distance, as contacts do.
        gravity_on_actuated: Whether gravity acts on actuated joints. False: gravity on joints with
            an actuator's spring counts as compensated.
        soft_constraints: Which bilateral constraints have the compliance of the file (solref,
            solimp). "mocap": those on mocap bodies, which pull like springs, as in MuJoCo, because
            a rigid constraint may be out of the robot's reach; True: all; False: none.
        contact_stiffness: Normal stiffness in N/m of contacts whose geometries have no stiffness of
            their own; None: rigid. A force f presses a contact in by f / stiffness. Sticking
            friction stays rigid: a step has no memory, so a tangential spring would creep. Needs
            cones, or two rays. Compliant contacts do not bounce.
        contacts: "rigid" (default), or "mujoco": contacts without a stiffness of their own follow
            MuJoCo's compliant law, with the file's solref, solimp (solmix, priority), impratio,
            cone and margins and the bodies' inverse weights (`Model.body_invweight`); scenes made
            in code have MuJoCo's defaults. Requires friction="cone" and law="convex", which is
            MuJoCo's law; contacts of a file with pyramidal cones, MuJoCo's default, are pyramids.
            `Options` and `DynamicOptions` describe the resulting steps.
        patch_friction: Where friction of soft geometries acts: on each of a patch's "polygons",
            which gives torsional friction, or on the patch as a whole, with an "ellipsoid" of the
            same extent as limit surface of force and torque, which is faster and slightly too
            strong between its axes.
        patch_law: Friction law of patches. "disc" (default): at most the friction coefficient times
            the force at the end of the step. "elastic": the cone of convex programs, in which a
            polygon's force also grows by friction times its stiffness times its slip. It lifts a
            sliding body: its depth is weight over stiffness minus friction times the slip, and
            beyond that contact is lost (`info.soft_converged`). For comparison; with "polygons"
            only, and without derivatives. `DynamicOptions` has two more laws.
        recovery_speed: Largest speed at which penetrations and violations of limits and constraints
            are corrected, m/s (rotations: rad/s), >= 0; `info.capped_rows` counts the rows that
            need longer. None: everything is corrected within the step, so a second-order motion
            that starts 10 mm deep separates at 10 mm / h; `info.deep_contacts` counts contacts
            deeper than 5 % of the smaller shape's size, and `step` warns of them. 0: no correction
            (the unstabilised scheme).
        held: Names of joints or bodies that do not move in the step; a body stands for all joints
            on it. They have no variables, and their rows of A are those of the identity.
        infeasible: What a step does if no motion satisfies all rows (bodies wedged between walls,
            links inside each other, contradicting constraints). "error": SolverError that names the
            rows. Constraints that contradict each other by at most 1e-4 of the smallest body's size
            (the last digits of a loop) still yield; `info.softened` counts those that yield beyond
            rounding. "soften": contacts, limits and constraints are violated with the least sum of
            squared violations at the end of the step, over motions of at most one radian and ten
            times the largest violation at its start. An angle counts as its arc at the size of the
            smallest body in contact, a bilateral constraint as a hundredth (so that a weld that is
            out of reach does not press a robot through its table). Among these motions the step has
            the least energy. `info.softened` counts the violated rows, and `contacts["softened"]`
            is each contact's distance from its cone; derivatives hold these violations constant
            (`info.derivative_exact` is False). Feasible steps do not change. Under `law="coulomb"`
            contacts also obey that law, or the step raises "law not met".
        tolerance: Relative tolerance of the cone solver on residuals and complementarity, in (0,
            1).
        iteration_limit: Interior-point iterations after which the step raises SolverError, >= 1.
        trace: Whether a single step and its derivatives record the solver's attempts:
            `step.info.trace` (for a failed step `error.info.trace`) then holds a
            `qdsim.trace.TraceRow` for each attempt, round, island and method;
            `print(step.info.trace)` shows a table. Batches and rollouts have no trace.
    """

    h: float = 0.1
    friction: Literal["cone", "pyramid"] = "cone"
    rays: int = 4
    law: Literal["convex", "coulomb"] = "convex"
    max_programs: int | None = None
    kappa: float | None = None
    margin: float = 0.1
    add_missed_pairs: bool = True
    joint_limits: bool = True
    gravity_on_actuated: bool = False
    soft_constraints: bool | Literal["mocap"] = "mocap"
    contact_stiffness: float | None = None
    contacts: Literal["rigid", "mujoco"] = "rigid"
    patch_friction: Literal["polygons", "ellipsoid"] = "polygons"
    patch_law: Literal["disc", "elastic", "regularized", "bristle"] = "disc"
    recovery_speed: float | None = None
    held: tuple[str, ...] = ()
    infeasible: Literal["error", "soften"] = "error"
    tolerance: float = 1e-9
    iteration_limit: int = 100
    trace: bool = False
    _native: StepOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields(self, number, "h", above=0)
        fields(self, one_of, "friction", allowed=tuple(FRICTION_MODELS))
        fields(self, integer, "rays", least=2, most=RAYS_MAX)
        fields(self, one_of, "law", allowed=tuple(LAWS))
        fields(self, integer, "max_programs", least=1, or_none=True)
        fields(self, number, "kappa", "contact_stiffness", above=0, or_none=True)
        fields(self, number, "margin", least=0, infinite=True)
        fields(self, flag, "add_missed_pairs", "joint_limits", "gravity_on_actuated", "trace")
        fields(self, _soft_word, "soft_constraints")
        fields(self, one_of, "contacts", allowed=tuple(CONTACTS))
        fields(self, one_of, "patch_friction", allowed=tuple(PATCH_FRICTIONS))
        fields(self, number, "recovery_speed", least=0, or_none=True)
        fields(self, _names, "held")
        fields(self, one_of, "infeasible", allowed=("error", "soften"))
        fields(self, number, "tolerance", above=0, below=1)
        fields(self, integer, "iteration_limit", least=1)
        self._check_own()
        self._check_together()
        object.__setattr__(self, "_native", StepOptions(**self._settings()))

    def _check_own(self) -> None:
        """Check the fields that only one of the two classes has, and the laws of patches that it supports."""

    def _check_together(self) -> None:
        if self.contact_stiffness is not None and self.friction == "pyramid" and self.rays > 2:
            raise ValueError("contact_stiffness: needs friction='cone' (or the planar law, rays=2)")
        if self.patch_law == "elastic" and self.patch_friction != "polygons":
            raise ValueError(
                f"patch_friction: expected 'polygons' under patch_law='elastic', got {self.patch_friction!r}"
            )
        self._check_contacts({"friction": "cone", "law": "convex", "contact_stiffness": None})
        if self.kappa is None:
            return
        if self.law == "coulomb":
            exact = "law='coulomb'"
        elif self.patch_law in ("regularized", "bristle"):
            exact = f"patch_law={self.patch_law!r}"
        else:
            return
        raise ValueError(
            f"kappa: expected None under {exact}, whose steps are exact, got {self.kappa!r}"
        )

    def _check_contacts(self, allowed: dict[str, Any]) -> None:
        """Raise ValueError if a field is set to a value that MuJoCo's contacts do not support."""
        for name, only in allowed.items():
            if self.contacts != "rigid" and getattr(self, name) != only:
                raise ValueError(
                    f"{name}: expected {only!r} with contacts={self.contacts!r}, got {getattr(self, name)!r}"
                )

    def _settings(self) -> dict[str, Any]:
        """Return the keyword arguments of the core's options."""
        return {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            "friction_model": FRICTION_MODELS[self.friction],
            "law": LAWS[self.law],
            "stop_after": self.max_programs or 0,
            "kappa": math.inf if self.kappa is None else self.kappa,
            "soft_constraints": _SOFT_CONSTRAINTS[self.soft_constraints],
            "contact_compliance": 1.0 / (self.contact_stiffness or math.inf),
            "contacts": CONTACTS[self.contacts],
            "patch_friction": PATCH_FRICTIONS[self.patch_friction],
            "patch_law": PATCH_LAWS[self.patch_law],
            "recovery_speed": math.inf if self.recovery_speed is None else self.recovery_speed,
            "soften": self.infeasible == "soften",
            **self._own_settings(),
        }

    def _own_settings(self) -> dict[str, Any]:
        """Return the keyword arguments for fields that only one of the two classes has."""
        return {}

    def replace(self: _Common, **changes: Any) -> _Common:
        """Copy with some fields changed, e.g. `options.replace(h=0.05)`.

        Args:
            **changes: fields and their new values.

        Raises:
            TypeError, ValueError: as the constructor.
        """
        return type(self)(**{**self._values(), **changes})

    def _values(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}

    def __reduce__(self) -> tuple[Callable[..., CommonOptions], tuple[Any, ...]]:
        return _restored, (type(self), self._values())


_AS_THEY_ARE = (
    "h",
    "rays",
    "margin",
    "add_missed_pairs",
    "joint_limits",
    "gravity_on_actuated",
    "held",
    "tolerance",
    "iteration_limit",
    "trace",
)


def _restored(kind: type[_Common], values: dict[str, Any]) -> _Common:
    return kind(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(CommonOptions):
    """Settings of a quasi-dynamic step, frozen and checked when they are made.

    The fields of `CommonOptions` (h, friction, law, kappa and others) and these:

    Attributes:
        epsilon: Factor on the mass of unactuated bodies, >= 0; 1 is Mason's quasi-dynamic model and
            the default, 0 the quasi-static one. With 0, contacts, limits, constraints and springs
            alone have to determine the motion; otherwise (a ball that may roll) the step raises
            SolverError with status "not unique" and names the bodies. None if `mass_ratio` is
            given. Giving both is an error.
        mass_ratio: Number > 0 that sets epsilon per object from the smallest actuator stiffness, h
            and the object's mass at the default configuration: epsilon = k_min h² / max(diag M) /
            mass_ratio.
        damping: Whether the dampers of joints, of objects (a door) and of actuators
            (`Actuator.damping`) act (False): each contributes its coefficient times displacement
            over h. A velocity actuator then moves its joint by h times the commanded speed.
        contacts: With "mujoco" contacts yield along their normal, and creep in tangential
            directions while friction is loaded, as MuJoCo's contacts do at rest, in exact and
            smoothed steps. Pyramids are sums of planar cones, one for each tangent (formulation 2).
            A contact that is deeper than its load requires recovers at MuJoCo's speed, whatever
            `recovery_speed` is. The step's derivative is discontinuous where two bodies begin to
            touch.
        force_limits: Whether the force limits of actuators hold (True): `Actuator.force_range`,
            which `load` reads from the file. A joint whose actuators are at their limits yields;
            its inertia determines the motion if nothing else does. In a smoothed step limits act
            before they are reached.

    Raises:
        TypeError, ValueError: if a field is invalid; the message names it.
    """

    epsilon: float | None = None
    mass_ratio: float | None = None
    damping: bool = False
    force_limits: bool = True

    def _check_own(self) -> None:
        self._settle_mass()
        fields(self, flag, "damping", "force_limits")
        fields(self, one_of, "patch_law", allowed=("disc", "elastic"))

    def _settle_mass(self) -> None:
        if self.mass_ratio is None:
            if self.epsilon is None:
                object.__setattr__(self, "epsilon", 1.0)
            fields(self, number, "epsilon", least=0)
            return
        if self.epsilon is not None:
            raise ValueError("mass_ratio: sets epsilon per object, so epsilon cannot be given too")
        fields(self, number, "mass_ratio", above=0, or_none=True)

    def _own_settings(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon or 0.0,
            "mass_ratio": self.mass_ratio or 0.0,
            "damping": self.damping,
            "force_limits": self.force_limits,
        }

    def replace(self, **changes: Any) -> Options:
        """Copy with some fields changed, e.g. `options.replace(kappa=100.0)`.

        If `epsilon` or `mass_ratio` is given, it replaces the other.

        Args:
            **changes: fields and their new values.

        Raises:
            TypeError, ValueError: as the constructor.
        """
        if changes.get("mass_ratio") is not None:
            changes = {"epsilon": None, **changes}
        elif changes.get("epsilon") is not None:
            changes = {"mass_ratio": None, **changes}
        return CommonOptions.replace(self, **changes)


def _soft_word(name: str, value: object) -> bool | str:
    """Check that the value is True, False or "mocap"."""
    if not isinstance(value, str):
        return flag(name, value)
    if value != "mocap":
        raise ValueError(f"{name}: expected True, False or 'mocap', got {value!r}")
    return value


def _names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name}: expected names of joints or bodies in a tuple, got {type(value).__name__}"
        )
    names = tuple(value)
    for entry in names:
        if not isinstance(entry, str):
            raise TypeError(f"{name}: expected names, got {type(entry).__name__}")
    return names
