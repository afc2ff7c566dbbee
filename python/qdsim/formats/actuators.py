"""The actuators of a compiled model: the joint or tendon that each moves, and the law of its force.

With gear g, length l = g q, gain g0, g1, g2 and bias b0, b1, b2, an actuator of MuJoCo applies the
force g ((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l') to the joint. In joint units this is a spring of
stiffness -b1 g^2 that rests at u / gear, where gear = -b1 g / g0, plus a damper of -b2 g^2 and
further terms of the same kind.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from qdsim.array_type import Array
from qdsim.description import Actuator, Tendon
from qdsim.description.arrays import rotation_matrix
from qdsim.formats.actuation import FileActuator
from qdsim.formats.reading import JOINT_NAMES, Reading, scalar

_TRANSMISSIONS = ("joint", "joint", "slidercrank", "tendon", "site", "body", "so3")  # mjtTrn
_DYNAMICS = (
    "none",
    "integrator",
    "filter",
    "filter",
    "muscle",
    "DC motor",
    "PID",
    "user",
)  # mjtDyn


def read_actuators(r: Reading) -> list[FileActuator]:
    """Read the enabled actuators of the file, in its order, and record which properties are ignored."""
    found = []
    for i, name in enumerate(r.actuator_names):
        group = int(r.m.actuator_group[i])
        off = r.disabled("actuation") or (
            0 <= group <= 30 and (int(r.m.opt.disableactuator) >> group) & 1
        )
        if off:
            r.ignored.append(f"actuator '{name}': switched off by the file")
        else:
            found.append(_actuator(r, i))
    return found


def _actuator(r: Reading, i: int) -> FileActuator:
    m, name = r.m, r.actuator_names[i]
    # An actuator may have several controls; this is the index of its first one.
    control = int(r.field("actuator_ctrladr", np.arange(i + 1))[i])
    where = _transmission(r, i, control)
    if where.problem is not None:
        return where
    force = _force_range(r, i)
    unknown = _unsupported(r, i)
    if unknown is not None:
        return replace(where, problem=unknown, force_range=force)
    dynamics = _dynamics(r, i)
    if dynamics in ("integrator", "filter"):
        what = (
            dynamics if dynamics == "integrator" else f"time constant {m.actuator_dynprm[i, 0]:g}"
        )
        r.ignored.append(f"actuator '{name}': {what}")
        r.refusals.differ("activations", r.ignored[-1])
    for what in ("armature", "delay"):
        value = np.ravel(r.field(f"actuator_{what}", np.zeros(i + 1))[i])
        if np.any(value):
            r.ignored.append(f"actuator '{name}': {what} {value[0]:g}")
    law = replace(_law(r, i, where), range=_command_range(r, i, control))
    if law.idle:
        return replace(where, problem="it never pulls: its gain or gear is zero", force_range=force)
    return replace(where, law=law, force_range=force)


def _command_range(r: Reading, i: int, control: int) -> tuple[float, float] | None:
    """Return the range of an actuator's command: of its control, of its activation, or of both.

    Without activations ("activations" left out) the command is the activation itself. Else it is a
    control, to which a filter's activation tends.
    """
    m, ranges = r.m, []
    filters = _dynamics(r, i) in ("integrator", "filter")
    by_activation = filters and "activations" in r.refusals.leave_out
    if bool(m.actuator_ctrllimited[control]) and not r.disabled("clampctrl") and not by_activation:
        ranges.append(m.actuator_ctrlrange[control])
    if filters and bool(m.actuator_actlimited[i]):
        ranges.append(m.actuator_actrange[i])
    if not ranges:
        return None
    low, high = max(float(x[0]) for x in ranges), min(float(x[1]) for x in ranges)
    return low, max(low, high)


def _kind(r: Reading, i: int) -> str:
    """Return the kind of element that an actuator acts on."""
    kind = int(r.m.actuator_trntype[i])
    return _TRANSMISSIONS[kind] if 0 <= kind < len(_TRANSMISSIONS) else "this kind of"


def _transmission(r: Reading, i: int, control: int) -> FileActuator:
    """Return the actuator with what it moves, or with the problem that prevents its simulation."""
    m, name = r.m, r.actuator_names[i]
    kind, target = _kind(r, i), int(m.actuator_trnid[i, 0])
    if kind == "tendon":
        tendon = r.names("tendon", m.ntendon, m.name_tendonadr)[target]
        return FileActuator(name, control, None, tendon=tendon)
    if kind == "site":
        return FileActuator(name, control, None, tendon=_thrust_name(r, i), thrust=True)
    if kind != "joint":
        return FileActuator(name, control, None, problem=f"{kind} transmission is not supported")
    joint = r.joint_names[target]
    if not scalar(int(m.jnt_type[target])):
        of = JOINT_NAMES[int(m.jnt_type[target])]
        problem = f"joint '{joint}' is a {of} joint, only hinges and slides can be actuated"
        return FileActuator(name, control, None, problem=problem)
    return FileActuator(name, control, joint)


def read_thrusts(r: Reading) -> tuple[Tendon, ...]:
    """Make tendons for the actuators at sites.

    Without a reference site, an actuator applies forces and moments that move with their bodies.
    With one, it acts on the position and rotation of its site relative to the reference site. The
    tendons include the gears.
    """
    m, found = r.m, []
    for i in range(len(m.actuator_trntype)):  # not m.nu: an actuator may have several controls
        if _kind(r, i) != "site":
            continue
        reach = _has_reference(r, i)
        site, other = (int(m.actuator_trnid[i, k]) for k in (0, int(reach)))
        axes = rotation_matrix(m.site_quat[other])
        gear = np.asarray(m.actuator_gear[i])
        places = [(site, m.site_pos[site])] + [(other, m.site_pos[other])] * reach
        places.append((other, axes @ gear[:3]))
        if reach and np.any(gear[3:]):
            places.append((site, _turned(m.site_quat[site], m.site_quat[other])))
        if not reach or np.any(gear[3:]):
            places.append((other, axes @ gear[3:]))
        points = tuple((_owner(r, at), tuple(map(float, part))) for at, part in places)
        found.append(Tendon(_thrust_name(r, i), points=points, thrust=not reach, reach=reach))
    return tuple(found)


def _turned(quat: Array, reference: Array) -> Array:
    """Return the rotation vector of ``quat`` times the inverse of ``reference``, frames of sites in their bodies."""
    import mujoco  # imported late, as in all modules that read files

    inverse, product, vector = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, reference)
    mujoco.mju_mulQuat(product, quat, inverse)
    mujoco.mju_quat2Vel(vector, product, 1.0)
    return vector


def _has_reference(r: Reading, i: int) -> bool:
    return int(r.m.actuator_trnid[i, 1]) >= 0


def _owner(r: Reading, site: int) -> str:
    body = int(r.m.site_bodyid[site])
    return r.body_names[body] if body else "world"


def _thrust_name(r: Reading, i: int) -> str:
    """Return the name of the tendon that is made for an actuator; no tendon of the file has it."""
    taken = r.names("tendon", r.m.ntendon, r.m.name_tendonadr)
    name = str(r.actuator_names[i])
    return f"{name} thrust" if name in taken else name


def _gear(r: Reading, i: int) -> float:
    """Return the scalar gear: 1 for an actuator at a site, whose tendon includes the gear."""
    return 1.0 if _kind(r, i) == "site" else float(r.m.actuator_gear[i, 0])


def _force_range(r: Reading, i: int) -> tuple[float, float] | None:
    """Return the limits of the force on the joint; MuJoCo's limits apply before the gear."""
    if not r.m.actuator_forcelimited[i]:
        return None
    ends = sorted(_gear(r, i) * float(x) for x in r.m.actuator_forcerange[i])
    return ends[0], ends[1]


