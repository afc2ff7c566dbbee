"""Options of the quasi-dynamic step, and the step itself.

`step` and `linearize` are functions of the extension: they check their arguments, release the GIL and
return light results whose arrays are made when first read. Notation as in the reference: Pang, Suh,
Yang and Tedrake 2023 (CQDC), section III, energies in joules and forces in newtons.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ._core import Linearization, SolverInfo, Step, StepOptions, linearize, step
from .arguments import fields, flag, integer, number, one_of

__all__ = ["Linearization", "Options", "SolverInfo", "Step", "linearize", "step"]

FRICTION_MODELS = {"cone": 0, "pyramid": 1}
SOFT_CONSTRAINTS: dict[bool | str, int] = {False: 0, True: 1, "mocap": 2}
LAWS = {"convex": 0, "coulomb": 1}
PATCH_FRICTIONS = {"polygons": 0, "ellipsoid": 1}
PATCH_LAWS = {"disc": 0, "elastic": 1, "regularized": 2, "bristle": 3}
MOST_RAYS = 64  # RAYS_MAX of dynamics/friction.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a quasi-dynamic step assumes. Frozen; checked once, when it is made.

    Attributes:
        h: Step length in s, > 0. Objects that nothing holds move by gravity times h² / epsilon, and
            sliding contacts keep a gap that shrinks with h.
        friction: "cone" (isotropic second-order cone, the default) or "pyramid" (`rays` rays a contact;
            the program becomes a QP).
        rays: Rays of the friction pyramid per contact, 3 to 64; 2 is the planar law and needs a model whose
            joints all move in one plane. Without effect on cones.
        law: "convex": what slides also parts, by friction times what it slides in the step (one convex program).
            "coulomb": what slides stays in contact, as in `DynamicOptions`; exact steps only.
        stop_after: As in `DynamicOptions`.
        kappa: None for the exact step; a number (1/J, > 0) for the log-barrier step (analytic smoothing,
            CQDC IV-B): the larger, the closer to the exact one. This is `kappa` of the published scripts,
            h times that of the paper.
        epsilon: Factor on the mass of unactuated bodies, >= 0; 1 is Mason's quasi-dynamic model and the
            default, 0 the quasi-static one: then contacts, limits, constraints and springs have to hold
            everything, and a step that leaves a motion undecided (a ball that may roll) raises SolverError
            with status "not unique" and names the bodies. None where
            `mass_ratio` is given. Giving both is an error.
        mass_ratio: Number > 0 that sets epsilon per object from the smallest actuator stiffness, h and the
            object's mass at the default configuration: epsilon = k_min h² / max(diag M) / mass_ratio.
        margin: Distance in m within which pairs count as contacts, >= 0, may be inf. A pair's own margin
            counts where it is larger. In a smoothed step pairs act at a distance up to it.
        add_missed_pairs: Whether an exact step adds pairs beyond the margin that it would run into
            (True): a pair that penetrates at the next configuration, or was passed through on the
            way, is linearised at `q` and the program solved again. So is a point of a cloud that
            was not among its nearest ones. Pairs that would leave no motion at all (which need
            something that penetrates or is out of its limits at `q`) are dropped again and passed
            through: `info.dropped_pairs`. False keeps the published behaviour. Without effect on
            smoothed steps, whose margin is part of what smoothing means; `info.missed_pairs` counts
            either.
        leave_distant_out: Whether `step` alone computes contacts of pairs that are too far apart to act only
            when `Step.contacts` is read (False). The motion is the same to rounding, and much faster in crowds
            of meshes (a closed hand: 0.36 to 0.48 of the time); forces of redundant contacts, which are not
            unique, may be shared in another way than in batches, linearizations and plans.
        joint_limits: Whether joint limits are constraints of the step (True). When smoothed they push at a
            distance like contacts do.
        gravity_on_actuated: Whether gravity acts on actuated joints too (False: those that an actuator's
            spring holds count as compensated).
        damping: Whether dampers brake (False): those of joints, of objects too (a door, a table), and of
            actuators (`Actuator.damping`), each with its coefficient times displacement over h. A velocity
            actuator then moves its joint by h times the speed that it is told.
        soft_constraints: Which bilateral constraints give way by their compliance, which files say by solref and
            solimp. "mocap": those on mocap bodies, which then pull like springs, as in MuJoCo, where a rigid one
            could ask for more than the robot can; True: all; False: none, they hold rigidly.
        contact_stiffness: N/m along the normal of contacts whose geometries have none of their own; None: rigid. A
            force f presses a contact in by f / stiffness; sticking friction holds rigidly all the same, since a
            spring along the surface would forget its stretch with every step, and creep. Needs cones, or two rays.
        force_limits: Whether actuators pull no harder than they can (True): `Actuator.force_range`,
            which `load` takes from a file's force limits. A joint whose actuators are at their
            limit gives way, by its inertia where nothing else decides how far. When smoothed,
            limits are felt before they are reached. Without effect where there is no limit.
        patch_friction: Where friction of soft geometries acts: on each of a patch's "polygons", so that torsion comes
            out of the surface, or on the patch as a whole, whose limit surface (force and torque) is then an
            "ellipsoid" of the same extent: up to 6 % too strong in between, and faster.
        patch_law: How that friction answers to sliding. "disc": by at most friction times the force where the step
            ends, the default. "elastic": the cone of convex programs, in which a polygon's force grows besides by
            friction times its stiffness times how far it slides. What slides is lifted: depth is weight over
            stiffness less friction times the way, and beyond that contact is lost (the step then has no balance,
            `info.soft_converged`). For comparison; of "polygons", and without derivatives.
        held: Names of joints or bodies that do not move in the step; a body stands for all joints on it.
            Their variables leave the program, and their rows of A are those of the identity.
        infeasible: What a step does from a start that contradicts itself (bodies wedged between walls, links
            inside each other, constraints that exclude each other). "error": SolverError that names what does;
            rows that leave so little room that no finite forces were found give way by up to 1e-4 of the smallest
            thing's size, and `info.softened` counts them. Constraints that contradict each other by less than that
            (the last digits of a loop) give way, and count where finite forces need more. "soften": contacts, limits
            and constraints give way as little as they can: least sum of squares of what they are violated by at the
            end of the step, for motions of at most a radian and ten times the largest violation at its start. An
            angle counts as its arc at the size of the smallest thing in
            contact, bilateral constraints a hundredth (a weld that is out of reach does not press a robot
            through its table). Within that the step is the one of least energy. `info.softened` counts what gave
            way, `contacts["softened"]` says how far each contact is outside its cone; derivatives hold what gave way
            constant (`info.derivative_exact` is False). Steps that have a solution are the same, to the bit.
            Under `law="coulomb"` contacts obey that law beside what gave way, or the step raises "law not met".
        tolerance: Relative tolerance of the cone solver on residuals and complementarity, in (0, 1).
        iteration_limit: Interior point iterations after which the step raises SolverError, >= 1.

    Raises:
        TypeError, ValueError: naming the field and what was wrong with it.
    """

    h: float = 0.1
    friction: Literal["cone", "pyramid"] = "cone"
    rays: int = 4
    law: Literal["convex", "coulomb"] = "convex"
    stop_after: int | None = None
    kappa: float | None = None
    epsilon: float | None = None
    mass_ratio: float | None = None
    margin: float = 0.1
    add_missed_pairs: bool = True
    leave_distant_out: bool = False
    joint_limits: bool = True
    gravity_on_actuated: bool = False
    damping: bool = False
    soft_constraints: bool | Literal["mocap"] = "mocap"
    contact_stiffness: float | None = None
    force_limits: bool = True
    patch_friction: Literal["polygons", "ellipsoid"] = "polygons"
    patch_law: Literal["disc", "elastic"] = "disc"
    held: tuple[str, ...] = ()
    infeasible: Literal["error", "soften"] = "error"
    tolerance: float = 1e-9
    iteration_limit: int = 100
    _native: StepOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields(self, one_of, "friction", allowed=tuple(FRICTION_MODELS))
        fields(self, one_of, "law", allowed=tuple(LAWS))
        fields(self, number, "h", above=0)
        fields(self, integer, "rays", least=2, most=MOST_RAYS)
        fields(self, number, "kappa", above=0, or_none=True)
        self._settle_mass()
        fields(self, number, "margin", least=0, infinite=True)
        fields(self, flag, "add_missed_pairs", "joint_limits", "gravity_on_actuated", "damping")
        fields(self, flag, "force_limits", "leave_distant_out")
        fields(self, soft_word, "soft_constraints")
        fields(self, number, "contact_stiffness", above=0, or_none=True)
        if self.contact_stiffness is not None and self.friction == "pyramid" and self.rays > 2:
            raise ValueError("contact_stiffness: needs friction='cone' (or the planar law, rays=2)")
        fields(self, one_of, "patch_friction", allowed=tuple(PATCH_FRICTIONS))
        fields(self, one_of, "patch_law", allowed=("disc", "elastic"))
        check_patch_law(self)
        fields(self, names_of, "held")
        fields(self, one_of, "infeasible", allowed=("error", "soften"))
        fields(self, number, "tolerance", above=0, below=1)
        fields(self, integer, "iteration_limit", least=1, most=2**31 - 1)
        check_law(self)
        object.__setattr__(self, "_native", self._make_native())

    def _settle_mass(self) -> None:
        if self.mass_ratio is None:
            if self.epsilon is None:
                object.__setattr__(self, "epsilon", 1.0)
            fields(self, number, "epsilon", least=0)
            return
        if self.epsilon is not None:
            raise ValueError("mass_ratio: sets epsilon per object, so epsilon cannot be given too")
        fields(self, number, "mass_ratio", above=0, or_none=True)

    def _make_native(self) -> StepOptions:
        return StepOptions(
            h=self.h,
            friction_model=FRICTION_MODELS[self.friction],
            rays=self.rays,
            law=LAWS[self.law],
            stop_after=self.stop_after or 0,
            kappa=math.inf if self.kappa is None else self.kappa,
            epsilon=0.0 if self.epsilon is None else self.epsilon,
            mass_ratio=0.0 if self.mass_ratio is None else self.mass_ratio,
            margin=self.margin,
            add_missed_pairs=self.add_missed_pairs,
            leave_distant_out=self.leave_distant_out,
            joint_limits=self.joint_limits,
            gravity_on_actuated=self.gravity_on_actuated,
            damping=self.damping,
            soft_constraints=SOFT_CONSTRAINTS[self.soft_constraints],
            contact_compliance=0.0
            if self.contact_stiffness is None
            else 1.0 / self.contact_stiffness,
            force_limits=self.force_limits,
            patch_friction=PATCH_FRICTIONS[self.patch_friction],
            patch_law=PATCH_LAWS[self.patch_law],
            held=self.held,
            soften=self.infeasible == "soften",
            tolerance=self.tolerance,
            iteration_limit=self.iteration_limit,
        )

    def replace(self, **changes: Any) -> Options:
        """Copy with some fields changed, e.g. `options.replace(kappa=100.0)`.

        Of `epsilon` and `mass_ratio` the one given here takes the place of the other.

        Raises:
            TypeError, ValueError: as the constructor.
        """
        values = self._values()
        if changes.get("mass_ratio") is not None:
            values["epsilon"] = None
        elif changes.get("epsilon") is not None:
            values["mass_ratio"] = None
        return Options(**{**values, **changes})

    def _values(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Options], tuple[dict[str, Any]]]:
        return _restore_options, (self._values(),)


