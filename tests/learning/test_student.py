"""A network that turns a cube in a hand: what it sees, the moves of its training, and the choice of moves."""

from __future__ import annotations

import csv
import dataclasses
import functools
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

from qdsim import systems
from qdsim.description.arrays import rotation_matrix
from qdsim.planning.task.symmetry import turned_object

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import ppo
import student as example
import turning

ALIKE = np.zeros(7)
"""Worth of moves, if none is better than another, and how often they were made, if none was."""


@functools.cache
def hand() -> turning.Hand:
    return turning.Hand(systems.load("allegro_cube").tasks["turn"])


def test_symmetric_poses_look_alike() -> None:
    task = hand().task
    rng = np.random.default_rng(0)
    q = task.with_object(task.start, rng.normal(0.0, 0.01, 6))[None]
    u = hand().joints(q) + 0.1
    axis = example.unit(rng.standard_normal((1, 3)))
    goal = turning.turned(axis, np.array([0.7])) @ hand().rotation(q)
    home = np.array([True])
    seen = hand().look(q, u, goal, home).seen
    for S in hand().group:
        other = hand().look(turned_object(task.space, q, S), u, goal @ S, home)
        np.testing.assert_allclose(other.seen, seen, atol=1e-9)


@pytest.mark.parametrize("turn", [1e-3, 0.5, 2.0, np.pi - 1e-5, np.pi])
def test_axes_and_angles_of_rotations(turn: float) -> None:
    axes = example.unit(np.random.default_rng(1).standard_normal((50, 3)))
    R = turning.turned(axes, np.full(50, turn))
    np.testing.assert_allclose(turning.angle(R), turn, atol=1e-6)
    along = (turning.axis(R) * axes).sum(axis=1)
    np.testing.assert_allclose(np.abs(along) if turn == np.pi else along, 1.0, atol=1e-6)


def test_moves_that_arrive_lead_to_every_goal() -> None:
    quats = example.unit(np.random.default_rng(2).standard_normal((500, 4)))
    for goal in rotation_matrix(quats):
        level, made = np.eye(3), 0
        while (move := turning.chosen(level, goal, ALIKE, ALIKE)) < len(turning.QUARTERS):
            level, made = turning.QUARTERS[move] @ level, made + 1
            assert made <= 3
        assert turning.angle(level.T @ goal) <= turning.FARTHEST


def test_a_move_that_has_not_led_to_the_goal_is_followed_by_another() -> None:
    goal = turning.turned(np.array([[0.0, 0.0, 1.0]]), np.array([np.pi]))[0]
    first = turning.chosen(np.eye(3), goal, ALIKE, ALIKE)
    assert turning.chosen(np.eye(3), goal, ALIKE, 1.0 * (np.arange(7) == first)) != first


def test_of_moves_that_lead_as_far_the_better_one_is_chosen() -> None:
    goal = turning.turned(example.unit(np.ones((1, 3))), np.array([2.0 * np.pi / 3.0]))[0]
    moves = set()
    for better in range(len(turning.QUARTERS)):
        worth = 0.1 * (np.arange(7) == better)
        moves.add(turning.chosen(np.eye(3), goal, worth, ALIKE))
    assert moves == {0, 1, 2}


def test_hands_at_rest_begin_anew_after_some_moves() -> None:
    envs = example.Moves(8, hopeless=2)
    envs.reset(seed=0)
    rest, q = np.zeros((8, 16)), envs.q
    for k in range(2 * turning.PATIENCE):
        goals, q = envs.goal.copy(), envs.q.copy()
        _, _, terminated, truncated, info = envs.step(rest)
        last = (k + 1) % turning.PATIENCE == 0
        assert not terminated.any()
        assert (truncated == last).all()
        assert not info["final_info"]["success"].any()
        assert (envs.goal != goals).any() == last
    assert (np.abs(envs.q - q)[:, :16].max(axis=1) > 1e-3).all()


def test_a_cube_at_the_start_lies_if_the_fingers_are_at_home() -> None:
    task = hand().task
    q = np.tile(task.start, (2, 1))
    q[1, task.model.actuated_q[2]] -= 1.5 * turning.HOME
    for symmetry in hand().group[:5]:
        goal = hand().leveled(hand().rotation(turned_object(task.space, q, symmetry)))
        looks = [
            hand().look(turned_object(task.space, q, symmetry), hand().joints(q), goal, home)
            for home in (np.ones(2, bool), np.zeros(2, bool))
        ]
        np.testing.assert_allclose(looks[0].off, 0.0, atol=1e-6)
        assert looks[0].arrived.tolist() == [True, False]
        assert looks[1].arrived.tolist() == [True, True]


def test_goals_of_hands_that_begin_are_quarter_turns_and_turns_ahead() -> None:
    for loose, angles in ((0.0, (0.5 * np.pi,) * 2), (1.0, example.AHEAD)):
        envs = example.Moves(50, loose=loose)
        envs.reset(seed=1)
        level = np.swapaxes(envs.hand.leveled(envs.now.R), 1, 2)
        off = envs.now.off if loose else turning.angle(level @ envs.goal)
        assert not envs.home.any()
        assert (off >= angles[0] - 1e-6).all()
        assert (off <= angles[1] + 1e-6).all()


@pytest.mark.long
def test_a_short_training_makes_more_moves(tmp_path: Path) -> None:
    settings = dataclasses.replace(example.SETTINGS, steps=400_000, envs=256)
    ppo.train(settings, tmp_path / "student", quiet=True, **example.STAGES[0][1])
    with (tmp_path / "student.csv").open(newline="") as file:
        shares = [float(row["success"]) for row in csv.DictReader(file)]
    assert shares[-1] > 3.0 * shares[0]
