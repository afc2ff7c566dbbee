"""The content of a robot file as text: joints with units, actuators with limits, objects, ignored
elements."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.arguments import MOST_TOLD

if TYPE_CHECKING:
    from qdsim.array_type import Array
    from qdsim.description import Actuator, Joint
    from qdsim.model import Model

__all__ = [
    "contact_rows",
    "degrees_meant",
    "grouped",
    "joint_rows",
    "lag",
    "near_rows",
    "object_rows",
]

_NARROW = math.radians(2.0 * math.pi)
"""Width of range, rad, up to which a range in radians was probably read as degrees."""

_UNITS = {"hinge": "rad", "slide": "m"}


def joint_rows(model: Model) -> list[tuple[str, str, str, str]]:
    """List the name, type, range with its unit, and actuators of each joint."""
    drives: dict[str, list[str]] = {}
    for i, actuator in enumerate(model.description.actuators):
        if actuator.joint is not None:
            drives.setdefault(actuator.joint, []).append(_drive(model, i, actuator))
    rows = [
        (joint.name, joint.type, _range(joint), "; ".join(drives.get(joint.name, ["-"])))
        for joint in model.description.joints
    ]
    tendons = [
        (actuator.name, "tendon", _interval(actuator.range, ""), _drive(model, i, actuator))
        for i, actuator in enumerate(model.description.actuators)
        if actuator.joint is None
    ]
    return rows + tendons


def degrees_meant(model: Model) -> str | None:
    """Return a message if ranges of hinges or of their commands seem to mix up degrees and radians, or None."""
    return _joints_in_other_units(model) or _commands_in_degrees(model)


def lag(model: Model) -> tuple[float, str]:
    """Return the longest time by which damping makes an actuator's joint follow its spring late, s, and its name."""
    from qdsim.planning.execution.world import lag_of
    from qdsim.planning.task.robot import per_dof

    damping = per_dof(model, model.parameters.joint_damping)
    springs = bool(model.nu) and bool(np.all(np.asarray(model.parameters.actuator_stiffness) > 0.0))
    late = lag_of(model, damping) if springs and damping.any() else np.zeros(1)
    slowest = int(late.argmax())
    return float(late[slowest]), model.actuator_names[slowest] if model.nu else ""


def _joints_in_other_units(model: Model) -> str | None:
    from qdsim.planning.task.oddities import LARGE_ANGLE

    ranges = [j.range for j in model.description.joints if j.type == "hinge" and j.range]
    wide = [r for r in ranges if max(map(abs, r)) > LARGE_ANGLE and all(map(math.isfinite, r))]
    if wide:
        low, high = wide[0]
        return (
            f"{len(wide)} of {len(ranges)} hinges have ranges such as {low:.4g} to {high:.4g} rad: were degrees meant? "
            'MJCF reads degrees unless <compiler angle="radian"/> is there, URDF always radians'
        )
    narrow = [r for r in ranges if 0.0 < r[1] - r[0] <= _NARROW]
    if narrow and len(narrow) == len(ranges):
        low, high = narrow[0]
        return (
            f"all {len(ranges)} ranges of hinges are as narrow as {math.degrees(low):.3g} to {math.degrees(high):.3g} "
            'deg: were radians meant? MJCF reads degrees unless <compiler angle="radian"/> is there'
        )
    return None


def _commands_in_degrees(model: Model) -> str | None:
    """Check commands of hinges that have a range; hinges without one may turn by any angle."""
    from qdsim.planning.task.oddities import LARGE_ANGLE

    hinges = {j.name for j in model.description.joints if j.type == "hinge" and j.range}
    pulled = [
        (actuator.name, [float(u) / actuator.gear for u in actuator.range])
        for actuator in model.description.actuators
        if actuator.joint in hinges and actuator.range and actuator.stiffness > 0.0
    ]
    wide = [
        (name, ends)
        for name, ends in pulled
        if max(map(abs, ends)) > LARGE_ANGLE and all(map(math.isfinite, ends))
    ]
    if not wide:
        return None
    name, (low, high) = wide[0]
    return (
        f"{len(wide)} of {len(pulled)} position actuators move hinges {low:.4g} to {high:.4g} rad ({name!r}): "
        "were degrees meant? MJCF reads ctrlrange in radians, whatever <compiler angle> says"
    )


def object_rows(model: Model, q: Array) -> list[dict[str, Any]]:
    """List the name, joints, mass (kg) and size (m, along its own axes) of each unactuated object."""
    from qdsim.planning.task.objects import objects_of

    names = objects_of(model)
    parents = {body.name: body.parent for body in model.description.bodies}
    found = []
    for name in names:
        if parents[name] in names:
            continue
        carried = _carried(model, name)
        joints = [j for b in carried for j in model.description.bodies[b].joints]
        mass = float(sum(model.parameters.body_mass[b] for b in carried))
        size = _size(model, q, carried)
        found.append(
            {
                "name": name,
                "joints": [f"{joint.name} ({joint.type})" for joint in joints],
                "mass": mass,
                "size": None if size is None else [float(s) for s in size],
            }
        )
    return found


