"""What breaks when a number of csrc/numerics/conic/tuning.h is ten times larger or smaller.

Usage: python benchmarks/solver/vary_tuning.py methods|tests [NAME ...]. The programs are written down once: those of
bench_methods.py, or what the solver's own tests ask for (HARD: random, weak, soft, extreme, without solution).
For each constant and each direction the library is built anew from a copy of the sources, and solves them all
in a process of its own. Counted are programs without an answer, those that were not polished, and factors (exact
counts, the same on each machine). Shares between 0.1 and 1 are moved towards 1 instead: what they leave of a
whole is divided by ten. Prints a table; run.py does not call it, since it takes an hour.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import qdsim

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/tuning"
HEADER = Path("csrc/numerics/conic/tuning.h")
DEFINE = re.compile(r"^#define ([A-Z]\w*) ([0-9.e+-]+)$", re.MULTILINE)
COUNTED = ("programs", "unsolved", "not polished", "derivatives not exact", "factors")
HARD = [
    f"test_{name}.py"
    for name in [
        "random_programs",
        "soft_rows",
        "extreme_numbers",
        "barrier_scales",
        "interval_barriers",
        "weak_costs",
        "equalities",
        "warm_start",
        "failed_steps",
        "force_limits",
        "power_grasp",
        "redundant_contacts",
        "found_steps",
    ]
]
EACH_TEST = 40  # calls of one test at most
LONGEST = 0.2  # CPU seconds: programs that take longer are left out


class Recorder:
    """Calls of qdsim.step and qdsim.solve_cone_program, each with its arguments, while it is entered."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.actual = {name: getattr(qdsim, name) for name in ("step", "solve_cone_program")}
        self.most = sys.maxsize

    def __enter__(self) -> Recorder:
        for name in self.actual:
            setattr(qdsim, name, self._noting(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self.actual.items():
            setattr(qdsim, name, function)

    @staticmethod
    def _kept(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments with their arrays copied, since the caller may write into them."""

        def copied(value: Any) -> Any:
            return value.copy() if isinstance(value, np.ndarray) else value

        return tuple(map(copied, args)), {name: copied(value) for name, value in named.items()}

    def _noting(self, name: str) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            given = self._kept(args, named) if self.most > 0 else None
            try:
                return self.actual[name](*args, **named)
            except (TypeError, ValueError):
                given = None
                raise
            finally:
                if given is not None and time.process_time() - start < LONGEST:
                    self.calls.append((name, *given))
                    self.most -= 1

        return called

    def pytest_runtest_setup(self) -> None:
        self.most = EACH_TEST


def record(which: str, path: Path) -> None:
    """Write down the calls of bench_methods.py, or of the tests in HARD, so that each variant solves the same."""
    recorder = Recorder()
    if which == "tests":
        import pytest

        with recorder:
            found = [str(next((ROOT / "tests").rglob(name))) for name in HARD]
            pytest.main(["-q", *found], plugins=[recorder])
    else:
        import bench_methods

        for source in bench_methods.sets().values():
            for call in source:
                with recorder, contextlib.suppress(qdsim.SolverError):
                    call()
    path.write_bytes(pickle.dumps(recorder.calls))


def replay(path: Path) -> None:
    """Print the counts of all calls as JSON, in the order of COUNTED; steps are solved with their derivatives."""
    solve = {
        "step": lambda *a, **k: qdsim.linearize(*a, **k).step,
        "solve_cone_program": qdsim.solve_cone_program,
    }
    count = unsolved = rough = inexact = factors = 0
    for name, args, named in pickle.loads(path.read_bytes()):
        count += 1
        try:
            info = solve[name](*args, **named).info
            rough += not info.polished
            inexact += info.derivative_exact is False
        except qdsim.SolverError as error:
            info = error.info
            unsolved += info.status != "infeasible"
        factors += info.factorizations
    print(json.dumps([count, unsolved, rough, inexact, factors]))


def copy_sources(to: Path) -> None:
    """Copy what git knows of the project, and what a build needs besides."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if name.startswith(("csrc/", "python/", "tools/", "third_party/", "meson")):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def set_up(source: Path, build: Path) -> None:
    """Configure a build of the extension alone, with one copy of each function."""
    subprocess.run(
        ["meson", "setup", build, source, "-Dtests=false", "-Dcopies=none"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def install(build: Path, to: Path) -> Path:
    """Build and install; the folder that Python finds the package in."""
    shutil.rmtree(to, ignore_errors=True)
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["meson", "compile", "-C", build], **quiet)
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", to], **quiet)
    return next(to.rglob("qdsim/__init__.py")).parents[1]


def counts(packages: Path, calls: Path) -> list[int] | None:
    """Counts of one variant; None if it crashed or ran ten minutes."""
    environment = {**os.environ, "PYTHONPATH": str(packages), "OPENBLAS_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            [sys.executable, __file__, "--replay", calls],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=600,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: list[int] = json.loads(run.stdout)
    return found


def varied(text: str, up: bool) -> str:
    """A constant's text for ten times more or less; whole numbers stay whole and positive."""
    if "." not in text and "e" not in text:
        return str(int(text) * 10 if up else max(1, int(text) // 10))
    value = float(text)
    if up and 0.1 < value < 1.0:
        return repr(1.0 - (1.0 - value) / 10.0)
    return repr(value * 10.0 if up else value / 10.0)


def difference(found: list[int] | None, base: list[int]) -> str:
    """A cell: what changed against the numbers as they are."""
    if found is None:
        return "**crashed or endless**"
    words = []
    for name, before, after in zip(COUNTED, base, found, strict=True):
        if name not in ("programs", "factors") and before != after:
            words.append(f"{after - before:+d} {name}")
    share = 100.0 * (found[-1] / base[-1] - 1.0)
    if abs(share) >= 0.05:
        words.append(f"{share:+.1f} % factors")
    return ", ".join(words) or "same"


def main(which: str, names: list[str]) -> None:
    source, build, target = WORK / "source", WORK / "build", WORK / "installed"
    calls = WORK / f"{which}.pickle"
    if not calls.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, __file__, "--record", which, calls], check=True)
    shutil.rmtree(source, ignore_errors=True)
    copy_sources(source)
    if not build.exists():
        set_up(source, build)
    text = (ROOT / HEADER).read_text(encoding="utf-8")
    base = counts(install(build, target), calls)
    if base is None:
        raise SystemExit("the library as it is does not solve the programs")
    counted = ", ".join(f"{n} {name}" for n, name in zip(base, COUNTED, strict=True))
    print(f"\nAs they are: {counted}.\n")
    print("| constant | value | ten times more | ten times less |\n| --- | --- | --- | --- |")
    for define in DEFINE.finditer(text):
        name, value = define.groups()
        if names and name not in names:
            continue
        cells = []
        for up in (True, False):
            line = f"#define {name} {varied(value, up)}"
            (source / HEADER).write_text(text.replace(define.group(0), line), encoding="utf-8")
            cells.append(difference(counts(install(build, target), calls), base))
        print(f"| `{name}` | {value} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--replay"]:
        replay(Path(sys.argv[2]))
    elif sys.argv[1:2] in (["methods"], ["tests"]):
        main(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)
