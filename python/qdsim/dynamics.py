"""The second-order step: velocities, impulses, and the same contacts as the quasi-dynamic one.

`step_dynamic` is a function of the extension, like `step`. In displacements h v its program is that of `step` with
another cost, so contacts, rows, islands, limits, constraints, solver and certificates are shared. Anitescu and Hart
2003 have it as a quadratic program a step (their convex relaxation of friction); docs/formulation.md, section 7.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import DynamicStep, StepOptions, step_dynamic
from .arguments import fields, flag, integer, number, one_of
from .array_type import Array
from .differential import by_name, copied, cotangent_rows, tangent_rows, wanted_bits
from .step import (
    FRICTION_MODELS,
    LAWS,
    MOST_RAYS,
    PATCH_FRICTIONS,
    PATCH_LAWS,
    SOFT_CONSTRAINTS,
    check_law,
    check_patch_law,
    names_of,
    soft_word,
)

__all__ = [
    "DynamicDifferential",
    "DynamicLinearization",
    "DynamicOptions",
    "DynamicStep",
    "differentiate_dynamic",
    "linearize_dynamic",
    "step_dynamic",
]


GYROSCOPIC = {"implicit": 0, "explicit": 1}

_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_WarmStart = _core.Step | DynamicStep | _core.Linearization


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicOptions:
    """Settings of a second-order step, frozen and checked when they are made.

    Every joint has its mass, armature and damping; gravity acts on all joints.

    Attributes:
        h: Step length in s, > 0. The step is of first order: errors shrink with h.
        friction: "cone" (isotropic second-order cone, the default) or "pyramid" (`rays` rays per contact).
        rays: Rays of the friction pyramid per contact, 3 to 64; 2 is the planar law and needs a model whose joints all
            move in one plane. Without effect on cones.
        law: Friction law. "convex": the relaxation of Anitescu and Hart, one convex program per step. It is exact while
            contacts stick or are open; a sliding contact keeps a gap of h times friction times its sliding speed, and
            at the onset of sliding or at an impact the bodies separate at friction times the sliding speed, however
            small h is (docs/formulation.md, section 7). "coulomb": a sliding contact stays closed; the solution is
            a fixed point of convex programs (`info.convex_programs` of them); exact steps only. Coulomb's law may have
            several solutions, of which a step finds one: `info.unique` is None where no other is near by, and False where
            there may be one.
        stop_after: None: a step under Coulomb's law holds its certificate (`info.law_residual`
            within the tolerance times the size of the smallest thing in contact), or raises
            SolverError. A number, >= 1: at most this many convex programs are solved in each round in which contacts
            enter, and the best of them is accepted, whatever its residual.
        restitution: Coefficient in [0, 1] of pairs of geometries that have none of their own: a contact that would be
            reached within the step leaves with restitution times the speed at which it was approached (Newton's rule).
            Under the convex law a contact that slides acts from a gap of h friction times its speed on, so that short
            steps brake it once before it bounces; Coulomb's law does not. Where bounces of several contacts at once
            would make energy, or leave no room for each other, those of their island (of what touches) are smaller
            (`info.bounce_share`).
        bounce_speed: m/s, >= 0: contacts that close more slowly do not bounce. None: 2 h times
            gravity, which keeps rest at rest.
        recovery_speed: m/s (of turns rad/s), >= 0, or None: the largest speed at which penetrations and violations of
            limits and constraints are corrected; `info.capped_rows` counts the rows that need longer. None: within the
            step, so a start that is 10 mm deep separates at 10 mm / h. 0: not at all, the unstabilised scheme.
        gyroscopic: How a body rotates that is alone on a free joint, or on a ball joint on the world.
            "implicit": Euler's equation by the implicit midpoint rule in the body's frame, which conserves
            energy and the magnitude of the angular momentum at any spin (its direction is of first order).
            "explicit": the gyroscopic force at the beginning of the step, which adds energy, without bound beyond
            about half a radian per step. In trees of several joints Coriolis and centrifugal forces are those of
            the beginning of the step.
        kappa: None for the exact step; a number (1/J, > 0) for the log-barrier step: smooth in q, v and u.
        margin: Distance in m within which pairs are contacts, >= 0, may be inf. Exact steps add pairs beyond it that they
            would run into, so it affects speed only; in smoothed steps contacts act at a distance up to it.
        add_missed_pairs: Whether an exact step adds pairs beyond the margin that it would run into, as in `Options`.
        joint_limits: Whether joint limits are constraints of the step (True).
        gravity_on_actuated: Whether gravity acts on actuated joints too (True); False counts them as compensated.
        patch_friction: Where friction of soft geometries acts, as in `Options`.
        patch_law: Friction law of patches. "disc" and "elastic" as in `Options`. "regularized" (Elandt et al. 2019):
            proportional to the speed up to `slip_speed`, so that pushed bodies creep, and friction times the force
            beyond. "bristle": each patch has a spring of `bristle_stiffness` whose stretch is a state, given as
            `bristles` and returned by single steps, batches and rollouts; friction is minus that stiffness times the
            force of a polygon times (stretch + `bristle_time` times speed), at most friction times the force, and the
            stretch relaxes towards the transmitted force with `bristle_time` (Elandt's published program). Both need
            exact steps; "bristle" and "elastic" have no derivatives.
        slip_speed: m/s, > 0, of "regularized".
        bristle_stiffness: 1/m, > 0, of "bristle": newtons of friction per metre of stretch and newton of normal force.
        bristle_time: s, >= 0, of "bristle".
        held: Names of joints or bodies that do not move in the step; a body stands for all joints on it.
        soft_constraints: Which bilateral constraints have the compliance of the file: "mocap", True or False, as in
            `Options`.
        contact_stiffness: N/m along the normal of contacts whose geometries have none of their own; None: rigid. Needs
            cones, or two rays. Compliant contacts do not bounce.
        infeasible: "error", or "soften": constraints that no motion satisfies yield, as in `Options`.
        tolerance: Relative tolerance of the cone solver on residuals and complementarity, in (0, 1).
        iteration_limit: Interior-point iterations after which the step raises SolverError, >= 1.
        trace: Whether a single step keeps what the solver tried as `info.trace`, as in `Options`.

    Raises:
        TypeError, ValueError: naming the field and what was wrong with it.
    """

    h: float = 0.01
    friction: Literal["cone", "pyramid"] = "cone"
    rays: int = 4
    law: Literal["convex", "coulomb"] = "convex"
    stop_after: int | None = None
    restitution: float = 0.0
    bounce_speed: float | None = None
    recovery_speed: float | None = None
    gyroscopic: Literal["implicit", "explicit"] = "implicit"
    kappa: float | None = None
    margin: float = 0.1
    add_missed_pairs: bool = True
    joint_limits: bool = True
    gravity_on_actuated: bool = True
    patch_friction: Literal["polygons", "ellipsoid"] = "polygons"
    patch_law: Literal["disc", "elastic", "regularized", "bristle"] = "disc"
    slip_speed: float = 0.01
    bristle_stiffness: float = 1e4
    bristle_time: float = 0.05
    held: tuple[str, ...] = ()
    soft_constraints: bool | Literal["mocap"] = "mocap"
    contact_stiffness: float | None = None
    infeasible: Literal["error", "soften"] = "error"
    tolerance: float = 1e-9
    iteration_limit: int = 100
    trace: bool = False
    _native: StepOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields(self, one_of, "friction", allowed=tuple(FRICTION_MODELS))
        fields(self, one_of, "law", allowed=tuple(LAWS))
        fields(self, number, "h", above=0)
        fields(self, integer, "rays", least=2, most=MOST_RAYS)
        fields(self, number, "restitution", least=0, most=1)
        fields(self, number, "bounce_speed", "recovery_speed", least=0, or_none=True)
        fields(self, one_of, "gyroscopic", allowed=tuple(GYROSCOPIC))
        fields(self, number, "kappa", above=0, or_none=True)
        fields(self, number, "margin", least=0, infinite=True)
        fields(self, flag, "add_missed_pairs", "joint_limits", "gravity_on_actuated")
        fields(self, one_of, "patch_friction", allowed=tuple(PATCH_FRICTIONS))
        fields(self, one_of, "patch_law", allowed=tuple(PATCH_LAWS))
        fields(self, number, "slip_speed", "bristle_stiffness", above=0)
        fields(self, number, "bristle_time", least=0)
        check_patch_law(self)
        fields(self, names_of, "held")
        fields(self, soft_word, "soft_constraints")
        fields(self, number, "contact_stiffness", above=0, or_none=True)
        if self.contact_stiffness is not None and self.friction == "pyramid" and self.rays > 2:
            raise ValueError("contact_stiffness: needs friction='cone' (or the planar law, rays=2)")
        fields(self, one_of, "infeasible", allowed=("error", "soften"))
        fields(self, number, "tolerance", above=0, below=1)
        fields(self, integer, "iteration_limit", least=1, most=2**31 - 1)
        fields(self, flag, "trace")
        check_law(self)
        object.__setattr__(self, "_native", self._make_native())

    def _make_native(self) -> StepOptions:
        return StepOptions(
            dynamic=True,
            h=self.h,
            friction_model=FRICTION_MODELS[self.friction],
            rays=self.rays,
            restitution=self.restitution,
            bounce_speed=-1.0 if self.bounce_speed is None else self.bounce_speed,
            law=LAWS[self.law],
            stop_after=self.stop_after or 0,
            recovery_speed=math.inf if self.recovery_speed is None else self.recovery_speed,
            gyroscopic=GYROSCOPIC[self.gyroscopic],
            kappa=math.inf if self.kappa is None else self.kappa,
            margin=self.margin,
            add_missed_pairs=self.add_missed_pairs,
            joint_limits=self.joint_limits,
            gravity_on_actuated=self.gravity_on_actuated,
            patch_friction=PATCH_FRICTIONS[self.patch_friction],
            patch_law=PATCH_LAWS[self.patch_law],
            slip_speed=self.slip_speed,
            bristle_stiffness=self.bristle_stiffness,
            bristle_time=self.bristle_time,
            held=self.held,
            soft_constraints=SOFT_CONSTRAINTS[self.soft_constraints],
            contact_compliance=0.0
            if self.contact_stiffness is None
            else 1.0 / self.contact_stiffness,
            soften=self.infeasible == "soften",
            tolerance=self.tolerance,
            iteration_limit=self.iteration_limit,
            trace=self.trace,
        )

    def replace(self, **changes: Any) -> DynamicOptions:
        """Copy with some fields changed, e.g. `options.replace(h=0.005)`.

        Raises:
            TypeError, ValueError: as the constructor.
        """
        return DynamicOptions(**{**self._values(), **changes})

    def _values(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}

    def __reduce__(
        self,
    ) -> tuple[Callable[[dict[str, Any]], DynamicOptions], tuple[dict[str, Any]]]:
        return _restore_options, (self._values(),)


def _restore_options(values: dict[str, Any]) -> DynamicOptions:
    return DynamicOptions(**values)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicLinearization:
    """A second-order step and its derivatives, in tangent coordinates. Made by `linearize_dynamic`."""

    step: DynamicStep
    """The step itself."""
    of_q: Mapping[str, Array]
    """From the names in wrt to dq_next by them, (nv, *shape of the argument), read-only."""
    of_v: Mapping[str, Array]
    """The same of v_next."""

    @property
    def A(self) -> Array:
        """d(q_next, v_next) by (q, v), (2 nv, 2 nv). KeyError unless both are in wrt."""
        return np.block([[self.of_q["q"], self.of_q["v"]], [self.of_v["q"], self.of_v["v"]]])

    @property
    def B(self) -> Array:
        """d(q_next, v_next) by u, (2 nv, nu). KeyError unless u is in wrt."""
        return np.concatenate([self.of_q["u"], self.of_v["u"]])

    @property
    def q_next(self) -> Array:
        """Configuration after the step (nq), read-only."""
        found: Array = self.step.q_next
        return found

    @property
    def v_next(self) -> Array:
        """Velocity after the step (nv), read-only."""
        return self.step.v_next

    def __repr__(self) -> str:
        return f"DynamicLinearization(by {', '.join(self.of_q)}, {self.step!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_linearization, (self.step, dict(self.of_q), dict(self.of_v))


def _restore_linearization(
    step: DynamicStep, of_q: dict[str, Array], of_v: dict[str, Array]
) -> DynamicLinearization:
    return DynamicLinearization(step, _frozen(of_q), _frozen(of_v))


def _frozen(arrays: dict[str, Array]) -> Mapping[str, Array]:
    for array in arrays.values():
        array.setflags(write=False)
    return MappingProxyType(arrays)


class DynamicDifferential:
    """A second-order step with its derivatives, as products with vectors. Made by `differentiate_dynamic`.

    Arguments are those of `Differential`, and "v" (nv) and "h" (a number). What is said there about what is held
    constant holds here too. Whether a contact bounces, the share by which bounces are smaller (`info.bounce_share`), and
    whether a recovery is capped is held constant: the step jumps where a bounce sets in.

    Attributes:
        step: The DynamicStep.
        model: Its model.
    """

    __slots__ = ("_arguments", "_native", "model", "step")

    model: _core.Model
    step: DynamicStep

    def __init__(
        self, native: _core.StepDifferential, arguments: tuple[Any, dict[str, Any]]
    ) -> None:
        self._native = native
        self._arguments = arguments
        self.model = native.model
        self.step = native.step

    def jvp(self, tangents: Mapping[str, npt.ArrayLike]) -> tuple[Array, Array]:
        """The changes of q_next and v_next, (nv) each, along tangents of arguments.

        Args:
            tangents: From names of arguments to directions of their shape; with one more leading dimension, the same
                for all of them, as many directions at once: then (count, nv) each.

        Raises:
            TypeError, ValueError: naming the argument and what was wrong.
        """
        rows, single = tangent_rows(self._native, tangents)
        of_q, of_v = self._native.jvp(rows)
        return (of_q[0], of_v[0]) if single else (of_q, of_v)

    def vjp(
        self,
        q_cotangent: npt.ArrayLike | None,
        v_cotangent: npt.ArrayLike | None,
        wrt: Iterable[str] = ("q", "v", "u"),
    ) -> dict[str, Array]:
        """The gradients of q_cotangent . q_next + v_cotangent . v_next by arguments.

        Args:
            q_cotangent, v_cotangent: (nv) or (count, nv), both alike; None: zero.
            wrt: Names of arguments.

        Returns:
            From each name in wrt to an array of the argument's shape, or (count, *shape).

        Raises:
            TypeError, ValueError: naming the argument and what was wrong.
        """
        names, wanted = wanted_bits(wrt)
        nv = self.model.nv
        given = {"q_cotangent": q_cotangent, "v_cotangent": v_cotangent}
        rows = {
            name: cotangent_rows(name, value, nv)
            for name, value in given.items()
            if value is not None
        }
        if not rows:
            raise ValueError("v_cotangent: one of the two cotangents must be given")
        if len({(array.shape, single) for array, single in rows.values()}) > 1:
            raise ValueError("v_cotangent: expected the shape of q_cotangent")
        single = next(iter(rows.values()))[1]
        of_q, of_v = (rows[name][0] if name in rows else None for name in given)
        return by_name(names, self._native.vjp(of_q, wanted, of_v), single)

    def jacobians(
        self, wrt: Iterable[str] = ("q", "v", "u")
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """dq_next and dv_next by arguments, (nv, *shape) each."""
        names, wanted = wanted_bits(wrt)
        of_q, of_v = self._native.jacobians(wanted)
        return by_name(names, of_q, False), by_name(names, of_v, False)

    def __reduce__(self) -> tuple[Any, ...]:
        """The workspace does not travel: where it is unpickled, the same step is differentiated again."""
        return _differentiated, self._arguments

    def __repr__(self) -> str:
        return f"DynamicDifferential({self.step!r})"


def differentiate_dynamic(
    model: _core.Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    warm_start: _WarmStart | None = None,
) -> DynamicDifferential:
    """Step once, and keep what products of its derivatives with vectors need.

    Arguments and errors as in `step_dynamic`. The result holds a workspace of the model until it goes, and may be used
    any number of times.
    """
    native = _core._differentiate(
        model, q, u, options, tau=tau, wrench=wrench, mocap=mocap, warm_start=warm_start, v=v
    )
    kept = {
        "tau": copied(tau),
        "wrench": copied(wrench),
        "mocap": copied(mocap),
        "warm_start": warm_start,
    }
    return DynamicDifferential(native, ((model, copied(q), copied(v), copied(u), options), kept))


def _differentiated(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> DynamicDifferential:
    return differentiate_dynamic(*arguments, **keywords)


def linearize_dynamic(
    model: _core.Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    wrt: Iterable[str] = ("q", "v", "u"),
    warm_start: _WarmStart | None = None,
) -> DynamicLinearization:
    """A second-order step and its derivatives, exact: those of the active set that it ended on.

    Args:
        model, q, v, u, options, tau, wrench, mocap, warm_start: As in `step_dynamic`.
        wrt: Names of arguments: "q", "v", "u", "tau", "wrench", "mocap", "h" and those of `model.parameters`.

    Raises:
        TypeError, ValueError: naming the argument.
        SolverError: as `step_dynamic`.
    """
    step, of_q, of_v = _core._linearize_dynamic(
        model,
        q,
        v,
        u,
        options,
        tau=tau,
        wrench=wrench,
        mocap=mocap,
        wrt=wrt,
        warm_start=warm_start,
    )
    return DynamicLinearization(step, of_q, of_v)
