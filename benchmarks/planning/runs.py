"""What benchmarks of executions share: runs kept in a file, limits of CPU time, plants unlike the model, tables."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import mujoco

from qdsim import planning

__all__ = [
    "Runs",
    "TooLong",
    "arguments",
    "counts",
    "head",
    "limited",
    "report_of",
    "vary",
]


class TooLong(Exception):
    pass


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TooLong in the block after this many seconds of CPU time."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with ``--cache`` and ``--cached``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cache", type=Path, default=None, help="file of the runs, to go on from")
    parser.add_argument("--cached", action="store_true", help="only what the cache has")
    return parser


class Runs(dict[str, Any]):
    """Runs by their keys, words joined by "|". A new run is added to the file at once, as a line of JSON.

    Args:
        files: Runs are read from all files and added to the first one; None stands for no file.
    """

    def __init__(self, *files: Path | None) -> None:
        super().__init__()
        self._file = files[0] if files else None
        for file in files:
            if file is not None and file.exists():
                lines = map(json.loads, file.read_text().splitlines())
                self.update((line["key"], line["run"]) for line in lines)

    def make(self, key: str, run: Callable[..., Any], *given: Any) -> None:
        """Make a run, unless it is known."""
        if key not in self:
            self.keep(key, run(*given))

    def keep(self, key: str, run: Any) -> None:
        """Add a run."""
        self[key] = run
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps({"key": key, "run": run}) + "\n")

    def of(self, name: str) -> list[Any]:
        """Return the runs whose keys are this name and one more word."""
        return [run for key, run in self.items() if key.rsplit("|", 1)[0] == name]


def report_of(
    executor: Callable[[], planning.Executor], cpu: int, picture: Path | None = None
) -> dict[str, Any]:
    """Run an executor for at most this many seconds of CPU, and return what it reports; draw it if a file is given."""
    told: dict[str, Any] = {"reached": False, "outcome": "late"}
    begin = time.process_time()
    with contextlib.suppress(TooLong), limited(cpu):
        made = executor()
        report = made.run()
        told |= {"reached": report.reached, "outcome": report.outcome, "text": str(report)}
        told |= {"seconds": report.seconds, "plans": report.plans, "entries": report.entries}
        told["error"] = [report.position_error, report.rotation_error]
    told["cpu"] = time.process_time() - begin
    if picture is not None and told["outcome"] != "late":
        planning.pictures.draw_execution(report.motion, made.task.model, picture)
    return told


def vary(mj: mujoco.MjModel, body: str, friction: float, mass: float) -> None:
    """Multiply the sliding friction of all contacts, and a body's mass and inertia."""
    mj.geom_friction[:, 0] *= friction
    mj.pair_friction[:, :2] *= friction
    own = mj.body(body).id
    mj.body_mass[own] *= mass
    mj.body_inertia[own] *= mass


def head(*columns: str) -> None:
    """Print the head of a table."""
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))


def counts(words: Iterable[str]) -> str:
    """Count words: "2 lost, 1 late"."""
    every = list(words)
    return ", ".join(f"{every.count(word)} {word}" for word in dict.fromkeys(every))
