"""Preparation of URDF files for MuJoCo.

MuJoCo does not resolve ``package://``, ignores the folders in file names, merges links that fixed
joints connect, and ignores friction. This module replaces every mesh name by an absolute path, keeps
links as separate bodies unless the file asks for their fusion, and reads friction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from qdsim.formats.mesh_files import STL_FACES_MOST, as_obj, as_stl, mujoco_reads, read_triangles
from qdsim.formats.urdf_checks import check_structure


@dataclass
class PreparedUrdf:
    """A URDF that MuJoCo can read.

    Attributes:
        text: the rewritten text.
        frictions: friction of each link's collision elements, None where it is not given.
        ignored: messages about elements that were ignored.
        assets: contents of converted meshes, by the names that the text gives them.
    """

    text: str
    frictions: dict[str, list[float | None]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    assets: dict[str, bytes] = field(default_factory=dict)


def prepare_urdf(
    text: str,
    label: str,
    folder: str | None,
    package_dirs: tuple[str, ...],
    assets: Mapping[str, bytes],
    visuals: bool,
) -> PreparedUrdf:
    """Rewrite a URDF so that MuJoCo finds its files.

    Args:
        text: the file's content.
        label: name of the file in errors.
        folder: folder of the file, or None.
        package_dirs: folders in which packages are searched.
        assets: contents of files by name.
        visuals: whether visual elements are kept (unless the file discards them).
    """
    root = _parse(text, label)
    ignored = check_structure(root, label)
    compiler = _compiler(root)
    compiler.attrib.setdefault("fusestatic", "false")
    visuals = visuals and compiler.attrib.get("discardvisual", "false") == "false"
    compiler.set("discardvisual", "false")
    mesh_dir = compiler.attrib.pop("meshdir", "")
    compiler.set("strippath", "false")
    prepared = PreparedUrdf("", ignored=ignored)
    resolver = _Resolver(folder, mesh_dir, package_dirs, assets, prepared.assets)
    for link in root.iter("link"):
        name = link.get("name", "?")
        for element in link.findall("visual"):
            problem = _resolve_visual(element, resolver) if visuals else ""
            if problem or not visuals:
                link.remove(element)
            if problem:
                prepared.ignored.append(f"link '{name}': a visual: {problem}")
        for element in link.findall("collision"):
            _resolve_collision(element, name, label, resolver)
        try:
            frictions = [_friction(item, link) for item in link.findall("collision")]
        except ValueError as error:
            raise ValueError(f"source: {label}: link {name!r}: {error}") from None
        prepared.frictions[name] = frictions
    for joint in root.iter("joint"):
        if joint.find("safety_controller") is not None:
            prepared.ignored.append(f"joint '{joint.get('name', '?')}': safety_controller")
    if root.find("transmission") is not None:
        prepared.ignored.append("transmission elements (load's stiffness= says what is actuated)")
    try:
        prepared.text = ElementTree.tostring(root, encoding="unicode")
    except RecursionError:  # MuJoCo refuses more than 500 levels
        raise ValueError(f"source: {label} is nested too deep") from None
    return prepared


def repair_inertias(text: str) -> tuple[str, list[str]]:
    """Return a prepared URDF in which every inertia is positive, and messages about the changes.

    Links that move and have no mass get 1e-6 kg and 1e-6 kg m^2, as is usual for virtual links.
    Principal moments that are not positive are raised to a thousandth of the largest one.
    """
    root = ElementTree.fromstring(text)
    moved = {
        child.get("link")
        for joint in root.iter("joint")
        if joint.get("type") != "fixed"
        for child in joint.findall("child")
    }
    notes = []
    for link in root.iter("link"):
        name = link.get("name", "?")
        inertial = link.find("inertial")
        if inertial is None and (name not in moved or link.find("collision") is not None):
            continue
        if inertial is None:
            inertial = ElementTree.SubElement(link, "inertial")
        if note := _repair_inertial(inertial):
            notes.append(f"link '{name}' {note}")
    return ElementTree.tostring(root, encoding="unicode"), notes


def _repair_inertial(inertial: ElementTree.Element) -> str:
    mass = inertial.find("mass")
    if mass is None:
        mass = ElementTree.SubElement(inertial, "mass", value="0")
    inertia = inertial.find("inertia")
    if inertia is None:
        inertia = ElementTree.SubElement(inertial, "inertia")
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    try:
        xx, yy, zz, xy, xz, yz = (float(inertia.get(key, "0")) for key in keys)
        value = float(mass.get("value", "0"))
    except ValueError:
        return ""  # MuJoCo says what is wrong with it
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if not np.all(np.isfinite(matrix)):
        return ""
    moments, axes = np.linalg.eigh(matrix)
    if value > 0.0 and moments[0] > 0.0:
        return ""
    note = "given mass and inertia" if value <= 0.0 else "given positive moments"
    if value <= 0.0:
        mass.set("value", "1e-6")
    least = max(1e-3 * moments[2], 1e-6)
    matrix = (axes * np.maximum(moments, least)) @ axes.T
    for key, item in zip(keys, matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]):
        inertia.set(key, repr(float(item)))
    return note


def _parse(text: str, label: str) -> ElementTree.Element:
    lowered = text.lower()
    if "<!doctype" in lowered or "<!entity" in lowered:
        raise ValueError(f"source: {label} declares a document type, which is not part of URDF")
    try:
        return ElementTree.fromstring(_declare_prefixes(text))
    except ElementTree.ParseError as error:
        raise ValueError(f"source: {label} is not well-formed XML: {error}") from None
    except ValueError as error:
        raise ValueError(f"source: {label} cannot be read as XML: {error}") from None


def _declare_prefixes(text: str) -> str:
    """Declare the prefixes of extensions such as <drake:proximity_properties>; many files do not."""
    begin = re.search(r"<robot\b", text)
    if begin is None:
        return text
    used = set(re.findall(r"</?([A-Za-z_][\w.-]*):", text))
    used |= set(re.findall(r"\s([A-Za-z_][\w.-]*):[\w.-]+\s*=", text)) - {"xmlns", "xml"}
    missing = [prefix for prefix in sorted(used) if f"xmlns:{prefix}" not in text]
    declared = "".join(f' xmlns:{prefix}="urn:{prefix}"' for prefix in missing)
    return text[: begin.end()] + declared + text[begin.end() :]


def _compiler(root: ElementTree.Element) -> ElementTree.Element:
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.Element("mujoco")
        root.insert(0, extension)
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    return compiler


@dataclass(frozen=True)
class _Resolver:
    folder: str | None
    mesh_dir: str
    package_dirs: tuple[str, ...]
    assets: Mapping[str, bytes]
    converted: MutableMapping[str, bytes]

    def find(self, name: str) -> str | None:
        """Return the absolute path or the key of an asset, or None if there is no such file."""
        for candidate in self.candidates(name):
            if candidate in self.assets or os.path.isfile(candidate):
                return candidate
        return None

    def candidates(self, name: str) -> list[str]:
        plain = name
        for scheme in ("package://", "model://", "file://"):
            plain = plain.removeprefix(scheme)
        last = os.path.basename(plain)
        found = [key for key in (name, plain, last) if key in self.assets]
        if name.startswith(("package://", "model://")):
            package, _, rest = plain.partition("/")
            for folder in self.package_dirs:
                found.append(os.path.join(folder, package, rest))
                if os.path.basename(folder) == package:
                    found.append(os.path.join(folder, rest))
            parent = self.folder
            while parent and parent != os.path.dirname(parent):
                if os.path.basename(parent) == package:
                    found.append(os.path.join(parent, rest))
                found.append(os.path.join(parent, package, rest))
                parent = os.path.dirname(parent)
        base = self.folder or os.getcwd()
        found.append(os.path.join(base, plain))
        found.append(os.path.join(base, self.mesh_dir, plain))
        found.append(os.path.join(base, self.mesh_dir, last))
        for folder in self.package_dirs:
            found.append(os.path.join(folder, plain))
        return list(dict.fromkeys(found))

    def readable(self, found: str, owner: str, collides: bool) -> str:
        """Return the name of a file that MuJoCo reads: the file itself, or its conversion."""
        name = f"{found}.{'obj' if collides else 'stl'}"
        if name in self.converted:
            return name
        content = self.assets.get(found)
        if content is None:
            with open(found, "rb") as file:
                content = file.read()
        if mujoco_reads(found, content):
            return found
        triangles = read_triangles(owner, found, content)
        if not collides and len(triangles[1]) > STL_FACES_MOST:
            raise ValueError(f"{found!r} has more than {STL_FACES_MOST} triangles")
        self.converted[name] = as_obj(triangles) if collides else as_stl(triangles)
        return name


def _resolve_visual(element: ElementTree.Element, resolver: _Resolver) -> str:
    """Make the mesh name of a visual element absolute; return the problem with the mesh, or "".

    Removes the name of the element, which may be that of a collision element.
    """
    element.attrib.pop("name", None)
    for mesh in element.iter("mesh"):
        name = mesh.get("filename", "")
        found = resolver.find(name)
        if found is None:
            return f"the mesh {name!r} is not there"
        try:
            mesh.set("filename", resolver.readable(found, "mesh", False))
        except (OSError, ValueError, ImportError) as error:
            return str(error)
    return ""


def _resolve_collision(
    element: ElementTree.Element, link: str, label: str, resolver: _Resolver
) -> None:
    for mesh in element.iter("mesh"):
        name = mesh.get("filename", "")
        found = resolver.find(name)
        if found is None:
            looked = ", ".join(repr(item) for item in resolver.candidates(name)[:6])
            raise ValueError(
                f"source: {label}: link {link!r}: the collision mesh {name!r} is not there "
                f"(looked for {looked}); package_dirs= names more folders, assets= holds files"
            )
        mesh.set("filename", resolver.readable(found, f"source: {label}: link {link!r}", True))


def _friction(collision: ElementTree.Element, link: ElementTree.Element) -> float | None:
    """Return the friction of a collision element, or None.

    It is Drake's proximity property (static), the older contact coefficients, or Bullet's extension.
    """
    for element in collision.iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "mu_static" or (tag == "contact_coefficients" and element.get("mu")):
            return _coefficient(element.get("value") or element.get("mu"))
    for element in collision.iter():
        if element.tag.rpartition("}")[2] == "mu_dynamic":
            return _coefficient(element.get("value"))
    lateral = link.find("contact/lateral_friction")
    return _coefficient(lateral.get("value")) if lateral is not None else None


def _coefficient(value: str | None) -> float:
    try:
        result = float(value or "")
    except ValueError:
        raise ValueError(f"friction must be a number, got {value!r}") from None
    if not 0.0 <= result < float("inf"):
        raise ValueError(f"friction must be finite and not negative, got {value!r}")
    return result
