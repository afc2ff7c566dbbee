"""First-order policy gradients on short horizons, of any qdsim environment: SHAC's kind (Xu et al. 2022), in jax.

    python examples/shac.py qdsim/PlanarPushing-v0 --steps 100000 --output first
    python examples/shac.py qdsim/PlanarPushing-v0 --begin pushing.npz --output refined

What a few actions bring, and the value of where they end, is differentiated through
`qdsim.rollout_vjp` (exact steps, smoothed backwards), sampler, observations and policy. Beside each
such gradient stands the zeroth-order one, log-density times advantage; of both the mean with the
least variance is taken, for every number of an action (Suh et al. 2022). Actions then move along
it, at most so many spreads of the policy an update. Options, files and --resume as in ppo.py.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import ppo

import qdsim
from qdsim.envs import TaskVectorEnv
from qdsim.envs.features import Goals

SMALL = 1e-6  # of differences: of joints (rad, m) and of actions
MOST = 5.0  # single gradients are cut at so many times the median one
TRUST = 0.3  # spreads that actions may move in the mean, an update
NARROWEST, DECAY = -2.0, 0.01  # of the policy's spreads, log; what they shrink by an update


@dataclasses.dataclass
class Settings(ppo.Settings):
    """What a run depends on."""

    epochs: int = 4  # of an update
    kappa: float = 100.0  # of the smoothed steps backwards; 0: exact ones
    order: float = -1.0  # share of the first-order gradient; < 0: by variances


@dataclasses.dataclass
class Moment:
    """Where all environments were, and what they did."""

    q: np.ndarray
    goals: Goals
    parameters: dict[str, np.ndarray]
    action: np.ndarray


def differences(f: Any, x: np.ndarray) -> list[np.ndarray]:
    """Of f, which gives arrays (n, ...), by every number of x (n, k), at once: arrays (n, k, ...)."""
    count, size = x.shape
    both = np.repeat(x[None], 2 * size, axis=0).reshape(2, size, count, size)
    both[0, range(size), :, range(size)] += SMALL
    both[1, range(size), :, range(size)] -= SMALL
    found = f(both.reshape(-1, size), 2 * size)
    shaped = [y.reshape(2, size, count, *y.shape[1:]) for y in found]
    return [np.moveaxis((y[0] - y[1]) / (2.0 * SMALL), 0, 1) for y in shaped]


@jax.jit
def value_slope(parameters: Any, scaled: Any) -> Any:
    """The value's derivative by observations (n, k)."""
    return jax.grad(lambda x: ppo.network(parameters["value"], x).sum())(scaled)


@jax.jit
def action_slope(parameters: Any, scaled: Any, cotangent: Any) -> Any:
    """A cotangent of mean actions (n, m), by observations (n, k)."""
    return jax.vjp(lambda x: ppo.heads(parameters, x)[1][:, 0], scaled)[1](cotangent)[0]


@functools.partial(jax.jit, static_argnames=("epochs", "rate"))
def towards(state: Any, data: Any, key: Any, epochs: int, rate: float) -> Any:
    """Epochs over all data in shuffled parts, by Adam: the policy towards actions, the value towards
    targets."""

    def loss(parameters: Any, rows: Any) -> Any:
        scaled, wanted, spread, target = (x[rows] for x in data)
        mean = ppo.heads(parameters, scaled)[1][:, 0]
        value = ppo.network(parameters["value"], scaled)[:, 0]
        return jnp.mean(((mean - wanted) / spread) ** 2) + 0.5 * jnp.mean((value - target) ** 2)

    def step(state: Any, rows: Any) -> tuple[Any, None]:
        return ppo.adam(state, jax.grad(loss)(state[0], rows), rate), None

    return jax.lax.scan(step, state, ppo.parts(key, len(data[0]), epochs))[0]


