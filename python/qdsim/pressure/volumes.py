"""Tetrahedra from files and from surfaces, and the depth of their vertices below the surface."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from qdsim.arguments import MOST_HELD
from qdsim.array_type import Array
from qdsim.pressure.tessellation import Indices, Tessellation, is_closed, surface_of

__all__ = ["depths", "read_tetrahedra", "tetrahedra_within"]


def _need(module: str, purpose: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{purpose} needs {module}: pip install 'qdsim[fields]'") from None


def read_tetrahedra(path: str | os.PathLike[str]) -> Tessellation:
    """Read the tetrahedra of a volume mesh (VTK, VTU, MSH and other formats of meshio), with depths.

    Cells of lower dimensions are ignored; volumes of other shapes are an error.
    """
    meshio = _need("meshio", "a file of tetrahedra")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"path: there is no file {file}")
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            mesh = meshio.read(file)
    except (Exception, SystemExit) as error:  # meshio raises errors of any type, and may exit
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
    """Fill a closed surface with tetrahedra by fTetWild, with depths."""
    _need("wildmeshing", "filling a surface")
    if not is_closed(points, triangles):
        raise ValueError("triangles: expected a closed surface, got one with a rim")
    share = 0.05 if edge is None else edge / float(np.linalg.norm(np.ptp(points, axis=0)))
    made, cells = _filled(points, triangles, share)
    if len(cells) == 0:
        raise ValueError("triangles: no tetrahedron fits into this surface")
    return _with_depths(made, cells)


def _filled(points: Array, triangles: Indices, share: float) -> tuple[Array, Indices]:
    """Run fTetWild in a separate process, for the reason given in ``filling.py``."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            Path(folder) / "surface.npz",
            points=np.asarray(points, dtype=np.float64),
            triangles=np.asarray(triangles, dtype=np.int32),
            share=share,
        )
        command = [sys.executable, str(Path(__file__).with_name("filling.py"))]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            reason = " ".join(done.stderr.split())[-300:] or f"exit code {done.returncode}"
            raise ValueError(f"triangles: fTetWild cannot fill this surface: {reason}")
        with np.load(Path(folder) / "volume.npz") as volume:
            return volume["points"], volume["tetrahedra"]


def _with_depths(points: Array, cells: Indices) -> Tessellation:
    """Remove unused vertices, orient all tetrahedra to positive volume, and compute relative depths."""
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
    """Compute the distances of the vertices from the surface, m; zero on it."""
    surface = surface_of(tetrahedra)
    depth = np.zeros(len(points))
    inside = np.setdiff1d(np.arange(len(points)), surface)
    # Each pair of a point and a triangle takes ten numbers: two vectors and four scalars.
    step = max(1, MOST_HELD // (10 * len(surface)))
    for start in range(0, len(inside), step):
        some = inside[start : start + step]
        depth[some] = _distances(points[some], points[surface])
    return depth


def _distances(points: Array, triangles: Array) -> Array:
    """Compute the distances of points ``(n, 3)`` from the nearest of the triangles ``(m, 3, 3)``, m."""
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
