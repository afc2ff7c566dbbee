"""Writes a description as MJCF.

Everything is written explicitly (radians, inertias, full precision), so that MuJoCo's compiler
reproduces the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from xml.etree import ElementTree

import numpy as np

from qdsim.array_type import Array
from qdsim.description.arrays import rotation_matrix
from qdsim.description.constraints import Constraint, Coupling, TendonCoupling, Weld
from qdsim.description.contact_solver import ContactSolver
from qdsim.description.elements import WORLD, Actuator, Body, Elements, Joint, Pair
from qdsim.description.height_fields import HeightField
from qdsim.description.pairs import candidate_pairs
from qdsim.description.sensors import ContactSensor, TaxelSensor
from qdsim.description.shapes import Geom
from qdsim.description.tendons import Pulley, Tendon, Wrap

Element = ElementTree.Element


def write_mjcf(description: Elements) -> str:
    """Return the MJCF document as text."""
    root = Element("mujoco", model=description.name)
    ElementTree.SubElement(
        root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false"
    )
    _write_option(root, description)
    fields = {geom.hfield: geom.name for geom in reversed(description.geoms) if geom.hfield}
    if description.meshes or fields:
        assets = ElementTree.SubElement(root, "asset")
        for field, name in fields.items():
            _write_hfield(assets, field, name)
        for mesh in description.meshes:
            element = ElementTree.SubElement(
                assets,
                "mesh",
                name=mesh.name,
                inertia="shell",
                vertex=_text(mesh.vertices.ravel()),
                face=" ".join(str(item) for item in mesh.faces.ravel()),
            )
            if (
                mesh.hull is not None
            ):  # the number of hull vertices, where a file limits it, is part of the shape
                element.set("maxhullvert", str(len(np.unique(mesh.hull))))
    _write_softness(root, description)
    _write_bodies(root, description, fields)
    _write_contacts(root, description)
    _write_constraints(root, description)
    _write_tendons(root, description)
    _write_actuators(root, description)
    _write_sensors(root, description)
    if description.keyframes:
        keyframes = ElementTree.SubElement(root, "keyframe")
        for keyframe in description.keyframes:
            key = ElementTree.SubElement(
                keyframes, "key", name=keyframe.name, qpos=_text(keyframe.q)
            )
            if keyframe.u:
                key.set("ctrl", _text(keyframe.u))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _write_option(root: Element, description: Elements) -> None:
    option = ElementTree.SubElement(root, "option", gravity=_text(description.gravity))
    solver, flags = description.contact_solver, {}
    if replace(solver, springs="integrator") != ContactSolver():
        option.set("cone", solver.cone)
        option.set("impratio", repr(solver.impratio))
        option.set("integrator", solver.integrator)
    if solver.timestep is None:
        flags["refsafe"] = "disable"
    elif solver.timestep != ContactSolver().timestep:
        option.set("timestep", repr(solver.timestep))
    if not description.parent_filter:
        flags["filterparent"] = "disable"
    if flags:
        ElementTree.SubElement(option, "flag", flags)


_SOLVER = ("solref", "solimp", "solreflimit", "solimplimit", "solreffriction", "solimpfriction")


def _write_solver(element: Element, item: Geom | Pair | Joint | Tendon | Constraint) -> None:
    """Write the solver parameters that differ from MuJoCo's defaults."""
    default = {field.name: field.default for field in fields(item)}
    for name in _SOLVER:
        if name in default and getattr(item, name) != default[name]:
            element.set(name, _text(getattr(item, name)))
    if isinstance(item, Joint | Tendon) and item.margin:
        element.set("margin", repr(item.margin))
    if isinstance(item, Geom) and item.solmix != default["solmix"]:
        element.set("solmix", repr(item.solmix))


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _write_hfield(assets: Element, field: HeightField, name: str) -> None:
    """Write a height field: MJCF gives heights relative to the lowest one, divided by the largest
    difference, with the last row first."""
    low, rise = float(field.heights.min()), float(np.ptp(field.heights))
    rows, columns = field.heights.shape
    element = ElementTree.SubElement(assets, "hfield", name=name, nrow=str(rows), ncol=str(columns))
    element.set("size", _text((*field.size, rise or field.base, field.base)))
    element.set("elevation", _text((field.heights[::-1].ravel() - low) / (rise or 1.0)))


