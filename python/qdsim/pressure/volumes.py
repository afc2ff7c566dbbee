"""Tetrahedra from files and from surfaces, and the depth of their vertices below the surface."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from qdsim.pressure.tessellation import Array, Indices, Tessellation, is_closed, surface_of

__all__ = ["depths", "read_tetrahedra", "tetrahedra_within"]

_CHUNK = 200_000
"""Pairs of points and triangles at a time."""


def _need(module: str, purpose: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{purpose} needs {module}: pip install 'qdsim[fields]'") from None


def read_tetrahedra(path: str | os.PathLike[str]) -> Tessellation:
    """Those of a volume mesh (VTK, VTU, MSH and what else meshio reads), with depths; other cells are left out, except
    volumes of other shapes, which are refused."""
    meshio = _need("meshio", "a file of tetrahedra")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"path: there is no file {file}")
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            mesh = meshio.read(file)
    except (Exception, SystemExit) as error:  # its readers let any error through, and may exit
        reason = " ".join(f"{said.getvalue()} {error}".split()) or type(error).__name__
        raise ValueError(f"path: {file} cannot be read as a mesh: {reason[:300]}") from None
    others = sorted({block.type for block in mesh.cells if block.dim == 3} - {"tetra"})
    if others:
        raise ValueError(f"path: {file} has cells of kind {', '.join(others)}; expected tetrahedra")
    cells = [block.data for block in mesh.cells if block.type == "tetra"]
    if not cells:
        raise ValueError(f"path: {file} has no tetrahedra; PressureField.within fills a surface")
    return _with_depths(np.asarray(mesh.points, dtype=np.float64), np.concatenate(cells))


def tetrahedra_within(points: Array, triangles: Indices, edge: float | None) -> Tessellation:
    """A closed surface, filled by fTetWild, with depths."""
    wildmeshing = _need("wildmeshing", "filling a surface")
    if not is_closed(points, triangles):
        raise ValueError("triangles: expected a closed surface, got one with a rim")
    share = 0.05 if edge is None else edge / float(np.linalg.norm(np.ptp(points, axis=0)))
    with _silence():
        filled = wildmeshing.Tetrahedralizer(epsilon=1e-3, edge_length_r=share, max_threads=1)
        filled.set_log_level(6)
        filled.set_mesh(np.array(points), np.array(triangles, dtype=np.int32))
        filled.tetrahedralize()
        made, cells = filled.get_tet_mesh()[:2]
    if len(cells) == 0:
        raise ValueError("triangles: no tetrahedron fits into this surface")
    return _with_depths(np.asarray(made, dtype=np.float64), np.asarray(cells))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """fTetWild tells its progress on the process's output, past Python."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _with_depths(points: Array, cells: Indices) -> Tessellation:
    """Without vertices of no tetrahedron, and all tetrahedra of positive volume."""
    used, numbers = np.unique(cells, return_inverse=True)
    tetrahedra = numbers.reshape(cells.shape).astype(np.int32)
    points = points[used]
    corner = points[tetrahedra]
    inverted = np.linalg.det(corner[:, 1:] - corner[:, :1]) < 0.0
    tetrahedra[inverted] = tetrahedra[inverted][:, [0, 1, 3, 2]]
    depth = depths(points, tetrahedra)
    if not depth.max() > 0.0:
        raise ValueError("every vertex lies on the surface; expected some inside, with pressure")
    return points, tetrahedra, depth / depth.max()


def depths(points: Array, tetrahedra: Indices) -> Array:
    """Distances of the vertices from the surface, m; zero on it."""
    surface = surface_of(tetrahedra)
    depth = np.zeros(len(points))
    inside = np.setdiff1d(np.arange(len(points)), surface)
    step = max(1, _CHUNK // len(surface))
    for start in range(0, len(inside), step):
        some = inside[start : start + step]
        depth[some] = _distances(points[some], points[surface])
    return depth


def _distances(points: Array, triangles: Array) -> Array:
    """Of points ``(n, 3)`` from the nearest of some triangles ``(m, 3, 3)``."""
    a, b, c = triangles.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    above = np.ones((len(points), len(triangles)), dtype=bool)
    least = np.full(len(points), np.inf)
    for p, q in ((a, b), (b, c), (c, a)):
        edge, way = q - p, points[:, None] - p
        above &= np.einsum("nmi,mi->nm", way, np.cross(normal, edge)) >= 0.0
        length = np.maximum(np.einsum("mi,mi->m", edge, edge), 1e-300)
        share = np.clip(np.einsum("nmi,mi->nm", way, edge) / length, 0.0, 1.0)
        off = np.linalg.norm(way - share[..., None] * edge, axis=2)
        least = np.minimum(least, off.min(axis=1))
    heights = np.abs(np.einsum("nmi,mi->nm", points[:, None] - a, normal))
    return np.asarray(np.minimum(least, np.where(above, heights, np.inf).min(axis=1)))
