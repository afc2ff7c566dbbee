"""Trainings by other libraries: the code of docs/learning.md, as it stands there, and how well its policies do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qdsim.envs import TaskVectorEnv, published

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"
UNSEEN = 10**6  # first seed of the tried problems; those of trainings are smaller

Act = Callable[[Any], Any]


def of_stable_baselines(made: dict[str, Any]) -> Act:
    """Return the policy that the code has left in `model`."""
    return lambda seen: made["model"].predict(seen, deterministic=True)[0]


def of_torchrl(made: dict[str, Any]) -> Act:
    """Return the policy that the code has left in `mean`."""
    import torch

    def act(seen: Any) -> Any:
        with torch.no_grad():
            return made["mean"](torch.tensor(seen, dtype=torch.float32))[0].numpy()

    return act


def of_skrl(made: dict[str, Any]) -> Act:
    """Return the policy that the code has left in `policy`."""
    import torch

    def act(seen: Any) -> Any:
        given = {"observations": torch.tensor(seen, dtype=torch.float32)}
        with torch.no_grad():
            return made["policy"].act(given)[1]["mean_actions"].numpy()

    return act


LIBRARIES = {"stable_baselines3": of_stable_baselines, "torchrl": of_torchrl, "skrl": of_skrl}


def code(library: str) -> str:
    """Return the block of the page that imports a library."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (found,) = [text for text in blocks if re.search(rf"^from {library}\b", text, re.M)]
    return str(found)


def train(library: str, seed: int = 0) -> tuple[Act, float]:
    """Run the code of the page, with another seed; return its policy, and the CPU seconds."""
    text, count = re.subn(r"(seed\(|seed=)0\b", rf"\g<1>{1000 * seed}", code(library))
    assert count > 0
    made: dict[str, Any] = {"__name__": library}
    began = time.process_time()
    exec(compile(text, library, "exec"), made)
    return LIBRARIES[library](made), time.process_time() - began


def share(act: Act, count: int = 1024) -> float:
    """Return the share of unseen problems that a policy solves."""
    task, options = published("qdsim/PlanarPushing-v0")
    envs = TaskVectorEnv(task, count, options, autoreset_mode="SameStep")
    seen, _ = envs.reset(seed=UNSEEN)
    solved, over = np.zeros(count, bool), np.zeros(count, bool)
    while not over.all():
        seen, _, terminated, truncated, info = envs.step(act(seen))
        ends = (terminated | truncated) & ~over
        if ends.any():
            solved |= ends & info["final_info"]["success"].astype(bool)
        over |= ends
    return float(solved.mean())
