"""Run every benchmarks/*/bench_*.py, one thread each, and keep what it prints.

Usage: python benchmarks/run.py [name ...]. Each script prints Markdown tables; results/<name>.md gets
them under a line that says which machine and versions they hold for.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PACKAGES = [
    "qdsim",
    "numpy",
    "mujoco",
    "clarabel",
    "qoco",
    "daqp",
    "piqp",
    "drake",
    "nimblephysics",
]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def processor() -> str:
    """Return the name of the processor as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> str:
    """Return the packages that are installed, with their versions."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def main(names: list[str]) -> int:
    """Run the scripts (all if no names are given); return 1 if one of them failed."""
    results = FOLDER / "results"
    results.mkdir(exist_ok=True)
    scripts = sorted(FOLDER.glob("*/bench_*.py"))
    scripts = [s for s in scripts if not names or s.stem.removeprefix("bench_") in names]
    if not scripts:
        print(f"no benchmark of that name: {' '.join(names)}", file=sys.stderr)
        return 1
    head = f"{processor()}, one thread, Python {platform.python_version()}, {versions()}"
    failed = 0
    for script in scripts:
        print(f"== {script.stem}", flush=True)
        run = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, **ONE_THREAD},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(run.stdout, flush=True)
        if run.returncode != 0:
            print(f"{script.name} failed with status {run.returncode}", file=sys.stderr)
            failed = 1
            continue
        name = script.stem.removeprefix("bench_")
        text = f"# {name}\n\n{head}. Written by `make bench`.\n\n{run.stdout.strip()}\n"
        (results / f"{name}.md").write_text(text, encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
