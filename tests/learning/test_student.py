"""Networks that turn a cube in a hand: the cube's rotation reaches its goal in the model."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

from qdsim import systems

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import known_turns
import student as example
import turning


class Reached(Exception):
    """The cube is at its goal."""


class Watched(example.Model):
    """The model, which tells when the cube is near a goal, and stands still after some seconds."""

    def advance(self, u: np.ndarray) -> None:
        super().advance(u)
        if turning.angle(self.goal.T @ self.model.body_pose(self.q, "cube")[1]) < 0.2:
            raise Reached
        self.lost = self.lost or self.steps > 60


def rest(seen: np.ndarray) -> np.ndarray:
    """No pressure of the fingers: for networks that a test does without."""
    return np.zeros(16)


@functools.cache
def hand() -> turning.Hand:
    return turning.Hand(systems.load("allegro_cube").tasks["turn"])


def turned(v: np.ndarray) -> np.ndarray:
    """The rotation (3, 3) of a rotation vector."""
    a = np.linalg.norm(v)
    return known_turns.rotation_matrix(np.concatenate(([np.cos(a / 2)], np.sin(a / 2) * v / a)))


def test_symmetric_poses_look_alike() -> None:
    task = hand().task
    rng = np.random.default_rng(0)
    q = task.with_object(task.start, rng.normal(0.0, 0.01, 6))
    u, R = hand().joints(q), hand().pose(q)[1]
    goal = R @ turned(np.array([0.1, 0.5, -0.2]))
    seen = hand().turning(q, u, goal)
    for S in hand().group[:5]:
        other = known_turns.turned_object(task.space, q, S)
        np.testing.assert_allclose(hand().turning(other, u, goal @ S), seen, atol=1e-9)


@pytest.mark.long
def test_a_short_training_turns_the_cube() -> None:
    turns = []
    for sign in (1.0, -1.0):
        goal = turned(np.array([0.0, 0.0, sign * np.pi / 2]))
        q = np.array(hand().task.start)
        turns.append(known_turns.found_turn(hand(), goal, q, hand().joints(q)))
    assert all(turn is not None for turn in turns)
    training = example.Training(hand(), turns, [], example.none(), [], 0.0)
    nets = {}
    for noise, share in ((0.02, 0.0), (0.01, 1.0)):
        training.practise("drill", 2, noise, share, 0, nets)
        nets = training.networks(2000, 128, 0)
    reached = []
    for k, start in zip(range(10), known_turns.starts(hand(), np.random.default_rng(1))):
        turn = turns[k % 2]
        net = nets["turn"][k % 2]
        student = turning.Student(hand(), turn.goal[None], lambda _: [0.0], [net], rest, rest)
        world = Watched(hand().task)
        world.goal = turn.goal
        world.reset(start)
        try:
            student.control(world, turn.q[-1])
        except Reached:
            reached.append(k)
    assert len(reached) >= 7
