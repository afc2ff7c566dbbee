"""A network that turns an object in a hand from goal to goal, as a controller.

One network, *turn*, gives the command of every control period from what is measured. No search and no model predictive
control runs beside it. It makes one move after another: a quarter turn as long as the goal is far, a turn to the goal,
and between these one that lays the object down, with the fingers at home, from where the next one begins. Which quarter
turn is next is decided by the goal and by the value that was learned with the network. Only after a move that does not
lay the object down do the fingers go straight home. Poses that differ by a symmetry of the object are the same to the
network. ``student.py`` trains it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdsim.batches.queries import body_poses
from qdsim.description.arrays import rotation_matrix
from qdsim.envs import Policy
from qdsim.envs.moves import holder
from qdsim.planning import Task, dexterous
from qdsim.planning.execution.world import World
from qdsim.planning.task.robot import command_range, robot_bodies
from qdsim.planning.task.symmetry import symmetries

Array = NDArray[np.float64]
SCALE = 0.15
"""Largest change of a command in a control period, rad."""
PATIENCE, HOMING = 30, 9
"""Largest number of control periods of a move, and number of them in which the fingers go straight home."""
OPEN, WIDE = 0.2, 0.8
"""Largest distances of the joints from home, rad, after the fingers have gone straight there: at home itself they push the
object away. Wide open they come free of an object that holds them."""
STEP = 1e-4
"""Of finite differences, rad."""
FASTEST = 0.2
"""Largest change of a command on the straight way home in a control period, rad."""
NEAR, HOME = 0.35, 0.35
"""Rotation, rad, within which a move has arrived, and distance of all joints from home, rad, if they are to be there."""
FARTHEST = 1.12
"""Largest angle of a turn to the goal, rad: a little more than those of a cube from the nearest rotation in which it
lies, at most 1.10."""
WORTH = 0.25
"""What one unit of the value is worth, rad: by some six units moves that arrive are better than others."""
REPEATED = 1.0
"""What a move must gain, rad, each time that it is made again from the same rotation for the same goal."""


def angle(R: Array) -> Array:
    """Angles (...) of rotations (..., 3, 3)."""
    return np.asarray(np.arccos(np.clip(0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0), -1.0, 1.0)))


def axis(R: Array) -> Array:
    """Unit axes (..., 3) of rotations (..., 3, 3); of half turns, one of both."""
    skew = R - np.swapaxes(R, -1, -2)
    v = np.stack((skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]), axis=-1)
    # The columns of R + R^T - (tr R - 1) I are along the axis.
    whole = R + np.swapaxes(R, -1, -2)
    whole -= (np.trace(R, axis1=-2, axis2=-1) - 1.0)[..., None, None] * np.eye(3)
    longest = np.diagonal(whole, axis1=-2, axis2=-1).argmax(axis=-1)
    column = np.take_along_axis(whole, longest[..., None, None], axis=-1)[..., 0]
    column *= np.where((column * v).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    return np.asarray(column / np.maximum(np.linalg.norm(column, axis=-1, keepdims=True), 1e-9))


def turned(axes: Array, angles: Array) -> Array:
    """Rotations (n, 3, 3) by angles (n,) about unit axes (n, 3)."""
    half = 0.5 * np.asarray(angles)[:, None]
    return np.asarray(rotation_matrix(np.concatenate((np.cos(half), np.sin(half) * axes), axis=1)))


QUARTERS = turned(np.concatenate((np.eye(3), -np.eye(3))), np.full(6, 0.5 * np.pi))
"""Quarter turns (6, 3, 3) about the world's axes."""


@dataclasses.dataclass(frozen=True)
class Look:
    """What is seen of n configurations.

    Attributes:
        seen: Input of the network (n, size).
        shift: Position of the object relative to that at the start, m (n, 3).
        R: Rotation of the object (n, 3, 3).
        off: Angle from the goal, rad (n,).
        joints: Distances of the joints from home, rad (n, nu).
        arrived: Whether a move has arrived (n,).
    """

    seen: Array
    shift: Array
    R: Array
    off: Array
    joints: Array
    arrived: NDArray[np.bool_]


