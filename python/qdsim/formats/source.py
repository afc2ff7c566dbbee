"""Loading of a path, an XML text or a MuJoCo object, and its compilation by MuJoCo."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from qdsim.description import Description, ModelWarning, PointCloud
from qdsim.formats.actuation import Actuation
from qdsim.formats.compiled import Wishes, describe
from qdsim.formats.decomposition import decompose as decompose_meshes
from qdsim.formats.mesh_files import mujoco_reads, read_triangles
from qdsim.formats.reading import Origin
from qdsim.formats.refusals import Kind, kinds_of
from qdsim.formats.urdf import PreparedUrdf, prepare_urdf, repair_inertias
from qdsim.whole_files import opened

Described = tuple[Description, list[str]]


@dataclass(frozen=True)
class Files:
    """Where files are found, and whether visual elements are read.

    Attributes:
        folders: folders of packages.
        assets: contents of files, by name.
        visuals: whether visual elements of a URDF are read.
    """

    folders: tuple[str, ...]
    assets: dict[str, bytes]
    visuals: bool


Clouds = dict[str, PointCloud]

_PROLOGUE = re.compile(r"\s*(<\?.*?\?>|<!--.*?-->|<![^\[>]*(\[.*?\]\s*)?>)", re.DOTALL)
_ROOT = re.compile(r"\s*<\s*([A-Za-z_][\w.:-]*)")


def load_description(
    source: object,
    *,
    stiffness: float | Mapping[str, float] | None = None,
    actuated: Iterable[str] | None = None,
    package_dirs: Any = (),
    assets: Mapping[str, bytes] | None = None,
    decompose: bool | Iterable[str] = False,
    clouds: Mapping[str, PointCloud] | None = None,
    leave_out: Kind | Iterable[Kind] = (),
    visuals: bool = True,
) -> Description:
    """Load a scene from a file, XML text, ``mujoco.MjSpec`` or ``mujoco.MjModel``.

    Args:
        source, stiffness, actuated, package_dirs, assets, decompose, clouds, leave_out, visuals: as
            for ``qdsim.load``.

    Raises:
        FileNotFoundError: The path does not exist.
        ValueError: The source is truncated, inconsistent, or has an element that a step cannot
            simulate; the message names the source and the element.
        TypeError: An argument has the wrong type.
        ImportError: A package that a mesh file, or ``decompose``, needs is not installed.
    """
    wishes = Wishes(
        Actuation.parse(stiffness, actuated),
        _checked_mapping("clouds", clouds, PointCloud, "names of geometries to PointCloud"),
        kinds_of(leave_out),
    )
    if not isinstance(visuals, bool):
        raise TypeError(f"visuals: expected True or False, got {type(visuals).__name__}")
    files = Files(
        _checked_folders(package_dirs),
        _checked_mapping("assets", assets, bytes, "file names to bytes"),
        visuals,
    )
    description, messages = _load(source, wishes, files)
    for message in messages:
        warnings.warn(message, ModelWarning, stacklevel=3)
    if decompose is False:
        return description
    return decompose_meshes(description, None if decompose is True else decompose)


def _load(source: object, wishes: Wishes, files: Files) -> Described:
    if not isinstance(source, (str, os.PathLike)):
        return _load_object(source, wishes)
    text = os.fspath(source)
    if not isinstance(text, str):
        raise TypeError("source: paths must be text, not bytes")
    if text.lstrip().startswith("<"):
        return _load_text(text, "the XML text", None, wishes, files)
    return _load_file(text, wishes, files)


def _load_file(path: str, wishes: Wishes, files: Files) -> Described:
    if not path.strip():
        raise ValueError("source: the path is empty")
    if "\0" in path:
        raise ValueError("source: the path holds a null character")
    if "\n" in path or ("<" in path and ">" in path):
        raise ValueError(f"source: {path[:60]!r}... is neither a path nor XML that begins with '<'")
    if os.path.isdir(path):
        raise IsADirectoryError(f"source: {path!r} is a folder, not an MJCF or URDF file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"source: there is no file {path!r}")
    with opened(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"source: {path!r} is not UTF-8 text ({error})") from None
    return _load_text(text, repr(path), path, wishes, files)


def _load_text(
    text: str,
    label: str,
    path: str | None,
    wishes: Wishes,
    files: Files,
) -> Described:
    import mujoco

    assets = files.assets

    root = root_tag(text)
    if root not in ("mujoco", "robot"):
        found = f"its root element is <{root}>" if root else "it has no root element"
        raise ValueError(f"source: {label} is neither MJCF nor URDF: {found}")
    if "\0" in text:
        raise ValueError(f"source: {label} holds a null character")
    if root == "robot":
        folder = os.path.dirname(os.path.abspath(path)) if path else None
        prepared, model, repaired = _read_urdf(mujoco, text, label, folder, files)
        origin = Origin(label, urdf=True, frictions=prepared.frictions, repaired=repaired)
        return describe(model, origin, wishes, prepared.ignored)
    try:
        if path is not None:
            model = mujoco.MjModel.from_xml_path(path, assets)
        else:
            model = mujoco.MjModel.from_xml_string(text, assets)
    except Exception as error:  # MuJoCo raises ValueError and several classes of its own
        model = _compile_converted(mujoco, text, path, label, assets, error)
    return describe(model, Origin(label), wishes)


def _compile_converted(
    mujoco: Any,
    text: str,
    path: str | None,
    label: str,
    assets: dict[str, bytes],
    error: Exception,
) -> Any:
    """Compile after this error, with the mesh files that MuJoCo cannot read converted."""
    try:
        if path is not None:
            spec = mujoco.MjSpec.from_file(path, assets=assets)
        else:
            spec = mujoco.MjSpec.from_string(text, assets=assets)
    except Exception:
        raise _compile_error(label, error) from error
    converted = 0
    for mesh in spec.meshes:
        found = _find_mesh(mesh.file, spec, path, assets) if mesh.file else None
        if found is None or mujoco_reads(mesh.file, found):
            continue
        vertices, faces = read_triangles(f"source: {label}: mesh {mesh.name!r}", mesh.file, found)
        if not mesh.name:
            mesh.name = os.path.splitext(os.path.basename(mesh.file))[0]
        mesh.file = ""
        mesh.uservert = vertices.ravel()
        mesh.userface = faces.ravel()
        converted += 1
    if not converted:
        raise _compile_error(label, error) from error
    try:
        return spec.compile()
    except Exception as second:
        raise _compile_error(label, second) from second


def _find_mesh(name: str, spec: Any, path: str | None, assets: dict[str, bytes]) -> bytes | None:
    folder = os.path.dirname(os.path.abspath(path)) if path is not None else os.getcwd()
    inner = os.path.join(spec.meshdir, name) if spec.meshdir else name
    for key in (name, inner, os.path.basename(name)):
        if key in assets:
            return assets[key]
    file = os.path.join(folder, inner)
    if not os.path.isfile(file):
        return None
    with open(file, "rb") as stream:
        return stream.read()


def _load_object(source: object, wishes: Wishes) -> Described:
    import mujoco

    if isinstance(source, mujoco.MjSpec):
        try:
            model = source.compile()
        except Exception as error:
            raise _compile_error("the MjSpec", error) from error
        return describe(model, Origin("the MjSpec"), wishes)
    if isinstance(source, mujoco.MjModel):
        return describe(source, Origin("the MjModel"), wishes)
    raise TypeError(
        "source must be a path, an XML text that begins with '<', a mujoco.MjSpec or a "
        f"mujoco.MjModel, got {type(source).__name__}"
    )


def _read_urdf(
    mujoco: Any, text: str, label: str, folder: str | None, files: Files
) -> tuple[PreparedUrdf, Any, str | None]:
    """Return the prepared text, the model, and a message about repairs or None.

    If visual elements prevent compilation, they are removed.
    """
    prepared = prepare_urdf(text, label, folder, files.folders, files.assets, files.visuals)
    try:
        return prepared, *_compile_urdf(mujoco, prepared, label, files.assets)
    except ValueError as error:
        if not files.visuals:
            raise
        hindrance = str(error)
    bare = prepare_urdf(text, label, folder, files.folders, files.assets, visuals=False)
    bare.ignored.append(f"visual elements: {hindrance}")
    return bare, *_compile_urdf(mujoco, bare, label, files.assets)


def _compile_urdf(
    mujoco: Any, prepared: PreparedUrdf, label: str, assets: dict[str, bytes]
) -> tuple[Any, str | None]:
    """Return the model, and a message about changes of its inertias, or None if MuJoCo accepts them."""
    text, assets = prepared.text, {**assets, **prepared.assets}
    try:
        return _compile_thin(mujoco, text, assets), None
    except Exception as error:
        if "inertia" not in str(error):
            raise _compile_error(label, error) from error
    repaired, links = repair_inertias(text)
    repaired = re.sub(r"<compiler\b", '<compiler balanceinertia="true"', repaired, count=1)
    try:
        model = _compile_thin(mujoco, repaired, assets)
    except Exception as error:
        raise _compile_error(label, error) from error
    names = "; ".join(links) if links else "balanced so that A + B >= C"
    return model, f"inertias that no body can have were repaired: {names}"


def _compile_thin(mujoco: Any, text: str, assets: dict[str, bytes]) -> Any:
    """Compile a URDF; meshes that enclose no volume (open or flat surfaces) count as shells."""
    try:
        return mujoco.MjModel.from_xml_string(text, assets)
    except Exception as error:
        if "inertia to shell" not in str(error):
            raise
    spec = mujoco.MjSpec.from_string(text, assets=assets)
    for mesh in spec.meshes:
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    return spec.compile()


def _compile_error(label: str, error: Exception) -> ValueError:
    message = " ".join(str(error).split())
    return ValueError(f"source: MuJoCo cannot compile {label}: {message}")


def root_tag(text: str) -> str | None:
    """Return the name of the root element of an XML text ("mujoco", "robot" or another), or None."""
    position = 1 if text.startswith("\ufeff") else 0
    while match := _PROLOGUE.match(text, position):
        position = match.end()
    found = _ROOT.match(text, position)
    return found.group(1) if found else None


def _checked_mapping(name: str, value: object, kind: type, said: str) -> dict[str, Any]:
    """Check an argument that maps names to values of one type; None gives an empty dictionary."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must map {said}, got {type(value).__name__}")
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, kind):
            raise TypeError(f"{name} must map {said}, got {key!r}")
    return dict(value)


def _checked_folders(package_dirs: object) -> tuple[str, ...]:
    if isinstance(package_dirs, (str, os.PathLike)):
        package_dirs = (package_dirs,)
    if not isinstance(package_dirs, Iterable):
        raise TypeError(f"package_dirs must be folders, got {type(package_dirs).__name__}")
    result = []
    for item in package_dirs:
        if not isinstance(item, (str, os.PathLike)):
            raise TypeError(f"package_dirs must be folders, got {item!r}")
        folder = os.fspath(item)
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"package_dirs: there is no folder {folder!r}")
        result.append(os.path.abspath(folder))
    return tuple(result)
