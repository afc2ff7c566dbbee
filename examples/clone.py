"""Behaviour cloning of the greedy teacher (best of K random pushes), in jax alone.

    python examples/clone.py qdsim/PlanarPushing-v0 --episodes 2000 --output cloned

Writes cloned.npz, a `qdsim.envs.Policy`. The teacher's pushes are drawn at random, so their mean says less than the best
of them: what is learned is the mean and the spread of a Gaussian, and the policy acts by its mean.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ppo import layers, log_density, of_types

from qdsim.data import Demonstrations, demonstrations
from qdsim.envs import Policy, published

PART, RATE = 256, 1e-3


def fit(data: Demonstrations, name: str, epochs: int, width: int = 128, seed: int = 0) -> Policy:
    """Maximum likelihood of the teacher's actions, by Adam."""
    mean, spread = data.observations.mean(axis=0), data.observations.std(axis=0) + 1e-8
    x = jnp.asarray(np.clip((data.observations - mean) / spread, -10.0, 10.0), jnp.float32)
    y = jnp.asarray(data.actions, jnp.float32)
    sizes = [x.shape[1], width, width, y.shape[1]]
    parameters = {
        "policy": layers(jax.random.key(seed), sizes, 0.01),
        "spread": jnp.full(y.shape[1], -0.5),
    }
    zeros = jax.tree.map(jnp.zeros_like, parameters)

    def loss(parameters: Any, rows: Any) -> Any:
        return -jnp.mean(log_density(parameters, x[rows], y[rows]))

    @jax.jit
    def epoch(state: Any, order: Any) -> Any:
        def step(state: Any, rows: Any) -> tuple[Any, None]:
            parameters, first, second, n = state
            g = jax.grad(loss)(parameters, rows)
            n = n + 1
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, g)
            rate = RATE * jnp.sqrt(1.0 - 0.999**n) / (1.0 - 0.9**n)
            moved = jax.tree.map(
                lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), parameters, first, second
            )
            return of_types((moved, first, second, n), state), None

        return jax.lax.scan(step, state, order)[0]

    state, count = (parameters, zeros, zeros, jnp.zeros((), jnp.float32)), len(x) // PART * PART
    for key in jax.random.split(jax.random.key(seed + 1), epochs):
        state = epoch(state, jax.random.permutation(key, len(x))[:count].reshape(-1, PART))
    weights = [(np.asarray(W), np.asarray(b)) for W, b in state[0]["policy"]]
    return Policy(name, weights, mean, spread)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("id")
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("cloned"))
    given = parser.parse_args()
    began = time.process_time()
    task, options = published(given.id)
    data = demonstrations(task, given.episodes, options)
    print(
        f"{len(data.actions)} actions, {data.success.mean():.3f} of the episodes reach the goal, {time.process_time() - began:.1f} CPU s"
    )
    fit(data, given.id, given.epochs).save(given.output.with_suffix(".npz"))
    print(f"{time.process_time() - began:.1f} CPU s with the fit")


if __name__ == "__main__":
    main()
