"""Networks for consecutive goals of a cube in a hand, cloned from iMPC (DAgger), in jax alone.

    python examples/student.py --output build/learn/student --resume

iMPC turns the cube another way at every try: what it does is no function of the state that a network could learn. So
every turn is found once, and the teacher begins with its commands; then its labels vary little. The turns are those
between rotations in which the cube lies level, and as few others as cover all rotations near these, with the ways
back. First the teacher acts, with noise. Then the networks act (Ross, Gordon and Bagnell 2011, "A reduction of
imitation learning and structured prediction to no-regret online learning"): in the model, and in MuJoCo.

The folder has a policy for each network, with which ``turning.py`` controls a hand, and the labels, from which a run
that was stopped goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from clone import PART as FEWEST
from clone import RATE, fit
from known_turns import (
    LONGEST,
    Turn,
    angle_between,
    covering,
    found_turn,
    starts,
    turns_from_home,
)
from model_world import Model
from numpy.typing import NDArray
from ppo import layers, network, of_types
from turning import ID, Hand, Student, angle

from qdsim import systems
from qdsim._core import SolverError
from qdsim.description.arrays import rotation_matrix
from qdsim.envs import Policy
from qdsim.planning import TransferOptions, second_order
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.world import World
from qdsim.planning.roadmap.turns import let_go
from qdsim.planning.task.task import Task
from qdsim.whole_files import replacing

Array = NDArray[np.float64]

OFTEN = 3
"""Number of turns between level rotations for each other one: they are the longest and the most frequent."""
PART = 64
"""Rows of each move in a batch."""


class Rows(NamedTuple):
    """Observations and actions of a teacher."""

    observations: Array
    actions: Array


class Over(Exception):
    """Practice has ended."""


class Practice(Student):
    """Makes random moves in a world, and records what the teachers would do.

    Args:
        hand: The task.
        turns, ways_back: Turns from home, and from their ends to level.
        rng: Draws moves and noise.
        noise: Of commands, rad.
        share: Of the moves that the networks make, as far as there are any.
        turn, back, leave: The networks, if the share is not 0.
    """

    def __init__(
        self,
        hand: Hand,
        turns: list[Turn],
        ways_back: list[Turn],
        rng: np.random.Generator,
        noise: float,
        share: float = 0.0,
        turn: Any = None,
        back: Any = None,
        leave: Any = None,
    ) -> None:
        super().__init__(hand, np.array([turn.goal for turn in turns]), None, turn, back, leave)
        self.turns, self.ways_back, self.rng = turns, ways_back, rng
        self.noise, self.share, self.acts = noise, share, False
        self.rows: dict[str, list[tuple[Array, Array]]] = {name: [] for name in NAMES}
        self.order: list[int] = []

    def run(self, world: World, each: int) -> Array:
        """Make every move ``each`` times, those between level rotations more often.

        Returns:
            How often each was tried and arrived, (moves, 2).
        """
        count = len(self.turns)
        times = each * np.where(self.lies, OFTEN, 1)
        self.order = self.rng.permutation(np.repeat(np.arange(count), times)).tolist()
        found, start = np.zeros((count, 2)), self.hand.task.start
        while self.order:
            world.reset(start)
            world.watch(start[None])
            self.begin()
            with contextlib.suppress(Over, SolverError):
                self.control(world, start)
            for move, arrived in self.log:
                if move >= 0:
                    found[move] += (1.0, arrived)
        return found

    def drill(self, each: int) -> Array:
        """Make every move alone in the model, from displaced starts; returns the same as `run`."""
        found, begins = np.zeros((len(self.turns), 2)), starts(self.hand, self.rng)
        world = Model(self.hand.task)
        for move in np.repeat(np.arange(len(self.turns)), each * np.where(self.lies, OFTEN, 1)):
            world.reset(next(begins))
            self.begin()
            self.u, self.stage, self.move = self.hand.joints(world.q), "turn", int(move)
            self.goal, self.acts = self.turns[move].goal, self.rng.random() < self.share
            with contextlib.suppress(SolverError):
                found[move] += (1.0, self._turned(world))
        return found

    def chosen(self, goal: Array) -> int:
        """The next move; practice begins anew where the object is out of reach."""
        tried = [move for move, _ in self.log if move >= 0]
        stuck = len(tried) > 4 and not any(ok for move, ok in self.log[-8:] if move >= 0)
        if not self.order or stuck:
            raise Over
        self.acts = self.rng.random() < self.share
        return self.order.pop()

    def turn_command(self, q: Array) -> Array:
        move = self.stage == "turn"
        ways = [self.turns[self.move]] if move else self.ways_back
        away, nearest = min((way.away(q, self.goal), k) for k, way in enumerate(ways))
        acts = self.acts and (self.turn if move else self.back) is not None
        right = None
        near = away <= ASTRAY or not move  # ways back begin anywhere
        if near or not acts:
            right, seen = ways[nearest].teach(q, self.u, self.goal)
            if near:
                kept = [(np.append(x, self.move), y) for x, y in seen] if move else seen
                self.rows["turn" if move else "back"] += kept
        if not acts:
            return self._noisy(q, self.u if right is None else right)
        return self._noisy(q, super().turn_command(q))

    def leave_command(self, world: World, period: int) -> Array | None:
        q = world.q
        if period == 0:
            self._leaving = let_go(self.hand.task, world, self.u)
        right = next(self._leaving, None)
        if right is not None:
            row = self.hand.leaving(q, self.u, period), self.hand.action(q, right)
            self.rows["leave"].append(row)
        acts = self.acts and self.leave is not None
        u = super().leave_command(world, period) if acts else right
        return None if u is None else self._noisy(q, u)

    def _noisy(self, q: Array, u: Array) -> Array:
        noisy = u + self.noise * self.rng.standard_normal(len(u))
        return self.hand.commanded(q, self.hand.action(q, noisy))


def scores(hand: Hand, turns: list[Turn], success: Array, goals: Array) -> Array:
    """What is to be said of each move for goals (n, 3, 3) from level: 1 less its cost, (n, moves).

    The cost is the number of control periods to the goal, by the cheapest sequence of moves.
    """
    group, count = hand.group, len(turns)
    home = [turn.goal.T @ hand.level for turn in turns]
    after = np.array([angle(np.swapaxes(group, 1, 2) @ R.T).argmin() for R in home])
    lies = np.array([angle(group @ R).min() < 1e-6 for R in home])
    tries = 1.0 / success
    length = tries * [len(turn.u) for turn in turns] + FAILED * (tries - 1.0)
    # Index of the symmetry that a move leads to, from each symmetry.
    follows = np.array([[_index(group, group[g] @ h) for h in group] for g in after])
    asked = np.einsum("nij,gkj->ngik", goals, group)
    leaf = np.empty((len(goals), len(group), count))
    for m, turn in enumerate(turns):
        gap = angle_between(asked, turn.turned)
        leaf[..., m] = length[m] + BESIDE * np.maximum(gap - BARE, 0.0)
    value = leaf.min(axis=2)
    hop = np.where(lies, length + LONGEST * tries, np.inf)
    for _ in range(len(group)):
        ways = value[:, follows] + hop[:, None]  # (n, moves, group)
        value = np.minimum(value, ways.min(axis=1))
    own = np.minimum(leaf[:, 0], hop + value[:, follows[:, 0]])
    return np.clip(1.0 - own / DEAREST, -1.0, 1.0)


def _index(group: Array, R: Array) -> int:
    return int(np.einsum("gij,ij->g", group, R).argmax())


def choices(hand: Hand, turns: list[Turn], success: Array, count: int, rng: Any) -> Rows:
    """Random goals, and what is to be said of each move."""
    quats = rng.standard_normal((count, 4))
    goals = rotation_matrix(quats / np.linalg.norm(quats, axis=1, keepdims=True))
    parts = np.array_split(goals, max(1, count // 1000))
    labels = np.concatenate([scores(hand, turns, success, part) for part in parts])
    return Rows((goals @ hand.level.T).reshape(count, 9), labels)


ASKED = 10_000
"""Number of random goals of which *choose* learns."""
FAILED, BESIDE, BARE, DEAREST = 150.0, 800.0, 0.2, 400.0
"""In control periods: what a move that does not arrive costs, what a goal costs, per rad, that a move passes farther
away than the third number, rad, and the cost at which moves are equally bad."""
ASTRAY = 1.5
"""Distance from a known turn, by `Turn.away`, beyond which a move has no labels: there the teacher is no example."""
NAMES = ("turn", "back", "leave")
ROUNDS = (
    ("drill", 4, 0.02, 0.0),
    ("drill", 3, 0.01, 1.0),
    ("model", 2, 0.02, 0.0),
    *(("model", 3, 0.01, 0.9),) * 6,
    *(("MuJoCo", 2, 0.0, 0.9),) * 4,
)
"""Kind of each round, how often every move is made, the noise of commands, rad, and the share of the moves that the
networks make; the teachers make the others. In a drill moves are made alone; in the model and in MuJoCo they follow
each other."""


def fit_moves(rows: Rows, count: int, steps: int, width: int, seed: int) -> list[Policy]:
    """A network for each move, all at once by Adam with least squares.

    The last column of the observations is the move. Each batch has as many rows of every move.
    """
    x, y, move = rows.observations[:, :-1], rows.actions, rows.observations[:, -1].astype(int)
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-8
    scaled = jnp.asarray(np.clip((x - mean) / spread, -10.0, 10.0), jnp.float32)
    own = [np.flatnonzero(move == k) for k in range(count)]
    table = jnp.asarray(np.array([np.resize(k, max(map(len, own))) for k in own]))
    actions, sizes = jnp.asarray(y, jnp.float32), [x.shape[1], width, width, y.shape[1]]
    keys = jax.random.split(jax.random.key(seed), count)
    weights = jax.vmap(lambda key: layers(key, sizes, 0.1))(keys)

    def loss(weights: Any, rows: Any) -> Any:
        return jnp.mean((network(weights, scaled[rows]) - actions[rows]) ** 2)

    def each(state: Any, key: Any, rows: Any, rate: Any) -> Any:
        drawn = rows[jax.random.randint(key, (PART,), 0, len(rows))]
        weights, first, second, n = state
        g, n = jax.grad(loss)(weights, drawn), n + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, g)
        size = rate * jnp.sqrt(1.0 - 0.999**n) / (1.0 - 0.9**n)
        moved = jax.tree.map(
            lambda w, m, v: w - size * m / (jnp.sqrt(v) + 1e-8), weights, first, second
        )
        return of_types((moved, first, second, n), state)

    @jax.jit
    def train(state: Any, keys: Any) -> Any:
        def step(state: Any, at: Any) -> tuple[Any, None]:
            k, key = at
            rate = RATE * (1.0 + jnp.cos(jnp.pi * k / len(keys)))
            drawn = jax.random.split(key, count)
            return jax.vmap(each, (0, 0, 0, None))(state, drawn, table, rate), None

        return jax.lax.scan(step, state, (jnp.arange(len(keys)), keys))[0]

    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, zeros, zeros, jnp.zeros(count, jnp.float32))
    found = train(state, jax.random.split(jax.random.key(seed + 1), steps))[0]
    return [
        Policy(ID, [(np.asarray(W[k]), np.asarray(b[k])) for W, b in found], mean, spread)
        for k in range(count)
    ]


@dataclasses.dataclass
class Training:
    """A training under way.

    Attributes:
        hand: The task.
        turns, ways_back: Turns from home, and from their ends to level.
        rows: Observations and actions of the teachers, by network.
        made: For each round, how often every move was tried and arrived, (moves, 2).
        seconds: CPU seconds so far.
    """

    hand: Hand
    turns: list[Turn]
    ways_back: list[Turn]
    rows: dict[str, Rows]
    made: list[Array]
    seconds: float

    @classmethod
    def begun(cls, hand: Hand, draws: int, seed: int) -> Training:
        """With turns alone."""
        begin, rng = time.process_time(), np.random.default_rng(seed)
        turns, ways_back = covering(hand, turns_from_home(hand, draws, rng), 1500, rng), []
        for turn in turns:
            level = hand.level @ hand.symmetry(turn.goal).T
            if angle(level.T @ turn.goal) > 1e-6:
                back = found_turn(hand, level, turn.q[-1], turn.u[-1])
                ways_back += [] if back is None else [back]
        return cls(hand, turns, ways_back, none(), [], time.process_time() - begin)

    def practise(
        self, kind: str, each: int, noise: float, share: float, seed: int, nets: dict[str, Any]
    ) -> None:
        """One round."""
        begin = time.process_time()
        rng = np.random.default_rng([seed, len(self.made)])
        own = Practice(self.hand, self.turns, self.ways_back, rng, noise, share, **nets)
        self.made.append(
            own.drill(each) if kind == "drill" else own.run(world_of(kind, self.hand.task), each)
        )
        for name, pairs in own.rows.items():
            if not pairs:
                continue
            new = [np.array(column) for column in zip(*pairs)]
            old = self.rows[name]
            parts = [new] if old.observations.size == 0 else [old, new]
            self.rows[name] = Rows(*(np.concatenate(column) for column in zip(*parts)))
        self.seconds += time.process_time() - begin

    def networks(self, steps: int, width: int, seed: int) -> dict[str, Any]:
        """Fit all but *choose*."""
        begin, nets = time.process_time(), {}
        for name, rows in self.rows.items():
            if name == "turn":
                nets[name] = fit_moves(rows, len(self.turns), steps, width // 2, seed)
            elif len(rows.observations) >= FEWEST:
                epochs = max(5, round(steps * 256 / len(rows.observations)))
                nets[name] = fit(rows, ID, epochs, width, 1, seed)[0]
        self.seconds += time.process_time() - begin
        return nets

    def student(self, nets: dict[str, Any], steps: int, width: int, seed: int) -> Student:
        """Fit *choose* as well; the moves' success is that of the rounds after the first."""
        begin = time.process_time()
        made = np.sum(self.made[1:] or self.made, axis=0)
        success = (made[:, 1] + 1.0) / (made[:, 0] + 2.0)
        rng = np.random.default_rng([seed, 1])
        rows = choices(self.hand, self.turns, success, ASKED, rng)
        epochs = max(5, round(steps * 256 / len(rows.observations)))
        choose = fit(rows, ID, epochs, width, 1, seed)[0]
        self.seconds += time.process_time() - begin
        return Student(self.hand, np.array([turn.goal for turn in self.turns]), choose, **nets)

    def save(self, path: Path) -> None:
        """Write turns and labels."""
        arrays: dict[str, Any] = {"seconds": self.seconds, "made": np.array(self.made)}
        for kind, turns in (("turn", self.turns), ("back", self.ways_back)):
            arrays[f"{kind}_goals"] = np.array([turn.goal for turn in turns])
            arrays[f"{kind}_steps"] = np.array([len(turn.q) for turn in turns])
            arrays[f"{kind}_q"] = np.concatenate([turn.q for turn in turns])
            arrays[f"{kind}_u"] = np.concatenate([turn.u for turn in turns])
        for name, rows in self.rows.items():
            arrays[f"{name}_x"], arrays[f"{name}_y"] = rows
        with replacing(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: Path, hand: Hand) -> Training:
        """Read what `save` wrote."""
        with np.load(path) as found:
            turns = {}
            for kind in ("turn", "back"):
                ends = np.cumsum(found[f"{kind}_steps"])[:-1]
                parts = [np.split(found[f"{kind}_{name}"], ends) for name in "qu"]
                turns[kind] = [Turn(hand, *row) for row in zip(found[f"{kind}_goals"], *parts)]
            rows = {name: Rows(found[f"{name}_x"], found[f"{name}_y"]) for name in NAMES}
            made, seconds = list(found["made"]), float(found["seconds"])
        return cls(hand, turns["turn"], turns["back"], rows, made, seconds)


