"""Tendons of a compiled model: sums over joints, and lines through sites and around geometries."""

from __future__ import annotations

import numpy as np

from qdsim.description import Pulley, Tendon, Wrap
from qdsim.formats.reading import Reading

_JOINT, _PULLEY, _SITE, _SPHERE, _CYLINDER = range(1, 6)  # of mjtWrap
_Points = tuple[tuple[str, tuple[float, ...]] | Wrap | Pulley, ...]


def read_tendons(r: Reading) -> tuple[Tendon, ...]:
    """Read the tendons whose length a step can compute; record ignored and unsupported properties."""
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
    damping = 0.0 if r.disabled("damper") else float(np.ravel(m.tendon_damping[i])[0])
    if any(m.wrap_type[k] == _PULLEY and m.wrap_prm[k] <= 0.0 for k in parts):
        acts = bool(stiffness or friction) or limited or _is_used(r, i)
        _refuse_pulley(r, owner, acts)
        return None
    stiffness = _linear_stiffness(r, i, owner, stiffness)
    _note(r, i, owner)
    rest = _interval(m.tendon_lengthspring[i]) if stiffness else (0.0, 0.0)
    joints, points = _course(r, parts)
    bounds = _interval(m.tendon_range[i]) if limited else None
    return Tendon(
        name,
        joints,
        points,
        bounds,
        stiffness,
        rest,
        friction,
        damping,
        margin=float(m.tendon_margin[i]),
        solreflimit=m.tendon_solref_lim[i],
        solimplimit=m.tendon_solimp_lim[i],
        solreffriction=m.tendon_solref_fri[i],
        solimpfriction=m.tendon_solimp_fri[i],
        invweight=float(m.tendon_invweight0[i]),
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _course(r: Reading, parts: range) -> tuple[tuple[tuple[str, float], ...], _Points]:
    """Return the joints that a tendon sums up, or the elements along its path; one of them is empty."""
    m = r.m
    objects = [int(m.wrap_objid[k]) for k in parts]
    if int(m.wrap_type[parts[0]]) == _JOINT:
        names = [r.joint_names[k] for k in objects]
        return tuple(zip(names, (float(m.wrap_prm[k]) for k in parts), strict=True)), ()
    points: list[tuple[str, tuple[float, ...]] | Wrap | Pulley] = []
    for k, item in zip(parts, objects, strict=True):
        number = float(m.wrap_prm[k])
        if int(m.wrap_type[k]) == _PULLEY:
            points.append(Pulley(number))
        elif int(m.wrap_type[k]) == _SITE:
            points.append(_site(r, item))
        else:
            side = None if number < 0.0 else _site(r, round(number))
            points.append(Wrap(r.geom_names[item], side))
    return (), tuple(points)


def _refuse_pulley(r: Reading, owner: str, acts: bool) -> None:
    if acts:
        r.refusals.refuse("tendons", f"{owner}: it has a pulley whose divisor is not positive")
    else:
        r.ignored.append(
            f"{owner}: exerts no force, and has a pulley whose divisor is not positive"
        )


def _linear_stiffness(r: Reading, i: int, owner: str, stiffness: float) -> float:
    """Return the stiffness of the spring; if the spring is not linear, refuse it and return zero."""
    polynomial = np.ravel(r.field("tendon_stiffnesspoly", np.zeros((i + 1, 1)))[i])
    if not np.any(polynomial) or r.disabled("spring"):
        return stiffness
    r.refusals.refuse("tendons", f"{owner}: springs that are not linear are not supported")
    return 0.0


def _site(r: Reading, site: int) -> tuple[str, tuple[float, ...]]:
    """Return the body of a site, and its position in the body."""
    body = int(r.m.site_bodyid[site])
    return r.body_names[body] if body else "world", tuple(map(float, r.m.site_pos[site]))


def _is_used(r: Reading, i: int) -> bool:
    """Return whether an actuator or an equality acts on the tendon."""
    m = r.m
    on_tendons = np.asarray(m.actuator_trntype) == 3  # mjtTrn
    pulled = np.any(on_tendons & (np.asarray(m.actuator_trnid).reshape(-1, 2)[:, 0] == i))
    tied = (np.asarray(m.eq_type) == 3) & np.asarray(m.eq_active0, dtype=bool)  # mjtEq
    objects = (np.asarray(m.eq_obj1id) == i) | (np.asarray(m.eq_obj2id) == i)
    return bool(pulled or np.any(tied & objects))


def _note(r: Reading, i: int, owner: str) -> None:
    m = r.m
    if np.any(r.field("tendon_dampingpoly", np.zeros((i + 1, 1)))[i]):
        r.ignored.append(f"{owner}: damping that is not linear")
    if np.any(r.field("tendon_armature", np.zeros(m.ntendon))[i]):
        r.ignored.append(f"{owner}: armature {m.tendon_armature[i]:g}")
