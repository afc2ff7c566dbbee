"""Networks for consecutive goals of a cube in a hand, cloned from iMPC (DAgger), in jax alone.

    python examples/student.py --output build/learn/student --resume

iMPC turns the cube along other ways at every try, and what it does is no function of the state that a network could
learn. So every turn is found once, and the teacher begins with the commands of that one: its labels vary little. The
turns are those that cover all rotations near the one at the start, each within reach of a goal, and the ways back.
First the teacher acts, with noise. Then the networks act (Ross, Gordon and Bagnell 2011, "A reduction of imitation
learning and structured prediction to no-regret online learning"): in the model, and in MuJoCo.

The folder has a policy for each network, the turns, and all labels, from which a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from clone import fit
from numpy.typing import NDArray
from turning import ID, NEAR, Hand, Student, angle, rotation_vector

from qdsim import step, systems
from qdsim._core import SolverError
from qdsim.description.arrays import rotation_matrix
from qdsim.planning import Mpc, TransferOptions, second_order
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.world import World
from qdsim.planning.grasps.placing import placed
from qdsim.planning.roadmap.turns import let_go
from qdsim.planning.task.symmetry import turned_object
from qdsim.planning.task.task import Task
from qdsim.whole_files import replacing

Array = NDArray[np.float64]

CALM = 20.0
"""Factor on the weight of changes of the command. With 1, they are white noise; with 100, fewer turns succeed."""
ITERATIONS, FIRST = 3, 2
"""Iterations of iMPC in a period of a new turn, and for a label."""
PLANNED = 4
"""Periods of each prediction that become labels."""
COVERED = 0.25
"""Distance, rad, within which a turn covers rotations that it passes."""
LONGEST, TRIES = 45, 4
"""Largest number of periods of a turn, and number of starts from which it is tried."""
OFTEN = 5
"""Number of turns between level rotations for each other one: they are the longest and the most frequent."""
SPREAD = (0.006, 0.12)
"""Displacement of the object at the beginning of a turn, m and rad."""


class Model(World):
    """The quasi-dynamic model as a world; a time step is a control period."""

    def __init__(self, task: Task) -> None:
        options = TransferOptions(timestep=task.options.h, control_period=task.options.h)
        still = np.zeros(task.model.nv)
        super().__init__(task.model, task.space, options, still, compensated=True)
        self.task, self._q = task, np.array(task.start)

    @property
    def q(self) -> Array:
        return self._q.copy()

    @property
    def v(self) -> Array:
        return np.zeros(self.model.nv)

    def _place(self, q: Array) -> None:
        self._q = np.array(q)

    def _step(self, u: Array) -> None:
        self._q = np.asarray(step(self.model, self._q, u, self.task.options).q_next)


class Rows(NamedTuple):
    """Observations and actions of a teacher."""

    observations: Array
    actions: Array


class Turn:
    """A turn that was found, and a teacher who begins with its commands.

    Args:
        hand: The task.
        goal: Its goal, a rotation (3, 3).
        q, u: Configurations (n, nq) and commands (n, nu) of its periods.
    """

    def __init__(self, hand: Hand, goal: Array, q: Array, u: Array) -> None:
        self.hand, self.goal, self.q, self.u = hand, goal, q, u
        self.turned = np.array([hand.pose(row)[1] for row in q])
        self._marks = np.array([self._mark(row) for row in q])
        self._mpc = Mpc(aimed(hand, goal), calm(hand), first_iterations=FIRST)

    def teach(
        self, q: Array, u: Array, goal: Array
    ) -> tuple[Array | None, list[tuple[Array, Array]]]:
        """The command (nu,) that follows u at q, None if there is none; and observations with actions.

        ``goal`` (3, 3) is the turn's own for the object as it is; q may be any of its symmetries.
        """
        q = self._alike(q, goal)
        self._mpc.reset(self._rest(q))
        self._mpc.act(q, before=u)
        path, commands, seen = self._mpc.prediction, self._mpc.commands, []
        if path is None or commands is None:
            return None, seen
        for here, before, after in zip(path[:PLANNED], (u, *commands), commands):
            seen.append((self.hand.turning(here, before, self.goal), self.hand.action(here, after)))
        return commands[0], seen

    def away(self, q: Array, goal: Array) -> float:
        """Distance of q from the turn's nearest configuration."""
        return float(((self._marks - self._mark(self._alike(q, goal))) ** 2).sum(axis=1).min())

    def _alike(self, q: Array, goal: Array) -> Array:
        """The configuration whose object is turned by the symmetry that takes one goal to the other."""
        return turned_object(self.hand.task.space, q, goal.T @ self.goal)

    def _mark(self, q: Array) -> Array:
        """What tells how far a turn has come: joints, position and rotation in units of the task's tolerances."""
        p, R = self.hand.pose(q)
        task = self.hand.task
        joints = (self.hand.joints(q) - self.hand.home) / task.rotation_tolerance
        return np.concatenate(
            (joints, p / task.position_tolerance, R.ravel() / task.rotation_tolerance)
        )

    def _rest(self, q: Array) -> Array:
        """Commands (T, nu) from here on; the last one is kept."""
        k = int(((self._marks - self._mark(q)) ** 2).sum(axis=1).argmin())
        horizon = self.hand.settings.horizon
        own = np.minimum(np.arange(k + 1, k + 1 + horizon), len(self.u) - 1)
        return self.u[own]