def _restore_options(values: dict[str, Any]) -> Options:
    return Options(**values)


def soft_word(name: str, value: object) -> bool | str:
    """True, False or "mocap"."""
    if not isinstance(value, str):
        return flag(name, value)
    if value != "mocap":
        raise ValueError(f"{name}: expected True, False or 'mocap', got {value!r}")
    return value


def check_law(options: Any) -> None:
    """What options of steps, of both kinds, say of the law of friction."""
    fields(options, integer, "stop_after", least=1, or_none=True)
    if options.law == "coulomb" and options.kappa is not None:
        raise ValueError(
            f"kappa: expected None under law='coulomb', whose steps are exact, got {options.kappa!r}"
        )


def check_patch_law(options: Any) -> None:
    """What options of steps, of both kinds, say of the friction of patches."""
    law = options.patch_law
    if law == "elastic" and options.patch_friction != "polygons":
        raise ValueError(
            f"patch_friction: expected 'polygons' under patch_law='elastic', got {options.patch_friction!r}"
        )
    if law in ("regularized", "bristle") and options.kappa is not None:
        raise ValueError(
            f"kappa: expected None under patch_law={law!r}, whose steps are exact, got {options.kappa!r}"
        )


def names_of(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name}: expected names of joints or bodies in a tuple, got {type(value).__name__}"
        )
    names = tuple(value)
    for entry in names:
        if not isinstance(entry, str):
            raise TypeError(f"{name}: expected names, got {type(entry).__name__}")
    return names
