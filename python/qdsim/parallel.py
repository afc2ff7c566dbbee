"""Independent work items over any executor of ``concurrent.futures``: threads, processes, Dask, MPI, Ray, Slurm.

Scheduling is the executor's. This module adds what executors lack: seeds that belong to items, a folder from which a
run that was killed goes on, new workers in place of those that died, and adapters for Ray and Slurm.
"""

from __future__ import annotations

import concurrent.futures as futures
import json
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsim.arguments import integer, number, path_of
from qdsim.progress import progress_bar
from qdsim.whole_files import replacing

__all__ = ["ExecutorLike", "RayExecutor", "Result", "SlurmExecutor", "WorkError", "run", "seed_of"]

Result = Mapping[str, NDArray[Any]]
"""What an item returns: arrays of numbers or text by name."""
ExecutorLike = futures.Executor | Callable[[], futures.Executor] | None
"""An executor; or a function without arguments that makes one, again whenever its workers have died; or None: this
thread."""

_BREAKS = 2  # deaths of workers after which items are sent one at a time, so that the one that kills is known


class WorkError(RuntimeError):
    """Items failed; what the others returned is in ``results`` (None for those that failed).

    Attributes:
        results: one entry per item.
        errors: the exception of each item that failed, by the item's number.
    """

    def __init__(
        self, results: Sequence[Result | None], errors: Mapping[int, BaseException]
    ) -> None:
        first = min(errors)
        super().__init__(
            f"{len(errors)} of {len(results)} items failed; item {first}: "
            f"{type(errors[first]).__name__}: {errors[first]}"
        )
        self.results, self.errors = tuple(results), dict(errors)


def seed_of(seed: int, item: int) -> int:
    """Return the seed of one item, which does not depend on the number of items or on the executor.

    Args:
        seed: of the whole run, >= 0.
        item: number of the item, >= 0.
    """
    sequence = np.random.SeedSequence(
        integer("seed", seed, least=0), spawn_key=(integer("item", item, least=0),)
    )
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def run(
    function: Callable[..., Result],
    items: Iterable[tuple[Any, ...]],
    *,
    executor: ExecutorLike = None,
    folder: str | Path | None = None,
    mark: str = "",
    progress: bool = False,
    title: str = "items",
) -> tuple[Result, ...]:
    """Call a function on every item and return the results in the order of the items.

    Args:
        function: of a module, so that other processes can import it. It depends on its arguments alone.
        items: arguments of each call; they are pickled where the executor has other processes.
        executor: an executor, or a function that makes one. If workers die, an executor of the function is made again
            and the items are sent again; an item whose worker dies each time is reported as failed.
        folder: where finished results are kept, one file each; a later run takes them from there. None: nowhere.
        mark: what the results depend on beside the items' numbers; a folder of another mark is refused.
        progress: show a bar of finished items.
        title: stands before the bar.

    Raises:
        WorkError: if items failed; the others are finished first.
        TypeError: if it is not an executor.
        ValueError: if the folder holds results of something else, or a file in it is damaged.
        KeyboardInterrupt: at Ctrl-C; waiting items are cancelled, and what was finished is in the folder.
    """
    if not callable(function):
        raise TypeError(f"function: expected a function, got {type(function).__name__}")
    work = _Work(function, [tuple(item) for item in items], _Folder(folder, mark))
    with progress_bar(progress, len(work.items), title, "items") as update:
        work.update = update
        make = _maker(executor)
        if make is None:
            work.here()
        else:
            work.everywhere(make, restarts=not isinstance(executor, futures.Executor))
    if work.errors:
        raise WorkError(work.results, work.errors) from work.errors[min(work.errors)]
    return tuple(result for result in work.results if result is not None)


def _maker(executor: ExecutorLike) -> Callable[[], futures.Executor] | None:
    """What makes the executor; None: the calling thread does the work."""
    if executor is None:
        return None
    if isinstance(executor, futures.Executor):
        return lambda: executor
    if not isinstance(executor, type) and callable(executor):
        return executor
    raise TypeError(
        "executor: expected a concurrent.futures.Executor, a function that makes one, or None, got "
        f"{executor.__name__ if isinstance(executor, type) else type(executor).__name__}"
    )


