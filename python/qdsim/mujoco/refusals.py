"""What of a MuJoCo model has no derivative here, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
TRANSMISSIONS = {1: "joint in parent", 2: "slider-crank", 5: "body (adhesion)", 6: "SO(3)"}
JOINT, JOINT_IN_PARENT, TENDON, SITE = (
    int(getattr(mujoco.mjtTrn, f"mjTRN_{name}"))
    for name in ("JOINT", "JOINTINPARENT", "TENDON", "SITE")
)
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
ENABLED = {16: "sleep", 32: "diagexact", 64: "ipc"}
EQUALITIES = {4: "flex", 5: "flexvert", 6: "flexstrain", 7: "distance"}
WRAP_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)


def what_is_refused(m: Any) -> list[str]:
    """Each thing of the model that `linearize` cannot differentiate, one string each."""
    found = [*_of_options(m), *_of_the_whole(m), *_of_tendons(m), *_of_equalities(m)]
    for i in range(m.nactuator if hasattr(m, "nactuator") else m.nu):
        found += [f"actuator {_name(m.actuator(i), i)}: {reason}" for reason in _of_actuator(m, i)]
    return found


def options_refused(options: Any) -> bool:
    """Whether `what_is_refused` would name one of the options, which may change from call to call."""
    return bool(
        options.integrator not in (0, 3)
        or options.noslip_iterations > 0
        or options.density > 0
        or options.viscosity > 0
        or options.enableflags & sum(ENABLED)
    )


def _name(element: Any, i: int) -> str:
    return repr(element.name) if element.name else str(i)


def _of_options(m: Any) -> Iterator[str]:
    if m.opt.integrator not in (0, 3):
        yield f"integrator {INTEGRATORS[m.opt.integrator]!r} (Euler and implicitfast have derivatives)"
    if m.opt.integrator == 3 and _version() < (3, 11) and np.any(m.jnt_type == FREE):
        yield "integrator 'implicitfast' with free joints (needs MuJoCo 3.11 or later)"
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


def _of_tendons(m: Any) -> Iterator[str]:
    for i in range(m.ntendon):
        if m.wrap_type[m.tendon_adr[i]] == WRAP_JOINT:
            if getattr(m, "tendon_actfrclimited", np.zeros(m.ntendon))[i]:
                yield f"tendon {_name(m.tendon(i), i)}: limit of its actuators' total force"
            continue
        used = (
            m.tendon_limited[i]
            or m.tendon_stiffness[i]
            or m.tendon_damping[i]
            or m.tendon_frictionloss[i]
            or m.tendon_armature[i]
        )
        pulled = any(
            m.actuator_trntype[k] == TENDON and m.actuator_trnid[k, 0] == i for k in range(m.nu)
        )
        if used or pulled or any(m.eq_type[k] == 3 for k in range(m.neq)):
            yield f"tendon {_name(m.tendon(i), i)}: spatial (fixed ones have derivatives)"


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
