"""Pictures by MuJoCo's renderer show what Matplotlib's show, at the same place."""

import numpy as np
import pytest

import qdsim
from qdsim import systems
from qdsim.planning import pictures
from qdsim.planning.drawing.rendered import RenderedScene
from qdsim.planning.drawing.spatial import SpatialScene

SCENE = """<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0 0.1 0 0 0 0.08 0 0.1 0.08 0 0.03 0.03 0.05"/></asset>
  <worldbody>
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


@pytest.mark.short_cases(1)
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


def check_both_draw_the_same(shape, **geometry):
    """Matplotlib and MuJoCo cover the same pixels by a body of this geometry, but for its edges."""
    builder = qdsim.SceneBuilder()
    builder.body("thing", mass=1.0, inertia=(0.1, 0.1, 0.1), pos=(0.02, 0.01, 0.2))
    builder.joint("thing", "free")
    builder.geom("thing", shape, **geometry)
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


@pytest.mark.long
def test_a_cloud_of_points_is_its_hull():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    points *= 0.08 / np.linalg.norm(points, axis=1)[:, None]
    check_both_draw_the_same("cloud", cloud=qdsim.PointCloud(points))


@pytest.mark.long
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


@pytest.mark.long
def test_frames_without_shapes_hide_no_walls():
    """A frame in the middle of a block, or on top of a table, is not behind it; one that carries a link makes its mount
    part of the robot."""
    model = qdsim.load("""<mujoco><worldbody><geom type="box" size="1 1 .05" pos="0 0 -.05"/>
      <body name="mount"><geom type="box" size=".1 .1 .1" pos="0 0 .1"/>
        <body name="frame"><body name="arm" pos="0 .2 .1"><joint name="a"/><geom size=".03" mass="1"/></body></body></body>
      <body name="block" pos="0 .5 .1"><geom type="box" size=".1 .1 .1"/><body name="empty"/></body>
      <body name="thing" pos="0 -.2 .1"><freejoint/><geom size=".05" mass="1"/></body></worldbody>
      <actuator><position joint="a" kp="1"/></actuator></mujoco>""")
    scene = RenderedScene(model, "thing", azimuth=0.0, elevation=30.0)
    kinds = dict(zip(model.body_names, scene.kind))
    assert kinds["mount"] == kinds["frame"] == "robot"
    assert kinds["block"] == kinds["empty"] == "world"
    axes_of(scene)
    np.testing.assert_array_equal(scene._screen.model.geom_rgba[:, 3] > 0.0, True)


@pytest.mark.long
def test_floors_are_drawn_below_what_moves():
    model = qdsim.load(
        SCENE.replace("<worldbody>", '<worldbody><geom type="plane" size="1 1 1"/>').replace(
            "SHAPE", SHAPES["box"]
        )
    )
    bare = qdsim.load(SCENE.replace("SHAPE", SHAPES["box"]))
    view = {"azimuth": 35.0, "elevation": 25.0}
    for kind in (SpatialScene, RenderedScene):
        floor, none = (axes_of(kind(m, "thing", **view))[1] for m in (model, bare))
        moving = covered(none)
        assert np.abs(floor - none)[moving].mean() < 12.0, "nothing that moves is hidden"
        assert (np.abs(floor - none).sum(axis=2) > 10)[~moving].mean() > 0.3


def test_bodies_are_as_wide_as_their_file_has_them():
    """Links of meshes, capsules and boxes get no bars; spheres along a link are joined, no wider than they are."""
    arm = """<mujoco><worldbody><body name="a"><joint axis="0 1 0" name="a"/>
      {}<body name="b" pos="0 0 .4"><joint axis="0 1 0" name="b"/>{}</body></body></worldbody>
      <actuator><position joint="a" kp="1"/><position joint="b" kp="1"/></actuator></mujoco>"""
    spheres = "<geom size='.03' pos='0 0 .1'/><geom size='.04' pos='0 0 .3'/>"
    capsule = "<geom type='capsule' size='.03' fromto='0 0 .1 0 0 .3'/>"
    count = {}
    for name, geoms in (("spheres", spheres), ("capsule", capsule)):
        model = qdsim.load(arm.format(geoms, geoms))
        scene = SpatialScene(model, "b", azimuth=90.0, elevation=0.0)
        count[name] = len(scene.links)
        assert all(0.0 < link.radius <= 0.04 for link in scene.links)
        assert SpatialScene(model, "b", geometry="collision").links == []
    assert count == {"spheres": 4, "capsule": 0}


def test_floors_lie_below_all_that_is_seen():
    """A plan that goes on for two metres has the floor below its start and below its end."""
    model = qdsim.load(
        SCENE.replace("<worldbody>", '<worldbody><geom type="plane" size="1 1 1"/>').replace(
            "SHAPE", SHAPES["box"]
        )
    )
    way = np.repeat(model.default_q[None], 2, axis=0)
    way[1, model.slice_q("thing").start] += 2.0
    (square,) = SpatialScene(model, "thing", way).floors()
    for q in way:
        place, _ = model.body_pose(q, "thing")
        assert (square[:, :2].min(axis=0) < place[:2]).all()
        assert (square[:, :2].max(axis=0) > place[:2]).all()


def test_robots_without_shapes_are_rods():
    model = systems.load("iiwa").model
    assert not any(body.geoms for body in model.description.bodies)
    scene = SpatialScene(model, model.body_names[-1])
    assert len(scene.links) > 2 and all(link.radius > 0.0 for link in scene.links)


def test_visual_and_collision_geometry():
    """A body with both is drawn by the one that is asked for."""
    body = """<mujoco><worldbody><body name="thing"><freejoint/><geom type="box" size=".1 .1 .1"/>
      <geom type="sphere" size=".03" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    model = qdsim.load(body)
    for kind in (SpatialScene, RenderedScene):
        low, high = kind(model, "thing").window(model.default_q[None], 0.0)
        assert (high - low).max() == pytest.approx(0.06, rel=0.05)
        low, high = kind(model, "thing", geometry="collision").window(model.default_q[None], 0.0)
        assert (high - low).max() > 0.2
    with pytest.raises(ValueError, match="geometry"):
        SpatialScene(model, "thing", geometry="both")


