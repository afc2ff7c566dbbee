"""Behaviour cloning of the greedy teacher (best of K random pushes), in jax alone.

    python examples/clone.py qdsim/PlanarPushing-v0 --episodes 1500 --output cloned

Writes cloned.npz, a `qdsim.envs.Policy`, which `ppo.py --begin cloned.npz` goes on with, and
cloned_data.npz, the demonstrations, which a run that was stopped goes on from. Several pushes may
be as good as each other, at different sides of a box; their mean is none. So what is learned is a
mixture of Gaussians, and the policy takes the likeliest one's mean.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ppo import exported, log_density, of_types, policy_layers

from qdsim.data import Demonstrations, demonstrations
from qdsim.envs import Policy, published

PART, RATE = 256, 1e-3
NARROWEST = -3.0  # of the Gaussians, log


def fit(
    data: Demonstrations, name: str, epochs: int, width: int = 128, choices: int = 16, seed: int = 0
) -> tuple[Policy, np.ndarray]:
    """Maximum likelihood of the teacher's actions, by Adam; the policy and the spreads of its Gaussians."""
    mean, spread = data.observations.mean(axis=0), data.observations.std(axis=0) + 1e-8
    x = jnp.asarray(np.clip((data.observations - mean) / spread, -10.0, 10.0), jnp.float32)
    y = jnp.asarray(data.actions, jnp.float32)
    outputs = y.shape[1]
    parameters = {
        "policy": policy_layers(jax.random.key(seed), [x.shape[1], width, width], choices, outputs),
        "spread": jnp.full((choices, outputs), -0.5),
    }
    zeros = jax.tree.map(jnp.zeros_like, parameters)

    def loss(parameters: Any, rows: Any) -> Any:
        return -jnp.mean(log_density(parameters, x[rows], y[rows]))

    @jax.jit
    def epoch(state: Any, order: Any, rate: Any) -> Any:
        def step(state: Any, rows: Any) -> tuple[Any, None]:
            parameters, first, second, n = state
            g = jax.grad(loss)(parameters, rows)
            n = n + 1
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, g)
            size = rate * jnp.sqrt(1.0 - 0.999**n) / (1.0 - 0.9**n)
            moved = jax.tree.map(
                lambda p, m, v: p - size * m / (jnp.sqrt(v) + 1e-8), parameters, first, second
            )
            moved["spread"] = jnp.maximum(moved["spread"], NARROWEST)
            return of_types((moved, first, second, n), state), None

        return jax.lax.scan(step, state, order)[0]

    state, count = (parameters, zeros, zeros, jnp.zeros((), jnp.float32)), len(x) // PART * PART
    if count == 0:
        raise ValueError(f"{len(x)} actions are too few: at least {PART}")
    for k, key in enumerate(jax.random.split(jax.random.key(seed + 1), epochs)):
        order = jax.random.permutation(key, len(x))[:count].reshape(-1, PART)
        state = epoch(state, order, RATE * (1.0 + np.cos(np.pi * k / epochs)))
    return exported(name, state[0], mean, spread), np.asarray(state[0]["spread"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("id")
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("cloned"))
    given = parser.parse_args()
    began = time.process_time()
    task, options = published(given.id)
    place = given.output.with_name(f"{given.output.stem}_data.npz")
    data = demonstrations(
        task, given.episodes, options, seed=1_000_003 * given.seed, path=place, progress=True
    )
    print(f"{data}, {time.process_time() - began:.1f} CPU s")
    policy, spread = fit(data, given.id, given.epochs, seed=given.seed)
    policy.save(given.output.with_suffix(".npz"), log_spread=spread)
    print(f"{time.process_time() - began:.1f} CPU s with the fit")


if __name__ == "__main__":
    main()
