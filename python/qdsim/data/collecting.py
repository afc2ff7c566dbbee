"""Recording of many demonstrations, reproducible, in a file from which a later run continues."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import flag, instance, integer, one_of, path_of
from qdsim.data.demonstrations import FORMAT, Demonstrations, read, write
from qdsim.data.teachers import Greedy, Planner, Teacher
from qdsim.envs.options import EnvOptions
from qdsim.envs.rules import Rules
from qdsim.parallel import ExecutorLike, Result, run
from qdsim.planning.plans.archive import Archive, load_checkpoint
from qdsim.planning.task.fingerprint import fingerprint, hash_of
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.progress import progress_bar
from qdsim.whole_files import SAVE_PAUSE

__all__ = ["demonstrations"]

Kind = tuple[type[Any], tuple[Any, ...]]
"""A class of teachers, and its arguments between rules and seed."""


def demonstrations(
    task: Task,
    count: int,
    options: EnvOptions | None = None,
    *,
    teacher: str = "greedy",
    candidates: int = 128,
    planner: RRTOptions | None = None,
    hindsight: bool = True,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    executor: ExecutorLike = None,
    progress: bool = False,
) -> Demonstrations:
    """Record episodes of a teacher on a task's problems, by the rules of its environment.

    Problem i, and its episodes, depend only on ``seed + i``.

    Args:
        task, options: of the environment; None: its defaults.
        count: number of problems. The greedy teacher plays one episode of each; a plan has one for
            each of its segments.
        teacher: "greedy": at every step the best of ``candidates`` random actions, which leaves the
            object nearest to its goal. "plans": commands of RRT plans, for options with
            ``action="command"``; problems without a plan have no episodes.
        candidates: of the greedy teacher.
        planner: settings of plans; None: those of the task.
        hindsight: for plans: the goal of each segment is its own end, not the goal of the plan.
        seed: seed of all random choices.
        path: file in which all episodes are saved, during the run and at its end. If it exists, the
            run continues from it; ``count`` may be larger than before.
        executor: an executor of ``concurrent.futures``, or a function that makes one (see
            :func:`qdsim.parallel.run`); results are bitwise identical. Finished problems are kept
            in the folder ``path + ".parts"`` until all are done.
        progress: show a bar.

    Raises:
        TypeError, ValueError: if an argument is invalid (the message names it), or the file has no
            or other demonstrations.
        OSError: if the file cannot be read or written.
        WorkError: if a worker failed; the results of the others are in the folder.
    """
    given = instance("options", options, EnvOptions, or_none=True) or EnvOptions()
    instance("planner", planner, RRTOptions, or_none=True)
    integer("count", count, least=1)
    one_of("teacher", teacher, ("greedy", "plans"))
    integer("candidates", candidates, least=1)
    integer("seed", seed, least=0)
    flag("hindsight", hindsight)
    flag("progress", progress)
    place = None if path is None else path_of("path", path)
    if teacher == "greedy":
        kind: Kind = (Greedy, (candidates,))
    else:
        kind = (Planner, (planner or task.planner or RRTOptions(), hindsight))
    mark = hash_of(
        fingerprint(task), dataclasses.replace(given, threads=1), teacher, hash_of(*kind[1]), seed
    )
    who = kind[0](Rules(task, given), *kind[1], seed)
    shared = None if executor is None else _Shared((task, given, kind, seed), mark, executor)
    return _collected(who, count, mark, place, flag("progress", progress), shared)


class _Shared(NamedTuple):
    """Distributes blocks of problems by an executor."""

    teacher: tuple[Task, EnvOptions, Kind, int]
    mark: str
    executor: ExecutorLike

    def __call__(
        self, blocks: list[NDArray[np.int64]], path: str | os.PathLike[str] | None, progress: bool
    ) -> list[Demonstrations]:
        """Return the episodes of each block; finished blocks are stored in a folder next to the path."""
        found = run(
            taught,
            [(*self.teacher, block) for block in blocks],
            executor=self.executor,
            folder=None if path is None else _parts(path),
            mark=hash_of(self.mark, blocks),
            progress=progress,
            title="demonstrations",
        )
        return [Demonstrations(**part) for part in found]


def _parts(path: str | os.PathLike[str]) -> str:
    """Return the folder of finished blocks."""
    return f"{os.fspath(path)}.parts"


def taught(
    task: Task, options: EnvOptions, kind: Kind, seed: int, problems: NDArray[np.int64]
) -> Result:
    """Return the episodes of some problems as arrays, which any executor can transmit."""
    part = kind[0](Rules(task, options), *kind[1], seed)(problems)
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}


def _collected(
    teacher: Teacher,
    count: int,
    mark: str,
    path: str | os.PathLike[str] | None,
    progress: bool,
    shared: _Shared | None,
) -> Demonstrations:
    """Collect the episodes of all problems in blocks, beginning with those in a file."""

    def kept(archive: Archive) -> tuple[int, Demonstrations]:
        return integer("problems", archive.header["problems"], least=1), read(archive)

    found = None
    if path is not None:
        found = load_checkpoint(path, FORMAT, mark, kept, inputs="task, teacher or seed")
    done, parts = (0, []) if found is None else (found[0], [found[1]])
    saved, begun = time.perf_counter(), done
    if shared is not None and done < count:
        starts = range(done, count, teacher.block)
        blocks = [np.arange(k, min(k + teacher.block, count)) for k in starts]
        parts += shared(blocks, path, progress)
        done = count
    with progress_bar(progress and shared is None, count, "demonstrations", "problems") as update:
        while done < count:
            block = np.arange(done, min(done + teacher.block, count))
            parts.append(teacher(block))
            done += len(block)
            update(done, f"{sum(part.success.sum() for part in parts)} reach the goal")
            if path is not None and time.perf_counter() - saved >= SAVE_PAUSE and done < count:
                parts = [Demonstrations.joined(parts)]
                write(path, parts[0], {"mark": mark, "problems": done})
                saved = time.perf_counter()
    whole = Demonstrations.joined(parts)
    if path is not None and done > begun:
        write(path, whole, {"mark": mark, "problems": done})
        if shared is not None:
            shutil.rmtree(_parts(path), ignore_errors=True)
    return whole.of_problems(count)