class _Work:
    """One run: which items are done, and what they returned."""

    def __init__(
        self, function: Callable[..., Result], items: list[tuple[Any, ...]], folder: _Folder
    ) -> None:
        self.function, self.items, self.folder = function, items, folder
        self.results: list[Result | None] = [folder.read(i) for i in range(len(items))]
        self.errors: dict[int, BaseException] = {}
        self.done = len(items) - len(self.open)
        self.update: Callable[[int, str], None] = lambda done, text: None

    @property
    def open(self) -> list[int]:
        """Items that are neither done nor failed."""
        return [i for i, r in enumerate(self.results) if r is None and i not in self.errors]

    def finish(self, item: int, call: Callable[[], Result]) -> None:
        """Take the result of an item, or what it raised."""
        try:
            result = {name: np.asarray(value) for name, value in call().items()}
            self.folder.write(item, result)
            self.results[item] = result
        except futures.BrokenExecutor:
            raise
        except Exception as error:  # the item's own; reported when all are done
            self.errors[item] = error
        self.done += 1
        self.update(self.done, "")

    def here(self) -> None:
        """Do all in this thread."""
        for item in self.open:
            self.finish(item, lambda item=item: self.function(*self.items[item]))  # type: ignore[misc]

    def everywhere(self, make: Callable[[], futures.Executor], restarts: bool) -> None:
        """Do all by an executor, and go on with a new one when its workers have died."""
        breaks = 0
        while self.open:
            executor = make()
            if not isinstance(executor, futures.Executor):
                raise TypeError(
                    f"executor: the function returned {type(executor).__name__}, no executor"
                )
            alone = breaks > _BREAKS
            sent = self.open[:1] if alone else self.open
            try:
                self._send(executor, sent)
            except futures.BrokenExecutor as error:
                breaks += 1
                if not restarts or alone:
                    self.errors.update((i, error) for i in sent if self.results[i] is None)
                    breaks = 0
            finally:
                if restarts:
                    executor.shutdown(wait=False, cancel_futures=True)

    def _send(self, executor: futures.Executor, items: list[int]) -> None:
        waiting = {executor.submit(self.function, *self.items[item]): item for item in items}
        broken: futures.BrokenExecutor | None = None
        try:
            for done in futures.as_completed(waiting):
                try:
                    self.finish(waiting[done], done.result)
                except futures.BrokenExecutor as error:  # others may have ended well before
                    broken = error
            if broken is not None:
                raise broken
        finally:
            for future in waiting:
                future.cancel()


class _Folder:
    """Finished results, one file each, and the mark that they belong to."""

    def __init__(self, folder: str | Path | None, mark: str) -> None:
        self.place = None if folder is None else Path(path_of("folder", folder))
        if self.place is None:
            return
        self.place.mkdir(parents=True, exist_ok=True)
        head = self.place / "run.json"
        if head.exists():
            try:
                found = json.loads(head.read_text(encoding="utf-8"))["mark"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"folder: {head} is damaged") from None
            if found != mark:
                raise ValueError(f"folder: {self.place} holds results of other work")
            return
        with replacing(head) as file:
            file.write(json.dumps({"mark": mark}).encode())

    def _path(self, item: int) -> Path:
        assert self.place is not None
        return self.place / f"{item:07d}.npz"

    def read(self, item: int) -> Result | None:
        """The result that is there, or None."""
        if self.place is None or not self._path(item).exists():
            return None
        try:
            with np.load(self._path(item), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"folder: {self._path(item)} is damaged: {error}") from None

    def write(self, item: int, result: Result) -> None:
        """Keep a result, whole or not at all."""
        for name, value in result.items():
            if value.dtype.hasobject:
                raise TypeError(f"result {name!r}: expected numbers or text, got objects")
        if self.place is not None:
            with replacing(self._path(item)) as file:
                arrays: dict[str, Any] = dict(result)
                np.savez(file, **arrays)


class RayExecutor(futures.Executor):
    """Ray Core as an executor; ``ray.init`` decides where it runs (extra ``ray``).

    Args:
        options: of ``ray.remote``: ``num_cpus``, ``max_retries`` and the like.
    """

    def __init__(self, **options: Any) -> None:
        import ray

        self._ray, self._options = ray, options

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Send one call to Ray."""
        remote = self._ray.remote(**self._options)(fn) if self._options else self._ray.remote(fn)
        future: futures.Future[Any] = remote.remote(*args, **kwargs).future()
        return future


class SlurmExecutor(futures.Executor):
    """Slurm as an executor, by submitit (extra ``slurm``): one job per call.

    Args:
        folder: where submitit keeps scripts, pickles and logs; all nodes must see it.
        cluster: None: Slurm where it is installed, else this machine; "local": this machine.
        poll: s between two looks at the queue, > 0.
        parameters: of ``submitit.AutoExecutor.update_parameters``: ``timeout_min``, ``slurm_partition`` and so on.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        cluster: str | None = None,
        poll: float = 1.0,
        **parameters: Any,
    ) -> None:
        import submitit

        self._executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        self._executor.update_parameters(**parameters)
        self._poll = number("poll", poll, above=0)
        self._jobs: list[tuple[Any, futures.Future[Any]]] = []
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Send one job to the queue."""
        future: futures.Future[Any] = futures.Future()
        job = self._executor.submit(fn, *args, **kwargs)
        with self._lock:
            self._jobs.append((job, future))
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        return future

    def _watch(self) -> None:
        """Look at the queue until no job is left in it."""
        while True:
            with self._lock:
                self._jobs = [pair for pair in self._jobs if not _ended(*pair)]
                if not self._jobs:
                    self._watcher = None
                    return
            time.sleep(self._poll)


def _ended(job: Any, future: futures.Future[Any]) -> bool:
    """Whether a job is over; its future has its result then."""
    if future.cancelled():
        job.cancel()
        return True
    if not job.done():
        return False
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(job.result())
        except Exception as error:
            future.set_exception(error)
    return True
