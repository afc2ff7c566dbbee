"""Fields from files of tetrahedra and from surfaces that are filled."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from field_bodies import corner, pose, torus

from qdsim.pressure import HalfSpace, PressureField, RigidSurface, pressure_patch

TORUS = torus(1e5)


def volume(field: PressureField) -> float:
    x = field.vertices[field.tetrahedra]
    return float(np.linalg.det(x[:, 1:] - x[:, :1]).sum() / 6)


@pytest.mark.parametrize("suffix", [".vtk", ".vtu", ".msh", ".mesh"])
def test_files_of_tetrahedra(suffix: str, tmp_path: Path) -> None:
    """Pressure grows with the distance from the surface to the modulus where it is largest; inverted cells are turned
    round, vertices of none and cells of the surface left out."""
    meshio = pytest.importorskip("meshio")
    points = np.vstack([[9.0, 9.0, 9.0], TORUS.vertices])
    cells = TORUS.tetrahedra.astype(np.int64) + 1
    cells[::2] = cells[::2][:, [1, 0, 2, 3]]
    faces = RigidSurface.of(TORUS).triangles.astype(np.int64) + 1
    path = tmp_path / f"torus{suffix}"
    meshio.write(path, meshio.Mesh(points, [("triangle", faces), ("tetra", cells)]))
    field = PressureField.from_file(path, 2e5)
    assert len(field.tetrahedra) == len(TORUS.tetrahedra)
    assert volume(field) == pytest.approx(volume(TORUS), rel=1e-9)
    assert field.pressure.max() == pytest.approx(2e5)
    here = pose((0.02, 0.01, 0.02))
    expected = pressure_patch(TORUS, HalfSpace(), here)
    found = pressure_patch(field, HalfSpace(), here)
    assert found.force == pytest.approx(2 * expected.force, rel=1e-9)
    small = PressureField.from_file(path, 2e5, scale=0.5)
    assert volume(small) == pytest.approx(volume(TORUS) / 8, rel=1e-9)


def test_depths_are_distances_from_the_surface() -> None:
    pytest.importorskip("meshio")
    from qdsim.pressure.volumes import depths

    ell = corner(1.0)
    found = depths(ell.vertices, ell.tetrahedra)
    assert found / found.max() == pytest.approx(ell.pressure, abs=1e-12)
    assert found.max() == pytest.approx(0.04)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        PressureField.from_file(tmp_path / "none.vtk", 1e5)
    for name, text in (("a.vtk", "not a mesh"), ("a.msh", ""), ("a.vtu", "<xml"), ("a.abc", "1 2")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=rf"{name} cannot be read as a mesh"):
            PressureField.from_file(tmp_path / name, 1e5)
    surface = RigidSurface.of(TORUS)
    meshio.write(
        tmp_path / "b.vtk", meshio.Mesh(surface.vertices, [("triangle", surface.triangles)])
    )
    with pytest.raises(ValueError, match="has no tetrahedra"):
        PressureField.from_file(tmp_path / "b.vtk", 1e5)
    cube = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], dtype=float)
    hexahedron = meshio.Mesh(cube, [("hexahedron", [[0, 1, 3, 2, 4, 5, 7, 6]])])
    meshio.write(tmp_path / "c.vtk", hexahedron)
    with pytest.raises(ValueError, match="cells of kind hexahedron"):
        PressureField.from_file(tmp_path / "c.vtk", 1e5)
    one = meshio.Mesh(np.vstack([np.zeros(3), np.eye(3)]), [("tetra", [[0, 1, 2, 3]])])
    meshio.write(tmp_path / "d.vtk", one)
    with pytest.raises(ValueError, match="every vertex lies on the surface"):
        PressureField.from_file(tmp_path / "d.vtk", 1e5)
    with pytest.raises(ValueError, match="scale"):
        PressureField.from_file(tmp_path / "d.vtk", 1e5, scale=0.0)


def test_missing_readers_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surface = RigidSurface.of(TORUS)
    for module in ("meshio", "wildmeshing"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"needs meshio: pip install 'qdsim\[fields\]'"):
        PressureField.from_file(tmp_path / "a.vtk", 1e5)
    with pytest.raises(ImportError, match=r"needs wildmeshing: pip install 'qdsim\[fields\]'"):
        PressureField.within(surface.vertices, surface.triangles, 1e5)


@pytest.mark.long
def test_surfaces_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wildmeshing")
    monkeypatch.chdir(tmp_path)
    surface = RigidSurface.of(TORUS)
    used, numbers = np.unique(surface.triangles, return_inverse=True)
    points, faces = surface.vertices[used], numbers.reshape(-1, 3)
    field = PressureField.within(points, faces, 1e5, edge=0.025)
    assert volume(field) == pytest.approx(volume(TORUS), rel=0.02)
    assert field.pressure.max() == pytest.approx(1e5)
    assert not list(tmp_path.iterdir()), "fTetWild's own files stay out of the user's folder"
    assert capfd.readouterr().out == ""
    with pytest.raises(ValueError, match="triangles: expected a closed surface"):
        PressureField.within(points, faces[1:], 1e5)
