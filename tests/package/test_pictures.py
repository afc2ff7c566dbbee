"""Pictures of scenes of a user's own: every shape is seen, whatever the model moves in."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import qdsim
from qdsim import planning
from qdsim.planning import pictures

SHAPES = {
    "box": '<geom type="box" size="0.06 0.04 0.03" mass="0.3"/>',
    "turned box": '<geom type="box" size="0.06 0.04 0.03" euler="0 0 30" mass="0.3"/>',
    "ellipsoid": '<geom type="ellipsoid" size="0.06 0.04 0.03" mass="0.3"/>',
    "capsule": '<geom type="capsule" fromto="-0.05 0 0 0.05 0 0" size="0.03" mass="0.3"/>',
    "cylinder": '<geom type="cylinder" size="0.05 0.03" mass="0.3"/>',
    "mesh": '<geom type="mesh" mesh="wedge" mass="0.3"/>',
}
PLANE = '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="t" axis="0 0 1"/>'
JOINTS = {
    "plane": PLANE,
    "space": '<freejoint name="t"/>',
    "hinge": '<joint name="t" axis="0 0 1"/>',
}


def scene(shape, joints):
    return qdsim.load(f"""<mujoco>
    <option gravity="0 0 0"/>
    <asset><mesh name="wedge" vertex="0 0 0 0.1 0 0 0 0.08 0 0.1 0.08 0 0.03 0.03 0.05"/></asset>
    <worldbody>
      <body name="a" pos="-0.25 0 0"><joint name="a" axis="0 0 1" range="-90 90"/>
        <geom type="capsule" fromto="0 0 0 0.12 0 0" size="0.012" mass="0.1"/>
        <body name="b" pos="0.12 0 0"><joint name="b" axis="0 0 1" range="-130 130"/>
          <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.012" mass="0.1"/></body></body>
      <body name="thing" pos="0 0 0">{JOINTS[joints]}{SHAPES[shape]}</body>
    </worldbody>
    <actuator><position joint="a" kp="20"/><position joint="b" kp="20"/></actuator></mujoco>""")


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("joints", JOINTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_windows_hold_robot_and_object(shape, joints):
    """What is drawn reaches at least as far as finger and object do, and further where the object goes further."""
    model = scene(shape, joints)
    drawn = pictures.scene_of(model, "thing")
    q = np.array(model.default_q)
    low, high = drawn.window(q[None])
    # 0.26 m of finger and some 0.04 m of object beyond; seen from aside they are shorter.
    assert np.all(np.isfinite([low, high]))
    assert (high - low).max() > 0.2
    figure = pictures.new_figure(3.0, 3.0)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    drawn.prepare(ax, low, high)
    empty = np.array(figure_pixels(figure))
    drawn.draw(ax, q, robot="none")
    alone = np.array(figure_pixels(figure))
    drawn.draw(ax, q)
    both = np.array(figure_pixels(figure))
    assert np.any(alone != empty, axis=2).mean() > 0.01  # the object is seen
    assert np.any(both != alone, axis=2).mean() > 0.005  # and so is the robot


def figure_pixels(figure):
    figure.canvas.draw()
    return figure.canvas.buffer_rgba()


@pytest.mark.long
def test_plans_of_one_coordinate_are_drawn(tmp_path):
    """A tree with nothing beside its path, and an object of one coordinate."""
    model = scene("box", "hinge")
    q = np.array(model.default_q)
    q[model.slice_q("a")], q[model.slice_q("b")] = 0.9, -1.2
    goal = q.copy()
    goal[model.slice_q("t")] = 0.3
    options = qdsim.Options(h=0.1, margin=0.1)
    sampler = planning.SurfaceSampler("thing")
    task = planning.Task(
        "turn", model, options, q, goal, "thing", [-0.5], [0.5], sampler, length=0.05
    )
    tree = planning.rrt(task, planning.RRTOptions(step=0.2))
    plan = tree.plan()
    assert plan.check(model).good
    pictures.draw_tree(tree, tmp_path / "tree.png")
    pictures.draw_tree(planning.Tree(task, tree.options), tmp_path / "root.png")
    replay = plan.replay(model)
    pictures.draw_key_frames(plan, replay, model, tmp_path / "frames.png", most=3)
    frames = pictures.key_frames(plan, replay, model, most=len(plan.segments) + 5)
    turns = [plan.segments[k].configurations[i] for k, i in frames]
    path = np.concatenate([segment.configurations for segment in plan.segments])
    way = np.abs(np.diff(path, axis=0)).sum()
    assert np.abs(np.diff(turns, axis=0)).sum(axis=1).max() < 0.5 * way, "frames are all along it"
    assert all(file.stat().st_size > 5000 for file in tmp_path.iterdir())


def seen_share(drawn, q):
    """Share of the object's pixels that the robot leaves."""
    low, high = drawn.window(q[None])
    shots = []
    for robot in ("none", "solid"):
        figure = pictures.new_figure(3.0, 3.0, dpi=100)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        drawn.prepare(ax, low, high)
        ax.axis("off")
        drawn.draw(ax, q, robot=robot)
        for painted in ax.collections:  # no edges that mix colours
            painted.set(antialiased=False, linewidth=0.0)
        shots.append(np.array(figure_pixels(figure)).astype(int)[:, :, :3])
    # The object's colours, not the robot's.
    alone, both = (shot[:, :, 0] - shot[:, :, 2] > 60 for shot in shots)
    assert alone.sum() > 200
    return both[alone].mean()


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wide", [False, True])
def test_cameras_look_past_the_robot(seed, wide):
    """Of all sides, the view is from one where the robot hides little of the object."""
    rng = np.random.default_rng(seed)
    side = rng.uniform(-np.pi, np.pi)
    place = 0.25 * np.array([np.cos(side), np.sin(side)])
    half = 0.3 if wide else 0.1
    model = qdsim.load(f"""<mujoco><option gravity="0 0 0"/><compiler angle="radian"/><worldbody>
      <body name="arm" pos="{place[0]} {place[1]} 0" euler="0 0 {side}"><joint name="j" axis="0 0 1"/>
        <geom type="box" size="0.02 {half} 0.4" mass="1"/></body>
      <body name="thing"><freejoint name="t"/><geom type="box" size="0.06 0.05 0.07" mass="0.1"/></body>
      </worldbody><actuator><position joint="j" kp="20"/></actuator></mujoco>""")
    q = np.array(model.default_q)
    chosen = pictures.SpatialScene(model, "thing", q[None])
    around = [
        seen_share(pictures.SpatialScene(model, "thing", azimuth=a, elevation=28.0), q)
        for a in np.arange(0.0, 360.0, 30.0)
    ]
    assert min(around) < 0.5  # there are sides to avoid
    assert seen_share(chosen, q) >= 0.8 * max(around)


