"""Objects that fingers carry to a goal in the air in one motion, in the model."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.array_type import Array
from qdsim.planning.grasps.carried import carried, grip_of_steps
from qdsim.planning.grasps.samplers.touching import contacts_between
from qdsim.planning.search.path import EdgeKind

WEIGHT = 0.08 * 9.81
FINGER = """
<body pos="{x} {y} .2" euler="0 0 {turn}"><joint name="{k}s" axis="1 0 0" range="-.9 .9"/>
<inertial pos="0 0 0" mass=".05" diaginertia="1e-5 1e-5 1e-5"/>
<body pos=".03 0 0"><joint name="{k}u" axis="0 1 0" range="-1.2 1.4"/>
<geom type="capsule" size=".008" fromto="0 0 0 0 0 -.1" mass=".05"/>
<body pos="0 0 -.1"><joint name="{k}l" axis="0 1 0" range="0 2.4"/>
<geom type="capsule" size=".008" fromto="0 0 0 0 0 -.08" mass=".03"/>
<geom type="sphere" size=".012" pos="0 0 -.09" mass=".02" friction="1"/></body></body></body>"""


def fingers_around_a_cube(height: float) -> planning.Task:
    """Three fingers of three joints, almost stretched where they reach the cube on the floor, which is to be lifted."""
    bodies = springs = ""
    for k in range(3):
        turn = k * math.tau / 3.0
        x, y = 0.11 * math.cos(turn), 0.11 * math.sin(turn)
        bodies += FINGER.format(k=k, turn=turn, x=x, y=y)
        springs += "".join(f'<position name="{k}{j}" joint="{k}{j}" kp="3"/>' for j in "sul")
    model = qdsim.load(f"""<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
<geom type="plane" size="1 1 .1"/><body name="cube" pos="0 0 .0301"><freejoint/>
<geom type="box" size=".03 .03 .03" mass=".08" friction=".8"/></body>{bodies}</worldbody>
<actuator>{springs}</actuator></mujoco>""")
    start = np.array(model.default_q)
    start[model.actuated_q] = [0.0, -0.35, 1.1] * 3
    goal = start.copy()
    goal[model.slice_q("cube")][2] += height
    return planning.Task(
        name="lift",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.02),
        start=start,
        goal=goal,
        object="cube",
        lower=np.array([-0.05, -0.05, 0.0, -0.3, -0.3, -0.3]),
        upper=np.array([0.05, 0.05, height + 0.05, 0.3, 0.3, 0.3]),
        position_tolerance=5e-3,
        rotation_tolerance=0.05,
        sampler=planning.SurfaceSampler("cube"),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_cube_is_lifted_in_one_grasp(seed: int) -> None:
    """Pushes with commands of the smoothed model tilted the cube by 0.07 to 0.17 rad, 100 nodes from the floor. At the
    end the springs of the fingers bear its weight, and it stays."""
    task = fingers_around_a_cube(0.05)
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=40), rng=seed)
    assert tree.reached and tree.goal_node is not None
    assert tree.kind[tree.goal_node] == EdgeKind.PUSH
    plan = tree.plan()
    verdict = plan.check(task.model)
    assert not verdict.faults and not verdict.dropping_regrasps
    model, end, u = task.model, plan.end, plan.segments[-1].inputs[-1]
    height = plan.segments[-1].configurations[:, model.slice_q("cube")][:, 2]
    assert height[0] < 0.031 and height[-1] > 0.075
    for _ in range(5):
        after = qdsim.step(model, end, u, task.options)
        assert task.space.errors(after.q_next, plan.end)[0] < 1e-3
        end = after.q_next
    lifted = sum(_upwards(model, contact) for contact in after.contacts)
    assert lifted == pytest.approx(WEIGHT, rel=1e-3)
    assert not any(contact["body_a"] == 0 for contact in after.contacts if contact["dist"] < 1e-3)


def _upwards(model: qdsim.Model, contact: np.void) -> float:
    """Return the vertical force of a contact on the cube, N."""
    cube = model.body_index("cube")
    sign = {int(contact["body_b"]): 1.0, int(contact["body_a"]): -1.0}.get(cube, 0.0)
    return sign * float(contact["frame"][:, 2] @ contact["force"][:3])


def test_fingers_stick_to_what_they_carry() -> None:
    """Once a finger that is almost stretched has bent, which takes the first step off the floor, contacts slip by less
    than a tenth of the way, in the frame of the contact (Murray, Li and Sastry 1994, section 5.2)."""
    task = fingers_around_a_cube(0.03)
    model, grip = task.model, grip_of_steps(task, planning.GripOptions())
    grasp = task.grasp(task.start, np.random.default_rng(0))
    assert grasp is not None
    motion = carried(task, grip, task.options, grasp)
    assert motion is not None
    inputs, path = motion
    assert task.reached(path[-1]) and inputs.shape == (len(path), model.nu)
    assert all(grip.touching(q) == 3 for q in path)
    ways = [task.space.errors(b, a)[0] for a, b in pairwise(path)]
    off = 1 + int(np.argmax(ways))
    slips = [_slip(model, a, b) for a, b in pairwise(path[off:])]
    assert len(slips) > 10 and max(slips) < 0.1 * max(ways)


def _slip(model: qdsim.Model, a: Array, b: Array) -> float:
    """Return the largest tangential way between two configurations of points that touch in the first, m."""
    (pos, rot), (there, turned) = model.body_poses(a), model.body_poses(b)
    slips = []
    for contact in contacts_between(model, a, "cube", 1e-3):
        sides = int(contact["body_a"]), int(contact["body_b"])
        one, other = (there[k] + turned[k] @ rot[k].T @ (contact["pos"] - pos[k]) for k in sides)
        slips.append(float(np.linalg.norm(contact["frame"][1:] @ (other - one))))
    return max(slips)


def test_what_fingers_do_not_hold_is_not_carried() -> None:
    """Fingers that are away from the cube, and two out of three that touch it."""
    task = fingers_around_a_cube(0.03)
    grip = grip_of_steps(task, planning.GripOptions())
    assert carried(task, grip, task.options, task.start) is None
    grasp = task.grasp(task.start, np.random.default_rng(0))
    assert grasp is not None
    gone = grasp.copy()
    gone[task.model.slice_q("0u")] = -1.0
    assert carried(task, grip, task.options, gone) is None


def test_a_lift_that_does_not_arrive_gains_nothing() -> None:
    """The goal is out of reach: fingers lift the cube and have to set it down where it was. Strokes were taken to gain
    what they lift, and the same few millimetres were lifted again and again."""
    planner = planning.StrokePlanner(fingers_around_a_cube(0.3), rng=0)
    grasp = planner.task.grasp(planner.task.start, planner.rng)
    assert grasp is not None
    stroke = planner.stroke(grasp, 0.0)
    lifted = planner.distance(grasp) - planner.distance(stroke.segment.end)
    assert lifted > 0.02 and abs(stroke.gain) < 2e-3
