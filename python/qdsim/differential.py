"""Products of a step's derivatives with vectors, with respect to every argument and parameter,
without A and B.

``differentiate`` computes a step and keeps the factorisation of the active set. From it, ``jvp``
computes Jacobian-vector products and ``vjp`` vector-Jacobian products, with one solve for four of
them. CQDC, section III-C, differentiates the same optimality conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim._core import ARGUMENT_NAMES, Step
from qdsim.arguments import finite, reals
from qdsim.array_type import Array

__all__ = ["Differential", "differentiate", "jvp", "vjp"]

_Wrench = npt.ArrayLike | Mapping[str, npt.ArrayLike]
_Mocap = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class Differential:
    """A step with its derivatives, as products with vectors. Made by ``differentiate``.

    The arguments of a step are "q", "u", "tau", "wrench", "mocap" and the names in
    ``model.parameters``: "gravity", "body_mass", "body_com", "body_inertia", "joint_stiffness",
    "joint_springref", "joint_damping", "joint_armature", "actuator_stiffness", "geom_size" and
    "pair_friction". Derivatives with respect to configurations are in tangent coordinates (nv), at
    q and at q_next. The same holds for poses of mocap bodies (mocap_count, 6: translation, then
    rotation vector in world axes). Every other argument has its own shape and units.

    Derivatives are those of the final active set of the step (``step.info.derivative_exact`` says
    whether it is certified). Held constant are the set of contacts, the epsilon computed from
    ``Options.mass_ratio``, the inertias of joints at their force limits, and quantities that a file
    reader computed from sizes (inertias). Inertias vary as symmetric matrices. A component whose
    friction coefficient is zero has no rows in a cone, so the derivative with respect to this
    coefficient is zero. Each of the two (equal) sliding coefficients belongs to its own tangent in
    cones, and so do the two rolling ones; pyramids use the first.

    Attributes:
        step: The Step.
        model: Its model.
    """

    __slots__ = ("_arguments", "_native", "model", "step")

    model: _core.Model
    step: Step

    def __init__(
        self, native: _core.StepDifferential, arguments: tuple[Any, dict[str, Any]]
    ) -> None:
        self._native = native
        self._arguments = arguments
        self.model = native.model
        self.step = native.step

    @property
    def q_next(self) -> Array:
        """Configuration after the step (nq), read-only."""
        return self.step.q_next

    def jvp(self, tangents: Mapping[str, npt.ArrayLike]) -> Array:
        """Compute the change (nv) of q_next for changes of arguments along tangents: the sum of
        Jacobians times tangents.

        Args:
            tangents: From names of arguments to directions of their shape (q: (nv)). With one more
                leading dimension, the same for all of them, many directions at once.

        Returns:
            (nv), or (count, nv).

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        rows, single = tangent_rows(self._native, tangents)
        out = self._native.jvp(rows)
        assert isinstance(out, np.ndarray)
        return out[0] if single else out

    def vjp(self, cotangent: npt.ArrayLike, wrt: Iterable[str] = ("q", "u")) -> dict[str, Array]:
        """Compute the gradients of cotangent . q_next with respect to arguments: transposed
        Jacobians times the cotangent.

        Args:
            cotangent: (nv) in the tangent coordinates at q_next, or (count, nv).
            wrt: Names of arguments.

        Returns:
            From each name in wrt to an array of the argument's shape (q: (nv)), or (count, *shape).

        Raises:
            TypeError, ValueError: if an argument is invalid; the message names it.
        """
        rows, single = cotangent_rows("cotangent", cotangent, self.model.nv)
        return self._gradients(rows, wrt, single=single)

    def jacobians(self, wrt: Iterable[str] = ("q", "u")) -> dict[str, Array]:
        """Derivatives of q_next, ``(nv, *shape)`` each, as in ``linearize(...,
        wrt=wrt).derivatives``.

        Args:
            wrt: names of arguments and parameters.

        Raises:
            TypeError, ValueError: for an unknown name.
        """
        return self._gradients(None, wrt, single=False)

    def _gradients(self, rows: Array | None, wrt: Iterable[str], single: bool) -> dict[str, Array]:
        names, wanted = wanted_bits(wrt)
        return by_name(names, self._native.vjp(rows, wanted), single)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling drops the workspace; unpickling differentiates the same step again."""
        return _differentiated, self._arguments

    def __repr__(self) -> str:
        return f"Differential({self.step!r})"


def differentiate(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
    warm_start: Step | _core.Linearization | None = None,
) -> Differential:
    """Compute a step and keep its factorisations, for products of its derivatives with vectors.

    Args:
        model: The model.
        q: Configuration (nq,), m and rad.
        u: Command (nu,), in the units of the actuators.
        options, tau, wrench, mocap, warm_start: As in ``step``.

    Returns:
        The step with ``jvp`` and ``vjp``. It holds a workspace of the model while it lives, and may
        be used any number of times, for example one for each step of a trajectory. A copy, also
        through pickle, differentiates the same step again.

    Raises:
        TypeError, ValueError, SolverError: As ``step``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    native = _core._differentiate(
        model, q, u, options, tau=tau, wrench=wrench, mocap=mocap, warm_start=warm_start
    )
    # The caller may change its arrays later; unpickling needs copies of them.
    kept = {
        "tau": copied(tau),
        "wrench": copied(wrench),
        "mocap": copied(mocap),
        "warm_start": warm_start,
    }
    return Differential(native, ((model, copied(q), copied(u), options), kept))


