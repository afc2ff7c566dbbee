"""The second-order step: velocities, impulses, and the same contacts as the quasi-dynamic step.

``step_dynamic`` is a function of the extension, like ``step``. Written in displacements h v, its
program is that of ``step`` with another cost. Contacts, rows, islands, limits, constraints, the
solver and certificates are therefore shared. Anitescu and Hart 2003 formulate the step as one
quadratic program with a convex relaxation of friction; see docs/formulation.md, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import DynamicStep, StepOptions, step_dynamic
from qdsim.arguments import fields, number, one_of
from qdsim.array_type import Array
from qdsim.differential import by_name, copied, cotangent_rows, tangent_rows, wanted_bits
from qdsim.step import PATCH_LAWS, CommonOptions

__all__ = [
    "DynamicDifferential",
    "DynamicLinearization",
    "DynamicOptions",
    "DynamicStep",
    "differentiate_dynamic",
    "linearize_dynamic",
    "step_dynamic",
]


_GYROSCOPIC = {"implicit": 0, "explicit": 1}
_GYROSCOPIC_OF = {"rigid": "implicit", "mujoco": "explicit"}

_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_WarmStart = _core.Step | DynamicStep | _core.Linearization


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicOptions(CommonOptions):
    """Settings of a second-order step, frozen and checked when they are made.

    Every joint has its mass, armature and damping. Gravity acts on all joints.

    The fields of ``CommonOptions`` (friction, law, kappa and others) and these:

    Attributes:
        contacts: With "mujoco" one step is MuJoCo's ``mj_step`` (formulation 7): contacts, limits
            of hinges and slides, dry friction and couplings of joints follow MuJoCo's law; all
            other rows are as with rigid contacts. Contacts by MuJoCo's law act only within their
            own margin: ``margin``, ``add_missed_pairs``, ``recovery_speed`` and
            ``soft_constraints`` have no effect on them. Requires exact steps (kappa=None) without
            restitution. Springs, dampers and actuators have the forces of the beginning of the step
            for files with MuJoCo's integrators Euler and implicitfast (dampers then act once more,
            at its end), and those of its end for "discrete", where this also holds for the springs
            and dampers of solref. If springs of joints change the weight of an active row under
            "discrete", derivatives neglect this (``info.derivative_exact`` is False). A file that
            asks for more (``model.unlike_mujoco``: fluids, noslip, RK4, time constants of
            actuators) raises a ValueError.
        h: Time step in s, > 0; by default a tenth of that of ``Options``.
        gravity_on_actuated: Whether gravity also acts on actuated joints. False means that it is
            compensated there.
        patch_law: As in ``CommonOptions``, or "regularized" or "bristle". "regularized" (Elandt et
            al. 2019): friction is proportional to the speed up to ``slip_speed``, so that pushed
            bodies creep; beyond, it is the friction coefficient times the force. "bristle": each
            patch has a spring of ``bristle_stiffness`` whose stretch is a state, given as
            ``bristles`` and returned by single steps, batches and rollouts; friction is minus that
            stiffness times the force of a polygon times (stretch + ``bristle_time`` times speed),
            at most the friction coefficient times the force, and the stretch relaxes towards the
            transmitted force with ``bristle_time`` (Elandt's published program). Both need exact
            steps; "bristle" and "elastic" have no derivatives.
        restitution: Coefficient in [0, 1] of pairs of geometries that have none of their own: a
            contact that would close within the step leaves with restitution times its approach
            speed (Newton's rule). Under the convex law a sliding contact already acts at a gap of h
            times friction times its speed, so that short steps brake it once before it bounces;
            Coulomb's law does not. If simultaneous bounces of several contacts would create energy
            or contradict each other, all bounces of their island (connected by contacts) are
            reduced (``info.bounce_share``).
        bounce_speed: Contacts that close more slowly than this do not bounce, m/s, >= 0. None: 2 h
            times gravity, so that bodies at rest stay at rest.
        gyroscopic: Integration of the rotation of a body that is alone on a free joint, or on a
            ball joint on the world. "implicit": Euler's equation by the implicit midpoint rule in the body's frame,
            which conserves energy and the magnitude of the angular momentum at any angular velocity
            (its direction is first-order accurate). "explicit": the gyroscopic force at the
            beginning of the step, which adds energy, without bound beyond about half a radian per
            step. In trees of several joints Coriolis and centrifugal forces are those of the
            beginning of the step. None (default): "implicit" with contacts="rigid", "explicit" with
            "mujoco", as in MuJoCo's step.
        slip_speed: Speed up to which the friction of "regularized" is proportional, m/s, > 0.
        bristle_stiffness: Stiffness of "bristle", 1/m, > 0: newtons of friction per metre of
            stretch and newton of normal force.
        bristle_time: Relaxation time of "bristle", s, >= 0.

    Raises:
        TypeError, ValueError: A field is invalid; the message names it.
    """

    h: float = 0.01
    gravity_on_actuated: bool = True
    restitution: float = 0.0
    bounce_speed: float | None = None
    gyroscopic: Literal["implicit", "explicit"] | None = None
    slip_speed: float = 0.01
    bristle_stiffness: float = 1e4
    bristle_time: float = 0.05

    def _check_own(self) -> None:
        fields(self, number, "restitution", least=0, most=1)
        fields(self, number, "bounce_speed", least=0, or_none=True)
        if self.gyroscopic is not None:
            fields(self, one_of, "gyroscopic", allowed=tuple(_GYROSCOPIC))
        fields(self, one_of, "patch_law", allowed=tuple(PATCH_LAWS))
        fields(self, number, "slip_speed", "bristle_stiffness", above=0)
        fields(self, number, "bristle_time", least=0)
        self._check_contacts({"kappa": None, "restitution": 0.0})

    def _own_settings(self) -> dict[str, Any]:
        return {
            "dynamic": True,
            "restitution": self.restitution,
            "bounce_speed": -1.0 if self.bounce_speed is None else self.bounce_speed,
            "gyroscopic": _GYROSCOPIC[self.gyroscopic or _GYROSCOPIC_OF[self.contacts]],
            "slip_speed": self.slip_speed,
            "bristle_stiffness": self.bristle_stiffness,
            "bristle_time": self.bristle_time,
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DynamicLinearization:
    """A second-order step and its derivatives in tangent coordinates, as ``linearize_dynamic`` returns it."""

    step: DynamicStep
    """The step itself."""
    of_q: Mapping[str, Array]
    """For each name in wrt, the derivative of q_next, (nv, *shape of the argument), read-only."""
    of_v: Mapping[str, Array]
    """For each name in wrt, the derivative of v_next, (nv, *shape of the argument), read-only."""

    @property
    def A(self) -> Array:
        """Derivative of (q_next, v_next) with respect to (q, v), (2 nv, 2 nv). KeyError unless both
        are in wrt."""
        return np.block([[self.of_q["q"], self.of_q["v"]], [self.of_v["q"], self.of_v["v"]]])

    @property
    def B(self) -> Array:
        """Derivative of (q_next, v_next) with respect to u, (2 nv, nu). KeyError unless u is in
        wrt."""
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
    """A second-order step with its derivatives, as products with vectors. ``differentiate_dynamic``
    makes it.

    Arguments are those of ``Differential``, and "v" (nv) and "h" (a number). The derivatives hold
    the same quantities constant as those of ``Differential``, and three more: whether a contact
    bounces, the factor by which bounces are reduced (``info.bounce_share``), and whether a recovery
    is capped. (The step is discontinuous where a bounce begins.)

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
        """Compute the changes of q_next and v_next, (nv) each, for changes of arguments along tangents.

        Args:
            tangents: For each name of an argument, a direction of the argument's shape. With one
                more leading dimension, the same for all arguments, there are many directions at
                once, and the results are (count, nv) each.

        Raises:
            TypeError, ValueError: An argument is invalid; the message names it.
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
        """Compute the gradients of q_cotangent . q_next + v_cotangent . v_next with respect to arguments.

        Args:
            q_cotangent, v_cotangent: (nv) or (count, nv), both alike; None: zero.
            wrt: Names of arguments.

        Returns:
            For each name in wrt, an array of the argument's shape, or (count, *shape).

        Raises:
            TypeError, ValueError: An argument is invalid; the message names it.
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
        """Compute the derivatives of q_next and of v_next, ``(nv, *shape)`` each.

        Args:
            wrt: Names of arguments and parameters.

        Raises:
            TypeError, ValueError: A name is unknown.
        """
        names, wanted = wanted_bits(wrt)
        of_q, of_v = self._native.jacobians(wanted)
        return by_name(names, of_q, False), by_name(names, of_v, False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling drops the workspace; unpickling differentiates the same step again."""
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
    """Compute a step and keep its factorisations, for products of its derivatives with vectors.

    Args:
        model: The model.
        q: Configuration (nq,), m and rad.
        v: Velocity (nv,), m/s and rad/s.
        u: Command (nu,), in the units of the actuators.
        options, tau, wrench, mocap, warm_start: As in ``step_dynamic``.

    Returns:
        The step with ``jvp`` and ``vjp``. It holds a workspace of the model while it lives, and may
        be used any number of times.

    Raises:
        TypeError, ValueError, SolverError: As ``step_dynamic``.

    The step is that of Anitescu and Hart 2003 (formulation 7); its derivatives are exact
    (formulation 4).
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
    """Compute a second-order step and the exact derivatives of its final active set.

    Args:
        model: The model.
        q: Configuration (nq,), m and rad.
        v: Velocity (nv,), m/s and rad/s.
        u: Command (nu,), in the units of the actuators.
        options, tau, wrench, mocap, warm_start: As in ``step_dynamic``.
        wrt: Names of arguments: "q", "v", "u", "tau", "wrench", "mocap", "h" and those of
            ``model.parameters``.

    Raises:
        TypeError, ValueError: An argument is invalid; the message names it.
        SolverError: As ``step_dynamic``.

    The step is that of Anitescu and Hart 2003 (formulation 7); its derivatives are exact
    (formulation 4).
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
