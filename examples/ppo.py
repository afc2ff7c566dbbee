"""Proximal policy optimisation (Schulman et al. 2017) of any qdsim environment, in jax alone.

    python examples/ppo.py qdsim/PlanarPushing-v0 --steps 400000 --output pushing

Writes pushing.npz (the policy, with all that a resumed run needs) after every report, whole or not
at all, and pushing.csv, its curve. A run that was stopped goes on with --resume; the same seed
gives the same policy on one machine. --begin cloned.npz begins with a policy that clone.py or
another training has made: the value alone learns in the first updates. Needs the extras ``jax`` and
``envs``.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from qdsim import parallel
from qdsim.envs import Policy, Range
from qdsim.parallel import ExecutorLike
from qdsim.progress import progress_bar
from qdsim.whole_files import replacing

WARM = 8  # updates of the value alone, where the policy was given
CURVE = ["actions", "cpu_seconds", "success", "reward"]
CLIP, PARTS, LAMBDA, ENTROPY = 0.2, 4, 0.95, 1e-3


@dataclasses.dataclass
class Settings:
    """What a run depends on."""

    id: str
    steps: int = 400_000
    envs: int = 256
    length: int = 8  # actions between updates
    gamma: float = 0.9
    width: int = 64
    choices: int = 1  # Gaussians that an action is drawn from
    epochs: int = 5  # of an update
    rate: float = 1e-3  # of Adam
    seed: int = 0
    randomize: str = (
        ""  # drawn an episode: body_mass=3:20 (factors), pair_compliance=0..1e-3 (values)
    )
    contacts: str = ""  # of every episode, or several to draw from: mujoco, or mujoco,rigid
    dynamics: str = "quasi_dynamic"  # or second_order
    scale: float = 0.0  # of a change of the command, rad or m; 0: the published one
    begin: str = ""  # a policy to begin with; its network, and its options where none are given


def draws(text: str) -> dict[str, tuple[float, float] | Range]:
    """From "name=low:high,name=low..high": factors on a parameter, or a range in its place."""
    found: dict[str, tuple[float, float] | Range] = {}
    for part in text.split(",") if text else ():
        name, _, numbers = part.partition("=")
        ends = numbers.split(".." if ".." in numbers else ":")
        if not name or len(ends) != 2:
            raise ValueError(
                f"randomize: expected name=low:high or name=low..high,..., got {text!r}"
            )
        low, high = map(float, ends)
        found[name] = Range(low, high) if ".." in numbers else (low, high)
    return found


def options_of(settings: Settings, **changes: Any) -> dict[str, Any]:
    """Fields of `EnvOptions` that decide what observations and actions mean, where they are not those of the id."""
    own = dict(Policy.load(settings.begin).options) if settings.begin else {}
    if settings.contacts:
        own["contacts"] = settings.contacts.split(",")
    if settings.dynamics != "quasi_dynamic":
        own["dynamics"] = settings.dynamics
    if settings.scale:
        own["scale"] = settings.scale
    ranges = {k: draw for k, draw in draws(settings.randomize).items() if isinstance(draw, Range)}
    if ranges:  # they take the place of the model's values
        own["randomize"] = own.get("randomize", {}) | ranges
    names = ("action", "scale", "sub_steps", "observation", "contacts", "dynamics")
    return own | {name: changes[name] for name in names if name in changes}


def layers(key: Any, sizes: list[int], last: float) -> list[tuple[Any, Any]]:
    """Weights (orthogonal) and biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    gains = [1.4] * (len(sizes) - 2) + [last]
    return [
        (jax.nn.initializers.orthogonal(g)(k, (a, b), jnp.float32), jnp.zeros(b, jnp.float32))
        for k, g, a, b in zip(keys, gains, sizes[:-1], sizes[1:])
    ]


