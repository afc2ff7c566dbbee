"""Planners on models whose tips press by pressure fields: their plans hold in the same steps."""

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.planning import ImpcOptions, TrackingCost
from qdsim.planning.task.robot import penetration
from qdsim.systems.system import files


def softened(name, task, modulus, hint):
    """A published task with a soft pusher, friction of each patch as one element; or the one that has soft tips."""
    if modulus is None:
        return systems.load(name).tasks[task]
    task = systems.load(name).tasks[task]
    softness = qdsim.Softness(modulus, hint=hint)
    model = qdsim.load(files()[f"{name}.xml"].decode(), soft={"pusher": softness})
    options = task.options.replace(patch_friction="ellipsoid")
    return task.replace(model=model, options=options)


def patches_of(task, plan):
    """How many of a plan's steps press by a patch."""
    count = 0
    for segment in plan.segments:
        for q, u in zip(segment.configurations, segment.inputs):
            count += bool((qdsim.step(task.model, q, u, task.options).contacts["dim"] == 6).any())
    return count


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "key", "modulus", "hint"),
    [
        ("planar_hand_soft", "half_turn", None, None),
        ("planar_pushing", "move_back", 2e4, 0.05),
    ],
)
def test_rrt_finds_plans_with_soft_tips(name, key, modulus, hint):
    task = softened(name, key, modulus, hint)
    for seed in range(3):
        tree = planning.rrt(task, rng=seed)
        if tree.reached:
            break
    plan = tree.plan()
    verdict = plan.check(task.model)
    assert verdict.good, verdict.faults
    assert task.reached(plan.end) and patches_of(task, plan) > 0


@pytest.mark.long
def test_impc_finds_a_plan_with_soft_tips():
    soft = systems.load("planar_hand_soft")
    task = systems.load("planar_hand").tasks["shift_and_turn"]
    task = task.replace(model=soft.model, options=soft.options)
    goal = task.with_object(task.start, [0.02, 0.02, 0.3])
    cost = TrackingCost(object=10.0, robot=1e-3, command=1.0)
    found = planning.impc(task.replace(goal=goal), task.impc.replace(cost=cost))
    assert found.reached
    verdict = found.plan().check(task.model)
    assert verdict.good, verdict.faults


def lifting():
    """Two soft tips beside a box on the ground."""
    scene = qdsim.SceneBuilder()
    scene.geom("world", "plane", name="ground", friction=0.5)
    for name, x in (("left", -0.0465), ("right", 0.0465)):
        scene.body(name, pos=(x, 0, 0.03), mass=0.05)
        for axis, way in (("x", (1, 0, 0)), ("z", (0, 0, 1))):
            scene.joint(name, "slide", name=name + axis, axis=way, range=(-0.1, 0.1))
            scene.actuator(name + axis, 800.0)
        soft = qdsim.Softness(3e5, hint=0.006)
        scene.geom(name, "sphere", 0.015, name=name, soft=soft, friction=0.8)
    scene.body("box", pos=(0, 0, 0.03), mass=0.1)
    scene.joint("box", "free")
    scene.geom("box", "box", (0.03, 0.03, 0.03), name="box", friction=0.8)
    return qdsim.build(scene.build())


def test_overlap_of_soft_tips_is_no_penetration():
    """It is how they press; so the robot may let go and grasp anew without settling first. Rigid overlap counts."""
    model = lifting()
    options = qdsim.Options(h=0.05, epsilon=0.05, patch_friction="ellipsoid")
    q = np.array(qdsim.step(model, model.default_q, [0.006, 0.0, -0.006, 0.0], options).q_next)
    tips = model.collide(q, 0.0)["dist"].min()
    assert len(qdsim.pressure_surface(model, q)) == 2 and tips < -1e-3
    assert penetration(model, q) < 1e-6
    q[6] -= 0.002  # the box, into the ground
    assert penetration(model, q) == pytest.approx(0.002, abs=1e-6)


@pytest.mark.long
def test_impc_lifts_a_box_by_a_soft_pinch():
    """Smoothed derivatives know that pressing lets the tips lift; no coefficient of torsion holds the box."""
    model = lifting()
    start = model.default_q
    q = start.copy()
    options = qdsim.Options(h=0.05, epsilon=0.05, patch_friction="ellipsoid")
    squeezed = np.array([0.006, 0.0, -0.006, 0.0])
    for _ in range(3):
        q = qdsim.step(model, q, squeezed, options).q_next
    height = q[6]
    task = planning.Task(
        name="lift",
        model=model,
        options=options,
        start=q,
        goal=q + np.array([0, 0, 0, 0, 0, 0, 0.02, 0, 0, 0, 0]),
        object="box",
        lower=np.full(6, -0.1),
        upper=np.full(6, 0.1),
        length=0.05,
        position_tolerance=5e-3,
        start_tolerance=0.01,
    )
    settings = ImpcOptions(
        horizon=10,
        iterations=8,
        cost=TrackingCost(object=10.0, robot=1e-3, command=1e-2, final_object=1e3, final_robot=0.0),
        kappa=1e5,
        start="squeeze",
        squeeze=0.005,
    )
    found = planning.impc(task, settings)
    assert found.q[-1][6] - height > 0.015
    verdict = found.plan().check(model)
    assert verdict.good, verdict.faults