def joint_force_ranges(r: Reading) -> dict[str, tuple[float, float]]:
    """Return the limits of the sum of all actuator forces on each joint that has such limits.

    An effort of zero in a URDF means that there is no limit.
    """
    limited = r.field("jnt_actfrclimited", np.zeros(r.m.njnt))
    found = {}
    for j, name in enumerate(r.joint_names):
        low, high = (float(x) for x in r.m.jnt_actfrcrange[j]) if limited[j] else (0.0, 0.0)
        if limited[j] and not (r.origin.urdf and low == high == 0.0):
            found[name] = low, high
    return found


def _dynamics(r: Reading, i: int) -> str:
    kind = int(r.m.actuator_dyntype[i])
    return _DYNAMICS[kind] if kind < len(_DYNAMICS) else "of this kind"


def _unsupported(r: Reading, i: int) -> str | None:
    """Return why a step cannot simulate the actuator, or None."""
    import mujoco

    m, muscle = r.m, int(mujoco.mjtGain.mjGAIN_MUSCLE)
    if np.ravel(r.field("actuator_plugin", np.full(i + 1, -1)))[i] >= 0:
        return "plugins are not supported"
    if muscle in (int(m.actuator_gaintype[i]), int(m.actuator_biastype[i])):
        return "muscles are not supported"
    if np.ravel(r.field("actuator_ctrlnum", np.ones(i + 1)))[i] != 1:
        return "actuators with several controls are not supported"
    dynamics = _dynamics(r, i)
    if dynamics == "integrator" and "activations" not in r.refusals.leave_out:
        return (
            "activation dynamics (integrator) are not supported (with leave_out='activations', its "
            "command is its activation)"
        )
    if dynamics not in ("none", "integrator", "filter"):
        return f"activation dynamics ({dynamics}) are not supported"
    if int(m.actuator_gaintype[i]) not in (0, 1) or int(m.actuator_biastype[i]) not in (0, 1):
        return "its gain or bias is neither fixed nor affine"
    if int(m.actuator_biastype[i]) == 1 and m.actuator_biasprm[i, 1] > 0.0:
        return f"its stiffness {-m.actuator_biasprm[i, 1]:g} is negative"
    return None


def _law(r: Reading, i: int, where: FileActuator) -> Actuator:
    m, name = r.m, where.name
    gear = _gear(r, i)
    g0, g1, g2 = (float(value) for value in m.actuator_gainprm[i, :3])
    if int(m.actuator_gaintype[i]) == 0:
        g1 = g2 = 0.0
    b0, b1, b2 = (float(value) for value in m.actuator_biasprm[i, :3])
    if _kind(r, i) == "site" and not _has_reference(r, i):
        g1 = b1 = 0.0  # these terms multiply the length, which is zero
    if int(m.actuator_biastype[i]) == 0:
        b0 = b1 = b2 = 0.0
    own = float(np.ravel(r.field("actuator_damping", np.zeros(i + 1))[i])[0])
    if np.any(r.field("actuator_dampingpoly", np.zeros(i + 1))[i]):
        r.ignored.append(f"actuator '{name}': damping that is not linear")
    if b2 > 0.0:
        r.ignored.append(f"actuator '{name}': negative damping {-b2:g}")
    spring = b1 < 0.0 and gear != 0.0
    return Actuator(
        name,
        where.joint,
        stiffness=-b1 * gear * gear,
        gear=(gear * -b1 / g0 if g0 else math.inf) if spring else 1.0,
        gain=0.0 if spring else gear * g0,
        bias=gear * b0,
        damping=max(0.0, own - b2) * gear * gear,
        gain_slope=(gear * gear * g1, gear * gear * g2),
        tendon=where.tendon,
    )
