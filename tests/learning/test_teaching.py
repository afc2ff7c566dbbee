"""What is cloned from demonstrations, and pushes in MuJoCo."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from test_learning import EXAMPLES, example

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

from mass_matrix import mass_matrix

from qdsim.data import demonstrations
from qdsim.envs import Policy, deploy, published
from qdsim.envs.deployment import _Robot, make_heavier
from qdsim.envs.rules import Rules
from qdsim.planning.execution.plant import Plant, second_order
from qdsim.planning.task.transfer_options import TransferOptions

NAME = "qdsim/PlanarPushing-v0"


@pytest.mark.long
def test_a_clone_pushes_towards_the_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    clone = example("clone")
    task, options = published(NAME, pool=64)
    data = demonstrations(task, 100, options, candidates=32)
    policy, spread = clone.fit(data, NAME, epochs=25, choices=4)
    assert policy.choices == 4 and spread.shape == (4, 4)
    rules = Rules(task, options)
    seeds = np.arange(5000, 5200, dtype=np.uint64)
    cloned, random = (rules.draw(seeds, np.zeros(200, np.uint64)) for _ in range(2))
    before = cloned.potential.copy()
    for _ in range(4):
        rules.play(cloned, policy(rules.observe(cloned)))
        rules.play(random, np.random.default_rng(0).uniform(-1.0, 1.0, (200, rules.action_size)))
    assert np.mean(cloned.potential > before) > 0.85
    assert np.median(cloned.potential) > np.median(random.potential) + 1.0
    # reinforcement learning begins where cloning ended
    path = tmp_path / "cloned.npz"
    policy.save(path, log_spread=spread)
    ppo = sys.modules["ppo"]
    settings = ppo.Settings(NAME, steps=512, envs=64, length=8, begin=str(path))
    begun = ppo.train(settings, tmp_path / "further", quiet=True, pool=64).policy
    seen = np.random.default_rng(0).standard_normal((5, len(policy.mean)))
    assert np.allclose(begun(seen), policy(seen), atol=0.02)  # the first updates are the value's
    policy.save(path)
    with pytest.raises(ValueError, match=r"cloned\.npz: no spreads"):
        ppo.Run(settings, pool=64)
    Policy("other", policy.weights, policy.mean, policy.spread, 4).save(path, log_spread=spread)
    with pytest.raises(ValueError, match="of another environment, other"):
        ppo.Run(settings, pool=64)


@pytest.mark.parametrize("friction", [0.3, pytest.param(0.7, marks=pytest.mark.long)])
def test_strokes_are_as_long_in_mujoco_as_in_the_model(friction: float) -> None:
    task, options = published(NAME, pool=64)
    rules, how = Rules(task, options), TransferOptions(support_friction=friction)
    mj = second_order(task.model, task.object, how)
    plant = Plant(task.model, task.space, mj, how, True)
    rng = np.random.default_rng(0)
    for seed in range(12):
        players = rules.draw(np.array([seed], np.uint64), np.zeros(1, np.uint64))
        action = np.array(
            [*rng.uniform(-1.0, 1.0, 2), rng.uniform(-0.2, 0.4), rng.uniform(-0.3, 0.3)]
        )
        moved = rules.moves(players.q, action[None], {})
        plant.reset(players.q[0])
        robot = _Robot(task, plant, 0.3, False, rng)
        assert robot.go(moved.placed[0])
        robot.push(moved)
        begin = task.model.command_from(moved.placed[0])
        along = moved.command[0] - begin
        along = along / np.linalg.norm(along)
        # but for how far the object goes on when the robot stops
        assert 0.0 <= along @ (plant.q - moved.q[0])[task.model.actuated_q] < 0.02


@pytest.mark.long
def test_robots_go_round_the_object() -> None:
    """From one side of the box to the others: it stays, and the pusher comes to where it should push."""
    pytest.importorskip("ompl")
    task, options = published(NAME, pool=64)
    rules, how = Rules(task, options), TransferOptions()
    plant = Plant(
        task.model, task.space, second_order(task.model, task.object, how), how, compensated=True
    )
    plant.reset(rules.draw(np.zeros(1, np.uint64), np.zeros(1, np.uint64)).q[0])
    robot = _Robot(task, plant, 0.3, True, np.random.default_rng(0))
    before = plant.q
    for x in ((1.0, 0.3), (-1.0, -0.5), (0.2, 1.0), (0.0, -1.0)):
        moved = rules.moves(plant.q[None], np.array([[*x, -1.0, 0.0]]), {})
        assert robot.go(moved.placed[0])
        assert np.allclose(plant.q, moved.placed[0], atol=5e-3)
        assert np.abs((plant.q - before)[task.space.q]).max() < 2e-3


def test_evaluations_go_on_where_they_were_stopped(tmp_path, monkeypatch) -> None:
    """A block of runs is kept; another policy in the same place begins anew."""
    evaluate = example("evaluate")
    given = argparse.Namespace(speed=0.3, motions=False, contacts="stiff", randomize="")
    calls: list[tuple[int, int]] = []

    def few(policy, seed, runs, given):
        calls.append((seed, runs))
        return {
            "success": [True] * runs,
            "pushes": [3] * runs,
            "shift": [0.1] * runs,
            "turn": [0.0] * runs,
        }

    monkeypatch.setattr(evaluate, "in_mujoco", few)
    monkeypatch.setattr(evaluate, "success_in_model", lambda *arguments: (1.0, 4.0))
    path = tmp_path / "push.npz"
    zeros = Policy(NAME, [(np.zeros((8, 4)), np.zeros(4))], np.zeros(8), np.ones(8))
    zeros.save(path)
    evaluate.evaluate(path, 15, 4, 100, given)
    assert calls == [(100, 10), (110, 5)]
    evaluate.evaluate(path, 20, 4, 100, given)
    assert calls[2:] == [(115, 5)]
    said = json.loads(path.with_suffix(".json").read_text())
    assert said["mujoco"][0]["runs"] == 20 and said["model"]["success"] == 1.0
    given.randomize = "pair_compliance=0..0"
    evaluate.evaluate(path, 0, 4, 100, given)
    kept = json.loads(path.with_suffix(".json").read_text())
    assert kept["drawn"] == {given.randomize: said["model"]} and kept["mujoco"] == said["mujoco"]
    Policy(NAME, [(np.ones((8, 4)), np.zeros(4))], np.zeros(8), np.ones(8)).save(path)
    evaluate.evaluate(path, 5, 4, 100, given)
    assert calls[3:] == [(100, 5)]


@pytest.mark.long
def test_runs_of_a_policy_in_mujoco() -> None:
    """A policy of no use is counted as such, and what it left is told."""
    task, options = published(NAME, pool=32, horizon=2)
    found = deploy(lambda observation: np.zeros((len(observation), 4)), task, options, runs=2)
    assert found.success.shape == (2,) and not found.success.any() and (found.pushes == 2).all()
    assert (found.shift > 0.0).all() and "0 of 2 reach the goal in MuJoCo" in str(found)
    again = deploy(lambda observation: np.zeros((len(observation), 4)), task, options, runs=2)
    assert np.array_equal(found.shift, again.shift)
    for wrong in ({"runs": 0}, {"seed": -1}, {"speed": 0.0}, {"noise": -1.0}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
            deploy(Policy, task, options, **wrong)
    for wrong in (
        {"mass": (0.0, 1.0)},
        {"mass": (1e300, 1e300)},
        {"speed": 1e-300},
        {"friction": (1.0, 1e300)},
        {"friction": (0.5, 0.4)},
        {"support_friction": (-1.0, 1.0)},
    ):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
            deploy(Policy, task, options, **wrong)
    for answer, what in (
        (np.zeros((1, 3)), r"expected shape \(1, 4\), got \(1, 3\)"),
        (np.full((1, 4), np.nan), r"element \[0, 0\] is nan"),
        (0.0, r"expected shape \(1, 4\)"),
    ):
        with pytest.raises(ValueError, match=f"^policy: {what}"):
            deploy(lambda _, answer=answer: answer, task, options, runs=1)
    with pytest.raises(TypeError, match=r"^policy: expected a function, got int"):
        deploy(3, task, options, runs=1)
    with pytest.raises(TypeError, match=r"^mass: expected \(low, high\)"):
        deploy(Policy, task, options, mass=1.0)
    with pytest.raises(ValueError, match=r"^options: expected action 'push'"):
        deploy(Policy, task, published("qdsim/PlanarHandCommand-v0")[1])


@pytest.mark.long
def test_pushes_that_do_nothing_are_not_repeated() -> None:
    """A pinch without a change of the command moves nothing; noise does, before the late one of the 13th push."""
    task, options = published("qdsim/PlanarHand-v0", pool=8, horizon=8, scale=0.4)

    def idle(observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), 6))

    left = {
        noise: deploy(idle, task, options, runs=1, speed=1.0, noise=noise) for noise in (0.0, 1.0)
    }
    rules = Rules(task, options)
    players = rules.draw(np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    first = task.space.errors(players.q[0], players.goals.q[0])
    assert np.allclose((left[0.0].shift[0], left[0.0].turn[0]), first, atol=1e-6)
    assert abs(left[1.0].turn[0] - first[1]) > 1e-2 or abs(left[1.0].shift[0] - first[0]) > 2e-3


@pytest.mark.parametrize("name", [NAME, "qdsim/AllegroBall-v0"])
def test_heavier_objects_are_harder_to_accelerate(name: str) -> None:
    """Of the object's coordinates the mass matrix is that of the model times the factor, of the robot's it stays."""
    import mujoco

    task, _ = published(name)
    found = []
    for factor in (1.0, 2.5):
        mj = second_order(task.model, task.object, TransferOptions())
        make_heavier(mj, task.object, factor)
        data = mujoco.MjData(mj)
        data.qpos[:] = task.start
        mujoco.mj_forward(mj, data)
        found.append(mass_matrix(mj, data))
    own, held = task.space.v, np.asarray(task.model.actuated_v)
    assert np.allclose(found[1][np.ix_(own, own)], 2.5 * found[0][np.ix_(own, own)])
    assert np.allclose(found[1][np.ix_(held, held)], found[0][np.ix_(held, held)])