def contact_rows(model: Model, q: Array, margin: float) -> list[dict[str, Any]]:
    """List the pairs of geometries that are nearer than a margin (m), nearest first.

    Each row has the names of both geometries, the names of both bodies (for the world, the name of
    the geometry), and the distance (m) of the nearest points.
    """
    nearest: dict[tuple[str, str], dict[str, Any]] = {}
    for contact in model.collide(q, margin):
        names = [_names(model, contact, side) for side in "ab"]
        pair, distance = (names[0][0], names[1][0]), float(contact["dist"])
        if pair not in nearest or distance < nearest[pair]["distance"]:
            bodies = [body for _, body in names]
            nearest[pair] = {"pair": list(pair), "bodies": bodies, "distance": distance}
    return sorted(nearest.values(), key=lambda row: row["distance"])


def near_rows(contacts: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Write rows of ``contact_rows`` as text: for each pair of bodies, their names and the least distance."""
    pairs: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for contact in contacts:
        pairs.setdefault(tuple(contact["bodies"]), []).append(contact)
    rows = []
    for bodies, near in pairs.items():
        alone = len(near) == 1
        names = " and ".join(near[0]["pair"] if alone else bodies)
        count = "" if alone else f" ({len(near)} pairs of geometries)"
        rows.append((names + count, f"{round(1e3 * near[0]['distance'], 4) + 0.0:.3g} mm"))
    return rows


def grouped(texts: Sequence[str]) -> list[str]:
    """Merge texts of one kind: ``joint 'a': armature 0.1`` and ``joint 'b': armature 0.2`` become one line."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        kinds.setdefault(_kind(text), []).append(text)
    lines = []
    for (owner, said), members in kinds.items():
        if len(members) == 1 or not owner:
            lines += members
            continue
        names = [text.split("'")[1] for text in members]
        told = ", ".join(names[:MOST_TOLD]) + (", ..." if len(names) > MOST_TOLD else "")
        lines.append(f"{' '.join(said.replace('#', '').split())} of {len(names)} {owner}s ({told})")
    return lines


def _kind(text: str) -> tuple[str, str]:
    """Return the kind of element ("joint") and the text with # for numbers; ``("", text)`` if it names no element."""
    match = re.match(r"([^':]+?) '[^']*': (.*)", text)
    if not match:
        return "", text
    return match.group(1), re.sub(r"(?<!\w)[-+]?\d[\d.e+-]*", "#", match.group(2))


def _range(joint: Joint) -> str:
    if joint.type == "free":
        return "m, rad"
    if joint.type == "ball":
        return "rad" if joint.range is None else f"to {joint.range[1]:.4g} rad"
    told = _interval(joint.range, _UNITS[joint.type])
    if joint.type == "hinge" and joint.range is not None and all(map(math.isfinite, joint.range)):
        low, high = (math.degrees(end) for end in joint.range)
        told += f" ({low:.0f} to {high:.0f} deg)"
    return told


def _interval(ends: tuple[float, float] | None, unit: str) -> str:
    if ends is None or not any(map(math.isfinite, ends)):
        return f"any {unit}".strip()
    return f"{ends[0]:.4g} to {ends[1]:.4g} {unit}".strip()


def _drive(model: Model, index: int, actuator: Actuator) -> str:
    """Describe an actuator: its kind, its stiffness, and its limits."""
    unit, force = "rad", "Nm"
    kind = next((j.type for j in model.description.joints if j.name == actuator.joint), None)
    if kind != "hinge":
        unit, force = "m", "N"
    parts = []
    if actuator.stiffness > 0.0:
        word = "spring" if not math.isfinite(actuator.gear) else "position"
        parts.append(f"{word}, {actuator.stiffness:.4g} {force}/{unit}")
    if actuator.gain:
        parts.append(f"motor, {actuator.gain:.4g} {force} per unit")
    if not parts:
        parts.append("damper" if actuator.damping else "idle")
    low, high = float(model.u_lower[index]), float(model.u_upper[index])
    if math.isfinite(low) or math.isfinite(high):
        parts.append(f"u {low:.4g} to {high:.4g}")
    if actuator.force_range is not None and any(map(math.isfinite, actuator.force_range)):
        least, most = actuator.force_range
        same = f"at most {most:.4g} {force}"
        parts.append(same if least == -most else f"{least:.4g} to {most:.4g} {force}")
    else:
        parts.append("any force")
    return ", ".join(parts)


def _carried(model: Model, name: str) -> list[int]:
    """Return the indices of a body and of all bodies that it carries."""
    bodies = model.description.bodies
    found = {name}
    for body in bodies[1:]:
        if body.parent in found:
            found.add(body.name)
    return [b for b, body in enumerate(bodies) if body.name in found]


def _size(model: Model, q: Array, carried: Sequence[int]) -> Array | None:
    """Return the size (m) of the box around some bodies, along the first body's axes; None if they have no shape."""
    from qdsim.planning.drawing.solids import solids_of

    pos, rot = model.body_poses(q)
    solids = solids_of(model, [False] * len(model.body_names), "collision")
    corners = [pos[s.body] + s.corners @ rot[s.body].T for s in solids if s.body in carried]
    if not corners:
        return None
    points = np.concatenate(corners) @ rot[carried[0]]
    return np.asarray(points.max(axis=0) - points.min(axis=0))


def _names(model: Model, contact: Any, side: str) -> tuple[str, str]:
    """Return the names of a geometry in contact (with its body) and of its body.

    For a geometry of the world, both are the name of the geometry.
    """
    name = model.geom_names[contact[f"geom_{side}"]]
    body = model.body_names[contact[f"body_{side}"]]
    if body == "world":
        return name, name
    return name if name == body else f"{body}/{name}", body