def _above(pos: Iterable[float], quat: Iterable[float], height: float) -> Array:
    """Return the point at ``height`` along the z axis of the frame."""
    return np.asarray(pos) + height * rotation_matrix(quat)[:, 2]


def _write_softness(root: Element, description: Elements) -> None:
    """Write softness as custom elements, in the form that ``qdsim.formats.softness`` reads."""
    soft = [(geom.name, geom.soft) for geom in description.geoms if geom.soft is not None]
    custom = ElementTree.SubElement(root, "custom") if soft else root
    for name, one in soft:
        numbers: tuple[float, ...] = (one.modulus or 0.0, one.dissipation, one.hint or 0.0)
        numbers += () if one.thickness is None else (one.thickness,)
        ElementTree.SubElement(custom, "numeric", name=f"soft:{name}", data=_text(numbers))
        if one.field is not None:
            for part, text in (
                ("vertices", _text(one.field.vertices.ravel())),
                ("tetrahedra", " ".join(map(str, one.field.tetrahedra.ravel().tolist()))),
                ("pressure", _text(one.field.pressure)),
            ):
                ElementTree.SubElement(custom, "text", name=f"soft:{name} {part}", data=text)


def _write_bodies(root: Element, description: Elements, fields: dict[HeightField, str]) -> None:
    elements = {WORLD: ElementTree.SubElement(root, "worldbody")}
    for body in description.bodies:
        if body.name != WORLD:
            elements[body.name] = _write_body(elements[body.parent], body)
        for geom in body.geoms:
            _write_geom(elements[body.name], geom, fields)


def _write_body(parent: Element, body: Body) -> Element:
    element = ElementTree.SubElement(
        parent, "body", name=body.name, pos=_text(body.pos), quat=_text(body.quat)
    )
    if body.mass > 0.0 or np.any(body.inertia):
        matrix = body.inertia
        full = (
            matrix[0][0],
            matrix[1][1],
            matrix[2][2],
            matrix[0][1],
            matrix[0][2],
            matrix[1][2],
        )
        inertial = ElementTree.SubElement(
            element, "inertial", pos=_text(body.com), mass=repr(body.mass)
        )
        if any(full[3:]):
            inertial.set("fullinertia", _text(full))
        else:
            inertial.set("diaginertia", _text(full[:3]))
    if body.gravcomp:
        element.set("gravcomp", repr(body.gravcomp))
    if body.mocap:
        element.set("mocap", "true")
    for joint in body.joints:
        _write_joint(element, joint)
    return element


def _write_joint(parent: Element, joint: Joint) -> None:
    element = ElementTree.SubElement(
        parent, "joint", name=joint.name, type=joint.type, pos=_text(joint.pos)
    )
    element.set("damping", repr(joint.damping))
    element.set("armature", repr(joint.armature))
    element.set("frictionloss", repr(joint.friction))
    element.set("stiffness", repr(joint.stiffness))
    _write_solver(element, joint)
    if joint.scalar:
        element.set("axis", _text(joint.axis))
        element.set("ref", repr(joint.ref))
        element.set("springref", repr(joint.springref))
    if joint.range is not None:
        # MuJoCo has no one-sided limits; 1e10 m or rad is as good as none.
        element.set("limited", "true")
        element.set("range", _text(np.clip(joint.range, -1e10, 1e10)))


