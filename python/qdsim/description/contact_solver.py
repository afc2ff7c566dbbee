"""MuJoCo's solver parameters of contacts, and their combination for two geometries.

MuJoCo's documentation, "Computation: Solver parameters" and "Contact parameters". A contact is a
damped spring whose stiffness K, damping B and impedance d follow from ``solref`` and ``solimp``.
qdsim stores them in every model, and uses them if ``Options.contacts`` is "mujoco".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.description import checks
from qdsim.description.checks import Vector

Cone = Literal["pyramidal", "elliptic"]
Integrator = Literal["Euler", "RK4", "implicit", "implicitfast", "discrete"]
INTEGRATORS: tuple[Integrator, ...] = get_args(Integrator)
"""In MuJoCo's order."""

SOLREF: Vector = (0.02, 1.0)
SOLIMP: Vector = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's defaults."""

_LEAST = 1e-15
_IMPEDANCE = (1e-4, 0.9999)


class _Reference(enum.IntFlag):
    """The core's ``qd_reference_kind``."""

    TIMES, IMPLICIT = 1, 2


@dataclass(frozen=True)
class ContactSolver:
    """MuJoCo's solver options (``<option>``) for all contacts; the defaults are MuJoCo's.

    Attributes:
        cone, impratio: determine the stiffness along the normal and in tangential directions.
        timestep: s; time constants of ``solref`` are at least twice this. None: no such bound (the
            flag refsafe is off).
        integrator: with "discrete", springs and dampers, also those of ``solref``, act at the end
            of a step, and time constants have no bound; with "Euler" and "implicitfast", springs
            and dampers act at its beginning (``DynamicOptions.contacts``).
        springs: "late": springs, dampers and actuators act at the end of a step with any integrator,
            so that stiff ones are stable in long steps, which then are not those of MuJoCo. Files
            cannot express this.
    """

    cone: Cone = "pyramidal"
    impratio: float = 1.0
    timestep: float | None = 0.002
    integrator: Integrator = "Euler"
    springs: Literal["integrator", "late"] = "integrator"

    def __post_init__(self) -> None:
        owner = "contact_solver"
        if self.cone not in ("pyramidal", "elliptic"):
            raise ValueError(f"{owner}: cone must be 'pyramidal' or 'elliptic', got {self.cone!r}")
        if self.integrator not in INTEGRATORS:
            allowed = ", ".join(map(repr, INTEGRATORS))
            raise ValueError(
                f"{owner}: integrator must be one of {allowed}, got {self.integrator!r}"
            )
        if self.springs not in ("integrator", "late"):
            raise ValueError(
                f"{owner}: springs must be 'integrator' or 'late', got {self.springs!r}"
            )
        impratio = checks.stiffness(owner, "impratio", self.impratio)
        if impratio is None:
            raise TypeError(f"{owner}: impratio must be a number, got None")
        timestep = checks.stiffness(owner, "timestep", self.timestep)
        checks.assign(self, impratio=impratio, timestep=timestep)


DEFAULT_SOLVER = ContactSolver()


def solref(owner: str, field: str, value: object) -> Vector:
    """Check and return two numbers: time constant (s) and damping ratio, or negative stiffness and damping."""
    result = checks.vector(owner, field, value, 2)
    if (result[0] > 0.0) != (result[1] > 0.0):
        raise ValueError(
            f"{owner}: {field} must be two positive numbers (time constant, damping ratio) or two that are not "
            f"(-stiffness, -damping), got {result}"
        )
    return result


def solimp(owner: str, field: str, value: object) -> Vector:
    """Five numbers: d0, dwidth, width (m), midpoint, power; missing ones are MuJoCo's defaults."""
    given = checks.vector(owner, field, value)
    if not 1 <= len(given) <= 5:
        raise ValueError(f"{owner}: {field} must hold 1 to 5 numbers, got {len(given)}")
    return given + SOLIMP[len(given) :]


def limits_and_friction(owner: str, element: object) -> dict[str, Vector]:
    """Check and return, by name, solref and solimp of the limits and of the dry friction of a joint or tendon."""
    fields = {
        "solreflimit": solref,
        "solimplimit": solimp,
        "solreffriction": solref,
        "solimpfriction": solimp,
    }
    return {name: check(owner, name, getattr(element, name)) for name, check in fields.items()}


def combined(
    solmix: Array,
    priority: npt.NDArray[np.int64],
    rows: Array,
    pairs: npt.NDArray[np.int64],
    *,
    smaller: npt.NDArray[np.bool_],
) -> Array:
    """Combine the rows (geoms, n) of the two geometries of each pair: (pairs, n).

    The row of the geometry with the higher priority is used; with equal priorities, the mean
    weighted by ``solmix``.

    If either row is marked ``smaller``, the smaller numbers are used.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    share = np.full(len(a), 0.5)
    weight = np.where(solmix < _LEAST, 0.0, solmix)
    total = weight[a] + weight[b]
    np.divide(weight[a], total, out=share, where=total > 0.0)
    mixed = share[:, None] * rows[a] + (1.0 - share[:, None]) * rows[b]
    result = np.where((smaller[a] | smaller[b])[:, None], np.minimum(rows[a], rows[b]), mixed)
    for winner, loser in ((a, b), (b, a)):
        wins = priority[winner] > priority[loser]
        result = np.where(wins[:, None], rows[winner], result)
    return np.asarray(result, dtype=np.float64)


def reference(ref: Array, imp: Array, solver: ContactSolver) -> Array:
    """Compute (n, 3) K (1/s²), B (1/s) and the core's kind of reference, from solref (n, 2) and solimp (n, ...)."""
    most = np.clip(imp[:, 1], *_IMPEDANCE)
    is_time, implicit = ref[:, 0] > 0.0, solver.integrator == "discrete"
    least = 0.0 if implicit or solver.timestep is None else 2.0 * solver.timestep
    time = np.maximum(ref[:, 0], least)
    stiffness = 1.0 / np.maximum(_LEAST, (most * time * ref[:, 1]) ** 2)
    damping = 2.0 / np.maximum(_LEAST, most * time)
    bounded = is_time & (solver.timestep is not None)
    return np.column_stack(
        (
            np.where(is_time, stiffness, -ref[:, 0] / most**2),
            np.where(is_time, damping, -ref[:, 1] / most),
            bounded * _Reference.TIMES + implicit * _Reference.IMPLICIT,
        )
    )


def row_solver(refs: Sequence[Vector], imps: Sequence[Vector], solver: ContactSolver) -> Array:
    """Compute (n, 8) K, B, kind and solimp of limits, dry friction and constraints."""
    ref, imp = (
        np.array(rows, dtype=np.float64).reshape(len(rows), width)
        for rows, width in ((refs, 2), (imps, 5))
    )
    return np.column_stack((reference(ref, imp, solver), imp))


def equality_solver(refs: Sequence[Vector], imps: Sequence[Vector], solver: ContactSolver) -> Array:
    """The same of equalities, whose time constants MuJoCo does not bound under "discrete"."""
    rows = row_solver(refs, imps, solver)
    if solver.integrator == "discrete":
        rows[:, 2] = _Reference.IMPLICIT
    return rows


def contact_reference(ref: Array, friction_ref: Array, imp: Array, solver: ContactSolver) -> Array:
    """Compute (n, 4) K, B, the tangential B and the kind of contacts.

    The tangential B follows from solreffriction; if that is zero, from solref.
    """
    across = np.where((friction_ref != 0.0).any(axis=1)[:, None], friction_ref, ref)
    return np.insert(reference(ref, imp, solver), 2, reference(across, imp, solver)[:, 1], axis=1)
