"""Turns of an object in a hand, found by iMPC, which teach networks: `student.py`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from turning import NEAR, Hand, angle, rotation_vector

from qdsim import step, systems
from qdsim._core import SolverError
from qdsim.description.arrays import rotation_matrix
from qdsim.planning import Mpc, Task
from qdsim.planning.grasps.placing import placed
from qdsim.planning.task.symmetry import turned_object

Array = NDArray[np.float64]

CALM = 20.0
"""Factor on the weight of changes of the command. With 1, they are white noise; with 100, fewer turns arrive."""
ITERATIONS, FIRST = 3, 2
"""Iterations of iMPC in a period of a new turn, and for a label."""
PLANNED = 4
"""Periods of each prediction that become labels."""
COVERED = 0.33
"""Distance, rad, within which a turn covers rotations that it passes."""
LEFT_OUT = 0.05
"""Share of the rotations that need not be covered."""
LONGEST, TRIES = 45, 4
"""Largest number of periods of a turn, and number of starts from which it is tried."""
SPREAD = (0.006, 0.12)
"""Displacement of the object at the beginning of a turn, m and rad."""


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


def covering(hand: Hand, turns: list[Turn], count: int, rng: np.random.Generator) -> list[Turn]:
    """Turns to level rotations, and as few others as cover what all cover: always the one that covers the most."""
    quats = rng.standard_normal((count, 4))
    goals = rotation_matrix(quats / np.linalg.norm(quats, axis=1, keepdims=True))
    goals = np.array([R @ hand.symmetry(R) for R in goals])
    covered = np.array([angle_between(goals, turn.turned) <= COVERED for turn in turns])
    kept = [k for k, turn in enumerate(turns) if is_level(hand, turn.goal)]
    left = ~covered[kept].any(axis=0) & covered.any(axis=0)
    while left.mean() > LEFT_OUT:
        best = int((covered & left).sum(axis=1).argmax())
        kept.append(best)
        left &= ~covered[best]
    return [turns[k] for k in kept]


def is_level(hand: Hand, R: Array) -> bool:
    """Whether an object of rotation R (3, 3) lies as at the start."""
    return bool(angle(hand.level.T @ R @ hand.group).min() < 1e-6)


def nearest(turns: Sequence[Turn], goal: Array) -> float:
    """Distance, rad, of a rotation from those that turns pass and from the start's."""
    own = [angle(np.swapaxes(turn.turned, 1, 2) @ goal).min() for turn in turns]
    return float(min(own, default=np.pi))


def angle_between(a: Array, path: Array) -> Array:
    """Least angle of rotations (..., 3, 3) from those of a path (n, 3, 3)."""
    traces = (a.reshape(*a.shape[:-2], 9) @ path.reshape(-1, 9).T).max(axis=-1)
    return np.asarray(np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0)))
