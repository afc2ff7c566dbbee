"""Where a step's work goes: shares of its stages, what Python adds, memory, for the published systems.

Every system takes one exact step, with its published options, from the start of its published motion (or
of its task) under the first command; then the same step with A and B.

- Shares are of executed instructions, which valgrind's callgrind counts exactly: the same on every run and
  every machine with AVX2 (valgrind knows no wider instructions). `kinematics`: poses and screws.
  `collision`: contacts, and the look for pairs that the step ran into. `program`: which contacts count,
  islands, assembly, forces. `solver`: the cone programs. `rest`: checks, retraction.
- `instructions`: of a step, in thousands. `A, B`: how many times as many with derivatives, and in brackets
  the solver's share of what they add (its back-solves).
- `us`: the step called in C, the least of several rounds; `Python adds`: `qdsim.step` beyond that.
- `KiB`: of the workspace that has served the step with A and B.

Needs valgrind, and the extension's symbols, which installers leave in; says so and stops where they are missing.
"""

from __future__ import annotations

import argparse
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import qdsim
from qdsim import _core, systems

STAGES = {
    "kinematics": ["kinematics_compute"],
    "collision": ["collision_compute", "missed_pairs_find"],
    "program": [
        "working_set_choose",
        "working_set_extend",
        "islands_find",
        "problem_number_variables",
        "workspace_place_islands",
        "problem_assemble",
        "problem_forces",
    ],
    "solver": ["conic_solve"],
}
BACK_SOLVES = ["conic_sensitivity_prepare", "conic_sensitivity_solve"]
COUNTED = ["qd_step", "qd_linearize"]
CALLER = "step_benchmark_function"  # of the extension: _core._step_benchmark
ROUNDS = 7
SECONDS = 0.02

Case = tuple[str, qdsim.Model, Any, Any, qdsim.Options]


def cases(names: Iterable[str]) -> list[Case]:
    """Return the cases of the systems; those whose first command has no solution are left out."""
    found = []
    for name in names:
        system = systems.load(name)
        state = system.model.keyframes[system.commands_from]
        u = system.commands[0] if len(system.commands) else system.start.u
        case = (name, system.model, state.q, u, system.options)
        try:
            qdsim.linearize(*case[1:])
        except qdsim.SolverError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        found.append(case)
    return found


# ------------------------------------------------------------------------------ counting


def step_twice(path: str) -> None:
    """Take, under valgrind, a step that allocates and the step that counts, for every case."""
    for _, *arguments in pickle.loads(Path(path).read_bytes()):
        for linearize in (False, True):
            for _ in range(2):
                _core._step_benchmark(*arguments, 1, linearize)


CALL = re.compile(r"^calls=\d+ ")


def costs(text: str) -> tuple[int, dict[tuple[str, str], int]]:
    """Return all instructions of a profile, and those of each (caller, callee), including the callees' own calls."""
    calls: dict[tuple[str, str], int] = {}
    total, caller, callee, of_call = 0, "", "", False
    for line in text.splitlines():
        if line.startswith("fn="):
            caller = line[3:]
        elif line.startswith("cfn="):
            callee = line[4:]
        elif CALL.match(line):
            of_call = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            cost = int(line.split()[1]) if " " in line else 0
            if of_call:
                calls[caller, callee] = calls.get((caller, callee), 0) + cost
            else:
                total += cost
            of_call = False
    return total, calls


def shares(text: str) -> dict[str, int]:
    """Return the instructions of each stage, of the step and of everything."""
    total, calls = costs(text)
    stage_of = {fn: stage for stage, fns in STAGES.items() for fn in fns}
    stage_of |= dict.fromkeys(BACK_SOLVES, "back-solves")
    found = dict.fromkeys([*STAGES, "back-solves"], 0)
    for (caller, callee), cost in calls.items():
        if callee in stage_of and caller not in stage_of:
            found[stage_of[callee]] += cost
    return found | {"all": total}


def profiles(valgrind: str, found: list[Case]) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Return the shares of the step and of the step with derivatives, of every case."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "cases", Path(folder) / "out"
        path.write_bytes(pickle.dumps(found))
        subprocess.run(
            [
                valgrind,
                "--tool=callgrind",
                "--quiet",
                f"--callgrind-out-file={out}",
                "--compress-strings=no",
                "--compress-pos=no",
                *(f"--toggle-collect={function}" for function in COUNTED),
                f"--dump-after={CALLER}",
                sys.executable,
                __file__,
                "--step-twice",
                str(path),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        parts = sorted(Path(folder).glob("out.*"), key=lambda part: int(part.suffix[1:]))
        texts = [part.read_text(encoding="utf-8") for part in parts[1::2]]
    counted = [shares(text) for text in texts]
    return list(zip(counted[0::2], counted[1::2], strict=True))


# ------------------------------------------------------------------------------ timing


def microseconds(case: Case) -> tuple[float, float]:
    """Return the least time of a step in C and through Python."""
    _, model, q, u, options = case
    once = _core._step_benchmark(model, q, u, options, 3, False)
    repeat = max(1, int(SECONDS / once))
    in_c, in_python = [], []
    for _ in range(ROUNDS):
        in_c.append(_core._step_benchmark(model, q, u, options, repeat, False))
        start = time.perf_counter()
        for _ in range(repeat):
            qdsim.step(model, q, u, options)
        in_python.append((time.perf_counter() - start) / repeat)
    return 1e6 * min(in_c), 1e6 * min(in_python)


def row(case: Case, step: dict[str, int], both: dict[str, int]) -> str:
    name, model, q, u, options = case
    info = qdsim.step(model, q, u, options).info
    in_c, in_python = microseconds(case)
    rest = step["all"] - sum(step[stage] for stage in STAGES)
    parts = [f"{100 * part / step['all']:.0f}" for part in [*(step[s] for s in STAGES), rest]]
    added = both["all"] - step["all"]
    kibibytes = _core._workspace_bytes(model, q, u, options, True) / 1024
    return (
        f"| `{name}` | {info.contact_count} | {info.row_count} | {' | '.join(parts)} "
        f"| {step['all'] / 1e3:,.0f} | {both['all'] / step['all']:.1f} "
        f"({100 * both['back-solves'] / added:.0f} %) "
        f"| {in_c:.1f} | {max(0.0, in_python - in_c):.1f} | {kibibytes:,.0f} |"
    )


def table(valgrind: str, names: Iterable[str]) -> str:
    found = cases(names)
    counted = profiles(valgrind, found)
    if len(counted) != len(found) or not all(step["solver"] for step, _ in counted):
        return "Not measured: the extension has no symbols that valgrind can tell its stages by."
    lines = [
        "| system | contacts | rows | kinematics % | collision % | program % | solver % | rest % "
        "| instructions | A, B | us | Python adds | KiB |",
        "| --- " * 13 + "|",
    ]
    return "\n".join(lines + [row(case, *both) for case, both in zip(found, counted, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="systems; all if none are given")
    parser.add_argument("--step-twice", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if arguments.step_twice:
        step_twice(arguments.step_twice)
    elif valgrind is None:
        print("Not measured: needs valgrind.")
    else:
        print(table(valgrind, arguments.names or systems.NAMES))


if __name__ == "__main__":
    main()
