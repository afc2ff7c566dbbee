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
    acts = [
        what
        for what, value in (
            ("stiffness", 0.0 if r.disabled("spring") else m.tendon_stiffness[i]),
            ("dry friction", 0.0 if r.disabled("frictionloss") else m.tendon_frictionloss[i]),
        )
        if np.any(value)
    ]
    obstacles = [_WRAPS[kind] for k in parts if (kind := int(m.wrap_type[k])) in _WRAPS]
    if obstacles:
        if acts or limited or _is_used(r, i):
            r.refusals.refuse("tendons", f"{owner}: it has {obstacles[0]}, which is not supported")
        else:
            r.ignored.append(f"{owner}: exerts no force, and has {obstacles[0]}")
        return None
    if acts:
        r.refusals.refuse("tendons", f"{owner}: {acts[0]} of tendons is not supported")
    _note(r, i, owner, limited)
    bounds = (float(m.tendon_range[i][0]), float(m.tendon_range[i][1])) if limited else None
    if int(m.wrap_type[begin]) == _JOINT:
        joints = [(r.joint_names[int(m.wrap_objid[k])], float(m.wrap_prm[k])) for k in parts]
        return Tendon(name, joints=tuple(joints), range=bounds)
    sites = [int(m.wrap_objid[k]) for k in parts]
    points = [(_body(r, k), tuple(map(float, m.site_pos[k]))) for k in sites]
    return Tendon(name, points=tuple(points), range=bounds)


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
