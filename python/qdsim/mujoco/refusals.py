"""Features of MuJoCo models that ``linearize`` cannot differentiate, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from qdsim.description.contact_solver import INTEGRATORS

TRANSMISSIONS = {1: "joint in parent", 2: "slider-crank", 5: "body (adhesion)", 6: "SO(3)"}
JOINT, JOINT_IN_PARENT, TENDON, SITE = (
    int(getattr(mujoco.mjtTrn, f"mjTRN_{name}"))
    for name in ("JOINT", "JOINTINPARENT", "TENDON", "SITE")
)
EULER, IMPLICITFAST, DISCRETE = map(INTEGRATORS.index, ("Euler", "implicitfast", "discrete"))
DUAL = int(mujoco.mjtSolver.mjSOL_PGS)
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
ENABLED = {16: "sleep", 32: "diagexact", 64: "ipc"}
_ENABLED = sum(ENABLED)
EQUALITIES = {4: "flex", 5: "flexvert", 6: "flexstrain", 7: "distance"}
WRAP_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)
WRAP_PULLEY = int(mujoco.mjtWrap.mjWRAP_PULLEY)


OLDEST = 3, 14
"""The first supported version of MuJoCo; earlier ones integrate free bodies differently and have other arrays."""


def what_is_refused(m: Any) -> list[str]:
    """List the features of the model that ``linearize`` cannot differentiate, one string each."""
    found = [*_of_options(m), *_of_the_whole(m), *_of_tendons(m), *_of_equalities(m)]
    for i in range(m.nactuator if hasattr(m, "nactuator") else m.nu):
        found += [f"actuator {_name(m.actuator(i), i)}: {reason}" for reason in _of_actuator(m, i)]
    return found


def has_spatial(m: Any) -> bool:
    """Return whether any tendon of the model is spatial."""
    return m.ntendon > 0 and bool(_spatial(m).any())


def options_refused(m: Any, spatial: bool) -> bool:
    """Return whether ``what_is_refused`` would name an option; options may change from call to call.

    ``spatial``: the result of ``has_spatial``.
    """
    options = m.opt
    integrator = options.integrator
    return bool(
        integrator not in (EULER, IMPLICITFAST, DISCRETE)
        or (integrator == DISCRETE and options.solver == DUAL)
        or options.noslip_iterations > 0
        or options.density > 0
        or options.viscosity > 0
        or options.enableflags & _ENABLED
        or (integrator == IMPLICITFAST and spatial and any(_of_tendons(m)))
    )


def _name(element: Any, i: int) -> str:
    return repr(element.name) if element.name else str(i)


def _of_options(m: Any) -> Iterator[str]:
    if m.opt.integrator not in (EULER, IMPLICITFAST, DISCRETE):
        yield (
            f"integrator {INTEGRATORS[m.opt.integrator]!r} ('Euler', 'implicitfast' and 'discrete' have derivatives)"
        )
    if m.opt.integrator == DISCRETE and m.opt.solver == DUAL:
        yield "solver 'PGS' under the integrator 'discrete' (tendons and actuators are explicit there)"
    if _version() < OLDEST:
        yield f"the steps of MuJoCo {mujoco.__version__} (those of {OLDEST[0]}.{OLDEST[1]} or later)"
    if m.opt.noslip_iterations > 0:
        yield "option noslip_iterations"
    for bit, name in ENABLED.items():
        if m.opt.enableflags & bit:
            yield f"flag {name!r}"
    if m.opt.density > 0 or m.opt.viscosity > 0:
        yield "fluid forces (options density, viscosity)"


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in mujoco.__version__.split(".")[:2])


def _of_the_whole(m: Any) -> Iterator[str]:
    for count, what in (("nflex", "flexible bodies"), ("nplugin", "plugins")):
        if getattr(m, count, 0):
            yield what
    for name in (
        "dof_dampingpoly",
        "jnt_stiffnesspoly",
        "tendon_dampingpoly",
        "tendon_stiffnesspoly",
    ):
        if np.any(getattr(m, name, 0)):
            yield f"polynomial springs and dampers ({name})"
    for name in ("geom_adhesion", "geom_surfacevel", "pair_adhesion"):
        if np.any(getattr(m, name, 0)):
            yield name
    for name in ("actuator_damping", "actuator_dampingpoly", "actuator_armature", "actuator_delay"):
        if np.any(getattr(m, name, 0)):
            yield name
    if getattr(m, "nactuator", m.nu) != m.nu or getattr(m, "nout", m.nu) != m.nu:
        yield "actuators of several controls or forces"


def _spatial(m: Any) -> Any:
    """Return which tendons are spatial, (ntendon)."""
    return np.asarray(m.wrap_type)[np.asarray(m.tendon_adr, dtype=int)] != WRAP_JOINT


def _of_tendons(m: Any) -> Iterator[str]:
    on = {i: [k for k in range(m.nu) if _pulls(m, k, i)] for i in range(m.ntendon)}
    spatial = _spatial(m)
    for i in range(m.ntendon):
        owner = f"tendon {_name(m.tendon(i), i)}"
        if getattr(m, "tendon_actfrclimited", np.zeros(m.ntendon))[i]:
            yield f"{owner}: limit of its actuators' total force"
        if not spatial[i]:
            continue
        if m.tendon_armature[i]:
            yield f"{owner}: armature (of a spatial tendon)"
        parts = slice(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
        if np.any((m.wrap_type[parts] == WRAP_PULLEY) & (m.wrap_prm[parts] <= 0.0)):
            yield f"{owner}: a pulley without a positive divisor"
        if on[i] and np.any(m.jnt_actfrclimited):
            yield f"{owner}: actuators of a spatial tendon beside limits of joints' actuator forces"
        damped = np.any(m.tendon_damping[i]) or any(
            (m.actuator_gaintype[k] == 1 and m.actuator_gainprm[k, 2])
            or (m.actuator_biastype[k] == 1 and m.actuator_biasprm[k, 2])
            for k in on[i]
        )
        if damped and m.opt.integrator == IMPLICITFAST:
            yield f"{owner}: damping of a spatial tendon under the integrator 'implicitfast'"


def _pulls(m: Any, actuator: int, tendon: int) -> bool:
    return bool(m.actuator_trntype[actuator] == TENDON and m.actuator_trnid[actuator, 0] == tendon)


def _of_equalities(m: Any) -> Iterator[str]:
    for i in range(m.neq):
        if m.eq_type[i] in EQUALITIES:
            yield f"equality {_name(m.equality(i), i)}: type {EQUALITIES[m.eq_type[i]]!r}"


def _of_actuator(m: Any, i: int) -> Iterator[str]:
    transmission = m.actuator_trntype[i]
    target = m.actuator_trnid[i]
    if transmission in (JOINT, JOINT_IN_PARENT):
        kind = m.jnt_type[target[0]]
        if transmission == JOINT_IN_PARENT and kind in (FREE, BALL):
            yield "jointinparent of a ball or free joint"
    elif transmission == SITE:
        if target[1] >= 0:
            yield "site with a reference site"
        if m.actuator_gaintype[i] == 1 or m.actuator_biastype[i] == 1:
            yield "site whose force depends on its length or velocity"
    elif transmission != TENDON:
        yield f"transmission {TRANSMISSIONS.get(int(transmission), transmission)!r}"
    if m.actuator_dyntype[i] not in (0, 1, 2, 3):
        yield "dynamics other than none, integrator, filter and filterexact"
    if m.actuator_gaintype[i] not in (0, 1):
        yield "gain other than fixed and affine"
    if m.actuator_biastype[i] not in (0, 1):
        yield "bias other than none and affine"
    if hasattr(m, "actuator_history") and np.any(m.actuator_history[i]):
        yield "history of its control"