class Hand:
    """A task as the network sees it; all configurations, commands and rotations have a leading dimension.

    Args:
        task: A task of an object in a hand; at its start the fingers are at home.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.model = task, task.model
        self.group = symmetries(task.model, task.space)
        self.reach = np.asarray((task.impc or dexterous(task)).reach)
        self.center, self.level = task.model.body_pose(task.start, task.object)
        self.home = np.asarray(task.model.command_from(task.start))
        self.range = command_range(task.model)
        self.joints = holder(task.model)
        self._body = task.model.body_index(task.object)
        inner = {body.parent for body in task.model.description.bodies}
        self._tips = [
            b
            for b in np.flatnonzero(robot_bodies(task.model)).tolist()
            if task.model.body_names[b] not in inner
        ]
        self._com = np.asarray(task.model.parameters.body_com)[self._tips]
        self.opening = self._opening()

    def _opening(self) -> Array:
        """The motion of the joints (nu,), at most 1, by which the fingertips leave the object at the start fastest."""
        columns = self.model.actuated_q
        q = np.repeat(self.task.start[None], len(columns) + 1, axis=0)
        q[np.arange(len(columns)), columns] += STEP
        distances = np.linalg.norm(self._fingertips(*body_poses(self.model, q)), axis=2).sum(axis=1)
        slopes = distances[:-1] - distances[-1]
        return np.asarray(slopes / np.abs(slopes).max())

    def _fingertips(self, pos: Array, rot: Array) -> Array:
        """Fingertips relative to the object (n, tips, 3), of poses of all bodies."""
        tips = pos[:, self._tips] + np.einsum("ntij,tj->nti", rot[:, self._tips], self._com)
        return np.asarray(tips - pos[:, self._body, None])

    def rotation(self, q: Array) -> Array:
        """Rotation of the object."""
        return body_poses(self.model, q, threads=1)[1][:, self._body]

    def symmetry(self, R: Array) -> Array:
        """The symmetries S (n, 3, 3) for which R S are nearest to the rotation at the start."""
        near = self.level.T @ R
        return np.asarray(self.group[np.einsum("nij,gji->ng", near, self.group).argmax(axis=1)])

    def leveled(self, R: Array) -> Array:
        """The nearest rotations in which the object lies as at the start."""
        return self.level @ np.swapaxes(self.symmetry(R), 1, 2)

    def look(self, q: Array, u: Array, goal: Array, home: NDArray[np.bool_]) -> Look:
        """Look at configurations after the commands u, with rotations as goals, and whether fingers are to go home."""
        pos, rot = body_poses(self.model, q, threads=1)
        p, R, joints = pos[:, self._body], rot[:, self._body], self.joints(q)
        alike = R @ self.symmetry(R)
        tips = self._fingertips(pos, rot) @ alike / self.task.length
        way = goal @ np.swapaxes(R, 1, 2)
        off, along = angle(way), axis(way)
        seen = (
            joints - self.home,
            (u - joints) / self.reach,
            (p - self.center) / self.task.length,
            alike[..., :2].reshape(-1, 6),
            tips.reshape(len(q), -1),
            along,
            along * np.minimum(off, 1.0)[:, None],
            off[:, None],
            home[:, None],
        )
        away = joints - self.home
        arrived = (off <= NEAR) & (~home | (np.abs(away).max(axis=1) <= HOME))
        return Look(np.concatenate(seen, axis=1), p - self.center, R, off, away, arrived)

    def commanded(self, q: Array, u: Array, action: Array) -> Array:
        """The commands that follow u by actions in [-1, 1]: bounded springs."""
        return self._bounded(q, u + SCALE * np.clip(action, -1.0, 1.0))

    def homeward(self, q: Array, u: Array, open_: float = OPEN) -> Array:
        """The commands that follow u straight home, where the fingers stay so far open, rad."""
        return self._bounded(
            q, u + np.clip(self.home + open_ * self.opening - u, -FASTEST, FASTEST)
        )

    def _bounded(self, q: Array, u: Array) -> Array:
        joints = self.joints(q)
        return np.clip(np.clip(u, joints - self.reach, joints + self.reach), *self.range)


def chosen(level: Array, goal: Array, worth: Array, made: Array) -> int:
    """The next move from a rotation (3, 3) in which the object lies: the index of a quarter turn, or 6, to the goal.

    It is the one after which the goal is nearest, less what the moves are worth (7,). Those that were made from here, so
    often (7,), have not led to the goal, so others are preferred.
    """
    left = angle(np.swapaxes(QUARTERS @ level, 1, 2) @ goal)
    costs = np.append(left, 0.0 if angle(level.T @ goal) <= FARTHEST else np.inf)
    return int((costs - worth + REPEATED * made).argmin())


class Student:
    """A controller for consecutive goals.

    Args:
        hand: The task.
        turn: The network.
        value: Estimate of the sum of rewards, for inputs of the network (n, size): (n, 1).
        spread: Standard deviation of its actions in training, a number or (nu,). A move that follows a failed one is
            made with this noise: from the same place the same actions would fail again.
        seed: Of the noise.

    Attributes:
        log: For each move whether it was to lay the object down, whether it was to the goal, and whether it arrived;
            moves that have met the goal are missing.
    """

    def __init__(
        self,
        hand: Hand,
        turn: Callable[[Array], Array],
        value: Callable[[Array], Array],
        spread: Array | float = 0.0,
        seed: int = 0,
    ) -> None:
        self.hand, self.turn, self.value = hand, turn, value
        self.spread = np.broadcast_to(spread, len(hand.home))
        self.rng = np.random.default_rng(seed)
        self.u: Array | None = None
        self.missed = False
        self.log: list[tuple[bool, bool, bool]] = []

    def control(self, world: World, goal: Array) -> None:
        """Advance a world towards a goal (nq), until it is lost."""
        asked, direct = self.hand.rotation(goal[None])[0], True
        made: dict[bytes, Array] = {}  # moves for this goal, by the rotation that they begin from
        self.missed, jammed = False, False
        if self.u is None:
            self.u = self.hand.joints(world.q[None])[0]
        while not world.lost:
            R = self.hand.rotation(world.q[None])[0]
            level = self.hand.leveled(R[None])[0]
            if self._look(world, level, True).arrived[0]:
                here = made.setdefault(
                    (np.rint(10.0 * level) + 0.0).tobytes(), np.zeros(len(QUARTERS) + 1)
                )
                move = chosen(level, asked, self._worth(world, level, asked), here)
                here[move] += 1.0
                last = move == len(QUARTERS)
                self._moved(world, asked if last else QUARTERS[move] @ level, False, last)
                direct = not last
            elif direct and angle(R.T @ asked) <= FARTHEST:
                self._moved(world, asked, False, True)
                direct = False
            elif self._moved(world, level, True, False):
                jammed = False
            else:
                for open_ in (WIDE, OPEN) if jammed else (OPEN,):
                    for _ in range(HOMING):
                        u = self.hand.homeward(world.q[None], self.u[None], open_)
                        self._advance(world, u[0])
                jammed = True

    def _worth(self, world: World, level: Array, asked: Array) -> Array:
        """What moves are worth by the value that was learned with the network, rad (7,)."""
        ends = np.concatenate((QUARTERS @ level, asked[None]))
        q, u = np.tile(world.q, (len(ends), 1)), np.tile(self.u, (len(ends), 1))
        return WORTH * self.value(self.hand.look(q, u, ends, np.zeros(len(ends), bool)).seen)[:, 0]

    def _look(self, world: World, goal: Array, home: bool) -> Look:
        return self.hand.look(world.q[None], self.u[None], goal[None], np.array([home]))

    def _moved(self, world: World, goal: Array, home: bool, last: bool) -> bool:
        """Make a move; those to the goal itself end where the world says that it is reached."""
        noise = self.spread if self.missed else 0.0
        arrived = False
        for _ in range(PATIENCE):
            look = self._look(world, goal, home)
            arrived = bool(look.arrived[0])
            if (arrived and not last) or world.lost:
                break
            action = self.turn(look.seen[0]) + noise * self.rng.standard_normal(len(self.hand.home))
            self._advance(world, self.hand.commanded(world.q[None], self.u[None], action)[0])
        self.missed = not arrived
        self.log.append((home, last, arrived))
        return arrived and not last

    def _advance(self, world: World, u: Array) -> None:
        """One control period; the command changes linearly, up to u at its end."""
        count = max(1, round(self.hand.task.options.h / world.timestep))
        before = self.u
        for k in range(1, count + 1):
            self.u = before + k / count * (u - before)
            world.advance(self.u)

    @classmethod
    def load(cls, path: Path, hand: Hand) -> Student:
        """Read what ``student.py`` wrote."""
        turn = Policy.load(path)
        with np.load(path) as found:
            spread = np.exp(found["log_spread"][0])
            layers = [found[f"state_{k}"] for k in range(7, 13)]

        def value(seen: Array) -> Array:
            x = np.clip((seen - turn.mean) / turn.spread, -10.0, 10.0)
            for W, b in zip(layers[:-2:2], layers[1:-2:2]):
                x = np.tanh(x @ W + b)
            return np.asarray(x @ layers[-2] + layers[-1])

        return cls(hand, turn, value, spread)