def _write_geom(parent: Element, geom: Geom, fields: dict[HeightField, str]) -> None:
    if geom.type == "cloud":
        raise ValueError(f"geom {geom.name!r}: MJCF has no point clouds")
    element = ElementTree.SubElement(
        parent,
        "geom",
        name=geom.name,
        type=geom.type,
        pos=_text(geom.pos),
        quat=_text(geom.quat),
        friction=_text(geom.friction),
        condim=str(geom.condim),
        priority=str(geom.priority),
        contype=str(geom.contype),
        conaffinity=str(geom.conaffinity),
        margin=repr(geom.margin),
        rgba=_text(geom.rgba),
    )
    _write_solver(element, geom)
    if geom.mesh is not None:
        element.set("mesh", geom.mesh)
    elif geom.hfield is not None:
        element.set("hfield", fields[geom.hfield])
        element.set("pos", _text(_above(geom.pos, geom.quat, float(geom.hfield.heights.min()))))
    elif geom.type == "plane":
        # MuJoCo wants a positive grid spacing even for a plane without end.
        element.set("size", _text((geom.size[0], geom.size[1], 1.0)))
    else:
        element.set("size", _text(geom.size))


def _write_contacts(root: Element, description: Elements) -> None:
    """Write explicit pairs and excludes.

    MJCF combines friction by the maximum. With harmonic combination, pairs of geometries with
    different friction are therefore written as explicit pairs.
    """
    contact = ElementTree.SubElement(root, "contact")
    written = {frozenset((pair.geom_a, pair.geom_b)) for pair in description.pairs}
    for pair in description.pairs:
        element = ElementTree.SubElement(
            contact,
            "pair",
            geom1=pair.geom_a,
            geom2=pair.geom_b,
            condim=str(pair.condim),
            friction=_text(pair.friction),
            margin=repr(pair.margin),
        )
        _write_solver(element, pair)
    if description.friction_combination == "harmonic":
        geoms = description.geoms
        pairs = candidate_pairs(description)
        for i, (a, b) in enumerate(pairs.geom.tolist()):
            same = geoms[a].friction == geoms[b].friction
            if same or frozenset((geoms[a].name, geoms[b].name)) in written:
                continue
            ElementTree.SubElement(
                contact,
                "pair",
                geom1=geoms[a].name,
                geom2=geoms[b].name,
                condim=str(pairs.dim[i]),
                friction=_text(pairs.friction[i]),
                margin=repr(float(pairs.margin[i])),
                solref=_text(pairs.solref[i]),
                solimp=_text(pairs.solimp[i]),
            )
    for exclude in description.excludes:
        ElementTree.SubElement(contact, "exclude", body1=exclude.body_a, body2=exclude.body_b)


def _write_constraints(root: Element, description: Elements) -> None:
    """Write connects, welds and couplings.

    MuJoCo computes the second anchor of a connect from the configuration of the file. Connects and
    welds are therefore written with two sites, one at each anchor.
    """
    if not description.constraints:
        return
    parent = ElementTree.SubElement(root, "equality")
    bodies = {element.get("name"): element for element in root.iter("body")}
    world = root.find("worldbody")
    for item in description.constraints:
        if isinstance(item, TendonCoupling):
            _write_tendon_coupling(parent, item)
            continue
        if isinstance(item, Coupling):
            element = ElementTree.SubElement(
                parent,
                "joint",
                name=item.name,
                joint1=item.joint,
                polycoef=_text(item.coefficients),
            )
            if item.follows is not None:
                element.set("joint2", item.follows)
            _write_solver(element, item)
            continue
        kind = "weld" if isinstance(item, Weld) else "connect"
        element = ElementTree.SubElement(parent, kind, name=item.name)
        for side, body, anchor in (
            ("1", item.body_a, item.anchor_a),
            ("2", item.body_b, item.anchor_b),
        ):
            owner = bodies[body] if body != WORLD else world
            assert owner is not None
            site = ElementTree.SubElement(
                owner, "site", name=f"{item.name} {side}", pos=_text(anchor)
            )
            if side == "1" and isinstance(item, Weld):
                site.set("quat", _text(item.quat))
            element.set(f"site{side}", f"{item.name} {side}")
        _write_solver(element, item)
        if isinstance(item, Weld) and item.torquescale != 1.0:
            element.set("torquescale", repr(item.torquescale))