def test_cameras_see_the_motion():
    """An object that goes to and fro is not seen along its way."""
    model = scene("box", "space")
    q = np.array(model.default_q)
    for way in ([0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.2, -0.2, 0.0], [0.0, 0.0, 0.3]):
        goal = q.copy()
        goal[model.slice_q("t")][:3] += way
        drawn = pictures.SpatialScene(model, "thing", np.array([q, goal]), goal)
        assert np.linalg.norm(drawn.view[:2] @ way) > 0.8 * np.linalg.norm(way)


def test_sizes_of_configurations_are_checked():
    model = scene("box", "space")
    with pytest.raises(ValueError, match="goal: expected configurations of 9 numbers"):
        pictures.scene_of(model, "thing", None, np.zeros(4))
    with pytest.raises(ValueError, match="configurations: "):
        pictures.scene_of(model, "thing", np.zeros((0, model.nq)))


@pytest.mark.parametrize("seed", range(3))
def test_meshes_of_many_corners_are_drawn_with_few(seed):
    """Less than 300 faces, whose outline is as large as that of the hull to 3 in 100."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((4000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True) ** rng.uniform(1.0, 1.2)
    points *= rng.uniform(0.02, 0.3, 3)
    vertices = " ".join(f"{x:.6f}" for x in points.ravel())
    model = qdsim.load(f"""<mujoco><asset><mesh name="m" vertex="{vertices}"/></asset><worldbody>
      <body name="arm" pos="1 0 0"><joint name="j"/><geom size="0.1"/></body>
      <body name="thing"><freejoint/><geom type="mesh" mesh="m" mass="1"/></body></worldbody>
      <actuator><position joint="j" kp="2"/></actuator></mujoco>""")
    drawn = pictures.SpatialScene(model, "thing")
    (solid,) = (s for s in drawn.solids if s.body == drawn.object)
    assert len(solid.faces) < 300
    geom = next(g for g in model.description.geoms if g.mesh == "m")
    corners = (solid.corners - geom.pos) @ solid.frame  # as in the mesh
    vertices = np.asarray(model.description.meshes[0].vertices)
    for axes in ([0, 1], [0, 2], [1, 2]):
        area = ConvexHull(corners[:, axes]).volume
        assert 0.97 < area / ConvexHull(vertices[:, axes]).volume <= 1.0 + 1e-9
    # The faces close the surface: their areas times normals add up to nothing.
    np.testing.assert_allclose(solid.areas @ solid.normals, 0.0, atol=1e-9 * solid.areas.sum())


@pytest.mark.parametrize("shape", ["sphere", *SHAPES])
def test_surfaces_are_closed_and_look_outwards(shape):
    """Of every shape; the volume inside is that of the shape but for its facets."""
    text = '<geom type="sphere" size="0.05" mass="1"/>' if shape == "sphere" else SHAPES[shape]
    model = qdsim.load(f"""<mujoco><asset><mesh name="wedge"
      vertex="0 0 0 0.1 0 0 0 0.08 0 0.1 0.08 0 0.03 0.03 0.05"/></asset><worldbody>
      <body name="arm" pos="1 0 0"><joint name="j"/><geom size="0.1"/></body>
      <body name="thing"><freejoint/>{text.replace('mass="0.3"', 'density="1000"').replace('mass="1"', 'density="1000"')}</body></worldbody>
      <actuator><position joint="j" kp="2"/></actuator></mujoco>""")
    drawn = pictures.SpatialScene(model, "thing")
    (solid,) = (s for s in drawn.solids if s.body == drawn.object)
    np.testing.assert_allclose(solid.areas @ solid.normals, 0.0, atol=1e-12)
    heights = np.einsum("ij,ij->i", solid.corners[solid.faces[:, 0]], solid.normals)
    volume = float(solid.areas @ heights) / 3.0
    mass = next(b.mass for b in model.description.bodies if b.name == "thing")
    assert 0.93 < 1000.0 * volume / mass < 1.0 + 1e-6


def test_faint_robots_hide_nothing_and_are_pale():
    """What the robot leaves at a change of grasp is drawn behind everything, paler than the robot."""
    model = scene("box", "space")
    drawn = pictures.SpatialScene(model, "thing", azimuth=35.0)
    q = np.array(model.default_q)
    low, high = drawn.window(q[None])
    shots = []
    for how in ("ghost", "solid"):
        figure = pictures.new_figure(2.0, 2.0)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        drawn.prepare(ax, low, high)
        drawn.draw(ax, q, robot=how)
        shots.append(np.array(figure_pixels(figure)).astype(int)[:, :, :3])
    ghost, solid = shots
    blue = solid[:, :, 2] - solid[:, :, 0] > 40
    assert blue.sum() > 100
    assert np.median(ghost[blue].min(axis=1)) > np.median(solid[blue].min(axis=1)) + 60