def calm(hand: Hand) -> Any:
    """iMPC's options with a larger weight of changes of the command."""
    cost = hand.settings.cost
    own = dataclasses.replace(cost, command=tuple(CALM * np.asarray(cost.command)))
    return hand.settings.replace(cost=own)


def aimed(hand: Hand, goal: Array) -> Task:
    """The task with a rotation (3, 3) as goal."""
    task = hand.task
    return task.towards(systems.cube_goal(task, rotation_vector(goal @ hand.level.T)))


def found_turn(hand: Hand, goal: Array, q: Array, u: Array) -> Turn | None:
    """A turn by iMPC from q after the command u; None if it does not arrive."""
    task, path, commands = aimed(hand, goal), [q], [u]
    mpc = Mpc(task, calm(hand), iterations=ITERATIONS)
    for _ in range(LONGEST):
        try:
            commands.append(mpc.act(path[-1], before=commands[-1]))
            path.append(np.asarray(step(hand.model, path[-1], commands[-1], task.options).q_next))
        except SolverError:
            return None
        shift, rotation = task.errors(path[-1])
        if rotation <= 0.8 * NEAR and shift <= 0.75 * task.position_tolerance:
            return Turn(hand, goal, np.array(path), np.array(commands))
    return None


def starts(hand: Hand, rng: np.random.Generator) -> Iterator[Array]:
    """Configurations with the robot at home: the start, then ones with the object displaced in its plane."""
    task = hand.task
    yield np.array(task.start)
    while True:
        x, y, turn = rng.uniform(-1.0, 1.0, 3) * (SPREAD[0], SPREAD[0], SPREAD[1])
        q, free = placed(
            task.model,
            task.object,
            task.with_object(task.start, [x, y, 0.0, 0.0, 0.0, turn]),
            task.options,
        )
        if free:
            yield q


def turns_from_home(hand: Hand, draws: int, rng: np.random.Generator) -> list[Turn]:
    """Turns to the nearest rotations in which the object lies as at the start, and to random ones that no turn covers."""
    angles = angle(hand.group)
    first = np.abs(angles - angles[angles > 1e-6].min(initial=np.pi)) < 1e-6
    goals = [hand.level @ S for S in hand.group[first]]
    for quat in rng.standard_normal((draws, 4)):
        R = rotation_matrix(quat / np.linalg.norm(quat))
        goals.append(R @ hand.symmetry(R))
    found: list[Turn] = []
    for k, goal in enumerate(goals):
        if k >= np.count_nonzero(first) and nearest(found, goal) <= COVERED:
            continue
        for q, _ in zip(starts(hand, rng), range(TRIES)):
            turn = found_turn(hand, goal, q, hand.joints(q))
            if turn is not None:
                found.append(turn)
                break
    return found


def nearest(turns: Sequence[Turn], goal: Array) -> float:
    """Distance, rad, of a rotation from those that turns pass and from the start's."""
    own = [angle(np.swapaxes(turn.turned, 1, 2) @ goal).min() for turn in turns]
    return float(min(own, default=np.pi))


class Over(Exception):
    """Practice has ended."""