def _write_tendon_coupling(parent: Element, item: TendonCoupling) -> None:
    """Write a tendon coupling.

    MuJoCo measures lengths from those at its reference configuration; ``lengths`` of the coupling
    is not written.
    """
    element = ElementTree.SubElement(parent, "tendon", name=item.name, tendon1=item.tendon)
    element.set("polycoef", _text(item.coefficients))
    _write_solver(element, item)
    if item.follows is not None:
        element.set("tendon2", item.follows)


def _write_tendons(root: Element, description: Elements) -> None:
    if not description.tendons:
        return
    parent = ElementTree.SubElement(root, "tendon")
    for tendon in description.tendons:
        if tendon.thrust or tendon.reach:
            continue  # written with its actuators
        element = ElementTree.SubElement(
            parent, "fixed" if tendon.joints else "spatial", name=tendon.name
        )
        if tendon.range is not None:
            element.set("limited", "true")
            element.set("range", _text(np.clip(tendon.range, -1e10, 1e10)))
        if tendon.stiffness:
            element.set("stiffness", repr(tendon.stiffness))
            element.set("springlength", _text(tendon.springrange))
        if tendon.frictionloss:
            element.set("frictionloss", repr(tendon.frictionloss))
        if tendon.damping:
            element.set("damping", repr(tendon.damping))
        _write_solver(element, tendon)
        for joint, coefficient in tendon.joints:
            ElementTree.SubElement(element, "joint", joint=joint, coef=repr(coefficient))
        _write_path(root, element, tendon)


def _write_path(root: Element, element: Element, tendon: Tendon) -> None:
    owners = {body.get("name"): body for body in root.iter("body")}

    def site(name: str, body: str, point: Iterable[float]) -> str:
        owner = owners[body] if body != WORLD else root.find("worldbody")
        assert owner is not None
        ElementTree.SubElement(owner, "site", name=name, pos=_text(point))
        return name

    for i, item in enumerate(tendon.points):
        if isinstance(item, Pulley):
            ElementTree.SubElement(element, "pulley", divisor=repr(item.divisor))
        elif isinstance(item, Wrap):
            wrap = ElementTree.SubElement(element, "geom", geom=item.geom)
            if item.side is not None:
                wrap.set("sidesite", site(f"{tendon.name} {i}", *item.side))
        else:
            ElementTree.SubElement(element, "site", site=site(f"{tendon.name} {i}", *item))


def _write_actuators(root: Element, description: Elements) -> None:
    if not description.actuators:
        return
    parent = ElementTree.SubElement(root, "actuator")
    at_sites = {item.name: item for item in description.tendons if item.thrust or item.reach}
    for actuator in description.actuators:
        element = _actuator(parent, actuator)
        if actuator.range is not None:
            element.set("ctrllimited", "true")
            element.set("ctrlrange", _text(np.clip(actuator.range, -1e10, 1e10)))
        own = actuator.own_force_range or actuator.force_range
        if own is not None and np.any(np.isfinite(own)):
            gear = float(element.get("gear", "1"))
            force = np.sort(np.clip(own, -1e10, 1e10) / gear)
            element.set("forcelimited", "true")
            element.set("forcerange", _text(force))
        if actuator.own_force_range is not None and actuator.force_range is not None:
            joint = next(one for one in root.iter("joint") if one.get("name") == actuator.joint)
            joint.set("actuatorfrclimited", "true")
            joint.set("actuatorfrcrange", _text(np.clip(actuator.force_range, -1e10, 1e10)))
        if actuator.tendon in at_sites:
            _write_at_site(root, element, at_sites[actuator.tendon])