def policy_layers(key: Any, sizes: list[int], choices: int, outputs: int) -> list[tuple[Any, Any]]:
    """Of a mixture; several choices begin apart from each other."""
    first, second = jax.random.split(key)
    *hidden, (W, b) = layers(first, [*sizes, choices * (1 + outputs)], 0.01)
    if choices > 1:
        means = jax.random.uniform(second, (choices * outputs,), jnp.float32, -1.0, 1.0)
        b = b.at[choices:].set(means)
    return [*hidden, (W, b)]


def network(weights: list[tuple[Any, Any]], x: Any) -> Any:
    """tanh layers, the last one linear."""
    for W, b in weights[:-1]:
        x = jnp.tanh(x @ W + b)
    W, b = weights[-1]
    return x @ W + b


def heads(parameters: Any, observation: Any) -> tuple[Any, Any]:
    """The choices' logits (..., choices) and mean actions (..., choices, m)."""
    choices, size = parameters["spread"].shape
    out = network(parameters["policy"], observation)
    return out[..., :choices], out[..., choices:].reshape(*out.shape[:-1], choices, size)


def log_density(parameters: Any, observation: Any, action: Any) -> Any:
    """Of a mixture of Gaussians around the choices' means."""
    logits, means = heads(parameters, observation)
    scaled = (action[..., None, :] - means) * jnp.exp(-parameters["spread"])
    each = jnp.sum(-0.5 * scaled**2 - parameters["spread"] - 0.919, axis=-1)
    return jax.nn.logsumexp(jax.nn.log_softmax(logits) + each, axis=-1)


@jax.jit
def act(parameters: Any, observation: Any, key: Any) -> tuple[Any, Any, Any]:
    """An action, its log density and the value of the observation."""
    logits, means = heads(parameters, observation)
    first, second = jax.random.split(key)
    chosen = jax.random.categorical(first, logits)
    mean = jnp.take_along_axis(means, chosen[..., None, None], axis=-2)[..., 0, :]
    noise = jax.random.normal(second, mean.shape)
    action = mean + jnp.exp(parameters["spread"][chosen]) * noise
    value = network(parameters["value"], observation)[..., 0]
    return action, log_density(parameters, observation, action), value


def loss(parameters: Any, batch: Any) -> Any:
    """Clipped surrogate, squared error of the value, entropy."""
    observation, action, before, advantage, target = batch
    ratio = jnp.exp(log_density(parameters, observation, action) - before)
    clipped = jnp.clip(ratio, 1.0 - CLIP, 1.0 + CLIP)
    gain = jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))
    error = jnp.mean((network(parameters["value"], observation)[..., 0] - target) ** 2)
    return -gain + 0.5 * error - ENTROPY * jnp.sum(parameters["spread"])


def of_types(new: Any, old: Any) -> Any:
    """The same numbers in the types of others: a program may have switched jax to double precision."""
    return jax.tree.map(lambda a, b: a.astype(b.dtype), new, old)


def adam(state: Any, gradient: Any, rate: float) -> Any:
    """A step of parameters, both moments and their count."""
    parameters, first, second, n = state
    n = n + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)
    step = rate * jnp.sqrt(1.0 - 0.999**n) / (1.0 - 0.9**n)
    parameters = jax.tree.map(
        lambda p, m, v: p - step * m / (jnp.sqrt(v) + 1e-8), parameters, first, second
    )
    return of_types((parameters, first, second, n), state)


def parts(key: Any, count: int, epochs: int) -> Any:
    """Rows of the data (epochs PARTS, rows): in every epoch all of them, shuffled, in PARTS parts."""
    orders = [jax.random.permutation(k, count) for k in jax.random.split(key, epochs)]
    return jnp.concatenate(orders).reshape(epochs * PARTS, -1)


@functools.partial(jax.jit, static_argnames=("epochs", "rate"))
def update(state: Any, data: Any, key: Any, epochs: int, rate: float) -> Any:
    """Epochs over all data in shuffled parts, by Adam."""

    def step(state: Any, rows: Any) -> tuple[Any, None]:
        gradient = jax.grad(loss)(state[0], tuple(x[rows] for x in data))
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        gradient = jax.tree.map(lambda g: g * jnp.minimum(1.0, 0.5 / (norm + 1e-9)), gradient)
        return adam(state, gradient, rate), None

    return jax.lax.scan(step, state, parts(key, len(data[0]), epochs))[0]