class Practice(Student):
    """Makes random moves in a world, and records what the teachers would do.

    Args:
        hand: The task.
        turns, ways_back: Turns from home, and from their ends to level.
        rng: Draws moves and noise.
        noise: Of commands, rad.
        share: Of the moves that the networks make.
        turn, leave: The networks, if the share is not 0.
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
        leave: Any = None,
    ) -> None:
        super().__init__(hand, np.array([turn.goal for turn in turns]), None, turn, leave)
        self.turns, self.ways_back, self.rng = turns, ways_back, rng
        self.noise, self.share, self.acts = noise, share, False
        self.rows: dict[str, list[tuple[Array, Array]]] = {"turn": [], "leave": []}
        self.order: list[int] = []

    def run(self, world: World, each: int) -> Array:
        """Make every move ``each`` times, those between level rotations more often; returns how often it was tried and arrived, (moves, 2)."""
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

    def chosen(self, goal: Array) -> int:
        """The next move; practice begins anew where the object is out of reach."""
        tried = [move for move, _ in self.log if move >= 0]
        stuck = len(tried) > 4 and not any(ok for move, ok in self.log[-8:] if move >= 0)
        if not self.order or stuck:
            raise Over
        self.acts = self.rng.random() < self.share
        return self.order.pop()

    def turn_command(self, q: Array) -> Array:
        turn = self.turns[self.move]
        if self.stage == "return":
            turn = min(self.ways_back or [turn], key=lambda way: way.away(q, self.goal))
        right, seen = turn.teach(q, self.u, self.goal)
        self.rows["turn"] += seen
        if not self.acts:
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
        u = super().leave_command(world, period) if self.acts else right
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
    length = np.array([len(turn.u) for turn in turns]) / success
    # Index of the symmetry that a move leads to, from each symmetry.
    follows = np.array([[_index(group, group[g] @ h) for h in group] for g in after])
    asked = np.einsum("nij,gkj->ngik", goals, group)
    leaf = np.empty((len(goals), len(group), count))
    for m, turn in enumerate(turns):
        gap = angle_between(asked, turn.turned)
        leaf[..., m] = length[m] + 400.0 * np.maximum(gap - COVERED, 0.0)
    value = leaf.min(axis=2)
    hop = np.where(lies, length + LONGEST / success, np.inf)
    for _ in range(len(group)):
        ways = value[:, follows] + hop[:, None]  # (n, moves, group)
        value = np.minimum(value, ways.min(axis=1))
    own = np.minimum(leaf[:, 0], hop + value[:, follows[:, 0]])
    return np.clip(1.0 - own / 200.0, -1.0, 1.0)


def angle_between(a: Array, path: Array) -> Array:
    """Least angle of rotations (..., 3, 3) from those of a path (n, 3, 3)."""
    traces = (a.reshape(*a.shape[:-2], 9) @ path.reshape(-1, 9).T).max(axis=-1)
    return np.asarray(np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0)))


def _index(group: Array, R: Array) -> int:
    return int(np.einsum("gij,ij->g", group, R).argmax())


def choices(hand: Hand, turns: list[Turn], success: Array, count: int, rng: Any) -> Rows:
    """Random goals, and what is to be said of each move."""
    quats = rng.standard_normal((count, 4))
    goals = rotation_matrix(quats / np.linalg.norm(quats, axis=1, keepdims=True))
    parts = np.array_split(goals, max(1, count // 1000))
    labels = np.concatenate([scores(hand, turns, success, part) for part in parts])
    return Rows((goals @ hand.level.T).reshape(count, 9), labels)


ROUNDS = (
    ("model", 2, 0.02, 0.0),
    ("model", 2, 0.02, 0.5),
    ("model", 1, 0.02, 0.5),
    ("model", 1, 0.01, 0.7),
    ("model", 1, 0.01, 0.9),
    ("MuJoCo", 1, 0.0, 0.7),
    ("MuJoCo", 1, 0.0, 1.0),
)
"""World of each round of practice, how often every move is made, the noise of commands, rad, and the share of the moves
that the networks make; the teachers make the others."""


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
        turns, ways_back = turns_from_home(hand, draws, rng), []
        for turn in turns:
            level = hand.level @ hand.symmetry(turn.goal).T
            if angle(level.T @ turn.goal) > 1e-6:
                back = found_turn(hand, level, turn.q[-1], turn.u[-1])
                ways_back += [] if back is None else [back]
        return cls(hand, turns, ways_back, none(), [], time.process_time() - begin)

    def practise(
        self, world: World, each: int, noise: float, share: float, seed: int, nets: dict[str, Any]
    ) -> None:
        """One round."""
        begin = time.process_time()
        rng = np.random.default_rng([seed, len(self.made)])
        own = Practice(self.hand, self.turns, self.ways_back, rng, noise, share, **nets)
        self.made.append(own.run(world, each))
        for name, pairs in own.rows.items():
            new = [np.array(column) for column in zip(*pairs)]
            old = self.rows[name]
            parts = [new] if old.observations.size == 0 else [old, new]
            self.rows[name] = Rows(*(np.concatenate(column) for column in zip(*parts)))
        self.seconds += time.process_time() - begin

    def networks(self, steps: int, width: int, seed: int) -> dict[str, Any]:
        """Fit *turn* and *leave*."""
        begin = time.process_time()
        nets = {}
        for name, rows in self.rows.items():
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
        rows = choices(self.hand, self.turns, success, 20_000, rng)
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
            rows = {
                name: Rows(found[f"{name}_x"], found[f"{name}_y"]) for name in ("turn", "leave")
            }
            made, seconds = list(found["made"]), float(found["seconds"])
        return cls(hand, turns["turn"], turns["back"], rows, made, seconds)


def none() -> dict[str, Rows]:
    """No labels."""
    return {name: Rows(np.empty((0, 0)), np.empty((0, 0))) for name in ("turn", "leave")}


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
        "--steps", type=int, default=6000, help="of Adam, for each network of each round"
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
        training.practise(world_of(name, hand.task), each, noise, share, given.seed, nets)
        training.save(path)
        tries, arrived = training.made[-1].sum(axis=0)
        rows = {name: len(rows.observations) for name, rows in training.rows.items()}
        print(
            f"{name}: {arrived:.0f} of {tries:.0f} turns arrive, labels {rows}, {training.seconds:.0f} CPU s",
            flush=True,
        )
        nets = training.networks(**size)
        for name, net in nets.items():
            net.save(given.output / f"{name}.npz")
    training.student(nets, **size).save(given.output)
    print(f"{training.seconds:.0f} CPU s")


if __name__ == "__main__":
    main()
