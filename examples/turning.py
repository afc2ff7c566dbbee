"""Networks that turn an object in a hand from goal to goal, as a controller.

Networks act; no search and no model predictive control runs beside them. *Choose* names the next of some moves that a
hand makes from its home pose. For each move there is a network *turn*, which gives the command of every control period
from the measured configuration. *Back* turns the object until it lies level again, and *leave* takes the fingers off it
and back home. Poses that differ by a symmetry of the object are the same to them.
``student.py`` trains them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim.envs import Policy
from qdsim.planning import Task, dexterous
from qdsim.planning.execution.world import World
from qdsim.planning.task.robot import command_range
from qdsim.planning.task.symmetry import symmetries

Array = NDArray[np.float64]
ID = "allegro_cube/turn"
PERIODS, PATIENCE, GAIN = 60, 10, 0.01
"""Largest number of control periods of a turn, number of them without progress after which it ends, and the smallest
progress, rad."""
NEAR, FINE, SHORT = 0.15, 0.05, 4
"""Rotation, rad, within which a turn has arrived; within which one to a goal ends; and periods without progress after
which it ends if it has arrived."""
LEAVING = 60
"""Largest number of control periods in which the fingers leave."""
HOME, SETTLING = 0.05, 3
"""Distance of all joints from home, rad, within which the fingers are there, and number of periods in which they settle.
Without these, moves begin from other joints than those of their labels."""


def angle(R: Array) -> Array:
    """Angles (...) of rotations (..., 3, 3)."""
    return np.asarray(np.arccos(np.clip(0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0), -1.0, 1.0)))


def rotation_vector(R: Array) -> Array:
    """Rotation vector (3,) of a rotation (3, 3) by less than half a turn."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return np.asarray(axis * angle(R) / max(float(np.linalg.norm(axis)), 1e-9))