class Run(ppo.Run):
    """A training under way.

    Attributes:
        share: of the first-order gradient in the latest update.
    """

    settings: Settings

    def __init__(self, settings: Settings, **changes: Any) -> None:
        if settings.choices != 1:
            raise ValueError("choices: a first-order gradient needs a single Gaussian")
        super().__init__(settings, **changes)
        whole = self.env.unwrapped
        assert isinstance(whole, TaskVectorEnv)
        if len(whole.rules.moves.laws) > 1:
            raise ValueError("contacts: a first-order gradient needs the same in every episode")
        if whole.rules.options.dynamics != "quasi_dynamic":
            raise ValueError("dynamics: a first-order gradient needs 'quasi_dynamic'")
        self.players, self.rules = whole, whole.rules
        self.moments: list[Moment] = []
        self.share = 0.0

    def before(self, action: np.ndarray) -> None:
        """Remember where everything is."""
        players = self.players.players
        goals = Goals(players.goals.q.copy(), players.goals.pose.copy())
        own = {name: values.copy() for name, values in players.parameters.items()}
        clipped = np.clip(action, -1.0, 1.0).astype(np.float64)
        self.moments.append(Moment(players.q.copy(), goals, own, clipped))

    def improve(self, batch: ppo.Batch) -> None:
        """One update."""
        parameters, s = self.state[0], self.settings
        spread = np.exp(np.asarray(parameters["spread"], np.float64)[0])
        mean = np.asarray(ppo.heads(parameters, batch.scaled)[1][..., 0, :], np.float64)
        noise = (batch.action - mean) / spread
        unit = batch.gain - batch.gain.mean()
        zeroth = unit[..., None] * noise / spread
        first = np.zeros_like(zeroth) if s.order == 0.0 else self._first_order(batch)
        self.moments.clear()
        gradient = self._mixed(cut(zeroth), cut(first))
        if s.begin and self.updates < ppo.WARM:
            gradient[:] = 0.0
        scale = np.sqrt(np.mean((gradient * spread) ** 2)) + 1e-12
        move = np.clip(TRUST * gradient * spread / scale, -2.0 * TRUST, 2.0 * TRUST) * spread
        data = (batch.scaled, mean + move, np.broadcast_to(spread, mean.shape), batch.target)
        data = tuple(jnp.asarray(x.reshape(-1, *x.shape[2:]), jnp.float32) for x in data)
        self.state = towards(self.state, data, self.key(2), s.epochs, s.rate)
        narrower = jnp.maximum(self.state[0]["spread"] - DECAY, NARROWEST)
        self.state[0]["spread"] = jnp.maximum(
            narrower, jnp.minimum(self.state[0]["spread"], NARROWEST)
        )

    def _mixed(self, zeroth: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Both, by the inverse of their variances; where the first-order one sees nothing at all, the other one."""
        if self.settings.order >= 0.0:
            return self.settings.order * first + (1.0 - self.settings.order) * zeroth
        v0, v1 = zeroth.var(axis=(0, 1)), first.var(axis=(0, 1))
        share = np.where(v1 > 0.0, v0 / np.maximum(v0 + v1, 1e-300), 0.0)
        self.share = float(share.mean())
        return share * first + (1.0 - share) * zeroth

    # ------------------------------------------------------------ backwards

    def _first_order(self, batch: ppo.Batch) -> np.ndarray:
        """Of what follows each action (T, n, m), discounted from there, by the action."""
        spread = self.spread
        seen = value_slope(self.state[0], jnp.asarray(batch.last)) / spread
        state = np.zeros_like(self.moments[0].q)
        found = np.zeros((*batch.gain.shape, self.rules.action_size))
        for t in reversed(range(len(self.moments))):
            before = t + 1 < len(self.moments)
            found[t], state = self._back(t, batch.over[t], state, np.asarray(seen), before)
            inside = np.abs(batch.action[t]) < 1.0
            cotangent = jnp.asarray(found[t] * inside, jnp.float32)
            seen = action_slope(self.state[0], jnp.asarray(batch.scaled[t]), cotangent) / spread
        return found

    def _back(
        self, t: int, over: np.ndarray, state: np.ndarray, seen: np.ndarray, before: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """From cotangents of where action t led, state (n, nq) and observation (n, k), to those of
        the action (n, m) and of the state before it (n, nq); `before`: whether another reward
        counts from there."""
        rules, s, moment = self.rules, self.settings, self.moments[t]
        law = rules.moves.laws[0]
        assert isinstance(law.options, qdsim.Options)  # not of a second-order world
        course = rules.moves.course(moment.q, moment.action)
        after = ~over[:, None] * s.gamma
        by_end = np.zeros_like(state)
        by_told = np.zeros((len(state), rules.viewer.more))

        def cotangent(path: np.ndarray) -> np.ndarray:
            potential, look, told = self._slopes(path[:, -1], moment, course.u[:, -1])
            later = state + np.einsum("nqk,nk->nq", look, seen) - before * potential
            by_end[:] = potential + after * later
            by_told[:] = after * np.einsum("nqk,nk->nq", told, seen)
            out = np.zeros_like(path)
            out[:, -1] = np.where(course.good[:, None], by_end, 0.0)
            return out

        pulled = qdsim.rollout_vjp(
            law.model,
            course.begin,
            course.u,
            law.options,
            cotangent=cotangent,
            parameters=moment.parameters or None,
            threads=rules.options.threads,
            errors="mark",
            coordinates="ambient",
            derivative="smoothed" if s.kappa > 0.0 else "step",
            kappa=s.kappa if s.kappa > 0.0 else None,
        )
        by_begin, by_u = (np.nan_to_num(pulled.gradients[name]) for name in ("q", "u"))
        if rules.viewer.more:
            by_u[:, -1] += by_told[:, : by_u.shape[2]]

        def by_action(x: np.ndarray, times: int) -> list[np.ndarray]:
            return through(rules.moves.course(np.tile(moment.q, (times, 1)), x), times)

        def by_state(x: np.ndarray, times: int) -> list[np.ndarray]:
            return through(rules.moves.course(x, np.tile(moment.action, (times, 1))), times)

        def through(c: Any, times: int) -> list[np.ndarray]:
            total = np.sum(c.begin * np.tile(by_begin, (times, 1)), axis=1)
            total += np.sum(c.u * np.tile(by_u, (times, 1, 1)), axis=(1, 2))
            return [np.where(c.good & np.tile(course.good, times), total, np.nan)]

        action = np.nan_to_num(differences(by_action, moment.action)[0])
        if rules.viewer.more:
            action += by_told[:, by_u.shape[2] :]
        back = np.nan_to_num(differences(by_state, moment.q)[0])
        return action, np.where(course.good[:, None], back, by_end)

    def _slopes(self, q: np.ndarray, moment: Moment, u: np.ndarray) -> list[np.ndarray]:
        """Of potential (n, nq) and observation (n, nq, k) by where everything is, and of the latter
        by what the robot was told (n, more, k).
        """
        rules = self.rules

        def look(x: np.ndarray, times: int) -> list[np.ndarray]:
            told = rules.told(x, np.tile(u, (times, 1)), np.tile(moment.action, (times, 1)))
            seen = rules.viewer.look(x, goals(times), told)
            return [seen.potential, seen.seen]

        def goals(times: int) -> Goals:
            return moment.goals[np.tile(np.arange(len(q)), times)]

        def hear(x: np.ndarray, times: int) -> list[np.ndarray]:
            return [rules.viewer.look(np.tile(q, (times, 1)), goals(times), x).seen]

        if not rules.viewer.more:
            nothing = np.zeros((len(q), 0, rules.observation_size))
            return [*differences(look, q), nothing]
        return [*differences(look, q), *differences(hear, rules.told(q, u, moment.action))]


def train(settings: Settings, output: Path, **more: Any) -> Run:
    """As `ppo.train`."""
    run = ppo.train(settings, output, kind=Run, **more)
    assert isinstance(run, Run)
    return run


def cut(gradient: np.ndarray) -> np.ndarray:
    """Single gradients (..., m) no longer than MOST times the median one."""
    size = np.linalg.norm(gradient, axis=-1, keepdims=True)
    most = MOST * np.median(size[size > 0.0]) if (size > 0.0).any() else 1.0
    return gradient * np.minimum(1.0, most / np.maximum(size, 1e-300))


if __name__ == "__main__":
    ppo.main(Settings, Run, __doc__)