def _write_sensors(root: Element, description: Elements) -> None:
    """Write the sensors except taxels, which MuJoCo does not have."""
    sensors = [item for item in description.sensors if not isinstance(item, TaxelSensor)]
    if not sensors:
        return
    parent = ElementTree.SubElement(root, "sensor")
    owners = {body.get("name"): body for body in root.iter("body")}
    for item in sensors:
        kind = type(item).__name__.removesuffix("Sensor").lower()
        element = ElementTree.SubElement(parent, kind, name=item.name)
        if item.site is not None:
            owner = root.find("worldbody") if item.site.body == WORLD else owners[item.site.body]
            assert owner is not None
            site = ElementTree.SubElement(owner, "site", name=item.name, type=item.site.shape)
            for name in ("pos", "quat", "size"):
                site.set(name, _text(getattr(item.site, name)))
            element.set("site", item.name)
        if not isinstance(item, ContactSensor) and item.cutoff is not None:
            element.set("cutoff", repr(item.cutoff))
        if isinstance(item, ContactSensor):
            for number, side in (("1", item.first), ("2", item.second)):
                if side is not None:
                    element.set(side[0] + number, side[1])
            element.set("data", " ".join(item.data))
            element.set("reduce", item.reduce)
            element.set("num", str(item.num))


def _write_at_site(root: Element, element: Element, tendon: Tendon) -> None:
    """Turn a tendon actuator into an actuator at a site, for a ``thrust`` or ``reach`` tendon.

    The gear of a thrust is its force and moment. For a reach, the second point is the reference
    site and the direction is the gear.
    """
    owners = {item.get("name"): item for item in root.iter("body")}
    (body, point), (other, second), (_, third) = tendon.places[:3]
    sites = [("site", tendon.name, body, point)]
    gear = np.array((*second, *third))
    rotation, axis = [part for _, part in tendon.places[3:]] or [(0.0, 0.0, 0.0)] * 2
    if tendon.reach:
        sites.append(("refsite", f"{tendon.name} reference", other, second))
        gear = float(element.get("gear", "1")) * np.array((*third, *axis))
    for kind, name, on, place in sites:
        owner = root.find("worldbody") if on == WORLD else owners[on]
        assert owner is not None
        site = ElementTree.SubElement(owner, "site", name=name, pos=_text(place))
        if kind == "site" and any(rotation):
            site.set("quat", _text(_quaternion(rotation)))
        element.set(kind, name)
    del element.attrib["tendon"]
    element.set("gear", _text(gear))


def _quaternion(rotation: tuple[float, ...]) -> Array:
    """Return the unit quaternion (w, x, y, z) of a rotation vector."""
    half = 0.5 * np.array(rotation)
    angle = np.linalg.norm(half)
    return np.array([np.cos(angle), *(half * np.sinc(angle / np.pi))])


def _actuator(parent: Element, actuator: Actuator) -> Element:
    """Write an actuator.

    A position actuator of gain kp and gear g has the joint stiffness kp g^2. An actuator that is
    more than a spring with damping is written as a general actuator of gear 1, in joint units.
    """
    plain = not (actuator.gain or actuator.bias or any(actuator.gain_slope))
    where = ("joint", actuator.joint) if actuator.tendon is None else ("tendon", actuator.tendon)
    named = {"name": actuator.name, where[0]: str(where[1])}
    stiffness, gear, damping = actuator.stiffness, actuator.gear, actuator.damping
    if plain and stiffness > 0.0 and np.isfinite(gear):
        element = ElementTree.SubElement(
            parent, "position", named, kp=repr(stiffness / gear**2), gear=repr(gear)
        )
        if damping > 0.0:
            element.set("kv", repr(damping / gear**2))
        return element
    return ElementTree.SubElement(
        parent,
        "general",
        named,
        gaintype="affine",
        gainprm=_text((stiffness / gear + actuator.gain, *actuator.gain_slope)),
        biastype="affine",
        biasprm=_text((actuator.bias, -stiffness, -damping)),
    )
