"""The actuators of a compiled model: which joint each moves, and the spring that it is."""

from __future__ import annotations

import numpy as np

from qdsim.formats.actuation import FileActuator
from qdsim.formats.reading import JOINT_NAMES, Reading, scalar

_TRANSMISSIONS = {2: "slidercrank", 3: "tendon", 4: "site", 5: "body", 6: "so3"}  # mjtTrn


def read_actuators(r: Reading) -> list[FileActuator]:
    """Those that the file has not switched off, in its order; notes what of them is ignored."""
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
    # Some take several controls: those of this one begin here.
    control = int(r.field("actuator_ctrladr", np.arange(i + 1))[i])
    transmission = int(m.actuator_trntype[i])
    if transmission not in (0, 1):
        what = _TRANSMISSIONS.get(transmission, "this kind of")
        problem = f"{what} transmission is not supported"
        return FileActuator(name, control, None, problem=problem, tendon=what == "tendon")
    j = int(m.actuator_trnid[i, 0])
    joint = r.joint_names[j]
    if not scalar(int(m.jnt_type[j])):
        kind = JOINT_NAMES[int(m.jnt_type[j])]
        problem = f"joint '{joint}' is a {kind} joint, only hinges and slides can be actuated"
        return FileActuator(name, control, None, problem=problem)
    limit = _force_limit(r, i, j)
    stiffness, gear, problem = _spring(r, i)
    if problem:
        return FileActuator(name, control, joint, problem=problem, limit=limit)
    if m.actuator_biasprm[i, 2]:
        r.ignored.append(f"actuator '{name}': velocity gain {-m.actuator_biasprm[i, 2]:g}")
    if int(m.actuator_dyntype[i]) in (2, 3):
        r.ignored.append(f"actuator '{name}': time constant {m.actuator_dynprm[i, 0]:g}")
    for what in ("damping", "armature", "delay"):
        value = np.ravel(r.field(f"actuator_{what}", np.zeros(i + 1))[i])
        if np.any(value):
            r.ignored.append(f"actuator '{name}': {what} {value[0]:g}")
    limited = bool(m.actuator_ctrllimited[control]) and not r.disabled("clampctrl")
    low, high = m.actuator_ctrlrange[control]
    bounds = (float(low), float(high)) if limited else None
    return FileActuator(name, control, joint, stiffness, gear, bounds, limit=limit)


def _force_limit(r: Reading, i: int, j: int) -> str | None:
    m = r.m
    if m.actuator_forcelimited[i]:
        low, high = m.actuator_forcerange[i]
        return f"forcerange {low:g} {high:g}"
    if r.field("jnt_actfrclimited", np.zeros(m.njnt))[j] and not r.origin.urdf:
        low, high = m.jnt_actfrcrange[j]
        return f"actuatorfrcrange {low:g} {high:g} of joint '{r.joint_names[j]}'"
    return None


def _spring(r: Reading, i: int) -> tuple[float, float, str]:
    """Joint stiffness and effective gear of a position actuator, or what it is instead."""
    m = r.m
    gain, bias = m.actuator_gainprm[i], m.actuator_biasprm[i]
    gear = float(m.actuator_gear[i, 0])
    only = "is not a position actuator"
    if np.ravel(r.field("actuator_plugin", np.full(i + 1, -1)))[i] >= 0:
        return 0.0, 0.0, f"{only}: it is a plugin"
    if np.ravel(r.field("actuator_ctrlnum", np.ones(i + 1)))[i] != 1:
        return 0.0, 0.0, f"{only}: it has several controls"
    if int(m.actuator_gaintype[i]) != 0 or int(m.actuator_biastype[i]) not in (0, 1):
        return 0.0, 0.0, f"{only}: its gain or bias is neither fixed nor affine"
    if int(m.actuator_dyntype[i]) not in (0, 2, 3):
        return 0.0, 0.0, f"{only}: it has activation dynamics"
    position_gain = -float(bias[1]) if int(m.actuator_biastype[i]) == 1 else 0.0
    if position_gain == 0.0:
        return 0.0, 0.0, f"{only}: its force does not depend on the joint's position"
    if position_gain < 0.0:
        return 0.0, 0.0, f"its stiffness {position_gain:g} is negative"
    if bias[0]:
        return 0.0, 0.0, f"{only}: it has a constant force {bias[0]:g}"
    if gain[0] == 0.0 or gear == 0.0:
        return 0.0, 0.0, f"{only}: its gain or gear is zero"
    return position_gain * gear * gear, gear * position_gain / float(gain[0]), ""
