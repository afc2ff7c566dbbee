"""Reading of mesh files that MuJoCo's compiler cannot read (.dae, .ply, .glb, .off, text .stl, ...), by trimesh.

Coordinates are converted to metres if the file gives its unit, and otherwise taken as they are. The
``up_axis`` of Collada files is ignored, as in robot viewers. All parts of a file become one mesh.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array

_MUJOCO_READS = (".stl", ".obj", ".msh")

STL_FACES_MOST = 200_000
"""Largest number of triangles that MuJoCo reads from an .stl file."""

Triangles = tuple[Array, npt.NDArray[np.int32]]


def mujoco_reads(name: str, content: bytes) -> bool:
    """Return True if MuJoCo's compiler can read a mesh file of this name and content."""
    extension = os.path.splitext(name)[1].lower()
    return extension in _MUJOCO_READS and not (extension == ".stl" and _is_text_stl(content))


def _is_text_stl(content: bytes) -> bool:
    """Return True for a text file: it begins with "solid", and its size is not the 84 + 50 n bytes of a binary file."""
    if content.lstrip()[:5].lower() != b"solid":
        return False
    count = int.from_bytes(content[80:84], "little") if len(content) >= 84 else -1
    return len(content) != 84 + 50 * count


def read_triangles(owner: str, name: str, content: bytes) -> Triangles:
    """Read the vertices (n, 3) in m and the faces (k, 3) of a mesh file.

    Args:
        owner: beginning of error messages.
        name: name of the file.
        content: its content.

    Raises:
        ValueError: The file cannot be read; the message begins with ``owner`` and names the file.
        ImportError: trimesh, or a package that trimesh needs for this format, is not installed.
    """
    extension = os.path.splitext(name)[1].lower().lstrip(".")
    try:
        import trimesh
    except ImportError:
        raise ImportError(
            f"{owner}: reading {name!r} needs trimesh: pip install 'qdsim[meshes]'", name="trimesh"
        ) from None
    if extension == "dae":
        try:
            import collada  # noqa: F401
        except ImportError:
            raise ImportError(
                f"{owner}: reading {name!r} needs pycollada: pip install 'qdsim[meshes]'",
                name="collada",
            ) from None
    if extension not in trimesh.available_formats():
        raise ValueError(f"{owner}: {name!r} is no mesh file that can be read (.{extension})")
    try:
        scene = trimesh.load_scene(io.BytesIO(content), file_type=extension)
        mesh = scene.to_mesh()
        scale = _unit(trimesh, scene.units)
        vertices = np.array(mesh.vertices, dtype=np.float64) * scale
        faces = np.array(mesh.faces, dtype=np.int32)
    except Exception as error:  # the parsers raise various classes for broken files
        message = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{owner}: {name!r} cannot be read: {message}") from error
    if not len(vertices) or not len(faces):
        raise ValueError(f"{owner}: {name!r} holds no triangles")
    if not np.all(np.isfinite(vertices)):
        raise ValueError(f"{owner}: {name!r} holds coordinates that are not finite")
    return vertices, faces


def _unit(trimesh: Any, units: str | None) -> float:
    return 1.0 if units is None else float(trimesh.units.unit_conversion(units, "meters"))


def as_obj(triangles: Triangles) -> bytes:
    """Return the mesh as an .obj file, which MuJoCo reads."""
    vertices, faces = triangles
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (faces + 1).tolist()]
    return ("\n".join(lines) + "\n").encode()


def as_stl(triangles: Triangles) -> bytes:
    """Return the mesh as a binary .stl file; its single precision suffices for pictures, and it is read faster."""
    vertices, faces = triangles
    records = np.zeros(
        len(faces), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("_", "<u2")]
    )
    records["corners"] = vertices[faces]
    return bytes(80) + len(faces).to_bytes(4, "little") + records.tobytes()
