"""Planning tasks of the published systems: starts, contact samplers, plans by true pose error."""

import dataclasses

import numpy as np
import pytest

from qdsim import planning, systems
from qdsim.planning.closing import joint_limits, near_pairs
from qdsim.planning.task import penetration

TASKS = [
    (name, key)
    for name in systems.TASK_NAMES
    for key, task in systems.load(name).tasks.items()
    if task.sampler is not None
]
SPATIAL = [pair for pair in TASKS if pair[0] not in ("planar_hand", "planar_pushing")]


def task_of(name, task):
    return systems.load(name).tasks[task]


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_starts_lie_within_limits_and_do_not_penetrate(name, task):
    task = task_of(name, task)
    lower, upper = joint_limits(task.model)
    joints = task.start[task.model.actuated_q]
    assert np.all(joints >= lower - 1e-12) and np.all(joints <= upper + 1e-12)
    assert penetration(task.model, task.start) <= 3e-4
    assert not task.reached(task.start) and task.reached(task.goal)
    # The goal lies in the box that subgoals are drawn from.
    e = task.space.difference(task.goal, task.start)
    assert np.all(e >= task.lower - 1e-9) and np.all(e <= task.upper + 1e-9)
    assert task.model.nu == len(lower)


@pytest.mark.parametrize(("name", "task"), SPATIAL)
def test_samples_touch_within_limits_without_penetration(name, task):
    task = task_of(name, task)
    model, rng = task.model, np.random.default_rng(0)
    lower, upper = joint_limits(model)
    found = 0
    for _ in range(12):
        q = task.sampler(model, task.start, rng)
        if q is None:
            continue
        found += 1
        joints = q[model.actuated_q]
        assert np.all(joints >= lower) and np.all(joints <= upper)
        assert len(near_pairs(model, q, 0.0)) == 0  # what stands in its support does not count
        assert q[task.space.q].tobytes() == task.start[task.space.q].tobytes()
        assert len(task.sampler.touching(model, q)) >= 1
    assert found >= 9
    again = task.sampler(model, task.start, np.random.default_rng(7))
    assert np.array_equal(again, task.sampler(model, task.start, np.random.default_rng(7)))


PLANNED = [
    ("allegro_sphere", "quarter_turn"),
    ("allegro_book", "drag"),
    ("allegro_pen", "place"),
    ("allegro_door", "open"),
]


@pytest.mark.parametrize(("name", "task"), PLANNED)
def test_plans_reach_the_goal_by_the_pose(name, task):
    task = task_of(name, task)
    for seed in range(3):
        tree = planning.rrt(task, rng=seed)
        if tree.reached:
            break
    plan = tree.plan()
    verdict = plan.check(task.model)
    assert verdict.good, verdict.faults
    assert task.reached(plan.end)
    lower, upper = joint_limits(task.model)
    for segment in plan.segments:
        joints = segment.configurations[:, task.model.actuated_q]
        assert np.all(joints >= lower - 1e-7) and np.all(joints <= upper + 1e-7)


def test_task_settings_are_what_the_planner_takes():
    task = task_of("allegro_sphere", "half_turn")
    assert task.planner.gamma == 1e-6
    few = dataclasses.replace(task.planner, max_nodes=10)
    tree = planning.rrt(task.replace(planner=few), rng=0)
    assert tree.options == few
