"""Teachers of demonstrations: the best of many random moves at every step, or plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.data.demonstrations import Demonstrations
from qdsim.envs.features import Goals
from qdsim.envs.moves import Commands
from qdsim.envs.rules import Players, Rules
from qdsim.envs.streams import uniforms
from qdsim.planning.plans.segment import Segment
from qdsim.planning.search.rrt import rrt
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.step import Options

__all__ = ["Greedy", "Planner", "Teacher"]

_KEY = np.uint64(0x7EAC4E5)
"""Key of the teacher's random numbers, which differ from those that draw the problems."""
_NO_EPISODE = np.zeros(1, dtype=np.uint64)

Act = Callable[[int, NDArray[np.intp]], Array]
"""``act(k, rows)``: the k-th actions (rows, m) of these players."""


class Teacher(Protocol):
    """Demonstrates problems; ``block`` is an efficient number of problems per call."""

    block: int

    def __call__(self, problems: NDArray[np.int64]) -> Demonstrations:
        """Return episodes of these problems (n,); they depend only on the problems' numbers."""
        ...


class Greedy:
    """At every step takes the best of several random moves, which leaves the object nearest to its
    goal."""

    block = 64

    def __init__(self, rules: Rules, candidates: int, seed: int) -> None:
        self.rules, self.candidates, self.seed = rules, candidates, seed

    def __call__(self, problems: NDArray[np.int64]) -> Demonstrations:
        """Return one episode per problem."""
        rules, seeds = self.rules, (problems + self.seed).astype(np.uint64)
        players = rules.draw(seeds, np.zeros(len(seeds), np.uint64))

        def act(k: int, rows: NDArray[np.intp]) -> Array:
            goals = players.goals[rows]
            own = {name: values[rows] for name, values in players.parameters.items()}
            numbers = uniforms(
                seeds[rows] ^ _KEY,
                np.full(len(rows), k, np.uint64),
                self.candidates * rules.action_size,
            )
            trials = 2.0 * numbers.reshape(len(rows), self.candidates, -1) - 1.0
            state = players.q[rows], players.v[rows]
            return self.best(*state, goals, own, players.contacts[rows], trials)

        return _played(rules, players, act, np.full(len(seeds), rules.horizon), problems)

    def best(
        self,
        q: Array,
        v: Array,
        goals: Goals,
        parameters: dict[str, Array],
        contacts: NDArray[np.intp],
        trials: Array,
    ) -> Array:
        """Return the best (n, m) of several trial actions (n, candidates, m)."""
        task, count = self.rules.task, trials.shape[1]
        own = {name: np.repeat(values, count, axis=0) for name, values in parameters.items()}
        action = trials.reshape(len(trials) * count, -1)
        contacts = np.repeat(contacts, count)
        q, v = (np.repeat(rows, count, axis=0) for rows in (q, v))
        moved = self.rules.moves(q, action, own, contacts, v)
        every = np.repeat(np.arange(len(trials)), count)
        look = self.rules.viewer.look(
            moved.q, goals[every], np.zeros((len(every), self.rules.viewer.more))
        )
        cost = np.sqrt(look.shift**2 + (task.length * look.turn) ** 2)
        cost[moved.failed | moved.refused] = np.inf
        best = cost.reshape(len(trials), count).argmin(axis=1)
        return np.asarray(trials[np.arange(len(trials)), best])


