"""Tendons of a compiled model: sums over joints, and straight lines through sites."""

from __future__ import annotations

import numpy as np

from qdsim.description import Tendon
from qdsim.formats.reading import SOLIMP, SOLREF, Reading, unusual

_JOINT, _SITE = 1, 3  # mjtWrap
_WRAPS = {2: "a pulley", 4: "a sphere that it wraps around", 5: "a cylinder that it wraps around"}


def read_tendons(r: Reading) -> tuple[Tendon, ...]:
    """Those whose length a step knows; notes what of them is ignored and refused."""
    result = []
    for i, name in enumerate(r.names("tendon", r.m.ntendon, r.m.name_tendonadr)):
        tendon = _tendon(r, i, name)
        if tendon is not None:
            result.append(tendon)
    return tuple(result)


def _tendon(r: Reading, i: int, name: str) -> Tendon | None:
    m, owner = r.m, f"tendon '{name}'"
    begin = int(m.tendon_adr[i])
    parts = range(begin, begin + int(m.tendon_num[i]))
    limited = bool(m.tendon_limited[i]) and not r.disabled("limit")
    stiffness = 0.0 if r.disabled("spring") else float(m.tendon_stiffness[i])
    friction = 0.0 if r.disabled("frictionloss") else float(m.tendon_frictionloss[i])
    obstacles = [_WRAPS[kind] for k in parts if (kind := int(m.wrap_type[k])) in _WRAPS]
    if obstacles:
        if stiffness or friction or limited or _is_used(r, i):
            r.refusals.refuse("tendons", f"{owner}: it has {obstacles[0]}, which is not supported")
        else:
            r.ignored.append(f"{owner}: exerts no force, and has {obstacles[0]}")
        return None
    poly = np.ravel(r.field("tendon_stiffnesspoly", np.zeros((i + 1, 1)))[i])
    if np.any(poly) and not r.disabled("spring"):
        r.refusals.refuse("tendons", f"{owner}: springs that are not linear are not supported")
        stiffness = 0.0
    _note(r, i, owner, limited)
    bounds = (float(m.tendon_range[i][0]), float(m.tendon_range[i][1])) if limited else None
    rest = (float(m.tendon_lengthspring[i][0]), float(m.tendon_lengthspring[i][1]))
    rest = rest if stiffness else (0.0, 0.0)
    if int(m.wrap_type[begin]) == _JOINT:
        joints = [(r.joint_names[int(m.wrap_objid[k])], float(m.wrap_prm[k])) for k in parts]
        return Tendon(name, tuple(joints), (), bounds, stiffness, rest, friction)
    sites = [int(m.wrap_objid[k]) for k in parts]
    points = [(_body(r, k), tuple(map(float, m.site_pos[k]))) for k in sites]
    return Tendon(name, (), tuple(points), bounds, stiffness, rest, friction)


def _body(r: Reading, site: int) -> str:
    body = int(r.m.site_bodyid[site])
    return r.body_names[body] if body else "world"


def _is_used(r: Reading, i: int) -> bool:
    """Whether an actuator or an equality acts on the tendon."""
    m = r.m
    on_tendons = np.asarray(m.actuator_trntype) == 3  # mjtTrn
    pulled = np.any(on_tendons & (np.asarray(m.actuator_trnid).reshape(-1, 2)[:, 0] == i))
    tied = (np.asarray(m.eq_type) == 3) & np.asarray(m.eq_active0, dtype=bool)  # mjtEq
    objects = (np.asarray(m.eq_obj1id) == i) | (np.asarray(m.eq_obj2id) == i)
    return bool(pulled or np.any(tied & objects))


def _note(r: Reading, i: int, owner: str, limited: bool) -> None:
    m = r.m
    if np.any(m.tendon_damping[i]):
        r.ignored.append(f"{owner}: damping {np.ravel(m.tendon_damping[i])[0]:g}")
    if np.any(r.field("tendon_armature", np.zeros(m.ntendon))[i]):
        r.ignored.append(f"{owner}: armature {m.tendon_armature[i]:g}")
    if limited and m.tendon_margin[i]:
        r.ignored.append(f"{owner}: margin {m.tendon_margin[i]:g} of its limits")
    if limited and (
        unusual(m.tendon_solref_lim, SOLREF, i) or unusual(m.tendon_solimp_lim, SOLIMP, i)
    ):
        r.ignored.append(f"{owner}: solver parameters of its limits")
