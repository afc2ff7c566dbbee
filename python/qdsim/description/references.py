"""Checks between the elements of a description: names, order, references, sizes of keyframes."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable

from qdsim.description import checks
from qdsim.description.constraints import Coupling, TendonCoupling
from qdsim.description.elements import JOINT_NQ, WORLD, Elements, Joint, Keyframe
from qdsim.description.sensors import ContactSensor, Sensor, TaxelSensor
from qdsim.description.shapes import Geom
from qdsim.description.tendons import Wrap


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the error message for an unknown name, with the most similar known names."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=3)
    if near:
        hint = "; did you mean " + ", ".join(repr(item) for item in near) + "?"
    elif names and len(names) <= 12:
        hint = "; there are " + ", ".join(repr(item) for item in names)
    else:
        hint = f"; there are {len(names)} of that kind"
    return f"no {kind} is named {name!r}{hint}"


def check_references(description: Elements) -> tuple[Keyframe, ...]:
    """Raise ValueError if elements do not fit together; return key frames with unit quaternions."""
    _check_bodies(description)
    _check_unique("joint", (joint.name for joint in description.joints))
    _check_unique("geom", (geom.name for geom in description.geoms))
    _check_unique("actuator", (actuator.name for actuator in description.actuators))
    _check_unique("keyframe", (keyframe.name for keyframe in description.keyframes))
    _check_unique("constraint", (item.name for item in description.constraints))
    _check_unique("tendon", (tendon.name for tendon in description.tendons))
    _check_unique("mesh", (mesh.name for mesh in description.meshes))
    _check_actuators(description)
    _check_contacts(description)
    _check_constraints(description)
    _check_tendons(description)
    _check_unique("sensor", (sensor.name for sensor in description.sensors))
    for sensor in description.sensors:
        check_sensor(description, sensor)
    return tuple(_checked_keyframe(description, keyframe) for keyframe in description.keyframes)


def _check_unique(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            plural = "bodies" if kind == "body" else f"{kind}s"
            raise ValueError(f"two {plural} are named {name!r}")
        seen.add(name)


def _check_bodies(description: Elements) -> None:
    bodies = description.bodies
    if not bodies or bodies[0].name != WORLD:
        raise ValueError("description: the first body must be the world, named 'world'")
    _check_unique("body", (body.name for body in bodies))
    path = [WORLD]  # from the world to the previous body
    known = {body.name for body in bodies}
    for body in bodies[1:]:
        if body.parent not in known:
            raise ValueError(f"body {body.name!r}: {unknown_name('body', body.parent, known)}")
        while path and path[-1] != body.parent:
            path.pop()
        if not path:
            raise ValueError(
                f"body {body.name!r}: bodies must be listed depth first, each after its parent "
                f"{body.parent!r} and the parent's earlier children (SceneBuilder sorts them)"
            )
        path.append(body.name)


def _check_actuators(description: Elements) -> None:
    joints = {joint.name: joint for joint in description.joints}
    for actuator in description.actuators:
        owner = f"actuator {actuator.name!r}"
        if actuator.tendon is not None:
            names = [tendon.name for tendon in description.tendons]
            if actuator.tendon not in names:
                raise ValueError(f"{owner}: {unknown_name('tendon', actuator.tendon, names)}")
            continue
        if actuator.joint is None or actuator.joint not in joints:
            raise ValueError(f"{owner}: {unknown_name('joint', str(actuator.joint), joints)}")
        joint = joints[actuator.joint]
        if not joint.scalar:
            raise ValueError(
                f"{owner}: joint {joint.name!r} is a {joint.type} joint, only hinge and slide "
                "joints can be actuated"
            )


def _check_contacts(description: Elements) -> None:
    bodies = [body.name for body in description.bodies]
    geoms = {geom.name for geom in description.geoms}
    meshes = {mesh.name for mesh in description.meshes}
    for exclude in description.excludes:
        for name in (exclude.body_a, exclude.body_b):
            if name not in bodies:
                raise ValueError(f"exclude: {unknown_name('body', name, bodies)}")
    seen: set[frozenset[str]] = set()
    for pair in description.pairs:
        for name in (pair.geom_a, pair.geom_b):
            if name not in geoms:
                raise ValueError(f"pair: {unknown_name('geom', name, geoms)}")
        key = frozenset((pair.geom_a, pair.geom_b))
        if key in seen:
            raise ValueError(f"pair {pair.geom_a!r} - {pair.geom_b!r} is given twice")
        seen.add(key)
    for geom in description.geoms:
        if geom.mesh is not None and geom.mesh not in meshes:
            raise ValueError(f"geom {geom.name!r}: {unknown_name('mesh', geom.mesh, meshes)}")


def _check_constraints(description: Elements) -> None:
    bodies = [body.name for body in description.bodies]
    joints = {joint.name: joint for joint in description.joints}
    for item in description.constraints:
        owner = f"constraint {item.name!r}"
        if isinstance(item, Coupling):
            _check_coupling(owner, item, joints)
            continue
        if isinstance(item, TendonCoupling):
            _check_tendon_coupling(owner, item, [tendon.name for tendon in description.tendons])
            continue
        for name in (item.body_a, item.body_b):
            if name not in bodies:
                raise ValueError(f"{owner}: {unknown_name('body', name, bodies)}")
        if item.body_a == item.body_b:
            raise ValueError(f"{owner}: body_a and body_b are both {item.body_a!r}")


def _check_coupling(owner: str, item: Coupling, joints: dict[str, Joint]) -> None:
    for name in (item.joint, item.follows):
        if name is not None and name not in joints:
            raise ValueError(f"{owner}: {unknown_name('joint', name, joints)}")
        if name is not None and not joints[name].scalar:
            raise ValueError(
                f"{owner}: joint {name!r} is a {joints[name].type} joint, only hinge and "
                "slide joints can be coupled"
            )
    if item.joint == item.follows:
        raise ValueError(f"{owner}: joint {item.joint!r} cannot follow itself")


def _check_tendon_coupling(owner: str, item: TendonCoupling, tendons: list[str]) -> None:
    for name in (item.tendon, item.follows):
        if name is not None and name not in tendons:
            raise ValueError(f"{owner}: {unknown_name('tendon', name, tendons)}")
    if item.tendon == item.follows:
        raise ValueError(f"{owner}: tendon {item.tendon!r} cannot follow itself")


def _check_tendons(description: Elements) -> None:
    bodies = {body.name for body in description.bodies}
    joints = {joint.name: joint for joint in description.joints}
    geoms = {geom.name: geom for geom in description.geoms}
    for tendon in description.tendons:
        owner = f"tendon {tendon.name!r}"
        for name, _ in tendon.joints:
            if name not in joints:
                raise ValueError(f"{owner}: {unknown_name('joint', name, joints)}")
            if not joints[name].scalar:
                raise ValueError(
                    f"{owner}: joint {name!r} is a {joints[name].type} joint, only hinge and slide "
                    "joints can be on a tendon"
                )
        for item in tendon.points:
            if isinstance(item, Wrap):
                _check_wrap(owner, item, geoms)
            at = item.side if isinstance(item, Wrap) else item
            if isinstance(at, tuple) and at[0] not in bodies:
                raise ValueError(f"{owner}: {unknown_name('body', at[0], bodies)}")


def _check_wrap(owner: str, item: Wrap, geoms: dict[str, Geom]) -> None:
    if item.geom not in geoms:
        raise ValueError(f"{owner}: {unknown_name('geom', item.geom, geoms)}")
    if geoms[item.geom].type not in ("sphere", "cylinder"):
        raise ValueError(
            f"{owner}: geom {item.geom!r} is a {geoms[item.geom].type}, tendons wrap around spheres and cylinders"
        )


def check_sensor(description: Elements, sensor: Sensor) -> None:
    """Raise ValueError if a sensor refers to an unknown name."""
    owner = f"sensor {sensor.name!r}"
    bodies = [body.name for body in description.bodies]
    named: list[tuple[str, str]] = []
    if isinstance(sensor, TaxelSensor):
        named.append(("geom", sensor.geom))
    elif sensor.site is not None:
        named.append(("body", sensor.site.body))
    if isinstance(sensor, ContactSensor):
        named += [side for side in (sensor.first, sensor.second) if side is not None]
    known = {"geom": [geom.name for geom in description.geoms], "body": bodies}
    for kind, name in named:
        of = "geom" if kind == "geom" else "body"
        if name not in known[of]:
            raise ValueError(f"{owner}: {unknown_name(of, name, known[of])}")


def _checked_keyframe(description: Elements, keyframe: Keyframe) -> Keyframe:
    owner = f"keyframe {keyframe.name!r}"
    nq = sum(JOINT_NQ[joint.type] for joint in description.joints)
    nu = len(description.actuators)
    if len(keyframe.q) != nq:
        raise ValueError(f"{owner}: q must hold {nq} numbers, got {len(keyframe.q)}")
    if len(keyframe.u) != nu:
        raise ValueError(f"{owner}: u must hold {nu} numbers, got {len(keyframe.u)}")
    q = list(keyframe.q)
    start = 0
    for joint in description.joints:
        end = start + JOINT_NQ[joint.type]
        if not joint.scalar:
            field = f"q of joint {joint.name!r}"
            q[end - 4 : end] = checks.quaternion(owner, field, q[end - 4 : end])
        start = end
    return dataclasses.replace(keyframe, q=tuple(q))