def exported(name: str, parameters: Any, mean: Any, spread: Any, options: Any = None) -> Policy:
    """As a file: of one choice the mean alone, without its logit."""
    *hidden, (W, b) = [(np.asarray(W), np.asarray(b)) for W, b in parameters["policy"]]
    choices = len(parameters["spread"])
    if choices == 1:
        W, b = W[:, 1:], b[1:]
    return Policy(name, [*hidden, (W, b)], mean, spread, choices, options or {})


class Batch(NamedTuple):
    """What was seen and done, (T, n, ...) each: scaled observations, actions, their log densities,
    advantages, targets of the value, whether an episode ended; and the scaled observations (n, ...)
    at the end.
    """

    scaled: Any
    action: Any
    density: Any
    gain: Any
    target: Any
    over: Any
    last: Any


class Run:
    """A training under way."""

    def __init__(self, settings: Settings, **changes: Any) -> None:
        self.settings = settings
        self.options = options_of(settings, **changes)
        make: dict[str, Any] = {"num_envs": settings.envs}
        make["vectorization_mode"] = "vector_entry_point"
        make["autoreset_mode"] = "SameStep"  # every action is one of an episode
        make |= changes | self.options
        make["randomize"] = make.get("randomize", {}) | draws(settings.randomize)
        self.env = gymnasium.make_vec(settings.id, **make)
        inputs = self.env.single_observation_space.shape[0]
        outputs = self.env.single_action_space.shape[0]
        first, second = jax.random.split(jax.random.key(settings.seed))
        hidden = [settings.width, settings.width]
        parameters = {
            "policy": policy_layers(first, [inputs, *hidden], settings.choices, outputs),
            "value": layers(second, [inputs, *hidden, 1], 1.0),
            "spread": jnp.full((settings.choices, outputs), -0.5),
        }
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        self.state = (parameters, zeros, zeros, jnp.zeros((), jnp.float32))
        self.mean, self.square, self.seen = np.zeros(inputs), np.ones(inputs), 1e-4
        self.done, self.updates = 0, 0
        self.observation, _ = self.env.reset(seed=settings.seed)
        if settings.begin:
            self._begin(Path(settings.begin))

    def _begin(self, path: Path) -> None:
        """With a policy from a file, and its scaling of observations."""
        given = Policy.load(path)
        with np.load(path) as found:
            if "log_spread" not in found:
                raise ValueError(f"{path}: no spreads beside the policy")
            spread = found["log_spread"]
        own = self.state[0]
        weights = given.weights
        if given.choices == 1:  # a file of one choice leaves its logit out
            W, b = weights[-1]
            weights = [*weights[:-1], (np.c_[np.zeros(len(W)), W], np.r_[0.0, b])]
        if given.id != self.settings.id or len(given.mean) != len(self.mean):
            raise ValueError(f"{path}: of another environment, {given.id}")
        own["policy"] = [
            (jnp.asarray(W, jnp.float32), jnp.asarray(b, jnp.float32)) for W, b in weights
        ]
        own["spread"] = jnp.asarray(spread, jnp.float32)
        zeros = jax.tree.map(jnp.zeros_like, own)
        self.state = (own, zeros, zeros, self.state[3])
        self.mean, self.square = given.mean.copy(), given.spread**2 + given.mean**2
        self.seen = 1e6

    @property
    def spread(self) -> Any:
        """Of observations, which they are divided by."""
        return np.sqrt(np.maximum(self.square - self.mean**2, 1e-8))

    def _scaled(self, observation: Any) -> Any:
        return np.clip((observation - self.mean) / self.spread, -10.0, 10.0).astype(np.float32)

    def _look(self, observation: Any) -> None:
        """Running moments of what was observed."""
        share = len(observation) / (self.seen + len(observation))
        self.mean += share * (observation.mean(axis=0) - self.mean)
        self.square += share * ((observation**2).mean(axis=0) - self.square)
        self.seen = min(self.seen + len(observation), 1e6)

    def key(self, stream: int, number: int | None = None) -> Any:
        """Of random numbers of this update, or of another number."""
        at = self.updates if number is None else number
        return jax.random.fold_in(jax.random.key(self.settings.seed + stream), at)

    def before(self, action: Any) -> None:
        """Called before all environments act."""

    def _played(self) -> tuple[dict[str, float], Batch]:
        """`length` actions in all environments: what came of the episodes that ended, and what to learn from."""
        s, kept = self.settings, []
        ended = {"success": 0.0, "episodes": 0.0, "reward": 0.0}
        for t in range(s.length):
            self._look(self.observation)
            scaled = self._scaled(self.observation)
            key = self.key(1, self.updates * s.length + t)
            action, density, value = (np.asarray(x) for x in act(self.state[0], scaled, key))
            self.before(action)
            self.observation, reward, terminated, truncated, info = self.env.step(action)
            over = terminated | truncated
            after = np.zeros_like(value)
            if truncated.any():  # what would have come of it counts
                final = np.array(self.observation)  # of one size, or jax compiles anew
                final[truncated] = np.stack(info["final_obs"][truncated])
                rest = act(self.state[0], self._scaled(final), key)[2]
                after[truncated] = np.asarray(rest)[truncated]
            kept.append((scaled, action, density, value, reward + s.gamma * after, over))
            ended["episodes"] += over.sum()
            if over.any():
                ended["success"] += info["final_info"]["success"].sum()
            ended["reward"] += reward.mean() / s.length
        last = self._scaled(self.observation)
        scaled, action, density, value, reward, over = (np.stack(x) for x in zip(*kept))
        following = np.asarray(act(self.state[0], last, key)[2])
        gain, advantage = np.zeros_like(value), np.zeros_like(following)
        for t in reversed(range(s.length)):
            delta = reward[t] + s.gamma * following * ~over[t] - value[t]
            gain[t] = advantage = delta + s.gamma * LAMBDA * advantage * ~over[t]
            following = value[t]
        return ended, Batch(scaled, action, density, gain, gain + value, over, last)

    def advance(self) -> dict[str, float]:
        """Act `length` times in all environments, then update; returns what came of the episodes that ended."""
        ended, batch = self._played()
        self.improve(batch)
        self.updates += 1
        self.done += self.settings.length * self.settings.envs
        return ended

    def improve(self, batch: Batch) -> None:
        """One update."""
        s = self.settings
        unit = (batch.gain - batch.gain.mean()) / (batch.gain.std() + 1e-8)
        if s.begin and self.updates < WARM:
            unit = np.zeros_like(unit)
        data = (batch.scaled, batch.action, batch.density, unit, batch.target)
        flat = tuple(jnp.asarray(x.reshape(-1, *x.shape[2:]), jnp.float32) for x in data)
        self.state = update(self.state, flat, self.key(2), s.epochs, s.rate)

    @property
    def policy(self) -> Policy:
        """What has been learned so far."""
        own = self.settings.id, self.state[0], self.mean.copy(), self.spread
        return exported(*own, self.options)

    def save(self, path: Path) -> None:
        """The policy, with all that `resume` needs; written beside and then moved to its place."""
        leaves = jax.tree.leaves(self.state)
        rest = {f"state_{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)}
        counts = np.array([self.done, self.updates, self.seen])
        log_spread = np.asarray(self.state[0]["spread"])
        self.policy.save(path, square=self.square, counts=counts, log_spread=log_spread, **rest)

    def resume(self, path: Path) -> None:
        """Go on from what `save` wrote."""
        with np.load(path) as found:
            leaves, tree = jax.tree.flatten(self.state)
            names = [f"state_{k}" for k in range(len(leaves))]
            if any(n not in found or found[n].shape != x.shape for n, x in zip(names, leaves)):
                raise ValueError(f"{path}: of another environment or network")
            self.state = jax.tree.unflatten(tree, [jnp.asarray(found[n]) for n in names])
            self.mean, self.square = found["mean"].copy(), found["square"].copy()
            done, updates, self.seen = found["counts"].tolist()
        self.done, self.updates = int(done), int(updates)
        # episodes are numbered: go on with ones that were not played yet
        self.observation, _ = self.env.reset(seed=self.settings.seed + 1_000_003 * self.updates)


def begin_curve(path: Path, done: int) -> float:
    """A curve with its header and those of its lines that a checkpoint after so many actions knows of; the CPU seconds
    of the last one."""
    rows: list[list[str]] = []
    if done and path.exists():
        with path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row[0].isdigit() and int(row[0]) <= done]
    text = "".join(f"{','.join(row)}\r\n" for row in [CURVE, *rows])
    with replacing(path) as new:
        new.write(text.encode())
    return float(rows[-1][1]) if rows else 0.0


