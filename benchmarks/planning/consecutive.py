"""Consecutive goals: the protocol of Dactyl (arXiv 1808.00177) and DROP (arXiv 2409.14562).

Goals are rotations of the object, drawn evenly from SO(3). A goal is reached as soon as the object's rotation is
within ``tolerance`` of it, wherever the object is and however fast it moves; the next goal then counts at once, from
there. A trial ends when the object is lost, when 80 s of the world's time pass without a goal, or after ``most`` goals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from model_world import Model
from numpy.typing import NDArray

from qdsim._core import SolverError
from qdsim.planning import Task
from qdsim.planning.execution.plant import Plant
from qdsim.planning.execution.world import World
from qdsim.systems import cube_goal

Array = NDArray[np.float64]
LIMIT = 80.0
"""Time without a goal after which a trial ends, s."""
MOST = 50
"""Number of goals after which a trial ends."""
LOOK = 0.01
"""Time between two looks at the object, s."""


class Over(Exception):
    """A goal is reached, or the trial has ended; the message says which."""


class Watch:
    """Ends a motion of a world, by `Over`, at a goal and at the end of a trial.

    Attributes:
        clock: Time since the beginning, s.
        path: Configuration (nq,) at every look.
    """

    def begin(self, tolerance: float) -> None:
        """Begin a trial."""
        self.tolerance, self.clock, self.since = tolerance, 0.0, 0.0
        self.goal: Array | None = None
        self.path: list[Array] = []
        self.every = max(1, round(LOOK / self.timestep))

    def aim(self, goal: Array) -> None:
        """Set the next goal (nq,)."""
        self.goal, self.since = goal, self.clock

    def advance(self, u: Array) -> None:
        """Take a time step, and look."""
        try:
            super().advance(u)
        except SolverError:
            raise Over("no step") from None
        self.clock += self.timestep
        if self.lost:
            raise Over("lost")
        if self.steps % self.every == 0 and self.goal is not None:
            self.path.append(self.q)
            if self.space.errors(self.path[-1], self.goal)[1] <= self.tolerance:
                raise Over("reached")
            if self.clock - self.since > LIMIT:
                raise Over("late")


class InMujoco(Watch, Plant):
    """A watched plant in MuJoCo."""


class InModel(Watch, Model):
    """The watched quasi-dynamic model; a time step is the task's own."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """What one trial gave.

    Attributes:
        goals: Number of goals reached in a row.
        end: Why it ended: "lost", "late", "no step", or "all goals".
        seconds: Time of the world between goals (n,), s.
    """

    goals: int
    end: str
    seconds: Array


def rotations(count: int, seed: int) -> Iterator[Array]:
    """Yield rotation vectors of quaternions drawn evenly from the sphere."""
    for quat in np.random.default_rng(seed).standard_normal((count, 4)):
        w, *v = quat / np.linalg.norm(quat) * np.copysign(1.0, quat[0])
        yield 2.0 * np.arctan2(np.linalg.norm(v), w) * np.array(v) / np.linalg.norm(v)


def trial(
    task: Task,
    world: InMujoco | InModel,
    control: Callable[[World, Array], None],
    tolerance: float,
    seed: int,
    most: int = MOST,
) -> Trial:
    """Count the goals of one trial.

    Args:
        task: A task of the cube in the hand; the trial begins at its start.
        world: Where it takes place.
        control: ``control(world, goal)`` advances the world towards a goal (nq,). If it returns, it is called again.
        tolerance: Largest error of a rotation that was reached, rad.
        seed: Of the goals.
        most: Number of goals after which the trial ends.
    """
    world.reset(task.start)
    world.begin(tolerance)
    seconds: list[float] = []
    for rotation in rotations(most, seed):
        goal = cube_goal(task, rotation)
        world.watch(np.vstack((task.start, goal)))
        world.aim(goal)
        why = ""
        while not why:
            before = world.clock
            try:
                control(world, goal)
                if world.clock == before:  # the control has nothing to do: time passes all the same
                    world.advance(np.asarray(task.model.command_from(world.q)))
            except Over as over:
                why = str(over)
        if why != "reached":
            return Trial(len(seconds), why, np.array(seconds))
        seconds.append(world.clock - world.since)
    return Trial(len(seconds), "all goals", np.array(seconds))
