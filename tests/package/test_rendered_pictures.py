"""Pictures by MuJoCo's renderer show what Matplotlib's show, at the same place."""

import numpy as np
import pytest

import qdsim
from qdsim.planning import pictures
from qdsim.planning.drawing.rendered import RenderedScene
from qdsim.planning.drawing.spatial import SpatialScene

SCENE = """<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0 0.1 0 0 0 0.08 0 0.1 0.08 0 0.03 0.03 0.05"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="arm" pos="-.3 0 .1"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .15 0 .1" size=".03" mass="1"/></body>
    <body name="thing" pos="0 0 .2"><freejoint/>
      <geom type="SHAPE" mass="1" pos=".02 .01 0" euler="20 30 40"/></body>
  </worldbody>
  <actuator><position joint="a" kp="10"/></actuator>
</mujoco>"""

SHAPES = {
    "sphere": 'sphere" size=".08',
    "box": 'box" size=".1 .06 .04',
    "cylinder": 'cylinder" size=".06 .08',
    "ellipsoid": 'ellipsoid" size=".1 .06 .04',
    "capsule": 'capsule" size=".04 .08',
    "mesh": 'mesh" mesh="wedge',
}


@pytest.fixture(autouse=True)
def opengl(monkeypatch):
    """A context without a window, where the machine has one."""
    for name in ("MUJOCO_GL", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    try:
        model = qdsim.load(SCENE.replace("SHAPE", SHAPES["sphere"]))
        axes_of(RenderedScene(model, "thing"))
    except Exception as error:
        pytest.skip(f"no OpenGL: {error}")


def axes_of(scene, **how):
    figure = pictures.new_figure(3.0, 3.0, dpi=100)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.axis("off")
    q = scene.model.default_q
    low, high = scene.window(q[None])
    middle, half = 0.5 * (low + high), 0.55 * float((high - low).max())
    scene.prepare(ax, middle - half, middle + half)
    scene.draw(ax, q, **how)
    figure.canvas.draw()
    return figure, np.asarray(figure.canvas.buffer_rgba())[:, :, :3].astype(int)


def covered(image):
    return np.abs(image - image[0, 0]).sum(axis=2) > 24


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_agree(shape):
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES[shape]))
    view = {"azimuth": 35.0, "elevation": 25.0}
    drawn, rendered = (
        covered(axes_of(kind(model, "thing", **view))[1]) for kind in (SpatialScene, RenderedScene)
    )
    assert drawn.mean() > 0.05
    # The painter's balls are polygons, and faces have edges of 0.6 points.
    assert (drawn & rendered).sum() > 0.93 * (drawn | rendered).sum()


def test_a_cloud_of_points_is_its_hull():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    points *= 0.08 / np.linalg.norm(points, axis=1)[:, None]
    builder = qdsim.SceneBuilder()
    builder.body("thing", mass=1.0, inertia=(0.1, 0.1, 0.1), pos=(0.02, 0.01, 0.2))
    builder.joint("thing", "free")
    builder.geom("thing", "cloud", cloud=qdsim.PointCloud(points))
    builder.geom("world", "plane")
    builder.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), pos=(-0.3, 0.0, 0.1))
    builder.joint("arm", "slide", name="a", stiffness=10.0)
    builder.geom("arm", "sphere", (0.03,))
    view = {"azimuth": 35.0, "elevation": 25.0}
    drawn, rendered = (
        covered(axes_of(kind(qdsim.build(builder.build()), "thing", **view))[1])
        for kind in (SpatialScene, RenderedScene)
    )
    assert drawn.mean() > 0.05
    assert (drawn & rendered).sum() > 0.93 * (drawn | rendered).sum()


def test_walls_before_what_moves_are_not_drawn():
    scene = SCENE.replace("SHAPE", SHAPES["box"])
    walls = """<geom type="box" pos="0 -{} .2" size="1 .01 .5"/><geom type="box" pos="0 .5 .2" size=".3 .01 .5"/>"""
    view = {"azimuth": -90.0, "elevation": 0.0}
    open_, closed = (
        axes_of(
            RenderedScene(
                qdsim.load(scene.replace('<body name="arm', more + '<body name="arm')),
                "thing",
                **view,
            )
        )[1]
        for more in ("", walls.format(0.5))
    )
    moving = covered(open_)
    assert moving.sum() > 100
    assert np.abs(open_ - closed)[moving].mean() < 12.0, "what moves looks as it does without walls"
    assert np.abs(open_ - closed)[~moving].mean() > 12.0, "the wall behind is there"


def test_robot_is_drawn_faintly_or_not_at_all():
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["box"]))
    scene = RenderedScene(model, "thing")
    solid, ghost, none = (axes_of(scene, robot=how)[1] for how in ("solid", "ghost", "none"))
    assert covered(none).sum() < covered(solid).sum()
    robot = covered(ghost) & covered(solid) & ~covered(none)
    assert robot.sum() > 100
    contrast = [np.abs(image - image[0, 0])[robot].sum() for image in (ghost, solid)]
    assert 0.1 * contrast[1] < contrast[0] < 0.5 * contrast[1]


def test_a_turned_ball_looks_otherwise():
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["sphere"]))
    scene = RenderedScene(model, "thing")
    first = axes_of(scene)[1]
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["sphere"]).replace("20 30 40", "60 30 40"))
    second = axes_of(RenderedScene(model, "thing"))[1]
    assert (np.abs(first - second).sum(axis=2) > 60).sum() > 300


def test_backend_is_named(tmp_path):
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["box"]))
    with pytest.raises(ValueError, match="backend"):
        pictures.draw_configuration(model, tmp_path / "a.png", backend="povray")