def train(
    settings: Settings,
    output: Path,
    resume: bool = False,
    quiet: bool = False,
    kind: type[Run] = Run,
    **changes: Any,
) -> Run:
    """Train until `steps` actions are done; every 16 updates a line of the curve and a checkpoint."""
    run = kind(settings, **changes)
    policy, curve = output.with_suffix(".npz"), output.with_suffix(".csv")
    if resume and policy.exists():
        run.resume(policy)
    before = begin_curve(curve, run.done)
    with (
        curve.open("a", newline="") as file,
        progress_bar(not quiet, settings.steps, "training", "actions") as bar,
    ):
        rows = csv.writer(file)
        began = time.process_time() - before
        recent = {"success": 0.0, "episodes": 0.0, "reward": 0.0}
        while run.done < settings.steps:
            for name, value in run.advance().items():
                recent[name] += value
            if run.updates % 16 == 0 or run.done >= settings.steps:
                share = recent["success"] / max(recent["episodes"], 1.0)
                cpu = time.process_time() - began
                rows.writerow([run.done, f"{cpu:.1f}", f"{share:.4f}", f"{recent['reward']:.3f}"])
                file.flush()
                run.save(policy)
                said = f"{cpu:.1f} CPU s, {share:.3f} of the episodes reach the goal"
                bar(min(run.done, settings.steps), said)
                if not quiet:
                    print(f"{run.done:>9} actions, {said}", flush=True)
                recent = dict.fromkeys(recent, 0.0)
    return run