class Planner:
    """Executes plans of the task's RRT; every segment (with one grasp) is an episode.

    Plans follow random subgoals, so a segment says little about the goal of the plan. With
    hindsight the goal of an episode is the end of its segment.
    """

    block = 1

    def __init__(
        self, rules: Rules, options: RRTOptions | None, hindsight: bool, seed: int
    ) -> None:
        moves = rules.moves
        if not isinstance(moves, Commands):
            raise ValueError("teacher: 'plans' are commands: give options with action='command'")
        if rules.options.dynamics != "quasi_dynamic":
            raise ValueError(
                "teacher: 'plans' are of quasi-dynamic steps, as options.dynamics is not"
            )
        self.rules, self.options, self.moves = rules, options, moves
        self.hindsight, self.seed = hindsight, seed

    def __call__(self, problems: NDArray[np.int64]) -> Demonstrations:
        """Return one episode for each segment of a plan that moves the object; none if no plan was found."""
        return Demonstrations.joined([self._one(int(problem)) for problem in problems])

    def _one(self, problem: int) -> Demonstrations:
        rules, task = self.rules, self.rules.task
        drawn = rules.draw(np.array([problem + self.seed], np.uint64), _NO_EPISODE)
        own = {name: values[0] for name, values in drawn.parameters.items()}
        law = rules.moves.laws[drawn.contacts[0]]
        assert isinstance(law.options, Options)
        model = law.model.with_parameters(**own) if own else law.model
        goal = drawn.goals.q[0]
        own_task = task.towards(goal, start=drawn.q[0], model=model).replace(options=law.options)
        tree = rrt(own_task, self.options, problem + self.seed)
        segments = list(tree.plan().segments) if tree.reached else []
        segments = [s for s in segments if self._moves_object(s)]
        q = np.array([s.start for s in segments]).reshape(-1, task.model.nq)
        lengths = np.array([-(-s.steps // self.moves.steps) for s in segments], dtype=np.intp)
        parameters = {
            name: np.repeat(values, len(segments), axis=0)
            for name, values in drawn.parameters.items()
        }
        contacts = np.repeat(drawn.contacts, len(segments))
        inputs = self._inputs(segments, lengths)
        goals = np.repeat(goal[None], len(segments), axis=0)
        if self.hindsight:
            goals = self._ends(q, inputs, lengths, parameters, contacts)
        players = rules.begin(q, goals, parameters, contacts)

        def act(k: int, rows: NDArray[np.intp]) -> Array:
            return self.moves.meaning(players.q[rows], inputs[rows, k])

        return _played(rules, players, act, lengths, np.full(len(segments), problem))

    def _moves_object(self, segment: Segment) -> bool:
        task = self.rules.task
        shift, turn = task.space.errors(segment.start, segment.end)
        return bool(shift > task.position_tolerance or turn > task.rotation_tolerance)

    def _inputs(self, segments: list[Segment], lengths: NDArray[np.intp]) -> Array:
        """Return commands (segments, longest, nu): for each action, that of its last step. The last
        command is repeated."""
        steps, longest = self.moves.steps, int(lengths.max(initial=0))
        found = np.zeros((len(segments), longest, self.moves.size))
        for row, segment in zip(found, segments):
            row[:] = segment.inputs[
                np.minimum(steps * np.arange(1, longest + 1), segment.steps) - 1
            ]
        return found

    def _ends(
        self,
        q: Array,
        inputs: Array,
        lengths: NDArray[np.intp],
        parameters: dict[str, Array],
        contacts: NDArray[np.intp],
    ) -> Array:
        """Return the final configurations (n, nq) under the commands (n, longest, nu), of which row
        i has ``lengths[i]``."""
        q = q.copy()
        for k in range(inputs.shape[1]):
            moved = self.moves(q, self.moves.meaning(q, inputs[:, k]), parameters, contacts)
            q = np.where((k < lengths)[:, None], moved.q, q)
        return q


def _played(
    rules: Rules, players: Players, act: Act, lengths: NDArray[np.intp], problems: NDArray[np.int64]
) -> Demonstrations:
    """Let players (n) act until their episodes end, or for ``lengths`` (n,) actions; return the episodes."""
    count = len(players.q)
    over = lengths <= 0
    success, terminated = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    last = np.zeros((count, rules.observation_size))
    kept: list[tuple[Array, Array, Array, NDArray[np.intp]]] = []
    k = 0
    while not over.all():
        rows = np.flatnonzero(~over)
        seen = rules.observe(players)[rows]
        action = np.zeros((count, rules.action_size))
        action[rows] = act(k, rows)
        ended = rules.play(players, action)
        kept.append((seen, action[rows], ended.reward[rows], rows))
        k += 1
        success[rows], terminated[rows] = ended.success[rows], ended.terminated[rows]
        over[rows] = ended.terminated[rows] | (k >= lengths[rows])
        done = rows[over[rows]]
        last[done] = rules.observe(players)[done]
    empty = np.zeros((0, rules.observation_size)), np.zeros((0, rules.action_size)), np.zeros(0)
    columns = [np.concatenate(c) for c in zip((*empty, np.zeros(0, np.intp)), *kept)]
    observations, actions, rewards, player = columns
    order = np.argsort(player, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(player, minlength=count))).astype(np.int64)
    return Demonstrations(
        observations=observations[order],
        actions=actions[order],
        rewards=rewards[order],
        start=start,
        last=last,
        goals=players.goals.q.copy(),
        success=success,
        terminated=terminated,
        problem=problems.astype(np.int64),
    )