@pytest.mark.long
def test_robot_is_drawn_faintly_or_not_at_all():
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["box"]))
    scene = RenderedScene(model, "thing")
    solid, ghost, none = (axes_of(scene, robot=how)[1] for how in ("solid", "ghost", "none"))
    assert covered(none).sum() < covered(solid).sum()
    robot = covered(ghost) & covered(solid) & ~covered(none)
    assert robot.sum() > 100
    contrast = [np.abs(image - image[0, 0])[robot].sum() for image in (ghost, solid)]
    assert 0.1 * contrast[1] < contrast[0] < 0.5 * contrast[1]


@pytest.mark.long
@pytest.mark.parametrize("colour", ["", '" rgba=".9 .6 .2 1'])
def test_a_turned_ball_looks_otherwise(colour):
    ball = SCENE.replace("SHAPE", SHAPES["sphere"] + colour)
    first = axes_of(RenderedScene(qdsim.load(ball), "thing"))[1]
    model = qdsim.load(ball.replace("20 30 40", "60 30 40"))
    second = axes_of(RenderedScene(model, "thing"))[1]
    assert (np.abs(first - second).sum(axis=2) > 60).sum() > 300


def test_backend_is_named(tmp_path):
    model = qdsim.load(SCENE.replace("SHAPE", SHAPES["box"]))
    with pytest.raises(ValueError, match="backend"):
        pictures.draw_configuration(model, tmp_path / "a.png", backend="povray")


@pytest.mark.long
def test_hills_are_drawn():
    """A height field on the body, which turns it."""
    x = np.linspace(-1.0, 1.0, 17)
    hills = qdsim.HeightField(0.03 * np.cos(4.0 * x) * np.cos(3.0 * x)[:, None], (0.12, 0.1), 0.05)
    check_both_draw_the_same("hfield", hfield=hills, quat=(0.8, 0.0, 0.6, 0.0))
