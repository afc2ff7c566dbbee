"""Pictures of scenes of a user's own: every shape is seen, whatever the model moves in."""

import numpy as np
import pytest

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
    pictures.draw_key_frames(plan, plan.replay(model), model, tmp_path / "frames.png", most=3)
    assert all(file.stat().st_size > 5000 for file in tmp_path.iterdir())
