"""How well a policy does on unseen problems, in its model and in MuJoCo.

    python examples/evaluate.py pushing.npz --runs 100 --motions

Keeps what it finds in pushing.json, ten runs at a time; one that was stopped goes on. Runs of another kind (--motions,
--contacts, --speed) stand beside those that are there, and so do problems of a model with other parameters (--randomize
pair_compliance=5e-4..5e-4: contacts of 2,000 N/m).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from qdsim.envs import Policy, TaskVectorEnv, deploy, published
from qdsim.planning import TransferOptions
from qdsim.progress import progress_bar
from qdsim.whole_files import replacing

BLOCK = 10  # runs between savings


def success_in_model(
    policy: Policy, count: int, seed: int, randomize: str = ""
) -> tuple[float, float]:
    """Share of unseen problems that reach their goals without noise, and actions that these took.

    ``randomize``, as of ppo.py, stands in place of what the training drew.
    """
    changes = dict(policy.options)
    if randomize:
        from ppo import draws  # needs jax

        changes["randomize"] = draws(randomize)
    task, options = published(policy.id, **changes)
    env = TaskVectorEnv(task, count, options)
    observation, _ = env.reset(seed=seed)
    success, over, actions = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count)
    for k in range(env.rules.horizon):
        observation, _, terminated, truncated, info = env.step(policy(observation))
        first = info["success"] & ~over
        success |= first
        actions[first] = k + 1
        over |= terminated | truncated
    return float(success.mean()), float(actions[success].mean()) if success.any() else float("nan")


def in_mujoco(
    policy: Policy, seed: int, runs: int, given: argparse.Namespace
) -> dict[str, list[Any]]:
    """A block of runs."""
    task, options = published(policy.id, **policy.options)
    found = deploy(
        policy,
        task,
        options,
        runs=runs,
        seed=seed,
        speed=given.speed,
        motions=given.motions,
        transfer=TransferOptions(contacts=given.contacts),
    )
    return {name: getattr(found, name).tolist() for name in ("success", "pushes", "shift", "turn")}


def summary(how: str, runs: dict[str, list[Any]]) -> dict[str, Any]:
    """Of all runs of one kind, which it keeps."""
    success = np.array(runs["success"], bool)
    pushes = np.array(runs["pushes"])[success]
    return {
        "how": how,
        "runs": len(success),
        "success": int(success.sum()),
        "pushes": float(pushes.mean()) if len(pushes) else float("nan"),
        "shift": float(np.median(runs["shift"])),
        "turn": float(np.median(runs["turn"])),
        "each": runs,
    }


def evaluate(path: Path, runs: int, problems: int, seed: int, given: argparse.Namespace) -> None:
    """A policy in its model and in MuJoCo, kept beside it."""
    policy, place = Policy.load(path), path.with_suffix(".json")
    mark = hashlib.sha256(
        np.concatenate([W.ravel() for W, _ in policy.weights]).tobytes()
    ).hexdigest()
    said: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    if said.get("policy") != mark:
        said = {"policy": mark, "mujoco": []}
    share, actions = success_in_model(policy, problems, seed, given.randomize)
    solved = {"count": problems, "success": share, "actions": actions}
    if given.randomize:
        said.setdefault("drawn", {})[given.randomize] = solved
    else:
        said["model"] = solved
    print(f"in the model: {share:.3f} of {problems}, {actions:.1f} actions", flush=True)
    way = "the robot goes to each grasp" if given.motions else "the robot is set to each grasp"
    how = f"{way}, {given.contacts} contacts, {given.speed:g} m/s"
    found: dict[str, list[Any]] = {name: [] for name in ("success", "pushes", "shift", "turn")}
    found = next((run["each"] for run in said["mujoco"] if run["how"] == how), found)
    if published(policy.id, **policy.options)[1].action != "push":
        runs = 0
    with progress_bar(True, runs, "in MuJoCo", "runs") as bar:
        while len(found["success"]) < runs:
            done = len(found["success"])
            count = min(BLOCK, runs - done)
            more = in_mujoco(policy, seed + done, count, given)
            found = {name: values + more[name] for name, values in found.items()}
            said["mujoco"] = [run for run in said["mujoco"] if run["how"] != how]
            said["mujoco"].append(summary(how, found))
            keep(place, said)
            bar(done + count, f"{sum(found['success'])} reach the goal")
    if runs > 0:
        print(f"in MuJoCo: {sum(found['success'])} of {len(found['success'])}, {how}", flush=True)
    keep(place, said)


def keep(place: Path, said: dict[str, Any]) -> None:
    """Whole or not at all."""
    with replacing(place) as file:
        file.write(json.dumps(said).encode())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("policy", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--problems", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--speed", type=float, default=0.3)
    parser.add_argument("--contacts", choices=("stiff", "soft", "default"), default="stiff")
    parser.add_argument("--motions", action="store_true")
    parser.add_argument("--randomize", default="", help="of the problems in the model")
    given = parser.parse_args()
    evaluate(given.policy, given.runs, given.problems, given.seed, given)


if __name__ == "__main__":
    main()
