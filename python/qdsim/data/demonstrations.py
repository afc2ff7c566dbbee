"""Recorded episodes, as arrays and as files."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from qdsim.array_type import Array
from qdsim.planning.plans.archive import Archive, Format, read_archive, write_archive

__all__ = ["FORMAT", "Demonstrations", "read", "write"]

FORMAT = Format("qdsim-demonstrations", 2, "a file of demonstrations")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Demonstrations:
    """Episodes one after the other: n actions of m numbers in total, observations of k numbers.

    Attributes:
        observations: ``(n, k)`` before every action.
        actions: ``(n, m)`` in [-1, 1].
        rewards: ``(n,)`` of the environment.
        start: ``(episodes + 1,)`` episode e has the actions from ``start[e]`` up to ``start[e +
            1]``.
        last: ``(episodes, k)`` observations at their ends.
        goals: ``(episodes, nq)`` configurations; only the object's entries matter.
        success: ``(episodes,)`` whether they reached it.
        terminated: ``(episodes,)`` whether they ended there or by a failure; the others were
            truncated.
        problem: ``(episodes,)`` ascending, the problem of each episode: that of environment
            ``problem`` of a ``TaskVectorEnv`` that was reset with the same seed.
    """

    observations: Array
    actions: Array
    rewards: Array
    start: NDArray[np.int64]
    last: Array
    goals: Array
    success: NDArray[np.bool_]
    terminated: NDArray[np.bool_]
    problem: NDArray[np.int64]

    @property
    def episode(self) -> NDArray[np.int64]:
        """Index of the episode of every action, (n,)."""
        return np.repeat(np.arange(len(self.success), dtype=np.int64), np.diff(self.start))

    def of_problems(self, count: int) -> Demonstrations:
        """Return the demonstrations of the first ``count`` problems.

        Args:
            count: number of problems.
        """
        episodes = int(np.searchsorted(self.problem, count))
        actions = int(self.start[episodes])
        cut = {"start": episodes + 1, **dict.fromkeys(_BY_ACTION, actions)}
        names = (f.name for f in dataclasses.fields(self))
        return Demonstrations(
            **{name: getattr(self, name)[: cut.get(name, episodes)] for name in names}
        )

    @classmethod
    def joined(cls, parts: list[Demonstrations]) -> Demonstrations:
        """Join several collections in the given order.

        Args:
            parts: the collections, of the same task; at least one.
        """
        columns = {
            f.name: np.concatenate([getattr(part, f.name) for part in parts])
            for f in dataclasses.fields(cls)
            if f.name != "start"
        }
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        return cls(start=np.append(0, np.cumsum(lengths)).astype(np.int64), **columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays under their names, as NPZ with a header, completely or not at all.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be written.
        """
        write(path, self, {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Demonstrations:
        """Read a file written by ``save``, or by ``demonstrations`` with a ``path``.

        Args:
            path: path of the file.

        Raises:
            OSError: if the file cannot be opened.
            ValueError: if it has no demonstrations or is damaged; the message names it.
        """
        return read_archive(path, FORMAT, read)

    def to_minari(self, dataset_id: str, **more: Any) -> Any:
        """Write a Minari dataset to Minari's folder of datasets (extra ``minari``).

        Args:
            dataset_id: "namespace/name-v0".
            more: of ``minari.create_dataset_from_buffers``: author, description, ...

        Returns:
            The ``minari.MinariDataset``. Every row of an episode's infos has its goal.

        Raises:
            ImportError: if Minari is not installed.
            ValueError: if there are no episodes, or the id is invalid or taken.
        """
        try:
            import minari
            from minari.data_collector import EpisodeBuffer
        except ImportError as error:
            raise ImportError(f"to_minari needs the extra 'minari': {error}") from None
        if len(self.success) == 0:
            raise ValueError("to_minari: there are no episodes")
        buffers = []
        for e, (first, end) in enumerate(zip(self.start[:-1].tolist(), self.start[1:].tolist())):
            last = np.arange(first, end) == end - 1
            buffers.append(
                EpisodeBuffer(
                    id=e,
                    observations=np.vstack((self.observations[first:end], self.last[e])),
                    actions=self.actions[first:end],
                    rewards=self.rewards[first:end].tolist(),
                    terminations=(last & self.terminated[e]).tolist(),
                    truncations=(last & ~self.terminated[e]).tolist(),
                    infos={"goal": np.tile(self.goals[e], (end - first + 1, 1))},
                )
            )
        spaces = {
            "observation_space": Box(-np.inf, np.inf, self.last.shape[1:], np.float64),
            "action_space": Box(-1.0, 1.0, self.actions.shape[1:], np.float64),
        }
        return minari.create_dataset_from_buffers(dataset_id, buffers, **{**spaces, **more})

    def __repr__(self) -> str:
        return (
            f"Demonstrations({len(self.success)} episodes, {len(self.actions)} actions, "
            f"{self.success.sum()} reach the goal)"
        )


_BY_ACTION = ("observations", "actions", "rewards")


def write(path: str | os.PathLike[str], data: Demonstrations, header: dict[str, Any]) -> None:
    """Write demonstrations to a file with a header."""
    arrays = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    write_archive(path, FORMAT, header, arrays, compressed=True)


def read(archive: Archive) -> Demonstrations:
    """Read demonstrations from an open file."""
    n, k = archive.shape("observations", 2)
    start = archive.counts("start")
    episodes = len(start) - 1
    if episodes < 0 or start[0] != 0 or start[-1] != n or np.any(np.diff(start) < 1):
        raise ValueError("start does not divide the actions among the episodes")
    problem = archive.counts("problem", episodes)
    if np.any(np.diff(problem) < 0):
        raise ValueError("problem does not ascend")
    return Demonstrations(
        observations=archive.array("observations", np.float64, n, k),
        actions=archive.array("actions", np.float64, n, None),
        rewards=archive.array("rewards", np.float64, n),
        start=start,
        last=archive.array("last", np.float64, episodes, k),
        goals=archive.array("goals", np.float64, episodes, None),
        success=archive.array("success", np.bool_, episodes),
        terminated=archive.array("terminated", np.bool_, episodes),
        problem=problem,
    )
