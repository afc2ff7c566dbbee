"""Bilateral constraints of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdsim.description import Connect, Constraint, Coupling, TendonCoupling, Weld
from qdsim.formats.refusals import Kind

_KINDS = {0: "connect", 1: "weld", 2: "joint", 3: "tendon", 7: "distance"}  # mjtEq


@dataclass(frozen=True)
class Names:
    """Names of the elements that equalities refer to, by index; ``known_tendons`` are the supported tendons."""

    bodies: Sequence[str]
    joints: Sequence[str]
    tendons: Sequence[str]
    known_tendons: Collection[str]


@dataclass
class Equalities:
    """The constraints that were read, messages about unsupported ones, and about those switched off."""

    constraints: list[Constraint] = field(default_factory=list)
    problems: list[tuple[tuple[Kind, ...], str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def read_equalities(m: Any, labels: Sequence[str], names: Names) -> Equalities:
    """Read the equalities of a compiled model ``m``; ``labels`` are their names."""
    found = Equalities()
    for i, label in enumerate(labels):
        kind = _KINDS.get(int(m.eq_type[i]), "flex")
        if not m.eq_active0[i]:
            found.ignored.append(f"equality '{label}': {kind} constraint, switched off")
        elif kind == "joint":
            found.constraints.append(_coupling(m, i, label, names))
        elif kind in ("connect", "weld"):
            found.constraints.append(_bilateral(m, i, label, kind, names))
        elif kind == "tendon":
            _couple_tendons(found, m, i, label, names)
        else:
            text = f"equality '{label}': {kind} constraints are not supported"
            found.problems.append(((), text))
    return found


def _coupling(m: Any, i: int, label: str, names: Names) -> Coupling:
    other = int(m.eq_obj2id[i])
    return Coupling(
        name=label,
        joint=names.joints[int(m.eq_obj1id[i])],
        follows=names.joints[other] if other >= 0 else None,
        coefficients=tuple(map(float, m.eq_data[i][:5])),
        compliance=(_softness(m, i, _of_joints(m, i)),) * 2,
        solref=m.eq_solref[i],
        solimp=m.eq_solimp[i],
    )


def _couple_tendons(found: Equalities, m: Any, i: int, label: str, names: Names) -> None:
    tendons = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    labels = [names.tendons[k] if k >= 0 else None for k in tendons]
    for name in labels:
        if name is not None and name not in names.known_tendons:
            text = f"equality '{label}': its tendon '{name}' is not supported"
            found.problems.append((("tendons",), text))
            return
    inverse_mass = sum(float(m.tendon_invweight0[k]) for k in tendons if k >= 0)
    found.constraints.append(
        TendonCoupling(
            name=label,
            tendon=str(labels[0]),
            follows=labels[1],
            coefficients=tuple(map(float, m.eq_data[i][:5])),
            lengths=tuple(float(m.tendon_length0[k]) if k >= 0 else 0.0 for k in tendons),
            compliance=(_softness(m, i, inverse_mass),) * 2,
            solref=m.eq_solref[i],
            solimp=m.eq_solimp[i],
        )
    )


def _softness(m: Any, i: int, inverse_mass: float) -> float:
    """Return the compliance of an equality near zero violation.

    MuJoCo's force is f = (k d / (1 - d)) r / A, where r is the violation, k the spring per unit of mass
    (from solref), d the impedance at r = 0 (from solimp), and A the inverse mass.
    """
    time, damping = (float(value) for value in m.eq_solref[i][:2])
    least, most = (min(max(float(value), 1e-4), 0.9999) for value in m.eq_solimp[i][:2])
    if time > 0.0:
        time = max(time, 2.0 * float(m.opt.timestep))
        spring = 1.0 / (most * time * damping) ** 2
    else:
        spring = -time / most**2
    return inverse_mass * (1.0 - least) / (least * least * spring) if spring > 0.0 else 0.0


def _of_joints(m: Any, i: int) -> float:
    joints = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    return sum(float(m.dof_invweight0[int(m.jnt_dofadr[j])]) for j in joints if j >= 0)


def _bilateral(m: Any, i: int, label: str, kind: str, names: Names) -> Connect | Weld:
    """Read a connect or weld equality.

    Between bodies, MuJoCo keeps the anchors in eq_data (for welds the second anchor first). Between
    sites, the anchors are the positions of the sites.
    """
    import mujoco

    data = m.eq_data[i]
    objects = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    if int(m.eq_objtype[i]) == int(mujoco.mjtObj.mjOBJ_SITE):
        anchors = [m.site_pos[k] for k in objects]
        quat = _relative(m.site_quat[objects[0]], m.site_quat[objects[1]])
        objects = [int(m.site_bodyid[k]) for k in objects]
    else:
        anchors = [data[3:6], data[0:3]] if kind == "weld" else [data[0:3], data[3:6]]
        quat = data[6:10]
    bodies = [names.bodies[k] for k in objects]
    points = [tuple(map(float, anchor)) for anchor in anchors]
    moved, turned = (
        _softness(m, i, sum(float(m.body_invweight0[k][part]) for k in objects)) for part in (0, 1)
    )
    scale = float(data[10]) if kind == "weld" else 0.0  # a weld without moments is a connect
    law = {"solref": m.eq_solref[i], "solimp": m.eq_solimp[i]}
    if not scale:
        return Connect(label, bodies[0], bodies[1], points[0], points[1], (moved, moved), **law)
    turn = tuple(map(float, quat))
    # MuJoCo's rows of rotation, and hence their moments, are half the angle times ``scale``.
    compliance = (moved, 4.0 * turned / scale**2)
    return Weld(
        label,
        bodies[0],
        bodies[1],
        points[0],
        points[1],
        turn,
        compliance,
        torquescale=scale,
        **law,
    )


def _relative(a: Any, b: Any) -> Any:
    """Return a b^-1 for unit quaternions a and b."""
    inverse = np.asarray(b) * (1.0, -1.0, -1.0, -1.0)
    vector = a[0] * inverse[1:] + inverse[0] * a[1:] + np.cross(a[1:], inverse[1:])
    return np.concatenate([[a[0] * inverse[0] - a[1:] @ inverse[1:]], vector])
