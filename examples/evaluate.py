"""How well a policy does on unseen problems, in its model and in MuJoCo.

python examples/evaluate.py pushing.npz --runs 100
"""

from __future__ import annotations

import argparse

import numpy as np

from qdsim.envs import Policy, TaskVectorEnv, deploy, published


def success_in_model(policy: Policy, count: int, seed: int) -> tuple[float, float]:
    """Share of unseen problems that reach their goals without noise, and actions that these took."""
    task, options = published(policy.id)
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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("policy")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1_000_000)
    given = parser.parse_args()
    policy = Policy.load(given.policy)
    share, actions = success_in_model(policy, 512, given.seed)
    print(f"in the model: {share:.3f} of 512, {actions:.1f} actions")
    task, options = published(policy.id)
    if given.runs > 0 and options.action == "push":
        print(deploy(policy, task, options, runs=given.runs, seed=given.seed))


if __name__ == "__main__":
    main()
