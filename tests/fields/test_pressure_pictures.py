"""Patches in pictures and in the viewer: triangles, pressures at corners, colours, and where there are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from field_bodies import all_bodies, pose, random_pose, soft_bodies

import qdsim
from qdsim.planning.drawing.patches import pressure_colours
from qdsim.pressure import PressureField, pressure_patch

SOFT, BODIES = soft_bodies(1e6), all_bodies(1e6)

PINCH = """<mujoco><worldbody>
  <geom name='floor' type='plane' size='1 1 .1'/>
  <body name='left' pos='-.07 0 .12'><joint name='l' type='slide' axis='1 0 0'/><geom name='lt' size='.03'/></body>
  <body name='right' pos='.07 0 .12'><joint name='r' type='slide' axis='1 0 0'/><geom name='rt' size='.03'/></body>
  <body name='box' pos='0 0 .12'><freejoint/><geom name='b' type='box' size='.045 .03 .05'/></body>
</worldbody><actuator><position joint='l' kp='2000'/><position joint='r' kp='2000'/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def pinch() -> qdsim.Model:
    return qdsim.load(PINCH, soft={"lt": 1e5, "rt": 1e5})


def own_pressure(body: PressureField, element: int, points: np.ndarray) -> np.ndarray:
    corner = body.vertices[body.tetrahedra[element]]
    value = body.pressure[body.tetrahedra[element]]
    gradient = np.linalg.solve(corner[1:] - corner[0], value[1:] - value[0])
    return value[0] + (points - corner[0]) @ gradient


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("first", ["sphere", "rigid cube", "rigid torus", "stiff cube", "floor"])
@pytest.mark.parametrize("second", ["stone", "torus"])
def test_triangles_and_pressures_at_corners(first: str, second: str) -> None:
    rng = np.random.default_rng(2)
    found = pressure_patch(BODIES[first], SOFT[second], random_pose(rng, 0.02))
    corners = found.vertices[found.triangles]
    normals = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.linalg.norm(normals, axis=1).sum() == pytest.approx(found.area, rel=1e-9)
    mean = found.vertex_pressure[found.triangles].mean(axis=1)
    assert mean @ normals == pytest.approx(found.force, abs=1e-8 * found.total_pressure)
    most = found.vertex_pressure.max()
    for polygon in found.polygons:
        if polygon["area"] > 1e-12:
            some = slice(polygon["vertex_start"], polygon["vertex_start"] + polygon["vertex_count"])
            expected = own_pressure(SOFT[second], polygon["element_b"], found.vertices[some])
            assert found.vertex_pressure[some] == pytest.approx(expected, abs=1e-5 * most)


def test_no_patch_has_no_triangles() -> None:
    apart = pressure_patch(SOFT["cube"], SOFT["cube"], pose((1.0, 0, 0)))
    assert apart.triangles.shape == (0, 3) and apart.vertex_pressure.shape == (0,)


def test_colours_grow_brighter_with_pressure() -> None:
    colours = pressure_colours(np.linspace(0.0, 1.0, 20))
    assert np.all((colours >= 0.0) & (colours <= 1.0))
    assert np.all(np.diff(colours.sum(axis=1)) > 0.0)


# ------------------------------------------------------------------------------------------------ pictures


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("backend", ["matplotlib", "mujoco"])
def test_pictures_show_patches(backend: str, pinch: qdsim.Model, tmp_path: Path) -> None:
    """What is seen has the colours of pressure, and has not where nothing presses."""
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    if backend == "mujoco":
        from qdsim.planning.drawing.offscreen import is_available

        if not is_available():
            pytest.skip("no OpenGL")
    from qdsim.planning.drawing.still import draw_configuration

    apart = pinch.default_q.copy()
    apart[pinch.joint_names.index("l")] -= 0.05
    apart[pinch.joint_names.index("r")] += 0.05
    bright = np.round(255 * pressure_colours(np.array([1.0])))[0]
    seen = []
    for q in (pinch.default_q, apart):
        draw_configuration(pinch, tmp_path / "a.png", q, backend=backend)
        pixels = np.asarray(image.open(tmp_path / "a.png").convert("RGB"), dtype=float)
        seen.append((np.abs(pixels - bright).max(axis=2) < 12).sum())
    assert seen[0] > 5 and seen[1] == 0


