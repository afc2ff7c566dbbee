"""A short training by the example, its curve, and what happens when it is stopped and goes on."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

from qdsim.envs import Policy

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_short_training_learns_and_goes_on(tmp_path: Path) -> None:
    ppo = example("ppo")
    settings = ppo.Settings("qdsim/PlanarPushing-v0", steps=4096, envs=64, length=4)
    changes = {"pool": 64, "near": 3.0}
    run = ppo.train(settings, tmp_path / "push", quiet=True, **changes)
    assert run.done == 4096
    rows = (tmp_path / "push.csv").read_text().splitlines()
    assert rows[0] == "actions,cpu_seconds,success,reward" and len(rows) == 2
    policy = Policy.load(tmp_path / "push.npz")
    observation, _ = run.env.reset(seed=0)
    assert policy(observation).shape == (64, 4)
    # the same seed, the same policy
    again = ppo.train(settings, tmp_path / "again", quiet=True, **changes).policy
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(policy.weights, again.weights))
    # goes on from where it was
    more = ppo.Settings(**{**vars(settings), "steps": 16384})
    ppo.train(more, tmp_path / "push", resume=True, quiet=True, **changes)
    table = np.genfromtxt(tmp_path / "push.csv", delimiter=",", skip_header=1)
    assert table[0, 0] == 4096 and table[-1, 0] == 16384
    assert table[-1, 3] > table[0, 3]  # reward, of 16 updates each
    (tmp_path / "other.npz").write_bytes((tmp_path / "push.npz").read_bytes())
    wide = ppo.Settings("qdsim/PlanarPushing-v0", envs=4, width=8)
    with pytest.raises(ValueError, match="another environment or network"):
        ppo.Run(wide, **changes).resume(tmp_path / "other.npz")
