"""A short training by the example, its curve, and what happens when it is stopped and goes on."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

from qdsim.envs import Policy, Range

EXAMPLES = Path(__file__).parents[2] / "examples"


@functools.cache  # compiled once
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_a_short_training_learns_and_goes_on(tmp_path: Path) -> None:
    ppo = example("ppo")
    settings = ppo.Settings("qdsim/PlanarPushing-v0", steps=4096, envs=64, length=4, scale=0.3)
    changes = {"pool": 64, "near": 3.0}
    run = ppo.train(settings, tmp_path / "push", quiet=True, **changes)
    assert run.done == 4096
    rows = (tmp_path / "push.csv").read_text().splitlines()
    assert rows[0] == "actions,cpu_seconds,success,reward" and len(rows) == 2
    policy = Policy.load(tmp_path / "push.npz")
    observation, _ = run.env.reset(seed=0)
    assert policy(observation).shape == (64, 4)
    # the options it was trained with, which others begin with
    assert policy.options == {"scale": 0.3}
    further = ppo.Settings(settings.id, begin=str(tmp_path / "push.npz"), contacts="mujoco")
    assert ppo.options_of(further) == {"scale": 0.3, "contacts": ["mujoco"]}
    # ranges take the place of the model's values; factors leave a policy's own model as it is
    drawn = ppo.Settings(settings.id, randomize="joint_damping=20..60,pair_friction=0.8:1.2")
    dataclasses.replace(policy, options=ppo.options_of(drawn)).save(tmp_path / "drawn.npz")
    (kept,) = Policy.load(tmp_path / "drawn.npz").options.items()
    assert kept[0] == "randomize" and list(kept[1]) == ["joint_damping"]
    damping = kept[1]["joint_damping"]
    assert isinstance(damping, Range) and (damping.low, damping.high) == (20.0, 60.0)
    # the same seed, the same policy
    again = ppo.train(settings, tmp_path / "again", quiet=True, **changes).policy
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(policy.weights, again.weights))
    # goes on from where it was; a line of the curve that no checkpoint knows of is made again
    with (tmp_path / "push.csv").open("a") as file:
        file.write("8192,9.9,0.5,0.5\n")
    seconds = float(rows[1].split(",")[1])
    more = ppo.Settings(**{**vars(settings), "steps": 16384})
    ppo.train(more, tmp_path / "push", resume=True, quiet=True, **changes)
    lines = (tmp_path / "push.csv").read_text().splitlines()
    assert lines[:2] == rows and not any(line.startswith("8192,9.9") for line in lines)
    table = np.genfromtxt(tmp_path / "push.csv", delimiter=",", skip_header=1)
    assert table[0, 0] == 4096 and table[-1, 0] == 16384 and table[-1, 1] > seconds
    # one that is done stays as it is
    assert ppo.train(more, tmp_path / "push", resume=True, quiet=True, **changes).done == 16384
    assert (tmp_path / "push.csv").read_text().splitlines() == lines
    assert table[-1, 3] > table[0, 3]  # reward, of 16 updates each
    (tmp_path / "other.npz").write_bytes((tmp_path / "push.npz").read_bytes())
    wide = ppo.Settings("qdsim/PlanarPushing-v0", envs=4, width=8)
    with pytest.raises(ValueError, match="another environment or network"):
        ppo.Run(wide, **changes).resume(tmp_path / "other.npz")


@pytest.mark.long
def test_trainings_on_processes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two at once, and one after the other; this process may have other settings of jax."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    ppo = example("ppo")
    settings = [ppo.Settings("qdsim/PlanarPushing-v0", 512, 64, seed=k) for k in range(2)]
    spawned = multiprocessing.get_context("spawn")
    curves = [
        ppo.sweep(
            [(s, tmp_path / f"{name}_{s.seed}") for s in settings],
            functools.partial(ProcessPoolExecutor, count, mp_context=spawned),
        )
        for name, count in (("one", 1), ("two", 2))
    ]
    for one, two in zip(*curves):
        assert one["actions"].tolist() == two["actions"].tolist() == [512.0]
        assert np.array_equal(one["reward"], two["reward"])
    weights = [Policy.load(tmp_path / f"{name}_1.npz").weights for name in ("one", "two")]
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(*weights))


@pytest.mark.long
def test_first_order_training_goes_on_from_another_policy(tmp_path: Path) -> None:
    ppo, shac = example("ppo"), example("shac")
    changes = {"pool": 64, "near": 3.0}
    given = ppo.Settings("qdsim/PlanarPushing-v0", steps=1024, envs=64, length=4)
    given = dataclasses.replace(given, randomize="pair_friction=0.8:1.2,body_mass=1..30")
    ppo.train(given, tmp_path / "push", quiet=True, **changes)
    settings = shac.Settings(given.id, steps=1024, envs=32, length=4)
    run = shac.train(settings, tmp_path / "first", quiet=True, **changes)
    assert 0.0 < run.share < 1.0  # of both gradients some
    again = shac.train(settings, tmp_path / "again", quiet=True, **changes)
    for a, b in zip(run.policy.weights, again.policy.weights):
        assert np.array_equal(a[0], b[0])
    # stopped and gone on; and refining what another training has made
    more = shac.Settings(**{**vars(settings), "steps": 2048})
    assert shac.train(more, tmp_path / "first", resume=True, quiet=True, **changes).done == 2048
    begun = shac.Settings(given.id, envs=32, length=4, begin=str(tmp_path / "push.npz"))
    seen = run.env.reset(seed=0)[0]
    refined = shac.Run(begun, **changes)
    assert np.allclose(refined.policy(seen), Policy.load(tmp_path / "push.npz")(seen), atol=1e-5)
    refined.advance()
    assert all(np.isfinite(W).all() for W, _ in refined.policy.weights)
    with pytest.raises(ValueError, match=r"^randomize: "):
        ppo.Run(dataclasses.replace(given, randomize="mass"))
    with pytest.raises(ValueError, match=r"^choices: "):
        shac.Run(shac.Settings(given.id, choices=2))


@pytest.mark.long
@pytest.mark.parametrize("name", ["qdsim/PlanarPushing-v0", "qdsim/PlanarHandCommand-v0"])
def test_first_order_gradients_are_those_of_what_follows(name: str) -> None:
    """Differences of rewards, and of the value at the end, by the first action; the policy reacts on the way."""
    ppo, shac = example("ppo"), example("shac")
    run = shac.Run(shac.Settings(name, envs=24, length=3, kappa=0.0), pool=64)
    parameters, rules, gamma = run.state[0], run.rules, run.settings.gamma
    parameters["spread"] = parameters["spread"] - 1.0  # well within what actions may be
    run._look(run.observation)
    _, batch = run._played()
    first = run.moments[0]
    gradient = run._first_order(batch)[0]

    def mean(scaled: np.ndarray) -> np.ndarray:
        return np.asarray(ppo.heads(parameters, scaled.astype(np.float32))[1][:, 0], np.float64)

    def value(scaled: np.ndarray) -> np.ndarray:
        return np.asarray(ppo.network(parameters["value"], scaled.astype(np.float32))[:, 0])

    noise = [batch.action[t] - mean(batch.scaled[t]) for t in range(3)]

    def follows(action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        players = rules.begin(first.q.copy(), first.goals.q, first.parameters)
        total, good = np.zeros(len(action)), np.ones(len(action), bool)
        for t in range(3):
            if t > 0:
                action = mean(run._scaled(players.seen)) + noise[t]
            good &= (np.abs(action) < 0.95).all(axis=1) | (t == 0)
            before = players.potential.copy()
            ended = rules.play(players, np.clip(action, -1.0, 1.0))
            good &= ~(ended.terminated | ended.refused)
            total += gamma**t * (players.potential - before)
        return total + gamma**3 * value(run._scaled(players.seen)), good

    compared, close = 0, 0
    for j in range(rules.action_size):
        step = np.zeros(rules.action_size)
        step[j] = 1e-3
        (up, a), (down, b) = follows(first.action + step), follows(first.action - step)
        inside = a & b & (np.abs(first.action) < 0.95).all(axis=1)
        wanted = (up - down)[inside] / 2e-3
        compared += inside.sum()
        # where a contact is made or lost in between, one of both has a kink
        close += np.sum(np.abs(gradient[inside, j] - wanted) < 0.05 * np.abs(wanted) + 0.02)
    assert compared > 20 and close > 0.8 * compared
