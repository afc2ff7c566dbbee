"""Bilateral constraints of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdsim.description import Connect, Constraint, Coupling, Weld
from qdsim.formats.refusals import Kind

_KINDS = {0: "connect", 1: "weld", 2: "joint", 3: "tendon", 7: "distance"}  # mjtEq
_SITE = 6  # mjtObj


@dataclass(frozen=True)
class Names:
    """Of the elements that constraints refer to, by index."""

    bodies: Sequence[str]
    joints: Sequence[str]


@dataclass
class Equalities:
    """What was read, what cannot be honoured, and what is switched off."""

    constraints: list[Constraint] = field(default_factory=list)
    problems: list[tuple[tuple[Kind, ...], str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def read_equalities(m: Any, labels: Sequence[str], names: Names) -> Equalities:
    """The equalities of a compiled model ``m``; ``labels`` are their names."""
    found = Equalities()
    for i, label in enumerate(labels):
        kind = _KINDS.get(int(m.eq_type[i]), "flex")
        if not m.eq_active0[i]:
            found.ignored.append(f"equality '{label}': {kind} constraint, switched off")
        elif kind == "joint":
            found.constraints.append(_coupling(m, i, label, names))
        elif kind in ("connect", "weld"):
            found.constraints.append(_bilateral(m, i, label, kind, names))
        else:
            text = f"equality '{label}': {kind} constraints are not supported"
            found.problems.append((("tendons",) if kind == "tendon" else (), text))
    return found


def _coupling(m: Any, i: int, label: str, names: Names) -> Coupling:
    other = int(m.eq_obj2id[i])
    return Coupling(
        name=label,
        joint=names.joints[int(m.eq_obj1id[i])],
        follows=names.joints[other] if other >= 0 else None,
        coefficients=tuple(map(float, m.eq_data[i][:5])),
    )


def _bilateral(m: Any, i: int, label: str, kind: str, names: Names) -> Connect | Weld:
    """Between bodies MuJoCo keeps the anchors in eq_data (welds: the second one first), between
    sites they are the sites."""
    data = m.eq_data[i]
    objects = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    if int(m.eq_objtype[i]) == _SITE:
        anchors = [m.site_pos[k] for k in objects]
        quat = _relative(m.site_quat[objects[0]], m.site_quat[objects[1]])
        objects = [int(m.site_bodyid[k]) for k in objects]
    else:
        anchors = [data[3:6], data[0:3]] if kind == "weld" else [data[0:3], data[3:6]]
        quat = data[6:10]
    bodies = [names.bodies[k] for k in objects]
    points = [tuple(map(float, anchor)) for anchor in anchors]
    if kind == "connect":
        return Connect(label, bodies[0], bodies[1], points[0], points[1])
    return Weld(label, bodies[0], bodies[1], points[0], points[1], tuple(map(float, quat)))


def _relative(a: Any, b: Any) -> Any:
    """a b^-1 for unit quaternions."""
    inverse = np.asarray(b) * (1.0, -1.0, -1.0, -1.0)
    vector = a[0] * inverse[1:] + inverse[0] * a[1:] + np.cross(a[1:], inverse[1:])
    return np.concatenate([[a[0] * inverse[0] - a[1:] @ inverse[1:]], vector])