def jvp(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    tangents: Mapping[str, npt.ArrayLike],
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
) -> tuple[Step, Array]:
    """Compute a step, and the change of q_next for tangents of the step's arguments.

    Args:
        tangents: Directions by the names of arguments, in their units: "q" (nv,), m or rad, "u"
            (nu,), "tau" (nv,), ...
        model, q, u, options, tau, wrench, mocap: As in ``step``.

    Returns:
        The step, and the change (nv,) of q_next, m or rad.

    Raises:
        TypeError, ValueError, SolverError: As ``step`` and ``Differential.jvp``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    differential = differentiate(model, q, u, options, tau=tau, wrench=wrench, mocap=mocap)
    return differential.step, differential.jvp(tangents)


def vjp(
    model: _core.Model,
    q: npt.ArrayLike,
    u: npt.ArrayLike,
    options: _core._OptionsLike | _core.StepOptions | None = None,
    *,
    cotangent: npt.ArrayLike,
    wrt: Iterable[str] = ("q", "u"),
    tau: npt.ArrayLike | None = None,
    wrench: _Wrench | None = None,
    mocap: _Mocap | None = None,
) -> tuple[Step, dict[str, Array]]:
    """Compute a step, and the gradients of cotangent . q_next with respect to the step's arguments.

    Args:
        cotangent: Gradient (nv,) with respect to q_next in tangent coordinates, per m or rad.
        wrt: Names of arguments, as in ``Differential.vjp``.
        model, q, u, options, tau, wrench, mocap: As in ``step``.

    Returns:
        The step, and the gradients by the names in ``wrt``, of the shapes of the arguments ("q":
        (nv,)).

    Raises:
        TypeError, ValueError, SolverError: As ``step`` and ``Differential.vjp``.

    The derivatives are exact, by the implicit function theorem (CQDC, section III; formulation 4).
    """
    differential = differentiate(model, q, u, options, tau=tau, wrench=wrench, mocap=mocap)
    return differential.step, differential.vjp(cotangent, wrt)


def tangent_rows(
    native: _core.StepDifferential, tangents: Mapping[str, npt.ArrayLike]
) -> tuple[tuple[Array | None, ...], bool]:
    """Convert tangents to rows (count, size) in the order of the arguments; return also whether
    they lack the count dimension."""
    if not isinstance(tangents, Mapping):
        raise TypeError(f"tangents: expected a mapping, got {type(tangents).__name__}")
    rows: list[Array | None] = [None] * len(ARGUMENT_NAMES)
    leads: dict[str, tuple[int, ...]] = {}
    for name, value in tangents.items():
        shape = native.shape(_argument("tangents", name))
        array = finite(f"tangents[{name!r}]", reals(f"tangents[{name!r}]", value))
        lead = array.shape[: array.ndim - len(shape)]
        if array.shape[len(lead) :] != shape or len(lead) > 1:
            raise ValueError(
                f"tangents[{name!r}]: expected shape {shape} or (count, *{shape}), got {array.shape}"
            )
        leads[name] = lead
        count = lead[0] if lead else 1
        flat = array.reshape(count, int(np.prod(shape)))
        rows[ARGUMENT_NAMES.index(name)] = np.ascontiguousarray(flat)
    if len(set(leads.values())) > 1:
        raise ValueError(f"tangents: leading dimensions differ: {leads}")
    return tuple(rows), not next(iter(leads.values()), ())


def cotangent_rows(name: str, cotangent: npt.ArrayLike, nv: int) -> tuple[Array, bool]:
    """Convert a cotangent to rows (count, nv); return also whether it lacks the count dimension."""
    array = finite(name, reals(name, cotangent))
    if array.ndim not in (1, 2) or array.shape[-1] != nv:
        raise ValueError(f"{name}: expected shape ({nv},) or (count, {nv}), got {array.shape}")
    return np.ascontiguousarray(np.atleast_2d(array)), array.ndim == 1


def wanted_bits(wrt: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Check names of arguments, and return them with a bit mask."""
    try:
        names = tuple(wrt)
    except TypeError:
        raise TypeError(f"wrt: expected names of arguments, got {type(wrt).__name__}") from None
    wanted = 0
    for name in names:
        wanted |= 1 << ARGUMENT_NAMES.index(_argument("wrt", name))
    return names, wanted


def by_name(
    names: tuple[str, ...], found: tuple[Array | None, ...], single: bool
) -> dict[str, Array]:
    """Return the results of the core by the names of arguments."""
    out = {}
    for name in names:
        array = found[ARGUMENT_NAMES.index(name)]
        assert array is not None
        out[name] = array[0] if single else array
    return out


def copied(value: Any) -> Any:
    """Copy an argument, since the caller may change the original."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: np.array(item) for name, item in value.items()}
    return np.array(value)


def _differentiated(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Differential:
    return differentiate(*arguments, **keywords)


def _argument(caller: str, name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{caller}: expected names of arguments, got {type(name).__name__}")
    if name not in ARGUMENT_NAMES:
        raise ValueError(f"{caller}: expected names among {ARGUMENT_NAMES}, got {name!r}")
    return name
