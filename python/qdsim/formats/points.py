"""Reading of points from files: NPY by NumPy, and PLY, OBJ and STL by trimesh."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.description.clouds import checked_points, sample_surface
from qdsim.whole_files import opened

_MESH_SUFFIXES = (".ply", ".obj", ".stl")


def read_points(
    path: str | os.PathLike[str], count: int | None = None, *, seed: int = 0, scale: float = 1.0
) -> Array:
    """Read points (n, 3) from a file, for ``qdsim.PointCloud``.

    Args:
        path: PLY, OBJ or STL (points, or the vertices of a mesh, each once), or NPY with an array
            (n, 3). All but NPY need ``pip install 'qdsim[meshes]'``.
        count: Number of points. From a mesh they are sampled evenly at random on its surface; from
            a file of points they are a random subset. None: all points, or all vertices.
        seed: Seed of the random choice; the same seed gives the same points.
        scale: Length unit of the file, m.

    Raises:
        FileNotFoundError, IsADirectoryError: There is no such file.
        ImportError: trimesh is not installed.
        ValueError: The file cannot be read, has no points, has numbers that are not finite, or has
            fewer than ``count`` points and no surface; the message names the file.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path must be text, got {type(path).__name__}")
    if os.path.isdir(name):
        raise IsADirectoryError(f"path: {name!r} is a folder")
    if not os.path.exists(name):
        raise FileNotFoundError(f"path: there is no file {name!r}")
    if not 0.0 < float(scale) < np.inf:
        raise ValueError(f"scale must be positive and finite, got {scale!r}")
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".npy":
        points, faces = _read_array(name), None
    elif suffix in _MESH_SUFFIXES:
        points, faces = _read_mesh(name, suffix[1:])
    else:
        raise ValueError(
            f"path: expected a name that ends in .ply, .obj, .stl or .npy, got {name!r}"
        )
    points = checked_points(f"path: {name!r}: points", points) * float(scale)
    if count is None:
        return np.unique(points, axis=0) if suffix == ".stl" else points
    if faces is not None and len(faces):
        try:
            return sample_surface(points, faces, count, seed=seed)
        except ValueError as error:
            raise ValueError(f"path: {name!r}: {error}") from None
    if not 1 <= count <= len(points):
        raise ValueError(f"path: {name!r} holds {len(points)} points and no surface, not {count}")
    chosen = np.random.default_rng(seed).choice(len(points), size=count, replace=False)
    return np.asarray(points[np.sort(chosen)])


def _read_array(name: str) -> Any:
    try:
        loaded = np.load(name, allow_pickle=False)
    except Exception as error:  # NumPy raises various classes for a damaged header
        raise ValueError(f"path: {name!r} cannot be read as NPY: {error}") from None
    if not isinstance(loaded, np.ndarray):  # an .npz archive with the suffix .npy
        loaded.close()
        raise ValueError(f"path: {name!r} cannot be read as NPY: it is an archive of arrays")
    return loaded


def _read_mesh(name: str, kind: str) -> tuple[Any, Any]:
    """Read the points and triangles of a file; the triangles are None if it has only points."""
    try:
        import trimesh
    except ImportError as error:
        raise ImportError(
            f"reading {kind.upper()} files needs trimesh; pip install 'qdsim[meshes]'"
        ) from error
    try:
        with opened(name) as file:
            loaded: Any = trimesh.load(file, file_type=kind, process=False)
        if isinstance(loaded, trimesh.Scene):
            parts = [part for part in loaded.dump() if len(getattr(part, "vertices", ()))]
            loaded = trimesh.util.concatenate(parts) if parts else None
    except Exception as error:  # the parser raises various classes for a damaged file
        message = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"path: {name!r} cannot be read as {kind.upper()}: {message}") from None
    vertices = getattr(loaded, "vertices", None)
    if vertices is None or len(vertices) == 0:
        raise ValueError(f"path: {name!r} holds no points")
    return np.asarray(vertices), getattr(loaded, "faces", None)