def none() -> dict[str, Rows]:
    """No labels."""
    return {name: Rows(np.empty((0, 0)), np.empty((0, 0))) for name in NAMES}


def world_of(name: str, task: Task) -> World:
    """The model, or MuJoCo with stiff contacts."""
    if name == "model":
        return Model(task)
    options = TransferOptions(timestep=1e-3, force=0.7)
    mj = second_order(task.model, task.object, options)
    return Plant(task.model, task.space, mj, options, compensated=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("student"), help="a folder")
    parser.add_argument("--draws", type=int, default=150, help="rotations that turns are to cover")
    parser.add_argument(
        "--steps", type=int, default=2500, help="of Adam, for each network of each round"
    )
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    hand = Hand(systems.load("allegro_cube").tasks["turn"])
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / "labels.npz"
    size = {"steps": given.steps, "width": given.width, "seed": given.seed}
    if given.resume and path.exists():
        training = Training.load(path, hand)
    else:
        training = Training.begun(hand, given.draws, given.seed)
    print(
        f"{len(training.turns)} turns, {len(training.ways_back)} ways back, {training.seconds:.0f} CPU s",
        flush=True,
    )
    nets = training.networks(**size) if training.made else {}
    for name, each, noise, share in ROUNDS[len(training.made) :]:
        training.practise(name, each, noise, share, given.seed, nets)
        training.save(path)
        tries, arrived = training.made[-1].sum(axis=0)
        rows = {name: len(rows.observations) for name, rows in training.rows.items()}
        print(
            f"{name}: {arrived:.0f} of {tries:.0f} turns arrive, labels {rows}, {training.seconds:.0f} CPU s",
            flush=True,
        )
        nets = training.networks(**size)
        if len(nets) == len(NAMES):
            training.student(nets, **size).save(given.output)
    print(f"{training.seconds:.0f} CPU s")


if __name__ == "__main__":
    main()
