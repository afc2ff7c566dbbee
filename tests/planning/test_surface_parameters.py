"""Grasps and strokes of ``SurfaceSampler`` as functions of numbers, for policies that push in a user's own scene."""

from __future__ import annotations

import math

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.envs import EnvOptions, TaskEnv
from qdsim.planning.grasps.samplers import ParametricSampler, placed

HALF, TIP = 0.03, 0.012
FINGERS = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="cube" pos="0 0 .03"><freejoint name="cube"/><geom type="box" size=".03 .03 .03" mass=".2"/></body>
  {bodies}</worldbody><actuator>{actuators}</actuator></mujoco>"""


def fingers() -> qdsim.Model:
    """A cube on the ground between three fingers, each a ball on three slides, with gears of 2."""
    bodies, actuators = "", ""
    for i in range(3):
        x, y = 0.09 * math.cos(2.1 * i), 0.09 * math.sin(2.1 * i)
        joints = (
            f'<joint name="{axis}{i}" type="slide" axis="{direction}" range="-.25 .25"/>'
            for axis, direction in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
        )
        bodies += f'<body name="f{i}" pos="{x} {y} .05">{"".join(joints)}<geom size=".012" mass=".05"/></body>'
        actuators += "".join(f'<position joint="{axis}{i}" kp="300" gear="2"/>' for axis in "xyz")
    return qdsim.load(FINGERS.format(bodies=bodies, actuators=actuators))


def turned(model: qdsim.Model, angle: float) -> np.ndarray:
    q = np.array(model.default_q)
    q[model.slice_q("cube")] = 0, 0, HALF, math.cos(angle / 2), 0, 0, math.sin(angle / 2)
    return q


@pytest.mark.parametrize("finger", [0, 1, 2])
@pytest.mark.parametrize("side", [(1.0, 0.0), (0.0, -1.0), (-0.5, 0.1)])
def test_the_asked_tip_touches_the_asked_side(finger: int, side: tuple[float, float]) -> None:
    """In the axes of the cube, which is turned by half a radian, the middle of the ball is its radius off that face."""
    model, sampler = fingers(), planning.SurfaceSampler("cube", carry=False, close=False)
    assert isinstance(sampler, ParametricSampler)
    q = turned(model, 0.5)
    x = np.array([(finger - 1.0) * 0.7, *side, 0.0])
    grasp = sampler.place(model, q, x)
    assert grasp is not None
    np.testing.assert_array_equal(grasp, sampler.place(model, q, x))
    touching = [model.body_names[b] for b in sampler.touching(model, grasp)]
    assert touching == [f"f{finger}"]
    place, _ = model.body_pose(grasp, f"f{finger}")
    middle, axes = model.body_pose(grasp, "cube")
    k = int(np.argmax(np.abs(side)))
    assert (axes.T @ (place - middle))[k] == pytest.approx(
        math.copysign(HALF + TIP, side[k]), abs=3e-4
    )


def test_a_stroke_moves_the_tip_along_the_axes_of_the_object() -> None:
    """Balls on slides: the command of a motion is the motion times the gear, and the other fingers stay."""
    model, sampler = fingers(), planning.SurfaceSampler("cube", carry=False, close=False)
    rng = np.random.default_rng(0)
    q = np.array([turned(model, angle) for angle in (0.0, 0.5, -2.0)])
    x = np.array([[-0.7, 1, 0, 0], [0.0, 0, 1, 0], [0.7, -1, 0, 0]])
    q, good = placed(sampler, model, q, x)
    assert good.all()
    y = rng.uniform(-1.0, 1.0, (3, 3))
    change = sampler.stroke(model, q, x, y)
    radius = math.sqrt(3.0) * HALF
    for i, (here, motion) in enumerate(zip(q, change)):
        _, axes = model.body_pose(here, "cube")
        want = np.zeros(9)
        want[3 * i : 3 * i + 3] = 2.0 * radius * (axes @ y[i])
        np.testing.assert_allclose(motion, want, atol=1e-12)


def test_numbers_without_a_side_give_no_grasp_and_others_are_checked() -> None:
    model, sampler = fingers(), planning.SurfaceSampler("cube")
    q = turned(model, 0.0)
    assert sampler.place(model, q, np.zeros(4)) is None
    with pytest.raises(ValueError, match="x: expected"):
        sampler.place(model, q, np.zeros(3))


def test_a_push_in_an_environment_moves_the_object_away_from_the_finger() -> None:
    """From the side +x by -1 radius: the cube goes along -x, and does not turn, as the push is through its middle.

    The convex friction law lifts a sliding cube, so its height is left out.
    """
    model = fingers()
    start = turned(model, 0.0)
    box = np.array([0.05, 0.05, 0.0, 0.0, 0.0, 1.0])
    task = planning.Task(
        name="push",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=start,
        goal=start,
        object="cube",
        lower=-box,
        upper=box,
        length=HALF,
        position_tolerance=0.01,
        rotation_tolerance=0.15,
        sampler=planning.SurfaceSampler("cube", carry=False, close=False),
    )
    env = TaskEnv(task, EnvOptions(action="push"))
    env.reset(
        seed=0, options={"q": start, "goal": task.with_object(start, [0.05, 0.05, 0, 0, 0, 0])}
    )
    _, _, _, _, info = env.step(np.array([-1.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0]))
    assert not info["refused"]
    moved = task.space.difference(env.q, start)
    assert moved[0] < -0.02
    np.testing.assert_allclose(moved[[1, 3, 4, 5]], 0.0, atol=2e-3)
