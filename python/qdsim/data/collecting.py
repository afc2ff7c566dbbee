"""Demonstrations by the hundred: seeded, in a file that a later run goes on from."""

from __future__ import annotations

import dataclasses
import os
import time

import numpy as np

from qdsim.arguments import flag, instance, integer, one_of, path_of
from qdsim.data.demonstrations import FORMAT, Demonstrations, read, write
from qdsim.data.teachers import Greedy, Planner, Teacher
from qdsim.envs.options import EnvOptions
from qdsim.envs.rules import Rules
from qdsim.planning.plans.archive import Archive, load_checkpoint
from qdsim.planning.task.fingerprint import fingerprint, hash_of
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.progress import progress_bar

__all__ = ["demonstrations"]

_PAUSE = 20.0
"""s between savings."""


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
    progress: bool = False,
) -> Demonstrations:
    """Episodes of a teacher on a task's problems, played by the rules of its environment.

    Problem i, and what the teacher does there, depends on ``seed + i`` alone.

    Args:
        task, options: of the environment; None: its defaults.
        count: problems. The greedy teacher plays one episode of each, a plan has one for each of its segments.
        teacher: "greedy": again and again the best of ``candidates`` random actions, what leaves the object nearest to
            its goal. "plans": commands of RRT plans, for options with ``action="command"``; problems without a plan
            have no episodes.
        candidates: of the greedy teacher.
        planner: of plans; None: the task's own.
        hindsight: of plans: the goal of each segment is where it ends, not the goal of the plan.
        seed: of everything.
        path: of a file that all is kept in, while it is made and at the end. If it is there it goes on from it; `count`
            may have grown since.
        progress: show a bar.

    Raises:
        TypeError, ValueError: naming the argument and what was wrong; for a file that is none, or one of other
            demonstrations.
        OSError: if the file cannot be read or written.
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
    rules = Rules(task, given)
    who: Teacher
    if teacher == "greedy":
        who, asked = Greedy(rules, candidates, seed), hash_of(candidates)
    else:
        planner = planner or task.planner or RRTOptions()
        who, asked = Planner(rules, planner, hindsight, seed), hash_of(planner, hindsight)
    mark = hash_of(fingerprint(task), dataclasses.replace(given, threads=1), teacher, asked, seed)
    return _collected(who, count, mark, place, flag("progress", progress))


def _collected(
    teacher: Teacher, count: int, mark: str, path: str | os.PathLike[str] | None, progress: bool
) -> Demonstrations:
    """All problems, in blocks, those of a file first."""

    def kept(archive: Archive) -> tuple[int, Demonstrations]:
        return integer("problems", archive.header["problems"], least=1), read(archive)

    found = None
    if path is not None:
        found = load_checkpoint(
            path, FORMAT, lambda version: mark, kept, inputs="task, teacher or seed"
        )
    done, parts = (0, []) if found is None else (found[0], [found[1]])
    saved, begun = time.perf_counter(), done
    with progress_bar(progress, count, "demonstrations", "problems") as update:
        while done < count:
            block = np.arange(done, min(done + teacher.block, count))
            parts.append(teacher(block))
            done += len(block)
            update(done, f"{sum(part.success.sum() for part in parts)} reach the goal")
            if path is not None and time.perf_counter() - saved >= _PAUSE and done < count:
                parts = [Demonstrations.joined(parts)]
                write(path, parts[0], {"mark": mark, "problems": done})
                saved = time.perf_counter()
    whole = Demonstrations.joined(parts)
    if path is not None and done > begun:
        write(path, whole, {"mark": mark, "problems": done})
    return whole.of_problems(count)