@pytest.mark.long
def test_planar_pictures_show_patches(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    from qdsim.planning.drawing.planar import new_figure, save_figure
    from qdsim.planning.drawing.scenes import scene_of

    model = qdsim.load(
        """<mujoco><worldbody><geom name='wall' type='box' size='.02 .1 .1' pos='-.1 0 0'/>
        <body name='disc'><joint name='x' type='slide' axis='1 0 0'/><joint name='y' type='slide' axis='0 1 0'/>
        <joint name='z' type='hinge' axis='0 0 1'/><geom name='d' type='cylinder' size='.09 .02'/></body>
        </worldbody></mujoco>""",
        soft={"d": 1e5},
    )
    scene = scene_of(model, "disc", np.atleast_2d(model.default_q))
    figure = new_figure(3.0, 3.0, dpi=60)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    scene.draw(ax, model.default_q)
    patches = [c for c in ax.collections if c.get_zorder() == 5]
    assert len(patches) == len(qdsim.pressure_surface(model, model.default_q)) == 1
    save_figure(figure, tmp_path / "flat.png")
    assert image.open(tmp_path / "flat.png").size == (180, 180)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("backend", ["matplotlib", "mujoco"])
def test_movies_show_patches_on_one_scale(
    backend: str, pinch: qdsim.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One frame a configuration; the largest pressure of all of them is the brightest colour, smaller ones are not.

    Colours are those handed to the writer: a GIF has 256 of them and moves the rest."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("imageio")
    image = pytest.importorskip("PIL.Image")
    from qdsim.planning.drawing import movies
    from qdsim.planning.drawing.offscreen import is_available

    if backend == "mujoco" and not is_available():
        pytest.skip("no OpenGL")
    written: list[np.ndarray] = []
    save = movies.save_movie
    monkeypatch.setattr(
        movies, "save_movie", lambda images, *rest: (written.extend(images), save(images, *rest))
    )
    path = np.repeat(pinch.default_q[None], 3, axis=0)
    for k, apart in enumerate((0.05, 0.0005, 0.0)):
        path[k, pinch.joint_names.index("l")] -= apart
        path[k, pinch.joint_names.index("r")] += apart
    movies.write_motion(pinch, path, [tmp_path / "a.gif"], frames_per_second=5, backend=backend)
    movie = image.open(tmp_path / "a.gif")
    assert movie.n_frames == 3 and movie.info["duration"] == 200
    dark, bright = np.round(255 * pressure_colours(np.array([0.3, 1.0])))
    seen = []
    for pixels in written:
        assert pixels.shape == (movie.height, movie.width, 3)
        seen.append(
            [(np.abs(pixels.astype(float) - c).max(axis=2) < 12).sum() for c in (dark, bright)]
        )
    assert len(seen) == 3 and seen[0][1] == seen[1][1] == 0 and seen[2][1] > 5


def test_movies_name_what_is_wrong(pinch: qdsim.Model, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from qdsim.planning.drawing.pictures import write_motion

    q, file = pinch.default_q[None], tmp_path / "a.gif"
    with pytest.raises(ValueError, match="configurations: expected shape"):
        write_motion(pinch, pinch.default_q, [file])
    with pytest.raises(ValueError, match="configurations: expected shape"):
        write_motion(pinch, q[:0], [file])
    with pytest.raises(ValueError, match=r"paths: expected .gif, .mp4 or .webm"):
        write_motion(pinch, q, [tmp_path / "a.png"])
    with pytest.raises(TypeError, match="paths: expected a list of files"):
        write_motion(pinch, q, file)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="object: the model has no body 'nothing'"):
        write_motion(pinch, q, [file], object="nothing")
    with pytest.raises(ValueError, match="frames_per_second"):
        write_motion(pinch, q, [file], frames_per_second=0)


# ------------------------------------------------------------------------------------------------ viewer


def test_viewer_shows_patches(pinch: qdsim.Model, tmp_path: Path) -> None:
    """Bands of pressure add up to the patches; pages hold them; they go where contact ends."""
    pytest.importorskip("viser")
    from qdsim import viewer
    from qdsim.viewer.patches import BANDS, band_colours, bands, highest_pressure

    surfaces = qdsim.pressure_surface(pinch, pinch.default_q)
    most = highest_pressure(surfaces)
    meshes = bands(surfaces, {"lt", "rt"}, most, 0.0)
    assert len(meshes) == len(band_colours()) == BANDS
    area = 0.0
    for points, triangles in meshes:
        a, b, c = points[triangles].transpose(1, 0, 2)
        area += 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    assert area == pytest.approx(sum(s.area for s in surfaces), rel=1e-9)
    for surface, raised in zip(surfaces, (-1.0, 1.0)):  # balls are outside of the box
        points = np.concatenate([p for p, _ in bands([surface], {"lt", "rt"}, most, 1e-3)])
        assert points[:, 0] == pytest.approx(raised * 0.046, abs=1e-9)
    assert bands([], set(), 0.0, 0.0)[0][1].shape == (0, 3)
    apart = pinch.default_q.copy()
    apart[pinch.joint_names.index("l")] -= 0.05
    apart[pinch.joint_names.index("r")] += 0.05
    with viewer.Viewer(pinch) as shown:
        nodes = shown._scene._patches
        assert nodes and all(node.visible for node in nodes.values())
        shown.update(apart)
        assert not any(node.visible for node in nodes.values())
        shown.record(np.stack([apart, pinch.default_q]))
        assert shown._scene.most_pressure == pytest.approx(most)
        assert "</html>" in shown.page()