def trained(settings: Settings, output: Path) -> dict[str, Any]:
    """A work item: train, or go on, and return the curve by columns."""
    train(settings, output, resume=True, quiet=True)
    rows = list(csv.DictReader(output.with_suffix(".csv").open(newline="")))
    return {name: np.array([float(row[name]) for row in rows]) for name in CURVE}


def sweep(
    runs: Iterable[tuple[Settings, Path]], executor: ExecutorLike = None
) -> tuple[dict[str, Any], ...]:
    """The curves of many trainings, each with its output, on an executor: other seeds, or other settings.

    Processes have to be spawned, because jax does not survive a fork. What was stopped goes on where it was.
    """
    return parallel.run(trained, runs, executor=executor)


def main(
    made: type[Settings] = Settings, kind: type[Run] = Run, said: str | None = __doc__
) -> None:
    """The command line, with an option for each setting."""
    parser = argparse.ArgumentParser(
        description=said, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("id")
    for field in dataclasses.fields(made)[1:]:
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    parser.add_argument("--output", type=Path, default=Path("policy"))
    parser.add_argument("--resume", action="store_true")
    given = vars(parser.parse_args())
    output, resume = given.pop("output"), given.pop("resume")
    train(made(**given), output, resume, kind=kind)


if __name__ == "__main__":
    main()
