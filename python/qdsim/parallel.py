"""Independent work items on any executor of ``concurrent.futures``: threads, processes, Dask, MPI,
Ray, Slurm.

The executor does the scheduling. This module adds seeds per item, a folder from which an
interrupted run continues, new workers in place of dead ones, and adapters for Ray and Slurm.
"""

from __future__ import annotations

import concurrent.futures as futures
import functools
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
"""The result of an item: arrays of numbers or text by name."""
ExecutorLike = futures.Executor | Callable[[], futures.Executor] | None
"""An executor; or a function without arguments that makes one, called again if workers have died;
or None: this thread."""


class WorkError(RuntimeError):
    """Raised if items failed. ``results`` has the results of the other items, and None for those that failed.

    Attributes:
        results: one entry per item.
        errors: the exception of each failed item, by the item's index.
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
        item: index of the item, >= 0.
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
        function: a function of a module, so that other processes can import it. Its result depends
            only on its arguments.
        items: arguments of each call; they are pickled if the executor uses other processes.
        executor: an executor, or a function that makes one. If workers die, the function makes a
            new executor and the items are sent again; an item whose worker dies each time is
            reported as failed.
        folder: folder of finished results, one file each; a later run reads them. None: no folder.
        mark: fingerprint of everything else that the results depend on; a folder with another mark
            is an error.
        progress: show a bar of finished items.
        title: text before the bar.

    Raises:
        WorkError: if items failed; the others are finished first.
        TypeError: if it is not an executor.
        ValueError: if the folder belongs to another run, or a file in it is damaged.
        KeyboardInterrupt: at Ctrl-C; waiting items are cancelled, and finished ones are in the
            folder.
    """
    if not callable(function):
        raise TypeError(f"function: expected a function, got {type(function).__name__}")
    if isinstance(executor, type) or not (
        executor is None or isinstance(executor, futures.Executor) or callable(executor)
    ):
        found = executor if isinstance(executor, type) else type(executor)
        raise TypeError(
            "executor: expected a concurrent.futures.Executor, a function that makes one, or None, "
            f"got {found.__name__}"
        )
    work = _Work(function, [tuple(item) for item in items], _opened(folder, mark))
    with progress_bar(progress, len(work.items), title, "items") as work.update:
        if executor is None:
            for item in work.open:
                work.finish(item, functools.partial(function, *work.items[item]))
        while executor is not None and work.open:
            work.send(executor)
    if work.errors:
        raise WorkError(work.results, work.errors) from work.errors[min(work.errors)]
    return tuple(result for result in work.results if result is not None)


class _Work:
    """The state of one run: which items are done, and their results.

    In a folder, each finished result is a file.
    """

    def __init__(
        self, function: Callable[..., Result], items: list[tuple[Any, ...]], folder: Path | None
    ) -> None:
        self.function, self.items = function, items
        self.folder = folder
        self.results = [_read(self.path(i)) for i in range(len(items))]
        self.errors: dict[int, BaseException] = {}
        self.alone = False
        self.update: Callable[[int, str], None]

    def path(self, item: int) -> Path | None:
        """Return the path of the result of an item, or None without a folder."""
        return self.folder and self.folder / f"{item:07d}.npz"

    @property
    def open(self) -> list[int]:
        """Items that are neither done nor failed."""
        return [i for i, r in enumerate(self.results) if r is None and i not in self.errors]

    def finish(self, item: int, call: Callable[[], Result]) -> None:
        """Store the result of an item, or the error that it raised.

        A file is written completely or not at all.
        """
        try:
            result: dict[str, Any] = {name: np.asarray(value) for name, value in call().items()}
            for name, value in result.items():
                if value.dtype.hasobject:
                    raise TypeError(f"result {name!r}: expected numbers or text, got objects")
            if (path := self.path(item)) is not None:
                with replacing(path) as file:
                    np.savez(file, **result)
            self.results[item] = result
        except futures.BrokenExecutor:
            raise
        except Exception as error:  # an error of the item itself, reported when all items are done
            self.errors[item] = error
        self.update(len(self.items) - len(self.open), "")

    def send(self, source: futures.Executor | Callable[[], futures.Executor]) -> None:
        """Submit the open items.

        If workers die before any item is done, the next item is submitted alone, to find the item
        that kills its worker.
        """
        restarts = not isinstance(source, futures.Executor)
        executor: object = source if isinstance(source, futures.Executor) else source()
        if not isinstance(executor, futures.Executor):
            name = type(executor).__name__
            raise TypeError(f"executor: the function returned {name}, no executor")
        before = self.open
        sent = before[:1] if self.alone else before
        waiting: dict[futures.Future[Result], int] = {}
        broken: futures.BrokenExecutor | None = None
        try:
            for item in sent:
                waiting[executor.submit(self.function, *self.items[item])] = item
        except futures.BrokenExecutor as error:
            broken = error
        try:
            for done in futures.as_completed(waiting):
                try:
                    self.finish(waiting[done], done.result)
                except futures.BrokenExecutor as error:  # other items may have finished before
                    broken = error
        finally:
            for future in waiting:
                future.cancel()
            if restarts:
                executor.shutdown(wait=False, cancel_futures=True)
        if broken is not None and (self.alone or not restarts):
            self.errors.update((i, broken) for i in sent if self.results[i] is None)
        self.alone = self.open == before


def _opened(folder: str | Path | None, mark: str) -> Path | None:
    """Create the folder with the mark of this run, or check the mark of an existing folder."""
    if folder is None:
        return None
    place = Path(path_of("folder", folder))
    place.mkdir(parents=True, exist_ok=True)
    head = place / "run.json"
    if not head.exists():
        with replacing(head) as file:
            file.write(json.dumps({"mark": mark}).encode())
    try:
        found = json.loads(head.read_text(encoding="utf-8"))["mark"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"folder: {head} is damaged") from None
    if found != mark:
        raise ValueError(f"folder: {place} holds results of other work")
    return place


def _read(path: Path | None) -> Result | None:
    """Read a finished result, or return None."""
    if path is None or not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"folder: {path} is damaged: {error}") from None


class RayExecutor(futures.Executor):
    """Ray Core as an executor; ``ray.init`` decides where it runs (extra ``ray``).

    Args:
        options: of ``ray.remote``: ``num_cpus``, ``max_retries`` and others.
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
        folder: folder of submitit's scripts, pickles and logs, on a file system that all nodes
            share.
        cluster: None: Slurm if it is installed, else this machine; "local": this machine.
        poll: time between two checks of the queue, s, > 0.
        parameters: of ``submitit.AutoExecutor.update_parameters``: ``timeout_min``,
            ``slurm_partition`` and others.
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
        self._poll, self._lock = number("poll", poll, above=0), threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Send one job to the queue."""
        future: futures.Future[Any] = futures.Future()
        job = self._executor.submit(fn, *args, **kwargs)
        threading.Thread(target=self._watch, args=(job, future), daemon=True).start()
        return future

    def _watch(self, job: Any, future: futures.Future[Any]) -> None:
        """Poll the queue until a job has left it, and then set the result of its future."""
        while not self._ended(job):
            if future.cancelled():
                job.cancel()
                return
            time.sleep(self._poll)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(job.result())
            except Exception as error:
                future.set_exception(error)

    def _ended(self, job: Any) -> bool:
        with self._lock:  # submitit asks the queue for all jobs at once, unless it did so recently
            return bool(job.done())