class Hand:
    """A task as the networks see it.

    Args:
        task: A task of an object in a hand; at its start the fingers are at home.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.model = task, task.model
        self.group = symmetries(task.model, task.space)
        settings = (task.impc or dexterous(task)).replace(h=task.options.h)
        self.settings, self.reach = settings, np.asarray(settings.reach)
        self.center, self.level = task.model.body_pose(task.start, task.object)
        self.home = np.asarray(task.model.command_from(task.start))
        self.range = command_range(task.model)

    def pose(self, q: Array) -> tuple[Array, Array]:
        """Position (3,) and rotation (3, 3) of the object."""
        return self.model.body_pose(q, self.task.object)

    def symmetry(self, R: Array) -> Array:
        """The symmetry S (3, 3) for which R S is nearest to the rotation at the start."""
        return np.asarray(self.group[np.einsum("ij,ik,gkj->g", self.level, R, self.group).argmax()])

    def turning(self, q: Array, u: Array, goal: Array) -> Array:
        """What *turn* and *back* see at q (nq) after the command u (nu) with a rotation (3, 3) as goal."""
        p, R = self.pose(q)
        S = self.symmetry(goal)
        way = rotation_vector(goal @ R.T)
        return np.concatenate(
            (self._felt(q, u), self._shift(p), _flat(R @ S), _flat(goal @ S), way)
        )

    def leaving(self, q: Array, u: Array, period: int) -> Array:
        """What *leave* sees, some control periods after its begin."""
        p, R = self.pose(q)
        clock = np.minimum(period / np.array([3.0, 10.0, 30.0]), 1.0)
        return np.concatenate(
            (self._felt(q, u), self._shift(p), _flat(R @ self.symmetry(R)), clock)
        )

    def commanded(self, q: Array, action: Array) -> Array:
        """The command (nu,) of an action in [-1, 1]: bounded springs."""
        return np.clip(self.joints(q) + self.reach * action, *self.range)

    def action(self, q: Array, u: Array) -> Array:
        """The action of a command."""
        return np.clip((u - self.joints(q)) / self.reach, -1.0, 1.0)

    def joints(self, q: Array) -> Array:
        """The command (nu,) that does not move the robot."""
        return np.asarray(self.model.command_from(q))

    def _felt(self, q: Array, u: Array) -> Array:
        joints = self.joints(q)
        return np.concatenate((joints - self.home, (u - joints) / self.reach))

    def _shift(self, p: Array) -> Array:
        return np.asarray((p - self.center) / self.task.length)


def _flat(R: Array) -> Array:
    return R[:, :2].ravel()


class Student:
    """A controller for consecutive goals.

    Args:
        hand: The task.
        moves: Rotations (n, 3, 3) that *choose* chooses from, for an object at the start's rotation.
        choose, back, leave: Networks that choose a move, turn the object back to level, and leave it.
        turn: A network for each move.
    """

    def __init__(
        self, hand: Hand, moves: Array, choose: Any, turn: Any, back: Any, leave: Any
    ) -> None:
        self.hand, self.moves = hand, moves
        self.choose, self.turn, self.back, self.leave = choose, turn, back, leave
        cosets = np.einsum("ij,mjk,gkl->mgil", hand.level.T, moves, hand.group)
        self.lies = angle(cosets).min(axis=1) < 1e-6  # whether the object rests level after a move
        self.begin()

    def begin(self) -> None:
        """Begin a trial, at home."""
        self.u = self.hand.home
        self.begun = False
        self.stage, self.move, self.failed = "choose", 0, set[int]()
        self.goal = self.hand.level
        # Moves, -1 for ways back, and whether they arrived.
        self.log: list[tuple[int, bool]] = []

    def control(self, world: World, goal: Array) -> None:
        """Advance a world towards a goal (nq); what was begun for an earlier goal is finished first."""
        if not self.begun:
            self.u, self.begun = self.hand.joints(world.q), True
        asked = self.hand.pose(goal)[1]
        self.failed.clear()
        while not world.lost:
            if self.stage == "choose":
                R = self.hand.pose(world.q)[1]
                S = self.hand.symmetry(R)
                self.move = self.chosen(asked @ S)
                self.goal, self.stage = self.moves[self.move] @ S.T, "turn"
            elif self.stage == "turn":
                arrived = self._turned(world)
                level = bool(arrived and self.lies[self.move])
                if not level:  # a move to the goal that has not met it, or one that has failed
                    self.failed.add(self.move)
                self.stage = "leave" if level else "return"
                self.goal = self._level(world)
            elif self.stage == "return":
                self._turned(world)
                self.stage = "leave"
            else:
                self._left(world)
                self.stage = "choose"

    def chosen(self, goal: Array) -> int:
        """The next move, for a goal's rotation from the start's."""
        scores = np.array(self.choose(np.ravel(goal @ self.hand.level.T)))
        if len(self.failed) < len(scores):
            scores[list(self.failed)] = -np.inf
        return int(scores.argmax())

    def turn_command(self, q: Array) -> Array:
        """The next command of a turn."""
        net = self.turn[self.move] if self.stage == "turn" else self.back
        return self.hand.commanded(q, net(self.hand.turning(q, self.u, self.goal)))

    def leave_command(self, world: World, period: int) -> Array | None:
        """The next command of leaving; None if the fingers are at home."""
        q = world.q
        away = np.abs(self.hand.joints(q) - self.hand.home).max()
        if period >= LEAVING or (period > 5 and away < HOME):
            return None
        return self.hand.commanded(q, self.leave(self.hand.leaving(q, self.u, period)))

    def _level(self, world: World) -> Array:
        """The nearest rotation in which the object lies as at the start."""
        return np.asarray(self.hand.level @ self.hand.symmetry(self.hand.pose(world.q)[1]).T)

    def _turned(self, world: World) -> bool:
        """Turn to the present goal, or as near as it gets."""
        least, since, off = np.inf, 0, np.inf
        to_goal = self.stage == "turn" and not self.lies[self.move]
        for _ in range(PERIODS):
            self._advance(world, self.turn_command(world.q))
            off = float(angle(self.goal.T @ self.hand.pose(world.q)[1]))
            least, since = (off, 0) if off < least - GAIN else (least, since + 1)
            if off <= (FINE if to_goal else NEAR) or world.lost:
                break
            if since >= (SHORT if off <= NEAR else PATIENCE):
                break
        self.log.append((self.move if self.stage == "turn" else -1, least <= NEAR))
        return bool(least <= NEAR)

    def _left(self, world: World) -> None:
        for period in range(2 * LEAVING):
            u = self.leave_command(world, period)
            if u is None or world.lost:
                break
            self._advance(world, u)
        for _ in range(SETTLING):
            self._advance(world, self.hand.home)

    def _advance(self, world: World, u: Array) -> None:
        """One control period; the command changes linearly, up to u at its end."""
        count = max(1, round(self.hand.task.options.h / world.timestep))
        before = self.u
        for k in range(1, count + 1):
            self.u = before + k / count * (u - before)
            world.advance(self.u)

    def save(self, folder: Path) -> None:
        """Write the networks as files of a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.choose.save(folder / "choose.npz", moves=self.moves)
        self.back.save(folder / "back.npz")
        self.leave.save(folder / "leave.npz")
        for k, net in enumerate(self.turn):
            net.save(folder / f"turn_{k}.npz")

    @classmethod
    def load(cls, folder: Path, hand: Hand) -> Student:
        """Read what `save` wrote."""
        with np.load(folder / "choose.npz") as found:
            moves = found["moves"]
        turn = [Policy.load(folder / f"turn_{k}.npz") for k in range(len(moves))]
        choose, back, leave = (
            Policy.load(folder / f"{name}.npz") for name in ("choose", "back", "leave")
        )
        return cls(hand, moves, choose, turn, back, leave)
